import { Fragment } from "react";
import classes from "./Value.module.css";

/** Shows a sentence of the server. Names in backticks appear as code. */
export function Ticked({ text }: { text: string }) {
  return (
    <bdi>
      {text.split(/`([^`\n]{1,200})`/).map((part, index) =>
        index % 2 === 1 ? (
          <code key={index} className={classes.code}>
            {part}
          </code>
        ) : (
          <Fragment key={index}>{part}</Fragment>
        ),
      )}
    </bdi>
  );
}

import { Fragment } from "react";
import classes from "./Value.module.css";

/** A sentence of the server, whose names stand in backticks: they are shown as code. */
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

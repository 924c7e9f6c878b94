import { CopyButton } from "./Copy";
import classes from "./Copy.module.css";

/** Code that can be read and copied. `label` says what it is. */
export function CodeBlock({ code, label, wrap = false }: { code: string; label?: string; wrap?: boolean }) {
  return (
    <div className={classes.block}>
      <div className={classes.blockHead}>
        <span>{label}</span>
        <CopyButton text={code} label={label === undefined ? "Copy" : `Copy: ${label}`} icon />
      </div>
      <pre className={wrap ? `${classes.pre} ${classes.wrap}` : classes.pre} tabIndex={0} role="region" aria-label={label ?? "Code"}>
        {code}
      </pre>
    </div>
  );
}

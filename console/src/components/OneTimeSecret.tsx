import { CopyButton } from "./Copy";
import classes from "./Copy.module.css";

/** A secret that is shown only once. Keep it only in the state of a component, so that it is gone when the person leaves the page. */
export function OneTimeSecret({ secret, label, copyLabel = "Copy", children }: { secret: string; label: React.ReactNode; copyLabel?: string; children?: React.ReactNode }) {
  return (
    <div className={classes.secret}>
      <div>
        <strong>{label}</strong>
      </div>
      <div className={classes.secretRow}>
        <code className={classes.secretValue} data-secret>
          {secret}
        </code>
        <CopyButton text={secret} label={copyLabel} />
      </div>
      <div className="dim" style={{ fontSize: 13 }}>
        {children ?? "Copy it now. It is not shown again."}
      </div>
    </div>
  );
}

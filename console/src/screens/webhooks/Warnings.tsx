import classes from "../../components/Details.module.css";

/**
 * Warnings in a response. The server accepted the request, but something in it looks wrong, such as a topic of an object that does not
 * exist.
 */
export function Warnings({ warnings }: { warnings: string[] | undefined }) {
  if (warnings === undefined || warnings.length === 0) return null;
  return (
    <div className={classes.handOver} role="note">
      {warnings.map((warning) => (
        <span key={warning}>{warning}</span>
      ))}
    </div>
  );
}

import type { HandlerParts, HandlerUsage } from "../../api/types";
import { shortTime } from "../settings/units";
import classes from "./Blocks.module.css";

/** The parts of a call in their order, and what happens in each. */
const PARTS: [keyof HandlerParts, string][] = [
  ["queue", "The call waits for the compiled block, for a free slot, or for a processor."],
  ["instantiate", "The server makes an instance, and the block runs the code of its start. An instance that was made ahead or kept is there already."],
  ["guest", "The block's own code runs."],
  ["host", "The server works for the block, or waits for something: records, requests to other machines, more memory."],
  ["render", "The server hands over the input, reads the result and makes the answer of it."],
  ["teardown", "The server clears or keeps the instance. Usually the caller does not wait for this."],
];

/** Where the time of each handler's calls goes. */
export function CallParts({ used }: { used: (HandlerUsage & { kind: string })[] }) {
  const called = used.filter(({ parts }) => parts.guest.calls > 0);
  if (called.length === 0) return <p className="dim">It has handled no call yet.</p>;
  return (
    <>
      <p className="dim">A call is in one part at a time. Each part shows its mean, and the time that 95 % of the calls do not exceed in it.</p>
      <div className={classes.scroll} tabIndex={0} role="region" aria-label="Where the time goes">
        <table className={classes.table}>
          <thead>
            <tr>
              <th scope="col">Name</th>
              <th scope="col">Kind</th>
              {PARTS.map(([part]) => (
                <th key={part} scope="col" data-numeric>{part}</th>
              ))}
            </tr>
          </thead>
          <tbody>
            {called.map(({ name, kind, parts }) => (
              <tr key={`${kind} ${name}`}>
                <th scope="row" className="mono">{name}</th>
                <td>{kind}</td>
                {PARTS.map(([part]) => {
                  const { calls, timeMsTotal, timeMsP95 } = parts[part];
                  return (
                    <td key={part} data-numeric>
                      {shortTime(calls === 0 ? null : Number(timeMsTotal) / calls)}
                      {calls > 0 && <div className={classes.percentile}>95 %: {shortTime(timeMsP95)}</div>}
                    </td>
                  );
                })}
              </tr>
            ))}
          </tbody>
        </table>
      </div>
      <dl className={classes.declared} aria-label="What the parts are">
        {PARTS.map(([part, what]) => (
          <div key={part}>
            <dt>{part}</dt>
            <dd>{what}</dd>
          </div>
        ))}
      </dl>
    </>
  );
}

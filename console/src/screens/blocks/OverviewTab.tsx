import { useQuery } from "@tanstack/react-query";
import { Actor } from "../../components/Actor";
import { CopyText } from "../../components/Copy";
import { Time } from "../../components/Time";
import { PartNotLoaded } from "../../components/PartNotLoaded";
import { bytes, shortTime } from "../settings/units";
import { usageQuery } from "./blocks";
import { CallParts } from "./CallParts";
import { Consent } from "./Consent";
import classes from "./Blocks.module.css";
import type { Block, HandlerUsage as Use } from "../../api/types";

export function OverviewTab({ block }: { block: Block }) {
  const query = useQuery(usageQuery(block.name));
  const usage = query.data;
  const used = usage === undefined ? [] : [...usage.actions.map((each) => ({ kind: "action", ...each })), ...usage.handlers.map((each) => ({ kind: "handler", ...each })), ...usage.hooks.map((each) => ({ kind: "hook", ...each }))];
  return (
    <>
      <p dir="auto">{block.description}</p>
      <p className="dim">
        Version {block.version}, installed <Time at={block.installedAt} /> by <Actor id={block.installedBy} /> · <CopyText text={block.digest} shown={`${block.digest.slice(0, 19)}…`} label="Copy the digest" />
        {block.versions.length > 1 && ` · kept versions: ${block.versions.join(", ")}`}
      </p>
      <section>
        <h2>What it may do</h2>
        <Consent permissions={block.permissions} instances={block.instances} />
      </section>
      <section>
        <h2>Use</h2>
        {usage === undefined ? (
          <PartNotLoaded query={query} what="The use" lines={3} />
        ) : used.length === 0 ? (
          <p className="dim">It declares nothing that could be called.</p>
        ) : (
          <>
            <p className="dim">
              Of this instance since <Time at={usage.since} />.
            </p>
            <div className={classes.scroll} tabIndex={0} role="region" aria-label="Use">
              <table className={classes.table}>
                <thead>
                  <tr>
                    <th scope="col">Name</th>
                    <th scope="col">Kind</th>
                    <th scope="col" data-numeric>Calls</th>
                    <th scope="col" data-numeric>Failed</th>
                    <th scope="col" data-numeric>p50</th>
                    <th scope="col" data-numeric>p95</th>
                    <th scope="col" data-numeric>Memory at most</th>
                  </tr>
                </thead>
                <tbody>
                  {used.map((use) => (
                    <tr key={`${use.kind} ${use.name}`}>
                      <th scope="row" className="mono">{use.name}</th>
                      <td>{use.kind}</td>
                      <Figures {...use} />
                    </tr>
                  ))}
                </tbody>
              </table>
            </div>
          </>
        )}
      </section>
      {used.length > 0 && (
        <section>
          <h2>Where the time goes</h2>
          <CallParts used={used} />
        </section>
      )}
    </>
  );
}

function Figures({ calls, failed, timeMsP50, timeMsP95, memoryBytesMax }: Use) {
  return (
    <>
      <td data-numeric>{calls.toLocaleString("en")}</td>
      <td data-numeric>{failed.toLocaleString("en")}</td>
      <td data-numeric>{shortTime(timeMsP50)}</td>
      <td data-numeric>{shortTime(timeMsP95)}</td>
      <td data-numeric>{calls === 0 ? "–" : bytes(memoryBytesMax)}</td>
    </>
  );
}

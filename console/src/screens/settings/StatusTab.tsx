import { IconCircleCheck, IconCircleX } from "@tabler/icons-react";
import { useQuery } from "@tanstack/react-query";
import { Link } from "@tanstack/react-router";
import type { ReactNode } from "react";
import { statusQuery } from "../../api/status";
import type { Status } from "../../api/types";
import { ErrorNotice, ErrorState } from "../../components/ErrorState";
import { Id } from "../../components/Id";
import { Bone, Late } from "../../components/Skeleton";
import { StatusBadge } from "../../components/StatusBadge";
import { Time } from "../../components/Time";
import { bytes, duration } from "./units";
import classes from "./Settings.module.css";

/** The version, the storage, the queue, the instances and the health checks. They are loaded again every ten seconds. */
export function StatusTab() {
  const { data: status, error, refetch } = useQuery(statusQuery);
  if (status === undefined) {
    if (error !== null) return <ErrorState error={error} title="The status could not be loaded" onRetry={() => void refetch()} />;
    return <StatusSkeleton />;
  }
  const { database, outbox, deliveries, streams, blocks } = status;
  return (
    <div className={classes.status}>
      {error !== null && <ErrorNotice error={error} title="These figures are old: the status could not be loaded again" onRetry={() => void refetch()} />}
      <dl className={classes.figures}>
        <Figure label="Version" value={status.version} detail={`${status.engine === "sqlite" ? "SQLite" : "Postgres"} ${status.engineVersion}`} />
        <Figure label="Up for" value={duration(status.uptimeSeconds)} detail={<>started <Time at={status.startedAt} /></>} />
        <Figure
          label="Database"
          value={bytes(database.sizeBytes)}
          detail={database.freeBytes === null || database.totalBytes === null ? "room of the disk not known" : `${bytes(database.freeBytes)} of ${bytes(database.totalBytes)} free on its disk`}
        />
        <Figure label="Outbox" value={bytes(outbox.sizeBytes)} detail={`${outbox.events.toLocaleString("en")} events${outbox.maxBytes === null ? "" : `, at most ${bytes(outbox.maxBytes)}`}`} />
        <Figure
          label="Queue"
          value={deliveries.pending.toLocaleString("en")}
          detail={
            deliveries.failed + deliveries.dead > 0 ? (
              <Link to="/deliveries" search={{ status: deliveries.dead > 0 ? "dead" : "failed" }}>
                {deliveries.failed.toLocaleString("en")} failed, {deliveries.dead.toLocaleString("en")} dead
              </Link>
            ) : deliveries.oldestPendingAt === null ? (
              "nothing waits"
            ) : (
              <>oldest from <Time at={deliveries.oldestPendingAt} /></>
            )
          }
        />
        <Figure label="Streams" value={streams.open.toLocaleString("en")} detail={`open, at most ${streams.max.toLocaleString("en")}`} />
        <Figure label="Blocks" value={blocks.installed.toLocaleString("en")} detail={blocks.failing.length === 0 ? "installed, none fails" : `installed, ${blocks.failing.length} failed lately`} />
      </dl>
      <section className={classes.card} aria-labelledby="checks">
        <h2 id="checks">Checks</h2>
        <ul className={classes.checks}>
          {status.health.map(({ check, ok, detail }) => (
            <li key={check} data-ok={ok || undefined}>
              {ok ? <IconCircleCheck size={16} aria-label="well" /> : <IconCircleX size={16} aria-label="not well" />}
              <strong>{check}</strong>
              <span className="dim" dir="auto">{detail}</span>
            </li>
          ))}
        </ul>
      </section>
      <Instances instances={status.instances} />
    </div>
  );
}

function Figure({ label, value, detail }: { label: string; value: string; detail: ReactNode }) {
  return (
    <div className={classes.card}>
      <dt>{label}</dt>
      <dd className={classes.number}>{value}</dd>
      <dd className="dim">{detail}</dd>
    </div>
  );
}

function Instances({ instances }: { instances: Status["instances"] }) {
  return (
    <section className={classes.card} aria-labelledby="instances">
      <h2 id="instances">Instances</h2>
      <table className={classes.table}>
        <thead>
          <tr>
            <th scope="col">Instance</th>
            <th scope="col">Version</th>
            <th scope="col">Started</th>
            <th scope="col">Last seen</th>
          </tr>
        </thead>
        <tbody>
          {instances.map(({ id, version, startedAt, seenAt, isThis }) => (
            <tr key={id}>
              <td>
                <Id id={id} /> {isThis && <StatusBadge tone="info" plain>answers you</StatusBadge>}
              </td>
              <td>{version}</td>
              <td><Time at={startedAt} /></td>
              <td><Time at={seenAt} /></td>
            </tr>
          ))}
        </tbody>
      </table>
    </section>
  );
}

const FIGURES = 7;

function StatusSkeleton() {
  return (
    <div className={classes.status} aria-busy="true">
      <div className={classes.figures}>
        {Array.from({ length: FIGURES }, (_, index) => (
          <div key={index} className={`${classes.card} ${classes.placeholder}`}>
            <Late>
              <Bone width={80} />
            </Late>
          </div>
        ))}
      </div>
    </div>
  );
}

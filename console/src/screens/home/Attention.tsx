import { IconAlertTriangle, IconCircleCheck, IconCircleX } from "@tabler/icons-react";
import { useQuery } from "@tanstack/react-query";
import { Link } from "@tanstack/react-router";
import type { ReactNode } from "react";
import { api, dataOf } from "../../api/client";
import { quantity } from "../../api/numbers";
import { every } from "../../api/poll";
import { useCan } from "../../api/session";
import { statusQuery } from "../../api/status";
import { Time } from "../../components/Time";
import classes from "./Home.module.css";

/** A person without read on `settings` who may read events still gets the counts of deliveries. */
const countsQuery = {
  queryKey: ["deliveries", "counts", "home"],
  queryFn: ({ signal }: { signal: AbortSignal }) => dataOf(api.GET("/api/v1/events/deliveries/counts", { signal })),
  refetchInterval: every(30_000),
};

/** Problems that need attention: dead and failed deliveries, failing blocks, and failed health checks. */
export function Attention() {
  const readsStatus = useCan("settings", "read");
  const readsEvents = useCan("events", "read");
  const { data: status } = useQuery({ ...statusQuery, enabled: readsStatus });
  const { data: counts } = useQuery({ ...countsQuery, enabled: readsEvents && !readsStatus });
  if (status === undefined && counts === undefined) return null;
  const dead = status?.deliveries.dead ?? counts?.reduce((sum, each) => sum + each.dead, 0) ?? 0;
  const failed = Math.max(0, (status?.deliveries.failed ?? counts?.reduce((sum, each) => sum + each.failed, 0) ?? 0));
  const lines: ReactNode[] = [];
  if (dead > 0)
    lines.push(
      <Line key="dead" tone="bad">
        <Link to="/deliveries" search={{ status: "dead" }}>
          {quantity(dead, "dead delivery", "dead deliveries")}
        </Link>{" "}
        gave up after the last attempt.
      </Line>,
    );
  if (failed > 0)
    lines.push(
      <Line key="failed" tone="warn">
        <Link to="/deliveries" search={{ status: "failed" }}>
          {quantity(failed, "failed delivery", "failed deliveries")}
        </Link>{" "}
        {failed === 1 ? "is" : "are"} being tried again.
      </Line>,
    );
  for (const { name, error, at } of status?.blocks.failing ?? [])
    lines.push(
      <Line key={`block ${name}`} tone="bad">
        <Link to="/blocks/$block" params={{ block: name }}>
          {name}
        </Link>{" "}
        failed <Time at={at} />: <span dir="auto" className={classes.clip} title={error}>{error}</span>
      </Line>,
    );
  // A problem that a line above already names is not repeated.
  const isTold = (check: string) => (check === "deliveries" && dead > 0) || (check === "blocks" && (status?.blocks.failing ?? []).length > 0);
  for (const { check, ok, detail } of status?.health ?? [])
    if (!ok && !isTold(check))
      lines.push(
        <Line key={`check ${check}`} tone="bad">
          <Link to="/settings">{check}</Link>: <span dir="auto">{detail}</span>
        </Line>,
      );
  return (
    <section className={classes.card} aria-label="Needs attention">
      <h2 className={classes.head}>Needs attention</h2>
      <ul className={classes.lines}>
        {lines.length === 0 ? (
          <Line tone="ok">
            Nothing. Deliveries arrive{status === undefined ? "" : status.blocks.installed > 0 ? ", blocks run, and all checks are well" : " and all checks are well"}.
          </Line>
        ) : (
          lines
        )}
      </ul>
    </section>
  );
}

function Line({ tone, children }: { tone: "ok" | "warn" | "bad"; children: ReactNode }) {
  const Icon = { ok: IconCircleCheck, warn: IconAlertTriangle, bad: IconCircleX }[tone];
  return (
    <li className={classes.line} data-tone={tone}>
      <Icon size={16} aria-hidden="true" />
      <span>{children}</span>
    </li>
  );
}

import { IconAlertTriangle, IconCircleCheck, IconCircleX, IconLink } from "@tabler/icons-react";
import { Link } from "@tanstack/react-router";
import { isApiError } from "../../../api/errors";
import type { Dependent, Plan } from "../../../api/types";
import { ErrorNotice } from "../../../components/ErrorState";
import { Ticked } from "../../../components/Ticked";
import { quantity } from "../../../api/numbers";
import classes from "./Change.module.css";

const SHOWN_MAX = 8;

/** The effect of a change, from the server's plan: rows that break the new rule, data that is lost, and things that depend on it. */
export function Effect({ plan, error, isPending, waits = false }: { plan: Plan | undefined; error: unknown; isPending: boolean; waits?: boolean }) {
  if (waits) return <p className={classes.quiet}>It builds on an earlier step, so the server can say what it does once that one is applied.</p>;
  if (error !== null && error !== undefined) {
    if (isApiError(error) && error.status === 403) return <p className={classes.quiet}>The effect is not shown: <Ticked text={error.message} /></p>;
    return <ErrorNotice error={error} title="The server would refuse this" />;
  }
  if (plan === undefined) return <p className={classes.quiet}>{isPending ? "Asking the server what this would do…" : ""}</p>;
  const lost = plan.lost.filter(({ rows }) => rows > 0);
  return (
    <div className={classes.effect} role="status">
      {plan.breaking.map(({ rule, object, field, rows, message }) => (
        <p key={`${object} ${field ?? ""} ${rule}`} className={classes.line} data-tone="bad">
          <IconCircleX size={15} aria-hidden="true" />
          <span dir="auto">
            {/^\d/.test(message) ? null : <strong>{quantity(rows, "row")}: </strong>}
            <Ticked text={message} />
          </span>
        </p>
      ))}
      {lost.map(({ what, object, name, rows }) => (
        <p key={`${what} ${object} ${name ?? ""}`} className={classes.line} data-tone="warn">
          <IconAlertTriangle size={15} aria-hidden="true" />
          <span>
            <strong>{rows.toLocaleString("en")}</strong> {what === "records" ? `${rows === 1 ? "record" : "records"} of ${object} ${rows === 1 ? "goes" : "go"}` : what === "values" ? `${rows === 1 ? "value" : "values"} of ${object}.${name ?? ""} ${rows === 1 ? "goes" : "go"}` : `${rows === 1 ? "link" : "links"} of ${name ?? object} ${rows === 1 ? "goes" : "go"}`}, for good.
          </span>
        </p>
      ))}
      {plan.breaking.length === 0 && lost.length === 0 && (
        <p className={classes.line} data-tone="ok">
          <IconCircleCheck size={15} aria-hidden="true" />
          <span>{plan.destructive ? "No value is in it, so nothing is lost." : "No row breaks it, and nothing is lost."}</span>
        </p>
      )}
      <Dependents dependents={plan.dependents} hidden={plan.hidden} />
    </div>
  );
}

const WORDS: Record<Dependent["kind"], string> = {
  relationship: "relation",
  unique: "unique group",
  index: "index",
  role: "role",
  webhook: "webhook",
  subscription: "subscription",
  block: "block",
  task: "task",
};

export function Dependents({ dependents, hidden }: { dependents: Dependent[]; hidden: number }) {
  if (dependents.length === 0 && hidden === 0) return null;
  return (
    <div className={classes.dependents}>
      <p className={classes.line}>
        <IconLink size={15} aria-hidden="true" />
        <span>
          {dependents.length + hidden === 1 ? "1 thing depends" : `${dependents.length + hidden} things depend`} on it:
        </span>
      </p>
      <ul>
        {dependents.slice(0, SHOWN_MAX).map((each) => (
          <li key={`${each.kind} ${each.id ?? each.name}`}>
            <span className="dim">{WORDS[each.kind]}</span> <DependentName dependent={each} /> <span className="dim" dir="auto"><Ticked text={each.detail} /></span>
          </li>
        ))}
        {dependents.length > SHOWN_MAX && <li className="dim">and {dependents.length - SHOWN_MAX} more</li>}
        {hidden > 0 && <li className="dim">{hidden === 1 ? "1 that you may not see" : `${hidden} that you may not see`}</li>}
      </ul>
    </div>
  );
}

function DependentName({ dependent: { kind, name, id } }: { dependent: Dependent }) {
  const shown = <bdi>{name}</bdi>;
  if (kind === "role" && id !== null) return <Link to="/roles/$role" params={{ role: id }}>{shown}</Link>;
  if (kind === "block") return <Link to="/blocks/$block" params={{ block: name }}>{shown}</Link>;
  if (kind === "webhook") return <Link to="/webhooks">{shown}</Link>;
  if (kind === "task") return <Link to="/tasks">{shown}</Link>;
  return <strong>{shown}</strong>;
}

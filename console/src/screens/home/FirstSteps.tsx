import { Button } from "@mantine/core";
import { IconCircle, IconCircleCheck } from "@tabler/icons-react";
import { useQueries, useQuery } from "@tanstack/react-query";
import { Link } from "@tanstack/react-router";
import { keysQuery } from "../../api/actors";
import { recordCountQuery } from "../../api/counts";
import type { KnownObject } from "../../api/objects";
import { every } from "../../api/poll";
import { usePreference } from "../../api/preferences";
import { useCan } from "../../api/session";
import { CodeBlock } from "../../components/CodeBlock";
import { asCurl } from "../../components/CopyAs";
import classes from "./Home.module.css";

/** The maximum number of objects whose counts are loaded to find out whether a record exists. */
const ASKED_MAX = 12;

/** The first steps, until all are done or the person hides them. */
export function FirstSteps({ objects }: { objects: KnownObject[] }) {
  const [hidden, hide, { isPending }] = usePreference<boolean>("home.firstSteps", false);
  const readsKeys = useCan("api_keys", "read");
  const createsKeys = useCan("api_keys", "create");
  const isShown = !isPending && !hidden;
  const counts = useQueries({ queries: isShown ? objects.slice(0, ASKED_MAX).map(({ name }) => recordCountQuery(name)) : [] });
  const keys = useQuery({ ...keysQuery, enabled: isShown && readsKeys, refetchInterval: every(15_000) });
  if (!isShown || counts.some(({ isPending: waits }) => waits) || (readsKeys && keys.isPending)) return null;
  const withRecords = objects[counts.findIndex(({ data }) => (data ?? 0) > 0)];
  const hasRecord = withRecords !== undefined;
  const hasKey = (keys.data?.length ?? 0) > 0;
  const called = keys.data?.some(({ lastUsedAt }) => lastUsedAt !== null) ?? false;
  if (hasRecord && hasKey && called) return null;
  const example = withRecords ?? objects[0]!;
  const done = 1 + Number(hasRecord) + Number(hasKey) + Number(called);
  return (
    <section className={classes.card} aria-label="First steps">
      <div className={classes.headRow}>
        <h2 className={classes.head}>
          First steps <span className="dim nums">{done} of 4</span>
        </h2>
        <Button variant="subtle" color="gray" size="compact-sm" onClick={() => hide(true)}>
          Hide
        </Button>
      </div>
      <ol className={classes.check}>
        <Step done title="Create an object" />
        <Step done={hasRecord} title="Add a record" isNext={!hasRecord}>
          <Button renderRoot={(props) => <Link to="/data/$object/new" params={{ object: example.name }} {...props} />}>Add a {example.name}</Button>
        </Step>
        <Step done={hasKey} title="Create a key" isNext={hasRecord && !hasKey}>
          {createsKeys ? (
            <Button renderRoot={(props) => <Link to="/keys" search={{ new: true }} {...props} />}>Create key</Button>
          ) : (
            <span className="dim">You need create on api_keys.</span>
          )}
        </Step>
        <Step done={called} title="Call the API" isNext={hasRecord && hasKey && !called}>
          <CodeBlock code={asCurl({ method: "GET", path: `/api/v1/data/${example.name}` })} label="curl, with your key in SVC_API_KEY" />
        </Step>
      </ol>
    </section>
  );
}

function Step({ done, title, isNext = false, children }: { done: boolean; title: string; isNext?: boolean; children?: React.ReactNode }) {
  return (
    <li data-done={done || undefined}>
      {done ? <IconCircleCheck size={18} aria-label="done" /> : <IconCircle size={18} aria-label="to do" />}
      <div>
        <span>{title}</span>
        {isNext && children !== undefined && <div className={classes.checkBody}>{children}</div>}
      </div>
    </li>
  );
}

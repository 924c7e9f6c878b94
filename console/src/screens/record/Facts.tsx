import type { JsonObject, JsonValue } from "../../api/json";
import { Id } from "../../components/Id";
import { Actor } from "../../components/Actor";
import { Time } from "../../components/Time";
import classes from "./record.module.css";

const textOf = (value: unknown) => (typeof value === "string" ? value : null);

/** The values that the server sets on a record: its id, and who created and last changed it. */
export function Facts({ record }: { record: JsonObject }) {
  return (
    <dl className={classes.facts}>
      <dt>Id</dt>
      <dd>
        <Id id={String(record.id)} />
      </dd>
      <Stamp word="Created" at={record.created_at} by={record.created_by} />
      <Stamp word="Changed" at={record.updated_at} by={record.updated_by} />
    </dl>
  );
}

/** The time of a change and its actor. A value that this person may not read is undefined. */
function Stamp({ word, at, by }: { word: string; at: JsonValue | undefined; by: JsonValue | undefined }) {
  if (at === undefined && by === undefined) return null;
  return (
    <>
      <dt>{word}</dt>
      <dd>
        {at !== undefined && <Time at={textOf(at)} />}
        {at !== undefined && by !== undefined && <br />}
        {by !== undefined && <Actor picture id={textOf(by)} nobody="nobody signed in" />}
      </dd>
    </>
  );
}

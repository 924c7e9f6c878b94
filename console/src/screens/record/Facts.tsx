import type { JsonObject } from "../../api/json";
import { Id } from "../../components/Id";
import { Actor } from "../../components/Actor";
import { Time } from "../../components/Time";
import classes from "./record.module.css";

const textOf = (value: unknown) => (typeof value === "string" ? value : null);

/** What the server keeps about a record: its id, who made it, who changed it last. */
export function Facts({ record }: { record: JsonObject }) {
  return (
    <dl className={classes.facts}>
      <dt>Id</dt>
      <dd>
        <Id id={String(record.id)} />
      </dd>
      {"created_at" in record && (
        <>
          <dt>Created</dt>
          <dd>
            <Time at={textOf(record.created_at)} />
            <br />
            <Actor picture id={textOf(record.created_by)} nobody="nobody signed in" />
          </dd>
        </>
      )}
      {"updated_at" in record && (
        <>
          <dt>Changed</dt>
          <dd>
            <Time at={textOf(record.updated_at)} />
            <br />
            <Actor picture id={textOf(record.updated_by)} nobody="nobody signed in" />
          </dd>
        </>
      )}
    </dl>
  );
}

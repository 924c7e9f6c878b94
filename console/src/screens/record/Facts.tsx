import type { ReactNode } from "react";
import type { JsonObject, JsonValue } from "../../api/json";
import { Id } from "../../components/Id";
import { Actor } from "../../components/Actor";
import { FactList } from "../../components/FactList";
import { Time } from "../../components/Time";

const textOf = (value: unknown) => (typeof value === "string" ? value : null);

/** The values that the server sets on a record: its id, and who created and last changed it. */
export function Facts({ record }: { record: JsonObject }) {
  const { created_at, created_by, updated_at, updated_by } = record;
  return <FactList facts={{ Id: <Id id={String(record.id)} />, Created: stamp(created_at, created_by), Changed: stamp(updated_at, updated_by) }} />;
}

/** The time of a change and its actor. A value that this person may not read is undefined. */
function stamp(at: JsonValue | undefined, by: JsonValue | undefined): ReactNode {
  if (at === undefined && by === undefined) return null;
  return (
    <>
      {at !== undefined && <Time at={textOf(at)} />}
      {at !== undefined && by !== undefined && <br />}
      {by !== undefined && <Actor picture id={textOf(by)} nobody="nobody signed in" />}
    </>
  );
}

/** The objects that this person may use. They have labels if the person may read the schema. */
import { useQuery } from "@tanstack/react-query";
import { useMemo } from "react";
import { dataObjectsQuery, schemaQuery } from "./schema-live";
import { useCan } from "./session";
import type { DataObject } from "./types";

export type KnownObject = Pick<DataObject, "name" | "label" | "description"> & { fields?: DataObject["fields"] };

/** The objects, sorted by name. `fields` are absent if the person may not read the schema. */
export function useObjects(): { data: KnownObject[] | undefined; error: unknown; refetch: () => void } {
  const readsSchema = useCan("objects", "read");
  const schema = useQuery({ ...schemaQuery, enabled: readsSchema });
  const listed = useQuery(dataObjectsQuery);
  const data = useMemo<KnownObject[] | undefined>(() => {
    const known = readsSchema ? schema.data?.objects : undefined;
    const objects: KnownObject[] | undefined = known ?? listed.data?.map(({ name }) => ({ name }));
    return objects === undefined ? undefined : [...objects].sort((one, other) => one.name.localeCompare(other.name, "en"));
  }, [readsSchema, schema.data, listed.data]);
  return {
    data,
    error: readsSchema ? (schema.error ?? null) : listed.error,
    refetch: () => {
      void listed.refetch();
      if (readsSchema) void schema.refetch();
    },
  };
}

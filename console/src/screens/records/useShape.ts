/** The shape of the object that a table shows, as it is now. */
import { useQuery } from "@tanstack/react-query";
import { useMemo } from "react";
import { isApiError } from "../../api/errors";
import { openApiQuery } from "../../api/openapi";
import { schemaQuery } from "../../api/schema-live";
import { useCan, usePermissions } from "../../api/session";
import { type RecordShape, shapeOf } from "./columns";
import { shapeFromOpenApi } from "./columns-openapi";

export type ShapeState =
  | { state: "loading" }
  | { state: "error"; error: unknown; retry: () => void }
  /** There is no object of this name, or not any more. */
  | { state: "missing" }
  | { state: "ready"; shape: RecordShape; shapeOfOther: (object: string) => RecordShape | undefined };

export function useShape(object: string): ShapeState {
  const permissions = usePermissions();
  const granted = useCan("objects", "read");
  const schema = useQuery({ ...schemaQuery, enabled: granted });
  const refused = isApiError(schema.error) && schema.error.status === 403;
  const byDocument = permissions !== undefined && (!granted || refused);
  const document = useQuery({ ...openApiQuery, enabled: byDocument });
  return useMemo<ShapeState>(() => {
    if (!byDocument) {
      if (schema.data !== undefined) {
        const { objects, relationships } = schema.data;
        const other = (name: string) => {
          const found = objects.find((each) => each.name === name);
          return found === undefined ? undefined : shapeOf(found, relationships);
        };
        const shape = other(object);
        return shape === undefined ? { state: "missing" } : { state: "ready", shape, shapeOfOther: other };
      }
      if (schema.error !== null) return { state: "error", error: schema.error, retry: () => void schema.refetch() };
      return { state: "loading" };
    }
    if (document.data !== undefined) {
      const shape = shapeFromOpenApi(document.data, object);
      const read = document.data;
      return shape === undefined ? { state: "missing" } : { state: "ready", shape, shapeOfOther: (name) => shapeFromOpenApi(read, name) };
    }
    if (document.error !== null) return { state: "error", error: document.error, retry: () => void document.refetch() };
    return { state: "loading" };
    // The queries' functions are stable; their data and errors decide.
    // oxlint-disable-next-line react/exhaustive-deps
  }, [byDocument, object, schema.data, schema.error, document.data, document.error]);
}

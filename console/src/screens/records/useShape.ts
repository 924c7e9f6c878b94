/** The shape of the object that a table shows, as it is now. */
import { queryOptions, useQuery } from "@tanstack/react-query";
import { useMemo } from "react";
import { request } from "../../api/client";
import { isApiError } from "../../api/errors";
import type { JsonObject } from "../../api/json";
import { schemaQuery } from "../../api/schema-live";
import { type Me, useCan, usePermissions } from "../../api/session";
import { isSessionEstablished, signInAgain } from "../../api/session-lost";
import { type RecordShape, shapeOf } from "./columns";
import { shapeFromOpenApi } from "./columns-openapi";

const documentQuery = queryOptions({
  queryKey: ["schema", "openapi"],
  queryFn: async ({ signal }) => {
    // Everybody gets a document, each their own. Somebody whose session has ended would get one without any object, and lose the table.
    const { authenticated } = await request<Me>("GET", "/api/v1/me", { signal });
    if (!authenticated && isSessionEstablished()) await signInAgain();
    return request<JsonObject>("GET", "/api/v1/openapi.json", { signal });
  },
  staleTime: 30_000,
});

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
  const document = useQuery({ ...documentQuery, enabled: byDocument });
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

/**
 * The server's OpenAPI document. Each person gets their own, with the objects and routes that they may use. All readers share one query.
 */
import { queryOptions } from "@tanstack/react-query";
import { api, ok } from "./client";
import type { JsonObject } from "./json";
import { isSessionEstablished, signInAgain } from "./session-lost";

export const openApiQuery = queryOptions({
  queryKey: ["schema", "openapi"],
  queryFn: async ({ signal }) => {
    // If the session has ended, the server would send a document without any object, and the table on the page would disappear.
    const { authenticated } = await ok(api.GET("/api/v1/me", { signal }));
    if (!authenticated && isSessionEstablished()) await signInAgain();
    return (await ok(api.GET("/api/v1/openapi.json", { signal }))) as JsonObject;
  },
  staleTime: 30_000,
});

/** The server's OpenAPI document: everybody gets their own, with the objects and routes that they may use. One query for all who read it. */
import { queryOptions } from "@tanstack/react-query";
import { api, ok } from "./client";
import type { JsonObject } from "./json";
import { isSessionEstablished, signInAgain } from "./session-lost";

export const openApiQuery = queryOptions({
  queryKey: ["schema", "openapi"],
  queryFn: async ({ signal }) => {
    // Somebody whose session has ended would get a document without any object, and lose the table.
    const { authenticated } = await ok(api.GET("/api/v1/me", { signal }));
    if (!authenticated && isSessionEstablished()) await signInAgain();
    return (await ok(api.GET("/api/v1/openapi.json", { signal }))) as JsonObject;
  },
  staleTime: 30_000,
});

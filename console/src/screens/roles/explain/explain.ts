/** The request that explains why a role allows something on the records of an object. */
import { queryOptions } from "@tanstack/react-query";
import { api, dataOf } from "../../../api/client";
import { every } from "../../../api/poll";
import type { ExplainBody } from "../../../api/types";

/** The actions that can be explained. */
export const EXPLAINED = ["read", "create", "update", "delete"] as const;

/** The person's choices, which are in the address. */
export interface ExplainChoice {
  user: string | undefined;
  object: string | undefined;
  action: (typeof EXPLAINED)[number] | undefined;
  record: string | undefined;
}

/** The body of the request. Undefined until an object is chosen. */
export function explainBody({ user, object, action = "read", record }: ExplainChoice): ExplainBody | undefined {
  return object === undefined ? undefined : { ...(user === undefined ? {} : { userId: user }), object, action, ...(record === undefined ? {} : { id: record }) };
}

export const explainQuery = (role: string, body: ExplainBody) =>
  queryOptions({
    queryKey: ["roles", role, "explain", body],
    queryFn: ({ signal }) => dataOf(api.POST("/api/v1/roles/{id}/explain", { params: { path: { id: role } }, body, signal })),
    // The result also depends on records of other objects, so no event reports all of its changes.
    refetchInterval: every(15_000),
  });

/** The question why a role allows something on the records of an object, and the server's answer. */
import { queryOptions } from "@tanstack/react-query";
import { api, dataOf } from "../../../api/client";
import { every } from "../../../api/poll";
import type { ExplainBody } from "../../../api/types";

/** The actions on records. */
export const EXPLAINED = ["read", "create", "update", "delete"] as const;

/** What the person has chosen, as the address has it. */
export interface ExplainChoice {
  user: string | undefined;
  object: string | undefined;
  action: (typeof EXPLAINED)[number] | undefined;
  record: string | undefined;
}

/** The request; undefined until an object is chosen. */
export function explainBody({ user, object, action = "read", record }: ExplainChoice): ExplainBody | undefined {
  return object === undefined ? undefined : { ...(user === undefined ? {} : { userId: user }), object, action, ...(record === undefined ? {} : { id: record }) };
}

export const explainQuery = (role: string, body: ExplainBody) =>
  queryOptions({
    queryKey: ["roles", role, "explain", body],
    queryFn: ({ signal }) => dataOf(api.POST("/api/v1/roles/{id}/explain", { params: { path: { id: role } }, body, signal })),
    // The answer depends on records of other objects too, so no event says that it has changed.
    refetchInterval: every(15_000),
  });

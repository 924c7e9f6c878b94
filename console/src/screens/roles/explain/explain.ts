/** The request that explains why a role allows something on the records of an object. */
import { queryOptions } from "@tanstack/react-query";
import { api, dataOf } from "../../../api/client";
import { every } from "../../../api/poll";
import type { Action, ExplainBody, ExplainedGrant } from "../../../api/types";
import { USERS } from "../../../api/users-object";

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

/** Why a grant does not reach a record, if the answer names no part that the record does not meet. */
export function reasonWithoutParts({ resource, broken }: Pick<ExplainedGrant, "resource" | "broken">, action: Action): string {
  if (broken === true) return ", because the grant is broken.";
  // An earlier version of the server saved such grants.
  if (resource === USERS && action !== "read") return ", because conditions and fields of a grant on users work for reading only.";
  return ". Not met: a condition on records that you may not all read";
}

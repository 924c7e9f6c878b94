/** Who is signed in, what the instance is, and what this person may do. */
import { type QueryClient, queryOptions, useQuery } from "@tanstack/react-query";
import { api, dataOf, ok } from "./client";
import { limitsFields } from "./field-lists";
import type { Action, Grant, Me, Permissions } from "./types";
import { USERS } from "./users-object";
import { useViewAs } from "./view-as";

export const meQuery = queryOptions({
  queryKey: ["me"],
  queryFn: ({ signal }) => ok(api.GET("/api/v1/me", { signal })),
  staleTime: 60_000,
});

export const instanceQuery = queryOptions({
  queryKey: ["instance"],
  queryFn: ({ signal }) => ok(api.GET("/api/v1/instance", { signal })),
  staleTime: 60_000,
});

export const permissionsQuery = queryOptions({
  queryKey: ["me", "permissions"],
  queryFn: ({ signal }) => dataOf(api.GET("/api/v1/me/permissions", { signal })),
  staleTime: 60_000,
});

const isLimited = ({ where, check, fields }: Grant): boolean => [where, check, fields].some((limit) => (limit ?? null) !== null);

/** Whether `permissions` allow `action` on `resource`; `rows: "all"` asks for every row instead of some, with all fields, and without a condition on what it becomes. */
export function allows(permissions: Permissions | undefined, resource: string, action: Action, rows: "all" | "some" = "some"): boolean {
  // The screens of accounts need whole users. A grant with conditions or fields shows users as records alone.
  const isForScreens = (grant: Grant) => resource !== USERS || !isLimited(grant);
  return allowsRecords(permissions && { ...permissions, permissions: permissions.permissions.filter(isForScreens) }, resource, action, rows);
}

/** The same for the records of an object. */
export function allowsRecords(permissions: Permissions | undefined, resource: string, action: Action, rows: "all" | "some" = "some"): boolean {
  if (permissions === undefined) return false;
  if (!permissions.enforced) return true;
  return permissions.permissions.some(
    (grant) =>
      (grant.resource === resource || grant.resource === "*") &&
      (grant.actions.includes("manage") || grant.actions.includes(action)) &&
      (rows === "some" || (grant.rowPolicy !== "own" && (grant.where ?? null) === null && (grant.check ?? null) === null && !limitsFields(grant, action))),
  );
}

export function usePermissions(): Permissions | undefined {
  return useQuery(permissionsQuery).data;
}

/** Whether the person may do `action` on `resource` (an object's name, `objects`, `events`, `webhooks`, `blocks`, `tasks`, `users`, `roles`, `api_keys`, `settings`). Nothing is changed while they view as a role. */
export function useCan(resource: string, action: Action, rows: "all" | "some" = "some"): boolean {
  const isViewing = useViewAs() !== null;
  return allows(usePermissions(), resource, action, rows) && (action === "read" || !isViewing);
}

/** The same for the records of an object. Users are accounts: as records they are only read. */
export function useCanRecords(object: string, action: Action, rows: "all" | "some" = "some"): boolean {
  const isViewing = useViewAs() !== null;
  return allowsRecords(usePermissions(), object, action, rows) && (action === "read" || (object !== USERS && !isViewing));
}

/** Removes what another person saw. Who is there, and what the instance is, stays known to the page. */
export function forgetAll(cache: QueryClient): void {
  cache.removeQueries({ predicate: ({ queryKey }) => queryKey[0] !== "instance" && !(queryKey[0] === "me" && queryKey.length === 1) });
}

export function useMe(): Me | undefined {
  return useQuery(meQuery).data;
}

/** The person who is signed in, their permissions, and the public facts about the instance. */
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

/**
 * Whether `permissions` allow `action` on `resource`. `rows: "all"` requires a grant for every row and all fields, without conditions. By
 * default, a grant for some rows is enough.
 */
export function allows(permissions: Permissions | undefined, resource: string, action: Action, rows: "all" | "some" = "some"): boolean {
  // The screens of accounts need all members of a user. A grant with conditions or fields only shows users as records.
  const isForScreens = (grant: Grant) => resource !== USERS || !isLimited(grant);
  return allowsRecords(permissions && { ...permissions, permissions: permissions.permissions.filter(isForScreens) }, resource, action, rows);
}

/** The same as `allows`, for the records of an object. A broken grant gives nothing. */
export function allowsRecords(permissions: Permissions | undefined, resource: string, action: Action, rows: "all" | "some" = "some"): boolean {
  if (permissions === undefined) return false;
  if (!permissions.enforced) return true;
  return permissions.permissions.some(
    (grant) =>
      grant.broken !== true &&
      (grant.resource === resource || grant.resource === "*") &&
      (grant.actions.includes("manage") || grant.actions.includes(action)) &&
      (rows === "some" || (grant.rowPolicy !== "own" && (grant.where ?? null) === null && (grant.check ?? null) === null && !limitsFields(grant, action))),
  );
}

export function usePermissions(): Permissions | undefined {
  return useQuery(permissionsQuery).data;
}

/**
 * Whether the person may do `action` on `resource` (an object's name, `objects`, `events`, `webhooks`, `blocks`, `tasks`, `users`, `roles`,
 * `api_keys`, `settings`). While the person views the console as a role, every change is false.
 */
export function useCan(resource: string, action: Action, rows: "all" | "some" = "some"): boolean {
  const isViewing = useViewAs() !== null;
  return allows(usePermissions(), resource, action, rows) && (action === "read" || !isViewing);
}

/** The same as `useCan`, for the records of an object. Users are accounts, so as records they can only be read. */
export function useCanRecords(object: string, action: Action, rows: "all" | "some" = "some"): boolean {
  const isViewing = useViewAs() !== null;
  return allowsRecords(usePermissions(), object, action, rows) && (action === "read" || (object !== USERS && !isViewing));
}

/** Removes the data that another person saw. The page keeps the facts about the person who is signed in and about the instance. */
export function forgetAll(cache: QueryClient): void {
  cache.removeQueries({ predicate: ({ queryKey }) => queryKey[0] !== "instance" && !(queryKey[0] === "me" && queryKey.length === 1) });
}

export function useMe(): Me | undefined {
  return useQuery(meQuery).data;
}

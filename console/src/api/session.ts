/** Who is signed in, what the instance is, and what this person may do. */
import { type QueryClient, queryOptions, useQuery } from "@tanstack/react-query";
import { request } from "./client";

export type Action = "create" | "read" | "update" | "delete" | "manage";

export interface Me {
  authenticated: boolean;
  userId?: string;
  roles?: string[];
  user?: { id: string; name: string; email: string; image: string | null; isAnonymous: boolean; createdAt: string; updatedAt: string };
  pendingClaim?: boolean;
}

export interface Instance {
  needsAdmin: boolean;
  setupToken: boolean;
  signUp: boolean;
  anonymous: boolean;
  methods: string[];
  providers: { id: string; name: string }[];
}

export interface Grant {
  resource: string;
  actions: Action[];
  rowPolicy?: "own" | null;
}

export interface Permissions {
  /** Whether the server enforces permissions at all. */
  enforced: boolean;
  permissions: Grant[];
}

export const meQuery = queryOptions({
  queryKey: ["me"],
  queryFn: ({ signal }) => request<Me>("GET", "/api/v1/me", { signal }),
  staleTime: 60_000,
});

export const instanceQuery = queryOptions({
  queryKey: ["instance"],
  queryFn: ({ signal }) => request<Instance>("GET", "/api/v1/instance", { signal }),
  staleTime: 60_000,
});

export const permissionsQuery = queryOptions({
  queryKey: ["me", "permissions"],
  queryFn: async ({ signal }) => (await request<{ data: Permissions }>("GET", "/api/v1/me/permissions", { signal })).data,
  staleTime: 60_000,
});

/** Whether `permissions` allow `action` on `resource`; `rows: "all"` asks for every row instead of some. */
export function allows(permissions: Permissions | undefined, resource: string, action: Action, rows: "all" | "some" = "some"): boolean {
  if (permissions === undefined) return false;
  if (!permissions.enforced) return true;
  return permissions.permissions.some(
    (grant) =>
      (grant.resource === resource || grant.resource === "*") &&
      (grant.actions.includes("manage") || grant.actions.includes(action)) &&
      (rows === "some" || grant.rowPolicy !== "own"),
  );
}

export function usePermissions(): Permissions | undefined {
  return useQuery(permissionsQuery).data;
}

/** Whether the person may do `action` on `resource` (an object's name, `objects`, `events`, `webhooks`, `blocks`, `tasks`, `users`, `roles`, `api_keys`, `settings`). */
export function useCan(resource: string, action: Action, rows: "all" | "some" = "some"): boolean {
  return allows(usePermissions(), resource, action, rows);
}

/** Removes what another person saw. Who is there, and what the instance is, stays known to the page. */
export function forgetAll(cache: QueryClient): void {
  cache.removeQueries({ predicate: ({ queryKey }) => queryKey[0] !== "instance" && !(queryKey[0] === "me" && queryKey.length === 1) });
}

export function useMe(): Me | undefined {
  return useQuery(meQuery).data;
}

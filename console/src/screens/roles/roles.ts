/** Roles and their grants. */
import { queryOptions } from "@tanstack/react-query";
import { api, dataOf } from "../../api/client";
import type { Action, EffectiveRights, Grant } from "../../api/types";

export const ACTIONS: readonly Action[] = ["read", "create", "update", "delete", "manage"];

/** Of the platform, beside the objects. */
export const PLATFORM: Record<string, string> = {
  "*": "everything, also what is made later",
  data: "the gate of GraphQL and MCP; grants no object by itself",
  objects: "definitions of objects, fields and relations",
  events: "events, deliveries, subscriptions",
  blocks: "installed blocks; update calls their actions",
  users: "accounts and their sessions",
  roles: "roles and their grants",
  api_keys: "API keys",
  webhooks: "webhooks",
  tasks: "scheduled tasks",
  settings: "configuration and status",
};

/** What a grant for all rows reaches, and one for own rows. */
export type RowWords = Record<NonNullable<Reach>, string>;

/** Of the platform, what has rows that belong to callers. No answer of the server says which, so a test of its list compares the two. */
export const OWN_ROWS: Record<string, RowWords> = {
  users: { all: "all accounts", own: "own account" },
  api_keys: { all: "all keys", own: "own keys" },
};

const RECORDS: RowWords = { all: "all rows", own: "own rows" };
const EVERYTHING: RowWords = { all: "yes", own: "own rows" };

/** How the rows of a resource are called; undefined where it has none, so that it is granted as a whole. What a block declares is named `<block>:<name>`. */
export function rowWords(resource: string): RowWords | undefined {
  if (resource === "*") return EVERYTHING;
  return resource in PLATFORM || resource.includes(":") ? OWN_ROWS[resource] : RECORDS;
}

/** A grant for own rows of what has none. */
export const WITHOUT_ROWS = "own, without rows";

export const roleQuery = (id: string) =>
  queryOptions({
    queryKey: ["roles", id],
    queryFn: ({ signal }) => dataOf(api.GET("/api/v1/roles/{id}", { params: { path: { id } }, signal })),
  });

export type Reach = EffectiveRights[Action];

export const effectiveQuery = (id: string) =>
  queryOptions({
    queryKey: ["roles", id, "effective"],
    queryFn: async ({ signal }) => (await dataOf(api.GET("/api/v1/roles/{id}/permissions", { params: { path: { id } }, signal }))).resources,
  });

export const reachOf = (grants: Grant[], resource: string, action: Action): Reach => {
  const of = grants.filter((grant) => grant.resource === resource && grant.actions.includes(action));
  return of.some(({ rowPolicy }) => rowPolicy !== "own") ? "all" : of.length > 0 ? "own" : null;
};

/** The grants with one cell of the grid changed; one grant a resource and row policy. */
export function withReach(grants: Grant[], resource: string, action: Action, reach: Reach): Grant[] {
  const others = grants.filter((grant) => grant.resource !== resource);
  const reaches = new Map<Action, Reach>(ACTIONS.map((each) => [each, each === action ? reach : reachOf(grants, resource, each)]));
  const of = (wanted: Reach) => ACTIONS.filter((each) => reaches.get(each) === wanted);
  const all: Grant[] = of("all").length > 0 ? [{ resource, actions: of("all") }] : [];
  const own: Grant[] = of("own").length > 0 ? [{ resource, actions: of("own"), rowPolicy: "own" }] : [];
  return [...others, ...all, ...own];
}

/** The same grants in one order and one grant a resource and row policy, so that equal ones compare equal. */
export function normal(grants: Grant[]): Grant[] {
  const resources = [...new Set(grants.map(({ resource }) => resource))].sort();
  return resources.flatMap((resource) => {
    const of = grants.filter((grant) => grant.resource === resource);
    return withReach(of, resource, "read", reachOf(of, resource, "read"));
  });
}

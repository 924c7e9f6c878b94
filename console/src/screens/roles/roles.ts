/** Roles and their grants. */
import { queryOptions } from "@tanstack/react-query";
import { api, dataOf } from "../../api/client";
import { isApiError } from "../../api/errors";
import { limits, limitsFields } from "../../api/field-lists";
import { sameJson } from "../../api/json";
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

/** The actions that something of the platform needs; others give nothing there. No answer of the server says which, so a test of its list compares the two. */
export const NEEDED: Record<string, readonly Action[]> = {
  data: ["read"],
  objects: ["create", "read", "update", "delete"],
  events: ["create", "read", "update", "delete"],
  blocks: ["create", "read", "update", "delete", "manage"],
  users: ["create", "read", "update", "delete"],
  roles: ["create", "read", "update", "delete"],
  api_keys: ["create", "read", "update", "delete"],
  webhooks: ["create", "read", "update", "delete"],
  tasks: ["create", "read", "update", "delete"],
  settings: ["read"],
};

/** Whether an action gives something on a resource. `manage` stands for several others. */
export function givesSomething(resource: string, action: Action): boolean {
  const needed = NEEDED[resource];
  return needed === undefined || needed.includes(action) || (action === "manage" && needed.length > 1);
}

/** What a grant for all rows reaches, and one for own rows. */
export type RowWords = Record<NonNullable<PlainReach>, string>;

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

/** What a grant with conditions or lists of fields gives of an action; "all" where it limits another action only. */
export type SomeReach = "all" | "some rows" | "some fields" | "some rows and fields";

export const roleQuery = (id: string) =>
  queryOptions({
    queryKey: ["roles", id],
    queryFn: ({ signal }) => dataOf(api.GET("/api/v1/roles/{id}", { params: { path: { id } }, signal })),
  });

export type Reach = EffectiveRights[Action];
/** What a cell of the grid can be set to. Conditions and fields are edited below the grid. */
export type PlainReach = Exclude<Reach, "condition">;

export const effectiveQuery = (id: string) =>
  queryOptions({
    queryKey: ["roles", id, "effective"],
    queryFn: async ({ signal }) => (await dataOf(api.GET("/api/v1/roles/{id}/permissions", { params: { path: { id } }, signal }))).resources,
  });

/** Whether a grant has conditions or lists of fields. The grid neither changes such a grant nor joins it with others. */
export const isLimited = ({ where, check, fields }: Grant): boolean => (where ?? null) !== null || (check ?? null) !== null || limits(fields) !== undefined;

/** How far the grants that are not limited reach. */
export const reachOf = (grants: Grant[], resource: string, action: Action): PlainReach => {
  const of = grants.filter((grant) => !isLimited(grant) && grant.resource === resource && grant.actions.includes(action));
  return of.some(({ rowPolicy }) => rowPolicy !== "own") ? "all" : of.length > 0 ? "own" : null;
};

/** What the limited grants together give of the action; null where they give nothing. A broken one gives nothing. */
export function someReachOf(grants: Grant[], resource: string, action: Action): SomeReach | null {
  const of = grants.filter((grant) => isLimited(grant) && grant.broken !== true && grant.resource === resource && (grant.actions.includes(action) || grant.actions.includes("manage")));
  const limited = of.map((grant) => ({ rows: grant.rowPolicy === "own" || (grant.where ?? null) !== null || (grant.check ?? null) !== null, fields: limitsFields(grant, action) }));
  if (limited.length === 0) return null;
  if (limited.some(({ rows, fields }) => !rows && !fields)) return "all";
  const [rows, fields] = [limited.some((each) => each.rows), limited.some((each) => each.fields)];
  return rows && fields ? "some rows and fields" : rows ? "some rows" : "some fields";
}

/** The grants with one cell of the grid changed: one grant a resource and row policy, and the limited ones as they are. */
export function withReach(grants: Grant[], resource: string, action: Action, reach: PlainReach): Grant[] {
  const others = grants.filter((grant) => grant.resource !== resource || isLimited(grant));
  const reaches = new Map<Action, PlainReach>(ACTIONS.map((each) => [each, each === action ? reach : reachOf(grants, resource, each)]));
  const of = (wanted: PlainReach) => ACTIONS.filter((each) => reaches.get(each) === wanted);
  const all: Grant[] = of("all").length > 0 ? [{ resource, actions: of("all") }] : [];
  const own: Grant[] = of("own").length > 0 ? [{ resource, actions: of("own"), rowPolicy: "own" }] : [];
  return [...others, ...all, ...own];
}

/** A limited grant as it is sent: `broken` is only in answers. */
export function sent({ resource, actions, rowPolicy, where, check, fields }: Grant): Grant {
  const lists = limits(fields);
  return {
    resource,
    actions,
    ...(rowPolicy === "own" ? { rowPolicy } : {}),
    ...((where ?? null) === null ? {} : { where }),
    ...((check ?? null) === null ? {} : { check }),
    ...(lists === undefined ? {} : { fields: lists }),
  };
}

/** The same grants in one order, so that equal ones compare equal: for each resource one grant a row policy, then the limited ones. */
export function normal(grants: Grant[]): Grant[] {
  const resources = [...new Set(grants.map(({ resource }) => resource))].sort();
  return resources.flatMap((resource) => {
    const of = grants.filter((grant) => grant.resource === resource);
    const plain = of.filter((grant) => !isLimited(grant));
    return [...withReach(plain, resource, "read", reachOf(plain, resource, "read")), ...of.filter(isLimited).map(sent)];
  });
}

/** What the server refuses in a condition or in the fields of a grant. */
export interface Refusal {
  /** As it was sent. */
  grant: Grant;
  clause: "where" | "check" | "fields";
  message: string;
}

/** The part of a grant that a refusal of these grants is about; undefined where it is about something else. */
export function refusalOf(error: unknown, given: Grant[]): Refusal | undefined {
  return isApiError(error) && error.field === "permissions" ? refusedAt(error.message, given) : undefined;
}

/** The part of a grant that the server's sentence names by its place. */
export function refusedAt(sentence: string, given: Grant[]): Refusal | undefined {
  const place = /^`permissions` at index (\d+), `(where|check|fields)(?:\.(?:read|write))?`: /.exec(sentence);
  const grant = place === null ? undefined : given[Number(place[1])];
  return place === null || grant === undefined ? undefined : { grant, clause: place[2] as Refusal["clause"], message: sentence.slice(place[0].length) };
}

/** What is refused in this grant, as long as nobody has changed it. */
export const refusalIn = (grant: Grant, refusal: Refusal | undefined): Refusal | undefined => (refusal !== undefined && sameJson(sent(grant), refusal.grant) ? refusal : undefined);

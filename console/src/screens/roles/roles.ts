/** Roles and their grants. */
import { queryOptions } from "@tanstack/react-query";
import { api, dataOf } from "../../api/client";
import { isApiError } from "../../api/errors";
import { limits, limitsFields } from "../../api/field-lists";
import { sameJson } from "../../api/json";
import type { Action, EffectiveRights, Grant } from "../../api/types";
import { USERS } from "../../api/users-object";

export const ACTIONS: readonly Action[] = ["read", "create", "update", "delete", "manage"];

/** The resources of the platform, which are not objects. */
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

/**
 * The actions that have an effect on each resource of the platform. The API does not report them, so a test compares this list with the
 * server's list.
 */
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

/** Whether an action has an effect on a resource. `manage` includes several other actions. */
export function givesSomething(resource: string, action: Action): boolean {
  const needed = NEEDED[resource];
  return needed === undefined || needed.includes(action) || (action === "manage" && needed.length > 1);
}

/** The words for all rows and for own rows. */
export type RowWords = Record<NonNullable<PlainReach>, string>;

/**
 * The resources of the platform that have rows of callers. The API does not report them, so a test compares this list with the server's
 * list.
 */
export const OWN_ROWS: Record<string, RowWords> = {
  users: { all: "all accounts", own: "own account" },
  api_keys: { all: "all keys", own: "own keys" },
};

const RECORDS: RowWords = { all: "all rows", own: "own rows" };
const EVERYTHING: RowWords = { all: "yes", own: "own rows" };

/**
 * The words for the rows of a resource. Undefined if it has no rows and can only be granted as a whole. A resource of a block has the name
 * `<block>:<name>`.
 */
export function rowWords(resource: string): RowWords | undefined {
  if (resource === "*") return EVERYTHING;
  return resource in PLATFORM || resource.includes(":") ? OWN_ROWS[resource] : RECORDS;
}

/** The words for a grant on own rows of a resource without rows. */
export const WITHOUT_ROWS = "own, without rows";

/** The part of an action that a grant with conditions or lists of fields gives. It is "all" if the grant only limits other actions. */
export type SomeReach = "all" | "some rows" | "some fields" | "some rows and fields";

export const roleQuery = (id: string) =>
  queryOptions({
    queryKey: ["roles", id],
    queryFn: ({ signal }) => dataOf(api.GET("/api/v1/roles/{id}", { params: { path: { id } }, signal })),
  });

export type Reach = EffectiveRights[Action];
/** The values that a cell of the grid can have. Conditions and fields are edited below the grid. */
export type PlainReach = Exclude<Reach, "condition">;

export const effectiveQuery = (id: string) =>
  queryOptions({
    queryKey: ["roles", id, "effective"],
    queryFn: async ({ signal }) => (await dataOf(api.GET("/api/v1/roles/{id}/permissions", { params: { path: { id } }, signal }))).resources,
  });

/** Whether a grant has conditions or lists of fields. The grid does not change such a grant, and does not merge it with others. */
export const isLimited = ({ where, check, fields }: Grant): boolean => (where ?? null) !== null || (check ?? null) !== null || limits(fields) !== undefined;

/**
 * The actions of a limited grant that the server saves. On `users`, it refuses every action except `read` if a condition, or a list of
 * fields that matters to the action, limits it. Roles of an earlier version can have such grants.
 */
export const savedActions = (grant: Grant): Action[] =>
  grant.actions.filter((action) => action === "read" || grant.resource !== USERS || !((grant.where ?? null) !== null || (grant.check ?? null) !== null || limitsFields(grant, action)));

/** The rows for which the grants without conditions and lists of fields give an action: all, own, or none. */
export const reachOf = (grants: Grant[], resource: string, action: Action): PlainReach => {
  const of = grants.filter((grant) => !isLimited(grant) && grant.resource === resource && grant.actions.includes(action));
  return of.some(({ rowPolicy }) => rowPolicy !== "own") ? "all" : of.length > 0 ? "own" : null;
};

/** The part of the action that the limited grants give together. Null if they give nothing. A broken grant does not count, because it gives less than it says. */
export function someReachOf(grants: Grant[], resource: string, action: Action): SomeReach | null {
  const of = grants.filter((grant) => isLimited(grant) && grant.broken !== true && grant.resource === resource && (grant.actions.includes(action) || grant.actions.includes("manage")));
  const limited = of.map((grant) => ({ rows: grant.rowPolicy === "own" || (grant.where ?? null) !== null || (grant.check ?? null) !== null, fields: limitsFields(grant, action) }));
  if (limited.length === 0) return null;
  if (limited.some(({ rows, fields }) => !rows && !fields)) return "all";
  const [rows, fields] = [limited.some((each) => each.rows), limited.some((each) => each.fields)];
  return rows && fields ? "some rows and fields" : rows ? "some rows" : "some fields";
}

/** The grants after a change of one cell. There is one grant for each resource and row policy. The limited grants stay unchanged. */
export function withReach(grants: Grant[], resource: string, action: Action, reach: PlainReach): Grant[] {
  const others = grants.filter((grant) => grant.resource !== resource || isLimited(grant));
  const reaches = new Map<Action, PlainReach>(ACTIONS.map((each) => [each, each === action ? reach : reachOf(grants, resource, each)]));
  const of = (wanted: PlainReach) => ACTIONS.filter((each) => reaches.get(each) === wanted);
  const all: Grant[] = of("all").length > 0 ? [{ resource, actions: of("all") }] : [];
  const own: Grant[] = of("own").length > 0 ? [{ resource, actions: of("own"), rowPolicy: "own" }] : [];
  return [...others, ...all, ...own];
}

/** A limited grant for a request. `broken` only occurs in responses. */
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

/**
 * The same grants in a fixed order, so that equal sets of grants can be compared. Each resource has one grant for each row policy, and then
 * the limited ones.
 */
export function normal(grants: Grant[]): Grant[] {
  const resources = [...new Set(grants.map(({ resource }) => resource))].sort();
  return resources.flatMap((resource) => {
    const of = grants.filter((grant) => grant.resource === resource);
    const plain = of.filter((grant) => !isLimited(grant));
    return [...withReach(plain, resource, "read", reachOf(plain, resource, "read")), ...of.filter(isLimited).map(sent)];
  });
}

/** An error of the server in a condition or in the fields of a grant. */
export interface Refusal {
  /** The grant as it was sent. */
  grant: Grant;
  clause: "where" | "check" | "fields";
  message: string;
}

/** The part of these grants that the server's error is about. Undefined if the error is about something else. */
export function refusalOf(error: unknown, given: Grant[]): Refusal | undefined {
  return isApiError(error) && error.field === "permissions" ? refusedAt(error.message, given) : undefined;
}

/** Finds the part of a grant from the index in the server's message. */
export function refusedAt(sentence: string, given: Grant[]): Refusal | undefined {
  const place = /^`permissions` at index (\d+), `(where|check|fields)(?:\.(?:read|write))?`: /.exec(sentence);
  const grant = place === null ? undefined : given[Number(place[1])];
  return place === null || grant === undefined ? undefined : { grant, clause: place[2] as Refusal["clause"], message: sentence.slice(place[0].length) };
}

/** The error in this grant, as long as nobody has changed the grant. */
export const refusalIn = (grant: Grant, refusal: Refusal | undefined): Refusal | undefined => (refusal !== undefined && sameJson(sent(grant), refusal.grant) ? refusal : undefined);

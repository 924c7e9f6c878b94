/** Queries for installed blocks, and their permissions in words. */
import { queryOptions } from "@tanstack/react-query";
import { api, dataOf } from "../../api/client";
import { every } from "../../api/poll";
import type { BlockAction, DataPermission, NewPermissions } from "../../api/types";

export const blocksQuery = queryOptions({
  queryKey: ["blocks"],
  queryFn: ({ signal }) => dataOf(api.GET("/api/v1/blocks", { signal })),
});

export const blockQuery = (name: string) =>
  queryOptions({
    queryKey: ["blocks", name],
    queryFn: ({ signal }) => dataOf(api.GET("/api/v1/blocks/{block}", { params: { path: { block: name } }, signal })),
  });

export const usageQuery = (name: string) =>
  queryOptions({
    queryKey: ["blocks", name, "usage"],
    queryFn: ({ signal }) => dataOf(api.GET("/api/v1/blocks/{block}/usage", { params: { path: { block: name } }, signal })),
    refetchInterval: every(5_000),
  });

/** Whether an upgrade needs permissions that the installed version does not have. */
export const asksForMore = (added: NewPermissions | null): boolean => added !== null && Object.values(added).some((entries) => entries.length > 0);

/** Whether a permission of a block is limited by a condition or a list of fields, or is broken. */
export const isLimited = ({ where, check, fields, broken }: DataPermission): boolean => [where, check, fields].some((limit) => (limit ?? null) !== null) || broken === true;

/** A permission of a block as a sentence. */
export function inWords({ resource, actions, as, rowPolicy }: DataPermission): string {
  const what = resource === "*" ? "any object" : `the object ${resource}`;
  const whose = as === "caller" ? ", only as far as whoever calls it may" : ", with your rights";
  return `${actions.map((action) => (action === "manage" ? "do everything with" : action)).join(", ")} records of ${what}${rowPolicy === "own" ? ", in rows of whoever calls it" : ""}${whose}`;
}

/** The permission that a caller of an action needs. */
export const neededFor = ({ rbac }: BlockAction) => rbac ?? { action: "update", resource: "blocks" };

/** The lists of fields in grants: what they hold, and which fields of an object somebody may use by them. */
import type { Action, FieldList, Grant, GrantFields, Permissions } from "./types";

export type Side = "read" | "write";

/** The sides that matter to an action. Deleting a record neither reads nor writes its fields. */
const SIDES: Record<Action, readonly Side[]> = { read: ["read"], create: ["write"], update: ["write"], delete: [], manage: ["read", "write"] };

/** The sides that matter to any of these actions. */
export const sidesOf = (actions: readonly Action[]): Side[] => (["read", "write"] as const).filter((side) => actions.some((action) => SIDES[action].includes(side)));

/** Whether a list leaves out no field. */
const isWhole = (list: FieldList | null | undefined): boolean => list === null || list === undefined || (!Array.isArray(list) && list.except.length === 0);

export function holds(list: FieldList | null | undefined, name: string): boolean {
  if (list === null || list === undefined) return true;
  return Array.isArray(list) ? list.includes(name) : !list.except.includes(name);
}

/** Whether the grant gives this action on some fields only. With `manage`, either side counts. */
export const limitsFields = ({ fields }: Grant, action: Action): boolean => SIDES[action].some((side) => !isWhole(fields?.[side]));

/** As they are sent. */
export interface FieldLists {
  read?: FieldList;
  write?: FieldList;
}

/** The lists that leave out a field; undefined where there are none. */
export function limits(fields: GrantFields | null | undefined): FieldLists | undefined {
  const kept = (side: Side) => (isWhole(fields?.[side]) ? {} : { [side]: fields![side]! });
  const both = { ...kept("read"), ...kept("write") };
  return Object.keys(both).length === 0 ? undefined : both;
}

export type FieldUse = "read" | "create" | "update";

/**
 * Whether grants list a field of this object for an action; undefined where no grant on it has lists, so that every field counts. An
 * action that no grant gives is not judged here.
 */
export function fieldRights(permissions: Permissions, object: string): ((use: FieldUse, name: string) => boolean) | undefined {
  if (!permissions.enforced) return undefined;
  const grants = permissions.permissions.filter(({ resource, broken }) => broken !== true && (resource === object || resource === "*"));
  if (!grants.some(({ fields }) => limits(fields) !== undefined)) return undefined;
  return (use, name) => {
    if (name === "id") return use === "read";
    const giving = grants.filter(({ actions }) => actions.includes(use) || actions.includes("manage"));
    return giving.length === 0 || giving.some(({ fields }) => holds(fields?.[use === "read" ? "read" : "write"], name));
  };
}

/** The lists of fields in grants: whether a list includes a field, and which fields of an object a person may use. */
import type { Action, FieldList, Grant, GrantFields, Permissions } from "./types";

export type Side = "read" | "write";

/** The lists that each action needs. A deletion neither reads nor writes the fields of the record. */
const SIDES: Record<Action, readonly Side[]> = { read: ["read"], create: ["write"], update: ["write"], delete: [], manage: ["read", "write"] };

/** The lists that at least one of these actions needs. */
export const sidesOf = (actions: readonly Action[]): Side[] => (["read", "write"] as const).filter((side) => actions.some((action) => SIDES[action].includes(side)));

/** Whether a list includes all fields. */
const isWhole = (list: FieldList | null | undefined): boolean => list === null || list === undefined || (!Array.isArray(list) && list.except.length === 0);

export function holds(list: FieldList | null | undefined, name: string): boolean {
  if (list === null || list === undefined) return true;
  return Array.isArray(list) ? list.includes(name) : !list.except.includes(name);
}

/** Whether the grant gives this action on some fields only. For `manage`, one limited list is enough. */
export const limitsFields = ({ fields }: Grant, action: Action): boolean => SIDES[action].some((side) => !isWhole(fields?.[side]));

/** The lists in a request body. */
export interface FieldLists {
  read?: FieldList;
  write?: FieldList;
}

/** Only the lists that leave out a field. Undefined if there are none. */
export function limits(fields: GrantFields | null | undefined): FieldLists | undefined {
  const kept = (side: Side) => (isWhole(fields?.[side]) ? {} : { [side]: fields![side]! });
  const both = { ...kept("read"), ...kept("write") };
  return Object.keys(both).length === 0 ? undefined : both;
}

export type FieldUse = "read" | "create" | "update";

/**
 * Returns a function that says whether the grants allow a use of a field of this object. Undefined if no grant on the object has lists,
 * because then all fields are allowed. If no grant gives the action itself, the function does not report that.
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

/** Whether a filter can be sent: each part is complete, and the filter is within the server's limits. */
import { type JsonObject, type JsonValue, isJsonObject } from "../../../api/json";
import type { RecordShape } from "../columns";
import { isWhole } from "./conditions";
import { type Part, type ShapeOf, columnOf, groupOf, printParts, shapeAt } from "./tree";

export function isComplete(part: Part, shape: RecordShape | undefined, of: ShapeOf): boolean {
  switch (part.kind) {
    case "raw":
      return true;
    case "test": {
      const column = columnOf(part, shape, of);
      return column !== undefined && (part.variable !== undefined || isWhole(part, column));
    }
    case "group":
      return part.parts.length > 0 && part.parts.every((each) => isComplete(each, shape, of));
    case "related": {
      const target = shapeAt(part.path, shape, of);
      // Without conditions, the part only tests whether related records exist. "All" without conditions would always be true, so it is not
      // allowed.
      if (part.inner.parts.length === 0) return target !== undefined && part.quantifier !== "every";
      return target !== undefined && part.inner.parts.every((each) => isComplete(each, target, of));
    }
  }
}

/** Leaves out rows without a field, and groups without parts. */
export function pruned(parts: Part[]): Part[] {
  return parts.flatMap((part): Part[] => {
    if (part.kind === "test") return part.field === "" ? [] : [part];
    if (part.kind === "raw") return [part];
    const inner = pruned(part.kind === "related" ? part.inner.parts : part.parts);
    // An empty OR, or NOT of an empty condition, would match no record.
    if (part.kind === "related") return [{ ...part, inner: inner.length === 0 ? groupOf([]) : { ...part.inner, parts: inner } }];
    return inner.length === 0 ? [] : [{ ...part, parts: inner }];
  });
}

// ---- the server's limits

export interface Bounds {
  leaves: number;
  /** The number of relation keys in the condition. */
  steps: number;
}
export const OF_REQUEST: Bounds = { leaves: 100, steps: 10 };
/** The limits for the condition of a grant. They are lower, because the server applies it to every request. */
export const OF_GRANT: Bounds = { leaves: 30, steps: 2 };
/** The maximum nesting of JSON objects, with the outermost one. */
export const LEVELS_MAX = 8;
/** The maximum nesting of relations. */
export const DEPTH_MAX = 3;
/** The maximum number of conditions in one `_and` or `_or`. */
export const PARTS_MAX = 100;

export interface Size {
  leaves: number;
  levels: number;
  steps: number;
  depth: number;
  /** The number of conditions in the longest `_and` or `_or`. */
  parts: number;
}

/** The size of a condition, counted in the same way as on the server. */
export function sizeOf(json: JsonObject, shape: RecordShape | undefined, of: ShapeOf): Size {
  const size: Size = { leaves: 0, levels: 0, steps: 0, depth: 0, parts: 0 };
  const object = (value: JsonValue, at: RecordShape | undefined, level: number, depth: number) => {
    size.levels = Math.max(size.levels, level);
    for (const [key, inner] of Object.entries(isJsonObject(value) ? value : {})) {
      if (Array.isArray(inner) && (key === "_and" || key === "_or")) {
        size.parts = Math.max(size.parts, inner.length);
        for (const each of inner) object(each, at, level + 1, depth);
      } else if (key === "_not") object(inner, at, level + 1, depth);
      else named(key.split("."), inner, at, level, depth);
    }
  };
  const named = ([first = "", ...rest]: string[], value: JsonValue, at: RecordShape | undefined, level: number, depth: number) => {
    const relation = at?.byId.has(first) === true ? undefined : at?.relations.get(first);
    if (relation === undefined) {
      size.leaves += isJsonObject(value) ? Object.keys(value).length : 1;
      if (isJsonObject(value)) size.levels = Math.max(size.levels, level + 1);
      return;
    }
    size.steps += 1;
    size.depth = Math.max(size.depth, depth + 1);
    size.levels = Math.max(size.levels, level + 1);
    const target = of(relation.target);
    if (rest.length > 0) named(rest, value, target, level + 1, depth + 1);
    else if (relation.isMany) for (const inner of Object.values(isJsonObject(value) ? value : {})) object(inner, target, level + 2, depth + 1);
    else object(value, target, level + 1, depth + 1);
  };
  object(json, shape, 1, 0);
  return size;
}

/** Whether the printed condition of these parts is within the server's limits. Rows that are not complete count, too. */
export function fits(parts: Part[], shape: RecordShape, of: ShapeOf, bounds = OF_REQUEST): boolean {
  const { leaves, levels, steps, depth, parts: longest } = sizeOf(printParts(parts, shape, of), shape, of);
  return leaves <= bounds.leaves && levels <= LEVELS_MAX && steps <= bounds.steps && depth <= DEPTH_MAX && longest <= PARTS_MAX;
}

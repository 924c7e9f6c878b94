/** The filter that finds the records of a group. This file does not use React. */
import type { GroupRow } from "../../../api/record-paths";
import { type JsonObject, type JsonValue, isLosslessNumber } from "../../../api/json";
import { isTextType } from "../../../api/field-rules";
import type { RecordShape } from "../columns";
import type { Condition } from "../filters/conditions";
import { type Filter, type ShapeOf, type Test, filterOf, fitsAddress, partsOf, testOf } from "../filters/tree";
import { beginOf, borderAfter, boundOf } from "./periods";
import type { GroupField } from "./request";

/**
 * The conditions of the records that have this value in the field. Undefined if no condition finds exactly them. `begins` are those of all
 * periods that the server has sent.
 */
function conditionsOfGroup({ column, period, clock, name }: GroupField, value: JsonValue | undefined, begins: number[]): Condition[] | undefined {
  if (column === undefined || value === undefined) return undefined;
  if (value === null) return [{ field: name, operator: "is_null", value: null }];
  if (typeof value === "object" && !isLosslessNumber(value)) return undefined;
  if (period === undefined) {
    // No other type has an empty text.
    if (value === "" && !isTextType(column.type)) return undefined;
    return [{ field: name, operator: "eq", value: String(value) }];
  }
  const begin = beginOf(value);
  if (begin === undefined) return undefined;
  const [from, to] = [boundOf(begin, column), boundOf(borderAfter(begin, period, clock, begins), column)];
  return [
    ...(from === undefined ? [] : [{ field: name, operator: "gte", value: from } as const]),
    ...(to === undefined ? [] : [{ field: name, operator: "lt", value: to } as const]),
  ];
}

/** The filter of the view, narrowed to the records of one of the groups. Undefined if no filter of an address finds exactly them. */
export function narrowed(fields: GroupField[], group: JsonObject, groups: GroupRow[], filter: Filter, shape: RecordShape, of: ShapeOf): Filter | undefined {
  const tests: Test[] = [];
  for (const field of fields) {
    const begins = groups.map((each) => beginOf(each.group[field.key])).filter((begin) => begin !== undefined);
    const conditions = conditionsOfGroup(field, group[field.key], begins);
    if (conditions === undefined) return undefined;
    tests.push(...conditions.map(testOf));
  }
  const parts = partsOf(filter, shape, of);
  // The server refuses the filter, so there are no groups either.
  if (parts === undefined) return undefined;
  const wanted = filterOf([...parts, ...tests], shape, of);
  return fitsAddress(wanted) ? wanted : undefined;
}

/** The list that the screen shows as a request of each surface. */
import { type JsonValue, isJsonObject, readNumber } from "../../api/json";
import type { CopyAsProps } from "../../components/CopyAs";
import { type Condition, takesNothing } from "./filters/conditions";
import { type ShapeOf, parseWhere, printParts, readWhere } from "./filters/tree";
import type { RecordColumn, RecordShape } from "./columns";
import { type ListView, listParameters, queryText, sendable, takesWhere } from "./list-query";

const NUMBERS = /^(integer|big_integer|decimal|float|percentage|currency|rating)$/;

/** A value as JSON: numbers and truth values by themselves, all else as text. */
function typed(text: string, column: RecordColumn | undefined): JsonValue {
  if (column?.type === "boolean") return text === "true";
  if (column !== undefined && NUMBERS.test(column.type)) return readNumber(text) ?? text;
  return text;
}

function valueOf({ operator, value }: Condition, column: RecordColumn | undefined): JsonValue | undefined {
  if (takesNothing(operator)) return undefined;
  return Array.isArray(value) ? value.map((each) => typed(each, column)) : typed(value ?? "", column);
}

/** As GraphQL writes a value: keys without quotes. */
function literal(value: JsonValue): string {
  if (isJsonObject(value)) return `{ ${Object.entries(value).map(([key, inner]) => `${key}: ${literal(inner)}`).join(", ")} }`;
  return Array.isArray(value) ? `[${value.map(literal).join(", ")}]` : typeof value === "string" ? JSON.stringify(value) : String(value);
}

function isWritable(value: JsonValue): boolean {
  if (Array.isArray(value)) return value.every(isWritable);
  return !isJsonObject(value) || Object.entries(value).every(([key, inner]) => /^[A-Za-z_]\w*$/.test(key) && isWritable(inner));
}

export function copiesOf(shape: RecordShape, of: ShapeOf, view: ListView, columns: RecordColumn[], page: number, size: number): CopyAsProps {
  const conditions = sendable(view.conditions, shape).map((condition) => ({ condition, value: valueOf(condition, shape.byId.get(condition.field)) }));
  const filters = conditions.map(({ condition: { field, operator }, value }) => ({ field, operator, ...(value === undefined ? {} : { value }) }));
  // A text that is no condition is in the request alone, whose answer says what is wrong with it.
  const where = view.where === "" || !takesWhere(shape) ? undefined : parseWhere(view.where);
  const explicit = where === undefined ? undefined : printParts(readWhere(where, shape, of), shape, of, { isExplicit: true });
  const sort = view.sort.filter(({ id }) => shape.byId.has(id));
  const parts = [
    ...(view.search === "" ? [] : [`search: ${JSON.stringify(view.search)}`]),
    ...(filters.length === 0 ? [] : [`filter: [${filters.map(({ field, operator, value }) => `{ field: ${JSON.stringify(field)}, operator: ${operator}${value === undefined ? "" : `, value: ${literal(value)}`} }`).join(", ")}]`]),
    ...(explicit === undefined ? [] : [`where: ${literal(explicit)}`]),
    ...(sort.length === 0 ? [] : [`sort: [${sort.map(({ id, descending }) => `{ field: ${JSON.stringify(id)}, direction: ${descending ? "desc" : "asc"} }`).join(", ")}]`]),
    ...(page > 1 ? [`page: ${page}`] : []),
    `pageSize: ${size}`,
  ];
  const query = queryText([...listParameters(view, shape), ...(page > 1 ? [["page", String(page)] as [string, string]] : []), ["pageSize", String(size)]]);
  return {
    request: { method: "GET", path: `/api/v1/data/${shape.name}?${query}` },
    // What the builder has no fields for may have names that GraphQL cannot write.
    graphql: explicit !== undefined && !isWritable(explicit) ? undefined : { query: `{\n  ${shape.name}(${parts.join(", ")}) {\n    data { ${columns.map(({ id }) => id).join(" ")} }\n    pagination { totalCount hasNextPage }\n  }\n}` },
    mcp: {
      tool: "query_data",
      arguments: {
        object_name: shape.name,
        ...(view.search === "" ? {} : { search: view.search }),
        ...(filters.length === 0 ? {} : { filters }),
        ...(where === undefined ? {} : { where }),
        ...(sort.length === 0 ? {} : { sort: sort.map(({ id, descending }) => (descending ? `-${id}` : id)).join(",") }),
        ...(page > 1 ? { page } : {}),
        page_size: size,
      },
    },
  };
}

/** The requests of each surface for the list on the screen. */
import { type JsonValue, isJsonObject, readNumber } from "../../api/json";
import type { CopyAsProps } from "../../components/CopyAs";
import { type Condition, takesNothing } from "./filters/conditions";
import { type ShapeOf, parseWhere, printParts, readWhere } from "./filters/tree";
import type { RecordColumn, RecordShape } from "./columns";
import { type ListView, listParameters, queryText, sendable, takesWhere } from "./list-query";

const NUMBERS = /^(integer|big_integer|decimal|float|percentage|currency|rating)$/;

/** Converts the text to JSON. Numbers and booleans keep their type. Everything else stays text. */
function typed(text: string, column: RecordColumn | undefined): JsonValue {
  if (column?.type === "boolean") return text === "true";
  if (column !== undefined && NUMBERS.test(column.type)) return readNumber(text) ?? text;
  return text;
}

function valueOf({ operator, value }: Condition, column: RecordColumn | undefined): JsonValue | undefined {
  if (takesNothing(operator)) return undefined;
  return Array.isArray(value) ? value.map((each) => typed(each, column)) : typed(value ?? "", column);
}

/** Prints a value in the syntax of GraphQL, where keys have no quotes. */
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
  // If the text is not a valid condition, only the REST request contains it. The response says what is wrong with it.
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
    // A part that the builder cannot show may have names that GraphQL cannot write.
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

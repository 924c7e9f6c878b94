/** The requests of each surface for the list on the screen. */
import { isNumberType } from "../../api/field-rules";
import { type JsonObject, type JsonValue, isJsonObject, isLosslessNumber, readNumber } from "../../api/json";
import { typeName } from "../../api/record-shape";
import type { CopyAsProps } from "../../components/CopyAs";
import { type Condition, takesNothing } from "./filters/conditions";
import { type ShapeOf, parseWhere, printParts, readWhere } from "./filters/tree";
import type { RecordColumn, RecordShape } from "./columns";
import { type ListView, type SortKey, bodyOf, listParameters, printSort, queryText, sendable } from "./list-query";

/** Converts the text to JSON. Numbers and booleans keep their type. Everything else stays text. */
function typed(text: string, column: RecordColumn | undefined): JsonValue {
  if (column?.type === "boolean") return text === "true";
  if (column !== undefined && isNumberType(column.type)) return readNumber(text) ?? text;
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

/** Whether a literal of GraphQL may lose digits of a number. Whole numbers that fit in 64 bits keep theirs, so all of 18 digits do. */
function losesDigits(value: JsonValue): boolean {
  if (isLosslessNumber(value)) return !/^-?\d{1,18}$/.test(value.value);
  if (Array.isArray(value)) return value.some(losesDigits);
  return isJsonObject(value) && Object.values(value).some(losesDigits);
}

/** A variable of a GraphQL document, with its type. */
interface Variable {
  name: string;
  type: string;
  value: JsonValue;
}

/** An argument of GraphQL. If a literal would lose digits, the argument is a variable. */
function argument(name: string, type: string, value: JsonValue, text: string): { part: string; variables: Variable[] } {
  return losesDigits(value) ? { part: `${name}: $${name}`, variables: [{ name, type, value }] } : { part: `${name}: ${text}`, variables: [] };
}

/** A document of GraphQL with its variables. */
function documentOf(variables: Variable[], selection: string) {
  const declared = variables.map(({ name, type }) => `$${name}: ${type}`).join(", ");
  return {
    query: `${declared === "" ? "" : `query(${declared}) `}${selection}`,
    ...(variables.length === 0 ? {} : { variables: Object.fromEntries(variables.map(({ name, value }) => [name, value])) }),
  };
}

function isWritable(value: JsonValue): boolean {
  if (Array.isArray(value)) return value.every(isWritable);
  return !isJsonObject(value) || Object.entries(value).every(([key, inner]) => /^[A-Za-z_]\w*$/.test(key) && isWritable(inner));
}

/** The part of a request that decides which records match. */
function filterCopies(shape: RecordShape, of: ShapeOf, view: ListView) {
  const conditions = sendable(view.conditions, shape).map((condition) => ({ condition, value: valueOf(condition, shape.byId.get(condition.field)) }));
  const filters = conditions.map(({ condition: { field, operator }, value }) => ({ field, operator, ...(value === undefined ? {} : { value }) }));
  // If the text is not a valid condition, only the REST request contains it. The response says what is wrong with it.
  const where = view.where === "" ? undefined : parseWhere(view.where);
  const explicit = where === undefined ? undefined : printParts(readWhere(where, shape, of), shape, of, { isExplicit: true });
  const filterText = filters.map(({ field, operator, value }) => `{ field: ${JSON.stringify(field)}, operator: ${operator}${value === undefined ? "" : `, value: ${literal(value)}`} }`);
  const given = [
    ...(filters.length === 0 ? [] : [argument("filter", "[FilterInput!]", filters, `[${filterText.join(", ")}]`)]),
    ...(explicit === undefined ? [] : [argument("where", `${typeName(shape.name)}_Where`, explicit, literal(explicit))]),
  ];
  return {
    /** The arguments of GraphQL. */
    parts: [...(view.search === "" ? [] : [`search: ${JSON.stringify(view.search)}`]), ...given.map(({ part }) => part)],
    variables: given.flatMap(({ variables }) => variables),
    /** Whether GraphQL can write it. A part that the builder cannot show may have other names. */
    hasGraphql: explicit === undefined || isWritable(explicit),
    /** The members of an MCP call. */
    members: { ...(view.search === "" ? {} : { search: view.search }), ...(filters.length === 0 ? {} : { filters }), ...(where === undefined ? {} : { where }) },
  };
}

const sortLiteral = (sort: SortKey[]) => (sort.length === 0 ? [] : [`sort: [${sort.map(({ id, descending }) => `{ field: ${JSON.stringify(id)}, direction: ${descending ? "desc" : "asc"} }`).join(", ")}]`]);
const pageParameter = (page: number): [string, string][] => (page > 1 ? [["page", String(page)]] : []);

export function copiesOf(shape: RecordShape, of: ShapeOf, view: ListView, columns: RecordColumn[], page: number, size: number): CopyAsProps {
  const { parts, variables, hasGraphql, members } = filterCopies(shape, of, view);
  const sort = view.sort.filter(({ id }) => shape.byId.has(id));
  const given = [...parts, ...sortLiteral(sort), ...(page > 1 ? [`page: ${page}`] : []), `pageSize: ${size}`];
  const path = `/api/v1/data/${shape.name}`;
  const parameters: [string, string][] = [...listParameters(view, shape), ...pageParameter(page), ["pageSize", String(size)]];
  const body = bodyOf(parameters, shape);
  return {
    request: body === undefined ? { method: "GET", path: `${path}?${queryText(parameters)}` } : { method: "POST", path: `${path}/query`, body },
    graphql: hasGraphql ? documentOf(variables, `{\n  ${shape.name}(${given.join(", ")}) {\n    data { ${columns.map(({ id }) => id).join(" ")} }\n    pagination { totalCount hasNextPage }\n  }\n}`) : undefined,
    mcp: {
      tool: "query_data",
      arguments: { object_name: shape.name, ...members, ...(sort.length === 0 ? {} : { sort: printSort(sort) }), ...(page > 1 ? { page } : {}), page_size: size },
    },
  };
}

/** The parts of a request for groups that each surface writes in its own way. */
export interface GroupsRequest {
  functions: string[];
  by: string[];
  having: JsonObject | undefined;
  zone: string | undefined;
  sort: SortKey[];
  /** The parameters of REST, without those of the page. */
  parameters: [string, string][];
}

export function copiesOfGroups(shape: RecordShape, of: ShapeOf, view: ListView, { functions, by, having, zone, sort, parameters }: GroupsRequest, page: number, size: number): CopyAsProps {
  const { parts, variables, hasGraphql, members } = filterCopies(shape, of, view);
  const given = [
    `functions: ${literal(functions)}`,
    `groupBy: ${literal(by)}`,
    ...(having === undefined ? [] : ["having: $having"]),
    ...(zone === undefined ? [] : [`tz: ${JSON.stringify(zone)}`]),
    ...parts,
    ...sortLiteral(sort),
    ...(page > 1 ? [`page: ${page}`] : []),
    `pageSize: ${size}`,
  ];
  // The keys of groups are no names of GraphQL, so the condition is a variable.
  const all: Variable[] = [...(having === undefined ? [] : [{ name: "having", type: "JSON", value: having }]), ...variables];
  const selection = `{\n  ${shape.name}_groups(${given.join(", ")}) {\n    data\n    pagination { totalCount hasNextPage }\n  }\n}`;
  return {
    request: { method: "GET", path: `/api/v1/data/${shape.name}/aggregate?${queryText([...parameters, ...pageParameter(page), ["pageSize", String(size)]])}` },
    graphql: hasGraphql ? documentOf(all, selection) : undefined,
    mcp: {
      tool: "aggregate_data",
      arguments: {
        object_name: shape.name,
        functions,
        group_by: by,
        ...(having === undefined ? {} : { having }),
        ...(zone === undefined ? {} : { tz: zone }),
        ...members,
        ...(sort.length === 0 ? {} : { sort: printSort(sort) }),
        ...(page > 1 ? { page } : {}),
        page_size: size,
      },
    },
  };
}

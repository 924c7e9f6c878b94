/**
 * The routes whose shapes follow the live schema and the installed blocks. The OpenAPI document repeats these routes for each object, so
 * its types for an empty server do not contain them. This file names each route once for all objects, with a record as a JSON object.
 * `.ci/openapi` compares it with the document of a server that has objects and a block.
 */
import type { JsonObject, JsonValue } from "./json";
import type { components } from "./schema";

/** A record in a response of the API. */
export interface RecordRow extends JsonObject {
  id: string;
}

type Pagination = components["schemas"]["SvcPagination"];
type ByNumber = "page" | "totalPages";

/**
 * A page by a cursor (`cursor`, `after` or `before`) has the cursors of its first and last record. They are null if it is empty. It has no
 * `page` and `totalPages`.
 */
export interface RecordsPage {
  data: RecordRow[];
  pagination: Omit<Pagination, ByNumber> & Partial<Pick<Pagination, ByNumber>> & { startCursor?: string | null; endCursor?: string | null };
}

/** One function of all records that match. */
interface ComputedValue {
  data: { fn: string; field: string | null; value: JsonValue; filteredCount: number };
}

/** A group of records: the values that make it, and the results of the functions by their keys, such as `sum_amount`. */
export interface GroupRow extends JsonObject {
  group: JsonObject;
}

export interface GroupsPage {
  data: GroupRow[];
  pagination: Pagination;
}

interface Written {
  count: number;
  ids: string[];
}

/** Filters have the names of columns. A query is an object, or the text of a query string. */
type Query = string | Record<string, string | number | boolean | undefined>;

interface Call<Path, Answer, Body = never, Header = unknown> {
  parameters: { query?: Query; header?: Header; path: Path; cookie?: never };
  requestBody: [Body] extends [never] ? undefined : { content: { "application/json": Body } };
  responses: { 200: { headers: Record<string, unknown>; content: { "application/json": Answer } } };
}

type Condition = { "if-match"?: string };
type OfObject = { object: string };
type OfRecord = OfObject & { id: string };
type One = { data: RecordRow };

export interface RecordPaths {
  "/api/v1/data/{object}": {
    get: Call<OfObject, RecordsPage>;
    post: Call<OfObject, One, JsonObject>;
  };
  "/api/v1/data/{object}/query": {
    post: Call<OfObject, RecordsPage, JsonObject>;
  };
  "/api/v1/data/{object}/{id}": {
    get: Call<OfRecord, One>;
    patch: Call<OfRecord, One, JsonObject, Condition>;
    delete: Call<OfRecord, undefined, never, Condition>;
  };
  "/api/v1/data/{object}/{id}/links/{relation}": {
    post: Call<OfRecord & { relation: string }, JsonObject, { ids: string[] }>;
    delete: Call<OfRecord & { relation: string }, JsonObject, { ids: string[] }>;
  };
  "/api/v1/data/{object}/bulk": {
    post: Call<OfObject, Written, { data: JsonObject[] }>;
    patch: Call<OfObject, Written, { ids: string[]; values: JsonObject }>;
    delete: Call<OfObject, Written, { ids: string[] }>;
  };
  "/api/v1/data/{object}/aggregate": {
    get: Call<OfObject, ComputedValue | GroupsPage>;
  };
  "/api/v1/data/{object}/export": {
    get: Call<OfObject, string>;
    head: Call<OfObject, undefined>;
  };
  "/api/v1/blocks/{block}/actions/{action}": {
    post: Call<{ block: string; action: string }, { data: JsonValue }, JsonValue>;
  };
}

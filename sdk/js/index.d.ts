/// <reference path="./globals.d.ts" />

/** A value that JSON can represent. JavaScript loses digits of numbers greater than 2^53. Keep such values as text. */
export type Json = string | number | boolean | null | Json[] | { [key: string]: Json };

/** A JSON Schema 2020-12 with the type object. */
export type JsonSchema = { [keyword: string]: unknown };

/** The user and API key that made the call. */
export interface Actor {
  userId: string | null;
  apiKeyId: string | null;
  /** How the caller signed in, such as `session` or `api_key`. */
  via: string;
}

/** The facts about one call. */
export interface Context {
  callId: string;
  /** Null for the system and for anonymous callers. */
  actor: Actor | null;
  /** The block's name. */
  block: string;
}

/** An error with one of these codes gets the HTTP status of that name. Every other code gets 500. */
export type StatusCode = "not_found" | "invalid_request" | "forbidden" | "conflict" | "unavailable";

/** An error with a code. If a handler throws it, it becomes the response of the call. Errors of the service have this type, too. */
export class HandlerError extends Error {
  constructor(code: StatusCode | (string & {}), message: string, details?: unknown);
  readonly code: string;
  readonly details: unknown;
}

export interface ActionOptions {
  description?: string;
  /** The schema of the input. The server validates the input before it runs the handler. */
  input?: JsonSchema;
  /** The permission that a caller needs, instead of update on `blocks`. */
  rbac?: { resource: string; action: string };
  timeoutMs?: number;
}

type Awaitable<T> = T | PromiseLike<T>;

/** Declares an action. The handler's result becomes `data` in the response. */
export function action<Input = any>(name: string, options: ActionOptions, handler: (input: Input, context: Context) => unknown): void;
export function action<Input = any>(name: string, handler: (input: Input, context: Context) => unknown): void;

export interface HookOptions {
  description?: string;
}

/** The headers in their original order. Upper and lower case in names do not matter. */
export interface Headers extends Iterable<[name: string, value: string]> {
  /** The value. If the name occurs several times, all values joined by `, `. */
  get(name: string): string | null;
  getAll(name: string): string[];
  has(name: string): boolean;
  /** The names as they were sent, and the values as bytes. */
  readonly raw: [name: string, value: Uint8Array][];
}

interface Message {
  readonly headers: Headers;
  /** The bytes as they were received. Signatures are computed from them. */
  readonly body: Uint8Array;
  text(): string;
  json<T = any>(): T;
}

export interface HookRequest extends Message {
  readonly method: string;
  readonly path: string;
  /** The query string as it was received. */
  readonly query: string;
  /** The parameters of the query string. */
  readonly params: URLSearchParams;
  readonly remoteAddress: string;
}

type HeaderValue = string | number | Uint8Array | undefined | null;

/** Values that are neither text nor bytes are sent as JSON. If no content type is given, it is that of JSON. */
export type Body = string | Uint8Array | ArrayBuffer | object | null;

export type HeadersInit = { [name: string]: HeaderValue | HeaderValue[] };

export interface HookResponse {
  /** The default is 200. */
  status?: number;
  headers?: HeadersInit;
  body?: Body;
}

type HookHandler = (request: HookRequest, context: Context) => Awaitable<HookResponse | undefined | null | void>;

/** Declares a hook, which third parties call. If the handler returns no response, the caller gets 200 with `{ "received": true }`. */
export function hook(name: string, options: HookOptions, handler: HookHandler): void;
export function hook(name: string, handler: HookHandler): void;

export interface SubscriptionOptions {
  /** A topic pattern, such as `data.task.#`. Without it, the subscription has to be in block.json. */
  event?: string;
  /** The name of the consumer group. It begins with the block's name and a colon. */
  consumer?: string;
  /** A value that the handler gets with every event. */
  config?: unknown;
  /** Whether every instance of the server gets each event. */
  perInstance?: boolean;
}

export interface Event<Payload = any> {
  id: string;
  topic: string;
  payload: Payload;
  occurredAt: string;
  /** The number of the attempt. The first one is 1. */
  attempt: number;
}

type SubscriptionHandler<Payload> = (event: Event<Payload>, config: any, context: Context) => unknown;

/** Declares a handler of events. If it throws, the delivery fails and is retried. */
export function subscription<Payload = any>(name: string, options: SubscriptionOptions, handler: SubscriptionHandler<Payload>): void;
export function subscription<Payload = any>(name: string, handler: SubscriptionHandler<Payload>): void;

/** Access to records. Every call is checked against `permissions.data` of block.json. A refused call throws a `HandlerError`. */
export namespace data {
  type Row = Record<string, any>;

  interface Filter {
    field: string;
    operator?: string;
    value?: unknown;
  }

  /** The operators for one field, joined with AND. */
  interface Test {
    eq?: unknown;
    neq?: unknown;
    gt?: unknown;
    gte?: unknown;
    lt?: unknown;
    lte?: unknown;
    like?: string;
    ilike?: string;
    in?: unknown[] | "$user.roles";
    nin?: unknown[] | "$user.roles";
    is_null?: true;
    is_not_null?: true;
  }

  /**
   * A condition on records. A member is a field with a value or a `Test`, or a relation. A relation to one record has a condition on that
   * record. A relation to many records has `some`, `none` or `every`. Members are joined with AND.
   */
  type Condition = {
    _and?: Condition[];
    _or?: Condition[];
    _not?: Condition;
  } & { [name: string]: Value | Test | Condition | Quantified | Condition[] | undefined };

  type Value = string | number | boolean | null;

  interface Quantified {
    some?: Condition;
    none?: Condition;
    every?: Condition;
  }

  interface Query {
    search?: string;
    filters?: Filter[];
    where?: Condition;
    sort?: unknown;
    page?: number;
    pageSize?: number;
    limit?: number;
    offset?: number;
    /** A cursor instead of `page` and `offset`: `endCursor` of the page in front. An empty text reads the first page. */
    after?: string;
    /** A cursor: `startCursor` of the next page. An empty text reads the last page. */
    before?: string;
    select?: unknown;
    expand?: unknown;
    count?: string;
  }

  interface Page<T> {
    data: T[];
    pagination: {
      page: number;
      pageSize: number;
      /** Null if the query has `count: "none"`. */
      totalCount: number | null;
      totalPages: number | null;
      hasNextPage: boolean;
      hasPreviousPage: boolean;
      /** Only if the query has `after` or `before`. There is no `page` then. */
      startCursor?: string | null;
      endCursor?: string | null;
    };
  }

  interface AggregateQuery {
    fn: "count" | "sum" | "avg" | "min" | "max";
    field?: string;
    groupBy?: undefined;
    search?: string;
    filters?: Filter[];
    where?: Condition;
  }

  /** Functions for groups of records. A function has its field behind it: `sum:amount`. */
  interface GroupsQuery {
    functions: string | string[];
    /** Fields, and dates or datetimes with a period: `created_at:month`. */
    groupBy?: string | string[];
    /** A condition on the groups. Its keys are those of `groupBy` and of the results. */
    having?: Condition;
    /** The IANA name of the time zone of the periods. */
    tz?: string;
    search?: string;
    filters?: Filter[];
    where?: Condition;
    sort?: string;
    page?: number;
    pageSize?: number;
    limit?: number;
    offset?: number;
    count?: "exact" | "none";
  }

  /** The values of `groupBy`, and the results by their keys: `count`, `sum_amount`. */
  type Group = { group: Row } & { [key: string]: any };

  /** A field of the result of an earlier operation of the same batch: `{ $ref: "0.id" }`. */
  interface Reference {
    $ref: string;
  }

  /** A value in `values` can also be a `Reference`, except in a column of JSON. */
  type Operation =
    | { op: "create"; object: string; values: Row }
    | { op: "update"; object: string; id: string | Reference; values: Row; ifVersion?: string }
    | { op: "upsert"; object: string; values: Row; onConflict: string[] }
    | { op: "delete"; object: string; id: string | Reference; ifVersion?: string }
    | { op: "link" | "unlink"; object: string; id: string | Reference; relation: string; ids: (string | Reference)[] };

  function query<T = Row>(object: string, query?: Query): Page<T>;
  /** The record. Null if it does not exist or the block may not see it. `expand` names relation keys. */
  function get<T = Row>(object: string, id: string, options?: { expand?: string | string[] }): T | null;
  /** `value` is null if no row matches. */
  function aggregate(object: string, query: AggregateQuery): { value: any; filteredCount: number };
  function aggregate(object: string, query: GroupsQuery): Page<Group>;
  function create<T = Row>(object: string, values: Row): T;
  /** Creates all records or none. Returns their ids in order. */
  function createMany(object: string, values: Row[]): string[];
  /** Returns the record after the change. A numeric field accepts `{ $inc: n }` and `{ $dec: n }`. */
  function update<T = Row>(object: string, id: string, changes: Row): T;
  /** Inserts a record, or updates the one with the same values of the unique fields `onConflict`. */
  function upsert<T = Row>(object: string, values: Row, onConflict: string[]): { created: boolean; data: T };
  /** Returns whether a record was deleted. */
  function remove(object: string, id: string): boolean;
  export { remove as delete };
  /** Returns the ids of the deleted records. */
  function deleteMany(object: string, ids: string[]): string[];
  /** Returns the number of new links. */
  function link(object: string, id: string, relation: string, ids: string[]): number;
  /** Returns the number of removed links. */
  function unlink(object: string, id: string, relation: string, ids: string[]): number;
  /**
   * Makes several writes, all or none. Returns their results in order: a record, `{ created, data }` for an upsert, the number of links, true
   * for a deleted record, null for a missing one.
   */
  function batch(operations: Operation[]): any[];
  export { query, get, aggregate, create, createMany, update, upsert, deleteMany, link, unlink, batch };
  export type { Row, Filter, Test, Value, Quantified, Condition, Query, Page, AggregateQuery, GroupsQuery, Group, Reference, Operation };
}

export namespace config {
  /** The block's configuration. It is validated against the manifest's schema, and defaults are filled in. */
  function get<T = any>(): T;
}

export namespace secrets {
  /** A secret that `permissions.secrets` of block.json names. The installer has set its value. */
  function get(name: string): string;
}

/** Writes lines to the block's log. `fields` is stored as JSON. `console` writes to the same log. */
export namespace log {
  function error(message: string, fields?: object): void;
  function warn(message: string, fields?: object): void;
  function info(message: string, fields?: object): void;
  function debug(message: string, fields?: object): void;
  function trace(message: string, fields?: object): void;
}

export namespace deadline {
  /** The number of milliseconds until the call is stopped. */
  function remainingMs(): number;
  /** Whether the caller is gone, so that nobody waits for the result. */
  function isCancelled(): boolean;
}

/** Sends requests to the origins in `permissions.http` of block.json. */
export namespace http {
  interface Options {
    headers?: HeadersInit;
    timeoutMs?: number;
  }

  interface Request extends Options {
    /** The default is GET. */
    method?: string;
    url: string;
    body?: Body;
  }

  interface Response extends Message {
    readonly status: number;
    /** Whether the status is 200 to 299. */
    readonly ok: boolean;
  }

  /** Returns the response, whatever its status. If there is no response, it throws a `HandlerError`. */
  function send(request: Request): Response;
  function get(url: string, options?: Options): Response;
  function post(url: string, body?: Body, options?: Options): Response;
}

type Bytes = string | Uint8Array | ArrayBuffer;

export function sha256(data: Bytes): Uint8Array<ArrayBuffer>;
export function hmacSha256(key: Bytes, message: Bytes): Uint8Array<ArrayBuffer>;
/** Compares two values in constant time. The time does not reveal where they differ. */
export function timingSafeEqual(a: Bytes, b: Bytes): boolean;
export function toHex(data: Bytes): string;
export function fromHex(text: string): Uint8Array<ArrayBuffer>;
export function toBase64(data: Bytes): string;
/** Also accepts the URL-safe alphabet, and text without padding. */
export function fromBase64(text: string): Uint8Array<ArrayBuffer>;

/// <reference path="./globals.d.ts" />

/** A value that JSON can hold. Numbers past 2^53 lose digits in JavaScript: keep such values as text. */
export type Json = string | number | boolean | null | Json[] | { [key: string]: Json };

/** JSON Schema 2020-12 of type object. */
export type JsonSchema = { [keyword: string]: unknown };

/** Who made the call. */
export interface Actor {
  userId: string | null;
  apiKeyId: string | null;
  /** How the caller signed in, such as `session` or `api_key`. */
  via: string;
}

/** What is true of one call. */
export interface Context {
  callId: string;
  /** Null for the system and for anonymous callers. */
  actor: Actor | null;
  /** The block's name. */
  block: string;
}

/** Codes whose errors answer with the status of their name; every other code answers 500. */
export type StatusCode = "not_found" | "invalid_request" | "forbidden" | "conflict" | "unavailable";

/** A failure with a code: thrown by a handler it is the call's answer, and the service's own refusals come as one. */
export class HandlerError extends Error {
  constructor(code: StatusCode | (string & {}), message: string, details?: unknown);
  readonly code: string;
  readonly details: unknown;
}

export interface ActionOptions {
  description?: string;
  /** What the input has to be; it is checked before the handler runs. */
  input?: JsonSchema;
  /** The permission that a caller needs, in place of update on `blocks`. */
  rbac?: { resource: string; action: string };
  timeoutMs?: number;
}

type Awaitable<T> = T | PromiseLike<T>;

/** Declares an action: what the handler returns is the answer's `data`. */
export function action<Input = any>(name: string, options: ActionOptions, handler: (input: Input, context: Context) => unknown): void;
export function action<Input = any>(name: string, handler: (input: Input, context: Context) => unknown): void;

export interface HookOptions {
  description?: string;
}

/** Headers in the order that they came; names are compared without regard to case. */
export interface Headers extends Iterable<[name: string, value: string]> {
  /** The value, or all values of the name joined by `, `. */
  get(name: string): string | null;
  getAll(name: string): string[];
  has(name: string): boolean;
  /** Names as they were sent, and the bytes of the values. */
  readonly raw: [name: string, value: Uint8Array][];
}

interface Message {
  readonly headers: Headers;
  /** The bytes as they came; signatures are over these. */
  readonly body: Uint8Array;
  text(): string;
  json<T = any>(): T;
}

export interface HookRequest extends Message {
  readonly method: string;
  readonly path: string;
  /** The query string as it came. */
  readonly query: string;
  /** The parameters of the query string. */
  readonly params: URLSearchParams;
  readonly remoteAddress: string;
}

type HeaderValue = string | number | Uint8Array | undefined | null;

/** Values that are neither text nor bytes are sent as JSON, with its content type where none is given. */
export type Body = string | Uint8Array | ArrayBuffer | object | null;

export type HeadersInit = { [name: string]: HeaderValue | HeaderValue[] };

export interface HookResponse {
  /** 200 where there is none. */
  status?: number;
  headers?: HeadersInit;
  body?: Body;
}

type HookHandler = (request: HookRequest, context: Context) => Awaitable<HookResponse | undefined | null | void>;

/** Declares a hook, which third parties call. No response answers 200 `{ "received": true }`. */
export function hook(name: string, options: HookOptions, handler: HookHandler): void;
export function hook(name: string, handler: HookHandler): void;

export interface SubscriptionOptions {
  /** Topics, such as `data.task.#`. Without it the subscription stands in block.json. */
  event?: string;
  /** The name that deliveries are counted under; it begins with the block's name and a colon. */
  consumer?: string;
  /** Given to the handler with every event. */
  config?: unknown;
  /** Whether every instance of the server gets each event. */
  perInstance?: boolean;
}

export interface Event<Payload = any> {
  id: string;
  topic: string;
  payload: Payload;
  occurredAt: string;
  /** 1 for the first try. */
  attempt: number;
}

type SubscriptionHandler<Payload> = (event: Event<Payload>, config: any, context: Context) => unknown;

/** Declares a handler of events. What it throws is a failed delivery, which is tried again. */
export function subscription<Payload = any>(name: string, options: SubscriptionOptions, handler: SubscriptionHandler<Payload>): void;
export function subscription<Payload = any>(name: string, handler: SubscriptionHandler<Payload>): void;

/** Records. Every call is checked against `permissions.data` of block.json; what is refused is a `HandlerError`. */
export namespace data {
  type Row = Record<string, any>;

  interface Filter {
    field: string;
    operator?: string;
    value?: unknown;
  }

  /** The operators of one field, ANDed. */
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
   * A condition on records: a field with a value or a `Test`, a relation to one record with a condition on that, a relation to many
   * with `some`, `none` or `every`. Members are ANDed.
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
    select?: unknown;
    expand?: unknown;
    count?: string;
  }

  interface Page<T> {
    data: T[];
    pagination: {
      page: number;
      pageSize: number;
      /** Null where the query said `count: "none"`. */
      totalCount: number | null;
      totalPages: number | null;
      hasNextPage: boolean;
      hasPreviousPage: boolean;
    };
  }

  interface AggregateQuery {
    fn: "count" | "sum" | "avg" | "min" | "max";
    field?: string;
    search?: string;
    filters?: Filter[];
    where?: Condition;
  }

  type Operation =
    | { op: "create"; object: string; values: Row }
    | { op: "update"; object: string; id: string; values: Row }
    | { op: "delete"; object: string; id: string };

  function query<T = Row>(object: string, query?: Query): Page<T>;
  /** The record, or null where there is none that the block may see. `expand` names relation keys. */
  function get<T = Row>(object: string, id: string, options?: { expand?: string | string[] }): T | null;
  /** `value` is null where no row matches. */
  function aggregate(object: string, query: AggregateQuery): { value: any; filteredCount: number };
  function create<T = Row>(object: string, values: Row): T;
  /** All or none; the ids of the new records in order. */
  function createMany(object: string, values: Row[]): string[];
  /** The record as it is afterwards. A numeric field takes `{ $inc: n }` and `{ $dec: n }`. */
  function update<T = Row>(object: string, id: string, changes: Row): T;
  /** Inserts a record, or updates the one with the same values of the unique fields `onConflict`. */
  function upsert<T = Row>(object: string, values: Row, onConflict: string[]): { created: boolean; data: T };
  /** Whether there was one to delete. */
  function remove(object: string, id: string): boolean;
  export { remove as delete };
  /** The ids of those that were deleted. */
  function deleteMany(object: string, ids: string[]): string[];
  /** How many links are new. */
  function link(object: string, id: string, relation: string, ids: string[]): number;
  /** How many links there were. */
  function unlink(object: string, id: string, relation: string, ids: string[]): number;
  /** Several writes, all or none; their results in order: a record, true for a deleted one, null for one that is missing. */
  function batch(operations: Operation[]): any[];
  export { query, get, aggregate, create, createMany, update, upsert, deleteMany, link, unlink, batch };
  export type { Row, Filter, Test, Value, Quantified, Condition, Query, Page, AggregateQuery, Operation };
}

export namespace config {
  /** The block's configuration, checked against the manifest's schema, defaults filled in. */
  function get<T = any>(): T;
}

export namespace secrets {
  /** A secret that the installer gave and `permissions.secrets` of block.json names. */
  function get(name: string): string;
}

/** Lines for the block's log; `fields` is kept as JSON. `console` writes there as well. */
export namespace log {
  function error(message: string, fields?: object): void;
  function warn(message: string, fields?: object): void;
  function info(message: string, fields?: object): void;
  function debug(message: string, fields?: object): void;
  function trace(message: string, fields?: object): void;
}

export namespace deadline {
  /** Milliseconds until the call is stopped. */
  function remainingMs(): number;
  /** Whether the caller has gone. */
  function isCancelled(): boolean;
}

/** Requests to the origins in `permissions.http` of block.json. */
export namespace http {
  interface Options {
    headers?: HeadersInit;
    timeoutMs?: number;
  }

  interface Request extends Options {
    /** GET where there is none. */
    method?: string;
    url: string;
    body?: Body;
  }

  interface Response extends Message {
    readonly status: number;
    /** Whether the status is 200 to 299. */
    readonly ok: boolean;
  }

  /** Answers whatever the status; a request that got no answer is a `HandlerError`. */
  function send(request: Request): Response;
  function get(url: string, options?: Options): Response;
  function post(url: string, body?: Body, options?: Options): Response;
}

type Bytes = string | Uint8Array | ArrayBuffer;

export function sha256(data: Bytes): Uint8Array<ArrayBuffer>;
export function hmacSha256(key: Bytes, message: Bytes): Uint8Array<ArrayBuffer>;
/** Whether both are the same, in a time that tells nothing of where they differ. */
export function timingSafeEqual(a: Bytes, b: Bytes): boolean;
export function toHex(data: Bytes): string;
export function fromHex(text: string): Uint8Array<ArrayBuffer>;
export function toBase64(data: Bytes): string;
/** Takes the alphabet of URLs as well, and text without padding. */
export function fromBase64(text: string): Uint8Array<ArrayBuffer>;

/**
 * The client of the public API. It uses the session of the person who is signed in, has the types of the server's OpenAPI document, and
 * keeps all digits of numbers.
 *
 * `dataOf(api.GET("/api/v1/roles"))` returns the `data` of the body or throws an `ApiError`. `ok` returns the whole body. If the session of
 * a request has ended, the request waits until the person has signed in again, and is sent once more.
 */
import createClient from "openapi-fetch";
import { type ApiError, errorOf, noAnswer } from "./errors";
import { parseJson, printJson } from "./json";
import type { RecordPaths } from "./record-paths";
import type { paths } from "./schema";
import { isSessionEstablished, signInAgain } from "./session-lost";
import { asViewed } from "./view-as";

/** Sends a request. Throws an `ApiError` if there is no response or if the response is an error. */
export async function send(original: Request): Promise<Response> {
  const request = asViewed(original);
  const { method } = request;
  const path = new URL(request.url).pathname;
  for (let attempt = 0; ; attempt++) {
    let response: Response;
    try {
      response = await fetch(request.clone());
    } catch (cause) {
      if (request.signal.aborted) throw cause;
      throw noAnswer(cause, method, path);
    }
    if (response.ok || response.status === 304) return response;
    if (response.status === 401 && attempt === 0 && isSessionEstablished()) {
      await signInAgain();
      continue;
    }
    throw await errorOf(response, method, path);
  }
}

/**
 * The `fetch` that openapi-fetch uses. openapi-fetch reads bodies with `JSON.parse`, so this returns a response with a body that is already
 * parsed with all digits.
 */
async function losslessFetch(request: Request): Promise<Response> {
  const response = await send(request);
  if (!response.headers.get("content-type")?.startsWith("application/json")) return response;
  const text = await response.text();
  const headers = new Headers(response.headers);
  // openapi-fetch calls `json()` only if the response has a length.
  headers.set("content-length", String(text.length));
  const wrapped = new Response(response.status === 204 ? null : text, { status: response.status, statusText: response.statusText, headers });
  Object.defineProperty(wrapped, "json", { value: async () => parseJson(text) });
  return wrapped;
}

/** Adds the query to `path`, without empty values. */
export function address(path: string, query: string | object = {}): string {
  if (typeof query === "string") return query === "" ? path : `${path}?${query}`;
  const search = new URLSearchParams();
  for (const [name, value] of Object.entries(query)) {
    for (const one of Array.isArray(value) ? value : [value]) {
      if (one !== undefined && one !== null && one !== "") search.append(name, String(one));
    }
  }
  const text = search.toString();
  return text === "" ? path : `${path}?${text}`;
}

type Routes = paths & RecordPaths;
type Method = "get" | "head" | "post" | "patch" | "delete";
/** Paths that have this method. For other paths, the document has `get?: never`. */
type RoutesOf<Of extends Method> = { [Path in keyof Routes]: Routes[Path] extends { [Key in Of]: { responses: unknown } } ? Path : never }[keyof Routes] & string;
type OperationOf<Path extends keyof Routes, Of extends Method> = Routes[Path] extends { [Key in Of]: infer Operation } ? Operation : never;
type JsonOf<Response> = Response extends { content: { "application/json": infer Answer } } ? Answer : never;
type AnswerOf<Operation> = Operation extends { responses: infer Responses } ? JsonOf<Responses[keyof Responses & (200 | 201 | 202)]> : never;
type ParametersOf<Operation> = Operation extends { parameters: infer Parameters } ? Parameters : never;
type Params<Operation> = Partial<Record<never, never>> extends ParametersOf<Operation> ? { params?: ParametersOf<Operation> } : { params: ParametersOf<Operation> };
type Body<Operation> = Operation extends { requestBody: { content: infer Content } } ? { body: Content[keyof Content] } : { body?: undefined };
type Options<Operation> = Params<Operation> & Body<Operation> & { signal?: AbortSignal; keepalive?: boolean; headers?: Record<string, string>; parseAs?: "stream" };
type Rest<All> = Partial<Record<never, never>> extends All ? [options?: All] : [options: All];
/**
 * The types of a call in openapi-fetch, with two differences: a name that the document does not have is an error, and a `LosslessNumber`
 * keeps its type.
 */
type Call<Of extends Method> = <Path extends RoutesOf<Of>>(path: Path, ...rest: Rest<Options<OperationOf<Path, Of>>>) => Promise<{ data?: AnswerOf<OperationOf<Path, Of>>; response: Response }>;

export const api = createClient<paths>({
  baseUrl: typeof location === "undefined" ? "" : location.origin,
  credentials: "same-origin",
  fetch: losslessFetch,
  querySerializer: (query) => address("", query).slice(1),
  bodySerializer: (body: unknown) => (body instanceof Blob ? (body as unknown as string) : printJson(body)),
}) as unknown as { [Of in Method as Uppercase<Of>]: Call<Of> };

/** The body of a typed call. Errors are thrown. */
export async function ok<Data>(call: Promise<{ data?: Data }>): Promise<Data> {
  return (await call).data as Data;
}

/** Returns `data` of the body. Nearly all bodies have it. */
export async function dataOf<Body extends { data: unknown }>(call: Promise<{ data?: Body }>): Promise<Body["data"]> {
  return (await call).data!.data;
}

/** A request as data, so that the console can show and plan it before it sends it. */
export interface Described {
  method: "POST" | "PATCH" | "DELETE";
  path: string;
  body?: unknown;
}

/** Describes a request. The parameters and the body have the same types as in a call. */
export function describe<Of extends "post" | "patch" | "delete", Path extends RoutesOf<Of>>(method: Of, path: Path, options: Params<OperationOf<Path, Of>> & Body<OperationOf<Path, Of>>): Described {
  const { params, body } = options as { params?: { path?: Record<string, string | number>; query?: object }; body?: unknown };
  const filled = path.replaceAll(/\{(\w+)\}/g, (_, name: string) => encodeURIComponent(String(params?.path?.[name])));
  return { method: method.toUpperCase() as Described["method"], path: address(filled, params?.query), ...(body === undefined ? {} : { body }) };
}

/**
 * Sends a request whose method and path are only known at run time, such as a described request, a request that a person tries in the API
 * reference, or rows of an import that are already text. `body` is sent as JSON unless it is text.
 */
export async function requestRaw(method: string, path: string, { body, headers = {}, signal }: { body?: unknown; headers?: Record<string, string>; signal?: AbortSignal | undefined } = {}): Promise<Response> {
  return send(
    new Request(new URL(path, location.origin), {
      method,
      credentials: "same-origin",
      headers: { ...(body === undefined ? {} : { "content-type": "application/json" }), ...headers },
      ...(body === undefined ? {} : { body: typeof body === "string" ? body : printJson(body) }),
      ...(signal === undefined ? {} : { signal }),
    }),
  );
}

export type { ApiError };

/**
 * The public API with the session of the person who is signed in: typed by the server's OpenAPI document, numbers without loss.
 *
 * `dataOf(api.GET("/api/v1/roles"))` gives what the body holds or throws an `ApiError`; `ok` gives the whole body. A request whose session has ended waits for the person
 * to sign in again, then is sent once more.
 */
import createClient from "openapi-fetch";
import { type ApiError, errorOf, noAnswer } from "./errors";
import { parseJson, printJson } from "./json";
import type { RecordPaths } from "./record-paths";
import type { paths } from "./schema";
import { isSessionEstablished, signInAgain } from "./session-lost";
import { asViewed } from "./view-as";

/** Sends; throws an `ApiError` where nothing answers or the answer is an error. */
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

/** As `fetch` for openapi-fetch, which reads bodies by `JSON.parse`: it gets a body that has been read without loss. */
async function losslessFetch(request: Request): Promise<Response> {
  const response = await send(request);
  if (!response.headers.get("content-type")?.startsWith("application/json")) return response;
  const text = await response.text();
  const headers = new Headers(response.headers);
  // Only with a length does openapi-fetch ask for `json()`.
  headers.set("content-length", String(text.length));
  const wrapped = new Response(response.status === 204 ? null : text, { status: response.status, statusText: response.statusText, headers });
  Object.defineProperty(wrapped, "json", { value: async () => parseJson(text) });
  return wrapped;
}

/** `path` with its query; empty values are left out. */
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
/** Paths that have the method: for the others the document says `get?: never`. */
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
 * As openapi-fetch types a call, with two differences: names that the document does not have are errors, and a number without loss
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

/** What a body holds as `data`: nearly all of them do. */
export async function dataOf<Body extends { data: unknown }>(call: Promise<{ data?: Body }>): Promise<Body["data"]> {
  return (await call).data!.data;
}

/** A request as data: shown, planned, and sent later. */
export interface Described {
  method: "POST" | "PATCH" | "DELETE";
  path: string;
  body?: unknown;
}

/** Describes a request with the types that a call would demand. */
export function describe<Of extends "post" | "patch" | "delete", Path extends RoutesOf<Of>>(method: Of, path: Path, options: Params<OperationOf<Path, Of>> & Body<OperationOf<Path, Of>>): Described {
  const { params, body } = options as { params?: { path?: Record<string, string | number>; query?: object }; body?: unknown };
  const filled = path.replaceAll(/\{(\w+)\}/g, (_, name: string) => encodeURIComponent(String(params?.path?.[name])));
  return { method: method.toUpperCase() as Described["method"], path: address(filled, params?.query), ...(body === undefined ? {} : { body }) };
}

/**
 * A request by method and path, for what is known only at run time: described requests, the reference's tries, rows of an import that
 * are text already. `body` is sent as JSON unless it is text.
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

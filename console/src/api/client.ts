/**
 * The public API with the session of the person who is signed in: typed by the server's OpenAPI document, numbers without loss.
 *
 * `ok(api.GET("/api/v1/roles"))` gives the body or throws an `ApiError`. A request whose session has ended waits for the person
 * to sign in again, then is sent once more.
 */
import createClient from "openapi-fetch";
import { type ApiError, errorOf, noAnswer } from "./errors";
import { parseJson, printJson, type JsonValue } from "./json";
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
  if (!response.headers.get("content-type")?.includes("json")) return response;
  const text = await response.text();
  const headers = new Headers(response.headers);
  // Only with a length does openapi-fetch ask for `json()`.
  headers.set("content-length", String(text.length));
  const wrapped = new Response(response.status === 204 ? null : text, { status: response.status, statusText: response.statusText, headers });
  Object.defineProperty(wrapped, "json", { value: async () => parseJson(text) });
  return wrapped;
}

export const api = createClient<paths>({
  baseUrl: typeof location === "undefined" ? "" : location.origin,
  credentials: "same-origin",
  fetch: losslessFetch,
  bodySerializer: (body: unknown) => (body instanceof FormData ? (body as unknown as string) : printJson(body)),
});

/** The body of a typed call. Errors are thrown. */
export async function ok<Data>(call: Promise<{ data?: Data; error?: unknown }>): Promise<NonNullable<Data>> {
  const { data } = await call;
  return data as NonNullable<Data>;
}

export interface RequestOptions {
  query?: Record<string, string | number | boolean | undefined | null | (string | number)[]>;
  /** Sent as JSON, unless it is a `Blob`, `FormData`, string or stream. */
  body?: unknown;
  headers?: Record<string, string>;
  signal?: AbortSignal;
  /** The request goes on when the page is left. */
  keepalive?: boolean;
}

/** `path` with its query; empty values are left out. */
export function address(path: string, query: RequestOptions["query"] = {}): string {
  const search = new URLSearchParams();
  for (const [name, value] of Object.entries(query)) {
    for (const one of Array.isArray(value) ? value : [value]) {
      if (one !== undefined && one !== null && one !== "") search.append(name, String(one));
    }
  }
  const text = search.toString();
  return text === "" ? path : `${path}?${text}`;
}

/** A request by its path, for routes whose shape depends on the live schema (records) and for raw answers. */
export async function requestRaw(method: string, path: string, options: RequestOptions = {}): Promise<Response> {
  const { body, headers = {}, keepalive = false, query, signal } = options;
  const plain = body === undefined || typeof body === "string" || body instanceof Blob || body instanceof FormData || body instanceof ArrayBuffer;
  return send(
    new Request(new URL(address(path, query), location.origin), {
      method,
      credentials: "same-origin",
      keepalive,
      headers: { ...(body === undefined || body instanceof FormData || body instanceof Blob ? {} : { "content-type": "application/json" }), ...headers },
      ...(body === undefined ? {} : { body: plain ? (body as BodyInit) : printJson(body) }),
      ...(signal === undefined ? {} : { signal }),
    }),
  );
}

/** As `requestRaw`, the body read as JSON without loss. `Answer` is the caller's knowledge of the route. */
export async function request<Answer = JsonValue>(method: string, path: string, options: RequestOptions = {}): Promise<Answer> {
  const response = await requestRaw(method, path, options);
  const text = await response.text();
  return (text === "" ? undefined : parseJson(text)) as Answer;
}

export type { ApiError };

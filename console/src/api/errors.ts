/** The errors of requests, as one type that every screen shows in the same way. */
import { isJsonObject, readJson, type JsonValue } from "./json";

export interface Issue {
  /** The place in the input: a JSON pointer or the name of a field. */
  path: string;
  message: string;
}

/** An error response, or no response at all (`status` 0). */
export class ApiError extends Error {
  override readonly name = "ApiError";

  constructor(
    /** The HTTP status. 0 if there was no response. */
    readonly status: number,
    /** The API's stable code, such as `unique_violation`. */
    readonly code: string,
    message: string,
    readonly details: {
      field?: string;
      requestId?: string;
      retryAfterSeconds?: number;
      issues?: Issue[];
      body?: JsonValue;
      method?: string;
      path?: string;
    } = {},
  ) {
    super(message);
  }

  get field(): string | undefined {
    return this.details.field;
  }
  get requestId(): string | undefined {
    return this.details.requestId;
  }
  get retryAfterSeconds(): number | undefined {
    return this.details.retryAfterSeconds;
  }
  get issues(): Issue[] {
    return this.details.issues ?? [];
  }
  /** The error messages, keyed by the name of their field. Empty if the error is not about fields. */
  get byField(): Record<string, string> {
    const several = this.issues.map(({ path, message }) => [path, message]);
    if (several.length > 0) return Object.fromEntries(several);
    return this.field === undefined ? {} : { [this.field]: this.message };
  }
  get isOffline(): boolean {
    return this.status === 0;
  }
}

export function isApiError(error: unknown): error is ApiError {
  return error instanceof ApiError;
}

/** The message of an error if it is about this field. */
export function messageAt(error: unknown, field: string): string | undefined {
  return isApiError(error) && error.field === field ? error.message : undefined;
}

/** The error, or null if one of these fields shows its message. */
export function errorBesides(error: unknown, fields: readonly string[]): unknown {
  return isApiError(error) && fields.includes(error.field ?? "") ? null : error;
}

export function noAnswer(cause: unknown, method: string, path: string): ApiError {
  const message = "The server did not answer. Check that it runs and that this computer can reach it, then try again.";
  return Object.assign(new ApiError(0, "no_answer", message, { method, path }), { cause });
}

export async function errorOf(response: Response, method: string, path: string): Promise<ApiError> {
  const text = await response.text().catch(() => "");
  // If the body is not JSON, it may be the page of a proxy.
  const body = readJson(text) ?? text;
  const known = isJsonObject(body) ? body : {};
  const string = (key: string) => (typeof known[key] === "string" ? (known[key] as string) : undefined);
  const retryAfter = Number(response.headers.get("retry-after") ?? response.headers.get("x-retry-after") ?? Number.NaN);
  const issues = Array.isArray(known.issues)
    ? known.issues.filter(isJsonObject).map((issue) => ({ path: String(issue.path ?? issue.field ?? ""), message: String(issue.message ?? "") }))
    : undefined;
  return new ApiError(
    response.status,
    string("error") ?? string("code") ?? `http_${response.status}`,
    string("message") ?? `The server answered ${response.status} ${response.statusText}`.trim() + ".",
    {
      method,
      path,
      body,
      ...(string("field") === undefined ? {} : { field: string("field")! }),
      ...(response.headers.get("x-request-id") === null ? {} : { requestId: response.headers.get("x-request-id")! }),
      ...(Number.isFinite(retryAfter) ? { retryAfterSeconds: retryAfter } : {}),
      ...(issues === undefined ? {} : { issues }),
    },
  );
}

/** The message of any thrown value. */
export function messageOf(error: unknown): string {
  return error instanceof Error ? error.message : String(error);
}

/** An error in words: what happened, the reason in the server's words, and what to do next. */
export interface DescribedError {
  title: string;
  what: string;
  todo?: string;
}

/** The maximum length of a sentence that can be a title. */
const TITLE_CHARACTERS = 160;

/**
 * Splits the message of a refusal into its first sentence (without the full stop) and the rest. The server's sentence names the missing
 * permission. This code does not parse it to find the permission, because messages may change. A full stop between backticks belongs to a
 * name.
 */
function refusal(message: string): DescribedError {
  const [, first, rest] = /^((?:`[^`]*`|[^`.]|\.(?!\s|$))+)\.(?:\s+([^]*))?$/.exec(message) ?? [];
  return first === undefined || first.length > TITLE_CHARACTERS ? { title: "You may not do this", what: message } : { title: first, what: rest ?? "" };
}

export function describeError(error: unknown): DescribedError {
  if (!isApiError(error)) return { title: "Something in this page failed", what: messageOf(error), todo: "Reload the page. If it happens again, report it with this sentence." };
  const what = error.message;
  switch (error.status) {
    case 0:
      return { title: "The server does not answer", what, todo: "What you typed stays here." };
    case 401:
      return { title: "You are not signed in", what };
    case 403:
      // Other codes are not about permissions.
      return error.code === "forbidden"
        ? { ...refusal(what), todo: "Somebody who may update roles can give you a missing permission, on the Roles page." }
        : { title: "You may not do this", what };
    case 404:
      return { title: "There is nothing here", what };
    case 409:
      return { title: "This conflicts with what is there", what };
    case 412:
      return { title: "Somebody changed it in the meantime", what };
    case 413:
      return { title: "This is too large", what };
    case 429:
      return { title: "Too many requests", what };
    default:
      return error.status >= 500
        ? { title: "The server failed", what, todo: "Try again. If it happens again, look for the request id in the server's log." }
        : { title: "The server refused this", what };
  }
}

/** Sign-in through the better-auth client. The session is the HttpOnly cookie. Web storage keeps nothing of it. */
import { api, ok } from "./client";
import { ApiError } from "./errors";

const loaded = () => import("./auth-client").then(({ client }) => client);
type Client = Awaited<ReturnType<typeof loaded>>;

interface Outcome<Data> {
  data: Data | null;
  error: { status: number; code?: string | undefined; message?: string | undefined } | null;
}

/**
 * The page to which the server redirects from a mailed link that confirms an address. If the link is not valid, the page gets
 * `?error=INVALID_TOKEN` (`app/gate/refused-link.ts`).
 */
const START = "/admin";

/** Sends a request through the better-auth client. Its errors are the same as those of all other requests (`ApiError`). */
async function outcome<Data>(call: (client: Client, options: { onError: (context: { response: Response }) => void }) => Promise<Outcome<Data>>): Promise<Data> {
  let headers = new Headers();
  let answered: Outcome<Data>;
  try {
    answered = await call(await loaded(), { onError: ({ response }) => (headers = response.headers) });
  } catch (cause) {
    throw Object.assign(new ApiError(0, "no_answer", "The server did not answer. Check that it runs, then try again."), { cause });
  }
  const { data, error } = answered;
  if (error === null) return data as Data;
  const retryAfter = Number(headers.get("x-retry-after") ?? headers.get("retry-after") ?? Number.NaN);
  const requestId = headers.get("x-request-id");
  throw new ApiError(error.status, error.code ?? `http_${error.status}`, error.message ?? `The server answered ${error.status}.`, {
    ...(Number.isFinite(retryAfter) ? { retryAfterSeconds: retryAfter } : {}),
    ...(requestId === null ? {} : { requestId }),
  });
}

export const auth = {
  signIn: (person: { email: string; password: string; rememberMe?: boolean }) =>
    outcome((client, options) => client.signIn.email({ ...person, callbackURL: START }, options)),
  /**
   * If the server has a setup token, the first sign-up needs it as `setupToken`. If the person first has to confirm the address, `token` in
   * the response is null.
   */
  signUp: ({ setupToken, ...person }: { name: string; email: string; password: string; setupToken?: string }) =>
    outcome((client, options) => client.signUp.email({ ...person, callbackURL: START }, { ...options, ...(setupToken === undefined ? {} : { headers: { "x-setup-token": setupToken } }) })),
  /** The response is the same whether or not an account has the address. */
  requestPasswordReset: (email: string) => ok(api.POST("/api/auth/request-password-reset", { body: { email } })),
  /** Asks the server to mail a link that confirms the address. The link leads to a page of the console. */
  sendVerification: (email: string, callbackURL = START) => ok(api.POST("/api/auth/send-verification-email", { body: { email, callbackURL } })),
  signOut: () => outcome((client, options) => client.signOut({ fetchOptions: options })),
  updateName: (name: string) => outcome((client, options) => client.updateUser({ name }, options)),
  changePassword: (change: { currentPassword: string; newPassword: string; revokeOtherSessions?: boolean }) =>
    outcome((client, options) => client.changePassword(change, options)),
  /** `token` is the token of a link to set a password. */
  resetPassword: (reset: { newPassword: string; token: string }) => outcome((client, options) => client.resetPassword(reset, options)),
  sessions: () => ok(api.GET("/api/auth/list-sessions")),
  revokeSession: (id: string) => ok(api.POST("/api/auth/revoke-session", { body: { id } })),
  revokeOtherSessions: () => outcome((client, options) => client.revokeOtherSessions({ fetchOptions: options })),
};

// Simulated browsers with the unmodified better-auth client, and assertions about its results.
import assert from "node:assert/strict";
import { randomBytes } from "node:crypto";
import { createAuthClient } from "better-auth/client";
import { anonymousClient } from "better-auth/client/plugins";

const SESSION_COOKIE = /^(__Secure-)?svc\.session_token$/;

const baseURL = process.argv[2];
if (!baseURL) throw new Error("the first argument is the server's URL");
export const base = new URL(baseURL);

// ---- cookie jar ----------------------------------------------------------

export class CookieJar {
  #cookies = new Map();

  header() {
    return [...this.#cookies].map(([name, cookie]) => `${name}=${cookie.value}`).join("; ");
  }

  store(response) {
    for (const line of response.headers.getSetCookie()) {
      const [pair, ...attributes] = line.split(";").map((part) => part.trim());
      const split = pair.indexOf("=");
      const name = pair.slice(0, split);
      const expired = attributes.some((attribute) => /^max-age=0$/i.test(attribute));
      if (expired) this.#cookies.delete(name);
      else this.#cookies.set(name, { value: pair.slice(split + 1), attributes });
    }
  }

  session() {
    return [...this.#cookies].find(([name]) => SESSION_COOKIE.test(name))?.[1];
  }
}

export function browserFetch(jar) {
  return async (url, init = {}) => {
    const headers = new Headers(init.headers);
    headers.set("origin", base.origin);
    if (jar.header()) headers.set("cookie", jar.header());
    const response = await fetch(url, { ...init, headers });
    jar.store(response);
    return response;
  };
}

// ---- clients -------------------------------------------------------------

export function newClient(fetchOptions) {
  return createAuthClient({ baseURL: base.origin, plugins: [anonymousClient()], fetchOptions });
}

export function newBrowser() {
  const jar = new CookieJar();
  return { jar, client: newClient({ customFetchImpl: browserFetch(jar) }) };
}

export function bearerClient(token) {
  return newClient({ auth: { type: "Bearer", token } });
}

// ---- helpers -------------------------------------------------------------

export async function step(name, run) {
  try {
    await run();
  } catch (cause) {
    throw new Error(`step "${name}" failed: ${cause.message}`, { cause });
  }
  console.log(`ok ${name}`);
}

export const newPassword = () => `pw-${randomBytes(12).toString("hex")}`;

export function newAccount() {
  const id = randomBytes(8).toString("hex");
  return { name: `Client ${id}`, email: `client-${id}@example.com`, password: newPassword() };
}

export const credentials = ({ email, password }) => ({ email, password });

export function succeeded({ data, error }) {
  assert.equal(error, null, `expected success, got ${JSON.stringify(error)}`);
  return data;
}

export function refused({ data, error }, status, code) {
  assert.ok(error, `expected ${status} ${code}, got ${JSON.stringify(data)}`);
  assert.equal(error.status, status, `status of ${JSON.stringify(error)}`);
  assert.equal(error.code, code);
  assert.equal(error.error, code, "the code is repeated in `error`");
  assert.ok(error.message, "an error carries a message");
}

export async function currentSession({ client }) {
  return succeeded(await client.getSession());
}

export async function assertSignedOut(browser) {
  assert.equal(await currentSession(browser), null, "expected no session");
}

export async function tokenIsDead(token) {
  assert.equal(succeeded(await bearerClient(token).getSession()), null, "the token is still accepted");
}

export async function me(token) {
  const response = await fetch(new URL("/api/v1/me", base), { headers: { authorization: `Bearer ${token}` } });
  assert.equal(response.status, 200);
  return response.json();
}

export async function signUp(browser, account) {
  return succeeded(await browser.client.signUp.email(account));
}

export async function signIn(browser, account) {
  return succeeded(await browser.client.signIn.email(credentials(account)));
}

export async function signInGuest(browser) {
  return succeeded(await browser.client.signIn.anonymous());
}

export async function newSignedInBrowser(account) {
  const browser = newBrowser();
  return { ...browser, ...(await signIn(browser, account)) };
}

// Records the responses of better-auth itself, and prints the flows of `flows.mjs` as JSON. The same version prints the same bytes.
// Usage: npm ci && node record.mjs > recorded.json
//
// A flow runs on a new server with the options that it names in `servers`. A step is a request with its response and the mails that the
// server was asked to send, or a number of seconds that pass. Paths are below `/api/auth`. `browser` names the browser whose cookies the
// request sends. With null, it sends none.
// Random values have names in braces: `{session1.token}`, `{user1.id}`, `{guest1.email}`, `{mail1.token}`, `{date}`, `{signature}`.
import { createServer } from "node:http";
import { readFileSync } from "node:fs";
import { mock } from "node:test";
import { betterAuth } from "better-auth";
import { memoryAdapter } from "better-auth/adapters/memory";
import { toNodeHandler } from "better-auth/node";
import { anonymous, bearer } from "better-auth/plugins";
import { flows, servers } from "./flows.mjs";

const BASE = "http://localhost:3000";
const PREFIX = "/api/auth";
const BEGIN = Date.parse("2030-01-01T00:00:00Z");
const ISO_DATE = /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z$/;
const HEADERS = ["content-type", "location", "set-auth-token"];
const LINE_CHARS_MAX = 132;

// The environment must not change the recording. With `test`, better-auth would not check origins.
for (const name of Object.keys(process.env)) if (/^(BETTER_AUTH|AUTH)_/.test(name)) delete process.env[name];
process.env.NODE_ENV = "production";

// ---- the server ----------------------------------------------------------

function authOf(server, sent) {
  const mail = (kind) => async ({ user, newEmail, url, token }) => {
    sent.push({ kind, to: user.email, ...(newEmail && { newEmail }), url, token });
  };
  const sends = (option) => (server.sends.includes(option) ? { [option]: mail(option) } : {});
  return betterAuth({
    baseURL: BASE,
    basePath: PREFIX,
    secret: "the same secret in every recording, longer than needed",
    trustedOrigins: ["https://app.example.com"],
    database: memoryAdapter({ user: [], session: [], account: [], verification: [] }),
    emailAndPassword: { enabled: true, ...server.emailAndPassword, ...sends("sendResetPassword") },
    emailVerification: { ...server.emailVerification, ...sends("sendVerificationEmail") },
    user: {
      changeEmail: { ...server.changeEmail, ...sends("sendChangeEmailConfirmation") },
      deleteUser: { ...server.deleteUser, ...sends("sendDeleteAccountVerification") },
    },
    plugins: [anonymous(), bearer()],
    // A database with columns returns null for a missing value. With this hook, the server here does the same.
    databaseHooks: { user: { create: { before: async (user) => ({ data: { ...user, image: user.image ?? null } }) } } },
    rateLimit: { enabled: false },
    telemetry: { enabled: false },
    logger: { disabled: true },
    advanced: { cookiePrefix: "svc" },
  });
}

async function serve(auth) {
  const server = createServer(toNodeHandler(auth));
  await new Promise((resolve) => server.listen(0, "127.0.0.1", resolve));
  const close = () => {
    server.closeAllConnections();
    return new Promise((resolve) => server.close(resolve));
  };
  return { url: `http://127.0.0.1:${server.address().port}`, close };
}

// ---- values that differ from run to run ------------------------------------

/** Gives each random value a name when it first occurs, and then replaces the value with the name. */
class Names {
  #names = new Map();
  #counts = new Map();

  name(kind, value, suffix = "") {
    if (!this.#names.has(value)) {
      const count = (this.#counts.get(kind + suffix) ?? 0) + 1;
      this.#counts.set(kind + suffix, count);
      this.#names.set(value, `{${kind}${count}${suffix}}`);
    }
    return this.#names.get(value);
  }

  /** Replaces values in a text with their names. */
  hide(text) {
    if (ISO_DATE.test(text)) return "{date}";
    for (const [value, name] of this.#names) text = text.replaceAll(value, name);
    return text.replaceAll(BASE, "{base}").replaceAll(encodeURIComponent(BASE), "{encodedBase}");
  }

  /** Replaces names in a text with their values. */
  show(text) {
    for (const [value, name] of this.#names) text = text.replaceAll(name, value);
    text = text.replaceAll("{base}", BASE).replaceAll("{encodedBase}", encodeURIComponent(BASE));
    if (/\{(mail|user|session|guest)\d/.test(text)) throw new Error(`nothing has the name in ${text}`);
    return text;
  }

  /** Finds the random values in a body. */
  learn(body, within) {
    if (body === null || typeof body !== "object") return;
    for (const [key, value] of Object.entries(body)) {
      if (typeof value === "string") {
        if (key === "token") this.name("session", value, ".token");
        if (key === "userId" || (key === "id" && within === "user")) this.name("user", value, ".id");
        if (key === "id" && within === "session") this.name("session", value, ".id");
        if (key === "email" && body.isAnonymous) this.name("guest", value, ".email");
      }
      this.learn(value, key);
    }
  }

  hideIn(value) {
    if (typeof value === "string") return this.hide(value);
    if (Array.isArray(value)) return value.map((each) => this.hideIn(each));
    if (value === null || typeof value !== "object") return value;
    return Object.fromEntries(Object.entries(value).map(([key, each]) => [key, this.hideIn(each)]));
  }
}

// ---- one flow ------------------------------------------------------------

class Recording {
  #names = new Names();
  #jars = new Map();
  #seen = 0;
  steps = [];

  constructor(id, url, sent) {
    Object.assign(this, { id, url, sent });
  }

  /** Every flow has its own domain, so that all flows can run on one server. */
  address(name) {
    return `${name}@${this.id}.example.com`;
  }

  waitSeconds(seconds) {
    mock.timers.tick(seconds * 1000);
    this.steps.push({ waitSeconds: seconds });
  }

  /**
   * Sends a request, such as `POST /sign-in/email`. `browser` names the browser whose cookies it sends. Without a browser it sends none,
   * like a link that is opened elsewhere.
   */
  async step(what, browser, request, body) {
    // Two links made in the same second would be equal.
    mock.timers.tick(1000);
    const [method, path] = request.split(" ");
    const headers = { "user-agent": "recorder" };
    const jar = this.#jar(browser);
    if (jar.size > 0) headers.cookie = [...jar].map(([name, value]) => `${name}=${value}`).join("; ");
    if (method === "POST") Object.assign(headers, { origin: BASE, "content-type": "application/json" });
    const text = body === undefined ? undefined : this.#names.show(JSON.stringify(body));
    const answer = await fetch(this.url + PREFIX + this.#names.show(path), { method, headers, body: text, redirect: "manual" });
    const asked = { method, path, browser, ...(body !== undefined && { body }) };
    const mails = this.sent.slice(this.#seen).map((mail) => this.#mail(mail));
    this.#seen = this.sent.length;
    this.steps.push({ what, request: asked, response: await this.#answer(answer, jar), ...(mails.length > 0 && { mails }) });
  }

  #jar(browser) {
    if (browser === null) return new Map();
    if (!this.#jars.has(browser)) this.#jars.set(browser, new Map());
    return this.#jars.get(browser);
  }

  #mail({ token, url, ...mail }) {
    this.#names.name("mail", token, ".token");
    return this.#names.hideIn({ ...mail, url });
  }

  async #answer(answer, jar) {
    const text = await answer.text();
    const body = text === "" ? undefined : JSON.parse(text);
    this.#names.learn(body);
    const cookies = answer.headers.getSetCookie().map((line) => this.#cookie(line, jar));
    const present = HEADERS.filter((name) => answer.headers.has(name));
    const headers = Object.fromEntries(present.map((name) => [name, this.#header(name, answer.headers.get(name))]));
    return {
      status: answer.status,
      ...(present.length > 0 && { headers }),
      ...(cookies.length > 0 && { cookies }),
      ...(body !== undefined && { body: this.#names.hideIn(body) }),
    };
  }

  #header(name, value) {
    return name === "set-auth-token" ? this.#signed(value) : this.#names.hide(value);
  }

  /** A signed value consists of a session's token and a signature. */
  #signed(value) {
    const [token] = decodeURIComponent(value).split(".");
    return `${this.#names.name("session", token, ".token")}.{signature}`;
  }

  #cookie(line, jar) {
    const [pair, ...attributes] = line.split("; ");
    const [name, value] = [pair.slice(0, pair.indexOf("=")), pair.slice(pair.indexOf("=") + 1)];
    if (attributes.includes("Max-Age=0")) jar.delete(name);
    else jar.set(name, value);
    return [`${name}=${value && this.#signed(value)}`, ...attributes].join("; ");
  }
}

async function record({ id, about, server, run }) {
  mock.timers.enable({ apis: ["Date"], now: BEGIN });
  const sent = [];
  const { url, close } = await serve(authOf(servers[server], sent));
  const recording = new Recording(id, url, sent);
  try {
    await run(recording);
  } catch (cause) {
    throw new Error(`the flow ${id}, after ${recording.steps.length} steps: ${cause.message}`, { cause });
  } finally {
    await close();
    mock.timers.reset();
  }
  return { id, about, server, steps: recording.steps };
}

// ---- the text ------------------------------------------------------------

/** Prints JSON with short values on one line. */
function written(value, indent = "", taken = 0) {
  const line = spaced(value);
  const isPlain = value === null || typeof value !== "object";
  if (isPlain || indent.length + taken + line.length <= LINE_CHARS_MAX) return line;
  const deeper = `${indent}  `;
  const inner = Array.isArray(value)
    ? value.map((each) => deeper + written(each, deeper))
    : Object.entries(value).map(([key, each]) => `${deeper}${JSON.stringify(key)}: ${written(each, deeper, key.length + 4)}`);
  const [open, shut] = Array.isArray(value) ? "[]" : "{}";
  return `${open}\n${inner.join(",\n")}\n${indent}${shut}`;
}

function spaced(value) {
  if (Array.isArray(value)) return `[${value.map(spaced).join(", ")}]`;
  if (value === null || typeof value !== "object") return JSON.stringify(value);
  const pairs = Object.entries(value).map(([key, each]) => `${JSON.stringify(key)}: ${spaced(each)}`);
  return pairs.length === 0 ? "{}" : `{ ${pairs.join(", ")} }`;
}

const version = JSON.parse(readFileSync(new URL("../package.json", import.meta.resolve("better-auth")), "utf8")).version;
const recorded = [];
for (const flow of flows) recorded.push(await record(flow));
process.stdout.write(`${written({ recordedFrom: `better-auth ${version}`, servers, flows: recorded })}\n`);

import { deadline, hmacSha256, http, secrets, timingSafeEqual, toHex } from "@blockbase/sdk";

action("fail", () => {
  throw new TypeError("The printer is on fire.");
});

action("refuse", { input: { type: "object" } }, ({ code }) => {
  throw new HandlerError(code, "No.", { why: "because" });
});

action("settle", async () => {
  const began = Date.now();
  const both = await Promise.all([1, (async () => 2)()]);
  await new Promise((resolve) => setTimeout(resolve, 30));
  const letters: string[] = [];
  for await (const letter of letterByLetter("ab")) letters.push(letter);
  const caught = await Promise.reject(new Error("caught")).catch((error) => error.message);
  return { both, letters, caught, waited: Date.now() - began >= 29 };
});

async function* letterByLetter(text: string) {
  yield* text;
}

action("reject", async () => {
  await null;
  throw new HandlerError("conflict", "Too late.");
});

action("hang", () => new Promise(() => {}));

// What the build draws or keeps must not change what a call draws.
const [drawnAtTheBuild, kept] = [Math.random(), Math.random];

action("draw", () => {
  console.warn("drawn", { at: new Date(0), list: [1, "two"] });
  const bytes = Array.from(crypto.getRandomValues(new Uint8Array(16)));
  return { number: Math.random(), kept: kept(), bytes, uuid: crypto.randomUUID(), now: Date.now(), drawnAtTheBuild };
});

action("sign", { input: { type: "object" } }, ({ key, text }) => ({
  signature: toHex(hmacSha256(key, text)),
  bytes: new TextEncoder().encode(text).length,
  left: deadline.remainingMs() > 0,
}));

action("records", { input: { type: "object" } }, ({ id }) => {
  const task = data.get<{ title: string }>("task", id);
  const missing = data.get("task", "01a1fd35-a2b2-7324-8e3c-28e87a2e40f9");
  const page = data.query<{ title: string }>("task", { filters: [{ field: "title", value: "bread" }] });
  const either = data.query("task", { where: { _or: [{ title: { in: ["butter", "bread"] } }, { done: true }] } });
  const neither = data.query("task", { where: { _not: { title: { ilike: "BREAD" } } } });
  const { value } = data.aggregate("task", { fn: "count" });
  const [changed] = data.batch([{ op: "update", object: "task", id, values: { done: true } }]);
  let refused: unknown;
  try {
    data.create("task", { title: "eggs" });
  } catch (error) {
    if (error instanceof HandlerError) refused = error.code;
  }
  const found = [page, either, neither].map((page) => page.data.length);
  return { title: task?.title, missing, found, total: page.pagination.totalCount, value, done: changed.done, refused };
});

action("conditions", () => {
  const open: data.Condition = { done: false, "project.owner.name": { ilike: "an" } };
  const page = data.query<{ title: string }>("task", { where: open, sort: "-created_at" });
  const books = data.query("book", { where: { _not: { lent: true } } });
  const projects = data.query("project", { where: { task_by_project: { some: { done: true } } } });
  const both = { every: { title: { ilike: "a" } }, none: { done: true } };
  const idle = data.query("project", { where: { task_by_project: both } });
  const { value } = data.aggregate("task", { fn: "count", where: { "project.owner.name": "Ann" } });
  return {
    open: page.data.map(({ title }) => title),
    books: books.data.map(({ title }) => title),
    projects: projects.data.map(({ name }) => name),
    idle: idle.data.map(({ name }) => name),
    counted: value,
  };
});

// The type of a condition refuses this: `_or` has a list.
// @ts-expect-error
const withoutList: data.Condition = { _or: {} };

action("misuse", () => {
  const nothing: any = undefined;
  const said = [];
  for (const misuse of [() => data.get("task", nothing), () => data.create("task", nothing), () => data.deleteMany("task", nothing)]) {
    try {
      misuse();
    } catch (error: any) {
      said.push(error.message);
    }
  }
  throw new HandlerError("conflict", said.join(" "), 1n);
});

hook("signed", async (request) => {
  const expected = toHex(hmacSha256(secrets.get("SIGNING_KEY"), request.body));
  if (!timingSafeEqual(request.headers.get("X-Signature") ?? "", expected)) return { status: 401 };
  if (request.params.has("quiet")) return;
  if (request.params.has("fail")) throw new Error("A detail for nobody.");
  return { status: 201, headers: { "x-kind": request.json().kind }, body: "taken" };
});

hook("bytes", (request) => ({ body: request.body }));

action("fetch", { input: { type: "object" } }, ({ url }) => {
  const response = http.post(url, { hello: "you" }, { headers: { "x-from": "a block" } });
  return { status: response.status, ok: response.ok, kind: response.headers.get("Content-Type"), text: response.text() };
});

// What one instance keeps. It passes to a later call only if the manifest asks for reuse.
let counted = 0;
let left: Promise<void> | undefined;
const ranLate: string[] = [];

action("count", () => ({ counted: ++counted, ranLate }));

// Leaves timers, and a promise that only one of them settles.
action("leave", () => {
  const late = (what: string) => () => {
    ranLate.push(what);
  };
  setTimeout(late("a timer"), 0);
  left = new Promise<void>((resolve) => setTimeout(resolve, 0)).then(late("a reaction"));
  return { counted: ++counted };
});

action("wait_for_what_was_left", () => left);

action("nap", async () => {
  await new Promise((resolve) => setTimeout(resolve, 5));
  return { counted: ++counted };
});

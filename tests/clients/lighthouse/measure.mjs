// Measures the console with Lighthouse 12 (desktop preset), and prints the median of five runs. It fails if a budget is exceeded.
// Usage: node measure.mjs <base_url>
import assert from "node:assert/strict";
import { launch } from "chrome-launcher";
import lighthouse, { desktopConfig } from "lighthouse";

const RUNS = 5;
const BUDGETS = { performance: 0.95, accessibility: 1, "best-practices": 1 };
/** The times of the median run to print, by their audits. */
const TIMES = { "first-contentful-paint": "first paint", "largest-contentful-paint": "largest paint", "total-blocking-time": "blocked" };

const base = process.argv[2];
if (!base) throw new Error("usage: node measure.mjs <base_url>");

const person = { name: "Ada Admin", email: "admin@example.com", password: "correct horse battery" };
const post = (path, body, headers = {}) => fetch(base + path, { method: "POST", headers: { "content-type": "application/json", ...headers }, body: JSON.stringify(body) });
let signedIn = await post("/api/auth/sign-in/email", person);
if (!signedIn.ok) signedIn = await post("/api/auth/sign-up/email", person);
assert.ok(signedIn.ok, await signedIn.clone().text());
const cookie = signedIn.headers.getSetCookie()[0].split(";")[0];

// Home and a table need data. If there is none yet, this creates an object with a page of records.
const authorization = `Bearer ${(await signedIn.json()).token}`;
const object = await post("/api/v1/objects", { name: "order", fields: [{ name: "title", type: "text" }, { name: "amount", type: "currency" }, { name: "due", type: "date" }] }, { authorization });
if (object.ok) {
  const records = await post("/api/v1/data/order/bulk", { data: Array.from({ length: 60 }, (_, at) => ({ title: `Order ${at}`, amount: `${at}.50`, due: "2026-01-01" })) }, { authorization });
  assert.ok(records.ok, await records.text());
} else assert.equal(object.status, 409, await object.text());

const chrome = await launch({
  chromePath: process.env.CHROMIUM ?? "/usr/bin/chromium",
  chromeFlags: ["--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-background-networking", "--disable-component-update", "--disable-sync"],
});
try {
  const pages = [
    ["sign-in", "/admin", {}],
    ["home", "/admin", { Cookie: cookie }],
    ["records", "/admin/data/order", { Cookie: cookie }],
  ];
  const missed = [];
  for (const [name, path, extraHeaders] of pages) {
    const scores = Object.fromEntries(Object.keys(BUDGETS).map((category) => [category, []]));
    const times = Object.fromEntries(Object.keys(TIMES).map((audit) => [audit, []]));
    const failing = new Set();
    const median = (all) => [...all].sort((one, other) => one - other)[Math.floor(all.length / 2)];
    for (let run = 0; run < RUNS; run++) {
      const { lhr } = await lighthouse(base + path, { port: chrome.port, onlyCategories: Object.keys(BUDGETS), extraHeaders, logLevel: "error" }, desktopConfig);
      // If a page never comes to rest, Lighthouse measures it at its time limit. A warning reports that.
      for (const warning of lhr.runWarnings) missed.push(`${name}: ${warning}`);
      for (const [category, all] of Object.entries(scores)) all.push(lhr.categories[category].score ?? 0);
      for (const [audit, all] of Object.entries(times)) all.push(lhr.audits[audit].numericValue);
      for (const { id, score, displayValue } of Object.values(lhr.audits)) if (score !== null && score < 0.9) failing.add(`${id} ${displayValue ?? ""}`.trim());
    }
    for (const [category, all] of Object.entries(scores)) {
      const holds = median(all) >= BUDGETS[category];
      console.log(`${holds ? "ok" : "not ok"} ${name}: ${category} ${median(all)} (${all.join(", ")})`);
      if (!holds) missed.push(`${name}: ${category} is ${median(all)}, less than ${BUDGETS[category]}; look at ${[...failing].join(", ")}`);
    }
    console.log(`   ${name}: ${Object.entries(times).map(([audit, all]) => `${TIMES[audit]} ${Math.round(median(all))} ms`).join(", ")}`);
  }
  assert.deepEqual(missed, []);
} finally {
  chrome.kill();
}

// Measures the console with Lighthouse 12, desktop preset, and prints the median of five runs. It fails past the budgets.
// Usage: node measure.mjs <base_url>
import assert from "node:assert/strict";
import { launch } from "chrome-launcher";
import lighthouse, { desktopConfig } from "lighthouse";

const RUNS = 5;
const BUDGETS = { performance: 0.95, accessibility: 1, "best-practices": 1 };

const base = process.argv[2];
if (!base) throw new Error("usage: node measure.mjs <base_url>");

const person = { name: "Ada Admin", email: "admin@example.com", password: "correct horse battery" };
const post = (path, body) => fetch(base + path, { method: "POST", headers: { "content-type": "application/json" }, body: JSON.stringify(body) });
let signedIn = await post("/api/auth/sign-in/email", person);
if (!signedIn.ok) signedIn = await post("/api/auth/sign-up/email", person);
assert.ok(signedIn.ok, await signedIn.clone().text());
const cookie = signedIn.headers.getSetCookie()[0].split(";")[0];

const chrome = await launch({
  chromePath: process.env.CHROMIUM ?? "/usr/bin/chromium",
  chromeFlags: ["--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-background-networking", "--disable-component-update", "--disable-sync"],
});
try {
  const pages = [
    ["sign-in", {}],
    ["home", { Cookie: cookie }],
  ];
  for (const [name, extraHeaders] of pages) {
    const scores = Object.fromEntries(Object.keys(BUDGETS).map((category) => [category, []]));
    const failing = new Set();
    for (let run = 0; run < RUNS; run++) {
      const { lhr } = await lighthouse(`${base}/admin`, { port: chrome.port, onlyCategories: Object.keys(BUDGETS), extraHeaders, logLevel: "error" }, desktopConfig);
      for (const [category, all] of Object.entries(scores)) all.push(lhr.categories[category].score ?? 0);
      for (const { id, score, displayValue } of Object.values(lhr.audits)) if (score !== null && score < 0.9) failing.add(`${id} ${displayValue ?? ""}`.trim());
    }
    for (const [category, all] of Object.entries(scores)) {
      const median = all.sort((one, other) => one - other)[Math.floor(RUNS / 2)];
      console.log(`ok ${name}: ${category} ${median} (${all.join(", ")})`);
      assert.ok(median >= BUDGETS[category], `${name}: ${category} is ${median}, less than ${BUDGETS[category]}; look at ${[...failing].join(", ")}`);
    }
  }
} finally {
  chrome.kill();
}

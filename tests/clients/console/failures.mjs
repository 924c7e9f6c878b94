// A server that refuses, fails, is slow, or does not answer. Each screen shows this in its place, and recovers.
import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { test } from "node:test";
import { axe, base, intercept, open, settled, tryAgain } from "./harness.mjs";
import { SCREENS, owner } from "./screens.mjs";

const REQUEST_ID = "e2e0";
/** The responses of the server, and what the screen shows for each. */
const ANSWERS = [
  { name: "403", answer: { status: 403, body: { error: "forbidden", message: "You need the permission to read `things`." } }, says: /^You need the permission to read things\.?$/ },
  { name: "429", answer: { status: 429, headers: { "retry-after": "2" }, body: { error: "rate_limited", message: "Too many requests." } }, says: /Wait \d seconds?, then try again|You can try again now/ },
  { name: "500", answer: { status: 500, body: { error: "internal", message: "Something went wrong inside." } }, says: /Something went wrong inside/ },
  { name: "no answer", answer: "abort", says: /The server did not answer/ },
];

const exactly = (asks) => (url) => (asks instanceof RegExp ? asks.test(url.pathname) : url.pathname === asks);

test("every screen has its failures tried, here, on another screen or in another test, or says why not", (context) => {
  const tried = new Set(SCREENS.filter(({ asks }) => asks !== undefined).map(({ name }) => name));
  const isTest = ([file, title]) => readFileSync(new URL(file, import.meta.url), "utf8").includes(`test(${JSON.stringify(title)}, async`);
  for (const { name, asks, failsLike, triedBy, notTried } of SCREENS) {
    if (asks !== undefined) continue;
    assert.ok(tried.has(failsLike) || (triedBy !== undefined && isTest(triedBy)) || notTried !== undefined, `${name} has neither asks, nor a screen that it fails like, nor a test, nor a reason`);
    context.diagnostic(`${name}: ${notTried ?? triedBy?.join(": ") ?? `fails like ${failsLike}`}`);
  }
});

for (const { name, path, ready, asks, method = "GET" } of SCREENS.filter(({ asks }) => asks !== undefined)) {
  test(`${name}: what went wrong is said in its place, and the screen comes back`, async () => {
    const page = await open("/admin/account", { as: owner, expect: [/status of (401|403|429|500)/, /ERR_CONNECTION_REFUSED/] });
    await page.getByText("this one").waitFor();
    const address = `${base}/admin${path}`;
    const frame = page.getByRole("navigation", { name: "Main" });
    for (const { name: which, answer, says } of ANSWERS) {
      let asked = 0;
      const end = await intercept(page, exactly(asks), () => (asked++, answer), { method });
      await page.goto(address);
      await page.getByText(says).first().waitFor().catch((error) => assert.fail(`${which}, asked ${asked} times: ${error.message}`));
      await frame.waitFor();
      if (which === "500") {
        await page.getByText(REQUEST_ID).first().waitFor();
        await settled(page);
        await axe(page, `${name}, ${which}`);
      }
      await end();
      await tryAgain(page);
      await ready(page);
    }

    // If the session has ended, the sign-in appears over the page, and the page then continues.
    const end401 = await intercept(page, exactly(asks), { status: 401, body: { error: "unauthenticated", message: "Sign in." } }, { method });
    await page.goto(address);
    const dialog = page.getByRole("dialog", { name: "Your session has ended" });
    await dialog.getByLabel("Password", { exact: true }).fill(owner.password);
    await end401();
    await dialog.getByRole("button", { name: "Sign in", exact: true }).click();
    await dialog.waitFor({ state: "hidden" });
    await ready(page);

    // With a slow response, the frame is shown, a part says that it is loading, and nothing is shown as an error.
    let letThrough;
    const held = new Promise((resolve) => (letThrough = resolve));
    const endSlow = await intercept(page, exactly(asks), async () => void (await held), { method });
    await page.goto(address);
    await page.locator('[aria-busy="true"]').first().waitFor({ state: "attached" });
    await frame.waitFor();
    assert.equal(await page.getByRole("alert").count(), 0, "waiting is no error");
    letThrough();
    await ready(page);
    await endSlow();
  });
}

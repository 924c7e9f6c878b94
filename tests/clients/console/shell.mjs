// The frame: the palette, the rail, the keyboard, the themes, the account, and servers that fail.
import assert from "node:assert/strict";
import { test } from "node:test";
import { admin, axe, base, call, copyAs, focused, heading, hostile, intercept, look, must, open, person, problemsOf, settled, signIn, until } from "./harness.mjs";


test("somebody with one grant sees that object and no administration", async () => {
  const owner = await admin();
  await call(owner, "POST", "/api/v1/objects", { name: "note", label: "Note", fields: [{ name: "text", type: "text" }] });
  await call(owner, "POST", "/api/v1/objects", { name: "secret_thing", fields: [{ name: "text", type: "text" }] });
  const reader = await person(owner, "Rita Reader", [{ resource: "note", actions: ["read"] }]);
  const page = await open("/admin/account", { as: reader, expect: [/status of 403/] });
  const rail = page.getByRole("navigation", { name: "Main" });
  await rail.getByRole("link", { name: "note" }).waitFor();
  assert.equal(await rail.getByRole("link", { name: "secret_thing" }).count(), 0);
  for (const name of ["Events", "Users", "Roles", "Keys", "Blocks", "Settings"]) assert.equal(await rail.getByRole("link", { name, exact: true }).count(), 0, name);
  // Without read on objects, the records take their fields from the OpenAPI document, which the API screen shows.
  await must(owner, "POST", "/api/v1/data/note", { text: "for Rita" });
  await rail.getByRole("link", { name: "note" }).click();
  await page.getByRole("grid").getByText("for Rita").waitFor();
  await rail.getByRole("link", { name: "API", exact: true }).click();
  await page.getByLabel("Find an operation").fill("/data/note");
  await page.getByRole("navigation", { name: "Operations" }).getByRole("link", { name: "/api/v1/data/note" }).first().waitFor();
});

test("the palette finds screens, objects, actions and a record by its id", async () => {
  const owner = await admin();
  await call(owner, "POST", "/api/v1/objects", { name: "note", label: "Note", fields: [{ name: "text", type: "text" }] });
  const made = await must(owner, "POST", "/api/v1/data/note", { text: "found by its id" });
  const page = await open("/admin/account", { as: owner });
  await heading(page, "Your account").waitFor();
  await page.getByRole("link", { name: "note", exact: true }).first().waitFor();
  await page.keyboard.press("Control+k");
  const search = page.getByRole("combobox", { name: "Search" });
  await search.waitFor();
  await look(page, "palette");
  await search.fill("theme");
  await page.getByRole("option", { name: "Dark theme" }).waitFor();
  await search.fill("not a thing at all");
  await page.getByText("Nothing is named so.").waitFor();
  await search.fill("note");
  await page.getByRole("option", { name: /^note Records/ }).waitFor();
  await page.keyboard.press("Enter");
  await page.waitForURL(/\/admin\/data\/note$/);
  await page.keyboard.press("Control+k");
  await search.fill(made.data.id);
  await page.getByRole("option", { name: new RegExp(made.data.id) }).waitFor();
  await page.keyboard.press("Enter");
  await page.waitForURL(new RegExp(`/admin/data/note/${made.data.id}`));
  await page.keyboard.press("Control+k");
  await search.fill("00000000-0000-7000-8000-00000000dead");
  await page.getByText("No object that you may read has a record with this id.").waitFor();
  await page.keyboard.press("Escape");
  await search.waitFor({ state: "hidden" });
});

test("everything of the frame works with the keyboard alone", async () => {
  const owner = await admin();
  const page = await open("/admin/account", { as: owner });
  await heading(page, "Your account").waitFor();
  await settled(page);
  await page.keyboard.press("Tab");
  assert.equal(await focused(page), "Skip to the content");
  await page.keyboard.press("Tab");
  await page.keyboard.press("Tab");
  assert.equal(await focused(page), "Fold the menu");
  await page.keyboard.press("Enter");
  assert.equal(await focused(page), "Unfold the menu");
  await axe(page, "folded rail");
  await page.keyboard.press("Enter");
  await page.keyboard.press("Tab");
  assert.equal(await focused(page), "Home");
  const outline = await page.evaluate(() => getComputedStyle(document.activeElement).outlineStyle);
  assert.equal(outline, "solid", "focus is visible");
  // The account menu opens, can be walked through, and closes. The focus then returns.
  const account = page.getByRole("button", { name: /Ada Admin/ });
  await account.focus();
  await page.keyboard.press("Enter");
  await page.getByRole("menuitem", { name: "Your account" }).waitFor();
  await axe(page, "account menu");
  await page.keyboard.press("Escape");
  await page.getByRole("menu").waitFor({ state: "hidden" });
  await until("the focus is back", async () => (await focused(page)).includes("Ada Admin"));
  // After the palette closes, the focus returns to where it was.
  await page.keyboard.press("Control+k");
  await page.getByRole("combobox", { name: "Search" }).waitFor();
  await page.keyboard.press("Escape");
  await until("the focus is back", async () => (await focused(page)).includes("Ada Admin"));
});

test("the chosen theme holds after a reload and is there before the first paint", async () => {
  const owner = await admin();
  const page = await open("/admin/account", { as: owner, theme: "light" });
  await page.getByRole("button", { name: /Ada Admin/ }).click();
  await page.getByRole("menuitemradio", { name: "Dark" }).click();
  await page.waitForFunction(() => document.documentElement.dataset.mantineColorScheme === "dark");
  await page.addInitScript(() => document.addEventListener("DOMContentLoaded", () => (window.__schemeAtStart = document.documentElement.dataset.mantineColorScheme)));
  await page.reload();
  await heading(page, "Your account").waitFor();
  assert.equal(await page.evaluate(() => window.__schemeAtStart), "dark");
  assert.equal(await page.evaluate(() => getComputedStyle(document.body).backgroundColor), "rgb(16, 16, 20)");
});

test("the account page changes the name and the password, and ends other sessions", async () => {
  const owner = await admin();
  const other = await person(owner, "Peter Password");
  const elsewhere = await signIn(other);
  await signIn(other);
  const page = await open("/admin/account", { as: other, expect: [/400/] });
  await page.getByText("this one").waitFor();
  await look(page, "account");
  assert.match(await copyAs(page, "curl"), /\/api\/v1\/me'/);
  await page.getByLabel("Current password", { exact: true }).fill("not the password");
  await page.getByLabel("New password", { exact: true }).fill("a better password");
  await page.getByRole("button", { name: "Change password" }).click();
  await page.getByLabel("Current password", { exact: true }).and(page.locator('[aria-invalid="true"]')).waitFor();
  await page.getByLabel("Current password", { exact: true }).fill(other.password);
  await page.getByRole("button", { name: "Change password" }).click();
  await page.getByText("Your password is changed, and your other sessions have ended.").waitFor();
  const ended = await call(elsewhere, "GET", "/api/v1/me");
  assert.ok(ended.status === 401 || ended.body.authenticated === false);
  await page.getByRole("button", { name: "Sign out" }).first().click();
  await heading(page, "Sign in").waitFor();
  await page.goBack().catch(() => undefined);
  assert.equal(await page.getByRole("navigation", { name: "Main" }).count(), 0);
});

test("the account page ends another session of the user", async () => {
  const owner = await admin();
  const other = await person(owner, "Lena Lost");
  const lost = await signIn(other, { headers: { "user-agent": "lost-phone" } });
  const kept = await signIn(other, { headers: { "user-agent": "kept-tablet" } });
  const page = await open("/admin/account", { as: other });
  const end = page.getByRole("button", { name: "End the session of lost-phone" });
  await end.click();
  await end.waitFor({ state: "detached" });
  await page.getByRole("button", { name: "End the session of kept-tablet" }).waitFor();
  await page.getByText("this one").waitFor();
  const ended = await call(lost, "GET", "/api/v1/me");
  assert.ok(ended.status === 401 || ended.body.authenticated === false);
  assert.equal((await must(kept, "GET", "/api/v1/me")).authenticated, true);
});

test("at 360 px the rail is a drawer", async () => {
  const owner = await admin();
  const page = await open("/admin/account", { as: owner, width: 360 });
  await page.getByRole("button", { name: "Open the menu" }).click();
  const drawer = page.getByRole("dialog");
  await drawer.getByRole("link", { name: "Roles" }).waitFor();
  await look(page, "drawer", { widths: [360] });
  await drawer.getByRole("link", { name: "Roles" }).click();
  await heading(page, "Roles").waitFor();
  await drawer.waitFor({ state: "hidden" });
});

test("an address that leads nowhere says so", async () => {
  const page = await open("/admin/no/such/page", { as: await admin() });
  await page.getByRole("heading", { name: "There is no page at this address" }).waitFor();
  await look(page, "not-found");
});

test("a server that does not answer, fails, or is slow is told, with the frame in its place", async () => {
  const owner = await admin();
  const page = await open("/admin/account", { as: owner, expect: [/500/, /ERR_CONNECTION_REFUSED/, /ERR_FAILED/] });
  await heading(page, "Your account").waitFor();
  const end = await intercept(page, "/api/v1/me", { status: 500, body: { error: "internal_error", message: "Something failed." } });
  await page.reload();
  await page.getByText("The console could not be opened").waitFor();
  await page.getByText("e2e0").first().waitFor();
  await look(page, "server-failed");
  await end();
  await page.getByRole("button", { name: "Try again" }).click();
  await heading(page, "Your account").waitFor();
  const silent = await intercept(page, "/api/v1/me", "abort");
  await page.reload();
  await page.getByText("The server did not answer").waitFor();
  await silent();
  const slow = await intercept(page, "/api/v1/me", { delayMs: 800 });
  await page.reload();
  await page.locator("main").waitFor();
  assert.equal(await page.getByRole("alert").count(), 0);
  await heading(page, "Your account").waitFor();
  await slow();
});

test("the event stream says when it is live and when it is not", async () => {
  const owner = await admin();
  const page = await open("/admin/account", { as: owner, expect: [/ERR_/, /500/] });
  await page.locator('[data-live="live"]').waitFor();
  await page.context().setOffline(true);
  await page.locator('[data-live="offline"], [data-live="reconnecting"]').waitFor();
  await page.context().setOffline(false);
  await page.locator('[data-live="live"]').waitFor();
  assert.deepEqual(problemsOf(page), []);
});

test("the page's policy is the strict one, and pages are not kept", async () => {
  const answer = await fetch(`${base}/admin/roles`);
  const policy = answer.headers.get("content-security-policy") ?? "";
  const nonce = /'nonce-([^']+)'/.exec(policy)?.[1] ?? "";
  assert.equal(
    policy.replace(nonce, "N"),
    "default-src 'none'; script-src 'self'; style-src 'self' 'nonce-N'; img-src 'self' data: blob:; font-src 'self'; connect-src 'self'; worker-src 'self'; base-uri 'none'; form-action 'self'; frame-ancestors 'none'",
  );
  assert.ok(nonce.length >= 16);
  assert.equal(answer.headers.get("cache-control"), "no-store");
  const html = await answer.text();
  assert.ok(html.includes(`nonce="${nonce}"`));
  assert.doesNotMatch(html, /\{nonce\}|style=|<script(?![^>]*src=)/);
  const again = await (await fetch(`${base}/admin`)).text();
  assert.ok(!again.includes(nonce), "a fresh nonce for each page");
});

test("the rail stays usable with 500 objects that have hostile labels", async () => {
  const owner = await admin();
  const labels = Object.values(hostile);
  const objects = Array.from({ length: 500 }, (_, index) => ({ name: `object_${String(index).padStart(3, "0")}`, label: labels[index % labels.length], fields: [] }));
  const page = await open("/admin/account", { as: owner });
  await intercept(page, "/api/v1/schema", { body: { data: { version: 9, objects, relationships: [] } } });
  await page.reload();
  const rail = page.getByRole("navigation", { name: "Main" });
  await rail.getByRole("link", { name: "object_000" }).waitFor();
  await rail.getByText("400 more. Find one by its name above.").waitFor();
  await look(page, "rail-500", { widths: [1280] });
  await rail.getByRole("textbox", { name: "Find an object" }).fill("object_49");
  await rail.getByRole("link", { name: "object_000" }).waitFor({ state: "detached" });
  assert.equal(await rail.getByRole("link", { name: /object_49/ }).count(), 10);
  await page.keyboard.press("Control+k");
  await page.getByRole("combobox", { name: "Search" }).fill("498");
  await page.getByRole("option", { name: /object_498 Records/ }).waitFor();
  await look(page, "palette-500", { widths: [360] });
});

test("the event stream goes on after the last event, and misses none while it was away", async () => {
  const owner = await admin();
  const page = await open("/admin/account", { as: owner, expect: [/ERR_/] });
  await page.locator('[data-live="live"]').waitFor();
  const rail = page.getByRole("navigation", { name: "Main" });
  await must(owner, "POST", "/api/v1/objects", { name: "seen_live", fields: [{ name: "text", type: "text" }] });
  await rail.getByRole("link", { name: "seen_live" }).waitFor();
  const again = page.waitForRequest((request) => /events\/stream\?.*since=/.test(request.url()));
  await page.context().setOffline(true);
  await page.locator('[data-live="offline"], [data-live="reconnecting"]').waitFor();
  await must(owner, "POST", "/api/v1/objects", { name: "made_meanwhile", fields: [{ name: "text", type: "text" }] });
  await page.context().setOffline(false);
  await again;
  await rail.getByRole("link", { name: "made_meanwhile" }).waitFor();
});

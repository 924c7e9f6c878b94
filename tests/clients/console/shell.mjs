// The frame: first run, sign-in and its errors, the claim, sessions that end, the palette, deep links, the keyboard, themes.
import assert from "node:assert/strict";
import { before, test } from "node:test";
import { ADMIN, absent, admin, axe, base, call, focused, hostile, intercept, look, must, open, person, problemsOf, settled, signIn, until } from "./harness.mjs";

const { CLAIM_URL, SETUP_URL } = process.env;
const noInstance = absent.includes("/api/v1/instance") && "the server has no /api/v1/instance";
const noPermissions = absent.includes("/api/v1/me/permissions") && "the server has no /api/v1/me/permissions";

const signInButton = (page) => page.getByRole("button", { name: "Sign in", exact: true });
const heading = (page, name) => page.getByRole("heading", { name, level: 1 });

test("a fresh server with a setup token asks for it, refuses a wrong one, and makes the admin", { skip: noInstance }, async () => {
  const page = await open("/admin/roles", { at: SETUP_URL, expect: [/403/] });
  await heading(page, "Create the admin account").waitFor();
  await look(page, "first-run");
  await page.getByLabel("Setup token").fill("not the token");
  await page.getByLabel("Name").fill(ADMIN.name);
  await page.getByLabel("Email").fill(ADMIN.email);
  await page.getByLabel("Password", { exact: true }).fill(ADMIN.password);
  await page.getByRole("button", { name: "Create admin account" }).click();
  await page.getByLabel("Setup token").and(page.locator('[aria-invalid="true"]')).waitFor();
  await page.getByLabel("Setup token").fill("let-me-in-please-1234");
  await page.getByRole("button", { name: "Create admin account" }).click();
  // The deep link outlives the first run.
  await heading(page, "Roles").waitFor();
});

test("a fresh server makes its first account the admin, and says what is wrong with a password", { skip: noInstance }, async () => {
  const page = await open("/admin", { expect: [/400/] });
  await heading(page, "Create the admin account").waitFor();
  await page.getByLabel("Name").fill(ADMIN.name);
  await page.getByLabel("Email").fill(ADMIN.email);
  await page.getByLabel("Password", { exact: true }).fill("password1");
  await page.getByRole("button", { name: "Create admin account" }).click();
  await page.getByLabel("Password", { exact: true }).and(page.locator('[aria-invalid="true"]')).waitFor();
  await page.getByLabel("Password", { exact: true }).fill(ADMIN.password);
  await page.getByRole("button", { name: "Create admin account" }).click();
  await page.getByRole("navigation", { name: "Main" }).getByRole("link", { name: "Users" }).waitFor();
});

let me;
before(async () => {
  if (noInstance) me = await admin();
});
const asAdmin = async () => (me ??= await admin());

test("sign-in keeps the deep link, says what is wrong, and leaves nothing in web storage", async () => {
  await asAdmin();
  const page = await open("/admin/account?x=1", { expect: [/401/] });
  await heading(page, "Sign in").waitFor();
  await look(page, "sign-in");
  assert.equal(await focused(page), "email");
  await page.getByLabel("Email").fill(ADMIN.email);
  await page.getByLabel("Password", { exact: true }).fill("not the password");
  await page.keyboard.press("Enter");
  await page.getByText("Email or password is wrong").waitFor();
  await look(page, "sign-in-wrong");
  await page.getByLabel("Password", { exact: true }).fill(ADMIN.password);
  await signInButton(page).click();
  await heading(page, "Your account").waitFor();
  assert.equal(new URL(page.url()).pathname, "/admin/account");
  const stored = await page.evaluate(() => JSON.stringify({ ...localStorage, ...sessionStorage }));
  assert.doesNotMatch(stored, /token|session|secret|correct horse|svc_/i);
  assert.equal(await page.evaluate(() => document.cookie), "", "the cookie is HttpOnly");
});

test("too many wrong passwords say how long to wait, and the button waits too", async () => {
  const owner = await asAdmin();
  const other = await person(owner, "Locked Out");
  await until("the server makes one wait", async () => (await call(null, "POST", "/api/auth/sign-in/email", { email: other.email, password: "wrong wrong" })).status === 429);
  const page = await open("/admin", { expect: [/429/, /401/] });
  // The pause grows with each failure, so it is not over before the page asks.
  await call(null, "POST", "/api/auth/sign-in/email", { email: other.email, password: "wrong wrong" });
  await intercept(page, "/api/auth/sign-in/email", { status: 429, headers: { "retry-after": "3", "x-retry-after": "3" }, body: { code: "TOO_MANY_REQUESTS", error: "TOO_MANY_REQUESTS", message: "Too many failed sign-ins." } });
  await page.getByLabel("Email").fill(other.email);
  await page.getByLabel("Password", { exact: true }).fill(other.password);
  await signInButton(page).click();
  await page.getByText(/Wait \d seconds?, then try again/).waitFor();
  const waiting = page.getByRole("button", { name: /Sign in in \d s/ });
  assert.ok(await waiting.isDisabled());
  await page.getByText("You can try again now.").waitFor();
  assert.ok(await signInButton(page).isEnabled());
});

test("sign-up, where it is open, makes an account that may not see anything yet and is told so", { skip: noPermissions }, async () => {
  await asAdmin();
  const page = await open("/admin", { expect: [/422/] });
  await page.getByRole("button", { name: "Create one" }).click();
  await page.getByLabel("Name").fill(hostile.markup);
  await page.getByLabel("Email").fill(ADMIN.email);
  await page.getByLabel("Password", { exact: true }).fill("correct horse battery");
  await page.getByRole("button", { name: "Create account" }).click();
  await page.getByLabel("Email").and(page.locator('[aria-invalid="true"]')).waitFor();
  await page.getByLabel("Email").fill("newcomer@example.com");
  await page.getByRole("button", { name: "Create account" }).click();
  await page.getByRole("heading", { name: "You may not see anything yet" }).waitFor();
  await look(page, "nothing-granted");
  const rail = page.getByRole("navigation", { name: "Main" });
  assert.equal(await rail.getByRole("link", { name: "Users" }).count(), 0);
});

test("somebody with one grant sees that object and no administration", { skip: noPermissions }, async () => {
  const owner = await asAdmin();
  await call(owner, "POST", "/api/v1/objects", { name: "note", label: "Note", fields: [{ name: "text", type: "text" }] });
  await call(owner, "POST", "/api/v1/objects", { name: "secret_thing", fields: [{ name: "text", type: "text" }] });
  const reader = await person(owner, "Rita Reader", [{ resource: "note", actions: ["read"] }]);
  const page = await open("/admin/account", { as: reader });
  const rail = page.getByRole("navigation", { name: "Main" });
  await rail.getByRole("link", { name: "note" }).waitFor();
  assert.equal(await rail.getByRole("link", { name: "secret_thing" }).count(), 0);
  for (const name of ["Events", "Users", "Roles", "Keys", "Blocks", "Settings"]) assert.equal(await rail.getByRole("link", { name, exact: true }).count(), 0, name);
});

test("a pending claim leads to the onboarding from every address, and is then over", async () => {
  const boot = { email: "boot@example.com", password: "the first password", name: "" };
  const rival = await signIn(boot, { at: CLAIM_URL });
  const loser = await open("/admin/users", { at: CLAIM_URL, expect: [/401/, /409/] });
  await loser.getByLabel("Email").fill(boot.email);
  await loser.getByLabel("Password", { exact: true }).fill(boot.password);
  await signInButton(loser).click();
  await heading(loser, "Make this account yours").waitFor();
  assert.equal(new URL(loser.url()).pathname, "/admin/onboarding");
  await loser.goto(`${CLAIM_URL}/admin/roles`);
  await heading(loser, "Make this account yours").waitFor();
  await look(loser, "onboarding");
  await loser.getByLabel("Your name").fill("Late");
  await loser.getByLabel("New password", { exact: true }).fill("another password 1");
  await loser.getByLabel("New password again").fill("another password 2");
  await loser.getByRole("button", { name: "Take over the account" }).click();
  await loser.getByText("The two passwords differ").waitFor();

  // Another session of the same account is faster.
  await must(rival, "POST", "/api/v1/admin/claim", { name: "First", newPassword: "a password of mine" }, { at: CLAIM_URL });
  await loser.getByLabel("New password again").fill("another password 1");
  await loser.getByRole("button", { name: "Take over the account" }).click();
  await heading(loser, "Sign in").waitFor();
  await loser.getByText("Somebody else has taken this account over").waitFor();
  await look(loser, "claim-lost");

  const winner = await open("/admin/account", { at: CLAIM_URL });
  await winner.getByLabel("Email").fill(boot.email);
  await winner.getByLabel("Password", { exact: true }).fill("a password of mine");
  await signInButton(winner).click();
  await heading(winner, "Your account").waitFor();
});

test("the claim is made in the console, and the address asked for is shown", { skip: process.env.CLAIM_2_URL === undefined && "one server to claim is enough here" }, async () => {
  const at = process.env.CLAIM_2_URL;
  const page = await open("/admin/roles", { at });
  await page.getByLabel("Email").fill("boot@example.com");
  await page.getByLabel("Password", { exact: true }).fill("the first password");
  await signInButton(page).click();
  await page.getByLabel("Your name").fill("Grace");
  await page.getByLabel("New password", { exact: true }).fill("a password of mine");
  await page.getByLabel("New password again").fill("a password of mine");
  await page.getByRole("button", { name: "Take over the account" }).click();
  await heading(page, "Roles").waitFor();
  assert.equal((await call(null, "POST", "/api/auth/sign-in/email", { email: "boot@example.com", password: "the first password" }, { at })).status, 401);
});

test("a session that ends keeps what was typed: sign-in appears over the page, and the page goes on", async () => {
  const owner = await asAdmin();
  const other = await person(owner, "Ella Expires");
  const page = await open("/admin/account", { as: other, expect: [/401/] });
  await page.getByRole("textbox", { name: "Name" }).fill("Ella After");
  await must(other, "POST", "/api/auth/sign-out", {});
  await page.getByRole("button", { name: "Sign out" }).first().waitFor();
  const dialog = page.getByRole("dialog", { name: "Your session has ended" });
  // The event stream notices within a second or two; a request would notice at once.
  await dialog.waitFor();
  await look(page, "session-ended");
  assert.equal(await page.getByLabel("Name", { exact: true }).inputValue(), "Ella After");
  await dialog.getByLabel("Password", { exact: true }).fill("wrong wrong");
  await dialog.getByRole("button", { name: "Sign in", exact: true }).click();
  await dialog.getByText("Email or password is wrong").waitFor();
  await dialog.getByLabel("Password", { exact: true }).fill(other.password);
  await dialog.getByRole("button", { name: "Sign in", exact: true }).click();
  await dialog.waitFor({ state: "hidden" });
  assert.equal(await page.getByRole("textbox", { name: "Name" }).inputValue(), "Ella After");
  await page.getByRole("button", { name: "Save name" }).click();
  await page.getByText("Your name is changed.").waitFor();
});

test("a request that meets an ended session waits for the sign-in and is sent again", async () => {
  const owner = await asAdmin();
  const other = await person(owner, "Rob Resumes");
  const page = await open("/admin", { expect: [/401/, /ERR_FAILED/] });
  // Without the event stream, so that the request is the first to meet it.
  await page.route("**/api/v1/events/stream*", (route) => route.abort());
  await page.getByLabel("Email").fill(other.email);
  await page.getByLabel("Password", { exact: true }).fill(other.password);
  await signInButton(page).click();
  await page.getByRole("navigation", { name: "Main" }).waitFor();
  await page.goto(`${base}/admin/account`);
  await page.getByRole("textbox", { name: "Name" }).fill("Rob After");
  const [cookie] = await page.context().cookies();
  await must({ token: decodeURIComponent(cookie.value) }, "POST", "/api/auth/sign-out", {});
  await page.getByRole("button", { name: "Save name" }).click();
  const dialog = page.getByRole("dialog", { name: "Your session has ended" });
  await dialog.getByLabel("Password", { exact: true }).fill(other.password);
  await dialog.getByRole("button", { name: "Sign in", exact: true }).click();
  await page.getByText("Your name is changed.").waitFor();
  await page.getByRole("button", { name: "Rob After" }).waitFor();
});

test("the palette finds screens, objects, actions and a record by its id", async () => {
  const owner = await asAdmin();
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
  const owner = await asAdmin();
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
  // The account menu: opened, walked and closed, and the focus comes back.
  const account = page.getByRole("button", { name: /Ada Admin/ });
  await account.focus();
  await page.keyboard.press("Enter");
  await page.getByRole("menuitem", { name: "Your account" }).waitFor();
  await axe(page, "account menu");
  await page.keyboard.press("Escape");
  await page.getByRole("menu").waitFor({ state: "hidden" });
  await until("the focus is back", async () => (await focused(page)).includes("Ada Admin"));
  // The palette: what was focused before has the focus afterwards.
  await page.keyboard.press("Control+k");
  await page.getByRole("combobox", { name: "Search" }).waitFor();
  await page.keyboard.press("Escape");
  await until("the focus is back", async () => (await focused(page)).includes("Ada Admin"));
});

test("the chosen theme holds after a reload and is there before the first paint", async () => {
  const owner = await asAdmin();
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
  const owner = await asAdmin();
  const other = await person(owner, "Peter Password");
  const elsewhere = await signIn(other);
  const page = await open("/admin/account", { as: other, expect: [/400/] });
  await page.getByText("this one").waitFor();
  await look(page, "account");
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

test("at 360 px the rail is a drawer", async () => {
  const owner = await asAdmin();
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
  const page = await open("/admin/no/such/page", { as: await asAdmin() });
  await page.getByRole("heading", { name: "There is no page at this address" }).waitFor();
  await look(page, "not-found");
});

test("a server that does not answer, fails, or is slow is told, with the frame in its place", async () => {
  const owner = await asAdmin();
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
  const owner = await asAdmin();
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

// Rights and accounts: users, roles with the view as a role, keys. Also tasks, settings and the status.
import assert from "node:assert/strict";
import { test } from "node:test";
import { admin, agree, base, button, call, copied, details, hostile, intercept, look, must, open, person, setPassword, signUp, until } from "./harness.mjs";

const owner = await admin();
await must(owner, "POST", "/api/v1/objects", { name: "note", label: "Note", fields: [{ name: "text", type: "text" }] });
await must(owner, "POST", "/api/v1/objects", { name: "invoice", label: "Invoice", fields: [{ name: "number", type: "text" }] });

/** Opens a select by its label and chooses an option. */
async function choose(page, label, option) {
  await page.getByLabel(label, { exact: true }).and(page.locator("input")).click();
  await page.getByRole("option", { name: option, exact: true }).click();
}

test("a user is found, gets a role and loses it, sessions end, and a ban holds until it is lifted", async () => {
  const rita = await person(owner, "Rita Reader", [{ resource: "note", actions: ["read"] }]);
  await signUp({ name: hostile.markup, email: "markup@example.com", password: "correct horse battery" });
  await must(owner, "POST", "/api/v1/roles", { name: "writers", permissions: [{ resource: "note", actions: ["create"] }] });
  const page = await open("/admin/users", { as: owner });
  const table = page.getByRole("grid", { name: "Users" });
  await table.getByText(hostile.markup).waitFor();
  await page.getByLabel("Find users", { exact: true }).fill("rita");
  await table.getByText(hostile.markup).waitFor({ state: "detached" });
  await table.getByText("Rita Reader").click();
  const pane = details(page);
  await pane.getByText("rita-reader@example.com").waitFor();
  await look(page, "user");

  await choose(page, "Role to give", "writers");
  await button(pane, "Give role").click();
  await pane.getByRole("link", { name: "writers" }).waitFor();
  const rolesNow = async () => (await must(owner, "GET", `/api/v1/users/${rita.userId}`)).data.roles.map(({ name }) => name).sort();
  assert.deepEqual(await rolesNow(), ["rita-reader-role", "writers"]);
  await button(pane, "Take away the role writers").click();
  await pane.getByRole("link", { name: "writers" }).waitFor({ state: "detached" });
  assert.deepEqual(await rolesNow(), ["rita-reader-role"]);

  await pane.getByRole("button", { name: /^End the session/ }).click();
  await pane.getByText("Not signed in anywhere.").waitFor();
  assert.equal((await call(rita, "GET", "/api/v1/me/preferences")).status, 401);

  await button(pane, "Ban").click();
  await agree(page, "Ban user");
  await button(pane, "Lift ban").waitFor();
  assert.equal((await call(null, "POST", "/api/auth/sign-in/email", { email: rita.email, password: rita.password })).status, 401);
  await button(pane, "Lift ban").click();
  await button(pane, "Ban").waitFor();
  assert.equal((await call(null, "POST", "/api/auth/sign-in/email", { email: rita.email, password: rita.password })).status, 200);

  await page.keyboard.press("Escape");
  await pane.waitFor({ state: "detached" });
  await page.getByLabel("Find users", { exact: true }).fill("nobody at all");
  await page.getByText("Nobody matches").waitFor();
});

/** The link in the pane, as an address of the console. The server's own address may be different. */
async function shownLink(page) {
  const { pathname, hash } = new URL((await page.locator("[data-secret]").innerText()).trim());
  assert.equal(pathname, "/admin/set-password");
  assert.ok(hash.length > "#token=".length + 20, "a token that cannot be guessed");
  return pathname + hash;
}

test("a user is created, and gets in by a link that is shown once; a reset gives another link", async () => {
  await must(owner, "POST", "/api/v1/roles", { name: "greeters", permissions: [{ resource: "note", actions: ["read"] }] });
  const page = await open("/admin/users", { as: owner, expect: [/status of (400|409)/] });
  const pane = details(page);
  await page.getByRole("link", { name: "Create user" }).click();
  const email = pane.getByLabel("Email");
  await email.fill(owner.email);
  await button(pane, "Create user").click();
  await email.and(page.locator('[aria-invalid="true"]')).waitFor();
  await email.fill("ina@example.com");
  await pane.getByLabel("Name", { exact: true }).fill("Ina Invited");
  const roles = pane.getByLabel("Roles", { exact: true }).and(page.locator("input"));
  await roles.fill("greet");
  await page.getByRole("option", { name: "greeters", exact: true }).click();
  await pane.getByLabel("Name", { exact: true }).click();
  await page.getByRole("listbox", { name: "Roles" }).waitFor({ state: "hidden" });
  await look(page, "new-user");
  await button(pane, "Create user").click();
  const first = await shownLink(page);
  await pane.getByText(/It is shown only this once\. It works once, until/).waitFor();
  await pane.getByText("This server sends no mail (SVC_SMTP_URL), so hand the link over yourself.").waitFor();
  await look(page, "user-created");
  assert.equal(await copied(page, () => button(pane, "Copy link").click()), (await page.locator("[data-secret]").innerText()).trim());
  await button(pane, "Done").click();
  await page.locator("[data-secret]").waitFor({ state: "detached" });
  assert.ok(!(await page.content()).includes(first.split("=")[1]), "the link is not on the page again");
  const ina = (await must(owner, "GET", "/api/v1/users?search=ina@example.com")).data[0];
  assert.deepEqual([ina.name, ina.roles.map(({ name }) => name)], ["Ina Invited", ["greeters"]]);

  const hers = await open(first, { expect: [/status of 401/] });
  await setPassword(hers, "a password of mine");
  await hers.getByText("Your password is set. Sign in with it.").waitFor();
  await hers.getByLabel("Email").fill("ina@example.com");
  await hers.getByLabel("Password", { exact: true }).fill("a password of mine");
  await button(hers, "Sign in").click();
  await hers.getByRole("navigation", { name: "Main" }).getByRole("link", { name: "note" }).waitFor();

  // Her session is listed with her browser and the end of the session.
  await page.getByRole("grid", { name: "Users" }).getByText("Ina Invited").click();
  await pane.getByText("Chrome on Linux").waitFor();
  await pane.getByText(/began .* · ends in/).waitFor();

  await button(pane, "Reset password").click();
  await page.getByRole("dialog").getByText(/all of their sessions end/).waitFor();
  await agree(page, "Create link");
  const second = await shownLink(page);
  assert.notEqual(second, first);
  await look(page, "password-link");
  const credentials = { email: "ina@example.com", password: "a password of mine" };
  assert.equal((await call(null, "POST", "/api/auth/sign-in/email", credentials)).status, 200, "until the link is used, the password stays");
  const again = await open(second);
  await again.getByLabel("New password", { exact: true }).fill("another password of mine");
  await again.getByLabel("New password again").fill("another password of mine");
  await button(again, "Set password").click();
  await again.getByText("Your password is set. Sign in with it.").waitFor();
  assert.equal((await call(null, "POST", "/api/auth/sign-in/email", credentials)).status, 401);
  assert.deepEqual((await must(owner, "GET", `/api/v1/users/${ina.id}/sessions`)).data, []);
});

test("who may only read users is offered nothing that changes one", async () => {
  const rick = await person(owner, "Rick Readonly", [{ resource: "users", actions: ["read"] }]);
  const page = await open(`/admin/users?new=true&open=${owner.userId}`, { as: rick, expect: [/status of 403/] });
  const pane = details(page);
  await pane.getByText(owner.email).waitFor();
  await pane.getByText(/ends in/).first().waitFor();
  assert.equal(await page.getByRole("link", { name: "Create user" }).count(), 0);
  for (const name of ["Reset password", "Ban", "Delete", "End all", /^End the session/]) assert.equal(await pane.getByRole("button", { name }).count(), 0, String(name));
});

test("who may update users, but holds less than one, is told so", async () => {
  const uma = await person(owner, "Uma Updater", [{ resource: "users", actions: ["read", "update"] }]);
  const page = await open(`/admin/users?open=${owner.userId}`, { as: uma, expect: [/status of 403/] });
  await button(details(page), "Reset password").click();
  await agree(page, "Create link");
  await details(page).getByRole("alert").waitFor();
  assert.equal(await page.locator("[data-secret]").count(), 0);
  // She may not create accounts.
  assert.equal(await page.getByRole("link", { name: "Create user" }).count(), 0);
});

/** Makes a user with a webhook, and begins to delete them in the console, which then asks what becomes of the webhook. */
async function beginDeletion(name) {
  const maker = await person(owner, name, [{ resource: "webhooks", actions: ["manage"] }, { resource: "note", actions: ["read"] }]);
  const hook = (await must(maker, "POST", "/api/v1/webhooks", { url: "http://127.0.0.1:9/hook", topics: ["data.note.created"] })).data;
  const page = await open(`/admin/users?open=${maker.userId}`, { as: owner, expect: [/status of (404|409)/] });
  await details(page).getByText(maker.email).waitFor();
  await button(details(page), "Delete").click();
  await agree(page, "Delete user");
  await details(page).getByRole("heading", { name: "They made things that would stop" }).waitFor();
  const suspended = async () => (await must(owner, "GET", `/api/v1/webhooks/${hook.id}`)).data.suspended;
  return { page, maker, hook, suspended };
}

test("a user who made a webhook is deleted, and somebody else takes it over", async () => {
  const { page, maker, hook, suspended } = await beginDeletion("Hanna Hooks");
  const pane = details(page);
  assert.equal(await button(pane, "Hand over and delete").isDisabled(), true);
  const heir = pane.getByLabel("Who takes them over", { exact: true }).and(page.locator("input"));
  // The user who is deleted cannot be chosen.
  const found = page.waitForResponse((response) => /\/users\?.*search=hanna/i.test(response.url()));
  await heir.fill("Hanna");
  await found;
  await page.getByRole("option").first().waitFor({ state: "detached" });
  await look(page, "hand-over", { widths: [1280] });
  await heir.fill(owner.name);
  await page.getByRole("option", { name: new RegExp(`^${owner.name}`) }).click();
  await button(pane, "Hand over and delete").click();
  await page.getByText("The user is deleted.").waitFor();
  assert.equal((await call(owner, "GET", `/api/v1/users/${maker.userId}`)).status, 404);
  assert.equal(await suspended(), null);
  await must(owner, "DELETE", `/api/v1/webhooks/${hook.id}`);
});

test("a webhook of a deleted user says why it is suspended, and runs again when somebody adopts it", async () => {
  const { page, hook, suspended } = await beginDeletion("Sven Suspended");
  const pane = details(page);
  await button(pane, "Suspend them and delete").click();
  await page.getByText("The user is deleted.").waitFor();
  assert.equal((await suspended()).reason, "maker_gone");
  await page.goto(`${base}/admin/webhooks?open=${hook.id}`);
  await pane.getByText("Its maker was deleted.").waitFor();
  await look(page, "suspended", { widths: [1280] });
  await button(pane, "Adopt with my rights").click();
  await button(pane, "Adopt with my rights").waitFor({ state: "detached" });
  assert.equal(await suspended(), null);
  await must(owner, "DELETE", `/api/v1/webhooks/${hook.id}`);
});

test("a role is made, its grid saved, its effective rights shown, and the console seen as it", async () => {
  const page = await open("/admin/roles", { as: owner, expect: [/403/] });
  await page.getByRole("grid", { name: "Roles" }).getByText("public").first().waitFor();
  await look(page, "roles");
  await page.getByRole("link", { name: "Create role" }).click();
  await details(page).getByLabel("Name").fill("admin");
  await button(details(page), "Create role").click();
  page.console.expect(/409|400/);
  await details(page).getByLabel("Name").and(page.locator('[aria-invalid="true"]')).or(details(page).getByRole("alert")).first().waitFor();
  await details(page).getByLabel("Name").fill("note keepers");
  await button(details(page), "Create role").click();
  await page.getByRole("heading", { name: "note keepers", level: 1 }).waitFor();

  // Sets a column for all objects, a row for all actions, and a single cell.
  await page.getByRole("button", { name: /^Edit create on \d+ objects$/ }).click();
  await page.getByRole("menuitem", { name: "Own rows" }).click();
  const cells = (name) => page.getByRole("region", { name: "Grants" }).getByRole("row", { name: new RegExp(`^Edit ${name} `) }).getByRole("cell").allInnerTexts();
  assert.deepEqual([(await cells("note"))[1], (await cells("invoice"))[1]], ["own rows", "own rows"]);
  await page.getByRole("button", { name: /^Edit create on \d+ objects$/ }).click();
  await page.getByRole("menuitem", { name: "Nothing" }).click();
  // Accounts and keys belong to a user, like records. Resources without rows can only be granted as a whole.
  for (const [resource, reaches] of [["users", ["–", "all accounts", "own account"]], ["api_keys", ["–", "all keys", "own keys"]], ["tasks", ["–", "yes"]]]) {
    await button(page, `Edit ${resource}`).click();
    const reach = page.getByLabel(`read on ${resource}`, { exact: true });
    await reach.waitFor();
    assert.deepEqual(await reach.locator("option").allInnerTexts(), reaches);
  }
  await button(page, "Edit note").click();
  await button(page, "Read to delete").click();
  assert.deepEqual(await Promise.all(["read", "create", "update", "delete", "manage"].map((action) => page.getByLabel(`${action} on note`, { exact: true }).inputValue())), ["all", "all", "all", "all", ""]);
  await button(page, "Nothing").click();
  await page.getByLabel("read on note").selectOption("all");
  await page.getByLabel("update on note").selectOption("own");
  await look(page, "grants");
  await button(page, "Done").click();
  await until("the head of the row has the focus", () => button(page, "Edit note").evaluate((element) => element === document.activeElement));
  await button(page, "Edit note").click();
  await button(page, "Save role").click();
  await page.getByText("The role note keepers is saved.").waitFor();
  const made = (await must(owner, "GET", "/api/v1/roles")).data.find(({ name }) => name === "note keepers");
  const granted = made.permissions.map(({ resource, actions, rowPolicy }) => `${resource} ${actions} ${rowPolicy ?? "all"}`).sort();
  assert.deepEqual(granted.map((each) => each.replace(" none", " all")), ["note read all", "note update own"]);
  // The stored state does not count as a change.
  await button(page, "Save role").waitFor({ state: "detached" });

  await page.getByRole("link", { name: "Effective rights" }).click();
  const row = page.getByRole("region", { name: "Effective rights" }).getByRole("row", { name: /^note / });
  await row.waitFor();
  assert.match(await row.innerText(), /all rows\s.*own rows/s);
  await look(page, "effective");

  const rail = page.getByRole("navigation", { name: "Main" });
  await button(page, "View as this role").click();
  await button(page, "Leave view").waitFor();
  await rail.getByRole("link", { name: "invoice" }).waitFor({ state: "detached" });
  await rail.getByRole("link", { name: "Users" }).waitFor({ state: "detached" });
  await rail.getByRole("link", { name: "note" }).waitFor();
  await look(page, "view-as");
  await button(page, "Leave view").click();
  await rail.getByRole("link", { name: "invoice" }).waitFor();
  await rail.getByRole("link", { name: "Users" }).waitFor();
  await button(page, "Leave view").waitFor({ state: "detached" });

  await page.goto(`${base}/admin/roles/${made.id}`);
  await button(page, "More").click();
  await page.getByRole("menuitem", { name: "Delete role" }).click();
  await agree(page, "Delete role");
  await page.getByRole("heading", { name: "Roles", level: 1 }).waitFor();
  assert.ok(!(await must(owner, "GET", "/api/v1/roles")).data.some(({ name }) => name === "note keepers"));
});

test("while the console is seen as a role, nothing is offered that changes something", async () => {
  const { id } = (await must(owner, "GET", "/api/v1/roles")).data.find(({ name }) => name === "admin");
  const page = await open("/admin/data/note/new", { as: owner });
  const rail = page.getByRole("navigation", { name: "Main" });
  const form = page.getByRole("button", { name: "Create Note", exact: true });
  await form.waitFor();
  await rail.getByRole("link", { name: "Roles" }).click();
  await page.getByRole("grid", { name: "Roles" }).getByText("admin", { exact: true }).click();
  await page.waitForURL(new RegExp(id));
  await button(page, "View as this role").click();
  await button(page, "Leave view").waitFor();
  // The role may do everything. Nevertheless, nothing can be changed: not on a screen, in the palette, or with an address.
  await rail.getByRole("link", { name: "Webhooks" }).click();
  await page.getByRole("heading", { name: "No webhooks yet" }).waitFor();
  assert.equal(await page.getByRole("link", { name: "Create webhook" }).count(), 0);
  await page.keyboard.press("Control+k");
  // The palette is loaded by the first press.
  await page.getByRole("combobox", { name: "Search" }).fill("note");
  await page.getByRole("option", { name: /note\s*Records/ }).waitFor();
  assert.equal(await page.getByRole("option", { name: /New record/ }).count(), 0);
  await page.keyboard.press("Escape");
  await page.evaluate(() => history.go(-4));
  await page.getByText("You view this as the role admin. Leave that view to add a record.").waitFor();
  assert.equal(await form.count(), 0);
  await button(page, "Leave view").click();
  await form.waitFor();
});

test("a key is shown once, works, and stops when it is deleted", async () => {
  await must(owner, "POST", "/api/v1/roles", { name: "importer", permissions: [{ resource: "note", actions: ["read"] }] });
  const page = await open("/admin/keys", { as: owner });
  await page.getByRole("heading", { name: "No keys yet" }).waitFor();
  await page.getByRole("link", { name: "Create key" }).click();
  await details(page).getByLabel("Name").fill("nightly import");
  await details(page).getByLabel(/^Role/).and(page.locator("input")).click();
  await page.getByRole("option", { name: "importer", exact: true }).click();
  await button(details(page), "Create key").click();
  const shown = page.locator("[data-secret]");
  const key = (await shown.innerText()).trim();
  assert.ok(key.length > 20);
  await look(page, "key-created");
  const asKey = (path) => call(null, "GET", path, undefined, { headers: { "x-api-key": key } });
  assert.equal((await asKey("/api/v1/data/note")).status, 200);
  assert.equal((await asKey("/api/v1/data/invoice")).status, 403);
  await button(details(page), "Done").click();
  await shown.waitFor({ state: "detached" });
  const table = page.getByRole("grid", { name: "API keys" });
  await table.getByText("nightly import").click();
  await details(page).getByText("Last used").waitFor();
  assert.ok(!(await page.content()).includes(key), "the key is not on the page again");
  await look(page, "key");
  await button(details(page), "Delete key").click();
  await agree(page, "Delete key");
  await page.getByRole("heading", { name: "No keys yet" }).waitFor();
  assert.equal((await asKey("/api/v1/data/note")).status, 401);
});

test("a key is made for another user, and a task that erases one", async () => {
  await person(owner, "Olga Other");
  const { id } = (await must(owner, "GET", "/api/v1/users?search=olga")).data[0];
  await must(owner, "POST", "/api/v1/roles", { name: "for-olga", permissions: [{ resource: "note", actions: ["read"] }] });
  const page = await open("/admin/keys", { as: owner });
  const choose = async (name, typed) => {
    const input = details(page).getByLabel(name).and(page.locator("input"));
    await input.fill(typed);
    await page.getByRole("option", { name: new RegExp(typed) }).click();
  };
  await page.getByRole("link", { name: "Create key" }).first().click();
  await details(page).getByLabel("Name").fill("olgas key");
  await choose(/^Role/, "for-olga");
  await choose(/^User/, "Olga Other");
  await button(details(page), "Create key").click();
  await page.locator("[data-secret]").waitFor();
  const [key] = (await must(owner, "GET", "/api/v1/api-keys")).data.filter(({ name }) => name === "olgas key");
  assert.equal(key.userId, id);
  await must(owner, "DELETE", `/api/v1/api-keys/${key.id}`);

  // The page requests the runs of a task that another client has deleted.
  const tasks = await open("/admin/tasks", { as: owner, expect: ["404"] });
  await tasks.getByRole("link", { name: "Create task" }).click();
  const pane = details(tasks);
  await pane.getByText("Erase a user", { exact: true }).click();
  await pane.getByLabel("Name").fill("erase-olga");
  const input = pane.getByLabel(/^User/).and(tasks.locator("input"));
  await input.fill("Olga Other");
  await tasks.getByRole("option", { name: /Olga Other/ }).click();
  await button(pane, "Create task").click();
  await until("the task is there", async () => (await must(owner, "GET", "/api/v1/tasks")).data.some(({ name }) => name === "erase-olga"));
  const task = (await must(owner, "GET", "/api/v1/tasks/erase-olga")).data;
  assert.deepEqual([task.type, task.config], ["erase_user", { userId: id, records: "keep" }]);
  await must(owner, "DELETE", "/api/v1/tasks/erase-olga");
});

test("an error about a field that the form does not show is above the form", async () => {
  await must(owner, "POST", "/api/v1/roles", { name: "for-a-program", permissions: [{ resource: "note", actions: ["read"] }] });
  const maker = await person(owner, "Kay Keymaker", [{ resource: "api_keys", actions: ["read", "create"] }, { resource: "roles", actions: ["read"] }]);
  const page = await open("/admin/keys?new=true", { as: maker, expect: [/status of 40[03]/] });
  const pane = details(page);
  await pane.getByLabel("Name").fill("a program");
  // Who may not read users gets no field for the user.
  assert.equal(await pane.getByLabel(/^User/).count(), 0);
  await pane.getByLabel(/^Role/).and(page.locator("input")).click();
  await page.getByRole("option", { name: "for-a-program", exact: true }).click();
  await intercept(page, "/api/v1/api-keys", { status: 400, body: { error: "invalid_request", message: "This user may not have keys.", field: "userId" } }, { method: "POST" });
  await button(pane, "Create key").click();
  await pane.getByRole("alert").getByText("This user may not have keys.").waitFor();
});

test("users, roles, keys and webhooks that somebody else makes appear by themselves", async () => {
  const screens = { users: "Users", roles: "Roles", keys: "API keys", webhooks: "Webhooks" };
  const hook = (name) => must(owner, "POST", "/api/v1/webhooks", { name, url: "http://127.0.0.1:9/", topics: ["data.note.#"] });
  // There are a key and a webhook, so that their pages have a table.
  const { id: roleId } = (await must(owner, "POST", "/api/v1/roles", { name: "of before", permissions: [{ resource: "note", actions: ["read"] }] })).data;
  await must(owner, "POST", "/api/v1/api-keys", { name: "key of before", roleId });
  await hook("hook of before");
  const tables = {};
  for (const [path, name] of Object.entries(screens)) {
    const page = await open(`/admin/${path}`, { as: owner });
    tables[path] = page.getByRole("grid", { name });
    await tables[path].getByRole("row").nth(1).waitFor();
  }
  await must(owner, "POST", "/api/v1/users", { email: "later@example.com", name: "Lara Later" });
  await must(owner, "POST", "/api/v1/roles", { name: "made later", permissions: [{ resource: "note", actions: ["read"] }] });
  await must(owner, "POST", "/api/v1/api-keys", { name: "key made later", roleId });
  await hook("hook made later");
  await tables.users.getByText("Lara Later").waitFor();
  await tables.roles.getByText("made later", { exact: true }).waitFor();
  await tables.keys.getByText("key made later").waitFor();
  await tables.webhooks.getByText("hook made later").waitFor();
});

test("a task is disabled and enabled, its schedule said in words, run by hand, with its history", async () => {
  const retention = async () => (await must(owner, "GET", "/api/v1/tasks")).data.find(({ name }) => name === "event-retention");
  const page = await open("/admin/tasks", { as: owner, expect: [/400/] });
  const table = page.getByRole("grid", { name: "Tasks" });
  await table.getByText("event-retention").waitFor();
  const enabled = table.getByRole("switch", { name: "event-retention is enabled" });
  await enabled.focus();
  await page.keyboard.press("Space");
  await until("disabled", async () => !(await retention()).enabled);
  await enabled.focus();
  await page.keyboard.press("Space");
  await until("enabled", async () => (await retention()).enabled);

  await table.getByText("event-retention").click();
  const pane = details(page);
  await pane.getByText("It has not run yet.").waitFor();
  await pane.getByLabel("Schedule").fill("30 4 29 2 *");
  await pane.getByText("At 04:30, on day 29 of the month, only in February (UTC)").waitFor();
  await button(pane, "Save task").click();
  await until("saved", async () => (await retention()).schedule === "30 4 29 2 *");
  await button(pane, "Run now").click();
  await pane.getByText("by hand").waitFor();
  await pane.getByRole("button", { name: /succeeded/ }).click();
  await pane.getByText(/took [\d,]+ ms/).waitFor();
  await look(page, "task");

  // What was typed stays while somebody else changes the task.
  await pane.getByLabel("Schedule").fill("61 * * * *");
  const { id } = await retention();
  await must(owner, "PATCH", `/api/v1/tasks/${id}`, { schedule: "15 4 * * *" });
  await table.getByTitle("15 4 * * *").waitFor();
  assert.equal(await pane.getByLabel("Schedule").inputValue(), "61 * * * *");
  await button(pane, "Save task").click();
  await pane.getByLabel("Schedule").and(page.locator('[aria-invalid="true"]')).waitFor();
});

test("settings show status and configuration, and no secret", async () => {
  const settings = (await must(owner, "GET", "/api/v1/settings")).data;
  const secret = settings.find(({ secret }) => secret);
  assert.equal(secret.value, null);
  const page = await open("/admin/settings", { as: owner });
  await page.getByRole("heading", { name: "Checks" }).waitFor();
  await look(page, "status");
  await page.getByRole("link", { name: "Configuration" }).click();
  await page.getByLabel("Find a setting").fill(secret.name);
  const row = page.getByRole("row").filter({ has: page.getByText(secret.name, { exact: true }) });
  await row.getByText(secret.isSet ? "set, hidden" : "not set").waitFor();
  await page.getByLabel("Find a setting").fill("SVC_ALLOW_PRIVATE_NETWORK");
  await page.getByText("from the environment").waitFor();
  await page.getByLabel("Find a setting").fill("");
  await look(page, "configuration");
});

test("somebody without rights is told which permission is missing", async () => {
  const nobody = await person(owner, "Nora Nobody", [{ resource: "note", actions: ["read"] }]);
  for (const [path, resource] of [["users", "users"], ["roles", "roles"], ["keys", "api_keys"], ["tasks", "tasks"], ["settings", "settings"]]) {
    const page = await open(`/admin/${path}`, { as: nobody, expect: [/403/] });
    await page.getByText(new RegExp(`^You need the permission to read ${resource}\\.?$`)).first().waitFor();
    assert.equal(await page.getByText("You may not do this").count(), 0, `${path}: the title names the permission`);
    if (path === "users") await look(page, "forbidden");
  }
});

// One flow for each screen, on one fresh server, in the order in which a person sees them. The gate checks the console with these tests.
// Each test continues from the state that the tests before it left.
//
// If PICTURES names a folder, the tests also save a picture of each screen there for the documentation, in both themes. BLOCK is a packed
// file or a component of `examples/echo`, which BLOCKBASE packs with another manifest.
import assert from "node:assert/strict";
import { mkdirSync } from "node:fs";
import { join } from "node:path";
import { test } from "node:test";
import { ADMIN, base, button, call, cell, details, folder, heading, must, open, pack, person, receiver, rows, setPassword, settled, signIn, until } from "./harness.mjs";

const directory = folder("flows");

/** A receiver of webhooks that refuses requests until the test sets it to accept them. */
let status = 503;
const address = `${await receiver((request, answer) => {
  request.resume();
  request.on("end", () => answer.writeHead(status, { "content-type": "text/plain" }).end(status === 503 ? "The ledger is closed for maintenance." : "thanks"));
})}/orders`;

let owner;
const first = async (path) => (await must(owner, "GET", path)).data[0];
const screen = (path, options) => open(`/admin${path}`, { as: owner, ...options });

const FIRST_LOAD_BYTES_MAX = 250 * 1024;
const loads = {};
/** Opens an address as the first page of a visit and waits until it is rendered. Returns the total size of the page and its files. */
async function landing(name, path, drawn, options) {
  const page = await open("/admin/assets/none", { ...options, expect: [/404/, ...(options?.expect ?? [])] });
  const answers = [];
  page.on("response", (response) => new URL(response.url()).pathname.startsWith("/admin") && answers.push(response));
  await page.goto(`${base}/admin${path}`);
  await drawn(page);
  await settled(page);
  let bytes = 0;
  for (const response of answers) {
    await response.finished();
    bytes += (await response.request().sizes()).responseBodySize;
  }
  loads[name] = bytes;
  assert.ok(answers.length > 3 && bytes > 100 * 1024, `${name}: ${answers.length} answers of ${bytes} bytes are not all of it`);
  assert.ok(bytes <= FIRST_LOAD_BYTES_MAX, `${name} loads ${(bytes / 1024).toFixed(1)} KiB: ${answers.map((response) => new URL(response.url()).pathname).join(", ")}`);
  return page;
}

/** Saves a picture of a screen for the documentation, if PICTURES is set. Toasts are closed first. */
async function picture(page, name) {
  if (process.env.PICTURES === undefined) return;
  mkdirSync(process.env.PICTURES, { recursive: true });
  for (const close of await page.locator(".mantine-Notification-closeButton").all()) await close.click().catch(() => {});
  await until("the toasts are gone", async () => (await page.locator(".mantine-Notification-root").count()) === 0);
  await page.mouse.move(0, 0);
  for (const theme of ["light", "dark"]) {
    await page.emulateMedia({ colorScheme: theme });
    await page.waitForFunction((wanted) => document.documentElement.dataset.mantineColorScheme === wanted, theme);
    await settled(page);
    await page.screenshot({ path: join(process.env.PICTURES, `${name}-${theme}.png`), animations: "disabled" });
  }
  await page.emulateMedia({ colorScheme: "light" });
}

test("a fresh server makes its admin, who signs out and in again", async () => {
  const page = await landing("create admin", "", (page) => heading(page, "Create the admin account").waitFor(), { expect: [/401/] });
  await picture(page, "first-run");
  await page.getByLabel("Name").fill(ADMIN.name);
  await page.getByLabel("Email").fill(ADMIN.email);
  await page.getByLabel("Password", { exact: true }).fill(ADMIN.password);
  await button(page, "Create admin account").click();
  await page.getByRole("heading", { name: /^Your server is running/ }).waitFor();
  await picture(page, "start");
  await page.getByRole("button", { name: /Ada Admin/ }).click();
  await page.getByRole("menuitem", { name: "Sign out" }).click();
  await heading(page, "Sign in").waitFor();
  await page.getByLabel("Email").fill(ADMIN.email);
  await page.getByLabel("Password", { exact: true }).fill("not the password");
  await button(page, "Sign in").click();
  await page.getByText("Email or password is wrong").waitFor();
  await page.getByLabel("Password", { exact: true }).fill(ADMIN.password);
  await button(page, "Sign in").click();
  await page.getByRole("navigation", { name: "Main" }).getByRole("link", { name: "Users" }).waitFor();
  owner = await signIn(ADMIN);
});

test("objects: one is made from scratch, with a rule and a relation", async () => {
  await must(owner, "POST", "/api/v1/objects", { name: "customer", label: "Customers", fields: [{ name: "name", type: "text", required: true }, { name: "email", type: "email" }] });
  const page = await screen("/objects/new", { expect: [/status of 400 .*dryRun=true/] });
  await page.getByRole("textbox", { name: "Name" }).first().fill("Order");
  await page.keyboard.press("Tab");
  await button(page, "Add field").click();
  await page.getByRole("textbox", { name: "Name of the field" }).fill("title");
  await page.getByRole("group", { name: "Field title" }).getByRole("checkbox", { name: "Required" }).check();
  await button(page, "Add relation").click();
  await page.getByRole("combobox", { name: "Other object" }).click();
  await page.getByRole("option", { name: "customer", exact: true }).click();
  await page.keyboard.press("Control+Enter");
  await page.waitForURL(/\/admin\/data\/order/);
  const { objects, relationships } = (await must(owner, "GET", "/api/v1/schema")).data;
  assert.deepEqual(objects.find(({ name }) => name === "order").fields, [{ name: "title", type: "text", required: true }]);
  assert.deepEqual([relationships[0].source, relationships[0].target], ["order", "customer"]);

  for (const field of [{ name: "state", type: "enum", options: ["new", "paid", "sent"], default: "new" }, { name: "amount", type: "currency" }, { name: "due", type: "date" }]) await must(owner, "POST", "/api/v1/objects/order/fields", field);
  await page.goto(new URL("/admin/objects/order", page.url()).href);
  await page.getByRole("grid", { name: "Fields of order" }).getByText("amount", { exact: true }).waitFor();
  await picture(page, "object");
  await page.goto(new URL("/admin/objects", page.url()).href);
  await page.getByRole("grid", { name: "Objects" }).getByText("customer", { exact: true }).first().waitFor();
  await picture(page, "objects");
});

test("records: one is made, a cell changed, and the change taken back", async () => {
  await must(owner, "POST", "/api/v1/data/customer/bulk", { data: ["Lovelace & Daughters", "Hopper Marine", "Turing Machines", "Noether Symmetry"].map((name) => ({ name, email: `office@${name.split(" ")[0].toLowerCase()}.example` })) });
  const customers = (await must(owner, "GET", "/api/v1/data/customer")).data;
  const data = Array.from({ length: 60 }, (_, index) => ({ title: `Order ${1_000 + index}`, state: ["new", "paid", "sent"][index % 3], amount: `${(index * 37) % 900 + 12}.50`, due: `2026-${String((index % 12) + 1).padStart(2, "0")}-${String((index % 28) + 1).padStart(2, "0")}`, customer_id: customers[index % 4].id }));
  await must(owner, "POST", "/api/v1/data/order/bulk", { data });
  const page = await screen("/data/order");
  await page.getByText("60 records").waitFor();
  await page.getByRole("link", { name: "New record" }).click();
  await page.locator('[data-column="title"]').getByRole("textbox").fill("Order 2000");
  await picture(page, "new-record");
  await button(page, "Create Order").click();
  await page.waitForURL(/\/data\/order\/[0-9a-f-]{36}/);
  assert.equal((await first("/api/v1/data/order?title[eq]=Order%202000")).state, "new");

  await page.goto(new URL("/admin/data/order", page.url()).href);
  await page.getByText("61 records").waitFor();
  await cell(page, 0, "title").getByText("Order 2000").waitFor();
  await cell(page, 0, "title").dblclick();
  await page.getByRole("dialog", { name: "Edit title" }).getByRole("textbox").fill("Order 2001");
  await page.keyboard.press("Enter");
  await page.getByText("title changed.").waitFor();
  assert.equal((await must(owner, "GET", "/api/v1/data/order?title[eq]=Order%202001")).data.length, 1);
  await button(page, "Undo").click();
  await cell(page, 0, "title").getByText("Order 2000").waitFor();
  await until("the change is taken back", async () => (await must(owner, "GET", "/api/v1/data/order?title[eq]=Order%202000")).data.length === 1);

  await button(page, "Filter").click();
  await page.locator('[aria-label="Column"]:focus').waitFor();
  await page.keyboard.type("state");
  await page.keyboard.press("Enter");
  await page.getByRole("combobox", { name: "Value of state" }).click();
  await page.getByRole("option", { name: "paid", exact: true }).click();
  await button(page, "Add condition").click();
  await page.getByText("20 records").waitFor();
  assert.match(decodeURIComponent(page.url()), /filter=.*state.*eq.*paid/);
  await button(page, "Remove the condition on state").click();
  await page.getByText("61 records").waitFor();
  await picture(page, "records");
});

test("record: it is changed, its history shows the change, and it is deleted", async () => {
  const { id } = await first("/api/v1/data/order?title[eq]=Order%202000");
  const page = await screen(`/data/order/${id}`);
  const title = page.locator('[data-column="title"]').getByRole("textbox");
  await title.fill("Order 2002");
  await button(page, "Save").click();
  await page.getByText("Saved.").first().waitFor();
  assert.equal((await must(owner, "GET", `/api/v1/data/order/${id}`)).data.title, "Order 2002");
  await picture(page, "record");
  await page.getByRole("link", { name: "History" }).click();
  await page.getByText("Order 2002").last().waitFor();
  await page.getByText("Order 2000").first().waitFor();
  await picture(page, "record-history");
  await button(page, "Delete").click();
  // The deletion waits for an undo. Leaving the page ends the wait.
  await page.getByText("“Order 2002” deleted.").waitFor();
  await page.goto(new URL("/admin/account", page.url()).href);
  await until("the record is gone", async () => (await call(owner, "GET", `/api/v1/data/order/${id}`)).status === 404);
});

test("groups: the records are grouped by a click, and a group leads to its records", async () => {
  const page = await screen("/data/order");
  await page.getByText("60 records", { exact: true }).waitFor();
  await button(page, "Group").click();
  await page.getByText("3 groups", { exact: true }).waitFor();
  await page.getByRole("region", { name: "Charts" }).locator("canvas").first().waitFor();
  await picture(page, "groups");
  await page.getByRole("grid", { name: /^Groups of/ }).getByText("paid", { exact: true }).click();
  await page.getByText("20 records", { exact: true }).waitFor();
  assert.deepEqual(JSON.parse(new URL(page.url()).searchParams.get("filter")), [["state", "eq", "paid"]]);
});

test("webhooks: one is made, its secret shown once, and its test refused", async () => {
  const page = await screen("/webhooks");
  await heading(page, "Webhooks").waitFor();
  await page.getByRole("link", { name: "Create webhook" }).first().click();
  const pane = details(page);
  await pane.getByLabel("Name", { exact: true }).fill("ledger");
  await pane.getByLabel(/^URL/).fill(address);
  await button(pane, "Create webhook").click();
  const secret = (await page.locator("[data-secret]").innerText()).trim();
  assert.match(secret, /^whsec_/);
  await button(pane, "Done").click();
  await page.locator("[data-secret]").waitFor({ state: "detached" });
  assert.ok(!(await page.content()).includes(secret), "the secret is not on the page again");
  await button(pane, "Send test").click();
  await pane.getByText(/503/).first().waitFor();
  await picture(page, "webhooks");
});

test("events: one comes while the page is open, and shows what changed", async () => {
  const order = await first("/api/v1/data/order?title[eq]=Order%201007");
  const page = await screen("/events?topic=data.order.updated");
  await page.getByText("live", { exact: true }).waitFor();
  await must(owner, "PATCH", `/api/v1/data/order/${order.id}`, { state: "sent", amount: "99.00" });
  await page.getByRole("grid", { name: "Events" }).locator("[role=row]").filter({ hasText: order.id.slice(-8) }).first().click();
  await details(page).getByLabel("Changes").getByText(order.state, { exact: true }).waitFor();
  await details(page).getByLabel("Changes").getByText("sent", { exact: true }).waitFor();
  await picture(page, "events");
});

test("deliveries: a failed one says why, and is sent again", async () => {
  const page = await screen("/deliveries");
  await rows(page, "Deliveries").filter({ hasText: "data.order.updated" }).first().click();
  const pane = details(page);
  await pane.getByLabel("Error", { exact: true }).getByText(/503/).waitFor();
  await picture(page, "deliveries");
  status = 200;
  const delivered = async () => (await must(owner, "GET", "/api/v1/events/deliveries?topic=data.order.updated")).data.some((each) => each.status === "delivered");
  await button(pane, "Retry delivery").click();
  await until("it is delivered", delivered);
});

test("blocks: one is uploaded, agreed to, and its action runs", async () => {
  const manifest = {
    name: "greeter",
    version: "1.0.0",
    description: "Greets customers, and reads their records for it.",
    actions: [{ name: "echo", description: "Gives its input back.", input: { type: "object", properties: { text: { type: "string", title: "Text" } }, required: ["text"] }, rbac: { resource: "greeter:use", action: "read" } }],
    resources: [{ name: "greeter:use", actions: ["read"] }],
    requires: { plugins: ["log"] },
    permissions: { data: [{ resource: "customer", actions: ["read"] }] },
  };
  const page = await screen("/blocks/install");
  await page.locator('input[type="file"]').setInputFiles(pack(directory, manifest));
  await page.getByText("It may read records of the object customer, with your rights.").waitFor();
  await picture(page, "block-consent");
  assert.equal((await must(owner, "GET", "/api/v1/blocks")).data.length, 0, "nothing is installed before somebody agrees");
  await button(page, "Agree and install").click();
  await page.getByText("greeter 1.0.0 is installed.").waitFor();
  await heading(page, "greeter").waitFor();
  await page.getByRole("heading", { name: "What it may do" }).waitFor();
  await picture(page, "block");
  await page.goto(new URL("/admin/blocks/greeter?tab=actions&action=echo", page.url()).href);
  await page.getByLabel("Text").fill("Hello, Grace");
  const answer = page.waitForResponse((response) => response.url().endsWith("/actions/echo")).then((response) => response.json());
  await button(page, "Run action").click();
  assert.deepEqual((await answer).data, { text: "Hello, Grace" });
  await page.getByRole("heading", { name: "Result" }).waitFor();
  await picture(page, "block-action");
  await page.goto(new URL("/admin/blocks", page.url()).href);
  await page.getByText("greeter", { exact: true }).first().waitFor();
});

test("roles: one is made, its grants are saved, and the console is seen as it", async () => {
  const page = await screen("/roles", { expect: [/40[34]/] });
  await page.getByRole("grid", { name: "Roles" }).getByText("public").first().waitFor();
  await page.getByRole("link", { name: "Create role" }).click();
  await details(page).getByLabel("Name").fill("support");
  await button(details(page), "Create role").click();
  await heading(page, "support").waitFor();
  await button(page, "Edit order").click();
  await page.getByLabel("read on order").selectOption("all");
  await page.getByLabel("update on order").selectOption("own");
  await picture(page, "role");
  await button(page, "Save role").click();
  await page.getByText("The role support is saved.").waitFor();
  const made = (await must(owner, "GET", "/api/v1/roles")).data.find(({ name }) => name === "support");
  assert.deepEqual(made.permissions.map(({ resource, actions }) => `${resource} ${actions}`).sort(), ["order read", "order update"]);
  const rail = page.getByRole("navigation", { name: "Main" });
  await button(page, "View as this role").click();
  await rail.getByRole("link", { name: "customer" }).waitFor({ state: "detached" });
  await rail.getByRole("link", { name: "order", exact: true }).click();
  await page.getByText("60 records").waitFor();
  await picture(page, "view-as");
  // The role may change its own orders. Nevertheless, nothing can be changed in this view, and a cell opens its record.
  const row = page.getByRole("grid").locator('[data-row="0"]');
  await row.locator('[data-act="select"]').waitFor({ state: "attached" });
  await row.locator("[data-cell]").first().dblclick();
  await details(page).getByRole("heading").first().waitFor();
  assert.equal(await page.locator("[data-editor]").count(), 0);
  await button(page, "Leave view").click();
  await rail.getByRole("link", { name: "customer" }).waitFor();
});

test("users: one is found, and gets a role", async () => {
  for (const name of ["Grace Hopper", "Emmy Noether", "Alan Turing"]) await person(owner, name);
  const page = await screen("/users");
  const table = page.getByRole("grid", { name: "Users" });
  await table.getByText("Alan Turing").waitFor();
  await page.getByLabel("Find users", { exact: true }).fill("grace");
  await table.getByText("Alan Turing").waitFor({ state: "detached" });
  await table.getByText("Grace Hopper").click();
  const pane = details(page);
  await pane.getByText("grace-hopper@example.com").waitFor();
  await page.getByLabel("Role to give", { exact: true }).and(page.locator("input")).click();
  await page.getByRole("option", { name: "support", exact: true }).click();
  await button(pane, "Give role").click();
  await pane.getByRole("link", { name: "support" }).waitFor();
  const grace = (await must(owner, "GET", "/api/v1/users?search=grace")).data[0];
  assert.deepEqual((await must(owner, "GET", `/api/v1/users/${grace.id}`)).data.roles.map(({ name }) => name), ["support"]);
  await page.getByLabel("Find users", { exact: true }).fill("");
  await table.getByText("Alan Turing").waitFor();
  await picture(page, "users");
});

test("users: one is created, and gets in by the link", async () => {
  const page = await screen("/users");
  const pane = details(page);
  await page.getByRole("link", { name: "Create user" }).click();
  await pane.getByLabel("Email").fill("ina@example.com");
  await pane.getByLabel("Name", { exact: true }).fill("Ina Invited");
  await button(pane, "Create user").click();
  await button(pane, "Copy link").waitFor();
  const { pathname, hash } = new URL((await page.locator("[data-secret]").innerText()).trim());
  await button(pane, "Done").click();
  await page.getByRole("grid", { name: "Users" }).getByText("Ina Invited").waitFor();

  const hers = await landing("set password", pathname.replace("/admin", "") + hash, (page) => heading(page, "Choose a password").waitFor());
  assert.equal(hers.url(), `${base}/admin/set-password`);
  await setPassword(hers, "a password of mine");
  await hers.getByText("Your password is set. Sign in with it.").waitFor();
  await hers.getByLabel("Email").fill("ina@example.com");
  await hers.getByLabel("Password", { exact: true }).fill("a password of mine");
  await button(hers, "Sign in").click();
  await hers.getByRole("navigation", { name: "Main" }).waitFor();
});

test("keys: one is made, shown once, and works", async () => {
  const page = await screen("/keys");
  await page.getByRole("link", { name: "Create key" }).click();
  await details(page).getByLabel("Name").fill("nightly import");
  await details(page).getByLabel(/^Role/).and(page.locator("input")).click();
  await page.getByRole("option", { name: "support", exact: true }).click();
  await button(details(page), "Create key").click();
  const key = (await page.locator("[data-secret]").innerText()).trim();
  assert.ok(key.length > 20);
  const asKey = (path) => call(null, "GET", path, undefined, { headers: { "x-api-key": key } });
  assert.deepEqual([(await asKey("/api/v1/data/order")).status, (await asKey("/api/v1/data/customer")).status], [200, 403]);
  await button(details(page), "Done").click();
  await page.locator("[data-secret]").waitFor({ state: "detached" });
  await page.getByRole("grid", { name: "API keys" }).getByText("nightly import").click();
  await details(page).getByText("Last used").waitFor();
  assert.ok(!(await page.content()).includes(key), "the key is not on the page again");
  await picture(page, "keys");
});

test("tasks: one says its schedule in words, and runs by hand", async () => {
  const page = await screen("/tasks");
  await page.getByRole("grid", { name: "Tasks" }).getByText("event-retention").click();
  const pane = details(page);
  await pane.getByLabel("Schedule").fill("30 4 * * 1");
  await pane.getByText("At 04:30, only on Monday (UTC)").waitFor();
  await button(pane, "Save task").click();
  await until("saved", async () => (await must(owner, "GET", "/api/v1/tasks")).data.find(({ name }) => name === "event-retention").schedule === "30 4 * * 1");
  await button(pane, "Run now").click();
  await pane.getByText("by hand").waitFor();
  await pane.getByRole("button", { name: /succeeded/ }).waitFor();
  await picture(page, "tasks");
});

test("api: an operation is found, and tried with one's own session", async () => {
  const page = await screen("/api");
  await page.getByLabel("Find an operation").fill("/data/order");
  await page.getByRole("navigation", { name: "Operations" }).getByRole("link", { name: /^GET \/api\/v1\/data\/order$/i }).click();
  await page.waitForURL(/operation=/);
  const answer = page.waitForResponse((response) => new URL(response.url()).pathname === "/api/v1/data/order");
  await page.getByRole("button", { name: /^Send/ }).click();
  assert.equal((await answer).status(), 200);
  await picture(page, "api");
});

test("settings: the checks pass, and no secret is shown", async () => {
  const page = await screen("/settings");
  await page.getByRole("heading", { name: "Checks" }).waitFor();
  await picture(page, "settings");
  const secret = (await must(owner, "GET", "/api/v1/settings")).data.find((each) => each.secret);
  assert.equal(secret.value, null);
  await page.getByRole("link", { name: "Configuration" }).click();
  await page.getByLabel("Find a setting").fill(secret.name);
  await page.getByRole("row").filter({ has: page.getByText(secret.name, { exact: true }) }).getByText(secret.isSet ? "set, hidden" : "not set").waitFor();
});

test("home: it counts the records, and shows an event as it happens", async () => {
  const page = await screen("");
  const objects = page.getByRole("region", { name: "Objects" });
  await objects.getByRole("link", { name: /^order/ }).getByText("60", { exact: true }).waitFor();
  await page.getByRole("region", { name: "The last hour" }).getByText("requests").waitFor();
  await page.getByText("live", { exact: true }).first().waitFor();
  const made = await must(owner, "POST", "/api/v1/data/customer", { name: "Curie Instruments" });
  await page.getByRole("region", { name: "Newest events" }).getByRole("link", { name: made.data.id.slice(-8) }).waitFor();
  await objects.getByRole("link", { name: /^customer/ }).getByText("5", { exact: true }).waitFor();
  await picture(page, "home");
});

test("the first load is within its budget wherever a visit begins", async (context) => {
  await landing("sign-in", "", (page) => heading(page, "Sign in").waitFor());
  await landing("home", "", (page) => page.getByRole("region", { name: "The last hour" }).locator("canvas").first().waitFor(), { as: owner });
  await landing("records", "/data/order", (page) => cell(page, 0, "title").getByText("Order").waitFor(), { as: owner });
  for (const [name, bytes] of Object.entries(loads)) context.diagnostic(`first load, ${name}: ${(bytes / 1024).toFixed(1)} KiB`);
});

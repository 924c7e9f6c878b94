// A table of every screen with its panels. The server has data of every kind, with names that break careless pages. The function of each
// screen is tested in its own file.
// BLOCK is a packed file or a component of `examples/echo`, which BLOCKBASE packs with another manifest.
import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { admin, base, details, folder, hostile, must, pack, person, receiver, until } from "./harness.mjs";

const directory = folder("screens");

/** A receiver of webhooks that refuses everything. */
const address = await receiver((request, answer) => {
  request.resume();
  request.on("end", () => answer.writeHead(503, { "content-type": "text/html" }).end(hostile.markup));
});

// ---- something of everything, under names that break careless pages

export const owner = await admin();
const made = async (path, body) => (await must(owner, "POST", path, body)).data;

await made("/api/v1/objects", { name: "customer", label: hostile.rtl, fields: [{ name: "name", type: "text", required: true, isUnique: true }] });
await made("/api/v1/objects", {
  name: "order",
  label: hostile.markup,
  description: hostile.markup,
  fields: [
    { name: "title", type: "text", required: true, label: hostile.markup },
    { name: "state", type: "enum", options: ["new", "paid", "sent"], default: "new" },
    { name: "tags", type: "multi_enum", options: ["red", "green"] },
    { name: "amount", type: "currency" },
    { name: "due", type: "date" },
    { name: "done", type: "boolean" },
    { name: "meta", type: "json" },
  ],
});
await made("/api/v1/relationships", { name: "customer", kind: "many_to_one", source: "order", target: "customer" });
await made("/api/v1/relationships", { name: "watchers", kind: "many_to_many", source: "order", target: "customer" });
const customer = await made("/api/v1/data/customer", { name: hostile.markup });
const values = Object.values(hostile);
await must(owner, "POST", "/api/v1/data/order/bulk", { data: Array.from({ length: 40 }, (_, at) => ({ title: values[at % values.length] || "–", amount: `${at}.5`, tags: ["red"], meta: { at, text: values[at % values.length] }, customer_id: customer.id })) });
const hook = await made("/api/v1/webhooks", { name: hostile.markup.slice(0, 60), url: `${address}/hook`, topics: ["data.order.updated"] });
await made("/api/v1/webhooks", { name: hostile.combining, url: `${address}/other`, topics: ["data.nothing.#"] });
await made("/api/v1/events/subscriptions", { event: "data.order.#", consumer: "the-log", handler: "log_event" });
const order = (await must(owner, "GET", "/api/v1/data/order?pageSize=1")).data[0];
await must(owner, "PATCH", `/api/v1/data/order/${order.id}`, { title: hostile.markup, state: "paid" });
await must(owner, "POST", `/api/v1/data/order/${order.id}/links/watchers`, { ids: [customer.id] });
const role = await made("/api/v1/roles", { name: "Keepers of the orders that nobody else wants to keep", description: hostile.markup, permissions: [{ resource: "order", actions: ["read", "update"], rowPolicy: "own" }] });
// The name of a role can only have ASCII letters, digits and a few signs.
await made("/api/v1/roles", { name: "N".padEnd(64, "o"), description: hostile.rtl, permissions: [] });
const other = await person(owner, "Grace Hopper");
await made("/api/v1/users", { name: hostile.rtl, email: "rtl@example.com" });
await must(owner, "POST", `/api/v1/users/${other.userId}/roles`, { roleId: role.id });
const key = await made("/api/v1/api-keys", { name: hostile.markup.slice(0, 60), roleId: role.id });
const task = (await must(owner, "GET", "/api/v1/tasks")).data.find(({ name }) => name === "event-retention");
await must(owner, "POST", `/api/v1/tasks/${task.id}/run`);
const consumer = `webhook:${hook.id}`;
const ledger = `/api/v1/events/deliveries?consumer=${encodeURIComponent(consumer)}`;
await until("the receiver has refused", async () => (await must(owner, "GET", ledger)).data[0]?.error !== null);
const delivery = (await must(owner, "GET", ledger)).data[0];

/** The path of a packed version of a block. */
export function packed(version, keys = {}) {
  const manifest = {
    name: "greeter",
    version,
    description: hostile.markup,
    actions: [{ name: "echo", description: hostile.markup, input: { type: "object", properties: { text: { type: "string", title: hostile.rtl }, loud: { type: "boolean", default: true } }, required: ["text"] }, rbac: { resource: "greeter:use", action: "read" } }],
    resources: [{ name: "greeter:use", actions: ["read"] }],
    subscriptions: [{ event: "data.customer.#", consumer: "greeter:log", handler: "log_event" }],
    webhooks: [{ name: "audit", url: "http://127.0.0.1:9/hook", topics: ["data.nothing.#"] }],
    requires: { plugins: ["log"] },
    permissions: { data: [{ resource: "order", actions: ["read"], rowPolicy: "own" }], secrets: ["TOKEN"], http: ["https://api.example.com"] },
    config: { type: "object", properties: { cheer: { type: "string", title: "Cheer", default: "Well done!" } } },
    ...keys,
  };
  return pack(directory, manifest);
}
const installed = await fetch(`${base}/api/v1/blocks`, { method: "POST", headers: { "content-type": "application/wasm", authorization: `Bearer ${owner.token}` }, body: readFileSync(packed("1.0.0")) });
assert.equal(installed.status, 201, await installed.text());
await must(owner, "POST", "/api/v1/blocks/greeter/actions/echo", { text: hostile.markup });

// ---- the table

const heading = (name) => (page) => page.getByRole("heading", { name, level: 1 }).waitFor();
const grid = (name, text) => (page) => page.getByRole("grid", { name }).getByText(text).first().waitFor();
const inDetails = (text) => (page) => details(page).getByText(text).first().waitFor();
/** Waits for the part of the page that is always shown, by its text or label, and checks that there is no error. */
const withoutAlert = (there) => async (page) => {
  await page.getByText(there).or(page.getByLabel(there)).first().waitFor();
  await page.getByRole("alert").first().waitFor({ state: "detached" });
};
const row = (page, text) => page.getByRole("grid").getByText(text).first();

/**
 * Each screen has its address, a check that it is rendered, and `asks`: the request (a path or a pattern) without which it has nothing to
 * show. A screen without `asks` is only looked at, with what `opened` opens. Its requests are those of the screen in `failsLike`,
 * `triedBy` names the file and the test of its failures, or `notTried` says why failures are not tested.
 */
export const SCREENS = [
  { name: "home", path: "", ready: (page) => page.getByRole("region", { name: "Objects" }).getByText("40", { exact: true }).waitFor(), asks: /^\/api\/v1\/(schema|data)$/ },
  { name: "objects", path: "/objects", ready: grid("Objects", "customer"), asks: "/api/v1/schema" },
  { name: "object-panel", failsLike: "objects", path: "/objects?open=order", ready: inDetails("amount") },
  { name: "diagram", path: "/objects?view=diagram", ready: (page) => page.locator(".react-flow__node").first().waitFor(), asks: "/api/v1/schema" },
  { name: "new-object", path: "/objects/new", ready: heading("New object"), asks: "/api/v1/schema" },
  { name: "object", path: "/objects/order", ready: grid("Fields of order", "amount"), asks: "/api/v1/schema" },
  { name: "field-panel", failsLike: "object", path: "/objects/order?open=amount", ready: inDetails("Digits") },
  { name: "relations", failsLike: "object", path: "/objects/order?tab=relations", ready: (page) => page.getByText("watchers").first().waitFor() },
  { name: "rules", failsLike: "object", path: "/objects/order?tab=rules", ready: heading(/order/) },
  { name: "object-history", path: "/objects/order?tab=history", ready: (page) => page.getByText("Ada Admin").first().waitFor(), asks: "/api/v1/schema/migrations" },
  { name: "object-settings", failsLike: "object", path: "/objects/order?tab=settings", ready: heading(/order/) },
  { name: "records", path: "/data/order", ready: (page) => page.getByText("40 records").waitFor(), asks: "/api/v1/data/order" },
  { name: "groups", path: "/data/order?group=state", ready: grid(/^Groups of/, "new"), asks: "/api/v1/data/order/aggregate" },
  { name: "records-panel", path: `/data/order?open=${order.id}`, ready: (page) => details(page).locator('[data-column="title"]').getByRole("textbox").waitFor(), asks: `/api/v1/data/order/${order.id}` },
  { name: "export", failsLike: "records", path: "/data/order", ready: (page) => page.getByText("40 records").waitFor(), opened: async (page) => {
    await page.getByRole("button", { name: "Import, export" }).click();
    await page.getByRole("menuitem", { name: "Export as CSV" }).waitFor();
  } },
  { name: "import", failsLike: "records", path: "/data/order?import=true", ready: (page) => page.getByRole("dialog").waitFor() },
  { name: "new-record", path: "/data/order/new", ready: (page) => page.locator('[data-column="title"]').getByRole("textbox").waitFor(), asks: /^\/api\/v1\/(schema|data|openapi\.json)$/ },
  { name: "record", path: `/data/order/${order.id}`, ready: (page) => page.locator('[data-column="title"]').getByRole("textbox").waitFor(), asks: `/api/v1/data/order/${order.id}` },
  { name: "record-links", path: `/data/order/${order.id}?tab=links`, ready: (page) => page.getByText("watchers").first().waitFor(), asks: `/api/v1/data/order/${order.id}` },
  { name: "record-json", path: `/data/order/${order.id}?tab=json`, ready: (page) => page.locator(".cm-content").waitFor(), asks: `/api/v1/data/order/${order.id}` },
  { name: "record-history", path: `/data/order/${order.id}?tab=history`, ready: (page) => page.getByText("paid").first().waitFor(), asks: "/api/v1/events" },
  { name: "events", path: "/events", ready: (page) => row(page, "data.order.updated").waitFor(), asks: "/api/v1/events" },
  { name: "event", path: `/events?open=${delivery.eventId}`, ready: (page) => details(page).getByLabel("Changes").getByText("paid", { exact: true }).waitFor(), asks: "/api/v1/events/deliveries" },
  { name: "deliveries", path: "/deliveries", ready: grid("Deliveries", "data.order.updated"), asks: "/api/v1/events/deliveries" },
  { name: "delivery", path: `/deliveries?open=${encodeURIComponent(`${delivery.eventId}/${consumer}`)}`, ready: inDetails("Attempts"), asks: `/api/v1/events/deliveries/${delivery.eventId}/${encodeURIComponent(consumer)}` },
  { name: "webhooks", path: "/webhooks", ready: grid("Webhooks", "data.order.updated"), asks: "/api/v1/webhooks" },
  { name: "webhook", failsLike: "webhooks", path: `/webhooks?open=${hook.id}`, ready: (page) => details(page).getByLabel("Name", { exact: true }).waitFor() },
  { name: "new-webhook", failsLike: "webhooks", path: "/webhooks?new=true", ready: (page) => details(page).getByLabel("Name", { exact: true }).waitFor() },
  { name: "subscriptions", path: "/webhooks?tab=subscriptions", ready: grid("Subscriptions", "the-log"), asks: "/api/v1/events/subscriptions" },
  { name: "subscription", failsLike: "subscriptions", path: "/webhooks?tab=subscriptions&open=the-log", ready: inDetails("Configuration") },
  { name: "verify", notTried: "It asks nothing.", path: "/webhooks?tab=verify", ready: (page) => page.getByText("x-svc-signature").first().waitFor() },
  { name: "blocks", path: "/blocks", ready: (page) => page.getByRole("link", { name: "greeter" }).first().waitFor(), asks: "/api/v1/blocks" },
  { name: "block", path: "/blocks/greeter", ready: (page) => page.getByRole("heading", { name: "What it may do" }).waitFor(), asks: "/api/v1/blocks/greeter" },
  { name: "block-use", path: "/blocks/greeter?tab=overview", ready: withoutAlert("What it may do"), asks: "/api/v1/blocks/greeter/usage" },
  { name: "block-action", failsLike: "block", path: "/blocks/greeter?tab=actions&action=echo", ready: (page) => page.getByRole("button", { name: "Run action" }).waitFor() },
  { name: "block-handlers", failsLike: "block", path: "/blocks/greeter?tab=handlers", ready: (page) => page.getByText("data.customer.#").first().waitFor() },
  { name: "block-hooks", failsLike: "block", path: "/blocks/greeter?tab=hooks", ready: heading("greeter") },
  { name: "block-configuration", failsLike: "block", path: "/blocks/greeter?tab=configuration", ready: (page) => page.getByLabel("Cheer").waitFor() },
  { name: "block-secrets", path: "/blocks/greeter?tab=secrets", ready: (page) => page.getByText("TOKEN").first().waitFor(), asks: "/api/v1/blocks/greeter/secrets" },
  { name: "block-logs", triedBy: ["blocks.mjs", "a log that cannot be loaded says why, and comes back by itself"], path: "/blocks/greeter?tab=logs", ready: withoutAlert("Level") },
  { name: "block-versions", failsLike: "block", path: "/blocks/greeter?tab=versions", ready: (page) => page.getByText("1.0.0").first().waitFor() },
  { name: "users", path: "/users", ready: grid("Users", "Grace Hopper"), asks: "/api/v1/users" },
  { name: "user", path: `/users?open=${other.userId}`, ready: inDetails("grace-hopper@example.com"), asks: `/api/v1/users/${other.userId}` },
  { name: "new-user", failsLike: "new-key", path: "/users?new=true", ready: (page) => details(page).getByLabel("Email").waitFor() },
  { name: "roles", path: "/roles", ready: grid("Roles", "public"), asks: "/api/v1/roles" },
  { name: "new-role", failsLike: "roles", path: "/roles?new=true", ready: (page) => details(page).getByLabel("Name").waitFor() },
  { name: "role", path: `/roles/${role.id}`, ready: (page) => page.getByRole("button", { name: "Edit order" }).waitFor(), asks: `/api/v1/roles/${role.id}` },
  { name: "role-effective", path: `/roles/${role.id}?tab=effective`, ready: (page) => page.getByRole("region", { name: "Effective rights" }).getByRole("row", { name: /^order / }).waitFor(), asks: /\/permissions$|\/effective$/ },
  { name: "role-users", path: `/roles/${role.id}?tab=users`, ready: (page) => page.getByText("Grace Hopper").first().waitFor(), asks: "/api/v1/users" },
  { name: "role-explain", path: `/roles/${role.id}?tab=explain&object=order&user=${other.userId}`, ready: (page) => page.getByRole("heading", { name: "What they come to" }).waitFor(), asks: `/api/v1/roles/${role.id}/explain`, method: "POST" },
  { name: "keys", path: "/keys", ready: grid("API keys", "onerror"), asks: "/api/v1/api-keys" },
  { name: "key", failsLike: "keys", path: `/keys?open=${key.id}`, ready: inDetails("Last used") },
  { name: "new-key", path: "/keys?new=true", ready: (page) => details(page).getByLabel("Name").waitFor(), asks: "/api/v1/roles" },
  { name: "tasks", path: "/tasks", ready: grid("Tasks", "event-retention"), asks: "/api/v1/tasks" },
  { name: "task", path: `/tasks?open=${task.id}`, ready: (page) => details(page).getByRole("button", { name: /succeeded/ }).waitFor(), asks: `/api/v1/tasks/${task.id}/runs` },
  { name: "new-task", failsLike: "tasks", path: "/tasks?new=true", ready: (page) => details(page).getByLabel("Name").waitFor() },
  { name: "reference", path: "/api", ready: (page) => page.getByRole("navigation", { name: "Operations" }).getByRole("link").first().waitFor(), asks: "/api/v1/openapi.json" },
  { name: "graphql", notTried: "It asks nothing.", path: "/api?tab=graphql", ready: (page) => page.getByText("GraphiQL").first().waitFor() },
  { name: "mcp", notTried: "It asks nothing.", path: "/api?tab=mcp", ready: (page) => page.getByText("Claude Code").first().waitFor() },
  { name: "snippets", path: "/api?tab=snippets&object=order", ready: (page) => page.getByText("Create with curl").waitFor(), asks: /^\/api\/v1\/(schema|data)$/ },
  { name: "settings", path: "/settings", ready: (page) => page.getByRole("heading", { name: "Checks" }).waitFor(), asks: "/api/v1/status" },
  { name: "configuration", path: "/settings?tab=settings", ready: (page) => page.getByText("SVC_LISTEN").first().waitFor(), asks: "/api/v1/settings" },
  { name: "set-password", notTried: "It asks nothing before it is sent.", path: "/set-password#token=none", ready: (page) => page.getByText("will be signed out").waitFor() },
  { name: "account", path: "/account", ready: (page) => page.getByText("this one").waitFor(), asks: "/api/auth/list-sessions" },
];

// Blocks: upload, consent, upgrades with and without new permissions, rollback, the form of an action, and the other things that a block
// declares.
// BLOCK is a packed file or a component of `examples/echo`. BLOCKBASE packs it again with other manifests. SHIPPED is a folder with the
// packed files of `blocks/`.
import assert from "node:assert/strict";
import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { test } from "node:test";
import { admin, base, button, call, copyAs, details, folder, intercept, look, must, open, openInFirefox, pack, person, until } from "./harness.mjs";

const directory = folder("blocks");

const ECHO = {
  name: "shift",
  description: "Says what it gets.",
  actions: [
    {
      name: "echo",
      description: "Gives its input back.",
      input: { type: "object", properties: { loud: { type: "boolean", default: true, title: "Loud" }, text: { type: "string", title: "Text" } }, required: ["text"] },
      rbac: { resource: "shift:use", action: "read" },
    },
  ],
  resources: [{ name: "shift:use", actions: ["read"] }],
  requires: { plugins: ["log"] },
  permissions: { data: [{ resource: "note", actions: ["read"] }] },
};

/** Packs a version in which these keys replace those of the manifest above. Returns its path. */
const version = (number, keys = {}) => pack(directory, { ...ECHO, version: number, ...keys });

const owner = await admin();
await must(owner, "POST", "/api/v1/objects", { name: "note", label: "Note", fields: [{ name: "text", type: "text" }] });

const choose = (page, file) => page.locator('input[type="file"]').setInputFiles(file);
const serving = async () => (await must(owner, "GET", "/api/v1/blocks/shift")).data.version;

test("without blocks, the screen says how to make one on the command line, and where to read about it", async () => {
  const page = await open("/admin/blocks", { as: owner });
  const empty = page.getByRole("region", { name: "No blocks yet" });
  await empty.getByRole("region", { name: "On the command line" }).getByText("blockbase block new hello").waitFor();
  assert.equal(await empty.getByText("The same with curl").count(), 0);
  await empty.getByRole("link", { name: "Read about it in the API reference" }).waitFor();
});

test("a block is installed, upgraded with and without new permissions, and rolled back", async () => {
  const page = await open("/admin/blocks/install", { as: owner });
  await choose(page, version("1.0.0"));
  await page.getByText("It may read records of the object note, with your rights.").waitFor();
  await page.getByText("Gives its input back. · for callers with read on shift:use").waitFor();
  await look(page, "consent");
  await button(page, "Agree and install").click();
  await page.getByRole("heading", { name: "shift", level: 1 }).waitFor();
  await page.getByText("It has handled no call yet.").waitFor();
  await look(page, "block");

  // With the same permissions, there is nothing to consent to.
  await page.getByRole("link", { name: "Upgrade" }).click();
  await choose(page, version("1.1.0"));
  await page.getByText("upgrade from 1.0.0").waitFor();
  await page.getByText("It may read records of the object note, with your rights.").waitFor();
  assert.equal(await page.getByText("new", { exact: true }).count(), 0);
  await button(page, "Upgrade block").click();
  await page.getByRole("heading", { name: "shift", level: 1 }).waitFor();
  await until("upgraded", async () => (await serving()) === "1.1.0");

  // More permissions of one part, and none of the others.
  const data = [...ECHO.permissions.data, { resource: "note", actions: ["update"], rowPolicy: "own", as: "caller" }];
  await page.goto(`${base}/admin/blocks/install?upgrade=shift`);
  await choose(page, version("2.0.0", { permissions: { data } }));
  const more = page.getByRole("listitem").filter({ hasText: "It may update records of the object note, in rows of whoever calls it, only as far as whoever calls it may." });
  await more.waitFor();
  // The installed permission for all rows does not include updates.
  await more.getByText("new", { exact: true }).waitFor();
  await page.getByText("asks for more").waitFor();
  await look(page, "upgrade");
  const curl = await copyAs(page, "curl");
  assert.match(curl, /\/api\/v1\/blocks\?upgrade=true&allowNewPermissions=true&consent=[0-9a-f]{64}'/);
  assert.match(curl, /--data-binary @'shift-2\.0\.0\.wasm'$/);
  assert.equal(await copyAs(page, "Command line"), "blockbase block upgrade 'shift-2.0.0.wasm'");
  await button(page, "Agree and upgrade").click();
  await page.getByRole("heading", { name: "shift", level: 1 }).waitFor();
  await until("upgraded", async () => (await serving()) === "2.0.0");

  await button(page, "More").click();
  await page.getByRole("menuitem", { name: "Roll back" }).click();
  await page.getByRole("dialog").getByRole("button", { name: "Roll back" }).click();
  await page.getByText("shift 1.1.0 serves again.").waitFor();
  assert.equal(await serving(), "1.1.0");
});

test("the consent page says in words which rows and fields a block asks for", async () => {
  await must(owner, "POST", "/api/v1/objects", { name: "letter", fields: ["subject", "state", "author"].map((name) => ({ name, type: "text" })) });
  const asked = { resource: "letter", actions: ["read", "update"], where: { state: "open", author: "$user.id" }, check: { state: { in: ["open", "sent"] } }, fields: { read: { except: ["author"] }, write: ["state"] }, as: "caller" };
  const page = await open("/admin/blocks/install?upgrade=shift", { as: owner });
  await choose(page, version("3.0.0", { permissions: { data: [asked] } }));
  const line = page.getByRole("listitem").filter({ hasText: "records of the object letter" });
  await line.getByText("state is open and author is the caller's id").waitFor();
  await line.getByText("state is any of open, sent").waitFor();
  await line.getByText("Reads all fields except author; writes state.").waitFor();
  await line.getByText("new", { exact: true }).waitFor();
});

test("the consent page says in words whether state can pass from one call to another, and between whose calls", async () => {
  const page = await open("/admin/blocks/install?upgrade=shift", { as: owner });
  const state = page.getByRole("listitem").filter({ hasText: "State can pass" });
  const words = async (number, keys) => {
    await choose(page, version(number, keys));
    await page.getByRole("heading", { name: `shift ${number}`, level: 2 }).waitFor();
    return (await state.allInnerTexts()).map((text) => text.replaceAll(/\s+/g, " ").trim());
  };
  const reuse = { calls: 1000, seconds: 30 };
  const numbers = "An instance serves up to 1000 calls, and waits up to 30 s for the next one.";
  assert.deepEqual(await words("3.1.0", { instances: { reuse } }), [`State can pass from one call to the next, whoever makes them. ${numbers} new`]);
  await button(page, "Agree and upgrade").waitFor();
  const ofACaller = await words("3.2.0", { instances: { reuse: { ...reuse, asCaller: true } } });
  assert.deepEqual(ofACaller, [`State can pass from one call to the next call of the same caller. ${numbers} new`]);
  // With the rights of its callers, this block gets no reuse.
  const data = ECHO.permissions.data.map((each) => ({ ...each, as: "caller" }));
  assert.deepEqual(await words("3.3.0", { instances: { reuse }, permissions: { data } }), []);
  assert.equal(await serving(), "1.1.0", "nothing is installed before somebody agrees");
});

test("a file that is no block is refused in a sentence", async () => {
  const page = await open("/admin/blocks/install", { as: owner, expect: [/400/] });
  const file = join(directory, "no.wasm");
  writeFileSync(file, "no block");
  await choose(page, file);
  await page.getByText("This file cannot be installed").waitFor();
});

const SAYS = {
  csv: ["It may create, read, update records of any object, only as far as whoever calls it may."],
  "github-hooks": ["It may create, read, update records of the object github_event, with your rights.", "It may read the secret GITHUB_WEBHOOK_SECRET, once you set it."],
  "slack-notify": ["It may read the secret SLACK_WEBHOOK_URL, once you set it.", "It may call https://hooks.slack.com."],
  "stripe-hooks": ["It may create, read, update records of the object payment_event, with your rights.", "It may read the secret STRIPE_WEBHOOK_SECRET, once you set it."],
};

test("the consent page of each shipped block says what it may do", { skip: process.env.SHIPPED === undefined && "SHIPPED is not set" }, async () => {
  for (const [name, sentences] of Object.entries(SAYS)) {
    const page = await open("/admin/blocks/install", { as: owner });
    await choose(page, join(process.env.SHIPPED, `${name}.wasm`));
    await page.getByRole("heading", { name: new RegExp(`^${name} `), level: 2 }).waitFor();
    const may = page.locator("section").filter({ has: page.getByRole("heading", { name: "What it may do" }) }).getByRole("listitem");
    await button(page, "Agree and install").waitFor();
    await may.first().waitFor();
    assert.deepEqual((await may.allInnerTexts()).map((text) => text.replaceAll(/\s+/g, " ").trim()), sentences, name);
    await look(page, `consent-${name}`);
  }
  assert.deepEqual((await must(owner, "GET", "/api/v1/blocks")).data.map(({ name }) => name), ["shift"], "nothing is installed before somebody agrees");
});

test("an action's form shows the defaults and sends them, and says what is wrong at the field", async () => {
  const page = await open("/admin/blocks/shift?tab=actions&action=echo", { as: owner });
  const loud = page.getByRole("checkbox", { name: "Loud" });
  await loud.waitFor();
  assert.ok(await loud.isChecked(), "the default is shown");
  await page.getByText('"loud":true').waitFor();
  // An incomplete form sends nothing and logs nothing.
  await button(page, "Run action").click();
  await page.getByText("This is required.").first().waitFor();
  const told = await page.getByLabel("Text").evaluate((input) => (input.getAttribute("aria-describedby") ?? "").split(" ").map((id) => document.getElementById(id)?.textContent));
  assert.deepEqual(told, ["This is required."], "the error is tied to its input");
  await page.getByLabel("Text").fill("hello");
  // The action returns its input.
  const answer = () => page.waitForResponse((response) => response.url().endsWith("/actions/echo")).then((response) => response.json());
  const first = answer();
  await button(page, "Run action").click();
  assert.deepEqual((await first).data, { loud: true, text: "hello" });
  await page.getByRole("heading", { name: "Result" }).waitFor();
  await look(page, "action");
  await loud.uncheck();
  const second = answer();
  await button(page, "Run action").click();
  assert.deepEqual((await second).data, { loud: false, text: "hello" });
});

test("a block's page shows in which parts the calls of a handler spend their time, and what the parts are", async () => {
  await must(owner, "POST", "/api/v1/blocks/shift/actions/echo", { text: "hello" });
  const echo = async () => (await must(owner, "GET", "/api/v1/blocks/shift/usage")).data.actions.find(({ name }) => name === "echo");
  // The answer of a call does not wait for its teardown.
  await until("each part of each call is counted", async () => {
    const { calls, parts } = await echo();
    return calls > 0 && Object.values(parts).every((part) => part.calls === calls);
  });
  const { parts } = await echo();
  const names = ["queue", "instantiate", "guest", "host", "render", "teardown"];
  assert.deepEqual(Object.keys(parts).toSorted(), names.toSorted());
  const page = await open("/admin/blocks/shift", { as: owner });
  const table = page.getByRole("region", { name: "Where the time goes" });
  const row = table.getByRole("row").filter({ hasText: "echo" });
  await row.waitFor();
  assert.deepEqual(await table.getByRole("columnheader").allInnerTexts(), ["Name", "Kind", ...names]);
  const [kind, ...times] = await row.getByRole("cell").allInnerTexts();
  assert.equal(kind, "action");
  for (const [place, name] of names.entries()) {
    const [, number, unit] = /^([\d.,]+) (µs|ms)\s+95 %: [\d.,]+ (?:µs|ms)$/.exec(times[place]) ?? assert.fail(`${name}: ${times[place]}`);
    const shown = Number(number.replaceAll(",", "")) / (unit === "µs" ? 1_000 : 1);
    const mean = parts[name].timeMsTotal / parts[name].calls;
    assert.ok(Math.abs(shown - mean) <= Math.max(0.001, mean * 0.06), `${name}: ${times[place]} is not ${mean} ms`);
  }
  await page.getByLabel("What the parts are").getByText("The block's own code runs.").waitFor();
  await look(page, "parts");
});

test("a block is configured, gets its secret, shows its log as it is written, and handles a recorded event again", async () => {
  const manifest = {
    name: "clerk",
    config: { type: "object", properties: { cheer: { type: "string", title: "Cheer", minLength: 3, default: "Well done!" } }, additionalProperties: false },
    permissions: { ...ECHO.permissions, secrets: ["TOKEN"] },
    subscriptions: [{ event: "data.note.#", consumer: "clerk:log", handler: "fail" }],
    actions: [{ name: "spin", description: "Never ends.", input: { type: "object" }, rbac: { resource: "clerk:use", action: "read" }, timeoutMs: 300 }],
    resources: [{ name: "clerk:use", actions: ["read"] }],
  };
  const page = await open("/admin/blocks/install", { as: owner, expect: [/status of (400|404|500|504)/] });
  await choose(page, version("1.0.0", manifest));
  await page.getByText("It may read the secret TOKEN, once you set it.").waitFor();
  await button(page, "Agree and install").click();
  await page.getByRole("heading", { name: "clerk", level: 1 }).waitFor();
  const clerk = async () => (await must(owner, "GET", "/api/v1/blocks/clerk")).data;

  await page.getByRole("link", { name: "Configuration", exact: true }).click();
  await page.getByLabel("Cheer").fill("Hm");
  await button(page, "Save configuration").click();
  await page.getByLabel("Cheer").and(page.locator('[aria-invalid="true"]')).waitFor();
  await page.getByLabel("Cheer").fill("Bravo!");
  await button(page, "Save configuration").click();
  await page.getByText("The configuration is saved. The next call sees it.").waitFor();
  assert.deepEqual((await clerk()).config, { cheer: "Bravo!" });
  await look(page, "configuration");

  await page.getByRole("link", { name: "Secrets", exact: true }).click();
  await page.getByText("not set", { exact: true }).waitFor();
  await page.getByLabel("TOKEN").fill("hush-hush-hush");
  await button(page, "Set").click();
  await page.getByText("TOKEN is set.").waitFor();
  assert.equal(await page.getByLabel("TOKEN").inputValue(), "");
  assert.ok(!(await page.content()).includes("hush-hush-hush"), "the value is nowhere on the page");
  await look(page, "secrets");
  const secrets = async () => (await must(owner, "GET", "/api/v1/blocks/clerk/secrets")).data.map(({ name, isSet }) => [name, isSet]);
  assert.deepEqual(await secrets(), [["TOKEN", true]]);
  await button(page, "Delete").click();
  await page.getByRole("dialog").getByRole("button", { name: "Delete secret" }).click();
  await page.getByText("not set", { exact: true }).waitFor();
  assert.deepEqual(await secrets(), [["TOKEN", false]]);

  // The log is open while lines are written to it.
  await page.getByRole("link", { name: "Log", exact: true }).click();
  await page.getByText("It has written nothing yet.").waitFor();
  await call(owner, "POST", "/api/v1/blocks/clerk/actions/spin", {});
  const log = page.getByRole("log", { name: "Log of clerk" });
  await log.getByText("spinning").first().waitFor();
  await page.getByLabel("Find in the log", { exact: true }).fill("no such line");
  await page.getByText("No line matches.").waitFor();
  await page.getByLabel("Find in the log", { exact: true }).fill("spinning");
  await log.getByText("spinning").first().waitFor();
  await look(page, "log");
  // An error of an action appears below its form.
  await page.getByRole("link", { name: "Actions", exact: true }).click();
  await button(page, "Run action").click();
  await page.getByText("The action failed").waitFor();

  // The handler fails with each event. The block's page shows the same error as the delivery.
  const { id } = (await must(owner, "POST", "/api/v1/data/note", { text: "for the clerk" })).data;
  const recorded = async () => (await must(owner, "GET", "/api/v1/events?topic=data.note.created")).data.find(({ payload }) => payload.id === id);
  await until("the event is recorded", async () => (await recorded()) !== undefined);
  await page.getByRole("link", { name: "Events and hooks", exact: true }).click();
  await page.getByLabel("Event id").fill(crypto.randomUUID());
  await button(page, "Replay").click();
  await page.getByText("The event was not replayed").waitFor();
  await page.getByLabel("Event id").fill((await recorded()).id);
  await button(page, "Replay").click();
  await page.getByText("The handler failed").waitFor();
  await look(page, "replay");
});

test("a log that cannot be loaded says why, and comes back by itself", async () => {
  const page = await open("/admin/blocks/clerk", { as: owner, expect: [/status of (403|500)/, /ERR_CONNECTION_REFUSED/] });
  for (const [answer, says] of [
    [{ status: 403, body: { error: "forbidden", message: "You need the permission to read `things`." } }, "You need the permission to read things"],
    [{ status: 500, body: { error: "internal", message: "Something went wrong inside." } }, "Something went wrong inside"],
    ["abort", "The server did not answer"],
  ]) {
    const end = await intercept(page, ({ pathname }) => pathname === "/api/v1/blocks/clerk/logs", answer);
    await page.goto(`${base}/admin/blocks/clerk?tab=logs&q=spinning`);
    const notice = page.getByRole("alert").filter({ hasText: "The log could not be loaded" });
    await notice.getByText(says, { exact: false }).waitFor();
    await end();
    await page.getByRole("log", { name: "Log of clerk" }).getByText("spinning").first().waitFor();
    await notice.waitFor({ state: "detached" });
  }
});

test("a block without handlers of its own offers no replay", async () => {
  const subscriptions = [{ event: "data.note.#", consumer: "ledger:log", handler: "log_event" }];
  const page = await open("/admin/blocks/install", { as: owner });
  await choose(page, version("1.0.2", { name: "ledger", actions: [], resources: [], subscriptions }));
  await button(page, "Agree and install").click();
  await page.getByRole("heading", { name: "ledger", level: 1 }).waitFor();
  await page.getByRole("link", { name: "Events and hooks", exact: true }).click();
  await page.getByText("log_event").first().waitFor();
  assert.equal(await page.getByLabel("Event id").count(), 0);
});

test("the page of a role offers what blocks declare", async () => {
  const role = (await must(owner, "POST", "/api/v1/roles", { name: "shifters", permissions: [] })).data;
  const page = await open(`/admin/roles/${role.id}`, { as: owner });
  await button(page, "Edit shift:use").click();
  const cell = page.getByLabel("read on shift:use");
  await cell.waitFor();
  assert.deepEqual(await cell.locator("option").allInnerTexts(), ["–", "yes"]);
  await cell.selectOption("all");
  await button(page, "Save role").click();
  await page.getByText("The role shifters is saved.").waitFor();
  assert.deepEqual((await must(owner, "GET", `/api/v1/roles/${role.id}`)).data.permissions.map(({ resource, actions }) => [resource, actions]), [["shift:use", ["read"]]]);
});

test("who may only update blocks is not offered to roll one back", async () => {
  const updater = await person(owner, "Uma Updater", [{ resource: "blocks", actions: ["read", "update"] }]);
  const installer = await person(owner, "Ines Installer", [{ resource: "blocks", actions: ["read", "create"] }]);
  const one = await open("/admin/blocks/shift", { as: updater, expect: [/403/] });
  await one.getByRole("heading", { name: "What it may do" }).waitFor();
  assert.equal(await button(one, "More").count(), 0);
  const other = await open("/admin/blocks/shift", { as: installer, expect: [/403/] });
  await button(other, "More").click();
  await other.getByRole("menuitem", { name: "Roll back" }).waitFor();
});

test("a webhook that a block declares can be tested, rotated and switched, and not changed", async () => {
  const webhooks = [{ name: "out", url: "http://127.0.0.1:9/hook", topics: ["data.note.#"] }];
  const page = await open("/admin/blocks/install?upgrade=shift", { as: owner });
  await choose(page, version("3.0.0", { webhooks }));
  await button(page, "Agree and upgrade").click();
  await page.getByText("Signing secret of the webhook out").first().waitFor();
  const [{ id }] = (await must(owner, "GET", "/api/v1/webhooks")).data;
  await page.goto(`${base}/admin/webhooks?open=${id}`);
  const pane = details(page);
  await pane.getByText("The block shift declares it", { exact: false }).waitFor();
  assert.ok(await pane.getByLabel("URL").isDisabled());
  assert.equal(await button(pane, "Save").count(), 0);
  await button(pane, "Send test").click();
  await pane.getByRole("heading", { name: "Test" }).waitFor();
  await button(pane, "Rotate secret").click();
  await page.getByText("For 24 hours, each delivery carries a signature of both secrets.", { exact: false }).waitFor();
  await page.getByRole("dialog").getByRole("button", { name: "Rotate secret" }).click();
  await pane.getByText("New signing secret").first().waitFor();
  await pane.getByRole("switch", { name: "out is enabled" }).focus();
  await page.keyboard.press("Space");
  await until("disabled", async () => !(await must(owner, "GET", `/api/v1/webhooks/${id}`)).data.enabled);
});

test("in Firefox a block is agreed to, and its action runs", async () => {
  const page = await openInFirefox("/admin/blocks/install", { as: owner });
  await page.see("button", "Choose file");
  const actions = ECHO.actions.map((action) => ({ ...action, rbac: { resource: "fox:use", action: "read" } }));
  await (await page.$('input[type="file"]')).uploadFile(version("3.0.0", { name: "fox", resources: [{ name: "fox:use", actions: ["read"] }], actions }));
  await page.see("li", "It may read records of the object note, with your rights.");
  await page.click("button", "Agree and install");
  await page.see("h1", "fox");
  await page.click("a", "Actions");
  await page.fill('input[type="text"]', "hello from Firefox");
  await page.click("button", "Run action");
  await page.see("h2", "Result");
  await page.see('[aria-live="polite"]', "hello from Firefox");
});

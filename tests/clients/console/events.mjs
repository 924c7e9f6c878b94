// Events, deliveries, webhooks and subscriptions. The server retries at once (SVC_RETRY_BASE_MS=1).
import assert from "node:assert/strict";
import { createHmac } from "node:crypto";
import { test } from "node:test";
import { admin, agree, button, call, details, holdAnswers, hostile, intercept, look, must, open, receiver, rows, until } from "./harness.mjs";

const owner = await admin();
await must(owner, "POST", "/api/v1/objects", { name: "note", label: "Note", fields: [{ name: "text", type: "text" }] });
const create = async (text) => (await must(owner, "POST", "/api/v1/data/note", { text })).data.id;

/** A receiver of webhooks that refuses requests until the test sets it to accept them. */
const received = [];
let status = 500;
const address = `${await receiver((request, answer) => {
  let body = "";
  request.on("data", (bytes) => (body += bytes));
  request.on("end", () => {
    received.push({ body, signature: request.headers["x-svc-signature"] });
    answer.writeHead(status, { "content-type": "text/plain" }).end(status === 500 ? "no room today" : "thanks");
  });
})}/hook`;

test("a screen without data has a button, a link to the reference, and a curl command that does the same", async () => {
  const page = await open("/admin/settings", { as: owner });
  await intercept(page, ({ pathname }) => /^\/api\/v1\/(tasks|webhooks|events\/(deliveries|deliveries\/counts|subscriptions))$/.test(pathname), { body: { data: [] } });
  for (const [path, title, action, request] of [
    ["/admin/tasks", "No tasks yet", "Create task", "-X POST 'http[^']*/api/v1/tasks'"],
    ["/admin/deliveries", "No deliveries yet", "Create webhook", "curl 'http[^']*/api/v1/events/deliveries'"],
    ["/admin/webhooks", "No webhooks yet", "Create webhook", "-X POST 'http[^']*/api/v1/webhooks'"],
    ["/admin/webhooks?tab=subscriptions", "No subscriptions yet", "Create subscription", "-X POST 'http[^']*/api/v1/events/subscriptions'"],
  ]) {
    await page.goto(new URL(path, page.url()).href);
    const empty = page.getByRole("region", { name: title });
    await empty.getByRole("link", { name: "Read about it in the API reference" }).waitFor();
    assert.match(await empty.getByRole("region", { name: "The same with curl" }).innerText(), new RegExp(request));
    await empty.getByRole("link", { name: action, exact: true }).click();
    await button(details(page), action).waitFor();
  }
});

test("events come live, wait while paused, are filtered, and lead to their record", async () => {
  const first = await create("first");
  const page = await open("/admin/events?topic=data.note.%23", { as: owner });
  await page.getByText("live", { exact: true }).waitFor();
  await rows(page, "Events").first().waitFor();
  const before = await rows(page, "Events").count();
  await create("second");
  await rows(page, "Events").nth(before).waitFor();

  await button(page, "Pause").click();
  await create("third");
  await button(page, "1 new").waitFor();
  assert.equal(await rows(page, "Events").count(), before + 1);
  await look(page, "paused");
  await button(page, "Go on").click();
  await rows(page, "Events").nth(before + 1).waitFor();
  await button(page, "Pause").waitFor();

  await must(owner, "PATCH", `/api/v1/data/note/${first}`, { text: hostile.markup });
  await page.getByLabel("Topic", { exact: true }).fill("data.note.updated");
  await page.waitForURL(/topic=data\.note\.updated/);
  await page.getByRole("grid", { name: "Events" }).getByText("data.note.updated").click();
  const pane = details(page);
  const changes = pane.getByLabel("Changes");
  await changes.getByText("first").waitFor();
  await changes.getByText(hostile.markup).waitFor();
  await pane.getByText("No consumer subscribed to this topic.").waitFor();
  await look(page, "event");
  await pane.getByRole("link", { name: "Its events" }).click();
  await button(page, `Remove the filter: record is ${first.slice(-8)}`).waitFor();
  await page.getByRole("grid", { name: "Events" }).getByText("data.note.created").waitFor();
  assert.equal(await rows(page, "Events").count(), 2);
  await page.getByRole("grid", { name: "Events" }).getByText("data.note.updated").click();
  await details(page).getByRole("link", { name: "Open record" }).click();
  await page.waitForURL(new RegExp(`/data/note/${first}`));
});

test("an event that comes before the list has its first page is shown", async () => {
  const page = await open("/admin/data/note", { as: owner });
  await page.getByText("live", { exact: true }).waitFor();
  // The response was made before the event, and arrives after it.
  const { isAsked, release } = await holdAnswers(page, "**/api/v1/events?*");
  await page.getByRole("link", { name: "Events", exact: true }).click();
  await isAsked;
  const id = await create("early");
  // When another request of the page returns the event, the stream has already brought it.
  await page.evaluate((address) => fetch(address), "/api/v1/events/" + (await must(owner, "GET", `/api/v1/events?record=${id}`)).data[0].id);
  release();
  await rows(page, "Events").filter({ hasText: id.slice(-8) }).first().waitFor();
});

test("a stream that replaces another one before there was an event lets its screen read again", async () => {
  const page = await open("/admin/data/note", { as: owner });
  await page.getByText("live", { exact: true }).waitFor();
  let reads = 0;
  page.on("request", (request) => (reads += request.url().includes("/api/v1/events?") ? 1 : 0));
  await page.getByRole("link", { name: "Events", exact: true }).click();
  await rows(page, "Events").first().waitFor();
  await until("a second read", () => reads >= 2);
});

test("a webhook is made with its secret shown once, tested, rotated, disabled and deleted", async () => {
  const page = await open("/admin/webhooks", { as: owner, expect: [/400/] });
  await page.getByRole("heading", { name: "No webhooks yet" }).waitFor();
  await page.getByRole("region", { name: "No webhooks yet" }).getByRole("link", { name: "Create webhook" }).click();
  const pane = details(page);
  await pane.getByLabel("Name", { exact: true }).fill("orders");
  await pane.getByLabel(/^URL/).fill("not an address");
  await button(pane, "Create webhook").click();
  await pane.getByLabel(/^URL/).and(page.locator('[aria-invalid="true"]')).waitFor();
  await pane.getByLabel(/^URL/).fill(address);
  await button(pane, "Create webhook").click();
  const secret = (await page.locator("[data-secret]").innerText()).trim();
  assert.match(secret, /^whsec_/);
  await look(page, "webhook-created");
  await button(pane, "Done").click();
  await page.locator("[data-secret]").waitFor({ state: "detached" });
  assert.ok(!(await page.content()).includes(secret), "the secret is not on the page again");

  // The receiver first refuses, then accepts.
  await button(pane, "Send test").click();
  await pane.getByText(/500|no room today/).first().waitFor();
  await look(page, "webhook-refused");
  status = 200;
  const count = received.length;
  await button(pane, "Send test").click();
  await pane.getByText(/The receiver accepted it/).waitFor();
  await until("received", () => received.length > count);
  const verified = ({ body, signature }, key) => {
    const [, at, hex] = /^t=(\d+),v1=(\w+)$/.exec(signature);
    return createHmac("sha256", key).update(`${at}.${body}`).digest("hex") === hex;
  };
  assert.ok(verified(received.at(-1), secret));

  await button(pane, "Rotate secret").click();
  await agree(page, "Rotate secret");
  const rotated = (await page.locator("[data-secret]").innerText()).trim();
  assert.match(rotated, /^whsec_/);
  assert.notEqual(rotated, secret);

  const hook = async () => (await must(owner, "GET", "/api/v1/webhooks")).data[0];
  // Changes from elsewhere appear by themselves and do not overwrite typed text.
  await pane.getByLabel("Name", { exact: true }).fill("orders of today");
  await must(owner, "PATCH", `/api/v1/webhooks/${(await hook()).id}`, { topics: ["data.note.created"] });
  await page.getByRole("grid", { name: "Webhooks" }).getByText("data.note.created", { exact: true }).waitFor();
  assert.equal(await pane.getByLabel("Name", { exact: true }).inputValue(), "orders of today");
  await pane.getByLabel("Name", { exact: true }).fill("orders");
  await pane.getByRole("switch", { name: "orders is enabled" }).focus();
  await page.keyboard.press("Space");
  await until("disabled", async () => !(await hook()).enabled);
  await page.getByRole("grid", { name: "Webhooks" }).getByText("disabled").waitFor();
  await button(pane, "Delete").click();
  await agree(page, "Delete webhook");
  await page.getByRole("heading", { name: "No webhooks yet" }).waitFor();

  await page.getByRole("link", { name: "Verify a signature" }).click();
  await page.getByText("Python", { exact: true }).click();
  await page.getByText("hmac.compare_digest").waitFor();
  await look(page, "verify");
});

test("a dead delivery says why, and is sent again: one from its page, a selection, and all that are dead", async () => {
  status = 500;
  const hook = (await must(owner, "POST", "/api/v1/webhooks", { name: "ledger", url: address, topics: ["data.note.created"] })).data;
  const consumer = `webhook:${hook.id}`;
  await create("one");
  await create("two");
  await create("three");
  const dead = async () => (await must(owner, "GET", `/api/v1/events/deliveries?dead=true&consumer=${encodeURIComponent(consumer)}`)).data.length;
  await until("all are dead", async () => (await dead()) === 3);
  // The list of webhooks also shows this, until the events are delivered.
  const hooks = await open("/admin/webhooks", { as: owner });
  const said = (text) => hooks.getByRole("grid", { name: "Webhooks" }).getByText(text, { exact: true }).waitFor();
  await said("3 dead");
  const page = await open(`/admin/deliveries?status=dead&consumer=${encodeURIComponent(consumer)}`, { as: owner });
  await rows(page, "Deliveries").nth(2).waitFor();
  await look(page, "deliveries");
  await rows(page, "Deliveries").first().getByText("data.note.created").click();
  const pane = details(page);
  await pane.getByLabel("Error", { exact: true }).getByText(/500/).waitFor();
  // The webhook is shown by its name, and every attempt is listed.
  await pane.getByRole("link", { name: "ledger", exact: true }).waitFor();
  await pane.getByRole("heading", { name: "Attempts", exact: true }).waitFor();
  await until("five attempts are listed", async () => (await pane.getByRole("listitem").count()) === 5);
  await look(page, "delivery");
  // Beside the panel, more columns are whole than the box to select, the topic and the consumer.
  const whole = () => page.getByRole("grid", { name: "Deliveries" }).evaluate((table) => [...table.querySelectorAll('[role="columnheader"]')].filter((head) => head.getBoundingClientRect().right <= table.getBoundingClientRect().right).map((head) => head.textContent));
  await until("five columns are whole", async () => (await whole()).slice(0, 5).join() === ",Topic,Consumer,State,Attempts");
  status = 200;
  const count = received.length;
  await button(pane, "Retry delivery").click();
  await until("it is delivered", async () => received.length > count && (await dead()) === 2);
  await rows(page, "Deliveries").nth(2).waitFor({ state: "detached" });
  await page.getByRole("grid", { name: "Deliveries" }).focus();
  await page.keyboard.press("Space");
  await button(page, "Retry 1 delivery").focus();
  await page.keyboard.press("Enter");
  await page.getByText("1 delivery is on the way again.").waitFor();
  await until("the selected one is delivered", async () => (await dead()) === 1);
  await rows(page, "Deliveries").nth(1).waitFor({ state: "detached" });
  await button(page, "Retry all 1 dead").click();
  // The progress is shown until no delivery waits.
  const end = await intercept(page, "/deliveries/counts", { body: { data: [{ consumer, pending: 1, failed: 0, dead: 0 }] } });
  await agree(page, "Retry all dead");
  await page.getByRole("status").getByText("Delivering 0 of 1").waitFor();
  await end();
  await page.getByText("Delivering 0 of 1").waitFor({ state: "detached" });
  await until("all are delivered", async () => (await dead()) === 0);
  await hooks.reload();
  await said("delivers");
  await page.getByText("No delivery matches").waitFor();
  await page.getByText("All", { exact: true }).click();
  await rows(page, "Deliveries").nth(2).waitFor();
  await page.getByRole("grid", { name: "Deliveries" }).getByText("delivered").nth(2).waitFor();
  // Opens the deliveries of an event from the event.
  await rows(page, "Deliveries").first().getByText("data.note.created").click();
  // The attempts before the retry are kept.
  await until("six attempts are listed", async () => (await details(page).getByRole("listitem").count()) === 6);
  await details(page).getByRole("link", { name: "Open event" }).click();
  await details(page).getByRole("link", { name: "ledger", exact: true }).click();
  await page.waitForURL(/\/deliveries\?.*event=/);
  await until("the event has one delivery", async () => (await rows(page, "Deliveries").count()) === 1);
  await must(owner, "DELETE", `/api/v1/webhooks/${hook.id}`);
});

test("a subscription is made and deleted", async () => {
  const page = await open("/admin/webhooks?tab=subscriptions", { as: owner });
  await page.getByRole("heading", { name: "No subscriptions yet" }).waitFor();
  await page.getByRole("region", { name: "No subscriptions yet" }).getByRole("link", { name: "Create subscription" }).click();
  const pane = details(page);
  await pane.getByLabel(/^Consumer/).fill("audit-log");
  await pane.getByRole("textbox", { name: "Configuration" }).waitFor();
  await look(page, "subscription-new");
  await button(pane, "Create subscription").click();
  await pane.getByText("once, by one of all instances").waitFor();
  await create("for the log");
  await until("it is delivered", async () => (await must(owner, "GET", "/api/v1/events/deliveries?consumer=audit-log")).data.some(({ status }) => status === "delivered"));
  await button(pane, "Delete subscription").click();
  await agree(page, "Delete subscription");
  await page.getByRole("heading", { name: "No subscriptions yet" }).waitFor();
  assert.equal((await call(owner, "GET", "/api/v1/events/subscriptions")).body.data.length, 0);
  // A topic that matches nothing is accepted, with a warning.
  await page.getByRole("region", { name: "No subscriptions yet" }).getByRole("link", { name: "Create subscription" }).click();
  await pane.getByLabel(/^Topic/).fill("data.absent.#");
  await pane.getByLabel(/^Consumer/).fill("in-vain");
  await button(pane, "Create subscription").click();
  await pane.getByRole("note").getByText("There is no object").waitFor();
  await button(pane, "Done").click();
  await pane.getByText("once, by one of all instances").waitFor();
  await must(owner, "DELETE", "/api/v1/events/subscriptions/in-vain");
});

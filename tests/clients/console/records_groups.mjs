// The grouped view of records: charts, the table beside them, the way to the records of a group, and what the server refuses.
import assert from "node:assert/strict";
import { before, test } from "node:test";
import { admin, base, copyAs, hostile, intercept, look, must, open, person, settled, still, until } from "./harness.mjs";

let me;
let acme;

const BIG = 9_007_199_254_740_993n;
const MANY = 1_000;

before(async () => {
  me = await admin();
  const objects = {
    client: [{ name: "name", type: "text", required: true }],
    purchase: [
      { name: "item", type: "text" },
      { name: "status", type: "enum", options: ["open", "doing", "done"] },
      { name: "amount", type: "integer" },
      { name: "big", type: "big_integer" },
      { name: "cost", type: "currency" },
      { name: "paid", type: "boolean" },
      { name: "day", type: "date" },
      { name: "at", type: "datetime" },
      { name: "meta", type: "json" },
    ],
    reading: [{ name: "number", type: "integer" }],
    blank: [{ name: "kind", type: "enum", options: ["a", "b"] }, { name: "size", type: "integer" }],
  };
  for (const [name, fields] of Object.entries(objects)) await must(me, "POST", "/api/v1/objects", { name, fields, ...(name === "purchase" ? { label: "Purchases" } : {}) });
  await must(me, "POST", "/api/v1/relationships", { name: "client", kind: "many_to_one", source: "purchase", target: "client" });
  acme = (await must(me, "POST", "/api/v1/data/client", { name: "Acme" })).data.id;
  const bolt = (await must(me, "POST", "/api/v1/data/client", { name: hostile.markup })).data.id;
  const months = ["2026-01", "2026-02", "2026-04", "2026-05"];
  // 40 purchases in four months, of which none is in March. Each tenth has no status.
  const data = Array.from({ length: 40 }, (_, index) => ({
    item: index < 2 ? Object.values(hostile)[index] : `Item ${index % 5}`,
    status: index % 10 === 9 ? null : ["open", "doing", "done"][index % 3],
    amount: index,
    big: index < 4 ? String(BIG) : null,
    cost: `${index}.25`,
    paid: index % 2 === 0,
    day: `${months[index % 4]}-15`,
    // In Berlin, the last hour of January is in February.
    at: index === 0 ? "2026-01-31T23:30:00Z" : `${months[index % 4]}-15T10:00:00Z`,
    client_id: index % 4 === 0 ? null : index % 2 === 0 ? acme : bolt,
  }));
  await must(me, "POST", "/api/v1/data/purchase/bulk", { data });
  await must(me, "POST", "/api/v1/data/reading/bulk", { data: Array.from({ length: MANY }, (_, number) => ({ number })) });
});

const table = (page) => page.getByRole("grid", { name: /^Groups of/ });
const bodyRows = (page) => table(page).locator('[role="row"][aria-rowindex]:not([aria-rowindex="1"])');
const group = (page) => page.getByRole("button", { name: "Group", exact: true });
const bar = (page) => page.getByRole("group", { name: "Groups", exact: true });
const charts = (page) => page.getByRole("region", { name: "Charts" });
const chart = (page, name = /^Chart of/) => charts(page).getByRole("img", { name });
const records = (page, count) => page.getByText(`${count} ${count === 1 ? "record" : "records"}`, { exact: true }).waitFor();
const groups = (page, count) => page.getByText(`${count} ${count === "1" ? "group" : "groups"}`, { exact: true }).waitFor();
const parameter = (page, name) => new URL(page.url()).searchParams.get(name);
const address = (search, object = "purchase") => `/admin/data/${object}?${new URLSearchParams(search)}`;

async function ready(page) {
  await bodyRows(page).first().waitFor();
  await charts(page).locator("canvas").first().waitFor();
  await settled(page);
}

/** The cells of the visible rows as text, in the order of the table. */
async function cells(page) {
  const rows = await bodyRows(page).evaluateAll((all) => all.map((row) => [Number(row.getAttribute("aria-rowindex")), ...[...row.querySelectorAll('[role="gridcell"]')].map((cell) => cell.textContent.trim())]));
  return rows.sort(([one], [other]) => one - other).map(([, ...texts]) => texts);
}
const shows = (page, expected) => until(JSON.stringify(expected), async () => JSON.stringify(await cells(page)) === JSON.stringify(expected));
/** The groups of the API. */
const asked = async (query, object = "purchase") => (await must(me, "GET", `/api/v1/data/${object}/aggregate?${query}`)).data;
const said = (value) => (value === null ? "(empty)" : String(value));

async function choose(page, label, option) {
  await bar(page).getByRole("combobox", { name: label, exact: true }).click();
  await page.getByRole("option", { name: option, exact: true }).click();
}

test("a click groups the records, with bars and the table beside them", async () => {
  const page = await open("/admin/data/purchase", { as: me });
  await page.getByText("40 records", { exact: true }).waitFor();
  assert.equal(await group(page).getAttribute("aria-pressed"), "false");
  await group(page).click();
  await ready(page);
  await groups(page, "4");
  assert.equal(parameter(page, "group"), "status");
  assert.equal(await group(page).getAttribute("aria-pressed"), "true");
  await page.locator('button:focus:has-text("Group")').waitFor();
  await shows(page, (await asked("fn=count&groupBy=status")).map((row) => [said(row.group.status), String(row.count)]));
  assert.equal((await cells(page)).at(-1)[0], "(empty)");
  assert.equal(await chart(page, "Chart of count: status. The table has its values.").getAttribute("data-kind"), "bars");
  await look(page, "bars");

  // A second field makes bars beside each other, and each function has its own chart.
  await choose(page, "Then by", "paid");
  await page.getByRole("list", { name: "paid" }).getByText("true").waitFor();
  await choose(page, "Functions", "sum of big");
  await page.keyboard.press("Escape");
  await chart(page, /^Chart of sum of big/).waitFor();
  assert.equal(await chart(page).count(), 2);
  assert.deepEqual([parameter(page, "group"), parameter(page, "fn")], ["status,paid", "count,sum:big"]);
  const sorted = await asked("fn=count&groupBy=status,paid&sort=count");
  await groups(page, String(sorted.length));
  await look(page, "series");

  // Sorted by a result, on the server.
  await table(page).getByRole("button", { name: "count", exact: true }).click();
  await until("the order is in the address", () => parameter(page, "groupSort") === "count");
  await until("the table has the order of the server", async () => JSON.stringify((await cells(page)).map((row) => row.slice(0, 3))) === JSON.stringify(sorted.map((row) => [said(row.group.status), said(row.group.paid), String(row.count)])));
  await page.reload();
  await ready(page);
  await groups(page, String(sorted.length));
  assert.equal(await chart(page).count(), 2);
  await choose(page, "Then by", "no second field");
  await groups(page, "4");
});

test("the table has all digits of a sum", async () => {
  const page = await open(address({ group: "paid", fn: "sum:big,sum:cost" }), { as: me });
  await ready(page);
  await table(page).getByText(String(BIG * 2n), { exact: true }).first().waitFor();
  // A currency has its decimal places.
  const even = Array.from({ length: 20 }, (_, index) => index * 2).reduce((sum, each) => sum + each, 0) + 20 * 0.25;
  await table(page).getByText(even.toFixed(2), { exact: true }).waitFor();
});

test("amounts have the decimal places of their field, as groups and in the table of records", async () => {
  await must(me, "POST", "/api/v1/objects", { name: "bill", fields: [{ name: "total", type: "currency", scale: 3 }] });
  await must(me, "POST", "/api/v1/data/bill/bulk", { data: [{ total: 6578 }, { total: 6671.6 }] });
  const page = await open(address({ group: "total" }, "bill"), { as: me });
  await ready(page);
  await until("both groups", async () => JSON.stringify((await cells(page)).map(([label]) => label).toSorted()) === JSON.stringify(["6578.000", "6671.600"]));
  await page.goto(new URL("/admin/data/bill", page.url()).href);
  for (const amount of ["6578.000", "6671.600"]) await page.getByRole("grid").getByText(amount, { exact: true }).waitFor();
});

test("periods follow the clock of the reader, as a line with its gaps or as bars", async () => {
  const page = await open(address({ group: "status" }), { as: me });
  await ready(page);
  const asking = page.waitForRequest((request) => request.url().includes("/aggregate?") && request.url().includes("at:month"));
  await choose(page, "Group by", "at");
  const sent = new URL((await asking).url()).searchParams;
  assert.deepEqual([sent.get("groupBy"), sent.get("tz")], ["at:month", "Europe/Berlin"]);
  await groups(page, "4");
  await bar(page).getByText("Periods in Europe/Berlin").waitFor();
  await shows(page, [["Jan 2026", "9"], ["Feb 2026", "11"], ["Apr 2026", "10"], ["May 2026", "10"]]);
  // March has a place, although it has no records.
  assert.deepEqual([await chart(page).getAttribute("data-kind"), await chart(page).getAttribute("data-slots")], ["line", "5"]);
  await look(page, "line");
  await bar(page).getByText("Bars", { exact: true }).click();
  await until("bars", async () => (await chart(page).getAttribute("data-kind")) === "bars");
  assert.equal(parameter(page, "chart"), "bars");
  await look(page, "months", { themes: ["light"] });
  await bar(page).getByRole("combobox", { name: "Period of at" }).selectOption({ label: "by quarter" });
  await shows(page, [["Q1 2026", "20"], ["Q2 2026", "20"]]);
  // The days of a date have no zone.
  await choose(page, "Group by", "day");
  await shows(page, [["Jan 2026", "10"], ["Feb 2026", "10"], ["Apr 2026", "10"], ["May 2026", "10"]]);
  assert.equal(await bar(page).getByText("Periods in").count(), 0);
});

test("without a zone that the server knows, periods are in UTC", async () => {
  const page = await open(address({ group: "status" }), { as: me, expect: [/status of 400/] });
  await ready(page);
  await intercept(page, (url) => url.searchParams.has("tz"), { status: 400, body: { error: "invalid_request", message: "There is no time zone `Europe/Berlin`.", field: "tz" } });
  await choose(page, "Group by", "at");
  await bar(page).getByText("Periods in UTC, because the server does not know the time zone Europe/Berlin").waitFor();
  await shows(page, ["Jan", "Feb", "Apr", "May"].map((name) => [`${name} 2026`, "10"]));
  await look(page, "utc", { themes: ["light"] });
  await table(page).getByText("Jan 2026").click();
  await records(page, 10);
  assert.deepEqual(JSON.parse(parameter(page, "filter")), [["at", "gte", "2026-01-01T00:00:00.000Z"], ["at", "lt", "2026-02-01T00:00:00.000Z"]]);
});

test("a group leads to its records, from the table, the chart and the keyboard, and back", async () => {
  const page = await open(address({ group: "at:month", filter: '[["paid","eq","true"]]' }), { as: me });
  await ready(page);
  await shows(page, [["Jan 2026", "9"], ["Feb 2026", "1"], ["Apr 2026", "10"]]);
  await table(page).getByText("Feb 2026").click();
  await records(page, 1);
  assert.deepEqual(JSON.parse(parameter(page, "filter")), [["paid", "eq", "true"], ["at", "gte", "2026-01-31T23:00:00.000Z"], ["at", "lt", "2026-02-28T23:00:00.000Z"]]);
  assert.equal(parameter(page, "group"), null);
  await page.locator('button:focus:has-text("Group")').waitFor();
  await page.goBack();
  await ready(page);
  await groups(page, "3");

  // With the keyboard alone.
  await table(page).focus();
  await page.keyboard.press("ArrowDown");
  await page.keyboard.press("ArrowDown");
  await page.keyboard.press("Enter");
  await records(page, 10);

  // Null, and a related record, which is shown by its title.
  await page.goto(`${base}${address({ group: "client_id" })}`);
  await ready(page);
  await table(page).getByText("Acme", { exact: true }).waitFor();
  await table(page).getByText("(empty)", { exact: true }).click();
  await records(page, 10);
  assert.deepEqual(JSON.parse(parameter(page, "filter")), [["client_id", "is_null"]]);
  await page.goBack();
  await ready(page);
  await table(page).getByText("Acme", { exact: true }).click();
  await records(page, 10);
  assert.deepEqual(JSON.parse(parameter(page, "filter")), [["client_id", "eq", acme]]);
  await page.getByRole("button", { name: "client is Acme", exact: true }).waitFor();

  // The first of four places in the chart.
  await page.goto(`${base}${address({ group: "status" })}`);
  await ready(page);
  const [first] = await asked("fn=count&groupBy=status");
  const area = await still(chart(page).locator(".u-over"));
  await page.mouse.move(area.x + area.width / 8, area.y + area.height / 2);
  await charts(page).getByText(`${first.group.status}: ${first.count}`).waitFor();
  await page.mouse.click(area.x + area.width / 8, area.y + area.height / 2);
  await records(page, first.count);
  assert.deepEqual(JSON.parse(parameter(page, "filter")), [["status", "eq", first.group.status]]);
});

test("search and filter of the view apply, and conditions choose groups", async () => {
  const page = await open(address({ group: "status", fn: "count,sum:amount" }), { as: me });
  await ready(page);
  await page.getByRole("searchbox", { name: "Search Purchases" }).fill("Item 3");
  await shows(page, (await asked("fn=count,sum:amount&groupBy=status&search=Item%203")).map((row) => [said(row.group.status), String(row.count), String(row.sum_amount)]));
  await page.getByRole("searchbox", { name: "Search Purchases" }).fill("");
  await groups(page, "4");

  await bar(page).getByRole("button", { name: "Groups where", exact: true }).click();
  const editor = page.getByRole("dialog", { name: "Groups where", exact: true });
  await editor.getByRole("combobox", { name: "Column" }).click();
  await page.getByRole("option", { name: "count", exact: true }).click();
  await editor.getByRole("combobox", { name: "Operator" }).click();
  await page.getByRole("option", { name: "≥", exact: true }).click();
  await editor.getByRole("textbox", { name: "Value of count" }).fill("12");
  await editor.getByRole("button", { name: "Add condition" }).click();
  const kept = await asked(`fn=count,sum:amount&groupBy=status&having=${encodeURIComponent('{"count":{"gte":12}}')}`);
  assert.ok(kept.length > 0 && kept.length < 4);
  await shows(page, kept.map((row) => [said(row.group.status), String(row.count), String(row.sum_amount)]));
  assert.deepEqual(JSON.parse(parameter(page, "having")), [["count", "gte", "12"]]);
  await look(page, "having", { themes: ["light"] });

  // A condition on a function that is no longer computed goes with it.
  await page.goto(`${base}${address({ group: "status", fn: "count,sum:amount", having: '[["sum_amount","gte","200"]]' })}`);
  await ready(page);
  await bar(page).getByRole("button", { name: "sum of amount ≥ 200", exact: true }).waitFor();
  await bar(page).getByRole("combobox", { name: "Functions" }).focus();
  await page.keyboard.press("Backspace");
  await groups(page, "4");
  assert.equal(parameter(page, "having"), null);

  await page.goto(`${base}${address({ group: "status", having: '[["count","gt","1000"]]' })}`);
  await page.getByRole("heading", { name: "No group matches" }).waitFor();
  await page.getByRole("button", { name: "Clear the conditions on groups" }).click();
  await groups(page, "4");
});

test("conditions on groups name periods and related records", async () => {
  const page = await open(address({ group: "at:month" }), { as: me });
  await ready(page);
  await bar(page).getByRole("button", { name: "Groups where", exact: true }).click();
  const editor = page.getByRole("dialog", { name: "Groups where", exact: true });
  await editor.getByRole("combobox", { name: "Column" }).click();
  await page.getByRole("option", { name: "at by month (at:month)", exact: true }).click();
  await editor.getByRole("combobox", { name: "Operator" }).click();
  await page.getByRole("option", { name: "is after", exact: true }).click();
  await editor.getByRole("combobox", { name: "Value of at by month" }).click();
  await page.getByRole("option", { name: "Feb 2026", exact: true }).click();
  await editor.getByRole("button", { name: "Add condition" }).click();
  await shows(page, [["Apr 2026", "10"], ["May 2026", "10"]]);
  assert.deepEqual(JSON.parse(parameter(page, "having")), [["at:month", "gt", "2026-01-31T23:00:00.000Z"]]);
  await bar(page).getByRole("button", { name: "at by month is after Feb 2026", exact: true }).waitFor();

  // The group of this record is not shown, and its title is.
  await page.goto(`${base}${address({ group: "client_id", having: JSON.stringify([["client_id", "neq", acme]]) })}`);
  await ready(page);
  await bar(page).getByRole("button", { name: "client is not Acme", exact: true }).waitFor();
});

test("a search that is typed just before Group is kept", async () => {
  const page = await open("/admin/data/purchase", { as: me });
  await records(page, 40);
  await page.getByRole("searchbox", { name: "Search Purchases" }).fill("Item 3");
  await group(page).click();
  await ready(page);
  await shows(page, (await asked("fn=count&groupBy=status&search=Item%203")).map((row) => [said(row.group.status), String(row.count)]));
  assert.equal(parameter(page, "q"), "Item 3");
  // On the way back, the records have the search too.
  await page.goBack();
  await until("the records are shown", async () => parameter(page, "group") === null);
  assert.equal(parameter(page, "q"), "Item 3");
});

test("a thousand groups come in pages, and the chart says what it shows", async () => {
  const page = await open(address({ group: "number" }, "reading"), { as: me });
  await ready(page);
  await groups(page, "1,000");
  await page.getByText("Shown: first 100 of 1,000 groups.").waitFor();
  assert.equal(await chart(page).getAttribute("data-slots"), "100");
  assert.deepEqual((await cells(page))[0], ["0", "1"]);
  await look(page, "many");
  await page.getByRole("button", { name: "Next page" }).click();
  await page.getByText("Shown: groups 101–200 of 1,000.").waitFor();
  assert.deepEqual([(await cells(page))[0], parameter(page, "page")], [["100", "1"], "2"]);
  await page.goto(`${base}${address({ group: "number", page: "11" }, "reading")}`);
  await page.getByRole("heading", { name: "This page has no groups" }).waitFor();
  await page.getByRole("button", { name: "Show the first page" }).click();
  await page.getByText("Shown: first 100 of 1,000 groups.").waitFor();
});

test("what the server refuses is said at its input", async () => {
  const page = await open(address({ group: "at:decade" }), { as: me, expect: [/status of 400/] });
  await bar(page).getByText(/^A period is/).waitFor();
  await page.getByText("The marked choice says why.", { exact: false }).waitFor();
  await look(page, "refused");
  // Another choice mends it.
  await choose(page, "Group by", "paid");
  await groups(page, "2");

  const fault = async (search, text) => {
    await page.goto(`${base}${address(search)}`);
    await bar(page).getByText(text).first().waitFor();
  };
  await fault({ group: "gone" }, /gone/);
  await fault({ group: "status,meta" }, /cannot make groups/);
  await fault({ group: "status", fn: "sum:item" }, /is for numeric fields/);
  await fault({ group: "status", having: '[["count","gte","x"]]' }, /having\.count/);

  // A mistake in the filter is not one of the grouping.
  await page.goto(`${base}${address({ group: "status", where: "{" })}`);
  await page.getByRole("alert").getByText("The groups could not be loaded").waitFor();
});

test("no record, one group, and a view without groups are said", async () => {
  const page = await open(address({ group: "kind" }, "blank"), { as: me });
  await page.getByRole("heading", { name: "blank has no records yet" }).waitFor();
  await look(page, "empty", { themes: ["light"] });
  await must(me, "POST", "/api/v1/data/blank", { kind: "a", size: null });
  await page.getByText("1 group", { exact: true }).waitFor();
  await page.goto(`${base}${address({ group: "kind", fn: "sum:size" }, "blank")}`);
  await ready(page);
  // No record of the group has a value.
  assert.deepEqual(await cells(page), [["a", "–null"]]);
  await page.goto(`${base}${address({ group: "kind", filter: '[["kind","eq","b"]]' }, "blank")}`);
  await page.getByRole("heading", { name: "No record matches" }).waitFor();
  await page.getByRole("button", { name: "Clear search and filter" }).click();
  await groups(page, "1");
});

test("a grouping is kept in a view, and the address can remove it", async () => {
  const page = await open(address({ group: "at:quarter,status", fn: "count,avg:cost", groupSort: "-count" }), { as: me });
  await ready(page);
  const before = await cells(page);
  await page.getByRole("button", { name: "View: All records, changed" }).click();
  await page.getByRole("menuitem", { name: "Save as a new view" }).click();
  await page.getByRole("textbox", { name: "Name" }).fill("Quarters");
  await page.getByRole("button", { name: /^Save/ }).click();
  await page.getByRole("button", { name: "View: Quarters" }).waitFor();
  assert.deepEqual([parameter(page, "group"), parameter(page, "view")], [null, "Quarters"]);
  await page.goto(`${base}/admin/data/purchase`);
  await records(page, 40);
  await page.getByRole("button", { name: "View: All records" }).click();
  await page.getByRole("menuitem", { name: "Quarters" }).click();
  await ready(page);
  await shows(page, before);
  await group(page).click();
  await records(page, 40);
  assert.equal(parameter(page, "group"), "-");
  await page.getByRole("button", { name: "View: Quarters, changed" }).waitFor();
});

test("the groups follow the records", async () => {
  const page = await open(address({ group: "status", filter: '[["item","eq","Live"]]' }), { as: me });
  await page.getByRole("heading", { name: "No record matches" }).waitFor();
  const { id } = (await must(me, "POST", "/api/v1/data/purchase", { item: "Live", status: "open" })).data;
  await shows(page, [["open", "1"]]);
  await must(me, "PATCH", `/api/v1/data/purchase/${id}`, { status: "done" });
  await shows(page, [["done", "1"]]);
  await must(me, "DELETE", `/api/v1/data/purchase/${id}`);
  await page.getByRole("heading", { name: "No record matches" }).waitFor();
});

test("a hidden tab reads its groups when it is shown", async () => {
  const search = { group: "status", filter: '[["item","eq","Hidden"]]' };
  const [page, shown] = [await open(address(search), { as: me }), await open(address(search), { as: me })];
  for (const each of [page, shown]) await each.getByRole("heading", { name: "No record matches" }).waitFor();
  const become = (state) =>
    page.evaluate((now) => {
      Object.defineProperty(document, "visibilityState", { configurable: true, get: () => now });
      document.dispatchEvent(new Event("visibilitychange", { bubbles: true }));
    }, state);
  await become("hidden");
  let reads = 0;
  page.on("request", (request) => (reads += request.url().includes("/aggregate?") ? 1 : 0));
  const { id } = (await must(me, "POST", "/api/v1/data/purchase", { item: "Hidden", status: "open" })).data;
  await shows(shown, [["open", "1"]]);
  await must(me, "PATCH", `/api/v1/data/purchase/${id}`, { status: "done" });
  await shows(shown, [["done", "1"]]);
  assert.equal(reads, 0);
  await become("visible");
  await shows(page, [["done", "1"]]);
  await must(me, "DELETE", `/api/v1/data/purchase/${id}`);
  for (const each of [page, shown]) await each.getByRole("heading", { name: "No record matches" }).waitFor();
});

test("the same groups are copied for every surface", async () => {
  const page = await open(address({ group: "at:month,status", fn: "count,sum:cost", groupSort: "-sum_cost", having: '[["count","gt","2"]]', filter: '[["amount","lt","35"]]' }), { as: me });
  await ready(page);
  const url = new URL(/'(http[^']+)'/.exec(await copyAs(page, "curl"))[1]);
  const rest = await must(me, "GET", url.pathname + url.search);
  assert.ok(rest.data.length > 1 && rest.data.every(({ count }) => count > 2));
  const [query, variables] = (await copyAs(page, "GraphQL")).split("# variables\n");
  const answer = await must(me, "POST", "/api/v1/graphql", { query, variables: JSON.parse(variables) });
  assert.equal(answer.errors, undefined, JSON.stringify(answer.errors));
  assert.deepEqual(answer.data.purchase_groups.data, rest.data);
  const { name, arguments: given } = JSON.parse(await copyAs(page, "MCP")).params;
  assert.deepEqual([name, given.functions, given.group_by, given.having, given.tz], ["aggregate_data", ["count", "sum:cost"], ["at:month", "status"], { count: { gt: 2 } }, "Europe/Berlin"]);
});

test("a person groups by what they may read, and hostile texts stay texts", async () => {
  const clerk = await person(me, "Clara Clerk", [{ resource: "purchase", actions: ["read"], fields: { read: { except: ["cost", "paid"] } } }]);
  const page = await open(address({ group: "item" }), { as: clerk });
  await ready(page);
  await table(page).getByText(hostile.markup.slice(0, 40), { exact: false }).waitFor();
  await look(page, "hostile");
  await bar(page).getByRole("combobox", { name: "Functions" }).click();
  await page.getByRole("option", { name: "sum of amount", exact: true }).waitFor();
  assert.equal(await page.getByRole("option", { name: "sum of cost", exact: true }).count(), 0);
  await page.keyboard.press("Escape");
  await bar(page).getByRole("combobox", { name: "Then by", exact: true }).click();
  await page.getByRole("option", { name: "status", exact: true }).waitFor();
  assert.equal(await page.getByRole("option", { name: "paid", exact: true }).count(), 0);
  assert.equal(await page.getByRole("option", { name: "meta", exact: true }).count(), 0);
});

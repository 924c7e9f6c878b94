// The filter of the records with and, or, not and relations: in the builder, in words, saved, counted, exported, copied, and refused.
import assert from "node:assert/strict";
import { before, test } from "node:test";
import { admin, base, call, cell, choosePath, copyAs, engine, grid, intercept, look, must, open, person, ready, until, writeCode } from "./harness.mjs";

let me;

before(async () => {
  me = await admin();
  const objects = {
    firm: [{ name: "name", type: "text" }],
    clerk: [{ name: "name", type: "text", required: true }, { name: "age", type: "integer" }],
    label: [{ name: "name", type: "text" }],
    duty: [
      { name: "title", type: "text", required: true },
      { name: "status", type: "enum", options: ["open", "doing", "done"] },
      { name: "amount", type: "decimal" },
      { name: "big", type: "big_integer" },
    ],
    remark: [{ name: "text", type: "text" }, { name: "urgent", type: "boolean" }],
    lookup: [{ name: "where", type: "text" }, { name: "title", type: "text" }],
    reply: [{ name: "word", type: "text" }, { name: "place", type: "integer" }],
  };
  for (const [name, fields] of Object.entries(objects)) await must(me, "POST", "/api/v1/objects", { name, fields, ...(name === "duty" ? { label: "Duties" } : {}) });
  for (const [name, kind, source, target] of [
    ["owner", "many_to_one", "duty", "clerk"],
    ["firm", "many_to_one", "clerk", "firm"],
    ["labels", "many_to_many", "duty", "label"],
    ["duty", "many_to_one", "remark", "duty"],
  ])
    await must(me, "POST", "/api/v1/relationships", { name, kind, source, target });
  const make = async (object, values) => (await must(me, "POST", `/api/v1/data/${object}`, values)).data.id;
  const firm = await make("firm", { name: "Acme" });
  const ann = await make("clerk", { name: "Ann", age: 40, firm_id: firm });
  const bob = await make("clerk", { name: "Bob", age: 30 });
  const duties = [];
  // 30 duties: every third one is open, the amounts start at 0, every second one belongs to Ann, and every fifth one to Bob.
  for (let index = 0; index < 30; index++)
    duties.push({ title: `Duty ${String(index).padStart(2, "0")}`, status: ["open", "doing", "done"][index % 3], amount: index, big: index === 7 ? "9007199254740993" : null, owner_id: index % 2 === 0 ? ann : index % 5 === 0 ? bob : null });
  const { ids } = await must(me, "POST", "/api/v1/data/duty/bulk", { data: duties });
  const id = async (title) => (ids === undefined ? undefined : (await must(me, "GET", `/api/v1/data/duty?title[eq]=${encodeURIComponent(title)}`)).data[0].id);
  await make("remark", { text: "hurry", urgent: true, duty_id: await id("Duty 03") });
  await make("remark", { text: "later", urgent: false, duty_id: await id("Duty 03") });
  await make("remark", { text: "now", urgent: true, duty_id: await id("Duty 04") });
  await make("lookup", { where: "here", title: "one" });
  await make("lookup", { where: "there", title: "two" });
  await make("lookup", { where: "there", title: "three" });
  // One word is the text, and two are null.
  for (const [place, word] of ["null", null, null, "some"].entries()) await make("reply", { place: place + 1, word });
});

const builder = (page) => page.getByRole("dialog", { name: "Filter", exact: true }).filter({ has: page.locator("[data-sentence]") });
const sentence = async (page) => ((await builder(page).locator("[data-sentence]").textContent()) ?? "").trim();
const says = (page, text) => until(text, async () => (await sentence(page)) === text);
const records = (page, count) => page.getByText(`${count} ${count === 1 ? "record" : "records"}`, { exact: true }).waitFor();
/** Waits until the table has so many rows, and the first one this value. */
const shows = (page, count, column, value) => until(`${count} rows, the first one with ${value}`, async () => (await grid(page).locator("[data-row]").count()) === count && ((await cell(page, 0, column).textContent()) ?? "").trim() === value);
const whereOf = (page) => new URL(page.url()).searchParams.get("where");
const address = (where, object = "duty") => `/admin/data/${object}?where=${encodeURIComponent(typeof where === "string" ? where : JSON.stringify(where))}`;
const apply = (page) => builder(page).getByRole("button", { name: "Apply" }).click();
const AsyncFunction = (async () => {}).constructor;
/** Runs a request that was copied as JavaScript. The session's token is the key. Returns the answer. */
const answerOf = (code) => new AsyncFunction("process", `${code}\nreturn answer;`)({ env: { SVC_API_KEY: me.token } });

test("a filter with or, a relation and related records is built, said and kept", async () => {
  const page = await open("/admin/data/duty", { as: me });
  await ready(page);
  await records(page, 30);

  // One condition takes as many steps as before, and the builder can continue it.
  await page.getByRole("button", { name: "Filter", exact: true }).click();
  const quick = page.getByRole("dialog", { name: "Filter", exact: true });
  await choosePath(page, quick.getByRole("combobox", { name: "Column" }), "status");
  await quick.getByRole("combobox", { name: "Value of status" }).click();
  await page.getByRole("option", { name: "open", exact: true }).click();
  await quick.getByRole("button", { name: "Build with and, or, not" }).click();
  await says(page, "status is open");
  await builder(page).getByText("10 records match").waitFor();

  // A row without a column does not count. A group inside it is joined with "or".
  await builder(page).getByRole("button", { name: "Remove the condition …" }).click();
  await builder(page).getByRole("button", { name: "Add group" }).click();
  const group = builder(page).getByRole("group", { name: "Group of conditions" });
  assert.equal(await group.getByRole("combobox", { name: "How the group is joined" }).inputValue(), "or");
  await choosePath(page, group.getByRole("combobox", { name: "Column" }), "amount");
  await group.getByRole("combobox", { name: "Operator" }).click();
  await page.getByRole("option", { name: "≥", exact: true }).click();
  await group.getByRole("textbox", { name: "Value of amount" }).fill("20");
  await group.getByRole("button", { name: "Add condition" }).click();
  await choosePath(page, group.getByRole("combobox", { name: "Column" }).nth(1), "Columns of owner", "name");
  await group.getByRole("textbox", { name: "Value of name" }).fill("an");
  await says(page, "status is open and (amount ≥ 20 or owner's name contains an)");
  // Duties 0, 3, … 27 are open. Of these, 21, 24 and 27 have an amount of at least 20, and 0, 6, 12, 18 and 24 belong to Ann.
  await builder(page).getByText("7 records match").waitFor();
  await look(page, "builder", { widths: [1280, 390, 360] });

  await apply(page);
  await records(page, 7);
  assert.deepEqual(JSON.parse(whereOf(page)), { status: "open", _or: [{ amount: { gte: 20 } }, { "owner.name": { ilike: "an" } }] });
  assert.equal(new URL(page.url()).searchParams.get("filter"), null);
  await page.getByRole("button", { name: "status is open", exact: true }).waitFor();
  await page.getByRole("button", { name: "amount ≥ 20 or owner's name contains an", exact: true }).waitFor();
  await look(page, "chips", { widths: [1280, 390] });
  await page.reload();
  await ready(page);
  await records(page, 7);

  // The chip of the group opens the builder. "not" reverses the group.
  await page.getByRole("button", { name: "amount ≥ 20 or owner's name contains an", exact: true }).click();
  await builder(page).getByRole("combobox", { name: "How the group is joined" }).selectOption({ label: "none of these (not, or)" });
  await says(page, "status is open and not (amount ≥ 20 or owner's name contains an)");
  await builder(page).getByText("3 records match").waitFor();
  await apply(page);
  await records(page, 3);

  // The chip of a plain condition still has its own editor, and `Delete` removes a chip.
  await page.getByRole("button", { name: "status is open", exact: true }).click();
  // The list of the value is open, so Escape only closes the list.
  await page.getByRole("option", { name: "doing", exact: true }).waitFor();
  await page.keyboard.press("Escape");
  await page.getByRole("button", { name: "Remove", exact: true }).click();
  await records(page, 10);
  await page.getByRole("button", { name: /^not \(amount/ }).focus();
  await page.keyboard.press("Delete");
  await records(page, 30);
  assert.equal(whereOf(page), null);
});

test("related records are asked with some, none and all", async () => {
  const page = await open("/admin/data/duty", { as: me });
  await ready(page);
  // Choosing a relation to many records opens the builder.
  await page.getByRole("button", { name: "Filter", exact: true }).click();
  await choosePath(page, page.getByRole("dialog", { name: "Filter", exact: true }).getByRole("combobox", { name: "Column" }), "remark, many records");
  const related = builder(page).getByRole("group", { name: "Conditions on remark" });
  await choosePath(page, related.getByRole("combobox", { name: "Column" }), "urgent");
  await related.getByText("true", { exact: true }).click();
  await says(page, "some of remark match (urgent is true)");
  await builder(page).getByText("2 records match").waitFor();
  await related.getByRole("combobox", { name: "How many of remark" }).selectOption({ label: "none of" });
  await builder(page).getByText("28 records match").waitFor();
  await related.getByRole("combobox", { name: "How many of remark" }).selectOption({ label: "all of" });
  await says(page, "all of remark match (urgent is true)");
  // "All of" also matches duties without remarks.
  await builder(page).getByText("29 records match").waitFor();
  await look(page, "related", { widths: [1280, 390] });
  await related.getByRole("combobox", { name: "How many of remark" }).selectOption({ label: "some of" });
  await related.getByRole("button", { name: /^Remove the condition urgent/ }).click();
  await says(page, "there are remark");
  await builder(page).getByText("2 records match").waitFor();
  await apply(page);
  await records(page, 2);
  assert.deepEqual(JSON.parse(whereOf(page)), { remark_by_duty: { some: {} } });

  // After three relations, the picker offers no further one: a remark's duty's owner's firm would be the fourth.
  await page.goto(`${base}${address({ remark_by_duty: { some: { "duty.owner.name": "Ann" } } })}`);
  await ready(page);
  await records(page, 1);
  await page.getByRole("button", { name: /^some of remark match/ }).click();
  const column = builder(page).getByRole("combobox", { name: "Column" });
  await column.click();
  await page.getByRole("option", { name: "Back from duty → owner" }).waitFor();
  assert.equal(await page.getByRole("option", { name: "Columns of firm" }).count(), 0);
  await page.getByRole("option", { name: "Back from duty → owner" }).click();
  await page.getByRole("option", { name: "Columns of owner" }).waitFor();
});

test("the builder works by the keyboard alone", async () => {
  const page = await open("/admin/data/duty", { as: me });
  await ready(page);
  await grid(page).focus();
  await page.keyboard.press("f");
  await page.locator('[aria-label="Column"]:focus').waitFor();
  // Typing finds a field behind a relation.
  await page.keyboard.type("owner firm");
  await page.getByRole("option", { name: /firm/ }).first().waitFor();
  await page.keyboard.press("Control+a");
  await page.keyboard.type("owner age");
  await page.locator('[role="option"][data-combobox-selected]').filter({ hasText: "owner → age" }).waitFor();
  await page.keyboard.press("Enter");
  await page.locator('[aria-label="Value of age"]:focus').waitFor();
  await page.keyboard.type("40");
  await page.keyboard.press("Enter");
  await records(page, 15);
  await page.getByRole("button", { name: "owner's age = 40", exact: true }).waitFor();

  // Goes into a relation and back. Then the first Escape closes only the list, and the next one the editor.
  await grid(page).focus();
  await page.keyboard.press("f");
  await page.locator('[aria-label="Column"]:focus').waitFor();
  await page.keyboard.type("owner");
  await page.getByRole("option", { name: "Columns of owner" }).waitFor();
  await page.locator('[role="option"][data-combobox-selected]').filter({ hasText: "owner (owner_id)" }).waitFor();
  await page.keyboard.press("ArrowDown");
  await page.keyboard.press("Enter");
  await page.locator('[role="option"][data-combobox-selected]').filter({ hasText: /^id$/ }).waitFor();
  await page.keyboard.press("Backspace");
  await page.getByRole("option", { name: "Columns of owner" }).waitFor();
  await page.keyboard.press("Escape");
  await page.getByRole("option").first().waitFor({ state: "hidden" });
  assert.ok(await page.getByRole("dialog", { name: "Filter", exact: true }).isVisible());
  await page.keyboard.press("Escape");
  await page.getByRole("dialog", { name: "Filter", exact: true }).waitFor({ state: "hidden" });

  // After a part is removed, the focus stays in its group. Escape closes the builder, and the focus returns.
  await page.getByRole("button", { name: "owner's age = 40", exact: true }).focus();
  await page.keyboard.press("Enter");
  await page.getByRole("button", { name: "Build with and, or, not" }).focus();
  await page.keyboard.press("Enter");
  await builder(page).locator('[aria-label="Column"]:focus').waitFor();
  await builder(page).getByRole("button", { name: "Remove the condition …" }).focus();
  await page.keyboard.press("Enter");
  await builder(page).locator('button:focus:has-text("Add condition")').waitFor();
  await page.keyboard.press("Escape");
  await builder(page).waitFor({ state: "hidden" });
  await page.locator('[data-chip]:focus').waitFor();
  await records(page, 15);
});

test("a condition is kept in a view, counted, exported and copied", async () => {
  const page = await open(address({ _or: [{ status: "done" }, { "owner.firm.name": "Acme" }], big: { is_null: true } }), { as: me });
  await ready(page);
  // Ten are done, fifteen belong to Ann, and five are both. The only big number is in none of them.
  await records(page, 20);
  await page.getByRole("button", { name: "View: All records, changed" }).click();
  await page.getByRole("menuitem", { name: "Save as a new view" }).click();
  await page.getByRole("textbox", { name: "Name" }).fill("Acme or done");
  await page.getByRole("button", { name: /^Save/ }).click();
  await page.getByRole("button", { name: "View: Acme or done" }).waitFor();
  assert.equal(whereOf(page), null);
  await records(page, 20);
  await page.goto(`${base}/admin/data/duty`);
  await ready(page);
  await records(page, 30);
  await page.getByRole("button", { name: "View: All records" }).click();
  await page.getByRole("menuitem", { name: "Acme or done" }).click();
  await records(page, 20);
  await page.getByRole("button", { name: "status is done or owner's firm's name is Acme", exact: true }).waitFor();

  // The copied curl command is the same request, and its response has the same number of records.
  const curl = await copyAs(page, "curl");
  const url = new URL(/'(http[^']+)'/.exec(curl)[1]);
  assert.deepEqual(JSON.parse(url.searchParams.get("where")), { _or: [{ status: "done" }, { "owner.firm.name": "Acme" }], big: { is_null: true } });
  assert.equal((await must(me, "GET", url.pathname + url.search)).pagination.totalCount, 20);
  assert.equal((await answerOf(await copyAs(page, "JavaScript"))).pagination.totalCount, 20);
  const query = await copyAs(page, "GraphQL");
  const answer = await must(me, "POST", "/api/v1/graphql", { query });
  assert.equal(answer.errors, undefined, JSON.stringify(answer.errors));
  assert.equal(answer.data.duty.pagination.totalCount, 20);
  assert.deepEqual(JSON.parse(await copyAs(page, "MCP")).params.arguments.where, { _or: [{ status: "done" }, { "owner.firm.name": "Acme" }], big: { is_null: true } });

  // The export has the same rows.
  await page.getByRole("button", { name: "Import, export" }).click();
  const downloading = page.waitForEvent("download");
  await page.getByRole("menuitem", { name: /^Export as CSV/ }).click();
  const download = await downloading;
  const chunks = [];
  for await (const chunk of await download.createReadStream()) chunks.push(chunk);
  assert.equal(Buffer.concat(chunks).toString("utf8").trim().split("\n").length, 21);

  // A cell's value is added to the condition, and a record that leaves the view shows the reason.
  await grid(page).locator('[data-row="0"] [data-column="status"]').click({ button: "right" });
  await page.getByRole("menuitem", { name: "Only rows with this value" }).click();
  await until("one more part", async () => (await page.locator("[data-chip]").count()) === 3);
  assert.ok(JSON.parse(whereOf(page)).status !== undefined);
});

test("a copied request has all digits", async () => {
  const big = "9007199254740993";
  const page = await open(address(`{"_or":[{"big":${big}},{"title":"nothing"}]}`), { as: me });
  await ready(page);
  // No double has this value. With the nearest one, no record matches.
  await records(page, 1);
  const curl = await copyAs(page, "curl");
  const url = new URL(/'(http[^']+)'/.exec(curl)[1]);
  assert.ok(url.searchParams.get("where").includes(big), curl);
  assert.equal((await must(me, "GET", url.pathname + url.search)).pagination.totalCount, 1);
  assert.equal((await answerOf(await copyAs(page, "JavaScript"))).pagination.totalCount, 1);
  const query = await copyAs(page, "GraphQL");
  assert.ok(query.includes(`where: { _or: [{ big: { eq: ${big} } }, { title: { eq: "nothing" } }] }`), query);
  const answer = await must(me, "POST", "/api/v1/graphql", { query });
  assert.equal(answer.errors, undefined, JSON.stringify(answer.errors));
  assert.equal(answer.data.duty.pagination.totalCount, 1);
  // A literal of GraphQL cannot have all digits of this one, so it is a variable.
  const decimal = "12345678901234567.89";
  const precise = (await must(me, "POST", "/api/v1/data/duty", { title: "Precise", status: "open", amount: decimal })).data;
  await page.goto(`${base}${address(`{"_or":[{"amount":${decimal}},{"title":"nothing"}]}`)}`);
  await ready(page);
  await records(page, 1);
  const [document, variables] = (await copyAs(page, "GraphQL")).split("\n\n# variables\n");
  assert.ok(variables.includes(decimal), variables);
  const answered = await must(me, "POST", "/api/v1/graphql", `{"query":${JSON.stringify(document)},"variables":${variables}}`);
  assert.equal(answered.data?.duty.pagination.totalCount, 1, JSON.stringify(answered));
  await must(me, "DELETE", `/api/v1/data/duty/${precise.id}`);
  await page.goto(`${base}${address(`{"_or":[{"big":${big}},{"title":"nothing"}]}`)}`);
  await ready(page);
  await records(page, 1);

  const tool = await copyAs(page, "MCP");
  const message = tool.replace("{", '{ "jsonrpc": "2.0", "id": 1,');
  const called = await must(me, "POST", "/api/v1/mcp", message, { headers: { accept: "application/json, text/event-stream" } });
  assert.equal(called.result?.structuredContent?.pagination.totalCount, 1, `${tool} ${JSON.stringify(called)}`);

  // A number in a body has its digits too.
  await page.goto(`${base}/admin/data/duty/new`);
  for (const [name, value] of [["title", "Copied"], ["big", big]]) await page.locator(`[data-column="${name}"]`).getByRole("textbox").fill(value);
  const made = await answerOf(await copyAs(page, "JavaScript"));
  assert.equal((await must(me, "GET", `/api/v1/data/duty?title[eq]=Copied&big[eq]=${big}`)).pagination.totalCount, 1);
  await must(me, "DELETE", `/api/v1/data/duty/${made.data.id}`);
});

test("a row that does not match any more says so", async () => {
  const made = (await must(me, "POST", "/api/v1/data/duty", { title: "Leaves", status: "open", amount: 500 })).data;
  const page = await open(address({ _or: [{ amount: { gt: 400 } }, { title: "nothing" }] }), { as: me });
  await ready(page);
  await records(page, 1);
  await must(me, "PATCH", `/api/v1/data/duty/${made.id}`, { amount: 1 });
  await grid(page).locator("[data-row][data-gone]").waitFor();
  await records(page, 0);
  await must(me, "DELETE", `/api/v1/data/duty/${made.id}`);
});

test("old addresses stay, digits stay, and what is no condition is shown as text", async () => {
  const page = await open(`/admin/data/duty?filter=${encodeURIComponent(JSON.stringify([["status", "eq", "open"], ["amount", "gte", "9"]]))}`, { as: me, expect: [/status of 400/] });
  const asked = [];
  page.on("request", (request) => asked.push(request.url()));
  await ready(page);
  await records(page, 7);
  await page.getByRole("button", { name: "status is open", exact: true }).waitFor();
  // Plain conditions are still sent one by one.
  await page.reload();
  await records(page, 7);
  assert.ok(asked.some((url) => url.includes("status[eq]=open") && url.includes("amount[gte]=9")));
  assert.ok(asked.every((url) => !url.includes("where=")));

  await page.goto(`${base}${address('{"big":9007199254740993}')}`);
  await ready(page);
  await records(page, 1);
  await page.getByRole("button", { name: "big = 9007199254740993", exact: true }).waitFor();

  // The builder has no field for a variable. The part stays, and its text can be edited.
  await page.goto(`${base}${address({ created_by: "$user.id", _or: [{ amount: 1 }, { amount: 2 }] })}`);
  await ready(page);
  await records(page, 2);
  await page.getByRole("button", { name: /^amount = 1 or/ }).click();
  await builder(page).locator("code").getByText("$user.id").waitFor();
  await look(page, "text", { widths: [1280, 390] });
  await builder(page).getByRole("button", { name: "Edit as JSON" }).first().click();
  const editor = builder(page).getByRole("textbox", { name: "Condition" });
  await writeCode(editor, '{"amount": {"lt": 3}');
  await builder(page).getByText(/^This is not JSON/).waitFor();
  assert.ok(await builder(page).getByRole("button", { name: "Apply" }).isDisabled());
  await writeCode(editor, '{"amount": {"lt": 3}, "_not": {"amount": 0}}');
  await builder(page).getByText("2 records match").waitFor();
  await look(page, "json", { widths: [1280, 390] });
  await builder(page).getByRole("button", { name: "Back to the builder" }).click();
  await says(page, "amount < 3 and not (amount = 0)");
  await apply(page);
  await records(page, 2);

  // The text is not even JSON.
  await page.goto(`${base}${address('{"amount":')}`);
  await page.getByRole("heading", { name: "The records could not be loaded" }).or(page.getByText("The records could not be loaded")).first().waitFor();
  await page.getByRole("button", { name: /^where/ }).click();
  await builder(page).getByRole("textbox", { name: "Condition" }).waitFor();
  await page.keyboard.press("Escape");
  await builder(page).waitFor({ state: "hidden" });
  await page.getByRole("button", { name: "Remove the condition of the address" }).click();
  await records(page, 30);
});

/** The titles of three duties, and as many others as are needed. No duty has the others. */
const titles = (count) => ["Duty 01", "Duty 02", "Duty 03", ...Array.from({ length: count - 3 }, (_, index) => `01a2025c-0000-7000-8000-${String(index).padStart(12, "0")}`)];
const plainly = (conditions) => `/admin/data/duty?filter=${encodeURIComponent(JSON.stringify(conditions))}`;

test("a long filter stays the filter of the list, its count and its export", async () => {
  const page = await open("/admin/data/duty", { as: me });
  const asked = [];
  page.on("request", (request) => asked.push(`${request.method()} ${new URL(request.url()).pathname}`));
  await ready(page);
  await records(page, 30);
  await page.getByRole("button", { name: "Filter", exact: true }).click();
  await page.getByRole("button", { name: "Build with and, or, not" }).click();
  await builder(page).getByRole("button", { name: "Edit as JSON" }).click();
  const editor = builder(page).getByRole("textbox", { name: "Condition" });

  // An address cannot hold this one.
  await writeCode(editor, JSON.stringify({ title: { in: titles(1_100) } }));
  await builder(page).getByText("The filter is too long for an address. Take away values or conditions.").waitFor();
  assert.ok(await builder(page).getByRole("button", { name: "Apply" }).isDisabled());
  await look(page, "too-long", { widths: [1280, 390] });

  await writeCode(editor, JSON.stringify({ title: { in: titles(450) } }));
  await builder(page).getByText("3 records match").waitFor();
  await apply(page);
  await records(page, 3);
  assert.ok(new URL(page.url()).searchParams.get("filter").length > 16_000);
  assert.ok(!asked.includes("POST /api/v1/data/duty/query"), asked.join("\n"));
  await page.reload();
  await ready(page);
  await records(page, 3);

  // With as many items as the server takes, the list and the count have a body. The address still holds the filter.
  await page.goto(`${base}${plainly([["title", "in", titles(1_000)]])}`);
  await ready(page);
  await records(page, 3);
  assert.ok(asked.includes("POST /api/v1/data/duty/query"), asked.join("\n"));
  assert.match(await copyAs(page, "curl"), /curl -X POST '[^']+\/api\/v1\/data\/duty\/query'/);
  await page.getByRole("button", { name: "Import, export" }).click();
  const downloading = page.waitForEvent("download");
  await page.getByRole("menuitem", { name: /^Export as CSV/ }).click();
  const chunks = [];
  for await (const chunk of await (await downloading).createReadStream()) chunks.push(chunk);
  assert.equal(Buffer.concat(chunks).toString("utf8").trim().split("\n").length, 4);

  // The filter fits, and with the value of a cell it does not.
  const full = (length) => [["title", "in", titles(1_000)], ["title", "neq", "x".repeat(length)]];
  const room = 48_000 - new URLSearchParams({ filter: JSON.stringify(full(0)), where: "", having: "", q: "" }).toString().length;
  await page.goto(`${base}${plainly(full(room))}`);
  await ready(page);
  await records(page, 3);
  await cell(page, 0, "status").click({ button: "right" });
  await page.getByRole("menuitem", { name: "Only rows with this value" }).click();
  await page.getByRole("alert").getByText("The filter was not changed").waitFor();
  await records(page, 3);
  assert.equal(await page.locator("[data-chip]").count(), 2);
});

test("a filter of the address that cannot be read shows no records", async () => {
  const unread = (page) => page.getByRole("heading", { name: "The filter of this address cannot be read" });
  const page = await open("/admin", { as: me });
  for (const [path, reason] of [
    [plainly([["title", "in", titles(1_100)]]), "It is too long."],
    [plainly([["status", "near", "open"]]), "A part of it is missing or wrong"],
    ["/admin/data/duty?filter=%5B%5B%22status%22%2C%22eq%22", "A part of it is missing or wrong"],
    [`${plainly([["status", "eq", "open"]])}&group=status&having=%5B%5B`, "A part of it is missing or wrong"],
  ]) {
    await page.goto(`${base}${path}`);
    const asked = [];
    page.on("request", (request) => asked.push(new URL(request.url()).pathname));
    await unread(page).waitFor();
    await page.getByText(reason).waitFor();
    // It stays so when the page is loaded again, so the address still has the filter.
    await page.reload();
    await unread(page).waitFor();
    assert.equal(await grid(page).count(), 0);
    for (const name of ["Import, export", "Copy as", "Group"]) assert.equal(await page.getByRole("button", { name, exact: true }).count(), 0, name);
    assert.deepEqual(asked.filter((each) => each.startsWith("/api/v1/data/duty")), []);
  }
  await look(page, "unread", { widths: [1280, 390] });
  await page.goto(`${base}${plainly([["status", "near", "open"]])}`);
  await page.getByRole("button", { name: "Remove the filter" }).click();
  await ready(page);
  await records(page, 30);
  await page.goBack();
  await unread(page).waitFor();
});

test("the server's refusal stands in the builder", async () => {
  const page = await open(address({ _or: [{ amount: { gte: 1 } }, { title: "x" }] }), { as: me, expect: [/status of 400/, /status of 500/] });
  await ready(page);
  await page.getByRole("button", { name: /^amount ≥ 1/ }).click();
  await builder(page).getByRole("textbox", { name: "Value of amount" }).fill("many");
  await builder(page).getByRole("alert").getByText("The server refuses this filter").waitFor();
  await builder(page).getByRole("alert").getByText("where._or[0].amount").first().waitFor();
  assert.ok(await builder(page).getByRole("button", { name: "Apply" }).isDisabled());
  await look(page, "refused", { widths: [1280, 390] });
  await builder(page).getByRole("textbox", { name: "Value of amount" }).fill("2");
  await builder(page).getByText("28 records match").waitFor();

  // A condition in the address can be larger than any that the builder makes.
  const deep = (levels) => (levels === 1 ? { amount: 1 } : { _not: deep(levels - 1) });
  await page.goto(`${base}${address({ title: "x", ...deep(10) })}`);
  await page.getByText("The records could not be loaded").first().waitFor();
  await page.getByRole("button", { name: /^not \(not/ }).click();
  await builder(page).getByRole("alert").getByText("8 levels").waitFor();
  await page.goto(`${base}${address({ _or: [{ amount: { gte: 2 } }, { title: "x" }] })}`);
  await ready(page);
  await page.getByRole("button", { name: /^amount ≥ 2/ }).click();

  // Incomplete parts are marked when the person tries to apply the filter.
  await builder(page).getByRole("textbox", { name: "Value of amount" }).fill("");
  await apply(page);
  await builder(page).getByText("Complete the marked conditions, or remove them.").waitFor();
  await builder(page).getByRole("textbox", { name: "Value of amount" }).fill("3");
  // If the count fails for another reason, the filter can still be applied.
  const release = await intercept(page, "/aggregate", { status: 500, body: { error: { code: "internal_error", message: "It broke." } } });
  await builder(page).getByRole("textbox", { name: "Value of amount" }).fill("4");
  await builder(page).getByRole("alert").getByText("The records could not be counted").waitFor();
  await apply(page);
  await builder(page).waitFor({ state: "hidden" });
  await until("the rows", async () => (await grid(page).locator("[data-row]").count()) > 10);
  await release();
});

test("no relation is offered that leads to what one may not read", async () => {
  const reader = await person(me, `Filter Reader ${engine}`, [{ resource: "duty", actions: ["read"] }, { resource: "clerk", actions: ["read"] }]);
  const page = await open("/admin/data/duty", { as: reader });
  await ready(page);
  await page.getByRole("button", { name: "Filter", exact: true }).click();
  await page.getByRole("combobox", { name: "Column" }).click();
  await page.getByRole("option", { name: "Columns of owner" }).waitFor();
  assert.equal(await page.getByRole("option", { name: /many records/ }).count(), 0);
  await page.getByRole("option", { name: "Columns of owner" }).click();
  await page.getByRole("option", { name: "age", exact: true }).waitFor();
  assert.equal(await page.getByRole("option", { name: "Columns of firm" }).count(), 0);
  assert.equal((await call(reader, "GET", `/api/v1/data/duty?where=${encodeURIComponent('{"owner.firm.name":"Acme"}')}`)).status, 403);
});

test("the text null is a text in every form of a filter, and not null", async () => {
  const page = await open("/admin/data/reply?sort=place", { as: me });
  await ready(page);
  await records(page, 4);
  // By a cell. The row of the first place has the text.
  await cell(page, 0, "word").click({ button: "right" });
  await page.getByRole("menuitem", { name: "Only rows with this value" }).click();
  await records(page, 1);
  await page.getByRole("button", { name: 'word is "null"', exact: true }).waitFor();
  await shows(page, 1, "place", "1");
  const url = new URL(/'(http[^']+)'/.exec(await copyAs(page, "curl"))[1]);
  assert.equal((await must(me, "GET", url.pathname + url.search)).pagination.totalCount, 1);
  assert.equal((await answerOf(await copyAs(page, "JavaScript"))).pagination.totalCount, 1);
  const answer = await must(me, "POST", "/api/v1/graphql", { query: await copyAs(page, "GraphQL") });
  assert.equal(answer.data?.reply.pagination.totalCount, 1, JSON.stringify(answer));
  const called = await must(me, "POST", "/api/v1/mcp", (await copyAs(page, "MCP")).replace("{", '{ "jsonrpc": "2.0", "id": 1,'), { headers: { accept: "application/json, text/event-stream" } });
  assert.equal(called.result?.structuredContent?.pagination.totalCount, 1, JSON.stringify(called));

  // As JSON. The value null is another condition.
  await page.getByRole("button", { name: 'word is "null"', exact: true }).click();
  await page.getByRole("button", { name: "Build with and, or, not" }).click();
  await builder(page).getByRole("button", { name: "Edit as JSON" }).click();
  const editor = builder(page).getByRole("textbox", { name: "Condition" });
  await writeCode(editor, '{"word": null}');
  await builder(page).getByText("2 records match").waitFor();
  await writeCode(editor, '{"word": "null"}');
  await builder(page).getByText("1 record matches").waitFor();
  await apply(page);
  await records(page, 1);

  // By the address, as in saved views: alone, negated, in lists, and as a part of a text.
  for (const [operator, value, count] of [["eq", "null", 1], ["neq", "null", 3], ["in", ["null", "some"], 2], ["nin", ["null"], 3], ["ilike", "null", 1], ["is_null", undefined, 2]]) {
    await page.goto(`${base}/admin/data/reply?filter=${encodeURIComponent(JSON.stringify([["word", operator, ...(value === undefined ? [] : [value])]]))}`);
    await ready(page);
    await records(page, count);
  }
});

test("an object with a field called where has the builder, and says what cannot have its conditions", async () => {
  const page = await open("/admin/data/lookup?sort=title", { as: me });
  const asked = [];
  page.on("request", (request) => asked.push(`${request.method()} ${request.url()}`));
  await ready(page);
  await page.getByRole("button", { name: "Filter", exact: true }).click();
  const quick = page.getByRole("dialog", { name: "Filter", exact: true });
  await choosePath(page, quick.getByRole("combobox", { name: "Column" }), "where");
  await quick.getByRole("textbox", { name: "Value of where" }).fill("there");
  await quick.getByRole("button", { name: "Add condition" }).click();
  await records(page, 2);
  // A plain condition needs no body.
  assert.deepEqual(asked.filter((request) => request.startsWith("POST") && request.includes("/data/lookup")), []);

  await page.getByRole("button", { name: "where contains there", exact: true }).click();
  await page.getByRole("button", { name: "Build with and, or, not" }).click();
  await builder(page).getByRole("button", { name: "Edit as JSON" }).click();
  await writeCode(builder(page).getByRole("textbox", { name: "Condition" }), '{"_or": [{"where": "there"}, {"title": "none"}]}');
  await builder(page).getByText("2 records match").waitFor();
  await apply(page);
  await page.getByRole("button", { name: "where is there or title is none", exact: true }).waitFor();
  await records(page, 2);
  await shows(page, 2, "title", "three");
  assert.ok(asked.some((request) => request.startsWith("POST") && request.endsWith("/api/v1/data/lookup/query")), asked.join("\n"));
  assert.ok(asked.every((request) => !/\/data\/lookup\S*[?&]where=/.test(request) || request.includes("/admin/")), asked.join("\n"));
  assert.match(await copyAs(page, "curl"), /curl -X POST '[^']+\/api\/v1\/data\/lookup\/query'/);
  assert.equal((await answerOf(await copyAs(page, "JavaScript"))).pagination.totalCount, 2);
  const answer = await must(me, "POST", "/api/v1/graphql", { query: await copyAs(page, "GraphQL") });
  assert.equal(answer.data?.lookup.pagination.totalCount, 2, JSON.stringify(answer));

  // Exports, groups and the selection of all that match have no body, and say so.
  const reason = "The object has a field called where, so only its list takes this condition.";
  await page.getByRole("button", { name: "Import, export" }).click();
  await page.getByText(reason).waitFor();
  assert.ok(await page.getByRole("menuitem", { name: /^Export as CSV/ }).isDisabled());
  await look(page, "where-export", { widths: [1280] });
  await page.keyboard.press("Escape");
  await grid(page).focus();
  await page.keyboard.press("Space");
  assert.ok(await page.getByRole("button", { name: "Select all 2 that match" }).isDisabled());
  await page.getByRole("toolbar", { name: "Selected records" }).getByText(reason).waitFor();
  await look(page, "where-selected", { widths: [1280, 390] });
  await page.getByRole("button", { name: "Clear selection" }).click();
  await page.getByRole("button", { name: "Group", exact: true }).click();
  await page.getByRole("heading", { name: "Groups cannot have this filter" }).waitFor();
  await page.getByText(reason).waitFor();
  await look(page, "where-groups", { widths: [1280, 390] });
  await page.getByRole("button", { name: "Show the records" }).click();
  await ready(page);
  await records(page, 2);

  // A row that does not match any more says so here too.
  const [{ id }] = (await must(me, "GET", "/api/v1/data/lookup?title=two")).data;
  await must(me, "PATCH", `/api/v1/data/lookup/${id}`, { where: "elsewhere" });
  await grid(page).locator("[data-row][data-gone]").waitFor();
  await records(page, 1);
});

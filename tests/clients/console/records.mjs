// The table of records: view, filter, sort, columns, cells, views, states.
import assert from "node:assert/strict";
import { before, test } from "node:test";
import { admin, base, call, cell, copyAs, focused, frames, framesAtRest, grid, holdAnswers, hostile, intercept, look, must, open, openInFirefox, person, ready, tryAgain, until } from "./harness.mjs";

let me;
let grace;

const FIELDS = [
  { name: "title", type: "text", required: true },
  { name: "note", type: "text" },
  { name: "status", type: "enum", options: ["open", "doing", "done"] },
  { name: "tags", type: "multi_enum", options: ["red", "green", "blue"] },
  { name: "done", type: "boolean" },
  { name: "n", type: "integer", min: 0 },
  { name: "big", type: "big_integer" },
  { name: "price", type: "decimal" },
  { name: "cost", type: "currency" },
  { name: "share", type: "percentage" },
  { name: "ratio", type: "float" },
  { name: "stars", type: "rating" },
  { name: "day", type: "date" },
  { name: "at", type: "time" },
  { name: "due", type: "datetime" },
  { name: "meta", type: "json" },
  { name: "ref", type: "uuid" },
  { name: "site", type: "url" },
  { name: "mail", type: "email" },
  { name: "slug", type: "slug" },
];

before(async () => {
  me = await admin();
  await must(me, "POST", "/api/v1/objects", { name: "human", fields: [{ name: "name", type: "text", required: true }] });
  await must(me, "POST", "/api/v1/objects", { name: "errand", label: "Errands", fields: FIELDS });
  await must(me, "POST", "/api/v1/relationships", { name: "owner", kind: "many_to_one", source: "errand", target: "human" });
  grace = (await must(me, "POST", "/api/v1/data/human", { name: "Grace Hopper" })).data;
  await must(me, "POST", "/api/v1/data/human", { name: "Alan Turing" });
  const data = Array.from({ length: 240 }, (_, index) => ({
    title: `Errand ${String(index).padStart(3, "0")}`,
    status: ["open", "doing", "done"][index % 3],
    n: index,
    big: "9007199254740993",
    done: index % 2 === 0,
    day: `2026-01-${String((index % 28) + 1).padStart(2, "0")}`,
  }));
  await must(me, "POST", "/api/v1/data/errand/bulk", { data });
  // 210 records: the last page of 50 is shorter than the table is high.
  await must(me, "POST", "/api/v1/objects", { name: "letter", label: "Letters", fields: [{ name: "title", type: "text" }, { name: "n", type: "integer", indexed: true }] });
  await must(me, "POST", "/api/v1/data/letter/bulk", { data: Array.from({ length: 210 }, (_, n) => ({ title: letter(n), n })) });
});

const letter = (n) => `Letter ${String(n).padStart(3, "0")}`;

const cellText = async (page, row, column) => ((await cell(page, row, column).textContent()) ?? "").trim();
const one = (title) => must(me, "GET", `/api/v1/data/errand?title[eq]=${encodeURIComponent(title)}`).then(({ data }) => data[0]);
async function fresh(title, values = {}) {
  return (await must(me, "POST", "/api/v1/data/errand", { title, ...values })).data;
}
const only = (title) => `/admin/data/errand?filter=${encodeURIComponent(JSON.stringify([["title", "eq", title]]))}`;

test("the table shows, filters, searches and sorts, and the address says how", async () => {
  const page = await open("/admin/data/errand", { as: me });
  await ready(page);
  await page.getByText("240 records").waitFor();
  await look(page, "table");

  // Adds a condition with the keyboard alone.
  await grid(page).focus();
  await page.keyboard.press("f");
  await page.locator('[aria-label="Column"]:focus').waitFor();
  await page.keyboard.type("status");
  await page.keyboard.press("Enter");
  await page.getByRole("combobox", { name: "Value of status" }).click();
  await page.getByRole("option", { name: "doing", exact: true }).click();
  await page.getByRole("button", { name: "Add condition" }).click();
  await page.getByText("80 records").waitFor();
  assert.match(decodeURIComponent(page.url()), /filter=.*status.*eq.*doing/);

  // The chip is edited in place, and another column is added.
  await page.getByRole("button", { name: /^status (is|=)/ }).click();
  await page.getByRole("combobox", { name: "Operator" }).click();
  await page.getByRole("option", { name: "is not", exact: true }).click();
  await page.getByRole("button", { name: "Apply" }).click();
  await page.getByText("160 records").waitFor();
  await page.getByRole("searchbox", { name: "Search Errands" }).fill("errand 01");
  await page.getByText("6 records").waitFor();
  await grid(page).getByRole("button", { name: "title", exact: true }).click();
  await until("ascending", async () => (await cellText(page, 0, "title")) === "Errand 010" || (await cellText(page, 0, "title")) === "Errand 011" || (await cellText(page, 0, "title")) === "Errand 012");
  const first = await cellText(page, 0, "title");
  await look(page, "filtered");
  await page.reload();
  await ready(page);
  assert.equal(await cellText(page, 0, "title"), first);
  await page.getByText("6 records").waitFor();

  // Delete removes a chip, and the focus stays nearby.
  await page.getByRole("button", { name: /^status (is|=)/ }).focus();
  await page.keyboard.press("Delete");
  await page.getByText("10 records").waitFor();
  assert.equal(await focused(page), "Filter");
  await page.getByRole("button", { name: "Clear the field Search Errands" }).click();
  await page.getByText("240 records").waitFor();
  assert.ok(await page.getByRole("searchbox", { name: "Search Errands" }).evaluate((element) => element === document.activeElement));

  await page.getByRole("searchbox", { name: "Search Errands" }).fill("nothing has this");
  await page.getByRole("heading", { name: "No record matches" }).waitFor();
  await look(page, "no-match");
  await page.getByRole("button", { name: "Clear search and filter" }).click();
  await page.getByText("240 records").waitFor();
});

test("every operator of every type of column is taken by the server", async () => {
  const page = await open("/admin/data/errand", { as: me });
  await ready(page);
  const samples = { text: "a", enum: "open", multi_enum: "red", boolean: "true", integer: "1", big_integer: "9007199254740993", decimal: "1.5", currency: "1.5", percentage: "1.5", float: "1.5", rating: "3", date: "2026-01-01", time: "12:00", datetime: "2026-01-01T00:00:00Z", json: "", uuid: grace.id, url: "https://example.com", email: "a@example.com", slug: "a" };
  const columns = [...FIELDS.map(({ name, type }) => [name, type]), ["owner_id", "uuid"], ["id", "uuid"], ["created_at", "datetime"], ["created_by", "text"]];
  for (const [name, type] of columns) {
    await page.getByRole("button", { name: "Filter", exact: true }).click();
    const dialog = page.getByRole("dialog", { name: "Filter", exact: true });
    await dialog.getByRole("combobox", { name: "Column" }).fill(name);
    await dialog.getByRole("option", { name: new RegExp(`^(${name}|.* \\(${name}\\))$`) }).first().click();
    await dialog.getByRole("combobox", { name: "Operator" }).click();
    let known = [];
    await until(`operators of ${name} are offered`, async () => {
      const offered = await dialog.getByRole("option").evaluateAll((options) => options.map((option) => option.getAttribute("value")));
      known = offered.filter((operator) => operator !== null && /^(eq|neq|gte?|lte?|i?like|n?in|is_(not_)?null)$/.test(operator));
      return known.length >= 2;
    });
    await page.keyboard.press("Escape");
    if (await dialog.isVisible()) await page.keyboard.press("Escape");
    await dialog.waitFor({ state: "hidden" });
    for (const operator of known) {
      const value = /null/.test(operator) ? "true" : samples[type];
      const answer = await call(me, "GET", `/api/v1/data/errand?${name}[${operator}]=${encodeURIComponent(value)}&count=none`);
      assert.equal(answer.status, 200, `${name} ${operator}: ${JSON.stringify(answer.body)}`);
    }
  }
});

test("a cell of each type is edited in place", async () => {
  await fresh("types", { big: "9007199254740993" });
  const page = await open(only("types"), { as: me });
  await ready(page);
  const steps = [
    ["note", async () => page.keyboard.type("hello"), "hello", "hello"],
    ["n", async () => page.keyboard.type("42"), 42, "42"],
    ["price", async () => page.keyboard.type("1.25"), 1.25, "1.25"],
    ["cost", async () => page.keyboard.type("9.9"), 9.9, "9.90"],
    ["share", async () => page.keyboard.type("12.5"), 12.5, "12.5"],
    ["ratio", async () => page.keyboard.type("0.5"), 0.5, "0.5"],
    ["stars", async () => page.keyboard.type("4"), 4, "4"],
    ["ref", async () => page.keyboard.type(grace.id), grace.id, grace.id.slice(-8)],
    ["site", async () => page.keyboard.type("https://example.com/x"), "https://example.com/x", "https://example.com/x"],
    ["mail", async () => page.keyboard.type("ada@example.com"), "ada@example.com", "ada@example.com"],
    ["slug", async () => page.keyboard.type("a-slug"), "a-slug", "a-slug"],
    ["day", async (field) => field.fill("2026-03-04"), "2026-03-04", "2026-03-04"],
    ["at", async (field) => field.fill("12:34:56"), "12:34:56", "12:34:56"],
    // Berlin is an hour ahead of UTC in March.
    ["due", async (field) => field.fill("2026-03-04T12:00"), "2026-03-04T11:00:00.000Z", "Mar 4, 2026"],
  ];
  for (const [column, type, stored, shown] of steps) {
    await editAt(page, 0, column);
    const field = page.getByRole("dialog", { name: `Edit ${column}`, exact: true }).locator("input, textarea").first();
    await until(`${column} has the focus`, () => field.evaluate((element) => element === document.activeElement));
    await type(field);
    await page.keyboard.press("Enter");
    await until(`${column} is stored`, async () => String((await one("types"))[column]) === String(stored));
    await until(`${column} shows ${shown}`, async () => (await cellText(page, 0, column)).includes(shown));
    await until(`the grid has the focus after ${column}`, () => grid(page).evaluate((element) => element === document.activeElement));
  }
  // The number keeps all its digits.
  assert.equal(await cellText(page, 0, "big"), "9007199254740993");
  await editAt(page, 0, "big");
  await page.keyboard.type("9223372036854775807");
  await page.keyboard.press("Enter");
  await until("big is stored", async () => (await call(me, "GET", "/api/v1/data/errand?title[eq]=types&select=big&count=none", undefined)).status === 200 && (await raw("types")).includes('"big":9223372036854775807'));
  await until("all digits of the new number", async () => (await cellText(page, 0, "big")) === "9223372036854775807");

  for (const [column, option, stored] of [["status", "done", "done"], ["done", "true", true]]) {
    await editAt(page, 0, column);
    await page.getByRole("option", { name: option, exact: true }).click();
    await until(`${column} is stored`, async () => (await one("types"))[column] === stored);
  }
  await editAt(page, 0, "tags");
  await page.getByRole("option", { name: "green" }).click();
  await page.keyboard.press("Control+Enter");
  await until("tags are stored", async () => String((await one("types")).tags) === "green");

  await editAt(page, 0, "meta");
  const editor = page.getByRole("textbox", { name: "meta" });
  await editor.waitFor();
  await editor.fill('{"a": [1, 2], "big": 12345678901234567890}');
  await page.keyboard.press("Control+Enter");
  await until("meta is stored", async () => (await one("types")).meta?.a?.length === 2);
  await until("meta is shown", async () => (await cellText(page, 0, "meta")).includes('"a":[1,2]'));
  // A text is also JSON, and stays a text.
  await editAt(page, 0, "meta");
  await editor.waitFor();
  await editor.fill('"12"');
  await page.keyboard.press("Control+Enter");
  await until("meta is a text", async () => (await one("types")).meta === "12");

  await editAt(page, 0, "owner_id");
  const picker = page.getByRole("dialog", { name: "Edit owner", exact: true }).getByRole("combobox");
  await picker.fill("Grace");
  await page.getByRole("option", { name: /Grace Hopper/ }).click();
  await until("the owner is stored", async () => (await one("types")).owner_id === grace.id);
  await until("the owner's name is shown", async () => (await cellText(page, 0, "owner_id")) === "Grace Hopper");
});

test("the editor of a relation leaves by the keys of every other", async () => {
  await fresh("relation keys", { owner_id: grace.id });
  const page = await open(only("relation keys"), { as: me });
  await ready(page);
  const editor = page.getByRole("dialog", { name: "Edit owner", exact: true });
  const isGridFocused = () => grid(page).evaluate((element) => element === document.activeElement);
  await editAt(page, 0, "owner_id");
  await until("the picker has the focus", () => editor.getByRole("combobox").evaluate((element) => element === document.activeElement));
  await page.keyboard.press("Escape");
  await editor.waitFor({ state: "hidden" });
  await until("the grid has the focus after Escape", isGridFocused);
  // If the text names no record, Tab does not leave the editor, and the first Escape discards the text.
  await editAt(page, 0, "owner_id");
  await until("the picker has the focus again", () => editor.getByRole("combobox").evaluate((element) => element === document.activeElement));
  await page.keyboard.type("nobody");
  await page.keyboard.press("Tab");
  await editor.getByRole("alert").getByText("Choose a record of").waitFor();
  await page.keyboard.press("Escape");
  await until("the name is back", async () => (await editor.getByRole("combobox").inputValue()) === "Grace Hopper");
  await page.keyboard.press("Tab");
  await editor.waitFor({ state: "hidden" });
  await until("the grid has the focus after Tab", isGridFocused);
  assert.equal((await one("relation keys")).owner_id, grace.id);
});

const raw = (title) => fetch(`${base}/api/v1/data/errand?title[eq]=${title}`, { headers: { authorization: `Bearer ${me.token}` } }).then((answer) => answer.text());

/** Opens the editor of a cell with the keyboard, because the cell may be outside of the visible columns. */
async function editAt(page, row, column) {
  await grid(page).focus();
  await page.keyboard.press("Control+Home");
  for (let step = 0; step < row; step++) await page.keyboard.press("ArrowDown");
  for (let step = 0; step < 240; step++) {
    if ((await grid(page).locator("[data-active]").getAttribute("data-column")) === column) break;
    await page.keyboard.press("ArrowRight");
  }
  await page.keyboard.press("F2");
  await page.locator("[data-editor] :focus").waitFor({ state: "attached" });
}

test("keys that come before the editor of a cell is loaded change nothing", async () => {
  const { id } = await fresh("early keys", { note: "something" });
  const page = await open(only("early keys"), { as: me });
  await ready(page);
  const editor = await holdAnswers(page, "**/assets/CellEditor-*.js");
  const asked = [];
  page.on("request", (request) => asked.push(new URL(request.url()).pathname));
  await cell(page, 0, "note").click();
  await page.keyboard.press("F2");
  await editor.isAsked;
  for (const key of ["Delete", "Enter", "n"]) await page.keyboard.press(key);
  assert.equal(await cellText(page, 0, "note"), "something");
  editor.release();
  await page.locator("[data-editor] :focus").waitFor();
  assert.ok(!asked.includes(`/api/v1/data/errand/${id}`), "the record was neither read nor changed");
  assert.equal(new URL(page.url()).searchParams.get("open"), null);
  await page.keyboard.press("Delete");
  await page.keyboard.press("Enter");
  await until("an empty text", async () => (await one("early keys")).note === "");
});

test("null is not empty, a refusal stays at the cell, and Ctrl Z takes back", async () => {
  await fresh("nulls", { note: "something", n: 5 });
  const page = await open(only("nulls"), { as: me, expect: [/status of 400/] });
  await ready(page);
  await editAt(page, 0, "note");
  await page.keyboard.press("Delete");
  await page.keyboard.press("Enter");
  await until("an empty text", async () => (await one("nulls")).note === "");
  assert.equal(await cellText(page, 0, "note"), '""');
  await editAt(page, 0, "note");
  await page.getByRole("button", { name: "Set null" }).click();
  await until("null", async () => (await one("nulls")).note === null);
  assert.match(await cellText(page, 0, "note"), /null/);
  await grid(page).focus();
  await page.keyboard.press("Control+z");
  await until("empty again", async () => (await one("nulls")).note === "");
  await page.keyboard.press("Control+z");
  await until("the text again", async () => (await one("nulls")).note === "something");
  await page.keyboard.press("Control+Shift+z");
  await until("done again", async () => (await one("nulls")).note === "");

  // An undo waits for the change before it, whose response may be late.
  let letThrough;
  const held = new Promise((resolve) => (letThrough = resolve));
  const release = await intercept(page, "/api/v1/data/", async (request) => {
    const response = await fetch(request.url(), { method: "PATCH", headers: await request.allHeaders(), body: request.postData() });
    const body = await response.text();
    await held;
    return { status: response.status, headers: { etag: response.headers.get("etag") }, body };
  }, { method: "PATCH" });
  await page.keyboard.press("Control+z");
  await until("the text, unanswered", async () => (await one("nulls")).note === "something");
  await page.keyboard.press("Control+Shift+z");
  letThrough();
  await until("done again", async () => (await one("nulls")).note !== "something");
  assert.equal((await one("nulls")).note, "");
  await release();

  // A text that is not a number is never sent. A value that breaks a rule returns with the server's message and the typed text.
  await editAt(page, 0, "n");
  await page.keyboard.type("12x");
  await page.keyboard.press("Enter");
  await page.getByRole("alert").getByText("Enter a number").waitFor();
  await page.keyboard.press("Control+a");
  await page.keyboard.type("-7");
  await page.keyboard.press("Enter");
  await page.locator("[data-editor]").getByRole("alert").waitFor();
  assert.equal(await page.getByRole("dialog", { name: "Edit n", exact: true }).locator("input").inputValue(), "-7");
  await look(page, "refused", { widths: [1280] });
  await page.keyboard.press("Escape");
  assert.equal(await cellText(page, 0, "n"), "5");

  // The toast also undoes the change, and a required text cannot be null.
  await editAt(page, 0, "n");
  await page.keyboard.type("6");
  await page.keyboard.press("Enter");
  await page.getByText("n changed.").waitFor();
  await page.getByRole("button", { name: "Undo" }).click();
  await until("five again", async () => (await one("nulls")).n === 5);
  await editAt(page, 0, "title");
  assert.equal(await page.getByRole("button", { name: "Set null" }).count(), 0);
  await page.keyboard.press("Escape");
});

test("a record that somebody changed meanwhile asks what holds", async () => {
  const record = await fresh("conflict", { n: 1, note: "before" });
  const page = await open(only("conflict"), { as: me, expect: [/status of 412/] });
  await ready(page);
  for (const [choice, expected] of [["Keep what is there", 20], ["Save mine", 300]]) {
    // Somebody else changes the record while the page sends its own change.
    await editAt(page, 0, "n");
    let isChanged = false;
    const end = await intercept(page, `/api/v1/data/errand/${record.id}`, async () => {
      if (!isChanged) {
        isChanged = true;
        await must(me, "PATCH", `/api/v1/data/errand/${record.id}`, { n: 20, note: "theirs" });
      }
      return null;
    });
    await page.keyboard.press("Control+a");
    await page.keyboard.type("300");
    await page.keyboard.press("Enter");
    const dialog = page.getByRole("dialog", { name: "Somebody changed this record meanwhile" });
    await dialog.waitFor();
    assert.match(await dialog.getByRole("group", { name: "n", exact: true }).textContent(), /300.*20/);
    if (choice === "Save mine") await look(page, "conflict");
    await dialog.getByRole("button", { name: choice }).click();
    await dialog.waitFor({ state: "hidden" });
    await end();
    await until(choice, async () => (await one("conflict")).n === expected);
    await until("the table has it", async () => (await cellText(page, 0, "n")) === String(expected));
    await must(me, "PATCH", `/api/v1/data/errand/${record.id}`, { n: 1, note: "before" });
    await until("back", async () => (await cellText(page, 0, "n")) === "1");
  }
});

test("two records in conflict at once are asked for one after the other", async () => {
  const records = [await fresh("both clash 1", { n: 1 }), await fresh("both clash 2", { n: 1 })];
  const page = await open(`/admin/data/errand?sort=title&q=${encodeURIComponent("both clash ")}&columns=title,n`, { as: me, expect: [/status of 412/] });
  await ready(page);
  let release = () => {};
  const areBothAsked = new Promise((resolve) => (release = resolve));
  const changed = new Set();
  for (const { id } of records)
    await intercept(page, `/api/v1/data/errand/${id}`, async () => {
      if (!changed.has(id)) {
        changed.add(id);
        await must(me, "PATCH", `/api/v1/data/errand/${id}`, { n: 20 });
        if (changed.size === records.length) release();
      }
      await areBothAsked;
      return null;
    });
  for (const [row, mine] of [[0, "300"], [1, "400"]]) {
    await editAt(page, row, "n");
    await page.keyboard.press("Control+a");
    await page.keyboard.type(mine);
    await page.keyboard.press("Enter");
  }
  const dialog = page.getByRole("dialog", { name: "Somebody changed this record meanwhile" });
  const field = dialog.getByRole("group", { name: "n", exact: true });
  await field.waitFor();
  const isFirst = /300/.test(await field.textContent());
  await field.getByRole("radio").nth(1).check();
  await dialog.getByRole("button", { name: "Save mine" }).click();
  // The choice for one record does not apply to the other.
  await field.getByText(isFirst ? "400" : "300").waitFor();
  assert.ok(await field.getByRole("radio").nth(0).isChecked());
  await dialog.getByRole("button", { name: "Save mine" }).click();
  await dialog.waitFor({ state: "hidden" });
  const stored = isFirst ? [20, 400] : [300, 20];
  await until("each has its own", async () => (await one("both clash 1")).n === stored[0] && (await one("both clash 2")).n === stored[1]);
});

test("cells are copied and pasted as a table", async () => {
  for (const index of [1, 2, 3]) await fresh(`paste ${index}`, { n: index, note: `note\t${index}` });
  const page = await open(`/admin/data/errand?sort=title&q=${encodeURIComponent("paste ")}&columns=title,note,n`, { as: me });
  await ready(page);
  await grid(page).focus();
  await page.keyboard.press("Control+Home");
  await page.keyboard.press("Shift+ArrowDown");
  await page.keyboard.press("Shift+ArrowRight");
  await page.keyboard.press("Control+c");
  await until("copied", async () => (await page.evaluate(() => navigator.clipboard.readText())) === 'paste 1\t"note\t1"\npaste 2\t"note\t2"');
  await page.evaluate(() => navigator.clipboard.writeText("alpha\t10\nbeta\t20\n\t30"));
  await page.keyboard.press("Control+Home");
  await page.keyboard.press("ArrowRight");
  await page.keyboard.press("Control+v");
  await until("pasted", async () => {
    const rows = await Promise.all([1, 2, 3].map((index) => one(`paste ${index}`)));
    return rows.map(({ note, n }) => `${note}/${n}`).join() === "alpha/10,beta/20,null/30";
  });
  await page.getByText("Pasted: 3 records.").waitFor();
  await page.keyboard.press("Control+z");
  await until("taken back", async () => (await one("paste 3")).n === 3 && (await one("paste 1")).note === "note\t1");
  // One cell fills a marked range. A value that does not fit changes nothing.
  await page.evaluate(() => navigator.clipboard.writeText("99"));
  await page.keyboard.press("Control+Home");
  await page.keyboard.press("End");
  await page.keyboard.press("Shift+ArrowDown");
  await page.keyboard.press("Control+v");
  await until("filled", async () => (await one("paste 1")).n === 99 && (await one("paste 2")).n === 99 && (await one("paste 3")).n === 3);
  await page.evaluate(() => navigator.clipboard.writeText("no number"));
  await page.keyboard.press("Control+v");
  await page.getByText("Nothing was pasted").waitFor();
});

test("columns are chosen, ordered, pinned and widened", async () => {
  const page = await open("/admin/data/errand", { as: me });
  await ready(page);
  await page.getByRole("button", { name: /^Columns/ }).click();
  const panel = page.getByRole("dialog", { name: /^Columns/ });
  await panel.getByRole("checkbox", { name: "note", exact: true }).click();
  await panel.getByRole("button", { name: "Move status up" }).click();
  await panel.getByRole("button", { name: "Pin title" }).click();
  await look(page, "columns", { widths: [1280] });
  await page.keyboard.press("Escape");
  const heads = () => grid(page).getByRole("columnheader").evaluateAll((all) => all.map((head) => head.dataset.column).filter((name) => name !== undefined));
  await until("the order", async () => (await heads()).slice(0, 3).join() === "id,title,status" || (await heads()).slice(0, 3).join() === "id,status,title" || (await heads())[1] === "title");
  assert.ok(!(await heads()).includes("note"));
  const width = async () => (await cell(page, 0, "id").boundingBox()).width;
  const was = await width();
  await grid(page).focus();
  await page.keyboard.press("Control+Home");
  await page.keyboard.press("Alt+Shift+ArrowRight");
  await until("wider", async () => (await width()) > was);
  await page.getByRole("button", { name: /^Columns/ }).click();
  await panel.getByRole("button", { name: "Reset" }).click();
  await page.keyboard.press("Escape");
  await until("as before", async () => (await heads()).includes("note"));
});

test("views are saved, named, made the default, changed and deleted", async () => {
  const page = await open(`/admin/data/errand?filter=${encodeURIComponent('[["status","eq","open"]]')}&sort=-n`, { as: me });
  await ready(page);
  await page.getByText("80 records").waitFor();
  await page.getByRole("button", { name: /^View: All records, changed/ }).click();
  await page.getByRole("menuitem", { name: "Save as a new view" }).click();
  await page.getByRole("textbox", { name: "Name" }).fill("Open errands");
  await page.getByRole("switch", { name: "Open this object with it" }).click({ force: true });
  await page.getByRole("button", { name: "Save view" }).click();
  await page.getByRole("button", { name: "View: Open errands", exact: true }).waitFor();
  await look(page, "view", { widths: [1280] });
  await until("kept", async () => JSON.stringify((await must(me, "GET", "/api/v1/me/preferences")).data).includes("Open errands"));

  // The next visit opens with this view.
  await page.goto(new URL("/admin/data/errand", page.url()).href);
  await ready(page);
  await page.getByText("80 records").waitFor();
  await page.getByRole("button", { name: /^status (is|=)/ }).focus();
  await page.keyboard.press("Delete");
  await page.getByRole("button", { name: "View: Open errands, changed" }).click();
  await page.getByRole("menuitem", { name: "Discard changes" }).click();
  await page.getByText("80 records").waitFor();
  await page.getByRole("button", { name: "Actions of the view Open errands" }).click();
  await page.getByRole("menuitem", { name: "Rename" }).click();
  await page.getByRole("textbox", { name: "Name" }).fill("Still open");
  await page.getByRole("button", { name: "Rename view" }).click();
  await page.getByRole("button", { name: "View: Still open", exact: true }).waitFor();
  await page.getByRole("button", { name: "Actions of the view Still open" }).click();
  await page.getByRole("menuitem", { name: "Delete view" }).click();
  await page.getByRole("button", { name: "View: All records", exact: true }).waitFor();
  await until("gone", async () => !JSON.stringify((await must(me, "GET", "/api/v1/me/preferences")).data).includes("Still open"));
});

test("hostile values and 200 columns stay values", async () => {
  const fields = Array.from({ length: 200 }, (_, index) => ({ name: `f${index}`, type: "text" }));
  await must(me, "POST", "/api/v1/objects", { name: "wide", label: hostile.markup.slice(0, 80), fields });
  const values = Object.values(hostile);
  await must(me, "POST", "/api/v1/data/wide/bulk", { data: values.map((value) => Object.fromEntries(fields.slice(0, 20).map(({ name }) => [name, value]))) });
  const page = await open("/admin/data/wide?size=100", { as: me });
  await ready(page);
  await look(page, "hostile");
  await grid(page).focus();
  await page.keyboard.press("Control+End");
  await grid(page).locator('[data-active][data-column="created_at"]').waitFor();
  await until("few cells are drawn", async () => (await grid(page).locator("[data-cell]").count()) < 1_000);
});

test("100 columns by 100 rows scroll at 60 frames a second", async () => {
  const fields = Array.from({ length: 100 }, (_, index) => ({ name: `c${index}`, type: ["text", "integer", "boolean", "datetime", "enum"][index % 5], ...(index % 5 === 4 ? { options: ["one", "two"] } : {}) }));
  await must(me, "POST", "/api/v1/objects", { name: "sheet", fields });
  const value = (type, row, column) => ({ text: `row ${row} column ${column}`, integer: row * column, boolean: row % 2 === 0, datetime: "2026-01-01T10:00:00Z", enum: "two" })[type];
  await must(me, "POST", "/api/v1/data/sheet/bulk", { data: Array.from({ length: 100 }, (_, row) => Object.fromEntries(fields.map(({ name, type }, column) => [name, value(type, row, column)]))) });
  const page = await open("/admin/data/sheet?size=100", { as: me, reducedMotion: "no-preference" });
  await ready(page);
  const scroll = (axis) =>
    frames(page, () =>
      page.evaluate(async (axis) => {
        const at = document.querySelector('[role="grid"]');
        const end = axis === "x" ? at.scrollWidth - at.clientWidth : at.scrollHeight - at.clientHeight;
        for (let step = 0; step <= 120; step++) {
          await new Promise(requestAnimationFrame);
          if (axis === "x") at.scrollLeft = (end * step) / 120;
          else at.scrollTop = (end * step) / 120;
        }
      }, axis),
    );
  // The first pass renders all kinds of cells for the first time. The machine may be busy, so the best of several passes counts, and frames
  // may be as late as twice those of a page at rest.
  for (const axis of ["y", "x"]) {
    let best;
    let rest;
    for (let pass = 0; pass < 10; pass++) {
      rest = await framesAtRest(page);
      const measured = await scroll(axis);
      if (best === undefined || measured.p95 < best.p95) best = measured;
      if (best.p95 <= 20 || (pass >= 2 && best.p95 <= 33)) break;
    }
    console.log(`frames along ${axis}: ${JSON.stringify(best)}, at rest: ${JSON.stringify(rest)}`);
    assert.ok(best.p95 <= Math.max(33, 2 * rest.p95), `95 % of the frames along ${axis} took up to ${best.p95} ms, and ${rest.p95} ms at rest`);
  }
});

test("errors say what happened, and the table comes back", async () => {
  const page = await open("/admin/data/errand", { as: me, expect: [/status of (500|429|403)/, /ERR_CONNECTION_REFUSED/, /failed: GET/] });
  await ready(page);
  const list = "/api/v1/data/errand?";
  for (const [name, answer, text] of [
    ["500", { status: 500, body: { error: "internal", message: "Something went wrong." } }, "Something went wrong."],
    ["429", { status: 429, headers: { "retry-after": "2" }, body: { error: "rate_limited", message: "Too many requests." } }, "Too many requests"],
    ["403", { status: 403, body: { error: "forbidden", message: "You need the permission to read `errand`." } }, /^You need/],
    ["none", "abort", "The server did not answer"],
  ]) {
    const end = await intercept(page, list, answer);
    await page.reload();
    await page.getByRole("alert").getByText(text).first().waitFor();
    await look(page, `error-${name}`, { themes: ["light"] });
    await end();
    await tryAgain(page);
    await ready(page);
  }
});

test("somebody without rights reads, and is offered nothing else", async () => {
  const reader = await person(me, "Table Reader", [{ resource: "errand", actions: ["read"] }]);
  const page = await open("/admin/data/errand", { as: reader, expect: [/status of 403/] });
  await ready(page);
  assert.equal(await page.getByRole("link", { name: "New record" }).count(), 0);
  await cell(page, 0, "title").dblclick();
  assert.equal(await page.locator("[data-editor]").count(), 0);
  const nobody = await person(me, "Table Nobody", []);
  const other = await open("/admin/data/errand", { as: nobody, expect: [/status of (403|404)/] });
  await other.getByText(/You need|There is no object errand/).first().waitFor();
});

test("the object changes, then goes, while it is on the screen", async () => {
  await must(me, "POST", "/api/v1/objects", { name: "fleeting", fields: [{ name: "title", type: "text" }] });
  await must(me, "POST", "/api/v1/data/fleeting", { title: "here" });
  const page = await open(`/admin/data/fleeting?filter=${encodeURIComponent('[["title","eq","here"]]')}`, { as: me, expect: [/status of (400|404)/] });
  await ready(page);
  await must(me, "POST", "/api/v1/objects/fleeting/fields", { name: "extra", type: "integer" });
  await grid(page).getByRole("columnheader", { name: /extra/ }).waitFor();
  await must(me, "PATCH", "/api/v1/objects/fleeting/fields/title", { name: "heading" });
  await grid(page).getByRole("columnheader", { name: /heading/ }).waitFor();
  await page.getByText("is no column any more").waitFor();
  await must(me, "DELETE", "/api/v1/objects/fleeting");
  await page.getByRole("heading", { name: "The object fleeting is gone" }).waitFor();
  await look(page, "gone");
});

test("an empty object teaches, and the copied request is the one that is shown", async () => {
  await must(me, "POST", "/api/v1/objects", { name: "hollow", fields: [{ name: "title", type: "text", required: true }] });
  const page = await open("/admin/data/hollow", { as: me });
  await page.getByRole("heading", { name: "hollow has no records yet" }).waitFor();
  await look(page, "empty");
  const table = await open(`/admin/data/errand?filter=${encodeURIComponent('[["status","in",["open","done"]],["n","gte","100"]]')}&sort=-n&q=errand`, { as: me });
  await ready(table);
  const total = (await must(me, "GET", "/api/v1/data/errand?status[in]=open,done&n[gte]=100&search=errand")).pagination.totalCount;
  await table.getByText(`${total} records`).waitFor();
  const curl = await copyAs(table, "curl");
  const path = /'https?:\/\/[^/]+([^']+)'/.exec(curl)[1];
  assert.equal((await must(me, "GET", path)).pagination.totalCount, total);
  const query = await copyAs(table, "GraphQL");
  const answer = await must(me, "POST", "/api/v1/graphql", { query });
  assert.equal(answer.errors, undefined, JSON.stringify(answer.errors));
  assert.equal(answer.data.errand.pagination.totalCount, total);
  const { params } = JSON.parse(await copyAs(table, "MCP"));
  assert.equal(params.name, "query_data");
  assert.deepEqual(params.arguments.filters[1], { field: "n", operator: "gte", value: 100 });
});

test("a row opens beside the table, J and K move, Esc gives the focus back", async () => {
  const page = await open("/admin/data/errand?sort=title", { as: me });
  await ready(page);
  await grid(page).focus();
  await page.keyboard.press("ArrowDown");
  await page.keyboard.press("Enter");
  await page.getByRole("complementary", { name: "Details" }).waitFor();
  const opened = () => new URL(page.url()).searchParams.get("open");
  const first = opened();
  await page.keyboard.press("j");
  await until("the next one", () => opened() !== first);
  await page.keyboard.press("k");
  await until("the first again", () => opened() === first);
  await look(page, "inspector");
  await page.keyboard.press("Escape");
  await page.getByRole("complementary", { name: "Details" }).waitFor({ state: "hidden" });
  await until("the grid has the focus", () => grid(page).evaluate((element) => element === document.activeElement));
});

const pages = (page) => page.getByRole("navigation", { name: "Pages" });
const shows = (page, range) => pages(page).getByText(range, { exact: true }).waitFor();
const turn = (page, to) => pages(page).getByRole("button", { name: `${to} page` }).click();
const addressed = (page) => new URL(page.url()).searchParams.get("page");

/** Waits until a row is the first one below the head. */
async function isFirst(page, row) {
  await until(`row ${row} is the first one`, async () => {
    const box = await cell(page, row, "title").boundingBox();
    const head = await grid(page).getByRole("columnheader", { name: /^title/ }).first().boundingBox();
    return box !== null && head !== null && Math.abs(box.y - (head.y + head.height)) <= 3;
  });
  await until(`row ${row} is loaded`, async () => (await cellText(page, row, "title")) === letter(row));
}

/**
 * Opens the letters, and collects how each request selects its page: `first` (an empty cursor), `after`, `before`, or `page 3`. Waits for
 * the event stream, because the page may read its rows again when it opens.
 */
async function letters(search, options = {}) {
  const page = await open("/admin/objects", { as: me, ...options });
  const asked = [];
  page.on("request", (request) => {
    const { pathname, searchParams } = new URL(request.url());
    if (pathname !== "/api/v1/data/letter" || !searchParams.has("pageSize") || searchParams.has("select")) return;
    const by = searchParams.has("page") ? `page ${searchParams.get("page")}` : searchParams.get("cursor") === "" ? "first" : ["after", "before"].find((name) => searchParams.get(name));
    asked.push({ by, sort: searchParams.get("sort") });
  });
  await page.goto(`${base}/admin/data/letter?${search}`);
  await ready(page);
  await page.getByText("live", { exact: true }).first().waitFor();
  return { page, asked, last: () => asked.at(-1)?.by };
}

test("the buttons for pages go to the next one and back, from every scroll offset", async () => {
  const ranges = ["1–50 of 210", "51–100 of 210", "101–150 of 210", "151–200 of 210", "201–210 of 210"];
  for (const [density, rowHeight] of [["comfortable", 36], ["compact", 30]]) {
    const { page } = await letters(`sort=n&density=${density}`);
    await shows(page, ranges[0]);
    for (let at = 1; at < ranges.length; at++) {
      await turn(page, "Next");
      await shows(page, ranges[at]);
      if (at < 4) await isFirst(page, at * 50);
    }
    // The last page cannot be at the top, but it is the one that is shown.
    await until("the last row is loaded", async () => (await cellText(page, 209, "title")) === letter(209));
    assert.equal(await pages(page).getByRole("button", { name: "Next page" }).isDisabled(), true);
    await until("the address has the last page", () => addressed(page) === "5");
    for (let at = 3; at >= 0; at--) {
      await turn(page, "Previous");
      await shows(page, ranges[at]);
      await isFirst(page, at * 50);
    }
    await until("the address has no page", () => addressed(page) === null);
    // A pixel of the row in front is not seen.
    for (const offset of [50 * rowHeight - 1, 50 * rowHeight, 50 * rowHeight + 1]) {
      await grid(page).evaluate((element, top) => (element.scrollTop = top), offset);
      await shows(page, ranges[1]);
      await turn(page, "Next");
      await shows(page, ranges[2]);
      await turn(page, "Previous");
      await shows(page, ranges[1]);
    }
  }
});

test("each press of a button for pages counts, even before the footer has followed", async () => {
  const { page } = await letters("sort=n");
  await shows(page, "1–50 of 210");
  const twice = (to) =>
    pages(page).getByRole("button", { name: `${to} page` }).evaluate((element) => {
      element.click();
      element.click();
    });
  await twice("Next");
  await isFirst(page, 100);
  await shows(page, "101–150 of 210");
  await twice("Previous");
  await isFirst(page, 0);
});

test("a page that is typed while the table scrolls is the one that is shown", async () => {
  const { page } = await letters("sort=n");
  await shows(page, "1–50 of 210");
  const field = pages(page).getByRole("textbox", { name: /^Page, of/ });
  await field.fill("4");
  await grid(page).evaluate((element) => (element.scrollTop = 50 * 36));
  await shows(page, "51–100 of 210");
  assert.equal(await field.inputValue(), "4");
  await page.keyboard.press("Enter");
  await isFirst(page, 150);
  // What is sent follows the table again, and leaving the field does not move the table.
  await turn(page, "Previous");
  await isFirst(page, 100);
  await until("the field has the page", async () => (await field.inputValue()) === "3");
  await field.focus();
  await grid(page).evaluate((element) => (element.scrollTop = 20 * 36));
  await shows(page, "1–50 of 210");
  await grid(page).focus();
  await isFirst(page, 20);
});

test("an address with a page opens this page", async () => {
  const { page, asked } = await letters("sort=n&page=3");
  await shows(page, "101–150 of 210");
  await isFirst(page, 100);
  assert.deepEqual([...new Set(asked.map(({ by }) => by))], ["page 3"]);
  assert.equal(addressed(page), "3");
  await page.reload();
  await ready(page);
  await shows(page, "101–150 of 210");
  await isFirst(page, 100);
  assert.equal(addressed(page), "3");
  // The last page, which is short, and one behind it.
  for (const number of [5, 99]) {
    await page.goto(`${base}/admin/data/letter?sort=n&page=${number}`);
    await ready(page);
    await shows(page, "201–210 of 210");
    await until("the last row is loaded", async () => (await cellText(page, 209, "title")) === letter(209));
    await until("the address has the last page", () => addressed(page) === "5");
  }
  await page.goto(`${base}/admin/data/letter?sort=n&page=2&filter=${encodeURIComponent('[["n","gte","100"]]')}`);
  await ready(page);
  await shows(page, "51–100 of 110");
  await until("row 50 of the filter", async () => (await cellText(page, 50, "title")) === letter(150));
});

test("the next page is read by a cursor, and a page to which one jumps by its number", async () => {
  const { page, asked, last } = await letters("sort=n");
  await shows(page, "1–50 of 210");
  assert.deepEqual([...new Set(asked.map(({ by }) => by))], ["first"]);
  for (const [range, row] of [["51–100 of 210", 50], ["101–150 of 210", 100], ["151–200 of 210", 150]]) {
    const before = asked.length;
    await turn(page, "Next");
    await shows(page, range);
    await isFirst(page, row);
    assert.deepEqual(asked.slice(before).map(({ by }) => by), ["after"]);
  }
  // The pages are in the cache for the way back.
  const known = asked.length;
  await turn(page, "Previous");
  await shows(page, "101–150 of 210");
  await isFirst(page, 100);
  assert.equal(asked.length, known);

  // Another order has its own cursors, and begins without any.
  await grid(page).getByRole("button", { name: "title", exact: true }).click();
  await isFirst(page, 0);
  await until("another order", () => asked.some(({ sort }) => sort === "title"));
  // Until its rows are there, the table shows the rows of the order before, which are the same.
  await grid(page).and(page.locator("[data-stale]")).waitFor({ state: "detached" });
  assert.equal(asked.find(({ sort }) => sort === "title").by, "first");
  await turn(page, "Next");
  await isFirst(page, 50);
  assert.deepEqual(asked.at(-1), { by: "after", sort: "title" });

  // Behind a jump no cursor is known.
  await pages(page).getByRole("textbox", { name: /^Page, of/ }).fill("4");
  await page.keyboard.press("Enter");
  await isFirst(page, 150);
  assert.equal(last(), "page 4");
  await turn(page, "Next");
  await until("the last row is loaded", async () => (await cellText(page, 209, "title")) === letter(209));
  assert.equal(last(), "page 5");
  // The rows that are read again are read by their numbers, as those of a jump.
  await page.getByRole("button", { name: "More actions" }).click();
  const before = asked.length;
  await page.getByRole("menuitem", { name: "Read again" }).click();
  await until("both visible pages are read", () => asked.length >= before + 2);
  assert.deepEqual(asked.slice(before).map(({ by }) => by).sort(), ["page 4", "page 5"]);
});

test("a cursor that the server refuses is followed by the page's number, without an error", async () => {
  const { page, asked } = await letters("sort=n", { expect: [/status of 400/] });
  await shows(page, "1–50 of 210");
  const end = await intercept(page, (url) => url.pathname === "/api/v1/data/letter" && url.searchParams.has("after"), { status: 400, body: { error: "invalid_request", message: "`after` is not a cursor of this list.", field: "after" } });
  const before = asked.length;
  await turn(page, "Next");
  await shows(page, "51–100 of 210");
  await isFirst(page, 50);
  assert.deepEqual(asked.slice(before).map(({ by }) => by), ["after", "page 2"]);
  assert.equal(await page.getByText("These rows could not be loaded").count(), 0);
  await end();
});

test("pages by cursors neither repeat nor skip rows when others insert and delete some", async () => {
  const { page, asked } = await letters("sort=-n");
  await shows(page, "1–50 of 210");
  const made = [];
  for (const n of [1_000, 1_001, 1_002]) made.push((await must(me, "POST", "/api/v1/data/letter", { title: letter(n), n })).data);
  // The rows move by three, but the second page begins where the first one ends.
  await turn(page, "Next");
  await until("the second page is loaded", async () => (await cellText(page, 50, "title")) === letter(159));
  assert.equal(asked.at(-1).by, "after");
  await until("the rows follow from each other", async () => (await cellText(page, 49, "title")) === letter(160));
  // When the first page is read again, the others follow from it.
  await turn(page, "Previous");
  await page.getByRole("button", { name: "More actions" }).click();
  await page.getByRole("menuitem", { name: "Read again" }).click();
  await until("the new rows are there", async () => (await cellText(page, 0, "title")) === letter(1_002));
  await turn(page, "Next");
  await until("the second page moved", async () => (await cellText(page, 50, "title")) === letter(162));
  for (const { id } of made) await must(me, "DELETE", `/api/v1/data/letter/${id}`);
});

/** Answers for a list of letters that has a million rows. A cursor is the number of its row. */
function aMillionLetters(request) {
  const COUNT = 1_000_000;
  const { searchParams } = new URL(request.url());
  const size = Number(searchParams.get("pageSize"));
  const [number, after, before] = ["page", "after", "before"].map((name) => searchParams.get(name));
  const from = after !== null ? Number(after) + 1 : before !== null ? Number(before) - size : number !== null ? (Number(number) - 1) * size : 0;
  const rows = Array.from({ length: Math.max(0, Math.min(size, COUNT - from)) }, (_, at) => from + at);
  const data = rows.map((n) => ({ id: `00000000-0000-7000-8000-${n.toString(16).padStart(12, "0")}`, title: letter(n), n, created_at: "2026-01-01T00:00:00.000Z", updated_at: "2026-01-01T00:00:00.000Z" }));
  const cursors = number === null ? { startCursor: String(from), endCursor: String(from + rows.length - 1) } : {};
  return { body: { data, pagination: { page: from / size + 1, pageSize: size, totalCount: COUNT, totalPages: COUNT / size, hasNextPage: from + size < COUNT, hasPreviousPage: from > 0, ...cursors } } };
}

test("of a million rows, each page and the last row are one step away", async () => {
  const page = await open("/admin/objects", { as: me });
  await intercept(page, (url) => url.pathname === "/api/v1/data/letter" && url.searchParams.has("pageSize"), aMillionLetters);
  await page.goto(`${base}/admin/data/letter?sort=n`);
  await ready(page);
  await page.getByText("1,000,000 records").waitFor();
  assert.equal(await grid(page).getAttribute("aria-rowcount"), "1000001");
  const jump = async (to) => {
    await pages(page).getByRole("textbox", { name: /^Page, of/ }).fill(String(to));
    await page.keyboard.press("Enter");
  };
  const isLoaded = (row) => until(`row ${row} is loaded`, async () => (await cellText(page, row, "title")) === letter(row));
  // Browsers cannot scroll this far, so the grid shows parts of the table. A page in the middle of a part, and the first one of a part.
  for (const [to, row, range] of [[10_000, 499_950, "499,951–500,000 of 1,000,000"], [6_001, 300_000, "300,001–300,050 of 1,000,000"]]) {
    await jump(to);
    await isFirst(page, row);
    await shows(page, range);
  }
  await turn(page, "Next");
  await isFirst(page, 300_050);
  await jump(20_000);
  await isFirst(page, 999_950);
  await shows(page, "999,951–1,000,000 of 1,000,000");
  await grid(page).focus();
  await page.keyboard.press("Control+Home");
  await isLoaded(0);
  await page.keyboard.press("Control+End");
  await isLoaded(999_999);
  await page.keyboard.press("ArrowUp");
  await until("the row above is active", async () => (await grid(page).locator('[data-row="999998"] [data-active]').count()) === 1);
});

test("Firefox: the table opens, filters, edits, copies and takes back", async () => {
  await fresh("in Firefox", { n: 1 });
  const page = await openInFirefox(only("in Firefox"), { as: me });
  await page.waitForSelector('[role="grid"] [data-row="0"] [data-column="n"]');
  await page.waitForFunction(() => document.querySelector('[data-row="0"] [data-column="title"]')?.textContent === "in Firefox");
  await page.focus('[role="grid"]');
  await page.keyboard.press("Home");
  for (let step = 0; step < 30; step++) {
    if ((await page.$eval("[data-active]", (at) => at.dataset.column)) === "n") break;
    await page.keyboard.press("ArrowRight");
  }
  await page.keyboard.press("F2");
  await page.waitForSelector("[data-editor] input");
  await page.waitForFunction(() => document.activeElement?.closest("[data-editor]") !== null);
  await page.keyboard.type("42");
  await page.keyboard.press("Enter");
  await until("stored", async () => (await one("in Firefox")).n === 42);
  await page.waitForFunction(() => document.activeElement?.getAttribute("role") === "grid");
  // Reads the copied text from the event, without the clipboard of this machine.
  await page.evaluate(() => {
    document.addEventListener("copy", (event) => {
      window.__copied = event.clipboardData.getData("text/plain");
    });
  });
  await page.keyboard.down("Control");
  await page.keyboard.press("c");
  await page.keyboard.up("Control");
  await page.waitForFunction(() => window.__copied === "42");
  await page.keyboard.down("Control");
  await page.keyboard.press("z");
  await page.keyboard.up("Control");
  await until("taken back", async () => (await one("in Firefox")).n === 1);
  await page.evaluate(() => document.querySelector('[role="grid"]').scrollTo(4_000, 0));
  await page.waitForFunction(() => document.querySelector('[data-row="0"] [data-column="created_at"]') !== null);
});

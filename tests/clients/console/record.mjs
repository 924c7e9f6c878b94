// The screen of one record: a form with every type, relations, JSON, history, conflicts, deletion, and errors.
import assert from "node:assert/strict";
import { before, test } from "node:test";
import { admin, base, call, hostile, intercept, look, must, open, openInFirefox, person, until, writeCode } from "./harness.mjs";

let me;
const task = (values) => must(me, "POST", "/api/v1/data/task", values).then(({ data }) => data);
const read = async (id) => (await must(me, "GET", `/api/v1/data/task/${id}`)).data;
/** The response as text, because a double would lose digits here, too. */
const raw = async (path) => (await fetch(base + path, { headers: { authorization: `Bearer ${me.token}` } })).text();
const row = (page, name) => page.locator(`[data-column="${name}"]`);
const save = (page) => page.getByRole("button", { name: "Save", exact: true }).click();
const saved = (page) => page.getByText("Saved.").first().waitFor();
const page_ = (id, options) => open(`/admin/data/task/${id}`, { as: me, ...options });

before(async () => {
  me = await admin();
  const fields = [
    { name: "title", type: "text", required: true, min: 2, max: 20000, description: "What has to be done." },
    { name: "contact", type: "email" },
    { name: "website", type: "url" },
    { name: "handle", type: "slug", isUnique: true },
    { name: "state", type: "enum", options: ["open", "doing", "done"], default: "open", required: true },
    { name: "labels", type: "multi_enum", options: ["red", "green", "blue"] },
    { name: "effort", type: "integer", min: 0, max: 100, default: 1 },
    { name: "views", type: "big_integer" },
    { name: "weight", type: "decimal", scale: 6 },
    { name: "ratio", type: "float" },
    { name: "share", type: "percentage" },
    { name: "budget", type: "currency" },
    { name: "stars", type: "rating" },
    { name: "urgent", type: "boolean" },
    { name: "due_on", type: "date" },
    { name: "starts_at", type: "datetime" },
    { name: "alarm", type: "time" },
    { name: "meta", type: "json" },
    { name: "ref", type: "uuid" },
    { name: "code", type: "text", pattern: "^[A-Z]{2}-\\d+$" },
  ];
  await must(me, "POST", "/api/v1/objects", { name: "task", label: "Task", fields });
  await must(me, "POST", "/api/v1/objects", { name: "project", fields: [{ name: "name", type: "text", required: true }] });
  await must(me, "POST", "/api/v1/objects", { name: "tag", fields: [{ name: "name", type: "text", required: true }] });
  await must(me, "POST", "/api/v1/objects", { name: "note", fields: [{ name: "body", type: "text" }] });
  for (const relationship of [
    { name: "project", kind: "many_to_one", source: "task", target: "project" },
    { name: "tags", kind: "many_to_many", source: "task", target: "tag" },
    { name: "notes", kind: "one_to_many", source: "task", target: "note", onDelete: "cascade" },
  ])
    await must(me, "POST", "/api/v1/relationships", relationship);
});

test("a record is created with a value of every type, and no digit is lost", async () => {
  const page = await open("/admin/data/task/new", { as: me });
  await row(page, "title").getByRole("textbox").fill("Buy milk");
  await page.getByText("Once the Task is created, its tab Links adds tags.").waitFor();
  await look(page, "new");
  for (const [name, value] of [
    ["contact", "ann@example.com"],
    ["website", "https://example.com/a?b=c"],
    ["handle", "buy-milk"],
    ["views", "9007199254740993"],
    ["weight", "123456789012.123456"],
    ["ratio", "0.1"],
    ["share", "12.5"],
    ["budget", "1234567890123456.78"],
    ["stars", "4"],
    ["code", "AB-12"],
  ])
    await row(page, name).getByRole("textbox").fill(value);
  await row(page, "state").locator("input").first().click();
  await page.getByRole("option", { name: "doing" }).click();
  await row(page, "labels").locator("input").first().click();
  await page.getByRole("option", { name: "red" }).click();
  await page.getByRole("option", { name: "blue" }).click();
  await page.keyboard.press("Escape");
  await row(page, "urgent").getByRole("radio", { name: "false" }).check();
  await row(page, "due_on").locator("input").fill("2026-03-01");
  await row(page, "starts_at").locator("input").fill("2026-03-01T10:30:15");
  await row(page, "starts_at").getByText("Europe/Berlin · UTC 2026-03-01 09:30:15").waitFor();
  await row(page, "alarm").locator("input").fill("07:45:00");
  await row(page, "meta").getByRole("button", { name: "Enter a value" }).click();
  await row(page, "meta").locator(".cm-content").click();
  await page.keyboard.insertText('{"exact": 12345678901234567890}');
  await row(page, "ref").getByRole("button", { name: "Generate ref" }).click();
  await page.getByRole("button", { name: "Create Task" }).click();
  await page.waitForURL(/\/data\/task\/[0-9a-f-]{36}/);
  const id = page.url().split("/").at(-1);
  const text = await raw(`/api/v1/data/task/${id}`);
  for (const part of ['"views":9007199254740993', '"weight":123456789012.123456', '"budget":1234567890123456.78', '"meta":{"exact":12345678901234567890}', '"starts_at":"2026-03-01T09:30:15.000Z"', '"alarm":"07:45:00"', '"effort":1,', '"labels":["red","blue"]', '"urgent":false', '"state":"doing"'])
    assert.ok(text.includes(part), `${part} in ${text}`);
  assert.equal(await row(page, "budget").getByRole("textbox").inputValue(), "1234567890123456.78");
  await page.getByText("Ada Admin").first().waitFor();
});

test("one record after another is created from one form", async () => {
  const page = await open("/admin/data/tag/new", { as: me });
  const name = row(page, "name").getByRole("textbox");
  for (const each of ["first of many", "second of many"]) {
    await name.fill(each);
    await page.getByRole("button", { name: "Create and add another", exact: true }).click();
    await until("the form is empty and has the focus", () => name.evaluate((element) => element.value === "" && element === document.activeElement));
  }
  assert.match(page.url(), /\/tag\/new$/);
  const names = (await must(me, "GET", "/api/v1/data/tag")).data.map((tag) => tag.name);
  assert.ok(["first of many", "second of many"].every((each) => names.includes(each)), names.join());
});

test("null, an empty text and what is left to the default are three things", async () => {
  const { id } = await task({ title: "Nothing", code: "AB-1", views: "9007199254740993" });
  const page = await page_(id);
  await row(page, "code").hover();
  await row(page, "code").getByRole("button", { name: "set null: code" }).click();
  await row(page, "title").getByRole("textbox").fill("Nothing but");
  await page.getByText("2 changes: code, title").waitFor();
  await page.keyboard.press("Control+s");
  await saved(page);
  const changed = await read(id);
  assert.deepEqual([changed.title, changed.code], ["Nothing but", null]);
  await must(me, "POST", "/api/v1/objects", { name: "memo", fields: [{ name: "text", type: "text" }, { name: "number", type: "integer", default: 7 }] });
  const fresh = await open("/admin/data/memo/new", { as: me });
  await row(fresh, "text").getByRole("textbox").fill("x");
  await row(fresh, "text").getByRole("textbox").fill("");
  assert.equal(await row(fresh, "text").getByRole("textbox").getAttribute("placeholder"), '""');
  await row(fresh, "number").getByRole("button", { name: "set null: number" }).click();
  await fresh.getByRole("button", { name: "Create memo" }).click();
  await fresh.waitForURL(/\/data\/memo\/[0-9a-f-]{36}/);
  const made = (await must(me, "GET", `/api/v1/data/memo/${fresh.url().split("/").at(-1)}`)).data;
  assert.equal(made.text, "");
  assert.equal(made.number, null);
});

test("what breaks a rule is said at its field, here and by the server", async () => {
  await task({ title: "First", handle: "taken" });
  const { id } = await task({ title: "Second" });
  const page = await page_(id, { expect: ["409", "400"] });
  await row(page, "effort").getByRole("textbox").fill("101");
  await row(page, "views").getByRole("textbox").fill("12a");
  await row(page, "views").getByText("Enter a number").waitFor();
  await save(page);
  await row(page, "effort").getByText("The most is 100.").waitFor();
  await until("the first wrong field has the focus", async () => row(page, "effort").getByRole("textbox").evaluate((field) => field === document.activeElement));
  await row(page, "effort").getByRole("textbox").fill("10");
  await row(page, "views").getByRole("textbox").fill("12");
  await row(page, "handle").getByRole("textbox").fill("taken");
  await save(page);
  await row(page, "handle").getByText("exists already").waitFor();
  await until("the refused field has the focus", async () => row(page, "handle").getByRole("textbox").evaluate((field) => field === document.activeElement));
  await look(page, "field-error", { widths: [360] });
  await row(page, "handle").getByRole("textbox").fill("free");
  await row(page, "code").getByRole("textbox").fill("nope");
  await save(page);
  await row(page, "code").getByText("it does not match").waitFor();
  await row(page, "code").getByRole("textbox").fill("OK-1");
  await save(page);
  await saved(page);
  assert.equal((await read(id)).handle, "free");
});

test("every field that the server refuses says why at once", async () => {
  const fields = [{ name: "one", type: "text", pattern: "^a+$" }, { name: "two", type: "text", pattern: "^b+$" }];
  await must(me, "POST", "/api/v1/objects", { name: "pair", fields });
  const page = await open("/admin/data/pair/new", { as: me, expect: ["400"] });
  const fill = async (one, two) => {
    await row(page, "one").getByRole("textbox").fill(one);
    await row(page, "two").getByRole("textbox").fill(two);
  };
  const bothRefused = async () => {
    for (const name of ["one", "two"]) await row(page, name).getByText("it does not match").waitFor();
    await until("the first has the focus", async () => row(page, "one").getByRole("textbox").evaluate((field) => field === document.activeElement));
  };
  await fill("x", "y");
  await page.getByRole("button", { name: "Create pair" }).click();
  await bothRefused();
  await fill("a", "b");
  await page.getByRole("button", { name: "Create pair" }).click();
  await page.waitForURL(/\/data\/pair\/[0-9a-f-]{36}/);
  await fill("xx", "yy");
  await save(page);
  await bothRefused();
});

test("a number is added to on the server, so that two people's changes add up", async () => {
  const { id } = await task({ title: "Counter", effort: 10 });
  const page = await page_(id);
  await row(page, "effort").getByRole("textbox").waitFor();
  await row(page, "title").getByRole("textbox").fill("Counter, renamed");
  await must(me, "PATCH", `/api/v1/data/task/${id}`, { effort: { $inc: 5 } });
  await row(page, "effort").getByRole("button", { name: "Add to effort" }).click();
  await page.getByLabel("Change effort by").fill("3");
  await page.getByRole("button", { name: "Add", exact: false }).filter({ hasText: "+ Add" }).click();
  await until("10 + 5 + 3", async () => (await row(page, "effort").getByRole("textbox").inputValue()) === "18");
  assert.equal(await row(page, "title").getByRole("textbox").inputValue(), "Counter, renamed", "what is typed stays");
  assert.equal((await read(id)).effort, 18);
});

test("a relation is searched by keyboard, created in place, and shows its id", async () => {
  const { data: apollo } = await must(me, "POST", "/api/v1/data/project", { name: "Apollo" });
  await must(me, "POST", "/api/v1/data/project", { name: "Gemini" });
  const { id } = await task({ title: "Related" });
  const page = await page_(id);
  const field = row(page, "project_id").getByRole("combobox");
  await field.click();
  await field.fill("apo");
  await page.getByRole("option", { name: /Apollo/ }).waitFor();
  await until("only what matches", async () => (await page.getByRole("option", { name: /Gemini/ }).count()) === 0);
  await look(page, "picker", { widths: [1280] });
  // The first match is already marked.
  await field.focus();
  await page.keyboard.press("Enter");
  await until("the name stands there", async () => (await field.inputValue()) === "Apollo");
  await row(page, "project_id").getByRole("button", { name: new RegExp(apollo.id.slice(-8)) }).waitFor();
  await save(page);
  await saved(page);
  assert.equal((await read(id)).project_id, apollo.id);
  await field.click();
  await field.fill("Voyager");
  await page.getByRole("option", { name: /Create project “Voyager”/ }).click();
  const dialog = page.getByRole("dialog", { name: "Create project" });
  await dialog.getByRole("textbox").waitFor();
  assert.equal(await dialog.getByRole("textbox").inputValue(), "Voyager");
  await dialog.getByRole("textbox").press("End");
  await page.keyboard.type(" 1");
  await dialog.getByRole("button", { name: "Create project" }).click();
  await until("the new one is chosen", async () => (await field.inputValue()) === "Voyager 1");
  // The name changes on the page of the project, and every other page follows.
  const isSaved = () => page.getByRole("button", { name: "Save", exact: true }).waitFor({ state: "hidden" });
  await save(page);
  await isSaved();
  await row(page, "project_id").getByRole("link", { name: "Open" }).click();
  await row(page, "name").getByRole("textbox").fill("Voyager 2");
  await save(page);
  await isSaved();
  await page.goBack();
  await until("the new name stands there", async () => (await field.inputValue()) === "Voyager 2");
  await row(page, "project_id").getByRole("button", { name: /^Clear/ }).click();
  await save(page);
  await until("null is saved", async () => (await read(id)).project_id === null);
});

test("every page shows the same title for a record", async () => {
  const title = "A title, with spaces and a line break";
  const { id } = await task({ title: "A title,  with spaces\nand a line break" });
  const { data: note } = await must(me, "POST", "/api/v1/data/note", { body: "About it", notes_id: id });
  const page = await page_(id);
  const go = (path) => page.goto(new URL(path, page.url()).href);
  const shows = (where, text) => until(`the title ${where}`, async () => (await text()) === title);
  await shows("on its page", async () => (await page.getByRole("heading", { level: 1 }).textContent()).split("/").at(-1));
  await go(`/admin/data/task?open=${id}`);
  await shows("beside the list", () => page.getByRole("complementary", { name: "Details" }).getByRole("heading").first().textContent());
  await go(`/admin/data/note/${note.id}`);
  await shows("in a reference to it", () => row(page, "notes_id").getByRole("combobox").inputValue());
  await go("/admin/data/note");
  await shows("in a table", () => page.getByRole("grid").locator("bdi").filter({ hasText: "A title" }).first().textContent());
});

test("links are added, paged, created in place and removed; records that refer to it are listed", async () => {
  const { id } = await task({ title: "Linked" });
  const tags = await must(me, "POST", "/api/v1/data/tag/bulk", { data: Array.from({ length: 12 }, (_, index) => ({ name: `tag ${index + 1}` })) });
  await must(me, "POST", `/api/v1/data/task/${id}/links/tags`, { ids: tags.ids });
  await must(me, "POST", "/api/v1/data/note", { body: "A note on it", notes_id: id });
  const page = await open(`/admin/data/task/${id}?tab=links`, { as: me });
  const links = page.getByRole("region", { name: "Links tags" });
  await links.getByText("Page 1 of 2").waitFor();
  assert.equal(await links.getByRole("listitem").count(), 10);
  await page.getByRole("region", { name: "note by notes" }).getByRole("link", { name: "A note on it" }).waitFor();
  await look(page, "links");
  await links.getByRole("button", { name: "Next page of tags" }).click();
  await links.getByText("Page 2 of 2").waitFor();
  await links.getByRole("button", { name: /^Remove the link to/ }).first().click();
  await links.getByText("11", { exact: true }).waitFor();
  await links.getByRole("combobox").click();
  await links.getByRole("combobox").fill("brand new");
  await page.getByRole("option", { name: /Create tag/ }).click();
  await page.getByRole("dialog").getByRole("button", { name: "Create tag" }).click();
  await links.getByText("12", { exact: true }).waitFor();
  const { data } = await must(me, "GET", `/api/v1/data/task/${id}?expand=tags`);
  assert.equal(data.tags.length, 12);
  assert.ok(data.tags.some(({ name }) => name === "brand new"));
  await page.getByRole("region", { name: "note by notes" }).getByRole("button", { name: "Create note" }).click();
  const dialog = page.getByRole("dialog", { name: "Create note" });
  assert.equal(await dialog.getByText("notes_id").count(), 0, "what is given is not asked for");
  await dialog.getByRole("textbox").fill("Another");
  await dialog.getByRole("button", { name: "Create note" }).click();
  await page.getByRole("link", { name: "Another" }).waitFor();
});

test("the JSON of the whole record is edited without losing digits, and shares the form's draft", async () => {
  const { id } = await task({ title: "As JSON", views: "9007199254740993" });
  const page = await open(`/admin/data/task/${id}?tab=json`, { as: me });
  const editor = page.locator(".cm-content");
  await editor.getByText("9007199254740993").waitFor();
  const text = await raw(`/api/v1/data/task/${id}`);
  const change = (edit) => writeCode(editor, edit(text.slice(8, -1)));
  await change((record) => record.replace('"title":"As JSON"', '"title":"By JSON","nope":1'));
  await page.getByText("`nope` is no field of `task`").waitFor();
  await change((record) => record.replace(/"id":"[^"]*"/, '"id":"other"'));
  await page.getByText("`id` is kept by the server").waitFor();
  await change((record) => record.replace('"title":"As JSON"', '"title":"By JSON"').replace("9007199254740993", "9007199254740995"));
  await page.getByText("2 changes: title, views").waitFor();
  await look(page, "json", { widths: [1280] });
  await page.getByRole("link", { name: "Form" }).click();
  assert.equal(await row(page, "views").getByRole("textbox").inputValue(), "9007199254740995");
  await save(page);
  await saved(page);
  assert.ok((await raw(`/api/v1/data/task/${id}`)).includes('"views":9007199254740995'));
});

test("the history shows who changed what, with links, and pages", async () => {
  const { id } = await task({ title: "Storied" });
  await must(me, "PATCH", `/api/v1/data/task/${id}`, { title: "A story that has become a good deal longer than before" });
  await must(me, "PATCH", `/api/v1/data/task/${id}`, { title: "A story that has become a great deal longer than before", effort: 9 });
  const tag = await must(me, "POST", "/api/v1/data/tag", { name: "linked later" });
  await must(me, "POST", `/api/v1/data/task/${id}/links/tags`, { ids: [tag.data.id] });
  const page = await open(`/admin/data/task/${id}?tab=history`, { as: me });
  const entries = page.getByRole("list", { name: "History, newest first" }).locator("> li");
  await until("four events", async () => (await entries.count()) === 4);
  await entries.nth(0).getByRole("link", { name: "linked later" }).waitFor();
  const changed = entries.nth(1);
  assert.match(await changed.textContent(), /Ada Admin/);
  assert.deepEqual(await changed.locator("del").allTextContents(), ["good", "1"]);
  assert.deepEqual(await changed.locator("ins").allTextContents(), ["great", "9"]);
  await look(page, "history");
  await must(me, "PATCH", `/api/v1/data/task/${id}`, { effort: 10 });
  await until("a new event appears", async () => (await entries.count()) === 5);
  for (let effort = 11; effort < 40; effort++) await must(me, "PATCH", `/api/v1/data/task/${id}`, { effort });
  await page.reload();
  await page.getByRole("button", { name: "Show older events" }).click();
  await until("all events", async () => (await entries.count()) === 34);
});

test("a record that somebody else changes follows while nothing is typed", async () => {
  const { id } = await task({ title: "Quiet" });
  const page = await page_(id);
  await row(page, "title").waitFor();
  await page.getByText("live", { exact: true }).waitFor();
  await must(me, "PATCH", `/api/v1/data/task/${id}`, { title: "Loud", effort: 33 });
  await until("the form follows", async () => (await row(page, "title").getByRole("textbox").inputValue()) === "Loud");
  assert.equal(await row(page, "effort").getByRole("textbox").inputValue(), "33");
  assert.equal(await page.getByRole("button", { name: "Save", exact: true }).count(), 0);
});

test("of two versions the person chooses field by field", async () => {
  const { id } = await task({ title: "Ours", effort: 1 });
  const page = await page_(id, { expect: ["412"] });
  await row(page, "title").getByRole("textbox").fill("Mine");
  await row(page, "contact").getByRole("textbox").fill("me@example.com");
  await must(me, "PATCH", `/api/v1/data/task/${id}`, { title: "Theirs", effort: 50, state: "done" });
  await page.getByText("while you were editing").waitFor();
  assert.equal(await row(page, "title").getByRole("textbox").inputValue(), "Mine");
  await look(page, "newer", { themes: ["dark"] });
  await save(page);
  const dialog = page.getByRole("dialog", { name: "Somebody changed this record meanwhile" });
  await dialog.waitFor();
  await dialog.getByText("Your changes to contact are saved with the choice.").waitFor();
  await look(page, "conflict");
  assert.ok(await dialog.getByRole("group", { name: "title" }).getByRole("radio", { name: /Mine/ }).isChecked());
  assert.ok(await dialog.getByRole("group", { name: "effort" }).getByRole("radio", { name: /Theirs/ }).isChecked());
  await dialog.getByRole("group", { name: "state" }).getByRole("radio", { name: /Mine/ }).check();
  await dialog.getByRole("button", { name: "Save the choice" }).click();
  await saved(page);
  const now = await read(id);
  assert.deepEqual([now.title, now.effort, now.state, now.contact], ["Mine", 50, "open", "me@example.com"]);
});

test("a record that is deleted meanwhile says so, keeps what it was, and can be created again", async () => {
  const { id } = await task({ title: "Gone soon", effort: 42 });
  const page = await page_(id, { expect: ["404"] });
  await row(page, "title").waitFor();
  await page.getByText("live", { exact: true }).waitFor();
  await call(me, "DELETE", `/api/v1/data/task/${id}`);
  await page.getByText("This record was deleted").waitFor();
  await look(page, "deleted", { themes: ["light"] });
  await page.getByRole("button", { name: "Create it again" }).click();
  await page.waitForURL((url) => /\/data\/task\/[0-9a-f-]{36}/.test(url.href) && !url.href.includes(id));
  assert.equal((await read(page.url().split("/").at(-1))).effort, 42);
});

test("a deletion names what goes along and can be undone for eight seconds", async () => {
  const { id } = await task({ title: "Parent" });
  for (const body of ["one", "two"]) await must(me, "POST", "/api/v1/data/note", { body, notes_id: id });
  const tag = await must(me, "POST", "/api/v1/data/tag", { name: "t" });
  await must(me, "POST", `/api/v1/data/task/${id}/links/tags`, { ids: [tag.data.id] });
  const page = await page_(id, { expect: ["404"] });
  await page.getByRole("button", { name: "Delete" }).click();
  await page.getByText("“Parent” deleted. 2 note and 1 link go too.").waitFor();
  await page.getByRole("button", { name: "Undo" }).click();
  await page.waitForURL(new RegExp(id));
  await row(page, "title").waitFor();
  assert.equal((await read(id)).title, "Parent");
  await until("the first message is gone", async () => (await page.getByRole("button", { name: "Undo" }).count()) === 0);
  await page.getByRole("button", { name: "Delete" }).click();
  await page.getByRole("button", { name: "Undo" }).waitFor();
  // Leaving the page ends the wait.
  await page.goto("about:blank");
  await until("it is gone", async () => (await call(me, "GET", `/api/v1/data/task/${id}`)).status === 404);
});

test("typed input is not lost: on the way out, when the session ends, when the server fails", async () => {
  const { id } = await task({ title: "Careful" });
  const visitor = await person(me, "Vera Visitor", [{ resource: "task", actions: ["read", "update"] }]);
  const page = await page_(id, { as: visitor, expect: ["401", "403", "404", "429", "500", "ERR_CONNECTION_REFUSED", "refused"] });
  await row(page, "title").getByRole("textbox").fill("Careful, typed");
  await page.getByRole("link", { name: "Home" }).click();
  await page.getByRole("dialog", { name: "Leave without saving?" }).getByRole("button", { name: "Cancel" }).click();
  assert.match(page.url(), new RegExp(id));
  for (const [answer, pattern] of [
    [{ status: 500, body: { error: "internal", message: "Something failed inside." } }, /The server failed/],
    [{ status: 403, body: { error: "forbidden", message: "You need the permission to update `task`." } }, /You need the permission to update task/],
    [{ status: 429, headers: { "retry-after": "1" }, body: { error: "rate_limited", message: "Too many requests." } }, /You can try again now/],
    ["abort", /The server does not answer/],
  ]) {
    const end = await intercept(page, `/api/v1/data/task/${id}`, answer, { method: "PATCH" });
    await save(page);
    await page.getByRole("alert").filter({ hasText: pattern }).waitFor();
    assert.equal(await row(page, "title").getByRole("textbox").inputValue(), "Careful, typed");
    await end();
  }
  await look(page, "no-answer", { widths: [1280] });
  await call(visitor, "POST", "/api/auth/sign-out", {});
  await save(page);
  await page.getByRole("dialog", { name: "Your session has ended" }).getByRole("textbox", { name: "Password" }).fill("correct horse battery");
  await page.getByRole("button", { name: "Sign in", exact: true }).click();
  await saved(page);
  assert.equal((await read(id)).title, "Careful, typed");
  await row(page, "title").getByRole("textbox").fill("Thrown away");
  await page.getByRole("link", { name: "Home" }).click();
  await page.getByRole("button", { name: "Discard changes" }).click();
  await page.waitForURL((url) => !url.href.includes(id));
});

test("somebody who may only read sees the record and cannot change it; without the schema the form still knows its fields", async () => {
  const { id } = await task({ title: "For reading", project_id: (await must(me, "POST", "/api/v1/data/project", { name: "Visible" })).data.id });
  const reader = await person(me, "Rita Reader", [{ resource: "task", actions: ["read"] }, { resource: "project", actions: ["read"] }]);
  const page = await page_(id, { as: reader, expect: ["403"] });
  await until("the title is there", async () => (await row(page, "title").getByRole("textbox").inputValue()) === "For reading");
  assert.ok(await row(page, "title").getByRole("textbox").isDisabled());
  await until("the relation has its name", async () => (await row(page, "project_id").getByRole("combobox").inputValue()) === "Visible");
  assert.equal(await page.getByRole("button", { name: "Delete" }).count(), 0);
  await look(page, "reader", { widths: [1280] });
  const none = await open("/admin/data/task/00000000-0000-7000-8000-000000000000", { as: me, expect: ["404"] });
  await none.getByRole("alert").getByText("There is nothing here", { exact: false }).waitFor();
  await look(none, "missing", { widths: [360] });
});

test("hostile values stay text, and two hundred fields stay usable", async () => {
  const fields = Array.from({ length: 200 }, (_, index) => ({ name: `field_${index}`, type: "text", ...(index === 0 ? { label: hostile.rtl } : {}) }));
  await must(me, "POST", "/api/v1/objects", { name: "wide", label: "<b>wide</b>", fields });
  const values = { field_0: hostile.markup, field_1: hostile.rtl, field_2: hostile.combining, field_3: hostile.long, field_4: hostile.unbroken, field_5: hostile.spaces, field_6: hostile.emoji };
  const { data } = await must(me, "POST", "/api/v1/data/wide", values);
  await must(me, "PATCH", `/api/v1/data/wide/${data.id}`, { field_7: hostile.markup, field_3: `${hostile.long} end` });
  const page = await open(`/admin/data/wide/${data.id}`, { as: me });
  await row(page, "field_199").waitFor();
  await look(page, "hostile", { themes: ["light"] });
  assert.equal(await row(page, "field_5").getByRole("textbox").inputValue(), hostile.spaces);
  await page.getByLabel("Find a field").fill("field_19");
  await until("eleven fields", async () => (await page.locator("[data-column]").count()) === 11);
  await page.getByLabel("Find a field").fill("");
  await row(page, "field_199").getByRole("textbox").fill("typed");
  await save(page);
  await saved(page);
  const { data: now } = await must(me, "GET", `/api/v1/data/wide/${data.id}`);
  assert.equal(now.field_3, `${hostile.long} end`);
  assert.equal(now.field_199, "typed");
});

test("beside the list a record is read, changed, left and deleted by the keyboard", async () => {
  await must(me, "POST", "/api/v1/objects", { name: "item", fields: [{ name: "name", type: "text", required: true }] });
  const made = [];
  for (const name of ["first", "second", "third"]) made.push((await must(me, "POST", "/api/v1/data/item", { name })).data.id);
  const page = await open(`/admin/data/item?open=${made[1]}`, { as: me, expect: ["404"] });
  const panel = page.getByRole("complementary", { name: "Details" });
  await panel.getByRole("heading", { name: "second" }).waitFor();
  await row(panel, "name").waitFor();
  await look(page, "panel");
  await page.keyboard.press("k");
  await panel.getByRole("heading", { name: "third" }).waitFor();
  await page.keyboard.press("j");
  await panel.getByRole("heading", { name: "second" }).waitFor();
  await panel.getByRole("button", { name: "History" }).click();
  await panel.getByRole("button", { name: "Form" }).click();
  await row(panel, "name").getByRole("textbox").fill("second, changed");
  await panel.getByRole("button", { name: "Close" }).click();
  await page.getByRole("dialog", { name: "Leave without saving?" }).getByRole("button", { name: "Cancel" }).click();
  await panel.getByRole("button", { name: "Save", exact: true }).click();
  await saved(page);
  assert.equal((await must(me, "GET", `/api/v1/data/item/${made[1]}`)).data.name, "second, changed");
  await panel.getByRole("button", { name: "Delete the record" }).click();
  await page.getByText("“second, changed” deleted.").waitFor();
  await until("the panel is closed", async () => (await panel.count()) === 0);
  await page.getByRole("button", { name: "Undo" }).click();
  await until("the toast is gone", async () => (await page.getByText("“second, changed” deleted.").count()) === 0);
  assert.equal((await call(me, "GET", `/api/v1/data/item/${made[1]}`)).status, 200);
});

test("in Firefox a record is created, changed and found in conflict", async () => {
  const field = (name) => `[data-column="${name}"] input, [data-column="${name}"] textarea`;
  const page = await openInFirefox("/admin/data/task/new", { as: me, expect: [/412/] });
  await page.fill(field("title"), "By Firefox");
  await page.fill(field("views"), "9007199254740993");
  await page.click('[data-column="urgent"] label', "true");
  await page.click("button", "Create Task");
  await until("its page", async () => /\/data\/task\/[0-9a-f-]{36}/.test(page.url()));
  const id = page.url().split("/").at(-1);
  assert.ok((await raw(`/api/v1/data/task/${id}`)).includes('"views":9007199254740993'));
  assert.equal((await read(id)).urgent, true);
  await page.see("h1", "By Firefox");
  await page.fill(field("title"), "By Firefox, again");
  await must(me, "PATCH", `/api/v1/data/task/${id}`, { title: "By another" });
  await page.see('[data-tone="amber"]', "while you were editing");
  await page.click("button", "Compare and choose");
  await page.see('[role="dialog"]', "By another");
  await page.click("button", "Save the choice");
  await until("mine is saved", async () => (await read(id)).title === "By Firefox, again");
});

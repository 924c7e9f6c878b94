// Grants with conditions and fields on the page of a role: in the builder, in words, unchanged by the grid, enforced by the server,
// refused, broken, explained, and seen as somebody who has them.
import assert from "node:assert/strict";
import { before, test } from "node:test";
import { admin, base, button, call, choosePath, copyAs, grid, look, must, open, person, ready, settled, until, writeCode } from "./harness.mjs";

let owner;

before(async () => {
  owner = await admin();
  const objects = {
    squad: [{ name: "name", type: "text", required: true }],
    seat: [{ name: "user_id", type: "text" }],
    ticket: [
      { name: "title", type: "text", required: true },
      { name: "state", type: "enum", options: ["open", "done", "archived"] },
      { name: "assignee", type: "text" },
    ],
    memo: [{ name: "text", type: "text" }, { name: "kind", type: "text" }],
  };
  for (const [name, fields] of Object.entries(objects)) await must(owner, "POST", "/api/v1/objects", { name, fields });
  for (const source of ["ticket", "seat"]) await must(owner, "POST", "/api/v1/relationships", { name: "squad", kind: "many_to_one", source, target: "squad" });
});

const editor = (page) => page.getByRole("dialog", { name: "Grant with conditions or fields" });
const clause = (page, name) => editor(page).getByRole("group", { name, exact: true });
const ROWS = "Rows that the grant reaches";
const WRITES = "What writes leave";
const says = async (page, name, text) => until(text, async () => (await clause(page, name).locator("[data-sentence]").textContent())?.trim() === text);
const listed = (page) => page.getByRole("list", { name: "Grants with conditions or fields" }).getByRole("listitem");
const cells = (page, region, name) => page.getByRole("region", { name: region }).getByRole("row", { name: new RegExp(`^(Edit )?${name} `) }).getByRole("cell").allInnerTexts();
const hasCells = (page, region, name, expected) => until(`${name} has ${expected.join()}`, async () => JSON.stringify(await cells(page, region, name)) === JSON.stringify(expected));
const titles = async (who) => (await must(who, "GET", "/api/v1/data/ticket?sort=title")).data.map(({ title }) => title);
const roleOf = async (id) => (await must(owner, "GET", `/api/v1/roles/${id}`)).data;
const role = async (name, permissions) => (await must(owner, "POST", "/api/v1/roles", { name, permissions })).data.id;

/** Chooses a value of the caller for the column. */
async function takeVariable(page, within, column, name) {
  await button(within, `Value of the caller for ${column}`).click();
  await page.getByRole("menuitem", { name, exact: true }).click();
}
/** Opens a menu, and presses Escape in the moment in which its items appear. The button of the menu still has the focus then. */
const escapeAtOnce = (target) =>
  target.evaluate(
    (element) =>
      new Promise((pressed) => {
        new MutationObserver((_, observer) => {
          if (document.querySelector('[role="menuitem"]') === null) return;
          observer.disconnect();
          document.activeElement.dispatchEvent(new KeyboardEvent("keydown", { key: "Escape", bubbles: true, cancelable: true }));
          pressed();
        }).observe(document.body, { childList: true, subtree: true });
        element.focus();
        element.click();
      }),
  );
async function save(page, name) {
  await button(page, "Save role").click();
  await page.getByText(`The role ${name} is saved.`).last().waitFor();
  await button(page, "Save role").waitFor({ state: "detached" });
}

test("a grant with a condition is built, saved and said, holds for those who have the role, and is kept by the grid", async () => {
  const uma = await person(owner, "Uma User");
  const id = await role("ticket workers", []);
  await must(owner, "POST", `/api/v1/users/${uma.userId}/roles`, { roleId: id });
  const make = async (object, values) => (await must(owner, "POST", `/api/v1/data/${object}`, values)).data.id;
  const [mine, other] = [await make("squad", { name: "mine" }), await make("squad", { name: "other" })];
  await make("seat", { user_id: uma.userId, squad_id: mine });
  await make("ticket", { title: "a", state: "open", squad_id: mine });
  await make("ticket", { title: "b", state: "open", squad_id: other, assignee: uma.userId });
  await make("ticket", { title: "c", state: "open", squad_id: other });
  await make("ticket", { title: "d", state: "archived", squad_id: mine });

  const page = await open(`/admin/roles/${id}`, { as: owner });
  await button(page, "Add grant with conditions or fields").click();
  // Nothing is chosen, so the editor says what is missing.
  await choosePath(page, editor(page).getByRole("combobox", { name: "Object" }), "ticket");
  await button(editor(page), "Add grant").click();
  await editor(page).getByText("Add a condition, or choose fields. A grant without either is set in the table.").waitFor();

  // The ticket is not archived, and is assigned to the caller or belongs to one of the caller's squads.
  const rows = clause(page, ROWS);
  await choosePath(page, rows.getByRole("combobox", { name: "Column" }), "state");
  await rows.getByRole("combobox", { name: "Operator" }).click();
  await page.getByRole("option", { name: "is not", exact: true }).click();
  await choosePath(page, rows.getByRole("combobox", { name: "Value of state" }), "archived");
  await button(rows, "Add group").click();
  const group = rows.getByRole("group", { name: "Group of conditions" });
  await choosePath(page, group.getByRole("combobox", { name: "Column" }), "assignee");
  await takeVariable(page, group, "assignee", "$user.id");
  await group.getByRole("button", { name: "Add condition" }).click();
  await choosePath(page, group.getByRole("combobox", { name: "Column" }).nth(1), "Columns of squad");
  await page.getByRole("option", { name: "seat, many records", exact: true }).click();
  const seats = group.getByRole("group", { name: "Conditions on squad → seat" });
  await choosePath(page, seats.getByRole("combobox", { name: "Column" }), "user_id");
  await takeVariable(page, seats, "user_id", "$user.id");
  // Escape only closes the menu of variables, even in the moment in which the menu appears and does not have the focus yet.
  const variables = button(seats, "Value of the caller for user_id");
  await variables.click();
  await page.getByRole("menuitem", { name: "Another value" }).waitFor();
  await page.keyboard.press("Escape");
  await page.getByRole("menuitem", { name: "Another value" }).waitFor({ state: "detached" });
  await escapeAtOnce(variables);
  await page.getByRole("menuitem", { name: "Another value" }).waitFor({ state: "detached" });
  assert.ok(await editor(page).isVisible());
  assert.equal(await page.getByRole("dialog", { name: "Discard what you typed?" }).count(), 0);
  const sentence = "state is not archived and (assignee is the caller's id or some of squad's seat match (user_id is the caller's id))";
  await says(page, ROWS, sentence);
  await editor(page).getByRole("checkbox", { name: "update", exact: true }).check();

  // The check is edited as text.
  await editor(page).getByRole("switch", { name: "Writes leave something else" }).click({ force: true });
  const writes = clause(page, WRITES);
  await button(writes, "Edit as JSON").click();
  const text = writes.getByRole("textbox", { name: "Condition of writes" });
  await writeCode(text, '{"state": {"in": ["open", "done"]}}');
  await says(page, WRITES, "state is any of open, done");
  await look(page, "editor");
  await button(editor(page), "Add grant").click();
  await editor(page).waitFor({ state: "detached" });
  assert.match(await listed(page).innerText(), /ticket\s+read, update/);
  await save(page, "ticket workers");

  const where = { state: { neq: "archived" }, _or: [{ assignee: "$user.id" }, { "squad.seat_by_squad": { some: { user_id: "$user.id" } } }] };
  const stored = { resource: "ticket", actions: ["read", "update"], where, check: { state: { in: ["open", "done"] } } };
  const keyed = async () => (await roleOf(id)).permissions.map(({ resource, actions, where, check }) => ({ resource, actions, where, check }));
  const grants = await keyed();
  assert.deepEqual(grants, [stored], JSON.stringify(grants));
  assert.deepEqual(await titles(uma), ["a", "b"]);

  await page.reload();
  await listed(page).getByText(sentence).waitFor();
  await listed(page).getByText("state is any of open, done").waitFor();
  await hasCells(page, "Grants", "ticket", ["some rows", "–", "some rows", "–", "–"]);
  await button(page, "1 grant with conditions or fields").click();
  await until("the section is in sight", () => page.getByRole("heading", { name: "Grants with conditions or fields" }).evaluate((heading) => heading === document.activeElement));
  await settled(page);
  await look(page, "conditions");

  // The grid only changes its own grants.
  await button(page, "Edit ticket").click();
  await page.getByLabel("create on ticket", { exact: true }).selectOption("all");
  await page.getByLabel("read on ticket", { exact: true }).selectOption("own");
  await button(page, "Done").click();
  await hasCells(page, "Grants", "ticket", ["own rows, some rows", "all rows", "some rows", "–", "–"]);
  await save(page, "ticket workers");
  const after = (await roleOf(id)).permissions;
  const bare = ({ resource, actions, rowPolicy }) => `${resource} ${actions} ${rowPolicy ?? "all"}`;
  assert.deepEqual(after.map(bare), ["ticket create all", "ticket read own", "ticket read,update all"]);
  assert.deepEqual([after[2].where, after[2].check], [where, stored.check]);
  await listed(page).getByText(sentence).waitFor();

  await page.getByRole("link", { name: "Effective rights" }).click();
  await until("the effective rights", async () => (await cells(page, "Effective rights", "ticket")).slice(1, 3).join() === "all rows,some rows");

  // The editor opens with the stored condition, and a value of the caller can be replaced again.
  await page.getByRole("link", { name: "Grants", exact: true }).click();
  await button(page, "Edit the grant on ticket").click();
  await says(page, ROWS, sentence);
  const reopened = clause(page, ROWS).getByRole("group", { name: "Group of conditions" });
  await button(reopened, "Value of the caller for assignee").click();
  await page.getByRole("menuitem", { name: "Another value" }).click();
  await reopened.getByRole("textbox", { name: "Value of assignee" }).fill("$x");
  await button(clause(page, ROWS), "Edit as JSON").click();
  await until("a text is no variable", async () => /"assignee": "\$\$x"/.test(await clause(page, ROWS).getByRole("textbox", { name: "Condition of rows" }).innerText()));
  // Escape asks before it drops what was typed.
  const question = page.getByRole("dialog", { name: "Discard what you typed?" });
  await page.keyboard.press("Escape");
  await button(question, "Cancel").click();
  await question.waitFor({ state: "detached" });
  assert.match(await clause(page, ROWS).getByRole("textbox", { name: "Condition of rows" }).innerText(), /"assignee": "\$\$x"/);
  await page.keyboard.press("Escape");
  await button(question, "Discard").click();
  await editor(page).waitFor({ state: "detached" });

  await button(page, "Remove the grant on ticket").click();
  await listed(page).waitFor({ state: "detached" });
  await save(page, "ticket workers");
  assert.ok((await roleOf(id)).permissions.every((grant) => grant.where === undefined));
  // She still has her own rows, but there are none.
  assert.deepEqual(await titles(uma), []);
});

test("the fields of a grant are chosen in a table, said and saved, and hold", async () => {
  await must(owner, "POST", "/api/v1/objects", { name: "worker", fields: [{ name: "name", type: "text" }, { name: "team", type: "text" }, { name: "salary", type: "integer" }] });
  const ada = (await must(owner, "POST", "/api/v1/data/worker", { name: "Ada", team: "north", salary: 5 })).data.id;
  const fay = await person(owner, "Fay Fields");
  const id = await role("worker editors", []);
  await must(owner, "POST", `/api/v1/users/${fay.userId}/roles`, { roleId: id });
  const seen = async () => (await must(fay, "GET", `/api/v1/data/worker/${ada}`)).data;

  const page = await open(`/admin/roles/${id}`, { as: owner });
  await button(page, "Add grant with conditions or fields").click();
  await choosePath(page, editor(page).getByRole("combobox", { name: "Object" }), "worker");
  const fields = clause(page, "Fields");
  const box = (name) => fields.getByRole("checkbox", { name, exact: true });
  const choice = (side) => fields.getByLabel(`Fields to ${side}`, { exact: true });
  const row = (name) => fields.getByRole("row", { name: new RegExp(`^${name} `) }).getByRole("cell").allInnerTexts();
  const saysFields = (text, later) => says(page, "Fields", `${text} Fields that are added to the object later are ${later}.`);

  // A grant that only reads has no list of fields to write.
  await says(page, "Fields", "All fields. Clear the box of each field that the grant leaves out.");
  assert.equal(await choice("write").count(), 0);
  await box("Read salary").uncheck();
  await saysFields("Reads all fields except salary.", "readable");
  assert.equal(await choice("read").inputValue(), "except");
  await editor(page).getByRole("checkbox", { name: "update", exact: true }).check();
  await saysFields("Reads all fields except salary; writes all fields.", "readable and writable");
  assert.deepEqual(await row("id"), ["always readable", "not writable"]);
  assert.equal((await row("created_at"))[1], "not writable");

  // Another choice keeps the ticks, and decides about later fields.
  await choice("write").selectOption("only");
  await saysFields("Reads all fields except salary; writes name, team, salary.", "readable but not writable");
  await box("Write every field").uncheck();
  await saysFields("Reads all fields except salary; writes no fields.", "readable but not writable");
  await box("Write team").check();
  await saysFields("Reads all fields except salary; writes team.", "readable but not writable");
  await look(page, "fields");
  await button(editor(page), "Add grant").click();
  await editor(page).waitFor({ state: "detached" });
  await listed(page).getByText("Reads all fields except salary; writes team.").waitFor();
  await hasCells(page, "Grants", "worker", ["some fields", "–", "some fields", "–", "–"]);
  await save(page, "worker editors");
  const [stored] = (await roleOf(id)).permissions;
  assert.deepEqual([stored.resource, stored.actions, stored.fields], ["worker", ["read", "update"], { read: { except: ["salary"] }, write: ["team"] }]);

  const { name, salary } = await seen();
  assert.deepEqual([name, salary], ["Ada", undefined]);
  const change = async (values) => (await call(fay, "PATCH", `/api/v1/data/worker/${ada}`, values)).status;
  assert.deepEqual([await change({ name: "Bob" }), await change({ salary: 6 }), await change({ team: "south" })], [403, 403, 200]);

  // The editor opens with the stored lists. "All fields" ticks every box.
  await button(page, "Edit the grant on worker").click();
  await saysFields("Reads all fields except salary; writes team.", "readable but not writable");
  assert.deepEqual(await Promise.all(["Read name", "Read salary", "Write name", "Write team"].map((each) => box(each).isChecked())), [true, false, false, true]);
  await choice("read").selectOption("all");
  await saysFields("Reads all fields; writes team.", "readable but not writable");
  assert.ok(await box("Read salary").isChecked());
  await button(editor(page), "Apply").click();
  await save(page, "worker editors");
  const [changed] = (await roleOf(id)).permissions;
  assert.deepEqual([changed.fields.read ?? null, changed.fields.write], [null, ["team"]]);
  assert.equal((await seen()).salary, 5);
});

test("what the server refuses is said at its condition", async () => {
  const id = await role("memo readers", [{ resource: "memo", actions: ["read"], where: { kind: "news" } }]);
  const page = await open(`/admin/roles/${id}`, { as: owner, expect: [/400/] });
  await listed(page).getByText("kind is news").waitFor();
  await button(page, "Edit the grant on memo").click();
  await button(clause(page, ROWS), "Edit as JSON").click();
  const text = clause(page, ROWS).getByRole("textbox", { name: "Condition of rows" });
  await writeCode(text, '{"colour": "red"}');
  await button(editor(page), "Apply").click();
  await button(page, "Save role").click();
  await page.getByRole("alert").getByText("The role is as it was").waitFor();
  await listed(page).getByText("The server refuses this:").waitFor();
  assert.match(await listed(page).innerText(), /colour/);
  await listed(page).scrollIntoViewIfNeeded();
  await look(page, "refused");
  await button(page, "Edit the grant on memo").click();
  // A row shows the unknown field, so that it can be replaced. The server's message is below it.
  await clause(page, ROWS).getByText("The server refuses this:").waitFor();
  await button(clause(page, ROWS), "Edit as JSON").click();
  await writeCode(text, '{"text": {"ilike": "x"}}');
  await says(page, ROWS, "text contains x");
  await button(editor(page), "Apply").click();
  await listed(page).getByText("The server refuses this:").waitFor({ state: "detached" });
  await save(page, "memo readers");
  assert.deepEqual((await roleOf(id)).permissions[0].where, { text: { ilike: "x" } });
});

test("a broken condition is shown with its warning, and mended", async () => {
  await must(owner, "POST", "/api/v1/objects", { name: "guild", fields: [{ name: "user_id", type: "text" }] });
  await must(owner, "POST", "/api/v1/relationships", { name: "memo", kind: "many_to_one", source: "guild", target: "memo" });
  const id = await role("guild readers", [{ resource: "memo", actions: ["read"], where: { guild_by_memo: { some: { user_id: "$user.id" } } } }]);
  await must(owner, "DELETE", "/api/v1/objects/guild?cascade=true");
  const page = await open(`/admin/roles/${id}`, { as: owner });
  await listed(page).getByText("This grant names something that no longer exists, or tests a field that has another type now. It does not give all that it says.").waitFor();
  await until("the grant gives nothing", async () => (await cells(page, "Grants", "memo"))[0] === "–");
  await button(page, "1 grant with conditions or fields, 1 broken").click();
  await look(page, "broken");
  await button(page, "Edit the grant on memo").click();
  // The condition is shown as text, in the form in which the server stores it.
  const text = clause(page, ROWS).getByRole("textbox", { name: "Condition of rows" });
  await writeCode(text, '{"kind": "news"}');
  await button(clause(page, ROWS), "Back to the builder").click();
  await says(page, ROWS, "kind is news");
  await button(editor(page), "Apply").click();
  await save(page, "guild readers");
  await listed(page).getByText("kind is news").waitFor();
  await listed(page).getByText("It does not give all that it says.").waitFor({ state: "detached" });
  assert.equal((await roleOf(id)).permissions[0].broken, undefined);
});

test("who may only look sees what conditions say", async () => {
  const id = await role("memo watchers", [{ resource: "memo", actions: ["manage"], rowPolicy: "own", where: { _or: [{ kind: "news" }, { text: "a" }] } }]);
  const reader = await person(owner, "Rolf Reader", [{ resource: "roles", actions: ["read"] }, { resource: "objects", actions: ["read"] }]);
  const page = await open(`/admin/roles/${id}`, { as: reader, expect: [/403/] });
  await listed(page).getByText("own rows and (kind is news or text is a)").waitFor();
  assert.equal(await button(page, "Add grant with conditions or fields").count(), 0);
  assert.equal(await button(page, "Edit the grant on memo").count(), 0);
  await hasCells(page, "Grants", "memo", ["some rows", "some rows", "some rows", "some rows", "some rows"]);
});

test("the console seen as a role has the rows and the columns that its grants reach", async () => {
  await must(owner, "POST", "/api/v1/objects", { name: "report", fields: [{ name: "title", type: "text" }, { name: "state", type: "text" }, { name: "margin", type: "integer" }] });
  await must(owner, "POST", "/api/v1/objects", { name: "draft", fields: [{ name: "title", type: "text" }] });
  for (const [title, state] of [["shown", "public"], ["also shown", "public"], ["hidden", "secret"]]) await must(owner, "POST", "/api/v1/data/report", { title, state, margin: 7 });
  const wim = await person(owner, "Wim Writer", [{ resource: "draft", actions: ["create"] }]);
  await must(owner, "POST", "/api/v1/data/draft", { title: "of the viewer" });
  await must(wim, "POST", "/api/v1/data/draft", { title: "of Wim" });
  const id = await role("auditors", [
    { resource: "report", actions: ["read"], where: { state: "public" }, fields: { read: ["title"] } },
    { resource: "draft", actions: ["read"], rowPolicy: "own" },
  ]);

  // What the role may not read gets 403, such as the page of the role itself.
  const page = await open(`/admin/roles/${id}`, { as: owner, expect: [/403/] });
  const link = (name) => page.getByRole("navigation", { name: "Main" }).getByRole("link", { name, exact: true });
  const columns = () => grid(page).locator('[role="columnheader"][data-column]').evaluateAll((heads) => heads.map((head) => head.dataset.column));
  const shows = async (...titles) => {
    const now = async () => (await grid(page).locator('[data-row] [data-column="title"]').allInnerTexts()).map((text) => text.trim()).sort();
    await until(`rows: ${titles}`, async () => JSON.stringify(await now()) === JSON.stringify(titles));
  };
  await button(page, "View as this role").click();
  await button(page, "Leave view").waitFor();
  await link("ticket").waitFor({ state: "detached" });
  await link("report").click();
  await ready(page);
  await shows("also shown", "shown");
  assert.deepEqual((await columns()).filter((name) => name !== "id"), ["title"]);
  await page.getByText("2 records").waitFor();
  await look(page, "view-as-rows", { widths: [1280] });
  // Own rows are those of the person who looks.
  await link("draft").click();
  await shows("of the viewer");

  await button(page, "Leave view").click();
  await shows("of Wim", "of the viewer");
  await link("report").click();
  await shows("also shown", "hidden", "shown");
  await until("the other columns", async () => {
    const all = await columns();
    return ["title", "state", "margin"].every((name) => all.includes(name));
  });
});

test("it is explained why somebody sees a record, and who may ask is told what they need", async () => {
  const vera = await person(owner, "Vera Viewer");
  const where = { "squad.seat_by_squad": { some: { user_id: "$user.id" } } };
  const id = await role("ticket viewers", [
    { resource: "ticket", actions: ["read"], where },
    { resource: "ticket", actions: ["create"], rowPolicy: "own" },
    { resource: "ticket", actions: ["update"], where: { title: "near" } },
    { resource: "ticket", actions: ["update"], where: { title: "far", assignee: "$user.id" } },
  ]);
  const make = async (object, values) => (await must(owner, "POST", `/api/v1/data/${object}`, values)).data.id;
  const [hers, other] = [await make("squad", { name: "hers" }), await make("squad", { name: "not hers" })];
  await make("seat", { user_id: vera.userId, squad_id: hers });
  const [near, far] = [await make("ticket", { title: "near", squad_id: hers }), await make("ticket", { title: "far", squad_id: other })];

  const page = await open(`/admin/roles/${id}`, { as: owner });
  await page.getByRole("link", { name: "Explain", exact: true }).click();
  await page.getByText("Choose an object to see which grants decide about its records.").waitFor();
  await choosePath(page, page.getByRole("combobox", { name: "Object", exact: true }), "ticket");

  // Without a user, there is no seat.
  const grants = page.getByRole("list", { name: "Grants that allow this" }).getByRole("listitem");
  await grants.getByText("some of squad's seat match (user_id is the caller's id)").waitFor();
  assert.equal(await grants.count(), 1);
  const comesTo = async (text) => until(text, async () => (await page.locator("[data-sentence]").textContent())?.trim() === text);
  await comesTo("no records");
  await page.getByText("A grant gives nothing if its condition names a value of the caller and no user is chosen.").waitFor();
  await page.getByRole("status").getByText("No record is chosen.").waitFor();

  const user = page.getByRole("combobox", { name: "User", exact: true });
  await user.click();
  await user.pressSequentially("Vera");
  await page.getByRole("option", { name: "Vera Viewer · vera-viewer@example.com" }).click();
  await comesTo("some of squad's seat match (user_id is Vera Viewer)");
  await page.getByText("With this role, Vera Viewer may read these records of ticket:").waitFor();

  // A record can be found by its text and by its id. Each grant says whether it reaches the record, and if not, why.
  const record = page.getByRole("combobox", { name: "Record", exact: true });
  const reasons = async (...texts) => until(texts.join(), async () => JSON.stringify((await grants.locator("[data-verdict]").allTextContents()).map((text) => text.trim())) === JSON.stringify(texts));
  for (const [typed, verdict, why] of [
    ["near", "This record passes", "This grant reaches the record"],
    [far, "This record does not pass", "This grant does not reach the record. Not met: some of squad's seat match (user_id is Vera Viewer)"],
  ]) {
    await record.click();
    await record.pressSequentially(typed);
    await page.keyboard.press("Enter");
    await page.getByRole("status").getByText(verdict, { exact: true }).waitFor();
    await reasons(why);
  }
  await page.getByText("Condition as JSON").click();
  await page.getByRole("region", { name: "Condition" }).getByText(vera.userId).waitFor();
  await settled(page);
  await look(page, "explain");

  // The address contains the choice, and the request is the one that is shown.
  const asked = Object.fromEntries(new URL(page.url()).searchParams);
  assert.deepEqual(asked, { tab: "explain", user: vera.userId, object: "ticket", record: far });
  await page.goto(`${base}/admin/roles/${id}?tab=explain&object=ticket&user=${vera.userId}&record=${near}`);
  await page.getByRole("status").getByText("This record passes", { exact: true }).waitFor();
  await until("the record has its name", async () => (await record.inputValue()) === "near");
  const curl = await copyAs(page, "curl");
  assert.match(curl, new RegExp(`/api/v1/roles/${id}/explain'`));
  assert.deepEqual(JSON.parse(/-d '(.*)'/.exec(curl)[1]), { userId: vera.userId, object: "ticket", action: "read", id: near });

  // Everybody owns the records that they create, and no grant allows a deletion.
  await choosePath(page, page.getByRole("combobox", { name: "Action", exact: true }), "create");
  await comesTo("any record");
  await grants.getByText("own rows").waitFor();
  await reasons("This grant allows a record like this");
  await choosePath(page, page.getByRole("combobox", { name: "Action", exact: true }), "update");
  await reasons("This grant reaches the record", "This grant does not reach the record. Not met: title is far; assignee is Vera Viewer");
  await choosePath(page, page.getByRole("combobox", { name: "Action", exact: true }), "delete");
  await page.getByText("No grant of this role or of public allows this.").waitFor();
  await page.getByRole("status").getByText("This record does not pass", { exact: true }).waitFor();

  const read = (resource) => ({ resource, actions: ["read"] });
  for (const [name, held, needed, hasTab] of [
    ["Una Unknowing", [read("roles"), read("objects"), read("ticket")], "users", false],
    ["Tom Ticketless", [read("roles"), read("objects"), read("users")], "ticket", true],
  ]) {
    const reader = await open(`/admin/roles/${id}?tab=explain&object=ticket`, { as: await person(owner, name, held), expect: [/403/] });
    await reader.getByRole("alert").getByText(`You need the permission to read ${needed}`, { exact: true }).first().waitFor();
    await reader.getByRole("link", { name: "Grants", exact: true }).waitFor();
    assert.equal(await reader.getByRole("link", { name: "Explain", exact: true }).count(), hasTab ? 1 : 0, name);
  }
});

import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { test } from "node:test";
import { admin, axe, codeEditor, copied, descriptionOf, focused, holdAnswers, intercept, look, must, open, settled, still, until, writeCode } from "./harness.mjs";

const me = await admin();
// The screens request plans that the server may refuse. Such responses are expected.
const plans = /status of 400 .*dryRun=true/;
const schema = async () => (await must(me, "GET", "/api/v1/schema")).data;
const fields = async (name) => (await must(me, "GET", `/api/v1/objects/${name}`)).data.fields;

test("an object is created from scratch, with a rule, a relation and what it answers", async () => {
  await must(me, "POST", "/api/v1/objects", { name: "customer", label: "Customer", fields: [{ name: "name", type: "text", required: true }] });
  const page = await open("/admin/objects/new", { as: me, expect: [plans] });
  await page.getByRole("textbox", { name: "Name" }).first().fill("users");
  await page.getByText("is a part of the service", { exact: false }).first().waitFor();
  await page.getByRole("textbox", { name: "Name" }).first().fill("Support Ticket");
  await page.keyboard.press("Tab");
  assert.equal(await page.getByRole("textbox", { name: "Name" }).first().inputValue(), "support_ticket");
  assert.equal(await page.getByRole("textbox", { name: "Label" }).inputValue(), "Support Ticket");
  // Types the names with the keyboard alone. Enter starts the next field.
  await page.getByRole("button", { name: "Add field" }).click();
  await page.keyboard.type("id");
  await page.getByText("Every record has id already", { exact: false }).first().waitFor();
  await page.getByRole("textbox", { name: "Name of the field" }).fill("title");
  await page.keyboard.press("Enter");
  await page.keyboard.type("code");
  await page.getByRole("group", { name: "Field title" }).getByRole("checkbox", { name: "Required" }).check();
  await page.getByRole("group", { name: "Field code" }).getByRole("checkbox", { name: "Unique" }).check();
  await page.getByRole("button", { name: "Rules of code" }).click();
  const rules = page.getByRole("complementary", { name: "Details" });
  await writeCode(codeEditor(rules, "Pattern"), "(?=x)");
  await rules.getByText("Look-ahead and look-behind are not supported", { exact: false }).first().waitFor();
  await writeCode(codeEditor(rules, "Pattern"), "^[A-Z]{2}-[0-9]+$");
  await rules.getByRole("textbox", { name: "Sample to match" }).fill("ab-1");
  await rules.getByText("does not match", { exact: true }).waitFor();
  await rules.getByRole("textbox", { name: "Sample to match" }).fill("AB-1");
  await rules.getByText("matches", { exact: true }).waitFor();
  await rules.getByRole("textbox", { name: "Try a value" }).fill("ab-1");
  await rules.getByText("refused").waitFor();
  await rules.getByText("breaks its rule", { exact: false }).waitFor();
  await rules.getByRole("textbox", { name: "Try a value" }).fill("AB-1");
  await rules.getByText("taken", { exact: true }).waitFor();
  await rules.getByRole("button", { name: "Close" }).click();
  await page.getByRole("button", { name: "Add relation" }).click();
  await page.getByRole("combobox", { name: "Other object" }).click();
  await page.getByRole("option", { name: "customer", exact: true }).click();
  await page.getByText("Each support_ticket has one customer.", { exact: false }).waitFor();
  await page.getByRole("radio", { name: /^Delete along/ }).check();
  await page.getByText("Deleting a customer deletes every support_ticket that refers to it", { exact: false }).waitFor();
  await look(page, "new", { themes: ["light"] });
  await page.keyboard.press("Control+Enter");
  await page.waitForURL(/\/admin\/data\/support_ticket/);
  const { objects, relationships } = await schema();
  const made = objects.find(({ name }) => name === "support_ticket");
  assert.equal(made.label, "Support Ticket");
  assert.deepEqual(made.fields, [
    { name: "title", type: "text", required: true },
    { name: "code", type: "text", isUnique: true, pattern: "^[A-Z]{2}-[0-9]+$" },
  ]);
  assert.equal(relationships.find(({ source }) => source === "support_ticket").onDelete, "cascade");
});

test("a field of an object without records takes any type", async () => {
  await must(me, "POST", "/api/v1/objects", { name: "blank", fields: [{ name: "code", type: "text", pattern: "^a", default: "a" }] });
  const page = await open("/admin/objects/blank", { as: me });
  const details = page.getByRole("complementary", { name: "Details" });
  await page.getByRole("grid", { name: "Fields of blank" }).getByText("code", { exact: true }).click();
  await details.getByRole("combobox", { name: "Type" }).click();
  await page.getByRole("option", { name: /^integer/ }).click();
  await details.getByText("Possible while the object has no records.", { exact: false }).waitFor();
  await details.getByText("No row breaks it, and nothing is lost.").waitFor();
  await page.getByRole("button", { name: "Review and apply" }).click();
  await page.getByRole("dialog").getByRole("button", { name: /^Apply 1 change/ }).click();
  await page.getByText("1 change of blank applied.").waitFor();
  assert.deepEqual(await fields("blank"), [{ name: "code", type: "integer" }]);
});

test("a pattern is one line in a code editor, which the keyboard leaves, with the server's error and a sample", async () => {
  await must(me, "POST", "/api/v1/objects", { name: "plate", fields: [{ name: "code", type: "text" }] });
  const page = await open("/admin/objects/plate?open=code", { as: me, expect: [plans] });
  const details = page.getByRole("complementary", { name: "Details" });
  const pattern = codeEditor(details, "Pattern");
  const text = async () => (await pattern.innerText()).trim();
  await pattern.waitFor();
  assert.equal(await pattern.getAttribute("aria-multiline"), "false");
  await details.getByText("Pattern", { exact: true }).click();
  await until("the label leads to it", async () => (await focused(page)) === "Pattern");
  await page.keyboard.type("^[A-Z]{2}");
  await page.keyboard.press("Enter");
  await page.evaluate(() => navigator.clipboard.writeText("-[0-9]\n+$"));
  await page.keyboard.press("Control+v");
  await until("pasted as one line", async () => (await text()) === "^[A-Z]{2}-[0-9]+$");
  assert.equal(await pattern.locator(".cm-line").count(), 1);
  // What follows is typed behind the pasted text.
  await page.keyboard.type("|x");
  await until("typed", async () => (await text()) === "^[A-Z]{2}-[0-9]+$|x");
  await page.keyboard.press("Backspace");
  await page.keyboard.press("Backspace");
  const sizes = [pattern.locator("xpath=ancestor::*[@data-line]"), details.getByRole("textbox", { name: "Label" })].map((each) => each.boundingBox());
  const [editor, input] = await Promise.all(sizes);
  assert.deepEqual([editor.width, editor.height], [input.width, input.height], "it has the size of an input");

  await page.keyboard.press("Tab");
  await until("Tab moved on", async () => (await focused(page)) === "Sample to match");
  await details.getByRole("textbox", { name: "Sample to match" }).fill("AB-1");
  await details.getByText("matches", { exact: true }).waitFor();
  await writeCode(pattern, "(");
  await until("the error is announced", async () => /is not a regular expression/.test(await descriptionOf(pattern)));
  assert.match(await descriptionOf(pattern), /has to match somewhere in the value/);
  assert.equal(await pattern.getAttribute("aria-invalid"), "true");
  await axe(page, "a pattern with an error");
  await writeCode(pattern, "^[a-z]$");
  await details.getByText("does not match", { exact: true }).waitFor();
  await until("no error", async () => (await pattern.getAttribute("aria-invalid")) === null);
  await writeCode(pattern, "^[A-Z]{2}-[0-9]+$");
  await details.getByText("matches", { exact: true }).waitFor();
  await details.getByText("No row breaks it, and nothing is lost.").waitFor();
  await look(page, "pattern");
  await page.getByRole("button", { name: "Review and apply" }).click();
  await page.getByRole("dialog").getByRole("button", { name: "Apply 1 change" }).click();
  await page.getByText("1 change of plate applied.").waitFor();
  assert.deepEqual(await fields("plate"), [{ name: "code", type: "text", pattern: "^[A-Z]{2}-[0-9]+$" }]);
});

test("a pattern can be typed before its editor is loaded, and line breaks that it has already stay", async () => {
  const verbose = "(?x)\n^[a-z]+ # a word\n$";
  await must(me, "POST", "/api/v1/objects", { name: "words", fields: [{ name: "code", type: "text" }, { name: "word", type: "text", pattern: verbose }] });
  const page = await open("/admin/objects/words", { as: me, expect: [plans] });
  const details = page.getByRole("complementary", { name: "Details" });
  const grid = page.getByRole("grid", { name: "Fields of words" });
  const { isAsked, release } = await holdAnswers(page, "**/assets/CodeEditorImpl-*.js");
  await grid.getByText("code", { exact: true }).click();
  await details.getByRole("textbox", { name: "Pattern" }).fill("^a");
  await isAsked;
  release();
  const pattern = codeEditor(details, "Pattern");
  await pattern.waitFor();
  await until("the editor has the focus", () => pattern.evaluate((element) => element === document.activeElement));
  await page.keyboard.type("b$");
  await until("typed behind", async () => (await pattern.innerText()).trim() === "^ab$");
  await page.keyboard.press("Control+a");
  await page.keyboard.press("Delete");
  await page.getByText("1 pending change", { exact: true }).waitFor({ state: "detached" });

  await grid.getByText("word", { exact: true }).click();
  await until("all lines are there", async () => (await pattern.locator(".cm-line").count()) === 3);
  assert.equal(await page.getByText("pending change", { exact: false }).count(), 0, "to open it is no change");
  await pattern.click();
  await page.keyboard.press("Control+End");
  await page.keyboard.press("Enter");
  await page.keyboard.type("| $");
  await page.getByRole("button", { name: "Review and apply" }).click();
  await page.getByRole("dialog").getByRole("button", { name: "Apply 1 change" }).click();
  await page.getByText("1 change of words applied.").waitFor();
  assert.equal((await fields("words"))[1].pattern, `${verbose}| $`);
});

test("several changes are shown with their effect, and applied in order", async () => {
  await must(me, "POST", "/api/v1/objects", { name: "article", fields: [{ name: "title", type: "text" }, { name: "note", type: "text" }, { name: "price", type: "integer" }, { name: "old", type: "integer" }], constraints: { uniqueTogether: [["title", "old"]] } });
  await must(me, "POST", "/api/v1/data/article/bulk", { data: [{ title: "a", note: "kept", price: 1, old: 1 }, { title: "b", price: 20, old: 2 }] });
  const page = await open("/admin/objects/article", { as: me, expect: [plans] });
  const details = page.getByRole("complementary", { name: "Details" });
  const grid = page.getByRole("grid", { name: "Fields of article" });
  await grid.getByText("price", { exact: true }).click();
  await details.getByLabel("Minimum").fill("10");
  await details.getByText("1 row breaks", { exact: false }).waitFor();
  await page.getByRole("button", { name: "Review and apply" }).click();
  const review = page.getByRole("dialog");
  await review.getByText("set its minimum to 10", { exact: false }).waitFor();
  await review.getByText("1 row breaks", { exact: false }).waitFor();
  await review.getByText("One step would be refused", { exact: false }).waitFor();
  assert.ok(await review.getByRole("button", { name: "Apply 1 change" }).isDisabled());
  await review.getByRole("button", { name: "Cancel" }).click();
  await details.getByLabel("Minimum").fill("1");
  await details.getByText("No row breaks it, and nothing is lost.").waitFor();
  // A wider type, with its explanation.
  await details.getByRole("combobox", { name: "Type" }).click();
  // If the object has records, the server refuses other types.
  await page.getByRole("option", { name: /^email/ }).click();
  await details.getByText("cannot become email", { exact: false }).first().waitFor();
  await details.getByRole("combobox", { name: "Type" }).click();
  await page.getByRole("option", { name: /^integer/ }).click();
  await details.getByLabel("Minimum").fill("1");
  await details.getByRole("combobox", { name: "Type" }).click();
  await page.getByRole("option", { name: /^big_integer/ }).click();
  await details.getByText("The way back is closed.", { exact: false }).waitFor();
  // Opens the next field with the key J.
  await details.getByRole("heading").click();
  await page.keyboard.press("j");
  await details.getByRole("heading", { name: "old" }).waitFor();
  await details.getByRole("button", { name: "Drop field" }).click();
  await details.getByText("Unique groups and indexes that name it go too.", { exact: false }).waitFor();
  await grid.getByText("title", { exact: true }).click();
  await details.getByRole("textbox", { name: "Name" }).fill("headline");
  await page.keyboard.press("Escape");
  await details.waitFor({ state: "detached" });
  await page.keyboard.press("n");
  await details.getByRole("textbox", { name: "Name" }).fill("color");
  await page.getByText("5 pending changes").waitFor();
  await page.getByRole("button", { name: "Review and apply" }).click();
  await review.getByText("values of article.old go, for good", { exact: false }).or(review.getByText("It builds on an earlier step", { exact: false }).first()).first().waitFor();
  const steps = await review.getByRole("listitem").allInnerTexts();
  assert.match(steps[0], /Take old out of unique groups/);
  assert.match(steps[1], /Drop the field old/);
  await look(page, "review", { check: true });
  // Copies exactly the pending changes.
  const curl = await copied(page, async () => {
    await review.getByRole("button", { name: "Copy as" }).click();
    await page.getByRole("menuitem", { name: "curl" }).click();
  });
  assert.match(curl, /-X DELETE '[^']+\/api\/v1\/objects\/article\/fields\/old'/);
  assert.match(curl, /"name":"headline"/);
  const apply = review.getByRole("button", { name: /^Apply 5 changes/ });
  assert.ok(await apply.isDisabled(), "a destructive change asks for the name");
  await review.getByRole("textbox", { name: /to go on/ }).fill("old");
  await apply.click();
  await page.getByText("5 changes of article applied.").waitFor();
  await page.getByText("5 pending changes").waitFor({ state: "detached" });
  assert.equal(await page.getByText("Somebody else dropped", { exact: false }).count(), 0, "a rename of one's own is no surprise");
  assert.deepEqual(await fields("article"), [
    { name: "headline", type: "text" },
    { name: "note", type: "text" },
    { name: "price", type: "big_integer", min: 1 },
    { name: "color", type: "text" },
  ]);
  await page.getByRole("link", { name: "History" }).click();
  const history = page.getByRole("list", { name: "History of article" });
  await history.getByText("Renamed the field title to headline").waitFor();
  await history.getByText("by you").first().waitFor();
  await look(page, "history", { themes: ["dark"] });
});

test("a step that fails says what was applied and what was not", async () => {
  await must(me, "POST", "/api/v1/objects", { name: "part", fields: [{ name: "a", type: "text" }, { name: "b", type: "text" }, { name: "c", type: "text" }] });
  const page = await open("/admin/objects/part", { as: me, expect: [plans, /status of 503/] });
  const details = page.getByRole("complementary", { name: "Details" });
  for (const name of ["a", "b", "c"]) {
    await page.getByRole("grid").getByText(name, { exact: true }).click();
    await details.getByRole("textbox", { name: "Label" }).fill(name.toUpperCase());
  }
  const end = await intercept(page, "/fields/b", (request) => (request.url().includes("dryRun") ? null : { status: 503, body: { error: "unavailable", message: "The server is busy. Try again." } }), { method: "PATCH" });
  await page.getByRole("button", { name: "Review and apply" }).click();
  const review = page.getByRole("dialog");
  await review.getByRole("button", { name: "Apply 3 changes" }).click();
  await review.getByText("1 step is applied and stays.", { exact: false }).waitFor();
  await review.getByText("The server is busy. Try again.", { exact: false }).waitFor();
  await review.getByText("not tried", { exact: true }).waitFor();
  await review.getByText("The changes that were not applied stay pending", { exact: false }).waitFor();
  assert.deepEqual((await fields("part")).map(({ label }) => label ?? null), ["A", null, null]);
  await end();
  await review.getByRole("button", { name: "Try the 2 remaining steps again" }).click();
  await page.getByText("2 changes of part applied.").waitFor();
  assert.deepEqual((await fields("part")).map(({ label }) => label), ["A", "B", "C"]);
});

test("relations of all kinds, groups and indexes", async () => {
  for (const name of ["left", "right"]) await must(me, "POST", "/api/v1/objects", { name, fields: [{ name: "code", type: "text" }, { name: "data", type: "json" }] });
  const page = await open("/admin/objects/left?tab=relations", { as: me, expect: [plans] });
  const kinds = [/^Many to one/, /^One to many/, /^One to one/, /^Many to many/];
  for (const [index, kind] of kinds.entries()) {
    await page.getByRole("button", { name: "Add relation" }).first().click();
    const card = page.getByRole("article").nth(index);
    await card.getByRole("combobox", { name: "Other object" }).click();
    await page.getByRole("option", { name: "right", exact: true }).click();
    await card.getByRole("radio", { name: kind }).check();
    await card.getByRole("textbox", { name: "Name" }).fill(`rel${index}`);
  }
  const two = page.getByRole("article").nth(3);
  assert.equal(await two.getByRole("radio", { name: /^Clear/ }).count(), 0, "links have nothing to clear");
  await page.getByRole("link", { name: "Groups and indexes" }).click();
  await page.getByRole("button", { name: "Add unique group" }).click();
  const group = page.getByRole("combobox", { name: /^Unique group 1/ });
  await group.click();
  assert.equal(await page.getByRole("option", { name: "data", exact: true }).count(), 0, "json has no order");
  await page.getByRole("option", { name: "code", exact: true }).click();
  await page.getByText("Choose at least 2 columns.").waitFor();
  await page.getByRole("option", { name: "rel0_id" }).click();
  await page.keyboard.press("Escape");
  await page.getByRole("button", { name: "Review and apply" }).click();
  await page.getByRole("dialog").getByRole("button", { name: "Apply 5 changes" }).click();
  await page.getByText("5 changes of left applied.").waitFor();
  const { relationships, objects } = await schema();
  assert.deepEqual(
    relationships.filter(({ source }) => source === "left").map(({ kind, onDelete }) => [kind, onDelete]),
    [
      ["many_to_one", "restrict"],
      ["one_to_many", "restrict"],
      ["one_to_one", "restrict"],
      ["many_to_many", "cascade"],
    ],
  );
  assert.deepEqual(objects.find(({ name }) => name === "left").constraints, { uniqueTogether: [["code", "rel0_id"]] });
  await page.getByRole("link", { name: "Relations 4" }).click();
  await page.getByRole("button", { name: "Remove the relation rel3" }).click();
  await page.getByRole("article", { name: "Relation rel3" }).getByText("nothing is lost", { exact: false }).waitFor();
  await look(page, "relations", { themes: ["light"] });
});

test("an object goes with its name typed, and what depends on it is said", async () => {
  const page = await open("/admin/objects/right?tab=settings", { as: me, expect: [plans] });
  await page.getByRole("button", { name: "Delete right" }).click();
  const question = page.getByRole("dialog");
  await question.getByText("things depend on it", { exact: false }).waitFor();
  await question.getByText("left.rel0", { exact: false }).waitFor();
  const remove = question.getByRole("button", { name: "Delete object" });
  assert.ok(await remove.isDisabled());
  await question.getByRole("textbox", { name: /to go on/ }).fill("right");
  await remove.click();
  await page.getByText("right is deleted.").waitFor();
  await page.waitForURL(/\/admin\/objects$/);
  await until("it is gone", async () => (await schema()).objects.every(({ name }) => name !== "right"));
});

test("the list finds, sorts, opens beside and by keyboard; the diagram draws, moves and is saved as SVG", async () => {
  const page = await open("/admin/objects", { as: me });
  const grid = page.getByRole("grid", { name: "Objects" });
  await grid.getByText("article", { exact: true }).waitFor();
  await grid.locator('[role="row"]', { hasText: "article" }).getByText("2", { exact: true }).waitFor();
  await page.getByRole("textbox", { name: "Find an object or a field" }).fill("headline");
  await grid.getByText("customer", { exact: true }).waitFor({ state: "detached" });
  await grid.focus();
  await page.keyboard.press("Enter");
  const details = page.getByRole("complementary", { name: "Details" });
  await details.getByRole("heading", { name: "article" }).waitFor();
  assert.match(page.url(), /open=article/);
  await settled(page);
  await look(page, "list");
  await page.keyboard.press("Escape");
  await details.waitFor({ state: "detached" });
  await page.getByRole("textbox", { name: "Find an object or a field" }).fill("");
  await page.getByRole("link", { name: "Diagram" }).click();
  const node = page.locator('.react-flow__node[data-id="support_ticket"]');
  await node.waitFor();
  // The diagram moves until it fits.
  const box = await still(node);
  await page.mouse.move(box.x + box.width / 2, box.y + box.height - 6);
  await page.mouse.down();
  await page.mouse.move(box.x + box.width / 2 + 90, box.y + box.height + 54, { steps: 6 });
  await page.mouse.up();
  await until("the places are kept", async () => (await must(me, "GET", "/api/v1/me/preferences")).data["objects.diagram"]?.support_ticket !== undefined);
  const [download] = await Promise.all([page.waitForEvent("download"), page.getByRole("button", { name: "SVG" }).click()]);
  const svg = readFileSync(await download.path(), "utf8");
  assert.ok(svg.startsWith("<svg ") && svg.includes(">support_ticket<") && svg.includes(">customer<"));
  await look(page, "diagram");
  await node.focus();
  await page.keyboard.press("Enter");
  await page.waitForURL(/\/admin\/objects\/support_ticket/);
});

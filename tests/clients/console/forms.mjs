// Forms save what the person typed: types of fields, relations, short texts, and the descriptions of inputs. The keyboard alone leads out
// of a code editor and out of panels, and back to the previous focus.
import assert from "node:assert/strict";
import { test } from "node:test";
import { admin, axe, button, descriptionOf, details, focused, must, open, settled, until } from "./harness.mjs";

const owner = await admin();
await must(owner, "POST", "/api/v1/objects", { name: "company", label: "Company", fields: [{ name: "name", type: "text", required: true, max: 80 }] });
await must(owner, "POST", "/api/v1/objects", { name: "contact", label: "Contact", fields: [{ name: "city", type: "text", max: 80 }, { name: "notes", type: "text" }, { name: "age", type: "integer", max: 150 }] });
await must(owner, "POST", "/api/v1/relationships", { name: "company", kind: "many_to_one", source: "contact", target: "company" });
const acme = (await must(owner, "POST", "/api/v1/data/company", { name: "Acme" })).data;
await must(owner, "POST", "/api/v1/data/company", { name: "Brown and Sons" });

const row = (page, name) => page.locator(`[data-column="${name}"]`);
const contacts = async () => (await must(owner, "GET", "/api/v1/data/contact?sort=-created_at")).data;

test("the type of a field is found by the API's word, and a text that names no type is an error", async () => {
  const page = await open("/admin/objects/new", { as: owner, expect: [/plan|dry/i] });
  await page.getByRole("textbox", { name: "Name", exact: true }).first().fill("thing");
  const add = async (name, typed, key) => {
    await button(page, "Add field").click();
    const last = page.locator("[data-rows] [role=group]").last();
    await last.getByLabel("Name of the field").fill(name);
    const type = last.getByRole("combobox", { name: "Type of the field" });
    await type.click();
    await page.keyboard.type(typed);
    if (key !== undefined) await page.keyboard.press(key);
    return type;
  };
  for (const [name, typed, key, expected] of [
    ["a", "boolean", "Enter", "boolean"],
    ["b", "url", "Tab", "url"],
    ["c", "datetime", "Enter", "datetime"],
    ["d", "Yes or", "Enter", "boolean"],
    ["e", "big", "Tab", "big_integer"],
  ])
    assert.equal(await (await add(name, typed, key)).inputValue(), expected, typed);
  const odd = await add("f", "strong", "Tab");
  await page.getByText("No type is called “strong”.", { exact: false }).first().waitFor();
  assert.equal(await odd.getAttribute("aria-invalid"), "true");
  await button(page, "Create object").click();
  await settled(page);
  assert.match(page.url(), /objects\/new/);
  await odd.click();
  await page.keyboard.type("json");
  await page.keyboard.press("Enter");
  await button(page, "Create object").click();
  await until("made", async () => (await must(owner, "GET", "/api/v1/objects")).data.some(({ name }) => name === "thing"));
  const { fields } = (await must(owner, "GET", "/api/v1/objects")).data.find(({ name }) => name === "thing");
  assert.deepEqual(fields.map(({ type }) => type), ["boolean", "url", "datetime", "boolean", "big_integer", "json"]);
});

test("Enter takes the first match of a relation, and a text that names no record is not saved", async () => {
  const page = await open("/admin/data/contact/new", { as: owner });
  const picker = row(page, "company_id").getByRole("combobox");
  await row(page, "city").getByRole("textbox").fill("Berlin");
  await picker.click();
  // Enter is pressed before the server responds.
  await page.keyboard.type("acm");
  await page.keyboard.press("Enter");
  await until("chosen", async () => (await picker.inputValue()) === "Acme");
  await button(page, "Create Contact").click();
  await until("made", async () => (await contacts()).length === 1);
  assert.equal((await contacts())[0].company_id, acme.id);

  const again = await open("/admin/data/contact/new", { as: owner });
  await row(again, "city").getByRole("textbox").fill("Paris");
  const other = row(again, "company_id").getByRole("combobox");
  await other.click();
  await again.keyboard.type("nobody");
  await again.keyboard.press("Tab");
  await row(again, "company_id").getByText("Choose a record of", { exact: false }).waitFor();
  assert.equal(await other.inputValue(), "nobody");
  assert.match(await descriptionOf(other), /Choose a record of/, "the error is tied to the picker");
  await button(again, "Create Contact").click();
  await settled(again);
  assert.equal((await contacts()).length, 1);
  await other.click();
  await other.fill("");
  await again.keyboard.press("Tab");
  await button(again, "Create Contact").click();
  await until("made", async () => (await contacts()).length === 2);
  assert.equal((await contacts())[0].company_id, null);
});

test("Enter adds a line only where a text may have several, and each input is tied to its rules and its error", async () => {
  const page = await open("/admin/data/contact/new", { as: owner });
  const city = row(page, "city").getByRole("textbox");
  await city.fill("Rome");
  await city.press("Enter");
  assert.equal(await city.inputValue(), "Rome");
  const notes = row(page, "notes").getByRole("textbox");
  await notes.fill("one");
  await notes.press("Enter");
  assert.equal(await notes.inputValue(), "one\n");
  const described = (name) => descriptionOf(row(page, name).locator("input, textarea").first());
  assert.match(await described("city"), /at most 80 characters/);
  await row(page, "age").getByRole("textbox").fill("200");
  await button(page, "Create Contact").click();
  await until("said", async () => /The most is 150/.test(await described("age")));
  assert.match(await described("age"), /at most 150/);
  await axe(page, "a form with an error");
});

test("a field of each other type is tied to its description and its error", async () => {
  const types = { kind: "enum", labels: "multi_enum", born: "date", met: "datetime", fan: "boolean", extra: "json" };
  const fields = Object.entries(types).map(([name, type]) => ({ name, type, required: true, description: `Says its ${type}.`, ...(/enum/.test(type) ? { options: ["one", "two"] } : {}) }));
  await must(owner, "POST", "/api/v1/objects", { name: "profile", label: "Profile", fields });
  const page = await open("/admin/data/profile/new", { as: owner });
  await button(page, "Enter a value for extra").click();
  await page.locator(".cm-content").waitFor();
  await button(page, "Create Profile").click();
  for (const [name, type] of Object.entries(types)) {
    const input = row(page, name).locator('input:not([type="hidden"]), [role="radiogroup"], .cm-content').first();
    await until(`${name} has its error`, async () => (await descriptionOf(input)).includes("This is required."));
    assert.ok((await descriptionOf(input)).includes(`Says its ${type}.`), name);
    assert.equal(await input.getAttribute("aria-invalid"), "true", name);
  }
});

test("Tab leaves a code editor, and Escape asks before it drops what was typed", async () => {
  const page = await open("/admin/tasks", { as: owner });
  const create = page.getByRole("link", { name: "Create task" });
  await create.focus();
  await page.keyboard.press("Enter");
  await details(page).getByLabel("Name").fill("nightly");
  await details(page).locator(".cm-content").focus();
  await details(page).getByText("Tab moves on;", { exact: false }).waitFor();
  await page.keyboard.press("Tab");
  assert.equal(await page.evaluate(() => document.activeElement.closest(".cm-editor")), null, "Tab moved on");
  await page.keyboard.press("Escape");
  const asked = page.getByRole("dialog");
  await asked.getByText("Discard what you typed?").waitFor();
  await button(asked, "Cancel").click();
  await asked.waitFor({ state: "detached" });
  assert.equal(await details(page).getByLabel("Name").inputValue(), "nightly");
  await details(page).getByLabel("Name").focus();
  await page.keyboard.press("Escape");
  await button(asked, "Discard").click();
  await details(page).waitFor({ state: "detached" });
});

test("what is typed over a marked text in a code editor replaces it", async () => {
  // The test also fails if the page breaks its policy, for example by an inline style.
  const page = await open("/admin/tasks?new=true", { as: owner });
  const editor = details(page).locator(".cm-content");
  await editor.click();
  await page.keyboard.press("Control+a");
  await page.keyboard.type('{"loud": true}');
  await page.keyboard.press("Control+a");
  await page.keyboard.type('["new"]');
  await until("replaced", async () => (await editor.innerText()).trim() === '["new"]');
  await page.keyboard.press("Control+z");
  await until("taken back", async () => (await editor.innerText()).trim() !== '["new"]');
});

test("focus returns to where it was, from the palette and from a panel whose field takes it", async () => {
  const page = await open("/admin/roles", { as: owner });
  const create = page.getByRole("link", { name: "Create role" });
  await create.focus();
  // The first time after a page load also loads the palette.
  await page.keyboard.press("Control+k");
  await page.getByRole("combobox", { name: "Search" }).waitFor();
  await page.keyboard.press("Escape");
  await until("back", async () => (await focused(page)) === "Create role");
  await page.keyboard.press("Enter");
  await details(page).getByLabel("Name").waitFor();
  await until("in the field", () => page.evaluate(() => document.activeElement?.tagName === "INPUT"));
  await page.keyboard.press("Escape");
  await details(page).waitFor({ state: "detached" });
  await until("back", async () => (await focused(page)) === "Create role");
});

test("a pane that shows a secret keeps the focus from the list behind it, and returns it when it closes", async () => {
  // There is a webhook, so that the page has a table, and one link that creates another.
  await must(owner, "POST", "/api/v1/webhooks", { name: "the first", url: "http://127.0.0.1:9/", topics: ["data.company.#"] });
  const page = await open("/admin/webhooks", { as: owner });
  await page.getByRole("grid", { name: "Webhooks" }).getByText("the first").waitFor();
  const create = page.getByRole("link", { name: "Create webhook" });
  await create.focus();
  await page.keyboard.press("Enter");
  await details(page).getByLabel("URL").fill("http://127.0.0.1:9/second");
  await page.keyboard.press("Enter");
  await page.locator("[data-secret]").waitFor();
  await settled(page);
  // There, Enter would open the form again, and the secret would be gone.
  assert.equal(await create.evaluate((link) => link === document.activeElement), false);
  await page.keyboard.press("Escape");
  await details(page).waitFor({ state: "detached" });
  await until("back", () => create.evaluate((link) => link === document.activeElement));
});

test("axe finds nothing on long lists and on the pages for programs", async () => {
  await must(owner, "POST", "/api/v1/events/subscriptions", { event: "data.company.#", consumer: "the-log", handler: "log_event" });
  await must(owner, "POST", "/api/v1/data/company/bulk", { data: Array.from({ length: 300 }, (_, at) => ({ name: `Company ${at}` })) });
  await until("there is a second page of deliveries", async () => (await must(owner, "GET", "/api/v1/events/deliveries?limit=1&offset=100")).data.length === 1);
  // A page has 50 users.
  for (let at = 0; at < 50; at++) await must(owner, "POST", "/api/v1/users", { email: `user${at}@example.com`, name: `User ${at}` });
  const pages = [
    ["/admin/events", "Show older events"],
    ["/admin/deliveries", "Show older deliveries"],
    ["/admin/users", "Page 1 of 2"],
    ["/admin/api?tab=snippets", "Create with curl"],
    ["/admin/api?tab=mcp", "Claude Code"],
  ];
  for (const [path, wait] of pages) {
    const page = await open(path, { as: owner });
    await page.getByText(wait, { exact: false }).first().waitFor();
    await settled(page);
    await axe(page, path);
  }
});

import assert from "node:assert/strict";
import { test } from "node:test";
import { admin, axe, frames, framesAtRest, hostile, intercept, look, must, open, person, tryAgain, until } from "./harness.mjs";

const me = await admin();
const plans = /status of 400 .*dryRun=true/;

test("texts of all kinds stay texts", async () => {
  const nasty = [hostile.markup, hostile.rtl, hostile.combining, hostile.emoji];
  await must(me, "POST", "/api/v1/objects", {
    name: "nasty",
    label: hostile.markup,
    description: hostile.unbroken.slice(0, 2_000),
    fields: [
      { name: "pick", type: "enum", label: hostile.rtl, description: hostile.markup, options: [...nasty, hostile.long.slice(0, 199).trim()], default: hostile.markup },
      { name: "big", type: "big_integer", max: "9007199254740993", default: 0 },
      { name: "match", type: "text", pattern: "<img src=x>|[\"'&]" },
    ].map((field) => (field.name === "big" ? { name: "big", type: "big_integer" } : field)),
  });
  const page = await open("/admin/objects/nasty?open=pick", { as: me, expect: [plans] });
  const details = page.getByRole("complementary", { name: "Details" });
  assert.equal(await details.getByRole("textbox", { name: "Label" }).inputValue(), hostile.rtl);
  assert.equal(await details.getByRole("textbox", { name: "Options" }).inputValue().then((text) => text.split("\n").length), 5);
  await look(page, "hostile", { themes: ["light"] });
  // Numbers keep digits that a double would lose.
  await page.goto(page.url().replace("open=pick", "open=big"));
  await details.getByLabel("Maximum").fill("9007199254740993");
  await details.getByText("No row breaks it", { exact: false }).waitFor();
  await page.getByRole("button", { name: "Review and apply" }).click();
  await page.getByRole("dialog").getByRole("button", { name: "Apply 1 change" }).click();
  await page.getByText("1 change of nasty applied.").waitFor();
  const raw = await (await fetch(new URL("/api/v1/objects/nasty", page.url()), { headers: { authorization: `Bearer ${me.token}` } })).text();
  assert.match(raw, /"max":9007199254740993/);
  for (const view of ["/admin/objects?open=nasty", "/admin/objects?view=diagram", "/admin/objects/nasty?tab=history"]) {
    await page.goto(new URL(view, page.url()).href);
    await page.getByText("nasty").first().waitFor();
  }
});

test("two hundred fields scroll and are found", async () => {
  const fields = Array.from({ length: 200 }, (_, index) => ({ name: `field_${String(index).padStart(3, "0")}`, type: index % 2 === 0 ? "text" : "integer" }));
  await must(me, "POST", "/api/v1/objects", { name: "wide", fields });
  const page = await open("/admin/objects/wide", { as: me, expect: [plans] });
  const grid = page.getByRole("grid", { name: "Fields of wide" });
  await grid.getByText("field_000").waitFor();
  const seen = await frames(page, async () => {
    await grid.hover();
    await until("the list is far down", async () => {
      await page.mouse.wheel(0, 300);
      return (await grid.getByText("field_150").count()) > 0;
    });
  });
  const rest = await framesAtRest(page);
  assert.ok(seen.p95 < Math.max(200, 4 * rest.p95), `frames take ${seen.p95} ms, and ${rest.p95} ms at rest`);
  await page.getByRole("textbox", { name: "Find a field" }).fill("field_177");
  await grid.getByText("field_177").click();
  await page.getByRole("complementary", { name: "Details" }).getByRole("heading", { name: "field_177" }).waitFor();
  assert.match(page.url(), /q=field_177/);
});

test("five hundred objects: the list, the rail and the diagram stay usable", async () => {
  const objects = Array.from({ length: 500 }, (_, index) => ({ name: `thing_${String(index).padStart(3, "0")}`, fields: [{ name: "title", type: "text" }, { name: "size", type: "integer" }] }));
  const relationships = Array.from({ length: 400 }, (_, index) => ({ id: index + 1, name: "up", kind: "many_to_one", source: objects[index + 1].name, target: objects[Math.floor(index / 3)].name, onDelete: "restrict" }));
  const page = await open("/admin/roles", { as: me });
  await intercept(page, "/api/v1/schema", (request) => (request.url().endsWith("/schema") ? { body: { data: { version: 1, objects, relationships } } } : { body: { data: [] } }));
  await intercept(page, "/api/v1/data/thing_", { body: { data: [], pagination: { totalCount: 7 } } });
  await page.goto(new URL("/admin/objects", page.url()).href);
  const grid = page.getByRole("grid", { name: "Objects" });
  await grid.getByText("thing_000").waitFor();
  assert.ok((await grid.getByRole("row").count()) < 80, "only what is visible is drawn");
  await page.getByRole("textbox", { name: "Find an object or a field" }).fill("thing_499");
  await grid.getByText("thing_499").waitFor();
  await page.getByRole("link", { name: "Diagram" }).click();
  await page.locator(".react-flow__node").first().waitFor();
  await page.getByRole("combobox", { name: "Find an object in the diagram" }).fill("thing_32");
  await page.keyboard.type("1");
  const node = page.locator('.react-flow__node[data-id="thing_321"]');
  await node.waitFor();
  await until("it is in the middle", async () => {
    const box = await node.boundingBox();
    return box !== null && box.x > 300 && box.x < 1_000 && box.y > 100 && box.y < 700;
  });
  assert.ok((await page.locator(".react-flow__node").count()) < 100, "only what is visible is drawn");
  const pane = page.locator(".react-flow__pane");
  const seen = await frames(page, async () => {
    const box = await pane.boundingBox();
    await page.mouse.move(box.x + 400, box.y + 300);
    await page.mouse.down();
    await page.mouse.move(box.x + 100, box.y + 100, { steps: 20 });
    await page.mouse.up();
  });
  const rest = await framesAtRest(page);
  assert.ok(seen.p95 < Math.max(250, 4 * rest.p95), `frames take ${seen.p95} ms, and ${rest.p95} ms at rest`);
  await axe(page, "diagram of 500");
});

test("somebody else drops what is open", async () => {
  await must(me, "POST", "/api/v1/objects", { name: "shared", fields: [{ name: "one", type: "text" }, { name: "two", type: "text" }] });
  const page = await open("/admin/objects/shared?open=one", { as: me, expect: [plans, /status of 404/] });
  const details = page.getByRole("complementary", { name: "Details" });
  await details.getByRole("textbox", { name: "Label" }).fill("Mine");
  await page.getByText("1 pending change").waitFor();
  await must(me, "DELETE", "/api/v1/objects/shared/fields/one");
  await page.getByText("Somebody else dropped one in the meantime.", { exact: false }).waitFor();
  await must(me, "DELETE", "/api/v1/objects/shared");
  await page.getByRole("heading", { name: 'The object "shared" was deleted' }).waitFor();
  await axe(page, "a deleted object");
  await page.getByRole("button", { name: "Create it again with its 1 field" }).click();
  await page.getByRole("button", { name: "Create object" }).last().click();
  await page.waitForURL(/\/admin\/data\/shared/);
});

test("what the server refuses stands at its field", async () => {
  await must(me, "POST", "/api/v1/objects", { name: "refusing", fields: [{ name: "amount", type: "decimal" }] });
  const page = await open("/admin/objects/refusing?open=amount", { as: me, expect: [plans] });
  const details = page.getByRole("complementary", { name: "Details" });
  await details.getByRole("textbox", { name: "Default" }).fill("soon");
  await details.getByText("The default of `amount` is not a valid value of the field", { exact: false }).first().waitFor();
  assert.equal(await details.getByRole("textbox", { name: "Default" }).getAttribute("aria-invalid"), "true");
});

test("errors of the server, and no answer at all", async () => {
  const page = await open("/admin/objects", { as: me, expect: [/status of (429|500)/, /ERR_CONNECTION_REFUSED/] });
  await page.getByRole("grid", { name: "Objects" }).waitFor();
  for (const [answer, sentence] of [
    [{ status: 500, body: { error: "internal", message: "Something went wrong inside." } }, "Something went wrong inside."],
    [{ status: 429, headers: { "retry-after": "3" }, body: { error: "rate_limited", message: "Too many requests." } }, "then try again"],
    ["abort", "The server did not answer"],
  ]) {
    const end = await intercept(page, "/api/v1/schema", answer);
    await page.reload();
    await page.getByText(sentence, { exact: false }).first().waitFor();
    await end();
  }
  await tryAgain(page);
  await page.getByRole("grid", { name: "Objects" }).waitFor();
});

test("rights decide what is offered", async () => {
  const reader = await person(me, "Rita Reader", [{ resource: "objects", actions: ["read"] }, { resource: "nasty", actions: ["read"] }]);
  const page = await open("/admin/objects", { as: reader });
  await page.getByRole("grid", { name: "Objects" }).getByText("nasty").waitFor();
  assert.equal(await page.getByRole("link", { name: "Create object" }).count(), 0);
  await page.goto(new URL("/admin/objects/nasty?open=pick", page.url()).href);
  const details = page.getByRole("complementary", { name: "Details" });
  await details.waitFor();
  assert.equal(await details.getByRole("textbox").count(), 0, "fields are shown, not offered");
  assert.equal(await page.getByRole("button", { name: "Add field" }).count(), 0);
  await page.goto(new URL("/admin/objects/new", page.url()).href);
  await page.getByText("You need create on objects").waitFor();

  const worker = await person(me, "Wim Worker", [{ resource: "wide", actions: ["read", "create"] }]);
  const other = await open("/admin/objects", { as: worker });
  await other.getByRole("grid", { name: "Objects" }).getByText("wide").waitFor();
  assert.equal(await other.getByRole("link", { name: "Diagram" }).count(), 0);
  await other.goto(new URL("/admin/objects/wide", other.url()).href);
  await other.getByRole("heading", { name: "You need read on objects" }).waitFor();
  await axe(other, "without the schema");
});

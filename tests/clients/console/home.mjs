import assert from "node:assert/strict";
import { test } from "node:test";
import { admin, axe, hostile, intercept, look, must, open, person, settled, tryAgain } from "./harness.mjs";

const me = await admin();

test("an empty server offers the first steps, and a template makes real objects", async () => {
  const page = await open("/admin", { as: me });
  await page.getByRole("heading", { name: /^Your server is running/ }).waitFor();
  await look(page, "empty");
  await page.getByRole("link", { name: /^Blog/ }).click();
  await page.getByRole("list", { name: "Objects of the template" }).waitFor();
  await look(page, "template", { themes: ["dark"] });
  await page.getByRole("textbox", { name: "Prefix of the names" }).fill("My-");
  await page.getByText("Begin with a lower-case letter.").waitFor();
  await page.getByRole("textbox", { name: "Prefix of the names" }).fill("");
  await page.getByRole("button", { name: "Create 4 objects" }).click();
  await page.waitForURL(/\/admin\/data\/post/);
  const { objects, relationships } = (await must(me, "GET", "/api/v1/schema")).data;
  assert.deepEqual(objects.map(({ name }) => name).sort(), ["author", "comment", "post", "tag"]);
  assert.equal(relationships.length, 3);
  const posts = await must(me, "GET", "/api/v1/data/post?expand=author,tags&sort=slug");
  assert.equal(posts.data.length, 3);
  assert.equal(posts.data.find(({ slug }) => slug === "hello").author.name, "Ada Lovelace");
  assert.deepEqual(posts.data.find(({ slug }) => slug === "hello").tags.map(({ name }) => name), ["news"]);
});

test("every template can be made, beside others by a prefix", async () => {
  const page = await open("/admin/objects/new?template=blog", { as: me });
  await page.getByText("are there already", { exact: false }).waitFor();
  assert.ok(await page.getByRole("button", { name: "Create 4 objects" }).isDisabled());
  for (const [template, count, main] of [
    ["todo", 3, "t_todo"],
    ["crm", 4, "t_deal"],
    ["shop", 5, "t_product"],
  ]) {
    await page.goto(new URL(`/admin/objects/new?template=${template}`, page.url()).href);
    await page.getByRole("textbox", { name: "Prefix of the names" }).fill("t_");
    await page.getByRole("button", { name: `Create ${count} objects` }).click();
    await page.waitForURL(new RegExp(`/admin/data/${main}`));
    assert.ok((await must(me, "GET", `/api/v1/data/${main}`)).pagination.totalCount > 0);
  }
});

test("a template that breaks off goes on from there", async () => {
  const page = await open("/admin/objects/new?template=todo", { as: me, expect: [/status of 503/] });
  const end = await intercept(page, "/api/v1/relationships", { status: 503, body: { error: "unavailable", message: "The server is busy. Try again." } }, { method: "POST" });
  await page.getByRole("textbox", { name: "Prefix of the names" }).fill("again_");
  await page.getByRole("button", { name: "Create 3 objects" }).click();
  await page.getByText("3 steps of", { exact: false }).waitFor();
  await end();
  await page.getByRole("button", { name: "Go on from there" }).click();
  await page.waitForURL(/\/admin\/data\/again_todo/);
});

test("home shows counts, activity and events as they happen, and the steps that are left", async () => {
  const page = await open("/admin", { as: me });
  const objects = page.getByRole("region", { name: "Objects" });
  await objects.getByRole("link", { name: /^author/ }).getByText("2", { exact: true }).waitFor();
  const steps = page.getByRole("region", { name: "First steps" });
  await steps.getByRole("link", { name: "Create key" }).waitFor();
  await page.getByRole("region", { name: "The last hour" }).getByText("requests").waitFor();
  await page.getByText("live", { exact: true }).first().waitFor();
  const made = await must(me, "POST", "/api/v1/data/author", { name: hostile.markup });
  const events = page.getByRole("region", { name: "Newest events" });
  await events.getByRole("link", { name: made.data.id.slice(-8) }).waitFor();
  await objects.getByRole("link", { name: /^author/ }).getByText("3", { exact: true }).waitFor();
  await settled(page);
  await look(page, "home");
  const roles = await must(me, "GET", "/api/v1/roles");
  const key = await must(me, "POST", "/api/v1/api-keys", { name: "first", roleId: roles.data.find(({ name }) => name === "admin").id });
  await must({ token: key.key }, "GET", "/api/v1/data/author");
  await page.reload();
  await page.getByRole("region", { name: "Objects" }).waitFor();
  await settled(page);
  assert.equal(await page.getByRole("region", { name: "First steps" }).count(), 0, "all steps are done");
});

test("the users behind the newest events are found by one request, and a deleted user has the id", async () => {
  const writers = [];
  for (const name of ["Gina Gone", "Gus Gone", "Stan Stays"]) writers.push(await person(me, name, [{ resource: "author", actions: ["create"] }]));
  for (const writer of writers) await must(writer, "POST", "/api/v1/data/author", { name: writer.name });
  const [gina, gus, stan] = writers.map(({ userId }) => userId);
  for (const id of [gina, gus]) await must(me, "DELETE", `/api/v1/users/${id}`);
  // The browser reports a request that gets 404 as an error of the page, which makes the test fail.
  const page = await open("/admin/roles", { as: me });
  const asked = [];
  page.on("request", (request) => {
    const { pathname, searchParams } = new URL(request.url());
    if (/^\/api\/v1\/(data\/)?users(\/|$)/.test(pathname)) asked.push({ pathname, ids: searchParams.get("id[in]")?.split(",") ?? [] });
  });
  await page.goto(new URL("/admin", page.url()).href);
  const events = page.getByRole("region", { name: "Newest events" });
  await events.getByText("Stan Stays", { exact: true }).first().waitFor();
  for (const id of [gina, gus]) await events.getByText(id.slice(-8), { exact: true }).first().waitFor();
  assert.deepEqual(asked.map(({ pathname }) => pathname), ["/api/v1/data/users"]);
  for (const id of [gina, gus, stan]) assert.ok(asked[0].ids.includes(id), id);
});

test("what fails is named", async () => {
  const page = await open("/admin/roles", { as: me });
  const status = (await must(me, "GET", "/api/v1/status")).data;
  await intercept(page, "/api/v1/status", {
    body: { data: { ...status, deliveries: { ...status.deliveries, dead: 12, failed: 3 }, blocks: { installed: 1, failing: [{ name: "stripe", error: hostile.markup, at: status.now }] }, health: [{ check: "database", ok: false, detail: "It does not answer." }, { check: "deliveries", ok: false, detail: "12 deliveries were given up." }, { check: "blocks", ok: false, detail: "1 block fails." }] } },
  });
  await page.goto(new URL("/admin", page.url()).href);
  const attention = page.getByRole("region", { name: "Needs attention" });
  await attention.getByRole("link", { name: "12 dead deliveries" }).waitFor();
  await attention.getByText("It does not answer.", { exact: false }).waitFor();
  // The health checks of deliveries and blocks report the same problems as these lines, so they add none.
  assert.equal(await attention.getByRole("listitem").count(), 4);
  await look(page, "attention", { widths: [1280], themes: ["dark"] });
});

test("rights decide what is shown, without noise", async () => {
  const reader = await person(me, "Rita Reader", [{ resource: "post", actions: ["read"] }]);
  const page = await open("/admin", { as: reader });
  const objects = page.getByRole("region", { name: "Objects" });
  await objects.getByRole("link", { name: /^post/ }).getByText("3", { exact: true }).waitFor();
  await settled(page);
  for (const name of ["The last hour", "Needs attention", "First steps"]) assert.equal(await page.getByRole("region", { name }).count(), 0, name);
  assert.equal(await page.getByRole("alert").count(), 0);
  await axe(page, "home of a reader");
  const nobody = await open("/admin", { as: await person(me, "Nora Nobody") });
  await nobody.getByRole("heading", { name: "You may not see anything yet" }).waitFor();
  await axe(nobody, "home of nobody");
});

test("errors of the server, and no answer at all", async () => {
  const page = await open("/admin/roles", { as: me, expect: [/status of 500/, /ERR_CONNECTION_REFUSED/] });
  const endEvents = await intercept(page, "/api/v1/events?", { status: 500, body: { error: "internal", message: "Something went wrong inside." } });
  await page.goto(new URL("/admin", page.url()).href);
  await page.getByRole("region", { name: "Newest events" }).getByText("Something went wrong inside.", { exact: false }).waitFor();
  await endEvents();
  const ends = [await intercept(page, "/api/v1/schema", "abort"), await intercept(page, "/api/v1/data", "abort")];
  await page.reload();
  await page.getByText("The server did not answer", { exact: false }).first().waitFor();
  for (const end of ends) await end();
  await tryAgain(page);
  await page.getByRole("region", { name: "Objects" }).waitFor();
});

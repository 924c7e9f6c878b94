// The screen API: an operation is tried and shows the server's answer or its error, and the snippets have the names of a live object.
import assert from "node:assert/strict";
import { test } from "node:test";
import { admin, agree, base, button, call, copied, look, must, open, writeCode } from "./harness.mjs";

const owner = await admin();
await must(owner, "POST", "/api/v1/objects", { name: "memo", label: "Memo", fields: [{ name: "text", type: "text", required: true, max: 20 }] });
const { id } = (await must(owner, "POST", "/api/v1/data/memo", { text: "the first memo" })).data;

/** Opens one operation, such as "GET /api/v1/data/memo". */
const operation = (name) => open(`/admin/api?operation=${encodeURIComponent(name)}`, { as: owner, expect: [/status of (400|404)/] });
const answer = (page) => page.getByRole("region", { name: "Answer", exact: true });
/** The input of the parameter that names the record. It has to be filled. */
const record = (page) => page.getByRole("textbox", { name: /^id( \*)?$/ });

test("a read needs its parameters, shows the answer or the error, and is copied as it is sent", async () => {
  const page = await operation("GET /api/v1/data/memo/{id}");
  const send = button(page, "Send GET");
  await send.waitFor();
  assert.ok(await send.isDisabled(), "the record is not named yet");
  const nothing = "00000000-0000-7000-8000-000000000000";
  await record(page).fill(nothing);
  await send.click();
  await page.getByRole("alert").waitFor();
  assert.equal(await answer(page).count(), 0);
  await look(page, "refused");

  await record(page).fill(id);
  await send.click();
  await answer(page).getByText("the first memo").waitFor();
  await page.getByRole("heading", { name: /^Answer 200/ }).waitFor();
  assert.equal(await page.getByRole("alert").count(), 0);
  await look(page, "answer");
  const curl = await copied(page, async () => {
    await button(page.getByRole("article"), "Copy as").click();
    await page.getByRole("menuitem", { name: "curl", exact: true }).click();
  });
  assert.ok(curl.includes(`'${base}/api/v1/data/memo/${id}'`) && curl.includes("$SVC_API_KEY"), curl);
});

test("a write is sent with the body in the editor, which has to be JSON, and a refusal names the field", async () => {
  const page = await operation("POST /api/v1/data/memo");
  const editor = page.locator(".cm-content");
  const write = (text) => writeCode(editor, text);
  const send = button(page, "Send POST");
  await editor.waitFor();
  await write("{ no json");
  await page.getByText("This is no JSON.").waitFor();
  assert.ok(await send.isDisabled());
  await write(JSON.stringify({ text: "longer than twenty characters" }));
  await send.click();
  await page.getByRole("alert").getByText(/text/).first().waitFor();
  await write(JSON.stringify({ text: "tried" }));
  await send.click();
  await answer(page).getByText("tried").waitFor();
  assert.equal((await must(owner, "GET", "/api/v1/data/memo?text[eq]=tried")).data.length, 1);
});

test("a deletion is asked about first", async () => {
  const page = await operation("DELETE /api/v1/data/memo/{id}");
  await record(page).fill(id);
  await button(page, "Send DELETE").click();
  await button(page.getByRole("dialog"), "Cancel").click();
  await page.getByRole("dialog").waitFor({ state: "detached" });
  assert.equal((await call(owner, "GET", `/api/v1/data/memo/${id}`)).status, 200);
  await button(page, "Send DELETE").click();
  await agree(page, "Send DELETE");
  await page.getByRole("heading", { name: /^Answer 20\d/ }).waitFor();
  assert.equal((await call(owner, "GET", `/api/v1/data/memo/${id}`)).status, 404);
});

test("operations are found by their words, and the snippets have the names of an object", async () => {
  const page = await open("/admin/api", { as: owner });
  const operations = page.getByRole("navigation", { name: "Operations" });
  await page.getByLabel("Find an operation").fill("/data/memo");
  await operations.getByRole("link", { name: "/api/v1/data/memo" }).first().waitFor();
  await page.getByLabel("Find an operation").fill("nothing is called so");
  await operations.getByText("No operation matches", { exact: false }).waitFor();

  await page.getByRole("link", { name: "Snippets", exact: true }).click();
  const create = page.getByRole("region", { name: "Create with curl" });
  await create.waitFor();
  assert.match(await create.innerText(), /-X POST '[^']*\/api\/v1\/data\/memo'[^]*\$SVC_API_KEY[^]*"text":/);
  await page.getByRole("link", { name: "MCP", exact: true }).click();
  await page.getByRole("region", { name: "Claude Code" }).getByText(`${base}/api/v1/mcp`, { exact: false }).waitFor();
});

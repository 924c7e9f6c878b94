// What the screens say of an answer that is an error.
import assert from "node:assert/strict";
import { test } from "node:test";
import { bundled } from "./bundled.mjs";

const { describeError, errorOf } = await bundled("api/errors.ts");
const described = async (status, body) => describeError(await errorOf(new Response(JSON.stringify(body), { status }), "GET", "/api/v1/roles"));
const refused = (message, error = "forbidden") => described(403, { error, message });

test("the title of a refusal is the server's sentence, which names the missing permission", async () => {
  const { title, what, todo } = await refused("You need the permission to read `roles`.");
  assert.deepEqual([title, what], ["You need the permission to read `roles`", ""]);
  assert.match(todo, /Roles page/);
  const own = await refused("You may not read the records of `owner` in `filter[owner.name]`.");
  assert.deepEqual([own.title, own.what], ["You may not read the records of `owner` in `filter[owner.name]`", ""]);
});

test("further sentences of a refusal stay below its title", async () => {
  const { title, what } = await refused("The block may no longer read `a. b`: its maker has lost this permission. Somebody who has it can adopt the block.");
  assert.equal(title, "The block may no longer read `a. b`: its maker has lost this permission");
  assert.equal(what, "Somebody who has it can adopt the block.");
});

test("a refusal that is not a sentence, or too long for a title, is shown as it is", async () => {
  for (const message of ["no", "", `${"long ".repeat(40)}.`, "An unfinished `name. And more"]) {
    const { title, what } = await refused(message);
    assert.deepEqual([title, what], ["You may not do this", message], message);
  }
});

test("only a missing permission sends to the roles", async () => {
  const { title, what, todo } = await refused("Send the setup token. It is in the log.", "setup_token_required");
  assert.deepEqual([title, what, todo], ["You may not do this", "Send the setup token. It is in the log.", undefined]);
  const failed = await described(500, { error: "internal", message: "The server failed." });
  assert.equal(failed.title, "The server failed");
});

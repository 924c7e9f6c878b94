import assert from "node:assert/strict";
import { test } from "node:test";
import { ADMIN, admin, look, open, picture } from "./harness.mjs";

test("a fresh server asks for its admin, who then sees the frame", async () => {
  const page = await open("/admin");
  await look(page, "gate");
  const me = await admin();
  const home = await open("/admin/roles", { as: me });
  await home.getByRole("heading", { name: "Roles" }).waitFor();
  await picture(home, "frame");
  assert.ok(ADMIN);
});

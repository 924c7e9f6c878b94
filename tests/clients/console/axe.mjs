// Runs axe-core on every screen, in both themes and widths, with open panels and hostile data. It must find nothing. Also takes a picture
// of each.
import { test } from "node:test";
import { base, look, open } from "./harness.mjs";
import { SCREENS, owner, packed } from "./screens.mjs";

for (const { name, path, ready, opened } of SCREENS)
  test(`${name}: axe finds nothing in both themes and widths`, async () => {
    const page = await open(`/admin${path}`, { as: owner });
    await ready(page);
    await opened?.(page);
    await look(page, name);
  });

test("consent, of a new block and of an upgrade: axe finds nothing in both themes and widths", async () => {
  const page = await open("/admin/blocks/install", { as: owner });
  await page.locator('input[type="file"]').setInputFiles(packed("1.0.1", { name: "another", actions: [], resources: [], subscriptions: [], webhooks: [] }));
  await page.getByRole("button", { name: "Agree and install" }).waitFor();
  await look(page, "consent");
  await page.goto(`${base}/admin/blocks/install?upgrade=greeter`);
  await page.locator('input[type="file"]').setInputFiles(packed("2.0.0", { permissions: { data: [{ resource: "customer", actions: ["read", "delete"] }], secrets: ["TOKEN", "OTHER"] } }));
  await page.getByRole("button", { name: "Agree and upgrade" }).waitFor();
  await look(page, "upgrade");
});

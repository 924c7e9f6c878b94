// The console in another browser engine: the sign-in and the frame around the screens.
import assert from "node:assert/strict";
import { test } from "node:test";
import { ADMIN, admin, openInFirefox } from "./harness.mjs";

test("sign-in in Firefox: a wrong password, then the right one, and the page that was asked for", async () => {
  await admin();
  const page = await openInFirefox("/admin/account", { expect: [/401/] });
  await page.fill('input[name="email"]', ADMIN.email);
  await page.fill('input[name="password"]', "not the password");
  await page.keyboard.press("Enter");
  await page.see('[role="alert"]', "Email or password is wrong");
  await page.fill('input[name="password"]', ADMIN.password);
  await page.click('button[type="submit"]', "Sign in");
  await page.see("h1", "Your account");
  assert.equal(new URL(page.url()).pathname, "/admin/account");
});

test("the frame in Firefox: live, the palette, another screen", async () => {
  const page = await openInFirefox("/admin/account", { as: await admin() });
  await page.see('[data-live="live"]');
  await page.keyboard.down("Control");
  await page.keyboard.press("k");
  await page.keyboard.up("Control");
  await page.fill('[role="combobox"]', "roles");
  await page.see('[role="option"][aria-selected="true"]', "Roles");
  await page.keyboard.press("Enter");
  await page.see("h1", "Roles");
  assert.equal(new URL(page.url()).pathname, "/admin/roles");
});

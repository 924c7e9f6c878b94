// Changes and deletions of several records: progress, cancel, and reports of the changed and the other records.
import assert from "node:assert/strict";
import { before, test } from "node:test";
import { admin, call, copied, grid, intercept, look, must, open, person, picture, ready, until } from "./harness.mjs";

let me;
before(async () => {
  me = await admin();
  await must(me, "POST", "/api/v1/objects", { name: "parcel", label: "Parcels", fields: [{ name: "title", type: "text", required: true }, { name: "state", type: "enum", options: ["here", "sent", "lost"] }, { name: "lot", type: "integer" }] });
});

async function lot(number, count) {
  for (let from = 0; from < count; from += 1_000) await must(me, "POST", "/api/v1/data/parcel/bulk", { data: Array.from({ length: Math.min(1_000, count - from) }, (_, index) => ({ title: `lot ${number} parcel ${String(from + index).padStart(4, "0")}`, state: "here", lot: number })) });
}
const count = async (number, state) => (await must(me, "GET", `/api/v1/data/parcel/aggregate?fn=count&lot=${number}${state === undefined ? "" : `&state=${state}`}`)).data.filteredCount;
const address = (number) => `/admin/data/parcel?sort=title&filter=${encodeURIComponent(JSON.stringify([["lot", "eq", String(number)]]))}`;

/** Chooses a state for the selected rows. */
async function set(page, state) {
  await page.getByRole("button", { name: "Change", exact: true }).click();
  const dialog = page.getByRole("dialog", { name: /^Change / });
  await dialog.getByRole("combobox", { name: "Column" }).click();
  await page.getByRole("option", { name: "state", exact: true }).click();
  await dialog.getByRole("combobox", { name: "New value of state" }).click();
  await page.getByRole("option", { name: state, exact: true }).click();
  await dialog.getByRole("button", { name: /^Change .* record/ }).click();
}
async function selectAll(page, total) {
  await grid(page).focus();
  await page.keyboard.press("Space");
  await page.getByRole("button", { name: `Select all ${total} that match` }).click();
}

test("a few rows are selected by keyboard, changed, and taken back", async () => {
  await lot(1, 10);
  const page = await open(address(1), { as: me });
  await ready(page);
  await grid(page).focus();
  await page.keyboard.press("Space");
  await page.keyboard.press("ArrowDown");
  await page.keyboard.press("ArrowDown");
  await page.keyboard.press("Shift+Space");
  await page.getByText("3 selected").waitFor();
  await look(page, "selected");
  await set(page, "sent");
  await until("three are sent", async () => (await count(1, "sent")) === 3);
  await page.getByText("3 records changed.").waitFor();
  await page.getByRole("button", { name: "Undo" }).click();
  await until("none is sent", async () => (await count(1, "sent")) === 0);
});

test("everything that matches changes with progress, and can be stopped", async () => {
  await lot(2, 1_200);
  const page = await open(address(2), { as: me });
  await ready(page);
  await selectAll(page, "1,200");
  let calls = 0;
  let go = () => {};
  const held = new Promise((resolve) => {
    go = resolve;
  });
  const end = await intercept(page, "/api/v1/data/parcel/bulk", async () => {
    calls += 1;
    if (calls === 3) await held;
    return null;
  });
  await set(page, "sent");
  const dialog = page.getByRole("dialog", { name: /^Change state of 1,200 records/ });
  await dialog.getByText("500 of 1,200 records").waitFor();
  await look(page, "progress", { themes: ["light"] });
  await dialog.getByRole("button", { name: "Stop after this step" }).click();
  go();
  await dialog.getByText("Changed 750 of 1,200 records.").waitFor();
  await dialog.getByText("450 were not tried. They are as they were.").waitFor();
  await look(page, "stopped");
  await end();
  assert.equal(await count(2, "sent"), 750);
  await dialog.getByRole("button", { name: "Try the remaining 450" }).click();
  await page.getByText("Changed 450 of 450 records.").waitFor();
  assert.equal(await count(2, "sent"), 1_200);
  await page.getByRole("button", { name: "Close" }).last().click();
});

test("a right that is taken away in the middle leaves a report", async () => {
  await lot(3, 600);
  const editor = await person(me, "Parcel Editor");
  const role = (await must(me, "POST", "/api/v1/roles", { name: "parcel-editors", permissions: [{ resource: "parcel", actions: ["read", "update"] }] })).data;
  await must(me, "POST", `/api/v1/users/${editor.userId}/roles`, { roleId: role.id });
  const page = await open(address(3), { as: editor, expect: [/status of 403/] });
  await ready(page);
  await selectAll(page, 600);
  let calls = 0;
  await intercept(page, "/api/v1/data/parcel/bulk", async () => {
    calls += 1;
    if (calls === 2) await must(me, "DELETE", `/api/v1/users/${editor.userId}/roles/${role.id}`);
    return null;
  });
  await set(page, "lost");
  const dialog = page.getByRole("dialog", { name: /^Change state of 600 records/ });
  await dialog.getByText("Changed 250 of 600 records.").waitFor();
  await dialog.getByText(/It stopped because the permission is missing/).waitFor();
  await dialog.getByText("350 were not tried. They are as they were.").waitFor();
  const report = await copied(page, () => dialog.getByRole("button", { name: "Copy report" }).click());
  assert.match(report, /Changed: 250 of 600/);
  assert.equal(report.split("\n").filter((line) => /^[0-9a-f-]{36}$/.test(line)).length, 350);
  assert.equal(await count(3, "lost"), 250);
});

test("a session that ends in the middle goes on after the sign-in", async () => {
  await lot(4, 600);
  const again = await person(me, "Parcel Again", [{ resource: "parcel", actions: ["read", "update"] }]);
  const page = await open(address(4), { as: again, expect: [/status of 401/] });
  await ready(page);
  await selectAll(page, 600);
  let calls = 0;
  await intercept(page, "/api/v1/data/parcel/bulk", async () => {
    calls += 1;
    if (calls === 2) await call(again, "POST", "/api/auth/sign-out", {});
    return null;
  });
  await set(page, "lost");
  await page.getByRole("textbox", { name: /password/i }).or(page.getByLabel(/password/i)).first().fill(again.password);
  await page.getByRole("button", { name: "Sign in", exact: true }).click();
  await page.getByText("Changed 600 of 600 records.").waitFor();
  assert.equal(await count(4, "lost"), 600);
});

test("records that break a rule are named, the others are changed", async () => {
  await must(me, "POST", "/api/v1/objects", { name: "shelf", fields: [{ name: "name", type: "text" }] });
  await must(me, "POST", "/api/v1/relationships", { name: "shelf", kind: "many_to_one", source: "parcel", target: "shelf" });
  const made = await must(me, "POST", "/api/v1/data/shelf/bulk", { data: Array.from({ length: 5 }, (_, index) => ({ name: `shelf ${index}` })) });
  await must(me, "POST", "/api/v1/data/parcel", { title: "on a shelf", shelf_id: made.ids[2] });
  const page = await open("/admin/data/shelf?sort=name", { as: me, expect: [/status of 409/] });
  await page.clock.install();
  await ready(page);
  // The deletion waits for an undo. The rows are only gray while it waits, so time stands still here.
  await page.clock.pauseAt(Date.now() + 5_000);
  await grid(page).focus();
  await page.keyboard.press("Control+a");
  await page.getByText("5 selected").waitFor();
  await page.getByRole("button", { name: "Delete", exact: true }).click();
  await until("all are gray", async () => (await grid(page).locator("[data-gone]").count()) === 5);
  await page.clock.runFor(9_000);
  await page.clock.resume();
  const dialog = page.getByRole("dialog", { name: "Delete 5 records" });
  await dialog.getByText("Deleted 4 of 5 records.").waitFor();
  await dialog.getByText(made.ids[2].slice(-8)).waitFor();
  await look(page, "refused", { themes: ["light", "dark"], widths: [1280] });
  assert.equal((await must(me, "GET", "/api/v1/data/shelf")).pagination.totalCount, 1);
});

test("a deletion waits for eight seconds, and undo keeps the rows", async () => {
  await lot(6, 6);
  const page = await open(address(6), { as: me });
  await page.clock.install();
  await ready(page);
  // From here on, time only passes when the test says so.
  await page.clock.pauseAt(Date.now() + 5_000);
  await grid(page).focus();
  await page.keyboard.press("Space");
  await page.getByRole("button", { name: "Delete", exact: true }).click();
  await page.getByText("Record deleted.").waitFor();
  await picture(page, "deleted");
  await page.clock.runFor(5_000);
  assert.equal(await count(6), 6);
  await page.getByRole("button", { name: "Undo" }).click();
  await until("none is gray", async () => (await grid(page).locator("[data-gone]").count()) === 0);
  await page.clock.runFor(10_000);
  assert.equal(await count(6), 6);
  await grid(page).focus();
  await page.keyboard.press("Space");
  await page.getByRole("button", { name: "Delete", exact: true }).click();
  await page.clock.runFor(9_000);
  await until("it is gone", async () => (await count(6)) === 5);
});

test("an answer that never came is reported as unknown", async () => {
  await lot(7, 600);
  const page = await open(address(7), { as: me, expect: [/ERR_CONNECTION_REFUSED/, /failed: PATCH/] });
  await ready(page);
  await selectAll(page, 600);
  let calls = 0;
  await intercept(page, "/api/v1/data/parcel/bulk", () => {
    calls += 1;
    return calls === 2 ? "abort" : null;
  });
  await set(page, "sent");
  await page.getByText("Changed 250 of 600 records.").waitFor();
  await page.getByText(/No answer came for 250/).waitFor();
  await page.getByText("100 were not tried. They are as they were.").waitFor();
});

// The table of records while others write: glowing cells, new rows, rows that leave the view, and a storm of events.
import assert from "node:assert/strict";
import { before, test } from "node:test";
import { admin, grid, holdAnswers, look, must, open, person, settled, until } from "./harness.mjs";

let me;
before(async () => {
  me = await admin();
  await must(me, "POST", "/api/v1/objects", { name: "tick", label: "Ticks", fields: [{ name: "title", type: "text" }, { name: "state", type: "enum", options: ["on", "off"] }, { name: "n", type: "integer" }] });
  await must(me, "POST", "/api/v1/data/tick/bulk", { data: Array.from({ length: 200 }, (_, n) => ({ title: `tick ${String(n).padStart(3, "0")}`, state: "on", n })) });
});

const make = async (values) => (await must(me, "POST", "/api/v1/data/tick", values)).data;
const change = (id, values) => must(me, "PATCH", `/api/v1/data/tick/${id}`, values);
async function ready(page) {
  await grid(page).locator("[data-row] [data-cell]").first().waitFor();
  await settled(page);
  await page.getByText("live", { exact: true }).first().waitFor();
}
const rowOf = (page, text) => grid(page).locator("[data-row]").filter({ hasText: text });

test("a new row slides in at the top, and is a chip elsewhere", async () => {
  const page = await open("/admin/data/tick", { as: me, reducedMotion: "no-preference" });
  await ready(page);
  await make({ title: "brand new", state: "on" });
  await until("it stands first", async () => ((await grid(page).locator('[data-row="0"]').textContent()) ?? "").includes("brand new"));
  await page.getByText("201 records").waitFor();

  await grid(page).evaluate((element) => {
    element.scrollTop = 600;
  });
  await make({ title: "below one", state: "on" });
  await make({ title: "below two", state: "on" });
  const chip = page.getByRole("button", { name: "2 new" });
  await chip.waitFor();
  await look(page, "chip", { widths: [1280] });
  await chip.click();
  await until("they stand first", async () => ((await grid(page).locator('[data-row="0"]').textContent()) ?? "").includes("below two"));
  assert.equal(await chip.count(), 0);

  const sorted = await open("/admin/data/tick?sort=title", { as: me });
  await ready(sorted);
  await make({ title: "aaa", state: "on" });
  await sorted.getByRole("button", { name: "1 new" }).waitFor();
  assert.ok(!((await grid(sorted).locator('[data-row="0"]').textContent()) ?? "").includes("aaa"));
});

test("a changed cell glows once, a row that left is gray and says why", async () => {
  const stays = await make({ title: "stays here", state: "on", n: 1 });
  const leaves = await make({ title: "leaves soon", state: "on", n: 1 });
  const goes = await make({ title: "goes away", state: "on", n: 1 });
  const taken = await make({ title: "taken away", state: "on", n: 1 });
  const other = await person(me, "Dora Deleter", [{ resource: "tick", actions: ["read", "delete"] }]);
  const page = await open(`/admin/data/tick?filter=${encodeURIComponent('[["state","eq","on"]]')}`, { as: me, reducedMotion: "no-preference" });
  await ready(page);
  await page.evaluate(() => {
    window.__glowed = [];
    new MutationObserver((all) => {
      for (const { target, addedNodes } of all)
        for (const cell of [target, ...addedNodes]) if (cell.nodeType === 1 && cell.dataset?.glow) window.__glowed.push(cell.dataset.column);
    }).observe(document.querySelector('[role="grid"]'), { subtree: true, childList: true, attributes: true, attributeFilter: ["data-glow"] });
  });
  await change(stays.id, { n: 77 });
  await rowOf(page, "stays here").getByText("77", { exact: true }).waitFor();
  await until("it glowed", () => page.evaluate(() => window.__glowed.includes("n")));
  await until("it stopped", async () => (await grid(page).locator("[data-glow]").count()) === 0);

  await change(leaves.id, { state: "off" });
  await must(me, "DELETE", `/api/v1/data/tick/${goes.id}`);
  await must(other, "DELETE", `/api/v1/data/tick/${taken.id}`);
  const left = rowOf(page, "leaves soon");
  await until("both are gray", async () => (await left.getAttribute("data-gone")) !== null && (await rowOf(page, "goes away").getAttribute("data-gone")) !== null);
  await left.getByText("This record does not match the view any more.").waitFor();
  await rowOf(page, "goes away").getByText("You deleted this record.").waitFor();
  await rowOf(page, "taken away").getByText("Somebody deleted this record.").waitFor();
  await look(page, "gone", { widths: [1280] });
  // When it is back in the view, it looks like any other row.
  await change(leaves.id, { state: "on" });
  await until("it is back", async () => (await left.getAttribute("data-gone")) === null);
  await page.getByRole("button", { name: "More actions" }).click();
  await page.getByRole("menuitem", { name: "Read again" }).click();
  for (const text of ["goes away", "taken away"]) await rowOf(page, text).waitFor({ state: "detached" });
});

test("what somebody types is not moved by what others do", async () => {
  const record = await make({ title: "typing here", state: "on", n: 1 });
  const page = await open("/admin/data/tick", { as: me });
  await ready(page);
  await rowOf(page, "typing here").locator('[data-column="title"]').dblclick();
  const field = page.getByRole("textbox", { name: "title" });
  await field.waitFor();
  await field.fill("half a sen");
  await make({ title: "in between", state: "on" });
  await page.getByRole("button", { name: "1 new" }).waitFor();
  await change(record.id, { n: 5 });
  await until("the other cell changed", async () => ((await rowOf(page, "typing here").textContent()) ?? "").includes("5"));
  assert.equal(await field.inputValue(), "half a sen");
  await page.keyboard.press("Escape");
});

test("a change that comes while the rows are read again is shown", async () => {
  const record = await make({ title: "read again", state: "on", n: 1 });
  const page = await open("/admin/data/tick", { as: me });
  await ready(page);
  await rowOf(page, "read again").waitFor();
  // The response was made before the change, and arrives after it.
  const { isAsked, release } = await holdAnswers(page, "**/api/v1/data/tick?*");
  await page.getByRole("button", { name: "More actions" }).click();
  await page.getByRole("menuitem", { name: "Read again" }).click();
  await isAsked;
  await change(record.id, { n: 4711 });
  // When another request of the page returns the change, the stream has already brought the event.
  await page.evaluate((address) => fetch(address), `/api/v1/data/tick/${record.id}`);
  release();
  await rowOf(page, "read again").locator('[data-column="n"]').getByText(/^4,?711$/).waitFor();
});

test("memory is steady under a hundred events a second", async () => {
  const seconds = Number(process.env.STORM_SECONDS ?? 12);
  const page = await open("/admin/data/tick?size=100&sort=n", { as: me, reducedMotion: "no-preference" });
  await ready(page);
  const { data } = await must(me, "GET", "/api/v1/data/tick?sort=n&pageSize=100&count=none");
  const ids = data.map(({ id }) => id);
  const session = await page.context().newCDPSession(page);
  await session.send("HeapProfiler.enable");
  const heap = async () => {
    await session.send("HeapProfiler.collectGarbage");
    const { usedSize } = await session.send("Runtime.getHeapUsage");
    return usedSize / 1_048_576;
  };
  let sent = 0;
  const storm = async (length) => {
    const end = Date.now() + length * 1_000;
    while (Date.now() < end) {
      const begin = Date.now();
      // A bulk call has one event for each record.
      const piece = Array.from({ length: 25 }, (_, index) => ids[(sent + index) % ids.length]);
      await must(me, "PATCH", "/api/v1/data/tick/bulk", { ids: piece, values: { title: `storm ${sent}` } });
      sent += piece.length;
      await new Promise((resolve) => setTimeout(resolve, Math.max(0, 250 - (Date.now() - begin))));
    }
  };
  await storm(3);
  const before = await heap();
  await storm(seconds);
  await change(ids[0], { title: "after the storm" });
  await rowOf(page, "after the storm").waitFor();
  const after = await heap();
  console.log(`${sent} events, heap ${before.toFixed(1)} MiB, then ${after.toFixed(1)} MiB`);
  assert.ok(after - before < 12, `the heap grew from ${before.toFixed(1)} to ${after.toFixed(1)} MiB`);
});

// Where the columns of a table of records stand.
import assert from "node:assert/strict";
import { test } from "node:test";
import { bundled } from "./bundled.mjs";

const { place } = await bundled("screens/records/grid/geometry.ts");
const columns = ["title", "state", "amount", "note", "when"].map((id, at) => ({ id, type: ["text", "enum", "currency", "text", "datetime"][at] }));
const widths = (room, layout = {}) => place(columns, layout, 64, room, false).placed.map(({ width }) => width);

test("columns have the width of their type, and the last one takes the room that is left", () => {
  assert.deepEqual(widths(1_060).slice(0, 4), [220, 130, 130, 220]);
  assert.equal(widths(1_060).reduce((sum, width) => sum + width, 64), 1_060);
  // Before the room is measured, nothing is made narrow.
  assert.deepEqual(widths(0), [220, 130, 130, 220, 190]);
});

test("beside an open panel more columns are in sight, and a width that somebody set stays", () => {
  assert.deepEqual(widths(680), [140, 130, 130, 140, 140]);
  assert.deepEqual(widths(680, { widths: { note: 300 } }), [140, 130, 130, 300, 140]);
});

// When the groups of records are read again after changes.
import assert from "node:assert/strict";
import { beforeEach, mock, test } from "node:test";
import { bundled } from "./bundled.mjs";

const { Rereads } = await bundled("screens/records/groups/rereads.ts");

let reads;
let rereads;

/** Each read takes this long. */
function reading(tookMs) {
  rereads = new Rereads(() => {
    reads.push(Date.now());
    rereads.reading(true);
    setTimeout(() => rereads.reading(false), tookMs);
  });
}

/** Lets time pass, with a change in each second if the records do not rest. */
function pass(seconds, isChanging = false) {
  for (let second = 0; second < seconds; second++) {
    if (isChanging) rereads.changed();
    mock.timers.tick(1_000);
  }
}

beforeEach(() => {
  mock.timers.reset();
  mock.timers.enable({ apis: ["setTimeout", "Date"], now: 1_000_000 });
  reads = [];
  reading(0);
});

test("nothing is read without a change, and a change is read once", () => {
  pass(600);
  assert.equal(reads.length, 0);
  rereads.changed();
  rereads.changed();
  pass(1);
  assert.equal(reads.length, 1);
  pass(600);
  assert.equal(reads.length, 1);
});

test("constant changes are read a few times a minute, and slow reads less often", () => {
  pass(60, true);
  assert.ok(reads.length >= 8 && reads.length <= 12, String(reads.length));
  const gaps = reads.slice(1).map((at, index) => at - reads[index]);
  assert.ok(gaps.every((gap) => gap >= 5_000), gaps.join());
  rereads.stop();
  reads = [];
  reading(3_000);
  // The changes of the page wait for the answer.
  for (let second = 0; second < 120; second++) {
    if (reads.length === 0 || Date.now() - reads.at(-1) >= 3_000) rereads.changed();
    mock.timers.tick(1_000);
  }
  assert.ok(reads.length >= 3 && reads.length <= 4, String(reads.length));
});

test("a hidden tab reads nothing, and reads once when it is shown", () => {
  rereads.shown(false);
  pass(600, true);
  assert.equal(reads.length, 0);
  rereads.shown(true);
  pass(1);
  assert.equal(reads.length, 1);
  pass(600);
  assert.equal(reads.length, 1);
  // Without changes in between, there is nothing to read.
  rereads.shown(false);
  pass(60);
  rereads.shown(true);
  pass(60);
  assert.equal(reads.length, 1);
});

test("a tab that is hidden before its read does not read", () => {
  rereads.changed();
  rereads.shown(false);
  pass(60);
  assert.equal(reads.length, 0);
});

test("a tab that is often hidden and shown reads no more often", () => {
  for (let each = 0; each < 60; each++) {
    rereads.changed();
    rereads.shown(false);
    rereads.shown(true);
    pass(1);
  }
  assert.ok(reads.length >= 8 && reads.length <= 12, String(reads.length));
});

test("a read for another reason counts, and a page that is left reads nothing", () => {
  rereads.changed();
  rereads.reading(true);
  pass(30);
  rereads.reading(false);
  pass(600);
  assert.equal(reads.length, 0);
  rereads.changed();
  rereads.stop();
  pass(600);
  assert.equal(reads.length, 0);
});

test("a clock that is set back delays a read by a minute at most", () => {
  rereads.changed();
  pass(2);
  mock.timers.setTime(1_000);
  rereads.changed();
  pass(60);
  assert.equal(reads.length, 2);
});

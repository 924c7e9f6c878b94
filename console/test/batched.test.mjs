// Lookups of single things that share requests.
import assert from "node:assert/strict";
import { test } from "node:test";
import { bundled } from "./bundled.mjs";

const { batched } = await bundled("api/batched.ts");

/** A lookup that knows the things `a` to `e`. `calls` has the ids of each call. */
function lookup(idsMax, { fails = () => false } = {}) {
  const calls = [];
  const find = batched(idsMax, async (ids) => {
    calls.push(ids);
    if (fails(calls.length)) throw new Error(`call ${calls.length} failed`);
    return new Map(ids.filter((id) => "abcde".includes(id)).map((id) => [id, id.toUpperCase()]));
  });
  return { calls, find };
}

test("lookups of one moment share a call, and what it does not return is null", async () => {
  const { calls, find } = lookup(100);
  assert.deepEqual(await Promise.all(["a", "x", "b", "a"].map(find)), ["A", null, "B", "A"]);
  assert.deepEqual(calls, [["a", "x", "b"]]);
  assert.equal(await find("c"), "C");
  assert.deepEqual(calls, [["a", "x", "b"], ["c"]]);
});

test("more lookups than a call takes are divided", async () => {
  const { calls, find } = lookup(2);
  assert.deepEqual(await Promise.all([..."abcde"].map(find)), [..."ABCDE"]);
  assert.deepEqual(calls, [["a", "b"], ["c", "d"], ["e"]]);
});

test("a call that fails fails its own lookups, which can be sent again", async () => {
  const { calls, find } = lookup(2, { fails: (call) => call === 1 });
  const results = await Promise.allSettled([..."abc"].map(find));
  assert.deepEqual(results.map(({ status, value, reason }) => value ?? `${status}: ${reason.message}`), ["rejected: call 1 failed", "rejected: call 1 failed", "C"]);
  assert.equal(await find("a"), "A");
  assert.deepEqual(calls, [["a", "b"], ["c"], ["a"]]);
});

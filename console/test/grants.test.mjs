// The grants of a role, as the grid edits and sends them: those with conditions stay as they are.
import assert from "node:assert/strict";
import { test } from "node:test";
import { bundled } from "./bundled.mjs";

const { isConditional, normal, reachOf, reachesSome, refusalIn, refusedAt, withReach } = await bundled("screens/roles/roles.ts");
const { allows } = await bundled("api/session.ts");

const open = { resource: "task", actions: ["read"], where: { status: "open" } };
const assigned = { resource: "task", actions: ["update", "delete"], rowPolicy: "own", where: { assignee: "$user.id" }, check: { status: { in: ["open", "done"] } } };
const checked = { resource: "task", actions: ["create"], check: { status: "open" } };
const broken = { resource: "task", actions: ["read"], where: { "#1:2": 3 }, broken: true };
const plain = { resource: "task", actions: ["read"] };
const others = { resource: "note", actions: ["read"], where: { title: "a" } };

test("a grant is conditional by either condition, also by an empty one", () => {
  assert.deepEqual([open, assigned, checked, broken, { ...plain, where: {} }].map(isConditional), [true, true, true, true, true]);
  assert.deepEqual([plain, { ...plain, rowPolicy: "own" }, { ...plain, where: null, check: null }].map(isConditional), [false, false, false]);
});

test("a change of a cell leaves every grant with conditions as it is", () => {
  const grants = [open, plain, assigned, others, checked, broken];
  const conditional = grants.filter(isConditional);
  for (const action of ["read", "create", "update", "delete", "manage"])
    for (const reach of ["all", "own", null]) {
      const changed = withReach(grants, "task", action, reach);
      assert.deepEqual(changed.filter(isConditional), conditional, `${action} ${reach}`);
      assert.equal(reachOf(changed, "task", action), reach);
      if (action !== "read") assert.equal(reachOf(changed, "task", "read"), "all");
    }
  assert.deepEqual(withReach([open], "task", "read", null), [open]);
  assert.deepEqual(withReach([open], "task", "read", "own"), [open, { resource: "task", actions: ["read"], rowPolicy: "own" }]);
});

test("what is sent has every condition, in its order, without `broken`", () => {
  const { broken: _, ...mended } = broken;
  assert.deepEqual(normal([checked, { resource: "task", actions: ["update"] }, open, broken, others, plain, assigned, open]), [
    others,
    { resource: "task", actions: ["read", "update"] },
    checked,
    open,
    mended,
    assigned,
    open,
  ]);
  assert.deepEqual(normal(normal([assigned, plain])), normal([plain, assigned]));
  assert.deepEqual(normal([{ check: checked.check, actions: ["create"], resource: "task", where: null }]), [checked]);
});

test("a condition is no reach of the grid, and gives some rows of its actions", () => {
  assert.equal(reachOf([open], "task", "read"), null);
  assert.equal(reachOf([open, { ...plain, rowPolicy: "own" }], "task", "read"), "own");
  assert.equal(reachesSome([open], "task", "read"), true);
  assert.equal(reachesSome([open], "task", "update"), false);
  assert.equal(reachesSome([open], "note", "read"), false);
  assert.equal(reachesSome([{ ...open, actions: ["manage"] }], "task", "delete"), true);
  assert.equal(reachesSome([broken, plain], "task", "read"), false);
});

test("a grant with a condition is not a right on every row", () => {
  const may = (grants, action, rows) => allows({ enforced: true, permissions: grants }, "task", action, rows);
  assert.deepEqual([may([open], "read"), may([open], "read", "all")], [true, false]);
  assert.deepEqual([may([checked], "create"), may([checked], "create", "all")], [true, false]);
  assert.equal(may([open, plain], "read", "all"), true);
  assert.equal(allows({ enforced: false, permissions: [open] }, "task", "read", "all"), true);
});

test("a refusal is found at the condition that it is about, until that is changed", () => {
  const given = normal([plain, open, broken]);
  const refusal = refusedAt("`permissions` at index 2, `where`: `where.#1:2`: There is no field `#1:2`.", given);
  assert.deepEqual([refusal.clause, refusal.message], ["where", "`where.#1:2`: There is no field `#1:2`."]);
  assert.equal(refusalIn(broken, refusal), refusal);
  assert.equal(refusalIn(open, refusal), undefined);
  assert.equal(refusalIn({ ...broken, where: { status: "open" } }, refusal), undefined);
  assert.equal(refusedAt("`permissions` at index 9, `where`: no", given), undefined);
  assert.equal(refusedAt("A role has 100 grants at most.", given), undefined);
});

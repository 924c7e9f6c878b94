// The grants of a role, as the grid edits and sends them: those with conditions or lists of fields stay as they are.
import assert from "node:assert/strict";
import { test } from "node:test";
import { bundled } from "./bundled.mjs";

const { givesSomething, isLimited, normal, reachOf, refusalIn, refusedAt, savedActions, someReachOf, withReach } = await bundled("screens/roles/roles.ts");
const { allows, allowsRecords } = await bundled("api/session.ts");
const { reasonWithoutParts } = await bundled("screens/roles/explain/explain.ts");

const open = { resource: "task", actions: ["read"], where: { status: "open" } };
const assigned = { resource: "task", actions: ["update", "delete"], rowPolicy: "own", where: { assignee: "$user.id" }, check: { status: { in: ["open", "done"] } } };
const checked = { resource: "task", actions: ["create"], check: { status: "open" } };
const broken = { resource: "task", actions: ["read"], where: { "#1:2": 3 }, broken: true };
const plain = { resource: "task", actions: ["read"] };
const titles = { resource: "task", actions: ["read", "update"], fields: { read: ["title"], write: { except: ["salary"] } } };
const both = { resource: "task", actions: ["manage"], where: { status: "open" }, fields: { read: ["title"] } };
const others = { resource: "note", actions: ["read"], where: { title: "a" } };

test("a grant is limited by either condition, also by an empty one, and by a list that leaves out a field", () => {
  assert.deepEqual([open, assigned, checked, broken, { ...plain, where: {} }].map(isLimited), [true, true, true, true, true]);
  assert.deepEqual([titles, both, { ...plain, fields: { read: [] } }, { ...plain, fields: { write: { except: ["title"] } } }].map(isLimited), [true, true, true, true]);
  assert.deepEqual([plain, { ...plain, rowPolicy: "own" }, { ...plain, where: null, check: null }].map(isLimited), [false, false, false]);
  assert.deepEqual([{ ...plain, fields: {} }, { ...plain, fields: null }, { ...plain, fields: { read: { except: [] }, write: null } }].map(isLimited), [false, false, false]);
});

test("an action gives something where something needs it, and manage where it stands for several", () => {
  const given = (resource) => ["read", "create", "update", "delete", "manage"].filter((action) => givesSomething(resource, action));
  assert.deepEqual([given("data"), given("settings")], [["read"], ["read"]]);
  for (const resource of ["*", "task", "roles", "blocks", "echo:calls"]) assert.equal(given(resource).length, 5, resource);
});

test("a change of a cell leaves every limited grant as it is", () => {
  const grants = [open, plain, assigned, titles, others, checked, both, broken];
  const limited = grants.filter(isLimited);
  assert.equal(limited.length, 7);
  for (const action of ["read", "create", "update", "delete", "manage"])
    for (const reach of ["all", "own", null]) {
      const changed = withReach(grants, "task", action, reach);
      assert.deepEqual(changed.filter(isLimited), limited, `${action} ${reach}`);
      assert.equal(reachOf(changed, "task", action), reach);
      if (action !== "read") assert.equal(reachOf(changed, "task", "read"), "all");
    }
  assert.deepEqual(withReach([open], "task", "read", null), [open]);
  assert.deepEqual(withReach([open], "task", "read", "own"), [open, { resource: "task", actions: ["read"], rowPolicy: "own" }]);
});

test("what is sent has every condition and list, in its order, without `broken`", () => {
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
  assert.deepEqual(normal([both, plain, titles]), [plain, both, titles]);
  assert.deepEqual(normal([{ ...titles, where: null, fields: { read: ["title"], write: { except: [] } } }]), [{ ...titles, fields: { read: ["title"] } }]);
  assert.deepEqual(normal([{ ...plain, fields: { read: null } }]), [plain]);
  assert.deepEqual(normal(normal([assigned, plain])), normal([plain, assigned]));
  assert.deepEqual(normal([{ check: checked.check, actions: ["create"], resource: "task", where: null }]), [checked]);
});

test("of a limited grant on users, the actions that the server refuses are not saved", () => {
  const saved = (grant) => savedActions({ resource: "users", actions: ["read", "update", "delete"], ...grant });
  for (const clause of [{ where: { name: "Ann" } }, { check: {} }]) assert.deepEqual(saved(clause), ["read"]);
  // A list matters to the actions that need it.
  assert.deepEqual(saved({ fields: { read: ["name"] } }), ["read", "update", "delete"]);
  assert.deepEqual(saved({ fields: { write: ["name"] } }), ["read", "delete"]);
  assert.deepEqual(saved({ actions: ["manage"], fields: { read: ["name"] } }), []);
  assert.deepEqual([saved({ rowPolicy: "own" }), saved({ where: null, check: null, fields: { read: { except: [] } } })].map((kept) => kept.length), [3, 3]);
  assert.deepEqual(savedActions(assigned), ["update", "delete"]);
});

test("a condition is no reach of the grid, and gives some rows of its actions", () => {
  assert.equal(reachOf([open], "task", "read"), null);
  assert.equal(reachOf([open, { ...plain, rowPolicy: "own" }], "task", "read"), "own");
  assert.equal(someReachOf([open], "task", "read"), "some rows");
  assert.equal(someReachOf([open], "task", "update"), null);
  assert.equal(someReachOf([open], "note", "read"), null);
  assert.equal(someReachOf([{ ...open, actions: ["manage"] }], "task", "delete"), "some rows");
  assert.equal(someReachOf([broken, plain], "task", "read"), null);
});

test("a list of fields gives some fields of the actions that it matters to", () => {
  assert.equal(reachOf([titles], "task", "read"), null);
  assert.equal(reachOf([titles, plain], "task", "read"), "all");
  assert.deepEqual(["read", "update", "create"].map((action) => someReachOf([titles], "task", action)), ["some fields", "some fields", null]);
  assert.deepEqual(["read", "update", "delete", "manage"].map((action) => someReachOf([both], "task", action)), ["some rows and fields", "some rows", "some rows", "some rows and fields"]);
  assert.equal(someReachOf([open, titles], "task", "read"), "some rows and fields");
  assert.equal(someReachOf([{ ...titles, rowPolicy: "own" }], "task", "read"), "some rows and fields");
  // What it does not limit, it gives in full: a deleted record has no fields.
  const reads = { resource: "task", actions: ["read", "update", "delete"], fields: { read: ["title"] } };
  assert.deepEqual(["read", "update", "delete"].map((action) => someReachOf([reads], "task", action)), ["some fields", "all", "all"]);
  assert.equal(someReachOf([{ ...titles, broken: true }], "task", "read"), null);
});

test("a grant with a condition is not a right on every row", () => {
  const may = (grants, action, rows) => allows({ enforced: true, permissions: grants }, "task", action, rows);
  assert.deepEqual([may([open], "read"), may([open], "read", "all")], [true, false]);
  assert.deepEqual([may([checked], "create"), may([checked], "create", "all")], [true, false]);
  assert.equal(may([open, plain], "read", "all"), true);
  assert.deepEqual([may([titles], "read"), may([titles], "read", "all"), may([titles, plain], "read", "all")], [true, false, true]);
  // Reading fields is nothing that deleting needs.
  assert.equal(may([{ resource: "task", actions: ["delete"], fields: { read: ["title"] } }], "delete", "all"), true);
  assert.equal(allows({ enforced: false, permissions: [open] }, "task", "read", "all"), true);
});

test("a broken grant is no right, whatever it names", () => {
  const may = (...grants) => [allows, allowsRecords].map((allowed) => allowed({ enforced: true, permissions: grants }, "task", "read"));
  const unlisted = { ...plain, fields: { read: [] }, broken: true };
  for (const lost of [broken, unlisted, { ...broken, actions: ["manage"] }, { ...plain, broken: true }]) {
    assert.deepEqual(may(lost), [false, false]);
    assert.deepEqual(may(lost, open), [true, true]);
  }
  assert.deepEqual(may({ ...open, broken: false }), [true, true]);
});

test("a refusal is found at the condition that it is about, until that is changed", () => {
  const given = normal([plain, open, broken]);
  const refusal = refusedAt("`permissions` at index 2, `where`: `where.#1:2`: There is no field `#1:2`.", given);
  assert.deepEqual([refusal.clause, refusal.message], ["where", "`where.#1:2`: There is no field `#1:2`."]);
  assert.equal(refusalIn(broken, refusal), refusal);
  assert.equal(refusalIn(open, refusal), undefined);
  assert.equal(refusalIn({ ...broken, where: { status: "open" } }, refusal), undefined);
  const listed = normal([plain, titles]);
  for (const place of ["fields", "fields.read", "fields.write"]) {
    const refused = refusedAt(`\`permissions\` at index 1, \`${place}\`: There is no field \`titel\`.`, listed);
    assert.deepEqual([refused.clause, refused.message], ["fields", "There is no field `titel`."]);
    assert.equal(refusalIn(titles, refused), refused);
    assert.equal(refusalIn({ ...titles, fields: { read: ["state"] } }, refused), undefined);
  }
  assert.equal(refusedAt("`permissions` at index 9, `where`: no", given), undefined);
  assert.equal(refusedAt("A role has 100 grants at most.", given), undefined);
});

test("an explanation says why a grant does not reach a record, also if it names no part of the condition", () => {
  assert.equal(reasonWithoutParts(broken, "read"), ", because the grant is broken.");
  assert.equal(reasonWithoutParts({ resource: "users", broken: true }, "update"), ", because the grant is broken.");
  assert.equal(reasonWithoutParts({ resource: "users" }, "update"), ", because conditions and fields of a grant on users work for reading only.");
  for (const [resource, action] of [["users", "read"], ["task", "update"]]) assert.equal(reasonWithoutParts({ resource }, action), ". Not met: a condition on records that you may not all read");
});

// Lists of fields in grants: as the grid edits them, in words, and what they leave of an object for somebody who has them.
import assert from "node:assert/strict";
import { test } from "node:test";
import { bundled } from "./bundled.mjs";

const { choose, fieldsInWords, isTicked, ofNewFields, printGrid, readGrid, rowsOf, tick } = await bundled("screens/roles/fields/fields.ts");
const { fieldRights, sidesOf } = await bundled("api/field-lists.ts");
const { shapeFor, shapeOf, shapeOfRecord } = await bundled("api/record-shape.ts");
const { lackingColumns, tableShape } = await bundled("screens/records/columns.ts");
const { isNewestFirst } = await bundled("screens/records/list-query.ts");
const { ApiError } = await bundled("api/errors.ts");

const schema = {
  objects: [
    { name: "task", label: "Tasks", fields: [{ name: "title", type: "text" }, { name: "state", type: "enum", options: ["open", "done"] }, { name: "salary", type: "decimal" }], constraints: { uniqueTogether: [["title", "salary"], ["title", "state"]] } },
    { name: "company", fields: [{ name: "name", type: "text" }] },
    { name: "tag", fields: [{ name: "name", type: "text" }] },
    { name: "comment", fields: [{ name: "text", type: "text" }] },
  ],
  relationships: [
    { name: "company", kind: "many_to_one", source: "task", target: "company" },
    { name: "tags", kind: "many_to_many", source: "task", target: "tag" },
    { name: "task", kind: "many_to_one", source: "comment", target: "task" },
  ],
};
const task = shapeOf(schema, "task");
const BOTH = ["read", "write"];
const rows = rowsOf(task, undefined);
const print = (state, sides = BOTH) => printGrid(state, rows, sides);

test("the grid has every name that a list can have, and says which the server keeps", () => {
  assert.deepEqual(
    rows.map(({ name, sides }) => `${name} ${sides.join("+")}`),
    ["id ", "title read+write", "state read+write", "salary read+write", "company_id read+write", "tags read+write", "created_at read", "updated_at read", "created_by read", "updated_by read"],
  );
  // Names that the object does not have can be taken out.
  const more = rowsOf(task, { read: ["title", "gone"], write: { except: ["lost", "gone"] } });
  assert.deepEqual(more.slice(rows.length).map(({ name, kind }) => `${name} ${kind}`), ["gone not in this object", "lost not in this object"]);
  assert.deepEqual(rowsOf(undefined, { read: ["title"] }).map(({ name }) => name), ["id", "created_at", "updated_at", "created_by", "updated_by", "title"]);
});

test("what is printed is what was read", () => {
  for (const fields of [
    { read: ["title", "state"] },
    { write: { except: ["salary"] } },
    { read: { except: ["salary", "created_by"] }, write: ["title"] },
    { read: ["company_id", "tags"], write: ["tags"] },
    { read: [], write: [] },
  ]) {
    const state = readGrid(fields);
    assert.deepEqual(print(state), fields);
    assert.deepEqual(print(readGrid(print(state))), fields);
  }
  const gone = { read: ["title", "gone"] };
  assert.deepEqual(printGrid(readGrid(gone), rowsOf(task, gone), BOTH), gone);
});

test("nothing is printed where all fields are given", () => {
  for (const fields of [undefined, null, {}, { read: null }, { read: { except: [] }, write: { except: [] } }]) assert.equal(print(readGrid(fields)), undefined);
  // An id is always readable, and nobody writes what the server keeps.
  assert.deepEqual(print(readGrid({ read: ["id", "title"], write: ["title", "created_at"] })), { read: ["title"], write: ["title"] });
  assert.equal(print(readGrid({ read: { except: ["id"] }, write: { except: ["updated_at"] } })), undefined);
});

test("names are printed in the order of the object", () => {
  assert.deepEqual(print(readGrid({ read: ["created_at", "state", "title"] })), { read: ["title", "state", "created_at"] });
});

test("a side that no action needs is not printed", () => {
  const state = readGrid({ read: ["title"], write: ["state"] });
  assert.deepEqual([sidesOf(["read"]), sidesOf(["create"]), sidesOf(["update", "delete"]), sidesOf(["delete"]), sidesOf(["manage"]), sidesOf(["update", "read"])], [["read"], ["write"], ["write"], [], BOTH, BOTH]);
  assert.deepEqual(print(state, ["read"]), { read: ["title"] });
  assert.deepEqual(print(state, ["write"]), { write: ["state"] });
  assert.equal(print(state, []), undefined);
});

test("ticks stay when only these become all except these, and back", () => {
  const ticked = (state) => rows.filter(({ sides }) => sides.includes("write")).map(({ name }) => name).filter((name) => isTicked(state, name));
  const only = readGrid({ write: ["title", "tags"] }).write;
  const except = choose(only, "except", "write", rows);
  assert.deepEqual([...except.listed], ["state", "salary", "company_id"]);
  assert.deepEqual(ticked(except), ["title", "tags"]);
  assert.deepEqual(choose(except, "only", "write", rows), only);
  const all = choose(only, "all", "write", rows);
  assert.deepEqual([all.choice, ticked(all).length], ["all", 5]);
  assert.deepEqual(ticked(choose(all, "only", "write", rows)), ["title", "state", "salary", "company_id", "tags"]);
  assert.deepEqual(ticked(choose(all, "except", "write", rows)), ["title", "state", "salary", "company_id", "tags"]);
});

test("a tick that is taken away from all fields makes an exception", () => {
  const all = readGrid(undefined).read;
  assert.equal(tick(all, ["title"], true), all);
  const without = tick(all, ["salary"], false);
  assert.deepEqual(print({ ...readGrid(undefined), read: without }), { read: { except: ["salary"] } });
  assert.deepEqual([isTicked(without, "salary"), isTicked(without, "title")], [false, true]);
  assert.deepEqual([...tick(without, ["title", "state"], false).listed], ["salary", "title", "state"]);
  assert.equal(print({ ...readGrid(undefined), read: tick(without, ["salary"], true) }), undefined);
  const only = readGrid({ read: ["title"] }).read;
  assert.deepEqual([...tick(only, ["state"], true).listed], ["title", "state"]);
  assert.deepEqual([...tick(only, ["title"], false).listed], []);
});

test("a field that is added later is given by all and by exceptions, and not by a list", () => {
  const fields = [undefined, ["title"], { except: ["title"] }];
  const said = (read, write, sides = BOTH) => ofNewFields(readGrid({ read, write }), sides);
  const [all, only, except] = fields;
  assert.deepEqual([isTicked(readGrid({ read: all }).read, "new"), isTicked(readGrid({ read: only }).read, "new"), isTicked(readGrid({ read: except }).read, "new")], [true, false, true]);
  const text = (words) => `Fields that are added to the object later are ${words}.`;
  assert.equal(said(all, all), undefined);
  assert.equal(said(only, all), text("writable but not readable"));
  assert.equal(said(except, all), text("readable and writable"));
  assert.equal(said(all, only), text("readable but not writable"));
  assert.equal(said(only, only), text("neither readable nor writable"));
  assert.equal(said(only, all, ["read"]), text("not readable"));
  assert.equal(said(except, only, ["read"]), text("readable"));
  assert.equal(said(all, only, ["write"]), text("not writable"));
  assert.equal(said(only, all, ["write"]), undefined);
});

test("lists are said in words, for the actions of the grant", () => {
  const fields = { read: ["title", "state"], write: { except: ["salary"] } };
  assert.equal(fieldsInWords(fields, ["read", "update"]), "Reads `title`, `state`; writes all fields except `salary`.");
  assert.equal(fieldsInWords(fields, ["manage"]), "Reads `title`, `state`; writes all fields except `salary`.");
  assert.equal(fieldsInWords(fields, ["read"]), "Reads `title`, `state`.");
  assert.equal(fieldsInWords(fields, ["create", "delete"]), "Writes all fields except `salary`.");
  assert.equal(fieldsInWords({ read: ["title"] }, ["read", "create"]), "Reads `title`; writes all fields.");
  assert.equal(fieldsInWords({ write: ["title"] }, ["read", "create"]), "Reads all fields; writes `title`.");
  assert.equal(fieldsInWords({ read: [], write: [] }, ["manage"]), "Reads only `id`; writes no fields.");
  for (const [lists, actions] of [[fields, ["delete"]], [{ write: ["title"] }, ["read"]], [undefined, ["manage"]], [{}, ["manage"]], [{ read: { except: [] } }, ["read"]]]) assert.equal(fieldsInWords(lists, actions), undefined);
  const many = Array.from({ length: 23 }, (_, index) => `f${index}`);
  assert.match(fieldsInWords({ read: many }, ["read"]), /^Reads `f0`, .*`f19` and 3 more\.$/);
});

const held = (...permissions) => ({ enforced: true, permissions });
const reads = (fields, more) => ({ resource: "task", actions: ["read"], ...(fields === undefined ? {} : { fields: { read: fields } }), ...more });

test("a field may be used if one grant of the action lists it", () => {
  const may = (permissions, use, name) => fieldRights(permissions, "task")?.(use, name) ?? true;
  const one = held(reads(["title"]), reads({ except: ["salary", "title"] }), { resource: "task", actions: ["update"], fields: { read: [], write: ["state"] } });
  assert.deepEqual(["id", "title", "state", "salary"].map((name) => may(one, "read", name)), [true, true, true, false]);
  assert.deepEqual(["id", "title", "state"].map((name) => may(one, "update", name)), [false, false, true]);
  // No grant gives it, so its fields are not what is missing.
  assert.equal(may(one, "create", "title"), true);
  for (const wider of [reads(undefined), { resource: "*", actions: ["read"] }, { resource: "task", actions: ["manage"] }]) assert.equal(may(held(reads(["title"]), wider), "read", "salary"), true);
  assert.equal(may(held(reads(["title"]), reads(undefined, { broken: true })), "read", "salary"), false);
  assert.equal(may(held(reads(["title"]), { resource: "tag", actions: ["read"] }), "read", "salary"), false);
  assert.equal(fieldRights(held(reads(undefined)), "task"), undefined);
  assert.equal(fieldRights({ ...held(reads(["title"])), enforced: false }, "task"), undefined);
});

test("an object has the fields that its reader may read, and marks what they may not change", () => {
  const whole = shapeFor(task, held(reads(undefined)));
  assert.deepEqual([whole.columns, whole.isPartial], [task.columns, false]);
  const permissions = held(reads(["title", "state", "company_id", "created_at"]), { resource: "task", actions: ["update"], fields: { write: ["state", "salary"] } }, { resource: "comment", actions: ["read"], fields: { read: { except: ["task_id"] } } });
  const shape = shapeFor(task, permissions);
  assert.deepEqual(shape.columns.map(({ name, isReadOnly }) => `${name} ${isReadOnly === true}`), ["title true", "state false", "company_id true"]);
  assert.deepEqual([shape.system, shape.links, shape.reverse, shape.uniqueTogether, shape.isPartial], [["id", "created_at"], [], [], [["title", "state"]], true]);
  const table = tableShape(shape);
  assert.deepEqual(table.columns.map(({ id }) => id), ["id", "title", "state", "company_id", "created_at"]);
  assert.deepEqual(table.columns.filter(({ isReadOnly }) => !isReadOnly).map(({ id }) => id), ["state"]);
  assert.deepEqual([...table.relations.keys()], ["company"]);

  // Links need the key of the relation, and the records that refer to this one their own column.
  const linked = shapeFor(task, held(reads(["tags"]), { resource: "task", actions: ["update"], fields: { write: ["title"] } }));
  assert.deepEqual(linked.links, [{ key: "tags", target: "tag", isReadOnly: true }]);
  assert.deepEqual(linked.reverse.map(({ key }) => key), ["comment_by_task"]);
});

test("a new record gets the fields that may be given to it, readable or not", () => {
  const permissions = held(reads(["title"]), { resource: "task", actions: ["create"], fields: { write: ["salary", "state"] } });
  assert.deepEqual(shapeFor(task, permissions, "create").columns.map(({ name, isReadOnly }) => `${name} ${isReadOnly}`), ["state undefined", "salary undefined"]);
});

test("a column that every record lacks is not shown", () => {
  const { columns } = tableShape(task);
  const seen = { id: "1", title: null, created_at: "2026-01-01T00:00:00Z" };
  assert.deepEqual(lackingColumns(columns, [seen, { ...seen, state: "open" }]), ["salary", "company_id", "updated_at", "created_by", "updated_by"]);
  // Without a record nobody knows.
  assert.deepEqual(lackingColumns(columns, []), []);
  const shape = shapeOfRecord(task, new Set(["salary", "updated_by"]));
  assert.deepEqual([shape.columns.map(({ name }) => name), shape.system, shape.isPartial], [["title", "state", "company_id"], ["id", "created_at", "updated_at", "created_by"], true]);
  assert.equal(shapeOfRecord(task, new Set()), task);
});

test("without a sort the newest come first only for those who may read when a record was made", () => {
  assert.equal(isNewestFirst([], tableShape(task)), true);
  assert.equal(isNewestFirst([], tableShape(shapeFor(task, held(reads(["title"]))))), false);
  assert.equal(isNewestFirst([{ id: "id", descending: true }], tableShape(shapeFor(task, held(reads(["title"]))))), true);
});

test("a refused field has the sentence of the server, whatever the status", () => {
  for (const status of [400, 403, 409]) assert.deepEqual(new ApiError(status, "forbidden", "You may not write `salary`.", { field: "salary" }).byField, { salary: "You may not write `salary`." });
});

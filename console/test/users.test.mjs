// Users as an object that relationships lead to, though no list of objects names them.
import assert from "node:assert/strict";
import { test } from "node:test";
import { bundled } from "./bundled.mjs";

const { namingColumns, shapeByOpenApi, shapeFor, shapeOf } = await bundled("api/record-shape.ts");
const { relatedOf, selectOf } = await bundled("api/related.ts");
const { changed, defaultOnDelete, kindSentence, kindsTo, onDeleteChoices, onDeleteSentence, relationKeys } = await bundled("screens/objects/model/relations.ts");
const { tableShape } = await bundled("screens/records/columns.ts");
const { readWhere, printParts } = await bundled("screens/records/filters/tree.ts");
const { textOf, wordsOfAll } = await bundled("screens/records/filters/words.ts");
const { guessLookups, guessMapping } = await bundled("screens/records/transfer/mapping.ts");
const { rowsOf } = await bundled("screens/roles/fields/fields.ts");
const { sentences } = await bundled("screens/record/dependents.ts");
const { leadsToUsers } = await bundled("api/users-object.ts");

const schema = {
  objects: [{ name: "task", fields: [{ name: "title", type: "text" }] }],
  relationships: [
    { id: 1, name: "assignee", kind: "many_to_one", source: "task", target: "users", required: false, onDelete: "set_null" },
    { id: 2, name: "watchers", kind: "many_to_many", source: "task", target: "users", required: false, onDelete: "cascade" },
  ],
};
const of = (name) => shapeOf(schema, name);
const users = of("users");
const names = (columns) => columns.map(({ name }) => name);
const may = (...permissions) => ({ enforced: true, permissions });
const onUsers = (fields, actions = ["read"]) => may({ resource: "users", actions, ...(fields === undefined ? {} : { fields }) }, { resource: "task", actions: ["read"] });

test("users have a shape that no schema describes, with what leads to them", () => {
  assert.deepEqual(names(users.columns), ["name", "image", "email"]);
  assert.deepEqual(users.system, ["id"]);
  assert.deepEqual(names(namingColumns(users.columns)), ["email"]);
  assert.deepEqual(users.links, [{ key: "watchers", target: "task" }]);
  assert.deepEqual(users.reverse.map(({ key, onDelete }) => `${key} ${onDelete}`), ["task_by_assignee set_null"]);
  assert.equal(of("task").columns.find(({ name }) => name === "assignee_id").reference.target, "users");
  assert.deepEqual(tableShape(users).columns.map(({ id }) => id), ["id", "name", "image", "email"]);
  assert.deepEqual(shapeOf({ objects: [], relationships: [] }, "users").reverse, []);
  assert.equal(leadsToUsers(schema), true);
  assert.equal(leadsToUsers({ relationships: [] }), false);
});

test("users are never written as records, and have the fields that grants list", () => {
  const whole = shapeFor(users, onUsers(undefined, ["manage"]));
  assert.equal(whole.columns.every(({ isReadOnly }) => isReadOnly === true), true);
  assert.equal(whole.links.every(({ isReadOnly }) => isReadOnly === true), true);
  assert.deepEqual(names(shapeFor(users, onUsers({ read: ["name"] })).columns), ["name"]);
  assert.equal(shapeFor(of("task"), may({ resource: "task", actions: ["manage"] })).links[0].isReadOnly, undefined);
});

test("without the schema, users are what the OpenAPI document shows of them", () => {
  const text = { type: ["string", "null"] };
  const reference = { type: ["string", "null"], format: "uuid", description: "The id of a record of `users`." };
  const document = (shown, single) => ({
    components: {
      schemas: {
        Task: { properties: { id: { type: "string" }, title: text, assignee_id: reference, assignee: single } },
        ...(shown ? { Users: { properties: { id: { type: "string" }, name: text, email: text, task_by_assignee: { type: "array", items: { $ref: "#/components/schemas/Task" } } } } } : {}),
      },
    },
  });
  const seen = document(true, { anyOf: [{ $ref: "#/components/schemas/Users" }, { type: "null" }] });
  const shape = shapeByOpenApi(seen, ["task"], "users");
  assert.deepEqual(names(shape.columns), ["name", "email"]);
  assert.deepEqual(names(namingColumns(shape.columns)), ["email"]);
  assert.deepEqual(shape.reverse.map(({ key }) => key), ["task_by_assignee"]);
  assert.equal(shapeByOpenApi(seen, ["task"], "task").columns.at(-1).reference.target, "users");
  // Of users that this person may not read, the document names the target alone.
  const hidden = document(false, { description: "Present with `expand`." });
  assert.equal(shapeByOpenApi(hidden, ["task"], "task").columns.at(-1).reference.target, "users");
  assert.deepEqual(names(shapeByOpenApi(hidden, ["task"], "users").columns), ["name", "image", "email"]);
});

test("a user is known by their name, then by their address", () => {
  const all = users.columns;
  assert.equal(selectOf("users", all), "id,name,email");
  assert.equal(selectOf("users", all.slice(0, 1)), "id,name");
  assert.equal(selectOf("task", of("task").columns), "id,title");
  assert.deepEqual(relatedOf("users", { id: "1", name: "Ann", image: null, email: "ann@example.com" }, all), { id: "1", label: "Ann", note: "ann@example.com" });
  assert.deepEqual(relatedOf("users", { id: "1", name: "Ann", email: null }, all), { id: "1", label: "Ann" });
  assert.deepEqual(relatedOf("users", { id: "1", name: "", email: "guest@example.com" }, all), { id: "1", label: "guest@example.com" });
  assert.deepEqual(relatedOf("users", { id: "1", name: "" }, all), { id: "1", label: undefined });
  assert.deepEqual(relatedOf("task", { id: "1", title: "First", email: "odd@example.com" }, of("task").columns), { id: "1", label: "First" });
});

test("a condition along a relation to users is read, printed and said", () => {
  const table = (name) => (of(name) === undefined ? undefined : tableShape(of(name)));
  const where = { _or: [{ assignee: { email: { ilike: "ann@" } } }, { watchers: { some: { name: "Ann" } } }] };
  const parts = readWhere(where, table("task"), table);
  assert.equal(JSON.stringify(parts).includes('"raw"'), false);
  assert.deepEqual(printParts(parts, table("task"), table), { _or: [{ "assignee.email": { ilike: "ann@" } }, { watchers: { some: { name: "Ann" } } }] });
  const said = textOf(wordsOfAll(parts, "and", { shape: table("task"), of: table, titleOf: () => undefined }));
  assert.equal(said, "assignee's email contains ann@ or some of watchers match (name is Ann)");
});

test("a file names users by their addresses", () => {
  const mapping = guessMapping(["title", "assignee.email"], of("task"), false, of);
  assert.deepEqual(mapping, { title: "title", "assignee.email": "assignee_id" });
  assert.equal(guessLookups(mapping, of("task"), of).assignee_id.name, "email");
});

test("a grant on users lists their fields, without what the server keeps about records", () => {
  assert.deepEqual(names(rowsOf(users, undefined)), ["id", "name", "image", "email", "watchers"]);
});

test("a relation to users takes what the server takes", () => {
  assert.deepEqual(kindsTo("users"), ["many_to_one", "one_to_one", "many_to_many"]);
  assert.deepEqual(kindsTo("task").length, 4);
  const begun = { name: "", kind: "one_to_many", source: "task", target: "", onDelete: "restrict" };
  const led = changed(begun, { target: "users" });
  assert.deepEqual([led.kind, led.onDelete], ["many_to_one", "set_null"]);
  assert.deepEqual(onDeleteChoices(led), ["set_null", "cascade"]);
  // What is required goes along, and is cleared again when it is not.
  const required = changed(led, { required: true });
  assert.deepEqual([required.onDelete, onDeleteChoices(required)], ["cascade", ["cascade"]]);
  assert.equal(changed(required, { required: false }).onDelete, "set_null");
  const linked = changed(required, { kind: "many_to_many" });
  assert.deepEqual([linked.onDelete, linked.required, onDeleteChoices(linked)], ["cascade", undefined, ["cascade"]]);
  // Back at another object its own default stands; what was chosen stays where it fits.
  assert.equal(changed(led, { target: "task" }).onDelete, "restrict");
  assert.equal(changed(changed(led, { onDelete: "cascade" }), { target: "task" }).onDelete, "cascade");
  assert.equal(changed({ ...begun, kind: "many_to_one", onDelete: "set_null" }, { required: true }).onDelete, "restrict");
  assert.equal(defaultOnDelete({ kind: "many_to_one", target: "task" }), "restrict");
});

test("what the deletion of a user does to records is said", () => {
  const [assigned] = users.reverse;
  const badges = { reverse: { ...assigned, object: "badge", relation: "holder", onDelete: "cascade" }, count: 1 };
  assert.equal(sentences([{ reverse: assigned, count: 2 }, badges], 3), "1 badge and 3 links go too. 2 task lose their assignee.");
  assert.equal(sentences([], 0), "");
});

test("a relation to users speaks of a user", () => {
  const relation = { name: "assignee", kind: "many_to_one", source: "task", target: "users" };
  assert.equal(kindSentence(relation), "Each task has one user. One user has any number of task records.");
  assert.equal(kindSentence({ ...relation, kind: "many_to_many" }), "Each task is linked with any number of users, and the other way around.");
  assert.equal(onDeleteSentence(relation, "set_null"), "Deleting a user keeps every task that refers to it. Their assignee_id becomes null.");
  assert.equal(relationKeys(relation).column.note, "uuid of a user, null allowed");
  assert.equal(relationKeys(relation).keys[0].shows, "user or null");
});

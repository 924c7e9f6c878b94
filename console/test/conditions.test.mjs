// The filter as a tree: from and to the condition of a request, in words, and within the bounds of the server.
import assert from "node:assert/strict";
import { test } from "node:test";
import { bundled } from "./bundled.mjs";

const tree = await bundled("screens/records/filters/tree.ts");
const sendable = await bundled("screens/records/filters/sendable.ts");
const copies = await bundled("screens/records/copies.ts");
const list = await bundled("screens/records/list-query.ts");
const viewing = await bundled("api/view-as.ts");
const words = await bundled("screens/records/filters/words.ts");
const views = await bundled("screens/records/views/view.ts");
const { readRecordsSearch } = await bundled("screens/records/search.ts");
const { tableShape } = await bundled("screens/records/columns.ts");
const { shapeOf } = await bundled("api/record-shape.ts");
const { parseJson, printJson } = await bundled("api/json.ts");

const schema = {
  objects: [
    {
      name: "task",
      label: "Tasks",
      fields: [
        { name: "title", type: "text" },
        { name: "status", type: "enum", options: ["open", "done"] },
        { name: "amount", type: "decimal" },
        { name: "big", type: "big_integer" },
        { name: "done", type: "boolean" },
        { name: "due", type: "datetime" },
        { name: "meta", type: "json" },
      ],
    },
    { name: "person", fields: [{ name: "name", type: "text" }, { name: "age", type: "integer" }] },
    { name: "company", fields: [{ name: "name", type: "text" }] },
    { name: "tag", fields: [{ name: "name", type: "text" }] },
    { name: "comment", fields: [{ name: "text", type: "text" }] },
    { name: "passport", fields: [{ name: "number", type: "text" }] },
    { name: "lookup", fields: [{ name: "where", type: "text" }, { name: "title", type: "text" }, { name: "size", type: "big_integer" }] },
  ],
  relationships: [
    { name: "owner", kind: "many_to_one", source: "task", target: "person" },
    { name: "reviewer", kind: "many_to_one", source: "task", target: "person" },
    { name: "company", kind: "many_to_one", source: "person", target: "company" },
    { name: "tags", kind: "many_to_many", source: "task", target: "tag" },
    { name: "task", kind: "many_to_one", source: "comment", target: "task" },
    { name: "holder", kind: "one_to_one", source: "passport", target: "person" },
  ],
};
const shapes = new Map(schema.objects.map(({ name }) => [name, tableShape(shapeOf(schema, name))]));
const of = (name) => shapes.get(name);
const task = of("task");
const read = (json) => tree.readWhere(typeof json === "string" ? parseJson(json) : json, task, of);
const print = (parts, options) => JSON.parse(printJson(tree.printParts(parts, task, of, options)));
const said = (json) => words.textOf(words.wordsOfAll(read(json), "and", { shape: task, of, titleOf: () => undefined }));
const fits = (json) => sendable.fits(read(json), task, of);

test("relations are known by the keys of expand", () => {
  const told = (name) => [...of(name).relations.values()].map(({ key, label, isMany }) => `${key} ${label} ${isMany}`);
  assert.deepEqual(told("task"), ["owner owner false", "reviewer reviewer false", "tags tags true", "comment_by_task comment true"]);
  assert.deepEqual(told("person"), ["company company false", "task_by_owner task by owner true", "task_by_reviewer task by reviewer true", "passport_by_holder passport false"]);
});

test("what is printed is what was read, and a second time too", () => {
  for (const json of [
    { status: "open" },
    { amount: { gte: 10, lt: 20 } },
    { status: "open", _or: [{ amount: { gte: 10 } }, { "owner.name": { ilike: "an" } }] },
    { _not: { status: "open", amount: 1 } },
    { _not: { _or: [{ status: "open" }, { done: true }] } },
    { "owner.company.name": "Acme" },
    { owner: { name: "Ann", age: { gt: 30 } } },
    { tags: { some: { name: "red" } } },
    { tags: { some: { name: "red" }, none: { name: "blue" } } },
    { tags: { some: {} } },
    { tags: { every: { _or: [{ name: "red" }, { name: "blue" }] } } },
    { tags: { none: { _not: { name: "red" } } } },
    { "owner.task_by_owner": { some: { "reviewer.name": "Bo" } } },
    { "owner.passport_by_holder.number": "7" },
    { tags: { some: { name: "red" } }, _and: [{ tags: { some: { name: "blue" } } }] },
    { _or: [{ status: "open", done: true }, { title: { in: ["a", "b"] } }] },
    { title: { like: "$$x" } },
    { due: { is_null: true } },
    { created_at: { gte: "2026-01-01T00:00:00Z" } },
    { title: "" },
    { owner: { _or: [{ name: "a" }, { "company.name": "b" }, { _not: { age: 3, name: "c" } }] } },
    { owner: { name: "a", company: { _or: [{ name: "x" }, { name: "y" }] } } },
    { _or: [{ "owner.name": "a" }, { "reviewer.name": "a" }] },
  ]) {
    const printed = print(read(json));
    assert.deepEqual(printed, json);
    assert.deepEqual(print(read(printed)), printed);
  }
});

test("short and long forms are one", () => {
  const same = (one, other) => assert.deepEqual(print(read(one)), print(read(other)));
  same({ owner: { company: { name: "Acme" } } }, { "owner.company.name": { eq: "Acme" } });
  same({ owner: { _or: [{ name: "a" }, { age: 1 }] } }, { _or: [{ "owner.name": "a" }, { "owner.age": 1 }] });
  same({ owner: { _not: { name: "a" } } }, { _not: { "owner.name": "a" } });
  same({ _and: [{ status: "open" }, { _and: [{ done: true }] }] }, { status: "open", done: true });
  same({ title: null }, { title: { is_null: true } });
  same({ title: { neq: null } }, { title: { NotNull: true } });
  same({ amount: { ">=": 3 }, title: { Contains: "x" } }, { amount: { gte: 3 }, title: { ilike: "x" } });
  same({ _or: [{ status: "open" }] }, { status: "open" });
  same({ owner: {} }, {});
});

test("numbers keep all their digits, and values have the type of their column", () => {
  const text = '{"big":9007199254740993,"amount":{"gte":0.10000000000000000001}}';
  assert.equal(printJson(tree.printParts(read(text), task, of)), text);
  const [big] = read(text);
  assert.equal(big.value, "9007199254740993");
  const typed = tree.printParts([{ kind: "test", path: [], field: "done", operator: "eq", value: "true" }, { kind: "test", path: [], field: "title", operator: "eq", value: "12" }, { kind: "test", path: ["owner"], field: "age", operator: "in", value: ["1", "2"] }], task, of);
  assert.equal(printJson(typed), '{"done":true,"title":"12","owner.age":{"in":[1,2]}}');
});

test("two questions to related records stay apart, two about the same record do not", () => {
  const red = { kind: "related", path: ["tags"], quantifier: "some", inner: tree.groupOf([{ kind: "test", path: [], field: "name", operator: "eq", value: "red" }]) };
  const blue = { ...red, inner: tree.groupOf([{ kind: "test", path: [], field: "name", operator: "eq", value: "blue" }]) };
  assert.deepEqual(print([red, blue]), { tags: { some: { name: "red" } }, _and: [{ tags: { some: { name: "blue" } } }] });
  assert.deepEqual(print([red, { ...blue, quantifier: "none" }]), { tags: { some: { name: "red" }, none: { name: "blue" } } });
  const own = (operator, value) => ({ kind: "test", path: ["owner"], field: "age", operator, value });
  assert.deepEqual(print([own("gt", "1"), own("lt", "9")]), { "owner.age": { gt: 1, lt: 9 } });
  assert.deepEqual(print([own("gt", "1"), own("gt", "2")]), { "owner.age": { gt: 1 }, _and: [{ "owner.age": { gt: 2 } }] });
});

test("what the builder has no fields for stays as it is", () => {
  for (const json of [
    { _or: [] },
    { _not: {} },
    { _xor: [{ status: "open" }] },
    { title: { in: ["a", null] } },
    { due: { lt: "$now" } },
    { "gone.name": "x" },
    { gone: { name: { eq: "x" } } },
    { tags: {} },
    { tags: { most: { name: "x" } } },
    { amount: { near: 3 } },
    { amount: { is_null: false } },
    { owner: 3 },
  ]) {
    const parts = read({ status: "open", ...json });
    assert.deepEqual(parts.map(({ kind }) => kind), ["test", "raw"], JSON.stringify(json));
    assert.deepEqual(print(parts), { status: "open", ...json });
  }
  // Nothing is lost beside what is no list.
  const odd = print(read({ _and: 3, tags: { some: { name: "a" } } }));
  assert.deepEqual(odd, { tags: { some: { name: "a" } }, _and: [{ _and: 3 }] });
  assert.deepEqual(print(read(odd)), odd);
  // A field that is gone can be replaced, so it is a test; it is not complete.
  const [gone] = read({ gone: { gt: 3 } });
  assert.equal(gone.kind, "test");
  assert.equal(sendable.isComplete(gone, task, of), false);
  for (const text of ["", "{", "[1]", "3", "null"]) assert.equal(tree.parseWhere(text), undefined);
});

test("plain conditions of own fields stay plain", () => {
  assert.deepEqual(tree.filterOf(read({ status: "open", amount: { gte: 3 } }), task, of), {
    conditions: [
      { field: "status", operator: "eq", value: "open" },
      { field: "amount", operator: "gte", value: "3" },
    ],
    where: "",
  });
  assert.deepEqual(tree.filterOf(read({ status: "open", "owner.name": "Ann" }), task, of), { conditions: [], where: '{"status":"open","owner.name":"Ann"}' });
  const both = tree.partsOf({ conditions: [{ field: "status", operator: "eq", value: "open" }], where: '{"_or":[{"done":true},{"amount":1}]}' }, task, of);
  assert.deepEqual(tree.filterOf(both, task, of).where, '{"status":"open","_or":[{"done":true},{"amount":1}]}');
  assert.equal(tree.partsOf({ conditions: [], where: "{" }, task, of), undefined);
});

const VIEW = { conditions: [], where: "", search: "", sort: [] };
const plain = (operator, value, field = "title") => ({ field, operator, value });

test("the text null is sent as JSON, because a query parameter would mean null", () => {
  const sent = (conditions, where = "") => Object.fromEntries(list.filterParameters({ ...VIEW, conditions, where }, task));
  for (const [operator, value, where] of [
    ["eq", "null", '{"title":"null"}'],
    ["neq", "null", '{"title":{"neq":"null"}}'],
    ["lt", "null", '{"title":{"lt":"null"}}'],
    ["in", ["a", "null"], '{"title":{"in":["a","null"]}}'],
    ["nin", ["null"], '{"title":{"nin":["null"]}}'],
  ]) {
    assert.deepEqual(sent([plain(operator, value)]), { where }, `${operator} ${value}`);
    // The same condition as JSON text is the same filter.
    assert.deepEqual(tree.filterOf(read(where), task, of), { conditions: [plain(operator, value)], where: "" });
  }
  // These are read as they are written. An item with a comma or a quote has quotes around it.
  for (const [operator, value, text] of [
    ["like", "null", "null"],
    ["ilike", "null", "null"],
    ["eq", "Null", "Null"],
    ["eq", "a,b", "a,b"],
    ["in", ["null,b", 'say "null"', "", "c"], '"null,b","say ""null""","",c'],
    ["is_null", null, "true"],
  ])
    assert.deepEqual(sent([plain(operator, value)]), { [`title[${operator}]`]: text }, `${operator} ${value}`);
  // It joins the other conditions. Two conditions on one field stay two.
  const both = [plain("eq", "open", "status"), plain("eq", "null")];
  assert.deepEqual(sent(both, '{"amount":{"gt":1.50}}'), { "status[eq]": "open", where: '{"amount":{"gt":1.50},"title":"null"}' });
  assert.equal(sent(both, '{"title":"x"}').where, '{"title":"x","_and":[{"title":"null"}]}');
  assert.deepEqual(sent(both, "{"), { "status[eq]": "open", where: "{" });
  // A condition that has all levels keeps them.
  const deep = (levels) => (levels === 1 ? { done: true } : { _not: deep(levels - 1) });
  assert.equal(sendable.sizeOf(JSON.parse(sent(both, JSON.stringify(deep(8))).where), task, of).levels, 8);
  // A number has no such value, and the server says so.
  assert.deepEqual(sent([plain("eq", "null", "amount")]), { where: '{"amount":"null"}' });
  // Conditions that are not complete are not sent.
  assert.deepEqual(sent([plain("in", []), plain("eq", "null", "gone")]), {});
});

test("every surface copies the text null as a text", () => {
  const { request, graphql, mcp } = copies.copiesOf(task, of, { ...VIEW, conditions: [plain("eq", "null"), plain("in", ["null", "a"])] }, [{ id: "title" }], 1, 50);
  assert.deepEqual(JSON.parse(new URL(request.path, "http://localhost").searchParams.get("where")), { title: "null", _and: [{ title: { in: ["null", "a"] } }] });
  assert.ok(graphql.query.includes('filter: [{ field: "title", operator: eq, value: "null" }, { field: "title", operator: in, value: ["null", "a"] }]'), graphql.query);
  assert.deepEqual(mcp.arguments.filters, [plain("eq", "null"), plain("in", ["null", "a"])]);
});

test("the list of an object with a field called where takes its condition in a body", () => {
  const lookup = of("lookup");
  const body = (view, shape = lookup) => list.bodyOf(list.listParameters({ ...VIEW, ...view }, shape), shape);
  const where = '{"_or":[{"where":"there"},{"size":{"gt":9007199254740993}}]}';
  const whole = { conditions: [plain("ilike", "x"), plain("in", ["a", "b,c"])], where, search: "s", sort: [{ id: "title", descending: true }] };
  assert.equal(printJson(body(whole)), `{"search":"s","where":${where},"sort":"-title","filters":[{"field":"title","operator":"ilike","value":"x"},{"field":"title","operator":"in","value":"a,\\"b,c\\""}]}`);
  assert.deepEqual(body({ conditions: [plain("eq", "null", "where")] }), { where: { where: "null" } });
  // A query string takes everything else, and the conditions of other objects.
  assert.equal(body({ conditions: [plain("eq", "here", "where"), plain("ilike", "x")], search: "s" }), undefined);
  assert.equal(body({ where: '{"title":"a"}' }, task), undefined);
  const page = (...parameters) => list.bodyOf([["where", "{}"], ...parameters], lookup);
  assert.deepEqual(page(["cursor", ""], ["pageSize", "50"], ["count", "none"]), { where: {}, cursor: true, pageSize: 50, count: "none" });
  assert.deepEqual(page(["after", "x="], ["page", "3"], ["id[in]", "a,b"]), { where: {}, after: "x=", page: 3, filters: [{ field: "id", operator: "in", value: "a,b" }] });
  // The server refuses a text that is no condition. In a body, null would be none.
  for (const text of ["{", "null", "[]"]) assert.deepEqual(body({ where: text }), { where: text });
  assert.deepEqual([lookup, task].map((shape) => list.isOnlyForList({ ...VIEW, where }, shape)), [true, false]);
  const copied = (at) => copies.copiesOf(lookup, of, { ...VIEW, where }, [{ id: "title" }], at, 50);
  assert.equal(printJson(copied(2).request), `{"method":"POST","path":"/api/v1/data/lookup/query","body":{"where":${where},"page":2,"pageSize":50}}`);
  assert.ok(copied(1).graphql.query.includes('lookup(where: { _or: [{ where: { eq: "there" } }, { size: { gt: 9007199254740993 } }] }, pageSize: 50)'), copied(1).graphql.query);
});

const ids = (count) => Array.from({ length: count }, (_, index) => `01a2025c-0000-7000-8000-${String(index).padStart(12, "0")}`);

test("a long list and its count take their condition in a body, and an export does not", () => {
  const body = (view, shape = task) => list.bodyOf(list.listParameters({ ...VIEW, ...view }, shape), shape);
  assert.equal(body({ conditions: [plain("in", ids(411))] }), undefined);
  const long = { conditions: [plain("in", ids(1_000)), plain("gte", "3", "amount")], sort: [{ id: "title", descending: true }] };
  assert.deepEqual(body(long), { sort: "-title", filters: [{ field: "title", operator: "in", value: ids(1_000).join(",") }, { field: "amount", operator: "gte", value: "3" }] });
  assert.deepEqual(body(long, of("lookup")).filters, [{ field: "title", operator: "in", value: ids(1_000).join(",") }]);
  // The address encodes each of these characters as six bytes.
  const where = (count) => JSON.stringify({ _or: [{ title: "ж".repeat(count) }, { done: true }] });
  assert.equal(body({ where: where(4_900) }), undefined);
  assert.deepEqual(body({ where: where(5_100) }), { where: JSON.parse(where(5_100)) });
  // A count has the text of the query string.
  const text = list.queryText(list.filterParameters({ ...VIEW, where: where(5_100) }, task));
  assert.deepEqual(list.bodyOf([...new URLSearchParams(text)], task), { where: JSON.parse(where(5_100)) });
  assert.equal(list.isOnlyForList({ ...VIEW, ...long }, task), false);
  assert.equal(copies.copiesOf(task, of, { ...VIEW, ...long }, [{ id: "title" }], 1, 50).request.method, "POST");
});

test("the size of a filter is that of the address", () => {
  const fitsIn = (value, where = "") => tree.fitsAddress({ conditions: value === undefined ? [] : [plain("in", value)], where });
  assert.ok(fitsIn(ids(1_000)));
  assert.equal(fitsIn(ids(1_100)), false);
  assert.ok(fitsIn(["ж".repeat(7_900)]));
  assert.equal(fitsIn(["ж".repeat(8_000)]), false);
  assert.ok(fitsIn(undefined, `{"title":"${"x".repeat(47_000)}"}`));
  assert.equal(fitsIn(undefined, `{"title":"${"x".repeat(48_000)}"}`), false);
  // Both parameters are in one address.
  assert.ok(fitsIn(ids(600), `{"title":"${"x".repeat(18_000)}"}`));
  assert.equal(fitsIn(ids(600), `{"title":"${"x".repeat(28_000)}"}`), false);
});

test("a filter of the address that cannot be read is not left out", () => {
  const saved = views.readViews({});
  const unread = (raw) => views.viewOf(readRecordsSearch(raw), saved).unread;
  const [read, long] = [1_000, 1_100].map((count) => JSON.stringify([["title", "in", ids(count)]]));
  assert.equal(unread({ filter: read }), undefined);
  assert.equal(views.viewOf(readRecordsSearch({ filter: read }), saved).view.conditions[0].value.length, 1_000);
  assert.equal(unread({ filter: long }), "long");
  // The router writes what was read back into the address.
  assert.equal(readRecordsSearch({ filter: long }).filter, long);
  assert.equal(unread({ where: `{"title":"${"x".repeat(48_000)}"}` }), "long");
  assert.equal(unread({ group: "status", having: JSON.stringify([["status", "in", ids(1_100)]]) }), "long");
  for (const filter of ["[[", "{}", null, 5, true, ["[]", "[]"], '[["title"]]', '[["title","near","x"]]', '[["title","eq"]]', '[["title","eq",5]]', '[["title","in",["a",1]]]', '[["title","in","a"]]', '[["title","nin"]]', '[["title","eq",["a"]]]', '[["title","eq","x"],3]']) {
    assert.equal(unread({ filter }), "damaged", String(filter));
    assert.equal(unread({ group: "status", having: filter }), "damaged", String(filter));
    // Without a field to group by, there is no grouping.
    for (const group of [undefined, "-"]) assert.equal(unread({ group, having: filter }), undefined);
  }
  for (const filter of [undefined, "", "[]", '[["title","is_null"]]', '[["title","in",["a","b"]],["gone","eq",""]]']) assert.equal(unread({ filter }), undefined, filter);
  // The server says what is wrong with these.
  for (const where of [null, 5, "{", '{"title":{"near":"x"}}', ["{}", "{}"]]) {
    const search = readRecordsSearch({ where });
    assert.equal(views.viewOf(search, saved).unread, undefined);
    assert.deepEqual(list.filterParameters({ ...VIEW, where: views.viewOf(search, saved).view.where }, task), [["where", String(where)]]);
  }
});

test("a search of any length is read, and the server refuses one that is too long", () => {
  const saved = views.readViews({});
  const q = "x".repeat(5_000);
  const search = readRecordsSearch({ q });
  assert.equal(search.q, q);
  const { view, unread } = views.viewOf(search, saved);
  assert.equal(unread, undefined);
  assert.deepEqual(list.filterParameters(view, task), [["search", q]]);
  assert.equal(readRecordsSearch({ q: 12 }).q, "12");
  assert.equal(readRecordsSearch({ q: "" }).q, undefined);
});

test("a saved view with conditions that cannot be read is not shown as all records", () => {
  const stored = (view) => ({ views: [{ name: "mine", ...view }] });
  const at = (view, search = {}) => views.viewOf({ view: "mine", ...search }, views.readViews(stored(view)));
  const groups = { group: "status", having: "[[" };
  for (const view of [{ filter: "[[" }, { filter: [["status", "near", "x"]] }, { filter: [["status", "in", "open"]] }, { filter: [["status", "eq", "open"], 3] }, { filter: {} }, { where: { status: "open" } }, { where: 5, filter: [["status", "eq", "open"]] }, { groups }, { groups: { group: "status", having: [] } }]) {
    assert.equal(at(view).unread, "saved", JSON.stringify(view));
    // They are stored again as they are, also if the person changes another part of the view.
    const [printed] = views.printViews(views.readViews(stored({ ...view, size: 25 }))).views;
    assert.deepEqual(printed, { name: "mine", size: 25, ...view });
    // The button of the message opens the view without them. Later changes keep it so.
    const saved = views.readViews(stored(view));
    const left = views.withoutFilter({ view: "mine" }, saved);
    assert.equal(views.viewOf(left, saved).unread, undefined);
    const sorted = views.changedSearch(left, { sort: [{ id: "title", descending: false }] }, saved);
    const shown = views.viewOf(sorted, saved);
    assert.deepEqual([shown.unread, shown.view.conditions, shown.view.where, shown.view.unread], [undefined, [], "", undefined]);
    const mended = views.readViews(views.printViews({ ...saved, views: [{ ...shown.view, name: "mine" }] }));
    assert.equal(views.viewOf({ view: "mine" }, mended).unread, undefined);
  }
  for (const view of [{}, { filter: null, where: null, q: null }, { filter: [["status", "eq", "open"], ["gone", "eq", ""]], where: "{", groups: { group: "status", having: '[["count","gt","1"]]' } }, { groups: { group: 7, having: "[[" } }]) assert.equal(at(view).unread, undefined, JSON.stringify(view));
  // The address replaces the filter, or the grouping.
  assert.equal(at({ filter: "[[" }, { filter: '[["status","eq","open"]]' }).unread, undefined);
  assert.equal(at({ filter: "[[" }, { group: "status" }).unread, "saved");
  assert.equal(at({ groups }, { group: "-" }).unread, undefined);
  // A search is searched for, whatever it is.
  assert.equal(at({ q: 5 }).view.search, "5");
});

test("one condition after the other can be taken away from a large saved view", () => {
  const conditions = [plain("in", ids(600)), plain("nin", ids(600)), plain("eq", "open", "status")];
  const saved = views.readViews({ views: [{ name: "large", filter: conditions.map(({ field, operator, value }) => [field, operator, value]) }] });
  const changed = (now, part) => views.changedSearch({ view: "large", ...now }, part, saved);
  const fewer = changed({}, { conditions: conditions.slice(0, 2) });
  assert.ok(views.hasRoom(fewer, saved));
  assert.equal(views.viewOf(fewer, saved).unread, undefined);
  assert.deepEqual(views.viewOf(fewer, saved).view.conditions, conditions.slice(0, 2));
  // A search, an order and a grouping beside it are as good.
  const beside = changed(fewer, { search: "moon", sort: [{ id: "title", descending: true }] });
  assert.ok(views.hasRoom(beside, saved));
  assert.equal(views.viewOf(beside, saved).unread, undefined);
  assert.ok(views.hasRoom(changed(beside, { conditions: conditions.slice(0, 1) }), saved));
  assert.equal(views.hasRoom(changed({}, { conditions: [...conditions, plain("eq", "x")] }), saved), false);
  // Without the view, the address has no room for it.
  assert.equal(views.hasRoom({ ...fewer, view: "-" }, saved), false);
});

test("one limit applies to the filter, the conditions on groups and the search together", () => {
  const saved = views.readViews({});
  const third = "x".repeat(17_000);
  const all = { filter: JSON.stringify([["title", "eq", third]]), where: `{"title":"${third}"}`, group: "status", having: JSON.stringify([["status", "eq", third]]), q: third };
  const unread = (...names) => views.viewOf(readRecordsSearch({ ...all, ...Object.fromEntries(names.map((name) => [name, undefined])) }), saved).unread;
  assert.equal(unread(), "long");
  for (const name of ["filter", "where", "having", "q"]) assert.equal(unread(name), "long", name);
  for (const names of [["filter", "where"], ["having", "q"], ["where", "q"]]) assert.equal(unread(...names), undefined, names.join());
  const without = (search) => views.withoutFilter(search, saved);
  assert.deepEqual(JSON.parse(JSON.stringify(without(all))), { group: "status", q: third });
  assert.equal(without({ q: "x".repeat(50_000) }).q, undefined);
});

test("nothing is done with all records if a condition is not sent", () => {
  const withheld = (...conditions) => list.withheld({ ...VIEW, conditions }, task);
  assert.equal(withheld(), undefined);
  assert.equal(withheld(plain("eq", ""), plain("in", ["a"]), plain("is_null", null)), undefined);
  for (const broken of [plain("gt", "100", "salary"), plain("in", [], "status"), plain("nin", []), plain("eq", "", "amount"), plain("ilike", "")]) {
    assert.equal(withheld(broken), list.NOT_SENT, JSON.stringify(broken));
    assert.equal(withheld(plain("eq", "a"), broken), list.NOT_SENT, JSON.stringify(broken));
  }
  const where = '{"where":"there"}';
  assert.deepEqual([of("lookup"), task].map((shape) => list.withheld({ ...VIEW, where }, shape)), [list.ONLY_FOR_LIST, undefined]);
});

test("a view as a role reads by a body, and changes nothing", async () => {
  const asked = (method, path) => viewing.asViewed(new Request(`http://localhost${path}`, { method, ...(method === "GET" ? {} : { body: '{"a":1}' }) }));
  viewing.viewAs.begin({ id: "reader", name: "Reader" });
  try {
    for (const [method, path] of [["GET", "/api/v1/data/task"], ["POST", "/api/v1/data/task/query"]]) assert.equal(asked(method, path).headers.get("x-svc-view-as"), "reader");
    assert.equal(await asked("POST", "/api/v1/data/task/query").text(), '{"a":1}');
    for (const [method, path] of [["POST", "/api/v1/data/task"], ["POST", "/api/v1/data/task/x/links/query"], ["PATCH", "/api/v1/data/task/query"]]) assert.throws(() => asked(method, path), /Leave that view/);
  } finally {
    viewing.viewAs.end();
  }
});

test("a filter is said in words", () => {
  assert.equal(said({ title: "null" }), 'title is "null"');
  assert.equal(said({ title: null }), "title is null");
  assert.equal(said({ title: { in: ["null", "b"] } }), 'title is any of "null", b');
  assert.equal(said({ status: "open", _or: [{ amount: { gte: 10 } }, { "owner.name": { ilike: "an" } }] }), "status is open and (amount ≥ 10 or owner's name contains an)");
  assert.equal(said({ _or: [{ amount: { gte: 10 } }, { "owner.company.name": "Acme" }] }), "amount ≥ 10 or owner's company's name is Acme");
  assert.equal(said({ _not: { status: "open" } }), "not (status is open)");
  assert.equal(said({ status: "open", tags: { none: { name: "red" } } }), "status is open and none of tags match (name is red)");
  assert.equal(said({ comment_by_task: { every: { _or: [{ text: "a" }, { text: "b" }] } } }), "all of comment match (text is a or text is b)");
  assert.equal(said({ tags: { some: { _not: { name: "red", created_by: "x" } } } }), "some of tags match (not (name is red and created_by is x))");
  assert.equal(said({ "owner.task_by_owner": { some: {} }, tags: { none: {} } }), "there are owner's task by owner and there are no tags");
  assert.equal(said({ title: { in: ["", "b"] }, due: { is_null: true } }), 'title is any of "", b and due is null');
  assert.equal(said({ status: "open", _or: [] }), 'status is open and {"_or":[]}');
});

test("a long value is cut off in a filter, and shown whole where somebody decides about rights", () => {
  const long = ["x".repeat(70), "secret"];
  const parts = read({ tags: { some: { name: { in: long } } } });
  const telling = { shape: task, of, titleOf: () => undefined };
  assert.equal(words.textOf(words.wordsOfAll(parts, "and", telling)), `some of tags match (name is any of ${"x".repeat(60)}…)`);
  assert.equal(words.textOf(words.wordsOfAll(parts, "and", { ...telling, isWhole: true })), `some of tags match (name is any of ${long.join(", ")})`);
});

test("what is not filled in is not complete", () => {
  const complete = (part) => sendable.isComplete(part, task, of);
  const [open, related, group] = read({ status: "open", tags: { some: {} }, _or: [{ done: true }, { amount: 1 }] });
  assert.ok(complete(open) && complete(related) && complete(group));
  assert.equal(complete(tree.emptyTest()), false);
  assert.equal(complete({ ...related, quantifier: "every" }), false);
  assert.equal(complete({ ...related, inner: tree.groupOf([tree.emptyTest()]) }), false);
  assert.equal(complete({ ...open, value: "" }), false);
  assert.equal(complete(tree.groupOf([])), false);
  assert.deepEqual(sendable.pruned([tree.emptyTest(), tree.groupOf([tree.emptyTest()]), open]), [open]);
  const begun = { ...related, inner: tree.groupOf([tree.emptyTest()], "or", true) };
  assert.deepEqual(print(sendable.pruned([begun])), { tags: { some: {} } });
});

test("sizes are counted as the server counts", () => {
  const size = (json) => sendable.sizeOf(json, task, of);
  assert.deepEqual(size({ status: "open" }), { leaves: 1, levels: 1, steps: 0, depth: 0, parts: 0 });
  assert.deepEqual(size({ amount: { gte: 1, lt: 2 } }), { leaves: 2, levels: 2, steps: 0, depth: 0, parts: 0 });
  assert.deepEqual(size({ _or: [{ amount: { gte: 1 } }, { done: true }] }), { leaves: 2, levels: 3, steps: 0, depth: 0, parts: 2 });
  // Each dot counts as the object that it stands for.
  for (const json of [{ "owner.company.name": { ilike: "a" } }, { owner: { company: { name: { ilike: "a" } } } }])
    assert.deepEqual(size(json), { leaves: 1, levels: 4, steps: 2, depth: 2, parts: 0 });
  assert.deepEqual(size({ tags: { some: { name: { ilike: "a" } } } }), { leaves: 1, levels: 4, steps: 1, depth: 1, parts: 0 });
});

test("the bounds of the server are known", () => {
  const deep = (levels) => (levels === 1 ? { done: true } : { _not: deep(levels - 1) });
  assert.ok(fits(Object.assign({ amount: { gt: 1 } }, deep(7))));
  // Each `_not` of one condition is a group of the builder: seven of them around an operator are nine levels.
  assert.equal(fits({ _not: { _or: [{ _not: { _or: [{ _not: { _or: [{ amount: { gt: 1 } }, { done: true }] } }, { done: true }] } }, { done: true }] } }), true);
  assert.equal(fits({ _or: [{ done: true }, { _not: { _or: [{ _not: { _or: [{ _not: { _or: [{ amount: { gt: 1 } }, { done: true }] } }, { done: true }] } }, { done: true }] } }] }), false);
  // A plain value needs no object of its own, so the eighth level can hold it, and the levels above have room still.
  const eight = { _or: [{ done: true }, { title: "x", _or: [{ amount: 1 }, { comment_by_task: { some: { _or: [{ text: "a" }, { "task.owner.name": "b" }] } } }] }] };
  assert.equal(sendable.sizeOf(eight, task, of).levels, 8);
  assert.ok(fits(eight));
  assert.ok(fits({ _or: [...eight._or, { amount: { gt: 1 } }] }));
  const leaves = (count) => ({ _or: Array.from({ length: count }, (_, index) => ({ amount: index })) });
  assert.ok(fits(leaves(100)));
  assert.equal(fits(leaves(101)), false);
  const steps = (count) => ({ _or: Array.from({ length: count }, (_, index) => ({ tags: { some: { name: String(index) } } })) });
  assert.ok(fits(steps(10)));
  assert.equal(fits(steps(11)), false);
  // What is asked of one related record is one step, however much it is.
  const once = { owner: { _or: Array.from({ length: 20 }, (_, age) => ({ age })) } };
  assert.deepEqual(print(read(once)), once);
  assert.ok(fits(once));
  assert.ok(fits({ "owner.task_by_owner": { some: { "reviewer.name": "a" } } }));
  assert.equal(fits({ "owner.task_by_owner": { some: { "reviewer.company.name": "a" } } }), false);
});

test("GraphQL has neither dots nor short forms", () => {
  assert.deepEqual(print(read({ status: "open", "owner.name": "Ann", tags: { some: { name: "red" } } }), { isExplicit: true }), { status: { eq: "open" }, owner: { name: { eq: "Ann" } }, tags: { some: { name: { eq: "red" } } } });
  // A variable makes a part that the builder cannot show. It also needs a name that GraphQL knows.
  assert.deepEqual(print(read({ title: { contains: "$user.name" }, amount: { ">": "$now" } }), { isExplicit: true }), { title: { ilike: "$user.name" }, amount: { gt: "$now" } });
});

test("variables are values of tests where they are asked for, and parts that are not understood elsewhere", () => {
  const withVariables = (json) => tree.readWhere(json, task, of, { takesVariables: true });
  for (const json of [
    { title: "$user.id" },
    { title: { neq: "$user.email" } },
    { title: { in: "$user.roles" } },
    { due: { lt: "$now" }, status: "open" },
    { _or: [{ "owner.name": "$user.email" }, { created_by: "$user.id" }] },
    { comment_by_task: { some: { created_by: "$user.id" } } },
    { title: "$$user.id" },
    // A list where a value is due, another name, and a variable among values: what the builder cannot show stays as it is.
    { title: { eq: "$user.roles" } },
    { title: { in: "$user.id" } },
    { title: { eq: "$other" } },
    { title: { in: ["$user.id", "a"] } },
  ])
    assert.deepEqual(print(withVariables(json)), json, JSON.stringify(json));
  const kinds = (json) => withVariables(json).map(({ kind, variable }) => `${kind} ${variable}`);
  assert.deepEqual(kinds({ title: "$user.id", due: { lt: "$now" }, status: { in: "$user.roles" } }), ["test $user.id", "test $now", "test $user.roles"]);
  assert.deepEqual([...kinds({ title: "$user.roles" }), ...kinds({ title: "$$user.id" }), ...kinds({ title: { in: ["$user.id"] } })], ["raw undefined", "test undefined", "raw undefined"]);
  assert.deepEqual(read({ title: "$user.id" }).map(({ kind }) => kind), ["raw"]);
  // In a sentence, a variable has words.
  const inWords = (json) => words.textOf(words.wordsOfAll(withVariables(json), "and", { shape: task, of, titleOf: () => undefined }));
  assert.equal(inWords({ title: "$user.id", due: { lt: "$now" } }), "title is the caller's id and due is before the present moment");
  assert.equal(inWords({ title: { in: "$user.roles" } }), "title is any of the caller's roles");
  // A value with the same text has quotes.
  assert.equal(inWords({ due: { lt: "$now" }, title: "the present moment" }), 'due is before the present moment and title is "the present moment"');
  assert.equal(inWords({ title: { in: ["today", "todays", "the caller's roles"] } }), `title is any of "today", todays, "the caller's roles"`);
  assert.ok(withVariables({ title: "$user.id", status: { in: "$user.roles" } }).every((part) => sendable.isComplete(part, task, of)));
  // No plain condition has a variable.
  assert.equal(tree.filterOf(withVariables({ title: "$user.id" }), task, of).where, '{"title":"$user.id"}');
});

test("a condition is copied with all its digits", () => {
  const where = '{"_or":[{"big":9007199254740993},{"title":"x"}]}';
  const { request, graphql, mcp } = copies.copiesOf(task, of, { conditions: [], where, search: "", sort: [] }, [{ id: "title" }], 1, 50);
  assert.equal(new URL(request.path, "http://localhost").searchParams.get("where"), where);
  assert.equal(graphql.query, '{\n  task(where: { _or: [{ big: { eq: 9007199254740993 } }, { title: { eq: "x" } }] }, pageSize: 50) {\n    data { title }\n    pagination { totalCount hasNextPage }\n  }\n}');
  assert.equal(printJson(mcp.arguments), `{"object_name":"task","where":${where},"page_size":50}`);
});

test("a number that a literal of GraphQL cannot keep is copied as a variable", () => {
  const copied = (view) => copies.copiesOf(task, of, { conditions: [], where: "", search: "", sort: [], ...view }, [{ id: "title" }], 1, 50).graphql;
  const where = copied({ where: '{"_or":[{"amount":123456789012.123456},{"title":"x"}]}' });
  assert.match(where.query, /^query\(\$where: Task_Where\) \{\n {2}task\(where: \$where, pageSize: 50\)/);
  assert.equal(printJson(where.variables), '{"where":{"_or":[{"amount":{"eq":123456789012.123456}},{"title":{"eq":"x"}}]}}');
  const filter = copied({ conditions: [{ field: "amount", operator: "gt", value: "0.12345678901234567890" }] });
  assert.match(filter.query, /^query\(\$filter: \[FilterInput!\]\) \{\n {2}task\(filter: \$filter, pageSize: 50\)/);
  assert.equal(printJson(filter.variables), '{"filter":[{"field":"amount","operator":"gt","value":0.12345678901234567890}]}');
  assert.equal(copied({ where: '{"amount":1.5}' }).variables, undefined);
});

test("a condition of a grant has tighter bounds", () => {
  const within = (json) => sendable.fits(read(json), task, of, sendable.OF_GRANT);
  const tests = (count) => ({ _or: Array.from({ length: count }, (_, index) => ({ title: String(index) })) });
  assert.deepEqual([within(tests(30)), within(tests(31)), fits(tests(31))], [true, false, true]);
  assert.deepEqual([within({ "owner.company.name": "a" }), within({ "owner.company.name": "a", "reviewer.name": "b" })], [true, false]);
});

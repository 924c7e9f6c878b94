// The grouped view of records: its address, its request, the periods of the reader's clock, the filter of a group, and the charts.
import assert from "node:assert/strict";
import { test } from "node:test";

// The clock of the reader is that of Berlin, unless a test says otherwise.
process.env.TZ = "Europe/Berlin";
const { bundled } = await import("./bundled.mjs");
const request = await bundled("screens/records/groups/request.ts");
const periods = await bundled("screens/records/groups/periods.ts");
const narrow = await bundled("screens/records/groups/narrow.ts");
const chart = await bundled("screens/records/groups/chart.ts");
const labels = await bundled("screens/records/groups/labels.ts");
const words = await bundled("screens/records/filters/words.ts");
const grouping = await bundled("screens/records/views/grouping.ts");
const views = await bundled("screens/records/views/view.ts");
const copies = await bundled("screens/records/copies.ts");
const ticks = await bundled("components/ticks.ts");
const { tableShape } = await bundled("screens/records/columns.ts");
const { shapeOf } = await bundled("api/record-shape.ts");
const { parseJson } = await bundled("api/json.ts");
const { filterParameters, isOnlyForList, queryText } = await bundled("screens/records/list-query.ts");

const schema = {
  objects: [
    {
      name: "sale",
      label: "Sales",
      fields: [
        { name: "item", type: "text" },
        { name: "status", type: "enum", options: ["open", "paid"], label: "State" },
        { name: "count", type: "integer" },
        { name: "big", type: "big_integer" },
        { name: "amount", type: "currency", scale: 3 },
        { name: "day", type: "date" },
        { name: "at", type: "datetime" },
        { name: "tags", type: "multi_enum", options: ["a"] },
        { name: "note", type: "json" },
      ],
    },
    { name: "shop", fields: [{ name: "name", type: "text" }] },
    { name: "stop", fields: [{ name: "tz", type: "text" }, { name: "having", type: "integer" }, { name: "where", type: "text" }, { name: "at", type: "datetime" }] },
  ],
  relationships: [{ name: "shop", kind: "many_to_one", source: "sale", target: "shop" }],
};
const shapes = new Map(schema.objects.map(({ name }) => [name, tableShape(shapeOf(schema, name))]));
const of = (name) => shapes.get(name);
const sale = of("sale");
const read = (search) => grouping.readGrouping(search);
const given = (search) => Object.fromEntries(Object.entries(search).filter(([, value]) => value !== undefined));
const NONE = { conditions: [], where: "" };
const VIEW = { conditions: [], where: "", search: "", sort: [] };
const ZONE = "Europe/Berlin";
const fields = (by, shape = sale, zone = ZONE) => by.map((text) => request.fieldOf(text, shape, zone ?? undefined));
const asked = (search, view = VIEW, shape = sale) => Object.fromEntries(request.groupParameters(read(search), view, shape, ZONE));

test("a grouping is read from the address, and printed without its defaults", () => {
  assert.equal(read({}), null);
  assert.equal(read({ group: " , " }), null);
  assert.deepEqual(read({ group: "status, at:month,day" }), { by: ["status", "at:month"], functions: ["count"], sort: [], having: [], chart: undefined });
  assert.deepEqual(grouping.printGrouping(read({ group: "status", fn: "count" })), { group: "status", fn: undefined, groupSort: undefined, having: undefined, chart: undefined });
  const all = { group: "at:month,status", fn: "count,sum:amount", groupSort: "-sum_amount,at:month", having: '[["count","gte","10"]]', chart: "bars" };
  assert.deepEqual(grouping.printGrouping(read(all)), all);
});

test("the first grouping is by the field with few values, or by month", () => {
  assert.deepEqual(grouping.firstGrouping(sale).by, ["status"]);
  assert.deepEqual(grouping.firstGrouping(of("stop")).by, ["at:month"]);
  assert.deepEqual(grouping.firstGrouping(of("shop")).by, ["created_at:month"]);
});

test("a saved view keeps its grouping, and the address changes or removes it", () => {
  const saved = views.readViews(views.printViews({ ...views.readViews({}), views: [{ ...views.viewOf({}, views.readViews({})).view, name: "months", groups: read({ group: "at:month", fn: "sum:amount" }) }] }));
  const shown = (search) => views.viewOf({ view: "months", ...search }, saved);
  assert.deepEqual(shown({}).view.groups, read({ group: "at:month", fn: "sum:amount" }));
  assert.equal(shown({ group: "-" }).view.groups, null);
  // A grouping in the address replaces all parts of the view's grouping.
  assert.deepEqual(shown({ group: "status" }).view.groups, read({ group: "status" }));
  const { view, base } = shown({});
  const back = (groups) => {
    const { group, fn, groupSort, having, chart } = views.searchOf({ ...view, groups }, base, saved.plain);
    return [group, fn, groupSort, having, chart];
  };
  assert.deepEqual(back(view.groups), [undefined, undefined, undefined, undefined, undefined]);
  assert.deepEqual(back(null), ["-", undefined, undefined, undefined, undefined]);
  assert.deepEqual(back({ ...view.groups, chart: "bars" }), ["at:month", "sum:amount", undefined, undefined, "bars"]);
  // Other programs write preferences too.
  assert.equal(views.readViews({ views: [{ name: "x", groups: { group: 7 } }] }).views[0].groups, null);
});

test("changes of the view that follow each other closely do not undo each other", () => {
  const saved = views.readViews({ views: [{ name: "months", q: "old", groups: { group: "at:month" } }] });
  // The second change comes before the page has rendered the first one.
  const searched = views.changedSearch({ page: 3, open: "x" }, { search: "moon" }, saved);
  assert.deepEqual(given(searched), { open: "x", q: "moon" });
  assert.deepEqual(given(views.changedSearch(searched, { groups: read({ group: "status" }) }, saved)), { open: "x", q: "moon", group: "status" });
  const left = views.changedSearch({ view: "months", q: "new" }, { conditions: [{ field: "status", operator: "eq", value: "open" }], where: "", groups: null }, saved);
  assert.deepEqual(given(left), { view: "months", q: "new", filter: '[["status","eq","open"]]', group: "-" });
});

test("the request has the functions, the zone where a period needs it, and the filter of the view", () => {
  assert.deepEqual(asked({ group: "status" }), { fn: "count", groupBy: "status" });
  assert.equal(asked({ group: "day:month" }).tz, undefined);
  assert.equal(asked({ group: "at" }).tz, undefined);
  const view = { ...VIEW, search: "moon", conditions: [{ field: "status", operator: "eq", value: "open" }], where: '{"amount":{"gt":1}}' };
  assert.deepEqual(asked({ group: "at:month,status", fn: "count,sum:amount", groupSort: "-sum_amount,gone" }, view), {
    fn: "count,sum:amount",
    groupBy: "at:month,status",
    tz: "Europe/Berlin",
    sort: "-sum_amount",
    search: "moon",
    "status[eq]": "open",
    where: '{"amount":{"gt":1}}',
  });
  // An offset in the name of a zone is no space.
  assert.equal(queryText(request.groupParameters(read({ group: "at:day" }), VIEW, sale, "Etc/GMT+5")), "fn=count&groupBy=at:day&tz=Etc%2FGMT%2B5");
});

test("conditions on groups are typed by the result, and keys that are gone are left out", () => {
  const having = (search) => asked({ group: "status,at:month", fn: "count,sum:big,avg:amount", ...search }).having;
  assert.equal(having({ having: '[["sum_big","gte","9007199254740993"]]' }), '{"sum_big":{"gte":9007199254740993}}');
  assert.equal(having({ having: '[["count","gte","2"],["count","lt","5"],["at:month","gte","2026-01-01T00:00:00Z"],["status","neq","open"]]' }), '{"count":{"gte":2,"lt":5},"at:month":{"gte":"2026-01-01T00:00:00Z"},"status":{"neq":"open"}}');
  assert.equal(having({ having: '[["max_big","gt","1"],["count","gt",""]]' }), undefined);
  const kept = request.pruned(read({ group: "status", fn: "count", groupSort: "-sum_big,count", having: '[["sum_big","gt","1"],["count","gt","1"]]' }), sale);
  assert.deepEqual([kept.sort.map(({ id }) => id), kept.having.map(({ field }) => field)], [["count"], ["count"]]);
  // A field and a function can share a key, which then leads to neither.
  assert.deepEqual([...request.resultShape(read({ group: "count,status", fn: "count,max:count" }), sale).byId.keys()], ["status", "max_count"]);
});

test("an object with fields of these names keeps them as filters", () => {
  assert.deepEqual(asked({ group: "at:day", having: '[["count","gt","1"]]' }, { ...VIEW, conditions: [{ field: "where", operator: "eq", value: "x" }] }, of("stop")), { fn: "count", groupBy: "at:day", "where[eq]": "x" });
  // If `where` is a field, no aggregate takes a condition, so the screen shows no groups.
  assert.deepEqual([sale, of("stop")].map((shape) => isOnlyForList({ ...VIEW, where: '{"_not":{"at":"2026-01-01"}}' }, shape)), [false, true]);
  assert.deepEqual([...fields(["at:day"], of("stop")), ...fields(["at:day", "day:day"])].map(({ clock }) => clock), ["utc", "reader", "utc"]);
});

test("without a zone that the server knows, periods are in UTC", () => {
  const refused = (error, shape = sale) => request.isZoneUnknown({ status: 400, field: "tz", ...error }, shape);
  assert.deepEqual([refused({}), refused({ status: 503 }), refused({ field: "at" }), refused({ field: undefined }), refused({}, of("stop"))], [true, false, false, false, false]);
  assert.deepEqual(Object.fromEntries(request.groupParameters(read({ group: "at:month" }), VIEW, sale, undefined)), { fn: "count", groupBy: "at:month" });
  const [month] = fields(["at:month"], sale, null);
  assert.equal(month.clock, "utc");
  // In Berlin, this month begins earlier.
  const group = { "at:month": "2026-03-01T00:00:00.000Z" };
  assert.deepEqual(narrow.narrowed([month], group, [], NONE, sale, of).conditions.map(({ value }) => value), ["2026-03-01T00:00:00.000Z", "2026-04-01T00:00:00.000Z"]);
  assert.equal(labels.valueLabel("2026-03-01T00:00:00.000Z", month, () => undefined), periods.periodLabel("2026-03-01", "month", "utc"));
});

test("functions are offered for numbers, and have the names of the result", () => {
  const offered = request.functionsOf(sale);
  assert.equal(offered.length, 1 + 4 * 3);
  assert.deepEqual(offered.slice(0, 2).map(({ text, key, label }) => [text, key, label]), [["count", "count", "count"], ["sum:count", "sum_count", "sum of count"]]);
  assert.equal(request.functionOf("sum:amount", sale).scale, 3);
  assert.equal(request.functionOf("avg:amount", sale).type, "float");
  assert.equal(request.functionOf("count:amount", sale).scale, undefined);
  assert.equal(request.functionOf("sum:gone", sale).label, "sum of gone");
  assert.equal(request.fieldOf("status", sale).label, "State");
  assert.equal(request.fieldOf("at:month", sale).label, "at by month");
  assert.deepEqual(periods.periodsOf({ type: "date" }), ["year", "quarter", "month", "week", "day"]);
});

test("an amount has the decimal places of its field, as a group and as a result", () => {
  const [amount, count] = fields(["amount", "count"]);
  const label = (text, field) => labels.valueLabel(parseJson(text), field, () => undefined);
  assert.deepEqual(["6578", "6671.6", "-0.125", "9007199254740993.5"].map((text) => label(text, amount)), ["6578.000", "6671.600", "-0.125", "9007199254740993.500"]);
  assert.equal(label("6578", count), "6578");
  assert.equal(label("null", amount), labels.EMPTY);
  assert.equal(labels.resultText(6671.6, request.functionOf("max:amount", sale)), "6671.600");
});

test("an error of the server belongs to the input that it is about", () => {
  const from = read({ group: "status,at:decade", fn: "count,sum:item" });
  const place = (message, field, { code = "invalid_request", status = 400, view = VIEW } = {}) => request.placeOf({ status, code, message, field }, from, view, sale);
  assert.deepEqual(place("A period is `year`, …", "at"), { input: "field", index: 1 });
  assert.deepEqual(place("There is no field.", "status", { code: "unknown_field" }), { input: "field", index: 0 });
  assert.deepEqual(place("`sum` is for numeric fields", "item"), { input: "functions" });
  assert.deepEqual(place("The functions name `count` twice.", "count"), { input: "functions" });
  assert.deepEqual(place("`having.count`: `count` takes a number.", "count", { code: "invalid_value" }), { input: "having" });
  assert.equal(place("`where.item`: …", "item"), undefined);
  assert.equal(place("Something", undefined), undefined);
  assert.equal(place("Busy", "tz", { status: 503 }), undefined);
  // The filter of the view has this field too.
  assert.equal(place("`item` takes text.", "item", { code: "invalid_value", view: { ...VIEW, conditions: [{ field: "item", operator: "eq", value: "1" }] } }), undefined);
  // A field called `tz` is no time zone.
  assert.equal(request.placeOf({ status: 400, code: "invalid_value", message: "`tz` takes text.", field: "tz" }, { ...from, by: ["tz"] }, { ...VIEW, conditions: [{ field: "tz", operator: "eq", value: "1" }] }, of("stop")), undefined);
});

const ends = (begin, period, clock = "reader") => new Date(periods.computedEnd(Date.parse(begin), period, clock)).toISOString();

test("a period ends where the next one begins by the clock of the reader", () => {
  assert.equal(ends("2026-10-31T23:00:00.000Z", "month"), "2026-11-30T23:00:00.000Z");
  assert.equal(ends("2026-02-28T23:00:00.000Z", "month"), "2026-03-31T22:00:00.000Z");
  assert.equal(ends("2025-12-31T23:00:00.000Z", "year"), "2026-12-31T23:00:00.000Z");
  assert.equal(ends("2025-12-31T23:00:00.000Z", "quarter"), "2026-03-31T22:00:00.000Z");
  assert.equal(ends("2026-03-22T23:00:00.000Z", "week"), "2026-03-29T22:00:00.000Z");
  // The days on which the clock changes have 25 and 23 hours.
  assert.equal(ends("2026-10-24T22:00:00.000Z", "day"), "2026-10-25T23:00:00.000Z");
  assert.equal(ends("2026-03-28T23:00:00.000Z", "day"), "2026-03-29T22:00:00.000Z");
  // The hour from 2 to 3 occurs twice.
  assert.equal(ends("2026-10-25T00:00:00.000Z", "hour"), "2026-10-25T01:00:00.000Z");
  assert.equal(ends("2026-10-25T01:00:00.000Z", "hour"), "2026-10-25T02:00:00.000Z");
  assert.equal(ends("2026-01-31", "day", "utc"), "2026-02-01T00:00:00.000Z");
  assert.equal(ends("2024-01-01", "quarter", "utc"), "2024-04-01T00:00:00.000Z");
  // Local mean time had seconds.
  assert.equal(ends("0000-12-31T23:06:32.000Z", "year"), "0001-12-31T23:06:32.000Z");
});

test("clocks that change within an hour or at midnight are followed", () => {
  try {
    process.env.TZ = "Australia/Lord_Howe";
    assert.equal(ends("2026-04-04T14:00:00.000Z", "hour"), "2026-04-04T15:00:00.000Z");
    assert.equal(ends("2026-04-04T15:00:00.000Z", "hour"), "2026-04-04T15:30:00.000Z");
    process.env.TZ = "America/Sao_Paulo";
    assert.equal(ends("2018-11-03T03:00:00.000Z", "day"), "2018-11-04T03:00:00.000Z");
    assert.equal(ends("2018-11-04T03:00:00.000Z", "day"), "2018-11-05T02:00:00.000Z");
    process.env.TZ = "Asia/Kathmandu";
    assert.equal(ends("2026-10-24T23:15:00.000Z", "hour"), "2026-10-25T00:15:00.000Z");
  } finally {
    process.env.TZ = "Europe/Berlin";
  }
});

test("periods have names", () => {
  const said = (value, period, clock = "reader") => periods.periodLabel(value, period, clock, "en-US").replaceAll("\u202F", " ");
  assert.equal(said("2025-12-31T23:00:00.000Z", "year"), "2026");
  assert.equal(said("2026-06-30T22:00:00.000Z", "quarter"), "Q3 2026");
  assert.equal(said("2026-02-28T23:00:00.000Z", "month"), "Mar 2026");
  assert.equal(said("2026-03-01T23:00:00.000Z", "week"), "Week of Mar 2, 2026");
  assert.equal(said("2026-03-02", "day", "utc"), "Mar 2, 2026");
  assert.equal(said("2026-03-02T13:00:00.000Z", "hour"), "Mar 2, 2026, 2:00 PM");
  const twice = ["2026-10-25T00:00:00.000Z", "2026-10-25T01:00:00.000Z"].map((value) => said(value, "hour"));
  assert.match(twice[0], /GMT\+2$/);
  assert.match(twice[1], /GMT\+1$/);
  assert.equal(said("nonsense", "day"), "nonsense");
});

test("groups and results are said with all their digits", () => {
  const titles = () => "North";
  const label = (value, by, titleOf = () => undefined) => labels.valueLabel(value, request.fieldOf(by, sale), titleOf);
  assert.equal(label(null, "status"), "(empty)");
  assert.equal(label("", "item"), '""');
  assert.equal(label(true, "item"), "true");
  assert.equal(label(parseJson("9007199254740993"), "big"), "9007199254740993");
  assert.equal(label("01a2025c-0000-7000-8000-000000000000", "shop_id", titles), "North");
  assert.equal(label("01a2025c-0000-7000-8000-0000000000ab", "shop_id"), "000000ab");
  assert.equal(label("x".repeat(300), "item").length, 201);
  const text = (json, of) => labels.resultText(parseJson(json), request.functionOf(of, sale));
  assert.equal(text("18446744073709551614", "sum:big"), "18446744073709551614");
  assert.equal(text("10000000000000000.01", "sum:amount"), "10000000000000000.010");
  assert.equal(text("null", "avg:amount"), null);
  assert.equal(labels.shownWords(1, 100, 100, 1_000), "Shown: first 100 of 1,000 groups");
  assert.equal(labels.shownWords(3, 100, 100, 1_000), "Shown: groups 201–300 of 1,000");
  assert.equal(labels.shownWords(1, 100, 3, 3), "");
});

const narrowed = (by, group, filter = NONE, shape = sale, groups = [{ group }]) => narrow.narrowed(fields(by, shape), group, groups, filter, shape, of);

test("a group narrows the records to exactly its own", () => {
  const only = (by, value) => narrowed([by], { [by]: value });
  assert.deepEqual(only("status", "open"), { conditions: [{ field: "status", operator: "eq", value: "open" }], where: "" });
  assert.deepEqual(only("status", null).conditions, [{ field: "status", operator: "is_null", value: null }]);
  assert.deepEqual(only("item", "").conditions, [{ field: "item", operator: "eq", value: "" }]);
  assert.deepEqual(only("big", parseJson("9007199254740993")).conditions, [{ field: "big", operator: "eq", value: "9007199254740993" }]);
  assert.deepEqual(only("at:month", "2026-10-31T23:00:00.000Z").conditions, [
    { field: "at", operator: "gte", value: "2026-10-31T23:00:00.000Z" },
    { field: "at", operator: "lt", value: "2026-11-30T23:00:00.000Z" },
  ]);
  assert.deepEqual(only("day:quarter", "2026-04-01").conditions, [
    { field: "day", operator: "gte", value: "2026-04-01" },
    { field: "day", operator: "lt", value: "2026-07-01" },
  ]);
  // No column has values before the year 1 or after the year 9999.
  assert.deepEqual(only("day:year", "9999-01-01").conditions, [{ field: "day", operator: "gte", value: "9999-01-01" }]);
  assert.deepEqual(only("at:year", "0000-12-31T23:06:32.000Z").conditions, [{ field: "at", operator: "lt", value: "0001-12-31T23:06:32.000Z" }]);
  // As a parameter of its own, this text would mean null.
  assert.deepEqual(only("item", "null"), { conditions: [{ field: "item", operator: "eq", value: "null" }], where: "" });
  assert.deepEqual(filterParameters({ ...VIEW, ...only("item", "null") }, sale), [["where", '{"item":"null"}']]);
  assert.deepEqual(only("item", "$now"), { conditions: [{ field: "item", operator: "eq", value: "$now" }], where: "" });
});

test("the borders of a period are those that the server has sent", () => {
  const at = (period, begin, ...others) => narrowed([`at:${period}`], { [`at:${period}`]: begin }, NONE, sale, [begin, ...others, null].map((value) => ({ group: { [`at:${period}`]: value } }))).conditions.map(({ value }) => value);
  // The table of the server knows that the clocks no longer change, so March ends an hour later than in this browser, or earlier.
  for (const next of ["2026-03-31T23:00:00.000Z", "2026-03-31T21:00:00.000Z"]) assert.deepEqual(at("month", "2026-02-28T23:00:00.000Z", "2026-05-31T22:00:00.000Z", next, "2026-01-31T23:00:00.000Z"), ["2026-02-28T23:00:00.000Z", next]);
  assert.deepEqual(at("hour", "2026-03-02T13:00:00.000Z", "2026-03-02T13:45:00.000Z"), ["2026-03-02T13:00:00.000Z", "2026-03-02T13:45:00.000Z"]);
  // The next group is that of a later period, or this group is the last one.
  assert.deepEqual(at("day", "2026-03-02T23:00:00.000Z", "2026-03-04T23:00:00.000Z"), ["2026-03-02T23:00:00.000Z", "2026-03-03T23:00:00.000Z"]);
  assert.deepEqual(at("hour", "2026-03-02T13:00:00.000Z", "2026-03-02T15:00:00.000Z"), ["2026-03-02T13:00:00.000Z", "2026-03-02T14:00:00.000Z"]);
  assert.deepEqual(at("year", "2025-12-31T23:00:00.000Z"), ["2025-12-31T23:00:00.000Z", "2026-12-31T23:00:00.000Z"]);
  // At these begins, the clock of the browser shows 22 or 23 o'clock of the day before.
  for (const [period, begin, end] of [["day", "2026-05-31T21:00:00.000Z", "2026-06-01T22:00:00.000Z"], ["month", "2026-01-31T22:00:00.000Z", "2026-02-28T23:00:00.000Z"], ["week", "2026-06-07T20:00:00.000Z", "2026-06-14T22:00:00.000Z"]]) assert.deepEqual(at(period, begin), [begin, end]);
});

test("a period has its name, and a chart its places, if the tables of browser and server differ by an hour", () => {
  const said = (value, period) => periods.periodLabel(value, period, "reader", "en-US");
  for (const begin of ["2026-05-31T21:00:00.000Z", "2026-05-31T22:00:00.000Z", "2026-05-31T23:00:00.000Z"]) assert.deepEqual(["month", "day"].map((period) => said(begin, period)), ["Jun 2026", "Jun 1, 2026"]);
  assert.deepEqual([said("2025-12-31T22:00:00.000Z", "year"), said("2026-06-30T21:00:00.000Z", "quarter"), said("2026-06-07T21:00:00.000Z", "week")], ["2026", "Q3 2026", "Week of Jun 8, 2026"]);
  const late = layOut(["at:month"], ["2026-02-28T23:00:00.000Z", "2026-03-31T23:00:00.000Z", "2026-04-30T23:00:00.000Z", "2026-06-30T23:00:00.000Z"].map((text) => ({ group: { "at:month": text }, count: 1 })));
  assert.deepEqual([late.slots, drawn(late)], [["Mar 2026", "Apr 2026", "May 2026", "Jun 2026", "Jul 2026"], [[1, 1, 1, 0, 1]]]);
});

test("conditions on groups take the periods of the server, and are said with names and titles", async () => {
  assert.deepEqual(Object.fromEntries(request.periodParameters("at:month", { ...VIEW, search: "x" }, sale, ZONE)), { fn: "count", groupBy: "at:month", tz: ZONE, sort: "-at:month", search: "x" });
  const column = (by, choices) => ({ ...request.resultShape(read({ group: by }), sale).byId.get(by), ...choices });
  const labelOf = (value) => periods.periodLabel(value, "month", "reader", "en-US");
  assert.equal(words.saidValue("2026-02-28T23:00:00.000Z", column("at:month", { choices: { key: [], labelOf } }), () => undefined), "Mar 2026");
  const rows = labels.rowsWithReferences([{ group: { shop_id: "a" }, count: 1 }], [{ field: "shop_id", operator: "in", value: ["b", "c"] }, { field: "shop_id", operator: "is_null", value: null }, { field: "status", operator: "eq", value: "open" }]);
  assert.deepEqual(rows.map(({ shop_id: shop }) => shop), ["a", "b", "c", null, undefined]);
  const titles = new Map([["a", "North"], ["b", "South"]]);
  assert.equal(words.saidValue(["a", "b"], column("shop_id"), ({ relation }, id) => (relation.target === "shop" ? titles.get(id) : undefined)), "North, South");
});

test("a group adds to the filter of the view", () => {
  const group = { status: "open", "at:day": null };
  assert.deepEqual(narrowed(["status", "at:day"], group, { conditions: [{ field: "item", operator: "ilike", value: "x" }], where: "" }).conditions.map(({ field }) => field), ["item", "status", "at"]);
  assert.deepEqual(narrowed(["status"], group, { conditions: [], where: '{"_or":[{"item":"a"},{"item":"b"}]}' }), { conditions: [], where: '{"_or":[{"item":"a"},{"item":"b"}],"status":"open"}' });
  assert.equal(narrowed(["status"], group, { conditions: [], where: "{" }), undefined);
  assert.equal(narrowed(["gone"], { gone: 1 }), undefined);
  // The address has no room for this filter.
  assert.equal(narrowed(["item"], { item: "x".repeat(48_000) }), undefined);
  assert.equal(narrowed(["item"], { item: "x".repeat(16_000) }).conditions[0].value.length, 16_000);
  // The list of an object with a field called `where` takes a condition too.
  for (const tz of ["CET", "null"]) assert.deepEqual(narrowed(["tz"], { tz }, NONE, of("stop")), { conditions: [{ field: "tz", operator: "eq", value: tz }], where: "" });
});

const layOut = (by, rows, { functions = ["count"], kind = "bars", knowsGaps = true } = {}) =>
  chart.layOut({ rows, fields: fields(by), functions: functions.map((text) => request.functionOf(text, sale)), kind, knowsGaps, labelOf: (field, value) => (value === null ? "(empty)" : field.period === undefined ? String(value) : periods.periodLabel(value, field.period, field.clock, "en-US")) });
const drawn = (layout, of = "count") => layout.series.map((_, index) => layout.slots.map((_, slot) => layout.valueAt(request.functionOf(of, sale), slot, index)));
const month = (text, count, more = {}) => ({ group: { "day:month": text, ...more }, count });

test("periods without records have a place, with 0 where that is known", () => {
  const rows = [month("2026-05-01", 3), month("2026-01-01", 2), month("2026-03-01", 1)];
  const known = layOut(["day:month"], rows, { kind: "line" });
  assert.deepEqual(known.slots, ["Jan 2026", "Feb 2026", "Mar 2026", "Apr 2026", "May 2026"]);
  assert.deepEqual(drawn(known), [[2, 0, 1, 0, 3]]);
  assert.equal(known.rowAt(0, 0), rows[1]);
  assert.equal(known.rowAt(1, 0), undefined);
  assert.deepEqual(drawn(layOut(["day:month"], rows, { knowsGaps: false })), [[2, null, 1, null, 3]]);
  // Other functions have no value without records.
  assert.deepEqual(drawn(layOut(["day:month"], [{ group: { "day:month": "2026-01-01" }, count: 1, sum_big: parseJson("9007199254740993") }, { group: { "day:month": "2026-03-01" }, count: 1, sum_big: null }], { functions: ["sum:big"] }), "sum:big"), [[9007199254740992, null, null]]);
});

test("null is the last bar, and no point of a line", () => {
  const rows = [month("2026-01-01", 2), month(null, 7)];
  assert.deepEqual([layOut(["day:month"], rows).slots, drawn(layOut(["day:month"], rows))], [["Jan 2026", "(empty)"], [[2, 7]]]);
  const line = layOut(["day:month"], rows, { kind: "line" });
  assert.deepEqual([line.slots, line.notes], [["Jan 2026"], ["The line leaves out (empty)."]]);
  assert.deepEqual(layOut(["day:month"], [month(null, 7)], { kind: "line" }).slots, []);
});

test("days that are far apart do not fill the chart", () => {
  const layout = layOut(["day:day"], ["1990-01-01", "2026-01-01"].map((text) => ({ group: { "day:day": text }, count: 1 })));
  assert.deepEqual([layout.slots.length, layout.notes], [2, ["Periods without records are left out."]]);
  // The clock changes, and no day is lost or doubled.
  const days = layOut(["at:day"], ["2026-03-27T23:00:00.000Z", "2026-03-30T22:00:00.000Z"].map((text) => ({ group: { "at:day": text }, count: 1 })));
  assert.deepEqual(days.slots, ["Mar 28, 2026", "Mar 29, 2026", "Mar 30, 2026", "Mar 31, 2026"]);
});

test("a second field makes series, of which the largest are shown", () => {
  const rows = [month("2026-01-01", 2, { status: "open" }), month("2026-01-01", 4, { status: "paid" }), month("2026-02-01", 1, { status: null })];
  const layout = layOut(["day:month", "status"], rows);
  assert.deepEqual([layout.series, drawn(layout)], [["open", "paid", "(empty)"], [[2, 0], [4, 0], [0, 1]]]);
  const many = Array.from({ length: 9 }, (_, index) => ({ group: { status: "open", item: `item ${index}` }, count: index === 0 ? 100 : index }));
  const largest = layOut(["status", "item"], many);
  assert.deepEqual(largest.series, ["item 0", "item 4", "item 5", "item 6", "item 7", "item 8"]);
  assert.deepEqual(largest.notes, ["The chart shows 6 of 9 values of item: those with the largest count."]);
  assert.deepEqual(layOut(["status"], []).slots, []);
  assert.deepEqual(drawn(layOut(["status"], [{ group: { status: "open" }, count: 5 }])), [[5]]);
});

test("the lines of a chart are ranked by the function", () => {
  // `often` has small values in many places. The others have one place each.
  const one = (item, status, value) => ({ group: { status, item }, avg_big: value, max_big: value, min_big: value, sum_big: value });
  const others = [10, 20, 30, 40, 50, 60, -70].map((value, index) => one(`item ${index}`, "s0", value));
  const rows = [...others, ...Array.from({ length: 30 }, (_, index) => one("often", `s${index}`, 5)), one("never", "s0", null)];
  const ranked = (name) => {
    const { series, notes } = layOut(["status", "item"], rows, { functions: [`${name}:big`] });
    return [[...series].sort(), notes[0]];
  };
  const note = (word, name) => `The chart shows 6 of 9 values of item: those with the ${word} ${name} of big.`;
  assert.deepEqual(ranked("avg"), [["item 0", "item 1", "item 2", "item 3", "item 4", "item 5"], note("highest", "avg")]);
  assert.deepEqual(ranked("max"), [["item 0", "item 1", "item 2", "item 3", "item 4", "item 5"], note("highest", "max")]);
  assert.deepEqual(ranked("min"), [["item 0", "item 1", "item 2", "item 3", "item 6", "often"], note("lowest", "min")]);
  // A large negative sum is as visible as a positive one.
  assert.deepEqual(ranked("sum"), [["item 2", "item 3", "item 4", "item 5", "item 6", "often"], note("largest", "sum")]);
});

test("a line is for periods and one function, unless the person chooses", () => {
  const kind = (search) => chart.chartKind(read(search), fields(read(search).by)[0]);
  assert.equal(kind({ group: "at:month" }), "line");
  assert.equal(kind({ group: "at:month", fn: "count,sum:big" }), "bars");
  assert.equal(kind({ group: "at:month", fn: "count,sum:big", chart: "line" }), "line");
  assert.equal(kind({ group: "status", chart: "line" }), "bars");
  assert.equal(kind({ group: "at" }), "bars");
  const knows = (search, isAll = false) => chart.knowsGaps(read(search), isAll);
  assert.deepEqual([knows({ group: "at:day" }), knows({ group: "at:day", groupSort: "-at:day" }), knows({ group: "at:day", groupSort: "-count" }), knows({ group: "at:day,status" })], [true, true, false, false]);
  assert.deepEqual([knows({ group: "at:day,status" }, true), knows({ group: "at:day", having: '[["count","gt","1"]]' }, true)], [true, false]);
});

test("the marks of an axis are round, contain 0, and are whole for counts", () => {
  assert.deepEqual(ticks.ticksOf([[3, 7, null]]), [0, 2, 4, 6, 8]);
  assert.deepEqual(ticks.ticksOf([[1, 2]]), [0, 1, 2]);
  assert.deepEqual(ticks.ticksOf([[0.1, 0.35]]), [0, 0.1, 0.2, 0.3, 0.4]);
  assert.deepEqual(ticks.ticksOf([[-5, 12]]), [-5, 0, 5, 10, 15]);
  assert.deepEqual(ticks.ticksOf([[-3], [-1]]), [-3, -2, -1, 0]);
  assert.deepEqual(ticks.ticksOf([[0, null], []]), [0, 1]);
  for (const values of [[1.7e308, -1.7e308], [5e-324], [Number.NaN, 1], [1e300, 1]]) {
    const marks = ticks.ticksOf([values]);
    assert.ok(marks.every(Number.isFinite) && marks.length >= 2 && marks.length <= 22 && marks.at(-1) > marks[0], `${values}: ${marks}`);
  }
  assert.deepEqual([0, 12_000, 0.25, 1_234_567, 2e20, 1e-7].map(ticks.tickText), ["0", "12K", "0.25", "1.235M", "2.0e+20", "1.0e-7"]);
  assert.deepEqual([ticks.unitOf([[5, -900]]), ticks.unitOf([[9e18]]), ticks.unitOf([[2e-9, null]]), ticks.unitOf([[5e-324]]), ticks.unitOf([])], [1, 1e18, 1e-9, 1, 1]);
});

test("names have room on the axis, and a click finds its bar", () => {
  assert.deepEqual(ticks.namedPlaces(["a", "b", "c"], 600), [0, 1, 2]);
  assert.deepEqual(ticks.namedPlaces(Array.from({ length: 10 }, () => "Mar 2026"), 330), [0, 2, 4, 6, 8]);
  assert.deepEqual(ticks.namedPlaces([], 100), []);
  assert.deepEqual(ticks.namedPlaces(["a long name"], 10), [0]);
  assert.equal(ticks.cutName("👩‍👩‍👧".repeat(20)).endsWith("…"), true);
  assert.equal(ticks.barWidth(2, 100), 0.4);
  // A single bar does not fill the chart.
  assert.equal(ticks.barWidth(1, 640), 0.1);
  assert.deepEqual([ticks.barAt(0.8, 3, 2, 0.4), ticks.barAt(2.3, 3, 2, 0.4), ticks.barAt(0.49, 3, 2, 0.4)], [{ place: 1, series: 0 }, { place: 2, series: 1 }, { place: 0, series: 1 }]);
  assert.deepEqual([ticks.barAt(-0.6, 3, 1, 0.8), ticks.barAt(3, 3, 1, 0.8), ticks.barAt(Number.NaN, 3, 1, 0.8)], [undefined, undefined, undefined]);
});

test("the same request is copied for every surface", () => {
  const from = read({ group: "status,at:month", fn: "count,sum:amount", groupSort: "-sum_amount", having: '[["count","gt","1"]]' });
  const view = { ...VIEW, conditions: [{ field: "amount", operator: "lt", value: "11" }] };
  const parts = { functions: from.functions, by: from.by, having: request.havingOf(from, sale), zone: "Asia/Tokyo", sort: request.sortOf(from, sale), parameters: request.groupParameters(from, view, sale, "Asia/Tokyo") };
  const { request: rest, graphql, mcp } = copies.copiesOfGroups(sale, of, view, parts, 2, 100);
  assert.equal(rest.path, "/api/v1/data/sale/aggregate?fn=count,sum:amount&groupBy=status,at:month&tz=Asia%2FTokyo&having=%7B%22count%22:%7B%22gt%22:1%7D%7D&sort=-sum_amount&amount[lt]=11&page=2&pageSize=100");
  assert.equal(graphql.query, 'query($having: JSON) {\n  sale_groups(functions: ["count", "sum:amount"], groupBy: ["status", "at:month"], having: $having, tz: "Asia/Tokyo", filter: [{ field: "amount", operator: lt, value: 11 }], sort: [{ field: "sum_amount", direction: desc }], page: 2, pageSize: 100) {\n    data\n    pagination { totalCount hasNextPage }\n  }\n}');
  assert.deepEqual(graphql.variables, { having: { count: { gt: 1 } } });
  assert.deepEqual(mcp, {
    tool: "aggregate_data",
    arguments: { object_name: "sale", functions: ["count", "sum:amount"], group_by: ["status", "at:month"], having: { count: { gt: 1 } }, tz: "Asia/Tokyo", filters: [{ field: "amount", operator: "lt", value: 11 }], sort: "-sum_amount", page: 2, page_size: 100 },
  });
});

// Records as files: the export of a view, and the import of CSV, JSON and NDJSON with its check, its report and its limits.
import assert from "node:assert/strict";
import { readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { before, test } from "node:test";
import { admin, base, folder, frames, hostile, intercept, look, must, open, person } from "./harness.mjs";

let me;
const directory = folder("transfer");
const file = (name, text) => {
  const path = join(directory, name);
  writeFileSync(path, text);
  return path;
};
const count = async (object) => (await must(me, "GET", `/api/v1/data/${object}?limit=1`)).pagination.totalCount;
const raw = async (path) => (await fetch(base + path, { headers: { authorization: `Bearer ${me.token}` } })).text();
const object = async (name, fields) => {
  await must(me, "POST", "/api/v1/objects", { name, fields });
  return name;
};
async function choose(page, path) {
  const [chooser] = await Promise.all([page.waitForEvent("filechooser"), page.getByRole("button", { name: "Choose a file" }).click()]);
  await chooser.setFiles(path);
  await page.getByRole("heading", { name: "As it would be sent" }).waitFor();
}
const begin = (name, options) => open(`/admin/data/${name}?import=true`, { as: me, ...options });
async function run(page) {
  await page.getByRole("button", { name: "Check the rows" }).click();
  await page.getByRole("button", { name: /^Import \d/ }).click();
}
const isDone = (page) => page.getByText(/^(Everything is imported|The import is done)/).waitFor();
const refused = async (page) => {
  const [given] = await Promise.all([page.waitForEvent("download"), page.getByRole("button", { name: "Download as CSV" }).click()]);
  return readFileSync(await given.path(), "utf8");
};

before(async () => {
  me = await admin();
});

test("a CSV is matched, checked and imported; what is refused can be downloaded, mended and imported again", async () => {
  await object("city", [
    { name: "name", type: "text", required: true, max: 40 },
    { name: "founded_on", type: "date" },
    { name: "people", type: "big_integer" },
    { name: "area", type: "decimal", scale: 3 },
    { name: "is_capital", type: "boolean" },
    { name: "kind", type: "enum", options: ["town", "city"] },
    { name: "tags", type: "multi_enum", options: ["old", "new"] },
    { name: "slug", type: "slug", isUnique: true },
    { name: "seen_at", type: "datetime" },
    { name: "extra", type: "json" },
  ]);
  const path = file(
    "cities.csv",
    [
      "Name;Founded on;People;Area;is capital;kind;tags;slug;seen_at;extra;nonsense",
      `"Berlin; at the Spree";28.10.1237;9007199254740993;891,7;yes;CITY;old, new;berlin;2026-03-01 10:30;"{""a"":12345678901234567890}";x`,
      "'=1+1;1.2.1300;1.000;0,5;no;town;;twice;2026-03-01T10:30:00+01:00;;x",
      "Twice;;;;;;;twice;;;x",
      ";;;;;;;nameless;;;x",
      "Wrong number;;many;;;;;wrong;;;x",
      `${hostile.markup.replaceAll(";", "").replaceAll('"', "").slice(0, 40)};;5;;;;;markup;;;x`,
    ].join("\r\n"),
  );
  const page = await begin("city", { expect: ["409"] });
  await look(page, "file", { themes: ["light"] });
  await choose(page, path);
  await page.getByRole("combobox", { name: "Numbers" }).click();
  await page.getByRole("option", { name: "1.234,50" }).click();
  const preview = page.getByRole("region", { name: "The first rows" });
  await preview.getByText("2026-03-01T10:30:00Z").waitFor();
  await preview.getByText("is no number").waitFor();
  await look(page, "columns");
  await page.getByRole("button", { name: "Check the rows" }).click();
  await page.getByText("4 rows can be sent").waitFor();
  await page.getByText("2 rows cannot").waitFor();
  assert.equal(await count("city"), 0, "the check writes nothing");
  await look(page, "check", { themes: ["dark"] });
  await page.getByRole("button", { name: "Import 4 rows" }).click();
  await isDone(page);
  await page.getByText("3 created").waitFor();
  await page.getByText("3 refused").waitFor();
  await look(page, "report");
  const text = await raw("/api/v1/data/city?sort=created_at");
  for (const part of ['"people":9007199254740993', '"area":891.7', '"is_capital":true', '"kind":"city"', '"tags":["old","new"]', '"founded_on":"1237-10-28"', '"seen_at":"2026-03-01T10:30:00.000Z"', '"seen_at":"2026-03-01T09:30:00.000Z"', '"extra":{"a":12345678901234567890}', '"name":"=1+1"', '"people":1000'])
    assert.ok(text.includes(part), `${part} in ${text}`);
  const report = await refused(page);
  const lines = report.split("\r\n");
  assert.match(lines[0], /^Name,Founded on,People.*,import_row,import_field,import_error$/);
  assert.equal(lines.length, 5, report);
  assert.match(lines[1], /3,slug,A record of `city` with this `slug` exists already/);
  assert.match(lines[2], /4,name,/);
  assert.match(lines[3], /5,people,`many` is no number/);
  await page.getByRole("button", { name: "Import another file" }).click();
  await choose(page, file("mended.csv", report.replace("twice", "thrice").replace("many", "7").replace(",,,,,,,nameless", "Named,,,,,,,nameless")));
  await run(page);
  await page.getByText("Everything is imported").waitFor();
  assert.equal(await count("city"), 6);
});

test("a view is exported with its filter, and comes back as it was", async () => {
  await object("word", [{ name: "text", type: "text" }, { name: "number", type: "big_integer" }, { name: "code", type: "slug", isUnique: true }]);
  const words = [null, "", hostile.csv, "'=2", "'tis", 'say "hi"\r\nthere', hostile.rtl, hostile.markup, hostile.spaces, "-5"];
  await must(me, "POST", "/api/v1/data/word/bulk", { data: words.map((text, index) => ({ text, number: `90071992547409${90 + index}`, code: `w-${index}` })) });
  const page = await open("/admin/data/word", { as: me });
  const exported = async (item) => {
    await page.getByRole("button", { name: "Import, export" }).click();
    const [given] = await Promise.all([page.waitForEvent("download"), page.getByRole("menuitem", { name: item }).click()]);
    return { name: given.suggestedFilename(), text: readFileSync(await given.path(), "utf8") };
  };
  const csv = await exported("Export as CSV");
  assert.match(csv.name, /\.csv$/);
  const ndjson = await exported("Export as NDJSON");
  assert.equal(ndjson.text.trim().split("\n").length, words.length);
  await page.goto(`${base}/admin/data/word?q=HYPERLINK`);
  const found = await exported("Export as NDJSON");
  assert.deepEqual(found.text.trim().split("\n").map((line) => JSON.parse(line).text), [hostile.csv], "only what the view shows");
  await object("copy", [{ name: "text", type: "text" }, { name: "number", type: "big_integer" }, { name: "code", type: "slug", isUnique: true }]);
  const contents = async (name) => JSON.stringify(JSON.parse(await raw(`/api/v1/data/${name}?sort=code&select=code,text`)).data.map(({ code, text }) => [code, text]));
  const target = await begin("copy");
  await choose(target, file("word.csv", csv.text));
  await run(target);
  await isDone(target);
  assert.equal(await contents("copy"), await contents("word"), "null, empty text, formulas and line ends are what they were");
  await target.getByRole("button", { name: "Import another file" }).click();
  await choose(target, file("word.ndjson", ndjson.text.replaceAll("9007199254740", "8007199254740")));
  await target.getByRole("combobox", { name: "Rows that are there already" }).click();
  await target.getByRole("option", { name: "Update where code is the same" }).click();
  await run(target);
  await target.getByText(`${words.length} updated`).waitFor();
  assert.ok((await raw("/api/v1/data/copy?sort=code")).includes('"number":8007199254740990'));
  assert.equal(await count("copy"), words.length);
});

test("a relation takes the value of a unique field of its target, a column is left out, and every reason of a row is told", async () => {
  await object("company", [{ name: "name", type: "text", isUnique: true }]);
  await object("contact", [
    { name: "email", type: "email", required: true },
    { name: "age", type: "integer" },
    { name: "note", type: "text" },
    { name: "site", type: "url" },
  ]);
  await must(me, "POST", "/api/v1/relationships", { name: "company", kind: "many_to_one", source: "contact", target: "company" });
  const acme = (await must(me, "POST", "/api/v1/data/company", { name: "Acme, Inc." })).data.id;
  const lines = ["Email,Company,Age,Note,Site", 'a@example.com,"Acme, Inc.",30,x,', "b@example.com,Nowhere,30,x,", "c@example.com,,30,x,", 'nobody,"Acme, Inc.",old,x,', 'd@example,"Acme, Inc.",30,x,http:///d'];
  const page = await begin("contact", { expect: [/status of 400/] });
  await choose(page, file("contacts.csv", `${lines.join("\n")}\n`));
  const select = async (name, option) => {
    await page.getByRole("combobox", { name }).click();
    await page.getByRole("option", { name: option, exact: true }).click();
  };
  await select("What company_id holds", "company: name");
  await select("Column for Note", "Leave out");
  await run(page);
  await isDone(page);
  const { data } = await must(me, "GET", "/api/v1/data/contact?sort=email");
  assert.deepEqual(
    data.map(({ email, company_id, age, note }) => [email, company_id, age, note]),
    [
      ["a@example.com", acme, 30, null],
      ["c@example.com", null, 30, null],
    ],
  );
  const report = await refused(page);
  assert.match(report, /,2,company_id,There is no `company` whose `name` is `Nowhere`\./);
  // The report has both reasons of a row, those of the console's own check and those of the server, which is stricter.
  assert.match(report, /,4,,email: Enter an e-mail address\.; age: `old` is no number\./);
  assert.match(report, /,5,,"?email: [^;\r\n]*it needs to be an e-mail address\.; site: [^;\r\n]*it needs to be an absolute http or https URL\./);
  const shown = page.getByRole("region", { name: "Refused rows" }).getByRole("row", { name: /^5 / });
  await shown.getByText("it needs to be an e-mail address", { exact: false }).waitFor();
  await shown.getByText("it needs to be an absolute http or https URL", { exact: false }).waitFor();
});

test("an export with names comes back by an import, ids where there is no name included", async () => {
  await object("club", [
    { name: "name", type: "text", isUnique: true },
    { name: "number", type: "integer", isUnique: true },
  ]);
  for (const name of ["player", "coach"]) {
    await object(name, [{ name: "name", type: "text", required: true }]);
    await must(me, "POST", "/api/v1/relationships", { name: "club", kind: "many_to_one", source: name, target: "club" });
  }
  const named = (await must(me, "POST", "/api/v1/data/club", { name: "=SC, Bern", number: 4 })).data.id;
  const nameless = (await must(me, "POST", "/api/v1/data/club", {})).data.id;
  // This name is a text. It is not that of the club without one.
  const odd = (await must(me, "POST", "/api/v1/data/club", { name: "null" })).data.id;
  for (const [name, club_id] of [["a", named], ["b", nameless], ["c", null], ["d", odd]]) await must(me, "POST", "/api/v1/data/player", { name, club_id });
  for (const field of ["name", "number"]) {
    const page = await open("/admin/data/player", { as: me });
    await page.getByRole("button", { name: "Import, export" }).click();
    await page.getByRole("menuitem", { name: "Export with names…" }).click();
    await page.getByRole("combobox", { name: "What club_id holds" }).click();
    await page.getByRole("option", { name: `club: ${field}`, exact: true }).click();
    const [given] = await Promise.all([page.waitForEvent("download"), page.getByRole("button", { name: "Export", exact: true }).click()]);
    const text = readFileSync(await given.path(), "utf8");
    assert.match(text, new RegExp(`club\\.${field}`));
    assert.ok(!text.includes(named) && text.includes(nameless), text);
    const other = await begin("coach");
    await choose(other, file("players.csv", text));
    assert.equal(await other.getByRole("combobox", { name: "What club_id holds" }).inputValue(), `club: ${field}`);
    await run(other);
    await isDone(other);
    const { data } = await must(me, "GET", "/api/v1/data/coach?sort=name");
    assert.deepEqual(data.map(({ name, club_id }) => [name, club_id]), [["a", named], ["b", nameless], ["c", null], ["d", odd]]);
    for (const { id } of data) await must(me, "DELETE", `/api/v1/data/coach/${id}`);
  }
});

test("a hundred thousand rows are imported while the page stays free, and the import can be stopped", async () => {
  await object("many", [{ name: "name", type: "text", required: true }, { name: "number", type: "integer" }]);
  const rows = ["name,number"];
  for (let number = 0; number < 100_000; number++) rows.push(`row ${number},${number % 25_000 === 7 ? "odd" : number}`);
  const path = file("many.csv", rows.join("\n"));
  const page = await begin("many");
  await choose(page, path);
  const checking = await frames(page, async () => {
    await page.getByRole("button", { name: "Check the rows" }).click();
    await page.getByText("99,996 rows can be sent").waitFor();
  });
  assert.ok(checking.max < 1_000, `a frame took ${checking.max} ms`);
  // This test does not depend on what the server does with the rows.
  await intercept(page, "/api/v1/data/many/bulk", (request) => ({ status: 201, body: { count: 0, ids: [], size: (request.postData() ?? "").length } }), { method: "POST" });
  const sending = await frames(page, async () => {
    await page.getByRole("button", { name: "Import 99,996 rows" }).click();
    await isDone(page);
  });
  assert.ok(sending.max < 1_000, `a frame took ${sending.max} ms`);
  await page.getByText("99,996 created").waitFor();
  await page.getByText("4 refused").waitFor();
  await page.getByRole("button", { name: "Import another file" }).click();
  await choose(page, path);
  await intercept(page, "/api/v1/data/many/bulk", { delayMs: 300 }, { method: "POST" });
  await run(page);
  await page.getByRole("button", { name: "Stop the import" }).click();
  await page.getByText("The import was stopped. What is imported stays.").waitFor();
});

test("the import waits when the server asks for it, stands still when it does not answer, and ends where a right is missing", async () => {
  await object("flaky", [{ name: "name", type: "text" }]);
  const path = file("flaky.json", JSON.stringify([{ name: "one" }, { name: "two" }, { name: "three" }]));
  const page = await begin("flaky", { expect: ["429", "403", "ERR_CONNECTION_REFUSED", "refused"] });
  await choose(page, path);
  let calls = 0;
  const end = await intercept(page, "/api/v1/data/flaky/bulk", () => {
    calls += 1;
    if (calls === 1) return { status: 429, headers: { "retry-after": "1" }, body: { error: "rate_limited", message: "Too many requests." } };
    return calls === 2 ? "abort" : undefined;
  }, { method: "POST" });
  // The text is shown for a second only, so the page is watched from before.
  await Promise.all([page.getByText("The server asks to wait 1 s").waitFor(), run(page)]);
  await page.getByText("The import stands still").waitFor();
  await page.getByText("Rows 1 to 3 were on their way").waitFor();
  await look(page, "paused", { widths: [1280] });
  await page.getByRole("button", { name: "Send them again" }).click();
  await page.getByText("Everything is imported").waitFor();
  assert.equal(await count("flaky"), 3);
  await end();
  await page.getByRole("button", { name: "Import another file" }).click();
  await choose(page, path);
  await intercept(page, "/api/v1/data/flaky/bulk", { status: 403, body: { error: "forbidden", message: "You need the permission to create `flaky`." } }, { method: "POST" });
  await run(page);
  await page.getByText("The import broke off. What is imported stays.").waitFor();
  await page.getByText("You need the permission to create flaky").first().waitFor();
});

test("files that are cut off, empty or of another encoding are told apart", async () => {
  await object("odd", [{ name: "name", type: "text", required: true }]);
  const page = await begin("odd");
  for (const [name, text, said] of [
    ["empty.csv", "", "There are no rows in this file."],
    ["cut.json", '[{"name":"a"},{"name":', "cut off"],
    ["open.csv", 'name\n"never closed', "Quote"],
  ]) {
    const [chooser] = await Promise.all([page.waitForEvent("filechooser"), page.getByRole("button", { name: "Choose a file" }).click()]);
    await chooser.setFiles(file(name, text));
    await page.getByRole("alert").filter({ hasText: said }).waitFor();
  }
  await choose(page, file("latin.csv", Buffer.from("name\nK\xf6ln\n", "latin1")));
  await page.getByRole("region", { name: "The first rows" }).getByText("Köln").waitFor();
  await page.getByRole("button", { name: "Another file" }).click();
  await choose(page, file("other.csv", "label\nx\n"));
  await page.getByText("name is required and gets nothing from this file.").waitFor();
  assert.ok(await page.getByRole("button", { name: "Check the rows" }).isDisabled());
});

test("who may not create sees no import; who may read exports", async () => {
  await object("shown", [{ name: "name", type: "text" }]);
  const reader = await person(me, "Tom Transfer", [{ resource: "shown", actions: ["read"] }]);
  const page = await open("/admin/data/shown", { as: reader, expect: ["403"] });
  await page.getByRole("button", { name: "Import, export" }).click();
  assert.equal(await page.getByRole("menuitem", { name: "Export as CSV" }).isDisabled(), false);
  assert.equal(await page.getByRole("menuitem", { name: /^Import/ }).isDisabled(), true);
});

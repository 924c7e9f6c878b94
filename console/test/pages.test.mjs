// Which request reads a page of the table of records, and which page the table shows.
import assert from "node:assert/strict";
import { test } from "node:test";
import { bundled } from "./bundled.mjs";

const { areApart, countOf, extentOf, pageParameters, pageRequest, readBy, readPage } = await bundled("screens/records/page-request.ts");
const { hasPageBehind, pageBefore, pageShown } = await bundled("screens/records/page-shown.ts");
const { firstBelowHead, lastAbove } = await bundled("screens/records/grid/geometry.ts");

const SIZE = 3;
const FIRST = { by: "first" };
const NUMBER = { by: "number" };
const after = (id) => ({ by: "after", cursor: `end ${id}`, id });
const before = (id) => ({ by: "before", cursor: `start ${id}`, id });

/** A page with the rows of these letters. */
function page(letters, request, hasNextPage = true, totalCount = null) {
  const ids = [...letters];
  const cursors = request.by === "number" ? {} : { startCursor: ids.length === 0 ? null : `start ${ids[0]}`, endCursor: ids.length === 0 ? null : `end ${ids.at(-1)}` };
  return readPage(request, { data: ids.map((id) => ({ id })), pagination: { pageSize: SIZE, hasNextPage, hasPreviousPage: false, totalCount, ...cursors } });
}
const asked = (at, previous, next) => pageRequest(at, true, { previous, next });

test("a page is read by a cursor of its neighbour, and by its number if there is none", () => {
  assert.deepEqual(asked(0), FIRST);
  assert.deepEqual(asked(1, page("abc", FIRST)), after("c"));
  assert.deepEqual(asked(2, undefined, page("jkl", after("i"))), before("j"));
  // The page before decides, so that rows go on from it.
  assert.deepEqual(asked(1, page("abc", FIRST), page("ghi", after("f"))), after("c"));
  // A jump, a page that was read by its number, the end of the rows, and an empty page.
  assert.deepEqual(asked(7), NUMBER);
  assert.deepEqual(asked(7, page("stu", NUMBER)), NUMBER);
  assert.deepEqual(asked(7, undefined, page("xyz", NUMBER)), NUMBER);
  assert.deepEqual(asked(1, page("abc", FIRST, false)), NUMBER);
  assert.deepEqual(asked(2, page("", after("c"), false), page("", after("f"), false)), NUMBER);
  // If the page before was read by its number, the page behind may have a cursor.
  assert.deepEqual(asked(7, page("stu", NUMBER), page("yza", after("x"))), before("y"));
  assert.deepEqual(asked(1, page("abc", FIRST, false), page("ghi", after("f"))), NUMBER);
  // A field has the name of a parameter of cursors.
  for (const at of [0, 1]) assert.deepEqual(pageRequest(at, false, { previous: page("abc", FIRST), next: undefined }), NUMBER);
});

test("the parameters of a request", () => {
  assert.equal(pageParameters(NUMBER, 4, 50, false), "page=5&pageSize=50");
  assert.equal(pageParameters(NUMBER, 4, 50, true), "page=5&pageSize=50&count=none");
  assert.equal(pageParameters(FIRST, 0, 50, false), "cursor=&pageSize=50&count=exact");
  assert.equal(pageParameters(FIRST, 0, 50, true), "cursor=&pageSize=50&count=none");
  assert.equal(pageParameters({ by: "after", cursor: "a+/=", id: "c" }, 1, 25, false), "after=a%2B%2F%3D&pageSize=25&count=exact");
  assert.equal(pageParameters({ by: "before", cursor: "w5T", id: "c" }, 1, 25, true), "before=w5T&pageSize=25&count=none");
});

/** Sends requests to a server that answers each kind with this function. Returns what was sent too. */
async function sent(request, answers) {
  const requests = [];
  const send = async (each) => {
    requests.push(each.by);
    return answers[each.by]();
  };
  const result = await readBy(request, { size: SIZE, send, isRefusal: (error) => error.status === 400 }).catch((error) => error);
  return { requests, result };
}
const fails = (status) => () => Promise.reject(Object.assign(new Error(`status ${status}`), { status }));

test("a refused cursor is followed by the number, once", async () => {
  const byNumber = page("def", NUMBER);
  for (const request of [FIRST, after("c"), before("g")]) {
    const { requests, result } = await sent(request, { [request.by]: fails(400), number: () => byNumber });
    assert.deepEqual([requests, result], [[request.by, "number"], byNumber]);
  }
  // If the number is refused too, that is the error. Other errors are errors at once.
  const twice = await sent(after("c"), { after: fails(400), number: fails(400) });
  assert.deepEqual([twice.requests, twice.result.status], [["after", "number"], 400]);
  const other = await sent(after("c"), { after: fails(403), number: () => byNumber });
  assert.deepEqual([other.requests, other.result.status], [["after"], 403]);
  const number = await sent(NUMBER, { number: fails(400) });
  assert.deepEqual([number.requests, number.result.status], [["number"], 400]);
});

test("a page before another one is full, or is read by its number", async () => {
  const byNumber = page("def", NUMBER);
  const full = await sent(before("g"), { before: () => page("def", before("g")) });
  assert.deepEqual(full.requests, ["before"]);
  const short = await sent(before("g"), { before: () => page("ef", before("g")), number: () => byNumber });
  assert.deepEqual([short.requests, short.result], [["before", "number"], byNumber]);
  // The last page may be short.
  const last = await sent(after("c"), { after: () => page("d", after("c"), false) });
  assert.deepEqual(last.requests, ["after"]);
});

test("a page that is read again is never apart from the page before it", () => {
  // Otherwise it would be read again and again.
  const others = [undefined, page("ghi", after("f")), page("ghi", NUMBER)];
  for (const previous of [page("xab", FIRST), page("xab", FIRST, false), page("xab", before("d")), page("xab", NUMBER), page("", after("c"), false)])
    for (const next of others) {
      const request = asked(1, previous, next);
      assert.equal(areApart(previous, page("cde", request)), false, JSON.stringify({ previous, next, request }));
    }
});

test("pages are apart if one of them was read again and begins or ends elsewhere", () => {
  assert.equal(areApart(page("abc", FIRST), page("def", after("c"))), false);
  assert.equal(areApart(page("abc", before("d")), page("def", NUMBER)), false);
  assert.equal(areApart(page("abc", before("d")), page("def", after("c"))), false);
  // A row was inserted at the top, so `c` is on no page.
  assert.equal(areApart(page("xab", FIRST), page("def", after("c"))), true);
  assert.equal(areApart(page("xab", FIRST), page("def", before("g"))), true);
  // Pages by numbers have no cursors by which they could be joined.
  assert.equal(areApart(page("xab", NUMBER), page("def", after("c"))), false);
  assert.equal(areApart(page("xab", FIRST), page("", after("c"), false)), false);
});

const count = (pages, total, reached = 0) => countOf(extentOf(pages, SIZE), total, SIZE, reached);

test("the total is the number of rows, and without a total the pages tell it", () => {
  const first = { page: 0, read: page("abc", FIRST) };
  assert.equal(count([first], 100), 100);
  assert.equal(count([first], undefined, 6), 6);
  assert.equal(count([first, { page: 1, read: page("de", after("c"), false) }], null, 6), 5);
  assert.equal(count([{ page: 1, read: page("de", NUMBER, false) }], undefined, 6), 5);
  assert.equal(count([{ page: 0, read: page("", FIRST, false) }], 0), 0);
  // A page that was asked for by a number behind the end does not tell where the end is.
  assert.equal(extentOf([{ page: 9, read: page("", NUMBER, false) }], SIZE).end, undefined);
  // The first page alone follows the total, as a page by its number does.
  assert.equal(count([{ page: 0, read: page("abc", FIRST, false) }], 2), 2);
});

test("pages by cursors tell where the rows end, even if rows came or went elsewhere", () => {
  const second = (hasNextPage, letters = "def") => [{ page: 1, read: page(letters, after("c"), hasNextPage) }];
  // Rows were inserted before: the total is larger, but behind `f` there is nothing.
  assert.equal(count(second(false), 9), 6);
  assert.equal(count(second(false, ""), 9), 3);
  // Rows were deleted before: the total is smaller, but there is a next page.
  assert.equal(count(second(true), 6), 9);
  assert.equal(count(second(true), 7), 7);
});

test("the page is that of the first row below the head", () => {
  for (const [rowHeight, startIndex] of [[36, 49], [30, 48]]) {
    // The table scrolls so that row 50 is just below the head. The row before it is behind the head.
    assert.equal(firstBelowHead(50 * rowHeight, rowHeight, startIndex, 66), 50);
    assert.equal(firstBelowHead(50 * rowHeight - 0.5, rowHeight, startIndex, 66), 50);
    assert.equal(firstBelowHead(50 * rowHeight - 2, rowHeight, startIndex, 66), 49);
  }
  assert.equal(firstBelowHead(0, 36, 0, 16), 0);
  // Until the browser has limited the offset, it may be behind the end.
  assert.equal(firstBelowHead(1_000_000, 36, 223, 239), 239);
  assert.equal(pageShown({ first: 49, last: 65 }, 50, 240), 1);
  assert.equal(pageShown({ first: 50, last: 66 }, 50, 240), 2);
});

test("the last visible row begins above the lower edge", () => {
  // 16 rows of 36 pixels end at 576.
  assert.equal(lastAbove(566, 36, 240), 15);
  assert.equal(lastAbove(576, 36, 240), 15);
  assert.equal(lastAbove(577, 36, 240), 16);
  assert.equal(lastAbove(1_000_000, 36, 240), 239);
  assert.equal(lastAbove(0, 36, 240), 0);
  assert.equal(lastAbove(566, 36, 0), 0);
});

test("at the end the last page is shown, and every page has a way on and back", () => {
  const end = { first: 194, last: 209 };
  assert.equal(pageShown(end, 50, 210), 5);
  assert.equal(hasPageBehind(end, 5, 50, 210), false);
  assert.equal(pageBefore(194, 50), 4);
  assert.equal(pageBefore(200, 50), 4);
  assert.equal(pageBefore(50, 50), 1);
  assert.equal(pageBefore(20, 50), 1);
  // All rows are visible, so there is nothing to go to.
  assert.equal(pageShown({ first: 0, last: 7 }, 5, 8), 1);
  assert.equal(hasPageBehind({ first: 0, last: 7 }, 1, 5, 8), false);
  assert.equal(hasPageBehind({ first: 0, last: 15 }, 1, 50, 240), true);
  // Before any row is loaded, it is the page in the address.
  assert.equal(pageShown({ first: 150, last: 150 }, 50, 0), 4);
});

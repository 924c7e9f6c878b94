import assert from "node:assert/strict";
import { createHash, createHmac, randomBytes } from "node:crypto";
import { test } from "node:test";

import { fromBase64, fromHex, hmacSha256, sha256, timingSafeEqual, toBase64, toHex } from "../src/crypto.js";

test("digests are those of Node, at every length around a block", () => {
  for (let length = 0; length < 200; length++) {
    const bytes = new Uint8Array(randomBytes(length));
    assert.equal(toHex(sha256(bytes)), createHash("sha256").update(bytes).digest("hex"));
    const key = new Uint8Array(randomBytes(length));
    assert.equal(toHex(hmacSha256(key, bytes)), createHmac("sha256", key).update(bytes).digest("hex"));
  }
  const text = "ÄÖÜ 🦀".repeat(10_000);
  assert.equal(toHex(sha256(text)), createHash("sha256").update(text).digest("hex"));
});

test("a comparison takes what is the same and nothing else", () => {
  assert.equal(timingSafeEqual("abc", new TextEncoder().encode("abc")), true);
  for (const other of ["abd", "ab", "abcd", ""]) assert.equal(timingSafeEqual("abc", other), false);
  assert.equal(timingSafeEqual("", "\0"), false);
});

test("hex and base64 go forth and back", () => {
  const bytes = new Uint8Array(randomBytes(100));
  assert.deepEqual(fromHex(toHex(bytes)), bytes);
  assert.deepEqual(fromBase64(toBase64(bytes)), bytes);
  assert.deepEqual(fromBase64(Buffer.from(bytes).toString("base64url")), bytes);
  assert.throws(() => fromHex("0g"), TypeError);
});

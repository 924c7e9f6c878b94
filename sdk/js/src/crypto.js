// The functions to make and check signatures: SHA-256 (FIPS 180-4), HMAC (RFC 2104), a comparison in constant time, hex and base64.

import { toBytes } from "./text.js";

const BLOCK_BYTES = 64;

/** The standard's constants: the fractional bits of the roots of the first primes. */
function constants(count, exponent) {
  const found = new Uint32Array(count);
  let candidate = 2;
  for (let index = 0; index < count; candidate++) {
    let prime = true;
    for (let factor = 2; factor * factor <= candidate; factor++) prime &&= candidate % factor !== 0;
    if (!prime) continue;
    const root = candidate ** exponent;
    found[index++] = Math.floor((root - Math.floor(root)) * 0x1_0000_0000);
  }
  return found;
}

const START = constants(8, 1 / 2);
const ROUNDS = constants(64, 1 / 3);

function rotate(word, by) {
  return (word >>> by) | (word << (32 - by));
}

function compress(state, view, offset, words) {
  for (let index = 0; index < 16; index++) words[index] = view.getUint32(offset + index * 4);
  for (let index = 16; index < 64; index++) {
    const a = words[index - 15];
    const b = words[index - 2];
    const small0 = rotate(a, 7) ^ rotate(a, 18) ^ (a >>> 3);
    const small1 = rotate(b, 17) ^ rotate(b, 19) ^ (b >>> 10);
    words[index] = words[index - 16] + small0 + words[index - 7] + small1;
  }
  let [a, b, c, d, e, f, g, h] = state;
  for (let index = 0; index < 64; index++) {
    const big1 = rotate(e, 6) ^ rotate(e, 11) ^ rotate(e, 25);
    const choice = (e & f) ^ (~e & g);
    const first = (h + big1 + choice + ROUNDS[index] + words[index]) | 0;
    const big0 = rotate(a, 2) ^ rotate(a, 13) ^ rotate(a, 22);
    const majority = (a & b) ^ (a & c) ^ (b & c);
    h = g;
    g = f;
    f = e;
    e = (d + first) | 0;
    d = c;
    c = b;
    b = a;
    a = (first + big0 + majority) | 0;
  }
  const added = [a, b, c, d, e, f, g, h];
  for (let index = 0; index < 8; index++) state[index] += added[index];
}

export function sha256(data) {
  const bytes = toBytes(data);
  const padded = new Uint8Array(Math.ceil((bytes.length + 9) / BLOCK_BYTES) * BLOCK_BYTES);
  padded.set(bytes);
  padded[bytes.length] = 0x80;
  const view = new DataView(padded.buffer);
  view.setUint32(padded.length - 8, Math.floor(bytes.length / 0x2000_0000));
  view.setUint32(padded.length - 4, (bytes.length << 3) >>> 0);
  const state = Uint32Array.from(START);
  const words = new Uint32Array(64);
  for (let offset = 0; offset < padded.length; offset += BLOCK_BYTES) compress(state, view, offset, words);
  const digest = new Uint8Array(32);
  const out = new DataView(digest.buffer);
  state.forEach((word, index) => out.setUint32(index * 4, word));
  return digest;
}

export function hmacSha256(key, message) {
  let keyBytes = toBytes(key);
  if (keyBytes.length > BLOCK_BYTES) keyBytes = sha256(keyBytes);
  const messageBytes = toBytes(message);
  const inner = new Uint8Array(BLOCK_BYTES + messageBytes.length).fill(0x36, 0, BLOCK_BYTES);
  const outer = new Uint8Array(BLOCK_BYTES + 32).fill(0x5c, 0, BLOCK_BYTES);
  keyBytes.forEach((byte, index) => {
    inner[index] ^= byte;
    outer[index] ^= byte;
  });
  inner.set(messageBytes, BLOCK_BYTES);
  outer.set(sha256(inner), BLOCK_BYTES);
  return sha256(outer);
}

export function timingSafeEqual(a, b) {
  const left = toBytes(a);
  const right = toBytes(b);
  let difference = left.length ^ right.length;
  for (let index = 0; index < left.length; index++) difference |= left[index] ^ (right[index] ?? 0);
  return difference === 0;
}

export function toHex(data) {
  return Array.from(toBytes(data), (byte) => byte.toString(16).padStart(2, "0")).join("");
}

export function fromHex(text) {
  if (text.length % 2 !== 0 || /[^0-9a-f]/i.test(text)) throw new TypeError("The text is not hexadecimal.");
  return Uint8Array.from({ length: text.length / 2 }, (_, index) => Number.parseInt(text.slice(index * 2, index * 2 + 2), 16));
}

export function toBase64(data) {
  let text = "";
  for (const byte of toBytes(data)) text += String.fromCharCode(byte);
  return btoa(text);
}

/** Also accepts the URL-safe alphabet, and text without padding. */
export function fromBase64(text) {
  const binary = atob(text.replaceAll("-", "+").replaceAll("_", "/"));
  return Uint8Array.from(binary, (character) => character.charCodeAt(0));
}

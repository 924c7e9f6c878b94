// The JavaScript globals that the engine lacks. They are imported before the author's code.

import { subscribeDuration } from "wasi:clocks/monotonic-clock@0.2.0";
import { getRandomBytes } from "wasi:random/random@0.2.0";

import { console } from "./console.js";
import { isCalled } from "./phase.js";
import { SyncPromise, enqueue, startTimer, stopTimer } from "./promise.js";
import { URLSearchParams } from "./query.js";
import { TextDecoder, TextEncoder, asBytes } from "./text.js";

/** The host's limit for one request. */
const RANDOM_BYTES_MAX = 65536;

function randomBytes(length) {
  if (!isCalled()) throw new Error("There is no randomness outside of a handler: what is drawn at the build would be the same in every call.");
  return asBytes(getRandomBytes(length));
}

const crypto = {
  getRandomValues(array) {
    if (!ArrayBuffer.isView(array) || array.byteLength > RANDOM_BYTES_MAX) {
      throw new TypeError(`A typed array of at most ${RANDOM_BYTES_MAX} bytes was expected.`);
    }
    new Uint8Array(array.buffer, array.byteOffset, array.byteLength).set(randomBytes(array.byteLength));
    return array;
  },

  randomUUID() {
    const bytes = randomBytes(16);
    bytes[6] = (bytes[6] & 0x0f) | 0x40;
    bytes[8] = (bytes[8] & 0x3f) | 0x80;
    const hex = Array.from(bytes, (byte) => byte.toString(16).padStart(2, "0")).join("");
    return hex.replace(/^(.{8})(.{4})(.{4})(.{4})/, "$1-$2-$3-$4-");
  },
};

/** The engine's own generator got its seed at the build, so it would return the same numbers in every call. */
const buildRandom = Math.random;
let pool = new Uint32Array(0);
let drawn = 0;

function random() {
  if (!isCalled()) return buildRandom();
  if (drawn >= pool.length) {
    pool = crypto.getRandomValues(new Uint32Array(64));
    drawn = 0;
  }
  const high = pool[drawn++] >>> 5;
  const low = pool[drawn++] >>> 6;
  return (high * 0x400_0000 + low) / 2 ** 53;
}

export function sleep(milliseconds) {
  subscribeDuration(Math.ceil(milliseconds * 1e6)).block();
}

function define(holder, members) {
  for (const [name, value] of Object.entries(members)) {
    Object.defineProperty(holder, name, { value, writable: true, configurable: true, enumerable: false });
  }
}

define(Math, { random });
define(globalThis, {
  Promise: SyncPromise,
  TextDecoder,
  TextEncoder,
  URLSearchParams,
  clearTimeout: stopTimer,
  console,
  crypto,
  queueMicrotask: enqueue,
  setTimeout: (run, delayMs, ...args) => startTimer(() => run(...args), delayMs),
});

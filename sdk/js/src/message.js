// The common parts of requests and responses, incoming and outgoing.

import { asBytes, decodeUtf8, toBytes } from "./text.js";

/**
 * The headers in their original order. Upper and lower case in names do not matter. Names are ASCII. Values are bytes, and usually text.
 */
export class Headers {
  constructor(pairs) {
    this.raw = pairs;
  }

  get(name) {
    const values = this.getAll(name);
    return values.length === 0 ? null : values.join(", ");
  }

  getAll(name) {
    const wanted = name.toLowerCase();
    return this.raw.filter(([known]) => known.toLowerCase() === wanted).map(([, value]) => decodeUtf8(value));
  }

  has(name) {
    return this.getAll(name).length > 0;
  }

  *[Symbol.iterator]() {
    for (const [name, value] of this.raw) yield [name.toLowerCase(), decodeUtf8(value)];
  }
}

/** A body, with methods to read it as text or JSON. */
export class Message {
  constructor(headers, body) {
    this.headers = new Headers(headers.map(([name, value]) => [name, asBytes(value)]));
    this.body = asBytes(body);
  }

  text() {
    return decodeUtf8(this.body);
  }

  json() {
    return JSON.parse(this.text());
  }
}

/**
 * Converts headers and a body for the host. Headers are an object whose values are text, bytes, or a list of both. A body that is neither
 * text nor bytes becomes JSON.
 */
export function lowered(headers, body) {
  const pairs = [];
  for (const [name, value] of Object.entries(headers ?? {})) {
    for (const one of Array.isArray(value) ? value : [value]) {
      if (one !== undefined && one !== null) pairs.push([name.toWellFormed(), one instanceof Uint8Array ? one : toBytes(String(one))]);
    }
  }
  if (body === undefined || body === null) return { headers: pairs, body: undefined };
  const isBytes = body instanceof ArrayBuffer || ArrayBuffer.isView(body);
  const type = isBytes ? undefined : typeof body === "string" ? "text/plain; charset=utf-8" : "application/json";
  if (type !== undefined && !pairs.some(([name]) => name.toLowerCase() === "content-type")) {
    pairs.push(["content-type", toBytes(type)]);
  }
  return { headers: pairs, body: toBytes(isBytes || typeof body === "string" ? body : JSON.stringify(body)) };
}

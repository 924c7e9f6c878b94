// The wrapper for every call of the host.

import { ask } from "./error.js";
import { isCalled } from "./phase.js";

export function host(name, call) {
  if (!isCalled()) throw new Error(`${name} was called outside of a handler. Code out there runs once, at the build, without a host.`);
  return ask(call);
}

// If an argument has another type than in the interface, the runtime ends the whole call. An exception names the argument and can be
// caught.

export function text(what, value) {
  if (typeof value !== "string") throw new TypeError(`${what} has to be a string.`);
  return value.toWellFormed();
}

export function texts(what, values) {
  if (!Array.isArray(values)) throw new TypeError(`${what} have to be an array of strings.`);
  return values.map((value) => text(`Each of ${what.toLowerCase()}`, value));
}

export function json(what, value) {
  const written = JSON.stringify(value);
  if (written === undefined) throw new TypeError(`${what} is nothing that JSON can hold.`);
  return written;
}

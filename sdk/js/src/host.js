// What every ask of the host goes through.

import { ask } from "./error.js";
import { isCalled } from "./phase.js";

export function host(name, call) {
  if (!isCalled()) throw new Error(`${name} was called outside of a handler. Code out there runs once, at the build, without a host.`);
  return ask(call);
}

// The runtime ends the whole call on an argument of another type than the interface says; an exception names it and can be caught.

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

// Writes lines to the block's log.

import { log } from "blockbase:block/log@0.1.0";

import { encodeUtf8 } from "./text.js";
import { isCalled } from "./phase.js";

/** A longer line is cut. Otherwise the host would end the call. */
const LINE_BYTES_MAX = 8000;

function cut(message) {
  if (message.length * 3 <= LINE_BYTES_MAX) return message;
  // A UTF-16 code unit takes at most three bytes in UTF-8.
  return encodeUtf8(message).length <= LINE_BYTES_MAX ? message : `${message.slice(0, LINE_BYTES_MAX / 3 - 1).toWellFormed()}…`;
}

/** Outside of a handler there is no host, so nothing is written. */
export function write(level, message, fields) {
  if (!isCalled()) return;
  log(level, cut(String(message).toWellFormed()), fields === undefined ? null : (JSON.stringify(fields) ?? null));
}

export const error = (message, fields) => write("error", message, fields);
export const warn = (message, fields) => write("warn", message, fields);
export const info = (message, fields) => write("info", message, fields);
export const debug = (message, fields) => write("debug", message, fields);
export const trace = (message, fields) => write("trace", message, fields);

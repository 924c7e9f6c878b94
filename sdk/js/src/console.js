// `console`, which writes to the block's log.

import { write } from "./log.js";

const DEPTH_MAX = 4;

function shown(value, depth, seen) {
  switch (typeof value) {
    case "string":
      return depth === 0 ? value : JSON.stringify(value);
    case "bigint":
      return `${value}n`;
    case "function":
      return `[Function ${value.name || "anonymous"}]`;
    case "object":
      break;
    default:
      return String(value);
  }
  if (value === null) return "null";
  if (value instanceof Error) {
    const stack = value.stack ? `\n${value.stack.trimEnd()}` : "";
    const cause = value.cause === undefined ? "" : `\n  because of ${shown(value.cause, depth + 1, seen)}`;
    return `${value.name}: ${value.message}${stack}${cause}`;
  }
  if (value instanceof Date || value instanceof RegExp) return value instanceof Date ? JSON.stringify(value) : String(value);
  if (seen.includes(value)) return "[Circular]";
  if (depth >= DEPTH_MAX) return Array.isArray(value) ? "[Array]" : "[Object]";
  const inside = [...seen, value];
  const show = (inner) => shown(inner, depth + 1, inside);
  if (Array.isArray(value) || ArrayBuffer.isView(value)) return `[${Array.from(value, show).join(", ")}]`;
  if (value instanceof Map) return `Map {${Array.from(value, ([key, inner]) => ` ${show(key)} => ${show(inner)}`).join(",")} }`;
  if (value instanceof Set) return `Set {${Array.from(value, (inner) => ` ${show(inner)}`).join(",")} }`;
  const members = Object.entries(value).map(([key, inner]) => `${key}: ${show(inner)}`);
  return members.length === 0 ? "{}" : `{ ${members.join(", ")} }`;
}

/** Formats the values as one line of text. Placeholders such as `%s` are filled in. */
export function format(values) {
  let rest = values;
  let text = "";
  if (typeof values[0] === "string") {
    rest = values.slice(1);
    text = values[0].replace(/%[sdifjoOc%]/g, (mark) => {
      if (mark === "%%") return "%";
      if (rest.length === 0) return mark;
      const value = rest[0];
      rest = rest.slice(1);
      if (mark === "%c") return "";
      if (mark === "%d" || mark === "%f") return String(Number(value));
      if (mark === "%i") return String(Math.trunc(Number(value)));
      return mark === "%j" ? JSON.stringify(value) : shown(value, mark === "%s" ? 0 : 1, []);
    });
    if (rest.length > 0) text += " ";
  }
  return text + rest.map((value) => shown(value, 0, [])).join(" ");
}

const at = (level) => (...values) => write(level, format(values));

export const console = {
  log: at("info"),
  info: at("info"),
  warn: at("warn"),
  error: at("error"),
  debug: at("debug"),
  trace: at("trace"),
  dir: (value) => write("info", format([value])),
  assert: (condition, ...values) => {
    if (!condition) write("error", format(["Assertion failed:", ...values]));
  },
};

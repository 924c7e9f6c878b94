/**
 * Finds out whether a field would accept a value. For an exact answer, the console asks the server for a plan of an object whose field has
 * the value as its default.
 */
import { queryOptions } from "@tanstack/react-query";
import { api } from "../../../api/client";
import { checkValue, isNumberType } from "../../../api/field-rules";
import { isApiError } from "../../../api/errors";
import { type JsonValue, printJson, readJson, readNumber } from "../../../api/json";
import type { Field } from "../../../api/types";

export interface Verdict {
  ok: boolean;
  message: string;
  /** Whether the browser checked the value instead of the server. */
  isGuess: boolean;
}

/** Converts a typed text to a value of the field. */
export function valueOf(field: Field, text: string): JsonValue {
  if (isNumberType(field.type)) return readNumber(text) ?? text;
  if (field.type === "multi_enum") {
    const parsed = readJson(text);
    // If it is not JSON, it is read as words separated by commas.
    return Array.isArray(parsed) ? parsed : text.split(",").map((each) => each.trim());
  }
  return text;
}

/** `name` is a name that no object has. */
export function tryQuery(field: Field, text: string, name: string) {
  const tried = { ...field, name: /^[a-z][a-z0-9_]{0,47}$/.test(field.name) ? field.name : "value", default: valueOf(field, text) };
  return queryOptions({
    queryKey: ["try", printJson(tried), name],
    queryFn: async ({ signal }): Promise<Verdict> => {
      try {
        await api.POST("/api/v1/objects", { params: { query: { dryRun: true } }, body: { name, fields: [tried] }, signal });
        return { ok: true, message: "A record may have this value.", isGuess: false };
      } catch (error) {
        if (!isApiError(error) || error.code !== "invalid_schema") throw error;
        const refused = /^The default of `[^`]*` is not a valid value of the field: ([^]*)$/.exec(error.message)?.[1];
        if (refused === undefined) return { ok: false, message: `The definition itself is refused: ${error.message}`, isGuess: false };
        return { ok: false, message: refused, isGuess: false };
      }
    },
    staleTime: 60_000,
  });
}

/** For persons who may not plan an object. The browser checks what it can, as in the form of a record, and the pattern. */
export function guess(field: Field, text: string): Verdict {
  const say = (ok: boolean, message: string): Verdict => ({ ok, message, isGuess: true });
  const problem = checkValue(field, valueOf(field, text));
  if (problem !== undefined) return say(false, problem);
  if (field.pattern === undefined) return say(true, "No rule speaks against it.");
  try {
    return patternOf(field.pattern).test(text) ? say(true, "The pattern matches.") : say(false, "The pattern does not match.");
  } catch {
    return say(false, "This browser cannot read the pattern. The server may.");
  }
}

/** Converts a pattern from Rust's syntax to JavaScript's: leading flags, named groups, and anchors of the text. */
export function patternOf(pattern: string): RegExp {
  let flags = "u";
  let rest = pattern;
  const leading = /^\(\?([ims]+)\)/.exec(rest);
  if (leading !== null) {
    flags += leading[1];
    rest = rest.slice(leading[0].length);
  }
  return new RegExp(rest.replaceAll("(?P<", "(?<").replaceAll(/\\A/g, "^").replaceAll(/\\z/g, "$"), [...new Set(flags)].join(""));
}

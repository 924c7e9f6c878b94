/** A filter in words: "status is open and (amount ≥ 10 or owner's name contains an)". */
import { toLocal } from "../../../api/local-time";
import { printJson } from "../../../api/json";
import type { RecordColumn, RecordShape } from "../columns";
import { operatorLabel, takesNothing } from "./conditions";
import { type Group, type Part, type ShapeOf, type Test, columnOf, shapeAt } from "./tree";
import { isSaidVariable, saidVariable } from "./variables";

export interface Word {
  text: string;
  /** The style of the word. `join` is for "and", "or" and "not". */
  as: "field" | "operator" | "value" | "join" | "parenthesis" | "raw";
}

export type TitleOf = (column: RecordColumn, id: string) => string | undefined;

export interface Telling {
  shape: RecordShape | undefined;
  of: ShapeOf;
  titleOf: TitleOf;
  /** Whether long values are shown whole. The person decides by the sentence what others may do. */
  isWhole?: boolean;
}

/** The length at which a value is cut off, in characters. */
const VALUE_MAX = 60;

/** The name of a relation for people. A reference has its own name. Records that refer to this one have the name of their object. */
export function relationLabel(key: string, shape: RecordShape | undefined): string {
  return shape?.relations.get(key)?.label ?? key;
}

/** A path in words: "owner's project's name". */
export function pathLabel(path: string[], last: string, shape: RecordShape | undefined, of: ShapeOf): string {
  const names = path.map((key, index) => relationLabel(key, shapeAt(path.slice(0, index), shape, of)));
  return [...names.map((name) => `${name}'s`), last].join(" ");
}

export function saidValue(value: Test["value"], column: RecordColumn | undefined, titleOf: TitleOf, isWhole = false): string {
  const one = (each: string) => {
    // Without the quotes, the text would look like nothing, or like the value null.
    if (each === "" || each === "null") return `"${each}"`;
    if (column?.choices !== undefined) return column.choices.labelOf(each);
    if (column?.type === "datetime") return toLocal(each).replace("T", " ") || each;
    return (column === undefined ? undefined : titleOf(column, each)) ?? each;
  };
  const said = (each: string) => {
    const words = one(each);
    return isSaidVariable(words) ? `"${words}"` : words;
  };
  const text = Array.isArray(value) ? value.map(said).join(", ") : said(value ?? "");
  return text.length > VALUE_MAX && !isWhole ? `${text.slice(0, VALUE_MAX)}…` : text;
}

export function wordsOfTest(test: Test, { shape, of, titleOf, isWhole }: Telling): Word[] {
  if (test.field === "") return [{ text: "…", as: "operator" }];
  const column = columnOf(test, shape, of);
  const field: Word = { text: pathLabel(test.path, column?.label ?? test.field, shape, of), as: "field" };
  if (column === undefined) return [field, { text: "is no column any more", as: "operator" }];
  const words: Word[] = [field, { text: operatorLabel(test.operator, column), as: "operator" }];
  if (test.variable !== undefined) return [...words, { text: saidVariable(test.variable), as: "value" }];
  return takesNothing(test.operator) ? words : [...words, { text: saidValue(test.value, column, titleOf, isWhole), as: "value" }];
}

/** A part in words. `isAlone` leaves out the parentheses around it. */
export function wordsOf(part: Part, telling: Telling, isAlone = false): Word[] {
  const { shape, of } = telling;
  switch (part.kind) {
    case "test":
      return wordsOfTest(part, telling);
    case "raw":
      return [{ text: printJson(part.json), as: "raw" }];
    case "group": {
      const inner = wordsOfAll(part.parts, part.joined, telling);
      if (part.isNegated) return [{ text: "not", as: "join" }, ...inParentheses(inner)];
      return isAlone || part.parts.length < 2 ? inner : inParentheses(inner);
    }
    case "related": {
      const last = part.path.at(-1)!;
      const name = pathLabel(part.path.slice(0, -1), relationLabel(last, shapeAt(part.path.slice(0, -1), shape, of)), shape, of);
      const target = { ...telling, shape: shapeAt(part.path, shape, of) };
      const quantifier: Word = { text: { some: "some of", none: "none of", every: "all of" }[part.quantifier], as: "operator" };
      const field: Word = { text: name, as: "field" };
      const match: Word = { text: "match", as: "operator" };
      if (part.inner.parts.length === 0) return part.quantifier === "every" ? [quantifier, field, match, { text: "…", as: "operator" }] : [{ text: part.quantifier === "none" ? "there are no" : "there are", as: "operator" }, field];
      const inner = part.inner.isNegated ? wordsOf(part.inner, target) : wordsOfAll(part.inner.parts, part.inner.joined, target);
      return [quantifier, field, match, ...inParentheses(inner)];
    }
  }
}

function inParentheses(words: Word[]): Word[] {
  return [{ text: "(", as: "parenthesis" }, ...words, { text: ")", as: "parenthesis" }];
}

export function wordsOfAll(parts: Part[], joined: Group["joined"], telling: Telling): Word[] {
  return parts.flatMap((part, index) => [...(index === 0 ? [] : [{ text: joined, as: "join" } as const]), ...wordsOf(part, telling, parts.length === 1)]);
}

/** Whether there is a space between two words. There is none inside parentheses at their ends. */
export function isSpaced(before: Word | undefined, word: Word): boolean {
  return before !== undefined && !(before.as === "parenthesis" && before.text === "(") && !(word.as === "parenthesis" && word.text === ")");
}

export function textOf(words: Word[]): string {
  return words.reduce((text, word, index) => `${text}${isSpaced(words[index - 1], word) ? " " : ""}${word.text}`, "");
}

/**
 * What makes a code editor a field for a regular expression: it is one line, and has the colors of the syntax of Rust's `regex`. The colors
 * are a reading aid. Only the server says whether a pattern is correct.
 */
import { type StreamParser, StreamLanguage } from "@codemirror/language";
import type { Transaction, TransactionSpec } from "@codemirror/state";
import { tags } from "@lezer/highlight";

/** A word boundary or an end of the text. Inside a character class, these are no anchors. */
const ANCHOR = /^(?:[\^$|]|\\(?:b\{[a-z-]*\}|[bBAz<>]))/;
/** `\p{Greek}`, `\x{1F600}`, `\u00e9`, `\d`, or a character that loses its meaning. A pattern can also end with the backslash. */
const ESCAPE = /^\\(?:[pPxuU]\{[^}]*\}|x[0-9A-Fa-f]{2}|u[0-9A-Fa-f]{4}|U[0-9A-Fa-f]{8}|.|$)/u;
/** A named set of characters inside a character class, such as `[:alpha:]`. */
const NAMED_SET = /^\[:\^?[a-z]+:\]/;
/** The start of a group with its flags or its name: `(`, `(?:`, `(?i)`, `(?P<year>`. */
const GROUP = /^\((?:\?(?:P?<[^>]*>|[a-zA-Z-]*:?))?/;
const QUANTIFIER = /^(?:[*+?]|\{[\d,]+\})\??/;

interface Place {
  /** How many character classes are open. In Rust they nest: `[a-z&&[^aeiou]]`. */
  open: number;
  /** Whether a class was opened just before, where `]` is an ordinary character. */
  isFirst: boolean;
}

const parser: StreamParser<Place> = {
  name: "pattern",
  startState: () => ({ open: 0, isFirst: false }),
  token(stream, place) {
    const { open, isFirst } = place;
    place.isFirst = false;
    if (open === 0 && stream.match(ANCHOR)) return "anchor";
    if (stream.match(ESCAPE)) return "escape";
    if (open > 0 && stream.match(NAMED_SET)) return "escape";
    if (stream.match(/^\[\^?/)) {
      place.open += 1;
      place.isFirst = true;
      return "class";
    }
    if (open > 0) {
      if (stream.next() !== "]" || isFirst) return "member";
      place.open -= 1;
      return "class";
    }
    if (stream.match(GROUP) || stream.eat(")")) return "group";
    if (stream.match(QUANTIFIER)) return "quantifier";
    return stream.next() === "." ? "escape" : null;
  },
  // A bracket is matched only with one of the same kind. Those in a class or behind a backslash are no groups.
  tokenTable: { anchor: tags.keyword, escape: tags.string, class: tags.string, member: tags.string, group: tags.propertyName, quantifier: tags.number },
};

export const patternLanguage = StreamLanguage.define(parser);

/**
 * Removes the line breaks from what is typed, pasted or dropped, as a field of one line does. Line breaks that the text has already stay,
 * because `(?x)` gives them a meaning.
 */
export function withoutBreaks(edit: Transaction): TransactionSpec | readonly TransactionSpec[] {
  const breaks: { from: number; to: number }[] = [];
  edit.changes.iterChanges((_fromBefore, _toBefore, from, _to, inserted) => {
    for (let line = 1; line < inserted.lines; line += 1) {
      const at = from + inserted.line(line).to;
      breaks.push({ from: at, to: at + 1 });
    }
  });
  return breaks.length === 0 ? edit : [edit, { changes: breaks, sequential: true }];
}

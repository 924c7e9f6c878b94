// The editor of patterns: the parts of a regular expression that it marks, and that it stays one line.
import assert from "node:assert/strict";
import { test } from "node:test";
import { EditorState } from "@codemirror/state";
import { bundled } from "./bundled.mjs";

const { patternLanguage, withoutBreaks } = await bundled("components/pattern-line.ts");

/** The marked parts of a pattern, such as "group (?:". Neighbors of the same kind are one part. */
function parts(text) {
  const found = [];
  patternLanguage.parser.parse(text).iterate({
    enter: ({ name, from, to }) => {
      if (name !== "Document") found.push(`${name} ${text.slice(from, to)}`);
    },
  });
  return found;
}

test("anchors, groups, classes, escapes and quantifiers are told apart", () => {
  assert.deepEqual(parts("^(?P<year>\\d{4})-x+?\\b|\\.$"), ["anchor ^", "group (?P<year>", "escape \\d", "quantifier {4}", "group )", "quantifier +?", "anchor \\b|", "escape \\.", "anchor $"]);
  assert.deepEqual(parts("(?i)(?:a|b)(c).*\\p{Greek}\\x{1F600}"), ["group (?i)(?:", "anchor |", "group )(", "group )", "escape .", "quantifier *", "escape \\p{Greek}\\x{1F600}"]);
  assert.deepEqual(parts("plain"), []);
  assert.deepEqual(parts(""), []);
});

test("classes nest as in Rust, and what they contain has no other meaning", () => {
  assert.deepEqual(parts("[^]a-z&&[^b]]+"), ["class [^", "member ]a-z&&", "class [^", "member b", "class ]]", "quantifier +"]);
  assert.deepEqual(parts("[[:alpha:]\\]]a"), ["class [", "escape [:alpha:]\\]", "class ]"]);
  assert.deepEqual(parts("[(.*$|\\b]"), ["class [", "member (.*$|", "escape \\b", "class ]"]);
});

test("a pattern that is not finished is marked as far as it goes", () => {
  assert.deepEqual(parts("a\\"), ["escape \\"]);
  assert.deepEqual(parts("(?P<na"), ["group (?P"]);
  assert.deepEqual(parts("[a"), ["class [", "member a"]);
  assert.deepEqual(parts("\\p{Gr"), ["escape \\p"]);
});

const state = (doc) => EditorState.create({ doc, extensions: EditorState.transactionFilter.of(withoutBreaks) });

test("what is pasted comes without its line breaks, and the cursor stands behind it", () => {
  const { state: after } = state("xy").update({ changes: { from: 1, insert: "a\r\nb\nc" }, selection: { anchor: 6 } });
  assert.equal(after.doc.toString(), "xabcy");
  assert.equal(after.selection.main.head, 4);
  assert.equal(state("ab").update({ changes: { from: 1, insert: "\n" } }).state.doc.toString(), "ab");
  assert.equal(state("ab").update({ changes: { from: 0, to: 2, insert: "c\nd\n" } }).state.doc.toString(), "cd");
});

test("line breaks that a pattern has already stay", () => {
  const verbose = "(?x)\n[a-z]+ # a word";
  assert.equal(state(verbose).update({ changes: { from: 0, insert: "^\n" } }).state.doc.toString(), `^${verbose}`);
  assert.equal(state("").update({ changes: { from: 0, insert: verbose }, filter: false }).state.doc.toString(), verbose);
});

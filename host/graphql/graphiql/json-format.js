// A plugin of Prettier for what GraphiQL formats as `jsonc`: variables and headers. It stands in for Prettier's JavaScript
// parser and printer, whose half megabyte is of no other use here.
import { applyEdits, format } from "jsonc-parser";

export const parsers = {
  jsonc: {
    astFormat: "jsonc",
    parse: (text) => ({ text }),
    locStart: () => 0,
    locEnd: ({ text }) => text.length,
  },
};

export const printers = {
  jsonc: {
    print: ({ node: { text } }) => applyEdits(text, format(text, undefined, { insertSpaces: true, tabSize: 2 })),
  },
};

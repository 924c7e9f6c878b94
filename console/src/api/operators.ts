// Generated from the server's list of filter operators, whose test compares the two. Do not edit: run
// `BLOCKBASE_WRITE=1 cargo test -p blockbase-query operator`, and build the console.
import type { FieldType } from "./types";

/** What operators take beside their field, and the types of fields that can be compared so. */
export const OPERANDS = {
  ordered: ["text", "email", "url", "slug", "enum", "integer", "big_integer", "decimal", "float", "percentage", "currency", "rating", "boolean", "date", "datetime", "time", "uuid"],
  value: ["text", "email", "url", "slug", "enum", "multi_enum", "integer", "big_integer", "decimal", "float", "percentage", "currency", "rating", "boolean", "date", "datetime", "time", "uuid"],
  text: ["text", "email", "url", "slug", "enum", "multi_enum"],
  list: ["text", "email", "url", "slug", "enum", "multi_enum", "integer", "big_integer", "decimal", "float", "percentage", "currency", "rating", "boolean", "date", "datetime", "time", "uuid"],
  nothing: ["text", "email", "url", "slug", "enum", "multi_enum", "integer", "big_integer", "decimal", "float", "percentage", "currency", "rating", "boolean", "date", "datetime", "time", "json", "uuid"],
} satisfies Record<string, FieldType[]>;

export type Operand = keyof typeof OPERANDS;

/** What each operator takes. */
export const OPERATORS = {
  eq: "value",
  neq: "value",
  gt: "ordered",
  gte: "ordered",
  lt: "ordered",
  lte: "ordered",
  like: "text",
  ilike: "text",
  in: "list",
  nin: "list",
  is_null: "nothing",
  is_not_null: "nothing",
} as const satisfies Record<string, Operand>;

export type Operator = keyof typeof OPERATORS;

/** Further names that the server reads, in lower case. */
export const ALIASES: Record<string, Operator> = {
  "=": "eq",
  "==": "eq",
  "ne": "neq",
  "!=": "neq",
  "<>": "neq",
  ">": "gt",
  ">=": "gte",
  "<": "lt",
  "<=": "lte",
  "contains": "ilike",
  "notin": "nin",
  "null": "is_null",
  "isnull": "is_null",
  "notnull": "is_not_null",
};

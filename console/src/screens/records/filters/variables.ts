/** The variables of conditions. They stand for a value of the caller or for the time of the request. */
import type { FieldType } from "../../../api/types";
import type { RecordColumn } from "../columns";
import { type Operator, takesList, takesNothing } from "./conditions";

const MEANINGS = {
  "$user.id": "the caller's user id",
  "$user.email": "the caller's address, if it is verified",
  "$user.roles": "names of the caller's roles",
  "$key.id": "id of the caller's API key",
  "$now": "the moment of the request",
  "$today": "the day of the request, in UTC",
} as const;

export type Variable = keyof typeof MEANINGS;

export const meaningOf = (variable: Variable): string => MEANINGS[variable];

/** The words for each variable in a sentence. The command line says the same ones. */
const WORDS: Record<Variable, string> = {
  "$user.id": "the caller's id",
  "$user.email": "the caller's address",
  "$user.roles": "the caller's roles",
  "$key.id": "the caller's API key",
  "$now": "the present moment",
  "$today": "today",
};

export const saidVariable = (variable: Variable): string => WORDS[variable];

/** Whether a sentence says a variable with this text. A value that has the same text needs quotes. */
export const isSaidVariable = (text: string): boolean => Object.values(WORDS).includes(text);

export function readVariable(value: unknown): Variable | undefined {
  return typeof value === "string" && Object.hasOwn(MEANINGS, value) ? (value as Variable) : undefined;
}

/** Whether the operator takes the variable. `$user.roles` is a list and only fits operators that take a list. */
export const fitsOperator = (variable: Variable, operator: Operator): boolean => !takesNothing(operator) && takesList(operator) === (variable === "$user.roles");

const TEXTS: FieldType[] = ["text", "email", "slug", "uuid"];
const OF_TYPE: Partial<Record<FieldType, Variable[]>> = {
  date: ["$today"],
  datetime: ["$now"],
  enum: ["$user.roles"],
  uuid: ["$user.id", "$key.id"],
};
const OF_TEXT: Variable[] = ["$user.id", "$user.email", "$user.roles", "$key.id"];

/** The variables that make sense for a column and an operator. */
export function variablesFor(column: RecordColumn, operator: Operator): Variable[] {
  const known = OF_TYPE[column.type] ?? (TEXTS.includes(column.type) ? OF_TEXT : []);
  return known.filter((variable) => fitsOperator(variable, operator));
}

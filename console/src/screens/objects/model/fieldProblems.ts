/** The errors in a field's definition, by key. These are only the errors that the console can find itself. The server checks everything. */
import { isTextType } from "../../../api/field-rules";
import { isLosslessNumber, type JsonValue } from "../../../api/json";
import type { Field } from "../../../api/types";
import { defaultScale, hasBounds, hasOptions, isComparable, isKnownType, typeInfo } from "./fieldTypes";
import { fieldNameProblem } from "./names";

export type FieldKey = keyof Field;
export type FieldProblems = Partial<Record<FieldKey, string>>;

const OPTIONS_MAX = 500;
const OPTION_CHARS_MAX = 200;
const PATTERN_BYTES_MAX = 1_000;
const TEXT_CHARS_MAX = 2_000;
const SCALE_MAX = 12;

const isNumber = (value: JsonValue | undefined) => typeof value === "number" || isLosslessNumber(value);

export function fieldProblems(field: Field, taken: Iterable<string>): FieldProblems {
  const problems: FieldProblems = {};
  const say = (key: FieldKey, problem: string | undefined) => {
    if (problem !== undefined && problems[key] === undefined) problems[key] = problem;
  };
  const label = typeInfo(field.type).label;
  say("name", fieldNameProblem(field.name, taken));
  if (!isKnownType(field.type)) say("type", `No type is called “${String(field.type)}”. Choose one from the list.`);
  for (const key of ["min", "max"] as const) {
    const bound = field[key];
    if (bound === undefined) continue;
    if (!hasBounds(field.type)) say(key, `${label} takes no bounds.`);
    else if (!isNumber(bound)) say(key, "This is not a number.");
    else if (isTextType(field.type) && !/^\d+$/.test(String(bound))) say(key, "A length is a whole number, not negative.");
  }
  if (isNumber(field.min) && isNumber(field.max) && Number(field.min) > Number(field.max)) say("max", "This is less than the minimum.");
  if (field.pattern !== undefined) {
    if (!isTextType(field.type)) say("pattern", `${label} takes no pattern.`);
    else if (new TextEncoder().encode(field.pattern).length > PATTERN_BYTES_MAX) say("pattern", `A pattern has ${PATTERN_BYTES_MAX} bytes at most.`);
    else if (/\(\?<?[=!]/.test(field.pattern)) say("pattern", "Look-ahead and look-behind are not supported: matching takes linear time by construction.");
    else if (/(^|[^\\])(\\\\)*\\[1-9]/.test(field.pattern)) say("pattern", "References to earlier groups are not supported: matching takes linear time by construction.");
  }
  if (hasOptions(field.type)) {
    const options = field.options ?? [];
    if (options.length === 0) say("options", "Add at least one option.");
    if (options.length > OPTIONS_MAX) say("options", `A field has ${OPTIONS_MAX} options at most.`);
    if (options.some((option) => [...option].length > OPTION_CHARS_MAX)) say("options", `An option has ${OPTION_CHARS_MAX} characters at most.`);
    const twice = options.find((option, index) => options.indexOf(option) !== index);
    if (twice !== undefined) say("options", `"${twice}" occurs twice.`);
    const chosen = Array.isArray(field.default) ? field.default : field.default === undefined ? [] : [field.default];
    const odd = chosen.find((each) => !options.includes(String(each)));
    if (odd !== undefined) say("default", `"${String(odd)}" is not one of the options.`);
  }
  if (field.scale !== undefined) {
    if (defaultScale(field.type) === undefined) say("scale", `${label} has no scale.`);
    else if (!Number.isInteger(field.scale) || field.scale < 0 || field.scale > SCALE_MAX) say("scale", `A scale is a whole number from 0 to ${SCALE_MAX}.`);
  }
  if (field.isUnique === true && !isComparable(field.type)) say("isUnique", `${label} cannot be unique: its values cannot be compared.`);
  if (field.indexed === true && !isComparable(field.type)) say("indexed", `${label} cannot be indexed: its values have no order.`);
  for (const key of ["label", "description"] as const) {
    if ([...(field[key] ?? "")].length > TEXT_CHARS_MAX) say(key, `At most ${TEXT_CHARS_MAX} characters.`);
  }
  return problems;
}

/** The key of the field's definition that a message of the server is about. */
export function keyOfMessage(message: string): FieldKey {
  if (/The default of/.test(message)) return "default";
  const named = /`(min|max|pattern|options|scale|isUnique|indexed|required|default|type|label|description)`/.exec(message)?.[1];
  if (named !== undefined) return named as FieldKey;
  if (/\boption\b/.test(message)) return "options";
  if (/cannot become/.test(message)) return "type";
  if (/required/.test(message)) return "required";
  if (/unique|duplicate/.test(message)) return "isUnique";
  if (/Label and description/.test(message)) return "description";
  return "name";
}

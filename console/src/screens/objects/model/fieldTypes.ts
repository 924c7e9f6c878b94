/** The nineteen field types: their values, their rules, and the types that they can change to. */
import {
  IconAlignLeft,
  IconAt,
  IconBraces,
  IconCalendar,
  IconCalendarClock,
  IconClock,
  IconCoin,
  IconDecimal,
  IconFingerprint,
  IconHash,
  IconLink,
  IconList,
  IconListCheck,
  IconNumber123,
  IconNumbers,
  IconPercentage,
  IconSlash,
  IconStar,
  IconToggleLeft,
  type TablerIcon,
} from "@tabler/icons-react";
import { isNumberType, isTextType } from "../../../api/field-rules";
import type { FieldType } from "../../../api/types";

export interface FieldTypeInfo {
  type: FieldType;
  label: string;
  group: "Text" | "Choice" | "Number" | "Time" | "Other";
  icon: TablerIcon;
  /** One line that helps people to choose. */
  hint: string;
  /** An example of a value, as a person would type it. */
  example: string;
}

export const FIELD_TYPES: FieldTypeInfo[] = [
  { type: "text", label: "Text", group: "Text", icon: IconAlignLeft, hint: "Any text, 1 MiB at most.", example: "Buy milk" },
  { type: "email", label: "Email", group: "Text", icon: IconAt, hint: "An email address.", example: "ann@example.com" },
  { type: "url", label: "URL", group: "Text", icon: IconLink, hint: "An address that begins with http:// or https://.", example: "https://example.com" },
  { type: "slug", label: "Slug", group: "Text", icon: IconSlash, hint: "Lower-case words joined by hyphens, for addresses.", example: "first-post" },
  { type: "enum", label: "Choice", group: "Choice", icon: IconList, hint: "One of the options.", example: "open" },
  { type: "multi_enum", label: "Several choices", group: "Choice", icon: IconListCheck, hint: "Any number of the options.", example: "[\"red\", \"blue\"]" },
  { type: "boolean", label: "Yes or no", group: "Choice", icon: IconToggleLeft, hint: "true or false.", example: "true" },
  { type: "integer", label: "Integer", group: "Number", icon: IconHash, hint: "A whole number of 32 bits: about ±2.1 billion.", example: "42" },
  { type: "big_integer", label: "Big integer", group: "Number", icon: IconNumbers, hint: "A whole number of 64 bits, all digits kept.", example: "9007199254740993" },
  { type: "decimal", label: "Decimal", group: "Number", icon: IconDecimal, hint: "An exact number of 18 digits; 6 after the point by default.", example: "3.141592" },
  { type: "float", label: "Float", group: "Number", icon: IconNumber123, hint: "A double: fast, not exact.", example: "0.1" },
  { type: "percentage", label: "Percentage", group: "Number", icon: IconPercentage, hint: "An exact number; 4 digits after the point by default.", example: "12.5" },
  { type: "currency", label: "Currency", group: "Number", icon: IconCoin, hint: "An exact amount; 2 digits after the point by default.", example: "19.99" },
  { type: "rating", label: "Rating", group: "Number", icon: IconStar, hint: "A whole number from 0 to 5, unless you set other bounds.", example: "4" },
  { type: "date", label: "Date", group: "Time", icon: IconCalendar, hint: "A day: YYYY-MM-DD.", example: "2026-02-28" },
  { type: "datetime", label: "Date and time", group: "Time", icon: IconCalendarClock, hint: "A point in time, kept in UTC.", example: "2026-02-28T09:30:00Z" },
  { type: "time", label: "Time", group: "Time", icon: IconClock, hint: "A time of day: HH:MM or HH:MM:SS.", example: "09:30" },
  { type: "json", label: "JSON", group: "Other", icon: IconBraces, hint: "Any JSON. It cannot be filtered, sorted or unique.", example: "{\"a\": 1}" },
  { type: "uuid", label: "UUID", group: "Other", icon: IconFingerprint, hint: "An id of another system. For references to records, add a relation.", example: "67e55044-10b1-426f-9247-bb680e5fe0c8" },
];

const BY_TYPE = new Map(FIELD_TYPES.map((info) => [info.type, info]));

export function typeInfo(type: FieldType): FieldTypeInfo {
  return BY_TYPE.get(type) ?? FIELD_TYPES[0]!;
}

/** Whether the API has a type with this name. The draft may contain a typed text that is not a type. */
export const isKnownType = (type: string): type is FieldType => BY_TYPE.has(type as FieldType);

/** The types that match a text. Matches with the name in the API come first, then those with the plain name. */
export function typesLike(text: string): FieldTypeInfo[] {
  const wanted = text.trim().toLowerCase();
  const word = wanted.replaceAll(/[\s-]+/g, "_");
  const rank = ({ type, label }: FieldTypeInfo): number => {
    const plain = label.toLowerCase();
    const tests = [type === word, type.startsWith(word), type.includes(word), plain.startsWith(wanted), plain.includes(wanted)];
    const at = tests.indexOf(true);
    return at === -1 ? tests.length : at;
  };
  return FIELD_TYPES.filter((info) => rank(info) < 5).sort((one, other) => rank(one) - rank(other));
}

export const hasOptions = (type: FieldType): boolean => type === "enum" || type === "multi_enum";
export const hasBounds = (type: FieldType): boolean => isNumberType(type) || isTextType(type);
/** Whether values have an order. Only such fields can be unique, indexed or part of a group. */
export const isComparable = (type: FieldType): boolean => type !== "json" && type !== "multi_enum";

const DEFAULT_SCALES: Partial<Record<FieldType, number>> = { decimal: 6, currency: 2, percentage: 4 };
export const defaultScale = (type: FieldType): number | undefined => DEFAULT_SCALES[type];

/** The types to which an existing field can change even if the object has records, because every value stays the same. */
export function widerTypes(from: FieldType): FieldType[] {
  const wider: FieldType[] = [];
  if (from === "integer") wider.push("big_integer", "decimal", "float");
  if (from === "big_integer") wider.push("decimal");
  if (from !== "text" && from !== "json" && from !== "multi_enum") wider.push("text");
  return wider;
}

/** The effect of a change of type on existing values. */
export function explainTypeChange(from: FieldType, to: FieldType): string {
  if (!widerTypes(from).includes(to)) return `Possible while the object has no records. Rules that mean nothing to ${typeInfo(to).label.toLowerCase()} go, and so does the default.`;
  if (to === "text")
    return `Every value becomes the text that JSON shows it as. Rules that mean nothing to text go: bounds, options and scale. Text cannot become ${typeInfo(from).label.toLowerCase()} again.`;
  if (to === "float") return "Every value stays what it is. Later values are doubles, so sums may be off in the last digit. A float cannot become an integer again.";
  if (to === "decimal") return "Every value stays what it is, and may have digits after the point from now on. A value with more than 18 digits, those after the point counted, would break it.";
  return "Every value stays what it is. Larger ones are allowed from now on. The way back is closed.";
}

/** Says which types an existing field can change to. */
export function explainTypes(from: FieldType): string {
  const wider = widerTypes(from);
  const label = typeInfo(from).label;
  const way = "Without records it may become any type. Else add a new field, copy the values over, then drop this one.";
  if (wider.length === 0) return `With records ${label.toLowerCase()} stays ${label.toLowerCase()}: no other type holds all of its values. ${way}`;
  const names = wider.map((type) => typeInfo(type).label.toLowerCase());
  return `With records a type only widens, so that no value is lost: ${label.toLowerCase()} to ${names.length === 1 ? names[0] : `${names.slice(0, -1).join(", ")} or ${names.at(-1)}`}. ${way}`;
}

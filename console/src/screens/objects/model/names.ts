/** Checks the names of objects, fields and relations while a person types. The server has the last word. */
import { SYSTEM_COLUMNS } from "../../../api/record-shape";

const NAME_CHARS_MAX = 48;
const PREFIXES = ["svc_", "sqlite_", "pg_"];
const RESERVED_OBJECTS = ["data", "objects", "events", "blocks", "users", "roles", "api_keys", "webhooks", "tasks", "settings"];

function formOf(what: string, name: string): string | undefined {
  if (name === "") return `${what} needs a name.`;
  if (!/^[a-z]/.test(name)) return "Begin with a lower-case letter.";
  const odd = /[^a-z0-9_]/u.exec(name);
  if (odd !== null) return odd[0] === " " ? "A name has no spaces; use _ instead." : "Use lower-case letters, digits and _ only.";
  if (name.length > NAME_CHARS_MAX) return `A name has ${NAME_CHARS_MAX} characters at most; this one has ${name.length}.`;
  const prefix = PREFIXES.find((each) => name.startsWith(each));
  return prefix === undefined ? undefined : `Names that begin with ${prefix} belong to the service. Choose another.`;
}

/** The error in an object's name, as a sentence. `taken` are the names of the other objects. */
export function objectNameProblem(name: string, taken: Iterable<string>): string | undefined {
  const form = formOf("The object", name);
  if (form !== undefined) return form;
  if (RESERVED_OBJECTS.includes(name)) return `"${name}" is a part of the service, and permissions for it are named so. Choose another, such as my_${name}.`;
  for (const other of taken) if (other === name) return `There is an object "${name}" already.`;
  return undefined;
}

/** The error in a field's name. `taken` are the names of the other fields and of the columns of relations. */
export function fieldNameProblem(name: string, taken: Iterable<string>): string | undefined {
  const form = formOf("The field", name);
  if (form !== undefined) return form;
  if ((SYSTEM_COLUMNS as readonly string[]).includes(name)) return `Every record has ${name} already; the server keeps it. Choose another name.`;
  for (const other of taken) if (other === name) return `There is a column "${name}" already.`;
  return undefined;
}

export function relationNameProblem(name: string, taken: Iterable<string>): string | undefined {
  const form = formOf("The relation", name);
  if (form !== undefined) return form;
  for (const other of taken) if (other === name) return `"${name}" is taken by a field or by another relation.`;
  return undefined;
}

/** Makes a name from a label: `due_date` from "Due date". */
export function nameFrom(label: string): string {
  return label
    .normalize("NFKD")
    .replaceAll(/\p{M}/gu, "")
    .toLowerCase()
    .replaceAll(/[^a-z0-9]+/g, "_")
    .replaceAll(/^[^a-z]+|_+$/g, "")
    .slice(0, NAME_CHARS_MAX);
}

/** A list in words: `a`, `a and b`, `a, b and c`. */
export function listed(words: string[]): string {
  return words.length < 2 ? (words[0] ?? "") : `${words.slice(0, -1).join(", ")} and ${words.at(-1)}`;
}

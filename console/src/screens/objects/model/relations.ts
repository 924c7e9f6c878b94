/** Relations between two objects: their descriptions in words, and the columns and keys that they add to the API. */
import { USERS, oneOf } from "../../../api/users-object";
import { SYSTEM_COLUMNS } from "../../../api/record-shape";
import type { Relationship, RelationshipInput } from "../../../api/types";

export type RelationKind = Relationship["kind"];
export type OnDelete = NonNullable<Relationship["onDelete"]>;
export type RelationDefinition = RelationshipInput;

export const KINDS: RelationKind[] = ["many_to_one", "one_to_many", "one_to_one", "many_to_many"];

export const KIND_SYMBOLS: Record<RelationKind, string> = { many_to_one: "n → 1", one_to_many: "1 → n", one_to_one: "1 → 1", many_to_many: "n ↔ n" };
export const KIND_LABELS: Record<RelationKind, string> = { many_to_one: "Many to one", one_to_many: "One to many", one_to_one: "One to one", many_to_many: "Many to many" };

/** The name with its article: "an order", "a task", "a user". */
const a = (name: string) => `${/^[aeio]/.test(oneOf(name)) ? "an" : "a"} ${oneOf(name)}`;
/** The plural: "task records", "users". */
const several = (name: string) => (name === USERS ? USERS : `${name} records`);
const A = (name: string) => a(name).replace("a", "A");

/** Explains the kind of a relation with the names of the two objects. */
export function kindSentence({ kind, source, target }: Pick<RelationDefinition, "kind" | "source" | "target">): string {
  const other = oneOf(target);
  switch (kind) {
    case "many_to_one":
      return `Each ${source} has one ${other}. One ${other} has any number of ${source} records.`;
    case "one_to_many":
      return `Each ${source} has any number of ${several(target)}. Each ${other} has one ${source}.`;
    case "one_to_one":
      return `Each ${source} has one ${other}, and no other ${source} has the same.`;
    case "many_to_many":
      return `Each ${source} is linked with any number of ${several(target)}, and the other way around.`;
  }
}

/** The kinds of relations that may have this target. Users cannot get a column for a relation, so one_to_many is left out. */
export const kindsTo = (target: string): RelationKind[] => (target === USERS ? KINDS.filter((kind) => kind !== "one_to_many") : KINDS);

/** The object with the reference column, and the object that it refers to. */
export function sides({ kind, source, target }: Pick<RelationDefinition, "kind" | "source" | "target">): { holder: string; referenced: string } | null {
  if (kind === "many_to_many") return null;
  return kind === "one_to_many" ? { holder: target, referenced: source } : { holder: source, referenced: target };
}

/** The rule that the server uses if the request has none. */
export function defaultOnDelete({ kind, target, required }: Pick<RelationDefinition, "kind" | "target" | "required">): OnDelete {
  if (kind === "many_to_many") return "cascade";
  if (target === USERS) return required === true ? "cascade" : "set_null";
  return "restrict";
}

export const ON_DELETE_LABELS: Record<OnDelete, string> = { restrict: "Refuse", cascade: "Delete along", set_null: "Clear" };

/** The rules for deletions that fit a relation. No relation can prevent the deletion of a user. */
export function onDeleteChoices({ kind, target, required }: Pick<RelationDefinition, "kind" | "target" | "required">): OnDelete[] {
  if (target === USERS) return kind === "many_to_many" || required === true ? ["cascade"] : ["set_null", "cascade"];
  if (kind === "many_to_many") return ["cascade", "restrict"];
  return required === true ? ["restrict", "cascade"] : ["restrict", "cascade", "set_null"];
}

/** The relation after a choice. A value that no longer fits, or that was only a default, is adapted. */
export function changed(before: RelationDefinition, choice: Partial<RelationDefinition>): RelationDefinition {
  const next = { ...before, ...choice };
  if (!kindsTo(next.target).includes(next.kind)) next.kind = "many_to_one";
  if (next.kind === "many_to_many") delete next.required;
  const rule = next.onDelete ?? defaultOnDelete(next);
  const wasDefault = choice.onDelete === undefined && rule === defaultOnDelete(before);
  const isOther = (before.kind === "many_to_many") !== (next.kind === "many_to_many");
  if (isOther || wasDefault || !onDeleteChoices(next).includes(rule)) next.onDelete = defaultOnDelete(next);
  return next;
}

/** Explains the rule for deletions with the names of the two objects. */
export function onDeleteSentence(relation: Pick<RelationDefinition, "kind" | "source" | "target" | "name">, rule: OnDelete): string {
  const held = sides(relation);
  if (held === null) {
    const { source, target } = relation;
    return rule === "restrict"
      ? `${A(source)} or ${a(target)} that is linked cannot be deleted. Unlink it first.`
      : `Deleting ${a(source)} or ${a(target)} removes its links. The records on the other side stay.`;
  }
  const { holder, referenced } = held;
  const one = holder === referenced ? "another" : a(holder);
  switch (rule) {
    case "restrict":
      return `${A(referenced)} cannot be deleted while ${one} refers to it.`;
    case "cascade":
      return `Deleting ${a(referenced)} deletes every ${holder} that refers to it, and what belongs to those.`;
    case "set_null":
      return `Deleting ${a(referenced)} keeps every ${holder} that refers to it. Their ${relation.name}_id becomes null.`;
  }
}

export interface RelationKey {
  object: string;
  key: string;
  /** The value that records show under the key. */
  shows: string;
}

/** The names that the relation adds: the column, and the key under which each object shows the other. */
export function relationKeys(relation: Pick<RelationDefinition, "kind" | "source" | "target" | "name" | "required">): { column: { object: string; name: string; note: string } | null; keys: RelationKey[] } {
  const { kind, source, target, name, required } = relation;
  const held = sides(relation);
  if (held === null) {
    const keys = [{ object: source, key: name, shows: `array of ${target}` }];
    if (source !== target) keys.push({ object: target, key: name, shows: `array of ${source}` });
    return { column: null, keys };
  }
  const { holder, referenced } = held;
  const note = [`uuid of ${a(referenced)}`, required === true ? "required" : "null allowed", ...(kind === "one_to_one" ? ["unique"] : [])].join(", ");
  return {
    column: { object: holder, name: `${name}_id`, note },
    keys: [
      { object: holder, key: name, shows: required === true ? oneOf(referenced) : `${oneOf(referenced)} or null` },
      { object: referenced, key: `${holder}_by_${name}`, shows: kind === "one_to_one" ? `${holder} or null` : `array of ${holder}` },
    ],
  };
}

/** The columns that relations add to an object, such as `owner_id`. */
export function relationColumns(object: string, relations: Pick<RelationDefinition, "kind" | "source" | "target" | "name">[]): string[] {
  return relations.filter((relation) => sides(relation)?.holder === object).map(({ name }) => `${name}_id`);
}

/** The names that a new relation of the object cannot have, because records already use them as keys. */
export function takenKeys(object: string, fields: string[], relations: RelationDefinition[]): Set<string> {
  const taken = new Set<string>([...fields, ...SYSTEM_COLUMNS]);
  for (const relation of relations) for (const { object: on, key } of relationKeys(relation).keys) if (on === object) taken.add(key);
  return taken;
}

/** A relation in short: "task.owner n → 1 person". */
export function relationTitle({ name, kind, source, target }: Pick<RelationDefinition, "name" | "kind" | "source" | "target">): string {
  return `${source}.${name} ${KIND_SYMBOLS[kind]} ${target}`;
}

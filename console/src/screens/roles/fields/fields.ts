/** The fields of a grant: the state of the grid, its conversion from and to JSON, and sentences. */
import { type FieldLists, type Side, limits, sidesOf } from "../../../api/field-lists";
import { type RecordShape, SYSTEM_COLUMNS } from "../../../api/record-shape";
import type { Action, FieldList, GrantFields } from "../../../api/types";
import { recordOf } from "../../../api/users-object";

/** The choices "All fields", "Only these" and "All except these". */
export type Choice = "all" | "only" | "except";
/** `listed` has the names in the list that is sent. For "all" it is empty. */
export interface SideState {
  choice: Choice;
  listed: ReadonlySet<string>;
}
export type GridState = Record<Side, SideState>;

export interface Row {
  name: string;
  /** A text beside the name: the type, or the target. */
  kind: string;
  /** The lists for which the row has a checkbox. The server decides about the others. */
  sides: readonly Side[];
}

const BOTH: readonly Side[] = ["read", "write"];
const KEPT = "kept by the server";

/**
 * All names that a list of the object can contain. Names in the grant that the object does not have are included, so that they can be
 * removed.
 */
export function rowsOf(shape: RecordShape | undefined, fields: GrantFields | null | undefined): Row[] {
  const own = (shape?.columns ?? []).map(({ name, type, reference }): Row => ({ name, kind: reference === undefined ? type : recordOf(reference.target), sides: BOTH }));
  const links = (shape?.links ?? []).map(({ key, target }): Row => ({ name: key, kind: `links to ${target}`, sides: BOTH }));
  const stamps = (shape?.system ?? SYSTEM_COLUMNS).filter((name) => name !== "id");
  const known: Row[] = [{ name: "id", kind: KEPT, sides: [] }, ...own, ...links, ...stamps.map((name): Row => ({ name, kind: KEPT, sides: ["read"] }))];
  const names = new Set(known.map(({ name }) => name));
  const listed = new Set([fields?.read, fields?.write].flatMap(namesOf));
  const others = [...listed].filter((name) => !names.has(name)).map((name): Row => ({ name, kind: shape === undefined ? "" : "not in this object", sides: BOTH }));
  return [...known, ...others];
}

const namesOf = (list: FieldList | null | undefined): string[] => (list === null || list === undefined ? [] : Array.isArray(list) ? list : list.except);
const namesFor = (side: Side, rows: Row[]): string[] => rows.filter(({ sides }) => sides.includes(side)).map(({ name }) => name);

export function readGrid(fields: GrantFields | null | undefined): GridState {
  const given = limits(fields);
  const of = (list: FieldList | undefined): SideState => ({ choice: list === undefined ? "all" : Array.isArray(list) ? "only" : "except", listed: new Set(namesOf(list)) });
  return { read: of(given?.read), write: of(given?.write) };
}

/**
 * The lists to send. A list is left out if the actions do not need it or if it includes all fields. The names have the order of the rows.
 */
export function printGrid(state: GridState, rows: Row[], sides: readonly Side[]): FieldLists | undefined {
  const of = (side: Side): FieldLists => {
    const { choice, listed } = state[side];
    const names = namesFor(side, rows).filter((name) => listed.has(name));
    return choice === "all" || !sides.includes(side) ? {} : { [side]: choice === "only" ? names : { except: names } };
  };
  return limits({ ...of("read"), ...of("write") });
}

export const isTicked = ({ choice, listed }: SideState, name: string): boolean => choice === "all" || listed.has(name) === (choice === "only");

/** The state after another choice. The ticks stay as they are, except that "all" ticks every field. */
export function choose(state: SideState, choice: Choice, side: Side, rows: Row[]): SideState {
  if (choice === "all") return { choice, listed: new Set() };
  return { choice, listed: new Set(namesFor(side, rows).filter((name) => isTicked(state, name) === (choice === "only"))) };
}

/** The state after these fields are ticked or cleared. If the choice was "all", the cleared fields become the exceptions. */
export function tick(state: SideState, names: readonly string[], ticked: boolean): SideState {
  if (state.choice === "all" && ticked) return state;
  const choice = state.choice === "all" ? "except" : state.choice;
  const listed = new Set(state.listed);
  for (const name of names) {
    if (ticked === (choice === "only")) listed.add(name);
    else listed.delete(name);
  }
  return { choice, listed };
}

/** Says whether the grant will include fields that are added to the object later. Undefined if it includes all fields. */
export function ofNewFields(state: GridState, sides: readonly Side[]): string | undefined {
  if (sides.every((side) => state[side].choice === "all")) return undefined;
  const has = (side: Side) => state[side].choice !== "only";
  const [read, write] = [has("read"), has("write")];
  const words = sides.length === 2 ? (read && write ? "readable and writable" : read ? "readable but not writable" : write ? "writable but not readable" : "neither readable nor writable") : `${has(sides[0]!) ? "" : "not "}${sides[0] === "read" ? "readable" : "writable"}`;
  return `Fields that are added to the object later are ${words}.`;
}

/** The maximum number of names in a sentence. Further ones are only counted. */
const NAMES_MAX = 20;

function named(names: readonly string[]): string {
  const shown = names.slice(0, NAMES_MAX).map((name) => `\`${name}\``);
  const more = names.length - shown.length;
  return `${shown.join(", ")}${more > 0 ? ` and ${more.toLocaleString("en")} more` : ""}`;
}

function saidSide(side: Side, list: FieldList | undefined): string {
  const verb = `${side}s`;
  if (list === undefined) return `${verb} all fields`;
  if (!Array.isArray(list)) return `${verb} all fields except ${named(list.except)}`;
  if (side === "write") return list.length === 0 ? "writes no fields" : `writes ${named(list)}`;
  // The id is always readable.
  return list.length === 0 ? "reads only `id`" : `reads ${named(list)}`;
}

/**
 * The lists in words: "Reads `title`, `state`; writes all fields except `salary`." Undefined if the lists include all fields that the
 * actions need.
 */
export function fieldsInWords(fields: GrantFields | null | undefined, actions: readonly Action[]): string | undefined {
  const given = limits(fields);
  const sides = sidesOf(actions);
  if (given === undefined || sides.every((side) => given[side] === undefined)) return undefined;
  const text = sides.map((side) => saidSide(side, given[side])).join("; ");
  return `${text.slice(0, 1).toUpperCase()}${text.slice(1)}.`;
}

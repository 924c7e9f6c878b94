/** Matches the columns of the file with those of the object. */
import { type Column, namingColumns, type RecordShape, SYSTEM_COLUMNS } from "../../../api/record-shape";

/** The column for each name of the source. Null leaves it out. */
export type Mapping = Record<string, string | null>;

const plain = (name: string) => name.normalize("NFKD").toLowerCase().replaceAll(/[^\p{L}\p{N}]/gu, "");

type ShapeOf = (object: string) => RecordShape | undefined;

/** The unique field in the name of an exported column: `company.name` for `company_id`. */
function namedField(source: string, { reference }: Column, of: ShapeOf): Column | undefined {
  if (reference === undefined || !source.startsWith(`${reference.relation}.`)) return undefined;
  return namingColumns(of(reference.target)?.columns ?? []).find(({ name }) => source === `${reference.relation}.${name}`);
}

/** Matches names that mean the same: `Due on`, `dueOn` and `due_on`, or `Project`, `project.name` and `project_id`. */
export function guessMapping(names: string[], shape: RecordShape, withId: boolean, of: ShapeOf): Mapping {
  // A column of the file that has exactly the name of a column of the object gets it, wherever it is in the file.
  const exact = new Set(shape.columns.flatMap(({ name }) => (names.includes(name) ? [name] : [])));
  const taken = new Set<string>();
  const mapping: Mapping = {};
  const free = (name: string | undefined, source: string) => name !== undefined && !taken.has(name) && (name === source || !exact.has(name));
  for (const name of names) {
    const key = plain(name);
    const isSystem = (SYSTEM_COLUMNS as readonly string[]).some((system) => plain(system) === key);
    const found = isSystem
      ? withId && key === "id"
        ? "id"
        : undefined
      : (shape.columns.find((column) => column.name === name || namedField(name, column, of) !== undefined) ??
          shape.columns.find((column) => plain(column.name) === key) ??
          shape.columns.find((column) => column.label !== undefined && plain(column.label) === key) ??
          shape.columns.find((column) => column.reference !== undefined && plain(column.reference.relation) === key))?.name;
    const mapped = free(found, name) ? found! : null;
    mapping[name] = mapped;
    if (mapped !== null) taken.add(mapped);
  }
  return mapping;
}

/** For each reference column: the unique field that identifies its records, if the file's header names one. */
export function guessLookups(mapping: Mapping, shape: RecordShape, of: ShapeOf): Record<string, Column> {
  const lookups: Record<string, Column> = {};
  for (const [source, name] of Object.entries(mapping)) {
    const column = shape.columns.find((each) => each.name === name);
    const field = column === undefined ? undefined : namedField(source, column, of);
    if (field !== undefined) lookups[column!.name] = field;
  }
  return lookups;
}

/** The keys that an upsert can use: unique columns, groups that are unique together, and the id. */
export function upsertTargets(shape: RecordShape): string[][] {
  return [...shape.columns.filter(({ isUnique }) => isUnique === true).map(({ name }) => [name]), ...shape.uniqueTogether, ["id"]];
}

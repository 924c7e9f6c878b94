/** Which column of the object gets which column of the file. */
import { type Column, namingColumns, type RecordShape, SYSTEM_COLUMNS } from "../../../api/record-shape";

/** By names of the source; null leaves one out. */
export type Mapping = Record<string, string | null>;

const plain = (name: string) => name.normalize("NFKD").toLowerCase().replaceAll(/[^\p{L}\p{N}]/gu, "");

/** Whether an export with names has called a column so: `company.name` for `company_id`. */
const isNamePath = (name: string, { reference }: Column) => reference !== undefined && name.startsWith(`${reference.relation}.`);

/** Names that mean the same are matched: `Due on`, `dueOn` and `due_on`; `Project`, `project.name` and `project_id`. */
export function guessMapping(names: string[], shape: RecordShape, withId: boolean): Mapping {
  const taken = new Set<string>();
  const mapping: Mapping = {};
  const free = (name: string | undefined) => name !== undefined && !taken.has(name);
  for (const name of names) {
    const key = plain(name);
    const isSystem = (SYSTEM_COLUMNS as readonly string[]).some((system) => plain(system) === key);
    const found = isSystem
      ? withId && key === "id"
        ? "id"
        : undefined
      : (shape.columns.find((column) => column.name === name || isNamePath(name, column)) ??
          shape.columns.find((column) => plain(column.name) === key) ??
          shape.columns.find((column) => column.label !== undefined && plain(column.label) === key) ??
          shape.columns.find((column) => column.reference !== undefined && plain(column.reference.relation) === key))?.name;
    mapping[name] = free(found) ? found! : null;
    if (found !== undefined) taken.add(found);
  }
  return mapping;
}

/** By reference column: the unique field that its records are named by, where the file says so. */
export function guessLookups(mapping: Mapping, shape: RecordShape, of: (object: string) => RecordShape | undefined): Record<string, Column> {
  const lookups: Record<string, Column> = {};
  for (const [source, name] of Object.entries(mapping)) {
    const column = shape.columns.find((each) => each.name === name);
    if (column?.reference === undefined || !isNamePath(source, column)) continue;
    const field = namingColumns(of(column.reference.target)?.columns ?? []).find((each) => source === `${column.reference!.relation}.${each.name}`);
    if (field !== undefined) lookups[column.name] = field;
  }
  return lookups;
}

/** What an upsert may go by: unique columns, groups that are unique together, the id. */
export function upsertTargets(shape: RecordShape): string[][] {
  return [...shape.columns.filter(({ isUnique }) => isUnique === true).map(({ name }) => [name]), ...shape.uniqueTogether, ["id"]];
}

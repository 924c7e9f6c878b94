/** Which column of the object gets which column of the file. */
import { type RecordShape, SYSTEM_COLUMNS } from "../../../api/record-shape";

/** By names of the source; null leaves one out. */
export type Mapping = Record<string, string | null>;

const plain = (name: string) => name.normalize("NFKD").toLowerCase().replaceAll(/[^\p{L}\p{N}]/gu, "");

/** Names that mean the same are matched: `Due on`, `dueOn` and `due_on`; `Project` and `project_id`. */
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
      : (shape.columns.find((column) => column.name === name) ??
          shape.columns.find((column) => plain(column.name) === key) ??
          shape.columns.find((column) => column.label !== undefined && plain(column.label) === key) ??
          shape.columns.find((column) => column.reference !== undefined && plain(column.reference.relation) === key))?.name;
    mapping[name] = free(found) ? found! : null;
    if (found !== undefined) taken.add(found);
  }
  return mapping;
}

/** What an upsert may go by: unique columns, groups that are unique together, the id. */
export function upsertTargets(shape: RecordShape): string[][] {
  return [...shape.columns.filter(({ isUnique }) => isUnique === true).map(({ name }) => [name]), ...shape.uniqueTogether, ["id"]];
}

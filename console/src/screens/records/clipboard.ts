/** Converts cells to the text that is copied, and a pasted table to changes. */
import { sameJson } from "../../api/json";
import type { RecordRow } from "../../api/record-paths";
import type { RecordColumn } from "./columns";
import type { CellAt, CellRange } from "./grid/Grid";
import type { Values } from "./useEdits";
import { copyText, parseTsv, printTsv, readText } from "./values";

const ROWS_MAX = 1_000;

export function copyCells({ rowFrom, rowTo, columns }: CellRange, rowAt: (index: number) => RecordRow | undefined): { text: string; rows: number } {
  const lines: string[][] = [];
  for (let index = rowFrom; index <= rowTo && lines.length < ROWS_MAX; index++) {
    const row = rowAt(index);
    if (row !== undefined) lines.push(columns.map(({ id }) => copyText(row[id])));
  }
  return { text: printTsv(lines), rows: lines.length };
}

export interface Pasted {
  changes: { row: RecordRow; values: Values }[];
  /** The reason why nothing can be pasted. */
  problem?: string;
}

/** The changes for a pasted text. A single copied cell fills the whole marked range. */
export function pasteCells(text: string, at: CellAt, range: CellRange, shown: RecordColumn[], rowAt: (index: number) => RecordRow | undefined): Pasted {
  const lines = parseTsv(text);
  const only = lines.length === 1 && lines[0]!.length === 1 ? lines[0]![0]! : null;
  const first = shown.findIndex(({ id }) => id === at.column);
  const height = only === null ? lines.length : range.rowTo - range.rowFrom + 1;
  if (height > ROWS_MAX) return { changes: [], problem: `At most ${ROWS_MAX} rows can be pasted at once. Import the others.` };
  const changes: Pasted["changes"] = [];
  for (let line = 0; line < height; line++) {
    const row = rowAt(at.row + line);
    // Pasting only changes existing cells. It creates no records below the last row.
    if (row === undefined) break;
    const cells = only === null ? lines[line]! : range.columns.map(() => only);
    const values: Values = {};
    for (const [offset, cell] of cells.entries()) {
      const column = shown[first + offset];
      if (column === undefined || column.isReadOnly) continue;
      const read = readText(cell, column, cell === "" && !column.required);
      if ("problem" in read) return { changes: [], problem: `Row ${at.row + line + 1}: ${read.problem}` };
      if (!sameJson(read.value, row[column.id] ?? null)) values[column.id] = read.value;
    }
    if (Object.keys(values).length > 0) changes.push({ row, values });
  }
  return { changes };
}

/** Computes the position of columns: first the pinned ones, then the others in their order. Also finds the first visible row. */
import type { RecordColumn } from "../columns";
import { widthOf } from "../columns";

export interface PlacedColumn {
  id: string;
  column: RecordColumn;
  /** The index among the shown columns. */
  index: number;
  /** In pixels, from the left edge of the row. */
  start: number;
  width: number;
  isPinned: boolean;
  isLastPinned: boolean;
}

/** The widths, the order, and the hidden and pinned columns of a view. A missing member has the default of the object. */
export interface GridLayout {
  /** The shown columns in their order. */
  columns?: string[];
  widths?: Record<string, number>;
  pinned?: string[];
}

export const WIDTH_MIN = 60;
export const WIDTH_MAX = 900;

/**
 * Beside an open panel, a table is narrower than this. Its columns then have at most the width `CRAMPED_MAX`, unless the person has set
 * their width.
 */
const ROOM_ENOUGH = 800;
const CRAMPED_MAX = 140;

export function place(columns: RecordColumn[], layout: GridLayout, from: number, room: number, isNarrow: boolean): { placed: PlacedColumn[]; width: number } {
  const pinned = new Set(isNarrow ? [] : (layout.pinned ?? columns.slice(0, 1).map(({ id }) => id)));
  const ordered = [...columns.filter(({ id }) => pinned.has(id)), ...columns.filter(({ id }) => !pinned.has(id))];
  // The width is 0 until it is measured.
  const widthMax = room > 0 && room < ROOM_ENOUGH ? CRAMPED_MAX : WIDTH_MAX;
  const widths = ordered.map((column) => layout.widths?.[column.id] ?? Math.min(widthOf(column), widthMax));
  if (isNarrow) widths.fill(Math.floor(Math.max(room - from, 120) / Math.max(ordered.length, 1)));
  const sum = widths.reduce((all, width) => all + width, from);
  // The last column takes the remaining width, so that rows end at the edge.
  if (!isNarrow && sum < room && widths.length > 0) widths[widths.length - 1]! += room - sum;
  let start = from;
  const placed = ordered.map((column, index) => {
    const width = widths[index]!;
    const at = { id: column.id, column, index, start, width, isPinned: pinned.has(column.id), isLastPinned: pinned.has(column.id) && !pinned.has(ordered[index + 1]?.id ?? "") };
    start += width;
    return at;
  });
  return { placed, width: Math.max(start, isNarrow ? room : 0) };
}

/** Browsers round the scroll offset to their own pixels. A row of which less than this many pixels show is not visible. */
const SLIVER = 1;

/**
 * The first row that is visible below the head, among rows from `from` to `to`. The head stays above the rows and covers some of them. The
 * rows begin below the head, so at the offset `row * rowHeight`, the row is the first one.
 */
export function firstBelowHead(offset: number, rowHeight: number, from: number, to: number): number {
  return Math.max(from, Math.min(Math.floor((offset + SLIVER) / rowHeight), to));
}

/** The last of `count` rows that begins above the lower edge of the visible part. The edge is in pixels from the start of the rows. */
export function lastAbove(edge: number, rowHeight: number, count: number): number {
  return Math.max(0, Math.min(Math.ceil(edge / rowHeight), count) - 1);
}

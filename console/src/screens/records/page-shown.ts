/** The page that a table shows, and the pages before and behind it. Pages are counted from 1, and rows from 0. */

export interface VisibleRows {
  first: number;
  last: number;
}

/** The page of the first visible row. At the end of the table it is the last page, which may be too short to fill the table. */
export function pageShown({ first, last }: VisibleRows, size: number, count: number): number {
  const row = first > 0 && count > 0 && last >= count - 1 ? count - 1 : first;
  return Math.floor(row / size) + 1;
}

/** The page before. If the table begins within a page, it is that page. */
export function pageBefore(first: number, size: number): number {
  return Math.max(1, Math.ceil(first / size));
}

/** Whether there are rows behind the visible ones. */
export function hasPageBehind({ last }: VisibleRows, page: number, size: number, count: number): boolean {
  return page * size < count && last < count - 1;
}

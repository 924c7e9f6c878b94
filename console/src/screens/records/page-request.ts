/**
 * Decides which request reads a page of a list. This file does not use React.
 *
 * A page that is selected by its number costs the server all rows in front of it. So a page is read by a cursor of the page next to it, if
 * that page is known and has cursors: the first page and the pages that follow from it. A page to which the person jumps is read by its
 * number, and has no cursors.
 */
import type { RecordRow, RecordsPage } from "../../api/record-paths";

/** A page as it was read. */
export interface ReadPage {
  data: RecordRow[];
  hasNextPage: boolean;
  /** The number of all rows. Null if the request did not ask for it. */
  total: number | null;
  /** The cursors of the first and the last row. Null if the page is empty, and if it was read by its number. */
  cursors: { start: string; end: string } | null;
  request: PageRequest;
}

/** `id` is the row of the cursor: the last one of the page before, or the first one of the page behind. */
export type PageRequest = { by: "number" } | { by: "first" } | { by: "after" | "before"; cursor: string; id: string };

export interface Neighbours {
  /** The page before. `undefined` if it is not known, or is about to change. */
  previous: ReadPage | undefined;
  /** The page behind, likewise. */
  next: ReadPage | undefined;
}

/**
 * The request for a page, which is counted from 0. If the page before has cursors, it alone decides, so that the rows of both follow from
 * each other.
 */
export function pageRequest(page: number, takesCursors: boolean, { previous, next }: Neighbours): PageRequest {
  if (!takesCursors) return { by: "number" };
  if (page === 0) return { by: "first" };
  if (previous !== undefined && previous.cursors !== null) {
    const last = previous.data.at(-1);
    return previous.hasNextPage && last !== undefined ? { by: "after", cursor: previous.cursors.end, id: last.id } : { by: "number" };
  }
  const first = next?.data[0];
  return next !== undefined && next.cursors !== null && first !== undefined ? { by: "before", cursor: next.cursors.start, id: first.id } : { by: "number" };
}

/**
 * The parameters of a request. With a filter, another request counts the rows, so that the page does not wait for it. Without one, the page
 * brings the total, and a page by a cursor has to ask for it.
 */
export function pageParameters(request: PageRequest, page: number, size: number, isFiltered: boolean): string {
  const at = request.by === "number" ? `page=${page + 1}` : request.by === "first" ? "cursor=" : `${request.by}=${encodeURIComponent(request.cursor)}`;
  const count = isFiltered ? "&count=none" : request.by === "number" ? "" : "&count=exact";
  return `${at}&pageSize=${size}${count}`;
}

export function readPage(request: PageRequest, { data, pagination }: RecordsPage): ReadPage {
  const { hasNextPage, totalCount, startCursor, endCursor } = pagination;
  return {
    data,
    hasNextPage,
    total: totalCount === null ? null : Number(totalCount),
    cursors: typeof startCursor === "string" && typeof endCursor === "string" ? { start: startCursor, end: endCursor } : null,
    request,
  };
}

interface Reading {
  /** The number of rows on a page. */
  size: number;
  send: (request: PageRequest) => Promise<ReadPage>;
  /** Whether an error may be about the cursor. */
  isRefusal: (error: unknown) => boolean;
}

/**
 * Reads a page. If the server refuses the cursor, the page is read by its number, once. So is a page whose rows are not those of its place:
 * before the page behind it, there may be fewer rows than fill a page, because some were deleted.
 */
export async function readBy(request: PageRequest, { size, send, isRefusal }: Reading): Promise<ReadPage> {
  if (request.by === "number") return send(request);
  try {
    const read = await send(request);
    if (request.by !== "before" || read.data.length === size) return read;
  } catch (error) {
    if (!isRefusal(error)) throw error;
  }
  return send({ by: "number" });
}

/**
 * Whether a page does not follow from the page before it: one of them was read again, and rows were inserted or deleted in between. Between
 * the two, rows may then be missing or appear twice. Pages that were read by their numbers are never said to be apart.
 */
export function areApart(previous: ReadPage, next: ReadPage): boolean {
  if (previous.cursors === null || next.cursors === null) return false;
  const follows = next.request.by === "after" && next.request.id === previous.data.at(-1)?.id;
  const leads = previous.request.by === "before" && previous.request.id === next.data[0]?.id;
  return !follows && !leads;
}

/** The number of rows, as far as pages tell it. */
export interface Extent {
  /** The number of rows that exist at least. After a page that has a next one, it is a guess: one more page. */
  reach: number;
  /** Where the rows end, if one of the pages is the last one. */
  end: number | undefined;
  /** Whether `end` holds against a total: the last page was read by the cursor of another one, so the rows end there. */
  isEndOfChain: boolean;
  /** The end of the last page that was read by the cursor of another one and has a next page. */
  continuesAt: number;
}

export function extentOf(pages: readonly { page: number; read: ReadPage }[], size: number): Extent {
  const extent: Extent = { reach: 0, end: undefined, isEndOfChain: false, continuesAt: 0 };
  for (const { page, read } of pages) {
    const end = page * size + read.data.length;
    const isChained = read.request.by === "after" || read.request.by === "before";
    extent.reach = Math.max(extent.reach, end + (read.hasNextPage ? size : 0));
    if (read.hasNextPage) {
      if (isChained) extent.continuesAt = Math.max(extent.continuesAt, end);
    } else if (read.data.length > 0 || page === 0 || isChained) {
      extent.end = end;
      extent.isEndOfChain = isChained;
    }
  }
  return extent;
}

/**
 * The number of rows to show. `reached` is the largest reach so far. Pages by cursors keep their places when rows are inserted or deleted
 * elsewhere, so where they end, or go on, counts more than the total.
 */
export function countOf({ end, isEndOfChain, continuesAt }: Extent, total: number | null | undefined, size: number, reached: number): number {
  if (end !== undefined && isEndOfChain) return end;
  if (total === null || total === undefined) return end !== undefined && end < reached ? end : reached;
  return continuesAt > 0 && continuesAt >= total ? continuesAt + size : total;
}

/**
 * The base of the console's tables. It has an element that scrolls, gets the focus and renders only the visible rows. It also has the
 * active cell and the keys that move it. Each table adds its columns, its cells and the other effects of keys.
 *
 * There are two tables. `DataTable` shows the rows that it is given, with any content in a cell. The grid of `screens/records` shows a
 * million records that are loaded by pages. It also renders only the visible columns, and has ranges, editors, the clipboard, and columns
 * that a person moves, pins and resizes. Lists need none of this, so they do not load its code.
 */
import { useMediaQuery } from "@mantine/hooks";
import { useVirtualizer } from "@tanstack/react-virtual";
import { type FocusEvent, useCallback, useLayoutEffect, useRef, useState } from "react";

/** The position of a cell. */
export interface CellPosition {
  row: number;
  column: number;
}

export interface TableFrameOptions {
  /** The number of rows in the element that scrolls. */
  count: number;
  columnCount: number;
  rowHeight: number;
  /** The height of the head, which stays above the rows. */
  head: number;
  /** The number of rows that are rendered outside of the visible part. */
  overscan: number;
  /** The row that is active at first. */
  initialRow?: number;
  initialOffset?: number;
}

export function useTableFrame({ count, columnCount, rowHeight, head, overscan, initialRow = 0, initialOffset = 0 }: TableFrameOptions) {
  const scroller = useRef<HTMLDivElement>(null);
  const isNarrow = useMediaQuery("(max-width: 30em)", undefined, { getInitialValueInEffect: false }) ?? false;
  /** The width for the columns, in pixels. */
  const [room, setRoom] = useState(0);
  const [hasFocus, setHasFocus] = useState(false);
  const [active, setActive] = useState<CellPosition>({ row: initialRow, column: 0 });
  useLayoutEffect(() => {
    const element = scroller.current!;
    const observer = new ResizeObserver(() => setRoom(element.clientWidth));
    observer.observe(element);
    setRoom(element.clientWidth);
    return () => observer.disconnect();
  }, []);
  const rows = useVirtualizer({
    count,
    getScrollElement: () => scroller.current,
    estimateSize: () => rowHeight,
    paddingStart: head,
    scrollPaddingStart: head,
    overscan,
    initialOffset,
  });
  useLayoutEffect(() => rows.measure(), [rows, rowHeight]);
  const focus = useCallback(() => scroller.current?.focus({ preventScroll: true }), []);
  const isAtTop = () => (scroller.current?.scrollTop ?? 0) < rowHeight;

  /** The number of rows and columns by which a key moves. Undefined for other keys. */
  const stepOf = (key: string): [number, number] | undefined => {
    const page = Math.max(1, Math.floor(((scroller.current?.clientHeight ?? 400) - head) / rowHeight) - 1);
    const steps: Record<string, [number, number]> = {
      ArrowDown: [1, 0],
      ArrowUp: [-1, 0],
      j: [1, 0],
      k: [-1, 0],
      ArrowRight: [0, 1],
      ArrowLeft: [0, -1],
      PageDown: [page, 0],
      PageUp: [-page, 0],
      Home: [0, -columnCount],
      End: [0, columnCount],
    };
    return steps[key];
  };

  const onFocus = (event: FocusEvent) => setHasFocus(event.target === scroller.current);
  const onBlur = () => setHasFocus(false);
  return { scroller, onFocus, onBlur, isNarrow, room, hasFocus, active, setActive, rows, focus, isAtTop, stepOf };
}

export function clamp(value: number, min: number, max: number): number {
  return Math.max(min, Math.min(max, value));
}

/**
 * What the tables of the console stand on: an element that scrolls, has the focus and draws only the rows in sight; a cell that is
 * active in it, and the keys that move it. Columns, cells and what a key does beside moving are the table's own.
 */
import { useMediaQuery } from "@mantine/hooks";
import { useVirtualizer } from "@tanstack/react-virtual";
import { type FocusEvent, useCallback, useLayoutEffect, useRef, useState } from "react";

/** A cell by its place. */
export interface CellPosition {
  row: number;
  column: number;
}

export interface TableFrameOptions {
  /** Rows of the element that scrolls. */
  count: number;
  columnCount: number;
  rowHeight: number;
  /** Height of the head, which stays above the rows. */
  head: number;
  /** Rows that are drawn outside of the sight. */
  overscan: number;
  /** The row that is active first. */
  initialRow?: number;
  initialOffset?: number;
}

export function useTableFrame({ count, columnCount, rowHeight, head, overscan, initialRow = 0, initialOffset = 0 }: TableFrameOptions) {
  const scroller = useRef<HTMLDivElement>(null);
  const isNarrow = useMediaQuery("(max-width: 30em)", undefined, { getInitialValueInEffect: false }) ?? false;
  /** Pixels that the columns can take. */
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

  /** By how many rows and columns a key moves; undefined for other keys. */
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

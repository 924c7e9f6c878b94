/**
 * The table of records as a grid of cells. It renders only the visible rows and columns, and a row again only if it has changed. The grid
 * has the focus. The arrow keys move the active cell, and with Shift they mark a range.
 *
 * The grid only knows the index of rows. It gets them from `rowAt` and never stores them.
 */
import { IconArrowDown, IconArrowUp, IconDotsVertical } from "@tabler/icons-react";
import { defaultRangeExtractor, useVirtualizer } from "@tanstack/react-virtual";
import { type KeyboardEvent, type MouseEvent, type PointerEvent, type ReactNode, type Ref, useCallback, useEffect, useImperativeHandle, useLayoutEffect, useMemo, useRef, useState } from "react";
import { Popover } from "../../../components/floating";
import { useRowSelection } from "../../../components/useRowSelection";
import { type CellPosition, clamp, useTableFrame } from "../../../components/useTableFrame";
import { isNumberType } from "../../../api/field-rules";
import type { RecordColumn } from "../columns";
import { isSortable } from "../columns";
import type { SortKey } from "../list-query";
import { hintOf } from "./Cell";
import classes from "./Grid.module.css";
import { GridRow, type RowMark, cellId } from "./GridRow";
import { type GridLayout, type PlacedColumn, WIDTH_MAX, WIDTH_MIN, firstBelowHead, lastAbove, place } from "./geometry";
import type { RecordRow } from "../../../api/record-paths";
import type { VisibleRows } from "../page-shown";

export interface CellAt {
  row: number;
  column: string;
}

export interface CellRange {
  rowFrom: number;
  rowTo: number;
  columns: RecordColumn[];
}

export interface GridHandle {
  focus: () => void;
  goTo: (row: number, column?: string) => void;
  scrollToRow: (row: number) => void;
  isAtTop: () => boolean;
  /** The rows that are visible now. `onVisible` reports them after the browser has rendered them. */
  visible: () => VisibleRows;
  active: () => CellAt;
}

export interface GridProps {
  label: string;
  columns: RecordColumn[];
  count: number;
  /** The total for screen readers, if it is known. */
  total: number | undefined;
  rowAt: (index: number) => RecordRow | undefined;
  marks: ReadonlyMap<string, RowMark>;
  titleOf: (column: PlacedColumn, id: string) => string | undefined;
  sort: SortKey[];
  onSort: (sort: SortKey[]) => void;
  layout: GridLayout;
  onLayout: (layout: GridLayout) => void;
  selected: ReadonlySet<string>;
  onSelect: (selected: Set<string>) => void;
  openId: string | undefined;
  onOpen: (row: RecordRow, index: number) => void;
  /** Called for a double click or F2. */
  onEdit: (at: CellAt, row: RecordRow) => void;
  onClear: (range: CellRange) => void;
  onCopy: (range: CellRange, event: ClipboardEvent) => void;
  onPaste: (at: CellAt, range: CellRange, text: string) => void;
  onColumnMenu: (column: RecordColumn, anchor: HTMLElement) => void;
  onCellMenu: (at: CellAt, row: RecordRow, point: { x: number; y: number }) => void;
  onVisible: (first: number, last: number) => void;
  /** The editor of a cell, rendered over it. */
  editing: (CellAt & { element: ReactNode }) | null;
  isBusy: boolean;
  isStale: boolean;
  compact: boolean;
  /** The index of the row that is first at the start. */
  initialRow: number;
  handle: Ref<GridHandle>;
}

const HEAD = 34;
const GUTTER = 64;
/** Browsers can scroll at most about 17 million pixels. So a larger table is shown in parts of this many rows. */
const PART = 300_000;

export function Grid(props: GridProps) {
  const { label, columns, count, total, rowAt, marks, titleOf, sort, onSort, layout, onLayout, selected, onSelect, openId, onOpen, onEdit, onClear, onCopy, onPaste, onColumnMenu, onCellMenu, onVisible, editing, isBusy, isStale, compact, initialRow, handle } = props;
  const rowHeight = compact ? 30 : 36;
  const [part, setPart] = useState(() => Math.floor(initialRow / PART) * PART);
  const countOfPart = Math.max(0, Math.min(count - part, PART));
  const frame = useTableFrame({ count: countOfPart, columnCount: columns.length, rowHeight, head: HEAD, overscan: 6, initialRow, initialOffset: (initialRow - part) * rowHeight });
  const { scroller, isNarrow, room, hasFocus, active, setActive, rows } = frame;
  const selection = useRowSelection((index) => rowAt(index)?.id, selected, onSelect);
  const { toggle } = selection;
  const gutter = isNarrow ? 0 : GUTTER;
  const [anchor, setAnchor] = useState<CellPosition | null>(null);
  const [drag, setDrag] = useState<{ id: string; over: string | null } | null>(null);
  const [resizing, setResizing] = useState<{ id: string; width: number } | null>(null);

  const shown = useMemo(() => (isNarrow ? columns.filter(({ id }) => id !== "id").slice(0, 2) : columns), [columns, isNarrow]);
  const { placed, width } = useMemo(
    () => place(shown, resizing === null ? layout : { ...layout, widths: { ...layout.widths, [resizing.id]: resizing.width } }, gutter, room, isNarrow),
    [shown, layout, resizing, gutter, room, isNarrow],
  );
  const pinnedWidth = placed.reduce((end, { isPinned, start, width: each }) => (isPinned ? start + each : end), gutter);

  const pinnedIndexes = useMemo(() => placed.flatMap(({ isPinned, index }) => (isPinned ? [index] : [])), [placed]);
  const columnVirtualizer = useVirtualizer({
    horizontal: true,
    count: placed.length,
    getScrollElement: () => scroller.current,
    estimateSize: (index) => placed[index]?.width ?? 180,
    paddingStart: gutter,
    scrollPaddingStart: pinnedWidth,
    overscan: 3,
    rangeExtractor: (range) => {
      const indexes = defaultRangeExtractor(range);
      return [...new Set([...pinnedIndexes, ...indexes])].sort((one, other) => one - other);
    },
  });
  useLayoutEffect(() => columnVirtualizer.measure(), [columnVirtualizer, placed]);
  // With a filter, there may be fewer rows than the start of this part.
  if (part > 0 && count > 0 && part >= count) setPart(Math.floor((count - 1) / PART) * PART);

  const visibleKey = columnVirtualizer.getVirtualIndexes().join();
  const visibleColumns = useMemo(
    () => (visibleKey === "" ? [] : visibleKey.split(",").flatMap((index) => placed[Number(index)] ?? [])),
    [visibleKey, placed],
  );
  const items = rows.getVirtualItems();
  const range = rows.range;
  // The range begins with the rows behind the head.
  const first = part + (range === null ? 0 : firstBelowHead(rows.scrollOffset ?? 0, rowHeight, range.startIndex, range.endIndex));
  const last = part + (range?.endIndex ?? 0);
  const hasRange = range !== null;
  useEffect(() => {
    if (hasRange) onVisible(first, last);
  }, [hasRange, first, last, onVisible]);

  const pending = useRef<number | null>(null);
  const scrollToRow = useCallback(
    (row: number) => {
      const wanted = Math.floor(row / PART) * PART;
      if (wanted === part) rows.scrollToIndex(row - part, { align: "start" });
      else {
        pending.current = row;
        setPart(wanted);
      }
    },
    [part, rows],
  );
  useLayoutEffect(() => {
    if (pending.current === null) return;
    rows.scrollToIndex(pending.current - part, { align: "start" });
    pending.current = null;
  }, [part, rows]);

  const moveTo = useCallback(
    (row: number, column: number, extend: boolean) => {
      const to = { row: clamp(row, 0, Math.max(count - 1, 0)), column: clamp(column, 0, Math.max(placed.length - 1, 0)) };
      setAnchor((now) => (extend ? (now ?? active) : null));
      setActive(to);
      const wanted = Math.floor(to.row / PART) * PART;
      if (wanted === part) rows.scrollToIndex(to.row - part);
      else {
        pending.current = to.row;
        setPart(wanted);
      }
      if (placed[to.column]?.isPinned === false) columnVirtualizer.scrollToIndex(to.column);
      return to;
    },
    [active, setActive, count, placed, part, rows, columnVirtualizer],
  );
  const columnOf = useCallback((column: number) => placed[clamp(column, 0, placed.length - 1)], [placed]);
  useImperativeHandle(handle, () => ({
    focus: frame.focus,
    goTo: (row, column) => {
      moveTo(row, column === undefined ? active.column : Math.max(0, placed.findIndex(({ id }) => id === column)), false);
      frame.focus();
    },
    scrollToRow,
    isAtTop: () => part === 0 && frame.isAtTop(),
    visible: () => {
      const { scrollTop, offsetHeight } = scroller.current!;
      const end = lastAbove(scrollTop + offsetHeight - HEAD, rowHeight, countOfPart);
      return { first: part + firstBelowHead(scrollTop, rowHeight, 0, end), last: part + end };
    },
    active: () => ({ row: active.row, column: columnOf(active.column)?.id ?? "id" }),
  }));

  const begin = anchor ?? active;
  const rowFrom = Math.min(begin.row, active.row);
  const rowTo = Math.max(begin.row, active.row);
  const columnFrom = Math.min(begin.column, active.column);
  const columnTo = Math.max(begin.column, active.column);
  const cells = (): CellRange => ({ rowFrom, rowTo, columns: placed.slice(columnFrom, columnTo + 1).map(({ column }) => column) });

  const resizeBy = (by: number) => {
    const at = columnOf(active.column);
    if (at !== undefined) onLayout({ ...layout, widths: { ...layout.widths, [at.id]: clamp(at.width + by, WIDTH_MIN, WIDTH_MAX) } });
  };
  const keyDown = (event: KeyboardEvent) => {
    // If the focus is in an editor, a button or a check box, the keys belong to that element.
    if (event.target !== scroller.current || event.nativeEvent.isComposing) return;
    // The grid keeps the focus until the editor of a cell is loaded. These keys were typed for the editor, so they neither clear the cell
    // nor open the row.
    if (editing !== null) return event.stopPropagation();
    const row = rowAt(active.row);
    const column = columnOf(active.column);
    const done = () => {
      event.preventDefault();
      event.stopPropagation();
    };
    const extend = event.shiftKey;
    if (event.altKey && event.shiftKey && (event.key === "ArrowLeft" || event.key === "ArrowRight")) {
      resizeBy(event.key === "ArrowRight" ? 16 : -16);
      return done();
    }
    if (event.ctrlKey || event.metaKey) {
      const far: Record<string, [number, number]> = { Home: [0, 0], End: [count - 1, placed.length - 1], ArrowUp: [0, active.column], ArrowDown: [count - 1, active.column], ArrowLeft: [active.row, 0], ArrowRight: [active.row, placed.length - 1] };
      const to = far[event.key];
      if (to !== undefined) moveTo(to[0], to[1], extend);
      else if (event.key.toLowerCase() === "a") {
        const all = new Set(selected);
        for (let index = Math.max(0, first - 500); index <= last + 500 && index < count; index++) {
          const each = rowAt(index);
          if (each !== undefined) all.add(each.id);
        }
        onSelect(all);
      } else if (event.key.toLowerCase() === "c" && !event.shiftKey) document.execCommand("copy");
      else return;
      return done();
    }
    if (event.altKey) return;
    const step = frame.stepOf(event.key);
    if (step !== undefined) {
      const to = moveTo(active.row + step[0], active.column + step[1], extend && event.key.length > 1);
      const next = rowAt(to.row);
      // The inspector shows the newly active row.
      if (openId !== undefined && to.row !== active.row && next !== undefined) onOpen(next, to.row);
      return done();
    }
    switch (event.key) {
      case "Enter":
        if (row !== undefined) onOpen(row, active.row);
        return done();
      case "F2":
        if (row !== undefined && column !== undefined) onEdit({ row: active.row, column: column.id }, row);
        return done();
      case " ":
        toggle(active.row, extend);
        return done();
      case "Delete":
      case "Backspace":
        onClear(cells());
        return done();
      case "Escape":
        if (anchor !== null) setAnchor(null);
        else if (!selection.clear()) return;
        return done();
      case "ContextMenu":
      case "F10":
        if (event.key === "F10" && !event.shiftKey) return;
        if (row !== undefined && column !== undefined) {
          const box = document.getElementById(cellId(active.row, active.column))?.getBoundingClientRect();
          onCellMenu({ row: active.row, column: column.id }, row, { x: (box?.left ?? 0) + 24, y: box?.bottom ?? 0 });
        }
        return done();
    }
  };

  // Without selected text, browsers send a copy event to different elements. So the page listens while the grid has the focus.
  const clipboard = useRef<{ copy: (event: ClipboardEvent) => void; paste: (event: ClipboardEvent) => void }>(null);
  useEffect(() => {
    clipboard.current = {
      copy: (event) => onCopy(cells(), event),
      paste: (event) => {
        const column = columnOf(columnFrom);
        const text = event.clipboardData?.getData("text/plain") ?? "";
        if (column === undefined || text === "") return;
        event.preventDefault();
        onPaste({ row: rowFrom, column: column.id }, cells(), text);
      },
    };
  });
  useEffect(() => {
    if (!hasFocus) return;
    const copied = (event: ClipboardEvent) => clipboard.current?.copy(event);
    const pasted = (event: ClipboardEvent) => clipboard.current?.paste(event);
    document.addEventListener("copy", copied);
    document.addEventListener("paste", pasted);
    return () => {
      document.removeEventListener("copy", copied);
      document.removeEventListener("paste", pasted);
    };
  }, [hasFocus]);

  const cellOf = (target: EventTarget | null): CellPosition | null => {
    if (!(target instanceof Element) || target.closest("[data-editor]") !== null) return null;
    const cell = target.closest<HTMLElement>("[data-cell]");
    const row = target.closest<HTMLElement>("[data-row]");
    return row === null ? null : { row: Number(row.dataset.row), column: cell === null ? -1 : Number(cell.dataset.cell) };
  };
  const marking = useRef(false);
  const pointerDown = (event: PointerEvent) => {
    if (event.button !== 0) return;
    const at = cellOf(event.target);
    if (at === null || at.column === -1 || (event.target as Element).closest("[data-act]") !== null) return;
    setAnchor(event.shiftKey ? (anchor ?? active) : null);
    setActive(at);
    marking.current = event.pointerType === "mouse" && !isNarrow;
  };
  const pointerMove = (event: PointerEvent) => {
    if (!marking.current) return;
    if ((event.buttons & 1) === 0) {
      marking.current = false;
      return;
    }
    const at = cellOf(event.target);
    if (at === null || at.column === -1 || (at.row === active.row && at.column === active.column)) return;
    setAnchor(anchor ?? active);
    setActive(at);
  };
  const click = (event: MouseEvent) => {
    const at = cellOf(event.target);
    if (at === null) return;
    const act = (event.target as Element).closest<HTMLElement>("[data-act]")?.dataset.act;
    const row = rowAt(at.row);
    if (act === "select") {
      toggle(at.row, event.shiftKey);
      setActive({ row: at.row, column: active.column });
      frame.focus();
    } else if (row !== undefined && (act === "open" || isNarrow || (openId !== undefined && !event.shiftKey && anchor === null))) {
      setActive({ row: at.row, column: at.column === -1 ? active.column : at.column });
      onOpen(row, at.row);
    }
  };
  const doubleClick = (event: MouseEvent) => {
    const at = cellOf(event.target);
    const row = at === null ? undefined : rowAt(at.row);
    const column = at === null || at.column === -1 ? undefined : columnOf(at.column);
    if (at !== null && row !== undefined && column !== undefined && !isNarrow) onEdit({ row: at.row, column: column.id }, row);
  };
  const contextMenu = (event: MouseEvent) => {
    const at = cellOf(event.target);
    const row = at === null ? undefined : rowAt(at.row);
    const column = at === null || at.column === -1 ? undefined : columnOf(at.column);
    if (at === null || row === undefined || column === undefined) return;
    event.preventDefault();
    setActive(at);
    setAnchor(null);
    onCellMenu({ row: at.row, column: column.id }, row, { x: event.clientX, y: event.clientY });
  };
  // A tooltip is made only when it is needed, because hundreds of cells are rendered and the pointer visits few of them.
  const mouseOver = (event: MouseEvent) => {
    const at = cellOf(event.target);
    if (at === null || at.column === -1) return;
    const cell = (event.target as Element).closest<HTMLElement>("[data-cell]")!;
    const placedColumn = placed[at.column];
    const row = rowAt(at.row);
    if (placedColumn === undefined || row === undefined) cell.removeAttribute("data-tip");
    else {
      const value = row[placedColumn.id];
      cell.dataset.tip = hintOf(value, placedColumn.column, typeof value === "string" ? titleOf(placedColumn, value) : undefined);
    }
  };

  const sortBy = (id: string, add: boolean) => {
    const now = sort.find((each) => each.id === id);
    const others = add ? sort : [];
    if (now === undefined) onSort([...others, { id, descending: false }]);
    else if (!now.descending) onSort(add ? sort.map((each) => (each.id === id ? { id, descending: true } : each)) : [{ id, descending: true }]);
    else onSort(add ? sort.filter((each) => each.id !== id) : []);
  };
  const dropOn = (target: string) => {
    if (drag === null || drag.id === target) return;
    const order = placed.map(({ id }) => id).filter((id) => id !== drag.id);
    order.splice(order.indexOf(target), 0, drag.id);
    const pinned = new Set(placed.filter(({ isPinned }) => isPinned).map(({ id }) => id));
    if (pinned.has(target)) pinned.add(drag.id);
    else pinned.delete(drag.id);
    onLayout({ ...layout, columns: order, pinned: order.filter((id) => pinned.has(id)) });
  };
  const resize = (at: PlacedColumn, event: PointerEvent<HTMLElement>) => {
    const grip = event.currentTarget;
    const start = event.clientX;
    let now = at.width;
    grip.setPointerCapture(event.pointerId);
    grip.dataset.active = "true";
    const moved = (pointer: globalThis.PointerEvent) => {
      now = clamp(Math.round(at.width + pointer.clientX - start), WIDTH_MIN, WIDTH_MAX);
      setResizing({ id: at.id, width: now });
    };
    const ended = () => {
      delete grip.dataset.active;
      grip.removeEventListener("pointermove", moved);
      grip.removeEventListener("pointerup", ended);
      grip.removeEventListener("pointercancel", ended);
      setResizing(null);
      onLayout({ ...layout, widths: { ...layout.widths, [at.id]: now } });
    };
    grip.addEventListener("pointermove", moved);
    grip.addEventListener("pointerup", ended);
    grip.addEventListener("pointercancel", ended);
    event.preventDefault();
    event.stopPropagation();
  };

  const loadedRows = items.map((item) => rowAt(part + item.index));
  const here = loadedRows.filter((row) => row !== undefined);
  const { all, some } = selection.stateOf(here, ({ id }) => id);
  const keys = new Set<string>();
  const isMarking = anchor !== null && (anchor.row !== active.row || anchor.column !== active.column);
  const editedColumn = editing === null ? undefined : placed.find(({ id }) => id === editing.column);

  return (
    <div
      ref={scroller}
      className={classes.scroller}
      role="grid"
      aria-label={label}
      aria-rowcount={total === undefined ? -1 : total + 1}
      aria-colcount={placed.length + 1}
      aria-multiselectable
      aria-busy={isBusy || undefined}
      aria-activedescendant={hasFocus && items.some((item) => part + item.index === active.row) ? cellId(active.row, active.column) : undefined}
      data-stale={isStale || undefined}
      data-focused={hasFocus || undefined}
      tabIndex={0}
      onKeyDown={keyDown}
      onFocus={frame.onFocus}
      onBlur={frame.onBlur}
      onPointerDown={pointerDown}
      onPointerMove={pointerMove}
      onClick={click}
      onDoubleClick={doubleClick}
      onContextMenu={contextMenu}
      onMouseOver={mouseOver}
    >
      <div className={classes.grid} style={{ width, height: rows.getTotalSize() }}>
        <div className={classes.head} role="rowgroup" style={{ width }}>
          <div className={classes.headRow} role="row" aria-rowindex={1}>
            {gutter > 0 && (
              <div className={`${classes.gutter} ${classes.headGutter}`} role="columnheader" aria-label="Selection" aria-colindex={1} style={{ width: gutter }}>
                <input
                  type="checkbox"
                  className={classes.check}
                  tabIndex={-1}
                  aria-label="Select the rows that are shown"
                  checked={all}
                  ref={(box) => {
                    if (box !== null) box.indeterminate = some;
                  }}
                  onChange={() => {
                    const next = new Set(selected);
                    for (const { id } of here) {
                      if (all) next.delete(id);
                      else next.add(id);
                    }
                    onSelect(all && next.size > 0 && here.length < next.size ? new Set() : next);
                  }}
                />
              </div>
            )}
            {visibleColumns.map((at) => {
              const { column } = at;
              const place = sort.findIndex(({ id }) => id === column.id);
              const by = sort[place];
              const Arrow = by?.descending === true ? IconArrowDown : IconArrowUp;
              return (
                <div
                  key={column.id}
                  role="columnheader"
                  aria-colindex={at.index + 2}
                  aria-sort={by === undefined ? undefined : by.descending ? "descending" : "ascending"}
                  className={`${classes.th}${isNumberType(column.type) ? ` ${classes.numeric}` : ""}${at.isPinned ? ` ${classes.pinned}` : ""}${at.isLastPinned ? ` ${classes.pinnedLast}` : ""}`}
                  style={{ left: at.start, width: at.width }}
                  data-column={column.id}
                  data-drop={drag?.over === column.id || undefined}
                  draggable={!isNarrow}
                  onDragStart={(event) => {
                    event.dataTransfer.effectAllowed = "move";
                    event.dataTransfer.setData("text/plain", column.id);
                    setDrag({ id: column.id, over: null });
                  }}
                  onDragOver={(event) => {
                    if (drag === null || drag.id === column.id) return;
                    event.preventDefault();
                    if (drag.over !== column.id) setDrag({ ...drag, over: column.id });
                  }}
                  onDrop={(event) => {
                    event.preventDefault();
                    dropOn(column.id);
                    setDrag(null);
                  }}
                  onDragEnd={() => setDrag(null)}
                >
                  <button
                    type="button"
                    className={classes.thLabel}
                    tabIndex={-1}
                    title={`${column.label} · ${column.relation === undefined ? column.type : `→ ${column.relation.target}`}${column.description === undefined ? "" : `\n${column.description}`}`}
                    disabled={!isSortable(column)}
                    onClick={(event) => sortBy(column.id, event.shiftKey)}
                  >
                    <span className="ellipsis" dir="auto">{column.label}</span>
                    {by !== undefined && <Arrow size={13} aria-hidden="true" />}
                    {by !== undefined && sort.length > 1 && <small>{place + 1}</small>}
                  </button>
                  {!isNarrow && (
                    <button type="button" className={classes.thMenu} tabIndex={-1} aria-label={`Menu of ${column.label}`} onClick={(event) => onColumnMenu(column, event.currentTarget)}>
                      <IconDotsVertical size={13} aria-hidden="true" />
                    </button>
                  )}
                  {!isNarrow && <div className={classes.resize} aria-hidden="true" onPointerDown={(event) => resize(at, event)} />}
                </div>
              );
            })}
          </div>
        </div>
        <div role="rowgroup">
          {items.map((item, place) => {
            const index = part + item.index;
            const row = loadedRows[place];
            // A row can move to the next page between two requests. Its id may then occur twice for a moment.
            const key = row === undefined || keys.has(row.id) ? `at-${index}` : row.id;
            keys.add(key);
            const isMarked = isMarking && index >= rowFrom && index <= rowTo;
            return (
              <GridRow
                key={key}
                index={index}
                top={item.start}
                height={rowHeight}
                width={width}
                gutter={gutter}
                row={row}
                columns={visibleColumns}
                mark={row === undefined ? undefined : marks.get(row.id)}
                titleOf={titleOf}
                isSelected={row !== undefined && selected.has(row.id)}
                isOpen={row !== undefined && row.id === openId}
                isNarrow={isNarrow}
                active={index === active.row ? active.column : -1}
                from={isMarked ? columnFrom : -1}
                to={isMarked ? columnTo : -1}
              />
            );
          })}
        </div>
        {editing !== null && editedColumn !== undefined && (
          <Popover opened withinPortal position="bottom-start" offset={-rowHeight} shadow="md" trapFocus={false} closeOnEscape={false} closeOnClickOutside={false} withRoles={false} width="auto">
            <Popover.Target>
              <div
                className={classes.editorAnchor}
                style={{ top: HEAD + (editing.row - part) * rowHeight, left: editedColumn.isPinned ? editedColumn.start + (scroller.current?.scrollLeft ?? 0) : editedColumn.start, width: editedColumn.width, height: rowHeight }}
              />
            </Popover.Target>
            <Popover.Dropdown className={classes.editor} data-editor role="dialog" aria-label={`Edit ${editedColumn.column.label}`} style={{ minWidth: Math.max(editedColumn.width, 240) }}>
              {editing.element}
            </Popover.Dropdown>
          </Popover>
        )}
      </div>
    </div>
  );
}

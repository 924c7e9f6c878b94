import { Checkbox } from "@mantine/core";
import { useMediaQuery } from "@mantine/hooks";
import { IconArrowDown, IconArrowUp, IconChevronRight } from "@tabler/icons-react";
import {
  type ColumnDef,
  columnOrderingFeature,
  columnPinningFeature,
  columnSizingFeature,
  columnVisibilityFeature,
  tableFeatures,
  useTable,
} from "@tanstack/react-table";
import { useVirtualizer } from "@tanstack/react-virtual";
import { type KeyboardEvent, type ReactNode, memo, useCallback, useEffect, useImperativeHandle, useLayoutEffect, useMemo, useRef, useState } from "react";
import classes from "./DataTable.module.css";

export interface Column<Row> {
  /** Stable: the name of the field. */
  id: string;
  header: string;
  /** Shown on hover of the header. */
  hint?: string;
  cell: (row: Row) => ReactNode;
  /** Pixels; 180 by default. */
  width?: number;
  minWidth?: number;
  /** Numbers stand right. */
  numeric?: boolean;
  sortable?: boolean;
}

export interface Sort {
  id: string;
  descending: boolean;
}

/** Widths, order and hidden columns, as a saved view keeps them. */
export interface TableLayout {
  widths?: Record<string, number>;
  order?: string[];
  hidden?: string[];
}

export interface CellPosition {
  row: number;
  column: number;
}

export interface DataTableHandle {
  focusCell: (position: CellPosition) => void;
  /** Focus back into the table, where it was. */
  focus: () => void;
  scrollToTop: () => void;
  isAtTop: () => boolean;
}

export interface DataTableProps<Row> {
  /** What the table lists: "Tasks". */
  label: string;
  columns: Column<Row>[];
  rows: Row[];
  rowId: (row: Row) => string;
  /** All matching rows, where only a page of them is here. */
  totalCount?: number;
  sort?: Sort[];
  /** A click on a header: this column, then descending, then none. With Shift it is added to the others. */
  onSort?: (sort: Sort[]) => void;
  layout?: TableLayout;
  onLayout?: (layout: TableLayout) => void;
  selected?: ReadonlySet<string>;
  onSelect?: (selected: Set<string>) => void;
  /** The row that the inspector shows. */
  openId?: string | undefined;
  /** `Enter`, or a click on a row. */
  onOpen?: (row: Row) => void;
  /** `Enter` or F2 or a double click on a cell that can be edited; return false to let the row open. */
  onEdit?: (row: Row, columnId: string, position: CellPosition) => boolean;
  /** Draws a cell instead of `cell`, such as the editor of the cell that is edited. */
  renderCell?: (row: Row, columnId: string) => ReactNode | undefined;
  /** Of a row: `gone` (left the view, with the reason as text), `new`; of cells: those that changed a moment ago. */
  rowState?: (row: Row) => { gone?: string; isNew?: boolean; changed?: ReadonlySet<string> } | undefined;
  compact?: boolean;
  /** Columns that stay at 360 px; the first two by default. */
  narrowColumns?: string[];
  /** Further keys of the focused cell; return true where it did something. */
  onKey?: (event: KeyboardEvent, row: Row | undefined, columnId: string | undefined) => boolean;
  footer?: ReactNode;
  handle?: React.Ref<DataTableHandle>;
}

const WIDTH = 180;
const WIDTH_MIN = 60;
const WIDTH_MAX = 900;
const CHECK_WIDTH = 40;
/** How far columns give way so that a list fits. */
const SHRINK_MIN = 0.7;
const NONE: ReadonlySet<string> = new Set();
/** The row of a focused header. */
const HEADER = -1;
/** Pixels by which a key widens a column. */
const KEY_STEP = 16;

const features = tableFeatures({ columnSizingFeature, columnOrderingFeature, columnVisibilityFeature, columnPinningFeature });

/**
 * A table of which only what is visible is drawn, rows and columns: 100 columns by 100 rows scroll at 60 frames a second. The first
 * column stays. Arrows move the focused cell; `Enter` opens, `Space` selects, `J` and `K` move by rows.
 */
export function DataTable<Row extends object>(props: DataTableProps<Row>) {
  const { label, columns, rows, rowId, totalCount, sort = [], onSort, layout = {}, onLayout, selected = NONE, onSelect, openId, onOpen, onEdit, renderCell, rowState, compact = false, narrowColumns, onKey, footer, handle } = props;
  const scroller = useRef<HTMLDivElement>(null);
  const isNarrow = useMediaQuery("(max-width: 30em)") ?? false;
  const [focused, setFocused] = useState<CellPosition>({ row: 0, column: 0 });
  const [hasFocus, setHasFocus] = useState(false);
  const [dragged, setDragged] = useState<string | null>(null);
  const [dropAt, setDropAt] = useState<string | null>(null);
  const anchor = useRef<number | null>(null);
  const rowHeight = compact ? 30 : 36;
  const checkWidth = onSelect === undefined || isNarrow ? 0 : CHECK_WIDTH;

  const shownColumns = useMemo(() => (isNarrow ? (narrowColumns === undefined ? columns.slice(0, 2) : columns.filter(({ id }) => narrowColumns.includes(id))) : columns), [columns, isNarrow, narrowColumns]);
  const definitions = useMemo<ColumnDef<typeof features, object, unknown>[]>(
    () => shownColumns.map((column) => ({ id: column.id, header: column.header, accessorFn: (row: object) => row, size: column.width ?? WIDTH, minSize: column.minWidth ?? WIDTH_MIN, maxSize: WIDTH_MAX })),
    [shownColumns],
  );
  const [widths, setWidths] = useState<Record<string, number>>(layout.widths ?? {});
  const keptWidths = layout.widths;
  useEffect(() => setWidths(keptWidths ?? {}), [keptWidths]);
  const table = useTable({
    features,
    columns: definitions,
    data: rows as object[],
    getRowId: (row: object) => rowId(row as Row),
    state: {
      columnSizing: widths,
      columnOrder: layout.order ?? [],
      columnVisibility: Object.fromEntries((layout.hidden ?? []).map((id) => [id, false])),
    },
      });

  const byId = useMemo(() => new Map(shownColumns.map((column) => [column.id, column])), [shownColumns]);
  const leaves = table.getVisibleLeafColumns();
  // At 360 px two columns share the width, with a chevron.
  const [viewWidth, setViewWidth] = useState(0);
  useLayoutEffect(() => {
    const element = scroller.current!;
    const observer = new ResizeObserver(() => setViewWidth(element.clientWidth));
    observer.observe(element);
    setViewWidth(element.clientWidth);
    return () => observer.disconnect();
  }, []);
  const sizes = leaves.map((leaf) => leaf.getSize());
  const natural = checkWidth + sizes.reduce((sum, size) => sum + size, 0);
  if (isNarrow && sizes.length > 0) {
    const room = Math.max(viewWidth - 28, 200);
    const each = Math.floor(room / sizes.length);
    sizes.fill(each);
  } else if (natural > viewWidth && natural * SHRINK_MIN <= viewWidth && Object.keys(widths).length === 0) {
    // A list that is a little too wide fits, as long as nobody has chosen widths.
    const factor = (viewWidth - checkWidth) / (natural - checkWidth);
    sizes.forEach((size, index) => (sizes[index] = Math.floor(size * factor)));
    sizes[sizes.length - 1]! += viewWidth - checkWidth - sizes.reduce((sum, size) => sum + size, 0);
  } else if (natural < viewWidth && sizes.length > 0) {
    // The last column takes the room that is left, so that rows reach the edge.
    sizes[sizes.length - 1]! += viewWidth - natural;
  }
  const starts: number[] = [];
  let total = checkWidth;
  for (const size of sizes) {
    starts.push(total);
    total += size;
  }
  if (isNarrow) total = Math.max(viewWidth, 200);

  const rowVirtualizer = useVirtualizer({
    count: rows.length,
    getScrollElement: () => scroller.current,
    estimateSize: () => rowHeight,
    overscan: 8,
    scrollPaddingStart: 32,
  });
  const columnVirtualizer = useVirtualizer({
    horizontal: true,
    count: leaves.length,
    getScrollElement: () => scroller.current,
    estimateSize: (index) => sizes[index] ?? WIDTH,
    paddingStart: checkWidth,
    overscan: 2,
    scrollPaddingStart: checkWidth + (sizes[0] ?? 0),
  });
  const signature = sizes.join();
  useLayoutEffect(() => {
    columnVirtualizer.measure();
    rowVirtualizer.measure();
  }, [columnVirtualizer, rowVirtualizer, signature, rowHeight]);

  // The same list as long as the same columns are visible, so that rows that stay need no work.
  const indices = columnVirtualizer.getVirtualItems().map(({ index }) => index);
  const range = `${indices[0] ?? 0}-${indices.at(-1) ?? -1} ${signature} ${leaves.map(({ id }) => id).join()}`;
  const cells = useRef<{ range: string; byId: unknown; list: CellPlace<Row>[] }>({ range: "", byId: null, list: [] });
  if (cells.current.range !== range || cells.current.byId !== byId) {
    const shown = leaves.length > 0 && !indices.includes(0) ? [0, ...indices] : indices;
    const list = shown.flatMap((index) => {
      const column = byId.get(leaves[index]?.id ?? "");
      return column === undefined ? [] : [{ index, column, start: starts[index]!, width: sizes[index]! }];
    });
    cells.current = { range, byId, list };
  }
  const visible = cells.current.list;

  const focusCell = useCallback(
    ({ row, column }: CellPosition) => {
      const to = { row: clamp(row, HEADER, Math.max(rows.length - 1, 0)), column: clamp(column, 0, Math.max(leaves.length - 1, 0)) };
      setFocused(to);
      if (to.row !== HEADER) rowVirtualizer.scrollToIndex(to.row);
      // The first column is always in sight; to focus it shows what stands beside it.
      if (to.column > 0) columnVirtualizer.scrollToIndex(to.column);
      else columnVirtualizer.scrollToOffset(0);
    },
    [rows.length, leaves.length, rowVirtualizer, columnVirtualizer],
  );
  useImperativeHandle(handle, () => ({
    focusCell: (position) => {
      focusCell(position);
      scroller.current?.focus({ preventScroll: true });
    },
    focus: () => scroller.current?.focus({ preventScroll: true }),
    scrollToTop: () => rowVirtualizer.scrollToIndex(0),
    isAtTop: () => (scroller.current?.scrollTop ?? 0) < rowHeight,
  }));
  // The row in the inspector stays in sight, also where another part of the page moves on.
  const openIndex = openId === undefined ? -1 : rows.findIndex((row) => rowId(row) === openId);
  useEffect(() => {
    if (openIndex === -1) return;
    rowVirtualizer.scrollToIndex(openIndex);
    setFocused((now) => (now.row === openIndex ? now : { ...now, row: openIndex }));
  }, [openIndex, rowVirtualizer]);
  useEffect(() => {
    if (focused.row >= rows.length && rows.length > 0) setFocused((now) => ({ ...now, row: rows.length - 1 }));
  }, [focused.row, rows.length]);

  const toggle = useCallback(
    (index: number, range: boolean) => {
      if (onSelect === undefined) return;
      const next = new Set(selected);
      const id = rowId(rows[index]!);
      if (range && anchor.current !== null) {
        const [from, to] = [Math.min(anchor.current, index), Math.max(anchor.current, index)];
        for (const row of rows.slice(from, to + 1)) next.add(rowId(row));
      } else if (next.has(id)) next.delete(id);
      else next.add(id);
      anchor.current = index;
      onSelect(next);
    },
    [onSelect, selected, rowId, rows],
  );

  // What rows call is the same function at each render.
  const latest = useRef(props);
  const toggleLatest = useRef(toggle);
  useEffect(() => {
    latest.current = props;
    toggleLatest.current = toggle;
  });

  const keyDown = (event: KeyboardEvent) => {
    // Keys of what stands in a cell (an editor, a button) are its own.
    if (event.target !== scroller.current) return;
    const row = rows[focused.row];
    const column = leaves[focused.column]?.id;
    if (onKey?.(event, row, column) === true) return event.preventDefault();
    if (focused.row === HEADER && column !== undefined && headerKey(event, column)) return event.preventDefault();
    if (event.ctrlKey || event.metaKey || event.altKey) {
      if (event.key === "Home") focusCell({ row: 0, column: 0 });
      else if (event.key === "End") focusCell({ row: rows.length - 1, column: leaves.length - 1 });
      else if (event.key.toLowerCase() === "a" && onSelect !== undefined) onSelect(new Set(rows.map(rowId)));
      else return;
      return event.preventDefault();
    }
    const page = Math.max(1, Math.floor((scroller.current?.clientHeight ?? 400) / rowHeight) - 2);
    const step: Record<string, [number, number]> = {
      ArrowDown: [1, 0],
      ArrowUp: [-1, 0],
      j: [1, 0],
      k: [-1, 0],
      ArrowRight: [0, 1],
      ArrowLeft: [0, -1],
      PageDown: [page, 0],
      PageUp: [-page, 0],
      Home: [0, -leaves.length],
      End: [0, leaves.length],
    };
    const by = step[event.key];
    if (by !== undefined) {
      const to = { row: clamp(focused.row + by[0], by[0] === -1 ? HEADER : Math.min(focused.row, 0), rows.length - 1), column: clamp(focused.column + by[1], 0, leaves.length - 1) };
      focusCell(to);
      // The inspector follows.
      if (openId !== undefined && to.row !== focused.row && rows[to.row] !== undefined) onOpen?.(rows[to.row]!);
    } else if ((event.key === "Enter" || event.key === "F2") && row !== undefined) {
      if (!(column !== undefined && onEdit?.(row, column, focused) === true)) onOpen?.(row);
    } else if (event.key === " " && row !== undefined) toggle(focused.row, event.shiftKey);
    else if (event.key === "Escape" && selected.size > 0) onSelect?.(new Set());
    else return;
    event.preventDefault();
    event.stopPropagation();
  };

  /** On a header: `Enter` sorts, with Shift beside others; Alt and an arrow move the column, Shift and an arrow change its width. */
  const headerKey = (event: KeyboardEvent, id: string): boolean => {
    const step = { ArrowLeft: -1, ArrowRight: 1 }[event.key];
    if (event.key === "Enter" || event.key === " ") {
      if (byId.get(id)?.sortable === true) sortBy(id, event.shiftKey);
      return true;
    }
    if (step === undefined || onLayout === undefined) return false;
    if (event.altKey) {
      const order = leaves.map((leaf) => leaf.id);
      const to = clamp(focused.column + step, 0, order.length - 1);
      order.splice(to, 0, ...order.splice(focused.column, 1));
      onLayout({ ...layout, order: [...order, ...(layout.hidden ?? []).filter((each) => !order.includes(each))] });
      focusCell({ row: HEADER, column: to });
      return true;
    }
    if (event.shiftKey) {
      const width = clamp((leaves[focused.column]?.getSize() ?? WIDTH) + step * KEY_STEP, byId.get(id)?.minWidth ?? WIDTH_MIN, WIDTH_MAX);
      onLayout({ ...layout, widths: { ...layout.widths, [id]: width } });
      return true;
    }
    return false;
  };
  const sortBy = (id: string, add: boolean) => {
    const now = sort.find((each) => each.id === id);
    const others = add ? sort.filter((each) => each.id !== id) : [];
    onSort?.(now === undefined ? [...others, { id, descending: false }] : now.descending ? others : add ? sort.map((each) => (each.id === id ? { id, descending: true } : each)) : [{ id, descending: true }]);
  };
  const move = (id: string, before: string) => {
    const order = leaves.map((leaf) => leaf.id).filter((each) => each !== id);
    order.splice(order.indexOf(before), 0, id);
    const hidden = (layout.hidden ?? []).filter((each) => !order.includes(each));
    onLayout?.({ ...layout, order: [...order, ...hidden] });
  };
  const resize = (id: string, from: number, event: React.PointerEvent<HTMLElement>) => {
    const grip = event.currentTarget;
    const begin = event.clientX;
    let width = from;
    grip.setPointerCapture(event.pointerId);
    grip.dataset.active = "true";
    const moved = (pointer: PointerEvent) => {
      width = clamp(Math.round(from + pointer.clientX - begin), byId.get(id)?.minWidth ?? WIDTH_MIN, WIDTH_MAX);
      setWidths((now) => ({ ...now, [id]: width }));
    };
    const ended = () => {
      delete grip.dataset.active;
      grip.removeEventListener("pointermove", moved);
      grip.removeEventListener("pointerup", ended);
      grip.removeEventListener("pointercancel", ended);
      onLayout?.({ ...layout, widths: { ...layout.widths, [id]: width } });
    };
    grip.addEventListener("pointermove", moved);
    grip.addEventListener("pointerup", ended);
    grip.addEventListener("pointercancel", ended);
    event.preventDefault();
    event.stopPropagation();
  };

  const header = ({ index, column, start, width }: CellPlace<Row>) => {
    const { id } = column;
    const by = sort.findIndex((each) => each.id === id);
    const descending = sort[by]?.descending === true;
    const isSortable = column.sortable === true && onSort !== undefined;
    const isFocused = hasFocus && focused.row === HEADER && focused.column === index;
    const text = (
      <>
        <span dir="auto">{column.header}</span>
        {by !== -1 && (descending ? <IconArrowDown size={13} aria-hidden="true" /> : <IconArrowUp size={13} aria-hidden="true" />)}
        {by !== -1 && sort.length > 1 && <small>{by + 1}</small>}
      </>
    );
    const labelClass = column.numeric === true ? `${classes.thLabel} ${classes.right}` : classes.thLabel;
    return (
      <div
        key={id}
        id={isFocused ? cssId(`${label}-${HEADER}-${index}`) : undefined}
        data-focused={isFocused || undefined}
        role="columnheader"
        aria-colindex={index + 1 + (checkWidth > 0 ? 1 : 0)}
        aria-sort={by === -1 ? undefined : descending ? "descending" : "ascending"}
        className={classes.th}
        style={{ left: index === 0 ? checkWidth : start, width }}
        data-drop={dropAt === id || undefined}
        draggable={onLayout !== undefined && !isNarrow}
        onDragStart={(event) => {
          setDragged(id);
          event.dataTransfer.effectAllowed = "move";
          event.dataTransfer.setData("text/plain", column.header);
        }}
        onDragOver={(event) => {
          if (dragged === null || dragged === id) return;
          event.preventDefault();
          if (dropAt !== id) setDropAt(id);
        }}
        onDragEnd={() => {
          setDragged(null);
          setDropAt(null);
        }}
        onDrop={(event) => {
          event.preventDefault();
          if (dragged !== null && dragged !== id) move(dragged, id);
          setDragged(null);
          setDropAt(null);
        }}
      >
        {isSortable ? (
          <button type="button" className={labelClass} data-sortable tabIndex={-1} data-tip={column.hint ?? column.header} onClick={(event) => sortBy(id, event.shiftKey)}>
            {text}
          </button>
        ) : (
          <div className={labelClass} data-tip={column.hint ?? column.header}>
            {text}
          </div>
        )}
        {!isNarrow && onLayout !== undefined && <div className={classes.resize} aria-hidden="true" onPointerDown={(event) => resize(id, width, event)} />}
      </div>
    );
  };

  const press = useCallback(
    (index: number, column: number, range: boolean) => {
      setFocused({ row: index, column });
      const { rows: now, onSelect: select, onOpen: openRow } = latest.current;
      if (range && select !== undefined) toggleLatest.current(index, true);
      else if (now[index] !== undefined) openRow?.(now[index]);
    },
    [],
  );
  const toggleRow = useCallback((index: number, range: boolean) => toggleLatest.current(index, range), []);
  const editAt = useCallback((index: number, column: string, at: number) => {
    const { rows: now, onEdit: edit } = latest.current;
    if (now[index] !== undefined) edit?.(now[index], column, { row: index, column: at });
  }, []);

  const all = rows.length > 0 && rows.every((row) => selected.has(rowId(row)));
  const some = !all && selected.size > 0;
  const active = hasFocus ? `${label}-${focused.row}-${focused.column}` : undefined;

  return (
    <div
      ref={scroller}
      className={classes.scroller}
      role="grid"
      aria-label={label}
      aria-rowcount={(totalCount ?? rows.length) + 1}
      aria-colcount={leaves.length + (checkWidth > 0 ? 1 : 0)}
      aria-multiselectable={onSelect !== undefined}
      aria-activedescendant={active === undefined ? undefined : cssId(active)}
      tabIndex={0}
      onKeyDown={keyDown}
      onFocus={(event) => setHasFocus(event.target === scroller.current)}
      onBlur={() => setHasFocus(false)}
      data-table
    >
      <div className={classes.grid} style={{ width: total, height: 32 + rowVirtualizer.getTotalSize() }}>
        <div className={classes.head} role="rowgroup" style={{ width: total }}>
          <div className={classes.headRow} role="row" aria-rowindex={1} style={{ width: total }}>
            <div className={classes.pins} role="presentation" style={{ width: checkWidth + (visible[0]?.width ?? 0) }}>
              {checkWidth > 0 && (
                <div className={classes.check} role="columnheader" aria-colindex={1} style={{ width: checkWidth }}>
                  <Checkbox aria-label="Select all rows of this page" checked={all} indeterminate={some} tabIndex={-1} onChange={() => onSelect?.(all || some ? new Set() : new Set(rows.map(rowId)))} />
                </div>
              )}
              {visible.slice(0, 1).map(header)}
            </div>
            {visible.slice(1).map(header)}
          </div>
        </div>
        <div role="rowgroup">
          {rowVirtualizer.getVirtualItems().map((item) => {
            const row = rows[item.index]!;
            const id = rowId(row);
            return (
              <TableRow
                key={id}
                index={item.index}
                top={32 + item.start}
                height={rowHeight}
                width={total}
                row={row}
                state={rowState?.(row)}
                isSelected={selected.has(id)}
                isOpen={openId === id}
                isNarrow={isNarrow}
                checkWidth={checkWidth}
                cells={visible}
                label={label}
                focusedColumn={hasFocus && focused.row === item.index ? focused.column : -1}
                renderCell={renderCell}
                onToggle={toggleRow}
                onPress={press}
                onEditAt={editAt}
              />
            );
          })}
        </div>
      </div>
      {footer !== undefined && footer !== false && footer !== null && (
        // A grid consists of rows alone, so what stands below them is one too.
        <div role="row">
          <div className={classes.foot} role="gridcell" aria-colspan={leaves.length + (checkWidth > 0 ? 1 : 0)}>
            {footer}
          </div>
        </div>
      )}
    </div>
  );
}

interface CellPlace<Row> {
  index: number;
  column: Column<Row>;
  /** Pixels from the left edge of the grid. */
  start: number;
  width: number;
}

type RowState = { gone?: string; isNew?: boolean; changed?: ReadonlySet<string> } | undefined;

interface TableRowProps<Row> {
  index: number;
  top: number;
  height: number;
  width: number;
  row: Row;
  state: RowState;
  isSelected: boolean;
  isOpen: boolean;
  isNarrow: boolean;
  checkWidth: number;
  cells: CellPlace<Row>[];
  label: string;
  focusedColumn: number;
  renderCell: DataTableProps<Row>["renderCell"];
  onToggle: (index: number, range: boolean) => void;
  onPress: (index: number, column: number, range: boolean) => void;
  onEditAt: (index: number, columnId: string, column: number) => void;
}

function PlainRow<Row>({ index, top, height, width, row, state, isSelected, isOpen, isNarrow, checkWidth, cells, label, focusedColumn, renderCell, onToggle, onPress, onEditAt }: TableRowProps<Row>) {
  const cell = ({ index: at, column, start, width: cellWidth }: CellPlace<Row>) => (
    <div
      key={column.id}
      id={focusedColumn === at ? cssId(`${label}-${index}-${at}`) : undefined}
      role="gridcell"
      aria-colindex={at + 1 + (checkWidth > 0 ? 1 : 0)}
      className={column.numeric === true ? `${classes.cell} ${classes.numeric}` : classes.cell}
      style={{ left: at === 0 ? checkWidth : start, width: cellWidth }}
      data-focused={focusedColumn === at || undefined}
      data-glow={state?.changed?.has(column.id) || undefined}
      data-column={column.id}
      onClick={(event) => onPress(index, at, event.shiftKey)}
      onDoubleClick={() => onEditAt(index, column.id, at)}
    >
      {renderCell?.(row, column.id) ?? column.cell(row)}
    </div>
  );
  return (
    <div
      className={classes.row}
      role="row"
      aria-rowindex={index + 2}
      aria-selected={checkWidth > 0 ? isSelected : undefined}
      data-tip={state?.gone}
      data-selected={isSelected || undefined}
      data-open={isOpen || undefined}
      data-gone={state?.gone === undefined ? undefined : true}
      data-new={state?.isNew || undefined}
      style={{ transform: `translateY(${top}px)`, height, width }}
    >
      <div className={classes.pins} role="presentation" style={{ width: checkWidth + (cells[0]?.width ?? 0) }}>
        {checkWidth > 0 && (
          <div className={classes.check} role="gridcell" aria-colindex={1} style={{ width: checkWidth }}>
            <RowCheckbox label={`Select row ${index + 1}`} isSelected={isSelected} onToggle={(range) => onToggle(index, range)} />
          </div>
        )}
        {cells.slice(0, 1).map(cell)}
      </div>
      {cells.slice(1).map(cell)}
      {isNarrow && (
        <div className={`${classes.cell} ${classes.chevron}`} style={{ right: 0, width: 28, padding: 0 }} role="gridcell">
          <IconChevronRight size={16} aria-hidden="true" />
        </div>
      )}
    </div>
  );
}

/** A plain checkbox in the look of the others: a table has a hundred of them. */
function RowCheckbox({ label, isSelected, onToggle }: { label: string; isSelected: boolean; onToggle: (range: boolean) => void }) {
  return (
    <input
      type="checkbox"
      className={classes.checkbox}
      aria-label={label}
      checked={isSelected}
      tabIndex={-1}
      onClick={(event) => {
        event.stopPropagation();
        onToggle(event.shiftKey);
      }}
      readOnly
    />
  );
}

function sameState(one: RowState, other: RowState): boolean {
  return one === other || (one?.gone === other?.gone && one?.isNew === other?.isNew && one?.changed === other?.changed);
}

/** Draws a row again only where something of it changed. */
const TableRow = memo(PlainRow, (one, other) =>
  (Object.keys(other) as (keyof TableRowProps<unknown>)[]).every((name) => (name === "state" ? sameState(one.state, other.state) : Object.is(one[name], other[name]))),
) as typeof PlainRow;

function clamp(value: number, min: number, max: number): number {
  return Math.max(min, Math.min(max, value));
}

function cssId(text: string): string {
  return `cell-${text.replaceAll(/[^\w-]+/g, "_")}`;
}

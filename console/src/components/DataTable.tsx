import { Checkbox } from "@mantine/core";
import { IconArrowDown, IconArrowUp, IconChevronRight } from "@tabler/icons-react";
import { type KeyboardEvent, type ReactNode, memo, useCallback, useEffect, useImperativeHandle, useMemo, useRef } from "react";
import { ErrorState } from "./ErrorState";
import { SkeletonRows } from "./Skeleton";
import { useRowSelection } from "./useRowSelection";
import { type CellPosition, clamp, useTableFrame } from "./useTableFrame";
import classes from "./DataTable.module.css";

export interface Column<Row> {
  /** A stable id: the name of the field. */
  id: string;
  header: string;
  cell: (row: Row) => ReactNode;
  /** In pixels. The default is 180. */
  width?: number;
  /** Whether the column has numbers, which are aligned to the right. */
  numeric?: boolean;
  sortable?: boolean;
}

export interface Sort {
  id: string;
  descending: boolean;
}

export interface DataTableHandle {
  /** Moves the focus to the cell of the table that had it last. */
  focus: () => void;
  scrollToTop: () => void;
  isAtTop: () => boolean;
}

export interface DataTableProps<Row> {
  /** The accessible name of the table, such as "Tasks". */
  label: string;
  columns: Column<Row>[];
  rows: Row[];
  rowId: (row: Row) => string;
  sort?: Sort;
  /**
   * Called for a click on a header, or `Enter` there. The first click sorts by this column, the second one sorts descending, the third one
   * ends the sort.
   */
  onSort?: (sort: Sort | undefined) => void;
  selected?: ReadonlySet<string>;
  onSelect?: (selected: Set<string>) => void;
  /** The row that the inspector shows. */
  openId?: string | undefined;
  /** Called for `Enter`, or for a click on a row. */
  onOpen?: (row: Row) => void;
  /** Whether the row has just been added. */
  isNew?: (row: Row) => boolean;
  /** The reason why the row is about to disappear, if it is. */
  gone?: (row: Row) => string | undefined;
  /** The columns that stay on a screen of 360 px. The default is the first two. */
  narrowColumns?: string[];
  footer?: ReactNode;
  handle?: React.Ref<DataTableHandle>;
}

const WIDTH = 180;
const CHECK_WIDTH = 40;
/** Columns that are too wide shrink at most to this fraction. */
const SHRINK_MIN = 0.7;
/** If the columns do not fit even then, none of them shrinks below this width in pixels. */
const SHRUNK_WIDTH_MIN = 110;
const NONE: ReadonlySet<string> = new Set();
/** The row number of the header. */
const HEADER = -1;
const ROW_HEIGHT = 36;
const HEAD = 32;

/**
 * A list as a table that renders only the visible rows. The first column stays in place. The arrow keys move the focused cell, `Enter`
 * opens a row, `Space` selects it, and `J` and `K` move by rows. To edit cells in place, use the grid of the records instead.
 */
export function DataTable<Row extends object>(props: DataTableProps<Row>) {
  const { label, columns, rows, rowId, sort, onSort, selected = NONE, onSelect, openId, onOpen, isNew, gone, narrowColumns, footer, handle } = props;
  const frame = useTableFrame({ count: rows.length, columnCount: columns.length, rowHeight: ROW_HEIGHT, head: HEAD, overscan: 8 });
  const { scroller, isNarrow, room: viewWidth, hasFocus, active: focused, setActive: setFocused, rows: rowVirtualizer } = frame;
  const selection = useRowSelection((index) => (rows[index] === undefined ? undefined : rowId(rows[index])), selected, onSelect);
  const { toggle } = selection;
  const checkWidth = onSelect === undefined || isNarrow ? 0 : CHECK_WIDTH;

  const leaves = useMemo(() => (isNarrow ? (narrowColumns === undefined ? columns.slice(0, 2) : columns.filter(({ id }) => narrowColumns.includes(id))) : columns), [columns, isNarrow, narrowColumns]);
  // At 360 px, two columns and a chevron share the width.
  const sizes = leaves.map(({ width = WIDTH }) => width);
  const natural = checkWidth + sizes.reduce((sum, size) => sum + size, 0);
  if (isNarrow && sizes.length > 0) {
    const room = Math.max(viewWidth - 28, 200);
    const each = Math.floor(room / sizes.length);
    sizes.fill(each);
  } else if (natural > viewWidth && natural * SHRINK_MIN <= viewWidth) {
    // The columns of a table that is slightly too wide shrink until they fit.
    const factor = (viewWidth - checkWidth) / (natural - checkWidth);
    sizes.forEach((size, index) => (sizes[index] = Math.floor(size * factor)));
    sizes[sizes.length - 1]! += viewWidth - checkWidth - sizes.reduce((sum, size) => sum + size, 0);
  } else if (natural > viewWidth && viewWidth > 0) {
    // The table scrolls. Its columns shrink nevertheless, so that a good part of them is visible beside an open inspector.
    sizes.forEach((size, index) => (sizes[index] = Math.max(Math.min(size, SHRUNK_WIDTH_MIN), Math.floor(size * SHRINK_MIN))));
  } else if (natural < viewWidth && sizes.length > 0) {
    // The last column takes the remaining width, so that rows end at the edge.
    sizes[sizes.length - 1]! += viewWidth - natural;
  }
  let total = checkWidth + sizes.reduce((sum, size) => sum + size, 0);
  if (isNarrow) total = Math.max(viewWidth, 200);

  const signature = `${sizes.join()} ${checkWidth}`;
  // Returns the same list while the columns are the same, so that unchanged rows do not render again.
  const visible = useMemo(
    () => {
      let start = checkWidth;
      return leaves.map((column, index): CellPlace<Row> => ({ index, column, width: sizes[index]!, start: (start += sizes[index]!) - sizes[index]! }));
    },
    // `signature` replaces the sizes as a dependency.
    // eslint-disable-next-line react/exhaustive-deps
    [leaves, signature],
  );

  const focusCell = useCallback(
    ({ row, column }: CellPosition) => {
      const to = { row: clamp(row, HEADER, Math.max(rows.length - 1, 0)), column: clamp(column, 0, Math.max(leaves.length - 1, 0)) };
      setFocused(to);
      if (to.row !== HEADER) rowVirtualizer.scrollToIndex(to.row);
      const element = scroller.current!;
      const place = visible[to.column];
      // The first column is always visible. If it gets the focus, the table scrolls to the columns beside it.
      if (to.column === 0 || place === undefined) element.scrollTo({ left: 0 });
      else {
        const pinned = checkWidth + (visible[0]?.width ?? 0);
        if (place.start - pinned < element.scrollLeft) element.scrollTo({ left: place.start - pinned });
        else if (place.start + place.width > element.scrollLeft + element.clientWidth) element.scrollTo({ left: place.start + place.width - element.clientWidth });
      }
    },
    [rows.length, leaves.length, rowVirtualizer, visible, checkWidth, scroller, setFocused],
  );
  useImperativeHandle(handle, () => ({
    focus: frame.focus,
    scrollToTop: () => rowVirtualizer.scrollToIndex(0),
    isAtTop: frame.isAtTop,
  }));
  // The row in the inspector stays visible, also if another part of the page opens the next row.
  const openIndex = openId === undefined ? -1 : rows.findIndex((row) => rowId(row) === openId);
  useEffect(() => {
    if (openIndex === -1) return;
    rowVirtualizer.scrollToIndex(openIndex);
    setFocused((now) => (now.row === openIndex ? now : { ...now, row: openIndex }));
  }, [openIndex, rowVirtualizer, setFocused]);
  useEffect(() => {
    if (focused.row >= rows.length && rows.length > 0) setFocused((now) => ({ ...now, row: rows.length - 1 }));
  }, [focused.row, rows.length, setFocused]);

  // The callbacks of rows stay the same function at each render.
  const latest = useRef(props);
  useEffect(() => {
    latest.current = props;
  });

  const keyDown = (event: KeyboardEvent) => {
    // If the focus is inside a cell (in an editor, on a button), the keys belong to that element.
    if (event.target !== scroller.current) return;
    const row = rows[focused.row];
    if (focused.row === HEADER && (event.key === "Enter" || event.key === " ")) {
      sortBy(leaves[focused.column]);
      return event.preventDefault();
    }
    if (event.ctrlKey || event.metaKey || event.altKey) {
      if (event.key === "Home") focusCell({ row: 0, column: 0 });
      else if (event.key === "End") focusCell({ row: rows.length - 1, column: leaves.length - 1 });
      else if (event.key.toLowerCase() === "a" && onSelect !== undefined) onSelect(new Set(rows.map(rowId)));
      else return;
      return event.preventDefault();
    }
    const by = frame.stepOf(event.key);
    if (by !== undefined) {
      const to = { row: clamp(focused.row + by[0], by[0] === -1 ? HEADER : Math.min(focused.row, 0), rows.length - 1), column: clamp(focused.column + by[1], 0, leaves.length - 1) };
      focusCell(to);
      // The inspector shows the newly focused row.
      if (openId !== undefined && to.row !== focused.row && rows[to.row] !== undefined) onOpen?.(rows[to.row]!);
    } else if (event.key === "Enter" && row !== undefined) onOpen?.(row);
    else if (event.key === " " && row !== undefined) toggle(focused.row, event.shiftKey);
    else if (event.key !== "Escape" || !selection.clear()) return;
    event.preventDefault();
    event.stopPropagation();
  };

  const sortBy = (column: Column<Row> | undefined) => {
    if (column?.sortable !== true) return;
    const isSorted = sort?.id === column.id;
    onSort?.(isSorted && sort.descending ? undefined : { id: column.id, descending: isSorted });
  };

  const header = ({ index, column, start, width }: CellPlace<Row>) => {
    const { id } = column;
    const isSorted = sort?.id === id;
    const descending = isSorted && sort.descending;
    const isSortable = column.sortable === true && onSort !== undefined;
    const isFocused = hasFocus && focused.row === HEADER && focused.column === index;
    const text = (
      <>
        <span className="ellipsis" dir="auto">{column.header}</span>
        {isSorted && (descending ? <IconArrowDown size={13} aria-hidden="true" /> : <IconArrowUp size={13} aria-hidden="true" />)}
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
        aria-sort={!isSorted ? undefined : descending ? "descending" : "ascending"}
        className={classes.th}
        style={{ left: index === 0 ? checkWidth : start, width }}
      >
        {isSortable ? (
          <button type="button" className={labelClass} data-sortable tabIndex={-1} data-tip={column.header} onClick={() => sortBy(column)}>
            {text}
          </button>
        ) : (
          <div className={labelClass} data-tip={column.header}>
            {text}
          </div>
        )}
      </div>
    );
  };

  const press = useCallback(
    (index: number, column: number, range: boolean) => {
      setFocused({ row: index, column });
      const { rows: now, onSelect: select, onOpen: openRow } = latest.current;
      if (range && select !== undefined) toggle(index, true);
      else if (now[index] !== undefined) openRow?.(now[index]);
    },
    [setFocused, toggle],
  );
  const { all, some } = selection.stateOf(rows, rowId);
  const active = hasFocus ? `${label}-${focused.row}-${focused.column}` : undefined;

  return (
    <div
      ref={scroller}
      className={classes.scroller}
      role="grid"
      aria-label={label}
      aria-rowcount={rows.length + 1}
      aria-colcount={leaves.length + (checkWidth > 0 ? 1 : 0)}
      aria-multiselectable={onSelect !== undefined}
      aria-activedescendant={active === undefined ? undefined : cssId(active)}
      tabIndex={0}
      onKeyDown={keyDown}
      onFocus={frame.onFocus}
      onBlur={frame.onBlur}
      data-table
    >
      <div className={classes.grid} style={{ width: total, height: rowVirtualizer.getTotalSize() }}>
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
                top={item.start}
                height={ROW_HEIGHT}
                width={total}
                row={row}
                isNew={isNew?.(row) === true}
                gone={gone?.(row)}
                isSelected={selected.has(id)}
                isOpen={openId === id}
                isNarrow={isNarrow}
                checkWidth={checkWidth}
                cells={visible}
                label={label}
                focusedColumn={hasFocus && focused.row === item.index ? focused.column : -1}
                onToggle={toggle}
                onPress={press}
              />
            );
          })}
        </div>
      </div>
      {footer !== undefined && footer !== false && footer !== null && (
        // In ARIA, a grid may contain only rows, so the footer is a row too.
        <div role="row">
          <div className={classes.foot} role="gridcell" aria-colspan={leaves.length + (checkWidth > 0 ? 1 : 0)}>
            {footer}
          </div>
        </div>
      )}
    </div>
  );
}

/** Shown in place of a table that is not there yet: placeholder rows, or the error of its query. `what` is its name, such as "The roles". */
export function NotLoaded({ query: { error, refetch }, what, rows }: { query: { error: unknown; refetch: () => unknown }; what: string; rows: number }) {
  return error === null ? <SkeletonRows rows={rows} /> : <ErrorState error={error} title={`${what} could not be loaded`} onRetry={() => void refetch()} />;
}

interface CellPlace<Row> {
  index: number;
  column: Column<Row>;
  /** In pixels, from the left edge of the grid. */
  start: number;
  width: number;
}

interface TableRowProps<Row> {
  index: number;
  top: number;
  height: number;
  width: number;
  row: Row;
  isNew: boolean;
  gone: string | undefined;
  isSelected: boolean;
  isOpen: boolean;
  isNarrow: boolean;
  checkWidth: number;
  cells: CellPlace<Row>[];
  label: string;
  focusedColumn: number;
  onToggle: (index: number, range: boolean) => void;
  onPress: (index: number, column: number, range: boolean) => void;
}

function PlainRow<Row>({ index, top, height, width, row, isNew, gone, isSelected, isOpen, isNarrow, checkWidth, cells, label, focusedColumn, onToggle, onPress }: TableRowProps<Row>) {
  const cell = ({ index: at, column, start, width: cellWidth }: CellPlace<Row>) => (
    <div
      key={column.id}
      id={focusedColumn === at ? cssId(`${label}-${index}-${at}`) : undefined}
      role="gridcell"
      aria-colindex={at + 1 + (checkWidth > 0 ? 1 : 0)}
      className={column.numeric === true ? `${classes.cell} ${classes.numeric}` : classes.cell}
      style={{ left: at === 0 ? checkWidth : start, width: cellWidth }}
      data-focused={focusedColumn === at || undefined}
      data-column={column.id}
      onClick={(event) => onPress(index, at, event.shiftKey)}
    >
      {column.cell(row)}
    </div>
  );
  return (
    <div
      className={classes.row}
      role="row"
      aria-rowindex={index + 2}
      aria-selected={checkWidth > 0 ? isSelected : undefined}
      data-selected={isSelected || undefined}
      data-open={isOpen || undefined}
      data-tip={gone}
      data-gone={gone === undefined ? undefined : true}
      data-new={isNew || undefined}
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

/** A plain checkbox that looks like Mantine's. A table has hundreds of them, so they have to be cheap. */
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

/** Renders a row again only if one of its props changed. */
const TableRow = memo(PlainRow) as typeof PlainRow;

function cssId(text: string): string {
  return `cell-${text.replaceAll(/[^\w-]+/g, "_")}`;
}

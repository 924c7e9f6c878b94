/** One row of the grid. It renders again only if one of its props has changed. */
import { IconArrowsDiagonal, IconChevronRight } from "@tabler/icons-react";
import { memo } from "react";
import { isNumberType } from "../../../api/field-rules";
import { CellValue } from "./Cell";
import classes from "./Grid.module.css";
import type { PlacedColumn } from "./geometry";
import type { RecordRow } from "../../../api/record-paths";

/** The recent changes of a row. */
export interface RowMark {
  /** The reason why the row is no longer in the view. */
  gone?: string;
  isNew?: boolean;
  /** The columns that have changed. */
  changed?: ReadonlySet<string>;
  /** Increases with each change, so that a cell that changes twice glows twice. */
  beat?: number;
  /** The columns with changes that the server has not confirmed yet. */
  saving?: ReadonlySet<string>;
}

export interface GridRowProps {
  index: number;
  top: number;
  height: number;
  width: number;
  gutter: number;
  row: RecordRow | undefined;
  columns: PlacedColumn[];
  mark: RowMark | undefined;
  titleOf: (column: PlacedColumn, id: string) => string | undefined;
  isSelected: boolean;
  isOpen: boolean;
  isNarrow: boolean;
  /** The index of the active column. -1 in other rows. */
  active: number;
  /** The columns of the marked range. -1 in rows outside of it. */
  from: number;
  to: number;
}

export const cellId = (row: number, column: number): string => `cell-${row}-${column}`;

function Row({ index, top, height, width, gutter, row, columns, mark, titleOf, isSelected, isOpen, isNarrow, active, from, to }: GridRowProps) {
  return (
    <div
      className={classes.row}
      role="row"
      aria-rowindex={index + 2}
      aria-selected={isSelected}
      data-row={index}
      data-selected={isSelected || undefined}
      data-open={isOpen || undefined}
      data-gone={mark?.gone === undefined ? undefined : true}
      data-new={mark?.isNew || undefined}
      style={{ transform: `translateY(${top}px)`, height, width }}
    >
      {gutter > 0 && (
        <div className={classes.gutter} role="gridcell" aria-colindex={1} style={{ width: gutter }}>
          {row !== undefined && (
            <>
              <input type="checkbox" className={classes.check} tabIndex={-1} checked={isSelected} readOnly aria-label={`Select row ${index + 1}`} data-act="select" />
              <button type="button" className={classes.expand} tabIndex={-1} aria-label={`Open row ${index + 1}`} data-act="open">
                <IconArrowsDiagonal size={14} aria-hidden="true" />
              </button>
            </>
          )}
        </div>
      )}
      {columns.map((placed) => {
        const { id, column, index: at, start, width: cellWidth, isPinned, isLastPinned } = placed;
        const value = row?.[id];
        const changed = mark?.changed?.has(id) === true;
        return (
          <div
            // A new key restarts the glow when a cell changes again.
            key={changed ? `${id}-${mark?.beat ?? 0}` : id}
            id={active === at ? cellId(index, at) : undefined}
            role="gridcell"
            aria-colindex={at + 2}
            className={`${classes.cell}${isNumberType(column.type) ? ` ${classes.numeric}` : ""}${isPinned ? ` ${classes.pinned}` : ""}${isLastPinned ? ` ${classes.pinnedLast}` : ""}`}
            style={{ left: start, width: cellWidth }}
            data-column={id}
            data-cell={at}
            data-active={active === at || undefined}
            data-range={(at >= from && at <= to) || undefined}
            data-glow={changed || undefined}
            data-saving={mark?.saving?.has(id) || undefined}
          >
            {row === undefined ? <span className={classes.bone} style={{ width: `${35 + ((index * 7 + at * 13) % 40)}%` }} /> : <CellValue value={value} column={column} title={typeof value === "string" ? titleOf(placed, value) : undefined} />}
          </div>
        );
      })}
      {mark?.gone !== undefined && (
        <div className={classes.gone} role="gridcell">
          {mark.gone}
        </div>
      )}
      {isNarrow && (
        <div className={classes.chevron} role="gridcell">
          <IconChevronRight size={16} aria-hidden="true" />
        </div>
      )}
    </div>
  );
}

export const GridRow = memo(Row);

/** The controls above the table: view, search, conditions, order, columns. */
import { Button } from "@mantine/core";
import { IconArrowUp, IconSearch } from "@tabler/icons-react";
import type { RefObject } from "react";
import { SettledInput } from "../../components/SettledInput";
import type { RecordColumn, RecordShape } from "./columns";
import { FilterBar } from "./filters/FilterBar";
import type { ShapeOf } from "./filters/tree";
import type { GridLayout } from "./grid/geometry";
import { ColumnsPanel } from "./views/ColumnsPanel";
import { SortPanel } from "./views/SortPanel";
import { ViewMenu } from "./views/ViewMenu";
import type { SavedView, SavedViews } from "./views/view";
import classes from "./Records.module.css";

export interface ToolbarProps {
  shape: RecordShape;
  /** The columns that this person may read. */
  columns: RecordColumn[];
  tableShapeOf: ShapeOf;
  saved: SavedViews;
  view: SavedView;
  base: SavedView | null;
  isChanged: boolean;
  shown: RecordColumn[];
  searchField: RefObject<HTMLInputElement | null>;
  adding: { column?: string } | null;
  onAdding: (adding: { column?: string } | null) => void;
  titleOf: (column: RecordColumn, id: string) => string | undefined;
  onView: (view: SavedView) => void;
  onLayout: (layout: GridLayout) => void;
  onChoose: (name: string) => void;
  onReset: () => void;
  onKeep: (views: SavedViews) => void;
  fresh: number;
  onFresh: () => void;
}

export function Toolbar({ shape, columns, tableShapeOf, saved, view, base, isChanged, shown, searchField, adding, onAdding, titleOf, onView, onLayout, onChoose, onReset, onKeep, fresh, onFresh }: ToolbarProps) {
  return (
    <>
      <ViewMenu saved={saved} view={view} base={base} isChanged={isChanged} onChoose={onChoose} onReset={onReset} onKeep={onKeep} />
      <SettledInput
        field={searchField}
        className={classes.search}
        type="search"
        aria-label={`Search ${shape.label}`}
        placeholder="Search"
        leftSection={<IconSearch size={14} aria-hidden="true" />}
        value={view.search}
        onSettled={(search = "") => onView({ ...view, search })}
      />
      <FilterBar shape={shape} of={tableShapeOf} filter={view} search={view.search} onChange={({ conditions, where }) => onView({ ...view, conditions, where })} adding={adding} onAdding={onAdding} titleOf={titleOf} />
      <span className={classes.right}>
        {fresh > 0 && (
          <Button className={classes.fresh} variant="light" leftSection={<IconArrowUp size={14} />} onClick={onFresh}>
            {fresh > 999 ? "999+" : fresh} new
          </Button>
        )}
        <SortPanel columns={columns} sort={view.sort} onSort={(sort) => onView({ ...view, sort })} />
        <ColumnsPanel all={columns} shown={shown} layout={view.layout} onLayout={onLayout} />
      </span>
    </>
  );
}

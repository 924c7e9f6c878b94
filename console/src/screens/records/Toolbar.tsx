/** The controls above the records and their groups: view, search, conditions, grouping. `children` are those of one of the two. */
import { Button } from "@mantine/core";
import { IconChartBar, IconSearch } from "@tabler/icons-react";
import { type ReactNode, type RefObject, useEffect, useRef } from "react";
import { SettledInput } from "../../components/SettledInput";
import type { RecordColumn, RecordShape } from "./columns";
import { FilterBar } from "./filters/FilterBar";
import type { ShapeOf } from "./filters/tree";
import { firstGrouping } from "./views/grouping";
import type { CurrentView } from "./views/useCurrentView";
import type { SavedViews } from "./views/view";
import { ViewMenu } from "./views/ViewMenu";
import classes from "./Records.module.css";

export interface ToolbarProps {
  shape: RecordShape;
  tableShapeOf: ShapeOf;
  saved: SavedViews;
  onKeep: (views: SavedViews) => void;
  current: CurrentView;
  searchField: RefObject<HTMLInputElement | null>;
  adding: { column?: string } | null;
  onAdding: (adding: { column?: string } | null) => void;
  titleOf: (column: RecordColumn, id: string) => string | undefined;
  children?: ReactNode;
}

export function Toolbar({ shape, tableShapeOf, saved, onKeep, current, searchField, adding, onAdding, titleOf, children }: ToolbarProps) {
  const { view, base, isChanged, hasSwitched, change, choose, reset } = current;
  const isGrouped = view.groups !== null;
  const group = useRef<HTMLButtonElement>(null);
  useEffect(() => {
    // The element that had the focus is gone with the toolbar or the table before.
    if (hasSwitched && document.activeElement === document.body) group.current?.focus();
    // Only a new toolbar takes the focus.
    // oxlint-disable-next-line react/exhaustive-deps
  }, []);
  return (
    <>
      <ViewMenu saved={saved} view={view} base={base} isChanged={isChanged} onChoose={choose} onReset={reset} onKeep={onKeep} />
      <SettledInput
        field={searchField}
        className={classes.search}
        type="search"
        aria-label={`Search ${shape.label}`}
        placeholder="Search"
        leftSection={<IconSearch size={14} aria-hidden="true" />}
        value={view.search}
        onSettled={(search = "") => change({ search })}
      />
      <FilterBar shape={shape} of={tableShapeOf} filter={view} search={view.search} onChange={({ conditions, where }) => change({ conditions, where })} adding={adding} onAdding={onAdding} titleOf={titleOf} />
      <span className={classes.right}>
        {children}
        <Button
          ref={group}
          variant={isGrouped ? "light" : "default"}
          aria-pressed={isGrouped}
          leftSection={<IconChartBar size={14} />}
          onClick={() => change({ groups: isGrouped ? null : firstGrouping(shape) }, { isStep: true })}
        >
          Group
        </Button>
      </span>
    </>
  );
}

/** Says that the address names a view that no longer exists. */
export function MissingView({ name }: { name: string | undefined }) {
  return name === undefined ? null : <div className={classes.notice}>There is no view {name} any more. All records are shown.</div>;
}

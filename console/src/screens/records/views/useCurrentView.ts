/** The view in the address, and the functions that change it. */
import { useNavigate, useSearch } from "@tanstack/react-router";
import { useCallback, useEffect, useMemo, useState } from "react";
import { failed } from "../../../components/toast";
import { TOO_LONG } from "../filters/tree";
import type { useViews } from "./useViews";
import { PLAIN, type SavedView, type Unread, changedSearch, hasRoom, searchOf, viewOf, withoutFilter } from "./view";

export interface CurrentView {
  view: SavedView;
  /** The saved view to which the address adds changes. Null for the table without a view. */
  base: SavedView | null;
  /** The name of a view that no longer exists, if the address has one. */
  missing: string | undefined;
  /** Why the filter of the address, or of the saved view, cannot be read. Then nothing of the view is shown, because it would be all records. */
  unread: Unread | undefined;
  isChanged: boolean;
  /** Whether the groups have replaced the records, or the records the groups. The toolbar is then a new one. */
  hasSwitched: boolean;
  /**
   * Changes parts of the view, and shows its first page. `isStep` makes it a step of the browser's history. A filter or a search that is too
   * long for the address changes nothing, and a toast says so.
   */
  change: (part: Partial<SavedView>, options?: { isStep?: boolean }) => void;
  choose: (name: string) => void;
  /** Takes back the changes of the saved view. */
  reset: () => void;
  /** Removes the filter of the address, and its conditions on groups. Those of the saved view apply then, if they can be read. */
  removeFilter: () => void;
}

export function useCurrentView({ saved, error }: Pick<ReturnType<typeof useViews>, "saved" | "error">): CurrentView {
  const search = useSearch({ from: "/data/$object" });
  const navigate = useNavigate({ from: "/data/$object" });
  const { view, base, isMissing, unread } = useMemo(() => viewOf(search, saved), [search, saved]);
  const isGrouped = view.groups !== null;
  const [shown, setShown] = useState({ isGrouped, hasSwitched: false });
  if (shown.isGrouped !== isGrouped) setShown({ isGrouped, hasSwitched: true });
  // The table itself goes to its first row. The router would go back to the place where the list was.
  const change = useCallback<CurrentView["change"]>(
    (part, { isStep = false } = {}) => {
      if (!hasRoom(changedSearch(search, part, saved), saved)) return failed("The filter was not changed", new Error(TOO_LONG));
      void navigate({ search: (now) => changedSearch(now, part, saved), replace: !isStep, resetScroll: false });
    },
    [navigate, saved, search],
  );
  useEffect(() => {
    if (error !== null) failed("The view could not be kept", error);
  }, [error]);
  return {
    view,
    base,
    missing: isMissing ? search.view : undefined,
    unread,
    isChanged: Object.values(searchOf(view, base, saved.plain)).some((value) => value !== undefined),
    hasSwitched: shown.hasSwitched,
    change,
    choose: (name) => void navigate({ search: (now) => ({ view: name === (saved.preset ?? PLAIN) ? undefined : name, open: now.open }) }),
    reset: () => void navigate({ search: (now) => ({ view: now.view, open: now.open }), replace: true }),
    removeFilter: () => void navigate({ search: (now) => withoutFilter(now, saved) }),
  };
}

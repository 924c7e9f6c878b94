/** The view in the address, and the functions that change it. */
import { useNavigate, useSearch } from "@tanstack/react-router";
import { useCallback, useEffect, useMemo } from "react";
import { failed } from "../../../components/toast";
import type { Grouping } from "./grouping";
import type { useViews } from "./useViews";
import { PLAIN, type SavedView, searchOf, viewOf } from "./view";

/** Whether the next toolbar takes the focus. The records and their groups each have a toolbar, and one replaces the other. */
let isFocusMoving = false;

/** Whether the focus has to go to the new toolbar, because the element that had it is gone. */
export function takesFocus(): boolean {
  const is = isFocusMoving;
  isFocusMoving = false;
  return is;
}

export interface CurrentView {
  view: SavedView;
  /** The saved view to which the address adds changes. Null for the table without a view. */
  base: SavedView | null;
  /** The name of a view that no longer exists, if the address has one. */
  missing: string | undefined;
  isChanged: boolean;
  /** Shows the first page of a view. `isStep` makes it a step of the browser's history. */
  setView: (view: SavedView, options?: { isStep?: boolean }) => void;
  choose: (name: string) => void;
  /** Takes back the changes of the saved view. */
  reset: () => void;
}

export function useCurrentView({ saved, error }: Pick<ReturnType<typeof useViews>, "saved" | "error">): CurrentView {
  const search = useSearch({ from: "/data/$object" });
  const navigate = useNavigate({ from: "/data/$object" });
  const { view, base, isMissing } = useMemo(() => viewOf(search, saved), [search, saved]);
  const isGrouped = view.groups !== null;
  const leave = useCallback(
    (groups: Grouping | null) => {
      isFocusMoving = (groups !== null) !== isGrouped;
    },
    [isGrouped],
  );
  const setView = useCallback<CurrentView["setView"]>(
    (next, { isStep = false } = {}) => {
      leave(next.groups);
      void navigate({ search: (now) => ({ ...now, ...searchOf(next, base, saved.plain), page: undefined }), replace: !isStep });
    },
    [navigate, leave, base, saved.plain],
  );
  useEffect(() => {
    if (error !== null) failed("The view could not be kept", error);
  }, [error]);
  return {
    view,
    base,
    missing: isMissing ? search.view : undefined,
    isChanged: Object.values(searchOf(view, base, saved.plain)).some((value) => value !== undefined),
    setView,
    choose: (name) => {
      leave(saved.views.find((each) => each.name === name)?.groups ?? null);
      void navigate({ search: (now) => ({ view: name === (saved.preset ?? PLAIN) ? undefined : name, open: now.open }) });
    },
    reset: () => {
      leave(base?.groups ?? null);
      void navigate({ search: (now) => ({ view: now.view, open: now.open }), replace: true });
    },
  };
}

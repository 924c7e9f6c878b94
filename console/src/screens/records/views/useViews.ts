import { useCallback, useMemo } from "react";
import { usePreference } from "../../../api/preferences";
import type { JsonObject } from "../../../api/json";
import { type SavedViews, printViews, readViews } from "./view";

const NONE: JsonObject = {};

/** The saved views of an object. `keep` shows changed views at once, and restores the old ones if the server refuses the change. */
export function useViews(object: string) {
  const [stored, keepStored, state] = usePreference<JsonObject>(`records.${object}`, NONE);
  const saved = useMemo(() => readViews(stored), [stored]);
  const keep = useCallback((views: SavedViews) => keepStored(printViews(views)), [keepStored]);
  return { saved, keep, isPending: state.isPending, error: state.error };
}

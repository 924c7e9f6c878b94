import { useBlocker } from "@tanstack/react-router";
import { useCallback, useEffect, useRef } from "react";
import { confirm } from "../../components/confirm-store";

/** Asks before unsaved input is lost: before a change of the address, and (by the browser) before the page is closed. */
export function useUnsavedGuard(isDirty: boolean, what: string): { leave: (then: () => void) => Promise<void>; letGo: () => void } {
  const dirty = useRef(isDirty);
  const asked = useRef(false);
  useEffect(() => {
    dirty.current = isDirty;
    if (!isDirty) asked.current = false;
  });
  const agrees = useCallback(
    () => confirm({ title: "Leave without saving?", children: `What you changed in ${what} is lost.`, action: "Discard changes" }),
    [what],
  );
  useBlocker({
    shouldBlockFn: async ({ current, next }) => {
      if (!dirty.current || asked.current) return false;
      // In another tab or view of the same record, the draft stays.
      const openOf = (search: unknown) => (search as { open?: string }).open;
      if (current.pathname === next.pathname && openOf(current.search) === openOf(next.search)) return false;
      return !(await agrees());
    },
    enableBeforeUnload: () => dirty.current && !asked.current,
  });
  /** Lets the person leave once without a question. */
  const letGo = useCallback(() => {
    asked.current = true;
  }, []);
  const leave = useCallback(
    async (then: () => void) => {
      if (dirty.current && !(await agrees())) return;
      asked.current = true;
      then();
    },
    [agrees],
  );
  return { leave, letGo };
}

import { useBlocker } from "@tanstack/react-router";
import { useCallback, useEffect, useRef } from "react";
import { confirm } from "../../components/confirm-store";

/** Asks before typed input is lost: on the way to another address, and (by the browser) when the page is left. */
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
      // Another tab or view of the same record keeps the draft.
      const openOf = (search: unknown) => (search as { open?: string }).open;
      if (current.pathname === next.pathname && openOf(current.search) === openOf(next.search)) return false;
      return !(await agrees());
    },
    enableBeforeUnload: () => dirty.current && !asked.current,
  });
  /** Lets the next way out pass unasked. */
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

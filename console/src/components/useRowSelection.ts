import { useCallback, useEffect, useRef } from "react";

/**
 * The selected rows of a table, by their ids. A click selects one row, and with Shift all rows from the previous one. Without `onSelect`,
 * no row can be selected.
 */
export function useRowSelection(idAt: (index: number) => string | undefined, selected: ReadonlySet<string>, onSelect: ((selected: Set<string>) => void) | undefined) {
  const last = useRef<number | null>(null);
  // `toggle` stays the same function at each render, because rows get it as a prop.
  const latest = useRef({ idAt, selected, onSelect });
  useEffect(() => {
    latest.current = { idAt, selected, onSelect };
  });
  const toggle = useCallback((index: number, extend: boolean) => {
    const now = latest.current;
    const id = now.idAt(index);
    if (id === undefined || now.onSelect === undefined) return;
    const next = new Set(now.selected);
    if (extend && last.current !== null) {
      for (let at = Math.min(last.current, index); at <= Math.max(last.current, index); at++) {
        const each = now.idAt(at);
        if (each !== undefined) next.add(each);
      }
    } else if (!next.delete(id)) next.add(id);
    last.current = index;
    now.onSelect(next);
  }, []);

  /** Clears the selection. Returns false if it was already empty. */
  const clear = () => {
    if (selected.size > 0) onSelect?.(new Set());
    return selected.size > 0;
  };

  /** The state of the check box in the head for these rows. */
  const stateOf = <Row,>(rows: Row[], idOf: (row: Row) => string) => {
    const all = rows.length > 0 && rows.every((row) => selected.has(idOf(row)));
    return { all, some: !all && selected.size > 0 };
  };
  return { toggle, clear, stateOf };
}

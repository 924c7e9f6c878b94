/** The current shape of the object that a table shows. */
import { useMemo } from "react";
import { type RecordShape as Known, useShapes } from "../../api/record-shape";
import { type RecordShape, tableShape } from "./columns";
import type { ShapeOf } from "./filters/tree";

export type ShapeState =
  | { state: "loading" }
  | { state: "error"; error: unknown; retry: () => void }
  /** There is no object with this name (any more). */
  | { state: "missing" }
  | { state: "ready"; shape: RecordShape; shapeOfOther: (object: string) => Known | undefined; tableShapeOf: ShapeOf };

export function useShape(object: string): ShapeState {
  const { of, error, refetch } = useShapes();
  return useMemo<ShapeState>(() => {
    if (of === undefined) return error === null ? { state: "loading" } : { state: "error", error, retry: refetch };
    const known = of(object);
    if (known === undefined) return { state: "missing" };
    const shape = tableShape(known);
    const seen = new Map<string, RecordShape | undefined>([[object, shape]]);
    const tableShapeOf = (name: string) => {
      if (!seen.has(name)) {
        const other = of(name);
        seen.set(name, other === undefined ? undefined : tableShape(other));
      }
      return seen.get(name);
    };
    return { state: "ready", shape, shapeOfOther: of, tableShapeOf };
    // `refetch` does the same at each render, so it is left out.
    // oxlint-disable-next-line react/exhaustive-deps
  }, [of, error, object]);
}

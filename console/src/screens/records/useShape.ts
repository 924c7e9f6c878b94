/** The shape of the object that a table shows, as it is now. */
import { useMemo } from "react";
import { type RecordShape as Known, useShapes } from "../../api/record-shape";
import { type RecordShape, tableShape } from "./columns";

export type ShapeState =
  | { state: "loading" }
  | { state: "error"; error: unknown; retry: () => void }
  /** There is no object of this name, or not any more. */
  | { state: "missing" }
  | { state: "ready"; shape: RecordShape; shapeOfOther: (object: string) => Known | undefined };

export function useShape(object: string): ShapeState {
  const { of, error, refetch } = useShapes();
  return useMemo<ShapeState>(() => {
    if (of === undefined) return error === null ? { state: "loading" } : { state: "error", error, retry: refetch };
    const known = of(object);
    return known === undefined ? { state: "missing" } : { state: "ready", shape: tableShape(known), shapeOfOther: of };
    // `refetch` does the same at each render.
    // oxlint-disable-next-line react/exhaustive-deps
  }, [of, error, object]);
}

/** Changes to what queries hold, in turn with the answers of the server. */
import { type QueryKey, notifyManager, useQueryClient } from "@tanstack/react-query";
import { useCallback, useEffect, useRef } from "react";

/**
 * Runs work at once, or when none of these queries (keys or their beginnings) is in flight any more: an answer replaces what is there, and may be of a
 * moment before. What waits keeps its order, and is dropped with the component.
 */
export function useAfterAnswers(queries: QueryKey[] | undefined): (work: () => void) => void {
  const cache = useQueryClient();
  const keys = useRef(queries);
  useEffect(() => {
    keys.current = queries;
  });
  const waiting = useRef<(() => void)[]>([]);
  const isInFlight = useCallback(() => keys.current?.some((queryKey) => cache.isFetching({ queryKey }) > 0) === true, [cache]);
  useEffect(() => {
    const inTurn = () => {
      while (waiting.current.length > 0 && !isInFlight()) waiting.current.shift()!();
    };
    const unwatch = cache.getQueryCache().subscribe(() => {
      if (waiting.current.length > 0) notifyManager.schedule(inTurn);
    });
    return () => {
      unwatch();
      waiting.current = [];
    };
  }, [cache, isInFlight]);
  return useCallback(
    (work) => {
      if (waiting.current.length === 0 && !isInFlight()) work();
      else waiting.current.push(work);
    },
    [isInFlight],
  );
}

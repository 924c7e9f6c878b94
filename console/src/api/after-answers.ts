/** Changes to what queries hold, in turn with the answers of the server. */
import { type QueryKey, notifyManager, useQueryClient } from "@tanstack/react-query";
import { useCallback, useEffect, useRef } from "react";

type Work = (hasWaited: boolean) => void;

/**
 * Runs work at once, or when none of these queries (keys or their beginnings) is in flight any more: an answer replaces what is there, and may be of a
 * moment before. The work is told whether it waited. What waits keeps its order, and is dropped with the component.
 */
export function useAfterAnswers(queries: QueryKey[] | undefined): (work: Work) => void {
  const cache = useQueryClient();
  const keys = useRef(queries);
  useEffect(() => {
    keys.current = queries;
  });
  const waiting = useRef<Work[]>([]);
  const isInFlight = useCallback(() => keys.current?.some((queryKey) => cache.isFetching({ queryKey }) > 0) === true, [cache]);
  useEffect(() => {
    const inTurn = () => {
      while (waiting.current.length > 0 && !isInFlight()) waiting.current.shift()!(true);
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
      if (waiting.current.length === 0 && !isInFlight()) work(false);
      else waiting.current.push(work);
    },
    [isInFlight],
  );
}

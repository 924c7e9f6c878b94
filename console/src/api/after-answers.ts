/** Applies changes to cached query data only when no response for this data is on its way. */
import { type QueryKey, notifyManager, useQueryClient } from "@tanstack/react-query";
import { useCallback, useEffect, useRef } from "react";

type Work = (hasWaited: boolean) => void;

/**
 * Returns a function that runs work at once if none of these queries is in flight. Otherwise it runs the work when they have finished,
 * because the response replaces the cached data and may be older than the change. Each query is given as its key or the beginning of its
 * key. The work gets whether it waited. Waiting work keeps its order. It is dropped when the component unmounts.
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

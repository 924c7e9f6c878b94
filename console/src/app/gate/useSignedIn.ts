import { useQueryClient } from "@tanstack/react-query";
import { useCallback } from "react";
import { feed } from "../../api/live";
import { forgetAll, instanceQuery, meQuery } from "../../api/session";
import { sessionEstablished } from "../../api/session-lost";
import { leaveFarewell } from "./farewell";

/**
 * Call this after a sign-in or sign-up. It drops the data that another person saw and loads who is signed in now. The address in the
 * browser does not change.
 */
export function useSignedIn(): () => Promise<void> {
  const cache = useQueryClient();
  return useCallback(async () => {
    forgetAll(cache);
    feed.reset();
    await cache.refetchQueries({ queryKey: meQuery.queryKey, exact: true });
    const isIn = cache.getQueryData(meQuery.queryKey)?.authenticated === true;
    sessionEstablished(isIn);
    if (isIn) leaveFarewell(null);
    await cache.invalidateQueries({ queryKey: instanceQuery.queryKey });
  }, [cache]);
}

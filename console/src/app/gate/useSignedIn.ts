import { useQueryClient } from "@tanstack/react-query";
import { useCallback } from "react";
import { feed } from "../../api/live";
import { meQuery } from "../../api/session";

/** After a sign-in or a sign-up: forgets what another person saw, and asks who is there now. The address stays. */
export function useSignedIn(): () => Promise<void> {
  const cache = useQueryClient();
  return useCallback(async () => {
    cache.removeQueries({ predicate: ({ queryKey }) => queryKey[0] !== "me" });
    feed.reset();
    await cache.invalidateQueries({ queryKey: ["me"] });
    await cache.refetchQueries({ queryKey: meQuery.queryKey, exact: true });
  }, [cache]);
}

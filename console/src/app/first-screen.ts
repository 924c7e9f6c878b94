/** What the first screen needs, loaded before it is rendered. */
import { instanceQuery, meQuery } from "../api/session";
import { FirstRun, SET_PASSWORD, SignIn } from "./gate/screens";
import { queryClient, router } from "./router";

/**
 * Loads the code and the data that decide which screen comes first. Never fails: the screen shows what could not be loaded.
 *
 * React shows the fallback of a `Suspense` boundary for 300 ms or longer, however fast the code arrives, and boundaries that follow each
 * other add up. The first screen therefore waits here, and its boundaries find their code loaded.
 */
export async function loadFirstScreen(): Promise<void> {
  await Promise.allSettled([router.load(), loadGate()]);
}

async function loadGate(): Promise<void> {
  const answers = Promise.all([queryClient.prefetchQuery(meQuery), queryClient.prefetchQuery(instanceQuery)]);
  if (router.latestLocation.pathname === SET_PASSWORD) return;
  await answers;
  const me = queryClient.getQueryData(meQuery.queryKey);
  const instance = queryClient.getQueryData(instanceQuery.queryKey);
  if (me === undefined || me.authenticated || instance === undefined) return;
  await (instance.needsAdmin ? FirstRun : SignIn).preload();
}

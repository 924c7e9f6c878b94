/**
 * The token of a link that sets a password: `/admin/set-password#token=…`. Browsers send no fragment to a server. This module removes the
 * token from the address bar before the router reads the address, because the router keeps addresses in web storage.
 */
import { useSyncExternalStore } from "react";

const PATH = /^\/admin\/set-password\/?$/;

let token: string | null = null;
const watchers = new Set<() => void>();

/** The token in a fragment. `null` if there is none. */
export function tokenIn(fragment: string): string | null {
  return new URLSearchParams(fragment.replace(/^#/, "")).get("token") || null;
}

/** Keeps the token of the address in memory and clears the fragment. Does nothing for other addresses and for those without a fragment. */
export function takeLinkToken({ location, history }: { location: Pick<Location, "pathname" | "search" | "hash">; history: Pick<History, "state" | "replaceState"> }): void {
  if (!PATH.test(location.pathname) || location.hash === "") return;
  token = tokenIn(location.hash);
  history.replaceState(history.state, "", location.pathname + location.search);
  watchers.forEach((watcher) => watcher());
}

/** The token of the link that was opened last. */
export const linkToken = (): string | null => token;

const watch = (watcher: () => void) => {
  watchers.add(watcher);
  return () => watchers.delete(watcher);
};

export function useLinkToken(): string | null {
  return useSyncExternalStore(watch, linkToken);
}

if (typeof window !== "undefined") {
  takeLinkToken(window);
  // If the person opens another link on this page, only the fragment changes and the browser loads nothing.
  addEventListener("popstate", () => takeLinkToken(window));
}

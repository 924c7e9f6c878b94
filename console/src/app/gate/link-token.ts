/**
 * The token of a link that sets a password: `/admin/set-password#token=…`. A fragment is sent to no server. This module takes it out of the
 * address bar before the router reads the address, because the router keeps addresses in web storage.
 */
import { useSyncExternalStore } from "react";

const PATH = /^\/admin\/set-password\/?$/;

let token: string | null = null;
const watchers = new Set<() => void>();

/** The token of a fragment; `null` where it has none. */
export function tokenIn(fragment: string): string | null {
  return new URLSearchParams(fragment.replace(/^#/, "")).get("token") || null;
}

/** Keeps the token of the address in memory, and clears the fragment. Other addresses, and those without a fragment, stay as they are. */
export function takeLinkToken({ location, history }: { location: Pick<Location, "pathname" | "search" | "hash">; history: Pick<History, "state" | "replaceState"> }): void {
  if (!PATH.test(location.pathname) || location.hash === "") return;
  token = tokenIn(location.hash);
  history.replaceState(history.state, "", location.pathname + location.search);
  watchers.forEach((watcher) => watcher());
}

/** The token of the last link that was opened. */
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
  // Another link that is opened on the page changes the fragment alone, and loads nothing.
  addEventListener("popstate", () => takeLinkToken(window));
}

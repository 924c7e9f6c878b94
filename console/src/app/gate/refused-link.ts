/**
 * A link to confirm an address that was not valid: the server leads from it to the console with `?error=INVALID_TOKEN` or
 * `TOKEN_EXPIRED`. This module takes the
 * error out of the address bar before the router reads the address, so that a reload does not show it again.
 */
import { useSyncExternalStore } from "react";

/** The pages where such links end: see `api/auth.ts`. */
const PATH = /^\/admin(\/account)?\/?$/;

const ERRORS = ["INVALID_TOKEN", "TOKEN_EXPIRED", "INVALID_USER"];

let isRefused = false;
const watchers = new Set<() => void>();

function set(next: boolean): void {
  isRefused = next;
  watchers.forEach((watcher) => watcher());
}

/** Notes the error of the address, and removes it there. Other addresses, and other errors, stay as they are. */
export function takeRefusedLink({ location, history }: { location: Pick<Location, "pathname" | "search" | "hash">; history: Pick<History, "state" | "replaceState"> }): void {
  const search = new URLSearchParams(location.search);
  if (!PATH.test(location.pathname) || !ERRORS.includes(search.get("error") ?? "")) return;
  search.delete("error");
  const rest = search.toString();
  history.replaceState(history.state, "", location.pathname + (rest === "" ? "" : `?${rest}`) + location.hash);
  set(true);
}

/** Whether the person came by a link that was not valid, and has not been told so. */
export const linkIsRefused = (): boolean => isRefused;

export const forgetRefusedLink = (): void => set(false);

const watch = (watcher: () => void) => {
  watchers.add(watcher);
  return () => watchers.delete(watcher);
};

export function useRefusedLink(): boolean {
  return useSyncExternalStore(watch, linkIsRefused);
}

if (typeof window !== "undefined") takeRefusedLink(window);

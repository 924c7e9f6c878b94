/**
 * The token of a link that sets a password: `/admin/set-password#token=…`. Browsers send no fragment to a server. This module removes the
 * token from the address bar before the router reads the address, because the router keeps addresses in web storage.
 */
import { observable } from "../../api/observable";

const PATH = /^\/admin\/set-password\/?$/;

const token = observable<string | null>(null);

/** The token in a fragment. `null` if there is none. */
export function tokenIn(fragment: string): string | null {
  return new URLSearchParams(fragment.replace(/^#/, "")).get("token") || null;
}

/** Keeps the token of the address in memory and clears the fragment. Does nothing for other addresses and for those without a fragment. */
export function takeLinkToken({ location, history }: { location: Pick<Location, "pathname" | "search" | "hash">; history: Pick<History, "state" | "replaceState"> }): void {
  if (!PATH.test(location.pathname) || location.hash === "") return;
  const given = tokenIn(location.hash);
  history.replaceState(history.state, "", location.pathname + location.search);
  token.set(given);
}

/** The token of the link that was opened last. */
export const linkToken = token.get;
export const useLinkToken = token.useValue;

if (typeof window !== "undefined") {
  takeLinkToken(window);
  // If the person opens another link on this page, only the fragment changes and the browser loads nothing.
  addEventListener("popstate", () => takeLinkToken(window));
}

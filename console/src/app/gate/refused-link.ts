/**
 * Handles a link to confirm an address that is not valid. The server redirects it to the console with `?error=INVALID_TOKEN` or
 * `TOKEN_EXPIRED`. This module removes the error from the address bar before the router reads the address, so that a reload does not show
 * it again.
 */
import { observable } from "../../api/observable";

/** The pages to which such links redirect (`api/auth.ts`). */
const PATH = /^\/admin(\/account)?\/?$/;

const ERRORS = ["INVALID_TOKEN", "TOKEN_EXPIRED", "INVALID_USER"];

const isRefused = observable(false);

/** Stores the error and removes it from the address. Does nothing for other addresses and other errors. */
export function takeRefusedLink({ location, history }: { location: Pick<Location, "pathname" | "search" | "hash">; history: Pick<History, "state" | "replaceState"> }): void {
  const search = new URLSearchParams(location.search);
  if (!PATH.test(location.pathname) || !ERRORS.includes(search.get("error") ?? "")) return;
  search.delete("error");
  const rest = search.toString();
  history.replaceState(history.state, "", location.pathname + (rest === "" ? "" : `?${rest}`) + location.hash);
  isRefused.set(true);
}

/** Whether the person opened a link that was not valid and has not seen the message yet. */
export const linkIsRefused = isRefused.get;
export const forgetRefusedLink = (): void => isRefused.set(false);
export const useRefusedLink = isRefused.useValue;

if (typeof window !== "undefined") takeRefusedLink(window);

/**
 * The role as which the person views the whole page. Reads are limited to the role's rights, and changes are not possible. Loading the page
 * again ends the view.
 */
import { useSyncExternalStore } from "react";
import { ApiError } from "./errors";

export interface ViewedRole {
  id: string;
  name: string;
}

export const VIEW_AS_HEADER = "x-svc-view-as";

let role: ViewedRole | null = null;
const watchers = new Set<() => void>();
const watch = (watcher: () => void) => {
  watchers.add(watcher);
  return () => watchers.delete(watcher);
};
const become = (next: ViewedRole | null) => {
  role = next;
  for (const watcher of watchers) watcher();
};

export const viewAs = {
  begin: (next: ViewedRole) => become(next),
  end: () => become(null),
  current: () => role,
  /** Calls the watcher at each change, so that the console can drop the data that it read before. */
  watch,
};

/** Requests about the person are always sent with the person's own rights: who they are, their session and their preferences. */
const OWN = /^\/api\/(auth\/|v1\/me(\/preferences)?$|v1\/instance$)/;

/** Adds the role to a request. A change is refused here, with a message that says how to leave the view. */
export function asViewed(request: Request): Request {
  const path = new URL(request.url).pathname;
  if (role === null || OWN.test(path)) return request;
  if (request.method !== "GET") throw new ApiError(403, "viewing_as", `You view this as the role ${role.name}. Leave that view to change something.`, { method: request.method, path });
  const headers = new Headers(request.headers);
  headers.set(VIEW_AS_HEADER, role.id);
  return new Request(request, { headers });
}

/** The headers for requests that do not go through the client, such as the event stream. */
export function viewedHeaders(): Record<string, string> {
  return role === null ? {} : { [VIEW_AS_HEADER]: role.id };
}

export function useViewAs(): ViewedRole | null {
  return useSyncExternalStore(watch, viewAs.current);
}

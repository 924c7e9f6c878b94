/** A role that the whole page is seen as: what is read is cut to its rights, and nothing is changed meanwhile. It ends with the page. */
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
  /** Told of each change, so that what was read before is forgotten. */
  watch,
};

/** What is the person's own stays theirs: who they are, their session and their preferences. */
const OWN = /^\/api\/(auth\/|v1\/me(\/preferences)?$|v1\/instance$)/;

/** The request as the role; changes are refused here, with the way out. */
export function asViewed(request: Request): Request {
  const path = new URL(request.url).pathname;
  if (role === null || OWN.test(path)) return request;
  if (request.method !== "GET") throw new ApiError(403, "viewing_as", `You view this as the role ${role.name}. Leave that view to change something.`, { method: request.method, path });
  const headers = new Headers(request.headers);
  headers.set(VIEW_AS_HEADER, role.id);
  return new Request(request, { headers });
}

/** For requests that do not go through the client: the event stream. */
export function viewedHeaders(): Record<string, string> {
  return role === null ? {} : { [VIEW_AS_HEADER]: role.id };
}

export function useViewAs(): ViewedRole | null {
  return useSyncExternalStore(watch, viewAs.current);
}

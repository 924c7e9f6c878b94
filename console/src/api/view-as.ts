/**
 * The role as which the person views the whole page. Reads are limited to the role's rights, and changes are not possible. Loading the page
 * again ends the view.
 */
import { ApiError } from "./errors";
import { observable } from "./observable";

interface ViewedRole {
  id: string;
  name: string;
}

const VIEW_AS_HEADER = "x-svc-view-as";

const viewed = observable<ViewedRole | null>(null);

export const viewAs = {
  begin: (role: ViewedRole) => viewed.set(role),
  end: () => viewed.set(null),
  /** Calls the watcher at each change, so that the console can drop the data that it read before. */
  watch: viewed.watch,
};

/** Requests about the person are always sent with the person's own rights: who they are, their session and their preferences. */
const OWN = /^\/api\/(auth\/|v1\/me(\/preferences)?$|v1\/instance$)/;

/** Reads whose parameters are in a body. */
const READ_BY_BODY = /^\/api\/v1\/data\/[^/]+\/query$/;

/** Adds the role to a request. A change is refused here, with a message that says how to leave the view. */
export function asViewed(request: Request): Request {
  const path = new URL(request.url).pathname;
  const role = viewed.get();
  if (role === null || OWN.test(path)) return request;
  if (request.method !== "GET" && !(request.method === "POST" && READ_BY_BODY.test(path))) throw new ApiError(403, "viewing_as", `You view this as the role ${role.name}. Leave that view to change something.`, { method: request.method, path });
  const headers = new Headers(request.headers);
  headers.set(VIEW_AS_HEADER, role.id);
  return new Request(request, { headers });
}

/** The headers for requests that do not go through the client, such as the event stream. */
export function viewedHeaders(): Record<string, string> {
  const role = viewed.get();
  return role === null ? {} : { [VIEW_AS_HEADER]: role.id };
}

export const useViewAs = viewed.useValue;

/** The name of the user or API key behind a change. The API stores only an id: that of a user, or else that of an API key. */
import { queryOptions, useQuery } from "@tanstack/react-query";
import { batched } from "./batched";
import { api, dataOf } from "./client";
import { isApiError } from "./errors";
import type { JsonValue } from "./json";
import type { RecordRow } from "./record-paths";
import { useCan, useMe } from "./session";
import { USERS } from "./users-object";
import { isUuid } from "./uuid";

export interface KnownActor {
  name: string;
  email?: string;
  kind: "me" | "user" | "key";
}

/** The maximum number of users in one request. A page of records has at most this many. */
const USERS_MAX = 100;

const textOf = (value: JsonValue | undefined) => (typeof value === "string" ? value : "");

function actorOf(user: RecordRow): KnownActor | undefined {
  const email = textOf(user.email);
  const name = textOf(user.name) || email;
  return name === "" ? undefined : { name, ...(email === "" ? {} : { email }), kind: "user" };
}

/**
 * Looks up a user. One list request finds all users of a screen. It leaves out deleted users and the ids of keys, while a request for each
 * of them would get 404, which the browser reports as an error of the page.
 */
const findUser = batched(USERS_MAX, async (ids): Promise<ReadonlyMap<string, KnownActor>> => {
  const users = new Map<string, KnownActor>();
  try {
    const query = { "id[in]": ids.join(), select: "id,name,email", pageSize: USERS_MAX, count: "none" };
    for (const user of await dataOf(api.GET("/api/v1/data/{object}", { params: { path: { object: USERS }, query } }))) {
      const actor = actorOf(user);
      if (actor !== undefined) users.set(user.id, actor);
    }
  } catch (error) {
    // The server answered, but with an error: this person may no longer read users.
    if (!isApiError(error) || error.status === 0 || error.status >= 500) throw error;
  }
  return users;
});

const userQuery = (id: string) =>
  queryOptions({
    queryKey: ["users", id, "name"],
    // The server refuses a filter with an id in another format, which no user has.
    queryFn: (): Promise<KnownActor | null> => (isUuid(id) ? findUser(id) : Promise.resolve(null)),
    staleTime: 300_000,
  });

/** All API keys, for their names and for the screen Keys. */
export const keysQuery = queryOptions({
  queryKey: ["api-keys"],
  queryFn: ({ signal }) => dataOf(api.GET("/api/v1/api-keys", { signal })),
});

/** Undefined during the lookup. Null if nothing is known except the id. */
export function useActor(id: string | null | undefined): KnownActor | null | undefined {
  const me = useMe();
  const readsUsers = useCan("users", "read");
  const readsKeys = useCan("api_keys", "read");
  const isSomebody = typeof id === "string" && id !== "";
  const isMe = isSomebody && me?.userId === id;
  const asksUser = isSomebody && !isMe && readsUsers;
  const user = useQuery({ ...userQuery(id ?? ""), enabled: asksUser });
  const asksKeys = isSomebody && !isMe && readsKeys && (!readsUsers || user.data === null);
  const keys = useQuery({ ...keysQuery, enabled: asksKeys, staleTime: 60_000 });
  if (!isSomebody) return null;
  if (isMe) return { name: me?.user?.name || me?.user?.email || id, ...(me?.user === undefined ? {} : { email: me.user.email }), kind: "me" };
  if (asksUser && user.isPending) return undefined;
  if (user.data !== undefined && user.data !== null) return user.data;
  const key = keys.data?.find((each) => each.id === id);
  if (key !== undefined) return { name: key.name, kind: "key" };
  return asksKeys && keys.isPending ? undefined : null;
}

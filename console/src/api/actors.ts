/** The name of the user or API key behind a change. The API stores only an id: that of a user, or else that of an API key. */
import { queryOptions, useQuery } from "@tanstack/react-query";
import { api, dataOf } from "./client";
import { isApiError } from "./errors";
import { useCan, useMe } from "./session";

export interface KnownActor {
  name: string;
  email?: string;
  kind: "me" | "user" | "key";
}

const userQuery = (id: string) =>
  queryOptions({
    queryKey: ["users", id, "name"],
    queryFn: async ({ signal }): Promise<KnownActor | null> => {
      try {
        const { name, email } = await dataOf(api.GET("/api/v1/users/{id}", { params: { path: { id } }, signal }));
        return { name: name || email, email, kind: "user" };
      } catch (error) {
        // The server answered, but with an error: the account is gone, or the id belongs to a key.
        if (isApiError(error) && error.status !== 0 && error.status < 500) return null;
        throw error;
      }
    },
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

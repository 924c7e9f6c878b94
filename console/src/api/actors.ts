/** Who did something, by the id that the API keeps of them: a user's, else an API key's. */
import { queryOptions, useQuery } from "@tanstack/react-query";
import { api, dataOf } from "./client";
import { isApiError } from "./errors";
import { useCan, useMe } from "./session";

export interface ActorName {
  name: string;
  kind: "user" | "key" | "unknown";
}

function userQuery(id: string) {
  return queryOptions({
    queryKey: ["users", id, "name"],
    queryFn: async ({ signal }): Promise<ActorName | null> => {
      try {
        const data = await dataOf(api.GET("/api/v1/users/{id}", { params: { path: { id } }, signal }));
        return { name: data.name === "" ? data.email : data.name, kind: "user" };
      } catch (error) {
        if (isApiError(error) && error.status < 500) return null;
        throw error;
      }
    },
    staleTime: 300_000,
  });
}

const keysQuery = queryOptions({
  queryKey: ["api-keys", "names"],
  queryFn: ({ signal }) => dataOf(api.GET("/api/v1/api-keys", { signal })),
  staleTime: 60_000,
});

/** Undefined while it is looked up, null where nothing is known besides the id. */
export function useActorName(id: string | null | undefined): ActorName | null | undefined {
  const me = useMe();
  const readsUsers = useCan("users", "read");
  const readsKeys = useCan("api_keys", "read");
  const isMe = id !== undefined && id !== null && me?.userId === id;
  const asksUser = id !== undefined && id !== null && !isMe && readsUsers;
  const user = useQuery({ ...userQuery(id ?? ""), enabled: asksUser });
  const asksKeys = id !== undefined && id !== null && !isMe && readsKeys && (!readsUsers || user.data === null);
  const keys = useQuery({ ...keysQuery, enabled: asksKeys });
  if (id === undefined || id === null) return null;
  if (isMe) return { name: "you", kind: "user" };
  if (asksUser && user.isPending) return undefined;
  if (user.data !== undefined && user.data !== null) return user.data;
  const key = keys.data?.find((each) => each.id === id);
  if (key !== undefined) return { name: key.name, kind: "key" };
  return asksKeys && keys.isPending ? undefined : null;
}

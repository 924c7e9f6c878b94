/** Names of those who made and changed things, where the reader may read users or keys. */
import { useQuery } from "@tanstack/react-query";
import { api, dataOf } from "./client";
import { isApiError } from "./errors";
import { useCan, useMe } from "./session";
import type { User } from "./types";

export interface Person {
  id: string;
  /** Undefined where the reader may not know it, or where the account is gone. */
  name?: string | undefined;
  email?: string | undefined;
  kind: "user" | "key" | "unknown";
}

/** A 404 is an answer here: the account has been deleted, or the id is a key's. */
async function userOrNull(id: string, signal: AbortSignal): Promise<User | null> {
  try {
    return await dataOf(api.GET("/api/v1/users/{id}", { params: { path: { id } }, signal }));
  } catch (error) {
    if (isApiError(error) && [403, 404].includes(error.status)) return null;
    throw error;
  }
}

/** Who an id of `created_by`, `updated_by` or an actor is. */
export function usePerson(id: string | null | undefined): Person | undefined {
  const me = useMe();
  const isMe = me?.user !== undefined && me.user.id === id;
  const readsUsers = useCan("users", "read");
  const readsKeys = useCan("api_keys", "read");
  const asked = typeof id === "string" && id !== "" && !isMe;
  const user = useQuery({ queryKey: ["person", id], queryFn: ({ signal }) => userOrNull(id!, signal), enabled: asked && readsUsers, staleTime: 300_000 });
  const keys = useQuery({
    queryKey: ["person-keys"],
    queryFn: ({ signal }) => dataOf(api.GET("/api/v1/api-keys", { signal })),
    enabled: asked && readsKeys && (!readsUsers || user.data === null),
    staleTime: 60_000,
  });
  if (typeof id !== "string" || id === "") return undefined;
  if (isMe) return { id, name: me.user!.name || me.user!.email, email: me.user!.email, kind: "user" };
  if (user.data) return { id, name: user.data.name || user.data.email, email: user.data.email, kind: "user" };
  const key = keys.data?.find((each) => each.id === id);
  return key === undefined ? { id, kind: "unknown" } : { id, name: key.name, kind: "key" };
}

/** Queries for accounts, for administrators. */
import { queryOptions } from "@tanstack/react-query";
import { api, dataOf, ok } from "../../api/client";
import { every } from "../../api/poll";
import type { Role, SeenUser } from "../../api/types";

/** The maximum number of sessions of one user. `PAGE` is the number of users on a page. */
export const SESSIONS_MAX = 100;
export const PAGE = 50;

// Changes of roles and of users have no events, so the lists are polled.
const refetchInterval = every(15_000);

export const usersQuery = (filter: { search?: string | undefined; role?: string | undefined; page: number }) =>
  queryOptions({
    queryKey: ["users", "list", filter],
    queryFn: ({ signal }) => ok(api.GET("/api/v1/users", { params: { query: { ...filter, pageSize: PAGE } }, signal })),
    refetchInterval,
  });

export const userQuery = (id: string) =>
  queryOptions({
    queryKey: ["users", id],
    queryFn: ({ signal }) => dataOf(api.GET("/api/v1/users/{id}", { params: { path: { id } }, signal })),
    refetchInterval,
  });

export const rolesQuery = queryOptions({
  queryKey: ["roles"],
  queryFn: ({ signal }) => dataOf(api.GET("/api/v1/roles", { signal })),
  refetchInterval,
});

/** The service gives these roles itself, so nobody can give them to a user. */
const GIVEN_BY_THE_SERVICE: readonly string[] = ["public", "anonymous"];
export const canBeGiven = ({ name }: Pick<Role, "name">): boolean => !GIVEN_BY_THE_SERVICE.includes(name);

/** The name of a user in a sentence. An account that somebody else made may have no name, and the caller may not be able to read it. */
export const calledOf = ({ name, email, isAnonymous }: Pick<SeenUser, "name" | "email" | "isAnonymous">): string => name || (isAnonymous ? "this guest" : email) || "this user";

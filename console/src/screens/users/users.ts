/** Accounts, as administrators see them. */
import { queryOptions } from "@tanstack/react-query";
import { request } from "../../api/client";
import { isApiError } from "../../api/errors";
import type { Grant } from "../../api/session";

export interface User {
  id: string;
  name: string;
  email: string;
  emailVerified: boolean;
  image: string | null;
  isAnonymous: boolean;
  banned: boolean;
  createdAt: string;
  updatedAt: string;
  roles: { id: string; name: string }[];
}

export interface UserPage {
  data: User[];
  pagination: { page: number; pageSize: number; totalCount: number; totalPages: number };
}

export interface Role {
  id: string;
  name: string;
  description: string | null;
  permissions: Grant[];
  createdAt: string;
  updatedAt: string;
}

export interface UserSession {
  id: string;
  createdAt: string;
  expiresAt: string;
  lastSeenAt: string | null;
  ipAddress: string | null;
  userAgent: string | null;
  current: boolean;
}

/** Most sessions of one user, and most on a page. */
export const SESSIONS_MAX = 100;
export const PAGE = 50;
export const retry = (failures: number, error: unknown) => failures < 2 && !(isApiError(error) && error.status < 500);

export const usersQuery = (filter: { search?: string | undefined; role?: string | undefined; page: number }) =>
  queryOptions({
    queryKey: ["users", "list", filter],
    queryFn: ({ signal }) => request<UserPage>("GET", "/api/v1/users", { query: { ...filter, pageSize: PAGE }, signal }),
    retry,
  });

export const userQuery = (id: string) =>
  queryOptions({
    queryKey: ["users", id],
    queryFn: async ({ signal }) => (await request<{ data: User }>("GET", `/api/v1/users/${encodeURIComponent(id)}`, { signal })).data,
    retry,
  });

export const rolesQuery = queryOptions({
  queryKey: ["roles"],
  queryFn: async ({ signal }) => (await request<{ data: Role[] }>("GET", "/api/v1/roles", { signal })).data,
  retry,
});

/** Everybody has these by what they are; they are not given. */
export const GIVEN_BY_THE_SERVICE: readonly string[] = ["public", "anonymous"];

/** What the reason of a suspension means. */
export const REASONS: Record<string, string> = {
  rights_lost: "Its maker no longer has the rights that it needs.",
  maker_banned: "Its maker is banned.",
  maker_gone: "Its maker was deleted.",
  key_gone: "The API key that made it was deleted.",
  key_expired: "The API key that made it has expired.",
  key_suspended: "The API key that made it is suspended.",
};

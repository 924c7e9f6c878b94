/**
 * One person's settings of the console (saved views, column widths), stored on the server. A change is merged by top-level key. The value
 * null removes a key.
 */
import { queryOptions, useMutation, useQuery, useQueryClient } from "@tanstack/react-query";
import { useCallback } from "react";
import { api, dataOf } from "./client";
import { isApiError } from "./errors";
import type { JsonObject, JsonValue } from "./json";

const key = ["me", "preferences"] as const;

export const preferencesQuery = queryOptions({
  queryKey: key,
  queryFn: async ({ signal }): Promise<JsonObject> => {
    try {
      return await dataOf(api.GET("/api/v1/me/preferences", { signal }));
    } catch (error) {
      // Without an account, nothing is stored.
      if (isApiError(error) && (error.status === 401 || error.status === 403)) return {};
      throw error;
    }
  },
  staleTime: Number.POSITIVE_INFINITY,
});

/**
 * Returns `[value, keep, state]` of one top-level key: `const [views, keepViews] = usePreference("views.task", [])`. `keep` shows the new
 * value at once, and restores the old one if the server refuses it.
 */
export function usePreference<Value extends JsonValue>(name: string, fallback: Value) {
  const cache = useQueryClient();
  const { data, isPending } = useQuery(preferencesQuery);
  const mutation = useMutation({
    mutationFn: (value: Value | null) => api.PATCH("/api/v1/me/preferences", { body: { [name]: value } }),
    onMutate: (value) => {
      const before = cache.getQueryData<JsonObject>(key);
      cache.setQueryData<JsonObject>(key, { ...before, [name]: value });
      return { before };
    },
    onError: (_, __, context) => cache.setQueryData(key, context?.before),
  });
  const { mutate } = mutation;
  const keep = useCallback((value: Value | null) => mutate(value), [mutate]);
  const stored = data?.[name];
  return [stored === undefined || stored === null ? fallback : (stored as Value), keep, { isPending, error: mutation.error }] as const;
}

/** The groups of a view, a page at a time. They are computed again some time after records have changed. */
import { keepPreviousData, useQuery, useQueryClient } from "@tanstack/react-query";
import { useCallback, useEffect, useRef } from "react";
import { readGroups } from "../../../api/aggregates";
import { isApiError } from "../../../api/errors";
import { useLive, useLiveState } from "../../../api/live";
import { readerZone } from "../../../api/local-time";
import type { RecordShape } from "../columns";
import { type ListView, queryText } from "../list-query";
import type { Grouping } from "../views/grouping";
import { GROUPS_MAX, groupParameters } from "./request";

const KEEP_MS = 60_000;
/** The time in which changes are collected. An aggregate reads every record that matches. */
const LIVE_MS = 3_000;

export interface GroupsSource {
  object: string;
  shape: RecordShape;
  view: ListView;
  grouping: Grouping;
  /** Counted from 1. */
  page: number;
}

export function useGroups({ object, shape, view, grouping, page }: GroupsSource) {
  const cache = useQueryClient();
  const isLive = useLiveState() === "live";
  const parameters = queryText(groupParameters(grouping, view, shape, readerZone));
  const query = useQuery({
    queryKey: ["data", object, "groups", shape.signature, parameters, page],
    // The grouping is part of the answer, because the groups of the view before stay on the screen until the new ones are there.
    queryFn: async ({ signal }) => ({ grouping, page, answer: await readGroups(object, `${parameters}&${page > 1 ? `page=${page}&` : ""}pageSize=${GROUPS_MAX}`, signal) }),
    placeholderData: keepPreviousData,
    gcTime: KEEP_MS,
    staleTime: isLive ? Number.POSITIVE_INFINITY : 5_000,
    // While the records are shown, no event reaches the groups that are kept.
    refetchOnMount: "always",
    // A read that the server or a proxy has given up is not repeated automatically, because it would cost the same again.
    retry: (failures, error) => failures < 1 && isApiError(error) && error.status === 0,
  });

  const timer = useRef<ReturnType<typeof setTimeout>>(undefined);
  useEffect(() => () => clearTimeout(timer.current), []);
  const again = useCallback(() => {
    const queryKey = ["data", object, "groups"];
    const read = () => {
      timer.current = undefined;
      // A request that is under way may be older than the change, and would never end if each change started it again.
      if (cache.isFetching({ queryKey }) > 0) timer.current = setTimeout(read, LIVE_MS);
      // What the server refuses, it refuses again. Without an answer, the request may succeed now.
      else void cache.invalidateQueries({ queryKey, predicate: ({ state: { error } }) => error === null || (isApiError(error) && error.status === 0) });
    };
    timer.current ??= setTimeout(read, LIVE_MS);
  }, [cache, object]);
  useLive([`data.${object}.created`, `data.${object}.updated`, `data.${object}.deleted`], again, { onGap: again });
  return query;
}

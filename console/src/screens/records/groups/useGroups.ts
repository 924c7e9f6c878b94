/** The groups of a view, a page at a time. They are computed again some time after records have changed, while the tab is shown. */
import { useDocumentVisibility } from "@mantine/hooks";
import { keepPreviousData, useQuery, useQueryClient } from "@tanstack/react-query";
import { useEffect, useMemo } from "react";
import { readGroups } from "../../../api/aggregates";
import { isApiError } from "../../../api/errors";
import { useLive, useLiveState } from "../../../api/live";
import type { RecordShape } from "../columns";
import { type ListView, isOnlyForList, queryText } from "../list-query";
import type { Grouping } from "../views/grouping";
import { Rereads } from "./rereads";
import { GROUPS_MAX, groupParameters, isZoneUnknown } from "./request";
import { becomeUtc } from "./zone";

const KEEP_MS = 60_000;

export interface GroupsSource {
  object: string;
  shape: RecordShape;
  view: ListView;
  grouping: Grouping;
  /** Counted from 1. */
  page: number;
  /** The time zone of the periods. Undefined for UTC. */
  zone: string | undefined;
}

export function useGroups({ object, shape, view, grouping, page, zone }: GroupsSource) {
  const cache = useQueryClient();
  const isLive = useLiveState() === "live";
  const parameters = queryText(groupParameters(grouping, view, shape, zone));
  const query = useQuery({
    queryKey: ["data", object, "groups", shape.signature, parameters, page],
    // The grouping is part of the answer, because the groups of the view before stay on the screen until the new ones are there.
    queryFn: async ({ signal }) => {
      try {
        return { grouping, page, zone, answer: await readGroups(object, `${parameters}&${page > 1 ? `page=${page}&` : ""}pageSize=${GROUPS_MAX}`, signal) };
      } catch (error) {
        // Without the zone, the query is another one, which follows at once.
        if (isApiError(error) && isZoneUnknown(error, shape)) becomeUtc();
        throw error;
      }
    },
    // Without a body, the request would have another filter.
    enabled: !isOnlyForList(view, shape),
    placeholderData: keepPreviousData,
    gcTime: KEEP_MS,
    staleTime: isLive ? Number.POSITIVE_INFINITY : 5_000,
    // While the records are shown, no event reaches the groups that are kept.
    refetchOnMount: "always",
    // While events report changes, they decide what is read when the tab is shown again.
    refetchOnWindowFocus: !isLive,
    // A read that the server or a proxy has given up is not repeated automatically, because it would cost the same again.
    retry: (failures, error) => failures < 1 && isApiError(error) && error.status === 0,
  });

  const queryKey = useMemo(() => ["data", object, "groups"], [object]);
  const rereads = useMemo(
    () =>
      new Rereads(() => {
        // What the server refuses, it refuses again. Without an answer, the request may succeed now.
        const predicate = ({ state: { error } }: { state: { error: unknown } }) => error === null || (isApiError(error) && error.status === 0);
        void cache.refetchQueries({ queryKey, type: "active", predicate }, { cancelRefetch: false });
      }),
    [cache, queryKey],
  );
  const isShown = useDocumentVisibility() === "visible";
  useEffect(() => rereads.reading(query.isFetching), [rereads, query.isFetching]);
  useEffect(() => {
    rereads.shown(isShown);
    return () => rereads.stop();
  }, [rereads, isShown]);
  const changed = () => {
    // Groups that another choice brings back from the cache are read again then.
    void cache.invalidateQueries({ queryKey, refetchType: "none" });
    rereads.changed();
  };
  useLive([`data.${object}.created`, `data.${object}.updated`, `data.${object}.deleted`], changed, { onGap: changed, queries: [queryKey] });
  return query;
}

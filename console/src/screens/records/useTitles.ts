/** The titles of related records. They are loaded in batches for the references on the screen. */
import { useQueryClient } from "@tanstack/react-query";
import { useCallback, useEffect, useRef, useState } from "react";
import { api, dataOf } from "../../api/client";
import { type RecordShape, displayColumn } from "../../api/record-shape";
import { relatedOf, selectOf } from "../../api/related";
import { allows, usePermissions } from "../../api/session";
import type { RecordRow } from "../../api/record-paths";
import type { RecordColumn } from "./columns";

/** The maximum number of titles in memory. If there are more, all are dropped and the visible ones are loaded again. */
const TITLES_MAX = 5_000;
const BATCH = 100;

export function useTitles(columns: RecordColumn[], rows: RecordRow[], shapeOfOther: (object: string) => RecordShape | undefined) {
  const cache = useQueryClient();
  const permissions = usePermissions();
  const [titles, setTitles] = useState<ReadonlyMap<string, string>>(new Map());
  const asked = useRef(new Set<string>());
  useEffect(() => {
    for (const { id: columnId, relation } of columns) {
      if (relation === undefined || !allows(permissions, relation.target, "read")) continue;
      const other = shapeOfOther(relation.target);
      if (other === undefined || displayColumn(other.columns) === undefined) continue;
      const select = selectOf(relation.target, other.columns);
      const key = (id: string) => `${relation.target}:${id}`;
      const ids = [...new Set(rows.map((row) => row[columnId]))].filter((id): id is string => typeof id === "string" && !asked.current.has(key(id)));
      for (let from = 0; from < ids.length; from += BATCH) {
        const batch = ids.slice(from, from + BATCH);
        for (const id of batch) asked.current.add(key(id));
        void cache
          .fetchQuery({
            queryKey: ["data", relation.target, "titles", batch],
            queryFn: ({ signal }) => {
              const query = `id[in]=${batch.join()}&select=${select}&pageSize=${BATCH}&count=none`;
              return dataOf(api.GET("/api/v1/data/{object}", { params: { path: { object: relation.target }, query }, signal }));
            },
            gcTime: 0,
          })
          .then((data) =>
            setTitles((now) => {
              const next = new Map(now.size > TITLES_MAX ? [] : now);
              if (now.size > TITLES_MAX) asked.current.clear();
              for (const row of data) {
                const text = relatedOf(relation.target, row, other.columns).label;
                if (text !== undefined) next.set(key(row.id), text);
              }
              return next;
            }),
          )
          // Without titles, the page shows the ids.
          .catch(() => {});
      }
    }
  }, [cache, columns, rows, permissions, shapeOfOther]);
  return useCallback((column: RecordColumn, id: string) => (column.relation === undefined ? undefined : titles.get(`${column.relation.target}:${id}`)), [titles]);
}

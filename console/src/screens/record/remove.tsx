/** Deleting a record: what goes along is named, and 8 seconds are left to undo it. */
import { type QueryClient, useQueryClient } from "@tanstack/react-query";
import { useCallback, useState } from "react";
import { api, dataOf, ok } from "../../api/client";
import { isApiError } from "../../api/errors";
import { markDeleted, unmarkDeleted } from "../../api/pending-deletes";
import type { RecordShape, ReverseKey } from "../../api/record-shape";
import { deleteRecord } from "../../api/records";
import { confirm } from "../../components/confirm-store";
import { failed, undoable } from "../../components/toast";

interface Dependents {
  reverse: ReverseKey;
  count: number;
}

const plural = (count: number, name: string) => `${count.toLocaleString("en")} ${name}`;

async function dependentsOf(shape: RecordShape, id: string): Promise<Dependents[]> {
  const counted = await Promise.all(
    shape.reverse.map(async (reverse): Promise<Dependents> => {
      try {
        const query = { [`${reverse.column}[eq]`]: id, limit: 1, select: "id" };
        const { pagination } = await ok(api.GET("/api/v1/data/{object}", { params: { path: { object: reverse.object }, query } }));
        return { reverse, count: Number(pagination.totalCount) };
      } catch (error) {
        // What this person may not see cannot be counted; the server judges.
        if (isApiError(error)) return { reverse, count: 0 };
        throw error;
      }
    }),
  );
  return counted.filter(({ count }) => count > 0);
}

async function linksOf(shape: RecordShape, id: string): Promise<number> {
  if (shape.links.length === 0) return 0;
  try {
    const query = { expand: shape.links.map(({ key }) => key).join(",") };
    const data = await dataOf(api.GET("/api/v1/data/{object}/{id}", { params: { path: { object: shape.object, id }, query } }));
    return shape.links.reduce((sum, { key }) => sum + (Array.isArray(data[key]) ? data[key].length : 0), 0);
  } catch {
    return 0;
  }
}

/** "3 note and 12 links go too. 2 task lose their parent." */
function sentences(dependents: Dependents[], links: number): string {
  const along = [
    ...dependents.filter(({ reverse }) => reverse.onDelete === "cascade").map(({ reverse, count }) => plural(count, reverse.object)),
    ...(links > 0 ? [plural(links, links === 1 ? "link" : "links")] : []),
  ];
  const cleared = dependents.filter(({ reverse }) => reverse.onDelete === "set_null");
  return [
    along.length > 0 ? `${new Intl.ListFormat("en").format(along)} ${along.length === 1 && along[0]!.startsWith("1 ") ? "goes" : "go"} too.` : "",
    ...cleared.map(({ reverse, count }) => `${plural(count, reverse.object)} ${count === 1 ? "loses its" : "lose their"} ${reverse.relation}.`),
  ]
    .filter(Boolean)
    .join(" ");
}

export interface Removal {
  shape: RecordShape;
  id: string;
  label: string;
  etag: string | null;
  /** The record leaves the screen. */
  onGone: () => void;
  /** It comes back. */
  onBack: () => void;
}

async function remove(cache: QueryClient, { shape, id, label, etag, onGone, onBack }: Removal): Promise<void> {
  const [dependents, links] = await Promise.all([dependentsOf(shape, id), linksOf(shape, id)]);
  const holding = dependents.filter(({ reverse }) => reverse.onDelete === "restrict");
  if (holding.length > 0) {
    const list = new Intl.ListFormat("en").format(holding.map(({ reverse, count }) => `${plural(count, reverse.object)} (by ${reverse.relation})`));
    const agreed = await confirm({
      title: `“${label}” is still referred to`,
      children: `${list} ${holding.reduce((sum, { count }) => sum + count, 0) === 1 ? "refers" : "refer"} to it, and the schema keeps it for them. Delete or change those first. The server will refuse to delete it.`,
      action: "Try all the same",
    });
    if (!agreed) return;
  }
  const { object } = shape;
  markDeleted(object, [id]);
  onGone();
  const back = () => {
    unmarkDeleted(object, [id]);
    onBack();
  };
  undoable({
    message: `“${label}” deleted. ${sentences(dependents, links)}`.trim(),
    onUndo: back,
    commit: async () => {
      try {
        await deleteRecord(object, id, etag);
        cache.removeQueries({ queryKey: ["record", object, id] });
        await cache.invalidateQueries({ queryKey: ["data", object] });
      } catch (error) {
        // Somebody else was faster: gone is gone.
        if (isApiError(error) && error.status === 404) return void cache.invalidateQueries({ queryKey: ["data", object] });
        failed(
          isApiError(error) && error.status === 412 ? `“${label}” was not deleted: somebody changed it meanwhile` : `“${label}” was not deleted`,
          error,
        );
      } finally {
        unmarkDeleted(object, [id]);
      }
    },
  });
}

/** `[start, isBusy]`. */
export function useRemove(): [(removal: Removal) => void, boolean] {
  const cache = useQueryClient();
  const [isBusy, setBusy] = useState(false);
  const start = useCallback(
    (removal: Removal) => {
      setBusy(true);
      remove(cache, removal)
        .catch((error: unknown) => failed("It was not deleted", error))
        .finally(() => setBusy(false));
    },
    [cache],
  );
  return [start, isBusy];
}

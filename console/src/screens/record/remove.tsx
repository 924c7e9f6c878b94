/** Deletes a record. A toast says what else is deleted, and the person has 8 seconds to undo it. */
import { type QueryClient, useQueryClient } from "@tanstack/react-query";
import { useCallback, useState } from "react";
import { isApiError } from "../../api/errors";
import { markDeleted, unmarkDeleted } from "../../api/pending-deletes";
import type { RecordShape } from "../../api/record-shape";
import { deleteRecord } from "../../api/records";
import { permissionsQuery } from "../../api/session";
import { confirm } from "../../components/confirm-store";
import { failed, undoable } from "../../components/toast";
import { dependentsOf, linksOf, plural, sentences } from "./dependents";

export interface Removal {
  shape: RecordShape;
  id: string;
  label: string;
  etag: string | null;
  /** Removes the record from the screen. */
  onGone: () => void;
  /** Brings the record back. */
  onBack: () => void;
}

async function remove(cache: QueryClient, { shape, id, label, etag, onGone, onBack }: Removal): Promise<void> {
  const [dependents, links] = await Promise.all([dependentsOf(shape, id), linksOf(shape, id, cache.getQueryData(permissionsQuery.queryKey))]);
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
        // Somebody else has already deleted the record, which is the same result.
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

/** Returns `[start, isBusy]`. */
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

import { type DraftValue, Unreadable } from "../../record/draft";
import type { RecordColumn } from "../columns";
import type { Read } from "../values";

/**
 * Converts the text in a column's editor to the value to save. Spaces around an email address, URL or slug usually come from pasting, so
 * they are removed.
 */
export function readDraft(draft: DraftValue, column: RecordColumn): Read {
  if (draft instanceof Unreadable) return { problem: draft.message };
  const value = (typeof draft === "string" && /^(email|url|slug)$/.test(column.type) ? draft.trim() || null : draft) ?? null;
  return value === null && column.required ? { problem: `${column.label} needs a value.` } : { value };
}

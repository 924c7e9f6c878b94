import { type DraftValue, Unreadable } from "../../record/draft";
import type { RecordColumn } from "../columns";
import type { Read } from "../values";

/** What was entered in a column's editor, as a value to save. Spaces around an address or the like come from pasting and mean nothing. */
export function readDraft(draft: DraftValue, column: RecordColumn): Read {
  if (draft instanceof Unreadable) return { problem: draft.message };
  const value = (typeof draft === "string" && /^(email|url|slug)$/.test(column.type) ? draft.trim() || null : draft) ?? null;
  return value === null && column.required ? { problem: `${column.label} needs a value.` } : { value };
}

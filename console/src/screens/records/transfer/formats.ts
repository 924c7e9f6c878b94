/** What files can be, for the page and for its reader: the parser itself stays with the reader. */
import type { JsonValue } from "../../../api/json";

export type SourceFormat = "csv" | "json";
export const ENCODINGS = ["utf-8", "windows-1252", "utf-16le", "utf-16be"] as const;
export type Encoding = (typeof ENCODINGS)[number];

export interface SourceOptions {
  format: SourceFormat;
  encoding: Encoding;
  /** Of CSV. */
  delimiter: string;
  /** Whether the first row of a CSV has the names. */
  hasHeader: boolean;
}

export const DELIMITERS = [",", ";", "\t", "|"] as const;

/** A row by the names of the source: a text or null of CSV, any value of JSON; `undefined` where the row is too short. */
export interface SourceRow {
  /** 1 for the first row of data. */
  number: number;
  cells: Record<string, JsonValue | undefined>;
  /** Set where the row could not be read at all. */
  broken?: string;
}

/** The formats of files, for the page and for the worker that reads the file. Only the worker loads the parser. */
import type { JsonValue } from "../../../api/json";

export type SourceFormat = "csv" | "json";
export const ENCODINGS = ["utf-8", "windows-1252", "utf-16le", "utf-16be"] as const;
export type Encoding = (typeof ENCODINGS)[number];

export interface SourceOptions {
  format: SourceFormat;
  encoding: Encoding;
  /** Only for CSV. */
  delimiter: string;
  /** Whether the first row of a CSV has the names. */
  hasHeader: boolean;
}

export const DELIMITERS = [",", ";", "\t", "|"] as const;
export type Delimiter = (typeof DELIMITERS)[number];

/** A row, keyed by the names of the source. CSV has texts or null, JSON has any value. A cell is `undefined` if the row is too short. */
export interface SourceRow {
  /** The number of the row. The first row of data is 1. */
  number: number;
  cells: Record<string, JsonValue | undefined>;
  /** Set if the row could not be parsed. */
  broken?: string;
}

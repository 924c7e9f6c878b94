/** The types of the parts of csv-parse's browser build that we use. Its own types would also include those of Node. */
declare module "csv-parse/browser/esm" {
  export interface Context {
    /** Whether the cell was in quotes. */
    quoting: boolean;
  }
  export interface Options {
    delimiter?: string;
    bom?: boolean;
    relax_column_count?: boolean;
    relax_quotes?: boolean;
    skip_empty_lines?: boolean;
    cast?: (value: string, context: Context) => unknown;
  }
  export interface Parser {
    write: (text: string, done: (error?: Error | null) => void) => boolean;
    end: () => void;
    read: () => unknown[] | null;
    on: ((event: "readable" | "end", listener: () => void) => void) & ((event: "error", listener: (error: Error) => void) => void);
  }
  export function parse(options: Options): Parser;
}

/** What is used of csv-parse's build for browsers; its own types bring those of Node along. */
declare module "csv-parse/browser/esm" {
  export interface Context {
    /** Whether the cell stood in quotes. */
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

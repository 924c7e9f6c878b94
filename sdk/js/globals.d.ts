// The globals that a block has in addition to those of the language. They do not conflict with the types of a browser or of Node.

interface Console {
  log(...values: any[]): void;
  info(...values: any[]): void;
  warn(...values: any[]): void;
  error(...values: any[]): void;
  debug(...values: any[]): void;
  trace(...values: any[]): void;
  dir(value: any): void;
  assert(condition?: boolean, ...values: any[]): void;
}
declare var console: Console;

interface Crypto {
  getRandomValues<T extends ArrayBufferView>(array: T): T;
  randomUUID(): `${string}-${string}-${string}-${string}-${string}`;
}
declare var crypto: Crypto;

interface TextEncoder {
  readonly encoding: string;
  encode(text?: string): Uint8Array<ArrayBuffer>;
}
declare var TextEncoder: { new (): TextEncoder; prototype: TextEncoder };

interface TextDecoder {
  readonly encoding: string;
  decode(data?: ArrayBufferView | ArrayBuffer): string;
}
declare var TextDecoder: {
  new (label?: string, options?: { fatal?: boolean; ignoreBOM?: boolean }): TextDecoder;
  prototype: TextDecoder;
};

interface URLSearchParams extends Iterable<[string, string]> {
  readonly size: number;
  get(name: string): string | null;
  getAll(name: string): string[];
  has(name: string): boolean;
  append(name: string, value: string): void;
  set(name: string, value: string): void;
  delete(name: string): void;
  sort(): void;
  forEach(callback: (value: string, name: string, params: URLSearchParams) => void): void;
  entries(): IterableIterator<[string, string]>;
  keys(): IterableIterator<string>;
  values(): IterableIterator<string>;
  toString(): string;
}
declare var URLSearchParams: {
  new (init?: string | Iterable<[string, string]> | Record<string, string>): URLSearchParams;
  prototype: URLSearchParams;
};

declare function setTimeout(run: (...args: any[]) => void, delayMs?: number, ...args: any[]): number;
declare function clearTimeout(id: number | undefined): void;
declare function queueMicrotask(run: () => void): void;
declare function atob(text: string): string;
declare function btoa(text: string): string;

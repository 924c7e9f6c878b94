/**
 * Functions that read search parameters. Each returns `undefined` if the value is missing or not valid, so the screen shows its default.
 */

export type RawSearch = Record<string, unknown>;

export function text(raw: unknown, lengthMax = 4_000): string | undefined {
  const value = typeof raw === "number" || typeof raw === "boolean" ? String(raw) : raw;
  return typeof value === "string" && value !== "" && value.length <= lengthMax ? value : undefined;
}

export function whole(raw: unknown, min = 1, max = Number.MAX_SAFE_INTEGER): number | undefined {
  const value = typeof raw === "string" ? Number(raw) : raw;
  return typeof value === "number" && Number.isInteger(value) && value >= min && value <= max ? value : undefined;
}

export function flag(raw: unknown): true | undefined {
  return raw === true || raw === "true" || raw === 1 ? true : undefined;
}

export function oneOf<const Choice extends string>(raw: unknown, choices: readonly Choice[]): Choice | undefined {
  return choices.find((choice) => choice === raw);
}

/** Removes the keys that are `undefined`, so that addresses stay short. */
export function given<Search extends object>(search: Search): { [Key in keyof Search]?: Exclude<Search[Key], undefined> } {
  return Object.fromEntries(Object.entries(search).filter(([, value]) => value !== undefined)) as never;
}

/** Numbers in texts, with separators between thousands. */
export const NUMBER = new Intl.NumberFormat("en");

/** A number with its noun: `1 row`, `1,234 rows`. */
export function quantity(number: number, one: string, many = `${one}s`): string {
  return `${NUMBER.format(number)} ${number === 1 ? one : many}`;
}

const UNITS = ["bytes", "KiB", "MiB", "GiB"];

export function bytesText(bytes: number): string {
  const power = bytes === 0 ? 0 : Math.min(UNITS.length - 1, Math.floor(Math.log2(bytes) / 10));
  const value = bytes / 1024 ** power;
  return `${power === 0 || value >= 100 ? Math.round(value) : value.toFixed(1)} ${UNITS[power]}`;
}

export const countText = (count: number) => count.toLocaleString("en");

export function rowsText(count: number): string {
  return `${countText(count)} ${count === 1 ? "row" : "rows"}`;
}

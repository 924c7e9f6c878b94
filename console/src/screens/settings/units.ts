const STEPS = ["KiB", "MiB", "GiB", "TiB"] as const;

/** A size in words: "812 bytes", "4.2 MiB". Three digits are enough to compare sizes. */
export function bytes(count: number): string {
  if (count < 1_024) return `${count} bytes`;
  let value = count / 1_024;
  let step = 0;
  while (value >= 1_000 && step < STEPS.length - 1) {
    value /= 1_024;
    step++;
  }
  return `${value < 10 ? value.toFixed(1) : Math.round(value).toLocaleString("en")} ${STEPS[step]}`;
}

/** The time of something short: "42 µs", "3.1 ms", "1,200 ms". A dash if there is none. */
export function shortTime(milliseconds: number | null): string {
  if (milliseconds === null) return "–";
  // A number of the API may keep its digits in an object.
  const value = Number(milliseconds);
  if (value < 1) return `${Math.round(value * 1_000)} µs`;
  return `${value < 10 ? value.toFixed(1) : Math.round(value).toLocaleString("en")} ms`;
}

/** A duration in its two largest units: "3 d 4 h", "12 min", "40 s". */
export function duration(seconds: number): string {
  const units: [string, number][] = [["d", 86_400], ["h", 3_600], ["min", 60], ["s", 1]];
  const first = units.findIndex(([, length]) => seconds >= length);
  if (first === -1) return "0 s";
  const [unit, length] = units[first]!;
  const next = units[first + 1];
  const rest = next === undefined ? 0 : Math.floor((seconds % length) / next[1]);
  return `${Math.floor(seconds / length)} ${unit}${rest > 0 && next !== undefined && next[0] !== "s" ? ` ${rest} ${next[0]}` : ""}`;
}

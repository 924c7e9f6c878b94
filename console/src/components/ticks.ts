/** The marks of a chart's axes. */

const MARKS = 4;
/** More marks than this come only from numbers that a double can no longer divide. */
const MARKS_MAX = 20;
const DIGITS = 12;

/** Round numbers from below the least to above the greatest value, and 0 among them. They are whole if all values are. */
export function ticksOf(series: (number | null | undefined)[][]): number[] {
  const values = series.flat().filter((value) => typeof value === "number" && Number.isFinite(value)) as number[];
  const low = values.reduce((least, value) => Math.min(least, value), 0);
  const high = values.reduce((most, value) => Math.max(most, value), 0);
  if (low === high) return [0, 1];
  const rough = high / MARKS - low / MARKS;
  const power = 10 ** Math.floor(Math.log10(rough));
  const nice = power * ([1, 2, 5].find((step) => step * power >= rough) ?? 10);
  const step = values.every(Number.isInteger) ? Math.max(nice, 1) : nice;
  const [first, last] = [Math.floor(low / step), Math.ceil(high / step)];
  if (!(last - first <= MARKS_MAX)) return [low, high];
  const ticks = Array.from({ length: last - first + 1 }, (_, index) => Number(((first + index) * step).toPrecision(DIGITS)));
  return ticks.every(Number.isFinite) ? ticks : [low, high];
}

const compact = new Intl.NumberFormat("en", { notation: "compact", maximumSignificantDigits: 4 });

/** The unit in which uPlot draws values. It has no marks for numbers that are much larger or smaller than those of daily life. */
export function unitOf(series: (number | null | undefined)[][]): number {
  const most = series.flat().reduce<number>((size, value) => (typeof value === "number" && Number.isFinite(value) ? Math.max(size, Math.abs(value)) : size), 0);
  if (most === 0 || (most >= 1e-3 && most < 1e12)) return 1;
  const unit = 10 ** Math.floor(Math.log10(most));
  return unit > 0 && Number.isFinite(unit) ? unit : 1;
}

/** A number in few characters: "0.25", "12K", "1.5e+20". */
export function tickText(value: number): string {
  const size = Math.abs(value);
  return size !== 0 && (size >= 1e15 || size < 1e-4) ? value.toExponential(1) : compact.format(value);
}

const CHARACTERS_MAX = 22;
/** The width of a character and of the space between two names, in pixels. */
const CHARACTER_PX = 6.5;
const SPACE_PX = 14;

export function cutName(name: string): string {
  const characters = Array.from(name);
  return characters.length > CHARACTERS_MAX ? `${characters.slice(0, CHARACTERS_MAX - 1).join("")}…` : name;
}

/** The places whose names have room on an axis of this width, at the same distance from each other. */
export function namedPlaces(names: string[], width: number): number[] {
  const longest = names.reduce((most, name) => Math.max(most, cutName(name).length), 1);
  const room = Math.max(1, Math.floor(width / (longest * CHARACTER_PX + SPACE_PX)));
  const step = Math.max(1, Math.ceil(names.length / room));
  return names.flatMap((_, index) => (index % step === 0 ? [index] : []));
}

/** The width of one bar, if the distance between two places is 1. `placePx` is that distance in pixels. */
export function barWidth(series: number, placePx: number): number {
  const PLACE = 0.8;
  const WIDEST_PX = 64;
  return Math.min(PLACE / series, placePx > 0 ? WIDEST_PX / placePx : PLACE / series);
}

/** The place and the bar at a position of the axis. Undefined outside of the places. */
export function barAt(position: number, places: number, series: number, width: number): { place: number; series: number } | undefined {
  const place = Math.round(position);
  if (!(place >= 0 && place < places)) return undefined;
  const bar = Math.floor((position - place + (series * width) / 2) / width);
  return { place, series: Math.min(Math.max(bar, 0), series - 1) };
}

/** Converts between points in time and the values of `datetime-local` fields, in the reader's time zone. */

/** The reader's time zone. */
export const readerZone = Intl.DateTimeFormat().resolvedOptions().timeZone;

const two = (number: number) => String(number).padStart(2, "0");

/** Converts a point in time to a `datetime-local` value in the reader's time zone. */
export function toLocal(instant: string): string {
  const at = new Date(instant);
  if (Number.isNaN(at.getTime())) return "";
  const seconds = at.getSeconds() === 0 && at.getMilliseconds() === 0 ? "" : `:${two(at.getSeconds())}${at.getMilliseconds() === 0 ? "" : `.${String(at.getMilliseconds()).padStart(3, "0")}`}`;
  return `${String(at.getFullYear()).padStart(4, "0")}-${two(at.getMonth() + 1)}-${two(at.getDate())}T${two(at.getHours())}:${two(at.getMinutes())}${seconds}`;
}

/** Converts a local date and time to a point in time. `null` if the text is not valid. */
export function fromLocal(local: string): string | null {
  const at = new Date(local);
  return local === "" || Number.isNaN(at.getTime()) ? null : at.toISOString();
}

/** Instants as `datetime-local` fields have them: in the reader's zone. */

/** The zone that the reader's times are in. */
export const readerZone = Intl.DateTimeFormat().resolvedOptions().timeZone;

const two = (number: number) => String(number).padStart(2, "0");

/** An instant as `datetime-local` has it, in the reader's zone. */
export function toLocal(instant: string): string {
  const at = new Date(instant);
  if (Number.isNaN(at.getTime())) return "";
  const seconds = at.getSeconds() === 0 && at.getMilliseconds() === 0 ? "" : `:${two(at.getSeconds())}${at.getMilliseconds() === 0 ? "" : `.${String(at.getMilliseconds()).padStart(3, "0")}`}`;
  return `${String(at.getFullYear()).padStart(4, "0")}-${two(at.getMonth() + 1)}-${two(at.getDate())}T${two(at.getHours())}:${two(at.getMinutes())}${seconds}`;
}

/** The instant that a local date and time mean; `null` where they mean none. */
export function fromLocal(local: string): string | null {
  const at = new Date(local);
  return local === "" || Number.isNaN(at.getTime()) ? null : at.toISOString();
}

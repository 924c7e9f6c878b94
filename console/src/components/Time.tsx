import { useEffect, useState, useSyncExternalStore } from "react";

const STEPS: [Intl.RelativeTimeFormatUnit, number][] = [
  ["year", 31_536_000],
  ["month", 2_592_000],
  ["day", 86_400],
  ["hour", 3_600],
  ["minute", 60],
];
const relative = new Intl.RelativeTimeFormat("en", { numeric: "auto", style: "short" });
const local = new Intl.DateTimeFormat(undefined, { dateStyle: "medium", timeStyle: "medium" });
const utc = new Intl.DateTimeFormat(undefined, { dateStyle: "medium", timeStyle: "medium", timeZone: "UTC" });

/** One clock for all times on the page, so that all of them change at the same moment. */
const watchers = new Set<() => void>();
let now = Date.now();
let timer: ReturnType<typeof setInterval> | undefined;
function watch(watcher: () => void) {
  watchers.add(watcher);
  timer ??= setInterval(() => {
    now = Date.now();
    for (const each of watchers) each();
  }, 10_000);
  return () => {
    watchers.delete(watcher);
    if (watchers.size === 0) {
      clearInterval(timer);
      timer = undefined;
    }
  };
}

/** A relative time: "3 min. ago", "in 2 days", "just now". */
export function relativeTime(at: number, from = Date.now()): string {
  const seconds = Math.round((at - from) / 1_000);
  for (const [unit, length] of STEPS) if (Math.abs(seconds) >= length) return relative.format(Math.trunc(seconds / length), unit);
  return Math.abs(seconds) < 10 ? "just now" : relative.format(seconds, "second");
}

/**
 * A point in time, shown as relative. Hovering shows it in the reader's time zone and in UTC. `exact` shows the reader's time zone at once.
 */
export function Time({ at, exact = false }: { at: string | number | null | undefined; exact?: boolean }) {
  const current = useSyncExternalStore(watch, () => now);
  // A time later than the clock's last step is shown as "just now", not as in the future.
  const [mounted] = useState(() => Date.now());
  useEffect(() => {
    if (mounted > now) now = mounted;
  }, [mounted]);
  if (at === null || at === undefined || at === "") return <span className="dim">–</span>;
  const date = new Date(at);
  if (Number.isNaN(date.getTime())) return <span>{String(at)}</span>;
  const iso = date.toISOString();
  return (
    <time dateTime={iso} className="nums" style={{ whiteSpace: "nowrap" }} data-tip={`${local.format(date)}\n${utc.format(date)} UTC\n${typeof at === "string" ? at : iso}`}>
      {exact ? local.format(date) : relativeTime(date.getTime(), Math.max(current, mounted))}
    </time>
  );
}

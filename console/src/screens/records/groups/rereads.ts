/** Decides when data is read again whose request costs much, such as an aggregate over all records. This file does not use React. */

/** The time in which the first changes are collected. */
const COLLECT_MS = 1_000;
/** The least time from the end of a read to the next one. */
const REST_MS = 5_000;
/** If reads take long, the time between them is this many times as long. */
const REST_FACTOR = 10;
const REST_MS_MAX = 60_000;

/** Only a change leads to a read, never in a hidden tab, and with a rest after each read. */
export class Rereads {
  readonly #read: () => void;
  /** Whether there have been changes since the last read began. */
  #isBehind = false;
  #isShown = true;
  #isReading = false;
  #beganAt = 0;
  #restsUntil = 0;
  #timer: ReturnType<typeof setTimeout> | undefined;

  constructor(read: () => void) {
    this.#read = read;
  }

  /** The records have changed. Not called during a read: changes wait for its end, because they may be newer than its answer. */
  changed(): void {
    this.#isBehind = true;
    this.#plan(COLLECT_MS);
  }

  /** Whether the tab is shown. When a tab is shown again, changes that it has missed are read at once, unless it still rests. */
  shown(isShown: boolean): void {
    this.#isShown = isShown;
    this.#plan(0);
  }

  /** Whether a read is under way. It may have another reason than a change. */
  reading(isReading: boolean): void {
    if (isReading === this.#isReading) return;
    this.#isReading = isReading;
    const now = Date.now();
    if (isReading) {
      this.#isBehind = false;
      this.#beganAt = now;
    } else this.#restsUntil = now + Math.max(REST_MS, (now - this.#beganAt) * REST_FACTOR);
    this.#plan(COLLECT_MS);
  }

  stop(): void {
    clearTimeout(this.#timer);
    this.#timer = undefined;
  }

  #plan(pauseMs: number): void {
    if (!this.#isBehind || !this.#isShown || this.#isReading) return this.stop();
    this.#timer ??= setTimeout(
      () => {
        this.#timer = undefined;
        this.#isBehind = false;
        this.#read();
      },
      // The maximum also holds if somebody sets the clock back.
      Math.min(REST_MS_MAX, Math.max(pauseMs, this.#restsUntil - Date.now())),
    );
  }
}

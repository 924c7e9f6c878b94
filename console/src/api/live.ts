/**
 * One event stream for the tab, shared by all screens. It requests all topics that the screens need. After a break it continues after the
 * last event that it received (`since`). After each failure it waits longer. Screens get events in batches, about one batch per frame.
 */
import { type QueryKey, useQueryClient } from "@tanstack/react-query";
import { useEffect, useRef, useSyncExternalStore } from "react";
import { useAfterAnswers } from "./after-answers";
import { address } from "./client";
import { parseJson, type JsonValue } from "./json";
import { isSessionEstablished, signInAgain } from "./session-lost";
import { topicMatches } from "./topics";
import type { LiveEvent } from "./types";
import { viewAs, viewedHeaders } from "./view-as";

/** `off`: no screen needs events. `forbidden`: this person may not read them. */
export type LiveState = "off" | "connecting" | "live" | "reconnecting" | "offline" | "forbidden";

type Handler = (events: LiveEvent[]) => void;

/** If a stream sends nothing for this long, it counts as dead. It is a bit longer than two heartbeats. */
const SILENCE_MS_MAX = 35_000;
const BACKOFF_MS = [500, 1_000, 2_000, 4_000, 8_000, 15_000, 30_000];
const BATCH_MAX = 2_000;
/** If the first stream of a tab opens within this time, the page has only just read its data and does not have to read it again. */
const OPENING_MS_MAX = 250;

class Feed {
  #subscribers = new Map<symbol, { topics: string[]; handler: { current: Handler }; gap: { current: (() => void) | undefined }; since: number }>();
  #listeners = new Set<() => void>();
  #state: LiveState = "off";
  #lastId: string | null = null;
  #seen: string[] = [];
  #asked = "";
  #failures = 0;
  #connection: AbortController | null = null;
  #pending: LiveEvent[] = [];
  #frame = 0;
  #settle: ReturnType<typeof setTimeout> | undefined;
  #retry: ReturnType<typeof setTimeout> | undefined;

  constructor() {
    if (typeof addEventListener === "undefined") return;
    addEventListener("online", () => this.#restart());
    viewAs.watch(() => this.#restart());
    addEventListener("offline", () => this.#become("offline"));
    document.addEventListener("visibilitychange", () => {
      if (document.visibilityState === "visible" && this.#state !== "live" && this.#state !== "off") this.#restart();
    });
  }

  subscribe(topics: string[], handler: { current: Handler }, gap: { current: (() => void) | undefined }): () => void {
    const id = Symbol("subscriber");
    this.#subscribers.set(id, { topics, handler, gap, since: performance.now() });
    this.#reconsider();
    return () => {
      this.#subscribers.delete(id);
      this.#reconsider();
    };
  }

  watch = (listener: () => void): (() => void) => {
    this.#listeners.add(listener);
    return () => this.#listeners.delete(listener);
  };

  state = (): LiveState => this.#state;

  /** Called after a sign-out, and after another person has signed in. */
  reset(): void {
    this.#lastId = null;
    this.#asked = "";
    this.#connection?.abort();
    this.#connection = null;
    this.#reconsider();
  }

  #become(state: LiveState): void {
    if (this.#state === state) return;
    this.#state = state;
    for (const listener of this.#listeners) listener();
  }

  #union(): string {
    const all = [...new Set([...this.#subscribers.values()].flatMap(({ topics }) => topics))];
    // Leaves out topics that another pattern already includes.
    return all.filter((one) => !all.some((other) => other !== one && topicMatches(other, one))).sort().join(",");
  }

  /** Waits a moment before it changes the stream, because several screens often appear and disappear together. */
  #reconsider(): void {
    clearTimeout(this.#settle);
    this.#settle = setTimeout(() => {
      const union = this.#union();
      if (union === this.#asked && this.#connection !== null) return;
      if (union === "") {
        this.#connection?.abort();
        this.#connection = null;
        this.#asked = "";
        this.#become("off");
        return;
      }
      this.#restart();
    }, 60);
  }

  #restart(): void {
    clearTimeout(this.#retry);
    this.#failures = 0;
    void this.#connect();
  }

  async #connect(): Promise<void> {
    const topics = this.#union();
    if (topics === "") return;
    const before = this.#connection;
    const connection = new AbortController();
    this.#connection = connection;
    this.#asked = topics;
    if (this.#state !== "live") this.#become(this.#failures === 0 && this.#lastId === null ? "connecting" : navigator.onLine ? "reconnecting" : "offline");
    const current = () => this.#connection === connection;
    let silence: ReturnType<typeof setTimeout> | undefined;
    let answered = false;
    try {
      const response = await fetch(address("/api/v1/events/stream", { topics, since: this.#lastId }), {
        headers: { accept: "text/event-stream", ...viewedHeaders() },
        credentials: "same-origin",
        // The requests for the page's data go first. With a low priority, tools that measure the loading of a page do not wait for a stream
        // that never ends.
        priority: "low",
        signal: connection.signal,
      });
      answered = true;
      if (!current()) return;
      if (response.status === 401 && isSessionEstablished()) {
        this.#become("reconnecting");
        await signInAgain();
        return current() ? this.#restart() : undefined;
      }
      if (response.status === 403 || response.status === 401) {
        this.#become("forbidden");
        return;
      }
      if (response.status === 404 && this.#lastId !== null) {
        // The outbox no longer has the last event, so the page may have missed events.
        this.#lastId = null;
        this.#tellGap();
        return void this.#connect();
      }
      if (!response.ok || response.body === null) throw new Error(`The stream answered ${response.status}.`);
      const alive = () => {
        clearTimeout(silence);
        silence = setTimeout(() => connection.abort(), SILENCE_MS_MAX);
      };
      alive();
      let rest = "";
      let opened = false;
      const reader = response.body.pipeThrough(new TextDecoderStream()).getReader();
      for (;;) {
        const { value, done } = await reader.read();
        if (done || connection.signal.aborted) break;
        alive();
        if (!opened && current()) {
          opened = true;
          this.#become("live");
          // Without the id of a last event, the stream does not bring the events from before it opened. The page may lack them, and the
          // previous stream, which ends now, may contain events that were not read.
          if (this.#lastId === null) this.#tellGap(this.#failures > 0 || before !== null ? 0 : OPENING_MS_MAX);
          this.#failures = 0;
        }
        // The previous connection ends only now, so that no event is lost in between. An event that both connections bring is used once.
        before?.abort();
        rest += value;
        const frames = rest.split("\n\n");
        rest = frames.pop() ?? "";
        for (const frame of frames) this.#take(frame);
      }
    } catch {
      // A broken connection is not an error of the page. The state below shows it, and the stream starts again.
    } finally {
      clearTimeout(silence);
      before?.abort();
    }
    if (!current() || this.#union() === "") return;
    // If the server answers at all, it is not gone. It restarts, or has too many streams.
    this.#become(answered || (navigator.onLine && this.#failures < 2) ? "reconnecting" : "offline");
    const pause = BACKOFF_MS[Math.min(this.#failures, BACKOFF_MS.length - 1)]!;
    this.#failures += 1;
    this.#retry = setTimeout(() => void this.#connect(), pause * (0.75 + Math.random() / 2));
  }

  #take(frame: string): void {
    const data = frame
      .split("\n")
      .filter((line) => line.startsWith("data:"))
      .map((line) => line.slice(5).trimStart())
      .join("\n");
    if (data === "") return;
    const event = parseJson(data) as unknown as LiveEvent;
    if (this.#seen.includes(event.id)) return;
    this.#seen.push(event.id);
    if (this.#seen.length > 256) this.#seen.splice(0, 128);
    this.#lastId = event.id;
    this.#pending.push(event);
    if (this.#pending.length >= BATCH_MAX) return this.#deliver();
    // A hidden tab has no animation frames, but its timers run.
    if (this.#frame === 0) this.#frame = window.setTimeout(() => this.#deliver(), 16);
  }

  #deliver(): void {
    clearTimeout(this.#frame);
    this.#frame = 0;
    const events = this.#pending;
    this.#pending = [];
    for (const { topics, handler } of this.#subscribers.values()) {
      const wanted = events.filter((event) => topics.some((pattern) => topicMatches(pattern, event.topic)));
      if (wanted.length > 0) handler.current(wanted);
    }
  }

  /**
   * Tells subscribers that have existed for at least `waited` milliseconds that events may be missing: their data may be older than the
   * stream.
   */
  #tellGap(waited = 0): void {
    for (const { gap, since } of this.#subscribers.values()) if (performance.now() - since >= waited) gap.current?.();
  }
}

export const feed = new Feed();

export interface LiveOptions {
  /** Called if events may have been missed. The screen then has to read its data again. */
  onGap?: () => void;
  enabled?: boolean;
  /**
   * The keys of the queries that the handler changes or invalidates. An event that comes while one of these queries is in flight waits for
   * the response, because the response may be older than the event.
   */
  queries?: QueryKey[];
}

/** Calls `handler` with the events of these topics (patterns), in commit order and each event once, while the component is mounted. */
export function useLive(topics: string[], handler: Handler, { enabled = true, onGap, queries }: LiveOptions = {}): void {
  const cache = useQueryClient();
  const afterAnswers = useAfterAnswers(queries);
  const latest = useRef({ handler, onGap, queries });
  useEffect(() => {
    latest.current = { handler, onGap, queries };
  });
  const wanted = topics.join(",");
  useEffect(() => {
    if (!enabled || wanted === "") return undefined;
    let isOver = false;
    let hasGap = false;
    const missed = () => {
      if (hasGap) return;
      hasGap = true;
      afterAnswers((hasWaited) => {
        hasGap = false;
        // A query has ended with an error, which the person sees. If they try again, they get data that is newer than the gap.
        const hasFailed = latest.current.queries?.some((queryKey) => cache.getQueryCache().findAll({ queryKey, predicate: ({ state }) => state.status === "error" }).length > 0) === true;
        if (!isOver && !(hasWaited && hasFailed)) latest.current.onGap?.();
      });
    };
    let early: LiveEvent[] = [];
    const take = (events: LiveEvent[]) => {
      const isWaiting = early.length > 0;
      early.push(...events);
      if (early.length > BATCH_MAX) {
        // More events wait than the page keeps. So the page reads its data again, as after any gap.
        early = early.slice(-BATCH_MAX);
        missed();
      }
      if (isWaiting) return;
      afterAnswers(() => {
        const all = early;
        early = [];
        if (!isOver) latest.current.handler(all);
      });
    };
    const unsubscribe = feed.subscribe(wanted.split(","), { current: take }, { current: missed });
    return () => {
      isOver = true;
      unsubscribe();
    };
  }, [cache, afterAnswers, enabled, wanted]);
}

export function useLiveState(): LiveState {
  return useSyncExternalStore(feed.watch, feed.state);
}

export type { JsonValue };

/**
 * One event stream for the tab, shared by all screens. It asks for the union of what they want, goes on after the last event it saw
 * (`since`), and waits longer after each failure. Screens get events in batches, one a frame.
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

/** `off`: nothing wants events, or this person may not have them. */
export type LiveState = "off" | "connecting" | "live" | "reconnecting" | "offline" | "forbidden";

type Handler = (events: LiveEvent[]) => void;

/** Silence after which a stream counts as dead: two heartbeats and a bit. */
const SILENCE_MS_MAX = 35_000;
const BACKOFF_MS = [500, 1_000, 2_000, 4_000, 8_000, 15_000, 30_000];
const BATCH_MAX = 2_000;
/** The first stream of a tab, if it opens within this time, opens about when a page reads its data. */
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

  /** After another person signed in, or a sign-out. */
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
    // A topic that another pattern covers costs nothing.
    return all.filter((one) => !all.some((other) => other !== one && topicMatches(other, one))).sort().join(",");
  }

  /** Screens come and go together, so the stream waits a moment before it asks for something else. */
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
        // What a page reads goes first, and what judges a page's load does not wait for a stream that never ends.
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
        // The outbox has forgotten the last event, so something may have been missed.
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
          // Without an event to go on after, what happened before the stream was open is not known: an event may also stand unread in the stream
          // before this one, which ends now.
          if (this.#lastId === null) this.#tellGap(this.#failures > 0 || before !== null ? 0 : OPENING_MS_MAX);
          this.#failures = 0;
        }
        // The connection before this one ends only now, so that no event falls between the two. What both bring is taken once.
        before?.abort();
        rest += value;
        const frames = rest.split("\n\n");
        rest = frames.pop() ?? "";
        for (const frame of frames) this.#take(frame);
      }
    } catch {
      // A break is no error of the page: it is shown below, and the stream begins again.
    } finally {
      clearTimeout(silence);
      before?.abort();
    }
    if (!current() || this.#union() === "") return;
    // A server that answers at all is not gone: it restarts, or has too many streams.
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
    // A hidden tab has no frames; timers go on there.
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

  /** To those who have waited for longer than `waited` milliseconds: what they read may be older than the stream. */
  #tellGap(waited = 0): void {
    for (const { gap, since } of this.#subscribers.values()) if (performance.now() - since >= waited) gap.current?.();
  }
}

export const feed = new Feed();

export interface LiveOptions {
  /** Called where events may have been missed: read again then. */
  onGap?: () => void;
  enabled?: boolean;
  /**
   * The keys of the queries that the handler changes or invalidates. Events that come while one of them is in flight wait for its answer, which may be
   * older than they are.
   */
  queries?: QueryKey[];
}

/** Calls `handler` with the events of these topics (patterns), in commit order, each once, while the component is on the page. */
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
        // What came was an error: the person reads it, and whoever tries again reads what is newer than the gap.
        const hasFailed = latest.current.queries?.some((queryKey) => cache.getQueryCache().findAll({ queryKey, predicate: ({ state }) => state.status === "error" }).length > 0) === true;
        if (!isOver && !(hasWaited && hasFailed)) latest.current.onGap?.();
      });
    };
    let early: LiveEvent[] = [];
    const take = (events: LiveEvent[]) => {
      const isWaiting = early.length > 0;
      early.push(...events);
      if (early.length > BATCH_MAX) {
        // More than is kept: the page reads again, as after any gap.
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

/** The meeting point of requests that found their session gone and the sign-in that appears over the page. */
import { useSyncExternalStore } from "react";

let waiting: { promise: Promise<void>; resume: () => void } | null = null;
/** Whether somebody has signed in on this page: a 401 before that is an answer like any other. */
let established = false;
const listeners = new Set<() => void>();

const tell = () => listeners.forEach((listener) => listener());

export function sessionEstablished(is: boolean): void {
  established = is;
}

export function isSessionEstablished(): boolean {
  return established;
}

/** Shows the sign-in over the page, and resolves when the person is back. */
export function signInAgain(): Promise<void> {
  if (waiting === null) {
    let resume = () => {};
    const promise = new Promise<void>((resolve) => {
      resume = resolve;
    });
    waiting = { promise, resume };
    tell();
  }
  return waiting.promise;
}

export function signedInAgain(): void {
  const done = waiting;
  waiting = null;
  tell();
  done?.resume();
}

export function useSessionLost(): boolean {
  return useSyncExternalStore(
    (listener) => {
      listeners.add(listener);
      return () => listeners.delete(listener);
    },
    () => waiting !== null,
  );
}

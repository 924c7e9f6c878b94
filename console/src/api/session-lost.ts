/** Connects requests whose session has ended with the sign-in that appears over the page. */
import { useSyncExternalStore } from "react";

let waiting: { promise: Promise<void>; resume: () => void } | null = null;
/** Whether somebody has signed in on this page. Before that, a 401 is a normal response. */
let established = false;
const listeners = new Set<() => void>();

const tell = () => listeners.forEach((listener) => listener());

export function sessionEstablished(is: boolean): void {
  established = is;
}

export function isSessionEstablished(): boolean {
  return established;
}

/** Shows the sign-in over the page. Resolves when the person has signed in. */
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

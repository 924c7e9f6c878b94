/** Connects requests whose session has ended with the sign-in that appears over the page. */
import { observable } from "./observable";

const waiting = observable<{ promise: Promise<void>; resume: () => void } | null>(null);
/** Whether somebody has signed in on this page. Before that, a 401 is a normal response. */
let established = false;

export function sessionEstablished(is: boolean): void {
  established = is;
}

export function isSessionEstablished(): boolean {
  return established;
}

/** Shows the sign-in over the page. Resolves when the person has signed in. */
export function signInAgain(): Promise<void> {
  const already = waiting.get();
  if (already !== null) return already.promise;
  let resume = () => {};
  const promise = new Promise<void>((resolve) => {
    resume = resolve;
  });
  waiting.set({ promise, resume });
  return promise;
}

export function signedInAgain(): void {
  const done = waiting.get();
  waiting.set(null);
  done?.resume();
}

export function useSessionLost(): boolean {
  return waiting.useValue() !== null;
}

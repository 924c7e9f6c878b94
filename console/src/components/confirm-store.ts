/**
 * Questions that a dialog asks. The dialog itself is loaded with the first of them: the provider of `@mantine/modals` would bring it into the first load.
 */
import { type ReactNode, useSyncExternalStore } from "react";

export interface ConfirmOptions {
  /** As a question: "Delete the object task?" */
  title: string;
  /** What goes along: "3 tasks and 12 links go too." */
  children?: ReactNode;
  /** The verb on the button: "Delete object". */
  action: string;
  danger?: boolean;
  /** The person has to type this before the button works: for what cannot be undone. */
  typed?: string;
}

export type Asked = ConfirmOptions & { answer: (agreed: boolean) => void };

let asked: Asked | null = null;
let wanted = false;
const watchers = new Set<() => void>();
const watch = (watcher: () => void) => {
  watchers.add(watcher);
  return () => watchers.delete(watcher);
};
const changed = () => watchers.forEach((watcher) => watcher());

/** Asks, and is `true` where the person agrees: `if (await confirm({ … })) …`. */
export function confirm(options: ConfirmOptions): Promise<boolean> {
  asked?.answer(false);
  return new Promise((resolve) => {
    wanted = true;
    asked = {
      ...options,
      answer: (agreed) => {
        asked = null;
        changed();
        resolve(agreed);
      },
    };
    changed();
  });
}

/** The question that is open. */
export function useAsked(): Asked | null {
  return useSyncExternalStore(watch, () => asked);
}

export function useConfirmWanted(): boolean {
  return useSyncExternalStore(watch, () => wanted);
}

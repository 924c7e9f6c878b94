/**
 * The questions of the confirmation dialog. The dialog's code is loaded with the first question, because `@mantine/modals` would add it to
 * the first load.
 */
import { type ReactNode, useSyncExternalStore } from "react";

export interface ConfirmOptions {
  /** A question: "Delete the object task?" */
  title: string;
  /** Says what else is deleted: "3 tasks and 12 links go too." */
  children?: ReactNode;
  /** The label of the button, with a verb: "Delete object". */
  action: string;
  danger?: boolean;
  /** The text that the person has to type before the button works. Used for actions that cannot be undone. */
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

/** Asks the person. Resolves to `true` if they agree: `if (await confirm({ … })) …`. */
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

/** The question that is open now. */
export function useAsked(): Asked | null {
  return useSyncExternalStore(watch, () => asked);
}

export function useConfirmWanted(): boolean {
  return useSyncExternalStore(watch, () => wanted);
}

/**
 * The questions of the confirmation dialog. The dialog's code is loaded with the first question, because `@mantine/modals` would add it to
 * the first load.
 */
import type { ReactNode } from "react";
import { observable } from "../api/observable";

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

const asked = observable<Asked | null>(null);

/** Asks the person. Resolves to `true` if they agree: `if (await confirm({ … })) …`. */
export function confirm(options: ConfirmOptions): Promise<boolean> {
  asked.get()?.answer(false);
  return new Promise((resolve) => {
    const question: Asked = {
      ...options,
      answer: (agreed) => {
        asked.set(null);
        resolve(agreed);
      },
    };
    // Otherwise the press of Escape that asks the question would also close it, if the dialog listened before.
    setTimeout(() => asked.set(question));
  });
}

/** The question that is open now. */
export const useAsked = asked.useValue;

import { Button } from "@mantine/core";
import type { ReactNode } from "react";
import { type ConfirmOptions, confirm } from "./confirm-store";

export interface DeleteButtonProps {
  question: ConfirmOptions;
  isPending: boolean;
  /** Called after the person has agreed. */
  onDelete: () => void;
  px?: number;
  children?: ReactNode;
}

/** The button that deletes what a pane or a form shows. It asks first. */
export function DeleteButton({ question, isPending, onDelete, px, children = "Delete" }: DeleteButtonProps) {
  const ask = async () => {
    if (await confirm({ ...question, danger: true })) onDelete();
  };
  return (
    <Button variant="subtle" color="red" px={px} loading={isPending} onClick={() => void ask()}>
      {children}
    </Button>
  );
}

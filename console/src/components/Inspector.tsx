import { ActionIcon } from "@mantine/core";
import { IconArrowDown, IconArrowUp, IconX } from "@tabler/icons-react";
import { type ReactNode, useEffect, useRef } from "react";
import { confirm } from "./confirm-store";
import { useHotkeys } from "./useHotkeys";
import { useReturnedFocus } from "./useReturnedFocus";
import classes from "./Page.module.css";

/** Leave the item of a list that a pane shows. */
export interface PaneActions {
  /** Closes the pane. The focus then returns to where it was. */
  onClose: () => void;
  /** Move to the next and the previous item of the list. Absent at the ends of the list. */
  onNext?: (() => void) | undefined;
  onPrevious?: (() => void) | undefined;
}

export interface InspectorProps extends PaneActions {
  title: ReactNode;
  /** Whether the pane has text that is not saved. If it has, closing the pane and moving to another item ask first. */
  isDirty?: boolean;
  /** Buttons in the head, such as "Open page". */
  actions?: ReactNode;
  footer?: ReactNode;
  children: ReactNode;
}

/** How the pane moves to the next and the previous row of a list. `at` is the place of its row, or -1 if the list does not have it. */
export function neighbours<Row>(rows: readonly Row[], at: number, open: (row: Row) => void): Omit<PaneActions, "onClose"> {
  const to = (row: Row | undefined) => (at === -1 || row === undefined ? undefined : () => open(row));
  return { onNext: to(rows[at + 1]), onPrevious: to(rows[at - 1]) };
}

/**
 * The right pane, with one item of the list beside it. `Esc` closes the pane, `J` and `K` move to other items. On narrow screens the pane
 * covers the list.
 */
export function Inspector({ title, onClose: close, isDirty = false, onNext: next, onPrevious: previous, actions, footer, children }: InspectorProps) {
  const pane = useRef<HTMLElement>(null);
  useReturnedFocus();
  const asking = (leave: () => void) => async () => {
    if (!isDirty || (await confirm({ title: "Discard what you typed?", children: "It is not saved.", action: "Discard" }))) leave();
  };
  const onClose = asking(close);
  const onNext = next === undefined ? undefined : asking(next);
  const onPrevious = previous === undefined ? undefined : asking(previous);
  useHotkeys({ Escape: onClose, j: onNext, k: onPrevious });
  useEffect(() => {
    // On a narrow screen the pane covers the list, so the pane has to take the focus.
    if (matchMedia("(max-width: 56em)").matches) pane.current?.focus();
  }, []);
  return (
    <aside className={classes.inspector} aria-label="Details" ref={pane} tabIndex={-1}>
      <div className={classes.inspectorHead}>
        <h2 className={classes.inspectorTitle} dir="auto">
          {title}
        </h2>
        {actions}
        {(onNext !== undefined || onPrevious !== undefined) && (
          <>
            <ActionIcon aria-label="Previous" data-tip="Previous (K)" disabled={onPrevious === undefined} onClick={onPrevious}>
              <IconArrowUp size={16} />
            </ActionIcon>
            <ActionIcon aria-label="Next" data-tip="Next (J)" disabled={onNext === undefined} onClick={onNext}>
              <IconArrowDown size={16} />
            </ActionIcon>
          </>
        )}
        <ActionIcon aria-label="Close" data-tip="Close (Esc)" onClick={onClose}>
          <IconX size={16} />
        </ActionIcon>
      </div>
      <div className={classes.inspectorBody} tabIndex={0} role="group" aria-label="Details">
        {children}
      </div>
      {footer !== undefined && <div className={classes.inspectorFoot}>{footer}</div>}
    </aside>
  );
}

import { useEffect, useState } from "react";

/**
 * For a dialog or pane that is only mounted while it is open: when it disappears, the focus returns to where it was. Mantine does this only
 * for a dialog that stays mounted.
 */
export function useReturnedFocus(): void {
  // Read during the first render, because a field inside may take the focus at once.
  const [before] = useState(() => document.activeElement);
  useEffect(
    () => () => {
      // Waits until the parts of the dialog are gone. It does nothing if another element has taken the focus.
      setTimeout(() => {
        if (document.activeElement === document.body && before instanceof HTMLElement) before.focus({ preventScroll: true });
      });
    },
    [before],
  );
}

import { useEffect, useState } from "react";

/** Gives the focus back to where it was when a dialog or pane that is there only while it is open goes. Mantine does that for a dialog that stays and closes. */
export function useReturnedFocus(): void {
  // Looked up while this is drawn, as a field inside may take the focus at once.
  const [before] = useState(() => document.activeElement);
  useEffect(
    () => () => {
      // After its own parts have gone, and only where nothing else has taken the focus.
      setTimeout(() => {
        if (document.activeElement === document.body && before instanceof HTMLElement) before.focus({ preventScroll: true });
      });
    },
    [before],
  );
}

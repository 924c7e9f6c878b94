import { useEffect, useState } from "react";

/** Gives the focus back to where it was when a dialog that is there only while it is open goes. Mantine does that for one that stays and closes. */
export function useReturnedFocus(): void {
  const [before] = useState(() => document.activeElement);
  useEffect(
    () => () => {
      // After the dialog's own parts have gone, and only where nothing else has taken the focus.
      setTimeout(() => {
        if (document.activeElement === document.body && before instanceof HTMLElement) before.focus({ preventScroll: true });
      });
    },
    [before],
  );
}

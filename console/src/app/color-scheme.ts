/** The chosen theme, kept in this browser. `scripts/color-scheme.js` reads the same key before the first paint. */
import { isMantineColorScheme, type MantineColorScheme, type MantineColorSchemeManager } from "@mantine/core";

const KEY = "blockbase.theme";

export function colorSchemeManager(): MantineColorSchemeManager {
  let listener: ((event: StorageEvent) => void) | undefined;
  const unsubscribe = () => {
    if (listener) removeEventListener("storage", listener);
    listener = undefined;
  };
  return {
    get(fallback) {
      try {
        const stored = localStorage.getItem(KEY);
        return isMantineColorScheme(stored) ? stored : fallback;
      } catch {
        return fallback;
      }
    },
    set(value) {
      try {
        localStorage.setItem(KEY, value);
      } catch {
        // Without storage, the theme lasts until the page is closed.
      }
    },
    subscribe(onUpdate) {
      listener = ({ storageArea, key, newValue }) => {
        if (storageArea === localStorage && key === KEY && isMantineColorScheme(newValue)) onUpdate(newValue as MantineColorScheme);
      };
      addEventListener("storage", listener);
    },
    unsubscribe,
    clear() {
      localStorage.removeItem(KEY);
    },
  };
}

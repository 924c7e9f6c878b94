/** Whether the command palette is open. Its code is loaded when it opens for the first time. */
import { useSyncExternalStore } from "react";

let opened = false;
let wanted = false;
const watchers = new Set<() => void>();
const watch = (watcher: () => void) => {
  watchers.add(watcher);
  return () => watchers.delete(watcher);
};
const tell = () => watchers.forEach((watcher) => watcher());

export function openPalette(): void {
  opened = true;
  wanted = true;
  tell();
}

export function closePalette(): void {
  opened = false;
  tell();
}

export function usePaletteOpened(): boolean {
  return useSyncExternalStore(watch, () => opened);
}

export function usePaletteWanted(): boolean {
  return useSyncExternalStore(watch, () => wanted);
}

import { useEffect, useRef } from "react";

/** The action for each key: `"Escape"`, `"j"`, `"mod+k"` (Ctrl, or Command on a Mac), `"shift+?"`. `undefined` ignores a key. */
export type Hotkeys = Record<string, ((event: KeyboardEvent) => void) | undefined>;

function nameOf(event: KeyboardEvent): string {
  const key = event.key.length === 1 ? event.key.toLowerCase() : event.key;
  return `${event.ctrlKey || event.metaKey ? "mod+" : ""}${event.altKey ? "alt+" : ""}${event.shiftKey && event.key.length > 1 ? "shift+" : ""}${key}`;
}

/** Whether the person is typing. Then letters are text and not commands. */
function isTyping(target: EventTarget | null): boolean {
  return target instanceof HTMLElement && (target.isContentEditable || /^(INPUT|TEXTAREA|SELECT)$/.test(target.tagName)) && !isToggle(target);
}

function isToggle(target: HTMLElement): boolean {
  return target instanceof HTMLInputElement && /^(checkbox|radio|button)$/.test(target.type);
}

/**
 * The active sets of keys. The one that was mounted last gets a key first. With `useHotkeys` of `@mantine/hooks`, the page below would
 * react too.
 */
const layers: { current: Hotkeys }[] = [];

function pressed(event: KeyboardEvent): void {
  if (event.defaultPrevented || event.isComposing) return;
  const name = nameOf(event);
  // While a dialog, a menu or a list of choices floats above the page, the keys belong to it.
  // The hidden lists of closed fields stay in the page, and do not count as floating.
  const floating = [...document.querySelectorAll('[role="dialog"][aria-modal="true"], [role="menu"], [role="listbox"]:not([data-stays])')].some((each) => each.checkVisibility());
  if (floating && !name.startsWith("mod+")) return;
  if (isTyping(event.target) && !name.startsWith("mod+") && name !== "Escape") return;
  for (const layer of [...layers].reverse()) {
    const act = layer.current[name];
    if (act !== undefined) {
      event.preventDefault();
      act(event);
      return;
    }
  }
}

/** Keys for the whole page while the component is mounted. Letters go to a field if the person types in one. */
export function useHotkeys(keys: Hotkeys, enabled = true): void {
  const latest = useRef(keys);
  useEffect(() => {
    latest.current = keys;
  });
  useEffect(() => {
    if (!enabled) return;
    if (layers.length === 0) document.addEventListener("keydown", pressed);
    layers.push(latest);
    return () => {
      layers.splice(layers.indexOf(latest), 1);
      if (layers.length === 0) document.removeEventListener("keydown", pressed);
    };
  }, [enabled]);
}

import { useEffect, useRef } from "react";

/** Keys by what they do: `"Escape"`, `"j"`, `"mod+k"` (Ctrl, or Command on a Mac), `"shift+?"`. `undefined` leaves a key alone. */
export type Hotkeys = Record<string, ((event: KeyboardEvent) => void) | undefined>;

function nameOf(event: KeyboardEvent): string {
  const key = event.key.length === 1 ? event.key.toLowerCase() : event.key;
  return `${event.ctrlKey || event.metaKey ? "mod+" : ""}${event.altKey ? "alt+" : ""}${event.shiftKey && event.key.length > 1 ? "shift+" : ""}${key}`;
}

/** Whether the person is typing, so that letters are letters. */
function isTyping(target: EventTarget | null): boolean {
  return target instanceof HTMLElement && (target.isContentEditable || /^(INPUT|TEXTAREA|SELECT)$/.test(target.tagName)) && !isToggle(target);
}

function isToggle(target: HTMLElement): boolean {
  return target instanceof HTMLInputElement && /^(checkbox|radio|button)$/.test(target.type);
}

/** The innermost screen wins: what mounted last is asked first. With `useHotkeys` of `@mantine/hooks` the page below would act too. */
const layers: { current: Hotkeys }[] = [];

function pressed(event: KeyboardEvent): void {
  if (event.defaultPrevented || event.isComposing) return;
  const name = nameOf(event);
  // While something floats above the page (a dialog, a menu, a list of choices), keys are its own.
  // Lists of closed fields stay in the page, hidden: they do not float.
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

/** Keys of the whole page while the component is on it. Letters are left to fields that the person types in. */
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

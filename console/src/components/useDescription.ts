import { type RefObject, useLayoutEffect } from "react";

/**
 * Connects an input to the texts that describe it. Mantine's inputs replace `aria-describedby` with the ids of their own wrapper. The
 * wrapper is empty if the rules and errors stand elsewhere, so this sets the attribute on the element itself. `place` is the input or an
 * element around it.
 */
export function useDescription(place: RefObject<HTMLElement | null>, ids: string | undefined, selector = "input, textarea"): void {
  useLayoutEffect(() => {
    if (ids === undefined) return;
    const found = place.current?.matches(selector) === true ? place.current : place.current?.querySelector(selector);
    // Keeps the ids of the wrapper's own texts.
    const own = (found?.getAttribute("aria-describedby") ?? "").split(" ").filter((each) => each !== "" && !ids.split(" ").includes(each));
    found?.setAttribute("aria-describedby", [...ids.split(" "), ...own].join(" "));
    return () => (own.length === 0 ? found?.removeAttribute("aria-describedby") : found?.setAttribute("aria-describedby", own.join(" ")));
  });
}

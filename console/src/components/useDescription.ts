import { type RefObject, useLayoutEffect } from "react";

/**
 * Ties an input to the texts around it. Mantine's inputs replace `aria-describedby` by the ids of their own wrapper, which is empty
 * where rules and errors stand elsewhere, so the attribute is set on the element itself. `place` is the input or what holds it.
 */
export function useDescription(place: RefObject<HTMLElement | null>, ids: string | undefined, selector = "input, textarea"): void {
  useLayoutEffect(() => {
    if (ids === undefined) return;
    const found = place.current?.matches(selector) === true ? place.current : place.current?.querySelector(selector);
    // The wrapper's own texts stay.
    const own = (found?.getAttribute("aria-describedby") ?? "").split(" ").filter((each) => each !== "" && !ids.split(" ").includes(each));
    found?.setAttribute("aria-describedby", [...ids.split(" "), ...own].join(" "));
    return () => (own.length === 0 ? found?.removeAttribute("aria-describedby") : found?.setAttribute("aria-describedby", own.join(" ")));
  });
}

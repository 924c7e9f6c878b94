/**
 * One tooltip for the whole page. It shows the `data-tip` of an element on hover and on focus, and describes the element then. It is our
 * own, because tables have hundreds of such elements, and Mantine's component for each would cost more than the cell. A line break in the
 * text starts a new line.
 */
import { useEffect, useRef, useState } from "react";
import classes from "./Tips.module.css";

const OPEN_DELAY_MS = 350;
const TEXT_MAX = 2_000;
/** The id of the tooltip, which describes its element while it is shown. */
const TIP = "page-tip";

export function Tips() {
  const [tip, setTip] = useState<{ text: string; place: DOMRect } | null>(null);
  const box = useRef<HTMLDivElement>(null);
  useEffect(() => {
    let timer: ReturnType<typeof setTimeout> | undefined;
    let at: Element | null = null;
    const hide = () => {
      clearTimeout(timer);
      if (at?.getAttribute("aria-describedby") === TIP) at.removeAttribute("aria-describedby");
      at = null;
      setTip(null);
    };
    const show = (element: Element | null, delay: number) => {
      if (element === at) return;
      hide();
      if (element === null) return;
      at = element;
      timer = setTimeout(() => {
        const text = element.getAttribute("data-tip");
        if (!element.isConnected || !text) return;
        setTip({ text: text.slice(0, TEXT_MAX), place: element.getBoundingClientRect() });
        if (!element.hasAttribute("aria-describedby")) element.setAttribute("aria-describedby", TIP);
      }, delay);
    };
    const closest = (target: EventTarget | null) => (target instanceof Element ? target.closest("[data-tip]") : null);
    const over = (event: PointerEvent) => event.pointerType !== "touch" && show(closest(event.target), OPEN_DELAY_MS);
    const focus = (event: FocusEvent) => event.target instanceof Element && event.target.matches(":focus-visible") && show(closest(event.target), 0);
    const key = (event: KeyboardEvent) => event.key === "Escape" && hide();
    document.addEventListener("pointerover", over);
    document.addEventListener("focusin", focus);
    document.addEventListener("focusout", hide);
    document.addEventListener("pointerdown", hide);
    // Enter on a button may remove it.
    document.addEventListener("click", hide);
    document.addEventListener("keydown", key);
    addEventListener("scroll", hide, { capture: true, passive: true });
    return () => {
      hide();
      document.removeEventListener("pointerover", over);
      document.removeEventListener("focusin", focus);
      document.removeEventListener("focusout", hide);
      document.removeEventListener("pointerdown", hide);
      document.removeEventListener("click", hide);
      document.removeEventListener("keydown", key);
      removeEventListener("scroll", hide, { capture: true });
    };
  }, []);
  useEffect(() => {
    const element = box.current;
    if (element === null || tip === null) return;
    const { width, height } = element.getBoundingClientRect();
    const { place } = tip;
    const below = place.bottom + 6 + height <= innerHeight;
    const left = Math.max(8, Math.min(place.left + place.width / 2 - width / 2, innerWidth - width - 8));
    element.style.transform = `translate(${Math.round(left)}px, ${Math.round(below ? place.bottom + 6 : place.top - height - 6)}px)`;
    element.style.visibility = "visible";
  }, [tip]);
  if (tip === null) return null;
  return (
    <div id={TIP} className={classes.tip} role="tooltip" ref={box} dir="auto">
      {tip.text}
    </div>
  );
}

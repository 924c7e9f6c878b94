import { CloseButton, TextInput, type TextInputProps } from "@mantine/core";
import { useMergedRef } from "@mantine/hooks";
import { type Ref, useCallback, useEffect, useRef, useState } from "react";

const SETTLE_MS = 250;

export interface SettledInputProps extends Omit<TextInputProps, "value" | "onChange"> {
  /** The name of the field. The button that empties the field is also named after it. */
  "aria-label": string;
  value: string | undefined;
  onSettled: (value: string | undefined) => void;
  field?: Ref<HTMLInputElement>;
}

/**
 * A field that reports its value when the person pauses or leaves the field. Filters and searches in the address use it. An empty field is
 * `undefined`.
 * `Escape` empties the field. If the reported value comes back as a prop while the person types on, the typed text stays.
 */
export function SettledInput({ value = "", onSettled, field, rightSection, onKeyDown, onBlur, ...rest }: SettledInputProps) {
  const [typed, setTyped] = useState(value);
  const input = useRef<HTMLInputElement>(null);
  const ref = useMergedRef(input, field);
  const sent = useRef(value);
  useEffect(() => {
    if (sent.current === value) return;
    sent.current = value;
    setTyped(value);
  }, [value]);
  const settled = useRef(onSettled);
  useEffect(() => {
    settled.current = onSettled;
  });
  const settle = useCallback((text: string) => {
    const wanted = text.trim();
    if (wanted === sent.current) return;
    sent.current = wanted;
    settled.current(wanted === "" ? undefined : wanted);
  }, []);
  useEffect(() => {
    if (typed.trim() === sent.current) return;
    const timer = setTimeout(() => settle(typed), SETTLE_MS);
    return () => clearTimeout(timer);
  }, [typed, settle]);
  const isClearable = typed !== "";
  const hasOwn = rightSection !== undefined && rightSection !== null;
  return (
    <TextInput
      {...rest}
      ref={ref}
      {...(isClearable && hasOwn ? { rightSectionWidth: "auto" } : {})}
      rightSection={
        isClearable ? (
          <>
            <CloseButton
              size="xs"
              aria-label={`Clear the field ${rest["aria-label"]}`}
              onClick={() => {
                setTyped("");
                // The button disappears. Without this, the focus would be lost.
                input.current?.focus();
              }}
            />
            {rightSection}
          </>
        ) : (
          rightSection
        )
      }
      value={typed}
      onChange={({ currentTarget }) => setTyped(currentTarget.value)}
      onBlur={(event) => {
        onBlur?.(event);
        // What the person presses next can replace the screen, and with it this field and its timer.
        settle(event.currentTarget.value);
      }}
      onKeyDown={(event) => {
        onKeyDown?.(event);
        if (event.defaultPrevented || event.key !== "Escape" || typed === "") return;
        event.stopPropagation();
        setTyped("");
      }}
    />
  );
}

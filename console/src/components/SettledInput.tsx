import { CloseButton, TextInput, type TextInputProps } from "@mantine/core";
import { useMergedRef } from "@mantine/hooks";
import { type Ref, useEffect, useRef, useState } from "react";

/** The pause in typing after which a text counts. */
const PAUSE_MS = 250;

/** Calls `act` when the value has stayed the same for a pause. */
function usePause<Value>(value: Value, ms: number, act: (value: Value) => void) {
  const latest = useRef(act);
  useEffect(() => {
    latest.current = act;
  });
  useEffect(() => {
    const timer = setTimeout(() => latest.current(value), ms);
    return () => clearTimeout(timer);
  }, [value, ms]);
}

/** The value as it was at the last pause of `ms` milliseconds. Pickers search by it, so that not every letter sends a request. */
export function useSettled<Value extends string | object | null>(value: Value, ms = PAUSE_MS): Value {
  const [settled, settle] = useState(value);
  usePause(value, ms, settle);
  return settled;
}

export interface SettledInputProps extends Omit<TextInputProps, "value" | "onChange" | "onBlur" | "onKeyDown" | "rightSection"> {
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
export function SettledInput({ value = "", onSettled, field, ...rest }: SettledInputProps) {
  const [typed, setTyped] = useState(value);
  const input = useRef<HTMLInputElement>(null);
  const ref = useMergedRef(input, field);
  const sent = useRef(value);
  useEffect(() => {
    if (sent.current === value) return;
    sent.current = value;
    setTyped(value);
  }, [value]);
  const settle = (text: string) => {
    const wanted = text.trim();
    if (wanted === sent.current) return;
    sent.current = wanted;
    onSettled(wanted === "" ? undefined : wanted);
  };
  usePause(typed, PAUSE_MS, settle);
  return (
    <TextInput
      {...rest}
      ref={ref}
      rightSection={
        typed !== "" && (
          <CloseButton
            size="xs"
            aria-label={`Clear the field ${rest["aria-label"]}`}
            onClick={() => {
              setTyped("");
              // The button disappears. Without this, the focus would be lost.
              input.current?.focus();
            }}
          />
        )
      }
      value={typed}
      onChange={({ currentTarget }) => setTyped(currentTarget.value)}
      // What the person presses next can replace the screen, and with it this field and its timer.
      onBlur={(event) => settle(event.currentTarget.value)}
      onKeyDown={(event) => {
        if (event.key !== "Escape" || typed === "") return;
        event.stopPropagation();
        setTyped("");
      }}
    />
  );
}

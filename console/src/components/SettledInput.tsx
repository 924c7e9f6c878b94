import { CloseButton, TextInput, type TextInputProps } from "@mantine/core";
import { type Ref, useEffect, useRef, useState } from "react";

const SETTLE_MS = 250;

export interface SettledInputProps extends Omit<TextInputProps, "value" | "onChange"> {
  value: string | undefined;
  onSettled: (value: string | undefined) => void;
  field?: Ref<HTMLInputElement>;
}

/**
 * A field whose value counts when the person pauses: filters and searches that the address has. An empty one is `undefined`. `Escape` empties it. What the
 * person types stays when the value comes back meanwhile.
 */
export function SettledInput({ value = "", onSettled, field, ...rest }: SettledInputProps) {
  const [typed, setTyped] = useState(value);
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
  useEffect(() => {
    const wanted = typed.trim();
    if (wanted === sent.current) return;
    const timer = setTimeout(() => {
      sent.current = wanted;
      settled.current(wanted === "" ? undefined : wanted);
    }, SETTLE_MS);
    return () => clearTimeout(timer);
  }, [typed]);
  return (
    <TextInput
      {...rest}
      {...(field === undefined ? {} : { ref: field })}
      rightSection={typed === "" ? undefined : <CloseButton size="xs" aria-label="Clear the search" onClick={() => setTyped("")} />}
      value={typed}
      onChange={({ currentTarget }) => setTyped(currentTarget.value)}
      onKeyDown={(event) => {
        if (event.key !== "Escape" || typed === "") return;
        event.stopPropagation();
        setTyped("");
      }}
    />
  );
}

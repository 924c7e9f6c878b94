import { TextInput, type TextInputProps } from "@mantine/core";
import { useEffect, useState } from "react";

const SETTLE_MS = 250;

/** A field whose value counts when the person pauses: filters and searches that the address has. An empty one is `undefined`. */
export function SettledInput({ value = "", onSettled, ...rest }: Omit<TextInputProps, "value" | "onChange"> & { value: string | undefined; onSettled: (value: string | undefined) => void }) {
  const [typed, setTyped] = useState(value);
  useEffect(() => setTyped(value), [value]);
  useEffect(() => {
    const wanted = typed.trim();
    if (wanted === value) return;
    const timer = setTimeout(() => onSettled(wanted === "" ? undefined : wanted), SETTLE_MS);
    return () => clearTimeout(timer);
  }, [typed, value, onSettled]);
  return <TextInput {...rest} value={typed} onChange={({ currentTarget }) => setTyped(currentTarget.value)} />;
}

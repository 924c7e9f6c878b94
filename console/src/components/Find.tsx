import { TextInput, type TextInputProps } from "@mantine/core";
import { IconSearch } from "@tabler/icons-react";
import type { Ref } from "react";

export interface FindProps extends Pick<TextInputProps, "w" | "className" | "placeholder" | "value"> {
  /** The accessible name, and the placeholder if there is no other one. */
  label: string;
  /** Called at each key. `undefined` for an empty field. */
  onFind: (text: string | undefined) => void;
  ref?: Ref<HTMLInputElement>;
}

/** A field that filters what the screen has already loaded. If the server has to search, use `SettledInput`. */
export function Find({ label, onFind, ...rest }: FindProps) {
  return <TextInput leftSection={<IconSearch size={14} />} aria-label={label} placeholder={label} onChange={({ currentTarget: { value } }) => onFind(value || undefined)} {...rest} />;
}

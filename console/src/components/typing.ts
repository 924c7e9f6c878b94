import type { ComboboxStore } from "@mantine/core";
import type { ChangeEvent, FocusEvent, MouseEvent } from "react";

/**
 * The props of a text field that finds choices: it shows what is chosen, or what is typed instead, and typing opens the list. `typed` is
 * null while nobody types.
 */
export function typing(box: ComboboxStore, typed: string | null, chosen: string, onType: (text: string) => void) {
  return {
    autoComplete: "off",
    spellCheck: false,
    value: typed ?? chosen,
    onChange: ({ currentTarget }: ChangeEvent<HTMLInputElement>) => {
      onType(currentTarget.value);
      box.resetSelectedOption();
      box.openDropdown();
    },
    onClick: ({ currentTarget }: MouseEvent<HTMLInputElement>) => {
      box.openDropdown();
      // Selects the text, so that typing replaces it.
      if (typed === null) currentTarget.select();
    },
    onFocus: ({ currentTarget }: FocusEvent<HTMLInputElement>) => currentTarget.select(),
  };
}

import { Textarea } from "@mantine/core";
import { useState } from "react";

/** Edits options as lines of text, so that people can paste, sort and move them. */
export function OptionsInput({ options, error, onChange }: { options: string[]; error: string | undefined; onChange: (options: string[]) => void }) {
  const [text, setText] = useState(options.join("\n"));
  const read = (typed: string) => typed.split("\n").map((line) => line.trim()).filter((line) => line !== "");
  // If the options change elsewhere, for example by an undo, the text here follows.
  const [known, setKnown] = useState(options.join("\n"));
  const now = options.join("\n");
  if (now !== known) {
    setKnown(now);
    if (read(text).join("\n") !== now) setText(now);
  }
  return (
    <Textarea
      label="Options"
      description={`One per line, in the order in which people see them. ${options.length} of 500.`}
      value={text}
      onChange={(event) => {
        setText(event.currentTarget.value);
        onChange(read(event.currentTarget.value));
      }}
      error={error}
      autosize
      minRows={3}
      maxRows={14}
      placeholder={"open\nin progress\ndone"}
      spellCheck={false}
      dir="auto"
      required
    />
  );
}

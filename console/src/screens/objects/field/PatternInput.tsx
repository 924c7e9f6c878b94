import { Input, TextInput } from "@mantine/core";
import { useId, useState } from "react";
import { CodeEditor } from "../../../components/CodeEditor";
import { StatusBadge } from "../../../components/StatusBadge";
import { patternOf } from "../model/tryValue";
import classes from "./FieldForm.module.css";

export interface PatternInputProps {
  pattern: string | undefined;
  error: string | undefined;
  onChange: (pattern: string | null) => void;
}

/** The pattern of a text field, with an input to test it. "Try a value" below lets the server check all rules. */
export function PatternInput({ pattern, error, onChange }: PatternInputProps) {
  const [sample, setSample] = useState("");
  const id = useId();
  return (
    <div>
      <Input.Wrapper
        size="xs"
        label="Pattern"
        // The text box of the editor is no input, so no `label` element can lead to it.
        labelElement="div"
        labelProps={{ onClick: () => document.getElementById(id)?.focus() }}
        description="A regular expression that has to match somewhere in the value. Anchor it with ^ and $ for the whole value."
        descriptionProps={{ id: `${id}-description` }}
        error={error}
        errorProps={{ id: `${id}-error` }}
      >
        <CodeEditor
          language="pattern"
          id={id}
          label="Pattern"
          placeholder="^[A-Z]{2}-[0-9]+$"
          value={pattern ?? ""}
          onChange={(text) => onChange(text === "" ? null : text)}
          describedBy={error === undefined ? `${id}-description` : `${id}-error ${id}-description`}
          isInvalid={error !== undefined}
        />
      </Input.Wrapper>
      {pattern !== undefined && (
        <div className={classes.sample}>
          <TextInput size="xs" aria-label="Sample to match" placeholder="A text to hold against it" value={sample} onChange={(event) => setSample(event.currentTarget.value)} autoComplete="off" spellCheck={false} dir="auto" />
          <span role="status">
            {sample !== "" && <Verdict pattern={pattern} sample={sample} />}
          </span>
        </div>
      )}
    </div>
  );
}

function Verdict({ pattern, sample }: { pattern: string; sample: string }) {
  const matches = matchesPattern(pattern, sample);
  if (matches === null) return <span className="dim">This browser cannot read it.</span>;
  return (
    <StatusBadge tone={matches ? "ok" : "bad"} plain>
      {matches ? "matches" : "does not match"}
    </StatusBadge>
  );
}

function matchesPattern(pattern: string, sample: string): boolean | null {
  try {
    return patternOf(pattern).test(sample);
  } catch {
    return null;
  }
}

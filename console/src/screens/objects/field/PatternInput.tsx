import { TextInput } from "@mantine/core";
import { useState } from "react";
import { StatusBadge } from "../../../components/StatusBadge";
import { patternOf } from "../model/tryValue";
import classes from "./FieldForm.module.css";

export interface PatternInputProps {
  pattern: string | undefined;
  error: string | undefined;
  onChange: (pattern: string | null) => void;
}

/**
 * The pattern of a text field, with an input to test it. "Try a value" below lets the server check all rules. It is a plain input, because
 * a pattern is one line, and the code editor is one for JSON.
 */
export function PatternInput({ pattern, error, onChange }: PatternInputProps) {
  const [sample, setSample] = useState("");
  return (
    <div>
      <TextInput
        label="Pattern"
        description="A regular expression that has to match somewhere in the value. Anchor it with ^ and $ for the whole value."
        placeholder="^[A-Z]{2}-[0-9]+$"
        value={pattern ?? ""}
        onChange={(event) => onChange(event.currentTarget.value === "" ? null : event.currentTarget.value)}
        error={error}
        classNames={{ input: "mono" }}
        spellCheck={false}
        autoComplete="off"
      />
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

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

/** The pattern of a text field, with a text to hold against it. "Try a value" below asks the server about all rules. */
export function PatternInput({ pattern, error, onChange }: PatternInputProps) {
  const id = useId();
  const [sample, setSample] = useState("");
  return (
    <div>
      <Input.Label component="div" id={`${id}-label`}>
        Pattern
      </Input.Label>
      <Input.Description id={`${id}-about`} mb={6}>
        A regular expression that has to match somewhere in the value, such as <code className="mono">^[A-Z]{"{2}"}-[0-9]+$</code>. Anchor it with ^ and $ for the whole value.
      </Input.Description>
      <CodeEditor language="regex" label="Pattern" value={pattern ?? ""} onChange={(text) => onChange(text === "" ? null : text)} error={error} describedBy={`${id}-about`} minLines={1} maxLines={4} />
      {pattern !== undefined && (
        <div className={classes.sample}>
          <TextInput size="xs" aria-label="Sample to match" placeholder="A text to hold against it" value={sample} onChange={(event) => setSample(event.currentTarget.value)} aria-describedby={`${id}-verdict`} autoComplete="off" spellCheck={false} dir="auto" />
          <span id={`${id}-verdict`} role="status">
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

import { MultiSelect, Select, TextInput } from "@mantine/core";
import { useState } from "react";
import { isNumberType } from "../../../api/field-rules";
import { type JsonValue, printJson, readJson } from "../../../api/json";
import type { Field } from "../../../api/types";
import { CodeEditor } from "../../../components/CodeEditor";
import { typeInfo } from "../model/fieldTypes";
import { valueOf } from "../model/tryValue";

export interface DefaultInputProps {
  field: Field;
  error: string | undefined;
  /** Called with null to remove the default. */
  onChange: (value: JsonValue | null) => void;
}

const HINT = "What a new record gets where it says nothing. Records that are there get it when the field is added.";

/**
 * The editor of a field's default, for the field's type. A text that cannot be parsed stays as it is, and the server says what is wrong
 * with it. The editors of a record's values keep such a text to themselves and cannot take a chosen option away, so they cannot be used.
 */
export function DefaultInput({ field, error, onChange }: DefaultInputProps) {
  const { type, default: value } = field;
  const label = { label: "Default", description: HINT, error };
  if (type === "json") return <JsonDefault value={value} error={error} onChange={onChange} />;
  const chosen = Array.isArray(value) ? value.map(String) : value === undefined ? [] : [String(value)];
  const options = type === "boolean" ? ["true", "false"] : [...new Set([...(field.options ?? []), ...chosen])].filter((each) => each !== "");
  if (type === "multi_enum")
    return <MultiSelect {...label} placeholder={chosen.length === 0 ? "none" : ""} data={options} value={chosen} onChange={(next) => onChange(next.length === 0 ? null : next)} size="xs" />;
  if (type === "boolean" || type === "enum")
    return (
      <Select
        {...label}
        placeholder="none"
        clearable
        data={options}
        value={chosen[0] ?? null}
        onChange={(next) => onChange(type === "boolean" && next !== null ? next === "true" : next)}
        clearButtonProps={{ "aria-label": "Take the default away" }}
      />
    );
  return (
    <TextInput
      {...label}
      placeholder={`none, or such as ${typeInfo(type).example}`}
      value={chosen[0] ?? ""}
      onChange={({ currentTarget }) => onChange(currentTarget.value === "" ? null : valueOf(field, currentTarget.value))}
      {...(isNumberType(type) ? { inputMode: "decimal" as const, classNames: { input: "mono" } } : { dir: "auto" })}
      autoComplete="off"
    />
  );
}

function JsonDefault({ value, error, onChange }: { value: JsonValue | undefined; error: string | undefined; onChange: (value: JsonValue | null) => void }) {
  const [text, setText] = useState(value === undefined ? "" : printJson(value, 2));
  const [problem, setProblem] = useState<string>();
  return (
    <div>
      <CodeEditor
        label="Default, as JSON"
        value={text}
        minLines={2}
        maxLines={10}
        error={problem ?? error}
        onChange={(next) => {
          setText(next);
          if (next.trim() === "") {
            setProblem(undefined);
            return onChange(null);
          }
          const read = readJson(next);
          setProblem(read === undefined ? "This is not JSON yet. The default stays what it was." : undefined);
          if (read !== undefined) onChange(read);
        }}
      />
    </div>
  );
}

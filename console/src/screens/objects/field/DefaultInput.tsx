import { MultiSelect, Select, TextInput } from "@mantine/core";
import { useState } from "react";
import { type JsonValue, parseJson, printJson, readNumber } from "../../../api/json";
import type { Field } from "../../../api/types";
import { CodeEditor } from "../../../components/CodeEditor";
import { isNumberType, typeInfo } from "../model/fieldTypes";

export interface DefaultInputProps {
  field: Field;
  error: string | undefined;
  /** Called with null to remove the default. */
  onChange: (value: JsonValue | null) => void;
}

const HINT = "What a new record gets where it says nothing. Records that are there get it when the field is added.";

/**
 * The editor of a field's default, for the field's type. A text that cannot be parsed stays as it is, and the server says what is wrong
 * with it.
 */
export function DefaultInput({ field, error, onChange }: DefaultInputProps) {
  const { type } = field;
  const value = field.default;
  const options = field.options ?? [];
  if (type === "json") return <JsonDefault value={value} error={error} onChange={onChange} />;
  if (type === "boolean")
    return (
      <Select
        label="Default"
        description={HINT}
        placeholder="none"
        clearable
        data={["true", "false"]}
        value={value === undefined ? null : String(value)}
        onChange={(next) => onChange(next === null ? null : next === "true")}
        error={error}
        clearButtonProps={{ "aria-label": "Take the default away" }}
      />
    );
  if (type === "enum")
    return (
      <Select
        label="Default"
        description={HINT}
        placeholder="none"
        clearable
        data={[...new Set([...options, ...(typeof value === "string" ? [value] : [])])].filter((each) => each !== "")}
        value={typeof value === "string" ? value : null}
        onChange={onChange}
        error={error}
        clearButtonProps={{ "aria-label": "Take the default away" }}
      />
    );
  if (type === "multi_enum") {
    const chosen = Array.isArray(value) ? value.map(String) : [];
    return (
      <MultiSelect
        label="Default"
        description={HINT}
        placeholder={chosen.length === 0 ? "none" : ""}
        data={[...new Set([...options, ...chosen])].filter((each) => each !== "")}
        value={chosen}
        onChange={(next) => onChange(next.length === 0 ? null : next)}
        error={error}
        size="xs"
      />
    );
  }
  const isNumber = isNumberType(type);
  return (
    <TextInput
      label="Default"
      description={HINT}
      placeholder={`none, or such as ${typeInfo(type).example}`}
      value={value === undefined ? "" : typeof value === "string" ? value : String(value)}
      onChange={(event) => {
        const text = event.currentTarget.value;
        onChange(text === "" ? null : isNumber ? (readNumber(text) ?? text) : text);
      }}
      error={error}
      {...(isNumber ? { inputMode: "decimal" as const, classNames: { input: "mono" } } : { dir: "auto" })}
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
        language="json"
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
          try {
            onChange(parseJson(next));
            setProblem(undefined);
          } catch {
            setProblem("This is not JSON yet. The default stays what it was.");
          }
        }}
      />
    </div>
  );
}

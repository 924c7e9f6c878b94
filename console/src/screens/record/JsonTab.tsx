import { useMemo, useState } from "react";
import { checkJson, isJsonObject, printJson, readJson, sameJson, type JsonObject } from "../../api/json";
import { SYSTEM_COLUMNS, type RecordShape } from "../../api/record-shape";
import { CodeEditor } from "../../components/CodeEditor";
import { type Draft, type Edits, Unreadable } from "./draft";
import { Ticked } from "../../components/Ticked";
import classes from "./record.module.css";

/** The record with the values of the draft. Its keys have the order of the schema, with the system columns around them. */
function recordOf(draft: Draft, shape: RecordShape): JsonObject {
  const record: JsonObject = {};
  const base = draft.base?.record;
  if (base !== undefined && "id" in base) record.id = base.id!;
  for (const { name } of shape.columns) {
    const value = draft.valueOf(name);
    if (value !== undefined) record[name] = value instanceof Unreadable ? value.text : value;
  }
  for (const name of SYSTEM_COLUMNS) if (base !== undefined && name !== "id" && name in base) record[name] = base[name]!;
  return record;
}

/** Parses the text and returns the edits, or the error in the text. */
function readEdits(text: string, draft: Draft, shape: RecordShape): { edits: Edits } | { problem: string } {
  const read = checkJson(text);
  if ("problem" in read) return read;
  const { value } = read;
  if (!isJsonObject(value)) return { problem: "A record is a JSON object: { … }." };
  const names = new Set(shape.columns.map(({ name }) => name));
  const odd = Object.keys(value).find((key) => !names.has(key) && !(SYSTEM_COLUMNS as readonly string[]).includes(key));
  if (odd !== undefined) return { problem: shape.isPartial === true ? `\`${odd}\` is no field of \`${shape.object}\` that you may use. Remove it.` : `\`${odd}\` is no field of \`${shape.object}\`. Remove it, or add the field under Objects.` };
  const base: JsonObject = draft.base?.record ?? {};
  const system = SYSTEM_COLUMNS.find((name) => name in value && name in base && !sameJson(value[name], base[name]));
  if (system !== undefined) return { problem: `\`${system}\` is kept by the server and cannot be changed.` };
  const edits: Record<string, Edits[string]> = {};
  for (const { name } of shape.columns) if (name in value) edits[name] = value[name];
  return { edits };
}

/** Whether the typed text has no other values than the printed record. It may lack keys. */
function means(text: string, printed: string): boolean {
  const [typed, record] = [readJson(text), readJson(printed)];
  return isJsonObject(typed) && isJsonObject(record) && Object.entries(typed).every(([key, value]) => sameJson(value, record[key] ?? null));
}

/** Shows and edits the JSON of the record. It shares the draft with the form. A missing key keeps its value. */
export function JsonTab({ shape, draft, readOnly, onProblem }: { shape: RecordShape; draft: Draft; readOnly: boolean; onProblem: (problem: string | undefined) => void }) {
  const printed = useMemo(() => printJson(recordOf(draft, shape), 2), [draft, shape]);
  const [text, setText] = useState(printed);
  const [problem, setProblem] = useState<string>();
  const [known, setKnown] = useState(printed);
  // Something else changed the draft: a newer version, or "Discard".
  if (printed !== known) {
    setKnown(printed);
    if (!means(text, printed)) {
      setText(printed);
      setProblem(undefined);
    }
  }
  return (
    <div>
      <CodeEditor
        label={`The record of ${shape.object} as JSON`}
        value={text}
        readOnly={readOnly}
        minLines={10}
        maxLines={36}
        error={problem}
        onChange={(next) => {
          setText(next);
          const read = readEdits(next, draft, shape);
          const wrong = "problem" in read ? read.problem : undefined;
          setProblem(wrong);
          onProblem(wrong);
          if ("edits" in read) draft.replace(read.edits);
        }}
      />
      <p className={classes.sectionNote}><Ticked text="A key that you leave out keeps its value. Numbers keep all their digits. `id` and the stamps are kept by the server." /></p>
    </div>
  );
}

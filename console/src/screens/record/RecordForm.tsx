import { useEffect, useMemo, useRef, useState } from "react";
import { type Column, columnLabel, type RecordShape } from "../../api/record-shape";
import { Find } from "../../components/Find";
import type { Draft } from "./draft";
import { FieldRow } from "./fields/FieldRow";
import classes from "./record.module.css";

/** With more fields than this, the form has a search for fields. */
const FIELDS_TO_SEARCH = 16;

export interface RecordFormProps {
  shape: RecordShape;
  draft: Draft;
  errors: Record<string, string>;
  glowing?: ReadonlySet<string>;
  readOnly?: boolean;
  /** The column that gets the focus: the first one with an error. */
  focusOn?: string | null;
  /** Whether the first field gets the focus when the form appears. */
  autoFocus?: boolean;
  onIncrement?: ((column: Column, amount: string) => Promise<void>) | undefined;
  /** Columns that are already set and not shown. */
  hidden?: ReadonlySet<string>;
}

const NOTHING: ReadonlySet<string> = new Set();

/** The fields of a record, each with the editor of its type. */
export function RecordForm({ shape, draft, errors, glowing = NOTHING, readOnly = false, focusOn = null, autoFocus = false, onIncrement, hidden = NOTHING }: RecordFormProps) {
  const [term, setTerm] = useState("");
  const place = useRef<HTMLDivElement>(null);
  const columns = useMemo(() => {
    const wanted = term.trim().toLowerCase();
    return shape.columns.filter((column) => !hidden.has(column.name) && (wanted === "" || column.name.includes(wanted) || columnLabel(column).toLowerCase().includes(wanted) || column.name in errors));
  }, [shape.columns, term, hidden, errors]);
  // A link needs both records.
  const later = shape.links.filter(({ isReadOnly }) => isReadOnly !== true).map(({ key }) => key);
  useEffect(() => {
    if (focusOn === null) return;
    const row = place.current?.querySelector(`[data-column="${CSS.escape(focusOn)}"]`);
    const field = row?.querySelector<HTMLElement>("input, textarea, .cm-content") ?? row?.querySelector("button");
    field?.focus();
    row?.scrollIntoView({ block: "nearest" });
  }, [focusOn]);
  return (
    <div className={classes.form} ref={place}>
      {shape.columns.length > FIELDS_TO_SEARCH && (
        <Find className={classes.findField} label="Find a field" placeholder={`Find one of ${shape.columns.length} fields`} value={term} onFind={(text = "") => setTerm(text)} />
      )}
      {columns.map((column, index) => (
        <FieldRow
          key={column.name}
          object={shape.object}
          column={column}
          value={draft.valueOf(column.name)}
          onChange={draft.set}
          error={errors[column.name]}
          isChanged={draft.base !== null && column.name in draft.edits}
          glows={glowing.has(column.name)}
          readOnly={readOnly || column.isReadOnly === true}
          autoFocus={autoFocus && index === 0}
          onIncrement={column.isReadOnly === true ? undefined : onIncrement}
        />
      ))}
      {draft.base === null && later.length > 0 && (
        <p className={classes.nothing}>
          Once the {shape.label} is created, its tab Links adds {new Intl.ListFormat("en").format(later)}.
        </p>
      )}
      {columns.length === 0 && term !== "" && <p className={classes.nothing}>No field has “{term}” in its name.</p>}
      {shape.columns.length === 0 && <p className={classes.nothing}>{shape.isPartial === true ? "You may use no field of these records." : "This object has no fields yet. Add some on its page under Objects."}</p>}
    </div>
  );
}

import { UnstyledButton } from "@mantine/core";
import { memo, useId, useRef } from "react";
import { defaultText, rulesOf } from "../../../api/field-rules";
import { type Column, columnLabel } from "../../../api/record-shape";
import { type DraftValue, Unreadable } from "../draft";
import { FieldEditor } from "./FieldEditor";
import { useDescription } from "../../../components/useDescription";
import { Ticked } from "../../../components/Ticked";
import classes from "./fields.module.css";

export interface FieldRowProps {
  object: string;
  column: Column;
  value: DraftValue;
  onChange: (column: string, value: DraftValue) => void;
  /** The error of the field, from the console's own checks or from the server. */
  error?: string | undefined;
  isChanged?: boolean;
  /** Whether the field glows because somebody else has just changed it. */
  glows?: boolean;
  readOnly?: boolean;
  /** Takes the focus when the form appears. */
  autoFocus?: boolean;
  /** Only for a saved record. Adds to the number in one step on the server. */
  onIncrement?: ((column: Column, amount: string) => Promise<void>) | undefined;
}

/** A field of the form: its name, type, editor, rules and error. */
export const FieldRow = memo(function FieldRow({ object, column, value, onChange, error, isChanged = false, glows = false, readOnly = false, autoFocus = false, onIncrement }: FieldRowProps) {
  const id = useId();
  const rules = rulesOf(column);
  const isNullable = column.required !== true;
  const unset = value === undefined;
  const byDefault = defaultText(column);
  const shownError = error ?? (value instanceof Unreadable ? value.message : undefined);
  const below = [column.description, rules.join(" · "), unset && byDefault !== undefined && column.type !== "enum" ? `default ${byDefault.slice(0, 120)}` : ""].filter(Boolean).join(" · ");
  const mayBeNull = !readOnly && isNullable && column.reference === undefined && column.type !== "boolean" && value !== null && (!unset || byDefault !== undefined);
  const describedBy = [below !== "" ? `${id}-rules` : "", shownError === undefined ? "" : `${id}-error`].filter(Boolean).join(" ") || undefined;
  const control = useRef<HTMLDivElement>(null);
  // The pickers of relations and booleans set their description themselves.
  useDescription(control, column.reference === undefined && column.type !== "boolean" ? describedBy : undefined, `[id="${id}"]`);
  return (
    <div className={classes.row} data-changed={isChanged || undefined} data-glows={glows || undefined} data-column={column.name}>
      <div className={classes.head}>
        <label className={classes.label} htmlFor={id} id={`${id}-label`}>
          <bdi>{columnLabel(column)}</bdi>
          {column.required === true && (
            <span className={classes.required} title="required">
              *<span className="sr-only">required</span>
            </span>
          )}
        </label>
        <span className={classes.type}>
          {column.label !== undefined && column.label !== column.name && <code className="mono">{column.name}</code>}
          {column.reference === undefined ? column.type : column.reference.target}
          {mayBeNull && (
            <UnstyledButton data-tip={unset ? `Set ${column.name} to null instead of its default` : `Set ${column.name} to null`} className={classes.toNull} onClick={() => onChange(column.name, null)} aria-label={`set null: ${column.name}`}>
              set null
            </UnstyledButton>
          )}
        </span>
      </div>
      <div className={classes.control} ref={control}>
        <FieldEditor
          id={id}
          object={object}
          column={column}
          value={value}
          onChange={(next) => onChange(column.name, next)}
          error={shownError !== undefined}
          describedBy={describedBy}
          disabled={readOnly}
          autoFocus={autoFocus}
          onIncrement={onIncrement}
        />
        {shownError !== undefined && (
          <div className={classes.error} id={`${id}-error`} dir="auto">
            <Ticked text={shownError} />
          </div>
        )}
        {below !== "" && (
          <div className={classes.foot} id={`${id}-rules`} dir="auto">
            {below}
          </div>
        )}
      </div>
    </div>
  );
});

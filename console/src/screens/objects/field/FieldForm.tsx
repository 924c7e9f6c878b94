import { Stack, Switch, Textarea, TextInput } from "@mantine/core";
import { useId } from "react";
import { isTextType } from "../../../api/field-rules";
import { type JsonValue, readNumber } from "../../../api/json";
import { SYSTEM_COLUMNS } from "../../../api/record-shape";
import type { Field, FieldChanges, FieldType } from "../../../api/types";
import type { FieldKey, FieldProblems } from "../model/fieldProblems";
import { defaultScale, explainTypeChange, explainTypes, hasBounds, hasOptions, isComparable, isKnownType, typeInfo, widerTypes } from "../model/fieldTypes";
import { nameFrom } from "../model/names";
import { DefaultInput } from "./DefaultInput";
import { OptionsInput } from "./OptionsInput";
import { PatternInput } from "./PatternInput";
import { TryValue } from "./TryValue";
import { TypeSelect } from "./TypeSelect";
import classes from "./FieldForm.module.css";

export interface FieldFormProps {
  field: Field;
  /** The field as it is on the server. Absent for a new field. */
  before?: Field | undefined;
  problems: FieldProblems;
  /** The messages of the server. */
  refusals?: FieldProblems;
  onChange: (changes: FieldChanges) => void;
  autoFocus?: boolean;
}

/** All rules of one field. Rules that do not apply to its type are hidden. */
export function FieldForm({ field, before, problems, refusals = {}, onChange, autoFocus = false }: FieldFormProps) {
  const id = useId();
  const { type } = field;
  const isNew = before === undefined;
  // A new field without a name is not shown as wrong.
  const error = (key: FieldKey) => refusals[key] ?? (key === "name" && isNew && field.name === "" ? undefined : problems[key]);
  const changeType = (next: FieldType) => onChange({ type: next, ...(isNew ? rulesFor(field, next) : changedRules(field, before, next)) });
  const bound = (key: "min" | "max", text: string) => onChange({ [key]: text.trim() === "" ? null : ((readNumber(text) as JsonValue | null) ?? text) });
  const scale = defaultScale(type);
  return (
    <Stack gap="lg">
      <TextInput
        label="Name"
        value={field.name}
        onChange={(event) => onChange({ name: event.currentTarget.value })}
        onBlur={(event) => {
          const proposed = nameFrom(event.currentTarget.value);
          if (isNew && /[A-Z -]/.test(event.currentTarget.value) && proposed !== "") onChange({ name: proposed, ...(field.label === undefined ? { label: event.currentTarget.value.trim() } : {}) });
        }}
        error={error("name")}
        description={isNew ? `Lower-case letters, digits and _. Taken in every object: ${SYSTEM_COLUMNS.join(", ")}.` : field.name === before.name ? undefined : `Was ${before.name}. Requests that use the old name fail from then on; values stay.`}
        classNames={{ input: "mono" }}
        spellCheck={false}
        autoComplete="off"
        maxLength={200}
        data-autofocus={autoFocus || undefined}
        autoFocus={autoFocus}
        required
      />
      <div>
        <TypeSelect label="Type" type={type} onChange={changeType} error={error("type")} />
        <p className={classes.note}>{!isKnownType(type) ? null : !isNew && before.type !== type ? explainTypeChange(before.type, type) : isNew ? typeInfo(type).hint : explainTypes(before.type)}</p>
      </div>
      {hasOptions(type) && <OptionsInput key={type} options={field.options ?? []} error={error("options")} onChange={(options) => onChange({ options })} />}
      <fieldset className={classes.switches}>
        <legend className="sr-only">Rules</legend>
        <Rule label="Required" hint="A record cannot be without a value." checked={field.required === true} onChange={(required) => onChange({ required })} error={error("required")} />
        <Rule
          label="Unique"
          hint={isComparable(type) ? "No two records have the same value. A unique text can have at most 2,000 bytes." : `${typeInfo(type).label} values cannot be compared.`}
          checked={field.isUnique === true}
          disabled={!isComparable(type) && field.isUnique !== true}
          onChange={(isUnique) => onChange({ isUnique })}
          error={error("isUnique")}
        />
        <Rule
          label="Indexed"
          hint={isComparable(type) ? (field.isUnique === true ? "A unique field has an index already." : "Filters and sorts on it stay fast with many records.") : `${typeInfo(type).label} values have no order.`}
          checked={field.indexed === true}
          disabled={!isComparable(type) && field.indexed !== true}
          onChange={(indexed) => onChange({ indexed })}
          error={error("indexed")}
        />
      </fieldset>
      {hasBounds(type) && (
        <div className={classes.pair}>
          {(["min", "max"] as const).map((key) => (
            <TextInput
              key={key}
              label={isTextType(type) ? (key === "min" ? "Least length" : "Greatest length") : key === "min" ? "Minimum" : "Maximum"}
              placeholder={type === "rating" ? (key === "min" ? "0" : "5") : "none"}
              value={field[key] === undefined ? "" : String(field[key])}
              onChange={(event) => bound(key, event.currentTarget.value)}
              error={error(key)}
              inputMode="decimal"
              classNames={{ input: "mono" }}
              autoComplete="off"
            />
          ))}
        </div>
      )}
      {scale !== undefined && (
        <TextInput
          label="Scale"
          description="Digits after the point. Further digits are rounded half away from zero."
          placeholder={String(scale)}
          value={field.scale === undefined ? "" : String(field.scale)}
          onChange={(event) => {
            const text = event.currentTarget.value.trim();
            onChange({ scale: text === "" ? null : /^\d{1,3}$/.test(text) ? Number(text) : (text as unknown as number) });
          }}
          error={error("scale")}
          inputMode="numeric"
          classNames={{ input: "mono" }}
        />
      )}
      {isTextType(type) && <PatternInput pattern={field.pattern} error={error("pattern")} onChange={(pattern) => onChange({ pattern })} />}
      <DefaultInput key={`${type} ${before?.name ?? "new"}`} field={field} error={error("default")} onChange={(value) => onChange({ default: value })} />
      <TryValue key={`try ${type}`} field={field} />
      <TextInput
        label="Label"
        description="What people read in place of the name."
        value={field.label ?? ""}
        onChange={(event) => onChange({ label: event.currentTarget.value === "" ? null : event.currentTarget.value })}
        error={error("label")}
        dir="auto"
      />
      <Textarea
        label="Description"
        description="For those who fill in records and for the API's document."
        value={field.description ?? ""}
        onChange={(event) => onChange({ description: event.currentTarget.value === "" ? null : event.currentTarget.value })}
        error={error("description")}
        autosize
        minRows={2}
        maxRows={8}
        id={`${id}-description`}
        dir="auto"
      />
    </Stack>
  );
}

function Rule({ label, hint, checked, disabled = false, error, onChange }: { label: string; hint: string; checked: boolean; disabled?: boolean; error: string | undefined; onChange: (checked: boolean) => void }) {
  return <Switch label={label} description={hint} checked={checked} disabled={disabled} error={error} onChange={(event) => onChange(event.currentTarget.checked)} />;
}

export function TypeIcon({ type, size = 15 }: { type: FieldType; size?: number }) {
  const { icon: Icon } = typeInfo(type);
  return <Icon size={size} stroke={1.75} aria-hidden="true" />;
}

/** Removes the rules of a new field that the new type does not have. The default is always removed. */
function rulesFor(field: Field, next: FieldType): FieldChanges {
  return {
    default: null,
    ...(hasBounds(next) && isTextType(next) === isTextType(field.type) ? {} : { min: null, max: null }),
    ...(isTextType(next) ? {} : { pattern: null }),
    ...(hasOptions(next) ? {} : { options: null }),
    ...(defaultScale(next) === undefined ? { scale: null } : {}),
    ...(isComparable(next) ? {} : { isUnique: false, indexed: false }),
  };
}

/** Like the server, removes the rules that the new type does not have. They come back if the person chooses a type that has them. */
function changedRules(field: Field, before: Field, next: FieldType): FieldChanges {
  const hasAll = field.type === before.type || (field.type !== "text" && widerTypes(before.type).includes(field.type));
  const from = hasAll ? field : before;
  const { min = null, max = null, pattern = null, options = null, scale = null, isUnique = false, indexed = false } = from;
  const kept: FieldChanges = { min, max, pattern, options, scale, isUnique, indexed, default: from.default ?? null };
  if (next === before.type) return kept;
  if (!widerTypes(before.type).includes(next)) return { ...kept, ...rulesFor(from, next) };
  if (next !== "text") return { ...kept, ...(defaultScale(next) === undefined ? { scale: null } : {}) };
  const value = from.default;
  return {
    ...kept,
    ...(isTextType(before.type) ? {} : { min: null, max: null }),
    options: null,
    scale: null,
    default: value === undefined || value === null ? null : typeof value === "string" ? value : String(value),
  };
}

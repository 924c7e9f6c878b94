/** The choices of a grouped view: fields, periods, functions, conditions on groups, and the kind of chart. Errors are at their inputs. */
import { MultiSelect, NativeSelect, SegmentedControl, Select } from "@mantine/core";
import { useState } from "react";
import { readerZone } from "../../../api/local-time";
import { Ticked } from "../../../components/Ticked";
import type { Choices, RecordColumn, RecordShape } from "../columns";
import { FilterBar } from "../filters/FilterBar";
import type { ListView } from "../list-query";
import { type ChartKind, FUNCTIONS_MAX, type Grouping, hasPeriods, makesGroups } from "../views/grouping";
import type { TitleOf } from "./labels";
import { periodChoices } from "./period-choices";
import { periodsOf } from "./periods";
import { type GroupField, type Place, fieldOf, functionOf, functionsOf, needsZone, pruned, resultShape, takesHaving, takesZone } from "./request";
import classes from "./Groups.module.css";

export interface GroupBarProps {
  shape: RecordShape;
  view: ListView;
  grouping: Grouping;
  /** The time zone of the periods. Undefined for UTC. */
  zone: string | undefined;
  kind: ChartKind;
  onChange: (grouping: Grouping) => void;
  titleOf: TitleOf;
  /** The input that the server refuses, with its message. */
  refused: { place: Place; message: string } | undefined;
}

const PERIOD_FIRST = "month";
/** No field has this name. */
const NO_FIELD = "-";
const NO_SHAPE = () => undefined;

export function GroupBar({ shape, view, grouping, zone, kind, onChange, titleOf, refused }: GroupBarProps) {
  const [adding, setAdding] = useState<{ column?: string } | null>(null);
  const fields = grouping.by.map((text) => fieldOf(text, shape, zone));
  const [first, second] = fields as [GroupField, GroupField?];
  const change = (part: Partial<Grouping>) => onChange(pruned({ ...grouping, ...part }, shape));
  const setField = (index: number, text: string | null) => change({ by: text === null ? grouping.by.toSpliced(index, 1) : grouping.by.toSpliced(index, 1, text) });
  const problemAt = (index: number) => (refused?.place.input === "field" && refused.place.index === index ? <Ticked text={refused.message} /> : undefined);
  const problemOf = (input: "functions" | "having") => (refused?.place.input === input ? <Ticked text={refused.message} /> : undefined);
  const offered = functionsOf(shape);
  const chosen = grouping.functions.map((text) => functionOf(text, shape));
  // A view can have other functions, such as `count:email`.
  const others = chosen.filter(({ text }) => !offered.some((each) => each.text === text));
  const result = withChoices(resultShape(grouping, shape), (id) => {
    const field = fields.find(({ key }) => key === id);
    return field === undefined ? undefined : periodChoices(field, view, shape, zone);
  });
  return (
    <div className={classes.bar} role="group" aria-label="Groups">
      <FieldChoice label="Group by" shape={shape} field={first} error={problemAt(0)} onChange={(text) => text !== null && setField(0, text)} />
      <FieldChoice label="Then by" shape={shape} field={second} without={first} error={problemAt(1)} onChange={(text) => setField(1, text)} />
      <MultiSelect
        className={classes.functions!}
        size="xs"
        aria-label="Functions"
        searchable
        hidePickedOptions
        maxValues={FUNCTIONS_MAX}
        maxDropdownHeight={300}
        data={[...offered, ...others].map(({ text, label }) => ({ value: text, label }))}
        value={grouping.functions}
        error={problemOf("functions")}
        onChange={(functions) => change({ functions: functions.length === 0 ? ["count"] : functions })}
      />
      {takesHaving(shape) && (
        <div className={classes.having}>
          <FilterBar
            label="Groups where"
            isPlain
            shape={result}
            of={NO_SHAPE}
            filter={{ conditions: grouping.having, where: "" }}
            search=""
            onChange={({ conditions }) => onChange({ ...grouping, having: conditions })}
            adding={adding}
            onAdding={setAdding}
            titleOf={titleOf}
          />
          {problemOf("having") !== undefined && (
            <div className={classes.problem} role="alert">
              {problemOf("having")}
            </div>
          )}
        </div>
      )}
      <span className={classes.end}>
        {needsZone(grouping, shape) && (
          <span className={classes.zone} role="status">
            {zoneWords(shape, zone)}
          </span>
        )}
        {first.period !== undefined && (
          <SegmentedControl
            aria-label="Chart"
            data={[
              { value: "line", label: "Line" },
              { value: "bars", label: "Bars" },
            ]}
            value={kind}
            onChange={(chart) => onChange({ ...grouping, chart: chart as ChartKind })}
          />
        )}
      </span>
    </div>
  );
}

function zoneWords(shape: RecordShape, zone: string | undefined): string {
  if (zone !== undefined) return `Periods in ${zone}`;
  return takesZone(shape) ? `Periods in UTC, because the server does not know the time zone ${readerZone}` : "Periods in UTC, because the object has a field tz";
}

/** The shape with the values that conditions on its columns can have. */
function withChoices(shape: RecordShape, choicesOf: (id: string) => Choices | undefined): RecordShape {
  const columns = shape.columns.map((column) => {
    const choices = choicesOf(column.id);
    return choices === undefined ? column : { ...column, choices };
  });
  return { ...shape, columns, byId: new Map(columns.map((column) => [column.id, column])) };
}

interface FieldChoiceProps {
  label: string;
  shape: RecordShape;
  field: GroupField | undefined;
  /** The field that is already chosen. With it, the choice can be empty. */
  without?: GroupField;
  error: React.ReactNode;
  onChange: (text: string | null) => void;
}

/** A field of the groups, with its period. */
function FieldChoice({ label, shape, field, without, error, onChange }: FieldChoiceProps) {
  const named = ({ id, label: text }: RecordColumn) => ({ value: id, label: text === id ? id : `${text} (${id})` });
  const columns = shape.columns.filter((column) => makesGroups(column) && column.id !== without?.name);
  const isUnknown = field !== undefined && !columns.some(({ id }) => id === field.name);
  // A button in the input could not be reached with the keyboard, so the list has the empty choice.
  const none = without !== undefined && field !== undefined ? [{ value: NO_FIELD, label: "no second field" }] : [];
  const data = [...none, ...columns.map(named), ...(isUnknown ? [{ value: field.name, label: field.name }] : [])];
  return (
    <div className={classes.field}>
      <Select
        aria-label={label}
        placeholder={label}
        searchable
        selectFirstOptionOnChange
        allowDeselect={false}
        maxDropdownHeight={300}
        data={data}
        value={field?.name ?? null}
        error={error}
        onChange={(name) => {
          if (name === null) return;
          const column = shape.byId.get(name);
          onChange(name === NO_FIELD ? null : column !== undefined && hasPeriods(column) ? `${name}:${PERIOD_FIRST}` : name);
        }}
      />
      {field?.column !== undefined && hasPeriods(field.column) && (
        <NativeSelect
          className={classes.period}
          aria-label={`Period of ${field.column.label}`}
          data={[...periodsOf(field.column).map((period) => ({ value: period, label: `by ${period}` })), { value: "", label: "each value" }]}
          value={field.period ?? ""}
          onChange={({ currentTarget: { value } }) => onChange(value === "" ? field.name : `${field.name}:${value}`)}
        />
      )}
    </div>
  );
}

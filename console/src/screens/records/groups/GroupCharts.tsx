/** One chart for each function, because their numbers have different sizes. */
import { useMemo, useState } from "react";
import type { GroupRow } from "../../../api/record-paths";
import { SlotChart, seriesColor } from "../../../components/SlotChart";
import type { ChartKind } from "../views/grouping";
import type { ChartLayout } from "./chart";
import { resultText } from "./labels";
import type { GroupField, GroupFunction } from "./request";
import classes from "./Groups.module.css";

const ALONE_PX = 300;
const SEVERAL_PX = 190;

export interface GroupChartsProps {
  layout: ChartLayout;
  kind: ChartKind;
  fields: GroupField[];
  functions: GroupFunction[];
  onPick: (row: GroupRow) => void;
}

export function GroupCharts({ layout, kind, fields, functions, onPick }: GroupChartsProps) {
  const { slots, series, notes } = layout;
  return (
    // A region that scrolls can be reached with the keyboard.
    <div className={classes.charts} role="region" aria-label="Charts" tabIndex={0}>
      {fields.length > 1 && (
        <ul className={classes.legend} aria-label={fields[1]?.label}>
          {series.map((name, index) => (
            // Two related records can have the same name.
            <li key={`${index} ${name}`} className={classes.name}>
              <span className={classes.color} style={{ background: `var(${seriesColor(index)})` }} aria-hidden="true" />
              <bdi className="ellipsis">{name}</bdi>
            </li>
          ))}
        </ul>
      )}
      {slots.length > 0 && functions.map((of) => <FunctionChart key={of.text} of={of} layout={layout} kind={kind} fields={fields} height={functions.length === 1 ? ALONE_PX : SEVERAL_PX} onPick={onPick} />)}
      {notes.map((note) => (
        <p key={note} className={classes.note}>
          {note}
        </p>
      ))}
    </div>
  );
}

interface FunctionChartProps extends Omit<GroupChartsProps, "functions"> {
  of: GroupFunction;
  height: number;
}

function FunctionChart({ of, layout, kind, fields, height, onPick }: FunctionChartProps) {
  const [at, setAt] = useState<number | null>(null);
  const { slots, series, rowAt, valueAt } = layout;
  const drawn = useMemo(() => series.map((label, index) => ({ label, values: slots.map((_, slot) => valueAt(of, slot, index)) })), [slots, series, valueAt, of]);
  const textAt = (slot: number) =>
    series
      .flatMap((name, index) => {
        const row = rowAt(slot, index);
        const text = row === undefined ? (valueAt(of, slot, index)?.toString() ?? null) : resultText(row[of.key], of);
        return text === null ? [] : [name === "" ? text : `${name} ${text}`];
      })
      .join(", ");
  const said = at === null || slots[at] === undefined ? "" : `${slots[at]}: ${textAt(at) || "no value"}`;
  return (
    <figure className={classes.chart}>
      <figcaption className={classes.caption}>
        <bdi>{of.label}</bdi>
        {/* The table has the same for people who do not use a pointer. */}
        <bdi className={classes.said} aria-hidden="true">
          {said}
        </bdi>
      </figcaption>
      <SlotChart
        label={`Chart of ${of.label}: ${fields.map(({ label }) => label).join(", ")}. The table has its values.`}
        kind={kind}
        height={height}
        slots={slots}
        series={drawn}
        onHover={setAt}
        onPick={(slot, index) => {
          const row = rowAt(slot, index);
          if (row !== undefined) onPick(row);
        }}
      />
    </figure>
  );
}

import { Button, Checkbox, Group, Select } from "@mantine/core";
import { useMemo } from "react";
import { checkValue } from "../../../api/field-rules";
import { printJson, type JsonValue } from "../../../api/json";
import { readerZone } from "../../../api/local-time";
import { type Column, columnLabel, type RecordShape } from "../../../api/record-shape";
import { Value } from "../../../components/Value";
import { type ConvertSettings, convertCell, guessType, readAs } from "./convert";
import type { Plan, Sight } from "./import.worker";
import { Choice } from "./Choice";
import { NamedBy } from "./NamedBy";
import { bytes } from "../../settings/units";
import { upsertTargets } from "./mapping";
import { type Delimiter, ENCODINGS, type Encoding, type SourceFormat, type SourceOptions, type SourceRow } from "./formats";
import classes from "./transfer.module.css";

const SAMPLES = 3;
const PREVIEW_ROWS = 8;
const ID: Column = { name: "id", type: "uuid", description: "Finds the record that an upsert changes." };
const FORMATS: Record<SourceFormat, string> = { csv: "CSV", json: "JSON, NDJSON" };
const DELIMITER_NAMES: Record<Delimiter, string> = { ",": "Comma ,", ";": "Semicolon ;", "\t": "Tab", "|": "Bar |" };
const ENCODING_NAMES = Object.fromEntries(ENCODINGS.map((each) => [each, each])) as Record<Encoding, string>;

export interface MapStepProps {
  shape: RecordShape;
  file: File;
  sight: Sight;
  plan: Plan;
  error: string | undefined;
  onPlan: (plan: Plan) => void;
  onOptions: (options: SourceOptions) => void;
  onBack: () => void;
  onNext: () => void;
}

/** Matches the columns of the file with those of the object, and sets how cells are read. A preview shows the first rows. */
export function MapStep({ shape, file, sight, plan, error, onPlan, onOptions, onBack, onNext }: MapStepProps) {
  const { options, mapping, settings, target } = plan;
  const targets = useMemo(() => upsertTargets(shape), [shape]);
  const columns = useMemo(() => [...(target?.includes("id") === true ? [ID] : []), ...shape.columns], [shape.columns, target]);
  const used = new Map(Object.entries(mapping).flatMap(([source, name]) => (name === null ? [] : [[name, source] as const])));
  const missing = columns.filter(({ name, required, default: byDefault }) => required === true && !used.has(name) && (byDefault === undefined || byDefault === null));
  const keyless = (target ?? []).filter((name) => !used.has(name));
  const isBlocked = used.size === 0 || keyless.length > 0 || (target === null && missing.length > 0);
  const set = (change: Partial<ConvertSettings>) => onPlan({ ...plan, settings: { ...settings, ...change } });
  const map = (source: string, name: string | null) => {
    const next = { ...mapping };
    // Each column of the object gets its values from one column of the file.
    if (name !== null) for (const each of Object.keys(next)) if (next[each] === name) next[each] = null;
    next[source] = name;
    onPlan({ ...plan, mapping: next });
  };
  const has = (...types: string[]) => columns.some(({ name, type }) => used.has(name) && types.includes(type));
  return (
    <div className={classes.step}>
      <p className={classes.fileLine}>
        <bdi>{file.name}</bdi> <span className="dim">{bytes(file.size)}</span>
      </p>
      <div className={classes.options}>
        <Choice label="Format" data={FORMATS} value={options.format} onChange={(format) => onOptions({ ...options, format })} />
        {options.format === "csv" && <Choice label="Delimiter" data={DELIMITER_NAMES} value={options.delimiter as Delimiter} onChange={(delimiter) => onOptions({ ...options, delimiter })} />}
        <Choice label="Encoding" data={ENCODING_NAMES} value={options.encoding} onChange={(encoding) => onOptions({ ...options, encoding })} />
        <Choice<string>
          label="Rows that are there already"
          data={{ "": "Add every row as new", ...Object.fromEntries(targets.map((names) => [names.join(","), `Update where ${names.join(" and ")} ${names.length > 1 ? "are" : "is"} the same`])) }}
          value={target === null ? "" : target.join(",")}
          onChange={(chosen) => {
            const next = chosen === "" ? null : chosen.split(",");
            const source = sight.names.find((name) => name.trim().toLowerCase() === "id");
            onPlan({ ...plan, target: next, mapping: { ...mapping, ...(source === undefined ? {} : { [source]: next?.includes("id") === true ? "id" : mapping[source] === "id" ? null : (mapping[source] ?? null) }) } });
          }}
        />
        <Choice label="Empty cells" data={{ leave: "Leave out: the default applies", null: "Null", text: "Empty text, else null" }} value={settings.empty} onChange={(empty) => set({ empty })} />
        {has("integer", "big_integer", "decimal", "float", "percentage", "currency", "rating") && options.format === "csv" && (
          <Choice label="Numbers" data={{ ".": "1234.50", ",": "1.234,50" }} value={settings.decimal} onChange={(decimal) => set({ decimal })} />
        )}
        {has("date", "datetime") && <Choice label="03/04/2026 is" data={{ dmy: "3 April (day first)", mdy: "March 4 (month first)" }} value={settings.dates} onChange={(dates) => set({ dates })} />}
        {has("datetime") && <Choice label="Times without a zone" data={{ utc: "UTC", local: readerZone }} value={settings.zone} onChange={(zone) => set({ zone })} />}
      </div>
      {options.format === "csv" && (
        <Group gap="8px 24px" mt="md">
          <Checkbox label="The first row has the names" checked={options.hasHeader} onChange={(event) => onOptions({ ...options, hasHeader: event.currentTarget.checked })} />
          <Checkbox label="Take away the apostrophe that exports put before formulas" checked={settings.unguard} onChange={(event) => set({ unguard: event.currentTarget.checked })} />
        </Group>
      )}
      {error !== undefined && (
        <p className={classes.error} role="alert">
          {error}
        </p>
      )}
      <h3 className={classes.heading}>Columns</h3>
      <div className={classes.mapping} role="list" aria-label="Columns of the file">
        {sight.names.map((source) => (
          <div className={classes.pair} role="listitem" key={source} data-unused={mapping[source] === null || undefined}>
            <div className={classes.source}>
              <bdi className={classes.sourceName}>{source}</bdi>
              <span className={classes.sourceType}>{guessType(sight.rows.map((row) => row.cells[source]))}</span>
              <div className={classes.samples}>
                <Samples rows={sight.rows} source={source} />
              </div>
            </div>
            <span className={classes.arrow} aria-hidden="true">
              →
            </span>
            <div>
              <Select
                aria-label={`Column for ${source}`}
                data={[
                  { value: "", label: "Leave out" },
                  ...columns.map((column) => ({ value: column.name, label: `${columnLabel(column)} (${column.reference === undefined ? column.type : column.reference.target})${column.required === true ? " *" : ""}` })),
                ]}
                value={mapping[source] ?? ""}
                allowDeselect={false}
                searchable
                nothingFoundMessage="No column has this name."
                onChange={(name) => map(source, name === "" ? null : name)}
              />
              <NamedBy column={columns.find(({ name }) => name === mapping[source])} value={plan.lookups[mapping[source] ?? ""]} onChange={(column, field) => onPlan({ ...plan, lookups: { ...without(plan.lookups, column), ...(field === undefined ? {} : { [column]: field }) } })} />
            </div>
          </div>
        ))}
      </div>
      {missing.length > 0 && target === null && (
        <p className={classes.error} role="alert">
          {missing.map(columnLabel).join(", ")} {missing.length === 1 ? "is" : "are"} required and {missing.length === 1 ? "gets" : "get"} nothing from this file.
        </p>
      )}
      {keyless.length > 0 && (
        <p className={classes.error} role="alert">
          Choose the column for {keyless.join(" and ")}: records are found by it.
        </p>
      )}
      <h3 className={classes.heading}>As it would be sent</h3>
      <Preview columns={columns.filter(({ name }) => used.has(name))} used={used} rows={sight.rows.slice(0, PREVIEW_ROWS)} settings={settings} lookups={plan.lookups} />
      <Group justify="space-between" mt="md">
        <Button variant="default" onClick={onBack}>
          Another file
        </Button>
        <Button onClick={onNext} disabled={isBlocked}>
          Check the rows
        </Button>
      </Group>
    </div>
  );
}

function Samples({ rows, source }: { rows: SourceRow[]; source: string }) {
  const texts = rows
    .map((row) => row.cells[source])
    .filter((cell) => cell !== null && cell !== undefined && cell !== "")
    .slice(0, SAMPLES)
    .map((cell) => (typeof cell === "string" ? cell : printJson(cell)).slice(0, 80));
  return <bdi>{texts.length === 0 ? "nothing in the first rows" : texts.join(" · ")}</bdi>;
}

const without = (lookups: Plan["lookups"], column: string): Plan["lookups"] => Object.fromEntries(Object.entries(lookups).filter(([name]) => name !== column));

function Preview({ columns, used, rows, settings, lookups }: { columns: Column[]; used: Map<string, string>; rows: SourceRow[]; settings: ConvertSettings; lookups: Plan["lookups"] }) {
  if (columns.length === 0) return <p className={classes.hint}>No column is matched yet.</p>;
  return (
    <div className={classes.previewFrame} tabIndex={0} role="region" aria-label="The first rows">
      <table className={classes.preview}>
        <thead>
          <tr>
            <th scope="col">Row</th>
            {columns.map((column) => (
              <th scope="col" key={column.name}>
                {column.name}
                <span className={classes.sourceType}>{column.type}</span>
              </th>
            ))}
          </tr>
        </thead>
        <tbody>
          {rows.map((row) => (
            <tr key={row.number}>
              <th scope="row">{row.number}</th>
              {columns.map((column) => {
                const cell = row.cells[used.get(column.name) ?? ""];
                return <PreviewCell key={column.name} column={readAs(column, lookups[column.name], cell)} cell={cell} settings={settings} broken={row.broken} />;
              })}
            </tr>
          ))}
        </tbody>
      </table>
    </div>
  );
}

function PreviewCell({ column, cell, settings, broken }: { column: Column; cell: JsonValue | undefined; settings: ConvertSettings; broken: string | undefined }) {
  const converted = broken === undefined ? convertCell(column, cell, settings) : { problem: broken };
  const problem = "problem" in converted ? converted.problem : converted.value === undefined || column.type === "json" ? undefined : checkValue(column, converted.value, { patterns: true });
  if ("problem" in converted || problem !== undefined)
    return (
      <td className={classes.bad} title={problem}>
        <bdi>{typeof cell === "string" ? cell.slice(0, 60) : printJson(cell ?? null).slice(0, 60)}</bdi>
        <span className={classes.badWhy}>{problem}</span>
      </td>
    );
  if (converted.value === undefined) return <td className={classes.left}>{column.default === undefined || column.default === null ? "left out" : "default"}</td>;
  return (
    <td>
      <Value value={converted.value} type={column.type === "datetime" ? undefined : column.type} />
    </td>
  );
}

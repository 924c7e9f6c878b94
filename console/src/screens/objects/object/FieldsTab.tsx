import { Button } from "@mantine/core";
import { IconPlus } from "@tabler/icons-react";
import { useMemo, useRef } from "react";
import { printJson } from "../../../api/json";
import type { Field } from "../../../api/types";
import { type Column, DataTable, type DataTableHandle } from "../../../components/DataTable";
import { Find } from "../../../components/Find";
import { EmptyState } from "../../../components/EmptyState";
import { asCurl } from "../../../components/CopyAs";
import { StatusBadge } from "../../../components/StatusBadge";
import { TypeIcon } from "../field/FieldForm";
import type { DraftField } from "../model/draft";
import { typeInfo } from "../model/fieldTypes";
import { SYSTEM_COLUMNS } from "../../../api/record-shape";
import { relationColumns } from "../model/relations";
import type { ObjectDraft } from "./useObjectDraft";
import classes from "./Objects.module.css";

export interface FieldsTabProps {
  state: ObjectDraft;
  query: string;
  onQuery: (query: string) => void;
  openKey: string | undefined;
  onOpen: (key: string) => void;
  onAdd: (() => void) | undefined;
  table: React.Ref<DataTableHandle>;
}

/**
 * The fields as rows. Fields with pending changes are marked. Only the visible rows are rendered, so hundreds of fields are as fast as
 * three.
 */
export function FieldsTab({ state: { base, draft }, query, onQuery, openKey, onOpen, onAdd, table }: FieldsTabProps) {
  const search = useRef<HTMLInputElement>(null);
  const rows = useMemo(() => matching(draft.fields, query), [draft.fields, query]);
  const foreign = relationColumns(draft.name, base.relations);
  if (draft.fields.length === 0 && query === "")
    return (
      <EmptyState
        title="No fields yet"
        docs="POST /api/v1/objects/{name}/fields"
        action={
          onAdd !== undefined && (
            <Button leftSection={<IconPlus size={14} />} onClick={onAdd}>
              Add field
            </Button>
          )
        }
        curl={asCurl({ method: "POST", path: `/api/v1/objects/${draft.name}/fields`, body: { name: "title", type: "text" } })}
      >
        A record of this object has its id and its times alone. A field gives it something to hold.
      </EmptyState>
    );
  return (
    <div className={classes.tab}>
      <div className={classes.bar}>
        <Find ref={search} className={classes.search} label="Find a field" placeholder={`Find in ${draft.fields.length} fields`} value={query} onFind={(text = "") => onQuery(text)} />
        {onAdd !== undefined && (
          <Button className={classes.push} leftSection={<IconPlus size={14} />} onClick={onAdd}>
            Add field
          </Button>
        )}
      </div>
      {rows.length === 0 ? (
        <EmptyState title="No field matches" action={<Button variant="default" onClick={() => onQuery("")}>Show all fields</Button>}>
          Names, labels, types and descriptions are searched.
        </EmptyState>
      ) : (
        <div className={classes.grow}>
          <DataTable label={`Fields of ${draft.name}`} columns={COLUMNS} rows={rows} rowId={({ key }) => key} openId={openKey} onOpen={({ key }) => onOpen(key)} gone={({ state }) => (state === "dropped" ? "It is dropped when the changes are applied." : undefined)} narrowColumns={["name", "type"]} handle={table} />
        </div>
      )}
      <div className={classes.foot}>
        Every record also has {SYSTEM_COLUMNS.join(", ")}
        {foreign.length > 0 && <>; relations add {foreign.join(", ")}</>}. Fields stand in the order in which they were added.
      </div>
    </div>
  );
}

function matching(fields: DraftField[], query: string): DraftField[] {
  const wanted = query.trim().toLowerCase();
  if (wanted === "") return fields;
  return fields.filter(({ key, field }) => [key, field.name, field.label, field.type, typeInfo(field.type).label, field.description].some((text) => text?.toLowerCase().includes(wanted)));
}

const COLUMNS: Column<DraftField>[] = [
  { id: "name", header: "Field", width: 260, cell: (row) => <FieldName row={row} /> },
  {
    id: "type",
    header: "Type",
    width: 170,
    cell: ({ field }) => (
      <span className={classes.type}>
        <TypeIcon type={field.type} /> {typeInfo(field.type).label}
      </span>
    ),
  },
  { id: "rules", header: "Rules", width: 330, cell: ({ field }) => <RuleChips field={field} /> },
  { id: "default", header: "Default", width: 150, cell: ({ field }) => (field.default === undefined ? <span className="dim">–</span> : <span className="mono" dir="auto">{typeof field.default === "string" ? field.default : printJson(field.default)}</span>) },
  { id: "description", header: "Description", width: 280, cell: ({ field }) => <span className="dim" dir="auto" title={field.description}>{field.description}</span> },
];

function FieldName({ row: { key, field, state, problems } }: { row: DraftField }) {
  const isWrong = Object.keys(problems).length > 0;
  return (
    <span className={classes.name}>
      <code className={state === "dropped" ? classes.struck : undefined}>{field.name === "" ? "(no name yet)" : field.name}</code>
      {isWrong ? (
        <StatusBadge tone="bad" plain>
          not right yet
        </StatusBadge>
      ) : (
        <>
          {state === "new" && <StatusBadge tone="info" plain>new</StatusBadge>}
          {state === "changed" && <StatusBadge tone="wait" plain>{key === field.name ? "changed" : `was ${key}`}</StatusBadge>}
          {state === "dropped" && <StatusBadge tone="warn" plain>dropped</StatusBadge>}
        </>
      )}
      {field.label !== undefined && field.label !== field.name && state === "same" && (
        <span className="dim" dir="auto">
          {field.label}
        </span>
      )}
    </span>
  );
}

/** The rules of a field in a few words, for one row. */
export function ruleWords(field: Field): { text: string; strong?: boolean }[] {
  const words: { text: string; strong?: boolean }[] = [];
  if (field.required === true) words.push({ text: "required", strong: true });
  if (field.isUnique === true) words.push({ text: "unique", strong: true });
  if (field.indexed === true) words.push({ text: "indexed" });
  const [min, max] = [field.min, field.max];
  if (min !== undefined && max !== undefined) words.push({ text: `${String(min)} to ${String(max)}` });
  else if (min !== undefined) words.push({ text: `≥ ${String(min)}` });
  else if (max !== undefined) words.push({ text: `≤ ${String(max)}` });
  if (field.scale !== undefined) words.push({ text: `scale ${field.scale}` });
  if (field.pattern !== undefined) words.push({ text: `/${field.pattern.length > 24 ? `${field.pattern.slice(0, 24)}…` : field.pattern}/` });
  if (field.options !== undefined) words.push({ text: field.options.length <= 3 && field.options.join().length < 30 ? field.options.join(" · ") : `${field.options.length} options` });
  return words;
}

export function RuleChips({ field }: { field: Field }) {
  return (
    <span className={classes.rules}>
      {ruleWords(field).map(({ text, strong }) => (
        <span key={text} className={classes.chip} data-strong={strong || undefined} dir="auto">
          {text}
        </span>
      ))}
    </span>
  );
}

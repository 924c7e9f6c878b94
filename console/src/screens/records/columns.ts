/** The columns of an object's table: the id, the fields, the references, and then the columns that the server sets on every record. */
import type { JsonObject } from "../../api/json";
import { type Column, type RecordShape as Known, type RelationKey, relationsOf } from "../../api/record-shape";
import type { FieldType } from "../../api/types";
import { USERS } from "../../api/users-object";

export interface RecordColumn {
  /** The key in a record, and the name in filters, sorts and changes. */
  id: string;
  label: string;
  type: FieldType;
  /** For a reference: the relationship, and the object that it refers to. */
  relation?: { name: string; target: string };
  required: boolean;
  /** Whether the server sets the column, like `id` and `created_at`. */
  isSystem: boolean;
  /** Whether this person cannot change the column, because the server sets it or no grant allows it. */
  isReadOnly: boolean;
  options?: string[];
  /** The column for the editor of its values, with the label that the table shows. */
  field: Column;
  description?: string;
  /** If a condition takes only values that the server has sent. */
  choices?: Choices;
}

/** The values that a condition can have, with their names. */
export interface Choices {
  /** The key of the query that loads them. */
  key: readonly string[];
  /** `isCut` says that there are more. */
  load: (signal: AbortSignal) => Promise<{ values: string[]; isCut: boolean }>;
  labelOf: (value: string) => string;
}

/** The facts about an object that a table needs. */
export interface RecordShape {
  name: string;
  label: string;
  columns: RecordColumn[];
  byId: ReadonlyMap<string, RecordColumn>;
  /** The relations, by their keys. */
  relations: ReadonlyMap<string, RelationKey>;
  /** A text that changes when columns or their rules change. */
  signature: string;
}

const systemColumn = (id: string, type: FieldType, required = false): RecordColumn => ({ id, label: id, type, required, isSystem: true, isReadOnly: true, field: { name: id, type } });

const SYSTEM: readonly RecordColumn[] = [systemColumn("created_at", "datetime"), systemColumn("updated_at", "datetime"), systemColumn("created_by", "text"), systemColumn("updated_by", "text")];

/** The shape of a record for a table: its own columns, and those that every record has. */
export function tableShape(shape: Known): RecordShape {
  const { object: name, label, columns: known } = shape;
  const system = new Set<string>(shape.system);
  const own = known.map(
    (column): RecordColumn => {
      const { name: id, type, required, options, description, reference } = column;
      const shown = reference?.relation ?? column.label ?? id;
      return {
        id,
        label: shown,
        type,
        required: required === true,
        isSystem: false,
        isReadOnly: column.isReadOnly === true,
        field: { ...column, label: shown },
        ...(reference === undefined ? {} : { relation: { name: reference.relation, target: reference.target }, description: reference.target === USERS ? "A user of this service" : `A record of ${reference.target}` }),
        ...(options === undefined ? {} : { options }),
        ...(description === undefined ? {} : { description }),
      };
    },
  );
  const columns: RecordColumn[] = [
    systemColumn("id", "uuid", true),
    ...own,
    ...SYSTEM.filter(({ id }) => system.has(id)),
  ];
  return { name, label, columns, byId: new Map(columns.map((column) => [column.id, column])), relations: new Map(relationsOf(shape).map((relation) => [relation.key, relation])), signature: columns.map((column) => `${column.id}:${column.type}:${column.options?.join("|") ?? ""}`).join() };
}

/** The columns that are missing in every row. */
export function lackingColumns(columns: RecordColumn[], rows: JsonObject[]): string[] {
  return columns.flatMap(({ id }) => (rows.length > 0 && rows.every((row) => !(id in row)) ? [id] : []));
}

/** Whether the server can sort by the column. */
export function isSortable(column: RecordColumn): boolean {
  return column.type !== "json" && column.type !== "multi_enum";
}

/** Whether a new view hides the column. It hides `created_by`, `updated_by` and `updated_at`, which few tables need. */
export function hiddenAtFirst(column: RecordColumn): boolean {
  return column.isSystem && (column.id === "created_by" || column.id === "updated_by" || column.id === "updated_at");
}

const WIDTHS: Partial<Record<FieldType, number>> = {
  boolean: 96, integer: 110, big_integer: 180, decimal: 130, currency: 130, percentage: 110, float: 130, rating: 90,
  date: 120, time: 110, datetime: 190, enum: 130, multi_enum: 180, uuid: 120, json: 220, email: 200, url: 220, slug: 160, text: 220,
};

export function widthOf(column: RecordColumn): number {
  if (column.id === "id") return 130;
  if (column.id === "created_at" || column.id === "updated_at") return 130;
  return column.relation === undefined ? (WIDTHS[column.type] ?? 180) : 180;
}

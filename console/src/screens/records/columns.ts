/** The columns of an object's table: its id, its fields, its references, then what the server keeps about every record. */
import type { RecordShape as Known } from "../../api/record-shape";
import type { Field, FieldType } from "../../api/types";

export interface RecordColumn {
  /** The key in a record, and the name in filters, sorts and changes. */
  id: string;
  label: string;
  type: FieldType;
  /** Of a reference: the relationship, and the object that it points to. */
  relation?: { name: string; target: string };
  required: boolean;
  /** Kept by the server: `id`, `created_at` and the like. */
  isSystem: boolean;
  options?: string[];
  field?: Field;
  description?: string;
}

/** What a table needs to know of an object. */
export interface RecordShape {
  name: string;
  label: string;
  columns: RecordColumn[];
  byId: ReadonlyMap<string, RecordColumn>;
  /** Changes when columns or their rules change. */
  signature: string;
}

const SYSTEM: { id: string; label: string; type: FieldType }[] = [
  { id: "created_at", label: "created_at", type: "datetime" },
  { id: "updated_at", label: "updated_at", type: "datetime" },
  { id: "created_by", label: "created_by", type: "text" },
  { id: "updated_by", label: "updated_by", type: "text" },
];

/** A record's shape as a table shows it: with the columns that every record has around its own. */
export function tableShape({ object: name, label, columns: known }: Known): RecordShape {
  const own = known.map(
    ({ reference, ...field }): RecordColumn => ({
      id: field.name,
      label: reference?.relation ?? field.label ?? field.name,
      type: field.type,
      required: field.required === true,
      isSystem: false,
      ...(reference === undefined ? { field } : { relation: { name: reference.relation, target: reference.target }, description: `A record of ${reference.target}` }),
      ...(field.options === undefined ? {} : { options: field.options }),
      ...(field.description === undefined ? {} : { description: field.description }),
    }),
  );
  const columns: RecordColumn[] = [
    { id: "id", label: "id", type: "uuid", required: true, isSystem: true },
    ...own,
    ...SYSTEM.map((column) => ({ ...column, required: false, isSystem: true })),
  ];
  return { name, label, columns, byId: new Map(columns.map((column) => [column.id, column])), signature: columns.map((column) => `${column.id}:${column.type}:${column.options?.join("|") ?? ""}`).join() };
}

/** What the server refuses to sort by. */
export function isSortable(column: RecordColumn): boolean {
  return column.type !== "json" && column.type !== "multi_enum";
}

/** Columns that a new view shows: all but who made and changed a record, which few tables need. */
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

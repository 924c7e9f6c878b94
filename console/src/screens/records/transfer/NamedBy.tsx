import { Select } from "@mantine/core";
import { type Column, columnLabel, namingColumns, useRecordShape } from "../../../api/record-shape";
import { useCan } from "../../../api/session";

export interface NamedByProps {
  /** A column that refers to records of another object. */
  column: Column | undefined;
  /** The unique field that identifies these records. Undefined if the file has ids. */
  value: Column | undefined;
  onChange: (column: string, field: Column | undefined) => void;
}

/**
 * Chooses the content of a reference in a file: the id of a record, or the value of one of its unique fields. Shows nothing if only the id
 * is possible.
 */
export function NamedBy({ column, value, onChange }: NamedByProps) {
  const target = column?.reference?.target;
  const readsTarget = useCan(target ?? "", "read");
  const shape = useRecordShape(target === undefined || !readsTarget ? "" : target);
  const unique = namingColumns(shape.data?.columns ?? []);
  if (column === undefined || unique.length === 0) return null;
  return (
    <Select
      size="xs"
      mt={4}
      aria-label={`What ${columnLabel(column)} holds`}
      data={[{ value: "", label: `${target}: id` }, ...unique.map((field) => ({ value: field.name, label: `${target}: ${columnLabel(field)}` }))]}
      value={value?.name ?? ""}
      allowDeselect={false}
      onChange={(name) => onChange(column.name, unique.find((field) => field.name === name))}
    />
  );
}

import { Select } from "@mantine/core";

export interface ChoiceProps<Value extends string> {
  label: string;
  /** The labels of the values, in the order of the list. */
  data: Record<Value, string>;
  value: Value;
  onChange: (value: Value) => void;
}

/** A select that always has a value. */
export function Choice<Value extends string>({ label, data, value, onChange }: ChoiceProps<Value>) {
  const values = Object.keys(data) as Value[];
  return <Select label={label} data={values.map((each) => ({ value: each, label: data[each] }))} value={value} allowDeselect={false} onChange={(chosen) => onChange((chosen as Value | null) ?? value)} />;
}

/** The value of a condition, chosen from values that the server has sent. */
import { MultiSelect, Select } from "@mantine/core";
import { useQuery } from "@tanstack/react-query";
import { messageOf } from "../../../api/errors";
import type { Choices } from "../columns";
import type { Condition } from "./conditions";
import classes from "./Editors.module.css";

const FRESH_MS = 30_000;

export interface LoadedValueProps {
  choices: Choices;
  label: string;
  value: Condition["value"];
  isList: boolean;
  onChange: (value: Condition["value"]) => void;
  withinPortal: boolean;
  takesFocus: boolean;
}

export function LoadedValue({ choices: { key, load, labelOf }, label, value, isList, onChange, withinPortal, takesFocus }: LoadedValueProps) {
  const { data, error, isPending } = useQuery({ queryKey: key, queryFn: ({ signal }) => load(signal), staleTime: FRESH_MS, retry: false });
  const given = (Array.isArray(value) ? value : [value ?? ""]).filter((each) => each !== "");
  // The address can have a value that is not among the loaded ones.
  const all = [...new Set([...given, ...(data?.values ?? [])])].map((each) => ({ value: each, label: labelOf(each) }));
  const shared = {
    "aria-label": label,
    data: all,
    searchable: true,
    comboboxProps: { withinPortal },
    nothingFoundMessage: isPending ? "Loading" : "Nothing found",
    error: error === null ? undefined : messageOf(error),
    ...(takesFocus ? { "data-autofocus": true } : {}),
  };
  return (
    <div>
      {isList ? (
        <MultiSelect {...shared} size="xs" hidePickedOptions value={given} onChange={onChange} placeholder={given.length === 0 ? "Choose" : undefined} />
      ) : (
        <Select {...shared} selectFirstOptionOnChange allowDeselect={false} value={given[0] ?? null} onChange={(chosen) => onChange(chosen ?? "")} placeholder="Choose" />
      )}
      {data?.isCut === true && <span className={classes.note}>The newest {data.values.length}. A filter of the records finds older ones.</span>}
    </div>
  );
}

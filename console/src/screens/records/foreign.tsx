/** Parts of the record screen that the table shows: the panel of a record, and the picker of a related one. */
import { Loader } from "@mantine/core";
import { type ComponentType, Suspense, lazy } from "react";
import { Late } from "../../components/Skeleton";

interface PanelProps {
  role?: string | undefined;
  object: string;
  id: string;
  onClose: () => void;
  onNext?: (() => void) | undefined;
  onPrevious?: (() => void) | undefined;
}

export interface PickerProps {
  object: string;
  relation: string;
  value: string | null;
  onChange: (id: string | null) => void;
  target?: string | undefined;
  label?: string | undefined;
  autoFocus?: boolean | undefined;
  compact?: boolean | undefined;
  clearable?: boolean | undefined;
}

const panels = import.meta.glob<{ RecordPanel: ComponentType<PanelProps> }>("../record/RecordPanel.tsx");
const pickers = import.meta.glob<{ RelationPicker: ComponentType<PickerProps> }>("../../components/RelationPicker.tsx");

const panel = panels["../record/RecordPanel.tsx"];
const picker = pickers["../../components/RelationPicker.tsx"];
const Panel = panel === undefined ? null : lazy(async () => ({ default: (await panel()).RecordPanel }));
const Picker = picker === undefined ? null : lazy(async () => ({ default: (await picker()).RelationPicker }));

export function RecordInspector(props: PanelProps) {
  if (Panel === null) return null;
  return (
    <Suspense fallback={null}>
      <Panel {...props} />
    </Suspense>
  );
}

export function RecordPicker(props: PickerProps) {
  if (Picker === null) return <input aria-label={props.label} defaultValue={props.value ?? ""} onBlur={(event) => props.onChange(event.currentTarget.value === "" ? null : event.currentTarget.value)} />;
  return (
    <Suspense
      fallback={
        <Late>
          <Loader />
        </Late>
      }
    >
      <Picker {...props} />
    </Suspense>
  );
}

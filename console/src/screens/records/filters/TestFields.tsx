/** Column, operator and value of one test. */
import { Select } from "@mantine/core";
import { useEffect, useRef } from "react";
import type { RecordShape } from "../columns";
import { type Operator, converted, initial, operatorLabel, operatorsOf } from "./conditions";
import { FieldPicker } from "./FieldPicker";
import { FilterValue } from "./FilterValue";
import { type Part, type ShapeOf, type Test, columnOf, shapeAt } from "./tree";
import classes from "./Editors.module.css";

export interface TestFieldsProps {
  shape: RecordShape;
  of: ShapeOf;
  test: Test;
  onChange: (test: Test) => void;
  onRelated?: ((path: string[]) => void) | undefined;
  onSubmit: () => void;
  mayTake: (part: Part) => boolean;
  autoFocus: boolean;
  /** Where lists open: inside of a popover, which would close otherwise, or over the page. */
  withinPortal: boolean;
}

export function TestFields({ shape, of, test, onChange, onRelated, onSubmit, mayTake, autoFocus, withinPortal }: TestFieldsProps) {
  const place = useRef<HTMLDivElement>(null);
  const column = columnOf(test, shape, of);
  const holder = shapeAt(test.path, shape, of);
  const isBroken = test.field !== "" && column === undefined;
  // After a column was chosen the value is what comes next.
  const before = useRef(test.field);
  useEffect(() => {
    if (before.current === test.field) return;
    before.current = test.field;
    place.current?.querySelector<HTMLElement>("[data-value] input")?.focus();
  }, [test.field]);
  return (
    <div className={classes.fields} ref={place}>
      <div className={classes.fieldPart}>
        <FieldPicker
          shape={shape}
          of={of}
          path={test.path}
          field={test.field}
          isInvalid={isBroken}
          autoFocus={autoFocus}
          withinPortal={withinPortal}
          mayTake={mayTake}
          onRelated={onRelated}
          onField={(path, chosen) => {
            const next = initial(chosen);
            if (next !== null) onChange({ kind: "test", path, ...next });
          }}
        />
      </div>
      {column !== undefined && holder !== undefined && (
        <>
          <Select
            aria-label="Operator"
            allowDeselect={false}
            comboboxProps={{ withinPortal }}
            maxDropdownHeight={320}
            data={operatorsOf(column).map((operator) => ({ value: operator, label: operatorLabel(operator, column) }))}
            value={test.operator}
            onChange={(operator) => operator !== null && onChange({ ...test, operator: operator as Operator, value: converted(test.value, operator as Operator) })}
          />
          <div data-value>
            <FilterValue object={holder.name} column={column} condition={test} withinPortal={withinPortal} takesFocus={!withinPortal} onChange={(value) => onChange({ ...test, value })} onSubmit={onSubmit} />
          </div>
        </>
      )}
    </div>
  );
}

/** Column, operator and value of one test. */
import { ActionIcon, Select, TextInput } from "@mantine/core";
import { IconVariable } from "@tabler/icons-react";
import { useEffect, useRef } from "react";
import { Menu } from "../../../components/floating";
import type { RecordColumn, RecordShape } from "../columns";
import { type Operator, converted, initial, operatorLabel, operatorsOf } from "./conditions";
import { FieldPicker } from "./FieldPicker";
import { FilterValue } from "./FilterValue";
import { type Part, type ShapeOf, type Test, columnOf, shapeAt } from "./tree";
import { fitsOperator, meaningOf, variablesFor } from "./variables";
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
  /** Whether lists open over the page. Inside a popover, they open in it, because the popover would otherwise close. */
  withinPortal: boolean;
  /** Whether the editor offers variables as values. */
  takesVariables?: boolean;
}

export function TestFields({ shape, of, test, onChange, onRelated, onSubmit, mayTake, autoFocus, withinPortal, takesVariables = false }: TestFieldsProps) {
  const place = useRef<HTMLDivElement>(null);
  const column = columnOf(test, shape, of);
  const holder = shapeAt(test.path, shape, of);
  const isBroken = test.field !== "" && column === undefined;
  // After the choice of a column, the value gets the focus.
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
            onChange={(operator) => operator !== null && onChange(withOperator(test, operator as Operator))}
          />
          <div data-value data-variables={takesVariables || undefined} className={classes.value}>
            {test.variable === undefined ? (
              <FilterValue object={holder.name} column={column} condition={test} withinPortal={withinPortal} takesFocus={!withinPortal} onChange={(value) => onChange({ ...test, value })} onSubmit={onSubmit} />
            ) : (
              <TextInput aria-label={`Value of ${column.label}`} readOnly value={test.variable} data-tip={meaningOf(test.variable)} classNames={{ input: "mono" }} />
            )}
            {takesVariables && <VariableMenu test={test} column={column} onChange={onChange} />}
          </div>
        </>
      )}
    </div>
  );
}

/** The test with another operator. It keeps the value if it fits the new operator. */
function withOperator({ variable, ...test }: Test, operator: Operator): Test {
  return { ...test, operator, value: converted(test.value, operator), ...(variable !== undefined && fitsOperator(variable, operator) ? { variable } : {}) };
}

/**
 * A caller's id is not used to search for texts that contain it. But tests of text columns start with such an operator, so it is replaced.
 */
const isContaining = (operator: Operator) => operator === "ilike" || operator === "like";

/** A menu that sets a value of the caller instead of a typed one. */
function VariableMenu({ test: { variable, ...test }, column, onChange }: { test: Test; column: RecordColumn; onChange: (test: Test) => void }) {
  const offered = variablesFor(column, test.operator);
  if (offered.length === 0 && variable === undefined) return null;
  return (
    <Menu>
      <Menu.Target>
        <ActionIcon aria-label={`Value of the caller for ${column.label}`} data-tip="Value of the caller">
          <IconVariable size={14} />
        </ActionIcon>
      </Menu.Target>
      <Menu.Dropdown>
        <Menu.Label>Value of the caller</Menu.Label>
        {offered.map((each) => (
          <Menu.Item key={each} aria-label={each} rightSection={<span className={classes.note}>{meaningOf(each)}</span>} onClick={() => onChange({ ...withOperator(test, isContaining(test.operator) ? "eq" : test.operator), variable: each })}>
            <span className="mono">{each}</span>
          </Menu.Item>
        ))}
        {variable !== undefined && <Menu.Item onClick={() => onChange(test)}>Another value</Menu.Item>}
      </Menu.Dropdown>
    </Menu>
  );
}

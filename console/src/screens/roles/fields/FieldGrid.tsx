/** Chooses the fields that a grant reads and writes: all, only these, or all except these. */
import { Checkbox, NativeSelect, Stack, TextInput } from "@mantine/core";
import { IconSearch } from "@tabler/icons-react";
import { useState } from "react";
import type { Side } from "../../../api/field-lists";
import type { Action } from "../../../api/types";
import { Ticked } from "../../../components/Ticked";
import { type Choice, type GridState, type Row, choose, fieldsInWords, isTicked, ofNewFields, printGrid, tick } from "./fields";
import conditions from "../conditions/Conditions.module.css";
import classes from "./Fields.module.css";

/** With more fields than this, the table has a search. */
const ROWS_TO_SEARCH = 16;

const HEADS: Record<Side, string> = { read: "Read", write: "Write" };
const CHOICES: { value: Choice; label: string }[] = [
  { value: "all", label: "All fields" },
  { value: "only", label: "Only these" },
  { value: "except", label: "All except these" },
];

export interface FieldGridProps {
  /** The name of the table, such as "Fields of task". */
  label: string;
  state: GridState;
  onChange: (state: GridState) => void;
  rows: Row[];
  /** The lists that the grant's actions need. */
  sides: readonly Side[];
  actions: readonly Action[];
  /** The server's error. */
  error: string | undefined;
}

export function FieldGrid({ label, state, onChange, rows, sides, actions, error }: FieldGridProps) {
  const [term, setTerm] = useState("");
  const wanted = term.trim().toLowerCase();
  const shown = rows.filter(({ name }) => name.toLowerCase().includes(wanted));
  const set = (side: Side, next: GridState[Side]) => onChange({ ...state, [side]: next });
  const said = fieldsInWords(printGrid(state, rows, sides), actions);
  const later = ofNewFields(state, sides);
  return (
    <Stack gap="sm" role="group" aria-label="Fields">
      <div className={conditions.clauseHead}>
        <h3>Fields</h3>
        {rows.length > ROWS_TO_SEARCH && <TextInput size="xs" w={200} leftSection={<IconSearch size={13} />} aria-label="Find a field" placeholder={`Find one of ${rows.length} fields`} value={term} onChange={({ currentTarget }) => setTerm(currentTarget.value)} onKeyDown={(event) => {
            // Enter must not submit the form from here.
            if (event.key === "Enter") event.preventDefault();
          }} />}
      </div>
      <p className={conditions.said} data-sentence>
        {said === undefined ? <span className="dim">All fields. Clear the box of each field that the grant leaves out.</span> : <Ticked text={said} />}
        {later !== undefined && ` ${later}`}
      </p>
      <div className={classes.scroll} tabIndex={0} role="region" aria-label={label}>
        <table className={classes.grid}>
          <thead>
            <tr>
              <th scope="col">Field</th>
              {sides.map((side) => (
                <th scope="col" key={side}>
                  <span className={classes.choice}>
                    {HEADS[side]}
                    <NativeSelect size="xs" aria-label={`Fields to ${side}`} data={CHOICES} value={state[side].choice} onChange={({ currentTarget: { value } }) => set(side, choose(state[side], value as Choice, side, rows))} />
                  </span>
                </th>
              ))}
            </tr>
          </thead>
          <tbody>
            <tr className={classes.every}>
              <th scope="row">{wanted === "" ? "Every field" : "Every field that is found"}</th>
              {sides.map((side) => (
                <td key={side}>
                  <EveryField label={`${HEADS[side]} every field${wanted === "" ? "" : " that is found"}`} state={state[side]} names={shown.flatMap(({ name, sides: of }) => (of.includes(side) ? [name] : []))} onTick={(names, ticked) => set(side, tick(state[side], names, ticked))} />
                </td>
              ))}
            </tr>
            {shown.map(({ name, kind, sides: of }) => (
              <tr key={name}>
                <th scope="row">
                  <bdi className="mono">{name}</bdi> <span className="dim">{kind}</span>
                </th>
                {sides.map((side) => (
                  <td key={side}>
                    {of.includes(side) ? (
                      <Checkbox size="xs" aria-label={`${HEADS[side]} ${name}`} checked={isTicked(state[side], name)} onChange={({ currentTarget: { checked } }) => set(side, tick(state[side], [name], checked))} />
                    ) : side === "read" ? (
                      <span className="dim">always readable</span>
                    ) : (
                      <span className="dim">not writable</span>
                    )}
                  </td>
                ))}
              </tr>
            ))}
          </tbody>
        </table>
      </div>
      {shown.length === 0 && <p className="dim">No field has “{term}” in its name.</p>}
      {error !== undefined && (
        <p className={conditions.refused} role="alert">
          The server refuses this: <Ticked text={error} />
        </p>
      )}
    </Stack>
  );
}

/** A checkbox that ticks all of these fields or none. */
function EveryField({ label, state, names, onTick }: { label: string; state: GridState[Side]; names: string[]; onTick: (names: string[], ticked: boolean) => void }) {
  const count = names.filter((name) => isTicked(state, name)).length;
  return <Checkbox size="xs" aria-label={label} disabled={names.length === 0} checked={names.length > 0 && count === names.length} indeterminate={count > 0 && count < names.length} onChange={() => onTick(names, count < names.length)} />;
}

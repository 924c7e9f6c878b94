/**
 * Chooses the shown columns, their order, and the ones that stay in place while the others scroll. Everything also works with the keyboard.
 */
import { ActionIcon, Button, Checkbox, Group, Stack, TextInput } from "@mantine/core";
import { IconArrowDown, IconArrowUp, IconPin } from "@tabler/icons-react";
import { useState } from "react";
import type { RecordColumn } from "../columns";
import type { GridLayout } from "../grid/geometry";
import classes from "./Views.module.css";

export interface ColumnsListProps {
  all: RecordColumn[];
  /** The shown columns, in their order. */
  shown: RecordColumn[];
  layout: GridLayout;
  onLayout: (layout: GridLayout) => void;
}

export function ColumnsList({ all, shown, layout, onLayout }: ColumnsListProps) {
  const [search, setSearch] = useState("");
  const ids = shown.map(({ id }) => id);
  const pinned = new Set(layout.pinned ?? ids.slice(0, 1));
  const hidden = all.filter(({ id }) => !ids.includes(id));
  const matches = ({ id, label }: RecordColumn) => `${id} ${label}`.toLowerCase().includes(search.trim().toLowerCase());
  const move = (id: string, by: number) => {
    const at = ids.indexOf(id);
    const next = ids.filter((each) => each !== id);
    next.splice(at + by, 0, id);
    onLayout({ ...layout, columns: next });
  };
  const pin = (id: string) => {
    const next = new Set(pinned);
    if (!next.delete(id)) next.add(id);
    onLayout({ ...layout, columns: ids, pinned: ids.filter((each) => next.has(each)) });
  };
  const toggle = (id: string) => {
    const next = ids.includes(id) ? ids.filter((each) => each !== id) : [...ids, id];
    if (next.length > 0) onLayout({ ...layout, columns: next });
  };
  const listed = [...shown, ...hidden].filter(matches);
  return (
    <Stack gap="sm">
      {all.length > 10 && <TextInput aria-label="Search columns" placeholder="Search columns" value={search} data-autofocus onChange={(event) => setSearch(event.currentTarget.value)} />}
      <div className={classes.panel}>
        {listed.map((column) => {
          const { id, label } = column;
          const at = ids.indexOf(id);
          return (
            <div key={id} className={classes.item}>
              <Checkbox className={classes.grow!} label={<bdi>{label}</bdi>} checked={at !== -1} disabled={at !== -1 && ids.length === 1} onChange={() => toggle(id)} />
              {at !== -1 && (
                <>
                  <ActionIcon size={24} aria-label={`Move ${label} up`} disabled={at === 0} onClick={() => move(id, -1)}>
                    <IconArrowUp size={14} />
                  </ActionIcon>
                  <ActionIcon size={24} aria-label={`Move ${label} down`} disabled={at === ids.length - 1} onClick={() => move(id, 1)}>
                    <IconArrowDown size={14} />
                  </ActionIcon>
                  <ActionIcon size={24} aria-label={`Pin ${label}`} aria-pressed={pinned.has(id)} className={pinned.has(id) ? classes.on! : ""} onClick={() => pin(id)}>
                    <IconPin size={14} />
                  </ActionIcon>
                </>
              )}
            </div>
          );
        })}
        {listed.length === 0 && <div className="dim">No column matches.</div>}
      </div>
      <Group gap="sm" justify="space-between">
        <Button variant="subtle" color="gray" onClick={() => onLayout({ ...layout, columns: [...ids, ...hidden.map(({ id }) => id)] })} disabled={hidden.length === 0}>
          Show all
        </Button>
        <Button variant="subtle" color="gray" onClick={() => onLayout({})}>
          Reset
        </Button>
      </Group>
    </Stack>
  );
}

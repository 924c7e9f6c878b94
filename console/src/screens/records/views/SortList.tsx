/** The columns by which the rows are sorted, each with its direction. */
import { ActionIcon, Group, SegmentedControl, Select, Stack } from "@mantine/core";
import { IconArrowUp, IconX } from "@tabler/icons-react";
import { type RecordColumn, isSortable } from "../columns";
import type { SortKey } from "../list-query";

const SORTS_MAX = 8;

export interface SortListProps {
  columns: RecordColumn[];
  sort: SortKey[];
  onSort: (sort: SortKey[]) => void;
}

export function SortList({ columns, sort, onSort }: SortListProps) {
  const choices = columns.filter(isSortable).map(({ id, label }) => ({ value: id, label: label === id ? id : `${label} (${id})` }));
  const free = choices.filter(({ value }) => !sort.some(({ id }) => id === value));
  return (
    <Stack gap="sm">
      {sort.length === 0 && <div className="dim">{columns.some(({ id }) => id === "created_at") ? "The newest records come first." : "The records come in the order of their ids."}</div>}
      {sort.map(({ id, descending }, index) => (
        <Group key={id} gap={4} wrap="nowrap">
          <Select
            aria-label={`Column ${index + 1} of the sort`}
            style={{ flex: 1, minWidth: 0 }}
            searchable
            allowDeselect={false}
            comboboxProps={{ withinPortal: false }}
            data={[...choices.filter(({ value }) => value === id), ...free]}
            value={id}
            onChange={(next) => next !== null && onSort(sort.map((each, at) => (at === index ? { ...each, id: next } : each)))}
          />
          <SegmentedControl
            aria-label={`Direction of ${id}`}
            data={[
              { value: "asc", label: "Asc" },
              { value: "desc", label: "Desc" },
            ]}
            value={descending ? "desc" : "asc"}
            onChange={(direction) => onSort(sort.map((each, at) => (at === index ? { ...each, descending: direction === "desc" } : each)))}
          />
          <ActionIcon aria-label={`Sort by ${id} earlier`} disabled={index === 0} onClick={() => onSort([...sort.slice(0, index - 1), sort[index]!, sort[index - 1]!, ...sort.slice(index + 1)])}>
            <IconArrowUp size={14} />
          </ActionIcon>
          <ActionIcon aria-label={`Do not sort by ${id}`} onClick={() => onSort(sort.filter((_, at) => at !== index))}>
            <IconX size={14} />
          </ActionIcon>
        </Group>
      ))}
      {sort.length < SORTS_MAX && free.length > 0 && (
        <Select
          aria-label="Add a column to the sort"
          placeholder="Add a column"
          searchable
          data-autofocus
          comboboxProps={{ withinPortal: false }}
          maxDropdownHeight={240}
          data={free}
          value={null}
          onChange={(id) => id !== null && onSort([...sort, { id, descending: false }])}
        />
      )}
    </Stack>
  );
}

import { Button } from "@mantine/core";
import { IconCopy, IconPencil, IconTrash } from "@tabler/icons-react";
import { NUMBER } from "../../../api/numbers";
import { useCopy } from "../../../components/Copy";
import type { RecordShape } from "../columns";
import classes from "./Bulk.module.css";
import type { Selection } from "./useSelection";

export interface SelectionBarProps {
  selection: Selection;
  shape: RecordShape;
  total: number | null | undefined;
  mayUpdate: boolean;
  mayDelete: boolean;
  onDone: () => void;
}

/** The actions for the selected rows. */
export function SelectionBar({ selection, total, mayUpdate, mayDelete, onDone }: SelectionBarProps) {
  const [copied, copy] = useCopy();
  const { selected, isAll } = selection;
  const count = selected.size;
  return (
    <div className={classes.bar} role="toolbar" aria-label="Selected records">
      <strong className="nums" role="status">
        {isAll ? `All ${total === null || total === undefined ? "" : `${NUMBER.format(total)} `}that match` : `${NUMBER.format(count)} selected`}
      </strong>
      {!isAll && total !== null && total !== undefined && total > count && (
        <>
          <Button variant="subtle" size="compact-sm" disabled={selection.withheld !== undefined} onClick={selection.selectAll}>
            Select all {NUMBER.format(total)} that match
          </Button>
          {selection.withheld !== undefined && <span>{selection.withheld}</span>}
        </>
      )}
      {mayUpdate && (
        <Button variant="default" size="compact-sm" leftSection={<IconPencil size={14} />} onClick={selection.ask}>
          Change
        </Button>
      )}
      {!isAll && (
        <Button variant="default" size="compact-sm" leftSection={<IconCopy size={14} />} onClick={() => void copy([...selected].join("\n"))}>
          {copied ? "Copied" : "Copy ids"}
        </Button>
      )}
      {mayDelete && (
        <Button variant="default" size="compact-sm" color="red" leftSection={<IconTrash size={14} />} onClick={() => selection.removeSelected()}>
          Delete
        </Button>
      )}
      <Button
        variant="subtle"
        color="gray"
        size="compact-sm"
        onClick={() => {
          selection.select(new Set());
          onDone();
        }}
      >
        Clear selection
      </Button>
    </div>
  );
}

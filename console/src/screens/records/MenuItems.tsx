import { IconArrowDown, IconArrowUp, IconArrowsDiagonal, IconCopy, IconEyeOff, IconFilter, IconFilterOff, IconPencil, IconPin, IconTrash } from "@tabler/icons-react";
import { useCopy } from "../../components/Copy";
import { Menu } from "../../components/floating";
import { type RecordColumn, isSortable } from "./columns";
import { operatorsOf } from "./filters/conditions";
import type { SortKey } from "./list-query";
import { copyText } from "./values";
import type { RecordRow } from "../../api/record-paths";

export interface CellMenuItemsProps {
  object: string;
  column: RecordColumn;
  row: RecordRow;
  mayUpdate: boolean;
  mayDelete: boolean;
  onEdit: () => void;
  onOpen: () => void;
  onFilter: (negated: boolean) => void;
  onNull: () => void;
  onDelete: () => void;
}

export function CellMenuItems({ column, row, mayUpdate, mayDelete, onEdit, onOpen, onFilter, onNull, onDelete }: CellMenuItemsProps) {
  const [, copy] = useCopy();
  const value = row[column.id];
  const edits = mayUpdate && !column.isReadOnly;
  const filters = value === null || operatorsOf(column).includes("eq");
  return (
    <>
      <Menu.Item leftSection={<IconArrowsDiagonal size={14} />} onClick={onOpen}>
        Open record
      </Menu.Item>
      {edits && (
        <Menu.Item leftSection={<IconPencil size={14} />} onClick={onEdit}>
          Edit cell
        </Menu.Item>
      )}
      {edits && !column.required && value !== null && <Menu.Item onClick={onNull}>Set null</Menu.Item>}
      <Menu.Divider />
      <Menu.Item leftSection={<IconCopy size={14} />} onClick={() => void copy(copyText(value))}>
        Copy value
      </Menu.Item>
      <Menu.Item onClick={() => void copy(row.id)}>Copy id</Menu.Item>
      {filters && (
        <>
          <Menu.Divider />
          <Menu.Item leftSection={<IconFilter size={14} />} onClick={() => onFilter(false)}>
            Only rows with this value
          </Menu.Item>
          <Menu.Item leftSection={<IconFilterOff size={14} />} onClick={() => onFilter(true)}>
            Without this value
          </Menu.Item>
        </>
      )}
      {mayDelete && (
        <>
          <Menu.Divider />
          <Menu.Item color="red" leftSection={<IconTrash size={14} />} onClick={onDelete}>
            Delete record
          </Menu.Item>
        </>
      )}
    </>
  );
}

export interface ColumnMenuItemsProps {
  column: RecordColumn;
  sort: SortKey[];
  onSort: (sort: SortKey[]) => void;
  isPinned: boolean;
  onPin: () => void;
  onHide: (() => void) | undefined;
  onFilter: () => void;
}

export function ColumnMenuItems({ column, sort, onSort, isPinned, onPin, onHide, onFilter }: ColumnMenuItemsProps) {
  const others = sort.filter(({ id }) => id !== column.id);
  return (
    <>
      {isSortable(column) && (
        <>
          <Menu.Item leftSection={<IconArrowUp size={14} />} onClick={() => onSort([{ id: column.id, descending: false }])}>
            Sort ascending
          </Menu.Item>
          <Menu.Item leftSection={<IconArrowDown size={14} />} onClick={() => onSort([{ id: column.id, descending: true }])}>
            Sort descending
          </Menu.Item>
          {others.length > 0 && <Menu.Item onClick={() => onSort([...others, { id: column.id, descending: false }])}>Then by this column</Menu.Item>}
          <Menu.Divider />
        </>
      )}
      <Menu.Item leftSection={<IconFilter size={14} />} onClick={onFilter}>
        Filter by this column
      </Menu.Item>
      <Menu.Item leftSection={<IconPin size={14} />} onClick={onPin}>
        {isPinned ? "Unpin column" : "Pin column"}
      </Menu.Item>
      {onHide !== undefined && (
        <Menu.Item leftSection={<IconEyeOff size={14} />} onClick={onHide}>
          Hide column
        </Menu.Item>
      )}
    </>
  );
}

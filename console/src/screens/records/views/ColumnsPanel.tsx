import { Button } from "@mantine/core";
import { IconColumns } from "@tabler/icons-react";
import { Popover } from "../../../components/floating";
import { later } from "../../../components/later";
import type { ColumnsListProps } from "./ColumnsList";

const ColumnsList = later(() => import("./ColumnsList").then((loaded) => loaded.ColumnsList));

/** The button that opens the list of columns. It shows how many of them are shown. */
export function ColumnsPanel(props: ColumnsListProps) {
  const { all, shown } = props;
  return (
    <Popover position="bottom-end" trapFocus returnFocus withinPortal width={300} preload={ColumnsList.preload}>
      <Popover.Target>
        <Button variant="default" leftSection={<IconColumns size={14} />}>
          Columns{shown.length < all.length && <span className="dim nums">&nbsp;{shown.length}/{all.length}</span>}
        </Button>
      </Popover.Target>
      <Popover.Dropdown aria-label="Columns">
        <ColumnsList {...props} />
      </Popover.Dropdown>
    </Popover>
  );
}

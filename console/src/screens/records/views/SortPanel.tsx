/** The button that opens the order of the rows. */
import { Button } from "@mantine/core";
import { IconArrowsSort } from "@tabler/icons-react";
import { Popover } from "../../../components/floating";
import { later } from "../../../components/later";
import type { SortListProps } from "./SortList";

const SortList = later(() => import("./SortList").then((loaded) => loaded.SortList));

export function SortPanel(props: SortListProps) {
  const { length } = props.sort;
  return (
    <Popover position="bottom-end" trapFocus returnFocus withinPortal width={360} preload={SortList.preload}>
      <Popover.Target>
        <Button variant="default" leftSection={<IconArrowsSort size={14} />}>
          Sort{length > 0 && <span className="dim nums">&nbsp;{length}</span>}
        </Button>
      </Popover.Target>
      <Popover.Dropdown aria-label="Sort">
        <SortList {...props} />
      </Popover.Dropdown>
    </Popover>
  );
}

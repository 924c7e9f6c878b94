import { Button } from "@mantine/core";
import { IconDownload, IconTransfer, IconUpload } from "@tabler/icons-react";
import { Suspense, lazy, useState } from "react";
import { namingColumns, useShapes } from "../../../api/record-shape";
import { allows, useCan, useCanRecords, usePermissions } from "../../../api/session";
import { USERS } from "../../../api/users-object";
import { useViewAs } from "../../../api/view-as";
import { Menu } from "../../../components/floating";
import { failed } from "../../../components/toast";
import { type ExportFormat, exportView, type View } from "./export";

const ExportDialog = lazy(() => import("./ExportDialog"));
const ImportDialog = lazy(() => import("./ImportDialog"));

export interface TransferMenuProps {
  object: string;
  view: View;
  /** Why no export has exactly the records of the view. Undefined if one has. */
  withheld?: string | undefined;
  /** Whether the import is open, if the address says so. */
  isImporting?: boolean | undefined;
  onImporting?: ((isImporting: boolean) => void) | undefined;
}

/** The menu to import and export records as files. */
export function TransferMenu({ object, view, withheld, isImporting, onImporting }: TransferMenuProps) {
  const [own, setOwn] = useState(false);
  // A download cannot send the header for the viewed role.
  const isViewing = useViewAs() !== null;
  const mayCreate = useCanRecords(object, "create");
  const mayRead = useCan(object, "read");
  const [isNaming, setNaming] = useState(false);
  const { of } = useShapes();
  const permissions = usePermissions();
  // References whose target has another unique field than the id, so that an export can name its records.
  const selected = view.find(([name]) => name === "select")?.[1].split(",");
  const references = (of?.(object)?.columns ?? []).filter(({ name, reference }) => selected?.includes(name) !== false && reference !== undefined && allows(permissions, reference.target, "read") && namingColumns(of?.(reference.target)?.columns ?? []).length > 0);
  const save = (format: ExportFormat) => void exportView(object, view, format).catch((error: unknown) => failed("The records were not exported", error));
  const isBlocked = !mayRead || isViewing || withheld !== undefined;
  const opened = isImporting ?? own;
  const setOpened = (next: boolean) => {
    setOwn(next);
    onImporting?.(next);
  };
  return (
    <>
      <Menu>
        <Menu.Target>
          <Button variant="default" leftSection={<IconTransfer size={14} />}>
            {object === USERS ? "Export" : "Import, export"}
          </Button>
        </Menu.Target>
        <Menu.Dropdown>
          <Menu.Label maw={280}>{withheld ?? "All rows of this view"}</Menu.Label>
          <Menu.Item leftSection={<IconDownload size={14} />} disabled={isBlocked} onClick={() => save("csv")}>
            Export as CSV
          </Menu.Item>
          <Menu.Item leftSection={<IconDownload size={14} />} disabled={isBlocked} onClick={() => save("ndjson")}>
            Export as NDJSON
          </Menu.Item>
          {references.length > 0 && (
            <Menu.Item leftSection={<IconDownload size={14} />} disabled={isBlocked} onClick={() => setNaming(true)}>
              Export with names…
            </Menu.Item>
          )}
          {object !== USERS && (
            <>
              <Menu.Divider />
              <Menu.Item leftSection={<IconUpload size={14} />} disabled={!mayCreate} onClick={() => setOpened(true)}>
                {mayCreate || isViewing ? "Import a file" : "Import (needs create)"}
              </Menu.Item>
            </>
          )}
        </Menu.Dropdown>
      </Menu>
      {isNaming && (
        <Suspense fallback={null}>
          <ExportDialog object={object} view={view} references={references} onClose={() => setNaming(false)} />
        </Suspense>
      )}
      {opened && mayCreate && (
        <Suspense fallback={null}>
          <ImportDialog object={object} onClose={() => setOpened(false)} />
        </Suspense>
      )}
    </>
  );
}

import { Button } from "@mantine/core";
import { IconDownload, IconTransfer, IconUpload } from "@tabler/icons-react";
import { Suspense, lazy, useState } from "react";
import { api } from "../../../api/client";
import { recordPath } from "../../../api/records";
import { useCan } from "../../../api/session";
import { Menu } from "../../../components/floating";
import { failed } from "../../../components/toast";

const ImportDialog = lazy(() => import("./ImportDialog"));

export interface TransferMenuProps {
  object: string;
  /** The list's parameters as the table shows it: filters, `search`, `sort`, `select`; without paging. */
  view: Iterable<readonly [string, string]>;
  /** Whether the import is open, where the address says so. */
  isImporting?: boolean | undefined;
  onImporting?: ((isImporting: boolean) => void) | undefined;
  /** Nothing is written while viewing as a role, and a download cannot carry the role. */
  isViewingAsRole?: boolean | undefined;
}

const PAGING = new Set(["page", "pageSize", "limit", "offset", "expand", "count"]);

/** The address of the export of a view. */
export function exportPath(object: string, view: TransferMenuProps["view"], format: "csv" | "ndjson"): string {
  const query = new URLSearchParams([["format", format]]);
  for (const [name, value] of view) if (!PAGING.has(name)) query.append(name, value);
  return `${recordPath(object)}/export?${query}`;
}

/** Asks first whether the server would give it, so that a refusal is shown here and not kept as a file. */
async function exportView(object: string, view: TransferMenuProps["view"], format: "csv" | "ndjson"): Promise<void> {
  const path = exportPath(object, view, format);
  try {
    await api.HEAD("/api/v1/data/{object}/export", { params: { path: { object }, query: path.slice(path.indexOf("?") + 1) } });
  } catch (error) {
    failed("The records were not exported", error);
    return;
  }
  const link = document.createElement("a");
  link.href = path;
  link.download = "";
  document.body.append(link);
  link.click();
  link.remove();
}

/** Records in and out, as files. */
export function TransferMenu({ object, view, isImporting, onImporting, isViewingAsRole = false }: TransferMenuProps) {
  const [own, setOwn] = useState(false);
  const mayCreate = useCan(object, "create");
  const mayRead = useCan(object, "read");
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
            Import, export
          </Button>
        </Menu.Target>
        <Menu.Dropdown>
          <Menu.Label>All rows of this view</Menu.Label>
          <Menu.Item leftSection={<IconDownload size={14} />} disabled={!mayRead || isViewingAsRole} onClick={() => void exportView(object, view, "csv")}>
            Export as CSV
          </Menu.Item>
          <Menu.Item leftSection={<IconDownload size={14} />} disabled={!mayRead || isViewingAsRole} onClick={() => void exportView(object, view, "ndjson")}>
            Export as NDJSON
          </Menu.Item>
          <Menu.Divider />
          <Menu.Item leftSection={<IconUpload size={14} />} disabled={!mayCreate || isViewingAsRole} onClick={() => setOpened(true)}>
            {mayCreate ? "Import a file" : "Import (needs create)"}
          </Menu.Item>
        </Menu.Dropdown>
      </Menu>
      {opened && mayCreate && !isViewingAsRole && (
        <Suspense fallback={null}>
          <ImportDialog object={object} onClose={() => setOpened(false)} />
        </Suspense>
      )}
    </>
  );
}

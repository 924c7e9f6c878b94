/** Asks for the name of a view to save or rename it. */
import { Button, Group, Modal, Stack, Switch, TextInput } from "@mantine/core";
import { useMounted } from "@mantine/hooks";
import { useEffect, useState } from "react";
import { PLAIN, type SavedView } from "./view";
import { submits } from "../../../components/submits";

export type Naming = { kind: "save" } | { kind: "rename"; view: SavedView };

const NAME_MAX = 60;

export function NameDialog({ naming, taken, onName, onClose }: { naming: Naming | null; taken: string[]; onName: (name: string, preset: boolean) => void; onClose: () => void }) {
  const isMounted = useMounted();
  const [name, setName] = useState("");
  const [preset, setPreset] = useState(false);
  const before = naming?.kind === "rename" ? naming.view.name : null;
  useEffect(() => {
    if (naming === null) return;
    setName(naming.kind === "rename" ? naming.view.name : "");
    setPreset(false);
  }, [naming]);
  const trimmed = name.trim();
  const problem = trimmed === PLAIN ? "Choose another name." : trimmed !== before && taken.includes(trimmed) ? "There is a view of this name already." : trimmed.length > NAME_MAX ? `A name has ${NAME_MAX} characters at most.` : undefined;
  return (
    <Modal opened={isMounted && naming !== null} onClose={onClose} title={before === null ? "Save view" : "Rename view"} centered size="sm">
      <form onSubmit={submits(() => trimmed !== "" && problem === undefined && onName(trimmed, preset))}>
        <Stack gap="md">
          <TextInput label="Name" data-autofocus autoComplete="off" dir="auto" value={name} error={problem} onChange={(event) => setName(event.currentTarget.value)} />
          {before === null && <Switch label="Open this object with it" checked={preset} onChange={(event) => setPreset(event.currentTarget.checked)} />}
          <Group justify="flex-end" gap="sm">
            <Button variant="default" onClick={onClose}>
              Cancel
            </Button>
            <Button type="submit" disabled={trimmed === "" || problem !== undefined}>
              {before === null ? "Save view" : "Rename view"}
            </Button>
          </Group>
        </Stack>
      </form>
    </Modal>
  );
}

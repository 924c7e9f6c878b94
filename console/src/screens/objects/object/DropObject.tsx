import { Button, Group, Modal, TextInput } from "@mantine/core";
import { useQuery, useQueryClient } from "@tanstack/react-query";
import { type ReactNode, useState } from "react";
import { describe, requestRaw } from "../../../api/client";
import { isApiError } from "../../../api/errors";
import { useSchema } from "../../../api/schema-live";
import { ErrorNotice } from "../../../components/ErrorState";
import { told } from "../../../components/toast";
import { CopySteps } from "../change/CopySteps";
import { Effect } from "../change/Effect";
import { listed } from "../model/names";
import { planQuery } from "../model/plan";
import { relationTitle } from "../model/relations";
import { clearEdits } from "../model/store";
import { submits } from "../../../components/submits";

export interface DropObjectProps {
  object: string;
  schemaVersion: number | undefined;
  onDeleted: () => void;
  /** Renders the element that opens the dialog. */
  children: (ask: () => void) => ReactNode;
}

/** Asks before an object is deleted. It shows what is lost and what depends on the object, and the person has to type the name. */
export function DropObject({ object, schemaVersion, onDeleted, children }: DropObjectProps) {
  const [opened, setOpened] = useState(false);
  return (
    <>
      {children(() => setOpened(true))}
      <Modal opened={opened} onClose={() => setOpened(false)} title={`Delete the object ${object}?`} size={560}>
        {opened && <Question object={object} schemaVersion={schemaVersion} onDeleted={onDeleted} onClose={() => setOpened(false)} />}
      </Modal>
    </>
  );
}

function Question({ object, schemaVersion, onDeleted, onClose }: Omit<DropObjectProps, "children"> & { onClose: () => void }) {
  const cache = useQueryClient();
  const schema = useSchema();
  const [typed, setTyped] = useState("");
  const [failure, setFailure] = useState<unknown>(null);
  const [isBusy, setIsBusy] = useState(false);
  // Relations whose column is on another object. The server only deletes them if the request has `cascade`.
  const foreign = (schema.data?.relationships ?? []).filter(({ source, target, kind }) => source !== target && ((target === object && kind !== "one_to_many") || (source === object && kind === "one_to_many")));
  const drop = describe("delete", "/api/v1/objects/{name}", { params: { path: { name: object }, query: foreign.length > 0 ? { cascade: true } : {} } });
  const plan = useQuery({ ...planQuery(drop, schemaVersion), staleTime: 0 });
  const refused = isApiError(plan.error) && plan.error.status !== 403 && plan.error.status < 500 && plan.error.status !== 0;
  const run = async () => {
    setIsBusy(true);
    setFailure(null);
    try {
      await requestRaw("DELETE", drop.path);
    } catch (error) {
      setFailure(error);
      setIsBusy(false);
      return;
    }
    clearEdits(object);
    onDeleted();
    onClose();
    told(`${object} is deleted.`);
    await cache.invalidateQueries({ queryKey: ["schema"] });
    void cache.invalidateQueries({ queryKey: ["data-objects"] });
    cache.removeQueries({ queryKey: ["data", object] });
  };
  return (
    <form onSubmit={submits(() => typed === object && !refused && void run())}>
      <Effect plan={plan.data} error={plan.error} isPending={plan.isPending} />
      {foreign.length > 0 && (
        <p>
          {foreign.length === 1 ? "The relation " : "The relations "}
          {listed(foreign.map(relationTitle))} {foreign.length === 1 ? "goes" : "go"} too, with {foreign.length === 1 ? "its column" : "their columns"} on the other objects.
        </p>
      )}
      <p className="dim">Events of the past keep what they recorded of its records.</p>
      {failure !== null && <ErrorNotice error={failure} title={`${object} was not deleted`} />}
      <TextInput
        mt="md"
        label={
          <>
            Type <code className="mono">{object}</code> to go on
          </>
        }
        value={typed}
        onChange={(event) => setTyped(event.currentTarget.value)}
        autoComplete="off"
        spellCheck={false}
        data-autofocus
      />
      <Group justify="flex-end" gap="sm" mt="lg">
        <CopySteps steps={[{ request: drop, sentence: `Delete the object ${object}` }]} />
        <Button variant="default" onClick={onClose}>
          Cancel
        </Button>
        <Button type="submit" color="red" disabled={typed !== object || refused} loading={isBusy}>
          Delete object
        </Button>
      </Group>
    </form>
  );
}

import { Button, Stack, Textarea, TextInput } from "@mantine/core";
import { DropObject } from "./DropObject";
import type { ObjectDraft } from "./useObjectDraft";
import classes from "./Objects.module.css";

/** The label and description of the object, and the button to delete it. */
export function SettingsTab({ state, canUpdate, canDelete, onDeleted }: { state: ObjectDraft; canUpdate: boolean; canDelete: boolean; onDeleted: () => void }) {
  return (
    <div className={classes.scroll}>
      <Stack gap="lg">
        <ObjectTexts state={state} canUpdate={canUpdate} />
        <TextInput label="Name" value={state.draft.name} readOnly description="The name of an object stays: addresses, permissions and events are named by it. Give it a label to show people another." classNames={{ input: "mono" }} />
        {canDelete && (
          <section className={classes.danger} aria-label="Delete the object">
            <h2>Delete this object</h2>
            <p className={classes.sectionText}>Its records, its fields and its relations go for good. You see what depends on it first.</p>
            <DropObject object={state.draft.name} schemaVersion={state.schemaVersion} onDeleted={onDeleted}>
              {(ask) => (
                <Button variant="default" c="var(--bb-red)" onClick={ask}>
                  Delete {state.draft.name}
                </Button>
              )}
            </DropObject>
          </section>
        )}
      </Stack>
    </div>
  );
}

export function ObjectTexts({ state: { draft, base, change }, canUpdate }: { state: ObjectDraft; canUpdate: boolean }) {
  const { object } = base;
  const set = (key: "label" | "description", text: string) => change((now) => ({ ...now, [key]: text === (object?.[key] ?? "") ? null : text }));
  return (
    <>
      <TextInput label="Label" description="What people read in place of the name." value={draft.label} readOnly={!canUpdate} onChange={(event) => set("label", event.currentTarget.value)} dir="auto" maxLength={2_000} />
      <Textarea
        label="Description"
        description="What its records are. Shown in the API's document and to MCP clients."
        value={draft.description}
        readOnly={!canUpdate}
        onChange={(event) => set("description", event.currentTarget.value)}
        autosize
        minRows={2}
        maxRows={8}
        dir="auto"
        maxLength={2_000}
      />
    </>
  );
}

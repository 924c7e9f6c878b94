import { Button } from "@mantine/core";
import { IconTable } from "@tabler/icons-react";
import { useQuery } from "@tanstack/react-query";
import { Link, linkOptions, useNavigate, useParams, useSearch } from "@tanstack/react-router";
import { useEffect, useRef, useState } from "react";
import { useCan } from "../../../api/session";
import { Actor } from "../../../components/Actor";
import { confirm } from "../../../components/confirm-store";
import { CopyAs } from "../../../components/CopyAs";
import type { DataTableHandle } from "../../../components/DataTable";
import { EmptyState } from "../../../components/EmptyState";
import { ErrorState } from "../../../components/ErrorState";
import { Page } from "../../../components/Page";
import { SkeletonRows } from "../../../components/Skeleton";
import { Time } from "../../../components/Time";
import { later } from "../../../components/later";
import { useHotkeys } from "../../../components/useHotkeys";
import { CopySteps } from "../change/CopySteps";
import { PendingBar } from "../change/PendingBar";
import { editsFrom, lostEdits } from "../model/draft";
import { recentHistoryQuery } from "../model/history";
import { quantity } from "../../../api/numbers";
import { listed } from "../model/names";
import { NEW_OBJECT, clearEdits, isApplying, newKey, setEdits } from "../model/store";
import { useRecordCount } from "../../../api/counts";
import type { DataObject } from "../../../api/types";
import { FieldsTab } from "./FieldsTab";
import { useObjectDraft } from "./useObjectDraft";
import classes from "./Objects.module.css";

const FieldInspector = later(() => import("./FieldInspector").then((loaded) => loaded.FieldInspector));
const HistoryTab = later(() => import("./HistoryTab").then((loaded) => loaded.HistoryTab));
const RelationsTab = later(() => import("./RelationsTab").then((loaded) => loaded.RelationsTab));
const RulesTab = later(() => import("./RulesTab").then((loaded) => loaded.RulesTab));
const SettingsTab = later(() => import("./SettingsTab").then((loaded) => loaded.SettingsTab));

/** One object: its fields, relations, groups and history. Edits are pending until the person reviews and applies them. */
export function ObjectScreen() {
  const { object: name } = useParams({ from: "/objects/$object" });
  const { tab = "fields", open, q = "" } = useSearch({ from: "/objects/$object" });
  const navigate = useNavigate({ from: "/objects/$object" });
  const state = useObjectDraft(name);
  const { base, draft, edits, change, steps, schemaVersion } = state;
  const canRead = useCan("objects", "read");
  const canUpdate = useCan("objects", "update");
  const canCreate = useCan("objects", "create");
  const canDelete = useCan("objects", "delete");
  const records = useRecordCount(name, base.object !== null);
  const table = useRef<DataTableHandle>(null);
  const [reviewing, setReviewing] = useState(false);
  const [lost, setLost] = useState<string[]>([]);
  // The last known definition, in case somebody else deletes the object.
  const [known, setKnown] = useState<DataObject | null>(null);
  if (base.object !== null && base.object !== known) setKnown(base.object);
  useEffect(() => {
    if (base.object === null || isApplying(name)) return;
    // Somebody else dropped a field or relation that has edits here.
    const { lost: gone, kept } = lostEdits(base, edits);
    if (kept !== edits) change(kept);
    if (gone.length > 0) setLost((before) => [...new Set([...before, ...gone])]);
  }, [name, base, edits, change]);
  const select = (key: string | undefined) => void navigate({ search: ({ open: _, ...rest }) => (key === undefined ? rest : { ...rest, open: key }), replace: open !== undefined });
  const add = () => {
    const key = newKey();
    change((now) => ({ ...now, added: [...now.added, { key, field: { name: "", type: "text" } }] }));
    void navigate({ search: { tab: "fields", open: key } });
  };
  useHotkeys({ n: canUpdate && tab === "fields" ? add : undefined, "mod+Enter": steps.length > 0 && draft.isValid ? () => setReviewing(true) : undefined });

  const tabs = (["fields", "relations", "rules", "history", "settings"] as const).map((each) => ({
    label: { fields: `Fields ${draft.fields.length}`, relations: `Relations ${draft.relations.length}`, rules: "Groups and indexes", history: "History", settings: "Settings" }[each],
    link: linkOptions({ to: "/objects/$object", params: { object: name }, search: each === "fields" ? {} : { tab: each } }),
    active: tab === each,
  }));
  const crumbs = [{ label: "Objects", link: linkOptions({ to: "/objects" }) }];

  if (!canRead || state.error !== null)
    return (
      <Page title={name} crumbs={crumbs}>
        {state.error !== null ? <ErrorState error={state.error} title="The object could not be loaded" onRetry={state.refetch} /> : <NoSchema />}
      </Page>
    );
  if (state.isPending)
    return (
      <Page title={name} crumbs={crumbs} tabs={tabs}>
        <SkeletonRows />
      </Page>
    );
  if (state.isMissing)
    return (
      <Page title={name} crumbs={crumbs}>
        <Gone object={name} known={known?.name === name ? known : null} hadEdits={steps.length > 0} />
      </Page>
    );

  const place = draft.fields.findIndex(({ key }) => key === open);
  const row = tab === "fields" && place !== -1 ? draft.fields[place] : undefined;
  const beside = (offset: number) => {
    const next = draft.fields[place + offset];
    return next === undefined ? undefined : () => select(next.key);
  };
  const close = () => {
    select(undefined);
    table.current?.focus();
  };
  return (
    <Page
      title={name}
      crumbs={crumbs}
      aside={draft.label !== "" && draft.label !== name ? <bdi>{draft.label}</bdi> : undefined}
      tabs={tabs}
      actions={
        <>
          {steps.length > 0 ? <CopySteps steps={steps} /> : <CopyAs request={{ method: "GET", path: `/api/v1/objects/${name}` }} mcp={{ tool: "get_object", arguments: { name } }} />}
          <Button renderRoot={(props) => <Link to="/data/$object" params={{ object: name }} {...props} />} variant="default" leftSection={<IconTable size={14} />}>
            {records === null || records === undefined ? "Records" : quantity(records, "record")}
          </Button>
        </>
      }
      inspector={row && <FieldInspector key={row.key} state={state} row={row} onClose={close} onNext={beside(1)} onPrevious={beside(-1)} canUpdate={canUpdate} canDrop={canDelete} />}
    >
      <div className={classes.tab}>
        {lost.length > 0 && (
          <div className={classes.notice} role="alert">
            <span>
              Somebody else dropped {listed(lost)} in the meantime. Your changes of {lost.length === 1 ? "it" : "them"} are gone with {lost.length === 1 ? "it" : "them"}; all others are still here.
            </span>
            <Button variant="default" size="compact-xs" onClick={() => setLost([])}>
              Dismiss
            </Button>
          </div>
        )}
        <div className={classes.grow}>
          {tab === "fields" && (
            <FieldsTab
              state={state}
              query={q}
              onQuery={(next) => void navigate({ search: ({ q: _, ...rest }) => (next === "" ? rest : { ...rest, q: next }), replace: true })}
              openKey={row?.key}
              onOpen={select}
              onAdd={canUpdate ? add : undefined}
              table={table}
            />
          )}
          {tab === "relations" && <RelationsTab state={state} canAdd={canCreate} canRemove={canDelete} />}
          {tab === "rules" && <RulesTab state={state} canUpdate={canUpdate} />}
          {tab === "history" && <HistoryTab object={name} />}
          {tab === "settings" && <SettingsTab state={state} canUpdate={canUpdate} canDelete={canDelete} onDeleted={() => void navigate({ to: "/objects", search: {} })} />}
        </div>
        <PendingBar
          object={name}
          steps={steps}
          isValid={draft.isValid}
          schemaVersion={schemaVersion}
          opened={reviewing}
          onOpen={setReviewing}
          onDiscard={async () => {
            if (await confirm({ title: `Discard ${quantity(steps.length, "pending change")}?`, children: `${name} stays as it is on the server.`, action: "Discard" })) {
              clearEdits(name);
              if (row?.state === "new") close();
            }
          }}
        />
      </div>
    </Page>
  );
}

export function NoSchema() {
  return (
    <EmptyState title="You need read on objects">
      The definitions of objects are kept from you. Somebody who may update roles can give you the permission, on the Roles page. The records that you may read are in the rail.
    </EmptyState>
  );
}

/** Shown if the object does not exist, or if somebody deleted it while it was open. */
function Gone({ object, known, hadEdits }: { object: string; known: DataObject | null; hadEdits: boolean }) {
  const navigate = useNavigate();
  const canCreate = useCan("objects", "create");
  const { data: recent } = useQuery(recentHistoryQuery);
  const deletion = recent?.find(({ change }) => change.op === "delete_object" && change.object === object);
  const again = () => {
    clearEdits(object);
    setEdits(NEW_OBJECT, editsFrom(known!));
    void navigate({ to: "/objects/new" });
  };
  return (
    <EmptyState
      title={deletion === undefined && known === null ? `There is no object "${object}"` : `The object "${object}" was deleted`}
      action={
        known !== null && canCreate ? (
          <Button onClick={again}>Create it again with its {quantity(known.fields.length, "field")}</Button>
        ) : (
          <Button renderRoot={(props) => <Link to="/objects" {...props} />} variant="default">
            All objects
          </Button>
        )
      }
    >
      {deletion !== undefined && (
        <>
          <Actor id={deletion.appliedBy} /> deleted it <Time at={deletion.appliedAt} />, with its records.{" "}
        </>
      )}
      {deletion === undefined && known === null ? "The address may have a mistake, or the object was deleted long ago." : known !== null ? "Its definition is still here, so the object can be made again. Its records are gone." : ""}
      {hadEdits && " Your pending changes went with it."}
    </EmptyState>
  );
}

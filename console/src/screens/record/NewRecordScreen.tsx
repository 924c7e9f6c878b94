import { useQuery } from "@tanstack/react-query";
import { linkOptions, useNavigate, useParams, useSearch } from "@tanstack/react-router";
import { useMemo, useState } from "react";
import { isJsonObject, readJson, type JsonObject } from "../../api/json";
import { type RecordShape, useRecordShape } from "../../api/record-shape";
import { recordQuery } from "../../api/records";
import { useCanRecords, usePermissions } from "../../api/session";
import { USERS } from "../../api/users-object";
import { useViewAs } from "../../api/view-as";
import { CopyAs } from "../../components/CopyAs";
import { ErrorNotice, ErrorState } from "../../components/ErrorState";
import { Page } from "../../components/Page";
import { SkeletonLines } from "../../components/Skeleton";
import { told } from "../../components/toast";
import { RecordForm } from "./RecordForm";
import { SaveBar } from "./SaveBar";
import { copyCreate } from "./copies";
import { type Edits, bodyOf } from "./draft";
import { useCreating } from "./useCreating";
import { useUnsavedGuard } from "./useUnsavedGuard";
import { Ticked } from "../../components/Ticked";
import { submits } from "../../components/submits";
import classes from "./record.module.css";

/** Creates a record, optionally with the values of another one. */
export function NewRecordScreen() {
  const { object } = useParams({ from: "/data/$object/new" });
  const { from, set } = useSearch({ from: "/data/$object/new" });
  const shape = useRecordShape(object, { isNew: true });
  const permissions = usePermissions();
  const mayCreate = useCanRecords(object, "create");
  const viewed = useViewAs();
  const source = useQuery({ ...recordQuery(object, from ?? ""), enabled: from !== undefined });
  const [made, setMade] = useState(0);
  const isReady = shape.data && permissions !== undefined && (from === undefined || source.data !== undefined || source.isError);
  const error = shape.error;
  // With a new key, each new record gets its own form.
  if (isReady && mayCreate) return <Creation key={`${object}/${from ?? ""}/${set ?? ""}/${made}`} shape={shape.data!} source={source.data?.record} given={set} onAnother={() => setMade((count) => count + 1)} />;
  return (
    <Page title={`New ${shape.data?.label ?? object}`} crumbs={[{ label: shape.data?.label ?? object, link: linkOptions({ to: "/data/$object", params: { object } }) }]} padded>
      {error ? (
        <ErrorState error={error} onRetry={shape.refetch} />
      ) : shape.data === null ? (
        <p className={classes.nothing}><Ticked text={`There is no object \`${object}\` that you may use.`} /></p>
      ) : object === USERS ? (
        <p className={classes.nothing}>Users are not added here. An account begins with a sign-up, or on the Users page.</p>
      ) : viewed !== null ? (
        <p className={classes.nothing}>You view this as the role <bdi>{viewed.name}</bdi>. Leave that view to add a record.</p>
      ) : permissions !== undefined && !mayCreate ? (
        <p className={classes.nothing}><Ticked text={`You need \`create\` on \`${object}\` to add a record. Somebody who may update roles can give it to you, on the Roles page.`} /></p>
      ) : (
        <SkeletonLines lines={10} />
      )}
    </Page>
  );
}

/** The first values of a new record. Unique columns are left out, because the person has to choose other values. */
function beginning(shape: RecordShape, source: JsonObject | undefined, given: string | undefined): Edits {
  const edits: Record<string, Edits[string]> = {};
  if (source !== undefined) for (const { name, isUnique } of shape.columns) if (isUnique !== true && name in source && source[name] !== null) edits[name] = source[name];
  if (given !== undefined) {
    // If the address is not valid, the form is empty.
    const values = readJson(given);
    if (isJsonObject(values)) for (const { name } of shape.columns) if (name in values) edits[name] = values[name];
  }
  return edits;
}

function Creation({ shape, source, given, onAnother }: { shape: RecordShape; source: JsonObject | undefined; given: string | undefined; onAnother: () => void }) {
  const { object, label } = shape;
  const initial = useMemo(() => beginning(shape, source, given), [shape, source, given]);
  const creating = useCreating(shape, initial);
  const { draft, errors, failure, isSaving, focusOn } = creating;
  const navigate = useNavigate();
  const { letGo } = useUnsavedGuard(draft.isDirty, `the new ${label}`);
  const list = linkOptions({ to: "/data/$object", params: { object } });
  const create = async (another: boolean) => {
    const record = await creating.create();
    if (record === null) return;
    letGo();
    told(`${label} created.`);
    if (another) return onAnother();
    await navigate({ to: "/data/$object/$id", params: { object, id: String(record.id) } });
  };
  return (
    <Page title={`New ${label}`} crumbs={[{ label, link: list }]} actions={<CopyAs {...copyCreate(shape, bodyOf(draft.edits, shape.columns))} />} padded>
      <form
        className={classes.single}
        noValidate
        onSubmit={submits(() => void create(false))}
      >
        {failure !== null && <ErrorNotice error={failure} title="The record was not created" />}
        <RecordForm shape={shape} draft={draft} errors={errors} focusOn={focusOn} autoFocus />
        <div className={classes.sticky}>
          <SaveBar changed={[]} isSaving={isSaving} failure={failure} saveLabel={`Create ${label}`} discardLabel="Cancel" onSave={() => void create(false)} onDiscard={() => void navigate(list)} more={{ label: "Create and add another", onClick: () => void create(true) }} />
        </div>
      </form>
    </Page>
  );
}

import { Button } from "@mantine/core";
import { IconCopyPlus, IconTrash } from "@tabler/icons-react";
import type { UseQueryResult } from "@tanstack/react-query";
import { Link, linkOptions, useNavigate, useParams, useSearch } from "@tanstack/react-router";
import type { RecordShape } from "../../api/record-shape";
import type { VersionedRecord } from "../../api/records";
import { CopyAs } from "../../components/CopyAs";
import { ErrorState } from "../../components/ErrorState";
import { Page } from "../../components/Page";
import { SkeletonLines } from "../../components/Skeleton";
import { shortId } from "../../components/Id";
import { Facts } from "./Facts";
import { RecordTab, TABS, useLoadedRecord, useOpenRecord, useRestore } from "./RecordBody";
import { SaveBar } from "./SaveBar";
import { useRemove } from "./remove";
import { useUnsavedGuard } from "./useUnsavedGuard";
import { Ticked } from "../../components/Ticked";
import classes from "./record.module.css";

/** The page of one record, with its own address. */
export function RecordScreen() {
  const { object, id } = useParams({ from: "/data/$object/$id" });
  const { shape, query, error, retry } = useLoadedRecord(object, id);
  if (shape.data && query.data !== undefined) return <LoadedScreen key={`${object}/${id}`} object={object} id={id} shape={shape.data} query={query} latest={query.data} />;
  return (
    <Page title={shortId(id)} crumbs={[{ label: shape.data?.label ?? object, link: linkOptions({ to: "/data/$object", params: { object } }) }]} padded>
      {error ? (
        <ErrorState error={error} title="The record could not be loaded" onRetry={retry} />
      ) : shape.data === null ? (
        <p className={classes.nothing}><Ticked text={`There is no object \`${object}\` that you may use.`} /></p>
      ) : (
        <SkeletonLines lines={10} />
      )}
    </Page>
  );
}

interface LoadedProps {
  object: string;
  id: string;
  shape: RecordShape;
  query: UseQueryResult<VersionedRecord, Error>;
  latest: VersionedRecord;
}

function LoadedScreen({ object, id, shape, query, latest }: LoadedProps) {
  const open = useOpenRecord(shape, id, query, latest);
  const { editing, label, mayDelete, mayCreate, jsonProblem, copy } = open;
  const search = useSearch({ from: "/data/$object/$id" });
  const tab = search.tab ?? "form";
  const navigate = useNavigate();
  const [startRemoval, isRemoving] = useRemove();
  const { letGo } = useUnsavedGuard(editing.draft.isDirty, `“${label}”`);
  const restore = useRestore(open, (made) => {
    letGo();
    void navigate({ to: "/data/$object/$id", params: { object, id: made } });
  });
  const list = linkOptions({ to: "/data/$object", params: { object } });
  const here = linkOptions({ to: "/data/$object/$id", params: { object, id } });
  return (
    <Page
      title={label}
      crumbs={[{ label: shape.label, link: list }]}
      tabs={TABS.map((each) => ({
        label: each.label,
        active: tab === each.tab,
        link: linkOptions({ ...here, search: each.tab === "form" ? {} : { tab: each.tab } }),
      }))}
      actions={
        <>
          <CopyAs {...copy} />
          {mayCreate && (
            <Button variant="default" leftSection={<IconCopyPlus size={14} />} renderRoot={(rest) => <Link to="/data/$object/new" params={{ object }} search={{ from: id }} {...rest} />}>
              Duplicate
            </Button>
          )}
          {mayDelete && (
            <Button
              variant="default"
              leftSection={<IconTrash size={14} />}
              loading={isRemoving}
              onClick={() =>
                startRemoval({
                  shape,
                  id,
                  label,
                  etag: editing.draft.base?.etag ?? null,
                  onGone: () => {
                    letGo();
                    void navigate(list);
                  },
                  onBack: () => void navigate(here),
                })
              }
            >
              Delete
            </Button>
          )}
        </>
      }
      padded
    >
      <div className={tab === "form" ? classes.columns : classes.single}>
        <div>
          <RecordTab open={open} tab={tab} onRestore={restore} />
          {editing.draft.isDirty && (
            <div className={classes.sticky}>
              <SaveBar changed={editing.draft.changed} isSaving={editing.isSaving} failure={editing.failure} onSave={() => void editing.save()} onDiscard={editing.discard} blocked={tab === "json" ? jsonProblem : undefined} />
            </div>
          )}
        </div>
        {tab === "form" && (
          <aside className={classes.side} aria-label="About this record">
            <Facts record={(editing.draft.base ?? latest).record} />
          </aside>
        )}
      </div>
    </Page>
  );
}

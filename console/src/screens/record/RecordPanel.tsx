import { ActionIcon, UnstyledButton } from "@mantine/core";
import { IconArrowsMaximize, IconTrash } from "@tabler/icons-react";
import type { UseQueryResult } from "@tanstack/react-query";
import { useNavigate } from "@tanstack/react-router";
import { useState } from "react";
import type { RecordShape } from "../../api/record-shape";
import type { VersionedRecord } from "../../api/records";
import { CopyAs } from "../../components/CopyAs";
import { ErrorNotice } from "../../components/ErrorState";
import { Inspector, type PaneActions } from "../../components/Inspector";
import { RecordLink } from "../../components/RecordLink";
import { SkeletonLines } from "../../components/Skeleton";
import { shortId } from "../../components/Id";
import { Facts } from "./Facts";
import { RecordTab, TABS, type Tab, useLoadedRecord, useOpenRecord, useRestore } from "./RecordBody";
import { SaveBar } from "./SaveBar";
import { useRemove } from "./remove";
import { useUnsavedGuard } from "./useUnsavedGuard";
import { Ticked } from "../../components/Ticked";
import classes from "./record.module.css";

/** The actions of the pane are called after the person has agreed to lose unsaved changes. */
export interface RecordPanelProps extends PaneActions {
  object: string;
  id: string;
  /** Called with the id of a record that was created here. The list may open it. */
  onOpen?: ((id: string) => void) | undefined;
}

/** The panel with one record, beside the list. */
export function RecordPanel(props: RecordPanelProps) {
  const { object, id, onClose, onNext, onPrevious } = props;
  const { shape, query, error, retry } = useLoadedRecord(object, id);
  if (shape.data && query.data !== undefined)
    return <LoadedPanel key={`${object}/${id}`} {...props} shape={shape.data} query={query} latest={query.data} />;
  return (
    <Inspector title={<span className="mono">{shortId(id)}</span>} onClose={onClose} onNext={onNext} onPrevious={onPrevious}>
      {error ? (
        <ErrorNotice error={error} title="The record could not be loaded" onRetry={retry} />
      ) : shape.data === null ? (
        <p className={classes.nothing}><Ticked text={`There is no object \`${object}\` that you may use.`} /></p>
      ) : (
        <SkeletonLines lines={8} />
      )}
    </Inspector>
  );
}

function LoadedPanel(props: RecordPanelProps & { shape: RecordShape; query: UseQueryResult<VersionedRecord, Error>; latest: VersionedRecord }) {
  const { object, id, onClose, onNext, onPrevious, onOpen, shape, query, latest } = props;
  const open = useOpenRecord(shape, id, query, latest);
  const { editing, label, mayDelete, jsonProblem, copy } = open;
  const [tab, setTab] = useState<Tab>("form");
  const [startRemoval, isRemoving] = useRemove();
  const navigate = useNavigate();
  const { leave } = useUnsavedGuard(editing.draft.isDirty, `“${label}”`);
  const restore = useRestore(open, (made) => (onOpen === undefined ? void navigate({ to: "/data/$object/$id", params: { object, id: made } }) : onOpen(made)));
  return (
    <Inspector
      title={<bdi>{label}</bdi>}
      onClose={() => void leave(onClose)}
      onNext={onNext === undefined ? undefined : () => void leave(onNext)}
      onPrevious={onPrevious === undefined ? undefined : () => void leave(onPrevious)}
      actions={
        <>
          {mayDelete && (
            <ActionIcon
              data-tip="Delete"
              aria-label="Delete the record"
              loading={isRemoving}
              onClick={() => startRemoval({ shape, id, label, etag: editing.draft.base?.etag ?? null, onGone: () => (editing.discard(), onClose()), onBack: () => onOpen?.(id) })}
            >
              <IconTrash size={16} />
            </ActionIcon>
          )}
          <ActionIcon data-tip="Open the page" aria-label="Open the page of the record" renderRoot={(rest) => <RecordLink object={object} id={id} {...rest} />}>
            <IconArrowsMaximize size={16} />
          </ActionIcon>
        </>
      }
      footer={
        editing.draft.isDirty ? (
          <SaveBar changed={editing.draft.changed} isSaving={editing.isSaving} failure={editing.failure} onSave={() => void editing.save()} onDiscard={editing.discard} blocked={tab === "json" ? jsonProblem : undefined} />
        ) : undefined
      }
    >
      <div className={classes.panelTabs} role="group" aria-label="Views of the record">
        {TABS.map((each) => (
          <UnstyledButton key={each.tab} className={classes.panelTab} data-active={tab === each.tab || undefined} aria-pressed={tab === each.tab} onClick={() => setTab(each.tab)}>
            {each.label}
          </UnstyledButton>
        ))}
      </div>
      <RecordTab open={open} tab={tab} onRestore={restore} />
      {tab === "form" && (
        <div className={classes.panelFacts}>
          <Facts record={(editing.draft.base ?? latest).record} />
          <div className={classes.panelCopy}>
            <CopyAs {...copy} />
          </div>
        </div>
      )}
    </Inspector>
  );
}

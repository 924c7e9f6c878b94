import { ActionIcon, Button } from "@mantine/core";
import { IconChevronLeft, IconChevronRight, IconPlus, IconUnlink } from "@tabler/icons-react";
import { keepPreviousData, useMutation, useQuery, useQueryClient } from "@tanstack/react-query";
import { Link } from "@tanstack/react-router";
import { Suspense, lazy, useMemo, useState } from "react";
import { api, dataOf, ok } from "../../api/client";
import type { JsonObject } from "../../api/json";
import { usePendingDeletes } from "../../api/pending-deletes";
import { type LinkKey, type RecordShape, type ReverseKey, useRecordShape } from "../../api/record-shape";
import { changeLinks } from "../../api/records";
import { type Related, relatedOf, selectOf } from "../../api/related";
import { useCan, useCanRecords } from "../../api/session";
import { USERS, oneOf } from "../../api/users-object";
import { ErrorNotice } from "../../components/ErrorState";
import { Id } from "../../components/Id";
import { RecordLink } from "../../components/RecordLink";
import { RelatedNote } from "../../components/RelatedNote";
import { RelatedSearch } from "../../components/RelationPicker";
import { SkeletonLines } from "../../components/Skeleton";
import { failed, told } from "../../components/toast";
import { Ticked } from "../../components/Ticked";
import classes from "./record.module.css";

const NewRecordDialog = lazy(() => import("./NewRecordDialog"));

const PAGE = 10;

export interface LinksTabProps {
  shape: RecordShape;
  id: string;
  readOnly: boolean;
}

/** The relations of a record: its many-to-many links, which can be added and removed, and the records that refer to it. */
export function LinksTab({ shape, id, readOnly }: LinksTabProps) {
  if (shape.links.length === 0 && shape.reverse.length === 0)
    return (
      <p className={classes.sectionNote}>
        Nothing is linked to a {shape.object === USERS ? oneOf(USERS) : shape.label}, and no object refers to it. Relationships are made under{" "}
        {shape.object === USERS ? (
          <Link to="/objects">Objects</Link>
        ) : (
          <Link to="/objects/$object" params={{ object: shape.object }}>
            Objects
          </Link>
        )}
        .
      </p>
    );
  return (
    <>
      {shape.links.map((link) => (
        <Links key={link.key} shape={shape} id={id} link={link} readOnly={readOnly} />
      ))}
      {shape.reverse.map((reverse) => (
        <Reverse key={reverse.key} shape={shape} id={id} reverse={reverse} readOnly={readOnly} />
      ))}
    </>
  );
}

function Links({ shape, id, link, readOnly }: LinksTabProps & { link: LinkKey }) {
  const { key, target } = link;
  const mayLink = !readOnly && link.isReadOnly !== true;
  const cache = useQueryClient();
  const targetShape = useRecordShape(target);
  const readsTarget = useCan(target, "read");
  const [page, setPage] = useState(0);
  const queryKey = ["record-links", shape.object, id, key];
  const query = useQuery({
    queryKey,
    queryFn: async ({ signal }) => {
      const data = await dataOf(api.GET("/api/v1/data/{object}/{id}", { params: { path: { object: shape.object, id }, query: { expand: key } }, signal }));
      return Array.isArray(data[key]) ? (data[key] as JsonObject[]) : [];
    },
    enabled: readsTarget,
  });
  const labels = useMemo((): Related[] => {
    const columns = targetShape.data?.columns;
    return (query.data ?? []).map((record) => relatedOf(target, record, columns));
  }, [query.data, target, targetShape.data]);
  const linked = useMemo(() => new Set(labels.map((each) => each.id)), [labels]);
  const change = useMutation({
    mutationFn: ({ to, ids }: { to: "add" | "remove"; ids: string[] }) => changeLinks(shape.object, id, key, ids, to),
    onMutate: ({ to, ids }) => {
      const before = cache.getQueryData<JsonObject[]>(queryKey);
      if (to === "remove") cache.setQueryData<JsonObject[]>(queryKey, (now) => now?.filter((record) => !ids.includes(String(record.id))));
      return { before };
    },
    onError: (error, { to }, context) => {
      cache.setQueryData(queryKey, context?.before);
      failed(to === "add" ? "It was not linked" : "The link was not removed", error);
    },
    onSettled: () => cache.invalidateQueries({ queryKey: ["record-links", shape.object, id] }),
  });
  const pages = Math.max(1, Math.ceil(labels.length / PAGE));
  const shown = Math.min(page, pages - 1);
  const targetLabel = target === USERS ? oneOf(USERS) : (targetShape.data?.label ?? target);
  const mayCreate = useCanRecords(target, "create");
  return (
    <section className={classes.section} aria-label={`Links ${key}`}>
      <div className={classes.sectionHead}>
        <h2 className={classes.sectionTitle} dir="auto">
          {key}
        </h2>
        {query.data !== undefined && <span className={classes.sectionCount}>{labels.length.toLocaleString("en")}</span>}
        <span className={classes.sectionNote}>many to many, {target === USERS ? USERS : targetLabel}</span>
      </div>
      {!readsTarget && <p className={classes.sectionNote}><Ticked text={`You need \`read\` on \`${target}\` to see these links. Somebody who may update roles can give it to you.`} /></p>}
      {query.isPending && readsTarget && <SkeletonLines lines={3} />}
      {query.isError && <ErrorNotice error={query.error} title="The links could not be loaded" onRetry={() => void query.refetch()} />}
      {labels.length > 0 && (
        <ul className={classes.list}>
          {labels.slice(shown * PAGE, (shown + 1) * PAGE).map((each) => (
            <Item
              key={each.id}
              object={target}
              related={each}
              action={
                mayLink && (
                  <ActionIcon
                    data-tip="Remove the link"
                    aria-label={`Remove the link to ${each.label ?? each.id}`}
                    onClick={() => {
                      change.mutate({ to: "remove", ids: [each.id] }, { onSuccess: () => told(`The link to “${each.label ?? each.id}” is removed. The ${targetLabel} stays.`) });
                    }}
                  >
                    <IconUnlink size={15} />
                  </ActionIcon>
                )
              }
            />
          ))}
        </ul>
      )}
      {query.isSuccess && labels.length === 0 && <p className={classes.sectionNote}>Nothing is linked yet.</p>}
      <Pager page={shown} pages={pages} onPage={setPage} label={key} />
      {mayLink && readsTarget && (
        <div className={classes.add}>
          <RelatedSearch
            target={target}
            shown=""
            label={`Link a ${targetLabel} by ${key}`}
            placeholder={mayCreate ? `Link a ${targetLabel}: search, or create one` : `Link a ${targetLabel}: search`}
            without={linked}
            onChoose={(chosen) => change.mutate({ to: "add", ids: [chosen.id] })}
          />
        </div>
      )}
    </section>
  );
}

function Item({ object, related, action }: { object: string; related: Related; action?: React.ReactNode }) {
  return (
    <li className={classes.item}>
      <RecordLink className={classes.itemLink} object={object} id={related.id} dir="auto">
        {related.label ?? <span className="dim">without a name</span>}
      </RecordLink>
      <RelatedNote of={related} />
      <Id id={related.id} />
      {action}
    </li>
  );
}

function Pager({ page, pages, onPage, label }: { page: number; pages: number; onPage: (page: number) => void; label: string }) {
  if (pages <= 1) return null;
  return (
    <div className={classes.pager}>
      <ActionIcon aria-label={`Previous page of ${label}`} disabled={page === 0} onClick={() => onPage(page - 1)}>
        <IconChevronLeft size={15} />
      </ActionIcon>
      Page {page + 1} of {pages}
      <ActionIcon aria-label={`Next page of ${label}`} disabled={page >= pages - 1} onClick={() => onPage(page + 1)}>
        <IconChevronRight size={15} />
      </ActionIcon>
    </div>
  );
}

function Reverse({ id, reverse, readOnly }: LinksTabProps & { reverse: ReverseKey }) {
  const { object, column, relation, isSingle } = reverse;
  const holder = useRecordShape(object);
  // A new record refers to this one, so this person must be allowed to set its reference column.
  const refers = useRecordShape(object, { isNew: true }).data?.columns.some(({ name }) => name === column) === true;
  const reads = useCan(object, "read");
  const creates = useCan(object, "create");
  const pending = usePendingDeletes(object);
  const [page, setPage] = useState(0);
  const [isCreating, setCreating] = useState(false);
  const columns = holder.data?.columns;
  const query = useQuery({
    queryKey: ["data", object, "reverse", column, id, page],
    queryFn: ({ signal }) =>
      ok(
        api.GET("/api/v1/data/{object}", {
          params: { path: { object }, query: { [`${column}[eq]`]: id, select: selectOf(object, columns ?? []), page: page + 1, pageSize: PAGE } },
          signal,
        }),
      ),
    enabled: reads && columns !== undefined,
    placeholderData: keepPreviousData,
  });
  const cache = useQueryClient();
  const label = holder.data?.label ?? object;
  const total = Number(query.data?.pagination.totalCount ?? 0);
  const records = query.data?.data.filter((record) => !pending.has(String(record.id))) ?? [];
  const mayCreate = !readOnly && creates && refers && (!isSingle || (query.isSuccess && total === 0));
  return (
    <section className={classes.section} aria-label={`${object} by ${relation}`}>
      <div className={classes.sectionHead}>
        <h2 className={classes.sectionTitle} dir="auto">
          {label}
        </h2>
        {query.data !== undefined && <span className={classes.sectionCount}>{total.toLocaleString("en")}</span>}
        <span className={classes.sectionNote}>
          by <code className="mono">{relation}</code>
        </span>
        {mayCreate && (
          <Button variant="default" size="compact-xs" leftSection={<IconPlus size={13} />} onClick={() => setCreating(true)}>
            Create {label}
          </Button>
        )}
      </div>
      {!reads && <p className={classes.sectionNote}><Ticked text={`You need \`read\` on \`${object}\` to see these records. Somebody who may update roles can give it to you.`} /></p>}
      {reads && query.isPending && <SkeletonLines lines={3} />}
      {query.isError && <ErrorNotice error={query.error} title={`The records of ${object} could not be loaded`} onRetry={() => void query.refetch()} />}
      {records.length > 0 && (
        <ul className={classes.list}>
          {records.map((record) => (
            <Item key={String(record.id)} object={object} related={relatedOf(object, record, columns)} />
          ))}
        </ul>
      )}
      {query.isSuccess && records.length === 0 && <p className={classes.sectionNote}>No {label} refers to this record.</p>}
      <Pager page={page} pages={Number(query.data?.pagination.totalPages ?? 1)} onPage={setPage} label={label} />
      {isCreating && (
        <Suspense fallback={null}>
          <NewRecordDialog
            object={object}
            initial={{ [column]: id }}
            onClose={() => setCreating(false)}
            onCreated={() => {
              setCreating(false);
              void cache.invalidateQueries({ queryKey: ["data", object] });
            }}
          />
        </Suspense>
      )}
    </section>
  );
}

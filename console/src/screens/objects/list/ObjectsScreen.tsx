import { Button } from "@mantine/core";
import { IconChevronDown, IconPlus, IconTemplate } from "@tabler/icons-react";
import { useQueries, useQuery } from "@tanstack/react-query";
import { Link, linkOptions, useNavigate, useSearch } from "@tanstack/react-router";
import { Suspense, lazy, useMemo, useRef } from "react";
import { type KnownObject, useObjects } from "../../../api/objects";
import { schemaQuery } from "../../../api/schema-live";
import { useCan } from "../../../api/session";
import { Actor } from "../../../components/Actor";
import { CopyAs, asCurl } from "../../../components/CopyAs";
import { type Column, DataTable, type DataTableHandle } from "../../../components/DataTable";
import { EmptyState } from "../../../components/EmptyState";
import { ErrorState } from "../../../components/ErrorState";
import { Menu } from "../../../components/floating";
import { Page } from "../../../components/Page";
import { Find } from "../../../components/Find";
import { SkeletonRows } from "../../../components/Skeleton";
import { StatusBadge } from "../../../components/StatusBadge";
import { Time } from "../../../components/Time";
import { useHotkeys } from "../../../components/useHotkeys";
import { lastChanges, recentHistoryQuery } from "../model/history";
import { recordCountQuery, useRecordCount } from "../../../api/counts";
import type { Migration, Relationship } from "../../../api/types";
import { quantity } from "../../../api/numbers";
import { useEditedObjects } from "../model/store";
import { TEMPLATES } from "../templates/templates";
import { ObjectInspector } from "./ObjectInspector";
import classes from "../object/Objects.module.css";

const Diagram = lazy(() => import("../diagram/Diagram"));

interface Row {
  object: KnownObject;
  relations: number;
  last: Migration | undefined;
  isEdited: boolean;
}

/** All objects, as a list or as a diagram of their relations. */
export function ObjectsScreen() {
  const { view = "list", q = "", open, sort = "name" } = useSearch({ from: "/objects" });
  const navigate = useNavigate({ from: "/objects" });
  const objects = useObjects();
  const readsSchema = useCan("objects", "read");
  const canCreate = useCan("objects", "create");
  const schema = useQuery({ ...schemaQuery, enabled: readsSchema });
  const relations = readsSchema ? schema.data?.relationships : undefined;
  const history = useQuery({ ...recentHistoryQuery, enabled: readsSchema });
  const edited = useEditedObjects();
  const table = useRef<DataTableHandle>(null);
  const search = useRef<HTMLInputElement>(null);
  const last = useMemo(() => (history.data === undefined ? undefined : lastChanges(history.data)), [history.data]);
  const rows = useMemo<Row[] | undefined>(
    () => objects.data?.map((object) => ({ object, relations: relationsOf(relations ?? [], object.name), last: last?.get(object.name), isEdited: edited.has(object.name) })),
    [objects.data, relations, last, edited],
  );
  const matching = useMemo(() => {
    const wanted = q.trim().toLowerCase();
    if (rows === undefined || wanted === "") return rows;
    return rows.filter(({ object: { name, label, description, fields } }) => [name, label, description, ...(fields?.map((field) => field.name) ?? [])].some((text) => text?.toLowerCase().includes(wanted)));
  }, [rows, q]);
  const descending = sort.startsWith("-");
  const by = descending ? sort.slice(1) : sort;
  // Only sorting by counts needs the counts of all rows. Otherwise each row loads its own.
  const counts = useQueries({ queries: by === "records" ? (matching ?? []).map(({ object }) => recordCountQuery(object.name)) : [] });
  const counted = by === "records" ? counts.map(({ data }) => data ?? -1) : undefined;
  const countKey = counted?.join();
  const sorted = useMemo(() => {
    if (matching === undefined) return undefined;
    const records = countKey === undefined ? [] : countKey.split(",").map(Number);
    const order = matching.map((row, index) => ({ row, records: records[index] ?? -1 }));
    const compare: Record<string, (one: (typeof order)[number], other: (typeof order)[number]) => number> = {
      name: (one, other) => one.row.object.name.localeCompare(other.row.object.name, "en"),
      records: (one, other) => one.records - other.records,
      fields: (one, other) => (one.row.object.fields?.length ?? 0) - (other.row.object.fields?.length ?? 0),
      relations: (one, other) => one.row.relations - other.row.relations,
      changed: (one, other) => (one.row.last?.version ?? 0) - (other.row.last?.version ?? 0),
    };
    const how = compare[by] ?? compare.name!;
    order.sort((one, other) => (descending ? -how(one, other) : how(one, other)));
    return order.map(({ row }) => row);
  }, [matching, by, descending, countKey]);
  useHotkeys({ "/": () => search.current?.focus(), n: canCreate ? () => void navigate({ to: "/objects/new", search: {} }) : undefined });

  const select = (name: string | undefined) => void navigate({ search: ({ open: _, ...rest }) => (name === undefined ? rest : { ...rest, open: name }), replace: open !== undefined });
  const tabs = (["list", "diagram"] as const).map((each) => ({ label: each === "list" ? "List" : "Diagram", link: linkOptions({ to: "/objects", search: { ...(each === "list" ? {} : { view: each }), ...(q === "" ? {} : { q }) } }), active: view === each }));
  const actions = (
    <>
      <CopyAs request={{ method: "GET", path: readsSchema ? "/api/v1/schema" : "/api/v1/data" }} />
      {canCreate && <CreateMenu />}
    </>
  );
  const isEmpty = rows?.length === 0;
  const place = sorted?.findIndex(({ object }) => object.name === open) ?? -1;
  const opened = view === "list" && place !== -1 ? sorted![place] : undefined;
  const beside = (offset: number) => {
    const next = sorted?.[place + offset];
    return next === undefined ? undefined : () => select(next.object.name);
  };

  return (
    <Page
      title="Objects"
      aside={rows === undefined ? undefined : rows.length.toLocaleString("en")}
      tabs={readsSchema && !isEmpty ? tabs : undefined!}
      actions={actions}
      {...(isEmpty || view === "diagram"
        ? {}
        : {
            toolbar: <Find ref={search} className={classes.search} label="Find an object or a field" value={q} onFind={(text) => void navigate({ search: (before) => ({ ...before, q: text }), replace: true })} />,
          })}
      inspector={
        opened && (
          <ObjectInspector
            key={opened.object.name}
            object={opened.object}
            relations={relations ?? []}
            onClose={() => {
              select(undefined);
              table.current?.focus();
            }}
            onNext={beside(1)}
            onPrevious={beside(-1)}
          />
        )
      }
    >
      {readsSchema && schema.data === undefined && schema.error !== null ? (
        <ErrorState error={schema.error} title="The objects could not be loaded" onRetry={objects.refetch} />
      ) : sorted === undefined || (readsSchema && schema.data === undefined) ? (
        objects.error !== null && objects.error !== undefined ? (
          <ErrorState error={objects.error} title="The objects could not be loaded" onRetry={objects.refetch} />
        ) : (
          <SkeletonRows columns={5} />
        )
      ) : isEmpty ? (
        <NoObjects canCreate={canCreate} />
      ) : view === "diagram" && readsSchema && schema.data !== undefined ? (
        <Suspense fallback={<SkeletonRows />}>
          <Diagram schema={schema.data} />
        </Suspense>
      ) : sorted.length === 0 ? (
        <EmptyState title="No object matches" action={<Button variant="default" onClick={() => void navigate({ search: {} })}>Show all objects</Button>}>
          Names, labels, descriptions and the names of fields are searched.
        </EmptyState>
      ) : (
        <DataTable
          label="Objects"
          columns={readsSchema ? COLUMNS : COLUMNS.slice(0, 2)}
          rows={sorted}
          rowId={({ object }) => object.name}
          sort={{ id: by, descending }}
          onSort={(next) =>
            void navigate({ search: ({ sort: _, ...rest }) => (next === undefined || (next.id === "name" && !next.descending) ? rest : { ...rest, sort: `${next.descending ? "-" : ""}${next.id}` }), replace: true })
          }
          openId={opened?.object.name}
          onOpen={({ object }) => (open === object.name ? void navigate({ to: "/objects/$object", params: { object: object.name }, search: {} }) : select(object.name))}
          narrowColumns={["name", "records"]}
          handle={table}
        />
      )}
    </Page>
  );
}

const COLUMNS: Column<Row>[] = [
  {
    id: "name",
    header: "Object",
    width: 280,
    sortable: true,
    cell: ({ object: { name, label }, isEdited }) => (
      <span className={classes.name}>
        <code>{name}</code>
        {label !== undefined && label !== name && (
          <span className="dim" dir="auto">
            {label}
          </span>
        )}
        {isEdited && (
          <StatusBadge tone="wait" plain>
            pending changes
          </StatusBadge>
        )}
      </span>
    ),
  },
  { id: "records", header: "Records", width: 120, numeric: true, sortable: true, cell: ({ object }) => <RecordCount object={object.name} /> },
  { id: "fields", header: "Fields", width: 90, numeric: true, sortable: true, cell: ({ object }) => <span className="nums">{object.fields?.length}</span> },
  { id: "relations", header: "Relations", width: 100, numeric: true, sortable: true, cell: ({ relations }) => <span className="nums">{relations}</span> },
  { id: "changed", header: "Changed", width: 130, sortable: true, cell: ({ last }) => (last === undefined ? <span className="dim">–</span> : <Time at={last.appliedAt} />) },
  { id: "by", header: "By", width: 150, cell: ({ last }) => (last === undefined ? <span className="dim">–</span> : <Actor id={last.appliedBy} />) },
  { id: "description", header: "Description", width: 300, cell: ({ object }) => <span className="dim" dir="auto" title={object.description}>{object.description}</span> },
];

export function RecordCount({ object }: { object: string }) {
  const records = useRecordCount(object);
  if (records === undefined) return <span className="dim">…</span>;
  if (records === null)
    return (
      <span className="dim" title="You may not read its records.">
        –
      </span>
    );
  return <span className="nums">{records.toLocaleString("en")}</span>;
}

function relationsOf(relations: Relationship[], object: string): number {
  return relations.filter(({ source, target }) => source === object || target === object).length;
}

function CreateMenu() {
  return (
    <Button.Group>
      <Button renderRoot={(props) => <Link to="/objects/new" {...props} />} leftSection={<IconPlus size={14} />}>
        Create object
      </Button>
      <Menu>
        <Menu.Target>
          <Button px={6} aria-label="Create from a template">
            <IconChevronDown size={14} />
          </Button>
        </Menu.Target>
        <Menu.Dropdown>
          <Menu.Label>From a template</Menu.Label>
          {TEMPLATES.map(({ id, label, objects }) => (
            <Menu.Item key={id} renderRoot={(props) => <Link to="/objects/new" search={{ template: id }} {...props} />} leftSection={<IconTemplate size={14} />}>
              {label} <span className="dim">{quantity(objects.length, "object")}</span>
            </Menu.Item>
          ))}
        </Menu.Dropdown>
      </Menu>
    </Button.Group>
  );
}

function NoObjects({ canCreate }: { canCreate: boolean }) {
  if (!canCreate)
    return (
      <EmptyState title="No objects">
        There is no object that you may read. Somebody with the permission to create objects can make one, and somebody who may update roles can let you read it.
      </EmptyState>
    );
  return (
    <EmptyState
      title="No objects yet"
      docs="POST /api/v1/objects"
      action={
        <Button renderRoot={(props) => <Link to="/objects/new" {...props} />} leftSection={<IconPlus size={14} />}>
          Create object
        </Button>
      }
      curl={asCurl({ method: "POST", path: "/api/v1/objects", body: { name: "task", fields: [{ name: "title", type: "text", required: true }, { name: "done", type: "boolean", default: false }] } })}
    >
      An object is a kind of record, such as a task or a customer. It has a REST, GraphQL and MCP API as soon as it is there. Start from scratch, or from a template.
    </EmptyState>
  );
}

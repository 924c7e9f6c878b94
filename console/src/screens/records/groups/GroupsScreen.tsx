/** The grouped view of an object: its choices, a chart of each function, and the table beside them. */
import { Button } from "@mantine/core";
import { IconRefresh } from "@tabler/icons-react";
import { useNavigate, useSearch } from "@tanstack/react-router";
import { useCallback, useMemo, useRef, useState } from "react";
import { isApiError } from "../../../api/errors";
import type { JsonValue } from "../../../api/json";
import { quantity } from "../../../api/numbers";
import type { GroupRow } from "../../../api/record-paths";
import { useCanRecords } from "../../../api/session";
import { CopyAs } from "../../../components/CopyAs";
import { EmptyState } from "../../../components/EmptyState";
import { ErrorNotice, ErrorState } from "../../../components/ErrorState";
import { Page } from "../../../components/Page";
import { SkeletonRows } from "../../../components/Skeleton";
import { told } from "../../../components/toast";
import { useHotkeys } from "../../../components/useHotkeys";
import { EmptyRecords } from "../EmptyRecords";
import { Footer } from "../Footer";
import type { RecordsTableProps } from "../RecordsTable";
import { MissingView, Toolbar } from "../Toolbar";
import { copiesOfGroups } from "../copies";
import { ONLY_FOR_LIST, isOnlyForList } from "../list-query";
import { useTitles } from "../useTitles";
import type { Grouping } from "../views/grouping";
import { GroupBar } from "./GroupBar";
import { GroupCharts } from "./GroupCharts";
import { GroupsTable } from "./GroupsTable";
import { chartKind, knowsGaps, layOut } from "./chart";
import { rowsWithReferences, shownWords, valueLabel } from "./labels";
import { narrowed } from "./narrow";
import { GROUPS_MAX, type GroupField, fieldOf, functionOf, groupParameters, havingOf, needsZone, placeOf, sortOf } from "./request";
import { useGroups } from "./useGroups";
import { useZone } from "./zone";
import records from "../Records.module.css";
import classes from "./Groups.module.css";

const NONE: GroupRow[] = [];

export function GroupsScreen({ shape, shapeOfOther, tableShapeOf, views: { saved, keep }, current, grouping }: RecordsTableProps & { grouping: Grouping }) {
  const object = shape.name;
  const { page = 1 } = useSearch({ from: "/data/$object" });
  const navigate = useNavigate({ from: "/data/$object" });
  const mayCreate = useCanRecords(object, "create");
  const { view, missing, change } = current;
  const zone = useZone(shape);
  const hasGroups = !isOnlyForList(view, shape);
  const { data: read, error, isPlaceholderData, refetch } = useGroups({ object, shape, view, grouping, page, zone });
  // The groups of the filter before may still be there.
  const data = hasGroups ? read : undefined;

  // Until the new groups are there, the screen shows those of the grouping before.
  const shown = data?.grouping ?? grouping;
  const rows = data?.answer.data ?? NONE;
  const total = data?.answer.pagination.totalCount ?? null;
  const shownZone = data === undefined ? zone : data.zone;
  const fields = useMemo(() => shown.by.map((text) => fieldOf(text, shape, shownZone)), [shown, shape, shownZone]);
  const functions = useMemo(() => shown.functions.map((text) => functionOf(text, shape)), [shown, shape]);
  // The request does not name the kind of chart, so its answer stays the same.
  const kind = chartKind({ ...shown, chart: grouping.chart }, fields[0]);

  // The groups and the conditions can name related records. A reference has no period, so it has the same name in a condition on groups.
  const titleColumns = useMemo(() => shape.columns.filter(({ relation }) => relation !== undefined), [shape]);
  const titleRows = useMemo(() => rowsWithReferences(rows, [...view.conditions, ...grouping.having]), [rows, view.conditions, grouping.having]);
  const titleOf = useTitles(titleColumns, titleRows, shapeOfOther);
  const labelOf = useCallback((field: GroupField, value: JsonValue | undefined) => valueLabel(value, field, titleOf), [titleOf]);
  const isAll = data !== undefined && data.page === 1 && total === rows.length;
  const layout = useMemo(() => layOut({ rows, fields, functions, kind, knowsGaps: knowsGaps(shown, isAll), labelOf }), [rows, fields, functions, kind, shown, isAll, labelOf]);

  const toPage = (to: number) => void navigate({ search: (now) => ({ ...now, page: to === 1 ? undefined : to }), replace: true, resetScroll: false });
  const setGrouping = (groups: Grouping) => change({ groups });
  const pick = ({ group }: GroupRow) => {
    const filter = narrowed(fields, group, rows, view, shape, tableShapeOf);
    if (filter === undefined) return told("No filter finds exactly the records of this group.");
    change({ ...filter, groups: null }, { isStep: true });
  };

  const place = isApiError(error) ? placeOf(error, grouping, view, shape) : undefined;
  const refused = place === undefined || error === null ? undefined : { place, message: error.message };
  const isFiltered = view.search !== "" || view.conditions.length > 0 || view.where !== "";
  const [adding, setAdding] = useState<{ column?: string } | null>(null);
  const searchField = useRef<HTMLInputElement>(null);
  useHotkeys({
    "/": () => searchField.current?.focus(),
    f: () => setAdding({}),
    n: mayCreate ? () => void navigate({ to: "/data/$object/new", params: { object }, search: {} }) : undefined,
  });

  const parameters = groupParameters(grouping, view, shape, zone);
  const copies = copiesOfGroups(
    shape,
    tableShapeOf,
    view,
    { functions: grouping.functions, by: grouping.by, having: havingOf(grouping, shape), zone: needsZone(grouping, shape) ? zone : undefined, sort: sortOf(grouping, shape), parameters },
    page,
    GROUPS_MAX,
  );
  const words = shownWords(data?.page ?? page, GROUPS_MAX, rows.length, total);

  const content = () => {
    if (!hasGroups)
      return (
        <EmptyState title="Groups cannot have this filter" action={<Button onClick={() => change({ groups: null }, { isStep: true })}>Show the records</Button>}>
          {ONLY_FOR_LIST}
        </EmptyState>
      );
    if (data === undefined) {
      if (refused !== undefined) return <p className={classes.refused}>The server refuses this grouping. The marked choice says why.</p>;
      if (error !== null) return <ErrorState error={error} title="The groups could not be loaded" onRetry={() => void refetch()} />;
      return <SkeletonRows rows={12} columns={3} />;
    }
    if (rows.length === 0 && total === 0) {
      if (shown.having.length === 0) return <EmptyRecords shape={shape} isFiltered={isFiltered} mayCreate={mayCreate} onClear={() => change({ search: "", conditions: [], where: "" })} />;
      return (
        <EmptyState title="No group matches" action={<Button onClick={() => setGrouping({ ...grouping, having: [] })}>Clear the conditions on groups</Button>}>
          Take away a condition on the groups or on the records.
        </EmptyState>
      );
    }
    // The address can name a page after the last one.
    if (rows.length === 0)
      return (
        <EmptyState title="This page has no groups" action={<Button onClick={() => toPage(1)}>Show the first page</Button>}>
          There are fewer groups than before.
        </EmptyState>
      );
    const visible = { first: (page - 1) * GROUPS_MAX, last: Math.min(page * GROUPS_MAX, total ?? 0) - 1 };
    return (
      <>
        <div className={classes.panes} data-stale={isPlaceholderData || undefined} aria-busy={isPlaceholderData}>
          <GroupCharts layout={layout} kind={kind} fields={fields} functions={functions} onPick={pick} />
          <div className={classes.side}>
            <p className={classes.hint}>
              {words !== "" && <strong data-shown>{words}. </strong>}
              Open a group to see its records.
            </p>
            <div className={classes.table}>
              <GroupsTable key={data.page} shape={shape} grouping={shown} fields={fields} functions={functions} rows={rows} labelOf={labelOf} onSort={(sort) => setGrouping({ ...grouping, sort })} onPick={pick} />
            </div>
          </div>
        </div>
        {total !== null && total > GROUPS_MAX && <Footer visible={visible} visibleNow={() => visible} count={total} total={total} size={GROUPS_MAX} page={page} onPage={toPage} />}
      </>
    );
  };

  return (
    <Page
      title={shape.label}
      aside={total === null ? undefined : quantity(total, "group")}
      actions={
        <>
          <span className={records.wideOnly}>
            {hasGroups && <CopyAs {...copies} />}
          </span>
          <Button variant="default" px={8} aria-label="Read again" data-tip="Read again" disabled={!hasGroups} onClick={() => void refetch()}>
            <IconRefresh size={15} aria-hidden="true" />
          </Button>
        </>
      }
      toolbar={<Toolbar shape={shape} tableShapeOf={tableShapeOf} saved={saved} onKeep={keep} current={current} searchField={searchField} adding={adding} onAdding={setAdding} titleOf={titleOf} />}
    >
      <div className={classes.groups}>
        <MissingView name={missing} />
        {hasGroups && <GroupBar shape={shape} view={view} grouping={grouping} zone={zone} kind={chartKind(grouping, fieldOf(grouping.by[0]!, shape))} onChange={setGrouping} titleOf={titleOf} refused={refused} />}
        {data !== undefined && error !== null && (
          <div className={records.notice}>
            <ErrorNotice error={error} title="The groups could not be read again" onRetry={() => void refetch()} />
          </div>
        )}
        {content()}
      </div>
    </Page>
  );
}

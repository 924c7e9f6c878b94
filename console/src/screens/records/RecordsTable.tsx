/** The table of one object. It combines the view, the rows, their changes, and the parts of the screen. */
import { Button } from "@mantine/core";
import { IconArrowUp, IconDots, IconPlus, IconRefresh } from "@tabler/icons-react";
import { Link, useNavigate, useRouter, useSearch } from "@tanstack/react-router";
import { Suspense, lazy, useCallback, useEffect, useMemo, useRef, useState } from "react";
import type { RecordShape as KnownShape } from "../../api/record-shape";
import type { JsonValue } from "../../api/json";
import { NUMBER, quantity } from "../../api/numbers";
import { useLiveState } from "../../api/live";
import { useCanRecords } from "../../api/session";
import { USERS } from "../../api/users-object";
import { CopyAs } from "../../components/CopyAs";
import { ErrorNotice, ErrorState } from "../../components/ErrorState";
import { Page } from "../../components/Page";
import { Menu, loadFloating } from "../../components/floating";
import { later } from "../../components/later";
import { failed, told } from "../../components/toast";
import { useHotkeys } from "../../components/useHotkeys";
import { Footer } from "./Footer";
import { PointMenu } from "./PointMenu";
import { MissingView, Toolbar } from "./Toolbar";
import { TransferMenu } from "./transfer";
import { type Remember, useSelection } from "./bulk/useSelection";
import { copyCells, pasteCells } from "./clipboard";
import { type RecordColumn, type RecordShape, hiddenAtFirst, lackingColumns } from "./columns";
import { copiesOf } from "./copies";
import type { After } from "./editors/CellEditor";
import type { DraftValue } from "../record/draft";
import { type CellAt, type CellRange, Grid, type GridHandle } from "./grid/Grid";
import type { GridLayout } from "./grid/geometry";
import { useEdits } from "./useEdits";
import { useLiveRows } from "./useLiveRows";
import { useRows } from "./useRows";
import { usePendingDeletes } from "../../api/pending-deletes";
import type { RecordRow } from "../../api/record-paths";
import { GONE_SOON } from "./bulk/useSelection";
import { type ShapeOf, filterOf, partsOf, testOf } from "./filters/tree";
import { useTitles } from "./useTitles";
import { NOT_SENT, isNewestFirst, listParameters, queryText } from "./list-query";
import { pageShown } from "./page-shown";
import { ColumnsPanel } from "./views/ColumnsPanel";
import { SortPanel } from "./views/SortPanel";
import type { CurrentView } from "./views/useCurrentView";
import type { useViews } from "./views/useViews";
import classes from "./Records.module.css";

const CellConflict = later(() => import("./CellConflict").then((loaded) => loaded.CellConflict));
const CellMenuItems = later(() => import("./MenuItems").then((loaded) => loaded.CellMenuItems));
const ColumnMenuItems = later(() => import("./MenuItems").then((loaded) => loaded.ColumnMenuItems));
const EmptyRecords = later(() => import("./EmptyRecords").then((loaded) => loaded.EmptyRecords));
const SelectionBar = later(() => import("./bulk/SelectionBar").then((loaded) => loaded.SelectionBar));
const CellEditor = later(() => import("./editors/CellEditor").then((loaded) => loaded.CellEditor));
const RecordPanel = lazy(async () => ({ default: (await import("../record/RecordPanel")).RecordPanel }));

/** A person whose pointer or focus is in the table may edit a cell, open a menu or select rows next, so these parts are loaded in advance. */
function loadParts() {
  const parts = [CellEditor, CellMenuItems, ColumnMenuItems, SelectionBar];
  void Promise.all([loadFloating(), ...parts.map((part) => part.preload())]).catch(() => {});
}

const PAGE_MS = 300;
const VISIBLE_MS = 120;
const PLACEHOLDERS = 20;
/** The rows from the page in the address on, until they are loaded. They are more than any screen shows, so that the grid can scroll to them. */
const PLACEHOLDERS_OF_PAGE = 200;

interface Editing extends CellAt {
  record: RecordRow;
  draft?: DraftValue;
  problem?: string;
}

export interface RecordsTableProps {
  shape: RecordShape;
  shapeOfOther: (object: string) => KnownShape | undefined;
  tableShapeOf: ShapeOf;
  views: ReturnType<typeof useViews>;
  current: CurrentView;
}

export function RecordsTable({ shape, shapeOfOther, tableShapeOf, views: { saved, keep }, current }: RecordsTableProps) {
  const object = shape.name;
  const search = useSearch({ from: "/data/$object" });
  const navigate = useNavigate({ from: "/data/$object" });
  const router = useRouter();
  const mayCreate = useCanRecords(object, "create");
  const mayUpdate = useCanRecords(object, "update");
  const mayDelete = useCanRecords(object, "delete");
  const isLive = useLiveState() === "live";

  // ---- the view

  const { view, base, missing, change } = current;
  const grid = useRef<GridHandle>(null);
  const setLayout = useCallback(
    (layout: GridLayout) => {
      const { columns: _columns, ...look } = layout;
      if (base === null && search.columns === undefined) keep({ ...saved, plain: { ...saved.plain, layout } });
      else {
        // Changed columns become part of a saved view when the person saves it. Widths and pinned columns are saved at once.
        if (base !== null) keep({ ...saved, views: saved.views.map((each) => (each === base ? { ...base, layout: { ...look, ...(base.layout.columns === undefined ? {} : { columns: base.layout.columns }) } } : each)) });
        else keep({ ...saved, plain: { ...saved.plain, layout: { ...saved.plain.layout, ...look } } });
        void navigate({ search: (now) => ({ ...now, columns: layout.columns?.join(",") === base?.layout.columns?.join(",") ? undefined : layout.columns?.join(",") }), replace: true });
      }
    },
    [base, search.columns, keep, saved, navigate],
  );

  // ---- the rows

  const startPage = (search.page ?? 1) - 1;
  const startRow = startPage * view.size;
  const rows = useRows({ object, shape, view, size: view.size, startPage, isLive });
  const [editing, setEditing] = useState<Editing | null>(null);
  const isEditing = editing !== null;
  const live = useLiveRows({
    object,
    shape,
    view,
    rows,
    mayMove: useCallback(() => grid.current?.isAtTop() === true && !isEditing, [isEditing]),
  });
  // Records that are deleted in the panel are gray here until they are gone or the person undoes the deletion.
  const leaving = usePendingDeletes(object);
  const marks = useMemo(
    () => (leaving.size === 0 ? live.marks : new Map([...live.marks, ...[...leaving].map((id) => [id, { ...live.marks.get(id), gone: GONE_SOON }] as const)])),
    [live.marks, leaving],
  );
  // Until the grid says what is visible, it is the page in the address. Otherwise the address would go back to the first page.
  const [visible, setVisible] = useState({ first: startRow, last: startRow });
  const latestVisible = useRef(visible);
  const visibleTimer = useRef<ReturnType<typeof setTimeout>>(undefined);
  const { show, rowAt } = rows;
  const onVisible = useCallback(
    (first: number, last: number) => {
      show(first, last);
      // The grid renders each frame by itself. The parts around it follow a little later.
      latestVisible.current = { first, last };
      visibleTimer.current ??= setTimeout(() => {
        visibleTimer.current = undefined;
        const at = latestVisible.current;
        setVisible((now) => (now.first === at.first && now.last === at.last ? now : at));
      }, VISIBLE_MS);
    },
    [show],
  );
  useEffect(
    () => () => {
      clearTimeout(visibleTimer.current);
      visibleTimer.current = undefined;
    },
    [],
  );
  const identity = `${queryText(listParameters(view, shape))}\u0000${view.size}`;
  const page = pageShown(visible, view.size, rows.count);
  const isPageShown = (search.page ?? 1) === page;
  useEffect(() => {
    if (isPageShown) return;
    const { pathname } = router.latestLocation;
    const timer = setTimeout(() => {
      // The person may already be on the way to another page, and this call would bring them back.
      if (router.latestLocation.pathname !== pathname) return;
      void navigate({ search: (now) => ({ ...now, page: page === 1 ? undefined : page }), replace: true, resetScroll: false });
    }, PAGE_MS);
    return () => clearTimeout(timer);
    // Another view begins at its first page. The page of the view before it must not come into its address.
  }, [page, isPageShown, identity, navigate, router]);
  const before = useRef(identity);
  useEffect(() => {
    if (before.current === identity) return;
    before.current = identity;
    grid.current?.scrollToRow(0);
  }, [identity]);
  const firstPage = Math.floor(visible.first / view.size);
  const lastPage = Math.floor(visible.last / view.size);
  const titleRows = useMemo(
    () => Array.from({ length: (lastPage - firstPage + 1) * view.size }, (_, index) => rowAt(firstPage * view.size + index)).filter((row) => row !== undefined),
    [firstPage, lastPage, view.size, rowAt],
  );
  // The server leaves out of every record the columns that this person may not read. Without rows, the last known list stays.
  const [lacking, setLacking] = useState("");
  const lackingNow = titleRows.length === 0 ? lacking : lackingColumns(shape.columns, titleRows).join();
  if (lackingNow !== lacking) setLacking(lackingNow);
  const columns = useMemo(() => {
    const names = new Set(lacking.split(","));
    return shape.columns.filter(({ id }) => !names.has(id));
  }, [shape.columns, lacking]);
  const shown = useMemo(() => shownColumns(columns, view.layout), [columns, view.layout]);
  const titleOf = useTitles(shown, titleRows, shapeOfOther);
  const gridTitleOf = useCallback(({ column }: { column: RecordColumn }, id: string) => titleOf(column, id), [titleOf]);
  const refresh = useCallback(() => {
    live.clear();
    rows.refetch();
  }, [live, rows]);

  // ---- selection, changes, undo

  // The keys for undo also revert changes of several records.
  const remember = useRef<Remember>(() => {});
  const selection = useSelection({ shape, view, rows, live, remember });
  const edits = useEdits(shape, rows, live, selection.applyMany);
  useEffect(() => {
    remember.current = edits.remember;
  });

  const edit = (at: CellAt, record: RecordRow) => {
    const column = shape.byId.get(at.column);
    if (column === undefined) return;
    if (!mayUpdate || column.isReadOnly || live.marks.get(record.id)?.gone !== undefined) return openRow(record);
    setEditing({ ...at, record });
  };
  const leave = (from: Editing, after: After) => {
    setEditing(null);
    if (after === "away") return;
    const index = shown.findIndex(({ id }) => id === from.column);
    const next = after === "stay" ? from.column : shown[index + (after === "right" ? 1 : -1)]?.id;
    grid.current?.goTo(from.row, next ?? from.column);
  };
  const save = async (from: Editing, value: JsonValue, after: After) => {
    leave(from, after);
    const record = rowAt(from.row)?.id === from.record.id ? from.record : (rows.loaded().find(({ id }) => id === from.record.id) ?? from.record);
    const saved = await edits.save(record, { [from.column]: value });
    if (saved.ok || !("message" in saved)) return;
    // The editor opens again with the typed text, unless the person already edits another cell.
    setEditing((now) => {
      if (now !== null) {
        failed(`${shape.byId.get(from.column)?.label ?? from.column} was not saved`, new Error(saved.message));
        return now;
      }
      return { ...from, record, draft: value, problem: saved.message };
    });
  };
  const clearCells = (range: CellRange) => {
    if (!mayUpdate) return;
    const editable = range.columns.filter(({ isReadOnly }) => !isReadOnly);
    if (editable.length === 0) return told("You may not change these cells.");
    const columns = editable.filter(({ required }) => !required);
    if (columns.length === 0) return told("These cells need a value, so they cannot be null.");
    const changes = [];
    for (let index = range.rowFrom; index <= range.rowTo; index++) {
      const row = rowAt(index);
      const values = row === undefined ? {} : Object.fromEntries(columns.filter(({ id }) => row[id] !== null).map(({ id }) => [id, null]));
      if (row !== undefined && Object.keys(values).length > 0) changes.push({ row, values });
    }
    void changeSeveral(changes, "Cleared");
  };
  const changeSeveral = async (changes: { row: RecordRow; values: Record<string, JsonValue> }[], verb: string) => {
    if (changes.length === 0) return;
    if (changes.length === 1) {
      const saved = await edits.save(changes[0]!.row, changes[0]!.values);
      if (!saved.ok && "message" in saved) failed("The record was not changed", new Error(saved.message));
      return;
    }
    await selection.change(changes, verb);
  };
  const copy = (range: CellRange, event: ClipboardEvent) => {
    if (String(window.getSelection() ?? "") !== "") return;
    const { text, rows: count } = copyCells(range, rowAt);
    event.clipboardData?.setData("text/plain", text);
    event.preventDefault();
    if (count > 1 || range.columns.length > 1) told(`${NUMBER.format(count * range.columns.length)} cells copied.`);
  };
  const paste = (at: CellAt, range: CellRange, text: string) => {
    if (!mayUpdate) return told("You may not change these records.");
    const { changes, problem } = pasteCells(text, at, range, shown, rowAt);
    if (problem !== undefined) failed("Nothing was pasted", new Error(problem));
    else void changeSeveral(changes, "Pasted");
  };

  // ---- the inspector

  const openId = search.open;
  const [openIndex, setOpenIndex] = useState<number | null>(null);
  const openRow = useCallback(
    (row: RecordRow, index?: number) => {
      setOpenIndex(index ?? null);
      void navigate({ search: (now) => ({ ...now, open: row.id }), replace: openId !== undefined, resetScroll: false });
    },
    [navigate, openId],
  );
  const openBy = (by: number) => {
    const index = openIndex ?? indexOf(rowAt, openId, visible);
    const row = index === null ? undefined : rowAt(index + by);
    if (index === null || row === undefined) return undefined;
    return () => {
      openRow(row, index + by);
      grid.current?.goTo(index + by);
    };
  };
  const closeInspector = () => {
    void navigate({ search: (now) => ({ ...now, open: undefined }), replace: true, resetScroll: false });
    requestAnimationFrame(() => grid.current?.focus());
  };

  // ---- keys and menus

  const [adding, setAdding] = useState<{ column?: string } | null>(null);
  const [cellMenu, setCellMenu] = useState<{ at: CellAt; row: RecordRow; point: { x: number; y: number } } | null>(null);
  const [columnMenu, setColumnMenu] = useState<{ column: RecordColumn; point: { x: number; y: number } } | null>(null);
  const searchField = useRef<HTMLInputElement>(null);
  useHotkeys({
    "/": () => searchField.current?.focus(),
    f: () => setAdding({}),
    n: mayCreate ? () => void navigate({ to: "/data/$object/new", params: { object }, search: {} }) : undefined,
  });
  const { undo, redo } = edits;
  useEffect(() => {
    const pressed = (event: KeyboardEvent) => {
      if (!(event.ctrlKey || event.metaKey) || event.altKey || event.defaultPrevented) return;
      const key = event.key.toLowerCase();
      if (key !== "z" && key !== "y") return;
      const target = event.target instanceof HTMLElement ? event.target : null;
      // Text fields have their own undo.
      if (target !== null && (target.isContentEditable || /^(INPUT|TEXTAREA|SELECT)$/.test(target.tagName)) && !(target instanceof HTMLInputElement && target.type === "checkbox")) return;
      event.preventDefault();
      if (key === "y" || event.shiftKey) redo();
      else undo();
    };
    document.addEventListener("keydown", pressed);
    return () => document.removeEventListener("keydown", pressed);
  }, [undo, redo]);

  const filterBy = (column: RecordColumn, value: JsonValue | undefined, negated: boolean) => {
    const condition =
      value === null || value === undefined
        ? { field: column.id, operator: negated ? ("is_not_null" as const) : ("is_null" as const), value: null }
        : { field: column.id, operator: negated ? ("neq" as const) : ("eq" as const), value: Array.isArray(value) ? String(value[0] ?? "") : String(value) };
    const parts = partsOf(view, shape, tableShapeOf);
    change(parts === undefined ? { conditions: [...view.conditions, condition] } : filterOf([...parts, testOf(condition)], shape, tableShapeOf));
  };

  const isFiltered = view.search !== "" || view.conditions.length > 0 || view.where !== "";
  // The server may have refused the filter, so nothing is offered for the records that match it.
  const isFailed = rows.error !== null && rows.count === 0;
  const isEmpty = !rows.isLoading && !rows.isStale && rows.error === null && rows.count === 0;
  // The grid cannot scroll to the page in the address unless the rows in front of that page are there too.
  const waiting = !rows.isLoading ? rows.count : startRow === 0 ? PLACEHOLDERS : startRow + PLACEHOLDERS_OF_PAGE;
  const visibleMissing = rows.isLoading || Array.from({ length: Math.min(visible.last, waiting - 1) - visible.first + 1 }, (_, index) => rowAt(visible.first + index)).some((row) => row === undefined);

  return (
    <Page
      title={shape.label}
      aside={<TotalCount total={rows.total} error={rows.totalError} onCount={rows.recount} />}
      actions={
        <>
          <span className={classes.wideOnly}>
            <CopyAs {...copiesOf(shape, tableShapeOf, view, shown, page, view.size)} />
          </span>
          <span className={classes.wideOnly}>
            <TransferMenu
              object={object}
              view={[...listParameters(view, shape), ["select", shown.map(({ id }) => id).join()]]}
              withheld={isFailed ? "The records could not be loaded." : selection.withheld}
              isImporting={search.import === true}
              onImporting={(isImporting) => void navigate({ search: (now) => ({ ...now, import: isImporting ? true : undefined }), replace: true, resetScroll: false })}
            />
          </span>
          <Menu>
            <Menu.Target>
              <Button variant="default" px={8} aria-label="More actions">
                <IconDots size={15} aria-hidden="true" />
              </Button>
            </Menu.Target>
            <Menu.Dropdown>
              <Menu.Item leftSection={<IconRefresh size={14} />} onClick={refresh}>
                Read again
              </Menu.Item>
              {object !== USERS && (
                <Menu.Item component={Link} to="/objects/$object" params={{ object } as never} search={{} as never}>
                  Fields and rules
                </Menu.Item>
              )}
              <Menu.Divider />
              <Menu.Label>Density</Menu.Label>
              {(["comfortable", "compact"] as const).map((density) => (
                <Menu.Item key={density} onClick={() => (base === null ? keep({ ...saved, plain: { ...saved.plain, density } }) : change({ density }))} disabled={view.density === density}>
                  {density === "compact" ? "Compact rows" : "Comfortable rows"}
                </Menu.Item>
              ))}
            </Menu.Dropdown>
          </Menu>
          {mayCreate && (
            <Button component={Link} to="/data/$object/new" params={{ object } as never} search={{} as never} leftSection={<IconPlus size={14} />}>
              New record
            </Button>
          )}
        </>
      }
      toolbar={
        <Toolbar shape={shape} tableShapeOf={tableShapeOf} saved={saved} onKeep={keep} current={current} searchField={searchField} adding={adding} onAdding={setAdding} titleOf={titleOf}>
          {live.fresh > 0 && (
            <Button
              className={classes.fresh}
              variant="light"
              leftSection={<IconArrowUp size={14} />}
              onClick={() => {
                refresh();
                if (isNewestFirst(view.sort, shape)) grid.current?.scrollToRow(0);
                grid.current?.focus();
              }}
            >
              {live.fresh > 999 ? "999+" : live.fresh} new
            </Button>
          )}
          <SortPanel columns={columns} sort={view.sort} onSort={(sort) => change({ sort })} />
          <ColumnsPanel all={columns} shown={shown} layout={view.layout} onLayout={setLayout} />
        </Toolbar>
      }
      inspector={
        openId === undefined ? undefined : (
          <Suspense fallback={null}>
            <RecordPanel object={object} id={openId} onClose={closeInspector} onNext={openBy(1)} onPrevious={openBy(-1)} onOpen={(id) => void navigate({ search: (now) => ({ ...now, open: id }), replace: true, resetScroll: false })} />
          </Suspense>
        )
      }
    >
      <div className={classes.content} onFocusCapture={loadParts} onPointerDownCapture={loadParts}>
        <MissingView name={missing} />
        {selection.withheld === NOT_SENT && <div className={classes.notice}>{NOT_SENT}</div>}
        {selection.selected.size > 0 && !isFailed && (
          <SelectionBar selection={selection} shape={shape} total={rows.total} mayUpdate={mayUpdate} mayDelete={mayDelete} onDone={() => grid.current?.focus()} />
        )}
        {isFailed ? (
          <ErrorState error={rows.error} title="The records could not be loaded" onRetry={rows.refetch} />
        ) : (
          <>
            {rows.error !== null && (
              <div className={classes.notice}>
                <ErrorNotice error={rows.error} title="These rows could not be loaded" onRetry={rows.refetch} />
              </div>
            )}
            {isEmpty ? (
              <EmptyRecords shape={shape} isFiltered={isFiltered} mayCreate={mayCreate} onClear={() => change({ search: "", conditions: [], where: "" })} />
            ) : (
              <Grid
                label={shape.label}
                columns={shown}
                count={waiting}
                total={rows.total ?? undefined}
                rowAt={rowAt}
                marks={marks}
                titleOf={gridTitleOf}
                sort={view.sort}
                onSort={(sort) => change({ sort })}
                layout={view.layout}
                onLayout={setLayout}
                selected={selection.selected}
                onSelect={selection.select}
                openId={openId}
                onOpen={openRow}
                onEdit={edit}
                onClear={clearCells}
                onCopy={copy}
                onPaste={paste}
                onColumnMenu={(column, anchor) => {
                  const box = anchor.getBoundingClientRect();
                  setColumnMenu({ column, point: { x: box.left, y: box.bottom } });
                }}
                onCellMenu={(at, row, point) => setCellMenu({ at, row, point })}
                onVisible={onVisible}
                editing={
                  editing === null
                    ? null
                    : {
                        row: editing.row,
                        column: editing.column,
                        element: (
                          <CellEditor
                            key={`${editing.record.id}-${editing.column}-${editing.problem ?? ""}`}
                            object={object}
                            column={shape.byId.get(editing.column)!}
                            value={editing.record[editing.column]}
                            draft={editing.draft}
                            problem={editing.problem}
                            onSave={(value, after) => void save(editing, value, after)}
                            onCancel={(after) => leave(editing, after)}
                          />
                        ),
                      }
                }
                isBusy={visibleMissing && rows.error === null}
                isStale={rows.isStale}
                compact={view.density === "compact"}
                initialRow={startRow}
                handle={grid}
              />
            )}
          </>
        )}
        {!isEmpty && <Footer visible={visible} visibleNow={() => grid.current?.visible() ?? visible} count={rows.count} total={rows.total} size={view.size} page={page} onPage={(to) => grid.current?.scrollToRow((to - 1) * view.size)} onSize={(size) => (base === null ? keep({ ...saved, plain: { ...saved.plain, size } }) : change({ size }))} />}
      </div>
      <PointMenu at={cellMenu?.point ?? null} label="Cell" onClose={() => setCellMenu(null)}>
        {cellMenu !== null && (
          <CellMenuItems
            column={shape.byId.get(cellMenu.at.column)!}
            row={cellMenu.row}
            object={object}
            mayUpdate={mayUpdate}
            mayDelete={mayDelete}
            onEdit={() => setTimeout(() => edit(cellMenu.at, cellMenu.row))}
            onOpen={() => openRow(cellMenu.row, cellMenu.at.row)}
            onFilter={(negated) => filterBy(shape.byId.get(cellMenu.at.column)!, cellMenu.row[cellMenu.at.column], negated)}
            onNull={() => void changeSeveral([{ row: cellMenu.row, values: { [cellMenu.at.column]: null } }], "Cleared")}
            onDelete={() => selection.remove([cellMenu.row.id])}
          />
        )}
      </PointMenu>
      <PointMenu at={columnMenu?.point ?? null} label="Column" onClose={() => setColumnMenu(null)}>
        {columnMenu !== null && (
          <ColumnMenuItems
            column={columnMenu.column}
            sort={view.sort}
            onSort={(sort) => change({ sort })}
            isPinned={(view.layout.pinned ?? shown.slice(0, 1).map(({ id }) => id)).includes(columnMenu.column.id)}
            onPin={() => {
              const ids = shown.map(({ id }) => id);
              const pinned = new Set(view.layout.pinned ?? ids.slice(0, 1));
              if (!pinned.delete(columnMenu.column.id)) pinned.add(columnMenu.column.id);
              setLayout({ ...view.layout, columns: ids, pinned: ids.filter((id) => pinned.has(id)) });
            }}
            onHide={shown.length === 1 ? undefined : () => setLayout({ ...view.layout, columns: shown.map(({ id }) => id).filter((id) => id !== columnMenu.column.id) })}
            onFilter={() => setTimeout(() => setAdding({ column: columnMenu.column.id }))}
          />
        )}
      </PointMenu>
      {edits.conflict !== null && <CellConflict conflict={edits.conflict} shape={shape} />}
      {selection.dialogs}
    </Page>
  );
}

function TotalCount({ total, error, onCount }: { total: number | null | undefined; error: unknown; onCount: () => void }) {
  if (total === undefined) return <span>counting</span>;
  if (total === null)
    return (
      <Button variant="subtle" color="gray" size="compact-xs" onClick={onCount} title={error instanceof Error ? error.message : undefined}>
        Not counted. Count again
      </Button>
    );
  return <span>{quantity(total, "record")}</span>;
}

/**
 * The columns of a view in their order. Columns that no longer exist are left out, so the view still works after a change of the object.
 */
function shownColumns(columns: RecordColumn[], layout: GridLayout): RecordColumn[] {
  const chosen = layout.columns?.flatMap((name) => columns.find(({ id }) => id === name) ?? []) ?? [];
  return chosen.length > 0 ? chosen : columns.filter((column) => !hiddenAtFirst(column));
}

function indexOf(rowAt: (index: number) => RecordRow | undefined, id: string | undefined, { first, last }: { first: number; last: number }): number | null {
  for (let index = first; index <= last; index++) if (rowAt(index)?.id === id) return index;
  return null;
}

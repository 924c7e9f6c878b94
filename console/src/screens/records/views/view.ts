/** A saved view: the part of an object that a person wants to see. It is stored on the server with the person's preferences. */
import { type JsonObject, type JsonValue, isJsonObject, printJson } from "../../../api/json";
import { given, oneOf } from "../../../api/search";
import { type Condition, areConditions, compactConditions, conditionsOf, isReadable, printConditions, readConditions } from "../filters/conditions";
import { type FilterTexts, bytesOf, fitsTexts } from "../filters/tree";
import type { GridLayout } from "../grid/geometry";
import { type SortKey, printSort, readSort } from "../list-query";
import { CHARTS, type RecordsSearch } from "../search";
import { type Grouping, type GroupingSearch, NO_GROUPING, printGrouping, readGrouping } from "./grouping";

export type Density = "compact" | "comfortable";

export interface SavedView {
  name: string;
  conditions: Condition[];
  /** The JSON text of a condition that plain conditions cannot express. Otherwise empty. */
  where: string;
  search: string;
  sort: SortKey[];
  /** How the records are grouped. Null for the records themselves. */
  groups: Grouping | null;
  size: number;
  density: Density;
  layout: GridLayout;
  /**
   * The conditions of a stored view that this console cannot read, with their names in the preferences and as they are stored. The view lacks
   * them. They are stored again with the view, so that it never becomes one that shows all records.
   */
  unread?: JsonObject;
}

/** The saved views of one object. */
export interface SavedViews {
  views: SavedView[];
  /** The name of the view that opens by default. */
  preset: string | null;
  /** The table without a view. Only its appearance is stored. */
  plain: { layout: GridLayout; size: number; density: Density };
}

/** The name in the address for the table without a view. */
export const PLAIN = "-";
export const SIZES = [25, 50, 100];
const SIZE = 50;

const strings = (raw: JsonValue | undefined): string[] | undefined => (Array.isArray(raw) ? raw.filter((each): each is string => typeof each === "string") : undefined);
const string = (raw: JsonValue | undefined): string => (typeof raw === "string" ? raw : "");
const size = (raw: JsonValue | undefined): number => (typeof raw === "number" && raw >= 1 && raw <= 100 ? raw : SIZE);
const density = (raw: JsonValue | undefined): Density => (raw === "compact" ? "compact" : "comfortable");

function layoutOf(raw: JsonValue | undefined): GridLayout {
  if (!isJsonObject(raw)) return {};
  const widths = isJsonObject(raw.widths) ? Object.fromEntries(Object.entries(raw.widths).filter((entry): entry is [string, number] => typeof entry[1] === "number")) : undefined;
  const columns = strings(raw.columns);
  const pinned = strings(raw.pinned);
  return { ...(columns === undefined ? {} : { columns }), ...(widths === undefined ? {} : { widths }), ...(pinned === undefined ? {} : { pinned }) };
}

/** The grouping in the preferences has the names of the address. */
function groupsOf(raw: JsonValue | undefined): Grouping | null {
  if (!isJsonObject(raw)) return null;
  const { group, fn, groupSort, having, chart } = raw;
  return readGrouping({ group: string(group), fn: string(fn), groupSort: string(groupSort), having: string(having), chart: oneOf(chart, CHARTS) });
}

const isNone = (raw: JsonValue | undefined): raw is undefined | null => raw === undefined || raw === null;
/** A search that is not a text is searched for as its JSON, so that it is not left out. */
const searchText = (raw: JsonValue | undefined): string => (isNone(raw) ? "" : typeof raw === "string" ? raw : printJson(raw));

/** The conditions of a stored view, with those that cannot be read apart. `filter` and `where` together are one filter. */
function filterPart({ filter, where, groups }: JsonObject): Pick<SavedView, "conditions" | "where" | "unread"> {
  const isFilterRead = (isNone(filter) || areConditions(filter)) && (isNone(where) || typeof where === "string");
  const having = isJsonObject(groups) && groupsOf(groups) !== null ? groups.having : undefined;
  const areGroupsRead = isNone(having) || having === "" || (typeof having === "string" && isReadable(having));
  const unread: JsonObject = {
    ...(isFilterRead ? {} : { ...(isNone(filter) ? {} : { filter }), ...(isNone(where) ? {} : { where }) }),
    ...(areGroupsRead || groups === undefined ? {} : { groups }),
  };
  return { ...(isFilterRead ? { conditions: conditionsOf(filter), where: string(where) } : { conditions: [], where: "" }), ...(Object.keys(unread).length === 0 ? {} : { unread }) };
}

/** Reads the views from the preferences, which any program may have written. */
export function readViews(raw: JsonValue): SavedViews {
  const stored: JsonObject = isJsonObject(raw) ? raw : {};
  const views = (Array.isArray(stored.views) ? stored.views : []).filter(isJsonObject).flatMap((each): SavedView[] => {
    const name = string(each.name);
    if (name === "" || name === PLAIN) return [];
    return [{ name, ...filterPart(each), search: searchText(each.q), sort: readSort(string(each.sort)), groups: groupsOf(each.groups), size: size(each.size), density: density(each.density), layout: layoutOf(each.layout) }];
  });
  const plain = isJsonObject(stored.plain) ? stored.plain : {};
  return { views, preset: typeof stored.preset === "string" ? stored.preset : null, plain: { layout: layoutOf(plain.layout), size: size(plain.size), density: density(plain.density) } };
}

/** The views in the form of the preferences. It is short, because all of a person's views share 64 KiB. */
export function printViews({ views, preset, plain }: SavedViews): JsonObject {
  const look = (each: { layout: GridLayout; size: number; density: Density }): JsonObject => ({
    ...(Object.keys(each.layout).length === 0 ? {} : { layout: { ...each.layout } as JsonObject }),
    ...(each.size === SIZE ? {} : { size: each.size }),
    ...(each.density === "comfortable" ? {} : { density: each.density }),
  });
  return {
    views: views.map((view) => ({
      name: view.name,
      ...(view.conditions.length === 0 ? {} : { filter: compactConditions(view.conditions) }),
      ...(view.where === "" ? {} : { where: view.where }),
      ...(view.search === "" ? {} : { q: view.search }),
      ...(view.sort.length === 0 ? {} : { sort: printSort(view.sort)! }),
      ...(view.groups === null ? {} : { groups: given(printGrouping(view.groups)) as JsonObject }),
      ...look(view),
      ...view.unread,
    })),
    ...(preset === null ? {} : { preset }),
    plain: look(plain),
  };
}

/** Why a filter cannot be read: that of the address is too long or damaged, or that of the saved view is damaged. */
export type Unread = "long" | "damaged" | "saved";

/** The texts that decide which records and groups the address shows. Without fields to group by, the address has no grouping. */
const textsOf = ({ filter, where, group = PLAIN, having, q }: RecordsSearch): FilterTexts => ({ filter, where, having: group === PLAIN ? undefined : having, q });

/** The size of the conditions of a view, in bytes. */
const bytesOfView = ({ conditions, where, groups }: SavedView): number => bytesOf({ filter: printConditions(conditions), where, having: groups === null ? undefined : printConditions(groups.having) });

/**
 * Whether an address has room for the texts. A saved view may have more conditions than an address has room for. There is room for fewer of
 * them, so that a person can take away one after the other.
 */
const isRoomFor = (texts: FilterTexts, base: SavedView | null): boolean => fitsTexts(texts) || (base !== null && fitsTexts({ q: texts.q }) && bytesOf({ ...texts, q: undefined }) <= bytesOfView(base));

/**
 * Why the filter in the address, its conditions on groups, or its search cannot be read. Undefined if they can be read. The server says what
 * is wrong with a condition in `where`.
 */
function unreadOf(search: RecordsSearch, base: SavedView | null): Unread | undefined {
  const texts = textsOf(search);
  if (!isRoomFor(texts, base)) return "long";
  return [texts.filter, texts.having].every((text = "") => text === "" || isReadable(text)) ? undefined : "damaged";
}

/** The conditions of the saved view that cannot be read, without those that the address replaces. */
function unreadPart({ unread }: SavedView, search: RecordsSearch): Pick<SavedView, "unread"> {
  if (unread === undefined) return {};
  const { groups, ...filter } = unread;
  const left: JsonObject = {
    ...(search.filter === undefined && search.where === undefined ? filter : {}),
    ...(search.group === undefined && groups !== undefined ? { groups } : {}),
  };
  return Object.keys(left).length === 0 ? {} : { unread: left };
}

/**
 * The view in the address: the saved view that it names, with the changes in the other parameters. If `unread` is given, the view lacks
 * conditions, and no screen must show, change or export its records.
 */
export function viewOf(search: RecordsSearch, saved: SavedViews): { view: SavedView; base: SavedView | null; isMissing: boolean; unread: Unread | undefined } {
  const name = search.view ?? saved.preset ?? PLAIN;
  const base = saved.views.find((each) => each.name === name) ?? null;
  const from: SavedView = base ?? { name: PLAIN, conditions: [], where: "", search: "", sort: [], groups: null, ...saved.plain };
  const columns = search.columns?.split(",");
  const { unread: _unread, ...read } = from;
  const left = unreadPart(from, search);
  return {
    base,
    isMissing: base === null && search.view !== undefined && search.view !== PLAIN,
    unread: unreadOf(search, base) ?? (left.unread === undefined ? undefined : "saved"),
    view: {
      ...read,
      ...left,
      // `filter` and `where` together are one filter. If the address has one of them, it replaces both.
      ...(search.filter === undefined && search.where === undefined ? {} : { conditions: readConditions(search.filter), where: search.where ?? "" }),
      search: search.q === undefined ? from.search : search.q === PLAIN && from.search !== "" ? "" : search.q,
      sort: search.sort === undefined ? from.sort : readSort(search.sort),
      groups: search.group === undefined ? from.groups : search.group === PLAIN ? null : readGrouping(search),
      size: search.size ?? from.size,
      density: search.density ?? from.density,
      layout: columns === undefined ? from.layout : { ...from.layout, columns },
    },
  };
}

/** The search parameters that turn `base` into `view`. Values that are the same as in `base` are left out. */
export function searchOf(view: SavedView, base: SavedView | null, plain: SavedViews["plain"]): Pick<RecordsSearch, "filter" | "where" | "q" | "sort" | "size" | "columns" | "density"> & GroupingSearch {
  const from: SavedView = base ?? { name: PLAIN, conditions: [], where: "", search: "", sort: [], groups: null, ...plain };
  const differs = <Value>(one: Value, other: Value, given: string | undefined, none: string) => (JSON.stringify(one) === JSON.stringify(other) ? undefined : (given ?? none));
  const columns = view.layout.columns?.join(",");
  // A view without the damaged conditions of the saved view differs from it, also if it has no conditions.
  const damaged = ({ unread }: SavedView) => ({ filter: unread?.filter !== undefined || unread?.where !== undefined, groups: unread?.groups !== undefined });
  return {
    ...(JSON.stringify([view.conditions, view.where, damaged(view).filter]) === JSON.stringify([from.conditions, from.where, damaged(from).filter])
      ? { filter: undefined, where: undefined }
      : { filter: printConditions(view.conditions) ?? (view.where === "" ? "[]" : undefined), where: view.where === "" ? undefined : view.where }),
    q: differs(view.search, from.search, view.search === "" ? undefined : view.search, PLAIN),
    sort: differs(view.sort, from.sort, printSort(view.sort), PLAIN),
    ...(sameGrouping(view.groups, from.groups) && damaged(view).groups === damaged(from).groups ? NO_GROUPING : view.groups === null ? { ...NO_GROUPING, group: PLAIN } : printGrouping(view.groups)),
    size: view.size === from.size ? undefined : view.size,
    density: view.density === from.density ? undefined : view.density,
    columns: columns === from.layout.columns?.join(",") ? undefined : columns,
  };
}

/**
 * The search parameters after a change of the view. The change begins with the view that the address has now: the page may not have
 * rendered the change before it yet.
 */
export function changedSearch(now: RecordsSearch, part: Partial<SavedView>, saved: SavedViews): RecordsSearch {
  const { view, base } = viewOf(now, saved);
  return { ...now, ...searchOf({ ...view, ...part }, base, saved.plain), page: undefined };
}

/** Whether the address has room for these parameters. */
export const hasRoom = (search: RecordsSearch, saved: SavedViews): boolean => isRoomFor(textsOf(search), viewOf(search, saved).base);

/**
 * The search parameters without the filter and the conditions on groups that cannot be read. The filter of the saved view applies then, unless
 * it cannot be read either. A search that alone is too long goes too.
 */
export function withoutFilter(now: RecordsSearch, saved: SavedViews): RecordsSearch {
  const { base } = viewOf(now, saved);
  const unread: JsonObject = base?.unread ?? {};
  const { groups, ...filter } = unread;
  return {
    ...now,
    filter: Object.keys(filter).length === 0 ? undefined : "[]",
    where: undefined,
    having: undefined,
    group: groups !== undefined && now.group === undefined ? PLAIN : now.group,
    q: fitsTexts({ q: now.q }) ? now.q : undefined,
    page: undefined,
  };
}

const sameGrouping = (one: Grouping | null, other: Grouping | null) => JSON.stringify(one && printGrouping(one)) === JSON.stringify(other && printGrouping(other));

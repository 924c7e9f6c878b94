/** Computes the positions of objects in the diagram. Related objects are in layers, those without relations in rows below. */
import { Graph, layout } from "@dagrejs/dagre";
import type { DataObject, Relationship, Schema } from "../../../api/types";

export const NODE_WIDTH = 220;
export const HEAD_HEIGHT = 34;
export const ROW_HEIGHT = 20;
/** The maximum number of fields in a node. The node shows the number of the others. */
export const FIELDS_SHOWN_MAX = 9;
const PADDING = 8;
const GAP = 48;

export type Positions = Record<string, [x: number, y: number]>;

export function nodeHeight(object: DataObject): number {
  const shown = Math.min(object.fields.length, FIELDS_SHOWN_MAX) + (object.fields.length > FIELDS_SHOWN_MAX ? 1 : 0);
  return HEAD_HEIGHT + (shown === 0 ? 0 : shown * ROW_HEIGHT + PADDING);
}

/** Groups objects that are connected by relations, directly or through other objects. */
function components(objects: DataObject[], relations: Relationship[]): DataObject[][] {
  const root = new Map(objects.map(({ name }) => [name, name]));
  const find = (name: string): string => {
    let at = name;
    while (root.get(at) !== at) at = root.get(at) ?? at;
    root.set(name, at);
    return at;
  };
  for (const { source, target } of relations) if (root.has(source) && root.has(target)) root.set(find(source), find(target));
  const groups = new Map<string, DataObject[]>();
  for (const object of objects) {
    const group = groups.get(find(object.name));
    if (group === undefined) groups.set(find(object.name), [object]);
    else group.push(object);
  }
  return [...groups.values()].sort((one, other) => other.length - one.length);
}

interface Box {
  width: number;
  height: number;
  places: Positions;
}

function layered(objects: DataObject[], relations: Relationship[]): Box {
  const graph = new Graph({ multigraph: true });
  graph.setGraph({ rankdir: "LR", nodesep: 32, ranksep: 96, ranker: objects.length > 120 ? "longest-path" : "tight-tree" });
  graph.setDefaultEdgeLabel(() => ({}));
  const names = new Set(objects.map(({ name }) => name));
  for (const object of objects) graph.setNode(object.name, { width: NODE_WIDTH, height: nodeHeight(object) });
  for (const { id, source, target } of relations) if (source !== target && names.has(source) && names.has(target)) graph.setEdge(source, target, {}, String(id));
  layout(graph);
  const places: Positions = {};
  let [width, height] = [0, 0];
  for (const object of objects) {
    const { x, y } = graph.node(object.name) as { x: number; y: number };
    places[object.name] = [x - NODE_WIDTH / 2, y - nodeHeight(object) / 2];
    width = Math.max(width, x + NODE_WIDTH / 2);
    height = Math.max(height, y + nodeHeight(object) / 2);
  }
  return { width, height, places };
}

/** Places boxes in rows, so that all of them together have about the shape of a screen. */
function packed(boxes: Box[]): Positions {
  const area = boxes.reduce((sum, { width, height }) => sum + (width + GAP) * (height + GAP), 0);
  const widthMax = Math.max(Math.sqrt(area * 1.8), ...boxes.map(({ width }) => width));
  const places: Positions = {};
  let [left, top, rowHeight] = [0, 0, 0];
  for (const { width, height, places: inner } of boxes) {
    if (left > 0 && left + width > widthMax) {
      left = 0;
      top += rowHeight + GAP;
      rowHeight = 0;
    }
    for (const [name, [x, y]] of Object.entries(inner)) places[name] = [Math.round(left + x), Math.round(top + y)];
    left += width + GAP;
    rowHeight = Math.max(rowHeight, height);
  }
  return places;
}

export function autoLayout({ objects, relationships }: Schema): Positions {
  const groups = components(objects, relationships);
  const boxes = groups.map((group): Box => (group.length === 1 ? { width: NODE_WIDTH, height: nodeHeight(group[0]!), places: { [group[0]!.name]: [0, 0] } } : layered(group, relationships)));
  return packed(boxes);
}

/** The stored positions. Objects that were added later are placed below them. */
export function positionsFor(schema: Schema, kept: Positions): Positions {
  const missing = schema.objects.filter(({ name }) => kept[name] === undefined);
  if (missing.length === 0) return kept;
  if (missing.length === schema.objects.length) return autoLayout(schema);
  const names = new Set(missing.map(({ name }) => name));
  const fresh = autoLayout({ ...schema, objects: missing, relationships: schema.relationships.filter(({ source, target }) => names.has(source) && names.has(target)) });
  const bottom = Math.max(...schema.objects.filter(({ name }) => kept[name] !== undefined).map((object) => kept[object.name]![1] + nodeHeight(object)));
  return { ...kept, ...Object.fromEntries(Object.entries(fresh).map(([name, [x, y]]) => [name, [x, y + bottom + GAP] as [number, number]])) };
}

export interface Line {
  id: string;
  relation: Relationship;
  sourceSide: "left" | "right";
  targetSide: "left" | "right";
  from: [x: number, y: number];
  to: [x: number, y: number];
}

/** A line starts at the side of the box that faces the other object. */
export function lineOf(relation: Relationship, positions: Positions, objects: Map<string, DataObject>): Line | null {
  const [source, target] = [objects.get(relation.source), objects.get(relation.target)];
  const [at, to] = [positions[relation.source], positions[relation.target]];
  if (source === undefined || target === undefined || at === undefined || to === undefined) return null;
  const isSelf = source === target;
  const leftToRight = at[0] + NODE_WIDTH / 2 <= to[0] + NODE_WIDTH / 2;
  const overlap = Math.abs(at[0] - to[0]) < NODE_WIDTH;
  const sourceSide = isSelf || overlap || leftToRight ? "right" : "left";
  const targetSide = isSelf ? "right" : overlap ? "right" : leftToRight ? "left" : "right";
  const point = ([x, y]: [number, number], side: "left" | "right", offset: number): [number, number] => [side === "left" ? x : x + NODE_WIDTH, y + HEAD_HEIGHT / 2 + offset];
  return { id: String(relation.id), relation, sourceSide, targetSide, from: point(at, sourceSide, 0), to: point(to, targetSide, isSelf ? 14 : 0) };
}

/** The labels at the ends of a line: `1` or `n`. */
export function endMarks(kind: Relationship["kind"]): [source: string, target: string] {
  return { many_to_one: ["n", "1"], one_to_one: ["1", "1"], one_to_many: ["1", "n"], many_to_many: ["n", "n"] }[kind] as [string, string];
}

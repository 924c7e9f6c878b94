/** Exports the diagram as an SVG file. Text stays text, so it is sharp at any size and can be searched. */
import { Position, getSmoothStepPath } from "@xyflow/react";
import { FIELDS_SHOWN_MAX, HEAD_HEIGHT, NODE_WIDTH, type Positions, ROW_HEIGHT, endMarks, lineOf, nodeHeight } from "./layout";
import type { Schema } from "../../../api/types";

const MARGIN = 32;
const SANS = "system-ui, -apple-system, 'Segoe UI', Roboto, sans-serif";
const MONO = "ui-monospace, Menlo, Consolas, 'DejaVu Sans Mono', monospace";

/** Escapes text for XML, and replaces characters that XML does not allow. */
export function xml(text: string): string {
  // eslint-disable-next-line no-control-regex
  return text.replaceAll(/[\u0000-\u0008\u000B\u000C\u000E-\u001F\uFFFE\uFFFF]/g, "\uFFFD").replaceAll("&", "&amp;").replaceAll("<", "&lt;").replaceAll(">", "&gt;").replaceAll('"', "&quot;");
}

export interface Colors {
  background: string;
  node: string;
  head: string;
  line: string;
  text: string;
  dim: string;
  relation: string;
}

export function diagramSvg({ objects, relationships }: Schema, positions: Positions, colors: Colors): string {
  const known = new Map(objects.map((object) => [object.name, object]));
  const shown = objects.filter(({ name }) => positions[name] !== undefined);
  const left = Math.min(...shown.map(({ name }) => positions[name]![0])) - MARGIN;
  const top = Math.min(...shown.map(({ name }) => positions[name]![1])) - MARGIN;
  const width = Math.max(...shown.map(({ name }) => positions[name]![0] + NODE_WIDTH)) - left + MARGIN + 40;
  const height = Math.max(...shown.map((object) => positions[object.name]![1] + nodeHeight(object))) - top + MARGIN;
  const parts = [
    `<svg xmlns="http://www.w3.org/2000/svg" viewBox="${left} ${top} ${width} ${height}" width="${width}" height="${height}" font-family="${xml(SANS)}" font-size="12">`,
    `<title>Objects and relations</title>`,
    `<rect x="${left}" y="${top}" width="${width}" height="${height}" fill="${colors.background}"/>`,
  ];
  for (const relation of relationships) {
    const line = lineOf(relation, positions, known);
    if (line === null) continue;
    const [path, x, y] = getSmoothStepPath({ sourceX: line.from[0], sourceY: line.from[1], targetX: line.to[0], targetY: line.to[1], sourcePosition: line.sourceSide as Position, targetPosition: line.targetSide as Position, borderRadius: 8 });
    const [one, other] = endMarks(relation.kind);
    const mark = ([markX, markY]: [number, number], side: string, text: string) => `<text x="${markX + (side === "left" ? -6 : 6)}" y="${markY - 5}" text-anchor="${side === "left" ? "end" : "start"}" fill="${colors.dim}" font-size="11">${text}</text>`;
    parts.push(
      `<path d="${path}" fill="none" stroke="${colors.relation}" stroke-width="1.25"/>`,
      mark(line.from, line.sourceSide, one),
      mark(line.to, line.targetSide, other),
      `<text x="${x}" y="${y - 4}" text-anchor="middle" fill="${colors.dim}" font-size="11" stroke="${colors.background}" stroke-width="3" paint-order="stroke">${xml(relation.name)}</text>`,
    );
  }
  for (const object of shown) {
    const [x, y] = positions[object.name]!;
    const tall = nodeHeight(object);
    parts.push(
      `<rect x="${x}" y="${y}" width="${NODE_WIDTH}" height="${tall}" rx="6" fill="${colors.node}" stroke="${colors.line}"/>`,
      `<text x="${x + 12}" y="${y + 22}" fill="${colors.text}" font-family="${xml(MONO)}" font-weight="600">${xml(cut(object.name, 26))}</text>`,
    );
    if (object.fields.length > 0) parts.push(`<line x1="${x}" x2="${x + NODE_WIDTH}" y1="${y + HEAD_HEIGHT}" y2="${y + HEAD_HEIGHT}" stroke="${colors.line}"/>`);
    object.fields.slice(0, FIELDS_SHOWN_MAX).forEach((field, index) => {
      const at = y + HEAD_HEIGHT + 4 + index * ROW_HEIGHT + 14;
      parts.push(
        `<text x="${x + 12}" y="${at}" fill="${colors.text}" font-family="${xml(MONO)}" font-size="11.5">${xml(cut(field.name, 18))}${field.required === true ? " *" : ""}</text>`,
        `<text x="${x + NODE_WIDTH - 12}" y="${at}" text-anchor="end" fill="${colors.dim}" font-size="11">${xml(field.type)}</text>`,
      );
    });
    if (object.fields.length > FIELDS_SHOWN_MAX) parts.push(`<text x="${x + 12}" y="${y + HEAD_HEIGHT + 4 + FIELDS_SHOWN_MAX * ROW_HEIGHT + 14}" fill="${colors.dim}" font-size="11">and ${object.fields.length - FIELDS_SHOWN_MAX} more</text>`);
  }
  parts.push("</svg>");
  return parts.join("\n");
}

function cut(text: string, lengthMax: number): string {
  return text.length > lengthMax ? `${text.slice(0, lengthMax - 1)}…` : text;
}

/** The names that grants in words need: the shapes of the objects, and the titles of records in conditions. */
import { useMemo } from "react";
import { isJsonObject } from "../../../api/json";
import { type RecordShapeOf, useShapes } from "../../../api/record-shape";
import type { RecordRow } from "../../../api/record-paths";
import type { Grant } from "../../../api/types";
import { type RecordColumn, type RecordShape, tableShape } from "../../records/columns";
import { type Part, type ShapeOf, columnOf, readWhere, shapeAt } from "../../records/filters/tree";
import type { TitleOf } from "../../records/filters/words";
import { useTitles } from "../../records/useTitles";

export interface Names {
  /** The shapes for tables, with all fields. Undefined until the schema is loaded. */
  of: ShapeOf | undefined;
  /** The same shapes in the form of the schema. */
  known: RecordShapeOf | undefined;
  titleOf: TitleOf;
}

/** The parts of a grant's condition, which AND joins. */
export const partsOfClause = (clause: Grant["where"], shape: RecordShape | undefined, of: ShapeOf): Part[] => (isJsonObject(clause) ? readWhere(clause, shape, of, { takesVariables: true }) : []);

export function useNames(grants: Grant[]): Names {
  const { of: readable, ofAll: known } = useShapes();
  const of = useMemo<ShapeOf | undefined>(() => {
    if (known === undefined) return undefined;
    const seen = new Map<string, RecordShape | undefined>();
    return (name) => {
      if (!seen.has(name)) {
        const shape = known(name);
        seen.set(name, shape === undefined ? undefined : tableShape(shape));
      }
      return seen.get(name);
    };
  }, [known]);
  const named = useMemo(() => {
    const found = of === undefined ? [] : grants.flatMap(({ resource, where, check }) => [where, check].flatMap((clause) => referencesIn(partsOfClause(clause, of(resource), of), of(resource), of)));
    return { columns: [...new Set(found.map(({ column }) => column))], rows: found.map(({ column, id }): RecordRow => ({ id, [column.id]: id })) };
  }, [grants, of]);
  const titleOf = useTitles(named.columns, named.rows, readable ?? nothing);
  return { of, known, titleOf };
}

const nothing = () => undefined;

/** The records whose ids a condition contains. */
function referencesIn(parts: Part[], shape: RecordShape | undefined, of: ShapeOf): { column: RecordColumn; id: string }[] {
  return parts.flatMap((part) => {
    if (part.kind === "group") return referencesIn(part.parts, shape, of);
    if (part.kind === "related") return referencesIn(part.inner.parts, shapeAt(part.path, shape, of), of);
    const column = part.kind === "test" ? columnOf(part, shape, of) : undefined;
    if (part.kind !== "test" || column?.relation === undefined) return [];
    return [part.value].flat().flatMap((id) => (id === null || id === "" ? [] : [{ column, id }]));
  });
}

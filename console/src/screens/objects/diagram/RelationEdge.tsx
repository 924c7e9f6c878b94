import { BaseEdge, type Edge, type EdgeProps, getSmoothStepPath } from "@xyflow/react";
import { memo } from "react";
import { endMarks } from "./layout";
import classes from "./Diagram.module.css";
import type { Relationship } from "../../../api/types";

export type RelationEdgeType = Edge<{ relation: Relationship; state: "plain" | "lit" | "dimmed" }, "relation">;

/** A line for a relation, with its name and the number of records on each side. */
export const RelationEdge = memo(function RelationEdge({ sourceX, sourceY, targetX, targetY, sourcePosition, targetPosition, data }: EdgeProps<RelationEdgeType>) {
  const { relation, state } = data!;
  const isSelf = relation.source === relation.target;
  const [path, labelX, labelY] = getSmoothStepPath({ sourceX, sourceY, targetX, targetY: isSelf ? targetY + 14 : targetY, sourcePosition, targetPosition, borderRadius: 8 });
  const [one, other] = endMarks(relation.kind);
  return (
    <g className={classes.edge} data-state={state}>
      <BaseEdge path={path} />
      <text x={sourceX + (sourcePosition === "left" ? -6 : 6)} y={sourceY - 5} textAnchor={sourcePosition === "left" ? "end" : "start"}>
        {one}
      </text>
      <text x={targetX + (targetPosition === "left" ? -6 : 6)} y={targetY + (isSelf ? 9 : -5)} textAnchor={targetPosition === "left" ? "end" : "start"}>
        {other}
      </text>
      <text x={labelX} y={labelY - 4} textAnchor="middle" className={classes.edgeName}>
        {relation.name}
      </text>
    </g>
  );
});

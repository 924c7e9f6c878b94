import { Handle, type Node, type NodeProps, Position, useStore } from "@xyflow/react";
import { Link } from "@tanstack/react-router";
import { memo } from "react";
import { FIELDS_SHOWN_MAX, HEAD_HEIGHT } from "./layout";
import classes from "./Diagram.module.css";
import type { DataObject } from "../../../api/types";
import { USERS } from "../../../api/users-object";

export type ObjectNodeType = Node<{ object: DataObject; dimmed: boolean }, "object">;

/** Below this zoom, nodes only show their name, in larger letters. */
const NAMES_ALONE_BELOW = 0.4;

/** A box for an object, with its name and first fields. */
export const ObjectNode = memo(function ObjectNode({ data: { object, dimmed }, selected }: NodeProps<ObjectNodeType>) {
  const isFar = useStore((state) => state.transform[2] < NAMES_ALONE_BELOW);
  const rest = object.fields.length - FIELDS_SHOWN_MAX;
  return (
    <div className={classes.node} data-selected={selected || undefined} data-dimmed={dimmed || undefined} data-far={isFar || undefined}>
      <div className={classes.nodeHead} style={{ height: HEAD_HEIGHT }}>
        {object.name === USERS ? (
          <Link to="/users" tabIndex={-1} draggable={false} title={object.description}>
            {object.name}
          </Link>
        ) : (
          <Link to="/objects/$object" params={{ object: object.name }} tabIndex={-1} draggable={false} title={object.label ?? object.name}>
            {object.name}
          </Link>
        )}
      </div>
      {!isFar && (
        <ul className={classes.nodeFields}>
          {object.fields.slice(0, FIELDS_SHOWN_MAX).map((field) => (
            <li key={field.name}>
              <span>
                {field.name}
                {field.required === true && <b title="required"> *</b>}
              </span>
              <small>{field.type}</small>
            </li>
          ))}
          {rest > 0 && <li className={classes.more}>and {rest} more</li>}
        </ul>
      )}
      {(["left", "right"] as const).map((side) => (
        <span key={side}>
          <Handle id={`s-${side}`} type="source" position={side === "left" ? Position.Left : Position.Right} className={classes.handle} isConnectable={false} style={{ top: HEAD_HEIGHT / 2 }} />
          <Handle id={`t-${side}`} type="target" position={side === "left" ? Position.Left : Position.Right} className={classes.handle} isConnectable={false} style={{ top: HEAD_HEIGHT / 2 }} />
        </span>
      ))}
    </div>
  );
});

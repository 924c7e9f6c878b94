import { ActionIcon, Button, TextInput } from "@mantine/core";
import { IconDownload, IconFocusCentered, IconLayoutGrid, IconZoomIn, IconZoomOut } from "@tabler/icons-react";
import { Link, useNavigate } from "@tanstack/react-router";
import { type NodeChange, Panel, Position, ReactFlow, ReactFlowProvider, applyNodeChanges, useReactFlow } from "@xyflow/react";
import "@xyflow/react/dist/base.css";
import { useCallback, useEffect, useId, useMemo, useRef, useState } from "react";
import { usePreference } from "../../../api/preferences";
import type { Schema } from "../../../api/types";
import { USERS, USERS_OBJECT, leadsToUsers } from "../../../api/users-object";
import { useHotkeys } from "../../../components/useHotkeys";
import { quantity } from "../../../api/numbers";
import { relationTitle } from "../model/relations";
import { HEAD_HEIGHT, NODE_WIDTH, type Positions, autoLayout, lineOf, nodeHeight, positionsFor } from "./layout";
import { ObjectNode, type ObjectNodeType } from "./ObjectNode";
import { RelationEdge, type RelationEdgeType } from "./RelationEdge";
import { diagramSvg } from "./svg";
import classes from "./Diagram.module.css";

const nodeTypes = { object: ObjectNode };
const edgeTypes = { relation: RelationEdge };
const SAVE_AFTER_MS = 600;
/** The handles are given before a node is rendered, so that lines to nodes outside of the visible part are correct. */
const HANDLES = (["source", "target"] as const).flatMap((type) =>
  (["left", "right"] as const).map((side) => ({ id: `${type[0]}-${side}`, type, position: side === "left" ? Position.Left : Position.Right, x: side === "left" ? 0 : NODE_WIDTH, y: HEAD_HEIGHT / 2, width: 1, height: 1 })),
);

/**
 * A diagram of the objects and their relations. The positions are stored for this person. The list shows the same facts to people who
 * cannot see the diagram.
 */
export default function Diagram({ schema }: { schema: Schema }) {
  // Users only have a box if a relation leads to them.
  const drawn = useMemo(() => (leadsToUsers(schema) ? { ...schema, objects: [...schema.objects, USERS_OBJECT] } : schema), [schema]);
  return (
    <ReactFlowProvider>
      <Drawn schema={drawn} />
    </ReactFlowProvider>
  );
}

function Drawn({ schema }: { schema: Schema }) {
  const [kept, keep, { isPending }] = usePreference<Positions>("objects.diagram", {});
  const navigate = useNavigate();
  const namesId = useId();
  const flow = useReactFlow();
  const frame = useRef<HTMLDivElement>(null);
  const [positions, setPositions] = useState<Positions | null>(null);
  const [lit, setLit] = useState<string | null>(null);
  const [selected, setSelected] = useState<string | null>(null);
  const saving = useRef<ReturnType<typeof setTimeout>>(undefined);
  useEffect(() => () => clearTimeout(saving.current), []);

  // The person's positions are kept. Objects that were added later are placed below them.
  useEffect(() => {
    if (isPending) return;
    setPositions((now) => positionsFor(schema, now ?? kept));
    // The stored positions are only read once. After that, the positions in this page are newer.
    // oxlint-disable-next-line react/exhaustive-deps
  }, [schema, isPending]);

  const save = useCallback(
    (next: Positions) => {
      clearTimeout(saving.current);
      const names = new Set(schema.objects.map(({ name }) => name));
      saving.current = setTimeout(() => keep(Object.fromEntries(Object.entries(next).filter(([name]) => names.has(name)).map(([name, [x, y]]) => [name, [Math.round(x), Math.round(y)]]))), SAVE_AFTER_MS);
    },
    [keep, schema.objects],
  );

  const known = useMemo(() => new Map(schema.objects.map((object) => [object.name, object])), [schema.objects]);
  const neighbors = useMemo(() => {
    if (lit === null) return null;
    const near = new Set([lit]);
    for (const { source, target } of schema.relationships) if (source === lit || target === lit) near.add(source).add(target);
    return near;
  }, [lit, schema.relationships]);
  const nodes = useMemo<ObjectNodeType[]>(
    () =>
      positions === null
        ? []
        : schema.objects
            .filter(({ name }) => positions[name] !== undefined)
            .map((object) => {
              const height = nodeHeight(object);
              const related = schema.relationships.filter(({ source, target }) => source === object.name || target === object.name);
              return {
                id: object.name,
                type: "object" as const,
                position: { x: positions[object.name]![0], y: positions[object.name]![1] },
                width: NODE_WIDTH,
                height,
                selected: selected === object.name,
                data: { object, dimmed: neighbors !== null && !neighbors.has(object.name) },
                ariaLabel: `Object ${object.name}, ${quantity(object.fields.length, "field")}${related.length === 0 ? "" : `, ${related.map(relationTitle).join(", ")}`}. Enter opens it; after Space, arrows move it.`,
                handles: HANDLES,
              };
            }),
    [schema, positions, neighbors, selected],
  );
  const edges = useMemo<RelationEdgeType[]>(
    () =>
      positions === null
        ? []
        : schema.relationships.flatMap((relation) => {
            const line = lineOf(relation, positions, known);
            if (line === null) return [];
            const isNear = lit === null ? null : relation.source === lit || relation.target === lit;
            return [
              {
                id: line.id,
                type: "relation" as const,
                source: relation.source,
                target: relation.target,
                sourceHandle: `s-${line.sourceSide}`,
                targetHandle: `t-${line.targetSide}`,
                data: { relation, state: isNear === null ? ("plain" as const) : isNear ? ("lit" as const) : ("dimmed" as const) },
              },
            ];
          }),
    [schema.relationships, positions, known, lit],
  );
  const changed = (changes: NodeChange<ObjectNodeType>[]) => {
    const picked = changes.filter((change) => change.type === "select");
    if (picked.length > 0) {
      const on = picked.find(({ selected: is }) => is);
      setSelected(on?.id ?? null);
      setLit(on?.id ?? null);
    }
    const moved = changes.filter((change) => change.type === "position");
    if (moved.length === 0 || positions === null) return;
    const next = { ...positions };
    for (const { id, position } of applyNodeChanges(moved, nodes)) next[id] = [position.x, position.y];
    setPositions(next);
    save(next);
  };
  const motion = matchMedia("(prefers-reduced-motion: reduce)").matches ? 0 : 140;
  const fit = () => void flow.fitView({ duration: motion, padding: 0.1, maxZoom: 1 });
  const arrange = () => {
    const next = autoLayout(schema);
    setPositions(next);
    keep(null);
    clearTimeout(saving.current);
    requestAnimationFrame(fit);
  };
  const find = (name: string) => {
    const at = positions?.[name];
    const object = known.get(name);
    if (at === undefined || object === undefined) return;
    setLit(name);
    setSelected(name);
    void flow.setCenter(at[0] + NODE_WIDTH / 2, at[1] + nodeHeight(object) / 2, { zoom: 1, duration: motion });
  };
  const openObject = (name: string) => void (name === USERS ? navigate({ to: "/users", search: {} }) : navigate({ to: "/objects/$object", params: { object: name }, search: {} }));
  const exportSvg = () => {
    if (positions === null || frame.current === null) return;
    const style = getComputedStyle(frame.current);
    const color = (name: string) => style.getPropertyValue(name).trim();
    const text = diagramSvg(schema, positions, { background: color("--bb-bg"), node: color("--bb-bg-raised"), head: color("--bb-bg-sunken"), line: color("--bb-line-strong"), text: color("--bb-text"), dim: color("--bb-text-dim"), relation: color("--bb-control") });
    const link = document.createElement("a");
    link.href = URL.createObjectURL(new Blob([text], { type: "image/svg+xml" }));
    link.download = "objects.svg";
    link.click();
    setTimeout(() => URL.revokeObjectURL(link.href), 10_000);
  };
  useHotkeys({ "+": () => void flow.zoomIn({ duration: motion }), "-": () => void flow.zoomOut({ duration: motion }), "0": fit, Escape: lit === null ? undefined : () => (setLit(null), setSelected(null)) });

  if (positions === null) return <div className={classes.frame} aria-busy="true" />;
  return (
    <div
      className={classes.frame}
      ref={frame}
      onKeyDown={(event) => {
        const id = (event.target as HTMLElement).closest?.<HTMLElement>(".react-flow__node")?.dataset.id;
        if (event.key !== "Enter" || id === undefined || (event.target as HTMLElement).tagName === "A") return;
        event.preventDefault();
        event.stopPropagation();
        openObject(id);
      }}
    >
      <ReactFlow
        nodes={nodes}
        edges={edges}
        nodeTypes={nodeTypes}
        edgeTypes={edgeTypes}
        onNodesChange={changed}
        onNodeDoubleClick={(_, node) => openObject(node.id)}
        onPaneClick={() => setLit(null)}
        onlyRenderVisibleElements
        nodesConnectable={false}
        edgesFocusable={false}
        elementsSelectable
        zoomOnDoubleClick={false}
        deleteKeyCode={null}
        minZoom={0.05}
        maxZoom={2}
        fitView
        fitViewOptions={{ padding: 0.1, maxZoom: 1 }}
        proOptions={{ hideAttribution: true }}
        aria-label="Diagram of the objects"
      >
        <Panel position="top-left" className={classes.tools}>
          <TextInput
            aria-label="Find an object in the diagram"
            placeholder={`Find in ${quantity(schema.objects.length, "object")}`}
            list={namesId}
            className={classes.find}
            autoComplete="off"
            onChange={(event) => {
              if (known.has(event.currentTarget.value)) find(event.currentTarget.value);
            }}
            onKeyDown={(event) => {
              const wanted = event.currentTarget.value.trim().toLowerCase();
              const first = event.key === "Enter" && wanted !== "" ? schema.objects.find(({ name }) => name.includes(wanted)) : undefined;
              if (first !== undefined) find(first.name);
            }}
          />
          <datalist id={namesId}>
            {schema.objects.map(({ name }) => (
              <option key={name} value={name} aria-label={name} />
            ))}
          </datalist>
        </Panel>
        <Panel position="top-right" className={classes.tools}>
          <Button data-tip="Arrange all by their relations. Your own places are given up." variant="default" leftSection={<IconLayoutGrid size={14} />} onClick={arrange}>
            Arrange
          </Button>
          <Button data-tip="Save as SVG" variant="default" leftSection={<IconDownload size={14} />} onClick={exportSvg}>
            SVG
          </Button>
        </Panel>
        <Panel position="bottom-right" className={classes.tools}>
          {(
            [
              ["Zoom in (+)", IconZoomIn, () => void flow.zoomIn({ duration: motion })],
              ["Zoom out (-)", IconZoomOut, () => void flow.zoomOut({ duration: motion })],
              ["Show all (0)", IconFocusCentered, fit],
            ] as const
          ).map(([label, Icon, act]) => (
            <ActionIcon key={label} data-tip={label} variant="default" aria-label={label} onClick={act}>
              <Icon size={16} />
            </ActionIcon>
          ))}
        </Panel>
        <Panel position="bottom-left" className={classes.hint}>
          <Link to="/objects" search={{}}>
            The list
          </Link>{" "}
          shows the same as text.
        </Panel>
      </ReactFlow>
    </div>
  );
}

/**
 * Edits a grant with conditions or fields: the rows to which it applies, the check of its writes, and its fields. Only saving the role
 * sends the grant.
 */
import { Button, Checkbox, Group, Modal, Select, Stack, Switch } from "@mantine/core";
import { useEffect, useMemo, useRef, useState } from "react";
import { isJsonObject, printJson } from "../../../api/json";
import { sidesOf } from "../../../api/field-lists";
import { useObjects } from "../../../api/objects";
import type { RecordShapeOf } from "../../../api/record-shape";
import type { Action, Grant } from "../../../api/types";
import { USERS } from "../../../api/users-object";
import { confirm } from "../../../components/confirm-store";
import { Ticked } from "../../../components/Ticked";
import type { RecordShape } from "../../records/columns";
import { ConditionFields, JsonToggle } from "../../records/filters/ConditionFields";
import { Sentence } from "../../records/filters/Sentence";
import { OF_GRANT } from "../../records/filters/sendable";
import { type Part, type ShapeOf, printParts } from "../../records/filters/tree";
import { type ConditionDraft, useConditionDraft } from "../../records/filters/useConditionDraft";
import { type TitleOf, wordsOfAll } from "../../records/filters/words";
import { FieldGrid } from "../fields/FieldGrid";
import { printGrid, readGrid, rowsOf } from "../fields/fields";
import { ACTIONS, type Refusal, savedActions, sent } from "../roles";
import { partsOfClause } from "./useNames";
import { submits } from "../../../components/submits";
import classes from "./Conditions.module.css";

const HINT = "Fields, operators and relations, `_and`, `_or` and `_not`. A text that begins with `$` is a variable, such as `$user.id`; written `$$` it is a text.";

/**
 * The actions that a grant with conditions or fields can have. As records, users can only be read. Other rights on accounts have no
 * conditions and are set in the table, but actions that this grant already has are offered. `savedActions` leaves out those that the
 * server refuses.
 */
const actionsOn = (resource: string, grant: Grant | undefined): readonly Action[] => (resource === USERS ? ACTIONS.filter((action) => action === "read" || (grant?.resource === USERS && grant.actions.includes(action))) : ACTIONS);

export interface GrantEditorProps {
  /** Absent for a new grant. */
  grant: Grant | undefined;
  of: ShapeOf;
  known: RecordShapeOf | undefined;
  titleOf: TitleOf;
  refusal: Refusal | undefined;
  onApply: (grant: Grant) => void;
  onClose: () => void;
}

export function GrantEditor({ grant, of, known, titleOf, refusal, onApply, onClose }: GrantEditorProps) {
  const [resource, setResource] = useState(grant?.resource ?? null);
  const [actions, setActions] = useState<readonly Action[]>(grant?.actions ?? ["read"]);
  const [isOwn, setOwn] = useState(grant?.rowPolicy === "own");
  const [isClauseTyped, setClauseTyped] = useState(false);
  const isAsking = useRef(false);
  const isTyped = isClauseTyped || resource !== (grant?.resource ?? null) || isOwn !== (grant?.rowPolicy === "own") || printJson(actions) !== printJson(grant?.actions ?? ["read"]);
  const close = async () => {
    // One press of Escape reaches the question and this dialog.
    if (isAsking.current) return;
    isAsking.current = true;
    const mayClose = !isTyped || (await confirm({ title: "Discard what you typed?", children: "The grants stay as they were.", action: "Discard" }));
    setTimeout(() => (isAsking.current = false));
    if (mayClose) onClose();
  };
  const objects = useObjects();
  const names = [...new Set([...(objects.data?.map(({ name }) => name) ?? []), USERS, ...(resource === null ? [] : [resource])])].sort();
  const isOnUsers = resource === USERS;
  const offered = resource === null ? ACTIONS : actionsOn(resource, grant);
  return (
    <Modal opened onClose={() => void close()} closeOnClickOutside={false} title="Grant with conditions or fields" size={780} xOffset={12}>
      <div className={classes.editor}>
        <Group gap="12px 24px" align="flex-end">
          <Select
            label="Object"
            w={220}
            data={names}
            value={resource}
            onChange={(name) => {
              setResource(name);
              // The other object may not have all of the chosen actions.
              if (name !== null) setActions(actions.filter((action) => actionsOn(name, grant).includes(action)));
            }}
            searchable
            allowDeselect={false}
            placeholder="Choose an object"
            nothingFoundMessage="No such object"
            {...(grant === undefined ? { "data-autofocus": true } : {})}
          />
          <fieldset className={classes.chosen}>
            <legend>Actions</legend>
            <div className={classes.boxes}>
              {offered.map((action) => (
                <Checkbox key={action} label={action} checked={actions.includes(action)} onChange={({ currentTarget: { checked } }) => setActions(ACTIONS.filter((each) => (each === action ? checked : actions.includes(each))))} />
              ))}
            </div>
          </fieldset>
        </Group>
        <Switch
          label={isOnUsers ? "Own account only" : "Own rows only"}
          description={isOnUsers ? "The caller's account. The condition narrows it down further." : "Records that the caller created. The condition narrows them down further."}
          checked={isOwn}
          onChange={({ currentTarget: { checked } }) => setOwn(checked)}
        />
        {resource === null ? (
          <p className="dim">Choose an object to see its fields.</p>
        ) : (
          <Clauses
            // Fields of one object have no meaning for another, so the key resets the editor.
            key={resource}
            grant={resource === grant?.resource ? grant : undefined}
            resource={resource}
            actions={actions}
            of={of}
            known={known}
            titleOf={titleOf}
            refusal={refusal}
            isNew={grant === undefined}
            missing={actions.length === 0 ? "Choose an action." : undefined}
            onTyped={setClauseTyped}
            onApply={(made) => onApply(sent({ ...made, ...(isOwn ? { rowPolicy: "own" } : {}) }))}
          />
        )}
      </div>
    </Modal>
  );
}

interface ClausesProps {
  grant: Grant | undefined;
  resource: string;
  actions: readonly Action[];
  of: ShapeOf;
  known: RecordShapeOf | undefined;
  titleOf: TitleOf;
  refusal: Refusal | undefined;
  isNew: boolean;
  /** The choice that is still missing. */
  missing: string | undefined;
  /** Called with whether the conditions and fields differ from those of the grant. */
  onTyped: (isTyped: boolean) => void;
  /** Called with the grant, which has no row policy yet. */
  onApply: (made: Grant) => void;
}

function Clauses({ grant, resource, actions, of, known, titleOf, refusal, isNew, missing, onTyped, onApply }: ClausesProps) {
  const found = of(resource);
  const shape = found ?? unknownShape(resource);
  // The builder has no rows for a broken grant, or for an object that this person may not see. They are edited as text.
  const isText = found === undefined || grant?.broken === true;
  const from = (clause: Grant["where"]): Part[] | string => (isText ? printJson(clause ?? {}, 2) : partsOfClause(clause, shape, of));
  const options = { shape, of, titleOf, bounds: OF_GRANT, takesVariables: true, onSubmit: () => apply() };
  const where = useConditionDraft({ ...options, from: from(grant?.where) });
  const check = useConditionDraft({ ...options, from: from(grant?.check) });
  const [isChecked, setChecked] = useState((grant?.check ?? null) !== null);
  const [grid, setGrid] = useState(() => readGrid(grant?.fields));
  const rows = useMemo(() => rowsOf(known?.(resource), grant?.fields), [known, resource, grant]);
  const sides = sidesOf(actions);
  const [wasTried, setTried] = useState(false);
  // An empty condition on rows is left out. An empty check is kept, because it allows any result of a write.
  const clauses = { where: isEmpty(where.json) ? undefined : where.json, check: isChecked ? check.json : undefined };
  const saved = savedActions({ resource, actions: [...actions], ...clauses, fields: printGrid(grid, rows, sides) });
  const left = actions.filter((action) => !saved.includes(action));
  // A list that only the left out actions need is left out too.
  const given = { resource, actions: saved, ...clauses, fields: printGrid(grid, rows, sidesOf(saved)) };
  const isWhole = where.json !== undefined && (!isChecked || check.json !== undefined);
  const problem = missing ?? (saved.length === 0 ? "Choose the action read." : !isWhole ? "Complete what is marked, or remove it." : given.where === undefined && given.check === undefined && given.fields === undefined ? "Add a condition, or choose fields. A grant without either is set in the table." : undefined);
  const apply = () => {
    setTried(true);
    where.check();
    check.check();
    if (problem === undefined) onApply(given);
  };
  // The server's message is only shown while the condition is as it was sent.
  const printed = (draft: ConditionDraft) => printJson(draft.json ?? printParts(draft.parts, shape, of));
  const now = { where: printed(where), check: printed(check), fields: printJson(given.fields ?? {}) };
  const [came] = useState(now);
  const isTyped = printJson(now) !== printJson(came) || isChecked !== ((grant?.check ?? null) !== null) || where.problem !== undefined || check.problem !== undefined;
  useEffect(() => onTyped(isTyped), [isTyped, onTyped]);
  const refused = (clause: Refusal["clause"]) => (refusal?.clause === clause && now[clause] === came[clause] ? refusal.message : undefined);
  const clause = (title: string, label: string, draft: ConditionDraft, nothing: string, error: string | undefined) => {
    const words = wordsOfAll(draft.parts, "and", { shape, of, titleOf });
    return (
      <Stack gap="sm" role="group" aria-label={title}>
        <div className={classes.clauseHead}>
          <h3>{title}</h3>
          <JsonToggle draft={draft} isFixed={found === undefined} />
        </div>
        <p className={classes.said} data-sentence>
          {words.length === 0 ? <span className="dim">{nothing}</span> : <Sentence words={words} />}
        </p>
        <ConditionFields draft={draft} shape={shape} label={label} hint={HINT} minLines={5} error={error} />
        {error !== undefined && draft.text === null && (
          <p className={classes.refused} role="alert">
            The server refuses this: <Ticked text={error} />
          </p>
        )}
      </Stack>
    );
  };
  return (
    <form className={classes.editor} onSubmit={submits(() => apply())}>
      {clause("Rows that the grant reaches", "Condition of rows", where, "All rows. Choose a column or a relation.", refused("where"))}
      <Switch label="Writes leave something else" description="A created or changed record has to meet this at the end. Without it, it has to be a row that the grant reaches." checked={isChecked} onChange={({ currentTarget: { checked } }) => setChecked(checked)} />
      {isChecked && clause("What writes leave", "Condition of writes", check, "Anything. Choose a column or a relation.", refused("check"))}
      {left.length > 0 && (
        <p role="status">
          <Ticked text={`On \`users\`, conditions and lists of fields work for reading only. The server refuses other actions that they limit, so these are left out on save: ${left.map((action) => `\`${action}\``).join(", ")}. The table gives them without conditions.`} />
        </p>
      )}
      {sides.length > 0 && <FieldGrid label={`Fields of ${resource}`} state={grid} onChange={setGrid} rows={rows} sides={sides} actions={actions} error={refused("fields")} />}
      <div className={classes.foot}>
        <span className={classes.note} role="status" data-missing={(wasTried && problem !== undefined) || undefined}>
          {wasTried && problem !== undefined ? problem : "It takes effect when you save the role."}
        </span>
        <Button type="submit">{isNew ? "Add grant" : "Apply"}</Button>
      </div>
    </form>
  );
}

const isEmpty = (json: unknown) => isJsonObject(json) && Object.keys(json).length === 0;

/** The shape of an object that this person may not see. */
function unknownShape(name: string): RecordShape {
  return { name, label: name, columns: [], byId: new Map(), relations: new Map(), signature: "" };
}

import { ActionIcon, Button } from "@mantine/core";
import { IconArrowBackUp, IconPlus, IconTrash, IconX } from "@tabler/icons-react";
import { Link } from "@tanstack/react-router";
import { USERS } from "../../../api/users-object";
import { messageOf } from "../../../api/errors";
import { EmptyState } from "../../../components/EmptyState";
import { asCurl } from "../../../components/CopyAs";
import { StatusBadge } from "../../../components/StatusBadge";
import { Effect } from "../change/Effect";
import type { DraftRelation } from "../model/draft";
import { usePlan } from "../model/plan";
import { KIND_SYMBOLS, type RelationDefinition, defaultOnDelete, kindSentence, onDeleteSentence } from "../model/relations";
import { newKey } from "../model/store";
import { RelationForm, RelationKeys } from "./RelationForm";
import type { ObjectDraft } from "./useObjectDraft";
import classes from "./Objects.module.css";

export interface RelationsProps {
  state: ObjectDraft;
  canAdd: boolean;
  canRemove: boolean;
}

/** Adds an empty relation to the draft. */
export function addRelation(state: ObjectDraft): void {
  const definition: RelationDefinition = { name: "", kind: "many_to_one", source: state.base.object === null ? "" : state.draft.name, target: "", onDelete: "restrict" };
  state.change((now) => ({ ...now, relationsAdded: [...now.relationsAdded, { key: newKey(), definition }] }));
}

export function RelationsTab({ state, canAdd, canRemove }: RelationsProps) {
  const { draft } = state;
  const add = canAdd ? () => addRelation(state) : undefined;
  if (draft.relations.length === 0)
    return (
      <EmptyState
        title="No relations yet"
        docs="POST /api/v1/relationships"
        action={
          add !== undefined && (
            <Button leftSection={<IconPlus size={14} />} onClick={add}>
              Add relation
            </Button>
          )
        }
        curl={asCurl({ method: "POST", path: "/api/v1/relationships", body: { name: "owner", kind: "many_to_one", source: draft.name, target: "person", onDelete: "restrict" } })}
      >
        A relation joins records of two objects. It gives them keys to expand, and says what a deletion takes along.
      </EmptyState>
    );
  return (
    <div className={classes.scroll}>
      <div>
        <RelationList state={state} canRemove={canRemove} />
        {add !== undefined && (
          <Button variant="default" leftSection={<IconPlus size={14} />} onClick={add}>
            Add relation
          </Button>
        )}
      </div>
    </div>
  );
}

export function RelationList({ state, canRemove }: Omit<RelationsProps, "canAdd">) {
  return (
    <ul className={classes.cards} aria-label="Relations">
      {state.draft.relations.map((relation) => (
        <li key={relation.key}>{relation.state === "new" ? <NewRelation state={state} relation={relation} /> : <KnownRelation state={state} relation={relation} canRemove={canRemove} />}</li>
      ))}
    </ul>
  );
}

function KnownRelation({ state, relation: { key, definition, state: is }, canRemove }: { state: ObjectDraft; relation: DraftRelation; canRemove: boolean }) {
  const { change, steps, draft, schemaVersion } = state;
  const step = steps.find((each) => each.about === key);
  const { plan, error, isPending } = usePlan(step !== undefined && !step.waits ? step.request : null, schemaVersion, 0);
  const dropped = is === "dropped";
  const other = (name: string) => (name === draft.name ? <code>{name}</code> : name === USERS ? <Link to="/users"><code>{name}</code></Link> : <Link to="/objects/$object" params={{ object: name }} search={{ tab: "relations" }}><code>{name}</code></Link>);
  return (
    <article className={classes.card} data-state={is} aria-label={`Relation ${definition.name}`}>
      <div className={classes.cardHead}>
        <h2 className={classes.cardTitle}>
          <code className={dropped ? classes.struck : undefined}>{definition.name}</code>
          {other(definition.source)} <span className={classes.symbol}>{KIND_SYMBOLS[definition.kind]}</span> {other(definition.target)}
          {definition.required === true && <span className={classes.chip}>required</span>}
          {dropped && <StatusBadge tone="warn" plain>removed</StatusBadge>}
        </h2>
        {canRemove &&
          (dropped ? (
            <ActionIcon data-tip="Keep the relation" aria-label={`Keep the relation ${definition.name}`} onClick={() => change((now) => ({ ...now, relationsDropped: now.relationsDropped.filter((id) => id !== key) }))}>
              <IconArrowBackUp size={16} />
            </ActionIcon>
          ) : (
            <ActionIcon data-tip="Remove the relation" aria-label={`Remove the relation ${definition.name}`} onClick={() => change((now) => ({ ...now, relationsDropped: [...now.relationsDropped, key] }))}>
              <IconTrash size={16} />
            </ActionIcon>
          ))}
      </div>
      <div className={classes.cardBody}>
        {dropped ? (
          <Effect plan={plan} error={error} isPending={isPending} waits={step?.waits ?? false} />
        ) : (
          <>
            <p>
              {kindSentence(definition)} {onDeleteSentence(definition, definition.onDelete ?? defaultOnDelete(definition))}
            </p>
            <RelationKeys relation={definition} />
          </>
        )}
      </div>
    </article>
  );
}

function NewRelation({ state, relation: { key, definition, problem } }: { state: ObjectDraft; relation: DraftRelation }) {
  const { base, edits, change, steps, failure, schemaVersion } = state;
  const stored = edits.relationsAdded.find((each) => each.key === key)?.definition ?? definition;
  const step = steps.find((each) => each.about === key);
  const { plan, error, isPending } = usePlan(problem === undefined && step !== undefined && !step.waits ? step.request : null, schemaVersion);
  const isNewObject = base.object === null;
  return (
    <article className={classes.card} data-state="new" aria-label={`New relation ${definition.name}`}>
      <div className={classes.cardHead}>
        <h2 className={classes.cardTitle}>
          {definition.name === "" ? "New relation" : <code>{definition.name}</code>}
          <StatusBadge tone="info" plain>
            new
          </StatusBadge>
        </h2>
        <ActionIcon
          data-tip="Remove"
          aria-label={`Remove the new relation ${definition.name}`}
          onClick={() =>
            change((now) => ({
              ...now,
              relationsAdded: now.relationsAdded.filter((each) => each.key !== key),
              uniqueTogether: now.uniqueTogether?.filter((group) => !group.includes(key)) ?? null,
              indexes: now.indexes?.filter((group) => !group.includes(key)) ?? null,
            }))
          }
        >
          <IconX size={16} />
        </ActionIcon>
      </div>
      <RelationForm
        object={state.draft.name}
        objects={base.objects}
        definition={isNewObject ? { ...stored, source: state.draft.name } : stored}
        problem={problem}
        refusal={failure?.about === key ? messageOf(failure.error) : undefined}
        onChange={(next) =>
          change((now) => ({ ...now, relationsAdded: now.relationsAdded.map((each) => (each.key === key ? { key, definition: isNewObject ? { ...next, source: "" } : next } : each)) }))
        }
      />
      {!isNewObject && problem === undefined && step !== undefined && (
        <div className={classes.cardBody}>
          <Effect plan={plan} error={error} isPending={isPending} waits={step.waits} />
        </div>
      )}
    </article>
  );
}

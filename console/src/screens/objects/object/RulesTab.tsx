import { ActionIcon, Button, MultiSelect } from "@mantine/core";
import { IconPlus, IconTrash } from "@tabler/icons-react";
import { messageOf } from "../../../api/errors";
import { Effect } from "../change/Effect";
import type { ColumnRef } from "../model/draft";
import { usePlan } from "../model/plan";
import type { ObjectDraft } from "./useObjectDraft";
import classes from "./Objects.module.css";

const COLUMNS_MAX = 8;
const GROUPS_MAX = 32;

/** Groups of columns: values that must be unique together, and indexes. */
export function RulesTab({ state, canUpdate }: { state: ObjectDraft; canUpdate: boolean }) {
  const { steps, schemaVersion, failure } = state;
  const step = steps.find(({ id }) => id === "update_object" || id === "groups");
  const isWhole = state.draft.uniqueTogether.every((group) => group.length >= 2) && state.draft.indexes.every((group) => group.length >= 1);
  const { plan, error, isPending } = usePlan(step !== undefined && isWhole && !step.waits && step.about === "groups" ? step.request : null, schemaVersion);
  return (
    <div className={classes.scroll}>
      <div>
        <Groups state={state} canUpdate={canUpdate} />
        {step !== undefined && isWhole && step.about === "groups" && (
          <section className={classes.effectBox} aria-label="Effect">
            <h3>Effect</h3>
            {failure?.about === "groups" && <p>{messageOf(failure.error)}</p>}
            <Effect plan={plan} error={error} isPending={isPending} waits={step.waits} />
          </section>
        )}
      </div>
    </div>
  );
}

export function Groups({ state, canUpdate }: { state: ObjectDraft; canUpdate: boolean }) {
  const { draft, change } = state;
  return (
    <>
      <GroupList
        title="Unique groups"
        text="No two records have the same values in all columns of a group. A record with a null in one of them equals no other. An upsert may name a group as its target."
        one="unique group"
        groups={draft.uniqueTogether}
        columnsMin={2}
        state={state}
        canUpdate={canUpdate}
        onChange={(uniqueTogether) => change((now) => ({ ...now, uniqueTogether }))}
      />
      <GroupList
        title="Indexes"
        text="Filters and sorts that begin with the first columns of an index stay fast with many records, so the order counts. Unique fields, references and fields marked as indexed have one already."
        one="index"
        groups={draft.indexes}
        columnsMin={1}
        state={state}
        canUpdate={canUpdate}
        onChange={(indexes) => change((now) => ({ ...now, indexes }))}
      />
    </>
  );
}

interface GroupListProps {
  title: string;
  text: string;
  one: string;
  groups: ColumnRef[][];
  columnsMin: number;
  state: ObjectDraft;
  canUpdate: boolean;
  onChange: (groups: ColumnRef[][]) => void;
}

function GroupList({ title, text, one, groups, columnsMin, state: { draft }, canUpdate, onChange }: GroupListProps) {
  const data = draft.groupColumns.map(({ ref, name }) => ({ value: ref, label: name }));
  return (
    <section className={classes.section} aria-label={title}>
      <div className={classes.sectionHead}>
        <h2>{title}</h2>
        {canUpdate && groups.length < GROUPS_MAX && (
          <Button variant="default" size="compact-xs" leftSection={<IconPlus size={13} />} onClick={() => onChange([...groups, []])}>
            Add {one}
          </Button>
        )}
      </div>
      <p className={classes.sectionText}>{text}</p>
      {groups.length === 0 ? (
        <p className="dim">None.</p>
      ) : (
        <ul className={classes.cards}>
          {groups.map((group, place) => {
            const gone = group.filter((ref) => draft.columnName(ref) === undefined);
            const names = group.map((ref) => draft.columnName(ref) ?? ref).join(", ");
            const twice = groups.findIndex((other) => other.length === group.length && other.every((ref, index) => ref === group[index])) < place;
            const problem = gone.length > 0 ? `${gone.join(", ")} goes, so the group goes too.` : group.length > 0 && group.length < columnsMin ? `Choose at least ${columnsMin} columns.` : twice ? "The same group stands above." : undefined;
            return (
              // Groups have no names, so the index is the key.
              <li key={place} className={classes.group}>
                {canUpdate ? (
                  <MultiSelect
                    aria-label={`${one === "index" ? "Index" : "Unique group"} ${place + 1}: ${names === "" ? "no columns yet" : names}`}
                    data={data}
                    value={group.filter((ref) => draft.columnName(ref) !== undefined)}
                    onChange={(refs) => onChange(groups.with(place, refs))}
                    maxValues={COLUMNS_MAX}
                    placeholder={group.length === 0 ? "Choose columns, in their order" : ""}
                    searchable
                    hidePickedOptions
                    size="xs"
                    error={problem}
                  />
                ) : (
                  <code className="mono">{names}</code>
                )}
                {canUpdate && (
                  <ActionIcon data-tip="Remove" aria-label={`Remove the ${one} of ${names === "" ? "no columns" : names}`} onClick={() => onChange(groups.filter((_, index) => index !== place))}>
                    <IconTrash size={16} />
                  </ActionIcon>
                )}
              </li>
            );
          })}
        </ul>
      )}
    </section>
  );
}

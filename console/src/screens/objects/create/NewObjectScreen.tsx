import { ActionIcon, Button, Checkbox, TextInput } from "@mantine/core";
import { IconAdjustments, IconPlus, IconX } from "@tabler/icons-react";
import { useQueryClient } from "@tanstack/react-query";
import { linkOptions, useNavigate, useSearch } from "@tanstack/react-router";
import { type KeyboardEvent, useState } from "react";
import { type ApiError, isApiError, messageOf } from "../../../api/errors";
import { useCan } from "../../../api/session";
import type { FieldType } from "../../../api/types";
import { asCurl } from "../../../components/CopyAs";
import { CodeBlock } from "../../../components/CodeBlock";
import { confirm } from "../../../components/confirm-store";
import { ErrorNotice, ErrorState } from "../../../components/ErrorState";
import { Inspector } from "../../../components/Inspector";
import { Page } from "../../../components/Page";
import { SkeletonLines } from "../../../components/Skeleton";
import { EmptyState } from "../../../components/EmptyState";
import { told } from "../../../components/toast";
import { Ticked } from "../../../components/Ticked";
import { later } from "../../../components/later";
import { useHotkeys } from "../../../components/useHotkeys";
import { CopySteps } from "../change/CopySteps";
import { FieldForm } from "../field/FieldForm";
import { TypeSelect } from "../field/TypeSelect";
import { applySteps } from "../model/apply";
import { type DraftField, NO_EDITS, SELF, editField } from "../model/draft";
import { hasOptions, isComparable, typeInfo } from "../model/fieldTypes";
import { quantity } from "../../../api/numbers";
import { nameFrom } from "../model/names";
import { usePlan } from "../model/plan";
import { refusalAt } from "../model/refusalAt";
import { NEW_OBJECT, clearEdits, newKey, setEdits, setFailure } from "../model/store";
import { RuleChips, ruleWords } from "../object/FieldsTab";
import { RelationList, addRelation } from "../object/RelationsTab";
import { Groups } from "../object/RulesTab";
import { type ObjectDraft, useObjectDraft } from "../object/useObjectDraft";
import { TEMPLATES } from "../templates/templates";
import { submits } from "../../../components/submits";
import classes from "./NewObject.module.css";

const TemplatePanel = later(() => import("../templates/TemplatePanel").then((loaded) => loaded.TemplatePanel));

/** A new object, from scratch or from a template. */
export function NewObjectScreen() {
  const { template, open } = useSearch({ from: "/objects/new" });
  const navigate = useNavigate({ from: "/objects/new" });
  const state = useObjectDraft(NEW_OBJECT);
  const canCreate = useCan("objects", "create");
  const crumbs = [{ label: "Objects", link: linkOptions({ to: "/objects" }) }];
  const tabs = [
    { label: "From scratch", link: linkOptions({ to: "/objects/new", search: {} }), active: template === undefined },
    ...TEMPLATES.map(({ id, label }) => ({ label, link: linkOptions({ to: "/objects/new", search: { template: id } }), active: template === id })),
  ];
  const chosen = TEMPLATES.find(({ id }) => id === template);
  const row = template === undefined ? state.draft.fields.find(({ key }) => key === open) : undefined;
  const select = (key: string | undefined) => void navigate({ search: key === undefined ? {} : { open: key }, replace: true });
  return (
    <Page
      title="New object"
      crumbs={crumbs}
      tabs={tabs}
      inspector={row && <MoreRules key={row.key} state={state} row={row} onClose={() => select(undefined)} />}
    >
      {!canCreate ? (
        <EmptyState title="You need create on objects">Somebody who may update roles can give it to you, on the Roles page.</EmptyState>
      ) : state.error !== null ? (
        <ErrorState error={state.error} title="The schema could not be loaded" onRetry={state.refetch} />
      ) : state.isPending ? (
        <div className={classes.body}>
          <SkeletonLines lines={9} />
        </div>
      ) : chosen !== undefined ? (
        <TemplatePanel key={chosen.id} template={chosen} taken={state.base.objects} />
      ) : (
        <Scratch state={state} onMore={select} />
      )}
    </Page>
  );
}

function Scratch({ state, onMore }: { state: ObjectDraft; onMore: (key: string) => void }) {
  const { base, draft, edits, change, steps, schemaVersion } = state;
  const cache = useQueryClient();
  const navigate = useNavigate();
  const [isBusy, setIsBusy] = useState(false);
  const [tried, setTried] = useState(false);
  const [failure, setFailureHere] = useState<unknown>(null);
  const first = steps[0];
  const { error: planError } = usePlan(draft.isValid && first !== undefined ? first.request : null, schemaVersion, 600);
  const refused = isApiError(planError) && planError.status >= 400 && planError.status < 500 && planError.status !== 403 ? planError : null;
  const isTouched = edits !== NO_EDITS;
  const nameError = (tried || edits.name !== "") && draft.nameProblem !== undefined ? draft.nameProblem : refused?.code === "object_exists" || (refused !== null && refused.field === undefined) ? refused.message : undefined;

  const create = async () => {
    setTried(true);
    if (!draft.isValid || isBusy) return;
    setIsBusy(true);
    setFailureHere(null);
    const result = await applySteps(steps, () => {});
    await cache.invalidateQueries({ queryKey: ["schema"] });
    void cache.invalidateQueries({ queryKey: ["data-objects"] });
    setIsBusy(false);
    const { failed } = result;
    if (failed !== null && result.applied.length === 0) return setFailureHere(failed.error);
    if (failed !== null) {
      // The server has created the object. The steps that were not applied become pending changes of the object.
      const own = (name: string) => (name === "" || name === SELF ? draft.name : name);
      const done = new Set(result.applied.map(({ about }) => about));
      const renamed = (groups: string[][] | null) => groups?.map((group) => group.map((ref) => edits.added.find(({ key }) => key === ref)?.field.name ?? ref)) ?? null;
      setEdits(draft.name, {
        ...NO_EDITS,
        relationsAdded: edits.relationsAdded.filter(({ key }) => !done.has(key)).map(({ key, definition }) => ({ key, definition: { ...definition, source: own(definition.source), target: own(definition.target) } })),
        uniqueTogether: renamed(edits.uniqueTogether),
        indexes: renamed(edits.indexes),
      });
      setFailure(draft.name, { about: failed.step.about, error: failed.error });
      clearEdits(NEW_OBJECT);
      void navigate({ to: "/objects/$object", params: { object: draft.name }, search: { tab: "relations" } });
      return;
    }
    clearEdits(NEW_OBJECT);
    told(`${draft.name} is there, with its REST, GraphQL and MCP API.`);
    void navigate({ to: "/data/$object", params: { object: draft.name }, search: {} });
  };
  useHotkeys({ "mod+Enter": () => void create() });

  return (
    <div className={classes.frame}>
      <div className={classes.body}>
        <form className={classes.form} onSubmit={submits(() => void create())}>
          <div className={classes.names}>
            <TextInput
              label="Name"
              description="Of one record, in the singular: task, order_item. The name stays; a label may change."
              placeholder="task"
              value={edits.name}
              onChange={(event) => change((now) => ({ ...now, name: event.currentTarget.value }))}
              onBlur={(event) => {
                const typed = event.currentTarget.value;
                const proposed = nameFrom(typed);
                if (typed !== proposed && proposed !== "") change((now) => ({ ...now, name: proposed, label: now.label ?? typed.trim() }));
              }}
              error={nameError}
              classNames={{ input: "mono" }}
              spellCheck={false}
              autoComplete="off"
              autoFocus={edits.name === ""}
              required
            />
            <TextInput label="Label" description="What people read in its place." placeholder="none" value={draft.label} onChange={(event) => change((now) => ({ ...now, label: event.currentTarget.value === "" ? null : event.currentTarget.value }))} dir="auto" maxLength={2_000} />
          </div>
          <TextInput label="Description" description="Shown in the API's document and to MCP clients." placeholder="none" value={draft.description} onChange={(event) => change((now) => ({ ...now, description: event.currentTarget.value === "" ? null : event.currentTarget.value }))} dir="auto" maxLength={2_000} />
          <Fields state={state} tried={tried} refused={refused} onMore={onMore} />
          <section className={classes.section} aria-label="Relations">
            <h2>Relations</h2>
            <p className={classes.text}>Join its records with those of other objects.</p>
            {draft.relations.length > 0 && <RelationList state={state} canRemove />}
            <Button variant="default" size="compact-sm" leftSection={<IconPlus size={13} />} onClick={() => addRelation(state)}>
              Add relation
            </Button>
          </section>
          {edits.added.length > 0 && (
            <details className={classes.section} open={(edits.uniqueTogether?.length ?? 0) + (edits.indexes?.length ?? 0) > 0}>
              <summary>Groups and indexes</summary>
              <div className={classes.groups}>
                <Groups state={state} canUpdate />
              </div>
            </details>
          )}
          {failure !== null && <ErrorNotice error={failure} title={`${draft.name} was not created`} />}
          {refused !== null && failure === null && refused.field !== undefined && <p className={classes.refused}><Ticked text={refused.message} /></p>}
        </form>
        <aside className={classes.aside} aria-label="What you get">
          <h2>What you get</h2>
          <Preview name={draft.name === "" ? "task" : draft.name} fields={draft.fields} />
        </aside>
      </div>
      <div className={classes.foot}>
        <span className={classes.footText} role="status">
          {!tried && edits.name === "" ? "It can be used the moment it is created." : !draft.isValid ? firstProblem(state) : refused !== null ? "The server would refuse this; see above." : steps.length > 1 ? `${quantity(steps.length, "step")}: the object, then its relations.` : `${quantity(edits.added.length, "field")}, ready to be created.`}
        </span>
        {isTouched && (
          <Button
            variant="default"
            onClick={async () => {
              if (await confirm({ title: "Discard this object?", children: "What you typed is gone then.", action: "Discard" })) clearEdits(NEW_OBJECT);
            }}
          >
            Discard
          </Button>
        )}
        {isTouched && <CopySteps steps={steps} />}
        <Button onClick={() => void create()} loading={isBusy} disabled={tried && (!draft.isValid || base.objects.includes(draft.name))}>
          Create object
        </Button>
      </div>
    </div>
  );
}

function firstProblem({ draft }: ObjectDraft): string {
  if (draft.nameProblem !== undefined) return draft.nameProblem;
  const field = draft.fields.find(({ problems }) => Object.keys(problems).length > 0);
  if (field !== undefined) return `${field.field.name === "" ? "A field" : field.field.name}: ${Object.values(field.problems)[0]}`;
  return draft.relations.find(({ problem }) => problem !== undefined)?.problem ?? "A group needs its columns.";
}

/** Short rows with name, type, required and unique. `Enter` starts the next row. A click opens all other rules of a field. */
function Fields({ state, tried, refused, onMore }: { state: ObjectDraft; tried: boolean; refused: ApiError | null; onMore: (key: string) => void }) {
  const { base, draft, change } = state;
  const [wanted, setWanted] = useState<string | null>(null);
  const add = () => {
    const key = newKey();
    setWanted(key);
    change((now) => ({ ...now, added: [...now.added, { key, field: { name: "", type: "text" } }] }));
  };
  const keys = (event: KeyboardEvent, index: number) => {
    if (event.key === "Enter" && !event.ctrlKey && !event.metaKey) {
      event.preventDefault();
      if (index === draft.fields.length - 1) add();
      else event.currentTarget.closest("[data-rows]")?.querySelectorAll<HTMLInputElement>("[data-field-name]")[index + 1]?.focus();
    }
  };
  return (
    <section className={classes.section} aria-label="Fields">
      <h2>Fields</h2>
      <p className={classes.text}>Every record also has id, created_at, updated_at, created_by and updated_by.</p>
      {draft.fields.length > 0 && (
        <div className={classes.rows} data-rows>
          <div className={classes.rowsHead} aria-hidden="true">
            <span>Name</span>
            <span>Type</span>
            <span>Required</span>
            <span>Unique</span>
            <span>Rules</span>
          </div>
          {draft.fields.map(({ key, field, problems }, index) => {
            const others = Object.entries(problems).filter(([problem]) => problem !== "name" && problem !== "type");
            const sentence = refused !== null && refused.field === field.name ? refused.message : (others[0]?.[1] as string | undefined);
            const isWordless = ruleWords(field).filter(({ text }) => text !== "required" && text !== "unique").length === 0;
            return (
              <div key={key} className={classes.row} role="group" aria-label={field.name === "" ? `Field ${index + 1}` : `Field ${field.name}`}>
                <TextInput
                  aria-label="Name of the field"
                  placeholder="title"
                  value={field.name}
                  onChange={(event) => change((now) => editField(base, now, key, { name: event.currentTarget.value }))}
                  onBlur={(event) => {
                    const typed = event.currentTarget.value;
                    const proposed = nameFrom(typed);
                    if (typed !== proposed && proposed !== "") change((now) => editField(base, now, key, { name: proposed, ...(field.label === undefined ? { label: typed.trim() } : {}) }));
                  }}
                  onKeyDown={(event) => keys(event, index)}
                  error={(field.name !== "" || tried) && problems.name !== undefined ? problems.name : undefined}
                  classNames={{ input: "mono" }}
                  spellCheck={false}
                  autoComplete="off"
                  autoFocus={wanted === key}
                  data-field-name
                />
                <TypeSelect
                  aria-label="Type of the field"
                  type={field.type}
                  error={problems.type}
                  onChange={(next) => {
                    change((now) => editField(base, now, key, { type: next, default: null, min: null, max: null, pattern: null, options: hasOptions(next) ? (field.options ?? []) : null, scale: null, ...(isComparable(next) ? {} : { isUnique: false, indexed: false }) }));
                    if (hasOptions(next)) onMore(key);
                  }}
                />
                <Checkbox className={classes.checkCell} aria-label="Required" label="Required" checked={field.required === true} onChange={(event) => change((now) => editField(base, now, key, { required: event.currentTarget.checked }))} />
                <Checkbox className={classes.checkCell} aria-label="Unique" label="Unique" checked={field.isUnique === true} disabled={!isComparable(field.type)} onChange={(event) => change((now) => editField(base, now, key, { isUnique: event.currentTarget.checked }))} />
                <span className={classes.ruleCell}>
                  <Button data-tip={`All rules of this ${typeInfo(field.type).label.toLowerCase()} field`} variant="subtle" color="gray" size="compact-xs" leftSection={<IconAdjustments size={14} />} onClick={() => onMore(key)} aria-label={`Rules of ${field.name === "" ? `field ${index + 1}` : field.name}`}>
                    {isWordless ? "Rules" : ""}
                  </Button>
                  {!isWordless && <RuleChips field={{ ...field, required: false, isUnique: false }} />}
                </span>
                <ActionIcon data-tip="Remove" aria-label={`Remove ${field.name === "" ? `field ${index + 1}` : field.name}`} onClick={() => change((now) => ({ ...now, added: now.added.filter((each) => each.key !== key), uniqueTogether: now.uniqueTogether?.filter((group) => !group.includes(key)) ?? null, indexes: now.indexes?.filter((group) => !group.includes(key)) ?? null }))}>
                  <IconX size={15} />
                </ActionIcon>
                {sentence !== undefined && (field.name !== "" || tried) && <span className={classes.rowError}><Ticked text={sentence} /></span>}
              </div>
            );
          })}
        </div>
      )}
      <Button variant="default" size="compact-sm" leftSection={<IconPlus size={13} />} onClick={add}>
        Add field
      </Button>
    </section>
  );
}

function MoreRules({ state, row, onClose }: { state: ObjectDraft; row: DraftField; onClose: () => void }) {
  const { base, change, failure } = state;
  return (
    <Inspector title={row.field.name === "" ? "New field" : row.field.name} onClose={onClose}>
      <FieldForm field={row.field} problems={row.problems} refusals={failure?.about === row.key ? refusalAt(failure.error) : {}} onChange={(patch) => change((now) => editField(base, now, row.key, patch))} />
      {failure?.about === row.key && <p>{messageOf(failure.error)}</p>}
    </Inspector>
  );
}

/** The addresses of the object and an example of a first request, with the names typed so far. */
function Preview({ name, fields }: { name: string; fields: DraftField[] }) {
  const body = Object.fromEntries(fields.filter(({ field }) => field.name !== "").slice(0, 4).map(({ field }) => [field.name, sample(field.type, field.options)]));
  const gets = {
    REST: `\`/api/v1/data/${name}\``,
    GraphQL: `\`${name}\`, \`create_${name}\``,
    MCP: `\`query_data\` of \`${name}\``,
    Events: `\`data.${name}.created\``,
  };
  return (
    <>
      <ul className={classes.gets}>
        {Object.entries(gets).map(([surface, text]) => (
          <li key={surface}>
            <b>{surface}</b>
            <span>
              <Ticked text={text} />
            </span>
          </li>
        ))}
      </ul>
      <CodeBlock code={asCurl({ method: "POST", path: `/api/v1/data/${name}`, body: Object.keys(body).length === 0 ? { title: "Buy milk" } : body })} label="The first record with curl" />
    </>
  );
}

function sample(type: FieldType, options: string[] | undefined): unknown {
  if (type === "enum") return options?.[0] ?? "open";
  if (type === "multi_enum") return options?.slice(0, 1) ?? [];
  if (type === "boolean") return true;
  if (type === "json") return {};
  const { example, group } = typeInfo(type);
  return group === "Number" ? Number(example) : example;
}

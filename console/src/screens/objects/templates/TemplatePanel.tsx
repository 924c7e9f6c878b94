import { Button, Group, Loader, Switch, TextInput } from "@mantine/core";
import { IconCircleCheck, IconCircleX, IconMinus } from "@tabler/icons-react";
import { useQueryClient } from "@tanstack/react-query";
import { useNavigate } from "@tanstack/react-router";
import { useMemo, useState } from "react";
import { ErrorNotice } from "../../../components/ErrorState";
import { told } from "../../../components/toast";
import { CopySteps } from "../change/CopySteps";
import { TypeIcon } from "../field/FieldForm";
import { quantity } from "../../../api/numbers";
import { listed, objectNameProblem } from "../model/names";
import { KIND_SYMBOLS } from "../model/relations";
import { RuleChips } from "../object/FieldsTab";
import { type Made, type TemplateStep, runTemplate, templateSteps } from "./makeTemplate";
import { type Template, prefixed } from "./templates";
import classes from "./Templates.module.css";

/** Shows a template before it is created: its parts, a prefix if names are taken, and then the progress of the steps. */
export function TemplatePanel({ template: original, taken }: { template: Template; taken: string[] }) {
  const cache = useQueryClient();
  const navigate = useNavigate();
  const [prefix, setPrefix] = useState("");
  const [withSamples, setWithSamples] = useState(true);
  const [running, setRunning] = useState<TemplateStep | null>(null);
  const [failure, setFailure] = useState<unknown>(null);
  const [started, setStarted] = useState(false);
  const [made] = useState<Made>(() => ({ ids: new Map(), done: new Set() }));
  const [done, setDone] = useState<ReadonlySet<string>>(new Set());
  const template = useMemo(() => prefixed(original, prefix), [original, prefix]);
  const steps = useMemo(() => templateSteps(template, withSamples), [template, withSamples]);
  const clashes = started ? [] : template.objects.map(({ name }) => name).filter((name) => taken.includes(name));
  const prefixProblem = prefix === "" ? undefined : template.objects.map(({ name }) => objectNameProblem(name, [])).find((problem) => problem !== undefined);
  const samples = original.samples.reduce((sum, { records }) => sum + records.length, 0);
  const make = async () => {
    setStarted(true);
    setFailure(null);
    try {
      await runTemplate(steps, made, (step) => {
        setRunning(step);
        setDone(new Set(made.done));
      });
    } catch (error) {
      setFailure(error);
      return;
    } finally {
      setRunning(null);
      setDone(new Set(made.done));
      await cache.invalidateQueries({ queryKey: ["schema"] });
      await cache.invalidateQueries({ queryKey: ["data-objects"] });
      void cache.invalidateQueries({ queryKey: ["data"] });
    }
    told(`${quantity(template.objects.length, "object")} of the template ${original.label} ${template.objects.length === 1 ? "is" : "are"} there.`);
    void navigate({ to: "/data/$object", params: { object: template.main }, search: {} });
  };
  return (
    <div className={classes.panel}>
      <p className={classes.sentence}>{original.sentence} It is made by the public API, step by step, and yours to change afterwards.</p>
      <ul className={classes.objects} aria-label="Objects of the template">
        {template.objects.map(({ name, fields }) => (
          <li key={name} className={classes.object}>
            <h2>
              <code>{name}</code>
            </h2>
            <ul>
              {fields.map((field) => (
                <li key={field.name}>
                  <TypeIcon type={field.type} size={14} />
                  <span>{field.name}</span>
                  <RuleChips field={field} />
                </li>
              ))}
              {template.relations
                .filter(({ source }) => source === name)
                .map(({ name: relation, kind, target }) => (
                  <li key={relation} className={classes.relation}>
                    <span className={classes.symbol}>{KIND_SYMBOLS[kind]}</span>
                    <span>{relation}</span>
                    <span className="dim">{target}</span>
                  </li>
                ))}
            </ul>
          </li>
        ))}
      </ul>
      {!started && (
        <div className={classes.options}>
          <Switch label={`With ${quantity(samples, "sample record")}`} description="To see lists, filters and relations at work. Delete them when you like." checked={withSamples} onChange={(event) => setWithSamples(event.currentTarget.checked)} />
          <TextInput
            label="Prefix of the names"
            placeholder="none"
            description="Keeps them apart from other objects."
            value={prefix}
            onChange={(event) => setPrefix(event.currentTarget.value)}
            error={clashes.length > 0 ? `${listed(clashes)} ${clashes.length === 1 ? "is" : "are"} there already. A prefix such as ${original.id}_ helps.` : prefixProblem}
            classNames={{ input: "mono" }}
            spellCheck={false}
            autoComplete="off"
          />
        </div>
      )}
      {started && (
        <ol className={classes.run} aria-label="Steps" aria-live="polite">
          {steps.map((step) => (
            <li key={step.id} data-state={done.has(step.id) ? "done" : running?.id === step.id ? "running" : undefined}>
              {done.has(step.id) ? <IconCircleCheck size={16} aria-label="done" /> : running?.id === step.id ? <Loader size={14} aria-label="being made" /> : failure !== null && steps.find((each) => !done.has(each.id)) === step ? <IconCircleX size={16} aria-label="failed" /> : <IconMinus size={16} aria-label="not made yet" />}
              <span>{step.sentence}</span>
            </li>
          ))}
        </ol>
      )}
      {failure !== null && (
        <ErrorNotice
          error={failure}
          title={done.size === 0 ? "Nothing was made" : `${quantity(done.size, "step")} of ${steps.length} ${done.size === 1 ? "is" : "are"} done, the others are not`}
        />
      )}
      <Group gap="sm" mt="xl">
        <Button onClick={() => void make()} disabled={clashes.length > 0 || prefixProblem !== undefined} loading={running !== null}>
          {failure === null ? `Create ${quantity(template.objects.length, "object")}` : "Go on from there"}
        </Button>
        <CopySteps steps={steps.filter((step): step is TemplateStep & { request: NonNullable<TemplateStep["request"]> } => step.request !== undefined)} />
      </Group>
    </div>
  );
}

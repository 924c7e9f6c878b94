import { Button, Loader, Modal, TextInput } from "@mantine/core";
import { useMediaQuery, useMounted } from "@mantine/hooks";
import { IconCircleCheck, IconCircleX, IconMinus } from "@tabler/icons-react";
import { useQueries, useQueryClient } from "@tanstack/react-query";
import { useState } from "react";
import { isApiError } from "../../../api/errors";
import type { Plan } from "../../../api/types";
import { ErrorNotice } from "../../../components/ErrorState";
import { StatusBadge } from "../../../components/StatusBadge";
import { told } from "../../../components/toast";
import { type StepState, applySteps } from "../model/apply";
import type { Step } from "../model/draft";
import { quantity } from "../../../api/numbers";
import { planQuery } from "../model/plan";
import { setApplying, setEdits, setFailure } from "../model/store";
import { CopySteps } from "./CopySteps";
import { Effect } from "./Effect";
import classes from "./Change.module.css";

export interface ReviewProps {
  object: string;
  steps: Step[];
  schemaVersion: number | undefined;
  opened: boolean;
  onClose: () => void;
}

/** The result of the last run. It is kept until the dialog closes. */
interface Run {
  steps: Step[];
  states: Map<string, StepState>;
  failed: { step: Step; error: unknown } | null;
  isOver: boolean;
}

/** The pending changes as steps. The dialog first shows the effect of each step, and then applies them one after another. */
export function Review({ object, steps, schemaVersion, opened, onClose }: ReviewProps) {
  const isMounted = useMounted();
  const cache = useQueryClient();
  const isNarrow = useMediaQuery("(max-width: 48em)") ?? false;
  const [run, setRun] = useState<Run | null>(null);
  const [typed, setTyped] = useState("");
  const plans = useQueries({ queries: steps.map((step) => ({ ...planQuery(step.request, schemaVersion), enabled: opened && run === null && !step.waits, staleTime: 0 })) });
  const planOf = (step: Step) => plans[steps.indexOf(step)];
  const refused = steps.filter((step) => {
    const plan = planOf(step);
    return !step.waits && ((plan?.data?.breaking.length ?? 0) > 0 || (isApiError(plan?.error) && plan.error.status !== 403 && plan.error.status !== 0 && plan.error.status < 500));
  });
  const isAsking = plans.some((plan, index) => !steps[index]!.waits && plan.isFetching);
  const takes = steps.filter(({ destructive }) => destructive);
  const word = wordToType(object, takes);
  const isRunning = run !== null && !run.isOver;

  const close = () => {
    if (isRunning) return;
    onClose();
    setRun(null);
    setTyped("");
  };
  const apply = async () => {
    const states = new Map<string, StepState>();
    const started = steps;
    setRun({ steps: started, states, failed: null, isOver: false });
    setApplying(object, true);
    const result = await applySteps(started, (step, state) => {
      states.set(step.id, state);
      setRun({ steps: started, states: new Map(states), failed: null, isOver: false });
    });
    await cache.invalidateQueries({ queryKey: ["schema"] }).catch(() => {});
    void cache.invalidateQueries({ queryKey: ["data-objects"] });
    void cache.invalidateQueries({ queryKey: ["data"] });
    setEdits(object, (now) => result.applied.reduce((edits, step) => step.settle(edits), now));
    setApplying(object, false);
    if (result.failed === null) {
      told(`${quantity(result.applied.length, "change")} of ${object} applied.`);
      setRun(null);
      setTyped("");
      onClose();
      return;
    }
    setFailure(object, { about: result.failed.step.about, error: result.failed.error });
    setRun({ steps: started, states: new Map(states), failed: result.failed, isOver: true });
  };

  const shown = run?.steps ?? steps;
  const applied = run === null ? 0 : [...run.states.values()].filter((state) => state === "applied").length;
  const left = run === null ? 0 : shown.length - applied - (run.failed === null ? 0 : 1);
  return (
    <Modal opened={isMounted && opened} onClose={close} title={run?.failed ? `Applied in part: ${object}` : `${quantity(shown.length, "change")} of ${object}`} size={680} fullScreen={isNarrow} closeOnClickOutside={false}>
      {run?.failed ? (
        <p className={classes.summary} role="alert">
          {applied === 0 ? "Nothing was applied." : `${quantity(applied, "step")} ${applied === 1 ? "is" : "are"} applied and ${applied === 1 ? "stays" : "stay"}.`} Step {shown.indexOf(run.failed.step) + 1} failed
          {left > 0 ? `, so ${quantity(left, "later step")} ${left === 1 ? "was" : "were"} not tried` : ""}. The changes that were not applied stay pending: correct them and try again, or discard them.
        </p>
      ) : (
        <p className={classes.summary}>{shown.length === 1 ? "One request makes this change." : "The steps are applied in this order, each as one transaction. A step that fails stops the rest; earlier ones stay."}</p>
      )}
      <ol className={classes.steps} aria-label="Steps">
        {shown.map((step, index) => {
          const plan = run === null ? planOf(step) : undefined;
          const state = run?.states.get(step.id);
          return (
            <li key={step.id} className={classes.step}>
              <StepMark number={index + 1} state={state} isOver={run?.isOver ?? false} />
              <span className={classes.stepTitle} dir="auto">
                {step.sentence}
              </span>
              <span>{run === null ? step.destructive && <StatusBadge tone="warn">takes data away</StatusBadge> : <StateWord state={state} isOver={run.isOver} />}</span>
              <span className={classes.stepRequest}>
                {step.request.method} {step.request.path}
              </span>
              <div className={classes.stepBody}>
                {run === null ? (
                  <Effect plan={plan?.data as Plan | undefined} error={plan?.error ?? null} isPending={plan?.isPending ?? false} waits={step.waits} />
                ) : (
                  run.failed?.step.id === step.id && <ErrorNotice error={run.failed.error} />
                )}
              </div>
            </li>
          );
        })}
      </ol>
      <div className={classes.reviewFoot}>
        {run === null && word !== null && (
          <TextInput
            className={classes.typed}
            label={
              <>
                What is taken away cannot be brought back. Type <code className="mono">{word}</code> to go on
              </>
            }
            value={typed}
            onChange={(event) => setTyped(event.currentTarget.value)}
            autoComplete="off"
            spellCheck={false}
          />
        )}
        {run === null && refused.length > 0 && word === null && <span className={classes.reason}>{refused.length === 1 ? "One step would be refused. Mend it or discard it first." : `${refused.length} steps would be refused. Mend them or discard them first.`}</span>}
        {run === null && <CopySteps steps={steps} />}
        <Button variant="default" onClick={close} disabled={isRunning}>
          {run?.isOver ? "Back to the changes" : "Cancel"}
        </Button>
        {run === null && refused.length > 0 && (
          <Button variant="default" onClick={() => void Promise.all(plans.map((plan, index) => (steps[index]!.waits ? null : plan.refetch())))} loading={isAsking}>
            Check again
          </Button>
        )}
        {run?.isOver ? (
          <Button onClick={() => void apply()} disabled={steps.length === 0}>
            Try the {quantity(steps.length, "remaining step")} again
          </Button>
        ) : (
          <Button color={takes.length > 0 ? "red" : "indigo"} onClick={() => void apply()} loading={isRunning} disabled={refused.length > 0 || (word !== null && typed !== word) || steps.length === 0}>
            {takes.length > 0 ? `Apply ${quantity(steps.length, "change")} and lose what is named` : `Apply ${quantity(steps.length, "change")}`}
          </Button>
        )}
      </div>
    </Modal>
  );
}

/** The name that the person has to type. If only one field is dropped, it is the field's name, otherwise the object's. */
function wordToType(object: string, takes: Step[]): string | null {
  if (takes.length === 0) return null;
  return takes.length === 1 && takes[0]!.id.startsWith("drop_field ") ? takes[0]!.about : object;
}

function StepMark({ number, state, isOver }: { number: number; state: StepState | undefined; isOver: boolean }) {
  return (
    <span className={classes.stepNumber} aria-hidden="true">
      {state === "running" && <Loader size={14} />}
      {state === "applied" && <IconCircleCheck size={16} color="var(--bb-green)" />}
      {state === "failed" && <IconCircleX size={16} color="var(--bb-red)" />}
      {state === undefined && (isOver ? <IconMinus size={16} /> : number)}
    </span>
  );
}

function StateWord({ state, isOver }: { state: StepState | undefined; isOver: boolean }) {
  if (state === "applied") return <StatusBadge tone="ok">applied</StatusBadge>;
  if (state === "failed") return <StatusBadge tone="bad">failed</StatusBadge>;
  if (state === "running") return <StatusBadge tone="info">being applied</StatusBadge>;
  return <StatusBadge tone="off">{isOver ? "not tried" : "waiting"}</StatusBadge>;
}

import { Button, Stack } from "@mantine/core";
import { IconPlayerPlay } from "@tabler/icons-react";
import { useMutation, useQuery, useQueryClient } from "@tanstack/react-query";
import { useState } from "react";
import { api, dataOf } from "../../api/client";
import { messageAt } from "../../api/errors";
import { type JsonObject, isJsonObject, printJson, readJson, sameJson } from "../../api/json";
import { useCan } from "../../api/session";
import type { Task, TaskRun as Run } from "../../api/types";
import { CodeEditor } from "../../components/CodeEditor";
import { ErrorNotice } from "../../components/ErrorState";
import { Inspector, type PaneActions } from "../../components/Inspector";
import { JsonView } from "../../components/JsonView";
import { StatusBadge } from "../../components/StatusBadge";
import { Suspended } from "../../components/Suspended";
import { Time } from "../../components/Time";
import { told } from "../../components/toast";
import { PartNotLoaded } from "../../components/PartNotLoaded";
import { DeleteButton } from "../../components/DeleteButton";
import { Enabled } from "./Enabled";
import { Schedule } from "./Schedule";
import { RUNS_SHOWN, RUN_TONES, TYPES, isMade, runsQuery } from "./tasks";
import details from "../../components/Details.module.css";
import classes from "./Tasks.module.css";

/** Parses the typed configuration. Returns an error message if it is not a JSON object. */
function readConfig(text: string): JsonObject | string {
  const value = readJson(text);
  if (value === undefined) return "This is not JSON.";
  return isJsonObject(value) ? value : "The configuration is a JSON object.";
}

/** One task: its schedule, its configuration, its runs, and its actions. */
export function TaskInspector({ task, ...pane }: { task: Task } & PaneActions) {
  const cache = useQueryClient();
  const canUpdate = useCan("tasks", "update");
  const canDelete = useCan("tasks", "delete");
  const [schedule, setSchedule] = useState(task.schedule);
  const [configText, setConfigText] = useState(() => printJson(task.config, 2));
  const params = { path: { id: task.id } };
  const config = readConfig(configText);
  const isChanged = schedule !== task.schedule || typeof config === "string" || !sameJson(config, task.config);
  const [base, setBase] = useState(task);
  // Fields without typed changes follow changes from elsewhere.
  if (base !== task) {
    setBase(task);
    if (schedule === base.schedule) setSchedule(task.schedule);
    if (typeof config !== "string" && sameJson(config, base.config) && !sameJson(config, task.config)) setConfigText(printJson(task.config, 2));
  }

  const refresh = () => cache.invalidateQueries({ queryKey: ["tasks"] });
  const save = useMutation({
    mutationFn: () =>
      api.PATCH("/api/v1/tasks/{id}", {
        params,
        body: {
          ...(schedule === task.schedule ? {} : { schedule }),
          ...(typeof config === "string" || sameJson(config, task.config) ? {} : { config }),
        },
      }),
    onSuccess: async () => {
      await refresh();
      told(`${task.name} is saved.`);
    },
  });
  const run = useMutation({
    mutationFn: () => dataOf(api.POST("/api/v1/tasks/{id}/run", { params })),
    onSuccess: ({ status }) => told(`${task.name} ran and ${status}.`),
    onSettled: refresh,
  });
  const remove = useMutation({
    mutationFn: () => api.DELETE("/api/v1/tasks/{id}", { params }),
    onSuccess: async () => {
      pane.onClose();
      await refresh();
    },
  });
  const error = save.error ?? run.error ?? remove.error;
  const scheduleError = messageAt(save.error, "schedule");
  return (
    <Inspector
      title={task.name}
      {...pane}
      isDirty={canUpdate && isChanged}
      footer={
        <>
          {canUpdate && (
            <Button disabled={!isChanged || typeof config === "string"} loading={save.isPending} onClick={() => save.mutate()}>
              Save task
            </Button>
          )}
          {canUpdate && (
            <Button variant="default" leftSection={<IconPlayerPlay size={14} />} loading={run.isPending} disabled={isChanged} onClick={() => run.mutate()}>
              Run now
            </Button>
          )}
          {canDelete && isMade(task) && (
            <DeleteButton question={{ title: `Delete the task ${task.name}?`, children: "Its runs go too. What it did stays.", action: "Delete task" }} isPending={remove.isPending} onDelete={() => remove.mutate()} />
          )}
        </>
      }
    >
      <div className={details.body}>
        {error !== null && scheduleError === undefined && <ErrorNotice error={error} />}
        <Suspended by={task.suspended} adopt={canUpdate && isMade(task) ? () => api.POST("/api/v1/tasks/{id}/adopt", { params }) : undefined} onAdopted={refresh} />
        <p className="dim">{TYPES[task.type]}</p>
        <Enabled task={task} disabled={!canUpdate} label="Enabled" />
        <Schedule value={schedule} onChange={setSchedule} disabled={!canUpdate} error={scheduleError} />
        <div>
          <div className={classes.label}>Configuration</div>
          <CodeEditor label="Configuration" value={configText} onChange={setConfigText} readOnly={!canUpdate} error={typeof config === "string" ? config : undefined} />
        </div>
        <Runs task={task} />
      </div>
    </Inspector>
  );
}

function Runs({ task }: { task: Task }) {
  const query = useQuery(runsQuery(task.id));
  const runs = query.data;
  const [open, setOpen] = useState<string>();
  return (
    <section aria-labelledby="runs">
      <h3 id="runs" className={classes.label}>
        Runs
      </h3>
      {runs === undefined ? (
        <PartNotLoaded query={query} what="The runs" lines={3} />
      ) : runs.length === 0 ? (
        <p className="dim">It has not run yet.</p>
      ) : (
        <ul className={classes.runs}>
          {runs.map((run) => (
            <li key={run.id}>
              <button type="button" className={classes.run} aria-expanded={open === run.id} onClick={() => setOpen(open === run.id ? undefined : run.id)}>
                <StatusBadge tone={RUN_TONES[run.status]} plain>
                  {run.status}
                </StatusBadge>
                <span className="dim">{run.trigger === "manual" ? "by hand" : "on schedule"}</span>
                <Time at={run.startedAt} />
              </button>
              {open === run.id && <RunDetail run={run} />}
            </li>
          ))}
          {runs.length === RUNS_SHOWN && <li className="dim">The newest {RUNS_SHOWN} runs.</li>}
        </ul>
      )}
    </section>
  );
}

function RunDetail({ run: { startedAt, finishedAt, result, error } }: { run: Run }) {
  return (
    <Stack gap="sm" pb="md">
      {finishedAt !== null && <p className="dim">took {(new Date(finishedAt).getTime() - new Date(startedAt).getTime()).toLocaleString("en")} ms</p>}
      {error !== null && <JsonView label="Error" value={error} />}
      {result !== null && <JsonView label="Result" value={result} />}
      {error === null && result === null && <p className="dim">Nothing to show: it answered nothing, or you may not call its action.</p>}
    </Stack>
  );
}

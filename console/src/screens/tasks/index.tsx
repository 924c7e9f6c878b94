import { Button } from "@mantine/core";
import { IconPlus } from "@tabler/icons-react";
import { useQuery, useQueryClient } from "@tanstack/react-query";
import { Link, useNavigate, useSearch } from "@tanstack/react-router";
import { useMemo } from "react";
import { useLive } from "../../api/live";
import { useCan } from "../../api/session";
import type { NewTaskBody, Task } from "../../api/types";
import { CopyAs, asCurl } from "../../components/CopyAs";
import { type Column, DataTable, NotLoaded } from "../../components/DataTable";
import { EmptyState } from "../../components/EmptyState";
import { neighbours } from "../../components/Inspector";
import { Page } from "../../components/Page";
import { StatusBadge } from "../../components/StatusBadge";
import { Time } from "../../components/Time";
import { Enabled } from "./Enabled";
import { NewTask } from "./NewTask";
import { TaskInspector } from "./TaskInspector";
import { RUN_TONES, inWords, tasksQuery } from "./tasks";
import classes from "./Tasks.module.css";

const EXAMPLE: NewTaskBody = { name: "nightly", type: "block_action", schedule: "0 3 * * *", config: { block: "<block>", action: "<action>", input: {} } };

/** The scheduled tasks, with their last results. A task can also be run at once. */
export function TasksScreen() {
  const { open, new: creating } = useSearch({ from: "/tasks" });
  const navigate = useNavigate({ from: "/tasks" });
  const cache = useQueryClient();
  const query = useQuery(tasksQuery);
  const tasks = query.data;
  const canUpdate = useCan("tasks", "update");
  const canCreate = useCan("tasks", "create");
  const refresh = () => void cache.invalidateQueries({ queryKey: ["tasks"] });
  useLive(["task.#", "tasks.#"], refresh, { onGap: refresh, queries: [["tasks"]] });

  const columns = useMemo<Column<Task>[]>(
    () => [
      { id: "name", header: "Task", width: 240, cell: ({ name }) => <span dir="auto">{name}</span> },
      { id: "schedule", header: "Schedule", width: 300, cell: ({ schedule }) => <span title={schedule}>{inWords(schedule) ?? schedule}</span> },
      { id: "last", header: "Last run", width: 190, cell: (task) => <LastRun task={task} /> },
      { id: "next", header: "Next run", width: 140, cell: ({ enabled, nextRunAt }) => (enabled ? <Time at={nextRunAt} /> : <span className="dim">–</span>) },
      { id: "type", header: "Type", width: 160, cell: ({ type }) => <span className="mono">{type}</span> },
      {
        id: "enabled",
        header: "Enabled",
        width: 110,
        cell: (task) => <Enabled task={task} disabled={!canUpdate} />,
      },
    ],
    [canUpdate],
  );

  const at = tasks?.findIndex(({ id, name }) => id === open || name === open) ?? -1;
  const opened = at === -1 ? undefined : tasks![at];
  const go = (id: string | undefined) => void navigate({ search: (before) => ({ ...before, open: id, new: undefined }) });
  const create = canCreate && (
    <Button leftSection={<IconPlus size={14} />} renderRoot={(props) => <Link to="/tasks" search={{ new: true }} {...props} />}>
      Create task
    </Button>
  );
  return (
    <Page
      title="Tasks"
      {...(tasks === undefined ? {} : { aside: tasks.length })}
      actions={
        <>
          <CopyAs request={{ method: "GET", path: opened === undefined ? "/api/v1/tasks" : `/api/v1/tasks/${opened.id}` }} />
          {create}
        </>
      }
      inspector={
        creating === true && canCreate ? (
          <NewTask onClose={() => go(undefined)} onCreated={(task) => go(task.id)} />
        ) : opened === undefined ? undefined : (
          <TaskInspector
            key={opened.id}
            task={opened}
            onClose={() => go(undefined)}
            {...neighbours(tasks!, at, ({ id }) => go(id))}
          />
        )
      }
    >
      {tasks === undefined ? (
        <NotLoaded query={query} what="The tasks" rows={4} />
      ) : tasks.length === 0 ? (
        <EmptyState title="No tasks yet" docs="POST /api/v1/tasks" action={create} curl={asCurl({ method: "POST", path: "/api/v1/tasks", body: EXAMPLE })}>
          A task calls an action of a block on a schedule. Install a block, then create a task for one of its actions.
        </EmptyState>
      ) : (
        <DataTable label="Tasks" columns={columns} rows={tasks} rowId={({ id }) => id} openId={opened?.id} onOpen={({ id }) => go(id)} narrowColumns={["name", "last"]} />
      )}
    </Page>
  );
}

function LastRun({ task: { lastRunAt, lastStatus, suspended } }: { task: Task }) {
  if (suspended !== null) return <StatusBadge tone="warn" plain>suspended</StatusBadge>;
  if (lastStatus === null) return <span className="dim">never</span>;
  return (
    <span className={classes.last}>
      <StatusBadge tone={RUN_TONES[lastStatus]} plain>
        {lastStatus}
      </StatusBadge>
      <span className="dim">
        <Time at={lastRunAt} />
      </span>
    </span>
  );
}

import { api } from "../../api/client";
import type { Task } from "../../api/types";
import { EnabledSwitch } from "../../components/EnabledSwitch";
import { tasksQuery } from "./tasks";

export function Enabled({ task, disabled, label }: { task: Task; disabled: boolean; label?: string }) {
  const save = (enabled: boolean) => api.PATCH("/api/v1/tasks/{id}", { params: { path: { id: task.id } }, body: { enabled } });
  return <EnabledSwitch listKey={tasksQuery.queryKey} item={task} isSame={({ id }) => id === task.id} name={task.name} save={save} disabled={disabled} {...(label === undefined ? {} : { label })} />;
}

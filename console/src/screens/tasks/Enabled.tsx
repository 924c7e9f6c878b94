import { Switch } from "@mantine/core";
import { useQueryClient } from "@tanstack/react-query";
import { request } from "../../api/client";
import { failed } from "../../components/toast";
import { type Task, tasksQuery } from "./tasks";

/** Applied at once, taken back when the server refuses. */
export function Enabled({ task, disabled, label }: { task: Task; disabled: boolean; label?: string }) {
  const cache = useQueryClient();
  const change = async (enabled: boolean) => {
    const set = (value: boolean) => cache.setQueryData(tasksQuery.queryKey, (before) => before?.map((each) => (each.id === task.id ? { ...each, enabled: value } : each)));
    set(enabled);
    try {
      await request("PATCH", `/api/v1/tasks/${task.id}`, { body: { enabled } });
    } catch (error) {
      set(!enabled);
      failed(`${task.name} was not ${enabled ? "enabled" : "disabled"}`, error);
    }
    void cache.invalidateQueries({ queryKey: ["tasks"], exact: true });
  };
  return (
    <Switch
      label={label}
      checked={task.enabled}
      disabled={disabled}
      aria-label={label === undefined ? `${task.name} is enabled` : undefined}
      onClick={(event) => event.stopPropagation()}
      onChange={({ currentTarget: { checked } }) => void change(checked)}
    />
  );
}

import { SegmentedControl, Select, Switch, TextInput } from "@mantine/core";
import { useMutation, useQuery, useQueryClient } from "@tanstack/react-query";
import { useState } from "react";
import { api, dataOf } from "../../api/client";
import { errorBesides, messageAt } from "../../api/errors";
import { readJson } from "../../api/json";
import { useCan } from "../../api/session";
import type { NewTaskBody, Task } from "../../api/types";
import { CodeEditor } from "../../components/CodeEditor";
import { ErrorNotice } from "../../components/ErrorState";
import { FormInspector } from "../../components/FormInspector";
import { UserSelect } from "../users/UserSelect";
import { Schedule } from "./Schedule";
import classes from "./Tasks.module.css";

const actionsQuery = {
  queryKey: ["blocks", "actions"],
  queryFn: async ({ signal }: { signal: AbortSignal }) => (await dataOf(api.GET("/api/v1/blocks/actions", { signal }))).actions,
};

type Kind = NewTaskBody["type"];

/** Creates a task that calls an action of a block or erases a user. It runs with the rights of the person who creates it. */
export function NewTask({ onClose, onCreated }: { onClose: () => void; onCreated: (task: Task) => void }) {
  const cache = useQueryClient();
  const actions = useQuery(actionsQuery);
  const [name, setName] = useState("");
  const [action, setAction] = useState<string | null>(null);
  const [schedule, setSchedule] = useState("0 * * * *");
  const [inputText, setInputText] = useState("{}");
  const [kind, setKind] = useState<Kind>("block_action");
  const [userId, setUserId] = useState<string | null>(null);
  const [deletesRecords, setDeletesRecords] = useState(false);
  const deletesUsers = useCan("users", "delete", "all");
  const deletesEvents = useCan("events", "delete", "all");
  const readsUsers = useCan("users", "read");
  const mayErase = deletesUsers && deletesEvents && readsUsers;
  const input = readJson(inputText);
  const create = useMutation({
    mutationFn: async () => {
      if (kind === "erase_user") return dataOf(api.POST("/api/v1/tasks", { body: { name, type: kind, schedule, config: { userId: userId!, records: deletesRecords ? "delete" : "keep" } } }));
      const [block = "", actionName = ""] = action!.split("/");
      return dataOf(api.POST("/api/v1/tasks", { body: { name, type: kind, schedule, config: { block, action: actionName, input } } }));
    },
    onSuccess: async (task) => {
      await cache.invalidateQueries({ queryKey: ["tasks"] });
      onCreated(task);
    },
  });
  const chosen = actions.data?.find((each) => `${each.block}/${each.name}` === action);
  return (
    <FormInspector
      title="New task"
      onClose={onClose}
      isDirty={name !== "" || action !== null || inputText !== "{}" || userId !== null}
      action="Create task"
      isWhole={name.trim() !== "" && (kind === "block_action" ? action !== null && input !== undefined : userId !== null)}
      request={create}
      error={errorBesides(create.error, ["name", "schedule"])}
    >
      {kind === "block_action" && actions.error !== null && <ErrorNotice error={actions.error} title="The blocks' actions could not be loaded" onRetry={() => void actions.refetch()} />}
      <TextInput label="Name" required value={name} error={messageAt(create.error, "name")} onChange={({ currentTarget }) => setName(currentTarget.value)} data-autofocus />
      {mayErase && (
        <SegmentedControl
          aria-label="What it does"
          value={kind}
          onChange={(value) => setKind(value as Kind)}
          data={[
            { value: "block_action", label: "Call an action" },
            { value: "erase_user", label: "Erase a user" },
          ]}
        />
      )}
      {kind === "erase_user" ? (
        <>
          <UserSelect label="User" description="Whose traces are erased: the account, events, and who wrote what" required value={userId} onChange={setUserId} />
          <Switch label="Delete the records that they created" description="Else the records stay, and no longer show who wrote them." checked={deletesRecords} onChange={({ currentTarget }) => setDeletesRecords(currentTarget.checked)} />
        </>
      ) : (
        <>
          <Select
            label="Action"
            required
            searchable
            placeholder={actions.data?.length === 0 ? "No block has an action" : "Choose an action"}
            description={chosen?.description}
            data={(actions.data ?? []).map((each) => ({ value: `${each.block}/${each.name}`, label: `${each.block} · ${each.name}` }))}
            value={action}
            onChange={setAction}
          />
          <div>
            <div className={classes.label}>Input</div>
            <CodeEditor label="Input" value={inputText} onChange={setInputText} error={input === undefined ? "This is not JSON." : undefined} />
          </div>
        </>
      )}
      <Schedule value={schedule} onChange={setSchedule} error={messageAt(create.error, "schedule")} />
      <p className="dim">{kind === "erase_user" ? "It erases at its next time, or when you run it. Nothing brings back what is erased. " : ""}It runs with the rights that you have at each run.</p>
    </FormInspector>
  );
}

import { Select, TextInput } from "@mantine/core";
import { useMutation, useQuery, useQueryClient } from "@tanstack/react-query";
import { useState } from "react";
import { api, ok } from "../../api/client";
import { errorBesides, messageAt } from "../../api/errors";
import { ErrorNotice } from "../../components/ErrorState";
import { FormInspector } from "../../components/FormInspector";
import { OneTimeSecret } from "../../components/OneTimeSecret";
import { asCurl } from "../../components/CopyAs";
import { CodeBlock } from "../../components/CodeBlock";
import { useCan } from "../../api/session";
import { UserSelect } from "../users/UserSelect";
import { rolesQuery } from "../users/users";

const DAY_MS = 86_400_000;
const LIFETIMES = [
  { value: "", label: "Never" },
  { value: "7", label: "In 7 days" },
  { value: "30", label: "In 30 days" },
  { value: "90", label: "In 90 days" },
  { value: "365", label: "In a year" },
];

/** Creates a key and shows it once. Only this component has the key, and drops it when it closes. */
export function NewKey({ onClose }: { onClose: () => void }) {
  const cache = useQueryClient();
  const roles = useQuery(rolesQuery);
  const [name, setName] = useState("");
  const [roleId, setRoleId] = useState<string | null>(null);
  const [userId, setUserId] = useState<string | null>(null);
  const [days, setDays] = useState("");
  const readsUsers = useCan("users", "read");
  const create = useMutation({
    mutationFn: () =>
      ok(
        api.POST("/api/v1/api-keys", {
          body: { name: name.trim(), roleId: roleId!, ...(userId === null ? {} : { userId }), ...(days === "" ? {} : { expiresAt: new Date(Date.now() + Number(days) * DAY_MS).toISOString() }) },
        }),
      ),
    onSuccess: () => cache.invalidateQueries({ queryKey: ["api-keys"] }),
    // The cache must not keep a secret.
    gcTime: 0,
  });
  const made = create.data && {
    title: "Key created",
    onDone: onClose,
    content: (
      <>
        <OneTimeSecret label={create.data.data.name} secret={create.data.key} />
        <CodeBlock label="Try it" code={`export SVC_API_KEY=<the key>\n${asCurl({ method: "GET", path: "/api/v1/data" })}`} />
      </>
    ),
  };
  const errorOf = (field: string) => messageAt(create.error, field);
  return (
    <FormInspector
      title="New key"
      onClose={onClose}
      isDirty={name !== "" || roleId !== null || userId !== null}
      action="Create key"
      isWhole={name.trim() !== "" && roleId !== null}
      request={create}
      made={made}
      error={errorBesides(create.error, ["name", "roleId", "expiresAt", ...(readsUsers ? ["userId"] : [])])}
    >
      {roles.error !== null && <ErrorNotice error={roles.error} title="The roles could not be loaded" onRetry={() => void roles.refetch()} />}
      <TextInput label="Name" description="What uses it" required value={name} error={errorOf("name")} onChange={({ currentTarget }) => setName(currentTarget.value)} autoFocus />
      <Select label="Role" description="What it may do; never more than you may" required searchable placeholder="Choose a role" data={roles.data?.map(({ id, name: label }) => ({ value: id, label })) ?? []} value={roleId} error={errorOf("roleId")} onChange={setRoleId} />
      {readsUsers && <UserSelect label="User" description="Whose records it writes, and whose own rows it has" placeholder="You" clearable value={userId} error={errorOf("userId")} onChange={setUserId} clearButtonProps={{ "aria-label": "Create the key for yourself" }} />}
      <Select label="Expires" data={LIFETIMES} value={days} error={errorOf("expiresAt")} onChange={(value) => setDays(value ?? "")} allowDeselect={false} />
    </FormInspector>
  );
}

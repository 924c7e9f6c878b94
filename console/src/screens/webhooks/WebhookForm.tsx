import { ActionIcon, Button, TagsInput, TextInput } from "@mantine/core";
import { IconPlus, IconTrash } from "@tabler/icons-react";
import { useObjects } from "../../api/objects";
import classes from "../../components/Details.module.css";
import own from "./Webhooks.module.css";

export interface WebhookDraft {
  name: string;
  url: string;
  topics: string[];
  headers: { name: string; value: string }[];
}

/** The name, the address, the topics and the headers of a webhook. `errorOf` returns the server's message for a field. */
export function WebhookForm({ draft, onChange, errorOf, disabled = false }: { draft: WebhookDraft; onChange: (draft: WebhookDraft) => void; errorOf: (field: string) => string | undefined; disabled?: boolean }) {
  const objects = useObjects();
  const suggestions = ["data.#", "#", ...(objects.data?.flatMap(({ name }) => [`data.${name}.#`, `data.${name}.created`]) ?? [])];
  const header = (index: number, change: Partial<{ name: string; value: string }>) => onChange({ ...draft, headers: draft.headers.map((each, at) => (at === index ? { ...each, ...change } : each)) });
  return (
    <>
      <TextInput label="Name" placeholder="optional" value={draft.name} disabled={disabled} error={errorOf("name")} onChange={({ currentTarget }) => onChange({ ...draft, name: currentTarget.value })} />
      <TextInput label="URL" required placeholder="https://example.com/hook" classNames={{ input: "mono" }} value={draft.url} disabled={disabled} error={errorOf("url")} spellCheck={false} onChange={({ currentTarget }) => onChange({ ...draft, url: currentTarget.value })} />
      <TagsInput
        label="Topics"
        description="* is one segment, # any number of them"
        required
        placeholder={draft.topics.length === 0 ? "data.task.#" : undefined}
        data={suggestions}
        maxDropdownHeight={200}
        value={draft.topics}
        disabled={disabled}
        error={errorOf("topics")}
        acceptValueOnBlur
        onChange={(topics) => onChange({ ...draft, topics })}
      />
      <fieldset className={own.headers} disabled={disabled}>
        <legend className={classes.head}>Headers</legend>
        {errorOf("headers") !== undefined && <p role="alert">{errorOf("headers")}</p>}
        {draft.headers.map(({ name, value }, index) => (
          // While headers are being typed, only the index identifies them.
          // oxlint-disable-next-line react/no-array-index-key
          <div className={own.header} key={index}>
            <TextInput aria-label={`Name of header ${index + 1}`} placeholder="authorization" value={name} onChange={({ currentTarget }) => header(index, { name: currentTarget.value })} />
            <TextInput aria-label={`Value of header ${index + 1}`} value={value} onChange={({ currentTarget }) => header(index, { value: currentTarget.value })} />
            <ActionIcon aria-label={`Remove header ${index + 1}`} onClick={() => onChange({ ...draft, headers: draft.headers.filter((_, at) => at !== index) })}>
              <IconTrash size={14} />
            </ActionIcon>
          </div>
        ))}
        <Button variant="subtle" size="compact-xs" leftSection={<IconPlus size={12} />} onClick={() => onChange({ ...draft, headers: [...draft.headers, { name: "", value: "" }] })}>
          Add header
        </Button>
      </fieldset>
    </>
  );
}

export function headersOf(draft: WebhookDraft): Record<string, string> {
  return Object.fromEntries(draft.headers.filter(({ name }) => name.trim() !== "").map(({ name, value }) => [name.trim(), value]));
}

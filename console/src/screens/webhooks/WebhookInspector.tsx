import { Button } from "@mantine/core";
import { useMutation, useQuery, useQueryClient } from "@tanstack/react-query";
import { Link, useNavigate } from "@tanstack/react-router";
import { useState } from "react";
import { api, dataOf, ok } from "../../api/client";
import { errorBesides, messageAt } from "../../api/errors";
import { sameJson } from "../../api/json";
import { every } from "../../api/poll";
import { useCan } from "../../api/session";
import type { Webhook } from "../../api/types";
import { CodeBlock } from "../../components/CodeBlock";
import { confirm } from "../../components/confirm-store";
import { ErrorNotice } from "../../components/ErrorState";
import { FactList } from "../../components/FactList";
import { FormInspector } from "../../components/FormInspector";
import { Id } from "../../components/Id";
import { Inspector, type PaneActions, neighbours } from "../../components/Inspector";
import { OneTimeSecret } from "../../components/OneTimeSecret";
import { Suspended } from "../../components/Suspended";
import { StatusBadge } from "../../components/StatusBadge";
import { Time } from "../../components/Time";
import { told } from "../../components/toast";
import { PartNotLoaded } from "../../components/PartNotLoaded";
import { DeleteButton } from "../../components/DeleteButton";
import { consumerOf } from "../deliveries/consumers";
import { DeliveryStatus, stateOf } from "../deliveries/deliveries";
import { Enabled } from "./Enabled";
import { Warnings } from "./Warnings";
import { WebhookForm, type WebhookDraft, headersOf } from "./WebhookForm";
import { HIDDEN, webhooksQuery } from "./webhooks";
import classes from "../../components/Details.module.css";

const EMPTY: WebhookDraft = { name: "", url: "", topics: ["data.#"], headers: [] };

const draftOf = ({ name, url, topics, headers }: Webhook): WebhookDraft => ({ name: name ?? "", url, topics, headers: Object.entries(headers).map(([each, value]) => ({ name: each, value })) });

/** The fields that show their own errors. */
const FIELDS = ["name", "url", "topics", "headers"];

export function NewWebhook() {
  const cache = useQueryClient();
  const navigate = useNavigate({ from: "/webhooks" });
  const [draft, setDraft] = useState(EMPTY);
  const close = () => void navigate({ search: {} });
  const create = useMutation({
    mutationFn: () => ok(api.POST("/api/v1/webhooks", { body: { ...(draft.name.trim() === "" ? {} : { name: draft.name.trim() }), url: draft.url.trim(), topics: draft.topics, headers: headersOf(draft) } })),
    onSuccess: () => cache.invalidateQueries({ queryKey: ["webhooks"] }),
    // The cache must not keep a secret.
    gcTime: 0,
  });
  const { data } = create;
  const made = data && {
    title: "Webhook created",
    onDone: () => void navigate({ search: { open: data.data.id } }),
    content: (
      <>
        <Warnings warnings={data.warnings} />
        <OneTimeSecret label="Signing secret" secret={data.secret ?? ""}>
          Give it to the receiver. It is not shown again.
        </OneTimeSecret>
        <Link to="/webhooks" search={{ tab: "verify" }}>
          How the receiver verifies a signature
        </Link>
      </>
    ),
  };
  return (
    <FormInspector
      title="New webhook"
      onClose={close}
      isDirty={!sameJson(draft, EMPTY)}
      action="Create webhook"
      isWhole={draft.url.trim() !== "" && draft.topics.length > 0}
      request={create}
      made={made}
      error={errorBesides(create.error, FIELDS)}
    >
      <WebhookForm draft={draft} onChange={setDraft} errorOf={(field) => messageAt(create.error, field)} />
    </FormInspector>
  );
}

export function WebhookInspector({ id }: { id: string }) {
  const navigate = useNavigate({ from: "/webhooks" });
  const query = useQuery(webhooksQuery);
  const webhooks = query.data;
  const at = webhooks?.findIndex((each) => each.id === id) ?? -1;
  const go = (next: string | undefined) => void navigate({ search: next === undefined ? {} : { open: next } });
  if (webhooks === undefined || at === -1)
    return (
      <Inspector title="Webhook" onClose={() => go(undefined)}>
        {webhooks !== undefined ? <p className="dim">This webhook is gone.</p> : <PartNotLoaded query={query} what="The webhooks" />}
      </Inspector>
    );
  return (
    <Details
      webhook={webhooks[at]!}
      onClose={() => go(undefined)}
      {...neighbours(webhooks, at, (next) => go(next.id))}
    />
  );
}

function Details({ webhook, ...pane }: { webhook: Webhook } & PaneActions) {
  const cache = useQueryClient();
  // A webhook that a block declares can only be changed by the block. The person can still test it, rotate its secret, and enable or
  // disable it.
  const canSwitch = useCan("webhooks", "update");
  const canUpdate = canSwitch && webhook.source === null;
  const canDelete = useCan("webhooks", "delete") && webhook.source === null;
  const [draft, setDraft] = useState(() => draftOf(webhook));
  const [base, setBase] = useState(webhook);
  // Fields without typed changes follow changes from elsewhere.
  if (base !== webhook) {
    const [was, now] = [draftOf(base), draftOf(webhook)];
    const follow = <Key extends keyof WebhookDraft>(key: Key) => (sameJson(draft[key], was[key]) ? now[key] : draft[key]);
    setBase(webhook);
    setDraft({ name: follow("name"), url: follow("url"), topics: follow("topics"), headers: follow("headers") });
  }
  const params = { path: { id: webhook.id } };
  const refresh = () => cache.invalidateQueries({ queryKey: ["webhooks"] });
  const isChanged = !sameJson(draft, draftOf(webhook));
  const save = useMutation({
    mutationFn: () => {
      const before = draftOf(webhook);
      const body = {
        ...(draft.name === before.name ? {} : { name: draft.name.trim() === "" ? null : draft.name.trim() }),
        ...(draft.url === before.url ? {} : { url: draft.url.trim() }),
        ...(sameJson(draft.topics, before.topics) ? {} : { topics: draft.topics }),
        ...(sameJson(draft.headers, before.headers) ? {} : { headers: headersOf(draft) }),
      };
      return ok(api.PATCH("/api/v1/webhooks/{id}", { params, body }));
    },
    onSuccess: async ({ data }) => {
      await refresh();
      setDraft(draftOf(data));
      told("The webhook is saved.");
    },
  });
  const rotate = useMutation({ mutationFn: () => ok(api.POST("/api/v1/webhooks/{id}/rotate-secret", { params })), gcTime: 0 });
  const test = useMutation({ mutationFn: async () => (await dataOf(api.POST("/api/v1/webhooks/{id}/test", { params }))).eventId });
  const remove = useMutation({
    mutationFn: () => api.DELETE("/api/v1/webhooks/{id}", { params }),
    onSuccess: async () => {
      pane.onClose();
      told("The webhook is deleted.");
      await refresh();
    },
  });
  const error = errorBesides(save.error, FIELDS) ?? rotate.error ?? test.error ?? remove.error;
  const loses = draft.url !== webhook.url && draft.headers.some(({ value }) => value === HIDDEN);
  return (
    <Inspector
      title={webhook.name ?? webhook.url}
      {...pane}
      isDirty={canUpdate && isChanged}
      footer={
        <>
          {canUpdate && (
            <Button disabled={!isChanged || draft.url.trim() === "" || draft.topics.length === 0} loading={save.isPending} onClick={() => save.mutate()}>
              Save
            </Button>
          )}
          {canSwitch && (
            <Button variant="default" disabled={isChanged} loading={test.isPending} onClick={() => test.mutate()}>
              Send test
            </Button>
          )}
          {canSwitch && (
            <Button
              variant="subtle"
              px={8}
              loading={rotate.isPending}
              onClick={async () => {
                if (await confirm({ title: "Rotate the signing secret?", children: "For 24 hours, each delivery carries a signature of both secrets. Give the receiver the new one in that time; then the old one stops.", action: "Rotate secret" })) rotate.mutate();
              }}
            >
              Rotate secret
            </Button>
          )}
          {canDelete && (
            <DeleteButton px={8} question={{ title: `Delete the webhook ${webhook.name ?? webhook.url}?`, children: "Deliveries that wait are dropped.", action: "Delete webhook" }} isPending={remove.isPending} onDelete={() => remove.mutate()} />
          )}
        </>
      }
    >
      <div className={classes.body}>
        {error !== null && <ErrorNotice error={error} />}
        <Warnings warnings={save.data?.warnings} />
        <Suspended by={webhook.suspended} adopt={canUpdate ? () => api.POST("/api/v1/webhooks/{id}/adopt", { params }) : undefined} onAdopted={refresh} />
        {rotate.data !== undefined && <OneTimeSecret label="New signing secret" secret={rotate.data.secret} />}
        {test.data !== undefined && <TestResult webhook={webhook.id} eventId={test.data} />}
        {webhook.source !== null && <p className="dim">The block {webhook.source.slice("block:".length)} declares it, and changes it when it is upgraded.</p>}
        <WebhookForm draft={draft} onChange={setDraft} errorOf={(field) => messageAt(save.error, field)} disabled={!canUpdate} />
        {loses && <p className="dim">Header values do not follow a webhook to another URL: type them again.</p>}
        <FactList facts={{ Enabled: <Enabled webhook={webhook} disabled={!canSwitch} />, Id: <Id id={webhook.id} />, Created: <Time at={webhook.createdAt} exact /> }} />
        <Link to="/deliveries" search={{ consumer: consumerOf(webhook.id) }}>
          Its deliveries
        </Link>
      </div>
    </Inspector>
  );
}

/** The result of a test. It is polled until the receiver has responded. */
function TestResult({ webhook, eventId }: { webhook: string; eventId: string }) {
  const consumer = consumerOf(webhook);
  const { data: delivery } = useQuery({
    queryKey: ["deliveries", "test", eventId],
    queryFn: async ({ signal }) => (await dataOf(api.GET("/api/v1/events/deliveries", { params: { query: { eventId, consumer } }, signal })))[0] ?? null,
    refetchInterval: (query) => (query.state.data === undefined || query.state.data === null || stateOf(query.state.data) === "pending" ? every(500)(query) : false),
  });
  return (
    <section className={classes.handOver} aria-live="polite">
      <h3 className={classes.head}>Test</h3>
      {delivery === undefined || delivery === null ? <StatusBadge tone="wait">on the way</StatusBadge> : <DeliveryStatus delivery={delivery} />}
      {delivery?.error !== null && delivery?.error !== undefined && <CodeBlock code={delivery.error} label="The receiver's answer" wrap />}
      {delivery?.status === "delivered" && <span>The receiver accepted it <Time at={delivery.deliveredAt} />.</span>}
    </section>
  );
}

import { Checkbox, Select, TextInput } from "@mantine/core";
import { useMutation, useQuery, useQueryClient } from "@tanstack/react-query";
import { Link, useNavigate } from "@tanstack/react-router";
import { useState } from "react";
import { api, ok } from "../../api/client";
import { errorBesides, messageAt } from "../../api/errors";
import { isJsonObject, readJson } from "../../api/json";
import { useCan } from "../../api/session";
import { CodeEditor } from "../../components/CodeEditor";
import { ErrorNotice } from "../../components/ErrorState";
import { FactList } from "../../components/FactList";
import { FormInspector } from "../../components/FormInspector";
import { Inspector } from "../../components/Inspector";
import { JsonView } from "../../components/JsonView";
import { Suspended } from "../../components/Suspended";
import { told } from "../../components/toast";
import { PartNotLoaded } from "../../components/PartNotLoaded";
import { DeleteButton } from "../../components/DeleteButton";
import { Warnings } from "./Warnings";
import { subscriptionsQuery } from "./webhooks";
import classes from "../../components/Details.module.css";

/** An example of the configuration that `persist_event` needs. */
const PERSIST = `{
  "object": "audit",
  "map": { "topic": "event.topic", "record": "payload.id" }
}`;

export function SubscriptionInspector({ consumer }: { consumer: string }) {
  const cache = useQueryClient();
  const navigate = useNavigate({ from: "/webhooks" });
  const query = useQuery(subscriptionsQuery);
  const canUpdate = useCan("events", "update");
  const canDelete = useCan("events", "delete");
  const params = { path: { consumer } };
  const close = () => void navigate({ search: { tab: "subscriptions" } });
  const refresh = () => cache.invalidateQueries({ queryKey: ["subscriptions"] });
  const remove = useMutation({
    mutationFn: () => api.DELETE("/api/v1/events/subscriptions/{consumer}", { params }),
    onSuccess: async () => {
      close();
      told("The subscription is deleted.");
      await refresh();
    },
  });
  const subscription = query.data?.find((each) => each.consumer === consumer);
  return (
    <Inspector
      title={consumer}
      onClose={close}
      footer={
        canDelete &&
        subscription !== undefined && (
          <DeleteButton question={{ title: `Delete the subscription ${consumer}?`, children: "Deliveries that wait are dropped.", action: "Delete subscription" }} isPending={remove.isPending} onDelete={() => remove.mutate()}>
            Delete subscription
          </DeleteButton>
        )
      }
    >
      {subscription === undefined ? (
        query.data === undefined ? <PartNotLoaded query={query} what="The subscriptions" /> : <p className="dim">This subscription is gone.</p>
      ) : (
        <div className={classes.body}>
          {remove.error !== null && <ErrorNotice error={remove.error} />}
          <Suspended by={subscription.suspended} adopt={canUpdate ? () => api.POST("/api/v1/events/subscriptions/{consumer}/adopt", { params }) : undefined} onAdopted={refresh} />
          <FactList
            facts={{
              Topic: <span className="mono">{subscription.event}</span>,
              Handler: <span className="mono">{subscription.handler}</span>,
              Delivered: subscription.perInstance ? "to each instance" : "once, by one of all instances",
            }}
          />
          <section>
            <h3 className={classes.head}>Configuration</h3>
            <JsonView value={subscription.config} label="Configuration" />
          </section>
          <Link to="/deliveries" search={{ consumer }}>
            Its deliveries
          </Link>
        </div>
      )}
    </Inspector>
  );
}

export function NewSubscription() {
  const cache = useQueryClient();
  const navigate = useNavigate({ from: "/webhooks" });
  const [event, setEvent] = useState("data.#");
  const [consumer, setConsumer] = useState("");
  const [handler, setHandler] = useState<"log_event" | "persist_event">("log_event");
  const [configText, setConfigText] = useState("{}");
  const [perInstance, setPerInstance] = useState(false);
  const typedConfig = readJson(configText);
  const config = isJsonObject(typedConfig) ? typedConfig : undefined;
  const show = () => navigate({ search: { tab: "subscriptions", open: consumer.trim() } });
  const create = useMutation({
    mutationFn: () => ok(api.POST("/api/v1/events/subscriptions", { body: { event: event.trim(), consumer: consumer.trim(), handler, ...(config === undefined ? {} : { config }), perInstance } })),
    onSuccess: async ({ warnings }) => {
      await cache.invalidateQueries({ queryKey: ["subscriptions"] });
      if (warnings === undefined) await show();
    },
  });
  const errorOf = (field: string) => messageAt(create.error, field);
  return (
    <FormInspector
      title="New subscription"
      onClose={() => void navigate({ search: { tab: "subscriptions" } })}
      isDirty={consumer !== "" || event !== "data.#" || (configText !== "{}" && configText !== PERSIST)}
      action="Create subscription"
      isWhole={event.trim() !== "" && consumer.trim() !== "" && config !== undefined}
      request={create}
      made={create.data?.warnings === undefined ? undefined : { title: "Subscription created", onDone: () => void show(), content: <Warnings warnings={create.data.warnings} /> }}
      error={errorBesides(create.error, ["event", "consumer", "handler"])}
    >
      <TextInput label="Topic" description="* is one segment, # any number of them" required classNames={{ input: "mono" }} value={event} error={errorOf("event")} onChange={({ currentTarget }) => setEvent(currentTarget.value)} />
      <TextInput label="Consumer" description="A name of its own: each consumer gets its own copy" required value={consumer} error={errorOf("consumer")} onChange={({ currentTarget }) => setConsumer(currentTarget.value)} />
      <Select
        label="Handler"
        data={[
          { value: "log_event", label: "log_event: a line in the server's log" },
          { value: "persist_event", label: "persist_event: a record in an object" },
        ]}
        value={handler}
        error={errorOf("handler")}
        allowDeselect={false}
        onChange={(value) => {
          setHandler(value === "persist_event" ? value : "log_event");
          if (configText === "{}" && value === "persist_event") setConfigText(PERSIST);
          if (configText === PERSIST && value === "log_event") setConfigText("{}");
        }}
      />
      <div>
        <div className={classes.head}>Configuration</div>
        <CodeEditor label="Configuration" value={configText} onChange={setConfigText} error={config === undefined ? "The configuration is a JSON object." : undefined} />
      </div>
      <Checkbox label="Deliver to each instance" checked={perInstance} onChange={({ currentTarget }) => setPerInstance(currentTarget.checked)} />
    </FormInspector>
  );
}

import { Button } from "@mantine/core";
import { IconPlus } from "@tabler/icons-react";
import { Link, linkOptions, useSearch } from "@tanstack/react-router";
import { useCan } from "../../api/session";
import { CopyAs } from "../../components/CopyAs";
import { Page } from "../../components/Page";
import { SubscriptionList } from "./SubscriptionList";
import { NewSubscription, SubscriptionInspector } from "./SubscriptionInspector";
import { Verify } from "./Verify";
import { NewWebhook, WebhookInspector } from "./WebhookInspector";
import { WebhookList } from "./WebhookList";

/** The receivers of events: other services through signed requests, and handlers through subscriptions. */
export function WebhooksScreen() {
  const { tab = "webhooks", open, new: creating } = useSearch({ from: "/webhooks" });
  const createsWebhooks = useCan("webhooks", "create");
  const createsSubscriptions = useCan("events", "create");
  const canCreate = tab === "webhooks" ? createsWebhooks : tab === "subscriptions" && createsSubscriptions;
  const create = canCreate && (
    <Button leftSection={<IconPlus size={14} />} renderRoot={(props) => <Link to="/webhooks" search={tab === "webhooks" ? { new: true } : { tab, new: true }} {...props} />}>
      {tab === "webhooks" ? "Create webhook" : "Create subscription"}
    </Button>
  );
  const inspector =
    tab === "webhooks" ? (
      creating === true && createsWebhooks ? (
        <NewWebhook />
      ) : (
        open !== undefined && <WebhookInspector key={open} id={open} />
      )
    ) : tab === "subscriptions" ? (
      creating === true && createsSubscriptions ? (
        <NewSubscription />
      ) : (
        open !== undefined && <SubscriptionInspector key={open} consumer={open} />
      )
    ) : undefined;
  return (
    <Page
      title="Webhooks"
      tabs={[
        { label: "Webhooks", link: linkOptions({ to: "/webhooks", search: {} }), active: tab === "webhooks" },
        { label: "Subscriptions", link: linkOptions({ to: "/webhooks", search: { tab: "subscriptions" } }), active: tab === "subscriptions" },
        { label: "Verify a signature", link: linkOptions({ to: "/webhooks", search: { tab: "verify" } }), active: tab === "verify" },
      ]}
      actions={
        tab !== "verify" && (
          <>
            <CopyAs request={{ method: "GET", path: tab === "webhooks" ? "/api/v1/webhooks" : "/api/v1/events/subscriptions" }} />
            {create}
          </>
        )
      }
      padded={tab === "verify"}
      inspector={inspector}
    >
      {tab === "webhooks" ? <WebhookList create={create} /> : tab === "subscriptions" ? <SubscriptionList create={create} /> : <Verify />}
    </Page>
  );
}

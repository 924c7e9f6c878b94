import { api } from "../../api/client";
import type { Webhook } from "../../api/types";
import { EnabledSwitch } from "../../components/EnabledSwitch";
import { webhooksQuery } from "./webhooks";

export function Enabled({ webhook, disabled }: { webhook: Webhook; disabled: boolean }) {
  const save = (enabled: boolean) => api.PATCH("/api/v1/webhooks/{id}", { params: { path: { id: webhook.id } }, body: { enabled } });
  return <EnabledSwitch listKey={webhooksQuery.queryKey} item={webhook} isSame={({ id }) => id === webhook.id} name={webhook.name ?? webhook.url} save={save} disabled={disabled} />;
}

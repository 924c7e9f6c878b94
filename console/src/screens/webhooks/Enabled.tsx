import { Switch } from "@mantine/core";
import { useQueryClient } from "@tanstack/react-query";
import { request } from "../../api/client";
import { failed } from "../../components/toast";
import { type Webhook, webhooksQuery } from "./webhooks";

/** Applied at once, taken back when the server refuses. */
export function Enabled({ webhook, disabled }: { webhook: Webhook; disabled: boolean }) {
  const cache = useQueryClient();
  const change = async (enabled: boolean) => {
    const set = (value: boolean) => cache.setQueryData(webhooksQuery.queryKey, (before) => before?.map((each) => (each.id === webhook.id ? { ...each, enabled: value } : each)));
    set(enabled);
    try {
      await request("PATCH", `/api/v1/webhooks/${webhook.id}`, { body: { enabled } });
    } catch (error) {
      set(!enabled);
      failed(`The webhook was not ${enabled ? "enabled" : "disabled"}`, error);
    }
    void cache.invalidateQueries({ queryKey: ["webhooks"] });
  };
  return (
    <Switch
      checked={webhook.enabled}
      disabled={disabled}
      aria-label={`${webhook.name ?? webhook.url} is enabled`}
      onClick={(event) => event.stopPropagation()}
      onChange={({ currentTarget: { checked } }) => void change(checked)}
    />
  );
}

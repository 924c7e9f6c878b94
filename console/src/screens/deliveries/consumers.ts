/** Names of consumer groups. */
import type { Webhook } from "../../api/types";

const WEBHOOK = "webhook:";
/** The group that sends mail. */
export const MAIL = "svc:mail";

/** The id of the webhook that a consumer group is of. */
export const webhookOf = (consumer: string): string | undefined => (consumer.startsWith(WEBHOOK) ? consumer.slice(WEBHOOK.length) : undefined);

/** The consumer group of a webhook. */
export const consumerOf = (webhook: string) => `${WEBHOOK}${webhook}`;

/** What a consumer group is called: webhooks by their name or address, if they are known. */
export function nameOf(consumer: string, webhooks: Pick<Webhook, "id" | "name" | "url">[] | undefined): string {
  if (consumer === MAIL) return "Mail";
  const webhook = webhooks?.find(({ id }) => id === webhookOf(consumer));
  return webhook?.name ?? webhook?.url ?? consumer;
}

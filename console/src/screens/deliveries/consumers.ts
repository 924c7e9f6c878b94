/** The names of consumer groups. */
import type { Webhook } from "../../api/types";

const WEBHOOK = "webhook:";
/** The consumer group that sends mail. */
export const MAIL = "svc:mail";

/** The id of the webhook to which a consumer group belongs. */
export const webhookOf = (consumer: string): string | undefined => (consumer.startsWith(WEBHOOK) ? consumer.slice(WEBHOOK.length) : undefined);

export const consumerOf = (webhook: string) => `${WEBHOOK}${webhook}`;

/** The name of a consumer group for people. For a webhook, it is the webhook's name or address, if it is known. */
export function nameOf(consumer: string, webhooks: Pick<Webhook, "id" | "name" | "url">[] | undefined): string {
  if (consumer === MAIL) return "Mail";
  const webhook = webhooks?.find(({ id }) => id === webhookOf(consumer));
  return webhook?.name ?? webhook?.url ?? consumer;
}

import { type RawSearch, flag, given, oneOf, text } from "../../app/search";

/** Of `/webhooks`, whose other tab has the subscriptions. */
export function readWebhooksSearch(raw: RawSearch) {
  return given({ tab: oneOf(raw.tab, ["webhooks", "subscriptions", "verify"]), open: text(raw.open), new: flag(raw.new) });
}

import { type RawSearch, flag, given, oneOf, text } from "../../api/search";

/** The search parameters of `/webhooks`. Another tab of this page has the subscriptions. */
export function readWebhooksSearch(raw: RawSearch) {
  return given({ tab: oneOf(raw.tab, ["webhooks", "subscriptions", "verify"]), open: text(raw.open), new: flag(raw.new) });
}

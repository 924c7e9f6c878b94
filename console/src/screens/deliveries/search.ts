import { type RawSearch, given, oneOf, text } from "../../api/search";

/** The search parameters of `/deliveries`. */
export function readDeliveriesSearch(raw: RawSearch) {
  return given({
    status: oneOf(raw.status, ["pending", "delivered", "failed", "dead"]),
    consumer: text(raw.consumer),
    topic: text(raw.topic),
    event: text(raw.event),
    since: text(raw.since),
    until: text(raw.until),
    /** The delivery in the inspector, as `<event id>/<consumer>`. */
    open: text(raw.open),
  });
}

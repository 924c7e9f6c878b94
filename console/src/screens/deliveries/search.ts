import { type RawSearch, given, oneOf, text } from "../../app/search";

/** Of `/deliveries`. */
export function readDeliveriesSearch(raw: RawSearch) {
  return given({
    status: oneOf(raw.status, ["pending", "delivered", "failed", "dead"]),
    consumer: text(raw.consumer),
    topic: text(raw.topic),
    event: text(raw.event),
    since: text(raw.since),
    until: text(raw.until),
    /** `<event id>/<consumer>` of the delivery in the inspector. */
    open: text(raw.open),
  });
}

-- Events by record, object and time, and dead deliveries by group. Version 12, for Postgres.

-- By record, newest first. A run of 8,192 numbers comes first, so that writes of the same moment go to the same few pages: an index by the
-- record alone would have each event change a page of its own. A look-up asks each run once.
CREATE INDEX svc_events_record ON svc_events ((seq >> 13), record_id) WHERE record_id IS NOT NULL;
-- By an expression that no other index has: else the planner walks through the numbers, past all other objects.
CREATE INDEX svc_events_object ON svc_events (object, (seq + 0)) WHERE object IS NOT NULL;
CREATE INDEX svc_events_occurred ON svc_events (occurred_at);
CREATE INDEX svc_deliveries_dead ON svc_deliveries (consumer, (event_seq + 0)) WHERE status = 'failed' AND dead;

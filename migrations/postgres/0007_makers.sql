-- Who made each webhook, subscription, task and block. Version 7, for Postgres.

-- The user who made the thing, and the API key that they used for it. With neither (made before this version) it has no maker and
-- keeps its rights. They are no foreign keys: a thing has to remember a maker who is gone. A task has its maker already, in
-- `user_id` and `api_key_id`. A block's maker is who consented to its permissions.
--
-- `suspended_reason` and `suspended_at` say why and since when a thing has no power; both are null while its maker holds what it
-- needs.
ALTER TABLE svc_webhooks ADD COLUMN made_by_user TEXT;
ALTER TABLE svc_webhooks ADD COLUMN made_by_key TEXT;
ALTER TABLE svc_webhooks ADD COLUMN suspended_reason TEXT;
ALTER TABLE svc_webhooks ADD COLUMN suspended_at BIGINT;
ALTER TABLE svc_subscriptions ADD COLUMN made_by_user TEXT;
ALTER TABLE svc_subscriptions ADD COLUMN made_by_key TEXT;
ALTER TABLE svc_subscriptions ADD COLUMN suspended_reason TEXT;
ALTER TABLE svc_subscriptions ADD COLUMN suspended_at BIGINT;
ALTER TABLE svc_blocks ADD COLUMN made_by_user TEXT;
ALTER TABLE svc_blocks ADD COLUMN made_by_key TEXT;
ALTER TABLE svc_blocks ADD COLUMN suspended_reason TEXT;
ALTER TABLE svc_blocks ADD COLUMN suspended_at BIGINT;
ALTER TABLE svc_tasks ADD COLUMN suspended_reason TEXT;
ALTER TABLE svc_tasks ADD COLUMN suspended_at BIGINT;

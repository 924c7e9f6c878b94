-- Counts in a window of time: mail of an address, an account and a network, and wrong passwords. Version 20, for SQLite.

ALTER TABLE svc_mail_limits RENAME TO svc_window_counts;
-- SHA-256 of what is counted.
ALTER TABLE svc_window_counts RENAME COLUMN address_hash TO counted;
-- How often it happened since `since`.
ALTER TABLE svc_window_counts RENAME COLUMN mails TO times;
DROP INDEX svc_mail_limits_age;
CREATE INDEX svc_window_counts_age ON svc_window_counts (since);

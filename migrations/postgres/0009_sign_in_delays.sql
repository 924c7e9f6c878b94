-- Failed sign-ins of an account, on all instances. Version 9, for Postgres.

CREATE TABLE svc_sign_in_tries (
  -- SHA-256 of the address that was tried, whether there is such an account or not.
  account TEXT NOT NULL,
  -- An IPv4 address, an IPv6 /64, or empty for all networks together.
  network TEXT NOT NULL,
  -- Tries since the last success. A try counts when it begins, so that many at once count too.
  failures BIGINT NOT NULL,
  last_at BIGINT NOT NULL,
  -- When somebody last signed in from this network.
  signed_in_at BIGINT,
  PRIMARY KEY (account, network)
);
CREATE INDEX svc_sign_in_tries_age ON svc_sign_in_tries (last_at);

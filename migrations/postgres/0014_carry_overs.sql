-- Guests whose records are not all their user's yet: an upgrade changes the stamps of many records in several transactions.
CREATE TABLE svc_carry_overs (
  guest_id TEXT NOT NULL PRIMARY KEY,
  user_id TEXT NOT NULL
);
CREATE INDEX svc_carry_overs_user ON svc_carry_overs (user_id);

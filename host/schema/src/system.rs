//! The columns that every object has.

/// The id of the record, a UUIDv7.
pub const ID: &str = "id";
/// The time when the record was created.
pub const CREATED_AT: &str = "created_at";
/// The time when the record was last changed.
pub const UPDATED_AT: &str = "updated_at";
/// The creator: the id of a user. If there is no user, the id of an API key. If there is neither, null.
pub const CREATED_BY: &str = "created_by";
/// The user or API key that last changed the record.
pub const UPDATED_BY: &str = "updated_by";

/// All five names.
pub const NAMES: [&str; 5] = [ID, CREATED_AT, UPDATED_AT, CREATED_BY, UPDATED_BY];

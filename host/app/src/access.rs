//! The callers and their rights: credentials and keys, roles, quotas, and checks whether these are still valid later.

pub(crate) mod block_rights;
mod grant_context;
pub(crate) mod identity;
pub(crate) mod makers;
pub(crate) mod on_schema;
pub(crate) mod outranks;
pub(crate) mod quota;
pub(crate) mod recheck;
pub(crate) mod session_recheck;
pub(crate) mod stored_grants;
pub(crate) mod stream_tickets;
pub(crate) mod suspension;
pub(crate) mod view_as;

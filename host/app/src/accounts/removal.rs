//! Deletes users, and cleans up after deleted keys. Every operation that deletes a user or a key calls these functions.

use blockbase_schema::Result;
use blockbase_store::{Connection, KeyHolder, MakerPart};

use crate::access::makers::settle;
use crate::base::topic::Topic;
use crate::outbox::platform_event::Announcer;

/// Deletes a user with their sessions, roles and the keys that act as them, and suspends what they made.
pub(crate) async fn remove_user(connection: &mut Connection, announcer: &Announcer, id: &str, now: i64) -> Result<bool> {
    let keys = connection.api_keys_of_user(id).await?;
    if !connection.delete_user(id).await? {
        return Ok(false);
    }
    // The user before their keys: that they are gone is why their things stop.
    settle(connection, announcer, MakerPart::User(id.to_owned()), now).await?;
    keys_are_gone(connection, announcer, keys, now).await?;
    Ok(true)
}

/// Emits the events of keys that are gone, and suspends what was made with them.
pub(crate) async fn keys_are_gone(
    connection: &mut Connection,
    announcer: &Announcer,
    gone: Vec<KeyHolder>,
    now: i64,
) -> Result<()> {
    for KeyHolder { key, .. } in &gone {
        announcer.emit(connection, Topic::KeyDeleted(key.into())).await?;
    }
    // All keys are gone by now, so that what they made can be looked for together: a query for each kind, not for each key.
    let ids: Vec<String> = gone.into_iter().map(|holder| holder.key.id).collect();
    for some in ids.chunks(MakerPart::KEYS_MAX) {
        settle(connection, announcer, MakerPart::ApiKeys(some.to_vec()), now).await?;
    }
    Ok(())
}

//! The master secret and the database that it belongs to.
//!
//! The first start with a database stores a sealed value. So a start with another secret is detected at once, and not when the
//! first webhook cannot be signed.

use blockbase_auth::{Sealed, SecretBox};
use blockbase_schema::{Error, Result};
use blockbase_store::{Connection, ReadCost, Service, Store};

/// The name of the sealed value in the database. It is also the purpose for which the value is sealed.
const CHECK: &str = "secret_check";
/// The sealed text. Only the success of opening it matters.
const CHECKED: &str = "blockbase";
const DATABASE_ID: &str = "database_id";

/// Whether this secret opens the database's sealed data. If the database has the sealed value, that value decides. Otherwise one
/// is stored for this secret, unless all sealed data belongs to another secret.
pub async fn secret_opens(store: &Store, secrets: &SecretBox) -> Result<bool> {
    let (known, key_ids) = store
        .read_as_service(ReadCost::Rows, |connection| {
            Box::pin(async move { Ok((connection.once(CHECK).await?, connection.key_ids_of_secrets().await?)) })
        })
        .await?;
    let kept = match known {
        Some(known) => known,
        None => {
            // Earlier versions started with any secret, so such a database may contain secrets that were sealed with several keys.
            let (own, foreign): (Vec<_>, Vec<_>) = key_ids.iter().partition(|key_id| *key_id == secrets.key_id());
            match (own.is_empty(), foreign.is_empty()) {
                (true, false) => return Ok(false),
                (false, false) => tracing::warn!(
                    "some stored secrets were sealed with another SVC_SECRET and cannot be opened; rotate the secrets of \
                     webhooks that fail, and set the secrets of blocks again"
                ),
                (_, true) => {}
            }
            let sealed = secrets.seal(CHECK, CHECKED).map_err(Error::internal)?;
            once(store, CHECK, format!("{}:{}", sealed.key_id, sealed.ciphertext)).await?
        }
    };
    let Some((key_id, ciphertext)) = kept.split_once(':') else { return Ok(false) };
    let kept = Sealed { key_id: key_id.to_owned(), ciphertext: ciphertext.to_owned() };
    Ok(secrets.open(CHECK, &kept).is_ok_and(|opened| opened == CHECKED))
}

/// The database's own id, the same for all instances and all starts. The automatic setup token is derived from it.
pub async fn database_id(store: &Store) -> Result<String> {
    once(store, DATABASE_ID, uuid::Uuid::new_v4().to_string()).await
}

/// The value of a name. If the name has no value yet, `value` is stored. If several instances start at once, only one of them
/// sets it.
async fn once(store: &Store, name: &'static str, value: String) -> Result<String> {
    async fn kept(connection: &mut Connection, name: &str) -> Result<Option<String>> {
        Ok(connection.once(name).await?)
    }
    let known = store.read_as_service(ReadCost::Rows, move |connection| Box::pin(kept(connection, name))).await?;
    if let Some(known) = known {
        return Ok(known);
    }
    store
        .write(Service, move |connection| {
            Box::pin(async move {
                connection.set_once(name, &value).await?;
                kept(connection, name).await?.ok_or_else(|| Error::internal("a value that was just set does not exist"))
            })
        })
        .await
}

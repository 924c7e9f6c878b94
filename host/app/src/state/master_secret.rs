//! The master secret and the database that it belongs to.
//!
//! The first start with a database stores a sealed value. So the server notices at once if it starts with another secret, and not
//! only when it cannot sign a webhook.

use blockbase_auth::{Sealed, SecretBox};
use blockbase_schema::{Error, Result};
use blockbase_store::{Connection, ReadCost, Service, Store};

/// The name of the sealed value in the database. It is also the purpose for which the value is sealed.
const CHECK: &str = "secret_check";
/// The text that is sealed. Its value has no meaning. The server only tests whether it can open the sealed text.
const CHECKED: &str = "blockbase";
const DATABASE_ID: &str = "database_id";

/// Whether this secret opens the database's sealed data. If the database contains the sealed value, the result says whether the
/// secret opens this value. Otherwise a value sealed with this secret is stored, unless all sealed data belongs to another
/// secret.
pub async fn secret_opens(store: &Store, secrets: &SecretBox) -> Result<bool> {
    let (known, key_ids) = store
        .read_as_service(ReadCost::Rows, |connection| {
            Box::pin(async move { Ok((connection.once(CHECK).await?, connection.key_ids_of_secrets().await?)) })
        })
        .await?;
    let kept = match known {
        Some(known) => known,
        None => {
            // Earlier versions of the server started with any secret. So their databases may contain data that was sealed with
            // several keys.
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

/// Returns the value of a name. If the name has no value yet, it stores `value`. If several instances start at once, only one of
/// them stores its value.
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

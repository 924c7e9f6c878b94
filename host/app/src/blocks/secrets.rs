//! Secrets of blocks. Callers who manage blocks set them, and only the block reads them.

use blockbase_auth::{Sealed, Unsealed};
use blockbase_query::Action;
use blockbase_schema::{Code, Error, Hint, Resource, Result};
use blockbase_store::BlockSecretRow;
use schemars::JsonSchema;
use serde::Serialize;
use serde_json::json;

use crate::App;
use crate::base::answer::Timestamp;
use crate::caller::Caller;
use crate::outbox::audit::{Act, AuditAction};
use crate::state::block_types::InstalledBlock;

/// The maximum length of a secret, in bytes.
const SECRET_BYTES_MAX: usize = 64 * 1024;

/// The purpose for which a secret is encrypted.
fn purpose(block: &str, name: &str) -> String {
    format!("block:{block}:{name}")
}

/// A secret that a block asks for, without its value.
#[derive(Clone, Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(rename = "SvcBlockSecret", deny_unknown_fields)]
pub struct BlockSecretAnswer {
    name: String,
    is_set: bool,
    updated_at: Option<Timestamp>,
}

fn shown(name: &str, row: Option<&BlockSecretRow>) -> BlockSecretAnswer {
    BlockSecretAnswer { name: name.to_owned(), is_set: row.is_some(), updated_at: row.map(|row| Timestamp(row.updated_at)) }
}

impl App {
    /// The secrets that a block asks for and whether they are set, and then the stored secrets that only an earlier version asked
    /// for. Values are never shown.
    pub fn block_secrets(&self, caller: &Caller, block: &str) -> Result<Vec<BlockSecretAnswer>> {
        caller.require(Resource::Blocks, Action::Manage)?;
        let block = self.installed(block)?;
        let asked = &block.manifest.permissions.secrets;
        let mut kept: Vec<&String> = block.secrets.keys().filter(|name| !asked.contains(name)).collect();
        kept.sort_unstable();
        Ok(asked.iter().chain(kept).map(|name| shown(name, block.secrets.get(name))).collect())
    }

    /// Sets a secret that the block's manifest asks for.
    ///
    /// # Errors
    /// `invalid_value` if the block does not ask for this name, or the value is empty or too long.
    pub async fn set_block_secret(&self, caller: &Caller, block: &str, name: &str, value: &str) -> Result<BlockSecretAnswer> {
        caller.require(Resource::Blocks, Action::Manage)?;
        let block = self.installed(block)?;
        let asked = &block.manifest.permissions.secrets;
        if !asked.iter().any(|known| known == name) {
            let known = if asked.is_empty() { "none".to_owned() } else { asked.join(", ") };
            let message = format!("The block `{}` asks for no secret of this name; it asks for {known}.", block.name());
            return Err(Error::new(Code::InvalidValue, message).with_field("name"));
        }
        if value.is_empty() || value.len() > SECRET_BYTES_MAX || value.contains('\0') {
            let message = format!("A secret has 1 to {SECRET_BYTES_MAX} bytes, and no NUL.");
            return Err(Error::new(Code::InvalidValue, message).with_field("value"));
        }
        let Sealed { key_id, ciphertext } = self.secrets.seal(&purpose(block.name(), name), value).map_err(Error::internal)?;
        let row = BlockSecretRow { name: name.to_owned(), ciphertext, key_id, updated_at: self.clock.now() };
        let answer = shown(name, Some(&row));
        let (key, name, auditor) = (block.name().to_owned(), name.to_owned(), self.auditor(caller));
        self.store
            .write(self.by(caller), move |connection| {
                Box::pin(async move {
                    connection.raise_version("blocks").await?;
                    if !connection.blocks().await?.iter().any(|block| block.name == key) {
                        return Err(Error::not_found("block"));
                    }
                    connection.put_block_secret(&key, row).await?;
                    let act = Act::new(AuditAction::SetSecret, Resource::Blocks, &key).after(&json!({ "secret": name }));
                    auditor.record(connection, act).await
                })
            })
            .await?;
        self.refresh().await?;
        Ok(answer)
    }

    /// Deletes a secret.
    pub async fn delete_block_secret(&self, caller: &Caller, block: &str, name: &str) -> Result<()> {
        caller.require(Resource::Blocks, Action::Manage)?;
        let (block, name) = (self.installed(block)?.name().to_owned(), name.to_owned());
        let auditor = self.auditor(caller);
        self.store
            .write(self.by(caller), move |connection| {
                Box::pin(async move {
                    connection.raise_version("blocks").await?;
                    if !connection.delete_block_secret(&block, &name).await? {
                        return Err(Error::not_found("secret"));
                    }
                    let act = Act::new(AuditAction::DeleteSecret, Resource::Blocks, &block).before(&json!({ "secret": name }));
                    auditor.record(connection, act).await
                })
            })
            .await?;
        self.refresh().await
    }

    /// The value of a secret, for the block itself.
    ///
    /// # Errors
    /// `forbidden` if the block's manifest does not ask for the secret, `not_found` if nobody set it, `unavailable` if it was stored
    /// under another master secret.
    pub fn block_secret(&self, block: &InstalledBlock, name: &str) -> Result<String> {
        if !block.manifest.permissions.secrets.iter().any(|asked| asked == name) {
            let message = format!("The block's manifest does not ask for the secret {name:?} in `permissions.secrets`.");
            return Err(Error::new(Code::Forbidden, message));
        }
        let Some(row) = block.secrets.get(name) else {
            let hint = Hint::SetSecret { block: block.name().to_owned() };
            return Err(Error::new(Code::NotFound, format!("The secret `{name}` is not set.")).with_hint(hint));
        };
        let sealed = Sealed { key_id: row.key_id.clone(), ciphertext: row.ciphertext.clone() };
        self.secrets.open(&purpose(block.name(), name), &sealed).map_err(|problem| {
            let why = match problem {
                Unsealed::OtherKey => "was stored under another SVC_SECRET",
                Unsealed::Broken => "cannot be read",
            };
            Error::new(Code::Unavailable, format!("The secret `{name}` {why}; set it again."))
        })
    }
}

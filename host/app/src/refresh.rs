//! What is kept in memory of the catalogue, brought up to the database's versions.

use std::sync::Arc;

use blockbase_schema::{Error, Object, ObjectDefinition, Registry, Result};
use blockbase_store::{Connection, ObjectRow, ReadCost};

use crate::App;
use crate::blocks::InstalledBlock;
use crate::feed::Subscriptions;

/// An object of the catalogue as operations use it.
pub(crate) fn object_of_row(row: &ObjectRow) -> Result<Object> {
    let definition: ObjectDefinition = serde_json::from_str(&row.definition).map_err(Error::internal)?;
    let keys: Vec<u32> = serde_json::from_str(&row.field_keys).map_err(Error::internal)?;
    Object::new(row.id, definition, &keys).map_err(Error::internal)
}

pub(crate) async fn load_registry(connection: &mut Connection) -> Result<Registry> {
    let version = connection.version("schema").await?;
    let objects = connection.objects().await?;
    let objects = objects.iter().map(|row| object_of_row(row).map(Arc::new)).collect::<Result<Vec<_>>>()?;
    Ok(Registry::new(version, objects))
}

impl App {
    /// Loads what changed since the last time: here after a commit, on other instances by polling.
    pub async fn refresh(&self) -> Result<()> {
        let (schema, blocks) = self
            .store
            .read(ReadCost::Rows, |connection| {
                Box::pin(async move { Ok((connection.version("schema").await?, connection.version("blocks").await?)) })
            })
            .await?;
        let known = self.registry.read().version;
        if schema != known || schema == 0 {
            self.refresh_registry().await?;
        }
        let known = *self.blocks_version.lock();
        if blocks != known {
            self.refresh_blocks().await?;
        }
        Ok(())
    }

    pub(crate) async fn refresh_registry(&self) -> Result<()> {
        let fresh =
            self.store.read(ReadCost::Rows, |connection| Box::pin(async move { load_registry(connection).await })).await?;
        let mut registry = self.registry.write();
        // Of two refreshes at the same time the older may come last.
        if fresh.version >= registry.version {
            *registry = Arc::new(fresh);
        }
        Ok(())
    }

    pub(crate) async fn refresh_blocks(&self) -> Result<()> {
        let (version, rows, subscriptions) = self
            .store
            .read(ReadCost::Rows, |connection| {
                Box::pin(async move {
                    Ok((connection.version("blocks").await?, connection.blocks().await?, connection.subscriptions().await?))
                })
            })
            .await?;
        let mut blocks = std::collections::BTreeMap::new();
        for row in rows {
            let name = row.name.clone();
            match InstalledBlock::of_row(row) {
                Ok(block) => {
                    blocks.insert(name, Arc::new(block));
                }
                // One that a newer server installed must not keep this one from following the others.
                Err(error) => tracing::error!(block.name = name, error.cause = %error, "an installed block cannot be read"),
            }
        }
        let mut known = self.blocks_version.lock();
        if version >= *known {
            *known = version;
            *self.blocks.write() = Arc::new(blocks);
            *self.subscriptions.write() = Arc::new(Subscriptions::new(version, subscriptions));
        }
        drop(known);
        self.retain_installed();
        Ok(())
    }
}

//! Keeps the catalogue in memory up to date with the versions in the database.

use std::sync::Arc;
use std::time::Instant;

use blockbase_schema::{Code, Error, Registry, Relationship, Result, StoredObject};
use blockbase_store::{CommittedEvent, Connection, ObjectRow, ReadCost, Versions};

use crate::App;
use crate::state::block_types::InstalledBlock;
use crate::state::routing::Subscriptions;

/// All stored objects and relationships.
#[derive(Clone)]
pub(crate) struct Catalogue {
    pub(crate) version: i64,
    pub(crate) objects: Vec<StoredObject>,
    pub(crate) relationships: Vec<Relationship>,
}

impl Catalogue {
    pub(crate) async fn load(connection: &mut Connection) -> Result<Catalogue> {
        let version = connection.version("schema").await?;
        let objects = connection.objects().await?.into_iter().map(stored_object).collect::<Result<_>>()?;
        let relationships = connection
            .relationships()
            .await?
            .into_iter()
            .map(|row| {
                let definition = serde_json::from_str(&row.definition).map_err(Error::internal)?;
                Ok(Relationship { id: row.id, definition })
            })
            .collect::<Result<_>>()?;
        Ok(Catalogue { version, objects, relationships })
    }

    pub(crate) fn registry(self) -> Result<Registry> {
        Registry::new(self.version, self.objects, self.relationships)
    }
}

fn stored_object(row: ObjectRow) -> Result<StoredObject> {
    Ok(StoredObject {
        id: row.id,
        revision: row.revision,
        definition: serde_json::from_str(&row.definition).map_err(Error::internal)?,
        keys: serde_json::from_str(&row.field_keys).map_err(Error::internal)?,
        since: serde_json::from_str(&row.names_since).map_err(Error::internal)?,
    })
}

impl App {
    /// Loads the changes since the last call. An instance calls it after its own commits. It notices commits of other instances
    /// by polling.
    pub async fn refresh(&self) -> Result<()> {
        let versions = self
            .store
            .read_as_service(ReadCost::Rows, |connection| Box::pin(async move { Ok(connection.versions().await?) }))
            .await?;
        let Versions { schema, blocks, subscriptions, accounts } = versions;
        self.identities.follow(accounts);
        let known = self.registry.read().version;
        if schema != known || schema == 0 {
            self.refresh_registry().await?;
        }
        let known = *self.blocks_version.lock();
        if blocks != known {
            self.refresh_blocks().await?;
        }
        if subscriptions != self.subscriptions().version {
            self.refresh_subscriptions().await?;
        }
        Ok(())
    }

    /// Checks once whether another instance has just installed a block or another version of one. Returns whether the blocks have
    /// changed. Requests for a missing block run this check one after the other, so that together they use at most one
    /// connection.
    pub(crate) async fn looked_for_blocks(&self) -> Result<bool> {
        if !self.is_shared() {
            return Ok(false);
        }
        let before = *self.blocks_version.lock();
        let _turn = self.looking_for_blocks.lock().await;
        if *self.blocks_version.lock() == before {
            self.refresh().await?;
        }
        Ok(*self.blocks_version.lock() != before)
    }

    /// Makes sure that the registry has this version of the schema, or a later one. If another instance changed the schema a moment
    /// ago, the registry is loaded, once for all who ask at the same time. If the load fails, all who asked before that get an
    /// error without a further load.
    ///
    /// # Errors
    /// If the database does not answer. Those who waited for the load of another get `unavailable`.
    pub(crate) async fn reach_schema(&self, version: i64) -> Result<()> {
        let is_behind = || self.registry().version < version;
        if !is_behind() {
            return Ok(());
        }
        let asked_at = Instant::now();
        let mut failed_at = self.reaching_schema.lock().await;
        if !is_behind() {
            return Ok(());
        }
        if failed_at.is_some_and(|failed_at| failed_at >= asked_at) {
            return Err(Error::new(Code::Unavailable, "The schema of an event could not be loaded. Try again shortly."));
        }
        // A load fails if it meets a further change between its statements, so it is tried twice.
        if Box::pin(self.refresh_registry()).await.is_ok() {
            return Ok(());
        }
        let loaded = Box::pin(self.refresh_registry()).await;
        if loaded.is_err() {
            *failed_at = Some(Instant::now());
        }
        loaded
    }

    /// Clears the cached rights if the accounts changed before these events were read. Call it for each page of events, before
    /// anybody decides about one of them.
    pub(crate) fn follow_accounts_of(&self, events: &[Arc<CommittedEvent>]) {
        let newest = events.iter().map(|event| event.accounts).max();
        self.identities.follow(newest.unwrap_or(0));
    }

    pub(crate) async fn refresh_registry(&self) -> Result<()> {
        let fresh = self
            .store
            .read_as_service(ReadCost::Rows, |connection| Box::pin(async move { Catalogue::load(connection).await }))
            .await?
            .registry()
            .map_err(Error::internal)?;
        let mut registry = self.registry.write();
        // If two refreshes run at the same time, the older one may finish last.
        let moved = fresh.version > registry.version;
        if fresh.version >= registry.version {
            *registry = Arc::new(fresh);
        }
        drop(registry);
        if moved {
            self.catalogue_changed.send_replace(());
        }
        Ok(())
    }

    pub(crate) async fn refresh_blocks(&self) -> Result<()> {
        let (version, rows) = self
            .store
            .read_as_service(ReadCost::Rows, |connection| {
                Box::pin(async move { Ok((connection.version("blocks").await?, connection.blocks().await?)) })
            })
            .await?;
        let mut blocks = std::collections::BTreeMap::new();
        for row in rows {
            let name = row.name.clone();
            match InstalledBlock::of_row(row, &self.usages) {
                Ok(block) => {
                    blocks.insert(name, Arc::new(block));
                }
                // A block that a newer server installed must not keep this server from loading the others.
                Err(error) => tracing::error!(block.name = name, error.cause = %error, "an installed block cannot be read"),
            }
        }
        let blocks = Arc::new(blocks);
        let mut known = self.blocks_version.lock();
        let mut before = Arc::clone(&blocks);
        // Another refresh may have loaded this version already. Its blocks stay the same in memory, and so do their instances.
        if version > *known {
            *known = version;
            before = std::mem::replace(&mut *self.blocks.write(), Arc::clone(&blocks));
            self.usages.retain(&blocks);
        }
        drop(known);
        self.catalogue_changed.send_replace(());
        self.retain_installed();
        // The instance that installed the blocks has compiled them. This instance loads them before their first call.
        if let Some(runtime) = self.runtime.get() {
            let is_new = |block: &&Arc<InstalledBlock>| before.get(block.name()).is_none_or(|known| known.digest != block.digest);
            blocks.values().filter(is_new).for_each(|block| runtime.preload(block));
        }
        Ok(())
    }

    /// Informs the runtime about the installed files.
    pub(crate) fn retain_installed(&self) {
        if let Some(runtime) = self.runtime.get() {
            // The lock is held until the end, so that the runtime never gets an older list after a newer one.
            let blocks = self.blocks.read();
            let serving: Vec<_> = blocks.values().cloned().collect();
            let kept = blocks.values().flat_map(|block| block.versions.iter().map(|(_, digest)| digest.clone())).collect();
            runtime.retain(&serving, &kept);
        }
    }

    /// The subscriptions that get events, as this instance knows them.
    pub fn subscriptions(&self) -> Arc<Subscriptions> {
        Arc::clone(&self.subscriptions.read())
    }

    /// Reads the subscriptions again, so that the copy in memory is as new as the database.
    pub(crate) async fn refresh_subscriptions(&self) -> Result<()> {
        let fresh = self
            .store
            .read_as_service(ReadCost::Rows, |connection| Box::pin(async move { Subscriptions::load(connection).await }))
            .await?;
        let mut known = self.subscriptions.write();
        // If two refreshes run at the same time, the older one may finish last.
        if fresh.version >= known.version {
            *known = Arc::new(fresh);
        }
        let version = known.version;
        drop(known);
        self.subscriptions_changed.send_replace(version);
        Ok(())
    }
}

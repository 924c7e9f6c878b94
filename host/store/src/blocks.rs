//! Installed blocks, their versions and their logs.

use blockbase_query::{Dialect, Param, Statement};

use crate::connection::Connection;
use crate::error::DbError;
use crate::makers::{Maker, Suspension, maker, suspension};
use crate::row::Row;

/// An installed block with the manifest of its active version. `config` and `manifest` are JSON text.
#[derive(Clone, Debug)]
pub struct BlockRow {
    pub name: String,
    pub version: String,
    pub enabled: bool,
    pub config: String,
    pub installed_at: i64,
    pub installed_by: Option<String>,
    /// The digest of the packed file, with the prefix `sha256:`.
    pub digest: String,
    pub manifest: String,
    /// All kept versions with the digests of their files, the newest first.
    pub versions: Vec<(String, String)>,
    pub secrets: Vec<BlockSecretRow>,
    /// The caller who consented to the block's rights.
    pub maker: Maker,
    pub suspension: Option<Suspension>,
}

/// A secret of a block, encrypted.
#[derive(Clone, Debug)]
pub struct BlockSecretRow {
    pub name: String,
    pub ciphertext: String,
    /// The id of the key that encrypts it.
    pub key_id: String,
    /// Milliseconds since the epoch.
    pub updated_at: i64,
}

/// A version of a block to be stored.
#[derive(Clone, Debug)]
pub struct BlockVersionRow {
    pub block: String,
    pub version: String,
    pub digest: String,
    pub manifest: String,
    /// The packed file.
    pub component: Vec<u8>,
    pub installed_at: i64,
}

/// One line that a block has logged.
#[derive(Clone, Debug)]
pub struct BlockLogRow {
    pub block: String,
    pub call_id: String,
    pub level: String,
    pub message: String,
    /// The fields as JSON text.
    pub fields: Option<String>,
    /// Milliseconds since the epoch.
    pub logged_at: i64,
}

/// A log line as stored, with its number. Each line has a higher number than the lines before it.
#[derive(Clone, Debug)]
pub struct KeptLogLine {
    pub seq: i64,
    pub line: BlockLogRow,
}

/// The requested lines of a block's log.
#[derive(Clone, Debug, Default)]
pub struct BlockLogFilter {
    pub block: String,
    /// Only lines of these levels. An empty list means all levels.
    pub levels: Vec<&'static str>,
    /// Only lines whose message or fields contain this text, ignoring case.
    pub text: Option<String>,
    /// Only lines that were logged at this instant or later, in milliseconds since the epoch.
    pub since: Option<i64>,
    /// If given, only lines with a higher number, the oldest first. If not, the newest lines first.
    pub after: Option<i64>,
    pub limit: i64,
}

/// The lines that match a request for a block's log.
#[derive(Clone, Debug, Default)]
pub struct BlockLogPage {
    pub lines: Vec<KeptLogLine>,
    /// For a request that continues from a number: the number up to which the page has all matching lines.
    pub up_to: i64,
    /// Whether matching lines may have been dropped already.
    pub is_cut: bool,
}

/// The number of versions that are kept of each block, including the active one.
const VERSIONS_KEPT: i64 = 5;
/// The number of log lines that are kept of each block.
const LOG_LINES_KEPT: i64 = 1000;
/// The lock that an instance holds on Postgres while lines get their numbers. The number is the text "bblog".
const LOG_LOCK: i64 = 0x62_626c_6f67;

impl Connection {
    /// The names of the blocks that are disabled.
    pub async fn disabled_blocks(&mut self) -> Result<Vec<String>, DbError> {
        let rows = self.fetch("SELECT name FROM svc_blocks WHERE NOT enabled", Vec::new()).await?;
        rows.iter().map(|row| row.text(0)).collect()
    }

    /// All blocks, in the order of their names.
    pub async fn blocks(&mut self) -> Result<Vec<BlockRow>, DbError> {
        let rows = self
            .fetch(
                "SELECT b.name, b.version, b.enabled, b.config, b.installed_at, b.installed_by, v.digest, v.manifest, \
                 b.made_by_user, b.made_by_key, b.suspended_reason, b.suspended_at \
                 FROM svc_blocks b JOIN svc_block_versions v ON v.block = b.name AND v.version = b.version ORDER BY b.name",
                Vec::new(),
            )
            .await?;
        let versions = self
            .fetch("SELECT block, version, digest FROM svc_block_versions ORDER BY block, installed_at DESC", Vec::new())
            .await?;
        let secrets = self
            .fetch("SELECT block, name, ciphertext, key_id, updated_at FROM svc_block_secrets ORDER BY block, name", Vec::new())
            .await?;
        let read = |row: &Row| -> Result<BlockRow, DbError> {
            let name = row.text(0)?;
            let mut kept = Vec::new();
            for version in &versions {
                if version.text(0)? == name {
                    kept.push((version.text(1)?, version.text(2)?));
                }
            }
            let mut own = Vec::new();
            for secret in &secrets {
                if secret.text(0)? == name {
                    own.push(BlockSecretRow {
                        name: secret.text(1)?,
                        ciphertext: secret.text(2)?,
                        key_id: secret.text(3)?,
                        updated_at: secret.integer(4)?,
                    });
                }
            }
            Ok(BlockRow {
                version: row.text(1)?,
                enabled: row.boolean(2)?,
                config: row.text(3)?,
                installed_at: row.integer(4)?,
                installed_by: row.optional_text(5)?,
                digest: row.text(6)?,
                manifest: row.text(7)?,
                maker: maker(row, 8)?,
                suspension: suspension(row, 10)?,
                versions: kept,
                secrets: own,
                name,
            })
        };
        rows.iter().map(read).collect()
    }

    /// The manifest of each kept version, as JSON text: `(block, version, manifest)`.
    pub async fn block_manifests(&mut self) -> Result<Vec<(String, String, String)>, DbError> {
        let rows =
            self.fetch("SELECT block, version, manifest FROM svc_block_versions ORDER BY block, version", Vec::new()).await?;
        rows.iter().map(|row| Ok((row.text(0)?, row.text(1)?, row.text(2)?))).collect()
    }

    /// Replaces the manifest of a stored version. Returns `false` if the version is not stored.
    pub async fn set_block_manifest(&mut self, block: &str, version: &str, manifest: String) -> Result<bool, DbError> {
        let sql = "UPDATE svc_block_versions SET manifest = $3 WHERE block = $1 AND version = $2";
        Ok(self.run(sql, vec![block.into(), version.into(), manifest.into()]).await? == 1)
    }

    /// All kept versions: `(block, version, digest, manifest)`.
    pub async fn block_versions(&mut self) -> Result<Vec<(String, String, String, String)>, DbError> {
        let sql = "SELECT block, version, digest, manifest FROM svc_block_versions ORDER BY block, version";
        let rows = self.fetch(sql, Vec::new()).await?;
        rows.iter().map(|row| Ok((row.text(0)?, row.text(1)?, row.text(2)?, row.text(3)?))).collect()
    }

    /// Replaces the file of a stored version by another form of the same file. Returns `false` if no version has this digest.
    pub async fn set_block_component(
        &mut self,
        block: &str,
        (version, digest): (&str, &str),
        component: Vec<u8>,
    ) -> Result<bool, DbError> {
        let sql = "UPDATE svc_block_versions SET component = $4 WHERE block = $1 AND version = $2 AND digest = $3";
        Ok(self.run(sql, vec![block.into(), version.into(), digest.into(), component.into()]).await? == 1)
    }

    /// The manifest of an installed version, as it is stored.
    pub async fn block_manifest(&mut self, block: &str, version: &str) -> Result<Option<String>, DbError> {
        let sql = "SELECT manifest FROM svc_block_versions WHERE block = $1 AND version = $2";
        let rows = self.fetch(sql, vec![block.into(), version.into()]).await?;
        rows.first().map(|row| row.text(0)).transpose()
    }

    /// The packed file of an installed version, as it is stored.
    pub async fn block_component(&mut self, block: &str, version: &str) -> Result<Option<Vec<u8>>, DbError> {
        let rows = self
            .fetch(
                "SELECT component FROM svc_block_versions WHERE block = $1 AND version = $2",
                vec![block.into(), version.into()],
            )
            .await?;
        rows.first().map(|row| row.bytes(0)).transpose()
    }

    /// Stores a block with its first version. Returns `false` if a block with this name is installed.
    pub async fn insert_block(
        &mut self,
        row: BlockVersionRow,
        config: String,
        installed_by: Option<String>,
    ) -> Result<bool, DbError> {
        let inserted = self
            .run(
                "INSERT INTO svc_blocks (name, version, enabled, config, installed_at, installed_by) \
                 VALUES ($1, $2, TRUE, $3, $4, $5) ON CONFLICT DO NOTHING",
                vec![
                    row.block.clone().into(),
                    row.version.clone().into(),
                    config.into(),
                    row.installed_at.into(),
                    installed_by.into(),
                ],
            )
            .await?;
        if inserted == 0 {
            return Ok(false);
        }
        self.put_block_version(row).await?;
        Ok(true)
    }

    /// Stores a version. It replaces a version with the same number.
    async fn put_block_version(&mut self, row: BlockVersionRow) -> Result<(), DbError> {
        self.run(
            "INSERT INTO svc_block_versions (block, version, digest, manifest, component, installed_at) \
             VALUES ($1, $2, $3, $4, $5, $6) ON CONFLICT (block, version) DO UPDATE SET digest = excluded.digest, \
             manifest = excluded.manifest, component = excluded.component, installed_at = excluded.installed_at",
            vec![
                row.block.into(),
                row.version.into(),
                row.digest.into(),
                row.manifest.into(),
                row.component.into(),
                row.installed_at.into(),
            ],
        )
        .await
        .map(|_| ())
    }

    /// Makes a new version the active one. Deletes the versions that a rollback has replaced, and the oldest versions beyond the
    /// limit.
    pub async fn upgrade_block(
        &mut self,
        mut row: BlockVersionRow,
        config: String,
        installed_by: Option<String>,
    ) -> Result<(), DbError> {
        let name = row.block.clone();
        let sql = "DELETE FROM svc_block_versions WHERE block = $1 AND installed_at > (SELECT v.installed_at FROM \
                   svc_block_versions v JOIN svc_blocks b ON b.name = v.block AND b.version = v.version WHERE v.block = $1)";
        self.run(sql, vec![name.clone().into()]).await?;
        let sql = self.placeholders("SELECT coalesce(max(installed_at), 0) FROM svc_block_versions WHERE block = $1");
        let newest = self.fetch_integer(Statement { sql, params: vec![name.clone().into()] }).await?;
        // Versions are ordered by this time. So it must increase even if the clock goes back.
        row.installed_at = row.installed_at.max(newest + 1);
        let (version, digest, installed_at) = (row.version.clone(), row.digest.clone(), row.installed_at);
        self.put_block_version(row).await?;
        self.serve_version(&name, (&version, &digest), config, installed_at, installed_by).await?;
        self.run(
            "DELETE FROM svc_block_versions WHERE block = $1 AND installed_at <= \
             (SELECT installed_at FROM svc_block_versions WHERE block = $1 ORDER BY installed_at DESC LIMIT 1 OFFSET $2)",
            vec![name.into(), VERSIONS_KEPT.into()],
        )
        .await
        .map(|_| ())
    }

    /// Makes the stored version with this digest the active one. Returns `false` if no version has it.
    pub async fn serve_version(
        &mut self,
        name: &str,
        (version, digest): (&str, &str),
        config: String,
        installed_at: i64,
        installed_by: Option<String>,
    ) -> Result<bool, DbError> {
        let sql = "UPDATE svc_blocks SET version = $2, config = $3, installed_at = $4, installed_by = $5 WHERE name = $1 AND EXISTS \
                   (SELECT 1 FROM svc_block_versions v WHERE v.block = $1 AND v.version = $2 AND v.digest = $6)";
        let params = vec![name.into(), version.into(), config.into(), installed_at.into(), installed_by.into(), digest.into()];
        Ok(self.run(sql, params).await? == 1)
    }

    /// Stores an encrypted secret. It replaces a secret with the same name.
    pub async fn put_block_secret(&mut self, block: &str, row: BlockSecretRow) -> Result<(), DbError> {
        self.run(
            "INSERT INTO svc_block_secrets (block, name, ciphertext, key_id, updated_at) VALUES ($1, $2, $3, $4, $5) \
             ON CONFLICT (block, name) DO UPDATE SET ciphertext = excluded.ciphertext, key_id = excluded.key_id, \
             updated_at = excluded.updated_at",
            vec![block.into(), row.name.into(), row.ciphertext.into(), row.key_id.into(), row.updated_at.into()],
        )
        .await
        .map(|_| ())
    }

    /// Deletes a secret. Returns `false` if it does not exist.
    pub async fn delete_block_secret(&mut self, block: &str, name: &str) -> Result<bool, DbError> {
        let sql = "DELETE FROM svc_block_secrets WHERE block = $1 AND name = $2";
        Ok(self.run(sql, vec![block.into(), name.into()]).await? == 1)
    }

    /// Removes a block with its versions and logs. Returns `false` if the block does not exist.
    pub async fn delete_block(&mut self, name: &str) -> Result<bool, DbError> {
        self.run("DELETE FROM svc_block_logs WHERE block = $1", vec![name.into()]).await?;
        Ok(self.run("DELETE FROM svc_blocks WHERE name = $1", vec![name.into()]).await? == 1)
    }

    /// Changes the config or whether the block is enabled. `None` changes nothing. Returns `false` if the active version has
    /// another digest, or the block is gone.
    pub async fn update_block(
        &mut self,
        name: &str,
        digest: &str,
        enabled: Option<bool>,
        config: Option<String>,
    ) -> Result<bool, DbError> {
        let updated = self
            .run(
                "UPDATE svc_blocks SET enabled = coalesce($2, enabled), config = coalesce($3, config) WHERE name = $1 AND EXISTS \
                 (SELECT 1 FROM svc_block_versions v WHERE v.block = $1 AND v.version = svc_blocks.version AND v.digest = $4)",
                vec![name.into(), Param::Boolean(enabled), config.into(), digest.into()],
            )
            .await?;
        Ok(updated == 1)
    }

    /// Adds lines in their order, and deletes the oldest lines beyond the limit.
    pub async fn append_block_logs(&mut self, lines: Vec<BlockLogRow>) -> Result<(), DbError> {
        if self.dialect() == Dialect::Postgres {
            // Instances write one after the other, so that lines become visible in the order of their numbers. So a client that
            // asks for the lines after the last known number misses none.
            self.fetch("SELECT 1::bigint FROM pg_advisory_xact_lock($1)", vec![LOG_LOCK.into()]).await?;
        }
        let mut blocks: Vec<String> = lines.iter().map(|line| line.block.clone()).collect();
        for line in lines {
            self.run(
                // Lines of a deleted block must not become lines of a later block with the same name.
                "INSERT INTO svc_block_logs (block, call_id, level, message, fields, logged_at) \
                 SELECT $1, $2, $3, $4, $5, $6 WHERE EXISTS (SELECT 1 FROM svc_blocks WHERE name = $1)",
                vec![
                    line.block.into(),
                    line.call_id.into(),
                    line.level.into(),
                    line.message.into(),
                    line.fields.into(),
                    line.logged_at.into(),
                ],
            )
            .await?;
        }
        blocks.sort_unstable();
        blocks.dedup();
        for block in blocks {
            self.run(
                "DELETE FROM svc_block_logs WHERE block = $1 AND seq <= \
                 (SELECT seq FROM svc_block_logs WHERE block = $1 ORDER BY seq DESC LIMIT 1 OFFSET $2)",
                vec![block.into(), LOG_LINES_KEPT.into()],
            )
            .await?;
        }
        Ok(())
    }

    /// Deletes the lines that contain a text, ignoring case. Returns their number.
    pub async fn delete_block_logs_with(&mut self, text: &str) -> Result<u64, DbError> {
        let dialect = self.dialect();
        let holds = |column: &str| dialect.contains(column, "$1", true);
        let sql = format!("DELETE FROM svc_block_logs WHERE {} OR {}", holds("message"), holds("coalesce(fields, '')"));
        let sql = self.placeholders(sql);
        self.execute(Statement { sql, params: vec![text.into()] }).await
    }

    /// One page of a block's log.
    pub async fn block_logs(&mut self, filter: BlockLogFilter) -> Result<BlockLogPage, DbError> {
        let BlockLogFilter { block, levels, text, since, after, limit } = filter;
        let rows = self
            .fetch(
                "SELECT coalesce(max(seq), 0), coalesce(min(seq), 0), count(*) FROM svc_block_logs WHERE block = $1",
                vec![block.clone().into()],
            )
            .await?;
        let (newest, oldest, kept) = match rows.first() {
            Some(row) => (row.integer(0)?, row.integer(1)?, row.integer(2)?),
            None => (0, 0, 0),
        };
        let mut params: Vec<Param> = vec![block.into()];
        let mut tests = vec!["block = $1".to_owned()];
        if !levels.is_empty() {
            let names: Vec<String> = levels.iter().map(|level| format!("'{level}'")).collect();
            tests.push(format!("level IN ({})", names.join(", ")));
        }
        if let Some(text) = text {
            params.push(text.into());
            let place = format!("${}", params.len());
            let holds = |column: &str| self.dialect().contains(column, &place, true);
            tests.push(format!("({} OR {})", holds("message"), holds("coalesce(fields, '')")));
        }
        if let Some(since) = since {
            params.push(since.into());
            tests.push(format!("logged_at >= ${}", params.len()));
        }
        if let Some(after) = after {
            params.push(after.into());
            tests.push(format!("seq > ${}", params.len()));
        }
        let direction = if after.is_some() { "ASC" } else { "DESC" };
        params.push(limit.into());
        let sql = format!(
            "SELECT block, call_id, level, message, fields, logged_at, seq FROM svc_block_logs WHERE {} ORDER BY seq {direction} LIMIT ${}",
            tests.join(" AND "),
            params.len()
        );
        let rows = self.fetch_rows(Statement { sql: self.placeholders(sql), params }).await?;
        let line = |row: &Row| -> Result<KeptLogLine, DbError> {
            let line = BlockLogRow {
                block: row.text(0)?,
                call_id: row.text(1)?,
                level: row.text(2)?,
                message: row.text(3)?,
                fields: row.optional_text(4)?,
                logged_at: row.integer(5)?,
            };
            Ok(KeptLogLine { seq: row.integer(6)?, line })
        };
        let lines: Vec<KeptLogLine> = rows.iter().map(line).collect::<Result<_, _>>()?;
        let after = after.unwrap_or(0);
        let is_full = i64::try_from(lines.len()).is_ok_and(|found| found >= limit);
        let up_to = match lines.last().filter(|_| direction == "ASC" && is_full) {
            // Later lines belong to the next page.
            Some(last) => last.seq,
            None => newest.max(after),
        };
        Ok(BlockLogPage { lines, up_to, is_cut: after > 0 && oldest > after && kept >= LOG_LINES_KEPT })
    }
}

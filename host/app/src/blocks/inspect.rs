//! Inspects a packed file before anybody consents to it: what it contains, asks for and changes, and the problems that an install would
//! have.

use std::any::Any;
use std::sync::{Arc, Weak};
use std::time::Duration;

use blockbase_query::Action;
use blockbase_schema::{Code, Error, HintWords, Resource, Result};
use bytes::Bytes;
use schemars::JsonSchema;
use serde::Serialize;

use super::conditions::{consent_to, shown};
use super::consent::NewPermissions;
use super::differences::{Difference, differences};
use super::install::{check_beside_others, check_secrets};
use super::names::check_actions;
use crate::App;
use crate::caller::Caller;
use crate::state::block_types::{InstalledBlock, PreparedBlock};
use crate::state::inspected::KEPT;
use crate::state::manifest::{Instances, Manifest, Permissions};

/// What a packed file contains, and what its installation would change.
#[derive(Clone, Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(rename = "SvcBlockInspection", deny_unknown_fields)]
pub struct Inspection {
    manifest: Manifest,
    permissions: Permissions,
    /// An install with this text as `consent` fails if it is of something else than this answer shows. This is so if an object or
    /// field that the manifest names is another one by then, or exists only then, or no longer. It is also so if the file has
    /// another manifest. Null if the permissions cannot be resolved.
    #[schemars(regex(pattern = "^[0-9a-f]{64}$"))]
    consent: Option<String>,
    /// The reuse of instances that would take effect; null if each call would get an instance of its own.
    instances: Option<Instances>,
    size_bytes: usize,
    #[schemars(regex(pattern = "^[0-9a-f]{64}$"))]
    sha256: String,
    /// The version in use; null if the block is not installed.
    installed: Option<ServingVersion>,
    differences: Vec<Difference>,
    /// Null if no version is installed.
    new_permissions: Option<NewPermissions>,
    problems: Vec<Problem>,
}

#[derive(Clone, Debug, Serialize, JsonSchema)]
#[schemars(inline, deny_unknown_fields)]
struct ServingVersion {
    version: String,
    digest: String,
    /// Null if the caller may not read `blocks`.
    permissions: Option<Permissions>,
}

#[derive(Clone, Debug, Serialize, JsonSchema)]
#[schemars(inline, deny_unknown_fields)]
struct Problem {
    error: &'static str,
    message: String,
}

impl Problem {
    fn of(error: &Error, words: HintWords) -> Problem {
        Problem { error: error.code.as_str(), message: error.message_for(words).into_owned() }
    }
}

/// Returns the same manifest without the permissions that have conditions or fields.
fn without_conditions(mut manifest: Manifest) -> Manifest {
    manifest.permissions.data.retain(|permission| !permission.grant().is_conditional());
    manifest
}

impl App {
    /// Inspects a packed file like an install, but installs nothing. `problems` has the errors that an install by the caller would get
    /// now, with hints in the words of the surface.
    ///
    /// # Errors
    /// `invalid_block` if the file is not a block for this server.
    pub async fn inspect_block(self: &Arc<Self>, caller: &Caller, file: Bytes, words: HintWords) -> Result<Inspection> {
        self.recheck(caller).await?;
        caller.require(Resource::Blocks, Action::Create)?;
        let size = file.len();
        let prepared = self.runtime()?.prepare(file).await;
        let PreparedBlock { manifest, digest, kept } = prepared.inspect_err(|_| self.retain_installed())?;
        self.keep_inspected(kept);
        self.recheck(caller).await?;
        let present = self.blocks.read().get(&manifest.name).cloned();
        let same = present.as_ref().filter(|present| present.digest == digest);
        let (asked, refused) = match same {
            Some(same) => (Manifest { permissions: same.manifest.permissions.clone(), ..manifest.clone() }, None),
            None => match self.stored_manifest(caller, manifest.clone()) {
                Ok(stored) => (stored, None),
                // The conditions cannot be resolved. The remaining checks run without the permissions that have conditions or
                // fields.
                Err(error) => (without_conditions(manifest.clone()), Some(error)),
            },
        };
        let mut problems = self.problems_of(caller, &asked, &digest, present.as_ref()).await?;
        let is_refused = refused.is_some();
        problems.extend(refused);
        // Only callers with read on blocks see the installed version. Every caller who may install sees what the new version adds.
        let may_read = caller.holds(Resource::Blocks, Action::Read);
        let added = present.as_ref().map(|present| self.added_to(&present.manifest, &asked));
        let registry = self.registry();
        let changes = match (&present, &added) {
            (Some(present), Some(added)) => {
                let permissions = shown(&registry, &present.manifest.permissions);
                let serving = Manifest { permissions, ..present.manifest.clone() };
                differences(&serving, &manifest, added, may_read)
            }
            _ => Vec::new(),
        };
        let installed = present.as_ref().map(|present| ServingVersion {
            version: present.manifest.version.clone(),
            digest: present.digest.clone(),
            permissions: may_read.then(|| shown(&registry, &present.manifest.permissions)),
        });
        Ok(Inspection {
            instances: manifest.instances_in_effect(),
            manifest: manifest.without_header_values(),
            consent: if is_refused { None } else { Some(consent_to(&registry, &asked)?) },
            permissions: if is_refused { manifest.permissions } else { shown(&registry, &asked.permissions) },
            size_bytes: size,
            sha256: digest.strip_prefix("sha256:").unwrap_or(&digest).to_owned(),
            installed,
            differences: changes,
            new_permissions: added.map(|added| added.shown(&registry)),
            problems: problems.iter().map(|problem| Problem::of(problem, words)).collect(),
        })
    }

    /// Keeps the compiled file for a while.
    fn keep_inspected(self: &Arc<Self>, kept: Box<dyn Any + Send + Sync>) {
        self.inspected.keep(kept);
        self.retain_installed();
        let app: Weak<App> = Arc::downgrade(self);
        tokio::spawn(async move {
            tokio::time::sleep(KEPT + Duration::from_secs(1)).await;
            if let Some(app) = app.upgrade() {
                app.inspected.forget_old();
                app.retain_installed();
            }
        });
    }

    /// Every reason that would refuse an install by the caller.
    async fn problems_of(
        &self,
        caller: &Caller,
        manifest: &Manifest,
        digest: &str,
        present: Option<&Arc<InstalledBlock>>,
    ) -> Result<Vec<Error>> {
        let present = present.map(|present| &**present);
        let change = self.change(caller, manifest.clone(), digest.to_owned(), None, present, self.registry().version);
        let beside = manifest.clone();
        let interfaces = self.runtime()?.interfaces();
        let (app, acting, inspected) = (self.itself()?, caller.clone(), digest.to_owned());
        let (beside_others, takeover) = self
            .scan(caller, move |connection| {
                Box::pin(async move {
                    let installed = connection.blocks().await?;
                    let subscriptions = connection.subscriptions().await?;
                    let takeover = match app.check_replacement(connection, &acting, &installed, (&beside, &inspected)).await {
                        // The check itself failed.
                        Err(error) if error.code != Code::Forbidden => return Err(error),
                        takeover => takeover,
                    };
                    Ok((check_beside_others(&beside, &beside.requires.blocks(interfaces), &installed, &subscriptions), takeover))
                })
            })
            .await?;
        let checks: [Result<()>; 8] = [
            self.check_consent(&self.registry(), caller, manifest),
            self.check_subscriptions(caller, manifest),
            takeover,
            self.check_requirements(manifest),
            check_actions(manifest, &self.registry(), &self.blocks.read()),
            check_secrets(caller, manifest, present),
            // The list already has missing requirements.
            beside_others.or_else(|error| if error.code == Code::MissingRequirement { Ok(()) } else { Err(error) }),
            change.map(drop),
        ];
        let mut problems: Vec<Error> = Vec::new();
        for problem in checks.into_iter().filter_map(Result::err) {
            if !problems.iter().any(|known| known.message == problem.message) {
                problems.push(problem);
            }
        }
        Ok(problems)
    }
}

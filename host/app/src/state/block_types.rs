//! The types with which the service sees an active block, and the runtime that runs it.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;
use std::time::Duration;

use blockbase_auth::Principal;
use blockbase_query::{Permissions, Variables};
use blockbase_schema::Result;
use blockbase_store::{BlockRow, BlockSecretRow, ClaimedEvent, Maker};
use bytes::Bytes;
use futures_util::future::BoxFuture;
use serde_json::{Map, Value};

use crate::base::stored::Place;
use crate::caller::Caller;
use crate::state::block_usage::{BlockUsage, HandlerKind, HandlerUsage, Usages};
use crate::state::manifest::{ActionDeclaration, Manifest, RunAs};

/// A file that has passed every check, so that it can run.
#[derive(Debug)]
pub struct PreparedBlock {
    pub manifest: Manifest,
    /// The digest of the packed file, with the prefix `sha256:`.
    pub digest: String,
    /// Keeps the compiled code in memory until it is dropped.
    pub kept: Box<dyn std::any::Any + Send + Sync>,
}

/// The runtime of blocks. The operations know only this trait.
pub trait BlockRuntime: Send + Sync {
    /// Checks a packed file, compiles it, and tests its imports, exports and handlers.
    fn prepare(&self, file: Bytes) -> BoxFuture<'_, Result<PreparedBlock>>;

    /// Checks an action's input against its schema.
    ///
    /// # Errors
    /// `validation_failed` with every failure.
    fn validate_input(&self, block: &InstalledBlock, action: &ActionDeclaration, input: &Value) -> Result<()>;

    /// Checks a configuration against the manifest's schema and fills in its defaults.
    fn validate_config(&self, manifest: &Manifest, config: Value) -> Result<Value>;

    /// Calls an action and returns its result, which is JSON text.
    fn call_action(&self, call: ActionCall) -> BoxFuture<'static, Result<ActionOutcome>>;

    /// Passes a third party's request to a hook's handler. `None` if the handler leaves the response to the service.
    fn receive_hook(&self, call: HookCall) -> BoxFuture<'static, Result<Option<HookResponse>>>;

    /// Passes an event to the handler of a subscription.
    fn deliver_event(&self, call: EventCall) -> BoxFuture<'static, Result<()>>;

    /// The interfaces that a manifest may require.
    fn interfaces(&self) -> &'static [&'static str];

    /// Prepares a block for later calls, in the background.
    fn preload(&self, block: &Arc<InstalledBlock>);

    /// Drops from memory what does not belong to the blocks in `serving`: files, and kept instances. A block whose version,
    /// configuration, secrets or maker have changed is another one. Drops files from disk whose digests are not in `kept`.
    fn retain(&self, serving: &[Arc<InstalledBlock>], kept: &HashSet<String>);
}

/// The calls of one active block that may use an instance one after the other. They have the same consent: the maker has the same
/// rights. If the block asks for reuse as the caller, they also have the same caller with the same rights and the same values of
/// variables.
#[derive(Clone)]
pub struct ReuseScope {
    /// `None` if there is no maker, so that nothing limits the block.
    maker: Option<Arc<Permissions>>,
    caller: Option<ScopeCaller>,
}

/// The caller of a scope.
#[derive(Clone)]
struct ScopeCaller {
    principal: Principal,
    rights: Arc<Permissions>,
    /// The values of the caller's variables, which the block's own permissions can name. The time is left out, and the roles are
    /// in order.
    variables: Variables,
}

/// Whether a later call may use a kept instance.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reusable {
    Yes,
    No,
    /// The later call shows that the rights of the maker, or of the same caller, have changed. So no call may use the instance
    /// any more, even if the rights change back.
    Never,
}

impl ReuseScope {
    /// `None` if the call gets an instance of its own. `maker` are the rights that the block's maker has now.
    pub(crate) fn of(manifest: &Manifest, invoker: &Caller, maker: Option<&Arc<Permissions>>) -> Option<ReuseScope> {
        let caller = match manifest.reuse()?.as_caller {
            false => None,
            // Callers without a credential look the same, but are different callers.
            true if !invoker.is_known() => return None,
            true => Some(ScopeCaller::of(invoker)),
        };
        Some(ReuseScope { maker: maker.cloned(), caller })
    }

    /// Whether a call of the scope `later` may use an instance of this scope.
    ///
    /// The server reads rights again every few seconds, and each time has them at another address in memory. So if the rights are
    /// the same, this scope takes those of the later call. A further call with them only needs to compare two addresses.
    /// `compared` is kept while one call looks at several instances.
    pub fn reusable_for(&mut self, later: &ReuseScope, compared: &mut ComparedRights) -> Reusable {
        let has_same_maker = match (&mut self.maker, &later.maker) {
            (Some(one), Some(two)) => compared.are_same(one, two),
            (one, two) => one.is_none() && two.is_none(),
        };
        if !has_same_maker {
            return Reusable::Never;
        }
        match (&mut self.caller, &later.caller) {
            (None, None) => Reusable::Yes,
            (Some(one), Some(two)) if one.principal == two.principal => {
                match one.variables == two.variables && compared.are_same(&mut one.rights, &two.rights) {
                    true => Reusable::Yes,
                    false => Reusable::Never,
                }
            }
            _ => Reusable::No,
        }
    }
}

impl ScopeCaller {
    fn of(invoker: &Caller) -> ScopeCaller {
        let mut variables = invoker.variables(0);
        if let Some(roles) = &mut variables.roles {
            roles.sort_unstable();
            roles.dedup();
        }
        ScopeCaller { principal: invoker.principal.clone(), rights: Arc::clone(invoker.rights()), variables }
    }
}

/// The pairs of rights in memory that one call has compared. Many instances have the very same rights in memory, which are then
/// compared once.
#[derive(Default)]
pub struct ComparedRights {
    same: Vec<[Arc<Permissions>; 2]>,
    different: Vec<[Arc<Permissions>; 2]>,
}

impl ComparedRights {
    /// Whether the rights of one party, read at two times, are the same. If they are, `one` becomes `two`.
    fn are_same(&mut self, one: &mut Arc<Permissions>, two: &Arc<Permissions>) -> bool {
        if Arc::ptr_eq(one, two) {
            return true;
        }
        let is_pair = |pair: &[Arc<Permissions>; 2]| Arc::ptr_eq(&pair[0], one) && Arc::ptr_eq(&pair[1], two);
        if self.different.iter().any(is_pair) {
            return false;
        }
        if !self.same.iter().any(is_pair) {
            let pair = [Arc::clone(one), Arc::clone(two)];
            if !are_same_rights(one, two) {
                self.different.push(pair);
                return false;
            }
            self.same.push(pair);
        }
        *one = Arc::clone(two);
        true
    }
}

fn are_same_rights(one: &Permissions, two: &Permissions) -> bool {
    let includes = |one: &Permissions, two: &Permissions| one.first_not_held(two).is_none() && one.mean_the_same_for(two);
    includes(one, two) && includes(two, one)
}

/// One call of an action.
pub struct ActionCall {
    pub block: Arc<InstalledBlock>,
    pub action: String,
    /// The input as JSON text.
    pub input: String,
    /// A caller with the block's rights, and the invoker.
    pub caller: Caller,
    pub call_id: String,
    pub timeout: Duration,
    pub usage: Arc<HandlerUsage>,
    /// `None` if the call gets an instance of its own.
    pub reuse: Option<ReuseScope>,
}

/// A third party's request.
#[derive(Clone, Debug)]
pub struct HookRequest {
    pub method: String,
    /// The path as it was sent, percent-encoded.
    pub path: String,
    /// The query, without the question mark.
    pub query: String,
    pub headers: Vec<(String, Vec<u8>)>,
    pub body: Bytes,
    pub remote_address: String,
}

/// The response of a hook. The surface checks that it is valid.
#[derive(Clone, Debug)]
pub struct HookResponse {
    pub status: u16,
    pub headers: Vec<(String, Vec<u8>)>,
    pub body: Bytes,
}

/// One call of a hook.
pub struct HookCall {
    pub block: Arc<InstalledBlock>,
    pub hook: String,
    pub request: HookRequest,
    /// A caller with the block's rights. The client that sent the request has only the rights of everybody.
    pub caller: Caller,
    pub call_id: String,
    pub timeout: Duration,
    pub usage: Arc<HandlerUsage>,
    /// `None` if the call gets an instance of its own.
    pub reuse: Option<ReuseScope>,
}

/// One delivery of an event to a block's handler.
pub struct EventCall {
    pub block: Arc<InstalledBlock>,
    pub handler: String,
    pub event: ClaimedEvent,
    /// The number of the attempt, from 1.
    pub attempt: u32,
    /// The subscription's own configuration, as JSON text.
    pub config: String,
    /// A caller with the block's rights, without an invoker.
    pub caller: Caller,
    pub call_id: String,
    pub timeout: Duration,
    pub usage: Arc<HandlerUsage>,
    /// `None` if the call gets an instance of its own.
    pub reuse: Option<ReuseScope>,
}

/// An action's result as JSON text.
pub type ActionOutcome = String;

/// An installed block in its active version.
#[derive(Debug)]
pub struct InstalledBlock {
    pub manifest: Manifest,
    pub digest: String,
    pub enabled: bool,
    /// The set values, and the manifest's defaults for the others. It is empty if the stored configuration cannot be read.
    pub config: Value,
    /// The set values without the defaults. `None` if the stored configuration cannot be read. Then no handler runs, because its
    /// configuration is unknown.
    pub(crate) configured: Option<Map<String, Value>>,
    pub(crate) secrets: HashMap<String, BlockSecretRow>,
    pub(crate) installed_at: i64,
    pub(crate) installed_by: Option<String>,
    /// The versions with the digests of their files, the newest first.
    pub(crate) versions: Vec<(String, String)>,
    plain: Arc<Permissions>,
    as_caller: Arc<Permissions>,
    /// The caller who consented to the block's rights.
    pub(crate) maker: Maker,
    /// The usage of the block's calls on this instance.
    pub(crate) usage: Arc<BlockUsage>,
}

/// The place where the manifest of a block's active version is stored.
pub(crate) fn manifest_place(block: &str) -> Place<'_> {
    Place::new("svc_block_versions", "manifest", block)
}

impl InstalledBlock {
    pub(crate) fn of_row(row: BlockRow, usages: &Usages) -> Result<InstalledBlock> {
        let manifest: Manifest = manifest_place(&row.name).decides(&row.manifest)?;
        let grants = |run_as: Option<RunAs>| {
            let data = manifest.permissions.data.iter().filter(|permission| permission.run_as == run_as);
            data.map(|permission| permission.grant()).collect::<Vec<_>>()
        };
        // `own` means the rows of the invoker, who is known only at the call. So the permissions have no owner yet.
        let configured: Option<Map<String, Value>> = Place::new("svc_blocks", "config", &row.name).found(&row.config);
        let config = match &configured {
            Some(set) => manifest.configured(Value::Object(set.clone())),
            None => Value::Object(Map::new()),
        };
        let (plain, as_caller) = (grants(None), grants(Some(RunAs::Caller)));
        Ok(InstalledBlock {
            digest: row.digest,
            enabled: row.enabled,
            config,
            configured,
            secrets: row.secrets.into_iter().map(|secret| (secret.name.clone(), secret)).collect(),
            installed_at: row.installed_at,
            installed_by: row.installed_by,
            maker: row.maker,
            versions: row.versions,
            plain: Arc::new(Permissions::new(plain, None)),
            as_caller: Arc::new(Permissions::new(as_caller, None)),
            usage: usages.of(&manifest.name),
            manifest,
        })
    }

    pub fn name(&self) -> &str {
        &self.manifest.name
    }

    /// The counters for the calls of one of the block's handlers.
    pub(crate) fn usage_of(&self, kind: HandlerKind, name: &str) -> Arc<HandlerUsage> {
        self.usage.of(kind, name)
    }

    /// The rights that the manifest asks for: first the rights of the block for itself, then its rights as its caller. They are
    /// not yet limited to those of the block's maker. [`App::block_caller`] does that.
    pub(crate) fn asked(&self) -> [Arc<Permissions>; 2] {
        [Arc::clone(&self.plain), Arc::clone(&self.as_caller)]
    }

    /// When this version was installed, in milliseconds since the epoch.
    pub(crate) fn installed_at(&self) -> i64 {
        self.installed_at
    }
}

#[cfg(test)]
mod tests {
    use blockbase_auth::{Actor, Via};
    use blockbase_query::{Action, Grant};

    use super::*;

    fn rights(actions: &[Action]) -> Arc<Permissions> {
        Arc::new(Permissions::new(vec![Grant::new("task", actions.to_vec(), None)], None))
    }

    fn of_maker(maker: Option<&Arc<Permissions>>) -> ReuseScope {
        ReuseScope { maker: maker.cloned(), caller: None }
    }

    fn of_caller(principal: Principal, rights: &Arc<Permissions>, email: &str, roles: &[&str]) -> ReuseScope {
        let roles = Some(roles.iter().map(|role| (*role).to_owned()).collect());
        let variables = Variables { email: Some(email.to_owned()), roles, ..Variables::default() };
        ReuseScope { maker: None, caller: Some(ScopeCaller { principal, rights: Arc::clone(rights), variables }) }
    }

    fn reusable(one: &ReuseScope, later: &ReuseScope) -> Reusable {
        one.clone().reusable_for(later, &mut ComparedRights::default())
    }

    #[test]
    fn other_rights_of_the_maker_end_an_instance_and_the_same_ones_read_again_do_not() {
        let [reads, again, writes] = [&[Action::Read][..], &[Action::Read], &[Action::Read, Action::Update]].map(rights);
        let (mut kept, mut compared) = (of_maker(Some(&reads)), ComparedRights::default());
        assert_eq!(kept.reusable_for(&of_maker(Some(&again)), &mut compared), Reusable::Yes);
        assert!(kept.maker.is_some_and(|maker| Arc::ptr_eq(&maker, &again)), "the next comparison is that of the addresses");
        assert_eq!((compared.same.len(), compared.different.len()), (1, 0));
        for _ in 0..2 {
            let mut second = of_maker(Some(&reads));
            assert_eq!(second.reusable_for(&of_maker(Some(&again)), &mut compared), Reusable::Yes);
            assert_eq!(second.reusable_for(&of_maker(Some(&writes)), &mut compared), Reusable::Never);
        }
        assert_eq!((compared.same.len(), compared.different.len()), (1, 1), "each pair is compared once");
        assert_eq!(reusable(&of_maker(Some(&writes)), &of_maker(Some(&reads))), Reusable::Never);
        assert_eq!(reusable(&of_maker(None), &of_maker(Some(&reads))), Reusable::Never);
        assert_eq!(reusable(&of_maker(None), &of_maker(None)), Reusable::Yes);
    }

    #[test]
    fn other_variables_of_the_same_caller_end_an_instance() {
        let calls = rights(&[Action::Update]);
        let user = |id: &str| Principal::Known(Actor { user_id: Some(id.to_owned()), api_key_id: None, via: Via::Session });
        let kept = of_caller(user("a"), &calls, "a@example.com", &["calls", "extra"]);
        let later =
            |email: &str, roles: &[&str]| reusable(&kept, &of_caller(user("a"), &rights(&[Action::Update]), email, roles));
        assert_eq!(later("a@example.com", &["calls", "extra"]), Reusable::Yes);
        assert_eq!(later("a@example.com", &["calls"]), Reusable::Never, "although the role had no grants");
        assert_eq!(later("b@example.com", &["calls", "extra"]), Reusable::Never);
        let other = of_caller(user("b"), &calls, "a@example.com", &["calls", "extra"]);
        assert_eq!(reusable(&kept, &other), Reusable::No);
        assert_eq!(reusable(&kept, &of_maker(None)), Reusable::No);
    }
}

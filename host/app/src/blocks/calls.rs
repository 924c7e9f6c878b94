//! Calls of blocks: callers call actions, and third parties call hooks.
//!
//! The permission is checked before the input. Otherwise an error of the input would reveal the action's schema to callers without the
//! permission. Validation runs outside the sandbox, so a keyword that the server adds to the schema counts its steps.

use std::sync::Arc;
use std::time::Duration;

use blockbase_query::Action;
use blockbase_schema::json::parse_unique;
use blockbase_schema::{Code, Error, Resource, Result};

use crate::App;
use crate::access::suspension::stopped;
use crate::base::offload::run_offloaded;
use crate::caller::maker_rights::MakerRights;
use crate::caller::{Caller, Credentials};
use crate::state::block_types::{ActionCall, ActionOutcome, HookCall, HookRequest, HookResponse, InstalledBlock, ReuseScope};
use crate::state::block_usage::HandlerKind;
use crate::state::manifest::ActionDeclaration;

impl App {
    /// The enabled block, and the index of an action in its manifest that the caller may call.
    ///
    /// # Errors
    /// `not_found` for callers who may see blocks. Other callers get the same error for an unknown action and for one that they may not
    /// call.
    pub(crate) fn callable(&self, caller: &Caller, block: &str, action: &str) -> Result<(Arc<InstalledBlock>, usize)> {
        match self.declared(block, action) {
            Ok((block, place)) if self.may_call(caller, &block.manifest.actions[place]) => Ok((block, place)),
            Err(missing) if caller.holds(Resource::Blocks, Action::Read) || caller.holds(Resource::Blocks, Action::Update) => {
                Err(missing)
            }
            _ if caller.is_known() => Err(Error::new(Code::Forbidden, "There is no such action, or you may not call it.")),
            _ => Err(caller.require(Resource::Blocks, Action::Update).err().unwrap_or_else(|| Error::not_found("action"))),
        }
    }

    fn declared(&self, block: &str, action: &str) -> Result<(Arc<InstalledBlock>, usize)> {
        let block = self.installed(block)?;
        let missing = |message: String| Err(Error::new(Code::NotFound, message));
        if !block.enabled {
            return missing(format!("The block `{}` is disabled.", block.name()));
        }
        match block.manifest.actions.iter().position(|declared| declared.name == action) {
            Some(place) => Ok((block, place)),
            None => missing(format!("The block `{}` declares no action `{action}`.", block.name())),
        }
    }

    /// Whether the caller may call an action. On a resource without rows, a grant for own rows gives no right.
    pub(crate) fn may_call(&self, caller: &Caller, action: &ActionDeclaration) -> bool {
        let (resource, needed) = action.permission();
        match self.registry().object(resource).filter(|object| !object.is_users()) {
            Some(_) => caller.may(resource, needed),
            None => caller.holds(resource, needed),
        }
    }

    /// Whether the caller may call an action by its name. The block may be disabled. An unknown action needs the same permission as an
    /// action that names none.
    pub(crate) fn may_call_declared(&self, caller: &Caller, block: &str, action: &str) -> bool {
        let block = self.blocks.read().get(block).cloned();
        match block.as_ref().and_then(|block| block.manifest.actions.iter().find(|declared| declared.name == action)) {
            Some(declared) => self.may_call(caller, declared),
            None => caller.holds(Resource::Blocks, Action::Update),
        }
    }

    /// Looks once in the database for an action that is unknown here, because another instance may have installed it a moment ago.
    pub(crate) async fn look_for_action(&self, caller: &Caller, block: &str, action: &str) -> Result<()> {
        let is_missing = self.declared(block, action).is_err();
        if is_missing && caller.is_known() {
            self.looked_for_blocks().await?;
        }
        Ok(())
    }

    /// The caller for a block's own calls. It has the block's rights, limited to the current rights of the maker who consented to
    /// them. The records that it writes have the invoker's stamps. The second part of the result are the calls whose instances
    /// this call may use, if the block reuses instances.
    ///
    /// # Errors
    /// `forbidden` if that maker was deleted or banned; `internal` if the stored configuration cannot be read.
    pub(crate) async fn block_caller(&self, block: &InstalledBlock, invoker: &Caller) -> Result<(Caller, Option<ReuseScope>)> {
        if block.configured.is_none() {
            return Err(Error::internal(format!("the stored configuration of the block `{}` cannot be read", block.name())));
        }
        let generation = self.identities.generation();
        let maker = self.rights_of_maker(&block.maker).await?;
        if let MakerRights::Suspended(reason) = maker {
            return Err(Error::new(Code::Forbidden, stopped("block", reason)));
        }
        let rights = self.rights_of_block(block, invoker, maker.rights(), generation);
        let mut caller = Caller { authority: rights.authority.clone(), ..invoker.clone() };
        if let Some(consent) = &rights.consent {
            caller.basis.consent = Some(Arc::clone(consent));
        }
        Ok((caller, ReuseScope::of(&block.manifest, invoker, maker.rights())))
    }

    /// Calls an action. It first checks the permission, then validates the input, and then runs the handler.
    ///
    /// # Errors
    /// `not_found`, `validation_failed`, `unauthorized`, `forbidden`, `action_failed`, `action_timeout`, or the handler's own error.
    pub async fn call_action(
        &self,
        caller: &Caller,
        block: &str,
        action: &str,
        input: String,
        call_id: String,
    ) -> Result<ActionOutcome> {
        self.recheck(caller).await?;
        self.look_for_action(caller, block, action).await?;
        let (block, place) = self.callable(caller, block, action)?;
        let declared = &block.manifest.actions[place];
        let runtime = self.runtime()?;
        run_offloaded(input.len(), || runtime.validate_input(&block, declared, &parse_unique(&input)?))?;
        let timeout = Duration::from_millis(declared.timeout_ms.unwrap_or(self.settings.action_timeout_ms));
        let (caller_of_block, reuse) = self.block_caller(&block, caller).await?;
        let call = ActionCall {
            action: action.to_owned(),
            caller: caller_of_block,
            block: Arc::clone(&block),
            input,
            call_id,
            timeout,
            usage: block.usage_of(HandlerKind::Action, action),
            reuse,
        };
        let code = |error: &Error| error.code.as_str();
        let usage = Arc::clone(&call.usage);
        let run = usage.observe(runtime.call_action(call));
        let answer = blockbase_telemetry::observe_action(block.name(), action, code, run).await;
        self.block_faults.note(block.name(), answer.as_ref().err(), self.clock.now());
        // The caller may have lost the right during the call. Then they must not get the result.
        self.recheck(caller).await?;
        answer
    }

    /// The enabled block that declares a hook.
    ///
    /// # Errors
    /// `not_found`, the same for a missing block and a missing hook.
    pub async fn find_hook(&self, block: &str, hook: &str) -> Result<Arc<InstalledBlock>> {
        let declares = |block: &Arc<InstalledBlock>| block.manifest.hooks.iter().any(|declared| declared.name == hook);
        let find = || self.blocks.read().get(block).filter(|block| block.enabled).filter(|block| declares(block)).cloned();
        let mut found = find();
        // Another instance may have installed the block a moment ago.
        if found.is_none() && self.looked_for_blocks().await? {
            found = find();
        }
        found.ok_or_else(|| Error::not_found("hook"))
    }

    /// Gives a third party's request to a hook's handler. Sessions have no effect here. The handler itself checks the sender's
    /// signature. `None` if the handler leaves the response to the service.
    ///
    /// # Errors
    /// `not_found`, `action_timeout`, `unavailable`, and `action_failed` without details for any other failure. The block's log has the
    /// details.
    pub async fn receive_hook(
        &self,
        block: &str,
        hook: &str,
        request: HookRequest,
        call_id: String,
    ) -> Result<Option<HookResponse>> {
        let block = self.find_hook(block, hook).await?;
        let address = request.remote_address.parse().ok();
        let nobody = self.authenticate(&Credentials { address, ..Credentials::default() }).await?;
        let (caller, reuse) = self.block_caller(&block, &nobody).await?;
        let call = HookCall {
            hook: hook.to_owned(),
            request,
            caller,
            block: Arc::clone(&block),
            call_id: call_id.clone(),
            timeout: Duration::from_millis(self.settings.action_timeout_ms),
            usage: block.usage_of(HandlerKind::Hook, hook),
            reuse,
        };
        let code = |error: &Error| error.code.as_str();
        let usage = Arc::clone(&call.usage);
        let run = usage.observe(self.runtime()?.receive_hook(call));
        let answer = blockbase_telemetry::observe_hook(block.name(), hook, code, run).await;
        self.block_faults.note(block.name(), answer.as_ref().err(), self.clock.now());
        answer.map_err(|error| {
            let message = format!("The hook `{hook}` failed: {}", error.message);
            self.log_block_line(block.name(), &call_id, "error", &message, None);
            match error.code {
                Code::ActionTimeout => Error::new(Code::ActionTimeout, "The hook did not end in time."),
                // This error comes from the server's own state. The sender should wait and retry.
                Code::Unavailable | Code::Internal => error,
                _ => Error::new(Code::ActionFailed, "The hook failed."),
            }
        })
    }
}

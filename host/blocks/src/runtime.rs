//! The runtime: packed files made ready, and calls in instances of their own.

use std::collections::{HashMap, HashSet};
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use blockbase_app::schema::{Code, Error, Issue, Result, time};
use blockbase_app::{
    ActionCall, ActionDeclaration, ActionOutcome, App, BlockRuntime, Caller, EventCall, InstalledBlock, Manifest, PreparedBlock,
    is_built_in,
};
use bytes::Bytes;
use futures_util::future::BoxFuture;
use parking_lot::RwLock;
use serde_json::Value;
use sha2::{Digest, Sha256};
use tokio::sync::Semaphore;
use wasmtime::component::{Component, HasSelf, Instance, InstancePre, Linker};
use wasmtime::{Engine, Store, Trap};

use crate::bindings::blockbase::block::{config, data, deadline, log, types};
use crate::bindings::exports::blockbase::block::{actions, hooks, registry, subscriptions};
use crate::cache::CompileCache;
use crate::call::{CallState, LimitHit, RESULT_BYTES_MAX, Service};
use crate::compile::{CompileLimits, Compiler};
use crate::engine::{self, CALLS_MAX};
use crate::host::INTERFACES;
use crate::manifest::{invalid, validator, with_defaults};
use crate::package::manifest_of;

/// What the runtime needs to know of the configuration.
#[derive(Clone, Debug)]
pub struct RuntimeSettings {
    /// Where compiled blocks are kept.
    pub cache_directory: PathBuf,
    /// The master secret, which signs them.
    pub secret: Vec<u8>,
    /// Linear memory of one call, all memories together.
    pub memory_bytes_max: usize,
    /// The program and argument that run [`crate::compile_child`].
    pub compiler: (PathBuf, &'static str),
    pub compile_limits: CompileLimits,
}

/// Runs blocks.
pub struct Runtime {
    inner: Arc<Inner>,
}

struct Inner {
    engine: Engine,
    linker: Linker<CallState>,
    cache: Arc<CompileCache>,
    compiler: Compiler,
    memory_bytes_max: usize,
    /// A place for each call that the pool has room for.
    places: Semaphore,
    /// Ready components by digest.
    loaded: RwLock<HashMap<String, Arc<Loaded>>>,
    /// One load at a time, so that a cold block is compiled once.
    loading: tokio::sync::Mutex<()>,
    validators: RwLock<HashMap<(String, String), Arc<jsonschema::Validator>>>,
}

/// A component that is compiled, linked and looked through.
struct Loaded {
    pre: InstancePre<CallState>,
    registry: registry::GuestIndices,
    actions: Option<actions::GuestIndices>,
    hooks: Option<hooks::GuestIndices>,
    subscriptions: Option<subscriptions::GuestIndices>,
}

/// Interfaces of the block package that every block may import.
const FREE_INTERFACES: [&str; 2] = ["types", "deadline"];
/// Time that a block has to report its handlers.
const REGISTRY_TIMEOUT: Duration = Duration::from_secs(5);
/// Bytes that a guest may hand over in one host call.
const HOST_CALL_BYTES_MAX: usize = 16 * 1024 * 1024;
/// Bytes of a handler's error message that reach the caller.
const ERROR_MESSAGE_BYTES_MAX: usize = 4 * 1024;

impl Runtime {
    /// # Errors
    /// A sentence for the operator: the machine cannot run the engine, or the cache cannot be made.
    pub fn new(settings: RuntimeSettings) -> std::result::Result<Runtime, String> {
        let explain = |error: wasmtime::Error| format!("The block runtime cannot start: {error:#}");
        let engine = engine::running(settings.memory_bytes_max).map_err(explain)?;
        engine::start_ticker(&engine).map_err(|error| format!("The block runtime cannot start: {error}"))?;
        let linker = linker(&engine).map_err(explain)?;
        let cache = CompileCache::open(&settings.cache_directory, &settings.secret, &engine)?;
        let (program, argument) = settings.compiler;
        Ok(Runtime {
            inner: Arc::new(Inner {
                engine,
                linker,
                cache: Arc::new(cache),
                compiler: Compiler::new(program, argument, settings.compile_limits),
                memory_bytes_max: settings.memory_bytes_max,
                places: Semaphore::new(CALLS_MAX as usize),
                loaded: RwLock::default(),
                loading: tokio::sync::Mutex::new(()),
                validators: RwLock::default(),
            }),
        })
    }
}

fn linker(engine: &Engine) -> wasmtime::Result<Linker<CallState>> {
    let mut linker = Linker::new(engine);
    wasmtime_wasi::p2::add_to_linker_async(&mut linker)?;
    types::add_to_linker::<_, HasSelf<CallState>>(&mut linker, |state| state)?;
    data::add_to_linker::<_, HasSelf<CallState>>(&mut linker, |state| state)?;
    config::add_to_linker::<_, HasSelf<CallState>>(&mut linker, |state| state)?;
    log::add_to_linker::<_, HasSelf<CallState>>(&mut linker, |state| state)?;
    deadline::add_to_linker::<_, HasSelf<CallState>>(&mut linker, |state| state)?;
    Ok(linker)
}

/// The manifest of a packed file that was validated whole, and the file's digest; off the runtime's threads.
async fn looked_at(file: Bytes) -> Result<(Manifest, String)> {
    let look = move || Ok((manifest_of(&file)?, format!("sha256:{}", hex::encode(Sha256::digest(&file)))));
    tokio::task::spawn_blocking(look).await.map_err(Error::internal)?
}

impl Inner {
    fn loaded(&self, digest: &str) -> Option<Arc<Loaded>> {
        self.loaded.read().get(digest).cloned()
    }

    /// The block's component, from memory, from the cache on disk, or compiled anew from its file.
    async fn load(&self, app: &App, block: &InstalledBlock) -> Result<Arc<Loaded>> {
        let digest = &block.digest;
        if let Some(loaded) = self.loaded(digest) {
            return Ok(loaded);
        }
        let _one = self.loading.lock().await;
        if let Some(loaded) = self.loaded(digest) {
            return Ok(loaded);
        }
        let component = match self.cached(digest).await? {
            Some(component) => component,
            None => {
                let file = Bytes::from(app.block_file(block).await?);
                let (_, actual) = looked_at(file.clone()).await?;
                // Another file may have been installed under the name and version meanwhile.
                if actual != *digest {
                    let message = "The block was replaced while the call waited. Try again.";
                    return Err(Error::new(Code::Unavailable, message));
                }
                self.compile(digest, file).await?
            }
        };
        let loaded = Arc::new(self.link(&component)?);
        self.loaded.write().insert(digest.clone(), Arc::clone(&loaded));
        Ok(loaded)
    }

    async fn cached(&self, digest: &str) -> Result<Option<Component>> {
        let (cache, engine, digest) = (Arc::clone(&self.cache), self.engine.clone(), digest.to_owned());
        tokio::task::spawn_blocking(move || cache.load(&engine, &digest)).await.map_err(Error::internal)
    }

    async fn compile(&self, digest: &str, file: Bytes) -> Result<Component> {
        let code = self.compiler.compile(&file).await?;
        let (cache, engine, digest) = (Arc::clone(&self.cache), self.engine.clone(), digest.to_owned());
        tokio::task::spawn_blocking(move || cache.keep(&engine, &digest, &code))
            .await
            .map_err(Error::internal)?
            .map_err(|error| invalid(format!("The component does not fit the limits of this server: {error}.")))
    }

    fn link(&self, component: &Component) -> Result<Loaded> {
        let pre = self
            .linker
            .instantiate_pre(component)
            .map_err(|error| invalid(format!("The component cannot be linked: {error}.")))?;
        let registry = registry::GuestIndices::new(&pre)
            .map_err(|_| invalid("The component does not export `blockbase:block/registry@0.1.0`."))?;
        let actions = actions::GuestIndices::new(&pre).ok();
        let hooks = hooks::GuestIndices::new(&pre).ok();
        let subscriptions = subscriptions::GuestIndices::new(&pre).ok();
        Ok(Loaded { pre, registry, actions, hooks, subscriptions })
    }

    /// Runs `work` in a new instance, within the bounds of a call; the instance is gone afterwards.
    async fn run<T>(
        &self,
        pre: &InstancePre<CallState>,
        state: CallState,
        timeout: Duration,
        work: impl AsyncFnOnce(&mut Store<CallState>, &Instance) -> wasmtime::Result<T>,
    ) -> Result<T> {
        let place = tokio::time::timeout(timeout, self.places.acquire()).await;
        let Ok(place) = place else {
            let message = "As many block calls run as this server allows. Try again later.";
            return Err(Error::new(Code::Unavailable, message));
        };
        let _place = place.map_err(Error::internal)?;
        let mut store = Store::new(&self.engine, state);
        store.limiter(|state| state);
        store.set_hostcall_fuel(HOST_CALL_BYTES_MAX);
        // At each tick a running guest gives way; then the timeout below can end it.
        store.epoch_deadline_async_yield_and_update(1);
        let outcome = tokio::time::timeout(timeout, async {
            let instance = pre.instantiate_async(&mut store).await?;
            work(&mut store, &instance).await
        })
        .await;
        store.data().log_streams();
        match outcome {
            Err(_) => Err(Error::new(
                Code::ActionTimeout,
                format!("The action did not end within {} ms and was stopped.", timeout.as_millis()),
            )),
            Ok(Ok(value)) => Ok(value),
            Ok(Err(error)) => Err(trapped(&error, store.data().allocation_limit)),
        }
    }

    /// What a component says that it handles: names and kinds.
    async fn handlers(&self, loaded: &Loaded) -> Result<Vec<registry::Handler>> {
        let state = CallState::new(None, "install".to_owned(), REGISTRY_TIMEOUT, self.memory_bytes_max);
        self.run(&loaded.pre, state, REGISTRY_TIMEOUT, async |store, instance| {
            // Loading also checks the signatures of what is exported.
            if let Some(actions) = &loaded.actions {
                actions.load(&mut *store, instance)?;
            }
            if let Some(hooks) = &loaded.hooks {
                hooks.load(&mut *store, instance)?;
            }
            if let Some(subscriptions) = &loaded.subscriptions {
                subscriptions.load(&mut *store, instance)?;
            }
            let guest = loaded.registry.load(&mut *store, instance)?;
            guest.call_handlers(store).await
        })
        .await
        .map_err(|error| invalid(format!("The block does not report its handlers: {}", error.message)))
    }

    async fn prepare(&self, file: Bytes) -> Result<PreparedBlock> {
        let (manifest, digest) = looked_at(file.clone()).await?;
        let component = match self.cached(&digest).await? {
            Some(component) => component,
            None => self.compile(&digest, file).await?,
        };
        check_imports(&manifest, component.component_type().imports(&self.engine).map(|(name, _)| name))?;
        let loaded = self.link(&component)?;
        let handlers = self.handlers(&loaded).await?;
        check_handlers(&manifest, &handlers)?;
        let own_subscriptions = manifest.subscriptions.iter().any(|declared| !is_built_in(&declared.handler));
        for (interface, declared, exported) in [
            ("actions", !manifest.actions.is_empty(), loaded.actions.is_some()),
            ("hooks", !manifest.hooks.is_empty(), loaded.hooks.is_some()),
            ("subscriptions", own_subscriptions, loaded.subscriptions.is_some()),
        ] {
            if declared && !exported {
                return Err(invalid(format!(
                    "The manifest declares {interface}, but the component does not export `blockbase:block/{interface}@0.1.0`."
                )));
            }
        }
        let config = checked_config(&manifest, Value::Object(serde_json::Map::new()))?;
        Ok(PreparedBlock { manifest, digest, config })
    }

    async fn call_action(&self, call: ActionCall) -> Result<ActionOutcome> {
        let loaded = self.load(&call.app, &call.block).await?;
        let Some(actions) = &loaded.actions else {
            return Err(Error::new(Code::NotFound, format!("The block handles no action `{}`.", call.action)));
        };
        let ActionCall { app, block, action, input, caller, call_id, timeout } = call;
        let context = context(&call_id, &caller, &block);
        let service = Service { app, block, caller };
        let state = CallState::new(Some(service), call_id, timeout, self.memory_bytes_max);
        let answer = self
            .run(&loaded.pre, state, timeout, async |store, instance| {
                let guest = actions.load(&mut *store, instance)?;
                guest.call_call(store, &context, &action, &input).await
            })
            .await?;
        let result = answer.map_err(handler_error)?;
        if result.len() > RESULT_BYTES_MAX {
            return Err(Error::new(Code::ActionFailed, format!("{}.", LimitHit::Result)));
        }
        match serde_json::from_str::<serde::de::IgnoredAny>(&result) {
            Ok(_) => Ok(result),
            Err(_) => Err(Error::new(Code::ActionFailed, "The handler's result is not JSON.")),
        }
    }
}

impl Inner {
    async fn deliver_event(&self, call: EventCall) -> Result<()> {
        let loaded = self.load(&call.app, &call.block).await?;
        let Some(subscriptions) = &loaded.subscriptions else {
            return Err(Error::new(Code::NotFound, format!("The block handles no events as `{}`.", call.handler)));
        };
        let EventCall { app, block, handler, event, attempt, config, caller, call_id, timeout } = call;
        let context = context(&call_id, &caller, &block);
        let event = subscriptions::Event {
            id: event.id,
            topic: event.topic,
            payload: event.payload,
            occurred_at: time::format_datetime(event.occurred_at),
            attempt,
        };
        let service = Service { app, block, caller };
        let state = CallState::new(Some(service), call_id, timeout, self.memory_bytes_max);
        let answer = self
            .run(&loaded.pre, state, timeout, async |store, instance| {
                let guest = subscriptions.load(&mut *store, instance)?;
                guest.call_deliver(store, &context, &handler, &event, &config).await
            })
            .await?;
        answer.map_err(handler_error)
    }
}

/// What a handler is told of its call.
fn context(call_id: &str, caller: &Caller, block: &InstalledBlock) -> types::Context {
    types::Context {
        call_id: call_id.to_owned(),
        actor: caller.principal.actor().map(|actor| types::Actor {
            user_id: actor.user_id.clone(),
            api_key_id: actor.api_key_id.clone(),
            via: actor.via.name().to_owned(),
        }),
        block: block.name().to_owned(),
    }
}

/// The handler's own failure: the codes that are its to give, everything else a failed action.
fn handler_error(error: types::Error) -> Error {
    let code = match error.code.as_str() {
        "not_found" => Code::NotFound,
        "invalid_request" => Code::InvalidRequest,
        "forbidden" => Code::Forbidden,
        "conflict" => Code::Conflict,
        "unavailable" => Code::Unavailable,
        _ => Code::ActionFailed,
    };
    let mut message = error.message;
    if message.len() > ERROR_MESSAGE_BYTES_MAX {
        message.truncate(message.floor_char_boundary(ERROR_MESSAGE_BYTES_MAX));
        message.push('…');
    }
    Error::new(code, message)
}

/// A trap or a bound, without addresses or anything else of the inside.
fn trapped(error: &wasmtime::Error, allocation_limit: Option<LimitHit>) -> Error {
    let message = match (error.downcast_ref::<LimitHit>().copied().or(allocation_limit), error.downcast_ref::<Trap>()) {
        (Some(limit), _) => format!("A limit of the call was hit: {limit}."),
        (None, Some(trap)) => format!("The block trapped: {}.", trap.to_string().trim_start_matches("wasm trap: ")),
        (None, None) => {
            // Not a trap of the guest's code: an exit, or a value that the interface does not allow.
            tracing::warn!(error.cause = %format!("{error:#}"), "a block's call ended abnormally");
            "The block trapped: the call ended abnormally.".to_owned()
        }
    };
    Error::new(Code::ActionFailed, message)
}

fn check_imports<'a>(manifest: &Manifest, imports: impl Iterator<Item = &'a str>) -> Result<()> {
    for import in imports {
        let Some(interface) = import.strip_prefix("blockbase:block/") else {
            let is_wasi = import.starts_with("wasi:") && !import.starts_with("wasi:http/");
            match is_wasi {
                true => continue,
                false => return Err(invalid(format!("The component imports `{import}`, which this server does not offer."))),
            }
        };
        let (interface, version) = interface.split_once('@').unwrap_or((interface, ""));
        if version != "0.1.0" || !(INTERFACES.contains(&interface) || FREE_INTERFACES.contains(&interface)) {
            return Err(invalid(format!("The component imports `{import}`, which this server does not offer.")));
        }
        if !FREE_INTERFACES.contains(&interface) && !manifest.requires.plugins.iter().any(|plugin| plugin == interface) {
            return Err(invalid(format!(
                "The component imports `{import}`, but the manifest does not ask for `{interface}` in `requires.plugins`."
            )));
        }
    }
    Ok(())
}

fn check_handlers(manifest: &Manifest, handlers: &[registry::Handler]) -> Result<()> {
    let has = |name: &str, kind: &str| handlers.iter().any(|handler| handler.name == name && handler.kind == kind);
    let mut missing = Vec::new();
    missing.extend(
        manifest.actions.iter().filter(|action| !has(&action.name, "action")).map(|action| format!("action `{}`", action.name)),
    );
    missing.extend(manifest.hooks.iter().filter(|hook| !has(&hook.name, "hook")).map(|hook| format!("hook `{}`", hook.name)));
    missing.extend(
        manifest
            .subscriptions
            .iter()
            .map(|subscription| subscription.handler.as_str())
            .filter(|handler| !is_built_in(handler) && !has(handler, "subscription"))
            .map(|handler| format!("subscription handler `{handler}`")),
    );
    match missing.is_empty() {
        true => Ok(()),
        false => Err(invalid(format!("The manifest declares what the component does not handle: {}.", missing.join(", ")))),
    }
}

fn issues(validator: &jsonschema::Validator, value: &Value) -> Vec<Issue> {
    validator
        .iter_errors(value)
        .map(|error| Issue { path: error.instance_path().to_string(), message: error.to_string() })
        .collect()
}

fn validation_failed(what: &str, issues: Vec<Issue>) -> Result<()> {
    if issues.is_empty() {
        return Ok(());
    }
    let mut error =
        Error::new(Code::ValidationFailed, format!("{what} does not match its schema; `issues` lists every failure."));
    error.issues = issues;
    Err(error)
}

fn checked_config(manifest: &Manifest, config: Value) -> Result<Value> {
    let config = with_defaults(manifest.config.as_ref(), config);
    if let Some(schema) = &manifest.config {
        validation_failed("The configuration", issues(&validator(schema)?, &config))?;
    }
    Ok(config)
}

impl BlockRuntime for Runtime {
    fn prepare(&self, file: Bytes) -> BoxFuture<'_, Result<PreparedBlock>> {
        Box::pin(self.inner.prepare(file))
    }

    fn validate_input(&self, block: &InstalledBlock, action: &ActionDeclaration, input: &Value) -> Result<()> {
        let key = (block.digest.clone(), action.name.clone());
        let known = self.inner.validators.read().get(&key).cloned();
        let ready = match known {
            Some(ready) => ready,
            None => {
                let ready = Arc::new(validator(&action.input)?);
                self.inner.validators.write().insert(key, Arc::clone(&ready));
                ready
            }
        };
        if ready.is_valid(input) {
            return Ok(());
        }
        validation_failed("The input", issues(&ready, input))
    }

    fn validate_config(&self, manifest: &Manifest, config: Value) -> Result<Value> {
        checked_config(manifest, config)
    }

    fn call_action(&self, call: ActionCall) -> BoxFuture<'static, Result<ActionOutcome>> {
        let inner = Arc::clone(&self.inner);
        Box::pin(async move { inner.call_action(call).await })
    }

    fn deliver_event(&self, call: EventCall) -> BoxFuture<'static, Result<()>> {
        let inner = Arc::clone(&self.inner);
        Box::pin(async move { inner.deliver_event(call).await })
    }

    fn interfaces(&self) -> &'static [&'static str] {
        &INTERFACES
    }

    fn retain(&self, digests: &HashSet<String>) {
        self.inner.loaded.write().retain(|digest, _| digests.contains(digest));
        self.inner.validators.write().retain(|(digest, _), _| digests.contains(digest));
        self.inner.cache.retain(digests);
    }
}

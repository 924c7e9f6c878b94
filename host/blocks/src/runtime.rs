//! The runtime: prepares packed files, and runs calls in instances of them.

mod ahead;
mod calls;
mod checks;
pub(crate) mod description;
mod guest;

use std::collections::{HashMap, HashSet};
use std::path::PathBuf;
use std::sync::{Arc, Weak};

use blockbase_app::schema::{Code, Error, Result};
use blockbase_app::{
    ActionCall, ActionDeclaration, ActionOutcome, App, BlockRuntime, EventCall, HookCall, HookResponse, InstalledBlock, Manifest,
    PreparedBlock, is_built_in,
};
use blockbase_outbound::Client;
use bytes::Bytes;
use futures_util::FutureExt;
use futures_util::future::{BoxFuture, Shared};
use parking_lot::{Mutex, RwLock};
use serde_json::Value;
use sha2::{Digest, Sha256};
use wasmtime::Engine;
use wasmtime::component::{Component, HasSelf, InstancePre, Linker};

use crate::engine::cache::CompileCache;
use crate::engine::call_slots::CallSlots;
use crate::engine::compile::{CompileLimits, Compiler};
use crate::engine::executors::Executors;
use crate::engine::starts::Starts;
use crate::engine::stock::Stock;
use crate::engine::{self, Ticker};
use crate::host::INTERFACES;
use crate::host::bindings::blockbase::block::{config, data, deadline, http, log, secrets, types};
use crate::host::bindings::exports::blockbase::block::{actions, hooks, registry, subscriptions};
use crate::host::call::CallState;
use crate::package::manifest::invalid;
use crate::package::manifest_of;
use crate::package::schema::BoundedSchema;
use checks::{check_handlers, check_imports, checked_config, validation_failed};
use guest::Guest;

/// The settings that the runtime needs.
#[derive(Clone)]
pub struct RuntimeSettings {
    /// The directory for compiled blocks.
    pub cache_directory: PathBuf,
    /// The master secret, which signs compiled blocks.
    pub secret: Vec<u8>,
    /// The maximum linear memory of one call, in all its memories together.
    pub memory_bytes_max: usize,
    /// The maximum linear memory of all instances together: those of running calls, and those that wait for calls.
    pub all_memory_bytes_max: usize,
    /// The bytes of each linear memory that a free place of the pool keeps for the next call.
    pub resident_bytes: usize,
    /// The client that sends the requests of blocks.
    pub client: Client,
    /// The program and argument that run [`crate::compile_child`].
    pub compiler: (PathBuf, &'static str),
    pub compile_limits: CompileLimits,
}

/// Runs blocks.
pub struct Runtime {
    inner: Arc<Inner>,
}

struct Inner {
    /// The operations that calls use. The service owns this runtime, so this runtime must not keep the service alive.
    app: Weak<App>,
    engine: Engine,
    linker: Linker<CallState>,
    cache: Arc<CompileCache>,
    compiler: Compiler,
    memory_bytes_max: usize,
    client: Client,
    call_slots: CallSlots,
    /// The instances that wait for calls.
    stock: Arc<Stock<InstalledBlock, Guest>>,
    /// The number of processors of this machine.
    processors: usize,
    executors: Arc<Executors>,
    ticker: Ticker,
    /// The ready components, by digest.
    loaded: RwLock<HashMap<String, Arc<Loaded>>>,
    /// Loads in progress, by digest. If a block is not loaded yet, it is compiled only once, and the compilation finishes even if
    /// a caller stops waiting for it.
    loading: Mutex<HashMap<String, Loading>>,
    /// The number of installs in progress, by digest. Compiled code must not be dropped while an install of the same code runs.
    preparing: Arc<Mutex<HashMap<String, usize>>>,
    /// The compiled schemas of inputs, by digest and action.
    validators: RwLock<HashMap<String, HashMap<String, Arc<BoundedSchema>>>>,
}

/// A load for which any number of calls can wait.
type Loading = Shared<BoxFuture<'static, std::result::Result<Arc<Loaded>, Arc<Error>>>>;

/// A component that is compiled, linked and inspected.
struct Loaded {
    pre: InstancePre<CallState>,
    registry: registry::GuestIndices,
    actions: Option<actions::GuestIndices>,
    hooks: Option<hooks::GuestIndices>,
    subscriptions: Option<subscriptions::GuestIndices>,
    starts: Starts,
}

impl Runtime {
    /// # Errors
    /// A sentence for the operator, if the machine cannot run the engine or the cache cannot be made.
    pub fn new(settings: RuntimeSettings, app: Weak<App>) -> std::result::Result<Runtime, String> {
        let explain = |error: wasmtime::Error| format!("The block runtime cannot start: {error:#}");
        let engine = engine::running(settings.memory_bytes_max, settings.resident_bytes).map_err(explain)?;
        let threads = |error: std::io::Error| format!("The block runtime cannot start: {error}");
        let (ticker, executors) = (Ticker::start(&engine).map_err(threads)?, Executors::new().map_err(threads)?);
        let linker = linker(&engine).map_err(explain)?;
        let cache = CompileCache::open(&settings.cache_directory, &settings.secret, &engine)?;
        let (program, argument) = settings.compiler;
        let stock = Arc::new(Stock::new());
        let spare: Weak<Stock<InstalledBlock, Guest>> = Arc::downgrade(&stock);
        Ok(Runtime {
            inner: Arc::new(Inner {
                app,
                engine,
                linker,
                cache: Arc::new(cache),
                compiler: Compiler::new(program, argument, settings.compile_limits),
                memory_bytes_max: settings.memory_bytes_max,
                client: settings.client,
                call_slots: CallSlots::new(settings.all_memory_bytes_max, settings.memory_bytes_max, spare),
                stock,
                processors: std::thread::available_parallelism().map_or(1, usize::from),
                executors: Arc::new(executors),
                ticker,
                loaded: RwLock::default(),
                loading: Mutex::default(),
                preparing: Arc::default(),
                validators: RwLock::default(),
            }),
        })
    }
}

/// Everything that a component can import.
pub(crate) fn linker(engine: &Engine) -> wasmtime::Result<Linker<CallState>> {
    let mut linker = Linker::new(engine);
    wasmtime_wasi::p2::add_to_linker_async(&mut linker)?;
    wasmtime_wasi_http::p2::add_only_http_to_linker_async(&mut linker)?;
    types::add_to_linker::<_, HasSelf<CallState>>(&mut linker, |state| state)?;
    data::add_to_linker::<_, HasSelf<CallState>>(&mut linker, |state| state)?;
    secrets::add_to_linker::<_, HasSelf<CallState>>(&mut linker, |state| state)?;
    config::add_to_linker::<_, HasSelf<CallState>>(&mut linker, |state| state)?;
    log::add_to_linker::<_, HasSelf<CallState>>(&mut linker, |state| state)?;
    deadline::add_to_linker::<_, HasSelf<CallState>>(&mut linker, |state| state)?;
    http::add_to_linker::<_, HasSelf<CallState>>(&mut linker, |state| state)?;
    Ok(linker)
}

/// Validates a packed file, and returns its manifest and its digest. It does not run on the runtime's threads.
async fn looked_at(file: Bytes) -> Result<(Manifest, String)> {
    let look = move || Ok((manifest_of(&file)?, format!("sha256:{}", hex::encode(Sha256::digest(&file)))));
    tokio::task::spawn_blocking(look).await.map_err(Error::internal)?
}

impl Inner {
    /// The service, for the duration of a call or a load.
    fn app(&self) -> Result<Arc<App>> {
        self.app.upgrade().ok_or_else(|| Error::internal("the service is not there any more"))
    }

    fn loaded(&self, digest: &str) -> Option<Arc<Loaded>> {
        self.loaded.read().get(digest).cloned()
    }

    /// The block's component, from memory or from the cache on disk. If it is in neither of them, it is compiled again from the
    /// block's file.
    async fn load(self: &Arc<Self>, block: &Arc<InstalledBlock>) -> Result<Arc<Loaded>> {
        if let Some(loaded) = self.loaded(&block.digest) {
            return Ok(loaded);
        }
        let loading = self.begin_loading(block);
        loading.await.map_err(|error| match error.code {
            // During an upload, this is the fault of the file. Here it is a fault of the server, because the server has accepted
            // the file before.
            Code::InvalidBlock => Error { code: Code::ActionFailed, ..error.shared() },
            _ => error.shared(),
        })
    }

    fn begin_loading(self: &Arc<Self>, block: &Arc<InstalledBlock>) -> Loading {
        let mut under_way = self.loading.lock();
        if let Some(loading) = under_way.get(&block.digest) {
            return loading.clone();
        }
        let (inner, block) = (Arc::clone(self), Arc::clone(block));
        let digest = block.digest.clone();
        let work = tokio::spawn(async move {
            let loaded = inner.load_anew(&block).await;
            inner.loading.lock().remove(&block.digest);
            loaded.map_err(|error| {
                crate::host::log_cause(&error);
                Arc::new(error)
            })
        });
        let loading = async move { work.await.unwrap_or_else(|error| Err(Arc::new(Error::internal(error)))) }.boxed().shared();
        under_way.insert(digest, loading.clone());
        loading
    }

    async fn load_anew(&self, block: &InstalledBlock) -> Result<Arc<Loaded>> {
        let digest = &block.digest;
        let component = match self.cached(digest).await? {
            Some(component) => component,
            None => {
                let file = Bytes::from(self.app()?.block_file(block).await?);
                let (_, actual) = looked_at(file.clone()).await?;
                // Another file may have been installed with this name and version in the meantime.
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
        Ok(Loaded { pre, registry, actions, hooks, subscriptions, starts: Starts::new() })
    }

    /// The compiled schema of an action's input. It is compiled at the first call.
    fn validator(&self, block: &InstalledBlock, action: &ActionDeclaration) -> Result<Arc<BoundedSchema>> {
        if let Some(ready) = self.validators.read().get(&block.digest).and_then(|actions| actions.get(&action.name)) {
            return Ok(Arc::clone(ready));
        }
        let ready = Arc::new(BoundedSchema::new(&action.input)?);
        let mut validators = self.validators.write();
        validators.entry(block.digest.clone()).or_default().insert(action.name.clone(), Arc::clone(&ready));
        Ok(ready)
    }

    async fn prepare(self: &Arc<Self>, file: Bytes) -> Result<PreparedBlock> {
        let (manifest, digest) = looked_at(file.clone()).await?;
        let kept = Preparing::begin(&self.preparing, &digest);
        let component = match self.cached(&digest).await? {
            Some(component) => component,
            None => self.compile(&digest, file).await?,
        };
        check_imports(&manifest, component.component_type().imports(&self.engine).map(|(name, _)| name))?;
        let loaded = Arc::new(self.link(&component)?);
        let handlers = self.handlers(&loaded, &manifest.name).await?;
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
        Ok(PreparedBlock { manifest, digest, kept: Box::new(kept) })
    }
}

/// An install of a digest, from its compilation until it is stored or canceled.
struct Preparing {
    all: Arc<Mutex<HashMap<String, usize>>>,
    digest: String,
}

impl Preparing {
    fn begin(all: &Arc<Mutex<HashMap<String, usize>>>, digest: &str) -> Preparing {
        *all.lock().entry(digest.to_owned()).or_default() += 1;
        Preparing { all: Arc::clone(all), digest: digest.to_owned() }
    }
}

impl Drop for Preparing {
    fn drop(&mut self) {
        let mut all = self.all.lock();
        if let Some(installs) = all.get_mut(&self.digest) {
            *installs -= 1;
            if *installs == 0 {
                all.remove(&self.digest);
            }
        }
    }
}

impl BlockRuntime for Runtime {
    fn prepare(&self, file: Bytes) -> BoxFuture<'_, Result<PreparedBlock>> {
        Box::pin(self.inner.prepare(file))
    }

    fn validate_input(&self, block: &InstalledBlock, action: &ActionDeclaration, input: &Value) -> Result<()> {
        validation_failed("The input", self.inner.validator(block, action)?.issues(input)?)
    }

    fn validate_config(&self, manifest: &Manifest, config: Value) -> Result<Value> {
        checked_config(manifest, config)
    }

    fn call_action(&self, call: ActionCall) -> BoxFuture<'static, Result<ActionOutcome>> {
        let inner = Arc::clone(&self.inner);
        Box::pin(async move { inner.call_action(call).await })
    }

    fn receive_hook(&self, call: HookCall) -> BoxFuture<'static, Result<Option<HookResponse>>> {
        let inner = Arc::clone(&self.inner);
        Box::pin(async move { inner.receive_hook(call).await })
    }

    fn deliver_event(&self, call: EventCall) -> BoxFuture<'static, Result<()>> {
        let inner = Arc::clone(&self.inner);
        Box::pin(async move { inner.deliver_event(call).await })
    }

    fn interfaces(&self) -> &'static [&'static str] {
        &INTERFACES
    }

    fn retain(&self, serving: &[Arc<InstalledBlock>], kept: &HashSet<String>) {
        let digests: HashSet<&str> = serving.iter().map(|block| block.digest.as_str()).collect();
        self.inner.loaded.write().retain(|digest, _| digests.contains(digest.as_str()));
        self.inner.validators.write().retain(|digest, _| digests.contains(digest.as_str()));
        self.inner.stock.retain(serving.iter().filter(|block| block.enabled).cloned().collect());
        self.inner.call_slots.sweep();
        let mut kept = kept.clone();
        kept.extend(self.inner.preparing.lock().keys().cloned());
        self.inner.cache.retain(&kept);
    }

    fn preload(&self, block: &Arc<InstalledBlock>) {
        if self.inner.loaded(&block.digest).is_none() {
            drop(self.inner.begin_loading(block));
        }
    }
}

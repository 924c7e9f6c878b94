//! A guest: an instance of a component with its store, in which calls run one after the other.
//!
//! Usually a guest serves one call, for which its instance is new or was made ahead (`ahead.rs`). If the block's manifest asks for
//! reuse, and the call left nothing that belongs to it alone, the guest is kept for a further call.

use std::sync::{Arc, Weak};
use std::time::Duration;

use blockbase_app::{ComparedRights, InstalledBlock, Reusable, Reuse, ReuseScope};
use blockbase_telemetry::CallPart;
use tokio::time::Instant;
use wasmtime::component::Instance;
use wasmtime::{Engine, Store, UpdateDeadline};

use super::Loaded;
use crate::engine::call_slots::CallKind;
use crate::engine::executors::Executors;
use crate::engine::limits::{CallMemory, HANDED_BYTES_MAX, TABLE_ELEMENTS_MAX};
use crate::engine::stock::{Fit, Making, SWEEP_INTERVAL, Stock, Sweeper, Swept};
use crate::host::bindings::exports::blockbase::block::{actions, hooks, registry, subscriptions};
use crate::host::call::CallState;

/// A guest is kept only if its memory and its tables have grown by at most this share of what a call may have, since its start.
const GROWTH_SHARE: usize = 8;

/// Memory and tables never shrink. So the fields are dropped in this order, and the memory counts until it is cleared.
pub(super) struct Guest {
    pub(super) store: Store<CallState>,
    /// `None` until the instance is made, ahead or by the first call.
    started: Option<Started>,
    loaded: Arc<Loaded>,
    pub(super) memory: Arc<CallMemory>,
    /// The number of calls that have begun.
    calls: u32,
    /// The calls that may use the instance. `None` if only one may.
    scope: Option<ReuseScope>,
}

/// An instance, its functions that calls have used, and its sizes right after its start.
struct Started {
    instance: Instance,
    actions: Option<actions::Guest>,
    hooks: Option<hooks::Guest>,
    subscriptions: Option<subscriptions::Guest>,
    memory_bytes: usize,
    table_elements: usize,
}

/// A guest whose instance is there, for one call of one of its functions.
pub(super) struct Running<'a> {
    pub(super) store: &'a mut Store<CallState>,
    loaded: &'a Loaded,
    started: &'a mut Started,
}

/// Whether and how the instance of a call is reused.
pub(super) struct Reused {
    pub(super) block: Arc<InstalledBlock>,
    pub(super) kind: CallKind,
    pub(super) limits: Reuse,
    pub(super) scope: ReuseScope,
}

impl Reused {
    /// `None` if the call gets an instance of its own, which is dropped afterwards.
    pub(super) fn of(block: &Arc<InstalledBlock>, kind: CallKind, scope: Option<ReuseScope>) -> Option<Reused> {
        Some(Reused { limits: block.manifest.reuse()?, block: Arc::clone(block), kind, scope: scope? })
    }

    /// A guest that serves this call as its next one, if one is kept.
    pub(super) fn kept(&self, stock: &Stock<InstalledBlock, Guest>) -> Option<Guest> {
        let mut compared = ComparedRights::default();
        stock.take(&self.block, self.kind, |guest| match &mut guest.scope {
            Some(scope) => match scope.reusable_for(&self.scope, &mut compared) {
                Reusable::Yes => Fit::Yes,
                Reusable::No => Fit::No,
                Reusable::Never => Fit::Never,
            },
            None => Fit::Never,
        })
    }
}

impl Guest {
    /// A guest without an instance, for its first call.
    pub(super) fn new(engine: &Engine, loaded: Arc<Loaded>, memory: Arc<CallMemory>, state: CallState) -> Guest {
        let mut store = Store::new(engine, state);
        store.limiter(|state| state);
        // At each tick, a running guest yields. It ends if it has exceeded a limit since the last tick.
        store.epoch_deadline_callback(|mut store| match store.data().tripped.hit() {
            Some(limit) => Err(limit.into()),
            None => {
                // The clock follows the guest only after the start of the component, so a yield during the start counts as
                // `instantiate`.
                store.data_mut().clock.enter_from(CallPart::Host, CallPart::Queue);
                Ok(UpdateDeadline::Yield(1))
            }
        });
        Guest { store, started: None, loaded, memory, calls: 0, scope: None }
    }

    /// Begins a call: gives it all that a call may use.
    pub(super) fn begin(&mut self) {
        self.calls += 1;
        self.refill();
    }

    fn refill(&mut self) {
        self.store.set_hostcall_fuel(HANDED_BYTES_MAX);
        self.store.set_epoch_deadline(1);
    }

    /// Makes the instance before any call.
    pub(super) async fn start(&mut self) -> wasmtime::Result<()> {
        self.refill();
        self.running().await.map(|_| ())
    }

    /// The guest with its instance. If there is none, it is made.
    pub(super) async fn running(&mut self) -> wasmtime::Result<Running<'_>> {
        let Guest { store, started, loaded, memory, .. } = self;
        let started = match started {
            Some(started) => started,
            None => {
                let begun = Instant::now();
                let instance = loaded.pre.instantiate_async(&mut *store).await?;
                loaded.starts.took(begun.elapsed());
                let (memory_bytes, table_elements) = (memory.bytes(), store.data().table_elements());
                let (actions, hooks, subscriptions) = (None, None, None);
                started.insert(Started { instance, actions, hooks, subscriptions, memory_bytes, table_elements })
            }
        };
        Ok(Running { store, loaded, started })
    }

    /// Whether the guest may be kept after a call that succeeded. `memory_of_a_call` is the number of bytes that a call may
    /// have.
    pub(super) fn may_serve_again(&mut self, limits: &Reuse, memory_of_a_call: usize) -> bool {
        let Some(started) = &self.started else { return false };
        let state = self.store.data_mut();
        self.calls < limits.calls
            && self.memory.bytes().saturating_sub(started.memory_bytes) <= memory_of_a_call / GROWTH_SHARE
            && state.table_elements().saturating_sub(started.table_elements) <= TABLE_ELEMENTS_MAX / GROWTH_SHARE
            && state.has_only_standard_streams()
    }

    /// Keeps the guest for a further call, without what belongs to its last call. Returns a guest that has to go for it, which
    /// may be this one.
    pub(super) fn keep(
        mut self,
        reused: Reused,
        stock: &Arc<Stock<InstalledBlock, Guest>>,
        executors: &Executors,
    ) -> Option<Guest> {
        self.store.data_mut().rest();
        let Reused { block, kind, limits, scope } = reused;
        self.scope = Some(scope);
        let until = Instant::now() + Duration::from_secs(limits.seconds.into());
        let memory = Arc::clone(&self.memory);
        let put = stock.put(&block, kind, until, memory, self);
        begin_sweeps(put.sweeper, stock, executors);
        put.displaced
    }

    /// Lets a guest that no call has used wait until a moment for a call of its block. If it may not wait, it is dropped. Returns
    /// whether it waits.
    pub(super) fn wait(
        mut self,
        place: Making<InstalledBlock, Guest>,
        until: Instant,
        stock: &Arc<Stock<InstalledBlock, Guest>>,
        executors: &Executors,
    ) -> bool {
        self.store.data_mut().rest();
        let memory = Arc::clone(&self.memory);
        match place.put(until, memory, self) {
            Ok(sweeper) => {
                begin_sweeps(sweeper, stock, executors);
                true
            }
            Err((place, guest)) => {
                drop(guest);
                // Only now is its place in the pool free.
                drop(place);
                false
            }
        }
    }
}

fn begin_sweeps(sweeper: Option<Sweeper>, stock: &Arc<Stock<InstalledBlock, Guest>>, executors: &Executors) {
    if let Some(sweeper) = sweeper {
        executors.spawn(sweep(Arc::downgrade(stock), sweeper));
    }
}

/// The functions of an interface. Each time they are loaded, the engine looks them up and compares their types. So the first call
/// of an instance loads them, and further calls find them in `known`. `load` returns `None` if the component lacks the interface.
fn functions<F: Clone>(known: &mut Option<F>, load: impl FnOnce() -> Option<wasmtime::Result<F>>) -> wasmtime::Result<F> {
    if let Some(functions) = known {
        return Ok(functions.clone());
    }
    // The install has checked that the interface is there.
    let lacking = || wasmtime::Error::msg("the component lacks an interface that it had when it was installed");
    let loaded = load().ok_or_else(lacking)??;
    *known = Some(loaded.clone());
    Ok(loaded)
}

impl Running<'_> {
    pub(super) fn actions(&mut self) -> wasmtime::Result<actions::Guest> {
        let Running { store, loaded, started: Started { instance, actions, .. } } = self;
        functions(actions, || Some(loaded.actions.as_ref()?.load(&mut **store, instance)))
    }

    pub(super) fn hooks(&mut self) -> wasmtime::Result<hooks::Guest> {
        let Running { store, loaded, started: Started { instance, hooks, .. } } = self;
        functions(hooks, || Some(loaded.hooks.as_ref()?.load(&mut **store, instance)))
    }

    pub(super) fn subscriptions(&mut self) -> wasmtime::Result<subscriptions::Guest> {
        let Running { store, loaded, started: Started { instance, subscriptions, .. } } = self;
        functions(subscriptions, || Some(loaded.subscriptions.as_ref()?.load(&mut **store, instance)))
    }

    /// The function that lists the handlers. The functions of the other interfaces are loaded too, because that checks their types.
    pub(super) fn registry(&mut self) -> wasmtime::Result<registry::Guest> {
        if self.loaded.actions.is_some() {
            self.actions()?;
        }
        if self.loaded.hooks.is_some() {
            self.hooks()?;
        }
        if self.loaded.subscriptions.is_some() {
            self.subscriptions()?;
        }
        self.loaded.registry.load(&mut *self.store, &self.started.instance)
    }
}

/// Drops the guests that have waited too long, as long as there are any. Other tasks run between two of them, because it takes
/// time to clear a large memory.
async fn sweep(stock: Weak<Stock<InstalledBlock, Guest>>, mut sweeper: Sweeper) {
    loop {
        tokio::time::sleep(SWEEP_INTERVAL).await;
        loop {
            let Some(stock) = stock.upgrade() else { return };
            let swept = stock.sweep_one(sweeper);
            drop(stock);
            match swept {
                Swept::One(same) => sweeper = same,
                Swept::Others(same) => {
                    sweeper = same;
                    break;
                }
                Swept::All => return,
            }
            tokio::task::yield_now().await;
        }
    }
}

//! The engine: the features that guests may use, their limits, the compilation and cache of their code, and the threads that run
//! them.

pub(crate) mod cache;
pub(crate) mod call_slots;
pub(crate) mod compile;
pub(crate) mod executors;
pub(crate) mod limits;
pub(crate) mod starts;
pub(crate) mod stock;

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::thread::Thread;
use std::time::Duration;

use limits::TABLE_ELEMENTS_MAX;
use wasmtime::{Config, Engine, InstanceAllocationStrategy, OptLevel, PoolingAllocationConfig};

/// The WebAssembly stack of a call, in bytes.
const WASM_STACK_BYTES: usize = 512 * 1024;
/// The stack of the fiber that a call runs on, in bytes. The guest's stack and the host functions share it.
const FIBER_STACK_BYTES: usize = 2 * 1024 * 1024;
/// The maximum number of calls that run at a time on one server. Further calls wait for a slot.
pub(crate) const CALLS_MAX: u32 = 128;
/// The maximum number of instances of all blocks that are kept for further calls, or made ahead of calls. The pool has room for
/// them besides the running calls, so they never take the place of a call.
pub(crate) const KEPT_MAX: u32 = 64;
/// The maximum number of instances that exist at a time.
const INSTANCES_MAX: u32 = CALLS_MAX + KEPT_MAX;
/// The maximum number of core instances, and of tables, in one component. Languages that use an adapter have only a few of each.
const PARTS_A_COMPONENT: u32 = 32;
/// The maximum number of memories in one component, in one module or in several.
const MEMORIES_A_COMPONENT: u32 = 4;
/// The number of bytes of each table that stay resident in a free slot, so that the next call finds them ready. The server clears
/// these bytes itself. It gives the rest back to the system, which costs a system call for each table, and a page fault for each
/// page that the next call uses. Memories have a setting for this, because they are larger. Stacks need none: they stay resident,
/// because the pool does not clear them.
const TABLE_RESIDENT_BYTES: usize = 64 * 1024;
/// A call gets a free slot that has served its component before. If there is none, it gets a slot that has served no component yet,
/// but not if this number of slots are free that have served others. So it bounds the memory that free slots keep for blocks whose
/// calls do not run at the same time.
const WARM_SLOTS_MAX: u32 = 8;
/// The interval at which running guests yield, and end if they are canceled or have exceeded a limit.
const EPOCH_TICK: Duration = Duration::from_millis(2);
/// The number of ticks without a running call after which the ticker rests.
const IDLE_TICKS: u32 = 50;

fn config() -> Config {
    let mut config = Config::new();
    config
        .wasm_component_model(true)
        // Guests use WASI 0.2. Tasks of the component model, which a call could leave in its instance, stay off.
        .concurrency_support(false)
        .epoch_interruption(true)
        .cranelift_opt_level(OptLevel::Speed)
        .max_wasm_stack(WASM_STACK_BYTES)
        .async_stack_size(FIBER_STACK_BYTES)
        .wasm_memory64(false)
        .wasm_backtrace_max_frames(None);
    config
}

/// The engine that runs calls. The first `resident_bytes` of each memory stay resident in a free slot.
pub(crate) fn running(memory_bytes_max: usize, resident_bytes: usize) -> wasmtime::Result<Engine> {
    let mut pool = PoolingAllocationConfig::default();
    pool.total_component_instances(INSTANCES_MAX)
        .total_core_instances(INSTANCES_MAX * PARTS_A_COMPONENT)
        .total_memories(INSTANCES_MAX * MEMORIES_A_COMPONENT)
        .total_tables(INSTANCES_MAX * PARTS_A_COMPONENT)
        // A store keeps the stack of its last call.
        .total_stacks(INSTANCES_MAX)
        .max_core_instances_per_component(PARTS_A_COMPONENT)
        .max_memories_per_component(MEMORIES_A_COMPONENT)
        .max_memories_per_module(MEMORIES_A_COMPONENT)
        .max_tables_per_component(PARTS_A_COMPONENT)
        .max_tables_per_module(PARTS_A_COMPONENT)
        .table_elements(TABLE_ELEMENTS_MAX)
        .max_memory_size(memory_bytes_max)
        .max_unused_warm_slots(WARM_SLOTS_MAX)
        .linear_memory_keep_resident(resident_bytes)
        .table_keep_resident(TABLE_RESIDENT_BYTES);
    let mut config = config();
    config.allocation_strategy(InstanceAllocationStrategy::Pooling(pool));
    Engine::new(&config)
}

/// The engine that only compiles. It makes the same code, but reserves no address space for the pool.
pub(crate) fn compiling() -> wasmtime::Result<Engine> {
    Engine::new(&config())
}

/// Makes running guests yield. It rests while no guest runs, so that an idle server does nothing.
pub(crate) struct Ticker {
    running: Arc<AtomicU32>,
    rests: Arc<AtomicBool>,
    ends: Arc<AtomicBool>,
    thread: Thread,
}

impl Ticker {
    /// # Errors
    /// If the thread cannot be started.
    #[expect(clippy::disallowed_methods, reason = "the ticker has a thread of its own")]
    pub(crate) fn start(engine: &Engine) -> std::io::Result<Ticker> {
        let engine = engine.weak();
        let (running, rests) = (Arc::new(AtomicU32::new(0)), Arc::new(AtomicBool::new(false)));
        let ends = Arc::new(AtomicBool::new(false));
        let (runs, resting, ended) = (Arc::clone(&running), Arc::clone(&rests), Arc::clone(&ends));
        let thread = std::thread::Builder::new().name("block-epochs".to_owned()).spawn(move || {
            let mut idle = 0;
            while let Some(engine) = engine.upgrade().filter(|_| !ended.load(Ordering::SeqCst)) {
                engine.increment_epoch();
                drop(engine);
                idle = if runs.load(Ordering::SeqCst) == 0 { idle + 1 } else { 0 };
                if idle < IDLE_TICKS {
                    std::thread::sleep(EPOCH_TICK);
                    continue;
                }
                idle = 0;
                resting.store(true, Ordering::SeqCst);
                // A call may have begun just before the ticker came to rest. Such a call did not wake the ticker.
                if runs.load(Ordering::SeqCst) == 0 {
                    std::thread::park();
                }
                resting.store(false, Ordering::SeqCst);
            }
        })?;
        Ok(Ticker { running, rests, ends, thread: thread.thread().clone() })
    }

    /// Ticks as long as the caller keeps the returned value.
    pub(crate) fn keep(&self) -> Ticking {
        self.running.fetch_add(1, Ordering::SeqCst);
        if self.rests.load(Ordering::SeqCst) {
            self.thread.unpark();
        }
        Ticking(Arc::clone(&self.running))
    }
}

impl Drop for Ticker {
    fn drop(&mut self) {
        self.ends.store(true, Ordering::SeqCst);
        self.thread.unpark();
    }
}

/// Tells the ticker that a call runs.
pub(crate) struct Ticking(Arc<AtomicU32>);

impl Drop for Ticking {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::SeqCst);
    }
}

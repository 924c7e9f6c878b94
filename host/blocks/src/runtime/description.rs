//! Describes a component to a build without a service: its imports, and the text that its description function returns.

use std::sync::Arc;
use std::time::Duration;

use blockbase_outbound::{AddressPolicy, Client};
use blockbase_telemetry::CallClock;
use wasmtime::Store;
use wasmtime::component::Component;

use super::linker;
use crate::engine::executors::Executors;
use crate::engine::limits::{CallMemory, MemoryBudget};
use crate::engine::{self, Ticker};
use crate::host::INTERFACES;
use crate::host::call::{CallEnvironment, CallState};

const DESCRIBE: &str = "blockbase:sdk/describe@0.1.0";
/// The time that a component may take to describe itself.
const TIMEOUT: Duration = Duration::from_secs(30);
/// The maximum number of bytes of memory that the component may use.
const MEMORY_BYTES_MAX: usize = 1 << 30;

/// The data that a build gets from a component.
#[derive(Debug)]
pub struct Description {
    /// The host interfaces that it imports, by their names in `requires.plugins`.
    pub plugins: Vec<&'static str>,
    /// The JSON text that declares its handlers, if it has one.
    pub text: Option<String>,
}

/// Compiles a component, and runs its description if it has one.
///
/// # Errors
/// A sentence for the author, if the component does not compile or does not run.
pub fn description_of(component: &[u8]) -> Result<Description, String> {
    let engine = engine::compiling().map_err(|error| format!("{error:#}"))?;
    let component =
        Component::from_binary(&engine, component).map_err(|error| format!("The component does not compile: {error:#}."))?;
    let shape = component.component_type();
    let mut plugins = Vec::new();
    for (import, _) in shape.imports(&engine) {
        let name = import.strip_prefix("blockbase:block/").and_then(|rest| rest.split_once('@')).map(|(name, _)| name);
        // This is WASI's own HTTP interface. The consent to `http` also covers it.
        let name = if import.starts_with("wasi:http/") { Some("http") } else { name };
        plugins.extend(INTERFACES.into_iter().find(|interface| name == Some(*interface)));
    }
    let text = match shape.exports(&engine).any(|(name, _)| name == DESCRIBE) {
        true => Some(within_time(describe(&engine, &component))?),
        false => None,
    };
    Ok(Description { plugins, text })
}

fn within_time<T>(work: impl Future<Output = Result<T, String>>) -> Result<T, String> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().map_err(|error| error.to_string())?;
    runtime.block_on(async {
        tokio::time::timeout(TIMEOUT, work).await.map_err(|_| "The component does not end describing itself.".to_owned())?
    })
}

async fn describe(engine: &wasmtime::Engine, component: &Component) -> Result<String, String> {
    let explain = |error: wasmtime::Error| format!("The component cannot describe itself: {error:#}.");
    // The linker has only what the server offers, with no stubs for the rest. The server would also refuse to install a component that
    // imports more.
    let linker = linker(engine).map_err(explain)?;
    let environment = CallEnvironment {
        client: Client::new(AddressPolicy { allow_private: false })?,
        executors: Arc::new(Executors::new().map_err(|error| error.to_string())?),
        memory_bytes_max: MEMORY_BYTES_MAX,
        memory: CallMemory::new(MemoryBudget::new(MEMORY_BYTES_MAX)),
        timeout: TIMEOUT,
        clock: CallClock::default(),
    };
    let mut store = Store::new(engine, CallState::new(None, "describe".to_owned(), environment));
    store.limiter(|state| state);
    store.set_epoch_deadline(1);
    store.epoch_deadline_async_yield_and_update(1);
    let ticker = Ticker::start(engine).map_err(|error| error.to_string())?;
    let _ticking = ticker.keep();
    let instance = linker.instantiate_async(&mut store, component).await.map_err(explain)?;
    let interface = instance.get_export_index(&mut store, None, DESCRIBE);
    let function = interface.and_then(|interface| instance.get_export_index(&mut store, Some(&interface), "manifest"));
    let function = function.ok_or("The component's description has no function `manifest`.")?;
    let function = instance.get_typed_func::<(), (String,)>(&mut store, function).map_err(explain)?;
    let (text,) = function.call_async(&mut store, ()).await.map_err(explain)?;
    Ok(text)
}

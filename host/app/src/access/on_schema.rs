//! Operations that start again if the schema changed meanwhile, or if another transaction conflicted with them.

use std::sync::Arc;
use std::time::Duration;

use blockbase_schema::{Error, Registry, Result, Retry};

use crate::App;
use crate::caller::Caller;

/// How often an operation starts again because the schema changed or another transaction conflicted with it.
const ATTEMPTS_MAX: u32 = 8;
/// How often an operation starts again while other changes of the schema may run at the same time.
const ATTEMPTS_BESIDE_CHANGES: u32 = 2;
/// How long an operation waits before it starts again for the first time. Each further wait is twice as long.
const ATTEMPT_PAUSE: Duration = Duration::from_millis(2);

impl App {
    /// Runs an operation on the current schema. Runs it again if the schema changed meanwhile, or if another transaction
    /// conflicted with it. So a request ends on one schema: the one that it began with, or a later one.
    ///
    /// The caller is checked again first if accounts may have changed, for example while a body arrived slowly.
    pub(crate) async fn on_schema<T, F>(&self, caller: &Caller, operation: impl Fn(Arc<Registry>) -> F) -> Result<T>
    where
        F: Future<Output = Result<T>>,
    {
        self.recheck(caller).await?;
        let mut pause = ATTEMPT_PAUSE;
        let mut answer = operation(self.registry()).await;
        for attempt in 1..ATTEMPTS_MAX {
            let Err(Error { retry: Some(why), .. }) = &answer else { break };
            if *why == Retry::MayBeNew {
                let known = self.registry().version;
                self.refresh().await?;
                if self.registry().version == known {
                    break;
                }
            }
            if *why == Retry::Contended {
                tokio::time::sleep(pause).await;
                pause *= 2;
            }
            // Waits for a running change of this instance. Later attempts keep other changes out until they are done.
            let gate = self.schema_gate.read().await;
            if *why == Retry::SchemaMoved {
                self.refresh_registry().await?;
            }
            let _gate = (attempt > ATTEMPTS_BESIDE_CHANGES).then_some(gate);
            answer = operation(self.registry()).await;
        }
        answer
    }

    /// Runs a transaction that does not depend on the schema. Runs it again if another transaction conflicted with it.
    pub(crate) async fn until_uncontended<T, F>(&self, transaction: impl Fn() -> F) -> Result<T>
    where
        F: Future<Output = Result<T>>,
    {
        let mut pause = ATTEMPT_PAUSE;
        let mut answer = transaction().await;
        for _ in 1..ATTEMPTS_MAX {
            if !matches!(&answer, Err(Error { retry: Some(Retry::Contended), .. })) {
                break;
            }
            tokio::time::sleep(pause).await;
            pause *= 2;
            answer = transaction().await;
        }
        answer
    }
}

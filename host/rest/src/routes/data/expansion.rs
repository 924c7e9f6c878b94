//! `?expand=` of requests for one record.

use blockbase_app::{Caller, Related, expand_paths};

use crate::AppState;
use crate::answer::error::ApiError;
use crate::request::extract::QueryPairs;

/// The relations that a read asks for.
pub(crate) fn of_read(query: &QueryPairs) -> Result<Vec<Related>, ApiError> {
    Ok(query.get("expand").map(expand_paths).transpose()?.unwrap_or_default())
}

/// The relations that a write asks for. Checks that the caller may read them before anything is written.
pub(crate) async fn of_write(
    state: &AppState,
    caller: &Caller,
    object: &str,
    query: &QueryPairs,
) -> Result<Vec<Related>, ApiError> {
    let expand = of_read(query)?;
    if !expand.is_empty() {
        state.app.admit_to_related(caller, object, &expand).await?;
    }
    Ok(expand)
}

//! `__schema` and `__type`, answered by async-graphql.

use std::collections::HashMap;
use std::sync::Arc;

use async_graphql::{Request, Value, Variables};
use blockbase_app::schema::Error;
use tokio::sync::Semaphore;

use crate::document::collect::Selected;
use crate::execute::Execution;

/// The maximum number of introspections that run at the same time. The introspection of a large schema keeps a processor busy.
const RUNNING_MAX: usize = 2;

/// The permits for introspections. A permit is kept until the work has ended, even if the client has disconnected.
pub(crate) struct IntrospectionPermits(Arc<Semaphore>);

impl Default for IntrospectionPermits {
    fn default() -> IntrospectionPermits {
        IntrospectionPermits(Arc::new(Semaphore::new(RUNNING_MAX)))
    }
}

/// The answers of the operation's introspecting root fields, by their keys.
///
/// # Errors
/// `internal`.
pub(crate) async fn answers(execution: &Execution<'_>, roots: &[Selected<'_>]) -> Result<HashMap<String, Vec<u8>>, Error> {
    let is_introspecting = |selected: &&Selected<'_>| matches!(selected.field.name.node.as_str(), "__schema" | "__type");
    let keys: Vec<String> = roots.iter().filter(is_introspecting).map(|selected| selected.key.to_owned()).collect();
    match keys.is_empty() {
        true => Ok(HashMap::new()),
        false => run(execution, keys).await,
    }
}

async fn run(execution: &Execution<'_>, keys: Vec<String>) -> Result<HashMap<String, Vec<u8>>, Error> {
    let place = Arc::clone(&execution.introspecting.0).acquire_owned().await.map_err(Error::internal)?;
    let mut request = Request::new("").only_introspection();
    request.set_parsed_query(execution.document.as_ref().clone());
    if let Some(name) = execution.operation_name {
        request = request.operation_name(name);
    }
    let variables = execution.variables.map(|json| serde_json::from_str::<serde_json::Value>(json).unwrap_or_default());
    request = request.variables(Variables::from_json(serde_json::Value::Object(variables.into_iter().collect())));
    let (views, view) = (Arc::clone(execution.views), Arc::clone(execution.view));
    let runtime = tokio::runtime::Handle::current();
    let response = tokio::task::spawn_blocking(move || {
        // The schema may have to be built. The permit limits how many exist beside the kept ones.
        let _place = place;
        runtime.block_on(async {
            let schema = views.whole_schema(&view).await?;
            Ok::<_, Error>(schema.execute(request).await)
        })
    })
    .await;
    let response = response.map_err(Error::internal)??;
    if let Some(error) = response.errors.first() {
        return Err(Error::internal(error.message.clone()));
    }
    let Value::Object(mut data) = response.data else { return Err(Error::internal("introspection gave no object")) };
    let mut found = HashMap::with_capacity(keys.len());
    for key in keys {
        let value = data.swap_remove(key.as_str()).unwrap_or_default();
        let json = serde_json::to_vec(&value).map_err(Error::internal)?;
        execution.budget.spend(json.len())?;
        found.insert(key, json);
    }
    Ok(found)
}

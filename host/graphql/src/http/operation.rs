//! The operation that a request names.

use std::sync::Arc;
use std::sync::atomic::AtomicUsize;

use async_graphql::parser::types::OperationType;
use blockbase_app::schema::Error;
use blockbase_app::{Caller, run_offloaded};

use crate::Graphql;
use crate::document::coerce::Variables;
use crate::document::prepare::Prepared;
use crate::document::request::GraphqlRequest;
use crate::error::{Refusal, refused};
use crate::execute::Execution;
use crate::execute::shape::Budget;
use crate::http::accept::Form;

/// The caller, and the form of the response.
pub(crate) struct RequestContext {
    pub(crate) caller: Caller,
    pub(crate) credentials: blockbase_app::Credentials,
    pub(crate) request_id: String,
    pub(crate) form: Form,
}

/// An operation that is ready to run.
pub(crate) struct Operation {
    pub(crate) graphql: Arc<Graphql>,
    pub(crate) context: RequestContext,
    prepared: Prepared,
    name: Option<String>,
    variables: Variables,
}

impl Operation {
    /// The number of bytes of the variables that the client sent.
    pub(crate) fn variable_bytes(&self) -> usize {
        self.variables.bytes()
    }

    /// # Errors
    /// The reason why the request is refused.
    pub(crate) async fn prepare(
        graphql: &Arc<Graphql>,
        mut context: RequestContext,
        request: GraphqlRequest,
        only_queries: bool,
    ) -> Result<Operation, Refusal> {
        context.caller = context.caller.with_one_answer(graphql.app.settings().answer_bytes_max);
        let prepared = Prepared::of(&graphql.app, &graphql.views, &context.caller, &request, only_queries).await?;
        let name = request.operation_name;
        let operation = prepared.operation(name.as_deref()).map_err(|error| Refusal::Invalid(vec![error]))?;
        let variables = run_offloaded(request.variables.bytes(), || Variables::of(&prepared.view, operation, &request.variables));
        let variables = variables.map_err(Refusal::Invalid)?;
        drop(request.variables);
        Ok(Operation { graphql: Arc::clone(graphql), context, name, variables, prepared })
    }

    /// The operation with everything that its execution needs.
    pub(crate) fn with<'s>(&'s self) -> Option<Execution<'s>> {
        let operation = self.prepared.operation(self.name.as_deref()).ok()?;
        Some(Execution {
            app: &self.graphql.app,
            views: &self.graphql.views,
            view: &self.prepared.view,
            introspecting: &self.graphql.introspecting,
            caller: &self.context.caller,
            request_id: &self.context.request_id,
            document: &self.prepared.document,
            operation,
            operation_name: self.name.as_deref(),
            variables: &self.variables,
            budget: Arc::new(Budget::new(self.graphql.app.settings().answer_bytes_max)),
            argument_bytes: AtomicUsize::new(0),
        })
    }

    pub(crate) fn ty(&self) -> OperationType {
        self.with().map_or(OperationType::Query, |execution| execution.operation.ty)
    }

    /// Runs a query or a mutation. Returns `{ data, errors? }`.
    pub(crate) async fn run(&self) -> Vec<u8> {
        match self.with() {
            Some(execution) => execution.run().await,
            None => refused(&[Error::internal("a prepared operation is missing in its document").into()]),
        }
    }
}

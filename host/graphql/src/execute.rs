//! Runs an operation. Each root field, with everything below it, is one operation of `app`.

mod connection;
pub(crate) mod introspection;
mod mutation;
mod query;
pub(crate) mod shape;

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use async_graphql::Pos;
use async_graphql::parser::types::{ExecutableDocument, OperationDefinition, OperationType};
use blockbase_app::schema::{Code, Error, Object, Result};
use blockbase_app::{App, Caller, run_offloaded};
use futures_util::StreamExt;
use futures_util::stream;

use crate::document::coerce::{Arguments, PlacedError, Variables, within_bound};
use crate::document::collect::{Context, Selected};
use crate::error::{GraphqlError, write_errors};
use crate::execute::shape::{Answer, Budget, Place, RecordShape, Wanted};
use crate::view::View;
use crate::view::root::Root;
use crate::view::types::{page_name, upserted_name};
use crate::view::views::Views;

/// The maximum number of root fields of one query that run at the same time. On Postgres, each of them uses a connection.
const QUERIES_AT_ONCE: usize = 4;

/// A validated operation and its caller.
pub(crate) struct Execution<'d> {
    pub(crate) app: &'d Arc<App>,
    pub(crate) views: &'d Arc<Views>,
    pub(crate) view: &'d Arc<View>,
    /// The permits for introspections.
    pub(crate) introspecting: &'d introspection::IntrospectionPermits,
    pub(crate) caller: &'d Caller,
    pub(crate) request_id: &'d str,
    pub(crate) document: &'d Arc<ExecutableDocument>,
    pub(crate) operation: &'d OperationDefinition,
    pub(crate) operation_name: Option<&'d str>,
    pub(crate) variables: &'d Variables,
    pub(crate) budget: Arc<Budget>,
    /// The number of bytes of the arguments of the root fields so far.
    pub(crate) argument_bytes: AtomicUsize,
}

impl<'d> Execution<'d> {
    pub(crate) fn context(&self) -> Context<'d> {
        Context { document: self.document, variables: self.variables }
    }

    /// The root fields of the operation.
    pub(crate) fn roots(&self) -> Vec<Selected<'d>> {
        let name = match self.operation.ty {
            OperationType::Query => "Query",
            OperationType::Mutation => "Mutation",
            OperationType::Subscription => "Subscription",
        };
        self.context().collect(&[&self.operation.selection_set.node], name)
    }

    /// Runs a query or a mutation. Returns `{ data, errors? }`.
    pub(crate) async fn run(&self) -> Vec<u8> {
        let roots = self.roots();
        let mut answer = Answer::new(&self.budget);
        let introspected = match introspection::answers(self, &roots).await {
            Ok(introspected) => introspected,
            Err(error) => {
                answer.errors.push(error.into());
                answer.json.extend_from_slice(b"{\"data\":null,");
                write_errors(&mut answer.json, &answer.errors);
                answer.json.push(b'}');
                return answer.json;
            }
        };
        answer.json.extend_from_slice(b"{\"data\":");
        let begun = answer.json.len();
        answer.json.push(b'{');
        let mut outcomes = Vec::with_capacity(roots.len());
        match self.operation.ty {
            // The specification demands that mutations run one after the other.
            OperationType::Mutation => {
                for (place, root) in roots.iter().enumerate() {
                    outcomes.push(self.root(root, place + 1 == roots.len()).await);
                }
            }
            // The futures are boxed, so that they take no room on the stack.
            OperationType::Query | OperationType::Subscription => match roots.as_slice() {
                [root] => outcomes.push(self.root(root, true).await),
                _ => {
                    let futures: Vec<_> = roots.iter().map(|root| Box::pin(self.root(root, false))).collect();
                    outcomes = stream::iter(futures).buffered(QUERIES_AT_ONCE).collect().await;
                }
            },
        }
        for (root, mut outcome) in roots.iter().zip(outcomes) {
            answer.key(begun, root.key);
            match introspected.get(root.key) {
                Some(json) => answer.json.extend_from_slice(json),
                None => answer.json.append(&mut outcome.json),
            }
            answer.errors.append(&mut outcome.errors);
        }
        answer.json.push(b'}');
        if !answer.errors.is_empty() {
            answer.json.push(b',');
            write_errors(&mut answer.json, &answer.errors);
        }
        answer.json.push(b'}');
        answer.json
    }

    /// Runs one root field. All root fields are nullable, except the few that cannot fail. `is_last` means that no other root
    /// field begins after this one.
    async fn root(&self, selected: &Selected<'d>, is_last: bool) -> Answer {
        let mut answer = Answer::new(&self.budget);
        let name = selected.field.name.node.as_str();
        let root = match (name, self.operation.ty) {
            ("__typename", OperationType::Mutation) => {
                answer.string("Mutation");
                return answer;
            }
            ("__typename", _) => {
                answer.string("Query");
                return answer;
            }
            // `introspection` answers these.
            ("__schema" | "__type", _) => return answer,
            (_, OperationType::Mutation) => self.view.mutation(name),
            _ => self.view.query(name),
        };
        let Some(root) = root else {
            let error = Error::internal(format!("validation let the root field `{name}` through"));
            answer.nullable(|_| Err(GraphqlError::at(error, selected.position, Place::root(selected.key).path())));
            return answer;
        };
        if let Err((error, position)) = self.dispatch(&root, selected, is_last, &mut answer).await {
            answer.json = b"null".to_vec();
            let position = if position == Pos::default() { selected.position } else { position };
            answer.errors.push(GraphqlError::at(error, position, Place::root(selected.key).path()));
        }
        answer
    }

    async fn dispatch(
        &self,
        root: &Root,
        selected: &Selected<'d>,
        is_last: bool,
        answer: &mut Answer,
    ) -> Result<(), PlacedError> {
        let mut arguments = run_offloaded(self.variables.bytes(), || {
            Arguments::of(root.arguments(self.view), &selected.field.arguments, self.variables)
        })?;
        if is_last {
            self.variables.forget_large();
        }
        let bytes = self.argument_bytes.fetch_add(arguments.bytes(), Ordering::Relaxed) + arguments.bytes();
        within_bound(bytes).map_err(|error| (error, Pos::default()))?;
        let outcome = match root {
            Root::SchemaVersion => {
                answer.json.extend_from_slice(self.view.registry.version.to_string().as_bytes());
                Ok(())
            }
            Root::Objects => {
                let names = serde_json::to_vec(self.view.names()).map_err(Error::internal);
                names.map(|mut names| answer.json.append(&mut names))
            }
            Root::List(object) => self.list(object, selected, &arguments, answer).await,
            Root::ById(object) => self.by_id(object, selected, &arguments, answer).await,
            Root::Aggregate(object) => self.aggregate(object, selected, &arguments, answer).await,
            Root::Groups(object) => self.groups(object, selected, &arguments, answer).await,
            Root::Connection(object) => self.connection(object, selected, &arguments, answer).await,
            Root::Create(object) => self.create(object, selected, &mut arguments, answer).await,
            Root::Update(object) => self.update(object, selected, &mut arguments, answer).await,
            Root::Upsert(object) => self.upsert(object, selected, &mut arguments, answer).await,
            Root::Delete(object) => self.delete(object, &arguments, answer).await,
            Root::UpdateMany(object) => self.write_many(object, true, selected, &mut arguments, answer).await,
            Root::DeleteMany(object) => self.write_many(object, false, selected, &mut arguments, answer).await,
            Root::Batch => self.batch(&mut arguments, answer).await,
            Root::Links(object, key, change) => self.change_links(object, key, *change, &arguments, answer).await,
            Root::Action(block, action) => self.call_action(block, action, &arguments, answer).await,
            Root::Events => Err(Error::internal("a subscription came as a query")),
        };
        outcome.map_err(|error| (error, Pos::default()))
    }

    /// The shape of the selected records of `object`, and the data that has to be read for it.
    fn shape(&self, object: &Object, selected: &Selected<'d>) -> Result<(RecordShape<'d>, Wanted)> {
        let mut wanted = Wanted::default();
        let shape = RecordShape::of(self.context(), self.view, object, &selected.sets, &mut wanted)?;
        Ok((shape, wanted))
    }
}

/// Writes the record of a root field. Writes null if the record is absent.
fn write_record(answer: &mut Answer, shape: &RecordShape<'_>, record: Option<&[u8]>, selected: &Selected<'_>) -> Result<()> {
    let record = record.map(std::str::from_utf8).transpose().map_err(Error::internal)?;
    match record {
        Some(record) => {
            let place = Place::root(selected.key);
            answer.nullable(|answer| answer.record(shape, record, selected.position, &place));
        }
        None => answer.json.extend_from_slice(b"null"),
    }
    Ok(())
}

/// The id of a record, in the form that operations accept.
fn id_of(arguments: &Arguments) -> Result<String> {
    arguments.read("id")?.ok_or_else(|| Error::invalid_request("The argument `id` is missing."))
}

fn missing_record() -> Error {
    Error::new(Code::NotFound, Error::not_found("record").message)
}

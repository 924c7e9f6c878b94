//! Several writes of any kinds and objects in one transaction: either all or none of them take effect.
//!
//! An operation is planned and run as a single write is. If it refers to the result of an earlier one, it is planned when that
//! one has run. On Postgres, creates that follow each other share a statement.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::sync::Arc;

use blockbase_query::plan::CreatePlan;
use blockbase_query::{Scope, sql};
use blockbase_schema::json::{Members, list_of, write_integer};
use blockbase_schema::{Code, Error, Object, Result};
use blockbase_store::Connection;
use serde_json::value::RawValue;
use uuid::Uuid;

use super::answer::{Upserted, WriteAnswer};
use super::operations::Operation;
use super::plan::{admit, plan, plan_admitted};
use super::references::{References, Results, count_name};
use super::request::WriteRequest;
use super::shown;
use super::steps::{Step, answer_of, run_step};
use super::together::{create_together, group_in_front};
use crate::App;
use crate::base::at::{at, at_operation};
use crate::base::offload::run_offloaded;
use crate::caller::Caller;
use crate::outbox::record_events::WriteContext;
use crate::outbox::touched::Touched;
use crate::records::versions::RecordAnswer;

/// The maximum number of bytes of the operations of a call that wait for the results of others. They are read and planned in
/// the transaction, while other writes wait.
const WAITING_BYTES_MAX: usize = 1024 * 1024;
/// The maximum number of bytes around one result: its braces, its keys, `created` or the number of links, and a comma.
const AROUND_RESULT_BYTES: usize = 32;

/// The operations of one call, in their order.
#[derive(Debug)]
pub struct Batch {
    operations: Arc<[Operation]>,
    missing: Missing,
}

/// The effect of an operation on a record that does not exist, or that the caller may not use.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Missing {
    Fails,
    /// The operation has no result, and the others are not undone. Version 0.1.0 of the block interface promises this.
    IsNull,
}

impl Missing {
    /// The error of the operation at `index`, of so many.
    fn failed(self, index: usize, operations: usize, error: Error) -> Error {
        match self {
            Missing::Fails => at_operation(index, error),
            // The interface promises these forms of the message.
            Missing::IsNull if operations > 1 => at(index, error),
            Missing::IsNull => error,
        }
    }
}

impl Batch {
    /// Reads `[{ op, object, id?, values?, onConflict?, ids?, relation?, ifVersion? }]`.
    ///
    /// # Errors
    /// `invalid_request`, with the index of the malformed operation in its message; also for more than `operations_max`
    /// operations.
    pub fn parse(operations: &str, operations_max: usize) -> Result<Batch> {
        Batch::read(operations, operations_max, Missing::Fails)
    }

    /// Reads the operations of a block that uses version 0.1.0 of the interface. A missing record does not fail this batch.
    ///
    /// # Errors
    /// The errors of [`Batch::parse`].
    pub fn of_block(operations: &str, operations_max: usize) -> Result<Batch> {
        Batch::read(operations, operations_max, Missing::IsNull)
    }

    fn read(operations: &str, operations_max: usize, missing: Missing) -> Result<Batch> {
        let items: Vec<Box<RawValue>> = list_of(operations, operations_max)
            .map_err(|error| Error::invalid_request(format!("The operations are not a list of the expected form: {error}.")))?;
        let operations = items.iter().enumerate().map(|(index, item)| {
            let operation = Operation::parse(item.get(), operations_max, missing == Missing::IsNull);
            operation.map_err(|error| missing.failed(index, items.len(), error))
        });
        Ok(Batch { operations: operations.collect::<Result<_>>()?, missing })
    }

    /// The error of the operation at `index`.
    fn failed(&self, index: usize, error: Error) -> Error {
        self.missing.failed(index, self.operations.len(), error)
    }

    fn bytes(&self) -> usize {
        self.operations.iter().map(|operation| operation.request.bytes()).sum()
    }
}

/// The results of the operations, in their order.
#[derive(Debug, Default)]
pub struct BatchAnswer {
    answers: Vec<WriteAnswer>,
}

impl BatchAnswer {
    /// `[{ "data": record, "created"? } | { "data": { "added" | "removed" } } | null]`: each result in the form of its own call.
    /// A deletion has null.
    pub fn json(&self) -> Vec<u8> {
        self.results_into(Vec::with_capacity(self.bytes()))
    }

    /// `{ "data": results }`, with the results of [`BatchAnswer::json`].
    pub fn data_json(&self) -> Vec<u8> {
        let mut out = Vec::with_capacity(self.bytes() + 16);
        out.extend_from_slice(b"{\"data\":");
        let mut out = self.results_into(out);
        out.push(b'}');
        out
    }

    fn results_into(&self, out: Vec<u8>) -> Vec<u8> {
        self.list(out, |answer, out| match answer {
            WriteAnswer::Created(record) | WriteAnswer::Updated(record) => {
                out.extend_from_slice(b"{\"data\":");
                out.extend_from_slice(&record.json);
                out.push(b'}');
            }
            WriteAnswer::Upserted(Upserted { record, created }) => {
                out.extend_from_slice(b"{\"data\":");
                out.extend_from_slice(&record.json);
                out.extend_from_slice(format!(",\"created\":{created}}}").as_bytes());
            }
            WriteAnswer::Links(change, changed) => {
                out.extend_from_slice(format!("{{\"data\":{{\"{}\":{changed}}}}}", count_name(*change)).as_bytes());
            }
            WriteAnswer::Deleted | WriteAnswer::Missing => out.extend_from_slice(b"null"),
        })
    }

    /// The same in the form of version 0.1.0 of the block interface: a record, `{ created, data }`, a number of links, `true` for
    /// a deletion, `null` for a missing record.
    pub fn json_of_block(&self) -> Vec<u8> {
        self.list(Vec::with_capacity(self.bytes()), |answer, out| match answer {
            WriteAnswer::Created(record) | WriteAnswer::Updated(record) => out.extend_from_slice(&record.json),
            WriteAnswer::Upserted(Upserted { record, created }) => {
                out.extend_from_slice(format!("{{\"created\":{created},\"data\":").as_bytes());
                out.extend_from_slice(&record.json);
                out.push(b'}');
            }
            WriteAnswer::Links(_, changed) => write_integer(out, i64::try_from(*changed).unwrap_or(i64::MAX)),
            WriteAnswer::Deleted => out.extend_from_slice(b"true"),
            WriteAnswer::Missing => out.extend_from_slice(b"null"),
        })
    }

    /// The number of bytes of the results. Their JSON never has more.
    fn bytes(&self) -> usize {
        bytes_around(self.answers.len()) + self.answers.iter().map(WriteAnswer::bytes).sum::<usize>()
    }

    fn list(&self, mut out: Vec<u8>, write: impl Fn(&WriteAnswer, &mut Vec<u8>)) -> Vec<u8> {
        out.push(b'[');
        for (index, answer) in self.answers.iter().enumerate() {
            if index > 0 {
                out.push(b',');
            }
            write(answer, &mut out);
        }
        out.push(b']');
        out
    }
}

/// The number of bytes of a list of results, without their records.
fn bytes_around(results: usize) -> usize {
    2 + results * AROUND_RESULT_BYTES
}

/// An operation whose caller has the rights that it needs.
pub(super) enum Ready {
    Step(Box<Step>),
    /// An operation that refers to earlier results. It is planned in the transaction, when these are known. Only then are its
    /// values checked.
    Waits(References, Box<WriteRequest>),
}

impl Ready {
    fn into_create(self) -> Option<CreatePlan> {
        match self {
            Ready::Step(step) => match *step {
                Step::Create(plan, _) => Some(plan),
                _ => None,
            },
            Ready::Waits(..) => None,
        }
    }
}

/// The ids of the records that are used within each scope.
type Lists<'a> = Vec<(&'a Scope, Vec<Uuid>)>;

/// The operations of a batch, as far as they can be planned before the transaction.
struct Prepared {
    operations: Vec<Ready>,
    /// The fields of results that later operations refer to.
    wanted: BTreeMap<usize, BTreeSet<String>>,
    /// The objects to lock, in the order in which all writers lock them.
    objects: Vec<Arc<Object>>,
    /// The bytes of the operations that wait.
    waiting_bytes: usize,
}

impl Prepared {
    /// # Errors
    /// The error of the first operation that cannot be planned.
    fn of(context: &WriteContext, batch: &Batch) -> Result<Prepared> {
        let Batch { operations, .. } = batch;
        let mut prepared = Prepared {
            operations: Vec::with_capacity(operations.len()),
            wanted: BTreeMap::new(),
            objects: Vec::new(),
            waiting_bytes: 0,
        };
        for (index, operation) in operations.iter().enumerate() {
            let ready = prepared.ready(context, operations, index, &operation.request);
            prepared.operations.push(ready.map_err(|error| batch.failed(index, error))?);
        }
        // The rows that decide what the caller sees are read too.
        for index in prepared.wanted.keys() {
            shown::objects_into(context, operations[*index].request.object(), &mut prepared.objects);
        }
        prepared.objects.sort_unstable_by_key(|object| object.id);
        prepared.objects.dedup_by_key(|object| object.id);
        Ok(prepared)
    }

    fn ready(&mut self, context: &WriteContext, operations: &[Operation], index: usize, request: &WriteRequest) -> Result<Ready> {
        // The rights come first. Otherwise the errors of references would reveal objects and columns.
        let admitted = admit(context, request)?;
        let Some(references) = References::of(context, operations, index)? else {
            let step = plan_admitted(context, request, admitted)?;
            step.objects_into(&mut self.objects);
            return Ok(Ready::Step(Box::new(step)));
        };
        admitted.objects_into(&mut self.objects);
        self.waiting_bytes = self.waiting_bytes.saturating_add(request.bytes());
        if self.waiting_bytes > WAITING_BYTES_MAX {
            let message = format!(
                "The operations with references have more than {} MiB of values together. Send large values in operations \
                 without references.",
                WAITING_BYTES_MAX / 1024 / 1024
            );
            return Err(Error::invalid_request(message));
        }
        for target in references.targets() {
            self.wanted.entry(target.operation).or_default().insert(target.field.clone());
        }
        Ok(Ready::Waits(references, Box::new(request.clone())))
    }

    fn frees_room(&self) -> bool {
        self.operations.iter().all(|ready| matches!(ready, Ready::Step(step) if step.frees_room()))
    }

    /// Locks the records that operations change or delete, with one statement for each object. So two batches that name the same
    /// records in different orders do not wait for each other. Records that only links or foreign keys lead to are not locked
    /// here. Postgres may still report a deadlock through them; the call is then tried again.
    async fn lock_records(&self, connection: &mut Connection) -> Result<()> {
        let mut objects: BTreeMap<i64, (&Arc<Object>, Lists<'_>)> = BTreeMap::new();
        let mut records = 0;
        let steps = self.operations.iter().filter_map(|ready| match ready {
            Ready::Step(step) => step.record(),
            Ready::Waits(..) => None,
        });
        for record in steps {
            records += 1;
            let (_, lists) = objects.entry(record.object.id).or_insert_with(|| (&record.object, Vec::new()));
            match lists.iter_mut().find(|(scope, _)| **scope == record.scope) {
                Some((_, ids)) => ids.push(record.id),
                None => lists.push((&record.scope, vec![record.id])),
            }
        }
        if records < 2 {
            return Ok(());
        }
        for (object, lists) in objects.into_values() {
            if let Some(lock) = sql::lock(connection.dialect(), object, lists) {
                connection.fetch_rows(lock).await.map_err(|error| error.on(object))?;
            }
        }
        Ok(())
    }
}

impl App {
    /// Runs several writes. Either all or none of them take effect. The results have the order of the operations.
    ///
    /// # Errors
    /// The error of the operation that fails, with its index in the message and in the details; `answer_too_large` if the
    /// operations write too much together, or if their results are larger than an answer may be. Errors that the request shows by
    /// itself come first, then those of running operations, each in order.
    pub async fn batch(&self, caller: &Caller, batch: &Batch) -> Result<BatchAnswer> {
        if batch.operations.is_empty() {
            return Ok(BatchAnswer::default());
        }
        self.on_schema(caller, move |registry| async move {
            let mut context = self.write_context(caller, &registry);
            context.is_batch = true;
            if batch.missing == Missing::IsNull {
                context.touched = Touched::of_block();
            }
            let prepared = run_offloaded(batch.bytes(), || Prepared::of(&context, batch))?;
            if !prepared.frees_room() {
                self.store.check_room()?;
            }
            let around = bytes_around(batch.operations.len());
            let records_bytes_max = self.answer_bytes_left(caller).checked_sub(around).ok_or_else(results_too_large)?;
            let run = Batch { operations: Arc::clone(&batch.operations), missing: batch.missing };
            let (answers, filled) = self
                .store
                .write_in_reserve(self.by(caller), move |connection| {
                    Box::pin(async move { run.run(connection, &mut context, prepared, records_bytes_max).await })
                })
                .await?;
            let request = |index: usize| filled.get(&index).unwrap_or(&batch.operations[index].request);
            let written = answers.into_iter().enumerate().map(|(index, answer)| (request(index), answer)).collect();
            let answer = BatchAnswer { answers: self.shown(caller, &registry, written, records_bytes_max).await? };
            caller.spend_answer(answer.bytes());
            Ok(answer)
        })
        .await
    }
}

/// The results, and the requests whose references were filled in.
type Done = (Vec<WriteAnswer>, BTreeMap<usize, WriteRequest>);

impl Batch {
    /// Runs the operations in their transaction. The records of the results have at most so many bytes.
    async fn run(
        &self,
        connection: &mut Connection,
        context: &mut WriteContext,
        prepared: Prepared,
        records_bytes_max: usize,
    ) -> Result<Done> {
        for object in &prepared.objects {
            context.hold(connection, object).await?;
        }
        prepared.lock_records(connection).await?;
        let Prepared { operations, wanted, .. } = prepared;
        let (mut results, mut filled) = (Results::new(), BTreeMap::new());
        let mut answers = Answers { answers: Vec::with_capacity(operations.len()), bytes: 0, bytes_max: records_bytes_max };
        let mut left: VecDeque<Ready> = operations.into();
        let mut savepoint = None;
        while !left.is_empty() {
            let first = answers.answers.len();
            let size = group_in_front(connection.dialect(), &left, |place| wanted.contains_key(&(first + place)));
            if size > 1 {
                let group = &left.make_contiguous()[..size];
                let indices = (first..first + size).map(|index| self.index_in_errors(index));
                let done = create_together(connection, context, group, indices, &mut savepoint).await;
                if done.map_err(|error| self.failed(first, error))? {
                    for (index, plan) in (first..).zip(left.drain(..size).filter_map(Ready::into_create)) {
                        answers.push(WriteAnswer::Created(answer_of(plan))).map_err(|error| self.failed(index, error))?;
                    }
                    continue;
                }
            }
            for index in first..first + size {
                let Some(ready) = left.pop_front() else { break };
                context.operation = self.index_in_errors(index);
                let request = &self.operations[index].request;
                let ran = run_one(connection, context, (ready, request), &results, wanted.get(&index)).await;
                let Ran { answer, request, result } = ran.map_err(|error| match context.has_failed_check {
                    // An earlier operation is at fault, and the error names it.
                    true => error,
                    false => self.failed(index, error),
                })?;
                if matches!(answer, WriteAnswer::Missing) && self.missing == Missing::Fails {
                    return Err(self.failed(index, Error::not_found("record")));
                }
                answers.push(answer).map_err(|error| self.failed(index, error))?;
                filled.extend(request.map(|request| (index, request)));
                results.extend(result.map(|result| (index, result)));
            }
        }
        context.check_rows(connection).await?;
        Ok((answers.answers, filled))
    }

    /// The index with which checks report the operation that wrote a row.
    fn index_in_errors(&self, index: usize) -> Option<usize> {
        (self.missing == Missing::Fails).then_some(index)
    }
}

/// The results so far. Their records have at most so many bytes.
struct Answers {
    answers: Vec<WriteAnswer>,
    bytes: usize,
    bytes_max: usize,
}

impl Answers {
    /// # Errors
    /// `answer_too_large`.
    fn push(&mut self, answer: WriteAnswer) -> Result<()> {
        self.bytes = self.bytes.saturating_add(answer.bytes());
        if self.bytes > self.bytes_max {
            return Err(results_too_large());
        }
        self.answers.push(answer);
        Ok(())
    }
}

fn results_too_large() -> Error {
    let message =
        "The results have more bytes than the server sends (`SVC_MAX_ANSWER_BYTES`). Send fewer operations in one call.";
    Error::new(Code::AnswerTooLarge, message)
}

/// The result of one operation in its transaction.
struct Ran {
    answer: WriteAnswer,
    /// The request, if its references were filled in.
    request: Option<WriteRequest>,
    /// The fields that later operations refer to.
    result: Option<Members>,
}

async fn run_one(
    connection: &mut Connection,
    context: &mut WriteContext,
    (ready, request): (Ready, &WriteRequest),
    results: &Results,
    wanted: Option<&BTreeSet<String>>,
) -> Result<Ran> {
    let (step, filled) = match ready {
        Ready::Step(step) => (*step, None),
        Ready::Waits(references, waiting) => {
            let filled = references.fill(context, *waiting, results)?;
            (plan(context, &filled)?, Some(filled))
        }
    };
    let answer = run_step(connection, step, context).await?;
    let result = match wanted {
        Some(wanted) => result_of(connection, context, filled.as_ref().unwrap_or(request), &answer, wanted).await?,
        None => None,
    };
    Ok(Ran { answer, request: filled, result })
}

/// The wanted fields of a result, as the caller sees them. A field that the caller does not see is left out.
async fn result_of(
    connection: &mut Connection,
    context: &WriteContext,
    request: &WriteRequest,
    answer: &WriteAnswer,
    wanted: &BTreeSet<String>,
) -> Result<Option<Members>> {
    let json = match (answer, answer.record()) {
        (_, Some((record, is_new))) => match wanted.iter().all(|field| field == "id") {
            // Everybody sees the id of a record that they wrote.
            true => id_only(record),
            false => shown::shown_within(connection, context, request, record, is_new).await?,
        },
        (WriteAnswer::Links(change, changed), None) => format!("{{\"{}\":{changed}}}", count_name(*change)).into_bytes(),
        (_, None) => return Ok(None),
    };
    let Members(mut members) = serde_json::from_slice(&json).map_err(Error::internal)?;
    members.retain(|(name, _)| wanted.contains(name));
    Ok(Some(Members(members)))
}

fn id_only(record: &RecordAnswer) -> Vec<u8> {
    format!("{{\"id\":\"{}\"}}", Uuid::from_bytes(record.version.id).hyphenated()).into_bytes()
}

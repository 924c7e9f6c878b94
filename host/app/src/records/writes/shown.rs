//! The parts of a written record that its writer may see.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::Arc;

use blockbase_query::plan::RecordPlan;
use blockbase_query::{Access, Action, GrantContext, Scope, sql};
use blockbase_schema::json::{Members, write_string};
use blockbase_schema::{ColumnType, Error, Object, Registry, Result, system};
use blockbase_store::{Connection, Read, Record, RecordsMax};
use uuid::Uuid;

use super::answer::WriteAnswer;
use super::request::WriteRequest;
use crate::App;
use crate::base::offload::run_offloaded;
use crate::caller::Caller;
use crate::outbox::record_events::WriteContext;
use crate::records::read::cost_of;
use crate::records::versions::RecordAnswer;

/// The maximum number of written records that are read together.
const RECORDS_READ_AT_ONCE: usize = 100;

/// The part of a written record that its writer sees.
#[derive(Clone, Copy)]
enum Visibility {
    /// The record as it was written.
    Whole,
    /// The id, and the values that the writer sent.
    SentOnly,
    /// The cells of the record that can be read now. If the record cannot be read, only what the writer sent. The record as it was
    /// written is not shown, because a later operation of a batch may have made it readable by removing a secret.
    Cells,
}

impl Visibility {
    /// A writer who may not read the record sees only its id and the values that they sent. A writer none of whose rights on the
    /// object depends on a condition or a list of fields sees all fields of a new record.
    fn of(
        caller: &Caller,
        grant_context: &GrantContext<'_>,
        object: &Object,
        record: &RecordAnswer,
        is_new: bool,
    ) -> Result<Visibility> {
        let reads = caller.access_to(grant_context, object.name(), Action::Read).ok();
        let is_seen = match reads.as_ref().map(Access::scope) {
            Some(Scope::All) => true,
            Some(Scope::Seen(_) | Scope::Where(_)) => return Ok(Visibility::Cells),
            _ if is_new && !caller.has_rules_on(object.name()) => true,
            Some(Scope::Own(actor)) => owner_of(&record.json)?.as_ref() == Some(actor),
            Some(Scope::Nothing) | None => false,
        };
        Ok(if is_seen { Visibility::Whole } else { Visibility::SentOnly })
    }
}

/// Adds the objects whose rows decide what the caller sees of a record.
pub(super) fn objects_into(context: &WriteContext, object: &str, objects: &mut Vec<Arc<Object>>) {
    if let Ok(access) = context.caller.access_to(&context.grant_context(), object, Action::Read) {
        access.objects_into(objects);
    }
}

/// The JSON of a record that the transaction has just written, as its writer sees it at this point of the transaction.
pub(super) async fn shown_within(
    connection: &mut Connection,
    context: &WriteContext,
    request: &WriteRequest,
    record: &RecordAnswer,
    is_new: bool,
) -> Result<Vec<u8>> {
    let (caller, grant_context) = (&context.caller, context.grant_context());
    let object = context.registry.object(request.object()).ok_or_else(|| Error::unknown_object(request.object()))?;
    let id = Uuid::from_bytes(record.version.id);
    let is_seen = match Visibility::of(caller, &grant_context, object, record, is_new)? {
        Visibility::Whole => true,
        Visibility::SentOnly => false,
        Visibility::Cells => {
            let (object, access) = caller.object(&grant_context, object.name(), Action::Read)?;
            let plan = RecordPlan::new(&object, &access, id);
            let select = sql::get(connection.dialect(), &plan, false);
            let read = connection.look_record(select, &object.columns).await.map_err(|error| error.on(&object))?;
            if let Some(read) = read {
                return Ok(read.into_json());
            }
            false
        }
    };
    if is_seen { Ok(record.json.clone()) } else { sent_only(object, request.values(), record) }
}

/// A result, and what its caller sees of its record.
struct Decided<'r> {
    request: &'r WriteRequest,
    answer: WriteAnswer,
    /// With the record's object and id.
    shown: Option<(Visibility, Arc<Object>, Uuid)>,
}

impl App {
    /// Reduces the results of writes to the parts that their caller may see. The writes are committed, so a read that fails does
    /// not fail the call: then the answer has only what the caller sent. That also happens if the records that are read would
    /// make the results larger than `bytes_max`.
    pub(super) async fn shown(
        &self,
        caller: &Caller,
        registry: &Arc<Registry>,
        written: Vec<(&WriteRequest, WriteAnswer)>,
        bytes_max: usize,
    ) -> Result<Vec<WriteAnswer>> {
        let bytes = written.iter().map(|(_, answer)| answer.bytes()).sum::<usize>();
        let decided = run_offloaded(bytes, || self.decided(caller, registry, written))?;
        // A record is read once, even if several operations wrote it.
        let mut to_read: BTreeMap<&str, BTreeSet<Uuid>> = BTreeMap::new();
        for Decided { request, shown, .. } in &decided {
            if let Some((Visibility::Cells, _, id)) = shown {
                to_read.entry(request.object()).or_default().insert(*id);
            }
        }
        let mut read: HashMap<(&str, Uuid), RecordAnswer> = HashMap::new();
        let mut bytes_left = bytes_max;
        for (name, ids) in to_read {
            let ids: Vec<Uuid> = ids.into_iter().collect();
            for ids in ids.chunks(RECORDS_READ_AT_ONCE) {
                // If a part cannot be read, the parts before it are still shown.
                let Ok(found) = self.read_cells(caller, name, ids, bytes_left).await else { break };
                bytes_left = bytes_left.saturating_sub(found.iter().map(|(_, record)| record.json.len()).sum());
                read.extend(found.into_iter().map(|(id, record)| ((name, id), record)));
            }
        }
        run_offloaded(bytes, || reduced(decided, &read, bytes_max.saturating_sub(bytes)))
    }

    /// Decides what the caller sees of each result.
    fn decided<'r>(
        &self,
        caller: &Caller,
        registry: &Registry,
        written: Vec<(&'r WriteRequest, WriteAnswer)>,
    ) -> Result<Vec<Decided<'r>>> {
        let grant_context = self.grant_context(registry);
        let mut decided = Vec::with_capacity(written.len());
        for (request, answer) in written {
            let shown = match answer.record() {
                Some((record, is_new)) => {
                    let name = request.object();
                    let object = registry.object(name).ok_or_else(|| Error::unknown_object(name))?;
                    let visibility = Visibility::of(caller, &grant_context, object, record, is_new)?;
                    Some((visibility, Arc::clone(object), Uuid::from_bytes(record.version.id)))
                }
                None => None,
            };
            decided.push(Decided { request, answer, shown });
        }
        Ok(decided)
    }

    /// Reads records that the caller has written, with the cells that the caller may read now.
    async fn read_cells(
        &self,
        caller: &Caller,
        object: &str,
        ids: &[Uuid],
        bytes_max: usize,
    ) -> Result<Vec<(Uuid, RecordAnswer)>> {
        self.on_schema(caller, move |registry| async move {
            let (object, access) = caller.object(&self.grant_context(&registry), object, Action::Read)?;
            let asked = Arc::new((object, access.scope().clone(), ids.to_vec(), bytes_max));
            let Some(cost) = cost_of(&asked.1) else {
                return self
                    .store
                    .read_rows(self.by(caller), Some(registry.version), move |connection| {
                        Box::pin(async move { cells(connection, &asked).await })
                    })
                    .await;
            };
            let read = Read { schema: registry.version, cost, tables_of_one_moment: None };
            self.read_metered(caller, read, move |connection| {
                let asked = Arc::clone(&asked);
                Box::pin(async move { cells(connection, &asked).await })
            })
            .await
        })
        .await
    }
}

/// Reads records by their ids, within a scope. Together they have at most so many bytes.
async fn cells(
    connection: &mut Connection,
    (object, scope, ids, bytes_max): &(Arc<Object>, Scope, Vec<Uuid>, usize),
) -> Result<Vec<(Uuid, RecordAnswer)>> {
    let columns: Vec<_> = object.columns.iter().collect();
    let select = sql::read_many(connection.dialect(), object, scope, ids.clone());
    let records =
        connection.fetch_records(select, &columns, 0, RecordsMax::bytes(*bytes_max)).await.map_err(|error| error.on(object))?;
    let answer = |record: Record| -> Result<(Uuid, RecordAnswer)> {
        let id = record.uuid(0).ok_or_else(|| Error::internal("a record without an id"))?;
        Ok((id, RecordAnswer::new(object, id, record)?))
    };
    records.into_iter().map(answer).collect()
}

/// Reduces each result to what its caller sees. The records of `read` may make the results longer by `bytes_left` bytes.
fn reduced(
    decided: Vec<Decided<'_>>,
    read: &HashMap<(&str, Uuid), RecordAnswer>,
    mut bytes_left: usize,
) -> Result<Vec<WriteAnswer>> {
    let mut answers = Vec::with_capacity(decided.len());
    for Decided { request, answer, shown } in decided {
        let shown = match (&shown, answer.record()) {
            (Some((Visibility::Cells, object, id)), Some((record, _))) => {
                let room = bytes_left + record.json.len();
                match read.get(&(request.object(), *id)).filter(|read| read.json.len() <= room) {
                    Some(read) => {
                        bytes_left = room - read.json.len();
                        Some(RecordAnswer { json: read.json.clone(), version: read.version })
                    }
                    None => Some(RecordAnswer { json: sent_only(object, request.values(), record)?, version: record.version }),
                }
            }
            (Some((Visibility::SentOnly, object, _)), Some((record, _))) => {
                Some(RecordAnswer { json: sent_only(object, request.values(), record)?, version: record.version })
            }
            _ => None,
        };
        answers.push(match shown {
            Some(shown) => answer.with_record(shown),
            None => answer,
        });
    }
    Ok(answers)
}

/// Reduces an answer to the id of the record and the values that the caller sent. The result of an atomic operator does not count
/// as sent.
fn sent_only(object: &Object, sent: Option<&Members>, answer: &RecordAnswer) -> Result<Vec<u8>> {
    let record: Members = serde_json::from_slice(&answer.json).map_err(Error::internal)?;
    let sent = sent.map_or(&[][..], |sent| sent.0.as_slice());
    let is_sent = |name: &str| {
        sent.iter().any(|(known, raw)| {
            let is_plain = object.column(name).is_some_and(|column| column.ty == ColumnType::Json || !raw.get().starts_with('{'));
            known == name && is_plain && !system::NAMES.contains(&name)
        })
    };
    let mut kept = vec![b'{'];
    for (name, raw) in record.0.iter().filter(|(name, _)| name == system::ID || is_sent(name)) {
        if kept.len() > 1 {
            kept.push(b',');
        }
        write_string(&mut kept, name);
        kept.push(b':');
        kept.extend_from_slice(raw.get().as_bytes());
    }
    kept.push(b'}');
    Ok(kept)
}

/// The value of `created_by` in a record's JSON.
fn owner_of(json: &[u8]) -> Result<Option<String>> {
    let record: Members = serde_json::from_slice(json).map_err(Error::internal)?;
    let owner = record.0.iter().find(|(name, _)| name == system::CREATED_BY);
    Ok(owner.and_then(|(_, raw)| serde_json::from_str(raw.get()).ok()).flatten())
}

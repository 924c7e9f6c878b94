//! Writes: records, links, actions of blocks.

use std::sync::Arc;

use blockbase_app::schema::json::{Members, parse_members};
use blockbase_app::schema::{Code, Error, Object, Result};
use blockbase_app::{Batch, Chosen, LinkChange, ListParameter, Where, run_offloaded};
use serde::Deserialize;
use serde_json::value::RawValue;

use super::{Execution, id_of, missing_record, upserted_name, write_record};
use crate::document::coerce::Arguments;
use crate::document::collect::Selected;
use crate::execute::shape::{Answer, Place, RecordShape, Wanted};
use crate::view::leaves::LeafType;

impl<'d> Execution<'d> {
    pub(super) async fn create(
        &self,
        object: &Arc<Object>,
        selected: &Selected<'d>,
        arguments: &mut Arguments,
        answer: &mut Answer,
    ) -> Result<()> {
        let (shape, wanted) = self.shape(object, selected)?;
        let record = self.app.create(self.caller, object.name(), members(arguments, "input")?).await?;
        let record = self.with_related(object, record.json, &wanted).await?;
        write_record(answer, &shape, Some(&record), selected)
    }

    pub(super) async fn update(
        &self,
        object: &Arc<Object>,
        selected: &Selected<'d>,
        arguments: &mut Arguments,
        answer: &mut Answer,
    ) -> Result<()> {
        let (shape, wanted) = self.shape(object, selected)?;
        let changes = changes(arguments)?;
        let record = self.app.update(self.caller, object.name(), &id_of(arguments)?, changes, None).await?;
        let record = self.with_related(object, record.ok_or_else(missing_record)?.json, &wanted).await?;
        write_record(answer, &shape, Some(&record), selected)
    }

    pub(super) async fn upsert(
        &self,
        object: &Arc<Object>,
        selected: &Selected<'d>,
        arguments: &mut Arguments,
        answer: &mut Answer,
    ) -> Result<()> {
        let ty = upserted_name(object);
        let mut wanted = Wanted::default();
        let mut fields = Vec::new();
        for field in self.context().collect(&selected.sets, &ty) {
            let shape = match field.field.name.node.as_str() {
                "data" => Some(RecordShape::of(self.context(), self.view, object, &field.sets, &mut wanted)?),
                _ => None,
            };
            fields.push((field, shape));
        }
        let target: Vec<String> = arguments.read("onConflict")?.unwrap_or_default();
        let upserted = self.app.upsert(self.caller, object.name(), members(arguments, "input")?, &target).await?;
        let record = self.with_related(object, upserted.record.json, &wanted).await?;
        let record = std::str::from_utf8(&record).map_err(Error::internal)?;
        let root = Place::root(selected.key);
        answer.object(fields.iter().map(|(field, shape)| (field.key, (field, shape))), |answer, (field, shape)| {
            match (shape, field.field.name.node.as_str()) {
                (Some(shape), _) => {
                    answer.nullable(|answer| answer.record(shape, record, field.position, &root.key(field.key)));
                }
                (None, "created") => answer.json.extend_from_slice(if upserted.created { b"true" } else { b"false" }),
                (None, _) => answer.string(&ty),
            }
            Ok(())
        })
    }

    pub(super) async fn delete(&self, object: &Arc<Object>, arguments: &Arguments, answer: &mut Answer) -> Result<()> {
        let deleted = self.app.delete(self.caller, object.name(), &id_of(arguments)?, None).await?;
        answer.json.extend_from_slice(if deleted { b"true" } else { b"false" });
        Ok(())
    }

    /// Changes many records if `is_update`, and otherwise deletes them.
    pub(super) async fn write_many(
        &self,
        object: &Arc<Object>,
        is_update: bool,
        selected: &Selected<'d>,
        arguments: &mut Arguments,
        answer: &mut Answer,
    ) -> Result<()> {
        let changes = match is_update {
            true => Some(changes(arguments)?),
            false => None,
        };
        let chosen = chosen(arguments)?;
        let name = object.name();
        let written = match (&changes, arguments.read("dryRun")?.unwrap_or(false)) {
            (Some(changes), false) => self.app.update_many(self.caller, name, &chosen, changes).await?,
            (Some(changes), true) => self.app.update_many_dry(self.caller, name, &chosen, changes).await?,
            (None, false) => self.app.delete_many(self.caller, name, &chosen).await?,
            (None, true) => self.app.delete_many_dry(self.caller, name, &chosen).await?,
        };
        let fields = self.context().collect(&selected.sets, LeafType::Written.name());
        let ids = written.ids_json();
        let mut is_repeated = false;
        answer.object(fields.iter().map(|field| (field.key, field)), |answer, field| {
            match field.field.name.node.as_str() {
                "count" => answer.json.extend_from_slice(written.ids.len().to_string().as_bytes()),
                "ids" => {
                    // The bulk calls of REST return the ids once, however many they are. Each alias writes them once more.
                    if std::mem::replace(&mut is_repeated, true) {
                        let spent = self.budget.spend(ids.len());
                        spent.map_err(|error| error.within("The mutation ran, but its ids cannot be returned so often"))?;
                    }
                    answer.json.extend_from_slice(ids.as_bytes());
                }
                _ => answer.string(LeafType::Written.name()),
            }
            Ok(())
        })
    }

    pub(super) async fn batch(&self, arguments: &mut Arguments, answer: &mut Answer) -> Result<()> {
        self.app.admit_to_batch(self.caller).await?;
        let text = arguments.take("operations").unwrap_or_else(|| "[]".to_owned());
        let batch = run_offloaded(text.len(), || Batch::parse(&text, self.app.settings().bulk_records_max))?;
        drop(text);
        // The batch is undone if its results do not fit, so the bytes that are left have to be known before.
        let caller = self.caller.with_one_answer(self.budget.left());
        let mut results = self.app.batch(&caller, &batch).await?.json();
        self.budget.spend(results.len())?;
        answer.json.append(&mut results);
        Ok(())
    }

    pub(super) async fn change_links(
        &self,
        object: &Arc<Object>,
        key: &str,
        change: LinkChange,
        arguments: &Arguments,
        answer: &mut Answer,
    ) -> Result<()> {
        let ids: Vec<String> = arguments.read("ids")?.unwrap_or_default();
        let changed = self.app.change_links(self.caller, object.name(), &id_of(arguments)?, key, &ids, change).await?;
        answer.json.extend_from_slice(changed.ok_or_else(missing_record)?.to_string().as_bytes());
        Ok(())
    }

    pub(super) async fn call_action(&self, block: &str, action: &str, arguments: &Arguments, answer: &mut Answer) -> Result<()> {
        let input = arguments.json("input").unwrap_or("{}").to_owned();
        let result = self.app.call_action(self.caller, block, action, input, self.request_id.to_owned()).await?;
        answer.json.extend_from_slice(result.as_bytes());
        Ok(())
    }

    /// The record that was written. If related records are selected, it is read again with them.
    async fn with_related(&self, object: &Object, record: Vec<u8>, wanted: &Wanted) -> Result<Vec<u8>> {
        #[derive(Deserialize)]
        struct Written<'r> {
            id: &'r str,
        }
        if !wanted.wants_related() {
            return Ok(record);
        }
        let Written { id } = serde_json::from_slice(&record).map_err(Error::internal)?;
        let read = self.app.get(self.caller, object.name(), id, &wanted.related()).await;
        let explained = |error: Error| error.within("The record was written, but cannot be read with its related records");
        Ok(read.map_err(explained)?.ok_or_else(|| explained(missing_record()))?.json)
    }
}

/// The record in an argument. An argument that is left out counts as an empty record.
fn members(arguments: &mut Arguments, name: &str) -> Result<Members> {
    // The text is moved out of the arguments, so that a large value is in memory only once.
    let text = arguments.take(name);
    text.map_or_else(|| Ok(Members::default()), |text| run_offloaded(text.len(), || parse_members(&text)))
}

/// The records of a mutation of many: those of `ids`, or those that meet the condition `where`.
fn chosen(arguments: &mut Arguments) -> Result<Chosen> {
    let ids = arguments.read("ids")?;
    let condition =
        arguments.take(ListParameter::Where.name()).map(RawValue::from_string).transpose().map_err(Error::internal)?;
    Chosen::of(ids, condition.map(Where::Json).into_iter().collect())
}

/// The changes of an update: `input`, and `increment` as atomic additions.
fn changes(arguments: &mut Arguments) -> Result<Members> {
    let mut changes = members(arguments, "input")?;
    for (field, amount) in members(arguments, "increment")?.0 {
        if amount.get() == "null" {
            continue;
        }
        if changes.0.iter().any(|(known, _)| *known == field) {
            let message = format!("`{field}` is in both `input` and `increment`. It can only be in one of them.");
            return Err(Error::new(Code::InvalidAtomicOp, message).with_field(field));
        }
        let operator = RawValue::from_string(format!("{{\"$inc\":{}}}", amount.get())).map_err(Error::internal)?;
        changes.0.push((field, operator));
    }
    Ok(changes)
}

//! The operations on the schema. They create, alter and drop objects, fields and relationships, and store the history of these
//! changes.
//!
//! Each change is one transaction. The new catalogue is checked as a whole and compared with the old one, and the tables are changed
//! accordingly. A change that existing rows would break is refused. A plan takes the same steps except for the tables, and reports the
//! result.

mod apply;
mod dependents;
mod fields;
mod plan;
mod policies;
mod relationships;
mod rows;
pub(crate) mod visible;

use std::collections::BTreeMap;
use std::sync::Arc;

use blockbase_query::{Action, ddl};
use blockbase_schema::json::Members;
use blockbase_schema::{
    Code, Constraints, Error, Field, Hint, NAME_PATTERN, NamesSince, ObjectDefinition, Registry, Relationship,
    RelationshipDefinition, Resource, Result, StoredObject, check_object_name, json as json_text,
};
use blockbase_store::{Connection, SchemaChangeRow, Service};
use futures_util::future::BoxFuture;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::json;
use serde_json::value::RawValue;

use crate::App;
use crate::base::answer::Timestamp;
use crate::base::topic::{ObjectMembers, Topic};
use crate::blocks::check_objects;
use crate::caller::Caller;
use crate::outbox::audit::{Act, AuditAction};
use crate::state::block_types::InstalledBlock;
use crate::state::refresh::Catalogue;
use apply::apply;
use policies::check_policies;

pub use dependents::{Dependent, DependentKind};
pub use plan::{ChangePlan, Lost, LostKind};
pub use rows::Broken;

/// The changes of an object in a PATCH: `{ label?, description?, constraints?, indexes? }`. Null removes a member.
pub type ObjectChanges = Members;
/// The changes of a field in a PATCH: any of the field's keys. Null removes a key.
pub type FieldChanges = Members;

/// Whether a change is applied or only planned.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mode {
    Apply,
    Plan,
}

/// The result of a change.
#[derive(Clone, Debug)]
pub enum Change<T> {
    Applied(T),
    Planned(ChangePlan),
}

/// The effect of an edit on its object.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Outcome {
    Created,
    Updated,
    /// The object was deleted. With `cascade`, the things that depended on it were deleted, or no longer work.
    Deleted {
        cascade: bool,
    },
}

/// The result of an edit: its entry in the history, the object of its event, and the answer for the caller.
struct Edited<T> {
    /// The entry of the history.
    entry: Entry,
    object: String,
    outcome: Outcome,
    /// The number of new field numbers that the object used.
    fields_added: i64,
    /// The object or the column that the change removes or alters. Things that depend on it may be affected.
    about: Option<(String, Option<String>)>,
    answer: T,
}

/// The catalogue that an edit changes. Added and removed entries are stored at once. A plan stores nothing.
struct Draft<'c> {
    connection: &'c mut Connection,
    catalogue: &'c mut Catalogue,
    mode: Mode,
}

/// An edit of the catalogue.
trait Edit<T>: for<'c> FnOnce(Draft<'c>) -> BoxFuture<'c, Result<Edited<T>>> + Clone + Send + Sync + 'static {}

impl<T, F> Edit<T> for F where F: for<'c> FnOnce(Draft<'c>) -> BoxFuture<'c, Result<Edited<T>>> + Clone + Send + Sync + 'static {}

impl Draft<'_> {
    /// Adds an object to the catalogue, but creates no table.
    async fn enter_object(&mut self, definition: ObjectDefinition, keys: Vec<u32>) -> Result<()> {
        // An earlier object may have had this name. All its events were written before it was dropped.
        let since = match self.mode {
            Mode::Apply => NamesSince::of_new_object(self.connection.last_event_seq().await?),
            Mode::Plan => NamesSince::default(),
        };
        let id = match self.mode {
            Mode::Apply => {
                let text = serde_json::to_string(&definition).map_err(Error::internal)?;
                let keys_text = serde_json::to_string(&keys).map_err(Error::internal)?;
                let next_key = i64::try_from(keys.len()).map_err(Error::internal)? + 1;
                let since_text = serde_json::to_string(&since).map_err(Error::internal)?;
                self.connection.insert_object(&definition.name, text, keys_text, next_key, since_text).await?
            }
            // A plan uses any free number. The names of constraints contain this number, but a plan creates no constraints.
            Mode::Plan => self.catalogue.objects.iter().map(|object| object.id).max().unwrap_or(0) + 1,
        };
        self.catalogue.objects.push(StoredObject { id, revision: 1, definition, keys, since });
        Ok(())
    }

    async fn remove_object(&mut self, id: i64) -> Result<()> {
        self.catalogue.objects.retain(|object| object.id != id);
        match self.mode {
            Mode::Apply => Ok(self.connection.delete_object(id).await?),
            Mode::Plan => Ok(()),
        }
    }

    async fn enter_relationship(&mut self, definition: RelationshipDefinition) -> Result<Relationship> {
        let id = match self.mode {
            Mode::Apply => {
                let text = serde_json::to_string(&definition).map_err(Error::internal)?;
                self.connection.insert_relationship(text).await?
            }
            Mode::Plan => self.catalogue.relationships.iter().map(|known| known.id).max().unwrap_or(0) + 1,
        };
        let relationship = Relationship { id, definition };
        self.catalogue.relationships.push(relationship.clone());
        Ok(relationship)
    }

    /// Deletes a relationship that was removed from the catalogue.
    async fn forget_relationship(&mut self, id: i64) -> Result<()> {
        match self.mode {
            Mode::Apply => Ok(self.connection.delete_relationship(id).await?),
            Mode::Plan => Ok(()),
        }
    }
}

/// The result of an edit that changed only the catalogue, and the catalogue from before. The complete new catalogue has been
/// checked.
struct Drafted<T> {
    before: Registry,
    next: Catalogue,
    edited: Edited<T>,
}

async fn draft<T>(
    connection: &mut Connection,
    mode: Mode,
    caller: &Caller,
    blocks: &BTreeMap<String, Arc<InstalledBlock>>,
    edit: impl Edit<T>,
    now: i64,
) -> Result<Drafted<T>> {
    let mut next = Catalogue::load(connection).await?;
    let before = next.clone().registry().map_err(Error::internal)?;
    let edited = edit(Draft { connection, catalogue: &mut next, mode }).await?;
    let after = next.clone().registry()?;
    check_objects(&before, &after, blocks)?;
    if edited.outcome != (Outcome::Deleted { cascade: true }) {
        check_policies(connection, caller, &before, &after, now).await?;
    }
    Ok(Drafted { before, next, edited })
}

/// `op` and what it changed.
#[derive(Serialize, JsonSchema)]
#[serde(tag = "op", rename_all = "snake_case")]
#[schemars(rename = "SvcSchemaChange", deny_unknown_fields)]
enum SchemaChange<'a> {
    CreateObject {
        object: &'a ObjectDefinition,
    },
    UpdateObject {
        #[schemars(extend("pattern" = NAME_PATTERN))]
        object: &'a str,
        before: &'a ObjectDefinition,
        after: &'a ObjectDefinition,
    },
    DeleteObject {
        #[schemars(extend("pattern" = NAME_PATTERN))]
        object: &'a str,
        cascade: bool,
    },
    AddField {
        #[schemars(extend("pattern" = NAME_PATTERN))]
        object: &'a str,
        field: &'a Field,
    },
    AlterField {
        #[schemars(extend("pattern" = NAME_PATTERN))]
        object: &'a str,
        #[schemars(extend("pattern" = NAME_PATTERN))]
        field: &'a str,
        before: &'a Field,
        after: &'a Field,
    },
    DropField {
        #[schemars(extend("pattern" = NAME_PATTERN))]
        object: &'a str,
        field: &'a Field,
    },
    CreateRelationship {
        relationship: &'a Relationship,
    },
    DeleteRelationship {
        relationship: &'a Relationship,
    },
}

/// A change as the history stores it, and as the audit log does.
struct Entry {
    /// JSON text and not a tree, because numbers would lose digits in a tree.
    text: String,
    act: Act<'static>,
}

impl SchemaChange<'_> {
    /// The entry of the history.
    fn entry(&self) -> Result<Entry> {
        Ok(Entry { text: serde_json::to_string(self).map_err(Error::internal)?, act: self.act() })
    }

    /// The act that makes this change. Its target is the object.
    fn act(&self) -> Act<'static> {
        fn on(action: AuditAction, object: &str) -> Act<'static> {
            Act::new(action, Resource::Objects, object.to_owned())
        }
        match self {
            SchemaChange::CreateObject { object } => on(AuditAction::Create, &object.name).after(object),
            SchemaChange::UpdateObject { object, before, after } => on(AuditAction::Update, object).before(before).after(after),
            SchemaChange::DeleteObject { object, cascade } => {
                on(AuditAction::Delete, object).after(&json!({ "cascade": cascade }))
            }
            SchemaChange::AddField { object, field } => on(AuditAction::AddField, object).after(field),
            SchemaChange::AlterField { object, field: _, before, after } => {
                on(AuditAction::AlterField, object).before(before).after(after)
            }
            SchemaChange::DropField { object, field } => on(AuditAction::DropField, object).before(field),
            SchemaChange::CreateRelationship { relationship } => {
                on(AuditAction::CreateRelationship, &relationship.definition.source).after(relationship)
            }
            SchemaChange::DeleteRelationship { relationship } => {
                on(AuditAction::DeleteRelationship, &relationship.definition.source).before(relationship)
            }
        }
    }
}

/// The requested part of the history.
#[derive(Clone, Debug, Default)]
pub struct HistoryRequest {
    /// Show only changes of this object.
    pub object: Option<String>,
    /// Show only versions below this one.
    pub before: Option<i64>,
    /// The maximum number of entries.
    pub limit: Option<i64>,
}

/// The whole schema at one version.
#[derive(Debug, Serialize, JsonSchema)]
#[schemars(inline, deny_unknown_fields)]
pub struct SchemaDocument {
    pub version: i64,
    pub objects: Vec<ObjectDefinition>,
    pub relationships: Vec<Relationship>,
}

/// An entry of the schema's history.
#[derive(Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(rename = "SvcMigration", deny_unknown_fields)]
pub struct SchemaHistoryAnswer {
    version: i64,
    // The change stays text, so that its numbers keep all their digits.
    #[schemars(with = "SchemaChange<'static>")]
    change: Box<RawValue>,
    applied_by: Option<String>,
    applied_at: Timestamp,
}

impl SchemaHistoryAnswer {
    fn of_row(row: SchemaChangeRow) -> Result<SchemaHistoryAnswer> {
        let SchemaChangeRow { version, change, applied_by, applied_at } = row;
        let change = RawValue::from_string(change).map_err(Error::internal)?;
        Ok(SchemaHistoryAnswer { version, change, applied_by, applied_at: Timestamp(applied_at) })
    }
}

impl App {
    /// All objects, by name.
    pub fn objects(&self, caller: &Caller) -> Result<Vec<ObjectDefinition>> {
        Ok(self.schema(caller)?.objects)
    }

    /// The whole schema, as one document.
    pub fn schema(&self, caller: &Caller) -> Result<SchemaDocument> {
        caller.require(Resource::Objects, Action::Read)?;
        let registry = self.registry();
        Ok(SchemaDocument {
            version: registry.version,
            objects: registry.objects().map(|object| object.definition.clone()).collect(),
            relationships: registry.relationships().to_vec(),
        })
    }

    pub fn object(&self, caller: &Caller, name: &str) -> Result<ObjectDefinition> {
        caller.require(Resource::Objects, Action::Read)?;
        let registry = self.registry();
        let object = registry.object(name).filter(|object| !object.is_users());
        object.map(|object| object.definition.clone()).ok_or_else(|| Error::unknown_object(name))
    }

    /// The names of the objects whose records the caller may read.
    pub fn readable_objects(&self, caller: &Caller) -> Vec<String> {
        let registry = self.registry();
        let users = registry.users().filter(|_| registry.leads_to_users());
        let objects = registry.objects().chain(users).map(|object| object.name().to_owned());
        objects.filter(|name| caller.may(name, Action::Read)).collect()
    }

    /// Creates an object with its table. It can be used as soon as this function returns.
    ///
    /// # Errors
    /// `invalid_schema`, `object_exists`.
    pub async fn create_object(
        &self,
        caller: &Caller,
        definition: ObjectDefinition,
        mode: Mode,
    ) -> Result<Change<ObjectDefinition>> {
        caller.require(Resource::Objects, Action::Create)?;
        let keys: Vec<u32> = (1..).take(definition.fields.len()).collect();
        // The definition itself is checked first, so that a caller need not wait for the writer to get its errors.
        let since = NamesSince::default();
        let alone = StoredObject { id: 0, revision: 1, definition: definition.clone(), keys: keys.clone(), since };
        blockbase_schema::Object::new(alone, [], |_| None)?;
        let objects = vec![definition.name.clone()];
        self.change_schema(caller, mode, objects, move |mut draft| {
            Box::pin(async move {
                if draft.catalogue.objects.iter().any(|object| object.definition.name == definition.name) {
                    return Err(Error::new(Code::ObjectExists, format!("The object `{}` already exists.", definition.name)));
                }
                if draft.connection.table_exists(&definition.name).await? {
                    return Err(Error::new(
                        Code::InvalidSchema,
                        format!("The database has a table `{}` that is not an object. Choose another name.", definition.name),
                    ));
                }
                draft.enter_object(definition.clone(), keys).await?;
                let entry = SchemaChange::CreateObject { object: &definition }.entry()?;
                let object = definition.name.clone();
                Ok(Edited { entry, object, outcome: Outcome::Created, fields_added: 0, about: None, answer: definition })
            })
        })
        .await
    }

    /// Changes an object's label, description, constraints and indexes.
    ///
    /// # Errors
    /// `invalid_schema`. `invalid_schema_change`, with the number of rows that break a new constraint.
    pub async fn update_object(
        &self,
        caller: &Caller,
        name: &str,
        changes: ObjectChanges,
        mode: Mode,
    ) -> Result<Change<ObjectDefinition>> {
        caller.require(Resource::Objects, Action::Update)?;
        let name = name.to_owned();
        self.change_schema(caller, mode, vec![name.clone()], move |draft| {
            Box::pin(async move {
                let object = stored(draft.catalogue, &name)?;
                let before = object.definition.clone();
                lay_over(&mut object.definition, &changes)?;
                let after = object.definition.clone();
                let entry = SchemaChange::UpdateObject { object: &name, before: &before, after: &after }.entry()?;
                Ok(Edited { entry, object: name, outcome: Outcome::Updated, fields_added: 0, about: None, answer: after })
            })
        })
        .await
    }

    /// Drops an object with its records and its own relationships. With `cascade`, it also drops the relationships of other
    /// objects that need the object, and the groups of `uniqueTogether` and `indexes` with their keys.
    ///
    /// # Errors
    /// `object_in_use` if a relationship of another object, or a condition of a role's grant on another object, needs it.
    pub async fn delete_object(&self, caller: &Caller, name: &str, cascade: bool, mode: Mode) -> Result<Change<()>> {
        caller.require(Resource::Objects, Action::Delete)?;
        check_object_name(name).map_err(|_| Error::unknown_object(name))?;
        let name = name.to_owned();
        self.change_schema(caller, mode, vec![name.clone()], move |mut draft| {
            Box::pin(async move {
                let deleted = stored(draft.catalogue, &name)?;
                let (id, definition) = (deleted.id, deleted.definition.clone());
                let needed = draft.catalogue.relationships.iter().find(|known| known.definition.is_needed_besides(&name));
                if let Some(known) = needed.filter(|_| !cascade) {
                    let known = &known.definition;
                    let message = format!(
                        "The relationship `{}` between `{}` and `{}` needs `{name}`.",
                        known.name, known.source, known.target
                    );
                    return Err(Error::new(Code::ObjectInUse, message).with_hint(Hint::Cascade));
                }
                let (gone, kept): (Vec<_>, Vec<_>) = std::mem::take(&mut draft.catalogue.relationships)
                    .into_iter()
                    .partition(|relationship| relationship.definition.involves(&name));
                draft.catalogue.relationships = kept;
                for relationship in gone {
                    // A group of columns is dropped together with any of its keys, because a smaller group would be a different
                    // rule.
                    if let Some(holder) = relationship.definition.holder().filter(|holder| **holder != name) {
                        drop_groups(
                            &mut stored(draft.catalogue, holder)?.definition,
                            &format!("{}_id", relationship.definition.name),
                        );
                    }
                    draft.forget_relationship(relationship.id).await?;
                }
                draft.remove_object(id).await?;
                let Entry { text, act } = SchemaChange::DeleteObject { object: &name, cascade }.entry()?;
                let entry = Entry { text, act: act.before(&definition) };
                let about = Some((name.clone(), None));
                Ok(Edited { entry, object: name, outcome: Outcome::Deleted { cascade }, fields_added: 0, about, answer: () })
            })
        })
        .await
    }

    /// The requested part of the schema's history, the newest change first.
    pub async fn schema_changes(&self, caller: &Caller, asked: HistoryRequest) -> Result<Vec<SchemaHistoryAnswer>> {
        caller.require(Resource::Objects, Action::Read)?;
        let (before, limit) = (asked.before.unwrap_or(i64::MAX), asked.limit.unwrap_or(i64::MAX));
        let rows = self.scan(caller, move |connection| {
            Box::pin(async move { Ok(connection.schema_changes(asked.object, before, limit).await?) })
        });
        rows.await?.into_iter().map(SchemaHistoryAnswer::of_row).collect()
    }

    /// Applies a change of the schema, or plans it. `edit` changes the catalogue. Then the tables are altered, the change and its event
    /// are stored, and the new schema is served. `objects` are the objects of the change.
    async fn change_schema<T, E>(&self, caller: &Caller, mode: Mode, objects: Vec<String>, edit: E) -> Result<Change<T>>
    where
        T: Send + 'static,
        E: Edit<T>,
    {
        if mode == Mode::Plan {
            return self.plan_schema(caller, objects, edit).await.map(Change::Planned);
        }
        let _gate = self.schema_gate.write().await;
        // Changes and readers lock tables in different orders, so one of them may have to start again.
        let answer = self.until_uncontended(|| self.try_change_schema(caller, edit.clone())).await;
        if let Err(error) = self.refresh_registry().await {
            // The change is committed. After the next comparison with the database, this instance will serve it.
            tracing::warn!(error.cause = %error, "a change of the schema is committed, but not served yet");
        }
        answer.map(Change::Applied)
    }

    async fn try_change_schema<T, E>(&self, caller: &Caller, edit: E) -> Result<T>
    where
        T: Send + 'static,
        E: Edit<T>,
    {
        let can_index = self.store.can_index_search();
        let (announcer, applied_by, applied_at) =
            (self.announcer(caller), caller.actor_id().map(str::to_owned), self.clock.now());
        let (blocks, caller) = (Arc::clone(&self.blocks.read()), caller.clone());
        let store = self.store.clone();
        let auditor = self.auditor(&caller);
        self.store
            .write_schema(self.by(&caller), move |connection| {
                Box::pin(async move {
                    let version = connection.raise_version("schema").await?;
                    let Drafted { before, next, edited } =
                        draft(connection, Mode::Apply, &caller, &blocks, edit, applied_at).await?;
                    if !matches!(edited.outcome, Outcome::Deleted { .. }) {
                        store.check_room()?;
                    }
                    let touched = apply(connection, &caller, &before, next, edited.fields_added, can_index).await?;
                    let Entry { text: change, act } = edited.entry;
                    let row = SchemaChangeRow { version, change, applied_by, applied_at };
                    connection.record_schema_change(row, touched).await?;
                    let members = ObjectMembers { object: &edited.object };
                    let topic = match edited.outcome {
                        Outcome::Created => Topic::SchemaObjectCreated(members),
                        Outcome::Updated => Topic::SchemaObjectUpdated(members),
                        Outcome::Deleted { .. } => Topic::SchemaObjectDeleted(members),
                    };
                    announcer.emit(connection, topic).await?;
                    auditor.record(connection, act).await?;
                    Ok(edited.answer)
                })
            })
            .await
    }

    /// Creates missing search indexes. An index is missing if the database is older than these indexes or than their present case
    /// folding, or if it had no pg_trgm before.
    pub(crate) async fn ensure_search_indexes(&self) -> Result<()> {
        if !self.store.can_index_search() {
            return Ok(());
        }
        let registry = self.registry();
        for object in registry.objects().filter(|object| object.is_searchable()) {
            let name = object.name();
            let object = Arc::clone(object);
            let made = self
                .store
                .write_schema(Service, move |connection| {
                    Box::pin(async move {
                        let dialect = connection.dialect();
                        let name = ddl::search_index_name(dialect, &object);
                        if connection.table_exists(&name).await? {
                            return Ok(false);
                        }
                        connection.lock_object(object.id).await?;
                        // Another instance may have created the index or altered the object meanwhile.
                        let revision = connection.objects().await?.iter().find(|row| row.id == object.id).map(|row| row.revision);
                        if revision != Some(object.revision) || connection.table_exists(&name).await? {
                            return Ok(false);
                        }
                        connection.define(ddl::drop_upper_case_index(dialect, &object)).await?;
                        for statement in ddl::create_search_index(dialect, &object) {
                            connection.define(statement).await?;
                        }
                        Ok(true)
                    })
                })
                .await?;
            if made {
                tracing::info!(object.name = name, "a search index was created");
            }
        }
        Ok(())
    }
}

/// Removes the groups of `uniqueTogether` and `indexes` that name a column.
fn drop_groups(object: &mut ObjectDefinition, column: &str) {
    let is_kept = |group: &Vec<String>| !group.iter().any(|name| name == column);
    object.constraints.unique_together.retain(is_kept);
    object.indexes.retain(is_kept);
}

/// Members of an object's definition that a PATCH of the object cannot change. It can change all others.
pub const OBJECT_MEMBERS_FIXED: [&str; 2] = ["name", "fields"];

/// Applies the members of a PATCH to a definition.
fn lay_over(object: &mut ObjectDefinition, changes: &ObjectChanges) -> Result<()> {
    let ObjectDefinition { name: _, fields: _, label, description, constraints, indexes } = object;
    for (key, raw) in &changes.0 {
        let raw = raw.get();
        match key.as_str() {
            "label" => *label = read(key, raw)?,
            "description" => *description = read(key, raw)?,
            "constraints" => *constraints = read::<Option<Constraints>>(key, raw)?.unwrap_or_default(),
            "indexes" => *indexes = read::<Option<_>>(key, raw)?.unwrap_or_default(),
            fixed if OBJECT_MEMBERS_FIXED.contains(&fixed) => {
                return Err(Error::new(
                    Code::InvalidSchemaChange,
                    format!(
                        "This request cannot change `{key}`. The name of an object is permanent, and each field is changed by a \
                         request of its own."
                    ),
                ));
            }
            _ => return Err(Error::new(Code::InvalidSchema, format!("An object has no key `{key}`.")).with_field(key.clone())),
        }
    }
    Ok(())
}

fn read<T: for<'de> Deserialize<'de>>(key: &str, raw: &str) -> Result<T> {
    json_text::strict_from_str(raw)
        .map_err(|misfit| Error::new(Code::InvalidSchema, format!("`{key}`: {misfit}.")).with_field(key))
}

fn stored<'a>(catalogue: &'a mut Catalogue, name: &str) -> Result<&'a mut StoredObject> {
    catalogue.objects.iter_mut().find(|object| object.definition.name == name).ok_or_else(|| Error::unknown_object(name))
}

/// The error for a body that does not have the form of the document that a schema operation needs.
pub(crate) fn not_a_definition(what: &str, misfit: &json_text::Misfit) -> Error {
    // Text that is not JSON is an invalid request. JSON that is not a definition is an invalid schema.
    match misfit.error.is_data() {
        true => Error::new(Code::InvalidSchema, format!("The body is not {what}: {misfit}.")),
        false => misfit.malformed(),
    }
}

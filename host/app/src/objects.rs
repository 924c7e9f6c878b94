//! The schema's operations: objects listed, created, dropped, and their history.

use blockbase_query::Action;
use blockbase_schema::{Code, Error, Object, ObjectDefinition, Result, check_object_name};
use blockbase_store::{Connection, NewEvent, ReadCost, SchemaChangeRow};
use serde_json::{Value, json};

use crate::App;
use crate::caller::Caller;
use crate::refresh::load_registry;

/// What every change of the schema leaves behind: its entry in the history, and its event.
struct SchemaChange {
    entry: Value,
    applied_by: Option<String>,
    /// Milliseconds since the epoch.
    applied_at: i64,
    event: Option<NewEvent>,
}

impl SchemaChange {
    async fn record(self, connection: &mut Connection, version: i64) -> Result<()> {
        let SchemaChange { entry, applied_by, applied_at, event } = self;
        connection.record_schema_change(SchemaChangeRow { version, change: entry.to_string(), applied_by, applied_at }).await?;
        if let Some(event) = event {
            connection.emit(event).await?;
        }
        Ok(())
    }
}

impl App {
    /// All objects, by name.
    pub fn objects(&self, caller: &Caller) -> Result<Vec<ObjectDefinition>> {
        caller.access("objects", Action::Read)?;
        Ok(self.registry().objects().map(|object| object.definition.clone()).collect())
    }

    pub fn object(&self, caller: &Caller, name: &str) -> Result<ObjectDefinition> {
        caller.access("objects", Action::Read)?;
        let registry = self.registry();
        registry.object(name).map(|object| object.definition.clone()).ok_or_else(|| Error::unknown_object(name))
    }

    /// Names of the objects whose records the caller may read.
    pub fn readable_objects(&self, caller: &Caller) -> Vec<String> {
        let registry = self.registry();
        registry.objects().map(|object| object.name().to_owned()).filter(|name| caller.may(name, Action::Read)).collect()
    }

    /// Creates an object with its table. It can be used when this answers.
    ///
    /// # Errors
    /// `invalid_schema`, `object_exists`.
    pub async fn create_object(&self, caller: &Caller, definition: ObjectDefinition) -> Result<ObjectDefinition> {
        caller.access("objects", Action::Create)?;
        let keys: Vec<u32> = (1..).take(definition.fields.len()).collect();
        // Whatever is wrong with the definition is said before anything waits for the writer.
        Object::new(0, definition.clone(), &keys)?;
        let entry = json!({ "op": "create_object", "object": definition });
        let change = self.schema_change(caller, entry, "created", &definition.name);
        let created = definition.clone();
        self.store
            .write(move |connection| {
                Box::pin(async move {
                    let version = connection.raise_version("schema").await?;
                    let registry = load_registry(connection).await?;
                    if registry.object(&definition.name).is_some() {
                        return Err(Error::new(Code::ObjectExists, format!("There is an object `{}` already.", definition.name)));
                    }
                    if connection.table_exists(&definition.name).await? {
                        return Err(Error::new(
                            Code::InvalidSchema,
                            format!("The database has a table `{}` that is not an object; choose another name.", definition.name),
                        ));
                    }
                    let text = serde_json::to_string(&definition).map_err(Error::internal)?;
                    let keys_text = serde_json::to_string(&keys).map_err(Error::internal)?;
                    let next_key = i64::try_from(keys.len()).map_err(Error::internal)? + 1;
                    let id = connection.insert_object(&definition.name, text, keys_text, next_key).await?;
                    let object = Object::new(id, definition, &keys)?;
                    for statement in connection.dialect().create_table(&object) {
                        connection.define(statement).await?;
                    }
                    change.record(connection, version).await
                })
            })
            .await?;
        self.refresh_registry().await?;
        Ok(created)
    }

    /// Drops an object with its records.
    pub async fn delete_object(&self, caller: &Caller, name: &str) -> Result<()> {
        caller.access("objects", Action::Delete)?;
        check_object_name(name).map_err(|_| Error::unknown_object(name))?;
        let name = name.to_owned();
        let entry = json!({ "op": "delete_object", "object": name });
        let change = self.schema_change(caller, entry, "deleted", &name);
        self.store
            .write(move |connection| {
                Box::pin(async move {
                    let version = connection.raise_version("schema").await?;
                    let registry = load_registry(connection).await?;
                    let object = registry.object(&name).ok_or_else(|| Error::unknown_object(&name))?;
                    // The catalogue first: it waits for the writes that hold the object, which may not have its table yet.
                    connection.delete_object(object.id).await?;
                    let drop_table = connection.dialect().drop_table(object);
                    connection.define(drop_table).await?;
                    change.record(connection, version).await
                })
            })
            .await?;
        self.refresh_registry().await
    }

    /// The schema's history, newest first.
    pub async fn schema_changes(&self, caller: &Caller) -> Result<Vec<SchemaChangeRow>> {
        caller.access("objects", Action::Read)?;
        self.store.read(ReadCost::Scan, |connection| Box::pin(async move { Ok(connection.schema_changes().await?) })).await
    }

    fn schema_change(&self, caller: &Caller, entry: Value, op: &str, name: &str) -> SchemaChange {
        let actor = caller.actor_json();
        let payload = format!(r#"{{"object":"{name}","op":"{op}","actor":{actor}}}"#);
        SchemaChange {
            entry,
            applied_by: caller.actor_id().map(str::to_owned),
            applied_at: self.clock.now(),
            event: self.platform_event(caller, format!("schema.object.{op}"), payload),
        }
    }

    /// An event that is not of a record; none where events are off.
    pub(crate) fn platform_event(&self, caller: &Caller, topic: String, payload: String) -> Option<NewEvent> {
        if !self.settings.events_enabled {
            return None;
        }
        let now = self.clock.now();
        Some(NewEvent {
            id: self.clock.id(now),
            deliveries: self.subscriptions.read().deliveries(&topic),
            topic,
            payload,
            object: None,
            record_id: None,
            owner: None,
            depth: caller.depth,
            occurred_at: now,
        })
    }
}

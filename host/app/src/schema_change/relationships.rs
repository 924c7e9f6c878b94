//! Relationships made and dropped.

use blockbase_query::Action;
use blockbase_schema::{Code, Error, Relationship, RelationshipDefinition, Result};
use serde_json::json;

use super::not_a_definition;
use crate::App;
use crate::caller::Caller;

impl App {
    /// All relationships, in the order in which they were made.
    pub fn relationships(&self, caller: &Caller) -> Result<Vec<Relationship>> {
        Ok(self.schema(caller)?.relationships)
    }

    /// Makes a relationship: a column `<name>_id` with its foreign key, or for many_to_many a table of links.
    ///
    /// # Errors
    /// `invalid_schema` naming what clashes; `invalid_schema_change` where it is required and the object has rows.
    pub async fn create_relationship(&self, caller: &Caller, body: &str) -> Result<Relationship> {
        caller.access("objects", Action::Create)?;
        let definition: RelationshipDefinition =
            serde_json::from_str(body).map_err(|error| not_a_definition("a relationship", &error))?;
        let definition = definition.checked()?;
        let entry = json!({ "op": "create_relationship", "relationship": definition });
        let change = self.schema_change(caller, entry, "updated", &definition.source);
        let text = serde_json::to_string(&definition).map_err(Error::internal)?;
        let made = definition.clone();
        self.change_schema(change, move |connection, catalogue| {
            Box::pin(async move {
                let id = connection.insert_relationship(text).await?;
                catalogue.relationships.push(Relationship { id, definition });
                Ok(0)
            })
        })
        .await?;
        let registry = self.registry();
        let relationship = registry.relationships().iter().rev().find(|relationship| relationship.definition == made);
        relationship.cloned().ok_or_else(|| Error::internal("a relationship went as soon as it was made"))
    }

    /// Drops a relationship with its column or its links.
    ///
    /// # Errors
    /// `not_found`; `invalid_schema_change` where a group of columns names its column.
    pub async fn delete_relationship(&self, caller: &Caller, id: &str) -> Result<()> {
        caller.access("objects", Action::Delete)?;
        let unknown = || Error::not_found("relationship");
        let id: i64 = id.parse().map_err(|_| unknown())?;
        let registry = self.registry();
        let relationship = registry.relationships().iter().find(|relationship| relationship.id == id).ok_or_else(unknown)?;
        let definition = &relationship.definition;
        if let Some(holder) = definition.holder().and_then(|holder| registry.object(holder)) {
            let column = format!("{}_id", definition.name);
            let groups = holder.definition.constraints.unique_together.iter().chain(&holder.definition.indexes);
            if groups.flatten().any(|name| *name == column) {
                return Err(Error::new(
                    Code::InvalidSchemaChange,
                    format!("`uniqueTogether` or `indexes` of `{}` name `{column}`; take it out of them first.", holder.name()),
                )
                .with_field(column));
            }
        }
        let entry = json!({ "op": "delete_relationship", "relationship": relationship });
        let change = self.schema_change(caller, entry, "updated", &definition.source);
        self.change_schema(change, move |connection, catalogue| {
            Box::pin(async move {
                let count = catalogue.relationships.len();
                catalogue.relationships.retain(|relationship| relationship.id != id);
                if catalogue.relationships.len() == count {
                    return Err(Error::not_found("relationship"));
                }
                connection.delete_relationship(id).await?;
                Ok(0)
            })
        })
        .await
    }
}

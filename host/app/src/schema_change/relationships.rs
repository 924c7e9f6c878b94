//! Relationships made and dropped.

use blockbase_query::Action;
use blockbase_schema::json::strict_from_str;
use blockbase_schema::{Error, Relationship, RelationshipDefinition, Result};

use super::fields::check_groups;
use super::{Edited, entry, not_a_definition, stored};
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
        caller.require("objects", Action::Create)?;
        let definition: RelationshipDefinition =
            strict_from_str(body).map_err(|misfit| not_a_definition("a relationship", &misfit))?;
        let definition = definition.checked()?;
        let text = serde_json::to_string(&definition).map_err(Error::internal)?;
        self.change_schema(caller, move |connection, catalogue| {
            Box::pin(async move {
                let id = connection.insert_relationship(text).await?;
                let relationship = Relationship { id, definition };
                catalogue.relationships.push(relationship.clone());
                let entry = entry("create_relationship", &[("relationship", &relationship)])?;
                let object = relationship.definition.source.clone();
                Ok(Edited { entry, object, op: "updated", fields_added: 0, answer: relationship })
            })
        })
        .await
    }

    /// Drops a relationship with its column or its links.
    ///
    /// # Errors
    /// `not_found`; `invalid_schema_change` where a group of columns names its column.
    pub async fn delete_relationship(&self, caller: &Caller, id: &str) -> Result<()> {
        caller.require("objects", Action::Delete)?;
        let id: i64 = id.parse().map_err(|_| Error::not_found("relationship"))?;
        self.change_schema(caller, move |connection, catalogue| {
            Box::pin(async move {
                let place = catalogue.relationships.iter().position(|relationship| relationship.id == id);
                let relationship = place.map(|place| catalogue.relationships.remove(place));
                let relationship = relationship.ok_or_else(|| Error::not_found("relationship"))?;
                let definition = &relationship.definition;
                if let Some(holder) = definition.holder() {
                    check_groups(&stored(catalogue, holder)?.definition, &format!("{}_id", definition.name))?;
                }
                connection.delete_relationship(id).await?;
                let entry = entry("delete_relationship", &[("relationship", &relationship)])?;
                let object = relationship.definition.source;
                Ok(Edited { entry, object, op: "updated", fields_added: 0, answer: () })
            })
        })
        .await
    }
}

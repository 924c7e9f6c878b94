//! Creates and drops relationships.

use blockbase_query::Action;
use blockbase_schema::json::strict_from_str;
use blockbase_schema::{Error, Relationship, RelationshipDefinition, Resource, Result};

use super::fields::check_groups;
use super::{Change, Edited, Mode, Outcome, SchemaChange, not_a_definition, stored};
use crate::App;
use crate::caller::Caller;

impl App {
    /// All relationships, in the order of their creation.
    pub fn relationships(&self, caller: &Caller) -> Result<Vec<Relationship>> {
        Ok(self.schema(caller)?.relationships)
    }

    /// Creates a relationship: a column `<name>_id` with a foreign key, or for many_to_many a table of links.
    ///
    /// # Errors
    /// `invalid_schema`, which names the conflict. `invalid_schema_change` if it is required and the object has rows.
    pub async fn create_relationship(&self, caller: &Caller, body: &str, mode: Mode) -> Result<Change<Relationship>> {
        caller.require(Resource::Objects, Action::Create)?;
        let definition: RelationshipDefinition =
            strict_from_str(body).map_err(|misfit| not_a_definition("a relationship", &misfit))?;
        let definition = definition.checked()?;
        let objects = vec![definition.source.clone(), definition.target.clone()];
        self.change_schema(caller, mode, objects, move |mut draft| {
            Box::pin(async move {
                let relationship = draft.enter_relationship(definition).await?;
                let entry = SchemaChange::CreateRelationship { relationship: &relationship }.entry()?;
                let object = relationship.definition.source.clone();
                Ok(Edited { entry, object, outcome: Outcome::Updated, fields_added: 0, about: None, answer: relationship })
            })
        })
        .await
    }

    /// Drops a relationship with its column or its links.
    ///
    /// # Errors
    /// `not_found`. `invalid_schema_change` if the column is in a group of columns.
    pub async fn delete_relationship(&self, caller: &Caller, id: &str, mode: Mode) -> Result<Change<()>> {
        caller.require(Resource::Objects, Action::Delete)?;
        let id: i64 = id.parse().map_err(|_| Error::not_found("relationship"))?;
        let registry = self.registry();
        let known = registry.relationships().iter().find(|relationship| relationship.id == id);
        let objects = known.map(|known| vec![known.definition.source.clone(), known.definition.target.clone()]);
        self.change_schema(caller, mode, objects.unwrap_or_default(), move |mut draft| {
            Box::pin(async move {
                let place = draft.catalogue.relationships.iter().position(|relationship| relationship.id == id);
                let relationship = place.map(|place| draft.catalogue.relationships.remove(place));
                let relationship = relationship.ok_or_else(|| Error::not_found("relationship"))?;
                let definition = &relationship.definition;
                let mut about = None;
                if let Some(holder) = definition.holder() {
                    let column = format!("{}_id", definition.name);
                    check_groups(&stored(draft.catalogue, holder)?.definition, &column)?;
                    about = Some((holder.to_owned(), Some(column)));
                }
                draft.forget_relationship(id).await?;
                let entry = SchemaChange::DeleteRelationship { relationship: &relationship }.entry()?;
                let object = relationship.definition.source;
                Ok(Edited { entry, object, outcome: Outcome::Updated, fields_added: 0, about, answer: () })
            })
        })
        .await
    }
}

//! Changes the tables from one catalogue to the next.

use std::collections::BTreeSet;

use blockbase_query::ddl;
use blockbase_schema::{Error, NamesSince, Object, Registry, Relationship, RelationshipKind, Result};
use blockbase_store::{Connection, ObjectRow};

use super::rows::{self, Findings, Rows};
use crate::caller::Caller;
use crate::state::refresh::Catalogue;

/// The difference between one catalogue and the next.
pub(super) struct Difference<'a> {
    before: &'a Registry,
    after: Registry,
    /// The names of the objects that exist before and after, and whose definition or relationships differ.
    changed: BTreeSet<String>,
}

impl<'a> Difference<'a> {
    /// # Errors
    /// `invalid_schema` if the catalogue contradicts itself.
    pub(super) fn between(before: &'a Registry, mut next: Catalogue) -> Result<Difference<'a>> {
        let changed = changed_objects(before, &next);
        for object in next.objects.iter_mut().filter(|object| changed.contains(&object.definition.name)) {
            object.revision += 1;
        }
        Ok(Difference { before, after: next.registry()?, changed })
    }

    /// The altered objects, before and after the change.
    pub(super) fn altered(&self) -> impl Iterator<Item = (&Object, &Object)> {
        let pair = |name: &String| Some((&**self.before.object(name)?, &**self.after.object(name)?));
        self.changed.iter().filter_map(pair)
    }

    /// The dropped objects, before the change.
    pub(super) fn dropped(&self) -> impl Iterator<Item = &Object> {
        self.before.objects().filter(|object| self.after.object(object.name()).is_none()).map(|object| &**object)
    }

    /// The dropped relationships that have links.
    pub(super) fn dropped_links(&self) -> impl Iterator<Item = &Relationship> {
        let is_kept = |gone: &Relationship| self.after.relationships().iter().any(|kept| kept.id == gone.id);
        self.before.relationships().iter().filter(move |known| is_link(known.definition.kind) && !is_kept(known))
    }

    fn made(&self) -> impl Iterator<Item = &Object> {
        self.after.objects().filter(|object| self.before.object(object.name()).is_none()).map(|object| &**object)
    }

    fn made_links(&self) -> impl Iterator<Item = &Relationship> {
        let is_known = |new: &Relationship| self.before.relationships().iter().any(|known| known.id == new.id);
        self.after.relationships().iter().filter(move |new| is_link(new.definition.kind) && !is_known(new))
    }

    /// The names of all objects that the change touches.
    fn touched(&self) -> BTreeSet<String> {
        let others = self.dropped().chain(self.made()).map(|object| object.name().to_owned());
        self.changed.iter().cloned().chain(others).collect()
    }
}

/// Changes the tables from `before` to the catalogue `next`, and stores the changed objects. New objects and relationships are already
/// stored. Returns the names of the objects that it touched.
///
/// # Errors
/// `invalid_schema` if the catalogue contradicts itself, `invalid_schema_change` if rows break one of its rules. `forbidden` if
/// the change has to look at rows that the caller may not read.
pub(super) async fn apply(
    connection: &mut Connection,
    caller: &Caller,
    before: &Registry,
    next: Catalogue,
    fields_added: i64,
    can_index: bool,
) -> Result<BTreeSet<String>> {
    let difference = Difference::between(before, next)?;
    lock(connection, &difference).await?;
    // All writers of these objects have ended. So their events up to this number have the old names, and all later ones the new.
    let last_event = connection.last_event_seq().await?;
    let dialect = connection.dialect();
    for relationship in difference.dropped_links() {
        connection.define(ddl::drop_link_table(relationship.id)).await?;
    }
    for (old, new) in difference.altered() {
        alter(connection, caller, old, new, can_index).await?;
        let relations = [before, &difference.after].map(|registry| registry.relations_of(new.name()));
        let since = NamesSince::changed((old, relations[0]), (new, relations[1]), last_event);
        let row = ObjectRow {
            id: new.id,
            revision: new.revision,
            definition: serde_json::to_string(&new.definition).map_err(Error::internal)?,
            field_keys: serde_json::to_string(&new.keys).map_err(Error::internal)?,
            names_since: serde_json::to_string(&since).map_err(Error::internal)?,
        };
        connection.update_object(row, fields_added).await?;
    }
    for object in difference.dropped() {
        for statement in ddl::drop_search_index(dialect, object) {
            connection.define(statement).await?;
        }
        connection.define(ddl::drop_table(object)).await?;
    }
    for object in difference.made() {
        for statement in ddl::create_table(dialect, object) {
            connection.define(statement).await?;
        }
        index_search(connection, object, can_index).await?;
    }
    for relationship in difference.made_links() {
        for statement in ddl::create_link_table(dialect, relationship) {
            connection.define(statement).await?;
        }
    }
    Ok(difference.touched())
}

pub(super) fn is_link(kind: RelationshipKind) -> bool {
    kind == RelationshipKind::ManyToMany
}

/// The names of the objects that exist before and after, and whose definition or relationships differ.
fn changed_objects(before: &Registry, next: &Catalogue) -> BTreeSet<String> {
    let mut changed = BTreeSet::new();
    for object in &next.objects {
        if before.object(&object.definition.name).is_some_and(|old| old.definition != object.definition) {
            changed.insert(object.definition.name.clone());
        }
    }
    let gone = before.relationships().iter().filter(|known| !next.relationships.contains(known));
    let new = next.relationships.iter().filter(|known| !before.relationships().contains(known));
    for relationship in gone.chain(new) {
        for name in [&relationship.definition.source, &relationship.definition.target] {
            if before.object(name).is_some() && next.objects.iter().any(|object| object.definition.name == *name) {
                changed.insert(name.clone());
            }
        }
    }
    changed
}

/// Locks the altered and dropped tables in a fixed order.
async fn lock(connection: &mut Connection, difference: &Difference<'_>) -> Result<()> {
    let altered = difference.altered().map(|(old, _)| old);
    let mut ids: Vec<i64> = altered.chain(difference.dropped()).map(|object| object.id).collect();
    ids.sort_unstable();
    for id in ids {
        connection.lock_object(id).await?;
    }
    Ok(())
}

async fn alter(connection: &mut Connection, caller: &Caller, old: &Object, new: &Object, can_index: bool) -> Result<()> {
    rows::check(&mut Rows { connection, caller, object: old }, new, &mut Findings::Refuse).await?;
    let dialect = connection.dialect();
    let converted = rows::convert(connection, old, new).await?;
    let alteration = ddl::alter_table(dialect, old, new, converted.as_deref());
    if alteration.moves_search {
        for statement in ddl::drop_search_index(dialect, old) {
            connection.define(statement).await?;
        }
    }
    for statement in alteration.statements {
        connection.define(statement).await?;
    }
    if alteration.moves_search {
        index_search(connection, new, can_index).await?;
    }
    Ok(())
}

async fn index_search(connection: &mut Connection, object: &Object, can_index: bool) -> Result<()> {
    if can_index {
        for statement in ddl::create_search_index(connection.dialect(), object) {
            connection.define(statement).await?;
        }
    }
    Ok(())
}

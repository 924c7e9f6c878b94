//! Plans a change of the schema without applying it.
//!
//! A plan runs the same edit of the catalogue as the change, compares the same two registries, and checks the rows in the same
//! way. It runs in a read, so it blocks no other work and changes nothing.

use std::sync::Arc;

use blockbase_schema::{Object, Registry, Result};
use blockbase_store::{Connection, Cost, DbError, Read};
use schemars::JsonSchema;
use serde::Serialize;

use super::apply::{Difference, is_link};
use super::dependents::{Dependent, Dependents};
use super::rows::{self, Broken, Findings, Rows};
use super::{Drafted, Edit, Mode, draft};
use crate::App;
use crate::caller::Caller;
use crate::state::refresh::Catalogue;

/// The effects that a change of the schema would have.
#[derive(Clone, Debug, Default, Serialize, JsonSchema)]
#[schemars(rename = "SvcChangePlan", deny_unknown_fields)]
pub struct ChangePlan {
    /// Whether the change removes a table, a column or links, even if they are empty.
    pub destructive: bool,
    /// The sum of the rows in `lost`.
    pub rows: i64,
    pub lost: Vec<Lost>,
    /// The new rules that stored rows break. If there are any, the change is refused.
    pub breaking: Vec<Broken>,
    pub dependents: Vec<Dependent>,
    /// The number of dependents that the caller may not read.
    pub hidden: usize,
}

/// Data that a change removes.
#[derive(Clone, Debug, Serialize, JsonSchema)]
#[schemars(inline, deny_unknown_fields)]
pub struct Lost {
    pub what: LostKind,
    pub object: String,
    /// The column whose values are lost, or the relationship whose links are lost.
    pub name: Option<String>,
    pub rows: i64,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
#[schemars(inline)]
pub enum LostKind {
    Records,
    Values,
    Links,
}

impl App {
    /// Plans a change of these objects.
    ///
    /// # Errors
    /// The errors of the change, except for rows that break a rule, because the plan lists those. `forbidden` if the plan has to read
    /// rows that the caller may not read.
    pub(super) async fn plan_schema<T, E>(&self, caller: &Caller, objects: Vec<String>, edit: E) -> Result<ChangePlan>
    where
        T: Send + 'static,
        E: Edit<T>,
    {
        let objects = &objects;
        self.on_schema(caller, |registry| {
            let (edit, asker, caller, blocks) = (edit.clone(), caller, caller.clone(), Arc::clone(&self.blocks.read()));
            async move {
                let (schema, now) = (registry.version, self.clock.now());
                let read = Read { schema, cost: Cost::Scan, tables_of_one_moment: Some(tables(&registry, objects)) };
                self.read_metered(asker, read, move |connection| {
                    let (edit, caller, blocks) = (edit.clone(), caller.clone(), Arc::clone(&blocks));
                    Box::pin(async move {
                        let Drafted { before, next, edited } = draft(connection, Mode::Plan, &caller, &blocks, edit, now).await?;
                        if before.version != schema {
                            return Err(DbError::SchemaMoved("the schema has changed since the plan began".into()).into());
                        }
                        let mut plan = ask(connection, &caller, &before, next).await?;
                        if let Some((object, field)) = edited.about {
                            let blocks = blocks.values();
                            let found = Dependents::of(&before, &object, field.as_deref());
                            (plan.dependents, plan.hidden) = found.collect(connection, &caller, blocks).await?;
                        }
                        Ok(plan)
                    })
                })
                .await
            }
        })
        .await
    }
}

/// The tables that a plan about these objects may read: their own, those of related objects, and those of the links between them.
fn tables(registry: &Registry, objects: &[String]) -> Vec<String> {
    let mut tables: Vec<String> = objects.iter().filter(|name| registry.object(name).is_some()).cloned().collect();
    for relationship in registry.relationships() {
        let definition = &relationship.definition;
        if !objects.iter().any(|name| definition.involves(name)) {
            continue;
        }
        tables.extend([definition.source.clone(), definition.target.clone()]);
        if is_link(definition.kind) {
            tables.push(blockbase_query::ddl::link_table(relationship.id));
        }
    }
    tables
}

/// Finds the rules that rows would break, and the data that the change would remove.
async fn ask(connection: &mut Connection, caller: &Caller, before: &Registry, next: Catalogue) -> Result<ChangePlan> {
    let difference = Difference::between(before, next)?;
    let mut findings = Findings::Collect(Vec::new());
    for (old, new) in difference.altered() {
        rows::check(&mut Rows { connection, caller, object: old }, new, &mut findings).await?;
    }
    let mut lost = Vec::new();
    for object in difference.dropped() {
        let rows = Rows { connection, caller, object }.count().await?;
        lost.push(Lost { what: LostKind::Records, object: object.name().to_owned(), name: None, rows });
    }
    for (old, new) in difference.altered() {
        for column in dropped_columns(old, new) {
            let rows = Rows { connection, caller, object: old }.values(column).await?;
            let name = Some(column.name.clone());
            lost.push(Lost { what: LostKind::Values, object: old.name().to_owned(), name, rows });
        }
    }
    for relationship in difference.dropped_links() {
        let definition = &relationship.definition;
        let sides = [&definition.source, &definition.target].map(|name| before.object(name));
        let rows = rows::links(connection, caller, sides.into_iter().flatten(), relationship.id).await?;
        let name = Some(definition.name.clone());
        lost.push(Lost { what: LostKind::Links, object: definition.source.clone(), name, rows });
    }
    Ok(ChangePlan {
        destructive: !lost.is_empty(),
        rows: lost.iter().map(|lost| lost.rows).sum(),
        lost,
        breaking: findings.collected(),
        ..ChangePlan::default()
    })
}

fn dropped_columns<'a>(old: &'a Object, new: &'a Object) -> impl Iterator<Item = &'a blockbase_schema::Column> {
    // If the type of a field changes, the field loses no values, because the change is refused if the field has values.
    let replaced: Vec<String> = rows::replaced(old, new).map(|(before, _)| before.catalogue_key()).collect();
    old.columns.iter().filter(move |column| new.same_column(column).is_none() && !replaced.contains(&column.catalogue_key()))
}

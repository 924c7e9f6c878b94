//! Names of related records in an export: a unique field of the related object, which is written instead of its ids.

use std::sync::Arc;

use blockbase_schema::{Column, Error, Object, Registry, Relation, RelationShape, Result};

use super::ListPlan;
use crate::access::{Access, Scope};
use crate::limits::NAMES_MAX;
use crate::predicate::column_index;

/// A foreign key that an export writes as a unique field of the related record. If the caller may not see the record, or if the
/// field of the record is null, the export writes the id.
#[derive(Clone, Debug)]
pub struct NamePlan {
    /// The name of the column in the file, such as `company.name`.
    pub path: String,
    /// The related object.
    pub object: Arc<Object>,
    /// The related records that the caller may see.
    pub(crate) scope: Scope,
    /// The index of the foreign key in the object of the list.
    pub key: usize,
    /// The index of the unique field in the related object.
    pub(crate) field: usize,
}

impl NamePlan {
    /// The unique field.
    pub fn column(&self) -> &Column {
        &self.object.columns[self.field]
    }
}

/// Plans the names of related records for an export, from pairs of a relation key and a field. `decide` returns the access to the
/// records that each relation leads to. As with `expand`, a requested name is shown even if `select` does not name its column.
///
/// # Errors
/// `invalid_request` for more than [`NAMES_MAX`], for a key that does not lead to a single record and for a field that is not
/// unique; `unknown_field`; the error of `decide` for an object that the caller may not read.
pub fn names(
    registry: &Registry,
    list: &mut ListPlan,
    asked: &[(String, String)],
    decide: &dyn Fn(&Relation) -> Result<Access>,
) -> Result<Vec<NamePlan>> {
    if asked.len() > NAMES_MAX {
        return Err(Error::invalid_request(format!("`names` takes {NAMES_MAX} fields of related records at most.")));
    }
    let mut plans: Vec<NamePlan> = Vec::with_capacity(asked.len());
    for (key, field) in asked {
        let plan = name(registry, &list.object, key, field, decide)?;
        if plans.iter().all(|known| known.path != plan.path) {
            plans.push(plan);
        }
    }
    list.columns.extend(plans.iter().map(|plan| plan.key));
    list.columns.sort_unstable();
    list.columns.dedup();
    Ok(plans)
}

fn name(
    registry: &Registry,
    of: &Object,
    relation_key: &str,
    field: &str,
    decide: &dyn Fn(&Relation) -> Result<Access>,
) -> Result<NamePlan> {
    let relation = registry.relation(of.name(), relation_key);
    let Some((relation, key)) = relation.and_then(|relation| match relation.shape {
        RelationShape::Forward { column } => Some((relation, column)),
        RelationShape::Reverse { .. } | RelationShape::Linked { .. } => None,
    }) else {
        let forward = |shape| matches!(shape, RelationShape::Forward { .. });
        let relations = registry.relations_of(of.name()).iter().filter(|relation| forward(relation.shape));
        let keys: Vec<&str> = relations.map(|relation| relation.key.as_str()).collect();
        let known = if keys.is_empty() { "none".to_owned() } else { keys.join(", ") };
        let message =
            format!("`names` needs a relation key that leads to one record. `{}` has {known}, not {relation_key:?}.", of.name());
        return Err(Error::invalid_request(message));
    };
    let access = decide(relation)?;
    let object = registry.object(&relation.related).ok_or_else(|| Error::unknown_object(&relation.related))?;
    let field = column_index(object, field)?;
    let column = &object.columns[field];
    if !column.names_record() {
        let unique: Vec<&str> =
            object.columns.iter().filter(|column| column.names_record()).map(|column| column.name.as_str()).collect();
        let known = if unique.is_empty() { "none".to_owned() } else { unique.join(", ") };
        let message = format!(
            "`{}` of `{}` cannot name a record: that takes a unique field. Unique fields: {known}.",
            column.name,
            object.name()
        );
        return Err(Error::invalid_request(message).with_field(&column.name));
    }
    Ok(NamePlan {
        path: format!("{relation_key}.{}", column.name),
        object: Arc::clone(object),
        scope: access.scope().clone(),
        key,
        field,
    })
}

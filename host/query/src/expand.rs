//! The related records that a request includes: relation keys, each with the keys below it and its own access decision.

use std::sync::Arc;

use blockbase_schema::{Error, Object, Registry, Relation, RelationShape, Result, system};

use crate::access::{Access, Scope};
use crate::limits::{EXPAND_KEYS_MAX, EXPAND_LEVELS_MAX, EXPAND_PATHS_MAX};
use crate::predicate::column_index;

/// The maximum number of unknown keys that are reported for one request.
const UNKNOWN_MAX: usize = 50;

/// A relation key whose records are requested, with the keys below it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Related {
    pub key: String,
    /// The fields that the related records show. `None` for all fields.
    pub select: Option<Vec<String>>,
    pub related: Vec<Related>,
}

/// Reads comma-separated relation keys, dotted for more levels.
///
/// # Errors
/// `invalid_request` for a path of more than three levels, and for more paths than [`EXPAND_PATHS_MAX`].
pub fn expand_paths(text: &str) -> Result<Vec<Related>> {
    let mut tree = Vec::new();
    for (number, path) in text.split(',').map(str::trim).filter(|path| !path.is_empty()).enumerate() {
        if number >= EXPAND_PATHS_MAX {
            return Err(Error::invalid_request(format!("`expand` takes {EXPAND_PATHS_MAX} paths at most.")));
        }
        if path.split('.').nth(EXPAND_LEVELS_MAX).is_some() {
            return Err(Error::invalid_request(format!(
                "`expand` goes {EXPAND_LEVELS_MAX} levels deep at most; {path:?} goes deeper."
            )));
        }
        let mut level: &mut Vec<Related> = &mut tree;
        for key in path.split('.') {
            let place = level.iter().position(|known| known.key == key).unwrap_or_else(|| {
                level.push(Related { key: key.to_owned(), ..Related::default() });
                level.len() - 1
            });
            level = &mut level[place].related;
        }
    }
    Ok(tree)
}

/// The plan of one relation key, with the keys below it.
#[derive(Clone, Debug)]
pub struct ExpandPlan {
    pub key: String,
    /// The related object.
    pub object: Arc<Object>,
    pub scope: Scope,
    pub shape: RelationShape,
    /// For links that cannot be read in every row: the object on this side, and its rows whose links can be read.
    pub near: Option<(Arc<Object>, Scope)>,
    /// The columns that the related records show.
    pub columns: Vec<usize>,
    /// Columns that are read but not shown. They are needed to connect the records with the records of the level above and the
    /// level below.
    pub hidden: Vec<usize>,
    pub children: Vec<ExpandPlan>,
}

/// The access that a caller has by a relation key. `None` if the caller must not know the key.
pub type Decide<'a> = dyn Fn(&Relation, &Related) -> Result<Option<Access>> + 'a;

/// Plans `related` for the records of `object`. Unknown keys are ignored. Keys that the caller must not know count as unknown.
/// [`unknown_paths`] lists them.
///
/// # Errors
/// `invalid_request` for more keys than the bound, `unknown_field`, and the error of `decide` for an object that the caller may
/// not read.
pub fn plan(registry: &Registry, object: &str, related: &[Related], decide: &Decide<'_>) -> Result<Vec<ExpandPlan>> {
    let mut keys = 0;
    level(registry, object, related, decide, &mut keys)
}

fn level(
    registry: &Registry,
    object: &str,
    related: &[Related],
    decide: &Decide<'_>,
    keys: &mut usize,
) -> Result<Vec<ExpandPlan>> {
    let mut plans = Vec::with_capacity(related.len());
    for asked in related {
        let Some(relation) = registry.relation(object, &asked.key) else { continue };
        let Some(access) = decide(relation, asked)? else { continue };
        let Some(related) = registry.object(&relation.related) else { continue };
        *keys += 1;
        if *keys > EXPAND_KEYS_MAX {
            return Err(Error::invalid_request(format!("A request can expand {EXPAND_KEYS_MAX} relation keys at most.")));
        }
        let children = level(registry, related.name(), &asked.related, decide, keys)?;
        let columns = match &asked.select {
            None => (0..related.columns.len()).collect(),
            Some(names) => selected(related, names)?,
        };
        plans.push(ExpandPlan {
            key: relation.key.clone(),
            scope: access.scope().clone(),
            shape: relation.shape,
            near: None,
            hidden: hidden(related, relation.shape, &columns, &children)?,
            columns,
            children,
            object: Arc::clone(related),
        });
    }
    Ok(plans)
}

/// The paths of `related` whose last key is not a relation of the object before it, each with that object. Keys below an unknown
/// key are not listed. `is_shown` tells whether the caller may know a relation. If there are too many paths, the result has only
/// the first ones.
pub fn unknown_paths(
    registry: &Registry,
    object: &str,
    related: &[Related],
    is_shown: &dyn Fn(&Relation) -> bool,
) -> Vec<(String, String)> {
    let mut unknown = Vec::new();
    collect_unknown(registry, (object, ""), related, is_shown, &mut unknown);
    unknown
}

/// `above` is the path that leads to `object`.
fn collect_unknown(
    registry: &Registry,
    (object, above): (&str, &str),
    related: &[Related],
    is_shown: &dyn Fn(&Relation) -> bool,
    unknown: &mut Vec<(String, String)>,
) {
    for asked in related {
        let path = format!("{above}{}", asked.key);
        match registry.relation(object, &asked.key).filter(|relation| is_shown(relation)) {
            Some(relation) => {
                let below = (relation.related.as_str(), format!("{path}."));
                collect_unknown(registry, (below.0, &below.1), &asked.related, is_shown, unknown);
            }
            None if unknown.len() < UNKNOWN_MAX => unknown.push((path, object.to_owned())),
            None => return,
        }
    }
}

/// The named columns, and `id`, which a projection always contains.
pub(crate) fn selected(object: &Object, names: &[String]) -> Result<Vec<usize>> {
    let mut columns = vec![column_index(object, system::ID)?];
    for name in names {
        columns.push(column_index(object, name)?);
    }
    columns.sort_unstable();
    columns.dedup();
    Ok(columns)
}

/// The columns with which related records, and the records of the next level, are found. Columns that are shown anyway are left
/// out.
fn hidden(object: &Object, shape: RelationShape, shown: &[usize], children: &[ExpandPlan]) -> Result<Vec<usize>> {
    let own = match shape {
        RelationShape::Reverse { column, .. } => Some(column),
        RelationShape::Forward { .. } | RelationShape::Linked { .. } => None,
    };
    let below = children.iter().filter_map(|child| match child.shape {
        RelationShape::Forward { column } => Some(column),
        RelationShape::Reverse { .. } | RelationShape::Linked { .. } => None,
    });
    let mut hidden = vec![column_index(object, system::ID)?];
    hidden.extend(own.into_iter().chain(below));
    hidden.retain(|column| !shown.contains(column));
    hidden.sort_unstable();
    hidden.dedup();
    Ok(hidden)
}

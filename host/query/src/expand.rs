//! Which related records come along: relation keys, dotted for more levels, each with its own access decision.

use std::sync::Arc;

use blockbase_schema::{Error, Object, Registry, RelationShape, Result};

use crate::access::{Access, Scope};

/// Levels of a dotted path.
pub const LEVELS_MAX: usize = 3;
/// Most relation keys of one request, over all levels.
const KEYS_MAX: usize = 50;
/// Most related records that one key brings, for all records of a page together.
pub const RECORDS_MAX: usize = 10_000;

/// One relation key, with those below it.
#[derive(Clone, Debug)]
pub struct ExpandPlan {
    pub key: String,
    /// The related object.
    pub object: Arc<Object>,
    pub scope: Scope,
    pub shape: RelationShape,
    pub children: Vec<ExpandPlan>,
}

/// Finds out what `paths` (dotted relation keys) mean for the records of `object`. Keys that are none are ignored.
///
/// # Errors
/// `invalid_request` for paths past the bounds; whatever `decide` says of an object that the caller may not read.
pub fn plan(
    registry: &Registry,
    object: &str,
    paths: &[String],
    decide: &dyn Fn(&str) -> Result<Access>,
) -> Result<Vec<ExpandPlan>> {
    let mut plans = Vec::new();
    let mut keys = 0;
    for path in paths {
        let steps: Vec<&str> = path.split('.').collect();
        if steps.len() > LEVELS_MAX {
            return Err(Error::invalid_request(format!("`expand` goes {LEVELS_MAX} levels deep at most; {path:?} goes deeper.")));
        }
        add(registry, object, &steps, decide, &mut plans, &mut keys)?;
        if keys > KEYS_MAX {
            return Err(Error::invalid_request(format!("`expand` takes {KEYS_MAX} relation keys at most.")));
        }
    }
    Ok(plans)
}

fn add(
    registry: &Registry,
    object: &str,
    steps: &[&str],
    decide: &dyn Fn(&str) -> Result<Access>,
    plans: &mut Vec<ExpandPlan>,
    keys: &mut usize,
) -> Result<()> {
    let Some((key, rest)) = steps.split_first() else { return Ok(()) };
    let Some(relation) = registry.relation(object, key) else { return Ok(()) };
    let place = match plans.iter().position(|plan| plan.key == *key) {
        Some(place) => place,
        None => {
            let access = decide(&relation.related)?;
            let Some(related) = registry.object(&relation.related) else { return Ok(()) };
            *keys += 1;
            plans.push(ExpandPlan {
                key: relation.key.clone(),
                object: Arc::clone(related),
                scope: access.scope().clone(),
                shape: relation.shape,
                children: Vec::new(),
            });
            plans.len() - 1
        }
    };
    add(registry, &relation.related, rest, decide, &mut plans[place].children, keys)
}

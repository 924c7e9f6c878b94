//! Aggregates: functions over the rows that a list with the same filters would count, all together or in groups.

mod computed;
mod function;
mod groups;
mod request;

use std::sync::Arc;

use blockbase_schema::{Error, Object, Result};

use crate::access::{Access, Reading};
use crate::plan::Selection;

pub use computed::Computed;
pub use function::Function;
use groups::GroupsRequest;
pub use groups::{GroupField, GroupsPlan};
use request::Resolved;
pub use request::{AggregateRequest, Call, Named, names};

/// An aggregate that was checked against the schema.
#[derive(Clone, Debug)]
pub enum AggregatePlan {
    /// One function over all records of the selection.
    One(OnePlan),
    Groups(GroupsPlan),
}

/// One function over all records of a selection.
#[derive(Clone, Debug)]
pub struct OnePlan {
    pub object: Arc<Object>,
    pub selection: Selection,
    pub computed: Computed,
}

impl AggregatePlan {
    /// # Errors
    /// `unknown_field`, `invalid_value` or `invalid_request` with the mistake.
    pub fn new(
        object: &Arc<Object>,
        access: &Access,
        request: &AggregateRequest,
        reading: &Reading<'_>,
    ) -> Result<AggregatePlan> {
        let AggregateRequest { calls, group_by, has_groups, list, .. } = request;
        let Resolved { filters, having, zone } = request.resolve(object)?;
        let computed = calls.iter().map(|call| Computed::new(object, call, *has_groups)).collect::<Result<Vec<_>>>()?;
        let selection = Selection::new(object, access, list.search.clone(), &filters, &list.wheres, reading)?;
        if let ([computed], false) = (computed.as_slice(), has_groups) {
            for (name, value) in [(names::HAVING, having), (names::ZONE, zone)] {
                if value.is_some() {
                    let message = format!("`{name}` is for groups. Add a field to group by, or a second function.");
                    return Err(Error::invalid_request(message).with_field(name));
                }
            }
            return Ok(AggregatePlan::One(OnePlan { object: Arc::clone(object), selection, computed: *computed }));
        }
        let functions = calls.iter().map(Call::key).zip(computed).collect();
        let request = GroupsRequest { group_by, functions, having, zone, list };
        Ok(AggregatePlan::Groups(GroupsPlan::new(object, selection, request, reading)?))
    }

    /// Whether the aggregate searches through complete texts, or compares the texts of all records to make groups.
    pub fn reads_texts(&self) -> bool {
        match self {
            AggregatePlan::One(plan) => plan.selection.reads_texts(),
            AggregatePlan::Groups(plan) => plan.reads_texts(),
        }
    }
}

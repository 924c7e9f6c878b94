//! The access that every plan needs, and the grants and decisions that lead to it.

mod clause;
mod compiled;
mod fields;
mod grant;
mod of_version;
mod permissions;
mod policy;
pub(crate) mod reading;
mod rules;

use std::sync::Arc;

pub use blockbase_schema::Action;
use blockbase_schema::{Code, Error, Object, Relation, Result};

use clause::number_of;
pub use clause::{Clause, number_of_column};
pub use compiled::Compiled;
use fields::Lists;
pub use fields::{FieldList, Fields, Known, KnownObjects, Shapes};
pub use grant::{Grant, RowPolicy};
pub use permissions::Permissions;
pub use reading::{Bounds, Reading, Where, read as read_condition};
pub use rules::{Decision, Demand, GrantContext, Owners, Rule};

pub use crate::condition::{Scope, Seen};

/// Proof that a caller may do one action on one resource, and on which rows. It can only be made from a decision of
/// [`Permissions::decide`].
#[derive(Clone, Debug, PartialEq)]
pub struct Access {
    scope: Scope,
    checks: Option<Arc<[Check]>>,
    /// For a write: a named field that some of the grants do not allow to write, and the indexes of the grants that allow all
    /// named fields.
    contested: Option<(String, Vec<usize>)>,
    /// For a write: the fields whose values the write reads, each with the rows in which the caller may read it.
    reads: Vec<(String, Scope)>,
}

impl Access {
    fn new(scope: Scope, checks: Option<Arc<[Check]>>) -> Access {
        Access { scope, checks, contested: None, reads: Vec::new() }
    }

    pub fn scope(&self) -> &Scope {
        &self.scope
    }

    /// The object as a reader with this access knows it. `None` if they know the complete object.
    pub fn seen(&self) -> Option<&Arc<Seen>> {
        match &self.scope {
            Scope::Seen(seen) => Some(seen),
            Scope::All | Scope::Own(_) | Scope::Where(_) | Scope::Nothing => None,
        }
    }

    /// The same access, for a write that names these columns of `object`. Only grants that allow all of these columns count.
    ///
    /// # Errors
    /// `forbidden` with `field` if no grant allows all of them.
    pub fn naming<'c>(&self, object: &Object, columns: impl IntoIterator<Item = &'c str>) -> Result<Access> {
        let columns = columns.into_iter().filter_map(|name| object.column(name)).filter(|column| !column.is_system);
        self.allowing(columns.map(|column| (column.name.as_str(), number_of_column(object, column))))
    }

    /// The same access, for a change of links.
    ///
    /// # Errors
    /// `forbidden` with `field` if no grant allows it.
    pub fn linking(&self, relation: &Relation) -> Result<Access> {
        self.allowing(std::iter::once((relation.key.as_str(), number_of(relation))))
    }

    fn allowing<'n>(&self, named: impl Iterator<Item = (&'n str, String)>) -> Result<Access> {
        let Some(checks) = self.checks.as_ref().filter(|checks| !checks.iter().all(|check| check.write.is_all())) else {
            return Ok(self.clone());
        };
        let named: Vec<(&str, String)> = named.collect();
        let refused = |check: &Check| named.iter().find(|(_, number)| !check.write.list(number));
        let places: Vec<usize> = (0..checks.len()).filter(|place| refused(&checks[*place]).is_none()).collect();
        if places.len() == checks.len() {
            return Ok(self.clone());
        }
        // If no grant allows a certain field, the error names that field.
        let by_none = named.iter().find(|(_, number)| !checks.iter().any(|check| check.write.list(number)));
        let contested = by_none.or_else(|| checks.iter().find_map(refused));
        let contested = contested.map_or(String::new(), |(name, _)| (*name).to_owned());
        if places.is_empty() {
            return Err(not_writable(&contested));
        }
        let allowing: Vec<Check> = places.iter().map(|place| checks[*place].clone()).collect();
        Ok(Access { checks: Some(allowing.into()), contested: Some((contested, places)), ..self.clone() })
    }

    /// The indexes of the grants that allow the write. `None` if all of them do. If the same grants allow two writes, the result
    /// is equal.
    pub fn allowed_by(&self) -> Option<&[usize]> {
        self.contested.as_ref().map(|(_, places)| places.as_slice())
    }

    /// The same access, for a write that reads the values of columns. `reader` is the access for reading the records.
    ///
    /// # Errors
    /// `forbidden` with `field` for a column that the caller does not know.
    pub fn reading<'c>(self, reader: &Access, columns: impl IntoIterator<Item = &'c str>) -> Result<Access> {
        let rows = |name: &str| match reader.scope() {
            Scope::Seen(seen) => seen.rows_with(name).map(|rows| (name.to_owned(), rows)).ok_or_else(|| not_readable(name)),
            rows => Ok((name.to_owned(), rows.clone())),
        };
        if matches!(reader.scope(), Scope::All) {
            return Ok(self);
        }
        let reads = columns.into_iter().map(rows).collect::<Result<Vec<_>>>()?;
        Ok(Access { reads, ..self })
    }

    /// The fields whose values the write reads, each with the rows in which the caller may read it.
    pub fn reads(&self) -> &[(String, Scope)] {
        &self.reads
    }

    /// A field that the write sets and some of the grants do not allow. In that case the scope may include rows that no check
    /// includes.
    pub fn contested(&self) -> Option<&str> {
        self.contested.as_ref().map(|(field, _)| field.as_str())
    }

    /// The checks of the grants. At the end of a call, or before the call writes the row again, each written row has to meet one of
    /// these checks, whose grant included the row before the write. `None` if no write within the scope can be refused.
    pub fn checks(&self) -> Option<&Arc<[Check]>> {
        self.checks.as_ref()
    }

    /// The only actor whose entries the access includes. `None` if it includes those of every actor. It is for resources to which
    /// conditions do not apply.
    pub fn only(&self) -> Option<&str> {
        match &self.scope {
            Scope::All => None,
            Scope::Own(actor) => Some(actor),
            // Nobody has this id.
            Scope::Nothing | Scope::Where(_) | Scope::Seen(_) => Some(""),
        }
    }

    /// The same access, but only with the rows that `other` includes too.
    pub fn within(&self, other: &Access, object: &Object) -> Access {
        Access { scope: self.scope.and(&other.scope, object), ..self.clone() }
    }

    /// Adds the objects whose rows have to be read for the decision.
    pub fn objects_into(&self, objects: &mut Vec<Arc<Object>>) {
        self.objects_before_into(objects);
        for check in self.checks.iter().flat_map(|checks| checks.iter()) {
            check.leaves.objects_into(objects);
        }
    }

    /// Adds the objects whose rows decide which rows a write may change. Those that only decide what it may leave are not added.
    pub fn objects_before_into(&self, objects: &mut Vec<Arc<Object>>) {
        self.scope.objects_into(objects);
        for check in self.checks.iter().flat_map(|checks| checks.iter()) {
            check.reached.objects_into(objects);
        }
        self.reads.iter().for_each(|(_, rows)| rows.objects_into(objects));
    }
}

/// The rows that one grant includes, and its `check`: the condition that a changed row has to meet at the end of the call.
#[derive(Clone, Debug, PartialEq)]
pub struct Check {
    pub reached: Scope,
    pub leaves: Scope,
    /// The fields that the grant allows to write.
    write: Lists,
}

/// The refusal to read a field.
pub fn not_readable(field: &str) -> Error {
    Error::new(Code::Forbidden, format!("You may not read `{field}` of this record.")).with_field(field)
}

/// The refusal to write a field.
pub fn not_writable(field: &str) -> Error {
    Error::new(Code::Forbidden, format!("You may not write `{field}` of this record.")).with_field(field)
}

//! The rows that a caller reaches, and the cells of these rows that they can read.

use std::sync::Arc;

use blockbase_schema::{Object, RelationShape, Value, system};

use super::Condition;
use crate::predicate::{Comparison, Predicate, Test};

/// The rows that a decision includes.
#[derive(Clone, Debug, PartialEq)]
pub enum Scope {
    /// Every row.
    All,
    /// Rows whose `created_by` is this actor.
    Own(String),
    /// Rows that meet a condition.
    Where(Arc<Condition>),
    /// No row, for example if a grant is for own rows and no actor could own one.
    Nothing,
    /// Rows in which some cells cannot be read.
    Seen(Arc<Seen>),
}

impl Scope {
    pub(crate) fn of(condition: Condition, object: &Object) -> Scope {
        match &condition {
            condition if condition.is_true() => Scope::All,
            condition if condition.is_false() => Scope::Nothing,
            Condition::Test(Predicate { column, test: Test::Compare(Comparison::Equal, Value::Text(actor)) })
                if Some(*column) == object.column_index(system::CREATED_BY) =>
            {
                Scope::Own(actor.clone())
            }
            _ => Scope::Where(Arc::new(condition)),
        }
    }

    /// The same rows, but with every cell readable.
    pub fn rows(&self) -> &Scope {
        match self {
            Scope::Seen(seen) => &seen.rows,
            Scope::All | Scope::Own(_) | Scope::Where(_) | Scope::Nothing => self,
        }
    }

    /// The same rows as a condition on the object itself.
    pub fn condition(&self, object: &Object) -> Condition {
        match self {
            Scope::All => Condition::TRUE,
            Scope::Own(actor) => own_rows(object, actor),
            Scope::Where(condition) => condition.as_ref().clone(),
            Scope::Nothing => Condition::FALSE,
            Scope::Seen(seen) => seen.rows.condition(object),
        }
    }

    /// The rows of `object` that both scopes include.
    pub fn and(&self, other: &Scope, object: &Object) -> Scope {
        match (self, other) {
            (Scope::Seen(seen), other) | (other, Scope::Seen(seen)) => Scope::Seen(Arc::new(seen.within(other.rows()))),
            (Scope::All, scope) | (scope, Scope::All) => scope.clone(),
            (Scope::Nothing, _) | (_, Scope::Nothing) => Scope::Nothing,
            (Scope::Own(one), Scope::Own(two)) => {
                if one == two {
                    self.clone()
                } else {
                    Scope::Nothing
                }
            }
            _ => Scope::of(Condition::all(vec![self.condition(object), other.condition(object)]), object),
        }
    }

    /// Adds the other objects whose rows have to be read to test this scope.
    pub fn objects_into(&self, objects: &mut Vec<Arc<Object>>) {
        match self {
            Scope::Where(condition) => condition.objects_into(objects),
            Scope::Seen(seen) => seen.objects_into(objects),
            Scope::All | Scope::Own(_) | Scope::Nothing => {}
        }
    }

    /// Whether the test of this scope searches through complete texts. The engine's count of steps does not include the length of
    /// these texts.
    pub fn reads_texts(&self) -> bool {
        match self {
            Scope::Where(condition) => condition.reads_texts(),
            Scope::Seen(seen) => seen.reads_texts(),
            Scope::All | Scope::Own(_) | Scope::Nothing => false,
        }
    }
}

pub(crate) fn own_rows(object: &Object, actor: &str) -> Condition {
    if object.is_users() {
        // A user's own row is the row of their account.
        let (column, id) = (object.column_index(system::ID), actor.parse());
        return match (column, id) {
            (Some(column), Ok(id)) => {
                Condition::Test(Predicate { column, test: Test::Compare(Comparison::Equal, Value::Uuid(id)) })
            }
            _ => Condition::FALSE,
        };
    }
    match object.column_index(system::CREATED_BY) {
        Some(column) => {
            Condition::Test(Predicate { column, test: Test::Compare(Comparison::Equal, Value::Text(actor.to_owned())) })
        }
        None => Condition::FALSE,
    }
}

/// The relationship behind a many_to_many relation, and whether the object is its source.
pub(crate) type LinkKey = (i64, bool);

/// The rows of an object for a caller who may read only some of its fields, or some fields in some rows only.
#[derive(Debug)]
pub struct Seen {
    /// The object with the columns that the caller knows. Plans refer to these columns.
    pub object: Arc<Object>,
    /// The object with all its columns.
    pub whole: Arc<Object>,
    /// The rows that the caller may read, as a scope of `whole`.
    pub rows: Scope,
    /// The rows that grants without a list of fields include, as a scope of `whole`.
    pub full_rows: Scope,
    /// For each column of `object`: its index in `whole`, and the rows in which the column can be read. `None` means all rows of
    /// `rows`.
    pub(crate) cells: Vec<(usize, Option<Arc<Condition>>)>,
    /// The many_to_many relations whose links can be read only in some rows, each with these rows.
    links: Vec<(LinkKey, Arc<Condition>)>,
}

impl PartialEq for Seen {
    fn eq(&self, other: &Seen) -> bool {
        self.whole.id == other.whole.id
            && self.rows == other.rows
            && self.full_rows == other.full_rows
            && self.cells == other.cells
            && self.links == other.links
    }
}

impl Seen {
    /// `readable` returns the rows in which a field can be read, by the field's number in the catalogue. `None` means all rows of
    /// `rows`. `columns` has the numbers of the columns of `whole`, and `links` those of its many_to_many relations.
    pub(crate) fn new<'n>(
        (object, whole): (Arc<Object>, Arc<Object>),
        (rows, full_rows): (Scope, Scope),
        (columns, links): (&[String], impl Iterator<Item = (LinkKey, &'n str)>),
        readable: impl Fn(&str) -> Option<Condition>,
    ) -> Seen {
        let mut shared: Vec<Arc<Condition>> = Vec::new();
        let mut readable = |number: &str| {
            let condition = readable(number)?;
            Some(match shared.iter().find(|known| ***known == condition) {
                Some(known) => Arc::clone(known),
                None => {
                    shared.push(Arc::new(condition));
                    Arc::clone(&shared[shared.len() - 1])
                }
            })
        };
        let places = object.columns.iter().filter_map(|column| whole.column_index(&column.name));
        let cells = places.map(|place| {
            let is_id = whole.columns[place].name == system::ID;
            (place, if is_id { None } else { readable(&columns[place]) })
        });
        let cells = cells.collect();
        let links = links.filter_map(|(key, number)| Some((key, readable(number)?))).collect();
        Seen { object, whole, rows, full_rows, cells, links }
    }

    /// The rows in which a column of `object` can be read. `None` means all rows of `rows`.
    pub fn readable(&self, column: usize) -> Option<&Arc<Condition>> {
        self.cells.get(column).and_then(|(_, readable)| readable.as_ref())
    }

    /// The rows whose links can be read. `None` means all rows of `rows`.
    pub fn readable_links(&self, shape: RelationShape) -> Option<&Arc<Condition>> {
        let RelationShape::Linked { relationship_id, is_source } = shape else { return None };
        self.links.iter().find(|(key, _)| *key == (relationship_id, is_source)).map(|(_, readable)| readable)
    }

    /// The many_to_many relations whose links can be read only in some rows, each with these rows.
    pub(crate) fn masked_links(&self) -> impl Iterator<Item = (i64, bool, &Arc<Condition>)> {
        self.links.iter().map(|((relationship_id, is_source), readable)| (*relationship_id, *is_source, readable))
    }

    /// The rows in which a column can be read. `None` for a column that is not known.
    pub fn rows_with(&self, column: &str) -> Option<Scope> {
        let (_, readable) = self.cells.get(self.object.column_index(column)?)?;
        Some(self.rows_that(readable.as_ref()))
    }

    /// The rows whose links can be read.
    pub fn rows_with_links(&self, shape: RelationShape) -> Scope {
        self.rows_that(self.readable_links(shape))
    }

    fn rows_that(&self, condition: Option<&Arc<Condition>>) -> Scope {
        match condition {
            None => self.rows.clone(),
            Some(condition) => self.rows.and(&Scope::Where(Arc::clone(condition)), &self.whole),
        }
    }

    /// The same, but only with the rows that `other` includes too. `other` is a scope of `whole`.
    pub(super) fn within(&self, other: &Scope) -> Seen {
        Seen {
            object: Arc::clone(&self.object),
            whole: Arc::clone(&self.whole),
            rows: self.rows.and(other, &self.whole),
            full_rows: self.full_rows.and(other, &self.whole),
            cells: self.cells.clone(),
            links: self.links.clone(),
        }
    }

    fn conditions(&self) -> impl Iterator<Item = &Arc<Condition>> {
        self.cells.iter().filter_map(|(_, readable)| readable.as_ref()).chain(self.links.iter().map(|(_, readable)| readable))
    }

    pub(super) fn objects_into(&self, objects: &mut Vec<Arc<Object>>) {
        self.rows.objects_into(objects);
        self.conditions().for_each(|condition| condition.objects_into(objects));
    }

    pub(super) fn reads_texts(&self) -> bool {
        self.rows.reads_texts() || self.conditions().any(|condition| condition.reads_texts())
    }
}

//! The shape of an answer: the selected parts of records, the data to read for them, and the writing of the result.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use async_graphql::Pos;
use async_graphql::parser::types::SelectionSet;
use blockbase_app::Related;
use blockbase_app::schema::{Code, Error, Object, Result, json, pascal_case};
use serde::de::{MapAccess, Visitor};
use serde::{Deserialize, Deserializer};
use serde_json::value::RawValue;

use crate::document::collect::Context;
use crate::error::{GraphqlError, Step};
use crate::view::View;
use crate::view::types::is_never_null;

/// The selection of an object's records.
pub(crate) struct RecordShape<'d> {
    fields: Vec<FieldShape<'d>>,
}

struct FieldShape<'d> {
    key: &'d str,
    position: Pos,
    source: Source<'d>,
}

enum Source<'d> {
    /// `__typename`
    Type(String),
    Column {
        name: String,
        /// Whether the column is required, so that it is never null.
        required: bool,
    },
    One(String, RecordShape<'d>),
    Many(String, RecordShape<'d>),
}

/// The data of an object's records that has to be read.
#[derive(Default)]
pub(crate) struct Wanted {
    columns: BTreeSet<String>,
    related: Vec<(String, Wanted)>,
}

impl Wanted {
    pub(crate) fn columns(&self) -> Vec<String> {
        self.columns.iter().cloned().collect()
    }

    pub(crate) fn wants_related(&self) -> bool {
        !self.related.is_empty()
    }

    pub(crate) fn related(&self) -> Vec<Related> {
        self.related
            .iter()
            .map(|(key, wanted)| Related {
                key: key.clone(),
                // The columns include those that relations need, even if they are not selected.
                select: Some(wanted.columns()),
                related: wanted.related(),
            })
            .collect()
    }

    fn below(&mut self, key: &str) -> &mut Wanted {
        let place = self.related.iter().position(|(known, _)| known == key).unwrap_or_else(|| {
            self.related.push((key.to_owned(), Wanted::default()));
            self.related.len() - 1
        });
        &mut self.related[place].1
    }
}

impl<'d> RecordShape<'d> {
    /// Reads a selection of `object`, and adds the data that it needs to `wanted`.
    ///
    /// # Errors
    /// `internal` if validation has missed a fault.
    pub(crate) fn of(
        context: Context<'d>,
        view: &View,
        object: &Object,
        sets: &[&'d SelectionSet],
        wanted: &mut Wanted,
    ) -> Result<RecordShape<'d>> {
        let ty = pascal_case(object.name());
        let mut fields = Vec::new();
        for selected in context.collect(sets, &ty) {
            let name = selected.field.name.node.as_str();
            let source = if name == "__typename" {
                Source::Type(ty.clone())
            } else if let Some(column) = object.column(name) {
                wanted.columns.insert(name.to_owned());
                Source::Column { name: name.to_owned(), required: is_never_null(object, column) }
            } else {
                let relation = view.registry.relation(object.name(), name);
                let relation = relation.ok_or_else(|| Error::internal(format!("`{ty}` has no field `{name}`")))?;
                let related = view.registry.object(&relation.related).ok_or_else(|| Error::unknown_object(&relation.related))?;
                let below = RecordShape::of(context, view, related, &selected.sets, wanted.below(name))?;
                match relation.shape.is_single() {
                    true => Source::One(name.to_owned(), below),
                    false => Source::Many(name.to_owned(), below),
                }
            };
            fields.push(FieldShape { key: selected.key, position: selected.position, source });
        }
        Ok(RecordShape { fields })
    }
}

/// The place of a value in the answer.
#[derive(Clone, Copy)]
pub(crate) struct Place<'a> {
    pub(crate) above: Option<&'a Place<'a>>,
    pub(crate) step: PlaceStep<'a>,
}

#[derive(Clone, Copy)]
pub(crate) enum PlaceStep<'a> {
    Key(&'a str),
    Index(usize),
}

impl<'a> Place<'a> {
    pub(crate) fn root(key: &'a str) -> Place<'a> {
        Place { above: None, step: PlaceStep::Key(key) }
    }

    pub(crate) fn key(&'a self, key: &'a str) -> Place<'a> {
        Place { above: Some(self), step: PlaceStep::Key(key) }
    }

    pub(crate) fn index(&'a self, index: usize) -> Place<'a> {
        Place { above: Some(self), step: PlaceStep::Index(index) }
    }

    pub(crate) fn path(&self) -> Vec<Step> {
        let mut path = self.above.map(Place::path).unwrap_or_default();
        path.push(match self.step {
            PlaceStep::Key(key) => Step::Key(key.to_owned()),
            PlaceStep::Index(index) => Step::Index(index),
        });
        path
    }
}

/// An answer while it is written, with the errors so far.
pub(crate) struct Answer {
    pub(crate) json: Vec<u8>,
    pub(crate) errors: Vec<GraphqlError>,
    /// The number of bytes that all root fields of the operation together may still write.
    budget: Arc<Budget>,
}

/// The number of bytes that the answer of an operation may still get. If a value has several aliases, it counts once for each.
pub(crate) struct Budget(AtomicUsize);

impl Budget {
    pub(crate) fn new(bytes_max: usize) -> Budget {
        Budget(AtomicUsize::new(bytes_max))
    }

    /// The number of bytes that may still be written.
    pub(crate) fn left(&self) -> usize {
        self.0.load(Ordering::Relaxed)
    }

    /// # Errors
    /// `answer_too_large` if the budget is spent.
    pub(crate) fn spend(&self, bytes: usize) -> Result<()> {
        let spent = self.0.fetch_update(Ordering::Relaxed, Ordering::Relaxed, |left| left.checked_sub(bytes));
        spent.map(|_| ()).map_err(|_| Error::answer_too_large())
    }
}

impl Answer {
    pub(crate) fn new(budget: &Arc<Budget>) -> Answer {
        Answer { json: Vec::new(), errors: Vec::new(), budget: Arc::clone(budget) }
    }

    /// Appends `"key":`, after a comma if the object that begins at `begun` already has a member.
    pub(crate) fn key(&mut self, begun: usize, key: &str) {
        if self.json.len() > begun + 1 {
            self.json.push(b',');
        }
        // Keys of an answer are GraphQL names, which need no escapes.
        self.json.push(b'"');
        self.json.extend_from_slice(key.as_bytes());
        self.json.extend_from_slice(b"\":");
    }

    /// Appends an object. `fields` has the key of each field, and what `write` needs to append the field's value.
    ///
    /// # Errors
    /// Those of `write`.
    pub(crate) fn object<'k, F, E>(
        &mut self,
        fields: impl IntoIterator<Item = (&'k str, F)>,
        mut write: impl FnMut(&mut Answer, F) -> Result<(), E>,
    ) -> Result<(), E> {
        let begun = self.json.len();
        self.json.push(b'{');
        for (key, field) in fields {
            self.key(begun, key);
            write(self, field)?;
        }
        self.json.push(b'}');
        Ok(())
    }

    /// Appends `"key":` in an entry of a list. Each entry writes it once more, so its bytes are counted before.
    ///
    /// # Errors
    /// `answer_too_large`.
    pub(crate) fn counted_key(&mut self, begun: usize, key: &str, position: Pos, place: &Place<'_>) -> Result<(), GraphqlError> {
        self.budget.spend(key.len() + 16).map_err(|error| GraphqlError::at(error, position, place.path()))?;
        self.key(begun, key);
        Ok(())
    }

    pub(crate) fn string(&mut self, text: &str) {
        json::write_string(&mut self.json, text);
    }

    /// Appends a text. Each alias writes it once more, so its bytes are counted before.
    ///
    /// # Errors
    /// `answer_too_large`.
    pub(crate) fn counted_string(&mut self, text: &str, position: Pos, place: &Place<'_>) -> Result<(), GraphqlError> {
        self.budget.spend(text.len() + 2).map_err(|error| GraphqlError::at(error, position, place.path()))?;
        self.string(text);
        Ok(())
    }

    /// Writes a nullable value. If an error occurs while writing it, the value becomes null, and the error is reported.
    pub(crate) fn nullable(&mut self, write: impl FnOnce(&mut Answer) -> Result<(), GraphqlError>) {
        let begun = self.json.len();
        if let Err(error) = write(self) {
            self.json.truncate(begun);
            self.json.shrink_to_fit();
            self.json.extend_from_slice(b"null");
            self.errors.push(error);
        }
    }

    /// Appends rows as a list. Each alias writes them once more, so their bytes are counted before.
    ///
    /// # Errors
    /// `answer_too_large`.
    pub(crate) fn rows(&mut self, rows: &[u8]) -> Result<()> {
        self.budget.spend(rows.len() + 2)?;
        self.json.push(b'[');
        self.json.extend_from_slice(rows);
        self.json.push(b']');
        Ok(())
    }

    /// Appends a record in its shape.
    ///
    /// # Errors
    /// The reason why the record becomes null: a required field is missing, or the answer is too large.
    pub(crate) fn record(
        &mut self,
        shape: &RecordShape<'_>,
        record: &str,
        position: Pos,
        place: &Place<'_>,
    ) -> Result<(), GraphqlError> {
        let fail = |error: Error| GraphqlError::at(error, position, place.path());
        let cells: Cells<'_> = serde_json::from_str(record).map_err(|error| fail(Error::internal(error)))?;
        let begun = self.json.len();
        self.json.push(b'{');
        for field in &shape.fields {
            let value = match &field.source {
                Source::Column { name, .. } => cells.get(name),
                Source::Type(_) | Source::One(..) | Source::Many(..) => None,
            };
            // The bytes are counted before the value is written, because each alias writes the value once more.
            self.budget.spend(field.key.len() + value.map_or(16, str::len)).map_err(&fail)?;
            self.key(begun, field.key);
            let below = place.key(field.key);
            match &field.source {
                Source::Type(name) => self.string(name),
                Source::Column { name, required } => match value {
                    Some(value) => self.json.extend_from_slice(value.as_bytes()),
                    None => {
                        let error = GraphqlError::at(unreadable(name), field.position, below.path());
                        if *required {
                            return Err(error);
                        }
                        self.json.extend_from_slice(b"null");
                        self.errors.push(error);
                    }
                },
                Source::One(key, shape) => match cells.get(key).filter(|value| *value != "null") {
                    Some(value) => self.nullable(|answer| answer.record(shape, value, field.position, &below)),
                    None => self.json.extend_from_slice(b"null"),
                },
                Source::Many(key, shape) => {
                    let list = cells.get(key).unwrap_or("[]");
                    self.records(shape, list, field.position, &below)?;
                }
            }
        }
        self.json.push(b'}');
        Ok(())
    }

    /// Appends a list of records.
    ///
    /// # Errors
    /// The same as for one record.
    pub(crate) fn records(
        &mut self,
        shape: &RecordShape<'_>,
        list: &str,
        position: Pos,
        place: &Place<'_>,
    ) -> Result<(), GraphqlError> {
        let items: Vec<&RawValue> =
            serde_json::from_str(list).map_err(|error| GraphqlError::at(Error::internal(error), position, place.path()))?;
        self.json.push(b'[');
        for (index, item) in items.iter().enumerate() {
            if index > 0 {
                self.json.push(b',');
            }
            self.record(shape, item.get(), position, &place.index(index))?;
        }
        self.json.push(b']');
        Ok(())
    }
}

fn unreadable(name: &str) -> Error {
    Error::new(Code::Forbidden, format!("You may not read `{name}` of this record, or the schema has changed meanwhile."))
}

/// A record's cells. Each is still text.
struct Cells<'r>(Vec<(&'r str, &'r RawValue)>);

impl<'r> Cells<'r> {
    fn get(&self, name: &str) -> Option<&'r str> {
        self.0.iter().find(|(known, _)| *known == name).map(|(_, value)| value.get())
    }
}

impl<'de> Deserialize<'de> for Cells<'de> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct CellsVisitor;
        impl<'de> Visitor<'de> for CellsVisitor {
            type Value = Cells<'de>;

            fn expecting(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                formatter.write_str("a record")
            }

            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Cells<'de>, A::Error> {
                let mut cells = Vec::with_capacity(16);
                while let Some(cell) = map.next_entry()? {
                    cells.push(cell);
                }
                Ok(Cells(cells))
            }
        }
        deserializer.deserialize_map(CellsVisitor)
    }
}

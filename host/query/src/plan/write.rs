//! Plans of writes: new records, changes of columns, upserts and links.

use std::sync::Arc;

use blockbase_schema::json::Members;
use blockbase_schema::{Code, Column, ColumnType, Error, Object, Relation, Result, TextBounds, Value, fold_into, system};

use super::RecordPlan;
use crate::access::{Access, Scope};
use crate::predicate::column_index;

/// The actor and the time of a write, from which the stamps are made.
#[derive(Debug, Clone)]
pub struct Stamp {
    pub actor_id: Option<String>,
    /// The time in milliseconds since the epoch.
    pub now: i64,
    /// The limits on the lengths of texts.
    pub texts: TextBounds,
}

impl Stamp {
    fn actor(&self) -> Value {
        self.actor_id.clone().map_or(Value::Null, Value::Text)
    }
}

/// A complete new record: one value for each column, in the order of `Object::columns`.
#[derive(Debug, Clone)]
pub struct CreatePlan {
    pub object: Arc<Object>,
    pub id: uuid::Uuid,
    pub values: Vec<Value>,
    /// The record as JSON.
    pub json: Vec<u8>,
    /// The row's first version. It is random. So a record that reuses the id of a deleted record has other versions than the
    /// deleted one.
    pub version: i64,
}

/// A number of 62 bits from the random part of an id that was made for this row.
fn first_version(id: uuid::Uuid) -> i64 {
    i64::try_from(id.as_u64_pair().1 & (u64::MAX >> 2)).unwrap_or(0)
}

impl CreatePlan {
    /// `id` is new. No other row has it.
    ///
    /// # Errors
    /// `unknown_field`, `invalid_value`, `CONSTRAINT_VIOLATION` or `not_null_violation`, with `field`, or with `issues` if
    /// several fields are wrong. Unknown keys come first, then invalid values, both in the order of the body, then missing
    /// values.
    pub fn new(object: &Arc<Object>, access: &Access, body: &Members, id: uuid::Uuid, stamp: &Stamp) -> Result<CreatePlan> {
        CreatePlan::with_version(object, access, body, id, first_version(id), stamp, Vec::new())
    }

    fn with_version(
        object: &Arc<Object>,
        _access: &Access,
        body: &Members,
        id: uuid::Uuid,
        version: i64,
        stamp: &Stamp,
        mut problems: Vec<Error>,
    ) -> Result<CreatePlan> {
        let mut given: Vec<Option<Value>> = vec![None; object.columns.len()];
        for (index, raw) in writable(object, body, &mut problems) {
            match object.columns[index].value_of(raw) {
                Ok(value) => given[index] = Some(value),
                Err(problem) => problems.push(problem),
            }
        }
        let mut values = Vec::with_capacity(object.columns.len());
        for (column, given) in object.columns.iter().zip(given) {
            let value = match column.name.as_str() {
                system::ID if column.is_system => Value::Uuid(id),
                system::CREATED_AT | system::UPDATED_AT if column.is_system => Value::Datetime(stamp.now),
                system::CREATED_BY | system::UPDATED_BY if column.is_system => stamp.actor(),
                _ => given.or_else(|| column.default.clone()).unwrap_or(Value::Null),
            };
            if let Err(problem) = storable(column, &value, stamp)
                && !is_at_fault(&problems, column)
            {
                problems.push(problem);
            }
            values.push(value);
        }
        if let Some(error) = Error::of_record(problems) {
            return Err(error);
        }
        let mut json = Vec::with_capacity(64 * values.len());
        write_record(&mut json, object.columns.iter().zip(&values));
        Ok(CreatePlan { object: Arc::clone(object), id, values, json, version })
    }

    /// The text of the record in the search index.
    pub fn search_document(&self) -> Option<String> {
        search_document(&self.object, self.values.iter())
    }

    /// The owner of the record.
    pub fn owner(&self) -> Option<&str> {
        match self.object.column_index(system::CREATED_BY).map(|index| &self.values[index]) {
            Some(Value::Text(owner)) => Some(owner),
            _ => None,
        }
    }
}

/// A record that is inserted, or updated if a record with the same values of `target` exists.
#[derive(Debug, Clone)]
pub struct UpsertPlan {
    /// The record as it would be inserted.
    pub create: CreatePlan,
    /// Columns of a declared unique target.
    pub target: Vec<usize>,
    /// The columns that are overwritten if a record exists: those that the body names.
    pub overwrites: Vec<usize>,
    /// The existing rows that may be changed.
    pub scope: Scope,
    pub stamp: Stamp,
}

impl UpsertPlan {
    /// `may_create` and `may_update` are the accesses for the two outcomes. `id` is a new id, for a record whose body has no id.
    ///
    /// # Errors
    /// `invalid_upsert_target` if the object does not declare `target`, or if the body lacks one of its columns; otherwise the
    /// errors of [`CreatePlan::new`].
    pub fn new(
        object: &Arc<Object>,
        may_create: &Access,
        may_update: &Access,
        body: &Members,
        target: &[String],
        id: uuid::Uuid,
        stamp: Stamp,
    ) -> Result<UpsertPlan> {
        UpsertPlan::check_target(object, target)?;
        if let Some(missing) = target.iter().find(|name| !body.0.iter().any(|(given, _)| given == *name)) {
            return Err(Error::new(
                Code::InvalidUpsertTarget,
                format!("`{missing}` is a column of the unique target, so the record has to have it."),
            )
            .with_field(missing.clone()));
        }
        let mut problems = Vec::new();
        let mut given_id = None;
        if let [name] = target
            && name == system::ID
        {
            let column = column_of(object, system::ID)?;
            let raw = body.0.iter().find(|(given, _)| given == name).map_or("null", |(_, raw)| raw.get());
            match column.filter_value_of(raw) {
                Ok(Value::Uuid(id)) => given_id = Some(id),
                Ok(_) => problems.push(missing_value(column)),
                Err(problem) => problems.push(problem),
            }
        }
        let version = first_version(id);
        let create = CreatePlan::with_version(object, may_create, body, given_id.unwrap_or(id), version, &stamp, problems)?;
        // All keys are known to be columns here, so there are no problems to collect.
        let overwrites = writable(object, body, &mut Vec::new()).into_iter().map(|(index, _)| index).collect();
        let target = target.iter().map(|name| column_index(object, name)).collect::<Result<_>>()?;
        Ok(UpsertPlan { create, target, overwrites, scope: may_update.scope().clone(), stamp })
    }

    /// Checks that columns are a unique target of an object, as the caller knows it.
    ///
    /// # Errors
    /// `invalid_upsert_target`, which lists the valid targets.
    pub fn check_target(object: &Object, target: &[String]) -> Result<()> {
        if object.is_unique_target(target) {
            return Ok(());
        }
        let names = object.unique_target_names().join(" or ");
        let message = format!("An upsert has to name a unique target of `{}`: {names}.", object.name());
        Err(Error::new(Code::InvalidUpsertTarget, message))
    }

    /// Whether a conflicting record can exist. It cannot exist if a value is null, because null is not equal to anything.
    pub fn can_conflict(&self) -> bool {
        self.target.iter().all(|index| self.create.values[*index] != Value::Null)
    }

    /// The change of an existing record.
    pub fn change(&self) -> Change {
        let set = |index: &usize| (*index, Assignment::Set(self.create.values[*index].clone()));
        Change { assignments: self.overwrites.iter().map(set).collect(), stamp: self.stamp.clone() }
    }
}

/// The text of a record in the search index of SQLite: its searchable values, folded and joined. `None` if there are none.
pub fn search_document<'a>(object: &Object, values: impl IntoIterator<Item = &'a Value>) -> Option<String> {
    let mut document = String::new();
    for (_, value) in object.columns.iter().zip(values).filter(|(column, _)| column.is_searchable()) {
        let texts: &[String] = match value {
            Value::Text(text) => std::slice::from_ref(text),
            Value::TextList(list) => list,
            _ => &[],
        };
        for text in texts.iter().filter(|text| !text.is_empty()) {
            if !document.is_empty() {
                document.push('\u{1f}');
            }
            fold_into(text, &mut document);
        }
    }
    Some(document).filter(|document| !document.is_empty())
}

/// Links of a many_to_many relationship, made or removed on one record.
#[derive(Debug, Clone)]
pub struct LinkPlan {
    /// The record whose links are changed.
    pub record: RecordPlan,
    pub relation: Relation,
    /// The object on the other side, and those of its rows that the caller may see.
    pub target: Arc<Object>,
    pub target_scope: Scope,
    /// The ids of the other records, each once, in the caller's order.
    pub target_ids: Vec<uuid::Uuid>,
}

/// Appends a record's JSON object.
pub fn write_record<'a>(out: &mut Vec<u8>, cells: impl IntoIterator<Item = (&'a Column, &'a Value)>) {
    out.push(b'{');
    for (index, (column, value)) in cells.into_iter().enumerate() {
        if index > 0 {
            out.push(b',');
        }
        out.push(b'"');
        out.extend_from_slice(column.name.as_bytes());
        out.extend_from_slice(b"\":");
        value.write_json(out);
    }
    out.push(b'}');
}

/// The change that an update makes to one column.
#[derive(Debug, Clone)]
pub enum Assignment {
    Set(Value),
    /// `field = field + value` in the statement itself.
    Add(Value),
}

/// The changes of an update, without the record that it changes.
#[derive(Debug, Clone)]
pub struct Change {
    /// The changes of columns. Empty if the body names no column. Then nothing is written.
    pub assignments: Vec<(usize, Assignment)>,
    pub stamp: Stamp,
}

/// A partial update of one record.
#[derive(Debug, Clone)]
pub struct UpdatePlan {
    pub record: RecordPlan,
    pub change: Change,
}

impl UpdatePlan {
    /// # Errors
    /// The errors of [`Change::new`].
    pub fn new(object: &Arc<Object>, access: &Access, body: &Members, id: uuid::Uuid, stamp: Stamp) -> Result<UpdatePlan> {
        let change = Change::new(object, access, body, stamp)?;
        Ok(UpdatePlan { record: RecordPlan::new(object, access, id), change })
    }
}

impl Change {
    /// # Errors
    /// The errors of [`CreatePlan::new`]. `INVALID_ATOMIC_OP` for an operator of a wrong shape, or on a column that is not
    /// numeric.
    pub fn new(object: &Object, _access: &Access, body: &Members, stamp: Stamp) -> Result<Change> {
        let (mut assignments, mut problems) = (Vec::new(), Vec::new());
        for (index, raw) in writable(object, body, &mut problems) {
            match assignment(&object.columns[index], raw, &stamp) {
                Ok(assignment) => assignments.push((index, assignment)),
                Err(problem) => problems.push(problem),
            }
        }
        match Error::of_record(problems) {
            Some(error) => Err(error),
            None => Ok(Change { assignments, stamp }),
        }
    }
}

fn assignment(column: &Column, raw: &str, stamp: &Stamp) -> Result<Assignment> {
    if raw.trim_start().starts_with('{') && column.ty != ColumnType::Json {
        return Ok(Assignment::Add(atomic_amount(column, raw)?));
    }
    let value = column.value_of(raw)?;
    storable(column, &value, stamp)?;
    Ok(Assignment::Set(value))
}

/// The amount that `{ "$inc": n }` or `{ "$dec": n }` adds.
fn atomic_amount(column: &Column, raw: &str) -> Result<Value> {
    let refuse = |message: String| Error::new(Code::InvalidAtomicOp, message).with_field(column.name.clone());
    if !column.kind.is_numeric() {
        return Err(refuse(format!("`{}` is {}; atomic operators are for numeric fields.", column.name, column.kind.name())));
    }
    let shape = || refuse(format!("`{}` needs a number, or exactly one of {{\"$inc\": n}} and {{\"$dec\": n}}.", column.name));
    let members: Members = serde_json::from_str(raw).map_err(|_| shape())?;
    let [(operator, amount)] = members.0.as_slice() else { return Err(shape()) };
    if !amount.get().starts_with(|first: char| first == '-' || first.is_ascii_digit()) {
        return Err(shape());
    }
    // The rules limit the result, not the amount, and the database checks them.
    let amount = column.amount_of(amount.get())?;
    match operator.as_str() {
        "$inc" => Ok(amount),
        "$dec" => Ok(match amount {
            Value::Integer(number) => {
                let negated =
                    number.checked_neg().filter(|number| column.ty != ColumnType::Integer || i32::try_from(*number).is_ok());
                Value::Integer(negated.ok_or_else(|| {
                    Error::new(Code::InvalidValue, format!("`{}`: the amount is out of the type's range.", column.name))
                        .with_field(column.name.clone())
                })?)
            }
            Value::Decimal { scaled, scale } => Value::Decimal { scaled: -scaled, scale },
            Value::Float(number) => Value::Float(-number),
            other => other,
        }),
        _ => Err(shape()),
    }
}

fn missing_value(column: &Column) -> Error {
    Error::new(Code::NotNullViolation, format!("`{}` is required.", column.name)).with_field(column.name.clone())
}

/// Checks that a column can store a value of its type. The errors are `not_null_violation`, and `CONSTRAINT_VIOLATION` for a text
/// that is too long.
fn storable(column: &Column, value: &Value, stamp: &Stamp) -> Result<()> {
    match column.required && *value == Value::Null {
        true => Err(missing_value(column)),
        false => column.check_bytes(value, stamp.texts),
    }
}

/// Whether one of `problems` is about the column. If so, the value of the column is unknown and cannot be checked further.
fn is_at_fault(problems: &[Error], column: &Column) -> bool {
    problems.iter().any(|problem| problem.field.as_ref() == Some(&column.name))
}

/// Those members of the body that are columns to write. System columns are left out without an error. Each unknown key is added
/// to `problems`.
fn writable<'a>(object: &Object, body: &'a Members, problems: &mut Vec<Error>) -> Vec<(usize, &'a str)> {
    let mut writable = Vec::with_capacity(body.0.len());
    for (name, raw) in &body.0 {
        match object.column_index(name) {
            Some(index) if object.columns[index].is_system => {}
            Some(index) => writable.push((index, raw.get())),
            None => problems.push(Error::unknown_field(object.name(), name)),
        }
    }
    writable
}

fn column_of<'a>(object: &'a Object, name: &str) -> Result<&'a Column> {
    column_index(object, name).map(|index| &object.columns[index])
}

//! Engine errors by their meaning, and the domain errors that they become. For each engine, one table maps the driver's errors.
//! No other code reads driver errors.

use blockbase_query::ddl::unique_index_columns;
use blockbase_schema::{Code, Column, Error, Object, Retry};

type Cause = Box<dyn std::error::Error + Send + Sync>;

/// The reason why the engine refused a statement.
#[derive(Debug)]
pub enum DbError {
    /// The columns of the violated unique index if the engine names them, otherwise the index's name.
    Unique {
        columns: Vec<String>,
        index: Option<String>,
    },
    /// The number of the violated relationship, if the engine names it.
    ForeignKey {
        relationship: Option<i64>,
    },
    NotNull {
        column: Option<String>,
    },
    /// The name of the violated check.
    Check {
        name: String,
    },
    /// A result that does not fit the column's type.
    OutOfRange,
    /// A table or column is gone or has another type. The schema changed after the request began.
    SchemaMoved(Cause),
    /// The transaction conflicts with another one, and one of the two has to start again.
    Contended(Cause),
    /// The chain of records that are deleted together is longer than the engine allows.
    TooDeep,
    /// The table has too many columns. Postgres also counts dropped ones.
    TooManyColumns,
    /// A read exceeded its budget.
    Interrupted,
    /// The rendered rows have more bytes than a response may have.
    AnswerTooLarge,
    /// The events of one transaction have more bytes than a commit may have.
    EventsTooLarge,
    /// The database's disk is full.
    StorageFull(Cause),
    /// A read needs a file to sort in, and the disk has too little room for it.
    NoRoomToSort,
    /// Others kept a lock for longer than the statement may wait.
    Locked(Cause),
    /// The connection was lost, the pool is exhausted, or the server shuts down.
    Unavailable(Cause),
    Other(Cause),
}

impl From<DbError> for Error {
    fn from(error: DbError) -> Self {
        match error {
            DbError::Unavailable(cause) => unavailable(cause),
            DbError::Locked(cause) => {
                let message =
                    "Others are writing what this request needs, and it waited for them as long as it may. Try again later.";
                Error { cause: Some(cause), ..Error::busy(message) }
            }
            DbError::Other(cause) => Error::internal(cause),
            DbError::SchemaMoved(cause) => Error::retry(Retry::SchemaMoved, cause),
            DbError::Contended(cause) => Error::retry(Retry::Contended, cause),
            // Another transaction deleted the row of a system table that this one refers to.
            DbError::ForeignKey { .. } => Error::retry(Retry::Contended, "a row that a system row refers to is gone"),
            DbError::Interrupted => unavailable("a read took too long"),
            DbError::AnswerTooLarge => Error::answer_too_large(),
            DbError::EventsTooLarge => Error::new(
                Code::AnswerTooLarge,
                "The events of this call would have more bytes than one commit may have. Write, delete or link fewer records in one call.",
            ),
            DbError::StorageFull(cause) => storage_full(Some(cause)),
            DbError::NoRoomToSort => Error::new(
                Code::StorageFull,
                "The server's storage is full, so nothing large can be sorted. Narrow the filters, sort by an indexed field, or try again \
                 when there is room.",
            ),
            DbError::TooDeep => Error::new(
                Code::Conflict,
                "Too many records refer to each other in a row to be deleted at once. Delete them from the end of the chain.",
            ),
            DbError::TooManyColumns => Error::new(
                Code::InvalidSchemaChange,
                "The table has no room for another column; Postgres counts those that were dropped. Make a new object.",
            ),
            other => Error::internal(format!("{other:?}")),
        }
    }
}

impl DbError {
    /// The domain error of a failed data statement on `object`.
    pub fn on(self, object: &Object) -> Error {
        match self {
            DbError::Unique { columns, index } => unique(object, columns, index.as_deref()),
            DbError::ForeignKey { relationship } => foreign_key(object, relationship),
            DbError::NotNull { column } => {
                let name = column.unwrap_or_default();
                Error::new(Code::NotNullViolation, format!("`{name}` is required.")).with_field(name)
            }
            DbError::Check { name } => check(object, &name),
            DbError::OutOfRange => Error::new(Code::InvalidValue, "The result is out of the range of the column's type."),
            other => other.into(),
        }
    }
}

/// The written record refers to a record that does not exist.
fn foreign_key(object: &Object, relationship: Option<i64>) -> Error {
    let refers = |column: &&Column| column.reference.as_ref().map(|reference| reference.relationship_id) == relationship;
    let column = object.columns.iter().find(|column| column.reference.is_some() && refers(column));
    match column {
        Some(column) => Error::new(
            Code::ForeignKeyViolation,
            format!("`{}`: there is no record with this id that you may refer to.", column.name),
        )
        .with_field(column.name.clone()),
        None => Error::new(Code::ForeignKeyViolation, "A referenced record does not exist."),
    }
}

fn unique(object: &Object, mut columns: Vec<String>, index: Option<&str>) -> Error {
    if columns.is_empty() {
        columns = index.map(|index| unique_index_columns(object, index)).unwrap_or_default();
    }
    let error = |message: String| Error::new(Code::UniqueViolation, message);
    match columns.as_slice() {
        [] => error(format!("A record of `{}` with these values exists already.", object.name())),
        [column] => {
            error(format!("A record of `{}` with this `{column}` exists already.", object.name())).with_field(column.clone())
        }
        several => error(format!("A record of `{}` with these values of {} exists already.", object.name(), several.join(", "))),
    }
}

/// The field with this number, which may have leading zeros.
fn column_of_key<'a>(object: &'a Object, key: &str) -> Option<&'a Column> {
    let key: u32 = key.parse().ok()?;
    object.columns.iter().find(|column| !column.is_system && column.key == key)
}

/// The violated check `svc_ck_<object>_<field key>_<rule>`.
fn check(object: &Object, name: &str) -> Error {
    let found = name
        .strip_prefix(&format!("svc_ck_{}_", object.id))
        .and_then(|rest| rest.split_once('_'))
        .and_then(|(key, rule)| Some((column_of_key(object, key)?, rule)));
    match found {
        Some((column, "range")) => column.out_of_range(),
        Some((column, rule)) => {
            let bound = if rule == "min" { column.rules.min } else { column.rules.max };
            let side = if rule == "min" { "least" } else { "most" };
            let bound = bound.map(|bound| bound.to_string()).unwrap_or_default();
            Error::new(Code::ConstraintViolation, format!("`{}` breaks its rule `{rule}`: the {side} is {bound}.", column.name))
                .with_field(column.name.clone())
        }
        None => Error::new(Code::ConstraintViolation, "A rule of the object was broken."),
    }
}

/// The error if the database has no room for more data.
pub(crate) fn storage_full(cause: Option<Box<dyn std::error::Error + Send + Sync>>) -> Error {
    let mut error = Error::new(
        Code::StorageFull,
        "The server's storage is full. Nothing can be written until there is room again. Reads go on, and so do deletions of records and objects.",
    );
    error.cause = cause;
    error
}

/// The error if the database cannot be used.
pub(crate) fn unavailable(cause: impl Into<Box<dyn std::error::Error + Send + Sync>>) -> Error {
    let mut error = Error::new(Code::Unavailable, "The database cannot be reached at the moment. Try again shortly.");
    error.cause = Some(cause.into());
    error
}

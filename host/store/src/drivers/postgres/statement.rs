//! Statements on Postgres: binding of values, rows as JSON from the binary format, and the table of its errors.

use blockbase_query::Param;
use blockbase_schema::{ColumnType, json, time};
use chrono::{DateTime, NaiveDate, NaiveTime, Utc};
use rust_decimal::Decimal;
use sqlx::error::ErrorKind;
use sqlx::postgres::{PgArguments, PgDatabaseError, PgRow};
use sqlx::{Arguments, Column as _, Row as _, TypeInfo, ValueRef};
use uuid::Uuid;

use crate::error::DbError;
use crate::record::ExtraValues;
use crate::row::{Cell, Row};

/// Maps Postgres' errors. Names of constraints contain catalogue numbers, so no message has to be parsed.
pub(crate) fn db_error(error: sqlx::Error) -> DbError {
    let Some(database) = error.as_database_error() else {
        return match error {
            sqlx::Error::Io(_)
            | sqlx::Error::Tls(_)
            | sqlx::Error::PoolTimedOut
            | sqlx::Error::PoolClosed
            | sqlx::Error::WorkerCrashed => DbError::Unavailable(error.into()),
            _ => DbError::Other(error.into()),
        };
    };
    let constraint = database.constraint().map(str::to_owned);
    let code = database.code().unwrap_or_default().into_owned();
    match database.kind() {
        ErrorKind::UniqueViolation => DbError::Unique { columns: Vec::new(), index: constraint },
        ErrorKind::ForeignKeyViolation => DbError::ForeignKey {
            relationship: constraint.as_deref().and_then(|name| name.strip_prefix("svc_fk_")?.parse().ok()),
        },
        ErrorKind::NotNullViolation => DbError::NotNull {
            column: database.try_downcast_ref::<PgDatabaseError>().and_then(|error| error.column()).map(str::to_owned),
        },
        ErrorKind::CheckViolation => DbError::Check { name: constraint.unwrap_or_default() },
        _ => match code.as_str() {
            "22003" => DbError::OutOfRange,
            "54001" => DbError::TooDeep,
            "54011" => DbError::TooManyColumns,
            // The statement took too long.
            "57014" => DbError::Unavailable(error.into()),
            // The table or column does not exist, has another type, or the plan is outdated.
            "42P01" | "42703" | "42883" | "42804" | "0A000" => DbError::SchemaMoved(error.into()),
            // A serialization failure or a deadlock.
            "40001" | "40P01" => DbError::Contended(error.into()),
            "53100" => DbError::StorageFull(error.into()),
            "55P03" => DbError::Locked(error.into()),
            // Resource limits, shutdowns and connection failures.
            "53200" | "53300" | "57P01" | "57P02" | "57P03" => DbError::Unavailable(error.into()),
            code if code.starts_with("08") => DbError::Unavailable(error.into()),
            _ => DbError::Other(error.into()),
        },
    }
}

fn date(days: i32) -> NaiveDate {
    NaiveDate::default() + chrono::Duration::days(i64::from(days))
}

fn time_of_day(millis: u32) -> NaiveTime {
    NaiveTime::from_num_seconds_from_midnight_opt(millis / 1000, millis % 1000 * 1_000_000).unwrap_or_default()
}

pub(crate) fn arguments(params: Vec<Param>) -> Result<PgArguments, DbError> {
    let mut arguments = PgArguments::default();
    for param in params {
        match param {
            Param::Text(value) | Param::Json(value) => arguments.add(value),
            Param::TextList(value) => arguments.add(value),
            Param::OptionalTextList(value) => arguments.add(value),
            Param::OptionalBytesList(value) => arguments.add(value),
            Param::Integer(value) => arguments.add(value),
            Param::BigInteger(value) => arguments.add(value),
            Param::Decimal(value) => arguments.add(value.map(|(scaled, scale)| Decimal::new(scaled, u32::from(scale)))),
            Param::Float(value) => arguments.add(value),
            Param::Boolean(value) => arguments.add(value),
            Param::Date(value) => arguments.add(value.map(date)),
            Param::Datetime(value) => arguments.add(value.and_then(DateTime::<Utc>::from_timestamp_millis)),
            Param::Time(value) => arguments.add(value.map(time_of_day)),
            Param::Uuid(value) => arguments.add(value),
            Param::UuidList(value) => arguments.add(value),
            Param::IntegerList(value) => arguments.add(value),
            Param::Bytes(value) => arguments.add(value),
        }
        .map_err(DbError::Other)?;
    }
    Ok(arguments)
}

pub(crate) fn system_row(row: &PgRow) -> Result<Row, DbError> {
    let mut cells = Vec::with_capacity(row.columns().len());
    for column in row.columns() {
        let index = column.ordinal();
        let is_null = row.try_get_raw(index).map_err(db_error)?.is_null();
        cells.push(match column.type_info().name() {
            _ if is_null => Cell::Null,
            "INT8" => Cell::Integer(row.try_get(index).map_err(db_error)?),
            "INT4" => Cell::Integer(i64::from(row.try_get::<i32, _>(index).map_err(db_error)?)),
            "BOOL" => Cell::Integer(i64::from(row.try_get::<bool, _>(index).map_err(db_error)?)),
            "TEXT" | "VARCHAR" => Cell::Text(row.try_get(index).map_err(db_error)?),
            "UUID" => Cell::Text(row.try_get::<Uuid, _>(index).map_err(db_error)?.hyphenated().to_string()),
            "BYTEA" => Cell::Bytes(row.try_get(index).map_err(db_error)?),
            other => return Err(DbError::Other(format!("a system row holds {other}").into())),
        });
    }
    Ok(Row { cells })
}

/// Postgres' name of a column's type.
fn type_name(ty: ColumnType) -> &'static str {
    match ty {
        ColumnType::Text => "TEXT",
        ColumnType::TextList => "TEXT[]",
        ColumnType::Integer => "INT4",
        ColumnType::BigInteger => "INT8",
        ColumnType::Decimal { .. } => "NUMERIC",
        ColumnType::Float => "FLOAT8",
        ColumnType::Boolean => "BOOL",
        ColumnType::Date => "DATE",
        ColumnType::Datetime => "TIMESTAMPTZ",
        ColumnType::Time => "TIME",
        ColumnType::Json => "JSON",
        ColumnType::Uuid => "UUID",
    }
}

/// Checks that the columns of a result still have the types that the statement was planned for.
pub(crate) fn check_types(row: Option<&PgRow>, types: impl Iterator<Item = ColumnType>) -> Result<(), DbError> {
    let Some(row) = row else { return Ok(()) };
    for (column, ty) in row.columns().iter().zip(types) {
        let found = column.type_info().name();
        if found != type_name(ty) {
            return Err(DbError::SchemaMoved(format!("a {ty:?} column is {found} by now").into()));
        }
    }
    Ok(())
}

/// The version or the total, and the flag, which a statement selects after its columns.
pub(crate) fn extra(row: &PgRow, columns: usize) -> Result<ExtraValues, DbError> {
    let flag = row.columns().len() > columns + 1;
    let flag = flag.then(|| row.try_get::<bool, _>(columns + 1)).transpose().map_err(db_error)?;
    Ok(ExtraValues { first: number(row, columns)?, tail: flag.map(i64::from) })
}

/// The number that a statement selects after its columns: a version, or the total of a list.
pub(crate) fn number(row: &PgRow, columns: usize) -> Result<Option<i64>, DbError> {
    match row.columns().len() > columns {
        true => row.try_get::<Option<i64>, _>(columns).map_err(db_error),
        false => Ok(None),
    }
}

/// The number of microseconds between the Unix epoch and Postgres' own epoch, 2000-01-01.
const POSTGRES_EPOCH_MICROS: i64 = 946_684_800_000_000;
/// The number of days between the same two epochs.
const POSTGRES_EPOCH_DAYS: i32 = 10_957;

fn fixed<const N: usize>(bytes: &[u8]) -> Result<[u8; N], DbError> {
    bytes.try_into().map_err(|_| DbError::Other(format!("a value has {} bytes instead of {N}", bytes.len()).into()))
}

/// Appends one value as JSON, from Postgres' binary format.
pub(crate) fn write_cell(out: &mut Vec<u8>, ty: ColumnType, row: &PgRow, index: usize) -> Result<(), DbError> {
    let value = row.try_get_raw(index).map_err(db_error)?;
    if value.is_null() {
        out.extend_from_slice(b"null");
        return Ok(());
    }
    let bytes = value.as_bytes().map_err(DbError::Other)?;
    let quoted = |out: &mut Vec<u8>, write: &dyn Fn(&mut Vec<u8>)| {
        out.push(b'"');
        write(out);
        out.push(b'"');
    };
    match ty {
        ColumnType::Text => json::write_string(out, std::str::from_utf8(bytes).map_err(|error| DbError::Other(error.into()))?),
        ColumnType::Json => out.extend_from_slice(bytes),
        ColumnType::TextList => {
            let list: Vec<String> = row.try_get(index).map_err(db_error)?;
            serde_json::to_writer(out, &list).map_err(|error| DbError::Other(error.into()))?;
        }
        ColumnType::Integer => json::write_integer(out, i64::from(i32::from_be_bytes(fixed(bytes)?))),
        ColumnType::BigInteger => json::write_integer(out, i64::from_be_bytes(fixed(bytes)?)),
        ColumnType::Decimal { scale } => {
            let mut number: Decimal = row.try_get(index).map_err(db_error)?;
            if number.scale() > u32::from(scale) {
                return Err(DbError::SchemaMoved("a numeric column has more digits by now".into()));
            }
            number.rescale(u32::from(scale));
            let scaled = i64::try_from(number.mantissa()).map_err(|error| DbError::Other(error.into()))?;
            json::write_decimal(out, scaled, scale);
        }
        ColumnType::Float => json::write_float(out, f64::from_be_bytes(fixed(bytes)?)),
        ColumnType::Boolean => out.extend_from_slice(if bytes == [0] { b"false" } else { b"true" }),
        ColumnType::Date => {
            let days = i32::from_be_bytes(fixed(bytes)?) + POSTGRES_EPOCH_DAYS;
            quoted(out, &|out| time::write_date(out, days));
        }
        ColumnType::Datetime => {
            let millis = (i64::from_be_bytes(fixed(bytes)?) + POSTGRES_EPOCH_MICROS).div_euclid(1000);
            quoted(out, &|out| time::write_datetime(out, millis));
        }
        ColumnType::Time => {
            let millis = (i64::from_be_bytes(fixed(bytes)?) / 1000) as u32;
            quoted(out, &|out| time::write_time(out, millis));
        }
        ColumnType::Uuid => {
            let id = Uuid::from_bytes(fixed(bytes)?);
            quoted(out, &|out| out.extend_from_slice(id.hyphenated().encode_lower(&mut [0; 36]).as_bytes()));
        }
    }
    Ok(())
}

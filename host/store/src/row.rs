//! A row of a system table. These tables use only few types.

use crate::error::DbError;

/// One value of a system row.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Cell {
    Null,
    Integer(i64),
    Text(String),
    Bytes(Vec<u8>),
}

/// One row of a system table.
#[derive(Clone, Debug)]
pub struct Row {
    pub(crate) cells: Vec<Cell>,
}

impl Row {
    fn mismatch<T>(&self, index: usize, wanted: &str) -> Result<T, DbError> {
        Err(DbError::Other(format!("column {index} of a system row is not {wanted}").into()))
    }

    pub fn integer(&self, index: usize) -> Result<i64, DbError> {
        match self.cells.get(index) {
            Some(Cell::Integer(number)) => Ok(*number),
            _ => self.mismatch(index, "an integer"),
        }
    }

    pub fn optional_integer(&self, index: usize) -> Result<Option<i64>, DbError> {
        match self.cells.get(index) {
            Some(Cell::Null) => Ok(None),
            _ => self.integer(index).map(Some),
        }
    }

    pub fn boolean(&self, index: usize) -> Result<bool, DbError> {
        Ok(self.integer(index)? != 0)
    }

    pub fn text(&self, index: usize) -> Result<String, DbError> {
        match self.cells.get(index) {
            Some(Cell::Text(text)) => Ok(text.clone()),
            _ => self.mismatch(index, "text"),
        }
    }

    pub fn optional_text(&self, index: usize) -> Result<Option<String>, DbError> {
        match self.cells.get(index) {
            Some(Cell::Null) => Ok(None),
            _ => self.text(index).map(Some),
        }
    }

    pub fn uuid(&self, index: usize) -> Result<uuid::Uuid, DbError> {
        self.text(index)?.parse().map_err(|error: uuid::Error| DbError::Other(error.into()))
    }

    pub fn optional_uuid(&self, index: usize) -> Result<Option<uuid::Uuid>, DbError> {
        match self.cells.get(index) {
            Some(Cell::Null) => Ok(None),
            _ => self.uuid(index).map(Some),
        }
    }

    pub fn bytes(&self, index: usize) -> Result<Vec<u8>, DbError> {
        match self.cells.get(index) {
            Some(Cell::Bytes(bytes)) => Ok(bytes.clone()),
            _ => self.mismatch(index, "bytes"),
        }
    }
}

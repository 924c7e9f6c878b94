//! The effects of an update besides the change of the row: its event, and the record's text in the search index.

use blockbase_query::plan::search_document;
use blockbase_schema::{ColumnType, Object, Result, Value};
use blockbase_store::{Connection, NewEvent, Record};
use uuid::Uuid;

use crate::base::topic::RecordOp;
use crate::outbox::record_events::{Images, WriteContext, diff, owner};

/// Returns the event of an update, which the caller emits. Also updates the search index if a searchable value changed.
pub(crate) fn record_change(
    connection: &mut Connection,
    context: &WriteContext,
    object: &Object,
    id: Uuid,
    before: &Record,
    after: &Record,
) -> Result<Option<NewEvent>> {
    let mut columns = object.columns.iter().enumerate();
    if columns.any(|(index, column)| column.is_searchable() && before.cell(index) != after.cell(index)) {
        connection.index_row(object.id, after.tail(), document_of(object, after));
    }
    let diff = diff(object, before, after);
    let images = Images { before: before.json(), after: after.json(), diff: &diff };
    context.event(object, id, RecordOp::Updated, &images, owner(object, after))
}

/// The text that the search index has for a stored record.
fn document_of(object: &Object, record: &Record) -> Option<String> {
    let values: Vec<Value> = object
        .columns
        .iter()
        .enumerate()
        .map(|(index, column)| match (column.is_searchable(), column.ty) {
            (true, ColumnType::Text) => serde_json::from_slice(record.cell(index)).map_or(Value::Null, Value::Text),
            (true, _) => serde_json::from_slice(record.cell(index)).map_or(Value::Null, Value::TextList),
            (false, _) => Value::Null,
        })
        .collect();
    search_document(object, values.iter())
}

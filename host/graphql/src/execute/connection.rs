//! Connections: pages of a list by cursors, as the Relay specification describes them.

use std::sync::Arc;

use blockbase_app::limits::{PAGE_SIZE_DEFAULT, PAGE_SIZE_MAX};
use blockbase_app::schema::{Error, Object, Result};
use blockbase_app::{
    ConnectionPaging, CursorPaginationAnswer, CursorParameter, CursorsOf, End, ListParameter, ListRequest, PageFlags, Paging,
};
use serde_json::value::RawValue;

use super::Execution;
use super::query::{array_of_rows, columns_read, matching, sort, whole_number};
use crate::document::coerce::Arguments;
use crate::document::collect::Selected;
use crate::error::GraphqlError;
use crate::execute::shape::{Answer, Place, RecordShape, Wanted};
use crate::view::leaves::LeafType;
use crate::view::root::{FIRST, LAST};
use crate::view::types::{connection_name, edge_name};

// The fields of `pageInfo`.
const HAS_NEXT_PAGE: &str = "hasNextPage";
const HAS_PREVIOUS_PAGE: &str = "hasPreviousPage";
const START_CURSOR: &str = "startCursor";
const END_CURSOR: &str = "endCursor";

/// A field that is selected from a connection.
enum ConnectionField<'d> {
    Type,
    Edges(Vec<(Selected<'d>, EdgeField<'d>)>),
    PageInfo(Vec<Selected<'d>>),
    Total,
}

impl ConnectionField<'_> {
    fn needs_records(&self) -> bool {
        matches!(self, ConnectionField::Edges(_) | ConnectionField::PageInfo(_))
    }
}

/// A field that is selected from an edge.
enum EdgeField<'d> {
    Type,
    Cursor,
    Node(RecordShape<'d>),
}

/// A record of a page.
struct Edge<'p> {
    /// Empty if no edge shows its cursor.
    cursor: &'p str,
    record: &'p RawValue,
}

impl<'d> Execution<'d> {
    pub(super) async fn connection(
        &self,
        object: &Arc<Object>,
        selected: &Selected<'d>,
        arguments: &Arguments,
        answer: &mut Answer,
    ) -> Result<()> {
        self.may_read(object).await?;
        let mut wanted = Wanted::default();
        let mut fields = Vec::new();
        for field in self.context().collect(&selected.sets, &connection_name(object)) {
            let shown = match field.field.name.node.as_str() {
                "edges" => ConnectionField::Edges(self.edge_fields(object, &field, &mut wanted)?),
                "pageInfo" => ConnectionField::PageInfo(self.context().collect(&field.sets, LeafType::PageInfo.name())),
                "totalCount" => ConnectionField::Total,
                _ => ConnectionField::Type,
            };
            fields.push((field, shown));
        }
        let (limit, end) = size_and_end(arguments)?;
        let request = ListRequest {
            sort: sort(arguments)?,
            // Without edges and `pageInfo`, no record is read.
            paging: Paging { limit: if fields.iter().any(|(_, shown)| shown.needs_records()) { limit } else { 0 }, offset: 0 },
            select: Some(columns_read(&wanted)),
            expand: wanted.related(),
            count: Some(fields.iter().any(|(_, shown)| matches!(shown, ConnectionField::Total))),
            cursors: cursors(arguments)?,
            connection: Some(ConnectionPaging { end, cursors_of: cursors_of(&fields), flags: flags_of(&fields) }),
            ..matching(arguments)?
        };
        let mut page = self.app.list(self.caller, object.name(), request.checked()?).await?;
        let rows = array_of_rows(&mut page);
        let records: Vec<&RawValue> = serde_json::from_slice(&rows).map_err(Error::internal)?;
        let pagination = page.cursor_pagination().ok_or_else(|| Error::internal("a connection without cursors"))?;
        let cursors = page.cursors.as_ref().map_or(&[][..], |cursors| cursors.of_each.as_slice());
        let cursors = cursors.iter().map(String::as_str).chain(std::iter::repeat(""));
        let edges: Vec<Edge<'_>> = records.iter().zip(cursors).map(|(record, cursor)| Edge { cursor, record }).collect();
        let root = Place::root(selected.key);
        answer.nullable(|answer| {
            answer.object(fields.iter().map(|(field, shown)| (field.key, (field, shown))), |answer, (field, shown)| {
                match shown {
                    ConnectionField::Type => answer.string(&connection_name(object)),
                    ConnectionField::Edges(members) => write_edges(answer, object, &edges, members, &root.key(field.key))?,
                    ConnectionField::PageInfo(members) => {
                        write_page_info(answer, &pagination, members, &root.key(field.key))?;
                    }
                    ConnectionField::Total => match pagination.total_count {
                        Some(total) => answer.json.extend_from_slice(total.to_string().as_bytes()),
                        None => answer.json.extend_from_slice(b"null"),
                    },
                }
                Ok(())
            })
        });
        Ok(())
    }

    fn edge_fields(
        &self,
        object: &Object,
        edges: &Selected<'d>,
        wanted: &mut Wanted,
    ) -> Result<Vec<(Selected<'d>, EdgeField<'d>)>> {
        let members = self.context().collect(&edges.sets, &edge_name(object)).into_iter().map(|member| {
            let shown = match member.field.name.node.as_str() {
                "cursor" => EdgeField::Cursor,
                "node" => EdgeField::Node(RecordShape::of(self.context(), self.view, object, &member.sets, wanted)?),
                _ => EdgeField::Type,
            };
            Ok((member, shown))
        });
        members.collect()
    }
}

/// The records whose cursors the client selects. The others are not made.
fn cursors_of(fields: &[(Selected<'_>, ConnectionField<'_>)]) -> CursorsOf {
    let is_of_each = fields.iter().any(|(_, shown)| match shown {
        ConnectionField::Edges(members) => members.iter().any(|(_, member)| matches!(member, EdgeField::Cursor)),
        ConnectionField::Type | ConnectionField::PageInfo(_) | ConnectionField::Total => false,
    });
    match (is_of_each, has_page_info(fields, START_CURSOR) || has_page_info(fields, END_CURSOR)) {
        (true, _) => CursorsOf::Each,
        (false, true) => CursorsOf::Ends,
        (false, false) => CursorsOf::None,
    }
}

/// The sides of the page at which the client wants to know of further records.
fn flags_of(fields: &[(Selected<'_>, ConnectionField<'_>)]) -> PageFlags {
    PageFlags { has_next_page: has_page_info(fields, HAS_NEXT_PAGE), has_previous_page: has_page_info(fields, HAS_PREVIOUS_PAGE) }
}

/// Whether the client selects a field of `pageInfo`.
fn has_page_info(fields: &[(Selected<'_>, ConnectionField<'_>)], name: &str) -> bool {
    fields.iter().any(|(_, shown)| match shown {
        ConnectionField::PageInfo(members) => members.iter().any(|member| member.field.name.node.as_str() == name),
        ConnectionField::Type | ConnectionField::Edges(_) | ConnectionField::Total => false,
    })
}

/// The number of edges, and the end of the range from which they are taken.
fn size_and_end(arguments: &Arguments) -> Result<(u64, End)> {
    let number = |name: &str| whole_number(arguments, name, 0).map_err(|error| error.with_field(name));
    let (size, end) = match (number(FIRST)?, number(LAST)?) {
        (Some(_), Some(_)) => {
            let message = format!("A connection takes either `{FIRST}` or `{LAST}`.");
            return Err(Error::invalid_request(message).with_field(LAST));
        }
        (Some(first), None) => (first, End::First),
        (None, Some(last)) => (last, End::Last),
        (None, None) => {
            let has = |parameter: ListParameter| arguments.json(parameter.name()).is_some();
            let is_before = has(ListParameter::Before) && !has(ListParameter::After);
            (PAGE_SIZE_DEFAULT, if is_before { End::Last } else { End::First })
        }
    };
    Ok((size.min(PAGE_SIZE_MAX), end))
}

fn cursors(arguments: &Arguments) -> Result<Vec<CursorParameter>> {
    let mut cursors = Vec::new();
    for parameter in [ListParameter::After, ListParameter::Before] {
        if let Some(text) = arguments.read(parameter.name())? {
            cursors.push(CursorParameter { parameter, text, is_of_query: false });
        }
    }
    Ok(cursors)
}

fn write_edges(
    answer: &mut Answer,
    object: &Object,
    edges: &[Edge<'_>],
    members: &[(Selected<'_>, EdgeField<'_>)],
    place: &Place<'_>,
) -> Result<(), GraphqlError> {
    answer.json.push(b'[');
    for (index, edge) in edges.iter().enumerate() {
        if index > 0 {
            answer.json.push(b',');
        }
        let place = place.index(index);
        let begun = answer.json.len();
        answer.json.push(b'{');
        for (member, shown) in members {
            let place = place.key(member.key);
            answer.counted_key(begun, member.key, member.position, &place)?;
            match shown {
                EdgeField::Type => answer.string(&edge_name(object)),
                EdgeField::Cursor => answer.counted_string(edge.cursor, member.position, &place)?,
                EdgeField::Node(shape) => answer.record(shape, edge.record.get(), member.position, &place)?,
            }
        }
        answer.json.push(b'}');
    }
    answer.json.push(b']');
    Ok(())
}

fn write_page_info(
    answer: &mut Answer,
    page: &CursorPaginationAnswer,
    members: &[Selected<'_>],
    place: &Place<'_>,
) -> Result<(), GraphqlError> {
    let begun = answer.json.len();
    answer.json.push(b'{');
    for member in members {
        answer.key(begun, member.key);
        let cursor = match member.field.name.node.as_str() {
            HAS_NEXT_PAGE => {
                answer.json.extend_from_slice(page.has_next_page.to_string().as_bytes());
                continue;
            }
            HAS_PREVIOUS_PAGE => {
                answer.json.extend_from_slice(page.has_previous_page.to_string().as_bytes());
                continue;
            }
            START_CURSOR => &page.start_cursor,
            END_CURSOR => &page.end_cursor,
            _ => {
                answer.string(LeafType::PageInfo.name());
                continue;
            }
        };
        match cursor {
            Some(cursor) => answer.counted_string(cursor, member.position, &place.key(member.key))?,
            None => answer.json.extend_from_slice(b"null"),
        }
    }
    answer.json.push(b'}');
    Ok(())
}

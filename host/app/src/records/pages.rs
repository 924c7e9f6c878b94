//! Reads the page of a list: by its number, or by a cursor.

use std::borrow::Cow;
use std::cmp::Ordering;

use blockbase_query::cursor::position_json;
use blockbase_query::limits::CURSOR_VALUES_BYTES_MAX;
use blockbase_query::plan::{ListPlan, SearchBy, Selection};
use blockbase_query::{CursorPaging, Dialect, End, Position, sql};
use blockbase_schema::{Column, ColumnType, Error, Result};
use blockbase_store::{Connection, DbError, Record};

use crate::records::expand::{Budget, expanded};

/// A page of records as it was read.
#[derive(Debug)]
pub(crate) struct Page {
    /// The records' JSON, separated by commas.
    pub(crate) rows: Vec<u8>,
    /// The number of all matching records. `None` if they are not counted.
    pub(crate) total: Option<u64>,
    pub(crate) has_next_page: bool,
    pub(crate) has_previous_page: bool,
    /// For a page by cursors: the positions of its first and last record, or of all its records, as JSON.
    pub(crate) positions: Vec<Vec<u8>>,
}

/// The positions between which a page by cursors lies, and its request.
#[derive(Debug)]
pub(crate) struct Window {
    pub(crate) paging: CursorPaging,
    pub(crate) after: Option<Position>,
    pub(crate) before: Option<Position>,
}

impl Window {
    /// The position from which rows are read.
    fn begins_at(&self) -> Option<&Position> {
        match self.paging.end {
            End::First => self.after.as_ref(),
            End::Last => self.before.as_ref(),
        }
    }

    /// The position at which reading stops, and the order of the rows there, compared with it.
    fn stops_at(&self) -> Option<(&Position, Ordering)> {
        match self.paging.end {
            End::First => self.before.as_ref().map(|until| (until, Ordering::Less)),
            End::Last => self.after.as_ref().map(|until| (until, Ordering::Greater)),
        }
    }
}

/// Whether reading a list needs several statements.
pub(crate) fn needs_several_statements(plan: &ListPlan, window: Option<&Window>, dialect: Dialect) -> bool {
    let counts = plan.with_count && !plan.knows_total(dialect);
    let has_parts = window.is_some_and(|window| plan.parts(dialect, window.paging.end, window.begins_at()).len() > 1);
    !plan.expand.is_empty() || counts || has_parts
}

/// The maximum number of rows for which a list uses SQLite's search index. With the index, the server reads and sorts every row
/// that matches. With more rows, it is quicker to go through the list in its order, because a page is full after few rows if many
/// rows match.
const CANDIDATES_MAX: i64 = 5000;

/// Decides how rows that contain a text are found. Returns the plan with this decision, and the selection with which a total is
/// counted. They are copied only if the search index is used.
async fn searched<'p>(connection: &mut Connection, plan: &'p ListPlan) -> Result<(Cow<'p, ListPlan>, Cow<'p, Selection>)> {
    let (mut counted, mut chosen) = (Cow::Borrowed(&plan.selection), Cow::Borrowed(plan));
    if let Some(candidates) = sql::candidates(connection.dialect(), &plan.object, &counted, CANDIDATES_MAX + 1) {
        let rows = connection.fetch_rows(candidates).await.map_err(|error| error.on(&plan.object))?;
        let found = rows.iter().map(|row| row.integer(0)).collect::<Result<Vec<i64>, DbError>>()?;
        if rows.len() > CANDIDATES_MAX as usize {
            // The total uses the index in any case, because it has to count every match.
            chosen.to_mut().selection.search_by = SearchBy::Order;
        } else {
            counted.to_mut().search_by = SearchBy::Rows(found.clone());
            chosen.to_mut().selection.search_by = SearchBy::Rows(found);
        }
    }
    Ok((chosen, counted))
}

/// The number of all rows of a selection.
async fn counted_total(connection: &mut Connection, plan: &ListPlan, counted: &Selection) -> Result<u64> {
    let total = match counted.is_everything() {
        true => connection.kept_count(plan.object.id).await?,
        false => {
            let statement = sql::count(connection.dialect(), &plan.object, counted);
            connection.fetch_integer(statement).await.map_err(|error| error.on(&plan.object))?
        }
    };
    Ok(u64::try_from(total).unwrap_or(0))
}

/// Reads the page that a list selects by its number.
pub(crate) async fn run_list(connection: &mut Connection, plan: &ListPlan, bytes_max: usize) -> Result<Page> {
    let object = &plan.object;
    let on = |error: DbError| error.on(object);
    let paging = plan.paging;
    let (plan, counted) = searched(connection, plan).await?;
    let columns: Vec<&Column> = plan.columns.iter().chain(&plan.hidden).map(|index| &object.columns[*index]).collect();
    let statement = sql::list(connection.dialect(), &plan);
    let rows_max = usize::try_from(paging.limit).unwrap_or(usize::MAX);
    let (rows, count, has_more, kept) = match plan.expand.is_empty() {
        true => {
            let page = connection.fetch_json(statement, &columns, rows_max, bytes_max).await.map_err(on)?;
            (page.rows, page.count, page.has_more, page.tail)
        }
        false => {
            let mut budget = Budget::new(bytes_max);
            let mut records = budget.fetch(connection, statement, &columns, plan.hidden.len()).await.map_err(on)?;
            let has_more = records.len() > rows_max;
            records.truncate(rows_max);
            let count = records.len();
            let texts = expanded(connection, &plan.expand, records, &|column| place_of(&plan, column), &mut budget).await?;
            (texts.join(&b','), count, has_more, None)
        }
    };
    let has_previous_page = paging.has_previous_page();
    let page = |total: Option<u64>, has_next_page| Page { rows, total, has_next_page, has_previous_page, positions: Vec::new() };
    if !plan.with_count {
        return Ok(page(None, has_more));
    }
    let total = if let Some(kept) = kept {
        u64::try_from(kept).unwrap_or(0)
    } else if plan.knows_total(connection.dialect()) {
        // This is the first page of an object without records.
        0
    } else if !counted.is_everything() && count < rows_max && (count > 0 || paging.offset == 0) {
        // The page ends before it is full, so the total is known.
        paging.offset + count as u64
    } else {
        counted_total(connection, &plan, &counted).await?
    };
    Ok(page(Some(total), paging.has_next_page(total)))
}

/// The index of a column among the cells of the plan's records.
fn place_of(plan: &ListPlan, column: usize) -> Option<usize> {
    plan.columns.iter().chain(&plan.hidden).position(|index| *index == column)
}

/// The position of a record as JSON.
fn position_of(plan: &ListPlan, record: &Record) -> Result<Vec<u8>> {
    let places = plan.order.iter().map(|(index, _)| place_of(plan, *index));
    let places: Vec<usize> = places.collect::<Option<_>>().ok_or_else(|| Error::internal("a sort key was not read"))?;
    Ok(position_json(places.into_iter().map(|place| record.cell(place))))
}

/// Reads a page by cursors.
///
/// It begins with the rows beyond the position from which the page is read. If these are more than the page has, or if they pass the
/// position at which the page stops, there is a further page.
pub(crate) async fn run_by_cursor(
    connection: &mut Connection,
    plan: &ListPlan,
    window: &Window,
    bytes_max: usize,
) -> Result<Page> {
    let object = &plan.object;
    let (dialect, end) = (connection.dialect(), window.paging.end);
    let (plan, counted) = searched(connection, plan).await?;
    let columns: Vec<&Column> = plan.columns.iter().chain(&plan.hidden).map(|index| &object.columns[*index]).collect();
    let rows_max = usize::try_from(plan.paging.limit).unwrap_or(usize::MAX - 1);
    let mut budget = Budget::new(bytes_max);
    let mut records: Vec<Record> = Vec::new();
    for part in plan.parts(dialect, end, window.begins_at()) {
        let statement = sql::list_part(dialect, &plan, &part, rows_max + 1 - records.len());
        let found = budget.fetch(connection, statement, &columns, plan.hidden.len()).await;
        records.extend(found.map_err(|error| error.on(object))?);
        if records.len() > rows_max {
            break;
        }
    }
    let read = records.len();
    if let Some((until, order)) = window.stops_at() {
        let mut kept = 0;
        for record in &records {
            let position = String::from_utf8(position_of(&plan, record)?).map_err(Error::internal)?;
            let position = plan.position(&position).ok_or_else(|| Error::internal("a record has no position"))?;
            if plan.compare(&position, until) != order {
                break;
            }
            kept += 1;
        }
        records.truncate(kept);
    }
    records.truncate(rows_max);
    let has_more = records.len() < read;
    // Before the first row that was read there are only rows up to the position.
    let has_behind = match window.begins_at() {
        None => false,
        Some(from) => {
            let mut found = false;
            for part in plan.parts_behind(dialect, end, from) {
                let statement = sql::part_has_rows(dialect, &plan, &part);
                found = !connection.fetch_rows(statement).await.map_err(|error| error.on(object))?.is_empty();
                if found {
                    break;
                }
            }
            found
        }
    };
    if end == End::Last {
        records.reverse();
    }
    let positions = positions_of(&plan, &records, window.paging.of_each)?;
    let texts = expanded(connection, &plan.expand, records, &|column| place_of(&plan, column), &mut budget).await?;
    let total = match plan.with_count {
        true => Some(counted_total(connection, &plan, &counted).await?),
        false => None,
    };
    let (has_previous_page, has_next_page) = if end == End::First { (has_behind, has_more) } else { (has_more, has_behind) };
    Ok(Page { rows: texts.join(&b','), total, has_next_page, has_previous_page, positions })
}

/// The positions of the first and the last record, or of each of them.
///
/// # Errors
/// `invalid_request` with `field` if the values of a record do not fit into a cursor.
fn positions_of(plan: &ListPlan, records: &[Record], of_each: bool) -> Result<Vec<Vec<u8>>> {
    let wanted: Vec<&Record> = match (of_each, records) {
        (true, records) => records.iter().collect(),
        (false, [first, .., last]) => vec![first, last],
        (false, [only]) => vec![only, only],
        (false, []) => Vec::new(),
    };
    let mut positions = Vec::with_capacity(wanted.len());
    for record in wanted {
        let position = position_of(plan, record)?;
        if position.len() > CURSOR_VALUES_BYTES_MAX {
            let mut columns = plan.order.iter().map(|(index, _)| &plan.object.columns[*index]);
            let text = columns.find(|column| column.ty == ColumnType::Text).map(|column| column.name.as_str());
            let message = format!(
                "The values of `sort` in a record of the page have more than the {CURSOR_VALUES_BYTES_MAX} bytes of a cursor. Sort by \
                shorter fields, or list pages by their numbers."
            );
            return Err(Error::invalid_request(message).with_field(text.unwrap_or_default()));
        }
        positions.push(position);
    }
    Ok(positions)
}

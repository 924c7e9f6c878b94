//! Reads the page of a list: by its number, or by a cursor.

use std::borrow::Cow;
use std::collections::HashSet;

use blockbase_auth::sha256_hex;
use blockbase_query::cursor::position_json;
use blockbase_query::limits::CURSOR_VALUES_BYTES_MAX;
use blockbase_query::plan::{ListPlan, RelatedBy, SearchBy, Selection};
use blockbase_query::sql::{Attempt, Found, KeyRows, LinkSample, Sample, Statement};
use blockbase_query::{CursorPaging, CursorsOf, Dialect, End, ListParameter, Part, Position, sql};
use blockbase_schema::{Column, Error, Object, Result};
use blockbase_store::{Connection, DbError, Record, RecordsMax, Row};
use uuid::Uuid;

use crate::base::offload::run_offloaded;
use crate::records::expand::{Budget, expanded};

/// A page of records as it was read.
#[derive(Debug)]
pub(crate) struct Page {
    /// The records' JSON, separated by commas.
    pub(crate) rows: Vec<u8>,
    /// The number of all matching records. `None` if they are not counted.
    pub(crate) total: Option<u64>,
    /// Whether there are records on either side. False if the request does not ask for it.
    pub(crate) has_next_page: bool,
    pub(crate) has_previous_page: bool,
    /// For a page by cursors: the marks of its first and last record, of all its records, or of none, as JSON.
    pub(crate) marks: Vec<Vec<u8>>,
}

/// What a cursor contains.
#[derive(Debug)]
pub(crate) enum Mark {
    Position(Position),
    /// A record whose position is too long for a cursor.
    Record {
        id: Uuid,
        /// The digest of its position. If the record moves, the mark means no place in the list any more.
        digest: String,
    },
}

impl Mark {
    /// Reads a mark from JSON. `None` if it does not fit the keys of the list's order.
    pub(crate) fn read(plan: &ListPlan, text: &str) -> Option<Mark> {
        match text.strip_prefix('"').and_then(|text| text.strip_suffix('"')) {
            Some(text) => {
                let (id, digest) = text.split_once(' ')?;
                Some(Mark::Record { id: id.parse().ok()?, digest: digest.to_owned() })
            }
            None => plan.position(text).map(Mark::Position),
        }
    }

    fn write(plan: &ListPlan, record: &Record) -> Result<Vec<u8>> {
        let position = position_of(plan, record)?;
        if position.len() <= CURSOR_VALUES_BYTES_MAX {
            return Ok(position);
        }
        // The last key of every order is `id`.
        let place = plan.order.last().and_then(|(index, _)| place_of(plan, *index));
        let id = place.and_then(|place| record.uuid(place)).ok_or_else(|| Error::internal("an id was not read"))?;
        Ok(format!("\"{id} {}\"", digest_of(&position)?).into_bytes())
    }
}

/// The digest of a position that is JSON.
fn digest_of(position: &[u8]) -> Result<String> {
    let text = std::str::from_utf8(position).map_err(Error::internal)?;
    Ok(run_offloaded(text.len(), || sha256_hex(text)))
}

/// The marks between which a page by cursors lies, and its request.
#[derive(Debug)]
pub(crate) struct Window {
    pub(crate) paging: CursorPaging,
    pub(crate) after: Option<Mark>,
    pub(crate) before: Option<Mark>,
}

impl Window {
    /// Whether the page lies after or before a mark.
    fn is_bounded(&self) -> bool {
        self.after.is_some() || self.before.is_some()
    }
}

/// The positions between which a page lies.
struct Between {
    end: End,
    after: Option<Position>,
    before: Option<Position>,
}

impl Between {
    /// Reads the positions of those marks that are only records.
    ///
    /// # Errors
    /// `invalid_request` with `field` if the caller cannot read such a record any more, or if it has another position now.
    async fn read(connection: &mut Connection, plan: &ListPlan, window: &Window, bytes_max: usize) -> Result<Between> {
        let after = position_at(connection, plan, ListParameter::After, window.after.as_ref(), bytes_max).await?;
        let before = position_at(connection, plan, ListParameter::Before, window.before.as_ref(), bytes_max).await?;
        Ok(Between { end: window.paging.end, after, before })
    }

    /// The position from which rows are read.
    fn begins_at(&self) -> Option<&Position> {
        match self.end {
            End::First => self.after.as_ref(),
            End::Last => self.before.as_ref(),
        }
    }

    /// The position at which reading stops.
    fn stops_at(&self) -> Option<&Position> {
        match self.end {
            End::First => self.before.as_ref(),
            End::Last => self.after.as_ref(),
        }
    }
}

/// Whether reading a list needs several statements.
///
/// If the offset skips all rows, no row has the total. Postgres then reads the page again in one snapshot, because this is seldom.
/// On SQLite, a page with an offset is read in one transaction from the start.
pub(crate) fn needs_several_statements(plan: &ListPlan, window: Option<&Window>, dialect: Dialect) -> bool {
    let may_lack_total = dialect == Dialect::Sqlite && plan.paging.offset > 0;
    let counts = plan.with_count && (may_lack_total || !plan.counts_with_page(dialect));
    !plan.expand.is_empty() || counts || window.is_some_and(Window::is_bounded)
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

/// The keys that lead to a page, if there are few, and whether some of the keys that were read are the same.
async fn found_by_keys(connection: &mut Connection, plan: &ListPlan) -> Result<(Option<Found>, bool)> {
    let Some(Attempt { statement, rows: most }) = sql::keys_of_page(connection.dialect(), plan) else { return Ok((None, false)) };
    let rows = connection.fetch_rows(statement).await.map_err(|error| error.on(&plan.object))?;
    if rows.len() > most {
        let different: HashSet<Option<Uuid>> = rows.iter().map(|row| row.optional_uuid(0)).collect::<Result<_, DbError>>()?;
        return Ok((None, different.len() < rows.len()));
    }
    Ok((Some(keys_in(&rows)?), false))
}

/// The few different keys of a page, if [`found_by_keys`] has found too many, and some of these are the same.
async fn found_by_different_keys(connection: &mut Connection, plan: &ListPlan) -> Result<Option<Found>> {
    let attempt = sql::different_keys_of_page(connection.dialect(), plan);
    let Some(Attempt { statement, rows: most }) = attempt else { return Ok(None) };
    let rows = connection.fetch_rows(statement).await.map_err(|error| error.on(&plan.object))?;
    if rows.len() > most {
        return Ok(None);
    }
    for row in &rows {
        if row.integer(1)? != 0 {
            return Ok(None);
        }
    }
    keys_in(&rows).map(Some)
}

/// The keys in the first cells of these rows. A related row that refers to no row has no key.
fn keys_in(rows: &[Row]) -> Result<Found> {
    let keys = rows.iter().filter_map(|row| row.optional_uuid(0).transpose()).collect::<Result<_, DbError>>()?;
    Ok(Found::Keys(keys))
}

/// How many rows have the foreign keys that lead to a page. `None` if this does not matter for the page.
async fn rows_of_keys(connection: &mut Connection, plan: &ListPlan) -> Result<Option<KeyRows>> {
    let Some(statement) = sql::rows_of_keys(connection.dialect(), plan) else { return Ok(None) };
    let rows = connection.fetch_rows(statement).await.map_err(|error| error.on(&plan.object))?;
    let row = rows.first().ok_or_else(|| Error::internal("keys were not counted"))?;
    Ok(Some(KeyRows { keys: row.integer(0)?, rows_of_first: row.integer(1)?, rows: row.integer(2)? }))
}

/// The places of the rows of a page, if they are among the first ones in its order. If the first rows have only a part of the
/// page, `next` makes a statement for the rest of it, from the number of rows that were found.
async fn found_first(
    connection: &mut Connection,
    plan: &ListPlan,
    first: Option<Attempt>,
    next: impl FnOnce(usize) -> Option<Attempt> + Send,
) -> Result<Option<Found>> {
    let Some(first) = first else { return Ok(None) };
    let (mut places, is_page) = places_of(connection, plan, first).await?;
    if !is_page {
        let Some(next) = next(places.len()) else { return Ok(None) };
        let (rest, is_page) = places_of(connection, plan, next).await?;
        if !is_page {
            return Ok(None);
        }
        places.extend(rest);
    }
    Ok(Some(Found::Places(places)))
}

/// The places that a statement finds, and whether they are all places of the page that the statement looks for.
async fn places_of(connection: &mut Connection, plan: &ListPlan, attempt: Attempt) -> Result<(Vec<i64>, bool)> {
    let rows = connection.fetch_rows(attempt.statement).await.map_err(|error| error.on(&plan.object))?;
    let mut places = rows.iter().map(|row| row.integer(0)).collect::<Result<Vec<i64>, DbError>>()?;
    let is_end = places.last() == Some(&sql::END_OF_PLACES);
    if is_end {
        places.pop();
    }
    let is_page = is_end || places.len() >= attempt.rows;
    Ok((places, is_page))
}

/// Reads the JSON of a page. The statements of `first` are tried one after the other, before the list's own statement.
async fn read_json(
    connection: &mut Connection,
    plan: &ListPlan,
    columns: &[&Column],
    first: [Option<Attempt>; 2],
    list: impl FnOnce() -> Statement + Send,
    bytes_max: usize,
) -> Result<blockbase_store::Page, DbError> {
    let rows_max = usize::try_from(plan.paging.limit).unwrap_or(usize::MAX);
    for Attempt { statement, rows: needed } in first.into_iter().flatten() {
        let page = connection.fetch_json(statement, columns, rows_max, bytes_max).await?;
        if page.count + usize::from(page.has_more) >= needed {
            return Ok(page);
        }
    }
    connection.fetch_json(list(), columns, rows_max, bytes_max).await
}

/// Reads the records of a page or of a part of a list, of which the first `counted` count. The statements of `first` are tried one
/// after the other, before the list's own statement.
async fn read_records(
    connection: &mut Connection,
    plan: &ListPlan,
    columns: &[&Column],
    first: [Option<Attempt>; 2],
    list: impl FnOnce() -> Statement + Send,
    (budget, counted): (&mut Budget, usize),
) -> Result<Vec<Record>, DbError> {
    let hidden = plan.hidden.len();
    for Attempt { statement, rows: needed } in first.into_iter().flatten() {
        let mut left = budget.clone();
        let records = left.fetch(connection, statement, columns, hidden, counted).await?;
        if records.len() >= needed {
            *budget = left;
            return Ok(records);
        }
    }
    budget.fetch(connection, list(), columns, hidden, counted).await
}

/// Decides how a statement that may need all rows of the selection judges a condition on related rows.
pub(crate) async fn related_by(connection: &mut Connection, object: &Object, selection: &Selection) -> Result<RelatedBy> {
    let dialect = connection.dialect();
    if let Some(statement) = sql::sample(dialect, object, selection) {
        let [taken, met, late, rows, related_rows] = integers::<5>(connection, object, statement).await?;
        return Ok(Sample { taken, met, late, rows, related_rows }.related_by());
    }
    if let Some(statement) = sql::link_sample(dialect, object, selection) {
        let [taken, links, met, reads, late, rows, related_rows] = integers::<7>(connection, object, statement).await?;
        return Ok(LinkSample { taken, links, met, reads, late, rows, related_rows }.related_by());
    }
    Ok(RelatedBy::List)
}

/// The integers of the one row that the statement of a sample returns.
async fn integers<const N: usize>(connection: &mut Connection, object: &Object, sample: Statement) -> Result<[i64; N]> {
    let rows = connection.fetch_rows(sample).await.map_err(|error| error.on(object))?;
    let row = rows.first().ok_or_else(|| Error::internal("a sample gave no row"))?;
    let mut integers = [0; N];
    for (index, integer) in integers.iter_mut().enumerate() {
        *integer = row.integer(index)?;
    }
    Ok(integers)
}

/// Stores this decision in a plan, or in a selection. The plan is copied only if the decision is not the usual one.
pub(crate) fn decide<P: Clone>(plan: &mut Cow<'_, P>, by: RelatedBy, selection: impl FnOnce(&mut P) -> &mut Selection) {
    if by != RelatedBy::List {
        selection(plan.to_mut()).related_by = by;
    }
}

/// Makes this decision for a page that no other statement has found.
async fn judged(connection: &mut Connection, plan: &mut Cow<'_, ListPlan>) -> Result<RelatedBy> {
    let by = related_by(connection, &plan.object, &plan.selection).await?;
    decide(plan, by, |plan| &mut plan.selection);
    Ok(by)
}

/// The number of all rows of a selection. `by` is the decision about its related rows, if there already is one.
async fn counted_total(connection: &mut Connection, plan: &ListPlan, counted: &Selection, by: Option<RelatedBy>) -> Result<u64> {
    let total = match counted.is_everything() {
        true => connection.kept_count(plan.object.id).await?,
        false => {
            let by = match by {
                Some(by) => by,
                None => related_by(connection, &plan.object, counted).await?,
            };
            let mut counted = Cow::Borrowed(counted);
            decide(&mut counted, by, |selection| selection);
            let statement = sql::count(connection.dialect(), &plan.object, &counted);
            connection.fetch_integer(statement).await.map_err(|error| error.on(&plan.object))?
        }
    };
    Ok(u64::try_from(total).unwrap_or(0))
}

/// Reads the page that a list selects by its number. If the read is not of one moment (`is_of_one_moment`), the statement of the
/// page is the last one. `None` if the total then has to be read by another statement.
pub(crate) async fn run_list(
    connection: &mut Connection,
    plan: &ListPlan,
    bytes_max: usize,
    is_of_one_moment: bool,
) -> Result<Option<Page>> {
    let object = &plan.object;
    let on = |error: DbError| error.on(object);
    let (paging, dialect) = (plan.paging, connection.dialect());
    let (mut plan, counted) = searched(connection, plan).await?;
    let columns: Vec<&Column> = plan.columns.iter().chain(&plan.hidden).map(|index| &object.columns[*index]).collect();
    let (mut found, has_same_keys) = found_by_keys(connection, &plan).await?;
    if found.is_none() {
        let next = |met| sql::next_of_list(dialect, &plan, met);
        found = found_first(connection, &plan, sql::first_of_list(dialect, &plan), next).await?;
    }
    if found.is_none() && has_same_keys {
        found = found_by_different_keys(connection, &plan).await?;
    }
    if found.is_none()
        && let Some(rows) = rows_of_keys(connection, &plan).await?
    {
        found = found_first(connection, &plan, sql::likely_of_list(dialect, &plan, rows), |_| None).await?;
    }
    let by = match found {
        Some(_) => None,
        None => Some(judged(connection, &mut plan).await?),
    };
    let first = [sql::list_of_keys(dialect, &plan), sql::list_of_first(dialect, &plan)];
    let list = || sql::list(dialect, &plan, found.as_ref());
    let rows_max = usize::try_from(paging.limit).unwrap_or(usize::MAX);
    if !is_of_one_moment && first.iter().all(Option::is_none) {
        connection.ends_with_next();
    }
    let (rows, count, has_more, kept) = match plan.expand.is_empty() {
        true => {
            let page = read_json(connection, &plan, &columns, first, list, bytes_max).await.map_err(on)?;
            (page.rows, page.count, page.has_more, page.tail)
        }
        false => {
            let mut budget = Budget::new(bytes_max);
            let records = read_records(connection, &plan, &columns, first, list, (&mut budget, rows_max)).await;
            let mut records = records.map_err(on)?;
            let has_more = records.len() > rows_max;
            records.truncate(rows_max);
            let (count, kept) = (records.len(), records.first().and_then(Record::total));
            let texts = expanded(connection, &plan.expand, records, &|column| place_of(&plan, column), &mut budget).await?;
            (texts.join(&b','), count, has_more, kept)
        }
    };
    let has_previous_page = paging.has_previous_page();
    let page = |total: Option<u64>, has_next_page| Page { rows, total, has_next_page, has_previous_page, marks: Vec::new() };
    if !plan.with_count {
        return Ok(Some(page(None, has_more)));
    }
    let total = if let Some(kept) = kept {
        u64::try_from(kept).unwrap_or(0)
    } else if count < rows_max && (count > 0 || paging.offset == 0) {
        // The page ends before it is full, so the total is known.
        paging.offset + count as u64
    } else if plan.counts_with_page(dialect) && !is_of_one_moment {
        return Ok(None);
    } else {
        counted_total(connection, &plan, &counted, by).await?
    };
    Ok(Some(page(Some(total), paging.has_next_page(total))))
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

/// The position that a mark means. A record is read again.
async fn position_at(
    connection: &mut Connection,
    plan: &ListPlan,
    parameter: ListParameter,
    mark: Option<&Mark>,
    bytes_max: usize,
) -> Result<Option<Position>> {
    let (id, digest) = match mark {
        None => return Ok(None),
        Some(Mark::Position(position)) => return Ok(Some(position.clone())),
        Some(Mark::Record { id, digest }) => (*id, digest),
    };
    let columns: Vec<&Column> = plan.order.iter().map(|(index, _)| &plan.object.columns[*index]).collect();
    let statement = sql::position_of(connection.dialect(), plan, id);
    let found = connection.fetch_records(statement, &columns, 0, RecordsMax::bytes(bytes_max)).await;
    let found = found.map_err(|error| error.on(&plan.object))?;
    let position = found.first().map(|record| position_json((0..columns.len()).map(|place| record.cell(place))));
    if let Some(position) = position
        && digest_of(&position)? == *digest
    {
        return position_from(plan, position).map(Some);
    }
    let name = parameter.name();
    let message = format!(
        "`{name}` is the cursor of a record with long values. This record is gone, or these values have changed. `{name}` with an \
        empty text reads from the {} of the list.",
        if parameter == ListParameter::Before { "end" } else { "beginning" }
    );
    Err(Error::invalid_request(message).with_field(name))
}

fn position_from(plan: &ListPlan, json: Vec<u8>) -> Result<Position> {
    let json = String::from_utf8(json).map_err(Error::internal)?;
    plan.position(&json).ok_or_else(|| Error::internal("a record has no position"))
}

/// Whether any of these parts of a list has rows.
async fn has_rows(connection: &mut Connection, plan: &ListPlan, parts: &[Part]) -> Result<bool> {
    for part in parts {
        let statement = sql::part_has_rows(connection.dialect(), plan, part);
        if !connection.fetch_rows(statement).await.map_err(|error| error.on(&plan.object))?.is_empty() {
            return Ok(true);
        }
    }
    Ok(false)
}

/// Reads a page by cursors.
///
/// It has the first rows between the positions at which reading begins and stops. There is a further page if these are not all
/// rows between the two, or if there are rows from the second position on.
pub(crate) async fn run_by_cursor(
    connection: &mut Connection,
    plan: &ListPlan,
    window: &Window,
    bytes_max: usize,
) -> Result<Page> {
    let object = &plan.object;
    let (dialect, end, flags) = (connection.dialect(), window.paging.end, window.paging.flags);
    let between = Between::read(connection, plan, window, bytes_max).await?;
    let (mut plan, counted) = searched(connection, plan).await?;
    let columns: Vec<&Column> = plan.columns.iter().chain(&plan.hidden).map(|index| &object.columns[*index]).collect();
    let rows_max = usize::try_from(plan.paging.limit).unwrap_or(usize::MAX - 1);
    // One more row shows whether there are more.
    let read_max = rows_max + usize::from(flags.ahead(end));
    let mut budget = Budget::new(bytes_max);
    let mut records: Vec<Record> = Vec::new();
    let (mut by_keys, has_same_keys) = found_by_keys(connection, &plan).await?;
    let (mut by, mut has_read_keys, mut key_rows) = (None, by_keys.is_some(), None);
    for part in plan.parts(dialect, end, between.begins_at(), between.stops_at()) {
        let left = read_max - records.len();
        if left == 0 {
            break;
        }
        let mut first = match by_keys {
            Some(_) => None,
            None => {
                let next = |met| sql::next_of_part(dialect, &plan, &part, left, met);
                found_first(connection, &plan, sql::first_of_part(dialect, &plan, &part, left), next).await?
            }
        };
        if first.is_none() && !has_read_keys {
            has_read_keys = true;
            if has_same_keys {
                by_keys = found_by_different_keys(connection, &plan).await?;
            }
            key_rows = if by_keys.is_none() { rows_of_keys(connection, &plan).await? } else { None };
        }
        if let (None, None, Some(rows)) = (&by_keys, &first, key_rows) {
            let likely = sql::likely_of_part(dialect, &plan, &part, left, rows);
            first = found_first(connection, &plan, likely, |_| None).await?;
        }
        let known = by_keys.as_ref().or(first.as_ref());
        if known.is_none() && by.is_none() {
            by = Some(judged(connection, &mut plan).await?);
        }
        let attempts = [sql::part_of_keys(dialect, &plan, &part, left), sql::part_of_first(dialect, &plan, &part, left)];
        let of_page = rows_max - records.len();
        let list = || sql::list_part(dialect, &plan, &part, left, known);
        let read = read_records(connection, &plan, &columns, attempts, list, (&mut budget, of_page)).await;
        records.extend(read.map_err(|error| error.on(object))?);
    }
    let has_more_between = records.len() > rows_max;
    records.truncate(rows_max);
    let is_ahead = match between.stops_at() {
        Some(until) if flags.ahead(end) && !has_more_between => {
            has_rows(connection, &plan, &plan.parts_ahead(dialect, end, between.begins_at(), until)).await?
        }
        _ => has_more_between,
    };
    // Before the first row that was read there are only rows up to the position.
    let is_behind = match between.begins_at() {
        Some(from) if flags.behind(end) => has_rows(connection, &plan, &plan.parts_behind(dialect, end, from)).await?,
        _ => false,
    };
    if end == End::Last {
        records.reverse();
    }
    let marks = marks_of(&plan, &records, window.paging.cursors_of)?;
    let texts = expanded(connection, &plan.expand, records, &|column| place_of(&plan, column), &mut budget).await?;
    let total = match plan.with_count {
        true => Some(counted_total(connection, &plan, &counted, by).await?),
        false => None,
    };
    let (has_previous_page, has_next_page) = if end == End::First { (is_behind, is_ahead) } else { (is_ahead, is_behind) };
    Ok(Page { rows: texts.join(&b','), total, has_next_page, has_previous_page, marks })
}

/// The marks of the first and the last record, of each of them, or of none.
fn marks_of(plan: &ListPlan, records: &[Record], cursors_of: CursorsOf) -> Result<Vec<Vec<u8>>> {
    let wanted: Vec<&Record> = match (cursors_of, records) {
        (CursorsOf::None, _) | (_, []) => Vec::new(),
        (CursorsOf::Each, records) => records.iter().collect(),
        (CursorsOf::Ends, [only]) => vec![only, only],
        (CursorsOf::Ends, [first, .., last]) => vec![first, last],
    };
    wanted.into_iter().map(|record| Mark::write(plan, record)).collect()
}

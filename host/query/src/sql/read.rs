//! Reads: lists, counts, aggregates, single records, related records.

use std::collections::BTreeSet;
use std::sync::Arc;

use blockbase_schema::{ColumnType, Object, RelationShape, Value, system};
use uuid::Uuid;

use super::found::{self, Found};
use super::kept;
use super::param::{Param, Statement};
use super::related::{Page, is_by_creation};
use super::search::trigram_query;
use super::total::{stored, total};
use super::write::link_sides;
use super::writer::{Lead, Place, Writer};
use crate::Condition;
use crate::access::Scope;
use crate::aggregate::{Function, OnePlan};
use crate::cursor::Part;
use crate::ddl::{link_table, search_table};
use crate::dialect::{Dialect, quote};
use crate::expand::ExpandPlan;
use crate::limits::PAGE_SIZE_MAX;
use crate::plan::{ListPlan, NamePlan, RecordPlan, SearchBy, Selection};

/// Reads the rows of a page. If no total is requested, it reads one more row, which shows whether there is a next page. Otherwise
/// it may return the total as an additional column, so that the rows and the total are from one snapshot
/// ([`ListPlan::counts_with_page`]). It may be null if the page is not full, because the rows are then the last ones.
///
/// If SQLite has to sort, it sorts rowids, and reads the rows of the page afterwards. Otherwise it would keep complete rows in
/// memory, however large they are, even those that the offset skips.
///
/// `found` is what was found about the rows before.
pub fn list(dialect: Dialect, plan: &ListPlan, found: Option<&Found>) -> Statement {
    let (part, limit) = (Part::default(), limit_of(plan));
    let read = found.and_then(|found| found::rows(plan, &part, found, limit));
    let write = || rows(dialect, plan, &part, &[], plan.counts_with_page(dialect), Some(limit));
    read.unwrap_or_else(|| kept::list(dialect, plan, limit, write))
}

/// Reads at most `rows_max` rows of a part of the list. `found` is as in [`list`].
pub fn list_part(dialect: Dialect, plan: &ListPlan, part: &Part, rows_max: usize, found: Option<&Found>) -> Statement {
    let limit = i64::try_from(rows_max).unwrap_or(i64::MAX);
    let read = found.and_then(|found| found::rows(plan, part, found, limit));
    read.unwrap_or_else(|| rows(dialect, plan, part, &[], false, Some(limit)))
}

/// The number of rows that a list reads.
pub(super) fn limit_of(plan: &ListPlan) -> i64 {
    i64::try_from(plan.paging.limit).unwrap_or(i64::MAX - 1) + i64::from(!plan.with_count)
}

/// Returns a row if a part of the list has any rows.
pub fn part_has_rows(dialect: Dialect, plan: &ListPlan, part: &Part) -> Statement {
    let mut writer = Writer::new(dialect, &plan.object);
    let source = writer.source(&plan.object, &plan.selection.scope, None);
    writer.sql.push_str(&format!("SELECT 1 FROM {source}"));
    writer.begin_at(plan, part);
    // Most rows that such a statement reads are in the part, and the first one is enough.
    writer.looks_at_few = true;
    writer.selection(&plan.object, &plan.selection);
    // By the index, the nearest rows come first. These were on the page before, so most of them meet the conditions.
    let keys = order_keys(dialect, plan, part, part.led_keys);
    if !keys.is_empty() {
        writer.sql.push_str(&format!(" ORDER BY {keys}"));
    }
    writer.sql.push_str(" LIMIT 1");
    writer.finish()
}

/// The values of the sort keys of one record, if the caller may read it.
pub fn position_of(dialect: Dialect, plan: &ListPlan, id: Uuid) -> Statement {
    let (object, scope) = (&plan.object, &plan.selection.scope);
    let mut writer = Writer::new(dialect, object);
    writer.sql.push_str("SELECT ");
    writer.columns(object, plan.order.iter().map(|(index, _)| *index));
    let source = writer.source(object, scope, None);
    let id = writer.bind(Param::Uuid(Some(id)));
    let mut tests = vec![format!("\"id\" = {id}")];
    tests.extend(writer.scope(object, scope));
    writer.sql.push_str(&format!(" FROM {source}"));
    writer.where_clause(&tests);
    writer.finish()
}

/// All rows of the plan in its order, or those of the window. After the columns, the result has the names of related records.
pub fn export(dialect: Dialect, plan: &ListPlan, names: &[NamePlan], limit: Option<u64>) -> Statement {
    rows(dialect, plan, &Part::default(), names, false, limit.map(|limit| i64::try_from(limit).unwrap_or(i64::MAX)))
}

pub(super) fn rows(
    dialect: Dialect,
    plan: &ListPlan,
    part: &Part,
    names: &[NamePlan],
    with_total: bool,
    limit: Option<i64>,
) -> Statement {
    let mut writer = Writer::of_page(dialect, &plan.object, plan.paging);
    writer.sql.push_str("SELECT ");
    writer.columns(&plan.object, plan.columns.iter().chain(&plan.hidden).copied());
    for (number, name) in names.iter().enumerate() {
        writer.name(&plan.object, name, number);
    }
    let is_total_stored = plan.selection.is_everything();
    if with_total && is_total_stored {
        let stored = stored(&mut writer, &plan.object);
        [", ", &stored, " AS svc_total"].iter().for_each(|part| writer.sql.push_str(part));
    }
    let by_place = dialect == Dialect::Sqlite && !plan.follows_index();
    if by_place {
        writer.sql.push_str(" FROM (SELECT svc_rowid AS svc_place");
    }
    let by_id = dialect == Dialect::Postgres && limit.is_some_and(|limit| is_deep(plan, limit));
    if by_id {
        writer.sql.push_str(&format!(" FROM {} WHERE \"id\" = ANY(ARRAY(SELECT \"id\"", quote(plan.object.name())));
    }
    let source = writer.source(&plan.object, &plan.selection.scope, None);
    writer.sql.push_str(" FROM ");
    writer.sql.push_str(&source);
    writer.begin_at(plan, part);
    let keys = order_keys(dialect, plan, part, plan.order.len());
    match limit {
        Some(limit) if by_place && plan.is_in_order_of_index() && !matches!(plan.selection.scope, Scope::Seen(_)) => {
            let page = Page {
                keys: &keys,
                is_by_creation: is_by_creation(plan),
                descends: plan.order[0].1 != part.is_reversed,
                limit,
                offset: writer.skipped(),
            };
            let tests = writer.page_tests(&plan.object, &plan.selection, &page);
            writer.where_clause(&tests);
        }
        _ => writer.selection(&plan.object, &plan.selection),
    }
    writer.sql.push_str(" ORDER BY ");
    writer.sql.push_str(&keys);
    // SQLite ignores the order of a subquery without a limit, and accepts no offset without a limit.
    let limit = limit.or_else(|| (dialect == Dialect::Sqlite).then_some(i64::MAX));
    let limit = limit.map(|limit| writer.bind(Param::from(limit)));
    if let Some(limit) = &limit {
        writer.sql.push_str(" LIMIT ");
        writer.sql.push_str(limit);
    }
    let offset = writer.offset();
    writer.sql.push_str(&offset);
    if by_id {
        writer.sql.push_str(&format!(")) ORDER BY {keys}"));
    }
    if let Some(limit) = limit.filter(|_| with_total && !is_total_stored) {
        count_if_full(&mut writer, &limit, |writer| total(writer, &plan.object, &plan.selection));
    }
    if by_place {
        rows_at_places(&mut writer, &plan.object, &plan.selection.scope);
    }
    writer.finish()
}

/// The smallest offset with which Postgres reads the ids of the page first, and then its rows by their ids. Otherwise Postgres would
/// also read the columns of the skipped rows. That takes as long as finding these rows.
const DEEP_OFFSET_MIN: u64 = 5_000;

/// Whether Postgres reads a page by ids. A row whose cells are hidden is read only from the source that hides them.
pub(super) fn is_deep(plan: &ListPlan, limit: i64) -> bool {
    let is_page = u64::try_from(limit).is_ok_and(|limit| limit <= PAGE_SIZE_MAX + 1);
    is_page && plan.paging.offset >= DEEP_OFFSET_MIN && !matches!(plan.selection.scope, Scope::Seen(_))
}

/// Adds the total to the rows of a page. They are only counted if the page is full. `total` writes the SELECT that counts them.
///
/// A table of `WITH` that is materialized keeps its rows in their order.
pub(super) fn count_if_full(writer: &mut Writer, limit: &str, total: impl FnOnce(&mut Writer) -> String) {
    let page = std::mem::take(&mut writer.sql);
    writer.add_table("svc_page", page);
    let total = total(writer);
    writer.sql.push_str(&format!(
        "SELECT svc_page.*, CASE WHEN (SELECT count(*) FROM svc_page) = {limit} THEN ({total}) END AS svc_total FROM svc_page"
    ));
}

/// The first `most` sort keys of a part.
///
/// SQLite does not notice that a key has one value in all rows of a span, so it would sort them. Postgres does, unless the
/// value is null: then it only uses the index if the statement sorts by this key too.
pub(super) fn order_keys(dialect: Dialect, plan: &ListPlan, part: &Part, most: usize) -> String {
    let span = part.span().filter(|_| dialect == Dialect::Sqlite);
    let constant = if dialect == Dialect::Sqlite { part.constant_keys() } else { 0 };
    let mut keys = String::new();
    for (place, (index, descends)) in plan.order.iter().enumerate().take(most).skip(constant) {
        let (column, descends) = (&plan.object.columns[*index], *descends != part.is_reversed);
        let name = quote(&column.name);
        if !keys.is_empty() {
            keys.push_str(", ");
        }
        // The span has no nulls in its first key.
        keys.push_str(&match span.is_some_and(|span| !span.has_null() && span.equal_keys() == place) {
            true => dialect.order_of_values(&name, descends),
            false => dialect.order(column, &name, descends),
        });
    }
    keys
}

/// Ends a statement that reads the rows of a page by their rowids. `CROSS JOIN` prevents SQLite from reversing the join, so that
/// the rows come in the order of the page.
pub(super) fn rows_at_places(writer: &mut Writer, object: &Object, scope: &Scope) {
    let (table, source) = (quote(object.name()), writer.source(object, scope, None));
    writer.sql.push_str(&format!(") AS svc_page CROSS JOIN {source} ON {table}.svc_rowid = svc_page.svc_place"));
}

/// The ids of at most `most` rows of the selection, in ascending order. If `among` is given, only these ids count.
pub fn ids(dialect: Dialect, object: &Object, selection: &Selection, among: Option<Vec<Uuid>>, most: usize) -> Statement {
    let mut writer = Writer::new(dialect, object);
    let source = writer.source(object, &selection.scope, None);
    writer.sql.push_str(&format!("SELECT \"id\" FROM {source}"));
    let mut tests = Vec::new();
    if let Some(among) = among {
        let list = writer.bind(Param::UuidList(among));
        tests.push(dialect.among("\"id\"", &list));
        writer.looks_at_few = true;
    }
    tests.extend(writer.selection_tests(object, selection));
    writer.where_clause(&tests);
    let most = writer.bind(Param::from(i64::try_from(most).unwrap_or(i64::MAX)));
    writer.sql.push_str(&format!(" ORDER BY \"id\" LIMIT {most}"));
    writer.finish()
}

/// Locks, of each list of rows, those that are within the scope beside it. `None` if the engine has no row locks.
pub fn lock(dialect: Dialect, object: &Object, lists: Vec<(&Scope, Vec<Uuid>)>) -> Option<Statement> {
    if dialect == Dialect::Sqlite {
        return None;
    }
    let mut writer = Writer::new(dialect, object);
    let mut alternatives = Vec::with_capacity(lists.len());
    for (scope, ids) in lists {
        let list = writer.bind(Param::UuidList(ids));
        let mut tests = vec![dialect.among("\"id\"", &list)];
        tests.extend(writer.scope(object, scope));
        alternatives.push(format!("({})", tests.join(" AND ")));
    }
    writer.sql.push_str(&format!("SELECT \"id\" FROM {}", quote(object.name())));
    writer.where_clause(&[alternatives.join(" OR ")]);
    // All transactions lock the rows in the same order, so that two of them do not wait for each other.
    writer.sql.push_str(" ORDER BY \"id\" FOR UPDATE");
    Some(writer.finish())
}

/// At most `most` rows that the search index of SQLite finds as candidates. `None` if the index cannot be used for the search.
pub fn candidates(dialect: Dialect, object: &Object, selection: &Selection, most: i64) -> Option<Statement> {
    let (Dialect::Sqlite, SearchBy::Index) = (dialect, &selection.search_by) else { return None };
    let term = selection.indexed_term(object)?;
    let index = search_table(object);
    let mut writer = Writer::new(dialect, object);
    let query = writer.bind(Param::Text(Some(trigram_query(term))));
    let most = writer.bind(Param::from(most));
    writer.sql.push_str(&format!("SELECT rowid FROM {index} WHERE {index} MATCH {query} LIMIT {most}"));
    Some(writer.finish())
}

/// Returns one row: the number of rows in the selection, the number of those with a value, and the sum, least or greatest value
/// as text.
pub fn aggregate(dialect: Dialect, plan: &OnePlan) -> Statement {
    let mut writer = Writer::new(dialect, &plan.object);
    let column = plan.computed.column.map(|index| &plan.object.columns[index]);
    let name = column.map(|column| quote(&column.name));
    let value = match (&name, column) {
        (Some(name), Some(column)) => aggregate_value(dialect, plan.computed.function, name, column.ty),
        _ => "NULL".to_owned(),
    };
    let counted = name.unwrap_or_else(|| "*".to_owned());
    let cast = if dialect == Dialect::Postgres { "::text" } else { "" };
    let source = writer.source(&plan.object, &plan.selection.scope, None);
    writer.sql.push_str(&format!("SELECT count(*), count({counted}), ({value}){cast} FROM {source}"));
    writer.selection(&plan.object, &plan.selection);
    writer.finish()
}

pub(super) fn aggregate_value(dialect: Dialect, function: Function, name: &str, ty: ColumnType) -> String {
    let scale = match ty {
        ColumnType::Decimal { scale } => scale,
        _ => 0,
    };
    match (function, dialect) {
        (Function::Count, _) => "NULL".to_owned(),
        // The sum is exact for any order of the rows, because doubles are added as decimal numbers with their shortest digits.
        (Function::Sum | Function::Avg, Dialect::Sqlite) => format!("svc_sum({name}, {scale})"),
        (Function::Sum | Function::Avg, Dialect::Postgres) => match ty {
            ColumnType::Float => format!("sum({name}::text::numeric)"),
            _ => format!("sum({name})"),
        },
        (Function::Min | Function::Max, Dialect::Sqlite) => format!("svc_number_text({}({name}), {scale})", function.name()),
        (Function::Min | Function::Max, Dialect::Postgres) => format!("{}({name})", function.name()),
    }
}

/// The record with all columns and its version. With `for_update`, locks its row if the engine has row locks.
pub fn get(dialect: Dialect, plan: &RecordPlan, for_update: bool) -> Statement {
    match for_update {
        true => written_record(dialect, plan, true),
        false => kept::record(dialect, plan, || written_record(dialect, plan, false)),
    }
}

/// Does the same, and writes the text in any case.
pub(super) fn written_record(dialect: Dialect, plan: &RecordPlan, for_update: bool) -> Statement {
    let mut writer = Writer::new(dialect, &plan.object);
    writer.sql.push_str("SELECT ");
    match for_update {
        true => writer.record_columns(&plan.object),
        false => writer.versioned_columns(&plan.object),
    }
    let source = writer.source(&plan.object, &plan.scope, None);
    writer.sql.push_str(&format!(" FROM {source}"));
    writer.record(plan);
    if for_update && dialect == Dialect::Postgres {
        writer.sql.push_str(" FOR UPDATE");
    }
    writer.finish()
}

/// Records by id, with all columns and their versions. Locks the rows if the engine has row locks.
pub fn get_many(dialect: Dialect, object: &Object, scope: &Scope, ids: Vec<Uuid>) -> Statement {
    let mut writer = Writer::new(dialect, object);
    let list = writer.bind(Param::UuidList(ids));
    let mut tests = vec![dialect.among("\"id\"", &list)];
    tests.extend(writer.scope(object, scope));
    writer.sql.push_str("SELECT ");
    writer.record_columns(object);
    writer.sql.push_str(&format!(" FROM {}", quote(object.name())));
    writer.where_clause(&tests);
    // All transactions lock the rows in the same order, so that two of them do not wait for each other.
    writer.sql.push_str(" ORDER BY \"id\"");
    if dialect == Dialect::Postgres {
        writer.sql.push_str(" FOR UPDATE");
    }
    writer.finish()
}

/// Records by id, with all columns and their versions, and with null in the cells that cannot be read. It locks nothing.
pub fn read_many(dialect: Dialect, object: &Object, scope: &Scope, ids: Vec<Uuid>) -> Statement {
    let mut writer = Writer::new(dialect, object);
    let list = writer.bind(Param::UuidList(ids));
    writer.sql.push_str("SELECT ");
    writer.versioned_columns(object);
    let source = writer.source(object, scope, None);
    let mut tests = vec![dialect.among("\"id\"", &list)];
    tests.extend(writer.scope(object, scope));
    writer.sql.push_str(&format!(" FROM {source}"));
    writer.where_clause(&tests);
    writer.finish()
}

/// The size in bytes of the long values of the records that [`get_many`] reads. The statement returns only this integer. `None`
/// if the object has no columns for long values.
pub fn get_many_bytes(dialect: Dialect, object: &Object, scope: &Scope, ids: Vec<Uuid>) -> Option<Statement> {
    let mut writer = Writer::new(dialect, object);
    let bytes = writer.long_bytes(object)?;
    let list = writer.bind(Param::UuidList(ids));
    let mut tests = vec![dialect.among("\"id\"", &list)];
    tests.extend(writer.scope(object, scope));
    writer.sql.push_str(&format!("SELECT {bytes} FROM {}", quote(object.name())));
    writer.where_clause(&tests);
    Some(writer.finish())
}

/// The id and the creator of records.
pub fn owners(dialect: Dialect, object: &Object, ids: Vec<Uuid>) -> Statement {
    let mut writer = Writer::new(dialect, object);
    let list = writer.bind(Param::UuidList(ids));
    writer.sql.push_str(&format!("SELECT \"id\", \"created_by\" FROM {}", quote(object.name())));
    writer.where_clause(&[dialect.among("\"id\"", &list)]);
    writer.finish()
}

/// Reads the related records that `keys` lead to, with their shown and hidden columns, in the list's default order. Depending on
/// the shape, `keys` are the ids of the related records, or of the records that they belong to. For links, the last column is the
/// id of the record on the near side.
pub fn related(dialect: Dialect, plan: &ExpandPlan, keys: Vec<Uuid>) -> Statement {
    let object = &plan.object;
    let mut writer = Writer::new(dialect, object);
    let list = writer.bind(Param::UuidList(keys));
    let most = writer.bind(Param::from(i64::try_from(crate::limits::EXPAND_RECORDS_MAX).unwrap_or(i64::MAX) + 1));
    let table = quote(object.name());
    let order = match object.column(system::CREATED_AT) {
        Some(column) => {
            let created_at = dialect.order(column, &format!("{table}.\"created_at\""), true);
            format!("ORDER BY {created_at}, {table}.\"id\" DESC LIMIT {most}")
        }
        None => format!("ORDER BY {table}.\"id\" LIMIT {most}"),
    };
    let columns = plan.columns.iter().chain(&plan.hidden);
    let columns: Vec<String> = columns.map(|index| format!("{table}.{}", quote(&object.columns[*index].name))).collect();
    let columns = columns.join(", ");
    let among = |column: &str| dialect.among(column, &list);
    let lead: Option<Lead<'_>> = match plan.shape {
        RelationShape::Reverse { column, .. } => Some((column, &among)),
        RelationShape::Forward { .. } | RelationShape::Linked { .. } => None,
    };
    let source = writer.source_led_by(object, &plan.scope, None, lead);
    let (from, test, near) = match plan.shape {
        RelationShape::Forward { .. } => (source, dialect.among("\"id\"", &list), None),
        RelationShape::Reverse { column, .. } => (source, dialect.among(&quote(&object.columns[column].name), &list), None),
        RelationShape::Linked { relationship_id, is_source } => {
            let (near, far) = link_sides(is_source);
            let links = link_table(relationship_id);
            (
                format!("{links} JOIN {source} ON {table}.\"id\" = {links}.{far}"),
                dialect.among(&format!("{links}.{near}"), &list),
                Some(format!("{links}.{near}")),
            )
        }
    };
    let mut tests = vec![test];
    if let (Some(near), Some((owner, rows))) = (&near, &plan.near) {
        let place = Place::inside(owner, "svc_near");
        let owned = writer.scope_at(&place, rows);
        writer.related_tables += 1;
        let owned = if owned.is_empty() { String::new() } else { format!(" AND {}", owned.join(" AND ")) };
        tests.push(format!("EXISTS (SELECT 1 FROM {} AS svc_near WHERE svc_near.\"id\" = {near}{owned})", quote(owner.name())));
    }
    tests.extend(writer.scope(object, &plan.scope));
    let and = |column: Option<&str>| column.map(|column| format!(", {column}")).unwrap_or_default();
    match dialect {
        Dialect::Postgres => writer.sql.push_str(&format!("SELECT {columns}{} FROM {from}", and(near.as_deref()))),
        // As in [`list`], SQLite sorts rowids and not rows.
        Dialect::Sqlite => {
            let outer = and(near.as_ref().map(|_| "svc_page.svc_near"));
            let inner = and(near.as_ref().map(|near| format!("{near} AS svc_near")).as_deref());
            writer
                .sql
                .push_str(&format!("SELECT {columns}{outer} FROM (SELECT {table}.svc_rowid AS svc_place{inner} FROM {from}"));
        }
    }
    writer.where_clause(&tests);
    writer.sql.push_str(&format!(" {order}"));
    if dialect == Dialect::Sqlite {
        rows_at_places(&mut writer, object, &plan.scope);
    }
    writer.finish()
}

/// Returns a row if an image of a record meets a condition. The image replaces the object's table. A condition on related rows
/// counts as false if the row that led to them no longer exists.
pub fn image_meets(dialect: Dialect, object: &Object, condition: &Condition, image: &[Value]) -> Statement {
    let mut writer = Writer::new(dialect, object);
    // Links and the foreign keys of other objects refer to the id.
    let mut columns: BTreeSet<usize> = object.column_index(system::ID).into_iter().collect();
    condition.columns_into(&mut columns);
    let cells: Vec<String> = columns
        .into_iter()
        .map(|index| {
            let column = &object.columns[index];
            let value = writer.bind(Param::of(column.ty, image.get(index).cloned().unwrap_or(Value::Null)));
            // The collation of the column in the table.
            let collation = match (dialect, column.ty) {
                (Dialect::Postgres, ColumnType::Text | ColumnType::TextList) => " COLLATE \"C\"",
                _ => "",
            };
            format!("({value}){collation} AS {}", quote(&column.name))
        })
        .collect();
    writer.judges_image = true;
    let tests = writer.scope(object, &Scope::Where(Arc::new(condition.clone())));
    writer.sql.push_str(&format!("SELECT 1 FROM (SELECT {}) AS {}", cells.join(", "), quote(object.name())));
    writer.where_clause(&tests);
    writer.finish()
}

/// The ids of those records that a scope includes.
pub fn visible(dialect: Dialect, object: &Object, scope: &Scope, ids: Vec<Uuid>) -> Statement {
    let mut writer = Writer::new(dialect, object);
    let list = writer.bind(Param::UuidList(ids));
    let source = writer.source(object, scope, None);
    let mut tests = vec![dialect.among("\"id\"", &list)];
    tests.extend(writer.scope(object, scope));
    writer.sql.push_str(&format!("SELECT \"id\" FROM {source}"));
    writer.where_clause(&tests);
    writer.finish()
}

/// Whether a record meets each of the conditions: one row with a 1, and then a 1 or 0 for each of them. No row if the record does
/// not exist.
pub fn met(dialect: Dialect, object: &Object, id: Uuid, conditions: &[Condition]) -> Statement {
    let mut writer = Writer::new(dialect, object);
    let place = Place::qualified(object);
    let test = |condition: &Condition| format!(", CASE WHEN {} THEN 1 ELSE 0 END", writer.condition(&place, condition));
    let tests: Vec<String> = conditions.iter().map(test).collect();
    let id = writer.bind(Param::Uuid(Some(id)));
    writer.sql.push_str(&format!("SELECT 1{} FROM {}", tests.concat(), quote(object.name())));
    writer.where_clause(&[format!("{} = {id}", place.outside(system::ID))]);
    writer.finish()
}

#[cfg(test)]
mod tests;

//! Reads records: list, get and aggregate, with their related records or in groups.

use std::borrow::Cow;
use std::collections::HashSet;
use std::sync::Arc;

use blockbase_query::aggregate::{AggregatePlan, GroupsPlan, OnePlan};
use blockbase_query::expand::ExpandPlan;
use blockbase_query::limits::PAGE_SIZE_MAX;
use blockbase_query::plan::{ListPlan, RecordPlan, Selection};
use blockbase_query::{
    Access, Action, AggregateRequest, Bounds, Dialect, GrantContext, ListParameter, ListRequest, Paging, Reading, Related, Scope,
    Where, expand, sql,
};
use blockbase_schema::{Code, Column, Error, Object, Registry, Relation, RelationShape, Result, USERS, excerpt, json};
use blockbase_store::{Connection, Cost, Read, Record, RecordsMax};
use schemars::JsonSchema;
use serde::Serialize;
use uuid::Uuid;

use crate::App;
use crate::access::quota::ScanPermit;
use crate::base::answer::text_of;
use crate::base::offload::run_offloaded;
use crate::caller::Caller;
use crate::outbox::checks::within;
use crate::records::cursors::{CursorPaginationAnswer, CursorPurpose, PageCursors};
use crate::records::expand::{Budget, expanded};
use crate::records::pages::{Page, decide, needs_several_statements, related_by, run_by_cursor, run_list};
use crate::records::versions::{RecordAnswer, version_of};

/// A page of records.
#[derive(Debug)]
pub struct ListAnswer {
    /// The records' JSON, separated by commas.
    pub rows: Vec<u8>,
    /// The number of all matching records. `None` if the caller did not request it.
    pub total: Option<u64>,
    /// False if the request does not ask for it.
    pub has_next_page: bool,
    pub paging: Paging,
    /// The cursors of the page, if the request asks for a page by cursors.
    pub cursors: Option<PageCursors>,
    /// Warnings about unknown relation keys.
    pub warnings: Vec<String>,
}

/// A longer page keeps no spare memory.
const LARGE_BYTES: usize = 64 * 1024;

impl ListAnswer {
    /// `{ "data": [ … ], "pagination": { … } }`, with `warnings` if there are any.
    pub fn json(mut self) -> Vec<u8> {
        let pagination = match self.cursor_pagination() {
            Some(pagination) => text_of(&pagination),
            None => text_of(&self.pagination()),
        };
        // The bytes are moved in place, because copying them to other memory takes longer.
        let mut json = std::mem::take(&mut self.rows);
        json.splice(..0, *b"{\"data\":[");
        json.extend_from_slice(b"],\"pagination\":");
        json.extend_from_slice(pagination.as_bytes());
        write_warnings(&mut json, &self.warnings);
        json.push(b'}');
        // A client may take long to read it.
        if json.len() > LARGE_BYTES || json.capacity() > 2 * json.len() {
            json.shrink_to_fit();
        }
        json
    }

    pub fn pagination(&self) -> PaginationAnswer {
        PaginationAnswer::new(self.paging, self.total, self.has_next_page)
    }

    /// The pagination of a page by cursors. `None` for a page by its number.
    pub fn cursor_pagination(&self) -> Option<CursorPaginationAnswer> {
        self.cursors.as_ref().map(|cursors| CursorPaginationAnswer {
            page_size: self.paging.limit,
            has_next_page: self.has_next_page,
            has_previous_page: cursors.has_previous_page,
            start_cursor: cursors.start.clone(),
            end_cursor: cursors.end.clone(),
            total_count: self.total,
        })
    }
}

/// The answer of an aggregate.
#[derive(Debug)]
pub enum AggregateAnswer {
    /// `{ fn, field, value, filteredCount }`, for one function over all records.
    One(Vec<u8>),
    /// A page of groups, each `{ group, count, sum_amount, … }`.
    Groups(ListAnswer),
}

impl AggregateAnswer {
    /// `{ "data": … }`, with the pagination if there are groups.
    pub fn json(self) -> Vec<u8> {
        match self {
            AggregateAnswer::One(one) => [b"{\"data\":", one.as_slice(), b"}"].concat(),
            AggregateAnswer::Groups(groups) => groups.json(),
        }
    }

    /// The same without an object around a single value.
    pub fn bare_json(self) -> Vec<u8> {
        match self {
            AggregateAnswer::One(one) => one,
            AggregateAnswer::Groups(groups) => groups.json(),
        }
    }
}

/// The page that the answer holds. `totalCount` and `totalPages` are null if the request has `count=none`.
#[derive(Clone, Copy, Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(rename = "SvcPagination", deny_unknown_fields)]
pub struct PaginationAnswer {
    #[schemars(range(min = 1))]
    pub page: u64,
    #[schemars(with = "u32", range(min = 1), extend("maximum" = PAGE_SIZE_MAX))]
    pub page_size: u64,
    pub total_count: Option<u64>,
    pub total_pages: Option<u64>,
    pub has_next_page: bool,
    pub has_previous_page: bool,
}

impl PaginationAnswer {
    /// The members of `pagination`, as every surface names and orders them.
    pub const MEMBERS: [&str; 6] = ["page", "pageSize", "totalCount", "totalPages", "hasNextPage", "hasPreviousPage"];

    fn new(paging: Paging, total: Option<u64>, has_next_page: bool) -> PaginationAnswer {
        PaginationAnswer {
            page: paging.page(),
            page_size: paging.limit,
            total_count: total,
            total_pages: total.map(|total| paging.total_pages(total)),
            has_next_page,
            has_previous_page: paging.has_previous_page(),
        }
    }

    /// The page of a list of the service's own tables. `total` is the count of all entries from SQL.
    pub(crate) fn counted(paging: Paging, total: i64) -> PaginationAnswer {
        let total = u64::try_from(total).unwrap_or(0);
        PaginationAnswer::new(paging, Some(total), paging.has_next_page(total))
    }
}

/// Appends `,"warnings":[ … ]` to the members of an answer, if there are any warnings.
pub fn write_warnings(json: &mut Vec<u8>, warnings: &[String]) {
    for (index, warning) in warnings.iter().enumerate() {
        json.extend_from_slice(if index > 0 { b"," } else { b",\"warnings\":[" });
        json::write_string(json, warning);
    }
    if !warnings.is_empty() {
        json.push(b']');
    }
}

/// A page of a list of the service's own tables, as `{ data, pagination }`. `total` is the count of all entries from SQL.
pub(crate) fn page_json(data: &[impl Serialize], paging: Paging, total: i64) -> String {
    page_with(data, &PaginationAnswer::counted(paging, total))
}

/// `{ data, pagination }`, with a pagination of any form.
pub(crate) fn page_with(data: &[impl Serialize], pagination: &impl Serialize) -> String {
    format!(r#"{{"data":{},"pagination":{}}}"#, text_of(data), text_of(pagination))
}

impl App {
    /// Returns those of the records that exist now and are within a scope of the caller. `permit` is a permit that the caller
    /// already has.
    pub(crate) async fn seen(
        &self,
        caller: &Caller,
        permit: Option<&Arc<ScanPermit>>,
        registry: &Registry,
        object: &Arc<Object>,
        scope: &Scope,
        ids: Vec<Uuid>,
    ) -> Result<HashSet<Uuid>> {
        let (object, scope) = (Arc::clone(object), scope.clone());
        let Some(cost) = cost_of(&scope) else {
            let seen = self.store.read_rows(self.by(caller), Some(registry.version), move |connection| {
                Box::pin(async move { within(connection, &object, &scope, ids).await })
            });
            return seen.await;
        };
        let read = Read { schema: registry.version, cost, tables_of_one_moment: None };
        let seen = self.read_metered_in(caller, permit, read, move |connection| {
            let (object, scope, ids) = (Arc::clone(&object), scope.clone(), ids.clone());
            Box::pin(async move { within(connection, &object, &scope, ids).await })
        });
        seen.await
    }

    pub async fn list(&self, caller: &Caller, object: &str, request: ListRequest) -> Result<ListAnswer> {
        let request = &request;
        self.on_schema(caller, move |registry| async move {
            let (grant_context, known) = (self.grant_context(&registry), self.known_to(caller, &registry));
            let (object, access) = caller.object(&grant_context, object, Action::Read)?;
            let expand = self.expand_plan(caller, &grant_context, &known, object.name(), &request.expand)?;
            let plan = Arc::new(with_reading(caller, &grant_context, &known, bytes_of(&request.wheres), |reading| {
                ListPlan::new(&object, &access, request, reading, expand)
            })?);
            let purpose = plan
                .cursor
                .as_ref()
                .map(|_| run_offloaded(CursorPurpose::bytes_read(request), || CursorPurpose::of(caller, &plan, request)));
            let window = match &purpose {
                Some(purpose) => self.window(&plan, purpose)?.map(Arc::new),
                None => None,
            };
            let (bytes_max, dialect) = (self.answer_bytes_left(caller), self.store.dialect());
            let has_several = needs_several_statements(&plan, window.as_deref(), dialect);
            let warnings = warnings_of_expand(caller, &known, object.name(), &request.expand);
            let (paging, cursors_of) = (plan.paging, plan.cursor.as_ref().map(|cursor| cursor.cursors_of));
            let read_page = |is_of_one_moment: bool| {
                let read = Read {
                    schema: registry.version,
                    cost: cost_of_list(&plan, dialect),
                    tables_of_one_moment: (is_of_one_moment && dialect == Dialect::Postgres).then(|| tables_of_list(&plan)),
                };
                let (plan, window) = (Arc::clone(&plan), window.clone());
                self.read_metered(caller, read, move |connection| {
                    let (plan, window) = (Arc::clone(&plan), window.clone());
                    Box::pin(async move {
                        match &window {
                            Some(window) => run_by_cursor(connection, &plan, window, bytes_max).await.map(Some),
                            None => run_list(connection, &plan, bytes_max, is_of_one_moment).await,
                        }
                    })
                })
            };
            let page = match read_page(has_several).await? {
                Some(page) => page,
                None => read_page(true).await?.ok_or_else(|| Error::internal("a page of one moment has no total"))?,
            };
            let cursors = purpose.zip(cursors_of).map(|(purpose, of)| self.cursors_of(&page, of, &purpose)).transpose()?;
            let Page { rows, total, has_next_page, .. } = page;
            caller.spend_answer(rows.len() + cursors.as_ref().map_or(0, PageCursors::bytes));
            Ok(ListAnswer { rows, total, has_next_page, paging, cursors, warnings })
        })
        .await
    }

    /// The record with the requested related records, or `None`.
    pub async fn get(&self, caller: &Caller, object: &str, id: &str, related: &[Related]) -> Result<Option<RecordAnswer>> {
        self.on_schema(caller, move |registry| async move {
            let (grant_context, known) = (self.grant_context(&registry), self.known_to(caller, &registry));
            let (object, access) = caller.object(&grant_context, object, Action::Read)?;
            let expand = self.expand_plan(caller, &grant_context, &known, object.name(), related)?;
            let Some(id) = record_id(id) else { return Ok(None) };
            let plan = RecordPlan::new(&object, &access, id);
            if expand.is_empty() && cost_of(&plan.scope).is_none() {
                return self
                    .store
                    .read_rows(self.by(caller), Some(registry.version), move |connection| {
                        Box::pin(async move {
                            let statement = sql::get(connection.dialect(), &plan, false);
                            connection.ends_with_next();
                            let record = connection.fetch_record(statement, &plan.object.columns).await;
                            let record = record.map_err(|error| error.on(&plan.object))?;
                            record.map(|record| RecordAnswer::new(&plan.object, plan.id, record)).transpose()
                        })
                    })
                    .await;
            }
            let bytes_max = self.answer_bytes_left(caller);
            let tables = (self.store.dialect() == Dialect::Postgres).then(|| tables(&object, &expand));
            let plan = Arc::new((plan, expand));
            let read = Read { schema: registry.version, cost: Cost::Unknown, tables_of_one_moment: tables };
            let record = self
                .read_metered(caller, read, move |connection| {
                    let plan = Arc::clone(&plan);
                    Box::pin(async move { run_get(connection, &plan.0, &plan.1, bytes_max).await })
                })
                .await?;
            caller.spend_answer(record.as_ref().map_or(0, |record| record.json.len()));
            Ok(record)
        })
        .await
    }

    /// Checks that a caller who is about to write a record may get it back with its related records.
    ///
    /// # Errors
    /// The errors of reading these records.
    pub async fn admit_to_related(&self, caller: &Caller, object: &str, related: &[Related]) -> Result<()> {
        self.on_schema(caller, move |registry| async move {
            let (grant_context, known) = (self.grant_context(&registry), self.known_to(caller, &registry));
            let (object, _) = caller.object(&grant_context, object, Action::Read)?;
            self.expand_plan(caller, &grant_context, &known, object.name(), related).map(drop)
        })
        .await
    }

    /// Reads a written record again, with the requested related records. If the read fails, it returns the record as the write
    /// returned it, because an error would suggest that the record was not written.
    pub async fn with_related(&self, caller: &Caller, object: &str, written: RecordAnswer, related: &[Related]) -> RecordAnswer {
        if related.is_empty() {
            return written;
        }
        let id = Uuid::from_bytes(written.version.id).to_string();
        match self.get(caller, object, &id, related).await {
            Ok(Some(read)) => read,
            Ok(None) => written,
            Err(error) => {
                tracing::warn!(error = %error, "a written record is answered without its related records");
                written
            }
        }
    }

    /// Computes functions over the records of a list, all together or in groups. The caller needs the same permission as for the
    /// list.
    pub async fn aggregate(&self, caller: &Caller, object: &str, request: AggregateRequest) -> Result<AggregateAnswer> {
        let request = &request;
        self.on_schema(caller, move |registry| async move {
            let (grant_context, known) = (self.grant_context(&registry), self.known_to(caller, &registry));
            let (object, access) = caller.object(&grant_context, object, Action::Read)?;
            let plan = Arc::new(with_reading(caller, &grant_context, &known, request.bytes(), |reading| {
                AggregatePlan::new(&object, &access, request, reading)
            })?);
            let cost = if plan.reads_texts() { Cost::Scan } else { Cost::Unknown };
            let read = Read { schema: registry.version, cost, tables_of_one_moment: None };
            let bytes_max = self.answer_bytes_left(caller);
            let answer = self
                .read_metered(caller, read, move |connection| {
                    let plan = Arc::clone(&plan);
                    Box::pin(async move {
                        match &*plan {
                            AggregatePlan::One(plan) => run_aggregate(connection, plan).await.map(AggregateAnswer::One),
                            AggregatePlan::Groups(plan) => {
                                run_groups(connection, plan, bytes_max).await.map(AggregateAnswer::Groups)
                            }
                        }
                    })
                })
                .await?;
            if let AggregateAnswer::Groups(groups) = &answer {
                caller.spend_answer(groups.rows.len());
            }
            Ok(answer)
        })
        .await
    }

    /// Warnings about keys in `expand` that name no relation, for a caller who got the record.
    pub fn warnings_of_expand(&self, caller: &Caller, object: &str, related: &[Related]) -> Vec<String> {
        if related.is_empty() {
            return Vec::new();
        }
        warnings_of_expand(caller, &self.known_to(caller, &self.registry()), object, related)
    }

    /// The plan of relation keys for the caller.
    fn expand_plan(
        &self,
        caller: &Caller,
        grant_context: &GrantContext<'_>,
        known: &Registry,
        object: &str,
        related: &[Related],
    ) -> Result<Vec<ExpandPlan>> {
        if related.is_empty() {
            return Ok(Vec::new());
        }
        let mut plans = expand::plan(known, object, related, &|relation, asked| {
            match caller.access_by(grant_context, relation, "expand") {
                Ok(access) => Ok(Some(access)),
                // GraphQL names the columns. Its schema does not have the field for callers who may not know of the relation, so
                // this needs no warning.
                Err(_) if asked.select.is_none() && !is_shown(caller, relation) => Ok(None),
                Err(error) => Err(error),
            }
        })?;
        leave_out_links(caller, grant_context, object, &mut plans);
        Ok(plans)
    }
}

/// Removes the links of rows whose links the caller may not read.
fn leave_out_links(caller: &Caller, grant_context: &GrantContext<'_>, owner: &str, plans: &mut [ExpandPlan]) {
    let reads = caller.access_to(grant_context, owner, Action::Read).ok();
    let seen = reads.as_ref().and_then(Access::seen);
    for plan in plans {
        plan.near = seen
            .filter(|seen| seen.readable_links(plan.shape).is_some())
            .map(|seen| (Arc::clone(&seen.whole), seen.rows_with_links(plan.shape)));
        leave_out_links(caller, grant_context, plan.object.name(), &mut plan.children);
    }
}

/// Whether the caller may know of a relation. A record shows its own foreign keys in any case. A relation from other records, or
/// through links, would reveal that the other object exists. Everybody knows that there are users.
fn is_shown(caller: &Caller, relation: &Relation) -> bool {
    matches!(relation.shape, RelationShape::Forward { .. }) || relation.related == USERS || caller.knows(&relation.related)
}

fn warnings_of_expand(caller: &Caller, registry: &Registry, object: &str, related: &[Related]) -> Vec<String> {
    let unknown = expand::unknown_paths(registry, object, related, &|relation| is_shown(caller, relation));
    let sentence = |(path, of): (String, String)| match path.rsplit('.').next() {
        Some(key) if key.len() < path.len() => {
            format!("`{of}` has no relation `{}`, so `{}` of `expand` is left out.", excerpt(key), excerpt(&path))
        }
        _ => format!("`{of}` has no relation `{}`, so `expand` leaves it out.", excerpt(&path)),
    };
    unknown.into_iter().map(sentence).collect()
}

/// The smallest offset of a scan on SQLite. The rows before the page are read one by one, and so many rows take more steps than a
/// read of unknown cost may take.
const SCANNED_OFFSET_MIN: u64 = 20_000;

/// The cost of a list, as far as its plan shows it.
fn cost_of_list(plan: &ListPlan, dialect: Dialect) -> Cost {
    match dialect {
        Dialect::Sqlite if plan.paging.offset >= SCANNED_OFFSET_MIN => Cost::Scan,
        Dialect::Sqlite | Dialect::Postgres => cost(&plan.selection),
    }
}

/// The cost of a read, as far as its plan shows it. The length of a text is known only when it is read.
pub(crate) fn cost(selection: &Selection) -> Cost {
    if selection.reads_texts() { Cost::Scan } else { Cost::Unknown }
}

/// Returns the same for records that are found by their ids within a scope. `None` if the read needs only a few rows by an index.
pub(crate) fn cost_of(scope: &Scope) -> Option<Cost> {
    let mut related = Vec::new();
    scope.objects_into(&mut related);
    match (scope.reads_texts(), related.is_empty()) {
        (true, _) => Some(Cost::Scan),
        (false, false) => Some(Cost::Unknown),
        (false, true) => None,
    }
}

/// Makes a plan that reads conditions with the caller's rights and variables, on the registry as the caller knows it. `bytes` is
/// the size of the conditions.
pub(crate) fn with_reading<T>(
    caller: &Caller,
    grant_context: &GrantContext<'_>,
    known: &Registry,
    bytes: usize,
    plan: impl FnOnce(&Reading<'_>) -> Result<T>,
) -> Result<T> {
    let parameter = ListParameter::Where.name();
    let reading = Reading {
        registry: known,
        decide: &|relation| caller.access_by(grant_context, relation, parameter),
        variables: &|| caller.variables(grant_context.now),
        bounds: Bounds::of_request(),
    };
    run_offloaded(bytes, || plan(&reading))
}

/// The number of bytes of a request's conditions.
pub(crate) fn bytes_of(wheres: &[Where]) -> usize {
    wheres.iter().map(Where::bytes).sum()
}

/// The tables that a list reads.
fn tables_of_list(plan: &ListPlan) -> Vec<String> {
    let mut names = tables(&plan.object, &plan.expand);
    names.extend(plan.selection.related_objects().iter().map(|object| object.name().to_owned()));
    names
}

/// The tables of an object's records and of their related records.
fn tables(object: &Object, expand: &[ExpandPlan]) -> Vec<String> {
    let mut names = vec![object.name().to_owned()];
    names.extend(expand.iter().flat_map(|plan| tables(&plan.object, &plan.children)));
    names
}

/// An id in any usual spelling. `None` if the text is not a UUID, because then no record can have it.
pub(crate) fn record_id(text: &str) -> Option<Uuid> {
    text.parse().ok()
}

async fn run_get(
    connection: &mut Connection,
    plan: &RecordPlan,
    expand: &[ExpandPlan],
    bytes_max: usize,
) -> Result<Option<RecordAnswer>> {
    let statement = sql::get(connection.dialect(), plan, false);
    let record = connection.fetch_record(statement, &plan.object.columns).await.map_err(|error| error.on(&plan.object))?;
    let Some(record) = record else { return Ok(None) };
    let version = version_of(&plan.object, plan.id, record.version()?);
    let json = expanded(connection, expand, vec![record], &Some, &mut Budget::new(bytes_max)).await?.pop();
    Ok(json.map(|json| RecordAnswer { json, version }))
}

async fn run_aggregate(connection: &mut Connection, plan: &OnePlan) -> Result<Vec<u8>> {
    let by = related_by(connection, &plan.object, &plan.selection).await?;
    let mut plan = Cow::Borrowed(plan);
    decide(&mut plan, by, |plan| &mut plan.selection);
    let statement = sql::aggregate(connection.dialect(), &plan);
    let rows = connection.fetch_rows(statement).await.map_err(|error| error.on(&plan.object))?;
    let row = rows.first().ok_or_else(|| Error::internal("an aggregate gave no row"))?;
    let (matching, values, text) = (row.integer(0)?, row.integer(1)?, row.optional_text(2)?);
    let value = plan.computed.value_json(&plan.object, values, text.as_deref())?;
    let mut out = Vec::with_capacity(96);
    out.extend_from_slice(format!(r#"{{"fn":"{}","field":"#, plan.computed.function.name()).as_bytes());
    match plan.computed.column.map(|index| &plan.object.columns[index].name) {
        Some(field) => json::write_string(&mut out, field),
        None => out.extend_from_slice(b"null"),
    }
    out.extend_from_slice(format!(r#","value":{value},"filteredCount":{matching}}}"#).as_bytes());
    Ok(out)
}

async fn run_groups(connection: &mut Connection, plan: &GroupsPlan, bytes_max: usize) -> Result<ListAnswer> {
    let columns = sql::group_columns(plan);
    let columns: Vec<&Column> = columns.iter().collect();
    let by = related_by(connection, &plan.object, &plan.selection).await?;
    let mut plan = Cow::Borrowed(plan);
    decide(&mut plan, by, |plan| &mut plan.selection);
    let statement = sql::groups(connection.dialect(), &plan);
    let mut groups = connection
        .fetch_records(statement, &columns, 0, RecordsMax::bytes(bytes_max))
        .await
        .map_err(|error| error.on(&plan.object))?;
    let fields = plan.fields.len();
    // After two columns for each function, one column is null if the row is no group, and the next one has the total.
    let is_group = fields + 2 * plan.functions.len();
    let total = match (plan.with_count, groups.first()) {
        (true, Some(first)) => Some(number_of(first.cell(is_group + 1))?),
        _ => None,
    };
    groups.retain(|group| group.cell(is_group) != b"null");
    let groups_max = usize::try_from(plan.paging.limit).unwrap_or(usize::MAX);
    let has_more = groups.len() > groups_max;
    groups.truncate(groups_max);
    let mut rows = Vec::with_capacity(groups.iter().map(Record::bytes).sum());
    for (index, group) in groups.iter().enumerate() {
        rows.extend_from_slice(if index > 0 { b",{\"group\":{" } else { b"{\"group\":{" });
        for (place, column) in plan.result.columns.iter().take(fields).enumerate() {
            if place > 0 {
                rows.push(b',');
            }
            json::write_string(&mut rows, &column.name);
            rows.push(b':');
            rows.extend_from_slice(group.cell(place));
        }
        rows.push(b'}');
        for (place, computed) in plan.functions.iter().enumerate() {
            let cell = fields + 2 * place;
            let values = i64::try_from(number_of(group.cell(cell))?).unwrap_or(i64::MAX);
            let text: Option<&str> = serde_json::from_slice(group.cell(cell + 1)).map_err(Error::internal)?;
            rows.push(b',');
            json::write_string(&mut rows, &plan.result.columns[plan.function_column(place)].name);
            rows.push(b':');
            let value = computed.value_json(&plan.object, values, text).map_err(of_group)?;
            rows.extend_from_slice(value.as_bytes());
        }
        rows.push(b'}');
    }
    let has_next_page = total.map_or(has_more, |total| plan.paging.has_next_page(total));
    Ok(ListAnswer { rows, total, has_next_page, paging: plan.paging, cursors: None, warnings: Vec::new() })
}

/// The error of a result that cannot be shown.
fn of_group(mut error: Error) -> Error {
    if error.code == Code::InvalidValue {
        error.message.push_str(" Exclude its group with `having`.");
    }
    error
}

/// A count in the JSON of a cell.
fn number_of(cell: &[u8]) -> Result<u64> {
    serde_json::from_slice(cell).map_err(Error::internal)
}

#[cfg(test)]
mod tests {
    use serde_json::Value;

    use super::*;

    #[test]
    fn pagination_has_its_members() {
        let pagination = PaginationAnswer::new(Paging { limit: 25, offset: 50 }, Some(51), false);
        let Ok(Value::Object(answered)) = serde_json::to_value(pagination) else { panic!("no object") };
        assert_eq!(answered.keys().collect::<Vec<_>>(), PaginationAnswer::MEMBERS);
    }
}

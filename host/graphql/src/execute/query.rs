//! Lists, single records, aggregates, groups.

use std::sync::Arc;

use blockbase_app::limits::{FILTERS_MAX, SORT_KEYS_MAX};
use blockbase_app::schema::json::parse_list;
use blockbase_app::schema::{Error, Object, Result, system};
use blockbase_app::{
    Action, AggregateAnswer, AggregateFunction, AggregateRequest, Filter, FilterValue, ListAnswer, ListParameter, ListRequest,
    Operator, PagingParameters, Where, aggregate_names as names,
};
use serde::Deserialize;
use serde_json::value::RawValue;

use super::{Execution, id_of, page_name, write_record};
use crate::document::coerce::{Arguments, nested};
use crate::document::collect::Selected;
use crate::execute::shape::{Answer, Place, RecordShape, Wanted};
use crate::view::leaves::LeafType;
use crate::view::types::GROUPS;

/// The maximum number of levels of lists in the value of a filter.
const FILTER_LISTS_MAX: usize = 15;

#[derive(Deserialize)]
struct FilterDocument {
    field: String,
    operator: String,
    value: Option<Box<RawValue>>,
}

#[derive(Deserialize)]
struct SortDocument {
    field: String,
    direction: String,
}

/// A field that is selected from a page.
enum PageField<'d> {
    Type,
    Data(RecordShape<'d>),
    Pagination(Vec<Selected<'d>>),
}

impl<'d> Execution<'d> {
    /// Checks the right to read the records before the rest of the request, as the other surfaces do.
    pub(super) async fn may_read(&self, object: &Object) -> Result<()> {
        self.app.admit_to_object(self.caller, object.name(), &[Action::Read]).await
    }

    pub(super) async fn list(
        &self,
        object: &Arc<Object>,
        selected: &Selected<'d>,
        arguments: &Arguments,
        answer: &mut Answer,
    ) -> Result<()> {
        self.may_read(object).await?;
        let mut wanted = Wanted::default();
        let mut fields = Vec::new();
        let mut with_count = false;
        let ty = page_name(object);
        for field in self.context().collect(&selected.sets, &ty) {
            let shown = match field.field.name.node.as_str() {
                "data" => PageField::Data(RecordShape::of(self.context(), self.view, object, &field.sets, &mut wanted)?),
                "pagination" => {
                    let meta = self.context().collect(&field.sets, LeafType::Pagination.name());
                    with_count |= counts(&meta);
                    PageField::Pagination(meta)
                }
                _ => PageField::Type,
            };
            fields.push((field, shown));
        }
        let matching = matching(arguments)?;
        let request = ListRequest {
            sort: sort(arguments)?,
            paging: paging(arguments)?,
            select: Some(columns_read(&wanted)),
            expand: wanted.related(),
            // Records are counted only if the client selects the count.
            count: Some(with_count),
            ..matching
        };
        let mut page = self.app.list(self.caller, object.name(), request.checked()?).await?;
        let rows = array_of_rows(&mut page);
        let rows = std::str::from_utf8(&rows).map_err(Error::internal)?;
        let root = Place::root(selected.key);
        answer.nullable(|answer| {
            answer.object(fields.iter().map(|(field, shown)| (field.key, (field, shown))), |answer, (field, shown)| {
                match shown {
                    PageField::Type => answer.string(&ty),
                    PageField::Data(shape) => answer.records(shape, rows, field.position, &root.key(field.key))?,
                    PageField::Pagination(meta) => write_pagination(answer, &page, meta),
                }
                Ok(())
            })
        });
        Ok(())
    }

    pub(super) async fn by_id(
        &self,
        object: &Arc<Object>,
        selected: &Selected<'d>,
        arguments: &Arguments,
        answer: &mut Answer,
    ) -> Result<()> {
        let (shape, wanted) = self.shape(object, selected)?;
        let record = self.app.get(self.caller, object.name(), &id_of(arguments)?, &wanted.related()).await?;
        write_record(answer, &shape, record.as_ref().map(|record| record.json.as_slice()), selected)
    }

    pub(super) async fn aggregate(
        &self,
        object: &Arc<Object>,
        selected: &Selected<'d>,
        arguments: &Arguments,
        answer: &mut Answer,
    ) -> Result<()> {
        self.may_read(object).await?;
        let list = matching(arguments)?.checked()?;
        let function: String = arguments.read("fn")?.unwrap_or_default();
        let function = AggregateFunction::parse(&function)?;
        let request = AggregateRequest::one(function, arguments.read("field")?, list);
        let result = self.app.aggregate(self.caller, object.name(), request).await?.bare_json();
        let result: std::collections::HashMap<&str, &RawValue> = serde_json::from_slice(&result).map_err(Error::internal)?;
        let fields = self.context().collect(&selected.sets, LeafType::Aggregate.name());
        answer.object(fields.iter().map(|field| (field.key, field.field.name.node.as_str())), |answer, name| {
            match (name, result.get(name)) {
                ("__typename", _) => answer.string(LeafType::Aggregate.name()),
                (_, value) => answer.json.extend_from_slice(value.map_or("null", |value| value.get()).as_bytes()),
            }
            Ok(())
        })
    }

    pub(super) async fn groups(
        &self,
        object: &Arc<Object>,
        selected: &Selected<'d>,
        arguments: &Arguments,
        answer: &mut Answer,
    ) -> Result<()> {
        self.may_read(object).await?;
        let fields = self.context().collect(&selected.sets, GROUPS);
        let pagination = |field: &Selected<'d>| self.context().collect(&field.sets, LeafType::Pagination.name());
        let counts =
            fields.iter().filter(|field| field.field.name.node.as_str() == "pagination").any(|field| counts(&pagination(field)));
        let matching = matching(arguments)?;
        let list = ListRequest { sort: sort(arguments)?, paging: paging(arguments)?, count: Some(counts), ..matching };
        let functions: Vec<String> = arguments.read(names::FUNCTIONS)?.unwrap_or_default();
        let group_by: Vec<String> = arguments.read(names::GROUP_BY)?.unwrap_or_default();
        let having = arguments.json(names::HAVING).filter(|having| *having != "null").map(str::to_owned);
        let zone: Option<String> = arguments.read(names::ZONE)?;
        let request = AggregateRequest::of_groups(&functions, group_by, having, zone, list.checked()?)?;
        let AggregateAnswer::Groups(page) = self.app.aggregate(self.caller, object.name(), request).await? else {
            return Err(Error::internal("an aggregate of groups gave no groups"));
        };
        answer.object(fields.iter().map(|field| (field.key, field)), |answer, field| {
            match field.field.name.node.as_str() {
                "data" => answer.rows(&page.rows)?,
                "pagination" => write_pagination(answer, &page, &pagination(field)),
                _ => answer.string(GROUPS),
            }
            Ok(())
        })
    }
}

/// The columns that a list reads. An empty projection would mean all columns, so `id` is read.
pub(super) fn columns_read(wanted: &Wanted) -> Vec<String> {
    let columns = wanted.columns();
    if columns.is_empty() { vec![system::ID.to_owned()] } else { columns }
}

/// Whether fields of a pagination need the number of all entries.
fn counts(meta: &[Selected<'_>]) -> bool {
    meta.iter().any(|field| matches!(field.field.name.node.as_str(), "totalCount" | "totalPages"))
}

/// The search, the filters and the condition of a list or an aggregate.
pub(super) fn matching(arguments: &Arguments) -> Result<ListRequest> {
    // The list's size is checked before its items are read.
    let documents: Vec<FilterDocument> =
        arguments.json("filter").map(|json| parse_list(json, FILTERS_MAX)).transpose()?.unwrap_or_default();
    let filters = documents.into_iter().map(|document| {
        let value = document.value;
        if value.as_ref().is_some_and(|value| nested(value.get(), b"[]").deepest > FILTER_LISTS_MAX) {
            let message = format!("Lists in the value of a filter can nest at most {FILTER_LISTS_MAX} levels deep.");
            return Err(Error::invalid_request(message).with_field(document.field));
        }
        let (operator, value) = (Operator::parse(&document.operator)?, FilterValue::of_json(value));
        Ok(Filter { field: document.field, operator, value })
    });
    let filters = filters.collect::<Result<_>>()?;
    let search = arguments.read(ListParameter::Search.name())?;
    let condition = arguments.json(ListParameter::Where.name()).map(|text| RawValue::from_string(text.to_owned())).transpose();
    let wheres = condition.map_err(Error::internal)?.map(Where::Json).into_iter().collect();
    Ok(ListRequest { search, filters, wheres, ..ListRequest::default() })
}

pub(super) fn sort(arguments: &Arguments) -> Result<Vec<(String, bool)>> {
    // The items were checked against the schema, so only their number can be wrong.
    let documents = arguments.json(ListParameter::Sort.name()).map(|json| parse_list(json, SORT_KEYS_MAX)).transpose();
    let documents: Vec<SortDocument> = documents.map_err(|_| ListRequest::too_many_sort_keys())?.unwrap_or_default();
    Ok(documents.into_iter().map(|document| (document.field, document.direction == "desc")).collect())
}

/// A number of records or of a page.
pub(super) fn whole_number(arguments: &Arguments, name: &str, least: u64) -> Result<Option<u64>> {
    let Some(text) = arguments.json(name) else { return Ok(None) };
    let number = text.parse().ok().filter(|number| *number >= least);
    number
        .map(Some)
        .ok_or_else(|| Error::invalid_request(format!("`{name}` needs a whole number of at least {least}; it is `{text}`.")))
}

/// Takes the records out of a page, as a JSON array.
pub(super) fn array_of_rows(page: &mut ListAnswer) -> Vec<u8> {
    let mut rows = std::mem::take(&mut page.rows);
    rows.insert(0, b'[');
    rows.push(b']');
    rows
}

fn paging(arguments: &Arguments) -> Result<blockbase_app::Paging> {
    let number = |parameter: ListParameter| whole_number(arguments, parameter.name(), parameter.least().unwrap_or_default());
    let parameters = PagingParameters {
        page: number(ListParameter::Page)?,
        page_size: number(ListParameter::PageSize)?,
        limit: number(ListParameter::Limit)?,
        offset: number(ListParameter::Offset)?,
    };
    parameters.window()
}

fn write_pagination(answer: &mut Answer, page: &ListAnswer, fields: &[Selected<'_>]) {
    let page = page.pagination();
    let begun = answer.json.len();
    answer.json.push(b'{');
    for field in fields {
        answer.key(begun, field.key);
        let text = match field.field.name.node.as_str() {
            "page" => page.page.to_string(),
            "pageSize" => page.page_size.to_string(),
            // The counts are not null here, because the records are counted if one of these fields is selected.
            "totalCount" => page.total_count.unwrap_or_default().to_string(),
            "totalPages" => page.total_pages.unwrap_or_default().to_string(),
            "hasNextPage" => page.has_next_page.to_string(),
            "hasPreviousPage" => page.has_previous_page.to_string(),
            _ => format!(r#""{}""#, LeafType::Pagination.name()),
        };
        answer.json.extend_from_slice(text.as_bytes());
    }
    answer.json.push(b'}');
}

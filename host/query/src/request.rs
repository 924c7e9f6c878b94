//! What a caller asked of the list operation, before the schema has looked at it.

use blockbase_schema::{Error, Result, json};
use serde::Deserialize;
use serde_json::value::RawValue;

use crate::expand::{Related, expand_paths};
use crate::operator::Operator;

/// A filter's value as it came.
#[derive(Clone, Debug)]
pub enum FilterValue {
    /// A query parameter: text whose type the column decides.
    Text(String),
    /// A JSON value, as text.
    Json(Box<RawValue>),
}

/// `field operator value`.
#[derive(Clone, Debug)]
pub struct Filter {
    pub field: String,
    pub operator: Operator,
    pub value: FilterValue,
}

/// A window into the list.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Paging {
    pub limit: u64,
    pub offset: u64,
}

const PAGE_SIZE_DEFAULT: u64 = 25;
const PAGE_SIZE_MAX: u64 = 100;
/// Most filters of one request; each can cost a scan.
const FILTERS_MAX: usize = 100;
/// Longest search term in characters.
pub const SEARCH_CHARACTERS_MAX: usize = 1000;
/// Greatest offset: beyond it no list of records reaches, and 64-bit arithmetic stays exact.
const OFFSET_MAX: u64 = 1 << 50;

impl Default for Paging {
    fn default() -> Self {
        Paging { limit: PAGE_SIZE_DEFAULT, offset: 0 }
    }
}

/// Search, filters, order, window and projection of a list.
#[derive(Clone, Debug, Default)]
pub struct ListRequest {
    pub search: Option<String>,
    pub filters: Vec<Filter>,
    /// Field and whether it descends.
    pub sort: Vec<(String, bool)>,
    pub paging: Paging,
    pub select: Option<Vec<String>>,
    /// The related records that come along.
    pub expand: Vec<Related>,
    /// Whether the total is left out.
    pub without_count: bool,
}

/// What a caller asked of an export: a list whose window has no bound of its own.
#[derive(Clone, Debug, Default)]
pub struct ExportRequest {
    /// Its paging holds the offset alone.
    pub list: ListRequest,
    /// `None` for all rows.
    pub limit: Option<u64>,
    /// Relation keys whose records are written by a unique field instead of their ids, and that field.
    pub names: Vec<(String, String)>,
}

/// A window as callers name it: by page, or by offset, which takes precedence.
#[derive(Clone, Copy, Debug, Default)]
pub struct PagingParameters {
    pub page: Option<u64>,
    pub page_size: Option<u64>,
    pub limit: Option<u64>,
    pub offset: Option<u64>,
}

impl PagingParameters {
    /// # Errors
    /// `invalid_request` for numbers below their minimum, and for a page where no list reaches.
    pub fn window(self) -> Result<Paging> {
        for (name, number) in [("page", self.page), ("pageSize", self.page_size), ("limit", self.limit)] {
            if number == Some(0) {
                return Err(Error::invalid_request(format!("`{name}` needs a whole number of at least 1.")));
            }
        }
        let by_offset = self.limit.is_some() || self.offset.is_some();
        let size = if by_offset { self.limit } else { self.page_size };
        let limit = size.unwrap_or(PAGE_SIZE_DEFAULT).min(PAGE_SIZE_MAX);
        let offset = match by_offset {
            true => self.offset.unwrap_or(0),
            false => (self.page.unwrap_or(1) - 1).saturating_mul(limit),
        };
        match offset <= OFFSET_MAX {
            true => Ok(Paging { limit, offset }),
            false => Err(Error::invalid_request(format!("The page lies beyond record {OFFSET_MAX}, where no list reaches."))),
        }
    }
}

fn whole_number(name: &str, text: &str, least: u64) -> Result<u64> {
    text.parse()
        .ok()
        .filter(|number| *number >= least && !text.starts_with('+'))
        .ok_or_else(|| Error::invalid_request(format!("`{name}` needs a whole number of at least {least}; it is {text:?}.")))
}

fn names(text: &str) -> impl Iterator<Item = &str> {
    text.split(',').map(str::trim).filter(|name| !name.is_empty())
}

/// Reads `company.name,owner.email`.
fn relation_names(text: &str) -> Result<Vec<(String, String)>> {
    names(text)
        .map(|path| match path.split_once('.') {
            Some((key, field)) if !key.is_empty() && !field.is_empty() => Ok((key.to_owned(), field.to_owned())),
            _ => {
                let message =
                    format!("`names` needs a relation key, a dot and a unique field, as in company.name; it is {path:?}.");
                Err(Error::invalid_request(message))
            }
        })
        .collect()
}

fn sort_keys(text: &str) -> Vec<(String, bool)> {
    names(text)
        .map(|name| match name.strip_prefix('-') {
            Some(name) => (name.to_owned(), true),
            None => (name.to_owned(), false),
        })
        .collect()
}

impl ListRequest {
    /// Reads the decoded query parameters of the REST list.
    ///
    /// # Errors
    /// `invalid_request` for an operator or number that is none.
    pub fn from_parameters<'a>(pairs: impl IntoIterator<Item = (&'a str, &'a str)>) -> Result<ListRequest> {
        let mut request = ListRequest::default();
        let mut paging = PagingParameters::default();
        for (name, value) in pairs {
            match name {
                "search" | "q" => request.search = Some(value.to_owned()),
                "sort" => request.sort = sort_keys(value),
                "page" => paging.page = Some(whole_number("page", value, 1)?),
                "pageSize" => paging.page_size = Some(whole_number("pageSize", value, 1)?),
                "limit" => paging.limit = Some(whole_number("limit", value, 1)?),
                "offset" => paging.offset = Some(whole_number("offset", value, 0)?),
                "select" => request.select = Some(names(value).map(str::to_owned).collect()),
                "expand" => request.expand = expand_paths(value)?,
                "count" => request.without_count = count_is_left_out(value)?,
                _ => request.filters.push(parameter_filter(name, value)?),
            }
        }
        request.paging = paging.window()?;
        request.checked()
    }

    /// Reads the decoded query parameters of an export: those of the list, but for what shapes a page.
    ///
    /// # Errors
    /// `invalid_request` for `page`, `pageSize` and `expand`, beside those of the list.
    pub fn export_from_parameters<'a>(pairs: impl IntoIterator<Item = (&'a str, &'a str)>) -> Result<ExportRequest> {
        let (mut of_list, mut limit, mut offset, mut named) = (Vec::new(), None, 0, Vec::new());
        for (name, value) in pairs {
            match name {
                "page" | "pageSize" => {
                    let message =
                        format!("An export has no `{name}`: it has all rows, or those that `limit` and `offset` cut out.");
                    return Err(Error::invalid_request(message));
                }
                "expand" => {
                    let message =
                        "An export has no `expand`. `names` writes a unique field of a related record instead of its id.";
                    return Err(Error::invalid_request(message));
                }
                "limit" => limit = Some(whole_number("limit", value, 1)?),
                "offset" => offset = whole_number("offset", value, 0)?,
                "names" => named = relation_names(value)?,
                _ => of_list.push((name, value)),
            }
        }
        if offset > OFFSET_MAX {
            return Err(Error::invalid_request(format!("`offset` is {OFFSET_MAX} at most.")));
        }
        let mut list = ListRequest::from_parameters(of_list)?;
        list.paging.offset = offset;
        Ok(ExportRequest { list, limit, names: named })
    }

    /// Reads the JSON form that blocks, GraphQL and MCP use:
    /// `{ search?, filters?: [{ field, operator?, value? }], sort?, page?, pageSize?, limit?, offset?, select?, expand?, count? }`,
    /// `sort`, `select` and `expand` being comma-separated text as in REST.
    ///
    /// # Errors
    /// `invalid_request` for another form.
    pub fn from_json(text: &str) -> Result<ListRequest> {
        #[derive(Deserialize, Default)]
        #[serde(rename_all = "camelCase", deny_unknown_fields, default)]
        struct Document {
            search: Option<String>,
            filters: Vec<JsonFilter>,
            sort: Option<String>,
            page: Option<u64>,
            page_size: Option<u64>,
            limit: Option<u64>,
            offset: Option<u64>,
            select: Option<String>,
            expand: Option<String>,
            count: Option<String>,
        }
        #[derive(Deserialize)]
        #[serde(deny_unknown_fields)]
        struct JsonFilter {
            field: String,
            operator: Option<String>,
            value: Option<Box<RawValue>>,
        }
        let document: Document = json::parse_object(text)?;
        let filters = document
            .filters
            .into_iter()
            .map(|filter| {
                Ok(Filter {
                    field: filter.field,
                    operator: Operator::parse(filter.operator.as_deref().unwrap_or("eq"))?,
                    value: filter.value.map_or_else(|| FilterValue::Text("null".to_owned()), FilterValue::Json),
                })
            })
            .collect::<Result<_>>()?;
        let paging = PagingParameters {
            page: document.page,
            page_size: document.page_size,
            limit: document.limit,
            offset: document.offset,
        };
        ListRequest {
            search: document.search,
            filters,
            sort: document.sort.as_deref().map(sort_keys).unwrap_or_default(),
            paging: paging.window()?,
            select: document.select.map(|select| names(&select).map(str::to_owned).collect()),
            expand: document.expand.as_deref().map(expand_paths).transpose()?.unwrap_or_default(),
            without_count: document.count.as_deref().map(count_is_left_out).transpose()?.unwrap_or(false),
        }
        .checked()
    }

    /// The request within its bounds.
    ///
    /// # Errors
    /// `invalid_request` for too many filters, and for a search term that cannot be one.
    pub fn checked(mut self) -> Result<ListRequest> {
        if self.filters.len() > FILTERS_MAX {
            return Err(Error::invalid_request(format!("A request has {FILTERS_MAX} filters at most.")));
        }
        self.search = self.search.filter(|term| !term.is_empty());
        match &self.search {
            Some(term) if term.chars().nth(SEARCH_CHARACTERS_MAX).is_some() => Err(Error::invalid_request(format!(
                "A search term has {SEARCH_CHARACTERS_MAX} characters at most. Search for a part of it."
            ))),
            Some(term) if term.contains('\0') => Err(Error::invalid_request("A search term cannot hold the NUL character.")),
            _ => Ok(self),
        }
    }
}

fn count_is_left_out(value: &str) -> Result<bool> {
    match value {
        "none" => Ok(true),
        "exact" => Ok(false),
        _ => Err(Error::invalid_request(format!("`count` is `exact` or `none`; it is {value:?}."))),
    }
}

/// `<field>[<op>]=value`, or a bare `<field>=value`, which means eq.
fn parameter_filter(name: &str, value: &str) -> Result<Filter> {
    let (field, operator) = match name.split_once('[') {
        None => (name, Operator::Eq),
        Some((field, rest)) => match rest.strip_suffix(']') {
            Some(operator) => (field, Operator::parse(operator)?),
            None => return Err(Error::invalid_request(format!("The parameter {name:?} lacks its closing bracket."))),
        },
    };
    Ok(Filter { field: field.to_owned(), operator, value: FilterValue::Text(value.to_owned()) })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn limit_and_offset_take_precedence_and_sizes_are_clamped() {
        let window = |pairs: &[(&'static str, &'static str)]| {
            ListRequest::from_parameters(pairs.iter().copied()).map(|request| request.paging)
        };
        assert_eq!(window(&[]).ok(), Some(Paging { limit: 25, offset: 0 }));
        assert_eq!(window(&[("page", "3"), ("pageSize", "10")]).ok(), Some(Paging { limit: 10, offset: 20 }));
        assert_eq!(window(&[("page", "3"), ("limit", "500")]).ok(), Some(Paging { limit: 100, offset: 0 }));
        for bad in [("page", "0"), ("page", "-1"), ("limit", "0"), ("offset", "x"), ("page", "18446744073709551615")] {
            assert!(window(&[bad]).is_err(), "{bad:?}");
        }
    }

    #[test]
    fn an_export_has_a_window_without_a_bound_and_no_pages() {
        let window = |pairs: &[(&'static str, &'static str)]| {
            let request = ListRequest::export_from_parameters(pairs.iter().copied()).ok()?;
            Some((request.limit, request.list.paging.offset))
        };
        assert_eq!(window(&[("sort", "a"), ("a[gt]", "1")]), Some((None, 0)));
        assert_eq!(window(&[("limit", "1000000"), ("offset", "7")]), Some((Some(1_000_000), 7)));
        for bad in [
            ("page", "1"),
            ("pageSize", "5"),
            ("expand", "a"),
            ("limit", "0"),
            ("limit", "-1"),
            ("offset", "1e3"),
            ("a[x]", "1"),
            ("names", "a"),
            ("names", "a."),
        ] {
            assert_eq!(window(&[bad]), None, "{bad:?}");
        }
    }

    #[test]
    fn operators_have_aliases_in_any_case() {
        let operator =
            |name: &'static str| ListRequest::from_parameters([(name, "1")]).map(|request| request.filters[0].operator).ok();
        assert_eq!(operator("a"), Some(Operator::Eq));
        assert_eq!(operator("a[GTE]"), Some(Operator::Gte));
        assert_eq!(operator("a[<>]"), Some(Operator::Neq));
        assert_eq!(operator("a[NotIn]"), Some(Operator::Nin));
        assert_eq!(operator("a[near]"), None);
        assert_eq!(operator("a[eq"), None);
    }
}

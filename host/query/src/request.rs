//! A request of the list operation, before it is checked against the schema.

use blockbase_schema::{Error, Hint, Result, excerpt, is_name, json};
use serde::Deserialize;
use serde_json::value::RawValue;

use crate::access::Where;
use crate::cursor::{ConnectionPaging, CursorParameter};
use crate::expand::{Related, expand_paths};
use crate::filter::{FOREIGN_FILTER, Filter, FilterValue};
use crate::limits::{FILTERS_MAX, OFFSET_MAX, PAGE_SIZE_DEFAULT, PAGE_SIZE_MAX, SEARCH_CHARACTERS_MAX, SORT_KEYS_MAX};
use crate::operator::Operator;
use crate::parameter::ListParameter;

/// A window of the list.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Paging {
    pub limit: u64,
    pub offset: u64,
}

impl Default for Paging {
    fn default() -> Self {
        Paging { limit: PAGE_SIZE_DEFAULT, offset: 0 }
    }
}

impl Paging {
    /// The page's number, from 1.
    pub fn page(self) -> u64 {
        self.offset / self.limit + 1
    }

    /// The number of pages for `total` records.
    pub fn total_pages(self, total: u64) -> u64 {
        total.div_ceil(self.limit)
    }

    /// Whether there are records after the page, if there are `total` records.
    pub fn has_next_page(self, total: u64) -> bool {
        self.offset + self.limit < total
    }

    /// Whether there are records before the page.
    pub fn has_previous_page(self) -> bool {
        self.offset > 0
    }
}

/// Search, filters, order, window and projection of a list.
#[derive(Clone, Debug, Default)]
pub struct ListRequest {
    pub search: Option<String>,
    pub filters: Vec<Filter>,
    /// The condition as it was sent. There is at most one, unless they are filters on a field called `where`.
    pub wheres: Vec<Where>,
    /// The fields, each with whether its order is descending.
    pub sort: Vec<(String, bool)>,
    pub paging: Paging,
    pub select: Option<Vec<String>>,
    /// The related records to include.
    pub expand: Vec<Related>,
    /// Whether the total is counted. By default it is, except on pages by cursors.
    pub count: Option<bool>,
    /// The parameter that selects a page by its number, if there is one. Pages by cursors take none.
    pub page_by: Option<ListParameter>,
    /// The parameters of cursors, in the order in which they were sent.
    pub cursors: Vec<CursorParameter>,
    pub connection: Option<ConnectionPaging>,
}

/// A request of an export: a list whose window has no default size and no maximum.
#[derive(Clone, Debug, Default)]
pub struct ExportRequest {
    /// The list. Only the offset of its paging has an effect.
    pub list: ListRequest,
    /// The maximum number of rows. `None` for all rows.
    pub limit: Option<u64>,
    /// Relation keys, each with the unique field that is written instead of the related record's id.
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
    fn number(self, parameter: ListParameter) -> Option<u64> {
        match parameter {
            ListParameter::Page => self.page,
            ListParameter::PageSize => self.page_size,
            ListParameter::Limit => self.limit,
            ListParameter::Offset => self.offset,
            ListParameter::Search
            | ListParameter::Where
            | ListParameter::Sort
            | ListParameter::Cursor
            | ListParameter::After
            | ListParameter::Before
            | ListParameter::Select
            | ListParameter::Expand
            | ListParameter::Count => None,
        }
    }

    /// The parameter that moves the window from the beginning of the list.
    fn page_by(self) -> Option<ListParameter> {
        [ListParameter::Page, ListParameter::Offset].into_iter().find(|parameter| self.number(*parameter).is_some())
    }

    /// # Errors
    /// `invalid_request` for numbers below their minimum, and for a page that begins after the greatest offset.
    pub fn window(self) -> Result<Paging> {
        for parameter in ListParameter::of_window() {
            let least = parameter.least().unwrap_or_default();
            if self.number(parameter).is_some_and(|number| number < least) {
                let name = parameter.name();
                return Err(Error::invalid_request(format!("`{name}` needs a whole number of at least {least}.")));
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
            false => Err(Error::invalid_request(format!("The page begins after record {OFFSET_MAX}, and no list is that long."))),
        }
    }
}

fn whole_number(parameter: ListParameter, text: &str) -> Result<u64> {
    let (name, least) = (parameter.name(), parameter.least().unwrap_or_default());
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
    /// `invalid_request` for an invalid operator or number.
    pub fn from_parameters<'a>(pairs: impl IntoIterator<Item = (&'a str, &'a str)>) -> Result<ListRequest> {
        let mut request = ListRequest::default();
        let mut paging = PagingParameters::default();
        for (name, value) in pairs {
            let Some(parameter) = ListParameter::named(name) else {
                request.filters.push(parameter_filter(name, value)?);
                continue;
            };
            match parameter {
                ListParameter::Search => request.search = Some(value.to_owned()),
                ListParameter::Where => request.wheres.push(Where::Parameter(value.to_owned())),
                ListParameter::Sort => request.sort = sort_keys(value),
                ListParameter::Page => paging.page = Some(whole_number(parameter, value)?),
                ListParameter::PageSize => paging.page_size = Some(whole_number(parameter, value)?),
                ListParameter::Limit => paging.limit = Some(whole_number(parameter, value)?),
                ListParameter::Offset => paging.offset = Some(whole_number(parameter, value)?),
                ListParameter::Cursor | ListParameter::After | ListParameter::Before => {
                    request.cursors.push(CursorParameter { parameter, text: value.to_owned(), is_of_query: true });
                }
                ListParameter::Select => request.select = Some(names(value).map(str::to_owned).collect()),
                ListParameter::Expand => request.expand = expand_paths(value)?,
                ListParameter::Count => request.count = Some(is_counted(value)?),
            }
        }
        request.paging = paging.window()?;
        request.page_by = paging.page_by();
        request.checked()
    }

    /// Reads the decoded query parameters of an export: those of the list, except those of pages.
    ///
    /// # Errors
    /// `invalid_request` for `page`, `pageSize` and `expand`, in addition to those of the list.
    pub fn export_from_parameters<'a>(pairs: impl IntoIterator<Item = (&'a str, &'a str)>) -> Result<ExportRequest> {
        let (mut of_list, mut limit, mut offset, mut named) = (Vec::new(), None, 0, Vec::new());
        for (name, value) in pairs {
            match ListParameter::named(name) {
                Some(ListParameter::Page | ListParameter::PageSize) => {
                    let message =
                        format!("An export has no `{name}`. It has all rows, or the rows that `limit` and `offset` select.");
                    return Err(Error::invalid_request(message));
                }
                Some(ListParameter::Expand) => {
                    let message =
                        "An export has no `expand`. `names` writes a unique field of a related record instead of its id.";
                    return Err(Error::invalid_request(message));
                }
                Some(parameter @ ListParameter::Limit) => limit = Some(whole_number(parameter, value)?),
                Some(parameter @ ListParameter::Offset) => offset = whole_number(parameter, value)?,
                None if name == "names" => named = relation_names(value)?,
                Some(
                    ListParameter::Search
                    | ListParameter::Where
                    | ListParameter::Sort
                    | ListParameter::Cursor
                    | ListParameter::After
                    | ListParameter::Before
                    | ListParameter::Select
                    | ListParameter::Count,
                )
                | None => of_list.push((name, value)),
            }
        }
        if offset > OFFSET_MAX {
            return Err(Error::invalid_request(format!("`offset` is {OFFSET_MAX} at most.")));
        }
        let mut list = ListRequest::from_parameters(of_list)?;
        list.paging.offset = offset;
        Ok(ExportRequest { list, limit, names: named })
    }

    /// Reads the JSON form that `POST …/query`, blocks, GraphQL and MCP use: `{ search?, filters?: [{ field, operator?, value?
    /// }], where?, sort?, page?, pageSize?, limit?, offset?, cursor?, after?, before?, select?, expand?, count? }`, where `sort`,
    /// `select` and `expand` are comma-separated text as in REST.
    ///
    /// # Errors
    /// `invalid_request` for another form.
    pub fn from_json(text: &str) -> Result<ListRequest> {
        #[derive(Deserialize, Default)]
        #[serde(rename_all = "camelCase", deny_unknown_fields, default)]
        struct Document {
            search: Option<String>,
            filters: Vec<JsonFilter>,
            r#where: Option<Box<RawValue>>,
            sort: Option<String>,
            page: Option<u64>,
            page_size: Option<u64>,
            limit: Option<u64>,
            offset: Option<u64>,
            cursor: Option<bool>,
            after: Option<String>,
            before: Option<String>,
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
                    operator: filter.operator.as_deref().map_or(Ok(Operator::DEFAULT), Operator::parse)?,
                    value: FilterValue::of_json(filter.value),
                })
            })
            .collect::<Result<_>>()?;
        let paging = PagingParameters {
            page: document.page,
            page_size: document.page_size,
            limit: document.limit,
            offset: document.offset,
        };
        let cursors = [
            (ListParameter::Cursor, document.cursor.map(|cursor| cursor.to_string())),
            (ListParameter::After, document.after),
            (ListParameter::Before, document.before),
        ];
        let cursors = cursors.into_iter().filter_map(|(parameter, text)| {
            let text = text?;
            Some(CursorParameter { parameter, text, is_of_query: false })
        });
        ListRequest {
            search: document.search,
            filters,
            wheres: document.r#where.map(Where::Json).into_iter().collect(),
            sort: document.sort.as_deref().map(sort_keys).unwrap_or_default(),
            paging: paging.window()?,
            select: document.select.map(|select| names(&select).map(str::to_owned).collect()),
            expand: document.expand.as_deref().map(expand_paths).transpose()?.unwrap_or_default(),
            count: document.count.as_deref().map(is_counted).transpose()?,
            page_by: paging.page_by(),
            cursors: cursors.collect(),
            connection: None,
        }
        .checked()
    }

    /// Checks the limits of the request, and drops an empty search term.
    ///
    /// # Errors
    /// `invalid_request` for too many filters, and for an invalid search term.
    pub fn checked(mut self) -> Result<ListRequest> {
        self.check_filters(0)?;
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

impl ListRequest {
    /// Checks the number of filters, together with `more` parameters that turned out to be filters.
    pub(crate) fn check_filters(&self, more: usize) -> Result<()> {
        // The condition has limits of its own. If there are several `where`, all but one are filters on a field with this name.
        match self.filters.len() + self.wheres.len().saturating_sub(1) + more > FILTERS_MAX {
            true => Err(Error::invalid_request(format!("A request has {FILTERS_MAX} filters at most."))),
            false => Ok(()),
        }
    }

    /// Checks the number of keys in the order of a list, an export or groups.
    pub(crate) fn check_sort(&self) -> Result<()> {
        if self.sort.len() > SORT_KEYS_MAX { Err(ListRequest::too_many_sort_keys()) } else { Ok(()) }
    }

    /// The error of an order with more keys than [`SORT_KEYS_MAX`].
    pub fn too_many_sort_keys() -> Error {
        let message = format!("`sort` has {SORT_KEYS_MAX} fields at most.");
        Error::invalid_request(message).with_field(ListParameter::Sort.name())
    }
}

fn is_counted(value: &str) -> Result<bool> {
    match value {
        "none" => Ok(false),
        "exact" => Ok(true),
        _ => Err(Error::invalid_request(format!("`count` takes `exact` or `none`, not {value:?}."))),
    }
}

/// `<field>[<op>]=value`, or a bare `<field>=value`, which means eq.
fn parameter_filter(name: &str, value: &str) -> Result<Filter> {
    let (field, operator) = match name.split_once('[') {
        None => (name, Operator::DEFAULT),
        Some((field, rest)) => match rest.strip_suffix(']') {
            Some(operator) if field == FOREIGN_FILTER && operator.contains("][") => {
                (field, Operator::parse(operator).map_err(|error| error.with_hint(hint_of_nested(operator, value)))?)
            }
            Some(operator) => (field, Operator::parse(operator)?),
            None => return Err(Error::invalid_request(format!("The parameter {name:?} lacks its closing bracket."))),
        },
    };
    Ok(Filter { field: field.to_owned(), operator, value: FilterValue::Text(value.to_owned()) })
}

/// The hint for `filter[title][_eq]=x`, a form of other products. `path` is the text between the outer brackets.
fn hint_of_nested(path: &str, value: &str) -> Hint {
    let meant = path.split_once("][").filter(|(field, _)| is_name(field)).and_then(|(field, operator)| {
        let operator = Operator::parse(operator.strip_prefix('_').unwrap_or(operator)).ok()?;
        Some(Hint::Filter { field: field.to_owned(), operator: operator.name(), value: excerpt(value).into_owned() })
    });
    meant.unwrap_or(Hint::FilterByField)
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

    #[test]
    fn the_nested_form_of_other_products_gets_the_right_spelling() {
        let hint = |name: &'static str| {
            let error = ListRequest::from_parameters([(name, "x")]).expect_err("no filter of this server");
            error.hint.map(|hint| *hint)
        };
        let filter = |operator| Some(Hint::Filter { field: "title".to_owned(), operator, value: "x".to_owned() });
        assert_eq!(hint("filter[title][_eq]"), filter("eq"));
        assert_eq!(hint("filter[title][_icontains]"), Some(Hint::FilterByField));
        assert_eq!(hint("filter[title][gte]"), filter("gte"));
        assert_eq!(hint("filter[author][name][_eq]"), Some(Hint::FilterByField));
        assert_eq!(hint("filter[near]"), None);
        assert_eq!(hint("title[a][b]"), None);
    }

    #[test]
    fn any_query_is_read_or_refused() {
        use blockbase_tests::fuzz::{for_a_while, text_of};

        const WORDS: [&str; 34] = [
            "search",
            "sort",
            "page",
            "pageSize",
            "limit",
            "offset",
            "cursor",
            "after",
            "before",
            "select",
            "expand",
            "count",
            "where",
            "names",
            "title",
            "[",
            "]",
            "gte",
            "in",
            "isNull",
            ".",
            ",",
            "-",
            "=",
            "&",
            "1",
            "999999999999999999999",
            "none",
            "{",
            "}",
            "\"",
            ":",
            "\"filters\":[",
            "\"field\":\"a\"",
        ];
        for_a_while(|input| {
            let text = text_of(input, &WORDS)?;
            let pairs = || text.split('&').map(|pair| pair.split_once('=').unwrap_or((pair, "")));
            let read = ListRequest::from_parameters(pairs());
            if let Ok(request) = &read {
                assert!(request.paging.limit <= PAGE_SIZE_MAX && request.paging.offset <= OFFSET_MAX, "{text}");
            }
            let _ = ListRequest::export_from_parameters(pairs());
            let _ = ListRequest::from_json(&text);
            Ok(read.is_ok())
        });
    }
}

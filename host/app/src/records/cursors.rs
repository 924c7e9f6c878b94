//! Cursors: positions in a list, sealed for one caller and one list.
//!
//! A cursor contains values of the record to which it belongs, so it is encrypted. What it is bound to is not in it, but goes into the
//! encryption: a cursor for somebody else, or for another list, does not open. It has no time limit and names no session.
//!
//! Long values do not fit into a cursor. It then contains the id of the record and a digest of the values, which are read again. If
//! they have changed, the cursor is refused: from another place, the next page would repeat or skip other records.

use blockbase_auth::{Principal, SecretBox, sha256_hex};
use blockbase_query::limits::{CURSOR_VALUES_BYTES_MAX, PAGE_SIZE_MAX};
use blockbase_query::plan::ListPlan;
use blockbase_query::{CursorParameter, CursorsOf, Filter, FilterValue, ListParameter, ListRequest, Where};
use blockbase_quota::QuotaOwner;
use blockbase_schema::{Error, Result, json as json_text};
use schemars::JsonSchema;
use serde::Serialize;
use serde_json::{Value, json};

use crate::App;
use crate::caller::{Authority, Caller};
use crate::records::pages::{Mark, Page, Window};

/// The maximum number of characters of a cursor.
pub const CURSOR_CHARACTERS_MAX: usize = SecretBox::sealed_chars(CURSOR_VALUES_BYTES_MAX);

/// The cursors of a page.
#[derive(Debug)]
pub struct PageCursors {
    /// The cursors of the first and of the last record. `None` if the page is empty, and if the request asks for no cursors.
    pub start: Option<String>,
    pub end: Option<String>,
    pub has_previous_page: bool,
    /// The cursor of each record, if the request asks for them.
    pub of_each: Vec<String>,
}

impl PageCursors {
    /// The number of bytes of all cursors.
    pub(crate) fn bytes(&self) -> usize {
        [&self.start, &self.end].into_iter().flatten().chain(&self.of_each).map(String::len).sum()
    }
}

/// The page of an answer by cursors. `startCursor` and `endCursor` are null if the page is empty. `totalCount` is null unless the
/// request has `count=exact`.
#[derive(Clone, Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(rename = "SvcCursorPagination", deny_unknown_fields)]
pub struct CursorPaginationAnswer {
    #[schemars(with = "u32", range(min = 1), extend("maximum" = PAGE_SIZE_MAX))]
    pub page_size: u64,
    pub has_next_page: bool,
    pub has_previous_page: bool,
    /// The cursor of the first record. `before=` this cursor is the page before.
    pub start_cursor: Option<String>,
    /// The cursor of the last record. `after=` this cursor is the next page.
    pub end_cursor: Option<String>,
    pub total_count: Option<u64>,
}

impl CursorPaginationAnswer {
    /// The members, as every surface names and orders them.
    pub const MEMBERS: [&str; 6] = ["pageSize", "hasNextPage", "hasPreviousPage", "startCursor", "endCursor", "totalCount"];
}

/// The purpose for which the cursors of a list are sealed.
pub(crate) struct CursorPurpose(String);

impl CursorPurpose {
    /// The caller, the object, the order, and the conditions as they are spelled in the request: `$now` has another value on the next
    /// page.
    pub(crate) fn of(caller: &Caller, plan: &ListPlan, request: &ListRequest) -> CursorPurpose {
        let ListRequest { search, filters, wheres, cursors, .. } = request;
        let of_fields = cursors.iter().filter(|sent| sent.is_filter(&plan.object)).map(CursorParameter::filter);
        let of_fields: Vec<Filter> = of_fields.collect();
        let mut filters: Vec<Value> = filters
            .iter()
            .chain(&of_fields)
            .map(|filter| match &filter.value {
                FilterValue::Text(text) => json!([filter.field, filter.operator.name(), "text", text]),
                FilterValue::Json(raw) => json!([filter.field, filter.operator.name(), "json", raw.get()]),
            })
            .collect();
        filters.sort_by_cached_key(Value::to_string);
        let mut wheres: Vec<String> = wheres
            .iter()
            .map(|asked| {
                let text = match asked {
                    Where::Parameter(text) => text.as_str(),
                    Where::Json(raw) => raw.get(),
                };
                json_text::compact(text).unwrap_or_else(|_| text.to_owned())
            })
            .collect();
        wheres.sort();
        // A block may see more than the caller for whom it acts.
        let block = match &caller.authority {
            Authority::Own(_) => None,
            Authority::Block { name, .. } => Some(&**name),
        };
        let bound = json!([owner(caller), block, plan.object.id, plan.order_keys(), search, filters, wheres]);
        CursorPurpose(format!("cursor:{}", sha256_hex(&bound.to_string())))
    }

    /// # Errors
    /// `invalid_request` with the parameter as `field`.
    fn open(&self, secrets: &SecretBox, plan: &ListPlan, parameter: ListParameter, cursor: &str) -> Result<Mark> {
        let opened = match cursor.len() <= CURSOR_CHARACTERS_MAX {
            true => secrets.open_text(&self.0, cursor).ok(),
            false => None,
        };
        let mark = opened.and_then(|json| Mark::read(plan, std::str::from_utf8(&json).ok()?));
        mark.ok_or_else(|| {
            let name = parameter.name();
            let message = format!(
                "`{name}` is not a cursor of this list. A cursor belongs to one caller, and to a list with the same object, `sort` and \
                conditions. `{name}` with an empty text reads from the {} of the list.",
                if parameter == ListParameter::Before { "end" } else { "beginning" }
            );
            Error::invalid_request(message).with_field(name)
        })
    }
}

/// The caller to whom cursors belong: a user with or without a key, an address, or a block that acts by itself.
fn owner(caller: &Caller) -> Value {
    match (&caller.principal, caller.quota_owner()) {
        (Principal::Known(actor), _) => json!(["user", actor.user_id, actor.api_key_id]),
        (Principal::Anonymous, QuotaOwner::Address(address)) => json!(["address", address.to_string()]),
        (Principal::Anonymous, QuotaOwner::Block(block)) => json!(["block", &**block]),
        (Principal::Anonymous, QuotaOwner::Service | QuotaOwner::User(_) | QuotaOwner::Key(_)) => json!(["service"]),
    }
}

impl App {
    /// Opens the cursors of a request. `None` if it selects its page by a number.
    ///
    /// # Errors
    /// `invalid_request` with `field` for a cursor that was changed, or that belongs to another caller or to another list.
    pub(crate) fn window(&self, plan: &ListPlan, purpose: &CursorPurpose) -> Result<Option<Window>> {
        let Some(paging) = &plan.cursor else { return Ok(None) };
        let open = |parameter: ListParameter, cursor: Option<&String>| {
            cursor.map(|cursor| purpose.open(&self.secrets, plan, parameter, cursor)).transpose()
        };
        let after = open(ListParameter::After, paging.after.as_ref())?;
        let before = open(ListParameter::Before, paging.before.as_ref())?;
        Ok(Some(Window { paging: paging.clone(), after, before }))
    }

    /// Seals the marks of a page.
    pub(crate) fn cursors_of(&self, page: &Page, cursors_of: CursorsOf, purpose: &CursorPurpose) -> Result<PageCursors> {
        let seal = |mark: &Vec<u8>| self.secrets.seal_text(&purpose.0, mark).map_err(Error::internal);
        let sealed = page.marks.iter().map(seal).collect::<Result<Vec<String>>>()?;
        Ok(PageCursors {
            start: sealed.first().cloned(),
            end: sealed.last().cloned(),
            has_previous_page: page.has_previous_page,
            of_each: if cursors_of == CursorsOf::Each { sealed } else { Vec::new() },
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pagination_has_its_members() {
        let pagination = CursorPaginationAnswer {
            page_size: 25,
            has_next_page: true,
            has_previous_page: false,
            start_cursor: None,
            end_cursor: None,
            total_count: None,
        };
        let Ok(Value::Object(answered)) = serde_json::to_value(pagination) else { panic!("no object") };
        assert_eq!(answered.keys().collect::<Vec<_>>(), CursorPaginationAnswer::MEMBERS);
    }
}

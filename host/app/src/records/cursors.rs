//! Cursors: positions in a list, sealed for one caller and one list.
//!
//! A cursor contains values of the record to which it belongs, so it is encrypted. What it is bound to is not in it, but goes into the
//! encryption: a cursor for somebody else, or for another list, does not open. It has no time limit and names no session.

use blockbase_auth::{Principal, SecretBox, hash_token};
use blockbase_query::limits::{CURSOR_VALUES_BYTES_MAX, PAGE_SIZE_MAX};
use blockbase_query::plan::ListPlan;
use blockbase_query::{FilterValue, ListParameter, ListRequest, Position, Where};
use blockbase_quota::QuotaOwner;
use blockbase_schema::{Error, Result, json as json_text};
use schemars::JsonSchema;
use serde::Serialize;
use serde_json::{Value, json};

use crate::App;
use crate::caller::{Authority, Caller};
use crate::records::pages::{Page, Window};

/// The maximum number of characters of a cursor.
pub const CURSOR_CHARACTERS_MAX: usize = SecretBox::sealed_chars(CURSOR_VALUES_BYTES_MAX);

/// The cursors of a page.
#[derive(Debug)]
pub struct PageCursors {
    /// The cursors of the first and of the last record. `None` if the page is empty.
    pub start: Option<String>,
    pub end: Option<String>,
    pub has_previous_page: bool,
    /// The cursor of each record, if the request asks for them.
    pub of_each: Vec<String>,
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
    /// The caller, the object, the order, and the conditions as they were sent: `$now` has another value on the next page.
    pub(crate) fn of(caller: &Caller, plan: &ListPlan, request: &ListRequest) -> CursorPurpose {
        let ListRequest { search, filters, wheres, cursors, .. } = request;
        let mut filters: Vec<Value> = filters
            .iter()
            .map(|filter| match &filter.value {
                FilterValue::Text(text) => json!([filter.field, filter.operator.name(), "text", text]),
                FilterValue::Json(raw) => json!([filter.field, filter.operator.name(), "json", raw.get()]),
            })
            .collect();
        // A filter on a field that is called `after`.
        let of_fields =
            cursors.iter().filter(|sent| sent.is_of_query && plan.object.column_index(sent.parameter.name()).is_some());
        filters.extend(of_fields.map(|sent| json!([sent.parameter.name(), "eq", "text", sent.text])));
        filters.sort_by_cached_key(Value::to_string);
        let wheres: Vec<String> = wheres
            .iter()
            .map(|asked| {
                let text = match asked {
                    Where::Parameter(text) => text.as_str(),
                    Where::Json(raw) => raw.get(),
                };
                json_text::compact(text).unwrap_or_else(|_| text.to_owned())
            })
            .collect();
        // A block may see more than the caller for whom it acts.
        let block = match &caller.authority {
            Authority::Own(_) => None,
            Authority::Block { name, .. } => Some(&**name),
        };
        let bound = json!([owner(caller), block, plan.object.id, plan.order_keys(), search, filters, wheres]);
        CursorPurpose(format!("cursor:{}", hash_token(&bound.to_string())))
    }

    /// # Errors
    /// `invalid_request` with the parameter as `field`.
    fn open(&self, secrets: &SecretBox, plan: &ListPlan, parameter: ListParameter, cursor: &str) -> Result<Position> {
        let opened = match cursor.len() <= CURSOR_CHARACTERS_MAX {
            true => secrets.open_text(&self.0, cursor).ok(),
            false => None,
        };
        let position = opened.and_then(|json| plan.position(std::str::from_utf8(&json).ok()?));
        position.ok_or_else(|| {
            let name = parameter.name();
            let message = format!(
                "`{name}` is no cursor of this list. A cursor belongs to one caller, and to a list with the same object, `sort` and \
                conditions. An empty `{name}` begins again."
            );
            Error::invalid_request(message).with_field(name)
        })
    }
}

/// The caller to whom cursors belong: a user with or without a key, an address, or a block that acts by itself.
fn owner(caller: &Caller) -> Value {
    match (&caller.principal, caller.quota_owner()) {
        (Principal::Known(actor), _) => json!(["user", actor.user_id, actor.api_key_id]),
        (Principal::Anonymous, QuotaOwner::Address(address)) => {
            json!(["address", address.to_string(), caller.basis.is_service()])
        }
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

    /// Seals the positions of a page.
    pub(crate) fn cursors_of(&self, page: &Page, of_each: bool, purpose: &CursorPurpose) -> Result<PageCursors> {
        let seal = |position: &Vec<u8>| self.secrets.seal_text(&purpose.0, position).map_err(Error::internal);
        let sealed = page.positions.iter().map(seal).collect::<Result<Vec<String>>>()?;
        Ok(PageCursors {
            start: sealed.first().cloned(),
            end: sealed.last().cloned(),
            has_previous_page: page.has_previous_page,
            of_each: if of_each { sealed } else { Vec::new() },
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

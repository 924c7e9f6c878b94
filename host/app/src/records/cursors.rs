//! Cursors: positions in a list, sealed for one caller and one list.
//!
//! A cursor contains values of the record to which it belongs, so it is encrypted. What it is bound to is not in it, but goes into the
//! encryption: a cursor for somebody else, or for another list, does not open. It has no time limit and names no session.
//!
//! Long values do not fit into a cursor. It then contains the id of the record and a digest of the values, which are read again. If
//! they have changed, the cursor is refused: from another place, the next page would repeat or skip other records.

use blockbase_auth::{Principal, SecretBox, sha256_hex};
use blockbase_query::condition;
use blockbase_query::limits::{CURSOR_VALUES_BYTES_MAX, PAGE_SIZE_MAX};
use blockbase_query::plan::ListPlan;
use blockbase_query::{CursorParameter, CursorsOf, Filter, FilterValue, ListParameter, ListRequest, Where};
use blockbase_quota::QuotaOwner;
use blockbase_schema::json::Members;
use blockbase_schema::{Error, Result, json as json_text};
use schemars::JsonSchema;
use serde::Serialize;
use serde_json::value::RawValue;
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
    /// False if the request does not ask for it.
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

/// The maximum number of levels of lists and objects in a condition as JSON: its own levels, the lists between them, and a value.
const JSON_LEVELS_MAX: usize = 3 * condition::LEVELS_MAX;

/// The purpose for which the cursors of a list are sealed.
pub(crate) struct CursorPurpose(String);

impl CursorPurpose {
    /// The caller, the object, the order, and the conditions. These are the texts of the request, because `$now` has another
    /// value on the next page. But the spaces and the order of members in JSON do not count.
    pub(crate) fn of(caller: &Caller, plan: &ListPlan, request: &ListRequest) -> CursorPurpose {
        let ListRequest { search, filters, wheres, cursors, .. } = request;
        let of_fields = cursors.iter().filter(|sent| sent.is_filter(&plan.object)).map(CursorParameter::filter);
        let of_fields: Vec<Filter> = of_fields.collect();
        let mut filters: Vec<Value> = filters
            .iter()
            .chain(&of_fields)
            .map(|filter| match &filter.value {
                FilterValue::Text(text) => json!([filter.field, filter.operator.name(), "text", text]),
                FilterValue::Json(raw) => json!([filter.field, filter.operator.name(), "json", written_alike(raw.get())]),
            })
            .collect();
        filters.sort_by_cached_key(Value::to_string);
        // If the object has a field with this name, the parameter is a filter on its texts.
        let is_field = plan.object.column_index(ListParameter::Where.name()).is_some();
        let mut wheres: Vec<String> = wheres
            .iter()
            .map(|asked| match asked {
                Where::Parameter(text) if is_field => text.clone(),
                Where::Parameter(text) => written_alike(text),
                Where::Json(raw) => written_alike(raw.get()),
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

    /// The number of bytes of a request that [`CursorPurpose::of`] reads.
    pub(crate) fn bytes_read(request: &ListRequest) -> usize {
        let of_filter = |filter: &Filter| match &filter.value {
            FilterValue::Text(text) => text.len(),
            FilterValue::Json(raw) => raw.get().len(),
        };
        request.wheres.iter().map(Where::bytes).sum::<usize>() + request.filters.iter().map(of_filter).sum::<usize>()
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

/// A JSON document in one form of several that mean the same: without spaces, with the members of each object in the order of
/// their names, and with the shortest text of each string. Numbers keep their digits. A text that is not JSON stays as it is.
///
/// A document that nests more deeply than any condition stays as it is too. It can be the value of an operator that ignores it.
fn written_alike(text: &str) -> String {
    let mut out = Vec::with_capacity(text.len());
    let written = write_alike(&mut out, text, JSON_LEVELS_MAX).and_then(|()| String::from_utf8(out).ok());
    written.unwrap_or_else(|| text.to_owned())
}

/// Returns `None` if the text is not JSON, or has more than `levels` of lists and objects.
fn write_alike(out: &mut Vec<u8>, text: &str, levels: usize) -> Option<()> {
    let text = text.trim_ascii();
    match text.as_bytes().first()? {
        b'{' | b'[' if levels == 0 => return None,
        b'{' => {
            let mut members = serde_json::from_str::<Members>(text).ok()?.0;
            members.sort_by(|(one, _), (two, _)| one.cmp(two));
            out.push(b'{');
            for (place, (name, value)) in members.iter().enumerate() {
                if place > 0 {
                    out.push(b',');
                }
                json_text::write_string(out, name);
                out.push(b':');
                write_alike(out, value.get(), levels - 1)?;
            }
            out.push(b'}');
        }
        b'[' => {
            out.push(b'[');
            for (place, item) in serde_json::from_str::<Vec<&RawValue>>(text).ok()?.into_iter().enumerate() {
                if place > 0 {
                    out.push(b',');
                }
                write_alike(out, item.get(), levels - 1)?;
            }
            out.push(b']');
        }
        b'"' => json_text::write_string(out, &serde_json::from_str::<String>(text).ok()?),
        _ => out.extend_from_slice(serde_json::from_str::<&RawValue>(text).ok()?.get().as_bytes()),
    }
    Some(())
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

    #[test]
    fn documents_that_mean_the_same_are_written_alike() {
        let plain = r#"{"_and":[{"a":{"gt":1.50,"in":["é",null]}},{}],"b":true}"#;
        for text in [
            plain,
            " { \"b\" : true , \"_and\" : [ { \"a\" : { \"in\" : [ \"\\u00e9\" , null ] , \"gt\" : 1.50 } } , { } ] } \n",
            r#"{"b":true,"\u005fand":[{"a":{"in":["é",null],"gt":1.50}},{}]}"#,
        ] {
            assert_eq!(written_alike(text), plain, "{text}");
        }
        // The order of a list, the digits of a number, and the case of a text count.
        for other in [
            r#"{"_and":[{},{"a":{"gt":1.50,"in":["é",null]}}],"b":true}"#,
            r#"{"_and":[{"a":{"gt":1.5,"in":["é",null]}},{}],"b":true}"#,
            r#"{"_and":[{"a":{"gt":1.50,"in":["É",null]}},{}],"b":true}"#,
        ] {
            assert_ne!(written_alike(other), plain);
        }
        for (one, two) in [("9007199254740993", "9007199254740992"), ("9999999999999999.99", "9999999999999999.98")] {
            assert_ne!(written_alike(one), written_alike(two));
        }
        // A document that nests too deeply stays as it is, however deeply it nests.
        for levels in [JSON_LEVELS_MAX + 1, 100_000] {
            let deep = format!("{}1 {}", "[".repeat(levels), "]".repeat(levels));
            assert_eq!(written_alike(&deep), deep);
        }
        let deepest = format!("{}1 {}", "[".repeat(JSON_LEVELS_MAX), "]".repeat(JSON_LEVELS_MAX));
        assert_eq!(written_alike(&deepest), deepest.replace(' ', ""));
        for bad in ["", " ", "{", "[1,]", "\"", "x y", "{\"a\":}", "1 2"] {
            assert_eq!(written_alike(bad), bad);
        }
    }
}

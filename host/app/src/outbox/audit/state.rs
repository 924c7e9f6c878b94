//! The states before and after an act: what the log keeps of an answer.

use blockbase_schema::json::{Members, write_string};
use blockbase_store::REPLACED;
use serde::Serialize;
use serde_json::value::RawValue;

use crate::base::json_texts::replace_texts;

/// The maximum size of one state in bytes. A row has two of them, and is smaller than 64 KiB.
const STATE_BYTES_MAX: usize = 30 * 1024;
/// The maximum size of the list of left-out members, in bytes.
const CUT_BYTES_MAX: usize = 1024;
/// The maximum size of a name in this list, in bytes.
const CUT_NAME_BYTES_MAX: usize = CUT_BYTES_MAX / 32;
/// The maximum number of names in this list.
const CUT_NAMES_MAX: usize = CUT_BYTES_MAX / 64;
/// The member that names the left-out members.
const CUT: &str = "cut";
/// Stands at the end of this list for members that it does not name.
const CUT_OTHERS: &str = "*";
/// The members of an answer about a user that identify the person.
const PERSONAL: [&str; 5] = ["name", "email", "image", "ipAddress", "userAgent"];

/// The stored form of a state. `None` for null.
///
/// If it is too large, members that do not fit are left out as a whole, and `cut` lists their names.
pub(super) fn stored_state(state: &impl Serialize) -> Option<String> {
    let text = serde_json::to_string(state).ok()?;
    if !text.starts_with('{') {
        return None;
    }
    let text = replace_texts(&text, |text| plain_url(&text.value()));
    match text.len() <= STATE_BYTES_MAX {
        true => Some(text),
        false => Some(cut(&text)),
    }
}

/// The URL without its user name, password, query and fragment. `None` if the text is not a URL, or has none of them.
fn plain_url(text: &str) -> Option<String> {
    let (scheme, rest) = text.split_once("://")?;
    let is_scheme = |byte: u8| byte.is_ascii_alphanumeric() || b"+-.".contains(&byte);
    if scheme.is_empty() || !scheme.bytes().all(is_scheme) {
        return None;
    }
    let rest = rest.split(['?', '#']).next().unwrap_or_default();
    let (authority, path) = rest.split_at(rest.find(['/', '\\']).unwrap_or(rest.len()));
    let host = authority.rsplit('@').next().unwrap_or_default();
    let plain = format!("{scheme}://{host}{path}");
    (plain != text).then_some(plain)
}

/// The members that fit, in their order, and the names of the others.
fn cut(text: &str) -> String {
    let Ok(Members(members)) = serde_json::from_str(text) else {
        return format!("{{\"{CUT}\":[\"{CUT_OTHERS}\"]}}");
    };
    let mut left = STATE_BYTES_MAX - CUT_BYTES_MAX;
    let (mut kept, mut gone) = (Vec::new(), Vec::new());
    for (name, value) in members {
        // The quotes, the colon and the comma.
        match left.checked_sub(name.len() + value.get().len() + 4) {
            Some(rest) => {
                left = rest;
                kept.push((name, value));
            }
            None => gone.push(name),
        }
    }
    let mut named: Vec<&str> = gone.iter().map(String::as_str).collect();
    named.retain(|name| name.len() < CUT_NAME_BYTES_MAX);
    named.truncate(CUT_NAMES_MAX);
    if named.len() < gone.len() {
        named.push(CUT_OTHERS);
    }
    let mut names = vec![b'['];
    for name in named {
        if names.len() > 1 {
            names.push(b',');
        }
        write_string(&mut names, name);
    }
    names.push(b']');
    let names = String::from_utf8(names).ok().and_then(|names| RawValue::from_string(names).ok());
    kept.extend(names.map(|names| (CUT.to_owned(), names)));
    Members(kept).text()
}

/// A state without the texts that identify its user. They are members of the state itself, not of the objects in it.
pub(super) fn without_person(state: &str) -> String {
    replace_texts(state, |text| (text.depth == 1 && PERSONAL.contains(&text.member)).then(|| REPLACED.to_owned()))
}

/// A state without an e-mail address, which may be in any value, name or longer text. Case does not matter.
///
/// JSON escapes no character of an e-mail address, so the address stands in the text as it is.
pub(super) fn without_address(state: &str, email: &str) -> String {
    let (folded, sought) = (state.to_ascii_lowercase(), email.to_ascii_lowercase());
    let mut out = String::with_capacity(state.len());
    let mut end = 0;
    for (place, found) in folded.match_indices(sought.as_str()) {
        out.push_str(state.get(end..place).unwrap_or_default());
        out.push_str(REPLACED);
        end = place + found.len();
    }
    out.push_str(state.get(end..).unwrap_or_default());
    out
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    #[test]
    fn urls_lose_what_may_be_secret() {
        for (url, plain) in [
            ("https://ann:pw@example.com:8443/in?token=1#x", Some("https://example.com:8443/in")),
            ("https://example.com?token=1", Some("https://example.com")),
            ("HTTPS://a@b@example.com/x@y", Some("HTTPS://example.com/x@y")),
            ("postgres://u:p@db/name", Some("postgres://db/name")),
            ("https://example.com/in", None),
            ("see https://example.com/?a", None),
            ("a text", None),
        ] {
            assert_eq!(plain_url(url).as_deref(), plain, "{url}");
        }
        let state = stored_state(&json!({ "urls": ["https://x.y/?k=s"], "n": 1 })).expect("a state");
        assert_eq!(state, r#"{"urls":["https://x.y/"],"n":1}"#);
    }

    #[test]
    fn large_states_lose_whole_members() {
        let state = json!({ "id": "i", "permissions": "x".repeat(STATE_BYTES_MAX), "name": "n" });
        let text = stored_state(&state).expect("a state");
        let read: Value = serde_json::from_str(&text).expect("JSON");
        assert_eq!(read, json!({ "id": "i", "name": "n", "cut": ["permissions"] }));
        let many: serde_json::Map<String, Value> =
            (0..900).map(|number| (format!("member{number}"), json!("y".repeat(200)))).collect();
        let text = stored_state(&many).expect("a state");
        assert!(text.len() <= STATE_BYTES_MAX, "{}", text.len());
        let read: Value = serde_json::from_str(&text).expect("JSON");
        let names = read["cut"].as_array().expect("names");
        assert_eq!((names.len(), names.last()), (CUT_NAMES_MAX + 1, Some(&json!("*"))));
    }

    #[test]
    fn cut_shows_that_it_does_not_name_all_members() {
        let (short, long) = ("s".repeat(CUT_NAME_BYTES_MAX - 1), "l".repeat(CUT_NAME_BYTES_MAX));
        let value = "x".repeat(STATE_BYTES_MAX);
        let cut_of = |state: Value| {
            let text = stored_state(&state).expect("a state");
            serde_json::from_str::<Value>(&text).expect("JSON")["cut"].clone()
        };
        assert_eq!(cut_of(json!({ short.as_str(): value })), json!([short]));
        assert_eq!(cut_of(json!({ long.as_str(): value })), json!(["*"]));
        assert_eq!(cut_of(json!({ short.as_str(): value, long.as_str(): value })), json!([short, "*"]));
    }

    #[test]
    fn an_address_goes_from_all_texts() {
        let state = r#"{"name":"key of Ann@x.y","if":{"email":{"eq":"ann@x.y"}},"ann@x.y":["é","joann@x.y"],"n":1.50}"#;
        let wanted = r#"{"name":"key of deleted","if":{"email":{"eq":"deleted"}},"deleted":["é","jodeleted"],"n":1.50}"#;
        assert_eq!(without_address(state, "ann@x.y"), wanted);
        assert_eq!(without_address(state, "bob@x.y"), state);
    }

    #[test]
    fn null_is_no_state() {
        assert_eq!(stored_state(&Value::Null), None);
        assert_eq!(stored_state(&None::<Value>), None);
    }

    #[test]
    fn the_person_goes_and_the_rest_stays() {
        let state = r#"{"id":"1","name":"Ann","email":"a@x.y","image":null,"roles":[{"id":"2","name":"admin"}]}"#;
        let wanted = r#"{"id":"1","name":"deleted","email":"deleted","image":null,"roles":[{"id":"2","name":"admin"}]}"#;
        assert_eq!(without_person(state), wanted);
    }
}

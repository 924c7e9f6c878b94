//! The contents of a delivery, and the part of it that is stored.

use blockbase_sdk::hooks::Request;
use serde_json::{Value, json};

/// Bytes of an event's name or a delivery's id. GitHub's are far shorter.
const NAME_BYTES_MAX: usize = 100;

/// Whether a header's value can name an event or a delivery.
pub fn is_name(text: &str) -> bool {
    (1..=NAME_BYTES_MAX).contains(&text.len()) && text.bytes().all(|byte| byte.is_ascii_graphic())
}

/// The payload. The webhook's content type decides whether it is the body itself or the field `payload` of a form.
pub fn payload(request: &Request) -> Option<Value> {
    let kind = request.header("content-type").unwrap_or_default().to_ascii_lowercase();
    let payload: Value = match kind.starts_with("application/x-www-form-urlencoded") {
        true => {
            // A form is encoded like a query.
            let form = Request { query: request.text().ok()?.to_owned(), ..request.clone() };
            serde_json::from_str(&form.query_value("payload")?).ok()?
        }
        false => serde_json::from_slice(&request.body).ok()?,
    };
    payload.is_object().then_some(payload)
}

/// The record of a delivery. `ref` is the ref that was pushed, created or deleted, or the branch that a pull request asks to merge.
pub fn record(delivery_id: &str, event: &str, payload: Value) -> Value {
    let reference = payload["ref"].as_str().or(payload["pull_request"]["head"]["ref"].as_str());
    json!({
        "delivery_id": delivery_id,
        "event": event,
        "action": payload["action"].as_str(),
        "repository": payload["repository"]["full_name"].as_str(),
        "sender": payload["sender"]["login"].as_str(),
        "ref": reference,
        "payload": payload,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn request(kind: &str, body: &str) -> Request {
        Request {
            method: "POST".to_owned(),
            path: "/".to_owned(),
            query: "payload=%7B%22from%22%3A%22the%20query%22%7D".to_owned(),
            headers: vec![("Content-Type".to_owned(), kind.as_bytes().to_vec())],
            body: body.as_bytes().to_vec(),
            remote_address: "127.0.0.1".to_owned(),
        }
    }

    #[test]
    fn both_content_types_are_read() {
        let expected = Some(json!({ "zen": "a + b & c" }));
        assert_eq!(payload(&request("application/json", r#"{"zen":"a + b & c"}"#)), expected);
        let form = "other=1&payload=%7B%22zen%22%3A%22a+%2B+b+%26%20c%22%7D";
        assert_eq!(payload(&request("application/x-www-form-urlencoded", form)), expected);
        assert_eq!(payload(&request("application/x-www-form-urlencoded; charset=UTF-8", form)), expected);
        for (kind, body) in [
            ("application/json", "zen"),
            ("application/json", "[]"),
            ("application/json", ""),
            ("application/x-www-form-urlencoded", ""),
            ("application/x-www-form-urlencoded", "payload=x"),
            ("application/x-www-form-urlencoded", r#"{"zen":1}"#),
        ] {
            assert_eq!(payload(&request(kind, body)), None, "{kind} {body}");
        }
    }

    #[test]
    fn names_are_short_and_visible() {
        assert!(is_name("pull_request") && is_name("72d3162e-cc78-11e3-81ab-4c9367dc0958"));
        assert!(!is_name("") && !is_name("a b") && !is_name("é") && !is_name(&"x".repeat(101)));
    }

    #[test]
    fn a_deletion_or_a_comment_has_what_it_has() {
        let kept = record("d", "issue_comment", json!({ "action": "created", "sender": { "login": "octocat" } }));
        assert_eq!((&kept["action"], &kept["ref"], &kept["repository"]), (&json!("created"), &Value::Null, &Value::Null));
    }
}

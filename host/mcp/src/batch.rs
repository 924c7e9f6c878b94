//! Arrays of messages, which exist in only one version of the protocol.

use std::sync::Arc;

use blockbase_app::schema::{Error, excerpt_of};
use http::StatusCode;
use http::request::Parts;
use http_body_util::BodyExt;
use serde_json::value::RawValue;

use crate::answer::Answer;
use crate::call::Invoked;
use crate::message::Message;
use crate::post::unreadable;
use crate::{Mcp, answer};

/// The maximum number of messages in one array.
const MESSAGES_MAX: usize = 50;
/// The maximum number of bytes of the answers to one array. If the answers are larger, the remaining messages are not run.
const ANSWERS_BYTES_MAX: usize = 64 * 1024 * 1024;

impl Mcp {
    /// Answers the messages of an array one after another. The answer is an array too.
    pub(crate) async fn batch(&self, invoked: &Arc<Invoked>, parts: &Parts, text: &str) -> Answer {
        let refused = |code, text: &str| answer::error(StatusCode::BAD_REQUEST, code, text, None, None);
        let messages: Vec<&RawValue> = match serde_json::from_str(text) {
            Ok(messages) => messages,
            Err(error) => return refused(answer::PARSE_ERROR, &format!("The body is not JSON: {}.", excerpt_of(&error))),
        };
        if messages.is_empty() || messages.len() > MESSAGES_MAX {
            return refused(answer::INVALID_REQUEST, &format!("An array must have 1 to {MESSAGES_MAX} messages."));
        }
        let mut answers = Vec::new();
        let mut bytes = 0;
        for message in messages {
            let answered = match Message::parse(message.get()) {
                Ok(message) if message.method == "initialize" => {
                    return refused(answer::INVALID_REQUEST, "Send `initialize` by itself, not in an array.");
                }
                Ok(message) if bytes > ANSWERS_BYTES_MAX => {
                    let most = ANSWERS_BYTES_MAX / 1024 / 1024;
                    let text = format!("Together the responses have more than {most} MiB. Send this message by itself.");
                    answer::refused(&Error::invalid_request(text), message.id.as_deref())
                }
                Ok(message) => self.one(invoked, parts, message).await,
                Err(problem) => unreadable(&problem),
            };
            // A caller without a valid credential or session gets only this error.
            if matches!(answered.status(), StatusCode::UNAUTHORIZED | StatusCode::NOT_FOUND) {
                return answered;
            }
            let Ok(body) = answered.into_body().collect().await;
            let body = body.to_bytes();
            bytes += body.len();
            if !body.is_empty() {
                answers.push(body);
            }
        }
        if answers.is_empty() {
            return answer::nothing(StatusCode::ACCEPTED);
        }
        let mut joined = vec![b'['];
        joined.extend_from_slice(&answers.join(&b","[..]));
        joined.push(b']');
        answer::json_bytes(StatusCode::OK, joined)
    }
}

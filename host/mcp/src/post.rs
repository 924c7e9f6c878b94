//! `POST`: reads a message, and answers it.

use std::borrow::Cow;
use std::sync::Arc;

use blockbase_app::schema::{Code, Error, excerpt_of};
use blockbase_app::{IncomingBody, run_offloaded};
use bytes::Bytes;
use http::header::{ACCEPT, CONTENT_TYPE, HOST};
use http::request::Parts;
use http::{HeaderMap, HeaderValue, Method, Request, StatusCode};
use http_body::Frame;
use http_body_util::combinators::BoxBody;
use http_body_util::{BodyExt, Full};
use serde_json::value::RawValue;

use crate::answer::Answer;
use crate::call::{Call, Invoked};
use crate::message::{Malformed, Message, SESSION_HEADER, accepts, has_batches, is_json, is_without_sessions, wants_no_session};
use crate::tools::VisibleTools;
use crate::{Mcp, answer};

/// The request that begins a session.
const INITIALIZE: &str = "initialize";
const EVENT_STREAM: &str = "text/event-stream";

impl Mcp {
    pub(crate) async fn post(&self, invoked: Invoked, parts: &Parts, body: IncomingBody) -> Answer {
        let headers = &parts.headers;
        let malformed = |status, text: &str| answer::error(status, answer::INVALID_REQUEST, text, None, None);
        if !is_json(headers) {
            let text = "Send the message with `Content-Type: application/json`.";
            return answer::refused(&Error::new(Code::UnsupportedMediaType, text), None);
        }
        if !accepts(headers, "application/json") || !accepts(headers, EVENT_STREAM) {
            return malformed(StatusCode::NOT_ACCEPTABLE, "Send `Accept: application/json, text/event-stream`.");
        }
        let body = match body.read().await {
            Ok(body) => body,
            Err(error) => return answer::refused(&error, None),
        };
        // The body may have arrived slowly, so the caller is checked again.
        if let Err(error) = self.app.recheck(&invoked.caller).await {
            return answer::refused(&error, None);
        }
        let Ok(text) = std::str::from_utf8(&body) else {
            let text = "The body is not valid UTF-8.";
            return answer::error(StatusCode::BAD_REQUEST, answer::PARSE_ERROR, text, None, None);
        };
        let invoked = Arc::new(invoked);
        if text.trim_start().starts_with('[') {
            return match has_batches(headers) {
                true => self.batch(&invoked, parts, text).await,
                false => malformed(StatusCode::BAD_REQUEST, "This version of the protocol has no arrays of messages."),
            };
        }
        let message = run_offloaded(text.len(), || Message::parse(text));
        // The message has its own copy of the data. The body is dropped here, so that a large message is in memory only once.
        drop(body);
        match message {
            Ok(message) => self.one(&invoked, parts, message).await,
            Err(problem) => unreadable(&problem),
        }
    }

    /// Answers one message.
    pub(crate) async fn one(&self, invoked: &Arc<Invoked>, parts: &Parts, message: Message) -> Answer {
        let Message { id, method, text, arguments, cancels } = message;
        let id = id.as_deref();
        let begins = method == INITIALIZE && id.is_some();
        let named = match parts.headers.contains_key(SESSION_HEADER) && !is_without_sessions(&parts.headers) {
            false => None,
            true => match self.sessions.named(&parts.headers, &invoked.caller) {
                Ok(_) if begins => {
                    let text = "The session has already begun. A request without a session begins a new one.";
                    return answer::error(StatusCode::BAD_REQUEST, answer::INVALID_REQUEST, text, None, id);
                }
                Ok(session) => Some(session),
                Err(refused) => return *refused,
            },
        };
        if let (Some(session), Some(request)) = (&named, &cancels) {
            session.cancel(request);
        }
        let running = match named.as_ref().zip(id).map(|(session, id)| session.run(id.get())).transpose() {
            Ok(running) => running,
            Err(error) => return answer::refused(&error, id),
        };
        let call = Call::new(Arc::clone(invoked), arguments);
        let answering = self.protocol.handle(protocol_request(&parts.headers, text, &call));
        let response = match &running {
            None => answering.await,
            Some(running) => tokio::select! {
                response = answering => response,
                // A client that cancels a request does not want an answer to it.
                () = running.cancelled() => return answer::nothing(StatusCode::ACCEPTED),
            },
        };
        let mut response = match response.headers().get(CONTENT_TYPE) {
            Some(kind) if kind == EVENT_STREAM => return self.counted(invoked, response, id),
            _ => finished(response, &call, id).await,
        };
        let shown = call.outcome.lock().shown;
        if let (Some(session), Some(shown)) = (&named, shown) {
            session.set_known_tools(shown);
        }
        if begins && wants_no_session(&parts.uri).is_ok_and(|wants_none| !wants_none) && is_success(&response.1) {
            let shown = VisibleTools::to(&self.app, &invoked.caller).fingerprint();
            let session = self.sessions.begin(&invoked.caller, shown);
            if let Some(Ok(id)) = session.map(|session| HeaderValue::from_str(&session.id)) {
                response.0.headers_mut().insert(SESSION_HEADER, id);
            }
        }
        response.0
    }

    /// A response with a stream that rmcp makes. It counts as an open stream until it ends.
    fn counted(&self, invoked: &Invoked, response: Answer, id: Option<&RawValue>) -> Answer {
        match self.app.stream_place(invoked.caller.quota_owner()) {
            Ok(place) => response.map(|body| {
                body.map_frame(move |frame: Frame<Bytes>| {
                    let _held = &place;
                    frame
                })
                .boxed()
            }),
            Err(error) => answer::refused(&error, id),
        }
    }
}

/// The answer to text that is not a message.
pub(crate) fn unreadable(problem: &Malformed) -> Answer {
    answer::error(StatusCode::BAD_REQUEST, problem.code, &problem.message, None, problem.id.as_deref())
}

/// The request for rmcp. It has the protocol's headers, and the call as an extension.
fn protocol_request(headers: &HeaderMap, text: Vec<u8>, call: &Arc<Call>) -> Request<Full<Bytes>> {
    let mut request = Request::new(Full::new(Bytes::from(text)));
    *request.method_mut() = Method::POST;
    let kept = headers.iter().filter(|(name, _)| name.as_str().starts_with("mcp-") || **name == HOST);
    request.headers_mut().extend(kept.map(|(name, value)| (name.clone(), value.clone())));
    request.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
    request.headers_mut().insert(ACCEPT, HeaderValue::from_static("application/json, text/event-stream"));
    request.extensions_mut().insert(Arc::clone(call));
    request
}

/// Puts the tool's document into rmcp's answer, and returns the answer's body as bytes. A plain-text answer of rmcp becomes a
/// JSON-RPC error.
async fn finished(response: Answer, call: &Call, id: Option<&RawValue>) -> (Answer, Bytes) {
    let (parts, body) = response.into_parts();
    let body = whole(body).await;
    let is_json = parts.headers.get(CONTENT_TYPE).is_some_and(|kind| kind == "application/json");
    let (document, unauthorized) = {
        let mut outcome = call.outcome.lock();
        (outcome.document.take(), outcome.unauthorized.take())
    };
    if let Some(error) = unauthorized {
        return (answer::refused(&error, id), Bytes::new());
    }
    if !is_json {
        let refused = match parts.status {
            status if status.is_success() => answer::nothing(status),
            // The content type was checked before. So this status means that rmcp refuses the message itself.
            StatusCode::UNSUPPORTED_MEDIA_TYPE => {
                let text = "The message has a form that the protocol does not know.";
                answer::error(StatusCode::BAD_REQUEST, answer::INVALID_REQUEST, text, None, id)
            }
            status => answer::error(status, answer::INVALID_REQUEST, &excerpt_of(&String::from_utf8_lossy(&body)), None, id),
        };
        return (refused, body);
    }
    let body = match document {
        Some(document) => Bytes::from(with_document(&body, &call.marker, &document)),
        None => body,
    };
    (answer::json_bytes(parts.status, body.clone()), body)
}

async fn whole(body: BoxBody<Bytes, std::convert::Infallible>) -> Bytes {
    match body.collect().await {
        Ok(collected) => collected.to_bytes(),
        Err(never) => match never {},
    }
}

/// Replaces the markers with the document. The first marker becomes text, and the next one the value itself, with all its digits.
fn with_document(body: &[u8], marker: &str, document: &str) -> Vec<u8> {
    let body = String::from_utf8_lossy(body);
    let marker = format!("\"{marker}\"");
    let mut parts = body.splitn(3, &marker);
    let (before, between, after) = (parts.next(), parts.next(), parts.next());
    let mut out = Vec::with_capacity(body.len() + document.len() * 5 / 2);
    out.extend_from_slice(before.unwrap_or_default().as_bytes());
    if let Some(between) = between {
        blockbase_app::schema::json::write_string(&mut out, document);
        out.extend_from_slice(between.as_bytes());
    }
    if let Some(after) = after {
        out.extend_from_slice(document.as_bytes());
        out.extend_from_slice(after.as_bytes());
    }
    out
}

/// Whether a JSON-RPC body has a result.
fn is_success(body: &[u8]) -> bool {
    #[derive(serde::Deserialize)]
    struct Answered<'a> {
        #[serde(borrow)]
        result: Option<Cow<'a, RawValue>>,
    }
    serde_json::from_slice::<Answered<'_>>(body).is_ok_and(|answered| answered.result.is_some())
}

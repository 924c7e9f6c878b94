//! `GET /api/v1/events/stream`: the live feed as Server-Sent Events. `POST /api/v1/events/ticket` makes a ticket that opens it.

use std::num::NonZeroU16;

use axum::body::Body;
use axum::extract::State;
use axum::http::{HeaderMap, HeaderValue, Method, StatusCode, header};
use axum::response::Response;
use blockbase_app::schema::{BUSY_RETRY_AFTER_S, Code, Error};
use blockbase_app::{PATTERNS_MAX, StreamForm, StreamRequest, StreamTicketAnswer, TOPICS_DEFAULT, log_cause};
use bytes::Bytes;
use futures_util::stream;
use serde_json::json;

use crate::AppState;
use crate::answer::error::ApiError;
use crate::answer::render;
use crate::openapi::answers::of;
use crate::openapi::operation::{Caller, Operation, Paths, header_parameter, headers as response_headers, query_parameter};
use crate::request::admission::{Granted, Stream, StreamOpener};
use crate::request::extract::{Presented, QueryPairs};
use crate::routing::Routes;

pub(crate) fn routes() -> Routes {
    Routes::new().get("/api/v1/events/stream", stream).post("/api/v1/events/ticket", ticket)
}

/// The media type of a stream.
const EVENT_STREAM: &str = "text/event-stream";
/// The header in which an `EventSource` sends the last id that it got, when it connects again.
const LAST_EVENT_ID: &str = "last-event-id";
/// The shortest wait before an `EventSource` connects again after `rate_limited`, in seconds. There is room only after another
/// stream of the caller has ended, which is rarely soon.
const RATE_LIMITED_WAIT_S: u16 = 30;

pub(crate) async fn stream(
    State(state): State<AppState>,
    opener: Result<StreamOpener, ApiError>,
    query: Result<QueryPairs, ApiError>,
    method: Method,
    headers: HeaderMap,
) -> Result<Response, ApiError> {
    let resumes = query.as_ref().is_ok_and(|query| query.flag("resume").is_ok_and(|resumes| resumes));
    let is_event_source = resumes && method != Method::HEAD && accepts_events(&headers);
    match open(&state, opener, query, &method, &headers).await {
        // An `EventSource` gives up after a response that is not 200.
        Err(ApiError(error)) if is_event_source && matches!(error.code, Code::Unavailable | Code::RateLimited) => {
            Ok(again_later(&error))
        }
        opened => opened,
    }
}

async fn open(
    state: &AppState,
    opener: Result<StreamOpener, ApiError>,
    query: Result<QueryPairs, ApiError>,
    method: &Method,
    headers: &HeaderMap,
) -> Result<Response, ApiError> {
    // The credential is checked first, then the query.
    let StreamOpener(caller, credentials) = opener?;
    let query = query?;
    query.only(&["topics", "since", "resume", "ticket"])?;
    let parameter = |name: &str| query.get(name).filter(|value| !value.is_empty()).map(str::to_owned);
    let resumes = query.flag("resume")?;
    let last_event_id = if resumes { last_event_id(headers)? } else { None };
    if *method == Method::HEAD {
        // A HEAD request gets no events, so it opens no stream and uses up no ticket.
        return Ok(events(Body::empty()));
    }
    let request = StreamRequest {
        topics: parameter("topics").map(|topics| topics.split(',').map(str::to_owned).collect()).unwrap_or_default(),
        // A browser connects again with the same URL, so the header is newer than `since`.
        since: last_event_id.or_else(|| parameter("since")),
        needs_platform: false,
        draining: state.draining.clone(),
        form: StreamForm {
            opening: Some(Bytes::from_static(b": open\n\n")),
            heartbeat: Some(Bytes::from_static(b": heartbeat\n\n")),
            position: if resumes { Some(position_frame) } else { None },
            frame: Box::new(|event| event.frame()),
        },
    };
    let mut frames = state.app.open_stream(caller, &credentials, request).await?;
    let frames =
        stream::poll_fn(move |context| frames.poll_next(context).map(|frame| frame.map(Ok::<_, std::convert::Infallible>)));
    Ok(events(Body::from_stream(frames)))
}

pub(crate) async fn ticket(
    State(state): State<AppState>,
    Granted(caller, ..): Granted<Stream>,
    Presented(credentials): Presented,
) -> Result<Response, ApiError> {
    Ok(render::data(StatusCode::CREATED, &state.app.make_stream_ticket(&caller, &credentials).await?))
}

/// Whether the header `Accept` names the type of a stream. Every `EventSource` sends it.
fn accepts_events(headers: &HeaderMap) -> bool {
    let accepted = headers.get_all(header::ACCEPT).iter().filter_map(|value| value.to_str().ok());
    accepted.flat_map(|value| value.split(',')).any(|range| {
        let media_type = range.split(';').next().unwrap_or_default();
        media_type.trim().eq_ignore_ascii_case(EVENT_STREAM)
    })
}

/// The id in the header `Last-Event-ID`. A browser leaves the header out as long as it has no id.
fn last_event_id(headers: &HeaderMap) -> Result<Option<String>, ApiError> {
    let mut values = headers.get_all(LAST_EVENT_ID).iter();
    let id = values.next().map(|value| String::from_utf8_lossy(value.as_bytes()).into_owned());
    match values.next() {
        None => Ok(id.filter(|id| !id.is_empty())),
        Some(_) => Err(Error::invalid_request("The header Last-Event-ID is sent more than once.").into()),
    }
}

/// The frame that gives a client an id before the first event, and later if the last event that it got is old. It has a type and
/// data, because some browsers ignore the id of a frame without data. No client takes it for an event, because events have no
/// type.
fn position_frame(position: &str) -> Bytes {
    format!("event: position\nid: {position}\ndata: {{}}\n\n").into()
}

/// The response to an `EventSource` whose stream cannot open now. It connects again after the response, and sends the same
/// `Last-Event-ID`.
fn again_later(error: &Error) -> Response {
    log_cause(error);
    tracing::debug!(error.code = error.code.as_str(), "a stream cannot open now; its client connects again");
    let asked_s = error.retry_after_s.map_or(BUSY_RETRY_AFTER_S, NonZeroU16::get);
    let wait_s = if error.code == Code::RateLimited { asked_s.max(RATE_LIMITED_WAIT_S) } else { asked_s };
    let retry_ms = retry_ms(wait_s, uuid::Uuid::new_v4().as_u64_pair().1);
    let message = error.message.replace(['\r', '\n'], " ");
    let mut response = events(Body::from(format!(": {message}\nretry: {retry_ms}\n\n")));
    response.headers_mut().insert(header::RETRY_AFTER, HeaderValue::from(wait_s));
    response
}

/// The wait before an `EventSource` connects again, in milliseconds. It is at least `wait_s` and less than twice as long, so that
/// clients that were refused at the same time do not come back at the same time.
fn retry_ms(wait_s: u16, random: u64) -> u64 {
    let wait_ms = u64::from(wait_s.max(1)) * 1000;
    wait_ms + random % wait_ms
}

/// The response of a stream.
fn events(body: Body) -> Response {
    let mut response = Response::new(body);
    let headers = response.headers_mut();
    headers.insert(header::CONTENT_TYPE, HeaderValue::from_static(EVENT_STREAM));
    headers.insert(header::CACHE_CONTROL, HeaderValue::from_static("no-store"));
    headers.insert("x-accel-buffering", HeaderValue::from_static("no"));
    response
}

pub(crate) fn describe(paths: &mut Paths) {
    let topics = format!(
        "Topic patterns, separated by commas. `*` stands for one segment, and `#` for any number of segments. At most \
        {PATTERNS_MAX}. The default is `{TOPICS_DEFAULT}`."
    );
    let patterns = json!({ "type": "string", "examples": ["data.task.#"] });
    let since = "The id of an event. The stream first sends the later events that are still in the outbox, then new events, \
        without a gap. It can also be the id of a frame of the type `position`.";
    let resume = "Whether the stream continues after the event in `Last-Event-ID`, so that an `EventSource` that connects again \
        misses no event. If the stream cannot open now, an `EventSource` (`Accept: text/event-stream`) gets 200 in place of 429 and \
        503, and the response ends with a `retry:`.";
    let last_event_id = "The id of the last frame that the client got. It counts only with `resume=true`. Then it replaces \
        `since`.";
    let frame = "One frame for each event: `id:` has its id, `data:` has `{ id, topic, payload, occurredAt }`. With \
        `resume=true`, a stream that begins now first sends a frame of the type `position`, whose `id:` is the place where it \
        begins. Later frames of this type have newer places. A comment comes every 15 seconds.";
    let frames = json!({ "text/event-stream": { "schema": { "type": "string", "description": frame } } });
    let stream = Operation::new("events.stream", "events", "Follow events as they are committed")
        .describe(
            "Server-Sent Events. Each event is one unnamed frame: `id` is the event's id, and `data` is its envelope as \
            JSON. Events that the caller may not read are left out. The response is 404 if the outbox no longer has the event \
            after which the stream should continue, or events after it.",
        )
        .parameter(query_parameter("topics", &topics, patterns))
        .parameter(query_parameter("since", since, json!({ "type": "string" })))
        .parameter(query_parameter("resume", resume, json!({ "type": "boolean", "default": false })))
        .parameter(header_parameter("Last-Event-ID", last_event_id, json!({ "type": "string" })))
        .called_by(Caller::KnownOrTicket)
        .problems(&[400, 404])
        .response(200, json!({ "description": "The stream.", "headers": response_headers(&[]), "content": frames }));
    paths.add("get", "/api/v1/events/stream", stream);
    let ticket = Operation::new("events.ticket", "events", "Make a ticket that opens an event stream")
        .describe(
            "For clients that cannot send a header, such as an `EventSource` of another origin. The ticket opens one stream within \
            60 seconds, as the value of `ticket` in the query. The stream has the rights that the caller has at each event, and \
            ends with the session or the API key. The response is 429 if the caller has too many unused tickets \
            (`SVC_MAX_STREAMS_PER_PRINCIPAL`).",
        )
        .answers_data(201, "The ticket.", of::<StreamTicketAnswer>());
    paths.add("post", "/api/v1/events/ticket", ticket);
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Reads the response to a stream that cannot open now: `Retry-After` in seconds, the comment, and `retry:` in milliseconds.
    async fn read(response: Response) -> (u64, String, u64) {
        assert_eq!(response.status(), StatusCode::OK);
        assert_eq!(response.headers()[header::CONTENT_TYPE], EVENT_STREAM);
        let number = |text: &str| -> u64 { text.parse().unwrap_or_else(|_| panic!("{text:?}")) };
        let retry_after_s = number(response.headers()[header::RETRY_AFTER].to_str().expect("text"));
        let body = axum::body::to_bytes(response.into_body(), 1024).await.expect("a short body");
        let body = std::str::from_utf8(&body).expect("text");
        let frame = body.strip_suffix("\n\n").unwrap_or_else(|| panic!("{body:?}"));
        let (comment, retry_ms) = frame.split_once("\nretry: ").unwrap_or_else(|| panic!("{body:?}"));
        (retry_after_s, comment.to_owned(), number(retry_ms))
    }

    #[test]
    fn clients_come_back_at_different_times_and_not_too_early() {
        assert_eq!([0, 4999, 5000, u64::MAX].map(|random| retry_ms(5, random)), [5000, 9999, 5000, 6615]);
    }

    #[tokio::test]
    async fn a_stream_that_cannot_open_ends_and_says_when_to_connect_again() {
        let (retry_after_s, comment, retry_ms) =
            read(again_later(&Error::busy("Too many requests wait.\nTry again later."))).await;
        assert_eq!((retry_after_s, comment.as_str()), (5, ": Too many requests wait. Try again later."));
        assert!((5000..10_000).contains(&retry_ms), "{retry_ms}");
    }

    #[tokio::test]
    async fn a_caller_with_too_many_streams_waits_longer() {
        for (asked_s, wait_s) in [(None, 30), (Some(5), 30), (Some(90), 90)] {
            let error = Error::new(Code::RateLimited, "Close one, or try again later.");
            let error = asked_s.into_iter().fold(error, Error::with_retry_after);
            let (retry_after_s, _, retry_ms) = read(again_later(&error)).await;
            assert_eq!(retry_after_s, wait_s);
            assert!((wait_s * 1000..wait_s * 2000).contains(&retry_ms), "{retry_ms}");
        }
    }

    #[test]
    fn an_event_source_is_known_by_what_it_accepts() {
        let accepts = |values: &[&'static str]| {
            let mut headers = HeaderMap::new();
            for &value in values {
                headers.append(header::ACCEPT, HeaderValue::from_static(value));
            }
            accepts_events(&headers)
        };
        assert!(accepts(&["text/event-stream"]) && accepts(&["application/json, Text/Event-Stream;q=0.9"]));
        assert!(accepts(&["application/json", "text/event-stream"]));
        assert!(!accepts(&[]) && !accepts(&["*/*"]) && !accepts(&["application/json, text/event-streams"]));
    }
}

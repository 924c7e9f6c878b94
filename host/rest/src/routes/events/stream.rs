//! `GET /api/v1/events/stream`: the live feed as Server-Sent Events. `POST /api/v1/events/ticket` makes a ticket that opens it.

use axum::body::Body;
use axum::extract::State;
use axum::http::{HeaderMap, HeaderValue, Method, StatusCode, header};
use axum::response::Response;
use blockbase_app::schema::Error;
use blockbase_app::{StreamForm, StreamRequest};
use bytes::Bytes;
use futures_util::stream;

use crate::AppState;
use crate::answer::error::ApiError;
use crate::answer::render;
use crate::request::admission::{Granted, Stream, StreamOpener};
use crate::request::extract::{Presented, QueryPairs};
use crate::routing::Routes;

pub(crate) fn routes() -> Routes {
    Routes::new().get("/api/v1/events/stream", stream).post("/api/v1/events/ticket", ticket)
}

/// The header in which an `EventSource` sends the last id that it got, when it connects again.
const LAST_EVENT_ID: &str = "last-event-id";

pub(crate) async fn stream(
    State(state): State<AppState>,
    StreamOpener(caller, credentials): StreamOpener,
    query: QueryPairs,
    method: Method,
    headers: HeaderMap,
) -> Result<Response, ApiError> {
    query.only(&["topics", "since", "resume", "ticket"])?;
    let parameter = |name: &str| query.get(name).filter(|value| !value.is_empty()).map(str::to_owned);
    let resumes = query.flag("resume")?;
    let last_event_id = if resumes { last_event_id(&headers)? } else { None };
    if method == Method::HEAD {
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

/// The id in the header `Last-Event-ID`. A browser leaves the header out as long as it has no id.
fn last_event_id(headers: &HeaderMap) -> Result<Option<String>, ApiError> {
    let mut values = headers.get_all(LAST_EVENT_ID).iter();
    let id = values.next().map(|value| String::from_utf8_lossy(value.as_bytes()).into_owned());
    match values.next() {
        None => Ok(id.filter(|id| !id.is_empty())),
        Some(_) => Err(Error::invalid_request("The header Last-Event-ID is sent more than once.").into()),
    }
}

/// The frame that gives a client an id before the first event, and later if the last event that it got is old. It has a type and data, because some browsers ignore the id of a
/// frame without data. No client takes it for an event, because events have no type.
fn position_frame(position: &str) -> Bytes {
    format!("event: position\nid: {position}\ndata: {{}}\n\n").into()
}

/// The response of a stream.
fn events(body: Body) -> Response {
    let mut response = Response::new(body);
    let headers = response.headers_mut();
    headers.insert(header::CONTENT_TYPE, HeaderValue::from_static("text/event-stream"));
    headers.insert(header::CACHE_CONTROL, HeaderValue::from_static("no-store"));
    headers.insert("x-accel-buffering", HeaderValue::from_static("no"));
    response
}

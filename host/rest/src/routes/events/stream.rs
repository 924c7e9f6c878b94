//! `GET /api/v1/events/stream`: the live feed as Server-Sent Events.

use axum::body::Body;
use axum::extract::State;
use axum::http::{HeaderValue, header};
use axum::response::Response;
use blockbase_app::{StreamForm, StreamRequest};
use bytes::Bytes;
use futures_util::stream;

use crate::AppState;
use crate::answer::error::ApiError;
use crate::request::admission::{Granted, Stream};
use crate::request::extract::{Presented, QueryPairs};
use crate::routing::Routes;

pub(crate) fn routes() -> Routes {
    Routes::new().get("/api/v1/events/stream", stream)
}

pub(crate) async fn stream(
    State(state): State<AppState>,
    Granted(caller, ..): Granted<Stream>,
    Presented(credentials): Presented,
    query: QueryPairs,
) -> Result<Response, ApiError> {
    query.only(&["topics", "since"])?;
    let parameter = |name: &str| query.get(name).filter(|value| !value.is_empty());
    let request = StreamRequest {
        topics: parameter("topics").map(|topics| topics.split(',').map(str::to_owned).collect()).unwrap_or_default(),
        since: parameter("since").map(str::to_owned),
        needs_platform: false,
        draining: state.draining.clone(),
        form: StreamForm {
            opening: Some(Bytes::from_static(b": open\n\n")),
            heartbeat: Some(Bytes::from_static(b": heartbeat\n\n")),
            frame: Box::new(|event| event.frame()),
        },
    };
    let mut frames = state.app.open_stream(caller, &credentials, request).await?;
    let frames =
        stream::poll_fn(move |context| frames.poll_next(context).map(|frame| frame.map(Ok::<_, std::convert::Infallible>)));
    let mut response = Response::new(Body::from_stream(frames));
    let headers = response.headers_mut();
    headers.insert(header::CONTENT_TYPE, HeaderValue::from_static("text/event-stream"));
    headers.insert(header::CACHE_CONTROL, HeaderValue::from_static("no-store"));
    headers.insert("x-accel-buffering", HeaderValue::from_static("no"));
    Ok(response)
}

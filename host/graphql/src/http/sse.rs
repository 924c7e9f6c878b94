//! Operations over Server-Sent Events, by the `graphql-sse` protocol: either one connection for each operation, or a single
//! connection for all.

mod single;

use std::convert::Infallible;
use std::pin::Pin;

use async_graphql::parser::types::OperationType;
use blockbase_app::schema::{Code, Error, Result};
use blockbase_app::{Frames as Queue, StreamForm, StreamRequest};
use bytes::Bytes;
use futures_util::{Stream, StreamExt, stream};
use http::{HeaderValue, Response, header};
use http_body::Frame;
use http_body_util::{BodyExt, StreamBody};
use serde_json::value::RawValue;

use crate::Graphql;
use crate::document::coerce::Arguments;
use crate::error::{GraphqlError, Refusal, refused};
use crate::http::accept::Form;
use crate::http::answer::{Body, refuse};
use crate::http::operation::Operation;
use crate::view::leaves::LeafType;
use crate::view::root::Root;

/// An SSE comment. It shows the client that its stream is open.
const OPENING: Bytes = Bytes::from_static(b":\n\n");
const HEARTBEAT: Bytes = Bytes::from_static(b": heartbeat\n\n");

/// The framing of results: without an id on a connection for one operation, or with the operation's id on a single connection.
#[derive(Clone, Debug, Default)]
pub(crate) struct Framing(Option<String>);

impl Framing {
    fn of_operation(id: String) -> Framing {
        Framing(Some(id))
    }

    /// The frame of one result.
    fn next(&self, result: &[u8]) -> Bytes {
        let mut frame = Vec::with_capacity(result.len() + 64);
        frame.extend_from_slice(b"event: next\ndata: ");
        match &self.0 {
            None => frame.extend_from_slice(result),
            Some(id) => {
                frame.extend_from_slice(b"{\"id\":");
                blockbase_app::schema::json::write_string(&mut frame, id);
                frame.extend_from_slice(b",\"payload\":");
                frame.extend_from_slice(result);
                frame.push(b'}');
            }
        }
        frame.extend_from_slice(b"\n\n");
        frame.into()
    }

    /// The frame that ends an operation.
    fn complete(&self) -> Bytes {
        let mut frame = b"event: complete\ndata: ".to_vec();
        if let Some(id) = &self.0 {
            frame.extend_from_slice(b"{\"id\":");
            blockbase_app::schema::json::write_string(&mut frame, id);
            frame.push(b'}');
        }
        frame.extend_from_slice(b"\n\n");
        frame.into()
    }
}

type Frames = Pin<Box<dyn Stream<Item = Bytes> + Send + Sync>>;

fn event_stream(frames: Frames) -> Response<Body> {
    let frames = frames.map(|frame| Ok::<_, Infallible>(Frame::data(frame)));
    let mut response = Response::new(BodyExt::boxed(StreamBody::new(frames)));
    let headers = response.headers_mut();
    headers.insert(header::CONTENT_TYPE, HeaderValue::from_static(Form::Events.content_type()));
    headers.insert(header::CACHE_CONTROL, HeaderValue::from_static("no-store"));
    headers.insert("x-accel-buffering", HeaderValue::from_static("no"));
    response
}

fn of_queue(mut queue: Queue) -> Frames {
    Box::pin(stream::poll_fn(move |context| queue.poll_next(context)))
}

/// A stream with a single result.
pub(crate) fn only_result(result: &[u8]) -> Response<Body> {
    let framing = Framing::default();
    event_stream(Box::pin(stream::iter([OPENING, framing.next(result), framing.complete()])))
}

impl Graphql {
    /// Answers an operation with a separate stream.
    pub(crate) async fn stream(&self, operation: Operation) -> Response<Body> {
        let framing = Framing::default();
        if operation.ty() != OperationType::Subscription {
            return only_result(&operation.run().await);
        }
        match self.subscribe(&operation, &framing, true).await {
            // The server ends a stream without a `complete`, so that the client connects again.
            Ok(frames) => event_stream(of_queue(frames)),
            // There is no room for the stream now, so the client gets an error status.
            Err(error) if matches!(error.code, Code::RateLimited | Code::Unavailable) => {
                refuse(Form::Events, Refusal::Malformed(error))
            }
            Err(error) => only_result(&refused(&[error.into()])),
        }
    }

    /// Opens a subscription, and returns its frames.
    ///
    /// # Errors
    /// The same as for a stream of the feed.
    async fn subscribe(&self, operation: &Operation, framing: &Framing, alone: bool) -> Result<Queue> {
        let execution = operation.with().ok_or_else(|| Error::internal("a prepared operation is missing in its document"))?;
        let roots = execution.roots();
        let Some(root) = roots.first() else { return Err(Error::invalid_request("The subscription selects no field.")) };
        if root.field.name.node == "__typename" {
            return Err(Error::invalid_request("A subscription must select one of its fields."));
        }
        let arguments = Arguments::of(Root::Events.arguments(execution.view), &root.field.arguments, execution.variables);
        let arguments = arguments.map_err(|(error, _)| error)?;
        let selected = execution.context().collect(&root.sets, LeafType::Event.name());
        let selected = selected.iter().map(|field| (field.key.to_owned(), field.field.name.node.to_string())).collect();
        let shown = EventShape { key: root.key.to_owned(), selected };
        let framing = framing.clone();
        let request = StreamRequest {
            topics: arguments.read("topics")?.unwrap_or_default(),
            since: None,
            needs_platform: true,
            draining: self.draining.clone(),
            form: StreamForm {
                position: None,
                opening: alone.then_some(OPENING),
                heartbeat: alone.then_some(HEARTBEAT),
                frame: Box::new(move |event| framing.next(&shown.write(event.envelope()))),
            },
        };
        self.app.open_stream(operation.context.caller.clone(), &operation.context.credentials, request).await
    }
}

/// The fields that a subscription selects from its events.
struct EventShape {
    key: String,
    /// The keys of the answer, each with the member of the event that it shows.
    selected: Vec<(String, String)>,
}

impl EventShape {
    /// Writes the result for the envelope of one event.
    fn write(&self, envelope: &str) -> Vec<u8> {
        let members: std::collections::HashMap<&str, &RawValue> = match serde_json::from_str(envelope) {
            Ok(members) => members,
            Err(error) => return refused(&[GraphqlError::from(Error::internal(error))]),
        };
        let mut out = Vec::with_capacity(envelope.len() + 64);
        out.extend_from_slice(b"{\"data\":{\"");
        out.extend_from_slice(self.key.as_bytes());
        out.extend_from_slice(b"\":{");
        for (index, (key, name)) in self.selected.iter().enumerate() {
            if index > 0 {
                out.push(b',');
            }
            out.push(b'"');
            out.extend_from_slice(key.as_bytes());
            out.extend_from_slice(b"\":");
            match (name.as_str(), members.get(name.as_str())) {
                ("__typename", _) => out.extend_from_slice(b"\"Event\""),
                (_, value) => out.extend_from_slice(value.map_or("null", |value| value.get()).as_bytes()),
            }
        }
        out.extend_from_slice(b"}}}");
        out
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn frames_name_their_operation_where_they_share_a_connection() {
        let alone = Framing::default();
        assert_eq!(alone.next(b"{}"), "event: next\ndata: {}\n\n");
        assert_eq!(alone.complete(), "event: complete\ndata: \n\n");
        let shared = Framing::of_operation("a\"b".to_owned());
        assert_eq!(shared.next(b"{}"), "event: next\ndata: {\"id\":\"a\\\"b\",\"payload\":{}}\n\n");
        assert_eq!(shared.complete(), "event: complete\ndata: {\"id\":\"a\\\"b\"}\n\n");
    }

    #[test]
    fn events_show_what_is_selected() {
        let selected = vec![("t".to_owned(), "topic".to_owned()), ("payload".to_owned(), "payload".to_owned())];
        let shape = EventShape { key: "events".to_owned(), selected };
        let written = shape.write(r#"{"id":"1","topic":"data.task.created","payload":{"n":1.50},"occurredAt":"x"}"#);
        let expected = r#"{"data":{"events":{"t":"data.task.created","payload":{"n":1.50}}}}"#;
        assert_eq!(String::from_utf8_lossy(&written), expected);
    }
}

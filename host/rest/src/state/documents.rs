//! A cache of OpenAPI documents.

use std::collections::VecDeque;
use std::sync::Arc;

use axum::http::HeaderValue;
use blockbase_app::{KnownObjects, Visible};
use bytes::Bytes;
use tokio::sync::Mutex;

/// A document in the form in which it is sent.
pub(crate) struct Document {
    pub(crate) key: Key,
    pub(crate) bytes: Bytes,
    /// The ETag of the document, strong and with quotes.
    pub(crate) etag: HeaderValue,
}

/// The data that a document depends on.
#[derive(PartialEq)]
pub(crate) struct Key {
    schema_version: i64,
    blocks_version: i64,
    objects: Vec<(String, bool)>,
    actions: Vec<(String, usize)>,
    limits: [Arc<KnownObjects>; 3],
}

impl Key {
    pub(crate) fn of(visible: &Visible) -> Key {
        Key {
            schema_version: visible.registry.version,
            blocks_version: visible.blocks_version,
            objects: visible.objects.clone(),
            actions: visible.actions.iter().map(|(block, place)| (block.name().to_owned(), *place)).collect(),
            limits: visible.limits().clone(),
        }
    }
}

/// The cached documents. The one that was used last comes first.
#[derive(Default)]
pub(crate) struct Documents(pub(crate) Mutex<VecDeque<Arc<Document>>>);

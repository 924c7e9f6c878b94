//! Documents that passed validation, kept by their text.

use std::collections::HashMap;
use std::sync::Arc;

use async_graphql::parser::types::ExecutableDocument;
use parking_lot::Mutex;

/// The maximum number of bytes of text of the documents in one generation. In memory, a document takes about twenty times the
/// size of its text.
const TEXT_BYTES_MAX: usize = 128 * 1024;

/// Two generations of documents. When the young generation is full, it becomes the old one, and the documents of the previous old
/// generation are dropped.
#[derive(Default)]
pub(crate) struct Documents {
    generations: Mutex<Generations>,
}

#[derive(Default)]
struct Generations {
    young: HashMap<Arc<str>, Arc<ExecutableDocument>>,
    old: HashMap<Arc<str>, Arc<ExecutableDocument>>,
    young_bytes: usize,
}

impl Documents {
    pub(crate) fn get(&self, text: &str) -> Option<Arc<ExecutableDocument>> {
        let mut generations = self.generations.lock();
        if let Some(document) = generations.young.get(text) {
            return Some(Arc::clone(document));
        }
        let (text, document) = generations.old.remove_entry(text)?;
        generations.insert(text, Arc::clone(&document));
        Some(document)
    }

    pub(crate) fn insert(&self, text: &str, document: Arc<ExecutableDocument>) {
        self.generations.lock().insert(text.into(), document);
    }
}

impl Generations {
    fn insert(&mut self, text: Arc<str>, document: Arc<ExecutableDocument>) {
        self.young_bytes += text.len();
        if self.young_bytes > TEXT_BYTES_MAX {
            self.young_bytes = text.len();
            self.old = std::mem::take(&mut self.young);
        }
        self.young.insert(text, document);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_asked_for_stays_and_the_rest_goes() {
        let documents = Documents::default();
        let document = || Arc::new(async_graphql::parser::parse_query("{a}").expect("a document"));
        documents.insert("kept", document());
        for number in 0..400 {
            documents.insert(&format!("{number} {}", "x".repeat(1000)), document());
            assert!(documents.get("kept").is_some(), "{number}");
        }
        assert!(documents.get(&format!("0 {}", "x".repeat(1000))).is_none());
        let generations = documents.generations.lock();
        let bytes: usize = generations.young.keys().chain(generations.old.keys()).map(|text| text.len()).sum();
        assert!(bytes <= 2 * TEXT_BYTES_MAX);
    }
}

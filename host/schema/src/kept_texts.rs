//! Texts that are made from an object once.

use std::sync::{Arc, OnceLock};

/// The number of texts that an object can keep.
pub const TEXTS_MAX: usize = 6;

/// Texts that depend only on an object, so that they are the same as long as it lives. The crate that makes them numbers them
/// from 0.
#[derive(Debug, Default)]
pub struct KeptTexts([OnceLock<Arc<str>>; TEXTS_MAX]);

impl KeptTexts {
    /// The text with this number, which costs one reference count. `make` makes it the first time, and every time if there are
    /// too many texts.
    pub fn text(&self, number: usize, make: impl FnOnce() -> String) -> Arc<str> {
        match self.0.get(number) {
            Some(kept) => Arc::clone(kept.get_or_init(|| make().into())),
            None => make().into(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_text_is_made_once() {
        let texts = KeptTexts::default();
        for number in 0..TEXTS_MAX {
            let first = texts.text(number, || format!("text {number}"));
            assert_eq!(*first, *format!("text {number}"));
            assert!(Arc::ptr_eq(&first, &texts.text(number, || "another text".to_owned())));
        }
        assert_eq!(*texts.text(TEXTS_MAX, || "one".to_owned()), *"one");
        assert_eq!(*texts.text(TEXTS_MAX, || "two".to_owned()), *"two");
    }
}

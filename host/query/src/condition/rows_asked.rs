//! The related rows that a condition is about, as a request names them.

use blockbase_schema::{enumerated, listed};

listed! {
    /// What a condition asks of the rows of a to-many relation. Its normal form is a [`Quantifier`](super::Quantifier).
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    pub enum RowsAsked {
        Some,
        None,
        Every,
    }
}

impl RowsAsked {
    pub const fn name(self) -> &'static str {
        match self {
            RowsAsked::Some => "some",
            RowsAsked::None => "none",
            RowsAsked::Every => "every",
        }
    }

    /// The words for it in a sentence about a condition.
    pub const fn words(self) -> &'static str {
        match self {
            RowsAsked::Some => "some of",
            RowsAsked::None => "none of",
            RowsAsked::Every => "each of",
        }
    }

    pub fn named(name: &str) -> Option<RowsAsked> {
        RowsAsked::ALL.iter().copied().find(|asked| asked.name() == name)
    }

    /// The text "`some`, `none` or `every`".
    pub fn enumerated() -> String {
        enumerated(RowsAsked::ALL.iter().map(|asked| format!("`{}`", asked.name())), "or")
    }
}

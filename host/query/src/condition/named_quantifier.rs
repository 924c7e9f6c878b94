//! The quantifiers of related rows, as a request names them.

use blockbase_schema::{enumerated, listed};

listed! {
    /// How many rows of a to-many relation have to meet a condition. Its normal form is a [`Quantifier`](super::Quantifier).
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    pub enum NamedQuantifier {
        Some,
        None,
        Every,
    }
}

impl NamedQuantifier {
    pub const fn name(self) -> &'static str {
        match self {
            NamedQuantifier::Some => "some",
            NamedQuantifier::None => "none",
            NamedQuantifier::Every => "every",
        }
    }

    /// The words for it in a sentence about a condition.
    pub const fn words(self) -> &'static str {
        match self {
            NamedQuantifier::Some => "some of",
            NamedQuantifier::None => "none of",
            NamedQuantifier::Every => "each of",
        }
    }

    pub fn named(name: &str) -> Option<NamedQuantifier> {
        NamedQuantifier::ALL.iter().copied().find(|quantifier| quantifier.name() == name)
    }

    /// The text "`some`, `none` or `every`".
    pub fn enumerated() -> String {
        enumerated(NamedQuantifier::ALL.iter().map(|quantifier| format!("`{}`", quantifier.name())), "or")
    }
}

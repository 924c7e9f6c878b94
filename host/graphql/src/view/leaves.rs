//! The types of answers whose fields are all leaves. They are the same in every schema.

use blockbase_app::PaginationAnswer;

use crate::view::types::{Input, Scalar};

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum LeafType {
    Pagination,
    /// The page of a connection. Its name and its fields are those of the Relay specification.
    PageInfo,
    Aggregate,
    /// The records that a call for many records wrote.
    Written,
    Event,
}

impl LeafType {
    /// `SvcWritten` is not the type of an object, because no object has a name that begins with `svc_`.
    pub(crate) const fn name(self) -> &'static str {
        match self {
            LeafType::Pagination => "PaginationMeta",
            LeafType::PageInfo => "PageInfo",
            LeafType::Aggregate => "AggregateResult",
            LeafType::Written => "SvcWritten",
            LeafType::Event => "Event",
        }
    }

    /// The fields of the type, with their types, in the order of the schema.
    pub(crate) fn fields(self) -> Vec<(&'static str, Input)> {
        let required = |scalar: Scalar| Input::Scalar(scalar).required();
        match self {
            LeafType::Pagination => PaginationAnswer::MEMBERS
                .map(|name| (name, required(if name.starts_with("has") { Scalar::Boolean } else { Scalar::Int })))
                .to_vec(),
            LeafType::PageInfo => vec![
                ("hasNextPage", required(Scalar::Boolean)),
                ("hasPreviousPage", required(Scalar::Boolean)),
                ("startCursor", Input::Scalar(Scalar::String)),
                ("endCursor", Input::Scalar(Scalar::String)),
            ],
            LeafType::Aggregate => vec![
                ("fn", Input::aggregate_function().required()),
                ("field", Input::Scalar(Scalar::String)),
                ("value", Input::Scalar(Scalar::Float)),
                ("filteredCount", required(Scalar::Int)),
            ],
            LeafType::Written => vec![("count", required(Scalar::Int)), ("ids", required(Scalar::Id).list().required())],
            LeafType::Event => vec![
                ("id", required(Scalar::Id)),
                ("topic", required(Scalar::String)),
                ("occurredAt", required(Scalar::DateTime)),
                ("payload", required(Scalar::Json)),
            ],
        }
    }
}

//! Hints of errors for block authors. They are about the functions of the host, and about the person who installed the block.

use std::borrow::Cow;

use blockbase_app::schema::Hint;

pub(super) fn words(hint: &Hint) -> Option<Cow<'static, str>> {
    let words = match hint {
        Hint::FewerRecords => "Ask for fewer fields with `select`, or for fewer records with a smaller `limit`.",
        Hint::SetSecret { block } => return Some(format!("POST /api/v1/blocks/{block}/secrets sets it.").into()),
        Hint::AdoptKey => "Somebody who holds its rights can take it over through the REST API.",
        // A block presents no credential, and its manifest names its objects. It manages no blocks, no users and no schema. It reads
        // only the events that it is given. Its filters are JSON.
        Hint::Authenticate
        | Hint::ListObjects
        | Hint::ListBlocks
        | Hint::FewerEvents
        | Hint::Upgrade
        | Hint::AllowNewPermissions
        | Hint::HandOver
        | Hint::AnotherHeir
        | Hint::OwnView
        | Hint::FollowFromNow
        | Hint::FromNewestEvent
        | Hint::Cascade
        | Hint::ReadAgain
        | Hint::FilterByField
        | Hint::EncodePlus
        | Hint::Filter { .. } => return None,
    };
    Some(words.into())
}

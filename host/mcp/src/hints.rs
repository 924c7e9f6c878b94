//! Hints of errors in MCP's terms: its tools and their arguments, and the headers of its requests.

use std::borrow::Cow;

use blockbase_app::schema::Hint;

use crate::tools::Tool;

pub(crate) fn words(hint: &Hint) -> Option<Cow<'static, str>> {
    let words = match hint {
        Hint::Authenticate => "Send a session token or an API key as `Authorization: Bearer …`.",
        Hint::ListObjects => {
            return Some(format!("The tool `{}` lists the objects that you may use.", Tool::ListObjects.name()).into());
        }
        Hint::FewerRecords => "Ask for fewer fields with `select`, or for fewer records with a smaller `limit`.",
        Hint::AdoptKey => "Somebody who has its rights can adopt it through the REST API.",
        Hint::ReadAgain => "Its version no longer matches. Read the record again through the REST API, and send its new ETag.",
        // No tool manages blocks, users or the schema, lists events, or views the service as a role. Filters are members of an
        // argument.
        Hint::ListBlocks
        | Hint::FewerEvents
        | Hint::SetSecret { .. }
        | Hint::Upgrade
        | Hint::AllowNewPermissions
        | Hint::HandOver
        | Hint::AnotherHeir
        | Hint::OwnView
        | Hint::FollowFromNow
        | Hint::FromNewestEvent
        | Hint::Cascade
        | Hint::FilterByField
        | Hint::EncodePlus
        | Hint::Filter { .. } => return None,
    };
    Some(words.into())
}

#[cfg(test)]
mod tests {
    use blockbase_app::schema::Error;

    use super::*;

    #[test]
    fn messages_name_tools() {
        let envelope = Error::unknown_object("x").envelope(words);
        assert_eq!(envelope["message"], "There is no object `x`. The tool `list_objects` lists the objects that you may use.");
        assert_eq!(words(&Hint::Cascade), None);
    }
}

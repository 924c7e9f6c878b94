//! Hints of errors in GraphQL's terms: its arguments, its schema, and the headers of its requests.

use std::borrow::Cow;

use blockbase_app::schema::Hint;

pub(crate) fn words(hint: &Hint) -> Option<Cow<'static, str>> {
    let words = match hint {
        Hint::Authenticate => "Send a session token or an API key as `Authorization: Bearer …`.",
        Hint::ListObjects => "Introspection shows the objects that you may use.",
        Hint::FewerRecords => "Select fewer fields, or ask for fewer records with a smaller `limit`.",
        Hint::AdoptKey => "Somebody who has its rights can adopt it through the REST API.",
        // GraphQL's GET requests accept this header, as those of REST do.
        Hint::OwnView => "Leave out the header `x-svc-view-as`.",
        Hint::ReadAgain => "Its version no longer matches. Read the record again through the REST API, and send its new ETag.",
        // GraphQL does not manage blocks, users or the schema, and lists no past events. Its filters are members of an argument.
        Hint::ListBlocks
        | Hint::FewerEvents
        | Hint::SetSecret { .. }
        | Hint::Upgrade
        | Hint::AllowNewPermissions
        | Hint::HandOver
        | Hint::AnotherHeir
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
    use crate::error::GraphqlError;

    #[test]
    fn messages_name_no_route_of_rest() {
        let mut out = Vec::new();
        GraphqlError::from(Error::unknown_object("x")).write(&mut out);
        assert_eq!(
            String::from_utf8(out).expect("text"),
            "{\"message\":\"There is no object `x`. Introspection shows the objects that you may use.\",\
             \"extensions\":{\"code\":\"not_found\"}}"
        );
        assert_eq!(words(&Hint::Cascade), None);
        assert_eq!(words(&Hint::FollowFromNow), None);
    }
}

//! Hints of errors in REST's terms: its paths, parameters and headers.

use std::borrow::Cow;

use blockbase_app::schema::Hint;

pub(crate) fn words(hint: &Hint) -> Option<Cow<'static, str>> {
    let words = match hint {
        Hint::Authenticate => "Send a session token or an API key as `Authorization: Bearer …`.",
        Hint::ListObjects => "GET /api/v1/data lists the objects that you may use.",
        Hint::ListBlocks => "GET /api/v1/blocks lists the installed blocks.",
        Hint::FewerRecords => "Ask for fewer fields with `select`, or for fewer records with a smaller `limit`.",
        Hint::FewerEvents => {
            "Ask for fewer events with a smaller `limit`, and for the earlier ones with `before`. `GET /api/v1/events/:id` \
            returns a single event."
        }
        Hint::AdoptKey => "Somebody who has its rights can adopt it with POST /api/v1/api-keys/:id/adopt.",
        Hint::SetSecret { block } => return Some(format!("POST /api/v1/blocks/{block}/secrets sets it.").into()),
        Hint::Upgrade => "?upgrade=true replaces it by this version.",
        Hint::AllowNewPermissions => "`newPermissions` lists it; consent with ?allowNewPermissions=true.",
        Hint::HandOver => "Hand over with `?handOverTo=<user id>`, or stop what they made with `?suspend=true`.",
        Hint::AnotherHeir => "`handOverTo` takes the id of another user.",
        Hint::OwnView => "Leave out the header `x-svc-view-as`.",
        Hint::FollowFromNow => "Read the data again, and open a new stream without `since` and `Last-Event-ID`.",
        Hint::FromNewestEvent => "Leave out `before` to begin with the newest one.",
        Hint::ReadAgain => "Its ETag no longer matches. Read the record again, and send its new ETag with your change.",
        Hint::Cascade => "Delete it first, or add ?cascade=true.",
        Hint::FilterByField => {
            "Each filter is a parameter of its own, as in `done=true` or `priority[gte]=2`. `where` takes a condition as JSON."
        }
        Hint::EncodePlus => "In a query, `+` is a space. Write it as `%2B`.",
        Hint::Filter { field, operator, value } => return Some(format!("Write it as `{field}[{operator}]={value}`.").into()),
    };
    Some(words.into())
}

#[cfg(test)]
mod tests {
    use blockbase_app::schema::{Code, Error};

    use super::*;

    /// Clients may show these sentences to people, so a message must read well together with its hint.
    #[test]
    fn messages_have_their_hints() {
        let said = |error: Error| error.envelope(words)["message"].as_str().expect("a message").to_owned();
        assert_eq!(
            said(Error::unknown_object("x")),
            "There is no object `x`. GET /api/v1/data lists the objects that you may use."
        );
        assert_eq!(
            said(Error::unauthenticated()),
            "Authentication required. Send a session token or an API key as `Authorization: Bearer …`."
        );
        assert_eq!(
            said(Error::answer_too_large()),
            "The answer has more bytes than the server sends (`SVC_MAX_ANSWER_BYTES`). Ask for fewer fields with `select`, or for \
             fewer records with a smaller `limit`."
        );
        let unset = Error::new(Code::NotFound, "It is not set.").with_hint(Hint::SetSecret { block: "b".to_owned() });
        assert_eq!(said(unset), "It is not set. POST /api/v1/blocks/b/secrets sets it.");
        assert_eq!(said(Error::not_found("record")), "No such record.");
    }
}

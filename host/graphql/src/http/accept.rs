//! GraphQL over HTTP: the forms that a client accepts, and the status codes of each form.

use http::{HeaderMap, StatusCode, header};

use blockbase_app::schema::Code;

use crate::error::Refusal;

/// The form of a response.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Form {
    /// `application/json`: every well-formed GraphQL request gets 200.
    Json,
    /// `application/graphql-response+json`: the status shows whether the request was executed.
    Graphql,
    /// `text/event-stream`: the `graphql-sse` protocol.
    Events,
    /// `text/html`: the page for a browser.
    Page,
}

impl Form {
    pub(crate) fn content_type(self) -> &'static str {
        match self {
            Form::Json => "application/json; charset=utf-8",
            Form::Graphql => "application/graphql-response+json; charset=utf-8",
            Form::Events => "text/event-stream; charset=utf-8",
            Form::Page => "text/html; charset=utf-8",
        }
    }

    /// The form that a client prefers. JSON, if the client names nothing. `None` if it accepts none of the forms.
    pub(crate) fn accepted(headers: &HeaderMap, may_be_page: bool) -> Option<Form> {
        let values: Vec<&str> = headers.get_all(header::ACCEPT).iter().filter_map(|value| value.to_str().ok()).collect();
        let accept = values.join(",");
        if accept.trim().is_empty() {
            return Some(Form::Json);
        }
        let ranges: Vec<(String, f32)> = accept.split(',').filter_map(range).collect();
        // The most specific range decides the quality of a type.
        let quality = |media: &str| {
            let (kind, _) = media.split_once('/').unwrap_or_default();
            let names = [media.to_owned(), format!("{kind}/*"), "*/*".to_owned()];
            let place = |name: &String| ranges.iter().position(|(known, _)| known == name);
            let found = names.iter().enumerate().find_map(|(breadth, name)| Some((breadth, place(name)?)));
            found.map(|(breadth, place)| (ranges[place].1, breadth, place))
        };
        let mut best: Option<(f32, usize, usize, Form)> = None;
        for (form, media) in [
            (Form::Json, "application/json"),
            (Form::Graphql, "application/graphql-response+json"),
            (Form::Events, "text/event-stream"),
            (Form::Page, "text/html"),
        ] {
            let Some((quality, breadth, place)) = quality(media).filter(|_| form != Form::Page || may_be_page) else { continue };
            // A stream or the page is only sent to a client that names its type explicitly.
            if quality <= 0.0 || (breadth > 0 && form != Form::Json && form != Form::Graphql) {
                continue;
            }
            // The range with the higher quality is chosen, then the more specific range, then the range that the client names
            // first.
            let is_better = best.is_none_or(|(known, known_breadth, known_place, _)| {
                quality > known || (quality == known && (breadth, place) < (known_breadth, known_place))
            });
            if is_better {
                best = Some((quality, breadth, place, form));
            }
        }
        best.map(|(.., form)| form)
    }

    /// The status of a request that is not executed.
    pub(crate) fn status(self, refusal: &Refusal) -> StatusCode {
        match (refusal, self) {
            (Refusal::Method, _) => StatusCode::METHOD_NOT_ALLOWED,
            (Refusal::Malformed(error), _) => status(error.code),
            // These errors are limits and faults of the service. They do not mean that the request is wrong.
            (Refusal::Invalid(errors), Form::Json) => match errors.first().map(|error| error.error.code) {
                Some(code @ (Code::PayloadTooLarge | Code::Internal | Code::Unavailable | Code::RateLimited)) => status(code),
                _ => StatusCode::OK,
            },
            (Refusal::Invalid(errors), _) => errors.first().map_or(StatusCode::BAD_REQUEST, |error| status(error.error.code)),
        }
    }
}

/// A media range in lower case, with its quality.
fn range(text: &str) -> Option<(String, f32)> {
    let mut parts = text.split(';').map(str::trim);
    let media = parts.next().filter(|media| !media.is_empty())?.to_ascii_lowercase();
    let quality = parts.filter_map(|part| part.split_once('=')).find(|(name, _)| name.trim().eq_ignore_ascii_case("q"));
    Some((media, quality.map_or(1.0, |(_, value)| value.trim().parse().unwrap_or(0.0))))
}

pub(crate) fn status(code: Code) -> StatusCode {
    StatusCode::from_u16(code.outer_status()).unwrap_or(StatusCode::BAD_REQUEST)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn accepted(accept: &str) -> Option<Form> {
        let mut headers = HeaderMap::new();
        if let Ok(value) = accept.parse() {
            headers.insert(header::ACCEPT, value);
        }
        Form::accepted(&headers, true)
    }

    #[test]
    fn the_best_of_what_is_accepted_is_given() {
        assert_eq!(accepted(""), Some(Form::Json));
        assert_eq!(accepted("*/*"), Some(Form::Json));
        assert_eq!(accepted("application/graphql-response+json, application/json;q=0.9"), Some(Form::Graphql));
        assert_eq!(accepted("application/json;q=0.5, application/graphql-response+json"), Some(Form::Graphql));
        assert_eq!(accepted("text/event-stream"), Some(Form::Events));
        assert_eq!(accepted("text/html,application/xhtml+xml,application/xml;q=0.9,*/*;q=0.8"), Some(Form::Page));
        assert_eq!(accepted("text/plain"), None);
        assert_eq!(accepted("application/json;q=0"), None);
        assert_eq!(accepted("application/json;q=0, */*"), Some(Form::Graphql));
        assert_eq!(accepted("application/json; Q = 0.5, application/graphql-response+json;q=0.6"), Some(Form::Graphql));
        assert_eq!(accepted("application/*"), Some(Form::Json));
    }
}

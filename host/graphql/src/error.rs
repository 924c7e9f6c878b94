//! Errors in GraphQL's form: a message, the places in the document and the answer, and the code that REST would give.

use async_graphql::parser::Error as ParserError;
use async_graphql::{Pos, ServerError};
use blockbase_app::log_cause;
use blockbase_app::schema::{Error, excerpt_of, json};
use serde_json::Value;

use crate::hints;

/// A step on the way to a value of the answer.
#[derive(Clone, Debug)]
pub(crate) enum Step {
    Key(String),
    Index(usize),
}

/// One member of `errors`.
#[derive(Debug)]
pub(crate) struct GraphqlError {
    pub(crate) error: Error,
    place: Box<ErrorPlace>,
}

#[derive(Debug, Default)]
struct ErrorPlace {
    /// The places in the document.
    locations: Vec<Pos>,
    /// The path in the answer.
    path: Vec<Step>,
}

impl From<Error> for GraphqlError {
    fn from(error: Error) -> Self {
        GraphqlError { error, place: Box::default() }
    }
}

impl GraphqlError {
    /// A document or a request that cannot be executed.
    pub(crate) fn invalid(message: impl Into<String>, locations: Vec<Pos>) -> GraphqlError {
        GraphqlError::of_document(Error::invalid_request(message), locations)
    }

    /// An error about the document that has its own code.
    pub(crate) fn of_document(error: Error, locations: Vec<Pos>) -> GraphqlError {
        GraphqlError { error, place: Box::new(ErrorPlace { locations, path: Vec::new() }) }
    }

    /// The error of the field at `path` of the answer.
    pub(crate) fn at(error: Error, position: Pos, path: Vec<Step>) -> GraphqlError {
        GraphqlError { error, place: Box::new(ErrorPlace { locations: vec![position], path }) }
    }

    /// A syntax error.
    pub(crate) fn of_parser(error: &ParserError) -> GraphqlError {
        let locations = error.positions().collect();
        GraphqlError::invalid(format!("Syntax error: {}", excerpt_of(error)), locations)
    }

    /// An error that validation found.
    pub(crate) fn of_validation(error: ServerError) -> GraphqlError {
        GraphqlError::invalid(error.message, error.locations)
    }

    /// Appends the error as JSON. Its cause goes to the log.
    pub(crate) fn write(&self, out: &mut Vec<u8>) {
        log_cause(&self.error);
        out.extend_from_slice(b"{\"message\":");
        json::write_string(out, &self.error.message_for(hints::words));
        if !self.place.locations.is_empty() {
            out.extend_from_slice(b",\"locations\":[");
            for (index, position) in self.place.locations.iter().enumerate() {
                let comma = if index > 0 { "," } else { "" };
                let text = format!("{comma}{{\"line\":{},\"column\":{}}}", position.line, position.column);
                out.extend_from_slice(text.as_bytes());
            }
            out.push(b']');
        }
        if !self.place.path.is_empty() {
            out.extend_from_slice(b",\"path\":[");
            for (index, step) in self.place.path.iter().enumerate() {
                if index > 0 {
                    out.push(b',');
                }
                match step {
                    Step::Key(key) => json::write_string(out, key),
                    Step::Index(index) => out.extend_from_slice(index.to_string().as_bytes()),
                }
            }
            out.push(b']');
        }
        // The extensions are REST's envelope without the message. The code is in the member `code`, as usual in GraphQL.
        let mut extensions = serde_json::Map::new();
        if let Value::Object(envelope) = self.error.envelope(hints::words) {
            for (name, value) in envelope.into_iter().filter(|(name, _)| name != "message") {
                extensions.insert(if name == "error" { "code".to_owned() } else { name }, value);
            }
        }
        out.extend_from_slice(b",\"extensions\":");
        out.extend_from_slice(Value::Object(extensions).to_string().as_bytes());
        out.push(b'}');
    }
}

/// The reason why a request is not executed.
#[derive(Debug)]
pub(crate) enum Refusal {
    /// The request is not a GraphQL request.
    Malformed(Error),
    /// The request is a GraphQL request that cannot be executed.
    Invalid(Vec<GraphqlError>),
    /// A mutation or a subscription by GET.
    Method,
}

/// `"errors":[ … ]`.
pub(crate) fn write_errors(out: &mut Vec<u8>, errors: &[GraphqlError]) {
    out.extend_from_slice(b"\"errors\":[");
    for (index, error) in errors.iter().enumerate() {
        if index > 0 {
            out.push(b',');
        }
        error.write(out);
    }
    out.push(b']');
}

/// The response to a request that is not executed.
pub(crate) fn refused(errors: &[GraphqlError]) -> Vec<u8> {
    let mut out = vec![b'{'];
    write_errors(&mut out, errors);
    out.push(b'}');
    out
}

//! The surface over HTTP. It determines the kind of a request, and makes the response.

pub(crate) mod accept;
pub(crate) mod answer;
pub(crate) mod graphiql;
pub(crate) mod operation;
pub(crate) mod sse;

use std::sync::Arc;

use async_graphql::parser::types::OperationType;
use blockbase_app::schema::{Code, Error, Result};
use blockbase_app::{Caller, IncomingBody, Invoker, run_offloaded};
use http::{HeaderMap, Method, Request, Response, StatusCode, header};
use http_body_util::{BodyExt, Full};

use crate::Graphql;
use crate::document::request::GraphqlRequest;
use crate::error::{GraphqlError, Refusal, refused};
use crate::http::accept::Form;
use crate::http::answer::{Body, answer, refuse};
use crate::http::operation::{Operation, RequestContext};
use crate::http::sse::only_result;

/// Answers a request at `/api/v1/graphql`.
pub(crate) async fn handle(graphql: Arc<Graphql>, invoker: Invoker, request: Request<IncomingBody>) -> Response<Body> {
    let (parts, body) = request.into_parts();
    let reads = matches!(parts.method, Method::GET | Method::HEAD);
    if let Some((_, name)) = parts.uri.path().split_once("/graphql/assets/") {
        // The router admits only GET and HEAD for the assets.
        return graphiql::asset(name, &parts.headers).unwrap_or_else(no_asset);
    }
    let Some(form) = Form::accepted(&parts.headers, reads) else {
        let error = Error::invalid_request("Accept application/json, application/graphql-response+json or text/event-stream.");
        return answer(StatusCode::NOT_ACCEPTABLE, Form::Json, refused(&[error.into()]));
    };
    if form == Form::Page {
        return graphiql::page();
    }
    // A caller who may not use the surface gets that error before the request is read.
    let caller = match invoker.caller.and_then(|caller| caller.require_platform().map(|()| caller)) {
        Ok(caller) => caller,
        Err(error) if error.code == Code::Forbidden => return refuse(form, Refusal::Invalid(vec![error.into()])),
        Err(error) if error.code == Code::NotFound => {
            // This error means that the role of `x-svc-view-as` does not exist.
            let mut response = refuse(form, Refusal::Malformed(error));
            *response.status_mut() = StatusCode::NOT_FOUND;
            return response;
        }
        Err(error) => return refuse(form, Refusal::Malformed(error)),
    };
    let context = RequestContext { caller, credentials: invoker.credentials, request_id: invoker.request_id, form };
    let query = parts.uri.query().unwrap_or_default();
    let token = graphql.sse.token(&parts.headers, query);
    match (parts.method, form, token) {
        // A HEAD response has no body to stream.
        (Method::HEAD, Form::Events, _) => refuse(form, Refusal::Method),
        (Method::GET, Form::Events, Some(_)) if context.credentials.view_as.is_some() => {
            // Operations on a single connection are sent with POST, and have all rights of their caller.
            let message = "`x-svc-view-as` works only with streams of one operation. Open the stream without a token.";
            refuse(form, Refusal::Malformed(Error::invalid_request(message)))
        }
        (Method::GET, Form::Events, Some(token)) => graphql.connect(&context, &token),
        (Method::GET | Method::HEAD, _, _) => match GraphqlRequest::from_parameters(query) {
            Ok(request) => graphql.execute(context, request, true).await,
            Err(error) => refuse(form, Refusal::Malformed(error)),
        },
        (Method::POST, _, token) => match graphql.request_of(&context.caller, &parts.headers, body).await {
            Ok(request) => match token {
                Some(token) => graphql.begin(context, &token, request).await,
                None => graphql.execute(context, request, false).await,
            },
            Err(error) => refuse(form, Refusal::Malformed(error)),
        },
        (Method::PUT, _, _) => graphql.reserve(&context),
        (Method::DELETE, _, Some(token)) => graphql.stop(&context, &token, query),
        _ => refuse(form, Refusal::Method),
    }
}

fn no_asset() -> Response<Body> {
    let mut response = Response::new(Full::default().boxed());
    *response.status_mut() = StatusCode::NOT_FOUND;
    response
}

async fn read(headers: &HeaderMap, body: IncomingBody) -> Result<GraphqlRequest> {
    let value = headers.get(header::CONTENT_TYPE).and_then(|value| value.to_str().ok()).unwrap_or_default();
    let mut parts = value.split(';').map(str::trim);
    let is_json = parts.next().is_some_and(|media| media.eq_ignore_ascii_case("application/json"));
    let is_utf8 = parts
        .filter_map(|part| part.split_once('='))
        .all(|(name, value)| !name.eq_ignore_ascii_case("charset") || value.trim_matches('"').eq_ignore_ascii_case("utf-8"));
    if !is_json || !is_utf8 {
        return Err(Error::new(Code::UnsupportedMediaType, "Send the body with `Content-Type: application/json`, in UTF-8."));
    }
    let body = body.read().await?;
    run_offloaded(body.len(), || {
        let text = std::str::from_utf8(&body).map_err(|_| Error::invalid_request("The body is not valid UTF-8."))?;
        GraphqlRequest::from_json(text)
    })
}

impl Graphql {
    /// Reads the request in a body, and checks the caller again afterwards, because the body may have arrived slowly.
    async fn request_of(&self, caller: &Caller, headers: &HeaderMap, body: IncomingBody) -> Result<GraphqlRequest> {
        let request = read(headers, body).await?;
        self.app.recheck(caller).await?;
        Ok(request)
    }

    /// Runs an operation, and returns its result.
    async fn execute(self: &Arc<Self>, context: RequestContext, request: GraphqlRequest, only_queries: bool) -> Response<Body> {
        let form = context.form;
        let operation = match Operation::prepare(self, context, request, only_queries).await {
            Ok(operation) => operation,
            // In a stream, the errors are sent like any other result.
            Err(Refusal::Invalid(errors)) if form == Form::Events => return only_result(&refused(&errors)),
            Err(refusal) => return refuse(form, refusal),
        };
        match (form, operation.ty()) {
            (Form::Events, _) => self.stream(operation).await,
            (_, OperationType::Subscription) => {
                let message = "A subscription needs the header `Accept: text/event-stream`.";
                refuse(form, Refusal::Invalid(vec![GraphqlError::invalid(message, Vec::new())]))
            }
            _ => answer(StatusCode::OK, form, operation.run().await),
        }
    }
}

//! The surface over HTTP. It determines the kind of a request, and makes the response.

pub(crate) mod accept;
pub(crate) mod graphiql;
pub(crate) mod sse;

use std::convert::Infallible;
use std::sync::Arc;
use std::sync::atomic::AtomicUsize;

use async_graphql::parser::types::OperationType;
use blockbase_app::schema::{Code, Error, Result};
use blockbase_app::{Caller, IncomingBody, Invoker, run_offloaded};
use bytes::Bytes;
use http::{HeaderMap, HeaderValue, Method, Request, Response, StatusCode, header};
use http_body_util::combinators::BoxBody;
use http_body_util::{BodyExt, Full};

use crate::Graphql;
use crate::document::coerce::Variables;
use crate::document::prepare::Prepared;
use crate::document::request::GraphqlRequest;
use crate::error::{GraphqlError, refused};
use crate::execute::Execution;
use crate::execute::shape::Budget;
use crate::http::accept::{Form, Refusal};
use crate::http::sse::only_result;

/// A response body, complete or streamed.
pub(crate) type Body = BoxBody<Bytes, Infallible>;

const ALLOWED: &str = "GET, POST, PUT, DELETE";

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
    let asked = Asked { caller, credentials: invoker.credentials, request_id: invoker.request_id, form };
    let query = parts.uri.query().unwrap_or_default();
    let token = graphql.sse.token(&parts.headers, query);
    match (parts.method, form, token) {
        // A HEAD response has no body to stream.
        (Method::HEAD, Form::Events, _) => refuse(form, Refusal::Method),
        (Method::GET, Form::Events, Some(_)) if asked.credentials.view_as.is_some() => {
            // Operations on a single connection are sent with POST, and have all rights of their caller.
            let message = "`x-svc-view-as` works only with streams of one operation. Open the stream without a token.";
            refuse(form, Refusal::Malformed(Error::invalid_request(message)))
        }
        (Method::GET, Form::Events, Some(token)) => graphql.connect(&asked, &token),
        (Method::GET | Method::HEAD, _, _) => match GraphqlRequest::from_parameters(query) {
            Ok(request) => graphql.execute(asked, request, true).await,
            Err(error) => refuse(form, Refusal::Malformed(error)),
        },
        (Method::POST, _, token) => match graphql.request_of(&asked.caller, &parts.headers, body).await {
            Ok(request) => match token {
                Some(token) => graphql.begin(asked, &token, request).await,
                None => graphql.execute(asked, request, false).await,
            },
            Err(error) => refuse(form, Refusal::Malformed(error)),
        },
        (Method::PUT, _, _) => graphql.reserve(&asked),
        (Method::DELETE, _, Some(token)) => graphql.stop(&asked, &token, query),
        _ => refuse(form, Refusal::Method),
    }
}

fn no_asset() -> Response<Body> {
    let mut response = Response::new(Full::default().boxed());
    *response.status_mut() = StatusCode::NOT_FOUND;
    response
}

/// The caller, and the form of the response.
pub(crate) struct Asked {
    pub(crate) caller: Caller,
    pub(crate) credentials: blockbase_app::Credentials,
    pub(crate) request_id: String,
    pub(crate) form: Form,
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
    async fn execute(self: &Arc<Self>, asked: Asked, request: GraphqlRequest, only_queries: bool) -> Response<Body> {
        let form = asked.form;
        let operation = match Operation::prepare(self, asked, request, only_queries).await {
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

/// An operation that is ready to run.
pub(crate) struct Operation {
    pub(crate) graphql: Arc<Graphql>,
    pub(crate) asked: Asked,
    prepared: Prepared,
    name: Option<String>,
    variables: Variables,
}

impl Operation {
    /// The number of bytes of the variables that the client sent.
    pub(crate) fn variable_bytes(&self) -> usize {
        self.variables.bytes()
    }

    /// # Errors
    /// The reason why the request is refused.
    pub(crate) async fn prepare(
        graphql: &Arc<Graphql>,
        mut asked: Asked,
        request: GraphqlRequest,
        only_queries: bool,
    ) -> Result<Operation, Refusal> {
        asked.caller = asked.caller.with_one_answer(graphql.app.settings().answer_bytes_max);
        let prepared = Prepared::of(&graphql.app, &graphql.views, &asked.caller, &request, only_queries).await?;
        let name = request.operation_name;
        let operation = prepared.operation(name.as_deref()).map_err(|error| Refusal::Invalid(vec![error]))?;
        let variables = run_offloaded(request.variables.bytes(), || Variables::of(&prepared.view, operation, &request.variables));
        let variables = variables.map_err(Refusal::Invalid)?;
        drop(request.variables);
        Ok(Operation { graphql: Arc::clone(graphql), asked, name, variables, prepared })
    }

    /// The operation with everything that its execution needs.
    pub(crate) fn with<'s>(&'s self) -> Option<Execution<'s>> {
        let operation = self.prepared.operation(self.name.as_deref()).ok()?;
        Some(Execution {
            app: &self.graphql.app,
            view: &self.prepared.view,
            introspecting: &self.graphql.introspecting,
            caller: &self.asked.caller,
            request_id: &self.asked.request_id,
            document: &self.prepared.document,
            operation,
            operation_name: self.name.as_deref(),
            variables: &self.variables,
            budget: Arc::new(Budget::new(self.graphql.app.settings().answer_bytes_max)),
            argument_bytes: AtomicUsize::new(0),
        })
    }

    pub(crate) fn ty(&self) -> OperationType {
        self.with().map_or(OperationType::Query, |execution| execution.operation.ty)
    }

    /// Runs a query or a mutation. Returns `{ data, errors? }`.
    pub(crate) async fn run(&self) -> Vec<u8> {
        match self.with() {
            Some(execution) => execution.run().await,
            None => refused(&[Error::internal("a prepared operation is missing in its document").into()]),
        }
    }
}

/// A response with a complete body.
pub(crate) fn answer(status: StatusCode, form: Form, body: Vec<u8>) -> Response<Body> {
    let form = if form == Form::Graphql { form } else { Form::Json };
    let mut response = Response::new(Full::new(Bytes::from(body)).boxed());
    *response.status_mut() = status;
    let headers = response.headers_mut();
    headers.insert(header::CONTENT_TYPE, HeaderValue::from_static(form.content_type()));
    headers.insert(header::VARY, HeaderValue::from_static("accept"));
    if status == StatusCode::UNAUTHORIZED {
        headers.insert(header::WWW_AUTHENTICATE, HeaderValue::from_static("Bearer"));
    }
    if status == StatusCode::METHOD_NOT_ALLOWED {
        headers.insert(header::ALLOW, HeaderValue::from_static(ALLOWED));
    }
    response
}

/// The response to a request that is not executed.
pub(crate) fn refuse(form: Form, refusal: Refusal) -> Response<Body> {
    let status = form.status(&refusal);
    let retry_after_s = match &refusal {
        Refusal::Invalid(errors) => errors.first().and_then(|error| error.error.retry_after_s),
        Refusal::Malformed(error) => error.retry_after_s,
        Refusal::Method => None,
    };
    let body = match refusal {
        Refusal::Invalid(errors) => refused(&errors),
        Refusal::Malformed(error) => refused(&[error.into()]),
        Refusal::Method => {
            let message = format!("Send queries by GET or POST, and mutations by POST. The methods of this path are {ALLOWED}.");
            refused(&[Error::new(Code::MethodNotAllowed, message).into()])
        }
    };
    let mut response = answer(status, form, body);
    if let Some(seconds) = retry_after_s {
        response.headers_mut().insert(header::RETRY_AFTER, HeaderValue::from(seconds.get()));
    }
    response
}

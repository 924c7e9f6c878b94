//! Describes the operation that returns this document, and those about the health of the server.

use serde_json::json;

use crate::openapi::answers::of;
use crate::openapi::components::schema;
use crate::openapi::operation::{Caller, Operation, Paths, header_parameter, headers};
use crate::routes::service::health::{AliveAnswer, ReadyAnswer};

pub(crate) fn describe(paths: &mut Paths) {
    let known =
        header_parameter("If-None-Match", "The `ETag` of a document that the client already has.", json!({ "type": "string" }));
    let tagged = [("ETag", "ETag"), ("Cache-Control", "CacheControl"), ("Vary", "Vary")];
    let document = json!({ "application/json": { "schema": { "type": "object" } } });
    let openapi = Operation::new("service.openapi", "service", "Get this document")
        .describe(
            "An OpenAPI 3.1 document of the objects and actions that the caller may know of. It changes at once with the \
            schema.",
        )
        .called_by(Caller::Granted)
        .parameter(known)
        .problems(&[304])
        .response(200, json!({ "description": "The document.", "headers": headers(&tagged), "content": document }));
    paths.add("get", "/api/v1/openapi.json", openapi);

    let health = |verb: &str, summary: &str| {
        Operation::new(format!("service.{verb}"), "service", summary).called_by(Caller::Unseen).without(&[401, 403, 429, 503])
    };
    let alive = health("alive", "Check whether the process is alive")
        .describe(
            "For decisions about restarts. Rate limits do \
        not count it.",
        )
        .answers(200, "The process is alive.", of::<AliveAnswer>());
    paths.add("get", "/healthz", alive);
    let body = json!({ "application/json": { "schema": schema("SvcError") } });
    let ready = health("ready", "Check whether the server can serve requests")
        .describe(
            "For load balancers. The server is ready if the database answers and the server is not stopping. Rate limits \
            do not count it.",
        )
        .answers(200, "The server can serve requests.", of::<ReadyAnswer>())
        .response(503, json!({ "description": "The server cannot serve requests.", "headers": headers(&[]), "content": body }));
    paths.add("get", "/readyz", ready);
}

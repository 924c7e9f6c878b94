//! `GET /api/v1/data`: the objects that the caller may read, with their endpoints.

use std::sync::LazyLock;

use axum::extract::State;
use axum::http::{HeaderMap, Method, StatusCode};
use axum::response::Response;
use blockbase_app::schema::Resource;
use schemars::JsonSchema;
use serde::Serialize;

use crate::AppState;
use crate::answer::error::ApiError;
use crate::answer::render;
use crate::openapi::answers::of;
use crate::openapi::components::list_of;
use crate::openapi::operation::{Caller, Operation, Paths};
use crate::request::extract::Authenticated;
use crate::request::precondition::refuse_if_match;

// An object that the caller may read.
#[derive(Serialize, JsonSchema)]
#[schemars(inline, deny_unknown_fields)]
pub(crate) struct DiscoveredAnswer {
    name: String,
    endpoints: Vec<EndpointAnswer>,
}

#[derive(Serialize, JsonSchema)]
#[schemars(inline, deny_unknown_fields)]
struct EndpointAnswer {
    method: &'static str,
    path: String,
}

/// Where the routes of an object's records begin.
const BASE: &str = "/api/v1/data/{object}";

/// An endpoint of every object.
struct Endpoint {
    method: Method,
    /// What follows [`BASE`], with variable parts such as `:id`.
    rest: String,
}

impl Endpoint {
    /// Whether the endpoint changes records.
    fn writes(&self) -> bool {
        self.method != Method::GET && self.rest != "/query"
    }

    fn of(&'static self, object: &str) -> EndpointAnswer {
        EndpointAnswer { method: self.method.as_str(), path: format!("/api/v1/data/{object}{}", self.rest) }
    }
}

static ENDPOINTS: LazyLock<Vec<Endpoint>> = LazyLock::new(|| {
    let routes = super::routes();
    let of_records = routes.list().iter().filter_map(|(method, path)| {
        let rest = path.strip_prefix(BASE)?.replace("{id}", ":id").replace("{relation}", ":rel");
        Some(Endpoint { method: method.clone(), rest })
    });
    // The same route as the creation of a record, with another result.
    let upsert = Endpoint { method: Method::POST, rest: "?on_conflict=:columns".to_owned() };
    of_records.chain([upsert]).collect()
});

/// The endpoints of an object's records. Users are not written as records.
fn endpoints(object: &str) -> Vec<EndpointAnswer> {
    let is_written = object != Resource::Users.name();
    ENDPOINTS.iter().filter(|endpoint| is_written || !endpoint.writes()).map(|endpoint| endpoint.of(object)).collect()
}

pub(crate) async fn handle(
    State(state): State<AppState>,
    Authenticated(caller): Authenticated,
    headers: HeaderMap,
) -> Result<Response, ApiError> {
    refuse_if_match(&headers)?;
    let names = state.app.readable_objects(&caller).into_iter();
    let objects: Vec<_> = names.map(|name| DiscoveredAnswer { endpoints: endpoints(&name), name }).collect();
    Ok(render::data(StatusCode::OK, &objects))
}

pub(crate) fn describe(paths: &mut Paths) {
    let operation = Operation::new("data.discover", "data", "List the objects to read")
        .describe("Lists the objects whose records the caller may read, with their endpoints.")
        .called_by(Caller::Granted)
        .answers_data(200, "The objects.", list_of(of::<DiscoveredAnswer>()));
    paths.add("get", "/api/v1/data", operation);
}

#[cfg(test)]
mod tests {
    use super::*;

    fn listed(object: &str) -> Vec<String> {
        endpoints(object).iter().map(|EndpointAnswer { method, path }| format!("{method} {path}")).collect()
    }

    #[test]
    fn an_object_has_the_endpoints_of_the_routes() {
        let expected = [
            "GET /api/v1/data/task",
            "POST /api/v1/data/task",
            "POST /api/v1/data/task/query",
            "GET /api/v1/data/task/aggregate",
            "GET /api/v1/data/task/export",
            "POST /api/v1/data/task/bulk",
            "PATCH /api/v1/data/task/bulk",
            "DELETE /api/v1/data/task/bulk",
            "GET /api/v1/data/task/:id",
            "PATCH /api/v1/data/task/:id",
            "DELETE /api/v1/data/task/:id",
            "POST /api/v1/data/task/:id/links/:rel",
            "DELETE /api/v1/data/task/:id/links/:rel",
            "POST /api/v1/data/task?on_conflict=:columns",
        ];
        assert_eq!(listed("task"), expected);
    }

    #[test]
    fn users_have_no_endpoint_that_writes() {
        let expected = [
            "GET /api/v1/data/users",
            "POST /api/v1/data/users/query",
            "GET /api/v1/data/users/aggregate",
            "GET /api/v1/data/users/export",
            "GET /api/v1/data/users/:id",
        ];
        assert_eq!(listed("users"), expected);
    }
}

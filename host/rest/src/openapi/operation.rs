//! One operation of the document, built step by step, and the paths of the operations.

use blockbase_app::PaginationAnswer;
use blockbase_app::schema::Resource;
use serde_json::{Map, Value, json};

use crate::openapi::answers::{of, take_components};
use crate::openapi::components::{exact_object, list_of, reference, response_name, schema};
use crate::request::extract::VIEW_AS;

/// The credential that an operation needs.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Caller {
    /// Needs a credential, any of the three kinds.
    Known,
    /// Needs a credential, any of the three kinds, or a ticket.
    KnownOrTicket,
    /// Needs no credential if the role `public` allows it.
    Granted,
    /// Needs a session. An API key does not count as one.
    Session,
    /// Uses a session if the request has one, but does not need one.
    Anyone,
    /// Ignores credentials.
    Unseen,
}

/// An operation that is being built for the document.
pub(crate) struct Operation {
    caller: Caller,
    /// Whether it is a read although its method is not GET.
    only_reads: bool,
    members: Map<String, Value>,
    parameters: Vec<Value>,
    responses: Map<String, Value>,
}

impl Operation {
    /// `id` is unique and never changes, because generated clients name their functions after it.
    pub(crate) fn new(id: impl Into<String>, tag: &str, summary: impl Into<String>) -> Operation {
        let mut members = Map::new();
        members.insert("operationId".to_owned(), json!(id.into()));
        members.insert("tags".to_owned(), json!([tag]));
        members.insert("summary".to_owned(), json!(summary.into()));
        let (parameters, responses) = (Vec::new(), Map::new());
        let operation = Operation { caller: Caller::Known, only_reads: false, members, parameters, responses };
        operation.problems(&[401, 403, 429, 500, 503])
    }

    /// An operation that needs a permission on a resource of the platform. Its description says so.
    pub(crate) fn gated(resource: Resource, tag: &str, verb: &str, summary: &str) -> Operation {
        let described = format!("{summary}. Needs the permission on `{}`.", resource.name());
        Operation::new(format!("{tag}.{verb}"), tag, summary).describe(described)
    }

    pub(crate) fn describe(mut self, text: impl Into<String>) -> Operation {
        self.members.insert("description".to_owned(), json!(text.into()));
        self
    }

    pub(crate) fn called_by(mut self, caller: Caller) -> Operation {
        self.caller = caller;
        self
    }

    /// Describes the operation as a read although its method is not GET.
    pub(crate) fn only_reads(mut self) -> Operation {
        self.only_reads = true;
        self
    }

    pub(crate) fn parameter(mut self, parameter: Value) -> Operation {
        self.parameters.push(parameter);
        self
    }

    pub(crate) fn parameters(mut self, parameters: impl IntoIterator<Item = Value>) -> Operation {
        self.parameters.extend(parameters);
        self
    }

    /// Adds a required body, and the errors that a body can cause.
    pub(crate) fn body(mut self, media_type: &str, schema: Value) -> Operation {
        let mut content = Map::new();
        content.insert(media_type.to_owned(), json!({ "schema": schema }));
        self.members.insert("requestBody".to_owned(), json!({ "required": true, "content": content }));
        self.problems(&[400, 413, 415])
    }

    pub(crate) fn json_body(self, schema: Value) -> Operation {
        self.body("application/json", schema)
    }

    /// Makes the body optional.
    pub(crate) fn or_without_body(mut self) -> Operation {
        if let Some(body) = self.members.get_mut("requestBody") {
            body["required"] = json!(false);
        }
        self
    }

    /// Adds a response with a JSON body.
    pub(crate) fn answers(self, status: u16, description: &str, schema: Value) -> Operation {
        let content = json!({ "application/json": { "schema": schema } });
        self.response(status, json!({ "description": description, "headers": headers(&[]), "content": content }))
    }

    /// Adds a response with a JSON body and an `ETag`.
    pub(crate) fn answers_tagged(self, status: u16, description: &str, schema: Value) -> Operation {
        let content = json!({ "application/json": { "schema": schema } });
        let headers = headers(&[("ETag", "ETag")]);
        self.response(status, json!({ "description": description, "headers": headers, "content": content }))
    }

    /// Adds a response `{ "data": … }`.
    pub(crate) fn answers_data(self, status: u16, description: &str, schema: Value) -> Operation {
        self.answers(status, description, data_of(schema))
    }

    /// Adds a response with one page of a list: `{ data, pagination }`.
    pub(crate) fn answers_page(self, description: &str, item: Value) -> Operation {
        let page = exact_object(json!({ "data": list_of(item), "pagination": of::<PaginationAnswer>() }));
        self.answers(200, description, page)
    }

    pub(crate) fn answers_nothing(self, status: u16, description: &str) -> Operation {
        self.response(status, json!({ "description": description, "headers": headers(&[]) }))
    }

    pub(crate) fn response(mut self, status: u16, response: Value) -> Operation {
        self.responses.insert(status.to_string(), response);
        self
    }

    /// Adds errors whose responses are the same in all operations.
    pub(crate) fn problems(mut self, statuses: &[u16]) -> Operation {
        for status in statuses {
            self.responses.insert(status.to_string(), reference("responses", response_name(*status)));
        }
        self
    }

    /// Adds the header `x-svc-view-as`, and the errors that it can cause, if the operation does not have them yet.
    fn viewed_as(mut self) -> Operation {
        for status in [400, 404] {
            let response = || reference("responses", response_name(status));
            self.responses.entry(status.to_string()).or_insert_with(response);
        }
        self.parameter(reference("parameters", VIEW_AS_PARAMETER))
    }

    /// Removes statuses that [`Operation::new`] or a body added.
    pub(crate) fn without(mut self, statuses: &[u16]) -> Operation {
        self.responses.retain(|status, _| !statuses.iter().any(|known| known.to_string() == *status));
        self
    }

    fn into_value(self, require_auth: bool) -> Value {
        let Operation { caller, only_reads: _, mut members, parameters, responses } = self;
        let every_kind = [json!({ "bearer": [] }), json!({ "apiKey": [] }), json!({ "session": [] })];
        let security = match caller {
            Caller::Known if require_auth => every_kind.to_vec(),
            Caller::KnownOrTicket => {
                let without = (!require_auth).then(|| json!({}));
                every_kind.into_iter().chain([json!({ "ticket": [] })]).chain(without).collect()
            }
            Caller::Known | Caller::Granted => every_kind.into_iter().chain([json!({})]).collect(),
            Caller::Session => vec![json!({ "bearer": [] }), json!({ "session": [] })],
            Caller::Anyone => vec![json!({ "bearer": [] }), json!({ "session": [] }), json!({})],
            Caller::Unseen => Vec::new(),
        };
        if !parameters.is_empty() {
            members.insert("parameters".to_owned(), Value::Array(parameters));
        }
        let mut responses: Vec<_> = responses.into_iter().collect();
        responses.sort_by(|one, other| one.0.cmp(&other.0));
        members.insert("responses".to_owned(), Value::Object(responses.into_iter().collect()));
        members.insert("security".to_owned(), Value::Array(security));
        Value::Object(members)
    }
}

/// `{ "data": … }`.
pub(crate) fn data_of(schema: Value) -> Value {
    json!({ "type": "object", "properties": { "data": schema }, "required": ["data"], "additionalProperties": false })
}

/// `{ "data": …, "warnings"? }`.
pub(crate) fn data_with_warnings(data: Value) -> Value {
    let mut answer = data_of(data);
    answer["properties"]["warnings"] = schema("SvcWarnings");
    answer
}

/// The header `x-request-id`, and those of `names` that `components.headers` has.
pub(crate) fn headers(names: &[(&str, &str)]) -> Value {
    let mut headers = Map::new();
    headers.insert("x-request-id".to_owned(), reference("headers", "RequestId"));
    for (name, component) in names {
        headers.insert((*name).to_owned(), reference("headers", component));
    }
    Value::Object(headers)
}

/// The component that describes `x-svc-view-as`.
pub(crate) const VIEW_AS_PARAMETER: &str = "SvcViewAs";

/// Whether reads of a path accept the header for viewing as a role. These are the reads that depend on the rights of their
/// caller.
fn knows_view_as(path: &str) -> bool {
    const OTHERS: [&str; 4] = ["/api/v1/hooks/", "/api/v1/mcp", "/api/v1/me", "/api/v1/graphql/assets/"];
    path.starts_with("/api/v1/") && !OTHERS.iter().any(|other| path.starts_with(other))
}

/// The header `x-svc-view-as`.
pub(crate) fn view_as() -> Value {
    json!({
        "name": VIEW_AS,
        "in": "header",
        "required": false,
        "description": "The id of a role. The response is what a user with this role and `public` would get, limited to what \
            the caller may see. `own` means the caller's rows. Needs read on `roles`. An unknown role gets 404.",
        "schema": { "type": "string", "minLength": 1 },
    })
}

/// A variable part of a path.
pub(crate) fn path_parameter(name: &str, description: &str, schema: Value) -> Value {
    json!({ "name": name, "in": "path", "required": true, "description": description, "schema": schema })
}

pub(crate) fn header_parameter(name: &str, description: &str, schema: Value) -> Value {
    json!({ "name": name, "in": "header", "description": description, "schema": schema })
}

pub(crate) fn query_parameter(name: &str, description: &str, schema: Value) -> Value {
    json!({ "name": name, "in": "query", "description": description, "schema": schema })
}

/// The paths of the document, in the order in which they are described, and the components to which their answers refer.
pub(crate) struct Paths {
    require_auth: bool,
    paths: Map<String, Value>,
    components: Map<String, Value>,
}

impl Paths {
    pub(crate) fn new(require_auth: bool) -> Paths {
        Paths { require_auth, paths: Map::new(), components: Map::new() }
    }

    pub(crate) fn add(&mut self, method: &str, path: impl Into<String>, operation: Operation) {
        let path = path.into();
        let writes = method != "get" && !operation.only_reads;
        let operation = if writes { operation.problems(&[507]) } else { operation };
        let operation = match !writes && knows_view_as(&path) {
            true => operation.viewed_as(),
            false => operation,
        };
        let mut operation = operation.into_value(self.require_auth);
        take_components(&mut operation, &mut self.components);
        let item = self.paths.entry(path).or_insert_with(|| json!({}));
        item[method] = operation;
    }

    /// The paths, and the components.
    pub(crate) fn into_parts(self) -> (Value, Map<String, Value>) {
        (Value::Object(self.paths), self.components)
    }
}

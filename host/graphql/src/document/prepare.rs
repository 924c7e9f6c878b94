//! Prepares a document for its execution: checks its limits, checks that the caller may run it, and validates it.

use std::collections::HashSet;
use std::sync::Arc;

use async_graphql::dynamic::Schema;
use async_graphql::parser::types::{
    BaseType, DocumentOperations, ExecutableDocument, OperationDefinition, OperationType, Selection, SelectionSet, Type,
};
use async_graphql::{Name, Positioned, Request};
use async_graphql_value::Value;
use blockbase_app::schema::{Code, Error};
use blockbase_app::{App, Caller};

use crate::document::check;
use crate::document::check::{ERRORS_MAX, Viewer};
use crate::document::limits;
use crate::document::limits::QUERY_BYTES_MAX;
use crate::document::request::GraphqlRequest;
use crate::document::{collect, lexical};
use crate::error::{GraphqlError, Refusal};
use crate::view::View;
use crate::view::root::Root;
use crate::view::schema;
use crate::view::schema::ValidateOnly;
use crate::view::views::Views;

/// A document that may be executed.
pub(crate) struct Prepared {
    pub(crate) view: Arc<View>,
    pub(crate) document: Arc<ExecutableDocument>,
}

impl Prepared {
    /// # Errors
    /// The errors of the request. Validation reports all that it finds.
    pub(crate) async fn of(
        app: &App,
        views: &Arc<Views>,
        caller: &Caller,
        request: &GraphqlRequest,
        only_queries: bool,
    ) -> Result<Prepared, Refusal> {
        let refuse = |error: Error| Refusal::Invalid(vec![error.into()]);
        caller.require_platform().map_err(refuse)?;
        request.expect_query().map_err(Refusal::Malformed)?;
        let text = request.query.as_str();
        if text.len() > QUERY_BYTES_MAX {
            let message = format!("The text of a document can have at most {QUERY_BYTES_MAX} bytes.");
            return Err(refuse(Error::new(Code::PayloadTooLarge, message)));
        }
        let view = views.of(caller);
        let gate = Gate {
            viewer: Viewer::of(caller),
            only_queries,
            needs_credential: app.settings().require_auth && !caller.is_known(),
            operation_name: request.operation_name.clone(),
        };
        if let Some(document) = view.documents.get(text) {
            gate.admit(&document)?;
            return Ok(Prepared { view, document });
        }
        if let Some(document) = views.valid.get(text) {
            gate.admit(&document)?;
            check::document(&view, gate.viewer, &document).map_err(Refusal::Invalid)?;
            view.documents.insert(text, Arc::clone(&document));
            return Ok(Prepared { view, document });
        }
        // The check of a new document takes time, and that of a hostile document may take long. So the check needs a permit, and
        // keeps it until the work has ended.
        let place = Arc::clone(&views.preparing).acquire_owned().await.map_err(|error| refuse(Error::internal(error)))?;
        let (all, here) = (Arc::clone(views), Arc::clone(&view));
        let (text, runtime) = (request.query.clone(), tokio::runtime::Handle::current());
        let prepared = tokio::task::spawn_blocking(move || {
            let _place = place;
            let document = Arc::new(parse(&text).map_err(|error| Refusal::Invalid(vec![error]))?);
            gate.admit(&document)?;
            check::document(&here, gate.viewer, &document).map_err(Refusal::Invalid)?;
            runtime.block_on(validate(&all, &here, &text, &document)).map_err(Refusal::Invalid)?;
            Ok(document)
        });
        let document = prepared.await.map_err(|error| refuse(Error::internal(error)))??;
        view.documents.insert(&request.query, Arc::clone(&document));
        views.valid.insert(&request.query, Arc::clone(&document));
        Ok(Prepared { view, document })
    }

    /// The operation that a request names. A request without a name means the only operation.
    ///
    /// # Errors
    /// `invalid_request`.
    pub(crate) fn operation(&self, name: Option<&str>) -> Result<&OperationDefinition, GraphqlError> {
        operation(&self.document, name).map(|operation| &operation.node)
    }
}

fn parse(text: &str) -> Result<ExecutableDocument, GraphqlError> {
    lexical::check(text)?;
    let document = async_graphql::parser::parse_query(lexical::joined(text)).map_err(|error| GraphqlError::of_parser(&error))?;
    limits::check(&document)?;
    Ok(document)
}

fn operation<'d>(
    document: &'d ExecutableDocument,
    name: Option<&str>,
) -> Result<&'d Positioned<OperationDefinition>, GraphqlError> {
    match (&document.operations, name) {
        (DocumentOperations::Single(operation), None) => Ok(operation),
        (DocumentOperations::Multiple(operations), None) if operations.len() == 1 => {
            operations.values().next().ok_or_else(|| GraphqlError::invalid("The document has no operation.", Vec::new()))
        }
        (DocumentOperations::Multiple(_), None) => {
            let message = "The document has several operations. Name one of them with `operationName`.";
            Err(GraphqlError::invalid(message, Vec::new()))
        }
        (DocumentOperations::Multiple(operations), Some(name)) if operations.contains_key(name) => Ok(&operations[name]),
        (_, Some(name)) => Err(GraphqlError::invalid(format!("The document has no operation `{name}`."), Vec::new())),
    }
}

/// The message for a mutation or a subscription without a credential. Clients of this API compare it byte for byte. It has no hint.
const AUTHENTICATION_REQUIRED: &str = "Authentication required";

/// The checks that a document has to pass before it is validated.
struct Gate {
    viewer: Viewer,
    only_queries: bool,
    /// Whether permissions are enforced and the caller is anonymous.
    needs_credential: bool,
    operation_name: Option<String>,
}

impl Gate {
    /// # Errors
    /// If the document does not have the operation that the request names, or if the operation needs another method or a
    /// credential.
    fn admit(&self, document: &ExecutableDocument) -> Result<(), Refusal> {
        let operation = operation(document, self.operation_name.as_deref()).map_err(|error| Refusal::Invalid(vec![error]))?;
        let is_query = operation.node.ty == OperationType::Query;
        if self.only_queries && !is_query {
            return Err(Refusal::Method);
        }
        // Every mutation and every subscription needs a credential.
        if self.needs_credential && !is_query {
            let error = Error::new(Code::Unauthorized, AUTHENTICATION_REQUIRED);
            return Err(Refusal::Invalid(vec![GraphqlError::of_document(error, vec![operation.pos])]));
        }
        Ok(())
    }
}

fn root_fields<'d>(
    document: &'d ExecutableDocument,
    set: &'d SelectionSet,
    seen: &mut HashSet<&'d Name>,
    each: &mut dyn FnMut(&str, async_graphql::Pos),
) {
    for item in &set.items {
        match &item.node {
            Selection::Field(field) => each(&field.node.name.node, field.pos),
            Selection::InlineFragment(fragment) => root_fields(document, &fragment.node.selection_set.node, seen, each),
            Selection::FragmentSpread(spread) => {
                let name = &spread.node.fragment_name.node;
                if let Some(fragment) = document.fragments.get(name).filter(|_| seen.insert(name)) {
                    root_fields(document, &fragment.node.selection_set.node, seen, each);
                }
            }
        }
    }
}

/// Validates a document against the view's schema. If that schema is not ready, it uses a schema of only the objects that the
/// document names, so that a request does not wait for the other objects. This also holds for introspection, because every schema
/// has `__schema` and `__type` with all their types. Only the answer needs the complete schema, and waits for it with a permit of
/// its own.
async fn validate(
    views: &Views,
    view: &Arc<View>,
    text: &str,
    document: &Arc<ExecutableDocument>,
) -> Result<(), Vec<GraphqlError>> {
    let fail = |error: Error| vec![GraphqlError::from(error)];
    let schema = match views.ready_schema(view) {
        Some(schema) => schema,
        None => {
            let named = named_objects(view, document);
            schema::build(view, &|name| named.contains(name)).map_err(fail)?
        }
    };
    let names: Vec<Option<String>> = match &document.operations {
        DocumentOperations::Single(_) => vec![None],
        DocumentOperations::Multiple(operations) => operations.keys().take(1).map(|name| Some(name.to_string())).collect(),
    };
    for name in names {
        check_against(&schema, text, document, name).await?;
    }
    for (_, operation) in document.operations.iter() {
        if let Some(field) = collect::conflict(document, &[&operation.node.selection_set.node]) {
            let key = field.node.response_key();
            let message = format!("`{}` is the key of different fields, or of one field with different arguments.", key.node);
            return Err(vec![GraphqlError::invalid(message, vec![key.pos])]);
        }
    }
    check_subscriptions(document)
}

async fn check_against(
    schema: &Schema,
    text: &str,
    document: &ExecutableDocument,
    name: Option<String>,
) -> Result<(), Vec<GraphqlError>> {
    let mut request = Request::new(text).data(ValidateOnly);
    request.set_parsed_query(document.clone());
    request.operation_name = name;
    let response = schema.execute(request).await;
    match response.errors.is_empty() {
        true => Ok(()),
        false => Err(response.errors.into_iter().take(ERRORS_MAX).map(GraphqlError::of_validation).collect()),
    }
}

/// Checks that each subscription has one root field.
fn check_subscriptions(document: &ExecutableDocument) -> Result<(), Vec<GraphqlError>> {
    for (_, operation) in document.operations.iter().filter(|(_, operation)| operation.node.ty == OperationType::Subscription) {
        let mut fields = 0;
        root_fields(document, &operation.node.selection_set.node, &mut HashSet::new(), &mut |_, _| fields += 1);
        if fields != 1 {
            return Err(vec![GraphqlError::invalid("A subscription must have exactly one root field.", vec![operation.pos])]);
        }
    }
    Ok(())
}

/// The objects that a document can refer to: those of its root fields, types and variables, and those that its relation keys lead
/// to.
fn named_objects(view: &View, document: &ExecutableDocument) -> HashSet<String> {
    let mut objects = HashSet::new();
    let mut keys: HashSet<&str> = HashSet::new();
    for (_, operation) in document.operations.iter() {
        for definition in &operation.node.variable_definitions {
            let object = view.object_near(base_name(&definition.node.var_type.node));
            objects.extend(object.map(|object| object.name().to_owned()));
            if let Some(default) = &definition.node.default_value {
                names_of_default(&default.node, &mut keys);
            }
        }
        root_fields(document, &operation.node.selection_set.node, &mut HashSet::new(), &mut |name, _| {
            if let Some(
                Root::List(object)
                | Root::ById(object)
                | Root::Aggregate(object)
                | Root::Groups(object)
                | Root::Connection(object)
                | Root::Create(object)
                | Root::Update(object)
                | Root::Upsert(object)
                | Root::Delete(object)
                | Root::UpdateMany(object)
                | Root::DeleteMany(object)
                | Root::Links(object, ..),
            ) = check::find(view, operation.node.ty, name)
            {
                objects.insert(object.name().to_owned());
            }
        });
        names_within(view, &operation.node.selection_set.node, &mut keys, &mut objects);
    }
    for fragment in document.fragments.values() {
        let on = fragment.node.type_condition.node.on.node.as_str();
        objects.extend(view.object_near(on).map(|object| object.name().to_owned()));
        names_within(view, &fragment.node.selection_set.node, &mut keys, &mut objects);
    }
    let mut waiting: Vec<String> = objects.iter().cloned().collect();
    while let Some(object) = waiting.pop() {
        for relation in view.registry.relations_of(&object).iter().filter(|relation| keys.contains(relation.key.as_str())) {
            if objects.insert(relation.related.clone()) {
                waiting.push(relation.related.clone());
            }
        }
    }
    objects
}

/// Collects the names of all fields, and the objects of inline fragments.
fn names_within<'d>(view: &View, set: &'d SelectionSet, keys: &mut HashSet<&'d str>, objects: &mut HashSet<String>) {
    for item in &set.items {
        match &item.node {
            Selection::Field(field) => {
                keys.insert(field.node.name.node.as_str());
                field.node.arguments.iter().for_each(|(_, value)| names_of_members(&value.node, keys));
                names_within(view, &field.node.selection_set.node, keys, objects);
            }
            Selection::InlineFragment(fragment) => {
                let on = fragment.node.type_condition.as_ref().map(|on| on.node.on.node.as_str());
                objects.extend(on.and_then(|on| view.object_near(on)).map(|object| object.name().to_owned()));
                names_within(view, &fragment.node.selection_set.node, keys, objects);
            }
            Selection::FragmentSpread(_) => {}
        }
    }
}

/// Collects the names in the default of a variable.
fn names_of_default<'d>(value: &'d async_graphql::Value, keys: &mut HashSet<&'d str>) {
    match value {
        async_graphql::Value::List(items) => items.iter().for_each(|item| names_of_default(item, keys)),
        async_graphql::Value::Object(members) => members.iter().for_each(|(name, value)| {
            keys.insert(name.as_str());
            names_of_default(value, keys);
        }),
        _ => {}
    }
}

/// Collects the names of an argument's members, because a condition may have relation keys as members.
fn names_of_members<'d>(value: &'d Value, keys: &mut HashSet<&'d str>) {
    match value {
        Value::List(items) => items.iter().for_each(|item| names_of_members(item, keys)),
        Value::Object(members) => members.iter().for_each(|(name, value)| {
            keys.insert(name.as_str());
            names_of_members(value, keys);
        }),
        _ => {}
    }
}

fn base_name(ty: &Type) -> &str {
    match &ty.base {
        BaseType::Named(name) => name,
        BaseType::List(inner) => base_name(inner),
    }
}

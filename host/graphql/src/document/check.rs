//! Checks a document before async-graphql validates it. It compares variables and literals with the types that are expected
//! there, and fields with the names that the caller may know. So an error has the code that the operation itself would give, and
//! a variable of a wrong type is always found.
//!
//! These checks cover everything in which two schemas can differ. So if a document was valid against one schema, and these checks
//! find no error, it is valid against the other schema too.

use std::collections::HashSet;

use async_graphql::parser::types::{ExecutableDocument, Field, OperationDefinition, OperationType, Selection, SelectionSet};
use async_graphql::{Name, Pos, Positioned};
use blockbase_app::schema::{Code, Error, Object, Resource, pascal_case};
use blockbase_app::{Action, Caller};

use crate::document::coerce::{Arguments, Variables, write_literal};
use crate::error::GraphqlError;
use crate::view::View;
use crate::view::leaves::LeafType;
use crate::view::root::Root;
use crate::view::types::{Input, InputField, Scalar, connection_name, edge_name, page_name, upserted_name};

/// The maximum number of errors that are reported for one document.
pub(crate) const ERRORS_MAX: usize = 100;

/// The properties of the caller on which the error for a missing name depends.
#[derive(Clone, Copy)]
pub(crate) struct Viewer {
    /// Whether the caller may read `objects`. If so, the error says that the name does not exist. Other callers get the same
    /// error as for things that they may not see.
    reads_schema: bool,
    is_known: bool,
}

impl Viewer {
    pub(crate) fn of(caller: &Caller) -> Viewer {
        Viewer { reads_schema: caller.holds(Resource::Objects, Action::Read), is_known: caller.is_known() }
    }

    /// The error for something that does not exist, or that the caller may not know of.
    fn missing(self, otherwise: Error) -> Error {
        match (self.reads_schema, self.is_known) {
            (true, _) => otherwise,
            (false, true) => {
                let what = otherwise.message.trim_end_matches('.').to_owned();
                Error::new(Code::Forbidden, format!("{what}, or you may not use it."))
            }
            (false, false) => Error::unauthenticated(),
        }
    }
}

/// Checks every operation.
///
/// # Errors
/// The errors of the document, at most a hundred.
pub(crate) fn document(view: &View, viewer: Viewer, document: &ExecutableDocument) -> Result<(), Vec<GraphqlError>> {
    let mut errors = Vec::new();
    for (_, operation) in document.operations.iter() {
        match Variables::declared(view, &operation.node) {
            Ok(variables) => {
                let ty = operation.node.ty;
                let mut check = Check { view, viewer, document, variables, ty, seen: HashSet::new(), errors: &mut errors };
                check.operation(&operation.node);
            }
            Err(error) => errors.push(error),
        }
    }
    errors.truncate(ERRORS_MAX);
    match errors.is_empty() {
        true => Ok(()),
        false => Err(errors),
    }
}

struct Check<'d> {
    view: &'d View,
    viewer: Viewer,
    document: &'d ExecutableDocument,
    variables: Variables,
    ty: OperationType,
    /// The fragments that were checked. A fragment has one type, so one check is enough.
    seen: HashSet<&'d Name>,
    errors: &'d mut Vec<GraphqlError>,
}

/// The type that a selection selects from.
#[derive(Clone, Copy)]
enum Parent<'d> {
    Root,
    Page(&'d Object),
    Upserted(&'d Object),
    Connection(&'d Object),
    Edge(&'d Object),
    /// A page of groups.
    Groups,
    Record(&'d Object),
    /// A type whose fields are all leaves. Every schema has the same types of this kind.
    Leaves(LeafType),
    /// A leaf. It has no fields to select.
    Leaf,
    /// A field of introspection, which async-graphql checks.
    Introspection,
}

impl<'d> Check<'d> {
    fn operation(&mut self, operation: &'d OperationDefinition) {
        self.selections(&operation.selection_set.node, Parent::Root);
    }

    fn tell(&mut self, error: Error, position: Pos) {
        if self.errors.len() < ERRORS_MAX {
            self.errors.push(GraphqlError::of_document(error, vec![position]));
        }
    }

    fn selections(&mut self, set: &'d SelectionSet, parent: Parent<'d>) {
        for item in &set.items {
            for directive in item.node.directives() {
                if let Some(value) = directive.node.get_argument("if") {
                    let expected = Input::Scalar(Scalar::Boolean).required();
                    if let Err(error) = write_literal(&value.node, &expected, &self.variables, &mut Vec::new()) {
                        self.tell(error, value.pos);
                    }
                }
            }
            match &item.node {
                Selection::Field(field) => self.field(field, parent),
                Selection::InlineFragment(fragment) => {
                    let on = fragment.node.type_condition.as_ref().map(|on| on.node.on.node.as_str());
                    if on.is_none_or(|on| self.is_type(parent, on)) {
                        self.selections(&fragment.node.selection_set.node, parent);
                    }
                }
                Selection::FragmentSpread(spread) => {
                    let Some(fragment) = self.document.fragments.get(&spread.node.fragment_name.node) else { continue };
                    let on = fragment.node.type_condition.node.on.node.as_str();
                    if self.is_type(parent, on) && self.seen.insert(&spread.node.fragment_name.node) {
                        self.selections(&fragment.node.selection_set.node, parent);
                    }
                }
            }
        }
    }

    /// Whether a fragment on the type `name` applies to the type `parent`. If it does not, validation refuses it.
    fn is_type(&self, parent: Parent<'_>, name: &str) -> bool {
        match parent {
            Parent::Root => matches!(
                (self.ty, name),
                (OperationType::Query, "Query")
                    | (OperationType::Mutation, "Mutation")
                    | (OperationType::Subscription, "Subscription")
            ),
            Parent::Page(object) => page_name(object) == name,
            Parent::Upserted(object) => upserted_name(object) == name,
            Parent::Connection(object) => connection_name(object) == name,
            Parent::Edge(object) => edge_name(object) == name,
            Parent::Record(object) => pascal_case(object.name()) == name,
            Parent::Groups | Parent::Leaves(_) | Parent::Introspection => true,
            Parent::Leaf => false,
        }
    }

    fn field(&mut self, field: &'d Positioned<Field>, parent: Parent<'d>) {
        let name = field.node.name.node.as_str();
        let set = &field.node.selection_set.node;
        match parent {
            Parent::Root if name.starts_with("__") => {
                if name == "__type" {
                    let input = Input::Scalar(Scalar::String).required();
                    let declared = vec![InputField { name: "name".to_owned(), input, default: None, description: None }];
                    self.arguments(declared, field);
                }
                self.selections(set, Parent::Introspection);
            }
            Parent::Root => self.root(name, field),
            Parent::Introspection => self.selections(set, Parent::Introspection),
            _ if name == "__typename" => self.below(field, Parent::Leaf),
            Parent::Page(object) | Parent::Upserted(object) if name == "data" => self.below(field, Parent::Record(object)),
            Parent::Groups if name == "data" => self.below(field, Parent::Leaf),
            Parent::Page(_) | Parent::Groups if name == "pagination" => self.below(field, Parent::Leaves(LeafType::Pagination)),
            Parent::Upserted(_) if name == "created" => self.below(field, Parent::Leaf),
            Parent::Connection(object) if name == "edges" => self.below(field, Parent::Edge(object)),
            Parent::Connection(_) if name == "pageInfo" => self.below(field, Parent::Leaves(LeafType::PageInfo)),
            Parent::Connection(_) if name == "totalCount" => self.below(field, Parent::Leaf),
            Parent::Edge(object) if name == "node" => self.below(field, Parent::Record(object)),
            Parent::Edge(_) if name == "cursor" => self.below(field, Parent::Leaf),
            Parent::Leaves(ty) if ty.fields().iter().any(|(field, _)| *field == name) => self.below(field, Parent::Leaf),
            Parent::Page(_)
            | Parent::Groups
            | Parent::Upserted(_)
            | Parent::Connection(_)
            | Parent::Edge(_)
            | Parent::Leaves(_)
            | Parent::Leaf => {
                let error = Error::new(Code::UnknownField, format!("There is no field `{name}` here.")).with_field(name);
                self.tell(error, field.pos);
            }
            Parent::Record(object) => self.of_record(object, name, field),
        }
    }

    /// Checks the selection of a field: a leaf must not have one, and any other field must have one.
    fn below(&mut self, field: &'d Positioned<Field>, parent: Parent<'d>) {
        let set = &field.node.selection_set.node;
        let name = &field.node.name.node;
        match (parent, set.items.is_empty()) {
            (Parent::Leaf, true) => {}
            (Parent::Leaf, false) => {
                self.tell(Error::invalid_request(format!("`{name}` has no fields that can be selected.")), field.pos)
            }
            (_, true) => self.tell(Error::invalid_request(format!("Select fields of `{name}`.")), field.pos),
            (_, false) => self.selections(set, parent),
        }
    }

    fn root(&mut self, name: &str, field: &'d Positioned<Field>) {
        let Some(root) = find(self.view, self.ty, name) else {
            let word = match self.ty {
                OperationType::Query => "query",
                OperationType::Mutation => "mutation",
                OperationType::Subscription => "subscription",
            };
            let missing = Error::new(Code::NotFound, format!("There is no {word} `{name}`."));
            return self.tell(self.viewer.missing(missing), field.pos);
        };
        self.arguments(root.arguments(self.view), field);
        let view = self.view;
        let object = |object: &Object| view.registry.object(object.name()).map(|object| &**object);
        let below = match &root {
            Root::List(list) => object(list).map(Parent::Page),
            Root::Connection(list) => object(list).map(Parent::Connection),
            Root::Upsert(upserted) => object(upserted).map(Parent::Upserted),
            Root::ById(record) | Root::Create(record) | Root::Update(record) => object(record).map(Parent::Record),
            Root::Aggregate(_) => Some(Parent::Leaves(LeafType::Aggregate)),
            Root::Groups(_) => Some(Parent::Groups),
            Root::UpdateMany(_) | Root::DeleteMany(_) => Some(Parent::Leaves(LeafType::Written)),
            Root::Events => Some(Parent::Leaves(LeafType::Event)),
            Root::SchemaVersion | Root::Objects | Root::Delete(_) | Root::Links(..) | Root::Batch | Root::Action(..) => {
                Some(Parent::Leaf)
            }
        };
        if let Some(below) = below {
            self.below(field, below);
        }
    }

    fn arguments(&mut self, declared: Vec<InputField>, field: &'d Positioned<Field>) {
        let is_known = |name: &str| declared.iter().any(|known| known.name == name);
        if let Some((name, _)) = field.node.arguments.iter().find(|(name, _)| !is_known(&name.node)) {
            let message = format!("`{}` has no argument `{}`.", field.node.name.node, name.node);
            return self.tell(Error::invalid_request(message), name.pos);
        }
        if let Err((error, position)) = Arguments::of(declared, &field.node.arguments, &self.variables) {
            self.tell(error, if position == Pos::default() { field.pos } else { position });
        }
    }

    fn of_record(&mut self, object: &'d Object, name: &str, field: &'d Positioned<Field>) {
        if object.column(name).is_some() {
            return self.below(field, Parent::Leaf);
        }
        let view = self.view;
        let relation = view.registry.relation(object.name(), name).filter(|relation| view.shows(&relation.related));
        match relation.and_then(|relation| view.registry.object(&relation.related)) {
            Some(related) => self.below(field, Parent::Record(related)),
            None => {
                let unknown = Error::unknown_field(object.name(), name);
                // Its selection shows that the client expects a relation. The relation may exist, but be hidden from the caller.
                let is_relation = !field.node.selection_set.node.items.is_empty();
                let error = if is_relation { self.viewer.missing(unknown) } else { unknown };
                self.tell(error, field.pos);
            }
        }
    }
}

/// The root field with this name.
pub(crate) fn find(view: &View, ty: OperationType, name: &str) -> Option<Root> {
    match ty {
        OperationType::Query => view.query(name),
        OperationType::Mutation => view.mutation(name),
        OperationType::Subscription => view.subscription(name),
    }
}

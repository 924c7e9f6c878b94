//! The schema of a view. async-graphql validates documents against it, and answers introspection from it.
//!
//! Its fields have no resolvers. `execute` runs a validated document, and reads a complete tree of records in one operation.

use std::collections::HashSet;
use std::sync::Arc;

use async_graphql::dynamic::{
    Enum, Field, FieldFuture, FieldValue, InputObject, InputValue, Object as ObjectType, Scalar as ScalarType, Schema,
    SchemaBuilder, Subscription, SubscriptionField, SubscriptionFieldFuture, TypeRef,
};
use async_graphql::extensions::{Extension, ExtensionContext, ExtensionFactory, NextExecute};
use async_graphql::{Name, Response, Value};
use blockbase_app::schema::{Error, FieldType, Object, Relation, RelationShape, Result, pascal_case};
use blockbase_app::{AggregateFunction, LinkChange, Operator};

use crate::view::View;
use crate::view::leaves::LeafType;
use crate::view::root::Root;
use crate::view::types::{
    GROUPS, Input, InputField, SORT_DIRECTIONS, Scalar, Test, connection_name, description_of, edge_name, enum_name, enum_values,
    is_never_null, is_numeric, page_name, scalar_of, upserted_name,
};

/// The maximum number of levels of selection sets for async-graphql. Documents within this crate's own limits have fewer.
const RECURSION_MAX: usize = 200;

/// Marks a request whose document is validated, not executed.
pub(crate) struct ValidateOnly;

struct Validation;

impl ExtensionFactory for Validation {
    fn create(&self) -> Arc<dyn Extension> {
        Arc::new(Validation)
    }
}

#[async_trait::async_trait]
impl Extension for Validation {
    async fn execute(&self, context: &ExtensionContext<'_>, operation_name: Option<&str>, next: NextExecute<'_>) -> Response {
        match context.data_opt::<ValidateOnly>() {
            Some(_) => Response::new(Value::Null),
            None => next.run(context, operation_name).await,
        }
    }
}

/// The part of each schema's size that does not depend on its objects.
const SHARED_SIZE: usize = 256;
/// The part of an object's size that does not depend on its columns: its root fields with their arguments, and its pages.
const OBJECT_SIZE: usize = 64;
/// The size of a relation: as a field, in conditions, and in the mutations of links.
const RELATION_SIZE: usize = 4;
/// A schema has up to six copies of a field's description, so this many bytes of it take as much memory as a member without one.
const DESCRIPTION_BYTES: usize = 200;

impl View {
    /// The size of the complete schema: about the number of the members of its types, which are fields, arguments and values of
    /// enums. The memory of a schema grows with this number. The schema does not have to be built for it.
    pub(crate) fn schema_size(&self) -> usize {
        let size = || SHARED_SIZE + 2 * self.actions.len() + self.objects().map(|object| self.object_size(object)).sum::<usize>();
        *self.schema_size.get_or_init(size)
    }

    fn object_size(&self, object: &Arc<Object>) -> usize {
        let (to_create, to_change) = (self.to_create(object), self.to_change(object));
        // Each column is a field of the record, and a member of conditions.
        let read = 2 * object.columns.len();
        let numeric = to_change.columns.iter().filter(|column| is_numeric(column)).count();
        let written = to_create.columns.len() + to_change.columns.len() + numeric;
        let options: usize = object.columns.iter().filter_map(enum_values).map(<[String]>::len).sum();
        let relations = RELATION_SIZE * self.registry.relations_of(object.name()).len();
        let described = object.definition.fields.iter().filter_map(|field| field.description.as_ref().or(field.label.as_ref()));
        let described = described.map(String::len).sum::<usize>() / DESCRIPTION_BYTES;
        OBJECT_SIZE + read + written + options + relations + described
    }
}

/// Builds the complete schema of a view, on the blocking pool.
///
/// # Errors
/// `internal`.
pub(crate) async fn build_whole(view: &Arc<View>) -> Result<Schema> {
    let view = Arc::clone(view);
    tokio::task::spawn_blocking(move || build(&view, &|_| true)).await.map_err(Error::internal)?
}

/// The schema of those objects of a view that `includes` accepts, without relations to other objects.
///
/// # Errors
/// `internal`. This does not occur, because names are checked when objects are created.
pub(crate) fn build(view: &View, includes: &dyn Fn(&str) -> bool) -> Result<Schema> {
    let objects: Vec<&Arc<Object>> = view.objects().filter(|object| includes(object.name())).collect();
    let mut query = ObjectType::new("Query");
    let mut mutation = ObjectType::new("Mutation");
    let mut has_mutations = false;
    query = query.field(root_field(view, &Root::SchemaVersion, TypeRef::named_nn(TypeRef::INT)));
    query = query.field(root_field(view, &Root::Objects, TypeRef::named_nn_list_nn(TypeRef::STRING)));
    for object in &objects {
        for root in Root::queries(object).into_iter().filter(|root| view.has_query(root)) {
            query = query.field(root_field(view, &root, TypeRef::named(result_name(&root))));
        }
        for root in Root::mutations(object).into_iter().filter(|root| view.has_mutation(root)) {
            mutation = mutation.field(root_field(view, &root, TypeRef::named(result_name(&root))));
            has_mutations = true;
        }
        for relation in view.registry.relations_of(object.name()).iter().filter(|_| !object.is_users()) {
            if matches!(relation.shape, RelationShape::Linked { .. }) && view.shows(&relation.related) {
                for change in [LinkChange::Add, LinkChange::Remove] {
                    let root = Root::Links(Arc::clone(object), relation.key.clone(), change);
                    mutation = mutation.field(root_field(view, &root, TypeRef::named(TypeRef::INT)));
                }
            }
        }
    }
    if view.has_batch() {
        mutation = mutation.field(root_field(view, &Root::Batch, TypeRef::named_list(Scalar::Json.name())));
        has_mutations = true;
    }
    for (root, described) in view.actions() {
        let field = root_field(view, root, TypeRef::named(Scalar::Json.name()));
        mutation = mutation.field(if described.is_empty() { field } else { field.description(described) });
        has_mutations = true;
    }
    let subscription = view.has_events.then_some("Subscription");
    let mut builder = Schema::build("Query", has_mutations.then_some("Mutation"), subscription)
        .limit_recursive_depth(RECURSION_MAX)
        // Suggestions would be slow, because they compare each unknown name with every known one.
        .disable_suggestions()
        .extension(Validation)
        .register(query);
    if has_mutations {
        builder = builder.register(mutation);
    }
    builder = shared_types(builder, view);
    if !objects.is_empty() {
        builder = builder.register(groups_type());
        if view.has_connections() {
            builder = builder.register(leaf_type(LeafType::PageInfo).description("The page of a connection."));
        }
        builder = builder.register(leaf_type(LeafType::Written).description("The records that a call for many records wrote."));
    }
    for object in objects {
        builder = object_types(builder, view, object, includes);
    }
    builder.finish().map_err(Error::internal)
}

/// The name of the type that an object's root field returns.
fn result_name(root: &Root) -> String {
    match root {
        Root::List(object) => page_name(object),
        Root::Connection(object) => connection_name(object),
        Root::ById(object) | Root::Create(object) | Root::Update(object) => pascal_case(object.name()),
        Root::Aggregate(_) => LeafType::Aggregate.name().to_owned(),
        Root::Groups(_) => GROUPS.to_owned(),
        Root::Upsert(object) => upserted_name(object),
        Root::Delete(_) => TypeRef::BOOLEAN.to_owned(),
        Root::UpdateMany(_) | Root::DeleteMany(_) => LeafType::Written.name().to_owned(),
        Root::Links(..) | Root::SchemaVersion => TypeRef::INT.to_owned(),
        Root::Action(..) | Root::Batch => Scalar::Json.name().to_owned(),
        Root::Objects => TypeRef::STRING.to_owned(),
        Root::Events => LeafType::Event.name().to_owned(),
    }
}

fn leaf(name: &str, ty: TypeRef) -> Field {
    Field::new(name, ty, |_| FieldFuture::Value(None::<FieldValue<'_>>))
}

fn leaf_type(ty: LeafType) -> ObjectType {
    ty.fields().iter().fold(ObjectType::new(ty.name()), |object, (name, input)| object.field(leaf(name, type_ref(input))))
}

/// The type of a page of groups. The keys of a group are no GraphQL names, so a group is JSON.
fn groups_type() -> ObjectType {
    let data = leaf("data", TypeRef::named_nn_list_nn(Scalar::Json.name()));
    let data = data.description("The groups: `{ group: { … }, count, sum_amount, … }`.");
    ObjectType::new(GROUPS).field(data).field(leaf("pagination", TypeRef::named_nn(LeafType::Pagination.name())))
}

/// The types of a connection and of its edges.
fn connection_types(object: &Object) -> [ObjectType; 2] {
    let connection = ObjectType::new(connection_name(object))
        .field(leaf("edges", TypeRef::named_nn_list_nn(edge_name(object))))
        .field(leaf("pageInfo", TypeRef::named_nn(LeafType::PageInfo.name())))
        .field(leaf("totalCount", TypeRef::named(TypeRef::INT)).description("The number of all matching records."));
    let edge = ObjectType::new(edge_name(object))
        .field(leaf("cursor", TypeRef::named_nn(TypeRef::STRING)))
        .field(leaf("node", TypeRef::named_nn(pascal_case(object.name()))));
    [connection, edge]
}

fn root_field(view: &View, root: &Root, ty: TypeRef) -> Field {
    let field = leaf(&root.name(), ty).description(root.description());
    root.arguments(view).iter().fold(field, |field, argument| field.argument(input_value(argument)))
}

/// The reference to an input type.
fn type_ref(input: &Input) -> TypeRef {
    match input {
        Input::List(inner) => TypeRef::List(Box::new(type_ref(inner))),
        Input::Required(inner) => TypeRef::NonNull(Box::new(type_ref(inner))),
        named => TypeRef::named(named.name()),
    }
}

fn input_value(field: &InputField) -> InputValue {
    let mut value = InputValue::new(&field.name, type_ref(&field.input));
    if let Some(default) = field.default {
        value = value.default_value(Value::Enum(Name::new(default)));
    }
    match &field.description {
        Some(description) => value.description(description),
        None => value,
    }
}

fn input_object(input: &Input) -> InputObject {
    input_object_with(input, |_| true)
}

/// An input object without those fields that lead to objects that `includes` does not accept.
fn input_object_with(input: &Input, includes: impl Fn(&str) -> bool) -> InputObject {
    let fields = input.fields().unwrap_or_default();
    let fields = fields.iter().filter(|field| field.input.object().is_none_or(|object| includes(object.name())));
    fields.fold(InputObject::new(input.name()), |object, field| object.field(input_value(field)))
}

/// The types that every schema contains.
fn shared_types(builder: SchemaBuilder, view: &View) -> SchemaBuilder {
    let fixed = |name: &str, values: &[&str]| Enum::new(name).items(values.iter().copied());
    let builder = builder
        .register(
            ScalarType::new(Scalar::DateTime.name())
                .description("ISO 8601: a date, a time, or a date with its time in UTC.")
                .validator(|value| matches!(value, Value::String(_))),
        )
        .register(ScalarType::new(Scalar::Json.name()).description("Any JSON value."))
        .register(fixed("FilterOperator", &Operator::names()))
        .register(fixed("SortDirection", &SORT_DIRECTIONS))
        .register(fixed("AggregateFunction", &AggregateFunction::names()))
        .register(input_object(&Input::Filter))
        .register(input_object(&Input::Sort))
        .register(leaf_type(LeafType::Pagination))
        .register(leaf_type(LeafType::Aggregate));
    let builder = Test::ALL.into_iter().fold(builder, |builder, test| builder.register(input_object(&Input::Test(test))));
    if !view.has_events {
        return builder;
    }
    let events = SubscriptionField::new(Root::Events.name(), TypeRef::named_nn(LeafType::Event.name()), |_| {
        SubscriptionFieldFuture::new(async { Ok(futures_util::stream::empty::<async_graphql::Result<FieldValue<'_>>>()) })
    });
    let events = Root::Events.arguments(view).iter().fold(events, |field, argument| field.argument(input_value(argument)));
    builder
        .register(leaf_type(LeafType::Event))
        .register(Subscription::new("Subscription").field(events.description(Root::Events.description())))
}

/// The types of one object: records, enums, pages, results, and input objects.
fn object_types(mut builder: SchemaBuilder, view: &View, object: &Arc<Object>, includes: &dyn Fn(&str) -> bool) -> SchemaBuilder {
    let ty = pascal_case(object.name());
    let mut record = ObjectType::new(&ty);
    if let Some(description) = object.definition.description.as_ref().or(object.definition.label.as_ref()) {
        record = record.description(description);
    }
    for column in &object.columns {
        let name = match enum_values(column) {
            Some(values) => {
                let name = enum_name(object, column);
                builder = builder.register(Enum::new(&name).items(values.iter().map(String::as_str)));
                name
            }
            None => scalar_of(column).name().to_owned(),
        };
        let shown = match column.kind {
            FieldType::MultiEnum => TypeRef::List(Box::new(TypeRef::named_nn(name))),
            _ => TypeRef::named(name),
        };
        let shown = if is_never_null(object, column) { TypeRef::NonNull(Box::new(shown)) } else { shown };
        let field = leaf(&column.name, shown);
        record = record.field(match description_of(object, column) {
            Some(description) => field.description(description),
            None => field,
        });
    }
    for relation in view.registry.relations_of(object.name()) {
        if !view.shows(&relation.related) || !includes(&relation.related) {
            continue;
        }
        let related = pascal_case(&relation.related);
        let shown = match relation.shape.is_single() {
            true => TypeRef::named(related),
            false => TypeRef::named_nn_list_nn(related),
        };
        record = record.field(leaf(&relation.key, shown));
    }
    let page = ObjectType::new(page_name(object))
        .field(leaf("data", TypeRef::named_nn_list_nn(&ty)))
        .field(leaf("pagination", TypeRef::named_nn(LeafType::Pagination.name())));
    let upserted = ObjectType::new(upserted_name(object))
        .field(leaf("created", TypeRef::named_nn(TypeRef::BOOLEAN)))
        .field(leaf("data", TypeRef::named(&ty)));
    builder = builder
        .register(record)
        .register(page)
        .register(upserted)
        .register(input_object(&Input::Create(view.to_create(object))))
        .register(input_object(&Input::Update(view.to_change(object))))
        .register(input_object_with(&Input::Where(view.related(object)), includes));
    if view.has_query(&Root::Connection(Arc::clone(object))) {
        for ty in connection_types(object) {
            builder = builder.register(ty);
        }
    }
    let is_one_of_many = |relation: &Relation| {
        // Tests for a to-many relation that leads to this object, from another object or from itself.
        !relation.shape.is_single() && relation.related == object.name()
    };
    let leads_here = |from: &Arc<Object>| view.registry.relations_of(from.name()).iter().any(is_one_of_many);
    if view.objects().filter(|from| includes(from.name())).any(leads_here) {
        builder = builder.register(input_object(&Input::WhereMany(view.related(object))));
    }
    if view.to_change(object).columns.iter().any(is_numeric) {
        builder = builder.register(input_object(&Input::Increment(view.to_change(object))));
    }
    // These are enums of columns that can be written but not read.
    let (to_create, to_change) = (view.to_create(object), view.to_change(object));
    let mut named: HashSet<&str> = object.columns.iter().map(|column| column.name.as_str()).collect();
    for column in to_create.columns.iter().chain(&to_change.columns).filter(|column| named.insert(&column.name)) {
        if let Some(values) = enum_values(column) {
            builder = builder.register(Enum::new(enum_name(object, column)).items(values.iter().map(String::as_str)));
        }
    }
    builder
}

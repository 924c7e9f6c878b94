//! Root fields: their names, their arguments, and their operations.

use std::sync::Arc;

use blockbase_app::schema::Object;
use blockbase_app::{LinkChange, ListParameter, aggregate_names as names};

use crate::view::View;
use crate::view::types::{Input, InputField, Scalar, is_numeric};

/// The operation behind a root field.
#[derive(Clone, Debug)]
pub(crate) enum Root {
    SchemaVersion,
    Objects,
    List(Arc<Object>),
    ById(Arc<Object>),
    Aggregate(Arc<Object>),
    Groups(Arc<Object>),
    /// A page of a list by cursors, as the Relay specification describes it.
    Connection(Arc<Object>),
    Create(Arc<Object>),
    Update(Arc<Object>),
    Upsert(Arc<Object>),
    Delete(Arc<Object>),
    UpdateMany(Arc<Object>),
    DeleteMany(Arc<Object>),
    /// Writes of several objects.
    Batch,
    /// A many_to_many relation. It is identified by the object and the relation key.
    Links(Arc<Object>, String, LinkChange),
    /// The names of a block and of its action.
    Action(String, String),
    /// The subscription.
    Events,
}

pub(crate) const SCHEMA_VERSION: &str = "svc_schema_version";
pub(crate) const OBJECTS: &str = "svc_objects";
pub(crate) const EVENTS: &str = "events";
pub(crate) const BATCH: &str = "batch";

/// The arguments of a connection for the number of its edges.
pub(crate) const FIRST: &str = "first";
pub(crate) const LAST: &str = "last";

impl Root {
    /// The queries of an object.
    pub(crate) fn queries(object: &Arc<Object>) -> [Root; 5] {
        let object = || Arc::clone(object);
        [
            Root::List(object()),
            Root::ById(object()),
            Root::Aggregate(object()),
            Root::Groups(object()),
            Root::Connection(object()),
        ]
    }

    /// The mutations of an object, without those of its links.
    pub(crate) fn mutations(object: &Arc<Object>) -> Vec<Root> {
        // Users are not changed as records.
        if object.is_users() {
            return Vec::new();
        }
        let object = || Arc::clone(object);
        vec![
            Root::Create(object()),
            Root::Update(object()),
            Root::Upsert(object()),
            Root::Delete(object()),
            Root::UpdateMany(object()),
            Root::DeleteMany(object()),
        ]
    }

    pub(crate) fn name(&self) -> String {
        match self {
            Root::SchemaVersion => SCHEMA_VERSION.to_owned(),
            Root::Objects => OBJECTS.to_owned(),
            Root::Events => EVENTS.to_owned(),
            Root::Batch => BATCH.to_owned(),
            Root::List(object) => object.name().to_owned(),
            Root::ById(object) => format!("{}_by_id", object.name()),
            Root::Aggregate(object) => format!("{}_aggregate", object.name()),
            Root::Groups(object) => format!("{}_groups", object.name()),
            Root::Connection(object) => format!("{}_connection", object.name()),
            Root::Create(object) => format!("create_{}", object.name()),
            Root::Update(object) => format!("update_{}", object.name()),
            Root::Upsert(object) => format!("upsert_{}", object.name()),
            Root::Delete(object) => format!("delete_{}", object.name()),
            Root::UpdateMany(object) => format!("update_{}_many", object.name()),
            Root::DeleteMany(object) => format!("delete_{}_many", object.name()),
            Root::Links(object, key, LinkChange::Add) => format!("link_{}_{key}", object.name()),
            Root::Links(object, key, LinkChange::Remove) => format!("unlink_{}_{key}", object.name()),
            Root::Action(block, action) => format!("{}_{action}", block.replace('-', "_")),
        }
    }

    pub(crate) fn description(&self) -> String {
        match self {
            Root::SchemaVersion => "The version of the schema. Each change adds one to it.".to_owned(),
            Root::Objects => "The names of the objects that the caller may know of.".to_owned(),
            Root::Events => "New events that the caller may read. `topics` are patterns. The default is `data.#`.".to_owned(),
            Root::List(object) => {
                format!("A page of records of `{}`, with search, filters, a condition and sorting.", object.name())
            }
            Root::ById(object) => format!("One record of `{}`, or null.", object.name()),
            Root::Aggregate(object) => format!("Computes a function over the records of `{}` that match.", object.name()),
            Root::Groups(object) => format!(
                "Computes functions such as `sum:amount` for groups of the records of `{}` that match. `groupBy` takes fields, and \
                dates with a period, such as `created_at:month`.",
                object.name()
            ),
            Root::Connection(object) => format!(
                "A page of records of `{}` by cursors: the `first` ones after `after`, or the `last` ones before `before`. In the order \
                of an index, a page costs the same at any depth. Insertions and deletions neither repeat nor skip other records.",
                object.name()
            ),
            Root::Create(object) => format!("Creates a record of `{}`.", object.name()),
            Root::Update(object) => format!("Changes the given fields of a record of `{}`.", object.name()),
            Root::Upsert(object) => {
                format!(
                    "Creates a record of `{}`, or updates the record that has the same values in the columns of \
                    `onConflict`.",
                    object.name()
                )
            }
            Root::Delete(object) => format!("Deletes a record of `{}`. Returns whether it existed.", object.name()),
            Root::UpdateMany(object) => {
                format!(
                    "Changes records of `{}` in the same way: all of them or none. `ids` names the records, or `where` chooses them. \
                    Unknown ids are skipped. With `dryRun` nothing changes, and the result shows what would change.",
                    object.name()
                )
            }
            Root::DeleteMany(object) => format!(
                "Deletes records of `{}`: all of them or none. `ids` names the records, or `where` chooses them. Unknown ids are \
                skipped. With `dryRun` nothing changes, and the result shows what would be deleted.",
                object.name()
            ),
            Root::Batch => "Runs several writes in one transaction: all of them or none. Each operation is `{ op, object, id, values, \
                onConflict, ids, relation, ifVersion }` as in REST, and so is its result. `{ \"$ref\": \"0.id\" }` is a field of an \
                earlier result. Send the operations as a variable: `$ref` is not a name of GraphQL."
                .to_owned(),
            Root::Links(object, key, LinkChange::Add) => {
                format!("Links a record of `{}` under `{key}`. Returns the number of new links.", object.name())
            }
            Root::Links(object, key, LinkChange::Remove) => {
                format!("Removes links of a record of `{}` under `{key}`. Returns their number.", object.name())
            }
            Root::Action(block, action) => format!("The action `{action}` of the block `{block}`."),
        }
    }

    pub(crate) fn arguments(&self, view: &View) -> Vec<InputField> {
        let field = |name: &str, input: Input| InputField { name: name.to_owned(), input, default: None, description: None };
        let selection = |object: &Arc<Object>| {
            [
                field("filter", Input::Filter.required().list()),
                field(ListParameter::Where.name(), Input::Where(view.related(object))),
                field(ListParameter::Search.name(), Input::Scalar(Scalar::String)),
            ]
        };
        let id = || field("id", Input::Scalar(Scalar::Id).required());
        let ids = || field("ids", Input::Scalar(Scalar::Id).required().list().required());
        let changes = |object: &Arc<Object>| {
            let object = view.to_change(object);
            let input = Input::Update(Arc::clone(&object));
            match object.columns.iter().any(is_numeric) {
                true => vec![field("input", input), field("increment", Input::Increment(object))],
                false => vec![field("input", input.required())],
            }
        };
        let chosen = |object: &Arc<Object>| {
            vec![
                field("ids", Input::Scalar(Scalar::Id).required().list()),
                field(ListParameter::Where.name(), Input::Where(view.related(object))),
                field("dryRun", Input::Scalar(Scalar::Boolean)),
            ]
        };
        match self {
            Root::SchemaVersion | Root::Objects => Vec::new(),
            Root::Events => vec![field("topics", Input::Scalar(Scalar::String).required().list())],
            Root::List(object) => {
                let mut arguments = Vec::from(selection(object));
                arguments.push(field("sort", Input::Sort.required().list()));
                let window = ListParameter::of_window();
                arguments.extend(window.map(|parameter| field(parameter.name(), Input::Scalar(Scalar::Int))));
                arguments
            }
            Root::Connection(object) => {
                let (number, cursor) = (|| Input::Scalar(Scalar::Int), || Input::Scalar(Scalar::String));
                let mut arguments = Vec::from(selection(object));
                arguments.push(field("sort", Input::Sort.required().list()));
                arguments.push(field(FIRST, number()));
                arguments.push(field(ListParameter::After.name(), cursor()));
                arguments.push(field(LAST, number()));
                arguments.push(field(ListParameter::Before.name(), cursor()));
                arguments
            }
            Root::Aggregate(object) => {
                let mut arguments =
                    vec![field("fn", Input::aggregate_function().required()), field("field", Input::Scalar(Scalar::String))];
                arguments.extend(selection(object));
                arguments
            }
            Root::Groups(object) => {
                let texts = || Input::Scalar(Scalar::String).required().list();
                let mut arguments = vec![
                    field(names::FUNCTIONS, texts().required()),
                    field(names::GROUP_BY, texts()),
                    field(names::HAVING, Input::Scalar(Scalar::Json)),
                    field(names::ZONE, Input::Scalar(Scalar::String)),
                ];
                arguments.extend(selection(object));
                arguments.push(field("sort", Input::Sort.required().list()));
                let window = ListParameter::of_window();
                arguments.extend(window.map(|parameter| field(parameter.name(), Input::Scalar(Scalar::Int))));
                arguments
            }
            Root::ById(_) | Root::Delete(_) => vec![id()],
            Root::Create(object) => vec![field("input", Input::Create(view.to_create(object)).required())],
            Root::Update(object) => [vec![id()], changes(object)].concat(),
            Root::UpdateMany(object) => [chosen(object), changes(object)].concat(),
            Root::DeleteMany(object) => chosen(object),
            Root::Upsert(object) => vec![
                field("input", Input::Create(view.to_create(object)).required()),
                field("onConflict", Input::Scalar(Scalar::String).required().list().required()),
            ],
            Root::Batch => vec![field("operations", Input::Scalar(Scalar::Json).required().list().required())],
            Root::Links(..) => vec![id(), ids()],
            Root::Action(..) => vec![field("input", Input::Scalar(Scalar::Json))],
        }
    }
}

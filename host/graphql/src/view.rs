//! The part of one version of the schema that a group of callers sees.
//!
//! A view contains no names that the caller may not know, so validation and introspection cannot reveal them. Callers who see the
//! same things share a view, with its schema and the documents that passed validation. [`kept_schemas`] has the schemas.

pub(crate) mod documents;
mod kept_schemas;
pub(crate) mod leaves;
pub(crate) mod root;
pub(crate) mod schema;
pub(crate) mod types;
pub(crate) mod views;

use std::collections::HashMap;
use std::sync::{Arc, OnceLock};

use blockbase_app::schema::{Object, Registry, RelationShape, pascal_case};
use blockbase_app::{LinkChange, Visible};

use crate::view::documents::Documents;
use crate::view::leaves::LeafType;
use crate::view::root::{BATCH, EVENTS, OBJECTS, Root, SCHEMA_VERSION};
use crate::view::types::{Input, Related, Scalar, Test, VisibleObjects, enum_values};

/// One view: see the description of this module.
pub(crate) struct View {
    /// The registry with the columns that the callers may read.
    pub(crate) registry: Arc<Registry>,
    pub(crate) blocks_version: i64,
    visible: Visible,
    /// The names of the visible objects, in alphabetical order.
    names: Vec<String>,
    shown: Arc<VisibleObjects>,
    /// The actions, as roots of mutations, with their descriptions.
    actions: Vec<(Root, String)>,
    pub(crate) has_events: bool,
    /// The size of the complete schema.
    schema_size: OnceLock<usize>,
    /// The objects, keyed by the names of their types.
    by_type: OnceLock<HashMap<String, Arc<Object>>>,
    pub(crate) documents: Documents,
}

impl View {
    pub(crate) fn new(visible: Visible, has_events: bool) -> View {
        let names: Vec<String> = visible.objects.iter().map(|(name, _)| name.clone()).collect();
        let actions = visible.actions.iter().map(|(block, place)| {
            let action = &block.manifest.actions[*place];
            (Root::Action(block.name().to_owned(), action.name.clone()), action.description.clone())
        });
        View {
            shown: Arc::new(VisibleObjects { registry: Arc::clone(&visible.registry), names: names.iter().cloned().collect() }),
            registry: Arc::clone(&visible.registry),
            blocks_version: visible.blocks_version,
            names,
            actions: actions.collect(),
            visible,
            has_events,
            schema_size: OnceLock::new(),
            by_type: OnceLock::new(),
            documents: Documents::default(),
        }
    }

    /// Whether both views show the same things. Only views of one version are compared.
    pub(crate) fn is_as(&self, other: &View) -> bool {
        let action = |actions: &[(Root, String)]| actions.iter().map(|(root, _)| root.name()).collect::<Vec<_>>();
        self.names == other.names
            && action(&self.actions) == action(&other.actions)
            && self.visible.limits() == other.visible.limits()
    }

    /// An object with the columns that the callers can set in a new record.
    pub(crate) fn to_create(&self, object: &Arc<Object>) -> Arc<Object> {
        Arc::clone(self.visible.to_create(object.name()).unwrap_or(object))
    }

    /// An object with the columns that the callers can change in a record.
    pub(crate) fn to_change(&self, object: &Arc<Object>) -> Arc<Object> {
        Arc::clone(self.visible.to_change(object.name()).unwrap_or(object))
    }

    pub(crate) fn objects(&self) -> impl Iterator<Item = &Arc<Object>> {
        self.names.iter().filter_map(|name| self.registry.object(name))
    }

    pub(crate) fn names(&self) -> &[String] {
        &self.names
    }

    pub(crate) fn shows(&self, object: &str) -> bool {
        self.shown.names.contains(object)
    }

    /// An object, with the visible objects that its conditions can lead to.
    pub(crate) fn related(&self, object: &Arc<Object>) -> Related {
        Related { object: Arc::clone(object), shown: Arc::clone(&self.shown) }
    }

    pub(crate) fn actions(&self) -> impl Iterator<Item = (&Root, &str)> {
        self.actions.iter().map(|(root, description)| (root, description.as_str()))
    }

    fn object(&self, name: &str) -> Option<&Arc<Object>> {
        self.registry.object(name).filter(|_| self.shows(name))
    }

    /// An object whose records can be written. This is not possible for users.
    fn written(&self, name: &str) -> Option<&Arc<Object>> {
        self.object(name).filter(|object| !object.is_users())
    }

    /// The query with this name. Names that are reserved for an object never clash, so a name leads to one query.
    pub(crate) fn query(&self, name: &str) -> Option<Root> {
        match name {
            SCHEMA_VERSION => return Some(Root::SchemaVersion),
            OBJECTS => return Some(Root::Objects),
            _ => {}
        }
        if let Some(object) = self.object(name) {
            return Some(Root::List(Arc::clone(object)));
        }
        let of = |suffix: &str, root: fn(Arc<Object>) -> Root| {
            name.strip_suffix(suffix).and_then(|name| self.object(name)).cloned().map(root)
        };
        // `<object>_groups` and `<object>_connection` give way to the list of an object with this name.
        of("_by_id", Root::ById)
            .or_else(|| of("_aggregate", Root::Aggregate))
            .or_else(|| of("_groups", Root::Groups))
            .or_else(|| of("_connection", Root::Connection).filter(|_| self.has_connections()))
    }

    /// Whether the name that the Relay specification requires for the pages of connections is free. An object may have had it before.
    pub(crate) fn has_connections(&self) -> bool {
        self.object_of_type(LeafType::PageInfo.name()).is_none()
    }

    /// Whether the query with this root's name is this root, and not another one with the same name.
    pub(crate) fn has_query(&self, root: &Root) -> bool {
        match root {
            Root::Groups(_) => matches!(self.query(&root.name()), Some(Root::Groups(_))),
            Root::Connection(_) => matches!(self.query(&root.name()), Some(Root::Connection(_))),
            _ => true,
        }
    }

    /// Whether the view shows an object whose records can be written.
    pub(crate) fn has_batch(&self) -> bool {
        self.objects().any(|object| !object.is_users())
    }

    /// The mutation with this name.
    pub(crate) fn mutation(&self, name: &str) -> Option<Root> {
        // The names of all other mutations have an underscore.
        if name == BATCH {
            return self.has_batch().then_some(Root::Batch);
        }
        let of = |prefix: &str, root: fn(Arc<Object>) -> Root| {
            name.strip_prefix(prefix).and_then(|name| self.written(name)).cloned().map(root)
        };
        let found = of("create_", Root::Create)
            .or_else(|| of("update_", Root::Update))
            .or_else(|| of("upsert_", Root::Upsert))
            .or_else(|| of("delete_", Root::Delete))
            .or_else(|| self.links(name, "link_", LinkChange::Add))
            .or_else(|| self.links(name, "unlink_", LinkChange::Remove));
        let found = found.or_else(|| self.actions.iter().map(|(root, _)| root).find(|root| root.name() == name).cloned());
        // `update_<object>_many` and `delete_<object>_many` come last. If an object is called `task_many`, or an action has the same
        // name, the name means their mutation.
        let of_many = |prefix: &str, root: fn(Arc<Object>) -> Root| {
            let object = name.strip_prefix(prefix)?.strip_suffix("_many")?;
            self.written(object).cloned().map(root)
        };
        found.or_else(|| of_many("update_", Root::UpdateMany)).or_else(|| of_many("delete_", Root::DeleteMany))
    }

    /// Whether the mutation with this root's name is this root, and not another one with the same name.
    pub(crate) fn has_mutation(&self, root: &Root) -> bool {
        match root {
            Root::UpdateMany(_) => matches!(self.mutation(&root.name()), Some(Root::UpdateMany(_))),
            Root::DeleteMany(_) => matches!(self.mutation(&root.name()), Some(Root::DeleteMany(_))),
            _ => true,
        }
    }

    /// The relation of `link_<object>_<relation>`. Both names may have underscores, so this tries each place where the object's
    /// name can end.
    fn links(&self, name: &str, prefix: &str, change: LinkChange) -> Option<Root> {
        let rest = name.strip_prefix(prefix)?;
        rest.match_indices('_').find_map(|(place, _)| {
            let object = self.written(&rest[..place])?;
            let key = &rest[place + 1..];
            let relation = self.registry.relation(object.name(), key)?;
            (matches!(relation.shape, RelationShape::Linked { .. }) && self.shows(&relation.related))
                .then(|| Root::Links(Arc::clone(object), key.to_owned(), change))
        })
    }

    pub(crate) fn subscription(&self, name: &str) -> Option<Root> {
        (name == EVENTS && self.has_events).then_some(Root::Events)
    }

    fn object_of_type(&self, name: &str) -> Option<&Arc<Object>> {
        let by_type = || self.objects().map(|object| (pascal_case(object.name()), Arc::clone(object))).collect::<HashMap<_, _>>();
        self.by_type.get_or_init(by_type).get(name)
    }

    /// The object to which a type belongs. The type's name may have any suffix.
    pub(crate) fn object_near(&self, type_name: &str) -> Option<&Arc<Object>> {
        let suffixes = ["CreateInput", "UpdateInput", "IncrementInput"];
        let before = type_name.split('_').next().unwrap_or(type_name);
        self.object_of_type(before)
            .or_else(|| suffixes.iter().find_map(|suffix| self.object_of_type(before.strip_suffix(suffix)?)))
    }

    /// The input type with this name, as a variable declares it.
    pub(crate) fn input(&self, name: &str) -> Option<Input> {
        let scalars = [Scalar::String, Scalar::Int, Scalar::Float, Scalar::Boolean, Scalar::Id, Scalar::DateTime, Scalar::Json];
        if let Some(scalar) = scalars.into_iter().find(|scalar| scalar.name() == name) {
            return Some(Input::Scalar(scalar));
        }
        let fixed = [Input::filter_operator(), Input::sort_direction(), Input::aggregate_function(), Input::Filter, Input::Sort];
        if let Some(input) = fixed.into_iter().find(|input| input.name() == name) {
            return Some(input);
        }
        if let Some(test) = Test::ALL.into_iter().map(Input::Test).find(|input| input.name() == name) {
            return Some(test);
        }
        let condition = |suffix: &str, input: fn(Related) -> Input| {
            Some(input(self.related(self.object_of_type(name.strip_suffix(suffix)?)?)))
        };
        if let Some(input) = condition("_Where", Input::Where).or_else(|| condition("_WhereMany", Input::WhereMany)) {
            return Some(input);
        }
        if let Some((ty, column)) = name.split_once('_') {
            let object = self.object_of_type(ty)?;
            let versions = [Arc::clone(object), self.to_create(object), self.to_change(object)];
            let values = versions.iter().find_map(|object| enum_values(object.column(column)?))?;
            return Some(Input::Enum(name.to_owned(), values.to_vec()));
        }
        let of = |suffix: &str| name.strip_suffix(suffix).and_then(|ty| self.object_of_type(ty));
        of("CreateInput")
            .map(|object| Input::Create(self.to_create(object)))
            .or_else(|| of("UpdateInput").map(|object| Input::Update(self.to_change(object))))
            .or_else(|| of("IncrementInput").map(|object| Input::Increment(self.to_change(object))))
    }
}

//! The fields that a grant lists, and the view of an object for callers who may read only some of its fields.
//!
//! The fields of a grant apply only to the rows of the same grant: a cell can be read if one grant both includes its row and
//! lists its field. A field that no grant lists is not known at all. So a reader has their own version of the object
//! ([`Seen`](super::Seen)), without the unknown columns. In that version, a cell is null unless a grant includes the row and lists
//! the field. Reads, filters, sorts and searches all run on that version.

use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::Arc;

use blockbase_schema::{Action, Column, Error, Object, Registry, Relation, RelationShape, Result, system};
use parking_lot::Mutex;
use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::de::{MapAccess, SeqAccess, Visitor};
use serde::{Deserialize, Deserializer, Serialize, Serializer};

use super::clause::{number_of, number_of_column};
use super::of_version::OfVersion;
use crate::condition::LinkKey;

/// A list of fields: either some fields, or all fields except some.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum FieldList {
    Only(BTreeSet<String>),
    /// All fields except these. If the set is empty, all fields.
    Except(BTreeSet<String>),
}

impl FieldList {
    pub const ALL: FieldList = FieldList::Except(BTreeSet::new());

    pub fn is_all(&self) -> bool {
        matches!(self, FieldList::Except(names) if names.is_empty())
    }

    pub fn lists(&self, name: &str) -> bool {
        match self {
            FieldList::Only(names) => names.contains(name),
            FieldList::Except(names) => !names.contains(name),
        }
    }

    fn names(&self) -> &BTreeSet<String> {
        match self {
            FieldList::Only(names) | FieldList::Except(names) => names,
        }
    }

    /// The fields that both lists contain.
    pub(super) fn and(&self, other: &FieldList) -> FieldList {
        use FieldList::{Except, Only};
        match (self, other) {
            (Only(one), Only(two)) => Only(one.intersection(two).cloned().collect()),
            (Only(one), Except(two)) | (Except(two), Only(one)) => Only(one.difference(two).cloned().collect()),
            (Except(one), Except(two)) => Except(one.union(two).cloned().collect()),
        }
    }

    /// Whether this list contains every field of `other`, including fields that the object gets later.
    pub(super) fn covers(&self, other: &FieldList) -> bool {
        use FieldList::{Except, Only};
        match (self, other) {
            (Only(one), Only(two)) => two.is_subset(one),
            (Only(_), Except(_)) => false,
            (Except(one), Only(two)) => one.is_disjoint(two),
            (Except(one), Except(two)) => one.is_subset(two),
        }
    }

    /// The same list with each name replaced.
    ///
    /// # Errors
    /// The name that has no replacement.
    fn renamed(&self, rename: impl Fn(&str) -> Option<String>) -> std::result::Result<FieldList, &str> {
        let names = self.names().iter().map(|name| rename(name).ok_or(name.as_str()));
        let names = names.collect::<std::result::Result<BTreeSet<String>, &str>>()?;
        Ok(match self {
            FieldList::Only(_) => FieldList::Only(names),
            FieldList::Except(_) => FieldList::Except(names),
        })
    }
}

impl Serialize for FieldList {
    fn serialize<S: Serializer>(&self, serializer: S) -> std::result::Result<S::Ok, S::Error> {
        match self {
            FieldList::Only(names) => names.serialize(serializer),
            FieldList::Except(names) => BTreeMap::from([("except", names)]).serialize(serializer),
        }
    }
}

/// A set of names.
struct Names(BTreeSet<String>);

impl<'de> Deserialize<'de> for Names {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> std::result::Result<Names, D::Error> {
        let list = Vec::<String>::deserialize(deserializer)?;
        let mut names = BTreeSet::new();
        match list.into_iter().find(|name| !names.insert(name.clone())) {
            Some(twice) => Err(serde::de::Error::custom(format!("the field `{twice}` is listed twice"))),
            None => Ok(Names(names)),
        }
    }
}

impl<'de> Deserialize<'de> for FieldList {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> std::result::Result<FieldList, D::Error> {
        struct ListVisitor;
        impl<'de> Visitor<'de> for ListVisitor {
            type Value = FieldList;

            fn expecting(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                formatter.write_str("a list of field names, or `{ \"except\": [names] }`")
            }

            fn visit_seq<A: SeqAccess<'de>>(self, list: A) -> std::result::Result<FieldList, A::Error> {
                Names::deserialize(serde::de::value::SeqAccessDeserializer::new(list)).map(|Names(names)| FieldList::Only(names))
            }

            fn visit_map<A: MapAccess<'de>>(self, map: A) -> std::result::Result<FieldList, A::Error> {
                #[derive(Deserialize)]
                #[serde(deny_unknown_fields)]
                struct Except {
                    except: Names,
                }
                let Except { except: Names(names) } = Except::deserialize(serde::de::value::MapAccessDeserializer::new(map))?;
                Ok(FieldList::Except(names))
            }
        }
        deserializer.deserialize_any(ListVisitor)
    }
}

impl JsonSchema for FieldList {
    fn inline_schema() -> bool {
        true
    }

    fn schema_name() -> Cow<'static, str> {
        "FieldList".into()
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        let names = serde_json::json!({ "type": "array", "items": { "type": "string" }, "uniqueItems": true });
        json_schema!({
            "oneOf": [
                names,
                {
                    "type": "object",
                    "required": ["except"],
                    "properties": { "except": names },
                    "additionalProperties": false,
                },
            ],
        })
    }
}

/// The fields that a grant allows to read and to write. A list that is left out means all fields.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(inline)]
pub struct Fields {
    /// Fields that can be read: names of columns and keys of many_to_many relations. `id` can always be read.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub read: Option<FieldList>,
    /// Fields that can be written.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub write: Option<FieldList>,
}

impl Fields {
    /// Whether the lists contain all fields.
    pub fn are_all(&self) -> bool {
        [&self.read, &self.write].into_iter().flatten().all(FieldList::is_all)
    }

    /// The same lists with numbers of the catalogue instead of names.
    ///
    /// # Errors
    /// `invalid_request` for a name that is neither a column of `object` nor the key of a many_to_many relation.
    pub fn numbered(&self, registry: &Registry, object: &Object) -> Result<Fields> {
        let numbers = Numbers::of(registry, object);
        let number =
            |name: &str| numbers.of_fields(object).find(|(known, _)| *known == name).map(|(_, number)| number.to_owned());
        let numbered = |list: &FieldList| {
            list.renamed(number).map_err(|name| {
                let message = format!("`{}` has neither a field nor a many_to_many relation {name:?}.", object.name());
                Error::invalid_request(message)
            })
        };
        Ok(Fields { read: self.read.as_ref().map(numbered).transpose()?, write: self.write.as_ref().map(numbered).transpose()? })
    }

    /// The same lists with names instead of numbers of the catalogue. `None` if one of the fields no longer exists.
    pub fn named(&self, registry: &Registry, object: &Object) -> Option<Fields> {
        let numbers = Numbers::of(registry, object);
        let name = |number: &str| numbers.of_fields(object).find(|(_, known)| *known == number).map(|(name, _)| name.to_owned());
        let named = |list: &Option<FieldList>| list.as_ref().map(|list| list.renamed(name)).transpose().ok();
        Some(Fields { read: named(&self.read)?, write: named(&self.write)? })
    }

    /// The same fields without `except`: each list then has the names of its fields. Only for lists with names.
    pub fn without_exceptions(&self, registry: &Registry, object: &Object) -> Fields {
        let numbers = Numbers::of(registry, object);
        let only = |list: &Option<FieldList>| {
            let list = list.as_ref()?;
            let names = numbers.of_fields(object).map(|(name, _)| name).filter(|name| list.lists(name));
            Some(FieldList::Only(names.map(str::to_owned).collect()))
        };
        Fields { read: only(&self.read), write: only(&self.write) }
    }

    /// The same lists without any field. A list that is left out stays so.
    pub fn emptied(&self) -> Fields {
        let empty = |list: &Option<FieldList>| list.as_ref().map(|_| FieldList::Only(BTreeSet::new()));
        Fields { read: empty(&self.read), write: empty(&self.write) }
    }

    /// Whether one of the lists names the column. Only for stored lists.
    pub fn name(&self, object: &Object, column: &Column) -> bool {
        let token = number_of_column(object, column);
        !column.is_system && [&self.read, &self.write].into_iter().flatten().any(|list| list.names().contains(&token))
    }
}

/// The intersection of several lists. They come from grants that all have to allow a field. Without any list, the intersection
/// has all fields.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct Lists(Vec<Arc<FieldList>>);

impl Lists {
    const ALL: Lists = Lists(Vec::new());

    fn of(list: Option<&FieldList>) -> Lists {
        Lists(list.filter(|list| !list.is_all()).map(|list| Arc::new(list.clone())).into_iter().collect())
    }

    pub(super) fn is_all(&self) -> bool {
        self.0.is_empty()
    }

    pub(super) fn list(&self, number: &str) -> bool {
        self.0.iter().all(|list| list.lists(number))
    }

    fn and(&self, other: &Lists) -> Lists {
        let mut lists = self.0.clone();
        lists.extend(other.0.iter().filter(|list| !self.0.contains(list)).cloned());
        Lists(lists)
    }

    /// The intersection as one list. `None` for all fields.
    fn one(&self) -> Option<FieldList> {
        self.0.iter().map(|list| FieldList::clone(list)).reduce(|one, other| one.and(&other))
    }

    fn cover(&self, other: &Lists) -> bool {
        match (self.one(), other.one()) {
            (None, _) => true,
            (Some(_), None) => false,
            (Some(one), Some(other)) => one.covers(&other),
        }
    }

    /// Whether every field that the lists name exists.
    fn have_meaning(&self, numbers: &Numbers) -> bool {
        self.0.iter().flat_map(|list| list.names()).all(|number| numbers.have(number))
    }
}

/// The fields that one grant allows to read and to write, by numbers of the catalogue.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Listed {
    pub(super) read: Lists,
    pub(super) write: Lists,
}

impl Listed {
    pub(super) const ALL: Listed = Listed { read: Lists::ALL, write: Lists::ALL };

    pub(super) fn of(fields: Option<&Fields>) -> Listed {
        match fields {
            None => Listed::ALL,
            Some(fields) => Listed { read: Lists::of(fields.read.as_ref()), write: Lists::of(fields.write.as_ref()) },
        }
    }

    /// The lists that matter to an action. Every other list is replaced by a list of all fields.
    pub(super) fn on(&self, action: Action) -> Listed {
        let (reads, writes) = match action {
            Action::Read => (true, false),
            Action::Create | Action::Update => (false, true),
            Action::Delete => (false, false),
            Action::Manage => (true, true),
        };
        let lists = |lists: &Lists, counts| if counts { lists.clone() } else { Lists::ALL };
        Listed { read: lists(&self.read, reads), write: lists(&self.write, writes) }
    }

    pub(super) fn are_all(&self) -> bool {
        self.read.is_all() && self.write.is_all()
    }

    pub(super) fn and(&self, other: &Listed) -> Listed {
        Listed { read: self.read.and(&other.read), write: self.write.and(&other.write) }
    }

    pub(super) fn covers(&self, other: &Listed) -> bool {
        self.read.cover(&other.read) && self.write.cover(&other.write)
    }

    /// Whether every field that the lists name exists. If a list names a field that no longer exists, it counts as empty, because
    /// its purpose is unknown.
    pub(super) fn has_meaning(&self, numbers: &Numbers) -> bool {
        self.read.have_meaning(numbers) && self.write.have_meaning(numbers)
    }

    /// The lists in the form of a grant. `None` for all fields.
    pub(super) fn fields(&self) -> Option<Fields> {
        (!self.are_all()).then(|| Fields { read: self.read.one(), write: self.write.one() })
    }
}

fn link_key(relation: &Relation) -> Option<LinkKey> {
    match relation.shape {
        RelationShape::Linked { relationship_id, is_source } => Some((relationship_id, is_source)),
        RelationShape::Forward { .. } | RelationShape::Reverse { .. } => None,
    }
}

/// The numbers that stand for the fields of an object: its columns and its many_to_many relations.
#[derive(Debug)]
pub(super) struct Numbers {
    /// The numbers of the columns, in the order of the columns.
    pub(super) columns: Vec<String>,
    pub(super) links: Vec<Link>,
}

#[derive(Debug)]
pub(super) struct Link {
    pub(super) key: LinkKey,
    /// The key of the relation. Lists use it as the name.
    name: String,
    pub(super) number: String,
}

impl Numbers {
    fn of(registry: &Registry, object: &Object) -> Numbers {
        let link = |relation: &Relation| {
            Some(Link { key: link_key(relation)?, name: relation.key.clone(), number: number_of(relation) })
        };
        Numbers {
            columns: object.columns.iter().map(|column| number_of_column(object, column)).collect(),
            links: registry.relations_of(object.name()).iter().filter_map(link).collect(),
        }
    }

    /// The names that lists can contain, each with its number.
    fn of_fields<'a>(&'a self, object: &'a Object) -> impl Iterator<Item = (&'a str, &'a str)> {
        let columns = object.columns.iter().zip(&self.columns).map(|(column, number)| (column.name.as_str(), number.as_str()));
        columns.chain(self.links.iter().map(|link| (link.name.as_str(), link.number.as_str())))
    }

    fn have(&self, number: &str) -> bool {
        self.columns.iter().chain(self.links.iter().map(|link| &link.number)).any(|known| known == number)
    }
}

/// How much a caller knows of a column.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
enum Knowledge {
    Nothing,
    /// The caller may read the column only in some rows.
    Some,
    Whole,
}

/// The fields that at least one of several grants lists.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Known {
    columns: Vec<Knowledge>,
    /// The many_to_many relations that are not known.
    hidden_links: BTreeSet<LinkKey>,
}

impl Known {
    pub(super) fn of(object: &Object, numbers: &Numbers, lists: &[&Lists]) -> Known {
        let knowledge = |(column, number): (&Column, &String)| match lists.iter().filter(|list| list.list(number)).count() {
            _ if column.name == system::ID => Knowledge::Whole,
            0 => Knowledge::Nothing,
            listed if listed == lists.len() => Knowledge::Whole,
            _ => Knowledge::Some,
        };
        let is_hidden = |number: &str| !lists.iter().any(|list| list.list(number));
        Known {
            columns: object.columns.iter().zip(&numbers.columns).map(knowledge).collect(),
            hidden_links: numbers.links.iter().filter(|link| is_hidden(&link.number)).map(|link| link.key).collect(),
        }
    }

    fn knowledge(&self, object: &Object, column: &str) -> Knowledge {
        let known = object.column_index(column).and_then(|place| self.columns.get(place));
        known.copied().unwrap_or(Knowledge::Nothing)
    }

    /// Whether a column of the object is known.
    pub fn has(&self, object: &Object, column: &str) -> bool {
        self.knowledge(object, column) != Knowledge::Nothing
    }

    /// Whether a relation of the object is known. Only many_to_many relations can be hidden by themselves.
    pub fn knows(&self, relation: &Relation) -> bool {
        link_key(relation).is_none_or(|key| !self.hidden_links.contains(&key))
    }
}

/// The known fields of those objects of which a caller does not know every field. The key is the object's number.
pub type KnownObjects = BTreeMap<i64, Known>;

/// Reduced objects and registries for callers who know only some fields. Callers who know the same fields share the same reduced
/// objects and registries.
#[derive(Debug, Default)]
pub struct Shapes(Mutex<OfVersion<CachedShapes>>);

#[derive(Debug, Default)]
struct CachedShapes {
    numbers: HashMap<i64, Arc<Numbers>>,
    /// The objects, keyed by object number, known fields, and whether the access is for reading (true) or for writing (false).
    objects: HashMap<(i64, Known, bool), Arc<Object>>,
    registries: Vec<(KnownObjects, Arc<Registry>)>,
}

/// The maximum number of registries that are kept. Sets of roles that know the same fields share one.
const REGISTRIES_KEPT_MAX: usize = 64;
/// The maximum number of objects that are kept.
const OBJECTS_KEPT_MAX: usize = 4096;

impl Shapes {
    pub(super) fn numbers(&self, registry: &Registry, object: &Object) -> Arc<Numbers> {
        let mut kept = self.0.lock();
        let Some(kept) = kept.of(registry.version) else { return Arc::new(Numbers::of(registry, object)) };
        Arc::clone(kept.numbers.entry(object.id).or_insert_with(|| Arc::new(Numbers::of(registry, object))))
    }

    /// The object for a reader who knows these fields.
    pub(super) fn to_read(&self, registry: &Registry, object: &Object, known: &Known) -> Arc<Object> {
        let is_whole = |column: &Column| known.knowledge(object, &column.name) == Knowledge::Whole;
        let reduce = || object.to_read(|column| known.has(object, &column.name), is_whole);
        self.object(registry.version, (object.id, known.clone(), true), reduce)
    }

    /// The object for a writer who may name these fields.
    pub fn to_write(&self, registry: &Registry, object: &Object, known: &Known) -> Arc<Object> {
        let reduce = || object.to_write(|column| column.is_system || known.has(object, &column.name));
        self.object(registry.version, (object.id, known.clone(), false), reduce)
    }

    fn object(&self, version: i64, key: (i64, Known, bool), reduce: impl FnOnce() -> Object) -> Arc<Object> {
        let mut kept = self.0.lock();
        let Some(kept) = kept.of(version) else { return Arc::new(reduce()) };
        if kept.objects.len() >= OBJECTS_KEPT_MAX {
            kept.objects.clear();
        }
        Arc::clone(kept.objects.entry(key).or_insert_with(|| Arc::new(reduce())))
    }

    /// The registry for a reader who knows these fields.
    pub fn registry(&self, registry: &Arc<Registry>, known: &KnownObjects) -> Arc<Registry> {
        if known.is_empty() {
            return Arc::clone(registry);
        }
        if let Some(kept) = self.0.lock().of(registry.version)
            && let Some(place) = kept.registries.iter().position(|(of, _)| of == known)
        {
            let used = kept.registries.remove(place);
            let found = Arc::clone(&used.1);
            kept.registries.push(used);
            return found;
        }
        let objects: Vec<Arc<Object>> = registry
            .objects()
            .chain(registry.users())
            .filter_map(|object| Some(self.to_read(registry, object, known.get(&object.id)?)))
            .collect();
        let is_known = |object: &str, relation: &Relation| {
            let known = registry.object(object).and_then(|object| known.get(&object.id));
            known.is_none_or(|known| known.knows(relation))
        };
        let reduced = Arc::new(registry.reduced(objects, is_known));
        if let Some(kept) = self.0.lock().of(registry.version) {
            if kept.registries.len() >= REGISTRIES_KEPT_MAX {
                kept.registries.remove(0);
            }
            kept.registries.push((known.clone(), Arc::clone(&reduced)));
        }
        reduced
    }
}

//! The fields that a grant lists, and what somebody knows of an object who reads only some of its fields.
//!
//! Each grant keeps its rows and its fields together: a cell can be read if one grant reaches its row and lists its field. A field that no
//! grant lists is not known at all. So a reader has their own version of the object, without the unknown columns, and in its rows a cell
//! is null where no grant that lists its field reaches the row ([`Seen`]). Whatever is asked of the object is asked of that version.

use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::Arc;

use blockbase_schema::{Column, Error, Object, Registry, Relation, RelationShape, Result, system};
use parking_lot::Mutex;
use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::de::{MapAccess, SeqAccess, Visitor};
use serde::{Deserialize, Deserializer, Serialize, Serializer};

use super::clause::{number_of, number_of_column};
use super::{Action, Scope};
use crate::condition::Condition;

/// A list of fields: some, or all except some.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum FieldList {
    Only(BTreeSet<String>),
    /// Of nothing, it is all of them.
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

    /// The fields that both list.
    pub(super) fn and(&self, other: &FieldList) -> FieldList {
        use FieldList::{Except, Only};
        match (self, other) {
            (Only(one), Only(two)) => Only(one.intersection(two).cloned().collect()),
            (Only(one), Except(two)) | (Except(two), Only(one)) => Only(one.difference(two).cloned().collect()),
            (Except(one), Except(two)) => Except(one.union(two).cloned().collect()),
        }
    }

    /// Whether it lists every field that `other` lists, also of those that an object gets later.
    pub(super) fn covers(&self, other: &FieldList) -> bool {
        use FieldList::{Except, Only};
        match (self, other) {
            (Only(one), Only(two)) => two.is_subset(one),
            (Only(_), Except(_)) => false,
            (Except(one), Only(two)) => one.is_disjoint(two),
            (Except(one), Except(two)) => one.is_subset(two),
        }
    }

    /// The same with each name replaced; `None` if one has no replacement.
    fn renamed(&self, rename: impl Fn(&str) -> Option<String>) -> Option<FieldList> {
        let names = self.names().iter().map(|name| rename(name)).collect::<Option<BTreeSet<String>>>()?;
        Some(match self {
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

/// Names, each once.
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
    /// Whether they list all fields.
    pub fn are_all(&self) -> bool {
        [&self.read, &self.write].into_iter().flatten().all(FieldList::is_all)
    }

    /// Numbers of the catalogue instead of names.
    ///
    /// # Errors
    /// `invalid_request` for a name that is neither a column of `object` nor the key of a many_to_many relation.
    pub fn numbered(&self, registry: &Registry, object: &Object) -> Result<Fields> {
        let tokens = tokens(registry, object);
        let numbered = |list: &FieldList| {
            let unknown = list.names().iter().find(|name| !tokens.iter().any(|(known, _)| known == *name));
            if let Some(name) = unknown {
                let message = format!("`{}` has neither a field nor a many_to_many relation {name:?}.", object.name());
                return Err(Error::invalid_request(message));
            }
            let token = |name: &str| tokens.iter().find(|(known, _)| known == name).map(|(_, token)| token.clone());
            list.renamed(token).ok_or_else(|| Error::internal("a field that was found is gone"))
        };
        Ok(Fields { read: self.read.as_ref().map(numbered).transpose()?, write: self.write.as_ref().map(numbered).transpose()? })
    }

    /// Names instead of numbers of the catalogue; `None` if one of the fields is gone.
    pub fn named(&self, registry: &Registry, object: &Object) -> Option<Fields> {
        let tokens = tokens(registry, object);
        let name = |token: &str| tokens.iter().find(|(_, known)| known == token).map(|(name, _)| name.clone());
        let named = |list: &Option<FieldList>| match list {
            None => Some(None),
            Some(list) => list.renamed(name).map(Some),
        };
        Some(Fields { read: named(&self.read)?, write: named(&self.write)? })
    }

    /// Whether a list has the column. Only for stored ones.
    pub fn name(&self, object: &Object, column: &Column) -> bool {
        let token = number_of_column(object, column);
        !column.is_system && [&self.read, &self.write].into_iter().flatten().any(|list| list.names().contains(&token))
    }
}

/// The names that lists can have, each with the number that stands for it.
fn tokens(registry: &Registry, object: &Object) -> Vec<(String, String)> {
    let columns = object.columns.iter().map(|column| (column.name.clone(), number_of_column(object, column)));
    let linked = registry.relations_of(object.name()).iter().filter(|relation| is_linked(relation));
    columns.chain(linked.map(|relation| (relation.key.clone(), number_of(relation)))).collect()
}

fn is_linked(relation: &Relation) -> bool {
    matches!(relation.shape, RelationShape::Linked { .. })
}

/// What one grant allows to read and to write, by numbers of the catalogue.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Listed {
    pub(super) read: FieldList,
    pub(super) write: FieldList,
}

impl Listed {
    pub(super) const ALL: Listed = Listed { read: FieldList::ALL, write: FieldList::ALL };

    pub(super) fn of(fields: Option<&Fields>) -> Listed {
        let list = |list: Option<&FieldList>| list.cloned().unwrap_or(FieldList::ALL);
        match fields {
            None => Listed::ALL,
            Some(fields) => Listed { read: list(fields.read.as_ref()), write: list(fields.write.as_ref()) },
        }
    }

    /// The lists that matter to an action. The others are all fields.
    pub(super) fn on(&self, action: Action) -> Listed {
        let (reads, writes) = match action {
            Action::Read => (true, false),
            Action::Create | Action::Update => (false, true),
            Action::Delete => (false, false),
            Action::Manage => (true, true),
        };
        let list = |list: &FieldList, counts| if counts { list.clone() } else { FieldList::ALL };
        Listed { read: list(&self.read, reads), write: list(&self.write, writes) }
    }

    pub(super) fn are_all(&self) -> bool {
        self.read.is_all() && self.write.is_all()
    }

    pub(super) fn and(&self, other: &Listed) -> Listed {
        Listed { read: self.read.and(&other.read), write: self.write.and(&other.write) }
    }

    pub(super) fn covers(&self, other: &Listed) -> bool {
        self.read.covers(&other.read) && self.write.covers(&other.write)
    }

    /// The same as a grant has them; `None` for all fields.
    pub(super) fn fields(&self) -> Option<Fields> {
        let list = |list: &FieldList| Some(list.clone()).filter(|list| !list.is_all());
        (!self.are_all()).then(|| Fields { read: list(&self.read), write: list(&self.write) })
    }
}

/// The fields that one of several grants lists.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Known {
    /// Whether each column of the object is known.
    columns: Vec<bool>,
    /// The many_to_many relations that are not known.
    hidden_links: BTreeSet<(i64, bool)>,
}

impl Known {
    pub(super) fn of<'l>(registry: &Registry, object: &Object, lists: impl Iterator<Item = &'l FieldList> + Clone) -> Known {
        let lists_any = |token: &str| lists.clone().any(|list| list.lists(token));
        let columns: Vec<bool> = object
            .columns
            .iter()
            .map(|column| column.name == system::ID || lists_any(&number_of_column(object, column)))
            .collect();
        let linked = registry.relations_of(object.name()).iter().filter(|relation| !lists_any(&number_of(relation)));
        let hidden_links = linked.filter_map(|relation| match relation.shape {
            RelationShape::Linked { relationship_id, is_source } => Some((relationship_id, is_source)),
            RelationShape::Forward { .. } | RelationShape::Reverse { .. } => None,
        });
        Known { columns, hidden_links: hidden_links.collect() }
    }

    /// Whether a column of the object is known.
    pub fn has(&self, object: &Object, column: &str) -> bool {
        object.column_index(column).is_some_and(|place| self.columns.get(place) == Some(&true))
    }

    /// Whether a relation of the object is known, as far as its key says.
    pub fn knows(&self, relation: &Relation) -> bool {
        match relation.shape {
            RelationShape::Linked { relationship_id, is_source } => !self.hidden_links.contains(&(relationship_id, is_source)),
            RelationShape::Forward { .. } | RelationShape::Reverse { .. } => true,
        }
    }
}

/// What somebody knows of the objects that they do not know whole, by their numbers.
pub type KnownObjects = BTreeMap<i64, Known>;

/// Objects and registries as those know them who know less. Everybody who knows the same shares them.
#[derive(Debug, Default)]
pub struct Shapes(Mutex<OnSchema>);

#[derive(Debug, Default)]
struct OnSchema {
    version: i64,
    objects: HashMap<(i64, Known), Arc<Object>>,
    registries: Vec<(KnownObjects, Arc<Registry>)>,
}

/// Registries that are kept. Sets of roles that know the same share one.
const REGISTRIES_MAX: usize = 64;
/// Objects that are kept.
const OBJECTS_MAX: usize = 4096;

impl OnSchema {
    /// Whether it is of this version now. What belongs to an older version is not kept.
    fn is_of(&mut self, version: i64) -> bool {
        if self.version < version {
            *self = OnSchema { version, ..OnSchema::default() };
        }
        self.version == version
    }
}

impl Shapes {
    /// The object as somebody knows it.
    pub(super) fn object(&self, registry: &Registry, object: &Object, known: &Known) -> Arc<Object> {
        let reduce = || Arc::new(object.to_read(|column| known.has(object, &column.name)));
        let mut kept = self.0.lock();
        if !kept.is_of(registry.version) {
            return reduce();
        }
        if kept.objects.len() >= OBJECTS_MAX {
            kept.objects.clear();
        }
        Arc::clone(kept.objects.entry((object.id, known.clone())).or_insert_with(reduce))
    }

    /// The registry as somebody knows it.
    pub fn registry(&self, registry: &Arc<Registry>, known: &KnownObjects) -> Arc<Registry> {
        if known.is_empty() {
            return Arc::clone(registry);
        }
        let found = {
            let mut kept = self.0.lock();
            let place = kept.registries.iter().position(|(of, _)| of == known).filter(|_| kept.version == registry.version);
            place.map(|place| {
                let used = kept.registries.remove(place);
                let found = Arc::clone(&used.1);
                kept.registries.push(used);
                found
            })
        };
        if let Some(found) = found {
            return found;
        }
        let objects: Vec<Arc<Object>> =
            registry.objects().filter_map(|object| Some(self.object(registry, object, known.get(&object.id)?))).collect();
        let is_known = |object: &str, relation: &Relation| {
            let known = registry.object(object).and_then(|object| known.get(&object.id));
            known.is_none_or(|known| known.knows(relation))
        };
        let reduced = Arc::new(registry.reduced(objects, is_known));
        let mut kept = self.0.lock();
        if kept.is_of(registry.version) {
            if kept.registries.len() >= REGISTRIES_MAX {
                kept.registries.remove(0);
            }
            kept.registries.push((known.clone(), Arc::clone(&reduced)));
        }
        reduced
    }
}

/// The rows of an object as somebody reads them who may read some of its fields, or fields of some rows.
#[derive(Debug)]
pub struct Seen {
    /// The object as they know it. Plans name its columns.
    pub object: Arc<Object>,
    /// The object itself.
    pub whole: Arc<Object>,
    /// The rows that they reach: a scope of the object itself.
    pub rows: Scope,
    /// For each column of `object`, its place in `whole`, and the rows whose cells can be read. `None` for all that are reached.
    pub(crate) cells: Vec<(usize, Option<Condition>)>,
}

impl PartialEq for Seen {
    fn eq(&self, other: &Seen) -> bool {
        self.whole.id == other.whole.id && self.rows == other.rows && self.cells == other.cells
    }
}

impl Seen {
    /// The place in `whole` of a column of `object`, and the rows whose cells can be read.
    pub fn cell(&self, column: usize) -> Option<(usize, Option<&Condition>)> {
        self.cells.get(column).map(|(place, readable)| (*place, readable.as_ref()))
    }

    /// The rows whose cells of a column can be read; `None` for a column that is not known.
    pub fn rows_with(&self, column: &str) -> Option<Scope> {
        let (_, readable) = self.cells.get(self.object.column_index(column)?)?;
        Some(match readable {
            None => self.rows.clone(),
            Some(readable) => self.rows.and(&Scope::Where(Arc::new(readable.clone())), &self.whole),
        })
    }

    /// The rows within another scope of the object itself, too.
    pub(super) fn within(&self, other: &Scope) -> Seen {
        Seen {
            object: Arc::clone(&self.object),
            whole: Arc::clone(&self.whole),
            rows: self.rows.and(other, &self.whole),
            cells: self.cells.clone(),
        }
    }

    fn readable(&self) -> impl Iterator<Item = &Condition> {
        self.cells.iter().filter_map(|(_, readable)| readable.as_ref())
    }

    pub(super) fn objects_into(&self, objects: &mut Vec<Arc<Object>>) {
        self.rows.objects_into(objects);
        self.readable().for_each(|condition| condition.objects_into(objects));
    }

    pub(super) fn reads_texts(&self) -> bool {
        self.rows.reads_texts() || self.readable().any(Condition::reads_texts)
    }
}

//! The registry snapshot: every object and relationship at one version. It never changes. A change of the schema replaces it
//! completely.

use std::collections::{BTreeMap, HashMap};
use std::sync::{Arc, LazyLock};

use crate::code::Code;
use crate::error::{Error, Result};
use crate::name::{USERS, graphql_names};
use crate::object::{Object, StoredObject};
use crate::relationship::{OnDelete, Relation, RelationShape, Relationship, RelationshipKind};

/// All objects of one schema version. A request keeps the snapshot that it began with.
#[derive(Debug, Default)]
pub struct Registry {
    /// Increases by one with each change.
    pub version: i64,
    objects: BTreeMap<String, Arc<Object>>,
    /// The users without the fields that a caller may not know, in a registry for such a caller.
    known_users: Option<Arc<Object>>,
    relationships: Vec<Relationship>,
    /// The relations of each object, in the order of the relationships.
    relations: HashMap<String, Vec<Relation>>,
    /// For each object, the foreign keys that refer to it: the object with the column, and the column's index.
    referrers: HashMap<String, Vec<(Arc<Object>, usize)>>,
}

/// The users of the service. They are the same in each schema.
static ALL_USERS: LazyLock<Option<Arc<Object>>> = LazyLock::new(|| Object::users().ok().map(Arc::new));

/// The maximum number of objects of one service.
const OBJECTS_MAX: usize = 2000;
/// The maximum number of relationships of one service.
const RELATIONSHIPS_MAX: usize = 4000;

impl Registry {
    /// Checks all objects and relationships against each other. `relationships` are in the order of their numbers.
    ///
    /// # Errors
    /// `invalid_schema`, which names the conflict.
    pub fn new(version: i64, objects: Vec<StoredObject>, relationships: Vec<Relationship>) -> Result<Registry> {
        if objects.len() > OBJECTS_MAX || relationships.len() > RELATIONSHIPS_MAX {
            return Err(invalid(format!("A service has {OBJECTS_MAX} objects and {RELATIONSHIPS_MAX} relationships at most.")));
        }
        let numbers: HashMap<String, i64> = objects.iter().map(|object| (object.definition.name.clone(), object.id)).collect();
        for relationship in &relationships {
            let known = &relationship.definition;
            for name in [&known.source, &known.target] {
                if !numbers.contains_key(name) && name != USERS {
                    return Err(invalid(format!("The relationship `{}` names `{name}`, which is not an object.", known.name)));
                }
            }
        }
        let mut registry = Registry { version, relationships, ..Registry::default() };
        for stored in objects {
            let object = Object::new(stored, &registry.relationships, |name| numbers.get(name).copied())?;
            registry.objects.insert(object.name().to_owned(), Arc::new(object));
        }
        registry.relate()?;
        registry.check_users_can_go()?;
        registry.check_graphql_names()?;
        Ok(registry)
    }

    fn relate(&mut self) -> Result<()> {
        for relationship in &self.relationships {
            let known = &relationship.definition;
            let id = relationship.id;
            let relation =
                |key: String, related: &str, shape| Relation { key, relationship_id: id, related: related.to_owned(), shape };
            let mut found: Vec<(&str, Relation)> = Vec::with_capacity(2);
            match known.holder() {
                Some(holder) => {
                    let column = self.objects.get(holder).and_then(|object| object.column_index(&format!("{}_id", known.name)));
                    let Some(column) = column else { continue };
                    let referenced = known.referenced();
                    found.push((holder, relation(known.name.clone(), referenced, RelationShape::Forward { column })));
                    let is_single = known.kind == RelationshipKind::OneToOne;
                    let key = format!("{holder}_by_{}", known.name);
                    found.push((referenced, relation(key, holder, RelationShape::Reverse { column, is_single })));
                    if let Some(object) = self.objects.get(holder) {
                        self.referrers.entry(referenced.to_owned()).or_default().push((Arc::clone(object), column));
                    }
                }
                None => {
                    let linked = |is_source| RelationShape::Linked { relationship_id: id, is_source };
                    found.push((&known.source, relation(known.name.clone(), &known.target, linked(true))));
                    if known.source != known.target {
                        found.push((&known.target, relation(known.name.clone(), &known.source, linked(false))));
                    }
                }
            }
            for (object, relation) in found {
                let has_column = self.object(object).is_some_and(|object| object.column(&relation.key).is_some());
                let relations = self.relations.entry(object.to_owned()).or_default();
                if has_column || relations.iter().any(|other| other.key == relation.key) {
                    let what = if has_column { "field" } else { "relation key" };
                    return Err(invalid(format!(
                        "The relation key `{}` of the relationship `{}` clashes with a {what} of `{object}`.",
                        relation.key, known.name
                    )));
                }
                relations.push(relation);
            }
        }
        Ok(())
    }

    /// The registry for a caller who may not know all fields of some objects. `reduced` has these objects by their names.
    /// `is_known` tells whether the caller knows a many_to_many relation of an object. The result has no relations whose foreign
    /// key the caller does not know.
    pub fn reduced(
        &self,
        reduced: impl IntoIterator<Item = Arc<Object>>,
        is_known: impl Fn(&str, &Relation) -> bool,
    ) -> Registry {
        let mut registry = Registry {
            version: self.version,
            objects: self.objects.clone(),
            relationships: self.relationships.clone(),
            ..Registry::default()
        };
        for object in reduced {
            match object.is_users() {
                true => registry.known_users = Some(object),
                false => drop(registry.objects.insert(object.name().to_owned(), object)),
            }
        }
        // If names do not clash, the names of a part of the objects do not clash either.
        let _ = registry.relate();
        for (object, relations) in &mut registry.relations {
            relations.retain(|relation| !matches!(relation.shape, RelationShape::Linked { .. }) || is_known(object, relation));
        }
        registry
    }

    /// Checks that nothing prevents the deletion of a user: no relationship restricts the deletion of records that are deleted
    /// with a user.
    fn check_users_can_go(&self) -> Result<()> {
        let mut going = vec![USERS];
        let mut next = 0;
        while let Some(name) = going.get(next).copied() {
            next += 1;
            let restricts = |known: &&Relationship| {
                let definition = &known.definition;
                let is_of_it = match definition.holder() {
                    Some(_) => definition.referenced() == name,
                    None => definition.involves(name),
                };
                is_of_it && definition.on_delete() == OnDelete::Restrict
            };
            if let Some(known) = self.relationships.iter().find(restricts) {
                let message = format!(
                    "Records of `{name}` are deleted along with a user, and `onDelete` of the relationship `{}` restricts that. Choose \
                     cascade or set_null there.",
                    known.definition.name
                );
                return Err(invalid(message));
            }
            for (holder, column) in self.referrers_of(name) {
                let cascades =
                    holder.columns[*column].reference.as_ref().is_some_and(|known| known.on_delete == OnDelete::Cascade);
                if cascades && !going.contains(&holder.name()) {
                    going.push(holder.name());
                }
            }
        }
        Ok(())
    }

    /// Checks that names do not collide in GraphQL. All objects become fields and types of one GraphQL schema.
    fn check_graphql_names(&self) -> Result<()> {
        let mut taken: HashMap<String, &str> = HashMap::new();
        let users = self.leads_to_users().then_some(USERS);
        for name in self.objects.keys().map(String::as_str).chain(users) {
            let linked: Vec<&str> = self
                .relations_of(name)
                .iter()
                .filter(|relation| matches!(relation.shape, RelationShape::Linked { .. }))
                .map(|relation| relation.key.as_str())
                .collect();
            for taken_name in graphql_names(name, &linked)? {
                if let Some(other) = taken.get(&taken_name) {
                    return Err(invalid(format!(
                        "`{name}` and `{other}` clash: both would be `{}` in GraphQL. Choose another name.",
                        taken_name.split_once(' ').map_or(taken_name.as_str(), |(_, name)| name)
                    )));
                }
                taken.insert(taken_name, name);
            }
        }
        Ok(())
    }

    /// The object with this name. `users` is the name of an object, too.
    pub fn object(&self, name: &str) -> Option<&Arc<Object>> {
        match name {
            USERS => self.users(),
            _ => self.objects.get(name),
        }
    }

    /// The users of the service.
    pub fn users(&self) -> Option<&Arc<Object>> {
        self.known_users.as_ref().or(ALL_USERS.as_ref())
    }

    /// Whether relationships lead to users.
    pub fn leads_to_users(&self) -> bool {
        !self.relations_of(USERS).is_empty()
    }

    /// All objects that people have defined, in the order of their names.
    pub fn objects(&self) -> impl Iterator<Item = &Arc<Object>> {
        self.objects.values()
    }

    /// All relationships, in the order of their numbers.
    pub fn relationships(&self) -> &[Relationship] {
        &self.relationships
    }

    /// The relations that the records of `object` show.
    pub fn relations_of(&self, object: &str) -> &[Relation] {
        self.relations.get(object).map_or(&[], Vec::as_slice)
    }

    pub fn relation(&self, object: &str, key: &str) -> Option<&Relation> {
        self.relations_of(object).iter().find(|relation| relation.key == key)
    }

    /// The foreign keys that refer to `object`: the object with the column, and the column's index.
    pub fn referrers_of(&self, object: &str) -> &[(Arc<Object>, usize)] {
        self.referrers.get(object).map_or(&[], Vec::as_slice)
    }

    /// Whether deleting a record of `object` changes records of other objects.
    pub fn deletes_beyond(&self, object: &str) -> bool {
        self.referrers_of(object).iter().any(|(holder, column)| {
            holder.columns[*column].reference.as_ref().is_some_and(|reference| reference.on_delete != OnDelete::Restrict)
        })
    }
}

fn invalid(message: String) -> Error {
    Error::new(Code::InvalidSchema, message)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn objects(names: &[&str]) -> Vec<StoredObject> {
        (1..)
            .zip(names)
            .map(|(id, name)| StoredObject {
                id,
                revision: 1,
                definition: serde_json::from_value(serde_json::json!({ "name": name })).expect("a definition"),
                keys: Vec::new(),
                since: Default::default(),
            })
            .collect()
    }

    fn relationship(id: i64, name: &str, kind: &str, source: &str, target: &str) -> Relationship {
        let definition = serde_json::json!({ "name": name, "kind": kind, "source": source, "target": target });
        Relationship { id, definition: serde_json::from_value(definition).expect("a definition") }
    }

    #[test]
    fn names_that_clash_in_graphql_are_refused() {
        for clash in
            [["post", "post_by_id"], ["post", "post_aggregate"], ["order_item", "order__item"], ["post", "post_create_input"]]
        {
            let error = Registry::new(1, objects(&clash), Vec::new()).expect_err("a clash");
            assert!(clash.iter().all(|name| error.message.contains(name)), "{}", error.message);
        }
        assert!(Registry::new(1, objects(&["post", "post_status"]), Vec::new()).is_ok());
        assert!(Registry::new(1, objects(&["filter_input"]), Vec::new()).is_err());
    }

    #[test]
    fn each_side_has_its_key() {
        let all = vec![
            relationship(1, "author", "many_to_one", "post", "person"),
            relationship(2, "tags", "many_to_many", "post", "tag"),
            relationship(3, "profile", "one_to_one", "person", "card"),
            relationship(4, "comments", "one_to_many", "post", "comment"),
            relationship(5, "friends", "many_to_many", "person", "person"),
        ];
        let registry = Registry::new(1, objects(&["post", "person", "tag", "card", "comment"]), all).expect("a registry");
        let keys = |object| registry.relations_of(object).iter().map(|relation| relation.key.as_str()).collect::<Vec<_>>();
        assert_eq!(keys("post"), ["author", "tags", "comment_by_comments"]);
        assert_eq!(keys("person"), ["post_by_author", "profile", "friends"]);
        assert_eq!(keys("tag"), ["tags"]);
        assert_eq!(keys("card"), ["person_by_profile"]);
        assert_eq!(keys("comment"), ["comments"]);
        assert!(registry.object("comment").expect("an object").column("comments_id").is_some());
    }

    #[test]
    fn relation_keys_that_clash_are_refused() {
        let twice =
            vec![relationship(1, "a", "many_to_many", "post", "tag"), relationship(2, "a", "many_to_many", "post", "tag")];
        assert!(Registry::new(1, objects(&["post", "tag"]), twice).is_err());
        let nowhere = vec![relationship(1, "a", "many_to_one", "post", "nothing")];
        assert!(Registry::new(1, objects(&["post"]), nowhere).is_err());
    }
}

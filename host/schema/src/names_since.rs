//! Since when the names of an object and its fields mean what they mean now.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::column::key_of_relationship;
use crate::object::Object;
use crate::relationship::{Relation, RelationShape};

/// The last events in which a name may mean something else. Events have the names of their time, but rights on fields belong to
/// the numbers of the catalogue. Another field may have had a field's name before, and another object the object's name.
///
/// Each value is the number of an event in the outbox. It is 0 for the name of a field that is as old as its object, and for names
/// from before these numbers were stored.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct NamesSince {
    /// The last event before the object was created.
    pub object: i64,
    /// The last event before a column or a many_to_many relation got its name, by its key in the catalogue.
    fields: BTreeMap<String, i64>,
}

impl NamesSince {
    pub fn of_new_object(last_event: i64) -> NamesSince {
        NamesSince { object: last_event, fields: BTreeMap::new() }
    }

    /// The same after a change of the object. `before` and `after` are the object and its relations. `last_event` is the last
    /// event before the change.
    pub fn changed(before: (&Object, &[Relation]), after: (&Object, &[Relation]), last_event: i64) -> NamesSince {
        let known: BTreeMap<String, &str> = names(before).collect();
        let since = &before.0.since;
        let number = |(key, name): (String, &str)| {
            let is_kept = known.get(&key) == Some(&name);
            let number = if is_kept { since.of_field(&key) } else { last_event };
            (key, number)
        };
        NamesSince { object: since.object, fields: names(after).map(number).filter(|(_, number)| *number > 0).collect() }
    }

    /// The last event before a column got its name. `key` is the column's key in the catalogue.
    pub(crate) fn of_field(&self, key: &str) -> i64 {
        self.fields.get(key).copied().unwrap_or(0)
    }

    /// The last event before a many_to_many relation of the object got its key.
    pub fn of_links(&self, relation: &Relation) -> i64 {
        self.of_field(&key_of_relationship(relation.relationship_id))
    }
}

/// The names that lists of fields can contain, each with its key in the catalogue. System columns always have the same names.
fn names<'a>((object, relations): (&'a Object, &'a [Relation])) -> impl Iterator<Item = (String, &'a str)> {
    let columns = object.columns.iter().filter(|column| !column.is_system);
    let columns = columns.map(|column| (column.catalogue_key(), column.name.as_str()));
    let is_linked = |relation: &&Relation| matches!(relation.shape, RelationShape::Linked { .. });
    let links = relations.iter().filter(is_linked);
    columns.chain(links.map(|relation| (key_of_relationship(relation.relationship_id), relation.key.as_str())))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::object::StoredObject;
    use crate::registry::Registry;
    use crate::relationship::Relationship;

    /// A registry with the objects `task` and `label`. `fields` are the names and numbers of the fields of `task`, and
    /// `relationships` the numbers, names and kinds of relationships from `task` to `label`.
    fn registry(since: &NamesSince, fields: &[(&str, u32)], relationships: &[(i64, &str, &str)]) -> Registry {
        let object = |id, name: &str, fields: &[(&str, u32)], since: &NamesSince| {
            let named: Vec<_> = fields.iter().map(|(name, _)| json!({ "name": name, "type": "text" })).collect();
            StoredObject {
                id,
                revision: 1,
                definition: serde_json::from_value(json!({ "name": name, "fields": named })).expect("a definition"),
                keys: fields.iter().map(|(_, key)| *key).collect(),
                since: since.clone(),
            }
        };
        let relationship = |(id, name, kind): &(i64, &str, &str)| {
            let definition = json!({ "name": name, "kind": kind, "source": "task", "target": "label" });
            Relationship { id: *id, definition: serde_json::from_value(definition).expect("a definition") }
        };
        let objects = vec![object(1, "task", fields, since), object(2, "label", &[], &NamesSince::default())];
        Registry::new(1, objects, relationships.iter().map(relationship).collect()).expect("a registry")
    }

    fn changed(object: &str, before: &Registry, after: &Registry, last_event: i64) -> NamesSince {
        let [before, after] =
            [before, after].map(|registry| (&**registry.object(object).expect("an object"), registry.relations_of(object)));
        NamesSince::changed(before, after, last_event)
    }

    #[test]
    fn a_name_counts_from_the_change_that_gave_it() {
        let first = registry(&NamesSince::of_new_object(5), &[("pay", 1), ("title", 2)], &[]);
        // A field is renamed, and another one gets its name.
        let renamed = registry(&first.object("task").expect("an object").since, &[("wage", 1), ("title", 2)], &[]);
        let since = changed("task", &first, &renamed, 10);
        let renamed = registry(&since, &[("wage", 1), ("title", 2)], &[]);
        let reused = registry(&since, &[("wage", 1), ("title", 2), ("pay", 3)], &[]);
        let since = changed("task", &renamed, &reused, 20);
        assert_eq!([since.object, since.of_field("1"), since.of_field("2"), since.of_field("3")], [5, 10, 0, 20]);
        let reused = registry(&since, &[("wage", 1), ("title", 2), ("pay", 3)], &[]);
        let columns = &reused.object("task").expect("an object").columns;
        let named: Vec<(&str, i64)> = columns.iter().map(|column| (column.name.as_str(), column.named_since)).collect();
        assert_eq!(named[..4], [("id", 0), ("wage", 10), ("title", 0), ("pay", 20)]);
        // The numbers of dropped fields are forgotten.
        let dropped = registry(&since, &[("title", 2)], &[]);
        assert_eq!(changed("task", &reused, &dropped, 30), NamesSince::of_new_object(5));
    }

    #[test]
    fn a_relationship_that_is_made_again_counts_from_then() {
        let first = registry(&NamesSince::default(), &[], &[(1, "labels", "many_to_many"), (2, "first", "many_to_one")]);
        let next = registry(&NamesSince::default(), &[], &[(3, "labels", "many_to_many"), (4, "first", "many_to_one")]);
        let since = changed("task", &first, &next, 7);
        assert_eq!(["r1", "r2", "r3", "r4"].map(|key| since.of_field(key)), [0, 0, 7, 7]);
        // The other object has the links too, but not the foreign key.
        let of_label = changed("label", &first, &next, 7);
        assert_eq!(["r1", "r2", "r3", "r4"].map(|key| of_label.of_field(key)), [0, 0, 7, 0]);
        let relation = next.relation("task", "labels").expect("a relation");
        assert_eq!((since.of_links(relation), NamesSince::default().of_links(relation)), (7, 0));
        let columns = registry(&since, &[], &[(4, "first", "many_to_one")]).object("task").expect("an object").columns.clone();
        assert_eq!((columns[1].name.as_str(), columns[1].named_since), ("first_id", 7));
    }

    #[test]
    fn a_catalogue_without_these_numbers_is_read() {
        let none: NamesSince = serde_json::from_str("{}").expect("numbers");
        assert_eq!(none, NamesSince::default());
        let since = NamesSince { object: 3, fields: BTreeMap::from([("r1".to_owned(), 4)]) };
        let text = serde_json::to_string(&since).expect("JSON");
        assert_eq!(serde_json::from_str::<NamesSince>(&text).expect("numbers"), since);
    }
}

//! Related records: the records that a relation key shows to a caller.

use serde_json::{Value, json};

use super::{Caller, NAMES, Related, World, ids_of, pick};

impl World<'_> {
    /// Relation keys of an object.
    pub(super) fn keys(&self, object: usize) -> Vec<String> {
        let mut keys = Vec::new();
        for relation in &self.relations {
            if relation.source == object || (relation.is_many_to_many && relation.target == object) {
                keys.push(relation.name.clone());
            }
            if relation.target == object && !relation.is_many_to_many {
                keys.push(format!("{}_by_{}", NAMES[relation.source], relation.name));
            }
        }
        keys
    }

    fn related_object(&self, object: usize, key: &str) -> usize {
        let found = self.relations.iter().find_map(|relation| match relation.name == key {
            true if relation.source == object => Some(relation.target),
            true => Some(relation.source),
            false => (key == format!("{}_by_{}", NAMES[relation.source], relation.name)).then_some(relation.source),
        });
        found.unwrap()
    }

    fn related(&self, object: usize, id: &str, key: &str) -> Related {
        let related = self.related_object(object, key);
        for (place, relation) in self.relations.iter().enumerate() {
            if relation.name == key && relation.is_many_to_many {
                let links = self.links.iter().filter(|(of, ..)| *of == place);
                let ids = match relation.source == object {
                    true => links.filter(|(_, source, _)| source == id).map(|(.., target)| target.clone()).collect(),
                    false => links.filter(|(.., target)| target == id).map(|(_, source, _)| source.clone()).collect(),
                };
                return Related { object: related, is_single: false, ids };
            }
            if relation.name == key {
                let reference = self.row(object, id).unwrap().references.get(&place);
                return Related { object: related, is_single: true, ids: reference.cloned().into_iter().collect() };
            }
            if key == format!("{}_by_{}", NAMES[relation.source], relation.name) {
                let holders = self.rows[related].iter().filter(|row| row.references.get(&place).is_some_and(|to| to == id));
                return Related { object: related, is_single: false, ids: holders.map(|row| row.id.clone()).collect() };
            }
        }
        unreachable!("{key}")
    }

    /// Paths for `expand`, with at most two levels.
    pub(super) fn expand(&mut self, object: usize) -> Vec<Vec<String>> {
        let mut paths = Vec::new();
        for _ in 0..self.random.usize(0..3) {
            let (mut path, mut object) = (Vec::new(), object);
            for _ in 0..self.random.usize(1..3) {
                let keys = self.keys(object);
                if keys.is_empty() {
                    break;
                }
                let key = pick(&mut self.random, &keys);
                object = self.related_object(object, &key);
                path.push(key);
            }
            paths.push(path);
        }
        paths.retain(|path| !path.is_empty());
        paths
    }

    /// Whether the caller may read every object of the paths.
    pub(super) fn may_expand(&self, caller: &Caller, object: usize, paths: &[Vec<String>]) -> bool {
        paths.iter().all(|path| {
            let mut object = object;
            path.iter().all(|key| {
                object = self.related_object(object, key);
                self.may(caller, object, "read")
            })
        })
    }

    pub(super) fn check_expanded(&self, caller: &Caller, object: usize, record: &Value, path: &[String]) {
        let Some((key, rest)) = path.split_first() else { return };
        let Related { object: of, is_single, mut ids } = self.related(object, record["id"].as_str().unwrap(), key);
        ids.retain(|id| self.reaches(caller, of, "read", id));
        ids.sort();
        let shown: Vec<Value> = match (is_single, &record[key]) {
            (true, Value::Null) => Vec::new(),
            (true, one) => vec![one.clone()],
            (false, many) => many.as_array().unwrap_or_else(|| panic!("{key}: {}", self.place)).clone(),
        };
        let mut shown_ids = ids_of(&json!(shown));
        shown_ids.sort();
        assert_eq!(shown_ids, ids, "{key} of {record}: {}", self.place);
        for record in &shown {
            self.check_record(record, self.row(of, record["id"].as_str().unwrap()).unwrap(), of);
            self.check_expanded(caller, of, record, rest);
        }
    }
}

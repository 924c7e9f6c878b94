//! The condition of a grant as it is stored, and its conjuncts.
//!
//! A stored condition has the grammar of every condition. It contains numbers of the catalogue instead of names, so that it
//! follows renames: `#7:3` is the field with the number 3 of object 7, `#@5` the foreign key of relationship 5, `@5>` the
//! relation of relationship 5 seen from the source, and `@5<` the same seen from the target. System columns, which nobody
//! renames, keep their names.

use std::borrow::Cow;
use std::collections::BTreeSet;
use std::sync::Arc;

use blockbase_schema::json::{Members, write_string};
use blockbase_schema::{Column, Object, Registry, Relation, RelationShape};
use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use serde_json::value::RawValue;

use crate::condition::NamedQuantifier;
use crate::operator::Operator;

/// A condition as JSON text: the `where` or the `check` of a grant.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Clause(Arc<str>);

impl Serialize for Clause {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let raw: &RawValue = serde_json::from_str(&self.0).map_err(serde::ser::Error::custom)?;
        raw.serialize(serializer)
    }
}

impl<'de> Deserialize<'de> for Clause {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Clause, D::Error> {
        Box::<RawValue>::deserialize(deserializer).map(|raw| Clause(raw.get().into()))
    }
}

impl JsonSchema for Clause {
    fn inline_schema() -> bool {
        true
    }

    fn schema_name() -> Cow<'static, str> {
        "Clause".into()
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({ "type": "object" })
    }
}

/// The direction in which names and numbers are replaced.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Direction {
    ToNumbers,
    ToNames,
}

impl Clause {
    pub fn new(text: &str) -> Clause {
        Clause(text.into())
    }

    pub fn text(&self) -> &str {
        &self.0
    }

    /// The condition with numbers of the catalogue instead of names. `None` if it names a field or relation that `object` does
    /// not have.
    pub fn numbered(&self, registry: &Registry, object: &Object) -> Option<Clause> {
        translated(registry, object, &self.0, Direction::ToNumbers).map(|text| Clause(text.into()))
    }

    /// Whether the condition tests the column, either directly or through relations. Only for stored conditions.
    pub fn tests(&self, object: &Object, column: &Column) -> bool {
        let number = number_of_column(object, column);
        // With the colon, this is the end of a key. A text with the same characters is none.
        !column.is_system && [format!("\"{number}\":"), format!(".{number}\":")].iter().any(|key| self.0.contains(key))
    }

    /// The condition with names instead of numbers of the catalogue. `None` if a number stands for something that no longer
    /// exists.
    pub fn named(&self, registry: &Registry, object: &Object) -> Option<Clause> {
        translated(registry, object, &self.0, Direction::ToNames).map(|text| Clause(text.into()))
    }

    /// Its top-level conjuncts in a form that does not depend on how they were written. If two conditions have the same
    /// conjuncts, they mean the same.
    pub(super) fn conjuncts(&self) -> BTreeSet<String> {
        // A text that cannot be read as a condition is equal only to itself.
        canonical_conjuncts(&self.0).unwrap_or_else(|| BTreeSet::from([self.0.to_string()]))
    }

    /// Its top-level conjuncts in their order, each as a stored condition by itself. Their conjunction means the same as the
    /// condition.
    pub(super) fn split(&self) -> Vec<Clause> {
        let mut found = Vec::new();
        match conjuncts_into(&mut found, &[], &self.0) {
            Some(()) => found.iter().map(Conjunct::clause).collect(),
            None => vec![self.clone()],
        }
    }

    /// Whether the condition depends on who the caller is.
    pub(super) fn names_caller(&self) -> bool {
        // The text may contain JSON escapes. The conjuncts do not, so these are searched.
        let names = |conjunct: &String| ["\"$user.", "\"$key."].iter().any(|variable| conjunct.contains(variable));
        self.conjuncts().iter().any(names)
    }

    /// The condition without the conjuncts that depend on who the caller is. `None` if it has no others.
    pub(super) fn for_all(self) -> Option<Clause> {
        if !self.names_caller() {
            return Some(self);
        }
        Clause::all(self.split().into_iter().filter(|conjunct| !conjunct.names_caller()).collect())
    }

    /// The conjunction of `clauses`. `None` if `clauses` is empty.
    pub(super) fn all(clauses: Vec<Clause>) -> Option<Clause> {
        match clauses.as_slice() {
            [] => None,
            [one] => Some(one.clone()),
            several => {
                let texts: Vec<&str> = several.iter().map(Clause::text).collect();
                Some(Clause(format!("{{\"_and\":[{}]}}", texts.join(",")).into()))
            }
        }
    }
}

fn members(text: &str) -> Option<Members> {
    serde_json::from_str(text).ok()
}

fn items(text: &str) -> Option<Vec<Box<RawValue>>> {
    serde_json::from_str(text).ok()
}

fn translated(registry: &Registry, object: &Object, text: &str, direction: Direction) -> Option<String> {
    let mut out = vec![b'{'];
    for (key, raw) in members(text)?.0 {
        if out.len() > 1 {
            out.push(b',');
        }
        let (key, value) = match key.as_str() {
            "_and" | "_or" => {
                let parts = items(raw.get())?.into_iter().map(|part| translated(registry, object, part.get(), direction));
                (key, format!("[{}]", parts.collect::<Option<Vec<_>>>()?.join(",")))
            }
            "_not" => (key, translated(registry, object, raw.get(), direction)?),
            _ => translated_part(registry, object, &key, raw.get(), direction)?,
        };
        write_string(&mut out, &key);
        out.push(b':');
        out.extend_from_slice(value.as_bytes());
    }
    out.push(b'}');
    String::from_utf8(out).ok()
}

/// Translates a member whose key is a field, a relation or a path of relations, with its value.
fn translated_part(
    registry: &Registry,
    object: &Object,
    name: &str,
    raw: &str,
    direction: Direction,
) -> Option<(String, String)> {
    let (first, rest) = match name.split_once('.') {
        Some((first, rest)) => (first, Some(rest)),
        None => (name, None),
    };
    if let Some(column) = column_of(object, first, direction) {
        return rest.is_none().then(|| (column, raw.to_owned()));
    }
    let relation = registry.relations_of(object.name()).iter().find(|relation| match direction {
        Direction::ToNumbers => relation.key == first,
        Direction::ToNames => number_of(relation) == first,
    })?;
    let related = registry.object(&relation.related)?;
    let token = if direction == Direction::ToNumbers { number_of(relation) } else { relation.key.clone() };
    if let Some(rest) = rest {
        let (below, value) = translated_part(registry, related, rest, raw, direction)?;
        return Some((format!("{token}.{below}"), value));
    }
    if relation.shape.is_single() {
        return Some((token, translated(registry, related, raw, direction)?));
    }
    let mut quantified = Vec::new();
    for (quantifier, raw) in members(raw)?.0 {
        let mut part = Vec::new();
        write_string(&mut part, &quantifier);
        let condition = translated(registry, related, raw.get(), direction)?;
        quantified.push(format!("{}:{condition}", String::from_utf8(part).ok()?));
    }
    Some((token, format!("{{{}}}", quantified.join(","))))
}

fn column_of(object: &Object, token: &str, direction: Direction) -> Option<String> {
    match direction {
        Direction::ToNumbers => object.column(token).map(|column| number_of_column(object, column)),
        Direction::ToNames => {
            object.columns.iter().find(|column| number_of_column(object, column) == token).map(|column| column.name.clone())
        }
    }
}

/// What stands for a column in stored conditions and lists: a number of the catalogue, which no other column ever gets. A system
/// column has its name.
pub fn number_of_column(object: &Object, column: &Column) -> String {
    match &column.reference {
        _ if column.is_system => column.name.clone(),
        Some(reference) => format!("#@{}", reference.relationship_id),
        None => format!("#{}:{}", object.id, column.key),
    }
}

pub(super) fn number_of(relation: &Relation) -> String {
    let side = match relation.shape {
        RelationShape::Forward { .. } | RelationShape::Linked { is_source: true, .. } => '>',
        RelationShape::Reverse { .. } | RelationShape::Linked { is_source: false, .. } => '<',
    };
    format!("@{}{side}", relation.relationship_id)
}

/// A top-level conjunct of a stored condition.
struct Conjunct {
    /// The keys of the to-one relations that lead to the row that it tests.
    path: Vec<String>,
    /// A column, a relation, `_or` or `_not`.
    key: String,
    /// The operator or quantifier below the key. `None` if the value follows the key directly.
    name: Option<String>,
    /// The value as JSON.
    value: String,
}

impl Conjunct {
    /// The conjunct as canonical text.
    fn canonical(&self) -> Option<String> {
        let Conjunct { path, key, name, value } = self;
        let path: String = path.iter().map(|key| format!("{key}.")).collect();
        Some(match (key.as_str(), name) {
            ("_or", _) => {
                let parts = items(value)?.iter().map(|part| canonical(part.get())).collect::<Option<BTreeSet<String>>>()?;
                // Each part is in parentheses, because the text of a part that is true for every row is empty.
                let parts: Vec<String> = parts.into_iter().map(|part| format!("({part})")).collect();
                format!("{path}or({})", parts.join("|"))
            }
            ("_not", _) => format!("{path}not({})", canonical(value)?),
            (_, None) => format!("{path}{key}:eq={}", canonical_value(value)?),
            (_, Some(name)) if leads_to_rows(key) => format!("{path}{key}:{name}({})", canonical(value)?),
            (_, Some(name)) => format!("{path}{key}:{}={}", Operator::parse(name).ok()?.name(), canonical_value(value)?),
        })
    }

    /// The conjunct as a stored condition.
    fn clause(&self) -> Clause {
        let named = self.name.as_ref().map(|name| object_with(name, &self.value));
        let condition = object_with(&self.key, named.as_ref().unwrap_or(&self.value));
        Clause(self.path.iter().rev().fold(condition, |inner, key| object_with(key, &inner)).into())
    }
}

/// A JSON object with one member.
fn object_with(key: &str, value: &str) -> String {
    let mut out = vec![b'{'];
    write_string(&mut out, key);
    out.push(b':');
    out.extend_from_slice(value.as_bytes());
    out.push(b'}');
    String::from_utf8(out).unwrap_or_default()
}

/// Whether a key of a stored condition is a relation or a path of relations.
fn leads_to_rows(key: &str) -> bool {
    key.rsplit('.').next().is_some_and(|last| last.starts_with('@'))
}

/// Adds the conjuncts of a stored condition on the row that `path` leads to. The condition on the row of a to-one relation adds
/// its own conjuncts, one for each part.
fn conjuncts_into(found: &mut Vec<Conjunct>, path: &[String], text: &str) -> Option<()> {
    for (key, raw) in members(text)?.0 {
        let raw = raw.get().trim();
        let conjunct =
            |name: Option<String>, value: &str| Conjunct { path: path.to_vec(), key: key.clone(), name, value: value.to_owned() };
        if key == "_and" {
            items(raw)?.iter().try_for_each(|part| conjuncts_into(found, path, part.get()))?;
        } else if matches!(key.as_str(), "_or" | "_not") || !raw.starts_with('{') {
            found.push(conjunct(None, raw));
        } else {
            let parts = members(raw)?.0;
            let is_quantified = parts.iter().any(|(name, _)| NamedQuantifier::named(name).is_some());
            if leads_to_rows(&key) && !is_quantified {
                conjuncts_into(found, &[path, std::slice::from_ref(&key)].concat(), raw)?;
            } else {
                found.extend(parts.into_iter().map(|(name, raw)| conjunct(Some(name), raw.get())));
            }
        }
    }
    Some(())
}

fn canonical_conjuncts(text: &str) -> Option<BTreeSet<String>> {
    let mut found = Vec::new();
    conjuncts_into(&mut found, &[], text)?;
    found.iter().map(Conjunct::canonical).collect()
}

fn canonical(text: &str) -> Option<String> {
    Some(canonical_conjuncts(text)?.into_iter().collect::<Vec<_>>().join("&"))
}

/// A value as canonical text: equal strings have the same text, and lists with the same items have the same text whatever their
/// order. Numbers keep their digits.
fn canonical_value(raw: &str) -> Option<String> {
    let raw = raw.trim();
    match raw.as_bytes().first()? {
        b'"' => serde_json::to_string(&serde_json::from_str::<String>(raw).ok()?).ok(),
        b'[' => {
            let values = items(raw)?.iter().map(|item| canonical_value(item.get())).collect::<Option<BTreeSet<_>>>()?;
            Some(format!("[{}]", values.into_iter().collect::<Vec<_>>().join(",")))
        }
        _ => Some(raw.to_owned()),
    }
}

#[cfg(test)]
mod tests {
    use blockbase_schema::StoredObject;
    use serde_json::json;

    use super::*;

    #[test]
    fn a_condition_tests_the_columns_that_its_keys_name() {
        let definition = json!({ "name": "task", "fields": [{ "name": "title", "type": "text" }] });
        let definition = serde_json::from_value(definition).expect("a definition");
        let stored = StoredObject { id: 1, revision: 1, keys: vec![1], definition, since: Default::default() };
        let object = Object::new(stored, [], |_| None).expect("an object");
        let title = object.column("title").expect("a column");
        for (text, tests) in [
            (r##"{"#1:1":"a"}"##, true),
            (r##"{"_not":{"@1>.#1:1":{"gt":"a"}}}"##, true),
            (r##"{"@1<":{"some":{"_or":[{"#1:1":null}]}}}"##, true),
            (r##"{"#1:11":"a","#11:1":"b"}"##, false),
            (r##"{"#1:2":"#1:1","#1:3":{"in":["#1:1",".#1:1"]}}"##, false),
        ] {
            assert_eq!(Clause::new(text).tests(&object, title), tests, "{text}");
        }
    }

    #[test]
    fn a_condition_is_split_into_its_conjuncts() {
        let split = |text: &str| Clause::new(text).split().iter().map(|part| part.text().to_owned()).collect::<Vec<_>>();
        let text = concat!(
            r##"{"#1:2":{"gte":1,"lt":5},"_and":[{"#1:1":"a"},{"@1>":{"#2:1":"b","_or":[{},{"#2:2":1}]}}],"##,
            r##""@1>.#2:2":3,"@1<":{"some":{"#1:1":"c"},"none":{}},"_not":{"#1:1":"d"}}"##
        );
        let parts = [
            r##"{"#1:2":{"gte":1}}"##,
            r##"{"#1:2":{"lt":5}}"##,
            r##"{"#1:1":"a"}"##,
            r##"{"@1>":{"#2:1":"b"}}"##,
            r##"{"@1>":{"_or":[{},{"#2:2":1}]}}"##,
            r##"{"@1>.#2:2":3}"##,
            r##"{"@1<":{"some":{"#1:1":"c"}}}"##,
            r##"{"@1<":{"none":{}}}"##,
            r##"{"_not":{"#1:1":"d"}}"##,
        ];
        assert_eq!(split(text), parts);
        assert_eq!(split("{}"), Vec::<String>::new());
        assert_eq!(split("[]"), ["[]"]);
    }
}

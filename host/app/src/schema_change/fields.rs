//! Fields added, altered and dropped.

use blockbase_query::Action;
use blockbase_schema::json::FromObject;
use blockbase_schema::{Code, Error, Field, FieldType, ObjectDefinition, Result};
use serde_json::{Map, Value, json};

use super::{Edited, FieldChanges, not_a_definition, stored};
use crate::App;
use crate::caller::Caller;

/// What a type may become: values stay what they are.
fn widens(from: FieldType, to: FieldType) -> bool {
    use FieldType::*;
    match (from, to) {
        _ if from == to => true,
        (Integer, BigInteger | Decimal | Float) | (BigInteger, Decimal) => true,
        (Json | MultiEnum, _) => false,
        (_, Text) => true,
        _ => false,
    }
}

impl App {
    /// Adds a field. Rows that are there get its default.
    ///
    /// # Errors
    /// `invalid_schema`; `invalid_schema_change` for a required field without default on an object that has rows.
    pub async fn add_field(&self, caller: &Caller, object: &str, body: &str) -> Result<Field> {
        caller.require("objects", Action::Update)?;
        let FromObject(field): FromObject<Field> =
            serde_json::from_str(body).map_err(|error| not_a_definition("a field", &error))?;
        let name = object.to_owned();
        self.change_schema(caller, move |connection, catalogue| {
            Box::pin(async move {
                let object = stored(catalogue, &name)?;
                if object.definition.fields.iter().any(|known| known.name == field.name) {
                    return Err(Error::new(Code::InvalidSchema, format!("`{name}` has a field `{}` already.", field.name))
                        .with_field(field.name));
                }
                let key = connection.next_field_key(object.id).await?;
                object.keys.push(u32::try_from(key).map_err(Error::internal)?);
                object.definition.fields.push(field.clone());
                let entry = json!({ "op": "add_field", "object": name, "field": field });
                Ok(Edited { entry, object: name, op: "updated", fields_added: 1, answer: field })
            })
        })
        .await
    }

    /// Alters a field: any of its keys, a rename through `name`.
    ///
    /// # Errors
    /// `not_found`, `invalid_schema`; `invalid_schema_change` for a type that is not wider, or saying how many rows break a
    /// new rule.
    pub async fn alter_field(&self, caller: &Caller, object: &str, field: &str, changes: FieldChanges) -> Result<Field> {
        caller.require("objects", Action::Update)?;
        let (name, field) = (object.to_owned(), field.to_owned());
        self.change_schema(caller, move |_, catalogue| {
            Box::pin(async move {
                let object = &mut stored(catalogue, &name)?.definition;
                let place = field_place(object, &field)?;
                let before = object.fields[place].clone();
                let after = merged(&before, &changes)?;
                check_type(&before, &after)?;
                let groups = object.constraints.unique_together.iter_mut().chain(&mut object.indexes);
                for named in groups.flatten().filter(|named| **named == before.name) {
                    named.clone_from(&after.name);
                }
                object.fields[place] = after.clone();
                let entry = json!({ "op": "alter_field", "object": name, "field": field, "before": before, "after": after });
                Ok(Edited { entry, object: name, op: "updated", fields_added: 0, answer: after })
            })
        })
        .await
    }

    /// Drops a field with its values.
    ///
    /// # Errors
    /// `not_found`; `invalid_schema_change` where a group of columns names it.
    pub async fn drop_field(&self, caller: &Caller, object: &str, field: &str) -> Result<()> {
        caller.require("objects", Action::Update)?;
        let (name, field) = (object.to_owned(), field.to_owned());
        self.change_schema(caller, move |_, catalogue| {
            Box::pin(async move {
                let object = stored(catalogue, &name)?;
                let place = field_place(&object.definition, &field)?;
                check_groups(&object.definition, &field)?;
                object.keys.remove(place);
                let dropped = object.definition.fields.remove(place);
                let entry = json!({ "op": "drop_field", "object": name, "field": dropped });
                Ok(Edited { entry, object: name, op: "updated", fields_added: 0, answer: () })
            })
        })
        .await
    }
}

fn check_type(before: &Field, after: &Field) -> Result<()> {
    match widens(before.kind, after.kind) {
        true => Ok(()),
        false => Err(Error::new(
            Code::InvalidSchemaChange,
            format!(
                "`{}` cannot become {} from {}: a type only widens, integer to big_integer to decimal, integer to float, \
                 and any single value to text.",
                before.name,
                after.kind.name(),
                before.kind.name()
            ),
        )
        .with_field(before.name.clone())),
    }
}

/// Refuses to drop a column that a group of columns names.
pub(super) fn check_groups(object: &ObjectDefinition, column: &str) -> Result<()> {
    let mut groups = object.constraints.unique_together.iter().chain(&object.indexes).flatten();
    match groups.any(|name| name == column) {
        false => Ok(()),
        true => Err(Error::new(
            Code::InvalidSchemaChange,
            format!("`uniqueTogether` or `indexes` of `{}` name `{column}`; take it out of them first.", object.name),
        )
        .with_field(column)),
    }
}

fn field_place(object: &ObjectDefinition, field: &str) -> Result<usize> {
    object
        .fields
        .iter()
        .position(|known| known.name == field)
        .ok_or_else(|| Error::new(Code::NotFound, format!("`{}` has no field `{field}`.", object.name)))
}

/// The field with the changes laid over it. Where the type changes, rules that mean nothing to the new one go.
fn merged(before: &Field, changes: &FieldChanges) -> Result<Field> {
    let Value::Object(mut merged) = serde_json::to_value(before).map_err(Error::internal)? else {
        return Err(Error::internal("a field that is no JSON object"));
    };
    let mut given: Map<String, Value> = Map::new();
    for (key, raw) in &changes.0 {
        given.insert(key.clone(), serde_json::from_str(raw.get()).map_err(|error| not_a_definition("a field", &error))?);
    }
    let becomes_text = given.get("type").is_some_and(|kind| kind == "text") && !before.kind.is_textual();
    if becomes_text {
        for key in ["min", "max", "options", "scale"] {
            merged.remove(key);
        }
        if let Some(default) = merged.get_mut("default").filter(|default| !default.is_string()) {
            *default = Value::String(default.to_string());
        }
    }
    for (key, value) in given {
        match value {
            Value::Null => merged.remove(&key),
            value => merged.insert(key, value),
        };
    }
    // Unknown keys were laid over too, and are refused here.
    serde_json::from_value(Value::Object(merged)).map_err(|error| not_a_definition("a field", &error))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn types_only_widen() {
        for (from, to, fits) in [
            (FieldType::Integer, FieldType::BigInteger, true),
            (FieldType::Integer, FieldType::Decimal, true),
            (FieldType::Integer, FieldType::Float, true),
            (FieldType::BigInteger, FieldType::Float, false),
            (FieldType::BigInteger, FieldType::Integer, false),
            (FieldType::Date, FieldType::Text, true),
            (FieldType::Json, FieldType::Text, false),
            (FieldType::Text, FieldType::Email, false),
            (FieldType::Text, FieldType::Text, true),
        ] {
            assert_eq!(widens(from, to), fits, "{from:?} {to:?}");
        }
    }
}

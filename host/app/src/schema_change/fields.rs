//! Adds, alters and drops fields.

use blockbase_query::Action;
use blockbase_schema::json::{Members, parse_members, strict_from_str};
use blockbase_schema::{Code, Error, Field, FieldType, ObjectDefinition, Resource, Result};
use serde_json::value::RawValue;

use super::{Change, Edited, FieldChanges, Mode, Outcome, SchemaChange, not_a_definition, stored};
use crate::App;
use crate::caller::Caller;

/// Whether a field that has values may change to the type, because its values stay the same. A field without values may get any
/// type.
pub(super) fn widens(from: FieldType, to: FieldType) -> bool {
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
    /// Adds a field. Existing rows get its default.
    ///
    /// # Errors
    /// `invalid_schema`. `invalid_schema_change` for a required field without a default, if the object has rows.
    pub async fn add_field(&self, caller: &Caller, object: &str, body: &str, mode: Mode) -> Result<Change<Field>> {
        caller.require(Resource::Objects, Action::Update)?;
        let field: Field = strict_from_str(body).map_err(|misfit| not_a_definition("a field", &misfit))?;
        let name = object.to_owned();
        self.change_schema(caller, mode, vec![name.clone()], move |draft| {
            Box::pin(async move {
                let object = stored(draft.catalogue, &name)?;
                if object.definition.fields.iter().any(|known| known.name == field.name) {
                    return Err(Error::new(Code::InvalidSchema, format!("`{name}` already has a field `{}`.", field.name))
                        .with_field(field.name));
                }
                let key = draft.connection.next_field_key(object.id).await?;
                object.keys.push(u32::try_from(key).map_err(Error::internal)?);
                object.definition.fields.push(field.clone());
                let entry = SchemaChange::AddField { object: &name, field: &field }.entry()?;
                Ok(Edited { entry, object: name, outcome: Outcome::Updated, fields_added: 1, about: None, answer: field })
            })
        })
        .await
    }

    /// Changes any keys of a field. `name` renames the field.
    ///
    /// # Errors
    /// `not_found`, `invalid_schema`. `invalid_schema_change` if the object has rows and the type is not wider, or if rows break
    /// a new rule. The error then has the number of these rows.
    pub async fn alter_field(
        &self,
        caller: &Caller,
        object: &str,
        field: &str,
        changes: FieldChanges,
        mode: Mode,
    ) -> Result<Change<Field>> {
        caller.require(Resource::Objects, Action::Update)?;
        let (name, field) = (object.to_owned(), field.to_owned());
        self.change_schema(caller, mode, vec![name.clone()], move |draft| {
            Box::pin(async move {
                let stored = stored(draft.catalogue, &name)?;
                let place = field_place(&stored.definition, &field)?;
                let before = stored.definition.fields[place].clone();
                let after = merged(&before, &changes)?;
                let mut fields_added = 0;
                if !widens(before.kind, after.kind) {
                    // A new column replaces this one. When nobody else can write, `rows` checks that no row loses a value.
                    let key = draft.connection.next_field_key(stored.id).await?;
                    stored.keys[place] = u32::try_from(key).map_err(Error::internal)?;
                    fields_added = 1;
                }
                let object = &mut stored.definition;
                let groups = object.constraints.unique_together.iter_mut().chain(&mut object.indexes);
                for named in groups.flatten().filter(|named| **named == before.name) {
                    named.clone_from(&after.name);
                }
                object.fields[place] = after.clone();
                let change = SchemaChange::AlterField { object: &name, field: &field, before: &before, after: &after };
                let entry = change.entry()?;
                let about = Some((name.clone(), Some(field)));
                Ok(Edited { entry, object: name, outcome: Outcome::Updated, fields_added, about, answer: after })
            })
        })
        .await
    }

    /// Drops a field with its values. This needs the same permission as deleting an object, because both remove data.
    ///
    /// # Errors
    /// `not_found`; `invalid_schema_change` if a group of columns names it.
    pub async fn drop_field(&self, caller: &Caller, object: &str, field: &str, mode: Mode) -> Result<Change<()>> {
        caller.require(Resource::Objects, Action::Delete)?;
        let (name, field) = (object.to_owned(), field.to_owned());
        self.change_schema(caller, mode, vec![name.clone()], move |draft| {
            Box::pin(async move {
                let object = stored(draft.catalogue, &name)?;
                let place = field_place(&object.definition, &field)?;
                check_groups(&object.definition, &field)?;
                object.keys.remove(place);
                let dropped = object.definition.fields.remove(place);
                let entry = SchemaChange::DropField { object: &name, field: &dropped }.entry()?;
                let about = Some((name.clone(), Some(field)));
                Ok(Edited { entry, object: name, outcome: Outcome::Updated, fields_added: 0, about, answer: () })
            })
        })
        .await
    }
}

/// Refuses to drop a column that is in a group of columns.
pub(super) fn check_groups(object: &ObjectDefinition, column: &str) -> Result<()> {
    let mut groups = object.constraints.unique_together.iter().chain(&object.indexes).flatten();
    match groups.any(|name| name == column) {
        false => Ok(()),
        true => Err(Error::new(
            Code::InvalidSchemaChange,
            format!("`uniqueTogether` or `indexes` of `{}` name `{column}`. Remove it there first.", object.name),
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

/// The rules that have no meaning, or another meaning, for the new type.
fn meaningless(from: FieldType, to: FieldType) -> impl Fn(&str) -> bool {
    let has_same_bounds = from.is_numeric() && to.is_numeric() || from.is_textual() && to.is_textual();
    move |rule| match rule {
        "min" | "max" => !has_same_bounds,
        "pattern" => !to.is_textual(),
        "options" => !to.has_options(),
        "scale" => to.default_scale().is_none(),
        _ => false,
    }
}

/// The field with the changes applied. If the type changes, rules that have no meaning for the new type are removed.
fn merged(before: &Field, changes: &FieldChanges) -> Result<Field> {
    let text = |value: &str| RawValue::from_string(value.to_owned()).map_err(Error::internal);
    let Members(mut merged) = parse_members(&serde_json::to_string(before).map_err(Error::internal)?)?;
    let given = |key: &str| changes.0.iter().find(|(given, _)| given == key).map(|(_, raw)| raw.get());
    let becomes_text = given("type") == Some("\"text\"") && !before.kind.is_textual();
    if becomes_text {
        merged.retain(|(key, _)| !["min", "max", "options", "scale"].contains(&key.as_str()));
        // The values of the rows become the text in which answers showed them. The default changes in the same way.
        if before.default.as_ref().is_some_and(|default| !default.is_string())
            && let Some((_, default)) = merged.iter_mut().find(|(key, _)| key == "default")
        {
            let shown = before.default_shown()?.unwrap_or_default();
            *default = text(&serde_json::to_string(&shown).map_err(Error::internal)?)?;
        }
    }
    let kind = given("type").and_then(|kind| serde_json::from_str::<FieldType>(kind).ok());
    if let Some(kind) = kind.filter(|kind| !widens(before.kind, *kind)) {
        let is_meaningless = meaningless(before.kind, kind);
        merged.retain(|(key, _)| !is_meaningless(key));
    }
    for (key, raw) in &changes.0 {
        let place = merged.iter().position(|(known, _)| known == key);
        match (place, raw.get()) {
            (Some(place), "null") => drop(merged.remove(place)),
            (None, "null") => {}
            (Some(place), raw) => merged[place].1 = text(raw)?,
            (None, raw) => merged.push((key.clone(), text(raw)?)),
        }
    }
    // The unknown keys are merged too, and refused here.
    strict_from_str(&Members(merged).text()).map_err(|misfit| not_a_definition("a field", &misfit))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn changes_keep_the_digits_of_numbers() {
        let field: Field = serde_json::from_str(r#"{"name":"n","type":"decimal","max":123456789012.123456}"#).expect("a field");
        let changes = parse_members(r#"{"default":123456789012.123455,"min":null}"#).expect("changes");
        let after = merged(&field, &changes).expect("a field");
        let text = r#"{"name":"n","type":"decimal","default":123456789012.123455,"max":123456789012.123456}"#;
        assert_eq!(serde_json::to_string(&after).expect("JSON"), text);
        let changes = parse_members(r#"{"type":"text"}"#).expect("changes");
        let after = merged(&after, &changes).expect("a field");
        assert_eq!(after.default.expect("a default").text(), r#""123456789012.123455""#);
        assert!(merged(&field, &parse_members(r#"{"colour":1}"#).expect("changes")).is_err());
    }

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

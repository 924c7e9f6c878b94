//! An object: its definition as the API shows it, and its columns as operations use them.

use std::collections::HashMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::code::Code;
use crate::column::{Column, ColumnIndexes, ColumnType, INDEX_BYTES_MAX};
use crate::error::{Error, Result};
use crate::field::{Field, FieldType};
use crate::kept_texts::KeptTexts;
use crate::name::{NAME_PATTERN, USERS, check_field_name, check_object_name};
use crate::names_since::NamesSince;
use crate::optional::optional;
use crate::relationship::{Reference, Relationship, RelationshipKind};
use crate::system;

/// Rules between the records of an object.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
#[schemars(rename = "SvcConstraints")]
pub struct Constraints {
    /// Groups of columns. No two records may have the same values in all columns of a group.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub unique_together: Vec<Vec<String>>,
}

impl Constraints {
    fn is_empty(&self) -> bool {
        self.unique_together.is_empty()
    }
}

/// The definition of an object.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
#[schemars(rename = "SvcObject")]
pub struct ObjectDefinition {
    #[schemars(extend("pattern" = NAME_PATTERN))]
    pub name: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "optional::<String>")]
    pub label: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "optional::<String>")]
    pub description: Option<String>,
    #[serde(default)]
    pub fields: Vec<Field>,
    #[serde(default, skip_serializing_if = "Constraints::is_empty")]
    pub constraints: Constraints,
    /// Groups of columns, each of which has one index.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub indexes: Vec<Vec<String>>,
}

/// The number of the object `users`. The numbers of other objects begin with 1.
const USERS_ID: i64 = 0;
/// The number of a result that is no table. It is not stored.
const RESULT_ID: i64 = -1;

/// The maximum number of fields of one object. SQLite's own limits are 2,000 columns and 32,766 variables.
const FIELDS_MAX: usize = 300;
/// The maximum number of column groups in `uniqueTogether` or `indexes`.
const GROUPS_MAX: usize = 32;
/// The maximum number of columns in one group.
const GROUP_COLUMNS_MAX: usize = 8;

/// An object as the catalogue stores it.
#[derive(Clone, Debug)]
pub struct StoredObject {
    pub id: i64,
    pub revision: i64,
    pub definition: ObjectDefinition,
    /// The fields' numbers, in the fields' order.
    pub keys: Vec<u32>,
    /// Since when the object and its fields have their names.
    pub since: NamesSince,
}

/// An object of the live schema.
#[derive(Debug)]
pub struct Object {
    /// The number in the catalogue. Names of constraints and indexes contain it.
    pub id: i64,
    /// Increases by one with each change of the object or of its relationships.
    pub revision: i64,
    pub definition: ObjectDefinition,
    /// The fields' numbers, in the fields' order. A number is never reused within an object.
    pub keys: Vec<u32>,
    /// Since when the object and its fields have their names.
    pub since: NamesSince,
    /// The columns in the order in which records show them: id, the fields, the foreign keys, then the stamps.
    pub columns: Vec<Column>,
    /// Whether the object is reduced for a caller who may not read every field.
    pub is_partial: bool,
    /// Texts that are made from the object.
    pub texts: KeptTexts,
    by_name: HashMap<String, usize>,
}

/// The indexes of an object that begin with a column.
fn indexes_of(column: &Column, definition: &ObjectDefinition) -> ColumnIndexes {
    let begins = |group: &Vec<String>| group.first() == Some(&column.name);
    // Each object has an index of its ids, one of `created_at`, and one of `created_by`. Users have only the first of these columns.
    let is_system = |names: &[&str]| column.is_system && names.contains(&column.name.as_str());
    let is_declared = definition.fields.iter().any(|field| field.indexed && field.name == column.name);
    // The index of a list is not one of its elements.
    let lead_to_rows = column.ty != ColumnType::TextList
        && (is_system(&[system::ID, system::CREATED_BY])
            || column.unique
            || column.reference.is_some()
            || is_declared
            || definition.indexes.iter().any(begins));
    let order_rows = is_system(&[system::ID, system::CREATED_AT])
        || is_declared
        || definition.indexes.iter().any(|group| group.as_slice() == [column.name.as_str()]);
    let exist = lead_to_rows || order_rows || definition.constraints.unique_together.iter().any(begins);
    ColumnIndexes { exist, lead_to_rows, order_rows }
}

impl Object {
    /// Checks a definition and makes its columns. `relationships` are all relationships. Each one with a foreign key on this object adds
    /// a column, and `number_of` returns the number of the object that it refers to.
    ///
    /// # Errors
    /// `invalid_schema`, which names the wrong name or key.
    pub fn new<'a>(
        stored: StoredObject,
        relationships: impl IntoIterator<Item = &'a Relationship>,
        number_of: impl Fn(&str) -> Option<i64>,
    ) -> Result<Object> {
        let StoredObject { id, revision, definition, keys, since } = stored;
        check_object_name(&definition.name)?;
        if definition.fields.len() > FIELDS_MAX {
            return Err(Error::new(Code::InvalidSchema, format!("An object has {FIELDS_MAX} fields at most.")));
        }
        let mut columns = vec![Column::system(system::ID)];
        for (field, key) in definition.fields.iter().zip(&keys) {
            check_field_name(&field.name)?;
            columns.push(Column::of_field(field, *key)?);
        }
        for relationship in relationships {
            let known = &relationship.definition;
            if known.holder() == Some(&definition.name) {
                columns.push(Column::foreign_key(
                    format!("{}_id", known.name),
                    known.required,
                    known.kind == RelationshipKind::OneToOne,
                    Reference {
                        relationship_id: relationship.id,
                        target: known.referenced().to_owned(),
                        target_id: number_of(known.referenced()).unwrap_or_default(),
                        on_delete: known.on_delete(),
                    },
                ));
            }
        }
        columns.extend([system::CREATED_AT, system::UPDATED_AT, system::CREATED_BY, system::UPDATED_BY].map(Column::system));
        for column in columns.iter_mut().filter(|column| !column.is_system) {
            column.named_since = since.of_field(&column.catalogue_key());
        }
        let mut by_name = HashMap::with_capacity(columns.len());
        for (index, column) in columns.iter().enumerate() {
            if by_name.insert(column.name.clone(), index).is_some() {
                return Err(Error::new(
                    Code::InvalidSchema,
                    format!("`{}` would have two columns named `{}`.", definition.name, column.name),
                )
                .with_field(column.name.clone()));
            }
        }
        for group in definition.constraints.unique_together.iter().chain(&definition.indexes) {
            for index in group.iter().filter_map(|name| by_name.get(name)) {
                let share = INDEX_BYTES_MAX / group.len().max(1);
                let bound = &mut columns[*index].index_bytes_max;
                *bound = Some(bound.map_or(share, |bound| bound.min(share)));
            }
        }
        for group in &definition.indexes {
            for index in group.iter().filter_map(|name| by_name.get(name)) {
                columns[*index].is_sorted = true;
            }
        }
        for column in &mut columns {
            column.indexes = indexes_of(column, &definition);
        }
        let texts = KeptTexts::default();
        let object = Object { id, revision, definition, keys, since, columns, is_partial: false, texts, by_name };
        object.check_groups("constraints.uniqueTogether", &object.definition.constraints.unique_together, 2)?;
        object.check_groups("indexes", &object.definition.indexes, 1)?;
        Ok(object)
    }

    fn check_groups(&self, key: &str, groups: &[Vec<String>], columns_min: usize) -> Result<()> {
        let refuse = |message: String| Err(Error::new(Code::InvalidSchema, message));
        if groups.len() > GROUPS_MAX {
            return refuse(format!("`{key}` holds {GROUPS_MAX} groups at most."));
        }
        for (place, group) in groups.iter().enumerate() {
            if groups[..place].contains(group) {
                return refuse(format!("`{key}` names the group {} twice.", group.join(", ")));
            }
            if group.len() < columns_min || group.len() > GROUP_COLUMNS_MAX {
                return refuse(format!("Each group of `{key}` has {columns_min} to {GROUP_COLUMNS_MAX} columns."));
            }
            for (index, name) in group.iter().enumerate() {
                match self.column(name) {
                    None => return refuse(format!("`{key}` names `{name}`, which is not a column of `{}`.", self.name())),
                    Some(column) if matches!(column.kind, FieldType::Json | FieldType::MultiEnum) => {
                        return refuse(format!("`{key}` names `{name}`, whose type {} has no order.", column.kind.name()));
                    }
                    Some(_) if group[..index].contains(name) => {
                        return refuse(format!("`{key}` names `{name}` twice in one group."));
                    }
                    Some(_) => {}
                }
            }
        }
        Ok(())
    }

    /// The object for a caller who may read only some of its columns. `id` is always among them. If a column is not `whole`, the
    /// caller may get null instead of its value, so it is not required in the result.
    pub fn to_read(&self, is_known: impl Fn(&Column) -> bool, is_whole: impl Fn(&Column) -> bool) -> Object {
        let mut object = self.to_write(is_known);
        object.is_partial = true;
        for column in object.columns.iter_mut().filter(|column| column.name != system::ID && !is_whole(column)) {
            column.required = false;
        }
        object
    }

    /// The object for a caller who may write only some of its columns. `id` is always among them.
    pub fn to_write(&self, is_known: impl Fn(&Column) -> bool) -> Object {
        let is_known = |column: &Column| column.name == system::ID || is_known(column);
        let columns: Vec<Column> = self.columns.iter().filter(|column| is_known(column)).cloned().collect();
        let by_name: HashMap<String, usize> =
            columns.iter().enumerate().map(|(place, column)| (column.name.clone(), place)).collect();
        let mut definition = self.definition.clone();
        let fields = std::mem::take(&mut definition.fields).into_iter().zip(&self.keys);
        let (fields, keys) = fields.filter(|(field, _)| by_name.contains_key(&field.name)).unzip();
        definition.fields = fields;
        for groups in [&mut definition.constraints.unique_together, &mut definition.indexes] {
            groups.retain(|group| group.iter().all(|name| by_name.contains_key(name)));
        }
        // Nobody asks a part of an object since when it has its name, and its columns have their own numbers.
        let (since, texts) = (NamesSince::default(), KeptTexts::default());
        Object { id: self.id, revision: self.revision, definition, keys, since, columns, is_partial: false, texts, by_name }
    }

    /// The users of the service as records, which relationships can lead to. They are read like the records of any object, but
    /// only written under `/api/v1/users`.
    ///
    /// # Errors
    /// This definition causes no errors.
    pub(crate) fn users() -> Result<Object> {
        let definition = serde_json::json!({
            "name": USERS,
            "label": "Users",
            "description": "The users of the service.",
            "fields": [
                { "name": "name", "type": "text" },
                { "name": "image", "type": "text" },
                { "name": "email", "type": "email", "isUnique": true },
            ],
        });
        let definition: ObjectDefinition = serde_json::from_value(definition).map_err(Error::internal)?;
        let keys = vec![1, 2, 3];
        let mut columns = vec![Column::system(system::ID)];
        for (field, key) in definition.fields.iter().zip(&keys) {
            columns.push(Column::of_field(field, *key)?);
        }
        for column in &mut columns {
            column.indexes = indexes_of(column, &definition);
        }
        let by_name = columns.iter().enumerate().map(|(place, column)| (column.name.clone(), place)).collect();
        let (since, texts) = (NamesSince::default(), KeptTexts::default());
        Ok(Object { id: USERS_ID, revision: 0, definition, keys, since, columns, is_partial: false, texts, by_name })
    }

    /// The rows of a result that is no table, for conditions on them. A name that several columns have leads to none of them.
    pub fn of_result(name: &str, columns: Vec<Column>) -> Object {
        let mut by_name = HashMap::with_capacity(columns.len());
        let mut repeated = Vec::new();
        for (index, column) in columns.iter().enumerate() {
            if by_name.insert(column.name.clone(), index).is_some() {
                repeated.push(&column.name);
            }
        }
        for name in repeated {
            by_name.remove(name);
        }
        let definition = ObjectDefinition {
            name: name.to_owned(),
            label: None,
            description: None,
            fields: Vec::new(),
            constraints: Constraints::default(),
            indexes: Vec::new(),
        };
        let (keys, since, texts) = (Vec::new(), NamesSince::default(), KeptTexts::default());
        Object { id: RESULT_ID, revision: 0, definition, keys, since, columns, is_partial: false, texts, by_name }
    }

    /// Whether the object's records are the users of the service.
    pub fn is_users(&self) -> bool {
        self.id == USERS_ID
    }

    /// Whether there is an index for `search`. Users have none.
    pub fn has_search_index(&self) -> bool {
        self.is_searchable() && !self.is_users()
    }

    pub fn name(&self) -> &str {
        &self.definition.name
    }

    pub fn column(&self, name: &str) -> Option<&Column> {
        self.by_name.get(name).map(|index| &self.columns[*index])
    }

    /// This object's column that corresponds to `other`, a column of another version. The column may have been renamed.
    pub fn same_column(&self, other: &Column) -> Option<&Column> {
        let key = other.catalogue_key();
        self.columns.iter().find(|column| column.catalogue_key() == key)
    }

    /// Whether `columns`, in any order, are a declared unique target: `id`, a unique field or a group of `uniqueTogether`.
    pub fn is_unique_target(&self, columns: &[String]) -> bool {
        match columns {
            [column] => self.column(column).is_some_and(|column| column.unique),
            _ => self
                .definition
                .constraints
                .unique_together
                .iter()
                .any(|group| group.len() == columns.len() && group.iter().all(|name| columns.contains(name))),
        }
    }

    /// The declared unique targets: `id`, then unique fields, then groups. Each target is the list of its columns' indexes.
    pub fn unique_targets(&self) -> Vec<Vec<usize>> {
        let singles = (0..self.columns.len()).filter(|index| self.columns[*index].unique).map(|index| vec![index]);
        let groups = self.definition.constraints.unique_together.iter();
        singles.chain(groups.map(|group| group.iter().filter_map(|name| self.column_index(name)).collect())).collect()
    }

    /// The names of the declared unique targets, in the form of `on_conflict`: columns separated by commas.
    pub fn unique_target_names(&self) -> Vec<String> {
        let names =
            |target: &Vec<usize>| target.iter().map(|index| self.columns[*index].name.as_str()).collect::<Vec<_>>().join(",");
        self.unique_targets().iter().map(names).collect()
    }

    /// Whether `search` can search in any column.
    pub fn is_searchable(&self) -> bool {
        self.columns.iter().any(Column::is_searchable)
    }

    /// The index of a column in `columns`.
    pub fn column_index(&self, name: &str) -> Option<usize> {
        self.by_name.get(name).copied()
    }
}

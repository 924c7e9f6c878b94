//! Relationships between objects, and the keys under which records show them.

use schemars::{JsonSchema, Schema};
use serde::{Deserialize, Serialize};

use crate::code::Code;
use crate::error::{Error, Result};
use crate::name::{NAME_PATTERN, USERS, check_field_name};
use crate::optional::optional;

/// How many records each side can have.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
#[schemars(inline)]
pub enum RelationshipKind {
    ManyToOne,
    OneToOne,
    OneToMany,
    ManyToMany,
}

/// What happens to the records that refer to a deleted record.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
#[schemars(inline)]
pub enum OnDelete {
    // The deletion is refused. (With doc comments the schema would be a list of schemas, and no `enum`.)
    Restrict,
    // The referring records are deleted too.
    Cascade,
    // The referring records then refer to nothing.
    SetNull,
}

// The check sets `onDelete`, so every response has it.
fn with_on_delete(schema: &mut Schema) {
    if let Some(required) = schema.get_mut("required").and_then(|required| required.as_array_mut()) {
        required.push("onDelete".into());
    }
}

/// The definition of a relationship.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
#[schemars(inline)]
pub struct RelationshipDefinition {
    #[schemars(extend("pattern" = NAME_PATTERN))]
    pub name: String,
    pub kind: RelationshipKind,
    pub source: String,
    pub target: String,
    #[serde(default)]
    pub required: bool,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "optional::<OnDelete>")]
    pub on_delete: Option<OnDelete>,
}

/// A relationship of the live schema.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
#[schemars(rename = "SvcRelationship", deny_unknown_fields, transform = with_on_delete)]
pub struct Relationship {
    /// Number in the catalogue.
    // The number of the relationship. Names of constraints and of the link table contain it.
    pub id: i64,
    #[serde(flatten)]
    pub definition: RelationshipDefinition,
}

impl RelationshipDefinition {
    /// Checks everything that does not need the objects, and sets `onDelete` if it is missing.
    ///
    /// # Errors
    /// `invalid_schema`.
    pub fn checked(mut self) -> Result<RelationshipDefinition> {
        let refuse = |message: String| Err(Error::new(Code::InvalidSchema, message));
        check_field_name(&self.name)?;
        let is_linked = self.kind == RelationshipKind::ManyToMany;
        if self.required && is_linked {
            return refuse(format!("`{}` is many_to_many, which cannot be required.", self.name));
        }
        if self.source == USERS || (self.target == USERS && self.kind == RelationshipKind::OneToMany) {
            return refuse(format!(
                "`{}`: `{USERS}` cannot have fields. It can only be the target of a reference or of links.",
                self.name
            ));
        }
        if self.target == USERS {
            // Nothing may prevent the deletion of a user, so a reference to users cannot restrict it.
            if self.on_delete == Some(OnDelete::Restrict) {
                return refuse(format!("`onDelete` of `{}` cannot be restrict: users can always be deleted.", self.name));
            }
            if self.required && self.on_delete != Some(OnDelete::Cascade) {
                return refuse(format!("`{}` is required, so its `onDelete` has to be cascade.", self.name));
            }
            if !is_linked {
                self.on_delete.get_or_insert(OnDelete::SetNull);
            }
        }
        if self.on_delete == Some(OnDelete::SetNull) && (self.required || is_linked) {
            let why = if is_linked { "many_to_many; it has nothing to set to null" } else { "required" };
            return refuse(format!("`onDelete` of `{}` cannot be set_null: the relationship is {why}.", self.name));
        }
        // A link only says that two records belong together. So by default, it is deleted with either of them.
        let default = if is_linked { OnDelete::Cascade } else { OnDelete::Restrict };
        self.on_delete.get_or_insert(default);
        Ok(self)
    }

    pub fn on_delete(&self) -> OnDelete {
        self.on_delete.unwrap_or(OnDelete::Restrict)
    }

    /// The object with the foreign key, if there is one.
    pub fn holder(&self) -> Option<&str> {
        match self.kind {
            RelationshipKind::ManyToOne | RelationshipKind::OneToOne => Some(&self.source),
            RelationshipKind::OneToMany => Some(&self.target),
            RelationshipKind::ManyToMany => None,
        }
    }

    /// The object that the foreign key refers to.
    pub fn referenced(&self) -> &str {
        match self.kind {
            RelationshipKind::OneToMany => &self.source,
            _ => &self.target,
        }
    }

    /// Whether the deletion of the object `name` would change another object because of this relationship.
    pub fn is_needed_besides(&self, name: &str) -> bool {
        let is_between_two = self.source != self.target && (self.source == name || self.target == name);
        is_between_two && (self.source != name || self.kind == RelationshipKind::OneToMany)
    }

    pub fn involves(&self, name: &str) -> bool {
        self.source == name || self.target == name
    }
}

/// The foreign key behind a column.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Reference {
    pub relationship_id: i64,
    /// The object that the key refers to.
    pub target: String,
    /// The number of this object.
    pub target_id: i64,
    pub on_delete: OnDelete,
}

/// The way to find the related records.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RelationShape {
    /// With this object's foreign key: one record or null. `column` is the column's index in this object.
    Forward { column: usize },
    /// With the related object's foreign key: an array. For one_to_one, a record or null. `column` is the column's index in that
    /// object.
    Reverse { column: usize, is_single: bool },
    /// With the table of links: an array.
    Linked { relationship_id: i64, is_source: bool },
}

impl RelationShape {
    /// Whether the key leads to at most one record.
    pub fn is_single(self) -> bool {
        match self {
            RelationShape::Forward { .. } => true,
            RelationShape::Reverse { is_single, .. } => is_single,
            RelationShape::Linked { .. } => false,
        }
    }
}

/// A relationship as seen from one of its objects.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Relation {
    /// The key, for example `owner`, or `task_by_owner` on the other side.
    pub key: String,
    pub relationship_id: i64,
    /// The name of the related object.
    pub related: String,
    pub shape: RelationShape,
}

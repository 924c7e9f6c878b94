//! The rules for names of objects and fields.

use crate::code::Code;
use crate::error::{Error, Result};
use crate::resource::Resource;
use crate::system;

/// The maximum length of a name, in characters.
const NAME_CHARS_MAX: usize = 48;

/// The name of the object whose records are the users of the service. It is also the resource of their permissions.
pub const USERS: &str = "users";

/// Prefixes that belong to the service and to the engines.
const RESERVED_PREFIXES: [&str; 3] = ["svc_", "sqlite_", "pg_"];

/// Names of the engines' own columns and table functions.
const ENGINE_COLUMNS: [&str; 9] = ["ctid", "xmin", "xmax", "cmin", "cmax", "tableoid", "rowid", "oid", "_rowid_"];
const ENGINE_TABLES: [&str; 3] = ["json_each", "json_tree", "excluded"];

/// The rule of [`is_name`] as a regular expression, for documents.
pub const NAME_PATTERN: &str = "^[a-z][a-z0-9_]{0,47}$";

/// Whether `text` matches [`NAME_PATTERN`].
pub fn is_name(text: &str) -> bool {
    let bytes = text.as_bytes();
    bytes.len() <= NAME_CHARS_MAX
        && bytes.first().is_some_and(u8::is_ascii_lowercase)
        && bytes.iter().all(|byte| byte.is_ascii_lowercase() || byte.is_ascii_digit() || *byte == b'_')
}

fn check_name(what: &str, name: &str) -> Result<()> {
    if !is_name(name) {
        return Err(Error::new(
            Code::InvalidSchema,
            format!(
                "{what} names are 1 to {NAME_CHARS_MAX} lower-case letters, digits and `_`, and begin with a letter; \
                 {name:?} is not."
            ),
        ));
    }
    match RESERVED_PREFIXES.iter().find(|prefix| name.starts_with(**prefix)) {
        Some(prefix) => Err(Error::new(
            Code::InvalidSchema,
            format!("{what} names beginning with `{prefix}` are reserved; choose another for `{name}`."),
        )),
        None => Ok(()),
    }
}

/// Checks an object's name against the form and the reserved names.
pub fn check_object_name(name: &str) -> Result<()> {
    check_name("Object", name)?;
    if ENGINE_TABLES.contains(&name) {
        return Err(Error::new(
            Code::InvalidSchema,
            format!("`{name}` is a name of the database engines; choose another object name."),
        ));
    }
    if Resource::named(name).is_some() {
        return Err(Error::new(
            Code::InvalidSchema,
            format!("`{name}` is a permission resource of the service; choose another object name."),
        ));
    }
    Ok(())
}

/// Checks a field's name against the form and the reserved names.
pub fn check_field_name(name: &str) -> Result<()> {
    check_name("Field", name)?;
    if system::NAMES.contains(&name) {
        return Err(Error::new(
            Code::InvalidSchema,
            format!("Every object has a system column `{name}`; choose another field name."),
        )
        .with_field(name));
    }
    if ENGINE_COLUMNS.contains(&name) {
        return Err(Error::new(
            Code::InvalidSchema,
            format!("`{name}` is a column of the database engines; choose another field name."),
        )
        .with_field(name));
    }
    Ok(())
}

/// Names that the GraphQL schema has for any objects. A name of a type follows `type `, and a name of a field follows `query ` or
/// `mutation `.
const GRAPHQL_RESERVED: [&str; 18] = [
    "String",
    "Int",
    "Float",
    "Boolean",
    "Id",
    "ID",
    "Json",
    "DateTime",
    "Query",
    "Mutation",
    "Subscription",
    "Event",
    "FilterInput",
    "FilterOperator",
    "SortInput",
    "SortDirection",
    "PaginationMeta",
    "AggregateFunction",
];

/// Turns `order_item` into `OrderItem`.
pub fn pascal_case(name: &str) -> String {
    name.split('_')
        .map(|word| {
            let mut characters = word.chars();
            characters.next().map(|first| first.to_ascii_uppercase()).into_iter().chain(characters).collect::<String>()
        })
        .collect()
}

/// The names that an object uses in GraphQL, each with its kind before it. `linked` are its many_to_many keys.
///
/// # Errors
/// `invalid_schema` if GraphQL itself or every schema needs one of the names.
pub(crate) fn graphql_names(object: &str, linked: &[&str]) -> Result<Vec<String>> {
    let ty = pascal_case(object);
    if GRAPHQL_RESERVED.contains(&ty.as_str()) || ty == "AggregateResult" {
        return Err(Error::new(
            Code::InvalidSchema,
            format!("`{object}` would be `{ty}` in GraphQL, which every schema has; choose another object name."),
        ));
    }
    let mut names: Vec<String> = ["", "_aggregate", "_by_id"].iter().map(|suffix| format!("query {object}{suffix}")).collect();
    names.extend(["create", "update", "upsert", "delete"].iter().map(|verb| format!("mutation {verb}_{object}")));
    for key in linked {
        names.extend(["link", "unlink"].iter().map(|verb| format!("mutation {verb}_{object}_{key}")));
    }
    names.extend(["", "CreateInput", "UpdateInput", "IncrementInput"].iter().map(|suffix| format!("type {ty}{suffix}")));
    Ok(names)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_have_the_documented_form() {
        let pattern = regex::Regex::new(NAME_PATTERN).expect("a pattern");
        for good in ["a", "task", "order_item2", &"a".repeat(48)] {
            assert!(is_name(good) && pattern.is_match(good), "{good}");
        }
        for bad in ["", "Task", "2nd", "_x", "a-b", "a b", "é", "a\"b", &"a".repeat(49)] {
            assert!(!is_name(bad) && !pattern.is_match(bad), "{bad}");
        }
    }

    #[test]
    fn reserved_names_are_refused() {
        for name in ["svc_x", "sqlite_master", "pg_class", "users", "data"] {
            assert!(check_object_name(name).is_err(), "{name}");
        }
        for name in ["id", "created_at", "updated_by"] {
            assert!(check_field_name(name).is_err(), "{name}");
        }
    }
}

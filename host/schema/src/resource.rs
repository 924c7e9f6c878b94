//! The list of the platform's resources. Grants can name these in addition to objects.
//!
//! Checks of grants, admission, the OpenAPI document and the list of a role's rights use this list. Tests compare `docs/auth.md` and the
//! console with it.

use crate::action::Action;

crate::listed! {
    /// A resource of the platform. Its name is never an object's.
    #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
    pub enum Resource {
        /// The gate of GraphQL and MCP.
        Data,
        /// The schema.
        Objects,
        Events,
        Blocks,
        Users,
        Roles,
        ApiKeys,
        Webhooks,
        Tasks,
        /// Configuration and status.
        Settings,
    }
}

impl Resource {
    /// The resource's name in grants.
    pub const fn name(self) -> &'static str {
        match self {
            Resource::Data => "data",
            Resource::Objects => "objects",
            Resource::Events => "events",
            Resource::Blocks => "blocks",
            Resource::Users => "users",
            Resource::Roles => "roles",
            Resource::ApiKeys => "api_keys",
            Resource::Webhooks => "webhooks",
            Resource::Tasks => "tasks",
            Resource::Settings => "settings",
        }
    }

    /// Whether the resource has rows that belong to callers, so that a grant for own rows makes sense.
    pub const fn has_own_rows(self) -> bool {
        match self {
            Resource::Users | Resource::ApiKeys => true,
            Resource::Data
            | Resource::Objects
            | Resource::Events
            | Resource::Blocks
            | Resource::Roles
            | Resource::Webhooks
            | Resource::Tasks
            | Resource::Settings => false,
        }
    }

    /// The actions that at least one operation on the resource needs. A grant may name other actions, but they give no rights.
    /// `manage` is listed if an operation needs `manage` itself. On every resource, `manage` includes all other actions.
    pub const fn actions(self) -> &'static [Action] {
        match self {
            // In addition to this right, callers of GraphQL and MCP need the rights on the things that they read and write.
            Resource::Data | Resource::Settings => &[Action::Read],
            Resource::Blocks => &Action::ALL,
            Resource::Objects
            | Resource::Events
            | Resource::Users
            | Resource::Roles
            | Resource::ApiKeys
            | Resource::Webhooks
            | Resource::Tasks => &[Action::Create, Action::Read, Action::Update, Action::Delete],
        }
    }

    /// The resource with this name.
    pub fn named(name: &str) -> Option<Resource> {
        Resource::ALL.iter().copied().find(|resource| resource.name() == name)
    }
}

impl AsRef<str> for Resource {
    fn as_ref(&self) -> &str {
        self.name()
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use regex::Regex;

    use super::*;
    use crate::listed::table_rows;

    fn names(chosen: impl Fn(Resource) -> bool) -> BTreeSet<&'static str> {
        Resource::ALL.iter().copied().filter(|resource| chosen(*resource)).map(Resource::name).collect()
    }

    fn found<'t>(text: &'t str, expression: &str) -> Vec<&'t str> {
        let expression = Regex::new(expression).expect("an expression");
        expression.captures_iter(text).map(|captures| captures.get(1).expect("a group").as_str()).collect()
    }

    /// The text of the console's constant that begins with `start`, up to the line that ends it.
    fn constant<'t>(file: &'t str, start: &str, end: &str) -> &'t str {
        let (_, rest) = file.split_once(start).unwrap_or_else(|| panic!("no {start}"));
        rest.split_once(end).expect("the constant's end").0
    }

    #[test]
    fn each_name_is_one_resource() {
        assert_eq!(names(|_| true).len(), Resource::ALL.len());
        for resource in Resource::ALL {
            assert_eq!(Resource::named(resource.name()), Some(*resource));
        }
        assert_eq!(Resource::named("task"), None);
    }

    #[test]
    fn the_documentation_has_every_resource_once() {
        let page = include_str!("../../../docs/auth.md");
        let rows = table_rows(page, "| resource | what it gates |");
        let cells = rows.iter().map(|row| row.split('|').nth(1).expect("a first cell"));
        let documented: Vec<&str> = cells.flat_map(|cell| found(cell, "`([a-z_]+)`")).collect();
        assert_eq!(documented.len(), Resource::ALL.len(), "{documented:?}");
        assert_eq!(documented.into_iter().collect::<BTreeSet<_>>(), names(|_| true), "the table in docs/auth.md");
    }

    #[test]
    fn the_documentation_has_the_actions_of_every_resource() {
        for row in table_rows(include_str!("../../../docs/auth.md"), "| resource | what it gates | actions |") {
            let cells: Vec<&str> = row.split('|').collect();
            for name in found(cells[1], "`([a-z_]+)`") {
                let resource = Resource::named(name).expect("a resource");
                let actions: Vec<&str> = resource.actions().iter().map(|action| action.name()).collect();
                assert_eq!(found(cells[3], "`([a-z]+)`"), actions, "the actions of {name} in docs/auth.md");
            }
        }
    }

    #[test]
    fn the_console_knows_the_actions_of_every_resource() {
        let roles = include_str!("../../../console/src/screens/roles/roles.ts");
        let listed = constant(roles, "export const NEEDED: Record<string, readonly Action[]> = {\n", "};");
        let wanted = Resource::ALL.iter().map(|resource| {
            let actions: Vec<String> = resource.actions().iter().map(|action| format!("{:?}", action.name())).collect();
            format!("  {}: [{}],\n", resource.name(), actions.join(", "))
        });
        assert_eq!(listed, wanted.collect::<String>());
    }

    #[test]
    fn the_documentation_says_where_own_rows_are() {
        let page = include_str!("../../../docs/auth.md");
        let sentence = constant(page, "A grant without it beats one with it.", "on other\n");
        assert_eq!(found(sentence, "[Oo]n `([a-z_]+)`").into_iter().collect::<BTreeSet<_>>(), names(Resource::has_own_rows));
    }

    #[test]
    fn the_console_knows_every_resource() {
        let forms = include_str!("../../../console/src/screens/objects/model/names.ts");
        let reserved = found(constant(forms, "const RESERVED_OBJECTS = [", "];"), r#""([a-z_]+)""#);
        let roles = include_str!("../../../console/src/screens/roles/roles.ts");
        let described =
            found(constant(roles, "export const PLATFORM: Record<string, string> = {", "\n};"), r"(?m)^  ([a-z_]+): ");
        for list in [reserved, described] {
            assert_eq!(list, Resource::ALL.iter().map(|resource| resource.name()).collect::<Vec<_>>());
        }
    }

    #[test]
    fn the_console_knows_where_own_rows_are() {
        let roles = include_str!("../../../console/src/screens/roles/roles.ts");
        let owned = constant(roles, "export const OWN_ROWS: Record<string, RowWords> = {", "\n};");
        let listed = found(owned, r"(?m)^  ([a-z_]+): ");
        assert_eq!(listed.into_iter().collect::<BTreeSet<_>>(), names(Resource::has_own_rows));
    }
}

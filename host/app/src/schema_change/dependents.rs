//! Finds the things that depend on an object or on one of its columns.
//!
//! Only a thing that names the object depends on it. A thing that covers all objects, such as a role with `*` or a webhook on
//! `data.#`, still works without it. A caller who may not read a kind of things sees only their number.

use std::collections::HashSet;
use std::sync::Arc;

use blockbase_query::topic::{Reach, TopicPattern};
use blockbase_query::{Action, Grant, RowPolicy};
use blockbase_schema::{Code, Column, Error, Object, Registry, Relationship, Resource, Result};
use blockbase_store::{Connection, Cost, Read};
use schemars::JsonSchema;
use serde::Serialize;
use serde_json::Value;

use crate::App;
use crate::access::identity::grants;
use crate::base::stored::Place;
use crate::caller::Caller;
use crate::state::block_types::InstalledBlock;
use crate::state::manifest::DataPermission;
use crate::state::persist_config::{PERSIST_EVENT, PersistConfig};

/// The detail for a thing that cannot be read in the database. Such a thing may depend on the object.
const UNREADABLE: &str = "cannot be read in the database, so it may depend on this";

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
#[schemars(inline)]
pub enum DependentKind {
    Relationship,
    Unique,
    Index,
    Role,
    Webhook,
    Subscription,
    Block,
    Task,
}

impl DependentKind {
    /// The permission resource that a caller has to read to see this kind of things.
    fn resource(self) -> Resource {
        match self {
            DependentKind::Relationship | DependentKind::Unique | DependentKind::Index => Resource::Objects,
            DependentKind::Role => Resource::Roles,
            DependentKind::Webhook => Resource::Webhooks,
            DependentKind::Subscription => Resource::Events,
            DependentKind::Block => Resource::Blocks,
            DependentKind::Task => Resource::Tasks,
        }
    }
}

/// Something that depends on an object or a column.
#[derive(Clone, Debug, Serialize, JsonSchema)]
#[schemars(rename = "SvcDependent", deny_unknown_fields)]
pub struct Dependent {
    pub kind: DependentKind,
    pub name: String,
    /// Its id in the API: an id, the number of a relationship, or the name of a consumer group or block. Null if it has none.
    pub id: Option<String>,
    /// A text for people that says how it depends on the object or column.
    pub detail: String,
}

/// The search for things that depend on an object, or on one of its columns.
pub(super) struct Dependents<'a> {
    registry: &'a Registry,
    object: &'a str,
    field: Option<&'a str>,
    found: Vec<Dependent>,
}

impl App {
    /// The things that depend on an object, or on one of its columns. Returns those that the caller may read, and the number of the
    /// others.
    ///
    /// # Errors
    /// `not_found` for an unknown object or column.
    pub async fn dependents(&self, caller: &Caller, object: &str, field: Option<&str>) -> Result<(Vec<Dependent>, usize)> {
        caller.require(Resource::Objects, Action::Read)?;
        self.on_schema(caller, |registry| {
            let (asker, caller, blocks) = (caller, caller.clone(), Arc::clone(&self.blocks.read()));
            let (name, field) = (object.to_owned(), field.map(str::to_owned));
            async move {
                let known = registry.object(&name).filter(|object| !object.is_users());
                let known = known.ok_or_else(|| Error::unknown_object(&name))?;
                if let Some(field) = &field
                    && known.column(field).is_none_or(|column| column.is_system)
                {
                    return Err(Error::new(Code::NotFound, format!("`{name}` has no field `{field}`.")));
                }
                let read = Read { schema: registry.version, cost: Cost::Scan, tables_of_one_moment: None };
                self.read_metered(asker, read, move |connection| {
                    let (registry, caller, blocks) = (Arc::clone(&registry), caller.clone(), Arc::clone(&blocks));
                    let (name, field) = (name.clone(), field.clone());
                    Box::pin(async move {
                        let dependents = Dependents::of(&registry, &name, field.as_deref());
                        dependents.collect(connection, &caller, blocks.values()).await
                    })
                })
                .await
            }
        })
        .await
    }
}

impl<'a> Dependents<'a> {
    /// The parts of the schema itself that depend on the object or column.
    pub(super) fn of(registry: &'a Registry, object: &'a str, field: Option<&'a str>) -> Dependents<'a> {
        let mut dependents = Dependents { registry, object, field, found: Vec::new() };
        for relationship in registry.relationships() {
            dependents.add_relationship(registry, relationship);
        }
        if let Some(field) = field {
            dependents.add_groups(registry, object, field);
        }
        dependents
    }

    /// Adds things from the database and the installed blocks. Returns the things that the caller may see, and the number of the
    /// others.
    pub(super) async fn collect<'b>(
        mut self,
        connection: &mut Connection,
        caller: &Caller,
        blocks: impl Iterator<Item = &'b Arc<InstalledBlock>>,
    ) -> Result<(Vec<Dependent>, usize)> {
        if self.field.is_none() {
            self.add_roles(connection).await?;
            self.add_webhooks(connection).await?;
        }
        self.add_conditions(connection).await?;
        self.add_subscriptions(connection).await?;
        let blocks = self.add_blocks(blocks);
        self.add_tasks(connection, &blocks).await?;
        let all = self.found.len();
        self.found.retain(|dependent| caller.holds(dependent.kind.resource(), Action::Read));
        let hidden = all - self.found.len();
        Ok((self.found, hidden))
    }

    fn add(&mut self, kind: DependentKind, name: impl Into<String>, id: Option<String>, detail: impl Into<String>) {
        self.found.push(Dependent { kind, name: name.into(), id, detail: detail.into() });
    }

    fn add_relationship(&mut self, registry: &Registry, relationship: &Relationship) {
        let definition = &relationship.definition;
        let column = format!("{}_id", definition.name);
        let is_one = match self.field {
            None => definition.involves(self.object),
            Some(field) => definition.holder() == Some(self.object) && column == field,
        };
        if !is_one {
            return;
        }
        let kind = serde_json::to_value(definition.kind).unwrap_or_default();
        let kind = kind.as_str().unwrap_or_default();
        let detail = format!("{kind} from `{}` to `{}`", definition.source, definition.target);
        self.add(DependentKind::Relationship, &definition.name, Some(relationship.id.to_string()), detail);
        // Groups of another object with a foreign key to this object are dropped together with the key.
        if self.field.is_none()
            && let Some(holder) = definition.holder().filter(|holder| *holder != self.object)
        {
            self.add_groups(registry, holder, &column);
        }
    }

    fn add_groups(&mut self, registry: &Registry, object: &str, column: &str) {
        let Some(object) = registry.object(object) else { return };
        let definition = &object.definition;
        let groups = [
            (DependentKind::Unique, "uniqueTogether", &definition.constraints.unique_together),
            (DependentKind::Index, "indexes", &definition.indexes),
        ];
        for (kind, key, groups) in groups {
            for group in groups.iter().filter(|group| group.iter().any(|name| name == column)) {
                self.add(kind, group.join(", "), None, format!("a group of `{key}` of `{}` names `{column}`", object.name()));
            }
        }
    }

    async fn add_roles(&mut self, connection: &mut Connection) -> Result<()> {
        for id in connection.roles_naming(self.object).await? {
            // Roles are read one at a time, because a role can have some hundred kilobytes of grants.
            let Some(role) = connection.role(&id).await? else { continue };
            let named: Vec<Grant> =
                grants(&role.permissions)?.into_iter().filter(|grant| grant.resource == self.object).collect();
            if !named.is_empty() {
                let given: Vec<String> =
                    named.iter().map(|grant| rights(&grant.actions, grant.row_policy, grant.rows.is_some())).collect();
                let detail = format!("may {} `{}`", given.join(", "), self.object);
                self.add(DependentKind::Role, role.name, Some(role.id), detail);
            }
        }
        Ok(())
    }

    /// Adds the roles that have conditions that test the column, or lists of fields that name it.
    async fn add_conditions(&mut self, connection: &mut Connection) -> Result<()> {
        let Some(object) = self.registry.object(self.object) else { return Ok(()) };
        let Some(column) = self.field.and_then(|field| object.column(field)) else { return Ok(()) };
        for id in connection.roles_with_conditions().await? {
            let Some(role) = connection.role(&id).await? else { continue };
            if let Some(detail) = of_conditions(&grants(&role.permissions)?, object, column) {
                self.add(DependentKind::Role, role.name, Some(role.id), detail);
            }
        }
        Ok(())
    }

    async fn add_webhooks(&mut self, connection: &mut Connection) -> Result<()> {
        for row in connection.webhooks().await? {
            let topics: Option<Vec<String>> = Place::new("svc_webhooks", "topics", &row.id).found(&row.topics);
            let Some(topics) = topics else {
                self.add(DependentKind::Webhook, row.name.unwrap_or(row.url), Some(row.id), UNREADABLE);
                continue;
            };
            let named: Vec<&str> = topics.iter().map(String::as_str).filter(|topic| self.is_named_by(topic)).collect();
            if !named.is_empty() {
                let detail = format!("sends {}{}", named.join(", "), declared_by(row.source.as_deref()));
                self.add(DependentKind::Webhook, row.name.unwrap_or(row.url), Some(row.id), detail);
            }
        }
        Ok(())
    }

    async fn add_subscriptions(&mut self, connection: &mut Connection) -> Result<()> {
        for row in connection.subscriptions().await? {
            let mut ways = Vec::new();
            let config: Option<Value> = Place::new("svc_subscriptions", "config", &row.consumer).found(&row.config);
            let writes = match row.handler == PERSIST_EVENT {
                true => match config {
                    Some(config) => PersistConfig::read(&config).ok().filter(|config| config.object == self.object),
                    None => {
                        ways.push(UNREADABLE.to_owned());
                        None
                    }
                },
                false => None,
            };
            match self.field {
                None => {
                    if self.is_named_by(&row.topic) {
                        ways.push(format!("gets {}", row.topic));
                    }
                    if writes.is_some() {
                        ways.push(format!("writes events into `{}`", self.object));
                    }
                }
                Some(field) if writes.is_some_and(|config| config.fills(field)) => {
                    ways.push(format!("fills `{field}` of the records that it writes"));
                }
                Some(_) => {}
            }
            if !ways.is_empty() {
                let detail = format!("{}{}", ways.join(" and "), declared_by(row.source.as_deref()));
                self.add(DependentKind::Subscription, row.consumer.clone(), Some(row.consumer), detail);
            }
        }
        Ok(())
    }

    /// Adds the blocks that depend on the object or column, and returns their names.
    fn add_blocks<'b>(&mut self, blocks: impl Iterator<Item = &'b Arc<InstalledBlock>>) -> HashSet<String> {
        let mut names = HashSet::new();
        for block in blocks {
            let asked = block.manifest.permissions.data.iter().filter(|permission| permission.resource == self.object);
            let mut ways: Vec<String> = asked
                .map(|asked| format!("may {} `{}`", rights(&asked.actions, asked.row_policy, asked.rows.is_some()), self.object))
                .collect();
            match self.field {
                Some(field) => {
                    if !ways.is_empty() {
                        ways.push(format!("its code may use `{field}`"));
                    }
                    let grants: Vec<Grant> = block.manifest.permissions.data.iter().map(DataPermission::grant).collect();
                    let object = self.registry.object(self.object);
                    let column = object.and_then(|object| Some((object, object.column(field)?)));
                    ways.extend(column.and_then(|(object, column)| of_conditions(&grants, object, column)));
                }
                None => {
                    let needs = block.manifest.actions.iter().filter_map(|action| Some((&action.name, action.rbac.as_ref()?)));
                    ways.extend(
                        needs
                            .filter(|(_, rbac)| rbac.resource == self.object)
                            .map(|(name, rbac)| format!("its action `{name}` needs {} on `{}`", rbac.action.name(), self.object)),
                    );
                }
            }
            if !ways.is_empty() {
                names.insert(block.name().to_owned());
                self.add(DependentKind::Block, block.name(), Some(block.name().to_owned()), ways.join("; "));
            }
        }
        names
    }

    /// Adds tasks that call an action of a dependent block.
    async fn add_tasks(&mut self, connection: &mut Connection, blocks: &HashSet<String>) -> Result<()> {
        if blocks.is_empty() {
            return Ok(());
        }
        for task in connection.tasks().await? {
            let config: Option<Value> = Place::new("svc_tasks", "config", &task.id).found(&task.config);
            let Some(config) = config else {
                self.add(DependentKind::Task, task.name, Some(task.id), UNREADABLE);
                continue;
            };
            let called = (config["block"].as_str(), config["action"].as_str());
            if let (Some(block), Some(action)) = called
                && blocks.contains(block)
            {
                let detail = format!("calls the action `{action}` of the block `{block}`");
                self.add(DependentKind::Task, task.name, Some(task.id), detail);
            }
        }
        Ok(())
    }

    fn is_named_by(&self, topic: &str) -> bool {
        TopicPattern::parse(topic).is_ok_and(|pattern| pattern.reach() == Reach::Object(self.object))
    }
}

/// How a condition or a list of fields of grants depends on a column.
fn of_conditions(grants: &[Grant], object: &Object, column: &Column) -> Option<String> {
    let tests = |grant: &&Grant| [&grant.rows, &grant.check].into_iter().flatten().any(|clause| clause.tests(object, column));
    let lists = |grant: &&Grant| {
        grant.resource == object.name() && grant.fields.as_ref().is_some_and(|fields| fields.name(object, column))
    };
    match (grants.iter().find(tests), grants.iter().find(lists)) {
        (Some(grant), _) => Some(format!("a condition of its grant on `{}` tests it", grant.resource)),
        (None, Some(grant)) => Some(format!("the fields of its grant on `{}` list it", grant.resource)),
        (None, None) => None,
    }
}

/// The actions and the rows of a grant, for example `read, update (own rows)`.
fn rights(actions: &[Action], row_policy: Option<RowPolicy>, has_condition: bool) -> String {
    let names: Vec<&str> = actions.iter().map(|action| action.name()).collect();
    let rows = match (row_policy.is_some(), has_condition) {
        (true, false) => " (own rows)",
        (false, true) => " (some rows)",
        (true, true) => " (some of their own rows)",
        (false, false) => "",
    };
    format!("{}{rows}", names.join(", "))
}

fn declared_by(source: Option<&str>) -> String {
    match source.and_then(|source| source.strip_prefix("block:")) {
        Some(block) => format!("; the block `{block}` declared it"),
        None => String::new(),
    }
}

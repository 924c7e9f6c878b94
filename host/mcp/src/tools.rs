//! The tools, and the choice of those that a caller sees.

mod arguments;
pub(crate) mod describe;
mod objects;
pub(crate) mod run;
mod schemas;

use std::hash::{DefaultHasher, Hash, Hasher};
use std::sync::Arc;

use blockbase_app::schema::{Error, Resource};
use blockbase_app::{Action, App, Caller, InstalledBlock};

/// The reason why a call of a tool has no result.
pub(crate) enum Refusal {
    /// No tool has this name, or the caller may not see the tool.
    UnknownTool(String),
    /// The operation's own error.
    Failed(Error),
}

impl From<Error> for Refusal {
    fn from(error: Error) -> Self {
        Refusal::Failed(error)
    }
}

/// A tool that works on records. Blocks add further tools.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Tool {
    ListObjects,
    GetObject,
    QueryData,
    GetRecord,
    AggregateData,
    CreateRecord,
    UpdateRecord,
    UpsertRecord,
    DeleteRecord,
    BulkCreateRecords,
    BulkUpdateRecords,
    BulkDeleteRecords,
    BatchRecords,
    LinkRecords,
    UnlinkRecords,
}

impl Tool {
    pub(crate) const ALL: [Tool; 15] = [
        Tool::ListObjects,
        Tool::GetObject,
        Tool::QueryData,
        Tool::GetRecord,
        Tool::AggregateData,
        Tool::CreateRecord,
        Tool::UpdateRecord,
        Tool::UpsertRecord,
        Tool::DeleteRecord,
        Tool::BulkCreateRecords,
        Tool::BulkUpdateRecords,
        Tool::BulkDeleteRecords,
        Tool::BatchRecords,
        Tool::LinkRecords,
        Tool::UnlinkRecords,
    ];

    pub(crate) fn name(self) -> &'static str {
        match self {
            Tool::ListObjects => "list_objects",
            Tool::GetObject => "get_object",
            Tool::QueryData => "query_data",
            Tool::GetRecord => "get_record",
            Tool::AggregateData => "aggregate_data",
            Tool::CreateRecord => "create_record",
            Tool::UpdateRecord => "update_record",
            Tool::UpsertRecord => "upsert_record",
            Tool::DeleteRecord => "delete_record",
            Tool::BulkCreateRecords => "bulk_create_records",
            Tool::BulkUpdateRecords => "bulk_update_records",
            Tool::BulkDeleteRecords => "bulk_delete_records",
            Tool::BatchRecords => "batch_records",
            Tool::LinkRecords => "link_records",
            Tool::UnlinkRecords => "unlink_records",
        }
    }

    /// Whether a block's action may have this tool's name. The action may have been installed before the tool existed, and then keeps the
    /// name.
    pub(crate) fn yields_to_actions(self) -> bool {
        matches!(self, Tool::BulkUpdateRecords | Tool::BatchRecords)
    }

    /// The permissions on an object that the tool needs. A tool that only describes objects needs none. A batch needs those of its
    /// operations.
    pub(crate) fn needs(self) -> &'static [Action] {
        match self {
            Tool::ListObjects | Tool::GetObject | Tool::BatchRecords => &[],
            Tool::QueryData | Tool::GetRecord | Tool::AggregateData => &[Action::Read],
            Tool::CreateRecord | Tool::BulkCreateRecords => &[Action::Create],
            Tool::UpdateRecord | Tool::BulkUpdateRecords | Tool::LinkRecords | Tool::UnlinkRecords => &[Action::Update],
            Tool::UpsertRecord => &[Action::Create, Action::Update],
            Tool::DeleteRecord | Tool::BulkDeleteRecords => &[Action::Delete],
        }
    }

    /// Whether the caller may use the tool on some records of an object.
    fn is_for(self, caller: &Caller, object: &str) -> bool {
        match self {
            Tool::BatchRecords => caller.may_write(object),
            tool => tool.needs().iter().all(|action| caller.may_data(object, *action)),
        }
    }
}

/// The resource of a grant for all objects, including future ones.
const EVERY_OBJECT: &str = "*";

/// Whether the caller may use a tool on objects that do not exist yet. Then the tool is shown even if there are no objects.
fn reaches_every_object(caller: &Caller, tool: Tool) -> bool {
    match tool {
        Tool::ListObjects | Tool::GetObject => caller.holds(Resource::Objects, Action::Read),
        tool => tool.is_for(caller, EVERY_OBJECT),
    }
}

/// A block's action, shown as a tool.
pub(crate) struct VisibleAction {
    pub(crate) tool: String,
    pub(crate) block: Arc<InstalledBlock>,
    /// The index of the action in the manifest.
    pub(crate) place: usize,
}

/// The tools that a caller sees, each with the objects that the caller may use it on.
pub(crate) struct VisibleTools {
    pub(crate) tools: Vec<(Tool, Vec<String>)>,
    pub(crate) actions: Vec<VisibleAction>,
}

impl VisibleTools {
    pub(crate) fn to(app: &App, caller: &Caller) -> VisibleTools {
        let visible = app.visible(caller);
        let tools = Tool::ALL.into_iter().filter_map(|tool| {
            let objects = visible.objects.iter().map(|(name, _)| name).filter(|name| tool.is_for(caller, name));
            let objects: Vec<String> = objects.cloned().collect();
            (reaches_every_object(caller, tool) || !objects.is_empty()).then_some((tool, objects))
        });
        let actions = visible.actions.iter().map(|(block, place)| VisibleAction {
            tool: action_tool(block, *place),
            block: Arc::clone(block),
            place: *place,
        });
        let actions: Vec<VisibleAction> = actions.collect();
        let is_taken = |tool: Tool| tool.yields_to_actions() && actions.iter().any(|action| action.tool == tool.name());
        let tools = tools.filter(|(tool, _)| !is_taken(*tool)).collect();
        VisibleTools { tools, actions }
    }

    /// Whether `caller` sees any tool.
    pub(crate) fn any(app: &App, caller: &Caller) -> bool {
        let visible = app.visible(caller);
        let reaches_all = || Tool::ALL.into_iter().any(|tool| reaches_every_object(caller, tool));
        !visible.objects.is_empty() || !visible.actions.is_empty() || reaches_all()
    }

    /// A number that changes with the list of tools. It can be compared only within one process.
    pub(crate) fn fingerprint(&self) -> u64 {
        let mut hasher = DefaultHasher::new();
        for (tool, objects) in &self.tools {
            (tool.name(), objects).hash(&mut hasher);
        }
        for action in &self.actions {
            (&action.tool, action.block.name(), &action.block.digest, action.place).hash(&mut hasher);
        }
        hasher.finish()
    }
}

/// `<block>_<action>`, with `_` for `-`. When a block is installed, the server checks that the names are unique.
pub(crate) fn action_tool(block: &InstalledBlock, place: usize) -> String {
    format!("{}_{}", block.name().replace('-', "_"), block.manifest.actions[place].name)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_block_can_take_the_name_of_a_tool() {
        assert_eq!(Tool::ALL.map(Tool::name), blockbase_app::TOOLS);
    }
}

//! Names of actions in GraphQL and MCP: `<block>_<action>`, with `_` in place of `-`. Each name must be unique.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::sync::Arc;

use blockbase_schema::{Code, Error, Registry, RelationShape, Result};

use crate::state::block_types::InstalledBlock;
use crate::state::manifest::Manifest;

/// Tools of MCP that do not come from blocks.
pub const TOOLS: [&str; 15] = [
    "list_objects",
    "get_object",
    "query_data",
    "get_record",
    "aggregate_data",
    "create_record",
    "update_record",
    "upsert_record",
    "delete_record",
    "bulk_create_records",
    "bulk_update_records",
    "bulk_delete_records",
    "batch_records",
    "link_records",
    "unlink_records",
];

fn action_names(manifest: &Manifest) -> impl Iterator<Item = String> {
    let block = manifest.name.replace('-', "_");
    manifest.actions.iter().map(move |action| format!("{block}_{}", action.name))
}

/// The mutations that GraphQL has for objects, each with its object.
fn mutations(registry: &Registry) -> HashMap<String, &str> {
    let mut names = HashMap::new();
    for object in registry.objects() {
        let name = object.name();
        for verb in ["create", "update", "upsert", "delete"] {
            names.insert(format!("{verb}_{name}"), name);
        }
        for relation in
            registry.relations_of(name).iter().filter(|relation| matches!(relation.shape, RelationShape::Linked { .. }))
        {
            for verb in ["link", "unlink"] {
                names.insert(format!("{verb}_{name}_{}", relation.key), name);
            }
        }
    }
    names
}

/// Checks that no action of a block has a name that is already used. An action that the installed version already has keeps its
/// name. If something else got the same name later, GraphQL and MCP leave that other thing out.
///
/// # Errors
/// `invalid_block`, which names the action and the owner of the name.
pub(super) fn check_actions(
    manifest: &Manifest,
    registry: &Registry,
    blocks: &BTreeMap<String, Arc<InstalledBlock>>,
) -> Result<()> {
    let mutations = mutations(registry);
    let others: HashMap<String, &str> = blocks
        .values()
        .filter(|block| block.name() != manifest.name)
        .flat_map(|block| action_names(&block.manifest).map(|name| (name, block.name())))
        .collect();
    let kept: HashSet<String> = blocks.get(&manifest.name).into_iter().flat_map(|block| action_names(&block.manifest)).collect();
    for name in action_names(manifest).filter(|name| !kept.contains(name)) {
        let other = match (TOOLS.contains(&name.as_str()), mutations.get(&name), others.get(&name)) {
            (true, _, _) => "a tool of this server".to_owned(),
            (_, Some(object), _) => format!("a mutation of the object `{object}`"),
            (_, _, Some(block)) => format!("an action of the block `{block}`"),
            _ => continue,
        };
        let message = format!("An action would be `{name}` in GraphQL and MCP, which is {other}. Choose another name.");
        return Err(Error::new(Code::InvalidBlock, message));
    }
    Ok(())
}

/// Makes the same check for a change of the schema: the new names must not be names of actions of installed blocks.
///
/// # Errors
/// `invalid_schema`, which names the object and the block.
pub(crate) fn check_objects(before: &Registry, after: &Registry, blocks: &BTreeMap<String, Arc<InstalledBlock>>) -> Result<()> {
    let known = mutations(before);
    let mut mutations = mutations(after);
    mutations.retain(|name, _| !known.contains_key(name));
    for block in blocks.values() {
        if let Some((name, object)) = action_names(&block.manifest).find_map(|name| mutations.get_key_value(&name)) {
            let message = format!(
                "The object `{object}` would have the mutation `{name}` in GraphQL, which is an action of the block `{}`. \
                 Choose another name.",
                block.name()
            );
            return Err(Error::new(Code::InvalidSchema, message));
        }
    }
    Ok(())
}

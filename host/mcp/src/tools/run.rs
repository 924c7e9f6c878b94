//! Runs a tool: reads its arguments, runs one operation, and returns the document that REST would return.

use std::sync::Arc;

use blockbase_app::schema::json::Members;
use blockbase_app::schema::{Error, Result};
use blockbase_app::{
    AggregateRequest, App, Batch, Caller, Chosen, LinkChange, ListParameter, ListRequest, Where, aggregate_names, expand_paths,
    run_offloaded, write_warnings,
};
use serde_json::value::RawValue;

use super::arguments::{Arguments, NONE};
use super::describe::{GROUP_BY, of_aggregate, of_list, parameter_name};
use super::{Refusal, Tool, action_tool, objects};
use crate::call::Call;

/// The condition of a bulk call.
const WHERE: &str = "where";
/// The maximum number of columns of a unique target.
const TARGET_COLUMNS_MAX: usize = 64;

/// The parameters of `query_data`.
fn query_parameters() -> Vec<&'static str> {
    let filters = |parameter: ListParameter| (parameter == ListParameter::Search).then_some("filters");
    let names = of_list().flat_map(|parameter| [parameter_name(parameter)].into_iter().chain(filters(parameter)));
    ["object_name"].into_iter().chain(names).collect()
}

/// The parameters of `aggregate_data`.
fn aggregate_parameters() -> Vec<&'static str> {
    use aggregate_names::{FIELD, FUNCTION, FUNCTIONS, HAVING, ZONE};
    let names = of_aggregate().map(parameter_name);
    ["object_name", FUNCTION, FIELD, FUNCTIONS, GROUP_BY, HAVING, ZONE, "filters"].into_iter().chain(names).collect()
}

/// Checks that a call without groups has no order and no page, which would do nothing.
fn check_parameters_of_groups(arguments: &Arguments, request: &AggregateRequest) -> Result<()> {
    if request.has_groups {
        return Ok(());
    }
    let of_records = |parameter: ListParameter| matches!(parameter, ListParameter::Search | ListParameter::Where);
    let mut of_groups = of_aggregate().filter(|parameter| !of_records(*parameter)).map(parameter_name);
    match of_groups.find(|name| arguments.have(name)) {
        None => Ok(()),
        Some(name) => {
            let message = format!("`{name}` is for groups. Add `{GROUP_BY}` or `{}`.", aggregate_names::FUNCTIONS);
            Err(Error::invalid_request(message).with_field(name))
        }
    }
}

/// Runs the tool `name` as the caller of `call`.
///
/// # Errors
/// If the tool does not exist, or if its operation failed.
pub(crate) async fn run(app: &Arc<App>, call: &Call, name: &str) -> Result<String, Refusal> {
    let caller = &call.invoked.caller;
    let arguments = call.arguments.lock().take();
    let tool = Tool::ALL.into_iter().find(|tool| tool.name() == name);
    if let Some(tool) = tool.filter(|tool| !tool.yields_to_actions()) {
        return Ok(run_tool(app, caller, tool, arguments).await?);
    }
    // Only visible actions count, so a caller cannot find out about other actions by trying their names.
    let visible = app.visible(caller);
    let found = visible.actions.iter().find(|(block, place)| action_tool(block, *place) == name);
    let Some((block, place)) = found else {
        return match tool {
            Some(tool) => Ok(run_tool(app, caller, tool, arguments).await?),
            None => Err(Refusal::UnknownTool(name.to_owned())),
        };
    };
    let input = arguments.as_deref().map(RawValue::get).filter(|text| *text != "null").unwrap_or(NONE).to_owned();
    drop(arguments);
    let action = &block.manifest.actions[*place].name;
    let result = app.call_action(caller, block.name(), action, input, call.invoked.request_id.clone()).await?;
    Ok(data(result.into_bytes())?)
}

/// `{ "data": … }` around JSON.
fn data(json: Vec<u8>) -> Result<String> {
    let json = text(json)?;
    Ok(format!("{{\"data\":{json}}}"))
}

fn text(json: Vec<u8>) -> Result<String> {
    String::from_utf8(json).map_err(Error::internal)
}

async fn run_tool(app: &App, caller: &Caller, tool: Tool, raw: Option<Box<RawValue>>) -> Result<String> {
    let arguments = Arguments::parse(raw.as_deref())?;
    // The raw text is dropped, so that a large value is in memory only once.
    drop(raw);
    // The permission on the object is checked before the other arguments.
    if let (Some(object), needed @ [_, ..]) = (arguments.object_name(), tool.needs()) {
        app.admit_to_object(caller, &object, needed).await?;
    }
    let take = |known: &[&str]| arguments.only(known);
    match tool {
        Tool::ListObjects => {
            take(&[])?;
            Ok(objects::list(app, caller))
        }
        Tool::GetObject => objects::get(app, caller, &take(&["object_name"])?.required::<String>("object_name")?),
        Tool::QueryData => query(app, caller, take(&query_parameters())?).await,
        Tool::GetRecord => {
            let mut arguments = take(&["object_name", "id", "expand"])?;
            let (object, id): (String, String) = (arguments.required("object_name")?, arguments.required("id")?);
            let expand = arguments.optional::<String>("expand")?.as_deref().map(expand_paths).transpose()?.unwrap_or_default();
            let record = app.get(caller, &object, &id, &expand).await?.ok_or_else(missing_record)?;
            let mut json = [b"{\"data\":", record.json.as_slice()].concat();
            write_warnings(&mut json, &app.warnings_of_expand(caller, &object, &expand));
            json.push(b'}');
            text(json)
        }
        Tool::AggregateData => {
            let mut arguments = take(&aggregate_parameters())?;
            let object: String = arguments.required("object_name")?;
            let renamed = [
                (GROUP_BY, aggregate_names::GROUP_BY),
                (parameter_name(ListParameter::PageSize), ListParameter::PageSize.name()),
            ];
            let request = AggregateRequest::from_json(&arguments.rest(&renamed))?;
            check_parameters_of_groups(&arguments, &request)?;
            text(app.aggregate(caller, &object, request).await?.json())
        }
        Tool::CreateRecord => {
            let mut arguments = take(&["object_name", "data"])?;
            let object: String = arguments.required("object_name")?;
            data(app.create(caller, &object, arguments.required::<Members>("data")?).await?.json)
        }
        Tool::UpdateRecord => {
            let mut arguments = take(&["object_name", "id", "data"])?;
            let (object, id): (String, String) = (arguments.required("object_name")?, arguments.required("id")?);
            let updated = app.update(caller, &object, &id, arguments.required::<Members>("data")?, None).await?;
            data(updated.ok_or_else(missing_record)?.json)
        }
        Tool::UpsertRecord => upsert(app, caller, take(&["object_name", "data", "on_conflict"])?).await,
        Tool::DeleteRecord => {
            let mut arguments = take(&["object_name", "id"])?;
            let (object, id): (String, String) = (arguments.required("object_name")?, arguments.required("id")?);
            match app.delete(caller, &object, &id, None).await? {
                true => Ok(r#"{"data":{"deleted":true}}"#.to_owned()),
                false => Err(missing_record()),
            }
        }
        Tool::BulkCreateRecords => {
            let mut arguments = take(&["object_name", "data"])?;
            let object: String = arguments.required("object_name")?;
            let records: Vec<Members> = arguments.list("data", app.settings().bulk_records_max)?;
            Ok(app.create_many(caller, &object, records).await?.json())
        }
        Tool::BulkUpdateRecords => {
            let mut arguments = take(&["object_name", "ids", WHERE, "data", "dry_run"])?;
            let object: String = arguments.required("object_name")?;
            let chosen = chosen(app, &mut arguments)?;
            let changes: Members = arguments.required("data")?;
            let updated = match arguments.optional("dry_run")?.unwrap_or(false) {
                true => app.update_many_dry(caller, &object, &chosen, &changes).await?,
                false => app.update_many(caller, &object, &chosen, &changes).await?,
            };
            Ok(updated.json())
        }
        Tool::BulkDeleteRecords => {
            let mut arguments = take(&["object_name", "ids", WHERE, "dry_run"])?;
            let object: String = arguments.required("object_name")?;
            let chosen = chosen(app, &mut arguments)?;
            let deleted = match arguments.optional("dry_run")?.unwrap_or(false) {
                true => app.delete_many_dry(caller, &object, &chosen).await?,
                false => app.delete_many(caller, &object, &chosen).await?,
            };
            Ok(deleted.json())
        }
        Tool::BatchRecords => {
            app.admit_to_batch(caller).await?;
            let operations = take(&["operations"])?.needed("operations")?;
            let text = operations.get();
            let batch = run_offloaded(text.len(), || Batch::parse(text, app.settings().bulk_records_max))?;
            drop(operations);
            data(app.batch(caller, &batch).await?.json())
        }
        Tool::LinkRecords | Tool::UnlinkRecords => {
            let change = if tool == Tool::LinkRecords { LinkChange::Add } else { LinkChange::Remove };
            change_links(app, caller, take(&["object_name", "id", "relation", "ids"])?, change).await
        }
    }
}

/// The records of a bulk call: those of `ids`, or those that meet the condition `where`.
fn chosen(app: &App, arguments: &mut Arguments) -> Result<Chosen> {
    let ids = match arguments.have("ids") {
        true => Some(arguments.list("ids", app.settings().bulk_records_max)?),
        false => None,
    };
    Chosen::of(ids, arguments.raw(WHERE).map(Where::Json).into_iter().collect())
}

fn missing_record() -> Error {
    Error::not_found("record")
}

async fn query(app: &App, caller: &Caller, mut arguments: Arguments) -> Result<String> {
    let object: String = arguments.required("object_name")?;
    let request =
        ListRequest::from_json(&arguments.rest(&[(parameter_name(ListParameter::PageSize), ListParameter::PageSize.name())]))?;
    text(app.list(caller, &object, request).await?.json())
}

async fn upsert(app: &App, caller: &Caller, mut arguments: Arguments) -> Result<String> {
    let object: String = arguments.required("object_name")?;
    let target: Vec<String> = arguments.list("on_conflict", TARGET_COLUMNS_MAX)?;
    let upserted = app.upsert(caller, &object, arguments.required::<Members>("data")?, &target).await?;
    Ok(format!("{{\"data\":{},\"created\":{}}}", text(upserted.record.json)?, upserted.created))
}

async fn change_links(app: &App, caller: &Caller, mut arguments: Arguments, change: LinkChange) -> Result<String> {
    let (object, id): (String, String) = (arguments.required("object_name")?, arguments.required("id")?);
    let relation: String = arguments.required("relation")?;
    let ids: Vec<String> = arguments.list("ids", app.settings().bulk_records_max)?;
    let changed = app.change_links(caller, &object, &id, &relation, &ids, change).await?;
    let changed = changed.ok_or_else(missing_record)?;
    let what = if change == LinkChange::Add { "added" } else { "removed" };
    Ok(format!(r#"{{"data":{{"{what}":{changed}}}}}"#))
}

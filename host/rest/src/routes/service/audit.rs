//! `GET /api/v1/audit`: the audit log.

use axum::extract::State;
use axum::http::StatusCode;
use axum::response::Response;
use blockbase_app::schema::Resource;
use blockbase_app::{AuditAction, AuditEntryAnswer, AuditFilter};
use serde_json::json;

use crate::AppState;
use crate::answer::error::ApiError;
use crate::answer::render;
use crate::openapi::answers::of;
use crate::openapi::components;
use crate::openapi::operation::{Operation, Paths, query_parameter};
use crate::request::admission::{Granted, Read, Settings};
use crate::request::extract::QueryPairs;
use crate::routes::data::filters_document::paging_parameters;

const PARAMETERS: [&str; 6] = ["actor", "action", "resource", "target", "since", "until"];

pub(crate) async fn list(
    State(state): State<AppState>,
    Granted(caller, ..): Granted<(Settings, Read)>,
    query: QueryPairs,
) -> Result<Response, ApiError> {
    let paging = query.page_beside(&PARAMETERS)?;
    let filter = AuditFilter {
        actor: query.given("actor")?,
        action: query.given("action")?,
        resource: query.given("resource")?,
        target: query.given("target")?,
        since: query.instant("since")?,
        until: query.instant("until")?,
    };
    let page = state.app.audit_log(&caller, filter, paging).await?;
    Ok(render::json_bytes(StatusCode::OK, page.into_bytes()))
}

pub(crate) fn describe(paths: &mut Paths) {
    let actions: Vec<&str> = AuditAction::ALL.iter().map(|action| action.name()).collect();
    let resources: Vec<&str> = Resource::ALL.iter().map(|resource| resource.name()).collect();
    let log = Operation::new("service.audit", "service", "List the audit log, the newest entries first")
        .describe(
            "Each administrative act has one entry, which is stored together with the act. Failed sign-ins to one account from \
            one network within a minute are one entry, as are those with e-mail addresses that no account has. Needs read on \
            `settings`. Network addresses, e-mail addresses, and names and images of users are shown only to callers who may \
            read all users. Entries are kept for `SVC_AUDIT_RETENTION_DAYS`.",
        )
        .parameters([
            query_parameter(
                "actor",
                "Only acts of this actor, for example `user:<id>`.",
                json!({ "type": "string", "examples": ["shell:1000"] }),
            ),
            query_parameter("action", "Only acts of this kind.", json!({ "type": "string", "enum": actions })),
            query_parameter("resource", "Only acts on this resource.", json!({ "type": "string", "enum": resources })),
            query_parameter("target", "Only acts on the thing with this id or name.", json!({ "type": "string" })),
            query_parameter("since", "Only acts from this instant on.", components::instant()),
            query_parameter("until", "Only acts before this instant.", components::instant()),
        ])
        .parameters(paging_parameters())
        .problems(&[400])
        .answers_page("A page of the audit log.", of::<AuditEntryAnswer>());
    paths.add("get", "/api/v1/audit", log);
}

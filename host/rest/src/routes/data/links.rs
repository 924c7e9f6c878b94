//! `POST` and `DELETE /api/v1/data/:object/:id/links/:rel`: links of a many_to_many relationship.

use axum::extract::State;
use axum::http::StatusCode;
use axum::response::Response;
use blockbase_app::LinkChange;
use blockbase_app::schema::Error;
use schemars::JsonSchema;
use serde::Serialize;

use super::described::{Described, id_parameter};
use crate::AppState;
use crate::answer::error::ApiError;
use crate::answer::render;
use crate::openapi::answers::of;
use crate::openapi::operation::Paths;
use crate::request::admission::{Granted, Links};
use crate::request::body::Ids;
use crate::request::extract::{NoParameters, PathParts};

#[derive(Serialize, JsonSchema)]
#[schemars(inline, deny_unknown_fields)]
pub(crate) struct LinkedAnswer {
    #[schemars(with = "u32")]
    added: usize,
}

#[derive(Serialize, JsonSchema)]
#[schemars(inline, deny_unknown_fields)]
pub(crate) struct UnlinkedAnswer {
    #[schemars(with = "u32")]
    removed: usize,
}

type LinkPath = PathParts<(String, String, String)>;

/// `{ "ids": [uuid] }` → `{ "data": { "added": n } }`.
pub(crate) async fn add(
    State(state): State<AppState>,
    Granted(caller, ..): Granted<Links>,
    PathParts((object, id, key)): LinkPath,
    _: NoParameters,
    Ids(ids): Ids,
) -> Result<Response, ApiError> {
    let added = state.app.change_links(&caller, &object, &id, &key, &ids, LinkChange::Add).await?;
    let added = added.ok_or_else(|| Error::not_found("record"))?;
    Ok(render::data(StatusCode::OK, &LinkedAnswer { added }))
}

/// `{ "ids": [uuid] }` → `{ "data": { "removed": n } }`.
pub(crate) async fn remove(
    State(state): State<AppState>,
    Granted(caller, ..): Granted<Links>,
    PathParts((object, id, key)): LinkPath,
    _: NoParameters,
    Ids(ids): Ids,
) -> Result<Response, ApiError> {
    let removed = state.app.change_links(&caller, &object, &id, &key, &ids, LinkChange::Remove).await?;
    let removed = removed.ok_or_else(|| Error::not_found("record"))?;
    Ok(render::data(StatusCode::OK, &UnlinkedAnswer { removed }))
}

pub(super) fn describe(paths: &mut Paths, described: &Described<'_>, key: &str, related: &str) {
    let Described { object, base, .. } = described;
    let (name, path) = (object.name(), format!("{base}/{{id}}/links/{key}"));
    for (method, verb, what, answer) in
        [("post", "link", "Link", of::<LinkedAnswer>()), ("delete", "unlink", "Unlink", of::<UnlinkedAnswer>())]
    {
        let operation = described
            .operation(&format!("{verb}.{key}"), format!("{what} records of {related} by {key}"))
            .describe(format!(
                "Changes the links between a record of `{name}` and records of `{related}`. Links that are already as requested \
                    do not change."
            ))
            .parameter(id_parameter())
            .json_body(described.ids())
            .problems(&[409])
            .answers_data(200, "The number of links that changed.", answer);
        paths.add(method, path.clone(), operation);
    }
}

//! The floor, which is the server for comparison: axum with direct database calls on one fixed table. It has no dynamic schema,
//! no auth, and no events except the row that it must write.
//!
//! It is the code that a developer would write by hand for one table. It has the same columns, indexes and durability, prepared
//! statements, and an outbox row for each write. This file is its HTTP side. Each engine has its own file.

mod postgres;
mod sqlite;

use std::future::Future;
use std::path::Path;
use std::sync::Arc;

use axum::extract::{Path as PathPart, Query, State};
use axum::http::StatusCode;
use axum::response::{IntoResponse, Response};
use axum::routing::{get, post};
use axum::serve::ListenerExt;
use axum::{Json, Router};
use chrono::{DateTime, Utc};
use serde::{Deserialize, Serialize};

use postgres::Postgres;
use sqlite::Sqlite;

/// The operations of the table on either engine. A request that the benchmark does not send causes a panic.
trait Database: Send + Sync + 'static {
    type Item: Serialize + Send;

    fn get(&self, id: String) -> impl Future<Output = Option<Self::Item>> + Send;
    fn list(&self, list: List) -> impl Future<Output = Vec<Self::Item>> + Send;
    fn sum_of_priorities(&self, priority: i32) -> impl Future<Output = Option<i64>> + Send;
    fn create(&self, new: NewItem) -> impl Future<Output = Self::Item> + Send;
    /// Creates either all items or none, and returns their ids.
    fn create_many(&self, new: Vec<NewItem>) -> impl Future<Output = Vec<String>> + Send;
    /// Returns the item, and whether it is new.
    fn upsert(&self, new: NewItem) -> impl Future<Output = (Self::Item, bool)> + Send;
    fn increment(&self, id: String, by: i32) -> impl Future<Output = Option<Self::Item>> + Send;
    fn create_projects(&self, names: Vec<String>) -> impl Future<Output = Vec<String>> + Send;
}

#[derive(Deserialize)]
struct NewItem {
    title: String,
    #[serde(default)]
    done: bool,
    priority: Option<i32>,
    code: Option<String>,
    project_id: Option<String>,
}

/// The parameters of a list.
struct List {
    limit: i64,
    offset: i64,
    priority: Option<i32>,
    search: Option<String>,
    with_projects: bool,
}

#[derive(Deserialize)]
struct ListQuery {
    page: Option<i64>,
    #[serde(rename = "pageSize")]
    page_size: Option<i64>,
    limit: Option<i64>,
    offset: Option<i64>,
    priority: Option<i32>,
    search: Option<String>,
    expand: Option<String>,
}

#[derive(Serialize)]
struct Pagination {
    limit: i64,
    offset: i64,
}

/// A page without a total, because the floor may leave out things that are expensive.
#[derive(Serialize)]
struct Page<T> {
    data: Vec<T>,
    pagination: Pagination,
}

#[derive(Serialize)]
struct One<T> {
    data: T,
}

#[derive(Serialize)]
struct Upserted<T> {
    data: T,
    created: bool,
}

#[derive(Deserialize)]
struct Many<T> {
    data: Vec<T>,
}

#[derive(Serialize)]
struct Created {
    count: usize,
    ids: Vec<String>,
}

#[derive(Serialize)]
struct Sum {
    value: Option<i64>,
}

#[derive(Deserialize)]
struct CreateQuery {
    on_conflict: Option<String>,
}

#[derive(Deserialize)]
struct SumQuery {
    priority: i32,
}

#[derive(Deserialize)]
struct Changes {
    priority: Increment,
}

#[derive(Deserialize)]
struct Increment {
    #[serde(rename = "$inc")]
    by: i32,
}

#[derive(Deserialize)]
struct NewProject {
    name: String,
}

/// The present instant, in whole milliseconds.
fn now() -> DateTime<Utc> {
    let since = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).unwrap();
    DateTime::from_timestamp_millis(i64::try_from(since.as_millis()).unwrap()).unwrap()
}

fn instant_text(instant: &DateTime<Utc>) -> String {
    instant.to_rfc3339_opts(chrono::SecondsFormat::Millis, true)
}

async fn get_item<D: Database>(State(database): State<Arc<D>>, PathPart(id): PathPart<String>) -> Response {
    match database.get(id).await {
        Some(data) => Json(One { data }).into_response(),
        None => StatusCode::NOT_FOUND.into_response(),
    }
}

async fn list_items<D: Database>(State(database): State<Arc<D>>, Query(query): Query<ListQuery>) -> Response {
    let limit = query.limit.or(query.page_size).unwrap_or(25);
    let offset = query.offset.unwrap_or_else(|| (query.page.unwrap_or(1) - 1) * limit);
    let with_projects = query.expand.as_deref() == Some("project");
    let list = List { limit, offset, priority: query.priority, search: query.search, with_projects };
    Json(Page { data: database.list(list).await, pagination: Pagination { limit, offset } }).into_response()
}

async fn sum<D: Database>(State(database): State<Arc<D>>, Query(query): Query<SumQuery>) -> Response {
    Json(One { data: Sum { value: database.sum_of_priorities(query.priority).await } }).into_response()
}

async fn create_item<D: Database>(
    State(database): State<Arc<D>>,
    Query(query): Query<CreateQuery>,
    Json(new): Json<NewItem>,
) -> Response {
    if query.on_conflict.is_some() {
        let (data, created) = database.upsert(new).await;
        let status = if created { StatusCode::CREATED } else { StatusCode::OK };
        return (status, Json(Upserted { data, created })).into_response();
    }
    (StatusCode::CREATED, Json(One { data: database.create(new).await })).into_response()
}

async fn create_items<D: Database>(State(database): State<Arc<D>>, Json(new): Json<Many<NewItem>>) -> Response {
    let ids = database.create_many(new.data).await;
    (StatusCode::CREATED, Json(Created { count: ids.len(), ids })).into_response()
}

async fn create_projects<D: Database>(State(database): State<Arc<D>>, Json(new): Json<Many<NewProject>>) -> Response {
    let ids = database.create_projects(new.data.into_iter().map(|project| project.name).collect()).await;
    (StatusCode::CREATED, Json(Created { count: ids.len(), ids })).into_response()
}

async fn update_item<D: Database>(
    State(database): State<Arc<D>>,
    PathPart(id): PathPart<String>,
    Json(changes): Json<Changes>,
) -> Response {
    match database.increment(id, changes.priority.by).await {
        Some(data) => Json(One { data }).into_response(),
        None => StatusCode::NOT_FOUND.into_response(),
    }
}

async fn echo(Json(input): Json<serde_json::Value>) -> Response {
    Json(serde_json::json!({ "data": input })).into_response()
}

/// The same answer as the server's own `/healthz`.
async fn alive() -> Response {
    Json(serde_json::json!({ "status": "ok" })).into_response()
}

fn router<D: Database>(database: D) -> Router {
    Router::new()
        .route("/items", get(list_items::<D>).post(create_item::<D>))
        .route("/items/bulk", post(create_items::<D>))
        .route("/items/aggregate", get(sum::<D>))
        .route("/items/{id}", get(get_item::<D>).patch(update_item::<D>))
        .route("/projects/bulk", post(create_projects::<D>))
        .route("/echo", post(echo))
        .route("/healthz", get(alive))
        .with_state(Arc::new(database))
}

/// Serves the floor on a free port and prints its address. `database` is a `postgres://` URL or the path of a SQLite file.
pub(crate) fn serve(database: &str) {
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build().unwrap();
    runtime.block_on(async {
        let router = match database.starts_with("postgres://") {
            true => router(Postgres::open(database).await),
            false => router(Sqlite::open(Path::new(database))),
        };
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
        println!("listens on http://{}", listener.local_addr().unwrap());
        let listener = listener.tap_io(|stream| {
            let _ = stream.set_nodelay(true);
        });
        axum::serve(listener, router).await.unwrap();
    });
}

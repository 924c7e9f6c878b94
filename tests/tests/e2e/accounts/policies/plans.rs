//! The cost of a condition of a grant: an index leads to the rows of a list.

use blockbase_query::plan::ListPlan;
use blockbase_query::{
    Action, Bounds, Clause, Grant, GrantContext, ListRequest, Permissions, Reading, Shapes, Statement, Variables, sql,
};
use blockbase_schema::Registry;
use blockbase_tests::{Engine, Server, on_both_engines};
use serde_json::{Value, json};

use super::define;
use crate::data::search::{dialect, explained_statement, registry};

const TEAMS: usize = 300;
const TASKS: usize = 6_000;

/// The statement of the first page of tasks, for a caller who reads the tasks that meet a condition.
fn first_page(server: &Server, registry: &Registry, condition: &Value) -> Statement {
    let object = registry.object("task").unwrap();
    let rows = Clause::new(&condition.to_string()).numbered(registry, object).unwrap();
    let grant = Grant { rows: Some(rows), ..Grant::new("task", vec![Action::Read], None) };
    let decision = Permissions::of_subject(vec![grant], Variables::of_somebody(0)).decide("task", Action::Read).unwrap();
    let shapes = Shapes::default();
    let access = decision.on(&GrantContext { registry, now: 0, shapes: &shapes }, object);
    let request = ListRequest::from_parameters([("count", "none")].iter().copied()).unwrap();
    let reading =
        Reading { registry, decide: &|_| Ok(access.clone()), variables: &Variables::default, bounds: Bounds::of_request() };
    let plan = ListPlan::new(object, &access, &request, &reading, Vec::new()).unwrap();
    sql::list(dialect(server), &plan, None)
}

on_both_engines! {
    async fn a_condition_on_a_foreign_key_uses_its_index(server: Server) {
        let admin = server.admin().await;
        define(&admin).await;
        let make = async |object: &str, rows: Vec<Value>| {
            let made = admin.post(&format!("/api/v1/data/{object}/bulk"), json!({ "data": rows })).await;
            assert_eq!(made.status, 201, "{}", made.text);
            made.json()["ids"].as_array().unwrap().clone()
        };
        let teams = make("team", (0..TEAMS).map(|number| json!({ "name": format!("team {number}") })).collect()).await;
        let tasks: Vec<Value> = (0..TASKS).map(|number| json!({ "team_id": teams[number % TEAMS], "points": number })).collect();
        for rows in tasks.chunks(1000) {
            make("task", rows.to_vec()).await;
        }
        if server.engine() == Engine::Postgres {
            server.sql("ANALYZE \"task\"").await;
            server.sql("ANALYZE \"team\"").await;
        }
        let registry = registry(&server).await;
        let object = registry.object("task").unwrap();
        let index = format!("svc_ix_{}_{}", object.id, object.column("team_id").unwrap().catalogue_key());
        for condition in [
            json!({ "team_id": teams[7] }),
            json!({ "team_id": teams[7], "_or": [{ "points": { "gte": 0 } }, { "assignee": "$user.id" }] }),
            json!({ "team": { "name": "team 7" } }),
        ] {
            let statement = first_page(&server, &registry, &condition);
            let sql = statement.sql.clone();
            let plan = explained_statement(&server, statement).await;
            assert!(plan.contains(&index) && !plan.contains("Seq Scan on task"), "{condition}: {sql}\n{plan}");
        }
        // Without a condition on the key, another index leads, so the assertions above can fail.
        let plan = explained_statement(&server, first_page(&server, &registry, &json!({ "points": { "gte": 0 } }))).await;
        assert!(!plan.contains(&index), "{plan}");
    }
}

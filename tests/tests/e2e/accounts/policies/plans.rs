//! The cost of a grant for some rows: an index leads to the rows of every kind of read.

use std::collections::BTreeSet;

use blockbase_query::aggregate::AggregatePlan;
use blockbase_query::plan::{ListPlan, RecordPlan};
use blockbase_query::{
    Action, AggregateRequest, Bounds, Clause, FieldList, Fields, Function, Grant, GrantContext, ListRequest, Permissions,
    Reading, RowPolicy, Shapes, Statement, Variables, sql,
};
use blockbase_schema::Registry;
use blockbase_tests::{Engine, Server, on_both_engines};
use serde_json::{Value, json};

use super::define;
use crate::data::conditions::plans::reads_all_tasks;
use crate::data::search::{dialect, explained_statement, registry};

const TEAMS: usize = 300;
const TASKS: usize = 6_000;

/// The statements of a caller who reads the tasks of a grant: the first page, the total, an aggregate, and one task.
fn statements(server: &Server, registry: &Registry, grant: Grant, id: &str) -> [(&'static str, Statement); 4] {
    let decision = Permissions::of_subject(vec![grant], Variables::of_somebody(0)).decide("task", Action::Read).unwrap();
    let (shapes, object) = (Shapes::default(), registry.object("task").unwrap());
    let access = decision.on(&GrantContext { registry, now: 0, shapes: &shapes }, object);
    let object = access.seen().map_or(object, |seen| &seen.object);
    let reading =
        Reading { registry, decide: &|_| Ok(access.clone()), variables: &Variables::default, bounds: Bounds::of_request() };
    let request = ListRequest::from_parameters([("count", "none")].iter().copied()).unwrap();
    let list = ListPlan::new(object, &access, &request, &reading, Vec::new()).unwrap();
    let request = AggregateRequest::one(Function::Count, Some("points".to_owned()), ListRequest::default());
    let aggregate = match AggregatePlan::new(object, &access, &request, &reading).unwrap() {
        AggregatePlan::One(plan) => plan,
        AggregatePlan::Groups(_) => panic!("one function has no groups"),
    };
    let (dialect, record) = (dialect(server), RecordPlan::new(object, &access, id.parse().unwrap()));
    [
        ("page", sql::list(dialect, &list, None)),
        ("total", sql::count(dialect, object, &list.selection)),
        ("aggregate", sql::aggregate(dialect, &aggregate)),
        ("record", sql::get(dialect, &record, false)),
    ]
}

on_both_engines! {
    async fn an_index_leads_to_the_rows_of_a_grant_for_every_read(server: Server) {
        let admin = server.admin().await;
        define(&admin).await;
        let make = async |object: &str, rows: Vec<Value>| {
            let made = admin.post(&format!("/api/v1/data/{object}/bulk"), json!({ "data": rows })).await;
            assert_eq!(made.status, 201, "{}", made.text);
            made.json()["ids"].as_array().unwrap().clone()
        };
        let teams = make("team", (0..TEAMS).map(|number| json!({ "name": format!("team {number}") })).collect()).await;
        let tasks: Vec<Value> = (0..TASKS).map(|number| json!({ "team_id": teams[number % TEAMS], "points": number })).collect();
        let mut ids = Vec::new();
        for rows in tasks.chunks(1000) {
            ids.extend(make("task", rows.to_vec()).await);
        }
        if server.engine() == Engine::Postgres {
            server.sql("ANALYZE \"task\"").await;
            server.sql("ANALYZE \"team\"").await;
        }
        let registry = registry(&server).await;
        let object = registry.object("task").unwrap();
        let by_team = format!("svc_ix_{}_{}", object.id, object.column("team_id").unwrap().catalogue_key());
        let (by_creator, by_id) = (format!("svc_ix_{}_owner", object.id), format!("svc_pk_{}", object.id));
        let reads = |row_policy: Option<RowPolicy>| Grant::new("task", vec![Action::Read], row_policy);
        let reads_where = |condition: Value| {
            Grant { rows: Some(Clause::new(&condition.to_string()).numbered(&registry, object).unwrap()), ..reads(None) }
        };
        let of_team = json!({ "team_id": teams[7] });
        let most_fields = Fields { read: Some(FieldList::Except(BTreeSet::from(["assignee".to_owned()]))), write: None };
        let cut = Grant { fields: Some(most_fields.numbered(&registry, object).unwrap()), ..reads_where(of_team.clone()) };
        let either = json!({ "team_id": teams[7], "_or": [{ "points": { "gte": 0 } }, { "assignee": "$user.id" }] });
        let explained = async |grant: &Grant| {
            let mut plans = Vec::new();
            for (read, statement) in statements(&server, &registry, grant.clone(), ids[7].as_str().unwrap()) {
                let sql = statement.sql.to_string();
                plans.push((read, explained_statement(&server, statement).await, sql));
            }
            plans
        };
        for (what, grant, index) in [
            ("a foreign key", reads_where(of_team), &by_team),
            ("a foreign key and other tests", reads_where(either), &by_team),
            ("a unique field of the related row", reads_where(json!({ "team": { "name": "team 7" } })), &by_team),
            ("a foreign key, with a list of fields", cut, &by_team),
            ("own rows", reads(Some(RowPolicy::Own)), &by_creator),
            ("the creator", reads_where(json!({ "created_by": "$user.id" })), &by_creator),
        ] {
            for (read, plan, sql) in explained(&grant).await {
                // The id leads to one row, which is at most as many as the grant has.
                let is_led = plan.contains(index.as_str()) || (read == "record" && plan.contains(&by_id));
                assert!(is_led && !reads_all_tasks(&plan), "{what}, {read}: {sql}\n{plan}");
            }
        }
        // Without such a condition, the engines read all tasks for a total, so the assertions above can fail.
        for (read, plan, _) in explained(&reads_where(json!({ "points": { "gte": 0 } }))).await {
            assert!(!plan.contains(&by_team) && !plan.contains(&by_creator), "{read}: {plan}");
            assert_eq!(reads_all_tasks(&plan), ["total", "aggregate"].contains(&read), "{read}: {plan}");
        }
    }
}

//! `POST /api/v1/roles/:id/explain`: why a user may use a record or not.

use std::collections::HashSet;

use blockbase_tests::on_both_engines;
use serde_json::{Value, json};

use super::{World, of_my_teams, world};
use crate::accounts::roles::{role, user};

const EXPLAIN: &str = "/api/v1/roles/worker/explain";

/// What an explanation says of each grant: whether the record passes it, and what the record does not meet. A record passes if it
/// passes one of the grants.
#[track_caller]
fn verdicts(shown: &Value) -> Vec<(bool, Value)> {
    let grants = shown["grants"].as_array().unwrap();
    let verdicts: Vec<(bool, Value)> =
        grants.iter().map(|grant| (grant["passes"].as_bool().unwrap(), grant["failing"].clone())).collect();
    assert_eq!(shown["passes"], verdicts.iter().any(|(passes, _)| *passes), "{shown}");
    verdicts
}

on_both_engines! {
    async fn a_role_is_explained_for_a_user_and_a_record(server: Server) {
        let World { admin, ann_id, tasks: [a, b, c], .. } = world(&server).await;
        let explain = async |body: Value| admin.post(EXPLAIN, body).await;
        let of = |action: &str, id: &str| json!({ "userId": ann_id, "object": "task", "action": action, "id": id });
        let shown = explain(of("read", &a)).await.data();
        assert_eq!(shown["grants"].as_array().unwrap().len(), 1, "{shown}");
        assert_eq!((&shown["grants"][0]["where"], &shown["passes"]), (&of_my_teams(), &json!(true)), "{shown}");
        assert!(shown["condition"].to_string().contains(&ann_id), "{shown}");
        for (action, id, passes) in [("read", &b, true), ("read", &c, false), ("update", &a, true), ("update", &b, false), ("update", &c, true)] {
            assert_eq!(explain(of(action, id)).await.data()["passes"], passes, "{action} {id}");
        }
        // The shown condition works unchanged in a query.
        let condition = json!({ "where": shown["condition"] });
        assert_eq!(admin.post("/api/v1/data/task/query", condition).await.data().as_array().unwrap().len(), 2);
        // A new record has to belong to one of her teams, like `a` and `b`. No grant allows `manage`.
        assert_eq!(explain(of("create", &a)).await.data()["passes"], true);
        assert_eq!(explain(of("create", &c)).await.data()["passes"], false);
        let none = explain(of("manage", &a)).await.data();
        assert_eq!(none, json!({ "grants": [], "condition": { "_or": [] }, "passes": false }));
        // Without a user, the variables have no values, so the grant includes no row.
        let nobody = explain(json!({ "object": "task", "action": "read" })).await.data();
        assert_eq!((&nobody["condition"], &nobody["passes"]), (&json!({ "_or": [] }), &Value::Null), "{nobody}");
        let all = admin.post("/api/v1/roles/admin/explain", of("read", &c)).await.data();
        assert_eq!((&all["condition"], &all["passes"]), (&json!({}), &json!(true)), "{all}");

        // Users are explained like the records of any object.
        role(&admin, "self", json!([{ "resource": "users", "actions": ["read"], "rowPolicy": "own" }])).await;
        let admin_id = admin.get("/api/v1/me").await.json()["userId"].clone();
        for (id, passes) in [(json!(ann_id), true), (admin_id, false)] {
            let of_users = json!({ "userId": ann_id, "object": "users", "action": "read", "id": id });
            let shown = admin.post("/api/v1/roles/self/explain", of_users).await.data();
            assert_eq!((&shown["grants"][0]["rowPolicy"], &shown["passes"]), (&json!("own"), &json!(passes)), "{shown}");
            let failing = if passes { json!([]) } else { json!([{ "id": { "eq": ann_id } }]) };
            assert_eq!(verdicts(&shown), [(passes, failing)], "{shown}");
        }

        let missing = "20000000-0000-4000-8000-000000000000";
        explain(of("read", missing)).await.expect_error(404, "not_found");
        admin.post("/api/v1/roles/admin/explain", of("read", missing)).await.expect_error(404, "not_found");
        explain(of("read", "x")).await.expect_error(404, "not_found");
        explain(json!({ "userId": missing, "object": "task", "action": "read" })).await.expect_error(404, "not_found");
        explain(json!({ "object": "nothing", "action": "read" })).await.expect_error(404, "not_found");
        explain(json!({ "object": "task", "action": "look" })).await.expect_error(400, "invalid_request");
        admin.post("/api/v1/roles/nothing/explain", of("read", &a)).await.expect_error(404, "not_found");
    }

    async fn an_explanation_says_what_of_each_grant_a_record_does_not_meet(server: Server) {
        let World { admin, ann, ann_id, teams: [one, _], tasks: [a, _, c], .. } = world(&server).await;
        let d = ann.make("task", json!({ "title": "d", "team_id": one, "points": 9 })).await;
        let judged = json!([
            { "resource": "task", "actions": ["read"], "rowPolicy": "own",
              "where": { "state": "open", "points": { "gte": 5, "lt": 100 } } },
            { "resource": "task", "actions": ["read"], "where": of_my_teams() },
            // The address of a user who has not proved it has no value.
            { "resource": "task", "actions": ["read"], "where": { "assignee": { "neq": "$user.email" }, "points": { "in": [] } } },
            { "resource": "task", "actions": ["read"], "fields": { "read": ["title"] },
              "where": { "_or": [{ "title": "a" }, { "title": "z" }],
                         "team": { "name": "two", "member_by_team": { "some": { "user_id": "$user.id" } } } } },
            { "resource": "task", "actions": ["read", "update"], "where": { "state": "open" },
              "check": { "assignee": "$user.email", "points": 77 } },
        ]);
        role(&admin, "judged", judged.clone()).await;
        let explain = async |body: Value| admin.post("/api/v1/roles/judged/explain", body).await.data();
        let of = async |id: &str| explain(json!({ "userId": ann_id, "object": "task", "action": "read", "id": id })).await;
        let own = json!({ "created_by": { "eq": ann_id } });
        let few_points = json!({ "points": { "gte": 5 } });
        let my_team = json!({ "team": { "member_by_team": { "some": { "user_id": { "eq": ann_id } } } } });
        let other_team = json!({ "team": { "name": { "eq": "two" } } });
        let other_title = json!({ "_or": [{ "title": { "eq": "a" } }, { "title": { "eq": "z" } }] });
        // A part that no record can meet is as the grant has it.
        let no_address = json!([{ "assignee": { "neq": "$user.email" } }, { "points": { "in": [] } }]);
        let no_address_after = json!([{ "assignee": "$user.email" }]);
        let expected = [
            (&a, json!([own, few_points]), json!([]), json!([other_team])),
            (&c, json!([own, few_points]), json!([my_team]), json!([other_title, my_team])),
            (&d, json!([]), json!([]), json!([other_title, other_team])),
        ];
        for (id, first, second, fourth) in expected {
            let shown = of(id).await;
            let passes = |failing: Value| (failing == json!([]), failing);
            let all = [first, second, no_address.clone(), fourth, no_address_after.clone()].map(passes);
            assert_eq!(verdicts(&shown), all, "{shown}");
        }

        // The grants are as the role has them, with two more keys.
        let without_record = explain(json!({ "userId": ann_id, "object": "task", "action": "read" })).await;
        for (grant, given) in without_record["grants"].as_array().unwrap().iter().zip(judged.as_array().unwrap()) {
            let mut whole = given.clone();
            whole.as_object_mut().unwrap().extend([("passes".to_owned(), Value::Null), ("failing".to_owned(), json!([]))]);
            assert_eq!(*grant, whole);
        }
        // Without a user, no variable of the caller has a value.
        let nobody = explain(json!({ "object": "task", "action": "read", "id": a })).await;
        let my_team = json!({ "team": { "member_by_team": { "some": { "user_id": "$user.id" } } } });
        let nobodys = json!([{ "created_by": "$user.id" }, few_points]);
        let failing = [nobodys, json!([my_team]), no_address, json!([other_team, my_team]), no_address_after];
        assert_eq!(verdicts(&nobody), failing.map(|failing| (false, failing)), "{nobody}");

        // A check takes the place of the condition for a new record, which belongs to its maker.
        let give = async |role: &str, grants: &Value| {
            let path = format!("/api/v1/roles/{role}");
            assert_eq!(admin.patch(&path, json!({ "permissions": grants })).await.status, 200, "{grants}");
        };
        let creating = async |grants: &Value, id: &str| {
            give("judged", grants).await;
            verdicts(&explain(json!({ "userId": ann_id, "object": "task", "action": "create", "id": id })).await)
        };
        let own_grant = json!({ "resource": "task", "actions": ["create"], "rowPolicy": "own" });
        assert_eq!(creating(&json!([own_grant]), &a).await, [(true, json!([]))]);
        let check = json!({ "resource": "task", "actions": ["create"], "where": { "points": { "gte": 5 } },
                            "check": { "state": "open", "title": "d" } });
        let [state, title] = [json!({ "state": { "eq": "done" } }), json!({ "title": { "eq": "d" } })];
        assert_eq!(creating(&json!([own_grant, check]), &a).await, [(true, json!([])), (false, json!([title]))]);
        assert_eq!(creating(&json!([own_grant, check]), &d).await, [(true, json!([])), (true, json!([]))]);
        assert_eq!(creating(&json!([check]), &a).await, [(false, json!([title]))]);
        let own_done = json!({ "resource": "task", "actions": ["create"], "rowPolicy": "own", "where": { "state": "done" } });
        assert_eq!(creating(&json!([own_done, check]), &d).await, [(false, json!([state])), (true, json!([]))]);
        let done = json!({ "resource": "task", "actions": ["manage"], "where": { "state": "done" } });
        assert_eq!(creating(&json!([done]), &d).await, [(false, json!([state]))]);
        let all = json!({ "resource": "*", "actions": ["manage"] });
        assert_eq!(creating(&json!([done, all]), &d).await, [(false, json!([state])), (true, json!([]))]);

        // Nobody is the maker if there is no user. If a grant lists fields, its own check alone decides about a new record.
        let by_nobody = async |grants: Value, id: &str| {
            give("judged", &grants).await;
            verdicts(&explain(json!({ "object": "task", "action": "create", "id": id })).await)
        };
        let nobodys = json!([{ "created_by": "$user.id" }]);
        assert_eq!(by_nobody(json!([own_grant, check]), &d).await, [(false, nobodys.clone()), (true, json!([]))]);
        let mut checked = json!({ "resource": "task", "actions": ["create"], "rowPolicy": "own", "check": { "state": "open" } });
        assert_eq!(by_nobody(json!([checked]), &a).await, [(false, nobodys)]);
        checked["fields"] = json!({ "write": ["title"] });
        assert_eq!(by_nobody(json!([checked]), &a).await, [(true, json!([]))]);

        // The grants of `public` come after those of the role.
        give("judged", &json!([{ "resource": "task", "actions": ["read"], "rowPolicy": "own" }])).await;
        let of_nine = json!({ "resource": "task", "actions": ["read"], "where": { "points": 9, "assignee": "$user.id" } });
        give("public", &json!([of_nine, { "resource": "task", "actions": ["create"] }])).await;
        let [nine, hers] = [json!({ "points": { "eq": 9 } }), json!({ "assignee": { "eq": ann_id } })];
        assert_eq!(verdicts(&of(&a).await), [(false, json!([own])), (false, json!([nine]))]);
        assert_eq!(verdicts(&of(&d).await), [(true, json!([])), (false, json!([hers]))]);
        give("public", &json!([{ "resource": "task", "actions": ["read"], "where": { "points": { "lt": 9 } } }])).await;
        assert_eq!(verdicts(&of(&a).await), [(false, json!([own])), (true, json!([]))]);
    }

    async fn an_explanation_tests_many_parts(server: Server) {
        // A condition has 30 parts at most. Together, the grants have more different parts than one statement tests.
        let World { admin, tasks: [a, ..], .. } = world(&server).await;
        // All tasks have one point. So `a` does not meet the first part of the first grant, and the last part of the third.
        let grant = |points: Vec<usize>| {
            let parts: Vec<Value> = points.into_iter().map(|points| json!({ "points": { "neq": points } })).collect();
            json!({ "resource": "task", "actions": ["read"], "where": { "_and": parts } })
        };
        let last = (32..=60).chain([1]).collect();
        let grants = [grant((1..=30).collect()), grant((31..=60).collect()), grant(last)];
        role(&admin, "patient", json!(grants)).await;
        let of = json!({ "object": "task", "action": "read", "id": a });
        let shown = admin.post("/api/v1/roles/patient/explain", of).await.data();
        let one = json!([{ "points": { "neq": 1 } }]);
        assert_eq!(verdicts(&shown), [(false, one.clone()), (true, json!([])), (false, one)], "{shown}");
    }

    async fn an_explanation_needs_the_rights_to_all_that_it_shows(server: Server) {
        let World { admin, ann_id, tasks: [a, _, c], .. } = world(&server).await;
        let read = |resource: &str| json!({ "resource": resource, "actions": ["read"] });
        let own = json!({ "resource": "task", "actions": ["read"], "rowPolicy": "own" });
        let some = json!({ "resource": "task", "actions": ["read"], "where": { "state": "open" } });
        for (number, (grants, status)) in [
            (json!([read("roles"), read("users"), read("task")]), 200),
            (json!([read("users"), read("task")]), 403),
            (json!([read("roles"), read("task")]), 403),
            (json!([read("roles"), read("users")]), 403),
            (json!([read("roles"), read("users"), own]), 403),
            (json!([read("roles"), read("users"), some]), 403),
            // The condition has the address of the user, so the caller has to read all of every user.
            (json!([read("roles"), { "resource": "users", "actions": ["read"], "rowPolicy": "own" }, read("task")]), 403),
            (json!([read("roles"), { "resource": "users", "actions": ["read"], "fields": { "read": ["name"] } }, read("task")]), 403),
            (json!([read("roles"), read("users"), { "resource": "task", "actions": ["read"], "fields": { "read": ["title"] } }]), 403),
        ]
        .into_iter()
        .enumerate()
        {
            let name = format!("reader{number}");
            role(&admin, &name, grants.clone()).await;
            let (reader, _) = user(&admin, &name, Some(&name)).await;
            let answer = reader.post(EXPLAIN, json!({ "userId": ann_id, "object": "task", "action": "read" })).await;
            assert_eq!(answer.status, status, "{grants}: {}", answer.text);
        }

        // A part on related records that the reader may not all read counts, but is not named.
        let my_team = json!({ "team": { "member_by_team": { "some": { "user_id": { "eq": ann_id } } } } });
        let done = json!({ "state": { "eq": "done" } });
        let some_members = json!({ "resource": "member", "actions": ["read"], "where": { "leads": true } });
        let mut of_done = of_my_teams();
        of_done["state"] = json!("done");
        role(&admin, "finisher", json!([{ "resource": "task", "actions": ["read"], "where": of_done }])).await;
        for (name, grants, named) in [
            ("whole", vec![read("team"), read("member")], vec![my_team]),
            ("part", vec![read("team"), some_members], Vec::new()),
            ("nothing", Vec::new(), Vec::new()),
        ] {
            let grants = [vec![read("roles"), read("users"), read("task")], grants].concat();
            role(&admin, name, json!(grants)).await;
            let (reader, _) = user(&admin, name, Some(name)).await;
            let judge = async |role: &str, id: &str| {
                let of = json!({ "userId": ann_id, "object": "task", "action": "read", "id": id });
                verdicts(&reader.post(&format!("/api/v1/roles/{role}/explain"), of).await.data())
            };
            assert_eq!(judge("worker", &a).await, [(true, json!([]))], "{name}");
            assert_eq!(judge("worker", &c).await, [(false, json!(named))], "{name}");
            assert_eq!(judge("finisher", &a).await, [(false, json!([done]))], "{name}");
            let failing: HashSet<String> = [vec![done.clone()], named].concat().iter().map(Value::to_string).collect();
            let judged = judge("finisher", &c).await;
            let found = judged[0].1.as_array().unwrap().iter().map(Value::to_string).collect::<HashSet<_>>();
            assert_eq!((judged.len(), judged[0].0, found), (1, false, failing), "{name}");
        }
    }
}

//! The rights that a caller needs to give a grant with conditions. Also malformed conditions.

use blockbase_tests::{Admin, on_both_engines};
use serde_json::{Value, json};

use super::{define, of_my_teams};
use crate::accounts::roles::{key, role, user};

async fn give(caller: &Admin<'_>, name: &str, grant: Value) -> blockbase_tests::Answer {
    caller.post("/api/v1/roles", json!({ "name": name, "permissions": [grant] })).await
}

on_both_engines! {
    async fn nobody_gives_wider_conditions_than_they_hold(server: Server) {
        let admin = server.admin().await;
        define(&admin).await;
        let held = json!([
            { "resource": "roles", "actions": ["create", "update", "read"] },
            { "resource": "task", "actions": ["read", "update"], "where": { "state": "open", "team.name": "one" } },
            { "resource": "task", "actions": ["create"], "check": { "points": { "lte": 10 } } },
            { "resource": "task", "actions": ["delete"], "rowPolicy": "own", "where": { "state": "done" } },
            { "resource": "team", "actions": ["read"] },
        ]);
        role(&admin, "lead", held).await;
        let (lead, _) = user(&admin, "lead", Some("lead")).await;
        let mut number = 0;
        let mut given = async |actions: Value, rest: Value| {
            number += 1;
            let mut grant = json!({ "resource": "task", "actions": actions });
            grant.as_object_mut().unwrap().extend(rest.as_object().unwrap().clone());
            give(&lead, &format!("given{number}"), grant).await.status
        };
        let read = json!(["read"]);
        // The same conditions in other forms, and narrower ones.
        for conditions in [
            json!({ "where": { "team": { "name": { "eq": "one" } }, "state": "open" } }),
            json!({ "where": { "_and": [{ "state": { "eq": "open" } }, { "team.name": "one" }, { "points": 1 }] } }),
            json!({ "where": { "team": { "_and": [{ "name": "one" }] }, "state": { "eq": "open", "is_not_null": true } } }),
            json!({ "where": { "state": "open", "team.name": "one" }, "rowPolicy": "own" }),
            json!({ "where": { "state": "open", "team.name": "one" }, "check": { "state": "open", "team.name": "one", "points": 1 } }),
        ] {
            assert_eq!(given(read.clone(), conditions.clone()).await, 201, "{conditions}");
        }
        for conditions in [
            json!({}),
            json!({ "rowPolicy": "own" }),
            json!({ "where": { "state": "open" } }),
            json!({ "where": { "state": "open", "team.name": "two" } }),
            json!({ "where": { "_or": [{ "state": "open", "team.name": "one" }, { "points": 1 }] } }),
            json!({ "where": { "_not": { "_not": { "team.name": "one" } }, "state": "done" } }),
            json!({ "where": { "state": "open", "team.name": "one" }, "check": { "state": "open" } }),
            json!({ "where": { "state": "open", "team.name": "one" }, "check": {} }),
            json!({ "check": { "state": "open", "team.name": "one" } }),
        ] {
            assert_eq!(given(read.clone(), conditions.clone()).await, 403, "{conditions}");
        }
        assert_eq!(given(json!(["create"]), json!({ "check": { "points": { "lte": 10 } } })).await, 201);
        assert_eq!(given(json!(["create"]), json!({ "where": { "points": { "lte": 10 } } })).await, 201);
        assert_eq!(given(json!(["create"]), json!({ "check": { "points": { "lte": 11 } } })).await, 403);
        assert_eq!(given(json!(["delete"]), json!({ "where": { "state": "done" } })).await, 403);
        assert_eq!(given(json!(["delete"]), json!({ "rowPolicy": "own", "where": { "state": "done" } })).await, 201);
        // One grant has to cover each action, not several grants together.
        assert_eq!(given(json!(["read", "create"]), json!({ "where": { "state": "open", "team.name": "one" } })).await, 403);

        // Callers can add only their own rights to an existing role, and cannot change a stronger role.
        let path = "/api/v1/roles/given1";
        let wider = json!({ "permissions": [{ "resource": "task", "actions": ["read"], "where": { "state": "open" } }] });
        lead.patch(path, wider).await.expect_error(403, "forbidden");
        let same = json!({ "permissions": [{ "resource": "task", "actions": ["read"], "where": { "team.name": "one", "state": "open" } }] });
        assert_eq!(lead.patch(path, same).await.status, 200);
        role(&admin, "strong", json!([{ "resource": "task", "actions": ["read"], "where": { "state": "open" } }])).await;
        lead.patch("/api/v1/roles/strong", json!({ "description": "x" })).await.expect_error(403, "forbidden");
    }

    async fn nobody_acts_on_a_role_with_more_than_they_have(server: Server) {
        let admin = server.admin().await;
        define(&admin).await;
        role(&admin, "keeper", json!([{ "resource": "roles", "actions": ["manage"] }])).await;
        let (keeper, _) = user(&admin, "keeper", Some("keeper")).await;
        for (name, grant) in [
            ("own", json!({ "resource": "task", "actions": ["manage"], "rowPolicy": "own", "where": { "state": "open" } })),
            ("mine", json!({ "resource": "task", "actions": ["read"], "where": { "assignee": "$user.id" } })),
            ("mail", json!({ "resource": "task", "actions": ["read"], "where": { "assignee": "$user.email" } })),
            ("check", json!({ "resource": "task", "actions": ["create"], "check": { "assignee": "$key.id" } })),
        ] {
            role(&admin, name, json!([grant])).await;
            let path = format!("/api/v1/roles/{name}");
            keeper.delete(&path).await.expect_error(403, "forbidden");
            keeper.patch(&path, json!({ "permissions": [] })).await.expect_error(403, "forbidden");
        }
        // If no row meets the caller's condition, the caller cannot give a condition that all rows meet.
        let nothing = json!({ "resource": "task", "actions": ["read"], "where": { "_or": [] } });
        role(&admin, "off", json!([nothing, { "resource": "roles", "actions": ["create"] }])).await;
        let (off, _) = user(&admin, "off", Some("off")).await;
        for (number, (condition, status)) in [
            (json!({ "_or": [{}] }), 403),
            (json!({ "_or": [{ "_or": [{}] }] }), 403),
            (json!({}), 403),
            (json!({ "_or": [] }), 201),
            (json!({ "_or": [], "state": "open" }), 201),
        ]
        .into_iter()
        .enumerate()
        {
            let grant = json!({ "resource": "task", "actions": ["read"], "where": condition });
            let made = give(&off, &format!("given by off {number}"), grant).await;
            assert_eq!(made.status, status, "{condition}: {}", made.text);
        }
        let many: Vec<Value> = (0..21).map(|points| json!({ "resource": "task", "actions": ["read"], "where": { "points": points } })).collect();
        let made = admin.post("/api/v1/roles", json!({ "name": "many", "permissions": many })).await;
        made.expect_error(400, "invalid_request");
    }

    async fn what_depends_on_the_caller_is_not_given_to_others(server: Server) {
        let admin = server.admin().await;
        define(&admin).await;
        let mine = json!({ "resource": "task", "actions": ["read"], "where": { "assignee": "\u{24}user.id" } });
        role(&admin, "mine", json!([mine])).await;
        role(&admin, "keys", json!([{ "resource": "api_keys", "actions": ["create"] }, mine])).await;
        let (ann, _) = user(&admin, "ann", Some("keys")).await;
        let (_, bob_id) = user(&admin, "bob", None).await;
        // In her own key, it means her own rows. In a key of Bob, it would mean Bob's rows.
        key(&ann, json!({ "name": "own", "roleId": "mine" })).await;
        ann.post("/api/v1/api-keys", json!({ "name": "of bob", "roleId": "mine", "userId": bob_id })).await.expect_error(403, "forbidden");
        // With a JSON escape, it is still the same variable.
        let body = r#"{"name":"sly","permissions":[{"resource":"task","actions":["read"],"where":{"assignee":"\u0024user.id"}}]}"#;
        let made = server.send(admin.request("POST", "/api/v1/roles").header("content-type", "application/json").body(body)).await;
        assert_eq!(made.status, 201, "{}", made.text);
        ann.post("/api/v1/api-keys", json!({ "name": "of bob", "roleId": "sly", "userId": bob_id })).await.expect_error(403, "forbidden");
        // Cleo may make keys of others. Only the part that names the caller does not count.
        let open = json!({ "resource": "task", "actions": ["read"], "where": { "state": "open" } });
        let both = json!({ "resource": "task", "actions": ["read"], "where": { "state": "open", "assignee": "$user.id" } });
        let manages = |what: &str| json!({ "resource": what, "actions": ["manage"] });
        role(&admin, "both", json!([both])).await;
        role(&admin, "maker", json!([manages("api_keys"), manages("users"), open, mine])).await;
        let (cleo, _) = user(&admin, "cleo", Some("maker")).await;
        cleo.post("/api/v1/api-keys", json!({ "name": "of bob", "roleId": "mine", "userId": bob_id })).await.expect_error(403, "forbidden");
        key(&cleo, json!({ "name": "of bob", "roleId": "both", "userId": bob_id })).await;
    }

    async fn a_condition_goes_only_through_what_its_author_reads_all_of(server: Server) {
        let admin = server.admin().await;
        define(&admin).await;
        let roles = json!({ "resource": "roles", "actions": ["create"] });
        let tasks = json!({ "resource": "task", "actions": ["read"] });
        let members = |more: Value| {
            let mut grant = json!({ "resource": "member", "actions": ["read"] });
            grant.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
            grant
        };
        let teams = json!({ "resource": "team", "actions": ["read"] });
        let mut number = 0;
        let mut by = async |grants: Value| {
            number += 1;
            let name = format!("author{number}");
            role(&admin, &name, grants).await;
            let (author, _) = user(&admin, &name, Some(&name)).await;
            give(&author, &format!("made{number}"), json!({ "resource": "task", "actions": ["read"], "where": of_my_teams() })).await.status
        };
        assert_eq!(by(json!([roles, tasks, teams])).await, 403);
        assert_eq!(by(json!([roles, tasks, teams, members(json!({ "rowPolicy": "own" }))])).await, 403);
        assert_eq!(by(json!([roles, tasks, teams, members(json!({ "where": { "leads": true } }))])).await, 403);
        assert_eq!(by(json!([roles, tasks, teams, members(json!({}))])).await, 201);
    }

    async fn a_condition_on_records_needs_the_right_to_read_them(server: Server) {
        let admin = server.admin().await;
        define(&admin).await;
        // Otherwise the author could use the role in a key, and find out by refused changes which records meet the condition.
        role(&admin, "writer", json!([
            { "resource": "roles", "actions": ["create"] },
            { "resource": "api_keys", "actions": ["create"] },
            { "resource": "task", "actions": ["create", "update", "delete"] },
        ])).await;
        let (writer, _) = user(&admin, "writer", Some("writer")).await;
        let many = json!({ "points": { "gt": 5 } });
        for (number, (actions, key, condition, status)) in [
            (json!(["update"]), "where", &many, 403),
            (json!(["delete"]), "where", &many, 403),
            (json!(["create", "update"]), "where", &many, 403),
            (json!(["update"]), "check", &many, 403),
            (json!(["update"]), "where", &json!({ "_not": { "_or": [{ "title": null }] } }), 403),
            (json!(["create"]), "check", &many, 201),
            (json!(["update"]), "where", &json!({}), 201),
        ]
        .into_iter()
        .enumerate()
        {
            let grant = json!({ "resource": "task", "actions": actions, key: condition });
            let made = give(&writer, &format!("written{number}"), grant).await;
            assert_eq!(made.status, status, "{actions} {key} {condition}: {}", made.text);
        }
    }

    async fn what_is_malformed_is_refused_with_its_place(server: Server) {
        let admin = server.admin().await;
        define(&admin).await;
        let leaves: Vec<Value> = (0..31).map(|points| json!({ "points": points })).collect();
        for (resource, condition, place) in [
            ("task", json!({ "titel": "x" }), "where.titel"),
            ("task", json!({ "points": { "about": 1 } }), "where.points.about"),
            ("task", json!({ "points": "many" }), "where.points"),
            ("task", json!({ "assignee": "$user.name" }), "where.assignee"),
            ("task", json!({ "team": { "task_by_team": { "some": { "team.name": "x" } } } }), "where.team.task_by_team.some"),
            ("task", json!({ "_or": leaves }), "where._or[30]"),
            ("task", json!([]), "where"),
            ("task", json!("x"), "where"),
            ("task", json!({ "team": { "some": {} } }), "where.team.some"),
            ("*", json!({ "title": "x" }), "`*`"),
            ("roles", json!({ "name": "x" }), "`roles`"),
            ("greeter:greetings", json!({ "name": "x" }), "`greeter:greetings`"),
            ("nothing", json!({ "name": "x" }), "`nothing`"),
        ] {
            for key in ["where", "check"] {
                let grant = json!({ "resource": resource, "actions": ["read"], key: condition });
                let refused = give(&admin, "bad", grant).await;
                assert_eq!(refused.status, 400, "{condition}: {}", refused.text);
                let message = refused.json()["message"].as_str().unwrap_or_default().to_owned();
                assert!(message.contains("index 0") && message.contains(place), "{condition}: {message}");
                assert_eq!(refused.json()["field"], "permissions");
            }
        }
        for (resource, fields) in [
            ("*", json!({ "read": ["title"] })),
            ("roles", json!({ "read": ["name"] })),
            ("events", json!({ "write": { "except": ["topic"] } })),
            ("greeter:greetings", json!({ "read": ["name"] })),
            ("nothing", json!({ "read": ["name"] })),
            ("task", json!({ "read": ["titel"] })),
            ("task", json!({ "write": { "except": ["team.name"] } })),
            ("users", json!({ "read": ["password"] })),
        ] {
            let refused = give(&admin, "bad", json!({ "resource": resource, "actions": ["manage"], "fields": fields })).await;
            assert_eq!(refused.status, 400, "{resource} {fields}: {}", refused.text);
        }
        let repeated = r#"{"name":"bad","permissions":[{"resource":"task","actions":["read"],"where":{"title":"a","title":"b"}}]}"#;
        let answer = server.send(admin.request("POST", "/api/v1/roles").header("content-type", "application/json").body(repeated)).await;
        answer.expect_error(400, "invalid_request");
        assert_eq!(admin.get("/api/v1/roles").await.data().as_array().unwrap().len(), 3);
        // Numbers keep their form, and every row meets an empty condition.
        let exact = r#"{"name":"exact","permissions":[{"resource":"task","actions":["read"],"where":{"points":{"in":[1,20]}},"check":{}}]}"#;
        let made = server.send(admin.request("POST", "/api/v1/roles").header("content-type", "application/json").body(exact)).await;
        assert_eq!(made.status, 201, "{}", made.text);
        assert!(made.text.contains(r#""where":{"points":{"in":[1,20]}},"check":{}"#), "{}", made.text);
    }
}

//! Bulk calls that choose their records by a condition.

use blockbase_tests::{Admin, Engine, ServerBuilder, on_both_engines};
use serde_json::{Value, json};

use crate::accounts::roles::{role, user};

const BULK: &str = "/api/v1/data/ticket/bulk";

async fn define(admin: &Admin<'_>) {
    admin.define("desk", json!([{ "name": "name", "type": "text" }])).await;
    admin
        .define(
            "ticket",
            json!([
                { "name": "title", "type": "text" },
                { "name": "state", "type": "enum", "options": ["free", "taken", "done"] },
                { "name": "points", "type": "integer", "max": 100 },
            ]),
        )
        .await;
    admin.relate(json!({ "name": "desk", "kind": "many_to_one", "source": "ticket", "target": "desk" })).await;
}

/// The titles of the tickets that a query finds, in order.
async fn titles(admin: &Admin<'_>, query: &str) -> Vec<String> {
    let listed = admin.get(&format!("/api/v1/data/ticket?sort=title&pageSize=100&{query}")).await.json();
    listed["data"].as_array().unwrap().iter().map(|row| row["title"].as_str().unwrap().to_owned()).collect()
}

on_both_engines! {
    async fn a_condition_names_the_records_of_a_bulk_call(server: Server) {
        let admin = server.admin().await;
        define(&admin).await;
        let desk = admin.make("desk", json!({ "name": "front" })).await;
        for (title, state, points, desk) in [
            ("a", "free", json!(1), json!(desk)),
            ("b", "free", json!(2), Value::Null),
            ("c", "taken", json!(3), json!(desk)),
            ("d", "done", Value::Null, Value::Null),
        ] {
            admin.make("ticket", json!({ "title": title, "state": state, "points": points, "desk_id": desk })).await;
        }
        let change = json!({ "where": { "desk.name": "front" }, "values": { "points": { "$inc": 10 } } });
        let dry = admin.patch(&format!("{BULK}?dryRun=true"), change.clone()).await.json();
        assert_eq!(dry["count"], 2);
        assert_eq!(titles(&admin, "points%5Bgte%5D=10").await, Vec::<String>::new());
        let changed = admin.patch(BULK, change).await;
        assert_eq!((changed.status, changed.json()["ids"].clone()), (200, dry["ids"].clone()), "{}", changed.text);
        assert_eq!(titles(&admin, "points%5Bgte%5D=10").await, ["a", "c"]);
        let updated = admin.outbox("ticket").await.into_iter().filter(|(topic, _)| topic == "data.ticket.updated").count();
        assert_eq!(updated, 2);

        // The same condition in the query string. The body has the rest.
        let query = format!("{BULK}?where=%7B%22_or%22:[%7B%22title%22:%22b%22%7D,%7B%22points%22:null%7D]%7D");
        assert_eq!(admin.patch(&query, json!({ "values": { "state": "free" } })).await.json()["count"], 2);
        assert_eq!(titles(&admin, "state=free").await, ["a", "b", "d"]);
        let gone = admin.delete(&format!("{query}&dryRun=true")).await;
        assert_eq!((gone.status, gone.json()["count"].clone()), (200, json!(2)), "{}", gone.text);
        assert_eq!(admin.delete(&query).await.json()["count"], 2);
        assert_eq!(titles(&admin, "").await, ["a", "c"]);
        let none = admin.delete_with(BULK, json!({ "where": { "title": { "in": [] } } })).await;
        assert_eq!((none.status, none.json()), (200, json!({ "count": 0, "ids": [] })));
        // If one of the records cannot have the value, none is changed.
        let refused = admin.patch(BULK, json!({ "where": { "title": { "gte": "a" } }, "values": { "points": { "$inc": 89 } } })).await;
        refused.expect_error(400, "CONSTRAINT_VIOLATION");
        assert_eq!(titles(&admin, "points%5Blt%5D=14").await, ["a", "c"]);
    }

    async fn a_bulk_call_without_a_test_is_refused(server: Server) {
        let admin = server.admin().await;
        define(&admin).await;
        admin.make("ticket", json!({ "title": "a", "state": "free" })).await;
        for chosen in [
            json!({}),
            json!({ "where": {} }),
            json!({ "where": { "_and": [] } }),
            json!({ "where": { "_or": [] } }),
            json!({ "where": { "desk": {} } }),
            json!({ "where": { "_or": [{ "title": "a" }, {}] } }),
            json!({ "where": { "title": { "nin": [] } } }),
            json!({ "where": null }),
            json!({ "where": "x" }),
            json!({ "where": { "title": "a" }, "ids": [] }),
        ] {
            let mut change = chosen.clone();
            change["values"] = json!({ "state": "done" });
            admin.patch(BULK, change).await.expect_error(400, "invalid_request");
            admin.delete_with(BULK, chosen).await.expect_error(400, "invalid_request");
        }
        let twice = "where=%7B%22title%22:%22a%22%7D&where=%7B%22title%22:%22a%22%7D";
        for query in ["where=%7B%7D", "where=x", "where=null", twice] {
            admin.delete(&format!("{BULK}?{query}")).await.expect_error(400, "invalid_request");
        }
        // A condition in the query and another choice in the body.
        let by_title = format!("{BULK}?where=%7B%22title%22:%22a%22%7D");
        for chosen in [json!({ "where": { "title": "a" } }), json!({ "where": {} }), json!({ "ids": [] })] {
            let mut change = chosen.clone();
            change["values"] = json!({ "state": "done" });
            admin.patch(&by_title, change).await.expect_error(400, "invalid_request");
            admin.delete_with(&by_title, chosen).await.expect_error(400, "invalid_request");
        }
        for (condition, code, path) in [
            (json!({ "nothing": 1 }), "unknown_field", "`where.nothing`"),
            (json!({ "_or": [{ "points": { "gte": "x" } }] }), "invalid_value", "`where._or[0].points.gte`"),
        ] {
            let error = admin.delete_with(BULK, json!({ "where": condition })).await.expect_error(400, code);
            assert!(error["message"].as_str().unwrap().starts_with(path), "{error}");
        }
        admin.delete_with(BULK, json!({ "where": { "title": "a" }, "values": {} })).await.expect_error(400, "invalid_request");
        admin.patch(BULK, json!({ "where": { "title": "a" } })).await.expect_error(400, "invalid_request");
        assert_eq!(titles(&admin, "state=free").await, ["a"]);
        assert_eq!(admin.outbox("ticket").await.len(), 1);
    }

    async fn a_bulk_call_refuses_parameters_that_it_does_not_know(server: Server) {
        let admin = server.admin().await;
        define(&admin).await;
        let desk = admin.make("desk", json!({ "name": "front" })).await;
        let ticket = admin.make("ticket", json!({ "title": "a", "state": "free", "desk_id": desk })).await;
        let by_ids = json!({ "ids": [ticket] });
        let mut change = by_ids.clone();
        change["values"] = json!({ "state": "done" });
        let by_title = format!("{BULK}?where=%7B%22title%22:%22a%22%7D");
        // The call must not write more than it would with the filter, or write although it is meant to be a dry run.
        for (name, rest) in [
            ("desk_id", format!("={desk}")),
            ("title", "=b".to_owned()),
            ("state[neq]", "=free".to_owned()),
            ("search", "=b".to_owned()),
            ("q", "=b".to_owned()),
            ("limit", "=1".to_owned()),
            ("expand", "=desk".to_owned()),
            ("dryrun", "=true".to_owned()),
            ("dry_run", "=true".to_owned()),
            ("DRYRUN", String::new()),
        ] {
            let values = json!({ "values": change["values"] });
            // The server does not read the body before.
            let unreadable = |method: &str| {
                admin.request(method, &format!("{BULK}?{name}{rest}")).header("content-type", "text/plain").body("no JSON")
            };
            for refused in [
                server.send(unreadable("PATCH")).await,
                server.send(unreadable("DELETE")).await,
                admin.delete(&format!("{by_title}&{name}{rest}")).await,
                admin.patch(&format!("{by_title}&{name}{rest}"), values).await,
                admin.delete_with(&format!("{BULK}?{name}{rest}"), by_ids.clone()).await,
                admin.patch(&format!("{BULK}?{name}{rest}&dryRun=false"), change.clone()).await,
            ] {
                let error = refused.expect_error(400, "invalid_request");
                let expected = format!("There is no parameter `{name}` here. The parameters are `dryRun`, `where`.");
                assert_eq!((&error["message"], &error["field"]), (&json!(expected), &json!(name)));
            }
        }
        for query in ["dryRun=true", "dryRun=false", "on_conflict=id", "where=%7B%22title%22:%22a%22%7D"] {
            let records = json!({ "data": [{ "title": "b", "state": "free" }] });
            admin.post(&format!("{BULK}?{query}"), records).await.expect_error(400, "invalid_request");
        }
        assert_eq!(titles(&admin, "state=free").await, ["a"]);
        assert_eq!(admin.outbox("ticket").await.len(), 1);
        let long = admin.delete(&format!("{BULK}?{}=1", "x".repeat(5000))).await.expect_error(400, "invalid_request");
        assert!(long["message"].as_str().unwrap().len() < 300, "{long}");
    }

    async fn a_bulk_call_reaches_what_its_caller_may_read_and_write(server: Server) {
        let admin = server.admin().await;
        define(&admin).await;
        admin.make("ticket", json!({ "title": "of the admin", "state": "free" })).await;
        let user = async |name: &str, permissions: Value| {
            let role = admin.post("/api/v1/roles", json!({ "name": name, "permissions": permissions })).await.data();
            let user = server.with_token(server.sign_up(name).await);
            let id = user.get("/api/v1/me").await.json()["userId"].as_str().unwrap().to_owned();
            let path = format!("/api/v1/users/{id}/roles");
            assert_eq!(admin.post(&path, json!({ "roleId": role["id"] })).await.status, 200);
            user
        };
        let own = json!([
            { "resource": "ticket", "actions": ["read", "create"] },
            { "resource": "ticket", "actions": ["update", "delete"], "rowPolicy": "own" },
        ]);
        let ann = user("ann", own).await;
        ann.make("ticket", json!({ "title": "of ann", "state": "free" })).await;
        let change = json!({ "where": { "state": "free" }, "values": { "state": "taken" } });
        assert_eq!(ann.patch(&format!("{BULK}?dryRun=true"), change.clone()).await.json()["count"], 1);
        assert_eq!(ann.patch(BULK, change.clone()).await.json()["count"], 1);
        assert_eq!(titles(&admin, "state=free").await, ["of the admin"]);
        // The user may not read the object that the relation leads to.
        ann.patch(BULK, json!({ "where": { "desk.name": "front" }, "values": {} })).await.expect_error(403, "forbidden");

        let writer = json!([{ "resource": "ticket", "actions": ["create", "update", "delete"] }]);
        let ben = user("ben", writer).await;
        ben.patch(BULK, change.clone()).await.expect_error(403, "forbidden");
        ben.delete_with(BULK, json!({ "where": { "state": "free" } })).await.expect_error(403, "forbidden");
        let reader = json!([
            { "resource": "ticket", "actions": ["update", "delete"] },
            { "resource": "ticket", "actions": ["read"], "rowPolicy": "own" },
        ]);
        let eve = user("eve", reader).await;
        assert_eq!(eve.patch(BULK, change).await.json()["count"], 0);
        assert_eq!(titles(&admin, "state=free").await, ["of the admin"]);
    }

    async fn each_record_is_taken_once(server: Server) {
        let admin = server.admin().await;
        define(&admin).await;
        let records: Vec<Value> = (0..40).map(|number| json!({ "title": format!("t{number:02}"), "state": "free" })).collect();
        assert_eq!(admin.post(BULK, json!({ "data": records })).await.status, 201);
        let take = || admin.patch(BULK, json!({ "where": { "state": "free" }, "values": { "state": "taken", "points": { "$inc": 1 } } }));
        let answers = futures_util::future::join_all((0..12).map(|_| take())).await;
        let counts: Vec<u64> = answers.iter().map(|answer| answer.json()["count"].as_u64().unwrap_or_default()).collect();
        assert!(answers.iter().all(|answer| answer.status == 200), "{:?}", answers.iter().map(|answer| &answer.text).collect::<Vec<_>>());
        assert_eq!(counts.iter().sum::<u64>(), 40, "{counts:?}");
        let updated = admin.outbox("ticket").await.into_iter().filter(|(topic, _)| topic == "data.ticket.updated").count();
        assert_eq!(updated, 40);
    }
}

on_both_engines! {
    async fn more_records_than_one_call_takes_are_refused(engine: Engine) {
        let server = ServerBuilder::new(engine).env("SVC_MAX_BULK", "3").start().await;
        let admin = server.admin().await;
        define(&admin).await;
        for number in 0..4 {
            admin.make("ticket", json!({ "title": format!("t{number}"), "state": "free" })).await;
        }
        let all = json!({ "where": { "state": "free" } });
        admin.delete_with(BULK, all.clone()).await.expect_error(400, "invalid_request");
        admin.delete_with(&format!("{BULK}?dryRun=true"), all.clone()).await.expect_error(400, "invalid_request");
        assert_eq!(titles(&admin, "").await.len(), 4);
        assert_eq!(admin.delete_with(BULK, json!({ "where": { "title": "t0" } })).await.json()["count"], 1);
        assert_eq!(admin.delete_with(BULK, all).await.json()["count"], 3);
    }

    async fn only_records_that_the_caller_may_read_and_write_count(engine: Engine) {
        let server = ServerBuilder::new(engine).env("SVC_MAX_BULK", "3").start().await;
        let admin = server.admin().await;
        define(&admin).await;
        let make = async |title: &str, points: u8| admin.make("ticket", json!({ "title": title, "points": points })).await;
        for title in ["x1", "x2", "x3", "x4", "x5"] {
            make(title, 90).await;
        }
        let mut few = [make("a", 1).await, make("b", 1).await, make("c", 1).await];
        few.sort();
        // The other records are outside of one of the policies, or of both.
        let few_points = json!({ "points": { "lt": 50 } });
        let grants = |read: Option<&Value>, write: Option<&Value>| {
            let grant = |actions: Value, rows: Option<&Value>| match rows {
                None => json!({ "resource": "ticket", "actions": actions }),
                Some(rows) => json!({ "resource": "ticket", "actions": actions, "where": rows }),
            };
            json!([grant(json!(["read"]), read), grant(json!(["update", "delete"]), write)])
        };
        let roles = [
            ("reads_few", grants(Some(&few_points), None)),
            ("writes_few", grants(None, Some(&few_points))),
            ("knows_few", grants(Some(&few_points), Some(&few_points))),
        ];
        let mut callers = Vec::new();
        for (name, grants) in roles {
            role(&admin, name, grants).await;
            callers.push((name, user(&admin, name, Some(name)).await.0));
        }
        // Every record meets this condition.
        let all = json!({ "where": { "points": { "gte": 0 } } });
        let change = json!({ "where": all["where"], "values": { "points": { "$inc": 1 } } });
        for (name, caller) in &callers {
            for query in ["?dryRun=true", ""] {
                let changed = caller.patch(&format!("{BULK}{query}"), change.clone()).await;
                assert_eq!(changed.status, 200, "{name}: {}", changed.text);
                let mut ids: Vec<String> = serde_json::from_value(changed.json()["ids"].clone()).unwrap();
                ids.sort();
                assert_eq!((ids.as_slice(), &changed.json()["count"]), (few.as_slice(), &json!(3)), "{name}");
            }
            let gone = caller.delete_with(&format!("{BULK}?dryRun=true"), all.clone()).await;
            assert_eq!((gone.status, gone.json()["count"].clone()), (200, json!(3)), "{name}: {}", gone.text);
        }
        assert_eq!(titles(&admin, "points=4").await, ["a", "b", "c"]);
        assert_eq!(titles(&admin, "points=90").await, ["x1", "x2", "x3", "x4", "x5"]);

        // With one more of these records, the call fails. The message does not depend on the number of the others.
        let more = make("d", 1).await;
        let refusals = async || {
            let mut messages = Vec::new();
            for (_, caller) in &callers {
                let changed = caller.patch(BULK, change.clone()).await;
                messages.push(changed.expect_error(400, "invalid_request")["message"].clone());
                let gone = caller.delete_with(BULK, all.clone()).await;
                messages.push(gone.expect_error(400, "invalid_request")["message"].clone());
            }
            messages
        };
        let refused = refusals().await;
        make("x6", 90).await;
        assert_eq!(refusals().await, refused);
        assert_eq!(titles(&admin, "").await.len(), 10);
        assert_eq!(titles(&admin, "points=4").await, ["a", "b", "c"]);
        assert_eq!(admin.delete(&format!("/api/v1/data/ticket/{more}")).await.status, 204);
        for (place, (name, caller)) in callers.iter().enumerate() {
            let gone = caller.delete_with(BULK, all.clone()).await;
            assert_eq!((gone.status, gone.json()["count"].clone()), (200, json!(if place == 0 { 3 } else { 0 })), "{name}: {}", gone.text);
        }
        assert_eq!(titles(&admin, "").await, ["x1", "x2", "x3", "x4", "x5", "x6"]);
    }
}

/// Postgres runs writes at the same time. SQLite runs one after the other.
#[tokio::test]
async fn what_came_while_a_call_waited_counts() {
    let server = ServerBuilder::new(Engine::Postgres).start().await;
    let admin = server.admin().await;
    define(&admin).await;
    admin.define("note", json!([{ "name": "text", "type": "text" }])).await;
    admin
        .relate(json!({ "name": "ticket", "kind": "many_to_one", "source": "note", "target": "ticket", "onDelete": "cascade" }))
        .await;
    let ticket = admin.make("ticket", json!({ "title": "a" })).await;
    // Another transaction writes a note that refers to the ticket. Until that transaction ends, the ticket cannot be deleted.
    let note = format!(
        "INSERT INTO note (id, text, ticket_id, created_at, updated_at, svc_version) \
         VALUES (gen_random_uuid(), 'kept', '{ticket}', now(), now(), 1)"
    );
    let held = server.lock_rows(&note).await;
    let delete = json!({ "where": { "title": "a", "note_by_ticket": { "none": {} } } });
    let gone = async {
        let gone = admin.delete_with(BULK, delete).await;
        (gone.status, gone.json())
    };
    let release = async {
        // The call has begun to wait for the row.
        let waits = "SELECT count(*)::text FROM pg_stat_activity WHERE datname = current_database() AND wait_event_type = 'Lock'";
        while server.sql(waits).await[0][0] == "0" {
            tokio::task::yield_now().await;
        }
        held.release().await;
    };
    let (gone, ()) = tokio::join!(gone, release);
    assert_eq!(gone, (200, json!({ "count": 0, "ids": [] })));
    assert_eq!(titles(&admin, "").await, ["a"]);
}

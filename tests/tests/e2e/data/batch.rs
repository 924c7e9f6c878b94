//! Several writes in one call: all of them or none.

mod references;
mod rights;
mod sizes;
mod surfaces;

use std::collections::HashSet;

use blockbase_tests::{Admin, Answer, Engine, ServerBuilder, on_both_engines, until};
use futures_util::future::join_all;
use serde_json::{Value, json};

const PATH: &str = "/api/v1/batch";
const NOBODY: &str = "20000000-0000-4000-8000-000000000000";

async fn batch(caller: &Admin<'_>, operations: Value) -> Answer {
    caller.post(PATH, json!({ "operations": operations })).await
}

/// The results of a batch that succeeds.
#[track_caller]
fn results(answer: &Answer) -> Vec<Value> {
    assert_eq!(answer.status, 200, "{}", answer.text);
    assert_eq!(answer.json().as_object().unwrap().len(), 1, "{}", answer.text);
    answer.data().as_array().unwrap().clone()
}

/// The error of the operation at `index`.
#[track_caller]
fn failed(answer: &Answer, index: usize, status: u16, code: &str) -> Value {
    let error = answer.expect_error(status, code);
    assert!(error["message"].as_str().unwrap().starts_with(&format!("At index {index}: ")), "{error}");
    assert_eq!(error["index"], index, "{error}");
    error
}

/// Teams with members, and tags of members.
async fn define(admin: &Admin<'_>) {
    admin.define("team", json!([{ "name": "name", "type": "text" }, { "name": "size", "type": "integer", "min": 0 }])).await;
    let fields = json!([
        { "name": "name", "type": "text", "required": true, "max": 100 },
        { "name": "points", "type": "integer", "min": 0, "max": 1000 },
        { "name": "extra", "type": "json" },
        { "name": "kinds", "type": "multi_enum", "options": ["a", "b"] },
    ]);
    admin.define("member", fields).await;
    admin.define("tag", json!([{ "name": "code", "type": "slug", "isUnique": true }, { "name": "label", "type": "text" }])).await;
    admin.relate(json!({ "name": "team", "kind": "many_to_one", "source": "member", "target": "team" })).await;
    admin
        .relate(json!({ "name": "tags", "kind": "many_to_many", "source": "member", "target": "tag", "onDelete": "cascade" }))
        .await;
}

async fn total(admin: &Admin<'_>, object: &str) -> u64 {
    admin.get(&format!("/api/v1/data/{object}?limit=1")).await.json()["pagination"]["totalCount"].as_u64().unwrap()
}

async fn events(admin: &Admin<'_>) -> usize {
    admin.server.sql("SELECT id FROM svc_events WHERE object IS NOT NULL").await.len()
}

on_both_engines! {
    async fn operations_of_every_kind_run_as_one(server: Server) {
        let admin = server.admin().await;
        define(&admin).await;
        let old = admin.make("tag", json!({ "code": "old", "label": "x" })).await;
        let answer = batch(&admin, json!([
            { "op": "create", "object": "team", "values": { "name": "red", "size": 1, "id": NOBODY } },
            { "op": "create", "object": "member", "values": { "name": "Ann", "team_id": { "$ref": "0.id" }, "points": { "$ref": "0.size" } } },
            { "op": "upsert", "object": "tag", "values": { "code": "old", "label": "y" }, "onConflict": ["code"] },
            { "op": "upsert", "object": "tag", "values": { "code": "new" }, "onConflict": ["code"] },
            { "op": "link", "object": "member", "id": { "$ref": "1.id" }, "relation": "tags", "ids": [{ "$ref": "2.id" }, { "$ref": "3.id" }, old] },
            { "op": "update", "object": "member", "id": { "$ref": "1.id" }, "values": { "points": { "$inc": 4 }, "name": { "$ref": "0.name" } } },
            { "op": "unlink", "object": "member", "id": { "$ref": "1.id" }, "relation": "tags", "ids": [old, NOBODY] },
            { "op": "create", "object": "team", "values": { "name": "blue" } },
            { "op": "update", "object": "team", "id": { "$ref": "0.id" }, "values": {} },
            { "op": "delete", "object": "team", "id": { "$ref": "7.id" } },
        ])).await;
        let done = results(&answer);
        let (team, member) = (done[0]["data"]["id"].as_str().unwrap(), done[1]["data"]["id"].as_str().unwrap());
        assert_ne!(team, NOBODY);
        assert_eq!(done[0]["data"].as_object().unwrap().len(), 7);
        assert_eq!((&done[1]["data"]["team_id"], &done[1]["data"]["points"]), (&json!(team), &json!(1)));
        assert_eq!((&done[2]["created"], &done[2]["data"]["id"], &done[2]["data"]["label"]), (&json!(false), &json!(old), &json!("y")));
        assert_eq!(done[3]["created"], true);
        assert_eq!(done[4], json!({ "data": { "added": 2 } }));
        assert_eq!((&done[5]["data"]["points"], &done[5]["data"]["name"]), (&json!(5), &json!("red")));
        assert_eq!(done[6], json!({ "data": { "removed": 1 } }));
        assert_eq!(done[8]["data"], done[0]["data"]);
        assert_eq!((done.len(), &done[9]), (10, &Value::Null));
        for (place, answer) in done.iter().enumerate() {
            let members = answer.as_object().map_or(0, serde_json::Map::len);
            assert_eq!(members, match place { 2 | 3 => 2, 9 => 0, _ => 1 }, "{answer}");
        }
        // The records are as the results say, and so are totals and searches.
        assert_eq!(admin.get(&format!("/api/v1/data/member/{member}")).await.data(), done[5]["data"]);
        let tags = admin.get(&format!("/api/v1/data/member/{member}?expand=tags")).await.data()["tags"].clone();
        assert_eq!(tags, json!([done[3]["data"]]));
        assert_eq!((total(&admin, "team").await, total(&admin, "member").await, total(&admin, "tag").await), (1, 1, 2));
        for (search, found) in [("red", 1), ("Ann", 0)] {
            let listed = admin.get(&format!("/api/v1/data/member?search={search}")).await.json();
            assert_eq!(listed["pagination"]["totalCount"], found, "{search}");
        }
        assert_eq!(admin.get("/api/v1/data/team?search=blue").await.json()["pagination"]["totalCount"], 0);
        // Each operation has one event, in order. One without an effect has none.
        let rows = server.sql("SELECT topic FROM svc_events WHERE object IS NOT NULL ORDER BY seq").await;
        let topics: Vec<&str> = rows.iter().skip(1).map(|row| row[0].as_str()).collect();
        assert_eq!(topics, [
            "data.team.created", "data.member.created", "data.tag.updated", "data.tag.created", "data.member.linked",
            "data.member.updated", "data.member.unlinked", "data.team.created", "data.team.deleted",
        ]);
        let of_member = admin.outbox("member").await;
        assert_eq!((&of_member[2].1["before"], &of_member[2].1["after"]), (&done[1]["data"], &done[5]["data"]));
        assert_eq!(of_member[1].1["targetIds"], json!([done[2]["data"]["id"], done[3]["data"]["id"]]));
        assert_eq!(batch(&admin, json!([])).await.json(), json!({ "data": [] }));
    }

    async fn an_operation_fails_as_its_own_call_does_and_nothing_changes(server: Server) {
        let admin = server.admin().await;
        define(&admin).await;
        let team = admin.make("team", json!({ "name": "red" })).await;
        let member = admin.make("member", json!({ "name": "Ann", "team_id": team, "points": 3 })).await;
        let tag = admin.make("tag", json!({ "code": "taken" })).await;
        let one = format!("/api/v1/data/member/{member}");
        let (links, tags) = (format!("{one}/links/tags"), "/api/v1/data/tag");
        let create = |object: &str, values: Value| json!({ "op": "create", "object": object, "values": values });
        let update = |id: &str, values: Value| json!({ "op": "update", "object": "member", "id": id, "values": values });
        let upsert = |values: Value, target: Value| json!({ "op": "upsert", "object": "tag", "values": values, "onConflict": target });
        let link = |op: &str, relation: &str, ids: Value| json!({ "op": op, "object": "member", "id": member, "relation": relation, "ids": ids });
        let cases: Vec<(Value, &str, String, Value)> = vec![
            (create("nothing", json!({})), "POST", "/api/v1/data/nothing".into(), json!({})),
            (create("users", json!({})), "POST", "/api/v1/data/users".into(), json!({})),
            (create("tag", json!({ "code": "taken" })), "POST", tags.into(), json!({ "code": "taken" })),
            (create("tag", json!({ "code": "A B" })), "POST", tags.into(), json!({ "code": "A B" })),
            (create("member", json!({})), "POST", "/api/v1/data/member".into(), json!({})),
            (create("member", json!({ "colour": 1, "name": 5 })), "POST", "/api/v1/data/member".into(), json!({ "colour": 1, "name": 5 })),
            (create("member", json!({ "name": "x", "team_id": NOBODY })), "POST", "/api/v1/data/member".into(), json!({ "name": "x", "team_id": NOBODY })),
            (update(NOBODY, json!({ "name": "x" })), "PATCH", format!("/api/v1/data/member/{NOBODY}"), json!({ "name": "x" })),
            (update("no id", json!({ "name": "x" })), "PATCH", "/api/v1/data/member/no%20id".into(), json!({ "name": "x" })),
            (update(&member, json!({ "points": { "$inc": 998 } })), "PATCH", one.clone(), json!({ "points": { "$inc": 998 } })),
            (update(&member, json!({ "name": { "$inc": 1 } })), "PATCH", one.clone(), json!({ "name": { "$inc": 1 } })),
            (update(&member, json!({ "name": null })), "PATCH", one.clone(), json!({ "name": null })),
            (upsert(json!({ "code": "x" }), json!(["label"])), "POST", format!("{tags}?on_conflict=label"), json!({ "code": "x" })),
            (upsert(json!({ "label": "x" }), json!(["code"])), "POST", format!("{tags}?on_conflict=code"), json!({ "label": "x" })),
            (json!({ "op": "delete", "object": "team", "id": team }), "DELETE", format!("/api/v1/data/team/{team}"), Value::Null),
            (json!({ "op": "delete", "object": "team", "id": NOBODY }), "DELETE", format!("/api/v1/data/team/{NOBODY}"), Value::Null),
            (link("link", "tags", json!([tag, NOBODY])), "POST", links.clone(), json!({ "ids": [tag, NOBODY] })),
            (link("link", "tags", json!(["x"])), "POST", links.clone(), json!({ "ids": ["x"] })),
            (link("unlink", "team", json!([])), "DELETE", format!("{one}/links/team"), json!({ "ids": [] })),
        ];
        let before = events(&admin).await;
        for (operation, method, path, body) in cases {
            let request = admin.request(method, &path);
            let alone = server.send(if body.is_null() { request } else { request.json(&body) }).await;
            let (status, alone) = (alone.status, alone.json());
            let refused = batch(&admin, json!([create("team", json!({ "name": "new" })), operation, update(&member, json!({ "points": 9 }))])).await;
            let mut error = failed(&refused, 1, status, alone["error"].as_str().unwrap());
            assert_eq!(error["message"], format!("At index 1: {}", alone["message"].as_str().unwrap()), "{operation}");
            error["message"] = alone["message"].clone();
            error.as_object_mut().unwrap().remove("index");
            assert_eq!(error, alone, "{operation}");
        }
        assert_eq!((total(&admin, "team").await, total(&admin, "member").await, total(&admin, "tag").await), (1, 1, 1));
        assert_eq!(admin.get(&one).await.data()["points"], 3);
        assert_eq!(events(&admin).await, before);
    }

    async fn creates_that_follow_each_other_fail_as_each_would_alone(server: Server) {
        let admin = server.admin().await;
        define(&admin).await;
        let create = |object: &str, values: Value| json!({ "op": "create", "object": object, "values": values });
        let tag = |code: &str| create("tag", json!({ "code": code }));
        let member = |team: Value| create("member", json!({ "name": "m", "team_id": team }));
        let team = admin.make("team", json!({ "name": "red" })).await;
        admin.make("tag", json!({ "code": "taken" })).await;
        let before = events(&admin).await;
        for (operations, index, code) in [
            (json!([tag("one"), tag("two"), tag("two"), tag("taken")]), 2, "unique_violation"),
            (json!([tag("one"), tag("taken"), tag("one")]), 1, "unique_violation"),
            (json!([member(json!(team)), member(json!(NOBODY)), member(Value::Null)]), 1, "foreign_key_violation"),
            (json!([tag("one"), tag("two"), member(json!(team)), member(json!(NOBODY))]), 3, "foreign_key_violation"),
        ] {
            failed(&batch(&admin, operations).await, index, 409, code);
        }
        assert_eq!((total(&admin, "tag").await, total(&admin, "member").await, events(&admin).await), (1, 0, before));
        assert_eq!(admin.get("/api/v1/data/tag?search=one").await.json()["pagination"]["totalCount"], 0);
    }

    async fn creates_that_follow_each_other_are_all_made_in_order(server: Server) {
        let admin = server.admin().await;
        define(&admin).await;
        admin.define("node", json!([{ "name": "name", "type": "text" }])).await;
        admin.relate(json!({ "name": "parent", "kind": "many_to_one", "source": "node", "target": "node" })).await;
        let create = |object: &str, values: Value| json!({ "op": "create", "object": object, "values": values });
        let mut operations: Vec<Value> = (0..250).map(|number| create("tag", json!({ "code": format!("code{number}") }))).collect();
        operations.extend([
            create("node", json!({ "name": "root" })),
            create("node", json!({ "name": "leaf", "parent_id": { "$ref": "250.id" } })),
            create("node", json!({ "name": "other" })),
            json!({ "op": "update", "object": "tag", "id": { "$ref": "100.id" }, "values": { "label": { "$ref": "101.code" } } }),
        ]);
        let done = results(&batch(&admin, json!(operations)).await);
        assert!((0..250).all(|number| done[number]["data"]["code"] == format!("code{number}")));
        assert_eq!(done[251]["data"]["parent_id"], done[250]["data"]["id"]);
        assert_eq!((&done[253]["data"]["code"], &done[253]["data"]["label"]), (&json!("code100"), &json!("code101")));
        assert_eq!((total(&admin, "tag").await, total(&admin, "node").await), (250, 3));
        assert_eq!(admin.get("/api/v1/data/tag?search=code249").await.json()["pagination"]["totalCount"], 1);
        let ids: Vec<&str> = done.iter().map(|result| result["data"]["id"].as_str().unwrap()).collect();
        let of_events = server.sql("SELECT record_id FROM svc_events WHERE record_id IS NOT NULL ORDER BY seq").await;
        assert_eq!(of_events.iter().map(|row| row[0].as_str()).collect::<Vec<_>>(), ids);
    }

    async fn bodies_are_checked_whole(server: Server) {
        let admin = server.admin().await;
        admin.make_task_object().await;
        let create = json!({ "op": "create", "object": "task", "values": { "title": "t" } });
        for body in [json!({}), json!([]), json!({ "operations": {} }), json!({ "operations": null }), json!({ "operations": [], "x": 1 })] {
            let refused = admin.post(PATH, body.clone()).await.expect_error(400, "invalid_request");
            assert!(refused.get("index").is_none(), "{body}");
        }
        let many = admin.post(PATH, json!({ "operations": vec![&create; 1001] })).await.expect_error(400, "invalid_request");
        assert!(many["message"].as_str().unwrap().contains("1000"), "{many}");
        for bad in [
            json!(null), json!(7), json!([]), json!({}), json!({ "op": "create", "object": "task" }),
            json!({ "op": "replace", "object": "task", "values": {} }),
            json!({ "op": "create", "object": "task", "values": { "title": "t" }, "id": NOBODY }),
            json!({ "op": "delete", "object": "task", "id": NOBODY, "values": {} }),
            json!({ "op": "delete", "object": "task", "id": 7 }),
            json!({ "op": "update", "object": "task", "id": NOBODY, "values": {}, "ifVersion": "bare" }),
            json!({ "op": "upsert", "object": "task", "values": { "title": "t" }, "onConflict": ["id"], "ifVersion": "*" }),
            json!({ "op": "link", "object": "task", "id": NOBODY, "relation": "x", "ids": vec!["x"; 1001] }),
            json!({ "op": "create", "object": "task", "values": { "title": "t" }, "colour": 1 }),
        ] {
            failed(&batch(&admin, json!([create, bad])).await, 1, 400, "invalid_request");
        }
        let twice = r#"{"operations":[{"op":"create","object":"task","values":{"title":"a","title":"b"}}]}"#;
        let request = admin.request("POST", PATH).header("content-type", "application/json").body(twice);
        failed(&server.send(request).await, 0, 400, "invalid_request");
        let condition = admin.request("POST", PATH).header("if-match", "*").json(&json!({ "operations": [create] }));
        server.send(condition).await.expect_error(400, "invalid_request");
        admin.get(PATH).await.expect_error(405, "method_not_allowed");
        server.call("POST", PATH, Some(json!({ "operations": [] }))).await.expect_error(401, "unauthorized");
        assert_eq!((total(&admin, "task").await, events(&admin).await), (0, 0));
    }

    async fn a_thousand_operations_are_one_or_none(server: Server) {
        let admin = server.admin().await;
        define(&admin).await;
        let mut operations: Vec<Value> = (0..1000)
            .map(|number| match number % 2 {
                0 => json!({ "op": "create", "object": "team", "values": { "name": format!("t{number}") } }),
                _ => json!({ "op": "create", "object": "member", "values": { "name": "m", "team_id": { "$ref": format!("{}.id", number - 1) } } }),
            })
            .collect();
        let last = operations[999].take();
        operations[999] = json!({ "op": "delete", "object": "team", "id": NOBODY });
        failed(&batch(&admin, json!(operations)).await, 999, 404, "not_found");
        assert_eq!((total(&admin, "team").await, total(&admin, "member").await, events(&admin).await), (0, 0, 0));
        assert_eq!(admin.get("/api/v1/data/team?search=t998").await.json()["pagination"]["totalCount"], 0);
        operations[999] = last;
        let done = results(&batch(&admin, json!(operations)).await);
        assert_eq!(done.len(), 1000);
        for pair in done.chunks(2) {
            assert_eq!(pair[1]["data"]["team_id"], pair[0]["data"]["id"]);
        }
        assert_eq!((total(&admin, "team").await, total(&admin, "member").await, events(&admin).await), (500, 500, 1000));
        // The updates and deletions of a record in one batch follow each other.
        let team = done[0]["data"]["id"].clone();
        let add = json!({ "op": "update", "object": "team", "id": team, "values": { "size": { "$inc": 1 } } });
        let mut operations = vec![json!({ "op": "update", "object": "team", "id": team, "values": { "size": 0 } })];
        operations.extend(vec![add; 998]);
        let sizes = results(&batch(&admin, json!(operations)).await);
        assert!(sizes.iter().enumerate().all(|(place, result)| result["data"]["size"] == place));
        let gone = json!({ "op": "delete", "object": "member", "id": done[1]["data"]["id"] });
        failed(&batch(&admin, json!([gone, gone])).await, 1, 404, "not_found");
        assert_eq!(total(&admin, "member").await, 500);
    }
}

on_both_engines! {
    async fn one_of_a_hundred_writers_of_a_version_wins(server: Server) {
        let admin = server.admin().await;
        define(&admin).await;
        let team = admin.make("team", json!({ "size": 0 })).await;
        let path = format!("/api/v1/data/team/{team}");
        for round in 1..=5 {
            let version = admin.get(&path).await.headers["etag"].to_str().unwrap().to_owned();
            let writers = (0..100).map(|number| {
                let (admin, version, team) = (&admin, &version, &team);
                async move {
                    batch(admin, json!([
                        { "op": "create", "object": "tag", "values": { "label": format!("{round}.{number}") } },
                        { "op": "update", "object": "team", "id": team, "values": { "size": { "$inc": 1 } }, "ifVersion": version },
                    ])).await
                }
            });
            let answers = join_all(writers).await;
            let (won, lost): (Vec<_>, Vec<_>) = answers.iter().partition(|answer| answer.status == 200);
            assert_eq!(won.len(), 1, "{:?}", answers.iter().map(|answer| answer.status).collect::<HashSet<_>>());
            lost.iter().for_each(|answer| drop(failed(answer, 1, 412, "precondition_failed")));
            assert_eq!(admin.get(&path).await.data()["size"], round);
            assert_eq!(total(&admin, "tag").await, round);
        }
        let version = admin.get(&path).await.headers["etag"].to_str().unwrap().to_owned();
        // A version of an earlier operation's state does not hold any more. `*` requires only that the record exists.
        let update = |version: &str| json!({ "op": "update", "object": "team", "id": team, "values": { "name": "x" }, "ifVersion": version });
        failed(&batch(&admin, json!([update(&version), update(&version)])).await, 1, 412, "precondition_failed");
        let delete = |version: &str| json!({ "op": "delete", "object": "team", "id": team, "ifVersion": version });
        failed(&batch(&admin, json!([delete("\"stale\"")])).await, 0, 412, "precondition_failed");
        results(&batch(&admin, json!([update(&version), update("*"), delete("*")])).await);
        failed(&batch(&admin, json!([delete(&version)])).await, 0, 404, "not_found");
    }

    async fn batches_that_cross_each_other_all_end(server: Server) {
        let admin = server.admin().await;
        define(&admin).await;
        let mut teams = Vec::new();
        for _ in 0..6 {
            teams.push(admin.make("team", json!({ "size": 0 })).await);
        }
        let callers = (0..40).map(|number| {
            let (admin, mut order) = (&admin, teams.clone());
            order.rotate_left(number % 6);
            if number % 2 == 0 {
                order.reverse();
            }
            async move {
                let operations: Vec<Value> = order.iter().map(|id| json!({ "op": "update", "object": "team", "id": id, "values": { "size": { "$inc": 1 } } })).collect();
                batch(admin, json!(operations)).await
            }
        });
        join_all(callers).await.iter().for_each(|answer| drop(results(answer)));
        for team in teams {
            assert_eq!(admin.get(&format!("/api/v1/data/team/{team}")).await.data()["size"], 40);
        }
        assert_eq!(admin.outbox("team").await.len(), 6 + 240);
    }
}

on_both_engines! {
    async fn operations_with_different_scopes_do_not_wait_for_each_other(engine: Engine) {
        let server = ServerBuilder::new(engine).start().await;
        let admin = server.admin().await;
        define(&admin).await;
        let owner = rights::user(&admin, "owner", json!([
            { "resource": "team", "actions": ["create", "read", "delete"] },
            { "resource": "team", "actions": ["update"], "rowPolicy": "own" },
        ])).await;
        let deadlocks = async || match engine {
            Engine::Postgres => server.sql("SELECT deadlocks FROM pg_stat_database WHERE datname = current_database()").await,
            Engine::Sqlite => Vec::new(),
        };
        let before = deadlocks().await;
        for _ in 0..10 {
            let (one, two) = (owner.make("team", json!({})).await, owner.make("team", json!({})).await);
            let callers = (0..8).map(|number| {
                let (owner, changed, gone) = if number % 2 == 0 { (&owner, &one, &two) } else { (&owner, &two, &one) };
                async move {
                    batch(owner, json!([
                        { "op": "update", "object": "team", "id": changed, "values": { "size": number } },
                        { "op": "delete", "object": "team", "id": gone },
                    ])).await
                }
            });
            let answers = join_all(callers).await;
            let done = answers.iter().filter(|answer| answer.status == 200).count();
            assert!(answers.iter().all(|answer| matches!(answer.status, 200 | 404)));
            assert_eq!((done, total(&admin, "team").await), (1, 1));
            for team in [one, two] {
                admin.delete(&format!("/api/v1/data/team/{team}")).await;
            }
        }
        assert_eq!(deadlocks().await, before);
    }

    async fn creates_that_follow_each_other_share_a_statement_on_a_network(engine: Engine) {
        let server = ServerBuilder::new(engine).env("SVC_LOG", "info,blockbase_store::sql=trace").start().await;
        let admin = server.admin().await;
        define(&admin).await;
        let operations: Vec<Value> = (0..10)
            .map(|number| json!({ "op": "create", "object": "tag", "values": { "code": format!("code{number}") } }))
            .collect();
        results(&batch(&admin, json!(operations)).await);
        // The log comes through a pipe, so it may be late. The statements of a request come before the line of its answer.
        until("the batch is in the log", async || server.log().lines().any(|line| line.contains("answered") && line.contains(PATH))).await;
        // Quotes are escaped in the log.
        let inserts = server.log().lines().filter(|line| line.contains(r#"INSERT INTO \"tag\""#)).count();
        // On SQLite, a statement is no round trip.
        assert_eq!(inserts, if engine == Engine::Postgres { 1 } else { 10 });
    }

    async fn a_record_is_found_after_it_was_deleted_and_created_again(engine: Engine) {
        let server = ServerBuilder::new(engine).start().await;
        let admin = server.admin().await;
        define(&admin).await;
        let create = json!({ "op": "create", "object": "team", "values": { "name": "crimson" } });
        let delete = |reference: &str| json!({ "op": "delete", "object": "team", "id": { "$ref": reference } });
        let done = results(&batch(&admin, json!([create, delete("0.id"), create, delete("2.id"), create])).await);
        let listed = admin.get("/api/v1/data/team?search=crimson").await.json();
        assert_eq!((&listed["pagination"]["totalCount"], &listed["data"]), (&json!(1), &json!([done[4]["data"]])));
        let gone = json!({ "op": "delete", "object": "team", "id": done[4]["data"]["id"] });
        results(&batch(&admin, json!([gone, create, delete("1.id")])).await);
        assert_eq!(admin.get("/api/v1/data/team?search=crimson").await.json()["pagination"]["totalCount"], 0);
    }
}

on_both_engines! {
    async fn a_killed_process_leaves_whole_batches(engine: Engine) {
        let mut server = ServerBuilder::new(engine).start().await;
        let token = server.admin().await.token;
        server.with_token(token.clone()).define("team", json!([{ "name": "name", "type": "text" }])).await;
        const OPERATIONS: u64 = 40;
        let create = json!({ "op": "create", "object": "team", "values": { "name": "t" } });
        let body = json!({ "operations": vec![create; OPERATIONS as usize] });
        for _ in 0..3 {
            let before = total(&server.with_token(token.clone()), "team").await;
            let writers: Vec<_> = (0..4)
                .map(|_| {
                    let request = server.request("POST", PATH).bearer_auth(&token).json(&body);
                    tokio::spawn(async move {
                        while request.try_clone().unwrap().send().await.is_ok_and(|answer| answer.status() == 200) {}
                    })
                })
                .collect();
            until("some batches", async || total(&server.with_token(token.clone()), "team").await > before).await;
            server.kill();
            for writer in writers {
                writer.await.unwrap();
            }
            server = server.restart().await;
            // One statement counts both, because Postgres may still commit what the killed process sent.
            let counts = "SELECT (SELECT count(*) FROM team), (SELECT count(*) FROM svc_events WHERE object = 'team')";
            let counts: Vec<u64> = server.sql(counts).await[0].iter().map(|count| count.parse().unwrap()).collect();
            assert_eq!((counts[0] % OPERATIONS, counts[0]), (0, counts[1]), "a part of a batch is there");
        }
    }
}

on_both_engines! {
    async fn references_do_not_multiply_bytes_without_a_bound(server: Server) {
        let admin = server.admin().await;
        admin.define("page", json!([{ "name": "text", "type": "text" }])).await;
        let mut operations = vec![json!({ "op": "create", "object": "page", "values": { "text": "x".repeat(900_000) } })];
        operations.extend(vec![json!({ "op": "create", "object": "page", "values": { "text": { "$ref": "0.text" } } }); 10]);
        assert_eq!(results(&batch(&admin, json!(operations)).await).len(), 11);
        operations.extend(vec![operations[1].clone(); 40]);
        let refused = batch(&admin, json!(operations)).await.expect_error(400, "answer_too_large");
        assert!(refused["index"].as_u64().unwrap() > 30, "{refused}");
        let events = server.sql("SELECT count(*) FROM svc_events WHERE object = 'page'").await;
        assert_eq!((total(&admin, "page").await, events[0][0].as_str()), (11, "11"));
    }
}

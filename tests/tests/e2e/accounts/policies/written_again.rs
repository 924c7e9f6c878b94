//! Batches that write a row again. A state that no call may leave is not passed through either: neither the conditions of grants
//! nor events nor references to results get to see it.

use blockbase_tests::{Admin, on_both_engines, test_block};
use serde_json::{Value, json};

use crate::accounts::roles::{role, user};
use crate::events::Stream;
use crate::mcp::Client;

const MUTATION: &str = "mutation($operations: [JSON!]!) { batch(operations: $operations) }";

/// A user with these grants, who may also use every surface. Returns their client and id.
async fn writer<'a>(admin: &Admin<'a>, grants: Value) -> (Admin<'a>, String) {
    let installed = admin.install("", test_block("parity").await).await;
    assert_eq!(installed.status, 201, "{}", installed.text);
    let mut grants = grants.as_array().unwrap().clone();
    grants.push(json!({ "resource": "data", "actions": ["read"] }));
    grants.push(json!({ "resource": "parity:run", "actions": ["read"] }));
    role(admin, "writer", json!(grants)).await;
    user(admin, "ann", Some("writer")).await
}

async fn batch(caller: &Admin<'_>, operations: &Value) -> Vec<Value> {
    let answer = caller.post("/api/v1/batch", json!({ "operations": operations })).await;
    assert_eq!(answer.status, 200, "{operations}: {}", answer.text);
    answer.data().as_array().unwrap().clone()
}

/// These lists, and the number of events of records.
async fn state(admin: &Admin<'_>, lists: &[&str]) -> (Vec<Value>, usize) {
    let mut all = Vec::new();
    for list in lists {
        all.push(admin.get(&format!("/api/v1/data/{list}")).await.data());
    }
    (all, admin.server.sql("SELECT id FROM svc_events WHERE object IS NOT NULL").await.len())
}

/// Sends a batch to every surface. Each refuses it because of the row that the operation at `index` leaves, and nothing changes.
async fn refused(admin: &Admin<'_>, caller: &Admin<'_>, lists: &[&str], operations: Value, index: usize) {
    let before = state(admin, lists).await;
    let answer = caller.post("/api/v1/batch", json!({ "operations": operations })).await;
    assert_eq!(answer.status, 403, "{operations}: {}", answer.text);
    let error = answer.expect_error(403, "forbidden");
    assert_eq!(error["index"], index, "{operations}: {error}");
    let message = error["message"].as_str().unwrap();
    let message = message.strip_prefix(&format!("At index {index}: ")).unwrap_or_else(|| panic!("{operations}: {error}"));
    assert!(message.starts_with("Your permissions do not allow a record of "), "{operations}: {error}");

    let body = json!({ "query": MUTATION, "variables": { "operations": operations } });
    let answer = caller.post("/api/v1/graphql", body).await.json();
    let of_graphql = &answer["errors"][0];
    let extensions = &of_graphql["extensions"];
    assert_eq!((&extensions["code"], &extensions["index"]), (&json!("forbidden"), &json!(index)), "{operations}: {answer}");
    assert_eq!(of_graphql["message"], error["message"], "{operations}: {answer}");

    let called = Client::of(caller).call("batch_records", json!({ "operations": operations })).await;
    assert!(called.is_error, "{operations}: {}", called.text);
    assert_eq!(serde_json::from_str::<Value>(&called.text).unwrap(), error, "{operations}");

    // The errors of a block's batch have no index.
    let input = json!({ "op": "batch", "object": "", "json": operations.to_string() });
    let run = caller.post("/api/v1/blocks/parity/actions/run", input).await;
    assert_eq!(run.status, 200, "{operations}: {}", run.text);
    let outcome = run.data();
    let of_block = (&outcome["refused"]["code"], &outcome["refused"]["message"]);
    assert_eq!(of_block, (&json!("forbidden"), &json!(message)), "{operations}: {outcome}");
    assert_eq!(state(admin, lists).await, before, "{operations}");
}

fn update(object: &str, id: &str, values: Value) -> Value {
    json!({ "op": "update", "object": object, "id": id, "values": values })
}

fn create(object: &str, values: Value) -> Value {
    json!({ "op": "create", "object": object, "values": values })
}

fn delete(object: &str, id: impl Into<Value>) -> Value {
    let id: Value = id.into();
    json!({ "op": "delete", "object": object, "id": id })
}

on_both_engines! {
    async fn a_record_is_not_deleted_by_way_of_a_state_that_its_check_forbids(server: Server) {
        let admin = server.admin().await;
        admin.define("task", json!([{ "name": "title", "type": "text" }, { "name": "state", "type": "text" }])).await;
        let (ann, _) = writer(&admin, json!([
            { "resource": "task", "actions": ["read"] },
            { "resource": "task", "actions": ["create", "update"], "check": { "state": { "in": ["open", "done"] } } },
            { "resource": "task", "actions": ["delete"], "where": { "state": "archived" } },
        ])).await;
        let task = admin.make("task", json!({ "title": "a", "state": "open" })).await;
        let path = format!("/api/v1/data/task/{task}");
        ann.patch(&path, json!({ "state": "archived" })).await.expect_error(403, "forbidden");
        ann.delete(&path).await.expect_error(404, "not_found");
        let to = |state: &str| update("task", &task, json!({ "state": state }));
        let put = |state: &str| {
            json!({ "op": "upsert", "object": "task", "values": { "id": task, "state": state }, "onConflict": ["id"] })
        };
        let of_first = json!({ "$ref": "0.id" });
        for (operations, index) in [
            (json!([to("archived"), delete("task", &*task)]), 0),
            (json!([to("done"), to("archived"), delete("task", &*task)]), 1),
            (json!([put("archived"), delete("task", &*task)]), 0),
            (json!([create("task", json!({ "state": "archived" })), delete("task", of_first.clone())]), 0),
            (json!([to("archived"), to("open")]), 0),
            (json!([to("archived"), put("open")]), 0),
            (json!([to("archived")]), 0),
        ] {
            refused(&admin, &ann, &["task?sort=id"], operations, index).await;
        }
        // A row may be written again if each operation leaves what its check allows.
        let done = batch(&ann, &json!([to("done"), put("open"), update("task", &task, json!({ "title": "b" })), to("done")])).await;
        assert_eq!((&done[3]["data"]["title"], &done[3]["data"]["state"]), (&json!("b"), &json!("done")));
        let made = batch(&ann, &json!([
            create("task", json!({ "state": "open" })),
            { "op": "update", "object": "task", "id": of_first, "values": { "state": "done" } },
        ])).await;
        assert_eq!(made[1]["data"]["state"], "done");
        let archived = admin.make("task", json!({ "state": "archived" })).await;
        assert_eq!(batch(&ann, &json!([to("open"), delete("task", &*archived)])).await[1], Value::Null);
    }

    async fn no_event_and_no_reference_shows_a_state_that_a_check_forbids(server: Server) {
        let admin = server.admin().await;
        admin.define("memo", json!([{ "name": "status", "type": "text" }, { "name": "secret", "type": "text" }])).await;
        admin.define("note", json!([{ "name": "text", "type": "text" }])).await;
        let (ann, _) = writer(&admin, json!([
            { "resource": "memo", "actions": ["read"], "where": { "status": "public" } },
            { "resource": "memo", "actions": ["update"], "check": { "status": "draft" } },
            { "resource": "note", "actions": ["create", "read"] },
        ])).await;
        let memo = admin.make("memo", json!({ "status": "draft", "secret": "hidden" })).await;
        let mut stream = Stream::open(&ann, "?topics=data.%23").await;
        // On Postgres, a stream may begin with events from a moment before it.
        admin.make("note", json!({ "text": "begin" })).await;
        while stream.event().await["topic"] != "data.note.created" {}
        let to = |status: &str| update("memo", &memo, json!({ "status": status }));
        let copy = create("note", json!({ "text": { "$ref": "0.secret" } }));
        for operations in [
            json!([to("public"), to("draft")]),
            json!([to("public"), copy, to("draft")]),
            json!([to("public"), copy]),
        ] {
            refused(&admin, &ann, &["memo?sort=id", "note?sort=id"], operations, 0).await;
        }
        admin.make("note", json!({ "text": "end" })).await;
        let event = stream.event().await;
        assert_eq!((&event["topic"], &event["payload"]["after"]["text"]), (&json!("data.note.created"), &json!("end")), "{event}");
    }

    async fn a_membership_that_a_check_forbids_gives_no_right_until_it_is_gone(server: Server) {
        let admin = server.admin().await;
        admin.define("team", json!([{ "name": "open", "type": "boolean" }])).await;
        admin.define("member", json!([{ "name": "user_id", "type": "text" }])).await;
        admin.define("deal", json!([{ "name": "title", "type": "text" }])).await;
        for source in ["member", "deal"] {
            admin.relate(json!({ "name": "team", "kind": "many_to_one", "source": source, "target": "team" })).await;
        }
        let mine = json!({ "user_id": "$user.id" });
        let of_open = json!({ "user_id": "$user.id", "team": { "open": true } });
        let (ann, ann_id) = writer(&admin, json!([
            { "resource": "team", "actions": ["read"] },
            { "resource": "member", "actions": ["create"], "check": of_open },
            { "resource": "member", "actions": ["update"], "where": mine, "check": of_open },
            { "resource": "member", "actions": ["read", "delete"], "where": mine },
            { "resource": "deal", "actions": ["read"] },
            { "resource": "deal", "actions": ["delete"], "where": { "team": { "member_by_team": { "some": mine } } } },
        ])).await;
        let open = admin.make("team", json!({ "open": true })).await;
        let closed = admin.make("team", json!({ "open": false })).await;
        let deal = admin.make("deal", json!({ "title": "of others", "team_id": closed })).await;
        let join = |team: &str| create("member", json!({ "user_id": ann_id, "team_id": team }));
        let member = json!({ "$ref": "0.id" });
        let mut moves = update("member", "", json!({ "team_id": open }));
        moves["id"] = member.clone();
        for operations in [
            json!([join(&closed), delete("deal", &*deal), delete("member", member.clone())]),
            json!([join(&closed), delete("deal", &*deal), moves]),
            json!([join(&closed), delete("deal", &*deal)]),
        ] {
            refused(&admin, &ann, &["member?sort=id", "deal?sort=id"], operations, 0).await;
        }
        let another = admin.make("deal", json!({ "title": "of the open team", "team_id": open })).await;
        batch(&ann, &json!([join(&open), delete("deal", &*another), delete("member", member)])).await;
        assert_eq!(admin.get("/api/v1/data/deal").await.data()[0]["id"], json!(deal));
    }

    async fn a_grant_does_not_look_at_a_row_that_fails_its_check(server: Server) {
        let admin = server.admin().await;
        admin.define("team", json!([{ "name": "open", "type": "boolean" }])).await;
        admin.define("member", json!([{ "name": "user_id", "type": "text" }])).await;
        admin.relate(json!({ "name": "team", "kind": "many_to_one", "source": "member", "target": "team" })).await;
        let mine = json!({ "user_id": "$user.id" });
        let of_mine = json!({ "member_by_team": { "some": mine } });
        let (ann, ann_id) = writer(&admin, json!([
            { "resource": "team", "actions": ["read"] },
            { "resource": "team", "actions": ["create"] },
            { "resource": "team", "actions": ["update", "delete"], "where": of_mine, "check": {} },
            { "resource": "member", "actions": ["create"], "check": { "user_id": "$user.id", "team": { "open": true } } },
            { "resource": "member", "actions": ["read"] },
        ])).await;
        let closed = admin.make("team", json!({ "open": false })).await;
        let join = |team: Value| create("member", json!({ "user_id": ann_id, "team_id": team }));
        let set = |team: Value, open: bool| json!({ "op": "update", "object": "team", "id": team, "values": { "open": open } });
        let lists = ["team?sort=id", "member?sort=id"];
        // The member would have the right to open its team, so that its check is met at the end.
        refused(&admin, &ann, &lists, json!([join(json!(closed)), set(json!(closed), true)]), 0).await;
        let first = json!({ "$ref": "0.id" });
        let found = create("team", json!({ "open": false }));
        refused(&admin, &ann, &lists, json!([found, join(first.clone()), set(first.clone(), true)]), 1).await;
        // A member of an open team may close it, but not in the call that makes the member.
        let found = create("team", json!({ "open": true }));
        refused(&admin, &ann, &lists, json!([found, join(first.clone()), set(first.clone(), false)]), 1).await;
        let done = batch(&ann, &json!([found, join(first.clone()), set(first, true)])).await;
        let team = done[0]["data"]["id"].clone();
        assert_eq!(batch(&ann, &json!([set(team, false)])).await[0]["data"]["open"], false);
    }

    async fn a_link_that_a_check_forbids_gives_no_right_until_it_is_gone(server: Server) {
        let admin = server.admin().await;
        admin.define("team", json!([{ "name": "open", "type": "boolean" }])).await;
        admin.define("badge", json!([{ "name": "user_id", "type": "text" }])).await;
        admin.define("deal", json!([{ "name": "title", "type": "text" }])).await;
        let access = json!({ "name": "access", "kind": "many_to_many", "source": "badge", "target": "team", "onDelete": "cascade" });
        admin.relate(access).await;
        admin.relate(json!({ "name": "team", "kind": "many_to_one", "source": "deal", "target": "team", "onDelete": "set_null" })).await;
        let mine = json!({ "user_id": "$user.id" });
        // Ann can remove herself from a team, but not add herself.
        let (ann, ann_id) = writer(&admin, json!([
            { "resource": "team", "actions": ["read", "delete"] },
            { "resource": "team", "actions": ["update"], "check": { "access": { "none": mine } }, "fields": { "write": ["access"] } },
            { "resource": "badge", "actions": ["read"] },
            { "resource": "badge", "actions": ["update"], "where": mine,
              "check": { "user_id": "$user.id", "access": { "none": { "open": false } } } },
            { "resource": "deal", "actions": ["read"] },
            { "resource": "deal", "actions": ["delete"], "where": { "team": { "access": { "some": mine } } } },
        ])).await;
        let badge = admin.make("badge", json!({ "user_id": ann_id })).await;
        let open = admin.make("team", json!({ "open": true })).await;
        let closed = admin.make("team", json!({ "open": false })).await;
        let deal = admin.make("deal", json!({ "title": "of others", "team_id": closed })).await;
        let change = |op: &str, team: &str| json!({ "op": op, "object": "badge", "id": badge, "relation": "access", "ids": [team] });
        let leave = |team: &str| json!({ "op": "unlink", "object": "team", "id": team, "relation": "access", "ids": [badge] });
        for operations in [
            json!([change("link", &closed), delete("deal", &*deal)]),
            json!([change("link", &closed), delete("deal", &*deal), change("unlink", &closed)]),
            json!([change("link", &closed), delete("deal", &*deal), leave(&closed)]),
            json!([change("link", &closed), delete("deal", &*deal), delete("team", &*closed)]),
            // Nobody looks at the link, but the badge had it.
            json!([change("link", &closed), leave(&closed)]),
        ] {
            refused(&admin, &ann, &["badge?sort=id&expand=access", "team?sort=id", "deal?sort=id"], operations, 0).await;
        }
        let another = admin.make("deal", json!({ "title": "of the open team", "team_id": open })).await;
        let done = batch(&ann, &json!([change("link", &open), delete("deal", &*another), leave(&open)])).await;
        assert_eq!((&done[0]["data"]["added"], &done[2]["data"]["removed"]), (&json!(1), &json!(1)));
        assert_eq!(admin.get("/api/v1/data/deal").await.data()[0]["id"], json!(deal));
    }

    async fn a_dependent_record_is_judged_before_it_goes_or_loses_its_reference(server: Server) {
        let admin = server.admin().await;
        admin.define("task", json!([{ "name": "title", "type": "text" }])).await;
        admin.define("person", json!([{ "name": "active", "type": "boolean" }])).await;
        admin.define("step", json!([{ "name": "state", "type": "text" }])).await;
        for (name, target, on_delete) in [("task", "task", "cascade"), ("lead", "person", "set_null")] {
            let relation = json!({ "name": name, "kind": "many_to_one", "source": "step", "target": target, "onDelete": on_delete });
            admin.relate(relation).await;
        }
        let (ann, _) = writer(&admin, json!([
            { "resource": "step", "actions": ["read"] },
            { "resource": "step", "actions": ["update"],
              "check": { "state": "open", "_or": [{ "lead_id": { "is_null": true } }, { "lead": { "active": true } }] } },
            { "resource": "task", "actions": ["read"] },
            { "resource": "task", "actions": ["delete"], "where": { "step_by_task": { "some": { "state": "archived" } } } },
            { "resource": "person", "actions": ["read", "delete"] },
        ])).await;
        let task = admin.make("task", json!({ "title": "a" })).await;
        let step = admin.make("step", json!({ "state": "open", "task_id": task })).await;
        let [idle, active] = [
            admin.make("person", json!({ "active": false })).await,
            admin.make("person", json!({ "active": true })).await,
        ];
        ann.delete(&format!("/api/v1/data/task/{task}")).await.expect_error(404, "not_found");
        let archive = update("step", &step, json!({ "state": "archived" }));
        let led_by = |person: &str| update("step", &step, json!({ "lead_id": person }));
        for operations in [
            json!([archive, delete("task", &*task)]),
            json!([led_by(&idle), delete("person", &*idle)]),
        ] {
            refused(&admin, &ann, &["task?sort=id", "step?sort=id", "person?sort=id"], operations, 0).await;
        }
        batch(&ann, &json!([led_by(&active), delete("person", &*active)])).await;
        assert_eq!(admin.get(&format!("/api/v1/data/step/{step}")).await.data()["lead_id"], Value::Null);
        // A record that only loses its reference also has to meet its check at the end.
        let led = json!([
            { "resource": "step", "actions": ["update"], "check": { "lead": { "active": true } } },
            { "resource": "person", "actions": ["read", "delete"] },
            { "resource": "data", "actions": ["read"] },
        ]);
        assert_eq!(admin.patch("/api/v1/roles/writer", json!({ "permissions": led })).await.status, 200);
        let active = admin.make("person", json!({ "active": true })).await;
        let operations = json!([led_by(&active), delete("person", &*active)]);
        let answer = ann.post("/api/v1/batch", json!({ "operations": operations })).await;
        assert_eq!(answer.expect_error(403, "forbidden")["index"], 0, "{}", answer.text);
    }

    async fn a_check_that_needs_a_later_operation_is_met_if_its_record_is_written_once_or_after_it(server: Server) {
        let admin = server.admin().await;
        admin.define("team", json!([{ "name": "name", "type": "text" }])).await;
        admin.define("member", json!([{ "name": "user_id", "type": "text" }])).await;
        admin.relate(json!({ "name": "team", "kind": "many_to_one", "source": "member", "target": "team" })).await;
        let has_me = json!({ "member_by_team": { "some": { "user_id": "$user.id" } } });
        let (ann, ann_id) = writer(&admin, json!([
            { "resource": "team", "actions": ["create", "update"], "check": has_me },
            { "resource": "team", "actions": ["read"] },
            { "resource": "member", "actions": ["create", "read"] },
        ])).await;
        let found = create("team", json!({ "name": "a" }));
        let mut rename = update("team", "", json!({ "name": "b" }));
        rename["id"] = json!({ "$ref": "0.id" });
        let join = create("member", json!({ "user_id": ann_id, "team_id": { "$ref": "0.id" } }));
        refused(&admin, &ann, &["team?sort=id", "member?sort=id"], json!([found, rename, join]), 0).await;
        assert_eq!(batch(&ann, &json!([found, join, rename])).await[2]["data"]["name"], "b");
        assert_eq!(batch(&ann, &json!([found, join])).await.len(), 2);
        // Many records that are written again, each with its check.
        let mut operations = Vec::new();
        for number in (0..600).step_by(3) {
            let first = json!({ "$ref": format!("{number}.id") });
            let (mut join, mut rename) = (join.clone(), rename.clone());
            join["values"]["team_id"] = first.clone();
            rename["id"] = first;
            operations.extend([found.clone(), join, rename]);
        }
        assert_eq!(batch(&ann, &json!(operations)).await.len(), 600);
        operations.swap(598, 599);
        let answer = ann.post("/api/v1/batch", json!({ "operations": operations })).await;
        assert_eq!(answer.expect_error(403, "forbidden")["index"], 597, "{}", answer.text);
    }

    async fn the_links_of_a_new_record_are_a_part_of_making_it(server: Server) {
        let admin = server.admin().await;
        admin.define("tag", json!([{ "name": "label", "type": "text" }])).await;
        admin.define("post", json!([{ "name": "title", "type": "text" }])).await;
        admin.relate(json!({ "name": "tags", "kind": "many_to_many", "source": "post", "target": "tag" })).await;
        let tags = [admin.make("tag", json!({ "label": "open" })).await, admin.make("tag", json!({ "label": "closed" })).await];
        let [open, closed] = tags;
        let tagged = json!({ "tags": { "some": { "label": "open" } } });
        let (ann, _) = writer(&admin, json!([
            { "resource": "post", "actions": ["create", "update", "delete"], "check": tagged },
            { "resource": "post", "actions": ["read"] },
            { "resource": "tag", "actions": ["read"] },
        ])).await;
        let first = json!({ "$ref": "0.id" });
        let post = create("post", json!({ "title": "a" }));
        let change = |op: &str, tag: &str| json!({ "op": op, "object": "post", "id": first, "relation": "tags", "ids": [tag] });
        let (link, unlink) = (|tag: &str| change("link", tag), |tag: &str| change("unlink", tag));
        let delete_it = delete("post", first.clone());
        let lists = ["post?sort=id"];
        refused(&admin, &ann, &lists, json!([post]), 0).await;
        refused(&admin, &ann, &lists, json!([post, link(&closed)]), 0).await;
        refused(&admin, &ann, &lists, json!([post, delete_it]), 0).await;
        refused(&admin, &ann, &lists, json!([post, link(&closed), delete_it]), 0).await;
        // The second change of its links finds a record that the first one must not leave.
        refused(&admin, &ann, &lists, json!([post, link(&closed), link(&open)]), 1).await;
        refused(&admin, &ann, &lists, json!([post, link(&open), unlink(&open), link(&open)]), 2).await;
        assert_eq!(batch(&ann, &json!([post, link(&open)])).await.len(), 2);
        assert_eq!(batch(&ann, &json!([post, link(&open), link(&closed)])).await.len(), 3);
        assert_eq!(batch(&ann, &json!([post, link(&open), delete_it])).await.len(), 3);
    }

    async fn the_error_of_several_failed_checks_is_that_of_the_first_operation(server: Server) {
        let admin = server.admin().await;
        admin.define("task", json!([{ "name": "state", "type": "text" }])).await;
        admin.define("note", json!([{ "name": "state", "type": "text" }])).await;
        let check = json!({ "state": "open" });
        let (ann, _) = writer(&admin, json!([
            { "resource": "task", "actions": ["read", "create"], "check": check },
            { "resource": "note", "actions": ["read", "create"], "check": check },
        ])).await;
        let make = |object: &str, state: &str| create(object, json!({ "state": state }));
        for (operations, index) in [
            (json!([make("task", "open"), make("note", "done"), make("task", "done")]), 1),
            (json!([make("task", "done"), make("note", "done"), make("task", "done")]), 0),
            (json!([make("task", "open"), make("note", "open"), make("task", "done"), make("note", "done")]), 2),
        ] {
            refused(&admin, &ann, &["task", "note"], operations, index).await;
        }
    }
}

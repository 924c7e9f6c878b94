//! Grants with conditions: the rows that a role may use, and the rows that may result from its writes.

mod attacks;
mod consumers;
mod deliveries;
mod events;
mod explain;
mod fields;
mod given;
mod oracles;
mod plans;
mod schema;
mod users;
mod written_again;

use blockbase_tests::{Admin, Answer, Server, on_both_engines};
use serde_json::{Value, json};

use crate::accounts::roles::{key, role, user};
use crate::data::conditions::encoded;

/// Teams, their members and their tasks.
pub(crate) async fn define(admin: &Admin<'_>) {
    admin.define("team", json!([{ "name": "name", "type": "text", "isUnique": true }])).await;
    admin.define("member", json!([{ "name": "user_id", "type": "text" }, { "name": "leads", "type": "boolean" }])).await;
    admin
        .define(
            "task",
            json!([
                { "name": "title", "type": "text" },
                { "name": "state", "type": "enum", "options": ["open", "done", "archived"], "default": "open" },
                { "name": "assignee", "type": "text" },
                { "name": "points", "type": "integer" },
            ]),
        )
        .await;
    for source in ["member", "task"] {
        admin.relate(json!({ "name": "team", "kind": "many_to_one", "source": source, "target": "team" })).await;
    }
}

/// The condition for tasks of the caller's teams.
pub(crate) fn of_my_teams() -> Value {
    json!({ "team": { "member_by_team": { "some": { "user_id": "$user.id" } } } })
}

async fn titles(caller: &Admin<'_>, query: &str) -> Vec<String> {
    let listed = caller.get(&format!("/api/v1/data/task?sort=title&{query}")).await;
    assert_eq!(listed.status, 200, "{}", listed.text);
    let rows = listed.data();
    rows.as_array().unwrap().iter().map(|row| row["title"].as_str().unwrap().to_owned()).collect()
}

/// The caller's own grants on an object.
async fn own_grants(caller: &Admin<'_>, object: &str) -> Vec<Value> {
    let own = caller.get("/api/v1/me/permissions").await.data();
    let grants = own["permissions"].as_array().unwrap_or_else(|| panic!("{own}"));
    grants.iter().filter(|grant| grant["resource"] == object).cloned().collect()
}

fn path(id: &str) -> String {
    format!("/api/v1/data/task/{id}")
}

/// The role `worker`, whose members read the tasks of their teams, change those assigned to them within two states, and make tasks for
/// their teams.
async fn workers(admin: &Admin<'_>) -> String {
    let grants = json!([
        { "resource": "task", "actions": ["read"], "where": of_my_teams() },
        { "resource": "task", "actions": ["update", "delete"], "where": { "assignee": "$user.id" },
          "check": { "assignee": "$user.id", "state": { "in": ["open", "done"] } } },
        { "resource": "task", "actions": ["create"], "where": of_my_teams() },
        { "resource": "data", "actions": ["read"] },
        { "resource": "team", "actions": ["read"], "where": { "member_by_team": { "some": { "user_id": "$user.id" } } } },
    ]);
    role(admin, "worker", grants).await
}

struct World<'a> {
    admin: Admin<'a>,
    ann: Admin<'a>,
    ann_id: String,
    /// Ann's team, and the other one.
    teams: [String; 2],
    /// `a` and `b` belong to Ann's team, and `c` to the other team. `a` and `c` are assigned to Ann.
    tasks: [String; 3],
}

async fn world(server: &Server) -> World<'_> {
    let admin = server.admin().await;
    define(&admin).await;
    workers(&admin).await;
    let (ann, ann_id) = user(&admin, "ann", Some("worker")).await;
    let one = admin.make("team", json!({ "name": "one" })).await;
    let two = admin.make("team", json!({ "name": "two" })).await;
    admin.make("member", json!({ "user_id": ann_id, "team_id": one })).await;
    let task = async |title: &str, team: &str, assignee: Value| {
        admin.make("task", json!({ "title": title, "team_id": team, "assignee": assignee, "points": 1 })).await
    };
    let tasks = [task("a", &one, json!(ann_id)).await, task("b", &one, Value::Null).await, task("c", &two, json!(ann_id)).await];
    World { admin, ann, ann_id, teams: [one, two], tasks }
}

async fn graphql(caller: &Admin<'_>, query: &str) -> Value {
    caller.post("/api/v1/graphql", json!({ "query": query })).await.json()
}

on_both_engines! {
    async fn a_create_under_a_condition_shows_what_was_sent_to_a_writer_without_read(server: Server) {
        let admin = server.admin().await;
        define(&admin).await;
        let create = |more: Value| {
            let mut grant = json!({ "resource": "task", "actions": ["create"] });
            grant.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
            grant
        };
        let change = json!({ "resource": "task", "actions": ["update"], "where": { "state": "open" } });
        let conditional = [
            json!([create(json!({ "check": { "points": { "lte": 10 } } }))]),
            json!([create(json!({ "where": { "points": { "lte": 10 } } }))]),
            json!([create(json!({ "where": { "points": { "lte": 10 } } })), create(json!({ "rowPolicy": "own" }))]),
            json!([create(json!({})), change]),
        ];
        role(&admin, "writer", json!([])).await;
        let (writer, _) = user(&admin, "writer", Some("writer")).await;
        let give = async |grants: &Value| {
            assert_eq!(admin.patch("/api/v1/roles/writer", json!({ "permissions": grants })).await.status, 200, "{grants}");
        };
        let values = json!({ "title": "a", "points": 1 });
        for grants in conditional {
            give(&grants).await;
            let made = writer.post("/api/v1/data/task", values.clone()).await;
            assert_eq!(made.status, 201, "{grants}: {}", made.text);
            let id = made.data()["id"].clone();
            assert_eq!(made.data(), json!({ "id": id, "title": "a", "points": 1 }), "{grants}");
            let operations = json!([{ "op": "create", "object": "task", "values": values }]);
            let batch = writer.post("/api/v1/batch", json!({ "operations": operations })).await.data();
            assert_eq!(batch[0]["data"], json!({ "id": batch[0]["data"]["id"], "title": "a", "points": 1 }), "{grants}");
        }
        // Without conditions and fields, the writer sees the whole new record.
        for grants in [json!([create(json!({}))]), json!([create(json!({ "rowPolicy": "own" }))])] {
            give(&grants).await;
            let made = writer.post("/api/v1/data/task", values.clone()).await.data();
            assert_eq!((&made["state"], made["created_at"].is_string()), (&json!("open"), true), "{grants}: {made}");
        }
    }

    async fn a_condition_decides_which_rows_a_role_reads(server: Server) {
        let World { admin, ann, teams: [one, two], tasks: [a, b, c], .. } = world(&server).await;
        assert_eq!(titles(&ann, "").await, ["a", "b"]);
        let listed = ann.get("/api/v1/data/task").await.json();
        assert_eq!(listed["pagination"]["totalCount"], 2);
        assert_eq!(ann.get(&path(&b)).await.status, 200);
        ann.get(&path(&c)).await.expect_error(404, "not_found");
        // Search, filters, conditions, totals and sums only use these rows.
        for query in ["search=c&title=c", "title=c", "where=%7B%22title%22:%22c%22%7D", "assignee%5Bis_not_null%5D=true&title=c"] {
            assert_eq!(titles(&ann, query).await, Vec::<String>::new(), "{query}");
        }
        let sum = ann.get("/api/v1/data/task/aggregate?fn=sum&field=points").await.json();
        assert_eq!((&sum["data"]["value"], &sum["data"]["filteredCount"]), (&json!(2), &json!(2)), "{sum}");
        let asked = ann.post("/api/v1/data/task/query", json!({ "where": { "_not": { "title": "a" } } })).await;
        assert_eq!(asked.data().as_array().unwrap().len(), 1, "{}", asked.text);
        let exported = ann.get("/api/v1/data/task/export?format=csv").await.text;
        assert_eq!(exported.lines().count(), 3, "{exported}");
        // The caller's own policies also limit related rows.
        let teams = ann.get("/api/v1/data/team?expand=task_by_team").await.data();
        let of_team: Vec<usize> = teams.as_array().unwrap().iter().map(|team| team["task_by_team"].as_array().unwrap().len()).collect();
        assert_eq!(of_team, [2]);
        assert_eq!(ann.get(&format!("/api/v1/data/team/{two}")).await.status, 404);
        assert_eq!(ann.get(&format!("{}?expand=team", path(&a))).await.data()["team"]["id"], json!(one));
        // Ann may not read `member`, so her own conditions cannot use it.
        ann.post("/api/v1/data/task/query", json!({ "where": of_my_teams() })).await.expect_error(403, "forbidden");

        let shown = graphql(&ann, "{ task(sort: [{ field: \"title\" }]) { data { title } } }").await;
        assert_eq!(shown["data"]["task"]["data"], json!([{ "title": "a" }, { "title": "b" }]), "{shown}");
        assert_eq!(titles(&admin, "").await, ["a", "b", "c"]);
        // A new membership takes effect at once.
        admin.make("member", json!({ "user_id": ann.get("/api/v1/me").await.json()["userId"], "team_id": two })).await;
        assert_eq!(titles(&ann, "").await, ["a", "b", "c"]);
    }

    async fn a_write_stays_within_its_grant(server: Server) {
        let World { admin, ann, ann_id, teams: [one, two], tasks: [a, b, c] } = world(&server).await;
        // For rows that the action's condition does not include, the response is 404.
        ann.patch(&path(&b), json!({ "points": 5 })).await.expect_error(404, "not_found");
        ann.delete(&path(&b)).await.expect_error(404, "not_found");
        let changed = ann.patch(&path(&a), json!({ "state": "done" })).await;
        assert_eq!((changed.status, &changed.data()["state"]), (200, &json!("done")), "{}", changed.text);
        // Ann may change this row, but not read it. The response has its id and the values that she sent.
        let blind = ann.patch(&path(&c), json!({ "points": 7, "state": "done" })).await;
        assert_eq!((blind.status, blind.data()), (200, json!({ "id": c, "points": 7, "state": "done" })), "{}", blind.text);
        // The row after the write has to meet `check`.
        for values in [json!({ "state": "archived" }), json!({ "assignee": "somebody else" }), json!({ "assignee": null, "points": 9 })] {
            ann.patch(&path(&a), values).await.expect_error(403, "forbidden");
        }
        assert_eq!(admin.get(&path(&a)).await.data()["points"], 1);

        // A new row has to belong to one of her teams.
        let new = async |team: &str| ann.post("/api/v1/data/task", json!({ "title": "new", "team_id": team })).await;
        assert_eq!(new(&one).await.status, 201);
        ann.post("/api/v1/data/task", json!({ "title": "new" })).await.expect_error(403, "forbidden");
        // She may not read the other team, so for her it does not exist.
        new(&two).await.expect_error(409, "foreign_key_violation");
        // Either all records are created or none.
        let rows = json!([{ "title": "x", "team_id": one }, { "title": "y" }]);
        ann.post("/api/v1/data/task/bulk", json!({ "data": rows })).await.expect_error(403, "forbidden");
        assert_eq!(titles(&admin, "title%5Bin%5D=x,y").await, Vec::<String>::new());
        let bulk = ann.patch("/api/v1/data/task/bulk", json!({ "ids": [a, b, c], "values": { "points": 3 } })).await;
        assert_eq!((bulk.status, &bulk.json()["ids"]), (200, &json!([a, c])), "{}", bulk.text);
        let moved = ann.patch("/api/v1/data/task/bulk", json!({ "where": { "title": "a" }, "values": { "assignee": "x" } })).await;
        moved.expect_error(403, "forbidden");
        let gone = ann.delete_with("/api/v1/data/task/bulk", json!({ "ids": [a, b] })).await;
        assert_eq!(gone.json()["ids"], json!([a]), "{}", gone.text);
        assert_eq!(admin.get(&path(&b)).await.status, 200);
        let events = admin.outbox("task").await;
        assert!(events.iter().all(|(_, event)| event["after"]["assignee"] != "x" && event["after"]["state"] != "archived"));
        // GraphQL refuses the same write.
        let refused = graphql(&ann, &format!("mutation {{ update_task(id: \"{c}\", input: {{ assignee: \"{ann_id}x\" }}) {{ id }} }}")).await;
        assert_eq!(refused["errors"][0]["extensions"]["code"], "forbidden", "{refused}");
    }

    async fn a_write_needs_one_grant_for_before_and_after(server: Server) {
        let admin = server.admin().await;
        define(&admin).await;
        // Two steps of a workflow: one grant reopens tasks that are done, and one archives open tasks.
        let step = |from: &str, to: &str| json!({ "resource": "task", "actions": ["update"], "where": { "state": from }, "check": { "state": to } });
        let read = json!({ "resource": "task", "actions": ["read"] });
        role(&admin, "clerk", json!([step("done", "open"), step("open", "archived"), read])).await;
        let (ann, _) = user(&admin, "ann", Some("clerk")).await;
        let task = admin.make("task", json!({ "title": "t", "state": "done" })).await;
        let set = async |state: &str| ann.patch(&path(&task), json!({ "state": state })).await;
        // The first grant includes the row, and the second one allows the result. No grant does both.
        set("archived").await.expect_error(403, "forbidden");
        assert_eq!(set("open").await.status, 200);
        set("done").await.expect_error(403, "forbidden");
        assert_eq!(set("archived").await.status, 200);
        set("archived").await.expect_error(404, "not_found");
        // In a bulk call, each row needs one grant that allows its change.
        let ids = [admin.make("task", json!({ "state": "done" })).await, admin.make("task", json!({ "state": "open" })).await];
        let bulk = async |values: Value| ann.patch("/api/v1/data/task/bulk", json!({ "ids": ids, "values": values })).await;
        bulk(json!({ "state": "open" })).await.expect_error(403, "forbidden");
        bulk(json!({ "points": 1 })).await.expect_error(403, "forbidden");
        let of = async |place: usize| admin.get(&path(&ids[place])).await.data()["state"].clone();
        assert_eq!((of(0).await, of(1).await), (json!("done"), json!("open")));
    }

    async fn a_team_and_its_first_member_are_created_together(server: Server) {
        let admin = server.admin().await;
        define(&admin).await;
        let mine = json!({ "member_by_team": { "some": { "user_id": "$user.id" } } });
        role(&admin, "founder", json!([
            { "resource": "team", "actions": ["create", "read"], "where": mine },
            { "resource": "member", "actions": ["create", "read"], "where": { "user_id": "$user.id" } },
        ])).await;
        let (ann, ann_id) = user(&admin, "ann", Some("founder")).await;
        let team = |name: &str| json!({ "op": "create", "object": "team", "values": { "name": name } });
        let member = |user: &str| {
            json!({ "op": "create", "object": "member", "values": { "user_id": user, "team_id": { "$ref": "0.id" } } })
        };
        let batch = async |operations: Value| ann.post("/api/v1/batch", json!({ "operations": operations })).await;
        // Each call leaves a team of which she is no member.
        ann.post("/api/v1/data/team", json!({ "name": "alone" })).await.expect_error(403, "forbidden");
        batch(json!([team("alone")])).await.expect_error(403, "forbidden");
        batch(json!([team("of another"), member("somebody else")])).await.expect_error(403, "forbidden");
        batch(json!([team("hers"), member(&ann_id), team("another")])).await.expect_error(403, "forbidden");
        for object in ["team", "member"] {
            assert_eq!(admin.get(&format!("/api/v1/data/{object}")).await.data(), json!([]), "{object}");
        }
        // The team meets its condition only by the member that the same call creates after it.
        let made = batch(json!([team("hers"), member(&ann_id)])).await;
        assert_eq!(made.status, 200, "{}", made.text);
        let made = made.data();
        assert_eq!((&made[0]["data"]["name"], &made[1]["data"]["team_id"]), (&json!("hers"), &made[0]["data"]["id"]), "{made}");
        let teams = ann.get("/api/v1/data/team").await.data();
        assert_eq!((teams.as_array().unwrap().len(), &teams[0]["id"]), (1, &made[0]["data"]["id"]), "{teams}");
    }

    async fn an_upsert_is_checked_like_the_write_that_it_becomes(server: Server) {
        let admin = server.admin().await;
        admin.define("page", json!([{ "name": "slug", "type": "text", "isUnique": true }, { "name": "area", "type": "text" }])).await;
        let grant = |actions: Value| json!({ "resource": "page", "actions": actions, "where": { "area": "help" } });
        role(&admin, "editor", json!([grant(json!(["create", "update"])), { "resource": "page", "actions": ["read"] }])).await;
        let (ann, _) = user(&admin, "ann", Some("editor")).await;
        admin.make("page", json!({ "slug": "start", "area": "shop" })).await;
        let put = async |slug: &str, area: &str| {
            ann.post("/api/v1/data/page?on_conflict=slug", json!({ "slug": slug, "area": area })).await
        };
        put("start", "help").await.expect_error(403, "forbidden");
        put("new", "shop").await.expect_error(403, "forbidden");
        assert_eq!(put("new", "help").await.status, 201);
        assert_eq!(put("new", "help").await.status, 200);
        put("new", "shop").await.expect_error(403, "forbidden");
        assert_eq!(admin.get("/api/v1/data/page?sort=slug").await.data()[0]["area"], "help");
    }

    async fn links_and_references_stay_within_what_the_caller_reads(server: Server) {
        let World { admin, ann, tasks: [a, b, c], .. } = world(&server).await;
        admin.define("label", json!([{ "name": "text", "type": "text" }])).await;
        admin.relate(json!({ "name": "labels", "kind": "many_to_many", "source": "task", "target": "label" })).await;
        let grants = json!([{ "resource": "label", "actions": ["read"], "where": { "text": { "neq": "secret" } } }]);
        role(&admin, "labels", grants).await;
        let id = ann.get("/api/v1/me").await.json()["userId"].as_str().unwrap().to_owned();
        assert_eq!(admin.post(&format!("/api/v1/users/{id}/roles"), json!({ "roleId": "labels" })).await.status, 200);
        let plain = admin.make("label", json!({ "text": "plain" })).await;
        let secret = admin.make("label", json!({ "text": "secret" })).await;
        let link = async |task: &str, label: &str| ann.post(&format!("{}/links/labels", path(task)), json!({ "ids": [label] })).await;
        assert_eq!(link(&a, &plain).await.status, 200);
        link(&a, &secret).await.expect_error(409, "foreign_key_violation");
        link(&b, &plain).await.expect_error(404, "not_found");
        // She may change this row, but not read it.
        assert_eq!(link(&c, &plain).await.status, 200);
        admin.post(&format!("{}/links/labels", path(&a)), json!({ "ids": [secret] })).await;
        let shown = ann.get(&format!("{}?expand=labels", path(&a))).await.data();
        assert_eq!(shown["labels"].as_array().unwrap().len(), 1, "{shown}");
        // In her own conditions, the secret label does not exist either.
        for (labels, expected) in [
            (json!({ "some": { "text": "secret" } }), vec![]),
            (json!({ "none": { "text": "secret" } }), vec!["a", "b"]),
            (json!({ "every": { "text": "plain" } }), vec!["a", "b"]),
        ] {
            let query = format!("where={}", encoded(&json!({ "labels": labels }).to_string()));
            assert_eq!(titles(&ann, &query).await, expected, "{labels}");
            let by_admin = titles(&admin, &query).await;
            assert_eq!(by_admin.iter().any(|title| title == "a"), expected.is_empty(), "{labels}: {by_admin:?}");
        }
    }

    async fn records_that_change_along_with_another_need_no_grant(server: Server) {
        let admin = server.admin().await;
        define(&admin).await;
        for (object, on_delete) in [("note", "cascade"), ("pin", "set_null")] {
            admin.define(object, json!([{ "name": "text", "type": "text" }])).await;
            admin.relate(json!({ "name": "task", "kind": "many_to_one", "source": object, "target": "task", "onDelete": on_delete })).await;
        }
        role(&admin, "cleaner", json!([
            { "resource": "task", "actions": ["read", "delete"], "where": { "state": "done" } },
            { "resource": "note", "actions": ["read", "delete"], "where": { "text": "seen" } },
            { "resource": "pin", "actions": ["read"], "where": { "text": "seen" } },
            { "resource": "events", "actions": ["read"] },
        ])).await;
        let (cleaner, _) = user(&admin, "cleaner", Some("cleaner")).await;
        let task = admin.make("task", json!({ "title": "a", "state": "done" })).await;
        for object in ["note", "pin"] {
            for text in ["seen", "hidden"] {
                admin.make(object, json!({ "text": text, "task_id": task })).await;
            }
        }
        assert_eq!(cleaner.delete(&path(&task)).await.status, 204);
        assert_eq!(admin.get("/api/v1/data/note").await.data(), json!([]));
        let pins = admin.get("/api/v1/data/pin").await.data();
        assert_eq!(pins.as_array().unwrap().len(), 2);
        assert!(pins.as_array().unwrap().iter().all(|pin| pin["task_id"] == Value::Null), "{pins}");
        // The events of the hidden records stay hidden.
        for (query, of_cleaner, of_admin) in [("topic=data.note.deleted", 1, 2), ("topic=data.pin.updated", 1, 2), ("topic=data.task.deleted", 1, 1)] {
            for (who, number) in [(&cleaner, of_cleaner), (&admin, of_admin)] {
                let events = who.get(&format!("/api/v1/events?{query}")).await.data();
                assert_eq!(events.as_array().unwrap().len(), number, "{query}: {events}");
            }
        }
    }

    async fn variables_are_the_callers_own(server: Server) {
        let admin = server.admin().await;
        define(&admin).await;
        let grant = |condition: Value| json!([{ "resource": "task", "actions": ["read"], "where": condition }]);
        let of = async |name: &str, condition: Value| {
            role(&admin, name, grant(condition)).await;
            user(&admin, name, Some(name)).await
        };
        let make = async |title: &str, assignee: &str| admin.make("task", json!({ "title": title, "assignee": assignee })).await;
        // The user's address is not verified, so `$user.email` has no value, and the grant includes no row, not even with `_not`.
        let (mail, _) = of("mail", json!({ "_not": { "assignee": "$user.email" } })).await;
        make("mail", "mail@example.com").await;
        assert_eq!(titles(&mail, "").await, Vec::<String>::new());
        assert_eq!(mail.get("/api/v1/data/task").await.json()["pagination"]["totalCount"], 0);
        let of_mail = json!({ "permissions": grant(json!({ "assignee": "$user.email" })) });
        assert_eq!(admin.patch("/api/v1/roles/mail", of_mail).await.status, 200);
        assert_eq!(titles(&mail, "").await, Vec::<String>::new());
        // Once the address is verified, the next session has the value.
        server.sql("UPDATE svc_users SET email_verified = TRUE WHERE email = 'mail@example.com'").await;
        let person = json!({ "email": "mail@example.com", "password": "correct horse battery" });
        let session = server.call("POST", "/api/auth/sign-in/email", Some(person)).await.json();
        let verified = server.with_token(session["token"].as_str().unwrap().to_owned());
        assert_eq!(titles(&verified, "").await, ["mail"]);
        let (named, _) = of("named", json!({ "assignee": { "in": "$user.roles" } })).await;
        make("by role", "named").await;
        assert_eq!(titles(&named, "").await, ["by role"]);
        let (literal, _) = of("literal", json!({ "assignee": "$$user.id" })).await;
        make("literal", "$user.id").await;
        assert_eq!(titles(&literal, "").await, ["literal"]);
        let (soon, _) = of("soon", json!({ "created_at": { "gt": "$now" } })).await;
        assert_eq!(titles(&soon, "").await, Vec::<String>::new());
        let (past, _) = of("past", json!({ "created_at": { "lte": "$now" } })).await;
        assert_eq!(titles(&past, "").await.len(), 3);
        admin.define("visit", json!([{ "name": "day", "type": "date" }])).await;
        for day in ["2000-01-01", "2999-01-01"] {
            admin.make("visit", json!({ "day": day })).await;
        }
        role(&admin, "guide", json!([{ "resource": "visit", "actions": ["read"], "where": { "day": { "lte": "$today" } } }])).await;
        let (guide, _) = user(&admin, "guide", Some("guide")).await;
        let visits = guide.get("/api/v1/data/visit").await.data();
        assert_eq!((visits.as_array().unwrap().len(), &visits[0]["day"]), (1, &json!("2000-01-01")), "{visits}");

        // For a key, `$key.id` is its own id, and `$user.roles` has only the key's role.
        role(&admin, "by_key", grant(json!({ "assignee": "$key.id" }))).await;
        let (of_key, made) = key(&admin, json!({ "name": "k", "roleId": "by_key" })).await;
        make("of the key", made["id"].as_str().unwrap()).await;
        assert_eq!(titles(&of_key, "").await, ["of the key"]);
        let (person, _) = user(&admin, "person", Some("by_key")).await;
        assert_eq!(titles(&person, "").await, Vec::<String>::new());
        let (by_role, _) = key(&admin, json!({ "name": "r", "roleId": "named" })).await;
        assert_eq!(titles(&by_role, "").await, ["by role"]);

        // Without a credential, `$user.id` has no value.
        let everybody = json!([{ "resource": "task", "actions": ["read"], "where": { "_or": [{ "assignee": "$user.id" }, { "title": "literal" }] } }]);
        assert_eq!(admin.patch("/api/v1/roles/public", json!({ "permissions": everybody })).await.status, 200);
        let listed = server.call("GET", "/api/v1/data/task", None).await;
        assert_eq!((listed.status, listed.data()), (200, json!([])), "{}", listed.text);
    }

    async fn a_key_reads_what_its_role_and_its_maker_both_reach(server: Server) {
        let World { admin, ann, .. } = world(&server).await;
        role(&admin, "reader", json!([{ "resource": "task", "actions": ["read"], "where": { "title": { "in": ["b", "c"] } } }])).await;
        // Ann cannot give rights that she does not have, not even with a key.
        let body = json!({ "name": "k", "roleId": "reader" });
        ann.post("/api/v1/api-keys", body.clone()).await.expect_error(403, "forbidden");
        let id = ann.get("/api/v1/me").await.json()["userId"].as_str().unwrap().to_owned();
        role(&admin, "keys", json!([{ "resource": "api_keys", "actions": ["create"] }, { "resource": "task", "actions": ["read"] }])).await;
        assert_eq!(admin.post(&format!("/api/v1/users/{id}/roles"), json!({ "roleId": "keys" })).await.status, 200);
        let (by_key, _) = key(&ann, body).await;
        assert_eq!(titles(&by_key, "").await, ["b", "c"]);
        // When its maker loses rights, the key loses them too.
        assert_eq!(admin.delete(&format!("/api/v1/users/{id}/roles/keys")).await.status, 204);
        crate::accounts::roles::within_five_seconds(async || {
            let listed: Answer = by_key.get("/api/v1/data/task").await;
            listed.status == 200 && listed.data().as_array().unwrap().iter().map(|row| &row["title"]).eq(["b"].iter())
        })
        .await;
    }

    async fn permissions_are_shown_with_their_conditions(server: Server) {
        let World { admin, ann, ann_id, teams: [one, _], .. } = world(&server).await;
        let actions = async |condition: Value| {
            let own = own_grants(&ann, "task").await;
            let grant = own.iter().find(|grant| grant["where"] == condition);
            grant.unwrap_or_else(|| panic!("{condition}: {own:?}"))["actions"].clone()
        };
        assert_eq!(actions(json!({ "assignee": "$user.id" })).await, json!(["update", "delete"]));
        // Ann may not read members. So she sees only that this grant has a condition.
        assert_eq!(actions(json!({ "_hidden": true })).await, json!(["create", "read"]));
        role(&admin, "auditor", json!([{ "resource": "roles", "actions": ["read"] }])).await;
        assert_eq!(admin.post(&format!("/api/v1/users/{ann_id}/roles"), json!({ "roleId": "auditor" })).await.status, 200);
        assert_eq!(actions(of_my_teams()).await, json!(["create", "read"]));
        let of_role = admin.get("/api/v1/roles/worker/permissions").await.json();
        let resources = of_role["data"]["resources"].as_array().unwrap();
        let task = resources.iter().find(|rights| rights["resource"] == "task").unwrap();
        assert_eq!((&task["read"], &task["manage"]), (&json!("condition"), &Value::Null), "{task}");
        let role_id = of_role["data"]["roleId"].as_str().unwrap().to_owned();
        // If a caller views the service as the role, the variables have the caller's own values.
        let viewed = async || {
            let answer = server.send(admin.request("GET", "/api/v1/data/task?sort=title").header("x-svc-view-as", &role_id)).await;
            assert_eq!(answer.status, 200, "{}", answer.text);
            answer.data().as_array().unwrap().len()
        };
        assert_eq!(viewed().await, 0);
        let me = admin.get("/api/v1/me").await.json()["userId"].clone();
        admin.make("member", json!({ "user_id": me, "team_id": one })).await;
        assert_eq!(viewed().await, 2);
    }
}

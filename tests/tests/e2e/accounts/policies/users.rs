//! Users as records: relationships with users, the visible parts of a user, and references to a user who is deleted.

use blockbase_tests::{Admin, Answer, Server, ServerBuilder, on_both_engines};
use serde_json::{Value, json};

use super::own_grants;
use crate::accounts::roles::{role, user};
use crate::events::Stream;
use crate::mcp::Client;

/// Tasks with an assignee and watchers, both users.
async fn define(admin: &Admin<'_>) {
    admin.define("task", json!([{ "name": "title", "type": "text" }, { "name": "state", "type": "text" }])).await;
    admin.relate(json!({ "name": "assignee", "kind": "many_to_one", "source": "task", "target": "users" })).await;
    admin.relate(json!({ "name": "watchers", "kind": "many_to_many", "source": "task", "target": "users" })).await;
}

fn path(id: &str) -> String {
    format!("/api/v1/data/task/{id}")
}

async fn titles(caller: &Admin<'_>, condition: Value) -> Vec<String> {
    let answer = caller.post("/api/v1/data/task/query", json!({ "where": condition, "sort": "title" })).await;
    assert_eq!(answer.status, 200, "{condition}: {}", answer.text);
    answer.data().as_array().unwrap().iter().map(|row| row["title"].as_str().unwrap().to_owned()).collect()
}

async fn id_of(caller: &Admin<'_>) -> String {
    caller.get("/api/v1/me").await.json()["userId"].as_str().unwrap().to_owned()
}

struct World<'a> {
    admin: Admin<'a>,
    ann: Admin<'a>,
    ann_id: String,
    ben_id: String,
}

async fn world(server: &Server) -> World<'_> {
    let admin = server.admin().await;
    define(&admin).await;
    let (ann, ann_id) = user(&admin, "ann", None).await;
    let (_, ben_id) = user(&admin, "ben", None).await;
    World { admin, ann, ann_id, ben_id }
}

async fn give(admin: &Admin<'_>, user: &str, name: &str, grants: Value) {
    role(admin, name, grants).await;
    assert_eq!(admin.post(&format!("/api/v1/users/{user}/roles"), json!({ "roleId": name })).await.status, 200);
}

async fn graphql(caller: &Admin<'_>, query: &str) -> Value {
    caller.post("/api/v1/graphql", json!({ "query": query })).await.json()
}

/// The events of a task, the oldest first: the operation, and the assignee before and after.
async fn history(admin: &Admin<'_>, id: &str) -> Vec<(String, Value, Value)> {
    let events = admin.get(&format!("/api/v1/events?object=task&record={id}&limit=100")).await.data();
    let gist = |event: &Value| {
        let payload = &event["payload"];
        let assignee = |image: &str| payload[image]["assignee_id"].clone();
        (payload["op"].as_str().unwrap().to_owned(), assignee("before"), assignee("after"))
    };
    events.as_array().unwrap().iter().rev().map(gist).collect()
}

on_both_engines! {
    async fn users_are_described_to_readers_who_know_no_relation_to_them(server: Server) {
        let admin = server.admin().await;
        admin.define("note", json!([{ "name": "text", "type": "text" }])).await;
        admin.relate(json!({ "name": "readers", "kind": "many_to_many", "source": "note", "target": "users" })).await;
        let (ann, id) = user(&admin, "ann", None).await;
        // The key of the relation on the side of users is hidden.
        give(&admin, &id, "half", json!([
            { "resource": "note", "actions": ["read"] },
            { "resource": "users", "actions": ["read"], "fields": { "read": ["name"] } },
            { "resource": "data", "actions": ["read"] },
        ])).await;
        let note = admin.make("note", json!({ "text": "a" })).await;
        assert_eq!(admin.post(&format!("/api/v1/data/note/{note}/links/readers"), json!({ "ids": [id] })).await.status, 200);
        let answer = graphql(&ann, "{ note { data { readers { name } } } users { data { name } } }").await;
        assert_eq!(answer["data"]["note"]["data"][0]["readers"], json!([{ "name": "ann" }]), "{answer}");
        assert_eq!(answer["data"]["users"]["data"].as_array().map(Vec::len), Some(2), "{answer}");
        // Without the note, no relation that the caller knows leads to users.
        let none = json!([{ "resource": "users", "actions": ["read"] }, { "resource": "data", "actions": ["read"] }]);
        assert_eq!(admin.patch("/api/v1/roles/half", json!({ "permissions": none })).await.status, 200);
        assert_eq!(ann.get("/api/v1/data/users").await.data().as_array().map(Vec::len), Some(2));
        let answer = graphql(&ann, "{ users { data { name } } }").await;
        assert_eq!(answer["data"]["users"]["data"].as_array().map(Vec::len), Some(2), "{answer}");
    }

    async fn accounts_are_listed_as_grants_on_users_reach_them(server: Server) {
        let World { admin, ann, ann_id, ben_id } = world(&server).await;
        let all = |caller: &Admin<'_>, query: &'static str| {
            let path = format!("/api/v1/users{query}");
            let caller = server.with_token(caller.token.clone());
            async move {
                let answer = caller.get(&path).await;
                assert_eq!(answer.status, 200, "{}", answer.text);
                (answer.data(), answer.json()["pagination"]["totalCount"].clone())
            }
        };
        ann.get("/api/v1/users").await.expect_error(403, "forbidden");
        give(&admin, &ann_id, "names", json!([{ "resource": "users", "actions": ["read"], "fields": { "read": ["name"], "write": ["name"] } }])).await;
        let (shown, total) = all(&ann, "").await;
        assert_eq!((&shown[0], total), (&json!({ "id": ben_id, "name": "ben" }), json!(3)));
        assert_eq!(ann.get(&format!("/api/v1/users/{ben_id}")).await.data(), json!({ "id": ben_id, "name": "ben" }));
        // A search does not find users by a hidden email address.
        assert_eq!(all(&ann, "?search=example.com").await, (json!([]), json!(0)));
        assert_eq!(all(&ann, "?search=BE").await.1, 1);
        assert_eq!(ann.get("/api/v1/users?role=admin").await.expect_error(403, "forbidden")["field"], "role");
        for page in ["?page=2&pageSize=1", "?limit=1&offset=1"] {
            assert_eq!(all(&ann, page).await, (json!([{ "id": ann_id, "name": "ann" }]), json!(3)), "{page}");
        }
        ann.patch(&format!("/api/v1/users/{ben_id}"), json!({ "name": "bo" })).await.expect_error(403, "forbidden");
        ann.get(&format!("/api/v1/users/{ben_id}/sessions")).await.expect_error(403, "forbidden");

        let (dan, dan_id) = user(&admin, "dan", None).await;
        give(&admin, &dan_id, "some", json!([{ "resource": "users", "actions": ["read"], "where": { "email": { "like": "ann@" } } }])).await;
        let (shown, total) = all(&dan, "").await;
        let whole = admin.get(&format!("/api/v1/users/{ann_id}")).await.data();
        assert_eq!((&shown, total), (&json!([whole]), json!(1)));
        assert_eq!(whole["roles"][0]["name"], "names");
        assert_eq!(dan.get(&format!("/api/v1/users/{ann_id}")).await.data(), whole);
        dan.get(&format!("/api/v1/users/{ben_id}")).await.expect_error(404, "not_found");
        dan.get("/api/v1/users/nobody").await.expect_error(404, "not_found");
        assert_eq!(all(&dan, "?search=ben").await.1, 0);
        assert_eq!(all(&dan, "?search=$user.email").await, (json!([]), json!(0)));
        // Further grants never remove rights: here for one's own account, and for the names of everybody.
        give(&admin, &dan_id, "self", json!([{ "resource": "users", "actions": ["read"], "rowPolicy": "own" }])).await;
        assert_eq!(all(&dan, "").await.1, 2);
        admin.post(&format!("/api/v1/users/{dan_id}/roles"), json!({ "roleId": "names" })).await.data();
        let (shown, total) = all(&dan, "").await;
        let of = |id: &str| shown.as_array().unwrap().iter().find(|user| user["id"] == id).unwrap().clone();
        assert_eq!((total, of(&ann_id), of(&ben_id)), (json!(4), whole, json!({ "id": ben_id, "name": "ben", "image": null, "email": null })));
        assert!(of(&dan_id)["roles"].is_array());
    }

    async fn conditions_and_fields_on_users_work_for_reading_only(server: Server) {
        let World { admin, ann, ann_id, ben_id } = world(&server).await;
        let of_users = |actions: Value, limit: &Value| {
            let mut grant = json!({ "resource": "users", "actions": actions });
            grant.as_object_mut().unwrap().extend(limit.as_object().unwrap().clone());
            grant
        };
        give(&admin, &ann_id, "old", json!([of_users(json!(["read"]), &json!({ "where": { "name": "ben" } }))])).await;
        let refused = |answer: &Answer, index: usize, part: &str| {
            let error = answer.expect_error(400, "invalid_request");
            let message = error["message"].as_str().unwrap();
            assert!(message.starts_with(&format!("`permissions` at index {index}, `{part}`: On `users`")), "{message}");
            assert_eq!(error["field"], "permissions");
        };
        let every = [json!(["update"]), json!(["create"]), json!(["read", "delete"]), json!(["manage"])];
        let [update, create, delete, manage] = every.clone();
        for (limit, part, refused_actions) in [
            (json!({ "where": { "name": "ben" } }), "where", every.to_vec()),
            (json!({ "where": { "name": "ben" }, "check": {}, "fields": { "read": ["name"] } }), "where", every.to_vec()),
            (json!({ "check": { "name": "ben" } }), "check", every.to_vec()),
            (json!({ "check": {}, "fields": { "read": ["name"] } }), "check", every.to_vec()),
            (json!({ "fields": { "read": ["name"], "write": ["name"] } }), "fields", vec![update.clone(), create.clone(), manage.clone()]),
            (json!({ "fields": { "write": ["name"] } }), "fields", vec![update.clone(), create.clone(), manage.clone()]),
            (json!({ "rowPolicy": "own", "fields": { "read": ["name"] } }), "fields", vec![manage]),
        ] {
            for actions in refused_actions {
                let grants = json!([{ "resource": "task", "actions": ["read"] }, of_users(actions, &limit)]);
                refused(&admin.post("/api/v1/roles", json!({ "name": "bad", "permissions": grants })).await, 1, part);
                refused(&admin.patch("/api/v1/roles/old", json!({ "permissions": grants })).await, 1, part);
            }
        }
        // Lists of all fields are no limit. Other lists limit only the actions that they are for.
        let all = of_users(json!(["update"]), &json!({ "fields": { "write": { "except": [] } } }));
        give(&admin, &ben_id, "whole", json!([all])).await;
        for (number, (actions, list)) in [(update, "read"), (create, "read"), (delete.clone(), "read"), (delete, "write")].into_iter().enumerate() {
            let grant = of_users(actions, &json!({ "fields": { (list): ["name"] } }));
            role(&admin, &format!("listing{number}"), json!([grant])).await;
        }

        // A role that was saved before this was refused keeps its grant, which gives nothing but read.
        role(&admin, "mine", json!([of_users(json!(["read"]), &json!({ "where": { "id": "$user.id" } }))])).await;
        let (gus, gus_id) = user(&admin, "gus", None).await;
        give(&admin, &gus_id, "keys", json!([of_users(json!(["read", "update"]), &json!({})), { "resource": "api_keys", "actions": ["create"] }])).await;
        let copy = server.sql("SELECT name, permissions FROM svc_roles WHERE name IN ('mine', 'old')").await;
        let wide = |row: &[String]| {
            let wide = row[1].replace(r#""actions":["read"]"#, r#""actions":["create","read","update","delete"]"#);
            assert_ne!(wide, row[1]);
            format!("UPDATE svc_roles SET permissions = '{wide}' WHERE name = '{}'", row[0])
        };
        let wide: Vec<String> = copy.iter().map(|row| wide(row)).collect();
        assert_eq!(wide.len(), 2);
        let tokens = [&admin, &ann, &gus].map(|caller| caller.token.clone());
        let mut server = server;
        server.kill();
        for statement in wide {
            server.sql(&statement).await;
        }
        let server = server.restart().await;
        let [admin, ann, gus] = tokens.map(|token| server.with_token(token));
        let of_ben = format!("/api/v1/users/{ben_id}");
        assert_eq!(ann.get(&of_ben).await.data()["name"], "ben");
        ann.patch(&of_ben, json!({ "name": "bo" })).await.expect_error(403, "forbidden");
        ann.delete(&of_ben).await.expect_error(403, "forbidden");
        ann.post("/api/v1/users", json!({ "email": "eve@example.com" })).await.expect_error(403, "forbidden");
        // To make a key for Ben, a caller needs only what the grants of its role give.
        let keyed = gus.post("/api/v1/api-keys", json!({ "name": "of ben", "roleId": "mine", "userId": ben_id })).await;
        assert_eq!(keyed.status, 201, "{}", keyed.text);
        // Nothing shows rights that the grant does not give.
        let rights = async |role: &str| {
            let shown = admin.get(&format!("/api/v1/roles/{role}/permissions")).await.data();
            shown["resources"].as_array().unwrap().iter().find(|rights| rights["resource"] == "users").unwrap().clone()
        };
        let only_read = json!({ "resource": "users", "create": null, "read": "condition", "update": null, "delete": null, "manage": null });
        assert_eq!(rights("old").await, only_read);
        let own: Vec<Value> = own_grants(&ann, "users").await.iter().map(|grant| grant["actions"].clone()).collect();
        assert_eq!(own, [json!(["read"])]);
        let explained = async |role: &str, action: &str, id: &str| {
            let body = json!({ "userId": ann_id, "object": "users", "action": action, "id": id });
            let shown = admin.post(&format!("/api/v1/roles/{role}/explain"), body).await.data();
            let grant = &shown["grants"][0];
            assert_eq!((&grant["passes"], &grant["failing"]), (&shown["passes"], &json!([])), "{action}: {shown}");
            shown["passes"].clone()
        };
        for (action, passes) in [("read", true), ("create", false), ("update", false), ("delete", false)] {
            assert_eq!(explained("old", action, &ben_id).await, passes, "{action}");
        }
        // The grant cannot be saved again.
        let saved = admin.get("/api/v1/roles/old").await.data()["permissions"].clone();
        refused(&admin.patch("/api/v1/roles/old", json!({ "permissions": saved })).await, 0, "where");
        // A grant for one's own account has no condition.
        give(&admin, &ann_id, "self", json!([of_users(json!(["read", "update"]), &json!({ "rowPolicy": "own" }))])).await;
        assert_eq!(ann.patch(&format!("/api/v1/users/{ann_id}"), json!({ "name": "Ann" })).await.status, 200);
        ann.patch(&of_ben, json!({ "name": "bo" })).await.expect_error(404, "not_found");
        assert_eq!((&rights("self").await["update"], explained("self", "update", &ann_id).await), (&json!("own"), json!(true)));
        assert_eq!(admin.get(&of_ben).await.data()["name"], "ben");
    }

    async fn changes_of_a_user_answer_what_the_caller_may_read(server: Server) {
        let World { admin, ann, ann_id, ben_id } = world(&server).await;
        let of_ben = format!("/api/v1/users/{ben_id}");
        role(&admin, "idle", json!([])).await;
        // The list for reading does not limit what Ann changes.
        give(&admin, &ann_id, "namer", json!([{ "resource": "users", "actions": ["read", "update", "delete"], "fields": { "read": ["name"] } }])).await;
        assert_eq!(ann.get(&of_ben).await.data(), json!({ "id": ben_id, "name": "ben" }));
        assert_eq!(ann.patch(&of_ben, json!({})).await.data(), json!({ "id": ben_id, "name": "ben" }));
        assert_eq!(ann.patch(&of_ben, json!({ "name": "bo" })).await.data(), json!({ "id": ben_id, "name": "bo" }));
        let roles = format!("{of_ben}/roles");
        let idle = json!({ "roleId": "idle" });
        assert_eq!(ann.post(&roles, idle.clone()).await.data(), json!({ "id": ben_id, "name": "bo" }));
        // Dan reads no users, and Eve only herself.
        let (dan, dan_id) = user(&admin, "dan", None).await;
        let update = json!({ "resource": "users", "actions": ["update"] });
        give(&admin, &dan_id, "blind", json!([update])).await;
        let (eve, eve_id) = user(&admin, "eve", None).await;
        give(&admin, &eve_id, "self", json!([update, { "resource": "users", "actions": ["read"], "rowPolicy": "own" }])).await;
        for caller in [&dan, &eve] {
            assert_eq!(caller.patch(&of_ben, json!({})).await.data(), json!({ "id": ben_id }));
            assert_eq!(caller.post(&roles, idle.clone()).await.data(), json!({ "id": ben_id }));
            // They get what they sent.
            let sent = json!({ "name": "bo", "banned": false });
            assert_eq!(caller.patch(&of_ben, sent).await.data(), json!({ "id": ben_id, "name": "bo", "banned": false }));
            assert_eq!(caller.patch(&of_ben, json!({ "banned": false })).await.data(), json!({ "id": ben_id, "banned": false }));
        }
        let of_eve = format!("/api/v1/users/{eve_id}");
        let whole = admin.get(&of_eve).await.data();
        assert!(whole["roles"].is_array() && whole["email"].is_string(), "{whole}");
        assert_eq!(eve.patch(&of_eve, json!({})).await.data(), whole);
        assert_eq!(admin.patch(&of_eve, json!({})).await.data(), whole);
        // A condition is looked at after the change.
        let (fay, fay_id) = user(&admin, "fay", None).await;
        give(&admin, &fay_id, "some", json!([update, { "resource": "users", "actions": ["read"], "where": { "name": "bea" } }])).await;
        let seen = fay.patch(&of_ben, json!({ "name": "bea" })).await.data();
        assert_eq!(seen, admin.get(&of_ben).await.data());
        assert_eq!(seen["name"], "bea");
        assert_eq!(fay.patch(&of_ben, json!({ "name": "ben" })).await.data(), json!({ "id": ben_id, "name": "ben" }));
        assert_eq!(ann.delete(&of_ben).await.status, 204);
        admin.get(&of_ben).await.expect_error(404, "not_found");
    }

    async fn a_new_user_is_answered_as_the_caller_may_read_them(server: Server) {
        let World { admin, ann, ann_id, .. } = world(&server).await;
        role(&admin, "idle", json!([])).await;
        // Returns the answer, and the new user as the admin sees them.
        let made = async |caller: &Admin<'_>, body: Value| {
            let answer = caller.post("/api/v1/users", body).await;
            assert_eq!(answer.status, 201, "{}", answer.text);
            assert!(answer.json()["link"].is_string() && answer.json()["linkExpiresAt"].is_string(), "{}", answer.text);
            let id = answer.data()["id"].as_str().unwrap().to_owned();
            (answer.data(), admin.get(&format!("/api/v1/users/{id}")).await.data())
        };
        let create = json!({ "resource": "users", "actions": ["create"] });
        // Ann reads the names of all users. The list for reading does not limit what she makes.
        give(&admin, &ann_id, "lister", json!([{ "resource": "users", "actions": ["read", "create"], "fields": { "read": ["name"] } }])).await;
        let (seen, whole) = made(&ann, json!({ "email": "gus@example.com", "name": "Gus", "roles": ["idle"] })).await;
        assert_eq!(seen, json!({ "id": whole["id"], "name": "Gus" }));
        assert_eq!((&whole["email"], &whole["roles"][0]["name"]), (&json!("gus@example.com"), &json!("idle")));
        // Dan reads no users, and Eve only herself. They get what they sent, as it is stored.
        let (dan, dan_id) = user(&admin, "dan", None).await;
        give(&admin, &dan_id, "blind", json!([create])).await;
        let (eve, eve_id) = user(&admin, "eve", None).await;
        give(&admin, &eve_id, "self", json!([create, { "resource": "users", "actions": ["read"], "rowPolicy": "own" }])).await;
        for (caller, name) in [(&dan, "hal"), (&eve, "ida")] {
            let email = format!("{name}@example.com");
            let (seen, whole) = made(caller, json!({ "email": format!("{name}@Example.com"), "name": name, "roles": ["idle"] })).await;
            assert_eq!(seen, json!({ "id": whole["id"], "email": email, "name": name }));
            assert_eq!(whole["roles"][0]["name"], "idle");
            let (seen, whole) = made(caller, json!({ "email": format!("{name}2@example.com") })).await;
            assert_eq!(seen, json!({ "id": whole["id"], "email": format!("{name}2@example.com") }));
        }
        // A condition is looked at after the user is made.
        let (fay, fay_id) = user(&admin, "fay", None).await;
        give(&admin, &fay_id, "some", json!([create, { "resource": "users", "actions": ["read"], "where": { "name": "bea" } }])).await;
        let (seen, whole) = made(&fay, json!({ "email": "bea@example.com", "name": "bea" })).await;
        assert_eq!(seen, whole);
        assert!(whole["roles"].is_array() && whole["createdAt"].is_string(), "{whole}");
        let (seen, whole) = made(&fay, json!({ "email": "joe@example.com", "name": "joe" })).await;
        assert_eq!(seen, json!({ "id": whole["id"], "email": "joe@example.com", "name": "joe" }));
        let (seen, whole) = made(&admin, json!({ "email": "kim@example.com" })).await;
        assert_eq!(seen, whole);
    }

    async fn relationships_lead_to_users(server: Server) {
        let World { admin, ann_id, ben_id, .. } = world(&server).await;
        let relationships = admin.get("/api/v1/relationships").await.data();
        assert_eq!((&relationships[0]["onDelete"], &relationships[1]["onDelete"]), (&json!("set_null"), &json!("cascade")));
        let ours = admin.make("task", json!({ "title": "ours", "assignee_id": ann_id })).await;
        let theirs = admin.make("task", json!({ "title": "theirs", "assignee_id": ben_id })).await;
        admin.make("task", json!({ "title": "free" })).await;
        let nobody = "00000000-0000-7000-8000-000000000000";
        admin.post("/api/v1/data/task", json!({ "assignee_id": nobody })).await.expect_error(409, "foreign_key_violation");
        assert_eq!(admin.post(&format!("{}/links/watchers", path(&ours)), json!({ "ids": [ann_id, ben_id] })).await.status, 200);
        admin.post(&format!("{}/links/watchers", path(&ours)), json!({ "ids": [nobody] })).await.expect_error(409, "foreign_key_violation");

        let shown = admin.get(&format!("{}?expand=assignee,watchers", path(&ours))).await.data();
        assert_eq!(shown["assignee"], json!({ "id": ann_id, "name": "ann", "image": null, "email": "ann@example.com" }), "{shown}");
        assert_eq!(shown["watchers"].as_array().unwrap().len(), 2);
        assert_eq!(titles(&admin, json!({ "assignee": { "name": "ann" } })).await, ["ours"]);
        assert_eq!(titles(&admin, json!({ "_not": { "assignee.email": { "ilike": "ann@" } } })).await, ["free", "theirs"]);
        assert_eq!(titles(&admin, json!({ "watchers": { "some": { "id": ben_id } } })).await, ["ours"]);
        assert_eq!(titles(&admin, json!({ "assignee_id": { "is_null": true } })).await, ["free"]);

        // Users are listed like the records of any object.
        let users = admin.get("/api/v1/data/users?sort=name&expand=task_by_assignee,watchers").await.json();
        assert_eq!(users["pagination"]["totalCount"], 3, "{users}");
        let names: Vec<&str> = users["data"].as_array().unwrap().iter().map(|user| user["name"].as_str().unwrap()).collect();
        assert_eq!(names[1..], ["ann", "ben"]);
        assert_eq!((&users["data"][1]["task_by_assignee"][0]["id"], &users["data"][1]["watchers"][0]["id"]), (&json!(ours), &json!(ours)));
        assert_eq!(admin.get(&format!("/api/v1/data/users/{ben_id}?expand=task_by_assignee")).await.data()["task_by_assignee"][0]["id"], json!(theirs));
        assert_eq!(admin.get("/api/v1/data/users?search=BEN").await.data()[0]["id"], json!(ben_id));
        assert_eq!(admin.get("/api/v1/data/users/aggregate?fn=count&name=ann").await.data()["value"], 1);
        let busy = admin.post("/api/v1/data/users/query", json!({ "where": { "task_by_assignee": { "some": { "title": "ours" } } } })).await;
        assert_eq!(busy.data()[0]["id"], json!(ann_id), "{}", busy.text);
        let exported = admin.get("/api/v1/data/task/export?format=csv&names=assignee.email&select=title&sort=title").await.text;
        assert!(exported.contains("ann@example.com") && exported.lines().next().unwrap().contains("assignee.email"), "{exported}");
        // Records show the current name of a user.
        assert_eq!(admin.patch(&format!("/api/v1/users/{ann_id}"), json!({ "name": "Anna" })).await.status, 200);
        assert_eq!(admin.get(&format!("{}?expand=assignee", path(&ours))).await.data()["assignee"]["name"], "Anna");

        // Users can be changed only under /api/v1/users.
        for (method, path, body) in [
            ("POST", "/api/v1/data/users".to_owned(), json!({ "name": "x" })),
            ("POST", "/api/v1/data/users/bulk".to_owned(), json!({ "data": [{ "name": "x" }] })),
            ("PATCH", format!("/api/v1/data/users/{ann_id}"), json!({ "name": "x" })),
            ("PATCH", "/api/v1/data/users/bulk".to_owned(), json!({ "ids": [ann_id], "values": { "name": "x" } })),
            ("DELETE", format!("/api/v1/data/users/{ann_id}"), Value::Null),
            ("DELETE", "/api/v1/data/users/bulk".to_owned(), json!({ "ids": [ann_id] })),
            ("POST", format!("/api/v1/data/users/{ann_id}/links/watchers"), json!({ "ids": [ours] })),
        ] {
            let body = Some(body).filter(|body| !body.is_null());
            let answer = server.call_as(Some(&admin.token), method, &path, body).await;
            answer.expect_error(400, "invalid_request");
        }
        for operation in [
            json!({ "op": "create", "object": "users", "values": { "name": "x" } }),
            json!({ "op": "update", "object": "users", "id": ann_id, "values": { "name": "x" } }),
            json!({ "op": "upsert", "object": "users", "values": { "id": ann_id, "name": "x" }, "onConflict": ["id"] }),
            json!({ "op": "delete", "object": "users", "id": ann_id }),
            json!({ "op": "link", "object": "users", "id": ann_id, "relation": "watchers", "ids": [ours] }),
        ] {
            admin.post("/api/v1/batch", json!({ "operations": [operation] })).await.expect_error(400, "invalid_request");
        }
        for (tool, arguments) in [
            ("create_record", json!({ "object_name": "users", "data": { "name": "x" } })),
            ("update_record", json!({ "object_name": "users", "id": ann_id, "data": { "name": "x" } })),
            ("delete_record", json!({ "object_name": "users", "id": ann_id })),
        ] {
            let called = Client::of(&admin).call(tool, arguments).await;
            assert!(called.is_error && called.text.contains("invalid_request"), "{tool}: {}", called.text);
        }
        assert_eq!(admin.get("/api/v1/data/users").await.json()["pagination"]["totalCount"], 3);
        assert_eq!(admin.get(&format!("/api/v1/data/users/{ann_id}")).await.data()["name"], "Anna");
    }

    async fn a_relationship_with_users_says_what_their_deletion_does(server: Server) {
        let admin = server.admin().await;
        admin.define("task", json!([{ "name": "title", "type": "text" }])).await;
        // No relationship leads to users yet, so no document describes them as an object.
        assert!(!admin.get("/api/v1/openapi.json").await.text.contains("/api/v1/data/users"));
        for definition in [
            json!({ "name": "a", "kind": "many_to_one", "source": "task", "target": "users", "onDelete": "restrict" }),
            json!({ "name": "a", "kind": "many_to_one", "source": "task", "target": "users", "required": true }),
            json!({ "name": "a", "kind": "many_to_one", "source": "task", "target": "users", "required": true, "onDelete": "set_null" }),
            json!({ "name": "a", "kind": "many_to_many", "source": "task", "target": "users", "onDelete": "restrict" }),
            json!({ "name": "a", "kind": "one_to_many", "source": "task", "target": "users" }),
            json!({ "name": "a", "kind": "many_to_one", "source": "users", "target": "task" }),
            json!({ "name": "a", "kind": "many_to_one", "source": "users", "target": "users" }),
        ] {
            admin.post("/api/v1/relationships", definition).await.expect_error(400, "invalid_schema");
        }
        let required = json!({ "name": "owner", "kind": "many_to_one", "source": "task", "target": "users", "required": true, "onDelete": "cascade" });
        admin.relate(required).await;
        admin.get("/api/v1/objects/users").await.expect_error(404, "not_found");
        admin.patch("/api/v1/objects/users", json!({ "label": "x" })).await.expect_error(404, "not_found");
        admin.delete("/api/v1/objects/users").await.expect_error(404, "not_found");
        let names: Vec<Value> = admin.get("/api/v1/objects").await.data().as_array().unwrap().iter().map(|object| object["name"].clone()).collect();
        assert_eq!(names, [json!("task")]);
        // Nothing may prevent the deletion of tasks that are deleted along with a user, or of records that are deleted along with
        // these tasks.
        admin.define("note", json!([{ "name": "text", "type": "text" }])).await;
        let note = |on_delete: &str| json!({ "name": "task", "kind": "many_to_one", "source": "note", "target": "task", "onDelete": on_delete });
        admin.post("/api/v1/relationships", note("restrict")).await.expect_error(400, "invalid_schema");
        admin.relate(note("cascade")).await;
        let seal = json!({ "name": "seals", "kind": "many_to_many", "source": "note", "target": "task", "onDelete": "restrict" });
        admin.post("/api/v1/relationships", seal).await.expect_error(400, "invalid_schema");
        // The built-in handler cannot write users either.
        let writes = json!({ "consumer": "writes", "event": "data.task.created", "handler": "persist_event", "config": { "object": "users", "map": { "name": "topic" } } });
        let refused = admin.post("/api/v1/events/subscriptions", writes).await;
        assert_eq!(refused.status, 400, "{}", refused.text);
        let document = admin.get("/api/v1/openapi.json").await.json();
        let operations: Vec<&String> = document["paths"]["/api/v1/data/users/{id}"].as_object().unwrap().keys().collect();
        assert_eq!(operations, ["get"]);
        assert!(document["paths"]["/api/v1/data/users/bulk"].is_null() && document["paths"]["/api/v1/data/users"]["post"].is_null());
        let shown = graphql(&admin, "{ __schema { mutationType { fields { name } } } users { data { name task_by_owner { title } } } }").await;
        assert_eq!(shown["data"]["users"]["data"].as_array().unwrap().len(), 1, "{shown}");
        assert!(!shown["data"]["__schema"].to_string().contains("_users"), "{shown}");
        let mutation = graphql(&admin, "mutation { create_users(input: { name: \"x\" }) { id } }").await;
        assert!(mutation["errors"].is_array(), "{mutation}");
    }

    async fn what_is_shown_of_a_user_is_by_the_grants_on_users(server: Server) {
        let World { admin, ann, ann_id, ben_id } = world(&server).await;
        let tasks = json!({ "resource": "task", "actions": ["read", "create"] });
        give(&admin, &ann_id, "worker", json!([tasks, { "resource": "data", "actions": ["read"] }])).await;
        let task = admin.make("task", json!({ "title": "theirs", "assignee_id": ben_id })).await;
        // Without read on users, the caller sees only the id.
        assert_eq!(ann.get(&path(&task)).await.data()["assignee_id"], json!(ben_id));
        for key in ["assignee", "watchers"] {
            ann.get(&format!("{}?expand={key}", path(&task))).await.expect_error(403, "forbidden");
            ann.get(&format!("/api/v1/data/task?expand={key}")).await.expect_error(403, "forbidden");
        }
        ann.post("/api/v1/data/task/query", json!({ "where": { "watchers": { "none": { "name": "ben" } } } })).await.expect_error(403, "forbidden");
        ann.post("/api/v1/data/task/query", json!({ "where": { "assignee": { "name": "ben" } } })).await.expect_error(403, "forbidden");
        ann.get("/api/v1/data/users").await.expect_error(403, "forbidden");
        ann.post("/api/v1/data/task", json!({ "assignee_id": ben_id })).await.expect_error(409, "foreign_key_violation");
        // The role has a grant for the caller's own account.
        let own = |resource: &str| json!([{ "resource": resource, "actions": ["read"], "rowPolicy": "own" }]);
        give(&admin, &ann_id, "own", own("users")).await;
        assert_eq!(ann.get("/api/v1/data/users").await.data().as_array().unwrap().len(), 1);
        assert_eq!(ann.get(&format!("/api/v1/data/users/{ann_id}")).await.data()["email"], "ann@example.com");
        ann.get(&format!("/api/v1/data/users/{ben_id}")).await.expect_error(404, "not_found");
        assert_eq!(ann.get(&format!("{}?expand=assignee", path(&task))).await.data()["assignee"], Value::Null);
        assert_eq!(ann.post("/api/v1/data/task", json!({ "title": "mine", "assignee_id": ann_id })).await.status, 201);
        ann.post("/api/v1/data/task", json!({ "assignee_id": ben_id })).await.expect_error(409, "foreign_key_violation");
        // A further role never removes rights.
        assert_eq!(ann.get(&format!("/api/v1/users/{ann_id}")).await.status, 200);
        // The role has a grant for the names of all users.
        give(&admin, &ann_id, "names", json!([{ "resource": "users", "actions": ["read"], "fields": { "read": ["name"] } }])).await;
        assert_eq!(ann.get(&format!("/api/v1/users/{ann_id}")).await.status, 200);
        let shown = ann.get(&format!("{}?expand=assignee", path(&task))).await.data();
        assert_eq!(shown["assignee"], json!({ "id": ben_id, "name": "ben", "image": null, "email": null }), "{shown}");
        assert_eq!(ann.get("/api/v1/data/users?email%5Bilike%5D=ben").await.data(), json!([]));
        // An address that she may not read is null in conditions through the relation, too.
        assert_eq!(titles(&ann, json!({ "assignee.email": { "ilike": "ben" } })).await, Vec::<String>::new());
        assert_eq!(titles(&ann, json!({ "_not": { "assignee.email": { "ilike": "ben" } }, "assignee_id": ben_id })).await, ["theirs"]);
        assert_eq!(titles(&ann, json!({ "assignee.email": { "ilike": "ann" } })).await, ["mine"]);
        assert_eq!(admin.delete(&format!("/api/v1/users/{ann_id}/roles/own")).await.status, 204);
        let shown = ann.get(&format!("{}?expand=assignee", path(&task))).await.data();
        assert_eq!(shown["assignee"], json!({ "id": ben_id, "name": "ben" }), "{shown}");
        for query in ["?email%5Bilike%5D=ben", "?sort=email", "?select=email", "/aggregate?fn=count&groupBy=email", "/export?format=csv&select=email"] {
            ann.get(&format!("/api/v1/data/users{query}")).await.expect_error(400, "unknown_field");
        }
        assert_eq!(ann.get("/api/v1/data/users?search=example.com").await.data(), json!([]));
        for condition in [json!({ "assignee.email": { "ilike": "ben" } }), json!({ "watchers": { "none": { "email": "ben@example.com" } } })] {
            ann.post("/api/v1/data/task/query", json!({ "where": condition })).await.expect_error(400, "unknown_field");
        }
        let ty = graphql(&ann, "{ __type(name: \"Users\") { fields { name } } }").await;
        assert!(!ty.to_string().contains("email") && ty.to_string().contains("task_by_assignee"), "{ty}");
        // The role has a grant for some users.
        let company = json!([{ "resource": "users", "actions": ["read"], "where": { "email": { "ilike": "ben@" } } }]);
        assert_eq!(admin.patch("/api/v1/roles/names", json!({ "permissions": company })).await.status, 200);
        let listed = ann.get("/api/v1/data/users").await.data();
        assert_eq!(listed, json!([{ "id": ben_id, "name": "ben", "image": null, "email": "ben@example.com" }]));
    }

    async fn conditions_of_grants_go_along_a_relation_to_users(server: Server) {
        let World { admin, ann, ann_id, ben_id } = world(&server).await;
        give(&admin, &ann_id, "worker", json!([
            { "resource": "task", "actions": ["read"], "where": { "_or": [{ "assignee_id": "$user.id" }, { "watchers": { "some": { "id": "$user.id" } } }] } },
            { "resource": "task", "actions": ["update"], "where": { "assignee.email": "ann@example.com" }, "check": {} },
            { "resource": "users", "actions": ["read"] },
        ])).await;
        let mine = admin.make("task", json!({ "title": "mine", "assignee_id": ann_id })).await;
        let watched = admin.make("task", json!({ "title": "watched", "assignee_id": ben_id })).await;
        admin.make("task", json!({ "title": "other", "assignee_id": ben_id })).await;
        assert_eq!(admin.post(&format!("{}/links/watchers", path(&watched)), json!({ "ids": [ann_id] })).await.status, 200);
        assert_eq!(titles(&ann, json!({})).await, ["mine", "watched"]);
        ann.patch(&path(&watched), json!({ "state": "done" })).await.expect_error(404, "not_found");
        assert_eq!(ann.patch(&path(&mine), json!({ "assignee_id": ben_id })).await.status, 200);
        assert_eq!(titles(&ann, json!({})).await, ["watched"]);
    }

    async fn events_follow_the_grants_on_users(server: Server) {
        let World { admin, ann, ann_id, ben_id } = world(&server).await;
        // Ann reads the tasks of an assignee with her name, and of the users only herself.
        give(&admin, &ann_id, "reader", json!([
            { "resource": "task", "actions": ["read"], "where": { "assignee": { "name": "ann" } } },
            { "resource": "users", "actions": ["read"], "rowPolicy": "own" },
        ])).await;
        let mine = admin.make("task", json!({ "title": "mine", "assignee_id": ann_id })).await;
        let theirs = admin.make("task", json!({ "title": "theirs", "assignee_id": ben_id })).await;
        let mut stream = Stream::open(&ann, "?topics=data.task.updated,data.task.linked").await;
        let link = async |task: &str, users: Value| {
            assert_eq!(admin.post(&format!("{}/links/watchers", path(task)), json!({ "ids": users })).await.status, 200);
        };
        admin.patch(&path(&theirs), json!({ "title": "hidden" })).await.data();
        link(&theirs, json!([ann_id])).await;
        link(&mine, json!([ben_id])).await;
        let admin_id = id_of(&admin).await;
        link(&mine, json!([ann_id, admin_id])).await;
        let shown = stream.event().await;
        assert_eq!((&shown["topic"], &shown["payload"]["id"]), (&json!("data.task.linked"), &json!(mine)), "{shown}");
        assert_eq!(shown["payload"]["targetIds"], json!([ann_id]), "{shown}");
        // A task enters her view by its assignee, and leaves it.
        admin.patch(&path(&theirs), json!({ "assignee_id": ann_id })).await.data();
        let shown = stream.event().await["payload"].take();
        assert_eq!((&shown["before"], &shown["after"]["assignee_id"], &shown["diff"]), (&Value::Null, &json!(ann_id), &Value::Null), "{shown}");
        admin.patch(&path(&theirs), json!({ "assignee_id": null })).await.data();
        let shown = stream.event().await["payload"].take();
        assert_eq!((&shown["before"]["assignee_id"], &shown["after"], &shown["diff"]), (&json!(ann_id), &Value::Null, &Value::Null), "{shown}");
    }

    async fn what_refers_to_a_user_who_goes_is_cleared_or_goes_along(server: Server) {
        let World { admin, ann_id, ben_id, .. } = world(&server).await;
        admin.define("badge", json!([{ "name": "text", "type": "text" }])).await;
        admin.relate(json!({ "name": "holder", "kind": "one_to_one", "source": "badge", "target": "users", "required": true, "onDelete": "cascade" })).await;
        let task = admin.make("task", json!({ "title": "a", "assignee_id": ann_id })).await;
        let other = admin.make("task", json!({ "title": "b", "assignee_id": ben_id })).await;
        let badge = admin.make("badge", json!({ "text": "x", "holder_id": ann_id })).await;
        admin.post("/api/v1/data/badge", json!({ "holder_id": ann_id })).await.expect_error(409, "unique_violation");
        assert_eq!(admin.post(&format!("{}/links/watchers", path(&other)), json!({ "ids": [ann_id, ben_id] })).await.status, 200);
        assert_eq!(admin.delete(&format!("/api/v1/users/{ann_id}")).await.status, 204);
        assert_eq!(admin.get(&path(&task)).await.data()["assignee_id"], Value::Null);
        assert_eq!(admin.get(&format!("/api/v1/data/badge/{badge}")).await.status, 404);
        assert_eq!(admin.get("/api/v1/data/badge").await.json()["pagination"]["totalCount"], 0);
        assert_eq!(admin.get("/api/v1/data/users").await.json()["pagination"]["totalCount"], 2);
        let watchers = admin.get(&format!("{}?expand=watchers", path(&other))).await.data()["watchers"].clone();
        assert_eq!((watchers.as_array().unwrap().len(), &watchers[0]["id"]), (1, &json!(ben_id)));
        // Each of these changes has an event.
        assert_eq!(history(&admin, &task).await[1..], [("updated".to_owned(), json!(ann_id), Value::Null)]);
        let unlinked = history(&admin, &other).await;
        assert_eq!(unlinked.last().unwrap().0, "unlinked");
        let deleted = admin.get("/api/v1/events?object=badge&limit=1").await.data();
        assert_eq!(deleted[0]["topic"], "data.badge.deleted");
        assert_eq!(admin.get("/api/v1/events?topic=data.users.%23").await.data(), json!([]));
    }
}

on_both_engines! {
    async fn a_guest_who_signs_up_takes_references_and_links_along(engine: Engine) {
        let server = ServerBuilder::new(engine).env("SVC_ANONYMOUS_AUTH", "true").start().await;
        let admin = server.admin().await;
        define(&admin).await;
        admin.define("badge", json!([{ "name": "text", "type": "text" }])).await;
        admin.relate(json!({ "name": "holder", "kind": "one_to_one", "source": "badge", "target": "users" })).await;
        admin.define("pass", json!([{ "name": "text", "type": "text" }])).await;
        admin.relate(json!({ "name": "owner", "kind": "one_to_one", "source": "pass", "target": "users", "required": true, "onDelete": "cascade" })).await;
        // Nobody has two seats in one place.
        admin.define("seat", json!([{ "name": "place", "type": "text" }])).await;
        admin.relate(json!({ "name": "holder", "kind": "many_to_one", "source": "seat", "target": "users" })).await;
        let groups = json!({ "constraints": { "uniqueTogether": [["place", "holder_id"]] } });
        assert_eq!(admin.patch("/api/v1/objects/seat", groups).await.status, 200);
        let seat = async |place: &str, holder: &str| admin.make("seat", json!({ "place": place, "holder_id": holder })).await;
        let holder_of = async |seat: &str| admin.get(&format!("/api/v1/data/seat/{seat}")).await.data()["holder_id"].clone();
        let guest = async || {
            let signed_in = server.call("POST", "/api/auth/sign-in/anonymous", Some(json!({}))).await;
            assert_eq!(signed_in.status, 200, "{}", signed_in.text);
            let guest = server.with_token(signed_in.json()["token"].as_str().unwrap().to_owned());
            let id = id_of(&guest).await;
            (guest, id)
        };
        let person = json!({ "name": "Eve", "email": "eve@example.com", "password": "correct horse battery" });
        let (first, first_id) = guest().await;
        let task = admin.make("task", json!({ "title": "a", "assignee_id": first_id })).await;
        let badge = admin.make("badge", json!({ "text": "first", "holder_id": first_id })).await;
        let pass = admin.make("pass", json!({ "text": "first", "owner_id": first_id })).await;
        let front = seat("front", &first_id).await;
        assert_eq!(admin.post(&format!("{}/links/watchers", path(&task)), json!({ "ids": [first_id] })).await.status, 200);
        let before = history(&admin, &task).await.len();
        let up = first.post("/api/auth/sign-up/email", person.clone()).await;
        assert_eq!(up.status, 200, "{}", up.text);
        let eve_id = up.json()["user"]["id"].as_str().unwrap().to_owned();
        let shown = async || admin.get(&format!("{}?expand=assignee,watchers", path(&task))).await.data();
        let (task_now, badge_path) = (shown().await, format!("/api/v1/data/badge/{badge}"));
        assert_eq!((&task_now["assignee"]["name"], &task_now["watchers"][0]["id"]), (&json!("Eve"), &json!(eve_id)), "{task_now}");
        assert_eq!(task_now["watchers"].as_array().unwrap().len(), 1);
        assert_eq!(admin.get(&badge_path).await.data()["holder_id"], json!(eve_id));
        assert_eq!(history(&admin, &task).await.len(), before, "a move has no event");

        let pass_path = format!("/api/v1/data/pass/{pass}");
        assert_eq!(admin.get(&pass_path).await.data()["owner_id"], json!(eve_id));
        assert_eq!(holder_of(&front).await, json!(eve_id));

        // The second guest has a badge and a pass as well. Eve already has both, so this badge has no holder afterwards, and this
        // pass is deleted. Of two seats, one is in a place where Eve already has one. Both watch the task.
        let (second, second_id) = guest().await;
        let other = admin.make("badge", json!({ "text": "second", "holder_id": second_id })).await;
        let other_pass = admin.make("pass", json!({ "text": "second", "owner_id": second_id })).await;
        let (other_front, rear) = (seat("front", &second_id).await, seat("rear", &second_id).await);
        admin.patch(&path(&task), json!({ "assignee_id": second_id })).await.data();
        let watched = admin.make("task", json!({ "title": "b" })).await;
        for task in [&task, &watched] {
            let linked = admin.post(&format!("{}/links/watchers", path(task)), json!({ "ids": [second_id] })).await;
            assert_eq!(linked.data(), json!({ "added": 1 }));
        }
        let back = second.post("/api/auth/sign-in/email", json!({ "email": "eve@example.com", "password": "correct horse battery" })).await;
        assert_eq!(back.status, 200, "{}", back.text);
        assert_eq!(shown().await["assignee"]["id"], json!(eve_id));
        assert_eq!(admin.get(&badge_path).await.data()["holder_id"], json!(eve_id));
        assert_eq!(admin.get(&format!("/api/v1/data/badge/{other}")).await.data()["holder_id"], Value::Null);
        assert_eq!(admin.get(&pass_path).await.data()["owner_id"], json!(eve_id));
        admin.get(&format!("/api/v1/data/pass/{other_pass}")).await.expect_error(404, "not_found");
        let holders = [holder_of(&front).await, holder_of(&other_front).await, holder_of(&rear).await];
        assert_eq!(holders, [json!(eve_id), Value::Null, json!(eve_id)]);
        for task in [&task, &watched] {
            let watchers = admin.get(&format!("{}?expand=watchers", path(task))).await.data()["watchers"].clone();
            assert_eq!((watchers.as_array().unwrap().len(), &watchers[0]["id"]), (1, &json!(eve_id)), "{watchers}");
        }
        assert_eq!(admin.get("/api/v1/data/users").await.json()["pagination"]["totalCount"], 2);
    }
}

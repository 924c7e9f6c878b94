//! Roles, users and API keys: nobody can give more rights than they have, and the last admin stays.

use blockbase_tests::{Admin, Engine, ServerBuilder, on_both_engines};
use futures_util::future::join_all;
use serde_json::{Value, json};

/// Makes a role with these grants, and returns its id.
pub(crate) async fn role(admin: &Admin<'_>, name: &str, permissions: Value) -> String {
    let made = admin.post("/api/v1/roles", json!({ "name": name, "permissions": permissions })).await.data();
    made["id"].as_str().unwrap().to_owned()
}

/// A user who has just signed up, with or without a role. Returns their client and id.
pub(crate) async fn user<'a>(admin: &Admin<'a>, name: &str, role: Option<&str>) -> (Admin<'a>, String) {
    let client = admin.server.with_token(admin.server.sign_up(name).await);
    let id = client.get("/api/v1/me").await.json()["userId"].as_str().unwrap().to_owned();
    if let Some(role) = role {
        let answer = admin.post(&format!("/api/v1/users/{id}/roles"), json!({ "roleId": role })).await;
        assert_eq!(answer.status, 200, "{}", answer.text);
    }
    (client, id)
}

pub(crate) async fn key<'a>(maker: &Admin<'a>, body: Value) -> (Admin<'a>, Value) {
    let answer = maker.post("/api/v1/api-keys", body).await;
    assert_eq!(answer.status, 201, "{}", answer.text);
    let body = answer.json();
    (maker.server.with_token(body["key"].as_str().unwrap().to_owned()), body["data"].clone())
}

/// Waits until a revocation applies on every instance.
pub(crate) async fn within_five_seconds(mut holds: impl AsyncFnMut() -> bool) {
    for _ in 0..50 {
        if holds().await {
            return;
        }
        tokio::time::sleep(std::time::Duration::from_millis(100)).await;
    }
    panic!("it did not come to hold within five seconds");
}

on_both_engines! {
    async fn roles_are_made_changed_and_deleted(server: Server) {
        let admin = server.admin().await;
        let seeded = admin.get("/api/v1/roles").await.data();
        let names: Vec<_> = seeded.as_array().unwrap().iter().map(|role| role["name"].as_str().unwrap()).collect();
        assert_eq!(names, ["admin", "public", "anonymous"]);
        let grants = json!([{ "resource": "task", "actions": ["read", "create"], "rowPolicy": "own" }, { "resource": "tag", "actions": ["manage"] }]);
        let answer = admin.post("/api/v1/roles", json!({ "name": "editor", "description": "Edits.", "permissions": grants })).await;
        assert_eq!(answer.status, 201, "{}", answer.text);
        let made = answer.data();
        assert_eq!((&made["permissions"], &made["description"]), (&grants, &json!("Edits.")));
        let path = format!("/api/v1/roles/{}", made["id"].as_str().unwrap());
        assert_eq!(admin.get(&path).await.data(), made);
        assert_eq!(admin.get("/api/v1/roles/editor").await.data(), made);
        let changed = admin.patch(&path, json!({ "name": "writer", "description": null })).await.data();
        assert_eq!((&changed["name"], &changed["description"], &changed["permissions"]), (&json!("writer"), &Value::Null, &grants));

        for (body, status, code) in [
            (json!({ "name": "admin" }), 409, "unique_violation"),
            (json!({ "permissions": [] }), 400, "not_null_violation"),
            (json!({ "name": "1x" }), 400, "invalid_value"),
            (json!({ "name": 5 }), 400, "invalid_request"),
            (json!({ "name": "x", "admin": true }), 400, "invalid_request"),
            (json!({ "name": "x", "permissions": "all" }), 400, "invalid_request"),
            (json!({ "name": "x", "permissions": [["task", ["read"]]] }), 400, "invalid_request"),
            (json!(["x"]), 400, "invalid_request"),
            (json!({ "name": "x", "permissions": [{ "resource": "Task", "actions": ["read"] }] }), 400, "invalid_value"),
            (json!({ "name": "x", "permissions": [{ "resource": "task", "actions": [] }] }), 400, "invalid_value"),
            (json!({ "name": "x", "permissions": [{ "resource": "task", "actions": ["read", "create", "read"] }] }), 400, "invalid_value"),
            (json!({ "name": "x", "permissions": [{ "resource": "task", "actions": ["fly"] }] }), 400, "invalid_request"),
            (json!({ "name": "x", "permissions": [{ "resource": "task", "actions": ["read"], "rowPolicy": "mine" }] }), 400, "invalid_request"),
            (json!({ "name": "x", "permissions": [{ "resource": "task", "actions": ["read"], "rows": "own" }] }), 400, "invalid_request"),
        ] {
            admin.post("/api/v1/roles", body).await.expect_error(status, code);
        }
        // The roles that the service itself uses cannot be changed.
        admin.patch("/api/v1/roles/admin", json!({ "permissions": [] })).await.expect_error(409, "conflict");
        admin.patch("/api/v1/roles/public", json!({ "name": "everybody" })).await.expect_error(409, "conflict");
        for name in ["admin", "public", "anonymous"] {
            admin.delete(&format!("/api/v1/roles/{name}")).await.expect_error(409, "conflict");
        }
        admin.get("/api/v1/roles/nobody").await.expect_error(404, "not_found");
        admin.patch("/api/v1/roles/nobody", json!({})).await.expect_error(404, "not_found");

        // If a role is deleted, its rights and keys go with it.
        admin.make_task_object().await;
        let (ann, _) = user(&admin, "ann", Some("writer")).await;
        let (by_key, _) = key(&admin, json!({ "name": "k", "roleId": "writer" })).await;
        assert_eq!(ann.get("/api/v1/data/task").await.status, 200);
        assert_eq!(by_key.get("/api/v1/data/task").await.status, 200);
        assert_eq!(admin.delete(&path).await.status, 204);
        ann.get("/api/v1/data/task").await.expect_error(403, "forbidden");
        by_key.get("/api/v1/data/task").await.expect_error(401, "unauthorized");
    }

    async fn a_change_of_roles_holds_at_once(server: Server) {
        let admin = server.admin().await;
        admin.make_task_object().await;
        let reads = json!([{ "resource": "task", "actions": ["read"] }]);
        role(&admin, "reader", reads.clone()).await;
        let (ann, ann_id) = user(&admin, "ann", None).await;
        ann.get("/api/v1/data/task").await.expect_error(403, "forbidden");
        assert_eq!(admin.post(&format!("/api/v1/users/{ann_id}/roles"), json!({ "roleId": "reader" })).await.status, 200);
        assert_eq!(ann.get("/api/v1/data/task").await.status, 200);
        assert_eq!(admin.patch("/api/v1/roles/reader", json!({ "permissions": [] })).await.status, 200);
        ann.get("/api/v1/data/task").await.expect_error(403, "forbidden");
        assert_eq!(admin.patch("/api/v1/roles/reader", json!({ "permissions": reads })).await.status, 200);
        assert_eq!(ann.get("/api/v1/data/task").await.status, 200);
        assert_eq!(admin.delete(&format!("/api/v1/users/{ann_id}/roles/reader")).await.status, 204);
        ann.get("/api/v1/data/task").await.expect_error(403, "forbidden");
        admin.delete(&format!("/api/v1/users/{ann_id}/roles/reader")).await.expect_error(404, "not_found");

        // Users who are signed in have the rights of `public` too.
        server.call("GET", "/api/v1/data/task", None).await.expect_error(401, "unauthorized");
        assert_eq!(admin.patch("/api/v1/roles/public", json!({ "permissions": reads })).await.status, 200);
        assert_eq!(server.call("GET", "/api/v1/data/task", None).await.status, 200);
        assert_eq!(ann.get("/api/v1/data/task").await.status, 200);
        server.call("POST", "/api/v1/data/task", Some(json!({ "title": "x" }))).await.expect_error(401, "unauthorized");
        ann.post("/api/v1/data/task", json!({ "title": "x" })).await.expect_error(403, "forbidden");
    }

    async fn nobody_gives_more_than_they_hold(server: Server) {
        let admin = server.admin().await;
        admin.make_task_object().await;
        let helper_grants = json!([
            { "resource": "roles", "actions": ["manage"] },
            { "resource": "users", "actions": ["manage"] },
            { "resource": "api_keys", "actions": ["manage"] },
            { "resource": "task", "actions": ["read"] },
            { "resource": "task", "actions": ["update"], "rowPolicy": "own" },
        ]);
        let helper_role = role(&admin, "helper", helper_grants.clone()).await;
        role(&admin, "strong", json!([{ "resource": "task", "actions": ["read", "delete"] }])).await;
        let (helper, helper_id) = user(&admin, "helper", Some(&helper_role)).await;
        let (_, other_id) = user(&admin, "other", None).await;

        // The server refuses all of these in the same way: a new role, a change of one's own or another role, a role for oneself
        // or others, a key.
        for grants in [
            json!([{ "resource": "*", "actions": ["manage"] }]),
            json!([{ "resource": "*", "actions": ["read"] }]),
            json!([{ "resource": "task", "actions": ["manage"] }]),
            json!([{ "resource": "task", "actions": ["update"] }]),
            json!([{ "resource": "task", "actions": ["delete"], "rowPolicy": "own" }]),
            json!([{ "resource": "objects", "actions": ["read"] }]),
            json!([{ "resource": "another", "actions": ["read"] }]),
        ] {
            helper.post("/api/v1/roles", json!({ "name": "mine", "permissions": grants })).await.expect_error(403, "forbidden");
            let mut more = helper_grants.as_array().unwrap().clone();
            more.extend(grants.as_array().unwrap().iter().cloned());
            helper.patch("/api/v1/roles/helper", json!({ "permissions": more })).await.expect_error(403, "forbidden");
            helper.patch("/api/v1/roles/public", json!({ "permissions": grants })).await.expect_error(403, "forbidden");
        }
        for role in ["admin", "strong"] {
            for id in [&helper_id, &other_id] {
                helper.post(&format!("/api/v1/users/{id}/roles"), json!({ "roleId": role })).await.expect_error(403, "forbidden");
            }
            helper.post("/api/v1/api-keys", json!({ "name": "k", "roleId": role })).await.expect_error(403, "forbidden");
            helper.patch(&format!("/api/v1/roles/{role}"), json!({ "name": "renamed" })).await;
        }
        // The configuration can give sign-ups a role by name, so the helper must not rename a role that is stronger than its own.
        assert_eq!(admin.get("/api/v1/roles/strong").await.status, 200);

        // Callers may give the rights that they have. They may not weaken a role that has more rights.
        let own = json!([{ "resource": "task", "actions": ["update"], "rowPolicy": "own" }]);
        assert_eq!(helper.post("/api/v1/roles", json!({ "name": "owner", "permissions": own })).await.status, 201);
        assert_eq!(helper.post(&format!("/api/v1/users/{other_id}/roles"), json!({ "roleId": "owner" })).await.status, 200);
        let weaker = json!({ "permissions": [{ "resource": "task", "actions": ["delete"] }] });
        helper.patch("/api/v1/roles/strong", weaker).await.expect_error(403, "forbidden");
        assert_eq!(helper.post("/api/v1/api-keys", json!({ "name": "k", "roleId": "owner" })).await.status, 201);
        // A key of another user would act on that user's rows, and a grant for own rows does not cover these.
        let of_other = json!({ "name": "k", "roleId": "owner", "userId": other_id });
        helper.post("/api/v1/api-keys", of_other).await.expect_error(403, "forbidden");

        // A key has no more rights than its role, even if its user has more rights.
        role(&admin, "keymaker", json!([{ "resource": "api_keys", "actions": ["create"] }, { "resource": "roles", "actions": ["manage"] }])).await;
        let (by_key, _) = key(&admin, json!({ "name": "weak", "roleId": "keymaker" })).await;
        by_key.post("/api/v1/api-keys", json!({ "name": "k", "roleId": "admin" })).await.expect_error(403, "forbidden");
        by_key.patch("/api/v1/roles/keymaker", json!({ "permissions": [{ "resource": "*", "actions": ["manage"] }] })).await.expect_error(403, "forbidden");
    }

    async fn the_last_admin_stays(server: Server) {
        let admin = server.admin().await;
        let id = admin.get("/api/v1/me").await.json()["userId"].as_str().unwrap().to_owned();
        let path = format!("/api/v1/users/{id}");
        let refused = async || {
            admin.delete(&format!("{path}/roles/admin")).await.expect_error(409, "conflict");
            admin.delete(&path).await.expect_error(409, "conflict");
            admin.patch(&path, json!({ "banned": true })).await.expect_error(409, "conflict");
        };
        refused().await;
        // A user who is banned or cannot sign in does not count as another admin.
        let (_, second_id) = user(&admin, "second", Some("admin")).await;
        let second_path = format!("/api/v1/users/{second_id}");
        assert_eq!(admin.patch(&second_path, json!({ "banned": true })).await.status, 200);
        refused().await;
        assert_eq!(admin.patch(&second_path, json!({ "banned": false })).await.status, 200);

        // Two admins demote each other at the same time. One of them stays admin.
        for round in 0..5 {
            let (third, third_id) = user(&admin, &format!("third{round}"), Some("admin")).await;
            assert_eq!(admin.delete(&format!("{second_path}/roles/admin")).await.status, if round == 0 { 204 } else { 404 });
            let third_path = format!("/api/v1/users/{third_id}/roles/admin");
            let own_path = format!("{path}/roles/admin");
            let (one, other) = tokio::join!(admin.delete(&third_path), third.delete(&own_path));
            let mut statuses = [one.status, other.status];
            statuses.sort_unstable();
            // The second request fails, either because its caller is no longer admin, or because it would remove the last admin.
            assert!(statuses[0] == 204 && [403, 409].contains(&statuses[1]), "{statuses:?}");
            let left = server.sql("SELECT ur.user_id FROM svc_user_roles ur JOIN svc_roles r ON r.id = ur.role_id WHERE r.name = 'admin'").await;
            assert_eq!(left.len(), 1);
            if left[0][0] != id {
                let back = third.post(&format!("{path}/roles"), json!({ "roleId": "admin" })).await;
                assert_eq!(back.status, 200);
                assert_eq!(admin.delete(&third_path).await.status, 204);
            }
        }
        refused().await;
    }

    async fn users_are_looked_after(server: Server) {
        let admin = server.admin().await;
        admin.make_task_object().await;
        role(&admin, "writer", json!([{ "resource": "task", "actions": ["manage"] }])).await;
        let (ann, ann_id) = user(&admin, "aennchen", Some("writer")).await;
        assert_eq!(ann.post("/api/auth/update-user", json!({ "name": "Ännchen" })).await.status, 200);
        let (bob, _) = user(&admin, "bob", None).await;
        let page = admin.get("/api/v1/users?pageSize=2").await.json();
        assert_eq!((&page["pagination"]["totalCount"], &page["pagination"]["hasNextPage"]), (&json!(3), &json!(true)));
        assert_eq!(page["data"][0]["name"], "bob");
        assert_eq!(page["data"][1]["roles"][0]["name"], "writer");
        assert_eq!(page["data"][1].get("password"), None);
        let found = admin.get("/api/v1/users?search=äNNCH").await.json();
        assert_eq!((&found["pagination"]["totalCount"], &found["data"][0]["id"]), (&json!(1), &json!(ann_id)));
        assert_eq!(admin.get("/api/v1/users?search=%25").await.json()["pagination"]["totalCount"], 0);
        admin.get("/api/v1/users?sort=name").await.expect_error(400, "invalid_request");
        admin.get("/api/v1/users?page=0").await.expect_error(400, "invalid_request");
        bob.get("/api/v1/users").await.expect_error(403, "forbidden");
        bob.get(&format!("/api/v1/users/{ann_id}")).await.expect_error(403, "forbidden");
        admin.get("/api/v1/users/nobody").await.expect_error(404, "not_found");

        let path = format!("/api/v1/users/{ann_id}");
        for body in [json!({ "email": "x@example.com" }), json!({ "banned": "yes" }), json!({ "isAnonymous": true }), json!({ "id": "x" })] {
            admin.patch(&path, body).await.expect_error(400, "invalid_request");
        }
        admin.patch(&path, json!({ "name": "x".repeat(201) })).await.expect_error(400, "invalid_value");
        assert_eq!(admin.patch(&path, json!({ "name": "Anna" })).await.data()["name"], "Anna");
        assert_eq!(ann.get("/api/v1/me").await.json()["user"]["name"], "Anna");

        // A ban ends sessions at once. While it lasts, the user's keys are invalid, and the user cannot sign in.
        let (by_key, _) = key(&admin, json!({ "name": "k", "roleId": "writer", "userId": ann_id })).await;
        let made = ann.make("task", json!({ "title": "of ann" })).await;
        assert_eq!(by_key.get("/api/v1/data/task").await.status, 200);
        assert_eq!(admin.patch(&path, json!({ "banned": true })).await.data()["banned"], true);
        ann.get("/api/v1/data/task").await.expect_error(401, "unauthorized");
        by_key.get("/api/v1/data/task").await.expect_error(401, "unauthorized");
        let sign_in = json!({ "email": "aennchen@example.com", "password": "correct horse battery" });
        assert_eq!(server.call("POST", "/api/auth/sign-in/email", Some(sign_in.clone())).await.status, 401);
        assert_eq!(admin.patch(&path, json!({ "banned": false })).await.status, 200);
        assert_eq!(by_key.get("/api/v1/data/task").await.status, 200);
        let again = server.call("POST", "/api/auth/sign-in/email", Some(sign_in)).await.json();
        let ann = server.with_token(again["token"].as_str().unwrap().to_owned());

        // After the deletion, sessions and keys are invalid, and records keep their stamps.
        assert_eq!(admin.delete(&path).await.status, 204);
        ann.get("/api/v1/data/task").await.expect_error(401, "unauthorized");
        by_key.get("/api/v1/data/task").await.expect_error(401, "unauthorized");
        assert_eq!(admin.get(&format!("/api/v1/data/task/{made}")).await.data()["created_by"], json!(ann_id));
        admin.delete(&path).await.expect_error(404, "not_found");
        let events = server.sql("SELECT payload FROM svc_events WHERE topic = 'auth.user.deleted'").await;
        let payload: Value = serde_json::from_str(&events[0][0]).unwrap();
        assert_eq!((&payload["userId"], &payload["actor"]["via"]), (&json!(ann_id), &json!("session")));
    }

    async fn keys_act_as_their_user_with_the_rights_of_their_role(server: Server) {
        let admin = server.admin().await;
        admin.make_task_object().await;
        role(&admin, "reader", json!([{ "resource": "task", "actions": ["read"] }])).await;
        role(&admin, "writer", json!([{ "resource": "task", "actions": ["create", "read"], "rowPolicy": "own" }])).await;
        let admin_id = admin.get("/api/v1/me").await.json()["userId"].clone();
        let (reader, shown) = key(&admin, json!({ "name": "reads", "roleId": "reader" })).await;
        let names: Vec<_> = shown.as_object().unwrap().keys().cloned().collect();
        assert_eq!(names, ["id", "name", "prefix", "roleId", "userId", "expiresAt", "lastUsedAt", "createdAt", "madeBy", "suspended"]);
        assert!(reader.token.starts_with(shown["prefix"].as_str().unwrap()) && reader.token.len() == 47);
        assert_eq!(shown["userId"], admin_id);
        // A key has only the rights of its role, although its user may do everything. Both headers have the same effect.
        reader.post("/api/v1/data/task", json!({ "title": "x" })).await.expect_error(403, "forbidden");
        reader.get("/api/v1/roles").await.expect_error(403, "forbidden");
        let by_header = server.send(server.request("GET", "/api/v1/data/task").header("x-api-key", &reader.token)).await;
        assert_eq!(by_header.status, 200);
        let me = reader.get("/api/v1/me").await.json();
        assert_eq!((&me["userId"], &me["roles"], &me["apiKeyId"]), (&admin_id, &json!(["reader"]), &shown["id"]));

        // Stamps name the key's user, and events name the key.
        let (ann, ann_id) = user(&admin, "ann", Some("writer")).await;
        let (of_ann, of_ann_row) = key(&admin, json!({ "name": "k", "roleId": "writer", "userId": ann_id })).await;
        let made = of_ann.make("task", json!({ "title": "x" })).await;
        assert_eq!(ann.get(&format!("/api/v1/data/task/{made}")).await.data()["created_by"], json!(ann_id));
        let (_, event) = admin.outbox("task").await.pop().unwrap();
        assert_eq!(event["actor"], json!({ "userId": ann_id, "apiKeyId": of_ann_row["id"], "via": "api_key" }));

        // Only the key's hash is stored, and the key is shown once.
        assert_eq!(server.sql(&format!("SELECT id FROM svc_api_keys WHERE key_hash = '{}'", of_ann.token)).await.len(), 0);
        assert!(!admin.get("/api/v1/api-keys").await.text.contains(&of_ann.token));
        within_five_seconds(async || {
            let list = admin.get("/api/v1/api-keys").await.data();
            list.as_array().unwrap().iter().all(|key| key["lastUsedAt"].is_string())
        })
        .await;

        for (body, status, code) in [
            (json!({ "name": "k", "roleId": "reader", "userId": "nobody" }), 409, "foreign_key_violation"),
            (json!({ "name": "", "roleId": "reader" }), 400, "invalid_value"),
            (json!({ "name": "k", "roleId": "reader", "expiresAt": "tomorrow" }), 400, "invalid_value"),
            (json!({ "name": "k", "roleId": "reader", "expiresAt": "2001-01-01T00:00:00Z" }), 400, "invalid_value"),
            (json!({ "name": "k", "roleId": "reader", "key": "svc_mine" }), 400, "invalid_request"),
            (json!({ "name": "k" }), 400, "invalid_request"),
        ] {
            admin.post("/api/v1/api-keys", body).await.expect_error(status, code);
        }
        let unknown = admin.post("/api/v1/api-keys", json!({ "name": "k", "roleId": "editor" })).await;
        assert_eq!(unknown.expect_error(409, "foreign_key_violation")["message"], "`roleId`: there is no role `editor`.");

        // A key becomes invalid when it expires or is deleted.
        let (short, _) = key(&admin, json!({ "name": "short", "roleId": "reader", "expiresAt": "2999-01-01T00:00:00Z" })).await;
        server.sql("UPDATE svc_api_keys SET expires_at = 1 WHERE name = 'short'").await;
        short.get("/api/v1/data/task").await.expect_error(401, "unauthorized");
        let path = format!("/api/v1/api-keys/{}", shown["id"].as_str().unwrap());
        assert_eq!(admin.delete(&path).await.status, 204);
        reader.get("/api/v1/data/task").await.expect_error(401, "unauthorized");
        assert_eq!(reader.get("/api/v1/me").await.json(), json!({ "authenticated": false }));
        admin.delete(&path).await.expect_error(404, "not_found");

        // With a grant for own keys and users, a caller only gets their own.
        role(&admin, "self", json!([
            { "resource": "api_keys", "actions": ["manage"], "rowPolicy": "own" },
            { "resource": "users", "actions": ["read"], "rowPolicy": "own" },
            { "resource": "roles", "actions": ["read"], "rowPolicy": "own" },
            { "resource": "task", "actions": ["read"] },
        ]))
        .await;
        let (bob, bob_id) = user(&admin, "bob", Some("self")).await;
        let (_, of_bob) = key(&bob, json!({ "name": "mine", "roleId": "reader" })).await;
        assert_eq!(bob.get("/api/v1/api-keys").await.data().as_array().unwrap().len(), 1);
        bob.post("/api/v1/api-keys", json!({ "name": "k", "roleId": "reader", "userId": ann_id })).await.expect_error(403, "forbidden");
        bob.delete(&format!("/api/v1/api-keys/{}", of_ann_row["id"].as_str().unwrap())).await.expect_error(404, "not_found");
        assert_eq!(bob.delete(&format!("/api/v1/api-keys/{}", of_bob["id"].as_str().unwrap())).await.status, 204);
        assert_eq!(bob.get("/api/v1/users").await.json()["pagination"]["totalCount"], 1);
        assert_eq!(bob.get(&format!("/api/v1/users/{bob_id}")).await.status, 200);
        bob.get(&format!("/api/v1/users/{ann_id}")).await.expect_error(404, "not_found");
        bob.get("/api/v1/roles").await.expect_error(403, "forbidden");
    }

    async fn whoever_may_not_read_learns_nothing_by_writing(server: Server) {
        let admin = server.admin().await;
        let fields = json!([
            { "name": "code", "type": "text", "isUnique": true, "required": true },
            { "name": "balance", "type": "integer" },
            { "name": "secret", "type": "text" },
        ]);
        admin.define("account", fields).await;
        role(&admin, "blind", json!([{ "resource": "account", "actions": ["create", "update"] }])).await;
        let (blind, _) = user(&admin, "blind", Some("blind")).await;
        let record = json!({ "code": "a", "balance": 7, "secret": "s3cret" });
        let id = admin.make("account", record).await;
        let path = format!("/api/v1/data/account/{id}");
        assert_eq!(blind.patch(&path, json!({})).await.data(), json!({ "id": id }));
        assert_eq!(blind.patch(&path, json!({ "code": "b" })).await.data(), json!({ "id": id, "code": "b" }));
        assert_eq!(blind.patch(&path, json!({ "balance": { "$inc": 0 } })).await.data(), json!({ "id": id }));
        let upsert = blind.post("/api/v1/data/account?on_conflict=code", json!({ "code": "b", "balance": 1 })).await;
        assert_eq!(upsert.json(), json!({ "data": { "id": id, "code": "b", "balance": 1 }, "created": false }));
        assert_eq!(admin.get(&path).await.data()["secret"], "s3cret");
        // The answer shows them the record that they created.
        assert_eq!(blind.post("/api/v1/data/account", json!({ "code": "c" })).await.data()["secret"], Value::Null);
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_revocation_reaches_other_instances() {
    let server = ServerBuilder::new(Engine::Postgres).start().await;
    let other = server.builder().start().await;
    let admin = server.admin().await;
    admin.make_task_object().await;
    role(&admin, "reader", json!([{ "resource": "task", "actions": ["read"] }])).await;
    let (ann, ann_id) = user(&admin, "ann", Some("reader")).await;
    let (_, row) = key(&admin, json!({ "name": "k", "roleId": "reader" })).await;
    let (by_key, _) = key(&admin, json!({ "name": "k2", "roleId": "reader" })).await;
    let (deleted, _) = key(&admin, json!({ "name": "k3", "roleId": "reader", "userId": ann_id })).await;
    let status = async |token: &str| other.with_token(token.to_owned()).get("/api/v1/data/task").await.status;
    for token in [&ann.token, &by_key.token, &deleted.token] {
        assert_eq!(status(token).await, 200);
    }
    assert_eq!(admin.delete(&format!("/api/v1/api-keys/{}", row["id"].as_str().unwrap())).await.status, 204);
    assert_eq!(admin.patch("/api/v1/roles/reader", json!({ "permissions": [] })).await.status, 200);
    within_five_seconds(async || status(&by_key.token).await == 403).await;
    let mut stream = other.with_token(ann.token.clone()).request("GET", "/api/v1/events/stream").send().await.unwrap();
    assert_eq!(stream.status(), 200);
    assert_eq!(admin.delete(&format!("/api/v1/users/{ann_id}")).await.status, 204);
    within_five_seconds(async || status(&ann.token).await == 401).await;
    within_five_seconds(async || status(&deleted.token).await == 401).await;
    // The stream ends when the user is deleted.
    let end = async { while stream.chunk().await.unwrap().is_some() {} };
    tokio::time::timeout(std::time::Duration::from_secs(5), end).await.expect("an end of the stream");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn many_changes_of_accounts_at_once_leave_no_deadlock() {
    let server = ServerBuilder::new(Engine::Postgres).start().await;
    let admin = server.admin().await;
    role(&admin, "reader", json!([{ "resource": "task", "actions": ["read"] }])).await;
    let mut ids = Vec::new();
    for number in 0..6 {
        ids.push(user(&admin, &format!("user{number}"), Some("admin")).await.1);
    }
    let work = (0..60).map(|number| {
        let (admin, id) = (&admin, &ids[number % ids.len()]);
        async move {
            let path = format!("/api/v1/users/{id}");
            match number % 5 {
                0 => admin.patch(&path, json!({ "banned": number % 2 == 0 })).await,
                1 => admin.post(&format!("{path}/roles"), json!({ "roleId": "reader" })).await,
                2 => admin.delete(&format!("{path}/roles/reader")).await,
                3 => admin.patch("/api/v1/roles/reader", json!({ "description": number.to_string() })).await,
                _ => admin.post("/api/v1/api-keys", json!({ "name": "k", "roleId": "reader", "userId": id })).await,
            }
        }
    });
    for answer in join_all(work).await {
        assert!([200, 201, 204, 404].contains(&answer.status), "{} {}", answer.status, answer.text);
    }
    assert!(!server.log().contains("ERROR"), "{}", server.log());
}

on_both_engines! {
    async fn a_role_with_keys_of_others_gains_no_own_rows(server: Server) {
        let admin = server.admin().await;
        admin.make_task_object().await;
        let maker = json!([
            { "resource": "roles", "actions": ["create", "update"] },
            { "resource": "api_keys", "actions": ["create"] },
            { "resource": "users", "actions": ["update"] },
            { "resource": "task", "actions": ["read", "update"], "rowPolicy": "own" },
            { "resource": "task", "actions": ["read"], "where": { "title": "$user.id" } },
            { "resource": "task", "actions": ["read"], "where": { "title": "$key.id" } },
        ]);
        role(&admin, "maker", maker).await;
        let (maker, _) = user(&admin, "maker", Some("maker")).await;
        let (victim, victim_id) = user(&admin, "victim", Some("maker")).await;
        // She makes an empty role, a key of another user with this role, and then a grant for own rows in the role. These would
        // be the other user's rows. The same applies to rows that a condition on the caller chooses.
        assert_eq!(maker.post("/api/v1/roles", json!({ "name": "trap" })).await.status, 201);
        let body = json!({ "name": "k", "roleId": "trap", "userId": victim_id });
        assert_eq!(maker.post("/api/v1/api-keys", body).await.status, 201);
        let reads = |rows: Value| {
            let mut grant = json!({ "resource": "task", "actions": ["read"] });
            grant.as_object_mut().unwrap().extend(rows.as_object().unwrap().clone());
            json!([grant])
        };
        let own = json!({ "permissions": reads(json!({ "rowPolicy": "own" })) });
        for (name, rows) in [
            ("plain", json!({ "rowPolicy": "own" })),
            ("of users", json!({ "where": { "title": "$user.id" } })),
            ("of keys", json!({ "where": { "title": "$key.id" } })),
        ] {
            let given = json!({ "permissions": reads(rows) });
            maker.patch("/api/v1/roles/trap", given.clone()).await.expect_error(403, "forbidden");
            // Without such a key, they may give the grant.
            let made = maker.post("/api/v1/roles", json!({ "name": name, "permissions": given["permissions"] })).await;
            assert_eq!(made.status, 201, "{name}: {}", made.text);
        }
        // A caller who has the right to all rows may also give it.
        assert_eq!(admin.patch("/api/v1/roles/trap", own).await.status, 200);
        assert_eq!(victim.get("/api/v1/data/task").await.status, 200);

        // Only callers who may read roles can find out which roles exist and which rights they give.
        let refused = |name: &'static str| maker.post("/api/v1/api-keys", json!({ "name": "k", "roleId": name }));
        assert_eq!(refused("admin").await.expect_error(403, "forbidden"), refused("nothing").await.expect_error(403, "forbidden"));
    }

    async fn text_with_a_nul_is_refused_alike(server: Server) {
        let admin = server.admin().await;
        for path in ["/api/v1/users/%00", "/api/v1/roles/a%00b", "/api/v1/tasks/%00", "/api/v1/users?search=%00"] {
            admin.get(path).await.expect_error(400, "invalid_request");
        }
        let nul = "a\u{0}b";
        for (path, body) in [
            ("/api/v1/roles", json!({ "name": "x", "description": nul })),
            ("/api/v1/api-keys", json!({ "name": "k", "roleId": nul })),
            ("/api/v1/api-keys", json!({ "name": "k", "roleId": "admin", "userId": nul })),
        ] {
            admin.post(path, body).await.expect_error(400, "invalid_request");
        }
        let refused = admin.post("/api/auth/revoke-session", json!({ "id": nul })).await;
        assert_eq!((refused.status, &refused.json()["code"]), (400, &json!("VALIDATION_ERROR")));
        assert_eq!(admin.post("/api/v1/roles", json!({ "name": "x", "description": "a\\u0000b" })).await.status, 201);
    }

    async fn nobody_learns_which_actions_there_are(server: Server) {
        let admin = server.admin().await;
        admin.make_task_object().await;
        assert_eq!(admin.install("", blockbase_tests::example_block("tasks").await).await.status, 201);
        let (ann, _) = user(&admin, "ann", None).await;
        let call = async |who: Option<&Admin<'_>>, path: &str| {
            let path = format!("/api/v1/blocks/{path}");
            match who {
                Some(who) => who.post(&path, json!({ "id": 5 })).await,
                None => server.call("POST", &path, Some(json!({ "id": 5 }))).await,
            }
        };
        for missing in ["tasks/actions/nothing", "nothing/actions/complete"] {
            let there = call(Some(&ann), "tasks/actions/complete").await;
            assert_eq!(there.expect_error(403, "forbidden"), call(Some(&ann), missing).await.expect_error(403, "forbidden"));
            let there = call(None, "tasks/actions/complete").await;
            assert_eq!(there.expect_error(401, "unauthorized"), call(None, missing).await.expect_error(401, "unauthorized"));
            call(Some(&admin), missing).await.expect_error(404, "not_found");
        }
        call(Some(&admin), "tasks/actions/complete").await.expect_error(400, "validation_failed");
        // A grant for own rows has no effect on a resource without rows.
        role(&admin, "caller", json!([{ "resource": "blocks", "actions": ["manage"], "rowPolicy": "own" }])).await;
        let (bob, _) = user(&admin, "bob", Some("caller")).await;
        call(Some(&bob), "tasks/actions/complete").await.expect_error(403, "forbidden");
        bob.get("/api/v1/blocks").await.expect_error(403, "forbidden");
    }

    async fn there_are_so_many_roles_and_a_user_has_so_many_of_them(server: Server) {
        let admin = server.admin().await;
        let (_, ann_id) = user(&admin, "ann", None).await;
        // Three roles exist from the start.
        server
            .sql(
                "INSERT INTO svc_roles (id, name, description, permissions, created_at, updated_at) \
                 WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 996) \
                 SELECT 'made-' || i, 'made ' || i, NULL, '[]', 0, 0 FROM n",
            )
            .await;
        role(&admin, "the last one", json!([])).await;
        let refused = admin.post("/api/v1/roles", json!({ "name": "one more" })).await.expect_error(409, "conflict");
        assert!(refused["message"].as_str().unwrap().contains("Delete one"), "{refused}");
        assert_eq!(admin.get("/api/v1/roles").await.data().as_array().unwrap().len(), 1000);
        assert_eq!(admin.delete("/api/v1/roles/made-996").await.status, 204);
        role(&admin, "one more", json!([])).await;

        server
            .sql(&format!(
                "INSERT INTO svc_user_roles (user_id, role_id) SELECT '{ann_id}', id FROM svc_roles WHERE name LIKE 'made %' \
                 ORDER BY id LIMIT 99"
            ))
            .await;
        let give = async |role: &str| admin.post(&format!("/api/v1/users/{ann_id}/roles"), json!({ "roleId": role })).await;
        assert_eq!(give("the last one").await.status, 200);
        let refused = give("one more").await.expect_error(409, "conflict");
        assert!(refused["message"].as_str().unwrap().contains("Take one"), "{refused}");
        // Giving a role that they already have changes nothing.
        assert_eq!(give("the last one").await.status, 200);
        assert_eq!(admin.delete(&format!("/api/v1/users/{ann_id}/roles/made-1")).await.status, 204);
        assert_eq!(give("one more").await.status, 200);
    }

    async fn a_user_has_so_many_keys_and_all_of_them_can_go_at_once(server: Server) {
        let admin = server.admin().await;
        let many = role(&admin, "many", json!([{ "resource": "task", "actions": ["read"] }])).await;
        role(&admin, "other", json!([])).await;
        let (_, ann_id) = user(&admin, "ann", None).await;
        server
            .sql(&format!(
                "INSERT INTO svc_api_keys (id, name, prefix, key_hash, user_id, role_id, created_at, made_by_user) \
                 WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 999) \
                 SELECT 'key-' || i, 'k', 'svc_', 'hash-' || i, '{ann_id}', '{many}', 0, '{ann_id}' FROM n"
            ))
            .await;
        let of_ann = json!({ "name": "k", "roleId": "many", "userId": ann_id });
        let (_, last) = key(&admin, of_ann.clone()).await;
        let refused = admin.post("/api/v1/api-keys", of_ann.clone()).await.expect_error(409, "conflict");
        assert!(refused["message"].as_str().unwrap().contains("Delete one"), "{refused}");
        // The limit counts for each maker.
        let (_, first_made) = key(&admin, json!({ "name": "by the first", "roleId": "other" })).await;
        let (_, last_made) = key(&admin, json!({ "name": "by the last", "roleId": "other" })).await;
        assert_eq!(admin.delete(&format!("/api/v1/api-keys/{}", last["id"].as_str().unwrap())).await.status, 204);
        key(&admin, of_ann).await;

        for (made, maker) in [(&first_made, "key-1"), (&last_made, "key-999")] {
            let id = made["id"].as_str().unwrap();
            server.sql(&format!("UPDATE svc_api_keys SET made_by_user = '{ann_id}', made_by_key = '{maker}' WHERE id = '{id}'")).await;
        }
        assert_eq!(admin.delete("/api/v1/roles/many").await.status, 204);
        let left = admin.get("/api/v1/api-keys").await.data();
        let left: Vec<_> = left.as_array().unwrap().iter().map(|key| (&key["id"], &key["suspended"]["reason"])).collect();
        let gone = json!("key_gone");
        assert_eq!(left, [(&last_made["id"], &gone), (&first_made["id"], &gone)]);
        let events = server.sql("SELECT COUNT(*) FROM svc_events WHERE topic = 'api_keys.suspended'").await;
        assert_eq!(events, [["2"]]);
        let events = server.sql("SELECT COUNT(*) FROM svc_events WHERE topic = 'auth.key.deleted'").await;
        assert_eq!(events, [["1001"]]);
    }
}

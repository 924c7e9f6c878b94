//! Guests: turned off and on, their rights, and how they become users.

use blockbase_tests::{Admin, Answer, Engine, Receiver, Server, ServerBuilder, on_both_engines, until};
use futures_util::future::join_all;
use serde_json::{Value, json};

use crate::events::webhooks::{ledger_until, make, quick};

async fn server_with_guests(engine: Engine) -> Server {
    ServerBuilder::new(engine).env("SVC_ANONYMOUS_AUTH", "true").start().await
}

async fn guest(server: &Server) -> (String, Value) {
    let answer = server.call("POST", "/api/auth/sign-in/anonymous", None).await;
    assert_eq!(answer.status, 200, "{}", answer.text);
    let body = answer.json();
    (body["token"].as_str().unwrap().to_owned(), body["user"].clone())
}

async fn upgrade(server: &Server, token: &str, email: &str) -> Answer {
    let body = json!({ "name": "Ann", "email": email, "password": "correct horse battery" });
    server.send(server.request("POST", "/api/auth/sign-up/email").bearer_auth(token).json(&body)).await
}

/// Gives guests a right to tasks by the role `anonymous`.
async fn let_guests_write(admin: &Admin<'_>) {
    let grants = json!([{ "resource": "task", "actions": ["manage"], "rowPolicy": "own" }]);
    assert_eq!(admin.patch("/api/v1/roles/anonymous", json!({ "permissions": grants })).await.status, 200);
}

on_both_engines! {
    async fn guests_are_off_unless_they_are_asked_for(engine: Engine) {
        let server = ServerBuilder::new(engine).start().await;
        server.call("POST", "/api/auth/sign-in/anonymous", None).await.expect_error(404, "not_found");
        let admin = server.admin().await;
        let names = async || {
            let tasks = admin.get("/api/v1/tasks").await.data();
            tasks.as_array().unwrap().iter().map(|task| task["name"].clone()).collect::<Vec<_>>()
        };
        assert_eq!(names().await, ["event-retention", "audit-retention"]);
    }

    async fn a_guest_is_somebody_who_may_do_nothing(engine: Engine) {
        let server = server_with_guests(engine).await;
        let (token, user) = guest(&server).await;
        let id = user["id"].as_str().unwrap();
        assert_eq!((&user["name"], &user["isAnonymous"]), (&json!("Anonymous"), &json!(true)));
        assert_eq!(user["email"], format!("temp-{id}@127.0.0.1"));
        // A server with only guests still waits for its first admin.
        let admin = server.admin().await;
        assert_eq!(admin.get("/api/v1/me").await.json()["roles"], json!(["admin"]));
        admin.make_task_object().await;
        let guest_caller = server.with_token(token.clone());
        let me = guest_caller.get("/api/v1/me").await.json();
        assert_eq!((&me["roles"], &me["user"]["isAnonymous"]), (&json!(["anonymous"]), &json!(true)));
        guest_caller.get("/api/v1/data/task").await.expect_error(403, "forbidden");
        guest_caller.post("/api/v1/data/task", json!({ "title": "x" })).await.expect_error(403, "forbidden");
        let again = server.send(server.request("POST", "/api/auth/sign-in/anonymous").bearer_auth(&token)).await;
        assert_eq!((again.status, &again.json()["code"]), (400, &json!("ANONYMOUS_USERS_CANNOT_SIGN_IN_AGAIN_ANONYMOUSLY")));
        let change = json!({ "currentPassword": "x", "newPassword": "long enough, that" });
        let change = guest_caller.post("/api/auth/change-password", change).await;
        assert_eq!((change.status, &change.json()["code"]), (400, &json!("CREDENTIAL_ACCOUNT_NOT_FOUND")));
        // Nobody can sign in with the placeholder address.
        let body = json!({ "email": user["email"], "password": "Anonymous" });
        assert_eq!(server.call("POST", "/api/auth/sign-in/email", Some(body)).await.status, 401);
    }

    async fn a_guest_who_signs_up_keeps_what_is_theirs(engine: Engine) {
        let server = ServerBuilder::new(engine).env("SVC_ANONYMOUS_AUTH", "true").env("SVC_SIGNUP_ROLE", "member").start().await;
        let admin = server.admin().await;
        admin.make_task_object().await;
        let_guests_write(&admin).await;
        let all = json!([{ "resource": "task", "actions": ["manage"], "rowPolicy": "own" }]);
        for name in ["member", "writer"] {
            assert_eq!(admin.post("/api/v1/roles", json!({ "name": name, "permissions": all })).await.status, 201);
        }
        let (token, user) = guest(&server).await;
        let guest_id = user["id"].as_str().unwrap().to_owned();
        assert_eq!(admin.post(&format!("/api/v1/users/{guest_id}/roles"), json!({ "roleId": "writer" })).await.status, 200);
        let key = admin.post("/api/v1/api-keys", json!({ "name": "k", "roleId": "writer", "userId": guest_id })).await.json();
        let guest_caller = server.with_token(token.clone());
        let mine = guest_caller.make("task", json!({ "title": "mine" })).await;
        let other = admin.make("task", json!({ "title": "not mine" })).await;
        let by_key = server.with_token(key["key"].as_str().unwrap().to_owned());
        by_key.make("task", json!({ "title": "by the key" })).await;

        // A failed sign-up changes nothing.
        let taken = upgrade(&server, &token, "admin@example.com").await;
        assert_eq!((taken.status, &taken.json()["code"]), (422, &json!("USER_ALREADY_EXISTS_USE_ANOTHER_EMAIL")));
        assert_eq!(guest_caller.get("/api/v1/me").await.json()["userId"], guest_id);
        assert_eq!(guest_caller.get(&format!("/api/v1/data/task/{mine}")).await.status, 200);

        let before: Vec<_> = server.sql("SELECT topic, payload FROM svc_events ORDER BY seq").await;
        let answer = upgrade(&server, &token, "ann@example.com").await;
        assert_eq!(answer.status, 200, "{}", answer.text);
        let ann = server.with_token(answer.json()["token"].as_str().unwrap().to_owned());
        let me = ann.get("/api/v1/me").await.json();
        let ann_id = me["userId"].as_str().unwrap().to_owned();
        assert_ne!(ann_id, guest_id);
        // They have only the roles that were given to them: not the role of guests, and not the role of sign-ups.
        assert_eq!((&me["roles"], &me["user"]["isAnonymous"]), (&json!(["writer"]), &json!(false)));
        let record = ann.get(&format!("/api/v1/data/task/{mine}")).await.data();
        assert_eq!((&record["created_by"], record["created_at"] == record["updated_at"]), (&json!(ann_id), true));
        assert_eq!(ann.get("/api/v1/data/task").await.json()["pagination"]["totalCount"], 2);
        assert_eq!(ann.get(&format!("/api/v1/data/task/{other}")).await.status, 404);
        // The key is kept, and acts as the new user.
        let of_key = by_key.get("/api/v1/me").await.json();
        assert_eq!((&of_key["userId"], &of_key["roles"]), (&json!(ann_id), &json!(["writer"])));
        // The guest no longer exists, and the token is invalid.
        assert_eq!(guest_caller.get("/api/v1/me").await.json(), json!({ "authenticated": false }));
        guest_caller.get("/api/v1/data/task").await.expect_error(401, "unauthorized");
        assert_eq!(admin.get(&format!("/api/v1/users/{guest_id}")).await.status, 404);
        let rows = server.sql(&format!("SELECT id FROM svc_sessions WHERE user_id = '{guest_id}'")).await;
        assert!(rows.is_empty(), "{rows:?}");
        // Published events stay as they were, and a new event reports the upgrade.
        let after: Vec<_> = server.sql("SELECT topic, payload FROM svc_events ORDER BY seq").await;
        assert_eq!(after[..before.len()], before[..]);
        let upgraded = after.iter().find(|row| row[0] == "auth.user.upgraded").expect("an event");
        let payload: Value = serde_json::from_str(&upgraded[1]).unwrap();
        assert_eq!((&payload["userId"], &payload["guestId"]), (&json!(ann_id), &json!(guest_id)));
        assert!(!after.iter().any(|row| row[1].contains("password") || row[1].contains(&token)), "{after:?}");
    }

    async fn a_guest_takes_along_more_records_than_one_transaction_changes(engine: Engine) {
        let server = server_with_guests(engine).await;
        let admin = server.admin().await;
        admin.make_task_object().await;
        let_guests_write(&admin).await;
        let (token, user) = guest(&server).await;
        let guest_id = user["id"].as_str().unwrap().to_owned();
        for count in [1000, 300] {
            let records: Vec<Value> = (0..count).map(|number| json!({ "title": format!("task {number}") })).collect();
            let answer = server.with_token(token.clone()).post("/api/v1/data/task/bulk", json!({ "data": records })).await;
            assert_eq!(answer.status, 201, "{}", answer.text);
        }
        let answer = upgrade(&server, &token, "ann@example.com").await;
        assert_eq!(answer.status, 200, "{}", answer.text);
        let ann_id = answer.json()["user"]["id"].as_str().unwrap().to_owned();
        let total = async |owner: &str| {
            let listed = admin.get(&format!("/api/v1/data/task?limit=1&created_by={owner}")).await.json();
            listed["pagination"]["totalCount"].as_u64().unwrap()
        };
        assert_eq!((total(&guest_id).await, total(&ann_id).await), (0, 1300));
        assert!(server.sql("SELECT guest_id FROM svc_carry_overs").await.is_empty());
    }

    async fn an_upgrade_that_an_end_interrupted_goes_on(engine: Engine) {
        let server = server_with_guests(engine).await;
        let admin = server.admin().await;
        admin.make_task_object().await;
        let admin_token = admin.token.clone();
        let ann_id = server.with_token(server.sign_up("ann").await).get("/api/v1/me").await.json()["userId"].as_str().unwrap().to_owned();
        let guest_id = "01a20e92-fdf9-70dc-ad10-7dbc11f5f4fa";
        // The state after a crash in the middle: a deleted guest's records, and the note that names their new owner.
        let interrupt = async |server: &Server| {
            let admin = server.with_token(admin_token.clone());
            let mine = admin.make("task", json!({ "title": "of a guest" })).await;
            server.sql(&format!("UPDATE task SET created_by = '{guest_id}', updated_by = '{guest_id}' WHERE id = '{mine}'")).await;
            server.sql(&format!("INSERT INTO svc_carry_overs (guest_id, user_id) VALUES ('{guest_id}', '{ann_id}')")).await;
        };
        interrupt(&server).await;
        let server = server.restart().await;
        let admin = server.with_token(admin_token.clone());
        let total = async |owner: &str| {
            let listed = admin.get(&format!("/api/v1/data/task?created_by={owner}&updated_by={owner}")).await.json();
            listed["pagination"]["totalCount"].as_u64().unwrap()
        };
        until("the record is the user's", async || total(&ann_id).await == 1).await;
        until("that is forgotten", async || server.sql("SELECT guest_id FROM svc_carry_overs").await.is_empty()).await;
        // An erasure also deletes records that a deleted guest made.
        interrupt(&server).await;
        let config = json!({ "userId": ann_id, "records": "delete" });
        let body = json!({ "name": "erase", "type": "erase_user", "schedule": "0 4 1 1 *", "config": config });
        let task = admin.post("/api/v1/tasks", body).await.data();
        let run = admin.post(&format!("/api/v1/tasks/{}/run", task["id"].as_str().unwrap()), json!({})).await;
        let run = run.data();
        assert_eq!((&run["status"], &run["result"]["recordsDeleted"]), (&json!("succeeded"), &json!(2)), "{run}");
    }

    async fn a_guest_who_signs_in_hands_over_to_the_user(engine: Engine) {
        let server = server_with_guests(engine).await;
        let admin = server.admin().await;
        admin.make_task_object().await;
        let_guests_write(&admin).await;
        let ann_token = server.sign_up("ann").await;
        let ann_id = server.with_token(ann_token).get("/api/v1/me").await.json()["userId"].clone();
        let (token, _) = guest(&server).await;
        let made = server.with_token(token.clone()).make("task", json!({ "title": "mine" })).await;
        let sign_in = |password: &str| {
            let body = json!({ "email": "ann@example.com", "password": password });
            server.request("POST", "/api/auth/sign-in/email").bearer_auth(&token).json(&body)
        };
        assert_eq!(server.send(sign_in("something else")).await.status, 401);
        assert_eq!(server.with_token(token.clone()).get("/api/v1/me").await.json()["authenticated"], true);
        assert_eq!(server.send(sign_in("correct horse battery")).await.status, 200);
        assert_eq!(server.with_token(token.clone()).get("/api/v1/me").await.json()["authenticated"], false);
        assert_eq!(admin.get(&format!("/api/v1/data/task/{made}")).await.data()["created_by"], ann_id);
    }

    async fn a_webhook_of_a_guest_goes_on_after_a_sign_up_and_stops_after_a_sign_in(engine: Engine) {
        let server = quick(engine).env("SVC_ANONYMOUS_AUTH", "true").start().await;
        let admin = server.admin().await;
        admin.make_task_object().await;
        for (role, resource, action) in [("anonymous", "webhooks", "create"), ("public", "task", "read")] {
            let grants = json!([{ "resource": resource, "actions": [action] }]);
            assert_eq!(admin.patch(&format!("/api/v1/roles/{role}"), json!({ "permissions": grants })).await.status, 200);
        }
        let sign_in = json!({ "email": "ann@example.com", "password": "correct horse battery" });
        let mut sign_up = sign_in.clone();
        sign_up["name"] = json!("Ann");
        for (path, body) in [("/api/auth/sign-up/email", sign_up), ("/api/auth/sign-in/email", sign_in)] {
            let receiver = Receiver::start().await;
            let (token, _) = guest(&server).await;
            let (id, _) = make(&server.with_token(token.clone()), json!({ "url": receiver.url, "topics": ["data.task.created"] })).await;
            let webhook = format!("/api/v1/webhooks/{id}");
            admin.make("task", json!({ "title": "while a guest" })).await;
            receiver.wait_for(1).await;
            let answer = server.send(server.request("POST", path).bearer_auth(&token).json(&body)).await;
            assert_eq!(answer.status, 200, "{}", answer.text);
            admin.make("task", json!({ "title": "as a user" })).await;
            if path.ends_with("sign-up/email") {
                receiver.wait_for(2).await;
                assert_eq!(admin.get(&webhook).await.data()["suspended"], Value::Null);
                continue;
            }
            // An attacker may have given the guest's session to the person. So the guest's webhook does not act as the account.
            let dead = ledger_until(&admin, &format!("consumer=webhook:{id}&dead=true"), |entries| entries.len() == 1).await;
            assert!(dead[0]["error"].as_str().unwrap().contains("suspended"), "{dead:?}");
            assert_eq!((receiver.count(), &admin.get(&webhook).await.data()["suspended"]["reason"]), (1, &json!("maker_gone")));
            assert_eq!(server.sql("SELECT id FROM svc_events WHERE topic = 'webhooks.suspended'").await.len(), 1);
            assert_eq!(admin.post(&format!("{webhook}/adopt"), json!({})).await.data()["suspended"], Value::Null);
        }
    }

    async fn keys_of_a_guest_move_on_sign_up_and_end_on_sign_in(engine: Engine) {
        let server = server_with_guests(engine).await;
        let admin = server.admin().await;
        admin.make_task_object().await;
        let_guests_write(&admin).await;
        let all = json!([
            { "resource": "task", "actions": ["manage"] },
            { "resource": "api_keys", "actions": ["create"] },
            { "resource": "users", "actions": ["update"] },
        ]);
        assert_eq!(admin.post("/api/v1/roles", json!({ "name": "writer", "permissions": all })).await.status, 201);
        let other = server.with_token(server.sign_up("other").await).get("/api/v1/me").await.json()["userId"].clone();
        // Three keys: one of the guest that an admin made, one that the guest made, and one that the guest made for somebody else.
        let with_keys = async || {
            let (token, user) = guest(&server).await;
            let id = user["id"].as_str().unwrap().to_owned();
            assert_eq!(admin.post(&format!("/api/v1/users/{id}/roles"), json!({ "roleId": "writer" })).await.status, 200);
            let as_guest = server.with_token(token.clone());
            let mut keys = Vec::new();
            for (maker, user) in [(&admin, json!(id)), (&as_guest, json!(id)), (&as_guest, other.clone())] {
                let made = maker.post("/api/v1/api-keys", json!({ "name": "k", "roleId": "writer", "userId": user })).await;
                assert_eq!(made.status, 201, "{}", made.text);
                let key = server.with_token(made.json()["key"].as_str().unwrap().to_owned());
                assert_eq!(key.get("/api/v1/data/task").await.status, 200);
                keys.push((key, made.data()["id"].clone()));
            }
            (token, keys)
        };
        let listed = async |id: &Value| {
            let keys = admin.get("/api/v1/api-keys").await.data();
            keys.as_array().unwrap().iter().find(|key| key["id"] == *id).cloned().unwrap_or_default()
        };

        let (token, keys) = with_keys().await;
        let answer = upgrade(&server, &token, "ann@example.com").await;
        assert_eq!(answer.status, 200, "{}", answer.text);
        let ann_id = answer.json()["user"]["id"].clone();
        for (place, (key, id)) in keys.iter().enumerate() {
            assert_eq!(key.get("/api/v1/data/task").await.status, 200);
            let shown = listed(id).await;
            assert_eq!(shown["userId"], if place == 2 { other.clone() } else { ann_id.clone() });
            assert_eq!((place == 0, &shown["suspended"]), (shown["madeBy"]["userId"] != ann_id, &Value::Null));
        }
        assert_eq!(server.sql("SELECT id FROM svc_events WHERE topic = 'api_keys.suspended'").await.len(), 0);

        // Somebody else may have kept a key of the guest. So the key ends when the guest signs in to an existing account.
        let (token, keys) = with_keys().await;
        let body = json!({ "email": "ann@example.com", "password": "correct horse battery" });
        let answer = server.send(server.request("POST", "/api/auth/sign-in/email").bearer_auth(&token).json(&body)).await;
        assert_eq!(answer.status, 200, "{}", answer.text);
        for (key, id) in &keys[..2] {
            key.get("/api/v1/data/task").await.expect_error(401, "unauthorized");
            assert_eq!(listed(id).await, Value::Null);
        }
        let (key, id) = &keys[2];
        key.get("/api/v1/data/task").await.expect_error(403, "key_suspended");
        assert_eq!(listed(id).await["suspended"]["reason"], "maker_gone");
        let mut deleted = server.sql("SELECT payload FROM svc_events WHERE topic = 'auth.key.deleted'").await;
        deleted.retain(|row| keys[..2].iter().any(|(_, id)| row[0].contains(id.as_str().unwrap())));
        assert_eq!(deleted.len(), 2);

        // If guests delete their account, the server suspends their things without asking.
        let (token, keys) = with_keys().await;
        assert_eq!(server.send(server.request("POST", "/api/auth/delete-anonymous-user").bearer_auth(&token)).await.status, 200);
        keys[1].0.get("/api/v1/data/task").await.expect_error(401, "unauthorized");
        keys[2].0.get("/api/v1/data/task").await.expect_error(403, "key_suspended");
    }

    async fn a_closed_sign_up_is_closed_for_guests_too(engine: Engine) {
        let server = ServerBuilder::new(engine)
            .env("SVC_ANONYMOUS_AUTH", "true")
            .env("SVC_DISABLE_SIGNUP", "true")
            .start()
            .await;
        let (token, _) = guest(&server).await;
        // Sign-up is open until the first admin exists.
        server.admin().await;
        let answer = upgrade(&server, &token, "ann@example.com").await;
        assert_eq!((answer.status, &answer.json()["code"]), (400, &json!("EMAIL_PASSWORD_SIGN_UP_DISABLED")));
        assert_eq!(server.with_token(token).get("/api/v1/me").await.json()["authenticated"], true);
    }

    async fn of_many_upgrades_one_carries_the_rows_over(engine: Engine) {
        let server = server_with_guests(engine).await;
        let admin = server.admin().await;
        admin.make_task_object().await;
        let_guests_write(&admin).await;
        // On Postgres, two instances take turns with the requests.
        let other = match engine {
            Engine::Sqlite => None,
            Engine::Postgres => Some(server.builder().start().await),
        };
        let (token, _) = guest(&server).await;
        let guest_caller = server.with_token(token.clone());
        for number in 0..5 {
            guest_caller.make("task", json!({ "title": format!("task {number}") })).await;
        }
        let emails: Vec<String> = (0..100).map(|number| format!("ann{number}@example.com")).collect();
        // The guest writes meanwhile.
        let writing = async {
            let mut made = 5;
            loop {
                let answer = guest_caller.post("/api/v1/data/task", json!({ "title": "late" })).await;
                match answer.status {
                    201 => made += 1,
                    401 => break made,
                    status => panic!("{status} {}", answer.text),
                }
            }
        };
        let upgrades = join_all(emails.iter().enumerate().map(|(number, email)| {
            let server = other.as_ref().filter(|_| number % 2 == 1).unwrap_or(&server);
            upgrade(server, &token, email)
        }));
        let (made, answers) = tokio::join!(writing, upgrades);
        let mut owners = Vec::new();
        for answer in &answers {
            assert_eq!(answer.status, 200, "{}", answer.text);
            owners.push(answer.json()["user"]["id"].as_str().unwrap().to_owned());
        }
        let rows = server.sql("SELECT created_by, count(*) FROM task GROUP BY created_by").await;
        assert_eq!(rows.len(), 1, "{rows:?}");
        assert!(owners.contains(&rows[0][0]), "{rows:?}");
        assert_eq!(rows[0][1], made.to_string());
        let upgraded = server.sql("SELECT id FROM svc_events WHERE topic = 'auth.user.upgraded'").await;
        assert_eq!(upgraded.len(), 1);
    }

    async fn a_guest_can_leave(engine: Engine) {
        let server = server_with_guests(engine).await;
        let (token, user) = guest(&server).await;
        let answer = server.send(server.request("POST", "/api/auth/delete-anonymous-user").bearer_auth(&token)).await;
        assert_eq!((answer.status, answer.json()), (200, json!({ "success": true })));
        assert!(answer.headers["set-cookie"].to_str().unwrap().contains("Max-Age=0"));
        assert_eq!(server.with_token(token).get("/api/v1/me").await.json()["authenticated"], false);
        let admin = server.admin().await;
        assert_eq!(admin.get(&format!("/api/v1/users/{}", user["id"].as_str().unwrap())).await.status, 404);
        let refused = admin.post("/api/auth/delete-anonymous-user", json!({})).await;
        assert_eq!((refused.status, &refused.json()["code"]), (403, &json!("USER_IS_NOT_ANONYMOUS")));
    }

    async fn old_guests_are_cleaned_up(engine: Engine) {
        let server = server_with_guests(engine).await;
        let admin = server.admin().await;
        let task = admin.get("/api/v1/tasks/anonymous-user-cleanup").await.data();
        assert_eq!(
            (&task["type"], &task["enabled"], &task["schedule"], &task["config"], task["nextRunAt"].is_string()),
            (&json!("anonymous_cleanup"), &json!(true), &json!("0 3 * * *"), &json!({ "maxAgeDays": 30 }), true)
        );
        let (old_token, old) = guest(&server).await;
        let (young_token, _) = guest(&server).await;
        let month = 31_i64 * 24 * 3_600_000;
        let id = old["id"].as_str().unwrap();
        server.sql(&format!("UPDATE svc_users SET created_at = created_at - {month} WHERE id = '{id}'")).await;
        server.sql(&format!("UPDATE svc_users SET created_at = created_at - {month} WHERE email = 'admin@example.com'")).await;
        let run = admin.post("/api/v1/tasks/anonymous-user-cleanup/run", json!({})).await.data();
        assert_eq!((&run["status"], &run["result"], &run["trigger"]), (&json!("succeeded"), &json!({ "deleted": 1 }), &json!("manual")));
        assert_eq!(server.with_token(old_token).get("/api/v1/me").await.json()["authenticated"], false);
        assert_eq!(server.with_token(young_token.clone()).get("/api/v1/me").await.json()["authenticated"], true);
        assert_eq!(admin.get("/api/v1/me").await.json()["authenticated"], true);
        assert!(server.sql(&format!("SELECT role_id FROM svc_user_roles WHERE user_id = '{id}'")).await.is_empty());
        let tune = json!({ "config": { "maxAgeDays": 1 } });
        assert_eq!(admin.patch("/api/v1/tasks/anonymous-user-cleanup", tune).await.data()["config"]["maxAgeDays"], 1);
        let day = 25_i64 * 3_600_000;
        server.sql(&format!("UPDATE svc_users SET created_at = created_at - {day} WHERE is_anonymous")).await;
        let run = admin.post("/api/v1/tasks/anonymous-user-cleanup/run", json!({})).await.data();
        assert_eq!(run["result"], json!({ "deleted": 1 }));
        assert_eq!(server.with_token(young_token).get("/api/v1/me").await.json()["authenticated"], false);
        let deleted = server.sql("SELECT id FROM svc_events WHERE topic = 'auth.user.deleted'").await;
        assert_eq!(deleted.len(), 2);
    }

    async fn a_kill_amid_upgrades_leaves_each_guest_whole_or_carried_over(engine: Engine) {
        let mut server = server_with_guests(engine).await;
        let admin_token = {
            let admin = server.admin().await;
            admin.make_task_object().await;
            let_guests_write(&admin).await;
            admin.token
        };
        let mut guests = Vec::new();
        for number in 0..30 {
            let (token, user) = guest(&server).await;
            for title in ["one", "two"] {
                server.with_token(token.clone()).make("task", json!({ "title": title })).await;
            }
            guests.push((token, user["id"].as_str().unwrap().to_owned(), format!("user{number}@example.com")));
        }
        // The process is killed during upgrades. Upgrades that were answered count.
        let (base, client) = (server.base.clone(), blockbase_tests::http_client());
        let upgrades: Vec<_> = guests
            .iter()
            .map(|(token, _, email)| {
                let body = json!({ "name": "x", "email": email, "password": "correct horse battery" });
                let request = client.post(format!("{base}/api/auth/sign-up/email")).bearer_auth(token).json(&body).send();
                tokio::spawn(async move { request.await.is_ok_and(|answer| answer.status() == 200) })
            })
            .collect();
        // In this time, about a third of them finish: a hash takes some hundredths of a second on each core.
        tokio::time::sleep(std::time::Duration::from_millis(250)).await;
        server.kill();
        let mut answered = Vec::new();
        for upgrade in upgrades {
            answered.push(upgrade.await.unwrap());
        }
        let server = server.builder().start().await;
        let admin = server.with_token(admin_token);
        for ((token, guest_id, email), answered) in guests.iter().zip(answered) {
            let users = server.sql(&format!("SELECT id FROM svc_users WHERE email = '{email}'")).await;
            assert!(!answered || users.len() == 1, "an upgrade that was answered is lost");
            let is_guest = server.with_token(token.clone()).get("/api/v1/me").await.json()["authenticated"] == true;
            // The owner is the guest or the user, and both records belong to them.
            assert_eq!(is_guest, users.is_empty());
            let owner = users.first().map_or(guest_id, |user| &user[0]);
            let total = admin.get(&format!("/api/v1/data/task?created_by={owner}")).await.json()["pagination"]["totalCount"].clone();
            assert_eq!(total, 2, "{email}");
        }
        assert_eq!(admin.get("/api/v1/data/task").await.json()["pagination"]["totalCount"], 60);
        // No user is without a credential.
        let orphans = server.sql("SELECT id FROM svc_users u WHERE NOT is_anonymous AND NOT EXISTS (SELECT 1 FROM svc_credentials c WHERE c.user_id = u.id)").await;
        assert!(orphans.is_empty());
    }
}

/// The number of statements of this database that wait for a lock.
const LOCKED: &str =
    "SELECT count(*)::text FROM pg_stat_activity WHERE datname = current_database() AND wait_event_type = 'Lock'";

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_step_that_meets_a_deletion_carries_the_rest_over() {
    let server = server_with_guests(Engine::Postgres).await;
    let admin = server.admin().await;
    admin.make_task_object().await;
    let ann_id =
        server.with_token(server.sign_up("ann").await).get("/api/v1/me").await.json()["userId"].as_str().unwrap().to_owned();
    let guest_id = "01a20e92-fdf9-70dc-ad10-7dbc11f5f4fa";
    // A step takes 500 records. In any case some of these are deleted, and other records remain for a later step.
    for title in ["goes", "stays"] {
        let answer = admin.post("/api/v1/data/task/bulk", json!({ "data": vec![json!({ "title": title }); 600] })).await;
        assert_eq!(answer.status, 201, "{}", answer.text);
    }
    server.sql(&format!("UPDATE task SET created_by = '{guest_id}', updated_by = '{guest_id}'")).await;
    let deletion = server.lock_rows("DELETE FROM task WHERE title = 'goes'").await;
    server.sql(&format!("INSERT INTO svc_carry_overs (guest_id, user_id) VALUES ('{guest_id}', '{ann_id}')")).await;
    // When the server starts, it continues upgrades that were interrupted.
    let token = admin.token.clone();
    let server = server.restart().await;
    until("the step waits for the deletion", async || server.sql(LOCKED).await[0][0] != "0").await;
    deletion.release().await;
    until("it is over", async || server.sql("SELECT guest_id FROM svc_carry_overs").await.is_empty()).await;
    let admin = server.with_token(token);
    let total = async |owner: &str| {
        let listed = admin.get(&format!("/api/v1/data/task?limit=1&created_by={owner}&updated_by={owner}")).await.json();
        listed["pagination"]["totalCount"].as_u64().unwrap()
    };
    assert_eq!((total(guest_id).await, total(&ann_id).await), (0, 600));
}

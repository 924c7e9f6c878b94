//! Rights are checked when they are used: keys have the rights that their makers have now, and nobody can change a stronger user.

use blockbase_tests::{Admin, Answer, Server, on_both_engines};
use futures_util::future::join_all;
use serde_json::{Value, json};

use crate::accounts::roles::{key, role, user, within_five_seconds};

const TASKS: &str = "/api/v1/data/task";

async fn id_of(caller: &Admin<'_>) -> String {
    caller.get("/api/v1/me").await.json()["userId"].as_str().unwrap().to_owned()
}

/// A second admin, who can be demoted.
async fn second_admin<'a>(admin: &Admin<'a>) -> (Admin<'a>, String) {
    user(admin, "second", Some("admin")).await
}

async fn take(admin: &Admin<'_>, user: &str, role: &str) {
    let taken = admin.delete(&format!("/api/v1/users/{user}/roles/{role}")).await;
    assert_eq!(taken.status, 204, "{}", taken.text);
}

async fn give(admin: &Admin<'_>, user: &str, role: &str) {
    let given = admin.post(&format!("/api/v1/users/{user}/roles"), json!({ "roleId": role })).await;
    assert_eq!(given.status, 200, "{}", given.text);
}

async fn ban(admin: &Admin<'_>, user: &str, banned: bool) {
    let changed = admin.patch(&format!("/api/v1/users/{user}"), json!({ "banned": banned })).await;
    assert_eq!(changed.status, 200, "{}", changed.text);
}

/// The key's entry in the list. Null if the list does not have the key.
async fn listed(admin: &Admin<'_>, id: &Value) -> Value {
    let keys = admin.get("/api/v1/api-keys").await.data();
    keys.as_array().unwrap().iter().find(|key| key["id"] == *id).cloned().unwrap_or_default()
}

/// Payloads of a topic's events, the oldest first.
async fn events(server: &Server, topic: &str) -> Vec<Value> {
    let rows = server.sql(&format!("SELECT payload FROM svc_events WHERE topic = '{topic}' ORDER BY seq")).await;
    rows.iter().map(|row| serde_json::from_str(&row[0]).unwrap()).collect()
}

async fn new_task(caller: &Admin<'_>) -> Answer {
    caller.post(TASKS, json!({ "title": "x" })).await
}

async fn adopt(caller: &Admin<'_>, key: &Value) -> Answer {
    caller.post(&format!("/api/v1/api-keys/{}/adopt", key["id"].as_str().unwrap()), Value::Null).await
}

on_both_engines! {
    async fn a_key_does_what_its_maker_may_do_now(server: Server) {
        let admin = server.admin().await;
        admin.make_task_object().await;
        role(&admin, "reader", json!([{ "resource": "task", "actions": ["read"] }, { "resource": "data", "actions": ["read"] }])).await;
        let (maker, maker_id) = second_admin(&admin).await;
        let (_, ann_id) = user(&admin, "ann", Some("reader")).await;
        let (own, own_row) = key(&maker, json!({ "name": "own", "roleId": "admin" })).await;
        let (of_ann, row) = key(&maker, json!({ "name": "of ann", "roleId": "admin", "userId": ann_id })).await;
        assert_eq!((&own_row["madeBy"], &row["madeBy"], &row["suspended"]), (&json!({ "userId": maker_id, "apiKeyId": null }), &own_row["madeBy"], &Value::Null));
        for by_key in [&own, &of_ann] {
            assert_eq!(new_task(by_key).await.status, 201);
            assert_eq!(by_key.get("/api/v1/roles").await.status, 200);
        }

        // A demotion limits the keys at once on every surface, but it does not suspend anything.
        give(&admin, &maker_id, "reader").await;
        take(&admin, &maker_id, "admin").await;
        for by_key in [&own, &of_ann] {
            assert_eq!(by_key.get(TASKS).await.status, 200);
            new_task(by_key).await.expect_error(403, "forbidden");
            by_key.get("/api/v1/roles").await.expect_error(403, "forbidden");
            by_key.post("/api/v1/api-keys", json!({ "name": "k", "roleId": "admin" })).await.expect_error(403, "forbidden");
            let mutation = json!({ "query": "mutation { create_task(input: { title: \"x\" }) { id } }" });
            let answer = by_key.post("/api/v1/graphql", mutation).await.json();
            assert_eq!(answer["errors"][0]["extensions"]["code"], "forbidden", "{answer}");
            assert_eq!(by_key.get("/api/v1/me").await.json().get("suspended"), None);
        }
        assert_eq!(listed(&admin, &row["id"]).await["suspended"], Value::Null);
        // If a role of the maker changes, the key's rights change with it.
        assert_eq!(admin.patch("/api/v1/roles/reader", json!({ "permissions": [{ "resource": "task", "actions": ["create"] }] })).await.status, 200);
        of_ann.get(TASKS).await.expect_error(403, "forbidden");
        assert_eq!(new_task(&of_ann).await.status, 201);
        // The maker has the rights of `public` too. The key has those of them that its role also has.
        assert_eq!(admin.patch("/api/v1/roles/public", json!({ "permissions": [{ "resource": "task", "actions": ["read"] }] })).await.status, 200);
        assert_eq!(of_ann.get(TASKS).await.status, 200);
        give(&admin, &maker_id, "admin").await;
        assert_eq!(of_ann.get("/api/v1/roles").await.status, 200);
        assert_eq!(events(&server, "api_keys.suspended").await.len(), 0);
    }

    async fn own_rows_of_a_maker_are_not_those_of_the_keys_user(server: Server) {
        let admin = server.admin().await;
        admin.make_task_object().await;
        let all = json!({ "resource": "task", "actions": ["manage"] });
        let own = json!({ "resource": "task", "actions": ["manage"], "rowPolicy": "own" });
        let makes = json!([{ "resource": "api_keys", "actions": ["manage"] }, { "resource": "users", "actions": ["update"] }]);
        let with = |grant: &Value| [makes.as_array().unwrap().as_slice(), std::slice::from_ref(grant)].concat();
        role(&admin, "maker", json!(with(&all))).await;
        role(&admin, "all", json!([all])).await;
        role(&admin, "own", json!([own])).await;
        let (maker, maker_id) = user(&admin, "maker", Some("maker")).await;
        let (ann, ann_id) = user(&admin, "ann", Some("own")).await;
        let (by_key, _) = key(&maker, json!({ "name": "k", "roleId": "all", "userId": ann_id })).await;
        let (by_own, _) = key(&maker, json!({ "name": "k", "roleId": "own", "userId": ann_id })).await;
        let of_maker = maker.make("task", json!({ "title": "of the maker" })).await;
        let of_ann = ann.make("task", json!({ "title": "of ann" })).await;
        assert_eq!(by_key.get(TASKS).await.json()["pagination"]["totalCount"], 2);
        assert_eq!(by_own.get(TASKS).await.json()["pagination"]["totalCount"], 1);

        assert_eq!(admin.patch("/api/v1/roles/maker", json!({ "permissions": with(&own) })).await.status, 200);
        // Together, the rights of both allow the maker's rows, but not Ann's rows. A new row would belong to Ann.
        let rows = by_key.get(TASKS).await.json();
        assert_eq!((&rows["pagination"]["totalCount"], &rows["data"][0]["id"]), (&json!(1), &json!(of_maker)));
        by_key.patch(&format!("{TASKS}/{of_ann}"), json!({ "title": "x" })).await.expect_error(404, "not_found");
        new_task(&by_key).await.expect_error(403, "forbidden");
        by_key.post(&format!("{TASKS}/bulk"), json!({ "data": [{ "title": "x" }] })).await.expect_error(403, "forbidden");
        // An upsert needs the right to create, also if it would only change the maker's row.
        let same = json!({ "id": of_maker, "title": "x" });
        by_key.post(&format!("{TASKS}?on_conflict=id"), same.clone()).await.expect_error(403, "forbidden");
        assert_eq!(by_key.patch(&format!("{TASKS}/{of_maker}"), json!({ "title": "of the maker" })).await.status, 200);
        let actions = async |key: &Admin<'_>| {
            let held = key.get("/api/v1/me/permissions").await.data()["permissions"].clone();
            let of_tasks = held.as_array().expect("grants").iter().find(|grant| grant["resource"] == "task");
            of_tasks.map_or(Value::Null, |grant| grant["actions"].clone())
        };
        assert_eq!(actions(&by_key).await, json!(["read", "update", "delete"]));
        // A condition of the role changes nothing.
        role(&admin, "some", json!([{ "resource": "task", "actions": ["manage"], "where": { "title": { "neq": "secret" } } }])).await;
        assert_eq!(admin.patch("/api/v1/roles/maker", json!({ "permissions": with(&all) })).await.status, 200);
        let (by_some, _) = key(&maker, json!({ "name": "k", "roleId": "some", "userId": ann_id })).await;
        assert_eq!(new_task(&by_some).await.status, 201);
        assert_eq!(admin.patch("/api/v1/roles/maker", json!({ "permissions": with(&own) })).await.status, 200);
        new_task(&by_some).await.expect_error(403, "forbidden");
        by_some.post(&format!("{TASKS}?on_conflict=id"), same).await.expect_error(403, "forbidden");
        assert_eq!(actions(&by_some).await, json!(["read", "update", "delete"]));
        assert_eq!(by_some.get(TASKS).await.json()["pagination"]["totalCount"], 1);
        // The checks of both grants decide about new records, and not who made them.
        let checked = json!({ "resource": "task", "actions": ["manage"], "rowPolicy": "own", "check": { "title": { "neq": "secret" } } });
        assert_eq!(admin.patch("/api/v1/roles/maker", json!({ "permissions": with(&checked) })).await.status, 200);
        let made = new_task(&by_some).await;
        assert_eq!(made.status, 201, "{}", made.text);
        let made = admin.get(&format!("{TASKS}/{}", made.data()["id"].as_str().unwrap())).await.data();
        assert_eq!(made["created_by"], json!(ann_id));
        assert_eq!(admin.patch("/api/v1/roles/maker", json!({ "permissions": with(&own) })).await.status, 200);
        // No row is both Ann's own row and the maker's own row.
        by_own.get(TASKS).await.expect_error(403, "forbidden");
        new_task(&by_own).await.expect_error(403, "forbidden");
        // A key that acts as its own maker reads and writes the maker's rows.
        let (mine, _) = key(&maker, json!({ "name": "k", "roleId": "own" })).await;
        assert_eq!(new_task(&mine).await.status, 201);
        let rows = mine.get(&format!("{TASKS}?sort=created_at")).await.json();
        assert_eq!((&rows["pagination"]["totalCount"], &rows["data"][0]["created_by"]), (&json!(2), &json!(maker_id)));
    }

    async fn a_key_that_a_key_made_has_the_rights_of_both(server: Server) {
        let admin = server.admin().await;
        admin.make_task_object().await;
        let makes = json!([{ "resource": "api_keys", "actions": ["manage"] }, { "resource": "task", "actions": ["manage"] }]);
        role(&admin, "keymaker", makes.clone()).await;
        role(&admin, "writer", json!([{ "resource": "task", "actions": ["manage"] }])).await;
        let (maker, maker_id) = second_admin(&admin).await;
        let (first, first_row) = key(&maker, json!({ "name": "first", "roleId": "keymaker" })).await;
        let (second, second_row) = key(&first, json!({ "name": "second", "roleId": "keymaker" })).await;
        let (third, third_row) = key(&second, json!({ "name": "third", "roleId": "writer" })).await;
        assert_eq!(second_row["madeBy"], json!({ "userId": maker_id, "apiKeyId": first_row["id"] }));
        assert_eq!(new_task(&third).await.status, 201);
        // The user at the beginning, and each key in between, limit the last key.
        take(&admin, &maker_id, "admin").await;
        new_task(&third).await.expect_error(403, "forbidden");
        give(&admin, &maker_id, "admin").await;
        assert_eq!(new_task(&third).await.status, 201);
        let less = json!([{ "resource": "api_keys", "actions": ["manage"] }, { "resource": "task", "actions": ["read"] }]);
        assert_eq!(admin.patch("/api/v1/roles/keymaker", json!({ "permissions": less })).await.status, 200);
        assert_eq!(third.get(TASKS).await.status, 200);
        new_task(&third).await.expect_error(403, "forbidden");
        assert_eq!(admin.patch("/api/v1/roles/keymaker", json!({ "permissions": makes })).await.status, 200);

        // A key cannot adopt a key that its own rights come from.
        adopt(&third, &first_row).await.expect_error(403, "forbidden");
        let refused = adopt(&second, &first_row).await.expect_error(409, "conflict");
        assert!(refused["message"].as_str().unwrap().contains("has its rights from the key"), "{refused}");
        adopt(&second, &second_row).await.expect_error(409, "conflict");

        // The first key expires. From then on, the keys that it made do not work.
        server.sql(&format!("UPDATE svc_api_keys SET expires_at = 1700000000000 WHERE id = '{}'", first_row["id"].as_str().unwrap())).await;
        within_five_seconds(async || third.get(TASKS).await.status == 403).await;
        within_five_seconds(async || listed(&admin, &third_row["id"]).await["suspended"] != Value::Null).await;
        second.get(TASKS).await.expect_error(403, "key_suspended");
        third.get(TASKS).await.expect_error(403, "key_suspended");
        let suspended = listed(&admin, &second_row["id"]).await["suspended"].clone();
        assert_eq!(suspended, json!({ "reason": "key_expired", "since": "2023-11-14T22:13:20.000Z" }));
        assert_eq!(listed(&admin, &third_row["id"]).await["suspended"]["reason"], "key_suspended");
        // The first key is deleted. The reason changes, the time stays, and there is no second event.
        assert_eq!(admin.delete(&format!("/api/v1/api-keys/{}", first_row["id"].as_str().unwrap())).await.status, 204);
        let later = listed(&admin, &second_row["id"]).await["suspended"].clone();
        assert_eq!(later, json!({ "reason": "key_gone", "since": suspended["since"] }));
        let told: Vec<_> = events(&server, "api_keys.suspended").await.into_iter().map(|event| event["id"].clone()).collect();
        assert_eq!(told, [second_row["id"].clone(), third_row["id"].clone()]);
        // Once the second key is adopted, the keys below it work again.
        assert_eq!(adopt(&admin, &second_row).await.status, 200);
        assert_eq!(new_task(&third).await.status, 201);
        assert_eq!(listed(&admin, &third_row["id"]).await["suspended"], Value::Null);

        // The length of chains is limited.
        let (mut last, mut depth) = (second, 1);
        loop {
            let made = last.post("/api/v1/api-keys", json!({ "name": "deeper", "roleId": "keymaker" })).await;
            if made.status == 409 {
                break;
            }
            assert_eq!(made.status, 201, "{}", made.text);
            last = server.with_token(made.json()["key"].as_str().unwrap().to_owned());
            depth += 1;
            assert!(depth < 20, "no end of the chain");
        }
        let (_, aside) = key(&maker, json!({ "name": "aside", "roleId": "keymaker" })).await;
        let refused = adopt(&last, &aside).await.expect_error(409, "conflict");
        assert!(refused["message"].as_str().unwrap().contains("8 deep at most"), "{refused}");
    }

    async fn a_key_without_a_maker_keeps_its_rights(server: Server) {
        let admin = server.admin().await;
        admin.make_task_object().await;
        let (maker, maker_id) = second_admin(&admin).await;
        let (_, ann_id) = user(&admin, "ann", None).await;
        let (old, row) = key(&maker, json!({ "name": "old", "roleId": "admin", "userId": ann_id })).await;
        // The keys look like keys from before makers were recorded.
        server.sql("UPDATE svc_api_keys SET made_by_user = NULL, made_by_key = NULL").await;
        assert_eq!(admin.delete(&format!("/api/v1/users/{maker_id}")).await.status, 204);
        assert_eq!(new_task(&old).await.status, 201);
        let shown = listed(&admin, &row["id"]).await;
        assert_eq!((&shown["madeBy"], &shown["suspended"]), (&Value::Null, &Value::Null));
        // The caller who adopts a key becomes its maker.
        role(&admin, "keeper", json!([{ "resource": "api_keys", "actions": ["update"] }, { "resource": "users", "actions": ["update"] }])).await;
        let (keeper, _) = user(&admin, "keeper", Some("keeper")).await;
        adopt(&keeper, &row).await.expect_error(403, "forbidden");
        assert_eq!(adopt(&admin, &row).await.data()["madeBy"], json!({ "userId": id_of(&admin).await, "apiKeyId": null }));
        assert_eq!(new_task(&old).await.status, 201);
    }

    async fn a_ban_of_the_maker_suspends_what_they_made(server: Server) {
        let admin = server.admin().await;
        let admin_id = id_of(&admin).await;
        admin.make_task_object().await;
        let (maker, maker_id) = second_admin(&admin).await;
        let (_, ann_id) = user(&admin, "ann", None).await;
        let (by_key, row) = key(&maker, json!({ "name": "k", "roleId": "admin", "userId": ann_id })).await;
        let (own, own_row) = key(&maker, json!({ "name": "own", "roleId": "admin" })).await;
        let (by_by_key, below) = key(&by_key, json!({ "name": "below", "roleId": "admin" })).await;
        assert_eq!(by_by_key.get(TASKS).await.status, 200);
        let mut stream = by_key.request("GET", "/api/v1/events/stream").send().await.unwrap();
        assert_eq!(stream.status(), 200);
        let before = now();
        ban(&admin, &maker_id, true).await;
        for (method, path, body) in [
            ("GET", TASKS, Value::Null),
            ("POST", TASKS, json!({ "title": "x" })),
            ("GET", "/api/v1/openapi.json", Value::Null),
            ("GET", "/api/v1/events/stream", Value::Null),
            ("POST", "/api/v1/graphql", json!({ "query": "{ svc_objects }" })),
            ("POST", "/api/v1/mcp", json!({ "jsonrpc": "2.0", "id": 1, "method": "tools/list" })),
            ("POST", "/api/v1/api-keys", json!({ "name": "k", "roleId": "admin" })),
        ] {
            let request = by_key.request(method, path).header("accept", "application/json, text/event-stream");
            let answer = server.send(if body.is_null() { request } else { request.json(&body) }).await;
            assert_eq!(answer.status, 403, "{method} {path}: {}", answer.text);
            assert!(answer.text.contains("key_suspended"), "{method} {path}: {}", answer.text);
        }
        let me = by_key.get("/api/v1/me").await.json();
        assert_eq!((&me["authenticated"], &me["userId"], &me["apiKeyId"], &me["suspended"]), (&json!(true), &json!(ann_id), &row["id"], &json!(true)));
        by_by_key.get(TASKS).await.expect_error(403, "key_suspended");
        // A key that acts as the banned user is no longer valid.
        own.get(TASKS).await.expect_error(401, "unauthorized");
        // An open stream ends.
        let end = async { while stream.chunk().await.unwrap().is_some() {} };
        tokio::time::timeout(std::time::Duration::from_secs(5), end).await.expect("an end of the stream");

        let suspended = listed(&admin, &row["id"]).await["suspended"].clone();
        assert_eq!(suspended["reason"], "maker_banned");
        assert!((before.clone()..=now()).contains(&suspended["since"].as_str().unwrap().to_owned()), "{before} {suspended}");
        assert_eq!(listed(&admin, &below["id"]).await["suspended"]["reason"], "key_suspended");
        // A second ban does not suspend the keys again.
        ban(&admin, &maker_id, true).await;
        assert_eq!(listed(&admin, &row["id"]).await["suspended"], suspended);
        let told = events(&server, "api_keys.suspended").await;
        let actor = json!({ "userId": admin_id, "apiKeyId": null, "via": "session" });
        let event = |id: &Value, reason: &str| json!({ "id": id, "reason": reason, "actor": actor });
        assert_eq!(told.len(), 3, "{told:?}");
        for expected in [event(&row["id"], "maker_banned"), event(&own_row["id"], "maker_banned"), event(&below["id"], "key_suspended")] {
            assert!(told.contains(&expected), "{expected} in {told:?}");
        }
        // The ban is lifted, and everything is as it was before.
        ban(&admin, &maker_id, false).await;
        for by_key in [&by_key, &own, &by_by_key] {
            assert_eq!(by_key.get(TASKS).await.status, 200);
        }
        assert_eq!(listed(&admin, &row["id"]).await["suspended"], Value::Null);
        assert_eq!(by_key.get("/api/v1/me").await.json().get("suspended"), None);
    }

    async fn whoever_is_strong_enough_adopts_a_key(server: Server) {
        let admin = server.admin().await;
        admin.make_task_object().await;
        let manages = [json!({ "resource": "api_keys", "actions": ["manage"] }), json!({ "resource": "users", "actions": ["update", "delete"] })];
        let with = |grants: &[Value]| json!([manages.as_slice(), grants].concat());
        let all = json!({ "resource": "task", "actions": ["manage"] });
        role(&admin, "weak", with(&[json!({ "resource": "task", "actions": ["manage"], "rowPolicy": "own" })])).await;
        role(&admin, "strong", with(std::slice::from_ref(&all))).await;
        role(&admin, "writer", json!([all])).await;
        role(&admin, "owner", json!([{ "resource": "task", "actions": ["manage"], "rowPolicy": "own" }])).await;
        let (weak, _) = user(&admin, "weak", Some("weak")).await;
        let (strong, strong_id) = user(&admin, "strong", Some("strong")).await;
        let (maker, maker_id) = second_admin(&admin).await;
        let (_, ann_id) = user(&admin, "ann", None).await;
        let (by_key, row) = key(&maker, json!({ "name": "k", "roleId": "writer", "userId": ann_id })).await;
        let (by_owner, owner_row) = key(&maker, json!({ "name": "o", "roleId": "owner", "userId": ann_id })).await;
        assert_eq!(admin.delete(&format!("/api/v1/users/{maker_id}?suspend=true")).await.status, 204);
        by_key.get(TASKS).await.expect_error(403, "key_suspended");
        let before = listed(&admin, &row["id"]).await;
        assert_eq!(before["suspended"]["reason"], "maker_gone");
        // This caller has too few rights. A grant for own rows is less than a grant for all rows. For another user's key, it is
        // not a grant for that user's rows either.
        adopt(&weak, &row).await.expect_error(403, "forbidden");
        adopt(&weak, &owner_row).await.expect_error(403, "forbidden");
        let after = listed(&admin, &row["id"]).await;
        assert_eq!((&after["madeBy"], &after["suspended"]), (&before["madeBy"], &before["suspended"]));
        by_key.get(TASKS).await.expect_error(403, "key_suspended");
        // A caller with fewer rights than a suspended key cannot delete it either.
        weak.delete(&format!("/api/v1/api-keys/{}", row["id"].as_str().unwrap())).await.expect_error(403, "forbidden");
        let (nobody, _) = user(&admin, "nobody", None).await;
        adopt(&nobody, &row).await.expect_error(403, "forbidden");
        adopt(&strong, &json!({ "id": "nothing" })).await.expect_error(404, "not_found");

        let adopted = adopt(&strong, &row).await.data();
        assert_eq!((&adopted["madeBy"], &adopted["suspended"]), (&json!({ "userId": strong_id, "apiKeyId": null }), &Value::Null));
        assert_eq!(new_task(&by_key).await.status, 201);
        assert_eq!(adopt(&strong, &owner_row).await.status, 200);
        assert_eq!(new_task(&by_owner).await.status, 201);
        // From now on the adopter's rights limit the key.
        assert_eq!(admin.patch("/api/v1/roles/strong", json!({ "permissions": with(&[]) })).await.status, 200);
        new_task(&by_key).await.expect_error(403, "forbidden");
        let told = events(&server, "auth.key.adopted").await;
        assert_eq!(told.len(), 2);
        assert_eq!((&told[0]["id"], &told[0]["actor"]["userId"]), (&row["id"], &json!(strong_id)));
    }

    async fn a_user_who_made_something_is_not_just_deleted(server: Server) {
        let admin = server.admin().await;
        admin.make_task_object().await;
        let all = json!({ "resource": "task", "actions": ["manage"] });
        role(&admin, "writer", json!([all])).await;
        let deletes = [json!({ "resource": "users", "actions": ["manage"] }), json!({ "resource": "api_keys", "actions": ["manage"] })];
        role(&admin, "maker", json!([deletes.as_slice(), std::slice::from_ref(&all)].concat())).await;
        role(&admin, "weak", json!(deletes)).await;
        let (maker, maker_id) = user(&admin, "maker", Some("maker")).await;
        let (_, ann_id) = user(&admin, "ann", None).await;
        let (_, heir_id) = user(&admin, "heir", Some("writer")).await;
        let (weak, weak_id) = user(&admin, "weak", Some("weak")).await;
        let (by_key, row) = key(&maker, json!({ "name": "k", "roleId": "writer", "userId": ann_id })).await;
        let path = format!("/api/v1/users/{maker_id}");
        let refused = admin.delete(&path).await;
        refused.expect_error(409, "owns_things");
        assert_eq!(refused.json()["things"], json!([{ "resource": "api_keys", "id": row["id"], "name": "k" }]));
        for (query, status, code) in [
            ("handOverTo=nobody", 409, "foreign_key_violation"),
            (&*format!("handOverTo={maker_id}"), 400, "invalid_request"),
            (&*format!("handOverTo={heir_id}&suspend=true"), 400, "invalid_request"),
            ("suspend=perhaps", 400, "invalid_request"),
            ("handOverTo=%00", 400, "invalid_request"),
            ("force=true", 400, "invalid_request"),
            // This user has fewer rights than the key.
            (&*format!("handOverTo={weak_id}"), 403, "forbidden"),
        ] {
            admin.delete(&format!("{path}?{query}")).await.expect_error(status, code);
        }
        // The reason comes from the operation. Only this API names the heir's parameter.
        let refused = admin.delete(&format!("{path}?handOverTo=nobody")).await.json();
        assert_eq!(refused["message"], "The user to hand over to does not exist. `handOverTo` takes the id of another user.");
        assert_eq!(refused["field"], "handOverTo");
        let refused = admin.delete(&format!("{path}?handOverTo={maker_id}")).await.json();
        let message = "The things of a user cannot be handed over to this same user. `handOverTo` takes the id of another user.";
        assert_eq!((&refused["message"], &refused["field"]), (&json!(message), &Value::Null));
        // The caller needs these rights too, and has to be as strong as the user.
        weak.delete(&format!("{path}?handOverTo={heir_id}")).await.expect_error(403, "forbidden");
        weak.delete(&format!("{path}?suspend=true")).await.expect_error(403, "forbidden");
        ban(&admin, &heir_id, true).await;
        admin.delete(&format!("{path}?handOverTo={heir_id}")).await.expect_error(403, "forbidden");
        ban(&admin, &heir_id, false).await;
        assert_eq!(listed(&admin, &row["id"]).await["madeBy"]["userId"], json!(maker_id));
        assert_eq!(new_task(&by_key).await.status, 201);

        assert_eq!(admin.delete(&format!("{path}?handOverTo={heir_id}")).await.status, 204);
        admin.get(&path).await.expect_error(404, "not_found");
        let shown = listed(&admin, &row["id"]).await;
        assert_eq!((&shown["madeBy"], &shown["suspended"]), (&json!({ "userId": heir_id, "apiKeyId": null }), &Value::Null));
        assert_eq!(new_task(&by_key).await.status, 201);
        take(&admin, &heir_id, "writer").await;
        new_task(&by_key).await.expect_error(403, "forbidden");
        // The ban ended their session.
        let sign_in = json!({ "email": "heir@example.com", "password": "correct horse battery" });
        let session = server.call("POST", "/api/auth/sign-in/email", Some(sign_in)).await.json();
        let heir = server.with_token(session["token"].as_str().unwrap().to_owned());

        // A key that a user made for themselves counts as well, and is deleted with the user.
        give(&admin, &heir_id, "maker").await;
        let (own, own_row) = key(&heir, json!({ "name": "own", "roleId": "writer" })).await;
        assert_eq!(own.get(TASKS).await.status, 200);
        let things = admin.delete(&format!("/api/v1/users/{heir_id}")).await.json()["things"].clone();
        assert_eq!(things.as_array().unwrap().len(), 2);
        assert_eq!(admin.delete(&format!("/api/v1/users/{heir_id}?suspend=true")).await.status, 204);
        own.get(TASKS).await.expect_error(401, "unauthorized");
        by_key.get(TASKS).await.expect_error(403, "key_suspended");
        assert_eq!(listed(&admin, &own_row["id"]).await, Value::Null);
        let told = events(&server, "api_keys.suspended").await;
        assert_eq!(told.iter().map(|event| (&event["id"], &event["reason"])).collect::<Vec<_>>(), [(&row["id"], &json!("maker_gone"))]);
        let gone = events(&server, "auth.key.deleted").await;
        assert_eq!(gone.iter().map(|event| &event["id"]).collect::<Vec<_>>(), [&own_row["id"]]);
    }

    async fn nobody_acts_on_who_is_stronger(server: Server) {
        let admin = server.admin().await;
        let admin_id = id_of(&admin).await;
        admin.make_task_object().await;
        let helper = json!([
            { "resource": "users", "actions": ["manage"] },
            { "resource": "roles", "actions": ["manage"] },
            { "resource": "api_keys", "actions": ["manage"] },
            { "resource": "task", "actions": ["read"] },
        ]);
        role(&admin, "helper", helper.clone()).await;
        role(&admin, "strong", json!([{ "resource": "task", "actions": ["delete"] }])).await;
        role(&admin, "common", json!([{ "resource": "task", "actions": ["read"] }])).await;
        role(&admin, "loose", json!([{ "resource": "task", "actions": ["read"] }])).await;
        let (helper, _) = user(&admin, "helper", Some("helper")).await;
        let (_, second_id) = second_admin(&admin).await;
        let (_, strong_id) = user(&admin, "strong", Some("strong")).await;
        let (_, banned_id) = user(&admin, "banned", Some("strong")).await;
        let (_, service_id) = user(&admin, "service", None).await;
        let (_, equal_id) = user(&admin, "equal", Some("common")).await;
        give(&admin, &strong_id, "common").await;
        ban(&admin, &banned_id, true).await;
        let (_, of_admin) = key(&admin, json!({ "name": "a", "roleId": "admin" })).await;
        let (_, of_service) = key(&admin, json!({ "name": "s", "roleId": "strong", "userId": service_id })).await;
        let state = async || {
            let mut state = Vec::new();
            for sql in [
                "SELECT id, name, CASE WHEN banned THEN 'yes' ELSE 'no' END FROM svc_users ORDER BY id",
                "SELECT id, name, description, permissions FROM svc_roles ORDER BY id",
                "SELECT user_id, role_id FROM svc_user_roles ORDER BY user_id, role_id",
                "SELECT id, made_by_user FROM svc_api_keys ORDER BY id",
            ] {
                state.push(server.sql(sql).await);
            }
            state
        };
        let before = state().await;
        // This also applies to a user without a role, because of the rights of a key that acts as that user.
        for id in [&admin_id, &second_id, &strong_id, &banned_id, &service_id] {
            let path = format!("/api/v1/users/{id}");
            for body in [json!({ "banned": true }), json!({ "banned": false }), json!({ "name": "x" })] {
                helper.patch(&path, body).await.expect_error(403, "forbidden");
            }
            for query in ["", "?suspend=true", &format!("?handOverTo={equal_id}")] {
                helper.delete(&format!("{path}{query}")).await.expect_error(403, "forbidden");
            }
            helper.post(&format!("{path}/roles"), json!({ "roleId": "common" })).await.expect_error(403, "forbidden");
            // Nobody can make a key that acts as one of them either.
            helper.post("/api/v1/api-keys", json!({ "name": "k", "roleId": "common", "userId": id })).await.expect_error(403, "forbidden");
        }
        for (id, role) in [(&second_id, "admin"), (&strong_id, "strong"), (&strong_id, "common")] {
            helper.delete(&format!("/api/v1/users/{id}/roles/{role}")).await.expect_error(403, "forbidden");
        }
        // A role that is stronger, and a role that a stronger user has.
        for name in ["strong", "common", "admin"] {
            let path = format!("/api/v1/roles/{name}");
            for body in [json!({ "permissions": [] }), json!({ "name": "renamed" }), json!({ "description": "x" })] {
                helper.patch(&path, body).await.expect_error(403, "forbidden");
            }
            helper.delete(&path).await.expect_error(403, "forbidden");
        }
        for key in [&of_admin, &of_service] {
            helper.delete(&format!("/api/v1/api-keys/{}", key["id"].as_str().unwrap())).await.expect_error(403, "forbidden");
            adopt(&helper, key).await.expect_error(403, "forbidden");
        }
        assert_eq!(state().await, before);

        // A key has only the rights of its role, also over its own user.
        let (by_key, _) = key(&admin, json!({ "name": "weak", "roleId": "helper" })).await;
        by_key.patch(&format!("/api/v1/users/{admin_id}"), json!({ "name": "x" })).await.expect_error(403, "forbidden");
        by_key.delete(&format!("/api/v1/api-keys/{}", of_admin["id"].as_str().unwrap())).await.expect_error(403, "forbidden");

        // The caller may change users with equal or fewer rights.
        let equal = format!("/api/v1/users/{equal_id}");
        assert_eq!(helper.patch(&equal, json!({ "name": "Equal", "banned": true })).await.status, 200);
        assert_eq!(helper.patch(&equal, json!({ "banned": false })).await.status, 200);
        assert_eq!(helper.post(&format!("{equal}/roles"), json!({ "roleId": "loose" })).await.status, 200);
        assert_eq!(helper.patch("/api/v1/roles/loose", json!({ "permissions": [] })).await.status, 200);
        assert_eq!(helper.delete(&format!("{equal}/roles/loose")).await.status, 204);
        assert_eq!(helper.delete("/api/v1/roles/loose").await.status, 204);
        let (_, made) = key(&helper, json!({ "name": "k", "roleId": "common", "userId": equal_id })).await;
        assert_eq!(helper.delete(&format!("/api/v1/api-keys/{}", made["id"].as_str().unwrap())).await.status, 204);
        assert_eq!(helper.delete(&equal).await.status, 204);
        // Users may delete keys that act as them, no matter how many rights the keys have.
        role(&admin, "self", json!([{ "resource": "api_keys", "actions": ["delete"], "rowPolicy": "own" }])).await;
        let (ann, ann_id) = user(&admin, "ann", Some("self")).await;
        let (_, of_ann) = key(&admin, json!({ "name": "k", "roleId": "admin", "userId": ann_id })).await;
        assert_eq!(ann.delete(&format!("/api/v1/api-keys/{}", of_ann["id"].as_str().unwrap())).await.status, 204);
    }

    async fn a_key_for_another_user_needs_update_on_users(server: Server) {
        let admin = server.admin().await;
        role(&admin, "maker", json!([{ "resource": "api_keys", "actions": ["create"] }])).await;
        role(&admin, "empty", json!([])).await;
        let (maker, maker_id) = user(&admin, "maker", Some("maker")).await;
        let (_, ann_id) = user(&admin, "ann", None).await;
        let body = json!({ "name": "k", "roleId": "empty", "userId": ann_id });
        maker.post("/api/v1/api-keys", body.clone()).await.expect_error(403, "forbidden");
        assert_eq!(maker.post("/api/v1/api-keys", json!({ "name": "k", "roleId": "empty", "userId": maker_id })).await.status, 201);
        role(&admin, "users", json!([{ "resource": "users", "actions": ["update"] }])).await;
        give(&admin, &maker_id, "users").await;
        assert_eq!(maker.post("/api/v1/api-keys", body).await.status, 201);
    }

    async fn the_life_of_a_key_is_told_without_the_key(server: Server) {
        let admin = server.admin().await;
        let admin_id = id_of(&admin).await;
        admin.make_task_object().await;
        let role_id = role(&admin, "reader", json!([{ "resource": "task", "actions": ["read"] }])).await;
        let (_, ann_id) = user(&admin, "ann", None).await;
        let (by_key, row) = key(&admin, json!({ "name": "k", "roleId": "reader", "userId": ann_id })).await;
        for _ in 0..3 {
            assert_eq!(by_key.get(TASKS).await.status, 200);
        }
        within_five_seconds(async || events(&server, "auth.key.used").await.len() == 1).await;
        assert_eq!(adopt(&admin, &row).await.status, 200);
        assert_eq!(by_key.get(TASKS).await.status, 200);
        let (_, of_role) = key(&admin, json!({ "name": "of the role", "roleId": "reader" })).await;
        assert_eq!(admin.delete(&format!("/api/v1/api-keys/{}", row["id"].as_str().unwrap())).await.status, 204);
        assert_eq!(admin.delete("/api/v1/roles/reader").await.status, 204);
        let by_admin = json!({ "userId": admin_id, "apiKeyId": null, "via": "session" });
        let made_by = json!({ "userId": admin_id, "apiKeyId": null });
        let about = json!({ "id": row["id"], "name": "k", "userId": ann_id, "roleId": role_id, "madeBy": made_by, "actor": by_admin });
        assert_eq!(events(&server, "auth.key.created").await[0], about);
        assert_eq!(events(&server, "auth.key.adopted").await, std::slice::from_ref(&about));
        let deleted = events(&server, "auth.key.deleted").await;
        assert_eq!((&deleted[0], &deleted[1]["id"], deleted.len()), (&about, &of_role["id"], 2));
        let used = events(&server, "auth.key.used").await;
        let by_key_actor = json!({ "userId": ann_id, "apiKeyId": row["id"], "via": "api_key" });
        assert_eq!(used, [json!({ "id": row["id"], "actor": by_key_actor })]);
        let all = server.sql("SELECT payload FROM svc_events").await;
        let prefix = row["prefix"].as_str().unwrap();
        assert!(!all.iter().any(|row| row[0].contains(&by_key.token) || row[0].contains(prefix)), "{all:?}");
    }

    async fn a_demotion_holds_in_the_middle_of_use(server: Server) {
        let admin = server.admin().await;
        admin.make_task_object().await;
        let (maker, maker_id) = second_admin(&admin).await;
        let (_, ann_id) = user(&admin, "ann", None).await;
        let (by_key, _) = key(&maker, json!({ "name": "k", "roleId": "admin", "userId": ann_id })).await;
        for _ in 0..5 {
            let stop = tokio::sync::watch::Sender::new(false);
            let using = join_all((0..4).map(|_| {
                let (by_key, mut stopped) = (&by_key, stop.subscribe());
                async move {
                    while !*stopped.borrow_and_update() {
                        let answer = new_task(by_key).await;
                        assert!([201, 403].contains(&answer.status), "{}", answer.text);
                    }
                }
            }));
            let demoting = async {
                tokio::time::sleep(std::time::Duration::from_millis(30)).await;
                take(&admin, &maker_id, "admin").await;
                // A request that begins after the response has the new rights.
                for _ in 0..10 {
                    new_task(&by_key).await.expect_error(403, "forbidden");
                }
                give(&admin, &maker_id, "admin").await;
                assert_eq!(new_task(&by_key).await.status, 201);
                stop.send_replace(true);
            };
            tokio::join!(using, demoting);
        }
    }

    async fn no_key_is_made_past_the_deletion_of_its_maker(server: Server) {
        let admin = server.admin().await;
        admin.make_task_object().await;
        for round in 0..5 {
            let (maker, maker_id) = user(&admin, &format!("maker{round}"), Some("admin")).await;
            let (_, ann_id) = user(&admin, &format!("ann{round}"), None).await;
            let making = join_all((0..8).map(|_| maker.post("/api/v1/api-keys", json!({ "name": "k", "roleId": "admin", "userId": ann_id }))));
            let path = format!("/api/v1/users/{maker_id}?suspend=true");
            let (made, deleted) = tokio::join!(making, admin.delete(&path));
            assert_eq!(deleted.status, 204, "{}", deleted.text);
            for answer in made.iter().filter(|answer| answer.status != 201) {
                assert_eq!(answer.status, 401, "{}", answer.text);
            }
            for answer in made.iter().filter(|answer| answer.status == 201) {
                server.with_token(answer.json()["key"].as_str().unwrap().to_owned()).get(TASKS).await.expect_error(403, "key_suspended");
            }
            let rows = server.sql(&format!("SELECT id FROM svc_api_keys WHERE made_by_user = '{maker_id}' AND suspended_at IS NULL")).await;
            assert!(rows.is_empty(), "{rows:?}");
        }
        assert!(!server.log().contains("ERROR"), "{}", server.log());
    }
}

/// The time of this machine, in the form of the API.
fn now() -> String {
    blockbase_schema::time::format_datetime(chrono::Utc::now().timestamp_millis())
}

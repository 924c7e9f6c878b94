//! Conditional writes: ETags of records, `If-Match`, `If-None-Match`.

mod old_database;

use std::collections::HashSet;

use blockbase_tests::{Admin, Answer, Engine, Server, ServerBuilder, on_both_engines};
use futures_util::future::join_all;
use serde_json::{Value, json};

const NOBODY: &str = "20000000-0000-4000-8000-000000000000";

/// The ETag of a response. It has to be strong, and in quotes.
#[track_caller]
fn etag(answer: &Answer) -> String {
    assert!((200..300).contains(&answer.status) || answer.status == 304, "{} {}", answer.status, answer.text);
    let etag = answer.headers.get("etag").unwrap_or_else(|| panic!("no ETag: {:?}", answer.headers)).to_str().unwrap().to_owned();
    assert!(etag.len() > 20 && etag.starts_with('"') && etag.ends_with('"'), "{etag}");
    etag
}

async fn sent(caller: &Admin<'_>, method: &str, path: &str, if_match: &str, body: Option<Value>) -> Answer {
    let request = caller.request(method, path).header("if-match", if_match);
    let request = match body {
        Some(body) => request.json(&body),
        None => request,
    };
    caller.server.send(request).await
}

async fn patched(caller: &Admin<'_>, path: &str, if_match: &str, body: Value) -> Answer {
    sent(caller, "PATCH", path, if_match, Some(body)).await
}

/// A user with one role that has these grants.
async fn member<'a>(admin: &Admin<'a>, name: &str, grants: Value) -> Admin<'a> {
    let role = admin.post("/api/v1/roles", json!({ "name": name, "permissions": grants })).await;
    assert_eq!(role.status, 201, "{}", role.text);
    let member = admin.server.with_token(admin.server.sign_up(name).await);
    let user = member.get("/api/v1/me").await.json()["userId"].as_str().unwrap().to_owned();
    assert_eq!(admin.post(&format!("/api/v1/users/{user}/roles"), json!({ "roleId": name })).await.status, 200);
    member
}

on_both_engines! {
    async fn every_state_of_a_record_has_an_etag_of_its_own(server: Server) {
        let admin = server.admin().await;
        admin.make_task_object().await;
        let mut seen = HashSet::new();
        let created = admin.post("/api/v1/data/task", json!({ "title": "a", "priority": 1 })).await;
        let path = format!("/api/v1/data/task/{}", created.data()["id"].as_str().unwrap());
        let first = etag(&created);
        seen.insert(first.clone());
        // A read, or a write that changes nothing, keeps the ETag. Other spellings of the id give the same ETag.
        assert_eq!(etag(&admin.get(&path).await), first);
        assert_eq!(etag(&admin.get(&path.to_uppercase().replace("/API/V1/DATA/TASK", "/api/v1/data/task")).await), first);
        assert_eq!(etag(&admin.get(&format!("{path}?select=title&expand=nothing")).await), first);
        assert_eq!(etag(&admin.patch(&path, json!({})).await), first);
        let head = server.send(admin.request("HEAD", &path)).await;
        assert_eq!((head.status, etag(&head)), (200, first));
        // The record gets the same values again, and then the earlier values. Each write makes a new version, even at the same
        // instant.
        for changes in [
            json!({ "title": "a" }),
            json!({ "title": "b" }),
            json!({ "title": "a" }),
            json!({ "priority": { "$inc": 1 } }),
            json!({ "priority": { "$dec": 1 } }),
        ] {
            let changed = etag(&admin.patch(&path, changes.clone()).await);
            assert!(seen.insert(changed.clone()), "{changes} brought back an ETag");
            assert_eq!(etag(&admin.get(&path).await), changed);
        }
        let id = created.data()["id"].clone();
        let upserted = admin.post("/api/v1/data/task?on_conflict=id", json!({ "id": id, "title": "u" })).await;
        assert_eq!(upserted.status, 200);
        assert!(seen.insert(etag(&upserted)));
        assert_eq!(etag(&admin.get(&path).await), etag(&upserted));
        let bulk = admin.patch("/api/v1/data/task/bulk", json!({ "ids": [id], "values": { "done": true } })).await;
        assert_eq!(bulk.status, 200, "{}", bulk.text);
        let before = etag(&admin.get(&path).await);
        assert!(seen.insert(before.clone()));
        // If a record is deleted and made again with the same id, it is another record.
        assert_eq!(admin.delete(&path).await.status, 204);
        for _ in 0..2 {
            let again = admin.post("/api/v1/data/task?on_conflict=id", json!({ "id": id, "title": "u" })).await;
            assert_eq!(again.status, 201, "{}", again.text);
            assert!(seen.insert(etag(&again)));
            patched(&admin, &path, &before, json!({ "title": "x" })).await.expect_error(412, "precondition_failed");
            assert_eq!(admin.delete(&path).await.status, 204);
        }
        // Records with equal content have different ETags. Lists have none.
        let twins = [admin.post("/api/v1/data/task", json!({ "title": "t" })).await, admin.post("/api/v1/data/task", json!({ "title": "t" })).await];
        assert!(twins.iter().all(|twin| seen.insert(etag(twin))));
        let list = admin.get("/api/v1/data/task").await;
        assert!(!list.headers.contains_key("etag") && !list.text.contains("svc_version"), "{}", list.text);
        for (_, event) in admin.outbox("task").await {
            assert!(!event.to_string().contains("svc_version"), "{event}");
        }
    }

    async fn a_change_happens_to_the_state_that_it_names(server: Server) {
        let admin = server.admin().await;
        admin.define("note", json!([{ "name": "text", "type": "text" }, { "name": "code", "type": "slug", "isUnique": true }])).await;
        admin.make("note", json!({ "code": "taken" })).await;
        let created = admin.post("/api/v1/data/note", json!({ "text": "a", "code": "a" })).await;
        let path = format!("/api/v1/data/note/{}", created.data()["id"].as_str().unwrap());
        let first = etag(&created);
        let second = patched(&admin, &path, &first, json!({ "text": "b" })).await;
        assert_eq!(second.data()["text"], "b");
        let second = etag(&second);
        let events = admin.outbox("note").await.len();
        for body in [json!({ "text": "c" }), json!({}), json!({ "code": "taken" })] {
            let refused = patched(&admin, &path, &first, body).await.expect_error(412, "precondition_failed");
            assert!(refused["message"].as_str().unwrap().contains("Read the record again"), "{refused}");
        }
        sent(&admin, "DELETE", &path, &first, None).await.expect_error(412, "precondition_failed");
        // The ETag of another record, or an invented one, matches no version of this record.
        let other = etag(&admin.post("/api/v1/data/note", json!({})).await);
        for wrong in [other.as_str(), "\"x\"", "\"a,b\"", "\"W/\"", &format!("\"{}\"", "z".repeat(4000)), &second.to_lowercase()] {
            patched(&admin, &path, wrong, json!({ "text": "c" })).await.expect_error(412, "precondition_failed");
        }
        let now = admin.get(&path).await;
        assert_eq!((etag(&now), &now.data()["text"]), (second.clone(), &json!("b")));
        assert_eq!(admin.outbox("note").await.len(), events + 1);
        // The server checks values before it reads the record. It reports conflicts of the write itself only after it has checked
        // `If-Match`.
        patched(&admin, &path, &first, json!({ "text": 5 })).await.expect_error(400, "invalid_value");
        patched(&admin, &path, &second, json!({ "code": "taken" })).await.expect_error(409, "unique_violation");
        // `*` matches any version. A condition that is met changes nothing by itself.
        assert_eq!(etag(&patched(&admin, &path, &second, json!({})).await), second);
        let third = etag(&patched(&admin, &path, "*", json!({ "text": "d" })).await);
        assert_eq!(sent(&admin, "DELETE", &path, &third, None).await.status, 204);
        for condition in ["*", third.as_str()] {
            patched(&admin, &path, condition, json!({ "text": "e" })).await.expect_error(404, "not_found");
            sent(&admin, "DELETE", &path, condition, None).await.expect_error(404, "not_found");
            sent(&admin, "DELETE", "/api/v1/data/note/x", condition, None).await.expect_error(404, "not_found");
        }
        // A deletion with a condition has the same effects as any other deletion.
        admin.define("line", json!([])).await;
        admin.relate(json!({ "name": "note", "kind": "many_to_one", "source": "line", "target": "note", "onDelete": "cascade" })).await;
        let created = admin.post("/api/v1/data/note", json!({})).await;
        let id = created.data()["id"].clone();
        admin.make("line", json!({ "note_id": id })).await;
        let path = format!("/api/v1/data/note/{}", id.as_str().unwrap());
        sent(&admin, "DELETE", &path, &first, None).await.expect_error(412, "precondition_failed");
        assert_eq!(admin.get("/api/v1/data/line").await.json()["pagination"]["totalCount"], 1);
        assert_eq!(sent(&admin, "DELETE", &path, &etag(&admin.get(&path).await), None).await.status, 204);
        assert_eq!(admin.get("/api/v1/data/line").await.json()["pagination"]["totalCount"], 0);
    }

    async fn who_may_not_is_told_so_before_the_condition_is(server: Server) {
        let admin = server.admin().await;
        admin.make_task_object().await;
        let path = format!("/api/v1/data/task/{}", admin.make("task", json!({ "title": "a" })).await);
        let current = etag(&admin.get(&path).await);
        let own = member(&admin, "own", json!([{ "resource": "task", "actions": ["manage"], "rowPolicy": "own" }])).await;
        let writer = member(&admin, "writer", json!([{ "resource": "task", "actions": ["update"] }])).await;
        let reader = member(&admin, "reader", json!([{ "resource": "task", "actions": ["read"] }])).await;
        for condition in [current.as_str(), "\"x\"", "*"] {
            for method in ["PATCH", "DELETE"] {
                let body = || (method == "PATCH").then(|| json!({ "title": "b" }));
                // A hidden record counts as missing, no matter what the condition is.
                sent(&own, method, &path, condition, body()).await.expect_error(404, "not_found");
                sent(&reader, method, &path, condition, body()).await.expect_error(403, "forbidden");
                let request = server.request(method, &path).header("if-match", condition).json(&json!({}));
                server.send(request).await.expect_error(401, "unauthorized");
            }
        }
        sent(&reader, "DELETE", &path, "malformed", None).await.expect_error(403, "forbidden");
        sent(&writer, "DELETE", &path, &current, None).await.expect_error(403, "forbidden");
        assert_eq!(etag(&admin.get(&path).await), current);
        // If a caller may change a record but not read it, they get the ETag of the version that they wrote.
        let written = patched(&writer, &path, &current, json!({ "title": "c" })).await;
        assert_eq!(written.data().as_object().unwrap().len(), 2, "{}", written.text);
        assert_eq!(etag(&written), etag(&admin.get(&path).await));
        patched(&writer, &path, &current, json!({ "title": "d" })).await.expect_error(412, "precondition_failed");
        let mine = own.post("/api/v1/data/task", json!({ "title": "mine" })).await;
        let path = format!("/api/v1/data/task/{}", mine.data()["id"].as_str().unwrap());
        let changed = patched(&own, &path, &etag(&mine), json!({ "title": "still mine" })).await;
        assert_eq!(etag(&own.get(&path).await), etag(&changed));
        patched(&own, &path, &etag(&mine), json!({ "title": "x" })).await.expect_error(412, "precondition_failed");
    }

    async fn malformed_conditions_are_refused(server: Server) {
        let admin = server.admin().await;
        admin.make_task_object().await;
        let path = format!("/api/v1/data/task/{}", admin.make("task", json!({ "title": "a" })).await);
        let current = etag(&admin.get(&path).await);
        let list = format!("{current}, {current}");
        let weak = format!("W/{current}");
        let bare = current.trim_matches('"').to_owned();
        let starred = format!("{current}, *");
        let hostile: [&[u8]; 15] = [
            b"", b"\"", b"\"\"", b"\"\xff\xfe\"", b"\"a\xc3\xa9\"", b"W/\"x\"", b"**", b"*, *", b"\"a\" \"b\"", b"x", b"\"a b\"",
            list.as_bytes(), weak.as_bytes(), bare.as_bytes(), starred.as_bytes(),
        ];
        for value in hostile {
            for method in ["PATCH", "DELETE"] {
                let value = reqwest::header::HeaderValue::from_bytes(value).unwrap();
                let request = admin.request(method, &path).header("if-match", value.clone()).json(&json!({ "title": "b" }));
                let refused = server.send(request).await.expect_error(400, "invalid_request");
                assert!(refused["message"].as_str().unwrap().contains("`If-Match` needs one ETag"), "{value:?}: {refused}");
            }
        }
        let twice = admin.request("PATCH", &path).header("if-match", &current).header("if-match", &current).json(&json!({}));
        server.send(twice).await.expect_error(400, "invalid_request");
        // Spaces around the ETag are ignored.
        assert_eq!(etag(&patched(&admin, &path, &format!("  {current}\t"), json!({})).await), current);

        let bulk = "/api/v1/data/task/bulk";
        let others: [(&str, &str, Value); 11] = [
            ("GET", "/api/v1/data", Value::Null),
            ("GET", "/api/v1/data/task", Value::Null),
            ("GET", "/api/v1/data/task/aggregate?fn=count", Value::Null),
            ("GET", &path, Value::Null),
            ("POST", "/api/v1/data/task", json!({ "title": "x" })),
            ("POST", "/api/v1/data/task?on_conflict=id", json!({ "id": NOBODY, "title": "x" })),
            ("POST", bulk, json!({ "data": [{ "title": "x" }] })),
            ("PATCH", bulk, json!({ "ids": [], "values": {} })),
            ("DELETE", bulk, json!({ "ids": [] })),
            ("POST", &format!("{path}/links/none"), json!({ "ids": [] })),
            ("DELETE", &format!("{path}/links/none"), json!({ "ids": [] })),
        ];
        for (method, path, body) in others {
            let answer = sent(&admin, method, path, &current, Some(body.clone())).await;
            // The server reports an unknown relation or a missing right before it looks at `If-Match`.
            let is_missing = path.ends_with("none");
            answer.expect_error(if is_missing { 404 } else { 400 }, if is_missing { "not_found" } else { "invalid_request" });
            if path != "/api/v1/data" {
                let request = server.request(method, path).header("if-match", &current).json(&body);
                server.send(request).await.expect_error(401, "unauthorized");
            }
        }
        assert_eq!(admin.get("/api/v1/data/task").await.json()["pagination"]["totalCount"], 1);
        assert_eq!(etag(&admin.get(&path).await), current);
    }

    async fn a_client_reads_again_only_what_has_changed(server: Server) {
        let admin = server.admin().await;
        admin.make_task_object().await;
        admin.define("folder", json!([{ "name": "name", "type": "text" }])).await;
        admin.relate(json!({ "name": "folder", "kind": "many_to_one", "source": "task", "target": "folder" })).await;
        let folder = admin.make("folder", json!({ "name": "f" })).await;
        let path = format!("/api/v1/data/task/{}", admin.make("task", json!({ "title": "a", "folder_id": folder })).await);
        let current = etag(&admin.get(&path).await);
        let read = async |path: &str, known: &str| server.send(admin.request("GET", path).header("if-none-match", known)).await;
        for known in [current.clone(), "*".to_owned(), format!("W/{current}"), format!("\"x\", {current}"), format!("{current},\"y\"")] {
            let answer = read(&path, &known).await;
            assert_eq!((answer.status, answer.text.as_str(), etag(&answer)), (304, "", current.clone()), "{known}");
            assert_eq!(answer.headers["cache-control"], "no-store");
            assert!(answer.headers.contains_key("vary"));
        }
        for known in ["\"x\"", "", "x", current.trim_matches('"')] {
            assert_eq!(read(&path, known).await.status, 200, "{known}");
        }
        // A change of related records does not change the record's own version.
        let expanded = read(&format!("{path}?expand=folder"), &current).await;
        assert_eq!((expanded.status, &expanded.data()["folder"]["name"]), (200, &json!("f")));
        assert_eq!(etag(&expanded), current);
        admin.patch(&path, json!({ "title": "a" })).await.data();
        assert_eq!(read(&path, &current).await.status, 200);
        let missing = format!("/api/v1/data/task/{NOBODY}");
        read(&missing, "*").await.expect_error(404, "not_found");
        let anonymous = server.request("GET", &path).header("if-none-match", "*");
        server.send(anonymous).await.expect_error(401, "unauthorized");
        // Scripts of other origins may read and send the header.
        let origin = server.base.clone();
        let shown = server.send(admin.request("GET", &path).header("origin", &origin)).await;
        assert!(shown.headers["access-control-expose-headers"].to_str().unwrap().contains("etag"), "{:?}", shown.headers);
        let preflight = server
            .request("OPTIONS", &path)
            .header("origin", &origin)
            .header("access-control-request-method", "PATCH")
            .header("access-control-request-headers", "if-match");
        let allowed = server.send(preflight).await;
        assert!(allowed.headers["access-control-allow-headers"].to_str().unwrap().contains("if-match"), "{:?}", allowed.headers);
    }

    async fn an_etag_outlives_the_process(server: Server) {
        let admin = server.admin().await;
        admin.make_task_object().await;
        let path = format!("/api/v1/data/task/{}", admin.make("task", json!({ "title": "a" })).await);
        let current = etag(&admin.patch(&path, json!({ "title": "b" })).await);
        let token = admin.token.clone();
        let server = server.restart().await;
        let admin = server.with_token(token);
        assert_eq!(etag(&admin.get(&path).await), current);
        assert_eq!(patched(&admin, &path, &current, json!({ "title": "c" })).await.status, 200);
    }

    async fn a_written_record_brings_its_related_records(server: Server) {
        let admin = server.admin().await;
        admin.make_task_object().await;
        admin.define("folder", json!([{ "name": "name", "type": "text" }])).await;
        admin.relate(json!({ "name": "folder", "kind": "many_to_one", "source": "task", "target": "folder" })).await;
        let folder = admin.make("folder", json!({ "name": "f" })).await;
        let created = admin.post("/api/v1/data/task?expand=folder", json!({ "title": "a", "folder_id": folder })).await;
        assert_eq!((created.status, &created.data()["folder"]["name"]), (201, &json!("f")));
        let path = format!("/api/v1/data/task/{}", created.data()["id"].as_str().unwrap());
        let read = admin.get(&format!("{path}?expand=folder")).await;
        assert_eq!((created.data(), etag(&created)), (read.data(), etag(&read)));
        let changed = admin.patch(&format!("{path}?expand=folder,nothing"), json!({ "title": "b" })).await;
        assert_eq!((&changed.data()["title"], &changed.data()["folder"]["id"]), (&json!("b"), &json!(folder)));
        let body = json!({ "id": created.data()["id"], "title": "c" });
        let upserted = admin.post("/api/v1/data/task?on_conflict=id&expand=folder.task_by_folder", body).await;
        assert_eq!((upserted.status, &upserted.json()["created"]), (200, &json!(false)));
        assert_eq!(upserted.data()["folder"]["task_by_folder"][0]["title"], "c");
        // A write is refused if the caller may not read what the response would show.
        let own = member(&admin, "own", json!([
            { "resource": "task", "actions": ["manage"], "rowPolicy": "own" }, { "resource": "folder", "actions": ["update"] },
        ])).await;
        let creator = member(&admin, "creator", json!([{ "resource": "task", "actions": ["create", "update"] }])).await;
        own.post("/api/v1/data/task?expand=folder", json!({ "title": "x" })).await.expect_error(403, "forbidden");
        creator.post("/api/v1/data/task?expand=folder", json!({ "title": "x" })).await.expect_error(403, "forbidden");
        creator.patch(&format!("{path}?expand=folder"), json!({ "title": "x" })).await.expect_error(403, "forbidden");
        assert_eq!(admin.get("/api/v1/data/task").await.json()["pagination"]["totalCount"], 1);
        assert_eq!(admin.get(&path).await.data()["title"], "c");
        assert_eq!(own.post("/api/v1/data/task?expand=nothing", json!({ "title": "x" })).await.status, 201);
    }
}

on_both_engines! {
    async fn what_changes_along_has_another_etag(engine: Engine) {
        let server = ServerBuilder::new(engine).env("SVC_ANONYMOUS_AUTH", "true").start().await;
        let admin = server.admin().await;
        admin.make_task_object().await;
        admin.define("folder", json!([{ "name": "name", "type": "text" }])).await;
        admin.relate(json!({ "name": "folder", "kind": "many_to_one", "source": "task", "target": "folder", "onDelete": "set_null" })).await;
        admin.relate(json!({ "name": "peers", "kind": "many_to_many", "source": "task", "target": "folder" })).await;
        let folder = admin.make("folder", json!({ "name": "f" })).await;
        let path = format!("/api/v1/data/task/{}", admin.make("task", json!({ "title": "a", "folder_id": folder })).await);
        let own = etag(&admin.get(&path).await);
        // Links and related records are not part of the record.
        let linked = admin.post(&format!("{path}/links/peers"), json!({ "ids": [folder] })).await;
        assert_eq!(linked.status, 200, "{}", linked.text);
        admin.patch(&format!("/api/v1/data/folder/{folder}"), json!({ "name": "g" })).await.data();
        assert_eq!(etag(&admin.get(&path).await), own);
        assert_eq!(admin.post(&format!("{path}/links/peers"), json!({ "ids": [] })).await.status, 200);
        let unlinked = admin.delete_with(&format!("{path}/links/peers"), json!({ "ids": [folder] })).await;
        assert_eq!(unlinked.status, 200, "{}", unlinked.text);
        // A cleared reference changes the record.
        assert_eq!(admin.delete(&format!("/api/v1/data/folder/{folder}")).await.status, 204);
        let cleared = admin.get(&path).await;
        assert_eq!(cleared.data()["folder_id"], Value::Null);
        assert_ne!(etag(&cleared), own);
        // A new field of the object changes all its records, because their responses change.
        let cleared = etag(&cleared);
        let field = json!({ "name": "late", "type": "text", "default": "x" });
        assert_eq!(admin.post("/api/v1/objects/task/fields", field).await.status, 201);
        let widened = etag(&admin.get(&path).await);
        assert_ne!(widened, cleared);
        // On SQLite, a new rule of a field makes a new table. The versions are copied.
        assert_eq!(admin.patch("/api/v1/objects/task/fields/late", json!({ "required": true })).await.status, 200);
        let rebuilt = etag(&admin.get(&path).await);
        patched(&admin, &path, &widened, json!({ "title": "x" })).await.expect_error(412, "precondition_failed");
        assert_eq!(patched(&admin, &path, &rebuilt, json!({ "title": "b" })).await.status, 200);
        // The upgrade of a guest changes their records too.
        let grants = json!([{ "resource": "task", "actions": ["manage"], "rowPolicy": "own" }]);
        assert_eq!(admin.patch("/api/v1/roles/anonymous", json!({ "permissions": grants })).await.status, 200);
        let guest = server.call("POST", "/api/auth/sign-in/anonymous", None).await.json();
        let guest = server.with_token(guest["token"].as_str().unwrap().to_owned());
        let path = format!("/api/v1/data/task/{}", guest.make("task", json!({ "title": "mine" })).await);
        let before = etag(&admin.get(&path).await);
        let body = json!({ "name": "Ann", "email": "ann@example.com", "password": "correct horse battery" });
        let upgraded = server.send(server.request("POST", "/api/auth/sign-up/email").bearer_auth(&guest.token).json(&body)).await;
        assert_eq!(upgraded.status, 200, "{}", upgraded.text);
        let after = admin.get(&path).await;
        assert_ne!(etag(&after), before, "{}", after.text);
    }

    async fn of_many_changes_of_one_state_one_wins(engine: Engine) {
        let server = ServerBuilder::new(engine).start().await;
        // On Postgres, half of the requests go to another instance.
        let second: Option<Server> = match engine {
            Engine::Sqlite => None,
            Engine::Postgres => Some(server.builder().start().await),
        };
        let admin = server.admin().await;
        admin.make_task_object().await;
        admin.define("tally", json!([{ "name": "n", "type": "integer" }])).await;
        let there = second.as_ref().unwrap_or(&server).with_token(admin.token.clone());
        let created = admin.post("/api/v1/data/tally", json!({ "n": 0 })).await;
        let path = format!("/api/v1/data/tally/{}", created.data()["id"].as_str().unwrap());
        let mut current = etag(&created);
        // The other instance may know the new object only a moment later.
        blockbase_tests::until("the other instance has the object", async || there.get(&path).await.status == 200).await;
        assert_eq!(etag(&there.get(&path).await), current, "instances make the same ETags");
        for round in 1..=8 {
            let tries = (0..100).map(|number| {
                let (caller, path, current) = (if number % 2 == 0 { &admin } else { &there }, &path, &current);
                async move { patched(caller, path, current, json!({ "n": { "$inc": 1 } })).await }
            });
            let answers = join_all(tries).await;
            let (won, lost): (Vec<&Answer>, Vec<&Answer>) = answers.iter().partition(|answer| answer.status == 200);
            assert_eq!(won.len(), 1, "round {round}: {:?}", answers.iter().map(|answer| answer.status).collect::<Vec<_>>());
            lost.iter().for_each(|answer| drop(answer.expect_error(412, "precondition_failed")));
            assert_eq!(won[0].data()["n"], round);
            current = etag(won[0]);
        }
        // Changes and deletions at the same time. One of them succeeds.
        let tries = (0..12).map(|number| {
            let (caller, path, current) = (if number % 2 == 0 { &admin } else { &there }, &path, &current);
            async move {
                match number % 3 {
                    0 => sent(caller, "DELETE", path, current, None).await,
                    _ => patched(caller, path, current, json!({ "n": 100 })).await,
                }
            }
        });
        let answers = join_all(tries).await;
        let won = answers.iter().filter(|answer| answer.status < 300).count();
        assert_eq!(won, 1, "{:?}", answers.iter().map(|answer| answer.status).collect::<Vec<_>>());
        assert!(answers.iter().all(|answer| [200, 204, 404, 412].contains(&answer.status)));
        let updated = admin.outbox("tally").await.iter().filter(|(topic, _)| topic == "data.tally.updated").count();
        assert!((8..=9).contains(&updated), "{updated}");
    }
}

//! Viewing the service as a role: it works on every read, never shows more than the caller may see, and is refused on writes.

use std::time::Duration;

use blockbase_tests::{Admin, Answer, ServerBuilder, on_both_engines, until};
use futures_util::StreamExt;
use serde_json::{Value, json};

use crate::data::conditions::encoded;
use crate::events::Stream;

const HEADER: &str = "x-svc-view-as";

async fn get_as(who: &Admin<'_>, role: &str, path: &str) -> Answer {
    who.server.send(who.request("GET", path).header(HEADER, role)).await
}

/// Makes a role, and returns its id.
async fn role(admin: &Admin<'_>, name: &str, permissions: Value) -> String {
    let made = admin.post("/api/v1/roles", json!({ "name": name, "permissions": permissions })).await;
    assert_eq!(made.status, 201, "{}", made.text);
    made.data()["id"].as_str().unwrap().to_owned()
}

/// The id of a role.
async fn id_of(admin: &Admin<'_>, name: &str) -> String {
    admin.get(&format!("/api/v1/roles/{name}")).await.data()["id"].as_str().unwrap().to_owned()
}

/// A key whose role has these permissions.
async fn key<'a>(admin: &Admin<'a>, name: &str, permissions: Value) -> Admin<'a> {
    role(admin, name, permissions).await;
    let made = admin.post("/api/v1/api-keys", json!({ "name": name, "roleId": name })).await;
    admin.server.with_token(made.json()["key"].as_str().unwrap().to_owned())
}

fn titles(answer: &Answer) -> Vec<String> {
    let mut titles: Vec<String> =
        answer.data().as_array().unwrap().iter().map(|record| record["title"].as_str().unwrap().to_owned()).collect();
    titles.sort();
    titles
}

/// The next text of a stream that is not a comment. `None` if the stream has ended.
async fn next(stream: &mut (impl futures_util::Stream<Item = reqwest::Result<bytes::Bytes>> + Unpin)) -> Option<String> {
    loop {
        let chunk = tokio::time::timeout(blockbase_tests::WAIT_MAX, stream.next()).await.expect("a frame in time")?.ok()?;
        let text = String::from_utf8(chunk.to_vec()).unwrap();
        if text.contains("data:") {
            return Some(text);
        }
    }
}

on_both_engines! {
    async fn every_read_shows_what_the_role_opens(server: Server) {
        let admin = server.admin().await;
        admin.make_task_object().await;
        admin.define("note", json!([{ "name": "title", "type": "text" }])).await;
        let member = server.with_token(server.sign_up("member").await);
        let owner = role(&admin, "owner", json!([{ "resource": "task", "actions": ["create", "read"], "rowPolicy": "own" }])).await;
        let reader = role(&admin, "reader", json!([
            { "resource": "task", "actions": ["read"] }, { "resource": "events", "actions": ["read"] }, { "resource": "data", "actions": ["read"] },
        ])).await;
        let user = member.get("/api/v1/me").await.json()["userId"].as_str().unwrap().to_owned();
        assert_eq!(admin.post(&format!("/api/v1/users/{user}/roles"), json!({ "roleId": owner })).await.status, 200);
        admin.make("task", json!({ "title": "of the admin" })).await;
        let of_member = member.make("task", json!({ "title": "of the member" })).await;
        admin.make("note", json!({ "title": "a note" })).await;

        // For records, `own` means the rows of the caller.
        let list = "/api/v1/data/task";
        assert_eq!(titles(&admin.get(list).await), ["of the admin", "of the member"]);
        // The list whose parameters are in a body is a read, too.
        let query = admin.request("POST", "/api/v1/data/task/query").header(HEADER, &reader);
        let listed = server.send(query.json(&json!({ "where": { "title": { "neq": null } } }))).await;
        assert_eq!(listed.text, get_as(&admin, &reader, "/api/v1/data/task").await.text);
        let query = admin.request("POST", "/api/v1/data/note/query").header(HEADER, &reader);
        server.send(query.json(&json!({}))).await.expect_error(403, "forbidden");
        assert_eq!(titles(&get_as(&admin, &owner, list).await), ["of the admin"]);
        assert_eq!(titles(&get_as(&admin, &reader, list).await), ["of the admin", "of the member"]);
        // The header accepts only the id of a role, and has no effect on the next request.
        for other in ["owner".to_owned(), owner.to_uppercase()] {
            get_as(&admin, &other, list).await.expect_error(404, "not_found");
        }
        assert_eq!(titles(&admin.get(list).await), ["of the admin", "of the member"]);
        get_as(&admin, &owner, &format!("{list}/{of_member}")).await.expect_error(404, "not_found");
        let sum = get_as(&admin, &owner, &format!("{list}/aggregate?fn=count")).await.data();
        assert_eq!(sum["filteredCount"], 1);
        let exported = get_as(&admin, &owner, &format!("{list}/export?format=csv&select=title")).await;
        assert!(exported.text.contains("of the admin") && !exported.text.contains("of the member"), "{}", exported.text);
        get_as(&admin, &owner, "/api/v1/data/note").await.expect_error(403, "forbidden");
        get_as(&admin, &owner, "/api/v1/data/nothing").await.expect_error(403, "forbidden");
        let discovered = get_as(&admin, &reader, "/api/v1/data").await.data();
        let names: Vec<&Value> = discovered.as_array().unwrap().iter().map(|object| &object["name"]).collect();
        assert_eq!(names, ["task"]);

        // Administrative operations, and operations with descriptions.
        for path in ["/api/v1/users", "/api/v1/roles", "/api/v1/objects", "/api/v1/webhooks", "/api/v1/events/deliveries", "/api/v1/api-keys"] {
            assert_eq!(admin.get(path).await.status, 200, "{path}");
            get_as(&admin, &owner, path).await.expect_error(403, "forbidden");
        }
        let events = get_as(&admin, &reader, "/api/v1/events?limit=500").await.data();
        let topics: Vec<&str> = events.as_array().unwrap().iter().map(|event| event["topic"].as_str().unwrap()).collect();
        assert!(topics.contains(&"data.task.created") && topics.contains(&"auth.user.created"), "{topics:?}");
        assert!(!topics.contains(&"data.note.created"), "{topics:?}");
        let (whole, cut) = (admin.get("/api/v1/openapi.json").await, get_as(&admin, &owner, "/api/v1/openapi.json").await);
        assert!(whole.json()["paths"]["/api/v1/data/note"].is_object());
        assert!(cut.json()["paths"]["/api/v1/data/note"].is_null() && cut.json()["paths"]["/api/v1/data/task"].is_object());
        assert_ne!(whole.headers["etag"], cut.headers["etag"]);
        for answer in [&whole, &cut, &admin.get(list).await] {
            let varies = answer.headers.get_all("vary").iter().any(|value| value.to_str().unwrap().contains("X-Svc-View-As"));
            assert!(varies, "{:?}", answer.headers);
        }
        let known = admin.request("GET", "/api/v1/openapi.json").header(HEADER, &owner).header("if-none-match", &whole.headers["etag"]);
        assert_eq!(server.send(known).await.status, 200);

        // GraphQL with GET, including its schema.
        let query = |text: &str| format!("/api/v1/graphql?query={}", text.replace(' ', "%20").replace('{', "%7B").replace('}', "%7D"));
        let seen = get_as(&admin, &reader, &query("{ task { data { title } } }")).await.json();
        assert_eq!(seen["data"]["task"]["data"].as_array().map(Vec::len), Some(2), "{seen}");
        assert!(get_as(&admin, &reader, &query("{ note { data { id } } }")).await.text.contains("errors"));
        assert!(!admin.get(&query("{ note { data { id } } }")).await.text.contains("errors"));
        let forbidden = get_as(&admin, &owner, &query("{ task { data { id } } }")).await;
        assert!(forbidden.text.contains("forbidden"), "{}", forbidden.text);
    }

    async fn a_role_with_conditions_and_fields_is_viewed_with_them(server: Server) {
        let admin = server.admin().await;
        let user = admin.get("/api/v1/me").await.json()["userId"].clone();
        let fields = json!([{ "name": "title", "type": "text" }, { "name": "holder", "type": "text" }, { "name": "price", "type": "integer" }]);
        admin.define("task", fields).await;
        admin.make("task", json!({ "title": "mine", "holder": user, "price": 3 })).await;
        let hidden = admin.make("task", json!({ "title": "hidden", "holder": "somebody else", "price": 4 })).await;
        admin.make("task", json!({ "title": "named", "holder": "holder", "price": 5 })).await;
        // `$user.id` is the caller, and `$user.roles` has only the name of the role.
        let condition = json!({ "_or": [{ "holder": "$user.id" }, { "holder": { "in": "$user.roles" } }] });
        let read = json!({ "resource": "task", "actions": ["read"], "where": condition, "fields": { "read": { "except": ["price"] } } });
        let data = json!({ "resource": "data", "actions": ["read"] });
        let holder = role(&admin, "holder", json!([read, data])).await;
        let list = "/api/v1/data/task";
        assert_eq!(titles(&admin.get(list).await), ["hidden", "mine", "named"]);
        let listed = get_as(&admin, &holder, list).await;
        assert_eq!(titles(&listed), ["mine", "named"]);
        assert!(!listed.text.contains("price"), "{}", listed.text);
        get_as(&admin, &holder, &format!("{list}/{hidden}")).await.expect_error(404, "not_found");
        get_as(&admin, &holder, &format!("{list}?price=3")).await.expect_error(400, "unknown_field");
        let sum = get_as(&admin, &holder, &format!("{list}/aggregate?fn=count")).await.data();
        assert_eq!(sum["filteredCount"], 2);
        // In the caller's own conditions, the variables have the same values.
        let by = |condition: Value| format!("{list}?where={}", encoded(&condition.to_string()));
        let by_roles = by(json!({ "holder": { "in": "$user.roles" } }));
        assert_eq!(titles(&get_as(&admin, &holder, &by_roles).await), ["named"]);
        assert_eq!(titles(&admin.get(&by_roles).await), Vec::<String>::new());
        assert_eq!(titles(&get_as(&admin, &holder, &by(json!({ "holder": "$user.id" }))).await), ["mine"]);
        let schema = get_as(&admin, &holder, "/api/v1/openapi.json").await.text;
        assert!(schema.contains("\"holder\"") && !schema.contains("\"price\""));
        let ty = get_as(&admin, &holder, "/api/v1/graphql?query=%7B__type(name:%22Task%22)%7Bfields%7Bname%7D%7D%7D").await.text;
        assert!(ty.contains("\"holder\"") && !ty.contains("\"price\""), "{ty}");
        let request = admin.request("GET", "/api/v1/events/stream?topics=data.task.updated").header(HEADER, &holder);
        let mut stream = Stream::of(request).await;
        admin.patch(&format!("{list}/{hidden}"), json!({ "title": "still hidden" })).await.data();
        admin.patch(&format!("{list}/{hidden}"), json!({ "title": "came", "holder": user })).await.data();
        let shown = stream.event().await["payload"].take();
        assert_eq!((&shown["before"], &shown["after"]["title"], &shown["diff"]), (&Value::Null, &json!("came"), &Value::Null), "{shown}");
        assert!(shown["after"].get("price").is_none(), "{shown}");
        // The caller's own conditions limit the view as well.
        let some = json!({ "resource": "task", "actions": ["read"], "where": { "title": "named" } });
        let weak = key(&admin, "weak", json!([some, { "resource": "roles", "actions": ["read"] }])).await;
        assert_eq!(titles(&get_as(&weak, &holder, list).await), ["named"]);
        let all = id_of(&admin, "admin").await;
        assert_eq!(titles(&get_as(&weak, &all, list).await), ["named"]);
        // A key has no `$key.id` in the view, because a user with the role has none.
        let by_key = by(json!({ "holder": { "neq": "$key.id" } }));
        assert_eq!(titles(&weak.get(&by_key).await), ["named"]);
        get_as(&weak, &all, &by_key).await.expect_error(400, "invalid_value");
        // Everyone has the grants of `public`, but it is not one of their roles.
        admin.make("task", json!({ "title": "for public", "holder": "public" })).await;
        let public = json!({ "permissions": [{ "resource": "task", "actions": ["read"] }] });
        assert_eq!(admin.patch("/api/v1/roles/public", public).await.status, 200);
        let public = id_of(&admin, "public").await;
        assert_eq!(titles(&get_as(&admin, &public, list).await), ["came", "for public", "mine", "named"]);
        assert_eq!(titles(&get_as(&admin, &public, &by_roles).await), Vec::<String>::new());
    }

    async fn nobody_sees_more_than_they_may_themselves(server: Server) {
        let admin = server.admin().await;
        admin.make_task_object().await;
        admin.define("note", json!([{ "name": "title", "type": "text" }])).await;
        admin.make("task", json!({ "title": "of the admin" })).await;
        admin.make("note", json!({ "title": "secret" })).await;
        let roles = json!({ "resource": "roles", "actions": ["read"] });
        let weak = key(&admin, "weak", json!([roles, { "resource": "task", "actions": ["read", "create"], "rowPolicy": "own" }])).await;
        weak.make("task", json!({ "title": "of the key" })).await;
        let own = titles(&weak.get("/api/v1/data/task").await);
        // Even the strongest role does not give callers access that they do not have.
        let (admin_role, weak_role) = (id_of(&admin, "admin").await, id_of(&admin, "weak").await);
        for role in [&admin_role, &weak_role] {
            assert_eq!(titles(&get_as(&weak, role, "/api/v1/data/task").await), own);
            get_as(&weak, role, "/api/v1/data/note").await.expect_error(403, "forbidden");
            get_as(&weak, role, "/api/v1/users").await.expect_error(403, "forbidden");
            assert_eq!(get_as(&weak, role, "/api/v1/roles").await.status, 200);
        }
        let strong = get_as(&weak, &admin_role, "/api/v1/openapi.json").await.text;
        assert!(!strong.contains("/data/note"));
        // If the role has none of the caller's rights, no access remains.
        let notes = role(&admin, "notes", json!([{ "resource": "note", "actions": ["read"] }])).await;
        get_as(&weak, &notes, "/api/v1/data/note").await.expect_error(403, "forbidden");
        get_as(&weak, &notes, "/api/v1/data/task").await.expect_error(403, "forbidden");
        // A caller who may not read roles cannot find out which roles exist or what they allow.
        let blind = key(&admin, "blind", json!([{ "resource": "task", "actions": ["read"] }])).await;
        for role in [&admin_role, &id_of(&admin, "blind").await, "no such role"] {
            get_as(&blind, role, "/api/v1/data/task").await.expect_error(403, "forbidden");
        }
        let anonymous = server.send(server.request("GET", "/api/v1/data/task").header(HEADER, &admin_role)).await;
        anonymous.expect_error(401, "unauthorized");
        get_as(&server.with_token("wrong".to_owned()), &admin_role, "/api/v1/data/task").await.expect_error(401, "unauthorized");
        // Users with the role also have the rights of `public`.
        let public = json!({ "permissions": [{ "resource": "note", "actions": ["read"] }] });
        assert_eq!(admin.patch("/api/v1/roles/public", public).await.status, 200);
        assert_eq!(titles(&get_as(&admin, &weak_role, "/api/v1/data/note").await), ["secret"]);
    }

    async fn only_reads_are_looked_at_as_a_role(server: Server) {
        let admin = server.admin().await;
        admin.make_task_object().await;
        let id = admin.make("task", json!({ "title": "a" })).await;
        let one = format!("/api/v1/data/task/{id}");
        let send = async |method: &str, path: &str, role: &str| {
            let request = admin.request(method, path).header(HEADER, role);
            server.send(if method == "GET" { request } else { request.json(&json!({})) }).await
        };
        for (method, path) in [
            ("POST", "/api/v1/data/task"), ("PATCH", one.as_str()), ("DELETE", one.as_str()), ("PUT", "/api/v1/graphql"),
            ("POST", "/api/v1/graphql"), ("POST", "/api/v1/mcp"), ("GET", "/api/v1/mcp"), ("DELETE", "/api/v1/mcp"), ("POST", "/api/v1/nothing"),
        ] {
            send(method, path, "admin").await.expect_error(400, "invalid_request");
        }
        assert_eq!(server.send(admin.request("HEAD", &one).header(HEADER, "admin")).await.status, 400);
        assert_eq!(admin.get(&one).await.status, 200);
        for role in ["nobody", "admin", "01a2027f-98d9-73a9-b111-9bb23759727a", "a%00b", "é", "admin,admin"] {
            let answer = send("GET", &one, role).await;
            assert!(matches!(answer.status, 400 | 404), "{role}: {}", answer.text);
        }
        for role in ["nobody", "admin"] {
            send("GET", &one, role).await.expect_error(404, "not_found");
        }
        send("GET", "/api/v1/graphql?query=%7Bschema_version%7D", "nobody").await;
        assert_eq!(send("GET", "/api/v1/graphql?query=%7B__typename%7D", "nobody").await.status, 404);
        send("GET", &one, "").await.expect_error(400, "invalid_request");
        let twice = admin.request("GET", &one).header(HEADER, "admin").header(HEADER, "public");
        server.send(twice).await.expect_error(400, "invalid_request");
        // The header has no effect on answers that do not depend on roles.
        for path in ["/api/auth/get-session", "/api/auth/list-sessions", "/api/v1/me", "/healthz", "/readyz"] {
            assert_eq!(send("GET", path, "nobody").await.text, admin.get(path).await.text, "{path}");
        }
        let signed_in = admin.request("POST", "/api/auth/sign-in/email").header(HEADER, "nobody");
        let body = json!({ "email": "admin@example.com", "password": "correct horse battery" });
        assert_eq!(server.send(signed_in.json(&body)).await.status, 200);
        let hook = server.send(server.request("POST", "/api/v1/hooks/none/none").header(HEADER, "nobody").json(&json!({}))).await;
        hook.expect_error(404, "not_found");
        // A connection for several operations would run them with all rights of the caller.
        let reserved = server.send(admin.request("PUT", "/api/v1/graphql").header("accept", "text/event-stream")).await;
        assert_eq!(reserved.status, 201, "{}", reserved.text);
        let opened = admin.request("GET", "/api/v1/graphql").header("accept", "text/event-stream");
        let opened = opened.header("x-graphql-event-stream-token", reserved.text).header(HEADER, id_of(&admin, "admin").await);
        assert_eq!(server.send(opened).await.status, 400);
    }

    async fn a_stream_follows_the_role(server: Server) {
        let admin = server.admin().await;
        admin.make_task_object().await;
        admin.define("note", json!([{ "name": "title", "type": "text" }])).await;
        let read = |object: &str| json!({ "resource": object, "actions": ["read"] });
        let id = role(&admin, "changing", json!([read("note"), read("data")])).await;
        let request = admin.request("GET", "/api/v1/events/stream").header(HEADER, &id).timeout(Duration::from_secs(120));
        let response = request.send().await.unwrap();
        assert_eq!(response.status(), 200);
        let mut stream = Box::pin(response.bytes_stream());
        // A comment shows that the stream is open.
        stream.next().await.unwrap().unwrap();
        admin.make("task", json!({ "title": "unseen" })).await;
        admin.make("note", json!({ "title": "first" })).await;
        let event = next(&mut stream).await.unwrap();
        assert!(event.contains("first") && !event.contains("unseen"), "{event}");
        // The role changes. The change applies from the next event on.
        let changed = json!({ "permissions": [read("task"), read("data")] });
        assert_eq!(admin.patch(&format!("/api/v1/roles/{id}"), changed).await.status, 200);
        admin.make("note", json!({ "title": "unseen now" })).await;
        admin.make("task", json!({ "title": "second" })).await;
        let event = next(&mut stream).await.unwrap();
        assert!(event.contains("second") && !event.contains("unseen"), "{event}");
        // The role is deleted, and the stream ends.
        assert_eq!(admin.delete(&format!("/api/v1/roles/{id}")).await.status, 204);
        admin.make("task", json!({ "title": "after the end" })).await;
        assert_eq!(next(&mut stream).await, None);
        // A caller who may no longer read roles cannot view the service as a role.
        let roles = json!({ "resource": "roles", "actions": ["read"] });
        let other = key(&admin, "keeper", json!([roles, read("task")])).await;
        let admin_role = id_of(&admin, "admin").await;
        assert_eq!(get_as(&other, &admin_role, "/api/v1/data/task").await.status, 200);
        assert_eq!(admin.patch("/api/v1/roles/keeper", json!({ "permissions": [read("task")] })).await.status, 200);
        until("the right is gone", async || get_as(&other, &admin_role, "/api/v1/data/task").await.status == 403).await;
        assert_eq!(other.get("/api/v1/data/task").await.status, 200);
    }
}

on_both_engines! {
    async fn without_enforcement_there_are_no_roles_to_look_as(engine: Engine) {
        let server = ServerBuilder::new(engine).env("SVC_REQUIRE_AUTH", "false").start().await;
        let admin = server.admin().await;
        admin.make_task_object().await;
        let message = "Viewing as a role needs enforcement (SVC_REQUIRE_AUTH): without it everybody may do everything. Leave out the \
                       header `x-svc-view-as`.";
        for who in [&admin, &server.with_token(String::new())] {
            let refused = get_as(who, "admin", "/api/v1/data/task").await.expect_error(400, "invalid_request");
            assert_eq!(refused["message"], message);
            let refused = get_as(who, "admin", "/api/v1/graphql?query=%7B__typename%7D").await.json();
            assert_eq!(refused["errors"][0]["message"], message);
        }
        assert_eq!(admin.get("/api/v1/data/task").await.status, 200);
    }
}

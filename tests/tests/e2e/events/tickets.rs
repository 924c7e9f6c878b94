//! Tickets: each opens one event stream, with the rights of the credential that it was made with.

use blockbase_tests::{Admin, Answer, Engine, Server, ServerBuilder, on_both_engines, until};
use futures_util::future::join_all;
use serde_json::{Value, json};

use super::Stream;

const TICKET: &str = "/api/v1/events/ticket";

/// Makes a ticket with a credential.
async fn new_ticket(who: &Admin<'_>) -> String {
    let made = who.post(TICKET, json!({})).await;
    assert_eq!(made.status, 201, "{}", made.text);
    made.data()["ticket"].as_str().unwrap().to_owned()
}

/// A request that opens a stream with a ticket, and no other credential.
fn with_ticket(server: &Server, ticket: &str, more: &str) -> reqwest::RequestBuilder {
    server.request("GET", &format!("/api/v1/events/stream?ticket={ticket}{more}"))
}

async fn open(server: &Server, ticket: &str) -> Stream {
    Stream::of(with_ticket(server, ticket, "")).await
}

/// Asserts the error of a ticket that is not valid, and returns its message.
#[track_caller]
fn assert_invalid(answer: &Answer) -> Value {
    answer.expect_error(401, "unauthorized")["message"].take()
}

async fn refused(server: &Server, ticket: &str) -> Value {
    assert_invalid(&server.send(with_ticket(server, ticket, "")).await)
}

async fn role(admin: &Admin<'_>, name: &str, permissions: Value) {
    let made = admin.post("/api/v1/roles", json!({ "name": name, "permissions": permissions })).await;
    assert_eq!(made.status, 201, "{}", made.text);
}

fn reads(object: &str) -> Value {
    json!([{ "resource": object, "actions": ["read"] }])
}

/// A user with a role that reads tasks, and their id.
async fn reader<'a>(admin: &Admin<'a>, name: &str) -> (Admin<'a>, String) {
    role(admin, &format!("{name}-role"), reads("task")).await;
    let user = admin.server.with_token(admin.server.sign_up(name).await);
    let id = user.get("/api/v1/me").await.json()["userId"].as_str().unwrap().to_owned();
    let given = admin.post(&format!("/api/v1/users/{id}/roles"), json!({ "roleId": format!("{name}-role") })).await;
    assert_eq!(given.status, 200, "{}", given.text);
    (user, id)
}

/// An API key with a role, and its id.
async fn key<'a>(admin: &Admin<'a>, role: &str) -> (Admin<'a>, String) {
    let made = admin.post("/api/v1/api-keys", json!({ "name": "k", "roleId": role })).await.json();
    let id = made["data"]["id"].as_str().unwrap().to_owned();
    (admin.server.with_token(made["key"].as_str().unwrap().to_owned()), id)
}

async fn make(admin: &Admin<'_>, title: &str) {
    admin.make("task", json!({ "title": title })).await;
}

async fn title(stream: &mut Stream) -> String {
    stream.event().await["payload"]["after"]["title"].as_str().unwrap().to_owned()
}

/// Makes a record, and waits until its event is published. On Postgres, that is a moment after the commit.
async fn make_published(admin: &Admin<'_>, title_of_record: &str) {
    let mut stream = Stream::open(admin, "").await;
    make(admin, title_of_record).await;
    while title(&mut stream).await != title_of_record {}
}

/// Waits until a stream ends. It shows no event before.
async fn ends(mut stream: Stream) {
    while let Some(frame) = stream.frame().await {
        assert!(frame.starts_with(':'), "{frame}");
    }
}

async fn stored(server: &Server) -> Vec<Vec<String>> {
    server.sql("SELECT ticket_hash, owner, credential_kind, credential_hash FROM svc_stream_tickets").await
}

on_both_engines! {
    async fn a_ticket_opens_one_stream(server: Server) {
        let admin = server.admin().await;
        admin.make_task_object().await;
        let made = admin.post(TICKET, json!({})).await;
        assert_eq!((made.status, made.headers["cache-control"].to_str().unwrap()), (201, "no-store"));
        let data = made.data();
        let members: Vec<&String> = data.as_object().unwrap().keys().collect();
        assert_eq!(members, ["ticket", "expiresAt"]);
        let ticket = data["ticket"].as_str().unwrap();
        assert!(ticket.len() == 43 && ticket.bytes().all(|byte| byte.is_ascii_alphanumeric()), "{ticket}");
        let expires_at = chrono::DateTime::parse_from_rfc3339(data["expiresAt"].as_str().unwrap()).unwrap();
        // The answer may come within the same millisecond.
        let left = expires_at.timestamp_millis() - chrono::Utc::now().timestamp_millis();
        assert!((0..=60_000).contains(&left), "{left}");
        // Only hashes are stored, and the owner.
        let rows = stored(&server).await;
        assert_eq!((rows.len(), rows[0][2].as_str()), (1, "session"));
        for secret in [ticket, admin.token.as_str()] {
            assert!(!rows[0].iter().any(|cell| cell.contains(secret)), "{rows:?}");
        }

        let mut stream = open(&server, ticket).await;
        assert!(stored(&server).await.is_empty());
        make(&admin, "seen").await;
        assert_eq!(title(&mut stream).await, "seen");
        // A used ticket gets the same answer as one that never existed.
        let used = refused(&server, ticket).await;
        let mut unknown = ticket.to_owned();
        unknown.replace_range(..1, if ticket.starts_with('a') { "b" } else { "a" });
        for other in [unknown.as_str(), "", "x", "%00", admin.token.as_str()] {
            assert_eq!(refused(&server, other).await, used, "{other:?}");
        }
        make(&admin, "still open").await;
        assert_eq!(title(&mut stream).await, "still open");
    }

    async fn a_ticket_that_is_used_twice_at_once_opens_one_stream(server: Server) {
        let admin = server.admin().await;
        // On Postgres, the ticket can be used on any instance.
        let other = match server.engine() {
            Engine::Sqlite => None,
            Engine::Postgres => Some(server.builder().start().await),
        };
        for _ in 0..5 {
            let ticket = new_ticket(&admin).await;
            let asked = (0..16).map(|number| {
                let server = other.as_ref().filter(|_| number % 2 == 1).unwrap_or(&server);
                with_ticket(server, &ticket, "").send()
            });
            let answers: Vec<u16> = join_all(asked).await.into_iter().map(|answer| answer.unwrap().status().as_u16()).collect();
            assert_eq!(answers.iter().filter(|status| **status == 200).count(), 1, "{answers:?}");
            assert_eq!(answers.iter().filter(|status| **status == 401).count(), 15, "{answers:?}");
        }
    }

    async fn a_ticket_that_comes_late_opens_nothing(server: Server) {
        let admin = server.admin().await;
        let late = new_ticket(&admin).await;
        let message = refused(&server, "none").await;
        server.sql("UPDATE svc_stream_tickets SET expires_at = expires_at - 60000").await;
        assert_eq!(refused(&server, &late).await, message);
        let kept = new_ticket(&admin).await;
        open(&server, &kept).await;
    }

    async fn a_refused_request_uses_up_no_ticket(server: Server) {
        let admin = server.admin().await;
        let ticket = new_ticket(&admin).await;
        for (more, status, code) in [
            ("&topics=%FF", 400, "invalid_request"),
            ("&topics=data..x", 400, "invalid_request"),
            ("&colour=1", 400, "invalid_request"),
            ("&resume=perhaps", 400, "invalid_request"),
            ("&since=nothing", 404, "not_found"),
            ("&ticket=x", 400, "invalid_request"),
        ] {
            server.send(with_ticket(&server, &ticket, more)).await.expect_error(status, code);
        }
        let head = server.send(server.request("HEAD", &format!("/api/v1/events/stream?ticket={ticket}"))).await;
        assert_eq!((head.status, head.text.as_str()), (200, ""));
        let foreign = server.send(with_ticket(&server, &ticket, "").header("origin", "https://evil.example")).await;
        assert_eq!((foreign.status, &foreign.json()["code"]), (403, &json!("INVALID_ORIGIN")));
        let response = with_ticket(&server, &ticket, "").header("origin", &server.base).send().await.unwrap();
        for (name, value) in [("access-control-allow-origin", server.base.as_str()), ("cache-control", "no-store")] {
            assert_eq!(response.headers()[name], value);
        }
        Stream::of_response(response).await;
    }

    async fn a_ticket_is_a_credential_of_the_stream_alone(server: Server) {
        let admin = server.admin().await;
        admin.make_task_object().await;
        admin.define("note", json!([{ "name": "ticket", "type": "text" }])).await;
        let (ann, _) = reader(&admin, "ann").await;
        let ticket = new_ticket(&admin).await;
        let call = async |method: &str, path: &str, body: Option<Value>| {
            let path = format!("{path}{}ticket={ticket}", if path.contains('?') { '&' } else { '?' });
            server.call(method, &path, body).await
        };
        for (method, path) in [
            ("GET", "/api/v1/events"),
            ("GET", "/api/v1/data/task"),
            ("GET", "/api/v1/data/note"),
            ("GET", "/api/v1/users"),
            ("GET", "/api/v1/me/permissions"),
            ("POST", TICKET),
            ("POST", "/api/v1/data/task"),
            ("POST", "/api/v1/mcp"),
        ] {
            let answer = call(method, path, (method == "POST").then(|| json!({ "title": "x" }))).await;
            assert_eq!(answer.status, 401, "{method} {path}: {}", answer.text);
        }
        assert_eq!(call("GET", "/api/v1/me", None).await.json(), json!({ "authenticated": false }));
        let query = json!({ "query": "{ svc_objects }" });
        let answer = call("POST", "/api/v1/graphql", Some(query.clone())).await;
        assert!(!answer.text.contains("\"task\""), "{}", answer.text);
        assert!(admin.post("/api/v1/graphql", query).await.text.contains("task"));
        // As elsewhere, a parameter with the name of a field is a filter.
        assert_eq!(admin.get(&format!("/api/v1/data/note?ticket={ticket}")).await.data(), json!([]));

        // With a key or a token beside it, it is not clear which one counts.
        let (by_key, _) = key(&admin, "admin").await;
        for request in [
            with_ticket(&server, &ticket, "").bearer_auth(&ann.token),
            with_ticket(&server, &ticket, "").bearer_auth("nonsense"),
            with_ticket(&server, &ticket, "").header("x-api-key", &by_key.token),
        ] {
            server.send(request).await.expect_error(400, "invalid_request");
        }
        // A browser sends its cookie by itself, so the cookie does not count.
        let cookie = async |name: &str| {
            let body = json!({ "email": format!("{name}@example.com"), "password": "correct horse battery" });
            let signed_in = server.call("POST", "/api/auth/sign-in/email", Some(body)).await;
            signed_in.headers["set-cookie"].to_str().unwrap().split(';').next().unwrap().to_owned()
        };
        let of_ann = new_ticket(&ann).await;
        let mut stream = Stream::of(with_ticket(&server, &of_ann, "&topics=%23").header("cookie", cookie("admin").await)).await;
        admin.make("note", json!({ "ticket": "hidden" })).await;
        make(&admin, "visible").await;
        assert_eq!(title(&mut stream).await, "visible");
        let invalid = with_ticket(&server, &of_ann, "").header("cookie", cookie("ann").await);
        assert_invalid(&server.send(invalid).await);
        open(&server, &ticket).await;
        // A cookie can make a ticket only from a trusted origin.
        let by_cookie = || async { server.request("POST", TICKET).header("cookie", cookie("ann").await) };
        assert_eq!(server.send(by_cookie().await).await.json()["code"], "MISSING_OR_NULL_ORIGIN");
        let made = server.send(by_cookie().await.header("origin", &server.base)).await;
        open(&server, made.data()["ticket"].as_str().unwrap()).await;
    }

    async fn a_ticket_ends_with_its_session_or_key(server: Server) {
        let admin = server.admin().await;
        admin.make_task_object().await;
        let message = refused(&server, "none").await;

        // A sign-out.
        let (ann, ann_id) = reader(&admin, "ann").await;
        let (stream, unused) = (open(&server, &new_ticket(&ann).await).await, new_ticket(&ann).await);
        let other = {
            let body = json!({ "email": "ann@example.com", "password": "correct horse battery" });
            let signed_in = server.call("POST", "/api/auth/sign-in/email", Some(body)).await.json();
            server.with_token(signed_in["token"].as_str().unwrap().to_owned())
        };
        let mut of_other = open(&server, &new_ticket(&other).await).await;
        assert_eq!(ann.post("/api/auth/sign-out", json!({})).await.status, 200);
        make_published(&admin, "after the session").await;
        ends(stream).await;
        assert_eq!(refused(&server, &unused).await, message);
        // Another session of the same user goes on.
        assert_eq!(title(&mut of_other).await, "after the session");

        // A ban.
        let unused = new_ticket(&other).await;
        let banned = admin.patch(&format!("/api/v1/users/{ann_id}"), json!({ "banned": true })).await;
        assert_eq!(banned.status, 200, "{}", banned.text);
        make_published(&admin, "after the ban").await;
        ends(of_other).await;
        assert_eq!(refused(&server, &unused).await, message);

        // A deleted key.
        let (by_key, key_id) = key(&admin, "admin").await;
        let (stream, unused) = (open(&server, &new_ticket(&by_key).await).await, new_ticket(&by_key).await);
        assert_eq!(stored(&server).await.iter().filter(|row| row[2] == "api_key").count(), 1);
        assert_eq!(admin.delete(&format!("/api/v1/api-keys/{key_id}")).await.status, 204);
        make_published(&admin, "after the key").await;
        ends(stream).await;
        assert_eq!(refused(&server, &unused).await, message);

        // The end of a session's time.
        let (bob, bob_id) = reader(&admin, "bob").await;
        let (stream, unused) = (open(&server, &new_ticket(&bob).await).await, new_ticket(&bob).await);
        server.sql(&format!("UPDATE svc_sessions SET expires_at = 1 WHERE user_id = '{bob_id}'")).await;
        ends(stream).await;
        assert_eq!(refused(&server, &unused).await, message);
    }

    async fn a_stream_by_ticket_has_the_rights_of_each_moment(server: Server) {
        let admin = server.admin().await;
        admin.make_task_object().await;
        admin.define("note", json!([{ "name": "title", "type": "text" }])).await;
        let (ann, _) = reader(&admin, "ann").await;
        let (unused, mut stream) = (new_ticket(&ann).await, open(&server, &new_ticket(&ann).await).await);
        admin.make("note", json!({ "title": "hidden note" })).await;
        make(&admin, "visible task").await;
        assert_eq!(title(&mut stream).await, "visible task");
        let change = async |object: &str| {
            let changed = admin.patch("/api/v1/roles/ann-role", json!({ "permissions": reads(object) })).await;
            assert_eq!(changed.status, 200, "{}", changed.text);
        };
        change("note").await;
        make(&admin, "hidden task").await;
        admin.make("note", json!({ "title": "visible note" })).await;
        assert_eq!(title(&mut stream).await, "visible note");
        // The ticket was made with other rights. It has those of now.
        let mut late = open(&server, &unused).await;
        make(&admin, "hidden from both").await;
        admin.make("note", json!({ "title": "for both" })).await;
        assert_eq!((title(&mut stream).await, title(&mut late).await), ("for both".to_owned(), "for both".to_owned()));
    }
}

on_both_engines! {
    async fn a_guest_has_tickets_too(engine: Engine) {
        let server = ServerBuilder::new(engine).env("SVC_ANONYMOUS_AUTH", "true").start().await;
        let admin = server.admin().await;
        admin.make_task_object().await;
        let own = json!([{ "resource": "task", "actions": ["manage"], "rowPolicy": "own" }]);
        assert_eq!(admin.patch("/api/v1/roles/anonymous", json!({ "permissions": own })).await.status, 200);
        let signed_in = server.call("POST", "/api/auth/sign-in/anonymous", None).await.json();
        let guest = server.with_token(signed_in["token"].as_str().unwrap().to_owned());
        let (mut stream, unused) = (open(&server, &new_ticket(&guest).await).await, new_ticket(&guest).await);
        make(&admin, "of admin").await;
        make(&guest, "of the guest").await;
        assert_eq!(title(&mut stream).await, "of the guest");
        // When the guest becomes a user, the guest's session ends.
        let body = json!({ "name": "Ann", "email": "ann@example.com", "password": "correct horse battery" });
        let upgraded = server.send(guest.request("POST", "/api/auth/sign-up/email").json(&body)).await;
        assert_eq!(upgraded.status, 200, "{}", upgraded.text);
        make(&admin, "after the guest").await;
        ends(stream).await;
        refused(&server, &unused).await;
    }

    async fn a_flood_of_tickets_is_bounded(engine: Engine) {
        let server = ServerBuilder::new(engine)
            .env("SVC_ANONYMOUS_AUTH", "true")
            .env("SVC_MAX_STREAMS_PER_PRINCIPAL", "3")
            .start()
            .await;
        let admin = server.admin().await;
        let guest = async || {
            let signed_in = server.call("POST", "/api/auth/sign-in/anonymous", None).await.json();
            server.with_token(signed_in["token"].as_str().unwrap().to_owned())
        };
        // Guests of one network share their tickets, because anybody can become any number of guests.
        let guests = [guest().await, guest().await, guest().await, guest().await];
        let flood = join_all((0..40).map(|number| guests[number % 4].post(TICKET, json!({})))).await;
        let (made, refused): (Vec<&Answer>, Vec<&Answer>) = flood.iter().partition(|answer| answer.status == 201);
        assert_eq!((made.len(), refused.len()), (3, 37));
        for answer in refused {
            answer.expect_error(429, "rate_limited");
            let seconds: u32 = answer.headers["retry-after"].to_str().unwrap().parse().unwrap();
            assert!((1..=61).contains(&seconds), "{seconds}");
        }
        assert_eq!(stored(&server).await.len(), 3);
        // Nobody else is refused, and a used ticket makes room for the next one.
        let of_admin = new_ticket(&admin).await;
        open(&server, &of_admin).await;
        let used = made[0].data();
        let _stream = open(&server, used["ticket"].as_str().unwrap()).await;
        new_ticket(&guests[1]).await;
        guests[1].post(TICKET, json!({})).await.expect_error(429, "rate_limited");
        // Expired tickets do not count, and the next ticket deletes them.
        server.sql("UPDATE svc_stream_tickets SET expires_at = 1").await;
        new_ticket(&guests[2]).await;
        assert_eq!(stored(&server).await.len(), 1);
        // A caller without a credential makes none.
        server.call("POST", TICKET, None).await.expect_error(401, "unauthorized");
    }

    async fn a_ticket_is_not_logged(engine: Engine) {
        let server = ServerBuilder::new(engine).env("SVC_LOG", "debug,blockbase_store::sql=trace").env("SVC_TELEMETRY", "true").start().await;
        let admin = server.admin().await;
        let used = new_ticket(&admin).await;
        let stream = open(&server, &used).await;
        refused(&server, &used).await;
        let unknown = "UnknownTicketUnknownTicketUnknownTicketUnkn";
        refused(&server, unknown).await;
        server.call("GET", &format!("/nothing/here?ticket={unknown}"), None).await;
        drop(stream);
        // The line of this request comes after those of the others.
        server.send(admin.request("GET", "/api/v1/me").header("x-request-id", "the-last-request")).await;
        let log = server.log_with("the-last-request").await;
        assert!(log.contains("/api/v1/events/stream") && log.contains("svc_stream_tickets"), "{log}");
        for secret in [used.as_str(), unknown, "ticket="] {
            assert!(!log.contains(secret), "{log}");
        }
        // Nor is it in an event.
        let events = admin.get("/api/v1/events?limit=500").await;
        assert_eq!(events.status, 200);
        assert!(!events.text.contains(&used));
    }

    async fn without_enforcement_a_ticket_needs_no_credential(engine: Engine) {
        let server = ServerBuilder::new(engine).env("SVC_REQUIRE_AUTH", "false").start().await;
        let made = server.call("POST", TICKET, None).await;
        assert_eq!(made.status, 201, "{}", made.text);
        let ticket = made.data()["ticket"].as_str().unwrap().to_owned();
        assert_eq!(stored(&server).await[0][2], "");
        open(&server, &ticket).await;
        // A ticket that is presented has to be valid.
        refused(&server, &ticket).await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_stream_by_ticket_ends_when_another_instance_ends_its_session() {
    let server = ServerBuilder::new(Engine::Postgres).start().await;
    let other = server.builder().start().await;
    let admin = server.admin().await;
    admin.make_task_object().await;
    let (ann, _) = reader(&admin, "ann").await;
    let (stream, unused) = (open(&other, &new_ticket(&ann).await).await, new_ticket(&ann).await);
    assert_eq!(ann.post("/api/auth/sign-out", json!({})).await.status, 200);
    // The topics are malformed, so the request does not use the ticket up.
    let status = async || with_ticket(&other, &unused, "&topics=data..x").send().await.unwrap().status().as_u16();
    until("the ticket ends with its session", async || status().await != 400).await;
    assert_eq!(status().await, 401);
    ends(stream).await;
}

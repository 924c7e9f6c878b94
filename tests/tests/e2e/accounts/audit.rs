//! The audit log: one row for each administrative act and none for an act that fails, failed sign-ins, and who sees what.

use std::collections::BTreeSet;
use std::os::unix::fs::MetadataExt;

use blockbase_tests::{Admin, Answer, MailServer, Server, ServerBuilder, example_block, on_both_engines, pack, test_block};
use futures_util::future::join_all;
use serde_json::{Value, json};

use crate::accounts::mail::{path_of, sending_to};
use crate::accounts::roles::{key, role, user};
use crate::edge::openapi::operations;

const PASSWORD: &str = "correct horse battery";
/// The members of an entry, in their order.
const MEMBERS: [&str; 11] =
    ["id", "at", "actor", "credential", "address", "action", "resource", "target", "before", "after", "requestId"];

/// The entries that match a query string, the newest first.
async fn log(who: &Admin<'_>, query: &str) -> Vec<Value> {
    who.get(&format!("/api/v1/audit?{query}")).await.data().as_array().unwrap().clone()
}

/// The values of these members, which are texts.
fn members<'v, const N: usize>(value: &'v Value, names: [&str; N]) -> [&'v str; N] {
    names.map(|name| value[name].as_str().unwrap_or_else(|| panic!("`{name}` is no text in {value}")))
}

/// The number of rows in the database.
async fn rows(server: &Server) -> usize {
    server.sql("SELECT id FROM svc_audit").await.len()
}

/// All text of the table.
async fn whole_table(server: &Server) -> String {
    let columns = "id, actor, credential, address, action, resource, target, state_before, state_after, request_id";
    server.sql(&format!("SELECT {columns}, subject, counted FROM svc_audit")).await.concat().join("\n")
}

async fn sign_in(server: &Server, email: &str, password: &str) -> Answer {
    server.call("POST", "/api/auth/sign-in/email", Some(json!({ "email": email, "password": password }))).await
}

/// The beginnings of the operations that change something and are no administrative acts: records, the surfaces that run other
/// operations, calls of blocks, what callers do with their own account, and questions that are sent by POST.
const NO_ACTS: [&str; 20] = [
    "post /api/v1/data/",
    "patch /api/v1/data/",
    "delete /api/v1/data/",
    "post /api/v1/batch",
    "post /api/v1/graphql",
    "put /api/v1/graphql",
    "delete /api/v1/graphql",
    "post /api/v1/mcp",
    "delete /api/v1/mcp",
    "post /api/v1/hooks/",
    "put /api/v1/hooks/",
    "patch /api/v1/hooks/",
    "delete /api/v1/hooks/",
    "post /api/v1/blocks/courier/actions/",
    "post /api/v1/blocks/inspect",
    "post /api/v1/roles/{id}/explain",
    "post /api/v1/events/ticket",
    "patch /api/v1/me/preferences",
    "post /api/auth/",
    // It needs an account that the configuration made. A test of its own checks it.
    "post /api/v1/admin/claim",
];

/// The body of a request.
enum Sent {
    Nothing,
    Json(Value),
    Block(Vec<u8>),
}

/// Every administrative act once, by its operation, with the checks of its row.
struct Acts<'a> {
    admin: Admin<'a>,
    /// A user without rights, who is refused.
    stranger: Admin<'a>,
    actor: String,
    covered: BTreeSet<String>,
    /// Everything secret that the answers showed.
    secrets: Vec<String>,
}

/// The secret texts of an answer.
fn secrets_in(value: &Value, found: &mut Vec<String>) {
    match value {
        Value::Object(members) => {
            for (name, member) in members {
                match member.as_str().filter(|_| ["key", "secret", "link"].contains(&name.as_str())) {
                    Some(text) => found.push(text.rsplit("#token=").next().unwrap().to_owned()),
                    None => secrets_in(member, found),
                }
            }
        }
        Value::Array(items) => items.iter().for_each(|item| secrets_in(item, found)),
        _ => {}
    }
}

impl Acts<'_> {
    async fn send(&self, who: &Admin<'_>, method: &str, path: &str, body: &Sent) -> Answer {
        let id = format!("act-{}", self.covered.len());
        let request = who.request(method, path).header("x-request-id", id);
        self.admin
            .server
            .send(match body {
                Sent::Nothing => request,
                Sent::Json(body) => request.json(body),
                Sent::Block(file) => request.header("content-type", "application/wasm").body(file.clone()),
            })
            .await
    }

    /// Sends the request of an act, and checks that exactly one row was written. The row's target is the `id` of the answer if
    /// `target` is empty. A caller without rights sends the same request first, and no row is written. Returns the answer.
    async fn act(&mut self, operation: &str, path: &str, body: Sent, (action, resource, target): (&str, &str, &str)) -> Value {
        let server = self.admin.server;
        let (method, pattern) = operation.split_once(' ').unwrap();
        let (method, path) = (method.to_uppercase(), if path.is_empty() { pattern } else { path });
        let before = rows(server).await;
        let refused = self.send(&self.stranger, &method, path, &body).await;
        assert!([403, 404].contains(&refused.status), "{operation}: {} {}", refused.status, refused.text);
        assert_eq!(rows(server).await, before, "{operation}: a refused request left a row");

        // Requests of the same operation have ids of their own.
        let name = (1..).map(|number| format!("{operation} #{number}")).find(|name| !self.covered.contains(name)).unwrap();
        self.covered.insert(name);
        let answer = self.send(&self.admin, &method, path, &body).await;
        assert!(answer.status < 300, "{operation}: {} {}", answer.status, answer.text);
        assert_eq!(rows(server).await, before + 1, "{operation}: an act has one row");
        let columns = "action, resource, target, actor, credential, address";
        let id = format!("act-{}", self.covered.len());
        let row = server.sql(&format!("SELECT {columns} FROM svc_audit WHERE request_id = '{id}'")).await;
        let shown = if answer.text.is_empty() { Value::Null } else { answer.json() };
        secrets_in(&shown, &mut self.secrets);
        let target = if target.is_empty() { shown["data"]["id"].as_str().unwrap() } else { target };
        assert_eq!(row[0][..3], [action, resource, target], "{operation}");
        assert_eq!(row[0][3], self.actor, "{operation}");
        assert!(row[0][4].starts_with("session:") && row[0][5] == "127.0.0.1", "{operation}: {row:?}");
        shown
    }

    /// The acts on objects, fields and relationships.
    async fn on_the_schema(&mut self) {
        let object = "/api/v1/objects/note";
        let note = json!({ "name": "note", "fields": [{ "name": "title", "type": "text" }] });
        self.act("post /api/v1/objects", "", Sent::Json(note), ("create", "objects", "note")).await;
        let label = json!({ "label": "Notes" });
        self.act("patch /api/v1/objects/{name}", object, Sent::Json(label), ("update", "objects", "note")).await;
        let (fields, field) = (format!("{object}/fields"), format!("{object}/fields/body"));
        let body = json!({ "name": "body", "type": "text" });
        self.act("post /api/v1/objects/{name}/fields", &fields, Sent::Json(body), ("add_field", "objects", "note")).await;
        let operation = "patch /api/v1/objects/{name}/fields/{field}";
        self.act(operation, &field, Sent::Json(json!({ "max": 9 })), ("alter_field", "objects", "note")).await;
        let operation = "delete /api/v1/objects/{name}/fields/{field}";
        self.act(operation, &field, Sent::Nothing, ("drop_field", "objects", "note")).await;
        let parent = json!({ "name": "parent", "kind": "many_to_one", "source": "note", "target": "note" });
        let wanted = ("create_relationship", "objects", "note");
        let made = self.act("post /api/v1/relationships", "", Sent::Json(parent), wanted).await;
        let path = format!("/api/v1/relationships/{}", made["data"]["id"]);
        let wanted = ("delete_relationship", "objects", "note");
        self.act("delete /api/v1/relationships/{id}", &path, Sent::Nothing, wanted).await;
        // A plan changes nothing.
        let before = rows(self.admin.server).await;
        let planned = self.admin.post("/api/v1/objects?dryRun=true", json!({ "name": "planned" })).await;
        assert_eq!((planned.status, rows(self.admin.server).await), (200, before), "{}", planned.text);
        self.act("delete /api/v1/objects/{name}", object, Sent::Nothing, ("delete", "objects", "note")).await;
    }

    /// The acts on roles, users and API keys.
    async fn on_people(&mut self) {
        let role = json!({ "name": "helper", "permissions": [] });
        let made = self.act("post /api/v1/roles", "", Sent::Json(role), ("create", "roles", "")).await;
        let helper = made["data"]["id"].as_str().unwrap();
        let path = format!("/api/v1/roles/{helper}");
        let changes = json!({ "permissions": [{ "resource": "events", "actions": ["read"] }] });
        self.act("patch /api/v1/roles/{id}", &path, Sent::Json(changes), ("update", "roles", helper)).await;

        let new = json!({ "email": "eve@example.com", "name": "Eve" });
        let made = self.act("post /api/v1/users", "", Sent::Json(new), ("invite", "users", "")).await;
        let eve = made["data"]["id"].as_str().unwrap();
        let path = format!("/api/v1/users/{eve}");
        let wanted = ("make_password_link", "users", eve);
        let link = format!("{path}/password-link");
        let made = self.act("post /api/v1/users/{id}/password-link", &link, Sent::Nothing, wanted).await;
        let token = made["data"]["link"].as_str().unwrap().rsplit("#token=").next().unwrap().to_owned();
        let body = json!({ "newPassword": PASSWORD, "token": token });
        let server = self.admin.server;
        assert_eq!(server.call("POST", "/api/auth/reset-password", Some(body)).await.status, 200);
        for _ in 0..3 {
            let signed_in = sign_in(server, "eve@example.com", PASSWORD).await.json();
            self.secrets.push(signed_in["token"].as_str().unwrap().to_owned());
        }
        let sessions = format!("{path}/sessions");
        let first = self.admin.get(&sessions).await.data()[0]["id"].as_str().unwrap().to_owned();
        let one = format!("{sessions}/{first}");
        let operation = "delete /api/v1/users/{id}/sessions/{session}";
        self.act(operation, &one, Sent::Nothing, ("end_session", "users", eve)).await;
        let operation = "delete /api/v1/users/{id}/sessions";
        self.act(operation, &sessions, Sent::Nothing, ("end_sessions", "users", eve)).await;
        let operation = "patch /api/v1/users/{id}";
        for (changes, action) in [
            (json!({ "name": "Eve of Example" }), "update"),
            (json!({ "banned": true }), "ban"),
            (json!({ "banned": false, "name": "Eve" }), "unban"),
        ] {
            self.act(operation, &path, Sent::Json(changes), (action, "users", eve)).await;
        }
        let (roles, given) = (format!("{path}/roles"), json!({ "roleId": "helper" }));
        self.act("post /api/v1/users/{id}/roles", &roles, Sent::Json(given), ("give_role", "users", eve)).await;
        let taken = format!("{roles}/{helper}");
        let operation = "delete /api/v1/users/{id}/roles/{role}";
        self.act(operation, &taken, Sent::Nothing, ("take_role", "users", eve)).await;

        let new = json!({ "name": "ci", "roleId": "helper", "userId": eve });
        let made = self.act("post /api/v1/api-keys", "", Sent::Json(new), ("create", "api_keys", "")).await;
        let key = made["data"]["id"].as_str().unwrap();
        let path_of_key = format!("/api/v1/api-keys/{key}");
        let adopt = format!("{path_of_key}/adopt");
        self.act("post /api/v1/api-keys/{id}/adopt", &adopt, Sent::Nothing, ("adopt", "api_keys", key)).await;
        self.act("delete /api/v1/api-keys/{id}", &path_of_key, Sent::Nothing, ("delete", "api_keys", key)).await;

        self.act("delete /api/v1/users/{id}", &path, Sent::Nothing, ("delete", "users", eve)).await;
        let path = format!("/api/v1/roles/{helper}");
        self.act("delete /api/v1/roles/{id}", &path, Sent::Nothing, ("delete", "roles", helper)).await;
    }

    /// The acts on webhooks, subscriptions and deliveries.
    async fn on_events(&mut self) {
        let new = json!({
            "name": "out", "url": "https://webhook.invalid/in?token=in-the-query", "topics": ["block.#"],
            "headers": { "authorization": "Bearer in-the-header" },
        });
        self.secrets.extend(["in-the-query", "in-the-header"].map(str::to_owned));
        let made = self.act("post /api/v1/webhooks", "", Sent::Json(new), ("create", "webhooks", "")).await;
        let webhook = made["data"]["id"].as_str().unwrap();
        let path = format!("/api/v1/webhooks/{webhook}");
        let changes = json!({ "topics": ["block.installed"] });
        self.act("patch /api/v1/webhooks/{id}", &path, Sent::Json(changes), ("update", "webhooks", webhook)).await;
        for (verb, action) in [("test", "test"), ("rotate-secret", "rotate_secret"), ("adopt", "adopt")] {
            let operation = format!("post /api/v1/webhooks/{{id}}/{verb}");
            let sent = format!("{path}/{verb}");
            self.act(&operation, &sent, Sent::Nothing, (action, "webhooks", webhook)).await;
        }
        let updated = log(&self.admin, &format!("target={webhook}&action=update")).await.remove(0);
        assert_eq!(members(&updated["before"], ["name", "url"]), ["out", "https://webhook.invalid/in"]);
        let topics = [&updated["before"]["topics"], &updated["after"]["topics"]];
        assert_eq!(topics, [&json!(["block.#"]), &json!(["block.installed"])]);
        self.act("delete /api/v1/webhooks/{id}", &path, Sent::Nothing, ("delete", "webhooks", webhook)).await;

        let new = json!({ "event": "nothing.#", "consumer": "listener", "handler": "log_event" });
        let wanted = ("subscribe", "events", "listener");
        self.act("post /api/v1/events/subscriptions", "", Sent::Json(new), wanted).await;
        let path = "/api/v1/events/subscriptions/listener";
        let adopt = format!("{path}/adopt");
        let operation = "post /api/v1/events/subscriptions/{consumer}/adopt";
        self.act(operation, &adopt, Sent::Nothing, ("adopt", "events", "listener")).await;
        let retry = "post /api/v1/events/deliveries/retry";
        for event in ["failed-one", "failed-two"] {
            let values = format!("VALUES ('{event}', 't', '{{}}', 0, 0)");
            let server = self.admin.server;
            server.sql(&format!("INSERT INTO svc_events (id, topic, payload, depth, occurred_at) {values}")).await;
            let values = format!("SELECT seq, 'listener', 'log_event', 'failed', TRUE, 5 FROM svc_events WHERE id = '{event}'");
            let columns = "(event_seq, consumer, handler, status, dead, attempts)";
            server.sql(&format!("INSERT INTO svc_deliveries {columns} {values}")).await;
        }
        let one = json!({ "eventId": "failed-one", "consumer": "listener" });
        self.act(retry, "", Sent::Json(one), ("retry", "events", "listener")).await;
        let dead = json!({ "dead": true, "consumer": "listener" });
        self.act(retry, "", Sent::Json(dead.clone()), ("retry", "events", "listener")).await;
        // A retry that finds nothing changes nothing.
        let before = rows(self.admin.server).await;
        assert_eq!(self.admin.post("/api/v1/events/deliveries/retry", dead).await.data(), json!({ "count": 0 }));
        assert_eq!(rows(self.admin.server).await, before);
        let operation = "delete /api/v1/events/subscriptions/{consumer}";
        self.act(operation, path, Sent::Nothing, ("unsubscribe", "events", "listener")).await;
    }

    /// The acts on blocks and tasks.
    async fn on_blocks_and_tasks(&mut self) {
        let path = "/api/v1/blocks/courier";
        let config = json!({ "type": "object", "properties": { "greeting": { "type": "string" } } });
        for (version, query, action) in [("1.0.0", "", "install"), ("1.1.0", "?upgrade=true", "upgrade")] {
            let manifest = json!({
                "name": "courier", "version": version, "actions": [{ "name": "echo" }], "requires": { "plugins": ["log"] },
                "permissions": { "secrets": ["KEY"] }, "config": config,
            });
            let file = pack(example_block("echo").await, manifest).await.unwrap();
            let before = rows(self.admin.server).await;
            let dry = if query.is_empty() { "?dryRun=true" } else { "?upgrade=true&dryRun=true" };
            assert_eq!(self.admin.install(dry, file.clone()).await.status, 200);
            assert_eq!(rows(self.admin.server).await, before, "a dry run changes nothing");
            let (file, install) = (Sent::Block(file), format!("/api/v1/blocks{query}"));
            self.act("post /api/v1/blocks", &install, file, (action, "blocks", "courier")).await;
        }
        let (secrets, secret) = (format!("{path}/secrets"), json!({ "name": "KEY", "value": "the secret of the block" }));
        self.secrets.push("the secret of the block".to_owned());
        let operation = "post /api/v1/blocks/{block}/secrets";
        self.act(operation, &secrets, Sent::Json(secret), ("set_secret", "blocks", "courier")).await;
        let rollback = format!("{path}/rollback");
        let operation = "post /api/v1/blocks/{block}/rollback";
        self.act(operation, &rollback, Sent::Json(json!({})), ("roll_back", "blocks", "courier")).await;
        let operation = "delete /api/v1/blocks/{block}/secrets/{name}";
        let one = format!("{secrets}/KEY");
        self.act(operation, &one, Sent::Nothing, ("delete_secret", "blocks", "courier")).await;
        self.secrets.push("in the configuration".to_owned());
        for (changes, action) in [
            (json!({ "enabled": false }), "disable"),
            (json!({ "enabled": true }), "enable"),
            (json!({ "config": { "greeting": "in the configuration" } }), "configure"),
        ] {
            self.act("patch /api/v1/blocks/{block}", path, Sent::Json(changes), (action, "blocks", "courier")).await;
        }
        let configured = log(&self.admin, "action=configure").await.remove(0);
        let keys = [&configured["before"]["configKeys"], &configured["after"]["configKeys"]];
        assert_eq!(keys, [&json!([]), &json!(["greeting"])]);
        let adopt = format!("{path}/adopt");
        let operation = "post /api/v1/blocks/{block}/adopt";
        self.act(operation, &adopt, Sent::Nothing, ("adopt", "blocks", "courier")).await;

        let manifest = json!({
            "name": "listener", "version": "1.0.0", "requires": { "plugins": ["data", "log"] },
            "subscriptions": [{ "event": "block.#", "consumer": "listener:x", "handler": "hear" }],
        });
        let file = pack(test_block("listener").await, manifest).await.unwrap();
        assert_eq!(self.admin.install("", file).await.status, 201);
        let events = self.admin.get("/api/v1/events?topic=block.installed&limit=1").await.data();
        let replay = Sent::Json(json!({ "eventId": events[0]["id"] }));
        let operation = "post /api/v1/blocks/{block}/handlers/{handler}/replay";
        let of_handler = "/api/v1/blocks/listener/handlers/hear/replay";
        self.act(operation, of_handler, replay, ("replay", "blocks", "listener")).await;

        self.secrets.push("in the input".to_owned());
        let config = json!({ "block": "courier", "action": "echo", "input": { "text": "in the input" } });
        let new = json!({ "name": "greet", "type": "block_action", "schedule": "0 0 1 1 *", "config": config });
        let made = self.act("post /api/v1/tasks", "", Sent::Json(new), ("create", "tasks", "")).await;
        let task = made["data"]["id"].as_str().unwrap();
        let path_of_task = format!("/api/v1/tasks/{task}");
        let changes = Sent::Json(json!({ "enabled": false, "config": config }));
        self.act("patch /api/v1/tasks/{id}", &path_of_task, changes, ("update", "tasks", task)).await;
        let updated = log(&self.admin, &format!("target={task}&action=update")).await.remove(0);
        assert_eq!((&updated["before"]["enabled"], &updated["after"]["config"]["input"]), (&json!(true), &json!(["text"])));
        for (verb, action) in [("adopt", "adopt"), ("run", "run")] {
            let operation = format!("post /api/v1/tasks/{{id}}/{verb}");
            let sent = format!("{path_of_task}/{verb}");
            self.act(&operation, &sent, Sent::Nothing, (action, "tasks", task)).await;
        }
        self.act("delete /api/v1/tasks/{id}", &path_of_task, Sent::Nothing, ("delete", "tasks", task)).await;
    }

    /// Checks that no operation of the document is missing.
    fn are_all(&self, document: &Value) {
        let is_change = |operation: &String| !operation.starts_with("get ");
        let changing: BTreeSet<String> = operations(document).into_iter().filter(is_change).collect();
        let covered: BTreeSet<&str> = self.covered.iter().map(|name| name.split(" #").next().unwrap()).collect();
        let is_act = |operation: &&String| !NO_ACTS.iter().any(|start| operation.starts_with(start));
        let missing: Vec<&String> = changing.iter().filter(is_act).filter(|one| !covered.contains(one.as_str())).collect();
        assert!(missing.is_empty(), "these operations need a row in the audit log, or a place in NO_ACTS: {missing:?}");
        let unknown: Vec<&&str> = covered.iter().filter(|one| !changing.contains(**one)).collect();
        assert!(unknown.is_empty(), "these operations do not exist: {unknown:?}");
        for start in NO_ACTS {
            assert!(changing.iter().any(|operation| operation.starts_with(start)), "{start} is no operation");
        }
    }
}

on_both_engines! {
    async fn every_administrative_act_has_one_row(server: Server) {
        let admin = server.admin().await;
        admin.make_task_object().await;
        let own = admin.get("/api/v1/me").await.json()["userId"].as_str().unwrap().to_owned();
        let (stranger, _) = user(&admin, "stranger", None).await;
        let secrets = [&admin.token, &stranger.token].into_iter().cloned().chain([PASSWORD.to_owned()]).collect();
        let mut acts = Acts { admin: admin.clone(), stranger, actor: format!("user:{own}"), covered: BTreeSet::new(), secrets };
        acts.on_the_schema().await;
        acts.on_people().await;
        acts.on_events().await;
        acts.on_blocks_and_tasks().await;
        // The document has the block's action as long as the block is installed.
        let document = admin.get("/api/v1/openapi.json").await.json();
        let path = "/api/v1/blocks/courier";
        acts.act("delete /api/v1/blocks/{block}", path, Sent::Nothing, ("uninstall", "blocks", "courier")).await;
        acts.are_all(&document);

        let (text, secrets) = (whole_table(&server).await, &acts.secrets);
        assert!(secrets.len() > 12, "{secrets:?}");
        for secret in secrets {
            assert!(secret.len() > 8 && !text.contains(secret.as_str()), "{secret:?} is in the log");
        }
        // Nor are the hashes of what the database keeps as hashes.
        for query in ["SELECT token_hash FROM svc_sessions", "SELECT password_hash FROM svc_credentials"] {
            for hash in server.sql(query).await.concat() {
                assert!(!text.contains(&hash), "{hash} is in the log");
            }
        }
        let largest = log(&admin, "limit=100").await.iter().map(|entry| entry.to_string().len()).max();
        assert!(largest.is_some_and(|bytes| bytes < 64 * 1024), "{largest:?}");
    }

    async fn an_entry_is_at_most_64_kib(server: Server) {
        let admin = server.admin().await;
        let grant = |number: usize| json!({ "resource": format!("resource_{number}_{}", "x".repeat(80)), "actions": ["read"] });
        let permissions: Vec<Value> = (0..900).map(grant).collect();
        let made = admin.post("/api/v1/roles", json!({ "name": "large", "permissions": permissions })).await;
        assert_eq!(made.status, 201, "{}", made.text);
        assert!(made.text.len() > 64 * 1024);
        let entry = log(&admin, "resource=roles").await.remove(0);
        assert!(entry.to_string().len() < 64 * 1024);
        // Members that do not fit are left out as a whole.
        assert_eq!((&entry["after"]["name"], &entry["after"]["cut"]), (&json!("large"), &json!(["permissions"])));
        assert!(entry["after"].get("permissions").is_none() && entry["after"]["updatedAt"].is_string());
    }

    async fn an_entry_names_the_act_and_its_request(server: Server) {
        let admin = server.admin().await;
        let own = admin.get("/api/v1/me").await.json()["userId"].as_str().unwrap().to_owned();
        let first = log(&admin, "").await;
        assert_eq!((first.len(), &first[0]["action"], &first[0]["target"]), (1, &json!("create"), &json!(own)), "{first:?}");

        let request = admin.request("POST", "/api/v1/roles").header("x-request-id", "audit-1");
        let made = server.send(request.json(&json!({ "name": "editor", "permissions": [] }))).await.data();
        let id = made["id"].as_str().unwrap();
        let entry = log(&admin, "").await.remove(0);
        assert_eq!(entry.as_object().unwrap().keys().collect::<Vec<_>>(), MEMBERS);
        let actor = format!("user:{own}");
        assert_eq!(members(&entry, ["actor", "address", "requestId"]), [actor.as_str(), "127.0.0.1", "audit-1"]);
        assert_eq!(members(&entry, ["action", "resource", "target"]), ["create", "roles", id]);
        assert_eq!((&entry["before"], &entry["after"]), (&Value::Null, &made));
        let session = server.sql(&format!("SELECT id FROM svc_sessions WHERE user_id = '{own}'")).await[0][0].clone();
        assert_eq!(entry["credential"], format!("session:{session}"));

        // With a key, the actor is the key's user.
        let (program, key) = key(&admin, json!({ "name": "ci", "roleId": "admin" })).await;
        let changed = program.patch(&format!("/api/v1/roles/{id}"), json!({ "description": "changed" })).await.data();
        let entry = log(&admin, "").await.remove(0);
        let credential = format!("api_key:{}", key["id"].as_str().unwrap());
        assert_eq!(members(&entry, ["actor", "credential"]), [&actor, &credential]);
        assert_eq!((&entry["before"], &entry["after"]), (&made, &changed));

        // A refused act leaves no row, at whatever point it is refused.
        let before = rows(&server).await;
        let (stranger, _) = user(&admin, "stranger", None).await;
        stranger.post("/api/v1/roles", json!({ "name": "mine" })).await.expect_error(403, "forbidden");
        server.call("POST", "/api/v1/roles", Some(json!({ "name": "mine" }))).await.expect_error(401, "unauthorized");
        admin.post("/api/v1/roles", json!({ "name": "editor" })).await.expect_error(409, "unique_violation");
        admin.delete("/api/v1/roles/public").await.expect_error(409, "conflict");
        admin.patch(&format!("/api/v1/users/{own}"), json!({ "banned": true })).await.expect_error(409, "conflict");
        admin.delete(&format!("/api/v1/users/{own}")).await.expect_error(409, "conflict");
        admin.post("/api/v1/users", json!({ "email": "stranger@example.com" })).await.expect_error(409, "unique_violation");
        // A request that changes nothing has none either.
        assert_eq!(admin.patch(&format!("/api/v1/users/{own}"), json!({})).await.status, 200);
        assert_eq!(rows(&server).await, before);
        // This one is refused after its row was written in the transaction.
        let (maker, id) = user(&admin, "maker", Some("admin")).await;
        let webhook = json!({ "url": "https://webhook.invalid/", "topics": ["block.#"] });
        assert_eq!(maker.post("/api/v1/webhooks", webhook).await.status, 201);
        let before = rows(&server).await;
        admin.delete(&format!("/api/v1/users/{id}")).await.expect_error(409, "owns_things");
        assert_eq!(rows(&server).await, before);
    }

    async fn the_log_is_filtered_and_paged(server: Server) {
        let admin = server.admin().await;
        for name in ["one", "two", "three"] {
            role(&admin, name, json!([])).await;
        }
        let (_, ann) = user(&admin, "ann", Some("one")).await;
        let own = admin.get("/api/v1/me").await.json()["userId"].as_str().unwrap().to_owned();

        let names = |entries: &[Value]| entries.iter().map(|entry| entry["after"]["name"].clone()).collect::<Vec<_>>();
        let roles = "resource=roles&action=create";
        assert_eq!(names(&log(&admin, roles).await), ["three", "two", "one"]);
        let page = admin.get(&format!("/api/v1/audit?{roles}&limit=2&offset=1")).await.json();
        assert_eq!(names(page["data"].as_array().unwrap()), ["two", "one"]);
        let pagination = &page["pagination"];
        assert_eq!((&pagination["totalCount"], &pagination["hasNextPage"]), (&json!(3), &json!(false)));
        let page = admin.get(&format!("/api/v1/audit?{roles}&page=2&pageSize=2")).await.json();
        assert_eq!((names(page["data"].as_array().unwrap()), &page["pagination"]["totalPages"]), (vec![json!("one")], &json!(2)));
        // Deliveries are paged in the same way.
        let keys = |page: Value| page["pagination"].as_object().unwrap().keys().cloned().collect::<Vec<_>>();
        assert_eq!(keys(page), keys(admin.get("/api/v1/events/deliveries").await.json()));

        let given = log(&admin, &format!("target={ann}")).await;
        assert_eq!((given.len(), &given[0]["action"], &given[0]["after"]["name"]), (1, &json!("give_role"), &json!("one")));
        assert_eq!(log(&admin, &format!("actor=user:{own}&resource=roles")).await.len(), 3);
        assert_eq!(log(&admin, "actor=shell:0").await, Vec::<Value>::new());

        let times: Vec<String> = log(&admin, roles).await.iter().map(|entry| entry["at"].as_str().unwrap().to_owned()).collect();
        // Several acts may have the same instant.
        let at = |from: &str| times.iter().filter(|time| time.as_str() >= from).count();
        assert_eq!(log(&admin, &format!("{roles}&since={}", times[1])).await.len(), at(&times[1]));
        assert_eq!(log(&admin, &format!("{roles}&until={}", times[1])).await.len(), 3 - at(&times[1]));

        let bad_filters = ["action=made", "resource=task", "since=yesterday", "until=1", "who=me", "actor=%00", "target=%00"];
        for bad in bad_filters.into_iter().chain(["limit=0", "page=x", "offset=-1"]) {
            admin.get(&format!("/api/v1/audit?{bad}")).await.expect_error(400, "invalid_request");
        }
    }

    async fn addresses_are_shown_only_to_readers_of_users(server: Server) {
        let admin = server.admin().await;
        role(&admin, "auditor", json!([{ "resource": "settings", "actions": ["read"] }])).await;
        role(&admin, "own", json!([
            { "resource": "settings", "actions": ["read"] },
            { "resource": "users", "actions": ["read"], "rowPolicy": "own" },
        ])).await;
        role(&admin, "names", json!([
            { "resource": "settings", "actions": ["read"] },
            { "resource": "users", "actions": ["read"], "fields": { "read": ["name"] } },
        ])).await;
        let (auditor, _) = user(&admin, "aud", Some("auditor")).await;
        let (own, _) = user(&admin, "own", Some("own")).await;
        let (names, _) = user(&admin, "names", Some("names")).await;
        let (stranger, _) = user(&admin, "stranger", None).await;
        stranger.get("/api/v1/audit").await.expect_error(403, "forbidden");
        server.call("GET", "/api/v1/audit", None).await.expect_error(401, "unauthorized");

        let invited = admin.post("/api/v1/users", json!({ "email": "ann@example.com", "name": "Ann" })).await;
        assert_eq!(invited.status, 201, "{}", invited.text);
        let grants = json!([{ "resource": "events", "actions": ["read"] }]);
        let described = json!({ "name": "described", "description": "Ask bob@example.com.", "permissions": grants });
        assert_eq!(admin.post("/api/v1/roles", described).await.status, 201);
        let whole = admin.get("/api/v1/audit").await;
        for shown in ["ann@example.com", "bob@example.com", "\"Ann\"", "127.0.0.1"] {
            assert!(whole.text.contains(shown), "{}", whole.text);
        }
        for reader in [&auditor, &own, &names] {
            let seen = reader.get("/api/v1/audit").await;
            assert!(!seen.text.contains("@example.com") && !seen.text.contains("127.0.0.1"), "{}", seen.text);
            let entries = seen.data();
            assert_eq!(entries.as_array().unwrap().len(), whole.data().as_array().unwrap().len());
            assert_eq!(members(&entries[1]["after"], ["email", "name"]), ["hidden", "hidden"]);
            assert_eq!(members(&entries[0]["after"], ["description", "name"]), ["hidden", "described"]);
            assert_eq!(entries[0]["address"], Value::Null);
        }
        // With the right to read all users, a reader sees all of it.
        let reads = json!([{ "resource": "settings", "actions": ["read"] }, { "resource": "users", "actions": ["read"] }]);
        assert_eq!(admin.patch("/api/v1/roles/auditor", json!({ "permissions": reads })).await.status, 200);
        assert!(auditor.get("/api/v1/audit").await.text.contains("ann@example.com"));
    }

    async fn sign_ins_of_admins_and_failed_ones_are_in_the_log(server: Server) {
        let admin = server.admin().await;
        let own = admin.get("/api/v1/me").await.json()["userId"].as_str().unwrap().to_owned();
        let (_, ann) = user(&admin, "ann", None).await;
        assert_eq!(sign_in(&server, "ann@example.com", PASSWORD).await.status, 200);
        assert_eq!(log(&admin, "action=sign_in").await, Vec::<Value>::new(), "ann is no admin");
        assert_eq!(sign_in(&server, "admin@example.com", PASSWORD).await.status, 200);
        let entry = log(&admin, "action=sign_in").await.remove(0);
        assert_eq!(members(&entry, ["actor", "target", "address"]), [format!("user:{own}").as_str(), &own, "127.0.0.1"]);
        let newest = format!("SELECT id FROM svc_sessions WHERE user_id = '{own}' ORDER BY id DESC");
        assert_eq!(entry["credential"], format!("session:{}", server.sql(&newest).await[0][0]));

        // Failures are counted for each account and minute. The minute may end in between, so there may be more rows.
        for answer in join_all((0..4).map(|_| sign_in(&server, "ann@example.com", "a wrong password"))).await {
            assert_eq!(answer.status, 401, "{}", answer.text);
        }
        assert_eq!(sign_in(&server, "ANN@example.com", "a wrong password").await.status, 401);
        assert_eq!(sign_in(&server, "who@example.com", "a wrong password").await.status, 401);
        let failed = log(&admin, &format!("action=sign_in_failed&target={ann}")).await;
        let count: i64 = failed.iter().map(|entry| entry["after"]["failures"].as_i64().unwrap()).sum();
        assert_eq!(count, 5, "{failed:?}");
        assert_eq!(members(&failed[0], ["actor", "address"]), ["anonymous", "127.0.0.1"]);
        assert_eq!((&failed[0]["credential"], &failed[0]["before"]), (&Value::Null, &Value::Null));
        // The addresses that no account has are counted together, and are not in the log.
        assert_eq!(sign_in(&server, "nobody@example.com", "a wrong password").await.status, 401);
        let unknown = async || {
            let failed = log(&admin, "action=sign_in_failed").await;
            failed.into_iter().filter(|entry| entry["target"].is_null()).collect::<Vec<_>>()
        };
        let sum = |entries: &[Value]| entries.iter().map(|entry| entry["after"]["failures"].as_i64().unwrap()).sum::<i64>();
        let found = unknown().await;
        assert_eq!(sum(&found), 2, "{found:?}");
        // In another minute, another row begins.
        server.sql("UPDATE svc_audit SET counted = counted || id WHERE counted IS NOT NULL").await;
        assert_eq!(sign_in(&server, "who@example.com", "a wrong password").await.status, 401);
        let later = unknown().await;
        assert_eq!((later.len(), &later[0]["after"]), (found.len() + 1, &json!({ "failures": 1 })));
        let text = whole_table(&server).await;
        for absent in ["wrong password", "who@example.com", "nobody@example.com"] {
            assert!(!text.contains(absent), "{absent}: {text}");
        }
        // A banned user fails too, with the right password.
        assert_eq!(admin.patch(&format!("/api/v1/users/{ann}"), json!({ "banned": true })).await.status, 200);
        server.sql("UPDATE svc_audit SET counted = counted || id WHERE counted IS NOT NULL").await;
        assert_eq!(sign_in(&server, "ann@example.com", PASSWORD).await.status, 401);
        let failed = log(&admin, &format!("action=sign_in_failed&target={ann}")).await;
        assert_eq!(failed[0]["after"], json!({ "failures": 1 }));
    }

    async fn the_deletion_of_a_user_replaces_what_is_about_the_person(server: Server) {
        let admin = server.admin().await;
        let (ann, id) = user(&admin, "ann", Some("admin")).await;
        // A failed sign-in, and acts by and on the user.
        assert_eq!(sign_in(&server, "ann@example.com", "a wrong password").await.status, 401);
        assert_eq!(admin.patch(&format!("/api/v1/users/{id}"), json!({ "name": "Ann of Example" })).await.status, 200);
        role(&ann, "made-by-ann", json!([])).await;
        assert!(whole_table(&server).await.contains("Ann of Example"));

        assert_eq!(admin.delete(&format!("/api/v1/users/{id}")).await.status, 204);
        let text = whole_table(&server).await;
        assert!(!text.contains("ann@example.com") && !text.contains("Ann of Example"), "{text}");
        let of_ann = log(&admin, &format!("actor=user:{id}")).await;
        assert_eq!((&of_ann[0]["address"], &of_ann[0]["after"]["name"]), (&json!("deleted"), &json!("made-by-ann")));
        for failed in log(&admin, "action=sign_in_failed").await {
            assert_eq!(failed["address"], "deleted", "{failed}");
        }
        let deletion = log(&admin, "action=delete&resource=users").await.remove(0);
        assert_eq!(members(&deletion, ["target", "address"]), [id.as_str(), "127.0.0.1"]);
        assert_eq!(deletion["before"]["email"], "deleted");
        assert_eq!(deletion["before"]["roles"][0]["name"], "admin", "only the person is replaced");
        let changed = log(&admin, "action=update&resource=users").await.remove(0);
        assert_eq!(changed["before"]["name"], "deleted");
        assert_eq!(members(&changed["after"], ["name", "id"]), ["deleted", &id]);
        // The rows of others stay as they are.
        let own = log(&admin, "resource=users&action=create").await.remove(0);
        assert_eq!(own["after"]["email"], "admin@example.com");

        // A failed sign-in after the deletion is one without an account.
        assert_eq!(sign_in(&server, "ann@example.com", "a wrong password").await.status, 401);
        let failed = log(&admin, "action=sign_in_failed").await.remove(0);
        assert_eq!((&failed["target"], &failed["after"]), (&Value::Null, &json!({ "failures": 1 })));
        assert!(!whole_table(&server).await.contains("ann@example.com"));
    }

    async fn a_user_with_many_entries_is_deleted_in_steps(server: Server) {
        let admin = server.admin().await;
        let (ann, id) = user(&admin, "ann", Some("admin")).await;
        let (bob, of_bob) = user(&admin, "bob", Some("admin")).await;
        // More entries of each kind than one transaction changes: acts of the user, acts on the user, and failed sign-ins.
        let numbers = "WITH RECURSIVE n (i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 250)";
        let columns = "(id, acted_at, actor, address, action, resource, target, state_after, subject, counted, times)";
        let rows = |kind: &str, person: &str| match kind {
            "by" => format!("'by {person} ' || i, 1, 'user:{person}', '192.0.2.1', 'update', 'roles', 'r', NULL, NULL, NULL, 1"),
            "on" => format!(
                "'on {person} ' || i, 1, 'service', '192.0.2.9', 'update', 'users', '{person}', '{{\"name\":\"Ada\"}}', \
                 '{person}', NULL, 1"
            ),
            _ => format!(
                "'failed {person} ' || i, 1, 'anonymous', '192.0.2.1', 'sign_in_failed', 'users', '{person}', NULL, '{person}', \
                 'counted {person} ' || i, 2"
            ),
        };
        for person in [&id, &of_bob] {
            for kind in ["by", "on", "failed"] {
                server.sql(&format!("{numbers} INSERT INTO svc_audit {columns} SELECT {} FROM n", rows(kind, person))).await;
            }
        }
        let count = async |condition: &str| server.sql(&format!("SELECT id FROM svc_audit WHERE {condition}")).await.len();
        // A deletion that is refused replaces nothing.
        let webhook = json!({ "url": "https://webhook.invalid/", "topics": ["block.#"] });
        assert_eq!(bob.post("/api/v1/webhooks", webhook).await.status, 201);
        admin.delete(&format!("/api/v1/users/{of_bob}")).await.expect_error(409, "owns_things");
        role(&ann, "helper", json!([{ "resource": "users", "actions": ["delete"] }])).await;
        let (helper, _) = user(&admin, "helper", Some("helper")).await;
        helper.delete(&format!("/api/v1/users/{id}")).await.expect_error(403, "forbidden");
        assert_eq!(count("address = 'deleted'").await, 0);
        // A table of another program refers to a record that is deleted with the user.
        admin.define("task", json!([{ "name": "title", "type": "text" }])).await;
        let owner = json!({ "name": "owner", "kind": "many_to_one", "source": "task", "target": "users", "onDelete": "cascade" });
        admin.relate(owner).await;
        let task = admin.make("task", json!({ "title": "a", "owner_id": id })).await;
        server.sql("CREATE TABLE others (task_id UUID REFERENCES task (id))").await;
        server.sql("INSERT INTO others SELECT id FROM task").await;
        let before = whole_table(&server).await;
        admin.delete(&format!("/api/v1/users/{id}")).await.expect_error(409, "foreign_key_violation");
        assert!(whole_table(&server).await == before, "a deletion that is refused replaces nothing");
        assert_eq!(admin.get(&format!("/api/v1/data/task/{task}")).await.data()["owner_id"], json!(id));
        server.sql("DROP TABLE others").await;

        assert_eq!(admin.delete(&format!("/api/v1/users/{id}")).await.status, 204);
        admin.get(&format!("/api/v1/data/task/{task}")).await.expect_error(404, "not_found");
        assert_eq!(count(&format!("actor = 'user:{id}' AND address = 'deleted'")).await, 251);
        let failed = format!("id LIKE 'failed {id}%' AND address = 'deleted' AND counted IS NULL AND times = 2");
        assert_eq!(count(&failed).await, 250);
        assert_eq!(count(&format!("id LIKE 'on {id}%' AND address = '192.0.2.9' AND state_after LIKE '%deleted%'")).await, 250);
        assert_eq!(count(&format!("subject = '{id}'")).await, 0);
        assert_eq!(count(&format!("subject = '{of_bob}' AND (address = '192.0.2.1' OR state_after LIKE '%Ada%')")).await, 500);
    }

    async fn changes_that_change_nothing_leave_no_entry(server: Server) {
        let admin = server.admin().await;
        let helper = role(&admin, "helper", json!([])).await;
        let (_, id) = user(&admin, "ann", Some("helper")).await;
        assert_eq!(log(&admin, "action=give_role").await.len(), 1);
        let again = admin.post(&format!("/api/v1/users/{id}/roles"), json!({ "roleId": helper })).await;
        assert_eq!((again.status, &again.data()["roles"][0]["name"]), (200, &json!("helper")), "{}", again.text);
        assert_eq!(log(&admin, "action=give_role").await.len(), 1);
        for _ in 0..2 {
            assert!(admin.delete(&format!("/api/v1/users/{id}/sessions")).await.status < 300);
        }
        let ended = log(&admin, "action=end_sessions").await;
        assert_eq!((ended.len(), &ended[0]["after"]), (1, &json!({ "ended": 1 })));

        let version = async |version: &str| {
            let config = json!({ "type": "object", "properties": { "greeting": { "type": "string" } } });
            let manifest = json!({
                "name": "courier", "version": version, "actions": [{ "name": "echo" }], "requires": { "plugins": ["log"] },
                "config": config,
            });
            pack(example_block("echo").await, manifest).await.unwrap()
        };
        assert_eq!(admin.install("", version("1.0.0").await).await.status, 201);
        let path = "/api/v1/blocks/courier";
        let acts = async |changes: Value| {
            let before = log(&admin, "target=courier").await.len();
            let changed = admin.patch(path, changes).await;
            assert_eq!(changed.status, 200, "{}", changed.text);
            let entries = log(&admin, "target=courier").await;
            let new = entries[..entries.len() - before].iter().rev();
            new.map(|entry| entry["action"].as_str().unwrap().to_owned()).collect::<Vec<_>>()
        };
        let none: [&str; 0] = [];
        assert_eq!(acts(json!({ "enabled": true })).await, none);
        assert_eq!(acts(json!({ "config": {} })).await, none);
        assert_eq!(acts(json!({ "enabled": false, "config": {} })).await, ["disable"]);
        assert_eq!(acts(json!({ "enabled": false, "config": { "greeting": "a" } })).await, ["configure"]);
        assert_eq!(acts(json!({ "enabled": true, "config": { "greeting": "b" } })).await, ["configure", "enable"]);
        let entries = log(&admin, "target=courier").await;
        let enabled = |entry: &Value| (entry["before"]["enabled"].clone(), entry["after"]["enabled"].clone());
        assert_eq!([enabled(&entries[0]), enabled(&entries[1])], [(json!(false), json!(true)), (json!(false), json!(false))]);
        assert_eq!(entries[1]["after"]["configKeys"], json!(["greeting"]));

        // The state before a change is the stored one. This server does not know yet that the block is disabled.
        server.sql("UPDATE svc_blocks SET enabled = FALSE").await;
        assert_eq!(acts(json!({ "enabled": true })).await, ["enable"]);
        server.sql("UPDATE svc_blocks SET enabled = FALSE").await;
        let upgraded = admin.install("?upgrade=true", version("1.1.0").await).await;
        assert!(upgraded.status < 300, "{}", upgraded.text);
        let entry = log(&admin, "target=courier").await.remove(0);
        assert_eq!((&entry["action"], enabled(&entry)), (&json!("upgrade"), (json!(false), json!(false))));
    }

    async fn an_adoption_shows_the_maker_before_it(server: Server) {
        let admin = server.admin().await;
        let own = admin.get("/api/v1/me").await.json()["userId"].as_str().unwrap().to_owned();
        let (ann, of_ann) = user(&admin, "ann", Some("admin")).await;
        let new = json!({ "url": "https://webhook.invalid/", "topics": ["block.#"] });
        let webhook = ann.post("/api/v1/webhooks", new).await.data()["id"].as_str().unwrap().to_owned();
        let subscription = json!({ "event": "nothing.#", "consumer": "listener", "handler": "log_event" });
        assert!(ann.post("/api/v1/events/subscriptions", subscription).await.status < 300);
        for (path, target) in [
            (format!("/api/v1/webhooks/{webhook}"), webhook.as_str()),
            ("/api/v1/events/subscriptions/listener".to_owned(), "listener"),
        ] {
            let adopted = server.send(admin.request("POST", &format!("{path}/adopt"))).await;
            assert!(adopted.status < 300, "{}", adopted.text);
            let entry = log(&admin, &format!("action=adopt&target={target}")).await.remove(0);
            let makers = [&entry["before"]["madeBy"]["userId"], &entry["after"]["madeBy"]["userId"]];
            assert_eq!(makers, [&json!(of_ann), &json!(own)]);
        }
    }

    async fn commands_on_the_machine_are_acts_of_its_user(server: Server) {
        let admin = server.admin().await;
        let uid = std::fs::metadata(server.directory()).unwrap().uid();
        let shell = json!(format!("shell:{uid}"));
        let made = server.run(&["user", "create", "ann@example.com", "--json"], "").await.json();
        let token = made["link"].as_str().unwrap().split_once("#token=").unwrap().1;
        server.run(&["user", "set-password", "ann@example.com"], "another horse battery").await.out();
        server.run(&["user", "grant", "ann@example.com", "admin"], "").await.out();
        server.run(&["user", "ban", "ann@example.com"], "").await.out();
        server.run(&["user", "grant", "ann@example.com", "nothing"], "").await.expect_error(1, &["nothing"]);
        let entries = log(&admin, &format!("actor=shell:{uid}")).await;
        let actions: Vec<&str> = entries.iter().map(|entry| entry["action"].as_str().unwrap()).collect();
        assert_eq!(actions, ["ban", "give_role", "set_password", "invite"]);
        for entry in &entries {
            assert_eq!((&entry["actor"], &entry["credential"], &entry["address"]), (&shell, &Value::Null, &Value::Null));
            assert_eq!(entry["target"], made["data"]["id"]);
        }
        let text = whole_table(&server).await;
        assert!(!text.contains(token) && !text.contains("another horse battery"), "{text}");
    }
}

on_both_engines! {
    async fn old_entries_are_deleted_by_a_task(engine: Engine) {
        let server = ServerBuilder::new(engine).env("SVC_AUDIT_RETENTION_DAYS", "2").start().await;
        let admin = server.admin().await;
        for name in ["one", "two", "three"] {
            role(&admin, name, json!([])).await;
        }
        let day = 24 * 3_600_000_i64;
        // Two entries are too old, and one is not.
        let age = |days: i64, name: &str| format!(
            "UPDATE svc_audit SET acted_at = acted_at - {} WHERE state_after LIKE '%\"{name}\"%'", days * day
        );
        for (days, name) in [(3, "one"), (3, "two"), (1, "three")] {
            server.sql(&age(days, name)).await;
        }
        // More than one transaction deletes.
        let numbers = "WITH RECURSIVE n (i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 1200)";
        let columns = "(id, acted_at, actor, action, resource, times)";
        let old = "SELECT 'old ' || i, 1, 'service', 'update', 'roles', 1 FROM n";
        server.sql(&format!("{numbers} INSERT INTO svc_audit {columns} {old}")).await;
        let task = "/api/v1/tasks/audit-retention";
        assert_eq!(admin.get(task).await.data()["type"], "audit_retention");
        let run = admin.post(&format!("{task}/run"), json!({})).await.data();
        assert_eq!((&run["status"], &run["result"]), (&json!("succeeded"), &json!({ "deleted": 1202 })));
        let left = log(&admin, "resource=roles").await;
        assert_eq!((left.len(), &left[0]["after"]["name"]), (1, &json!("three")));

        let token = admin.token.clone();
        let keeps = server.builder().env("SVC_AUDIT_RETENTION_DAYS", "0");
        drop(server);
        let server = keeps.start().await;
        let admin = server.with_token(token);
        server.sql("UPDATE svc_audit SET acted_at = 1").await;
        assert_eq!(admin.post(&format!("{task}/run"), json!({})).await.data()["result"], json!({ "deleted": 0 }));
        assert_eq!(log(&admin, "resource=roles").await.len(), 1);
    }

    async fn failed_sign_ins_of_two_networks_are_two_entries(engine: Engine) {
        let server = ServerBuilder::new(engine).env("SVC_TRUSTED_PROXIES", "127.0.0.0/8,::1/128").start().await;
        let admin = server.admin().await;
        let own = admin.get("/api/v1/me").await.json()["userId"].as_str().unwrap().to_owned();
        for email in ["admin@example.com", "nobody@example.com"] {
            for address in ["192.0.2.1", "192.0.2.2"] {
                let request = server.request("POST", "/api/auth/sign-in/email").header("x-forwarded-for", address);
                let answer = server.send(request.json(&json!({ "email": email, "password": "a wrong password" }))).await;
                assert_eq!(answer.status, 401, "{}", answer.text);
            }
        }
        let failed = log(&admin, "action=sign_in_failed").await;
        let of = |target: Value| {
            let entries = failed.iter().filter(|entry| entry["target"] == target);
            entries.map(|entry| entry["address"].as_str().unwrap()).collect::<Vec<_>>()
        };
        assert_eq!(of(json!(own)), ["192.0.2.2", "192.0.2.1"]);
        assert_eq!(of(Value::Null), ["192.0.2.2", "192.0.2.1"]);
    }

    async fn without_enforcement_the_actor_is_anonymous(engine: Engine) {
        let server = ServerBuilder::new(engine).env("SVC_REQUIRE_AUTH", "false").start().await;
        assert_eq!(server.call("POST", "/api/v1/roles", Some(json!({ "name": "one", "permissions": [] }))).await.status, 201);
        let entries = server.call("GET", "/api/v1/audit", None).await.data();
        assert_eq!(members(&entries[0], ["actor", "action", "address"]), ["anonymous", "create", "127.0.0.1"]);
        assert_eq!(entries[0]["credential"], Value::Null);
    }

    async fn the_deletion_of_an_own_account_is_an_act(engine: Engine) {
        let server = ServerBuilder::new(engine).env("SVC_DELETE_USER", "true").start().await;
        let admin = server.admin().await;
        let (ann, id) = user(&admin, "ann", Some("admin")).await;
        role(&ann, "made-by-ann", json!([])).await;
        let deleted = ann.post("/api/auth/delete-user", json!({ "password": PASSWORD })).await;
        assert_eq!(deleted.status, 200, "{}", deleted.text);
        let entry = log(&admin, &format!("action=delete&target={id}")).await.remove(0);
        let actor = format!("user:{id}");
        assert_eq!(members(&entry, ["actor", "resource", "address"]), [actor.as_str(), "users", "deleted"]);
        assert_eq!((&entry["before"], &entry["after"]), (&Value::Null, &Value::Null));
        assert_eq!(log(&admin, "action=create&resource=roles").await[0]["address"], "deleted");
        assert!(!whole_table(&server).await.contains("ann@example.com"));
        // The last admin keeps the account, and the log has no row.
        let last = admin.post("/api/auth/delete-user", json!({ "password": PASSWORD })).await;
        assert_eq!((last.status, log(&admin, "action=delete&resource=users").await.len()), (409, 1), "{}", last.text);
    }

    async fn the_sign_in_of_an_admin_with_a_mailed_link_is_an_act(engine: Engine) {
        let mails = MailServer::start(&[]).await;
        let server = sending_to(engine, &mails).env("SVC_REQUIRE_EMAIL_VERIFICATION", "true").start().await;
        let admin = server.admin().await;
        let mut entries = Vec::new();
        for (number, name) in ["ann", "bob"].into_iter().enumerate() {
            let body = json!({ "name": name, "email": format!("{name}@example.com"), "password": PASSWORD });
            let signed_up = server.call("POST", "/api/auth/sign-up/email", Some(body)).await;
            let cookie = signed_up.headers["set-cookie"].to_str().unwrap().split(';').next().unwrap().to_owned();
            let id = admin.get(&format!("/api/v1/users?search={name}")).await.data()[0]["id"].as_str().unwrap().to_owned();
            if name == "bob" {
                let given = admin.post(&format!("/api/v1/users/{id}/roles"), json!({ "roleId": "admin" })).await;
                assert_eq!(given.status, 200, "{}", given.text);
            }
            let path = path_of(&server, &mails.mails(number + 1).await[number]);
            let opened = server.send(server.request("GET", &path).header("cookie", &cookie)).await;
            let token = opened.headers["set-auth-token"].to_str().unwrap().to_owned();
            assert_eq!(server.with_token(token).get("/api/v1/me").await.json()["userId"], json!(id));
            entries.push((id.clone(), log(&admin, &format!("action=sign_in&target={id}")).await));
        }
        assert_eq!(entries[0].1, Vec::<Value>::new(), "ann is no admin");
        let (id, of_bob) = &entries[1];
        assert_eq!((of_bob.len(), &of_bob[0]["actor"]), (1, &json!(format!("user:{id}"))));
        let newest = format!("SELECT id FROM svc_sessions WHERE user_id = '{id}'");
        assert_eq!(of_bob[0]["credential"], format!("session:{}", server.sql(&newest).await[0][0]));
    }

    async fn the_upgrade_of_a_guest_forgets_nobody(engine: Engine) {
        let server = ServerBuilder::new(engine).env("SVC_ANONYMOUS_AUTH", "true").start().await;
        let admin = server.admin().await;
        let guest = async || {
            let body = server.call("POST", "/api/auth/sign-in/anonymous", None).await.json();
            (body["token"].as_str().unwrap().to_owned(), body["user"]["id"].as_str().unwrap().to_owned())
        };
        let ((of_upgraded, one), (of_gone, two)) = (guest().await, guest().await);
        let (upgraded, gone) = (server.with_token(of_upgraded), server.with_token(of_gone));
        for (who, id, name) in [(&upgraded, &one, "of-one"), (&gone, &two, "of-two")] {
            let given = admin.post(&format!("/api/v1/users/{id}/roles"), json!({ "roleId": "admin" })).await;
            assert_eq!(given.status, 200, "{}", given.text);
            role(who, name, json!([])).await;
        }
        let body = json!({ "name": "Ann", "email": "ann@example.com", "password": PASSWORD });
        assert_eq!(upgraded.post("/api/auth/sign-up/email", body).await.status, 200);
        assert_eq!(log(&admin, &format!("actor=user:{one}")).await[0]["address"], "127.0.0.1");
        assert_eq!(server.send(gone.request("POST", "/api/auth/delete-anonymous-user")).await.status, 200);
        assert_eq!(log(&admin, &format!("actor=user:{two}")).await[0]["address"], "deleted");
    }

    async fn an_erasure_is_an_act_that_leaves_no_text_about_the_person(engine: Engine) {
        let server = ServerBuilder::new(engine).start().await;
        let admin = server.admin().await;
        let own = admin.get("/api/v1/me").await.json()["userId"].as_str().unwrap().to_owned();
        let (_, ann) = user(&admin, "ann", None).await;
        assert_eq!(admin.patch(&format!("/api/v1/users/{ann}"), json!({ "name": "Ann of Example" })).await.status, 200);
        // The address is in texts of others too.
        let text = "Ask Ann@Example.com or bob@example.com.";
        let described = json!({ "name": "described", "description": text, "permissions": [] });
        assert_eq!(admin.post("/api/v1/roles", described).await.status, 201);
        // These entries are more than one page of the search.
        let numbers = "WITH RECURSIVE n (i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 1200)";
        let columns = "(id, acted_at, actor, action, resource, state_before, times)";
        let others = "SELECT 'other ' || i, 1, 'service', 'update', 'roles', '{\"ann@example.com\":1}', 1 FROM n";
        server.sql(&format!("{numbers} INSERT INTO svc_audit {columns} {others}")).await;
        let config = json!({ "userId": ann, "records": "keep" });
        let new = json!({ "name": "erase", "type": "erase_user", "schedule": "0 0 1 1 *", "config": config });
        let task = admin.post("/api/v1/tasks", new).await.data()["id"].as_str().unwrap().to_owned();
        let run = admin.post(&format!("/api/v1/tasks/{task}/run"), json!({})).await.data();
        assert_eq!((&run["status"], &run["result"]["user"]), (&json!("succeeded"), &json!(true)), "{run}");
        let text = whole_table(&server).await;
        assert!(!text.to_lowercase().contains("ann@example.com") && !text.contains("Ann of Example"), "{text}");
        assert!(text.contains("Ask deleted or bob@example.com."), "{text}");
        let acts: Vec<Value> = log(&admin, &format!("target={ann}")).await;
        let acts: Vec<[&str; 2]> = acts.iter().map(|entry| members(entry, ["action", "actor"])).collect();
        let actor = format!("user:{own}");
        assert_eq!(acts, [["erase", actor.as_str()], ["update", actor.as_str()]]);
    }

    async fn the_account_of_the_configuration_and_its_claim_are_acts(engine: Engine) {
        let pair = ServerBuilder::new(engine).env("SVC_ADMIN_EMAIL", "root@example.com");
        let server = pair.env("SVC_ADMIN_PASSWORD", "from the environment 1").start().await;
        let token = sign_in(&server, "root@example.com", "from the environment 1").await.json()["token"].clone();
        let root = server.with_token(token.as_str().unwrap().to_owned());
        let own = root.get("/api/v1/me").await.json()["userId"].as_str().unwrap().to_owned();
        let claim = json!({ "name": "Ada", "newPassword": "chosen by a person 2" });
        assert_eq!(root.post("/api/v1/admin/claim", claim).await.status, 200);
        let entries = log(&root, &format!("target={own}")).await;
        let acts: Vec<[&str; 2]> = entries.iter().map(|entry| members(entry, ["action", "actor"])).collect();
        let actor = format!("user:{own}");
        assert_eq!(acts, [["claim", actor.as_str()], ["sign_in", actor.as_str()], ["create", "service"]]);
        let text = whole_table(&server).await;
        assert!(!text.contains("from the environment 1") && !text.contains("chosen by a person 2"), "{text}");
    }
}

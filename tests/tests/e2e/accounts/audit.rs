//! The audit log: one row for each administrative act and none for an act that fails, failed sign-ins, and who sees what.

use std::os::unix::fs::MetadataExt;

use blockbase_tests::{Admin, Answer, Server, on_both_engines};
use futures_util::future::join_all;
use serde_json::{Value, json};

use crate::accounts::roles::{key, role, user};

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

on_both_engines! {
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
        assert_eq!(sign_in(&server, "nobody@example.com", PASSWORD).await.status, 401);
        let whole = admin.get("/api/v1/audit").await;
        for shown in ["ann@example.com", "nobody@example.com", "127.0.0.1"] {
            assert!(whole.text.contains(shown), "{}", whole.text);
        }
        for reader in [&auditor, &own, &names] {
            let seen = reader.get("/api/v1/audit").await;
            assert!(!seen.text.contains("@example.com") && !seen.text.contains("127.0.0.1"), "{}", seen.text);
            let entries = seen.data();
            assert_eq!(entries.as_array().unwrap().len(), whole.data().as_array().unwrap().len());
            assert_eq!(entries[1]["after"]["email"], "hidden");
            assert_eq!((&entries[0]["address"], &entries[0]["target"]), (&Value::Null, &Value::Null));
            // Such a reader cannot find out which addresses were tried.
            let found = reader.get("/api/v1/audit?target=nobody@example.com").await.json();
            assert_eq!((&found["data"], &found["pagination"]["totalCount"]), (&json!([]), &json!(0)));
        }
        assert_eq!(log(&admin, "target=nobody@example.com").await.len(), 1);
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

        // Failures are counted for each account and minute. The minute may end in between.
        for answer in join_all((0..4).map(|_| sign_in(&server, "ann@example.com", "a wrong password"))).await {
            assert_eq!(answer.status, 401, "{}", answer.text);
        }
        assert_eq!(sign_in(&server, "ANN@example.com", "a wrong password").await.status, 401);
        assert_eq!(sign_in(&server, "who@example.com", "a wrong password").await.status, 401);
        let failed = log(&admin, &format!("action=sign_in_failed&target={ann}")).await;
        let count: i64 = failed.iter().map(|entry| entry["after"]["failures"].as_i64().unwrap()).sum();
        assert!(count == 5 && failed.len() <= 2, "{failed:?}");
        assert_eq!(members(&failed[0], ["actor", "address"]), ["anonymous", "127.0.0.1"]);
        assert_eq!((&failed[0]["credential"], &failed[0]["before"]), (&Value::Null, &Value::Null));
        let unknown = log(&admin, "target=who@example.com").await;
        assert_eq!((unknown.len(), &unknown[0]["after"]), (1, &json!({ "failures": 1 })));
        // In another minute, another row begins.
        server.sql("UPDATE svc_audit SET counted = 'another minute' WHERE target = 'who@example.com'").await;
        assert_eq!(sign_in(&server, "who@example.com", "a wrong password").await.status, 401);
        assert_eq!(log(&admin, "target=who@example.com").await.len(), 2);
        assert!(!whole_table(&server).await.contains("wrong password"));
        // A banned user fails too, with the right password.
        assert_eq!(admin.patch(&format!("/api/v1/users/{ann}"), json!({ "banned": true })).await.status, 200);
        server.sql("UPDATE svc_audit SET counted = counted || ' before' WHERE counted IS NOT NULL").await;
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

        // An address that no account had is replaced with the account that gets it later.
        assert_eq!(sign_in(&server, "bob@example.com", "a wrong password").await.status, 401);
        let (_, bob) = user(&admin, "bob", None).await;
        assert!(whole_table(&server).await.contains("bob@example.com"));
        assert_eq!(admin.delete(&format!("/api/v1/users/{bob}")).await.status, 204);
        assert!(!whole_table(&server).await.contains("bob@example.com"));
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

//! The account that the configuration makes at boot, the claim of that account, and closed sign-up.

use blockbase_tests::{Answer, Engine, Server, ServerBuilder, on_both_engines};
use futures_util::future::join_all;
use serde_json::{Value, json};

const PASSWORD: &str = "from the environment 1";
const NEW_PASSWORD: &str = "chosen by a person 2";

fn with_pair(engine: Engine) -> ServerBuilder {
    ServerBuilder::new(engine).env("SVC_ADMIN_EMAIL", "Root@Example.com").env("SVC_ADMIN_PASSWORD", PASSWORD)
}

async fn sign_in(server: &Server, password: &str) -> Answer {
    let body = json!({ "email": "root@example.com", "password": password });
    server.call("POST", "/api/auth/sign-in/email", Some(body)).await
}

async fn token(server: &Server, password: &str) -> String {
    let answer = sign_in(server, password).await;
    assert_eq!(answer.status, 200, "{}", answer.text);
    answer.json()["token"].as_str().unwrap().to_owned()
}

fn claim() -> Value {
    json!({ "name": "Ada", "newPassword": NEW_PASSWORD })
}

on_both_engines! {
    async fn the_pair_makes_an_admin_who_claims_the_account(engine: Engine) {
        let server = with_pair(engine).start().await;
        assert!(!server.log().contains(PASSWORD));
        let sign_up = json!({ "name": "x", "email": "x@example.com", "password": "correct horse battery" });
        let closed = server.call("POST", "/api/auth/sign-up/email", Some(sign_up)).await;
        assert_eq!((closed.status, &closed.json()["code"]), (400, &json!("EMAIL_PASSWORD_SIGN_UP_DISABLED")));

        let root = server.with_token(token(&server, PASSWORD).await);
        let other = server.with_token(token(&server, PASSWORD).await);
        let me = root.get("/api/v1/me").await.json();
        assert_eq!((&me["roles"], &me["pendingClaim"]), (&json!(["admin"]), &json!(true)));
        // Before the claim, everything else already works.
        root.make_task_object().await;
        let key = root.post("/api/v1/api-keys", json!({ "name": "k", "roleId": "admin" })).await.json()["key"].clone();
        let by_key = server.with_token(key.as_str().unwrap().to_owned());
        assert_eq!(by_key.get("/api/v1/me").await.json().get("pendingClaim"), None);

        server.call("POST", "/api/v1/admin/claim", Some(claim())).await.expect_error(401, "unauthorized");
        by_key.post("/api/v1/admin/claim", claim()).await.expect_error(401, "unauthorized");
        for (body, status, code) in [
            (json!({ "name": "Ada", "newPassword": "short" }), 400, "invalid_value"),
            (json!({ "name": "Ada", "newPassword": "password1" }), 400, "invalid_value"),
            (json!({ "name": "Ada", "newPassword": PASSWORD }), 400, "invalid_value"),
            (json!({ "name": "", "newPassword": NEW_PASSWORD }), 400, "invalid_value"),
            (json!({ "name": "Ada" }), 400, "invalid_request"),
            (json!({ "name": "Ada", "newPassword": NEW_PASSWORD, "email": "else@example.com" }), 400, "invalid_request"),
        ] {
            root.post("/api/v1/admin/claim", body).await.expect_error(status, code);
        }
        assert_eq!(root.post("/api/v1/admin/claim", claim()).await.data(), json!({ "claimed": true }));
        let me = root.get("/api/v1/me").await.json();
        assert_eq!((me.get("pendingClaim"), &me["user"]["name"], &me["user"]["email"]), (None, &json!("Ada"), &json!("root@example.com")));
        // Every other session has ended, and the password from the environment is no longer valid.
        assert_eq!(other.get("/api/v1/me").await.json()["authenticated"], false);
        assert_eq!(sign_in(&server, PASSWORD).await.status, 401);
        root.post("/api/v1/admin/claim", claim()).await.expect_error(409, "no_pending_claim");

        // A restart with the same variables changes nothing.
        let server = server.restart().await;
        assert_eq!(sign_in(&server, PASSWORD).await.status, 401);
        let again = server.with_token(token(&server, NEW_PASSWORD).await);
        assert_eq!(again.get("/api/v1/me").await.json().get("pendingClaim"), None);
    }

    async fn of_a_hundred_claims_one_wins(engine: Engine) {
        let server = with_pair(engine).start().await;
        let other = match engine {
            Engine::Sqlite => None,
            Engine::Postgres => Some(server.builder().start().await),
        };
        let token = token(&server, PASSWORD).await;
        let answers = join_all((0..100).map(|number| {
            let server = other.as_ref().filter(|_| number % 2 == 1).unwrap_or(&server);
            let body = json!({ "name": format!("claim {number}"), "newPassword": format!("{NEW_PASSWORD} {}", number / 2) });
            server.send(server.request("POST", "/api/v1/admin/claim").bearer_auth(&token).json(&body))
        }))
        .await;
        let won: Vec<usize> = (0..100).filter(|number| answers[*number].status == 200).collect();
        assert_eq!(won.len(), 1);
        for answer in answers.iter().filter(|answer| answer.status != 200) {
            answer.expect_error(409, "no_pending_claim");
        }
        let name = &server.sql("SELECT name FROM svc_users").await[0][0];
        assert_eq!(*name, format!("claim {}", won[0]));
        assert_eq!(sign_in(&server, &format!("{NEW_PASSWORD} {}", won[0] / 2)).await.status, 200);
    }

    async fn changing_the_password_leaves_nothing_to_claim(engine: Engine) {
        let server = with_pair(engine).start().await;
        let root = server.with_token(token(&server, PASSWORD).await);
        let body = json!({ "currentPassword": PASSWORD, "newPassword": NEW_PASSWORD });
        assert_eq!(root.post("/api/auth/change-password", body).await.status, 200);
        root.post("/api/v1/admin/claim", claim()).await.expect_error(409, "no_pending_claim");
        assert_eq!(sign_in(&server, PASSWORD).await.status, 401);
    }

    async fn the_pair_is_ignored_where_there_are_users_and_used_where_there_are_guests_alone(engine: Engine) {
        let server = ServerBuilder::new(engine).env("SVC_ANONYMOUS_AUTH", "true").start().await;
        assert_eq!(server.call("POST", "/api/auth/sign-in/anonymous", None).await.status, 200);
        // Guests do not count, so the account is made.
        let builder = server.builder();
        drop(server);
        let file = builder.clone().env("SVC_ADMIN_EMAIL", "root@example.com").env("SVC_DISABLE_SIGNUP", "false");
        let server = file.env("SVC_ADMIN_PASSWORD_FILE", "password.txt");
        let directory = server.directory();
        std::fs::write(directory.join("password.txt"), format!("  {PASSWORD}\n")).unwrap();
        let server = server.start().await;
        let root = server.with_token(token(&server, PASSWORD).await);
        assert_eq!(root.get("/api/v1/me").await.json()["roles"], json!(["admin"]));
        // The configuration opens sign-up. It works, and gives no role.
        let plain = server.with_token(server.sign_up("plain").await);
        assert_eq!(plain.get("/api/v1/me").await.json()["roles"], json!([]));
        // If there are users, the server ignores the address, the file, and the password's strength.
        let builder = server.builder();
        drop(server);
        std::fs::remove_file(directory.join("password.txt")).unwrap();
        let server = builder.env("SVC_ADMIN_EMAIL", "another@example.com").start().await;
        let rows = server.sql("SELECT id FROM svc_users WHERE email = 'another@example.com'").await;
        assert!(rows.is_empty());
    }

    async fn a_wiped_table_of_users_counts_as_fresh(engine: Engine) {
        let server = with_pair(engine).start().await;
        let root = server.with_token(token(&server, PASSWORD).await);
        assert_eq!(root.post("/api/v1/admin/claim", claim()).await.status, 200);
        match engine {
            // The server's connections enforce foreign keys, but this one does not.
            Engine::Sqlite => {
                for table in ["svc_user_roles", "svc_sessions", "svc_credentials", "svc_api_keys", "svc_users"] {
                    server.sql(&format!("DELETE FROM {table}")).await;
                }
            }
            Engine::Postgres => drop(server.sql("DELETE FROM svc_users").await),
        }
        let server = server.restart().await;
        let root = server.with_token(token(&server, PASSWORD).await);
        let me = root.get("/api/v1/me").await.json();
        assert_eq!((&me["roles"], &me["pendingClaim"]), (&json!(["admin"]), &json!(true)));
    }

    async fn a_wrong_pair_stops_the_boot_and_shows_no_password(engine: Engine) {
        let long = "hunter2!hunter2!".repeat(9);
        let email = ("SVC_ADMIN_EMAIL", "root@example.com");
        for (pairs, name) in [
            (vec![email], "SVC_ADMIN_EMAIL"),
            (vec![("SVC_ADMIN_PASSWORD", "hunter2 hunter2")], "SVC_ADMIN_PASSWORD"),
            (vec![email, ("SVC_ADMIN_PASSWORD", "hunter2")], "SVC_ADMIN_PASSWORD"),
            (vec![email, ("SVC_ADMIN_PASSWORD", &long)], "SVC_ADMIN_PASSWORD"),
            (vec![email, ("SVC_ADMIN_PASSWORD", "sunshine")], "SVC_ADMIN_PASSWORD"),
            (vec![("SVC_ADMIN_EMAIL", "nobody"), ("SVC_ADMIN_PASSWORD", "hunter2 hunter2")], "SVC_ADMIN_EMAIL"),
            (vec![email, ("SVC_ADMIN_PASSWORD_FILE", "nowhere.txt")], "SVC_ADMIN_PASSWORD_FILE"),
        ] {
            // Each attempt finds a database without users.
            let (status, text) = set(engine, &pairs).fail().await;
            assert_eq!(status.code(), Some(2), "{text}");
            assert!(text.lines().last().unwrap_or_default().contains(name), "{text}");
            assert!(!text.contains("hunter2") && !text.contains("sunshine"), "{text}");
        }
        drop(set(engine, &[email, ("SVC_ADMIN_PASSWORD", "hunter2 hunter2")]).start().await);
    }

    async fn of_a_hundred_first_sign_ups_one_becomes_admin(engine: Engine) {
        let server = ServerBuilder::new(engine).start().await;
        let other = match engine {
            Engine::Sqlite => None,
            Engine::Postgres => Some(server.builder().start().await),
        };
        let names: Vec<String> = (0..100).map(|number| format!("user{number}")).collect();
        join_all(names.iter().enumerate().map(|(number, name)| {
            other.as_ref().filter(|_| number % 2 == 1).unwrap_or(&server).sign_up(name)
        }))
        .await;
        let admins = server.sql("SELECT ur.user_id FROM svc_user_roles ur JOIN svc_roles r ON r.id = ur.role_id WHERE r.name = 'admin'");
        assert_eq!(admins.await.len(), 1);
        assert_eq!(server.sql("SELECT id FROM svc_users").await.len(), 100);
    }
}

fn set(engine: Engine, pairs: &[(&str, &str)]) -> ServerBuilder {
    pairs.iter().fold(ServerBuilder::new(engine), |builder, (name, value)| builder.env(name, value))
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn of_instances_that_boot_at_once_one_makes_the_account() {
    let first = ServerBuilder::new(Engine::Postgres).start().await;
    let builder = first.builder().env("SVC_ADMIN_EMAIL", "root@example.com").env("SVC_ADMIN_PASSWORD", PASSWORD);
    let servers = join_all((0..4).map(|_| builder.clone().start())).await;
    assert_eq!(first.sql("SELECT id FROM svc_users").await.len(), 1);
    assert_eq!(first.sql("SELECT user_id FROM svc_pending_claims").await.len(), 1);
    for server in &servers {
        assert_eq!(sign_in(server, PASSWORD).await.status, 200);
    }
}

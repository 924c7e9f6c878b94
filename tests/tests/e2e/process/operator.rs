//! `blockbase user …` and `blockbase key …`: commands for accounts on the machine of the server, while it runs and while it does
//! not.

use std::os::unix::fs::PermissionsExt;
use std::os::unix::process::CommandExt;
use std::process::{Command, Stdio};

use blockbase_tests::{Answer, Engine, Server, ServerBuilder, blockbase, on_both_engines, ran, until};
use serde_json::{Value, json};

use crate::accounts::roles::within_five_seconds;

const PASSWORD: &str = "correct horse battery";
const NEW_PASSWORD: &str = "another horse battery";

async fn sign_in(server: &Server, name: &str, password: &str) -> Answer {
    let body = json!({ "email": format!("{name}@example.com"), "password": password });
    server.call("POST", "/api/auth/sign-in/email", Some(body)).await
}

/// Sets the first password with the link of an invitation.
async fn use_link(server: &Server, link: &str, password: &str) -> Answer {
    let token = link.trim().split_once("#token=").unwrap_or_else(|| panic!("no link: {link}")).1;
    server.call("POST", "/api/auth/reset-password", Some(json!({ "newPassword": password, "token": token }))).await
}

async fn is_signed_in(server: &Server, token: &str) -> bool {
    server.with_token(token.to_owned()).get("/api/v1/me").await.json()["authenticated"] == true
}

on_both_engines! {
    async fn commands_manage_users_while_the_server_runs(server: Server) {
        let admin = server.admin().await;
        assert_eq!(admin.post("/api/v1/roles", json!({ "name": "editor", "permissions": [] })).await.status, 201);

        // The creation of an account, and the link.
        let made = server.run(&["user", "create", "Ann@Example.com", "--name", "Ann", "--role", "editor"], "").await;
        assert!(made.out().starts_with("http") && made.out().lines().count() == 1, "{made:?}");
        if server.engine() == Engine::Sqlite {
            // On Postgres, a command only knows the settings, and these name the port 0 here.
            assert!(made.out().contains(&server.base), "the link leads to this server: {made:?}");
        }
        assert!(made.error.contains("ann@example.com is created"), "{made:?}");
        assert_eq!(use_link(&server, made.out(), PASSWORD).await.status, 200);
        let ann = sign_in(&server, "ann", PASSWORD).await.json()["token"].as_str().unwrap().to_owned();

        // Lists have the same members as in the API.
        let listed = server.run(&["user", "list", "--json"], "").await.json();
        assert_eq!(listed, admin.get("/api/v1/users").await.data());
        let table = server.run(&["user", "list", "--role", "editor"], "").await;
        let lines: Vec<&str> = table.out().lines().collect();
        assert!(lines.len() == 2 && lines[0].starts_with("EMAIL") && lines[1].starts_with("ann@example.com"), "{lines:?}");
        // The link of this invitation was not mailed, so it proves no address.
        assert!(lines[0].contains("VERIFIED") && lines[1].split_whitespace().nth(3) == Some("no"), "{lines:?}");
        assert!(server.run(&["user", "list", "--search", "nobody"], "").await.out().is_empty());

        // The roles of an account.
        assert!(server.run(&["user", "grant", "ann@example.com", "admin"], "").await.out().contains("has the role admin"));
        let has_admin = async || admin.get("/api/v1/users?role=admin").await.json()["pagination"]["totalCount"] == 2;
        until("ann is admin", has_admin).await;
        server.run(&["user", "revoke", "ANN@example.com", "admin"], "").await.out();
        until("ann is no longer admin", async || !has_admin().await).await;
        server.run(&["user", "revoke", "ann@example.com", "admin"], "").await.expect_error(1, &["does not have the role admin"]);
        // As JSON, a command prints the user after the change.
        let roles_of = |user: &Value| user["roles"].as_array().unwrap().iter().map(|role| role["name"].clone()).collect::<Vec<_>>();
        let granted = server.run(&["user", "grant", "ann@example.com", "admin", "--json"], "").await.json();
        assert!(granted["email"] == "ann@example.com" && roles_of(&granted).contains(&json!("admin")), "{granted}");
        let revoked = server.run(&["user", "revoke", "ann@example.com", "admin", "--json"], "").await.json();
        assert_eq!(roles_of(&revoked), [json!("editor")]);
        for (command, banned) in [("ban", true), ("unban", false)] {
            assert_eq!(server.run(&["user", command, "ann@example.com", "--json"], "").await.json()["banned"], banned);
        }
        let set = server.run(&["user", "set-password", "ann@example.com", "--json"], PASSWORD).await.json();
        assert_eq!(set["email"], "ann@example.com");
        within_five_seconds(async || !is_signed_in(&server, &ann).await).await;
        let ann = sign_in(&server, "ann", PASSWORD).await.json()["token"].as_str().unwrap().to_owned();
        server.run(&["user", "grant", "ann@example.com", "nothing"], "").await.expect_error(1, &["there is no role `nothing`"]);

        // A key of a user acts as the user. Its deletion has an effect at once.
        let key = server.run(&["key", "create", "ci", "--user", "ann@example.com", "--role", "editor"], "").await;
        let key = key.out().trim().to_owned();
        let me = server.with_token(key.clone()).get("/api/v1/me").await.json();
        assert_eq!(me["user"]["email"], "ann@example.com", "{me}");
        // The server notes the use of a key after the answer.
        let has_use = async || !admin.get("/api/v1/api-keys").await.data()[0]["lastUsedAt"].is_null();
        until("the use of the key is noted", has_use).await;
        let keys = server.run(&["key", "list", "--json"], "").await.json();
        assert_eq!(keys, admin.get("/api/v1/api-keys").await.data());
        let id = keys[0]["id"].as_str().unwrap();
        let table = server.run(&["key", "list"], "").await;
        assert!(table.out().lines().any(|line| line.contains(id) && line.contains("ann@example.com")), "{table:?}");
        server.run(&["key", "delete", id], "").await.out();
        within_five_seconds(async || server.with_token(key.clone()).get("/api/v1/roles").await.status == 401).await;
        server.run(&["key", "delete", id], "").await.expect_error(1, &["not_found"]);
        let made = server.run(&["key", "create", "ci", "--user", "ann@example.com", "--role", "editor", "--json"], "").await.json();
        let id = made["data"]["id"].as_str().unwrap();
        assert_eq!(server.run(&["key", "delete", id, "--json"], "").await.json(), json!({ "id": id }));
        let late = ["key", "create", "ci", "--user", "ann@example.com", "--role", "editor", "--expires", "2001-01-01T00:00:00Z"];
        server.run(&late, "").await.expect_error(1, &["expiresAt"]);

        // The password, a ban, and a link.
        let set = server.run(&["user", "set-password", "ann@example.com"], &format!("{NEW_PASSWORD}\n")).await;
        assert!(!set.out().contains(NEW_PASSWORD) && !set.error.contains(NEW_PASSWORD), "{set:?}");
        within_five_seconds(async || !is_signed_in(&server, &ann).await).await;
        assert_eq!(sign_in(&server, "ann", PASSWORD).await.status, 401);
        let ann = sign_in(&server, "ann", NEW_PASSWORD).await.json()["token"].as_str().unwrap().to_owned();
        server.run(&["user", "ban", "ann@example.com"], "").await.out();
        within_five_seconds(async || !is_signed_in(&server, &ann).await).await;
        server.run(&["user", "password-link", "ann@example.com"], "").await.expect_error(1, &["banned"]);
        server.run(&["user", "unban", "ann@example.com"], "").await.out();
        let link = server.run(&["user", "password-link", "ann@example.com"], "").await;
        assert_eq!(use_link(&server, link.out(), PASSWORD).await.status, 200);

        // The rules of the API apply here too.
        server.run(&["user", "ban", "admin@example.com"], "").await.expect_error(1, &["conflict", "last admin"]);
        server.run(&["user", "delete", "admin@example.com", "--yes"], "").await.expect_error(1, &["last admin"]);
        server.run(&["user", "create", "ann@example.com"], "").await.expect_error(1, &["unique_violation"]);
        server.run(&["user", "create", "nobody"], "").await.expect_error(1, &["email"]);
        server.run(&["user", "create", "bob@example.com", "--role", "nothing"], "").await.expect_error(1, &["index 0: there is no role `nothing`"]);
        for weak in ["short", "ann@example.com", "password1"] {
            server.run(&["user", "set-password", "ann@example.com"], weak).await.expect_error(1, &["password"]);
        }
        server.run(&["user", "set-password", "ann@example.com"], "").await.expect_error(2, &["standard input"]);
        server.run(&["user", "set-password", "who@example.com"], PASSWORD).await.expect_error(1, &["There is no user"]);
        assert_eq!(sign_in(&server, "ann", PASSWORD).await.status, 200, "none of these changed anything");

        // A deletion can hand over the things that the user made.
        let ann = server.with_token(sign_in(&server, "ann", PASSWORD).await.json()["token"].as_str().unwrap().to_owned());
        server.run(&["user", "grant", "ann@example.com", "admin"], "").await.out();
        let hook = json!({ "url": "https://example.com/hook", "topics": ["data.#"] });
        within_five_seconds(async || ann.post("/api/v1/webhooks", hook.clone()).await.status == 201).await;
        server.run(&["user", "delete", "ann@example.com", "--yes"], "").await.expect_error(1, &["owns_things"]);
        server.run(&["user", "delete", "ann@example.com"], "").await.expect_error(2, &["--yes"]);
        let heir = ["user", "delete", "ann@example.com", "--yes", "--hand-over-to", "admin@example.com"];
        server.run(&["key", "create", "left", "--user", "ann@example.com", "--role", "editor"], "").await.out();
        assert_eq!(server.run(&heir, "").await.out(), "ann@example.com is deleted, with their sessions and 1 API key.\n");
        until("ann is gone", async || admin.get("/api/v1/users").await.json()["pagination"]["totalCount"] == 1).await;
        let hooks = admin.get("/api/v1/webhooks").await.data();
        assert!(hooks[0]["suspended"].is_null() && hooks[0]["madeBy"]["user"]["email"] != "ann@example.com", "{hooks}");
        server.run(&["user", "create", "eve@example.com"], "").await.out();
        let deleted = server.run(&["user", "delete", "eve@example.com", "--yes", "--json"], "").await.json();
        assert_eq!((&deleted["email"], deleted["id"].is_string()), (&json!("eve@example.com"), true));
        assert_eq!(server.run(&["user", "list", "--search", "eve", "--json"], "").await.json(), json!([]));
        // The commands write the events of the API.
        let topics = server.sql("SELECT DISTINCT topic FROM svc_events").await.concat();
        for topic in ["auth.user.created", "auth.user.deleted", "auth.key.created", "auth.key.deleted"] {
            assert!(topics.iter().any(|known| known == topic), "{topic}: {topics:?}");
        }
    }

}

on_both_engines! {
    async fn an_admin_gets_in_again_while_no_server_runs(engine: Engine) {
        let mut server = ServerBuilder::new(engine).start().await;
        let admin = server.admin().await;
        let token = admin.token.clone();
        let id = admin.get("/api/v1/me").await.json()["user"]["id"].as_str().unwrap().to_owned();
        server.kill();
        // An account can be named by its id as well as by its address.
        server.run(&["user", "set-password", &id], NEW_PASSWORD).await.out();
        let key = server.run(&["key", "create", "rescue", "--user", "admin@example.com", "--role", "admin"], "").await;
        let key = key.out().trim().to_owned();
        let server = server.builder().start().await;
        assert!(!is_signed_in(&server, &token).await);
        assert_eq!(sign_in(&server, "admin", PASSWORD).await.status, 401);
        assert_eq!(sign_in(&server, "admin", NEW_PASSWORD).await.status, 200);
        assert_eq!(server.with_token(key).get("/api/v1/users").await.status, 200);
    }

    async fn the_first_user_is_an_admin(engine: Engine) {
        let builder = ServerBuilder::new(engine).prepared().await;
        builder.run(&["user", "create", "ann@example.com"], "").await.expect_error(1, &["setup_required", "admin"]);
        let link = builder.run(&["user", "create", "ann@example.com", "--role", "admin", "--json"], "").await.json();
        let link = link["link"].as_str().unwrap();
        let server = builder.start().await;
        // Until the password is set, nobody else gets more access than before.
        assert_eq!(server.call("GET", "/api/v1/users", None).await.status, 401);
        assert_eq!(use_link(&server, link, PASSWORD).await.status, 200);
        let ann = sign_in(&server, "ann", PASSWORD).await.json()["token"].as_str().unwrap().to_owned();
        assert_eq!(server.with_token(ann).get("/api/v1/users").await.json()["pagination"]["totalCount"], 1);
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_password_is_read_unseen_at_a_terminal() {
    let server = ServerBuilder::new(Engine::Sqlite).start().await;
    server.admin().await;
    let ran = server.builder().run_at_terminal(&["user", "set-password", "admin@example.com"], NEW_PASSWORD).await;
    assert!(ran.out().contains("New password of admin@example.com: "), "{ran:?}");
    for word in NEW_PASSWORD.split(' ') {
        assert!(!ran.out.contains(word), "{word}: {ran:?}");
    }
    assert_eq!(sign_in(&server, "admin", NEW_PASSWORD).await.status, 200);
    assert_eq!(sign_in(&server, "admin", PASSWORD).await.status, 401);
}

#[tokio::test]
async fn help_says_what_commands_of_accounts_work_on_and_has_an_example_of_each() {
    let help = async |arguments: &[&str]| {
        let mut command = Command::new(blockbase());
        command.args(arguments).arg("--help");
        ran(command, "").await.out().to_owned()
    };
    for (group, known) in [("user", "set-password"), ("key", "create")] {
        let text = help(&[group]).await;
        for part in ["It works on the server of this machine and needs no key", "SVC_DATA_DIR", "SVC_DATABASE_URL"] {
            assert!(text.contains(part), "{part}: {text}");
        }
        let listed = text.split_once("Commands:\n").unwrap().1.split("\n\n").next().unwrap();
        let names: Vec<&str> =
            listed.lines().filter_map(|line| line.split_whitespace().next()).filter(|name| *name != "help").collect();
        assert!(names.len() > 2 && names.contains(&known), "{text}");
        for name in names {
            let text = help(&[group, name]).await;
            let example = text.split_once("Example:\n").unwrap_or_else(|| panic!("{group} {name} has no example: {text}")).1;
            assert!(example.contains(&format!("blockbase {group} {name}")), "{text}");
        }
    }
}

#[tokio::test]
async fn a_command_without_a_database_makes_none() {
    let builder = ServerBuilder::new(Engine::Sqlite).prepared().await;
    for arguments in [&["user", "list"][..], &["key", "list"], &["user", "ban", "ann@example.com"]] {
        builder.run(arguments, "").await.expect_error(1, &["There is no database in", "SVC_DATA_DIR"]);
    }
    assert!(!builder.directory().join("svc-data").exists());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn no_other_user_of_the_machine_reaches_the_socket() {
    let server = ServerBuilder::new(Engine::Sqlite).start().await;
    server.admin().await;
    let data = server.directory().join("svc-data");
    let socket = data.join("svc.sock");
    let mode = |path: &std::path::Path| std::fs::metadata(path).unwrap().permissions().mode() & 0o777;
    assert_eq!((mode(&data), mode(&socket)), (0o700, 0o600));

    // The socket only serves accounts, and the network does not serve the operator's route.
    let ask = async |request: &str, user: Option<u32>| {
        let mut perl = Command::new("perl");
        let script = "use IO::Socket::UNIX; my $s = IO::Socket::UNIX->new(Peer => $ARGV[0]) or die \"no connection: $!\"; \
                      local $SIG{PIPE} = 'IGNORE'; print $s $ARGV[1]; $s->flush; local $/; print <$s> // '';";
        perl.args(["-e", script]).arg(&socket).arg(request).current_dir("/").stdin(Stdio::null());
        if let Some(user) = user {
            perl.uid(user).gid(user);
        }
        ran(perl, "").await
    };
    let list = "GET /api/v1/users HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\n\r\n";
    assert!(ask(list, None).await.out().starts_with("HTTP/1.1 200"), "the operator needs no credential");
    let data_request = "GET /api/v1/data HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\n\r\n";
    assert!(ask(data_request, None).await.out().starts_with("HTTP/1.1 404"));
    let id = server.run(&["user", "list", "--json"], "").await.json()[0]["id"].as_str().unwrap().to_owned();
    let admin = sign_in(&server, "admin", PASSWORD).await.json()["token"].as_str().unwrap().to_owned();
    let path = format!("/api/v1/users/{id}/password");
    let answer = server.call_as(Some(&admin), "PUT", &path, Some(json!({ "password": NEW_PASSWORD }))).await;
    assert_eq!(answer.status, 404, "{}", answer.text);

    // Another user of the machine is refused, even if they can open the files. Only root can test that.
    if std::fs::metadata("/proc/self").map(|own| std::os::unix::fs::MetadataExt::uid(&own)).unwrap() == 0 {
        const NOBODY: u32 = 65_534;
        assert!(ask(list, Some(NOBODY)).await.error.contains("no connection"));
        for (path, mode) in [(server.directory(), 0o755), (data.clone(), 0o755), (socket.clone(), 0o666)] {
            std::fs::set_permissions(path, PermissionsExt::from_mode(mode)).unwrap();
        }
        let asked = ask(list, Some(NOBODY)).await;
        assert!(!asked.out.contains("HTTP") && !asked.error.contains("no connection"), "{asked:?}");
        server.log_with("is not from this user").await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn no_command_opens_the_database_beside_a_server() {
    let server = ServerBuilder::new(Engine::Sqlite).start().await;
    server.admin().await;
    server.sign_up("ann").await;
    std::fs::remove_file(server.directory().join("svc-data/svc.sock")).unwrap();
    for arguments in [&["user", "ban", "ann@example.com"][..], &["user", "list"], &["key", "list"]] {
        server.run(arguments, "").await.expect_error(1, &["Another blockbase runs on the data directory"]);
    }
    assert_eq!(sign_in(&server, "ann", PASSWORD).await.status, 200);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_socket_of_a_killed_server_is_not_in_the_way() {
    let mut server = ServerBuilder::new(Engine::Sqlite).start().await;
    server.admin().await;
    server.kill();
    assert!(server.directory().join("svc-data/svc.sock").exists());
    let listed = server.run(&["user", "list", "--json"], "").await.json();
    assert_eq!(listed.as_array().map(Vec::len), Some(1));
    let server = server.builder().start().await;
    assert_eq!(server.run(&["user", "list", "--json"], "").await.json(), listed);
}

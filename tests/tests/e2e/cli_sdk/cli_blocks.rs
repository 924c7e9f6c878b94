//! `blockbase block …` with a server and a registry: consent, upgrades, secrets, logs, `dev`, and errors.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use blockbase_tests::{
    COMMAND_TIME_MAX, Ran, Receiver, Registry, Reply, Server, blockbase, checkout, example_block, guests_directory,
    on_sqlite_first, pack, ran,
};
use serde_json::{Value, json};

/// The manifest of `examples/tasks` with some keys replaced.
fn tasks_manifest(changes: Value) -> Value {
    let text = include_str!("../../../../examples/tasks/block.json");
    let mut manifest: Value = serde_json::from_str(text).unwrap();
    for (key, value) in changes.as_object().unwrap() {
        manifest[key] = value.clone();
    }
    manifest
}

async fn tasks_block(changes: Value) -> Vec<u8> {
    pack(example_block("tasks").await, tasks_manifest(changes)).await.unwrap()
}

/// The command line of one user, with its own environment and folder.
struct Shell {
    environment: Vec<(String, String)>,
    directory: tempfile::TempDir,
}

impl Shell {
    fn new() -> Shell {
        Shell { environment: Vec::new(), directory: tempfile::tempdir().unwrap() }
    }

    /// The command line of a server's first admin.
    async fn of_admin(server: &Server) -> Shell {
        let token = server.admin().await.token;
        Shell::new().env("SVC_URL", &server.base).env("SVC_API_KEY", &token)
    }

    fn env(mut self, name: &str, value: &str) -> Shell {
        self.environment.push((name.to_owned(), value.to_owned()));
        self
    }

    /// Writes a file into the folder, and returns its path.
    fn file(&self, name: &str, bytes: impl AsRef<[u8]>) -> String {
        let path = self.directory.path().join(name);
        std::fs::write(&path, bytes).unwrap();
        path.display().to_string()
    }

    fn command(&self, program: impl AsRef<std::ffi::OsStr>) -> Command {
        let mut command = Command::new(program);
        command
            .current_dir(self.directory.path())
            .env_clear()
            .env("HOME", self.directory.path())
            .envs(self.environment.iter().map(|(name, value)| (name, value)));
        command
    }

    /// Runs `blockbase block <arguments>` with `input` on standard input.
    async fn input(&self, input: &str, arguments: &[&str]) -> Ran {
        let mut command = self.command(blockbase());
        command.arg("block").args(arguments);
        ran(command, input).await
    }

    async fn run(&self, arguments: &[&str]) -> Ran {
        self.input("", arguments).await
    }

    /// Does the same at a terminal. Types `typed` when `prompt` appears. The terminal mixes standard output and standard error.
    async fn at_terminal(&self, prompt: &str, typed: &str, arguments: &str) -> Ran {
        self.at_terminal_after(async {}, prompt, typed, arguments).await
    }

    /// Does the same. `meanwhile` happens after `prompt` appears, and before `typed` is typed.
    async fn at_terminal_after(&self, meanwhile: impl Future<Output = ()>, prompt: &str, typed: &str, arguments: &str) -> Ran {
        use std::io::{Read, Write};
        let is_secret = arguments.starts_with("secret ");
        let mut command = self.command("/usr/bin/script");
        command
            .args(["--quiet", "--return", "--command", &format!("{} block {arguments}", blockbase().display()), "/dev/null"])
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped());
        let (prompt, typed) = (prompt.to_owned(), typed.to_owned());
        let asked = tokio::task::spawn_blocking(move || {
            let mut child = command.spawn().expect("script");
            let (stdin, mut stdout) = (child.stdin.take().unwrap(), child.stdout.take().unwrap());
            let mut said = Vec::new();
            let mut byte = [0];
            while !String::from_utf8_lossy(&said).contains(&prompt) && stdout.read(&mut byte).unwrap() == 1 {
                said.push(byte[0]);
            }
            (child, stdin, stdout, said)
        });
        let asked = tokio::time::timeout(COMMAND_TIME_MAX, asked).await.expect("the command asks").unwrap();
        meanwhile.await;
        let output = tokio::task::spawn_blocking(move || {
            let (child, mut stdin, mut stdout, mut said) = asked;
            if is_secret {
                hides_what_is_typed(child.id());
            }
            stdin.write_all(typed.as_bytes()).unwrap();
            stdout.read_to_end(&mut said).unwrap();
            let mut output = child.wait_with_output().expect("an end");
            output.stdout = said;
            output
        });
        Ran::of(tokio::time::timeout(COMMAND_TIME_MAX, output).await.expect("the command ends").unwrap())
    }
}

/// Waits until the terminal of `script` hides the typed text. The prompt appears a moment before that.
fn hides_what_is_typed(script: u32) {
    let children = |id: &str| std::fs::read_to_string(format!("/proc/{id}/task/{id}/children")).unwrap_or_default();
    let deadline = Instant::now() + blockbase_tests::WAIT_MAX;
    loop {
        // Some versions of `script` run the command in a shell, others run it directly.
        let mut processes = vec![script.to_string()];
        let mut next = 0;
        while next < processes.len() {
            let found: Vec<String> = children(&processes[next]).split_whitespace().map(str::to_owned).collect();
            processes.extend(found);
            next += 1;
        }
        let terminals = processes[1..].iter().filter_map(|id| std::fs::read_link(format!("/proc/{id}/fd/0")).ok());
        for terminal in terminals.filter(|path| path.starts_with("/dev/pts")) {
            let modes = Command::new("stty").arg("-F").arg(&terminal).arg("-a").output().expect("stty");
            if String::from_utf8_lossy(&modes.stdout).split_whitespace().any(|mode| mode == "-echo") {
                return;
            }
        }
        assert!(Instant::now() < deadline, "the terminal goes on showing what is typed");
        std::thread::sleep(Duration::from_millis(20));
    }
}

async fn installed(server: &Server, shell: &Shell) -> Value {
    let token = &shell.environment.iter().find(|(name, _)| name == "SVC_API_KEY").unwrap().1;
    server.with_token(token.clone()).get("/api/v1/blocks").await.data()
}

/// Waits until a condition is true.
async fn until(what: &str, mut is_so: impl AsyncFnMut() -> bool) {
    let deadline = Instant::now() + Duration::from_secs(90);
    while !is_so().await {
        assert!(Instant::now() < deadline, "{what} does not come");
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
}

on_sqlite_first! {
    async fn a_block_is_installed_with_consent_and_looked_after(server: Server) {
        let shell = Shell::of_admin(&server).await;
        let admin = server.with_token(shell.environment[1].1.clone());
        admin.make_task_object().await;
        let webhooks = json!([{ "name": "audit", "url": "https://example.com/hook", "topics": ["data.task.#"] }]);
        let subscriptions = json!([{ "event": "data.task.created", "consumer": "tasks:log", "handler": "log_event" }]);
        let file = shell.file("tasks.wasm", tasks_block(json!({ "webhooks": webhooks, "subscriptions": subscriptions })).await);
        let parts = [
            "tasks 0.1.0: Completes tasks",
            "with your data:\n  read, update `task`",
            "data.task.created, handled by `log_event`",
            "audit: data.task.# to https://example.com/hook",
            "complete, for callers with update on `blocks`",
        ];

        // Nobody consents, because there is neither a terminal nor `--yes`.
        let refused = shell.run(&["install", &file]).await;
        refused.expect_error(2, &parts);
        refused.expect_error(2, &["--yes"]);
        let dry = shell.run(&["install", &file, "--dry-run"]).await;
        assert!(parts.iter().all(|part| dry.out().contains(part)), "{dry:?}");
        let report = shell.run(&["install", &file, "--dry-run", "--json"]).await.json();
        assert_eq!(report["report"]["permissions"]["data"][0]["resource"], "task");
        let declined = shell.at_terminal("[y/N]", "n\n", "install tasks.wasm").await;
        assert_eq!(declined.code, Some(1), "{declined:?}");
        assert!(declined.out.contains("Grant this? [y/N]") && declined.out.contains("Nothing was installed"), "{declined:?}");
        assert_eq!(installed(&server, &shell).await, json!([]));
        assert_eq!(shell.run(&["list"]).await.out(), "");

        let granted = shell.at_terminal("[y/N]", "y\n", "install tasks.wasm").await;
        assert!(granted.out().contains("tasks 0.1.0 is installed (") && granted.out.contains("whsec_"), "{granted:?}");
        let again = shell.run(&["install", &file, "--yes"]).await;
        again.expect_error(1, &["block_exists: ", "`blockbase block upgrade FILE`"]);
        // Only people at a terminal are told what takes long.
        assert!(granted.out.contains("The server compiles the block") && !again.error.contains("compiles"), "{granted:?} {again:?}");
        let help = shell.run(&["new", "--help"]).await;
        assert!(help.out().contains("Name of the block"), "{help:?}");

        let list = shell.run(&["list"]).await;
        let lines: Vec<&str> = list.out().lines().collect();
        assert!(lines.len() == 2 && lines[0].starts_with("NAME") && lines[1].starts_with("tasks  0.1.0    enabled"), "{list:?}");
        assert_eq!(shell.run(&["list", "--json"]).await.json(), installed(&server, &shell).await);
        let show = shell.run(&["show", "tasks"]).await;
        assert!(parts[1..].iter().all(|part| show.out().contains(part)), "{show:?}");
        assert_eq!(shell.run(&["show", "tasks", "--json"]).await.json()["name"], "tasks");

        let id = admin.make("task", json!({ "title": "a" })).await;
        let input = json!({ "id": id }).to_string();
        let called = shell.run(&["call", "tasks", "complete", &input]).await.json();
        assert_eq!((&called["task"]["id"], &called["message"]), (&json!(id), &json!("Well done!")));
        shell.input(&input, &["call", "tasks", "complete", "-"]).await.expect_error(1, &["conflict: The task is done already."]);
        shell.run(&["call", "tasks", "complete", "{}"]).await.expect_error(1, &["validation_failed: ", "\n  "]);
        until("the line", async || shell.run(&["logs", "tasks"]).await.out().contains(" INFO  completed a task {")).await;
        let line: Value = serde_json::from_str(shell.run(&["logs", "tasks", "-n", "1", "--level", "info", "--json"]).await.out()).unwrap();
        assert_eq!(line["fields"]["task"], json!(id));

        assert_eq!(shell.run(&["config", "tasks"]).await.json(), json!({ "cheer": "Well done!" }));
        let hooray = shell.file("config.json", r#"{ "cheer": "Hooray!" }"#);
        assert_eq!(shell.run(&["config", "tasks", "--set", &hooray]).await.json(), json!({ "cheer": "Hooray!" }));
        assert_eq!(shell.run(&["config", "tasks", "--set", r#"{"cheer":"Hm."}"#]).await.json(), json!({ "cheer": "Hm." }));
        assert_eq!(shell.input(r#"{"cheer":"Oh!"}"#, &["config", "tasks", "--set", "-"]).await.json(), json!({ "cheer": "Oh!" }));
        shell.run(&["config", "tasks", "--set", r#"{"cheer":7}"#]).await.expect_error(1, &["validation_failed: ", "/cheer"]);
        shell.run(&["disable", "tasks"]).await.out();
        shell.run(&["call", "tasks", "complete", &input]).await.expect_error(1, &["not_found: "]);
        shell.run(&["enable", "tasks"]).await.out();
        assert_eq!(installed(&server, &shell).await[0]["enabled"], true);

        shell.run(&["uninstall", "tasks"]).await.expect_error(2, &["--yes"]);
        assert_eq!(installed(&server, &shell).await[0]["name"], "tasks");
        assert_eq!(shell.run(&["uninstall", "tasks", "--yes"]).await.out(), "tasks is uninstalled.\n");
        shell.run(&["uninstall", "tasks", "--yes"]).await.expect_error(1, &["not_found: "]);
        assert_eq!(installed(&server, &shell).await, json!([]));
    }

    async fn an_upgrade_that_asks_for_more_is_asked_about(server: Server) {
        let shell = Shell::of_admin(&server).await;
        let first = shell.file("1.wasm", tasks_block(json!({})).await);
        let second = shell.file("2.wasm", tasks_block(json!({ "version": "0.2.0" })).await);
        let wider = json!({ "data": [{ "resource": "task", "actions": ["read", "update", "delete"] }] });
        let third = shell.file("3.wasm", tasks_block(json!({ "version": "0.3.0", "permissions": wider })).await);
        let version = async || installed(&server, &shell).await[0]["version"].clone();

        shell.run(&["upgrade", &first]).await.expect_error(1, &["not_found: ", "blockbase block install"]);
        shell.run(&["install", &first, "--yes"]).await.out();
        // An upgrade that needs no further rights needs no consent.
        let upgraded = shell.run(&["upgrade", &second]).await;
        assert!(upgraded.out().starts_with("tasks 0.2.0 is in the place of 0.1.0"), "{upgraded:?}");
        let refused = shell.run(&["upgrade", &third]).await;
        refused.expect_error(2, &["tasks 0.3.0 asks for more than 0.2.0 has.", "delete", "--yes"]);
        assert_eq!(version().await, "0.2.0");
        let declined = shell.at_terminal("[y/N]", "\n", "upgrade 3.wasm").await;
        assert_eq!(declined.code, Some(1), "{declined:?}");
        assert!(declined.out.contains("Grant this too? [y/N]") && declined.out.contains("0.2.0 goes on serving"), "{declined:?}");
        assert_eq!(shell.run(&["upgrade", &third, "--yes", "--json"]).await.json()["data"]["version"], "0.3.0");
        assert_eq!(version().await, "0.3.0");

        assert_eq!(shell.run(&["rollback", "tasks"]).await.out(), "tasks is at 0.2.0 again.\n");
        assert_eq!(version().await, "0.2.0");
        shell.run(&["rollback", "nothing"]).await.expect_error(1, &["not_found: "]);
    }

    async fn the_reuse_of_instances_is_put_into_words(server: Server) {
        let shell = Shell::of_admin(&server).await;
        let admin = server.with_token(shell.environment[1].1.clone());
        admin.make_task_object().await;
        let asking = async |name: &str, changes: Value| shell.file(name, tasks_block(changes).await);
        let reuse = |more: Value| {
            let mut reuse = json!({ "calls": 50, "seconds": 20 });
            reuse.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
            json!({ "reuse": reuse })
        };
        let anybody = "It reuses its instances:\n  state can pass from one call to the next, whoever makes them; an instance serves \
                       up to 50 calls, and waits up to 20 s for the next one";
        let caller = "state can pass from one call to the next call of the same caller; an instance serves up to 50 calls";
        let own = json!({ "data": [{ "resource": "task", "actions": ["read", "update"] }] });
        let of_callers = json!({ "data": [{ "resource": "task", "actions": ["read", "update"], "as": "caller" }] });

        let plain = asking("1.wasm", json!({ "permissions": own })).await;
        let wide = asking("2.wasm", json!({ "version": "0.2.0", "permissions": own, "instances": reuse(json!({})) })).await;
        // A block that acts as its callers reuses nothing unless it asks for this too.
        let not_asked = json!({ "version": "0.3.0", "permissions": of_callers, "instances": reuse(json!({})) });
        let not_asked = asking("3.wasm", not_asked).await;
        let asked = json!({ "version": "0.4.0", "permissions": of_callers, "instances": reuse(json!({ "asCaller": true })) });
        let asked = asking("4.wasm", asked).await;
        for (file, words) in [(&plain, None), (&wide, Some(anybody)), (&not_asked, None), (&asked, Some(caller))] {
            let refused = shell.run(&["install", file]).await;
            refused.expect_error(2, &["--yes"]);
            assert_eq!(refused.error.contains("instances"), words.is_some(), "{refused:?}");
            refused.expect_error(2, &words.into_iter().collect::<Vec<_>>());
        }
        shell.run(&["install", &plain, "--yes"]).await.out();
        shell.run(&["upgrade", &wide]).await.expect_error(2, &["asks for more than 0.1.0 has", anybody]);
        shell.run(&["upgrade", &asked]).await.expect_error(2, &["asks for more than 0.1.0 has", caller]);
        assert_eq!(installed(&server, &shell).await[0]["version"], "0.1.0");
    }

    async fn an_answer_grants_only_what_the_question_named(server: Server) {
        let shell = Shell::of_admin(&server).await;
        let admin = server.with_token(shell.environment[1].1.clone());
        admin.make_task_object().await;
        // Two fields exchange their names while the command waits for the answer.
        let exchange = async || {
            for (from, to) in [("title", "between"), ("priority", "title"), ("between", "priority")] {
                let renamed = admin.patch(&format!("/api/v1/objects/task/fields/{from}"), json!({ "name": to })).await;
                assert_eq!(renamed.status, 200, "{from}: {}", renamed.text);
            }
        };
        let reads = json!({ "resource": "task", "actions": ["read"], "fields": { "read": ["title"] } });
        shell.file("1.wasm", tasks_block(json!({ "permissions": { "data": [reads] } })).await);
        let conflict = "conflict: This is not what was shown with this consent: the schema was changed since then";

        let refused = shell.at_terminal_after(exchange(), "[y/N]", "y\n", "install 1.wasm").await;
        assert_eq!(refused.code, Some(1), "{refused:?}");
        assert!(refused.out.contains("Grant this? [y/N]") && refused.out.contains(conflict), "{refused:?}");
        assert!(!refused.out.contains("is installed"), "{refused:?}");
        assert_eq!(installed(&server, &shell).await, json!([]));
        // The next question is about the fields that have the names now.
        let granted = shell.at_terminal("[y/N]", "y\n", "install 1.wasm").await;
        assert!(granted.out().contains("tasks 0.1.0 is installed ("), "{granted:?}");

        let writes = json!({ "resource": "task", "actions": ["update"], "fields": { "write": ["priority"] } });
        let wider = json!({ "version": "0.2.0", "permissions": { "data": [reads, writes] } });
        shell.file("2.wasm", tasks_block(wider).await);
        let refused = shell.at_terminal_after(exchange(), "[y/N]", "y\n", "upgrade 2.wasm").await;
        assert_eq!(refused.code, Some(1), "{refused:?}");
        assert!(refused.out.contains("Grant this too? [y/N]") && refused.out.contains(conflict), "{refused:?}");
        assert_eq!(installed(&server, &shell).await[0]["version"], "0.1.0");
    }

    async fn secrets_are_read_from_standard_input_and_only_their_names_come_back(server: Server) {
        let shell = Shell::of_admin(&server).await;
        let permissions = json!({ "data": [], "secrets": ["STRIPE_KEY"], "http": ["https://api.stripe.com"] });
        let file = shell.file("tasks.wasm", tasks_block(json!({ "permissions": permissions })).await);
        let report = shell.run(&["install", &file, "--yes"]).await;
        report.out();
        for part in ["reads secrets, once you set them:\n  STRIPE_KEY", "https://api.stripe.com", "block secret set tasks STRIPE_KEY"] {
            assert!(report.error.contains(part), "{report:?}");
        }
        let set = shell.input("sk_live_hunter2\n", &["secret", "set", "tasks", "STRIPE_KEY"]).await;
        assert_eq!(set.out(), "STRIPE_KEY is set for tasks.\n");
        let list = shell.run(&["secret", "list", "tasks"]).await;
        assert_eq!(list.out(), "STRIPE_KEY\n");
        let list = shell.run(&["secret", "list", "tasks", "--json"]).await;
        assert_eq!(list.json()[0]["name"], "STRIPE_KEY");
        assert!(!list.out.contains("hunter2"));
        shell.input("", &["secret", "set", "tasks", "STRIPE_KEY"]).await.expect_error(2, &["standard input"]);
        // If the value were an argument, it would stay in the shell's history.
        shell.run(&["secret", "set", "tasks", "STRIPE_KEY", "hunter2"]).await.expect_error(2, &["unexpected argument"]);
        let typed = shell.at_terminal("Value of STRIPE_KEY: ", "hunter3\n", "secret set tasks STRIPE_KEY").await;
        assert!(typed.out().contains("is set") && !typed.out.contains("hunter3"), "{typed:?}");
        // An upgrade names only the secrets that are not set.
        let permissions = json!({ "data": [], "secrets": ["STRIPE_KEY", "OTHER_KEY"], "http": ["https://api.stripe.com"] });
        let next = shell.file("next.wasm", tasks_block(json!({ "version": "0.2.0", "permissions": permissions })).await);
        let report = shell.run(&["upgrade", &next, "--yes"]).await;
        report.out();
        assert!(report.error.contains("block secret set tasks OTHER_KEY"), "{report:?}");
        assert!(!report.error.contains("block secret set tasks STRIPE_KEY"), "{report:?}");
        assert_eq!(shell.run(&["secret", "delete", "tasks", "STRIPE_KEY"]).await.out(), "STRIPE_KEY is deleted from tasks.\n");
    }

    async fn failures_say_what_to_do(server: Server) {
        let shell = Shell::of_admin(&server).await;
        shell.run(&["show", "nothing"]).await.expect_error(1, &["not_found: "]);
        shell.run(&["logs", "nothing", "--follow"]).await.expect_error(1, &["not_found: "]);
        shell.run(&["install", "nothing.wasm"]).await.expect_error(1, &["nothing.wasm cannot be read"]);
        let text = shell.file("text.wasm", "(component)");
        shell.run(&["install", &text]).await.expect_error(1, &["not WebAssembly"]);
        shell.run(&["config", "tasks", "--set", "{"]).await.expect_error(2, &["not valid JSON"]);
        shell.run(&["call", "tasks", "complete", "["]).await.expect_error(2, &["not valid JSON"]);
        shell.run(&["--url", "example.com", "list"]).await.expect_error(2, &[]);
        shell.run(&["list", "--url", "example.com"]).await.expect_error(2, &["--url (or SVC_URL)"]);
        shell.run(&["list", "--key", "a\nb"]).await.expect_error(2, &["--key (or SVC_API_KEY)"]);

        let nobody = Shell::new().env("SVC_URL", &server.base).env("SVC_API_KEY", "");
        nobody.run(&["list"]).await.expect_error(1, &["unauthorized: ", "SVC_API_KEY", "/api/v1/api-keys"]);
        nobody.run(&["list", "--key", "svc_wrong"]).await.expect_error(1, &["unauthorized: ", "not valid", "blockbase key create"]);
        let other = server.sign_up("other").await;
        nobody.run(&["list", "--key", &other]).await.expect_error(1, &["forbidden: "]);

        let away = Shell::new().env("SVC_URL", "http://127.0.0.1:1");
        away.run(&["list"]).await.expect_error(1, &["http://127.0.0.1:1 cannot be reached", "blockbase serve"]);
        // The output of another server does not affect the terminal.
        let receiver = Receiver::start().await;
        receiver.answer(|_, _| Reply::Text(200, "<p>\u{1b}[2J</p>".to_owned()));
        let elsewhere = Shell::new().env("SVC_URL", &receiver.url);
        let answered = elsewhere.run(&["list"]).await;
        answered.expect_error(1, &["no JSON", "\\u{1b}[2J", "SVC_URL"]);
        assert!(!answered.error.contains('\u{1b}'), "{answered:?}");
    }

    async fn a_block_goes_through_a_registry_and_comes_as_it_went(server: Server) {
        let shell = Shell::of_admin(&server).await;
        let registry = Registry::start().await;
        let bytes = tasks_block(json!({ "authors": "Ada", "source": "https://example.com/tasks" })).await;
        let file = shell.file("tasks.wasm", &bytes);
        let tag = format!("oci://{}/acme/tasks:0.1.0", registry.host);
        let pushed = shell.run(&["push", &file, &tag]).await;
        let address = pushed.out().trim().to_owned();
        let (repository, digest) = address.split_once('@').unwrap();
        assert_eq!(repository, format!("oci://{}/acme/tasks", registry.host));
        // Pushing twice has the same result. A tag is required.
        assert_eq!(shell.run(&["push", &file, &tag, "--json"]).await.json(), json!({ "digest": digest, "reference": address }));
        shell.run(&["push", &file, &address]).await.expect_error(2, &["tag"]);
        shell.run(&["push", &file, repository]).await.expect_error(2, &["oci://HOST/REPOSITORY:TAG"]);

        // The layout that other tools for WebAssembly artifacts read.
        let manifest: Value = serde_json::from_slice(&std::fs::read(registry.blob(digest)).unwrap()).unwrap();
        let layer = manifest["layers"][0]["digest"].as_str().unwrap();
        assert_eq!(manifest["mediaType"], "application/vnd.oci.image.manifest.v1+json");
        assert_eq!((&manifest["layers"][0]["mediaType"], &manifest["layers"][0]["size"]), (&json!("application/wasm"), &json!(bytes.len())));
        for (name, value) in [("title", "tasks"), ("version", "0.1.0"), ("licenses", "Apache-2.0"), ("authors", "Ada"), ("source", "https://example.com/tasks")] {
            assert_eq!(manifest["annotations"][format!("org.opencontainers.image.{name}")], value);
        }
        assert_eq!(manifest["config"]["mediaType"], "application/vnd.wasm.config.v0+json");
        let config = std::fs::read(registry.blob(manifest["config"]["digest"].as_str().unwrap())).unwrap();
        let config: Value = serde_json::from_slice(&config).unwrap();
        assert_eq!((&config["architecture"], &config["os"], &config["layerDigests"]), (&json!("wasm"), &json!("wasip2"), &json!([layer])));
        assert!(config["component"]["imports"].as_array().unwrap().contains(&json!("blockbase:block/data@0.1.0")), "{config}");
        assert!(config["component"]["exports"].as_array().unwrap().contains(&json!("blockbase:block/actions@0.1.0")), "{config}");
        assert!(config["created"].is_string());

        let by_tag = shell.run(&["install", &tag, "--yes"]).await;
        assert!(by_tag.out().contains("tasks 0.1.0 is installed") && by_tag.error.contains(&address), "{by_tag:?}");
        let of_tag = installed(&server, &shell).await[0]["digest"].clone();
        shell.run(&["uninstall", "tasks", "--yes"]).await.out();
        shell.run(&["install", &address, "--yes"]).await.out();
        assert_eq!(installed(&server, &shell).await[0]["digest"], of_tag);
        shell.run(&["uninstall", "tasks", "--yes"]).await.out();

        // The command refuses a file that does not have the named digest, and installs nothing.
        let other = format!("{repository}@sha256:{}", "0".repeat(64));
        shell.run(&["install", &other, "--yes"]).await.expect_error(1, &["There is no oci://"]);
        shell.run(&["install", &format!("{repository}:0.2.0"), "--yes"]).await.expect_error(1, &["There is no oci://"]);
        shell.run(&["install", "oci://tasks:0.1.0", "--yes"]).await.expect_error(2, &["oci://HOST/REPOSITORY:TAG"]);
        shell.run(&["install", "oci://127.0.0.1:1/tasks:0.1.0", "--yes"]).await.expect_error(1, &["cannot be reached"]);
        let flip = |path: PathBuf| {
            let mut bytes = std::fs::read(&path).unwrap();
            let middle = bytes.len() / 2;
            bytes[middle] ^= 1;
            std::fs::write(&path, bytes).unwrap();
        };
        flip(registry.blob(layer));
        for reference in [&tag, &address] {
            shell.run(&["install", reference, "--yes"]).await.expect_error(1, &["sent other bytes", "refused"]);
        }
        flip(registry.blob(layer));
        let mut longer = bytes.clone();
        longer.push(0);
        std::fs::write(registry.blob(layer), longer).unwrap();
        shell.run(&["install", &tag, "--yes"]).await.expect_error(1, &["refused"]);
        std::fs::write(registry.blob(layer), bytes).unwrap();
        let text = std::fs::read_to_string(registry.blob(digest)).unwrap();
        std::fs::write(registry.blob(digest), text.replace("Completes", "Forgets__")).unwrap();
        shell.run(&["install", &address, "--yes"]).await.expect_error(1, &["refused"]);
        std::fs::write(registry.blob(digest), text).unwrap();
        assert_eq!(installed(&server, &shell).await, json!([]));
        shell.run(&["install", &address, "--yes"]).await.out();
    }

    async fn a_source_that_is_saved_is_served(server: Server) {
        let shell = Shell::of_admin(&server).await;
        let admin = server.with_token(shell.environment[1].1.clone());
        let directory = shell.directory.path().join("echo");
        copy_echo(&directory, &format!("echo-{}", server.process_id()));
        let dev = Dev::start(&shell, &directory).await;
        dev.says("Watching for changes").await;
        let refusal = async || {
            let answer = admin.post("/api/v1/blocks/echo/actions/refuse", json!({ "code": "conflict" })).await;
            answer.json()["message"].as_str().unwrap_or_default().to_owned()
        };
        assert_eq!(refusal().await, "refused as asked");
        let source = directory.join("src/lib.rs");
        let text = std::fs::read_to_string(&source).unwrap();
        std::fs::write(&source, text.replace("refused as asked", "refused {")).unwrap();
        until("the change", async || refusal().await == "refused {").await;
        // A compiler error is shown, and the previous version continues to serve.
        std::fs::write(&source, text.replace("fn echo", "fn echo echo")).unwrap();
        dev.says(" failed: ").await;
        assert_eq!(refusal().await, "refused {");
        let lines = "blockbase_sdk::log::info(\"seen by whoever develops it\"); Ok(input)";
        std::fs::write(&source, text.replace("Ok(input)", lines)).unwrap();
        until("the change", async || refusal().await == "refused as asked").await;
        assert_eq!(admin.post("/api/v1/blocks/echo/actions/echo", json!({})).await.status, 200);
        dev.says("INFO  seen by whoever develops it").await;
    }
}

/// `examples/echo` in another folder, as a crate with another name. Builds share one target directory, and its files have the crate's name.
fn copy_echo(directory: &Path, name: &str) {
    let example = checkout().join("examples/echo");
    std::fs::create_dir_all(directory.join("src")).unwrap();
    for file in ["block.json", "src/lib.rs"] {
        std::fs::copy(example.join(file), directory.join(file)).unwrap();
    }
    let renamed = |text: String| text.replace("name = \"echo\"", &format!("name = \"{name}\""));
    let lock = std::fs::read_to_string(example.join("Cargo.lock")).unwrap();
    std::fs::write(directory.join("Cargo.lock"), renamed(lock)).unwrap();
    let cargo = std::fs::read_to_string(example.join("Cargo.toml")).unwrap();
    let sdk = checkout().join("sdk/rust").display().to_string();
    std::fs::write(directory.join("Cargo.toml"), renamed(cargo).replace("../../sdk/rust", &sdk)).unwrap();
}

/// A running `blockbase block dev`. It ends when this is dropped.
struct Dev {
    child: std::process::Child,
    said: Arc<Mutex<String>>,
}

impl Dev {
    async fn start(shell: &Shell, directory: &Path) -> Dev {
        let mut command = Command::new(blockbase());
        // The compiler needs more environment variables than other commands.
        command
            .args(["block", "dev", "--yes"])
            .arg(directory)
            .envs(shell.environment.iter().map(|(name, value)| (name, value)))
            .env("CARGO_TARGET_DIR", guests_directory())
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped());
        let mut child = command.spawn().unwrap();
        let said = Arc::new(Mutex::new(String::new()));
        let pipes: [Box<dyn std::io::Read + Send>; 2] =
            [Box::new(child.stdout.take().unwrap()), Box::new(child.stderr.take().unwrap())];
        for pipe in pipes {
            let said = said.clone();
            std::thread::spawn(move || {
                use std::io::BufRead;
                for line in std::io::BufReader::new(pipe).lines().map_while(Result::ok) {
                    let mut said = said.lock().unwrap();
                    said.push_str(&line);
                    said.push('\n');
                }
            });
        }
        Dev { child, said }
    }

    async fn says(&self, part: &str) {
        until(part, async || self.said.lock().unwrap().contains(part)).await;
    }
}

impl Drop for Dev {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
        if std::thread::panicking() {
            eprintln!("--- blockbase block dev ---\n{}", self.said.lock().unwrap());
        }
    }
}

#[tokio::test]
async fn a_registry_that_asks_who_one_is_is_told() {
    let registry = Registry::start_closed().await;
    let (user, password) = Registry::USER;
    let shell = Shell::new();
    let file = shell.file("tasks.wasm", tasks_block(json!({})).await);
    let tag = format!("oci://{}/acme/tasks:0.1.0", registry.host);
    shell.run(&["push", &file, &tag]).await.expect_error(1, &["does not let you", "docker login", "--registry-user"]);
    let arguments = ["push", &file, &tag, "--registry-user", user];
    let with_stdin = [&arguments[..], &["--registry-password-stdin"]].concat();
    shell.input("wrong\n", &with_stdin).await.expect_error(1, &["does not let you"]);
    shell.input(&format!("{password}\n"), &with_stdin).await.out();
    let shell = shell.env("SVC_REGISTRY_PASSWORD", password);
    shell.run(&arguments).await.out();

    // The file that `docker login` writes.
    std::fs::create_dir(shell.directory.path().join(".docker")).unwrap();
    let config = |member: Value| {
        let mut config = json!({ "auths": {} });
        config["auths"][&registry.host] = member;
        config
    };
    // `ann:correct horse battery`
    shell.file(".docker/config.json", config(json!({ "auth": "YW5uOmNvcnJlY3QgaG9yc2UgYmF0dGVyeQ==" })).to_string());
    shell.run(&["push", &file, &tag]).await.out();
    let mut in_helper = config(json!({}));
    in_helper["credsStore"] = json!("secretservice");
    shell.file(".docker/config.json", in_helper.to_string());
    shell.run(&["push", &file, &tag]).await.expect_error(1, &["helper program"]);
}

#[tokio::test]
async fn completions_are_made_for_shells() {
    for (shell, part) in [("bash", "complete -F"), ("zsh", "#compdef blockbase"), ("fish", "complete -c blockbase")] {
        let mut command = Command::new(blockbase());
        command.args(["completions", shell]);
        let script = ran(command, "").await;
        assert!(script.out().contains(part) && script.out.contains("rollback"), "{shell}");
    }
}

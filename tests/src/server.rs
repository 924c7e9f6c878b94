//! The real binary as a separate process, and a client for it.

use std::io::{BufRead, BufReader, Read, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::{Arc, Mutex, OnceLock};
use std::time::{Duration, Instant};

use serde_json::{Value, json};
use sqlx::{AssertSqlSafe, Connection, PgConnection};

use crate::command::{Ran, ran, ran_at_terminal};
use crate::postgres::new_database;

/// The database of a server.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Engine {
    Sqlite,
    Postgres,
}

/// The directory `<target>/<profile>`. A test binary is in its folder `deps`. A program is directly in it.
fn profile_directory() -> PathBuf {
    let own = std::env::current_exe().expect("a path");
    let directory = own.parent().expect("a directory");
    let profile = if directory.ends_with("deps") { directory.parent().expect("profile directory") } else { directory };
    profile.to_owned()
}

/// Cargo's folder for its output.
pub fn target_directory() -> PathBuf {
    profile_directory().parent().expect("target directory").to_owned()
}

/// The run's binary. If the run has none, the binary is built if it is missing.
pub fn blockbase() -> &'static Path {
    static BINARY: OnceLock<PathBuf> = OnceLock::new();
    BINARY.get_or_init(|| {
        if let Some(binary) = crate::run::binary() {
            return binary;
        }
        let mut build = Command::new(env!("CARGO"));
        build.args(["build", "--quiet", "--package", "blockbase-server"]).current_dir(env!("CARGO_MANIFEST_DIR"));
        // These variables are removed, because some build scripts read them. With them, these scripts would run again, and their
        // crates would be built again.
        let of_this_package = |name: &str| name.starts_with("CARGO_PKG_") || name.starts_with("CARGO_MANIFEST_");
        for (name, _) in std::env::vars().filter(|(name, _)| of_this_package(name)) {
            build.env_remove(name);
        }
        let built = build.status().expect("cargo");
        if !built.success() {
            // Without the exit, each test would try again, and fail again.
            eprintln!("The server does not compile; no test can run.");
            std::process::exit(1);
        }
        profile_directory().join("blockbase")
    })
}

/// A client for loopback that does not follow redirects. It shares reqwest's TLS features with the server, so it needs a provider of
/// cryptography. It reads no system certificates, because that would take most of a short test.
pub fn http_client() -> reqwest::Client {
    let _ = rustls::crypto::ring::default_provider().install_default();
    let client = reqwest::Client::builder().tls_certs_only([]).redirect(reqwest::redirect::Policy::none());
    client.build().expect("a client")
}

/// The settings with which a server is started.
#[derive(Clone)]
pub struct ServerBuilder {
    engine: Engine,
    environment: Vec<(String, String)>,
    database: Option<String>,
    directory: Option<Arc<tempfile::TempDir>>,
    /// A program that runs instead of the binary.
    program: Option<PathBuf>,
    /// A file that also gets the log.
    log_file: Option<PathBuf>,
}

impl ServerBuilder {
    pub fn new(engine: Engine) -> ServerBuilder {
        ServerBuilder { engine, environment: Vec::new(), database: None, directory: None, program: None, log_file: None }
    }

    pub fn env(mut self, name: &str, value: &str) -> ServerBuilder {
        self.environment.push((name.to_owned(), value.to_owned()));
        self
    }

    /// Uses this Postgres database instead of a new one.
    pub fn database(mut self, url: String) -> ServerBuilder {
        self.database = Some(url);
        self
    }

    /// Starts this program, which then becomes the binary in the same process.
    pub fn program(mut self, program: PathBuf) -> ServerBuilder {
        self.program = Some(program);
        self
    }

    /// Also writes the log into this file, for a test in another process.
    pub fn log_to(mut self, file: PathBuf) -> ServerBuilder {
        self.log_file = Some(file);
        self
    }

    /// The URL of the Postgres database. `None` on SQLite.
    pub fn database_url(&self) -> Option<String> {
        self.database.clone()
    }

    /// The directory in which the server will run.
    ///
    /// # Panics
    /// If no server was started yet.
    pub fn directory(&self) -> PathBuf {
        self.directory.as_ref().expect("a directory").path().to_owned()
    }

    /// A command with a clean environment, in its own directory.
    fn command(&self, directory: &Path, arguments: &[&str]) -> Command {
        let mut command = Command::new(self.program.as_deref().unwrap_or_else(|| blockbase()));
        command
            .args(arguments)
            .current_dir(directory)
            .env_clear()
            .env("SVC_LISTEN", "127.0.0.1:0")
            .env("SVC_RATE_LIMIT_RPM", "0")
            .env("SVC_AUTH_RATE_LIMIT_RPM", "0")
            .env("SVC_LOG", "info,sqlx=warn")
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped());
        if let Some(url) = &self.database {
            command.env("SVC_DATABASE_URL", url).env("SVC_SECRET", "a secret for tests, long enough for it");
        }
        for (name, value) in &self.environment {
            command.env(name, value);
        }
        command
    }

    /// Makes the database, if it has to exist before the server, and the directory.
    pub async fn prepared(mut self) -> ServerBuilder {
        if self.engine == Engine::Postgres && self.database.is_none() {
            self.database = Some(new_database().await);
        }
        self.directory.get_or_insert_with(|| Arc::new(tempfile::tempdir().expect("a directory")));
        self
    }

    /// Runs another command of the binary with the settings of the server, in its directory.
    pub async fn run(&self, arguments: &[&str], input: &str) -> Ran {
        ran(self.command(&self.directory(), arguments), input).await
    }

    /// Runs another command of the binary like [`ServerBuilder::run`], but at a terminal. The test types `secret` there as soon as
    /// the terminal no longer shows what is typed.
    pub async fn run_at_terminal(&self, arguments: &[&str], secret: &str) -> Ran {
        ran_at_terminal(&self.command(&self.directory(), arguments), secret).await
    }

    /// Starts the server, and waits until it listens.
    pub async fn start(self) -> Server {
        let builder = self.prepared().await;
        let directory = builder.directory.clone().expect("a directory");
        tokio::task::spawn_blocking(move || {
            let mut child = builder.command(directory.path(), &["serve"]).spawn().expect("blockbase serve");
            let log = Arc::new(Mutex::new(String::new()));
            let stderr = child.stderr.take().expect("a pipe");
            let sink = log.clone();
            let mut file = builder.log_file.as_ref().map(|path| std::fs::File::create(path).expect("a file"));
            std::thread::spawn(move || {
                for line in BufReader::new(stderr).lines().map_while(Result::ok) {
                    if let Some(file) = &mut file {
                        writeln!(file, "{line}").expect("a file");
                    }
                    let mut log = sink.lock().expect("no poison");
                    log.push_str(&line);
                    log.push('\n');
                }
            });
            let mut stdout = BufReader::new(child.stdout.take().expect("a pipe"));
            let mut line = String::new();
            stdout.read_line(&mut line).expect("a line");
            let base = line
                .trim()
                .strip_prefix("blockbase listens on ")
                .unwrap_or_else(|| panic!("the server did not start: {line}{}", log.lock().expect("no poison")))
                .to_owned();
            let printed = Arc::new(Mutex::new(line));
            let sink = printed.clone();
            std::thread::spawn(move || {
                for line in stdout.lines().map_while(Result::ok) {
                    let mut printed = sink.lock().expect("no poison");
                    printed.push_str(&line);
                    printed.push('\n');
                }
            });
            Server { base, builder, child: Some(child), log, printed, client: http_client() }
        })
        .await
        .expect("a server that starts")
    }

    /// Runs a server that should end by itself. Returns its exit status and its standard error.
    pub async fn fail(self) -> (ExitStatus, String) {
        let builder = self.prepared().await;
        let command = builder.command(&builder.directory(), &["serve"]);
        tokio::task::spawn_blocking(move || finished(command)).await.expect("an end")
    }
}

/// Runs a command until it ends, at most for `WAIT_MAX`.
pub fn finished(mut command: Command) -> (ExitStatus, String) {
    let mut child = command.stdout(Stdio::null()).stderr(Stdio::piped()).spawn().expect("a process");
    let status = wait(&mut child, crate::WAIT_MAX).expect("the process ends");
    let mut text = String::new();
    child.stderr.take().expect("a pipe").read_to_string(&mut text).expect("text");
    (status, text)
}

fn wait(child: &mut Child, most: Duration) -> Option<ExitStatus> {
    let deadline = Instant::now() + most;
    loop {
        if let Some(status) = child.try_wait().expect("a child") {
            return Some(status);
        }
        if Instant::now() > deadline {
            let _ = child.kill();
            let _ = child.wait();
            return None;
        }
        std::thread::sleep(Duration::from_millis(10));
    }
}

/// A running server.
pub struct Server {
    pub base: String,
    builder: ServerBuilder,
    child: Option<Child>,
    log: Arc<Mutex<String>>,
    printed: Arc<Mutex<String>>,
    client: reqwest::Client,
}

impl Drop for Server {
    fn drop(&mut self) {
        if let Some(child) = &mut self.child {
            let _ = child.kill();
            let _ = child.wait();
        }
        if std::thread::panicking() {
            eprintln!("--- log of the server ---\n{}", self.log());
        }
    }
}

/// A response with its complete body.
#[derive(Debug, Clone)]
pub struct Answer {
    pub status: u16,
    pub headers: reqwest::header::HeaderMap,
    pub text: String,
}

impl Answer {
    pub fn json(&self) -> Value {
        serde_json::from_str(&self.text).unwrap_or_else(|_| panic!("no JSON: {} {:?}", self.status, self.text))
    }

    /// The value of `data`.
    #[track_caller]
    pub fn data(&self) -> Value {
        assert!((200..300).contains(&self.status), "{} {}", self.status, self.text);
        self.json()["data"].take()
    }

    /// Asserts the status and the code of an error in the envelope, and that the error reveals no internals.
    #[track_caller]
    pub fn expect_error(&self, status: u16, code: &str) -> Value {
        let json = self.json();
        assert_eq!((self.status, json["error"].as_str()), (status, Some(code)), "{}", self.text);
        assert!(json["message"].as_str().is_some_and(|message| !message.is_empty()), "{}", self.text);
        assert!(self.headers.contains_key("x-request-id"), "{:?}", self.headers);
        for inside in
            ["svc_ck", "svc_uq", "svc_pk", "svc_ix", "rusqlite", "sqlx", "SQLITE", "constraint failed", "panicked", "0x", "src/"]
        {
            assert!(!self.text.contains(inside), "{} shows {inside}", self.text);
        }
        json
    }
}

impl Server {
    pub fn engine(&self) -> Engine {
        self.builder.engine
    }

    /// The log of the server so far.
    pub fn log(&self) -> String {
        self.log.lock().expect("no poison").clone()
    }

    /// Waits until the log has a text, and returns the log. This process reads a line a moment after the server has written it.
    #[track_caller]
    pub fn log_with(&self, text: &str) -> impl Future<Output = String> {
        let caller = std::panic::Location::caller();
        async move {
            let deadline = Instant::now() + crate::WAIT_MAX;
            while !self.log().contains(text) {
                assert!(Instant::now() < deadline, "{caller}: {text:?} is not in the log: {}", self.log());
                tokio::time::sleep(Duration::from_millis(20)).await;
            }
            self.log()
        }
    }

    /// The server's standard output so far.
    pub fn printed(&self) -> String {
        self.printed.lock().expect("no poison").clone()
    }

    pub fn process_id(&self) -> u32 {
        self.child.as_ref().expect("a running server").id()
    }

    /// A builder for another server on the same data.
    pub fn builder(&self) -> ServerBuilder {
        self.builder.clone()
    }

    pub fn directory(&self) -> PathBuf {
        self.builder.directory()
    }

    /// Runs another command of the binary with the settings of this server, in its directory.
    pub async fn run(&self, arguments: &[&str], input: &str) -> Ran {
        self.builder.run(arguments, input).await
    }

    /// Kills the process, like a power cut.
    pub fn kill(&mut self) {
        if let Some(mut child) = self.child.take() {
            child.kill().expect("a kill");
            child.wait().expect("an end");
        }
    }

    /// Sends a signal by name.
    pub fn signal(&self, name: &str) {
        let sent = Command::new("kill").arg(format!("-{name}")).arg(self.process_id().to_string()).status().expect("kill");
        assert!(sent.success());
    }

    /// Waits until the process ends by itself.
    pub async fn ended(mut self) -> ExitStatus {
        let mut child = self.child.take().expect("a running server");
        let status = tokio::task::spawn_blocking(move || wait(&mut child, crate::WAIT_MAX)).await.expect("a wait");
        status.expect("the server ends")
    }

    /// Kills the process and starts another on the same data.
    pub async fn restart(mut self) -> Server {
        self.kill();
        self.builder.clone().start().await
    }

    pub fn request(&self, method: &str, path: &str) -> reqwest::RequestBuilder {
        let method = method.parse().expect("a method");
        self.client.request(method, format!("{}{path}", self.base)).timeout(Duration::from_secs(60))
    }

    pub async fn send(&self, request: reqwest::RequestBuilder) -> Answer {
        let response = request.send().await.expect("an answer");
        let (status, headers) = (response.status().as_u16(), response.headers().clone());
        Answer { status, headers, text: response.text().await.expect("a body") }
    }

    /// A request without a credential.
    pub async fn call(&self, method: &str, path: &str, body: Option<Value>) -> Answer {
        self.call_as(None, method, path, body).await
    }

    /// A request with a session's token, with an API key, or without a credential.
    pub async fn call_as(&self, credential: Option<&str>, method: &str, path: &str, body: Option<Value>) -> Answer {
        let mut request = self.request(method, path);
        if let Some(credential) = credential {
            request = request.bearer_auth(credential);
        }
        self.send(match body {
            Some(body) => request.json(&body),
            None => request,
        })
        .await
    }

    /// Signs up, and returns the token.
    pub async fn sign_up(&self, name: &str) -> String {
        let body = json!({ "name": name, "email": format!("{name}@example.com"), "password": "correct horse battery" });
        let answer = self.call("POST", "/api/auth/sign-up/email", Some(body)).await;
        assert_eq!(answer.status, 200, "{}", answer.text);
        answer.json()["token"].as_str().expect("a token").to_owned()
    }

    /// The first user, who is admin.
    pub async fn admin(&self) -> Admin<'_> {
        Admin { server: self, token: self.sign_up("admin").await }
    }

    pub fn with_token(&self, token: String) -> Admin<'_> {
        Admin { server: self, token }
    }

    /// Locks a table of Postgres against everybody else until the test releases it.
    pub async fn lock_table(&self, table: &str) -> TableLock {
        self.lock_rows(&format!("LOCK TABLE \"{table}\" IN ACCESS EXCLUSIVE MODE")).await
    }

    /// Makes reads of a Postgres table wait until the test releases them. They wait in a function, because a wait for a lock has
    /// a time limit. [`HELD`] counts these reads.
    pub async fn hold_reads(&self, table: &str) -> TableLock {
        let view = format!(
            "ALTER TABLE \"{table}\" RENAME TO held_table; CREATE VIEW \"{table}\" AS SELECT * FROM held_table WHERE (SELECT wait_for_test())"
        );
        self.hold(&view).await
    }

    /// Does the same for writes to the table.
    pub async fn hold_writes(&self, table: &str) -> TableLock {
        let trigger = format!(
            "CREATE FUNCTION hold_write() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN PERFORM wait_for_test(); RETURN NEW; END $$; \
             CREATE TRIGGER held BEFORE INSERT OR UPDATE ON \"{table}\" FOR EACH ROW EXECUTE FUNCTION hold_write()"
        );
        self.hold(&trigger).await
    }

    /// Makes the same reads or writes wait again, after the test has released them.
    pub async fn hold_again(&self) -> TableLock {
        self.lock_rows(HOLD).await
    }

    async fn hold(&self, definitions: &str) -> TableLock {
        let statements = format!(
            "CREATE FUNCTION wait_for_test() RETURNS boolean LANGUAGE plpgsql VOLATILE AS $$ BEGIN \
             WHILE NOT pg_try_advisory_xact_lock_shared(5050) LOOP PERFORM pg_sleep(0.02); END LOOP; RETURN TRUE; END $$; \
             {definitions}; COMMIT; BEGIN; {HOLD}"
        );
        self.lock_rows(&statements).await
    }

    /// Runs a Postgres statement that takes locks. They are kept until the test releases them.
    pub async fn lock_rows(&self, statement: &str) -> TableLock {
        let url = self.builder.database.as_ref().expect("a Postgres URL");
        let mut connection = PgConnection::connect(url).await.expect("a connection");
        let lock = format!("BEGIN; {statement}");
        sqlx::raw_sql(AssertSqlSafe(lock)).execute(&mut connection).await.expect("a lock");
        TableLock(connection)
    }

    /// Rows from the database itself. Each row is the text of its columns.
    pub async fn sql(&self, sql: &str) -> Vec<Vec<String>> {
        match &self.builder.database {
            Some(url) => postgres_rows(url, sql).await,
            None => {
                let file = self.directory().join("svc-data/svc.db");
                let connection = rusqlite::Connection::open(file).expect("the database");
                connection.busy_timeout(Duration::from_secs(10)).expect("a timeout");
                // A replacement for the server's own function, so that SQLite can explain the server's statements here.
                let flags = rusqlite::functions::FunctionFlags::SQLITE_DETERMINISTIC;
                connection
                    .create_scalar_function("svc_fold", 1, flags, |context| {
                        Ok(context.get::<Option<String>>(0)?.map(|text| text.to_uppercase()))
                    })
                    .expect("a function");
                connection.create_scalar_function("svc_contains", -1, flags, |_| Ok(true)).expect("a function");
                let mut statement = connection.prepare(sql).expect("SQL");
                let width = statement.column_count();
                let mut rows = statement.query([]).expect("rows");
                let mut found = Vec::new();
                while let Some(row) = rows.next().expect("a row") {
                    let cell = |index| match row.get_ref(index).expect("a cell") {
                        rusqlite::types::ValueRef::Integer(number) => number.to_string(),
                        rusqlite::types::ValueRef::Text(text) => String::from_utf8_lossy(text).into_owned(),
                        _ => String::new(),
                    };
                    found.push((0..width).map(cell).collect());
                }
                found
            }
        }
    }
}

/// Takes the lock for which the held statements wait.
const HOLD: &str = "SELECT pg_advisory_xact_lock(5050)";

/// The number of statements of this database that wait in [`Server::hold_reads`] or [`Server::hold_writes`].
pub const HELD: &str =
    "SELECT count(*)::text FROM pg_stat_activity WHERE datname = current_database() AND wait_event = 'PgSleep'";

/// A lock on a table or on rows of Postgres.
pub struct TableLock(PgConnection);

impl TableLock {
    pub async fn release(mut self) {
        sqlx::raw_sql("COMMIT").execute(&mut self.0).await.expect("the end of a transaction");
    }
}

/// Rows of a Postgres database. Each row is the text of its columns.
pub async fn postgres_rows(url: &str, sql: &str) -> Vec<Vec<String>> {
    use sqlx::Row;
    let mut connection = PgConnection::connect(url).await.expect("a connection");
    let rows: Vec<sqlx::postgres::PgRow> =
        sqlx::query(AssertSqlSafe(sql.to_owned())).fetch_all(&mut connection).await.expect("rows");
    let cell = |row: &sqlx::postgres::PgRow, index| {
        let text = row.try_get::<Option<String>, _>(index).map(Option::unwrap_or_default);
        text.or_else(|_| row.try_get::<i64, _>(index).map(|number| number.to_string())).expect("text or bigint")
    };
    rows.iter().map(|row| (0..row.len()).map(|index| cell(row, index)).collect()).collect()
}

/// A client with a token.
#[derive(Clone)]
pub struct Admin<'a> {
    pub server: &'a Server,
    pub token: String,
}

impl Admin<'_> {
    pub fn request(&self, method: &str, path: &str) -> reqwest::RequestBuilder {
        self.server.request(method, path).bearer_auth(&self.token)
    }

    pub async fn get(&self, path: &str) -> Answer {
        self.server.send(self.request("GET", path)).await
    }

    pub async fn post(&self, path: &str, body: Value) -> Answer {
        self.server.send(self.request("POST", path).json(&body)).await
    }

    pub async fn patch(&self, path: &str, body: Value) -> Answer {
        self.server.send(self.request("PATCH", path).json(&body)).await
    }

    pub async fn delete(&self, path: &str) -> Answer {
        self.server.send(self.request("DELETE", path)).await
    }

    pub async fn delete_with(&self, path: &str, body: Value) -> Answer {
        self.server.send(self.request("DELETE", path).json(&body)).await
    }

    /// Defines an object with this name and these fields.
    #[track_caller]
    pub fn define<'b>(&'b self, name: &'b str, fields: Value) -> impl Future<Output = ()> + 'b {
        let place = std::panic::Location::caller();
        async move {
            let answer = self.post("/api/v1/objects", json!({ "name": name, "fields": fields })).await;
            assert_eq!(answer.status, 201, "{place}: {}", answer.text);
        }
    }

    /// Makes a relationship, and returns its id.
    pub async fn relate(&self, definition: Value) -> i64 {
        self.post("/api/v1/relationships", definition).await.data()["id"].as_i64().expect("an id")
    }

    /// Creates a record, and returns its id.
    pub async fn make(&self, object: &str, record: Value) -> String {
        let answer = self.post(&format!("/api/v1/data/{object}"), record).await;
        assert_eq!(answer.status, 201, "{}", answer.text);
        answer.json()["data"]["id"].as_str().expect("an id").to_owned()
    }

    /// The events of an object in the outbox, oldest first: topic and payload.
    pub async fn outbox(&self, object: &str) -> Vec<(String, Value)> {
        let rows =
            self.server.sql(&format!("SELECT topic, payload FROM svc_events WHERE object = '{object}' ORDER BY seq")).await;
        rows.into_iter().map(|row| (row[0].clone(), serde_json::from_str(&row[1]).expect("JSON"))).collect()
    }

    /// Uploads a packed block.
    pub async fn install(&self, query: &str, file: Vec<u8>) -> Answer {
        let request = self.request("POST", &format!("/api/v1/blocks{query}")).header("content-type", "application/wasm");
        // Compiling a block with an interpreter takes long on a busy machine.
        self.server.send(request.timeout(Duration::from_secs(300)).body(file)).await
    }

    /// An object `task` with a title, a flag and a priority from 0 to 9.
    pub async fn make_task_object(&self) {
        let definition = json!({ "name": "task", "fields": [
            { "name": "title", "type": "text", "required": true, "max": 200 },
            { "name": "done", "type": "boolean", "default": false },
            { "name": "priority", "type": "integer", "min": 0, "max": 9 },
        ] });
        assert_eq!(self.post("/api/v1/objects", definition).await.status, 201);
    }
}

//! Private Postgres clusters from the distribution's binaries: one for the whole run, and others for tests that crash them.

use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::OnceLock;
use std::time::{Duration, Instant};

use crate::run::{next_number, postgres_port, run_number};

use sqlx::{AssertSqlSafe, Connection, PgConnection};

/// The number of threads that delete the files of a cluster.
const REMOVED_AT_ONCE: usize = 8;
/// How long a cluster may take to start.
const START_TIME_MAX: Duration = Duration::from_secs(60);

/// A separate Postgres. It ends when this is dropped.
pub struct Cluster {
    port: u16,
    /// The shell that runs the server. When this process ends in any way, the shell's standard input closes, and it stops the server.
    shell: Child,
    directory: tempfile::TempDir,
}

fn binaries() -> PathBuf {
    let mut versions: Vec<PathBuf> = std::fs::read_dir("/usr/lib/postgresql")
        .map(|entries| entries.filter_map(|entry| Some(entry.ok()?.path().join("bin"))).collect())
        .unwrap_or_default();
    versions.sort();
    let on_path = std::env::split_paths(&std::env::var_os("PATH").unwrap_or_default()).find(|path| path.join("initdb").is_file());
    versions
        .into_iter()
        .rfind(|path| path.join("initdb").is_file())
        .or(on_path)
        .expect("Postgres' binaries (Debian: apt-get install postgresql)")
}

fn is_root() -> bool {
    let output = Command::new("id").arg("-u").output().expect("id");
    output.stdout.trim_ascii() == b"0"
}

/// Postgres refuses to run as root. If this process is root, Postgres runs as its own user.
fn as_postgres_user(program: &Path) -> Command {
    if !is_root() {
        return Command::new(program);
    }
    let mut command = Command::new("setpriv");
    command.args(["--reuid=postgres", "--regid=postgres", "--clear-groups"]).arg(program);
    command
}

/// A port of this machine that is not in use. Each call returns another one.
///
/// It is not one of the ports that the kernel gives to outgoing connections. An outgoing connection could take such a port before
/// its listener starts.
pub fn free_port() -> u16 {
    loop {
        // Two runs at the same time start at different ports.
        let step = run_number() + next_number("port");
        let port = u16::try_from(12_000 + step % 10_000).expect("a port");
        if std::net::TcpListener::bind(("127.0.0.1", port)).is_ok() {
            return port;
        }
    }
}

/// Runs the server on a cluster's data, and waits until it listens.
fn run(directory: &Path, port: u16) -> Child {
    let data = directory.join("data");
    let script = format!(
        "'{}' -D '{}' -p {port} -h 127.0.0.1 -c unix_socket_directories='' -c fsync=off -c max_connections=400 -c logging_collector=off & \
         child=$!; cat > /dev/null; kill -INT $child; wait $child",
        binaries().join("postgres").display(),
        data.display()
    );
    let log = std::fs::File::options().create(true).append(true).open(directory.join("log")).expect("a file");
    let shell = as_postgres_user(Path::new("/bin/sh"))
        .arg("-c")
        .arg(script)
        .current_dir(&data)
        .stdin(Stdio::piped())
        .stdout(Stdio::null())
        .stderr(log)
        .spawn()
        .expect("a shell");
    let deadline = Instant::now() + START_TIME_MAX;
    while std::net::TcpStream::connect(("127.0.0.1", port)).is_err() {
        assert!(Instant::now() < deadline, "Postgres does not start");
        std::thread::sleep(Duration::from_millis(50));
    }
    shell
}

impl Drop for Cluster {
    fn drop(&mut self) {
        drop(self.shell.stdin.take());
        let _ = self.shell.wait();
        // The databases of a whole run have a hundred thousand files. On a slow disk, one thread needs minutes to delete them.
        let databases = std::fs::read_dir(self.directory.path().join("data/base")).into_iter().flatten();
        let paths: Vec<_> = databases.flatten().map(|entry| entry.path()).collect();
        std::thread::scope(|scope| {
            for some in paths.chunks(paths.len().div_ceil(REMOVED_AT_ONCE).max(1)) {
                scope.spawn(|| some.iter().for_each(|path| drop(std::fs::remove_dir_all(path))));
            }
        });
    }
}

impl Cluster {
    /// Makes and starts a cluster. It blocks the thread meanwhile.
    pub fn start() -> Cluster {
        let directory = tempfile::tempdir().expect("a directory");
        let data = directory.path().join("data");
        std::fs::create_dir(&data).expect("a directory");
        if is_root() {
            for path in [directory.path(), &data] {
                let done = Command::new("chown").arg("postgres:postgres").arg(path).status().expect("chown");
                assert!(done.success());
            }
        }
        let made = as_postgres_user(&binaries().join("initdb"))
            .arg("-D")
            .arg(&data)
            .args(["-U", "test", "--auth=trust", "--encoding=UTF8", "--locale=C.UTF-8", "--no-sync"])
            .current_dir(directory.path())
            .stdout(Stdio::null())
            .status()
            .expect("initdb");
        assert!(made.success());
        let port = free_port();
        let shell = run(directory.path(), port);
        Cluster { port, shell, directory }
    }

    pub fn port(&self) -> u16 {
        self.port
    }

    /// The URL of a new, empty database.
    pub async fn new_database(&self, name: &str) -> String {
        new_database_at(self.port, name).await
    }

    /// Ends the server at once, like a crash: all sessions break, and nothing more is written.
    pub fn crash(&mut self) {
        let file = std::fs::read_to_string(self.directory.path().join("data/postmaster.pid")).expect("a running server");
        let process = file.lines().next().expect("a process id");
        assert!(Command::new("kill").args(["-QUIT", process]).status().expect("kill").success());
        drop(self.shell.stdin.take());
        self.shell.wait().expect("an end");
    }

    /// Starts the server again after a crash.
    pub fn start_again(&mut self) {
        self.shell = run(self.directory.path(), self.port);
    }
}

/// A transaction that has written something and is still open.
pub struct Transaction(PgConnection);

impl Transaction {
    /// Begins the transaction in this database.
    pub async fn begin(url: &str) -> Transaction {
        let mut connection = PgConnection::connect(url).await.expect("a connection");
        sqlx::raw_sql("BEGIN; CREATE TABLE written (id int)").execute(&mut connection).await.expect("a transaction");
        Transaction(connection)
    }

    pub async fn end(mut self) {
        sqlx::raw_sql("COMMIT").execute(&mut self.0).await.expect("the end of a transaction");
    }
}

/// The URL of a new, empty database in the cluster that the tests share.
pub async fn new_database() -> String {
    static CLUSTER: OnceLock<Cluster> = OnceLock::new();
    let port = match postgres_port() {
        Some(port) => port,
        None => tokio::task::spawn_blocking(|| CLUSTER.get_or_init(Cluster::start).port).await.expect("a cluster"),
    };
    new_database_at(port, &format!("test_{}", next_number("database"))).await
}

async fn new_database_at(port: u16, name: &str) -> String {
    let base = format!("postgres://test@127.0.0.1:{port}");
    let deadline = Instant::now() + START_TIME_MAX;
    let mut connection = loop {
        // A server that is still starting accepts the connection, but refuses the session.
        match PgConnection::connect(&format!("{base}/postgres")).await {
            Ok(connection) => break connection,
            Err(error) => assert!(Instant::now() < deadline, "{error}"),
        }
        tokio::time::sleep(Duration::from_millis(50)).await;
    };
    sqlx::query(AssertSqlSafe(format!("CREATE DATABASE {name}"))).execute(&mut connection).await.expect("a database");
    format!("{base}/{name}")
}

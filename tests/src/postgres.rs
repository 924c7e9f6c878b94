//! A private Postgres cluster for the test process, started from the distribution's binaries.

use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::OnceLock;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::{Duration, Instant};

use sqlx::{AssertSqlSafe, Connection, PgConnection};

struct Cluster {
    port: u16,
    /// Its standard input is the cluster's life: when this process ends, however it does, the shell stops the server.
    _shell: Child,
    _directory: tempfile::TempDir,
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

/// Postgres refuses to run as root, so there it runs as its own user.
fn as_postgres_user(program: &Path) -> Command {
    if !is_root() {
        return Command::new(program);
    }
    let mut command = Command::new("setpriv");
    command.args(["--reuid=postgres", "--regid=postgres", "--clear-groups"]).arg(program);
    command
}

fn free_port() -> u16 {
    let listener = std::net::TcpListener::bind("127.0.0.1:0").expect("a free port");
    listener.local_addr().expect("an address").port()
}

fn start() -> Cluster {
    let directory = tempfile::tempdir().expect("a directory");
    let data = directory.path().join("data");
    std::fs::create_dir(&data).expect("a directory");
    if is_root() {
        for path in [directory.path(), &data] {
            let done = Command::new("chown").arg("postgres:postgres").arg(path).status().expect("chown");
            assert!(done.success());
        }
    }
    let binaries = binaries();
    let made = as_postgres_user(&binaries.join("initdb"))
        .arg("-D")
        .arg(&data)
        .args(["-U", "test", "--auth=trust", "--encoding=UTF8", "--locale=C.UTF-8", "--no-sync"])
        .current_dir(directory.path())
        .stdout(Stdio::null())
        .status()
        .expect("initdb");
    assert!(made.success());
    let port = free_port();
    let server = binaries.join("postgres");
    let script = format!(
        "'{}' -D '{}' -p {port} -h 127.0.0.1 -c unix_socket_directories='' -c fsync=off -c max_connections=400 -c logging_collector=off & \
         child=$!; cat > /dev/null; kill -INT $child; wait $child",
        server.display(),
        data.display()
    );
    let log = std::fs::File::create(directory.path().join("log")).expect("a file");
    let shell = as_postgres_user(Path::new("/bin/sh"))
        .arg("-c")
        .arg(script)
        .current_dir(&data)
        .stdin(Stdio::piped())
        .stdout(Stdio::null())
        .stderr(log)
        .spawn()
        .expect("a shell");
    let deadline = Instant::now() + Duration::from_secs(60);
    while std::net::TcpStream::connect(("127.0.0.1", port)).is_err() {
        assert!(Instant::now() < deadline, "Postgres does not start");
        std::thread::sleep(Duration::from_millis(50));
    }
    Cluster { port, _shell: shell, _directory: directory }
}

/// The URL of a new, empty database.
pub async fn new_database() -> String {
    static CLUSTER: OnceLock<Cluster> = OnceLock::new();
    static NUMBER: AtomicU32 = AtomicU32::new(0);
    let port = tokio::task::spawn_blocking(|| CLUSTER.get_or_init(start).port).await.expect("a cluster");
    let name = format!("test_{}", NUMBER.fetch_add(1, Ordering::Relaxed));
    let base = format!("postgres://test@127.0.0.1:{port}");
    let deadline = Instant::now() + Duration::from_secs(60);
    let mut connection = loop {
        // A server that still starts takes the connection and refuses the session.
        match PgConnection::connect(&format!("{base}/postgres")).await {
            Ok(connection) => break connection,
            Err(error) => assert!(Instant::now() < deadline, "{error}"),
        }
        tokio::time::sleep(Duration::from_millis(50)).await;
    };
    sqlx::query(AssertSqlSafe(format!("CREATE DATABASE {name}"))).execute(&mut connection).await.expect("a database");
    format!("{base}/{name}")
}

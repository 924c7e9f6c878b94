//! A private Postgres cluster for the run, started from the distribution's binaries. It keeps the default durability.

use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use sqlx::{AssertSqlSafe, Connection, PgConnection};

const START_TIME_MAX: Duration = Duration::from_secs(60);

pub(crate) struct Cluster {
    port: u16,
    /// The cluster lives as long as the shell's standard input is open. When this process ends in any way, the shell stops the server.
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

fn free_port() -> u16 {
    let listener = std::net::TcpListener::bind("127.0.0.1:0").expect("a free port");
    listener.local_addr().expect("an address").port()
}

impl Cluster {
    pub(crate) fn start() -> Cluster {
        let directory = tempfile::tempdir().expect("a directory");
        let data = directory.path().join("data");
        std::fs::create_dir(&data).expect("a directory");
        if is_root() {
            let done = Command::new("chown").arg("-R").arg("postgres:postgres").arg(directory.path()).status().expect("chown");
            assert!(done.success());
        }
        let binaries = binaries();
        let made = as_postgres_user(&binaries.join("initdb"))
            .arg("-D")
            .arg(&data)
            .args(["-U", "bench", "--auth=trust", "--encoding=UTF8", "--locale=C.UTF-8"])
            .current_dir(directory.path())
            .stdout(Stdio::null())
            .status()
            .expect("initdb");
        assert!(made.success());
        let port = free_port();
        // The terminal's interrupt also reaches the shell. The shell has to ignore it, to stop the server and to clean up.
        let script = format!(
            "trap '' INT; '{}' -D '{data}' -p {port} -h 127.0.0.1 -c unix_socket_directories='' -c shared_buffers=256MB & \
             child=$!; cat > /dev/null; kill -INT $child; wait $child; rm -rf '{data}'",
            binaries.join("postgres").display(),
            data = data.display()
        );
        let log = std::fs::File::create(directory.path().join("log")).expect("a file");
        let shell = as_postgres_user(Path::new("/bin/sh"))
            .arg("-c")
            .arg(script)
            .current_dir(directory.path())
            .stdin(Stdio::piped())
            .stdout(Stdio::null())
            .stderr(log)
            .spawn()
            .expect("a shell");
        let cluster = Cluster { port, shell, directory };
        let deadline = Instant::now() + START_TIME_MAX;
        while std::net::TcpStream::connect(("127.0.0.1", port)).is_err() {
            assert!(Instant::now() < deadline, "Postgres does not start: {}", cluster.log());
            std::thread::sleep(Duration::from_millis(50));
        }
        cluster
    }

    fn log(&self) -> String {
        std::fs::read_to_string(self.directory.path().join("log")).unwrap_or_default()
    }

    fn url(&self, database: &str) -> String {
        format!("postgres://bench@127.0.0.1:{}/{database}", self.port)
    }

    pub(crate) async fn connect(&self, database: &str) -> PgConnection {
        let deadline = Instant::now() + START_TIME_MAX;
        loop {
            // A server that is still starting accepts the connection but refuses the session.
            match PgConnection::connect(&self.url(database)).await {
                Ok(connection) => return connection,
                Err(error) => assert!(Instant::now() < deadline, "{error}: {}", self.log()),
            }
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
    }

    async fn execute(&self, database: &str, sql: String) {
        let mut connection = self.connect(database).await;
        sqlx::raw_sql(AssertSqlSafe(sql)).execute(&mut connection).await.unwrap();
        connection.close().await.unwrap();
    }

    /// The URL of a new, empty database.
    pub(crate) async fn new_database(&self, name: &str) -> String {
        self.execute("postgres", format!("CREATE DATABASE {name}")).await;
        self.url(name)
    }

    pub(crate) async fn drop_database(&self, name: &str) {
        self.execute("postgres", format!("DROP DATABASE {name} WITH (FORCE)")).await;
    }

    /// Does immediately the maintenance that the server would do by itself later.
    pub(crate) async fn settle(&self, database: &str) {
        self.execute(database, "VACUUM (ANALYZE)".to_owned()).await;
        self.execute(database, "CHECKPOINT".to_owned()).await;
    }
}

impl Drop for Cluster {
    fn drop(&mut self) {
        drop(self.shell.stdin.take());
        let _ = self.shell.wait();
    }
}

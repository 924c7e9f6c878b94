//! A private OCI registry: the distribution's `docker-registry` on a free loopback port. A folder keeps its blobs.

use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use crate::free_port;

/// How long a registry may take to start.
const START_TIME_MAX: Duration = crate::WAIT_MAX;
/// The user and the bcrypt hash of the password, in the form of htpasswd.
const HTPASSWD: &str = "ann:$2y$05$abcdefghijklmnopqrstuuD3mHdCr44zlIZ.VZCaYRpfQhXMYnEo.\n";

/// A running registry. It ends when this is dropped.
pub struct Registry {
    /// `127.0.0.1:<port>`
    pub host: String,
    /// The shell that runs the registry. When this process ends in any way, the shell's standard input closes, and it stops the registry.
    shell: Child,
    directory: tempfile::TempDir,
}

fn program() -> PathBuf {
    let path = std::env::var_os("PATH").unwrap_or_default();
    let names = ["docker-registry", "registry"];
    let found = std::env::split_paths(&path).flat_map(|folder| names.map(|name| folder.join(name))).find(|file| file.is_file());
    found.expect("docker-registry (Debian: apt-get install docker-registry)")
}

impl Registry {
    /// The name and the password of the only user of a registry that needs credentials.
    pub const USER: (&str, &str) = ("ann", "correct horse battery");

    /// Starts a registry that needs no credentials.
    pub async fn start() -> Registry {
        Registry::with("").await
    }

    /// Starts a registry that accepts only [`Registry::USER`].
    pub async fn start_closed() -> Registry {
        Registry::with("auth: { htpasswd: { realm: tests, path: htpasswd } }\n").await
    }

    async fn with(settings: &'static str) -> Registry {
        tokio::task::spawn_blocking(move || {
            let directory = tempfile::tempdir().expect("a directory");
            let host = format!("127.0.0.1:{}", free_port());
            let config = format!(
                "version: 0.1\nlog: {{ level: warn }}\nstorage: {{ filesystem: {{ rootdirectory: blobs }} }}\nhttp: {{ addr: '{host}' }}\n{settings}"
            );
            std::fs::write(directory.path().join("config.yml"), config).expect("a file");
            std::fs::write(directory.path().join("htpasswd"), HTPASSWD).expect("a file");
            let script =
                format!("'{}' serve config.yml & child=$!; cat > /dev/null; kill $child; wait $child", program().display());
            let shell = Command::new("sh")
                .args(["-c", &script])
                .current_dir(directory.path())
                .stdin(Stdio::piped())
                .stdout(Stdio::null())
                .stderr(Stdio::null())
                .spawn()
                .expect("a shell");
            let deadline = Instant::now() + START_TIME_MAX;
            while std::net::TcpStream::connect(&host).is_err() {
                assert!(Instant::now() < deadline, "the registry does not start");
                std::thread::sleep(Duration::from_millis(20));
            }
            Registry { host, shell, directory }
        })
        .await
        .expect("a registry that starts")
    }

    /// The file of a blob. Its digest is its name.
    pub fn blob(&self, digest: &str) -> PathBuf {
        let hex = digest.strip_prefix("sha256:").expect("a digest");
        let blobs = Path::new("blobs/docker/registry/v2/blobs/sha256");
        self.directory.path().join(blobs).join(&hex[..2]).join(hex).join("data")
    }
}

impl Drop for Registry {
    fn drop(&mut self) {
        drop(self.shell.stdin.take());
        let _ = self.shell.wait();
    }
}

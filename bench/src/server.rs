//! A server process under test.

use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

pub(crate) struct Process {
    child: Child,
    pub(crate) address: String,
    /// The time from the start of the process until it listens.
    pub(crate) started_in: Duration,
}

impl Process {
    /// Starts a command that prints a line with `http://<address>` at the line's end.
    pub(crate) fn start(command: &mut Command) -> Process {
        let begun = Instant::now();
        let mut child = command.stdin(Stdio::null()).stdout(Stdio::piped()).spawn().expect("the server's binary");
        let mut line = String::new();
        BufReader::new(child.stdout.take().unwrap()).read_line(&mut line).unwrap();
        let address = line.trim().rsplit_once("http://").unwrap_or_else(|| panic!("no address: {line}")).1.to_owned();
        Process { child, address, started_in: begun.elapsed() }
    }

    /// Resident memory now and at its peak, in MiB.
    pub(crate) fn memory_mib(&self) -> (f64, f64) {
        let status = std::fs::read_to_string(format!("/proc/{}/status", self.child.id())).unwrap_or_default();
        let kib = |name: &str| {
            let line = status.lines().find(|line| line.starts_with(name)).unwrap_or_default();
            line.split_whitespace().nth(1).and_then(|number| number.parse::<f64>().ok()).unwrap_or(0.0)
        };
        (kib("VmRSS:") / 1024.0, kib("VmHWM:") / 1024.0)
    }

    /// Resets the peak of [`Process::memory_mib`].
    pub(crate) fn forget_peak(&self) {
        std::fs::write(format!("/proc/{}/clear_refs", self.child.id()), "5").unwrap();
    }

    /// The processor time of the process, both in its own code and in the kernel.
    pub(crate) fn processor_time(&self) -> Duration {
        let stat = std::fs::read_to_string(format!("/proc/{}/stat", self.child.id())).unwrap_or_default();
        let after_name = stat.rsplit_once(')').unwrap_or_default().1;
        let ticks: u64 = after_name.split_whitespace().skip(11).take(2).filter_map(|number| number.parse::<u64>().ok()).sum();
        Duration::from_millis(ticks * 10)
    }

    /// Resident memory in MiB. If a page is mapped several times, it counts once.
    pub(crate) fn proportional_mib(&self) -> f64 {
        let rollup = std::fs::read_to_string(format!("/proc/{}/smaps_rollup", self.child.id())).unwrap_or_default();
        let line = rollup.lines().find(|line| line.starts_with("Pss:")).unwrap_or_default();
        line.split_whitespace().nth(1).and_then(|number| number.parse::<f64>().ok()).unwrap_or(0.0) / 1024.0
    }
}

impl Process {
    /// Stops the process as an operator would. After that, all its writes are in the database's own file.
    pub(crate) fn stop(mut self) {
        let told = Command::new("kill").arg(self.child.id().to_string()).status();
        assert!(told.is_ok_and(|status| status.success()) && self.child.wait().is_ok());
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Starts the server without rate limits and with these variables, in `directory`. It uses SQLite there, unless `database` is a URL.
pub(crate) fn blockbase(binary: &Path, directory: &Path, database: Option<&str>, environment: &[(&str, &str)]) -> Process {
    let binary = std::fs::canonicalize(binary).expect("the server's binary: cargo build --release");
    let mut command = Command::new(binary);
    command
        .arg("serve")
        .current_dir(directory)
        .env("SVC_LISTEN", "127.0.0.1:0")
        .env("SVC_RATE_LIMIT_RPM", "0")
        .env("SVC_AUTH_RATE_LIMIT_RPM", "0")
        .env("SVC_LOG", "warn")
        .envs(environment.iter().copied());
    if let Some(database) = database {
        command.env("SVC_DATABASE_URL", database).env("SVC_SECRET", "a secret of the benchmark, long enough");
    }
    Process::start(&mut command)
}

/// Starts the floor on a file in `directory`, unless `database` is a URL.
pub(crate) fn floor(directory: &Path, database: Option<&str>) -> Process {
    let file = directory.join("floor.db");
    let mut command = Command::new(std::env::current_exe().unwrap());
    command.arg("floor").arg(database.map_or(file.as_os_str(), AsRef::as_ref));
    Process::start(&mut command)
}

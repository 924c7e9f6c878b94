//! Commands of the command line, and their outcomes.

use std::fs::File;
use std::io::{Read, Write};
use std::process::{Child, Command, Output, Stdio};
use std::time::Duration;

use rustix::fs::{OFlags, fcntl_setfl};
use rustix::io::{FdFlags, fcntl_setfd};
use rustix::pty::{OpenptFlags, grantpt, openpt, ptsname, unlockpt};
use rustix::termios::{LocalModes, tcgetattr};
use serde_json::Value;

use crate::until;

/// How long one command may take, on a machine that is compiling other code at the same time.
pub const COMMAND_TIME_MAX: Duration = Duration::from_secs(120);

/// Runs a command to its end, with `input` on standard input.
pub async fn ran(mut command: Command, input: &str) -> Ran {
    let input = input.to_owned();
    let output = tokio::task::spawn_blocking(move || {
        let mut child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().expect("a process");
        let mut stdin = child.stdin.take().expect("a pipe");
        // A command that does not read its input may have ended already.
        let _ = stdin.write_all(input.as_bytes());
        drop(stdin);
        child.wait_with_output().expect("an end")
    });
    Ran::of(tokio::time::timeout(COMMAND_TIME_MAX, output).await.expect("the command ends").expect("a process"))
}

/// A child process that ends with the test, also if the test fails.
struct Killed(Child);

impl Drop for Killed {
    fn drop(&mut self) {
        // It may have ended already.
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// Runs a command to its end at a terminal of its own. `secret` and a line break are typed as soon as the terminal no longer
/// shows what is typed. The outcome's `out` is everything that the terminal showed.
///
/// `command` has to name its directory.
///
/// # Panics
/// If the command ends before that, with what the terminal showed.
pub(crate) async fn ran_at_terminal(command: &Command, secret: &str) -> Ran {
    let terminal = openpt(OpenptFlags::RDWR | OpenptFlags::NOCTTY).expect("a terminal");
    // Some systems cannot open it with this flag.
    fcntl_setfd(&terminal, FdFlags::CLOEXEC).expect("a file that children do not inherit");
    grantpt(&terminal).expect("a terminal of this user");
    unlockpt(&terminal).expect("an unlocked terminal");
    let path = ptsname(&terminal, Vec::new()).expect("a path").into_string().expect("UTF-8");
    // The first terminal that the leader of a new session opens is the one that `/dev/tty` leads to.
    let script = "use POSIX (); POSIX::setsid() > 0 or die \"no session: $!\"; \
                  open(STDIN, '+<', shift) or die \"no terminal: $!\"; \
                  open(STDOUT, '>&STDIN') && open(STDERR, '>&STDIN') or die; exec(@ARGV) or die";
    let mut perl = Command::new("perl");
    perl.arg("-e").arg(script).arg(path).arg(command.get_program()).args(command.get_args());
    perl.env_clear().envs(std::env::var_os("PATH").map(|path| ("PATH", path)));
    perl.envs(command.get_envs().filter_map(|(name, value)| Some((name, value?))));
    perl.current_dir(command.get_current_dir().expect("a directory")).stdin(Stdio::null()).stdout(Stdio::null());
    let mut child = Killed(perl.spawn().expect("perl"));
    let mut terminal = File::from(terminal);
    let shows = || tcgetattr(&terminal).expect("a terminal").local_modes.contains(LocalModes::ECHO);
    let mut ended = None;
    until("the terminal no longer shows what is typed", async || {
        ended = child.0.try_wait().expect("a child");
        ended.is_some() || !shows()
    })
    .await;
    if let Some(status) = ended {
        let mut shown = Vec::new();
        // If no process has opened the terminal, a read would wait for one.
        fcntl_setfl(&terminal, OFlags::NONBLOCK).expect("a terminal");
        let _ = terminal.read_to_end(&mut shown);
        panic!("the command ended too early, with {status}: {}", String::from_utf8_lossy(&shown));
    }
    terminal.write_all(format!("{secret}\n").as_bytes()).expect("typing");
    let shown = tokio::task::spawn_blocking(move || {
        let mut shown = Vec::new();
        // Linux reports an error when no process has the terminal open any more.
        let _ = terminal.read_to_end(&mut shown);
        shown
    });
    let shown = tokio::time::timeout(COMMAND_TIME_MAX, shown).await.expect("the command ends").expect("a thread");
    let mut ended = None;
    until("the command ends", async || {
        ended = child.0.try_wait().expect("a child");
        ended.is_some()
    })
    .await;
    Ran::of(Output { status: ended.expect("an end"), stdout: shown, stderr: Vec::new() })
}

/// The outcome of a command.
#[derive(Debug)]
pub struct Ran {
    pub code: Option<i32>,
    pub out: String,
    pub error: String,
}

impl Ran {
    pub fn of(output: Output) -> Ran {
        let text = |bytes| String::from_utf8(bytes).expect("UTF-8");
        Ran { code: output.status.code(), out: text(output.stdout), error: text(output.stderr) }
    }

    /// Asserts success, and returns what the command printed.
    #[track_caller]
    pub fn out(&self) -> &str {
        assert_eq!(self.code, Some(0), "{self:?}");
        &self.out
    }

    #[track_caller]
    pub fn json(&self) -> Value {
        serde_json::from_str(self.out()).unwrap_or_else(|_| panic!("no JSON: {self:?}"))
    }

    /// Asserts a failure with this exit code and with all these parts of the message.
    #[track_caller]
    pub fn expect_error(&self, code: i32, parts: &[&str]) {
        assert_eq!(self.code, Some(code), "{self:?}");
        for part in parts {
            assert!(self.error.contains(part), "{part:?} is missing: {self:?}");
        }
        assert!(!self.error.contains("panicked"), "{self:?}");
    }
}

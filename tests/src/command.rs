//! Commands of the command line, and their outcomes.

use std::process::{Command, Output, Stdio};
use std::time::Duration;

use serde_json::Value;

/// How long one command may take, on a machine that is compiling other code at the same time.
pub const COMMAND_TIME_MAX: Duration = Duration::from_secs(120);

/// Runs a command to its end, with `input` on standard input.
pub async fn ran(mut command: Command, input: &str) -> Ran {
    let input = input.to_owned();
    let output = tokio::task::spawn_blocking(move || {
        use std::io::Write;
        let mut child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().expect("a process");
        let mut stdin = child.stdin.take().expect("a pipe");
        // A command that does not read its input may have ended already.
        let _ = stdin.write_all(input.as_bytes());
        drop(stdin);
        child.wait_with_output().expect("an end")
    });
    Ran::of(tokio::time::timeout(COMMAND_TIME_MAX, output).await.expect("the command ends").expect("a process"))
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

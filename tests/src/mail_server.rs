//! A mail server for tests: `tests/clients/smtp`, with Python's aiosmtpd.

use std::io::{BufRead, BufReader, Write};
use std::process::{Child, ChildStdin, Stdio};
use std::sync::{Arc, Mutex};

use serde_json::Value;

use crate::packages::{PIP_STEPS, installed};
use crate::{command_in, until};

const FILES: [(&str, &str); 2] = [
    ("requirements.txt", include_str!("../clients/smtp/requirements.txt")),
    ("smtp_server.py", include_str!("../clients/smtp/smtp_server.py")),
];

/// A running mail server. It ends with this value.
pub struct MailServer {
    child: Child,
    input: ChildStdin,
    events: Arc<Mutex<Vec<Value>>>,
    /// The first line that the program printed: its port, and the file of its certificate authority.
    ready: Value,
}

impl MailServer {
    /// Starts a server with arguments of the program.
    pub async fn start(arguments: &[&str]) -> MailServer {
        let arguments: Vec<String> = arguments.iter().map(|argument| (*argument).to_owned()).collect();
        let start = move || {
            let directory = installed("smtp-server", &FILES, &PIP_STEPS);
            let mut command = command_in("venv/bin/python -W ignore smtp_server.py", &directory);
            command.args(arguments).stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::null());
            let mut child = command.spawn().expect("python");
            let input = child.stdin.take().expect("a pipe");
            let mut lines = BufReader::new(child.stdout.take().expect("a pipe")).lines();
            let parse = |line: String| serde_json::from_str::<Value>(&line).unwrap_or_else(|_| panic!("no JSON: {line}"));
            let ready = parse(lines.next().expect("a first line").expect("text"));
            assert_eq!(ready["event"], "ready", "{ready}");
            let events = Arc::new(Mutex::new(Vec::new()));
            let sink = Arc::clone(&events);
            std::thread::spawn(move || {
                for line in lines.map_while(Result::ok) {
                    sink.lock().expect("no poison").push(parse(line));
                }
            });
            MailServer { child, input, events, ready }
        };
        tokio::task::spawn_blocking(start).await.expect("a mail server")
    }

    pub fn port(&self) -> u64 {
        self.ready["port"].as_u64().expect("a port")
    }

    /// The file with the certificate of its authority.
    pub fn authority(&self) -> &str {
        self.ready["authority"].as_str().expect("a server with TLS")
    }

    /// The events of one kind so far.
    pub fn events(&self, kind: &str) -> Vec<Value> {
        self.events.lock().expect("no poison").iter().filter(|event| event["event"] == kind).cloned().collect()
    }

    /// Waits until it has accepted this many mails, and returns them.
    #[track_caller]
    pub fn mails(&self, count: usize) -> impl Future<Output = Vec<Value>> {
        let waited = until("the mails are there", async move || self.events("mail").len() >= count);
        async move {
            waited.await;
            self.events("mail")
        }
    }

    /// Changes its behavior, and waits until the change is in force.
    pub async fn behave(&mut self, how: Value) {
        let before = self.events("behaves").len();
        writeln!(self.input, "{how}").expect("a running server");
        self.input.flush().expect("a running server");
        until("the mail server behaves so", async || self.events("behaves").len() > before).await;
    }
}

impl Drop for MailServer {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

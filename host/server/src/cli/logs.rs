//! `block logs`: shows stored lines, and follows new ones.

use std::time::Duration;

use serde_json::Value;

use super::Problem;
use super::client::Api;
use super::terminal::{inert, inert_json, note, print_line};

/// How often the command asks the server for new lines.
pub(super) const POLL: Duration = Duration::from_secs(1);
/// The number of lines in one request with `--follow`. After a full page, the next request follows at once.
const PAGE: u32 = 500;
/// This refusal is temporary, so the command waits and tries again.
const TOO_MANY_REQUESTS: u16 = 429;

/// The lines to show, and their form.
pub(super) struct Wanted {
    pub(super) block: String,
    pub(super) level: Option<String>,
    pub(super) json: bool,
}

impl Wanted {
    /// Returns the latest lines, or the lines after a cursor, with the oldest first. Also returns the cursor after these lines.
    fn fetch(&self, api: &Api, limit: u32, after: Option<&str>) -> Result<(Vec<Value>, String), Problem> {
        let limit = limit.to_string();
        let mut query = vec![("limit", limit.as_str())];
        query.extend(self.level.as_deref().map(|level| ("level", level)));
        query.extend(after.map(|after| ("after", after)));
        let reply = api.get(&["blocks", &self.block, "logs"], &query)?;
        let cursor = reply.expect()?["cursor"].as_str().unwrap_or_default().to_owned();
        let Value::Array(mut lines) = reply.data()? else { return Ok((Vec::new(), cursor)) };
        if after.is_none() {
            lines.reverse();
        }
        Ok((lines, cursor))
    }

    fn print(&self, lines: &[Value]) {
        for line in lines {
            print_line(&if self.json { inert_json(&line.to_string()).into_owned() } else { rendered(line) });
        }
    }
}

/// A line as `time LEVEL message {fields}`. It is always one line, no matter what the block wrote.
fn rendered(line: &Value) -> String {
    let text = |key: &str| inert(line[key].as_str().unwrap_or_default()).into_owned();
    let mut shown = format!("{} {:5} {}", text("at"), text("level").to_uppercase(), text("message"));
    if line["fields"].as_object().is_some_and(|fields| !fields.is_empty()) {
        shown.push_str(&format!(" {}", inert_json(&line["fields"].to_string())));
    }
    shown
}

/// Follows a log. It remembers how far it has read.
pub(super) struct Follower {
    cursor: String,
    has_failed: bool,
}

impl Follower {
    /// Begins after the existing lines.
    pub(super) fn begin(api: &Api, wanted: &Wanted) -> Result<Follower, Problem> {
        let (_, cursor) = wanted.fetch(api, 1, None)?;
        Ok(Follower { cursor, has_failed: false })
    }

    /// Prints new lines. If the server does not answer, reports this once and waits.
    ///
    /// # Errors
    /// If the server refuses the request and would refuse it again.
    pub(super) fn poll(&mut self, api: &Api, wanted: &Wanted) -> Result<(), Problem> {
        match self.catch_up(api, wanted) {
            Ok(()) => self.has_failed = false,
            Err(problem) => {
                if let Ok(reply) = api.get(&["blocks", &wanted.block], &[])
                    && (400..500).contains(&reply.status)
                    && reply.status != TOO_MANY_REQUESTS
                {
                    return Err(reply.problem());
                }
                if let Problem::Failed(line) | Problem::Usage(line) = problem
                    && !self.has_failed
                {
                    note(&format!("{line}\nTrying again."));
                }
                self.has_failed = true;
            }
        }
        Ok(())
    }

    fn catch_up(&mut self, api: &Api, wanted: &Wanted) -> Result<(), Problem> {
        loop {
            let (lines, cursor) = wanted.fetch(api, PAGE, Some(&self.cursor))?;
            wanted.print(&lines);
            self.cursor = cursor;
            if lines.len() < PAGE as usize {
                return Ok(());
            }
        }
    }
}

#[expect(clippy::disallowed_methods, reason = "the thread of a command serves nobody else")]
pub(super) fn logs(api: &Api, wanted: &Wanted, limit: u32, follow: bool) -> Result<(), Problem> {
    let (lines, cursor) = wanted.fetch(api, limit, None)?;
    wanted.print(&lines);
    if !follow {
        return Ok(());
    }
    let mut follower = Follower { cursor, has_failed: false };
    loop {
        std::thread::sleep(POLL);
        follower.poll(api, wanted)?;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn a_line_stays_one_line() {
        let line =
            json!({ "at": "2026-01-01T00:00:00.000Z", "level": "warn", "message": "a\n\u{1b}[31mb", "fields": { "n": 1 } });
        assert_eq!(rendered(&line), "2026-01-01T00:00:00.000Z WARN  a\\n\\u{1b}[31mb {\"n\":1}");
    }
}

//! `block logs`: the stored lines, and those that come.

use std::collections::HashMap;
use std::time::Duration;

use serde_json::Value;

use super::Problem;
use super::client::Api;
use super::terminal::{inert, inert_json, note, print_line};

/// How often new lines are asked for.
pub(super) const POLL: Duration = Duration::from_secs(1);
/// The latest lines that are looked at each time; of more in one second the older ones are not shown.
const WINDOW: u32 = 500;
/// A refusal that does not last.
const TOO_MANY_REQUESTS: u16 = 429;

/// Which lines, and how.
pub(super) struct Wanted {
    pub(super) block: String,
    pub(super) level: Option<String>,
    pub(super) json: bool,
}

impl Wanted {
    /// The latest lines, oldest first.
    fn latest(&self, api: &Api, limit: u32) -> Result<Vec<Value>, Problem> {
        let limit = limit.to_string();
        let mut query = vec![("limit", limit.as_str())];
        query.extend(self.level.as_deref().map(|level| ("level", level)));
        match api.get(&["blocks", &self.block, "logs"], &query)?.data()? {
            Value::Array(mut lines) => {
                lines.reverse();
                Ok(lines)
            }
            _ => Ok(Vec::new()),
        }
    }

    fn print(&self, lines: &[Value]) {
        for line in lines {
            print_line(&if self.json { inert_json(&line.to_string()).into_owned() } else { rendered(line) });
        }
    }
}

/// `time LEVEL message {fields}`, on one line whatever the block wrote.
fn rendered(line: &Value) -> String {
    let text = |key: &str| inert(line[key].as_str().unwrap_or_default()).into_owned();
    let mut shown = format!("{} {:5} {}", text("at"), text("level").to_uppercase(), text("message"));
    if line["fields"].as_object().is_some_and(|fields| !fields.is_empty()) {
        shown.push_str(&format!(" {}", inert_json(&line["fields"].to_string())));
    }
    shown
}

/// What of a log was seen. Lines have no id, and other instances' lines may come in between; so those that are in the window
/// more often than before are the new ones.
#[derive(Default)]
pub(super) struct Follower {
    seen: HashMap<String, usize>,
    has_failed: bool,
}

impl Follower {
    /// Begins after what is there now.
    pub(super) fn begin(api: &Api, wanted: &Wanted) -> Result<Follower, Problem> {
        let mut follower = Follower::default();
        follower.unseen(wanted.latest(api, WINDOW)?);
        Ok(follower)
    }

    /// Prints what came since. A server that is away is waited for, which is said once.
    ///
    /// # Errors
    /// A server that answers and refuses, as it will the next time.
    pub(super) fn poll(&mut self, api: &Api, wanted: &Wanted) -> Result<(), Problem> {
        match wanted.latest(api, WINDOW) {
            Ok(lines) => {
                wanted.print(&self.unseen(lines));
                self.has_failed = false;
            }
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

    fn unseen(&mut self, window: Vec<Value>) -> Vec<Value> {
        let mut known = std::mem::take(&mut self.seen);
        let mut new = Vec::new();
        for line in window {
            let text = line.to_string();
            match known.get_mut(&text) {
                Some(count) if *count > 0 => *count -= 1,
                _ => new.push(line),
            }
            *self.seen.entry(text).or_default() += 1;
        }
        new
    }
}

pub(super) fn logs(api: &Api, wanted: &Wanted, limit: u32, follow: bool) -> Result<(), Problem> {
    if !follow {
        wanted.print(&wanted.latest(api, limit)?);
        return Ok(());
    }
    let mut follower = Follower::default();
    let lines = follower.unseen(wanted.latest(api, WINDOW.max(limit))?);
    let shown = usize::try_from(limit).unwrap_or(usize::MAX);
    wanted.print(&lines[lines.len().saturating_sub(shown)..]);
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
    fn a_follower_shows_each_line_once_wherever_it_comes_in() {
        let line = |text: &str| json!({ "message": text });
        let mut follower = Follower::default();
        assert_eq!(follower.unseen(vec![line("a"), line("b"), line("b")]).len(), 3);
        assert_eq!(follower.unseen(vec![line("a"), line("b"), line("b")]), Vec::<Value>::new());
        // One more of the same, one between, and the oldest has left the window.
        assert_eq!(follower.unseen(vec![line("b"), line("c"), line("b"), line("b")]), [line("c"), line("b")]);
    }

    #[test]
    fn a_line_stays_one_line() {
        let line =
            json!({ "at": "2026-01-01T00:00:00.000Z", "level": "warn", "message": "a\n\u{1b}[31mb", "fields": { "n": 1 } });
        assert_eq!(rendered(&line), "2026-01-01T00:00:00.000Z WARN  a\\n\\u{1b}[31mb {\"n\":1}");
    }
}

//! Topics as conditions of statements: all that begin alike, or all that a pattern matches.

use std::sync::Arc;

use blockbase_query::{Dialect, TopicPattern};
use rusqlite::Connection as Driver;
use rusqlite::functions::FunctionFlags;

/// Which topics are asked for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum TopicMatch {
    Prefix(String),
    Pattern(TopicPattern),
}

impl TopicMatch {
    pub(crate) fn param(&self, dialect: Dialect) -> String {
        match (self, dialect) {
            (TopicMatch::Prefix(prefix), _) => prefix.clone(),
            (TopicMatch::Pattern(pattern), Dialect::Sqlite) => pattern.text(),
            (TopicMatch::Pattern(pattern), Dialect::Postgres) => expression(&pattern.text()),
        }
    }

    /// The condition on `topic` (SQL) with the parameter at `place`.
    pub(crate) fn condition(&self, dialect: Dialect, topic: &str, place: usize) -> String {
        match (self, dialect) {
            (TopicMatch::Prefix(_), Dialect::Sqlite) => format!("substr({topic}, 1, length(${place})) = ${place}"),
            (TopicMatch::Prefix(_), Dialect::Postgres) => format!("starts_with({topic}, ${place})"),
            (TopicMatch::Pattern(_), Dialect::Sqlite) => format!("svc_matches({topic}, ${place})"),
            (TopicMatch::Pattern(_), Dialect::Postgres) => format!("({topic} || '.') ~ ${place}"),
        }
    }
}

/// The pattern as a regular expression of Postgres. It expects a dot behind the topic, so that every segment ends with one.
fn expression(pattern: &str) -> String {
    let mut out = String::from("^");
    for segment in pattern.split('.') {
        match segment {
            "*" => out.push_str("[^.]*[.]"),
            "#" => out.push_str("([^.]*[.])*"),
            literal => {
                for character in literal.chars() {
                    if character.is_ascii() && !character.is_ascii_alphanumeric() && character != '_' {
                        out.push('\\');
                    }
                    out.push(character);
                }
                out.push_str("[.]");
            }
        }
    }
    out.push('$');
    out
}

/// Registers `svc_matches(topic, pattern)`.
pub(crate) fn register(driver: &Driver) -> rusqlite::Result<()> {
    let flags = FunctionFlags::SQLITE_UTF8 | FunctionFlags::SQLITE_DETERMINISTIC | FunctionFlags::SQLITE_INNOCUOUS;
    driver.create_scalar_function("svc_matches", 2, flags, |context| {
        // Kept by SQLite for all rows of a statement.
        let pattern: Arc<TopicPattern> = context.get_or_create_aux(1, |value| {
            Ok::<_, Box<dyn std::error::Error + Send + Sync>>(TopicPattern::parse(value.as_str()?)?)
        })?;
        Ok(pattern.matches(context.get_raw(0).as_str()?))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn patterns_match_as_those_of_subscriptions_do() {
        let driver = Driver::open_in_memory().expect("a database");
        register(&driver).expect("a function");
        for (pattern, topic, expected) in [
            ("data.task.created", "data.task.created", true),
            ("data.task.created", "data.task.updated", false),
            ("data.*.created", "data.task.created", true),
            ("data.*.created", "data.created", false),
            ("data.#", "data.task.created", true),
            ("data.#", "data", true),
            ("data.#", "database.task", false),
            ("data.task.#", "data.tasks.created", false),
            ("#.created", "data.task.created", true),
            ("#.created", "created", true),
            ("#", "anything.at.all", true),
            ("data.*", "data.task.created", false),
            ("#.a.#.b", "x.a.y.z.b", true),
            ("#.a.#.b", "x.a.y.z.b.c", false),
            ("webhook.test.01a2-b", "webhook.test.01a2-b", true),
            ("a.(b|c).é+", "a.(b|c).é+", true),
            ("a.(b|c).é+", "a.b.é", false),
        ] {
            let asked = TopicMatch::Pattern(TopicPattern::parse(pattern).expect("a pattern"));
            let condition = asked.condition(Dialect::Sqlite, "?2", 1).replace('$', "?");
            let param = asked.param(Dialect::Sqlite);
            let matches: bool =
                driver.query_row(&format!("SELECT {condition}"), [param.as_str(), topic], |row| row.get(0)).expect("a row");
            assert_eq!(matches, expected, "{pattern} {topic}");
        }
    }
}

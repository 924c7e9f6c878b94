//! SQL conditions on topics: topics that begin with a text, or that match a pattern.

use std::sync::Arc;

use blockbase_query::{Dialect, Param, TopicFilter, TopicPattern};
use rusqlite::Connection as Driver;
use rusqlite::functions::FunctionFlags;

/// SQL for the condition that `topic` (SQL) matches the filter. Its parameter is appended to `params`.
pub(crate) fn condition(filter: &TopicFilter, dialect: Dialect, topic: &str, params: &mut Vec<Param>) -> String {
    let place = params.len() + 1;
    let (param, condition) = match (filter, dialect) {
        (TopicFilter::Prefix(prefix), Dialect::Sqlite) => {
            (prefix.clone(), format!("substr({topic}, 1, length(${place})) = ${place}"))
        }
        (TopicFilter::Prefix(prefix), Dialect::Postgres) => (prefix.clone(), format!("starts_with({topic}, ${place})")),
        (TopicFilter::Pattern(pattern), Dialect::Sqlite) => (pattern.text(), format!("svc_matches({topic}, ${place})")),
        (TopicFilter::Pattern(pattern), Dialect::Postgres) => {
            (expression(&pattern.text()), format!("({topic} || '.') ~ ${place}"))
        }
    };
    params.push(param.into());
    condition
}

/// The pattern as a regular expression for Postgres. It expects a dot after the topic, so that every segment ends with a dot.
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
        // SQLite keeps the pattern for all rows of a statement.
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
    fn sqlite_finds_what_the_filter_matches() {
        let driver = Driver::open_in_memory().expect("a database");
        register(&driver).expect("a function");
        for (text, topic, expected) in [
            ("data.task.", "data.task.created", true),
            ("data.task.updated", "data.task.created", false),
            ("data.(t|u)", "data.(t|u)ask", true),
            ("é.", "é.é", true),
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
            ("*.(b|c).é+", "a.(b|c).é+", true),
            ("*.(b|c).é+", "a.b.é", false),
        ] {
            let filter = TopicFilter::parse(text).expect("a filter");
            let mut params = vec![Param::from(topic.to_owned())];
            let condition = condition(&filter, Dialect::Sqlite, "?1", &mut params).replace('$', "?");
            let [_, Param::Text(Some(param))] = params.as_slice() else { panic!("{params:?}") };
            let found: bool =
                driver.query_row(&format!("SELECT {condition}"), [topic, param.as_str()], |row| row.get(0)).expect("a row");
            assert_eq!((found, filter.matches(topic)), (expected, expected), "{text} {topic}");
        }
    }
}

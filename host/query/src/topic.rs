//! Topic patterns: segments with dots between them, with `*` for exactly one segment and `#` for any number of segments.
//!
//! This module defines whether a topic matches. SQLite calls it for patterns, and compares prefixes in SQL. For Postgres, there
//! is an SQL expression for patterns and another one for prefixes. The console has its own functions. A test compares all of them
//! with this module on random texts.

use blockbase_schema::{Error, Result};

/// A parsed pattern.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TopicPattern(Vec<Segment>);

#[derive(Clone, Debug, PartialEq, Eq)]
enum Segment {
    One,
    Any,
    Literal(String),
}

/// The requested topics: those that a pattern matches, or those that have a prefix.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum TopicFilter {
    Pattern(TopicPattern),
    Prefix(String),
}

/// The kinds of events that a pattern can match.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reach<'a> {
    /// Events of one object's records.
    Object(&'a str),
    /// No events of records, but only those of the platform.
    Platform,
    /// At least the events of the records of every object.
    Everything,
}

/// The first segment of topics of records: `data.<object>.…`.
pub const DATA: &str = "data";
/// The maximum length of a pattern, in bytes.
const BYTES_MAX: usize = 200;
/// The maximum number of `#` in one pattern. Each further one multiplies the work of Postgres' regular expression.
const ANY_MAX: usize = 3;

impl TopicPattern {
    /// # Errors
    /// `invalid_request` for an empty segment, a wildcard inside a word, or a pattern that exceeds the limits.
    pub fn parse(text: &str) -> Result<TopicPattern> {
        let refuse = |why: &str| {
            Error::invalid_request(format!(
                "The topic pattern {text:?} {why}. Patterns look like data.task.created, data.*.created or data.#."
            ))
        };
        if text.len() > BYTES_MAX {
            return Err(refuse("is too long"));
        }
        let segments = text
            .split('.')
            .map(|segment| match segment {
                "" => Err(refuse("has an empty segment")),
                "*" => Ok(Segment::One),
                "#" => Ok(Segment::Any),
                literal if literal.contains(['*', '#']) => Err(refuse("has a wildcard inside a word")),
                literal => Ok(Segment::Literal(literal.to_owned())),
            })
            .collect::<Result<Vec<_>>>()?;
        match segments.iter().filter(|segment| **segment == Segment::Any).count() <= ANY_MAX {
            true => Ok(TopicPattern(segments)),
            false => Err(refuse("has too many `#`")),
        }
    }

    /// The pattern as it was written.
    pub fn text(&self) -> String {
        let segments = self.0.iter().map(|segment| match segment {
            Segment::One => "*",
            Segment::Any => "#",
            Segment::Literal(literal) => literal,
        });
        segments.collect::<Vec<_>>().join(".")
    }

    /// The kinds of events that the pattern can match.
    pub fn reach(&self) -> Reach<'_> {
        match self.0.as_slice() {
            [Segment::Literal(first), Segment::Literal(object), ..] if first == DATA => Reach::Object(object),
            [Segment::Literal(first), ..] if first != DATA => Reach::Platform,
            _ => Reach::Everything,
        }
    }

    pub fn matches(&self, topic: &str) -> bool {
        // The remaining words. `None` after the last one.
        let mut words = Some(topic);
        let mut place = 0;
        // The state after the latest `#`: the next index in the pattern, and the remaining words if `#` takes none of them.
        let mut behind_any = None;
        loop {
            let first = words.map(|words| words.split_once('.').map_or((words, None), |(word, others)| (word, Some(others))));
            match (self.0.get(place), first) {
                (None, None) => return true,
                (Some(Segment::Any), _) => behind_any = Some((place + 1, words)),
                (Some(Segment::One), Some((_, others))) => words = others,
                (Some(Segment::Literal(literal)), Some((word, others))) if literal == word => words = others,
                (None | Some(Segment::One | Segment::Literal(_)), _) => {
                    // Lets the latest `#` take one more word. An earlier `#` need not take more, because the latest one can take
                    // the same words.
                    let Some((next, Some(left))) = behind_any else { return false };
                    words = left.split_once('.').map(|(_, others)| others);
                    behind_any = Some((next, words));
                    place = next;
                    continue;
                }
            }
            place += 1;
        }
    }
}

impl TopicFilter {
    /// Text that contains `*` or `#` is a pattern. Other text is a prefix.
    ///
    /// # Errors
    /// `invalid_request` for an invalid pattern.
    pub fn parse(text: &str) -> Result<TopicFilter> {
        match text.contains(['*', '#']) {
            true => TopicPattern::parse(text).map(TopicFilter::Pattern),
            false => Ok(TopicFilter::Prefix(text.to_owned())),
        }
    }

    /// The text that was parsed.
    pub fn text(&self) -> String {
        match self {
            TopicFilter::Pattern(pattern) => pattern.text(),
            TopicFilter::Prefix(prefix) => prefix.clone(),
        }
    }

    pub fn matches(&self, topic: &str) -> bool {
        match self {
            TopicFilter::Pattern(pattern) => pattern.matches(topic),
            TopicFilter::Prefix(prefix) => topic.starts_with(prefix),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_without_wildcards_is_a_prefix() {
        for (text, topic, expected) in [
            ("data.", "data.task.created", true),
            ("data.ta", "data.task.created", true),
            ("data.task.created", "data.task", false),
            ("data.*", "data.task.created", false),
            ("data.*.created", "data.task.created", true),
        ] {
            assert_eq!(TopicFilter::parse(text).expect("a filter").matches(topic), expected, "{text} {topic}");
        }
        assert!(TopicFilter::parse("data.ta*").is_err());
    }

    #[test]
    fn wildcards_match_segments() {
        for (pattern, topic, expected) in [
            ("data.task.created", "data.task.created", true),
            ("data.task.created", "data.task.updated", false),
            ("data.*.created", "data.task.created", true),
            ("data.*.created", "data.created", false),
            ("data.#", "data.task.created", true),
            ("data.#", "data", true),
            ("data.task.#", "data.tasks.created", false),
            ("#.created", "data.task.created", true),
            ("#", "anything.at.all", true),
            ("data.*", "data.task.created", false),
            ("data.#", "database.task", false),
            ("#.created", "created", true),
            ("#.a.#.b", "x.a.y.z.b", true),
            ("#.a.#.b", "x.a.y.z.b.c", false),
            ("#.a.#.b", "a.b.a.b", true),
            ("#.a.*.#.c", "a.a.c.x.c", true),
            ("#.a.*.#.c", "x.a.c", false),
            ("#.#", "x", true),
        ] {
            assert_eq!(TopicPattern::parse(pattern).expect("a pattern").matches(topic), expected, "{pattern} {topic}");
        }
        assert_eq!(TopicPattern::parse("data.*.#").expect("a pattern").text(), "data.*.#");
        for bad in ["", "data..x", "data.ta*", "#.#.#.#"] {
            assert!(TopicPattern::parse(bad).is_err(), "{bad}");
        }
    }

    #[test]
    fn patterns_match_as_their_definition_says() {
        use blockbase_tests::fuzz::for_a_while;

        fn matches(pattern: &[&str], words: &[&str]) -> bool {
            match (pattern.split_first(), words.split_first()) {
                (None, None) => true,
                (Some((&"#", further)), _) => (0..=words.len()).any(|taken| matches(further, &words[taken..])),
                (Some((&"*", further)), Some((_, others))) => matches(further, others),
                (Some((literal, further)), Some((word, others))) => literal == word && matches(further, others),
                _ => false,
            }
        }
        for_a_while(|input| {
            let mut some_of = |words: &[&'static str], count: usize| {
                let count = input.int_in_range(1..=count)?;
                (0..count).map(|_| input.choose(words).copied()).collect::<Result<Vec<&str>, _>>()
            };
            let (segments, words) = (some_of(&["#", "*", "a", "b", "", "a*"], 8)?, some_of(&["a", "b", "c", ""], 8)?);
            let (text, topic) = (segments.join("."), words.join("."));
            let Ok(pattern) = TopicPattern::parse(&text) else { return Ok(false) };
            assert_eq!(pattern.text(), text);
            assert_eq!(pattern.matches(&topic), matches(&segments, &words), "{text} {topic}");
            Ok(true)
        });
    }
}

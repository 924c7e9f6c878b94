//! Patterns and prefixes of topics: on random texts, the databases and the console have to give the same results as the server's
//! own function.
//!
//! A failure prints its seed. `BLOCKBASE_TOPICS_SEED` runs another seed.

use std::process::Command;

use blockbase_query::{TopicFilter, TopicPattern};
use blockbase_tests::{Engine, npm_package, on_both_engines};
use fastrand::Rng;
use serde_json::json;

/// Words of topics. Some have a meaning in regular expressions, SQL or JavaScript.
const WORDS: [&str; 16] =
    ["data", "task", "created", "a", "b", "aa", "A", "_", "é", "x-y", "(a|b)", "[a]", "a+", "^a$", "\\d", "{1}"];
const TOPICS: usize = 90;
const PATTERNS: usize = 60;
const PREFIXES: usize = 20;

fn seed() -> u64 {
    std::env::var("BLOCKBASE_TOPICS_SEED").map_or(1, |seed| seed.parse().expect("a whole number"))
}

fn words(random: &mut Rng, most: usize) -> Vec<&'static str> {
    (0..random.usize(1..=most)).map(|_| WORDS[random.usize(..WORDS.len())]).collect()
}

/// Different topics, and the texts to match: patterns with wildcards, then prefixes of topics. Half of the patterns are made from
/// a topic, so that they match this topic.
fn drawn(seed: u64) -> (Vec<String>, Vec<String>) {
    let mut random = Rng::with_seed(seed);
    let mut topics: Vec<String> = Vec::new();
    while topics.len() < TOPICS {
        let topic = words(&mut random, 5).join(".");
        if !topics.contains(&topic) {
            topics.push(topic);
        }
    }
    let mut asked: Vec<String> = Vec::new();
    while asked.len() < PATTERNS {
        let topic = topics[random.usize(..topics.len())].clone();
        let mut segments = match random.bool() {
            true => topic.split('.').collect(),
            false => words(&mut random, 5),
        };
        for segment in &mut segments {
            match random.usize(..5) {
                0 => *segment = "*",
                1 => *segment = "#",
                _ => {}
            }
        }
        if random.usize(..4) == 0 {
            segments.insert(random.usize(..=segments.len()), "#");
        }
        let pattern = segments.join(".");
        if pattern.contains(['*', '#']) && TopicPattern::parse(&pattern).is_ok() {
            asked.push(pattern);
        }
    }
    asked.extend((0..PREFIXES).map(|_| {
        let topic = &topics[random.usize(..topics.len())];
        topic.chars().take(random.usize(1..=topic.chars().count())).collect::<String>()
    }));
    (topics, asked)
}

fn encoded(text: &str) -> String {
    text.bytes().map(|byte| format!("%{byte:02X}")).collect()
}

on_both_engines! {
    async fn databases_match_topics_as_the_server_does(server: Server) {
        let seed = seed();
        let (topics, asked) = drawn(seed);
        let admin = server.admin().await;
        // The numbers are far above those that the server gives.
        let numbered = || (1_000_000..).zip(&topics);
        let events: Vec<String> = numbered()
            .map(|(number, topic)| format!("({number}, 'event-{number}', '{topic}', NULL, NULL, NULL, '{{}}', 0, 1700000000000)"))
            .collect();
        let identity = if server.engine() == Engine::Postgres { "OVERRIDING SYSTEM VALUE" } else { "" };
        server
            .sql(&format!(
                "INSERT INTO svc_events (seq, id, topic, object, record_id, owner, payload, depth, occurred_at) {identity} VALUES {}",
                events.join(", ")
            ))
            .await;
        let deliveries: Vec<String> = numbered()
            .map(|(number, _)| format!("({number}, 'topics', 'log_event', 'delivered', FALSE, 1, NULL, 1700000000000)"))
            .collect();
        server
            .sql(&format!(
                "INSERT INTO svc_deliveries (event_seq, consumer, handler, status, dead, attempts, error, delivered_at) VALUES {}",
                deliveries.join(", ")
            ))
            .await;
        let mut matching = 0;
        for text in &asked {
            let filter = TopicFilter::parse(text).expect("a filter");
            let mut wanted: Vec<&str> = topics.iter().map(String::as_str).filter(|topic| filter.matches(topic)).collect();
            matching += wanted.len();
            let path = format!("/api/v1/events/deliveries?consumer=topics&pageSize=100&topic={}", encoded(text));
            let answer = admin.get(&path).await;
            let entries = answer.data();
            let mut found: Vec<&str> = entries.as_array().unwrap().iter().map(|entry| entry["topic"].as_str().unwrap()).collect();
            wanted.sort_unstable();
            found.sort_unstable();
            assert_eq!(found, wanted, "seed {seed}, asked for {text}");
        }
        assert!(matching > asked.len(), "seed {seed}: {matching} pairs match, too few to say anything");
    }
}

const FILES: [(&str, &str); 3] = [
    ("package-lock.json", include_str!("../../../clients/topics/package-lock.json")),
    ("package.json", include_str!("../../../clients/topics/package.json")),
    ("topics.mjs", include_str!("../../../clients/topics/topics.mjs")),
];

#[test]
fn the_console_matches_topics_as_the_server_does() {
    let seed = seed();
    let (topics, asked) = drawn(seed);
    let pairs: Vec<(&String, &String)> = asked.iter().flat_map(|text| topics.iter().map(move |topic| (text, topic))).collect();
    let directory = tempfile::tempdir().expect("a directory");
    let file = directory.path().join("pairs.json");
    std::fs::write(&file, json!(pairs).to_string()).expect("a file");
    let ran = Command::new("node")
        .arg("topics.mjs")
        .arg(concat!(env!("CARGO_MANIFEST_DIR"), "/../console/src/api/topics.ts"))
        .arg(&file)
        .current_dir(npm_package("topics-client", &FILES))
        .output()
        .expect("node");
    assert!(ran.status.success(), "{}", String::from_utf8_lossy(&ran.stderr));
    let found: Vec<(bool, bool)> = serde_json::from_slice(&ran.stdout).expect("a list");
    assert_eq!(found.len(), pairs.len());
    for ((text, topic), (as_pattern, as_filter)) in pairs.iter().zip(found) {
        let place = format!("seed {seed}, asked for {text}, topic {topic}");
        assert_eq!(as_filter, TopicFilter::parse(text).expect("a filter").matches(topic), "{place}");
        // A prefix of a topic may end with a dot.
        if let Ok(pattern) = TopicPattern::parse(text) {
            assert_eq!(as_pattern, pattern.matches(topic), "{place}");
        }
    }
}

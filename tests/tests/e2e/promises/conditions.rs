//! Random conditions find the rows that a reference finds, on every surface, on both engines, and for readers of few rows.
//!
//! A failure shows a condition that was made as small as possible. `BLOCKBASE_CONDITIONS_SEED` runs one seed alone, and
//! `BLOCKBASE_CONDITIONS_CASES` sets how many conditions each seed makes.

mod cells;
mod model;
mod random;
mod reference;
mod setup;
mod shrink;

use std::collections::BTreeSet;

use blockbase_tests::{Answer, Engine, Server, ServerBuilder, is_long, on_both_engines};
use serde_json::{Value, json};

use self::model::{Reader, Verdict, World};
use self::random::Generator;
use self::setup::Caller;

/// All of them in the long command, the first in the gate.
const SEEDS: std::ops::Range<u64> = 0..8;
/// Conditions of each seed and engine. Each one is asked for on every surface.
const CASES: usize = 500;
const CASES_LONG: usize = 4_000;
/// Longer addresses are refused before anybody looks at them.
const ADDRESS_BYTES_MAX: usize = 60_000;

/// A way to ask with a condition.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Surface {
    RestList,
    RestQuery,
    Aggregate,
}

impl Surface {
    const ALL: [Surface; 3] = [Surface::RestList, Surface::RestQuery, Surface::Aggregate];

    /// The answer, or nothing where the condition does not fit the surface.
    async fn ask(self, server: &Server, token: &str, object: &str, condition: &Value) -> Option<Answer> {
        let path = format!("/api/v1/data/{object}");
        let address = match self {
            Surface::RestList => format!("{path}?pageSize=100&select=id&where={}", encoded(&condition.to_string())),
            Surface::RestQuery => format!("{path}/query"),
            Surface::Aggregate => format!("{path}/aggregate?fn=count&where={}", encoded(&condition.to_string())),
        };
        if address.len() > ADDRESS_BYTES_MAX {
            return None;
        }
        let body = json!({ "where": condition, "pageSize": 100, "select": "id" });
        let (method, body) = if self == Surface::RestQuery { ("POST", Some(body)) } else { ("GET", None) };
        Some(server.call_as(Some(token), method, &address, body).await)
    }

    /// What is wrong with an answer.
    fn problem(self, answer: &Answer, expected: &Verdict) -> Option<Problem> {
        let other = |text: String| Some(Problem { text, ..Problem::default() });
        match expected {
            Verdict::Forbidden if answer.status == 403 && answer.json()["error"] == "forbidden" => None,
            Verdict::Forbidden => other(format!("403 was expected, not {} {}", answer.status, answer.text)),
            Verdict::Found(_) if answer.status != 200 => {
                other(format!("200 was expected, not {} {}", answer.status, answer.text))
            }
            Verdict::Found(ids) => {
                let json = answer.json();
                let count = if self == Surface::Aggregate { &json["data"]["value"] } else { &json["pagination"]["totalCount"] };
                let found: BTreeSet<String> = match json["data"].as_array() {
                    Some(rows) => rows.iter().filter_map(|row| row["id"].as_str().map(str::to_owned)).collect(),
                    None => ids.clone(),
                };
                if found != *ids {
                    let (missing, unexpected) = (ids - &found, &found - ids);
                    return Some(Problem { text: "the rows differ".to_owned(), missing, unexpected });
                }
                if *count != json!(ids.len()) {
                    return other(format!("{} was expected as the count, not {}", ids.len(), answer.text));
                }
                None
            }
        }
    }
}

/// How an answer differs from the reference.
#[derive(Default)]
struct Problem {
    text: String,
    missing: BTreeSet<String>,
    unexpected: BTreeSet<String>,
}

/// As a component of a query string.
fn encoded(text: &str) -> String {
    text.bytes()
        .map(|byte| match byte {
            b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' | b'-' | b'_' | b'.' => char::from(byte).to_string(),
            _ => format!("%{byte:02X}"),
        })
        .collect()
}

/// How the conditions ended, so that a run which proves little is noticed.
#[derive(Debug, Default)]
struct Tally {
    asked: usize,
    /// Found some of the rows, but not all.
    telling: usize,
    forbidden: usize,
    /// Found other rows than an admin finds.
    hidden: usize,
}

struct Run<'a> {
    server: &'a Server,
    world: &'a World,
    callers: &'a [Caller],
    seed: u64,
}

impl Run<'_> {
    async fn problem(&self, surface: Surface, caller: &Caller, object: usize, condition: &Value) -> Option<Problem> {
        let (expected, _) = self.world.judge(&caller.reader, object, condition).ok()?;
        let answer = surface.ask(self.server, &caller.token, &self.world.objects[object].name, condition).await?;
        surface.problem(&answer, &expected)
    }

    /// Fails with the condition, a smaller one that is wrong too, and the rows that differ.
    async fn fail(&self, case: usize, surface: Surface, caller: &Caller, object: usize, condition: &Value) {
        let is_wrong = async |candidate: &Value| self.problem(surface, caller, object, candidate).await.is_some();
        let smallest = shrink::shrunk(condition, is_wrong).await;
        let problem = self.problem(surface, caller, object, &smallest).await.unwrap_or_default();
        let rows = |ids: &BTreeSet<String>| -> String {
            let rows = self.world.rows[object].iter().filter(|row| ids.contains(&row.id));
            rows.map(|row| format!("\n    {}", Value::Object(row.values.clone()))).collect()
        };
        panic!(
            "seed {}, case {case}, {:?}, {:?}, {} ({:?}), {}\n  condition: {condition}\n  smallest: {smallest}\n  with it: {}\n  \
             missing:{}\n  unexpected:{}\n  relations: {:?}\n  links: {:?}",
            self.seed,
            self.server.engine(),
            surface,
            caller.reader.name,
            caller.reader.reads,
            self.world.objects[object].name,
            problem.text,
            rows(&problem.missing),
            rows(&problem.unexpected),
            self.world.relations,
            self.world
                .links
                .iter()
                .filter(|(_, source, target)| {
                    let mut ids = problem.missing.union(&problem.unexpected);
                    ids.any(|id| id == source || id == target)
                })
                .collect::<Vec<_>>(),
        );
    }

    async fn case(&self, case: usize, generator: &mut Generator<'_>, tally: &mut Tally) {
        // The admin, whose conditions tell most, more often than the others.
        let caller = &self.callers[[0, 0, 1, 1, 2][generator.random.usize(..5)]];
        let object = generator.random.usize(..self.world.objects.len());
        let condition = generator.condition(object, &caller.reader);
        let (expected, _) =
            self.world.judge(&caller.reader, object, &condition).unwrap_or_else(|problem| panic!("{problem}: {condition}"));
        let name = &self.world.objects[object].name;
        let asked = Surface::ALL.map(|surface| surface.ask(self.server, &caller.token, name, &condition));
        for (surface, answer) in Surface::ALL.into_iter().zip(futures_util::future::join_all(asked).await) {
            if answer.is_some_and(|answer| surface.problem(&answer, &expected).is_some()) {
                self.fail(case, surface, caller, object, &condition).await;
            }
        }
        tally.asked += 1;
        match &expected {
            Verdict::Forbidden => tally.forbidden += 1,
            Verdict::Found(ids) => {
                tally.telling += usize::from(!ids.is_empty() && ids.len() < self.world.rows[object].len());
                let admin = Reader { reads: self.callers[0].reader.reads.clone(), ..caller.reader.clone() };
                tally.hidden += usize::from(self.world.judge(&admin, object, &condition).is_ok_and(|(all, _)| all != expected));
            }
        }
    }
}

async fn run(engine: Engine, seed: u64, cases: usize, tally: &mut Tally) {
    let server = ServerBuilder::new(engine).start().await;
    let (world, callers) = setup::build(&server, seed).await;
    let run = Run { server: &server, world: &world, callers: &callers, seed };
    let mut generator = Generator::new(seed, &world);
    for case in 0..cases {
        run.case(case, &mut generator, tally).await;
    }
}

on_both_engines! {
    async fn random_conditions_find_what_the_reference_finds(engine: Engine) {
        let setting = |name: &str| std::env::var(name).ok().and_then(|text| text.parse::<u64>().ok());
        let cases = setting("BLOCKBASE_CONDITIONS_CASES").map_or(if is_long() { CASES_LONG } else { CASES }, |cases| cases as usize);
        let seeds = setting("BLOCKBASE_CONDITIONS_SEED")
            .map_or_else(|| if is_long() { SEEDS } else { SEEDS.start..SEEDS.start + 1 }, |seed| seed..seed + 1);
        let mut tally = Tally::default();
        for seed in seeds {
            run(engine, seed, cases, &mut tally).await;
        }
        let Tally { asked, telling, forbidden, hidden } = tally;
        let is_telling = telling * 3 > asked && forbidden * 40 > asked && hidden * 40 > asked;
        assert!(is_telling || asked < 200, "{tally:?}");
    }
}

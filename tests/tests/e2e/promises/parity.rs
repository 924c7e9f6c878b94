//! Random operations from one table run through REST, GraphQL, MCP and the data interface of blocks. All have to give the same records,
//! totals, errors and events.
//!
//! Each surface has its own server. All four run the same operations, as callers with several roles. Ids are compared by the
//! order in which records were made, and instants by the step during which they occur. Intended differences are in
//! [`exceptions`], with their reasons.
//!
//! A failure prints its seed and the operation. `BLOCKBASE_PARITY_SEED` runs a single seed, and `BLOCKBASE_PARITY_CASES` sets how many
//! operations each seed has.

mod block;
mod draw;
mod exceptions;
mod graphql;
mod operation;
mod outcome;
mod rest;
mod schema;
mod tools;
mod world;

use std::time::Duration;

use blockbase_tests::{Engine, is_long};
use futures_util::future::join_all;
use serde_json::Value;

use draw::Draw;
use exceptions::{Way, drops_warnings, excuses, way};
use operation::{Action, Operation};
use outcome::Outcome;
use world::{Answer, SURFACES, Surface, World};

/// The long command runs all seeds, and the gate only the first one.
const SEEDS: std::ops::Range<u64> = 0..5;
/// The number of operations for each seed.
const CASES: usize = 200;
/// After this number of operations, everything is compared.
const CASES_BETWEEN_LOOKS: usize = 25;
/// Two steps begin in different milliseconds, because instants have that precision.
const BETWEEN_STEPS: Duration = Duration::from_millis(2);

/// Counts the outcomes of operations on REST, so that a run that tests too little fails.
#[derive(Debug, Default)]
struct Tally {
    done: usize,
    found: usize,
    refused: usize,
    forbidden: usize,
    /// The number of operations that the surface cannot express.
    unsent: usize,
    excused: usize,
    events: usize,
}

/// The ids of the records that an operation made.
fn made(operation: &Operation, answer: &Answer) -> Vec<String> {
    let Answer::Done(text) = answer else { return Vec::new() };
    let document: Value = serde_json::from_str(text).unwrap();
    let id = |value: &Value| value.as_str().unwrap().to_owned();
    match &operation.action {
        Action::Create(_) => vec![id(&document["data"]["id"])],
        Action::Upsert { .. } if document["created"] == true => vec![id(&document["data"]["id"])],
        Action::CreateMany(_) => document["ids"].as_array().unwrap().iter().map(id).collect(),
        _ => Vec::new(),
    }
}

/// Asserts that the admin sees the same data in every world, and that all worlds had the same events since `begun`. Returns the
/// number of events.
async fn compare_everything(worlds: &[World], begun: &[String], place: &str) -> usize {
    let records = join_all(worlds.iter().map(World::records)).await;
    let events = join_all(worlds.iter().zip(begun).map(|(world, begun)| world.events_after(begun))).await;
    // The first world uses REST. The others are compared with it.
    for ((world, records_here), events_here) in worlds[1..].iter().zip(&records[1..]).zip(&events[1..]) {
        assert_eq!(records[0], *records_here, "records by REST and by {:?}: {place}", world.surface);
        for (rest, other) in events[0].iter().zip(events_here) {
            assert_eq!(rest, other, "events by REST and by {:?}: {place}", world.surface);
        }
        assert_eq!(events[0].len(), events_here.len(), "events by REST and by {:?}: {place}", world.surface);
    }
    events[0].len()
}

/// Runs one operation in every world, and compares the outcomes.
async fn step(worlds: &mut [World], draw: &mut Draw, operation: &Operation, caller: usize, place: &str, tally: &mut Tally) {
    tokio::time::sleep(BETWEEN_STEPS).await;
    worlds.iter_mut().for_each(World::begin_step);
    let ways: Vec<Way> = worlds.iter().map(|world| way(world.surface, operation)).collect();
    let answers = join_all(worlds.iter().zip(&ways).map(async |(world, way)| match way {
        Way::Own => world.run(caller, operation, world.surface).await,
        Way::StandIn => world.run(caller, operation, Surface::Rest).await,
        Way::Unsent => Answer::Unsent,
    }))
    .await;

    let ids: Vec<Vec<String>> = answers.iter().map(|answer| made(operation, answer)).collect();
    let count = ids[0].len();
    for (world, ids) in worlds.iter_mut().zip(&ids) {
        assert_eq!(ids.len(), count, "{:?}: {place}: {answers:#?}", world.surface);
        ids.iter().for_each(|id| world.name_record(id.clone()));
    }
    (0..count).for_each(|_| draw.remember(operation.object));

    let outcomes: Vec<Outcome> = worlds.iter().zip(&answers).map(|(world, answer)| world.masked(answer)).collect();
    for (world, outcome) in worlds[1..].iter().zip(&outcomes[1..]) {
        let surface = world.surface;
        match (&outcomes[0], outcome) {
            (rest, Outcome::Unsent) => {
                assert!(operation.is_read() || matches!(rest, Outcome::Refused(_)), "{surface:?}: {place}");
                tally.unsent += 1;
            }
            (rest, other) if rest == other => {}
            (Outcome::Done(rest), Outcome::Done(other)) if drops_warnings(surface) && without_warnings(rest) == *other => {
                tally.excused += 1;
            }
            (Outcome::Refused(rest), Outcome::Refused(other)) if excuses(surface, operation, rest, other) => tally.excused += 1,
            (rest, other) => panic!("{place}\nREST: {rest:#?}\n{surface:?}: {other:#?}"),
        }
    }
    match (&operation.action, &outcomes[0]) {
        (Action::Delete { id }, Outcome::Done(_)) => draw.forget([id.as_str()]),
        (Action::DeleteMany { .. }, Outcome::Done(document)) => {
            draw.forget(document["ids"].as_array().unwrap().iter().filter_map(Value::as_str));
        }
        _ => {}
    }
    compare_bytes(worlds, operation, &answers, place);
    match &outcomes[0] {
        Outcome::Refused(refusal) => {
            tally.refused += 1;
            tally.forbidden += usize::from(refusal.code == "forbidden");
        }
        Outcome::Done(document) => {
            tally.done += 1;
            tally.found += usize::from(operation.is_read() && document.to_string().contains("updated_at"));
        }
        Outcome::Unsent => {}
    }
}

fn without_warnings(document: &Value) -> Value {
    let mut document = document.clone();
    if let Some(members) = document.as_object_mut() {
        members.remove("warnings");
    }
    document
}

/// The text of a tool's result is REST's body, byte for byte.
fn compare_bytes(worlds: &[World], operation: &Operation, answers: &[Answer], place: &str) {
    let text = |surface: Surface| {
        let at = worlds.iter().position(|world| world.surface == surface).unwrap();
        match &answers[at] {
            Answer::Done(text) => Some(worlds[at].mask(text)),
            _ => None,
        }
    };
    assert_eq!(text(Surface::Rest), text(Surface::Mcp), "{place}: {operation:?}");
}

async fn run(worlds: &mut [World], seed: u64, cases: usize, tally: &mut Tally) {
    join_all(worlds.iter_mut().map(World::empty)).await;
    let begun = join_all(worlds.iter().map(World::latest_event)).await;
    let mut draw = Draw::new(seed);
    let mut events = 0;
    for case in 0..cases {
        let caller = draw.caller();
        let name = worlds[0].callers[caller].0;
        let operation = draw.operation(name);
        let place = format!("seed {seed}, case {case}, {name}: {operation:?}");
        step(worlds, &mut draw, &operation, caller, &place, tally).await;
        if (case + 1) % CASES_BETWEEN_LOOKS == 0 || case + 1 == cases {
            events = compare_everything(worlds, &begun, &format!("seed {seed}, up to case {case}")).await;
        }
    }
    tally.events += events;
}

async fn random_operations(engine: Engine) {
    let setting = |name: &str| std::env::var(name).ok().and_then(|text| text.parse::<u64>().ok());
    let cases = setting("BLOCKBASE_PARITY_CASES").map_or(CASES, |cases| cases as usize);
    let seeds = setting("BLOCKBASE_PARITY_SEED")
        .map_or_else(|| if is_long() { SEEDS } else { SEEDS.start..SEEDS.start + 1 }, |seed| seed..seed + 1);
    let operations = cases * seeds.clone().count();
    let mut worlds = join_all(SURFACES.map(|surface| World::new(engine, surface))).await;
    let mut tally = Tally::default();
    for seed in seeds {
        run(&mut worlds, seed, cases, &mut tally).await;
    }
    let Tally { done, found, forbidden, unsent, excused, events, .. } = tally;
    let is_telling =
        done * 5 > operations * 2 && found * 15 > operations && forbidden * 20 > operations && events * 5 > operations;
    // The counts are those of the three surfaces that are compared with REST.
    let is_whole = (unsent + excused) * 5 < operations * 3;
    assert!((is_telling && is_whole) || operations < 500, "of {operations} operations: {tally:?}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn random_operations_come_to_the_same_on_every_surface_on_sqlite() {
    random_operations(Engine::Sqlite).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn random_operations_come_to_the_same_on_every_surface_on_postgres() {
    random_operations(Engine::Postgres).await;
}

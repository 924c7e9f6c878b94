//! Random grants with conditions, checks and fields, which also change during a run. A reference computes each response and each
//! event, and the test compares them.
//!
//! The requests are lists by pages, by offsets and by cursors, single records, aggregates with and without groups, exports, writes
//! of one record and of many, dry runs and batches. They go to every surface that has a form for them. After each write, all rows
//! and links, the events of each caller, an open stream, an open subscription and the calls of webhooks are compared too. Between
//! the requests, roles get other grants, users get and lose roles, and rows change on which grants depend.
//!
//! If a test fails, it prints its seed, the number of the case, the caller's grants and the smallest failing request that it
//! could find. `BLOCKBASE_GRANTS_SEED` runs a single seed, `BLOCKBASE_GRANTS_CASES` sets how many requests each seed makes, and
//! `BLOCKBASE_GRANTS_FAILURES` sets after how many failures a seed ends. The long command makes more requests for each seed than
//! the gate. So to repeat a failure of the long command, set both the seed and the number of requests:
//! `BLOCKBASE_GRANTS_SEED=1000003 BLOCKBASE_GRANTS_CASES=1000 ./dev test promises::policy_grants::random_grants`.

mod answers;
mod batches;
mod events;
mod exports;
mod generate;
mod grants;
mod groups;
mod listening;
mod mutations;
mod options;
mod placeholders;
mod read_forms;
mod reading;
mod reads;
mod rights;
mod setup;
pub(crate) mod subscription;
mod surfaces;
mod verbs;
mod walks;
mod worlds;
mod write_forms;
mod writes;
mod writing;

use std::cell::Cell;
use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use blockbase_tests::{Answer, Engine, Receiver, Server, is_long, on_both_engines};
use fastrand::Rng;
use futures_util::future::join_all;
use serde_json::{Value, json};

use self::generate::Requests;
use self::grants::Caller;
use self::rights::Rights;
use self::subscription::Subscription;
use self::worlds::{OBJECTS, Rules};
use crate::events::Stream;
use crate::events::webhooks::quick;
use crate::promises::conditions::model::{Everything, World};
use crate::promises::conditions::worlds::{one_in, pick};

/// The long command runs further seeds, until each test has made this number of requests on an engine. There are two tests, so
/// they make a million requests on both engines. The gate runs only the first seed of the first test.
const REQUESTS_LONG: usize = 250_000;
/// The first seed of the second test.
const SECOND_SEED: u64 = 1_000_000;
/// The number of seeds that run at the same time, each on its own server.
const SEEDS_AT_ONCE: u64 = 4;
/// The number of requests for each seed. Each read is sent to every surface, and each write to one surface.
const CASES: usize = 400;
const CASES_LONG: usize = 1_000;
/// The least number of requests for each case, on average. It is about half of what is to be expected:
///
/// - Six in ten cases are reads, of about four requests each. Most reads go to four or five surfaces, exports only to REST. Pages
///   by cursors are up to seven requests on each of them. Some callers have REST alone.
/// - Three in ten are writes. A write is one request, and fifteen more if it succeeds: the five lists of the admin, and the events
///   of the admin and of nine callers. About half of the writes succeed.
/// - One in ten changes rights, and often leads to one or two successful writes of the admin.
const REQUESTS_PER_CASE: usize = 3;
/// One of this many cases changes rights instead of making a request.
const CHANGES_ONE_IN: usize = 12;
/// The forms in which a read is sent: REST with a query string and with a body, MCP, GraphQL, and the data interface of blocks.
const SURFACES: usize = 5;
/// The numbers of the last two of them.
const GRAPHQL: usize = 3;
const BLOCK: usize = 4;
/// The surfaces for writes: REST, the data interface of blocks, MCP, and GraphQL. They take turns. If a surface has no form for a
/// write, REST gets it.
const WRITE_SURFACES: [&str; 4] = ["REST", "a block", "MCP", "GraphQL"];

/// How long the test waits for an event of a stream.
const STREAM_WAIT_MAX: Duration = blockbase_tests::WAIT_MAX;
/// The longest time that a stream is open, which is longer than all requests of one seed take.
const STREAM_AGE_MAX: Duration = Duration::from_secs(3600);

/// The objects with their rows, and the rules of their relations.
#[derive(Clone)]
struct State {
    world: World,
    rules: Vec<Rules>,
    /// The creators of deleted rows, by id.
    owners: BTreeMap<String, Option<String>>,
}

/// A reason for which a request may be refused.
#[derive(Clone, Debug, PartialEq)]
struct Refusal {
    status: u16,
    code: &'static str,
    field: Option<String>,
    /// The operation of a batch that is at fault.
    index: Option<usize>,
}

impl Refusal {
    fn new(status: u16, code: &'static str) -> Refusal {
        Refusal { status, code, field: None, index: None }
    }

    fn of(status: u16, code: &'static str, field: &str) -> Refusal {
        Refusal { field: Some(field.to_owned()), ..Refusal::new(status, code) }
    }
}

impl Caller {
    /// The refusal of a request for which the caller lacks a permission.
    fn denied(&self) -> Refusal {
        if self.credential.is_none() { Refusal::new(401, "unauthorized") } else { Refusal::new(403, "forbidden") }
    }

    /// Whether the caller has MCP, GraphQL and the block. A caller without a credential does not, and neither does a user without a
    /// role.
    fn has_all_surfaces(&self) -> bool {
        self.credential.is_some() && self.reads_events
    }
}

/// The response that the reference expects.
#[derive(Clone, Debug)]
enum Expected {
    Fine {
        status: u16,
        body: Value,
        /// Whether the response has warnings.
        warns: bool,
    },
    /// One of these refusals. The specification leaves open which fault of a request is reported.
    Refused(Vec<Refusal>),
}

impl Expected {
    fn fine(status: u16, body: Value, warns: bool) -> Expected {
        Expected::Fine { status, body, warns }
    }

    /// The reasons for which the request may be refused.
    fn refusals(&self) -> &[Refusal] {
        match self {
            Expected::Refused(refusals) => refusals,
            Expected::Fine { .. } => &[],
        }
    }

    /// The same response on another surface. Only REST and MCP have warnings.
    fn on(&self, surface: usize) -> Expected {
        match self {
            Expected::Fine { status, body, .. } if [GRAPHQL, BLOCK].contains(&surface) => {
                Expected::fine(*status, body.clone(), false)
            }
            other => other.clone(),
        }
    }

    /// The same response with only these fields of the record.
    fn with_only(mut self, selected: Option<&[String]>) -> Expected {
        if let (Expected::Fine { body, .. }, Some(selected)) = (&mut self, selected)
            && let Some(record) = body.get_mut("data").and_then(Value::as_object_mut)
        {
            record.retain(|name, _| selected.contains(name));
        }
        self
    }
}

/// Sorts related records, because their order depends on moments that the caller may not see.
fn sorted(value: &Value) -> Value {
    match value {
        Value::Object(map) => map.iter().map(|(name, value)| (name.clone(), sorted(value))).collect(),
        Value::Array(items) => {
            let mut items: Vec<Value> = items.iter().map(sorted).collect();
            if items.iter().all(|item| item["id"].is_string()) {
                items.sort_by_key(|item| item["id"].to_string());
            }
            Value::Array(items)
        }
        other => other.clone(),
    }
}

/// A body whose lists of related records are sorted. The records of the list itself keep their order.
fn normal(body: &Value) -> Value {
    let Some(map) = body.as_object() else { return body.clone() };
    let members = map.iter().filter(|(name, _)| *name != "warnings").map(|(name, value)| {
        let value = match value.as_array() {
            Some(items) => items.iter().map(sorted).collect(),
            None => sorted(value),
        };
        (name.clone(), value)
    });
    Value::Object(members.collect())
}

/// A response: its status as REST has it, and its document.
#[derive(Clone, Debug)]
struct Got {
    status: u16,
    json: Value,
}

impl From<Answer> for Got {
    fn from(answer: Answer) -> Got {
        let json = if answer.text.is_empty() { Value::Null } else { answer.json() };
        Got { status: answer.status, json }
    }
}

impl Got {
    /// A refusal without a status. It gets that of the expected refusal with the same code.
    fn refused(code: &Value, field: &Value, expected: &[Refusal]) -> Got {
        let status = expected.iter().find(|refusal| *code == refusal.code).map_or(400, |refusal| refusal.status);
        Got { status, json: json!({ "error": code, "field": field }) }
    }

    /// The refusal of the block `parity`. The answer of a block has no status, so only code and field are compared.
    fn of_block(refused: &Value, expected: &[Refusal]) -> Got {
        Got::refused(&refused["code"], &refused["details"]["field"], expected)
    }

    /// The difference from the expectation.
    fn problem(&self, expected: &Expected) -> Option<String> {
        let is_right = match expected {
            Expected::Fine { status, body, warns } => {
                self.status == *status && normal(&self.json) == normal(body) && self.json.get("warnings").is_some() == *warns
            }
            Expected::Refused(refusals) => refusals.iter().any(|refusal| {
                let field = self.json.get("field").and_then(Value::as_str);
                let is_at_index = refusal.index.is_none_or(|index| self.json["index"] == json!(index));
                let is_refusal = (self.status, &self.json["error"]) == (refusal.status, &json!(refusal.code));
                is_refusal && is_at_index && field == refusal.field.as_deref()
            }),
        };
        let shown = match expected {
            Expected::Fine { status, body, warns } => format!("{status} {body}, warnings: {warns}"),
            Expected::Refused(refusals) => format!("one of {refusals:?}"),
        };
        (!is_right).then(|| format!("expected {shown}\n  got      {} {}", self.status, self.json))
    }
}

/// The records of each object, as the admin sees them, with their links.
async fn shown_to_admin(server: &Server, token: &str) -> Vec<Vec<Value>> {
    let lists = OBJECTS.iter().map(async |name| {
        let path = format!("/api/v1/data/{name}?limit=100&expand=tags,marks,friends,watchers");
        let list = server.call_as(Some(token), "GET", &path, None).await.json();
        assert_eq!(list["pagination"]["hasNextPage"], false, "too many rows: {}", list["pagination"]);
        list["data"].as_array().expect("records").clone()
    });
    join_all(lists).await
}

/// Copies the values that the server gives.
fn adopt(world: &mut World, shown: &[Vec<Value>]) {
    for (rows, records) in world.rows.iter_mut().zip(shown) {
        for row in rows {
            let record = records.iter().find(|record| record["id"] == row.id.as_str()).expect("the record");
            for (name, value) in record.as_object().expect("a record") {
                if !value.is_array() {
                    row.values.insert(name.clone(), value.clone());
                }
            }
        }
    }
}

/// The first difference between the rows and links of a state and those of the server. Moments are not compared.
fn difference(state: &State, shown: &[Vec<Value>]) -> Option<String> {
    for (object, records) in shown.iter().enumerate() {
        let ids: BTreeSet<&str> = records.iter().filter_map(|record| record["id"].as_str()).collect();
        let expected: BTreeSet<&str> = state.world.rows[object].iter().map(|row| row.id.as_str()).collect();
        if ids != expected {
            return Some(format!("the rows of {}: expected {expected:?}\n  got      {ids:?}", OBJECTS[object]));
        }
        for row in &state.world.rows[object] {
            let record = records.iter().find(|record| record["id"] == row.id.as_str())?;
            for (name, value) in &row.values {
                if !["created_at", "updated_at"].contains(&name.as_str()) && record[name] != *value {
                    return Some(format!("{name} of {} {}: expected {value}, got {}", OBJECTS[object], row.id, record[name]));
                }
            }
            for end in state.world.ends(object).iter().filter(|end| state.world.relations[end.relation].is_links()) {
                let related = state.world.related(&Everything, end, object, row);
                let related: BTreeSet<&str> = related.into_iter().map(|other| other.id.as_str()).collect();
                let linked: BTreeSet<&str> =
                    record[&end.key].as_array()?.iter().filter_map(|other| other["id"].as_str()).collect();
                if related != linked {
                    return Some(format!("{} of {}: expected {related:?}, got {linked:?}", end.key, row.id));
                }
            }
        }
    }
    None
}

/// Counts the outcomes, so that a run that tests too little fails.
#[derive(Clone, Copy, Debug, Default)]
struct Tally {
    /// The number of requests whose responses were compared with the reference.
    requests: usize,
    reads: usize,
    writes: usize,
    /// The number of requests that the server refused.
    refused_reads: usize,
    refused_writes: usize,
    /// The number of reads that returned a record with a hidden cell.
    masked: usize,
    /// The number of events that a caller other than the admin saw, and the number of those of which they saw only a part.
    events: usize,
    cut_events: usize,
    /// The numbers of reads and writes of these kinds that were not refused.
    groups: usize,
    walks: usize,
    exports: usize,
    dry_runs: usize,
    batches: usize,
    /// The number of changes of rights, and the number of those after which an open stream or subscription had to follow.
    changes: usize,
    followed: usize,
}

impl Tally {
    fn add(&mut self, other: &Tally) {
        self.requests += other.requests;
        self.reads += other.reads;
        self.writes += other.writes;
        self.refused_reads += other.refused_reads;
        self.refused_writes += other.refused_writes;
        self.masked += other.masked;
        self.events += other.events;
        self.cut_events += other.cut_events;
        self.groups += other.groups;
        self.walks += other.walks;
        self.exports += other.exports;
        self.dry_runs += other.dry_runs;
        self.batches += other.batches;
        self.changes += other.changes;
        self.followed += other.followed;
    }

    /// Whether the requests were mixed enough to tell something.
    fn is_telling(&self) -> bool {
        let reads = self.refused_reads * 50 > self.reads && self.masked * 100 > self.reads;
        let writes = self.refused_writes * 5 > self.writes && self.refused_writes * 4 < self.writes * 3;
        let events = self.events > self.writes && self.cut_events * 20 > self.events;
        let kinds = [self.groups, self.walks, self.exports, self.dry_runs, self.batches, self.followed];
        reads && writes && events && kinds.into_iter().all(|count| count > 0) && self.changes * 50 > self.reads
    }
}

struct Run<'a> {
    server: &'a Server,
    seed: u64,
    state: State,
    rights: Rights,
    /// The callers with the rights that they have now. The admin is the first.
    callers: Vec<Caller>,
    holders: Vec<String>,
    /// The caller whose stream is read.
    listener: usize,
    stream: Stream,
    /// The caller who subscribes with GraphQL.
    subscriber: usize,
    subscription: Subscription,
    receiver: &'a Receiver,
    /// The objects whose events go to a webhook of [`setup::HOOK_MAKER`].
    hooked: Vec<usize>,
    /// The number of calls of the webhooks that were compared.
    received: usize,
    /// The number of requests so far.
    requests: Cell<usize>,
    tally: Tally,
    failures: Vec<String>,
}

impl Run<'_> {
    fn place(&self, case: usize, caller: &Caller, object: usize) -> String {
        let variables = (&caller.reader.variables, &caller.reader.roles);
        let relations: Vec<String> = self
            .state
            .world
            .relations
            .iter()
            .map(|relation| {
                format!("{} {}: {} -> {}", relation.kind, relation.name, OBJECTS[relation.source], OBJECTS[relation.target])
            })
            .collect();
        format!(
            "seed {}, case {case}, {:?}, {} with {variables:?}\n  grants on {}: {}\n  all grants: {}\n  relations: {relations:?}",
            self.seed,
            self.server.engine(),
            caller.name,
            OBJECTS[object],
            caller.grants_on(&self.state.world, object),
            caller.grants(&self.state.world),
        )
    }

    async fn case(&mut self, case: usize, random: &mut Rng) {
        if one_in(random, CHANGES_ONE_IN) {
            return self.change_rights(case, random).await;
        }
        // The requests of the admin test least, because nothing is hidden from the admin.
        let number = if one_in(random, 20) { 0 } else { random.usize(1..self.callers.len()) };
        let caller = self.callers[number].clone();
        let mut requests = Requests { random, state: &self.state, caller: &caller, holders: &self.holders };
        let wants = *pick(requests.random, &[false, true, true]);
        if wants {
            let read = requests.read();
            self.read(case, &caller, read).await;
        } else {
            let write = requests.write();
            self.write(case, &caller, write).await;
        }
    }
}

async fn run(engine: Engine, seed: u64, cases: usize, failures_max: usize) -> Tally {
    let (server, receiver) = (quick(engine).start().await, Receiver::start().await);
    let setup::Setup { world, rules, rights, holders, hooked } = setup::build(&server, seed, &receiver.url).await;
    let callers = rights.callers(&world);
    let state = State { world, rules, owners: BTreeMap::new() };
    let listener = listening::listener(&state, &callers);
    let subscriber = listening::subscriber(&callers, listener);
    let admin = callers[0].credential.clone().expect("a token");
    let stream = listening::stream(&server, &admin, &callers[listener]).await;
    let subscription = listening::subscription(&server, &admin, &callers[subscriber]).await;
    let mut run = Run {
        server: &server,
        seed,
        state,
        rights,
        callers,
        holders,
        listener,
        stream,
        subscriber,
        subscription,
        receiver: &receiver,
        hooked,
        received: 0,
        requests: Cell::new(0),
        tally: Tally::default(),
        failures: Vec::new(),
    };
    let mut random = Rng::with_seed(seed ^ 0x9e37_79b9);
    for case in 0..cases {
        run.case(case, &mut random).await;
        if run.failures.len() >= failures_max {
            break;
        }
    }
    assert!(run.failures.is_empty(), "{}", run.failures.join("\n\n"));
    Tally { requests: run.requests.get(), ..run.tally }
}

/// Runs the first seed, or in the long command as many as it takes to make enough requests.
async fn run_seeds(engine: Engine, first: u64) {
    let setting = |name: &str| std::env::var(name).ok().and_then(|text| text.parse::<u64>().ok());
    let cases = setting("BLOCKBASE_GRANTS_CASES").map_or(if is_long() { CASES_LONG } else { CASES }, |cases| cases as usize);
    let failures_max = setting("BLOCKBASE_GRANTS_FAILURES").map_or(1, |most| most as usize);
    let only = setting("BLOCKBASE_GRANTS_SEED");
    let (mut seed, at_once) = (only.unwrap_or(first), if only.is_none() && is_long() { SEEDS_AT_ONCE } else { 1 });
    let mut all = Tally::default();
    loop {
        let tallies = join_all((seed..seed + at_once).map(|seed| run(engine, seed, cases, failures_max))).await;
        tallies.iter().for_each(|tally| all.add(tally));
        if at_once == 1 || all.requests >= REQUESTS_LONG {
            break;
        }
        seed += at_once;
    }
    eprintln!("{engine:?}: {} requests with {} reads and {} writes: {all:?}", all.requests, all.reads, all.writes);
    // The requests of a seed that somebody chose need not be as mixed, and neither need a few requests.
    if only.is_none() && cases >= CASES {
        assert!(all.is_telling(), "{all:?}");
        assert!(all.requests >= REQUESTS_PER_CASE * cases, "{all:?}");
    }
}

on_both_engines! {
    async fn random_grants_show_and_change_what_the_reference_does(engine: Engine) {
        run_seeds(engine, 10).await;
    }

    #[ignore = "long: the same with other seeds"]
    async fn other_random_grants_show_and_change_what_the_reference_does(engine: Engine) {
        run_seeds(engine, SECOND_SEED).await;
    }
}

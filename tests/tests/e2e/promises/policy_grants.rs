//! Random grants with conditions, checks and fields. A reference computes each response and each event, and the test compares
//! them.
//!
//! If a test fails, it prints its seed, the number of the case, the caller's grants and the smallest failing request that it
//! could find. `BLOCKBASE_GRANTS_SEED` runs a single seed, `BLOCKBASE_GRANTS_CASES` sets how many requests each seed makes, and
//! `BLOCKBASE_GRANTS_FAILURES` sets after how many failures a seed ends. The long command makes more requests for each seed than
//! the gate. So to repeat a failure of the long command, set both the seed and the number of requests:
//! `BLOCKBASE_GRANTS_SEED=1000003 BLOCKBASE_GRANTS_CASES=1000 ./dev test promises::policy_grants::random_grants`.

mod events;
mod generate;
mod grants;
mod mutations;
mod options;
mod reads;
mod setup;
pub(crate) mod subscription;
mod worlds;
mod writes;

use std::cell::Cell;
use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use blockbase_tests::{Answer, Engine, Receiver, Server, is_long, on_both_engines, until};
use fastrand::Rng;
use futures_util::future::join_all;
use serde_json::{Value, json};

use self::events::object_named;
use self::generate::Requests;
use self::grants::Caller;
use self::mutations::Mutation;
use self::reads::{Kind, Read};
use self::subscription::Subscription;
use self::worlds::{NAMES, OBJECTS, Rules};
use self::writes::{Answered, Emitted, Left, Write, placeholder};
use crate::events::Stream;
use crate::events::webhooks::quick;
use crate::mcp::Client;
use crate::promises::conditions::model::{Everything, Eyes, Row, World};
use crate::promises::conditions::shrink::shrunk;
use crate::promises::conditions::worlds::{one_in, pick};

/// The long command runs further seeds, until each test has made this number of requests on an engine. There are two tests, so
/// they make a million requests on both engines. The gate runs only the first seed of the first test.
const REQUESTS_LONG: usize = 250_000;
/// The first seed of the second test.
const SECOND_SEED: u64 = 1_000_000;
/// The number of seeds that run at the same time, each on its own server.
const SEEDS_AT_ONCE: u64 = 4;
/// The number of requests for each seed. Each read is sent to every surface, and each write to one surface.
const CASES: usize = 300;
const CASES_LONG: usize = 1_000;
/// The forms in which a read is sent: REST with a query string and with a body, MCP, GraphQL, and the data interface of blocks.
const SURFACES: usize = 5;
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
}

impl Refusal {
    fn new(status: u16, code: &'static str) -> Refusal {
        Refusal { status, code, field: None }
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
                (self.status, &self.json["error"]) == (refusal.status, &json!(refusal.code)) && field == refusal.field.as_deref()
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
    }
}

struct Run<'a> {
    server: &'a Server,
    seed: u64,
    state: State,
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

/// A write that was sent.
struct Sent {
    surface: &'static str,
    got: Got,
    /// The fields of the record that the response can have. `None` for all.
    selected: Option<Vec<String>>,
}

impl Run<'_> {
    fn count(&self, requests: usize) {
        self.requests.set(self.requests.get() + requests);
    }

    async fn rest(&self, caller: &Caller, (method, path, body): (&str, String, Option<Value>)) -> Got {
        self.count(1);
        self.server.call_as(caller.credential.as_deref(), method, &path, body).await.into()
    }

    async fn graphql(&self, caller: &Caller, body: Value) -> Got {
        self.rest(caller, ("POST", "/api/v1/graphql".to_owned(), Some(body))).await
    }

    /// Calls a tool. Its result has the status 200, and a refusal that of the expected refusal with the same code.
    async fn tool(&self, caller: &Caller, (tool, arguments): (&str, Value), refusals: &[Refusal]) -> Got {
        self.count(1);
        let client = Client::of(&self.server.with_token(caller.credential.clone().expect("a credential")));
        let called = client.call(tool, arguments).await;
        let json: Value = serde_json::from_str(&called.text).unwrap_or_else(|_| json!(called.text));
        match called.is_error {
            true => Got { status: Got::refused(&json["error"], &json["field"], refusals).status, json },
            false => Got { status: 200, json },
        }
    }

    /// Runs an operation of the data interface as the caller.
    async fn run_block(&self, caller: &Caller, input: Value) -> Got {
        self.rest(caller, ("POST", "/api/v1/blocks/parity/actions/run".to_owned(), Some(input))).await
    }

    /// Sends a write to the surface whose turn it is.
    async fn send_write(&self, caller: &Caller, write: &Write, expected: &Result<Left, Vec<Refusal>>) -> Sent {
        let name = NAMES[write.object];
        let refusals = expected.as_ref().err().map_or(&[][..], Vec::as_slice);
        let turn = if caller.has_all_surfaces() { self.tally.writes % WRITE_SURFACES.len() } else { 0 };
        let sent = |got: Got, selected: Option<Vec<String>>| Sent { surface: WRITE_SURFACES[turn], got, selected };
        match turn {
            1 => {
                if let Some(input) = write.block(name) {
                    let answer = self.run_block(caller, input).await;
                    assert_eq!(answer.status, 200, "{}", answer.json);
                    let (refused, done) = (&answer.json["data"]["refused"], &answer.json["data"]["done"]);
                    let got = match refused.is_object() {
                        true => Got::of_block(refused, refusals),
                        false => write.answered_by_block(done),
                    };
                    return sent(got, None);
                }
            }
            2 => {
                let got = self.tool(caller, write.tool(name), refusals).await;
                return sent(if got.status == 200 { write.answered_by_tool(got.json) } else { got }, None);
            }
            3 => {
                if let Some(Mutation { body, selected }) = write.mutation(&self.state, caller, expected.as_ref().ok()) {
                    let result = self.graphql(caller, body).await.json;
                    let got = write.answered_by_mutation(&result, selected.as_deref(), refusals);
                    return sent(got, selected);
                }
            }
            _ => {}
        }
        Sent { surface: WRITE_SURFACES[0], got: self.rest(caller, write.rest(name)).await, selected: None }
    }

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

    /// Compares the response of a surface to a read with the reference. Returns the difference.
    async fn problem_of_read(&self, caller: &Caller, read: &Read, surface: usize) -> Option<String> {
        let name = OBJECTS[read.object];
        let expected = self.state.expected(caller, read);
        let is_open = caller.has_all_surfaces();
        match surface {
            0 => self.rest(caller, read.rest(name, false)).await.problem(&expected),
            1 if read.kind == Kind::List => self.rest(caller, read.rest(name, true)).await.problem(&expected),
            2 if is_open => {
                let refusals = match &expected {
                    Expected::Refused(refusals) => refusals.as_slice(),
                    Expected::Fine { .. } => &[],
                };
                self.tool(caller, read.tool(name), refusals).await.problem(&expected)
            }
            3 if is_open => self.problem_of_graphql(caller, read, &expected).await,
            4 if is_open => self.problem_of_block(caller, read, &expected).await,
            _ => None,
        }
    }

    async fn problem_of_graphql(&self, caller: &Caller, read: &Read, expected: &Expected) -> Option<String> {
        let body = read.graphql(&self.state, caller)?;
        let got = self.graphql(caller, body.clone()).await;
        let name = match read.kind {
            Kind::List => OBJECTS[read.object].to_owned(),
            Kind::Get(_) => format!("{}_by_id", OBJECTS[read.object]),
            Kind::Aggregate(..) => format!("{}_aggregate", OBJECTS[read.object]),
        };
        let data = &got.json["data"][&name];
        match expected {
            // The caller's schema does not contain these relation keys.
            _ if !self.state.knows_paths(caller, read) => None,
            Expected::Fine { body: expected, .. } => {
                let shown = if read.kind == Kind::List { data.clone() } else { json!({ "data": data }) };
                let mut expected = normal(expected);
                if !read.counts {
                    let pagination = ["totalCount", "totalPages"].map(|name| shown["pagination"][name].clone());
                    expected["pagination"]["totalCount"] = pagination[0].clone();
                    expected["pagination"]["totalPages"] = pagination[1].clone();
                }
                (normal(&shown) != expected).then(|| format!("{body}\n  expected {expected}\n  got      {}", got.json))
            }
            Expected::Refused(refusals) if refusals.iter().all(|refusal| refusal.status == 404) => {
                (got.json != json!({ "data": { name.as_str(): null } })).then(|| format!("{body}\n  got {}", got.json))
            }
            Expected::Refused(_) => {
                let is_refused = got.json["errors"][0].is_object() && data.is_null();
                (!is_refused).then(|| format!("{body}\n  a refusal was expected, got {}", got.json))
            }
        }
    }

    /// A block gets no warnings, and a missing record is not an error for it.
    async fn problem_of_block(&self, caller: &Caller, read: &Read, expected: &Expected) -> Option<String> {
        let input = read.block(OBJECTS[read.object]);
        let answer = self.run_block(caller, input.clone()).await;
        if answer.status != 200 {
            return Some(format!("{input}\n  got      {} {}", answer.status, answer.json));
        }
        let (refused, done) = (&answer.json["data"]["refused"], &answer.json["data"]["done"]);
        let got = match &read.kind {
            _ if refused.is_object() => match expected {
                Expected::Refused(refusals) => Got::of_block(refused, refusals),
                Expected::Fine { .. } => Got::of_block(refused, &[]),
            },
            Kind::List => Got { status: 200, json: done.clone() },
            Kind::Get(_) if done.is_null() => Got { status: 404, json: json!({ "error": "not_found" }) },
            Kind::Get(_) => Got { status: 200, json: json!({ "data": done }) },
            Kind::Aggregate(function, field) => {
                let (value, count) = (&done["value"], &done["filteredCount"]);
                Got {
                    status: 200,
                    json: json!({ "data": { "fn": function, "field": field, "value": value, "filteredCount": count } }),
                }
            }
        };
        let expected = match expected.clone() {
            Expected::Fine { status, body, .. } => Expected::fine(status, body, false),
            refused @ Expected::Refused(_) => refused,
        };
        got.problem(&expected).map(|problem| format!("{input}\n  {problem}"))
    }

    async fn read(&mut self, case: usize, caller: &Caller, read: Read) {
        let asked = (0..SURFACES).map(|surface| self.problem_of_read(caller, &read, surface));
        let problems = join_all(asked).await;
        if let Some(surface) = problems.iter().position(Option::is_some) {
            self.fail_read(case, caller, read, surface).await;
            return;
        }
        self.tally.reads += 1;
        let view = caller.view(&self.state.world);
        let is_masked = |row: &Row| {
            view.sees(read.object, row)
                && row.values.keys().any(|name| caller.knows(read.object, name) && !view.shows(read.object, row, name))
        };
        let is_masked = self.state.world.rows[read.object].iter().any(is_masked);
        match self.state.expected(caller, &read) {
            Expected::Refused(_) => self.tally.refused_reads += 1,
            Expected::Fine { .. } => self.tally.masked += usize::from(is_masked),
        }
    }

    /// Fails, and shows a smaller request that is wrong too.
    async fn fail_read(&mut self, case: usize, caller: &Caller, mut read: Read, surface: usize) {
        'again: loop {
            for smaller in read.smaller() {
                if self.problem_of_read(caller, &smaller, surface).await.is_some() {
                    read = smaller;
                    continue 'again;
                }
            }
            break;
        }
        if let Some(condition) = read.condition.clone() {
            let with = |condition: &Value| Read { condition: Some(condition.clone()), ..read.clone() };
            let is_wrong = async |condition: &Value| {
                let is_valid = self.state.world.read(&caller.reader, read.object, condition).is_ok();
                is_valid && self.problem_of_read(caller, &with(condition), surface).await.is_some()
            };
            let smallest = shrunk(&condition, is_wrong).await;
            read = with(&smallest);
        }
        let problem = self.problem_of_read(caller, &read, surface).await;
        let request = if surface == 2 {
            format!("{:?}", read.tool(OBJECTS[read.object]))
        } else {
            format!("{:?}", read.rest(OBJECTS[read.object], surface == 1))
        };
        let text = format!(
            "{}\n  surface {surface}: {request}\n  {}\n  rows: {}",
            self.place(case, caller, read.object),
            problem.unwrap_or_default(),
            self.state.world.rows[read.object].iter().map(|row| self.shown_row(read.object, row)).collect::<String>(),
        );
        self.failures.push(text);
    }

    async fn write(&mut self, case: usize, caller: &Caller, mut write: Write) {
        self.tally.writes += 1;
        let name = NAMES[write.object];
        let expected = self.state.write(caller, &write);
        let sent = self.send_write(caller, &write, &expected).await;
        let surface = sent.surface;
        match expected {
            Ok(left) if sent.got.status < 300 => self.check_write(case, caller, &write, left, &sent).await,
            Err(refusals) => {
                let got = sent.got;
                let problem = got.problem(&Expected::Refused(refusals));
                self.tally.refused_writes += 1;
                let Some(mut problem) = problem else { return };
                // If the server refuses the smaller request too, nothing has changed.
                let mut is_refused = got.status >= 300;
                'again: while is_refused {
                    for smaller in write.smaller() {
                        let Err(refusals) = self.state.write(caller, &smaller) else { continue };
                        let got = self.rest(caller, smaller.rest(name)).await;
                        let Some(other) = got.problem(&Expected::Refused(refusals)) else { continue };
                        (write, problem) = (smaller, other);
                        is_refused = got.status >= 300;
                        continue 'again;
                    }
                    break;
                }
                let place = self.place(case, caller, write.object);
                self.failures.push(format!("{place}\n  {surface}: {:?}\n  {problem}{}", write.rest(name), self.rows(&write)));
                self.synchronize().await;
            }
            Ok(_) => {
                let (mut status, mut text) = (sent.got.status, sent.got.json);
                'again: loop {
                    for smaller in write.smaller() {
                        if self.state.write(caller, &smaller).is_err() {
                            continue;
                        }
                        let got = self.rest(caller, smaller.rest(name)).await;
                        if got.status < 300 {
                            break 'again;
                        }
                        (write, status, text) = (smaller, got.status, got.json);
                        continue 'again;
                    }
                    break;
                }
                let place = self.place(case, caller, write.object);
                let (request, rows) = (write.rest(name), self.rows(&write));
                let text = format!("{place}\n  {surface}: {request:?}\n  expected success, got {status} {text}{rows}");
                self.failures.push(text);
                self.synchronize().await;
            }
        }
    }

    fn shown_row(&self, object: usize, row: &Row) -> String {
        let ends = self.state.world.ends(object);
        let links = ends.iter().filter(|end| self.state.world.relations[end.relation].is_links()).map(|end| {
            let related = self.state.world.related(&Everything, end, object, row);
            (end.key.as_str(), related.into_iter().map(|other| other.id.as_str()).collect::<Vec<_>>())
        });
        format!("\n    {} {:?}", json!(row.values), links.collect::<Vec<_>>())
    }

    /// The rows that a write names, for messages.
    fn rows(&self, write: &Write) -> String {
        let shown = format!("{write:?}");
        let rows = self.state.world.rows.iter().flatten().filter(|row| {
            shown.contains(&row.id)
                || row.values.get("code").and_then(Value::as_str).is_some_and(|code| shown.contains(&format!("\"{code}\"")))
        });
        rows.map(|row| format!("\n  row {}", json!(row.values))).collect()
    }

    /// Compares the response, the rows and the events of a write.
    async fn check_write(&mut self, case: usize, caller: &Caller, write: &Write, left: Left, sent: &Sent) {
        let Sent { surface, got, selected } = sent;
        let (place, request) = (self.place(case, caller, write.object), write.rest(NAMES[write.object]));
        let place = format!("{place}\n  {surface}: {request:?}{}", self.rows(write));
        let Left { mut state, mut emitted, mut answer } = left;
        let new: Vec<&Value> = match got.json.get("ids") {
            Some(ids) => ids.as_array().expect("ids").iter().collect(),
            None => vec![&got.json["data"]["id"]],
        };
        let names: Vec<(String, String)> =
            new.into_iter().enumerate().filter_map(|(number, id)| Some((placeholder(number), id.as_str()?.to_owned()))).collect();
        let new_name = |id: &str| names.iter().find(|(old, _)| old == id).map(|(_, new)| new.clone());
        for row in state.world.rows.iter_mut().flatten() {
            if let Some(id) = new_name(&row.id) {
                row.values.insert("id".to_owned(), json!(id));
                row.id = id;
            }
        }
        for event in &mut emitted {
            event.id = new_name(&event.id).unwrap_or_else(|| event.id.clone());
        }
        answer.rename(&names);
        let admin = self.callers[0].credential.clone().expect("a token");
        let shown = shown_to_admin(self.server, &admin).await;
        self.count(shown.len());
        if let Some(difference) = difference(&state, &shown) {
            self.failures.push(format!("{place}\n  {difference}"));
            return self.synchronize().await;
        }
        adopt(&mut state.world, &shown);
        let mut json = got.json.clone();
        if let (Answered::Ids { is_ordered: false, .. }, Some(Value::Array(ids))) = (&answer, json.get_mut("ids")) {
            ids.sort_by_key(Value::to_string);
        }
        let expected = answer.expected(&state, caller).with_only(selected.as_deref());
        if let Some(problem) = (Got { status: got.status, json }).problem(&expected) {
            self.failures.push(format!("{place}\n  {problem}"));
        }
        self.state = state;
        self.check_events(&place, emitted).await;
    }

    /// Copies the state of the server after a difference, so that the run can continue.
    async fn synchronize(&mut self) {
        let admin = self.callers[0].credential.clone().expect("a token");
        let shown = shown_to_admin(self.server, &admin).await;
        let mut links = BTreeSet::new();
        for (object, records) in shown.iter().enumerate() {
            let row = |record: &Value| {
                let values = record.as_object().expect("a record").iter().filter(|(_, value)| !value.is_array());
                let values = values.map(|(name, value)| (name.clone(), value.clone())).collect();
                Row { id: record["id"].as_str().expect("an id").to_owned(), maker: 0, values }
            };
            self.state.world.rows[object] = records.iter().map(row).collect();
            for (place, relation) in self.state.world.relations.iter().enumerate().filter(|(_, relation)| relation.is_links()) {
                for record in records.iter().filter(|_| relation.source == object) {
                    let targets = record[&relation.name].as_array().expect("links").iter();
                    let id = |record: &Value| record["id"].as_str().expect("an id").to_owned();
                    links.extend(targets.map(|target| (place, id(record), id(target))));
                }
            }
        }
        self.state.world.links = links;
        self.stream = stream(self.server, &admin, &self.callers[self.listener]).await;
        self.subscription = subscription(self.server, &admin, &self.callers[self.subscriber]).await;
        self.problem_of_webhooks(&[]).await;
    }

    /// Compares the calls of the webhooks for new events with the reference, after all of them have ended. Returns the difference.
    async fn problem_of_webhooks(&mut self, all: &[Value]) -> Option<String> {
        let admin = self.server.with_token(self.callers[0].credential.clone().expect("a token"));
        for status in ["pending", "failed"] {
            let path = format!("/api/v1/events/deliveries?status={status}");
            until("the webhooks have their events", async || admin.get(&path).await.json()["pagination"]["totalCount"] == 0)
                .await;
        }
        let received = self.receiver.received();
        let new = received[self.received..].iter().map(|request| json!([request.id(), request.json()["payload"]]));
        let mut got: Vec<Value> = new.collect();
        self.received = received.len();
        let maker = &self.callers[setup::HOOK_MAKER];
        let of_hooks = all.iter().filter(|event| self.hooked.contains(&object_named(&event["payload"]["object"])));
        let shown = of_hooks.filter_map(|event| self.state.shown(maker, event));
        let mut expected: Vec<Value> = shown.map(|event| json!([event["id"], event["payload"]])).collect();
        got.sort_by_key(Value::to_string);
        expected.sort_by_key(Value::to_string);
        let differs = got != expected;
        differs.then(|| format!("the webhooks of {}:\n  expected {}\n  got      {}", maker.name, json!(expected), json!(got)))
    }

    async fn check_events(&mut self, place: &str, mut emitted: Vec<Emitted>) {
        let failures = self.failures.len();
        let path = format!("/api/v1/events?topic=data.&limit={}", emitted.len().max(1));
        let all = self.rest(&self.callers[0], ("GET", path.clone(), None)).await.json["data"].take();
        let all: Vec<Value> = all.as_array().expect("events").iter().take(emitted.len()).cloned().collect();
        let read = |event: &Value| {
            let payload = &event["payload"];
            let op = ["created", "updated", "deleted", "linked", "unlinked"].into_iter().find(|op| payload["op"] == *op);
            let links = payload["relationship"].as_str().map(|key| {
                let ids = payload["targetIds"].as_array().expect("ids").iter().filter_map(Value::as_str);
                (key.to_owned(), ids.map(str::to_owned).collect())
            });
            Emitted {
                object: object_named(&payload["object"]),
                op: op.expect("an operation"),
                id: payload["id"].as_str().expect("an id").to_owned(),
                links,
            }
        };
        let mut seen: Vec<Emitted> = all.iter().map(read).collect();
        seen.sort();
        emitted.sort();
        if seen != emitted {
            self.failures
                .push(format!("{place}\n  the events that the write emitted: expected {emitted:?}\n  got      {seen:?}"));
            return self.synchronize().await;
        }
        let by_id = |events: Vec<Value>| {
            let mut events: Vec<Value> = events;
            events.sort_by_key(|event| event["id"].to_string());
            events
        };
        let new: BTreeSet<&str> = all.iter().filter_map(|event| event["id"].as_str()).collect();
        let listener = &self.callers[self.listener];
        let expected = by_id(all.iter().filter_map(|event| self.state.shown(listener, event)).collect());
        let mut got = Vec::new();
        for _ in 0..expected.len() {
            // Heartbeats keep the stream alive, so the wait needs its own limit.
            match tokio::time::timeout(STREAM_WAIT_MAX, self.stream.event()).await {
                Ok(event) => got.push(event),
                Err(_) => break,
            }
        }
        let got = by_id(got);
        if got != expected {
            let (name, got, expected) = (&listener.name, json!(got), json!(expected));
            self.failures.push(format!("{place}\n  the stream of {name}:\n  expected {expected}\n  got      {got}"));
        }
        let subscriber = &self.callers[self.subscriber];
        let expected = by_id(all.iter().filter_map(|event| self.state.shown(subscriber, event)).collect());
        let got = by_id(self.subscription.events(expected.len()).await);
        if got != expected {
            let (name, got, expected) = (&subscriber.name, json!(got), json!(expected));
            self.failures.push(format!("{place}\n  the subscription of {name}:\n  expected {expected}\n  got      {got}"));
        }
        if let Some(problem) = self.problem_of_webhooks(&all).await {
            self.failures.push(format!("{place}\n  {problem}"));
        }
        let answers = join_all(self.callers.iter().map(|caller| self.rest(caller, ("GET", path.clone(), None)))).await;
        for (caller, got) in self.callers.iter().zip(answers) {
            if !caller.reads_events {
                assert_eq!(got.status, caller.denied().status, "{place}\n  events of {}", caller.name);
                continue;
            }
            assert_eq!(got.status, 200, "{place}\n  events of {}: {}", caller.name, got.json);
            let got = got.json["data"].as_array().expect("events").clone();
            let got = by_id(got.into_iter().filter(|event| event["id"].as_str().is_some_and(|id| new.contains(id))).collect());
            let expected = by_id(all.iter().filter_map(|event| self.state.shown(caller, event)).collect());
            for event in &expected {
                self.tally.events += 1;
                self.tally.cut_events += usize::from(!all.contains(event));
            }
            if got != expected {
                let grants = caller.grants(&self.state.world);
                let variables = (&caller.reader.variables, &caller.reader.roles);
                let (got, expected, all) = (json!(got), json!(expected), json!(all));
                self.failures.push(format!(
                    "{place}\n  events of {} with {variables:?} {grants}\n  all      {all}\n  expected {expected}\n  got      {got}",
                    caller.name
                ));
            }
        }
        if self.failures.len() > failures {
            self.synchronize().await;
        }
    }

    async fn case(&mut self, case: usize, random: &mut Rng) {
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

/// The caller other than the admin who sees the most rows, but not all.
fn listener(state: &State, callers: &[Caller]) -> usize {
    let seen = |caller: &Caller| {
        let view = caller.view(&state.world);
        let rows = state.world.rows.iter().enumerate();
        rows.map(|(object, rows)| rows.iter().filter(|row| view.sees(object, row)).count()).sum::<usize>()
    };
    let able = (1..callers.len()).filter(|number| callers[*number].credential.is_some());
    able.max_by_key(|number| seen(&callers[*number])).expect("a caller")
}

/// The next of the other callers who have GraphQL.
fn subscriber(callers: &[Caller], listener: usize) -> usize {
    let mut others = (1..callers.len()).map(|step| (listener + step) % callers.len());
    others.find(|number| *number > 0 && callers[*number].has_all_surfaces()).expect("another caller")
}

/// Opens the stream of a caller, which begins with the next event.
async fn stream(server: &Server, admin: &str, caller: &Caller) -> Stream {
    let newest = server.with_token(admin.to_owned()).get("/api/v1/events?limit=1").await.data();
    let path = format!("/api/v1/events/stream?topics=data.%23&since={}", newest[0]["id"].as_str().expect("an id"));
    let who = server.with_token(caller.credential.clone().expect("a credential"));
    Stream::of_response(who.request("GET", &path).timeout(STREAM_AGE_MAX).send().await.expect("a response")).await
}

async fn subscription(server: &Server, admin: &str, caller: &Caller) -> Subscription {
    let who = server.with_token(caller.credential.clone().expect("a credential"));
    Subscription::open(&who, &server.with_token(admin.to_owned())).await
}

async fn run(engine: Engine, seed: u64, cases: usize, failures_max: usize) -> Tally {
    let (server, receiver) = (quick(engine).start().await, Receiver::start().await);
    let setup::Setup { world, rules, callers, holders, hooked } = setup::build(&server, seed, &receiver.url).await;
    let state = State { world, rules, owners: BTreeMap::new() };
    let listener = listener(&state, &callers);
    let subscriber = subscriber(&callers, listener);
    let admin = callers[0].credential.clone().expect("a token");
    let stream = stream(&server, &admin, &callers[listener]).await;
    let subscription = subscription(&server, &admin, &callers[subscriber]).await;
    let mut run = Run {
        server: &server,
        seed,
        state,
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
    let Tally { requests, reads, writes, refused_reads, refused_writes, masked, events, cut_events } = all;
    eprintln!("{engine:?}: {requests} requests with {reads} reads and {writes} writes");
    let is_telling = refused_reads * 50 > reads
        && masked * 100 > reads
        && refused_writes * 5 > writes
        && refused_writes * 4 < writes * 3
        && events > writes
        && cut_events * 20 > events;
    // The requests of a seed that somebody chose need not be as mixed.
    assert!(is_telling || only.is_some() || reads + writes < 150, "{all:?}");
}

on_both_engines! {
    async fn random_grants_show_and_change_what_the_reference_does(engine: Engine) {
        run_seeds(engine, 0).await;
    }

    #[ignore = "long: the same with other seeds"]
    async fn other_random_grants_show_and_change_what_the_reference_does(engine: Engine) {
        run_seeds(engine, SECOND_SEED).await;
    }
}

//! Random roles, callers and requests. Each response is compared with a simple policy. For each caller, it says which actions
//! they may do on which rows.
//!
//! A failure prints its seed and the request. `BLOCKBASE_POLICY_SEED` runs a single seed, and `BLOCKBASE_POLICY_CASES` sets how many
//! requests each seed makes.

mod expansion;
mod reads;
mod removals;
mod setup;
mod writes;

use std::collections::{BTreeMap, BTreeSet};

use blockbase_tests::{Answer, Engine, Server, ServerBuilder, is_long};
use fastrand::Rng;
use serde_json::{Value, json};

use crate::events::Stream;

/// The long command runs all seeds, and the gate only the first one.
const SEEDS: std::ops::Range<u64> = 0..8;
/// The number of requests for each seed, without those of its setup.
const CASES: usize = 200;
/// If an object has this number of rows, it gets no more. One list of the admin shows all of them.
const ROWS_MAX: usize = 80;

const NAMES: [&str; 3] = ["alpha", "beta", "gamma"];
const TITLES: [&str; 6] = ["red fox", "Grey Fox", "red hen", "blue jay", "Jay", "hen"];
const TERMS: [&str; 6] = ["fox", "RED", "jay", "c1", "hen", "nothing"];
const ACTIONS: [&str; 5] = ["create", "read", "update", "delete", "manage"];
/// An id that no row has.
const MISSING: &str = "20000000-0000-4000-8000-000000000000";

/// The rows that a grant covers.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Reach {
    Own,
    All,
}

#[derive(Clone, Debug)]
struct Grant {
    resource: String,
    actions: Vec<&'static str>,
    is_own: bool,
}

impl Grant {
    fn json(&self) -> Value {
        match self.is_own {
            true => json!({ "resource": self.resource, "actions": self.actions, "rowPolicy": "own" }),
            false => json!({ "resource": self.resource, "actions": self.actions }),
        }
    }
}

#[derive(Clone, Debug)]
struct Caller {
    name: String,
    /// A session's token or an API key.
    credential: Option<String>,
    /// The user, by index in [`World::users`].
    user: Option<usize>,
    grants: Vec<Grant>,
}

/// The complete policy: grants add up, and a grant for all rows includes a grant for own rows.
fn allowed(caller: &Caller, resource: &str, action: &str) -> Option<Reach> {
    let mut reach = None;
    for grant in &caller.grants {
        let is_about = grant.resource == "*" || grant.resource == resource;
        if is_about && (grant.actions.contains(&action) || grant.actions.contains(&"manage")) {
            reach = if grant.is_own && reach != Some(Reach::All) { Some(Reach::Own) } else { Some(Reach::All) };
        }
    }
    reach
}

/// Whether a caller may do `action` to a row of `resource` that `owner` created.
fn reaches(caller: &Caller, resource: &str, action: &str, owner: Option<usize>) -> bool {
    match allowed(caller, resource, action) {
        None => false,
        Some(Reach::Own) => owner.is_some() && owner == caller.user,
        Some(Reach::All) => true,
    }
}

#[derive(Clone, Debug)]
struct Row {
    id: String,
    created_at: String,
    owner: Option<usize>,
    changer: Option<usize>,
    title: String,
    code: Option<String>,
    amount: Option<i64>,
    /// The ids that the row refers to, by the relation's index.
    references: BTreeMap<usize, String>,
}

#[derive(Clone, Debug)]
struct Relation {
    name: String,
    is_many_to_many: bool,
    source: usize,
    target: usize,
    /// Whether a reference prevents the deletion of its target.
    restricts: bool,
}

/// The rows that a relation key shows for a row.
struct Related {
    object: usize,
    is_single: bool,
    ids: Vec<String>,
}

#[derive(Clone, Debug)]
struct Event {
    topic: String,
    id: String,
    object: usize,
    owner: Option<usize>,
}

/// Counts the outcomes, so that a run that tests too little fails.
#[derive(Default)]
struct Tally {
    done: usize,
    denied: usize,
    hidden: usize,
}

struct World<'a> {
    server: &'a Server,
    random: Rng,
    relations: Vec<Relation>,
    /// The ids of the users. The admin is the first.
    users: Vec<String>,
    /// The callers. The admin is the first.
    callers: Vec<Caller>,
    /// The rows of each object.
    rows: Vec<Vec<Row>>,
    /// The relation, the id of the source, and the id of the target.
    links: BTreeSet<(usize, String, String)>,
    events: Vec<Event>,
    tally: Tally,
    /// The current request, for messages of failures.
    place: String,
}

fn pick<T: Clone>(random: &mut Rng, of: &[T]) -> T {
    of[random.usize(..of.len())].clone()
}

fn text(value: &Value) -> String {
    value.as_str().unwrap_or_else(|| panic!("no text: {value}")).to_owned()
}

fn ids_of(rows: &Value) -> Vec<String> {
    rows.as_array().unwrap_or_else(|| panic!("no rows: {rows}")).iter().map(|row| text(&row["id"])).collect()
}

fn permissions(grants: &[Grant]) -> Value {
    grants.iter().map(Grant::json).collect()
}

impl World<'_> {
    fn objects(&self) -> usize {
        self.rows.len()
    }

    fn object(&mut self) -> usize {
        self.random.usize(..self.rows.len())
    }

    fn row(&self, object: usize, id: &str) -> Option<&Row> {
        self.rows[object].iter().find(|row| row.id == id)
    }

    /// An id of `object`. Sometimes no row has this id.
    fn id(&mut self, object: usize) -> String {
        let rows = &self.rows[object];
        match rows.is_empty() || self.random.u8(..) < 20 {
            true => MISSING.to_owned(),
            false => rows[self.random.usize(..rows.len())].id.clone(),
        }
    }

    fn reaches(&self, caller: &Caller, object: usize, action: &str, id: &str) -> bool {
        self.row(object, id).is_some_and(|row| reaches(caller, NAMES[object], action, row.owner))
    }

    fn may(&self, caller: &Caller, object: usize, action: &str) -> bool {
        allowed(caller, NAMES[object], action).is_some()
    }

    async fn send(&mut self, caller: &Caller, method: &str, path: &str, body: Option<Value>) -> Answer {
        let shown = body.as_ref().map(Value::to_string).unwrap_or_default();
        let place = self.place.split_once(" | ").map_or(self.place.as_str(), |(place, _)| place);
        let grants = permissions(&caller.grants);
        self.place = format!("{place} | {} {:?} {method} {path} {shown} with {grants}", caller.name, caller.user);
        self.server.call_as(caller.credential.as_deref(), method, path, body).await
    }

    #[track_caller]
    fn expect(&self, status: u16, answer: &Answer) {
        assert_eq!(answer.status, status, "{}: {}", self.place, answer.text);
    }

    #[track_caller]
    fn denied(&mut self, caller: &Caller, answer: &Answer) {
        let (status, code) = if caller.credential.is_none() { (401, "unauthorized") } else { (403, "forbidden") };
        assert_eq!((answer.status, &answer.json()["error"]), (status, &json!(code)), "{}: {}", self.place, answer.text);
        self.tally.denied += 1;
    }

    /// If a request about a row is refused, it gets the same response as a request about a row that does not exist.
    async fn tells_nothing(&mut self, caller: &Caller, method: &str, path: &str, id: &str, body: Option<Value>, answer: &Answer) {
        let other = self.send(caller, method, &path.replace(id, MISSING), body).await;
        assert_eq!((answer.status, &answer.text), (other.status, &other.text), "{}", self.place);
    }

    fn user_json(&self, user: Option<usize>) -> Value {
        user.map_or(Value::Null, |user| json!(self.users[user]))
    }

    /// Asserts that a response shows the row correctly.
    #[track_caller]
    fn check_record(&self, record: &Value, row: &Row, object: usize) {
        let mut expected = json!({
            "id": row.id,
            "title": row.title,
            "code": row.code,
            "amount": row.amount,
            "created_by": self.user_json(row.owner),
            "updated_by": self.user_json(row.changer),
        });
        for (place, relation) in self.relations.iter().enumerate() {
            if !relation.is_many_to_many && relation.source == object {
                expected[format!("{}_id", relation.name)] = json!(row.references.get(&place));
            }
        }
        for (name, value) in expected.as_object().unwrap() {
            assert_eq!(&record[name], value, "{name} of {record}: {}", self.place);
        }
    }

    /// Asserts that the admin sees exactly the expected rows and links.
    async fn check_everything(&self) {
        let admin = self.callers[0].credential.as_deref();
        for (object, name) in NAMES.iter().enumerate().take(self.objects()) {
            let links: Vec<&Relation> =
                self.relations.iter().filter(|relation| relation.is_many_to_many && relation.source == object).collect();
            let keys: Vec<&str> = links.iter().map(|relation| relation.name.as_str()).collect();
            let path = format!("/api/v1/data/{}?limit=100&expand={}", name, keys.join(","));
            let seen = self.server.call_as(admin, "GET", &path, None).await.json();
            let shown: BTreeSet<String> = ids_of(&seen["data"]).into_iter().collect();
            let expected: BTreeSet<String> = self.rows[object].iter().map(|row| row.id.clone()).collect();
            assert_eq!(shown, expected, "{} after {}", name, self.place);
            assert_eq!(seen["pagination"]["totalCount"], expected.len(), "{}", self.place);
            for record in seen["data"].as_array().unwrap() {
                self.check_record(record, self.row(object, record["id"].as_str().unwrap()).unwrap(), object);
                keys.iter().for_each(|key| self.check_expanded(&self.callers[0], object, record, &[(*key).to_owned()]));
            }
        }
    }

    async fn request(&mut self) {
        let which = if self.random.u8(0..14) == 0 { 0 } else { self.random.usize(1..self.callers.len()) };
        let caller = self.callers[which].clone();
        match self.random.u8(0..100) {
            0..24 => return self.list(&caller).await,
            24..36 => return self.get(&caller).await,
            36..44 => return self.aggregate(&caller).await,
            44..46 => return self.discover(&caller).await,
            46..56 => self.create(&caller).await,
            56..60 => self.create_many(&caller).await,
            60..72 => self.update(&caller).await,
            72..81 => self.upsert(&caller).await,
            81..86 => self.delete(&caller).await,
            86..91 => self.delete_many(&caller).await,
            _ => self.link(&caller).await,
        }
        self.check_everything().await;
    }

    async fn admin(&self, method: &str, path: &str, body: Value) -> Value {
        let answer = self.server.call_as(self.callers[0].credential.as_deref(), method, path, Some(body)).await;
        assert!(answer.status < 300, "{method} {path}: {} {}", answer.status, answer.text);
        answer.json()
    }
}

/// Reads a stream from the first beacon to the last. Returns the topics and ids of the events in between.
fn follow(mut stream: Stream) -> tokio::task::JoinHandle<Vec<(String, String)>> {
    tokio::spawn(async move {
        let mut seen = Vec::new();
        loop {
            let event = stream.event().await;
            match event["payload"]["after"]["title"].as_str().filter(|_| event["payload"]["object"] == "beacon") {
                Some("begin") => seen.clear(),
                Some("end") => return seen,
                _ => seen.push((text(&event["topic"]), text(&event["payload"]["id"]))),
            }
        }
    })
}

async fn run(engine: Engine, seed: u64, cases: usize) -> Tally {
    let server = ServerBuilder::new(engine).start().await;
    let mut random = Rng::with_seed(seed);
    let everything = Grant { resource: "*".to_owned(), actions: vec!["manage"], is_own: false };
    let (mut users, mut callers) = (Vec::new(), Vec::new());
    for name in ["admin", "ann", "bob", "cid"] {
        let token = server.sign_up(name).await;
        let id = text(&server.with_token(token.clone()).get("/api/v1/me").await.json()["userId"]);
        let grants = if name == "admin" { vec![everything.clone()] } else { Vec::new() };
        callers.push(Caller { name: name.to_owned(), credential: Some(token), user: Some(users.len()), grants });
        users.push(id);
    }
    callers.push(Caller { name: "anonymous".to_owned(), credential: None, user: None, grants: Vec::new() });
    let rows = vec![Vec::new(); random.usize(2..4)];
    let place = format!("seed {seed}");
    let (relations, links, events, tally) = (Vec::new(), BTreeSet::new(), Vec::new(), Tally::default());
    let mut world = World { server: &server, random, relations, users, callers, rows, links, events, tally, place };
    world.make_rows().await;
    world.give_roles().await;

    let mut streams = Vec::new();
    for caller in &world.callers {
        let sees_beacons = allowed(caller, "beacon", "read") == Some(Reach::All);
        if let Some(credential) = caller.credential.clone().filter(|_| sees_beacons) {
            streams.push((caller.clone(), follow(Stream::open(&server.with_token(credential), "").await)));
        }
    }
    assert!(streams.len() >= 4);
    world.admin("POST", "/api/v1/data/beacon", json!({ "title": "begin" })).await;
    (world.events, world.tally) = (Vec::new(), Tally::default());
    for case in 0..cases {
        world.place = format!("seed {seed}, case {case}");
        world.request().await;
    }
    world.admin("POST", "/api/v1/data/beacon", json!({ "title": "end" })).await;
    for (caller, stream) in streams {
        let mut seen = stream.await.unwrap();
        let visible = world.events.iter().filter(|event| reaches(&caller, NAMES[event.object], "read", event.owner));
        let mut expected: Vec<(String, String)> = visible.map(|event| (event.topic.clone(), event.id.clone())).collect();
        seen.sort();
        expected.sort();
        assert_eq!(seen, expected, "the stream of {}, seed {seed}", caller.name);
    }
    world.tally
}

async fn random_requests(engine: Engine) {
    let setting = |name: &str| std::env::var(name).ok().and_then(|text| text.parse::<u64>().ok());
    let cases = setting("BLOCKBASE_POLICY_CASES").map_or(CASES, |cases| cases as usize);
    let seeds = setting("BLOCKBASE_POLICY_SEED")
        .map_or_else(|| if is_long() { SEEDS } else { SEEDS.start..SEEDS.start + 1 }, |seed| seed..seed + 1);
    let (mut all, mut requests) = (Tally::default(), 0);
    for seed in seeds {
        let tally = run(engine, seed, cases).await;
        requests += cases;
        (all.done, all.denied, all.hidden) = (all.done + tally.done, all.denied + tally.denied, all.hidden + tally.hidden);
    }
    let Tally { done, denied, hidden } = all;
    let is_telling = done * 4 > requests && denied * 10 > requests && hidden * 10 > requests;
    assert!(is_telling || requests < 500, "of {requests} requests {done} were done, {denied} denied, {hidden} met hidden rows");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn random_requests_see_and_change_what_the_policy_lets_them_on_sqlite() {
    random_requests(Engine::Sqlite).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn random_requests_see_and_change_what_the_policy_lets_them_on_postgres() {
    random_requests(Engine::Postgres).await;
}

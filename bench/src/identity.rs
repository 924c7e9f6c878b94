//! The cost of identifying the caller: requests with and without enforcement, sign-ins compared with argon2id alone, and the
//! identity check compared with a static response.
//!
//! Two servers run on the same rows. One of them does not enforce permissions. All contenders of a contest take short turns in
//! one run, in alternating order, so that a drift of the machine affects all of them. The ratio is the median of the turns' own
//! ratios.

mod passwords;

use std::process::Command;
use std::sync::Arc;
use std::time::{Duration, Instant};

use serde_json::{Value, json};
use uuid::Uuid;

use crate::SharedOptions;
use crate::cluster::Cluster;
use crate::fill::{BULK_RECORDS, bulk, code, priorities, record, title};
use crate::load::{MakeRequest, Measured, request, run as run_load};
use crate::report::{Table, grouped};
use crate::run::{Engine, REST};
use crate::server::{blockbase, floor};
use crate::side::Side;
use crate::workloads::{always, get_by_id};

#[derive(clap::Args)]
pub(crate) struct Options {
    #[command(flatten)]
    shared: SharedOptions,
    /// Rows in the table
    #[arg(long, default_value_t = 100_000)]
    rows: u32,
    /// One row in as many is the owner's
    #[arg(long, default_value_t = 10)]
    own_one_in: u32,
    /// Seconds of each measurement
    #[arg(long, default_value_t = 4)]
    seconds: u64,
    /// Connections
    #[arg(long, default_value_t = 32)]
    connections: usize,
    /// Only what has this in its name
    #[arg(long, default_value = "")]
    only: String,
}

/// The number of turns of each contender.
const TURNS: u32 = 6;
/// The shortest time of a turn with password checks. About a hundred of them run per second.
const PASSWORDS_TIME_MIN: Duration = Duration::from_secs(8);
/// The number of sign-ups that run at a time, if many users are made. They keep all cores busy with hashing.
const SIGNING_UP: usize = 8;
/// The number of users who sign in, in turn. None of them has so many sessions that a sign-in ends another one.
const USERS: usize = 256;
const PASSWORD: &str = "correct horse battery";

const ENFORCEMENT_AIM: f64 = 0.9;
const SIGN_IN_AIM: f64 = 0.9;
const VERDICT_AIM: f64 = 0.5;

enum Work {
    Requests {
        address: String,
        make: MakeRequest,
    },
    /// Verifies a password on every core, in this process.
    Passwords,
}

struct Contender {
    name: &'static str,
    work: Work,
}

/// A comparison. All other contenders are compared with the first one.
struct Contest {
    name: &'static str,
    /// The smallest good ratio. `None` if the contenders do different work.
    aim: Option<f64>,
    contenders: Vec<Contender>,
}

fn requests(name: &'static str, address: &str, make: MakeRequest) -> Contender {
    Contender { name, work: Work::Requests { address: address.to_owned(), make } }
}

pub(crate) fn run(options: &Options) {
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build().unwrap();
    for engine in options.shared.engine.each() {
        let cluster = (*engine == Engine::Postgres).then(Cluster::start);
        let table = runtime.block_on(measure(options, cluster.as_ref()));
        let rows = grouped(f64::from(options.rows));
        options.shared.print(*engine, &format!("identity, {rows} rows, {} connections", options.connections), &table);
    }
}

async fn measure(options: &Options, cluster: Option<&Cluster>) -> Table {
    let (directory, floor_directory) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let databases = match cluster {
        Some(cluster) => Some((cluster.new_database("ours").await, cluster.new_database("floor").await)),
        None => None,
    };
    let (url, floor_url) = databases.as_ref().map(|(ours, floor)| (ours.as_str(), floor.as_str())).unzip();
    let served = directory.path().join("enforced");
    std::fs::create_dir(&served).unwrap();

    let first = blockbase(&options.shared.binary, &served, url, &[]);
    let admin = Side::blockbase(&first.address, None).await;
    let callers = Callers::make(&admin).await;
    let own = fill(&admin, &callers.owner, options).await;
    if let Some(cluster) = cluster {
        cluster.settle("ours").await;
    }
    // A SQLite file can have only one server, so the other one gets a copy. The copy is complete, with nothing left in the write-ahead
    // log.
    first.stop();
    let open = directory.path().join("open");
    assert!(Command::new("cp").arg("-R").arg(&served).arg(&open).status().expect("cp").success());
    let enforced = blockbase(&options.shared.binary, &served, url, &[]);
    let unenforced = blockbase(&options.shared.binary, &open, url, &[("SVC_REQUIRE_AUTH", "false")]);
    let floor = floor(floor_directory.path(), floor_url);
    tokio::time::sleep(REST).await;

    let own_count = own.len();
    let base = Side { address: unenforced.address.clone(), token: None, ids: Arc::new(own), ..admin };
    let on = |side: &Side| Side { address: enforced.address.clone(), ids: Arc::clone(&base.ids), ..side.clone() };
    let callers =
        Callers { owner_id: callers.owner_id, reader: on(&callers.reader), key: on(&callers.key), owner: on(&callers.owner) };
    let found = callers.owner.send(&request("GET", callers.owner.items, callers.owner.token.as_deref(), None)).await;
    assert_eq!(found["pagination"]["totalCount"], own_count, "the owner sees their own rows alone");

    let mut contests = enforcement(&base, &callers);
    contests.push(sign_ins(&callers.reader).await);
    contests.extend(verdicts(&callers.reader, &floor.address));
    let mut rows = Vec::new();
    for contest in contests.iter().filter(|contest| contest.name.contains(&options.only)) {
        rows.extend(hold(options, contest).await);
    }
    drop((enforced, unenforced, floor));
    if let Some(cluster) = cluster {
        cluster.drop_database("ours").await;
        cluster.drop_database("floor").await;
    }
    Table { head: vec!["what, by whom", "/s", "p50 µs", "p99 µs", "ratio", "aim"], rows }
}

/// The callers whose requests are checked.
struct Callers {
    owner_id: String,
    /// A session with a plain grant to read.
    reader: Side,
    /// A key with the same grant.
    key: Side,
    /// A session with a grant for own rows.
    owner: Side,
}

impl Callers {
    async fn make(admin: &Side) -> Callers {
        let reads = json!([{ "resource": "task", "actions": ["read"] }]);
        let owns = json!([
            { "resource": "task", "actions": ["create", "read"], "rowPolicy": "own" },
            { "resource": "project", "actions": ["read"] },
        ]);
        admin.post("/api/v1/roles", &json!({ "name": "reader", "permissions": reads })).await;
        admin.post("/api/v1/roles", &json!({ "name": "owner", "permissions": owns })).await;
        let (reader, _) = user(admin, "reader").await;
        let (owner, owner_id) = user(admin, "owner").await;
        let key = admin.post("/api/v1/api-keys", &json!({ "name": "key", "roleId": "reader" })).await;
        let key = Side { token: Some(text(&key["key"])), ..admin.clone() };
        Callers { owner_id, reader, key, owner }
    }
}

fn text(value: &Value) -> String {
    value.as_str().unwrap().to_owned()
}

async fn sign_up(side: &Side, name: &str) -> Value {
    let account = json!({ "name": name, "email": format!("{name}@example.com"), "password": PASSWORD });
    side.post("/api/auth/sign-up/email", &account).await
}

/// Makes a user with the role of the same name. Returns their side and id.
pub(crate) async fn user(admin: &Side, role: &str) -> (Side, String) {
    let (token, id) = user_named(admin, role, role).await;
    (Side { token: Some(token), ..admin.clone() }, id)
}

/// Makes a user with a role. Returns their token and id.
async fn user_named(admin: &Side, name: &str, role: &str) -> (String, String) {
    let signed = sign_up(&Side { token: None, ..admin.clone() }, name).await;
    let id = text(&signed["user"]["id"]);
    admin.post(&format!("/api/v1/users/{id}/roles"), &json!({ "roleId": role })).await;
    (text(&signed["token"]), id)
}

/// Makes many users with the same role, several at a time. Returns the token and the id of each, in any order.
///
/// The server hashes a password for each. Guests would have none, but all guests of an address count as one caller.
pub(crate) async fn users_of(admin: &Side, role: &'static str, count: usize) -> Vec<(String, String)> {
    let sign_up_some = |first: usize| {
        let admin = admin.clone();
        tokio::spawn(async move {
            let mut made = Vec::new();
            for number in (first..count).step_by(SIGNING_UP) {
                made.push(user_named(&admin, &format!("{role}{number}"), role).await);
            }
            made
        })
    };
    let signing_up: Vec<_> = (0..SIGNING_UP).map(sign_up_some).collect();
    let mut users = Vec::with_capacity(count);
    for made in signing_up {
        users.extend(made.await.unwrap());
    }
    users
}

/// Makes a role and a user who has it.
pub(crate) async fn user_with(admin: &Side, role: &str, permissions: &Value) -> Side {
    admin.post("/api/v1/roles", &json!({ "name": role, "permissions": permissions })).await;
    user(admin, role).await.0
}

/// Creates rows. Those of the owner are between those of the others. Returns the ids of the owner's rows.
async fn fill(admin: &Side, owner: &Side, options: &Options) -> Vec<Uuid> {
    let rows = options.rows;
    let project = admin.post(admin.projects, &json!({ "name": "project" })).await;
    let project: Uuid = serde_json::from_value(project["data"]["id"].clone()).unwrap();
    let path = format!("{}/bulk", admin.items);
    let mut own = Vec::new();
    for first in (0..rows).step_by(BULK_RECORDS as usize) {
        let end = rows.min(first + BULK_RECORDS);
        let middle = first + (end - first) / options.own_one_in;
        // The others' rows are created last, so that the newest rows belong to them.
        for (side, numbers) in [(owner, first..middle), (admin, middle..end)] {
            let body = bulk(numbers.map(|number| record(&title(number), number % priorities(rows), &code(number), project)));
            let made = side.send(&request("POST", &path, side.token.as_deref(), Some(&body))).await;
            if side.token == owner.token {
                own.extend(serde_json::from_value::<Vec<Uuid>>(made["ids"].clone()).unwrap());
            }
        }
    }
    own
}

/// All callers get the owner's rows by id. All lists have pages of 25 rows.
fn enforcement(base: &Side, callers: &Callers) -> Vec<Contest> {
    let Callers { owner_id, reader, key, owner } = callers;
    let by = |name, side: &Side, query: Option<&str>| {
        let make = match query {
            None => get_by_id(side),
            Some(query) => always(side, "GET", &format!("{}{query}", side.items), None),
        };
        requests(name, &side.address, make)
    };
    let against = |base_query: Option<&str>, query: Option<&str>, sides: &[(&'static str, &Side)]| {
        let mut contenders = vec![by("enforcement off", base, base_query)];
        contenders.extend(sides.iter().map(|(name, side)| by(name, side, query)));
        contenders
    };
    let (session, key, own) = (("session", reader), ("API key", key), ("session, own rows", owner));
    let aim = Some(ENFORCEMENT_AIM);
    let without = Some("?count=none");
    let filter = format!("?created_by={owner_id}");
    vec![
        Contest { name: "get by id", aim, contenders: against(None, None, &[session, key, own]) },
        Contest { name: "list 25 newest", aim, contenders: against(Some(""), Some(""), &[session, key]) },
        Contest { name: "list 25 newest, no total", aim, contenders: against(without, without, &[session, key, own]) },
        // The total of all rows is stored, but the total of own rows has to be counted. The other contenders are a list of all
        // rows, and a list with a filter that matches the same rows.
        Contest { name: "list 25 newest, own total", aim: None, contenders: against(Some(""), Some(""), &[own]) },
        Contest { name: "list 25 newest, owner's", aim, contenders: against(Some(&filter), Some(""), &[own]) },
    ]
}

async fn sign_ins(side: &Side) -> Contest {
    let signer = Side { token: None, ..side.clone() };
    let mut bodies = Vec::new();
    for number in 0..USERS {
        let name = format!("user{number}");
        sign_up(&signer, &name).await;
        bodies.push(json!({ "email": format!("{name}@example.com"), "password": PASSWORD }).to_string());
    }
    let make: MakeRequest = Arc::new(move |connection, number| {
        request("POST", "/api/auth/sign-in/email", None, Some(&bodies[(connection + number) % USERS]))
    });
    let alone = Contender { name: "argon2id alone", work: Work::Passwords };
    Contest { name: "sign-in", aim: Some(SIGN_IN_AIM), contenders: vec![alone, requests("password", &side.address, make)] }
}

/// The server's own static response goes through the same middleware. The response of plain axum goes through no middleware.
fn verdicts(side: &Side, floor: &str) -> [Contest; 2] {
    let alive = || -> MakeRequest { Arc::new(|_, _| request("GET", "/healthz", None, None)) };
    let verdict = || requests("GET /api/v1/me, session", &side.address, always(side, "GET", "/api/v1/me", None));
    let aim = Some(VERDICT_AIM);
    [
        Contest { name: "verdict", aim, contenders: vec![requests("GET /healthz", &side.address, alive()), verdict()] },
        Contest { name: "verdict", aim, contenders: vec![requests("GET /healthz of plain axum", floor, alive()), verdict()] },
    ]
}

/// Runs the contenders in turns. Returns a row of the table for each contender.
async fn hold(options: &Options, contest: &Contest) -> Vec<Vec<String>> {
    let began = Instant::now();
    let has_passwords = contest.contenders.iter().any(|contender| matches!(contender.work, Work::Passwords));
    let time_min = if has_passwords { PASSWORDS_TIME_MIN } else { Duration::ZERO };
    let time = (Duration::from_millis(options.seconds * 1000) / TURNS).max(time_min);
    let mut turns: Vec<Vec<Measured>> = contest.contenders.iter().map(|_| Vec::new()).collect();
    for turn in 0..TURNS {
        let mut order: Vec<usize> = (0..turns.len()).collect();
        if turn % 2 == 1 {
            order.reverse();
        }
        for place in order {
            turns[place].push(match &contest.contenders[place].work {
                Work::Requests { address, make } => run_load(address, options.connections, time, Arc::clone(make)).await,
                Work::Passwords => tokio::task::spawn_blocking(move || passwords::run(PASSWORD, time)).await.unwrap(),
            });
        }
    }
    let mut rows = Vec::new();
    for (place, contender) in contest.contenders.iter().enumerate() {
        let all = Measured::mean(&turns[place], 1);
        let ratios = turns[place].iter().zip(&turns[0]).map(|(ours, base)| ours.a_second / base.a_second).collect();
        let (ratio, aim) = match place {
            0 => (String::new(), String::new()),
            _ => (format!("{:.2}", median(ratios)), contest.aim.map_or_else(String::new, |aim| format!("{aim:.2}"))),
        };
        let name = format!("{}, {}", contest.name, contender.name);
        let [rate, p50, p99] = [all.a_second, all.p50_us as f64, all.p99_us as f64].map(grouped);
        eprintln!("{:>4} s  {name:<45} {rate:>7}/s {p50:>7} {p99:>7} µs   {ratio}", began.elapsed().as_secs());
        rows.push(vec![name, rate, p50, p99, ratio, aim]);
    }
    rows
}

pub(crate) fn median(mut numbers: Vec<f64>) -> f64 {
    numbers.sort_by(f64::total_cmp);
    let middle = numbers.len() / 2;
    if numbers.len() % 2 == 1 { numbers[middle] } else { f64::midpoint(numbers[middle - 1], numbers[middle]) }
}

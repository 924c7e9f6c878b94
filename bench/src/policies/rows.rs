//! Lists, single records and writes of three callers: one without a policy, one for own rows, and one for the rows of a team. The
//! last two reach about the same number of rows, and both have theirs spread over all rows in the same way.

use std::sync::Arc;

use serde_json::{Value, json};
use tokio::net::TcpStream;
use uuid::Uuid;

use super::Options;
use super::teams::{Teams, tasks_of};
use crate::cluster::Cluster;
use crate::events::subject::Subject;
use crate::fill::{BULK_RECORDS, bulk, code, priorities, record, title};
use crate::identity::user_with;
use crate::load::{MakeRequest, exchange, request};
use crate::report::{Table, grouped};
use crate::run::REST;
use crate::side::Side;
use crate::turns::{Contender, take};
use crate::workloads::{always, pick};

/// The team whose member is measured.
const TEAM: usize = 0;
/// The team whose tasks belong to the caller of own rows. With a single team, that caller owns all rows.
const TEAM_OF_OWN: usize = 1;

/// A caller, and the ids of the rows that they get and change.
struct Reader {
    name: &'static str,
    side: Side,
    ids: Arc<Vec<Uuid>>,
}

pub(super) async fn measure(options: &Options, cluster: Option<&Cluster>) -> (String, Table) {
    let mut subject = Subject::start(&options.shared.binary, cluster, "policies", &[]).await;
    let teams = Teams::make(&subject.side, options.roles).await;
    let [all, own, team] = callers(&subject.side).await;
    let (own_ids, team_ids) = fill(&subject.side, &own, &teams, options.rows).await;
    subject.settle().await;
    // The server restarts, because it may still do work that came from the rows.
    subject.stop();
    subject.start_again();
    tokio::time::sleep(REST).await;
    let (own_ids, team_ids) = (Arc::new(own_ids), Arc::new(team_ids));
    let mut readers = [
        Reader { name: "own", side: own, ids: own_ids },
        Reader { name: "no policy", side: all, ids: Arc::clone(&team_ids) },
        Reader { name: "through a relation", side: team, ids: team_ids },
    ];
    for reader in &mut readers {
        reader.side.address.clone_from(&subject.side.address);
        if reader.name != "no policy" {
            let list = request("GET", reader.side.items, reader.side.token.as_deref(), None);
            let total = reader.side.send(&list).await["pagination"]["totalCount"].clone();
            assert_eq!(total, json!(reader.ids.len()), "{}", reader.name);
        }
    }
    let mut rows = Vec::new();
    for (operation, make) in OPERATIONS {
        let project = teams.project_of_team(TEAM);
        let mut contenders: Vec<Contender> =
            readers.iter().map(|reader| Contender::new(&reader.side.address, make(reader, project))).collect();
        take(&mut contenders, options.connections, options.seconds).await;
        for (reader, contender) in readers.iter().zip(&contenders) {
            let times = contender.beside(&contenders[0], |this, own| this.p50_us as f64 / own.p50_us.max(1) as f64);
            let [a_second, p50, p99] = contender.cells();
            let row = vec![operation.to_owned(), reader.name.to_owned(), a_second, p50, p99, format!("{times:.2}")];
            eprintln!("{row:?}");
            rows.push(row);
        }
    }
    subject.end().await;
    let title = format!("{} tasks, of which a policy reaches one in {}", grouped(f64::from(options.rows)), options.roles);
    (title, Table { head: vec!["", "policy", "/s", "p50 µs", "p99 µs", "p50 beside own"], rows })
}

/// The callers without a policy, for own rows, and of the team.
async fn callers(admin: &Side) -> [Side; 3] {
    let projects = json!({ "resource": "project", "actions": ["read"] });
    let tasks = |policy: Value| {
        let mut grant = json!({ "resource": "task", "actions": ["create", "read", "update"] });
        grant.as_object_mut().unwrap().extend(policy.as_object().unwrap().clone());
        json!([grant, projects])
    };
    [
        user_with(admin, "all", &tasks(json!({}))).await,
        user_with(admin, "own", &tasks(json!({ "rowPolicy": "own" }))).await,
        user_with(admin, "team", &tasks(json!({ "where": tasks_of(TEAM) }))).await,
    ]
}

/// Creates rows. Those of the owner are between those of the others. Returns the ids of the owner's rows, and of the team's rows.
async fn fill(admin: &Side, owner: &Side, teams: &Teams, rows: u32) -> (Vec<Uuid>, Vec<Uuid>) {
    let path = format!("{}/bulk", admin.items);
    let mut stream = TcpStream::connect(&admin.address).await.unwrap();
    stream.set_nodelay(true).unwrap();
    let (mut buffer, mut of_owner, mut of_team) = (Vec::new(), Vec::new(), Vec::new());
    let team_of = |number: u32| teams.project_of(number).1;
    let is_own = |number: u32| team_of(number) == TEAM_OF_OWN % teams.count;
    let numbers: Vec<u32> = (0..rows).collect();
    for bulk_numbers in numbers.chunks(BULK_RECORDS as usize) {
        // A request has the rows of one owner only, and the rows are stored in the order of their numbers.
        for numbers in bulk_numbers.chunk_by(|one, next| is_own(*one) == is_own(*next)) {
            let side = if is_own(numbers[0]) { owner } else { admin };
            let body = bulk(numbers.iter().map(|number| {
                let (project, _) = teams.project_of(*number);
                record(&title(*number), number % priorities(rows), &code(*number), project)
            }));
            let bytes = request("POST", &path, side.token.as_deref(), Some(&body));
            let (status, range) = exchange(&mut stream, &bytes, &mut buffer).await;
            assert_eq!(status, 201, "{}", String::from_utf8_lossy(&buffer));
            let made: Value = serde_json::from_slice(&buffer[range]).unwrap();
            let ids: Vec<Uuid> = serde_json::from_value(made["ids"].clone()).unwrap();
            of_team.extend(numbers.iter().zip(&ids).filter(|(number, _)| team_of(**number) == TEAM).map(|(_, id)| *id));
            if is_own(numbers[0]) {
                of_owner.extend(ids);
            }
        }
    }
    (of_owner, of_team)
}

/// Makes the requests of an operation. The project is one of the team's.
type MakeOperation = fn(&Reader, Uuid) -> MakeRequest;

const OPERATIONS: [(&str, MakeOperation); 5] = [
    ("list of 25", |reader, _| always(&reader.side, "GET", &format!("{}?count=none", reader.side.items), None)),
    ("list of 25 and the total", |reader, _| always(&reader.side, "GET", reader.side.items, None)),
    ("get", |reader, _| by_id(reader, "GET", |_| None)),
    ("update", |reader, _| by_id(reader, "PATCH", |number| Some(format!("{{\"priority\":{}}}", number % 100)))),
    ("create", |reader, project| {
        let body = format!("{{\"title\":\"a new task\",\"priority\":1,\"project_id\":\"{project}\"}}");
        always(&reader.side, "POST", reader.side.items, Some(&body))
    }),
];

/// A request for one of the caller's rows. `body` makes the body from the request's number.
fn by_id(reader: &Reader, method: &'static str, body: fn(usize) -> Option<String>) -> MakeRequest {
    let (side, ids) = (reader.side.clone(), Arc::clone(&reader.ids));
    Arc::new(move |connection, number| {
        let id = ids[pick(connection, number, ids.len())];
        request(method, &format!("{}/{id}", side.items), side.token.as_deref(), body(number).as_deref())
    })
}

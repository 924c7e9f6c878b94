//! The GraphQL schemas of many roles that each know other fields, and the start of a server with many roles.

use std::time::Duration;

use serde_json::{Value, json};
use tokio::net::TcpStream;

use super::Options;
use crate::cluster::Cluster;
use crate::events::subject::Subject;
use crate::identity::{median, user_with};
use crate::report::{Table, grouped};
use crate::side::Side;
use crate::surfaces::schema::{INTROSPECTION, timed};

const FIELDS: usize = 25;
/// The number of views that the server keeps: `VIEWS_MAX` in host/graphql/src/view/views.rs. With more roles, the server builds
/// the schemas again in the second round, and its memory has those of the last roles. With many objects it keeps fewer schemas:
/// `SIZE_MAX` in host/graphql/src/view/kept_schemas.rs.
const KEPT_MAX: usize = 64;
/// The number of starts whose median is the time of a start.
const STARTS: usize = 9;
/// How long the server idles before its memory is measured.
const QUIET: Duration = Duration::from_secs(3);

pub(super) async fn measure(options: &Options, cluster: Option<&Cluster>) -> (String, Table) {
    let (roles, objects) = (options.roles, usize::from(options.objects));
    assert!(roles <= objects * FIELDS, "each role needs a field that it lacks");
    let mut subject = Subject::start(&options.shared.binary, cluster, "schemas_of_roles", &[]).await;
    for object in 0..objects {
        let fields: Vec<Value> = (0..FIELDS).map(|field| json!({ "name": format!("f{field}"), "type": "integer" })).collect();
        subject.side.post("/api/v1/objects", &json!({ "name": format!("sheet{object}"), "fields": fields })).await;
    }
    let start_without = start(&mut subject).await;
    let mut members = Vec::with_capacity(roles);
    for role in 0..roles {
        members.push(user_with(&subject.side, &format!("role{role}"), &grants(role, objects)).await);
    }
    let start_with = start(&mut subject).await;
    for member in &mut members {
        member.address.clone_from(&subject.side.address);
    }
    tokio::time::sleep(QUIET).await;
    let (before, _) = subject.memory_mib();
    let admin = ask(&subject.side, INTROSPECTION).await;
    let (with_one, _) = subject.memory_mib();
    // A request that needs no complete schema. Each role sends another document, which the server does not know yet.
    let mut queries = Vec::with_capacity(roles);
    for (role, member) in members.iter().enumerate() {
        queries.push(ask(member, &format!("{{ role{role}: sheet0(limit: 1) {{ data {{ id }} }} }}")).await);
    }
    tokio::time::sleep(QUIET).await;
    let (after_queries, _) = subject.memory_mib();
    let (mut first, mut again) = (Vec::new(), Vec::new());
    for times in [&mut first, &mut again] {
        for member in &members {
            times.push(ask(member, INTROSPECTION).await);
        }
    }
    tokio::time::sleep(QUIET).await;
    let (after, peak) = subject.memory_mib();
    subject.end().await;
    let growth = (after - with_one) * 1024.0 / roles.min(KEPT_MAX) as f64;
    let line = |name: &str, value: String| vec![name.to_owned(), value];
    let rows = vec![
        line("start without roles, ms", format!("{start_without:.0}")),
        line("start with all roles, ms", format!("{start_with:.0}")),
        line("introspection of the admin, first, µs", grouped(admin)),
        line("new query of a role, p50 µs", grouped(median(queries))),
        line("introspection of a role, first, p50 µs", grouped(median(first))),
        line("introspection of a role, second round, p50 µs", grouped(median(again))),
        line("server before any GraphQL request, MiB", format!("{before:.0}")),
        line("after the admin's schema, MiB", format!("{with_one:.0}")),
        line("after a new query of each role, MiB", format!("{after_queries:.0}")),
        line("after the introspections of all roles, MiB", format!("{after:.0}")),
        line("at its peak, MiB", format!("{peak:.0}")),
        line("growth for each role whose view is kept, KiB", format!("{growth:.0}")),
    ];
    let title = format!("{roles} roles (the server keeps {KEPT_MAX} views) that know different fields of {objects} objects");
    (title, Table { head: vec!["", "measured"], rows })
}

/// Grants for all objects. Each role lacks another field.
fn grants(role: usize, objects: usize) -> Value {
    let (lacking, field) = (role / FIELDS % objects, format!("f{}", role % FIELDS));
    let mut grants = vec![json!({ "resource": "data", "actions": ["read"] })];
    for object in 0..objects {
        let mut grant = json!({ "resource": format!("sheet{object}"), "actions": ["create", "read", "update"] });
        if object == lacking {
            grant["fields"] = json!({ "read": { "except": [field] }, "write": { "except": [field] } });
        }
        grants.push(grant);
    }
    Value::Array(grants)
}

/// Starts the server several times. Returns the median time of a start, in milliseconds.
async fn start(subject: &mut Subject<'_>) -> f64 {
    let mut times = Vec::with_capacity(STARTS);
    for _ in 0..STARTS {
        subject.stop();
        subject.start_again();
        times.push(subject.process().started_in.as_secs_f64() * 1e3);
    }
    median(times)
}

/// The time of a GraphQL request, in microseconds.
async fn ask(side: &Side, query: &str) -> f64 {
    let mut stream = TcpStream::connect(&side.address).await.unwrap();
    stream.set_nodelay(true).unwrap();
    timed(side, &mut stream, query).await.as_secs_f64() * 1e6
}

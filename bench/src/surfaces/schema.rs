//! Many objects: the cost of their schema, and the effect of a change on the next requests.

use std::time::{Duration, Instant};

use serde_json::json;
use tokio::net::TcpStream;

use super::Options;
use crate::cluster::Cluster;
use crate::events::subject::Subject;
use crate::identity::median;
use crate::load::{exchange, request};
use crate::report::{Table, grouped};
use crate::side::Side;

/// The number of changes that are made and measured.
const CHANGES: usize = 15;
/// The number of requests whose median is the usual time.
const USUAL: usize = 200;

pub(super) async fn measure(options: &Options, cluster: Option<&Cluster>) -> (String, Table) {
    let mut rows = Vec::new();
    for objects in &options.objects {
        eprintln!("{objects} objects");
        rows.push(one(options, cluster, *objects).await);
    }
    let head = vec![
        "objects",
        "schema ready after a change, ms",
        "whole introspection, ms",
        "usual request, µs",
        "first after a change, µs",
        "ratio",
        "new query after a change, µs",
        "resident MiB after the changes",
        "MiB with the schema, before the changes",
        "MiB without GraphQL asked",
    ];
    ("the schema of many objects, and requests right after a change of it".to_owned(), Table { head, rows })
}

async fn one(options: &Options, cluster: Option<&Cluster>, objects: usize) -> Vec<String> {
    let mut subject = Subject::start(&options.shared.binary, cluster, "schemas", &[]).await;
    // The benchmark's own objects are included in this number.
    for number in 2..objects {
        let kinds = ["text", "integer", "boolean", "decimal", "datetime", "json", "email", "big_integer"];
        let mut fields: Vec<_> = kinds.iter().map(|kind| json!({ "name": format!("a_{kind}"), "type": kind })).collect();
        fields.push(json!({ "name": "state", "type": "enum", "options": ["open", "closed"] }));
        subject.side.post("/api/v1/objects", &json!({ "name": format!("object{number}"), "fields": fields })).await;
        if number % 3 == 0 {
            let target = format!("object{}", number - 1);
            let relationship =
                json!({ "name": "parent", "kind": "many_to_one", "source": format!("object{number}"), "target": target });
            subject.side.post("/api/v1/relationships", &relationship).await;
        }
    }
    subject.stop();
    subject.start_again();
    let before = subject.memory_mib().0;
    let side = subject.side.clone();
    let mut stream = TcpStream::connect(&side.address).await.unwrap();
    stream.set_nodelay(true).unwrap();
    let known = "{ task(limit: 5) { data { id title project { name } } } }";
    let root = "{ __schema { queryType { name } } }";
    timed(&side, &mut stream, root).await;
    timed(&side, &mut stream, known).await;
    let mut usual = Vec::new();
    for _ in 0..USUAL {
        usual.push(timed(&side, &mut stream, known).await.as_secs_f64() * 1e6);
    }
    let usual = median(usual);
    // The schema of the only view is complete, and nothing has been freed yet.
    let with_schema = subject.memory_mib().0;
    let (mut first, mut fresh, mut ready) = (Vec::new(), Vec::new(), Vec::new());
    for number in 0..CHANGES {
        let field = json!({ "name": format!("more{number}"), "type": "integer" });
        side.post("/api/v1/objects/project/fields", &field).await;
        first.push(timed(&side, &mut stream, known).await.as_secs_f64() * 1e6);
        tokio::time::sleep(Duration::from_millis(700)).await;
        let field = json!({ "name": format!("other{number}"), "type": "integer" });
        side.post("/api/v1/objects/project/fields", &field).await;
        // The request selects the field that the change added.
        fresh.push(
            timed(&side, &mut stream, &format!("{{ project(limit: 5) {{ data {{ other{number} }} }} }}")).await.as_secs_f64()
                * 1e6,
        );
        tokio::time::sleep(Duration::from_millis(700)).await;
        let field = json!({ "name": format!("last{number}"), "type": "integer" });
        side.post("/api/v1/objects/project/fields", &field).await;
        ready.push(timed(&side, &mut stream, root).await.as_secs_f64() * 1e3);
        tokio::time::sleep(Duration::from_millis(300)).await;
    }
    let whole = timed(&side, &mut stream, INTROSPECTION).await.as_secs_f64() * 1e3;
    let after = subject.memory_mib().0;
    let first = median(first);
    let row = vec![
        objects.to_string(),
        format!("{:.1}", median(ready)),
        format!("{whole:.0}"),
        grouped(usual),
        grouped(first),
        format!("{:.2}", first / usual),
        grouped(median(fresh)),
        format!("{after:.0}"),
        format!("{with_schema:.0}"),
        format!("{before:.0}"),
    ];
    subject.end().await;
    row
}

/// The time of a GraphQL request.
pub(crate) async fn timed(side: &Side, stream: &mut TcpStream, query: &str) -> Duration {
    let bytes = request("POST", "/api/v1/graphql", side.token.as_deref(), Some(&json!({ "query": query }).to_string()));
    let mut buffer = Vec::with_capacity(1 << 20);
    let begun = Instant::now();
    let (status, range) = exchange(stream, &bytes, &mut buffer).await;
    let took = begun.elapsed();
    assert!(status == 200 && !buffer[range.clone()].starts_with(b"{\"errors\""), "{}", String::from_utf8_lossy(&buffer[range]));
    took
}

/// The query that explorers and code generators send.
pub(crate) const INTROSPECTION: &str = "query { __schema { queryType { name } mutationType { name } subscriptionType { name } types { ...T } directives { name args { ...I } } } }
fragment T on __Type { kind name description fields(includeDeprecated: true) { name description args { ...I } type { ...R } isDeprecated deprecationReason } inputFields { ...I } interfaces { ...R } enumValues(includeDeprecated: true) { name description } possibleTypes { ...R } }
fragment I on __InputValue { name description type { ...R } defaultValue }
fragment R on __Type { kind name ofType { kind name ofType { kind name ofType { kind name ofType { kind name } } } } }";

//! A list and its total count are from the same moment, and usually from the same statement.

use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use blockbase_tests::{Engine, ServerBuilder, on_both_engines};
use serde_json::{Value, json};

use crate::accounts::mail_attacks::traced;

on_both_engines! {
    async fn a_list_and_its_total_are_of_one_moment(server: Server) {
        let admin = server.admin().await;
        admin.define("item", json!([{ "name": "kind", "type": "text" }])).await;
        let is_over = AtomicBool::new(false);
        // At every moment, there are either twenty records or none.
        let writes = async {
            while !is_over.load(Ordering::Relaxed) {
                let records: Vec<_> = (0..20).map(|_| json!({ "kind": "x" })).collect();
                let made = admin.post("/api/v1/data/item/bulk", json!({ "data": records })).await;
                assert_eq!(made.status, 201, "{}", made.text);
                let gone = admin.delete_with("/api/v1/data/item/bulk", json!({ "ids": made.json()["ids"] })).await;
                assert_eq!(gone.status, 200, "{}", gone.text);
            }
        };
        let reads = async {
            let end = Instant::now() + Duration::from_secs(3);
            let mut seen = [0, 0];
            while Instant::now() < end {
                for query in ["limit=20", "limit=20&kind=x", "limit=20&kind[ilike]=X", "limit=15&offset=5", "limit=15&offset=5&kind=x"] {
                    let list = admin.get(&format!("/api/v1/data/item?{query}")).await.json();
                    let rows = list["data"].as_array().unwrap().len() as u64;
                    let total = list["pagination"]["totalCount"].as_u64().unwrap();
                    let offset = if query.contains("offset") { 5 } else { 0 };
                    assert!((rows, total) == (0, 0) || (rows, total) == (20 - offset, 20), "{query}: {rows} of {total}");
                    seen[usize::from(rows > 0)] += 1;
                }
            }
            is_over.store(true, Ordering::Relaxed);
            assert!(seen.iter().all(|times| *times > 0), "both states are met: {seen:?}");
        };
        tokio::join!(writes, reads);
    }
}

on_both_engines! {
    async fn a_plain_read_is_one_statement(engine: Engine) {
        let log = "info,blockbase_store::sql=trace";
        let server = ServerBuilder::new(engine).env("SVC_LOG", log).env("SVC_LOG_FORMAT", "json").start().await;
        let admin = server.admin().await;
        admin.define("item", json!([{ "name": "kind", "type": "text" }])).await;
        admin.define("shelf", json!([])).await;
        let id = admin.make("item", json!({ "kind": "x" })).await;
        admin.make("item", json!({ "kind": "y" })).await;
        for (number, (path, rows, total)) in [
            ("item", 2, json!(2)),
            ("item?sort=kind&limit=1", 1, json!(2)),
            ("item?limit=1&offset=1", 1, json!(2)),
            ("item?count=none&kind=x", 1, Value::Null),
            ("shelf", 0, json!(0)),
            (format!("item/{id}").as_str(), 1, Value::Null),
        ]
        .into_iter()
        .enumerate()
        {
            let request = admin.request("GET", &format!("/api/v1/data/{path}"));
            let (answer, statements) = traced(&server, &format!("read-{number}"), request).await;
            assert_eq!(answer.status, 200, "{path}: {}", answer.text);
            let answer = answer.json();
            let shown = answer["data"].as_array().map_or(1, Vec::len);
            assert_eq!((shown, &answer["pagination"]["totalCount"]), (rows, &total), "{path}: {answer}");
            // The caller may be looked up as well.
            let is_of_records = |text: &String| ["\"item\"", "\"shelf\"", "svc_counts"].iter().any(|part| text.contains(part));
            assert_eq!(statements.iter().filter(|text| is_of_records(text)).count(), 1, "{path}: {statements:?}");
            // On Postgres, a transaction is not in the log.
            if engine == Engine::Sqlite {
                // A page after the first one may need another statement for its total.
                let read = statements.iter().position(is_of_records).unwrap();
                let is_of_transaction = |text: &&String| ["BEGIN", "COMMIT"].contains(&text.as_str());
                let is_begun = statements[..read].iter().rev().find(is_of_transaction).is_some_and(|text| text == "BEGIN");
                assert_eq!(is_begun, path.contains("offset"), "{path}: {statements:?}");
            }
        }
    }
}

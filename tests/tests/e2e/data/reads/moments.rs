//! A list and its total count are from the same moment.

use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use blockbase_tests::on_both_engines;
use serde_json::json;

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

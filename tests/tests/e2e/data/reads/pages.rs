//! Pages far from the first record, and pages of a search: their records, their order and their totals.

use blockbase_tests::on_both_engines;
use serde_json::{Value, json};

/// More than the smallest offset with which Postgres reads a page by ids.
const RECORDS: i64 = 6000;

on_both_engines! {
    async fn far_pages_and_pages_of_a_search_have_their_records_and_totals(server: Server) {
        let admin = server.admin().await;
        admin.define("project", json!([{ "name": "name", "type": "text" }])).await;
        admin.define("item", json!([{ "name": "number", "type": "integer" }, { "name": "title", "type": "text" }])).await;
        admin.relate(json!({ "name": "project", "kind": "many_to_one", "source": "item", "target": "project" })).await;
        let project = admin.make("project", json!({ "name": "marsh" })).await;
        for first in (0..RECORDS).step_by(1000) {
            let title = |place: i64| format!("heron {place}");
            let record = |place: i64| json!({ "number": first + place, "title": title(place), "project_id": project });
            let records: Vec<Value> = (0..1000).map(record).collect();
            let made = admin.post("/api/v1/data/item/bulk", json!({ "data": records })).await;
            assert_eq!(made.status, 201, "{}", made.text);
        }
        let upwards = |from: i64, until: i64| (from..until).collect::<Vec<_>>();
        for (query, numbers, total) in [
            ("sort=number&limit=5&offset=5990", upwards(5990, 5995), RECORDS),
            ("sort=-number&limit=5&offset=5990", vec![9, 8, 7, 6, 5], RECORDS),
            ("sort=number&limit=20&offset=5990", upwards(5990, RECORDS), RECORDS),
            ("sort=number&limit=5&offset=20000", Vec::new(), RECORDS),
            ("sort=number&number[gte]=500&limit=5&offset=5000", upwards(5500, 5505), 5500),
            ("sort=number&number[gte]=500&limit=5&offset=5499", vec![5999], 5500),
            ("sort=number&search=heron&limit=5", upwards(0, 5), RECORDS),
            ("sort=-number&search=heron&limit=5&offset=5500", vec![499, 498, 497, 496, 495], RECORDS),
            ("sort=number&search=heron&limit=5&offset=20000", Vec::new(), RECORDS),
            ("sort=number&search=heron+999", vec![999, 1999, 2999, 3999, 4999, 5999], 6),
            ("sort=number&search=heron+999&number[lt]=2000", vec![999, 1999], 2),
            ("sort=title,number&title[ilike]=HERON+99&limit=2", vec![99, 1099], 66),
        ] {
            for further in ["", "&count=none", "&expand=project", "&expand=project&count=none"] {
                let list = admin.get(&format!("/api/v1/data/item?{query}{further}")).await;
                assert_eq!(list.status, 200, "{query}{further}: {}", list.text);
                let list = list.json();
                let records = list["data"].as_array().unwrap();
                let found: Vec<i64> = records.iter().map(|record| record["number"].as_i64().unwrap()).collect();
                assert_eq!(found, numbers, "{query}{further}");
                let is_counted = !further.contains("count=none");
                let expected = if is_counted { json!(total) } else { Value::Null };
                assert_eq!(list["pagination"]["totalCount"], expected, "{query}{further}");
                let is_expanded = further.contains("expand");
                let has_project = |record: &Value| record["project"]["name"] == "marsh";
                assert!(records.iter().all(|record| has_project(record) == is_expanded), "{query}{further}: {list}");
            }
        }
    }
}

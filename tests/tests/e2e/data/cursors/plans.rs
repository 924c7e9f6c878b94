//! The cost of pages by cursors: an index leads to each of them.

use std::time::{Duration, Instant};

use blockbase_query::{End, sql};
use blockbase_tests::{Admin, Engine, on_both_engines};
use serde_json::{Value, json};

use crate::data::search::{dialect, explained_statement, object, planned};

/// A record far from both ends of [`make_rows`], as a position. `ID` is its id.
const RANK: &str = "[5005,ID]";

/// Makes rows with different ranks and codes, ten kinds, and a rest. Some of them have no rank and no kind.
async fn make_rows(admin: &Admin<'_>, rows: usize) {
    let fields = json!([
        { "name": "rank", "type": "integer", "indexed": true },
        { "name": "code", "type": "text", "required": true, "indexed": true },
        { "name": "kind", "type": "text" },
        { "name": "part", "type": "integer" },
        { "name": "free", "type": "integer" },
    ]);
    let made = admin.post("/api/v1/objects", json!({ "name": "row", "fields": fields, "indexes": [["kind", "part"]] })).await;
    assert_eq!(made.status, 201, "{}", made.text);
    for begin in (0..rows).step_by(1000) {
        let rows: Vec<Value> = (begin..begin + 1000)
            .map(|row| {
                let (rank, kind) =
                    if row % 10 == 9 { (Value::Null, Value::Null) } else { (json!(row), json!(format!("k{}", row % 10))) };
                json!({ "rank": rank, "code": format!("c{row:07}"), "kind": kind, "part": row / 10 % 500, "free": row % 7 })
            })
            .collect();
        assert_eq!(admin.post("/api/v1/data/row/bulk", json!({ "data": rows })).await.status, 201);
    }
}

on_both_engines! {
    async fn an_index_leads_to_the_rows_after_and_before_a_cursor(server: Server) {
        let admin = server.admin().await;
        make_rows(&admin, 12_000).await;
        if server.engine() == Engine::Postgres {
            server.sql("ANALYZE \"row\"").await;
        }
        let row = object(&server, "row").await;
        let id = admin.get("/api/v1/data/row?code=c0005005&select=id").await.data()[0]["id"].to_string();
        let dialect = dialect(&server);
        let created = "[\"2026-01-02T03:04:05.006Z\",ID]";
        for (sort, position, index) in [
            ("", created, "svc_ix_1_created"),
            ("created_at", created, "svc_ix_1_created"),
            ("id", "[ID]", "svc_pk_1"),
            ("rank", RANK, "svc_ix_1_1"),
            ("-rank", RANK, "svc_ix_1_1"),
            ("rank", "[null,ID]", "svc_ix_1_1"),
            ("-rank", "[null,ID]", "svc_ix_1_1"),
            ("code", "[\"c0005005\",ID]", "svc_ix_1_2"),
            ("-code", "[\"c0005005\",ID]", "svc_ix_1_2"),
            ("kind,part", "[\"k5\",250,ID]", "svc_ix_1_g_3_4"),
            ("-kind,-part", "[\"k5\",250,ID]", "svc_ix_1_g_3_4"),
            ("kind,part", "[null,250,ID]", "svc_ix_1_g_3_4"),
        ] {
            let plan = planned(&row, &[("cursor", ""), ("sort", sort)]);
            let position = plan.position(&position.replace("ID", &id)).unwrap();
            let mut parts = Vec::new();
            for end in [End::First, End::Last] {
                parts.extend(plan.parts(dialect, end, Some(&position)).iter().map(|part| sql::list_part(dialect, &plan, part, 26)));
            }
            assert!(parts.len() >= 2, "{sort}");
            for statement in parts {
                let sql = statement.sql.clone();
                let plan = explained_statement(&server, statement).await;
                assert!(plan.contains(index), "{sort}: {sql}\n{plan}");
                for bad in ["Seq Scan", "SCAN row\n", "TEMP B-TREE", "Sort Key"] {
                    assert!(!plan.contains(bad), "{sort}: {sql}\n{plan}");
                }
                // The engine begins in the middle of the index.
                assert!(plan.contains("Index Cond") || plan.contains("SEARCH row USING"), "{sort}: {sql}\n{plan}");
            }
            for end in [End::First, End::Last] {
                for part in plan.parts_behind(dialect, end, &position) {
                    let statement = sql::part_has_rows(dialect, &plan, &part);
                    let sql = statement.sql.clone();
                    let plan = explained_statement(&server, statement).await;
                    // Postgres may read the table instead, if it expects most rows to be in the part.
                    assert!(plan.contains("SEARCH row USING") || plan.contains("Limit"), "{sort}: {sql}\n{plan}");
                }
            }
        }
        // Without an index, one statement reads all rows. So the assertions above can fail.
        let plan = planned(&row, &[("cursor", ""), ("sort", "free")]);
        let position = plan.position(&"[3,ID]".replace("ID", &id)).unwrap();
        let parts = plan.parts(dialect, End::First, Some(&position));
        assert_eq!(parts.len(), 1);
        let plan = explained_statement(&server, sql::list_part(dialect, &plan, &parts[0], 26)).await;
        assert!(plan.contains("TEMP B-TREE") || plan.contains("Sort Key"), "{plan}");
    }

    #[ignore = "long: it measures the time of pages"]
    async fn page_ten_thousand_costs_as_much_as_page_one(server: Server) {
        let admin = server.admin().await;
        make_rows(&admin, 255_000).await;
        if server.engine() == Engine::Postgres {
            server.sql("ANALYZE \"row\"").await;
        }
        for sort in ["-created_at", "rank", "code", "kind,part"] {
            let get = async |query: &str| {
                let answer = admin.get(&format!("/api/v1/data/row?sort={sort}&{query}")).await;
                assert_eq!(answer.status, 200, "{}", answer.text);
                answer.json()["pagination"].clone()
            };
            // 250,000 records in pages of 100, and so 10,000 pages of 25.
            let mut cursor = String::new();
            for _ in 0..2500 {
                cursor = get(&format!("limit=100&select=id&after={cursor}")).await["endCursor"].as_str().unwrap().to_owned();
            }
            let first = get("limit=25&cursor=").await["endCursor"].as_str().unwrap().to_owned();
            let (one, two, deep) = ("limit=25&cursor=".to_owned(), format!("limit=25&after={first}"), format!("limit=25&after={cursor}"));
            let mut times = [Vec::new(), Vec::new(), Vec::new()];
            // In turn, so that the load of the machine is the same for all.
            for _ in 0..400 {
                for (place, query) in [one.as_str(), &two, &deep].into_iter().enumerate() {
                    let begun = Instant::now();
                    get(query).await;
                    times[place].push(begun.elapsed());
                }
            }
            let [one, two, deep] = times.map(|mut times| {
                times.sort();
                times[times.len() / 2]
            });
            eprintln!("{:?} {sort}: page 1 {one:?}, page 2 {two:?}, page 10,000 {deep:?}", server.engine());
            assert!(deep < two * 3 / 2 + Duration::from_micros(300), "{sort}: page 2 {two:?}, page 10,000 {deep:?}");
            assert!(deep < one * 3 + Duration::from_micros(500), "{sort}: page 1 {one:?}, page 10,000 {deep:?}");
        }
    }
}

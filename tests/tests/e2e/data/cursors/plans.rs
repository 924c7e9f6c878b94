//! The cost of pages by cursors: an index leads to each of them.

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
                let of_end = plan.parts(dialect, end, Some(&position), None);
                parts.extend(of_end.iter().map(|part| sql::list_part(dialect, &plan, part, 26, None)));
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
                    assert!(plan.contains(index), "{sort}: {sql}\n{plan}");
                    assert!(plan.contains("Index Cond") || plan.contains("SEARCH row USING"), "{sort}: {sql}\n{plan}");
                    for bad in ["Seq Scan", "TEMP B-TREE", "Sort Key"] {
                        assert!(!plan.contains(bad), "{sort}: {sql}\n{plan}");
                    }
                }
            }
        }
        // A condition without an index changes nothing: the nearest row is looked at first, and it was on the page before.
        let plan = planned(&row, &[("cursor", ""), ("sort", "created_at"), ("free", "3")]);
        let position = plan.position(&created.replace("ID", &id)).unwrap();
        let parts = plan.parts_behind(dialect, End::First, &position);
        assert_eq!(parts.len(), 1);
        let statement = sql::part_has_rows(dialect, &plan, &parts[0]);
        assert!(statement.sql.contains(r#"ORDER BY "created_at" DESC, "id" DESC LIMIT 1"#), "{}", statement.sql);
        let explained = explained_statement(&server, statement).await;
        assert!(explained.contains("svc_ix_1_created") && !explained.contains("Sort Key"), "{explained}");
        // Without an index, one statement reads all rows. The second field of an index leads nowhere. So the assertions above can fail.
        for (sort, position) in [("free", "[3,ID]"), ("part", "[250,ID]")] {
            let plan = planned(&row, &[("cursor", ""), ("sort", sort)]);
            let position = plan.position(&position.replace("ID", &id)).unwrap();
            let parts = plan.parts(dialect, End::First, Some(&position), None);
            assert_eq!(parts.len(), 1, "{sort}");
            let plan = explained_statement(&server, sql::list_part(dialect, &plan, &parts[0], 26, None)).await;
            assert!(plan.contains("TEMP B-TREE") || plan.contains("Sort Key"), "{sort}: {plan}");
        }
    }

    async fn an_index_leads_to_the_rows_between_two_cursors(server: Server) {
        let admin = server.admin().await;
        make_rows(&admin, 12_000).await;
        if server.engine() == Engine::Postgres {
            server.sql("ANALYZE \"row\"").await;
        }
        let row = object(&server, "row").await;
        let id = admin.get("/api/v1/data/row?code=c0005005&select=id").await.data()[0]["id"].to_string();
        let dialect = dialect(&server);
        for (sort, from, until, index, statements) in [
            ("created_at", "[\"2026-01-02T03:04:05.006Z\",ID]", "[\"2026-01-02T03:04:06.006Z\",ID]", "svc_ix_1_created", 1),
            ("rank", RANK, "[5095,ID]", "svc_ix_1_1", 1),
            ("-rank", "[5095,ID]", RANK, "svc_ix_1_1", 1),
            ("rank", RANK, "[null,ID]", "svc_ix_1_1", 2),
            ("code", "[\"c0005005\",ID]", "[\"c0005105\",ID]", "svc_ix_1_2", 1),
            ("kind,part", "[\"k5\",100,ID]", "[\"k5\",400,ID]", "svc_ix_1_g_3_4", 1),
            ("kind,part", "[\"k5\",250,ID]", "[\"k7\",250,ID]", "svc_ix_1_g_3_4", 4),
        ] {
            let plan = planned(&row, &[("cursor", ""), ("sort", sort)]);
            let [from, until] = [from, until].map(|position| plan.position(&position.replace("ID", &id)).unwrap());
            for (end, from, until) in [(End::First, &from, &until), (End::Last, &until, &from)] {
                let parts = plan.parts(dialect, end, Some(from), Some(until));
                assert_eq!(parts.len(), statements, "{sort} {end:?}");
                let mut bounded = 0;
                for part in parts {
                    let statement = sql::list_part(dialect, &plan, &part, 26, None);
                    let sql = statement.sql.clone();
                    let explained = explained_statement(&server, statement).await;
                    assert!(explained.contains(index), "{sort}: {sql}\n{explained}");
                    for bad in ["Seq Scan", "SCAN row\n", "TEMP B-TREE", "Sort Key"] {
                        assert!(!explained.contains(bad), "{sort}: {sql}\n{explained}");
                    }
                    // The index begins at one position and ends at the other. SQLite shows an expression of an index as `<expr>`.
                    let is_bounded = explained.lines().any(|line| {
                        let line = line.replace("<expr>", "");
                        let is_search = line.contains("Index Cond") || line.contains("SEARCH row USING");
                        is_search && line.contains('<') && line.contains('>')
                    });
                    bounded += usize::from(is_bounded);
                }
                let expected = usize::from(sort != "rank" || statements == 1);
                assert_eq!(bounded, expected, "{sort} {end:?}");
            }
        }
    }

    async fn a_late_page_has_the_plan_of_an_early_one(server: Server) {
        let admin = server.admin().await;
        make_rows(&admin, 12_000).await;
        if server.engine() == Engine::Postgres {
            server.sql("ANALYZE \"row\"").await;
        }
        let (row, dialect) = (object(&server, "row").await, dialect(&server));
        for (code, rank) in [("c0000021", 21), ("c0011021", 11_021)] {
            let id = admin.get(&format!("/api/v1/data/row?code={code}&select=id")).await.data()[0]["id"].to_string();
            for (sort, key) in [("rank", rank.to_string()), ("code", format!("\"{code}\""))] {
                let plan = planned(&row, &[("cursor", ""), ("sort", sort)]);
                let position = plan.position(&format!("[{key},{id}]")).unwrap();
                let parts = plan.parts(dialect, End::First, Some(&position), None);
                let explained = explained_statement(&server, sql::list_part(dialect, &plan, &parts[0], 26, None)).await;
                assert!(explained.contains("Index Cond") || explained.contains("SEARCH row USING"), "{sort} {code}: {explained}");
                assert!(!explained.contains("Sort Key") && !explained.contains("TEMP B-TREE"), "{sort} {code}: {explained}");
            }
        }
    }
}

//! Import of records from CSV, and export to it.

use blockbase_tests::{Admin, Answer, Server, ServerBuilder, on_both_engines};
use serde_json::{Value, json};

use super::{configure, install, records, user_with};

const BLOCK: &str = "csv";

async fn ready(server: &Server) -> Admin<'_> {
    let admin = server.admin().await;
    install(&admin, BLOCK).await;
    let fields = json!([
        { "name": "sku", "type": "text", "isUnique": true },
        { "name": "name", "type": "text", "required": true },
        { "name": "price", "type": "currency", "min": 0 },
        { "name": "stock", "type": "big_integer" },
        { "name": "weight", "type": "decimal" },
        { "name": "sold_out", "type": "boolean", "default": false },
        { "name": "since", "type": "date" },
        { "name": "seen", "type": "datetime" },
        { "name": "tags", "type": "multi_enum", "options": ["new", "sale", "rest"] },
        { "name": "extra", "type": "json" },
    ]);
    admin.define("product", fields).await;
    admin
}

async fn call(who: &Admin<'_>, action: &str, input: Value) -> Answer {
    who.post(&format!("/api/v1/blocks/csv/actions/{action}"), input).await
}

/// Imports products. `more` has further inputs of the action.
async fn import(who: &Admin<'_>, csv: &str, more: Value) -> Answer {
    let mut input = json!({ "object": "product", "csv": csv });
    for (key, value) in more.as_object().unwrap() {
        input[key] = value.clone();
    }
    call(who, "import", input).await
}

fn done(inserted: u64, updated: u64) -> Value {
    json!({ "inserted": inserted, "updated": updated, "failed": [] })
}

/// The message of a refused import.
fn refused(answer: &Answer, status: u16, code: &str) -> String {
    answer.expect_error(status, code)["message"].as_str().unwrap().to_owned()
}

/// Records without the fields that the service stamps.
fn plain(records: &[Value]) -> Vec<Value> {
    let mut records = records.to_vec();
    for record in &mut records {
        for name in ["id", "created_at", "updated_at", "created_by", "updated_by"] {
            record.as_object_mut().unwrap().remove(name);
        }
    }
    records
}

const COLUMNS: [&str; 10] = ["sku", "name", "price", "stock", "weight", "sold_out", "since", "seen", "tags", "extra"];

on_both_engines! {
    async fn what_is_exported_comes_back_as_it_was(server: Server) {
        let admin = ready(&server).await;
        let awkward = [
            "plain", " spaces ", "a,b;c\td", "say \"hi\"", "\"", "two\nlines", "two\r\nlines", "é\u{1f600}\u{2028}", "=1+1", "+49 30", "-", "@SUM(A1)", "\tx",
            "'=1", "''-", "'tis", "007", "1e5", "null", "true", "[1]", "{\"a\":1}", "\\N", "#", "\u{feff}x", "a\\b",
        ];
        let mut made = Vec::new();
        for (number, name) in awkward.iter().enumerate() {
            made.push(json!({
                "sku": format!("s-{number}"), "name": name, "price": "12345678901234.50", "stock": "-9223372036854775807", "weight": "-0.000001",
                "sold_out": number % 2 == 0, "since": "2026-02-28", "seen": "2026-11-21T10:00:00.123Z", "tags": ["sale", "new"],
                "extra": { "a": [1, "x,\"y\"", null] },
            }));
        }
        made.push(json!({ "name": "nothing else" }));
        assert_eq!(admin.post("/api/v1/data/product/bulk", json!({ "data": made })).await.status, 201);
        let before = records(&admin, "product").await;
        for delimiter in [",", ";", "\t"] {
            for safe in [true, false] {
                let given = json!({ "object": "product", "fields": COLUMNS, "delimiter": delimiter, "safe": safe });
                let exported = call(&admin, "export", given).await.data();
                assert_eq!((&exported["rows"], &exported["next"]), (&json!(before.len()), &Value::Null));
                let text = exported["csv"].as_str().unwrap();
                assert_eq!(text.contains("'=1+1"), safe);
                assert!(text.starts_with(&COLUMNS.join(delimiter)) && text.contains("12345678901234.5"), "{text}");
                assert!(!safe || text.contains("-9223372036854775807") && !text.contains("'-9"), "{text}");
                let ids: Vec<Value> = records(&admin, "product").await.iter().map(|record| record["id"].clone()).collect();
                assert_eq!(admin.delete_with("/api/v1/data/product/bulk", json!({ "ids": ids })).await.status, 200);
                let imported = import(&admin, text, json!({ "delimiter": delimiter, "safe": safe, "json": ["tags"] })).await;
                assert_eq!(imported.data(), done(before.len() as u64, 0));
                assert_eq!(plain(&records(&admin, "product").await), plain(&before));
            }
        }
        // Fields that the service stamps are exported, but ignored in an import.
        let all = call(&admin, "export", json!({ "object": "product" })).await.data();
        let text = all["csv"].as_str().unwrap();
        assert!(text.starts_with("id,") && text.lines().next().unwrap().contains("created_by"), "{text}");
        let again = import(&admin, text, json!({ "onConflict": ["id"], "json": ["tags"] })).await;
        assert_eq!(again.data(), done(0, before.len() as u64));
        assert_eq!(plain(&records(&admin, "product").await), plain(&before));
    }

    async fn an_export_is_filtered_sorted_and_paged(server: Server) {
        let admin = ready(&server).await;
        let rows: String = (0..250).map(|number| format!("s-{number:03},n,{number}\r\n")).collect();
        assert_eq!(import(&admin, &format!("sku,name,price\n{rows}"), json!({})).await.data(), done(250, 0));
        let export = async |more: Value| {
            let mut input = json!({ "object": "product", "fields": ["sku"] });
            for (key, value) in more.as_object().unwrap() {
                input[key] = value.clone();
            }
            call(&admin, "export", input).await
        };
        let skus = |range: &mut dyn Iterator<Item = u32>| format!("sku\r\n{}", range.map(|number| format!("s-{number:03}\r\n")).collect::<String>());
        assert_eq!(export(json!({})).await.data(), json!({ "csv": skus(&mut (0..250)), "rows": 250, "next": null }));
        assert_eq!(export(json!({ "limit": 120, "offset": 10 })).await.data(), json!({ "csv": skus(&mut (10..130)), "rows": 120, "next": null }));
        let filtered = json!({ "filters": [{ "field": "price", "operator": "gte", "value": 248 }], "sort": "-price" });
        assert_eq!(export(filtered).await.data()["csv"], skus(&mut (248..250).rev()));
        assert_eq!(export(json!({ "search": "s-007" })).await.data()["csv"], skus(&mut (7..8)));
        assert_eq!(export(json!({ "filters": [{ "field": "sku", "value": "none" }] })).await.data(), json!({ "csv": "sku\r\n", "rows": 0, "next": null }));
        export(json!({ "fields": ["nothing"] })).await.expect_error(400, "invalid_request");
        export(json!({ "delimiter": "\"" })).await.expect_error(400, "invalid_request");
        export(json!({ "delimiter": ",," })).await.expect_error(400, "validation_failed");
        let unknown = call(&admin, "export", json!({ "object": "nothing" })).await;
        assert_eq!(unknown.status, 404, "{}", unknown.text);

        // If the rows do not fit into one response, they come in several responses, and each row comes once.
        let long = "\"".repeat(10_000);
        let records: Vec<Value> = (0..250).map(|number| json!({ "sku": format!("l-{number:03}"), "name": long })).collect();
        assert_eq!(admin.post("/api/v1/data/product/bulk", json!({ "data": records })).await.status, 201);
        let (mut found, mut offset, mut calls) = (Vec::new(), json!(0), 0);
        while !offset.is_null() {
            let more = json!({ "fields": ["sku", "name"], "filters": [{ "field": "sku", "operator": "lt", "value": "m" }], "offset": offset });
            let answer = export(more).await;
            assert!(answer.text.len() < 4_300_000, "{}", answer.text.len());
            let page = answer.data();
            found.extend(page["csv"].as_str().unwrap().split("\r\n").filter(|line| line.starts_with("l-")).map(|line| line[..5].to_owned()));
            offset = page["next"].clone();
            calls += 1;
        }
        let expected: Vec<String> = (0..250).map(|number| format!("l-{number:03}")).collect();
        assert_eq!(found, expected);
        assert!(calls > 2, "{calls}");
    }

    async fn an_import_takes_all_rows_or_none(server: Server) {
        let admin = ready(&server).await;
        let count = async || records(&admin, "product").await.len();
        for (csv, status, code, part) in [
            ("sku,name\na,A\n\nb,\n", 400, "invalid_request", "Line 4: "),
            ("sku,name,price\na,\"two\nlines\",1\nb,B,-1\n", 400, "invalid_request", "Line 4: "),
            ("sku,name,price\na,A,1\nb,B,cheap\n", 400, "invalid_request", "Line 3: "),
            ("sku,name\na,A\nb,B\na,C\n", 409, "conflict", "Line 4: "),
            ("sku,name\na,A,x\nb\nc,C\n", 400, "invalid_request", "Line 3: "),
            ("sku,colour,name\na,red,A\n", 400, "invalid_request", "colour"),
            ("sku,sku\na,b\n", 400, "invalid_request", "`sku`"),
            ("sku;name\na;A\n", 400, "invalid_request", "sku;name"),
            ("sku,name\na,\"A\n", 400, "invalid_request", "quote"),
        ] {
            let message = refused(&import(&admin, csv, json!({})).await, status, code);
            assert!(message.contains(part), "{csv:?}: {message}");
            assert_eq!(count().await, 0, "{csv:?}");
        }
        assert_eq!(import(&admin, "", json!({})).await.data(), done(0, 0));
        assert_eq!(import(&admin, "sku,name\n", json!({})).await.data(), done(0, 0));

        // One row more than allowed, and exactly as many as allowed.
        let rows = |count: usize| (0..count).map(|number| format!("r-{number},R\n")).collect::<String>();
        let message = refused(&import(&admin, &format!("sku,name\n{}", rows(1001)), json!({})).await, 400, "invalid_request");
        assert!(message.contains("1001 rows") && message.contains("1000 at most"), "{message}");
        configure(&admin, BLOCK, json!({ "rowsMax": 2000 })).await;
        let message = refused(&import(&admin, &format!("sku,name\n{}", rows(1001)), json!({})).await, 400, "invalid_request");
        assert!(message.contains("1000 items at most"), "{message}");
        assert_eq!(count().await, 0);
        assert_eq!(import(&admin, &format!("sku,name\n{}", rows(1000)), json!({})).await.data(), done(1000, 0));
    }

    async fn columns_are_named_left_out_and_read_as_they_should(server: Server) {
        let admin = ready(&server).await;
        let mapping = json!({ "Artikel": "sku", "Bezeichnung": "name", "Bemerkung": "" });
        let csv = "\u{feff}Artikel;Bezeichnung;Bemerkung;sold_out\r\na-1;\"Tisch; groß\";nicht\u{e4};true\r\na-2;Stuhl;;\r\n";
        let more = json!({ "delimiter": ";", "mapping": mapping, "emptyCells": "omit" });
        assert_eq!(import(&admin, csv, more).await.data(), done(2, 0));
        assert_eq!(import(&admin, "x,a-3,Bank\n", json!({ "header": false, "mapping": { "2": "sku", "3": "name" } })).await.data(), done(1, 0));
        assert_eq!(import(&admin, "sku,name\n,\n", json!({ "emptyCells": "text" })).await.data(), done(1, 0));
        assert_eq!(import(&admin, "sku,name,sold_out\na-5,x,\n", json!({})).await.data(), done(1, 0));
        let found = records(&admin, "product").await;
        let shown: Vec<Value> = found.iter().map(|record| json!([record["sku"], record["name"], record["sold_out"]])).collect();
        let expected = [
            json!(["a-1", "Tisch; groß", true]), json!(["a-2", "Stuhl", false]), json!(["a-3", "Bank", false]), json!(["", "", false]), json!(["a-5", "x", null]),
        ];
        assert_eq!(shown, expected);
        let message = refused(&import(&admin, "a,b\n1,2\n", json!({ "mapping": { "c": "sku" } })).await, 400, "invalid_request");
        assert!(message.contains("\"c\"") && message.contains("a, b"), "{message}");
        import(&admin, "a-9,x\n", json!({ "header": false })).await.expect_error(400, "invalid_request");
    }

    async fn known_records_are_updated_and_a_dry_run_tells_what_would_be(server: Server) {
        let admin = ready(&server).await;
        assert_eq!(import(&admin, "sku,name,price\na,A,1\nb,B,2\n", json!({})).await.data(), done(2, 0));
        let csv = "sku,name,price\nb,Better,3\nc,C,4\n,unnamed,5\n";
        let by_sku = |more: Value| {
            let mut input = json!({ "onConflict": ["sku"] });
            for (key, value) in more.as_object().unwrap() {
                input[key] = value.clone();
            }
            input
        };
        assert_eq!(import(&admin, csv, by_sku(json!({ "dryRun": true }))).await.data(), done(2, 1));
        assert_eq!(records(&admin, "product").await.len(), 2);
        assert_eq!(import(&admin, csv, by_sku(json!({}))).await.data(), done(2, 1));
        let found = records(&admin, "product").await;
        let shown: Vec<Value> = found.iter().map(|record| json!([record["sku"], record["name"], record["price"]])).collect();
        assert_eq!(shown, [json!(["a", "A", 1]), json!(["b", "Better", 3]), json!(["c", "C", 4]), json!([null, "unnamed", 5])]);

        // Either all rows are imported or none, even if some of them are updates.
        let message = refused(&import(&admin, "sku,name,price\na,AA,9\nd,D,-1\n", by_sku(json!({}))).await, 400, "invalid_request");
        assert!(message.starts_with("Line 3: ") && message.ends_with("Nothing was imported."), "{message}");
        let message = refused(&import(&admin, "sku,name\na,AA\na,AB\n", by_sku(json!({}))).await, 400, "invalid_request");
        assert!(message.contains("Line 3: Line 2 is of the same record."), "{message}");
        assert_eq!(records(&admin, "product").await[0]["name"], "A");
        let told = import(&admin, "sku,name\na\na,AA\nz,Z\n", by_sku(json!({ "dryRun": true }))).await.data();
        assert_eq!((&told["inserted"], &told["updated"], &told["failed"][0]["line"]), (&json!(1), &json!(1), &json!(2)));
        import(&admin, "sku,colour\na,red\n", json!({ "dryRun": true })).await.expect_error(400, "invalid_request");
        import(&admin, "name\nx\n", by_sku(json!({}))).await.expect_error(400, "invalid_request");
        // A field that is not unique may match several records.
        assert_eq!(import(&admin, "sku,name\ne,A\n", json!({})).await.data(), done(1, 0));
        let message = refused(&import(&admin, "name,price\nA,1\n", json!({ "onConflict": ["name"] })).await, 400, "invalid_request");
        assert!(message.contains("More than one record"), "{message}");
        let nobody = "id,name\n01a1fd35-a2b2-7324-8e3c-28e87a2e40f9,x\n";
        let message = refused(&import(&admin, nobody, json!({ "onConflict": ["id"] })).await, 400, "invalid_request");
        assert!(message.contains("Line 2: There is no record with the id"), "{message}");

        // Each row by itself: rows that fail are reported, and the others are kept.
        let partial = import(&admin, "sku,name,price\nf,F,1\na,AAA,2\ng,G,cheap\nh\ni,I,3\n", by_sku(json!({ "partial": true }))).await.data();
        assert_eq!((&partial["inserted"], &partial["updated"]), (&json!(2), &json!(1)));
        let lines: Vec<&Value> = partial["failed"].as_array().unwrap().iter().map(|failure| &failure["line"]).collect();
        assert_eq!(lines, [&json!(4), &json!(5)]);
        assert!(partial["failed"][0]["message"].as_str().unwrap().contains("`price`"), "{partial}");
    }

    async fn nobody_gets_more_than_they_have(server: Server) {
        let admin = ready(&server).await;
        assert_eq!(import(&admin, "sku,name\na,A\n", json!({})).await.data(), done(1, 0));
        let all = json!({ "resource": "csv:use", "actions": ["create", "read"] });
        let export = json!({ "object": "product", "fields": ["sku"] });

        // Eve has a right only to the block.
        let eve = user_with(&server, &admin, "eve", json!([all])).await;
        import(&eve, "sku,name\nb,B\n", json!({})).await.expect_error(403, "forbidden");
        import(&eve, "sku,name\nb,B\n", json!({ "partial": true })).await.expect_error(403, "forbidden");
        import(&eve, "sku,name\nb,B\n", json!({ "dryRun": true })).await.expect_error(403, "forbidden");
        call(&eve, "export", export.clone()).await.expect_error(403, "forbidden");
        // Joe has a right only to the records.
        let joe = user_with(&server, &admin, "joe", json!([{ "resource": "product", "actions": ["manage"] }])).await;
        import(&joe, "sku,name\nb,B\n", json!({})).await.expect_error(403, "forbidden");
        call(&joe, "export", export.clone()).await.expect_error(403, "forbidden");
        // Ann may read the records, but not change them.
        let ann = user_with(&server, &admin, "ann", json!([all, { "resource": "product", "actions": ["read"] }])).await;
        import(&ann, "sku,name\nb,B\n", json!({})).await.expect_error(403, "forbidden");
        import(&ann, "sku,name\na,B\n", json!({ "onConflict": ["sku"] })).await.expect_error(403, "forbidden");
        assert_eq!(call(&ann, "export", export.clone()).await.data()["rows"], 1);
        // With a right to own rows, Ben neither sees nor changes the rows of others, and the rows that he makes belong to him.
        let own = json!({ "resource": "product", "actions": ["manage"], "rowPolicy": "own" });
        let ben = user_with(&server, &admin, "ben", json!([all, own])).await;
        assert_eq!(import(&ben, "sku,name\nb,B\n", json!({})).await.data(), done(1, 0));
        assert_eq!(call(&ben, "export", export.clone()).await.data()["csv"], "sku\r\nb\r\n");
        import(&ben, "sku,name\na,taken\n", json!({ "onConflict": ["sku"] })).await.expect_error(409, "conflict");
        assert_eq!(import(&ben, "sku,name\nb,BB\n", json!({ "onConflict": ["sku"] })).await.data(), done(0, 1));
        // Cat may read all rows, but change only her own. The import reports the rows of other users.
        let reads = json!({ "resource": "product", "actions": ["read"] });
        let cat = user_with(&server, &admin, "cat", json!([all, own, reads])).await;
        let told = import(&cat, "sku,name\na,taken\nc,C\n", json!({ "onConflict": ["sku"] })).await.data();
        assert_eq!((&told["inserted"], &told["updated"], &told["failed"][0]["line"]), (&json!(1), &json!(0), &json!(2)));
        let found = records(&admin, "product").await;
        assert_eq!(found.iter().map(|record| record["name"].as_str().unwrap()).collect::<Vec<_>>(), ["A", "BB", "C"]);
        let id = ben.get("/api/v1/me").await.json()["userId"].clone();
        assert_eq!(found[1]["created_by"], id);
        // The service's own tables are not objects.
        for name in ["svc_users", "api_keys"] {
            let answer = call(&admin, "export", json!({ "object": name })).await;
            assert_eq!(answer.status, 404, "{}", answer.text);
        }
        // Callers who may read users can export them like records. Nobody can import users.
        let users = call(&admin, "export", json!({ "object": "users" })).await.data();
        assert!(users["csv"].as_str().unwrap().starts_with("id,name,image,email\r\n"), "{users}");
        call(&cat, "export", json!({ "object": "users" })).await.expect_error(403, "forbidden");
        let made = call(&admin, "import", json!({ "object": "users", "csv": "name\nx\n" })).await;
        assert!(made.status >= 400 || made.data()["inserted"] == 0, "{}", made.text);
        server.call("POST", "/api/v1/blocks/csv/actions/export", Some(export)).await.expect_error(401, "unauthorized");
    }
}

on_both_engines! {
    #[ignore = "long: the largest file there may be"]
    async fn a_file_as_long_as_may_be_is_within_the_limits_of_a_call(engine: Engine) {
        let server = ServerBuilder::new(engine).env("SVC_MAX_BULK", "4000").start().await;
        let admin = ready(&server).await;
        configure(&admin, BLOCK, json!({ "rowsMax": 4000 })).await;
        let rows = |price: u32| (0..4000).map(|number| format!("r-{number},R,{price}\n")).collect::<String>();
        assert_eq!(import(&admin, &format!("sku,name,price\n{}", rows(1)), json!({})).await.data(), done(4000, 0));
        let changed = import(&admin, &format!("sku,name,price\n{}", rows(2)), json!({ "onConflict": ["sku"], "partial": true })).await;
        assert_eq!(changed.data(), done(0, 4000));
        let exported = call(&admin, "export", json!({ "object": "product", "fields": ["price"] })).await.data();
        assert_eq!(exported["csv"], format!("price\r\n{}", "2\r\n".repeat(4000)));
    }
}

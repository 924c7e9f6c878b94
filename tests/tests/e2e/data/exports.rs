//! Exports: the rows of a list as a file. All rows are from one moment, and a client can recognize an incomplete file.

use std::time::{Duration, Instant};

use blockbase_tests::{Admin, Engine, Server, ServerBuilder, on_both_engines, until};
use futures_util::StreamExt;
use serde_json::{Value, json};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

use crate::data::reads::kilobytes;

async fn export(who: &Admin<'_>, query: &str) -> String {
    export_of(who, "item", query).await
}

async fn export_of(who: &Admin<'_>, object: &str, query: &str) -> String {
    let answer = who.get(&format!("/api/v1/data/{object}/export?{query}")).await;
    assert_eq!(answer.status, 200, "{}", answer.text);
    answer.text
}

/// The raw bytes of a list's records, which are between `"data":[` and `],"pagination"`.
async fn listed(who: &Admin<'_>, query: &str) -> String {
    let text = who.get(&format!("/api/v1/data/item?{query}")).await.text;
    text.strip_prefix("{\"data\":[").unwrap().split("],\"pagination\"").next().unwrap().to_owned()
}

/// Defines an object with a text, a number, and further fields that the tests need.
async fn define(admin: &Admin<'_>) {
    let fields = json!([
        { "name": "title", "type": "text" },
        { "name": "mail", "type": "email" },
        { "name": "state", "type": "enum", "options": ["-", "open"] },
        { "name": "kinds", "type": "multi_enum", "options": ["a", "b,c"] },
        { "name": "extra", "type": "json" },
        { "name": "price", "type": "currency" },
        { "name": "done", "type": "boolean" },
        { "name": "due", "type": "datetime" },
        { "name": "number", "type": "integer" },
        { "name": "format", "type": "text" },
    ]);
    admin.define("item", fields).await;
}

async fn fill(admin: &Admin<'_>, count: usize, text: &str) {
    for begin in (0..count).step_by(1000) {
        let records: Vec<Value> = (begin..count.min(begin + 1000))
            .map(|number| json!({ "title": format!("{text} {number:07}"), "number": number }))
            .collect();
        let made = admin.post("/api/v1/data/item/bulk", json!({ "data": records })).await;
        assert_eq!(made.status, 201, "{}", made.text);
    }
}

/// Doubles the records of an object in the database itself, `times` times.
async fn double(server: &Server, times: usize) {
    let columns =
        "title, mail, state, kinds, extra, price, done, due, number, format, created_at, updated_at, created_by, updated_by";
    let columns: String = columns.split(", ").map(|name| format!(", \"{name}\"")).collect();
    let id = match server.engine() {
        Engine::Sqlite => {
            "lower(hex(randomblob(4)) || '-' || hex(randomblob(2)) || '-7' || substr(hex(randomblob(2)), 2) || '-a' || substr(hex(randomblob(2)), 2) || '-' || hex(randomblob(6)))"
        }
        Engine::Postgres => "gen_random_uuid()",
    };
    for _ in 0..times {
        server.sql(&format!("INSERT INTO item (\"id\"{columns}) SELECT {id}{columns} FROM item")).await;
    }
}

/// Sends a request for an export, and reads only the head of the response.
async fn open(who: &Admin<'_>, query: &str) -> (TcpStream, String) {
    let address = who.server.base.strip_prefix("http://").unwrap();
    let mut connection = TcpStream::connect(address).await.unwrap();
    let request = format!(
        "GET /api/v1/data/item/export?{query} HTTP/1.1\r\nhost: {address}\r\nauthorization: Bearer {}\r\n\r\n",
        who.token
    );
    connection.write_all(request.as_bytes()).await.unwrap();
    let mut head = Vec::new();
    while !head.ends_with(b"\r\n\r\n") {
        head.push(connection.read_u8().await.unwrap());
    }
    (connection, String::from_utf8(head).unwrap())
}

/// The rest of a response in chunks, and whether it is complete.
async fn rest(mut connection: TcpStream) -> (Vec<u8>, bool) {
    let mut raw = Vec::new();
    let _ = tokio::time::timeout(Duration::from_secs(60), async {
        let mut buffer = vec![0; 1 << 20];
        while !raw.ends_with(b"\r\n0\r\n\r\n") {
            match connection.read(&mut buffer).await {
                Ok(0) | Err(_) => return,
                Ok(read) => raw.extend_from_slice(&buffer[..read]),
            }
        }
    })
    .await;
    let is_whole = raw.ends_with(b"\r\n0\r\n\r\n");
    let (mut body, mut left) = (Vec::new(), raw.as_slice());
    while let Some(end) = left.windows(2).position(|pair| pair == b"\r\n") {
        let length = usize::from_str_radix(std::str::from_utf8(&left[..end]).unwrap(), 16).unwrap();
        let begin = end + 2;
        body.extend_from_slice(&left[begin..left.len().min(begin + length)]);
        left = &left[left.len().min(begin + length + 2)..];
    }
    (body, is_whole)
}

on_both_engines! {
    async fn a_file_has_the_rows_of_the_list(server: Server) {
        let admin = server.admin().await;
        define(&admin).await;
        let records = json!([
            { "title": "=1+1", "mail": "+a@example.com", "state": "-", "kinds": ["a", "b,c"], "extra": { "a": "x" }, "price": -1.5, "done": true,
              "due": "2026-01-02T03:04:05+01:00", "number": 1 },
            { "title": "", "extra": "\"-text\"", "number": 2 },
            { "title": null, "number": 3, "format": "f" },
            { "title": "say \"hi\",\r\nÜ", "extra": -5, "number": -4 },
            { "title": "'=quoted", "number": 5 },
            { "title": "@a\tb", "number": 6 },
        ]);
        assert_eq!(admin.post("/api/v1/data/item/bulk", json!({ "data": records })).await.status, 201);
        let answer = admin.get("/api/v1/data/item/export?format=csv&select=title,mail,state,kinds,extra,price,done,due,number&sort=number").await;
        assert_eq!(answer.headers["content-type"], "text/csv; charset=utf-8");
        let disposition = answer.headers["content-disposition"].to_str().unwrap();
        assert!(disposition.starts_with("attachment; filename=\"item-20") && disposition.ends_with("Z.csv\""), "{disposition}");
        assert_eq!(answer.headers["cache-control"], "no-store");
        assert_eq!(answer.headers["x-content-type-options"], "nosniff");
        // Each id is different, so only their form is checked.
        let without_ids: Vec<String> = answer.text.split("\r\n0").enumerate().map(|(place, row)| {
            if place == 0 { row.to_owned() } else { row.split_once(',').unwrap().1.to_owned() }
        }).collect();
        assert_eq!(without_ids, [
            "id,title,mail,state,kinds,extra,price,done,due,number",
            "\"say \"\"hi\"\",\r\nÜ\",,,,'-5,,,,-4",
            r#"'=1+1,'+a@example.com,'-,"[""a"",""b,c""]","{""a"":""x""}",-1.5,true,2026-01-02T02:04:05.000Z,1"#,
            r#""",,,,"""-text""",,,,2"#,
            ",,,,,,,,3",
            "''=quoted,,,,,,,,5",
            "'@a\tb,,,,,,,,6\r\n",
        ]);
        let lines = admin.get("/api/v1/data/item/export?format=ndjson&sort=-number").await;
        assert_eq!(lines.headers["content-type"], "application/x-ndjson");
        assert!(lines.headers["content-disposition"].to_str().unwrap().ends_with(".ndjson\""));
        let as_list = lines.text.trim_end().replace('\n', ",");
        assert_eq!(as_list, listed(&admin, "sort=-number").await);
        assert!(lines.text.ends_with("}\n"));

        // The parameters of the list, without those of paging.
        for query in ["", "number[gt]=2", "search=hi", "sort=title,-number", "title[is_null]=", "select=id", "select=number,title&number[in]=1,2", "q=nothing"] {
            let exported = export(&admin, &format!("format=ndjson&{query}")).await;
            assert_eq!(exported.trim_end().replace('\n', ","), listed(&admin, query).await, "{query}");
        }
        let numbers = async |query: &str| -> Vec<i64> {
            let text = export(&admin, &format!("format=ndjson&sort=number&select=number&{query}")).await;
            text.lines().map(|line| serde_json::from_str::<Value>(line).unwrap()["number"].as_i64().unwrap()).collect()
        };
        assert_eq!(numbers("limit=2").await, [-4, 1]);
        assert_eq!(numbers("offset=4").await, [5, 6]);
        assert_eq!(numbers("limit=2&offset=1").await, [1, 2]);
        assert_eq!(numbers("limit=1000000").await.len(), 6);
        assert_eq!(numbers("offset=100").await, [0; 0]);
        // If a field has the name of a parameter, its filter needs an operator.
        assert_eq!(numbers("format[eq]=f").await, [3]);
        assert_eq!(export(&admin, "format=csv&select=id&title=none").await, "id\r\n");
        assert_eq!(export(&admin, "format=ndjson&title=none").await, "");

        let head = server.send(admin.request("HEAD", "/api/v1/data/item/export?format=csv")).await;
        assert_eq!((head.status, head.text.as_str()), (200, ""));
        assert_eq!(head.headers["content-type"], "text/csv; charset=utf-8");
        assert_eq!(server.send(admin.request("HEAD", "/api/v1/data/item/export?format=xls")).await.status, 400);
    }

    async fn what_is_no_export_is_refused(server: Server) {
        let admin = server.admin().await;
        define(&admin).await;
        for (query, code) in [
            ("", "invalid_request"),
            ("format=xlsx", "invalid_request"),
            ("format=", "invalid_request"),
            ("format=CSV", "invalid_request"),
            ("format=csv&page=1", "invalid_request"),
            ("format=csv&pageSize=10", "invalid_request"),
            ("format=csv&expand=a", "invalid_request"),
            ("format=csv&limit=0", "invalid_request"),
            ("format=csv&limit=-1", "invalid_request"),
            ("format=csv&limit=1e3", "invalid_request"),
            ("format=csv&limit=99999999999999999999", "invalid_request"),
            ("format=csv&offset=-1", "invalid_request"),
            ("format=csv&offset=1125899906842625", "invalid_request"),
            ("format=csv&count=some", "invalid_request"),
            ("format=csv&number[near]=1", "invalid_request"),
            ("format=csv&search=%00", "invalid_request"),
            ("format=csv&%ff=1", "invalid_request"),
            ("format=csv&colour=1", "unknown_field"),
            ("format=csv&sort=colour", "unknown_field"),
            ("format=csv&select=colour", "unknown_field"),
            ("format=csv&number=one", "invalid_value"),
            ("format=csv&title=%00", "invalid_value"),
        ] {
            admin.get(&format!("/api/v1/data/item/export?{query}")).await.expect_error(400, code);
        }
        admin.get("/api/v1/data/nothing/export?format=csv").await.expect_error(404, "not_found");
        assert_eq!(server.send(admin.request("POST", "/api/v1/data/item/export?format=csv")).await.status, 405);
        // A limit can be any number of rows.
        assert_eq!(export(&admin, "format=ndjson&limit=18446744073709551615").await, "");
    }

    async fn an_export_has_what_its_caller_may_read(server: Server) {
        let admin = server.admin().await;
        define(&admin).await;
        admin.make("item", json!({ "title": "of the admin" })).await;
        server.call("GET", "/api/v1/data/item/export?format=csv", None).await.expect_error(401, "unauthorized");
        let member = server.with_token(server.sign_up("member").await);
        member.get("/api/v1/data/item/export?format=csv").await.expect_error(403, "forbidden");
        // The permission is checked first, before the parameters and before the object's existence.
        member.get("/api/v1/data/item/export").await.expect_error(403, "forbidden");
        member.get("/api/v1/data/nothing/export?format=csv").await.expect_error(403, "forbidden");
        let permissions = json!([{ "resource": "item", "actions": ["create", "read"], "rowPolicy": "own" }]);
        assert_eq!(admin.post("/api/v1/roles", json!({ "name": "own", "permissions": permissions })).await.status, 201);
        let user = member.get("/api/v1/me").await.json()["userId"].as_str().unwrap().to_owned();
        assert_eq!(admin.post(&format!("/api/v1/users/{user}/roles"), json!({ "roleId": "own" })).await.status, 200);
        member.make("item", json!({ "title": "of the member" })).await;
        assert_eq!(export(&admin, "format=ndjson").await.lines().count(), 2);
        let own = export(&member, "format=ndjson").await;
        assert!(own.lines().count() == 1 && own.contains("of the member"), "{own}");
        assert_eq!(export(&member, "format=ndjson&search=admin").await, "");
        assert_eq!(export(&member, "format=ndjson&title=of+the+admin").await, "");
    }

    async fn related_records_are_written_by_a_unique_field(server: Server) {
        let admin = server.admin().await;
        let fields = json!([
            { "name": "name", "type": "text", "isUnique": true },
            { "name": "number", "type": "integer", "isUnique": true },
            { "name": "share", "type": "decimal", "scale": 2, "isUnique": true },
            { "name": "city", "type": "text" },
        ]);
        admin.define("company", fields).await;
        let fields = json!([{ "name": "title", "type": "text", "isUnique": true }, { "name": "names", "type": "text" }]);
        admin.define("deal", fields).await;
        for (name, kind, source, target) in [
            ("company", "many_to_one", "deal", "company"),
            ("parent", "many_to_one", "deal", "deal"),
            ("watcher", "many_to_many", "deal", "company"),
        ] {
            let relation = json!({ "name": name, "kind": kind, "source": source, "target": target });
            let made = admin.post("/api/v1/relationships", relation).await;
            assert_eq!(made.status, 201, "{}", made.text);
        }
        let acme = admin.make("company", json!({ "name": "=Acme, \"Ltd\"", "number": 7, "share": 0.5 })).await;
        let nameless = admin.make("company", json!({ "city": "Bonn" })).await;
        let first = admin.make("deal", json!({ "title": "a", "company_id": acme })).await;
        let second = admin.make("deal", json!({ "title": "b", "company_id": nameless, "parent_id": first })).await;
        let third = admin.make("deal", json!({ "title": "c", "names": "x" })).await;
        let of = async |who: &Admin<'_>, query: &str| {
            export_of(who, "deal", &format!("sort=title&select=title,company_id,parent_id&{query}")).await
        };
        // If the field of the related record has no value, the export writes the id.
        assert_eq!(
            of(&admin, "format=csv&names=company.name,parent.title").await,
            format!(
                "id,title,company.name,parent.title\r\n{first},a,\"'=Acme, \"\"Ltd\"\"\",\r\n{second},b,{nameless},a\r\n{third},c,,\r\n"
            )
        );
        assert_eq!(
            of(&admin, "format=ndjson&names=company.number").await,
            format!(
                "{{\"id\":\"{first}\",\"title\":\"a\",\"company.number\":7,\"parent_id\":null}}\n\
                 {{\"id\":\"{second}\",\"title\":\"b\",\"company.number\":\"{nameless}\",\"parent_id\":\"{first}\"}}\n\
                 {{\"id\":\"{third}\",\"title\":\"c\",\"company.number\":null,\"parent_id\":null}}\n"
            )
        );
        assert!(of(&admin, "format=csv&names=company.share&limit=1").await.ends_with(",a,0.5,\r\n"));
        // The list has filters, a search and a sort order. The related object has columns with the same names.
        assert!(of(&admin, "format=csv&names=parent.title&search=b&title[in]=b").await.ends_with(&format!("{second},b,{nameless},a\r\n")));
        // A relation can show several names. It shows them even if `select` leaves out its column.
        let several = export_of(&admin, "deal", "format=csv&select=title&sort=title&names=company.name,company.number,company.name&limit=1").await;
        assert_eq!(several, format!("id,title,company.name,company.number\r\n{first},a,\"'=Acme, \"\"Ltd\"\"\",7\r\n"));
        // If a field has the name of the parameter, its filter needs an operator.
        assert!(of(&admin, "format=csv&names[eq]=x").await.ends_with(&format!("\r\n{third},c,,\r\n")));
        for (query, code) in [
            ("names=company", "invalid_request"),
            ("names=.name", "invalid_request"),
            ("names=company_id.name", "invalid_request"),
            ("names=watcher.name", "invalid_request"),
            ("names=deal_by_parent.title", "invalid_request"),
            ("names=company.city", "invalid_request"),
            ("names=company.id", "invalid_request"),
            ("names=company.colour", "unknown_field"),
            ("names=company.name.first", "unknown_field"),
        ] {
            admin.get(&format!("/api/v1/data/deal/export?format=csv&{query}")).await.expect_error(400, code);
        }

        let many = vec!["company.name"; 51].join(",");
        admin.get(&format!("/api/v1/data/deal/export?format=csv&names={many}")).await.expect_error(400, "invalid_request");

        // If the caller may not see a related record, the export writes its id. If they may not read the object, it gives no
        // names.
        let member = server.with_token(server.sign_up("member").await);
        let user = member.get("/api/v1/me").await.json()["userId"].as_str().unwrap().to_owned();
        let mut grants = vec![json!({ "resource": "deal", "actions": ["read"] })];
        let path = format!("/api/v1/users/{user}/roles");
        let role = admin.post("/api/v1/roles", json!({ "name": "deals", "permissions": grants })).await;
        assert_eq!(role.status, 201, "{}", role.text);
        assert_eq!(admin.post(&path, json!({ "roleId": "deals" })).await.status, 200);
        let named = "/api/v1/data/deal/export?format=csv&names=company.name";
        // The message does not name an object that the caller may not know of.
        let refused = member.get(named).await.expect_error(403, "forbidden");
        assert_eq!(refused["message"], "You may not read the records of `company` in `names`.");
        assert_eq!(server.send(member.request("HEAD", named)).await.status, 403);
        grants.push(json!({ "resource": "company", "actions": ["create", "read"], "rowPolicy": "own" }));
        assert_eq!(admin.patch("/api/v1/roles/deals", json!({ "permissions": grants })).await.status, 200);
        let own = member.make("company", json!({ "name": "Own" })).await;
        admin.make("deal", json!({ "title": "d", "company_id": own })).await;
        let seen = of(&member, "format=csv&names=company.name").await;
        let companies: Vec<&str> = seen.lines().skip(1).map(|line| line.split(',').nth(2).unwrap()).collect();
        assert_eq!(companies, [acme.as_str(), nameless.as_str(), "", "Own"]);
    }

    async fn all_rows_are_of_one_moment(server: Server) {
        let admin = server.admin().await;
        define(&admin).await;
        fill(&admin, 6000, &"long text ".repeat(40)).await;
        let request = admin.request("GET", "/api/v1/data/item/export?format=ndjson&sort=number");
        let response = request.send().await.unwrap();
        assert_eq!(response.status(), 200);
        let mut chunks = response.bytes_stream();
        let mut body = chunks.next().await.unwrap().unwrap().to_vec();
        // During the export, half of the records are deleted, and the others are changed.
        let writes = async {
            let ids = server.sql("SELECT CAST(id AS TEXT) FROM item WHERE number >= 5000").await;
            let ids: Vec<&String> = ids.iter().map(|row| &row[0]).collect();
            let gone = admin.delete_with("/api/v1/data/item/bulk", json!({ "ids": ids })).await;
            assert_eq!(gone.json()["count"], 1000, "{}", gone.text);
            admin.make("item", json!({ "title": "new", "number": 3 })).await;
            // It is also possible to define a new object, because the export keeps its own schema.
            admin.define("other", json!([{ "name": "a", "type": "text" }])).await;
        };
        writes.await;
        while let Some(chunk) = chunks.next().await {
            body.extend_from_slice(&chunk.unwrap());
        }
        let numbers: Vec<i64> = String::from_utf8(body)
            .unwrap()
            .lines()
            .map(|line| serde_json::from_str::<Value>(line).unwrap()["number"].as_i64().unwrap())
            .collect();
        assert_eq!(numbers, (0..6000).collect::<Vec<i64>>());
        assert_eq!(export(&admin, "format=ndjson&select=id").await.lines().count(), 5001);
    }

    async fn a_caller_has_two_at_a_time_until_their_clients_leave(server: Server) {
        let admin = server.admin().await;
        define(&admin).await;
        fill(&admin, 4000, &"x".repeat(1000)).await;
        double(&server, 3).await;
        let other = server.with_token(server.sign_up("other").await);
        let path = "/api/v1/data/item/export?format=csv&limit=1";
        let first = open(&admin, "format=ndjson").await;
        assert!(first.1.starts_with("HTTP/1.1 200"), "{}", first.1);
        // The second export waits a few seconds until the first has read its rows. If that takes too long, it is refused.
        let mut second = open(&admin, "format=csv").await;
        until("the second has its turn", async || {
            if second.1.starts_with("HTTP/1.1 503") {
                second = open(&admin, "format=csv").await;
            }
            second.1.starts_with("HTTP/1.1 200")
        })
        .await;
        assert!(second.1.contains("transfer-encoding: chunked"), "{}", second.1);
        let refused = admin.get(path).await;
        refused.expect_error(429, "rate_limited");
        assert!(refused.headers.contains_key("retry-after"));
        // Lists work. A search gets its turn when the exports have read their rows, even if their clients do not read.
        assert_eq!(admin.get("/api/v1/data/item?limit=1").await.status, 200);
        until("a search has its turn", async || admin.get("/api/v1/data/item?search=0000001").await.status == 200).await;
        other.get(path).await.expect_error(403, "forbidden");
        drop(first);
        until("a place is free again", async || admin.get(path).await.status == 200).await;
        let (body, is_whole) = rest(second.0).await;
        assert!(is_whole);
        assert_eq!(body.iter().filter(|byte| **byte == b'\n').count(), 32_001);
        until("both places are free", async || {
            let (one, two) = tokio::join!(admin.get(path), admin.get(path));
            (one.status, two.status) == (200, 200)
        }).await;
    }

    async fn a_client_that_does_not_read_holds_no_snapshot(server: Server) {
        let admin = server.admin().await;
        define(&admin).await;
        fill(&admin, 4000, &"y".repeat(1000)).await;
        double(&server, 3).await;
        let (connection, head) = open(&admin, "format=ndjson").await;
        assert!(head.starts_with("HTTP/1.1 200"), "{head}");
        // 40 MB are waiting for a client that does not read.
        until("the database has nothing under way", async || match server.engine() {
            Engine::Sqlite => {
                admin.make("item", json!({ "title": "new" })).await;
                server.sql("PRAGMA wal_checkpoint(TRUNCATE)").await[0][0] == "0"
            }
            Engine::Postgres => {
                let busy = "SELECT count(*) FROM pg_stat_activity WHERE datname = current_database() \
                            AND pid <> pg_backend_pid() AND state <> 'idle' AND query LIKE '%FROM \"item\"%'";
                server.sql(busy).await[0][0] == "0"
            }
        }).await;
        // The file has no name in the directory, so nothing has to be removed later.
        let names = std::fs::read_dir(server.directory().join("svc-data")).unwrap();
        let names: Vec<String> = names.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
        assert!(!names.iter().any(|name| name.contains("export")), "{names:?}");
        let (body, is_whole) = rest(connection).await;
        assert!(is_whole);
        assert_eq!(body.iter().filter(|byte| **byte == b'\n').count(), 32_000);
        assert!(body.starts_with(b"{\"id\":") && body.ends_with(b"}\n"));
    }

    #[ignore = "long: half a minute of waiting"]
    async fn a_client_that_stalls_is_cut_off(server: Server) {
        let admin = server.admin().await;
        define(&admin).await;
        fill(&admin, 4000, &"z".repeat(1000)).await;
        double(&server, 3).await;
        let (connection, _) = open(&admin, "format=ndjson").await;
        let (_other, _) = open(&admin, "format=ndjson").await;
        let begun = Instant::now();
        until("both places are free", async || {
            let path = "/api/v1/data/item/export?format=csv&limit=1";
            let (one, two) = tokio::join!(admin.get(path), admin.get(path));
            (one.status, two.status) == (200, 200)
        }).await;
        assert!(begun.elapsed() > Duration::from_secs(25), "{:?}", begun.elapsed());
        let (body, is_whole) = rest(connection).await;
        assert!(!is_whole, "{} bytes", body.len());
        assert!(body.len() < 30_000_000);
    }
}

on_both_engines! {
    async fn a_failure_in_the_middle_does_not_look_like_an_end(engine: Engine) {
        let server = ServerBuilder::new(engine).env("SVC_MAX_ANSWER_BYTES", "200000").start().await;
        let admin = server.admin().await;
        define(&admin).await;
        fill(&admin, 3000, &"m".repeat(500)).await;
        let large = json!({ "title": "n".repeat(300_000), "number": 1_000_000 });
        assert_eq!(admin.post("/api/v1/data/item", large).await.status, 201);
        // All records together exceed the limit of a response. Each single record is below it.
        let (connection, head) = open(&admin, "format=ndjson&sort=number").await;
        assert!(head.starts_with("HTTP/1.1 200"), "{head}");
        let (body, is_whole) = rest(connection).await;
        assert!(!is_whole, "{} bytes look whole", body.len());
        let request = admin.request("GET", "/api/v1/data/item/export?format=csv&sort=number").send().await;
        assert!(match request { Ok(response) => response.bytes().await.is_err(), Err(_) => true });
        // If nothing was sent yet, the response has an error status.
        admin.get("/api/v1/data/item/export?format=csv&sort=-number").await.expect_error(400, "answer_too_large");
        let text = export(&admin, "format=ndjson&sort=number&number[lt]=1000000").await;
        assert!(text.lines().count() == 3000 && text.len() > 1_000_000);
        assert_eq!(export(&admin, "format=ndjson&sort=-number&select=number").await.lines().count(), 3001);
        // All permits are available again.
        for _ in 0..5 {
            admin.get("/api/v1/data/item/export?format=csv&sort=-number").await.expect_error(400, "answer_too_large");
        }
    }

    #[ignore = "long: memory, alone"]
    async fn many_rows_take_little_memory(engine: Engine) {
        let server = ServerBuilder::new(engine).start().await;
        let admin = server.admin().await;
        define(&admin).await;
        fill(&admin, 1000, "row").await;
        double(&server, 7).await;
        // The pages of mapped files belong to the system's cache. The write below resets the peak.
        let memory = |name: &str| kilobytes(&server, name).saturating_sub(kilobytes(&server, "RssFile"));
        std::fs::write(format!("/proc/{}/clear_refs", server.process_id()), "5").unwrap();
        let before = memory("VmRSS");
        for query in ["format=ndjson", "format=csv&sort=title,-number", "format=ndjson&number[gt]=1&sort=number"] {
            let response = admin.request("GET", &format!("/api/v1/data/item/export?{query}")).send().await.unwrap();
            assert_eq!(response.status(), 200);
            let (mut chunks, mut lines, mut bytes) = (response.bytes_stream(), 0, 0);
            while let Some(chunk) = chunks.next().await {
                let chunk = chunk.unwrap();
                bytes += chunk.len();
                lines += chunk.iter().filter(|byte| **byte == b'\n').count();
            }
            assert!((127_000..=128_001).contains(&lines) && bytes > 20_000_000, "{query}: {lines} lines of {bytes} bytes");
        }
        let grown = memory("VmHWM").saturating_sub(before);
        assert!(grown < 64 * 1024, "{grown} KiB more");
    }
}

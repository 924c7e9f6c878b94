//! Both engines give the same bytes for the same requests, except ids and times.

use blockbase_tests::{Engine, ServerBuilder};

use serde_json::json;

use crate::promises::normalize::Mask;

async fn transcript(engine: Engine) -> Vec<String> {
    let server = ServerBuilder::new(engine).start().await;
    let admin = server.admin().await;
    let mut mask = Mask::default();
    let mut lines = Vec::new();
    let mut say = |answer: blockbase_tests::Answer, lines: &mut Vec<String>| {
        let masked = mask.mask(&answer.text);
        lines.push(format!("{} {masked}", answer.status));
    };
    let fields = json!([
        { "name": "name", "type": "text", "isUnique": true },
        { "name": "amount", "type": "decimal", "scale": 3, "min": -5 },
        { "name": "ratio", "type": "float" },
        { "name": "big", "type": "big_integer" },
        { "name": "tags", "type": "multi_enum", "options": ["a", "b", "É"] },
        { "name": "at", "type": "datetime" },
        { "name": "day", "type": "date" },
        { "name": "hour", "type": "time" },
        { "name": "data", "type": "json" },
        { "name": "on", "type": "boolean", "default": true },
    ]);
    say(admin.post("/api/v1/objects", json!({ "name": "thing", "fields": fields })).await, &mut lines);
    let rows = [
        json!({ "name": "straße", "amount": "1.2345", "ratio": 0.1, "big": "9007199254740993", "tags": ["É", "a"], "data": "{\"b\": 1.50, \"a\": [ ]}" }),
        json!({ "name": "ÉTÉ", "amount": -0.0005, "ratio": -0.0, "at": "2001-02-03T04:05:06.789+01:00", "hour": "23:59" }),
        json!({ "name": "été", "amount": 7, "ratio": 1e21, "day": "2001-01-31", "tags": [], "on": false }),
        json!({ "name": "\u{10FFFF}", "ratio": 123456789.125, "hour": "00:00:00.001" }),
        json!({ "name": "\u{FFFD}", "ratio": 5e-324 }),
        json!({ "name": "Z_%\\", "amount": "999999999999999.999" }),
        json!({ "name": null }),
        json!({ "name": "été" }),
        json!({ "amount": -6 }),
        json!({ "big": 1.5 }),
    ];
    for row in rows {
        say(admin.post("/api/v1/data/thing", row).await, &mut lines);
    }
    for query in [
        "",
        "sort=name",
        "sort=-name",
        "sort=amount,-name",
        "sort=-at,day",
        "search=%C3%89t",
        "search=STRASSE",
        "search=_%25",
        "name%5Bilike%5D=T%C3%89",
        "name%5Blike%5D=t%C3%A9",
        "tags=a",
        "tags%5Bneq%5D=a",
        "tags%5Bin%5D=b,%C3%89",
        "tags%5Bnin%5D=b,%C3%89",
        "tags%5Bilike%5D=%C3%A9",
        "amount%5Bgt%5D=1.234",
        "amount=1.235",
        "ratio%5Blte%5D=0.1",
        "big=9007199254740993",
        "at%5Bgte%5D=2001-02-03T03:05:06.789Z",
        "day%5Blt%5D=2001-02-01",
        "hour%5Bgt%5D=23:00",
        "on=false",
        "on%5Bneq%5D=false",
        "data%5Bis_null%5D=",
        "data=x",
        "name%5Bin%5D=%22Z_%25%5C%22,null",
        "amount=x",
        "sort=data",
        "limit=2&offset=1&select=name",
        "count=none&pageSize=3",
    ] {
        say(admin.get(&format!("/api/v1/data/thing?{query}")).await, &mut lines);
    }
    let listed = admin.get("/api/v1/data/thing?sort=created_at&limit=2").await.json();
    let path = format!("/api/v1/data/thing/{}", listed["data"][0]["id"].as_str().unwrap());
    for changes in [
        json!({ "amount": { "$inc": "x" } }),
        json!({ "amount": { "$inc": 0.0015 }, "ratio": { "$dec": 0.2 }, "big": { "$inc": 1 } }),
        json!({ "amount": { "$dec": 1000 } }),
        json!({ "big": { "$inc": i64::MAX } }),
        json!({ "name": "ÉTÉ" }),
        json!({ "data": { "z": [1, { "y": null }] }, "tags": null }),
        json!({}),
    ] {
        say(admin.patch(&path, changes).await, &mut lines);
    }
    say(admin.delete(&path).await, &mut lines);
    say(admin.get(&path).await, &mut lines);
    say(admin.get("/api/v1/schema").await, &mut lines);
    let events = server.sql("SELECT topic, payload FROM svc_events ORDER BY seq").await;
    for event in events {
        lines.push(mask.mask(&format!("{} {}", event[0], event[1])));
    }
    lines
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn both_engines_answer_with_the_same_bytes() {
    let (sqlite, postgres) = tokio::join!(transcript(Engine::Sqlite), transcript(Engine::Postgres));
    for (index, (one, other)) in sqlite.iter().zip(&postgres).enumerate() {
        assert_eq!(one, other, "line {index}");
    }
    assert_eq!(sqlite.len(), postgres.len());
    assert!(sqlite.iter().any(|line| line.contains(r#""totalCount":7"#)), "the transcript is of real answers");
}

//! The bytes of pages by cursors.

use blockbase_tests::{Admin, ServerBuilder, on_both_engines};
use serde_json::{Value, json};

use super::page;

/// The maximum number of bytes of an answer in these tests. A page can have three short texts, or a long one.
const ANSWER_BYTES_MAX: &str = "65536";
const SHORT: usize = 20_000;
const LONG: usize = 60_000;

/// The numbers of records, each with the number of bytes of its text, in the order of the numbers.
const RECORDS: [(Option<i64>, usize); 6] =
    [(Some(0), SHORT), (Some(1), SHORT), (Some(2), LONG), (Some(3), SHORT), (Some(4), SHORT), (None, LONG)];

/// Makes the records, and returns their ids.
async fn make(admin: &Admin<'_>) -> Vec<String> {
    admin.define("author", json!([{ "name": "name", "type": "text" }])).await;
    let fields = json!([{ "name": "number", "type": "integer", "indexed": true }, { "name": "text", "type": "text" }]);
    admin.define("doc", fields).await;
    admin.relate(json!({ "name": "author", "kind": "many_to_one", "source": "doc", "target": "author" })).await;
    let author = admin.make("author", json!({ "name": "Ann" })).await;
    let mut ids = Vec::new();
    for (number, bytes) in RECORDS {
        ids.push(admin.make("doc", json!({ "number": number, "text": "x".repeat(bytes), "author_id": author })).await);
    }
    ids
}

on_both_engines! {
    async fn a_record_that_only_shows_that_there_are_more_has_any_size(engine: Engine) {
        let server = ServerBuilder::new(engine).env("SVC_MAX_ANSWER_BYTES", ANSWER_BYTES_MAX).start().await;
        let admin = server.admin().await;
        let ids = make(&admin).await;
        for rest in ["", "&expand=author", "&count=exact"] {
            let get = async |query: &str| page(&admin, "doc", &format!("sort=number&{query}{rest}")).await;
            // The next record would not fit.
            let first = get("cursor=&limit=2").await;
            assert_eq!((&first.ids[..], first.is("hasNextPage")), (&ids[..2], true), "{rest}");
            let second = get(&format!("limit=1&after={}", first.cursor("endCursor"))).await;
            assert_eq!((&second.ids[..], second.is("hasNextPage")), (&ids[2..3], true), "{rest}");
            // The next record has no number, so another statement reads it.
            let third = get(&format!("limit=2&after={}", second.cursor("endCursor"))).await;
            assert_eq!((&third.ids[..], third.is("hasNextPage")), (&ids[3..5], true), "{rest}");
            let last = get(&format!("limit=2&after={}", third.cursor("endCursor"))).await;
            assert_eq!((&last.ids[..], last.is("hasNextPage")), (&ids[5..], false), "{rest}");
            let previous = get(&format!("limit=2&before={}", last.cursor("startCursor"))).await;
            assert_eq!((&previous.ids[..], previous.is("hasPreviousPage")), (&ids[3..5], true), "{rest}");
            // Records of the page count.
            let query = format!("sort=number&cursor=&limit=3{rest}");
            admin.get(&format!("/api/v1/data/doc?{query}")).await.expect_error(400, "answer_too_large");
            let query = format!("sort=number&limit=3&before={}{rest}", last.cursor("startCursor"));
            admin.get(&format!("/api/v1/data/doc?{query}")).await.expect_error(400, "answer_too_large");
        }
        // Records that are not between the cursors do not count, whatever the size of the page.
        let first = page(&admin, "doc", "sort=number&limit=1&cursor=").await.cursor("endCursor");
        let second = page(&admin, "doc", "sort=number&limit=2&cursor=").await.cursor("endCursor");
        let third = page(&admin, "doc", &format!("sort=number&limit=1&after={second}")).await.cursor("endCursor");
        let between = page(&admin, "doc", &format!("sort=number&after={first}&before={third}")).await;
        assert_eq!((&between.ids[..], between.is("hasPreviousPage"), between.is("hasNextPage")), (&ids[1..2], true, true));
        let plain = page(&admin, "doc", "sort=number&limit=2&expand=author&count=none").await;
        assert_eq!((&plain.ids[..], plain.is("hasNextPage")), (&ids[..2], true));

        let connection = async |arguments: &str| {
            let fields = "edges { node { id text } } pageInfo { hasNextPage endCursor }";
            let query = format!("{{ doc_connection(sort: [{{ field: \"number\" }}], {arguments}) {{ {fields} }} }}");
            admin.post("/api/v1/graphql", json!({ "query": query })).await.json()
        };
        let answer = connection("first: 2").await;
        let found = &answer["data"]["doc_connection"];
        assert_eq!((&found["edges"][1]["node"]["id"], &found["pageInfo"]["hasNextPage"]), (&json!(ids[1]), &json!(true)), "{:.300}", answer.to_string());
        let fourth = page(&admin, "doc", &format!("sort=number&limit=1&after={third}")).await.cursor("endCursor");
        let fifth = page(&admin, "doc", &format!("sort=number&limit=1&after={fourth}")).await.cursor("endCursor");
        for size in ["first", "last"] {
            let answer = connection(&format!("{size}: 50, after: \"{third}\", before: \"{fifth}\"")).await;
            let edges = answer["data"]["doc_connection"]["edges"].as_array().map(Vec::len);
            assert_eq!(edges, Some(1), "{size}: {:.300}", answer.to_string());
        }
        let answer = connection("first: 3").await;
        assert_eq!(answer["errors"][0]["extensions"]["code"], "answer_too_large", "{:.300}", answer.to_string());
        // Each edge repeats the aliases.
        let aliased = async |aliases: usize| {
            let members: String = (0..aliases).map(|number| format!("{}{number}: __typename ", "a".repeat(240))).collect();
            admin.post("/api/v1/graphql", json!({ "query": format!("{{ doc_connection {{ edges {{ {members} }} }} }}") })).await.json()
        };
        let answer = aliased(200).await;
        assert_eq!(answer["errors"][0]["extensions"]["code"], "answer_too_large", "{:.300}", answer.to_string());
        let answer = aliased(20).await;
        let edges = answer["data"]["doc_connection"]["edges"].as_array().unwrap();
        assert_eq!((edges.len(), edges[5].as_object().unwrap().len()), (RECORDS.len(), 20), "{:.300}", answer.to_string());
    }

    async fn the_values_of_the_sort_count_as_bytes_of_the_page(engine: Engine) {
        let server = ServerBuilder::new(engine).env("SVC_MAX_ANSWER_BYTES", ANSWER_BYTES_MAX).start().await;
        let admin = server.admin().await;
        make(&admin).await;
        let query = "sort=text&select=number";
        let all = page(&admin, "doc", query).await.ids;
        assert_eq!(all.len(), RECORDS.len());
        let mut read = page(&admin, "doc", &format!("{query}&cursor=&limit=3")).await;
        let mut ids = read.ids.clone();
        while read.is("hasNextPage") {
            read = page(&admin, "doc", &format!("{query}&limit=1&after={}", read.cursor("endCursor"))).await;
            ids.extend(read.ids.iter().cloned());
        }
        assert_eq!(ids, all);
        admin.get(&format!("/api/v1/data/doc?{query}&cursor=&limit=4")).await.expect_error(400, "answer_too_large");
        // Without such a sort, the texts are not read.
        let refused: Value = admin.get("/api/v1/data/doc?sort=number&cursor=").await.expect_error(400, "answer_too_large");
        assert!(refused["message"].as_str().unwrap().contains("`select`"), "{refused}");
        assert_eq!(page(&admin, "doc", "sort=number&select=number&cursor=").await.ids.len(), RECORDS.len());
    }
}

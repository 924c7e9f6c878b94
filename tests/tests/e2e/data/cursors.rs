//! Pages by cursors: all rows of a list, forward and backward, while other rows come and go.

mod changes;
mod plans;
mod refused;
mod related;
mod sizes;
mod surfaces;

use blockbase_tests::{Admin, on_both_engines};
use serde_json::{Value, json};

use crate::accounts::roles::{role, user};

/// The records that [`fill`] makes.
const RECORDS: usize = 40;

/// A page of a list.
struct Page {
    ids: Vec<String>,
    pagination: Value,
}

impl Page {
    fn cursor(&self, name: &str) -> String {
        self.pagination[name].as_str().unwrap_or_else(|| panic!("{}", self.pagination)).to_owned()
    }

    fn is(&self, name: &str) -> bool {
        self.pagination[name].as_bool().unwrap()
    }
}

/// Encodes a text for a query string.
fn encoded(text: &str) -> String {
    text.bytes().map(|byte| format!("%{byte:02X}")).collect()
}

async fn page(who: &Admin<'_>, object: &str, query: &str) -> Page {
    let answer = who.get(&format!("/api/v1/data/{object}?{query}")).await;
    assert_eq!(answer.status, 200, "{query}: {}", answer.text);
    let mut body = answer.json();
    let ids = body["data"].as_array().unwrap().iter().map(|row| row["id"].as_str().unwrap().to_owned()).collect();
    Page { ids, pagination: body["pagination"].take() }
}

/// The ids of the plain list.
async fn listed(who: &Admin<'_>, object: &str, query: &str) -> Vec<String> {
    page(who, object, &format!("{query}&pageSize=100")).await.ids
}

/// The ids of all pages, read from the beginning.
async fn forward(who: &Admin<'_>, object: &str, query: &str, size: usize) -> Vec<String> {
    let (mut ids, mut cursor) = (Vec::new(), "cursor=".to_owned());
    loop {
        let page = page(who, object, &format!("{query}&pageSize={size}&{cursor}")).await;
        assert_eq!(page.is("hasPreviousPage"), !ids.is_empty(), "{query}");
        assert!(page.ids.len() == size || !page.is("hasNextPage"), "{query}");
        ids.extend(page.ids.iter().cloned());
        if !page.is("hasNextPage") {
            return ids;
        }
        cursor = format!("after={}", page.cursor("endCursor"));
    }
}

/// The ids of all pages, read from the end, in the order of the list.
async fn backward(who: &Admin<'_>, object: &str, query: &str, size: usize) -> Vec<String> {
    let (mut ids, mut cursor) = (Vec::new(), "before=".to_owned());
    loop {
        let page = page(who, object, &format!("{query}&pageSize={size}&{cursor}")).await;
        assert_eq!(page.is("hasNextPage"), !ids.is_empty(), "{query}");
        ids = [page.ids.clone(), ids].concat();
        if !page.is("hasPreviousPage") {
            return ids;
        }
        cursor = format!("before={}", page.cursor("startCursor"));
    }
}

/// Defines `thing`, with fields of every type that can be sorted, and `shelf`, on which things are.
async fn define(admin: &Admin<'_>) {
    admin.define("shelf", json!([{ "name": "name", "type": "text" }])).await;
    let fields = json!([
        { "name": "name", "type": "text", "required": true },
        { "name": "title", "type": "text" },
        { "name": "code", "type": "text", "indexed": true },
        { "name": "rank", "type": "integer", "indexed": true },
        { "name": "level", "type": "integer", "required": true, "indexed": true },
        { "name": "big", "type": "big_integer" },
        { "name": "price", "type": "decimal", "scale": 2, "indexed": true },
        { "name": "weight", "type": "float" },
        { "name": "done", "type": "boolean" },
        { "name": "day", "type": "date" },
        { "name": "at", "type": "datetime", "indexed": true },
        { "name": "hour", "type": "time" },
        { "name": "state", "type": "enum", "options": ["open", "closed"] },
        { "name": "key", "type": "uuid", "isUnique": true },
        { "name": "tags", "type": "multi_enum", "options": ["a", "b"] },
    ]);
    let made = admin.post("/api/v1/objects", json!({ "name": "thing", "fields": fields, "indexes": [["state", "rank"]] })).await;
    assert_eq!(made.status, 201, "{}", made.text);
    admin.relate(json!({ "name": "shelf", "kind": "many_to_one", "source": "thing", "target": "shelf" })).await;
}

/// The values of a thing. Each field has nulls, if it can have them, and equal values.
fn thing(number: usize, shelves: &[String]) -> Value {
    let one_of = |values: Value| values[number % values.as_array().unwrap().len()].clone();
    json!({
        "name": format!("name {}", number % 5),
        "title": one_of(json!(["é", "Z", null, "a", "ß", "😀", "say \"hi\" \\ ,"])),
        "code": if number.is_multiple_of(3) { Value::Null } else { json!(format!("c{:02}", number / 2)) },
        "rank": if number.is_multiple_of(5) { Value::Null } else { json!(number % 4) },
        "level": number % 3,
        "big": one_of(json!([i64::MAX, i64::MIN, 9_007_199_254_740_993_i64, null, 9_007_199_254_740_992_i64])),
        "price": one_of(json!(["0.10", "-0.05", null, "9999999999999999.99", "9999999999999999.98", "0.10"])),
        "weight": one_of(json!([0.1, -1e300, null, 1e-300, 0, 1e300, 0.30000000000000004])),
        "done": one_of(json!([true, null, false])),
        "day": one_of(json!(["1969-12-31", "2026-01-02", null])),
        "at": one_of(json!(["2026-01-02T03:04:05.006Z", "2026-01-02T03:04:05.007Z", null, "1969-12-31T23:59:59.999Z"])),
        "hour": one_of(json!(["12:00", "12:00:00.500", null, "23:59:59.999"])),
        "state": one_of(json!(["open", "closed", null, "open"])),
        "key": if number.is_multiple_of(4) { Value::Null } else { json!(format!("{:08x}-0000-4000-8000-000000000000", number * 7919 % 1009)) },
        "tags": one_of(json!([["a"], ["b", "a"], null])),
        "shelf_id": if number.is_multiple_of(4) { Value::Null } else { json!(shelves[number % shelves.len()]) },
    })
}

async fn fill(admin: &Admin<'_>) {
    let mut shelves = Vec::new();
    for name in ["attic", "cellar", "bath"] {
        shelves.push(admin.make("shelf", json!({ "name": name })).await);
    }
    // Two calls, so that there are several instants of creation.
    for numbers in [0..RECORDS / 2, RECORDS / 2..RECORDS] {
        let records: Vec<Value> = numbers.map(|number| thing(number, &shelves)).collect();
        let made = admin.post("/api/v1/data/thing/bulk", json!({ "data": records })).await;
        assert_eq!(made.status, 201, "{}", made.text);
    }
}

const FIELDS: [&str; 19] = [
    "id",
    "name",
    "title",
    "code",
    "rank",
    "level",
    "big",
    "price",
    "weight",
    "done",
    "day",
    "at",
    "hour",
    "state",
    "key",
    "shelf_id",
    "created_at",
    "updated_at",
    "created_by",
];

on_both_engines! {
    async fn pages_of_any_sort_have_the_rows_of_the_list(server: Server) {
        let admin = server.admin().await;
        define(&admin).await;
        fill(&admin).await;
        let mut sorts: Vec<String> = vec![String::new()];
        sorts.extend(FIELDS.iter().flat_map(|field| [(*field).to_owned(), format!("-{field}")]));
        let several = [
            "state,rank", "-state,-rank", "state,-rank", "-rank,state", "rank,level", "level,-name", "-price,title,-code", "done,-at,hour",
            "-shelf_id,level", "created_at,-rank", "-id,title", "level,id,rank",
        ];
        sorts.extend(several.map(str::to_owned));
        for sort in sorts {
            let query = format!("select=level&sort={sort}");
            let expected = listed(&admin, "thing", &query).await;
            assert_eq!(expected.len(), RECORDS);
            assert_eq!(forward(&admin, "thing", &query, 7).await, expected, "{sort}");
            assert_eq!(backward(&admin, "thing", &query, 7).await, expected, "{sort}");
        }
    }

    async fn pages_between_two_cursors_have_the_rows_between_them(server: Server) {
        let admin = server.admin().await;
        define(&admin).await;
        fill(&admin).await;
        let several = ["state,rank", "-state,-rank", "state,-rank", "price,title,-code", "level,-name", "-at,done"];
        for sort in ["", "id", "rank", "-rank"].into_iter().chain(several) {
            let query = format!("select=level&sort={sort}");
            let all = listed(&admin, "thing", &query).await;
            // The cursors of every sixth row.
            let mut cursors: Vec<String> = Vec::new();
            let mut next = "cursor=".to_owned();
            while cursors.len() < RECORDS / 6 {
                let page = page(&admin, "thing", &format!("{query}&pageSize=6&{next}")).await;
                next = format!("after={}", page.cursor("endCursor"));
                cursors.push(page.cursor("endCursor"));
            }
            for (begin, after) in cursors.iter().enumerate() {
                for (end, before) in cursors.iter().enumerate().skip(begin + 1) {
                    let (first, last) = (begin * 6 + 6, end * 6 + 5);
                    let between = format!("{query}&after={after}&before={before}");
                    let whole = page(&admin, "thing", &format!("{between}&pageSize=100&count=exact")).await;
                    assert_eq!(whole.ids, all[first..last], "{sort} {begin} {end}");
                    assert_eq!((whole.is("hasPreviousPage"), whole.is("hasNextPage")), (true, true), "{sort} {begin} {end}");
                    assert_eq!(whole.pagination["totalCount"], RECORDS, "{sort}");
                    let some = page(&admin, "thing", &format!("{between}&pageSize=4")).await;
                    assert_eq!(some.ids, all[first..first + 4], "{sort} {begin} {end}");
                    // The other way round, there is nothing between the two.
                    let none = page(&admin, "thing", &format!("{query}&after={before}&before={after}")).await;
                    assert_eq!((none.ids.len(), none.is("hasNextPage")), (0, true), "{sort} {begin} {end}");
                }
            }
            // Behind the last row there is nothing, whichever cursor is the second one.
            let last = page(&admin, "thing", &format!("{query}&pageSize=1&before=")).await.cursor("endCursor");
            for before in [&cursors[0], &last] {
                let none = page(&admin, "thing", &format!("{query}&after={last}&before={before}")).await;
                assert_eq!((none.ids.len(), none.is("hasPreviousPage"), none.is("hasNextPage")), (0, true, false), "{sort}");
            }
        }
    }

    async fn pages_have_the_rows_that_the_conditions_select(server: Server) {
        let admin = server.admin().await;
        define(&admin).await;
        fill(&admin).await;
        let by_shelf = encoded(r#"{ "shelf": { "name": { "ilike": "AT" } } }"#);
        let by_either = encoded(r#"{ "_or": [{ "rank": { "gte": 2 } }, { "shelf.name": "cellar" }] }"#);
        for condition in [
            "level=1".to_owned(),
            "rank[is_null]=1".to_owned(),
            "rank[gte]=1&price[lt]=1".to_owned(),
            "search=name+3".to_owned(),
            "search=e&level[neq]=0".to_owned(),
            "tags=a".to_owned(),
            format!("where={by_shelf}"),
            format!("where={by_either}&done[neq]=true"),
        ] {
            for sort in ["", "rank", "-rank", "price,-level", "title", "-at", "state,rank"] {
                let query = format!("{condition}&sort={sort}");
                let expected = listed(&admin, "thing", &query).await;
                assert!(expected.len() > 3 && expected.len() < RECORDS, "{query}: {}", expected.len());
                assert_eq!(forward(&admin, "thing", &query, 3).await, expected, "{query}");
                assert_eq!(backward(&admin, "thing", &query, 3).await, expected, "{query}");
            }
        }
    }

    async fn rows_that_stay_are_neither_repeated_nor_skipped(server: Server) {
        let admin = server.admin().await;
        define(&admin).await;
        fill(&admin).await;
        for sort in ["rank", "-rank", "title,-level", "-created_at"] {
            for is_forward in [true, false] {
                let before = listed(&admin, "thing", &format!("sort={sort}")).await;
                let (mut seen, mut gone, mut new) = (Vec::new(), Vec::new(), Vec::new());
                let mut cursor = if is_forward { "cursor=" } else { "before=" }.to_owned();
                loop {
                    let page = page(&admin, "thing", &format!("sort={sort}&pageSize=6&{cursor}")).await;
                    seen.extend(if is_forward { page.ids.clone() } else { page.ids.iter().rev().cloned().collect() });
                    if !page.is(if is_forward { "hasNextPage" } else { "hasPreviousPage" }) {
                        break;
                    }
                    // The record at the cursor goes, and so do one before it and one after it.
                    let edge = seen.last().unwrap().clone();
                    let place = before.iter().position(|id| *id == edge);
                    let near = place.map(|place| [place.saturating_sub(2), place, place + 2]).into_iter().flatten();
                    for id in near.filter_map(|place| before.get(place)).cloned().collect::<Vec<_>>() {
                        if !gone.contains(&id) {
                            assert_eq!(admin.delete(&format!("/api/v1/data/thing/{id}")).await.status, 204);
                            gone.push(id);
                        }
                    }
                    for rank in [json!(0), json!(2), Value::Null] {
                        new.push(admin.make("thing", json!({ "name": "new", "title": "m", "rank": rank, "level": 1 })).await);
                    }
                    let name = if is_forward { ("after", "endCursor") } else { ("before", "startCursor") };
                    cursor = format!("{}={}", name.0, page.cursor(name.1));
                }
                let mut stayed: Vec<String> = before.iter().filter(|id| !gone.contains(id)).cloned().collect();
                if !is_forward {
                    stayed.reverse();
                }
                let seen_of_stayed: Vec<String> = seen.iter().filter(|id| stayed.contains(id)).cloned().collect();
                assert_eq!(seen_of_stayed, stayed, "{sort} {is_forward}");
                let mut once = seen.clone();
                once.sort();
                once.dedup();
                assert_eq!(once.len(), seen.len(), "{sort} {is_forward}");
                for id in new {
                    admin.delete(&format!("/api/v1/data/thing/{id}")).await;
                }
                let shelf = admin.get("/api/v1/data/shelf?limit=1").await.data()[0]["id"].as_str().unwrap().to_owned();
                for number in 0..gone.len() {
                    let mut record = thing(number, std::slice::from_ref(&shelf));
                    record["key"] = Value::Null;
                    admin.make("thing", record).await;
                }
            }
        }
    }

    async fn the_pagination_says_what_is_there(server: Server) {
        let admin = server.admin().await;
        define(&admin).await;
        let empty = admin.get("/api/v1/data/thing?cursor=").await.json();
        let pagination = json!({
            "pageSize": 25, "hasNextPage": false, "hasPreviousPage": false, "startCursor": null, "endCursor": null, "totalCount": null,
        });
        assert_eq!(empty, json!({ "data": [], "pagination": pagination }));
        fill(&admin).await;
        let all = listed(&admin, "thing", "sort=rank").await;
        let get = async |query: &str| page(&admin, "thing", &format!("sort=rank&{query}")).await;
        let first = get("cursor=true&limit=6&count=exact").await;
        let members: Vec<&String> = first.pagination.as_object().unwrap().keys().collect();
        assert_eq!(members, ["pageSize", "hasNextPage", "hasPreviousPage", "startCursor", "endCursor", "totalCount"]);
        assert_eq!((&first.ids[..], &first.pagination["totalCount"], &first.pagination["pageSize"]), (&all[..6], &json!(RECORDS), &json!(6)));
        let later = get(&format!("after={}&pageSize=5&count=exact", first.cursor("endCursor"))).await;
        assert_eq!((&later.ids[..], &later.pagination["totalCount"]), (&all[6..11], &json!(RECORDS)));
        assert_eq!((later.is("hasPreviousPage"), later.is("hasNextPage")), (true, true));
        assert_eq!(get(&format!("before={}&count=none", later.cursor("startCursor"))).await.ids, all[..6]);
        assert_eq!(get("after=&limit=1000").await.ids, all);
        assert_eq!(get("before=&limit=4").await.ids, all[RECORDS - 4..]);
        // Filters count too.
        let filtered = page(&admin, "thing", "cursor=&level=1&limit=2&count=exact").await;
        let total = admin.get("/api/v1/data/thing?level=1").await.json()["pagination"]["totalCount"].clone();
        assert_eq!(filtered.pagination["totalCount"], total);

        // Between two cursors.
        let (start, end) = (first.cursor("endCursor"), later.cursor("endCursor"));
        let between = get(&format!("after={start}&before={end}&pageSize=3")).await;
        assert_eq!((&between.ids[..], between.is("hasPreviousPage"), between.is("hasNextPage")), (&all[6..9], true, true));
        let between = get(&format!("after={start}&before={end}&pageSize=4")).await;
        assert_eq!((&between.ids[..], between.is("hasNextPage")), (&all[6..10], true));
        let nothing = get(&format!("after={end}&before={start}")).await;
        assert_eq!((nothing.ids.len(), &nothing.pagination["startCursor"]), (0, &Value::Null));
        // Behind the end, and in front of the beginning.
        let last = get("before=&limit=3").await;
        let past = get(&format!("after={}", last.cursor("endCursor"))).await;
        assert_eq!((past.ids.len(), past.is("hasPreviousPage"), past.is("hasNextPage")), (0, true, false));
        let past = get(&format!("before={}", first.cursor("startCursor"))).await;
        assert_eq!((past.ids.len(), past.is("hasPreviousPage"), past.is("hasNextPage")), (0, false, true));
        assert_eq!(past.pagination["endCursor"], Value::Null);

        // The columns of the order are shown only if they are selected.
        let shown = admin.get("/api/v1/data/thing?sort=rank,-price&cursor=&select=name&expand=shelf&limit=2").await;
        let record = shown.data()[0].clone();
        assert_eq!(record.as_object().unwrap().keys().collect::<Vec<_>>(), ["id", "name", "shelf"]);
        let switched_off = page(&admin, "thing", "cursor=false&page=2&pageSize=30").await;
        assert_eq!((switched_off.ids.len(), &switched_off.pagination["page"]), (RECORDS - 30, &json!(2)));
    }

    async fn cells_that_cannot_be_read_count_as_null(server: Server) {
        let admin = server.admin().await;
        define(&admin).await;
        fill(&admin).await;
        let grants = json!([
            { "resource": "thing", "actions": ["read"], "where": { "level": { "gte": 1 } }, "fields": { "read": ["name", "level", "at"] } },
            { "resource": "thing", "actions": ["read"], "where": { "level": 1 }, "fields": { "read": ["rank"] } },
        ]);
        role(&admin, "reader", grants).await;
        let (reader, _) = user(&admin, "reader", Some("reader")).await;
        for sort in ["", "rank", "-rank", "at,rank", "-level,-rank", "name"] {
            let query = format!("sort={sort}");
            let expected = listed(&reader, "thing", &query).await;
            assert!(expected.len() > 20 && expected.len() < RECORDS, "{}", expected.len());
            assert_eq!(forward(&reader, "thing", &query, 4).await, expected, "{sort}");
            assert_eq!(backward(&reader, "thing", &query, 4).await, expected, "{sort}");
        }
        reader.get("/api/v1/data/thing?sort=price&cursor=").await.expect_error(400, "unknown_field");
        // After a cell that the reader does not see, and whose value has changed since, the next page is the same.
        let first = page(&reader, "thing", "level=2&sort=-rank&cursor=&limit=3&select=rank").await;
        let edge = first.ids.last().unwrap();
        assert_eq!(reader.get(&format!("/api/v1/data/thing/{edge}")).await.data()["rank"], Value::Null);
        let query = format!("level=2&sort=-rank&after={}&limit=9", first.cursor("endCursor"));
        let next = page(&reader, "thing", &query).await.ids;
        assert_eq!(admin.patch(&format!("/api/v1/data/thing/{edge}"), json!({ "rank": 1_000_000 })).await.status, 200);
        assert_eq!(page(&reader, "thing", &query).await.ids, next);
    }

    async fn long_values_do_not_break_pages(server: Server) {
        let admin = server.admin().await;
        let fields = json!([{ "name": "state", "type": "enum", "options": ["open"] }, { "name": "text", "type": "text" }]);
        admin.define("note", fields).await;
        for text in ["a".repeat(4000), "b".repeat(40_000), "b".repeat(40_001), "c".repeat(5000), "d".to_owned()] {
            admin.make("note", json!({ "state": "open", "text": text })).await;
        }
        for sort in ["text", "-text", "state,text"] {
            let query = format!("select=id&sort={sort}");
            let expected = listed(&admin, "note", &query).await;
            assert_eq!(forward(&admin, "note", &query, 1).await, expected, "{sort}");
            assert_eq!(backward(&admin, "note", &query, 2).await, expected, "{sort}");
        }
        // The cursor of a record with a long value has only the record's id and a digest, so it fits into a URL.
        let two = page(&admin, "note", "select=id&sort=text&cursor=&limit=2").await;
        assert!(two.cursor("startCursor").len() > 5000 && two.cursor("endCursor").len() < 200, "{}", two.pagination);
        let (edge, after) = (format!("/api/v1/data/note/{}", two.ids[1]), format!("sort=text&after={}", two.cursor("endCursor")));
        let rest = page(&admin, "note", &after).await.ids;
        assert_eq!(rest.len(), 3);
        assert_eq!(admin.patch(&edge, json!({ "state": null })).await.status, 200);
        assert_eq!(page(&admin, "note", &after).await.ids, rest);
        // With another value the record is elsewhere. From there, the next page could skip records.
        assert_eq!(admin.patch(&edge, json!({ "text": "e".repeat(5000) })).await.status, 200);
        let moved = admin.get(&format!("/api/v1/data/note?{after}")).await;
        assert_eq!(moved.expect_error(400, "invalid_request")["field"], "after");
        assert_eq!(admin.patch(&edge, json!({ "text": "b".repeat(40_000) })).await.status, 200);
        assert_eq!(page(&admin, "note", &after).await.ids, rest);
        // The cursor ends with the record.
        assert_eq!(admin.delete(&format!("/api/v1/data/note/{}", two.ids[1])).await.status, 204);
        for name in ["after", "before"] {
            let gone = admin.get(&format!("/api/v1/data/note?sort=text&{name}={}", two.cursor("endCursor"))).await;
            assert_eq!(gone.expect_error(400, "invalid_request")["field"], name);
        }
    }
}

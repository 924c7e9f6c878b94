//! Attacks on grants: requests that try to learn something about hidden records and fields, or to reach more than the grants allow.

use blockbase_tests::{Admin, Answer, Server, on_both_engines, test_block};
use serde_json::{Value, json};

use super::{World as TeamWorld, path as task_path, world as team_world};
use crate::accounts::roles::{role, user};
use crate::data::conditions::encoded;
use crate::events::Stream;
use crate::mcp::Client;

const MISSING: &str = "20000000-0000-4000-8000-000000000000";

struct World<'a> {
    admin: Admin<'a>,
    visitor: Admin<'a>,
    /// The visitor reads the first shelf, and not the second one.
    shelves: [String; 2],
    /// Of the book `seen`, the visitor reads most fields. Of `partly`, they do not read the price. They do not read `hidden`.
    books: [String; 3],
}

fn path(id: &str) -> String {
    format!("/api/v1/data/book/{id}")
}

/// Books on shelves. The visitor reads, writes and deletes open books, but knows no codes.
async fn world(server: &Server) -> World<'_> {
    let admin = server.admin().await;
    admin.define("shelf", json!([{ "name": "name", "type": "text" }])).await;
    admin
        .define(
            "book",
            json!([
                { "name": "title", "type": "text" },
                { "name": "code", "type": "text", "isUnique": true },
                { "name": "price", "type": "integer", "indexed": true },
                { "name": "state", "type": "text" },
            ]),
        )
        .await;
    let shelf = json!({ "name": "shelf", "kind": "many_to_one", "source": "book", "target": "shelf", "onDelete": "restrict" });
    admin.relate(shelf).await;
    let grants = json!([
        { "resource": "book", "actions": ["read"], "where": { "state": "open" }, "fields": { "read": ["title", "state", "shelf_id"] } },
        { "resource": "book", "actions": ["read"], "where": { "state": "open", "title": "seen" },
          "fields": { "read": ["title", "state", "shelf_id", "price"] } },
        { "resource": "book", "actions": ["create", "update", "delete"], "where": { "state": "open" } },
        { "resource": "shelf", "actions": ["read", "delete"], "where": { "name": { "neq": "hidden" } } },
        { "resource": "data", "actions": ["read"] },
    ]);
    role(&admin, "visitor", grants).await;
    let (visitor, _) = user(&admin, "visitor", Some("visitor")).await;
    let shelves = [admin.make("shelf", json!({ "name": "one" })).await, admin.make("shelf", json!({ "name": "hidden" })).await];
    let book = async |title: &str, code: &str, price: i64, state: &str, shelf: &str| {
        let values = json!({ "title": title, "code": code, "price": price, "state": state, "shelf_id": shelf });
        admin.make("book", values).await
    };
    let books = [
        book("seen", "c1", 10, "open", &shelves[0]).await,
        book("partly", "c2", 20, "open", &shelves[0]).await,
        book("hidden", "c3", 30, "shut", &shelves[0]).await,
    ];
    World { admin, visitor, shelves, books }
}

/// The beginning of the names of reads in a block.
const IN_BLOCK: &str = "block: ";

/// The answers to every kind of read, each with its request, its status and its text.
async fn reads(caller: &Admin<'_>, [seen, partly, hidden]: &[String; 3]) -> Vec<(String, u16, String)> {
    let mut answers = Vec::new();
    let mut keep = |request: String, answer: Answer| answers.push((request, answer.status, answer.text));
    for query in [
        "book?sort=title",
        "book?sort=price,title",
        "book?sort=-price,title&pageSize=1&page=2",
        "book?sort=code",
        "book?price%5Bgt%5D=15",
        "book?price%5Bis_null%5D=true&sort=title",
        "book?price%5Bneq%5D=10&sort=title",
        "book?code=c2",
        "book?search=hidden",
        "book?search=c2",
        "book?search=seen",
        "book/aggregate?fn=sum&field=price",
        "book/aggregate?fn=max&field=price",
        "book/aggregate?fn=count&price%5Bgt%5D=15",
        "book/aggregate?fn=count,sum:price&groupBy=price&sort=price",
        "book/aggregate?fn=count,max:price,max:title&groupBy=state",
        "book/export?format=csv&sort=title",
        "book/export?format=ndjson&sort=price,title",
        "shelf?sort=name&expand=book_by_shelf",
        "shelf/aggregate?fn=count",
    ] {
        keep(query.to_owned(), caller.get(&format!("/api/v1/data/{query}")).await);
    }
    for id in [seen, partly, hidden] {
        keep(id.clone(), caller.get(&format!("{}?expand=shelf", path(id))).await);
    }
    for document in ["data", "openapi.json", "me/permissions"] {
        keep(document.to_owned(), caller.get(&format!("/api/v1/{document}")).await);
    }
    for (object, condition) in [
        ("book", json!({ "_not": { "price": { "lt": 15 } } })),
        ("book", json!({ "_or": [{ "price": 20 }, { "price": 30 }] })),
        ("shelf", json!({ "book_by_shelf": { "some": { "price": { "gte": 20 } } } })),
        ("shelf", json!({ "book_by_shelf": { "every": { "price": { "lt": 20 } } } })),
        ("shelf", json!({ "book_by_shelf": { "none": { "title": "hidden" } } })),
        ("book", json!({ "shelf": { "book_by_shelf": { "some": { "state": "shut" } } } })),
    ] {
        let answer = caller.post(&format!("/api/v1/data/{object}/query"), json!({ "where": condition, "sort": "id" })).await;
        keep(condition.to_string(), answer);
        for read in ["aggregate?fn=count", "export?format=ndjson&sort=id"] {
            let query = format!("{object}/{read}&where={}", encoded(&condition.to_string()));
            keep(format!("{object}/{read} {condition}"), caller.get(&format!("/api/v1/data/{query}")).await);
        }
        for (op, key, value) in [("query", "sort", "id"), ("aggregate", "fn", "count")] {
            let mut query = json!({ "where": condition });
            query[key] = json!(value);
            let input = json!({ "op": op, "object": object, "json": query.to_string() });
            keep(format!("{IN_BLOCK}{op} {input}"), caller.post("/api/v1/blocks/parity/actions/run", input).await);
        }
    }
    for chosen in
        [json!({ "where": { "price": { "gt": 15 } } }), json!({ "where": { "title": "hidden" } }), json!({ "ids": [hidden] })]
    {
        let mut body = chosen.clone();
        body["values"] = json!({ "state": "open" });
        keep(format!("change {chosen}"), caller.patch("/api/v1/data/book/bulk?dryRun=true", body).await);
        keep(format!("delete {chosen}"), caller.delete_with("/api/v1/data/book/bulk?dryRun=true", chosen).await);
    }
    for query in [
        "{ book(sort: [{ field: \"price\" }, { field: \"title\" }]) { data { id title price shelf { name } } pagination { totalCount } } }",
        "{ book(where: { price: { gt: 15 } }) { data { id } } }",
        "{ shelf_aggregate(fn: count, where: { book_by_shelf: { some: { price: { gte: 20 } } } }) { value filteredCount } }",
        "{ book_groups(functions: [\"count\", \"sum:price\"], groupBy: [\"state\"]) { data } }",
        "{ book_connection(where: { _not: { price: { lt: 15 } } }, sort: [{ field: \"price\" }], first: 5) {
            edges { node { id } } totalCount } }",
        "mutation { delete_book_many(where: { _not: { price: { lt: 15 } } }, dryRun: true) { count ids } }",
        "mutation { update_book_many(where: { price: { gt: 15 } }, input: { state: \"open\" }, dryRun: true) { count ids } }",
        "{ __schema { types { name fields { name } inputFields { name } } } }",
    ] {
        keep(query.to_owned(), caller.post("/api/v1/graphql", json!({ "query": query })).await);
    }
    let client = Client::of(caller);
    keep("tools".to_owned(), client.send(r#"{"jsonrpc":"2.0","id":1,"method":"tools/list","params":{}}"#).await);
    for (tool, arguments) in [
        ("get_object", json!({ "object_name": "book" })),
        ("query_data", json!({ "object_name": "book", "where": { "price": { "gt": 15 } }, "sort": "id" })),
        (
            "aggregate_data",
            json!({ "object_name": "shelf", "fn": "count", "where": { "book_by_shelf": { "none": { "title": "hidden" } } } }),
        ),
        ("aggregate_data", json!({ "object_name": "book", "functions": ["count", "max:price"], "group_by": ["price"] })),
        (
            "bulk_delete_records",
            json!({ "object_name": "book", "where": { "_not": { "price": { "lt": 15 } } }, "dry_run": true }),
        ),
        (
            "bulk_update_records",
            json!({ "object_name": "book", "where": { "price": { "gt": 15 } }, "data": { "state": "open" }, "dry_run": true }),
        ),
    ] {
        answers.push((tool.to_owned(), 200, client.call(tool, arguments).await.text));
    }
    answers
}

on_both_engines! {
    async fn no_read_depends_on_what_is_hidden(server: Server) {
        let World { admin, visitor, shelves: [one, _], books } = world(&server).await;
        let installed = admin.install("", test_block("parity").await).await;
        assert_eq!(installed.status, 201, "{}", installed.text);
        role(&admin, "runner", json!([{ "resource": "parity:run", "actions": ["read"] }])).await;
        let id = visitor.get("/api/v1/me").await.json()["userId"].as_str().unwrap().to_owned();
        let given = admin.post(&format!("/api/v1/users/{id}/roles"), json!({ "roleId": "runner" })).await;
        assert_eq!(given.status, 200, "{}", given.text);
        let (first, all) = (reads(&visitor, &books).await, reads(&admin, &books).await);
        let in_block = first.iter().filter(|(request, ..)| request.starts_with(IN_BLOCK));
        let done = in_block.filter(|(_, status, text)| *status == 200 && text.contains("\"done\":"));
        assert_eq!(done.count(), 12, "{first:?}");
        assert!(first.iter().any(|(_, status, text)| *status == 200 && text.contains("\"price\":10")), "{first:?}");
        let same = async |what: &str| {
            for (before, now) in first.iter().zip(reads(&visitor, &books).await) {
                assert_eq!(*before, now, "{what}");
            }
        };
        // A hidden value, and a hidden record.
        admin.patch(&path(&books[1]), json!({ "price": 15_000, "code": "c9" })).await.data();
        same("the price of a book").await;
        admin.patch(&path(&books[2]), json!({ "title": "seen", "price": 1, "code": "c8" })).await.data();
        same("a hidden book").await;
        // The same changes are not hidden from the admin.
        let differing = all.iter().zip(reads(&admin, &books).await).filter(|(before, now)| *before != now).count();
        assert!(differing > 20, "{differing} of {}", all.len());
        // Hidden records come and go.
        admin.make("book", json!({ "title": "c2", "code": "c3", "price": 20, "state": "shut", "shelf_id": one })).await;
        same("a further hidden book").await;
        assert_eq!(admin.delete(&path(&books[2])).await.status, 204);
        same("a hidden book that is gone").await;
    }

    async fn conflicts_name_nothing_that_is_hidden(server: Server) {
        let World { admin, visitor, shelves: [_, hidden_shelf], books: [.., hidden] } = world(&server).await;
        let tells_nothing = |answer: &Answer| {
            assert!(!answer.text.contains(&hidden) && !answer.text.contains("hidden") && !answer.text.contains("shut"), "{}", answer.text);
        };
        // A value that a hidden record already has.
        let taken = visitor.post("/api/v1/data/book", json!({ "title": "new", "state": "open", "code": "c3" })).await;
        taken.expect_error(409, "unique_violation");
        tells_nothing(&taken);
        // An upsert would show whether the code exists, and whether its record is within the grant.
        for code in ["c3", "no book has it"] {
            let values = json!({ "title": "new", "state": "open", "code": code });
            let answer = visitor.post("/api/v1/data/book?on_conflict=code", values).await;
            assert_eq!(answer.expect_error(403, "forbidden")["field"], "code");
        }
        // A shelf that only a hidden book holds.
        let third = admin.make("shelf", json!({ "name": "three" })).await;
        admin.patch(&path(&hidden), json!({ "shelf_id": third })).await.data();
        let held = visitor.delete(&format!("/api/v1/data/shelf/{third}")).await;
        held.expect_error(409, "foreign_key_violation");
        tells_nothing(&held);
        // A reference to a hidden record has the same answer as one to no record.
        let refer = async |id: &str| {
            let answer = visitor.post("/api/v1/data/book", json!({ "title": "new", "state": "open", "shelf_id": id })).await;
            answer.expect_error(409, "foreign_key_violation");
            answer.text.replace(id, "the id")
        };
        assert_eq!(refer(&hidden_shelf).await, refer(MISSING).await);
        assert_eq!(admin.get("/api/v1/data/book").await.json()["pagination"]["totalCount"], 3);
    }

    async fn versions_of_hidden_records_are_not_compared(server: Server) {
        let World { admin, visitor, books: [.., hidden], .. } = world(&server).await;
        let before = admin.get(&path(&hidden)).await;
        let version = before.headers["etag"].to_str().unwrap().to_owned();
        let mut answers = Vec::new();
        for (id, version) in [(&*hidden, &*version), (&*hidden, "\"stale\""), (&*hidden, "*"), (MISSING, &*version), (MISSING, "*")] {
            let with = |method: &str| visitor.request(method, &path(id)).header("if-match", version);
            let changed = server.send(with("PATCH").json(&json!({ "title": "x" }))).await;
            changed.expect_error(404, "not_found");
            let deleted = server.send(with("DELETE")).await;
            deleted.expect_error(404, "not_found");
            let read = server.send(visitor.request("GET", &path(id)).header("if-none-match", version)).await;
            read.expect_error(404, "not_found");
            answers.push([changed, deleted, read].map(|answer| answer.text.replace(id, "the id")));
        }
        let mut batches = Vec::new();
        for (id, version) in [(&*hidden, &*version), (&*hidden, "\"stale\""), (MISSING, "\"stale\"")] {
            for operation in [
                json!({ "op": "update", "object": "book", "id": id, "values": { "title": "x" }, "ifVersion": version }),
                json!({ "op": "delete", "object": "book", "id": id, "ifVersion": version }),
            ] {
                let answer = visitor.post("/api/v1/batch", json!({ "operations": [operation] })).await;
                answer.expect_error(404, "not_found");
                batches.push(answer.text.replace(id, "the id"));
            }
        }
        assert!(answers.iter().all(|answer| *answer == answers[0]), "{answers:?}");
        assert!(batches.chunks(2).all(|pair| *pair == batches[..2]), "{batches:?}");
        assert_eq!(admin.get(&path(&hidden)).await.text, before.text);
    }

    async fn bulk_calls_leave_out_what_is_hidden(server: Server) {
        let World { admin, visitor, books: [seen, partly, hidden], .. } = world(&server).await;
        let change = async |chosen: Value| {
            let mut body = chosen;
            body["values"] = json!({ "code": null });
            let answer = visitor.patch("/api/v1/data/book/bulk", body).await;
            assert_eq!(answer.status, 200, "{}", answer.text);
            answer.json()["ids"].clone()
        };
        // The condition sees no hidden price: only the price of `seen` can be read.
        assert_eq!(change(json!({ "where": { "price": { "gt": 0 } } })).await, json!([seen]));
        assert_eq!(change(json!({ "where": { "price": 20 } })).await, json!([]));
        assert_eq!(change(json!({ "where": { "title": "hidden" } })).await, json!([]));
        assert_eq!(change(json!({ "ids": [hidden, partly] })).await, json!([partly]));
        for condition in [json!({ "price": { "gte": 20 } }), json!({ "state": "shut" })] {
            let gone = visitor.delete_with("/api/v1/data/book/bulk", json!({ "where": condition })).await;
            assert_eq!(gone.json()["count"], 0, "{}", gone.text);
        }
        assert_eq!(admin.get(&path(&hidden)).await.data()["state"], "shut");
        assert_eq!(admin.get("/api/v1/data/book").await.json()["pagination"]["totalCount"], 3);
    }

    async fn nobody_takes_a_record_or_gives_one_away(server: Server) {
        let TeamWorld { admin, ann, ann_id, teams: [one, _], tasks: [a, b, _] } = team_world(&server).await;
        // Ann changes the tasks that are assigned to her: `a`, and not `b`, although she reads it. They have to stay hers.
        let before = [admin.get(&task_path(&a)).await.data(), admin.get(&task_path(&b)).await.data()];
        let client = Client::of(&ann);
        for (id, assignee, code) in [(&b, json!(ann_id), "not_found"), (&a, json!("somebody else"), "forbidden"), (&a, Value::Null, "forbidden")] {
            let values = json!({ "assignee": assignee });
            let status = if code == "not_found" { 404 } else { 403 };
            ann.patch(&task_path(id), values.clone()).await.expect_error(status, code);
            let batch = json!([{ "op": "update", "object": "task", "id": id, "values": values }]);
            ann.post("/api/v1/batch", json!({ "operations": batch })).await.expect_error(status, code);
            let mut row = values.clone();
            row["id"] = json!(id);
            row["team_id"] = json!(one);
            ann.post("/api/v1/data/task?on_conflict=id", row.clone()).await.expect_error(403, "forbidden");
            let upsert = json!([{ "op": "upsert", "object": "task", "values": row, "onConflict": ["id"] }]);
            ann.post("/api/v1/batch", json!({ "operations": upsert })).await.expect_error(403, "forbidden");
            for chosen in [json!({ "ids": [id] }), json!({ "where": { "id": id } })] {
                let mut body = chosen;
                body["values"] = values.clone();
                let answer = ann.patch("/api/v1/data/task/bulk", body).await;
                match code {
                    "not_found" => assert_eq!((answer.status, &answer.json()["count"]), (200, &json!(0)), "{}", answer.text),
                    _ => drop(answer.expect_error(403, "forbidden")),
                }
            }
            let query = format!("mutation($input: TaskUpdateInput!) {{ update_task(id: \"{id}\", input: $input) {{ id }} }}");
            let answer = ann.post("/api/v1/graphql", json!({ "query": query, "variables": { "input": values } })).await.json();
            assert_eq!(answer["errors"][0]["extensions"]["code"], code, "{answer}");
            let called = client.call("update_record", json!({ "object_name": "task", "id": id, "data": values })).await;
            assert!(called.is_error && called.text.contains(code), "{}", called.text);
        }
        assert_eq!([admin.get(&task_path(&a)).await.data(), admin.get(&task_path(&b)).await.data()], before);
    }

    async fn conditions_that_lead_in_a_circle_end(server: Server) {
        let admin = server.admin().await;
        admin.define("project", json!([{ "name": "name", "type": "text" }, { "name": "open", "type": "boolean" }])).await;
        admin.define("task", json!([{ "name": "title", "type": "text" }])).await;
        admin.relate(json!({ "name": "project", "kind": "many_to_one", "source": "task", "target": "project" })).await;
        admin.relate(json!({ "name": "parent", "kind": "many_to_one", "source": "task", "target": "task" })).await;
        // Each of the two conditions goes through the object of the other one.
        role(&admin, "reader", json!([
            { "resource": "task", "actions": ["read"], "where": { "project": { "open": true } } },
            { "resource": "project", "actions": ["read"], "where": { "task_by_project": { "none": { "title": "secret" } } } },
            { "resource": "events", "actions": ["read"] },
        ])).await;
        let (reader, _) = user(&admin, "reader", Some("reader")).await;
        let project = async |name: &str, open: bool| admin.make("project", json!({ "name": name, "open": open })).await;
        let projects = [project("one", true).await, project("two", true).await, project("three", false).await];
        let task = async |title: &str, project: &str| admin.make("task", json!({ "title": title, "project_id": project })).await;
        let tasks = [task("a", &projects[0]).await, task("secret", &projects[0]).await, task("b", &projects[1]).await, task("c", &projects[2]).await];
        let listed = async |query: &str, field: &str| {
            let answer = reader.get(&format!("/api/v1/data/{query}")).await;
            assert_eq!(answer.status, 200, "{}", answer.text);
            answer.data().as_array().unwrap().iter().map(|row| row[field].as_str().unwrap().to_owned()).collect::<Vec<_>>()
        };
        // A condition of a grant looks at related rows without the other grants.
        assert_eq!(listed("task?sort=title", "title").await, ["a", "b", "secret"]);
        assert_eq!(listed("project?sort=name", "name").await, ["three", "two"]);
        // What the caller asks for follows the grants of both objects.
        let expanded = reader.get("/api/v1/data/task?sort=title&expand=project").await.data();
        let names: Vec<&Value> = expanded.as_array().unwrap().iter().map(|task| &task["project"]["name"]).collect();
        assert_eq!(names, [&Value::Null, &json!("two"), &Value::Null]);
        let open = reader.post("/api/v1/data/task/query", json!({ "where": { "project": { "open": true } } })).await.data();
        assert_eq!((open.as_array().unwrap().len(), &open[0]["title"]), (1, &json!("b")));
        let events = reader.get("/api/v1/events?object=task&limit=100").await.data();
        let shown: Vec<&Value> = events.as_array().unwrap().iter().rev().map(|event| &event["payload"]["id"]).collect();
        assert_eq!(shown, [&json!(tasks[0]), &json!(tasks[1]), &json!(tasks[2])]);
        // A circle of rows, too: a task that is its own parent.
        let parents = json!([{ "resource": "task", "actions": ["read", "update"], "where": { "parent": { "parent": { "title": "b" } } }, "check": {} }]);
        assert_eq!(admin.patch("/api/v1/roles/reader", json!({ "permissions": parents })).await.status, 200);
        assert_eq!(listed("task", "title").await, Vec::<String>::new());
        admin.patch(&format!("/api/v1/data/task/{}", tasks[2]), json!({ "parent_id": tasks[2] })).await.data();
        assert_eq!(listed("task", "title").await, ["b"]);
        assert_eq!(reader.patch(&format!("/api/v1/data/task/{}", tasks[2]), json!({ "title": "d" })).await.status, 200);
        assert_eq!(listed("task", "title").await, Vec::<String>::new());
    }

    async fn an_open_stream_follows_the_rows_and_fields_of_its_role(server: Server) {
        let admin = server.admin().await;
        let task = json!([{ "name": "title", "type": "text" }, { "name": "state", "type": "text" }, { "name": "points", "type": "integer" }]);
        admin.define("task", task).await;
        admin.define("note", json!([{ "name": "text", "type": "text" }])).await;
        let with = |grant: Value| json!([{ "resource": "note", "actions": ["read"] }, grant]);
        let all = with(json!({ "resource": "task", "actions": ["read"] }));
        role(&admin, "reader", all.clone()).await;
        let (reader, id) = user(&admin, "reader", Some("reader")).await;
        let task = admin.make("task", json!({ "title": "begin", "state": "open", "points": 1 })).await;
        let mut stream = Stream::open(&reader, "?topics=data.%23").await;
        // On Postgres, a stream may begin with events from a moment before it.
        admin.make("note", json!({ "text": "begin" })).await;
        while stream.event().await["topic"] != "data.note.created" {}
        // Changes the task and returns the event as the stream shows it. The note after it shows that nothing else comes.
        let mut changed = async |title: &str| {
            admin.patch(&format!("/api/v1/data/task/{task}"), json!({ "title": title, "points": title.len() })).await.data();
            admin.make("note", json!({ "text": title })).await;
            let mut shown = Value::Null;
            loop {
                let event = stream.event().await;
                if event["topic"] == "data.note.created" {
                    assert_eq!(event["payload"]["after"]["text"], json!(title), "{event}");
                    return shown;
                }
                assert_eq!((&event["topic"], &shown), (&json!("data.task.updated"), &Value::Null), "{event}");
                shown = event["payload"].clone();
            }
        };
        let give = async |grant: Value| {
            assert_eq!(admin.patch("/api/v1/roles/reader", json!({ "permissions": with(grant) })).await.status, 200);
        };
        let whole = changed("whole").await;
        assert_eq!((&whole["after"]["points"], &whole["diff"]["points"]["after"]), (&json!(5), &json!(5)), "{whole}");
        // Fields are taken away.
        give(json!({ "resource": "task", "actions": ["read"], "fields": { "read": ["title", "state"] } })).await;
        let cut = changed("cut").await;
        assert_eq!(cut["after"], json!({ "id": task, "title": "cut", "state": "open" }), "{cut}");
        assert_eq!(cut["diff"], json!({ "title": { "before": "whole", "after": "cut" } }), "{cut}");
        // Rows are taken away.
        give(json!({ "resource": "task", "actions": ["read"], "where": { "state": "done" } })).await;
        assert_eq!(changed("of another state").await, Value::Null);
        give(json!({ "resource": "task", "actions": ["read"], "where": { "title": { "ilike": "cut" } } })).await;
        assert_eq!(changed("also of another title").await, Value::Null);
        let came = changed("a cut again").await;
        assert_eq!((&came["before"], &came["diff"], &came["after"]["points"]), (&Value::Null, &Value::Null, &json!(11)), "{came}");
        // The right itself is taken away, and comes back.
        give(json!({ "resource": "task", "actions": ["create"] })).await;
        assert_eq!(changed("without read").await, Value::Null);
        assert_eq!(admin.patch("/api/v1/roles/reader", json!({ "permissions": all })).await.status, 200);
        assert_eq!(changed("with read").await["after"]["title"], "with read");
        // A second role adds what it allows, until the user loses it.
        give(json!({ "resource": "task", "actions": ["read"], "where": { "state": "done" } })).await;
        role(&admin, "second", json!([{ "resource": "task", "actions": ["read"], "where": { "state": "open" }, "fields": { "read": ["title"] } }])).await;
        assert_eq!(admin.post(&format!("/api/v1/users/{id}/roles"), json!({ "roleId": "second" })).await.status, 200);
        assert_eq!(changed("by the second role").await["after"]["title"], "by the second role");
        assert_eq!(admin.delete(&format!("/api/v1/users/{id}/roles/second")).await.status, 204);
        assert_eq!(changed("without the second role").await, Value::Null);
    }
}

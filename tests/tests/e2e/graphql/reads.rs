//! Lists, records, aggregates, relations: the same results as REST, with the selected fields.

use blockbase_tests::{ServerBuilder, on_both_engines, until};
use serde_json::{Value, json};

use super::{PATH, codes, data, define, send};

const ALL: &str = "id title done priority price big status shade kinds due extra project_id owned_id created_at updated_at \
                   created_by updated_by";

on_both_engines! {
    async fn a_record_has_the_values_that_rest_shows(server: Server) {
        let admin = server.admin().await;
        define(&admin).await;
        let project = admin.make("project", json!({ "name": "bakery" })).await;
        let body = r#"{"title":"Éclair","priority":3,"price":123456789012.123456,"big":9223372036854775807,"status":"open",
            "shade":"light blue","kinds":["b","a"],"due":"2026-01-02T03:04:05+01:00","extra":{"z":[1.50,null],"a":"x"},"project_id":"PROJECT"}"#;
        let request = admin.request("POST", "/api/v1/data/task").header("content-type", "application/json");
        let made = server.send(request.body(body.replace("PROJECT", &project))).await;
        assert_eq!(made.status, 201, "{}", made.text);
        let id = made.json()["data"]["id"].as_str().unwrap().to_owned();
        admin.make("task", json!({ "title": "bare" })).await;

        // The text is the same, digit for digit. The fields are in the order of the columns.
        let rest = admin.get("/api/v1/data/task?sort=title").await.text;
        let rest = rest.strip_prefix("{\"data\":").unwrap().split(",\"pagination\"").next().unwrap().to_owned();
        let query = format!("{{ task(sort: [{{field: \"title\"}}]) {{ data {{ {ALL} }} }} }}");
        let columns = rest.split('"').filter(|part| ALL.split_whitespace().any(|name| name == *part));
        let order: Vec<&str> = columns.take(ALL.split_whitespace().count()).collect();
        let query = query.replace(ALL, &order.join(" "));
        let answer = send(&server, Some(&admin.token), &query, Value::Null).await;
        assert_eq!(answer.text, format!("{{\"data\":{{\"task\":{{\"data\":{rest}}}}}}}"));

        let by_id = data(&admin, "query($id: ID!) { task_by_id(id: $id) { title big price } }", json!({ "id": id })).await;
        assert_eq!(by_id["task_by_id"]["title"], "Éclair");
        let missing = "query($id: ID!) { task_by_id(id: $id) { id } }";
        for id in ["0190d5ae-0000-7000-8000-000000000000", "none", "7"] {
            assert_eq!(data(&admin, missing, json!({ "id": id })).await, json!({ "task_by_id": null }));
        }
    }

    async fn lists_are_searched_filtered_sorted_and_paged_as_by_rest(server: Server) {
        let admin = server.admin().await;
        define(&admin).await;
        let records: Vec<Value> = (0..60).map(|number| json!({
            "title": format!("Task {number:02} {}", ["Straße", "éclair", "100%"][number % 3]),
            "priority": number % 10, "done": number % 2 == 0, "kinds": if number % 4 == 0 { json!(["a"]) } else { Value::Null },
            "status": if number % 5 == 0 { json!("open") } else { Value::Null },
        })).collect();
        assert_eq!(admin.post("/api/v1/data/task/bulk", json!({ "data": records })).await.status, 201);
        let selected = "data { title priority } pagination { page pageSize totalCount totalPages hasNextPage hasPreviousPage }";
        for (rest, arguments) in [
            ("", ""),
            ("search=ÉCLAIR", r#"search: "ÉCLAIR""#),
            ("search=100%25&priority[gte]=5", r#"search: "100%", filter: [{field: "priority", operator: gte, value: 5}]"#),
            ("priority[gt]=2&priority[lte]=4", r#"filter: [{field: "priority", operator: gt, value: 2}, {field: "priority", operator: lte, value: 4}]"#),
            ("priority[lt]=2", r#"filter: [{field: "priority", operator: lt, value: 2}]"#),
            ("priority=3", r#"filter: [{field: "priority", value: 3}]"#),
            ("priority[neq]=3", r#"filter: {field: "priority", operator: neq, value: 3}"#),
            ("title[like]=Straße", r#"filter: [{field: "title", operator: like, value: "Straße"}]"#),
            ("title[ilike]=STRASSE", r#"filter: [{field: "title", operator: ilike, value: "STRASSE"}]"#),
            ("priority[in]=1,2", r#"filter: [{field: "priority", operator: in, value: [1, 2]}]"#),
            ("priority[nin]=1,2", r#"filter: [{field: "priority", operator: nin, value: [1, 2]}]"#),
            ("status[is_null]=1", r#"filter: [{field: "status", operator: is_null}]"#),
            ("status[is_not_null]=1", r#"filter: [{field: "status", operator: is_not_null, value: null}]"#),
            ("status=null", r#"filter: [{field: "status", value: null}]"#),
            ("kinds=a", r#"filter: [{field: "kinds", value: "a"}]"#),
            ("sort=-priority,title", r#"sort: [{field: "priority", direction: desc}, {field: "title"}]"#),
            ("page=2&pageSize=7", "page: 2, pageSize: 7"),
            ("limit=7&offset=9", "limit: 7, offset: 9"),
            ("page=3&limit=7", "page: 3, limit: 7"),
            ("pageSize=1000", "pageSize: 1000"),
            ("page=99", "page: 99"),
            ("offset=0", "offset: 0"),
        ] {
            let path = format!("/api/v1/data/task?select=title,priority&{rest}");
            let mut expected = admin.get(&path).await.json();
            for record in expected["data"].as_array_mut().unwrap() {
                record.as_object_mut().unwrap().shift_remove("id");
            }
            let arguments = if arguments.is_empty() { String::new() } else { format!("({arguments})") };
            let found = data(&admin, &format!("{{ task{arguments} {{ {selected} }} }}"), Value::Null).await;
            assert_eq!(found["task"], expected, "{rest}");
        }
    }

    async fn aggregates_are_those_of_rest(server: Server) {
        let admin = server.admin().await;
        define(&admin).await;
        for (title, price) in [("a", "0.1"), ("b", "999999999999.123456"), ("ab", "0.2")] {
            let request = admin.request("POST", "/api/v1/data/task").header("content-type", "application/json");
            let made = server.send(request.body(format!(r#"{{"title":"{title}","price":{price}}}"#))).await;
            assert_eq!(made.status, 201, "{}", made.text);
        }
        for function in ["count", "sum", "avg", "min", "max"] {
            for (rest, arguments) in [
                ("", ""),
                ("&search=a", r#", search: "a""#),
                ("&price[lt]=1", r#", filter: [{field: "price", operator: lt, value: 1}]"#),
                ("&title=none", r#", filter: [{field: "title", value: "none"}]"#),
            ] {
                let path = format!("/api/v1/data/task/aggregate?fn={function}&field=price{rest}");
                let rest = admin.get(&path).await.text;
                let query = format!("{{ task_aggregate(fn: {function}, field: \"price\"{arguments}) {{ fn field value filteredCount }} }}");
                let answer = send(&server, Some(&admin.token), &query, Value::Null).await;
                let rest = rest.strip_prefix("{\"data\":").unwrap().strip_suffix('}').unwrap();
                assert_eq!(answer.text, format!("{{\"data\":{{\"task_aggregate\":{rest}}}}}"));
            }
        }
        let all = data(&admin, "{ task_aggregate(fn: count) { n: value, field } }", Value::Null).await;
        assert_eq!(all, json!({ "task_aggregate": { "n": 3, "field": null } }));
    }

    async fn selections_are_merged_skipped_and_renamed(server: Server) {
        let admin = server.admin().await;
        define(&admin).await;
        admin.make("task", json!({ "title": "one", "priority": 1 })).await;
        let query = "query Q($yes: Boolean!, $no: Boolean = false) {
            first: task { rows: data { ...Some t: title @skip(if: $yes) u: title @include(if: $yes) } __typename }
            first: task { rows: data { priority ... on Task { v: done } ... @include(if: $no) { status } } }
            kind: __typename
            svc_objects @skip(if: true)
        } fragment Some on Task { title ...More } fragment More on Task { __typename priority }";
        let found = data(&admin, query, json!({ "yes": true })).await;
        let row = json!({ "title": "one", "__typename": "Task", "priority": 1, "u": "one", "v": false });
        assert_eq!(found, json!({ "first": { "rows": [row], "__typename": "Task_Page" }, "kind": "Query" }));
        // Members are in the order of the selection.
        let text = send(&server, Some(&admin.token), "{task{data{priority title}}}", Value::Null).await.text;
        assert_eq!(text, r#"{"data":{"task":{"data":[{"priority":1,"title":"one"}]}}}"#);
        // If a document has several operations, the named one runs.
        let body = json!({ "query": "query A { task { data { title } } } query B { svc_objects }", "operationName": "B" });
        let answer = admin.post(PATH, body).await.json();
        assert_eq!(answer["data"]["svc_objects"], json!(["passport", "person", "project", "tag", "task"]));
    }

    async fn relations_nest_as_deep_as_levels_go(server: Server) {
        let admin = server.admin().await;
        define(&admin).await;
        let project = admin.make("project", json!({ "name": "bakery" })).await;
        let person = admin.make("person", json!({ "name": "Ann" })).await;
        admin.make("passport", json!({ "number": "P1", "holder_id": person })).await;
        let tag = admin.make("tag", json!({ "label": "sweet" })).await;
        let one = admin.make("task", json!({ "title": "one", "project_id": project, "owned_id": person })).await;
        admin.make("task", json!({ "title": "two", "project_id": project })).await;
        assert_eq!(admin.post(&format!("/api/v1/data/task/{one}/links/tags"), json!({ "ids": [tag] })).await.status, 200);

        let query = r#"{ task(sort: [{field: "title"}]) { data {
            title
            project { name again: task_by_project { title tags { label tags: task_by_project_or_none } } }
        } } }"#;
        // An unknown relation key.
        assert_eq!(codes(&server, Some(&admin.token), query, Value::Null).await, ["unknown_field"]);

        let query = r#"{ task(sort: [{field: "title"}]) { data {
            title
            tags { label }
            project { name task_by_project { title project { task_by_project { title tags { label } } } } }
            owned { name passport_by_holder { number holder { name task_by_owned { title } } } }
        } } }"#;
        // The single side of a relation shows the records that refer to it, under the relationship's name or under `<object>_by_<name>`.
        let found = match send(&server, Some(&admin.token), query, Value::Null).await.json() {
            body if body["errors"].is_null() => body["data"].clone(),
            body => panic!("{body}"),
        };
        let sweet = json!([{ "label": "sweet" }]);
        let tasks = json!([{ "title": "two", "tags": [] }, { "title": "one", "tags": sweet }]);
        let inner = json!({ "task_by_project": tasks });
        let project = json!({ "name": "bakery", "task_by_project": [
            { "title": "two", "project": inner }, { "title": "one", "project": inner },
        ] });
        let owned = json!({ "name": "Ann", "passport_by_holder": { "number": "P1", "holder": { "name": "Ann", "task_by_owned": [{ "title": "one" }] } } });
        assert_eq!(found["task"]["data"], json!([
            { "title": "one", "tags": sweet, "project": project, "owned": owned },
            { "title": "two", "tags": [], "project": project, "owned": null },
        ]));
        let by_id = "query($id: ID!) { task_by_id(id: $id) { title project { name } tags { label } } }";
        let found = data(&admin, by_id, json!({ "id": one })).await;
        assert_eq!(found["task_by_id"], json!({ "title": "one", "project": { "name": "bakery" }, "tags": sweet }));
    }
}

on_both_engines! {
    async fn each_relation_and_level_is_one_statement(engine: Engine) {
        let server = ServerBuilder::new(engine).env("SVC_LOG", "info,blockbase_store::sql=trace").start().await;
        let admin = server.admin().await;
        define(&admin).await;
        for number in 0..10 {
            let project = admin.make("project", json!({ "name": format!("p{number}") })).await;
            let tag = admin.make("tag", json!({ "label": format!("t{number}") })).await;
            for title in ["a", "b", "c"] {
                let task = admin.make("task", json!({ "title": title, "project_id": project })).await;
                admin.post(&format!("/api/v1/data/task/{task}/links/tags"), json!({ "ids": [tag] })).await.data();
            }
        }
        // The statements on records in the server's log. Statements on system tables do not count, and neither do the locks that
        // Postgres takes when a snapshot begins.
        let statements = || {
            let log = server.log();
            let is_statement = |line: &&str| line.contains("a statement runs") && !line.contains("LOCK TABLE");
            let lines = log.lines().filter(is_statement).map(str::to_owned);
            // Quotes are escaped in the log.
            let is_on_records = |line: &String| ["task", "project", "tag"].iter().any(|name| line.contains(&format!("\\\"{name}\\\"")));
            lines.filter(is_on_records).collect::<Vec<_>>()
        };
        // The log comes through a pipe, so it may be late. The statements of a request come before the line of its answer.
        let answered = |route: &str| server.log().lines().filter(|line| line.contains("answered") && line.contains(route)).count();
        until("the links are in the log", async || answered("/links/") == 30).await;
        let queries = [
            ("{ task(limit: 25) { data { title } } }", 1),
            ("{ task(limit: 25) { data { title project { name } tags { label } } } }", 3),
            // These relations are selected twice, but read once.
            ("{ task(limit: 25) { data { a: project { id } b: project { name } ...F } } } fragment F on Task { c: project { id } }", 2),
            ("{ project { data { name task_by_project { title tags { label } project { name task_by_project { id } } } } } }", 5),
            ("{ a: task(limit: 5) { data { project { name } } } b: task(limit: 5) { data { tags { label } } } }", 4),
        ];
        for (asked, (query, expected)) in (1..).zip(queries) {
            let before = statements().len();
            data(&admin, query, Value::Null).await;
            until("the query is in the log", async || answered("/api/v1/graphql") == asked).await;
            let ran = statements().split_off(before);
            assert_eq!(ran.len(), expected, "{query}\n{}", ran.join("\n"));
            // The server reads only selected fields.
            assert!(!ran.iter().any(|statement| statement.contains("priority")), "{}", ran.join("\n"));
        }
    }
}

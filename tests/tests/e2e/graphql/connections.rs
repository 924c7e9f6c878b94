//! Connections: pages by cursors, as the Relay specification describes them.

use blockbase_tests::{Admin, ServerBuilder, on_both_engines, until};
use serde_json::{Value, json};

use super::{codes, data, define, send};
use crate::accounts::roles::{role, user};

const INFO: &str = "pageInfo { hasNextPage hasPreviousPage startCursor endCursor }";

async fn fill(admin: &Admin<'_>) {
    let project = admin.make("project", json!({ "name": "bakery" })).await;
    let records: Vec<Value> = (0..23)
        .map(|number| {
            let priority = if number % 6 == 0 { Value::Null } else { json!(number % 4) };
            json!({ "title": format!("task {number:02}"), "priority": priority, "done": number % 2 == 0, "project_id": project })
        })
        .collect();
    assert_eq!(admin.post("/api/v1/data/task/bulk", json!({ "data": records })).await.status, 201);
}

/// A connection with these arguments: the ids of its edges, their cursors, and its page.
async fn edges(admin: &Admin<'_>, arguments: &str) -> (Vec<String>, Vec<String>, Value) {
    let query = format!("{{ task_connection({arguments}) {{ edges {{ cursor node {{ id }} }} {INFO} }} }}");
    let connection = data(admin, &query, Value::Null).await["task_connection"].clone();
    let texts = |get: &dyn Fn(&Value) -> Value| {
        let edges = connection["edges"].as_array().unwrap().iter();
        edges.map(|edge| get(edge).as_str().unwrap().to_owned()).collect::<Vec<_>>()
    };
    let (ids, cursors) = (texts(&|edge| edge["node"]["id"].clone()), texts(&|edge| edge["cursor"].clone()));
    let info = connection["pageInfo"].clone();
    assert_eq!(info["startCursor"].as_str(), cursors.first().map(String::as_str));
    assert_eq!(info["endCursor"].as_str(), cursors.last().map(String::as_str));
    (ids, cursors, info)
}

/// The message and the field of an error that refuses arguments.
async fn refused(admin: &Admin<'_>, arguments: &str) -> String {
    let query = format!("{{ task_connection({arguments}) {{ edges {{ cursor }} }} }}");
    let answer = send(admin.server, Some(&admin.token), &query, Value::Null).await.json();
    let extensions = &answer["errors"][0]["extensions"];
    assert_eq!(extensions["code"], "invalid_request", "{answer}");
    extensions["field"].as_str().unwrap_or_default().to_owned()
}

on_both_engines! {
    async fn connections_keep_the_rules_of_relay(server: Server) {
        let admin = server.admin().await;
        define(&admin).await;
        fill(&admin).await;
        for (sort, of_rest) in [
            ("", "sort="),
            (r#"sort: [{ field: "priority", direction: desc }, { field: "title" }]"#, "sort=-priority,title"),
            (r#"sort: { field: "priority" }, where: { done: { eq: true } }"#, "sort=priority&done=true"),
        ] {
            let all = admin.get(&format!("/api/v1/data/task?{of_rest}&pageSize=100")).await.data();
            let all: Vec<String> = all.as_array().unwrap().iter().map(|row| row["id"].as_str().unwrap().to_owned()).collect();
            let (ids, cursors, info) = edges(&admin, &format!("first: 100, {sort}")).await;
            assert_eq!((&ids, &info["hasNextPage"], &info["hasPreviousPage"]), (&all, &json!(false), &json!(false)));
            let count = all.len();
            // The specification: apply `after` and `before` to all edges, then `first` or `last`.
            for (after, before) in [(None, None), (Some(3), None), (None, Some(7)), (Some(2), Some(9)), (Some(0), Some(1)), (Some(count - 1), None)] {
                let from = after.map_or(0, |after| after + 1);
                let until = before.unwrap_or(count);
                let mut range = String::new();
                for (name, place) in [("after", after), ("before", before)] {
                    if let Some(place) = place {
                        range.push_str(&format!("{name}: \"{}\", ", cursors[place]));
                    }
                }
                for size in [0, 1, 4, 50] {
                    let (first, _, info) = edges(&admin, &format!("{range} first: {size}, {sort}")).await;
                    let end = until.min(from + size);
                    assert_eq!(first, all[from..end], "{range} first {size} {sort}");
                    assert_eq!((&info["hasPreviousPage"], &info["hasNextPage"]), (&json!(from > 0), &json!(end < count)), "{range} first {size} {sort}");
                    let (last, _, info) = edges(&admin, &format!("{range} last: {size}, {sort}")).await;
                    let begin = from.max(until.saturating_sub(size));
                    assert_eq!(last, all[begin..until], "{range} last {size} {sort}");
                    assert_eq!((&info["hasPreviousPage"], &info["hasNextPage"]), (&json!(begin > 0), &json!(until < count)), "{range} last {size} {sort}");
                }
            }
        }
        // Without a number, a connection has a page of the usual size, next to its cursor.
        let (ids, cursors, _) = edges(&admin, "first: 100").await;
        assert_eq!(edges(&admin, "after: \"\"").await.0, ids);
        assert_eq!(edges(&admin, &format!("before: \"{}\"", cursors[5])).await.0, ids[..5]);
        assert_eq!(edges(&admin, "last: 3, before: \"\"").await.0, ids[20..]);
        // A cursor of REST is one of GraphQL, if the list is the same.
        let of_rest = admin.get("/api/v1/data/task?cursor=&limit=4").await.json()["pagination"]["endCursor"].clone();
        assert_eq!(edges(&admin, &format!("first: 2, after: {of_rest}")).await.0, ids[4..6]);
    }

    async fn connections_select_what_clients_ask_for(server: Server) {
        let admin = server.admin().await;
        define(&admin).await;
        fill(&admin).await;
        let query = r#"query($size: Int, $after: String, $where: Task_Where) {
            page: task_connection(first: $size, after: $after, where: $where, filter: [{ field: "done", value: true }], search: "TASK", sort: [{ field: "title" }]) { ...C }
        }
        fragment C on Task_Connection { __typename total: totalCount edges { ...E } pageInfo { ...I again: endCursor } }
        fragment E on Task_Edge { __typename at: cursor node { name: title project { name } } }
        fragment I on PageInfo { __typename hasNextPage endCursor }"#;
        let variables = json!({ "size": 2, "where": { "title": { "lt": "task 10" } } });
        let first = data(&admin, query, variables.clone()).await["page"].clone();
        assert_eq!((&first["__typename"], &first["total"]), (&json!("Task_Connection"), &json!(5)));
        let node = json!({ "name": "task 02", "project": { "name": "bakery" } });
        let edge = &first["edges"][1];
        assert_eq!(*edge, json!({ "__typename": "Task_Edge", "at": edge["at"], "node": node }));
        let info = json!({ "__typename": "PageInfo", "hasNextPage": true, "endCursor": edge["at"], "again": edge["at"] });
        assert_eq!(first["pageInfo"], info);
        let mut next = variables;
        next["after"] = edge["at"].clone();
        let next = data(&admin, query, next).await["page"].clone();
        let names: Vec<&Value> = next["edges"].as_array().unwrap().iter().map(|edge| &edge["node"]["name"]).collect();
        assert_eq!(names, ["task 04", "task 06"]);
        // Only what is selected is read.
        let bare = data(&admin, "{ task_connection(first: 1) { pageInfo { hasNextPage } } }", Value::Null).await;
        assert_eq!(bare, json!({ "task_connection": { "pageInfo": { "hasNextPage": true } } }));
        let ty = data(&admin, "{ __type(name: \"PageInfo\") { fields { name type { kind name } } } }", Value::Null).await;
        let fields: Vec<(&str, &str)> = ty["__type"]["fields"].as_array().unwrap().iter()
            .map(|field| (field["name"].as_str().unwrap(), field["type"]["kind"].as_str().unwrap())).collect();
        assert_eq!(fields, [("hasNextPage", "NON_NULL"), ("hasPreviousPage", "NON_NULL"), ("startCursor", "SCALAR"), ("endCursor", "SCALAR")]);
    }

    async fn connections_without_edges_say_what_is_there(server: Server) {
        let admin = server.admin().await;
        define(&admin).await;
        let ask = async |arguments: &str, fields: &str| {
            let query = format!("{{ task_connection({arguments}) {{ {fields} }} }}");
            data(&admin, &query, Value::Null).await["task_connection"].clone()
        };
        let has_next = async |arguments: &str| ask(arguments, "pageInfo { hasNextPage }").await["pageInfo"]["hasNextPage"] == true;
        let has_previous =
            async |arguments: &str| ask(arguments, "pageInfo { hasPreviousPage }").await["pageInfo"]["hasPreviousPage"] == true;
        let total = async |arguments: &str| ask(arguments, "totalCount").await;
        assert_eq!(total("first: 5").await, json!({ "totalCount": 0 }));
        assert!(!has_next("first: 0").await && !has_previous("last: 0").await);
        fill(&admin).await;
        for arguments in ["first: 0", "first: 3", "last: 3", "after: \"\"", "first: 3, sort: [{ field: \"priority\" }]"] {
            assert_eq!(total(arguments).await, json!({ "totalCount": 23 }), "{arguments}");
        }
        assert_eq!(total("first: 3, where: { done: { eq: true } }").await, json!({ "totalCount": 12 }));
        let (ids, cursors, _) = edges(&admin, "first: 100").await;
        let (after, last) = (format!("after: \"{}\"", cursors[0]), format!("after: \"{}\"", cursors[22]));
        // The total is that of the list, wherever the page begins.
        assert_eq!(total(&format!("first: 3, {after}")).await, json!({ "totalCount": 23 }));
        assert_eq!(total(&format!("first: 3, {last}")).await, json!({ "totalCount": 23 }));
        for (arguments, expected) in [
            ("first: 0".to_owned(), true),
            ("first: 22".to_owned(), true),
            ("first: 23".to_owned(), false),
            ("last: 3".to_owned(), false),
            (format!("first: 21, {after}"), true),
            (format!("first: 22, {after}"), false),
            (format!("first: 1, {last}"), false),
        ] {
            assert_eq!(has_next(&arguments).await, expected, "{arguments}");
        }
        for (arguments, expected) in [
            ("first: 3".to_owned(), false),
            ("last: 22".to_owned(), true),
            ("last: 23".to_owned(), false),
            (format!("first: 1, {after}"), true),
            (format!("first: 1, {last}"), true),
        ] {
            assert_eq!(has_previous(&arguments).await, expected, "{arguments}");
        }
        // The ends of the page are right without its edges.
        let info = ask("first: 4", "pageInfo { startCursor endCursor }").await["pageInfo"].clone();
        assert_eq!(edges(&admin, &format!("first: 2, after: {}", info["endCursor"])).await.0, ids[4..6]);
        assert_eq!(edges(&admin, &format!("first: 2, after: {}", info["startCursor"])).await.0, ids[1..3]);
        assert_eq!(ask("first: 4", "__typename").await, json!({ "__typename": "Task_Connection" }));
        // A wrong cursor is refused, whatever is selected.
        for fields in ["totalCount", "pageInfo { hasNextPage }", "__typename"] {
            let query = format!("{{ task_connection(after: \"x\") {{ {fields} }} }}");
            assert_eq!(codes(&server, Some(&admin.token), &query, Value::Null).await, ["invalid_request"], "{fields}");
        }
    }

    async fn wrong_arguments_of_a_connection_are_refused(server: Server) {
        let admin = server.admin().await;
        define(&admin).await;
        fill(&admin).await;
        let (_, cursors, _) = edges(&admin, "first: 3").await;
        let cursor = &cursors[1];
        for (arguments, field) in [
            ("first: 1, last: 1".to_owned(), "last"),
            ("first: -1".to_owned(), "first"),
            ("last: -1".to_owned(), "last"),
            ("after: \"x\"".to_owned(), "after"),
            ("last: 2, before: \"x\"".to_owned(), "before"),
            (format!("after: \"{cursor}A\""), "after"),
            (format!("after: \"{cursor}\", sort: [{{ field: \"title\" }}]"), "after"),
            (format!("before: \"{cursor}\", search: \"task\""), "before"),
            (format!("after: \"{cursor}\", where: {{ done: {{ eq: true }} }}"), "after"),
            (format!("after: \"{cursor}\", filter: [{{ field: \"done\", value: true }}]"), "after"),
        ] {
            assert_eq!(refused(&admin, &arguments).await, field, "{arguments}");
        }
        for query in [
            "{ task_connection(page: 1) { totalCount } }",
            "{ task_connection(offset: 0) { totalCount } }",
            "{ task_connection { edges } }",
            "{ task_connection { data { id } } }",
            "{ task_connection { edges { id } } }",
            "{ task_connection { pageInfo { page } } }",
            "{ task_connection { pageInfo } }",
            "{ task_connection(first: \"1\") { totalCount } }",
            "{ task(first: 1) { data { id } } }",
        ] {
            assert!(!codes(&server, Some(&admin.token), query, Value::Null).await.is_empty(), "{query}");
        }
        let unknown = codes(&server, Some(&admin.token), "{ task_connection(sort: [{ field: \"colour\" }]) { totalCount } }", Value::Null).await;
        assert_eq!(unknown, ["unknown_field"]);
        // Another user's cursor, with and without the right to read the list.
        let query = format!("{{ task_connection(after: \"{cursor}\") {{ totalCount }} }}");
        let (bob, _) = user(&admin, "bob", None).await;
        assert_eq!(codes(&server, Some(&bob.token), &query, Value::Null).await, ["forbidden"]);
        let grants = ["data", "task"].map(|resource| json!({ "resource": resource, "actions": ["read"] }));
        role(&admin, "reader", json!(grants)).await;
        let (ann, _) = user(&admin, "ann", Some("reader")).await;
        for parameter in ["after", "before"] {
            assert_eq!(refused(&ann, &format!("{parameter}: \"{cursor}\"")).await, parameter);
        }
        // Ann's own cursor leads to the same records.
        let (of_admin, _, _) = edges(&admin, "first: 3").await;
        let (of_ann, cursors, _) = edges(&ann, "first: 3").await;
        assert_eq!(of_ann, of_admin);
        assert_eq!(edges(&ann, &format!("first: 1, after: \"{}\"", cursors[1])).await.0, of_ann[2..]);
        assert_eq!(refused(&admin, &format!("after: \"{}\"", cursors[1])).await, "after");
    }

    async fn names_that_objects_have_already_stay_theirs(server: Server) {
        let admin = server.admin().await;
        admin.define("task", json!([{ "name": "title", "type": "text" }])).await;
        admin.define("task_connection", json!([{ "name": "label", "type": "text" }])).await;
        admin.make("task_connection", json!({ "label": "x" })).await;
        let found = data(&admin, "{ task_connection { data { label } } task_connection_connection { edges { node { label } } } }", Value::Null).await;
        let expected = json!({ "task_connection": { "data": [{ "label": "x" }] }, "task_connection_connection": { "edges": [{ "node": { "label": "x" } }] } });
        assert_eq!(found, expected);
        // The Relay specification requires the name `PageInfo`. If an object has it, there are no connections.
        admin.define("page_info", json!([{ "name": "number", "type": "integer" }])).await;
        admin.make("page_info", json!({ "number": 7 })).await;
        let found = data(&admin, "{ page_info { data { number } } }", Value::Null).await;
        assert_eq!(found, json!({ "page_info": { "data": [{ "number": 7 }] } }));
        let query = "{ task_connection_connection { totalCount } }";
        assert_eq!(codes(&server, Some(&admin.token), query, Value::Null).await, ["not_found"]);
        let ty = data(&admin, "{ __type(name: \"PageInfo\") { fields { name } } }", Value::Null).await;
        assert!(ty["__type"]["fields"].to_string().contains("number"), "{ty}");
        // The next start makes the same schema.
        let token = admin.token.clone();
        let server = server.restart().await;
        assert_eq!(data(&server.with_token(token), "{ page_info { data { number } } }", Value::Null).await, found);
    }
}

on_both_engines! {
    async fn connections_look_only_where_clients_ask(engine: Engine) {
        let server = ServerBuilder::new(engine).env("SVC_LOG", "info,blockbase_store::sql=trace").start().await;
        let admin = server.admin().await;
        admin.define("walk", json!([{ "name": "number", "type": "integer", "indexed": true }])).await;
        for number in [json!(0), json!(1), json!(2), json!(3), json!(4), Value::Null] {
            admin.make("walk", json!({ "number": number })).await;
        }
        // The statements on the records in the server's log. The locks that Postgres takes when a snapshot begins do not count.
        let statements = || {
            let log = server.log();
            let lines = log.lines().filter(|line| line.contains("a statement runs") && !line.contains("LOCK TABLE"));
            // Quotes are escaped in the log.
            lines.filter(|line| line.contains(r#"\"walk\""#)).count()
        };
        // The log comes through a pipe, so it may be late. The statements of a request come before the line of its answer.
        let is_answer = |line: &str, route: &str| line.contains("answered") && line.contains(route);
        let answered = |route: &str| server.log().lines().filter(|line| is_answer(line, route)).count();
        until("the records are in the log", async || answered("/api/v1/data/") == 6).await;
        // The connection, and the number of statements that read its records.
        let ask = async |arguments: &str, fields: &str| {
            let (asked, before) = (answered("/api/v1/graphql"), statements());
            let query = format!("{{ walk_connection(sort: {{ field: \"number\" }}, {arguments}) {{ {fields} }} }}");
            let found = data(&admin, &query, Value::Null).await["walk_connection"].clone();
            until("the query is in the log", async || answered("/api/v1/graphql") > asked).await;
            (found, statements() - before)
        };
        let (found, _) = ask("first: 100", "edges { cursor }").await;
        let edges = &found["edges"];
        let (zero, three) = (&edges[0]["cursor"], &edges[3]["cursor"]);
        let (next, previous, both) =
            ("pageInfo { hasNextPage }", "pageInfo { hasPreviousPage }", "pageInfo { hasNextPage hasPreviousPage }");
        let cases = [
            // The page is full after the first statement. The one row beside it is in the same statement.
            (format!("first: 2, after: {zero}"), "", 2, 1),
            (format!("first: 2, after: {zero}"), next, 2, 1),
            (format!("first: 2, after: {zero}"), previous, 2, 2),
            (format!("first: 2, after: {zero}"), both, 2, 2),
            // The row beside it has no number, so another statement would read it.
            (format!("first: 4, after: {zero}"), "", 4, 1),
            (format!("first: 4, after: {zero}"), next, 4, 2),
            // The row beside it is the one at the other cursor.
            (format!("first: 9, after: {zero}, before: {three}"), "", 2, 1),
            (format!("first: 9, after: {zero}, before: {three}"), next, 2, 2),
            (format!("first: 9, after: {zero}, before: {three}"), previous, 2, 2),
            (format!("first: 9, after: {zero}, before: {three}"), both, 2, 3),
            (format!("first: 1, after: {zero}, before: {three}"), both, 1, 2),
            (format!("last: 2, before: {three}"), "", 2, 1),
            (format!("last: 2, before: {three}"), previous, 2, 1),
            (format!("last: 2, before: {three}"), next, 2, 2),
            (format!("last: 2, before: {three}"), "pageInfo { startCursor endCursor }", 2, 1),
            (format!("last: 2, before: {three}"), "pageInfo { hasNextPage @skip(if: true) endCursor }", 2, 1),
        ];
        for (arguments, info, rows, statements) in cases {
            let (found, ran) = ask(&arguments, &format!("edges {{ node {{ number }} }} {info}")).await;
            assert_eq!(found["edges"].as_array().map(Vec::len), Some(rows), "{arguments} {info}: {found}");
            let flags = found["pageInfo"].as_object().into_iter().flatten().filter(|(name, _)| name.starts_with("has"));
            assert!(flags.map(|(_, flag)| flag).all(|flag| *flag == true), "{arguments} {info}: {found}");
            assert_eq!(ran, statements, "{arguments} {info}");
        }
        // Without edges and without `pageInfo`, no record is read.
        for fields in ["totalCount", "__typename"] {
            assert_eq!(ask(&format!("first: 2, after: {zero}"), fields).await.1, 0, "{fields}");
        }
    }
}

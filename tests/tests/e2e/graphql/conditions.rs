//! The typed argument `where`: the conditions that it accepts and refuses, and the types that a caller sees.

use blockbase_tests::{Admin, on_both_engines};
use serde_json::{Value, json};

/// The value of a `uuid` field.
const SERIAL: &str = "0198f2a4-7c1e-7b60-9d35-2f4b6a8c1e0d";

async fn define(admin: &Admin<'_>) {
    admin.define("desk", json!([{ "name": "name", "type": "text" }])).await;
    admin
        .define(
            "ticket",
            json!([
                { "name": "title", "type": "text" },
                { "name": "points", "type": "integer" },
                { "name": "done", "type": "boolean" },
                { "name": "kinds", "type": "multi_enum", "options": ["a", "b"] },
                { "name": "stars", "type": "rating" },
                { "name": "price", "type": "decimal" },
                { "name": "serial", "type": "uuid" },
                { "name": "state", "type": "enum", "options": ["open", "done"] },
                { "name": "shade", "type": "enum", "options": ["light blue"] },
            ]),
        )
        .await;
    admin.relate(json!({ "name": "desk", "kind": "many_to_one", "source": "ticket", "target": "desk" })).await;
    let desk = admin.make("desk", json!({ "name": "front" })).await;
    let first = json!({
        "title": "a", "points": 1, "done": true, "kinds": ["a"], "desk_id": desk,
        "stars": 4, "price": 1.5, "serial": SERIAL, "state": "open", "shade": "light blue",
    });
    admin.make("ticket", first).await;
    admin.make("ticket", json!({ "title": "b", "points": 2, "desk_id": desk })).await;
    admin.make("ticket", json!({ "title": "c", "kinds": ["a", "b"] })).await;
}

async fn ask(caller: &Admin<'_>, query: &str, variables: Value) -> Value {
    caller.post("/api/v1/graphql", json!({ "query": query, "variables": variables })).await.json()
}

/// The titles that a condition finds. The condition is a literal in the document.
async fn titles(caller: &Admin<'_>, condition: &str) -> String {
    let query = format!("{{ ticket(where: {condition}, sort: [{{ field: \"title\" }}]) {{ data {{ title }} }} }}");
    let answer = ask(caller, &query, json!({})).await;
    let rows = answer["data"]["ticket"]["data"].as_array().unwrap_or_else(|| panic!("{condition}: {answer}"));
    rows.iter().map(|row| row["title"].as_str().unwrap()).collect()
}

/// The code of the only error.
async fn code(caller: &Admin<'_>, query: &str, variables: Value) -> String {
    let answer = ask(caller, query, variables).await;
    assert_eq!(answer["errors"].as_array().map(Vec::len), Some(1), "{answer}");
    answer["errors"][0]["extensions"]["code"].as_str().unwrap().to_owned()
}

/// The code of the first error, for a variable that is JSON text.
async fn code_of_text(caller: &Admin<'_>, condition: &str) -> Value {
    let body = format!(r#"{{"query":{},"variables":{{"w":{condition}}}}}"#, json!(BY_VARIABLE));
    let request = caller.request("POST", "/api/v1/graphql").header("content-type", "application/json").body(body);
    caller.server.send(request).await.json()["errors"][0]["extensions"]["code"].clone()
}

const BY_VARIABLE: &str = "query($w: Ticket_Where) { ticket(where: $w) { data { title } } }";

on_both_engines! {
    async fn a_typed_condition_finds_records(server: Server) {
        let admin = server.admin().await;
        define(&admin).await;
        for (condition, expected) in [
            ("{ title: { eq: \"a\" } }", "a"),
            ("{ points: { gte: 1, lt: 2 } }", "a"),
            ("{ _or: [{ points: { eq: 2 } }, { done: { is_null: true } }] }", "bc"),
            // A single value counts as a list of one item.
            ("{ _or: { points: { eq: 2 } } }", "b"),
            ("{ _not: { points: { gt: 1 } } }", "ac"),
            ("{ done: { eq: null } }", "bc"),
            ("{ kinds: { in: [\"b\", null] } }", "bc"),
            ("{ kinds: { in: \"b\" } }", "c"),
            ("{ desk: { name: { eq: \"front\" } } }", "ab"),
            ("{ desk: { name: { neq: \"front\" } } }", "c"),
            ("{ desk: { ticket_by_desk: { some: { points: { eq: 2 } } } } }", "ab"),
            ("{ desk: { ticket_by_desk: { every: { points: { eq: 2 } }, none: { points: { eq: 9 } } } } }", "c"),
            ("{ desk: { ticket_by_desk: { some: { desk: { name: { eq: \"front\" } } } } } }", "ab"),
            ("{ created_by: { eq: \"$user.id\" } }", "abc"),
            ("{ title: { in: \"$user.roles\" } }", ""),
            ("null", "abc"),
            ("{}", "abc"),
        ] {
            assert_eq!(titles(&admin, condition).await, expected, "{condition}");
        }
        let both = "query($p: Int, $list: [Ticket_Where!]) { ticket(where: { points: { gte: $p }, _or: $list }) { data { title } }
            ticket_aggregate(fn: count, where: { points: { gte: $p } }) { value } }";
        let answer = ask(&admin, both, json!({ "p": 1, "list": [{ "title": { "eq": "b" } }] })).await;
        assert_eq!(answer["data"], json!({ "ticket": { "data": [{ "title": "b" }] }, "ticket_aggregate": { "value": 2 } }), "{answer}");
    }

    async fn a_tested_value_has_the_type_of_its_field(server: Server) {
        let admin = server.admin().await;
        define(&admin).await;
        let by_variable = |ty: &str, test: &str| {
            format!("query($v: {ty}) {{ ticket(where: {{ {test} }}, sort: [{{ field: \"title\" }}]) {{ data {{ title }} }} }}")
        };
        for (ty, test, value, expected) in [
            ("Float", "stars: { gte: $v }", json!(4), "a"),
            ("[Float]", "stars: { in: $v }", json!([4.0, null]), "abc"),
            ("SvcFloatWhere", "stars: $v", json!({ "gt": 4 }), ""),
            ("Float", "price: { eq: $v }", json!(1.5), "a"),
            ("String", "serial: { eq: $v }", json!(SERIAL), "a"),
            ("SvcUuidWhere", "serial: $v", json!({ "in": [SERIAL] }), "a"),
            ("String", "state: { eq: $v }", json!("open"), "a"),
            ("String", "state: { like: $v }", json!("pe"), "a"),
            ("String", "shade: { neq: $v }", json!("light blue"), "bc"),
            ("String", "kinds: { eq: $v }", json!("b"), "c"),
            ("Int", "points: { lte: $v }", json!(1), "a"),
            ("ID", "desk_id: { neq: $v }", json!(SERIAL), "abc"),
        ] {
            let answer = ask(&admin, &by_variable(ty, test), json!({ "v": value })).await;
            let rows = answer["data"]["ticket"]["data"].as_array().unwrap_or_else(|| panic!("{ty}, {test}: {answer}"));
            let found: String = rows.iter().map(|row| row["title"].as_str().unwrap()).collect();
            assert_eq!(found, expected, "{ty}, {test}");
        }
        let of_serial = format!("{{ serial: {{ gte: \"{SERIAL}\" }} }}");
        for literal in ["{ stars: { gte: 3, lt: 5.0 } }", "{ state: { in: [\"open\", \"done\"] } }", of_serial.as_str()] {
            assert_eq!(titles(&admin, literal).await, "a", "{literal}");
        }
        // The values of a rating are whole numbers, and those of an enum are strings here. A part of a UUID cannot be found.
        for (ty, test, value, expected) in [
            ("Float", "stars: { gte: $v }", json!(3.5), "invalid_value"),
            ("Int", "stars: { gte: $v }", json!(3), "invalid_request"),
            ("ID", "serial: { eq: $v }", json!(SERIAL), "invalid_request"),
            ("String", "serial: { eq: $v }", json!("x"), "invalid_value"),
            ("String", "serial: { like: $v }", json!("0198"), "invalid_request"),
            ("Ticket_state", "state: { eq: $v }", json!("open"), "invalid_request"),
        ] {
            assert_eq!(code(&admin, &by_variable(ty, test), json!({ "v": value })).await, expected, "{ty}, {test}");
        }
        let literal = "{ ticket(where: { state: { eq: open } }) { data { title } } }";
        assert_eq!(code(&admin, literal, json!({})).await, "invalid_request");
        let filter = "{ ticket(filter: [{ field: \"state\", value: open }]) { data { title } } }";
        assert_eq!(ask(&admin, filter, json!({})).await["data"]["ticket"]["data"], json!([{ "title": "a" }]));
    }

    async fn a_condition_of_another_form_is_refused(server: Server) {
        let admin = server.admin().await;
        define(&admin).await;
        for (condition, expected) in [
            (json!({ "nothing": { "eq": 1 } }), "unknown_field"),
            (json!({ "desk": { "nothing": { "eq": 1 } } }), "unknown_field"),
            (json!({ "points": 1 }), "invalid_request"),
            (json!({ "points": { "eq": "x" } }), "invalid_request"),
            (json!({ "points": { "like": "x" } }), "unknown_field"),
            (json!({ "points": { "near": 1 } }), "unknown_field"),
            (json!({ "points": {} }), "invalid_request"),
            (json!({ "points": { "is_null": false } }), "invalid_request"),
            (json!({ "_or": [{}, 1] }), "invalid_request"),
            (json!({ "_xor": [] }), "unknown_field"),
            (json!({ "desk": { "ticket_by_desk": {} } }), "invalid_request"),
            (json!({ "desk": null }), "invalid_request"),
            // Relations that lead in a circle: three of them are allowed.
            (
                json!({ "desk": { "ticket_by_desk": { "some": { "desk": { "ticket_by_desk": { "some": {} } } } } } }),
                "invalid_request",
            ),
            // A variable that a client left as null is not a test for null.
            (json!({ "done": null }), "invalid_request"),
            (json!({ "title": { "eq": "$nobody" } }), "invalid_request"),
            (json!({ "title": { "eq": "$key.id" } }), "invalid_value"),
            (json!({ "desk.name": { "eq": "front" } }), "unknown_field"),
        ] {
            let found = code(&admin, BY_VARIABLE, json!({ "w": condition })).await;
            let is_unknown = expected == "unknown_field" && found == "invalid_request" && condition["points"].is_object();
            assert!(found == expected || is_unknown, "{condition}: {found}");
        }
        let with_null = "query($d: SvcBooleanWhere) { ticket(where: { done: $d }) { data { title } } }";
        assert_eq!(code(&admin, with_null, json!({ "d": null })).await, "invalid_request");
        assert!(ask(&admin, with_null, json!({})).await["data"]["ticket"]["data"].is_array());
        // Conditions with many parts or tests.
        let many = json!({ "w": { "_or": vec![json!({}); 200_000] } });
        assert_eq!(code(&admin, BY_VARIABLE, many).await, "invalid_request");
        let list = "query($w: [Ticket_Where!]) { ticket(where: { _or: $w }) { data { title } } }";
        assert_eq!(code(&admin, list, json!({ "w": vec![json!({}); 200_000] })).await, "invalid_request");
        let any = |count: usize| json!({ "_or": vec![json!({ "title": { "eq": "a" } }); count] });
        for condition in [any(101), any(10_000), json!({ "_and": vec![any(100); 100] })] {
            assert_eq!(code(&admin, BY_VARIABLE, json!({ "w": condition })).await, "invalid_request");
        }
        // Conditions with many levels, and with a key that occurs twice, as variables and as literals.
        for levels in [1_000, 20_000] {
            let deep = format!("{}{{}}{}", r#"{"_not":"#.repeat(levels), "}".repeat(levels));
            assert_eq!(code_of_text(&admin, &deep).await, "invalid_request", "{levels}");
        }
        let deep = format!("{{ ticket(where: {}{{}}{}) {{ data {{ title }} }} }}", "{_not:".repeat(1_000), "}".repeat(1_000));
        assert_eq!(code(&admin, &deep, json!({})).await, "invalid_request");
        for twice in [
            r#"{"title":{"eq":"a"},"title":{"eq":"b"}}"#,
            r#"{"title":{"eq":"a","eq":"b"}}"#,
            r#"{"_or":[{"desk":{"ticket_by_desk":{"some":{},"some":{}}}}]}"#,
        ] {
            assert_eq!(code_of_text(&admin, twice).await, "invalid_request", "{twice}");
        }
        for query in [
            "{ ticket(where: { title: { eq: \"a\" }, title: { eq: \"b\" } }) { data { title } } }",
            "{ ticket(where: { title: { eq: \"a\", eq: \"b\" } }) { data { title } } }",
            "{ ticket_aggregate(fn: count, where: { _or: [{ desk: { ticket_by_desk: { some: {}, some: {} } } }] }) { value } }",
            "query($w: Ticket_Where = { title: { eq: \"a\" }, title: { eq: \"b\" } }) { ticket(where: $w) { data { title } } }",
        ] {
            assert_eq!(code(&admin, query, json!({})).await, "invalid_request", "{query}");
        }
    }

    async fn a_refusal_names_its_place_in_the_condition(server: Server) {
        let admin = server.admin().await;
        define(&admin).await;
        for (condition, literal, place) in [
            // The types of the condition do not allow these.
            (
                json!({ "_or": [{}, { "points": { "eq": "x" } }] }),
                r#"{ _or: [{}, { points: { eq: "x" } }] }"#,
                "`_or`: `[1]`: `points`: `eq`: ",
            ),
            (
                json!({ "_and": [{ "desk": { "nothing": { "eq": 1 } } }] }),
                "{ _and: [{ desk: { nothing: { eq: 1 } } }] }",
                "`_and`: `[0]`: `desk`: ",
            ),
            (json!({ "_not": { "points": 1 } }), "{ _not: { points: 1 } }", "`_not`: `points`: "),
            (json!({ "_or": [{}, null] }), "{ _or: [{}, null] }", "`_or`: `[1]`: "),
            // These have the right types. Their paths are those of REST.
            (json!({ "_or": [{}, { "points": {} }] }), "{ _or: [{}, { points: {} }] }", "`where._or[1].points`: "),
            (
                json!({ "desk": { "ticket_by_desk": { "some": { "title": { "in": ["a", "$nobody"] } } } } }),
                r#"{ desk: { ticket_by_desk: { some: { title: { in: ["a", "$nobody"] } } } } }"#,
                "`where.desk.ticket_by_desk.some.title.in[1]`: ",
            ),
            (
                json!({ "desk": { "ticket_by_desk": { "some": { "desk": { "ticket_by_desk": { "some": {} } } } } } }),
                "{ desk: { ticket_by_desk: { some: { desk: { ticket_by_desk: { some: {} } } } } } }",
                "`where.desk.ticket_by_desk.some.desk.ticket_by_desk`: ",
            ),
        ] {
            let by_literal = format!("{{ ticket(where: {literal}) {{ data {{ title }} }} }}");
            for (query, variables) in [(BY_VARIABLE, json!({ "w": condition })), (by_literal.as_str(), json!({}))] {
                let answer = ask(&admin, query, variables).await;
                let message = answer["errors"][0]["message"].as_str().unwrap_or_else(|| panic!("{query}: {answer}"));
                assert!(message.contains(place), "{query}: {message}");
            }
        }
    }

    async fn a_default_of_a_variable_leads_through_relations(server: Server) {
        let admin = server.admin().await;
        define(&admin).await;
        // The schema is new. The first document does not have to wait until it is complete.
        let query = "query($w: Ticket_Where = { desk: { name: { eq: \"front\" } } }) { ticket(where: $w) { pagination { totalCount } } }";
        let answer = ask(&admin, query, json!({})).await;
        assert_eq!(answer["data"]["ticket"]["pagination"]["totalCount"], 2, "{answer}");
    }

    async fn an_object_has_its_types_of_conditions_once(server: Server) {
        let admin = server.admin().await;
        define(&admin).await;
        let schema = ask(&admin, "{ __schema { types { name } } }", json!({})).await;
        let types = schema["data"]["__schema"]["types"].as_array().unwrap_or_else(|| panic!("{schema}"));
        let mut names: Vec<&str> = types.iter().filter_map(|ty| ty["name"].as_str()).collect();
        names.retain(|name| name.contains("_Where") && (name.starts_with("Ticket") || name.starts_with("Desk")));
        names.sort_unstable();
        // A relation to many leads to tickets, but none leads to desks.
        assert_eq!(names, ["Desk_Where", "Ticket_Where", "Ticket_WhereMany"]);
        // All conditions on an object use these types.
        let fields = async |ty: &str| {
            let shown = "inputFields { name type { name ofType { ofType { name } } } }";
            let answer = ask(&admin, &format!("{{ __type(name: \"{ty}\") {{ {shown} }} }}"), json!({})).await;
            let fields = answer["data"]["__type"]["inputFields"].as_array().unwrap_or_else(|| panic!("{ty}: {answer}"));
            let text = |name: &Value| name.as_str().map(str::to_owned);
            // `_and` and `_or` take lists.
            let named = |ty: &Value| text(&ty["name"]).or_else(|| text(&ty["ofType"]["ofType"]["name"]));
            fields.iter().map(|field| (text(&field["name"]), named(&field["type"]))).collect::<Vec<_>>()
        };
        for (ty, field, expected) in [
            ("Ticket_Where", "_and", "Ticket_Where"),
            ("Ticket_Where", "_or", "Ticket_Where"),
            ("Ticket_Where", "_not", "Ticket_Where"),
            ("Ticket_Where", "title", "SvcStringWhere"),
            ("Ticket_Where", "points", "SvcIntWhere"),
            ("Ticket_Where", "done", "SvcBooleanWhere"),
            ("Ticket_Where", "kinds", "SvcOptionsWhere"),
            ("Ticket_Where", "stars", "SvcFloatWhere"),
            ("Ticket_Where", "price", "SvcFloatWhere"),
            ("Ticket_Where", "serial", "SvcUuidWhere"),
            ("Ticket_Where", "state", "SvcStringWhere"),
            ("Ticket_Where", "shade", "SvcStringWhere"),
            ("Ticket_Where", "id", "SvcIDWhere"),
            ("Ticket_Where", "desk_id", "SvcIDWhere"),
            ("Ticket_Where", "created_at", "SvcDateTimeWhere"),
            ("Ticket_Where", "desk", "Desk_Where"),
            ("Desk_Where", "ticket_by_desk", "Ticket_WhereMany"),
            ("Ticket_WhereMany", "some", "Ticket_Where"),
            ("Ticket_WhereMany", "none", "Ticket_Where"),
            ("Ticket_WhereMany", "every", "Ticket_Where"),
        ] {
            let found = fields(ty).await;
            let wanted = (Some(field.to_owned()), Some(expected.to_owned()));
            assert!(found.contains(&wanted), "{ty}.{field}: {expected} expected in {found:?}");
        }
        let query = "{ __schema { queryType { fields { name args { name type { name } } } } } }";
        let arguments = ask(&admin, query, json!({})).await;
        let roots = arguments["data"]["__schema"]["queryType"]["fields"].as_array().unwrap_or_else(|| panic!("{arguments}"));
        for root in ["ticket", "ticket_aggregate", "ticket_groups", "ticket_connection"] {
            let field = roots.iter().find(|field| field["name"] == root).unwrap_or_else(|| panic!("no {root} in {arguments}"));
            let argument = json!({ "name": "where", "type": { "name": "Ticket_Where" } });
            assert!(field["args"].as_array().unwrap().contains(&argument), "{field}");
        }
    }

    async fn a_field_that_is_called_where_keeps_its_type(server: Server) {
        let admin = server.admin().await;
        admin.define("visit", json!([{ "name": "where", "type": "enum", "options": ["here", "there"] }])).await;
        // The names of the two types differ only in the case of a letter.
        let types = "{ column: __type(name: \"Visit_where\") { kind } condition: __type(name: \"Visit_Where\") { kind } }";
        let answer = ask(&admin, types, json!({})).await;
        assert_eq!(answer["data"], json!({ "column": { "kind": "ENUM" }, "condition": { "kind": "INPUT_OBJECT" } }), "{answer}");
        let create = "mutation($place: Visit_where) { create_visit(input: { where: $place }) { where } }";
        for place in ["here", "there"] {
            let made = ask(&admin, create, json!({ "place": place })).await;
            assert_eq!(made["data"]["create_visit"]["where"], place, "{made}");
        }
        assert_eq!(code(&admin, create, json!({ "place": { "eq": "here" } })).await, "invalid_request");
        let find = "query($w: Visit_Where) { visit(where: $w) { data { where } }
            visit_aggregate(fn: count, where: $w) { value } }";
        let found = ask(&admin, find, json!({ "w": { "where": { "eq": "there" } } })).await;
        let expected = json!({ "visit": { "data": [{ "where": "there" }] }, "visit_aggregate": { "value": 1 } });
        assert_eq!(found["data"], expected, "{found}");
    }

    async fn a_condition_shows_the_objects_that_its_caller_may_know(server: Server) {
        let admin = server.admin().await;
        define(&admin).await;
        let permissions = json!([{ "resource": "ticket", "actions": ["read"] }, { "resource": "data", "actions": ["read"] }]);
        let role = admin.post("/api/v1/roles", json!({ "name": "reader", "permissions": permissions })).await.data();
        let ann = server.with_token(server.sign_up("ann").await);
        let id = ann.get("/api/v1/me").await.json()["userId"].as_str().unwrap().to_owned();
        assert_eq!(admin.post(&format!("/api/v1/users/{id}/roles"), json!({ "roleId": role["id"] })).await.status, 200);
        assert_eq!(titles(&ann, "{ title: { eq: \"a\" } }").await, "a");
        let types = "{ where: __type(name: \"Ticket_Where\") { inputFields { name } } hidden: __type(name: \"Desk_Where\") { name } }";
        let answer = ask(&ann, types, json!({})).await;
        let names: Vec<&str> = answer["data"]["where"]["inputFields"].as_array().unwrap().iter().map(|field| field["name"].as_str().unwrap()).collect();
        assert!(names.contains(&"desk_id") && !names.contains(&"desk"), "{names:?}");
        assert_eq!(answer["data"]["hidden"], Value::Null);
        let hidden = ask(&ann, BY_VARIABLE, json!({ "w": { "desk": { "name": { "eq": "front" } } } })).await;
        let nothing = ask(&ann, BY_VARIABLE, json!({ "w": { "dusk": { "name": { "eq": "front" } } } })).await;
        assert_eq!(hidden.to_string(), nothing.to_string().replace("dusk", "desk"));
    }
}

//! Grants that list fields: the fields of an object that callers know, the cells that they read, and the fields that they may
//! write.

use blockbase_tests::{Admin, Answer, Server, on_both_engines};
use serde_json::{Value, json};

use super::own_grants;
use crate::accounts::roles::{key, role, user};
use crate::data::conditions::encoded;
use crate::events::Stream;
use crate::mcp::Client;

/// People of a company, with their boss, their salary and their skills.
async fn define(admin: &Admin<'_>) {
    admin
        .define(
            "department",
            json!([{ "name": "name", "type": "text", "isUnique": true }, { "name": "budget", "type": "integer" }]),
        )
        .await;
    admin.define("skill", json!([{ "name": "name", "type": "text" }])).await;
    admin
        .define(
            "person",
            json!([
                { "name": "name", "type": "text", "required": true },
                { "name": "email", "type": "text", "isUnique": true },
                { "name": "salary", "type": "integer", "indexed": true },
                { "name": "state", "type": "enum", "options": ["active", "gone"], "default": "active" },
                { "name": "user_id", "type": "text" },
            ]),
        )
        .await;
    admin.relate(json!({ "name": "department", "kind": "many_to_one", "source": "person", "target": "department" })).await;
    admin.relate(json!({ "name": "skills", "kind": "many_to_many", "source": "person", "target": "skill" })).await;
}

/// The names of a record's members.
fn keys(record: &Value) -> Vec<&str> {
    record.as_object().unwrap().keys().map(String::as_str).collect()
}

fn path(id: &str) -> String {
    format!("/api/v1/data/person/{id}")
}

async fn list(caller: &Admin<'_>, query: &str) -> Vec<Value> {
    let answer = caller.get(&format!("/api/v1/data/person?{query}")).await;
    assert_eq!(answer.status, 200, "{query}: {}", answer.text);
    answer.data().as_array().unwrap().clone()
}

async fn names(caller: &Admin<'_>, query: &str) -> Vec<String> {
    list(caller, query).await.iter().map(|row| row["name"].as_str().unwrap().to_owned()).collect()
}

async fn graphql(caller: &Admin<'_>, query: &str) -> Value {
    caller.post("/api/v1/graphql", json!({ "query": query })).await.json()
}

async fn tool(caller: &Admin<'_>, name: &str, arguments: Value) -> String {
    let call = json!({ "jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": { "name": name, "arguments": arguments } });
    let request =
        caller.request("POST", "/api/v1/mcp?sessions=none").header("accept", "application/json, text/event-stream").json(&call);
    let answer: Answer = caller.server.send(request).await;
    assert_eq!(answer.status, 200, "{}", answer.text);
    answer.text
}

/// Makes the person with this name, or finds them by their address.
async fn upsert(caller: &Admin<'_>, name: &str) -> Answer {
    let body = json!({ "email": format!("{name}@company.example"), "name": name });
    caller.post("/api/v1/data/person?on_conflict=email", body).await
}

/// The errors of a condition that tests a field that the caller does not know, on all surfaces.
async fn unknown(caller: &Admin<'_>, condition: &Value) -> Vec<String> {
    let mut texts = Vec::new();
    let query = caller.post("/api/v1/data/person/query", json!({ "where": condition })).await;
    query.expect_error(400, "unknown_field");
    texts.push(query.text);
    for path in ["?", "/aggregate?fn=count&", "/export?format=csv&"] {
        let address = format!("/api/v1/data/person{path}where={}", encoded(&condition.to_string()));
        let answer = caller.get(&address).await;
        answer.expect_error(400, "unknown_field");
        texts.push(answer.text);
    }
    for (name, arguments) in [
        ("query_data", json!({ "object_name": "person", "where": condition })),
        ("aggregate_data", json!({ "object_name": "person", "where": condition, "fn": "count" })),
    ] {
        texts.push(tool(caller, name, arguments).await);
    }
    let query = "query($w: Person_Where) { person(where: $w) { data { name } } }";
    texts.push(caller.post("/api/v1/graphql", json!({ "query": query, "variables": { "w": condition } })).await.text);
    assert!(texts.iter().all(|text| text.contains("unknown_field")), "{condition}: {texts:?}");
    texts
}

struct World<'a> {
    admin: Admin<'a>,
    departments: [String; 2],
    /// `ada` earns 300, `bob` 100, `cleo` 200. Ada and Bob belong to the first department.
    people: [String; 3],
}

async fn world(server: &Server) -> World<'_> {
    let admin = server.admin().await;
    define(&admin).await;
    let one = admin.make("department", json!({ "name": "one", "budget": 1000 })).await;
    let two = admin.make("department", json!({ "name": "two", "budget": 2000 })).await;
    let person = async |name: &str, salary: i64, department: &str| {
        let email = format!("{name}@company.example");
        admin.make("person", json!({ "name": name, "email": email, "salary": salary, "department_id": department })).await
    };
    let people = [person("ada", 300, &one).await, person("bob", 100, &one).await, person("cleo", 200, &two).await];
    World { admin, departments: [one, two], people }
}

fn data() -> Value {
    json!({ "resource": "data", "actions": ["read"] })
}

on_both_engines! {
    async fn a_field_that_no_grant_lists_is_unknown(server: Server) {
        let World { admin, people: [ada, ..], .. } = world(&server).await;
        let fields = json!({ "read": ["name", "state", "department_id", "skills"] });
        role(&admin, "clerk", json!([
            { "resource": "person", "actions": ["read"], "fields": fields },
            { "resource": "department", "actions": ["read"], "fields": { "read": { "except": ["budget"] } } },
            { "resource": "skill", "actions": ["read"] },
            { "resource": "events", "actions": ["read"] },
            data(),
        ])).await;
        let (clerk, _) = user(&admin, "clerk", Some("clerk")).await;

        let rows = list(&clerk, "").await;
        assert_eq!(keys(&rows[0]), ["id", "name", "state", "department_id"]);
        // The caller may not read `created_at`. So the order is by id, and the oldest record comes first.
        assert_eq!(names(&clerk, "").await, ["ada", "bob", "cleo"]);
        assert_eq!(keys(&clerk.get(&path(&ada)).await.data()), ["id", "name", "state", "department_id"]);
        assert_eq!(admin.get(&path(&ada)).await.data()["salary"], 300);
        for query in ["select=salary", "sort=salary", "sort=-created_at", "salary=300", "email%5Bilike%5D=ada", "created_by%5Bis_null%5D=true"] {
            clerk.get(&format!("/api/v1/data/person?{query}")).await.expect_error(400, "unknown_field");
        }
        for condition in [json!({ "salary": 300 }), json!({ "_not": { "salary": { "gt": 1 } } }), json!({ "department": { "budget": 1000 } })] {
            clerk.post("/api/v1/data/person/query", json!({ "where": condition })).await.expect_error(400, "unknown_field");
            admin.post("/api/v1/data/person/query", json!({ "where": condition })).await.data();
            for path in ["?", "/aggregate?fn=count&", "/export?format=csv&"] {
                let address = format!("/api/v1/data/person{path}where={}", encoded(&condition.to_string()));
                clerk.get(&address).await.expect_error(400, "unknown_field");
                assert_eq!(admin.get(&address).await.status, 200, "{address}");
            }
            for (name, arguments) in [
                ("query_data", json!({ "object_name": "person", "where": condition })),
                ("aggregate_data", json!({ "object_name": "person", "where": condition, "fn": "count" })),
            ] {
                let refused = tool(&clerk, name, arguments).await;
                assert!(refused.contains("unknown_field"), "{name} {condition}: {refused}");
            }
        }
        // A wrong test of a hidden field has the error of a field that does not exist. So it shows nothing about the field.
        for condition in [
            json!({ "salary": "x" }),
            json!({ "salary": { "near": 1 } }),
            json!({ "salary": {} }),
            json!({ "salary.x": 1 }),
        ] {
            let absent: Value = serde_json::from_str(&condition.to_string().replace("salary", "absent")).unwrap();
            let of_absent = unknown(&clerk, &absent).await;
            let renamed: Vec<String> = of_absent.iter().map(|text| text.replace("absent", "salary")).collect();
            assert_eq!(unknown(&clerk, &condition).await, renamed, "{condition}");
            let of_admin = admin.post("/api/v1/data/person/query", json!({ "where": condition })).await;
            assert!(of_admin.status == 400 && of_admin.json()["error"] != "unknown_field", "{condition}: {}", of_admin.text);
        }
        // A search uses only the fields that the caller knows.
        assert_eq!(names(&clerk, "search=company.example").await, Vec::<String>::new());
        assert_eq!(names(&clerk, "search=cle").await, ["cleo"]);
        assert_eq!(names(&admin, "search=company.example&sort=name").await, ["ada", "bob", "cleo"]);
        for query in ["fn=sum&field=salary", "fn=count&field=email", "fn=count&salary%5Bgt%5D=1", "fn=count&groupBy=salary", "fn=count,max:salary&groupBy=state"] {
            clerk.get(&format!("/api/v1/data/person/aggregate?{query}")).await.expect_error(400, "unknown_field");
        }
        let exported = clerk.get("/api/v1/data/person/export?format=csv").await.text;
        assert_eq!(exported.lines().next(), Some("id,name,state,department_id"), "{exported}");
        clerk.get("/api/v1/data/person/export?format=csv&select=salary").await.expect_error(400, "unknown_field");
        let with_department = list(&clerk, "expand=department&sort=name").await;
        assert_eq!(keys(&with_department[0]["department"]), ["id", "name", "created_at", "updated_at", "created_by", "updated_by"]);

        // The descriptions of the object do not contain the hidden fields either.
        let ty = graphql(&clerk, "{ __type(name: \"Person\") { fields { name type { kind } } } }").await;
        let described: Vec<(&str, &str)> = ty["data"]["__type"]["fields"].as_array().unwrap().iter()
            .map(|field| (field["name"].as_str().unwrap(), field["type"]["kind"].as_str().unwrap())).collect();
        assert_eq!(described, [("id", "NON_NULL"), ("name", "SCALAR"), ("state", "ENUM"), ("department_id", "SCALAR"), ("department", "OBJECT"), ("skills", "NON_NULL")]);
        let shown = graphql(&clerk, "{ person(sort: [{ field: \"name\" }]) { data { name } } }").await;
        assert_eq!(shown["data"]["person"]["data"][0], json!({ "name": "ada" }), "{shown}");
        for query in ["{ person { data { salary } } }", "{ person(where: { salary: { gt: 1 } }) { data { name } } }", "{ person(sort: [{ field: \"salary\" }]) { data { name } } }"] {
            let refused = graphql(&clerk, query).await;
            assert!(refused["errors"][0]["message"].as_str().unwrap().contains("salary"), "{query}: {refused}");
            assert_eq!(graphql(&admin, query).await["errors"], Value::Null, "{query}");
        }
        let document = clerk.get("/api/v1/openapi.json").await.json();
        let described = &document["components"]["schemas"]["Person"]["properties"];
        assert_eq!(keys(described), ["id", "name", "state", "department_id", "department", "skills"]);
        let list_parameters = document["paths"]["/api/v1/data/person"]["get"]["parameters"].to_string();
        assert!(list_parameters.contains("state") && !list_parameters.contains("salary"), "{list_parameters}");
        let whole = admin.get("/api/v1/openapi.json").await.json();
        assert!(whole["components"]["schemas"]["Person"]["properties"]["salary"].is_object());
        let described = tool(&clerk, "get_object", json!({ "object_name": "person" })).await;
        assert!(described.contains("department_id") && !described.contains("salary") && !described.contains("created_at"), "{described}");
        // No part of a description names the hidden fields, not even in an enum, a type of conditions or an example.
        let texts = "name description";
        let types = format!("{{ __schema {{ types {{ {texts} fields {{ {texts} args {{ {texts} }} }} inputFields {{ {texts} }} enumValues {{ {texts} }} }} }} }}");
        let tools = r#"{"jsonrpc":"2.0","id":1,"method":"tools/list","params":{}}"#;
        for (what, of_clerk, of_admin) in [
            ("OpenAPI", document.to_string(), whole.to_string()),
            ("GraphQL", graphql(&clerk, &types).await.to_string(), graphql(&admin, &types).await.to_string()),
            ("objects", clerk.get("/api/v1/data").await.text, String::new()),
            ("tools", Client::of(&clerk).send(tools).await.text, String::new()),
        ] {
            for hidden in ["salary", "budget", "Salary", "Budget"] {
                assert!(!of_clerk.contains(hidden), "{what}: {hidden}");
            }
            assert!(of_admin.is_empty() || (of_admin.contains("salary") && of_admin.contains("budget")), "{what}");
        }
        // Callers who may read `objects` see the whole schema, and still not the values.
        role(&admin, "designer", json!([
            { "resource": "objects", "actions": ["read"] },
            { "resource": "person", "actions": ["read"], "fields": { "read": ["name"] } },
        ])).await;
        let (designer, _) = user(&admin, "designer", Some("designer")).await;
        for document in ["objects", "objects/person", "schema"] {
            assert!(designer.get(&format!("/api/v1/{document}")).await.text.contains("salary"), "{document}");
        }
        designer.get("/api/v1/data/person?select=salary").await.expect_error(400, "unknown_field");
    }

    async fn a_cell_is_null_where_no_grant_reaches_its_row_and_lists_its_field(server: Server) {
        let World { admin, departments: [one, _], people: [ada, bob, cleo] } = world(&server).await;
        // The name and state of everybody, and all fields except `email` in the first department.
        role(&admin, "lead", json!([
            { "resource": "person", "actions": ["read"], "fields": { "read": ["name", "state", "department_id"] } },
            { "resource": "person", "actions": ["read"], "where": { "department.name": "one" }, "fields": { "read": { "except": ["email"] } } },
            { "resource": "department", "actions": ["read"] },
            { "resource": "events", "actions": ["read"] },
            data(),
        ])).await;
        let (lead, _) = user(&admin, "lead", Some("lead")).await;
        let rows = list(&lead, "sort=name").await;
        let salaries: Vec<&Value> = rows.iter().map(|row| &row["salary"]).collect();
        assert_eq!(salaries, [&json!(300), &json!(100), &Value::Null]);
        assert!(rows.iter().all(|row| row.get("email").is_none()), "{rows:?}");
        assert_eq!(rows[2]["created_at"], Value::Null);
        assert_eq!(lead.get(&path(&cleo)).await.data()["salary"], Value::Null);
        assert_eq!(lead.get(&path(&bob)).await.data()["salary"], 100);
        // Every query on the field uses only the values that the caller can read.
        for (query, expected) in [
            ("salary=200", vec![]),
            ("salary%5Bgt%5D=50", vec!["ada", "bob"]),
            ("salary%5Bis_null%5D=true", vec!["cleo"]),
            ("salary%5Bneq%5D=300", vec!["bob", "cleo"]),
            ("salary%5Bin%5D=100,200", vec!["bob"]),
            ("where=%7B%22_not%22:%7B%22salary%22:%7B%22gt%22:150%7D%7D%7D", vec!["bob", "cleo"]),
        ] {
            let mut found = names(&lead, query).await;
            found.sort();
            assert_eq!(found, expected, "{query}");
        }
        assert_eq!(names(&lead, "sort=-salary,name&salary%5Bis_not_null%5D=true").await, ["ada", "bob"]);
        // A hidden value sorts like null, regardless of its real value.
        let by_salary = names(&lead, "sort=salary,name").await;
        admin.patch(&path(&cleo), json!({ "salary": 5000 })).await.data();
        assert_eq!(names(&lead, "sort=salary,name").await, by_salary);
        let aggregate = async |query: &str| lead.get(&format!("/api/v1/data/person/aggregate?{query}")).await.json()["data"].clone();
        let sum = aggregate("fn=sum&field=salary").await;
        assert_eq!((&sum["value"], &sum["filteredCount"]), (&json!(400), &json!(3)), "{sum}");
        assert_eq!(aggregate("fn=max&field=salary").await["value"], 300);
        assert_eq!(aggregate("fn=count&field=salary").await["value"], 2);
        assert_eq!(aggregate("fn=count&salary%5Bgte%5D=5000").await["value"], 0);
        let paged = lead.get("/api/v1/data/person?salary%5Bgt%5D=1&pageSize=1&sort=name").await.json();
        assert_eq!((&paged["pagination"]["totalCount"], &paged["data"][0]["name"]), (&json!(2), &json!("ada")));
        let exported = lead.get("/api/v1/data/person/export?format=ndjson&sort=name").await.text;
        let last: Value = serde_json::from_str(exported.lines().last().unwrap()).unwrap();
        assert_eq!((&last["name"], &last["salary"]), (&json!("cleo"), &Value::Null));
        // The same applies to conditions on related rows.
        let departments = lead.post("/api/v1/data/department/query", json!({ "where": { "person_by_department": { "some": { "salary": { "gt": 1000 } } } } })).await;
        assert_eq!(departments.data(), json!([]), "{}", departments.text);
        let departments = lead.post("/api/v1/data/department/query", json!({ "where": { "person_by_department": { "some": { "salary": 300 } } } })).await;
        assert_eq!(departments.data()[0]["id"], json!(one), "{}", departments.text);
        let expanded = lead.get("/api/v1/data/department?sort=name&expand=person_by_department").await.data();
        assert_eq!(expanded[1]["person_by_department"][0]["salary"], Value::Null, "{expanded}");
        let shown = graphql(&lead, "{ person(sort: [{ field: \"name\" }]) { data { name salary } } }").await;
        assert_eq!(shown["data"]["person"]["data"][2], json!({ "name": "cleo", "salary": null }), "{shown}");
        assert_eq!(shown["data"]["person"]["data"][0], json!({ "name": "ada", "salary": 300 }));
        // If a person leaves the department, their salary is hidden.
        admin.patch(&path(&ada), json!({ "department_id": null })).await.data();
        assert_eq!(lead.get(&path(&ada)).await.data()["salary"], Value::Null);
    }

    async fn pages_by_cursors_sort_a_hidden_cell_as_null(server: Server) {
        let World { admin, people: [_, _, cleo], .. } = world(&server).await;
        // Of the second department, only the department is known. So a name, which every record has, can be hidden too.
        role(&admin, "lead", json!([
            { "resource": "person", "actions": ["read"], "fields": { "read": ["department_id"] } },
            { "resource": "person", "actions": ["read"], "where": { "department.name": "one" }, "fields": { "read": { "except": ["email"] } } },
            { "resource": "department", "actions": ["read"] },
            data(),
        ])).await;
        let (lead, _) = user(&admin, "lead", Some("lead")).await;
        let page = async |query: &str| {
            let answer = lead.get(&format!("/api/v1/data/person?{query}")).await;
            assert_eq!(answer.status, 200, "{query}: {}", answer.text);
            let body = answer.json();
            let ids: Vec<String> = body["data"].as_array().unwrap().iter().map(|row| row["id"].as_str().unwrap().to_owned()).collect();
            (ids, body["pagination"].clone())
        };
        let sorts = ["salary", "-salary", "name", "-name", "created_at", "-created_at,name", "state,-salary"];
        let mut first = Vec::new();
        for value in [200, 5000, 1] {
            admin.patch(&path(&cleo), json!({ "salary": value, "name": format!("cleo {value}") })).await.data();
            let mut orders = Vec::new();
            for sort in sorts {
                let (listed, _) = page(&format!("sort={sort}")).await;
                assert_eq!(listed.len(), 3, "{sort}");
                // Nulls are last in ascending order, and first in descending order.
                let place = if sort.starts_with('-') { 0 } else { 2 };
                assert_eq!(listed[place], cleo, "{sort}: {listed:?}");
                let (mut forward, mut cursor) = (Vec::new(), String::new());
                for _ in 0..3 {
                    let (ids, pagination) = page(&format!("sort={sort}&pageSize=1&after={cursor}")).await;
                    assert_eq!(pagination["hasNextPage"], json!(forward.len() < 2), "{sort}: {pagination}");
                    forward.extend(ids);
                    cursor = pagination["endCursor"].as_str().unwrap().to_owned();
                }
                let (mut backward, mut cursor) = (Vec::new(), String::new());
                for _ in 0..3 {
                    let (ids, pagination) = page(&format!("sort={sort}&pageSize=1&before={cursor}")).await;
                    assert_eq!(pagination["hasPreviousPage"], json!(backward.len() < 2), "{sort}: {pagination}");
                    backward.extend(ids);
                    cursor = pagination["startCursor"].as_str().unwrap().to_owned();
                }
                backward.reverse();
                assert_eq!((&forward, &backward), (&listed, &listed), "{sort}");
                orders.push(listed);
            }
            // The hidden values decide nothing.
            if first.is_empty() {
                first = orders;
            } else {
                assert_eq!(orders, first);
            }
        }
        for query in ["sort=email&cursor=", "sort=email&after=", "cursor=&email%5Bilike%5D=cleo"] {
            lead.get(&format!("/api/v1/data/person?{query}")).await.expect_error(400, "unknown_field");
        }
        let query = "{ person_connection(first: 3, sort: [{ field: \"salary\" }]) { edges { node { id name salary } } } }";
        let shown = graphql(&lead, query).await;
        let nodes: Vec<&Value> = shown["data"]["person_connection"]["edges"].as_array().unwrap().iter().map(|edge| &edge["node"]["name"]).collect();
        assert_eq!(nodes, [&json!("bob"), &json!("ada"), &Value::Null], "{shown}");
    }

    async fn a_write_needs_one_grant_for_its_row_its_fields_and_its_result(server: Server) {
        let World { admin, departments: [one, two], people: [ada, bob, cleo] } = world(&server).await;
        role(&admin, "editor", json!([
            { "resource": "person", "actions": ["read"], "fields": { "read": { "except": ["salary"] } } },
            { "resource": "department", "actions": ["read"] },
            { "resource": "skill", "actions": ["read"] },
            // The name of everybody, the state in the first department, and salaries up to a limit in the second one.
            { "resource": "person", "actions": ["update"], "fields": { "write": ["name"] } },
            { "resource": "person", "actions": ["update"], "where": { "department.name": "one" }, "check": {}, "fields": { "write": ["state", "department_id"] } },
            { "resource": "person", "actions": ["update"], "where": { "department.name": "two" }, "check": { "salary": { "lte": 500 } }, "fields": { "write": ["name", "salary"] } },
            { "resource": "person", "actions": ["create"], "fields": { "write": { "except": ["salary", "skills"] } } },
            data(),
        ])).await;
        let (editor, _) = user(&admin, "editor", Some("editor")).await;
        let refused = async |id: &str, values: Value, field: &str| {
            let error = editor.patch(&path(id), values.clone()).await.expect_error(403, "forbidden");
            assert_eq!(error["field"], field, "{values}: {error}");
        };
        let renamed = editor.patch(&path(&ada), json!({ "name": "Ada" })).await.data();
        assert_eq!((&renamed["name"], renamed.get("salary")), (&json!("Ada"), None), "{renamed}");
        assert_eq!(editor.patch(&path(&bob), json!({ "state": "gone" })).await.status, 200);
        // One grant has to allow all fields of a write, not two grants together.
        refused(&bob, json!({ "name": "Bob", "state": "active" }), "state").await;
        refused(&cleo, json!({ "state": "gone" }), "state").await;
        refused(&ada, json!({ "salary": 1 }), "salary").await;
        refused(&ada, json!({ "email": "x@company.example" }), "email").await;
        assert_eq!(editor.patch(&path(&cleo), json!({ "salary": 400, "name": "Cleo" })).await.status, 200);
        editor.patch(&path(&cleo), json!({ "salary": 501 })).await.expect_error(403, "forbidden");
        // The row before the call decides: the grant for the first department allows its people to move to another one.
        assert_eq!(editor.patch(&path(&bob), json!({ "department_id": two })).await.status, 200);
        assert_eq!(editor.patch(&path(&bob), json!({ "salary": 7 })).await.status, 200);
        // To add to a value, the caller also needs to read it.
        refused(&bob, json!({ "salary": { "$inc": 1 } }), "salary").await;
        assert_eq!(admin.get(&path(&bob)).await.data()["salary"], 7);
        editor.patch(&path(&bob), json!({ "nothing": 1 })).await.expect_error(400, "unknown_field");

        let made = editor.post("/api/v1/data/person", json!({ "name": "dan", "department_id": one })).await;
        assert_eq!((made.status, made.data().get("salary")), (201, None), "{}", made.text);
        let error = editor.post("/api/v1/data/person", json!({ "name": "eve", "salary": 1 })).await.expect_error(403, "forbidden");
        assert_eq!(error["field"], "salary");
        let bulk = editor.post("/api/v1/data/person/bulk", json!({ "data": [{ "name": "eve" }, { "name": "fay", "salary": 1 }] })).await;
        assert_eq!(bulk.expect_error(403, "forbidden")["field"], "salary");
        let many = async |body: Value| editor.patch("/api/v1/data/person/bulk", body).await;
        assert_eq!(many(json!({ "ids": [ada, bob], "values": { "salary": 3 } })).await.expect_error(403, "forbidden")["field"], "salary");
        assert_eq!(many(json!({ "ids": [bob, cleo], "values": { "salary": 3 } })).await.json()["count"], 2);
        assert_eq!(many(json!({ "where": { "name": "Ada" }, "values": { "state": "active" } })).await.json()["count"], 1);
        many(json!({ "where": { "salary": 3 }, "values": { "name": "x" } })).await.expect_error(400, "unknown_field");
        // `on_conflict` reveals whether a value exists, so the caller needs to read its field.
        let upsert = async |target: &str, body: Value| editor.post(&format!("/api/v1/data/person?on_conflict={target}"), body).await;
        assert_eq!(upsert("email", json!({ "email": "ada@company.example", "name": "A" })).await.expect_error(403, "forbidden")["field"], "email");
        let links = format!("{}/links/skills", path(&ada));
        let skill = admin.make("skill", json!({ "name": "go" })).await;
        assert_eq!(editor.post(&links, json!({ "ids": [skill] })).await.expect_error(403, "forbidden")["field"], "skills");
        assert_eq!(admin.get("/api/v1/data/person").await.json()["pagination"]["totalCount"], 4);

        let input = graphql(&editor, "{ c: __type(name: \"PersonCreateInput\") { inputFields { name } } u: __type(name: \"PersonUpdateInput\") { inputFields { name } } }").await;
        let fields = |ty: &str| -> Vec<String> {
            input["data"][ty]["inputFields"].as_array().unwrap().iter().map(|field| field["name"].as_str().unwrap().to_owned()).collect()
        };
        assert_eq!(fields("c"), ["id", "name", "email", "state", "user_id", "department_id"], "{input}");
        assert_eq!(fields("u"), ["name", "salary", "state", "department_id"], "{input}");
        let document = editor.get("/api/v1/openapi.json").await.json();
        let schemas = &document["components"]["schemas"];
        assert!(schemas["PersonUpdateInput"]["properties"]["salary"].is_object() && schemas["Person"]["properties"]["salary"].is_null());
        assert!(schemas["PersonCreateInput"]["properties"]["salary"].is_null());
        let changed = graphql(&editor, &format!("mutation {{ update_person(id: \"{cleo}\", input: {{ name: \"C\" }}) {{ id name }} }}")).await;
        assert_eq!(changed["data"]["update_person"]["name"], "C", "{changed}");
    }

    async fn what_a_write_reads_has_to_be_readable_under_any_rule(server: Server) {
        let World { admin, people: [ada, _, cleo], .. } = world(&server).await;
        let person = |actions: Value, rest: Value| {
            let mut grant = json!({ "resource": "person", "actions": actions });
            grant.as_object_mut().unwrap().extend(rest.as_object().unwrap().clone());
            grant
        };
        let (all, writes) = (json!({}), json!(["create", "update"]));
        let field_of = |answer: &Answer| answer.expect_error(403, "forbidden")["field"].clone();
        let sum = json!({ "salary": { "$inc": 1 } });
        // None of these may read people. One right under a rule is enough, also if it is another one.
        for (number, grants) in [
            json!([person(writes.clone(), json!({ "where": { "state": "active" } }))]),
            json!([person(writes.clone(), json!({ "check": { "salary": { "lt": 1000 } } }))]),
            json!([person(writes.clone(), json!({ "fields": { "write": { "except": ["user_id"] } } }))]),
            json!([person(writes.clone(), all.clone()), person(json!(["delete"]), json!({ "where": { "state": "gone" } }))]),
        ].into_iter().enumerate() {
            let name = format!("blind{number}");
            role(&admin, &name, grants.clone()).await;
            let (blind, _) = user(&admin, &name, Some(&name)).await;
            // A sum that `max` refuses, or a check, would show how large the value is.
            let mut answers = vec![blind.patch(&path(&ada), sum.clone()).await];
            for query in ["", "?dryRun=true"] {
                let body = json!({ "ids": [ada], "values": sum });
                answers.push(blind.patch(&format!("/api/v1/data/person/bulk{query}"), body).await);
            }
            let operation = json!({ "op": "update", "object": "person", "id": ada, "values": sum });
            answers.push(blind.post("/api/v1/batch", json!({ "operations": [operation] })).await);
            for answer in &answers {
                assert_eq!(field_of(answer), "salary", "{grants}: {}", answer.text);
            }
            // `created` would show whether the value exists.
            for email in ["ada", "nobody"] {
                assert_eq!(field_of(&upsert(&blind, email).await), "email", "{grants}");
            }
            let named = json!({ "id": ada, "name": "a" });
            assert_eq!(field_of(&blind.post("/api/v1/data/person?on_conflict=id", named).await), "id", "{grants}");
            // A plain value is written without a read.
            assert_eq!(blind.patch(&path(&ada), json!({ "salary": 300 })).await.data(), json!({ "id": ada, "salary": 300 }));
        }

        // The row decides where the caller reads some rows, also by a grant for own rows.
        let of_one = json!({ "where": { "department.name": "one" } });
        role(&admin, "near", json!([person(json!(["read"]), of_one), person(writes.clone(), all.clone())])).await;
        let own = json!({ "rowPolicy": "own" });
        let active = json!({ "where": { "state": "active" }, "check": {} });
        role(&admin, "maker", json!([person(json!(["read"]), own.clone()), person(writes.clone(), active)])).await;
        let (near, _) = user(&admin, "near", Some("near")).await;
        let (maker, _) = user(&admin, "maker", Some("maker")).await;
        assert_eq!(near.patch(&path(&ada), sum.clone()).await.data()["salary"], 301);
        assert_eq!(field_of(&near.patch(&path(&cleo), sum.clone()).await), "salary");
        assert_eq!(upsert(&near, "ada").await.json()["created"], false);
        assert_eq!(field_of(&upsert(&near, "cleo").await), "email");
        assert_eq!(upsert(&near, "dan").await.json()["created"], true);
        assert_eq!(field_of(&maker.patch(&path(&ada), sum.clone()).await), "salary");
        assert_eq!(field_of(&upsert(&maker, "ada").await), "email");
        let made = maker.make("person", json!({ "name": "eve", "salary": 1 })).await;
        assert_eq!(maker.patch(&path(&made), sum.clone()).await.data()["salary"], 2);

        // Without conditions and lists of fields, the right to write is enough.
        role(&admin, "owner", json!([person(writes, own)])).await;
        let (owner, _) = user(&admin, "owner", Some("owner")).await;
        assert_eq!(upsert(&owner, "fay").await.json()["created"], true);
        let again = upsert(&owner, "fay").await.json();
        assert_eq!(again["created"], false, "{again}");
        assert_eq!(owner.patch(&path(again["data"]["id"].as_str().unwrap()), sum).await.status, 200);
        let salaries = [admin.get(&path(&ada)).await.data()["salary"].clone(), admin.get(&path(&cleo)).await.data()["salary"].clone()];
        assert_eq!(salaries, [301, 200]);
    }

    async fn events_have_what_their_reader_may_read_of_their_records(server: Server) {
        let World { admin, departments: [one, two], people: [ada, bob, cleo] } = world(&server).await;
        role(&admin, "watcher", json!([
            { "resource": "person", "actions": ["read"], "fields": { "read": ["name"] } },
            { "resource": "person", "actions": ["read"], "where": { "department.name": "one" }, "fields": { "read": ["name", "salary", "department_id"] } },
            { "resource": "skill", "actions": ["read"] },
            { "resource": "events", "actions": ["read"] },
        ])).await;
        let (watcher, _) = user(&admin, "watcher", Some("watcher")).await;
        let start = admin.get("/api/v1/events?limit=1").await.data()[0]["id"].as_str().unwrap().to_owned();
        let mut stream = Stream::open(&watcher, &format!("?topics=data.person.%23&since={start}")).await;
        let skill = admin.make("skill", json!({ "name": "go" })).await;
        assert_eq!(admin.post(&format!("{}/links/skills", path(&ada)), json!({ "ids": [skill] })).await.status, 200);
        admin.patch(&path(&ada), json!({ "salary": 301, "email": "a@company.example" })).await.data();
        admin.patch(&path(&cleo), json!({ "salary": 201 })).await.data();
        admin.patch(&path(&ada), json!({ "state": "gone" })).await.data();
        admin.patch(&path(&bob), json!({ "department_id": two, "salary": 101 })).await.data();
        assert_eq!(admin.delete(&path(&cleo)).await.status, 204);
        let image = |id: &str, name: &str, salary: Value, department: Value| json!({ "id": id, "name": name, "salary": salary, "department_id": department });
        let expected = [
            (image(&ada, "ada", json!(300), json!(one)), image(&ada, "ada", json!(301), json!(one)), json!({ "salary": { "before": 300, "after": 301 } })),
            (image(&cleo, "cleo", Value::Null, Value::Null), image(&cleo, "cleo", Value::Null, Value::Null), json!({})),
            (image(&ada, "ada", json!(301), json!(one)), image(&ada, "ada", json!(301), json!(one)), json!({})),
            (
                image(&bob, "bob", json!(100), json!(one)),
                image(&bob, "bob", Value::Null, Value::Null),
                json!({ "salary": { "before": 100, "after": null }, "department_id": { "before": one, "after": null } }),
            ),
            (image(&cleo, "cleo", Value::Null, Value::Null), Value::Null, Value::Null),
        ];
        for (before, after, diff) in &expected {
            let event = stream.event().await;
            let payload = &event["payload"];
            assert_eq!((&payload["before"], &payload["after"], &payload["diff"]), (before, after, diff), "{event}");
            let id = event["id"].as_str().unwrap();
            assert_eq!(watcher.get(&format!("/api/v1/events/{id}")).await.data()["payload"], *payload);
        }
        let listed = watcher.get(&format!("/api/v1/events?object=person&limit={}", expected.len())).await.data();
        let afters: Vec<&Value> = listed.as_array().unwrap().iter().rev().map(|event| &event["payload"]["after"]).collect();
        assert_eq!(afters, expected.iter().map(|(_, after, _)| after).collect::<Vec<_>>());
        assert!(!listed.to_string().contains("company.example"), "{listed}");
    }

    async fn a_relation_needs_the_field_that_leads_along_it(server: Server) {
        let World { admin, departments: [one, _], people: [ada, ..] } = world(&server).await;
        let skill = admin.make("skill", json!({ "name": "go" })).await;
        assert_eq!(admin.post(&format!("{}/links/skills", path(&ada)), json!({ "ids": [skill] })).await.status, 200);
        role(&admin, "outsider", json!([
            { "resource": "person", "actions": ["read", "update"], "fields": { "read": ["name"], "write": ["name"] } },
            { "resource": "department", "actions": ["read"] },
            { "resource": "skill", "actions": ["read"] },
            data(),
        ])).await;
        let (outsider, _) = user(&admin, "outsider", Some("outsider")).await;
        for query in ["person/{ada}?expand=department", "person/{ada}?expand=skills", "department/{one}?expand=person_by_department"] {
            let query = query.replace("{ada}", &ada).replace("{one}", &one);
            let answer = outsider.get(&format!("/api/v1/data/{query}")).await.json();
            assert!(answer["warnings"][0].is_string(), "{query}: {answer}");
        }
        for (object, condition) in [
            ("person", json!({ "department": { "name": "one" } })),
            ("person", json!({ "department_id": one })),
            ("person", json!({ "skills": { "some": { "name": "go" } } })),
            ("department", json!({ "person_by_department": { "some": { "name": "ada" } } })),
        ] {
            outsider.post(&format!("/api/v1/data/{object}/query"), json!({ "where": condition })).await.expect_error(400, "unknown_field");
        }
        // The key on the other side is a field of the other object.
        assert_eq!(outsider.get(&format!("/api/v1/data/skill/{skill}?expand=skills")).await.data()["skills"][0], json!({ "id": ada, "name": "ada" }));
        assert_eq!(outsider.patch(&path(&ada), json!({ "department_id": null })).await.expect_error(403, "forbidden")["field"], "department_id");
        outsider.get("/api/v1/data/person/export?format=csv&names=department.name").await.expect_error(400, "invalid_request");
        let ty = graphql(&outsider, "{ __type(name: \"Department\") { fields { name } } }").await.to_string();
        assert!(ty.contains("budget") && !ty.contains("person_by_department"), "{ty}");
    }

    async fn nobody_gives_fields_that_they_do_not_hold(server: Server) {
        let admin = server.admin().await;
        define(&admin).await;
        role(&admin, "lead", json!([
            { "resource": "roles", "actions": ["create", "update", "read"] },
            { "resource": "person", "actions": ["read", "update"], "fields": { "read": { "except": ["salary", "email"] }, "write": ["name", "state"] } },
            { "resource": "person", "actions": ["read"], "where": { "state": "gone" } },
        ])).await;
        let (lead, _) = user(&admin, "lead", Some("lead")).await;
        let mut number = 0;
        let mut given = async |actions: Value, rest: Value| {
            number += 1;
            let mut grant = json!({ "resource": "person", "actions": actions });
            grant.as_object_mut().unwrap().extend(rest.as_object().unwrap().clone());
            lead.post("/api/v1/roles", json!({ "name": format!("given{number}"), "permissions": [grant] })).await.status
        };
        for (fields, status) in [
            (json!({ "read": { "except": ["email", "salary"] } }), 201),
            (json!({ "read": { "except": ["email", "salary", "state"] } }), 201),
            (json!({ "read": ["name", "state"] }), 201),
            (json!({ "read": [] }), 201),
            (json!({ "read": ["name", "salary"] }), 403),
            (json!({ "read": { "except": ["salary"] } }), 403),
            (json!({ "read": { "except": [] } }), 403),
            (json!({ "write": ["name"] }), 403),
        ] {
            assert_eq!(given(json!(["read"]), json!({ "fields": fields })).await, status, "{fields}");
        }
        assert_eq!(given(json!(["read"]), json!({})).await, 403);
        assert_eq!(given(json!(["read"]), json!({ "where": { "state": "gone" } })).await, 201);
        assert_eq!(given(json!(["read"]), json!({ "where": { "state": "gone" }, "fields": { "read": ["salary"] } })).await, 201);
        assert_eq!(given(json!(["read"]), json!({ "where": { "state": "active" }, "fields": { "read": ["salary"] } })).await, 403);
        assert_eq!(given(json!(["update"]), json!({ "fields": { "write": ["name"] } })).await, 201);
        assert_eq!(given(json!(["update"]), json!({ "fields": { "write": ["name", "salary"] } })).await, 403);
        assert_eq!(given(json!(["update"]), json!({ "fields": { "read": ["name"] } })).await, 403);
        assert_eq!(given(json!(["manage"]), json!({ "fields": { "read": ["name"], "write": ["name"] } })).await, 403);
    }

    async fn lists_of_fields_follow_renames_and_keep_their_fields(server: Server) {
        let World { admin, people: [ada, ..], .. } = world(&server).await;
        let fields = json!({ "read": ["name", "salary"], "write": { "except": ["department_id", "skills", "state"] } });
        let id = role(&admin, "clerk", json!([{ "resource": "person", "actions": ["read", "update"], "fields": fields }])).await;
        let (clerk, _) = user(&admin, "clerk", Some("clerk")).await;
        assert_eq!(keys(&clerk.get(&path(&ada)).await.data()), ["id", "name", "salary"]);
        assert_eq!(admin.patch("/api/v1/objects/person/fields/salary", json!({ "name": "wage" })).await.status, 200);
        assert_eq!(keys(&clerk.get(&path(&ada)).await.data()), ["id", "name", "wage"]);
        let shown = admin.get(&format!("/api/v1/roles/{id}")).await.data();
        assert_eq!(shown["permissions"][0]["fields"], json!({ "read": ["name", "wage"], "write": { "except": ["department_id", "skills", "state"] } }));
        for field in ["wage", "state"] {
            let path = format!("/api/v1/objects/person/fields/{field}");
            let error = admin.delete(&path).await.expect_error(409, "object_in_use");
            assert!(error["message"].as_str().unwrap().contains("clerk"), "{error}");
            assert_eq!(admin.patch(&path, json!({ "type": "text", "options": null, "default": null })).await.status, 409);
        }
        // A list of names does not include a field that is added later, but `except` does.
        let added = admin.post("/api/v1/objects/person/fields", json!({ "name": "nick", "type": "text" })).await;
        assert_eq!(added.status, 201, "{}", added.text);
        assert_eq!(keys(&clerk.get(&path(&ada)).await.data()), ["id", "name", "wage"]);
        assert_eq!(clerk.patch(&path(&ada), json!({ "nick": "a" })).await.status, 200);
        assert_eq!(admin.get(&path(&ada)).await.data()["nick"], "a");

        let refuse = async |grant: Value| {
            admin.post("/api/v1/roles", json!({ "name": "bad", "permissions": [grant] })).await.expect_error(400, "invalid_request")
        };
        for fields in [
            json!({ "read": ["nothing"] }),
            json!({ "read": ["department"] }),
            json!({ "write": { "except": ["nothing"] } }),
            json!({ "read": ["name", "name"] }),
            json!({ "read": "name" }),
            json!({ "read": { "but": ["name"] } }),
            json!({ "see": ["name"] }),
            json!(["name"]),
        ] {
            refuse(json!({ "resource": "person", "actions": ["read"], "fields": fields })).await;
        }
        for resource in ["*", "webhooks", "nothing", "block:thing"] {
            refuse(json!({ "resource": resource, "actions": ["read"], "fields": { "read": ["name"] } })).await;
        }
    }

    async fn a_key_has_the_fields_of_its_role_and_of_its_maker(server: Server) {
        let World { admin, people: [ada, ..], .. } = world(&server).await;
        role(&admin, "maker", json!([
            { "resource": "api_keys", "actions": ["create", "read"] },
            { "resource": "person", "actions": ["read", "update"], "fields": { "read": { "except": ["salary"] }, "write": ["name", "state"] } },
        ])).await;
        let (maker, _) = user(&admin, "maker", Some("maker")).await;
        let reader = role(&admin, "reader", json!([
            { "resource": "person", "actions": ["read", "update"], "fields": { "read": ["name", "email"], "write": ["name"] } },
        ])).await;
        let (client, _) = key(&maker, json!({ "name": "key", "roleId": reader })).await;
        assert_eq!(keys(&client.get(&path(&ada)).await.data()), ["id", "name", "email"]);
        // If the maker loses a field, the key loses it too.
        let less = json!([
            { "resource": "api_keys", "actions": ["create", "read"] },
            { "resource": "person", "actions": ["read", "update"], "fields": { "read": { "except": ["salary", "email"] }, "write": ["state"] } },
        ]);
        assert_eq!(admin.patch("/api/v1/roles/maker", json!({ "permissions": less })).await.status, 200);
        assert_eq!(keys(&client.get(&path(&ada)).await.data()), ["id", "name"]);
        assert_eq!(client.patch(&path(&ada), json!({ "name": "x" })).await.expect_error(403, "forbidden")["field"], "name");
        // A user who views the service as a role has only the rights that both they and the role have.
        let viewer = json!([
            { "resource": "roles", "actions": ["read"] },
            { "resource": "person", "actions": ["read"], "fields": { "read": ["name", "salary"] } },
        ]);
        role(&admin, "viewer", viewer).await;
        let (viewer, _) = user(&admin, "viewer", Some("viewer")).await;
        for (who, expected) in [(&admin, vec!["id", "name", "email"]), (&viewer, vec!["id", "name"])] {
            let viewed = admin.server.send(who.request("GET", &path(&ada)).header("x-svc-view-as", &reader)).await;
            assert_eq!(keys(&viewed.data()), expected, "{}", viewed.text);
        }
    }

    async fn a_grant_whose_check_has_no_value_for_its_caller_shows_no_cell(server: Server) {
        let World { admin, people: [ada, bob, _], .. } = world(&server).await;
        role(&admin, "worker", json!([
            { "resource": "person", "actions": ["read"], "where": { "name": "ada" }, "fields": { "read": ["name"] } },
            { "resource": "person", "actions": ["manage"], "check": { "user_id": "$key.id" } },
            { "resource": "events", "actions": ["read"] },
        ])).await;
        let (session, _) = user(&admin, "worker", Some("worker")).await;
        let (by_key, _) = key(&admin, json!({ "name": "key", "roleId": "worker" })).await;
        // With a key, the second grant includes every row. Without one, it includes none, and only makes its fields known.
        assert_eq!(by_key.get(&path(&bob)).await.data()["salary"], 100);
        session.get(&path(&bob)).await.expect_error(404, "not_found");
        let seen = session.get(&path(&ada)).await.data();
        assert_eq!((&seen["name"], &seen["salary"], &seen["state"]), (&json!("ada"), &Value::Null, &Value::Null));
        assert_eq!(names(&session, "salary=300").await, Vec::<String>::new());
        assert_eq!(names(&session, "").await, ["ada"]);
        admin.patch(&path(&ada), json!({ "salary": 301 })).await.data();
        let event = session.get("/api/v1/events?object=person&limit=1").await.data()[0]["payload"].clone();
        assert_eq!((&event["after"]["name"], &event["after"]["salary"], &event["diff"]), (&json!("ada"), &Value::Null, &json!({})));
        assert_eq!(session.delete(&path(&ada)).await.status, 404);
    }

    async fn a_grant_without_a_value_for_its_caller_allows_no_field(server: Server) {
        let World { admin, people: [ada, ..], .. } = world(&server).await;
        role(&admin, "writer", json!([
            { "resource": "person", "actions": ["read", "update"], "fields": { "write": ["name"] } },
            { "resource": "person", "actions": ["update"], "where": { "user_id": "$key.id" } },
        ])).await;
        let (session, _) = user(&admin, "writer", Some("writer")).await;
        let (by_key, _) = key(&admin, json!({ "name": "key", "roleId": "writer" })).await;
        let none = json!({ "where": { "name": "nobody" }, "values": { "salary": 1 } });
        // With a key, the second grant counts, and includes no row of this call. Without one, it does not count.
        assert_eq!(by_key.patch("/api/v1/data/person/bulk", none.clone()).await.json()["count"], 0);
        let refused = session.patch("/api/v1/data/person/bulk", none).await.expect_error(403, "forbidden");
        assert_eq!(refused["field"], "salary");
        for caller in [&by_key, &session] {
            let refused = caller.patch(&path(&ada), json!({ "salary": 1 })).await.expect_error(403, "forbidden");
            assert_eq!(refused["field"], "salary");
        }
    }

    async fn a_key_for_own_rows_of_two_people_has_no_right(server: Server) {
        let World { admin, .. } = world(&server).await;
        let own = |fields: Value| json!({ "resource": "person", "actions": ["read", "delete"], "rowPolicy": "own", "fields": { "read": fields } });
        role(&admin, "reader", json!([own(json!(["name"]))])).await;
        role(&admin, "maker", json!([
            { "resource": "api_keys", "actions": ["manage"] },
            { "resource": "person", "actions": ["read", "delete"] },
            { "resource": "users", "actions": ["manage"] },
            { "resource": "roles", "actions": ["manage"] },
        ])).await;
        let (maker, _) = user(&admin, "maker", Some("maker")).await;
        let (_, holder_id) = user(&admin, "holder", Some("reader")).await;
        let (by_key, _) = key(&maker, json!({ "name": "key", "roleId": "reader", "userId": holder_id })).await;
        assert_eq!(names(&by_key, "").await, Vec::<String>::new());
        // The key's rows are those of its holder and of its maker, and no row is both.
        let narrower = json!([
            { "resource": "api_keys", "actions": ["manage"] },
            { "resource": "users", "actions": ["manage"] },
            { "resource": "roles", "actions": ["manage"] },
            own(json!({ "except": ["salary"] })),
        ]);
        assert_eq!(admin.patch("/api/v1/roles/maker", json!({ "permissions": narrower })).await.status, 200);
        by_key.get("/api/v1/data/person").await.expect_error(403, "forbidden");
        let bulk = by_key.request("DELETE", "/api/v1/data/person/bulk").json(&json!({ "where": { "id": { "is_null": true } } }));
        server.send(bulk).await.expect_error(403, "forbidden");
    }

    async fn a_list_that_names_what_is_gone_gives_nothing(server: Server) {
        let World { admin, people: [ada, ..], .. } = world(&server).await;
        let id = role(&admin, "clerk", json!([
            { "resource": "person", "actions": ["read"], "fields": { "read": { "except": ["salary", "skills"] } } },
            { "resource": "skill", "actions": ["read"] },
        ])).await;
        let (clerk, _) = user(&admin, "clerk", Some("clerk")).await;
        assert!(clerk.get(&path(&ada)).await.data().get("email").is_some());
        // A key has the lists of its role and of its maker. Together they can leave the same fields as a list of the role alone.
        let of_person = |names: Value| json!({ "resource": "person", "actions": ["read"], "fields": { "read": names } });
        let makes_keys = json!({ "resource": "api_keys", "actions": ["create", "read"] });
        role(&admin, "maker", json!([makes_keys, { "resource": "person", "actions": ["read"] }])).await;
        let (maker, _) = user(&admin, "maker", Some("maker")).await;
        let namer = role(&admin, "namer", json!([of_person(json!(["name", "skills"]))])).await;
        let (client, _) = key(&maker, json!({ "name": "key", "roleId": namer })).await;
        let narrower = json!({ "permissions": [makes_keys, of_person(json!(["name"]))] });
        let narrower = admin.patch("/api/v1/roles/maker", narrower).await;
        assert_eq!(narrower.status, 200, "{}", narrower.text);
        assert_eq!(own_grants(&client, "person").await, [of_person(json!(["name"]))]);
        let broken = |mut grant: Value| {
            grant["broken"] = json!(true);
            grant
        };
        // The relation is deleted with the object on its other side, and another relation with the same name is made.
        assert_eq!(admin.delete("/api/v1/objects/skill?cascade=true").await.status, 204);
        admin.define("skill", json!([{ "name": "name", "type": "text" }])).await;
        admin.relate(json!({ "name": "skills", "kind": "many_to_many", "source": "person", "target": "skill" })).await;
        assert_eq!(admin.get(&format!("/api/v1/roles/{id}")).await.data()["permissions"][0]["broken"], true);
        clerk.get(&path(&ada)).await.expect_error(404, "not_found");
        assert_eq!(list(&clerk, "").await, Vec::<Value>::new());
        // The list of the clerk's own permissions has no field for it, and so no name that the list excepts.
        assert_eq!(own_grants(&clerk, "person").await, [broken(of_person(json!([])))]);
        // The same applies to the key, which reads nothing either.
        client.get(&path(&ada)).await.expect_error(404, "not_found");
        assert_eq!(own_grants(&client, "person").await, [broken(of_person(json!([])))]);
        // Of two grants of the key that leave the same fields, only the one whose list breaks is marked.
        let both = json!({ "permissions": [of_person(json!(["name", "skills"])), of_person(json!(["name"]))] });
        let mended = admin.patch("/api/v1/roles/namer", both).await;
        assert_eq!(mended.status, 200, "{}", mended.text);
        assert_eq!(own_grants(&client, "person").await, [of_person(json!(["name"]))]);
        assert_eq!(admin.delete("/api/v1/objects/skill?cascade=true").await.status, 204);
        assert_eq!(own_grants(&client, "person").await, [broken(of_person(json!([]))), of_person(json!(["name"]))]);
        assert_eq!(keys(&client.get(&path(&ada)).await.data()), ["id", "name"]);
        // The same applies to an object that is deleted and made again.
        let of_department = |names: Value| json!({ "resource": "department", "actions": ["read"], "fields": { "read": names } });
        let id = role(&admin, "reader", json!([of_department(json!({ "except": ["budget"] }))])).await;
        let (reader, _) = user(&admin, "reader", Some("reader")).await;
        assert_eq!(admin.delete("/api/v1/objects/department?cascade=true").await.status, 204);
        assert_eq!(own_grants(&reader, "department").await, [broken(of_department(json!([])))]);
        admin.define("department", json!([{ "name": "name", "type": "text" }, { "name": "budget", "type": "integer" }])).await;
        admin.make("department", json!({ "name": "new", "budget": 5 })).await;
        assert_eq!(admin.get(&format!("/api/v1/roles/{id}")).await.data()["permissions"][0]["broken"], true);
        assert_eq!(own_grants(&reader, "department").await, [broken(of_department(json!([])))]);
        assert_eq!(reader.get("/api/v1/data/department").await.data(), json!([]));
        reader.get("/api/v1/data/department?budget=5").await.expect_error(400, "unknown_field");
    }

    async fn a_list_that_names_what_is_gone_gives_its_holder_nothing_to_give(server: Server) {
        let admin = server.admin().await;
        define(&admin).await;
        let most = json!({ "resource": "person", "actions": ["read"], "fields": { "read": { "except": ["salary", "skills"] } } });
        let names = json!({ "resource": "person", "actions": ["read"], "fields": { "read": ["name"] } });
        role(&admin, "lead", json!([
            { "resource": "roles", "actions": ["create", "read", "update"] },
            { "resource": "users", "actions": ["read", "update"] },
            most,
        ])).await;
        role(&admin, "peer", json!([most])).await;
        role(&admin, "namer", json!([names])).await;
        let (lead, _) = user(&admin, "lead", Some("lead")).await;
        let (_, ann) = user(&admin, "ann", None).await;
        let (_, ben) = user(&admin, "ben", Some("namer")).await;
        let make = async |name: &str| lead.post("/api/v1/roles", json!({ "name": name, "permissions": [names] })).await.status;
        let give = async |name: &str| lead.post(&format!("/api/v1/users/{ann}/roles"), json!({ "roleId": name })).await.status;
        let act_on_ben = async || lead.patch(&format!("/api/v1/users/{ben}"), json!({ "name": "Ben" })).await.status;
        assert_eq!((make("first").await, give("namer").await, act_on_ben().await), (201, 200, 200));
        assert_eq!(admin.delete(&format!("/api/v1/users/{ann}/roles/namer")).await.status, 204);
        // The lists name a relation that is deleted with the object on its other side, so they give nothing any more.
        assert_eq!(admin.delete("/api/v1/objects/skill?cascade=true").await.status, 204);
        assert_eq!((make("second").await, give("namer").await, act_on_ben().await), (403, 403, 403));
        lead.patch("/api/v1/roles/peer", json!({ "permissions": [names] })).await.expect_error(403, "forbidden");
        // Nobody needs a right for a grant that gives nothing.
        assert_eq!(give("peer").await, 200);
        assert_eq!(lead.patch("/api/v1/roles/peer", json!({ "description": "of the past" })).await.status, 200);
    }

    async fn a_list_that_names_what_is_gone_takes_only_the_actions_that_it_limits(server: Server) {
        let World { admin, people: [ada, bob, _], .. } = world(&server).await;
        role(&admin, "editor", json!([
            { "resource": "person", "actions": ["read", "update", "delete"], "fields": { "write": { "except": ["skills"] } } },
        ])).await;
        role(&admin, "lead", json!([{ "resource": "users", "actions": ["read", "update"] }])).await;
        let (editor, editor_id) = user(&admin, "editor", Some("editor")).await;
        let (lead, lead_id) = user(&admin, "lead", Some("lead")).await;
        let (_, ann) = user(&admin, "ann", None).await;
        // The list names a relation that is deleted with the object on its other side.
        assert_eq!(admin.delete("/api/v1/objects/skill?cascade=true").await.status, 204);
        let changed = editor.patch(&path(&ada), json!({ "name": "x" })).await;
        assert!((400..500).contains(&changed.status), "{}", changed.text);
        let shown = admin.get("/api/v1/roles/editor/permissions").await.data();
        let rights = shown["resources"].as_array().unwrap().iter().find(|rights| rights["resource"] == "person").unwrap();
        assert!(rights["update"].is_null() && !rights["read"].is_null() && !rights["delete"].is_null(), "{rights}");
        // It says nothing about reading and deleting.
        assert_eq!(editor.get(&path(&ada)).await.data()["name"], "ada");
        assert_eq!(editor.delete(&path(&bob)).await.status, 204);
        // So only somebody who has these two rights gives the role, or acts on a user who has it.
        let roles_of_ann = format!("/api/v1/users/{ann}/roles");
        let editors_path = format!("/api/v1/users/{editor_id}");
        lead.post(&roles_of_ann, json!({ "roleId": "editor" })).await.expect_error(403, "forbidden");
        lead.patch(&editors_path, json!({ "name": "Edith" })).await.expect_error(403, "forbidden");
        let given = admin.post(&format!("/api/v1/users/{lead_id}/roles"), json!({ "roleId": "editor" })).await;
        assert_eq!(given.status, 200, "{}", given.text);
        assert_eq!(lead.post(&roles_of_ann, json!({ "roleId": "editor" })).await.status, 200);
        assert_eq!(lead.patch(&editors_path, json!({ "name": "Edith" })).await.status, 200);
    }

    async fn links_are_read_where_a_grant_reaches_the_row_and_lists_their_key(server: Server) {
        let World { admin, people: [ada, _, cleo], .. } = world(&server).await;
        role(&admin, "lead", json!([
            { "resource": "person", "actions": ["read"], "fields": { "read": ["name"] } },
            { "resource": "person", "actions": ["read"], "where": { "department.name": "one" }, "fields": { "read": { "except": ["email"] } } },
            { "resource": "skill", "actions": ["read"] },
            { "resource": "events", "actions": ["read"] },
            data(),
        ])).await;
        let (lead, _) = user(&admin, "lead", Some("lead")).await;
        let skill = admin.make("skill", json!({ "name": "go" })).await;
        for person in [&ada, &cleo] {
            assert_eq!(admin.post(&format!("{}/links/skills", path(person)), json!({ "ids": [skill] })).await.status, 200);
        }
        let rows = list(&lead, "sort=name&expand=skills").await;
        let counts: Vec<usize> = rows.iter().map(|row| row["skills"].as_array().unwrap().len()).collect();
        assert_eq!(counts, [1, 0, 0]);
        assert_eq!(lead.get(&format!("{}?expand=skills", path(&cleo))).await.data()["skills"], json!([]));
        let asked = async |condition: Value| {
            let answer = lead.post("/api/v1/data/person/query", json!({ "where": condition, "sort": "name" })).await.data();
            answer.as_array().unwrap().iter().map(|row| row["name"].as_str().unwrap().to_owned()).collect::<Vec<_>>()
        };
        let named = json!({ "name": "go" });
        assert_eq!(asked(json!({ "skills": { "some": named } })).await, ["ada"]);
        assert_eq!(asked(json!({ "skills": { "none": named } })).await, ["bob", "cleo"]);
        let departments = json!({ "person_by_department": { "none": { "skills": { "some": named } } } });
        let answer = admin.post("/api/v1/data/department/query", json!({ "where": departments })).await;
        assert_eq!(answer.data(), json!([]));
        let linked = lead.get("/api/v1/events?topic=data.person.linked").await.data();
        let ids: Vec<&Value> = linked.as_array().unwrap().iter().map(|event| &event["payload"]["id"]).collect();
        assert_eq!(ids, [&json!(ada)]);
        let shown = graphql(&lead, "{ person(sort: [{ field: \"name\" }]) { data { name skills { name } } } }").await;
        assert_eq!(shown["data"]["person"]["data"][2], json!({ "name": "cleo", "skills": [] }), "{shown}");
    }

    async fn a_condition_of_a_grant_reads_links_that_its_holder_does_not_read(server: Server) {
        let admin = server.admin().await;
        admin.define("person", json!([{ "name": "name", "type": "text" }, { "name": "level", "type": "integer" }])).await;
        admin.define("label", json!([{ "name": "text", "type": "text" }])).await;
        admin.relate(json!({ "name": "boss", "kind": "many_to_one", "source": "person", "target": "person" })).await;
        admin.relate(json!({ "name": "labels", "kind": "many_to_many", "source": "person", "target": "label" })).await;
        // The reader reads the links of people of level 1 only, but the first grant looks at those of everybody.
        role(&admin, "reader", json!([
            { "resource": "person", "actions": ["read"], "where": { "labels": { "some": { "text": "x" } } }, "fields": { "read": ["name"] } },
            { "resource": "person", "actions": ["read"], "where": { "level": 1 } },
            { "resource": "label", "actions": ["read"] },
        ])).await;
        let (reader, _) = user(&admin, "reader", Some("reader")).await;
        let label = admin.make("label", json!({ "text": "x" })).await;
        let chief = admin.make("person", json!({ "name": "chief", "level": 2 })).await;
        let linked = admin.post(&format!("{}/links/labels", path(&chief)), json!({ "ids": [label] })).await;
        assert_eq!(linked.status, 200, "{}", linked.text);
        admin.make("person", json!({ "name": "worker", "level": 1, "boss_id": chief })).await;
        let names = async |condition: Value| {
            let answer = reader.post("/api/v1/data/person/query", json!({ "where": condition, "sort": "name" })).await.data();
            answer.as_array().unwrap().iter().map(|row| row["name"].clone()).collect::<Vec<_>>()
        };
        assert_eq!(names(json!({})).await, ["chief", "worker"]);
        assert_eq!(names(json!({ "labels": { "some": {} } })).await, Vec::<Value>::new());
        // The condition asks for rows of the object that it is about.
        assert_eq!(names(json!({ "boss": { "name": "chief" } })).await, ["worker"]);
        let shown = reader.get("/api/v1/data/person?name=worker&expand=boss").await.data();
        assert_eq!(shown[0]["boss"]["name"], "chief", "{shown}");
    }

    async fn who_saves_a_condition_reads_what_it_tests(server: Server) {
        let admin = server.admin().await;
        define(&admin).await;
        role(&admin, "lead", json!([
            { "resource": "roles", "actions": ["create"] },
            { "resource": "person", "actions": ["read", "update"], "fields": { "read": { "except": ["salary", "department_id", "skills"] } } },
            { "resource": "person", "actions": ["read"], "where": { "state": "gone" } },
            { "resource": "department", "actions": ["read"] },
            { "resource": "skill", "actions": ["read"] },
        ])).await;
        let (lead, _) = user(&admin, "lead", Some("lead")).await;
        let mut number = 0;
        let mut given = async |rest: Value| {
            number += 1;
            let mut grant = json!({ "resource": "person", "actions": ["read"], "fields": { "read": ["name"] } });
            grant.as_object_mut().unwrap().extend(rest.as_object().unwrap().clone());
            lead.post("/api/v1/roles", json!({ "name": format!("given{number}"), "permissions": [grant] })).await.status
        };
        assert_eq!(given(json!({ "where": { "name": "ada" } })).await, 201);
        for condition in [
            json!({ "salary": { "gt": 200 } }),
            json!({ "_not": { "salary": 1 } }),
            json!({ "department_id": null }),
            json!({ "department": { "name": "one" } }),
            json!({ "skills": { "some": { "name": "go" } } }),
        ] {
            assert_eq!(given(json!({ "where": condition })).await, 403, "{condition}");
            assert_eq!(given(json!({ "actions": ["update"], "fields": { "write": ["name"] }, "check": condition })).await, 403, "{condition}");
        }
    }

    async fn refusals_name_no_field_that_is_not_known(server: Server) {
        let admin = server.admin().await;
        let fields = json!([
            { "name": "name", "type": "text", "required": true },
            { "name": "email", "type": "text", "isUnique": true },
            { "name": "ssn", "type": "text", "default": "none" },
            { "name": "grade", "type": "integer", "required": true },
            { "name": "score", "type": "integer", "default": 7 },
        ]);
        let definition = json!({ "name": "lead", "fields": fields, "constraints": { "uniqueTogether": [["name", "ssn"]] } });
        assert_eq!(admin.post("/api/v1/objects", definition).await.status, 201);
        admin.define("visit", json!([{ "name": "at", "type": "text" }])).await;
        admin.relate(json!({ "name": "secret", "kind": "many_to_one", "source": "visit", "target": "lead" })).await;
        admin.relate(json!({ "name": "outings", "kind": "many_to_many", "source": "lead", "target": "visit" })).await;
        role(&admin, "writer", json!([
            { "resource": "lead", "actions": ["read", "create", "update", "delete"], "fields": { "read": ["name"], "write": ["name", "grade"] } },
            { "resource": "visit", "actions": ["read"], "fields": { "read": ["at"] } },
        ])).await;
        role(&admin, "blind", json!([{ "resource": "lead", "actions": ["create"], "fields": { "read": [], "write": ["name", "grade"] } }])).await;
        role(&admin, "half", json!([{ "resource": "lead", "actions": ["create", "update"], "fields": { "write": ["name"] } }])).await;
        role(&admin, "remover", json!([
            { "resource": "lead", "actions": ["delete"], "fields": { "read": ["name"] } },
            { "resource": "visit", "actions": ["read"], "fields": { "read": ["at"] } },
            data(),
        ])).await;
        let (writer, _) = user(&admin, "writer", Some("writer")).await;
        let (blind, _) = user(&admin, "blind", Some("blind")).await;
        let (half, _) = user(&admin, "half", Some("half")).await;
        let (remover, _) = user(&admin, "remover", Some("remover")).await;
        let hides = |answer: &Answer| {
            for name in ["ssn", "email", "score", "secret"] {
                assert!(!answer.text.contains(name), "{}", answer.text);
            }
        };
        let lead = |name: &str| json!({ "name": name, "grade": 1 });
        let made = writer.post("/api/v1/data/lead", lead("ada")).await;
        assert_eq!((made.status, keys(&made.data())), (201, vec!["id", "name"]));
        let id = made.data()["id"].as_str().unwrap().to_owned();
        let twice = writer.post("/api/v1/data/lead", lead("ada")).await;
        twice.expect_error(409, "unique_violation");
        hides(&twice);
        let target = writer.post("/api/v1/data/lead?on_conflict=name", lead("bob")).await;
        target.expect_error(400, "invalid_upsert_target");
        hides(&target);
        let upserted = writer.post("/api/v1/data/lead?on_conflict=id", json!({ "id": id, "name": "eve", "grade": 2 })).await;
        assert_eq!((upserted.status, upserted.data()), (200, json!({ "id": id, "name": "eve" })), "{}", upserted.text);
        // If the caller may read nothing, the response to a create has only the values that were sent.
        let made = blind.post("/api/v1/data/lead", lead("fay")).await;
        assert_eq!((made.status, keys(&made.data())), (201, vec!["id", "name", "grade"]), "{}", made.text);
        let missing = half.post("/api/v1/data/lead", json!({ "name": "gil" })).await;
        missing.expect_error(400, "not_null_violation");
        assert!(!missing.text.contains("grade"), "{}", missing.text);
        let added = half.patch(&format!("/api/v1/data/lead/{id}"), json!({ "grade": { "$inc": 1 } })).await;
        added.expect_error(403, "forbidden");
        admin.make("visit", json!({ "secret_id": id })).await;
        let removed = writer.delete(&format!("/api/v1/data/lead/{id}")).await;
        removed.expect_error(409, "foreign_key_violation");
        hides(&removed);
        // A caller who may only delete records knows only their ids.
        let ty = graphql(&remover, "{ __type(name: \"Lead\") { fields { name } } }").await;
        assert_eq!(ty["data"]["__type"]["fields"], json!([{ "name": "id" }]), "{ty}");
        // The list of the caller's permissions does not contain the names of excepted fields.
        role(&admin, "most", json!([{ "resource": "lead", "actions": ["read"], "fields": { "read": { "except": ["ssn", "score", "email"] } } }])).await;
        let (most, _) = user(&admin, "most", Some("most")).await;
        let own = most.get("/api/v1/me/permissions").await;
        hides(&own);
        assert!(own.text.contains("grade"), "{}", own.text);
    }

    async fn the_callers_permissions_hide_conditions_on_unknown_fields(server: Server) {
        let World { admin, .. } = world(&server).await;
        let hidden = json!({ "_hidden": true });
        let read = |condition: &Value| {
            json!({ "resource": "person", "actions": ["read"], "where": condition, "fields": { "read": ["name"] } })
        };
        let update = |check: &Value| {
            let fields = json!({ "write": ["name"] });
            json!({ "resource": "person", "actions": ["update"], "where": { "name": { "neq": "x" } }, "check": check, "fields": fields })
        };
        let (by_salary, by_budget) = (json!({ "salary": { "lt": 1000 } }), json!({ "department": { "budget": { "lt": 5000 } } }));
        role(&admin, "clerk", json!([read(&by_salary), update(&by_budget)])).await;
        let (clerk, id) = user(&admin, "clerk", Some("clerk")).await;
        // Only what the clerk knows is shown: not that there are salaries, and not the limit.
        assert_eq!(own_grants(&clerk, "person").await, [read(&hidden), update(&hidden)]);
        assert_eq!(names(&clerk, "").await, ["ada", "bob", "cleo"]);
        role(&admin, "auditor", json!([{ "resource": "roles", "actions": ["read"] }])).await;
        assert_eq!(admin.post(&format!("/api/v1/users/{id}/roles"), json!({ "roleId": "auditor" })).await.status, 200);
        assert_eq!(own_grants(&clerk, "person").await, [read(&by_salary), update(&by_budget)]);
    }

    async fn somebody_who_can_own_no_rows_knows_the_fields_of_their_grant(server: Server) {
        let World { admin, .. } = world(&server).await;
        let grants = json!([{ "resource": "person", "actions": ["read"], "rowPolicy": "own", "fields": { "read": ["name"] } }]);
        assert_eq!(admin.patch("/api/v1/roles/public", json!({ "permissions": grants })).await.status, 200);
        let nobody = server.with_token(String::new());
        assert_eq!(nobody.get("/api/v1/data/person").await.data(), json!([]));
        assert_eq!(nobody.get("/api/v1/data/person?name=ada").await.data(), json!([]));
        nobody.get("/api/v1/data/person?salary=1").await.expect_error(400, "unknown_field");
        let document = nobody.get("/api/v1/openapi.json").await.text;
        assert!(!document.contains("salary"));
    }

    async fn a_refused_field_comes_before_the_state_of_the_record(server: Server) {
        let World { admin, people: [ada, _, cleo], .. } = world(&server).await;
        role(&admin, "editor", json!([
            { "resource": "person", "actions": ["read"], "fields": { "read": ["name", "salary"] } },
            { "resource": "person", "actions": ["update"], "fields": { "write": ["name"] } },
            { "resource": "person", "actions": ["update"], "where": { "department.name": "one" }, "fields": { "write": ["salary"] } },
        ])).await;
        let (editor, _) = user(&admin, "editor", Some("editor")).await;
        let change = async |id: &str, values: Value| {
            let request = editor.request("PATCH", &path(id)).header("if-match", "\"stale\"").json(&values);
            editor.server.send(request).await
        };
        change(&ada, json!({ "salary": 1 })).await.expect_error(412, "precondition_failed");
        assert_eq!(change(&cleo, json!({ "salary": 1 })).await.expect_error(403, "forbidden")["field"], "salary");
        // A dry run is refused like the call itself.
        for query in ["", "?dryRun=true"] {
            let answer = editor.patch(&format!("/api/v1/data/person/bulk{query}"), json!({ "ids": [ada, cleo], "values": { "salary": 1 } })).await;
            assert_eq!(answer.expect_error(403, "forbidden")["field"], "salary", "{query}");
        }
        assert_eq!(editor.patch(&path(&ada), json!({ "salary": { "$inc": 5 } })).await.data()["salary"], 305);
        assert_eq!(editor.patch("/api/v1/data/person/bulk?dryRun=true", json!({ "ids": [ada], "values": { "salary": 1 } })).await.json()["count"], 1);
    }
}

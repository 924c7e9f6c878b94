//! The OpenAPI document: it has the live schema, shows callers only what they may know, and matches the responses.

use std::collections::BTreeSet;

use blockbase_tests::{Admin, Answer, Engine, ServerBuilder, example_block, on_sqlite_first};
use serde_json::{Value, json};

const METHODS: [&str; 5] = ["get", "post", "put", "patch", "delete"];

async fn document(who: &Admin<'_>) -> Value {
    let answer = who.get("/api/v1/openapi.json").await;
    assert_eq!(answer.status, 200, "{}", answer.text);
    answer.json()
}

/// The `method path` of every operation in the document.
pub(crate) fn operations(document: &Value) -> BTreeSet<String> {
    let paths = document["paths"].as_object().unwrap().iter();
    paths
        .flat_map(|(path, item)| {
            let methods = item.as_object().unwrap().keys().filter(|key| METHODS.contains(&key.as_str()));
            methods.map(move |method| format!("{method} {path}"))
        })
        .collect()
}

/// Every `$ref` in a value.
fn references<'a>(value: &'a Value, found: &mut Vec<&'a str>) {
    match value {
        Value::Object(members) => {
            found.extend(members.get("$ref").and_then(Value::as_str));
            members.values().for_each(|member| references(member, found));
        }
        Value::Array(items) => items.iter().for_each(|item| references(item, found)),
        _ => {}
    }
}

/// Checks a response against the document: its status is declared, and its body matches the schema.
#[track_caller]
fn assert_described(document: &Value, method: &str, path: &str, answer: &Answer) {
    let response = &document["paths"][path][method]["responses"][answer.status.to_string()];
    assert!(response.is_object(), "{method} {path} declares no {}: {}", answer.status, answer.text);
    let response = match response["$ref"].as_str() {
        Some(reference) => document.pointer(reference.strip_prefix('#').unwrap()).unwrap(),
        None => response,
    };
    for header in response["headers"].as_object().unwrap().keys() {
        assert!(answer.headers.contains_key(header), "{method} {path} {}: no {header}", answer.status);
    }
    let Some(schema) = response["content"]["application/json"].get("schema") else {
        assert_eq!(answer.text, "");
        return;
    };
    let whole = json!({ "components": document["components"], "allOf": [schema] });
    let validator = jsonschema::options().should_validate_formats(true).build(&whole).unwrap();
    let body = answer.json();
    let failures: Vec<String> =
        validator.iter_errors(&body).map(|failure| format!("{} at {}", failure, failure.instance_path())).collect();
    assert!(failures.is_empty(), "{method} {path} {}: {failures:?} in {}", answer.status, answer.text);
}

async fn make_schema(admin: &Admin<'_>) {
    let fields = json!([
        { "name": "title", "type": "text", "required": true, "max": 200, "label": "Title" },
        { "name": "contact", "type": "email" },
        { "name": "link", "type": "url" },
        { "name": "handle", "type": "slug" },
        { "name": "code", "type": "text", "pattern": "^[A-Z]{2}-[0-9]+$" },
        { "name": "word", "type": "text", "pattern": "(?i)^[a-z]+$" },
        { "name": "state", "type": "enum", "options": ["open", "done"], "required": true, "default": "open" },
        { "name": "colours", "type": "multi_enum", "options": ["red", "green"] },
        { "name": "priority", "type": "integer", "min": 0, "max": 9 },
        { "name": "views", "type": "big_integer" },
        { "name": "effort", "type": "decimal" },
        { "name": "score", "type": "float" },
        { "name": "progress", "type": "percentage" },
        { "name": "cost", "type": "currency" },
        { "name": "stars", "type": "rating" },
        { "name": "done", "type": "boolean", "default": false },
        { "name": "due", "type": "date" },
        { "name": "remind_at", "type": "datetime" },
        { "name": "daily_at", "type": "time" },
        { "name": "extra", "type": "json" },
        { "name": "external_id", "type": "uuid", "isUnique": true },
    ]);
    let task = json!({ "name": "task", "fields": fields, "constraints": { "uniqueTogether": [["handle", "due"]] } });
    let name = json!([{ "name": "name", "type": "text", "required": true }]);
    for object in [task, json!({ "name": "project", "fields": name }), json!({ "name": "tag", "fields": name })] {
        assert_eq!(admin.post("/api/v1/objects", object).await.status, 201);
    }
    for (name, kind, target) in [("project", "many_to_one", "project"), ("tags", "many_to_many", "tag")] {
        let relationship = json!({ "name": name, "kind": kind, "source": "task", "target": target, "onDelete": null });
        let made = admin.post("/api/v1/relationships", relationship).await;
        assert_eq!(made.status, 201, "{}", made.text);
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn references_lead_somewhere_and_actions_take_what_their_block_declares() {
    let server = ServerBuilder::new(Engine::Sqlite).start().await;
    let admin = server.admin().await;
    make_schema(&admin).await;
    let installed = admin.install("", example_block("tasks").await).await;
    assert_eq!(installed.status, 201, "{}", installed.text);
    let document = document(&admin).await;
    assert_eq!(document["openapi"], "3.1.0");

    let mut found = Vec::new();
    references(&document, &mut found);
    assert!(found.len() > 100);
    for reference in found {
        assert!(document.pointer(reference.strip_prefix('#').unwrap()).is_some(), "{reference} leads nowhere");
    }
    let mut ids = BTreeSet::new();
    for operation in operations(&document) {
        let (method, path) = operation.split_once(' ').unwrap();
        let id = document["paths"][path][method]["operationId"].as_str().unwrap().to_owned();
        assert!(ids.insert(id), "{operation} has the id of another");
    }

    let action = &document["paths"]["/api/v1/blocks/tasks/actions/complete"]["post"];
    let input = action["requestBody"]["content"]["application/json"]["schema"]["$ref"].as_str().unwrap();
    let declared: Value = serde_json::from_str(include_str!("../../../../examples/tasks/block.json")).unwrap();
    assert_eq!(document.pointer(&input[1..]).unwrap(), &declared["actions"][0]["input"]);
}

on_sqlite_first! {
    async fn answers_are_what_the_document_says(server: Server) {
        let admin = server.admin().await;
        make_schema(&admin).await;
        let document = document(&admin).await;
        let check = |method: &str, path: &str, answer: &Answer| assert_described(&document, method, path, answer);

        let project = admin.post("/api/v1/data/project", json!({ "name": "p" })).await;
        check("post", "/api/v1/data/project", &project);
        let tag = admin.post("/api/v1/data/tag", json!({ "name": "t" })).await.data()["id"].clone();
        let full = json!({
            "title": "Été", "contact": "a@example.com", "link": "https://example.com/a?b=c", "handle": "a-b", "code": "AB-12",
            "word": "Word", "state": "done", "colours": ["red"], "priority": "3", "views": 9_223_372_036_854_775_807_i64,
            "effort": "12.3456789", "score": 1e300, "progress": 12.5, "cost": -1.005, "stars": 5, "done": "true",
            "due": "2026-02-28", "remind_at": "2026-02-28T12:00:00+02:00", "daily_at": "12:30", "extra": { "a": [1, null] },
            "external_id": "0B0B4F5A-6E2B-4C4B-8C57-9B0A1E4F1A11", "project_id": project.data()["id"],
        });
        let created = admin.post("/api/v1/data/task", full.clone()).await;
        assert_eq!(created.status, 201, "{}", created.text);
        check("post", "/api/v1/data/task", &created);
        let sent = &document["paths"]["/api/v1/data/task"]["post"]["requestBody"]["content"]["application/json"]["schema"];
        let validator = |schema: &Value| {
            jsonschema::validator_for(&json!({ "components": document["components"], "allOf": [schema] })).unwrap()
        };
        assert!(validator(sent).is_valid(&full));
        assert!(!validator(sent).is_valid(&json!({})) && !validator(sent).is_valid(&json!({ "title": "t", "colour": 1 })));
        let changes = json!({ "$ref": "#/components/schemas/TaskUpdateInput" });
        assert!(validator(&changes).is_valid(&json!({ "priority": { "$inc": 1 }, "cost": { "$dec": 0.5 }, "due": null })));
        for wrong in [json!({ "priority": { "$inc": 1, "$dec": 1 } }), json!({ "title": null }), json!({ "title": { "$inc": 1 } })] {
            assert!(!validator(&changes).is_valid(&wrong), "{wrong}");
        }

        let bare = admin.post("/api/v1/data/task?on_conflict=external_id", json!({ "title": "b", "external_id": full["external_id"] })).await;
        assert_eq!(bare.status, 200, "{}", bare.text);
        check("post", "/api/v1/data/task", &bare);
        let bare = admin.post("/api/v1/data/task", json!({ "title": "nothing else" })).await;
        check("post", "/api/v1/data/task", &bare);
        check("post", "/api/v1/data/task", &admin.post("/api/v1/data/task", json!({ "title": 1 })).await);
        check("post", "/api/v1/data/task", &admin.post("/api/v1/data/task", json!({ "title": 1, "colour": 2 })).await);
        let id = created.data()["id"].as_str().unwrap().to_owned();
        let one = format!("/api/v1/data/task/{id}");
        let linked = admin.post(&format!("{one}/links/tags"), json!({ "ids": [tag] })).await;
        check("post", "/api/v1/data/task/{id}/links/tags", &linked);
        for query in ["", "?expand=project,tags", "?select=title&count=none&expand=tags.tags", "?expand=nothing", "?page=0", "?colour=1", "?priority%5Bgte%5D=1"] {
            check("get", "/api/v1/data/task", &admin.get(&format!("/api/v1/data/task{query}")).await);
        }
        check("get", "/api/v1/data/task/{id}", &admin.get(&format!("{one}?expand=project,tags,nothing")).await);
        check("get", "/api/v1/data/project", &admin.get("/api/v1/data/project?expand=task_by_project").await);
        check("patch", "/api/v1/data/task/{id}", &admin.patch(&one, json!({ "priority": { "$inc": 1 } })).await);
        check("patch", "/api/v1/data/task/{id}", &admin.patch(&one, json!({ "priority": { "$inc": 9 } })).await);
        for query in ["?fn=sum&field=cost", "?fn=count", "?fn=avg"] {
            check("get", "/api/v1/data/task/aggregate", &admin.get(&format!("/api/v1/data/task/aggregate{query}")).await);
        }
        let bulk = admin.post("/api/v1/data/tag/bulk", json!({ "data": [{ "name": "x" }] })).await;
        check("post", "/api/v1/data/tag/bulk", &bulk);
        for query in ["", "?dryRun=true", "?dryRun=perhaps"] {
            let body = json!({ "ids": [tag], "values": { "name": "y" } });
            check("patch", "/api/v1/data/tag/bulk", &admin.patch(&format!("/api/v1/data/tag/bulk{query}"), body).await);
            let body = json!({ "ids": [] });
            check("delete", "/api/v1/data/tag/bulk", &admin.delete_with(&format!("/api/v1/data/tag/bulk{query}"), body).await);
        }
        for condition in ["%7B%22name%22:%22y%22%7D", "%7B%7D", "%7B%22nothing%22:1%7D", "x"] {
            let path = format!("/api/v1/data/tag/bulk?dryRun=true&where={condition}");
            check("patch", "/api/v1/data/tag/bulk", &admin.patch(&path, json!({ "values": { "name": "z" } })).await);
            check("delete", "/api/v1/data/tag/bulk", &admin.delete(&path).await);
        }
        for condition in ["*", "\"other\"", "malformed"] {
            for (method, body) in [("PATCH", json!({ "priority": 1 })), ("DELETE", Value::Null)] {
                // A deletion whose `If-Match` matches comes last.
                if (method, condition) != ("DELETE", "*") {
                    let request = admin.request(method, &one).header("if-match", condition);
                    let request = if body.is_null() { request } else { request.json(&body) };
                    check(&method.to_lowercase(), "/api/v1/data/task/{id}", &server.send(request).await);
                }
            }
        }
        let known = server.send(admin.request("GET", &one).header("if-none-match", "*")).await;
        assert_eq!(known.status, 304);
        check("get", "/api/v1/data/task/{id}", &known);
        let expanded = json!({ "title": "x", "project_id": project.data()["id"] });
        check("post", "/api/v1/data/task", &admin.post("/api/v1/data/task?expand=project,tags,nothing", expanded).await);
        check("patch", "/api/v1/data/task/{id}", &admin.patch(&format!("{one}?expand=project,nothing"), json!({})).await);
        check("delete", "/api/v1/data/task/{id}", &admin.delete(&one).await);
        check("delete", "/api/v1/data/task/{id}", &admin.delete(&one).await);
        for path in [
            "/api/v1/data", "/api/v1/objects", "/api/v1/relationships", "/api/v1/schema", "/api/v1/schema/migrations",
            "/api/v1/blocks", "/api/v1/blocks/actions", "/api/v1/me", "/api/auth/get-session", "/healthz", "/readyz",
            "/api/v1/openapi.json", "/api/v1/roles", "/api/v1/users", "/api/v1/api-keys", "/api/v1/tasks", "/api/auth/list-sessions",
            "/api/v1/instance", "/api/v1/me/permissions", "/api/v1/me/preferences", "/api/v1/settings", "/api/v1/status",
            "/api/v1/audit",
        ] {
            check("get", path, &admin.get(path).await);
            check("get", path, &server.call("GET", path, None).await);
        }
        let sign_in = json!({ "email": "admin@example.com", "password": "correct horse battery" });
        let mut sign_in_to_page = sign_in.clone();
        sign_in_to_page["callbackURL"] = json!("/welcome");
        for body in [sign_in, json!({ "email": "admin@example.com", "password": "wrong" }), json!({})] {
            check("post", "/api/auth/sign-in/email", &server.call("POST", "/api/auth/sign-in/email", Some(body)).await);
        }
        let signed_in = server.call("POST", "/api/auth/sign-in/email", Some(sign_in_to_page)).await;
        check("post", "/api/auth/sign-in/email", &signed_in);
        assert_eq!((&signed_in.json()["redirect"], &signed_in.json()["url"]), (&json!(true), &json!("/welcome")));
        for body in [json!({ "view": { "sort": "-due" } }), json!([]), json!({ "view": "x".repeat(70_000) })] {
            check("patch", "/api/v1/me/preferences", &admin.patch("/api/v1/me/preferences", body).await);
        }
        check("post", "/api/v1/events/ticket", &admin.post("/api/v1/events/ticket", json!({})).await);
        check("post", "/api/v1/events/ticket", &server.call("POST", "/api/v1/events/ticket", None).await);
        for query in ["?ticket=none", "?ticket=a&ticket=b", "?since=nothing&resume=true"] {
            let request = server.request("GET", &format!("/api/v1/events/stream{query}"));
            let request = if query.contains("ticket") { request } else { request.bearer_auth(&admin.token) };
            check("get", "/api/v1/events/stream", &server.send(request).await);
        }
        check("post", "/api/v1/objects", &admin.post("/api/v1/objects", json!({ "name": "task" })).await);
    }

    async fn the_document_follows_the_schema(server: Server) {
        let admin = server.admin().await;
        assert!(document(&admin).await["paths"]["/api/v1/data/task"].is_null());
        make_schema(&admin).await;
        let made = document(&admin).await;
        let task = &made["components"]["schemas"]["Task"];
        assert_eq!(task["properties"]["title"], json!({ "type": "string", "maxLength": 200, "title": "Title" }));
        assert_eq!(
            task["properties"]["priority"],
            json!({ "type": ["integer", "null"], "format": "int32", "minimum": 0, "maximum": 9 })
        );
        assert_eq!((&task["properties"]["stars"]["maximum"], &task["properties"]["code"]["pattern"]), (&json!(5), &json!("^[A-Z]{2}-[0-9]+$")));
        // If a flag exists in only one dialect of patterns, the pattern is described in words.
        assert!(task["properties"]["word"]["pattern"].is_null());
        assert!(task["properties"]["word"]["description"].as_str().unwrap().contains("(?i)^[a-z]+$"));
        assert_eq!(made["components"]["schemas"]["TaskCreateInput"]["required"], json!(["title"]));
        assert_eq!(task["properties"]["tags"]["items"]["$ref"], "#/components/schemas/Tag");
        let names = |document: &Value| -> Vec<String> {
            let parameters = document["paths"]["/api/v1/data/task"]["get"]["parameters"].as_array().unwrap();
            let resolved = parameters.iter().map(|parameter| match parameter["$ref"].as_str() {
                Some(reference) => document.pointer(&reference[1..]).unwrap(),
                None => parameter,
            });
            resolved.map(|parameter| parameter["name"].as_str().unwrap().to_owned()).collect()
        };
        let known = names(&made);
        for name in ["search", "q", "expand", "priority", "priority[gte]", "title[ilike]", "colours[in]", "extra[is_null]"] {
            assert!(known.iter().any(|known| known == name), "{name}");
        }
        for name in ["done[like]", "extra", "extra[eq]", "colours[gt]"] {
            assert!(!known.iter().any(|known| known == name), "{name}");
        }
        // A condition has a type for each object, with its fields and relations.
        let schemas = &made["components"]["schemas"];
        let of = |name: &str| json!({ "$ref": format!("#/components/schemas/{name}") });
        let condition = &schemas["Task_Where"];
        assert_eq!(condition["additionalProperties"], false);
        for (name, ty) in [
            ("title", "SvcWhereText"), ("colours", "SvcWhereOptions"), ("priority", "SvcWhereInteger"), ("effort", "SvcWhereNumber"),
            ("done", "SvcWhereBoolean"), ("due", "SvcWhereDate"), ("created_at", "SvcWhereDatetime"), ("daily_at", "SvcWhereTime"),
            ("project_id", "SvcWhereUuid"), ("extra", "SvcWhereJson"), ("project", "Project_Where"),
        ] {
            assert_eq!(condition["properties"][name], of(ty), "{name}");
        }
        for name in ["some", "none", "every"] {
            assert_eq!(condition["properties"]["tags"]["properties"][name], of("Tag_Where"), "{name}");
        }
        for name in ["_and", "_or"] {
            assert_eq!(condition["properties"][name]["items"], of("Task_Where"), "{name}");
        }
        assert_eq!(condition["properties"]["_not"]["allOf"], json!([of("Task_Where")]));
        let validator = jsonschema::options().build(&json!({ "components": made["components"], "$ref": "#/components/schemas/Task_Where" })).unwrap();
        for (sent, is_valid) in [
            (json!({}), true),
            (json!({ "title": "x", "done": null, "priority": { "gte": 1, "lt": "9" } }), true),
            (json!({ "_or": [{ "project": { "name": { "ilike": "x" } } }, { "_not": { "tags": { "some": {}, "none": { "name": "x" } } } }] }), true),
            (json!({ "project.name": "x", "title": { "in": ["a", null] }, "colours": { "in": "$user.roles" } }), true),
            (json!({ "title": { "nin": "$user.roles" } }), true),
            (json!({ "extra": { "is_null": true } }), true),
            (json!({ "done": "true" }), true),
            (json!({ "done": { "in": ["false", true, null] } }), true),
            (json!({ "priority": { "gte": "1" }, "title": { "neq": "$$x" }, "due": { "lt": "$today" } }), true),
            (json!({ "done": "yes" }), false),
            (json!({ "done": "$user.id" }), false),
            (json!({ "_xor": [] }), false),
            (json!({ "nothing": 1 }), false),
            (json!({ "title": 1 }), false),
            (json!({ "title": {} }), false),
            (json!({ "priority": { "like": "x" } }), false),
            (json!({ "extra": { "eq": 1 } }), false),
            (json!({ "extra": { "is_null": false } }), false),
            (json!({ "tags": { "name": "x" } }), false),
            (json!({ "project": { "nothing": 1 } }), false),
        ] {
            assert_eq!(validator.is_valid(&sent), is_valid, "{sent}");
            let answer = admin.post("/api/v1/data/task/query", json!({ "where": sent })).await;
            assert_eq!(answer.status, if is_valid { 200 } else { 400 }, "{sent}: {}", answer.text);
        }
        // No value of these fields is the name of a role.
        for field in ["priority", "effort", "done", "due", "created_at", "daily_at", "project_id", "id"] {
            for operator in ["in", "nin"] {
                let sent = json!({ field: { operator: "$user.roles" } });
                assert!(!validator.is_valid(&sent), "{sent}");
                admin.post("/api/v1/data/task/query", json!({ "where": sent })).await.expect_error(400, "invalid_value");
            }
        }
        // The server accepts these too, but the schema has only the main names of operators.
        for (field, alias, value) in [("priority", ">=", "1"), ("priority", "GT", "1"), ("title", "Contains", "x")] {
            let sent = json!({ field: { alias: value } });
            assert!(!validator.is_valid(&sent), "{sent}");
            let answer = admin.post("/api/v1/data/task/query", json!({ "where": sent })).await;
            assert_eq!(answer.status, 200, "{sent}: {}", answer.text);
        }
        // The condition is described at each operation that accepts one.
        let operation = |path: &str, method: &str| made["paths"][format!("/api/v1/data/task{path}")][method].clone();
        for path in ["", "/aggregate", "/export"] {
            let parameters = operation(path, "get")["parameters"].clone();
            let resolved = |parameter: &Value| match parameter["$ref"].as_str() {
                Some(reference) => made.pointer(&reference[1..]).unwrap().clone(),
                None => parameter.clone(),
            };
            let parameter = parameters.as_array().unwrap().iter().map(resolved).find(|parameter| parameter["name"] == "where");
            assert_eq!(parameter.unwrap()["content"]["application/json"]["schema"], of("Task_Where"), "{path}");
        }
        let body = |path: &str, method: &str| operation(path, method)["requestBody"]["content"]["application/json"]["schema"].clone();
        assert_eq!(body("/query", "post")["properties"]["where"], of("Task_Where"));
        for (method, needs_body) in [("patch", true), ("delete", false)] {
            assert_eq!(body("/bulk", method)["oneOf"][1]["properties"]["where"], of("Task_Where"), "{method}");
            let bulk = operation("/bulk", method);
            assert_eq!(bulk["requestBody"]["required"], needs_body, "{method}");
            let parameter = bulk["parameters"].as_array().unwrap().iter().find(|parameter| parameter["name"] == "where");
            assert_eq!(parameter.unwrap()["content"]["application/json"]["schema"], of("Task_Where"), "{method}");
        }
        let changes = jsonschema::options()
            .build(&json!({ "components": made["components"], "allOf": [body("/bulk", "patch")] }))
            .unwrap();
        let values = json!({ "done": true });
        for (sent, is_valid) in [
            (json!({ "ids": [], "values": values }), true),
            (json!({ "where": { "done": false }, "values": values }), true),
            // The query has the condition.
            (json!({ "values": values }), true),
            (json!({ "ids": [], "where": { "done": false }, "values": values }), false),
            (json!({ "where": { "nothing": 1 }, "values": values }), false),
            (json!({ "where": { "done": false } }), false),
        ] {
            assert_eq!(changes.is_valid(&sent), is_valid, "{sent}");
        }
        // The query with a body is a read.
        let (query, list) = (operation("/query", "post"), operation("", "get"));
        let view_as = json!({ "$ref": "#/components/parameters/SvcViewAs" });
        for read in [&query, &list] {
            assert!(read["parameters"].as_array().unwrap().contains(&view_as), "{read}");
            assert!(read["responses"]["507"].is_null(), "{read}");
        }

        let upsert = made["paths"]["/api/v1/data/task"]["post"]["parameters"][0]["description"].as_str().unwrap();
        assert!(upsert.contains("id or external_id or handle,due"), "{upsert}");

        let field = json!({ "name": "notes", "type": "text" });
        assert_eq!(admin.post("/api/v1/objects/task/fields", field).await.status, 201);
        assert!(document(&admin).await["components"]["schemas"]["Task"]["properties"]["notes"].is_object());
        assert_eq!(admin.delete("/api/v1/objects/tag?cascade=true").await.status, 204);
        let after = document(&admin).await;
        assert!(after["components"]["schemas"]["Tag"].is_null() && after["paths"]["/api/v1/data/task/{id}/links/tags"].is_null());
    }

    async fn the_document_has_a_tag_that_saves_sending_it_again(server: Server) {
        let admin = server.admin().await;
        let first = admin.get("/api/v1/openapi.json").await;
        let tag = first.headers["etag"].to_str().unwrap().to_owned();
        assert!(tag.starts_with('"') && tag.ends_with('"') && tag.len() > 30, "{tag}");
        assert_eq!(first.headers["cache-control"], "private, no-cache");
        let known = async |tag: &str| server.send(admin.request("GET", "/api/v1/openapi.json").header("if-none-match", tag)).await;
        for sent in [tag.clone(), format!("W/{tag}"), format!("\"other\", {tag}"), "*".to_owned()] {
            let answer = known(&sent).await;
            assert_eq!((answer.status, answer.text.as_str()), (304, ""), "{sent}");
            assert_eq!(answer.headers["etag"], tag.as_str());
        }
        assert_eq!(known("\"other\"").await.status, 200);
        admin.make_task_object().await;
        let changed = known(&tag).await;
        assert_eq!(changed.status, 200);
        assert_ne!(changed.headers["etag"], tag.as_str());
    }

    async fn nobody_learns_of_objects_that_they_have_no_right_to(server: Server) {
        let admin = server.admin().await;
        make_schema(&admin).await;
        let other = server.with_token(server.sign_up("other").await);
        let anonymous = server.call("GET", "/api/v1/openapi.json", None).await.json();
        for seen in [document(&other).await, anonymous] {
            let text = seen.to_string();
            assert!(!text.contains("/data/") && !text.contains("Project") && !text.contains("external_id"), "{text}");
            assert!(seen["paths"]["/api/v1/objects"].is_object() && seen["paths"]["/api/v1/me"].is_object());
        }
        // A caller who may read one object sees this object, without the keys that lead to others.
        let grants = r#"[{"resource":"task","actions":["read"]},{"resource":"tag","actions":["create"]}]"#;
        server.sql(&format!("UPDATE svc_roles SET permissions = '{grants}' WHERE name = 'public'")).await;
        // The restart drops cached permissions of the role.
        let server = server.restart().await;
        let seen = server.call("GET", "/api/v1/openapi.json", None).await.json();
        let paths: Vec<&String> = seen["paths"].as_object().unwrap().keys().filter(|path| path.contains("/data/")).collect();
        assert!(paths.iter().all(|path| path.contains("/data/task") || path.contains("/data/tag")), "{paths:?}");
        assert!(paths.iter().any(|path| *path == "/api/v1/data/tag"));
        assert!(!paths.iter().any(|path| path.contains("/data/task/{id}/links/")), "{paths:?}");
        let task = &seen["components"]["schemas"]["Task"]["properties"];
        assert!(task["title"].is_object() && task["project"].is_null() && task["tags"].is_null());
        assert!(seen["components"]["schemas"]["Project"].is_null());
        assert!(task["project_id"].is_object() && !seen.to_string().contains("`project`"));
    }
}

on_sqlite_first! {
    async fn users_seen_in_part_are_what_the_document_says(server: Server) {
        let admin = server.admin().await;
        let document = document(&admin).await;
        let schemas = &document["components"]["schemas"];
        let members = |name: &str| schemas[name]["properties"].as_object().unwrap().keys().cloned().collect::<BTreeSet<_>>();
        let reader = server.with_token(server.sign_up("reader").await);
        let id = reader.get("/api/v1/me").await.json()["userId"].as_str().unwrap().to_owned();
        let admin_id = admin.get("/api/v1/me").await.json()["userId"].as_str().unwrap().to_owned();
        let whole = admin.get(&format!("/api/v1/users/{id}")).await.data();
        assert_eq!(members("SvcSeenUser"), whole.as_object().unwrap().keys().cloned().collect::<BTreeSet<_>>());
        // The reader sees two members of each user, and with the second role also all members of themselves.
        let grants = [json!({ "fields": { "read": ["name"] } }), json!({ "rowPolicy": "own" })];
        for (number, (mut grant, of_admin)) in grants.into_iter().zip([2, 4]).enumerate() {
            grant.as_object_mut().unwrap().extend(json!({ "resource": "users", "actions": ["create", "read", "update"] }).as_object().unwrap().clone());
            let made = admin.post("/api/v1/roles", json!({ "name": format!("part{number}"), "permissions": [grant] })).await;
            assert_eq!(made.status, 201, "{}", made.text);
            let given = admin.post(&format!("/api/v1/users/{id}/roles"), json!({ "roleId": made.data()["id"] })).await;
            assert_eq!(given.status, 200, "{}", given.text);
            let list = reader.get("/api/v1/users").await;
            assert_described(&document, "get", "/api/v1/users", &list);
            assert_eq!(list.data().as_array().unwrap().len(), 2, "{}", list.text);
            let one = async |id: &str| {
                let answer = reader.get(&format!("/api/v1/users/{id}")).await;
                assert_described(&document, "get", "/api/v1/users/{id}", &answer);
                answer.data().as_object().unwrap().len()
            };
            let of_reader = if number == 0 { 2 } else { members("SvcSeenUser").len() };
            assert_eq!((one(&admin_id).await, one(&id).await), (of_admin, of_reader));
            let changed = reader.patch(&format!("/api/v1/users/{id}"), json!({})).await;
            assert_described(&document, "patch", "/api/v1/users/{id}", &changed);
            assert_eq!(changed.data().as_object().unwrap().len(), of_reader, "{}", changed.text);
        }
        let made = reader.post("/api/v1/users", json!({ "email": "new@example.com" })).await;
        assert_described(&document, "post", "/api/v1/users", &made);
        assert_eq!((made.status, made.data().as_object().unwrap().len()), (201, 4), "{}", made.text);
    }
}

on_sqlite_first! {
    async fn answers_about_identity_are_what_the_document_says(engine: Engine) {
        let server = ServerBuilder::new(engine).env("SVC_ANONYMOUS_AUTH", "true").start().await;
        let admin = server.admin().await;
        let document = document(&admin).await;
        let check = |operation: &str, answer: Answer| {
            let (method, path) = operation.split_once(' ').unwrap();
            assert_described(&document, method, path, &answer);
            answer
        };
        let grants = json!([{ "resource": "*", "actions": ["read"] }, { "resource": "echo:calls", "actions": ["manage"], "rowPolicy": "own" }]);
        let body = json!({ "name": "helper", "description": "Helps.", "permissions": grants });
        let role = check("post /api/v1/roles", admin.post("/api/v1/roles", body.clone()).await).data()["id"].clone();
        check("post /api/v1/roles", admin.post("/api/v1/roles", body).await);
        check("get /api/v1/roles/{id}", admin.get("/api/v1/roles/helper").await);
        check("get /api/v1/roles/{id}", admin.get("/api/v1/roles/nothing").await);
        check("patch /api/v1/roles/{id}", admin.patch("/api/v1/roles/helper", json!({ "description": null })).await);
        check("patch /api/v1/roles/{id}", admin.patch("/api/v1/roles/admin", json!({ "permissions": [] })).await);
        check("delete /api/v1/roles/{id}", admin.delete("/api/v1/roles/public").await);

        let guest = check("post /api/auth/sign-in/anonymous", server.call("POST", "/api/auth/sign-in/anonymous", None).await).json();
        let user = format!("/api/v1/users/{}", guest["user"]["id"].as_str().unwrap());
        let guest = server.with_token(guest["token"].as_str().unwrap().to_owned());
        check("post /api/auth/sign-in/anonymous", guest.post("/api/auth/sign-in/anonymous", json!({})).await);
        check("get /api/v1/users", admin.get("/api/v1/users?search=anonymous").await);
        check("get /api/v1/users", admin.get("/api/v1/users?colour=red").await);
        check("get /api/v1/users/{id}", admin.get(&user).await);
        check("get /api/v1/users/{id}", guest.get(&user).await);
        check("patch /api/v1/users/{id}", admin.patch(&user, json!({ "name": "Guest" })).await);
        let invited = check("post /api/v1/users", admin.post("/api/v1/users", json!({ "email": "dan@example.com", "roles": [role] })).await);
        check("post /api/v1/users", admin.post("/api/v1/users", json!({ "email": "dan@example.com" })).await);
        check("post /api/v1/users", guest.post("/api/v1/users", json!({ "email": "eve@example.com" })).await);
        let link = format!("/api/v1/users/{}/password-link", invited.data()["id"].as_str().unwrap());
        let made = check("post /api/v1/users/{id}/password-link", admin.post(&link, json!({})).await);
        check("post /api/v1/users/{id}/password-link", admin.post(&format!("{user}/password-link"), json!({})).await);
        check("post /api/v1/users/{id}/password-link", admin.post("/api/v1/users/nobody/password-link", json!({})).await);
        let token = made.data()["link"].as_str().unwrap().split_once("#token=").unwrap().1.to_owned();
        for page in ["/welcome", "https://evil.example", ""] {
            let path = format!("/api/auth/reset-password/{token}?callbackURL={page}");
            check("get /api/auth/reset-password/{token}", server.call("GET", &path, None).await);
        }
        for _ in 0..2 {
            let body = json!({ "newPassword": "correct horse battery", "token": token });
            check("post /api/auth/reset-password", server.call("POST", "/api/auth/reset-password", Some(body)).await);
        }
        check("post /api/v1/users/{id}/roles", admin.post(&format!("{user}/roles"), json!({ "roleId": role })).await);
        check("post /api/v1/users/{id}/roles", admin.post(&format!("{user}/roles"), json!({ "roleId": "nothing" })).await);
        check("delete /api/v1/users/{id}/roles/{role}", admin.delete(&format!("{user}/roles/helper")).await);
        check("delete /api/v1/users/{id}/roles/{role}", admin.delete(&format!("{user}/roles/helper")).await);

        let body = json!({ "name": "k", "roleId": role, "expiresAt": "2999-01-01T00:00:00+01:00" });
        let key = check("post /api/v1/api-keys", admin.post("/api/v1/api-keys", body).await).json();
        check("get /api/v1/api-keys", admin.get("/api/v1/api-keys").await);
        let by_key = server.with_token(key["key"].as_str().unwrap().to_owned());
        check("get /api/v1/me", by_key.get("/api/v1/me").await);
        check("get /api/v1/me/preferences", by_key.get("/api/v1/me/preferences").await);
        check("get /api/auth/list-sessions", by_key.get("/api/auth/list-sessions").await);
        let path = format!("/api/v1/api-keys/{}", key["data"]["id"].as_str().unwrap());
        let adopt = format!("{path}/adopt");
        check("post /api/v1/api-keys/{id}/adopt", admin.post(&adopt, Value::Null).await);
        check("post /api/v1/api-keys/{id}/adopt", by_key.post(&adopt, Value::Null).await);
        check("delete /api/v1/api-keys/{id}", admin.delete(&path).await);
        check("delete /api/v1/api-keys/{id}", admin.delete(&path).await);

        let task = "/api/v1/tasks/anonymous-user-cleanup";
        check("get /api/v1/tasks/{id}", admin.get(task).await);
        check("patch /api/v1/tasks/{id}", admin.patch(task, json!({ "config": { "maxAgeDays": 1 } })).await);
        check("patch /api/v1/tasks/{id}", admin.patch(task, json!({ "schedule": "soon" })).await);
        check("post /api/v1/tasks/{id}/run", admin.post(&format!("{task}/run"), json!({})).await);
        check("get /api/v1/tasks/{id}/runs", admin.get(&format!("{task}/runs")).await);
        check("get /api/v1/tasks", admin.get("/api/v1/tasks").await);
        check("delete /api/v1/tasks/{id}", admin.delete(task).await);

        let change = |current: &str| json!({ "currentPassword": current, "newPassword": "another one, long", "revokeOtherSessions": true });
        check("post /api/auth/change-password", admin.post("/api/auth/change-password", change("wrong password")).await);
        let changed = check("post /api/auth/change-password", admin.post("/api/auth/change-password", change("correct horse battery")).await);
        let admin = server.with_token(changed.json()["token"].as_str().unwrap().to_owned());
        check("post /api/v1/admin/claim", admin.post("/api/v1/admin/claim", json!({ "name": "x", "newPassword": "another one, long" })).await);
        check("post /api/auth/update-user", admin.post("/api/auth/update-user", json!({ "name": "Ada" })).await);
        check("post /api/auth/update-user", admin.post("/api/auth/update-user", json!({})).await);
        check("post /api/auth/revoke-session", admin.post("/api/auth/revoke-session", json!({ "id": "x" })).await);
        check("post /api/auth/revoke-other-sessions", admin.post("/api/auth/revoke-other-sessions", json!({})).await);
        check("post /api/auth/delete-anonymous-user", admin.post("/api/auth/delete-anonymous-user", json!({})).await);
        check("post /api/auth/delete-anonymous-user", guest.post("/api/auth/delete-anonymous-user", json!({})).await);
        check("post /api/auth/revoke-sessions", admin.post("/api/auth/revoke-sessions", json!({})).await);
        check("post /api/auth/revoke-sessions", admin.post("/api/auth/revoke-sessions", json!({})).await);
    }
}

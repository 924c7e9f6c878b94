//! Runs the tours of the README and of the pages on both engines: first each tour on a new server, then all of them on one
//! server.

use std::process::{Command, Stdio};

use blockbase_tests::{Server, ServerBuilder, blockbase, free_port, guests_directory, on_sqlite_first};
use serde_json::{Value, json};

use crate::cli_sdk::promises;

/// The commands in the blocks that follow a `tour` mark.
fn tour(document: &str) -> String {
    let mut shell = String::new();
    let mut rest = document;
    while let Some((_, after)) = rest.split_once("<!-- tour -->\n```sh\n") {
        let (commands, behind) = after.split_once("\n```").unwrap();
        shell.push_str(commands);
        shell.push('\n');
        rest = behind;
    }
    shell
}

/// Runs a document's tour against a server. Returns its standard output, and the output together with its errors.
pub(crate) async fn run(document: &str, server: &Server) -> (String, String) {
    let script = tour(document)
        .replace("http://127.0.0.1:4000", &server.base)
        .replace("cargo run --release --", &blockbase().display().to_string())
        // In a checkout, `blockbase` is not installed.
        .replace("\nblockbase block", &format!("\n{} block", blockbase().display()));
    assert!(script.contains(&server.base), "{script}");
    let output = tokio::task::spawn_blocking(move || {
        // A tour waits for background work, so it has a time limit.
        Command::new("timeout")
            .args([
                "--kill-after=5",
                "900",
                "bash",
                "-e",
                "-u",
                "-o",
                "pipefail",
                "-c",
                &format!("trap 'kill $(jobs -p) 2>/dev/null || true' EXIT\n{script}"),
            ])
            .current_dir(concat!(env!("CARGO_MANIFEST_DIR"), "/.."))
            .env("CARGO_TARGET_DIR", guests_directory())
            .stdin(Stdio::null())
            .output()
            .unwrap()
    })
    .await
    .unwrap();
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    let all = format!("{text}\n{}", String::from_utf8_lossy(&output.stderr));
    assert!(output.status.success(), "{all}");
    (text, all)
}

/// The answers that a tour shows, beginning with the first list. The answers before that belong to its setup.
fn shown(text: &str) -> Vec<Value> {
    let answers = serde_json::Deserializer::from_str(text).into_iter::<Value>();
    let answers = answers.collect::<Result<Vec<Value>, _>>().unwrap_or_else(|error| panic!("{error} in\n{text}"));
    assert!(answers.iter().any(|answer| answer["data"].is_array()), "no list in\n{text}");
    answers.into_iter().skip_while(|answer| !answer["data"].is_array()).collect()
}

/// One field of each record of a list.
fn field_of_each(list: &Value, field: &str) -> Value {
    list["data"].as_array().into_iter().flatten().map(|record| record[field].clone()).collect()
}

/// The code of a refusal and the field that it names.
fn refusal(answer: &Value) -> (&str, &str) {
    (answer["error"].as_str().unwrap_or(""), answer["field"].as_str().unwrap_or(""))
}

/// The refusal of a request for a record that no grant for the action includes.
const HIDDEN: (&str, &str) = ("not_found", "");
/// The refusal of a write whose result fails the check of its grant.
const FAILS_CHECK: (&str, &str) = ("forbidden", "");

on_sqlite_first! {
    async fn the_tour_of_the_readme_works(server: Server) {
        let (text, all) = run(include_str!("../../../../README.md"), &server).await;
        for part in [
            r#"{"data":{"name":"task","fields""#,
            r#""title":"Buy cream for éclairs""#,
            r#""totalCount":2,"totalPages":2"#,
            r#""priority":8"#,
            r#""name":"bakery""#,
            r#""project":{"id":""#,
            r#""fn":"sum","field":"priority","value":10,"filteredCount":2"#,
            r#""name":"urgency","type":"integer""#,
            r#"{"report":{"permissions":{"data":[{"resource":"task""#,
            r#""installedAt""#,
            r#""message":"Well done!""#,
            r#""message":"completed a task""#,
            ": open",
            r#""topic":"data.task.created""#,
            r#""topic":"data.task.updated""#,
        ] {
            assert!(text.contains(part), "{part} is missing in\n{all}");
        }
        assert!(!text.contains(r#"{"error""#), "{all}");
    }
}

on_sqlite_first! {
    async fn the_tour_of_identity_works(engine: Engine) {
        let server = ServerBuilder::new(engine).env("SVC_ANONYMOUS_AUTH", "true").start().await;
        let (text, all) = run(include_str!("../../../../docs/auth.md"), &server).await;
        for part in [
            r#""name":"writer","description":null,"permissions":[{"resource":"note""#,
            r#"{"error":"forbidden","message":"#,
            r#""roles":[{"id":""#,
            r#""text":"hers""#,
            r#""text":"by the program""#,
            r#""roles":["writer"],"user":{"id":""#,
            r#""apiKeyId":""#,
            r#"{"authenticated":false}"#,
            r#""text":"before signing up""#,
            r#"{"status":true}"#,
            r#"{"data":{"count":1}}"#,
        ] {
            assert!(text.contains(part), "{part} is missing in\n{all}");
        }
        // The tour shows one refusal, and Cleo's list only contains her own note.
        assert_eq!(text.matches(r#"{"error""#).count(), 1, "{all}");
        assert_eq!(text.matches(r#""text":"of the admin""#).count(), 1, "{all}");
    }

    async fn the_tour_of_mcp_works(engine: Engine) {
        let server = ServerBuilder::new(engine).start().await;
        let (text, all) = run(include_str!("../../../../docs/mcp.md"), &server).await;
        for part in [
            r#""name":"query_data","title""#,
            r#""name":"upsert_record","title""#,
            r#""structuredContent":{"data":{"id":""#,
            r#""structuredContent":{"data":[{"id":""#,
            r#""totalCount":1"#,
            r#""title":"Buy flour""#,
            r#""hasNextPage":false,"hasPreviousPage":true,"startCursor":""#,
            r#"{\"error\":\"forbidden\""#,
            "notifications/tools/list_changed",
        ] {
            assert!(text.contains(part), "{part} is missing in\n{all}");
        }
        assert!(!text.contains(r#""name":"delete_record","title""#) && !text.contains(r#"{"error""#), "{all}");
    }

    async fn the_tour_of_graphql_works(engine: Engine) {
        let server = ServerBuilder::new(engine).start().await;
        let (text, all) = run(include_str!("../../../../docs/graphql.md"), &server).await;
        for part in [
            r#""title":"Buy cream for éclairs","state":"open","kitchen":{"name":"bakery"}"#,
            r#"{"created":false,"data":{"id":""#,
            r#""kitchen":{"name":"bakery","dish_by_kitchen":[{"title":"Buy cream for éclairs"}]}}],"pagination":{"totalCount":1,"hasNextPage":false}}"#,
            r#""dish_aggregate":{"value":7,"filteredCount":1}"#,
            r#""dish_groups":{"data":[{"group":{"state":"open"},"count":1,"avg_priority":7"#,
            r#""node":{"title":"Buy cream for éclairs"}}],"pageInfo":{"hasNextPage":false,"endCursor":""#,
            r#"{"data":{"update_dish":{"state":"done","priority":8}}}"#,
            "event: next",
            r#"{"data":{"events":{"topic":"data.dish.updated""#,
            r#"{"data":{"delete_dish":true}}"#,
        ] {
            assert!(text.contains(part), "{part} is missing in\n{all}");
        }
        assert!(!text.contains(r#""errors""#), "{all}");
    }

    async fn the_tour_of_data_works(engine: Engine) {
        let server = ServerBuilder::new(engine).start().await;
        let (text, all) = run(include_str!("../../../../docs/data.md"), &server).await;
        let answers = shown(&text);
        // Between the groups and the first page are the answers to the object and its records.
        let [groups, _, _, first, next, back, .., batch] = answers.as_slice() else { panic!("{all}") };
        // A dry run, and the change itself.
        assert_eq!(text.matches(r#"{"count":2,"ids":["#).count(), 2, "{all}");
        assert_eq!(text.matches(r#"{"count":1,"ids":["#).count(), 1, "{all}");
        let november = |line: &str| json!({ "at:month": "2026-10-31T23:00:00.000Z", "line": line });
        let of_lines = json!([
            { "group": november("U1"), "count": 2, "sum_tickets": 8 }, { "group": november("U2"), "count": 1, "sum_tickets": 4 },
        ]);
        assert_eq!(groups["data"], of_lines, "{all}");
        assert_eq!(field_of_each(first, "title"), json!(["Chant", "Elegy"]), "{all}");
        assert_eq!(field_of_each(next, "title"), json!(["Aria", "Dirge"]), "{all}");
        assert_eq!(back["data"], first["data"], "{all}");
        assert_eq!((&first["pagination"]["hasPreviousPage"], &first["pagination"]["totalCount"]), (&json!(false), &Value::Null), "{all}");
        let [crew, sailor, changed] = batch["data"].as_array().unwrap().as_slice() else { panic!("{all}") };
        assert_eq!((&crew["created"], &crew["data"]["name"]), (&json!(true), &json!("north")), "{all}");
        assert_eq!((&sailor["data"]["crew_id"], &changed["data"]["trips"]), (&crew["data"]["id"], &json!(7)), "{all}");
    }

    async fn the_tour_of_filters_works(engine: Engine) {
        let server = ServerBuilder::new(engine).start().await;
        let (text, all) = run(include_str!("../../../../docs/filter.md"), &server).await;
        let found: Vec<Vec<String>> = text
            .split("{\"data\":[")
            .skip(1)
            .map(|page| page.split("\"title\":\"").skip(1).filter_map(|rest| Some(rest.split_once('"')?.0.to_owned())).collect())
            .collect();
        // The pages of authors and of groups have no titles.
        assert_eq!(found, [vec!["Fiasco"], vec!["Atlas", "Fiasco", "Solaris"], vec![], vec![], vec!["Atlas"]], "{all}");
        assert!(text.contains(r#""},"count":2,"sum_pages":526}],"pagination":{"page":1"#), "{all}");
        assert!(text.contains(r#""name":"Lem""#) && !text.contains(r#"{"error""#), "{all}");
    }

    /// The conditions of the page that no tour sends: of a bulk call, of a tool of MCP and of GraphQL.
    async fn the_requests_of_the_page_of_filters_work(engine: Engine) {
        let server = ServerBuilder::new(engine).start().await;
        let admin = server.admin().await;
        admin.make_task_object().await;
        promises::define_related(&admin).await;
        admin.define("author", json!([{ "name": "name", "type": "text" }])).await;
        admin.relate(json!({ "name": "author", "kind": "many_to_one", "source": "book", "target": "author" })).await;
        assert_eq!(admin.post("/api/v1/objects/book/fields", json!({ "name": "pages", "type": "integer" })).await.status, 201);
        let lem = admin.make("author", json!({ "name": "Lem" })).await;
        for (title, pages, lent) in [("Solaris", 204, json!(true)), ("Fiasco", 322, Value::Null), ("Eden", 300, Value::Null)] {
            admin.make("book", json!({ "title": title, "pages": pages, "lent": lent, "author_id": lem })).await;
        }
        admin.make("book", json!({ "title": "Atlas" })).await;

        let page = include_str!("../../../../docs/filter.md");
        let snippet = |fence: &str| {
            let (_, rest) = page.split_once(fence).expect("a snippet");
            rest.split_once("\n```").expect("its end").0
        };
        let body: Value = serde_json::from_str(snippet("```http\nPATCH /api/v1/data/book/bulk\n")).expect("JSON");
        assert_eq!(admin.patch("/api/v1/data/book/bulk", body).await.json()["count"], 2);
        let returned = admin.get("/api/v1/data/book?lent=false&sort=title").await.json();
        assert_eq!(field_of_each(&returned, "title"), json!(["Eden", "Fiasco"]));

        let params: Value = serde_json::from_str(snippet("```json\n")).expect("JSON");
        let message = json!({ "jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params });
        let request = admin.request("POST", "/api/v1/mcp").header("accept", "application/json, text/event-stream");
        let called = server.send(request.json(&message)).await.json();
        let list = &called["result"]["structuredContent"];
        assert_eq!(field_of_each(list, "title"), json!(["Eden", "Fiasco"]), "{called}");

        let moon = admin.make("project", json!({ "name": "To the Moon" })).await;
        let mars = admin.make("project", json!({ "name": "To Mars" })).await;
        for (title, done, project) in [("Land", false, &moon), ("Dig", true, &mars), ("Rest", false, &mars)] {
            admin.make("task", json!({ "title": title, "done": done, "project_id": project })).await;
        }
        let answer = admin.post("/api/v1/graphql", json!({ "query": snippet("```graphql\n") })).await.json();
        let list = &answer["data"]["task"];
        let titles = field_of_each(list, "title");
        assert_eq!(titles.as_array().map(Vec::len), Some(2), "{answer}");
        assert!(["Land", "Dig"].iter().all(|title| titles.to_string().contains(title)), "{answer}");
    }

    async fn the_tour_of_policies_works(engine: Engine) {
        let server = ServerBuilder::new(engine).start().await;
        let (text, all) = run(include_str!("../../../../docs/policies.md"), &server).await;
        let answers = shown(&text);
        let [sellers, theirs, won, closed, given_away, margin, managers, closed_by_manager, rest @ ..] = answers.as_slice() else {
            panic!("{all}");
        };
        let [to_stranger, to_seller, foreign, sellers_later, reopened, events @ .., explained] = rest else { panic!("{all}") };

        // The seller sees and changes one deal, without its margin.
        assert_eq!(field_of_each(sellers, "title"), json!(["ours"]), "{all}");
        assert_eq!(sellers["pagination"]["totalCount"], 1, "{all}");
        assert!(!sellers.to_string().contains("margin"), "{all}");
        assert_eq!(refusal(theirs), HIDDEN, "{all}");
        assert_eq!(won["data"]["stage"], "won", "{all}");
        assert_eq!(refusal(closed), FAILS_CHECK, "{all}");
        assert_eq!(refusal(given_away), ("forbidden", "assignee_id"), "{all}");
        assert_eq!(refusal(margin), ("forbidden", "margin"), "{all}");

        // The manager sees the deals of the own organization, but not those of another one.
        assert_eq!(field_of_each(managers, "title"), json!(["ours", "theirs"]), "{all}");
        assert_eq!(field_of_each(managers, "margin"), json!([0.2, 0.3]), "{all}");
        assert_eq!(closed_by_manager["data"]["stage"], "closed", "{all}");
        assert_eq!(refusal(to_stranger), ("foreign_key_violation", "assignee_id"), "{all}");
        assert_eq!(to_seller["data"]["assignee_id"], sellers["data"][0]["assignee_id"], "{all}");
        assert!(to_seller["data"]["assignee_id"].is_string(), "{all}");
        assert_eq!(refusal(foreign), HIDDEN, "{all}");

        // The seller sees the deal that was assigned, and cannot change the closed one.
        assert_eq!(field_of_each(sellers_later, "title"), json!(["ours", "theirs"]), "{all}");
        assert_eq!(refusal(reopened), HIDDEN, "{all}");
        assert_eq!(explained["data"]["passes"], false, "{all}");

        // The assignee is a user, of whom the seller sees only the name.
        let assignees: Vec<&Value> =
            sellers_later["data"].as_array().into_iter().flatten().map(|deal| &deal["assignee"]).collect();
        assert_eq!(assignees.len(), 2, "{all}");
        for assignee in assignees {
            assert_eq!(assignee["id"], to_seller["data"]["assignee_id"], "{all}");
            assert!(assignee["member_id"].is_string(), "{all}");
            assert_eq!(assignee["member"], json!({ "id": assignee["member_id"], "name": "bea" }), "{all}");
        }
        assert!(answers.iter().all(|answer| !answer.to_string().contains("@example.com")), "{all}");

        // The streams show the same deals and fields as the lists.
        assert_eq!(events.len(), 9, "{all}");
        let (managers_events, sellers_events) = events.split_at(5);
        let gist = |event: &Value| {
            let payload = &event["payload"];
            let title = |image: &str| payload[image]["title"].clone();
            json!([payload["op"], title("before"), title("after")])
        };
        let of_manager: Vec<Value> = managers_events.iter().map(gist).collect();
        let created = |title: &str| json!(["created", null, title]);
        let changed = |title: &str| json!(["updated", title, title]);
        let whole = [created("ours"), created("theirs"), changed("ours"), changed("ours"), changed("theirs")];
        assert_eq!(of_manager, whole, "{all}");
        let of_seller: Vec<Value> = sellers_events.iter().map(gist).collect();
        let given = json!(["updated", null, "theirs"]);
        assert_eq!(of_seller, [created("ours"), changed("ours"), changed("ours"), given], "{all}");
        assert!(sellers_events.iter().all(|event| !event.to_string().contains("margin")), "{all}");
        assert_eq!(managers_events[0]["payload"]["after"]["margin"], 0.2, "{all}");
        assert_eq!(sellers_events[1]["payload"]["diff"], json!({ "stage": { "before": "new", "after": "won" } }), "{all}");
        // Before the assignment, only the manager could see the deal.
        let (assigned, entered) = (&managers_events[4], &sellers_events[3]);
        assert_eq!(assigned["id"], entered["id"], "{all}");
        assert_eq!(assigned["payload"]["before"]["margin"], 0.3, "{all}");
        assert!(assigned["payload"]["diff"]["assignee_id"]["after"].is_string(), "{all}");
        assert_eq!((&entered["payload"]["before"], &entered["payload"]["diff"]), (&Value::Null, &Value::Null), "{all}");
        assert_eq!(entered["payload"]["after"]["assignee_id"], to_seller["data"]["assignee_id"], "{all}");
    }

    async fn the_tour_of_the_blog_works(engine: Engine) {
        let server = ServerBuilder::new(engine).start().await;
        let (text, all) = run(include_str!("../../../../docs/policies-blog.md"), &server).await;
        let answers = shown(&text);
        let [drafts, nothing, published, article, changed, closed_by_author, corrected, on_draft, rest @ ..] = answers.as_slice() else {
            panic!("{all}");
        };
        let [everybodys, readers, of_another, editors, closed, late_change, late_comment] = rest else { panic!("{all}") };

        // Only the author sees drafts, and everybody sees published articles.
        assert_eq!(field_of_each(drafts, "title"), json!(["Spring", "Summer"]), "{all}");
        assert_eq!(nothing["data"], json!([]), "{all}");
        assert_eq!(published["data"]["state"], "published", "{all}");
        assert_eq!(field_of_each(article, "title"), json!(["Spring"]), "{all}");
        assert_eq!(refusal(changed), HIDDEN, "{all}");
        assert_eq!(refusal(closed_by_author), ("forbidden", "closed"), "{all}");

        // Comments are public, but email addresses are not.
        assert_eq!(corrected["data"]["text"], "Nice!", "{all}");
        assert_eq!(refusal(on_draft), ("foreign_key_violation", "article_id"), "{all}");
        let comments = &everybodys["data"][0]["comment_by_article"];
        assert_eq!(comments.as_array().map(Vec::len), Some(2), "{all}");
        assert!(comments.to_string().contains("Nice!") && !comments.to_string().contains("email"), "{all}");
        assert_eq!(field_of_each(readers, "text"), json!(["Nice!", "Thanks!"]), "{all}");
        assert_eq!(field_of_each(readers, "email"), json!(["remy@example.com", null]), "{all}");
        assert_eq!(refusal(of_another), HIDDEN, "{all}");
        assert_eq!(field_of_each(editors, "email"), json!(["remy@example.com", "edda@example.com"]), "{all}");

        // A closed article keeps its comments unchanged.
        assert_eq!(closed["data"]["closed"], true, "{all}");
        assert_eq!(refusal(late_change), FAILS_CHECK, "{all}");
        assert_eq!(refusal(late_comment), FAILS_CHECK, "{all}");
    }

    async fn the_tour_of_the_shop_works(engine: Engine) {
        let server = ServerBuilder::new(engine).start().await;
        let (text, all) = run(include_str!("../../../../docs/policies-shop.md"), &server).await;
        let answers = shown(&text);
        let [products, by_purchase_price, jam, for_another, for_nobody, price, cake, rest @ ..] = answers.as_slice() else {
            panic!("{all}");
        };
        let [priced, of_another, quantity, packed, placed, late_address, late_quantity, hers, rest @ ..] = rest else {
            panic!("{all}");
        };
        let [staffs, by_staff, suppliers_lines, suppliers_products, packers, canceled, done, left] = rest else { panic!("{all}") };

        // Everybody sees the products that are for sale.
        assert_eq!(field_of_each(products, "name"), json!(["bread", "jam"]), "{all}");
        assert_eq!(field_of_each(products, "price"), json!([4, 5]), "{all}");
        assert!(!products.to_string().contains("purchase_price") && !products.to_string().contains("supplier"), "{all}");
        assert_eq!(refusal(by_purchase_price), ("unknown_field", "purchase_price"), "{all}");

        // A customer can order only for herself, and change only an open order.
        assert_eq!(jam["data"]["quantity"], 2, "{all}");
        assert_eq!(refusal(for_another), ("foreign_key_violation", "customer_id"), "{all}");
        assert_eq!(refusal(for_nobody), FAILS_CHECK, "{all}");
        assert_eq!(refusal(price), ("forbidden", "price"), "{all}");
        assert_eq!(refusal(cake), ("foreign_key_violation", "product_id"), "{all}");
        assert_eq!(priced["data"]["price"], 4, "{all}");
        assert!(of_another["data"]["customer_id"].is_string(), "{all}");
        assert_eq!(quantity["data"]["quantity"], 3, "{all}");
        assert_eq!(refusal(packed), FAILS_CHECK, "{all}");
        assert_eq!(placed["data"]["state"], "placed", "{all}");
        assert_eq!(refusal(late_address), HIDDEN, "{all}");
        assert_eq!(refusal(late_quantity), HIDDEN, "{all}");
        assert_eq!(field_of_each(hers, "email"), json!(["cora@example.com"]), "{all}");
        let lines = json!({ "data": hers["data"][0]["order_line_by_order"] });
        assert_eq!(field_of_each(&lines, "quantity"), json!([2, 3]), "{all}");
        assert_eq!(field_of_each(&lines, "price"), json!([null, 4]), "{all}");

        // The staff reads everything but changes nothing.
        assert_eq!(field_of_each(staffs, "state"), json!(["placed", "open"]), "{all}");
        let customers = json!({ "data": field_of_each(staffs, "customer") });
        assert_eq!(field_of_each(&customers, "name"), json!(["cora", "sten"]), "{all}");
        assert_eq!(customers["data"][1], json!({ "id": of_another["data"]["customer_id"], "name": "sten" }), "{all}");
        assert_eq!(refusal(by_staff), ("forbidden", ""), "{all}");

        // A supplier sees the lines of her product, and its purchase price.
        assert_eq!(field_of_each(suppliers_lines, "quantity"), json!([3]), "{all}");
        assert_eq!(suppliers_lines["data"][0]["product"]["name"], "bread", "{all}");
        assert!(!suppliers_lines.to_string().contains("order_id"), "{all}");
        assert_eq!(field_of_each(suppliers_products, "purchase_price"), json!([2, null]), "{all}");

        // A packer sees placed orders without the email address and without the prices of lines.
        assert_eq!(field_of_each(packers, "address"), json!(["Mill Lane 1"]), "{all}");
        assert!(!packers.to_string().contains("email"), "{all}");
        let lines = packers["data"][0]["order_line_by_order"].as_array().expect("lines");
        let names: Vec<&Value> = lines.iter().map(|line| &line["product"]["name"]).collect();
        assert_eq!(names, ["jam", "bread"], "{all}");
        assert!(lines.iter().all(|line| line.get("price").is_none()), "{all}");
        assert_eq!(refusal(canceled), FAILS_CHECK, "{all}");
        assert_eq!(done["data"], json!({ "id": packers["data"][0]["id"], "state": "packed" }), "{all}");
        assert_eq!(left["data"], json!([]), "{all}");
    }

    async fn the_tour_of_webhooks_works(engine: Engine) {
        let server = ServerBuilder::new(engine).env("SVC_ALLOW_PRIVATE_NETWORK", "true").start().await;
        let port = free_port().to_string();
        let (text, all) = run(&include_str!("../../../../docs/webhooks.md").replace("4100", &port), &server).await;
        for part in [
            r#""consumer":"audit","handler":"persist_event""#,
            "received data.order.created",
            "received webhook.test.",
            r#""topic":"data.order.created","record":{"id":""#,
            r#""handler":"webhook","status":"delivered","attempts":1"#,
            r#""handler":"persist_event","status":"delivered","attempts":1"#,
            r#"{"data":[{"id":""#,
        ] {
            assert!(text.contains(part), "{part} is missing in\n{all}");
        }
        assert!(!text.contains(r#"{"error""#), "{all}");
    }
}

/// Every page that has commands, in a possible reading order.
const PAGES: [(&str, &str); 16] = [
    ("README", include_str!("../../../../README.md")),
    ("data", include_str!("../../../../docs/data.md")),
    ("auth", include_str!("../../../../docs/auth.md")),
    ("policies", include_str!("../../../../docs/policies.md")),
    ("policies-blog", include_str!("../../../../docs/policies-blog.md")),
    ("policies-shop", include_str!("../../../../docs/policies-shop.md")),
    ("filter", include_str!("../../../../docs/filter.md")),
    ("graphql", include_str!("../../../../docs/graphql.md")),
    ("mcp", include_str!("../../../../docs/mcp.md")),
    ("openapi", include_str!("../../../../docs/openapi.md")),
    ("events", include_str!("../../../../docs/events.md")),
    ("webhooks", include_str!("../../../../docs/webhooks.md")),
    ("tasks", include_str!("../../../../docs/tasks.md")),
    ("telemetry", include_str!("../../../../docs/telemetry.md")),
    ("blocks", include_str!("../../../../docs/blocks.md")),
    ("security", include_str!("../../../../docs/security.md")),
];

on_sqlite_first! {
    async fn all_pages_work_one_after_another_on_one_server(engine: Engine) {
        let server = ServerBuilder::new(engine)
            .env("SVC_ANONYMOUS_AUTH", "true")
            .env("SVC_ALLOW_PRIVATE_NETWORK", "true")
            .env("SVC_TELEMETRY", "true")
            .start()
            .await;
        let port = free_port().to_string();
        for (name, page) in PAGES {
            let (text, all) = run(&page.replace("4100", &port), &server).await;
            // The tours of permissions show refusals.
            let refusals = match name {
                "auth" => 1,
                "policies" => 7,
                "policies-blog" => 6,
                "policies-shop" => 10,
                _ => 0,
            };
            assert_eq!(text.matches(r#"{"error""#).count(), refusals, "{name}: {all}");
            assert!(!text.contains(r#""errors""#), "{name}: {all}");
            for part in match name {
                "openapi" => vec!["304"],
                // The output contains "urgent" only if the resumed stream sends the event of this record.
                "events" => vec![r#""topic":"data.parcel.created""#, r#""label":"heavy""#, r#""label":"urgent""#],
                "tasks" => vec![r#""name":"tidy-up""#, r#""trigger":"manual","status":"succeeded""#],
                "telemetry" => vec![r#"svc_action_invocations_total{svc_action="complete""#],
                "blocks" => vec!["Well done!"],
                "security" => vec![r#""type":"erase_user""#, r#""status":"succeeded""#, r#""result":{"user":true"#],
                _ => Vec::new(),
            } {
                assert!(text.contains(part), "{name}: {part} is missing in\n{all}");
            }
        }
    }
}

/// A tour runs the commands of every page, unless the page excludes them. So each shell block comes after the mark of a tour.
#[test]
fn every_shell_block_of_a_page_is_part_of_its_tour() {
    let docs = concat!(env!("CARGO_MANIFEST_DIR"), "/../docs");
    let mut pages = 0;
    for entry in std::fs::read_dir(docs).unwrap().map(|entry| entry.unwrap().path()) {
        // The pictures are in a separate folder.
        if entry.extension().is_none_or(|ending| ending != "md") {
            continue;
        }
        let page = std::fs::read_to_string(&entry).unwrap();
        let shells = page.matches("```sh\n").count();
        assert_eq!(shells, page.matches("<!-- tour -->\n```sh\n").count(), "{}", entry.display());
        let name = entry.file_stem().unwrap().to_str().unwrap().to_owned();
        let is_run = PAGES.iter().any(|(known, _)| *known == name);
        assert_eq!(shells > 0, is_run, "{name} has commands and is not run, or is run and has none");
        pages += 1;
    }
    assert!(pages > 10);
}

/// The README's two commands: for the server and for the tests. The script of the second command contains the commands of
/// `.ci/run`.
#[test]
fn the_readme_has_two_commands_for_a_fresh_machine() {
    let readme = include_str!("../../../../README.md");
    let before = readme.split_once("## Two minutes").unwrap().0;
    let commands: Vec<&str> = before.split("```").skip(1).step_by(2).map(str::trim).collect();
    assert_eq!(commands, ["cargo run --release -- serve", "./dev test"]);
    let checkout = std::path::Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/.."));
    let script = checkout.join("dev");
    let mode = std::os::unix::fs::PermissionsExt::mode(&std::fs::metadata(&script).unwrap().permissions());
    assert_eq!(mode & 0o111, 0o111, "{mode:o}");
    for script in ["dev", ".ci/run"] {
        let checked = Command::new("bash").arg("-n").arg(checkout.join(script)).output().unwrap();
        assert!(checked.status.success(), "{}", String::from_utf8_lossy(&checked.stderr));
    }
    // This machine has the tools, so the script installs nothing, and reports that nothing is missing.
    let tools = Command::new(&script).arg("tools").current_dir("/").output().unwrap();
    let text = String::from_utf8_lossy(&tools.stdout).into_owned();
    assert!(tools.status.success() && text.contains("Nothing is missing."), "{text}{}", String::from_utf8_lossy(&tools.stderr));
    // Without apt, the script reports which tools are missing.
    let empty = tempfile::tempdir().unwrap();
    for tool in ["bash", "dirname", "ls", "cat", "printf"] {
        let found = Command::new("which").arg(tool).output().unwrap();
        let path = String::from_utf8(found.stdout).unwrap();
        if !path.trim().is_empty() {
            std::os::unix::fs::symlink(path.trim(), empty.path().join(tool)).unwrap();
        }
    }
    let missing = Command::new("bash").arg(&script).arg("tools").env("PATH", empty.path()).output().unwrap();
    let text = String::from_utf8_lossy(&missing.stderr).into_owned();
    assert_eq!(missing.status.code(), Some(1), "{text}");
    assert!(text.contains("Node 20 or newer") && text.contains("a C compiler"), "{text}");
    let gate = include_str!("../../../../.ci/run");
    assert!(gate.contains("./dev gate") && !gate.contains("apt-get"));
}

//! Many records in one call: either all are written or none.

use blockbase_tests::{Admin, Answer, ServerBuilder, on_both_engines};
use serde_json::{Value, json};

use crate::{graphql, mcp};

on_both_engines! {
    async fn bulk_calls_write_all_or_none(server: Server) {
        let admin = server.admin().await;
        admin.define("item", json!([
            { "name": "code", "type": "text", "isUnique": true },
            { "name": "size", "type": "integer", "min": 0, "default": 4 },
            { "name": "tags", "type": "multi_enum", "options": ["a", "b"] },
        ])).await;
        let records: Vec<Value> = (0..1000).map(|number| json!({ "code": format!("c{number}"), "tags": ["b"] })).collect();
        let made = admin.post("/api/v1/data/item/bulk", json!({ "data": records })).await;
        assert_eq!(made.status, 201, "{}", made.text);
        let ids: Vec<String> = serde_json::from_value(made.json()["ids"].clone()).unwrap();
        assert_eq!((made.json()["count"].clone(), ids.len()), (json!(1000), 1000));
        let listed = admin.get("/api/v1/data/item?sort=id&limit=3").await.json();
        assert_eq!(listed["pagination"]["totalCount"], 1000);
        for (place, record) in listed["data"].as_array().unwrap().iter().enumerate() {
            assert_eq!((&record["id"], &record["code"], &record["size"]), (&json!(ids[place]), &json!(format!("c{place}")), &json!(4)));
        }
        assert_eq!(admin.get("/api/v1/data/item?search=c999").await.json()["pagination"]["totalCount"], 1);
        let events = admin.outbox("item").await;
        assert_eq!(events.len(), 1000);
        assert!(events.iter().zip(&ids).all(|((topic, event), id)| topic == "data.item.created" && event["id"] == json!(id)));

        // The error names the index of the failing record, and no other record is kept.
        for (place, bad, status, code) in [
            (700, json!({ "code": "c5" }), 409, "unique_violation"),
            (0, json!({ "size": -1 }), 400, "CONSTRAINT_VIOLATION"),
            (3, json!({ "colour": 1 }), 400, "unknown_field"),
            (250, json!({ "code": 5 }), 400, "invalid_value"),
        ] {
            let mut records: Vec<Value> = (0..800).map(|number| json!({ "code": format!("new{number}") })).collect();
            records[place] = bad;
            let refused = admin.post("/api/v1/data/item/bulk", json!({ "data": records })).await.expect_error(status, code);
            assert!(refused["message"].as_str().unwrap().starts_with(&format!("At index {place}:")), "{refused}");
        }
        let within = json!({ "data": [{ "code": "twin" }, { "code": "twin" }] });
        let refused = admin.post("/api/v1/data/item/bulk", within).await.expect_error(409, "unique_violation");
        assert!(refused["message"].as_str().unwrap().starts_with("At index 1:"), "{refused}");
        assert_eq!(admin.get("/api/v1/data/item").await.json()["pagination"]["totalCount"], 1000);
        assert_eq!(admin.outbox("item").await.len(), 1000);

        let nobody = "01890000-0000-7000-8000-000000000000";
        let gone = admin.delete_with("/api/v1/data/item/bulk", json!({ "ids": [ids[9], nobody, ids[2], ids[9]] })).await;
        assert_eq!((gone.status, gone.json()), (200, json!({ "count": 2, "ids": [ids[9], ids[2]] })));
        let gone = admin.delete_with("/api/v1/data/item/bulk", json!({ "ids": ids })).await.json();
        assert_eq!(gone["count"], 998);
        assert_eq!(admin.get("/api/v1/data/item").await.json()["pagination"]["totalCount"], 0);
        assert_eq!(admin.get("/api/v1/data/item?search=c999").await.json()["pagination"]["totalCount"], 0);
        let deleted = admin.outbox("item").await.iter().filter(|(topic, _)| topic == "data.item.deleted").count();
        assert_eq!(deleted, 1000);
        assert_eq!(admin.post("/api/v1/data/item/bulk", json!({ "data": [] })).await.json(), json!({ "count": 0, "ids": [] }));
        assert_eq!(admin.delete_with("/api/v1/data/item/bulk", json!({ "ids": [] })).await.json(), json!({ "count": 0, "ids": [] }));
    }

    async fn bulk_bodies_are_checked_whole(server: Server) {
        let admin = server.admin().await;
        admin.make_task_object().await;
        let path = "/api/v1/data/task/bulk";
        let many: Vec<Value> = (0..1001).map(|_| json!({ "title": "t" })).collect();
        for body in [json!({}), json!([]), json!({ "data": {} }), json!({ "data": [1] }), json!({ "data": [], "x": 1 }), json!({ "data": many })] {
            admin.post(path, body).await.expect_error(400, "invalid_request");
        }
        for body in [json!({}), json!({ "ids": 1 }), json!({ "ids": [null] }), json!({ "ids": vec!["x"; 1001] })] {
            admin.delete_with(path, body).await.expect_error(400, "invalid_request");
        }
        admin.delete_with(path, json!({ "ids": ["no uuid"] })).await.expect_error(400, "invalid_value");
        admin.get(path).await.expect_error(405, "method_not_allowed");
        admin.post("/api/v1/data/nothing/bulk", json!({ "data": [] })).await.expect_error(404, "not_found");
        server.call("POST", path, Some(json!({ "data": [] }))).await.expect_error(401, "unauthorized");
        assert_eq!(admin.get("/api/v1/data/task").await.json()["pagination"]["totalCount"], 0);
    }
}

/// The status and the body of an error.
fn words(answer: &Answer) -> (u16, String) {
    (answer.status, answer.text.clone())
}

on_both_engines! {
    async fn many_records_are_changed_alike(server: Server) {
        let admin = server.admin().await;
        admin.define("item", json!([
            { "name": "title", "type": "text" },
            { "name": "size", "type": "integer", "min": 0, "max": 100, "default": 4 },
            { "name": "tags", "type": "multi_enum", "options": ["a", "b"] },
        ])).await;
        let path = "/api/v1/data/item/bulk";
        let records: Vec<Value> = (0..1000).map(|number| json!({ "title": format!("old {number}"), "size": number % 10 })).collect();
        let made = admin.post(path, json!({ "data": records })).await;
        let ids: Vec<String> = serde_json::from_value(made.json()["ids"].clone()).unwrap();
        let before = admin.get(&format!("/api/v1/data/item/{}", ids[7])).await.data();

        let nobody = "01890000-0000-7000-8000-000000000000";
        let some = json!({ "ids": [ids[7], nobody, ids[3].to_uppercase(), ids[7]], "values": { "title": "new one", "size": { "$inc": 2 }, "id": nobody, "created_by": "x" } });
        let tried = server.send(admin.request("PATCH", &format!("{path}?dryRun=true")).json(&some)).await;
        let expected = json!({ "count": 2, "ids": [ids[7], ids[3]] });
        assert_eq!((tried.status, tried.json()), (200, expected.clone()));
        assert_eq!(admin.outbox("item").await.len(), 1000);
        let changed = admin.patch(path, some).await;
        assert_eq!((changed.status, changed.json()), (200, expected));
        let after = admin.get(&format!("/api/v1/data/item/{}", ids[7])).await.data();
        assert_eq!((&after["title"], &after["size"]), (&json!("new one"), &json!(9)));
        assert_eq!((&after["created_by"], &after["created_at"]), (&before["created_by"], &before["created_at"]));
        assert_eq!(admin.get("/api/v1/data/item?search=new+one").await.json()["pagination"]["totalCount"], 2);
        let events = admin.outbox("item").await.split_off(1000);
        let seen: Vec<(&str, &Value, &Value)> = events.iter().map(|(topic, event)| (topic.as_str(), &event["id"], &event["diff"])).collect();
        let diff = |old: &str, size: i64| json!({ "size": { "before": size, "after": size + 2 }, "title": { "before": old, "after": "new one" } });
        assert_eq!(seen, [
            ("data.item.updated", &json!(ids[7]), &diff("old 7", 7)),
            ("data.item.updated", &json!(ids[3]), &diff("old 3", 3)),
        ]);
        assert_eq!((&events[0].1["before"], &events[0].1["after"]), (&before, &after));

        // All records in one call, then a call that changes nothing, then a call without records.
        let all = admin.patch(path, json!({ "ids": ids, "values": { "title": "all", "tags": ["b"] } })).await.json();
        assert_eq!((&all["count"], &all["ids"]), (&json!(1000), &json!(ids)));
        assert_eq!(admin.get("/api/v1/data/item?title=all&tags=b").await.json()["pagination"]["totalCount"], 1000);
        assert_eq!(admin.get("/api/v1/data/item?search=old").await.json()["pagination"]["totalCount"], 0);
        let events = admin.outbox("item").await;
        assert_eq!(events.len(), 2002);
        assert!(events[1002..].iter().zip(&ids).all(|((topic, event), id)| topic == "data.item.updated" && event["id"] == json!(id)));
        assert_eq!(admin.patch(path, json!({ "ids": [ids[1], ids[0]], "values": {} })).await.json(), json!({ "count": 2, "ids": [ids[1], ids[0]] }));
        assert_eq!(admin.patch(path, json!({ "ids": [], "values": { "title": "x" } })).await.json(), json!({ "count": 0, "ids": [] }));
        assert_eq!(admin.patch(path, json!({ "ids": [nobody], "values": { "title": "x" } })).await.json(), json!({ "count": 0, "ids": [] }));
        assert_eq!(admin.outbox("item").await.len(), 2002);

        // A deletion can be a dry run too.
        let body = json!({ "ids": [ids[5], nobody, ids[4]] });
        let tried = server.send(admin.request("DELETE", &format!("{path}?dryRun=true")).json(&body)).await;
        assert_eq!((tried.status, tried.json()), (200, json!({ "count": 2, "ids": [ids[5], ids[4]] })));
        assert_eq!(admin.get("/api/v1/data/item").await.json()["pagination"]["totalCount"], 1000);
        for method in ["PATCH", "DELETE"] {
            for query in ["dryRun=1", "dryRun=true&dryRun=false"] {
                let body = if method == "PATCH" { json!({ "ids": [ids[5]], "values": {} }) } else { json!({ "ids": [ids[5]] }) };
                server.send(admin.request(method, &format!("{path}?{query}")).json(&body)).await.expect_error(400, "invalid_request");
            }
        }
        assert_eq!(admin.get("/api/v1/data/item").await.json()["pagination"]["totalCount"], 1000);
    }

    async fn a_change_of_many_is_refused_as_one_is_and_changes_none(server: Server) {
        let admin = server.admin().await;
        admin.define("owner", json!([])).await;
        let item = json!({
            "name": "item",
            "fields": [
                { "name": "code", "type": "slug", "isUnique": true },
                { "name": "place", "type": "integer", "isUnique": true },
                { "name": "size", "type": "integer", "min": 0, "max": 9, "required": true },
                { "name": "kind", "type": "text" },
                { "name": "part", "type": "integer" },
                { "name": "data", "type": "json" },
            ],
            "constraints": { "uniqueTogether": [["kind", "part"]] },
        });
        assert_eq!(admin.post("/api/v1/objects", item).await.status, 201);
        admin.relate(json!({ "name": "owner", "kind": "many_to_one", "source": "item", "target": "owner" })).await;
        let mut ids = Vec::new();
        for number in 0..4 {
            ids.push(admin.make("item", json!({ "code": format!("c{number}"), "place": number, "size": 5 + number, "kind": "k", "part": number })).await);
        }
        let path = "/api/v1/data/item/bulk";
        let state = async || (admin.get("/api/v1/data/item?sort=code").await.text, admin.outbox("item").await.len());
        let untouched = state().await;
        // Each of these changes fails at one of the records. A call with only that record is refused with the same message.
        for (values, at, status, code) in [
            (json!({ "code": "c3" }), 0, 409, "unique_violation"),
            (json!({ "size": 10 }), 0, 400, "CONSTRAINT_VIOLATION"),
            (json!({ "size": { "$inc": 3 } }), 2, 400, "CONSTRAINT_VIOLATION"),
            (json!({ "size": { "$inc": 2147483647 } }), 0, 400, "invalid_value"),
            (json!({ "size": null }), 0, 400, "not_null_violation"),
            (json!({ "size": "x" }), 0, 400, "invalid_value"),
            (json!({ "kind": { "$inc": 1 } }), 0, 400, "INVALID_ATOMIC_OP"),
            (json!({ "colour": 1 }), 0, 400, "unknown_field"),
            (json!({ "owner_id": "01890000-0000-7000-8000-000000000000" }), 0, 409, "foreign_key_violation"),
            (json!({ "place": { "$inc": 1 } }), 0, 409, "unique_violation"),
        ] {
            let one = admin.patch(&format!("/api/v1/data/item/{}", ids[at]), values.clone()).await;
            one.expect_error(status, code);
            let many = admin.patch(path, json!({ "ids": ids, "values": values })).await;
            assert_eq!(words(&many), words(&one), "{values}");
            assert_eq!(state().await, untouched, "{values}");
        }
        // The value is unique, so only one record may have it.
        admin.patch(path, json!({ "ids": [ids[0], ids[1]], "values": { "code": "twin" } })).await.expect_error(409, "unique_violation");
        admin.patch(path, json!({ "ids": ids, "values": { "part": 1 } })).await.expect_error(409, "unique_violation");
        assert_eq!(state().await, untouched);
        // Records are changed in the order of the ids in the call. So unique numbers can be increased, beginning with the
        // largest.
        admin.patch(path, json!({ "ids": [ids[2], ids[3]], "values": { "place": { "$inc": 1 } } })).await.expect_error(409, "unique_violation");
        let moved = admin.patch(path, json!({ "ids": [ids[3], ids[2], ids[1], ids[0]], "values": { "place": { "$inc": 1 } } })).await;
        assert_eq!(moved.json()["count"], 4, "{}", moved.text);
        let places = admin.get("/api/v1/data/item?sort=code&select=place").await.json();
        assert_eq!(places["data"].as_array().unwrap().iter().map(|item| item["place"].as_i64().unwrap()).collect::<Vec<_>>(), [1, 2, 3, 4]);
        // One value for half of a unique group is not a conflict if the other half differs. It is not a conflict either if the
        // other half is null, because null is not equal to anything.
        assert_eq!(admin.patch(path, json!({ "ids": ids, "values": { "kind": "other", "code": null } })).await.status, 200);

        // The number of bytes that a call writes is limited, like that of its body.
        let large = json!({ "text": "x".repeat(9_000_000) });
        let refused = admin.patch(path, json!({ "ids": ids, "values": { "data": large } })).await;
        let refused = refused.expect_error(400, "answer_too_large");
        assert!(refused["message"].as_str().unwrap().contains("Name fewer records"), "{refused}");
        assert_eq!(admin.patch(path, json!({ "ids": [ids[0], ids[1]], "values": { "data": large } })).await.status, 200);
        admin.patch(path, json!({ "ids": [ids[0], ids[1]], "values": { "data": large } })).await.expect_error(400, "answer_too_large");

        let many = vec![ids[0].clone(); 1001];
        for body in [
            json!({}), json!([]), json!({ "ids": [ids[0]] }), json!({ "values": {} }), json!({ "ids": 1, "values": {} }), json!({ "ids": [], "values": [] }),
            json!({ "ids": [], "values": null }), json!({ "ids": [], "values": {}, "where": {} }), json!({ "where": {}, "values": {} }), json!({ "ids": many, "values": {} }),
            json!({ "ids": [1], "values": {} }),
        ] {
            admin.patch(path, body).await.expect_error(400, "invalid_request");
        }
        admin.patch(path, json!({ "ids": ["no uuid"], "values": {} })).await.expect_error(400, "invalid_value");
        admin.patch("/api/v1/data/nothing/bulk", json!({ "ids": [], "values": {} })).await.expect_error(404, "not_found");
        server.call("PATCH", path, Some(json!({ "ids": [], "values": {} }))).await.expect_error(401, "unauthorized");
        // Values are checked even if no record changes.
        for path in [path.to_owned(), format!("{path}?dryRun=true")] {
            admin.patch(&path, json!({ "ids": [], "values": { "size": "x" } })).await.expect_error(400, "invalid_value");
        }
    }

    async fn a_change_of_many_reaches_no_further_than_a_change_of_one(server: Server) {
        let admin = server.admin().await;
        admin.make_task_object().await;
        let make = async |caller: &Admin<'_>, title: &str| caller.make("task", json!({ "title": title })).await;
        let theirs = make(&admin, "theirs").await;
        let mut members = Vec::new();
        for (name, grants) in [
            ("own", json!([{ "resource": "task", "actions": ["manage"], "rowPolicy": "own" }])),
            ("reader", json!([{ "resource": "task", "actions": ["read", "create"] }])),
            ("writer", json!([{ "resource": "task", "actions": ["update"] }])),
        ] {
            assert_eq!(admin.post("/api/v1/roles", json!({ "name": name, "permissions": grants })).await.status, 201);
            let member = server.with_token(server.sign_up(name).await);
            let user = member.get("/api/v1/me").await.json()["userId"].as_str().unwrap().to_owned();
            assert_eq!(admin.post(&format!("/api/v1/users/{user}/roles"), json!({ "roleId": name })).await.status, 200);
            members.push(member);
        }
        let mine = make(&members[0], "mine").await;
        let path = "/api/v1/data/task/bulk";
        let body = |title: &str| json!({ "ids": [theirs, mine], "values": { "title": title } });
        for path in [format!("{path}?dryRun=true"), path.to_owned()] {
            assert_eq!(members[0].patch(&path, body("changed")).await.json(), json!({ "count": 1, "ids": [mine] }));
        }
        assert_eq!(admin.get(&format!("/api/v1/data/task/{theirs}")).await.data()["title"], "theirs");
        members[1].patch(path, body("x")).await.expect_error(403, "forbidden");
        members[1].patch(&format!("{path}?dryRun=true"), body("x")).await.expect_error(403, "forbidden");
        let written = members[2].patch(path, body("by a writer")).await;
        assert_eq!(written.json(), json!({ "count": 2, "ids": [theirs, mine] }));
        let me = members[2].get("/api/v1/me").await.json()["userId"].clone();
        let record = admin.get(&format!("/api/v1/data/task/{theirs}")).await.data();
        assert_eq!((&record["title"], &record["updated_by"]), (&json!("by a writer"), &me));
    }

    async fn a_kill_amid_changes_of_many_leaves_all_or_none(server: Server) {
        let mut server = server;
        let token = server.admin().await.token;
        server.with_token(token.clone()).define("item", json!([{ "name": "n", "type": "integer" }, { "name": "text", "type": "text" }])).await;
        let records = vec![json!({ "n": 0, "text": "some text" }); 1000];
        let made = server.with_token(token.clone()).post("/api/v1/data/item/bulk", json!({ "data": records })).await;
        let ids = made.json()["ids"].clone();
        let mut least = 0;
        for round in 0..4_u64 {
            let admin = server.with_token(token.clone());
            let body = json!({ "ids": ids, "values": { "n": { "$inc": 1 }, "text": format!("round {round}") } });
            let (answered, first_answer) = tokio::sync::oneshot::channel();
            let change = async {
                let (mut done, mut answered) = (0, Some(answered));
                while let Ok(answer) = admin.request("PATCH", "/api/v1/data/item/bulk").json(&body).send().await {
                    assert_eq!(answer.status(), 200);
                    done += 1;
                    answered.take().map(|answered| answered.send(()));
                }
                done
            };
            let kill = async {
                // Even on a slow machine, something has been changed before the kill.
                first_answer.await.expect("a first answer");
                tokio::time::sleep(std::time::Duration::from_millis(300 + 137 * round)).await;
                server.signal("KILL");
            };
            let (done, ()) = tokio::join!(change, kill);
            least += done;
            server = server.restart().await;
            let admin = server.with_token(token.clone());
            let ends = async |function: &str| admin.get(&format!("/api/v1/data/item/aggregate?fn={function}&field=n")).await.data()["value"].clone();
            let (low, high) = (ends("min").await, ends("max").await);
            assert_eq!(low, high, "round {round}");
            let times = low.as_i64().unwrap();
            // The last call may have been committed although it got no answer.
            assert!(times == least || times == least + 1, "{times} after {least} answers");
            least = times;
            let found = admin.get(&format!("/api/v1/data/item?search=round+{round}")).await.json()["pagination"]["totalCount"].clone();
            assert!(found == json!(1000) || times == 0, "{found}");
            assert_eq!(admin.outbox("item").await.len() as i64, 1000 * (times + 1));
        }
        assert!(least > 0, "nothing was changed before a kill");
    }
}

on_both_engines! {
    async fn the_bound_of_a_bulk_call_and_of_a_batch_is_a_setting(engine: Engine) {
        let server = ServerBuilder::new(engine).env("SVC_MAX_BULK", "2").start().await;
        let admin = server.admin().await;
        admin.make_task_object().await;
        let titles = |count: usize| json!({ "data": vec![json!({ "title": "t" }); count] });
        assert_eq!(admin.post("/api/v1/data/task/bulk", titles(2)).await.status, 201);
        admin.post("/api/v1/data/task/bulk", titles(3)).await.expect_error(400, "invalid_request");
        let ids = |count: usize| json!({ "ids": vec!["01890000-0000-7000-8000-000000000000"; count], "values": {} });
        assert_eq!(admin.patch("/api/v1/data/task/bulk", ids(2)).await.status, 200);
        admin.patch("/api/v1/data/task/bulk", ids(3)).await.expect_error(400, "invalid_request");
        let create = json!({ "op": "create", "object": "task", "values": { "title": "t" } });
        let operations = |count: usize| vec![create.clone(); count];
        assert_eq!(admin.post("/api/v1/batch", json!({ "operations": operations(2) })).await.status, 200);
        admin.post("/api/v1/batch", json!({ "operations": operations(3) })).await.expect_error(400, "invalid_request");
        let mutation = "mutation($operations: [JSON!]!) { batch(operations: $operations) }";
        let refused = graphql::codes(&server, Some(&admin.token), mutation, json!({ "operations": operations(3) })).await;
        assert_eq!(refused, ["invalid_request"]);
        let called = mcp::Client::of(&admin).call("batch_records", json!({ "operations": operations(3) })).await;
        let refused: Value = serde_json::from_str(&called.text).unwrap();
        assert_eq!((called.is_error, &refused["error"]), (true, &json!("invalid_request")), "{}", called.text);
        assert_eq!(admin.get("/api/v1/data/task").await.json()["pagination"]["totalCount"], 4);
    }

    async fn what_one_call_touches_is_bounded_by_bytes_whichever_it_is(engine: Engine) {
        let server = ServerBuilder::new(engine).env("SVC_MAX_TEXT_BYTES", "10000000").start().await;
        let admin = server.admin().await;
        admin.define("folder", json!([])).await;
        admin.define("shelf", json!([])).await;
        admin.define("doc", json!([{ "name": "text", "type": "text" }, { "name": "size", "type": "integer" }])).await;
        admin.relate(json!({ "name": "folder", "kind": "many_to_one", "source": "doc", "target": "folder", "onDelete": "cascade" })).await;
        admin.relate(json!({ "name": "shelf", "kind": "many_to_one", "source": "doc", "target": "shelf", "onDelete": "set_null" })).await;
        admin.relate(json!({ "name": "next", "kind": "many_to_one", "source": "doc", "target": "doc", "onDelete": "cascade" })).await;
        let (folder, shelf) = (admin.make("folder", json!({})).await, admin.make("shelf", json!({})).await);
        let mut ids = Vec::new();
        for _ in 0..5 {
            ids.push(admin.make("doc", json!({ "text": "x".repeat(7_000_000), "folder_id": folder, "shelf_id": shelf })).await);
        }
        let state = async || {
            let docs = admin.get("/api/v1/data/doc?select=id,size,folder_id,shelf_id,updated_at&sort=id").await.text;
            (docs, server.sql("SELECT count(*) FROM svc_events").await)
        };
        let before = state().await;
        let bulk = "/api/v1/data/doc/bulk";
        let refusals = [
            admin.patch(bulk, json!({ "ids": ids, "values": { "size": 1 } })).await,
            admin.delete_with(bulk, json!({ "ids": ids })).await,
            admin.delete(&format!("/api/v1/data/folder/{folder}")).await,
            admin.delete(&format!("/api/v1/data/shelf/{shelf}")).await,
        ];
        for refused in refusals {
            let refused = refused.expect_error(400, "answer_too_large");
            assert!(refused["message"].as_str().unwrap().contains("more than 32 MiB"), "{refused}");
        }
        let query = format!("mutation {{ delete_folder(id: \"{folder}\") }}");
        let refused = admin.post("/api/v1/graphql", json!({ "query": query })).await;
        assert_eq!(refused.json()["errors"][0]["extensions"]["code"], "answer_too_large", "{}", refused.text);
        let arguments = json!({ "object_name": "doc", "ids": ids });
        let call = json!({ "jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": { "name": "bulk_delete_records", "arguments": arguments } });
        let request = admin.request("POST", "/api/v1/mcp?sessions=none").header("accept", "application/json, text/event-stream").json(&call);
        let refused = server.send(request).await;
        assert!(refused.text.contains("answer_too_large"), "{}", refused.text);
        assert_eq!(state().await, before);
        assert_eq!(admin.delete_with(&format!("{bulk}?dryRun=true"), json!({ "ids": ids })).await.json()["count"], 5);

        // Rights are checked before sizes, so records that the caller may not use do not count.
        let grants = json!([{ "resource": "doc", "actions": ["manage"], "rowPolicy": "own" }]);
        assert_eq!(admin.post("/api/v1/roles", json!({ "name": "own", "permissions": grants })).await.status, 201);
        let weak = server.with_token(server.sign_up("weak").await);
        let user = weak.get("/api/v1/me").await.json()["userId"].as_str().unwrap().to_owned();
        assert_eq!(admin.post(&format!("/api/v1/users/{user}/roles"), json!({ "roleId": "own" })).await.status, 200);
        let own = weak.make("doc", json!({ "text": "own" })).await;
        let all: Vec<&String> = ids.iter().chain([&own]).collect();
        assert_eq!(weak.patch(bulk, json!({ "ids": all, "values": { "size": 1 } })).await.json(), json!({ "count": 1, "ids": [own] }));
        assert_eq!(weak.delete_with(bulk, json!({ "ids": all })).await.json(), json!({ "count": 1, "ids": [own] }));

        // In several calls, they can be deleted.
        assert_eq!(admin.delete_with(bulk, json!({ "ids": ids[..3] })).await.json()["count"], 3);
        assert_eq!(admin.delete(&format!("/api/v1/data/shelf/{shelf}")).await.status, 204);
        assert_eq!(admin.delete(&format!("/api/v1/data/folder/{folder}")).await.status, 204);
        assert_eq!(admin.get("/api/v1/data/doc").await.json()["pagination"]["totalCount"], 0);

        // If records refer to each other in a circle, each of them counts once.
        let mut circle = Vec::new();
        for _ in 0..3 {
            circle.push(admin.make("doc", json!({ "text": "x".repeat(9_900_000), "next_id": circle.last() })).await);
        }
        assert_eq!(admin.patch(&format!("/api/v1/data/doc/{}", circle[0]), json!({ "next_id": circle[2] })).await.status, 200);
        let gone = admin.delete(&format!("/api/v1/data/doc/{}", circle[1])).await;
        assert_eq!((gone.status, admin.get("/api/v1/data/doc").await.json()["pagination"]["totalCount"].clone()), (204, json!(0)), "{}", gone.text);
    }
}

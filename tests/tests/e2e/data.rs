//! Records over REST: created, listed, fetched, changed, deleted.

pub(crate) mod aggregates;
pub(crate) mod bad_fields;
pub(crate) mod batch;
pub(crate) mod bulk;
pub(crate) mod bulk_where;
pub(crate) mod conditional;
pub(crate) mod conditions;
pub(crate) mod cursors;
pub(crate) mod exact_values;
pub(crate) mod exports;
pub(crate) mod groups;
pub(crate) mod reads;
pub(crate) mod relationships;
pub(crate) mod search;
pub(crate) mod updates;
pub(crate) mod upsert;

use blockbase_tests::on_both_engines;
use serde_json::{Value, json};

fn titles(answer: &Value) -> Vec<String> {
    answer["data"].as_array().unwrap().iter().map(|record| record["title"].as_str().unwrap().to_owned()).collect()
}

on_both_engines! {
    async fn a_record_lives_from_create_to_delete(server: Server) {
        let admin = server.admin().await;
        admin.make_task_object().await;
        let created = admin.post("/api/v1/data/task", json!({ "title": "Été", "id": "x", "created_by": "me" })).await;
        assert_eq!(created.status, 201);
        let created = created.data();
        let me = admin.get("/api/v1/me").await.json();
        assert_eq!(created["created_by"], me["userId"]);
        assert_eq!((&created["done"], &created["priority"]), (&json!(false), &Value::Null));
        assert_eq!(created["created_at"], created["updated_at"]);
        let path = format!("/api/v1/data/task/{}", created["id"].as_str().unwrap());
        assert_eq!(admin.get(&path).await.data(), created);
        assert_eq!(admin.get(&path.to_uppercase().replace("/API/V1/DATA/TASK", "/api/v1/data/task")).await.data(), created);

        let untouched = admin.patch(&path, json!({})).await.data();
        assert_eq!(untouched, created);
        let updated = admin.patch(&path, json!({ "done": true, "priority": 3 })).await.data();
        assert_eq!((&updated["done"], &updated["priority"], &updated["title"]), (&json!(true), &json!(3), &json!("Été")));
        assert_eq!(updated["created_at"], created["created_at"]);
        let added = admin.patch(&path, json!({ "priority": { "$inc": 4 } })).await.data();
        assert_eq!(added["priority"], 7);
        let taken = admin.patch(&path, json!({ "priority": { "$dec": 2 } })).await.data();
        assert_eq!(taken["priority"], 5);

        assert_eq!(admin.delete(&path).await.status, 204);
        admin.get(&path).await.expect_error(404, "not_found");
        admin.patch(&path, json!({ "done": true })).await.expect_error(404, "not_found");
        admin.delete(&path).await.expect_error(404, "not_found");
    }

    async fn a_list_is_searched_filtered_sorted_and_paged(server: Server) {
        let admin = server.admin().await;
        admin.make_task_object().await;
        for (title, done, priority) in
            [("alpha", true, json!(1)), ("Beta", false, json!(2)), ("ÉTÉ 100%", false, json!(3)), ("delta_x", true, Value::Null), ("Z", false, json!(2))]
        {
            let made = admin.post("/api/v1/data/task", json!({ "title": title, "done": done, "priority": priority })).await;
            assert_eq!(made.status, 201, "{}", made.text);
        }
        let list = async |query: &str| admin.get(&format!("/api/v1/data/task?{query}")).await;
        let found = async |query: &str| titles(&list(query).await.json());

        assert_eq!(found("").await, ["Z", "delta_x", "ÉTÉ 100%", "Beta", "alpha"]);
        assert_eq!(found("search=%C3%A9t").await, ["ÉTÉ 100%"]);
        assert_eq!(found("q=0%25").await, ["ÉTÉ 100%"]);
        assert_eq!(found("search=a_").await, ["delta_x"]);
        assert_eq!(found("sort=title").await, ["Beta", "Z", "alpha", "delta_x", "ÉTÉ 100%"]);
        assert_eq!(found("sort=-priority,title").await, ["delta_x", "ÉTÉ 100%", "Beta", "Z", "alpha"]);
        assert_eq!(found("sort=priority,-title").await, ["alpha", "Z", "Beta", "ÉTÉ 100%", "delta_x"]);
        assert_eq!(found("done=true&sort=title").await, ["alpha", "delta_x"]);
        assert_eq!(found("priority%5Bgte%5D=2&priority%5Blt%5D=3&sort=title").await, ["Beta", "Z"]);
        assert_eq!(found("priority%5Bneq%5D=2&sort=title").await, ["alpha", "delta_x", "ÉTÉ 100%"]);
        assert_eq!(found("priority%5Bin%5D=1,3&sort=title").await, ["alpha", "ÉTÉ 100%"]);
        assert_eq!(found("priority%5BNOTIN%5D=1,3&sort=title").await, ["Beta", "Z", "delta_x"]);
        assert_eq!(found("priority%5Bis_null%5D=1").await, ["delta_x"]);
        assert_eq!(found("priority=null").await, ["delta_x"]);
        assert_eq!(found("title%5Blike%5D=eta").await, ["Beta"]);
        assert_eq!(found("title%5Blike%5D=ETA").await, Vec::<String>::new());
        assert_eq!(found("title%5Bcontains%5D=ETA").await, ["Beta"]);
        assert_eq!(found("title%5B%3E%5D=alpha&sort=title").await, ["delta_x", "ÉTÉ 100%"]);

        let page = list("pageSize=2&page=2&sort=title").await.json();
        assert_eq!(titles(&page), ["alpha", "delta_x"]);
        assert_eq!(
            page["pagination"],
            json!({ "page": 2, "pageSize": 2, "totalCount": 5, "totalPages": 3, "hasNextPage": true, "hasPreviousPage": true })
        );
        let past = list("page=9").await.json();
        assert_eq!((&past["data"], &past["pagination"]["totalCount"]), (&json!([]), &json!(5)));
        let window = list("limit=2&offset=4&page=9").await.json();
        assert_eq!((titles(&window), &window["pagination"]["page"]), (vec!["alpha".to_owned()], &json!(3)));
        let clamped = list("pageSize=5000").await.json();
        assert_eq!(clamped["pagination"]["pageSize"], 100);
        let uncounted = list("count=none&limit=5").await.json();
        assert_eq!(
            uncounted["pagination"],
            json!({ "page": 1, "pageSize": 5, "totalCount": null, "totalPages": null, "hasNextPage": false, "hasPreviousPage": false })
        );
        assert_eq!(list("count=none&limit=4").await.json()["pagination"]["hasNextPage"], true);
        assert_eq!(list("done=false").await.json()["pagination"]["totalCount"], 3);

        let selected = list("select=title&limit=1").await.json();
        assert_eq!(selected["data"][0].as_object().unwrap().keys().collect::<Vec<_>>(), ["id", "title"]);

        for (query, code) in [
            ("colour=red", "unknown_field"),
            ("sort=colour", "unknown_field"),
            ("select=colour", "unknown_field"),
            ("title%5Bnear%5D=x", "invalid_request"),
            ("priority=high", "invalid_value"),
            ("priority%5Bin%5D=1,x", "invalid_value"),
            ("page=0", "invalid_request"),
            ("limit=x", "invalid_request"),
            ("offset=-1", "invalid_request"),
            ("done%5Blike%5D=t", "invalid_request"),
        ] {
            list(query).await.expect_error(400, code);
        }
    }

    async fn filters_of_other_products_get_the_right_spelling(server: Server) {
        let admin = server.admin().await;
        admin.make_task_object().await;
        let by_field = Some("Each filter is a parameter of its own");
        for (query, code, spelling) in [
            ("filter=(done=true)", "unknown_field", by_field),
            ("filter=%7B%22done%22%3A%7B%22_eq%22%3Atrue%7D%7D", "unknown_field", by_field),
            ("filter%5Btitle%5D%5B_eq%5D=x", "invalid_request", Some("Write it as `title[eq]=x`.")),
            ("filter%5Bowner%5D%5Bname%5D%5B_eq%5D=x", "invalid_request", by_field),
            ("priority=gte.2", "invalid_value", Some("Write it as `priority[gte]=2`.")),
            ("priority=in.(1,2)", "invalid_value", Some("Write it as `priority[in]=1,2`.")),
            ("done=eq.true", "invalid_value", Some("Write it as `done[eq]=true`.")),
            ("created_at=lt.2030-01-01", "invalid_value", Some("Write it as `created_at[lt]=2030-01-01`.")),
            ("priority=2.x", "invalid_value", None),
            ("priority=near.2", "invalid_value", None),
            ("priority=like.2", "invalid_value", None),
            ("colour=eq.red", "unknown_field", None),
        ] {
            for path in ["task", "task/aggregate", "task/export"] {
                let query = match path {
                    "task" => query.to_owned(),
                    "task/export" => format!("format=csv&{query}"),
                    _ => format!("fn=count&{query}"),
                };
                let refused = admin.get(&format!("/api/v1/data/{path}?{query}")).await.expect_error(400, code);
                let message = refused["message"].as_str().unwrap();
                assert_eq!(message.contains("Write it as") || message.contains("Each filter"), spelling.is_some(), "{message}");
                assert!(spelling.is_none_or(|spelling| message.contains(spelling)), "{query}: {message}");
            }
        }
        // Any text is a value of a text.
        admin.make("task", json!({ "title": "gte.2" })).await;
        assert_eq!(admin.get("/api/v1/data/task?title=gte.2").await.json()["pagination"]["totalCount"], 1);
    }

    async fn amounts_and_filters_finer_than_the_scale_are_taken_at_their_word(server: Server) {
        let admin = server.admin().await;
        admin.define("price", json!([{ "name": "amount", "type": "currency", "required": true }])).await;
        let id = admin.make("price", json!({ "amount": 1 })).await;
        let path = format!("/api/v1/data/price/{id}");
        assert_eq!(admin.patch(&path, json!({ "amount": { "$inc": 0.005 } })).await.data()["amount"], 1.01);
        assert_eq!(admin.patch(&path, json!({ "amount": { "$dec": 0.015 } })).await.data()["amount"], 0.99);
        assert_eq!(admin.patch(&path, json!({ "amount": { "$inc": 0.004 } })).await.data()["amount"], 0.99);
        for (filter, found) in [("nin%5D=1.234", 1), ("nin%5D=1.234,0.99", 0), ("in%5D=0.994", 0), ("in%5D=0.994,0.99", 1), ("neq%5D=0.994", 1)] {
            let total = admin.get(&format!("/api/v1/data/price?amount%5B{filter}")).await.json()["pagination"]["totalCount"].clone();
            assert_eq!(total, found, "{filter}");
        }
    }

    async fn totals_stay_exact_while_records_come_and_go(server: Server) {
        let admin = server.admin().await;
        admin.make_task_object().await;
        let mut ids = Vec::new();
        for number in 0..20 {
            let made = admin.post("/api/v1/data/task", json!({ "title": format!("task {number}") })).await.data();
            ids.push(made["id"].as_str().unwrap().to_owned());
        }
        for id in &ids[..7] {
            assert_eq!(admin.delete(&format!("/api/v1/data/task/{id}")).await.status, 204);
        }
        // A write that fails does not change the count.
        admin.post("/api/v1/data/task", json!({ "title": null })).await.expect_error(400, "not_null_violation");
        let total = admin.get("/api/v1/data/task?limit=1").await.json()["pagination"]["totalCount"].clone();
        assert_eq!(total, 13);
    }

    async fn concurrent_increments_neither_get_lost_nor_pass_the_maximum(server: Server) {
        let admin = server.admin().await;
        admin.make_task_object().await;
        let id = admin.post("/api/v1/data/task", json!({ "title": "t", "priority": 0 })).await.data()["id"].as_str().unwrap().to_owned();
        let path = format!("/api/v1/data/task/{id}");
        let answers = futures_util::future::join_all((0..20).map(|_| admin.patch(&path, json!({ "priority": { "$inc": 1 } })))).await;
        let done = answers.iter().filter(|answer| answer.status == 200).count();
        assert_eq!(done, 9);
        for refused in answers.iter().filter(|answer| answer.status != 200) {
            let error = refused.expect_error(400, "CONSTRAINT_VIOLATION");
            assert_eq!(error["field"], "priority");
            assert!(error["message"].as_str().unwrap().contains("`max`"));
        }
        assert_eq!(admin.get(&path).await.data()["priority"], 9);
    }
}

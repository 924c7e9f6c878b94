//! Aggregates of groups: the same numbers as a plain reference, the clocks of a zone, and the limits.

mod reference;

use blockbase_tests::{Admin, Answer, on_both_engines, test_block};
use serde_json::{Value, json};

use self::reference::Sale;
use crate::accounts::roles::{role, user};
use crate::graphql::{codes, data, send};
use crate::mcp::Client;
use crate::promises::conditions::encoded;

async fn define(admin: &Admin<'_>) {
    admin.define("shop", json!([{ "name": "name", "type": "text", "isUnique": true }])).await;
    admin
        .define(
            "sale",
            json!([
                { "name": "status", "type": "enum", "options": ["open", "paid", "lost"] },
                { "name": "item", "type": "text", "indexed": true },
                { "name": "count", "type": "integer", "indexed": true },
                { "name": "big", "type": "big_integer" },
                { "name": "amount", "type": "currency" },
                { "name": "weight", "type": "float" },
                { "name": "paid", "type": "boolean" },
                { "name": "day", "type": "date" },
                { "name": "at", "type": "datetime" },
                { "name": "hour", "type": "time" },
                { "name": "tags", "type": "multi_enum", "options": ["a", "b"] },
                { "name": "note", "type": "json" },
            ]),
        )
        .await;
    admin.relate(json!({ "name": "shop", "kind": "many_to_one", "source": "sale", "target": "shop" })).await;
}

async fn ask(admin: &Admin<'_>, parameters: &[(&str, &str)]) -> Answer {
    let query: Vec<String> = parameters.iter().map(|(name, value)| format!("{name}={}", encoded(value))).collect();
    admin.get(&format!("/api/v1/data/sale/aggregate?{}", query.join("&"))).await
}

#[track_caller]
fn rows(answer: &Answer) -> Vec<Value> {
    assert_eq!(answer.status, 200, "{}", answer.text);
    answer.json()["data"].as_array().unwrap().clone()
}

/// The values of one key of the groups.
fn values(answer: &Answer, key: &str) -> Vec<Value> {
    let of = |row: &Value| row["group"].get(key).or_else(|| row.get(key)).cloned().unwrap_or_default();
    rows(answer).iter().map(of).collect()
}

on_both_engines! {
    async fn groups_are_those_of_a_plain_reference(server: Server) {
        let admin = server.admin().await;
        define(&admin).await;
        let shops = [admin.make("shop", json!({ "name": "north" })).await, admin.make("shop", json!({ "name": "south" })).await];
        let mut random = fastrand::Rng::with_seed(39);
        let sales: Vec<Sale> = (0..400).map(|_| Sale::random(&mut random, &shops)).collect();
        let records: Vec<Value> = sales.iter().map(Sale::record).collect();
        let made = admin.post("/api/v1/data/sale/bulk", json!({ "data": records })).await;
        assert_eq!(made.status, 201, "{}", made.text);
        for case in 0..250 {
            let question = reference::Question::random(&mut random);
            let expected = question.answer(&sales);
            // Without a total, the server may make the groups of the page only.
            for (count, page_size) in [("exact", 40), ("none", 23)] {
            let mut found = Vec::new();
            for page in 1.. {
                let page = page.to_string();
                let mut parameters = question.parameters();
                let paging = [("page", page), ("pageSize", page_size.to_string()), ("count", count.to_owned())];
                parameters.extend(paging.map(|(name, value)| (name.to_owned(), value)));
                let parameters: Vec<(&str, &str)> =
                    parameters.iter().map(|(name, value)| (name.as_str(), value.as_str())).collect();
                let answer = ask(&admin, &parameters).await;
                assert_eq!(answer.status, 200, "case {case}: {parameters:?} {}", answer.text);
                let of_page = reference::texts(&answer.text);
                let pagination = answer.json()["pagination"].clone();
                let total = if count == "exact" { json!(expected.len()) } else { Value::Null };
                assert_eq!(pagination["totalCount"], total, "case {case}: {parameters:?} {pagination}");
                assert_eq!(pagination["hasNextPage"], found.len() + of_page.len() < expected.len(), "{pagination}");
                found.extend(of_page);
                if pagination["hasNextPage"] == false {
                    break;
                }
            }
            reference::assert_same(&found, &expected, &format!("case {case}: {question:?}"));
            }
        }
    }

    async fn local_periods_follow_the_clocks(server: Server) {
        let admin = server.admin().await;
        define(&admin).await;
        for at in [
            // The hour from 2 to 3 occurs twice in Berlin.
            "2026-10-24T23:30:00Z", "2026-10-25T00:30:00Z", "2026-10-25T00:45:00Z", "2026-10-25T01:30:00Z", "2026-10-25T02:30:00Z",
            // And once less in spring.
            "2026-03-29T00:59:59.999Z", "2026-03-29T01:00:00Z",
            // Local years that UTC does not have.
            "0001-01-01T00:00:00Z", "9999-12-31T23:59:59.999Z", "9999-07-15T12:00:00Z", "2499-12-31T23:30:00Z", "2500-06-30T22:30:00Z",
            "1890-04-01T12:00:00Z",
        ] {
            admin.make("sale", json!({ "at": at })).await;
        }
        admin.make("sale", json!({})).await;
        let groups = async |period: &str, zone: &str| {
            let by = format!("at:{period}");
            let answer = ask(&admin, &[("fn", "count"), ("groupBy", &by), ("tz", zone)]).await;
            let counts = values(&answer, "count");
            values(&answer, &by).into_iter().zip(counts).map(|(begin, count)| (begin, count.as_i64().unwrap())).collect::<Vec<_>>()
        };
        let one = |text: &str, count: i64| (json!(text), count);
        assert_eq!(groups("hour", "Europe/Berlin").await, [
            one("0000-12-31T23:06:32.000Z", 1),
            one("1890-04-01T11:06:32.000Z", 1),
            one("2026-03-29T00:00:00.000Z", 1), one("2026-03-29T01:00:00.000Z", 1),
            one("2026-10-24T23:00:00.000Z", 1), one("2026-10-25T00:00:00.000Z", 2), one("2026-10-25T01:00:00.000Z", 1),
            one("2026-10-25T02:00:00.000Z", 1),
            one("2499-12-31T23:00:00.000Z", 1), one("2500-06-30T22:00:00.000Z", 1),
            one("9999-07-15T12:00:00.000Z", 1), one("9999-12-31T23:00:00.000Z", 1),
            (Value::Null, 1),
        ]);
        assert_eq!(groups("day", "Europe/Berlin").await[3..5], [one("2026-10-24T22:00:00.000Z", 5), one("2499-12-31T23:00:00.000Z", 1)]);
        assert_eq!(groups("month", "Europe/Berlin").await[4..7], [
            one("2499-12-31T23:00:00.000Z", 1), one("2500-06-30T22:00:00.000Z", 1), one("9999-06-30T22:00:00.000Z", 1),
        ]);
        assert_eq!(groups("year", "America/New_York").await, [
            one("0000-01-01T04:56:02.000Z", 1), one("1890-01-01T05:00:00.000Z", 1), one("2026-01-01T05:00:00.000Z", 7),
            one("2499-01-01T05:00:00.000Z", 1), one("2500-01-01T05:00:00.000Z", 1), one("9999-01-01T05:00:00.000Z", 2), (Value::Null, 1),
        ]);
        assert_eq!(groups("year", "Pacific/Kiritimati").await[3..], [
            one("2499-12-31T10:00:00.000Z", 2), one("9998-12-31T10:00:00.000Z", 1), one("9999-12-31T10:00:00.000Z", 1), (Value::Null, 1),
        ]);
        assert_eq!(groups("week", "UTC").await[0], one("0001-01-01T00:00:00.000Z", 1));
        assert_eq!(groups("week", "america/new_york").await[0], one("0000-12-25T04:56:02.000Z", 1));
        // A zone without changes, and one that is never at a full hour.
        assert_eq!(groups("day", "Etc/GMT-5").await[2], one("2026-03-28T19:00:00.000Z", 2));
        assert_eq!(groups("hour", "Asia/Kathmandu").await[3], one("2026-10-24T23:15:00.000Z", 1));
    }

    async fn sums_have_all_their_digits(server: Server) {
        let admin = server.admin().await;
        define(&admin).await;
        for (item, big, amount, weight) in [
            ("a", json!(i64::MAX), json!("9999999999999999.99"), json!(0.1)),
            ("a", json!(i64::MAX), json!(0.02), json!(0.2)),
            ("b", json!(i64::MAX), json!(1), json!(1e300)),
            ("b", json!(i64::MAX - 1), json!(null), json!(-1e300)),
            ("c", json!(i64::MIN), json!(null), json!(null)),
            ("c", json!(i64::MIN), json!(null), json!(null)),
        ] {
            admin.make("sale", json!({ "item": item, "big": big, "amount": amount, "weight": weight })).await;
        }
        let answer = ask(&admin, &[("fn", "sum:big,sum:amount,sum:weight,count:amount"), ("groupBy", "item"), ("sort", "-sum_big")]).await;
        assert!(answer.text.starts_with(concat!(
            r#"{"data":[{"group":{"item":"a"},"sum_big":18446744073709551614,"sum_amount":10000000000000000.01,"sum_weight":0.3,"count_amount":2},"#,
            r#"{"group":{"item":"b"},"sum_big":18446744073709551613,"sum_amount":1,"sum_weight":0"#,
        )), "{}", answer.text);
        assert!(answer.text.contains(
            r#"{"group":{"item":"c"},"sum_big":-18446744073709551616,"sum_amount":null,"sum_weight":null,"count_amount":0}]"#
        ), "{}", answer.text);
        for (having, items) in [
            (json!({ "sum_big": { "gt": i64::MAX } }), vec!["a", "b"]),
            (json!({ "sum_big": { "lt": i64::MIN } }), vec!["c"]),
            (json!({ "sum_amount": "1.00" }), vec!["b"]),
            (json!({ "sum_amount": { "gte": "1.001" } }), vec!["a"]),
            (json!({ "sum_amount": null }), vec!["c"]),
            (json!({ "_not": { "sum_amount": { "gt": 5 } } }), vec!["b", "c"]),
            (json!({ "sum_weight": 0.3, "item": { "ilike": "A" } }), vec!["a"]),
            (json!({ "_or": [{ "count_amount": { "in": [0, 2] } }, { "item": "b" }] }), vec!["a", "b", "c"]),
            (json!({ "_or": [] }), vec![]),
        ] {
            let functions = "count,sum:big,sum:amount,sum:weight,count:amount,avg:weight";
            let answer = ask(&admin, &[("fn", functions), ("groupBy", "item"), ("having", &having.to_string())]).await;
            assert_eq!(values(&answer, "item"), items, "{having}");
            assert_eq!(answer.json()["pagination"]["totalCount"], items.len(), "{having}");
        }
        // A mean that no double can show is an error only if it is shown.
        admin.make("sale", json!({ "item": "d", "weight": 1.7e308 })).await;
        admin.make("sale", json!({ "item": "d", "weight": 1.7e308 })).await;
        let means = [("fn", "avg:weight"), ("groupBy", "item"), ("sort", "avg_weight")];
        let refused = ask(&admin, &means).await.expect_error(400, "invalid_value");
        assert_eq!(refused["field"], "weight");
        assert_eq!(refused["message"], "The avg of `weight` is out of the range of a double. Exclude its group with `having`.");
        let below = [means.as_slice(), &[("having", r#"{"avg_weight":{"lt":1}}"#)]].concat();
        assert_eq!(values(&ask(&admin, &below).await, "item"), ["b", "a"]);
    }

    async fn having_compares_numbers_beyond_the_range_of_a_key(server: Server) {
        let admin = server.admin().await;
        define(&admin).await;
        for (item, count, weight) in [("a", json!(1), json!(1.5)), ("a", json!(2), json!(-1)), ("b", json!(null), json!(null))] {
            admin.make("sale", json!({ "item": item, "count": count, "amount": count, "big": count, "weight": weight })).await;
        }
        let found = async |having: Value| {
            let functions = "count:count,sum:count,min:count,max:big,min:amount,avg:weight,max:weight";
            ask(&admin, &[("fn", functions), ("groupBy", "item"), ("having", &having.to_string())]).await
        };
        let wide: Value = serde_json::from_str("1e30").unwrap();
        let beyond: Value = json!("1e400");
        let all = vec!["a", "b"];
        for key in ["sum_count", "min_count", "max_big", "min_amount", "avg_weight", "max_weight"] {
            // The values of group b are null.
            let end = if key.ends_with("weight") { &beyond } else { &wide };
            let least: Value = json!(if key.ends_with("weight") { "-1e400" } else { "-1e30" });
            for (operator, value, items) in [
                ("gt", end, vec![]), ("gte", end, vec![]), ("lt", end, vec!["a"]), ("lte", end, vec!["a"]),
                ("eq", end, vec![]), ("neq", end, all.clone()),
                ("gt", &least, vec!["a"]), ("gte", &least, vec!["a"]), ("lt", &least, vec![]), ("lte", &least, vec![]),
                ("eq", &least, vec![]), ("neq", &least, all.clone()),
                ("in", &json!([end, least]), vec![]), ("nin", &json!([end]), all.clone()),
                ("in", &json!([null, end]), vec!["b"]), ("nin", &json!([end, null]), vec!["a"]),
            ] {
                let having = json!({ key: { operator: value } });
                assert_eq!(values(&found(having.clone()).await, "item"), items, "{having}");
                let negated = json!({ "_not": having });
                let others: Vec<&str> = all.iter().copied().filter(|item| !items.contains(item)).collect();
                assert_eq!(values(&found(negated.clone()).await, "item"), others, "{negated}");
            }
        }
        assert_eq!(values(&found(json!({ "count_count": { "in": [2, wide] } })).await, "item"), ["a"]);
        // The least number beyond the range of a 32-bit integer.
        assert_eq!(values(&found(json!({ "min_count": { "lt": 2_147_483_648_i64 } })).await, "item"), ["a"]);
        found(json!({ "min_count": { "lt": 1.5 } })).await.expect_error(400, "invalid_value");
        // Sums of these columns may be beyond the range themselves.
        let sum = [("fn", "count,sum:big"), ("having", r#"{"sum_big":{"gt":1e30}}"#)];
        ask(&admin, &sum).await.expect_error(400, "invalid_value");
    }

    async fn one_group_stands_for_all_records_and_one_function_answers_as_ever(server: Server) {
        let admin = server.admin().await;
        define(&admin).await;
        let none = ask(&admin, &[("fn", "count,sum:amount,avg:count")]).await;
        assert_eq!(none.json(), json!({
            "data": [{ "group": {}, "count": 0, "sum_amount": null, "avg_count": null }],
            "pagination": { "page": 1, "pageSize": 25, "totalCount": 1, "totalPages": 1, "hasNextPage": false, "hasPreviousPage": false },
        }));
        assert_eq!(rows(&ask(&admin, &[("fn", "count"), ("groupBy", "status")]).await), Vec::<Value>::new());
        assert_eq!(rows(&ask(&admin, &[("fn", "count,sum:big"), ("having", r#"{"count":{"gt":0}}"#)]).await), Vec::<Value>::new());
        for number in 0..5 {
            admin.make("sale", json!({ "count": number, "paid": number > 2, "amount": 2 })).await;
        }
        // `count` is a field and a function.
        let answer = ask(&admin, &[("fn", "count"), ("groupBy", "count"), ("limit", "2"), ("offset", "1")]).await;
        assert_eq!(rows(&answer), [json!({ "group": { "count": 1 }, "count": 1 }), json!({ "group": { "count": 2 }, "count": 1 })]);
        ask(&admin, &[("fn", "count"), ("groupBy", "count"), ("sort", "count")]).await.expect_error(400, "unknown_field");

        let one = ask(&admin, &[("fn", "sum"), ("field", "amount"), ("count[gte]", "3"), ("sort", "x"), ("page", "y")]).await;
        assert_eq!(one.text, r#"{"data":{"fn":"sum","field":"amount","value":4,"filteredCount":2}}"#);
        assert_eq!(ask(&admin, &[("fn", "sum:amount"), ("count[gte]", "3")]).await.text, one.text);
        let grouped = ask(&admin, &[("fn", "sum"), ("field", "amount"), ("groupBy", "paid")]).await;
        assert_eq!(rows(&grouped), [json!({ "group": { "paid": false }, "sum_amount": 6 }), json!({ "group": { "paid": true }, "sum_amount": 4 })]);

        let uncounted = ask(&admin, &[("fn", "count"), ("groupBy", "count"), ("count", "none"), ("pageSize", "2"), ("page", "2")]).await;
        assert_eq!(uncounted.json()["pagination"], json!({
            "page": 2, "pageSize": 2, "totalCount": null, "totalPages": null, "hasNextPage": true, "hasPreviousPage": true,
        }));
        let beyond = ask(&admin, &[("fn", "count"), ("groupBy", "count"), ("page", "9")]).await.json();
        assert_eq!((&beyond["data"], &beyond["pagination"]["totalCount"]), (&json!([]), &json!(5)));
    }

    async fn a_bad_request_names_its_fault(server: Server) {
        let admin = server.admin().await;
        define(&admin).await;
        for (parameters, code, text) in [
            (vec![("fn", "count"), ("groupBy", "colour")], "unknown_field", "colour"),
            (vec![("fn", "count"), ("groupBy", "tags")], "invalid_request", "tags"),
            (vec![("fn", "count"), ("groupBy", "note")], "invalid_request", "note"),
            (vec![("fn", "count"), ("groupBy", "at:decade")], "invalid_request", "decade"),
            (vec![("fn", "count"), ("groupBy", "day:hour")], "invalid_request", "day"),
            (vec![("fn", "count"), ("groupBy", "item:month")], "invalid_request", "item"),
            (vec![("fn", "count"), ("groupBy", "hour:day")], "invalid_request", "hour"),
            (vec![("fn", "count"), ("groupBy", "item,item")], "invalid_request", "The groups name `item` twice."),
            (vec![("fn", "count"), ("groupBy", "shop.name")], "unknown_field", "shop.name"),
            (vec![("fn", "count"), ("groupBy", "a,b,c,d,e,f,g,h,i")], "invalid_request", "An aggregate groups by 8 fields at most."),
            (vec![("fn", "count"), ("groupBy", ",".repeat(500).as_str())], "invalid_request", "An aggregate groups by 8 fields at most."),
            (vec![("fn", "count,".repeat(100).as_str())], "invalid_request", "An aggregate has 20 functions at most."),
            (vec![("fn", "count,count")], "invalid_request", "The functions name `count` twice."),
            (vec![("fn", "count,median:count")], "invalid_request", "There is no function \"median:count\". Use count, sum, avg, min or max."),
            (vec![("fn", "median")], "invalid_request", "`fn` takes count, sum, avg, min or max, not \"median\"."),
            (vec![("fn", "count,sum:item")], "invalid_request", "item"),
            (vec![("fn", "count,sum:colour")], "unknown_field", "colour"),
            (vec![("fn", "count,sum"), ("field", "count")], "invalid_request", "field"),
            (vec![("fn", "count,sum")], "invalid_request", "`sum` needs a numeric field, as in `sum:amount`."),
            (vec![("fn", "sum")], "invalid_request", "`sum` needs `field`, a numeric field."),
            (vec![("fn", "count"), ("groupBy", "item"), ("sort", "amount")], "unknown_field", "The groups have no key `amount`. They have `item` and `count`."),
            (vec![("fn", "count"), ("groupBy", "item"), ("page", "0")], "invalid_request", "page"),
            (vec![("fn", "count"), ("groupBy", "at:day"), ("tz", "Mars/Base")], "invalid_request", "Mars/Base"),
            (vec![("fn", "count"), ("groupBy", "at:day"), ("tz", "Etc/GMT 5")], "invalid_request", "Write it as `%2B`."),
            (vec![("fn", "count"), ("groupBy", "at:day"), ("tz", "UTC"), ("tz", "UTC")], "invalid_request", "`tz` occurs twice."),
            (vec![("fn", "count"), ("having", "{}"), ("having", "{}")], "invalid_request", "`having` occurs twice."),
            (vec![("fn", "count"), ("groupBy", "count"), ("having", r#"{"count":1}"#)], "unknown_field", "it leads to neither of them"),
            (vec![("fn", "count"), ("groupBy", "item"), ("having", "{")], "invalid_request", "having"),
            (vec![("fn", "count"), ("groupBy", "item"), ("having", r#"{"amount":1}"#)], "unknown_field", "`having.amount`: The groups have no key `amount`. They have `item` and `count`."),
            (vec![("fn", "count"), ("groupBy", "item"), ("having", r#"{"count":"x"}"#)], "invalid_value", "having.count"),
            (vec![("fn", "count"), ("groupBy", "shop_id"), ("having", r#"{"shop":{"name":"x"}}"#)], "unknown_field", "having.shop"),
            (vec![("fn", "count"), ("groupBy", "at:day"), ("having", r#"{"at:day":{"gt":"x"}}"#)], "invalid_value", "having.at:day"),
            // Years that no datetime has.
            (vec![("fn", "count"), ("groupBy", "at:year"), ("having", r#"{"at:year":{"lt":"10000-01-01T00:00:00Z"}}"#)], "invalid_value", "having.at:year"),
            (vec![("fn", "count"), ("groupBy", "day:year"), ("having", r#"{"day:year":"+010000-01-01"}"#)], "invalid_value", "having.day:year"),
            (vec![("fn", "count"), ("groupBy", "at:year"), ("at[gte]", "10000-01-01T00:00:00Z")], "invalid_value", "at"),
            (vec![("fn", "count"), ("having", r#"{"count":1}"#)], "invalid_request", "having"),
            (vec![("fn", "count"), ("tz", "UTC")], "invalid_request", "tz"),
            (vec![("groupBy", "item")], "invalid_request", "`fn` is missing."),
        ] {
            let refused = ask(&admin, &parameters).await.expect_error(400, code);
            assert!(refused["message"].as_str().unwrap().contains(text), "{parameters:?}: {refused}");
        }
        // A field with the name of a parameter keeps its filter.
        admin.define("stop", json!([{ "name": "tz", "type": "text" }, { "name": "having", "type": "integer" }])).await;
        admin.make("stop", json!({ "tz": "CET", "having": 1 })).await;
        admin.make("stop", json!({ "tz": "WET", "having": 2 })).await;
        let counted = admin.get("/api/v1/data/stop/aggregate?fn=count&groupBy=tz&having=2&tz=WET").await;
        assert_eq!(rows(&counted), [json!({ "group": { "tz": "WET" }, "count": 1 })]);
        // So does each of several filters, as in a list.
        for (query, count) in [("having=2&tz=WET", 1), ("having=1&having=2", 0), ("tz=CET&tz=CET", 1), ("having=1&tz[neq]=CET", 0)] {
            let counted = admin.get(&format!("/api/v1/data/stop/aggregate?fn=count&{query}")).await;
            assert_eq!(counted.text, format!(r#"{{"data":{{"fn":"count","field":null,"value":{count},"filteredCount":{count}}}}}"#), "{query}");
        }
        for query in ["having=x&tz=1", "tz=1&having=x", "having[gt]=1&having=x&colour=red", "colour=red&having=x", &vec!["having=1"; 101].join("&")] {
            let list = admin.get(&format!("/api/v1/data/stop?{query}")).await;
            let aggregate = admin.get(&format!("/api/v1/data/stop/aggregate?{query}&fn=count")).await;
            assert_eq!((aggregate.status, &aggregate.json()["message"]), (400, &list.json()["message"]), "{query}");
        }
    }

    async fn every_surface_answers_with_the_same_groups(server: Server) {
        let admin = server.admin().await;
        define(&admin).await;
        let shop = admin.make("shop", json!({ "name": "north" })).await;
        for number in 0..12 {
            let at = format!("2026-{:02}-15T10:00:00Z", number % 4 + 1);
            let status = if number % 3 == 0 { "open" } else { "paid" };
            admin.make("sale", json!({ "status": status, "amount": format!("{number}.25"), "at": at, "shop_id": shop })).await;
        }
        let parameters = [
            ("fn", "count,sum:amount,avg:amount"), ("groupBy", "status,at:month"), ("having", r#"{"sum_amount":{"gt":3}}"#),
            ("sort", "-sum_amount,at:month"), ("tz", "Asia/Tokyo"), ("pageSize", "3"), ("page", "2"), ("amount[lt]", "11"),
        ];
        let rest = ask(&admin, &parameters).await;
        assert_eq!(rows(&rest).len(), 3, "{}", rest.text);
        let arguments = json!({
            "object_name": "sale", "functions": ["count", "sum:amount", "avg:amount"], "group_by": ["status", "at:month"],
            "having": { "sum_amount": { "gt": 3 } }, "sort": "-sum_amount,at:month", "tz": "Asia/Tokyo", "page_size": 3, "page": 2,
            "filters": [{ "field": "amount", "operator": "lt", "value": 11 }],
        });
        let client = Client::of(&admin);
        let called = client.call("aggregate_data", arguments).await;
        assert_eq!(called.text, rest.text);
        let query = "query($having: JSON) { sale_groups(functions: [\"count\", \"sum:amount\", \"avg:amount\"], groupBy: [\"status\", \"at:month\"],
            having: $having, tz: \"Asia/Tokyo\", sort: [{ field: \"sum_amount\", direction: desc }, { field: \"at:month\" }], pageSize: 3, page: 2,
            where: { amount: { lt: 11 } }) { data pagination { page pageSize totalCount totalPages hasNextPage hasPreviousPage } } }";
        let sent = send(&server, Some(&admin.token), query, json!({ "having": { "sum_amount": { "gt": 3 } } })).await;
        assert_eq!(sent.text, format!(r#"{{"data":{{"sale_groups":{}}}}}"#, rest.text));
        // With `functions` or in `sale_groups`, a single function has groups, too.
        let all = data(&admin, "{ sale_groups(functions: [\"count\"]) { __typename data } }", Value::Null).await;
        assert_eq!(all["sale_groups"], json!({ "__typename": "SvcGroups", "data": [{ "group": {}, "count": 12 }] }));
        let tool = client.call("aggregate_data", json!({ "object_name": "sale", "functions": ["count"] })).await;
        assert_eq!(serde_json::from_str::<Value>(&tool.text).unwrap()["data"], json!([{ "group": {}, "count": 12 }]));
        for (bad, message) in [
            (json!({ "fn": "count", "page": 1 }), "`page` is for groups. Add `group_by` or `functions`."),
            (json!({ "fn": "count", "group_by": [], "sort": "count" }), "`sort` is for groups. Add `group_by` or `functions`."),
            (json!({ "fn": "count", "functions": ["count"] }), "Use either `fn` or `functions`."),
            (json!({ "functions": [] }), "`fn` is missing. Use count, sum, avg, min or max."),
            (json!({ "functions": ["count"], "group_by": 1 }), "The fields of the groups need text, or a list of texts."),
        ] {
            let mut arguments = json!({ "object_name": "sale" });
            arguments.as_object_mut().unwrap().extend(bad.as_object().unwrap().clone());
            let called = client.call("aggregate_data", arguments).await;
            let refused: Value = serde_json::from_str(&called.text).unwrap();
            assert_eq!((called.is_error, &refused["error"], &refused["message"]), (true, &json!("invalid_request"), &json!(message)), "{bad}");
        }
        // Several functions in `fn` have groups, too.
        let several = client.call("aggregate_data", json!({ "object_name": "sale", "fn": "count,max:amount", "page": 1, "sort": "count" })).await;
        assert_eq!(serde_json::from_str::<Value>(&several.text).unwrap()["data"], json!([{ "group": {}, "count": 12, "max_amount": 11.25 }]));
        let missing = send(&server, Some(&admin.token), "{ sale_groups(functions: []) { data } }", Value::Null).await.json();
        assert_eq!(missing["errors"][0]["message"], "A function is missing. Use count, sum, avg, min or max.");
        // A block reads them with a function of its own.
        let installed = admin.install("", test_block("parity").await).await;
        assert_eq!(installed.status, 201, "{}", installed.text);
        let query = json!({
            "functions": ["count", "sum:amount", "avg:amount"], "groupBy": "status,at:month", "having": { "sum_amount": { "gt": 3 } },
            "sort": "-sum_amount,at:month", "tz": "Asia/Tokyo", "pageSize": 3, "page": 2, "where": { "amount": { "lt": 11 } },
        });
        let input = json!({ "op": "groups", "object": "sale", "json": query.to_string() });
        let ran = admin.post("/api/v1/blocks/parity/actions/run", input).await;
        assert_eq!((ran.status, &ran.data()["done"]), (200, &rest.json()), "{}", ran.text);
        // An object may already have the name of the query.
        admin.define("sale_groups", json!([{ "name": "name", "type": "text" }])).await;
        admin.make("sale_groups", json!({ "name": "mine" })).await;
        assert_eq!(data(&admin, "{ sale_groups { data { name } } }", Value::Null).await["sale_groups"]["data"], json!([{ "name": "mine" }]));
    }

    async fn groups_have_only_what_the_caller_may_read(server: Server) {
        let admin = server.admin().await;
        define(&admin).await;
        for (item, count, status) in [("a", 1, "open"), ("a", 2, "paid"), ("b", 4, "open"), ("b", 8, "open")] {
            admin.make("sale", json!({ "item": item, "count": count, "status": status, "amount": count })).await;
        }
        // The amounts of open sales, and the items of all sales.
        role(&admin, "clerk", json!([
            { "resource": "data", "actions": ["read"] },
            { "resource": "sale", "actions": ["read"], "fields": { "read": ["item"] } },
            { "resource": "sale", "actions": ["read"], "where": { "status": "open" }, "fields": { "read": ["item", "count", "status"] } },
        ])).await;
        let (clerk, _) = user(&admin, "clerk", Some("clerk")).await;
        let sums = ask(&clerk, &[("fn", "count,sum:count"), ("groupBy", "item")]).await;
        assert_eq!(rows(&sums), [
            json!({ "group": { "item": "a" }, "count": 2, "sum_count": 1 }), json!({ "group": { "item": "b" }, "count": 2, "sum_count": 12 }),
        ]);
        let states = ask(&clerk, &[("fn", "count"), ("groupBy", "status")]).await;
        assert_eq!(rows(&states), [json!({ "group": { "status": "open" }, "count": 3 }), json!({ "group": { "status": null }, "count": 1 })]);
        for hidden in [vec![("fn", "count"), ("groupBy", "amount")], vec![("fn", "count,sum:amount")]] {
            ask(&clerk, &hidden).await.expect_error(400, "unknown_field");
        }
        // A key with a hidden field is as unknown as one that does not exist.
        for key in ["amount", "sum_amount", "nothing"] {
            let having = json!({ key: { "gt": 1 } }).to_string();
            let refused = ask(&clerk, &[("fn", "count"), ("groupBy", "item"), ("having", &having)]).await.expect_error(400, "unknown_field");
            let keys = format!("The groups have no key `{key}`. They have `item` and `count`.");
            assert_eq!(refused["message"], format!("`having.{key}`: {keys}"));
            let sorted = ask(&clerk, &[("fn", "count"), ("groupBy", "item"), ("sort", key)]).await.expect_error(400, "unknown_field");
            assert_eq!(sorted["message"], keys);
        }
        // A cell that cannot be read does not count, and its group meets a condition on null.
        let cells = [("fn", "count,count:count,sum:count"), ("groupBy", "item")];
        assert_eq!(values(&ask(&clerk, &cells).await, "count_count"), [json!(1), json!(2)]);
        let masked = [("fn", "count,sum:count"), ("groupBy", "status"), ("having", r#"{"sum_count":null}"#)];
        assert_eq!(rows(&ask(&clerk, &masked).await), [json!({ "group": { "status": null }, "count": 1, "sum_count": null })]);
        let masked = [("fn", "count"), ("groupBy", "status"), ("having", r#"{"status":null}"#)];
        assert_eq!(rows(&ask(&clerk, &masked).await), [json!({ "group": { "status": null }, "count": 1 })]);
        let masked = [("fn", "count"), ("groupBy", "status"), ("having", r#"{"status":"paid"}"#)];
        assert_eq!(rows(&ask(&clerk, &masked).await), Vec::<Value>::new());
        // The other surfaces show the same groups, and hide the same fields.
        let query = r#"{ sale_groups(functions: ["count", "sum:count"], groupBy: ["item"]) { data } }"#;
        assert_eq!(data(&clerk, query, Value::Null).await["sale_groups"]["data"], Value::from(rows(&sums)));
        let client = Client::of(&clerk);
        let arguments = json!({ "object_name": "sale", "functions": ["count", "sum:count"], "group_by": ["item"] });
        assert_eq!(client.call("aggregate_data", arguments).await.text, sums.text);
        for (functions, group_by) in [(json!(["sum:amount"]), json!([])), (json!(["count"]), json!(["amount"]))] {
            let query = format!("{{ sale_groups(functions: {functions}, groupBy: {group_by}) {{ data }} }}");
            assert_eq!(codes(&server, Some(&clerk.token), &query, Value::Null).await, ["unknown_field"], "{query}");
            let arguments = json!({ "object_name": "sale", "functions": functions, "group_by": group_by });
            let called = client.call("aggregate_data", arguments).await;
            let refused: Value = serde_json::from_str(&called.text).unwrap();
            assert_eq!((called.is_error, &refused["error"]), (true, &json!("unknown_field")), "{}", called.text);
        }
        // A policy with a condition leaves only its rows.
        role(&admin, "opener", json!([{ "resource": "sale", "actions": ["read"], "where": { "status": "open" } }])).await;
        let (opener, _) = user(&admin, "opener", Some("opener")).await;
        let open = ask(&opener, &[("fn", "count,sum:amount"), ("groupBy", "item")]).await;
        assert_eq!(rows(&open), [
            json!({ "group": { "item": "a" }, "count": 1, "sum_amount": 1 }), json!({ "group": { "item": "b" }, "count": 2, "sum_amount": 12 }),
        ]);
        assert_eq!(rows(&ask(&opener, &[("fn", "count,max:amount"), ("having", r#"{"count":4}"#)]).await), Vec::<Value>::new());
        role(&admin, "owner", json!([{ "resource": "sale", "actions": ["read", "create"], "rowPolicy": "own" }])).await;
        let (owner, _) = user(&admin, "owner", Some("owner")).await;
        owner.make("sale", json!({ "item": "c" })).await;
        assert_eq!(rows(&ask(&owner, &[("fn", "count"), ("groupBy", "item")]).await), [json!({ "group": { "item": "c" }, "count": 1 })]);
        let (nobody, _) = user(&admin, "nobody", None).await;
        ask(&nobody, &[("fn", "count"), ("groupBy", "item")]).await.expect_error(403, "forbidden");
    }
}

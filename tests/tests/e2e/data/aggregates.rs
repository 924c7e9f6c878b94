//! Aggregates: exact values over the same rows that a list counts.

use blockbase_tests::on_both_engines;
use serde_json::{Value, json};

on_both_engines! {
    async fn aggregates_are_exact(server: Server) {
        let admin = server.admin().await;
        admin.define("sale", json!([
            { "name": "item", "type": "text" },
            { "name": "count", "type": "integer" },
            { "name": "big", "type": "big_integer" },
            { "name": "price", "type": "currency" },
            { "name": "weight", "type": "float" },
            { "name": "rating", "type": "rating" },
        ])).await;
        let aggregate = async |query: &str| admin.get(&format!("/api/v1/data/sale/aggregate?{query}")).await;
        let value = async |query: &str| aggregate(query).await.data()["value"].clone();
        assert_eq!(aggregate("fn=count").await.data(), json!({ "fn": "count", "field": null, "value": 0, "filteredCount": 0 }));
        for function in ["sum", "avg", "min", "max"] {
            let none = aggregate(&format!("fn={function}&field=price")).await.data();
            assert_eq!(none, json!({ "fn": function, "field": "price", "value": null, "filteredCount": 0 }));
        }
        for (item, count, big, price, weight) in [
            ("apple", json!(3), json!(i64::MAX), json!(0.1), json!(0.1)),
            ("apple pie", json!(4), json!(i64::MAX), json!(0.2), json!(0.2)),
            ("pear", json!(-2), json!(null), json!("9999999999999999.99"), json!(1e300)),
            ("plum", json!(null), json!(1), json!(null), json!(-1e300)),
        ] {
            admin.make("sale", json!({ "item": item, "count": count, "big": big, "price": price, "weight": weight })).await;
        }
        let raw = aggregate("fn=sum&field=big").await.text;
        assert!(raw.contains(r#""value":18446744073709551615,"#), "{raw}");
        let raw = aggregate("fn=sum&field=price").await.text;
        assert!(raw.contains(r#""value":10000000000000000.29,"#), "{raw}");
        assert_eq!(value("fn=sum&field=count").await, json!(5));
        assert_eq!(value("fn=avg&field=count").await, json!(5.0 / 3.0));
        assert_eq!(value("fn=min&field=count").await, json!(-2));
        assert_eq!(value("fn=max&field=price").await, json!(9999999999999999.99));
        assert_eq!(value("fn=min&field=price").await, json!(0.1));
        // Doubles are added as decimal numbers, so the order of the rows does not matter.
        let raw = aggregate("fn=sum&field=weight").await.text;
        assert!(raw.contains(r#""value":0.3,"#), "{raw}");
        assert_eq!(value("fn=max&field=weight").await, json!(1e300));
        assert_eq!(value("fn=sum&field=rating").await, Value::Null);
        assert_eq!(aggregate("fn=count&field=price").await.data(), json!({ "fn": "count", "field": "price", "value": 3, "filteredCount": 4 }));
        assert_eq!(value("fn=count&field=item").await, json!(4));
        let filtered = aggregate("fn=sum&field=count&search=APPLE&count%5Bgte%5D=3&sort=-price&page=9&limit=1").await.data();
        assert_eq!(filtered, json!({ "fn": "sum", "field": "count", "value": 7, "filteredCount": 2 }));

        for (query, code) in [
            ("", "invalid_request"),
            ("fn=median&field=count", "invalid_request"),
            ("fn=sum", "invalid_request"),
            ("fn=sum&field=", "invalid_request"),
            ("fn=sum&field=item", "invalid_request"),
            ("fn=max&field=created_at", "invalid_request"),
            ("fn=sum&field=colour", "unknown_field"),
            ("fn=count&colour=red", "unknown_field"),
            ("fn=count&count%5Bgt%5D=x", "invalid_value"),
        ] {
            aggregate(query).await.expect_error(400, code);
        }
        admin.make("sale", json!({ "weight": 1.7e308 })).await;
        admin.make("sale", json!({ "weight": 1.7e308 })).await;
        assert_eq!(aggregate("fn=sum&field=weight").await.expect_error(400, "invalid_value")["field"], "weight");
        admin.get("/api/v1/data/nothing/aggregate?fn=count").await.expect_error(404, "not_found");
        server.call("GET", "/api/v1/data/sale/aggregate?fn=count", None).await.expect_error(401, "unauthorized");
    }
}

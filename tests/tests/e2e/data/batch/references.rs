//! References to the results of earlier operations.

use blockbase_tests::on_both_engines;
use serde_json::{Value, json};

use super::{NOBODY, batch, define, events, failed, results, total};

on_both_engines! {
    async fn a_reference_takes_a_field_of_an_earlier_result(server: Server) {
        let admin = server.admin().await;
        define(&admin).await;
        let of = |reference: &str| json!({ "$ref": reference });
        let done = results(&batch(&admin, json!([
            { "op": "create", "object": "team", "values": { "name": "red", "size": 7 } },
            { "op": "create", "object": "member", "values": { "name": of("0.name"), "points": of("0.size"), "team_id": of("0.id"), "kinds": ["b", "a"], "extra": of("0.id") } },
            { "op": "create", "object": "member", "values": { "name": of("1.created_at"), "kinds": of("1.kinds"), "extra": { "a": [of("9.x")], "$ref": 1 } } },
            { "op": "update", "object": "member", "id": of("2.id"), "values": { "points": of("1.points"), "team_id": of("1.team_id"), "extra": [of("0.id")] } },
            { "op": "upsert", "object": "team", "values": { "id": of("0.id"), "name": of("2.id") }, "onConflict": ["id"] },
            { "op": "create", "object": "tag", "values": {} },
            { "op": "link", "object": "member", "id": of("3.id"), "relation": "tags", "ids": [of("5.id"), of("5.id")] },
            { "op": "create", "object": "team", "values": { "size": of("6.added"), "name": of("5.code") } },
            { "op": "update", "object": "team", "id": of("4.id"), "values": { "name": of("4.updated_by") } },
        ])).await);
        let field = |place: usize, name: &str| done[place]["data"][name].clone();
        assert_eq!((field(1, "name"), field(1, "points"), field(1, "team_id")), (json!("red"), json!(7), field(0, "id")));
        // In a column of JSON, a reference is data.
        assert_eq!(field(1, "extra"), json!({ "$ref": "0.id" }));
        assert_eq!(field(2, "extra"), json!({ "a": [{ "$ref": "9.x" }], "$ref": 1 }));
        assert_eq!(field(3, "extra"), json!([{ "$ref": "0.id" }]));
        assert_eq!((field(2, "name"), field(2, "kinds")), (field(1, "created_at"), json!(["b", "a"])));
        assert_eq!((field(3, "id"), field(3, "points"), field(3, "team_id")), (field(2, "id"), json!(7), field(0, "id")));
        assert_eq!((&done[4]["created"], field(4, "id"), field(4, "name")), (&json!(false), field(0, "id"), field(2, "id")));
        assert_eq!(done[6], json!({ "data": { "added": 1 } }));
        assert_eq!((field(7, "size"), field(7, "name")), (json!(1), Value::Null));
        assert_eq!(field(8, "name"), field(0, "created_by"));
    }

    async fn a_reference_that_leads_nowhere_changes_nothing(server: Server) {
        let admin = server.admin().await;
        define(&admin).await;
        let team = admin.make("team", json!({ "name": "red" })).await;
        let before = events(&admin).await;
        let create = json!({ "op": "create", "object": "team", "values": { "name": "new", "size": 1 } });
        let delete = json!({ "op": "delete", "object": "team", "id": team });
        let rename = |reference: Value| json!({ "op": "update", "object": "team", "id": team, "values": { "name": reference } });
        // Malformed, forward, to itself, beyond the end, to a deletion.
        for reference in ["0", "", "0.", ".name", "0.a.b", "x.name", "-1.name", "00.name", "2.name", "1.name", "999.name", "0 .name"] {
            let error = failed(&batch(&admin, json!([create, rename(json!({ "$ref": reference })), create])).await, 1, 400, "invalid_request");
            assert_eq!(error["field"], "name", "{error}");
        }
        for reference in [json!({ "$ref": 0 }), json!({ "$ref": null }), json!({ "$ref": "0.name", "x": 1 })] {
            failed(&batch(&admin, json!([create, rename(reference)])).await, 1, 400, "invalid_request");
        }
        failed(&batch(&admin, json!([delete, create, { "op": "update", "object": "team", "id": { "$ref": "0.id" }, "values": {} }])).await, 2, 400, "invalid_request");
        let own = json!({ "op": "update", "object": "team", "id": { "$ref": "0.id" }, "values": {} });
        assert_eq!(failed(&batch(&admin, json!([own])).await, 0, 400, "invalid_request")["field"], "id");
        // A field that the result does not have.
        for (operation, field) in [(&create, "colour"), (&create, "svc_version"), (&create, "added")] {
            let error = failed(&batch(&admin, json!([operation, rename(json!({ "$ref": format!("0.{field}") }))])).await, 1, 400, "unknown_field");
            assert_eq!(error["field"], field);
        }
        // A value that cannot be where the reference is.
        let member = json!({ "op": "create", "object": "member", "values": { "name": "m", "extra": { "$inc": 5 } } });
        let sized = |reference: &str| json!({ "op": "update", "object": "team", "id": team, "values": { "size": { "$ref": reference } } });
        for (first, second, field) in [
            (&create, sized("0.name"), "size"),
            (&create, rename(json!({ "$ref": "0.size" })), "name"),
            // Stored JSON is never read as an operator.
            (&member, sized("0.extra"), "size"),
            (&create, json!({ "op": "delete", "object": "team", "id": { "$ref": "0.size" } }), "id"),
            (&member, json!({ "op": "delete", "object": "team", "id": { "$ref": "0.team_id" } }), "id"),
        ] {
            let refused = batch(&admin, json!([first, second])).await;
            assert_eq!(failed(&refused, 1, 400, "invalid_value")["field"], field);
        }
        // The record of an earlier result may be gone, or the earlier operation may fail.
        let again = json!([
            create,
            { "op": "delete", "object": "team", "id": { "$ref": "0.id" } },
            { "op": "update", "object": "team", "id": { "$ref": "0.id" }, "values": { "name": { "$ref": "0.name" } } },
        ]);
        failed(&batch(&admin, again).await, 2, 404, "not_found");
        let missing = json!({ "op": "update", "object": "team", "id": NOBODY, "values": { "name": "x" } });
        failed(&batch(&admin, json!([create, missing, rename(json!({ "$ref": "1.name" }))])).await, 1, 404, "not_found");
        assert_eq!((total(&admin, "team").await, total(&admin, "member").await), (1, 0));
        assert_eq!(admin.get(&format!("/api/v1/data/team/{team}")).await.data()["name"], "red");
        assert_eq!(events(&admin).await, before);
    }
}

//! The rights of the operations of a batch, and what their caller sees of the results.

use blockbase_tests::{Admin, on_both_engines};
use serde_json::{Value, json};

use super::{NOBODY, batch, define, events, failed, results, total};

/// A user with one role that has these grants.
pub(super) async fn user<'a>(admin: &Admin<'a>, name: &str, grants: Value) -> Admin<'a> {
    let role = admin.post("/api/v1/roles", json!({ "name": name, "permissions": grants })).await;
    assert_eq!(role.status, 201, "{}", role.text);
    let user = admin.server.with_token(admin.server.sign_up(name).await);
    let id = user.get("/api/v1/me").await.json()["userId"].as_str().unwrap().to_owned();
    assert_eq!(admin.post(&format!("/api/v1/users/{id}/roles"), json!({ "roleId": name })).await.status, 200);
    user
}

on_both_engines! {
    async fn each_operation_needs_its_own_rights(server: Server) {
        let admin = server.admin().await;
        define(&admin).await;
        let team = admin.make("team", json!({ "name": "red" })).await;
        let reader = user(&admin, "reader", json!([{ "resource": "team", "actions": ["read"] }, { "resource": "data", "actions": ["manage"] }])).await;
        let maker = user(&admin, "maker", json!([{ "resource": "team", "actions": ["create"] }])).await;
        let own = user(&admin, "own", json!([{ "resource": "team", "actions": ["manage"], "rowPolicy": "own" }])).await;
        let create = json!({ "op": "create", "object": "team", "values": { "name": "new" } });
        let update = json!({ "op": "update", "object": "team", "id": team, "values": { "name": "x" } });
        let delete = json!({ "op": "delete", "object": "team", "id": team });
        let before = events(&admin).await;
        // Nobody may send a batch who may write nothing.
        batch(&reader, json!([])).await.expect_error(403, "forbidden");
        batch(&reader, json!([create])).await.expect_error(403, "forbidden");
        for refused in [&update, &delete, &json!({ "op": "create", "object": "member", "values": { "name": "m" } }), &json!({ "op": "create", "object": "nothing", "values": {} })] {
            failed(&batch(&maker, json!([create, refused])).await, 1, 403, "forbidden");
        }
        let upsert = json!({ "op": "upsert", "object": "team", "values": { "id": team, "name": "x" }, "onConflict": ["id"] });
        failed(&batch(&maker, json!([upsert])).await, 0, 403, "forbidden");
        // The rights are checked before the values, also of an operation that waits for another one.
        let waiting = json!({ "op": "update", "object": "team", "id": { "$ref": "0.id" }, "values": { "size": "no number" } });
        failed(&batch(&maker, json!([create, waiting])).await, 1, 403, "forbidden");
        // A hidden record counts as missing.
        for hidden in [&update, &delete] {
            failed(&batch(&own, json!([create, hidden])).await, 1, 404, "not_found");
        }
        failed(&batch(&own, json!([create, upsert])).await, 1, 403, "forbidden");
        assert_eq!((total(&admin, "team").await, events(&admin).await), (1, before));
        let done = results(&batch(&own, json!([create, { "op": "update", "object": "team", "id": { "$ref": "0.id" }, "values": { "size": 2 } }])).await);
        assert_eq!(own.get(&format!("/api/v1/data/team/{}", done[0]["data"]["id"].as_str().unwrap())).await.data(), done[1]["data"]);
    }

    async fn a_reference_shows_no_more_than_a_result_does(server: Server) {
        let admin = server.admin().await;
        define(&admin).await;
        let team = admin.make("team", json!({ "name": "secret", "size": 9 })).await;
        let writer = user(&admin, "writer", json!([{ "resource": "team", "actions": ["create", "update"] }])).await;
        let listed = user(&admin, "listed", json!([
            { "resource": "team", "actions": ["create", "update"] },
            { "resource": "team", "actions": ["read"], "fields": { "read": ["name"] } },
        ])).await;
        let condition = user(&admin, "condition", json!([
            { "resource": "team", "actions": ["create", "update"] },
            { "resource": "team", "actions": ["read"], "where": { "size": { "lt": 5 } } },
        ])).await;
        let touch = json!({ "op": "update", "object": "team", "id": team, "values": { "size": 9 } });
        let copy = |field: &str| json!({ "op": "create", "object": "team", "values": { "name": { "$ref": format!("0.{field}") } } });
        // Somebody who may not read sees the id and what they sent, and can refer to nothing else.
        let done = results(&batch(&writer, json!([touch, copy("id")])).await);
        assert_eq!(done[0], json!({ "data": { "id": team, "size": 9 } }));
        assert_eq!(done[1]["data"]["name"], json!(team));
        let error = failed(&batch(&writer, json!([touch, copy("name")])).await, 1, 403, "forbidden");
        assert_eq!(error["field"], "name");
        // A field that no grant lists is an unknown field. Another unreadable value is null or left out.
        let done = results(&batch(&listed, json!([{ "op": "update", "object": "team", "id": team, "values": { "name": "seen" } }, copy("name")])).await);
        assert_eq!(done[0], json!({ "data": { "id": team, "name": "seen" } }));
        assert_eq!(done[1]["data"]["name"], "seen");
        failed(&batch(&condition, json!([touch, copy("name")])).await, 1, 403, "forbidden");
        let small = json!({ "op": "update", "object": "team", "id": team, "values": { "size": 3 } });
        let done = results(&batch(&condition, json!([small, copy("name")])).await);
        assert_eq!((&done[0]["data"]["name"], &done[1]["data"]["name"]), (&json!("seen"), &json!("seen")));
        let reader = user(&admin, "names", json!([
            { "resource": "team", "actions": ["create"], "fields": { "write": ["name"] } },
            { "resource": "team", "actions": ["read"], "fields": { "read": ["name"] } },
        ])).await;
        let create = json!({ "op": "create", "object": "team", "values": { "name": "n" } });
        for field in ["size", "created_by", "colour"] {
            let error = failed(&batch(&reader, json!([create, copy(field)])).await, 1, 400, "unknown_field");
            assert_eq!(error["message"], format!("At index 1: `team` has no field `{field}`."));
        }
        let sized = json!({ "op": "create", "object": "team", "values": { "size": { "$ref": "0.name" } } });
        assert_eq!(failed(&batch(&reader, json!([create, sized])).await, 1, 403, "forbidden")["field"], "size");
    }

    async fn references_reveal_no_objects_and_no_columns(server: Server) {
        let admin = server.admin().await;
        define(&admin).await;
        let grants = json!([{ "resource": "team", "actions": ["create"], "fields": { "write": ["name"] } }]);
        let maker = user(&admin, "maker", grants).await;
        let create = json!({ "op": "create", "object": "team", "values": { "name": "n" } });
        // Malformed, dangling, to an unknown field, good.
        for reference in [json!({ "$ref": 0 }), json!({ "$ref": "9.id" }), json!({ "$ref": "0.colour" }), json!({ "$ref": "0.id" })] {
            for object in ["member", "nothing"] {
                let foreign = json!({ "op": "create", "object": object, "values": { "name": reference } });
                let error = failed(&batch(&maker, json!([create, foreign])).await, 1, 403, "forbidden");
                assert!(error["message"].as_str().unwrap().contains(&format!("create `{object}`")), "{error}");
                assert!(error.get("field").is_none(), "{error}");
            }
            let hidden = json!({ "op": "create", "object": "team", "values": { "size": reference } });
            assert_eq!(failed(&batch(&maker, json!([create, hidden])).await, 1, 403, "forbidden")["field"], "size");
        }
        assert_eq!(total(&admin, "team").await, 0);
    }

    async fn a_result_shows_no_state_that_its_caller_could_not_read(server: Server) {
        let admin = server.admin().await;
        let fields = ["status", "note", "secret"].map(|name| json!({ "name": name, "type": "text" }));
        admin.define("memo", json!(fields)).await;
        let memo = admin.make("memo", json!({ "status": "draft", "secret": "hidden" })).await;
        let editor = user(&admin, "editor", json!([
            { "resource": "memo", "actions": ["read"], "where": { "status": "public" } },
            { "resource": "memo", "actions": ["update"], "check": { "status": { "in": ["draft", "public"] } } },
        ])).await;
        let update = |values: Value| json!({ "op": "update", "object": "memo", "id": memo, "values": values });
        let publish = update(json!({ "status": "public", "secret": null }));
        let answer = batch(&editor, json!([update(json!({ "note": "n" })), publish])).await;
        let done = results(&answer);
        assert!(!answer.text.contains("hidden"), "{}", answer.text);
        assert_eq!((&done[0]["data"]["note"], &done[0]["data"]["secret"]), (&json!("n"), &Value::Null));
        assert_eq!(done[0], done[1]);
    }

    async fn a_missing_record_is_refused_before_a_right_and_a_right_before_a_version(server: Server) {
        let admin = server.admin().await;
        define(&admin).await;
        let large = admin.make("team", json!({ "size": 9 })).await;
        let small = admin.make("team", json!({ "size": 3 })).await;
        let adder = user(&admin, "adder", json!([
            { "resource": "team", "actions": ["update"] },
            { "resource": "team", "actions": ["read"], "where": { "size": { "lt": 5 } } },
        ])).await;
        let add = |id: &str| json!([{ "op": "update", "object": "team", "id": id, "values": { "size": { "$inc": 1 } }, "ifVersion": "\"stale\"" }]);
        failed(&batch(&adder, add(NOBODY)).await, 0, 404, "not_found");
        assert_eq!(failed(&batch(&adder, add(&large)).await, 0, 403, "forbidden")["field"], "size");
        failed(&batch(&adder, add(&small)).await, 0, 412, "precondition_failed");
    }

    async fn checks_look_at_what_the_whole_batch_leaves(server: Server) {
        let admin = server.admin().await;
        define(&admin).await;
        // A caller may make a team if they also make its member.
        let of_me = json!({ "member_by_team": { "some": { "created_by": "$user.id" } } });
        let founder = user(&admin, "founder", json!([
            { "resource": "team", "actions": ["create", "read", "update"], "where": of_me },
            { "resource": "member", "actions": ["create", "read"] },
        ])).await;
        let create = json!({ "op": "create", "object": "team", "values": { "name": "mine" } });
        let join = json!({ "op": "create", "object": "member", "values": { "name": "me", "team_id": { "$ref": "0.id" } } });
        let before = events(&admin).await;
        // The team alone fails, and so does a team without a member beside one with a member.
        failed(&batch(&founder, json!([create])).await, 0, 403, "forbidden");
        failed(&batch(&founder, json!([create, join, create])).await, 2, 403, "forbidden");
        failed(&batch(&founder, json!([create, create])).await, 0, 403, "forbidden");
        assert_eq!((total(&admin, "team").await, total(&admin, "member").await, events(&admin).await), (0, 0, before));
        // Each of a thousand fails its check at the end. With a member for each team but the last, only that one does.
        failed(&batch(&founder, json!(vec![&create; 1000])).await, 0, 403, "forbidden");
        let join_to = |team: usize| {
            json!({ "op": "create", "object": "member", "values": { "name": "me", "team_id": { "$ref": format!("{team}.id") } } })
        };
        let mut operations = vec![create.clone(); 500];
        operations.extend((0..499).map(join_to));
        failed(&batch(&founder, json!(operations)).await, 499, 403, "forbidden");
        assert_eq!((total(&admin, "team").await, total(&admin, "member").await, events(&admin).await), (0, 0, before));
        operations.push(join_to(499));
        assert_eq!(results(&batch(&founder, json!(operations)).await).len(), 1000);
        // A caller may refer to a record that they made, although they may read it only afterwards.
        let done = results(&batch(&founder, json!([create, join])).await);
        assert_eq!((&done[0]["data"]["name"], &done[1]["data"]["team_id"]), (&json!("mine"), &done[0]["data"]["id"]));
        assert!(done[0]["data"]["created_at"].is_string(), "{}", done[0]);
        let other = user(&admin, "other", json!([
            { "resource": "team", "actions": ["create", "read", "update"], "where": of_me },
            { "resource": "member", "actions": ["create", "read"] },
        ])).await;
        let theirs = json!({ "op": "create", "object": "member", "values": { "name": "me", "team_id": done[0]["data"]["id"] } });
        failed(&batch(&other, json!([theirs])).await, 0, 409, "foreign_key_violation");
    }
}

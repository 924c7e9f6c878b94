//! Conditions of grants and changes of the schema.

use blockbase_tests::on_both_engines;
use serde_json::{Value, json};

use super::{define, graphql, of_my_teams, own_grants, path, titles};
use crate::accounts::roles::{key, role, user};

/// Which of some grants are marked as broken.
fn broken<'g>(grants: impl IntoIterator<Item = &'g Value>) -> Vec<bool> {
    grants.into_iter().map(|grant| grant["broken"] == true).collect()
}

on_both_engines! {
    async fn a_condition_follows_renames(server: Server) {
        let admin = server.admin().await;
        define(&admin).await;
        role(&admin, "reader", json!([{ "resource": "task", "actions": ["read"], "where": { "state": "open", "team.name": "one" } }])).await;
        let (ann, _) = user(&admin, "ann", Some("reader")).await;
        let team = admin.make("team", json!({ "name": "one" })).await;
        admin.make("task", json!({ "title": "a", "team_id": team })).await;
        admin.make("task", json!({ "title": "b" })).await;
        assert_eq!(titles(&ann, "").await, ["a"]);
        for (object, field, name) in [("task", "state", "phase"), ("team", "name", "title"), ("task", "points", "state")] {
            let renamed = admin.patch(&format!("/api/v1/objects/{object}/fields/{field}"), json!({ "name": name })).await;
            assert_eq!(renamed.status, 200, "{}", renamed.text);
        }
        assert_eq!(titles(&ann, "").await, ["a"]);
        let shown = admin.get("/api/v1/roles/reader").await.data();
        assert_eq!(shown["permissions"][0]["where"], json!({ "phase": "open", "team.title": "one" }));
        // The shown permissions can be sent back unchanged.
        let again = admin.patch("/api/v1/roles/reader", json!({ "permissions": shown["permissions"] })).await;
        assert_eq!((again.status, &again.data()["permissions"]), (200, &shown["permissions"]), "{}", again.text);
    }

    async fn a_change_that_would_break_a_condition_is_refused(server: Server) {
        let admin = server.admin().await;
        define(&admin).await;
        admin.make("task", json!({ "title": "a" })).await;
        let read = |condition| json!({ "resource": "task", "actions": ["read"], "where": condition });
        role(&admin, "amounts", json!([read(json!({ "points": { "gte": 2 }, "state": "open" })), read(of_my_teams())])).await;
        role(&admin, "builder", json!([{ "resource": "objects", "actions": ["manage"] }])).await;
        let (builder, _) = user(&admin, "builder", Some("builder")).await;
        let schema = admin.get("/api/v1/schema").await.data();
        let relationships = schema["relationships"].as_array().unwrap();
        let member = relationships.iter().find(|known| known["source"] == "member").unwrap()["id"].clone();
        let used = [
            "/api/v1/objects/task/fields/points".to_owned(),
            "/api/v1/objects/member/fields/user_id".to_owned(),
            format!("/api/v1/relationships/{member}"),
            "/api/v1/objects/member".to_owned(),
        ];
        for path in &used {
            let refused = admin.delete(path).await;
            let error = refused.expect_error(409, "object_in_use");
            assert!(error["message"].as_str().unwrap().contains("`amounts`"), "{error}");
            // Only callers who may read roles get the name of the role.
            let error = builder.delete(path).await.expect_error(409, "object_in_use");
            assert!(!error["message"].as_str().unwrap().contains("amounts"), "{error}");
            let planned = admin.delete(&format!("{path}?dryRun=true")).await;
            planned.expect_error(409, "object_in_use");
        }
        // A field that a condition tests cannot get another type.
        for kind in ["text", "big_integer"] {
            admin.patch("/api/v1/objects/task/fields/points", json!({ "type": kind })).await.expect_error(409, "object_in_use");
        }
        assert_eq!(admin.patch("/api/v1/objects/task/fields/title", json!({ "max": 100 })).await.status, 200);
        assert_eq!(admin.delete("/api/v1/objects/task/fields/assignee").await.status, 204);
        let dependents = admin.get("/api/v1/objects/task/dependents?field=points").await;
        let names = dependents.json()["data"].clone();
        assert!(names.as_array().unwrap().iter().any(|one| one["kind"] == "role" && one["name"] == "amounts"), "{}", dependents.text);
    }

    async fn a_broken_condition_gives_nothing_and_says_so(server: Server) {
        let admin = server.admin().await;
        define(&admin).await;
        let grants = json!([{ "resource": "task", "actions": ["read"], "where": of_my_teams() }]);
        role(&admin, "worker", grants).await;
        let (ann, id) = user(&admin, "ann", Some("worker")).await;
        let team = admin.make("team", json!({ "name": "one" })).await;
        admin.make("member", json!({ "user_id": id, "team_id": team })).await;
        let task = admin.make("task", json!({ "title": "a", "team_id": team })).await;
        assert_eq!(titles(&ann, "").await, ["a"]);
        let reads = async || {
            let shown = admin.get("/api/v1/roles/worker/permissions").await.data();
            let rights = shown["resources"].as_array().unwrap().iter().find(|rights| rights["resource"] == "task");
            rights.unwrap()["read"].clone()
        };
        assert_eq!(reads().await, "condition");
        let gone = admin.delete("/api/v1/objects/member?cascade=true").await;
        assert_eq!(gone.status, 204, "{}", gone.text);
        assert_eq!(titles(&ann, "").await, Vec::<String>::new());
        let role = admin.get("/api/v1/roles/worker").await.data();
        assert_eq!(role["permissions"][0]["broken"], true, "{role}");
        assert_eq!(broken(&own_grants(&ann, "task").await), [true]);
        assert_eq!(reads().await, Value::Null);
        let of_task = json!({ "userId": id, "object": "task", "action": "read", "id": task });
        let explained = admin.post("/api/v1/roles/worker/explain", of_task).await.data();
        let (grant, none) = (&explained["grants"][0], json!({ "_or": [] }));
        assert_eq!((&grant["broken"], &explained["condition"]), (&json!(true), &none), "{explained}");
        assert_eq!((&grant["passes"], &grant["failing"]), (&json!(false), &json!([])), "{explained}");
        // A new object with the same name is a different object, so the condition stays broken.
        admin.define("member", json!([{ "name": "user_id", "type": "text" }])).await;
        admin.relate(json!({ "name": "team", "kind": "many_to_one", "source": "member", "target": "team" })).await;
        admin.make("member", json!({ "user_id": id, "team_id": team })).await;
        assert_eq!(titles(&ann, "").await, Vec::<String>::new());
        let mended = json!({ "permissions": [{ "resource": "task", "actions": ["read"], "where": of_my_teams() }] });
        let mended = admin.patch("/api/v1/roles/worker", mended).await;
        assert_eq!((mended.status, &mended.data()["permissions"][0]["broken"]), (200, &json!(null)), "{}", mended.text);
        assert_eq!(broken(&own_grants(&ann, "task").await), [false]);
        assert_eq!(titles(&ann, "").await, ["a"]);
    }

    async fn conditions_that_are_long_together_are_not_broken(server: Server) {
        const TESTS: usize = 20;
        let admin = server.admin().await;
        define(&admin).await;
        let any_of = |field: &str| {
            let tests: Vec<Value> = (0..TESTS).map(|number| json!({ field: { "neq": format!("{field} {number}") } })).collect();
            json!({ "resource": "task", "actions": ["read"], "where": { "_or": tests } })
        };
        let keys = json!({ "resource": "api_keys", "actions": ["create", "read"] });
        role(&admin, "maker", json!([keys, { "resource": "task", "actions": ["read"] }])).await;
        let (maker, _) = user(&admin, "maker", Some("maker")).await;
        let reader = role(&admin, "reader", json!([any_of("title")])).await;
        let (client, _) = key(&maker, json!({ "name": "key", "roleId": reader })).await;
        let narrower = admin.patch("/api/v1/roles/maker", json!({ "permissions": [keys, any_of("assignee")] })).await;
        assert_eq!(narrower.status, 200, "{}", narrower.text);
        admin.make("task", json!({ "title": "a", "assignee": "b" })).await;
        // A condition has 30 tests at most, and the two conditions of the key have more.
        assert_eq!(titles(&client, "").await, ["a"]);
        let own = own_grants(&client, "task").await;
        assert_eq!(own[0]["where"]["_and"].as_array().map(Vec::len), Some(2), "{own:?}");
        assert_eq!(broken(&own), [false]);
        // If one of the two is broken, the grant is.
        let by_member = json!({ "resource": "task", "actions": ["read"], "where": of_my_teams() });
        let narrower = admin.patch("/api/v1/roles/maker", json!({ "permissions": [keys, by_member] })).await;
        assert_eq!(narrower.status, 200, "{}", narrower.text);
        assert_eq!(broken(&own_grants(&client, "task").await), [false]);
        assert_eq!(admin.delete("/api/v1/objects/member?cascade=true").await.status, 204);
        assert_eq!(broken(&own_grants(&client, "task").await), [true]);
        assert_eq!(titles(&client, "").await, Vec::<String>::new());
    }

    async fn a_grant_with_a_broken_condition_makes_no_field_known(server: Server) {
        let admin = server.admin().await;
        define(&admin).await;
        role(&admin, "worker", json!([
            { "resource": "task", "actions": ["read"], "where": of_my_teams(), "fields": { "read": ["title", "points"] } },
            { "resource": "task", "actions": ["read"], "fields": { "read": ["title"] } },
            { "resource": "task", "actions": ["read"], "where": { "assignee": "$user.email" }, "fields": { "read": ["assignee"] } },
            { "resource": "task", "actions": ["update"], "where": of_my_teams() },
            { "resource": "data", "actions": ["read"] },
        ])).await;
        let (ann, id) = user(&admin, "ann", Some("worker")).await;
        let team = admin.make("team", json!({ "name": "one" })).await;
        admin.make("member", json!({ "user_id": id, "team_id": team })).await;
        let task = admin.make("task", json!({ "title": "a", "points": 3, "assignee": "ann", "team_id": team })).await;
        let whole = json!({ "id": task, "title": "a", "assignee": null, "points": 3 });
        assert_eq!(ann.get(&path(&task)).await.data(), whole);
        let ty = "{ __type(name: \"Task\") { fields { name } } }";
        let described = async || {
            let document = ann.get("/api/v1/openapi.json").await.json();
            let schemas = ["Task", "TaskUpdateInput"].map(|name| document["components"]["schemas"][name]["properties"].to_string());
            let names = |field: &str| schemas.iter().filter(|schema| schema.contains(&format!("\"{field}\""))).count();
            let in_graphql = graphql(&ann, ty).await.to_string();
            ["title", "assignee", "points", "state"].map(|field| (names(field), in_graphql.contains(&format!("\"{field}\""))))
        };
        assert_eq!(described().await, [(2, true), (2, true), (2, true), (1, false)]);
        assert_eq!(admin.delete("/api/v1/objects/member?cascade=true").await.status, 204);
        // Nobody reads `points` now. A grant whose variable has no value for Ann still counts, so `assignee` is null.
        assert_eq!(ann.get(&path(&task)).await.data(), json!({ "id": task, "title": "a", "assignee": null }));
        assert_eq!(titles(&ann, "").await, ["a"]);
        assert_eq!(titles(&ann, "assignee=ann").await, Vec::<String>::new());
        ann.get("/api/v1/data/task?points=3").await.expect_error(400, "unknown_field");
        assert_eq!(described().await, [(1, true), (1, true), (0, false), (0, false)]);
        ann.patch(&path(&task), json!({ "points": 4 })).await.expect_error(404, "not_found");
    }

    async fn a_condition_from_an_older_copy_gives_nothing_and_says_so(server: Server) {
        let admin = server.admin().await;
        define(&admin).await;
        let team_names = json!({ "resource": "team", "actions": ["read"] });
        role(&admin, "worker", json!([
            team_names,
            { "resource": "task", "actions": ["read"], "where": of_my_teams() },
            { "resource": "task", "actions": ["read"], "where": { "points": { "gte": 2 } } },
            { "resource": "task", "actions": ["read"], "fields": { "read": ["title", "assignee"] } },
            { "resource": "task", "actions": ["update"], "check": { "assignee": { "neq": "nobody" } } },
            { "resource": "task", "actions": ["delete"], "where": { "points": 3 } },
        ])).await;
        let (ann, id) = user(&admin, "ann", Some("worker")).await;
        let team = admin.make("team", json!({ "name": "one" })).await;
        admin.make("member", json!({ "user_id": id, "team_id": team })).await;
        let task = admin.make("task", json!({ "title": "a", "points": 3, "team_id": team })).await;
        assert_eq!(titles(&ann, "").await, ["a"]);
        let copy = server.sql("SELECT permissions FROM svc_roles WHERE name = 'worker'").await[0][0].clone();
        // Without the grants, nothing refuses these changes: a relation is deleted, a field too, and another field gets another type.
        let fewer = admin.patch("/api/v1/roles/worker", json!({ "permissions": [team_names] })).await;
        assert_eq!(fewer.status, 200, "{}", fewer.text);
        for path in ["/api/v1/objects/member?cascade=true", "/api/v1/objects/task/fields/assignee"] {
            let gone = admin.delete(path).await;
            assert_eq!(gone.status, 204, "{path}: {}", gone.text);
        }
        let retyped = admin.patch("/api/v1/objects/task/fields/points", json!({ "type": "text" })).await;
        assert_eq!(retyped.status, 200, "{}", retyped.text);

        // Somebody brings the role back from an older backup, with the tools of the database.
        let (token, ann_token) = (admin.token.clone(), ann.token.clone());
        let mut server = server;
        server.kill();
        let restored = copy.replace('\'', "''");
        server.sql(&format!("UPDATE svc_roles SET permissions = '{restored}' WHERE name = 'worker'")).await;
        let server = server.restart().await;
        let (admin, ann) = (server.with_token(token), server.with_token(ann_token));
        let role = admin.get("/api/v1/roles/worker").await.data();
        assert_eq!(broken(role["permissions"].as_array().unwrap()), [false, true, true, true, true, true], "{role}");
        // Ann sees the same of her own grants: three to read, one to update and one to delete.
        let own = own_grants(&ann, "task").await;
        assert_eq!(broken(&own), [true; 5], "{own:?}");
        assert_eq!(broken(&own_grants(&ann, "team").await), [false]);
        // An explanation names the grants that a changed type broke, too.
        let explained = admin.post("/api/v1/roles/worker/explain", json!({ "object": "task", "action": "delete" })).await.data();
        assert_eq!(broken(explained["grants"].as_array().unwrap()), [true], "{explained}");
        let shown = admin.get("/api/v1/roles/worker/permissions").await.data();
        let rights = shown["resources"].as_array().unwrap().iter().find(|rights| rights["resource"] == "task").unwrap();
        for action in ["read", "update", "delete"] {
            assert_eq!(rights[action], Value::Null, "{action}: {rights}");
        }
        // Without a grant that gives something, Ann knows no field but `id`.
        assert_eq!(ann.get("/api/v1/data/task").await.data(), json!([]));
        ann.get("/api/v1/data/task?sort=title").await.expect_error(400, "unknown_field");
        let path = path(&task);
        ann.get(&path).await.expect_error(404, "not_found");
        ann.patch(&path, json!({ "title": "b" })).await.expect_error(404, "not_found");
        ann.delete(&path).await.expect_error(404, "not_found");
        assert_eq!(titles(&admin, "").await, ["a"]);
        // The role's other grants stay in force, and the broken ones can be replaced.
        assert_eq!(ann.get("/api/v1/data/team").await.data().as_array().unwrap().len(), 1);
        let by_text = json!({ "resource": "task", "actions": ["read"], "where": { "points": "3" } });
        let mended = admin.patch("/api/v1/roles/worker", json!({ "permissions": [by_text] })).await;
        assert_eq!((mended.status, &mended.data()["permissions"]), (200, &json!([by_text])), "{}", mended.text);
        assert_eq!(broken(&own_grants(&ann, "task").await), [false]);
        assert_eq!(titles(&ann, "").await, ["a"]);
    }
}

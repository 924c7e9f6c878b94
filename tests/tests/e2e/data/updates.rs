//! Changes of one record. On Postgres, most of them are locked, changed and read by one statement.

use blockbase_tests::{Admin, Engine, ServerBuilder, on_both_engines};
use futures_util::future::join_all;
use serde_json::{Value, json};

/// Tallies, each of a team.
async fn define(admin: &Admin<'_>) {
    admin.define("team", json!([{ "name": "name", "type": "text" }])).await;
    let fields = json!([
        { "name": "n", "type": "integer", "min": 0, "max": 1000 },
        { "name": "free", "type": "integer" },
        { "name": "code", "type": "slug", "isUnique": true },
        { "name": "words", "type": "multi_enum", "options": ["a", "b"] },
        { "name": "extra", "type": "json" },
    ]);
    admin.define("tally", fields).await;
    admin.relate(json!({ "name": "team", "kind": "many_to_one", "source": "tally", "target": "team" })).await;
}

on_both_engines! {
    async fn an_update_shows_the_record_before_and_after_it(server: Server) {
        let admin = server.admin().await;
        define(&admin).await;
        let team = admin.make("team", json!({ "name": "one" })).await;
        let record = json!({ "n": 1, "code": "a", "words": ["a"], "extra": { "k": [1, null] } });
        let made = admin.post("/api/v1/data/tally", record).await.data();
        let path = format!("/api/v1/data/tally/{}", made["id"].as_str().unwrap());
        let changes = json!({ "n": { "$inc": 4 }, "words": ["a", "b"], "extra": { "k": 2 }, "team_id": team });
        let changed = admin.patch(&path, changes).await.data();
        assert_eq!((&changed["n"], &changed["words"], &changed["extra"]), (&json!(5), &json!(["a", "b"]), &json!({ "k": 2 })));
        assert_eq!((&changed["code"], &changed["team_id"]), (&json!("a"), &json!(team)));
        assert_eq!(admin.get(&path).await.data(), changed);
        // A change to the same value is a change too.
        let again = admin.patch(&path, json!({ "n": 5 })).await;
        assert_eq!((again.status, &again.data()["n"]), (200, &json!(5)));
        let events = admin.outbox("tally").await;
        let images: Vec<(&Value, &Value)> = events.iter().map(|(_, event)| (&event["before"], &event["after"])).collect();
        assert_eq!(images, [(&Value::Null, &made), (&made, &changed), (&changed, &again.data())]);
        assert_eq!(events[2].1["diff"], json!({}));
        assert_eq!(admin.patch("/api/v1/data/tally/20000000-0000-4000-8000-000000000000", json!({ "n": 1 })).await.status, 404);
    }

    async fn no_update_is_lost_and_each_event_continues_the_one_before_it(server: Server) {
        let admin = server.admin().await;
        define(&admin).await;
        let path = format!("/api/v1/data/tally/{}", admin.make("tally", json!({ "n": 0, "free": 0 })).await);
        // The changes are of one field or of two.
        let changes = (0..60).map(|number| {
            let (admin, path) = (&admin, &path);
            let body = match number % 2 {
                0 => json!({ "n": { "$inc": 1 } }),
                _ => json!({ "n": { "$inc": 1 }, "free": { "$dec": 1 } }),
            };
            async move { admin.patch(path, body).await.status }
        });
        assert!(join_all(changes).await.iter().all(|status| *status == 200));
        let last = admin.get(&path).await.data();
        assert_eq!((&last["n"], &last["free"]), (&json!(60), &json!(-30)));
        let events = admin.outbox("tally").await;
        assert_eq!(events.len(), 61);
        for (one, next) in events.iter().zip(&events[1..]) {
            assert_eq!(one.1["after"], next.1["before"]);
        }
        assert_eq!(events[60].1["after"], last);
    }

    async fn a_refused_update_changes_nothing(server: Server) {
        let admin = server.admin().await;
        define(&admin).await;
        admin.make("tally", json!({ "code": "taken" })).await;
        let record = json!({ "n": 999, "free": 2_000_000_000, "code": "own" });
        let path = format!("/api/v1/data/tally/{}", admin.make("tally", record).await);
        let (before, events) = (admin.get(&path).await.data(), admin.outbox("tally").await.len());
        for (body, status, code, field) in [
            (json!({ "n": { "$inc": 2 } }), 400, "CONSTRAINT_VIOLATION", "n"),
            (json!({ "n": { "$dec": 1000 } }), 400, "CONSTRAINT_VIOLATION", "n"),
            (json!({ "free": { "$inc": 2_000_000_000 } }), 400, "invalid_value", "free"),
            // The first field that breaks a rule is reported, also if another one breaks its own.
            (json!({ "free": { "$inc": 2_000_000_000 }, "n": { "$inc": 2 } }), 400, "CONSTRAINT_VIOLATION", "n"),
            (json!({ "code": "taken", "n": { "$inc": 1 } }), 409, "unique_violation", "code"),
            (json!({ "team_id": "20000000-0000-4000-8000-000000000000" }), 409, "foreign_key_violation", "team_id"),
        ] {
            let refused = admin.patch(&path, body.clone()).await;
            assert_eq!(refused.expect_error(status, code)["field"], field, "{body}");
            assert_eq!(admin.get(&path).await.data(), before, "{body}");
        }
        assert_eq!(admin.outbox("tally").await.len(), events);
        assert_eq!(admin.patch(&path, json!({ "n": { "$inc": 1 } })).await.data()["n"], 1000);
    }

    async fn a_write_refuses_parameters_that_it_does_not_know(server: Server) {
        let admin = server.admin().await;
        define(&admin).await;
        admin.relate(json!({ "name": "rivals", "kind": "many_to_many", "source": "tally", "target": "team" })).await;
        let team = admin.make("team", json!({ "name": "one" })).await;
        let id = admin.make("tally", json!({ "n": 1, "code": "a" })).await;
        let (all, one) = ("/api/v1/data/tally", format!("/api/v1/data/tally/{id}"));
        let (links, ids) = (format!("{one}/links/rivals"), json!({ "ids": [team] }));
        let state = async || admin.get(&format!("{one}?expand=rivals")).await.data();
        let before = state().await;
        let operations = json!([{ "op": "update", "object": "tally", "id": id, "values": { "n": 2 } }]);
        for (method, path, known, body) in [
            ("POST", all, "expand=team", Some(json!({ "n": 2 }))),
            ("POST", all, "on_conflict=code&expand=team", Some(json!({ "n": 2, "code": "a" }))),
            ("PATCH", one.as_str(), "expand=team", Some(json!({ "n": 2 }))),
            ("DELETE", one.as_str(), "", None),
            ("POST", links.as_str(), "", Some(ids.clone())),
            ("DELETE", links.as_str(), "", Some(ids)),
            ("POST", "/api/v1/batch", "", Some(json!({ "operations": operations }))),
        ] {
            for name in ["dryRun", "onConflict", "ifVersion", "if-match", "where", "n", "select"] {
                let path = format!("{path}?{known}&{name}=true");
                // The server does not read the body before.
                let unreadable = admin.request(method, &path).header("content-type", "text/plain").body("no JSON");
                let readable = server.call_as(Some(&admin.token), method, &path, body.clone()).await;
                for refused in [readable, server.send(unreadable).await] {
                    let error = refused.expect_error(400, "invalid_request");
                    assert_eq!(error["field"], name, "{method} {path}: {error}");
                    let message = error["message"].as_str().unwrap();
                    assert!(message.starts_with(&format!("There is no parameter `{name}` here. ")), "{method} {path}: {message}");
                    let names_one = message.ends_with(" The only parameter is `expand`.");
                    assert_eq!(names_one, method == "PATCH", "{method} {path}: {message}");
                }
            }
        }
        assert_eq!(state().await, before);
        assert_eq!(admin.get(all).await.json()["pagination"]["totalCount"], 1);
        assert_eq!(admin.outbox("tally").await.len(), 1);
    }
}

on_both_engines! {
    async fn an_update_is_one_statement_on_a_network(engine: Engine) {
        let server = ServerBuilder::new(engine).env("SVC_LOG", "info,blockbase_store::sql=trace").start().await;
        let admin = server.admin().await;
        define(&admin).await;
        let path = format!("/api/v1/data/tally/{}", admin.make("tally", json!({ "n": 0 })).await);
        for body in [json!({ "n": { "$inc": 1 } }), json!({ "n": 7, "team_id": null })] {
            assert_eq!(admin.patch(&path, body).await.status, 200);
        }
        let mark = "after-the-updates";
        server.send(admin.request("GET", "/api/v1/me").header("x-request-id", mark)).await;
        let log = server.log_with(mark).await;
        // Quotes are escaped in the log.
        let updates: Vec<&str> = log.lines().filter(|line| line.contains(r#"UPDATE \"tally\""#)).collect();
        let locks = log.lines().filter(|line| line.contains("FOR UPDATE") && line.contains(r#"FROM \"tally\""#)).count();
        // On SQLite, a statement is no round trip, and there are no locks.
        let at_once = updates.iter().filter(|line| line.contains("FOR UPDATE")).count();
        assert_eq!((updates.len(), at_once, locks), if engine == Engine::Postgres { (2, 2, 2) } else { (2, 0, 0) });
    }
}

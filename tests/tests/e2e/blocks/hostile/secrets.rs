//! Secrets: a block gets only secrets that were granted and set, and nobody else gets a secret.

use blockbase_tests::{Engine, on_both_engines};
use serde_json::json;

use super::{call, good, install};

/// Only the block may ever show this value.
const VALUE: &str = "sk_live_8f3b0c52e1d94a77";

/// Whether a file below a directory contains the bytes.
fn holds(directory: &std::path::Path, bytes: &[u8]) -> bool {
    std::fs::read_dir(directory).unwrap().map(|entry| entry.unwrap().path()).any(|path| match path.is_dir() {
        true => holds(&path, bytes),
        false => std::fs::read(&path).is_ok_and(|content| content.windows(bytes.len()).any(|window| window == bytes)),
    })
}

on_both_engines! {
    async fn a_block_reads_the_secrets_that_it_asked_for_and_no_others(server: Server) {
        let admin = server.admin().await;
        let asking = |names: serde_json::Value| json!({ "permissions": { "secrets": names } });
        install(&admin, "", asking(json!(["API_KEY", "UNSET"]))).await;
        let path = "/api/v1/blocks/hostile/secrets";
        let secret = async |name: &str| call(&admin, "secret", json!({ "name": name })).await;
        secret("API_KEY").await.expect_error(404, "not_found");
        admin.post(path, json!({ "name": "API_KEY", "value": VALUE })).await.data();
        assert_eq!(secret("API_KEY").await.data(), json!({ "length": VALUE.len(), "first": "s" }));
        secret("UNSET").await.expect_error(404, "not_found");
        secret("OTHER").await.expect_error(403, "forbidden");
        secret("SVC_SECRET").await.expect_error(403, "forbidden");
        assert_eq!(admin.post(path, json!({ "name": "OTHER", "value": "x" })).await.expect_error(400, "invalid_value")["field"], "name");
        admin.post(path, json!({ "name": "API_KEY", "value": "a\0b" })).await.expect_error(400, "invalid_request");
        for value in ["", "x".repeat(64 * 1024 + 1).as_str()] {
            let refused = admin.post(path, json!({ "name": "API_KEY", "value": value })).await.expect_error(400, "invalid_value");
            assert_eq!(refused["field"], "value");
        }

        // Callers see only names and times, and only if they manage blocks.
        let mut shown = Vec::new();
        for place in [path, "/api/v1/blocks", "/api/v1/blocks/hostile", "/api/v1/blocks/hostile/logs"] {
            shown.push(admin.get(place).await.text);
        }
        let names = admin.get(path).await.data();
        assert_eq!((&names[0]["name"], &names[0]["isSet"], &names[1]["name"], &names[1]["isSet"]), (&json!("API_KEY"), &json!(true), &json!("UNSET"), &json!(false)));
        let other = server.with_token(server.sign_up("other").await);
        other.get(path).await.expect_error(403, "forbidden");
        other.post(path, json!({ "name": "API_KEY", "value": "mine" })).await.expect_error(403, "forbidden");
        other.delete(&format!("{path}/API_KEY")).await.expect_error(403, "forbidden");
        server.call("GET", path, None).await.expect_error(401, "unauthorized");
        shown.push(server.log());
        for (place, text) in shown.iter().enumerate() {
            assert!(!text.contains(VALUE), "{place}");
        }
        // The secret is not stored in clear text: not in a row, not in a file, not in the events.
        let rows = match server.engine() {
            Engine::Sqlite => Vec::new(),
            Engine::Postgres => {
                let everything = "SELECT query_to_xml('SELECT t::text AS row FROM ' || quote_ident(tablename) || ' t', true, false, '')::text FROM pg_tables WHERE schemaname = 'public'";
                server.sql(everything).await
            }
        };
        assert_eq!(rows.is_empty(), server.engine() == Engine::Sqlite);
        assert!(!rows.concat().iter().any(|table| table.contains(VALUE) || table.contains(&hexadecimal(VALUE))));
        assert!(!holds(&server.directory(), VALUE.as_bytes()));
        assert_eq!(server.sql("SELECT name FROM svc_block_secrets").await, [["API_KEY"]]);

        // Another block with a secret of the same name has its own value.
        install(&admin, "", json!({ "name": "neighbour", "permissions": { "secrets": ["API_KEY"] } })).await;
        admin.post("/api/v1/blocks/neighbour/actions/secret", json!({ "name": "API_KEY" })).await.expect_error(404, "not_found");

        // The secret survives a restart and an upgrade. A version that does not ask for it cannot read it.
        let token = admin.token.clone();
        let server = server.restart().await;
        let admin = server.with_token(token);
        let secret = async |name: &str| call(&admin, "secret", json!({ "name": name })).await;
        assert_eq!(secret("API_KEY").await.data()["length"], VALUE.len());
        install(&admin, "?upgrade=true", json!({ "version": "0.2.0", "permissions": { "secrets": [] } })).await;
        secret("API_KEY").await.expect_error(403, "forbidden");
        // The server keeps the secret for a version that may ask for it again. Callers who manage secrets see that it exists.
        assert_eq!(admin.get(path).await.data()[0]["name"], "API_KEY");
        let again = "?upgrade=true&allowNewPermissions=true";
        install(&admin, again, json!({ "version": "0.3.0", "permissions": { "secrets": ["API_KEY"] } })).await;
        assert_eq!(secret("API_KEY").await.data()["first"], "s");
        admin.post(path, json!({ "name": "API_KEY", "value": "another" })).await.data();
        assert_eq!(secret("API_KEY").await.data(), json!({ "length": 7, "first": "a" }));
        assert_eq!(admin.delete(&format!("{path}/API_KEY")).await.status, 204);
        secret("API_KEY").await.expect_error(404, "not_found");
        admin.delete(&format!("{path}/API_KEY")).await.expect_error(404, "not_found");
        assert_eq!(server.sql("SELECT name FROM svc_block_secrets").await.len(), 0);
        good(&admin).await;
    }
}

/// The bytes in hexadecimal, as Postgres shows them.
fn hexadecimal(text: &str) -> String {
    text.bytes().map(|byte| format!("{byte:02x}")).collect()
}

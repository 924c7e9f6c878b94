//! A server on a fresh database, its admin, and users with the rights of a role.

use std::path::Path;

use serde_json::{Value, json};
use tokio::net::TcpStream;

use crate::cluster::Cluster;
use crate::events::Database;
use crate::load::{exchange, request};
use crate::server::{Process, blockbase};
use crate::side::Side;

const DATABASE: &str = "shares";
/// A proxy on this machine names the client's address, so that one machine can act as several addresses.
const ENVIRONMENT: [(&str, &str); 2] = [("SVC_TRUSTED_PROXIES", "127.0.0.1"), ("SVC_ALLOW_PRIVATE_NETWORK", "true")];

pub(super) struct Subject<'a> {
    pub(super) process: Process,
    pub(super) admin: Side,
    directory: tempfile::TempDir,
    cluster: Option<&'a Cluster>,
}

impl<'a> Subject<'a> {
    pub(super) async fn start(binary: &Path, cluster: Option<&'a Cluster>) -> Subject<'a> {
        let directory = tempfile::tempdir().unwrap();
        let url = match cluster {
            Some(cluster) => Some(cluster.new_database(DATABASE).await),
            None => None,
        };
        let process = blockbase(binary, directory.path(), url.as_deref(), &ENVIRONMENT);
        let admin = Side::blockbase(&process.address, None).await;
        Subject { process, admin, directory, cluster }
    }

    pub(super) async fn end(self) {
        drop(self.process);
        if let Some(cluster) = self.cluster {
            cluster.drop_database(DATABASE).await;
        }
    }

    /// A user with these grants, and the user's id.
    pub(super) async fn user(&self, name: &str, permissions: Value) -> (Side, String) {
        let role = self.admin.post("/api/v1/roles", &json!({ "name": name, "permissions": permissions })).await;
        let account = json!({ "name": name, "email": format!("{name}@example.com"), "password": "correct horse battery" });
        let signed = Side { token: None, ..self.admin.clone() }.post("/api/auth/sign-up/email", &account).await;
        let id = signed["user"]["id"].as_str().unwrap().to_owned();
        self.admin.post(&format!("/api/v1/users/{id}/roles"), &json!({ "roleId": role["data"]["id"] })).await;
        (Side { token: Some(signed["token"].as_str().unwrap().to_owned()), ..self.admin.clone() }, id)
    }

    /// Creates an object `doc` with `count` records, each with a text of this many bytes. Returns their ids.
    pub(super) async fn docs(&self, count: usize, bytes: usize) -> Vec<Value> {
        let fields = json!([{ "name": "body", "type": "text" }, { "name": "n", "type": "integer" }]);
        self.admin.post("/api/v1/objects", &json!({ "name": "doc", "fields": fields })).await;
        let body = "x".repeat(bytes);
        let at_once = (8_000_000 / bytes).clamp(1, 100);
        let mut ids = Vec::new();
        while ids.len() < count {
            let records = vec![json!({ "body": body, "n": 0 }); at_once.min(count - ids.len())];
            let made = self.admin.post("/api/v1/data/doc/bulk", &json!({ "data": records })).await;
            ids.extend(made["ids"].as_array().unwrap().iter().cloned());
        }
        ids
    }

    /// Sets the grants of everybody.
    pub(super) async fn everybody_may(&self, permissions: Value) {
        let change = json!({ "permissions": permissions }).to_string();
        self.admin.send(&request("PATCH", "/api/v1/roles/public", self.admin.token.as_deref(), Some(&change))).await;
    }

    /// The text of the response to a request.
    pub(super) async fn text_of(&self, request: &[u8]) -> String {
        let mut stream = TcpStream::connect(&self.admin.address).await.unwrap();
        let mut buffer = Vec::new();
        let (status, body) = exchange(&mut stream, request, &mut buffer).await;
        assert!((200..300).contains(&status), "{}", String::from_utf8_lossy(&buffer));
        String::from_utf8_lossy(&buffer[body]).into_owned()
    }

    /// Another connection to the server's database.
    pub(super) async fn database(&self) -> Database {
        match self.cluster {
            Some(cluster) => Database::Postgres(cluster.connect(DATABASE).await),
            None => Database::file(&self.directory.path().join("svc-data/svc.db")),
        }
    }
}

//! One side of the comparison: its address, the form of its paths, and its data.

use std::path::Path;
use std::sync::Arc;

use serde_json::{Value, json};
use tokio::net::TcpStream;
use uuid::Uuid;

use crate::load::{exchange, request};

#[derive(Clone)]
pub(crate) struct Side {
    pub(crate) address: String,
    pub(crate) token: Option<String>,
    pub(crate) items: &'static str,
    pub(crate) projects: &'static str,
    pub(crate) echo: &'static str,
    /// The ids of the rows that exist from the beginning, in the order of their numbers.
    pub(crate) ids: Arc<Vec<Uuid>>,
    pub(crate) project_ids: Arc<Vec<Uuid>>,
}

impl Side {
    pub(crate) fn floor(address: &str) -> Side {
        Side {
            address: address.to_owned(),
            token: None,
            items: "/items",
            projects: "/projects",
            echo: "/echo",
            ids: Arc::default(),
            project_ids: Arc::default(),
        }
    }

    /// Prepares a server: an account, the objects, and the block if one is given.
    pub(crate) async fn blockbase(address: &str, block: Option<&Path>) -> Side {
        let mut side = Side {
            address: address.to_owned(),
            token: None,
            items: "/api/v1/data/task",
            projects: "/api/v1/data/project",
            echo: "/api/v1/blocks/echo/actions/echo",
            ids: Arc::default(),
            project_ids: Arc::default(),
        };
        let account = json!({ "name": "bench", "email": "bench@example.com", "password": "correct horse" });
        let signed = side.post("/api/auth/sign-up/email", &account).await;
        side.token = Some(signed["token"].as_str().unwrap().to_owned());
        let project = json!({ "name": "project", "fields": [{ "name": "name", "type": "text", "required": true }] });
        side.post("/api/v1/objects", &project).await;
        let task = json!({ "name": "task", "fields": [
            { "name": "title", "type": "text", "required": true },
            { "name": "done", "type": "boolean", "default": false },
            { "name": "priority", "type": "integer", "indexed": true, "min": 0 },
            { "name": "code", "type": "text", "isUnique": true },
        ] });
        side.post("/api/v1/objects", &task).await;
        let relationship = json!({ "name": "project", "kind": "many_to_one", "source": "task", "target": "project" });
        side.post("/api/v1/relationships", &relationship).await;
        if let Some(block) = block {
            side.install(block).await;
        }
        side
    }

    /// Posts a document, and returns the document of the response.
    pub(crate) async fn post(&self, path: &str, body: &Value) -> Value {
        self.send(&request("POST", path, self.token.as_deref(), Some(&body.to_string()))).await
    }

    /// Installs a packed block.
    pub(crate) async fn install(&self, block: &Path) {
        let file = std::fs::read(block)
            .unwrap_or_else(|error| panic!("{}: {error}; blockbase block build makes a packed block", block.display()));
        let mut upload = format!(
            "POST /api/v1/blocks HTTP/1.1\r\nhost: 127.0.0.1\r\nauthorization: Bearer {}\r\ncontent-type: application/wasm\r\ncontent-length: {}\r\n\r\n",
            self.token.as_deref().unwrap(),
            file.len()
        )
        .into_bytes();
        upload.extend_from_slice(&file);
        self.send(&upload).await;
    }

    /// Sends a request and returns the document of the response.
    pub(crate) async fn send(&self, bytes: &[u8]) -> Value {
        let mut stream = TcpStream::connect(&self.address).await.unwrap();
        let mut buffer = Vec::new();
        let (status, range) = exchange(&mut stream, bytes, &mut buffer).await;
        assert!((200..300).contains(&status), "{}", String::from_utf8_lossy(&buffer));
        serde_json::from_slice(&buffer[range]).unwrap_or_default()
    }
}

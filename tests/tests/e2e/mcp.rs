//! MCP: the operations of REST as tools, with the caller's permissions.

mod changes;
mod clients;
mod lists;
mod malformed;
mod permissions;
mod sessions;
mod taken_names;
mod tools;

use std::time::{Duration, Instant};

use blockbase_tests::{Admin, Answer, Server};
use serde::Deserialize;
use serde_json::value::RawValue;
use serde_json::{Value, json};

const PATH: &str = "/api/v1/mcp";
const BOTH: &str = "application/json, text/event-stream";

/// A minimal client of the protocol.
#[derive(Clone)]
pub(crate) struct Client<'a> {
    pub(crate) server: &'a Server,
    pub(crate) credential: Option<String>,
    pub(crate) session: Option<String>,
}

/// The result of a tool: its text, and the same document as structured content, both with their raw bytes.
pub(crate) struct Called {
    pub(crate) text: String,
    pub(crate) is_error: bool,
    pub(crate) structured: Option<String>,
}

impl Called {
    #[track_caller]
    fn document(&self) -> Value {
        assert!(!self.is_error, "{}", self.text);
        assert_eq!(self.structured.as_deref(), Some(self.text.as_str()), "both forms are one document, byte for byte");
        serde_json::from_str(&self.text).unwrap()
    }

    #[track_caller]
    fn expect_error(&self, code: &str) -> Value {
        let envelope: Value = serde_json::from_str(&self.text).unwrap_or_else(|_| panic!("{}", self.text));
        assert!(self.is_error && self.structured.is_none(), "{}", self.text);
        assert_eq!(envelope["error"], code, "{}", self.text);
        envelope
    }
}

impl<'a> Client<'a> {
    pub(crate) fn of(who: &Admin<'a>) -> Client<'a> {
        Client { server: who.server, credential: Some(who.token.clone()), session: None }
    }

    fn nobody(server: &'a Server) -> Client<'a> {
        Client { server, credential: None, session: None }
    }

    fn request(&self, method: &str) -> reqwest::RequestBuilder {
        let mut request = self.server.request(method, PATH).header("accept", BOTH);
        if let Some(credential) = &self.credential {
            request = request.bearer_auth(credential);
        }
        if let Some(session) = &self.session {
            request = request.header("mcp-session-id", session);
        }
        request
    }

    pub(crate) async fn send(&self, body: impl Into<reqwest::Body>) -> Answer {
        self.server.send(self.request("POST").header("content-type", "application/json").body(body)).await
    }

    async fn ask(&self, method: &str, params: Value) -> Answer {
        self.send(json!({ "jsonrpc": "2.0", "id": 1, "method": method, "params": params }).to_string()).await
    }

    /// Begins a session.
    pub(crate) async fn begin(mut self) -> Client<'a> {
        let answer = self.ask("initialize", initialization()).await;
        assert_eq!(answer.status, 200, "{}", answer.text);
        self.session = Some(answer.headers["mcp-session-id"].to_str().unwrap().to_owned());
        let noted = self.send(r#"{"jsonrpc":"2.0","method":"notifications/initialized"}"#).await;
        assert_eq!(noted.status, 202, "{}", noted.text);
        self
    }

    /// Opens the stream of the session.
    async fn listen(&self) -> Stream {
        let response = self.request("GET").timeout(Duration::from_secs(600)).send().await.unwrap();
        assert_eq!(response.status(), 200);
        assert_eq!(response.headers()["content-type"], "text/event-stream");
        let mut stream = Stream { response, read: String::new() };
        stream.until(": open").await;
        stream
    }

    async fn tools(&self) -> Vec<Value> {
        let answer = self.ask("tools/list", json!({})).await;
        answer.json()["result"]["tools"].as_array().unwrap_or_else(|| panic!("{}", answer.text)).clone()
    }

    async fn tool_names(&self) -> Vec<String> {
        self.tools().await.iter().map(|tool| tool["name"].as_str().unwrap().to_owned()).collect()
    }

    /// Calls a tool. `arguments` are JSON text.
    pub(crate) async fn call_text(&self, tool: &str, arguments: &str) -> Called {
        let answer = self.send(call(tool, arguments)).await;
        assert_eq!(answer.status, 200, "{}", answer.text);
        read_result(&answer.text)
    }

    pub(crate) async fn call(&self, tool: &str, arguments: Value) -> Called {
        self.call_text(tool, &arguments.to_string()).await
    }
}

fn initialization() -> Value {
    json!({ "protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": { "name": "test", "version": "1" } })
}

pub(crate) fn call(tool: &str, arguments: &str) -> String {
    format!(r#"{{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{{"name":"{tool}","arguments":{arguments}}}}}"#)
}

pub(crate) fn read_result(text: &str) -> Called {
    #[derive(Deserialize)]
    struct Answered<'a> {
        #[serde(borrow)]
        result: Content<'a>,
    }
    #[derive(Deserialize)]
    #[serde(rename_all = "camelCase")]
    struct Content<'a> {
        content: Vec<Value>,
        #[serde(borrow)]
        structured_content: Option<&'a RawValue>,
        is_error: bool,
    }
    let Answered { result } = serde_json::from_str(text).unwrap_or_else(|error| panic!("{error}: {text}"));
    assert_eq!((result.content.len(), &result.content[0]["type"]), (1, &json!("text")), "{text}");
    let structured = result.structured_content.map(|raw| raw.get().to_owned());
    Called { text: result.content[0]["text"].as_str().unwrap().to_owned(), is_error: result.is_error, structured }
}

/// An open stream.
struct Stream {
    response: reqwest::Response,
    read: String,
}

impl Stream {
    /// Reads until `part` has arrived, and drops the text up to there.
    async fn until(&mut self, part: &str) {
        let reading = async {
            loop {
                if let Some(place) = self.read.find(part) {
                    self.read.drain(..place + part.len());
                    return;
                }
                let chunk = self.response.chunk().await.unwrap().expect("the stream goes on");
                self.read.push_str(&String::from_utf8_lossy(&chunk));
            }
        };
        tokio::time::timeout(blockbase_tests::WAIT_MAX, reading).await.unwrap_or_else(|_| panic!("no {part} came"));
    }

    async fn list_changed(&mut self) {
        self.until("notifications/tools/list_changed").await;
    }

    /// Asserts that the stream sends only comments during this time.
    async fn stays_quiet(&mut self, during: Duration) {
        let deadline = Instant::now() + during;
        while let Ok(chunk) =
            tokio::time::timeout(deadline.saturating_duration_since(Instant::now()), self.response.chunk()).await
        {
            self.read.push_str(&String::from_utf8_lossy(&chunk.unwrap().expect("the stream goes on")));
            assert!(!self.read.contains("data:"), "{}", self.read);
        }
        assert!(!self.read.contains("data:"), "{}", self.read);
    }

    async fn ends(&mut self) {
        let reading = async { while matches!(self.response.chunk().await, Ok(Some(_))) {} };
        tokio::time::timeout(blockbase_tests::WAIT_MAX, reading).await.expect("an end of the stream");
    }
}

/// A new user with these grants.
pub(crate) async fn user_with<'a>(admin: &Admin<'a>, name: &str, permissions: Value) -> Admin<'a> {
    let user = admin.server.with_token(admin.server.sign_up(name).await);
    let id = user.get("/api/v1/me").await.json()["userId"].as_str().unwrap().to_owned();
    let role = admin.post("/api/v1/roles", json!({ "name": name, "permissions": permissions })).await;
    assert_eq!(role.status, 201, "{}", role.text);
    let given = admin.post(&format!("/api/v1/users/{id}/roles"), json!({ "roleId": name })).await;
    assert_eq!(given.status, 200, "{}", given.text);
    user
}

/// Defines tasks with an owner and labels. Their numbers have more digits than a double can hold.
async fn make_schema(admin: &Admin<'_>) {
    let fields = json!([
        { "name": "title", "type": "text", "required": true },
        { "name": "code", "type": "slug", "isUnique": true },
        { "name": "exact", "type": "decimal" },
        { "name": "large", "type": "big_integer" },
        { "name": "count", "type": "integer", "min": 0 },
        { "name": "notes", "type": "json" },
    ]);
    admin.define("task", fields).await;
    admin.define("person", json!([{ "name": "name", "type": "text" }])).await;
    admin.define("label", json!([{ "name": "name", "type": "text" }])).await;
    admin.relate(json!({ "name": "owner", "kind": "many_to_one", "source": "task", "target": "person" })).await;
    admin.relate(json!({ "name": "labels", "kind": "many_to_many", "source": "task", "target": "label" })).await;
}

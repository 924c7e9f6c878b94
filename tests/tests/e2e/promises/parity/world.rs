//! A server whose records are changed by only one surface. It has a name for each id, and a step for each instant.

use std::collections::HashMap;
use std::time::SystemTime;

use blockbase_tests::{Admin, Engine, Server, ServerBuilder, test_block};
use chrono::{DateTime, SecondsFormat, Utc};
use serde_json::{Value, json};

use super::operation::Operation;
use super::outcome::{Outcome, Refusal, exact, member};
use super::{block, graphql, rest, schema, tools};
use crate::mcp::{Client, read_result};

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Surface {
    Rest,
    Graphql,
    Mcp,
    Block,
}

pub(super) const SURFACES: [Surface; 4] = [Surface::Rest, Surface::Graphql, Surface::Mcp, Surface::Block];

/// The answer of a surface, before its ids and instants are masked.
#[derive(Clone, Debug)]
pub(super) enum Answer {
    /// The document of REST. It is `null` if REST's response has no body.
    Done(String),
    Refused(Refusal),
    Unsent,
}

pub(super) struct World {
    pub(super) surface: Surface,
    pub(super) server: Server,
    /// The names and the credentials of the callers. The admin is the first, and the anonymous caller the last.
    pub(super) callers: Vec<(&'static str, Option<String>)>,
    /// The ids of the records in the order of their creation. The index is the record's number.
    ids: Vec<String>,
    /// The name of each id.
    names: HashMap<String, String>,
    /// The beginning of each step. Instants are compared by the step during which they occur.
    steps: Vec<String>,
}

fn now() -> String {
    DateTime::<Utc>::from(SystemTime::now()).to_rfc3339_opts(SecondsFormat::Millis, true)
}

impl World {
    pub(super) async fn new(engine: Engine, surface: Surface) -> World {
        let server = ServerBuilder::new(engine).start().await;
        let mut world = World { surface, server, callers: Vec::new(), ids: Vec::new(), names: HashMap::new(), steps: Vec::new() };
        let token = world.server.sign_up("admin").await;
        world.callers.push(("admin", Some(token)));
        for (path, definition) in schema::definitions() {
            let made = world.admin().post(path, definition).await;
            assert_eq!(made.status, 201, "{}", made.text);
        }
        let installed = world.admin().install("", test_block("parity").await).await;
        assert_eq!(installed.status, 201, "{}", installed.text);
        let token = world.admin().token;
        world.name_user("admin", &token).await;
        for (name, grants) in schema::roles() {
            world.make_caller(name, grants).await;
        }
        let public = json!({ "permissions": schema::everybody() });
        assert_eq!(world.admin().patch("/api/v1/roles/public", public).await.status, 200);
        world.callers.push(("nobody", None));
        world
    }

    pub(super) fn admin(&self) -> Admin<'_> {
        self.server.with_token(self.callers[0].1.clone().unwrap())
    }

    /// Remembers the user of a session, and returns their id.
    async fn name_user(&mut self, name: &str, token: &str) -> String {
        let me = self.server.with_token(token.to_owned()).get("/api/v1/me").await.json();
        let user = me["userId"].as_str().unwrap().to_owned();
        self.names.insert(user.clone(), format!("<{name}>"));
        user
    }

    /// Makes a user with their own role. One of them uses an API key, the others use sessions.
    async fn make_caller(&mut self, name: &'static str, mut grants: Vec<Value>) {
        grants.push(json!({ "resource": "data", "actions": ["read"] }));
        grants.push(json!({ "resource": "parity:run", "actions": ["read"] }));
        let role = self.admin().post("/api/v1/roles", json!({ "name": name, "permissions": grants })).await;
        assert_eq!(role.status, 201, "{}", role.text);
        let token = self.server.sign_up(name).await;
        let user = self.name_user(name, &token).await;
        let given = self.admin().post(&format!("/api/v1/users/{user}/roles"), json!({ "roleId": name })).await;
        assert_eq!(given.status, 200, "{}", given.text);
        if name != "creator" {
            return self.callers.push((name, Some(token)));
        }
        let made = json!({ "name": name, "roleId": name, "userId": user });
        let made = self.admin().post("/api/v1/api-keys", made).await.json();
        let text = |value: &Value| value.as_str().unwrap().to_owned();
        self.names.insert(text(&made["data"]["id"]), format!("<the key of {name}>"));
        self.callers.push((name, Some(text(&made["key"]))));
    }

    /// Deletes every record, so that a seed begins with no records, and forgets their ids.
    pub(super) async fn empty(&mut self) {
        for object in schema::OBJECTS.iter().rev() {
            loop {
                let path = format!("/api/v1/data/{object}");
                let rows = self.admin().get(&format!("{path}?limit=100&select=id")).await.json()["data"].take();
                let ids: Vec<&Value> = rows.as_array().unwrap().iter().map(|row| &row["id"]).collect();
                if ids.is_empty() {
                    break;
                }
                let deleted = self.admin().delete_with(&format!("{path}/bulk"), json!({ "ids": ids })).await;
                assert_eq!(deleted.status, 200, "{}", deleted.text);
            }
        }
        self.ids.clear();
        self.names.retain(|_, name| name.starts_with('<'));
        self.steps = vec![now()];
    }

    /// Begins a step. Later instants belong to it.
    pub(super) fn begin_step(&mut self) {
        self.steps.push(now());
    }

    /// Replaces numbers with this world's ids.
    pub(super) fn filled(&self, text: &str) -> String {
        let mut parts = text.split('#');
        let mut out = parts.next().unwrap_or_default().to_owned();
        // In texts, `#` only encloses numbers.
        while let (Some(number), Some(rest)) = (parts.next(), parts.next()) {
            out.push_str(&self.ids[number.parse::<usize>().unwrap()]);
            out.push_str(rest);
        }
        out
    }

    /// Gives a new record its name.
    pub(super) fn name_record(&mut self, id: String) {
        self.names.insert(id.clone(), format!("#{}#", self.ids.len()));
        self.ids.push(id);
    }

    /// Runs an operation with this world's surface, or with REST instead.
    pub(super) async fn run(&self, caller: usize, operation: &Operation, surface: Surface) -> Answer {
        let credential = self.callers[caller].1.as_deref();
        match surface {
            Surface::Rest => self.run_rest(credential, operation).await,
            Surface::Graphql => self.run_graphql(credential, operation).await,
            Surface::Mcp => self.run_mcp(credential, operation).await,
            Surface::Block => self.run_block(credential, operation).await,
        }
    }

    fn request(&self, credential: Option<&str>, method: &str, path: &str) -> reqwest::RequestBuilder {
        let builder = self.server.request(method, path);
        match credential {
            Some(credential) => builder.bearer_auth(credential),
            None => builder,
        }
    }

    async fn run_rest(&self, credential: Option<&str>, operation: &Operation) -> Answer {
        let request = rest::request(operation, |text| self.filled(text));
        let mut builder = self.request(credential, request.method, &request.path);
        if let Some(body) = request.body {
            builder = builder.header("content-type", "application/json").body(self.filled(&body));
        }
        let answer = self.server.send(builder).await;
        match answer.status {
            200..300 if answer.text.is_empty() => Answer::Done("null".to_owned()),
            200..300 => Answer::Done(answer.text),
            _ => Answer::Refused(Refusal::of_envelope(&answer.text)),
        }
    }

    async fn run_graphql(&self, credential: Option<&str>, operation: &Operation) -> Answer {
        let request = graphql::request(operation);
        let body =
            format!("{{\"query\":{},\"variables\":{}}}", Value::from(request.document), self.filled(&request.variables.json()));
        let builder = self.request(credential, "POST", crate::graphql::PATH);
        let answer = self.server.send(builder.header("content-type", "application/json").body(body)).await;
        if let Some(error) = answer.json()["errors"].get(0) {
            let extensions = &error["extensions"];
            let refusal = Refusal::new(&extensions["code"], &error["message"], &extensions["field"]);
            return Answer::Refused(Refusal { is_of_document: error["path"].is_null(), ..refusal });
        }
        let value = member(&member(&answer.text, "data").unwrap(), "root").unwrap_or_else(|| panic!("{}", answer.text));
        graphql::document(operation, &value)
    }

    async fn run_mcp(&self, credential: Option<&str>, operation: &Operation) -> Answer {
        let (tool, arguments) = tools::call(operation);
        let client = Client { server: &self.server, credential: credential.map(str::to_owned), session: None };
        let answer = client.send(crate::mcp::call(tool, &self.filled(&arguments.json()))).await;
        if answer.status == 401 {
            // If the HTTP status reports the error, the body also contains the envelope.
            return Answer::Refused(Refusal::of_envelope(&answer.json()["error"]["data"].to_string()));
        }
        assert_eq!(answer.status, 200, "{}", answer.text);
        let called = read_result(&answer.text);
        match called.is_error {
            true => Answer::Refused(Refusal::of_envelope(&called.text)),
            false => {
                assert_eq!(called.structured.as_deref(), Some(called.text.as_str()));
                Answer::Done(tools::document(operation, called.text))
            }
        }
    }

    async fn run_block(&self, credential: Option<&str>, operation: &Operation) -> Answer {
        let input = block::input(operation, |text| self.filled(text));
        let answer = self.server.call_as(credential, "POST", "/api/v1/blocks/parity/actions/run", Some(input)).await;
        assert_eq!(answer.status, 200, "{}", answer.text);
        let outcome = member(&answer.text, "data").unwrap();
        if let Some(refused) = member(&outcome, "refused") {
            let refused: Value = serde_json::from_str(&refused).unwrap();
            return Answer::Refused(Refusal::new(&refused["code"], &refused["message"], &refused["details"]["field"]));
        }
        block::document(operation, &member(&outcome, "done").unwrap())
    }

    /// The answer with names instead of ids, and with steps instead of instants.
    pub(super) fn masked(&self, answer: &Answer) -> Outcome {
        match answer {
            Answer::Done(text) => Outcome::Done(exact(&self.mask(text))),
            Answer::Refused(refusal) => Outcome::Refused(Refusal { message: self.mask(&refusal.message), ..refusal.clone() }),
            Answer::Unsent => Outcome::Unsent,
        }
    }

    pub(super) fn mask(&self, text: &str) -> String {
        const ID: &str = "01xxxxxx-xxxx-7xxx-xxxx-xxxxxxxxxxxx";
        const INSTANT: &str = "2099-99-99T99:99:99.999Z";
        let (mut out, mut rest) = (String::with_capacity(text.len()), text);
        while let Some(first) = rest.chars().next() {
            let taken = if crate::promises::normalize::fits(rest.as_bytes(), ID) {
                let id = &rest[..ID.len()];
                out.push_str(self.names.get(id).unwrap_or_else(|| panic!("nobody knows the id {id} in {text}")));
                ID.len()
            } else if crate::promises::normalize::fits(rest.as_bytes(), INSTANT) && !rest.starts_with("2001") {
                let instant = &rest[..INSTANT.len()];
                let step = self.steps.partition_point(|begun| begun.as_str() <= instant);
                out.push_str(&format!("<in step {step}>"));
                INSTANT.len()
            } else {
                out.push(first);
                first.len_utf8()
            };
            rest = &rest[taken..];
        }
        out
    }

    /// All records, as the admin sees them by REST.
    pub(super) async fn records(&self) -> Vec<(&'static str, Value)> {
        let mut all = Vec::new();
        for object in schema::OBJECTS {
            let expand = if object == schema::PERSON { "" } else { "&expand=labels" };
            for page in 1.. {
                let path = format!("/api/v1/data/{object}?sort=id&pageSize=100&page={page}{expand}");
                let answer = self.admin().get(&path).await;
                assert_eq!(answer.status, 200, "{}", answer.text);
                all.push((object, exact(&self.mask(&answer.text))));
                if !answer.json()["pagination"]["hasNextPage"].as_bool().unwrap() {
                    break;
                }
            }
        }
        all
    }

    /// The number of the outbox's latest event.
    pub(super) async fn latest_event(&self) -> String {
        self.server.sql("SELECT CAST(coalesce(max(seq), 0) AS TEXT) FROM svc_events").await[0][0].clone()
    }

    /// The events of records after that event: their columns, and their payloads with the actor.
    pub(super) async fn events_after(&self, seq: &str) -> Vec<(String, String, Value)> {
        let columns = "topic, object, record_id, owner, CAST(depth AS TEXT), payload";
        let sql = format!("SELECT {columns} FROM svc_events WHERE seq > {seq} AND topic LIKE 'data.%' ORDER BY seq");
        let rows = self.server.sql(&sql).await;
        let place = |row: &Vec<String>| self.mask(&row[1..5].join(" "));
        rows.iter().map(|row| (row[0].clone(), place(row), exact(&self.mask(&row[5])))).collect()
    }
}

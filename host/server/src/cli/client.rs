//! The server's API for commands: one address, one credential, and errors with advice for the user.

use std::time::Duration;

use blockbase_outbound::{AddressPolicy, Client, Failure, Request};
use bytes::Bytes;
use reqwest::Method;
use reqwest::header::{AUTHORIZATION, CONTENT_TYPE, HeaderMap, HeaderValue};
use serde_json::Value;
use tokio::runtime::Runtime;
use url::Url;

use super::Problem;
use super::terminal::inert;

const DEFAULT_URL: &str = "http://127.0.0.1:4000";
/// The time limit of one call. The server compiles an upload during the call, and an action may take ten minutes.
const TIMEOUT: Duration = Duration::from_secs(660);
/// The maximum number of bytes of a response body that are read.
const ANSWER_BYTES_MAX: usize = 64 << 20;
/// The maximum number of characters that are shown of a response that is not from the API.
const FOREIGN_CHARS_MAX: usize = 200;

/// Which server, and as whom.
#[derive(clap::Args)]
pub(super) struct Connection {
    /// Address of the server
    #[arg(long, env = "SVC_URL", value_name = "URL", default_value = DEFAULT_URL, help_heading = "Connection")]
    url: String,
    /// API key or session token; the variable keeps it out of the machine's list of processes
    #[arg(long, env = "SVC_API_KEY", value_name = "KEY", hide_env_values = true, help_heading = "Connection")]
    key: Option<String>,
}

/// A runtime for commands, which do one thing after another. Meanwhile, its worker thread takes care of idle connections.
pub(super) fn runtime() -> Result<Runtime, Problem> {
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build();
    runtime.map_err(|error| Problem::Failed(format!("The async runtime cannot start: {error}.")))
}

/// The API of one server.
pub(super) struct Api {
    base: Url,
    authorization: Option<HeaderValue>,
    client: Client,
    runtime: Runtime,
}

impl Connection {
    /// Makes the client. It sends nothing yet.
    pub(super) fn open(&self) -> Result<Api, Problem> {
        // An empty variable counts as unset, as it does for the server.
        let url = if self.url.trim().is_empty() { DEFAULT_URL } else { self.url.trim() };
        let base = Url::parse(url).ok().filter(|url| matches!(url.scheme(), "http" | "https") && url.has_host());
        let base = base.ok_or_else(|| {
            Problem::Usage(format!("--url (or SVC_URL) needs an address like {DEFAULT_URL}; it is {:?}.", self.url))
        })?;
        let key = self.key.as_deref().map(str::trim).filter(|key| !key.is_empty());
        let authorization = match key.map(|key| HeaderValue::from_str(&format!("Bearer {key}"))) {
            None => None,
            Some(Ok(mut value)) => {
                value.set_sensitive(true);
                Some(value)
            }
            Some(Err(_)) => return Err(Problem::Usage("--key (or SVC_API_KEY) holds what no key can.".to_owned())),
        };
        // The user decides which address is called, so private addresses are allowed.
        let client = Client::new(AddressPolicy { allow_private: true })?;
        Ok(Api { base, authorization, client, runtime: runtime()? })
    }
}

/// The server's response.
pub(super) struct Reply {
    pub(super) status: u16,
    pub(super) body: Bytes,
    pub(super) url: Url,
    pub(super) identity: Identity,
}

/// The identity with which a request is sent.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Identity {
    Nobody,
    Key,
    /// The operator of the server, who needs no key.
    Operator,
}

impl Api {
    pub(super) fn get(&self, path: &[&str], query: &[(&str, &str)]) -> Result<Reply, Problem> {
        self.send(Method::GET, path, query, None)
    }

    pub(super) fn send_json(&self, method: Method, path: &[&str], body: &Value) -> Result<Reply, Problem> {
        self.send(method, path, &[], Some(("application/json", Bytes::from(body.to_string()))))
    }

    pub(super) fn upload(&self, file: &Bytes, query: &[(&str, &str)]) -> Result<Reply, Problem> {
        self.send(Method::POST, &["blocks"], query, Some(("application/wasm", file.clone())))
    }

    /// Describes a packed file. The server keeps the compiled file for a while, so an install that follows is fast.
    pub(super) fn inspect(&self, file: &Bytes) -> Result<Reply, Problem> {
        self.send(Method::POST, &["blocks", "inspect"], &[], Some(("application/wasm", file.clone())))
    }

    /// Calls `/api/v1/<path>`. A response with an error status counts as a success here.
    pub(super) fn send(
        &self,
        method: Method,
        path: &[&str],
        query: &[(&str, &str)],
        content: Option<(&'static str, Bytes)>,
    ) -> Result<Reply, Problem> {
        let mut url = self.base.clone();
        if let Ok(mut segments) = url.path_segments_mut() {
            segments.pop_if_empty().extend(["api", "v1"]).extend(path);
        }
        if !query.is_empty() {
            url.query_pairs_mut().extend_pairs(query);
        }
        let mut headers = HeaderMap::new();
        if let Some(authorization) = &self.authorization {
            headers.insert(AUTHORIZATION, authorization.clone());
        }
        let body = content.map(|(media_type, body)| {
            headers.insert(CONTENT_TYPE, HeaderValue::from_static(media_type));
            body
        });
        let request = Request {
            method,
            url: url.clone(),
            headers,
            body: body.unwrap_or_default(),
            timeout: TIMEOUT,
            answer_bytes_max: ANSWER_BYTES_MAX,
        };
        let answer = self.runtime.block_on(self.client.send(request)).map_err(|failure| self.unreachable(&failure))?;
        if answer.is_cut {
            return Err(Problem::Failed(format!("The answer has more than {ANSWER_BYTES_MAX} bytes.")));
        }
        let identity = if self.authorization.is_some() { Identity::Key } else { Identity::Nobody };
        Ok(Reply { status: answer.status, body: answer.body, url, identity })
    }

    fn unreachable(&self, failure: &Failure) -> Problem {
        let server = self.base.origin().ascii_serialization();
        Problem::Failed(match failure {
            Failure::Timeout(_) => format!("{server} did not answer: {failure}."),
            _ => format!(
                "{server} cannot be reached: {failure}. Is the server running (`blockbase serve`), and is --url or SVC_URL its address?"
            ),
        })
    }
}

impl Reply {
    pub(super) fn is_success(&self) -> bool {
        (200..300).contains(&self.status)
    }

    /// The stable code of an error response.
    pub(super) fn code(&self) -> Option<String> {
        let body: Value = serde_json::from_slice(&self.body).ok()?;
        Some(body.get("error")?.as_str()?.to_owned())
    }

    pub(super) fn json(&self) -> Result<Value, Problem> {
        serde_json::from_slice(&self.body).map_err(|_| self.foreign())
    }

    /// The body of a successful response.
    pub(super) fn expect(&self) -> Result<Value, Problem> {
        if self.is_success() { self.json() } else { Err(self.problem()) }
    }

    /// The `data` of a successful response.
    pub(super) fn data(&self) -> Result<Value, Problem> {
        match self.expect()? {
            Value::Object(mut body) if body.contains_key("data") => Ok(body.remove("data").unwrap_or_default()),
            _ => Err(self.foreign()),
        }
    }

    /// Makes the error: `code: message`, the details, and advice for the user.
    pub(super) fn problem(&self) -> Problem {
        let body: Value = serde_json::from_slice(&self.body).unwrap_or_default();
        let (Some(code), Some(message)) = (body["error"].as_str(), body["message"].as_str()) else { return self.foreign() };
        let mut text = format!("{}: {}", inert(code), inert(message));
        for issue in body["issues"].as_array().into_iter().flatten() {
            let path = issue["path"].as_str().or(issue["field"].as_str()).filter(|path| !path.is_empty()).unwrap_or("(whole)");
            text.push_str(&format!("\n  {}: {}", inert(path), inert(issue["message"].as_str().unwrap_or_default())));
        }
        match (self.status, self.identity) {
            (401, Identity::Nobody) => text.push_str(
                "\nSay who you are: set SVC_API_KEY (or --key) to an API key, which an admin makes with POST /api/v1/api-keys, or to the token of a sign-in.",
            ),
            (401, Identity::Key) => text.push_str(
                "\nThe key is not valid. `blockbase key create` on the server's machine makes another, and so does POST /api/v1/api-keys; signing in gives a new token. Set SVC_API_KEY (or --key) to it.",
            ),
            _ => {}
        }
        Problem::Failed(text)
    }

    /// The error for a response that is not from the API.
    fn foreign(&self) -> Problem {
        let text = String::from_utf8_lossy(&self.body);
        let start: String = text.trim().chars().take(FOREIGN_CHARS_MAX).collect();
        let hint = "Is --url or SVC_URL the address of a Blockbase server?";
        Problem::Failed(match start.is_empty() {
            true => format!("{} answered {} with nothing. {hint}", self.url, self.status),
            false => format!("{} answered {} and no JSON of the API: {} {hint}", self.url, self.status, inert(&start)),
        })
    }
}

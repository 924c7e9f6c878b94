//! Sends requests to the surfaces, and reads their responses in the form that REST has.

use serde_json::{Value, json};

use super::grants::Caller;
use super::mutations::Mutation;
use super::verbs::{Verb, Write};
use super::worlds::NAMES;
use super::writes::Left;
use super::{Got, Refusal, Run, WRITE_SURFACES};
use crate::mcp::Client;

/// A write that was sent.
pub(super) struct Sent {
    pub(super) surface: &'static str,
    pub(super) got: Got,
    /// The fields of the record that the response can have. `None` for all.
    pub(super) selected: Option<Vec<String>>,
}

impl Run<'_> {
    pub(super) fn count(&self, requests: usize) {
        self.requests.set(self.requests.get() + requests);
    }

    pub(super) async fn rest(&self, caller: &Caller, (method, path, body): (&str, String, Option<Value>)) -> Got {
        self.count(1);
        self.server.call_as(caller.credential.as_deref(), method, &path, body).await.into()
    }

    pub(super) async fn graphql(&self, caller: &Caller, body: Value) -> Got {
        self.rest(caller, ("POST", "/api/v1/graphql".to_owned(), Some(body))).await
    }

    /// Calls a tool. Its result has the status 200, and a refusal that of the expected refusal with the same code.
    pub(super) async fn tool(&self, caller: &Caller, (tool, arguments): (&str, Value), refusals: &[Refusal]) -> Got {
        self.count(1);
        let client = Client::of(&self.server.with_token(caller.credential.clone().expect("a credential")));
        let called = client.call(tool, arguments).await;
        let json: Value = serde_json::from_str(&called.text).unwrap_or_else(|_| json!(called.text));
        match called.is_error {
            true => Got { status: Got::refused(&json["error"], &json["field"], refusals).status, json },
            false => Got { status: 200, json },
        }
    }

    /// Runs an operation of the data interface as the caller.
    pub(super) async fn run_block(&self, caller: &Caller, input: Value) -> Got {
        self.rest(caller, ("POST", "/api/v1/blocks/parity/actions/run".to_owned(), Some(input))).await
    }

    /// Sends a write to the surface whose turn it is.
    pub(super) async fn send_write(&self, caller: &Caller, write: &Write, expected: &Result<Left, Vec<Refusal>>) -> Sent {
        let name = NAMES[write.object];
        let refusals = expected.as_ref().err().map_or(&[][..], Vec::as_slice);
        let turn = if caller.has_all_surfaces() { self.tally.writes % WRITE_SURFACES.len() } else { 0 };
        let sent = |got: Got, selected: Option<Vec<String>>| Sent { surface: WRITE_SURFACES[turn], got, selected };
        // In a batch of a block, a missing record is not an error.
        let may_be_missing = matches!(write.verb, Verb::Batch(_)) && refusals.iter().any(|refusal| refusal.status == 404);
        match turn {
            1 if !may_be_missing => {
                if let Some(input) = write.block(name) {
                    let answer = self.run_block(caller, input).await;
                    assert_eq!(answer.status, 200, "{}", answer.json);
                    let (refused, done) = (&answer.json["data"]["refused"], &answer.json["data"]["done"]);
                    let got = match refused.is_object() {
                        true => Got::of_block(refused, refusals),
                        false => write.answered_by_block(done),
                    };
                    return sent(got, None);
                }
            }
            2 => {
                let got = self.tool(caller, write.tool(name), refusals).await;
                return sent(if got.status == 200 { write.answered_by_tool(got.json) } else { got }, None);
            }
            3 => {
                if let Some(Mutation { body, selected }) = write.mutation(&self.state, caller, expected.as_ref().ok()) {
                    let result = self.graphql(caller, body).await.json;
                    let got = write.answered_by_mutation(&result, selected.as_deref(), refusals);
                    return sent(got, selected);
                }
            }
            _ => {}
        }
        Sent { surface: WRITE_SURFACES[0], got: self.rest(caller, write.rest(name)).await, selected: None }
    }
}

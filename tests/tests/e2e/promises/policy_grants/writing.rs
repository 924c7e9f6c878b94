//! Sends writes, and compares their responses and the rows that they leave with the reference.

use std::collections::BTreeSet;

use serde_json::{Value, json};

use super::answers::Answered;
use super::grants::Caller;
use super::placeholders::placeholder;
use super::surfaces::Sent;
use super::verbs::{Verb, Write};
use super::worlds::NAMES;
use super::writes::Left;
use super::{Expected, Got, Run, WRITE_SURFACES, adopt, difference, shown_to_admin};
use crate::promises::conditions::model::Row;

impl Run<'_> {
    pub(super) async fn write(&mut self, case: usize, caller: &Caller, mut write: Write) {
        self.tally.writes += 1;
        let name = NAMES[write.object];
        let mut expected = self.state.write(caller, &write);
        let sent = self.send_write(caller, &write, &expected).await;
        let surface = sent.surface;
        if let Err(refusals) = &mut expected
            && surface == WRITE_SURFACES[1]
        {
            // The errors of a block have no index of an operation.
            refusals.iter_mut().for_each(|refusal| refusal.index = None);
        }
        match expected {
            Ok(left) if sent.got.status < 300 => self.check_write(case, caller, &write, left, &sent).await,
            Err(refusals) => {
                let got = sent.got;
                let problem = got.problem(&Expected::Refused(refusals));
                self.tally.refused_writes += 1;
                let Some(mut problem) = problem else { return };
                // If the server refuses the smaller request too, nothing has changed.
                let mut is_refused = got.status >= 300;
                'again: while is_refused {
                    for smaller in write.smaller() {
                        let Err(refusals) = self.state.write(caller, &smaller) else { continue };
                        let got = self.rest(caller, smaller.rest(name)).await;
                        let Some(other) = got.problem(&Expected::Refused(refusals)) else { continue };
                        (write, problem) = (smaller, other);
                        is_refused = got.status >= 300;
                        continue 'again;
                    }
                    break;
                }
                let place = self.place(case, caller, write.object);
                self.failures.push(format!("{place}\n  {surface}: {:?}\n  {problem}{}", write.rest(name), self.rows(&write)));
                self.synchronize().await;
            }
            Ok(_) => {
                let (mut status, mut text) = (sent.got.status, sent.got.json);
                'again: loop {
                    for smaller in write.smaller() {
                        if self.state.write(caller, &smaller).is_err() {
                            continue;
                        }
                        let got = self.rest(caller, smaller.rest(name)).await;
                        if got.status < 300 {
                            break 'again;
                        }
                        (write, status, text) = (smaller, got.status, got.json);
                        continue 'again;
                    }
                    break;
                }
                let place = self.place(case, caller, write.object);
                let (request, rows) = (write.rest(name), self.rows(&write));
                let text = format!("{place}\n  {surface}: {request:?}\n  expected success, got {status} {text}{rows}");
                self.failures.push(text);
                self.synchronize().await;
            }
        }
    }

    /// The rows that a write names, for messages.
    fn rows(&self, write: &Write) -> String {
        let shown = format!("{write:?}");
        let rows = self.state.world.rows.iter().flatten().filter(|row| {
            shown.contains(&row.id)
                || row.values.get("code").and_then(Value::as_str).is_some_and(|code| shown.contains(&format!("\"{code}\"")))
        });
        rows.map(|row| format!("\n  row {}", json!(row.values))).collect()
    }

    /// Compares the response, the rows and the events of a write.
    async fn check_write(&mut self, case: usize, caller: &Caller, write: &Write, left: Left, sent: &Sent) {
        let Sent { surface, got, selected } = sent;
        let (place, request) = (self.place(case, caller, write.object), write.rest(NAMES[write.object]));
        let place = format!("{place}\n  {surface}: {request:?}{}", self.rows(write));
        let Left { mut state, mut emitted, mut answer } = left;
        let names = new_ids(got);
        state.rename(&names);
        emitted.iter_mut().for_each(|event| event.rename(&names));
        answer.rename(&names);
        let admin = self.callers[0].credential.clone().expect("a token");
        let shown = shown_to_admin(self.server, &admin).await;
        self.count(shown.len());
        if let Some(difference) = difference(&state, &shown) {
            self.failures.push(format!("{place}\n  {difference}"));
            return self.synchronize().await;
        }
        adopt(&mut state.world, &shown);
        let problem = match &answer {
            Answered::Results(_) => answer.problem_of_results(&state, caller, got),
            _ => {
                let mut json = got.json.clone();
                if let (Answered::Ids { is_ordered: false, .. }, Some(Value::Array(ids))) = (&answer, json.get_mut("ids")) {
                    ids.sort_by_key(Value::to_string);
                }
                let expected = answer.expected(&state, caller).with_only(selected.as_deref());
                Got { status: got.status, json }.problem(&expected)
            }
        };
        if let Some(problem) = problem {
            self.failures.push(format!("{place}\n  {problem}"));
        }
        self.tally.dry_runs += usize::from(write.is_dry);
        self.tally.batches += usize::from(matches!(write.verb, Verb::Batch(_)));
        self.state = state;
        self.check_events(&place, emitted).await;
    }

    /// Copies the state of the server after a difference, so that the run can continue.
    pub(super) async fn synchronize(&mut self) {
        let admin = self.callers[0].credential.clone().expect("a token");
        let shown = shown_to_admin(self.server, &admin).await;
        let mut links = BTreeSet::new();
        for (object, records) in shown.iter().enumerate() {
            let row = |record: &Value| {
                let values = record.as_object().expect("a record").iter().filter(|(_, value)| !value.is_array());
                let values = values.map(|(name, value)| (name.clone(), value.clone())).collect();
                Row { id: record["id"].as_str().expect("an id").to_owned(), maker: 0, values }
            };
            self.state.world.rows[object] = records.iter().map(row).collect();
            for (place, relation) in self.state.world.relations.iter().enumerate().filter(|(_, relation)| relation.is_links()) {
                for record in records.iter().filter(|_| relation.source == object) {
                    let targets = record[&relation.name].as_array().expect("links").iter();
                    let id = |record: &Value| record["id"].as_str().expect("an id").to_owned();
                    links.extend(targets.map(|target| (place, id(record), id(target))));
                }
            }
        }
        self.state.world.links = links;
        self.listen_again().await;
    }
}

/// The ids of new rows in a response, each with its placeholder: those of a call for many records, of the operations of a batch, or
/// of the only record.
fn new_ids(got: &Got) -> Vec<(String, String)> {
    let ids: Vec<Option<&str>> = match (got.json.get("ids"), &got.json["data"]) {
        (Some(ids), _) => ids.as_array().expect("ids").iter().map(Value::as_str).collect(),
        (None, Value::Array(results)) => results.iter().map(|result| result["data"]["id"].as_str()).collect(),
        (None, record) => vec![record["id"].as_str()],
    };
    let ids = ids.into_iter().enumerate();
    ids.filter_map(|(number, id)| Some((placeholder(number), id?.to_owned()))).collect()
}

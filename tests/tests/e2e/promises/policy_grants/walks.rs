//! Pages by cursors, read from the beginning of a list to its end, and back. Each row that the caller sees is on one page, in the
//! order of the list.

use serde_json::{Value, json};

use super::grants::Caller;
use super::reads::{Kind, Read};
use super::{Expected, GRAPHQL, Got, Run};

/// A page by cursors.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Step {
    pub(super) size: usize,
    pub(super) toward: Toward,
}

/// The place of a page by cursors.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Toward {
    First,
    After(String),
    Before(String),
}

/// The cursors of a page that has rows.
struct Cursors {
    start: String,
    end: String,
}

/// The response that the reference expects of a page with the rows `begin..end`.
fn expected_page(records: &[Value], (begin, end): (usize, usize), size: usize, counts: bool, warns: bool) -> Expected {
    let body = json!({
        "data": records[begin..end],
        "pagination": {
            "pageSize": size,
            "hasNextPage": end < records.len(),
            "hasPreviousPage": begin > 0,
            "startCursor": begin < end,
            "endCursor": begin < end,
            "totalCount": if counts { json!(records.len()) } else { Value::Null },
        },
    });
    Expected::fine(200, body, warns)
}

/// Takes the cursors out of a page. In their place, it has whether there are any.
fn take_cursors(got: &mut Got) -> Option<Cursors> {
    let [start, end] = ["startCursor", "endCursor"].map(|name| {
        let cursor = got.json.get_mut("pagination")?.get_mut(name)?;
        let text = cursor.as_str().map(str::to_owned);
        *cursor = json!(text.is_some());
        text
    });
    Some(Cursors { start: start?, end: end? })
}

/// A connection of GraphQL as the page that REST has.
fn page_of_connection(connection: &Value, size: usize, counts: bool) -> Value {
    let nodes = connection["edges"].as_array().into_iter().flatten().map(|edge| match edge["cursor"].is_string() {
        true => edge["node"].clone(),
        false => json!("an edge without a cursor"),
    });
    let mut pagination = connection["pageInfo"].clone();
    pagination["pageSize"] = json!(size);
    pagination["totalCount"] = if counts { connection["totalCount"].clone() } else { Value::Null };
    json!({ "data": nodes.collect::<Vec<_>>(), "pagination": pagination })
}

impl Run<'_> {
    /// Reads all pages of a list forward and back. Returns the first difference from the reference.
    pub(super) async fn problem_of_walk(&self, caller: &Caller, read: &Read, size: usize, surface: usize) -> Option<String> {
        let at = |toward: Toward| Read { kind: Kind::Walk(Step { size, toward }), ..read.clone() };
        let records = match self.state.records(caller, read) {
            Ok(records) => records,
            Err(refusals) => {
                let expected = Expected::Refused(refusals);
                return self.step(caller, &at(Toward::First), surface, &expected).await?.err();
            }
        };
        let warns = self.state.warns(caller, read);
        let expected = |begin: usize, end: usize| expected_page(&records, (begin, end), size, read.counts, warns);
        let (mut begin, mut toward) = (0, Toward::First);
        let mut start = loop {
            let end = (begin + size).min(records.len());
            let cursors = match self.step(caller, &at(toward), surface, &expected(begin, end)).await? {
                Ok(cursors) => cursors,
                Err(problem) => return Some(format!("the page with the rows from {begin} on\n  {problem}")),
            };
            // The page of an empty list has no cursors.
            let Cursors { start, end: last } = cursors?;
            if end == records.len() {
                break start;
            }
            (begin, toward) = (end, Toward::After(last));
        };
        while begin > 0 {
            let end = begin;
            begin = end.saturating_sub(size);
            let page = at(Toward::Before(start));
            start = match self.step(caller, &page, surface, &expected(begin, end)).await? {
                Ok(cursors) => cursors?.start,
                Err(problem) => return Some(format!("the page with the rows before {end}, on the way back\n  {problem}")),
            };
        }
        None
    }

    /// Reads one page, and compares it with the reference. Returns its cursors if it has rows, or the difference. `None` if the
    /// surface has no form for the request.
    async fn step(
        &self,
        caller: &Caller,
        read: &Read,
        surface: usize,
        expected: &Expected,
    ) -> Option<Result<Option<Cursors>, String>> {
        let mut got = match surface == GRAPHQL {
            true => self.page_of_graphql(caller, read).await?,
            false => self.answer_of_read(caller, read, surface, expected).await?,
        };
        let cursors = take_cursors(&mut got);
        let problem = match expected {
            // The errors of a document replace those of the operation.
            Expected::Refused(_) if surface == GRAPHQL && got.status >= 300 => None,
            _ => got.problem(&expected.on(surface)),
        };
        Some(match problem {
            Some(problem) => Err(format!("{:?}\n  {problem}", read.kind)),
            None => Ok(cursors),
        })
    }

    /// The page of a connection as REST has it. `None` if the caller does not have GraphQL, or if it has no form for the request.
    async fn page_of_graphql(&self, caller: &Caller, read: &Read) -> Option<Got> {
        let Kind::Walk(step) = &read.kind else { return None };
        if !caller.has_all_surfaces() || !self.state.knows_paths(caller, read) {
            return None;
        }
        let got = self.graphql(caller, read.graphql(&self.state, caller)?).await;
        let connection = &got.json["data"][read.graphql_field()];
        Some(match connection.is_object() && got.json["errors"].is_null() {
            true => Got { status: 200, json: page_of_connection(connection, step.size, read.counts) },
            false => Got { status: 400, json: got.json },
        })
    }
}

//! Compares the responses to reads with the reference, on every surface.

use futures_util::future::join_all;
use serde_json::{Value, json};

use super::grants::Caller;
use super::reads::{Kind, Read};
use super::worlds::OBJECTS;
use super::{Expected, GRAPHQL, Got, Run, SURFACES, groups, normal};
use crate::promises::conditions::model::{Everything, Eyes, Row};
use crate::promises::conditions::shrink::shrunk;

impl Run<'_> {
    /// Compares the response of a surface to a read with the reference. Returns the difference.
    async fn problem_of_read(&self, caller: &Caller, read: &Read, surface: usize) -> Option<String> {
        match &read.kind {
            Kind::Walk(step) => return self.problem_of_walk(caller, read, step.size, surface).await,
            Kind::Export(export) if surface == 0 => return self.problem_of_export(caller, read, export).await,
            Kind::Export(_) => return None,
            Kind::List | Kind::Get(_) | Kind::Aggregate(..) | Kind::Groups(_) => {}
        }
        let expected = self.state.expected(caller, read);
        if surface == GRAPHQL {
            return self.problem_of_graphql(caller, read, &expected).await;
        }
        self.answer_of_read(caller, read, surface, &expected).await?.problem(&expected.on(surface))
    }

    /// The response of a surface other than GraphQL, as REST has it. `None` if the surface has no form for the read, or if the
    /// caller does not have the surface.
    pub(super) async fn answer_of_read(&self, caller: &Caller, read: &Read, surface: usize, expected: &Expected) -> Option<Got> {
        let name = OBJECTS[read.object];
        let is_open = caller.has_all_surfaces();
        let mut got = match surface {
            0 => self.rest(caller, read.rest(name, false)).await,
            1 if read.has_body() => self.rest(caller, read.rest(name, true)).await,
            2 if is_open => self.tool(caller, read.tool(name), expected.refusals()).await,
            4 if is_open => self.answer_of_block(caller, read, expected).await,
            _ => return None,
        };
        if matches!(read.kind, Kind::Groups(_)) {
            got.json = groups::plain(&got.json);
        }
        Some(got)
    }

    /// For a block, a missing record is not an error.
    async fn answer_of_block(&self, caller: &Caller, read: &Read, expected: &Expected) -> Got {
        let answer = self.run_block(caller, read.block(OBJECTS[read.object])).await;
        if answer.status != 200 {
            return answer;
        }
        let (refused, done) = (&answer.json["data"]["refused"], &answer.json["data"]["done"]);
        match &read.kind {
            _ if refused.is_object() => Got::of_block(refused, expected.refusals()),
            Kind::List | Kind::Groups(_) | Kind::Walk(_) | Kind::Export(_) => Got { status: 200, json: done.clone() },
            Kind::Get(_) if done.is_null() => Got { status: 404, json: json!({ "error": "not_found" }) },
            Kind::Get(_) => Got { status: 200, json: json!({ "data": done }) },
            Kind::Aggregate(function, field) => {
                let (value, count) = (&done["value"], &done["filteredCount"]);
                Got {
                    status: 200,
                    json: json!({ "data": { "fn": function, "field": field, "value": value, "filteredCount": count } }),
                }
            }
        }
    }

    async fn problem_of_graphql(&self, caller: &Caller, read: &Read, expected: &Expected) -> Option<String> {
        if !caller.has_all_surfaces() {
            return None;
        }
        let body = read.graphql(&self.state, caller)?;
        let got = self.graphql(caller, body.clone()).await;
        let name = read.graphql_field();
        let data = &got.json["data"][&name];
        match expected {
            // The caller's schema does not contain these relation keys.
            _ if !self.state.knows_paths(caller, read) => None,
            Expected::Fine { body: expected, .. } => {
                let shown = match &read.kind {
                    Kind::List => data.clone(),
                    Kind::Groups(_) => groups::plain(data),
                    _ => json!({ "data": data }),
                };
                let mut expected = normal(expected);
                if !read.counts {
                    let pagination = ["totalCount", "totalPages"].map(|name| shown["pagination"][name].clone());
                    expected["pagination"]["totalCount"] = pagination[0].clone();
                    expected["pagination"]["totalPages"] = pagination[1].clone();
                }
                (normal(&shown) != expected).then(|| format!("{body}\n  expected {expected}\n  got      {}", got.json))
            }
            Expected::Refused(refusals) if refusals.iter().all(|refusal| refusal.status == 404) => {
                (got.json != json!({ "data": { name.as_str(): null } })).then(|| format!("{body}\n  got {}", got.json))
            }
            Expected::Refused(_) => {
                let is_refused = got.json["errors"][0].is_object() && data.is_null();
                (!is_refused).then(|| format!("{body}\n  a refusal was expected, got {}", got.json))
            }
        }
    }

    pub(super) async fn read(&mut self, case: usize, caller: &Caller, read: Read) {
        let asked = (0..SURFACES).map(|surface| self.problem_of_read(caller, &read, surface));
        let problems = join_all(asked).await;
        if let Some(surface) = problems.iter().position(Option::is_some) {
            self.fail_read(case, caller, read, surface).await;
            return;
        }
        self.tally.reads += 1;
        if let Expected::Refused(_) = self.state.expected(caller, &read) {
            self.tally.refused_reads += 1;
            return;
        }
        match read.kind {
            Kind::Groups(_) => self.tally.groups += 1,
            Kind::Walk(_) => self.tally.walks += 1,
            Kind::Export(_) => self.tally.exports += 1,
            Kind::List | Kind::Get(_) | Kind::Aggregate(..) => {}
        }
        let view = caller.view(&self.state.world);
        let is_masked = |row: &Row| {
            view.sees(read.object, row)
                && row.values.keys().any(|name| caller.knows(read.object, name) && !view.shows(read.object, row, name))
        };
        let is_masked = self.state.world.rows[read.object].iter().any(is_masked);
        self.tally.masked += usize::from(is_masked);
    }

    /// Fails, and shows a smaller request that is wrong too.
    async fn fail_read(&mut self, case: usize, caller: &Caller, mut read: Read, surface: usize) {
        'again: loop {
            for smaller in read.smaller() {
                if self.problem_of_read(caller, &smaller, surface).await.is_some() {
                    read = smaller;
                    continue 'again;
                }
            }
            break;
        }
        if let Some(condition) = read.condition.clone() {
            let with = |condition: &Value| Read { condition: Some(condition.clone()), ..read.clone() };
            let is_wrong = async |condition: &Value| {
                let is_valid = self.state.world.read(&caller.reader, read.object, condition).is_ok();
                is_valid && self.problem_of_read(caller, &with(condition), surface).await.is_some()
            };
            let smallest = shrunk(&condition, is_wrong).await;
            read = with(&smallest);
        }
        let problem = self.problem_of_read(caller, &read, surface).await;
        let request = if surface == 2 {
            format!("{:?}", read.tool(OBJECTS[read.object]))
        } else {
            format!("{:?}", read.rest(OBJECTS[read.object], surface == 1))
        };
        let text = format!(
            "{}\n  surface {surface}: {request}\n  {}\n  rows: {}",
            self.place(case, caller, read.object),
            problem.unwrap_or_default(),
            self.state.world.rows[read.object].iter().map(|row| self.shown_row(read.object, row)).collect::<String>(),
        );
        self.failures.push(text);
    }

    fn shown_row(&self, object: usize, row: &Row) -> String {
        let ends = self.state.world.ends(object);
        let links = ends.iter().filter(|end| self.state.world.relations[end.relation].is_links()).map(|end| {
            let related = self.state.world.related(&Everything, end, object, row);
            (end.key.as_str(), related.into_iter().map(|other| other.id.as_str()).collect::<Vec<_>>())
        });
        format!("\n    {} {:?}", json!(row.values), links.collect::<Vec<_>>())
    }
}

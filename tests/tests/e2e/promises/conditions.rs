//! Random conditions have to find the same rows as a reference, and lists have to show them in its order: on every surface, on
//! both engines, for readers of few rows, and in memory. One world in four has an object with so many rows that the server has to
//! read pages in other ways.
//!
//! If a test fails, it prints the smallest failing condition that it could find. `BLOCKBASE_CONDITIONS_SEED` runs all conditions
//! of a single seed, and `BLOCKBASE_CONDITIONS_CASES` sets how many conditions each seed makes at most.

pub(in crate::promises) mod cells;
pub(in crate::promises) mod graphql;
mod memory;
pub(in crate::promises) mod model;
pub(in crate::promises) mod random;
mod reference;
mod setup;
pub(in crate::promises) mod shrink;
pub(in crate::promises) mod worlds;

use std::collections::BTreeSet;

use blockbase_tests::{Answer, Engine, Server, ServerBuilder, is_long, on_both_engines};
use serde_json::{Value, json};

use self::model::{Everything, Place, Reader, Verdict, World};
use self::random::Generator;
use self::setup::Caller;
use self::worlds::{NAMES, one_in, pick};
use crate::mcp::{Called, Client};

/// The number of requests whose responses the gate compares with the reference on each engine. Both engines together get 20,000.
const REQUESTS: usize = 10_000;
/// The same for the long command, which runs one seed after another. Both engines together get a million.
const REQUESTS_LONG: usize = 500_000;
/// The maximum number of conditions for each seed. Each condition is sent to every surface that can express it, so the gate needs
/// fewer conditions than one seed has.
const CASES: usize = 4_000;
/// The same for a large world, in which a condition takes longer.
const CASES_LARGE: usize = 1_000;
/// The number of seeds in the gate. Each gets the same number of requests.
const SEEDS: u64 = 4;
/// Of this many seeds in a row, the last one makes a large world.
const LARGE_ONE_IN: u64 = 4;
/// With fewer conditions than this, the random numbers decide how many of them each surface gets.
const CASES_TELLING: usize = 200;
/// The number of rows of each kind that a failure shows.
const ROWS_SHOWN: usize = 3;
/// Longer URLs are refused before the server reads their condition.
const ADDRESS_BYTES_MAX: usize = 60_000;

/// The maximum number of rows of a page, if a surface has no other one.
const PAGE_ROWS: usize = 100;
/// The number of rows after which pages by cursors are not read any further. No object has as many.
const WALKED_MAX: usize = 10_000;

/// Search terms of lists that also have a condition.
const TERMS: [&str; 9] = ["abc", "STRASSE", "100%", "a_b", "null", "$x", "οδος", "red", "example"];

/// The parameters that a list has in addition to its condition.
#[derive(Clone, Debug)]
struct Beside {
    /// The smallest `f_integer`, as a filter.
    least: Option<i64>,
    search: Option<&'static str>,
    sort: Option<&'static str>,
    /// The number of rows that a page skips. Only [`Surface::RestPage`] has it.
    skipped: usize,
    /// The maximum number of rows of a page without a total. Only [`Surface::RestShort`] has it.
    limit: usize,
    /// The number of rows of a page by cursors. Only [`Surface::RestCursor`] has it.
    walked: usize,
}

impl Beside {
    fn random(random: &mut fastrand::Rng, is_large: bool) -> Beside {
        let mut sometimes = || random.u8(0..6) == 0;
        let (is_filtered, is_searched, is_sorted) = (sometimes(), sometimes(), sometimes());
        Beside {
            skipped: if is_large { random.usize(1..160) } else { random.usize(1..6) },
            limit: *pick(random, &[1, 3, 10, 30, 60, 100]),
            walked: if is_large { *pick(random, &[40, 70, 100]) } else { random.usize(3..12) },
            least: random.choice([-1, 0, 7]).filter(|_| is_filtered),
            search: random.choice(TERMS).filter(|_| is_searched),
            sort: random.choice(["f_text", "-f_integer,f_text", "updated_by,-id"]).filter(|_| is_sorted),
        }
    }

    /// The same parameters as conditions. A row has to meet all of them.
    fn conditions(&self, world: &World, object: usize) -> Vec<Value> {
        let filter = self.least.map(|least| json!({ "f_integer": { "gte": least } }));
        let search = self.search.map(|term| {
            let searched = ["text", "email", "url", "slug", "enum", "multi_enum"];
            let columns = world.objects[object].columns.iter();
            let columns = columns.filter(|column| column.name.starts_with("f_") && searched.contains(&column.kind));
            let term = if term.starts_with('$') { format!("${term}") } else { term.to_owned() };
            json!({ "_or": columns.map(|column| json!({ &column.name: { "ilike": term } })).collect::<Vec<_>>() })
        });
        filter.into_iter().chain(search).collect()
    }
}

/// One case of the test: the caller, the object, and the condition with its other parameters.
#[derive(Clone)]
struct Question<'a> {
    caller: &'a Caller,
    object: usize,
    condition: Value,
    beside: Beside,
    /// Whether calls for many records delete them. Otherwise they change them.
    deletes: bool,
}

impl Question<'_> {
    /// The question as the parameters of a list in JSON.
    fn as_query(&self) -> Value {
        let Question { condition, beside, .. } = self;
        let mut query = json!({ "where": condition, "pageSize": PAGE_ROWS, "select": "id" });
        if let Some(least) = beside.least {
            query["filters"] = json!([{ "field": "f_integer", "operator": "gte", "value": least }]);
        }
        for (name, text) in [("search", beside.search), ("sort", beside.sort)] {
            if let Some(text) = text {
                query[name] = json!(text);
            }
        }
        query
    }
}

/// A way to send a condition.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Surface {
    RestList,
    /// A list that skips some rows.
    RestPage,
    /// A list with few rows and without a total.
    RestShort,
    /// All pages of a list, read one after the other by cursors.
    RestCursor,
    RestQuery,
    Aggregate,
    Export,
    McpQuery,
    McpAggregate,
    Graphql,
    Block,
    /// Calls for many records, which only show the records that they would write. They have no parameters beside the condition.
    BulkRest,
    BulkMcp,
    BulkGraphql,
}

/// The number of sessions of MCP that each caller has, because the tools run at the same time: one for lists, one for aggregates,
/// and one for calls for many records.
const SESSIONS: usize = 3;

/// The values that a call for many records sets. It is a dry run, so they are only checked.
const BULK_INTEGER: i64 = 1;

/// The response of a surface: its status as REST has it, and its document.
struct Got {
    status: u16,
    json: Value,
}

impl From<Answer> for Got {
    fn from(answer: Answer) -> Got {
        Got { status: answer.status, json: serde_json::from_str(&answer.text).unwrap_or_else(|_| json!(answer.text)) }
    }
}

impl Got {
    /// The response of a tool, with the status that REST would have.
    fn of_tool(called: &Called) -> Got {
        let json: Value = serde_json::from_str(&called.text).unwrap_or_else(|_| json!(called.text));
        let status = match (called.is_error, json["error"].as_str()) {
            (false, _) => 200,
            (true, Some("forbidden")) => 403,
            (true, _) => 400,
        };
        Got { status, json }
    }

    /// The response to a call for many records, in the form of a list.
    fn into_list(self) -> Got {
        if self.status != 200 {
            return self;
        }
        let ids = self.json["ids"].as_array().into_iter().flatten();
        let rows: Vec<Value> = ids.map(|id| json!({ "id": id })).collect();
        Got { status: 200, json: json!({ "data": rows, "pagination": { "totalCount": self.json["count"] } }) }
    }
}

/// Whether a call for many records is refused because its condition is too wide.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Width {
    Narrow,
    /// Every row meets the condition. The call is refused if the form of the condition shows that.
    Everything,
    /// The condition tests nothing, so the call is refused.
    Untested,
}

/// The response that the reference expects.
#[derive(Clone, Debug)]
struct Expected {
    verdict: Verdict,
    /// The rows that were found, in the order of a list. Calls for many records have no order.
    order: Vec<String>,
    width: Width,
}

impl Surface {
    const ALL: [Surface; 14] = [
        Surface::RestList,
        Surface::RestPage,
        Surface::RestShort,
        Surface::RestCursor,
        Surface::RestQuery,
        Surface::Aggregate,
        Surface::Export,
        Surface::McpQuery,
        Surface::McpAggregate,
        Surface::Graphql,
        Surface::Block,
        Surface::BulkRest,
        Surface::BulkMcp,
        Surface::BulkGraphql,
    ];

    fn is_bulk(self) -> bool {
        matches!(self, Surface::BulkRest | Surface::BulkMcp | Surface::BulkGraphql)
    }

    fn is_aggregate(self) -> bool {
        matches!(self, Surface::Aggregate | Surface::McpAggregate)
    }

    /// The page that the surface shows: the number of rows that it skips, and the maximum number of its rows. `None` if the
    /// surface has no pages.
    fn page(self, beside: &Beside) -> Option<(usize, usize)> {
        match self {
            Surface::RestList | Surface::RestQuery | Surface::McpQuery | Surface::Graphql | Surface::Block => {
                Some((0, PAGE_ROWS))
            }
            Surface::RestPage => Some((beside.skipped, PAGE_ROWS)),
            Surface::RestShort => Some((0, beside.limit)),
            // The pages are compared together.
            Surface::RestCursor => Some((0, usize::MAX)),
            Surface::Aggregate
            | Surface::Export
            | Surface::McpAggregate
            | Surface::BulkRest
            | Surface::BulkMcp
            | Surface::BulkGraphql => None,
        }
    }

    /// The number of requests that a response has taken.
    fn requests(self, answer: &Got) -> usize {
        let pages = answer.json["pages"].as_u64().filter(|_| self == Surface::RestCursor);
        pages.map_or(1, |pages| pages as usize)
    }

    /// The minimum number of requests with this surface, of all conditions.
    fn least(self, conditions: usize) -> usize {
        match self {
            // A body has room for every condition.
            Surface::RestQuery
            | Surface::McpQuery
            | Surface::McpAggregate
            | Surface::Block
            | Surface::BulkRest
            | Surface::BulkMcp => conditions,
            // Only a large condition can be too long for a URL. One condition in twelve is large.
            Surface::RestList | Surface::RestPage | Surface::RestShort | Surface::Aggregate | Surface::Export => {
                conditions * 9 / 10
            }
            // Many conditions find more rows than one of these pages has.
            Surface::RestCursor => conditions * 5 / 4,
            // The typed argument cannot express every condition. Most that it cannot express have numbers as texts.
            Surface::Graphql | Surface::BulkGraphql => conditions / 4,
        }
    }

    /// The response. `None` if the surface cannot express the question.
    async fn ask(self, run: &Run<'_>, object: &str, question: &Question<'_>) -> Option<Got> {
        match self {
            Surface::McpQuery | Surface::McpAggregate => self.ask_mcp(run, object, question).await,
            Surface::Graphql => ask_graphql(run, object, question).await,
            Surface::Block => Some(ask_block(run.server, object, question).await),
            Surface::Export => self.ask_rest(run.server, object, question).await.map(exported),
            Surface::RestCursor => ask_pages(run.server, object, question).await,
            Surface::RestList | Surface::RestPage | Surface::RestShort | Surface::RestQuery | Surface::Aggregate => {
                self.ask_rest(run.server, object, question).await.map(Got::from)
            }
            Surface::BulkRest => Some(ask_bulk(run.server, object, question).await.into_list()),
            Surface::BulkMcp => ask_bulk_tool(run, object, question).await.map(Got::into_list),
            Surface::BulkGraphql => ask_bulk_graphql(run, object, question).await.map(Got::into_list),
        }
    }

    async fn ask_mcp(self, run: &Run<'_>, object: &str, question: &Question<'_>) -> Option<Got> {
        let Question { caller, condition, beside, .. } = question;
        let mut arguments = json!({ "object_name": object, "where": condition });
        if let Some(least) = beside.least {
            arguments["filters"] = json!([{ "field": "f_integer", "operator": "gte", "value": least }]);
        }
        if let Some(term) = beside.search {
            arguments["search"] = json!(term);
        }
        if self == Surface::McpAggregate {
            arguments["fn"] = json!("count");
        } else {
            arguments["page_size"] = json!(PAGE_ROWS);
            arguments["select"] = json!("id");
            if let Some(sort) = beside.sort {
                arguments["sort"] = json!(sort);
            }
        }
        let place = run.callers.iter().position(|known| known.token == caller.token)?;
        let tool = if self == Surface::McpAggregate { "aggregate_data" } else { "query_data" };
        let called = run.mcp[place][usize::from(self == Surface::McpAggregate)].call(tool, arguments).await;
        Some(Got::of_tool(&called))
    }

    async fn ask_rest(self, server: &Server, object: &str, question: &Question<'_>) -> Option<Answer> {
        let token = Some(question.caller.token.as_str());
        if self == Surface::RestQuery {
            let path = format!("/api/v1/data/{object}/query");
            return Some(server.call_as(token, "POST", &path, Some(question.as_query())).await);
        }
        let address = self.address(object, question)?;
        Some(server.call_as(token, "GET", &address, None).await)
    }

    /// The URL of a read with its parameters, without those of a cursor. `None` if it is too long.
    fn address(self, object: &str, question: &Question<'_>) -> Option<String> {
        let Question { condition, beside, .. } = question;
        let mut address = format!("/api/v1/data/{object}");
        address.push_str(&match self {
            Surface::Aggregate => "/aggregate?fn=count".to_owned(),
            Surface::Export => "/export?format=ndjson&select=id".to_owned(),
            Surface::RestPage => format!("?limit={PAGE_ROWS}&offset={}&select=id", beside.skipped),
            Surface::RestShort => format!("?limit={}&count=none&select=id", beside.limit),
            Surface::RestCursor => format!("?limit={}&select=id", beside.walked),
            _ => format!("?pageSize={PAGE_ROWS}&select=id"),
        });
        if let Some(least) = beside.least {
            address.push_str(&format!("&f_integer%5Bgte%5D={least}"));
        }
        for (name, text) in [("search", beside.search), ("sort", beside.sort), ("where", Some(condition.to_string().as_str()))] {
            if let Some(text) = text {
                address.push_str(&format!("&{name}={}", encoded(text)));
            }
        }
        (address.len() <= ADDRESS_BYTES_MAX).then_some(address)
    }

    /// The fault of a response. `None` if it is correct.
    fn problem(self, answer: &Got, expected: &Expected, beside: &Beside) -> Option<Problem> {
        let other = |text: String| Some(Problem { text, ..Problem::default() });
        let is_too_wide = answer.status == 400 && answer.json["error"] == "invalid_request";
        match (expected.width, &expected.verdict) {
            (Width::Everything | Width::Untested, Verdict::Found(_)) if is_too_wide => return None,
            (Width::Untested, Verdict::Found(_)) => {
                return other(format!("a refusal was expected, not {} {}", answer.status, answer.json));
            }
            _ => {}
        }
        match &expected.verdict {
            Verdict::Forbidden if answer.status == 403 && answer.json["error"] == "forbidden" => None,
            Verdict::Forbidden => other(format!("403 was expected, not {} {}", answer.status, answer.json)),
            Verdict::Found(_) if answer.status != 200 => {
                other(format!("200 was expected, not {} {}", answer.status, answer.json))
            }
            Verdict::Found(ids) => {
                let json = &answer.json;
                let count = if self.is_aggregate() { &json["data"]["value"] } else { &json["pagination"]["totalCount"] };
                let rows = json["data"].as_array().into_iter().flatten();
                let found: Vec<String> = rows.filter_map(|row| row["id"].as_str().map(str::to_owned)).collect();
                let set = |ids: &[String]| ids.iter().cloned().collect::<BTreeSet<String>>();
                if let Some((skipped, limit)) = self.page(beside) {
                    let page: Vec<String> = expected.order.iter().skip(skipped).take(limit).cloned().collect();
                    if found != page {
                        let text = format!("the page has the rows {found:?}, not {page:?}");
                        let (missing, unexpected) = (&set(&page) - &set(&found), &set(&found) - &set(&page));
                        return Some(Problem { text, missing, unexpected });
                    }
                } else if !self.is_aggregate() && set(&found) != *ids {
                    let (missing, unexpected) = (ids - &set(&found), &set(&found) - ids);
                    return Some(Problem { text: "the rows differ".to_owned(), missing, unexpected });
                }
                let total = match self {
                    Surface::RestShort | Surface::RestCursor => Value::Null,
                    _ => json!(ids.len()),
                };
                if *count != total {
                    return other(format!("{total} was expected as the count, not {}", answer.json));
                }
                let has_next = ids.len() > beside.limit;
                if self == Surface::RestShort && json["pagination"]["hasNextPage"] != has_next {
                    return other(format!("{has_next} was expected for a further page, not {}", answer.json));
                }
                None
            }
        }
    }
}

/// The rows of an export as a list.
fn exported(answer: Answer) -> Got {
    if answer.status != 200 {
        return Got::from(answer);
    }
    let rows: Vec<Value> = answer.text.lines().map(|line| serde_json::from_str(line).expect("a row")).collect();
    let json = json!({ "pagination": { "totalCount": rows.len() }, "data": rows });
    Got { status: 200, json }
}

/// All pages of a list by cursors, as one list with the number of its pages.
async fn ask_pages(server: &Server, object: &str, question: &Question<'_>) -> Option<Got> {
    let address = Surface::RestCursor.address(object, question)?;
    let (mut rows, mut pages, mut after) = (Vec::new(), 0, String::new());
    loop {
        let path = format!("{address}&after={}", encoded(&after));
        let got = Got::from(server.call_as(Some(&question.caller.token), "GET", &path, None).await);
        if got.status != 200 {
            return Some(got);
        }
        let (page, pagination) = (got.json["data"].as_array().cloned().unwrap_or_default(), &got.json["pagination"]);
        let is_full = page.len() == question.beside.walked;
        let (is_last, is_empty) = (pagination["hasNextPage"] != true, page.is_empty());
        rows.extend(page);
        pages += 1;
        // Only the first page can be empty, and only the last one has fewer rows than it may have.
        let is_right = if is_last { pages == 1 || !is_empty } else { is_full && rows.len() < WALKED_MAX };
        match pagination["endCursor"].as_str() {
            _ if is_right && is_last => {
                let pagination = json!({ "totalCount": pagination["totalCount"] });
                return Some(Got { status: 200, json: json!({ "data": rows, "pagination": pagination, "pages": pages }) });
            }
            Some(cursor) if is_right => after = cursor.to_owned(),
            _ => return Some(Got { status: 500, json: json!({ "wrong": got.json, "pages": pages }) }),
        }
    }
}

/// A call for many records.
async fn ask_bulk(server: &Server, object: &str, question: &Question<'_>) -> Got {
    let Question { caller, condition, deletes, .. } = question;
    let path = format!("/api/v1/data/{object}/bulk?dryRun=true");
    let (method, body) = match *deletes {
        true => ("DELETE", json!({ "where": condition })),
        false => ("PATCH", json!({ "where": condition, "values": { "f_integer": BULK_INTEGER } })),
    };
    server.call_as(Some(&caller.token), method, &path, Some(body)).await.into()
}

async fn ask_bulk_tool(run: &Run<'_>, object: &str, question: &Question<'_>) -> Option<Got> {
    let Question { caller, condition, deletes, .. } = question;
    let place = run.callers.iter().position(|known| known.token == caller.token)?;
    let mut arguments = json!({ "object_name": object, "where": condition, "dry_run": true });
    if !deletes {
        arguments["data"] = json!({ "f_integer": BULK_INTEGER });
    }
    let tool = if *deletes { "bulk_delete_records" } else { "bulk_update_records" };
    Some(Got::of_tool(&run.mcp[place][SESSIONS - 1].call(tool, arguments).await))
}

/// A call for many records with GraphQL, for the same questions as [`ask_graphql`].
async fn ask_bulk_graphql(run: &Run<'_>, object: &str, question: &Question<'_>) -> Option<Got> {
    let Question { caller, condition, deletes, .. } = question;
    if !run.world.allows(&caller.reader, question.object, condition) {
        return None;
    }
    let typed = graphql::typed(run.world, question.object, condition)?;
    let (root, values) = match *deletes {
        true => (format!("delete_{object}_many"), String::new()),
        false => (format!("update_{object}_many"), format!("input: {{ f_integer: {BULK_INTEGER} }}, ")),
    };
    let query = format!(
        "mutation($where: {}_Where) {{ {root}(where: $where, {values}dryRun: true) {{ count ids }} }}",
        type_name(object)
    );
    let body = json!({ "query": query, "variables": { "where": typed } });
    let json = run.server.call_as(Some(&caller.token), "POST", "/api/v1/graphql", Some(body)).await.json();
    match json["errors"][0]["extensions"]["code"].as_str() {
        Some(code) => Some(Got { status: 400, json: json!({ "error": code, "errors": json["errors"] }) }),
        None => Some(Got { status: 200, json: json["data"][&root].clone() }),
    }
}

/// A list in a block, which acts as its caller.
async fn ask_block(server: &Server, object: &str, question: &Question<'_>) -> Got {
    let input = json!({ "op": "query", "object": object, "json": question.as_query().to_string() });
    let path = "/api/v1/blocks/parity/actions/run";
    let answer = server.call_as(Some(&question.caller.token), "POST", path, Some(input)).await;
    if answer.status != 200 {
        return Got::from(answer);
    }
    let outcome = answer.data();
    match outcome["refused"]["code"].as_str() {
        Some(code) => {
            Got { status: if code == "forbidden" { 403 } else { 400 }, json: json!({ "error": code, "outcome": outcome }) }
        }
        None => Got { status: 200, json: outcome["done"].clone() },
    }
}

/// A list with GraphQL. The schema of a caller has no relations to objects that they may not read. So GraphQL cannot express
/// questions about these objects.
async fn ask_graphql(run: &Run<'_>, object: &str, question: &Question<'_>) -> Option<Got> {
    let Question { caller, condition, beside, .. } = question;
    if !run.world.allows(&caller.reader, question.object, condition) {
        return None;
    }
    let typed = graphql::typed(run.world, question.object, condition)?;
    let mut arguments = vec![format!("where: $where, pageSize: {PAGE_ROWS}")];
    arguments.extend(beside.least.map(|least| format!("filter: [{{ field: \"f_integer\", operator: gte, value: {least} }}]")));
    arguments.extend(beside.search.map(|term| format!("search: {}", json!(term))));
    let sorted = beside.sort.map(|sort| {
        let keys = sort.split(',').map(|key| match key.strip_prefix('-') {
            Some(field) => format!("{{ field: {}, direction: desc }}", json!(field)),
            None => format!("{{ field: {} }}", json!(key)),
        });
        format!("sort: [{}]", keys.collect::<Vec<_>>().join(", "))
    });
    arguments.extend(sorted);
    let name = type_name(object);
    let query = format!(
        "query($where: {name}_Where) {{ {object}({}) {{ data {{ id }} pagination {{ totalCount }} }} }}",
        arguments.join(", ")
    );
    let body = json!({ "query": query, "variables": { "where": typed } });
    let answer = run.server.call_as(Some(&caller.token), "POST", "/api/v1/graphql", Some(body)).await;
    let json = answer.json();
    match json.get("errors") {
        Some(_) => Some(Got { status: 400, json }),
        None => Some(Got { status: 200, json: json["data"][object].clone() }),
    }
}

/// The name of an object's type: its words, each with a capital.
pub(in crate::promises) fn type_name(object: &str) -> String {
    let capital = |word: &str| {
        word.chars().next().map(|first| first.to_ascii_uppercase()).into_iter().chain(word.chars().skip(1)).collect::<String>()
    };
    object.split('_').map(capital).collect()
}

/// The difference between a response and the reference.
#[derive(Default)]
struct Problem {
    text: String,
    missing: BTreeSet<String>,
    unexpected: BTreeSet<String>,
}

/// Encodes a text for a query string, with `%` and two digits for special characters.
pub(crate) fn encoded(text: &str) -> String {
    text.bytes()
        .map(|byte| match byte {
            b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' | b'-' | b'_' | b'.' => char::from(byte).to_string(),
            _ => format!("%{byte:02X}"),
        })
        .collect()
}

/// Counts the outcomes, so that a run that tests too little fails.
#[derive(Debug, Default)]
struct Tally {
    asked: usize,
    /// For each surface of [`Surface::ALL`], the number of requests whose responses were compared with the reference.
    requests: [usize; Surface::ALL.len()],
    /// The number of conditions that found some of the rows, but not all.
    telling: usize,
    forbidden: usize,
    /// The number of conditions that found other rows than for an admin.
    hidden: usize,
    /// The number of conditions that found more rows than a page of [`Surface::RestShort`] has.
    cut: usize,
    /// The number of conditions in large worlds.
    large: usize,
    /// The number of conditions that found more rows than fit on any page.
    wide: usize,
}

impl Tally {
    fn requests(&self) -> usize {
        self.requests.iter().sum()
    }

    /// The surfaces that got too few requests, each with their number.
    fn neglected(&self) -> Vec<(Surface, usize)> {
        let surfaces = Surface::ALL.into_iter().zip(self.requests);
        surfaces.filter(|(surface, requests)| *requests < surface.least(self.asked)).collect()
    }
}

struct Run<'a> {
    server: &'a Server,
    /// The sessions of MCP of each caller.
    mcp: &'a [[Client<'a>; SESSIONS]],
    world: &'a World,
    callers: &'a [Caller],
    seed: u64,
    /// In a large world, the object that has many rows.
    large: Option<usize>,
}

impl Run<'_> {
    fn expected(&self, question: &Question<'_>, reader: &Reader) -> Result<Verdict, String> {
        let (mut verdict, _) = self.world.judge(reader, question.object, &question.condition)?;
        for other in question.beside.conditions(self.world, question.object) {
            let (others, _) = self.world.judge(reader, question.object, &other)?;
            if let (Verdict::Found(ids), Verdict::Found(others)) = (&mut verdict, others) {
                ids.retain(|id| others.contains(id));
            }
        }
        Ok(verdict)
    }

    /// The response of a surface. Calls for many records only have the condition, and refuse one that is too wide.
    fn expected_of(&self, surface: Surface, question: &Question<'_>) -> Result<Expected, String> {
        let Question { caller, object, condition, .. } = question;
        if !surface.is_bulk() {
            let verdict = self.expected(question, &caller.reader)?;
            let order = match &verdict {
                Verdict::Found(ids) => self.world.sorted(*object, question.beside.sort, ids),
                Verdict::Forbidden => Vec::new(),
            };
            return Ok(Expected { verdict, order, width: Width::Narrow });
        }
        let (verdict, size) = self.world.judge(&caller.reader, *object, condition)?;
        let (read, _) = self.world.read(&caller.reader, *object, condition)?;
        let mut rows = self.world.rows[*object].iter();
        let width = match size.leaves {
            0 => Width::Untested,
            _ if rows.all(|row| self.world.holds(&Everything, &read, *object, Place::Row(row)) == Some(true)) => {
                Width::Everything
            }
            _ => Width::Narrow,
        };
        Ok(Expected { verdict, order: Vec::new(), width })
    }

    async fn problem(&self, surface: Surface, question: &Question<'_>) -> Option<Problem> {
        let expected = self.expected_of(surface, question).ok()?;
        let answer = surface.ask(self, &self.world.objects[question.object].name, question).await?;
        surface.problem(&answer, &expected, &question.beside)
    }

    /// Fails, and shows the condition, a smaller condition that fails too, and the rows that differ.
    async fn fail(&self, case: usize, surface: Surface, question: &Question<'_>) {
        let alone = Beside { least: None, search: None, sort: None, ..question.beside.clone() };
        let alone = Question { beside: alone, ..question.clone() };
        let question = if self.problem(surface, &alone).await.is_some() { &alone } else { question };
        let with = |condition: &Value| Question { condition: condition.clone(), ..question.clone() };
        let is_wrong = async |condition: &Value| self.problem(surface, &with(condition)).await.is_some();
        let smallest = shrink::shrunk(&question.condition, is_wrong).await;
        let problem = self.problem(surface, &with(&smallest)).await.unwrap_or_default();
        let object = question.object;
        let rows = |ids: &BTreeSet<String>| -> String {
            let rows = self.world.rows[object].iter().filter(|row| ids.contains(&row.id)).take(ROWS_SHOWN);
            let shown: String = rows.map(|row| format!("\n    {}", Value::Object(row.values.clone()))).collect();
            format!("{} rows{shown}", ids.len())
        };
        let shown = smallest.to_string();
        let relations: Vec<_> = self.world.relations.iter().filter(|relation| shown.contains(&relation.name)).collect();
        panic!(
            "seed {}, case {case}, {:?}, {surface:?}, {} who reads {:?}, {} beside {:?}\n  condition: {}\n  smallest: {shown}\n  \
             with it: {}\n  missing: {}\n  unexpected: {}\n  relations: {relations:?}",
            self.seed,
            self.server.engine(),
            question.caller.reader.name,
            question.caller.reader.reads,
            self.world.objects[object].name,
            question.beside,
            question.condition,
            problem.text,
            rows(&problem.missing),
            rows(&problem.unexpected),
        );
    }

    async fn case(&self, case: usize, generator: &mut Generator<'_>, tally: &mut Tally) {
        // The admin sees all rows, so conditions of the admin test most. So the admin is chosen more often.
        let caller = &self.callers[[0, 0, 1, 1, 2][generator.random.usize(..5)]];
        // Only relations lead to users.
        let object = match self.large {
            Some(large) if !one_in(&mut generator.random, 4) => large,
            _ => generator.random.usize(..NAMES.len()),
        };
        let condition = match self.large {
            None => generator.condition(object, &caller.reader),
            Some(_) if generator.random.bool() => generator.leading(object, &caller.reader),
            Some(_) => generator.modest(object, &caller.reader),
        };
        let beside = Beside::random(&mut generator.random, self.large.is_some());
        let question = Question { caller, object, condition, beside, deletes: generator.random.bool() };
        let [of_lists, of_bulk] = [Surface::RestList, Surface::BulkRest].map(|surface| {
            let expected = self.expected_of(surface, &question);
            expected.unwrap_or_else(|problem| panic!("{problem}: {}", question.condition))
        });
        let name = &self.world.objects[object].name;
        let asked = Surface::ALL.map(|surface| surface.ask(self, name, &question));
        let answers = futures_util::future::join_all(asked).await;
        for ((surface, requests), answer) in Surface::ALL.into_iter().zip(&mut tally.requests).zip(answers) {
            let Some(answer) = answer else { continue };
            *requests += surface.requests(&answer);
            let expected = if surface.is_bulk() { &of_bulk } else { &of_lists };
            if surface.problem(&answer, expected, &question.beside).is_some() {
                self.fail(case, surface, &question).await;
            }
        }
        let expected = of_lists.verdict;
        tally.asked += 1;
        tally.large += usize::from(self.large.is_some());
        match &expected {
            Verdict::Forbidden => tally.forbidden += 1,
            Verdict::Found(ids) => {
                tally.telling += usize::from(!ids.is_empty() && ids.len() < self.world.rows[object].len());
                tally.cut += usize::from(ids.len() > question.beside.limit);
                tally.wide += usize::from(ids.len() > PAGE_ROWS);
                let all = Reader { reads: self.callers[0].reader.reads.clone(), ..caller.reader.clone() };
                tally.hidden += usize::from(self.expected(&question, &all).is_ok_and(|all| all != expected));
            }
        }
    }
}

/// Runs the conditions of a seed, until there are enough requests.
async fn run(engine: Engine, seed: u64, cases: usize, requests: usize, tally: &mut Tally) {
    let server = ServerBuilder::new(engine).start().await;
    let is_large = seed % LARGE_ONE_IN == LARGE_ONE_IN - 1;
    let (world, callers) = setup::build(&server, seed, is_large).await;
    let large = is_large.then(|| worlds::large_object(&world));
    let cases = if is_large { cases.min(CASES_LARGE) } else { cases };
    let mut mcp = Vec::new();
    for caller in &callers {
        let begin = || Client::of(&server.with_token(caller.token.clone())).begin();
        mcp.push([begin().await, begin().await, begin().await]);
    }
    let run = Run { server: &server, mcp: &mcp, world: &world, callers: &callers, seed, large };
    let mut generator = Generator::new(seed, &world);
    for case in 0..cases {
        if tally.requests() >= requests {
            break;
        }
        run.case(case, &mut generator, tally).await;
    }
}

on_both_engines! {
    async fn random_conditions_find_what_the_reference_finds(engine: Engine) {
        let setting = |name: &str| std::env::var(name).ok().and_then(|text| text.parse::<u64>().ok());
        let (only, cases) = (setting("BLOCKBASE_CONDITIONS_SEED"), setting("BLOCKBASE_CONDITIONS_CASES"));
        let needed = if is_long() { REQUESTS_LONG } else { REQUESTS };
        // In the gate, each seed has the same share of the requests. In the long command, each has all of its conditions.
        let (seeds, share) = match only {
            Some(only) => (only..only + 1, usize::MAX),
            None if is_long() => (0..u64::MAX, REQUESTS_LONG),
            None => (0..SEEDS, REQUESTS.div_ceil(SEEDS as usize)),
        };
        let mut tally = Tally::default();
        for seed in seeds {
            if only.is_none() && tally.requests() >= needed {
                break;
            }
            let most = tally.requests().saturating_add(share);
            let most = if only.is_none() { most.min(needed) } else { most };
            run(engine, seed, cases.map_or(CASES, |cases| cases as usize), most, &mut tally).await;
        }
        eprintln!("{engine:?}: {} requests with {} conditions, {:?}", tally.requests(), tally.asked, tally.requests);
        assert!(tally.requests() >= needed || only.is_some() || cases.is_some(), "{} requests of {needed}", tally.requests());
        let Tally { asked, telling, forbidden, hidden, cut, large, wide, .. } = tally;
        // A single seed need not make a large world.
        let is_long_enough = cut * 20 > asked && (wide * 20 > large || only.is_some());
        let is_telling = telling * 3 > asked && forbidden * 40 > asked && hidden * 40 > asked && is_long_enough;
        assert!((is_telling && tally.neglected().is_empty()) || asked < CASES_TELLING, "{tally:?}, {:?}", tally.neglected());
    }
}

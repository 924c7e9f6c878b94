//! Reads as requests of each surface.

use std::collections::BTreeSet;

use serde_json::{Map, Value, json};

use super::State;
use super::grants::Caller;
use super::groups::Groups;
use super::reads::{Kind, Read, Window};
use super::walks::{Step, Toward};
use super::worlds::OBJECTS;
use crate::promises::conditions::{encoded, graphql, type_name};

/// The name of `pageSize` in the tools of MCP.
const PAGE_SIZE_OF_TOOLS: &str = "page_size";

impl Window {
    /// The parameters of the window, with their names in REST.
    fn parameters(self) -> [(&'static str, usize); 2] {
        match self {
            Window::Page(number, size) => [("page", number), ("pageSize", size)],
            Window::Offset(offset, limit) => [("offset", offset), ("limit", limit)],
        }
    }
}

impl Step {
    /// The parameter that leads to the page, with its cursor. An empty one leads to the first page.
    fn cursor(&self) -> (&'static str, &str) {
        match &self.toward {
            Toward::First => ("after", ""),
            Toward::After(cursor) => ("after", cursor),
            Toward::Before(cursor) => ("before", cursor),
        }
    }
}

/// The key of a sort, and whether its order is descending.
fn sort_key(key: &str) -> (&str, bool) {
    key.strip_prefix('-').map_or((key, false), |field| (field, true))
}

impl Read {
    /// Whether REST also takes the parameters of this read in a body.
    pub(super) fn has_body(&self) -> bool {
        matches!(self.kind, Kind::List | Kind::Walk(_))
    }

    fn parameters(&self) -> Vec<(&'static str, String)> {
        let mut all = Vec::new();
        match &self.kind {
            Kind::Aggregate(function, field) => {
                all.push(("fn", (*function).to_owned()));
                all.extend(field.iter().map(|field| ("field", field.clone())));
            }
            Kind::Export(export) => {
                all.push(("format", if export.is_csv { "csv" } else { "ndjson" }.to_owned()));
                if !export.names.is_empty() {
                    let names: Vec<String> = export.names.iter().map(|key| format!("{key}.code")).collect();
                    all.push(("names", names.join(",")));
                }
            }
            Kind::List | Kind::Get(_) | Kind::Groups(_) | Kind::Walk(_) => {}
        }
        all.extend(self.search.iter().map(|term| ("search", term.clone())));
        if !self.sort.is_empty() {
            all.push(("sort", self.sort.join(",")));
        }
        all.extend(self.select.iter().map(|select| ("select", select.join(","))));
        if !self.expand.is_empty() {
            all.push(("expand", self.expand.iter().map(|path| path.join(".")).collect::<Vec<_>>().join(",")));
        }
        match (&self.kind, self.counts) {
            (Kind::Walk(_), true) => all.push(("count", "exact".to_owned())),
            (Kind::Walk(_), false) | (_, true) => {}
            (_, false) => all.push(("count", "none".to_owned())),
        }
        all
    }

    /// The method, the path and the body for REST. With `is_query`, a list has its parameters in a body.
    pub(super) fn rest(&self, object: &str, is_query: bool) -> (&'static str, String, Option<Value>) {
        let mut path = format!("/api/v1/data/{object}");
        if is_query && self.has_body() {
            let mut body: Map<String, Value> =
                self.parameters().into_iter().map(|(name, text)| (name.to_owned(), json!(text))).collect();
            body.insert("filters".to_owned(), self.filters_as_json());
            if let Some(condition) = &self.condition {
                body.insert("where".to_owned(), condition.clone());
            }
            let window = self.window.into_iter().flat_map(Window::parameters);
            body.extend(window.map(|(name, number)| (name.to_owned(), json!(number))));
            if let Kind::Walk(step) = &self.kind {
                let (name, cursor) = step.cursor();
                body.insert("cursor".to_owned(), json!(true));
                body.insert("pageSize".to_owned(), json!(step.size));
                body.insert(name.to_owned(), json!(cursor));
            }
            return ("POST", format!("{path}/query"), Some(Value::Object(body)));
        }
        let mut query: Vec<String> =
            self.parameters().into_iter().map(|(name, text)| format!("{name}={}", encoded(&text))).collect();
        match &self.kind {
            Kind::List => {}
            Kind::Get(id) => path.push_str(&format!("/{id}")),
            Kind::Aggregate(..) => path.push_str("/aggregate"),
            Kind::Groups(Groups { by, functions, having }) => {
                path.push_str("/aggregate");
                query.push(format!("fn={}", encoded(&functions.join(","))));
                query.push(format!("groupBy={}", encoded(&by.join(","))));
                query.extend(having.iter().map(|having| format!("having={}", encoded(&having.to_string()))));
            }
            Kind::Walk(step) => {
                let (name, cursor) = step.cursor();
                query.push(format!("pageSize={}&{name}={}", step.size, encoded(cursor)));
            }
            Kind::Export(_) => path.push_str("/export"),
        }
        for (field, operator, value) in &self.filters {
            let text = value.as_str().map_or_else(|| value.to_string(), str::to_owned);
            query.push(format!("{field}%5B{operator}%5D={}", encoded(&text)));
        }
        query.extend(self.condition.iter().map(|condition| format!("where={}", encoded(&condition.to_string()))));
        let window = self.window.into_iter().flat_map(Window::parameters);
        query.extend(window.map(|(name, number)| format!("{name}={number}")));
        ("GET", format!("{path}?{}", query.join("&")), None)
    }

    fn filters_as_json(&self) -> Value {
        let filter =
            |(field, operator, value): &(String, &str, Value)| json!({ "field": field, "operator": operator, "value": value });
        self.filters.iter().map(filter).collect()
    }

    /// The tool and its arguments for MCP.
    pub(super) fn tool(&self, object: &str) -> (&'static str, Value) {
        let mut arguments: Map<String, Value> =
            self.parameters().into_iter().map(|(name, text)| (name.to_owned(), json!(text))).collect();
        arguments.insert("object_name".to_owned(), json!(object));
        if let Kind::Get(id) = &self.kind {
            arguments.insert("id".to_owned(), json!(id));
            return ("get_record", Value::Object(arguments));
        }
        arguments.insert("filters".to_owned(), self.filters_as_json());
        if let Some(condition) = &self.condition {
            arguments.insert("where".to_owned(), condition.clone());
        }
        let of_tool = |name: &'static str| if name == "pageSize" { PAGE_SIZE_OF_TOOLS } else { name };
        let window = self.window.into_iter().flat_map(Window::parameters);
        arguments.extend(window.map(|(name, number)| (of_tool(name).to_owned(), json!(number))));
        match &self.kind {
            Kind::Groups(Groups { by, functions, having }) => {
                arguments.insert("functions".to_owned(), json!(functions));
                arguments.insert("group_by".to_owned(), json!(by));
                arguments.extend(having.iter().map(|having| ("having".to_owned(), having.clone())));
                ("aggregate_data", Value::Object(arguments))
            }
            Kind::Aggregate(..) => ("aggregate_data", Value::Object(arguments)),
            Kind::Walk(step) => {
                let (name, cursor) = step.cursor();
                arguments.insert(PAGE_SIZE_OF_TOOLS.to_owned(), json!(step.size));
                arguments.insert(name.to_owned(), json!(cursor));
                ("query_data", Value::Object(arguments))
            }
            Kind::List | Kind::Get(_) | Kind::Export(_) => ("query_data", Value::Object(arguments)),
        }
    }

    /// The input of the block `parity`, which runs the read with the data interface.
    pub(super) fn block(&self, object: &str) -> Value {
        if let Kind::Get(id) = &self.kind {
            let mut input = json!({ "op": "get", "object": object, "id": id });
            if !self.expand.is_empty() {
                input["expand"] = json!(self.expand.iter().map(|path| path.join(".")).collect::<Vec<_>>().join(","));
            }
            return input;
        }
        let (_, mut arguments) = self.tool(object);
        let members = arguments.as_object_mut().expect("the arguments of a tool");
        members.remove("object_name");
        for (of_tool, name) in [(PAGE_SIZE_OF_TOOLS, "pageSize"), ("group_by", "groupBy")] {
            if let Some(value) = members.remove(of_tool) {
                members.insert(name.to_owned(), value);
            }
        }
        let op = match self.kind {
            Kind::Aggregate(..) => "aggregate",
            Kind::Groups(_) => "groups",
            Kind::List | Kind::Get(_) | Kind::Walk(_) | Kind::Export(_) => "query",
        };
        json!({ "op": op, "object": object, "json": arguments.to_string() })
    }

    fn selection(
        &self,
        state: &State,
        caller: &Caller,
        object: usize,
        select: Option<&[String]>,
        expand: &[Vec<String>],
    ) -> String {
        let mut parts: Vec<String> = match select {
            Some(select) => select.to_vec(),
            None => state.columns(caller, object).map(str::to_owned).collect(),
        };
        parts.push("id".to_owned());
        let keys: BTreeSet<&String> = expand.iter().filter_map(|path| path.first()).collect();
        for key in keys {
            let rest: Vec<Vec<String>> =
                expand.iter().filter(|path| path[0] == *key && path.len() > 1).map(|path| path[1..].to_vec()).collect();
            let end = state.end(object, key).expect("a relation key");
            parts.push(format!("{key} {{ {} }}", self.selection(state, caller, end.object, None, &rest)));
        }
        parts.join(" ")
    }

    /// The field of the query that has the answer in GraphQL.
    pub(super) fn graphql_field(&self) -> String {
        let object = OBJECTS[self.object];
        match self.kind {
            Kind::List | Kind::Export(_) => object.to_owned(),
            Kind::Get(_) => format!("{object}_by_id"),
            Kind::Aggregate(..) => format!("{object}_aggregate"),
            Kind::Groups(_) => format!("{object}_groups"),
            Kind::Walk(_) => format!("{object}_connection"),
        }
    }

    /// The document and the variables for GraphQL. `None` if it has no form for the request.
    pub(super) fn graphql(&self, state: &State, caller: &Caller) -> Option<Value> {
        const PAGINATION: &str = "pagination { page pageSize totalCount totalPages hasNextPage hasPreviousPage }";
        let object = &state.world.objects[self.object].name;
        let record = self.selection(state, caller, self.object, self.select.as_deref(), &self.expand);
        let name = self.graphql_field();
        if let Kind::Get(id) = &self.kind {
            return Some(json!({ "query": format!("{{ {name}(id: {}) {{ {record} }} }}", json!(id)) }));
        }
        let filters: Vec<String> = self
            .filters
            .iter()
            .map(|(field, operator, value)| format!("{{ field: {}, operator: {operator}, value: {value} }}", json!(field)))
            .collect();
        let mut arguments = vec![format!("filter: [{}]", filters.join(", "))];
        arguments.extend(self.search.iter().map(|term| format!("search: {}", json!(term))));
        let (mut declared, mut variables) = (Vec::new(), Map::new());
        if let Some(condition) = &self.condition {
            declared.push(format!("$where: {}_Where", type_name(object)));
            variables.insert("where".to_owned(), graphql::typed(&state.world, self.object, condition)?);
            arguments.push("where: $where".to_owned());
        }
        let sort = self.sort.iter().map(|key| match sort_key(key) {
            (field, true) => format!("{{ field: {}, direction: desc }}", json!(field)),
            (field, false) => format!("{{ field: {} }}", json!(field)),
        });
        let sort = format!("sort: [{}]", sort.collect::<Vec<_>>().join(", "));
        let window = self.window.into_iter().flat_map(Window::parameters).map(|(name, number)| format!("{name}: {number}"));
        let selected = match &self.kind {
            Kind::Aggregate(function, field) => {
                arguments.push(format!("fn: {function}"));
                arguments.extend(field.iter().map(|field| format!("field: {}", json!(field))));
                "fn field value filteredCount".to_owned()
            }
            Kind::Groups(Groups { by, functions, having }) => {
                arguments.push(format!("functions: {}, groupBy: {}", json!(functions), json!(by)));
                if let Some(having) = having {
                    declared.push("$having: JSON".to_owned());
                    variables.insert("having".to_owned(), having.clone());
                    arguments.push("having: $having".to_owned());
                }
                arguments.push(sort);
                arguments.extend(window);
                format!("data {PAGINATION}")
            }
            Kind::Walk(step) => {
                arguments.push(sort);
                arguments.push(match &step.toward {
                    Toward::First => format!("first: {}", step.size),
                    Toward::After(cursor) => format!("first: {}, after: {}", step.size, json!(cursor)),
                    Toward::Before(cursor) => format!("last: {}, before: {}", step.size, json!(cursor)),
                });
                let info = "pageInfo { hasNextPage hasPreviousPage startCursor endCursor } totalCount";
                format!("edges {{ cursor node {{ {record} }} }} {info}")
            }
            Kind::List | Kind::Get(_) | Kind::Export(_) => {
                arguments.push(sort);
                arguments.extend(window);
                format!("data {{ {record} }} {PAGINATION}")
            }
        };
        let head = if declared.is_empty() { String::new() } else { format!("query({}) ", declared.join(", ")) };
        let query = format!("{head}{{ {name}({}) {{ {selected} }} }}", arguments.join(", "));
        Some(json!({ "query": query, "variables": variables }))
    }

    /// Requests that lack one part of this request.
    pub(super) fn smaller(&self) -> Vec<Read> {
        let mut all = Vec::new();
        let mut add = |change: &dyn Fn(&mut Read)| {
            let mut read = self.clone();
            change(&mut read);
            if format!("{read:?}") != format!("{self:?}") {
                all.push(read);
            }
        };
        add(&|read| read.condition = None);
        add(&|read| read.expand.clear());
        add(&|read| read.search = None);
        add(&|read| read.select = None);
        add(&|read| read.sort.clear());
        add(&|read| read.window = None);
        add(&|read| read.counts = true);
        for place in 0..self.filters.len() {
            add(&|read| drop(read.filters.remove(place)));
        }
        for place in 0..self.expand.len() {
            add(&|read| drop(read.expand.remove(place)));
            add(&|read| read.expand[place].truncate(1));
        }
        if let Kind::Export(export) = &self.kind {
            for place in 0..export.names.len() {
                add(&|read| {
                    if let Kind::Export(export) = &mut read.kind {
                        export.names.remove(place);
                    }
                });
            }
        }
        if let Kind::Groups(groups) = &self.kind {
            for smaller in groups.smaller() {
                let keys = smaller.keys();
                add(&|read| {
                    read.kind = Kind::Groups(smaller.clone());
                    read.sort.retain(|key| keys.iter().any(|known| known == sort_key(key).0));
                });
            }
        }
        all
    }
}

//! The reference for reads: lists, single records and aggregates, on every surface.

use std::cmp::Ordering;
use std::collections::BTreeSet;

use serde_json::{Map, Value, json};

use super::grants::{Caller, View};
use super::worlds::USERS;
use super::{Expected, Refusal, State};
use crate::promises::conditions::cells::Cell;
use crate::promises::conditions::model::{Condition, End, Eyes, Place, Row};
use crate::promises::conditions::{encoded, graphql, type_name};

#[derive(Clone, Debug, PartialEq)]
pub(super) enum Kind {
    List,
    Get(String),
    /// The function and its field.
    Aggregate(&'static str, Option<String>),
}

#[derive(Clone, Debug)]
pub(super) struct Read {
    pub(super) object: usize,
    pub(super) kind: Kind,
    /// Each filter has a field, an operator and a value.
    pub(super) filters: Vec<(String, &'static str, Value)>,
    pub(super) condition: Option<Value>,
    pub(super) search: Option<String>,
    /// The fields, with a `-` for descending order.
    pub(super) sort: Vec<String>,
    pub(super) select: Option<Vec<String>>,
    pub(super) expand: Vec<Vec<String>>,
    /// The page and its size.
    pub(super) page: Option<(usize, usize)>,
    pub(super) counts: bool,
}

/// Whether a caller can use a relation key.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Standing {
    Known,
    /// The key does not exist for the caller.
    Unknown,
    /// The caller may not read the object that the key leads to.
    Forbidden,
}

impl State {
    pub(super) fn end(&self, object: usize, key: &str) -> Option<End> {
        self.world.ends(object).into_iter().find(|end| end.key == key)
    }

    pub(super) fn standing(&self, caller: &Caller, object: usize, end: &End) -> Standing {
        let relation = &self.world.relations[end.relation];
        let is_reference = !relation.is_links() && end.is_forward;
        let is_known = match (relation.is_links(), end.is_forward) {
            (true, _) => caller.knows(object, &end.key),
            (false, true) => caller.knows(object, &relation.column()),
            (false, false) => !caller.may(end.object, "read") || caller.knows(end.object, &relation.column()),
        };
        match is_known {
            true if caller.may(end.object, "read") => Standing::Known,
            // Everybody knows that there are users.
            true if is_reference || end.object == USERS || caller.knows_of(end.object) => Standing::Forbidden,
            _ => Standing::Unknown,
        }
    }

    /// The errors that a condition of a caller can get.
    pub(super) fn refusals_of_condition(&self, caller: &Caller, object: usize, condition: &Condition) -> Vec<Refusal> {
        let mut uses = Vec::new();
        self.world.uses(condition, object, &mut uses);
        let mut refusals = Vec::new();
        for (object, name) in uses.into_iter().filter(|(object, _)| caller.may(*object, "read")) {
            match self.end(object, &name) {
                Some(end) => match self.standing(caller, object, &end) {
                    Standing::Known => {}
                    Standing::Unknown => {
                        refusals.push(Refusal::of(400, "unknown_field", &name));
                        // The specification does not say whether the error is about the key or about its object.
                        if !caller.may(end.object, "read") {
                            refusals.push(Refusal::new(403, "forbidden"));
                        }
                    }
                    Standing::Forbidden => {
                        refusals.push(Refusal::new(403, "forbidden"));
                        if caller.layers.len() > 1 {
                            refusals.push(Refusal::of(400, "unknown_field", &name));
                        }
                    }
                },
                None if caller.knows(object, &name) => {}
                None => refusals.push(Refusal::of(400, "unknown_field", &name)),
            }
        }
        refusals
    }

    /// The rows of an object that a caller's conditions find.
    pub(super) fn found(&self, view: &View<'_>, object: usize, conditions: &[Condition]) -> Vec<&Row> {
        let holds = |row: &Row| {
            let holds = |condition| self.world.holds(view, condition, object, Place::Row(row)) == Some(true);
            view.sees(object, row) && conditions.iter().all(holds)
        };
        self.world.rows[object].iter().filter(|row| holds(row)).collect()
    }

    /// The columns that a caller knows.
    pub(super) fn columns<'a>(&'a self, caller: &'a Caller, object: usize) -> impl Iterator<Item = &'a str> {
        let names = self.world.objects[object].columns.iter().map(|column| column.name.as_str());
        names.filter(move |name| caller.knows(object, name))
    }

    /// A record as a caller sees it.
    pub(super) fn record(
        &self,
        (caller, view): (&Caller, &View<'_>),
        object: usize,
        row: &Row,
        select: Option<&[String]>,
        expand: &[Vec<String>],
    ) -> Value {
        let mut record = Map::new();
        for name in self.columns(caller, object) {
            if name == "id" || select.is_none_or(|select| select.iter().any(|other| other == name)) {
                record.insert(name.to_owned(), view.value(object, row, name).clone());
            }
        }
        let keys: BTreeSet<&String> = expand.iter().filter_map(|path| path.first()).collect();
        for key in keys {
            let Some(end) = self.end(object, key) else { continue };
            if self.standing(caller, object, &end) != Standing::Known {
                continue;
            }
            let rest: Vec<Vec<String>> =
                expand.iter().filter(|path| path[0] == *key && path.len() > 1).map(|path| path[1..].to_vec()).collect();
            let related = self.world.related(view, &end, object, row);
            let mut related: Vec<Value> =
                related.into_iter().map(|other| self.record((caller, view), end.object, other, None, &rest)).collect();
            let value = match end.is_single {
                true => related.pop().unwrap_or(Value::Null),
                false => Value::Array(related),
            };
            record.insert(key.clone(), value);
        }
        Value::Object(record)
    }

    /// Whether a path of `expand` is refused, and whether a part of it is unknown.
    fn path(&self, caller: &Caller, object: usize, path: &[String]) -> Standing {
        let Some((key, rest)) = path.split_first() else { return Standing::Known };
        let end = self.end(object, key).expect("a relation key");
        match self.standing(caller, object, &end) {
            Standing::Known => self.path(caller, end.object, rest),
            other => other,
        }
    }

    /// Whether all relation keys of a request are in the caller's GraphQL schema.
    pub(super) fn knows_paths(&self, caller: &Caller, read: &Read) -> bool {
        read.expand.iter().all(|path| self.path(caller, read.object, path) == Standing::Known)
    }

    fn filter_condition(&self, read: &Read) -> Value {
        let filters = read.filters.iter().map(|(field, operator, value)| json!({ field.as_str(): { *operator: value } }));
        json!({ "_and": filters.collect::<Vec<_>>() })
    }

    pub(super) fn expected(&self, caller: &Caller, read: &Read) -> Expected {
        let object = read.object;
        let mut refusals = Vec::new();
        if !caller.may(object, "read") {
            return Expected::Refused(vec![caller.denied()]);
        }
        let standings: Vec<Standing> = read.expand.iter().map(|path| self.path(caller, object, path)).collect();
        if standings.contains(&Standing::Forbidden) {
            refusals.push(caller.denied());
        }
        let mut conditions = Vec::new();
        for condition in read.condition.iter().cloned().chain([self.filter_condition(read)]) {
            let condition = self.world.read(&caller.reader, object, &condition).expect("a valid condition").0;
            refusals.extend(self.refusals_of_condition(caller, object, &condition));
            conditions.push(condition);
        }
        let of_aggregate = match &read.kind {
            Kind::Aggregate(_, Some(field)) => vec![field],
            _ => Vec::new(),
        };
        let sorted = read.sort.iter().map(|key| key.trim_start_matches('-'));
        let named =
            sorted.chain(read.select.iter().flatten().map(String::as_str)).chain(of_aggregate.into_iter().map(String::as_str));
        refusals.extend(named.filter(|name| !caller.knows(object, name)).map(|name| Refusal::of(400, "unknown_field", name)));
        if caller.credential.is_none() {
            refusals.iter_mut().filter(|refusal| refusal.status == 403).for_each(|refusal| *refusal = caller.denied());
        }
        let view = caller.view(&self.world);
        if let Kind::Get(id) = &read.kind {
            let row = self.row(object, id).filter(|row| view.sees(object, row));
            let Some(row) = row.filter(|_| refusals.is_empty()) else {
                refusals.push(Refusal::new(404, "not_found"));
                return Expected::Refused(refusals);
            };
            let record = self.record((caller, &view), object, row, None, &read.expand);
            return Expected::fine(200, json!({ "data": record }), standings.contains(&Standing::Unknown));
        }
        if !refusals.is_empty() {
            return Expected::Refused(refusals);
        }
        let mut found = self.found(&view, object, &conditions);
        if let Some(term) = &read.search {
            let texts = ["text", "email", "slug", "enum"];
            let columns = self.world.objects[object].columns.iter().filter(|column| texts.contains(&column.kind));
            let columns: Vec<&str> =
                columns.map(|column| column.name.as_str()).filter(|name| !["created_by", "updated_by"].contains(name)).collect();
            let contains = |row: &Row, name: &str| {
                Cell::read("text", view.value(object, row, name)).is_ok_and(|cell| cell.contains(term, true))
            };
            found.retain(|row| columns.iter().any(|name| contains(row, name)));
        }
        if let Kind::Aggregate(function, field) = &read.kind {
            let values = |field: &String| {
                let values = found.iter().map(|row| view.value(object, row, field)).filter(|value| !value.is_null());
                values.collect::<Vec<_>>()
            };
            let numbers = |field: &String| values(field).into_iter().filter_map(Value::as_i64).collect::<Vec<_>>();
            let value = match (*function, field) {
                ("count", None) => json!(found.len()),
                ("count", Some(field)) => json!(values(field).len()),
                ("sum", Some(field)) if !numbers(field).is_empty() => json!(numbers(field).iter().sum::<i64>()),
                ("min", Some(field)) => json!(numbers(field).iter().min()),
                ("max", Some(field)) => json!(numbers(field).iter().max()),
                _ => Value::Null,
            };
            let data = json!({ "fn": function, "field": field, "value": value, "filteredCount": found.len() });
            return Expected::fine(200, json!({ "data": data }), false);
        }
        // Users have no moment of creation.
        let has_moment = self.columns(caller, object).any(|name| name == "created_at");
        let default = if has_moment { "-created_at" } else { "id" };
        let sort = if read.sort.is_empty() { vec![default.to_owned()] } else { read.sort.clone() };
        found.sort_by(|one, other| self.order(&view, object, &sort, one, other));
        let (page, size) = read.page.unwrap_or((1, 25));
        let begin = ((page - 1) * size).min(found.len());
        let shown = found[begin..].iter().take(size);
        let data: Vec<Value> =
            shown.map(|row| self.record((caller, &view), object, row, read.select.as_deref(), &read.expand)).collect();
        let total = |count: usize| if read.counts { json!(count) } else { Value::Null };
        let pagination = json!({
            "page": page,
            "pageSize": size,
            "totalCount": total(found.len()),
            "totalPages": total(found.len().div_ceil(size)),
            "hasNextPage": page * size < found.len(),
            "hasPreviousPage": page > 1,
        });
        Expected::fine(200, json!({ "data": data, "pagination": pagination }), standings.contains(&Standing::Unknown))
    }

    fn order(&self, view: &View<'_>, object: usize, sort: &[String], one: &Row, other: &Row) -> Ordering {
        let is_descending = sort[0].starts_with('-');
        for key in sort {
            let name = key.trim_start_matches('-');
            let kind = self.world.objects[object].columns.iter().find(|column| column.name == name).expect("a column").kind;
            let cell = |row| Cell::read(kind, view.value(object, row, name)).expect("a value");
            let (one, other) = (cell(one), cell(other));
            // In ascending order, nulls come last.
            let order = match (&one, &other) {
                (Cell::Null, Cell::Null) => Ordering::Equal,
                (Cell::Null, _) => Ordering::Greater,
                (_, Cell::Null) => Ordering::Less,
                _ => one.order(&other).unwrap_or(Ordering::Equal),
            };
            if order != Ordering::Equal {
                return if key.starts_with('-') { order.reverse() } else { order };
            }
        }
        let order = one.id.cmp(&other.id);
        if is_descending { order.reverse() } else { order }
    }
}

impl Read {
    fn parameters(&self) -> Vec<(&'static str, String)> {
        let mut all = Vec::new();
        if let Kind::Aggregate(function, field) = &self.kind {
            all.push(("fn", (*function).to_owned()));
            all.extend(field.iter().map(|field| ("field", field.clone())));
        }
        all.extend(self.search.iter().map(|term| ("search", term.clone())));
        if !self.sort.is_empty() {
            all.push(("sort", self.sort.join(",")));
        }
        all.extend(self.select.iter().map(|select| ("select", select.join(","))));
        if !self.expand.is_empty() {
            all.push(("expand", self.expand.iter().map(|path| path.join(".")).collect::<Vec<_>>().join(",")));
        }
        if !self.counts {
            all.push(("count", "none".to_owned()));
        }
        all
    }

    /// The method, the path and the body for REST. With `is_query`, a list has its parameters in a body.
    pub(super) fn rest(&self, object: &str, is_query: bool) -> (&'static str, String, Option<Value>) {
        let mut path = format!("/api/v1/data/{object}");
        if is_query && self.kind == Kind::List {
            let mut body: Map<String, Value> =
                self.parameters().into_iter().map(|(name, text)| (name.to_owned(), json!(text))).collect();
            let filter = |(field, operator, value): &(String, &str, Value)| json!({ "field": field, "operator": operator, "value": value });
            body.insert("filters".to_owned(), self.filters.iter().map(filter).collect());
            if let Some(condition) = &self.condition {
                body.insert("where".to_owned(), condition.clone());
            }
            if let Some((page, size)) = self.page {
                body.extend([("page".to_owned(), json!(page)), ("pageSize".to_owned(), json!(size))]);
            }
            return ("POST", format!("{path}/query"), Some(Value::Object(body)));
        }
        match &self.kind {
            Kind::List => {}
            Kind::Get(id) => path.push_str(&format!("/{id}")),
            Kind::Aggregate(..) => path.push_str("/aggregate"),
        }
        let mut query: Vec<String> =
            self.parameters().into_iter().map(|(name, text)| format!("{name}={}", encoded(&text))).collect();
        for (field, operator, value) in &self.filters {
            let text = value.as_str().map_or_else(|| value.to_string(), str::to_owned);
            query.push(format!("{field}%5B{operator}%5D={}", encoded(&text)));
        }
        query.extend(self.condition.iter().map(|condition| format!("where={}", encoded(&condition.to_string()))));
        query.extend(self.page.iter().map(|(page, size)| format!("page={page}&pageSize={size}")));
        ("GET", format!("{path}?{}", query.join("&")), None)
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
        let filter =
            |(field, operator, value): &(String, &str, Value)| json!({ "field": field, "operator": operator, "value": value });
        arguments.insert("filters".to_owned(), self.filters.iter().map(filter).collect());
        if let Some(condition) = &self.condition {
            arguments.insert("where".to_owned(), condition.clone());
        }
        if let Some((page, size)) = self.page {
            arguments.extend([("page".to_owned(), json!(page)), ("page_size".to_owned(), json!(size))]);
        }
        (if self.kind == Kind::List { "query_data" } else { "aggregate_data" }, Value::Object(arguments))
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
        if let Some(size) = members.remove("page_size") {
            members.insert("pageSize".to_owned(), size);
        }
        let op = if self.kind == Kind::List { "query" } else { "aggregate" };
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

    /// The document and the variables for GraphQL. `None` if it has no form for the request.
    pub(super) fn graphql(&self, state: &State, caller: &Caller) -> Option<Value> {
        let object = &state.world.objects[self.object].name;
        let selection = self.selection(state, caller, self.object, self.select.as_deref(), &self.expand);
        let mut arguments = Vec::new();
        if let Kind::Get(id) = &self.kind {
            return Some(json!({ "query": format!("{{ {object}_by_id(id: {}) {{ {selection} }} }}", json!(id)) }));
        }
        let filters: Vec<String> = self
            .filters
            .iter()
            .map(|(field, operator, value)| format!("{{ field: {}, operator: {operator}, value: {value} }}", json!(field)))
            .collect();
        arguments.push(format!("filter: [{}]", filters.join(", ")));
        arguments.extend(self.search.iter().map(|term| format!("search: {}", json!(term))));
        let mut variables = Value::Null;
        let mut head = String::new();
        if let Some(condition) = &self.condition {
            variables = json!({ "where": graphql::typed(&state.world, self.object, condition)? });
            arguments.push("where: $where".to_owned());
            head = format!("query($where: {}_Where) ", type_name(object));
        }
        let (name, selection) = match &self.kind {
            Kind::Aggregate(function, field) => {
                arguments.push(format!("fn: {function}"));
                arguments.extend(field.iter().map(|field| format!("field: {}", json!(field))));
                (format!("{object}_aggregate"), "fn field value filteredCount".to_owned())
            }
            _ => {
                let sort = self.sort.iter().map(|key| match key.strip_prefix('-') {
                    Some(field) => format!("{{ field: {}, direction: desc }}", json!(field)),
                    None => format!("{{ field: {} }}", json!(key)),
                });
                arguments.push(format!("sort: [{}]", sort.collect::<Vec<_>>().join(", ")));
                arguments.extend(self.page.iter().map(|(page, size)| format!("page: {page}, pageSize: {size}")));
                let pagination = "pagination { page pageSize totalCount totalPages hasNextPage hasPreviousPage }";
                (object.clone(), format!("data {{ {selection} }} {pagination}"))
            }
        };
        let query = format!("{head}{{ {name}({}) {{ {selection} }} }}", arguments.join(", "));
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
        add(&|read| read.page = None);
        add(&|read| read.counts = true);
        for place in 0..self.filters.len() {
            add(&|read| drop(read.filters.remove(place)));
        }
        for place in 0..self.expand.len() {
            add(&|read| drop(read.expand.remove(place)));
            add(&|read| read.expand[place].truncate(1));
        }
        all
    }
}

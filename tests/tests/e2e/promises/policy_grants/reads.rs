//! The reference for reads: lists, single records and aggregates.

use std::cmp::Ordering;
use std::collections::BTreeSet;

use serde_json::{Map, Value, json};

use super::exports::Export;
use super::grants::{Caller, View};
use super::groups::{Groups, plain};
use super::walks::Step;
use super::worlds::USERS;
use super::{Expected, Refusal, State};
use crate::promises::conditions::cells::Cell;
use crate::promises::conditions::model::{Condition, End, Eyes, Place, Row};

#[derive(Clone, Debug, PartialEq)]
pub(super) enum Kind {
    List,
    Get(String),
    /// The function and its field.
    Aggregate(&'static str, Option<String>),
    Groups(Groups),
    /// A page by cursors.
    Walk(Step),
    Export(Export),
}

/// The rows of a list that a page shows.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Window {
    /// The number of the page, from 1, and its size.
    Page(usize, usize),
    /// The number of rows before the page, and its size.
    Offset(usize, usize),
}

impl Window {
    /// The window of a request without one.
    const DEFAULT: Window = Window::Page(1, 25);

    /// The number of rows before the page, and its size.
    pub(super) fn place(self) -> (usize, usize) {
        match self {
            Window::Page(number, size) => ((number - 1) * size, size),
            Window::Offset(offset, size) => (offset, size),
        }
    }
}

#[derive(Clone, Debug)]
pub(super) struct Read {
    pub(super) object: usize,
    pub(super) kind: Kind,
    /// Each filter has a field, an operator and a value.
    pub(super) filters: Vec<(String, &'static str, Value)>,
    pub(super) condition: Option<Value>,
    pub(super) search: Option<String>,
    /// The fields, or the keys of groups, with a `-` for descending order.
    pub(super) sort: Vec<String>,
    pub(super) select: Option<Vec<String>>,
    pub(super) expand: Vec<Vec<String>>,
    pub(super) window: Option<Window>,
    pub(super) counts: bool,
}

impl Read {
    /// The fields that the read names besides those of its conditions.
    fn named(&self) -> Vec<&str> {
        let sorted = self.sort.iter().map(|key| key.trim_start_matches('-'));
        let selected = self.select.iter().flatten().map(String::as_str);
        match &self.kind {
            Kind::Aggregate(_, field) => field.iter().map(String::as_str).collect(),
            // The sort names keys of the groups.
            Kind::Groups(groups) => groups.fields().collect(),
            Kind::List | Kind::Get(_) | Kind::Walk(_) | Kind::Export(_) => sorted.chain(selected).collect(),
        }
    }
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

    /// All reasons to refuse a read because of its names, and its conditions.
    fn checked(&self, caller: &Caller, read: &Read) -> (Vec<Refusal>, Vec<Condition>) {
        let object = read.object;
        if !caller.may(object, "read") {
            return (vec![caller.denied()], Vec::new());
        }
        let mut refusals = Vec::new();
        if read.expand.iter().any(|path| self.path(caller, object, path) == Standing::Forbidden) {
            refusals.push(caller.denied());
        }
        let mut conditions = Vec::new();
        for condition in read.condition.iter().cloned().chain([self.filter_condition(read)]) {
            let condition = self.world.read(&caller.reader, object, &condition).expect("a valid condition").0;
            refusals.extend(self.refusals_of_condition(caller, object, &condition));
            conditions.push(condition);
        }
        let unknown = read.named().into_iter().filter(|name| !caller.knows(object, name));
        refusals.extend(unknown.map(|name| Refusal::of(400, "unknown_field", name)));
        if caller.credential.is_none() {
            refusals.iter_mut().filter(|refusal| refusal.status == 403).for_each(|refusal| *refusal = caller.denied());
        }
        (refusals, conditions)
    }

    /// The rows that a read finds, without an order. The error has all reasons to refuse the read.
    fn rows(&self, caller: &Caller, view: &View<'_>, read: &Read) -> Result<Vec<&Row>, Vec<Refusal>> {
        let (refusals, conditions) = self.checked(caller, read);
        if !refusals.is_empty() {
            return Err(refusals);
        }
        let object = read.object;
        let mut found = self.found(view, object, &conditions);
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
        Ok(found)
    }

    /// The rows of a list, in its order. The error has all reasons to refuse the list.
    pub(super) fn listed(&self, caller: &Caller, view: &View<'_>, read: &Read) -> Result<Vec<&Row>, Vec<Refusal>> {
        let object = read.object;
        let mut found = self.rows(caller, view, read)?;
        // Users have no moment of creation.
        let has_moment = self.columns(caller, object).any(|name| name == "created_at");
        let default = if has_moment { "-created_at" } else { "id" };
        let sort = if read.sort.is_empty() { vec![default.to_owned()] } else { read.sort.clone() };
        found.sort_by(|one, other| self.order(view, object, &sort, one, other));
        Ok(found)
    }

    /// The records of a list, in its order. The error has all reasons to refuse the list.
    pub(super) fn records(&self, caller: &Caller, read: &Read) -> Result<Vec<Value>, Vec<Refusal>> {
        let view = caller.view(&self.world);
        let rows = self.listed(caller, &view, read)?.into_iter();
        Ok(rows.map(|row| self.record((caller, &view), read.object, row, read.select.as_deref(), &read.expand)).collect())
    }

    /// Whether a relation key of a read is unknown, so that its response has warnings.
    pub(super) fn warns(&self, caller: &Caller, read: &Read) -> bool {
        read.expand.iter().any(|path| self.path(caller, read.object, path) == Standing::Unknown)
    }

    pub(super) fn expected(&self, caller: &Caller, read: &Read) -> Expected {
        let object = read.object;
        let view = caller.view(&self.world);
        let expected = match &read.kind {
            Kind::Get(id) => return self.expected_record(caller, &view, read, id),
            Kind::Aggregate(function, field) => self.rows(caller, &view, read).map(|found| {
                let data = aggregate(&view, object, &found, (*function, field.as_deref()));
                Expected::fine(200, json!({ "data": data }), false)
            }),
            Kind::Groups(groups) => self.rows(caller, &view, read).map(|found| {
                let all = groups.of((self, caller, &view), object, &found, &read.sort);
                Expected::fine(200, plain(&page(all, read)), false)
            }),
            Kind::List | Kind::Walk(_) | Kind::Export(_) => {
                self.records(caller, read).map(|records| Expected::fine(200, page(records, read), self.warns(caller, read)))
            }
        };
        expected.unwrap_or_else(Expected::Refused)
    }

    fn expected_record(&self, caller: &Caller, view: &View<'_>, read: &Read, id: &str) -> Expected {
        let (mut refusals, _) = self.checked(caller, read);
        if !caller.may(read.object, "read") {
            return Expected::Refused(refusals);
        }
        let row = self.row(read.object, id).filter(|row| view.sees(read.object, row));
        let Some(row) = row.filter(|_| refusals.is_empty()) else {
            refusals.push(Refusal::new(404, "not_found"));
            return Expected::Refused(refusals);
        };
        let record = self.record((caller, view), read.object, row, None, &read.expand);
        Expected::fine(200, json!({ "data": record }), self.warns(caller, read))
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

/// A page of the records or groups of a request, with its pagination.
fn page(all: Vec<Value>, read: &Read) -> Value {
    let (begin, size) = read.window.unwrap_or(Window::DEFAULT).place();
    let count = all.len();
    let total = |count: usize| if read.counts { json!(count) } else { Value::Null };
    json!({
        "data": all.into_iter().skip(begin).take(size).collect::<Vec<_>>(),
        "pagination": {
            "page": begin / size + 1,
            "pageSize": size,
            "totalCount": total(count),
            "totalPages": total(count.div_ceil(size)),
            "hasNextPage": begin + size < count,
            "hasPreviousPage": begin > 0,
        },
    })
}

/// The answer of one function over all found rows.
fn aggregate(view: &View<'_>, object: usize, found: &[&Row], (function, field): (&str, Option<&str>)) -> Value {
    let values = |field: &str| {
        let values = found.iter().map(|row| view.value(object, row, field)).filter(|value| !value.is_null());
        values.collect::<Vec<_>>()
    };
    let numbers = |field: &str| values(field).into_iter().filter_map(Value::as_i64).collect::<Vec<_>>();
    let value = match (function, field) {
        ("count", None) => json!(found.len()),
        ("count", Some(field)) => json!(values(field).len()),
        ("sum", Some(field)) if !numbers(field).is_empty() => json!(numbers(field).iter().sum::<i64>()),
        ("min", Some(field)) => json!(numbers(field).iter().min()),
        ("max", Some(field)) => json!(numbers(field).iter().max()),
        _ => Value::Null,
    };
    json!({ "fn": function, "field": field, "value": value, "filteredCount": found.len() })
}

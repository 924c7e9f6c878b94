//! The reference for writes: which writes are refused and why, the rows after a write, and its events.

use std::collections::BTreeSet;

use serde_json::{Map, Value, json};

use super::grants::{Caller, Unfit, View};
use super::worlds::SYSTEM;
use super::{Expected, Got, Refusal, State};
use crate::promises::conditions::model::{Everything, Eyes, Place, Row};

#[derive(Clone, Debug)]
pub(super) enum Chosen {
    Ids(Vec<String>),
    Where(Value),
}

impl Chosen {
    /// The member of a request that chooses the records.
    pub(super) fn member(&self) -> (&'static str, Value) {
        match self {
            Chosen::Ids(ids) => ("ids", json!(ids)),
            Chosen::Where(condition) => ("where", condition.clone()),
        }
    }
}

#[derive(Clone, Debug)]
pub(super) enum Verb {
    Create(Map<String, Value>),
    CreateMany(Vec<Map<String, Value>>),
    Update(String, Map<String, Value>),
    /// The unique column, and the values.
    Upsert(&'static str, Map<String, Value>),
    Delete(String),
    UpdateMany(Chosen, Map<String, Value>),
    DeleteMany(Chosen),
    /// The record, the relation key, and the ids. The flag tells whether links are removed.
    Link(String, String, Vec<String>, bool),
}

#[derive(Clone, Debug)]
pub(super) struct Write {
    pub(super) object: usize,
    pub(super) verb: Verb,
}

/// An event that a write emits. Its images are not here, because they are those of the admin's events.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Emitted {
    pub(super) object: usize,
    pub(super) op: &'static str,
    pub(super) id: String,
    /// The relation key, and the targets.
    pub(super) links: Option<(String, BTreeSet<String>)>,
}

/// The state after a write. Ids of new rows are placeholders until the response contains them.
pub(super) struct Left {
    pub(super) state: State,
    pub(super) emitted: Vec<Emitted>,
    pub(super) answer: Answered,
}

/// The response of a write.
pub(super) enum Answered {
    Record { status: u16, object: usize, id: String, sent: Map<String, Value>, created: Option<bool> },
    Ids { status: u16, ids: Vec<String>, is_ordered: bool },
    Nothing,
    Number(&'static str, usize),
}

/// The id of a new row before the response has its id.
pub(super) fn placeholder(number: usize) -> String {
    format!("ffffffff-ffff-4fff-8fff-{number:012}")
}

/// Whether a value of a change adds to the value that is there.
pub(super) fn is_sum(value: &Value) -> bool {
    value.is_object()
}

struct Call<'a> {
    caller: &'a Caller,
    view: View<'a>,
    before: &'a State,
    state: State,
    refusals: Vec<Refusal>,
    emitted: Vec<Emitted>,
    /// The rows to check at the end of the call: the object, the action, the id, and the fields that the call named.
    checks: Vec<(usize, &'static str, String, BTreeSet<String>)>,
}

impl State {
    pub(super) fn row(&self, object: usize, id: &str) -> Option<&Row> {
        self.world.rows[object].iter().find(|row| row.id == id)
    }

    /// The columns whose values are unique.
    fn unique(&self, object: usize) -> Vec<String> {
        let of_relations =
            self.world.relations.iter().filter(|relation| relation.kind == "one_to_one" && relation.source == object);
        of_relations.map(|relation| relation.column()).chain(["code".to_owned(), "id".to_owned()]).collect()
    }

    /// The columns that need a value.
    pub(super) fn required(&self, object: usize) -> Vec<String> {
        let relations = self.world.relations.iter().zip(&self.rules);
        let of_relations = relations.filter(|(relation, rules)| rules.is_required && relation.sides().0 == object);
        of_relations.map(|(relation, _)| relation.column()).chain(["title".to_owned()]).collect()
    }

    /// The outcome of a write, or all reasons to refuse it.
    pub(super) fn write(&self, caller: &Caller, write: &Write) -> Result<Left, Vec<Refusal>> {
        let mut call = Call {
            caller,
            view: caller.view(&self.world),
            before: self,
            state: self.clone(),
            refusals: Vec::new(),
            emitted: Vec::new(),
            checks: Vec::new(),
        };
        let answer = call.run(write.object, &write.verb);
        call.check();
        if let Verb::Upsert(_, values) = &write.verb
            && call.refusals.iter().any(|refusal| refusal.code == "forbidden")
        {
            // Any named field that a grant for one of the actions lacks may be reported.
            for action in ["create", "update"] {
                let lacking = values.keys().filter(|name| caller.lacks(write.object, action, name));
                call.refusals.extend(lacking.map(|name| Refusal::of(403, "forbidden", name)));
            }
        }
        match (call.refusals.is_empty(), answer) {
            (true, Some(answer)) => Ok(Left { state: call.state, emitted: call.emitted, answer }),
            _ => Err(call.refusals),
        }
    }
}

impl Call<'_> {
    fn refuse(&mut self, status: u16, code: &'static str) {
        self.refusals.push(Refusal::new(status, code));
    }

    fn refuse_field(&mut self, status: u16, code: &'static str, field: &str) {
        self.refusals.push(Refusal::of(status, code, field));
    }

    fn may(&mut self, object: usize, action: &str) -> bool {
        let may = self.caller.may(object, action);
        if !may {
            self.refusals.push(self.caller.denied());
        }
        may
    }

    fn run(&mut self, object: usize, verb: &Verb) -> Option<Answered> {
        match verb {
            Verb::Create(values) => {
                let id = self.create(object, values, 0)?;
                Some(Answered::Record { status: 201, object, id, sent: values.clone(), created: None })
            }
            Verb::CreateMany(rows) => {
                let ids = rows.iter().enumerate().map(|(number, values)| self.create(object, values, number));
                Some(Answered::Ids { status: 201, ids: ids.collect::<Option<_>>()?, is_ordered: true })
            }
            Verb::Update(id, values) => {
                self.may(object, "update").then_some(())?;
                self.names(object, "update", values);
                if !self.reached(object, "update", id) {
                    self.refuse(404, "not_found");
                    return None;
                }
                self.update(object, id, values);
                Some(Answered::Record { status: 200, object, id: id.clone(), sent: values.clone(), created: None })
            }
            Verb::Upsert(target, values) => self.upsert(object, target, values),
            Verb::Delete(id) => {
                self.may(object, "delete").then_some(())?;
                if !self.reached(object, "delete", id) {
                    self.refuse(404, "not_found");
                    return None;
                }
                self.delete(object, std::slice::from_ref(id));
                Some(Answered::Nothing)
            }
            Verb::UpdateMany(chosen, values) => {
                self.may(object, "update").then_some(())?;
                self.names(object, "update", values);
                let ids = self.chosen(object, "update", chosen)?;
                for id in &ids {
                    self.update(object, id, values);
                }
                Some(Answered::Ids { status: 200, ids, is_ordered: matches!(chosen, Chosen::Ids(_)) })
            }
            Verb::DeleteMany(chosen) => {
                self.may(object, "delete").then_some(())?;
                let ids = self.chosen(object, "delete", chosen)?;
                self.delete(object, &ids);
                Some(Answered::Ids { status: 200, ids, is_ordered: matches!(chosen, Chosen::Ids(_)) })
            }
            Verb::Link(id, key, ids, is_removal) => self.link(object, id, key, ids, *is_removal),
        }
    }

    fn reached(&self, object: usize, action: &str, id: &str) -> bool {
        let row = self.before.row(object, id);
        row.is_some_and(|row| self.caller.reaches(&self.before.world, object, action, row))
    }

    /// Refuses fields that no grant lists, and nulls in required fields.
    fn names(&mut self, object: usize, action: &str, values: &Map<String, Value>) {
        for (name, value) in values {
            if !self.caller.may_write(object, action, name) {
                self.refuse_field(403, "forbidden", name);
                // A grant that includes no row may not count, no matter which fields it lists.
                if self.caller.has_valueless(object, action) {
                    self.refuse(403, "forbidden");
                }
            }
            // If a caller may read nothing of the object, they may add to a value without reading it.
            if is_sum(value) && self.caller.may(object, "read") && !self.caller.knows(object, name) {
                self.refuse_field(403, "forbidden", name);
            }
            if value.is_null() && self.before.required(object).contains(name) {
                self.refuse_field(400, "not_null_violation", name);
            }
        }
    }

    /// Refuses references to rows that the caller may not see.
    fn references(&mut self, object: usize, values: &Map<String, Value>) {
        for relation in self.before.world.relations.iter().filter(|relation| !relation.is_links()) {
            let (holder, referred) = relation.sides();
            let column = relation.column();
            let Some(id) = values.get(&column).and_then(Value::as_str).filter(|_| holder == object) else { continue };
            let is_seen = self.before.row(referred, id).is_some_and(|row| self.view.sees(referred, row));
            if !is_seen {
                self.refuse_field(409, "foreign_key_violation", &column);
            }
        }
    }

    /// Refuses values that another row already has.
    fn duplicates(&mut self, object: usize, id: &str) {
        let rows = &self.state.world.rows[object];
        let Some(row) = rows.iter().find(|row| row.id == id) else { return };
        let mut taken = Vec::new();
        for column in self.state.unique(object) {
            let value = &row.values[&column];
            let is_taken = |other: &Row| !std::ptr::eq(other, row) && other.values[&column] == *value;
            if !value.is_null() && rows.iter().any(is_taken) {
                taken.push(column);
            }
        }
        taken.iter().for_each(|column| self.refuse_field(409, "unique_violation", column));
    }

    fn create(&mut self, object: usize, values: &Map<String, Value>, number: usize) -> Option<String> {
        self.may(object, "create").then_some(())?;
        let values: Map<String, Value> =
            values.iter().filter(|(name, _)| *name != "id").map(|(name, value)| (name.clone(), value.clone())).collect();
        self.names(object, "create", &values);
        for name in self.before.required(object) {
            if values.get(&name).is_none_or(Value::is_null) {
                self.refuse_field(400, "not_null_violation", &name);
            }
        }
        self.insert(object, &values, placeholder(number));
        Some(placeholder(number))
    }

    fn insert(&mut self, object: usize, values: &Map<String, Value>, id: String) {
        self.references(object, values);
        let columns = &self.before.world.objects[object].columns;
        let mut row: Map<String, Value> = columns.iter().map(|column| (column.name.clone(), Value::Null)).collect();
        row.insert("kind".to_owned(), json!("red"));
        row.extend(values.clone());
        for name in ["created_by", "updated_by"] {
            row.insert(name.to_owned(), json!(self.caller.user));
        }
        // The moments are known only after the response. Until then, they are later than all others.
        for name in ["created_at", "updated_at"] {
            row.insert(name.to_owned(), json!("2100-01-01T00:00:00.000Z"));
        }
        row.insert("id".to_owned(), json!(id));
        self.state.world.rows[object].push(Row { id: id.clone(), maker: 0, values: row });
        self.duplicates(object, &id);
        self.emit(object, "created", &id);
        self.checks.push((object, "create", id, values.keys().cloned().collect()));
    }

    fn update(&mut self, object: usize, id: &str, values: &Map<String, Value>) {
        let old = self.before.row(object, id).expect("the row");
        let is_seen = self.view.sees(object, old);
        for (name, _) in values.iter().filter(|(_, value)| is_sum(value)) {
            // The specification demands read on the column. But if no grant lists fields, a hidden row does not prevent the
            // addition.
            let is_hidden = is_seen || (self.caller.may(object, "read") && !self.caller.knows_all(object));
            if is_hidden && !self.view.shows(object, old, name) {
                self.refuse_field(403, "forbidden", name);
            }
        }
        self.references(object, values);
        let row = self.state.world.rows[object].iter_mut().find(|row| row.id == id).expect("the row");
        for (name, value) in values {
            let new = match value.get("$inc").and_then(Value::as_i64) {
                Some(more) => row.values[name].as_i64().map_or(Value::Null, |known| json!(known + more)),
                None => value.clone(),
            };
            row.values.insert(name.clone(), new);
        }
        row.values.insert("updated_by".to_owned(), json!(self.caller.user));
        self.duplicates(object, id);
        self.emit(object, "updated", id);
        self.checks.push((object, "update", id.to_owned(), values.keys().cloned().collect()));
    }

    fn upsert(&mut self, object: usize, target: &str, values: &Map<String, Value>) -> Option<Answered> {
        let may = (self.may(object, "create"), self.may(object, "update"));
        (may == (true, true)).then_some(())?;
        if self.caller.may(object, "read") && !self.caller.knows(object, target) {
            self.refuse_field(403, "forbidden", target);
        }
        let sent = values.clone();
        let mut values = values.clone();
        let named = values.remove("id").filter(|_| target == "id");
        let wanted = named.clone().unwrap_or_else(|| values.get(target).cloned().unwrap_or(Value::Null));
        let known = self.before.world.rows[object].iter().find(|row| !wanted.is_null() && row.values[target] == wanted);
        // Without these values, the statement could not insert a row.
        for name in self.before.required(object) {
            if values.get(&name).is_none_or(Value::is_null) {
                self.refuse_field(400, "not_null_violation", &name);
            }
        }
        // The server demands both rights, whether the upsert inserts or updates. The specification leaves that open.
        self.names(object, "create", &values);
        self.names(object, "update", &values);
        let Some(known) = known.cloned() else {
            let id = named.map_or_else(|| placeholder(0), |id| id.as_str().expect("a text").to_owned());
            self.insert(object, &values, id.clone());
            return Some(Answered::Record { status: 201, object, id, sent, created: Some(true) });
        };
        if !self.reached(object, "update", &known.id) {
            self.refuse(403, "forbidden");
            return None;
        }
        let is_hidden = self.view.sees(object, &known) || (self.caller.may(object, "read") && !self.caller.knows_all(object));
        if is_hidden && !self.view.shows(object, &known, target) {
            self.refuse_field(403, "forbidden", target);
        }
        self.update(object, &known.id, &values);
        Some(Answered::Record { status: 200, object, id: known.id, sent, created: Some(false) })
    }

    /// The ids of the rows that a call for many rows changes.
    fn chosen(&mut self, object: usize, action: &str, chosen: &Chosen) -> Option<Vec<String>> {
        let ids = match chosen {
            Chosen::Ids(ids) => ids.clone(),
            Chosen::Where(condition) => {
                self.may(object, "read").then_some(())?;
                let (condition, size) =
                    self.before.world.read(&self.caller.reader, object, condition).expect("a valid condition");
                if size.leaves == 0 {
                    self.refuse(400, "invalid_request");
                }
                // The server also refuses conditions whose form shows that every row meets them, such as `{ "_or": [{}, …] }`.
                let is_for_all = self.before.world.holds(&Everything, &condition, object, Place::Gone) == Some(true);
                if is_for_all {
                    self.refuse(400, "invalid_request");
                }
                let refusals = self.before.refusals_of_condition(self.caller, object, &condition);
                self.refusals.extend(refusals);
                let found = self.before.found(&self.view, object, &[condition]);
                found.into_iter().map(|row| row.id.clone()).collect()
            }
        };
        let mut all: Vec<String> = Vec::new();
        for id in ids {
            if !all.contains(&id) && self.reached(object, action, &id) {
                all.push(id);
            }
        }
        Some(all)
    }

    fn emit(&mut self, object: usize, op: &'static str, id: &str) {
        let event = Emitted { object, op, id: id.to_owned(), links: None };
        if !self.emitted.contains(&event) {
            self.emitted.push(event);
        }
    }

    fn delete(&mut self, object: usize, ids: &[String]) {
        let mut gone: Vec<(usize, String)> = ids.iter().map(|id| (object, id.clone())).collect();
        let mut place = 0;
        while let Some((object, id)) = gone.get(place).cloned() {
            place += 1;
            let relations: Vec<_> = self.before.world.relations.iter().zip(&self.before.rules).collect();
            for (relation, rules) in relations.into_iter().filter(|(relation, _)| !relation.is_links()) {
                let (holder, referred) = relation.sides();
                if referred != object {
                    continue;
                }
                let refer = |row: &&Row| row.values[&relation.column()] == id.as_str();
                let referring: Vec<String> =
                    self.before.world.rows[holder].iter().filter(refer).map(|row| row.id.clone()).collect();
                for other in referring {
                    match rules.on_delete {
                        "cascade" if !gone.contains(&(holder, other.clone())) => gone.push((holder, other)),
                        "cascade" => {}
                        "restrict" => self.refuse(409, "foreign_key_violation"),
                        _ => {
                            let row = self.state.world.rows[holder].iter_mut().find(|row| row.id == other).expect("the row");
                            row.values.insert(relation.column(), Value::Null);
                            row.values.insert("updated_by".to_owned(), json!(self.caller.user));
                            self.emit(holder, "updated", &other);
                        }
                    }
                }
            }
        }
        // If a row is deleted itself, it is not changed before that.
        self.emitted.retain(|event| !gone.contains(&(event.object, event.id.clone())));
        for (object, id) in &gone {
            for (place, relation) in self.before.world.relations.iter().enumerate().filter(|(_, relation)| relation.is_links()) {
                let links = || self.before.world.links.iter().filter(move |(of, ..)| *of == place);
                let is_gone = |object: usize, id: &str| gone.iter().any(|(of, other)| (*of, other.as_str()) == (object, id));
                let mut events = Vec::new();
                if relation.source == *object {
                    let targets = links().filter(|(_, source, _)| source == id).map(|(.., target)| target.clone());
                    events.push((id.clone(), targets.collect::<BTreeSet<_>>()));
                }
                if relation.target == *object {
                    let sources = links().filter(|(_, source, target)| target == id && !is_gone(relation.source, source));
                    let sources: BTreeSet<String> = sources.map(|(_, source, _)| source.clone()).collect();
                    match relation.source == relation.target {
                        // Only the source shows the relation.
                        true => events.extend(sources.into_iter().map(|source| (source, BTreeSet::from([id.clone()])))),
                        false => events.push((id.clone(), sources)),
                    }
                }
                for (id, targets) in events.into_iter().filter(|(_, targets)| !targets.is_empty()) {
                    let known = self
                        .emitted
                        .iter_mut()
                        .find(|event| event.id == id && event.links.as_ref().is_some_and(|(key, _)| *key == relation.name));
                    match known {
                        Some(event) => event.links.as_mut().expect("links").1.extend(targets),
                        None => self.emitted.push(Emitted {
                            object: *object,
                            op: "unlinked",
                            id,
                            links: Some((relation.name.clone(), targets)),
                        }),
                    }
                }
            }
            self.emit(*object, "deleted", id);
        }
        for (object, id) in &gone {
            let row = self.before.row(*object, id).expect("the row");
            self.state.owners.insert(id.clone(), row.values["created_by"].as_str().map(str::to_owned));
            self.state.world.rows[*object].retain(|row| row.id != *id);
        }
        let relations = self.before.world.relations.clone();
        let is_gone = |object: usize, id: &str| gone.iter().any(|(of, other)| (*of, other.as_str()) == (object, id));
        self.state.world.links.retain(|(place, source, target)| {
            !is_gone(relations[*place].source, source) && !is_gone(relations[*place].target, target)
        });
    }

    fn link(&mut self, object: usize, id: &str, key: &str, ids: &[String], is_removal: bool) -> Option<Answered> {
        let end = self.before.end(object, key).expect("a relation key");
        let may = (self.may(object, "update"), self.may(end.object, "read"));
        if !self.caller.may_write(object, "update", key) {
            self.refuse_field(403, "forbidden", key);
        }
        (may == (true, true)).then_some(())?;
        if !self.reached(object, "update", id) {
            self.refuse(404, "not_found");
            return None;
        }
        let mut changed = BTreeSet::new();
        for other in ids {
            let is_seen = self.before.row(end.object, other).is_some_and(|row| self.view.sees(end.object, row));
            if !is_seen && !is_removal {
                self.refuse_field(409, "foreign_key_violation", "ids");
            }
            if !is_seen {
                continue;
            }
            let (source, target) = if end.is_forward { (id, other.as_str()) } else { (other.as_str(), id) };
            let link = (end.relation, source.to_owned(), target.to_owned());
            let is_changed = if is_removal { self.state.world.links.remove(&link) } else { self.state.world.links.insert(link) };
            if is_changed {
                changed.insert(other.clone());
            }
        }
        let (op, name) = if is_removal { ("unlinked", "removed") } else { ("linked", "added") };
        let count = changed.len();
        if count > 0 {
            self.emitted.push(Emitted { object, op, id: id.to_owned(), links: Some((key.to_owned(), changed)) });
        }
        self.checks.push((object, "update", id.to_owned(), BTreeSet::from([key.to_owned()])));
        Some(Answered::Number(name, count))
    }

    /// At the end of the call, one grant has to accept each written row.
    fn check(&mut self) {
        for (object, action, id, fields) in std::mem::take(&mut self.checks) {
            let Some(new) = self.state.row(object, &id) else { continue };
            let old = self.before.row(object, &id).filter(|_| action == "update");
            let worlds = (&self.before.world, &self.state.world);
            for unfit in self.caller.fits(worlds, (object, action), (old, new), &fields) {
                match unfit {
                    // Any named field that a grant lacks may be reported.
                    Unfit::Check => {
                        self.refuse(403, "forbidden");
                        let lacking = fields.iter().filter(|field| self.caller.lacks(object, action, field));
                        self.refusals.extend(lacking.map(|field| Refusal::of(403, "forbidden", field)));
                    }
                    Unfit::Fields(fields) => {
                        fields.iter().for_each(|field| self.refuse_field(403, "forbidden", field));
                    }
                }
            }
        }
    }
}

impl Answered {
    /// Replaces placeholders with the ids of new rows.
    pub(super) fn rename(&mut self, names: &[(String, String)]) {
        let new = |id: &mut String| {
            if let Some((_, name)) = names.iter().find(|(old, _)| old == id) {
                id.clone_from(name);
            }
        };
        match self {
            Answered::Record { id, .. } => new(id),
            Answered::Ids { ids, .. } => ids.iter_mut().for_each(new),
            Answered::Nothing | Answered::Number(..) => {}
        }
    }

    /// The response to a caller, with the state after the write.
    pub(super) fn expected(&self, state: &State, caller: &Caller) -> Expected {
        match self {
            Answered::Nothing => Expected::fine(204, Value::Null, false),
            Answered::Number(name, count) => Expected::fine(200, json!({ "data": { *name: count } }), false),
            Answered::Ids { status, ids, is_ordered } => {
                let mut ids = ids.clone();
                if !is_ordered {
                    ids.sort();
                }
                Expected::fine(*status, json!({ "count": ids.len(), "ids": ids }), false)
            }
            Answered::Record { status, object, id, sent, created } => {
                let view = caller.view(&state.world);
                let row = state.row(*object, id).expect("the row");
                let data = match view.sees(*object, row) {
                    true => state.record((caller, &view), *object, row, None, &[]),
                    // A caller whose rights on the object depend on no condition and no list of fields sees the whole new record.
                    false if *status == 201 && !caller.has_conditions_on(*object) => json!(row.values),
                    false => {
                        let is_system = |name: &str| SYSTEM.iter().any(|(system, _)| *system == name);
                        let mut data: Map<String, Value> = sent
                            .iter()
                            .filter(|(name, value)| !is_sum(value) && !is_system(name))
                            .map(|(name, value)| (name.clone(), value.clone()))
                            .collect();
                        data.insert("id".to_owned(), json!(id));
                        Value::Object(data)
                    }
                };
                let mut body = json!({ "data": data });
                if let Some(created) = created {
                    body["created"] = json!(created);
                }
                Expected::fine(*status, body, false)
            }
        }
    }
}

impl Write {
    /// The method, the path and the body for REST.
    pub(super) fn rest(&self, object: &str) -> (&'static str, String, Option<Value>) {
        let path = format!("/api/v1/data/{object}");
        let many = |chosen: &Chosen| {
            let (name, value) = chosen.member();
            json!({ name: value })
        };
        match &self.verb {
            Verb::Create(values) => ("POST", path, Some(json!(values))),
            Verb::CreateMany(rows) => ("POST", format!("{path}/bulk"), Some(json!({ "data": rows }))),
            Verb::Update(id, values) => ("PATCH", format!("{path}/{id}"), Some(json!(values))),
            Verb::Upsert(target, values) => ("POST", format!("{path}?on_conflict={target}"), Some(json!(values))),
            Verb::Delete(id) => ("DELETE", format!("{path}/{id}"), None),
            Verb::UpdateMany(chosen, values) => {
                let mut body = many(chosen);
                body["values"] = json!(values);
                ("PATCH", format!("{path}/bulk"), Some(body))
            }
            Verb::DeleteMany(chosen) => ("DELETE", format!("{path}/bulk"), Some(many(chosen))),
            Verb::Link(id, key, ids, is_removal) => {
                let method = if *is_removal { "DELETE" } else { "POST" };
                (method, format!("{path}/{id}/links/{key}"), Some(json!({ "ids": ids })))
            }
        }
    }

    /// The input of the block `parity`, which runs the write with the data interface. `None` if the interface does not have it.
    pub(super) fn block(&self, object: &str) -> Option<Value> {
        let text = |values: &Map<String, Value>| json!(values).to_string();
        Some(match &self.verb {
            Verb::Create(values) => json!({ "op": "create", "object": object, "json": text(values) }),
            Verb::CreateMany(rows) => json!({ "op": "create_many", "object": object, "json": json!(rows).to_string() }),
            Verb::Update(id, values) => json!({ "op": "update", "object": object, "id": id, "json": text(values) }),
            Verb::Upsert(target, values) => {
                json!({ "op": "upsert", "object": object, "json": text(values), "on_conflict": [target] })
            }
            Verb::Delete(id) => json!({ "op": "delete", "object": object, "id": id }),
            Verb::DeleteMany(Chosen::Ids(ids)) => json!({ "op": "delete_many", "object": object, "ids": ids }),
            Verb::Link(id, key, ids, is_removal) => {
                let op = if *is_removal { "unlink" } else { "link" };
                json!({ "op": op, "object": object, "id": id, "relation": key, "ids": ids })
            }
            Verb::UpdateMany(..) | Verb::DeleteMany(Chosen::Where(_)) => return None,
        })
    }

    /// The result of the block as the response of REST.
    pub(super) fn answered_by_block(&self, done: &Value) -> Got {
        let of_many = |status: u16| {
            let count = done.as_array().expect("ids").len();
            Got { status, json: json!({ "count": count, "ids": done }) }
        };
        match &self.verb {
            Verb::Create(_) => Got { status: 201, json: json!({ "data": done }) },
            Verb::Update(..) => Got { status: 200, json: json!({ "data": done }) },
            Verb::Upsert(..) => Got { status: if done["created"] == true { 201 } else { 200 }, json: done.clone() },
            // For a block, a missing record is not an error.
            Verb::Delete(_) if *done == false => Got { status: 404, json: json!({ "error": "not_found" }) },
            Verb::Delete(_) => Got { status: 204, json: Value::Null },
            Verb::CreateMany(_) => of_many(201),
            Verb::DeleteMany(_) => of_many(200),
            Verb::Link(.., is_removal) => {
                let name = if *is_removal { "removed" } else { "added" };
                Got { status: 200, json: json!({ "data": { name: done } }) }
            }
            Verb::UpdateMany(..) => unreachable!("blocks have no update of many records"),
        }
    }

    /// Writes that lack one part of this write.
    pub(super) fn smaller(&self) -> Vec<Write> {
        let mut all = Vec::new();
        let mut add = |verb: Verb| all.push(Write { object: self.object, verb });
        let without = |values: &Map<String, Value>, name: &String| {
            let mut values = values.clone();
            values.remove(name);
            values
        };
        match &self.verb {
            Verb::Create(values) => values.keys().for_each(|name| add(Verb::Create(without(values, name)))),
            Verb::CreateMany(rows) if rows.len() > 1 => {
                rows.iter().for_each(|row| add(Verb::CreateMany(vec![row.clone()])));
            }
            Verb::Update(id, values) if values.len() > 1 => {
                values.keys().for_each(|name| add(Verb::Update(id.clone(), without(values, name))));
            }
            Verb::Upsert(target, values) => {
                for name in values.keys().filter(|name| name != target) {
                    add(Verb::Upsert(target, without(values, name)));
                }
            }
            Verb::UpdateMany(Chosen::Ids(ids), values) => {
                for id in ids.iter().filter(|_| ids.len() > 1) {
                    add(Verb::UpdateMany(Chosen::Ids(vec![id.clone()]), values.clone()));
                }
                for name in values.keys().filter(|_| values.len() > 1) {
                    add(Verb::UpdateMany(Chosen::Ids(ids.clone()), without(values, name)));
                }
            }
            Verb::DeleteMany(Chosen::Ids(ids)) if ids.len() > 1 => {
                ids.iter().for_each(|id| add(Verb::DeleteMany(Chosen::Ids(vec![id.clone()]))));
            }
            Verb::Link(id, key, ids, is_removal) if ids.len() > 1 => {
                ids.iter().for_each(|other| add(Verb::Link(id.clone(), key.clone(), vec![other.clone()], *is_removal)));
            }
            _ => {}
        }
        all
    }
}

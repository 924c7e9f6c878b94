//! The reference for writes: which writes are refused and why, the rows after a write, and its events.

use std::collections::BTreeSet;

use serde_json::{Map, Value, json};

use super::answers::Answered;
use super::batches::Touched;
use super::grants::{Caller, Unfit, View};
use super::placeholders::placeholder;
use super::verbs::{Chosen, Verb, Write, is_sum};
use super::{Refusal, State};
use crate::promises::conditions::model::{Everything, Eyes, Place, Row};

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

/// A link: the relation, the id of the source, and the id of the target.
pub(super) type Link = (usize, String, String);

/// A row that has to meet a check.
pub(super) struct Check {
    pub(super) object: usize,
    pub(super) action: &'static str,
    pub(super) id: String,
    /// The fields that the call named.
    fields: BTreeSet<String>,
    /// The links that the call named, and whether it made them.
    pub(super) links: BTreeSet<Link>,
    pub(super) makes_links: bool,
}

impl Check {
    fn of_values(object: usize, action: &'static str, id: &str, values: &Map<String, Value>) -> Check {
        let fields = values.keys().cloned().collect();
        Check { object, action, id: id.to_owned(), fields, links: BTreeSet::new(), makes_links: false }
    }
}

/// One write, or one operation of a batch.
pub(super) struct Call<'a> {
    caller: &'a Caller,
    view: View<'a>,
    before: &'a State,
    /// The rows that earlier operations of the batch have made. The caller may refer to them without seeing them.
    made: &'a BTreeSet<String>,
    /// The number of the placeholder of a new row.
    number: usize,
    pub(super) state: State,
    pub(super) refusals: Vec<Refusal>,
    pub(super) emitted: Vec<Emitted>,
    pub(super) checks: Vec<Check>,
    pub(super) touched: Touched,
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
        if let Verb::Batch(operations) = &write.verb {
            return self.batch(caller, operations);
        }
        let made = BTreeSet::new();
        let mut call = Call::new(caller, self, &made, 0);
        let answer = call.run(write.object, &write.verb);
        let Call { state, mut refusals, emitted, checks, .. } = call;
        let unfit = refusals_of_checks(caller, (self, &state), &checks);
        if write.is_dry {
            // A dry run looks at the rows as they are. It tests neither the new rows nor other rows.
            refusals.extend(unfit.fields);
            refusals.retain(|refusal| refusal.status != 409);
        } else {
            refusals.extend(unfit.fields.into_iter().chain(unfit.checks));
        }
        refusals.extend(further_refusals(caller, write.object, &write.verb, &refusals));
        match (refusals.is_empty(), answer) {
            (true, Some(answer)) if write.is_dry => Ok(Left { state: self.clone(), emitted: Vec::new(), answer }),
            (true, Some(answer)) => Ok(Left { state, emitted, answer }),
            _ => Err(refusals),
        }
    }
}

/// The refusals of an upsert in addition to those that are known. Any named field that a grant for one of its actions lacks may be
/// reported.
pub(super) fn further_refusals(caller: &Caller, object: usize, verb: &Verb, known: &[Refusal]) -> Vec<Refusal> {
    let mut refusals = Vec::new();
    if let Verb::Upsert(_, values) = verb
        && known.iter().any(|refusal| refusal.code == "forbidden")
    {
        for action in ["create", "update"] {
            let lacking = values.keys().filter(|name| caller.lacks(object, action, name));
            refusals.extend(lacking.map(|name| Refusal::of(403, "forbidden", name)));
        }
    }
    refusals
}

/// The refusals of rows for which no grant allows a call.
pub(super) struct UnfitRows {
    /// No grant reaches a row and allows all named fields.
    pub(super) fields: Vec<Refusal>,
    /// No grant accepts a row as the call leaves it.
    pub(super) checks: Vec<Refusal>,
}

/// One grant has to accept each written row. `before` is the state that the write found, and `after` the one in which the rows
/// are judged: that at the end of the call, or that before the call writes them again.
pub(super) fn refusals_of_checks(caller: &Caller, (before, after): (&State, &State), checks: &[Check]) -> UnfitRows {
    let mut unfit = UnfitRows { fields: Vec::new(), checks: Vec::new() };
    for check in checks {
        let (object, action, fields) = (check.object, check.action, &check.fields);
        let new = after.row(object, &check.id).expect("a row is judged before it is deleted");
        let old = before.row(object, &check.id).filter(|_| action == "update");
        for found in caller.fits((&before.world, &after.world), (object, action), (old, new), fields) {
            match found {
                // Any named field that a grant lacks may be reported.
                Unfit::Check => {
                    unfit.checks.push(Refusal::new(403, "forbidden"));
                    let lacking = fields.iter().filter(|field| caller.lacks(object, action, field));
                    unfit.checks.extend(lacking.map(|field| Refusal::of(403, "forbidden", field)));
                }
                Unfit::Fields(fields) => {
                    unfit.fields.extend(fields.iter().map(|field| Refusal::of(403, "forbidden", field)));
                }
            }
        }
    }
    unfit
}

impl<'a> Call<'a> {
    pub(super) fn new(caller: &'a Caller, before: &'a State, made: &'a BTreeSet<String>, number: usize) -> Call<'a> {
        Call {
            caller,
            view: caller.view(&before.world),
            before,
            made,
            number,
            state: before.clone(),
            refusals: Vec::new(),
            emitted: Vec::new(),
            checks: Vec::new(),
            touched: Touched::default(),
        }
    }

    /// Whether the caller may refer to a row.
    fn is_known(&self, object: usize, id: &str) -> bool {
        self.made.contains(id) || self.before.row(object, id).is_some_and(|row| self.view.sees(object, row))
    }

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

    pub(super) fn run(&mut self, object: usize, verb: &Verb) -> Option<Answered> {
        match verb {
            Verb::Create(values) => {
                let id = self.create(object, values, self.number)?;
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
                    // A grant that includes no row may not count, so that the others do not allow all fields.
                    self.lacking(object, "update", values);
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
            Verb::Batch(_) => unreachable!("a batch has no batches"),
        }
    }

    fn reached(&self, object: usize, action: &str, id: &str) -> bool {
        let row = self.before.row(object, id);
        row.is_some_and(|row| self.caller.reaches(&self.before.world, object, action, row))
    }

    /// Refuses fields that no grant lists, and nulls in required fields.
    fn names(&mut self, object: usize, action: &str, values: &Map<String, Value>) {
        // If no grant allows all of these fields, no row matters.
        if !self.caller.may_write_all(object, action, values) {
            self.lacking(object, action, values);
        }
        for (name, value) in values {
            if !self.caller.may_write(object, action, name) {
                self.refuse_field(403, "forbidden", name);
                // A grant that includes no row may not count, no matter which fields it lists.
                if self.caller.has_valueless(object, action) {
                    self.refuse(403, "forbidden");
                }
            }
            if is_sum(value) && self.caller.has_conditions_on(object) && !self.caller.knows(object, name) {
                self.refuse_field(403, "forbidden", name);
            }
            if value.is_null() && self.before.required(object).contains(name) {
                self.refuse_field(400, "not_null_violation", name);
            }
        }
    }

    /// Refuses a new row that lacks a value in a required field.
    fn requires(&mut self, object: usize, values: &Map<String, Value>) {
        for name in self.before.required(object) {
            if values.get(&name).is_none_or(Value::is_null) {
                self.refuse_field(400, "not_null_violation", &name);
                // The error does not name a field that the caller does not know.
                if !self.caller.knows(object, &name) && !self.caller.may_write(object, "create", &name) {
                    self.refuse(400, "not_null_violation");
                }
            }
        }
    }

    /// Refuses the fields that a grant lacks. Any of them may be reported.
    fn lacking(&mut self, object: usize, action: &str, values: &Map<String, Value>) {
        for name in values.keys().filter(|name| self.caller.lacks(object, action, name)) {
            self.refusals.push(Refusal::of(403, "forbidden", name));
        }
    }

    /// Refuses references to rows that the caller may not see.
    fn references(&mut self, object: usize, values: &Map<String, Value>) {
        for relation in self.before.world.relations.iter().filter(|relation| !relation.is_links()) {
            let (holder, referred) = relation.sides();
            let column = relation.column();
            let Some(id) = values.get(&column).and_then(Value::as_str).filter(|_| holder == object) else { continue };
            if !self.is_known(referred, id) {
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
        self.requires(object, &values);
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
        self.checks.push(Check::of_values(object, "create", &id, values));
    }

    fn update(&mut self, object: usize, id: &str, values: &Map<String, Value>) {
        let old = self.before.row(object, id).expect("the row");
        for (name, _) in values.iter().filter(|(_, value)| is_sum(value)) {
            self.reads(object, old, name);
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
        self.touched.written.insert((object, id.to_owned()));
        self.checks.push(Check::of_values(object, "update", id, values));
    }

    /// Refuses a value that the write reads, if the caller may not. A caller without conditions and fields does not need to read
    /// it. The specification (D19.3) demands read of the column from everybody, so this departs from its plain words.
    fn reads(&mut self, object: usize, row: &Row, name: &str) {
        if self.caller.has_conditions_on(object) && !self.view.shows(object, row, name) {
            self.refuse_field(403, "forbidden", name);
        }
    }

    fn upsert(&mut self, object: usize, target: &str, values: &Map<String, Value>) -> Option<Answered> {
        let may = (self.may(object, "create"), self.may(object, "update"));
        (may == (true, true)).then_some(())?;
        if self.caller.has_conditions_on(object) && !self.caller.knows(object, target) {
            self.refuse_field(403, "forbidden", target);
        }
        let sent = values.clone();
        let mut values = values.clone();
        let named = values.remove("id").filter(|_| target == "id");
        let wanted = named.clone().unwrap_or_else(|| values.get(target).cloned().unwrap_or(Value::Null));
        let known = self.before.world.rows[object].iter().find(|row| !wanted.is_null() && row.values[target] == wanted);
        // Without these values, the statement could not insert a row.
        self.requires(object, &values);
        // The server demands both rights, whether the upsert inserts or updates. The specification leaves that open.
        self.names(object, "create", &values);
        self.names(object, "update", &values);
        let Some(known) = known.cloned() else {
            let id = named.map_or_else(|| placeholder(self.number), |id| id.as_str().expect("a text").to_owned());
            self.insert(object, &values, id.clone());
            return Some(Answered::Record { status: 201, object, id, sent, created: Some(true) });
        };
        if !self.reached(object, "update", &known.id) {
            self.refuse(403, "forbidden");
            return None;
        }
        self.reads(object, &known, target);
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
                            self.touched.cleared.insert((holder, other));
                        }
                    }
                }
            }
        }
        // If a row is deleted itself, it is not changed before that.
        self.emitted.retain(|event| !gone.contains(&(event.object, event.id.clone())));
        self.touched.gone.extend(gone.iter().cloned());
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
        let (mut changed, mut named) = (BTreeSet::new(), BTreeSet::new());
        for other in ids {
            let is_seen = self.is_known(end.object, other);
            if !is_seen && !is_removal {
                self.refuse_field(409, "foreign_key_violation", "ids");
            }
            if !is_seen {
                continue;
            }
            let (source, target) = if end.is_forward { (id, other.as_str()) } else { (other.as_str(), id) };
            let link = (end.relation, source.to_owned(), target.to_owned());
            named.insert(link.clone());
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
        self.touched.relinked.insert((object, id.to_owned()));
        self.touched.links.extend(named.iter().cloned());
        let fields = BTreeSet::from([key.to_owned()]);
        let check = Check { object, action: "update", id: id.to_owned(), fields, links: named, makes_links: !is_removal };
        self.checks.push(check);
        Some(Answered::Number(name, count))
    }
}

//! Random requests. Most of them use rows and fields that the caller may use, and some use hidden ones.

mod batches;
mod reads;

use std::collections::BTreeSet;

use fastrand::Rng;
use serde_json::{Map, Value, json};

use super::State;
use super::grants::{Caller, Unfit};
use super::reads::Standing;
use super::verbs::{Chosen, Verb, Write};
use super::worlds::{self, MISSING, NAMES, OBJECTS};
use crate::promises::conditions::model::{Place, Row, World};
use crate::promises::conditions::random::Generator;
use crate::promises::conditions::worlds::{one_in, pick};

/// If an object has this number of rows, it gets no more. One list of the admin shows all of them.
const ROWS_MAX: usize = 60;

pub(super) struct Requests<'a> {
    pub(super) random: &'a mut Rng,
    pub(super) state: &'a State,
    pub(super) caller: &'a Caller,
    pub(super) holders: &'a [String],
}

impl Requests<'_> {
    fn sometimes(&mut self, times: usize) -> bool {
        one_in(self.random, times)
    }

    fn object(&mut self, action: &str) -> usize {
        let count = if action == "read" { OBJECTS.len() } else { NAMES.len() };
        let allowed: Vec<usize> = (0..count).filter(|object| self.caller.may(*object, action)).collect();
        match allowed.is_empty() || self.sometimes(25) {
            true => self.random.usize(..count),
            false => *pick(self.random, &allowed),
        }
    }

    /// The id of a row. Most often the caller may use this row.
    fn id(&mut self, object: usize, action: &str) -> String {
        let rows = &self.state.world.rows[object];
        if rows.is_empty() || self.sometimes(25) {
            return MISSING.to_owned();
        }
        let reached: Vec<&Row> = rows.iter().filter(|row| self.caller.reaches(&self.state.world, object, action, row)).collect();
        match reached.is_empty() || self.sometimes(4) {
            true => pick(self.random, rows).id.clone(),
            false => pick(self.random, &reached).id.clone(),
        }
    }

    /// The world with the fields and relations that the caller knows.
    fn known_world(&mut self) -> World {
        let mut world = self.state.world.clone();
        if self.sometimes(12) {
            return world;
        }
        let (state, caller) = (self.state, self.caller);
        let is_known = |place: usize| {
            let relation = &state.world.relations[place];
            [relation.source, relation.target].into_iter().all(|object| {
                let ends = state.world.ends(object);
                ends.iter().filter(|end| end.relation == place).all(|end| state.standing(caller, object, end) == Standing::Known)
            })
        };
        for (object, known) in world.objects.iter_mut().enumerate() {
            known.columns.retain(|column| caller.knows(object, &column.name));
            if known.columns.is_empty() {
                known.columns =
                    state.world.objects[object].columns.iter().filter(|column| column.name == "id").cloned().collect();
            }
        }
        world.relations = (0..state.world.relations.len())
            .filter(|place| is_known(*place))
            .map(|place| state.world.relations[place].clone())
            .collect();
        for (object, rows) in world.rows.iter_mut().enumerate() {
            if rows.is_empty() {
                let columns = state.world.objects[object].columns.iter();
                let values = columns.map(|column| (column.name.clone(), Value::Null)).collect();
                rows.push(Row { id: MISSING.to_owned(), maker: 0, values });
            }
        }
        world
    }

    fn condition(&mut self, object: usize) -> Value {
        let world = self.known_world();
        let mut generator = Generator::new(self.random.u64(..), &world);
        if world.rows.iter().any(Vec::is_empty) {
            return json!({ "id": { "is_not_null": true } });
        }
        // Often, rows of the related object are hidden from the caller.
        let condition = match self.sometimes(4) {
            true => generator.leading(object, &self.caller.reader),
            false => generator.modest(object, &self.caller.reader),
        };
        // Without a credential, this variable has no value.
        match self.caller.credential.is_none() && condition.to_string().contains("$user.roles") {
            true => json!({ "id": { "is_not_null": true } }),
            false => condition,
        }
    }

    fn fields(&mut self, object: usize) -> Vec<String> {
        let all = self.state.world.objects[object].columns.iter().map(|column| column.name.clone());
        let known: Vec<String> = all.clone().filter(|name| self.caller.knows(object, name)).collect();
        match known.is_empty() || self.sometimes(20) {
            true => all.collect(),
            false => known,
        }
    }

    fn writable(&mut self, object: usize, action: &str) -> Vec<String> {
        let columns = self.state.world.objects[object].columns.iter().map(|column| column.name.clone());
        let all: Vec<String> = columns.filter(|name| !worlds::SYSTEM.iter().any(|(system, _)| system == name)).collect();
        let allowed: Vec<String> = all.iter().filter(|name| self.caller.may_write(object, action, name)).cloned().collect();
        if allowed.is_empty() || self.sometimes(15) { all } else { allowed }
    }

    fn value(&mut self, object: usize, field: &str) -> Value {
        let relation = self.state.world.relations.iter().find(|relation| !relation.is_links() && relation.column() == field);
        let Some(relation) = relation.filter(|relation| relation.sides().0 == object) else {
            return worlds::value(self.random, field, self.holders);
        };
        if field != "part_id" && self.sometimes(5) {
            return Value::Null;
        }
        json!(self.id(relation.sides().1, "read"))
    }

    /// Values for a new row, or for a change.
    fn values(&mut self, object: usize, action: &str) -> Map<String, Value> {
        let fields = self.writable(object, action);
        let count = if action == "create" { self.random.usize(..=3) } else { self.random.usize(1..4) };
        let mut names: BTreeSet<String> =
            self.random.choose_multiple(fields.iter().cloned(), count.min(fields.len())).into_iter().collect();
        // A change that names `amount` may add to it. For that, the caller also needs to read it in the row.
        if action == "update" && self.sometimes(4) && (self.caller.may_write(object, action, "amount") || self.sometimes(15)) {
            names.insert("amount".to_owned());
        }
        let all = &self.state.world.objects[object].columns;
        if action == "create" && !self.sometimes(40) {
            let is_required = |name: &&str| all.iter().any(|column| column.name == **name);
            names.extend(["title", "part_id"].into_iter().filter(is_required).map(str::to_owned));
        }
        let mut values = Map::new();
        for name in names {
            let value = match name.as_str() {
                "amount" if action == "update" && self.random.bool() => json!({ "$inc": self.random.i64(-3..4) }),
                name => self.value(object, name),
            };
            values.insert(name, value);
        }
        values
    }

    fn chosen(&mut self, object: usize, action: &str) -> Chosen {
        if self.random.bool() {
            let mut condition = self.condition(object);
            // The server refuses a condition that every row meets. The test only rarely deletes many rows.
            if !self.sometimes(30) {
                let rows = self.state.world.rows[object].iter().map(|row| row.id.clone());
                let some = self.random.choose_multiple(rows, if action == "delete" { 3 } else { 8 });
                condition["id"] = json!({ "in": some });
            }
            return Chosen::Where(condition);
        }
        let mut ids: Vec<String> = (0..self.random.usize(1..5)).map(|_| self.id(object, action)).collect();
        if self.sometimes(10) {
            ids.push(ids[0].clone());
        }
        Chosen::Ids(ids)
    }

    /// Whether an object gets no more rows.
    fn is_full(&self, object: usize) -> bool {
        self.state.world.rows[object].len() >= ROWS_MAX
    }

    fn upsert(&mut self) -> Write {
        let object = self.object("create");
        // If a grant includes no row, the specification does not say whether its fields count.
        if self.caller.has_valueless(object, "create") {
            return Write::new(object, Verb::Update(self.id(object, "update"), self.values(object, "update")));
        }
        let target = *pick(self.random, &["code", "code", "id"]);
        let mut values = self.values(object, "create");
        if target == "id" {
            let new = format!("20000000-0000-4000-8000-{:012x}", self.random.u64(1..1 << 40));
            let known = self.id(object, "update");
            // There must never be a row with the id `MISSING`.
            let is_new = known == MISSING || self.sometimes(3);
            values.insert("id".to_owned(), json!(if is_new { new } else { known }));
            return Write::new(object, Verb::Upsert("id", values));
        }
        let known = self.id(object, "update");
        let code = self.state.row(object, &known).map(|row| row.values["code"].clone()).filter(|code| !code.is_null());
        let code = code.filter(|_| !one_in(self.random, 4));
        let code = code.unwrap_or_else(|| json!(format!("c{}", self.random.u8(..90))));
        values.insert("code".to_owned(), code);
        Write::new(object, Verb::Upsert(target, values))
    }

    pub(super) fn write(&mut self) -> Write {
        if self.sometimes(5) {
            return self.batch();
        }
        if self.sometimes(8) {
            return self.dry_run();
        }
        self.single()
    }

    fn dry_run(&mut self) -> Write {
        let action = *pick(self.random, &["update", "delete"]);
        let object = self.object(action);
        let chosen = self.chosen(object, action);
        let verb = match action {
            "update" => Verb::UpdateMany(chosen, self.values(object, action)),
            _ => Verb::DeleteMany(chosen),
        };
        Write { is_dry: true, ..Write::new(object, verb) }
    }

    /// A change that is refused because of its row alone: no grant that includes the row lists the field, or the caller cannot
    /// read the value to which the change adds. `None` if there is no such row.
    fn forbidden_by_row(&mut self, object: usize) -> Option<Verb> {
        let (world, caller, action) = (&self.state.world, self.caller, "update");
        let rows = world.rows[object].iter().filter(|row| caller.reaches(world, object, action, row));
        let adds = caller.knows(object, "amount") && caller.may_write(object, action, "amount");
        if self.random.bool() && adds {
            let is_hidden = |row: &Row| !caller.sight(world, object, Place::Row(row)).shows("amount");
            let row = self.random.choice(rows.filter(|row| is_hidden(row)).collect::<Vec<_>>())?;
            let sum = json!({ "$inc": self.random.i64(1..4) });
            return Some(Verb::Update(row.id.clone(), Map::from_iter([("amount".to_owned(), sum)])));
        }
        let mut fields = self.writable(object, action);
        fields.retain(|name| caller.lacks(object, action, name));
        let field = self.random.choice(fields)?;
        let named = BTreeSet::from([field.clone()]);
        let is_foreign = |row: &Row| {
            let unfit = caller.fits((world, world), (object, action), (Some(row), row), &named);
            unfit.iter().any(|unfit| matches!(unfit, Unfit::Fields(_)))
        };
        let row = self.random.choice(rows.filter(|row| is_foreign(row)).collect::<Vec<_>>())?;
        let value = self.value(object, &field);
        Some(Verb::Update(row.id.clone(), Map::from_iter([(field, value)])))
    }

    /// A write that is not a batch.
    fn single(&mut self) -> Write {
        let which = self.random.u8(0..100);
        let action = match which {
            0..20 => "create",
            20..34 => return self.upsert(),
            34..80 => "update",
            _ => "delete",
        };
        let object = self.object(action);
        let verb = match which {
            0..20 if self.is_full(object) => Verb::Delete(self.id(object, "delete")),
            0..14 => Verb::Create(self.values(object, action)),
            14..20 => Verb::CreateMany((0..self.random.usize(1..4)).map(|_| self.values(object, action)).collect()),
            34..54 => {
                let forbidden = if self.sometimes(4) { self.forbidden_by_row(object) } else { None };
                forbidden.unwrap_or_else(|| Verb::Update(self.id(object, action), self.values(object, action)))
            }
            54..64 => Verb::UpdateMany(self.chosen(object, action), self.values(object, action)),
            64..80 => {
                let ends = self.state.world.ends(object);
                let ends: Vec<_> = ends.into_iter().filter(|end| self.state.world.relations[end.relation].is_links()).collect();
                let writable: Vec<_> =
                    ends.iter().filter(|end| self.caller.may_write(object, action, &end.key)).cloned().collect();
                let Some(end) = self.random.choice(if writable.is_empty() { ends } else { writable }) else {
                    return Write::new(object, Verb::Update(self.id(object, action), self.values(object, action)));
                };
                let ids = (0..self.random.usize(1..4)).map(|_| self.id(end.object, "read")).collect();
                Verb::Link(self.id(object, action), end.key, ids, self.random.bool())
            }
            80..92 => Verb::Delete(self.id(object, action)),
            _ => Verb::DeleteMany(self.chosen(object, action)),
        };
        Write::new(object, verb)
    }
}

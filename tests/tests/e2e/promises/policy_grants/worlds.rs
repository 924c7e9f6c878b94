//! The objects, relations and rows, and random grants on them. The same seed makes the same world.

use std::collections::BTreeSet;

use fastrand::Rng;
use serde_json::{Map, Value, json};

use super::grants::{Fields, Grant};
use crate::promises::conditions::model::{Column, Everything, Object, Place, Reader, Relation, World};
use crate::promises::conditions::random::Generator;
use crate::promises::conditions::worlds::{OPTIONS, one_in, pick};

/// The objects whose records the test writes.
pub(super) const NAMES: [&str; 4] = ["alpha", "beta", "gamma", "delta"];
/// All objects. The accounts are read like records, but not written.
pub(super) const OBJECTS: [&str; 5] = ["alpha", "beta", "gamma", "delta", "users"];
/// The number of the object `users`.
pub(super) const USERS: usize = NAMES.len();
const FIELDS_OF_USERS: [(&str, &str); 4] = [("id", "uuid"), ("name", "text"), ("image", "text"), ("email", "email")];
/// The names of accounts.
pub(super) const PEOPLE: [&str; 4] = ["ann", "bob", "cid", "mia"];
pub(super) const SYSTEM: [(&str, &str); 5] =
    [("id", "uuid"), ("created_at", "datetime"), ("updated_at", "datetime"), ("created_by", "text"), ("updated_by", "text")];
const FIELDS: [(&str, &str); 6] =
    [("title", "text"), ("note", "text"), ("kind", "enum"), ("amount", "integer"), ("code", "slug"), ("holder", "text")];
const WORDS: [&str; 10] =
    ["abc", "ABC", "Straße", "STRASSE", "100%", "a_b", "red fox", "Grey Fox", "back\\slash \"quoted\"", "O'Brien"];
/// Codes are unique. There are more of them than rows, so that most writes succeed.
const CODES: usize = 60;
const ROWS: std::ops::Range<usize> = 9..14;
/// An id that no row has.
pub(super) const MISSING: &str = "20000000-0000-4000-8000-000000000000";

/// The rules of a relation that matter to writes.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Rules {
    pub(super) on_delete: &'static str,
    pub(super) is_required: bool,
}

/// Objects and relations without rows.
pub(super) fn schema(random: &mut Rng) -> (World, Vec<Rules>) {
    let mut places: Vec<usize> = (0..NAMES.len()).collect();
    random.shuffle(&mut places);
    let [one, two, three, four] = places[..] else { unreachable!("four objects") };
    let of_boss = *pick(random, &[one, two]);
    let mut any = || random.usize(..NAMES.len());
    let (tags, marks, friends) = ((any(), any()), (any(), any()), any());
    let (owner, watchers) = (any(), any());
    let rules = |on_delete, is_required| Rules { on_delete, is_required };
    let (relations, rules): (Vec<Relation>, Vec<Rules>) = [
        (("up", "many_to_one", two, one), rules("set_null", false)),
        (("part", "many_to_one", three, two), rules("cascade", true)),
        (("kids", "one_to_many", one, three), rules("set_null", false)),
        (("boss", "many_to_one", of_boss, of_boss), rules("set_null", false)),
        (("mate", "one_to_one", four, one), rules("restrict", false)),
        (("own", "many_to_one", four, three), rules("set_null", false)),
        (("tags", "many_to_many", tags.0, tags.1), rules("", false)),
        (("marks", "many_to_many", marks.0, marks.1), rules("", false)),
        (("friends", "many_to_many", friends, friends), rules("", false)),
        (("owner", "many_to_one", owner, USERS), rules("set_null", false)),
        (("watchers", "many_to_many", watchers, USERS), rules("", false)),
    ]
    .map(|((name, kind, source, target), rules)| (Relation { name: name.to_owned(), kind, source, target }, rules))
    .into_iter()
    .unzip();
    let column = |(name, kind): (&str, &'static str)| Column { name: name.to_owned(), kind };
    let mut objects = Vec::new();
    for (place, name) in NAMES.iter().enumerate() {
        let references = relations.iter().filter(|relation| !relation.is_links() && relation.sides().0 == place);
        let references: Vec<Column> = references.map(|relation| Column { name: relation.column(), kind: "uuid" }).collect();
        let columns = FIELDS.into_iter().chain(SYSTEM).map(column).chain(references).collect();
        objects.push(Object { name: (*name).to_owned(), columns });
    }
    objects.push(Object { name: OBJECTS[USERS].to_owned(), columns: FIELDS_OF_USERS.into_iter().map(column).collect() });
    let rows = vec![Vec::new(); OBJECTS.len()];
    (World { objects, relations, rows, ..World::default() }, rules)
}

/// The fields of an object, in the form that the server accepts.
pub(super) fn definition() -> Value {
    json!([
        { "name": "title", "type": "text", "required": true },
        { "name": "note", "type": "text" },
        { "name": "kind", "type": "enum", "options": OPTIONS, "default": "red" },
        { "name": "amount", "type": "integer", "indexed": true },
        { "name": "code", "type": "slug", "isUnique": true },
        { "name": "holder", "type": "text" },
    ])
}

/// A value for a field of a row.
pub(super) fn value(random: &mut Rng, field: &str, holders: &[String]) -> Value {
    if field != "title" && one_in(random, 5) {
        return Value::Null;
    }
    match field {
        "title" | "note" => json!(*pick(random, &WORDS)),
        "kind" => json!(*pick(random, &OPTIONS)),
        "amount" => json!(random.i64(-9..20)),
        "code" => json!(format!("c{}", random.usize(..CODES))),
        _ => json!(pick(random, holders)),
    }
}

pub(super) fn search_term(random: &mut Rng) -> String {
    (*pick(random, &["abc", "STRASSE", "100%", "a_b", "fox", "c1", "red", "brien", "nothing", "ANN", "example"])).to_owned()
}

/// The rows to make for each object: their fields, the number of their maker, and the indexes of the rows to which they refer.
pub(super) struct Plan {
    pub(super) maker: usize,
    pub(super) values: Map<String, Value>,
    /// The relation, and the index of the row in its object.
    pub(super) references: Vec<(usize, usize)>,
}

/// Plans for all rows, by object. The world has the rows of the users.
pub(super) fn plans(random: &mut Rng, world: &World, rules: &[Rules], holders: &[String], makers: usize) -> Vec<Vec<Plan>> {
    let mut counts: Vec<usize> = (0..NAMES.len()).map(|_| random.usize(ROWS)).collect();
    counts.push(world.rows[USERS].len());
    let mut plans = Vec::new();
    for (object, count) in counts.iter().enumerate().take(NAMES.len()) {
        let mut codes: Vec<usize> = (0..CODES).collect();
        random.shuffle(&mut codes);
        let mut rows = Vec::new();
        for (number, code) in codes.into_iter().take(*count).enumerate() {
            let mut values = Map::new();
            for (field, _) in FIELDS {
                let value = match field {
                    "code" if !one_in(random, 4) => json!(format!("c{code}")),
                    "code" => Value::Null,
                    other => value(random, other, holders),
                };
                values.insert(field.to_owned(), value);
            }
            let mut references = Vec::new();
            for (place, relation) in world.relations.iter().enumerate() {
                let (holder, referred) = relation.sides();
                if relation.is_links() || holder != object || (!rules[place].is_required && one_in(random, 4)) {
                    continue;
                }
                let row = match relation.kind {
                    // Each target is used once.
                    "one_to_one" if number % 2 == 0 && number < counts[referred] => number,
                    "one_to_one" => continue,
                    _ => random.usize(..counts[referred]),
                };
                references.push((place, row));
            }
            rows.push(Plan { maker: random.usize(..makers), values, references });
        }
        plans.push(rows);
    }
    plans
}

/// The names that grants can list: columns, and keys of links.
pub(super) fn listable(world: &World, object: usize) -> Vec<String> {
    let columns = world.objects[object].columns.iter().map(|column| column.name.clone()).filter(|name| name != "id");
    let keys = world.ends(object).into_iter().filter(|end| world.relations[end.relation].is_links()).map(|end| end.key);
    columns.chain(keys).collect()
}

/// Makes random grants.
pub(super) struct Giver<'a> {
    pub(super) random: &'a mut Rng,
    pub(super) world: &'a World,
    /// All variables. Their values do not matter.
    pub(super) variables: &'a Reader,
}

impl Giver<'_> {
    fn fields(&mut self, object: usize, times: usize) -> Fields {
        if !one_in(self.random, times) {
            return Fields::All;
        }
        let names = listable(self.world, object);
        if one_in(self.random, 3) {
            // A caller who cannot write `title` cannot make rows.
            let count = self.random.usize(names.len() / 2..names.len());
            let mut listed: BTreeSet<String> = self.random.choose_multiple(names.iter().cloned(), count).into_iter().collect();
            if !one_in(self.random, 4) {
                listed.extend(["title".to_owned(), "part_id".to_owned()].into_iter().filter(|name| names.contains(name)));
            }
            return Fields::Only(listed);
        }
        let count = self.random.usize(1..4);
        Fields::Except(self.random.choose_multiple(names, count).into_iter().collect())
    }

    /// A test of a user.
    fn of_user(&mut self) -> Value {
        match self.random.u8(0..5) {
            0 | 1 => json!({ "id": "$user.id" }),
            2 => json!({ "name": { "in": self.random.choose_multiple(PEOPLE, 2) } }),
            3 => json!({ "name": { "neq": *pick(self.random, &PEOPLE) } }),
            _ => json!({ "email": { "ilike": *pick(self.random, &["ANN", "b", "example.com"]) } }),
        }
    }

    /// A test of the record itself.
    fn plain_test(&mut self, object: usize) -> Value {
        match object {
            USERS => self.of_user(),
            _ => json!({ "amount": { "gt": self.random.i64(0..15) } }),
        }
    }

    fn simple(&mut self, object: usize) -> Value {
        if object == USERS && self.random.bool() {
            return self.of_user();
        }
        let world = self.world;
        let holder = |random: &mut Rng| {
            json!(*pick(random, &["$user.id", "$user.id", "$user.id", "$user.id", "$user.email", "$key.id", "$key.id"]))
        };
        let which = if object == USERS { 9 } else { self.random.u8(0..9) };
        match which {
            0 | 1 => json!({ "holder": holder(self.random) }),
            2 => json!({ "holder": { "in": "$user.roles" } }),
            3 => json!({ "kind": { "in": [*pick(self.random, &OPTIONS[..3]), *pick(self.random, &OPTIONS[..3]), null] } }),
            4 => json!({ "amount": { "gte": self.random.i64(-4..4) } }),
            5 => json!({ "created_by": "$user.id" }),
            _ => {
                let ends = world.ends(object);
                let Some(end) = self.random.choice(&ends) else { return self.plain_test(object) };
                let test = match self.random.u8(0..3) {
                    _ if end.object == USERS => self.of_user(),
                    0 => json!({ "holder": holder(self.random) }),
                    1 => json!({ "amount": { "gte": self.random.i64(-4..6) } }),
                    _ => json!({ "kind": { "neq": *pick(self.random, &OPTIONS[..3]) } }),
                };
                match end.is_single {
                    true => json!({ end.key.as_str(): test }),
                    false => json!({ end.key.as_str(): { *pick(self.random, &["some", "some", "none", "every"]): test } }),
                }
            }
        }
    }

    /// A condition for which the form alone does not show that all rows meet it, or none.
    pub(super) fn condition(&mut self, object: usize) -> Value {
        loop {
            let condition = self.any(object);
            let (read, _) = self.world.read(self.variables, object, &condition).expect("a valid condition");
            if self.world.holds(&Everything, &read, object, Place::Gone).is_none() {
                return condition;
            }
        }
    }

    fn any(&mut self, object: usize) -> Value {
        match self.random.u8(0..10) {
            0..4 => self.simple(object),
            4 => json!({ "_not": self.simple(object) }),
            5 | 6 => json!({ "_or": [self.simple(object), self.plain_test(object)] }),
            _ => {
                // The id and the moments of a write are known only after the write.
                let mut world = self.world.clone();
                for object in &mut world.objects {
                    object.columns.retain(|column| !["id", "created_at", "updated_at"].contains(&column.name.as_str()));
                }
                let mut generator = Generator::new(self.random.u64(..), &world);
                generator.policy(object, self.variables)
            }
        }
    }

    fn grant(&mut self, object: usize, actions: &[&'static str]) -> Grant {
        let mut grant = Grant::plain(object, actions);
        grant.is_own = one_in(self.random, 8);
        if self.random.bool() {
            grant.condition = Some(self.condition(object));
        }
        let writes = actions.iter().any(|action| ["create", "update", "manage"].contains(action));
        if writes && one_in(self.random, 3) {
            grant.check = Some(match self.random.u8(0..3) {
                0 => json!({}),
                1 => json!({ "amount": { "lt": self.random.i64(8..20) } }),
                _ => self.condition(object),
            });
        }
        if actions.iter().any(|action| ["read", "manage"].contains(action)) {
            grant.read = self.fields(object, 2);
        }
        if writes {
            grant.write = self.fields(object, 3);
        }
        grant
    }

    /// Grants of everybody, also of callers without a credential, who have no own rows.
    pub(super) fn public(&mut self) -> Vec<Grant> {
        let mut grants = self.role();
        grants.retain(|grant| grant.object == 0 && grant.actions == ["read"]);
        grants.iter_mut().for_each(|grant| grant.is_own = false);
        grants
    }

    /// Other grants of a role: another one in the place of one of them, or all new ones.
    pub(super) fn other(&mut self, grants: &[Grant]) -> Vec<Grant> {
        if grants.is_empty() || one_in(self.random, 3) {
            return self.role();
        }
        let mut grants = grants.to_vec();
        let place = self.random.usize(..grants.len());
        let (object, actions) = (grants[place].object, grants[place].actions.clone());
        grants[place] = self.grant(object, &actions);
        grants
    }

    /// Grants of one role on all objects.
    pub(super) fn role(&mut self) -> Vec<Grant> {
        let mut grants = Vec::new();
        for object in 0..NAMES.len() {
            if one_in(self.random, 8) {
                continue;
            }
            let reads = if one_in(self.random, 10) { 0 } else { self.random.usize(1..3) };
            for _ in 0..reads {
                grants.push(self.grant(object, &["read"]));
            }
            for _ in 0..self.random.usize(1..4) {
                let actions: &[&[&str]] = &[
                    &["create", "update"],
                    &["update"],
                    &["create", "update", "delete"],
                    &["delete"],
                    &["read", "create", "update", "delete"],
                    &["manage"],
                ];
                let actions = *pick(self.random, actions);
                grants.push(self.grant(object, actions));
            }
        }
        if !one_in(self.random, 6) {
            for _ in 0..self.random.usize(1..3) {
                grants.push(self.grant(USERS, &["read"]));
            }
        }
        grants
    }
}

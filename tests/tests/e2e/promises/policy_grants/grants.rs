//! The reference for grants: the rows and cells that a caller may use. It follows only the specification.

use std::collections::{BTreeMap, BTreeSet};

use fastrand::Rng;
use serde_json::{Map, Value, json};

use super::answers::Moment;
use super::rights::reader;
use super::worlds::{self, MISSING};
use crate::promises::conditions::model::{Condition, Everything, Eyes, Place, Reader, Row, World};

/// The fields that a grant lists.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Fields {
    All,
    Only(BTreeSet<String>),
    Except(BTreeSet<String>),
}

impl Fields {
    pub(super) fn lists(&self, field: &str) -> bool {
        match self {
            Fields::All => true,
            Fields::Only(names) => names.contains(field),
            Fields::Except(names) => !names.contains(field),
        }
    }

    fn are_all(&self) -> bool {
        match self {
            Fields::All => true,
            Fields::Only(_) => false,
            Fields::Except(names) => names.is_empty(),
        }
    }

    fn json(&self) -> Option<Value> {
        match self {
            Fields::All => None,
            Fields::Only(names) => Some(json!(names)),
            Fields::Except(names) => Some(json!({ "except": names })),
        }
    }
}

/// A grant on an object.
#[derive(Clone, Debug)]
pub(super) struct Grant {
    pub(super) object: usize,
    pub(super) actions: Vec<&'static str>,
    pub(super) is_own: bool,
    pub(super) condition: Option<Value>,
    pub(super) check: Option<Value>,
    pub(super) read: Fields,
    pub(super) write: Fields,
}

impl Grant {
    /// A grant for all rows and all fields.
    pub(super) fn plain(object: usize, actions: &[&'static str]) -> Grant {
        Grant {
            object,
            actions: actions.to_vec(),
            is_own: false,
            condition: None,
            check: None,
            read: Fields::All,
            write: Fields::All,
        }
    }

    pub(super) fn json(&self, world: &World) -> Value {
        let mut json = json!({ "resource": world.objects[self.object].name, "actions": self.actions });
        if self.is_own {
            json["rowPolicy"] = json!("own");
        }
        for (name, condition) in [("where", &self.condition), ("check", &self.check)] {
            if let Some(condition) = condition {
                json[name] = condition.clone();
            }
        }
        let fields: Map<String, Value> = [("read", &self.read), ("write", &self.write)]
            .into_iter()
            .filter_map(|(name, fields)| Some((name.to_owned(), fields.json()?)))
            .collect();
        if !fields.is_empty() {
            json["fields"] = Value::Object(fields);
        }
        json
    }

    fn allows(&self, action: &str) -> bool {
        self.actions.contains(&action) || self.actions.contains(&"manage")
    }
}

/// A condition of a grant with the variables of one person. `Valueless` names a variable that has no value.
#[derive(Clone, Debug)]
enum Part {
    Absent,
    Valueless,
    Present(Condition),
}

impl Part {
    fn read(world: &World, reader: &Reader, object: usize, condition: Option<&Value>) -> Part {
        match condition.map(|condition| world.read(reader, object, condition)) {
            None => Part::Absent,
            Some(Ok((condition, _))) => Part::Present(condition),
            Some(Err(problem)) if problem.ends_with("has no value") => Part::Valueless,
            Some(Err(problem)) => panic!("{problem}: {condition:?}"),
        }
    }

    fn holds(&self, world: &World, object: usize, place: Place<'_>) -> bool {
        match self {
            Part::Absent => true,
            Part::Valueless => false,
            Part::Present(condition) => world.holds(&Everything, condition, object, place) == Some(true),
        }
    }
}

#[derive(Clone, Debug)]
struct Held {
    grant: Grant,
    condition: Part,
    check: Part,
}

/// The grants of one person: those of a user, of a key's role, or of a key's maker.
#[derive(Clone, Debug)]
pub(super) struct Layer {
    held: Vec<Held>,
    /// The user whose rows `own` means.
    user: Option<String>,
}

impl Layer {
    pub(super) fn new(world: &World, reader: &Reader, user: Option<String>, grants: Vec<Grant>) -> Layer {
        let held = grants.into_iter().map(|grant| Held {
            condition: Part::read(world, reader, grant.object, grant.condition.as_ref()),
            check: Part::read(world, reader, grant.object, grant.check.as_ref()),
            grant,
        });
        Layer { held: held.collect(), user }
    }

    fn of<'a>(&'a self, object: usize, action: &'a str) -> impl Iterator<Item = &'a Held> {
        self.held.iter().filter(move |held| held.grant.object == object && held.grant.allows(action))
    }

    /// Whether an action depends on a condition or a list of fields.
    fn is_conditional(&self, object: usize, action: &str) -> bool {
        let mut is_conditional = false;
        for held in self.of(object, action) {
            let Grant { is_own, condition, check, read, write, .. } = &held.grant;
            let has_condition = condition.is_some() || check.is_some();
            let lists_all = match action {
                "read" => read.are_all(),
                "create" | "update" => write.are_all(),
                "delete" => true,
                _ => read.are_all() && write.are_all(),
            };
            if !is_own && !has_condition && lists_all {
                return false;
            }
            is_conditional |= has_condition || !read.are_all() || !write.are_all();
        }
        is_conditional
    }

    fn is_own(&self, place: Place<'_>) -> bool {
        match (place, &self.user) {
            // A user's own row is their account. It has no creator.
            (Place::Row(row), Some(user)) => row.values.get("created_by").unwrap_or(&row.values["id"]) == user.as_str(),
            _ => false,
        }
    }

    fn reaches(&self, world: &World, held: &Held, place: Place<'_>) -> bool {
        (!held.grant.is_own || self.is_own(place))
            && held.condition.holds(world, held.grant.object, place)
            // A grant that names a variable without a value includes no row, no matter where it names the variable.
            && !matches!(held.check, Part::Valueless)
    }

    fn accepts(&self, world: &World, held: &Held, row: &Row) -> bool {
        match held.check {
            Part::Absent => self.reaches(world, held, Place::Row(row)),
            _ => !matches!(held.condition, Part::Valueless) && held.check.holds(world, held.grant.object, Place::Row(row)),
        }
    }
}

/// A caller who sends requests. Each layer has to allow the caller's actions.
#[derive(Clone, Debug)]
pub(super) struct Caller {
    pub(super) name: String,
    /// A session's token or an API key.
    pub(super) credential: Option<String>,
    /// The value of `created_by` of the caller's rows.
    pub(super) user: Option<String>,
    pub(super) layers: Vec<Layer>,
    /// The variables for the caller's own conditions.
    pub(super) reader: Reader,
    pub(super) reads_events: bool,
}

/// The ways in which the grants of a caller forbid a write.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Unfit {
    /// A grant lacks one of these fields.
    Fields(BTreeSet<String>),
    Check,
}

impl Caller {
    /// The combinations of grants for an action, with one grant of each layer. Grants for the own rows of different people have
    /// no rows in common.
    fn together<'a>(&'a self, object: usize, action: &'a str) -> Vec<Vec<&'a Held>> {
        let mut all: Vec<Vec<&Held>> = vec![Vec::new()];
        for (number, layer) in self.layers.iter().enumerate() {
            let with = |known: &Vec<&'a Held>, held: &'a Held| {
                let is_of_others = |(other, known): (usize, &&Held)| {
                    known.grant.is_own && held.grant.is_own && self.layers[other].user != self.layers[number].user
                };
                let mut together = known.clone();
                together.push(held);
                (!known.iter().enumerate().any(is_of_others)).then_some(together)
            };
            all = all.iter().flat_map(|known| layer.of(object, action).filter_map(move |held| with(known, held))).collect();
        }
        // Nobody makes a row whose creator is somebody else.
        let accepts =
            |(layer, held): (&Layer, &&Held)| !held.grant.is_own || held.grant.check.is_some() || layer.user == self.user;
        let makes = ["create", "manage"].contains(&action);
        all.retain(|grants| !makes || self.layers.iter().zip(grants).all(accepts));
        all
    }

    pub(super) fn may(&self, object: usize, action: &str) -> bool {
        !self.together(object, action).is_empty()
    }

    /// Whether the caller has any right on an object.
    pub(super) fn knows_of(&self, object: usize) -> bool {
        ["create", "read", "update", "delete"].iter().any(|action| self.may(object, action))
    }

    /// Whether a right of the caller on an object depends on a condition or a list of fields.
    pub(super) fn has_conditions_on(&self, object: usize) -> bool {
        ["create", "read", "update", "delete", "manage"].into_iter().any(|action| {
            let has_any = |layer: &Layer| layer.of(object, action).next().is_some();
            let has_all = self.layers.iter().all(has_any) && self.may(object, action);
            has_all && self.layers.iter().any(|layer| layer.is_conditional(object, action))
        })
    }

    /// The moment at which the caller sees a record that a batch has written.
    pub(super) fn moment_of_results(&self, object: usize) -> Moment {
        let is_limited = |held: &Held| held.grant.condition.is_some() || held.grant.read != Fields::All;
        let is_free = |held: &Held| !held.grant.is_own && !is_limited(held);
        let is_plain = |layer: &Layer| layer.of(object, "read").all(|held| !is_limited(held) && held.grant.check.is_none());
        let has_limits = |layer: &Layer| layer.of(object, "read").any(is_limited) && !layer.of(object, "read").any(is_free);
        // If one person's grants are for all fields of the own rows, other grants of the other person add nothing to their meeting.
        let together = self.together(object, "read");
        let is_of_own = |grants: &Vec<&Held>| grants.iter().any(|held| held.grant.is_own);
        let is_unlimited = |grants: &Vec<&Held>| grants.iter().all(|held| !is_limited(held) && held.grant.check.is_none());
        let has_all_own = self.layers.len() > 1 && together.iter().all(is_of_own) && together.iter().any(is_unlimited);
        // A condition on the creator may mean the caller's own rows.
        let names_creator = |held: &Held| held.grant.condition.as_ref().is_some_and(|it| it.to_string().contains("created_by"));
        let may_be_own = self.layers.iter().any(|layer| layer.of(object, "read").any(names_creator));
        match self.may(object, "read") {
            true if self.layers.iter().all(is_plain) => Moment::Operation,
            true if may_be_own => Moment::Either,
            true if self.layers.iter().any(has_limits) && !has_all_own => Moment::Batch,
            true => Moment::Either,
            false => Moment::Operation,
        }
    }

    /// Whether a field of an object exists for a caller who reads.
    pub(super) fn knows(&self, object: usize, field: &str) -> bool {
        let all = self.together(object, "read");
        let lists = |grants: &Vec<&Held>| grants.iter().all(|held| held.grant.read.lists(field));
        if field == "id" { !all.is_empty() } else { all.iter().any(lists) }
    }

    /// The combinations that count for the fields of a write: those without a variable that has no value for the caller.
    fn counted<'a>(&'a self, object: usize, action: &'a str) -> Vec<Vec<&'a Held>> {
        let has_values = |held: &&Held| !matches!(held.condition, Part::Valueless) && !matches!(held.check, Part::Valueless);
        let mut all = self.together(object, action);
        all.retain(|grants| grants.iter().all(has_values));
        all
    }

    /// Whether a grant for this action lists a field.
    pub(super) fn may_write(&self, object: usize, action: &str, field: &str) -> bool {
        let lists = |grants: &Vec<&Held>| grants.iter().all(|held| held.grant.write.lists(field));
        self.together(object, action).iter().any(lists)
    }

    /// Whether one grant for this action lists all fields of these values.
    pub(super) fn may_write_all(&self, object: usize, action: &str, values: &Map<String, Value>) -> bool {
        let lists = |held: &Held| values.keys().all(|field| held.grant.write.lists(field));
        // If no grant counts, the caller writes nothing, whatever the fields are.
        let counted = self.counted(object, action);
        counted.is_empty() || counted.iter().any(|grants| grants.iter().all(|held| lists(held)))
    }

    /// Whether a grant for this action names a variable without a value.
    pub(super) fn has_valueless(&self, object: usize, action: &str) -> bool {
        let is_valueless = |part: &Part| matches!(part, Part::Valueless);
        let any = |layer: &Layer| layer.of(object, action).any(|held| is_valueless(&held.condition) || is_valueless(&held.check));
        self.layers.iter().any(any)
    }

    /// Whether a grant for this action does not list a field.
    pub(super) fn lacks(&self, object: usize, action: &str, field: &str) -> bool {
        self.layers.iter().any(|layer| layer.of(object, action).any(|held| !held.grant.write.lists(field)))
    }

    /// The objects through which conditions of grants for this action pass.
    pub(super) fn passes(&self, world: &World, object: usize, action: &str) -> BTreeSet<usize> {
        let conditions = self.layers.iter().flat_map(|layer| layer.of(object, action)).filter_map(|held| match &held.condition {
            Part::Present(condition) => Some(condition),
            Part::Absent | Part::Valueless => None,
        });
        let mut used = Vec::new();
        conditions.for_each(|condition| world.uses(condition, object, &mut used));
        let end = |(object, key): &(usize, String)| world.ends(*object).into_iter().find(|end| end.key == *key);
        used.iter().filter_map(end).map(|end| end.object).collect()
    }

    pub(super) fn reaches(&self, world: &World, object: usize, action: &str, row: &Row) -> bool {
        self.layers.iter().all(|layer| layer.of(object, action).any(|held| layer.reaches(world, held, Place::Row(row))))
    }

    /// Whether the caller sees a row that no longer exists. With a key, whether they see its links. The test still knows the
    /// creator of the row, and nothing else about it.
    pub(super) fn sees_gone(&self, object: usize, key: Option<&str>, owner: Option<&str>) -> bool {
        self.together(object, "read").iter().any(|grants| {
            let is_without_condition =
                |held: &&Held| matches!(held.condition, Part::Absent) && !matches!(held.check, Part::Valueless);
            let has_key = |held: &&Held| key.is_none_or(|key| held.grant.read.lists(key));
            let is_of_owner =
                |(layer, held): (&Layer, &&Held)| !held.grant.is_own || (owner.is_some() && owner == layer.user.as_deref());
            let has_own = grants.iter().any(|held| held.grant.is_own);
            let is_whole = |held: &&Held| held.grant.read == Fields::All && matches!(held.check, Part::Absent);
            let has_all = !has_own || grants.iter().all(is_whole);
            grants.iter().all(is_without_condition)
                && grants.iter().all(has_key)
                && has_all
                && self.layers.iter().zip(grants).all(is_of_owner)
        })
    }

    /// The grants for reading that include a row, by layer.
    fn reading(&self, world: &World, object: usize, place: Place<'_>) -> Vec<Vec<&Grant>> {
        let of = |layer: &'_ Layer| -> Vec<usize> {
            let reaches = |(number, held): (usize, &Held)| {
                let is_for_it = held.grant.object == object && held.grant.allows("read");
                (is_for_it && layer.reaches(world, held, place)).then_some(number)
            };
            layer.held.iter().enumerate().filter_map(reaches).collect()
        };
        self.layers.iter().map(|layer| of(layer).into_iter().map(|number| &layer.held[number].grant).collect()).collect()
    }

    /// The part of an event's record that the caller may see. The row may be an image.
    pub(super) fn sight(&self, world: &World, object: usize, place: Place<'_>) -> Sight<'_> {
        Sight(self.reading(world, object, place))
    }

    /// Whether the caller may read a row.
    pub(super) fn sees(&self, world: &World, object: usize, row: &Row) -> bool {
        Sight(self.reading(world, object, Place::Row(row))).sees()
    }

    pub(super) fn view(&self, world: &World) -> View<'_> {
        let rows = world.rows.iter().enumerate().map(|(object, rows)| {
            rows.iter().map(|row| (row.id.clone(), Sight(self.reading(world, object, Place::Row(row))))).collect()
        });
        View { rows: rows.collect() }
    }

    /// In each layer, one grant has to include the row before the write, allow all fields, and accept the row after the write.
    /// Returns the faults, at most one for each layer.
    pub(super) fn fits(
        &self,
        (before, after): (&World, &World),
        (object, action): (usize, &str),
        (old, new): (Option<&Row>, &Row),
        fields: &BTreeSet<String>,
    ) -> Vec<Unfit> {
        let mut unfit = Vec::new();
        for layer in &self.layers {
            let reaching: Vec<&Held> = layer
                .of(object, action)
                .filter(|held| match old {
                    Some(old) => layer.reaches(before, held, Place::Row(old)),
                    None => true,
                })
                .collect();
            let lacks = |held: &&Held| -> BTreeSet<String> {
                fields.iter().filter(|field| !held.grant.write.lists(field)).cloned().collect()
            };
            let lacking: Vec<BTreeSet<String>> = reaching.iter().map(&lacks).collect();
            if lacking.iter().all(|lacking| !lacking.is_empty()) {
                // Any named field that a grant lacks may be reported.
                let of_all = layer.of(object, action);
                unfit.push(Unfit::Fields(of_all.flat_map(|held| lacks(&held)).collect()));
                continue;
            }
            let mut whole = reaching.iter().zip(&lacking).filter(|(_, lacking)| lacking.is_empty());
            if !whole.any(|(held, _)| layer.accepts(after, held, new)) {
                unfit.push(Unfit::Check);
            }
        }
        // Each layer may accept a new row by a grant for own rows, but for those of different people.
        let allows = |(layer, held): (&Layer, &&Held)| {
            old.is_none_or(|old| layer.reaches(before, held, Place::Row(old)))
                && fields.iter().all(|field| held.grant.write.lists(field))
                && layer.accepts(after, held, new)
        };
        let is_allowed = |grants: &Vec<&Held>| self.layers.iter().zip(grants).all(allows);
        if unfit.is_empty() && !self.together(object, action).iter().any(is_allowed) {
            unfit.push(Unfit::Check);
        }
        unfit
    }

    pub(super) fn grants(&self, world: &World) -> Value {
        let of = |layer: &Layer| -> Value { layer.held.iter().map(|held| held.grant.json(world)).collect() };
        self.layers.iter().map(of).collect()
    }

    /// The same caller without one of the grants. This makes the messages of failures smaller.
    pub(super) fn grants_on(&self, world: &World, object: usize) -> Value {
        let on = |layer: &Layer| -> Value {
            layer.held.iter().filter(|held| held.grant.object == object).map(|held| held.grant.json(world)).collect()
        };
        self.layers.iter().map(on).collect()
    }
}

/// The grants that include one row, by layer.
pub(super) struct Sight<'a>(Vec<Vec<&'a Grant>>);

impl Sight<'_> {
    pub(super) fn sees(&self) -> bool {
        self.0.iter().all(|grants| !grants.is_empty())
    }

    pub(super) fn shows(&self, field: &str) -> bool {
        self.sees() && (field == "id" || self.0.iter().all(|grants| grants.iter().any(|grant| grant.read.lists(field))))
    }
}

/// The rows and cells that a caller sees.
pub(super) struct View<'a> {
    /// The rows that the caller sees, by object and id.
    rows: Vec<BTreeMap<String, Sight<'a>>>,
}

impl View<'_> {
    /// The value of a cell for the caller.
    pub(super) fn value<'r>(&self, object: usize, row: &'r Row, field: &str) -> &'r Value {
        if self.shows(object, row, field) { &row.values[field] } else { &Value::Null }
    }
}

impl Eyes for View<'_> {
    fn sees(&self, object: usize, row: &Row) -> bool {
        self.rows[object].get(&row.id).is_some_and(Sight::sees)
    }

    fn shows(&self, object: usize, row: &Row, field: &str) -> bool {
        self.rows[object].get(&row.id).is_some_and(|sight| sight.shows(field))
    }
}

#[test]
fn a_grant_that_names_roles_reaches_no_row_for_callers_without_a_user() {
    let (world, _) = worlds::schema(&mut Rng::with_seed(0));
    let values = world.objects[0].columns.iter().map(|column| (column.name.clone(), Value::Null)).collect();
    let row = Row { id: MISSING.to_owned(), maker: 0, values };
    // A user without roles has an empty list of them.
    let names = json!({ "holder": { "in": "$user.roles" } });
    let met =
        [json!({ "_not": names }), json!({ "_or": [{ "holder": null }, names] }), json!({ "holder": { "nin": "$user.roles" } })];
    for condition in met {
        let of_rows = Grant { condition: Some(condition.clone()), ..Grant::plain(0, &["read"]) };
        let of_check = Grant { check: Some(condition.clone()), ..Grant::plain(0, &["read"]) };
        for grant in [of_rows, of_check] {
            let reaches = |user: Option<&str>| {
                let layer = Layer::new(&world, &reader(user, None, &[]), user.map(str::to_owned), vec![grant.clone()]);
                layer.reaches(&world, &layer.held[0], Place::Row(&row))
            };
            assert_eq!((reaches(Some("ann")), reaches(None)), (true, false), "{condition}");
        }
    }
}

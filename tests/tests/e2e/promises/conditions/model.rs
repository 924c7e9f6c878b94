//! The reference for conditions: rows in memory, and the rows that a condition finds for a reader.
//!
//! The reference is simple and slow. It follows only the specification, and shares no code with the server.

use std::cmp::Ordering;
use std::collections::{BTreeMap, BTreeSet};

use serde_json::{Map, Value};

use super::cells::Cell;

pub(in crate::promises) const LEAVES_MAX: usize = 100;
pub(in crate::promises) const LEVELS_MAX: usize = 8;
pub(in crate::promises) const STEPS_MAX: usize = 10;
pub(in crate::promises) const DEPTH_MAX: usize = 3;
const ITEMS_MAX: usize = 1000;

#[derive(Clone, Debug)]
pub(in crate::promises) struct Column {
    pub(in crate::promises) name: String,
    pub(in crate::promises) kind: &'static str,
}

#[derive(Clone, Debug)]
pub(in crate::promises) struct Object {
    pub(in crate::promises) name: String,
    /// The columns, including system columns and references.
    pub(in crate::promises) columns: Vec<Column>,
}

#[derive(Clone, Debug)]
pub(in crate::promises) struct Relation {
    pub(in crate::promises) name: String,
    pub(in crate::promises) kind: &'static str,
    /// The source and the target, by the index of the object.
    pub(in crate::promises) source: usize,
    pub(in crate::promises) target: usize,
}

impl Relation {
    pub(in crate::promises) fn is_links(&self) -> bool {
        self.kind == "many_to_many"
    }

    /// The object that has the column with the references, and the object that they refer to.
    pub(in crate::promises) fn sides(&self) -> (usize, usize) {
        if self.kind == "one_to_many" { (self.target, self.source) } else { (self.source, self.target) }
    }

    pub(in crate::promises) fn column(&self) -> String {
        format!("{}_id", self.name)
    }
}

/// A relation, seen from one of its objects.
#[derive(Clone, Debug)]
pub(in crate::promises) struct End {
    pub(in crate::promises) key: String,
    pub(in crate::promises) relation: usize,
    /// The object that the relation leads to.
    pub(in crate::promises) object: usize,
    pub(in crate::promises) is_single: bool,
    /// Whether the relation is followed from the reference or the link, and not in the other direction.
    pub(in crate::promises) is_forward: bool,
}

#[derive(Clone, Debug)]
pub(in crate::promises) struct Row {
    pub(in crate::promises) id: String,
    /// The user who created the row.
    pub(in crate::promises) maker: usize,
    /// The values as JSON, by column.
    pub(in crate::promises) values: Map<String, Value>,
}

/// The places of the related rows among the rows of their object, by the relation, whether it is followed from the reference or
/// the link, and the id of the row at which it begins.
type Near = BTreeMap<(usize, bool, String), Vec<usize>>;

#[derive(Clone, Debug, Default)]
pub(in crate::promises) struct World {
    pub(in crate::promises) objects: Vec<Object>,
    pub(in crate::promises) relations: Vec<Relation>,
    /// The rows of each object.
    pub(in crate::promises) rows: Vec<Vec<Row>>,
    /// The relation, the id of the source, and the id of the target.
    pub(in crate::promises) links: BTreeSet<(usize, String, String)>,
    /// What [`World::note_related`] has noted.
    pub(in crate::promises) near: Option<Near>,
}

/// The rows of an object that a reader may read.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(in crate::promises) enum Reach {
    Nothing,
    Own,
    All,
}

/// A caller.
#[derive(Clone, Debug)]
pub(in crate::promises) struct Reader {
    pub(in crate::promises) name: &'static str,
    pub(in crate::promises) user: usize,
    /// The rows that the reader may read, for each object.
    pub(in crate::promises) reads: Vec<Reach>,
    /// Variables such as `$user.id`, with their values.
    pub(in crate::promises) variables: BTreeMap<&'static str, String>,
    /// The value of `$user.roles`. Without a user, it has none.
    pub(in crate::promises) roles: Option<Vec<String>>,
}

/// The result of a condition for a reader.
#[derive(Clone, Debug, PartialEq)]
pub(in crate::promises) enum Verdict {
    Forbidden,
    Found(BTreeSet<String>),
}

/// The sizes of a condition for which there are limits.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(in crate::promises) struct Size {
    pub(in crate::promises) leaves: usize,
    pub(in crate::promises) levels: usize,
    pub(in crate::promises) steps: usize,
    pub(in crate::promises) depth: usize,
}

impl Size {
    pub(in crate::promises) fn is_within_bounds(&self) -> bool {
        self.leaves <= LEAVES_MAX && self.levels <= LEVELS_MAX && self.steps <= STEPS_MAX && self.depth <= DEPTH_MAX
    }
}

#[derive(Clone, Copy, Debug, PartialEq)]
pub(in crate::promises) enum Operator {
    Eq,
    Neq,
    Gt,
    Gte,
    Lt,
    Lte,
    Like,
    Ilike,
    In,
    Nin,
    IsNull,
    IsNotNull,
}

/// All names of each operator. Its main name comes first.
pub(in crate::promises) const OPERATORS: [(Operator, &[&str]); 12] = [
    (Operator::Eq, &["eq", "=", "=="]),
    (Operator::Neq, &["neq", "ne", "!=", "<>"]),
    (Operator::Gt, &["gt", ">"]),
    (Operator::Gte, &["gte", ">="]),
    (Operator::Lt, &["lt", "<"]),
    (Operator::Lte, &["lte", "<="]),
    (Operator::Like, &["like"]),
    (Operator::Ilike, &["ilike", "contains"]),
    (Operator::In, &["in"]),
    (Operator::Nin, &["nin", "notin"]),
    (Operator::IsNull, &["is_null", "null", "isnull"]),
    (Operator::IsNotNull, &["is_not_null", "notnull"]),
];

impl Operator {
    /// Whether the operator applies to columns of this type.
    pub(in crate::promises) fn fits(self, kind: &str) -> bool {
        match self {
            Operator::IsNull | Operator::IsNotNull => true,
            Operator::Eq | Operator::Neq | Operator::In | Operator::Nin => kind != "json",
            Operator::Gt | Operator::Gte | Operator::Lt | Operator::Lte => !matches!(kind, "json" | "multi_enum"),
            Operator::Like | Operator::Ilike => matches!(kind, "text" | "email" | "url" | "slug" | "enum" | "multi_enum"),
        }
    }
}

/// A parsed condition.
#[derive(Clone, Debug)]
pub(in crate::promises) enum Condition {
    All(Vec<Condition>),
    Any(Vec<Condition>),
    Not(Box<Condition>),
    Leaf(Column, Operator, Vec<Cell>),
    /// A condition on the row that a to-one relation leads to.
    One(End, Box<Condition>),
    Some(End, Box<Condition>),
    None(End, Box<Condition>),
    Every(End, Box<Condition>),
}

/// The row for which a condition is tested.
#[derive(Clone, Copy, Debug)]
pub(in crate::promises) enum Place<'a> {
    Row(&'a Row),
    /// The row does not exist. All its values are null.
    Absent,
    /// The row was deleted, and its values are not known.
    Gone,
}

/// The rows and cells that take part in a condition.
pub(in crate::promises) trait Eyes {
    fn sees(&self, object: usize, row: &Row) -> bool;

    /// Whether a column of a row, or a key of its links, can be read. If not, it counts as null or as empty.
    fn shows(&self, _object: usize, _row: &Row, _field: &str) -> bool {
        true
    }
}

/// All rows with all cells.
pub(in crate::promises) struct Everything;

impl Eyes for Everything {
    fn sees(&self, _: usize, _: &Row) -> bool {
        true
    }
}

impl Eyes for Reader {
    fn sees(&self, object: usize, row: &Row) -> bool {
        World::is_readable(self, object, row)
    }
}

/// Whether a row meets a condition. `None` if that cannot be decided.
pub(in crate::promises) type Truth = Option<bool>;

fn all(truths: impl IntoIterator<Item = Truth>) -> Truth {
    let mut result = Some(true);
    for truth in truths {
        match truth {
            Some(false) => return Some(false),
            None => result = None,
            Some(true) => {}
        }
    }
    result
}

fn any(truths: impl IntoIterator<Item = Truth>) -> Truth {
    all(truths.into_iter().map(not)).map(|is_so| !is_so)
}

fn not(truth: Truth) -> Truth {
    truth.map(|is_so| !is_so)
}

/// A field or a relation that a condition uses: its object, and its name.
pub(in crate::promises) type Use = (usize, String);

/// Parses conditions, and counts the sizes for which there are limits.
struct Parser<'a> {
    world: &'a World,
    reader: &'a Reader,
    size: Size,
    /// The objects that relations lead to.
    passes: BTreeSet<usize>,
}

/// The problem of a condition that names a variable without a value.
fn without_value(variable: &str) -> String {
    format!("{variable} has no value")
}

impl Parser<'_> {
    fn object<'v>(&mut self, json: &'v Value, level: usize) -> Result<&'v Map<String, Value>, String> {
        self.size.levels = self.size.levels.max(level);
        json.as_object().ok_or_else(|| format!("{json} is not an object"))
    }

    fn condition(&mut self, object: usize, json: &Value, level: usize, depth: usize) -> Result<Condition, String> {
        let mut all = Vec::new();
        for (key, value) in self.object(json, level)? {
            let parsed = match key.as_str() {
                "_and" => Condition::All(self.list(object, value, level, depth)?),
                "_or" => Condition::Any(self.list(object, value, level, depth)?),
                "_not" => Condition::Not(Box::new(self.condition(object, value, level + 1, depth)?)),
                other if other.starts_with('_') => return Err(format!("{other} is not a key")),
                key => self.member(object, key, value, level, depth)?,
            };
            all.push(parsed);
        }
        Ok(Condition::All(all))
    }

    fn list(&mut self, object: usize, json: &Value, level: usize, depth: usize) -> Result<Vec<Condition>, String> {
        let items = json.as_array().ok_or_else(|| format!("{json} is not an array"))?;
        items.iter().map(|item| self.condition(object, item, level + 1, depth)).collect()
    }

    fn step(&mut self, end: &End, depth: usize) {
        self.size.steps += 1;
        self.size.depth = self.size.depth.max(depth + 1);
        self.passes.insert(end.object);
    }

    /// A field, a relation, or a dotted path to one of them.
    fn member(&mut self, object: usize, key: &str, value: &Value, level: usize, depth: usize) -> Result<Condition, String> {
        let end = |name: &str| self.world.ends(object).into_iter().find(|end| end.key == name);
        if let Some((first, rest)) = key.split_once('.') {
            let end = end(first).filter(|end| end.is_single).ok_or_else(|| format!("{first} is not a to-one relation"))?;
            self.step(&end, depth);
            self.size.levels = self.size.levels.max(level + 1);
            let inner = self.member(end.object, rest, value, level + 1, depth + 1)?;
            return Ok(Condition::One(end, Box::new(inner)));
        }
        if let Some(column) = self.world.objects[object].columns.iter().find(|column| column.name == key) {
            return self.field(column, value, level);
        }
        let end = end(key).ok_or_else(|| format!("{key} is not a field and not a relation"))?;
        self.step(&end, depth);
        if end.is_single {
            let inner = self.condition(end.object, value, level + 1, depth + 1)?;
            return Ok(Condition::One(end, Box::new(inner)));
        }
        let quantifiers = self.object(value, level + 1)?;
        if quantifiers.is_empty() {
            return Err(format!("{key} has no quantifier"));
        }
        let mut all = Vec::new();
        for (quantifier, json) in quantifiers {
            let inner = Box::new(self.condition(end.object, json, level + 2, depth + 1)?);
            all.push(match quantifier.as_str() {
                "some" => Condition::Some(end.clone(), inner),
                "none" => Condition::None(end.clone(), inner),
                "every" => Condition::Every(end.clone(), inner),
                other => return Err(format!("{other} is not a quantifier")),
            });
        }
        Ok(Condition::All(all))
    }

    fn field(&mut self, column: &Column, value: &Value, level: usize) -> Result<Condition, String> {
        let Value::Object(_) = value else { return self.leaf(column, "eq", value) };
        let operators = self.object(value, level + 1)?;
        if operators.is_empty() {
            return Err(format!("{} has no operator", column.name));
        }
        let all: Result<_, _> = operators.iter().map(|(name, operand)| self.leaf(column, name, operand)).collect();
        Ok(Condition::All(all?))
    }

    fn leaf(&mut self, column: &Column, name: &str, operand: &Value) -> Result<Condition, String> {
        self.size.leaves += 1;
        let place = || format!("{} {name} {operand}", column.name);
        let known = OPERATORS.iter().find(|(_, names)| names.contains(&name.to_lowercase().as_str()));
        let operator = known.map(|(operator, _)| *operator).filter(|operator| operator.fits(column.kind));
        let operator = operator.ok_or_else(|| format!("{}: no such operator", place()))?;
        let one = |operand: &Value| -> Result<Cell, String> {
            Cell::read(column.kind, &self.literal(operand)?).map_err(|problem| format!("{}: {problem}", place()))
        };
        let operands = match operator {
            Operator::Eq | Operator::Neq => vec![one(operand)?],
            Operator::Gt | Operator::Gte | Operator::Lt | Operator::Lte if !operand.is_null() => vec![one(operand)?],
            Operator::Like | Operator::Ilike if operand.is_string() => {
                vec![Cell::read("text", &self.literal(operand)?)?]
            }
            Operator::IsNull | Operator::IsNotNull if *operand == Value::Bool(true) => Vec::new(),
            Operator::In | Operator::Nin => match operand {
                Value::String(text) if text == "$user.roles" => {
                    let roles = self.reader.roles.as_ref().ok_or_else(|| without_value(text))?;
                    roles.iter().map(|role| Cell::read(column.kind, &Value::from(role.as_str()))).collect::<Result<_, _>>()?
                }
                Value::Array(items) if items.len() <= ITEMS_MAX => items.iter().map(one).collect::<Result<_, _>>()?,
                _ => return Err(place()),
            },
            _ => return Err(place()),
        };
        Ok(Condition::Leaf(column.clone(), operator, operands))
    }

    /// The value of an operand: the value of a variable, or the operand itself.
    fn literal(&self, operand: &Value) -> Result<Value, String> {
        let Some(text) = operand.as_str().filter(|text| text.starts_with('$')) else { return Ok(operand.clone()) };
        if text.starts_with("$$") {
            return Ok(Value::from(&text[1..]));
        }
        self.reader.variables.get(text).map(|value| Value::from(value.as_str())).ok_or_else(|| without_value(text))
    }
}

impl World {
    /// The relation keys of an object.
    pub(in crate::promises) fn ends(&self, object: usize) -> Vec<End> {
        let mut ends = Vec::new();
        for (place, relation) in self.relations.iter().enumerate() {
            let mut add = |key: String, object, is_single, is_forward| {
                ends.push(End { key, relation: place, object, is_single, is_forward });
            };
            if relation.is_links() {
                if relation.source == object {
                    add(relation.name.clone(), relation.target, false, true);
                } else if relation.target == object {
                    add(relation.name.clone(), relation.source, false, false);
                }
                continue;
            }
            let (holder, referred) = relation.sides();
            if holder == object {
                add(relation.name.clone(), referred, true, true);
            }
            if referred == object {
                let key = format!("{}_by_{}", self.objects[holder].name, relation.name);
                add(key, holder, relation.kind == "one_to_one", false);
            }
        }
        ends
    }

    fn is_readable(reader: &Reader, object: usize, row: &Row) -> bool {
        match reader.reads[object] {
            Reach::Nothing => false,
            Reach::Own => row.maker == reader.user,
            Reach::All => true,
        }
    }

    /// Notes which rows are related, so that the reference takes less time if there are many rows. After this, rows and links
    /// must not change.
    pub(in crate::promises) fn note_related(&mut self) {
        let of_object = |rows: &Vec<Row>| -> BTreeMap<String, usize> {
            rows.iter().enumerate().map(|(place, row)| (row.id.clone(), place)).collect()
        };
        let places: Vec<BTreeMap<String, usize>> = self.rows.iter().map(of_object).collect();
        let mut near = Near::new();
        for (number, relation) in self.relations.iter().enumerate() {
            let (holder, referred) = relation.sides();
            let pairs: Vec<(&String, &str)> = match relation.is_links() {
                true => {
                    let links = self.links.iter().filter(|(place, ..)| *place == number);
                    links.map(|(_, source, target)| (source, target.as_str())).collect()
                }
                false => {
                    let column = relation.column();
                    let rows = self.rows[holder].iter();
                    rows.filter_map(|row| Some((&row.id, row.values[&column].as_str()?))).collect()
                }
            };
            for (from, to) in pairs {
                near.entry((number, true, from.clone())).or_default().push(places[referred][to]);
                near.entry((number, false, to.to_owned())).or_default().push(places[holder][from]);
            }
        }
        self.near = Some(near);
    }

    /// The rows that a relation leads to and that the reader can see.
    pub(in crate::promises) fn related(&self, eyes: &dyn Eyes, end: &End, object: usize, row: &Row) -> Vec<&Row> {
        let relation = &self.relations[end.relation];
        let column = relation.column();
        let follows =
            |holder: usize, from: &Row, to: &Row| from.values[&column] == to.id.as_str() && eyes.shows(holder, from, &column);
        let leads_to = |other: &Row| match (relation.is_links(), end.is_forward) {
            (true, true) => self.links.contains(&(end.relation, row.id.clone(), other.id.clone())),
            (true, false) => self.links.contains(&(end.relation, other.id.clone(), row.id.clone())),
            (false, true) => follows(object, row, other),
            (false, false) => follows(end.object, other, row),
        };
        if relation.is_links() && !eyes.shows(object, row, &end.key) {
            return Vec::new();
        }
        let rows = &self.rows[end.object];
        let is_related = |other: &&Row| eyes.sees(end.object, other) && leads_to(other);
        match &self.near {
            Some(near) => {
                let places = near.get(&(end.relation, end.is_forward, row.id.clone())).into_iter().flatten();
                places.map(|place| &rows[*place]).filter(is_related).collect()
            }
            None => rows.iter().filter(is_related).collect(),
        }
    }

    /// The place that a to-one relation leads to.
    fn one<'a>(&'a self, eyes: &dyn Eyes, end: &End, object: usize, place: Place<'_>) -> Place<'a> {
        let row = match place {
            Place::Row(row) => row,
            Place::Absent => return Place::Absent,
            Place::Gone => return Place::Gone,
        };
        // A write that leads to several rows is refused, but the reference looks at what else is wrong with it.
        if let Some(other) = self.related(eyes, end, object, row).first() {
            return Place::Row(other);
        }
        let is_gone = match end.is_forward {
            true => row.values[&self.relations[end.relation].column()]
                .as_str()
                .is_some_and(|id| self.rows[end.object].iter().all(|other| other.id != id)),
            false => self.is_gone(object, row),
        };
        if is_gone { Place::Gone } else { Place::Absent }
    }

    fn is_gone(&self, object: usize, row: &Row) -> bool {
        self.rows[object].iter().all(|other| other.id != row.id)
    }

    /// Whether a condition is met for a row of an object.
    pub(in crate::promises) fn holds(&self, eyes: &dyn Eyes, condition: &Condition, object: usize, place: Place<'_>) -> Truth {
        let each = |end: &End, inner: &Condition| -> Option<Vec<Truth>> {
            match place {
                Place::Row(row) if !self.is_gone(object, row) => {
                    let related = self.related(eyes, end, object, row);
                    Some(related.into_iter().map(|other| self.holds(eyes, inner, end.object, Place::Row(other))).collect())
                }
                Place::Absent => Some(Vec::new()),
                Place::Row(_) | Place::Gone => None,
            }
        };
        // For some conditions, the form alone shows that every row meets them.
        let unknown = |end: &End, inner: &Condition| self.holds(eyes, inner, end.object, Place::Gone);
        match condition {
            Condition::All(inner) => all(inner.iter().map(|inner| self.holds(eyes, inner, object, place))),
            Condition::Any(inner) => any(inner.iter().map(|inner| self.holds(eyes, inner, object, place))),
            Condition::Not(inner) => not(self.holds(eyes, inner, object, place)),
            Condition::One(end, inner) => self.holds(eyes, inner, end.object, self.one(eyes, end, object, place)),
            Condition::Some(end, inner) => match each(end, inner) {
                Some(truths) => any(truths),
                None => all([unknown(end, inner), None]),
            },
            Condition::None(end, inner) => match each(end, inner) {
                Some(truths) => not(any(truths)),
                None => not(all([unknown(end, inner), None])),
            },
            Condition::Every(end, inner) => match each(end, inner) {
                Some(truths) => all(truths),
                None => any([unknown(end, inner), None]),
            },
            Condition::Leaf(column, operator, operands) => {
                let value = match place {
                    // The form alone shows that no value is in an empty list.
                    Place::Gone if operands.is_empty() && matches!(operator, Operator::In | Operator::Nin) => {
                        return Some(*operator == Operator::Nin);
                    }
                    Place::Gone => return None,
                    Place::Row(row) if eyes.shows(object, row, &column.name) => &row.values[&column.name],
                    Place::Row(_) | Place::Absent => &Value::Null,
                };
                let cell = Cell::read(column.kind, value).expect("a value of the column's type");
                Some(is_so(&cell, *operator, operands))
            }
        }
    }

    /// Reads a condition on an object. Only the variables and the rights of the reader matter.
    pub(in crate::promises) fn read(&self, reader: &Reader, object: usize, json: &Value) -> Result<(Condition, Size), String> {
        let mut parser = Parser { world: self, reader, size: Size::default(), passes: BTreeSet::from([object]) };
        let condition = parser.condition(object, json, 1, 0)?;
        Ok((condition, parser.size))
    }

    /// The fields and relations that a condition on an object uses.
    pub(in crate::promises) fn uses(&self, condition: &Condition, object: usize, found: &mut Vec<Use>) {
        match condition {
            Condition::All(inner) | Condition::Any(inner) => {
                inner.iter().for_each(|inner| self.uses(inner, object, found));
            }
            Condition::Not(inner) => self.uses(inner, object, found),
            Condition::One(end, inner)
            | Condition::Some(end, inner)
            | Condition::None(end, inner)
            | Condition::Every(end, inner) => {
                found.push((object, end.key.clone()));
                self.uses(inner, end.object, found);
            }
            Condition::Leaf(column, ..) => found.push((object, column.name.clone())),
        }
    }

    /// Reads a condition within the bounds, and decides whether the reader may read all objects that it uses. The error describes
    /// the fault of the condition.
    fn admit(&self, reader: &Reader, object: usize, json: &Value) -> Result<(Condition, Size, bool), String> {
        let mut parser = Parser { world: self, reader, size: Size::default(), passes: BTreeSet::from([object]) };
        let condition = parser.condition(object, json, 1, 0)?;
        if !parser.size.is_within_bounds() {
            return Err(format!("it is over a bound: {:?}", parser.size));
        }
        let is_allowed = parser.passes.iter().all(|object| reader.reads[*object] != Reach::Nothing);
        Ok((condition, parser.size, is_allowed))
    }

    /// Whether a condition is valid, and whether the reader may read all objects that it uses.
    pub(in crate::promises) fn allows(&self, reader: &Reader, object: usize, json: &Value) -> bool {
        self.admit(reader, object, json).is_ok_and(|(.., is_allowed)| is_allowed)
    }

    /// The rows of an object that a condition finds, and the condition's size. The error describes the fault of the condition.
    pub(in crate::promises) fn judge(&self, reader: &Reader, object: usize, json: &Value) -> Result<(Verdict, Size), String> {
        let (condition, size, is_allowed) = self.admit(reader, object, json)?;
        if !is_allowed {
            return Ok((Verdict::Forbidden, size));
        }
        let rows = self.rows[object].iter();
        let found = rows.filter(|row| {
            Self::is_readable(reader, object, row) && self.holds(reader, &condition, object, Place::Row(row)) == Some(true)
        });
        Ok((Verdict::Found(found.map(|row| row.id.clone()).collect()), size))
    }

    /// These rows of an object in the order of a list. `sort` names fields, and a `-` before a name means descending order.
    /// Without `sort`, the rows that were created last come first. Nulls come last in ascending order, and first in descending
    /// order. The id breaks ties, in the direction of the first field.
    pub(in crate::promises) fn sorted(&self, object: usize, sort: Option<&str>, ids: &BTreeSet<String>) -> Vec<String> {
        let key = |text: &str| match text.strip_prefix('-') {
            Some(name) => (name.to_owned(), true),
            None => (text.to_owned(), false),
        };
        let mut keys: Vec<(String, bool)> = sort.unwrap_or("-created_at").split(',').map(key).collect();
        if keys.iter().all(|(name, _)| name != "id") {
            let descends = keys[0].1;
            keys.push(("id".to_owned(), descends));
        }
        let cell = |row: &Row, name: &String| {
            let column = self.objects[object].columns.iter().find(|column| column.name == *name).expect("a column");
            Cell::read(column.kind, &row.values[name]).expect("a value of the column's type")
        };
        let chosen = self.rows[object].iter().filter(|row| ids.contains(&row.id));
        let mut rows: Vec<(Vec<Cell>, &String)> =
            chosen.map(|row| (keys.iter().map(|(name, _)| cell(row, name)).collect(), &row.id)).collect();
        rows.sort_by(|(one, _), (other, _)| {
            let orders = keys.iter().zip(one.iter().zip(other)).map(|((_, descends), cells)| {
                let order = match cells {
                    (Cell::Null, Cell::Null) => Ordering::Equal,
                    (Cell::Null, _) => Ordering::Greater,
                    (_, Cell::Null) => Ordering::Less,
                    (one, other) => one.order(other).expect("values that have an order"),
                };
                if *descends { order.reverse() } else { order }
            });
            orders.fold(Ordering::Equal, Ordering::then)
        });
        rows.into_iter().map(|(_, id)| id.clone()).collect()
    }
}

/// Whether one test is true. Every test is true or false, also for null.
fn is_so(cell: &Cell, operator: Operator, operands: &[Cell]) -> bool {
    let equals_any = || operands.iter().any(|operand| cell.equals(operand));
    let ordered = |is_wanted: fn(Ordering) -> bool| operands.iter().any(|operand| cell.order(operand).is_some_and(is_wanted));
    let contains = |folds_case| {
        operands.iter().any(|part| match part {
            Cell::Text(part) => cell.contains(part, folds_case),
            _ => false,
        })
    };
    match operator {
        Operator::Eq | Operator::In => equals_any(),
        Operator::Neq | Operator::Nin => !equals_any(),
        Operator::Gt => ordered(Ordering::is_gt),
        Operator::Gte => ordered(Ordering::is_ge),
        Operator::Lt => ordered(Ordering::is_lt),
        Operator::Lte => ordered(Ordering::is_le),
        Operator::Like => contains(false),
        Operator::Ilike => contains(true),
        Operator::IsNull => *cell == Cell::Null,
        Operator::IsNotNull => *cell != Cell::Null,
    }
}

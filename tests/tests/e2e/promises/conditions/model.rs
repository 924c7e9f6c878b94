//! The reference for conditions: rows in memory, and the rows that a condition finds for a reader.
//!
//! It is simple and slow, follows only the specification, and shares no code with the server.

use std::cmp::Ordering;
use std::collections::{BTreeMap, BTreeSet};

use serde_json::{Map, Value};

use super::cells::Cell;

pub(super) const LEAVES_MAX: usize = 100;
pub(super) const LEVELS_MAX: usize = 8;
pub(super) const STEPS_MAX: usize = 10;
pub(super) const DEPTH_MAX: usize = 3;
const ITEMS_MAX: usize = 1000;

#[derive(Clone, Debug)]
pub(super) struct Column {
    pub(super) name: String,
    pub(super) kind: &'static str,
}

#[derive(Clone, Debug)]
pub(super) struct Object {
    pub(super) name: String,
    /// Includes system columns and references.
    pub(super) columns: Vec<Column>,
}

#[derive(Clone, Debug)]
pub(super) struct Relation {
    pub(super) name: String,
    pub(super) kind: &'static str,
    /// Objects by their index.
    pub(super) source: usize,
    pub(super) target: usize,
}

impl Relation {
    pub(super) fn is_links(&self) -> bool {
        self.kind == "many_to_many"
    }

    /// The object that has the column of references, and the object that they refer to.
    pub(super) fn sides(&self) -> (usize, usize) {
        if self.kind == "one_to_many" { (self.target, self.source) } else { (self.source, self.target) }
    }

    pub(super) fn column(&self) -> String {
        format!("{}_id", self.name)
    }
}

/// A relation, seen from one of its objects.
#[derive(Clone, Debug)]
pub(super) struct End {
    pub(super) key: String,
    pub(super) relation: usize,
    /// The object that it leads to.
    pub(super) object: usize,
    pub(super) is_single: bool,
    /// Whether the relation is followed from the reference or the link, and not back.
    is_forward: bool,
}

#[derive(Clone, Debug)]
pub(super) struct Row {
    pub(super) id: String,
    /// The user who created the row.
    pub(super) maker: usize,
    /// The values as JSON, by column.
    pub(super) values: Map<String, Value>,
}

#[derive(Clone, Debug, Default)]
pub(super) struct World {
    pub(super) objects: Vec<Object>,
    pub(super) relations: Vec<Relation>,
    /// By object.
    pub(super) rows: Vec<Vec<Row>>,
    /// The relation, the id of the source, and the id of the target.
    pub(super) links: BTreeSet<(usize, String, String)>,
}

/// The rows of an object that a reader may read.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Reach {
    Nothing,
    Own,
    All,
}

/// A caller.
#[derive(Clone, Debug)]
pub(super) struct Reader {
    pub(super) name: &'static str,
    pub(super) user: usize,
    /// By object.
    pub(super) reads: Vec<Reach>,
    /// Variables such as `$user.id`, with their values.
    pub(super) variables: BTreeMap<&'static str, String>,
    pub(super) roles: Vec<String>,
}

/// The result of a condition for a reader.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Verdict {
    Forbidden,
    Found(BTreeSet<String>),
}

/// The numbers that are bounded.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(super) struct Size {
    pub(super) leaves: usize,
    pub(super) levels: usize,
    pub(super) steps: usize,
    pub(super) depth: usize,
}

impl Size {
    pub(super) fn is_within_bounds(&self) -> bool {
        self.leaves <= LEAVES_MAX && self.levels <= LEVELS_MAX && self.steps <= STEPS_MAX && self.depth <= DEPTH_MAX
    }
}

#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Operator {
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
pub(super) const OPERATORS: [(Operator, &[&str]); 12] = [
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
    /// Whether columns of a type take the operator.
    pub(super) fn fits(self, kind: &str) -> bool {
        match self {
            Operator::IsNull | Operator::IsNotNull => true,
            Operator::Eq | Operator::Neq | Operator::In | Operator::Nin => kind != "json",
            Operator::Gt | Operator::Gte | Operator::Lt | Operator::Lte => !matches!(kind, "json" | "multi_enum"),
            Operator::Like | Operator::Ilike => matches!(kind, "text" | "email" | "url" | "slug" | "enum" | "multi_enum"),
        }
    }
}

#[derive(Clone, Debug)]
enum Condition {
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

/// Reads conditions, and counts what is bounded.
struct Parser<'a> {
    world: &'a World,
    reader: &'a Reader,
    size: Size,
    /// The objects that relations lead to.
    passes: BTreeSet<usize>,
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
                Value::String(text) if text == "$user.roles" => self
                    .reader
                    .roles
                    .iter()
                    .map(|role| Cell::read(column.kind, &Value::from(role.as_str())))
                    .collect::<Result<_, _>>()?,
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
        self.reader.variables.get(text).map(|value| Value::from(value.as_str())).ok_or_else(|| format!("{text} has no value"))
    }
}

impl World {
    /// The relation keys of an object.
    pub(super) fn ends(&self, object: usize) -> Vec<End> {
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

    /// The rows that a relation leads to and that the reader may read.
    fn related(&self, reader: &Reader, end: &End, row: Option<&Row>) -> Vec<&Row> {
        let Some(row) = row else { return Vec::new() };
        let relation = &self.relations[end.relation];
        let leads_to = |other: &Row| match (relation.is_links(), end.is_forward) {
            (true, true) => self.links.contains(&(end.relation, row.id.clone(), other.id.clone())),
            (true, false) => self.links.contains(&(end.relation, other.id.clone(), row.id.clone())),
            (false, true) => row.values[&relation.column()] == other.id.as_str(),
            (false, false) => other.values[&relation.column()] == row.id.as_str(),
        };
        self.rows[end.object].iter().filter(|other| Self::is_readable(reader, end.object, other) && leads_to(other)).collect()
    }

    /// Whether a condition is met for a row, or for an absent row.
    fn holds(&self, reader: &Reader, condition: &Condition, row: Option<&Row>) -> bool {
        let each = |end: &End, inner: &Condition| -> Vec<bool> {
            self.related(reader, end, row).into_iter().map(|other| self.holds(reader, inner, Some(other))).collect()
        };
        match condition {
            Condition::All(inner) => inner.iter().all(|inner| self.holds(reader, inner, row)),
            Condition::Any(inner) => inner.iter().any(|inner| self.holds(reader, inner, row)),
            Condition::Not(inner) => !self.holds(reader, inner, row),
            Condition::One(end, inner) => {
                let related = self.related(reader, end, row);
                assert!(related.len() <= 1, "{} leads to several rows", end.key);
                self.holds(reader, inner, related.first().copied())
            }
            Condition::Some(end, inner) => each(end, inner).contains(&true),
            Condition::None(end, inner) => !each(end, inner).contains(&true),
            Condition::Every(end, inner) => !each(end, inner).contains(&false),
            Condition::Leaf(column, operator, operands) => {
                let value = row.map_or(&Value::Null, |row| &row.values[&column.name]);
                let cell = Cell::read(column.kind, value).expect("a value of the column's type");
                is_so(&cell, *operator, operands)
            }
        }
    }

    /// The rows of an object that a condition finds, and the condition's size. The error describes what is wrong with the condition.
    pub(super) fn judge(&self, reader: &Reader, object: usize, json: &Value) -> Result<(Verdict, Size), String> {
        let mut parser = Parser { world: self, reader, size: Size::default(), passes: BTreeSet::from([object]) };
        let condition = parser.condition(object, json, 1, 0)?;
        if !parser.size.is_within_bounds() {
            return Err(format!("it is over a bound: {:?}", parser.size));
        }
        if parser.passes.iter().any(|object| reader.reads[*object] == Reach::Nothing) {
            return Ok((Verdict::Forbidden, parser.size));
        }
        let rows = self.rows[object].iter();
        let found = rows.filter(|row| Self::is_readable(reader, object, row) && self.holds(reader, &condition, Some(row)));
        Ok((Verdict::Found(found.map(|row| row.id.clone()).collect()), parser.size))
    }
}

/// Whether one test is true. It is true or false, also for null.
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

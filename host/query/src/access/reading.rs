//! Makes a condition from JSON, checked against the registry and the rights of the caller.

use std::borrow::Cow;
use std::cmp::Ordering;
use std::fmt::Write as _;
use std::sync::Arc;

use blockbase_schema::json::Members;
use blockbase_schema::{Code, Column, Error, Object, Registry, Relation, Result, Value, enumerated, excerpt, excerpt_of, json};
use serde_json::value::RawValue;

use super::Access;
use crate::condition::{
    Audience, Condition, DEPTH_MAX, LEAVES_MAX, LEVELS_MAX, Meaning, NamedQuantifier, OBJECTS_MAX, PARTS_MAX, POLICY_LEAVES_MAX,
    POLICY_STEPS_MAX, POLICY_VALUES_MAX, Quantifier, Related, STEPS_MAX, Variable, Variables,
};
use crate::filter::{Filter, FilterValue};
use crate::limits::{FILTER_VALUES_MAX, LIST_ITEMS_MAX};
use crate::operator::{Operand, Operator};
use crate::parameter::ListParameter;
use crate::predicate::{Comparison, Predicate, Test, predicate};

/// A condition as it was sent: JSON text.
#[derive(Clone, Debug)]
pub enum Where {
    /// The query parameter `where`. If the object has a field with this name, the parameter is a filter on that field.
    Parameter(String),
    /// The member `where` of a JSON document.
    Json(Box<RawValue>),
}

impl Where {
    /// The number of bytes of its text.
    pub fn bytes(&self) -> usize {
        match self {
            Where::Parameter(text) => text.len(),
            Where::Json(raw) => raw.get().len(),
        }
    }
}

/// The context in which a condition is read.
pub struct Reading<'a> {
    pub registry: &'a Registry,
    /// The caller's access to the records that a relation leads to.
    pub decide: &'a dyn Fn(&Relation) -> Result<Access>,
    pub variables: &'a dyn Fn() -> Variables,
    pub bounds: Bounds,
}

/// The maximum size of a condition.
#[derive(Clone, Copy, Debug)]
pub struct Bounds {
    leaves: usize,
    steps: usize,
    values: usize,
}

impl Bounds {
    /// The limits for a caller's condition.
    pub fn of_request() -> Bounds {
        Bounds { leaves: LEAVES_MAX, steps: STEPS_MAX, values: FILTER_VALUES_MAX }
    }

    /// The limits for the condition of a grant.
    pub fn of_policy() -> Bounds {
        Bounds { leaves: POLICY_LEAVES_MAX, steps: POLICY_STEPS_MAX, values: POLICY_VALUES_MAX }
    }
}

/// Splits `wheres` into filters on a field with the name `where`, and the condition.
///
/// # Errors
/// `invalid_request` for a second condition.
pub(crate) fn split<'a>(object: &Object, wheres: &'a [Where]) -> Result<(Vec<Filter>, Option<&'a str>)> {
    let name = ListParameter::Where.name();
    let is_field = object.column_index(name).is_some();
    let (mut filters, mut conditions) = (Vec::new(), Vec::new());
    for asked in wheres {
        match asked {
            Where::Parameter(text) if is_field => filters.push(Filter {
                field: name.to_owned(),
                operator: Operator::DEFAULT,
                value: FilterValue::Text(text.clone()),
            }),
            Where::Parameter(text) => conditions.push(text.as_str()),
            Where::Json(raw) => conditions.push(raw.get()),
        }
    }
    match conditions.as_slice() {
        [] => Ok((filters, None)),
        [one] => Ok((filters, Some(one))),
        _ => Err(Error::invalid_request(format!("`{name}` occurs twice. Join the two with `_and`."))),
    }
}

/// Reads a condition on the rows of `object`.
///
/// # Errors
/// `invalid_request`, `unknown_field` or `invalid_value`, each with the path in its message; the error of [`Reading::decide`] for
/// an object that the caller may not read.
pub fn read(object: &Object, text: &str, reading: &Reading<'_>) -> Result<Condition> {
    read_counted(object, text, reading).map(|(condition, _)| condition)
}

/// The differences of a condition on a result from one on records.
pub(crate) struct OfResult<'a> {
    /// The parameter that has the condition.
    pub(crate) parameter: &'a str,
    /// The error of a name that is no column of the result.
    pub(crate) unknown: fn(&Object, &str) -> Error,
    /// Whether the column with this index has only values within the range of its type. A number out of that range then decides its
    /// test for all values.
    pub(crate) is_bounded: &'a dyn Fn(usize) -> bool,
}

/// Reads a condition on the rows of a result.
///
/// # Errors
/// `invalid_request`, `invalid_value` or the error of [`OfResult::unknown`], each with the path in its message.
pub(crate) fn read_at(of: &OfResult<'_>, result: &Object, text: &str, reading: &Reading<'_>) -> Result<Condition> {
    read_from(Some(of), result, text, reading).map(|(condition, _)| condition)
}

/// Reads the condition of a request on the rows of `object`, and also returns the number of tests in the text.
///
/// # Errors
/// The errors of [`read`].
pub(crate) fn read_counted(object: &Object, text: &str, reading: &Reading<'_>) -> Result<(Condition, usize)> {
    read_from(None, object, text, reading)
}

fn read_from(of: Option<&OfResult<'_>>, object: &Object, text: &str, reading: &Reading<'_>) -> Result<(Condition, usize)> {
    let path = of.map_or(ListParameter::Where.name(), |of| of.parameter).to_owned();
    let audience = Audience::default();
    let mut reader = Reader { reading, of, variables: None, objects: 0, leaves: 0, steps: 0, values: 0, audience, path };
    let condition = reader.condition(object, text, Place { level: 1, depth: 0 })?;
    Ok((condition, reader.leaves))
}

/// How deep a part of the condition is nested.
#[derive(Clone, Copy)]
struct Place {
    /// The number of JSON objects around the part, including the part itself.
    level: usize,
    /// The number of relations around the part.
    depth: usize,
}

impl Place {
    fn below(self) -> Place {
        Place { level: self.level + 1, ..self }
    }
}

struct Reader<'a> {
    reading: &'a Reading<'a>,
    /// `None` for a condition on records.
    of: Option<&'a OfResult<'a>>,
    variables: Option<Variables>,
    objects: usize,
    leaves: usize,
    steps: usize,
    /// The number of values that the tests bind.
    values: usize,
    /// The audience of the variables that the innermost condition on related rows has named so far, or the whole condition.
    audience: Audience,
    /// The path of the part that is being read, as in `where._or[1].amount`.
    path: String,
}

impl Reader<'_> {
    /// Reads a part of the condition, with one more step on the path.
    fn at<T>(&mut self, step: Step<'_>, read: impl FnOnce(&mut Self) -> Result<T>) -> Result<T> {
        let length = self.path.len();
        match step {
            Step::Key(key) => {
                self.path.push('.');
                self.path.push_str(&excerpt(key));
            }
            Step::Item(index) => drop(write!(self.path, "[{index}]")),
        }
        let result = read(self);
        self.path.truncate(length);
        result
    }

    fn refused(&self, message: impl AsRef<str>) -> Error {
        self.named(Error::invalid_request(message.as_ref()))
    }

    /// Puts the path in front of the error's message.
    fn named(&self, mut error: Error) -> Error {
        error.message = format!("`{}`: {}", self.path, error.message);
        error
    }

    fn check_level(&self, place: Place) -> Result<()> {
        match place.level <= LEVELS_MAX {
            true => Ok(()),
            false => Err(self.refused(format!("A condition has {LEVELS_MAX} levels of objects at most."))),
        }
    }

    /// The members of a JSON object.
    fn members(&mut self, text: &str, place: Place, what: &str) -> Result<Members> {
        self.check_level(place)?;
        self.objects += 1;
        if self.objects > OBJECTS_MAX {
            return Err(self.refused(format!("A condition has {OBJECTS_MAX} objects at most.")));
        }
        if !text.trim_start().starts_with('{') {
            return Err(self.refused(format!("This needs {what}.")));
        }
        serde_json::from_str(text).map_err(|error| self.refused(format!("This cannot be read: {}.", excerpt_of(&error))))
    }

    fn condition(&mut self, object: &Object, text: &str, place: Place) -> Result<Condition> {
        let members = self.members(text, place, "a condition, which is a JSON object")?;
        let mut parts = Vec::with_capacity(members.0.len());
        for (key, raw) in &members.0 {
            parts.push(self.at(Step::Key(key), |reader| reader.member(object, key, raw.get(), place))?);
        }
        Ok(Condition::all(parts))
    }

    fn member(&mut self, object: &Object, key: &str, raw: &str, place: Place) -> Result<Condition> {
        match key {
            "_and" => self.list(object, raw, place).map(Condition::all),
            "_or" => self.list(object, raw, place).map(Condition::any),
            "_not" => self.condition(object, raw, place.below()).map(Condition::complement),
            _ if key.starts_with('_') => Err(self.refused("There is no such key. Use `_and`, `_or` or `_not`.")),
            _ => self.named_part(object, key, raw, place),
        }
    }

    fn list(&mut self, object: &Object, raw: &str, place: Place) -> Result<Vec<Condition>> {
        let items = self.items(raw, PARTS_MAX, "conditions")?;
        let mut parts = Vec::with_capacity(items.len());
        for (index, item) in items.iter().enumerate() {
            parts.push(self.at(Step::Item(index), |reader| reader.condition(object, item.get(), place.below()))?);
        }
        Ok(parts)
    }

    fn items(&self, raw: &str, most: usize, what: &str) -> Result<Vec<Box<RawValue>>> {
        if !raw.trim_start().starts_with('[') {
            return Err(self.refused(format!("This needs an array of {what}.")));
        }
        json::list_of(raw, most).map_err(|error| self.refused(format!("This is not a list of {what}: {error}.")))
    }

    /// Reads a member whose key is a field, a relation, or a path of relations that ends with a field or a relation.
    fn named_part(&mut self, object: &Object, name: &str, raw: &str, place: Place) -> Result<Condition> {
        let (first, rest) = match name.split_once('.') {
            Some((first, rest)) => (first, Some(rest)),
            None => (name, None),
        };
        if let Some(column) = object.column_index(first) {
            return match rest {
                None => self.field(object, &object.columns[column], raw, place.below()),
                Some(_) => Err(self.refused(format!("`{first}` is a field, so the path cannot go on after it."))),
            };
        }
        let registry = self.reading.registry;
        let Some(relation) = registry.relation(object.name(), first) else {
            return Err(self.named(match self.of {
                Some(of) => (of.unknown)(object, first),
                None => Error::unknown_field(object.name(), first),
            }));
        };
        let is_single = relation.shape.is_single();
        self.steps += 1;
        let place = Place { level: place.level + 1, depth: place.depth + 1 };
        self.check_level(place)?;
        if place.depth > DEPTH_MAX {
            return Err(self.refused(format!("A condition goes {DEPTH_MAX} relations deep at most.")));
        }
        let most = self.reading.bounds.steps;
        if self.steps > most {
            return Err(self.refused(format!("A condition has {most} relation keys at most.")));
        }
        let access = (self.reading.decide)(relation)?;
        let related = registry.object(&relation.related).ok_or_else(|| Error::unknown_object(&relation.related))?;
        let link = |quantifier: Quantifier, (condition, audience): (Condition, Audience)| {
            Condition::related(Related {
                key: relation.key.clone(),
                shape: relation.shape,
                object: Arc::clone(related),
                scope: access.scope().clone(),
                quantifier,
                condition,
                audience,
            })
        };
        match (is_single, rest) {
            (true, None) => Ok(link(Quantifier::One, self.on_rows(|reader| reader.condition(related, raw, place))?)),
            (true, Some(rest)) => Ok(link(Quantifier::One, self.on_rows(|reader| reader.named_part(related, rest, raw, place))?)),
            (false, Some(_)) => {
                Err(self.refused(format!("`{first}` leads to many records. Use it with {}.", NamedQuantifier::enumerated())))
            }
            (false, None) => self.quantified(related, raw, place, &link),
        }
    }

    /// Reads a condition on related rows, and finds out its audience.
    fn on_rows(&mut self, read: impl FnOnce(&mut Self) -> Result<Condition>) -> Result<(Condition, Audience)> {
        let around = std::mem::take(&mut self.audience);
        let condition = read(self)?;
        let audience = self.audience;
        self.audience = around.max(audience);
        Ok((condition, audience))
    }

    fn quantified(
        &mut self,
        related: &Object,
        raw: &str,
        place: Place,
        link: &dyn Fn(Quantifier, (Condition, Audience)) -> Condition,
    ) -> Result<Condition> {
        let what = format!("an object with {}", NamedQuantifier::enumerated());
        let members = self.members(raw, place, &what)?;
        if members.0.is_empty() {
            return Err(self.refused(format!("This needs {what}.")));
        }
        let mut parts = Vec::with_capacity(members.0.len());
        for (key, raw) in &members.0 {
            let part = self.at(Step::Key(key), |reader| {
                let mut inner = || reader.on_rows(|reader| reader.condition(related, raw.get(), place.below()));
                match NamedQuantifier::named(key) {
                    Some(NamedQuantifier::Some) => Ok(link(Quantifier::Some, inner()?)),
                    Some(NamedQuantifier::None) => Ok(link(Quantifier::None, inner()?)),
                    Some(NamedQuantifier::Every) => {
                        let (condition, audience) = inner()?;
                        Ok(link(Quantifier::None, (condition.complement(), audience)))
                    }
                    None => {
                        let known = NamedQuantifier::enumerated();
                        Err(reader.refused(format!("There is no such key. A relation to many records takes {known}.")))
                    }
                }
            })?;
            parts.push(part);
        }
        Ok(Condition::all(parts))
    }

    /// Reads the condition on one field: a value, or an object of operators.
    fn field(&mut self, object: &Object, column: &Column, raw: &str, place: Place) -> Result<Condition> {
        if !raw.trim_start().starts_with('{') {
            return self.test(object, column, Operator::DEFAULT, raw);
        }
        let members = self.members(raw, place, "")?;
        if members.0.is_empty() {
            let names = enumerated(Operator::ALL.iter().map(|operator| operator.name()), "or");
            return Err(self.refused(format!("This names no operator. Use {names}.")));
        }
        let mut parts = Vec::with_capacity(members.0.len());
        for (key, raw) in &members.0 {
            let part = self.at(Step::Key(key), |reader| {
                let operator = Operator::parse(key).map_err(|error| reader.named(error))?;
                reader.test(object, column, operator, raw.get())
            })?;
            parts.push(part);
        }
        Ok(Condition::all(parts))
    }

    fn test(&mut self, object: &Object, column: &Column, operator: Operator, raw: &str) -> Result<Condition> {
        self.leaves += 1;
        let most = self.reading.bounds.leaves;
        if self.leaves > most {
            return Err(self.refused(format!("A condition has {most} tests at most.")));
        }
        let value = match operator.operand() {
            Operand::Nothing if raw.trim() == "true" => Ok(Cow::Borrowed(raw)),
            Operand::Nothing => Err(self.refused(format!("`{}` takes only `true`.", operator.name()))),
            Operand::List => self.list_operand(raw),
            Operand::Ordered | Operand::Value | Operand::Text => self.operand(raw),
        };
        let value = value.map_err(|error| match error.code {
            Code::InvalidValue => error.with_field(column.name.clone()),
            _ => error,
        })?;
        let value = match self.within_range(object, column, operator, value)? {
            Ok(value) => RawValue::from_string(value.into_owned()).map_err(Error::internal)?,
            Err(decided) => return Ok(decided),
        };
        let filter = |value| Filter { field: column.name.clone(), operator, value: FilterValue::Json(value) };
        let tested = predicate(object, &filter(value.clone())).and_then(|predicate| {
            self.values += predicate.test.values();
            let most = self.reading.bounds.values;
            match self.values <= most {
                true => Ok(normal_test(predicate)),
                false => Err(Error::invalid_request(format!("A condition holds {most} values at most."))),
            }
        });
        tested.or_else(|error| {
            // In a list, the error names the first item that would also be refused alone.
            let items =
                if operator.operand() == Operand::List { self.items(value.get(), LIST_ITEMS_MAX, "values")? } else { vec![] };
            let refused = |item: Box<RawValue>| predicate(object, &filter(item)).is_err();
            match items.into_iter().position(refused) {
                Some(index) => self.at(Step::Item(index), |reader| Err(reader.named(error))),
                None => Err(self.named(error)),
            }
        })
    }

    /// The operand, without the items of a list that are out of the column's range. `Err` with the condition if a single value is out
    /// of the range, and so decides the test for all values.
    fn within_range<'r>(
        &self,
        object: &Object,
        column: &Column,
        operator: Operator,
        value: Cow<'r, str>,
    ) -> Result<Result<Cow<'r, str>, Condition>> {
        let index = self.of.zip(object.column_index(&column.name)).filter(|(of, index)| (of.is_bounded)(*index));
        let Some((_, index)) = index else { return Ok(Ok(value)) };
        if operator.operand() == Operand::List {
            let Ok(mut items) = self.items(&value, LIST_ITEMS_MAX, "values") else { return Ok(Ok(value)) };
            let all = items.len();
            items.retain(|item| column.out_of_type(item.get()).is_none());
            return Ok(Ok(match items.len() == all {
                true => value,
                false => Cow::Owned(serde_json::to_string(&items).map_err(Error::internal)?),
            }));
        }
        let (Some(comparison), Some(end)) = (Comparison::of(operator), column.out_of_type(&value)) else { return Ok(Ok(value)) };
        Ok(Err(match (comparison, end) {
            (Comparison::Equal, _)
            | (Comparison::Greater | Comparison::GreaterOrEqual, Ordering::Greater)
            | (Comparison::Less | Comparison::LessOrEqual, Ordering::Less) => Condition::FALSE,
            (Comparison::NotEqual, _) => Condition::TRUE,
            (Comparison::Greater | Comparison::GreaterOrEqual | Comparison::Less | Comparison::LessOrEqual, _) => {
                Condition::Test(Predicate { column: index, test: Test::IsNotNull })
            }
        }))
    }

    /// A single value with its variable resolved.
    fn operand<'r>(&mut self, raw: &'r str) -> Result<Cow<'r, str>> {
        match self.resolved(raw)? {
            None => Ok(Cow::Borrowed(raw)),
            Some(Meaning::Text(text)) => quoted(&text).map(Cow::Owned),
            Some(Meaning::List(_)) => Err(self.refused("This variable is a list. Use it with `in` or `nin`.")),
        }
    }

    /// The items of `in` or `nin` with their variables resolved.
    fn list_operand<'r>(&mut self, raw: &'r str) -> Result<Cow<'r, str>> {
        if let Some(Meaning::List(items)) = self.resolved(raw)? {
            return serde_json::to_string(&items).map(Cow::Owned).map_err(Error::internal);
        }
        let items = self.items(raw, LIST_ITEMS_MAX, "values")?;
        // Where GraphQL expects a list, it turns a single value into a list with one item.
        if let [one] = items.as_slice()
            && let Some(Meaning::List(items)) = self.resolved(one.get())?
        {
            return serde_json::to_string(&items).map(Cow::Owned).map_err(Error::internal);
        }
        // The items are checked only if one of them can be a variable.
        if !raw.contains('$') && !raw.contains('\\') {
            return Ok(Cow::Borrowed(raw));
        }
        let mut out = String::from("[");
        for (index, item) in items.iter().enumerate() {
            if index > 0 {
                out.push(',');
            }
            let operand = self.at(Step::Item(index), |reader| reader.operand(item.get()))?;
            out.push_str(&operand);
        }
        out.push(']');
        Ok(Cow::Owned(out))
    }

    /// The meaning of a text that begins with `$`. `None` for everything else.
    fn resolved(&mut self, raw: &str) -> Result<Option<Meaning>> {
        let raw = raw.trim_start();
        // The `$` can be written as a JSON escape.
        if !raw.starts_with("\"$") && !raw.starts_with("\"\\") {
            return Ok(None);
        }
        let text: String = serde_json::from_str(raw).map_err(|error| self.refused(format!("{}.", excerpt_of(&error))))?;
        match text.strip_prefix('$') {
            None => Ok(None),
            Some(literal) if literal.starts_with('$') => Ok(Some(Meaning::Text(literal.to_owned()))),
            Some(_) => {
                self.audience = self.audience.max(Variable::named(&text).map(Variable::audience).unwrap_or_default());
                let variables = self.variables.get_or_insert_with(self.reading.variables);
                variables.meaning(&text).map(Some).map_err(|error| self.named(error))
            }
        }
    }
}

/// Replaces tests with a number between two values that the column can have, because no value is equal to such a number.
fn normal_test(Predicate { column, test }: Predicate) -> Condition {
    let test = match test {
        Test::Compare(comparison, Value::DecimalBetween { below, scale }) => {
            let below = Value::Decimal { scaled: below, scale };
            match comparison {
                Comparison::Equal => return Condition::FALSE,
                Comparison::NotEqual => return Condition::TRUE,
                Comparison::Greater | Comparison::GreaterOrEqual => Test::Compare(Comparison::Greater, below),
                Comparison::Less | Comparison::LessOrEqual => Test::Compare(Comparison::LessOrEqual, below),
            }
        }
        Test::In { mut values, negated } => {
            values.retain(|value| !matches!(value, Value::DecimalBetween { .. }));
            match (values.is_empty(), negated) {
                (true, false) => return Condition::FALSE,
                (true, true) => return Condition::TRUE,
                (false, _) => Test::In { values, negated },
            }
        }
        test => test,
    };
    Condition::Test(Predicate { column, test })
}

/// One step of a path.
#[derive(Clone, Copy)]
enum Step<'a> {
    Key(&'a str),
    Item(usize),
}

fn quoted(text: &str) -> Result<String> {
    serde_json::to_string(text).map_err(Error::internal)
}

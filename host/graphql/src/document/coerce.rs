//! Reads the values of a request: checks them against their types, and writes the JSON that operations take, with all digits.

use std::collections::HashMap;

use async_graphql::parser::types::{BaseType, OperationDefinition, Type, VariableDefinition};
use async_graphql::{Name, Pos, Positioned};
use async_graphql_value::Value;
use blockbase_app::condition::{LEVELS_MAX, OBJECTS_MAX};
use blockbase_app::schema::json::{self, Members};
use blockbase_app::schema::{Code, Error, Result};
use parking_lot::RwLock;
use serde_json::value::RawValue;

use crate::error::GraphqlError;
use crate::view::View;
use crate::view::types::{Input, InputField, Scalar};

/// The maximum number of bytes of the arguments of one operation. A variable counts at each place that uses it.
pub(crate) const ARGUMENT_BYTES_MAX: usize = 10 * 1024 * 1024;

/// A variable of at most this many bytes is kept until its operation ends.
const KEPT_BYTES_MAX: usize = 64 * 1024;

/// The maximum number of levels of objects and lists in a condition. Each object of an `_and` or `_or` is inside a list.
const CONDITION_NESTING_MAX: usize = 2 * LEVELS_MAX;

/// The variables of an operation.
#[derive(Debug)]
pub(crate) enum Variables {
    /// The variables that have a value, as JSON text. Large values are dropped when they are no longer needed.
    Sent(RwLock<HashMap<String, String>>),
    /// The types of the variables, and whether they have a default that is not null. A document is checked before the values are
    /// known.
    Declared(HashMap<String, (Input, bool)>),
}

impl Default for Variables {
    fn default() -> Self {
        Variables::Sent(RwLock::default())
    }
}

impl Variables {
    /// Reads the declarations of an operation.
    ///
    /// # Errors
    /// `invalid_request` for a type that does not exist.
    pub(crate) fn declared(view: &View, operation: &OperationDefinition) -> Result<Variables, GraphqlError> {
        let mut types = HashMap::with_capacity(operation.variable_definitions.len());
        for definition in &operation.variable_definitions {
            let name = definition.node.name.node.as_str();
            let Some(input) = declared(view, &definition.node.var_type.node) else { return Err(unknown_type(definition)) };
            let default = definition.node.default_value.as_ref().map(|default| &default.node);
            if let Some(default) = default {
                let written = write_literal(&default.clone().into_value(), &input, &Variables::default(), &mut Vec::new());
                written.map_err(|error| of_variable(error, definition))?;
            }
            let has_default = default.is_some_and(|default| *default != async_graphql::Value::Null);
            types.insert(name.to_owned(), (input, has_default));
        }
        Ok(Variables::Declared(types))
    }

    /// Checks the values that were sent against the declarations, and fills in defaults.
    ///
    /// # Errors
    /// One error for each variable whose value does not have its type.
    pub(crate) fn of(view: &View, operation: &OperationDefinition, sent: &Members) -> Result<Variables, Vec<GraphqlError>> {
        let mut values = HashMap::with_capacity(operation.variable_definitions.len());
        let mut errors = Vec::new();
        for definition in &operation.variable_definitions {
            let name = definition.node.name.node.as_str();
            let Some(input) = declared(view, &definition.node.var_type.node) else {
                errors.push(unknown_type(definition));
                continue;
            };
            let raw = sent.0.iter().find(|(sent, _)| sent == name).map(|(_, raw)| raw);
            let mut out = Vec::new();
            let written = match (raw, &definition.node.default_value) {
                (Some(raw), _) => write_json(raw.get(), &input, &mut out).map(|()| true),
                (None, Some(default)) => {
                    write_literal(&default.node.clone().into_value(), &input, &Variables::default(), &mut out)
                }
                (None, None) if matches!(input, Input::Required(_)) => {
                    Err(Error::invalid_request("it is required and was not sent"))
                }
                (None, None) => Ok(false),
            };
            match (written, String::from_utf8(out)) {
                (Ok(true), Ok(text)) => {
                    values.insert(name.to_owned(), text);
                }
                (Ok(_), _) => {}
                (Err(error), _) => errors.push(of_variable(error, definition)),
            }
        }
        match errors.is_empty() {
            true => Ok(Variables::Sent(RwLock::new(values))),
            false => Err(errors),
        }
    }

    /// The number of bytes of all variables.
    pub(crate) fn bytes(&self) -> usize {
        match self {
            Variables::Sent(values) => values.read().values().map(String::len).sum(),
            Variables::Declared(_) => 0,
        }
    }

    /// The name of each variable, and the result of `read` for its JSON text.
    pub(crate) fn map<T>(&self, read: impl Fn(&str) -> T) -> Vec<(String, T)> {
        match self {
            Variables::Sent(values) => values.read().iter().map(|(name, text)| (name.clone(), read(text))).collect(),
            Variables::Declared(_) => Vec::new(),
        }
    }

    /// Drops large values as soon as the arguments of the last root field have a copy. Flags of `@skip` and `@include` stay.
    pub(crate) fn forget_large(&self) {
        if let Variables::Sent(values) = self {
            values.write().retain(|_, text| text.len() <= KEPT_BYTES_MAX);
        }
    }

    /// Whether the value is a variable without a value. A field that has a default then gets the default.
    fn leaves_out(&self, value: &Value) -> bool {
        matches!((self, value), (Variables::Sent(values), Value::Variable(name)) if !values.read().contains_key(name.as_str()))
    }

    /// Writes the variable as a value of type `input`. Returns `false` if the variable has no value.
    ///
    /// # Errors
    /// `invalid_request` if the variable has another type, or the arguments grow too large.
    fn write(&self, name: &str, input: &Input, has_default: bool, out: &mut Vec<u8>) -> Result<bool> {
        let values = match self {
            Variables::Declared(types) => {
                // Validation refuses a variable that is not declared.
                let Some((declared, has_own_default)) = types.get(name) else { return Ok(true) };
                return match fits(declared, *has_own_default, input, has_default) {
                    true => {
                        out.extend_from_slice(b"null");
                        Ok(true)
                    }
                    false => {
                        let (declared, due) = (written(declared), written(input));
                        Err(Error::invalid_request(format!("`${name}` has the type `{declared}`, but its place needs `{due}`")))
                    }
                };
            }
            Variables::Sent(values) => values.read(),
        };
        match values.get(name).map(String::as_str) {
            Some("null") if !takes_null(input) => Err(mismatch(input)),
            Some(text) => {
                within_bound(out.len() + text.len())?;
                // A list accepts a single value as a list with one item.
                match is_list(input) && !text.starts_with('[') && text != "null" {
                    true => out.extend_from_slice(format!("[{text}]").as_bytes()),
                    false => out.extend_from_slice(text.as_bytes()),
                }
                Ok(true)
            }
            None if matches!(input, Input::Required(_)) => Err(mismatch(input)),
            None => Ok(false),
        }
    }

    /// Whether the argument of a `@skip` or `@include` is true.
    pub(crate) fn is_true(&self, value: &Value) -> bool {
        match value {
            Value::Boolean(value) => *value,
            Value::Variable(name) => match self {
                Variables::Sent(values) => values.read().get(name.as_str()).is_some_and(|text| text == "true"),
                Variables::Declared(_) => false,
            },
            _ => false,
        }
    }
}

/// # Errors
/// `invalid_request` if the arguments of an operation are larger than the limit.
pub(crate) fn within_bound(bytes: usize) -> Result<()> {
    match bytes <= ARGUMENT_BYTES_MAX {
        true => Ok(()),
        false => {
            let most = ARGUMENT_BYTES_MAX / 1024 / 1024;
            Err(Error::invalid_request(format!("an operation's arguments have more than {most} MiB together")))
        }
    }
}

fn unknown_type(definition: &Positioned<VariableDefinition>) -> GraphqlError {
    let message =
        format!("The type of the variable `${}` does not exist, or it is not an input type.", definition.node.name.node);
    GraphqlError::invalid(message, vec![definition.pos])
}

fn of_variable(error: Error, definition: &Positioned<VariableDefinition>) -> GraphqlError {
    let name = &definition.node.name.node;
    GraphqlError::of_document(outside_of_records(error).within(format_args!("The variable `${name}`")), vec![definition.pos])
}

/// Whether a variable of type `declared` may be used for `due`: the rule "All Variable Usages Are Allowed" of the specification.
pub(crate) fn fits(declared: &Input, has_own_default: bool, due: &Input, has_default: bool) -> bool {
    match (declared, due) {
        (Input::Required(declared), Input::Required(due)) => fits(declared, true, due, true),
        (_, Input::Required(due)) => (has_own_default || has_default) && fits(declared, true, due, true),
        (Input::Required(declared), _) => fits(declared, true, due, true),
        (Input::List(declared), Input::List(due)) => fits(declared, false, due, false),
        (Input::List(_), _) | (_, Input::List(_)) => false,
        (declared, due) => declared.name() == due.name(),
    }
}

fn declared(view: &View, ty: &Type) -> Option<Input> {
    let base = match &ty.base {
        BaseType::Named(name) => view.input(name)?,
        BaseType::List(inner) => declared(view, inner)?.list(),
    };
    Some(if ty.nullable { base } else { base.required() })
}

/// Checks a value sent as JSON and appends it.
///
/// # Errors
/// `invalid_request`, or `invalid_value` with the field if the value belongs to a record.
fn write_json(text: &str, input: &Input, out: &mut Vec<u8>) -> Result<()> {
    let malformed = |error: serde_json::Error| Error::invalid_request(format!("it cannot be read: {error}"));
    match input {
        _ if text == "null" && !takes_null(input) => Err(mismatch(input)),
        Input::Required(inner) => write_json(text, inner, out),
        _ if text == "null" => {
            out.extend_from_slice(b"null");
            Ok(())
        }
        Input::List(inner) => {
            if input.object().is_some() {
                check_condition(text)?;
            }
            let items: Vec<Box<RawValue>> = match text.starts_with('[') {
                true => serde_json::from_str(text).map_err(malformed)?,
                // A single value counts as a list with one item.
                false => vec![RawValue::from_string(text.to_owned()).map_err(malformed)?],
            };
            write_items(&items, out, |index, item, out| {
                let written = write_json(item.get(), inner, out).map(|()| true);
                written.map_err(|error| of_item(error, inner, index))
            })
        }
        Input::Scalar(scalar) => write_scalar(text, *scalar, input, out),
        Input::Enum(_, values) => {
            let name: String = serde_json::from_str(text).map_err(|_| mismatch(input))?;
            write_option(&name, values, input, out)
        }
        input_object => {
            if !text.starts_with('{') {
                return Err(mismatch(input));
            }
            if input.object().is_some() {
                check_condition(text)?;
            }
            let members: Members = serde_json::from_str(text).map_err(malformed)?;
            let members: Vec<_> = members.0.iter().map(|(name, raw)| (name.as_str(), raw.as_ref())).collect();
            let write =
                |raw: &&RawValue, input: &Input, _: bool, out: &mut Vec<u8>| write_json(raw.get(), input, out).map(|()| true);
            write_object(input_object, &members, |_| false, out, write)
        }
    }
}

/// Checks a literal of the document, and appends it. Returns `false` for a variable without a value.
pub(crate) fn write_literal(value: &Value, input: &Input, variables: &Variables, out: &mut Vec<u8>) -> Result<bool> {
    match (value, input) {
        (Value::Variable(name), _) => variables.write(name, input, false, out),
        (Value::Null, _) if !takes_null(input) => Err(mismatch(input)),
        (_, Input::Required(inner)) => write_literal(value, inner, variables, out),
        (Value::Null, _) => {
            out.extend_from_slice(b"null");
            Ok(true)
        }
        (Value::List(items), Input::List(inner)) => {
            write_items(items, out, |index, item, out| {
                write_literal(item, inner, variables, out).map_err(|error| of_item(error, inner, index))
            })?;
            Ok(true)
        }
        (_, Input::List(inner)) => {
            out.push(b'[');
            let written = write_literal(value, inner, variables, out)?;
            out.push(b']');
            Ok(written)
        }
        (_, Input::Scalar(Scalar::Json)) => {
            write_any(value, variables, out)?;
            Ok(true)
        }
        (Value::Enum(_) | Value::List(_) | Value::Object(_), Input::Scalar(_)) => Err(mismatch(input)),
        (_, Input::Scalar(scalar)) => {
            let mut text = Vec::new();
            write_any(value, &Variables::default(), &mut text)?;
            let text = String::from_utf8(text).map_err(Error::internal)?;
            write_scalar(&text, *scalar, input, out).map(|()| true)
        }
        (Value::Enum(name), Input::Enum(_, values)) => write_option(name, values, input, out).map(|()| true),
        (Value::Object(members), input_object) => {
            let members: Vec<_> = members.iter().map(|(name, value)| (name.as_str(), value)).collect();
            let write = |value: &&Value, input: &Input, has_default: bool, out: &mut Vec<u8>| match value {
                Value::Variable(name) => variables.write(name, input, has_default, out),
                value => write_literal(value, input, variables, out),
            };
            write_object(input_object, &members, |value| variables.leaves_out(value), out, write)?;
            Ok(true)
        }
        _ => Err(mismatch(input)),
    }
}

/// The nesting of lists or objects in JSON text.
pub(crate) struct Nesting {
    /// The deepest level of nesting.
    pub(crate) deepest: usize,
    /// The number of all lists or objects.
    pub(crate) opened: usize,
}

/// Counts lists or objects, which begin and end with `brackets`.
pub(crate) fn nested(json: &str, brackets: &[u8]) -> Nesting {
    let (mut deepest, mut opened, mut open, mut in_text, mut escaped) = (0, 0, 0_usize, false, false);
    for byte in json.bytes() {
        match (in_text, byte) {
            (true, _) if escaped => escaped = false,
            (true, b'\\') => escaped = true,
            (_, b'"') => in_text = !in_text,
            (false, b'[' | b'{') if brackets.contains(&byte) => {
                opened += 1;
                open += 1;
                deepest = deepest.max(open);
            }
            (false, b']' | b'}') if brackets.contains(&byte) => open = open.saturating_sub(1),
            _ => {}
        }
    }
    Nesting { deepest, opened }
}

/// Whether null can be sent. Tests refuse it, because otherwise a variable that a client left as null would become a test for
/// null. To test for null, use `eq` or `is_null`.
fn takes_null(input: &Input) -> bool {
    !matches!(input, Input::Required(_) | Input::Test(_))
}

/// Checks the size of a condition before its values are read.
///
/// # Errors
/// `invalid_request` if a limit is exceeded.
fn check_condition(text: &str) -> Result<()> {
    if nested(text, b"[]{}").deepest > CONDITION_NESTING_MAX {
        return Err(Error::invalid_request(format!("a condition can have at most {LEVELS_MAX} levels of objects")));
    }
    match nested(text, b"{}").opened <= OBJECTS_MAX {
        true => Ok(()),
        false => Err(Error::invalid_request(format!("a condition can have at most {OBJECTS_MAX} objects"))),
    }
}

/// The error of an item of a list. In a condition, it names the item.
fn of_item(error: Error, item: &Input, index: usize) -> Error {
    match item.object() {
        Some(_) => error.within(format_args!("`[{index}]`")),
        None => error,
    }
}

fn is_list(input: &Input) -> bool {
    match input {
        Input::List(_) => true,
        Input::Required(inner) => is_list(inner),
        _ => false,
    }
}

/// `write` gets the index of each item.
fn write_items<T>(items: &[T], out: &mut Vec<u8>, write: impl Fn(usize, &T, &mut Vec<u8>) -> Result<bool>) -> Result<()> {
    out.push(b'[');
    for (index, item) in items.iter().enumerate() {
        if index > 0 {
            out.push(b',');
        }
        if !write(index, item, out)? {
            out.extend_from_slice(b"null");
        }
    }
    out.push(b']');
    Ok(())
}

fn write_object<T>(
    input: &Input,
    members: &[(&str, T)],
    is_left_out: impl Fn(&T) -> bool,
    out: &mut Vec<u8>,
    write: impl Fn(&T, &Input, bool, &mut Vec<u8>) -> Result<bool>,
) -> Result<()> {
    let fields = input.fields().ok_or_else(|| mismatch(input))?;
    let is_record = matches!(input, Input::Create(_) | Input::Update(_) | Input::Increment(_));
    // For a record, all faults are reported. For any other value, only the first fault is reported.
    let mut problems = Vec::new();
    let mut refuse = |problem: Error| match is_record {
        true => {
            problems.push(problem);
            Ok(())
        }
        false => Err(problem),
    };
    // The names in a condition are fields too.
    let names_fields = is_record || input.object().is_some();
    let of_field = |code: Code, name: &str, message: String| {
        let error = Error::new(if names_fields { code } else { Code::InvalidRequest }, message);
        if names_fields { error.with_field(name) } else { error }
    };
    for (name, _) in members.iter().filter(|(name, _)| !fields.iter().any(|field| field.name == *name)) {
        refuse(of_field(Code::UnknownField, name, format!("`{}` has no field `{name}`", input.name())))?;
    }
    let begun = out.len();
    out.push(b'{');
    for field in &fields {
        let member = members.iter().find(|(name, _)| *name == field.name);
        let Some((_, value)) = member.filter(|(_, value)| field.default.is_none() || !is_left_out(value)) else {
            match (field.default, &field.input) {
                (Some(default), _) => write_member(out, begun, &field.name, |out| json::write_string(out, default)),
                (None, Input::Required(_)) => {
                    refuse(of_field(Code::InvalidRequest, &field.name, format!("`{}` is missing", field.name)))?;
                }
                (None, _) => {}
            }
            continue;
        };
        let mut text = Vec::new();
        let written = write(value, &field.input, field.default.is_some(), &mut text).map_err(|error| {
            match is_record && error.field.is_none() {
                // The operation itself would give an error with this code.
                true => Error {
                    code: if error.code == Code::ConstraintViolation { error.code } else { Code::InvalidValue },
                    field: Some(field.name.clone()),
                    ..error
                },
                false => error,
            }
        });
        match written.map_err(|error| error.within(format_args!("`{}`", field.name))) {
            Ok(true) => write_member(out, begun, &field.name, |out| out.extend_from_slice(&text)),
            Ok(false) => {}
            Err(problem) => refuse(problem)?,
        }
    }
    out.push(b'}');
    match Error::of_record(problems) {
        Some(error) => Err(error),
        None => Ok(()),
    }
}

fn write_member(out: &mut Vec<u8>, begun: usize, name: &str, value: impl FnOnce(&mut Vec<u8>)) {
    if out.len() > begun + 1 {
        out.push(b',');
    }
    json::write_string(out, name);
    out.push(b':');
    value(out);
}

fn write_scalar(text: &str, scalar: Scalar, input: &Input, out: &mut Vec<u8>) -> Result<()> {
    let first = text.as_bytes().first().copied().unwrap_or_default();
    let is_number = first == b'-' || first.is_ascii_digit();
    let fits = match scalar {
        Scalar::Json => true,
        Scalar::String | Scalar::DateTime => first == b'"',
        Scalar::Boolean => matches!(first, b't' | b'f'),
        Scalar::Float => is_number,
        Scalar::Int => {
            let whole = text.parse::<f64>().ok().filter(|number| is_number && number.fract() == 0.0);
            let whole = whole.filter(|number| f64::from(i32::MIN) <= *number && *number <= f64::from(i32::MAX));
            let Some(whole) = whole else { return Err(mismatch(input)) };
            json::write_integer(out, whole as i64);
            return Ok(());
        }
        // A number becomes an id with the same digits.
        Scalar::Id if is_number && text.parse::<i64>().is_ok() => {
            json::write_string(out, text);
            return Ok(());
        }
        Scalar::Id => first == b'"',
    };
    if !fits {
        return Err(mismatch(input));
    }
    out.extend_from_slice(text.as_bytes());
    Ok(())
}

fn write_option(name: &str, values: &[String], input: &Input, out: &mut Vec<u8>) -> Result<()> {
    if !values.iter().any(|value| value == name) {
        let message = format!("{name:?} is not a value of `{}`. The values are {}", input.name(), values.join(", "));
        return Err(Error::new(Code::ConstraintViolation, message));
    }
    json::write_string(out, name);
    Ok(())
}

/// Writes any value of the document as JSON.
fn write_any(value: &Value, variables: &Variables, out: &mut Vec<u8>) -> Result<()> {
    match value {
        // A variable within a JSON value may have any type.
        Value::Variable(name) => {
            let any = Input::Scalar(Scalar::Json);
            if matches!(variables, Variables::Declared(_)) || !variables.write(name, &any, true, out)? {
                out.extend_from_slice(b"null");
            }
        }
        Value::Null => out.extend_from_slice(b"null"),
        Value::Boolean(value) => out.extend_from_slice(if *value { b"true" } else { b"false" }),
        Value::Number(number) => out.extend_from_slice(number.to_string().as_bytes()),
        Value::String(text) => json::write_string(out, text),
        Value::Enum(name) => json::write_string(out, name),
        Value::Binary(_) => return Err(Error::invalid_request("a value is bytes, which no argument accepts")),
        Value::List(items) => write_items(items, out, |_, item, out| write_any(item, variables, out).map(|()| true))?,
        Value::Object(members) => {
            let begun = out.len();
            out.push(b'{');
            for (name, value) in members {
                // A variable without a value leaves out its member.
                if variables.leaves_out(value) {
                    continue;
                }
                let mut text = Vec::new();
                write_any(value, variables, &mut text)?;
                write_member(out, begun, name, |out| out.extend_from_slice(&text));
            }
            out.push(b'}');
        }
    }
    Ok(())
}

fn mismatch(input: &Input) -> Error {
    Error::invalid_request(format!("a value of the type `{}` is needed", written(input)))
}

/// An unknown option violates a constraint only in a record. In any other place, it makes the request invalid.
fn outside_of_records(error: Error) -> Error {
    match error.code == Code::ConstraintViolation && error.field.is_none() {
        true => Error { code: Code::InvalidRequest, ..error },
        false => error,
    }
}

/// The type, as a document writes it.
fn written(input: &Input) -> String {
    match input {
        Input::Required(inner) => format!("{}!", written(inner)),
        Input::List(inner) => format!("[{}]", written(inner)),
        named => named.name(),
    }
}

/// The arguments of a field: JSON text by name.
pub(crate) struct Arguments(HashMap<String, String>);

/// An error and its place in the document. `Pos::default()` means the place of the field itself.
pub(crate) type PlacedError = (Error, Pos);

/// An argument, as the document has it.
pub(crate) type SentArgument = (Positioned<Name>, Positioned<Value>);

impl Arguments {
    /// Checks the arguments that were sent against `declared`.
    ///
    /// # Errors
    /// `invalid_request`, or the error for a value of a record.
    pub(crate) fn of(declared: Vec<InputField>, sent: &[SentArgument], variables: &Variables) -> Result<Arguments, PlacedError> {
        let mut values = HashMap::with_capacity(sent.len());
        for field in declared {
            let name = field.name;
            let argument = sent.iter().find(|(sent, _)| sent.node.as_str() == name);
            let mut out = Vec::new();
            let (written, position) = match argument {
                Some((name, value)) => (write_literal(&value.node, &field.input, variables, &mut out), name.pos),
                None if matches!(field.input, Input::Required(_)) => (Err(mismatch(&field.input)), Pos::default()),
                None => (Ok(false), Pos::default()),
            };
            match written {
                Ok(true) => {
                    let text = String::from_utf8(out).map_err(|error| (Error::internal(error), position))?;
                    values.insert(name, text);
                }
                Ok(false) => {}
                Err(error) => {
                    let error = outside_of_records(error).within(format_args!("The argument `{name}`"));
                    return Err((error, position));
                }
            }
        }
        let arguments = Arguments(values);
        within_bound(arguments.bytes()).map_err(|error| (error, Pos::default()))?;
        Ok(arguments)
    }

    /// The number of bytes of all arguments.
    pub(crate) fn bytes(&self) -> usize {
        self.0.values().map(String::len).sum()
    }

    /// Removes an argument and returns its JSON text. `None` if it is left out or null.
    pub(crate) fn take(&mut self, name: &str) -> Option<String> {
        self.0.remove(name).filter(|text| text != "null")
    }

    /// The JSON text of an argument. `None` if it is left out or null.
    pub(crate) fn json(&self, name: &str) -> Option<&str> {
        self.0.get(name).map(String::as_str).filter(|text| *text != "null")
    }

    /// # Errors
    /// `invalid_request` if the argument has another form.
    pub(crate) fn read<T: serde::de::DeserializeOwned>(&self, name: &str) -> Result<Option<T>> {
        let Some(text) = self.json(name) else { return Ok(None) };
        let value = json::strict_from_str(text);
        value.map(Some).map_err(|error| Error::invalid_request(format!("The argument `{name}` cannot be read: {error}.")))
    }
}

#[cfg(test)]
mod tests {
    use super::nested;

    #[test]
    fn brackets_are_counted_outside_of_text() {
        for (json, lists, all) in [
            ("1", 0, 0),
            ("[1]", 1, 1),
            ("[[1],[2]]", 2, 2),
            (r#"["[[[\"["]"#, 1, 1),
            (r#"{"a":[[]]}"#, 2, 3),
            (r#"{"a":{"b":"{"}}"#, 0, 2),
        ] {
            assert_eq!((nested(json, b"[]").deepest, nested(json, b"[]{}").deepest), (lists, all), "{json}");
        }
        assert_eq!(nested(r#"{"a":[{},{"b":"{"}]}"#, b"{}").opened, 3);
    }
}

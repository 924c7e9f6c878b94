//! Values of a request as the JSON that operations take: checked against their types, with all their digits.

use std::collections::HashMap;

use async_graphql::parser::types::{BaseType, OperationDefinition, Type};
use async_graphql::{Name, Pos};
use async_graphql_value::Value;
use blockbase_app::schema::json::{self, Members};
use blockbase_app::schema::{Code, Error, Result};
use serde_json::value::RawValue;

use crate::error::GraphqlError;
use crate::types::{Input, InputField, Scalar};
use crate::view::View;

/// The variables of an operation: those that have a value, as JSON text.
#[derive(Debug, Default)]
pub(crate) struct Variables(HashMap<String, String>);

impl Variables {
    /// Checks what was sent against what the operation declares, and fills in defaults.
    ///
    /// # Errors
    /// One for each variable that does not fit.
    pub(crate) fn of(view: &View, operation: &OperationDefinition, sent: &Members) -> Result<Variables, Vec<GraphqlError>> {
        let mut values = HashMap::with_capacity(operation.variable_definitions.len());
        let mut errors = Vec::new();
        for definition in &operation.variable_definitions {
            let name = definition.node.name.node.as_str();
            let Some(input) = declared(view, &definition.node.var_type.node) else {
                let message = format!("The type of the variable `${name}` is not known.");
                errors.push(GraphqlError::invalid(message, vec![definition.pos]));
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
                (Err(error), _) => errors
                    .push(GraphqlError::of_document(error.within(format_args!("The variable `${name}`")), vec![definition.pos])),
            }
        }
        match errors.is_empty() {
            true => Ok(Variables(values)),
            false => Err(errors),
        }
    }

    pub(crate) fn get(&self, name: &str) -> Option<&str> {
        self.0.get(name).map(String::as_str)
    }

    /// Each with its JSON text.
    pub(crate) fn iter(&self) -> impl Iterator<Item = (&str, &str)> {
        self.0.iter().map(|(name, text)| (name.as_str(), text.as_str()))
    }

    /// What `@skip` and `@include` are given.
    pub(crate) fn is_true(&self, value: &Value) -> bool {
        match value {
            Value::Boolean(value) => *value,
            Value::Variable(name) => self.get(name) == Some("true"),
            _ => false,
        }
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
/// `invalid_request`, or `invalid_value` with the field for a value of a record.
fn write_json(text: &str, input: &Input, out: &mut Vec<u8>) -> Result<()> {
    let malformed = |error: serde_json::Error| Error::invalid_request(format!("it cannot be read: {error}"));
    match input {
        Input::Required(_) if text == "null" => Err(mismatch(input)),
        Input::Required(inner) => write_json(text, inner, out),
        _ if text == "null" => {
            out.extend_from_slice(b"null");
            Ok(())
        }
        Input::List(inner) => {
            let items: Vec<Box<RawValue>> = match text.starts_with('[') {
                true => serde_json::from_str(text).map_err(malformed)?,
                // One value stands for a list of it.
                false => vec![RawValue::from_string(text.to_owned()).map_err(malformed)?],
            };
            write_items(&items, out, |item, out| write_json(item.get(), inner, out).map(|()| true))
        }
        Input::Scalar(scalar) => write_scalar(text, *scalar, input, out),
        Input::Enum(_, values) => {
            let name: String = serde_json::from_str(text).map_err(|_| mismatch(input))?;
            write_option(&name, values, input, out)
        }
        Input::Filter | Input::Sort | Input::Create(_) | Input::Update(_) | Input::Increment(_) => {
            if !text.starts_with('{') {
                return Err(mismatch(input));
            }
            let members: Members = serde_json::from_str(text).map_err(malformed)?;
            let members: Vec<_> = members.0.iter().map(|(name, raw)| (name.as_str(), raw)).collect();
            write_object(input, &members, out, |raw, input, out| write_json(raw.get(), input, out).map(|()| true))
        }
    }
}

/// Checks a value that stands in the document and appends it; `false` for a variable that has none.
pub(crate) fn write_literal(value: &Value, input: &Input, variables: &Variables, out: &mut Vec<u8>) -> Result<bool> {
    match (value, input) {
        (Value::Variable(name), _) => match (variables.get(name), input) {
            (Some("null"), Input::Required(_)) => Err(mismatch(input)),
            (Some(text), _) => {
                // Validation has seen that its type fits, but for one value where a list is due.
                match is_list(input) && !text.starts_with('[') && text != "null" {
                    true => out.extend_from_slice(format!("[{text}]").as_bytes()),
                    false => out.extend_from_slice(text.as_bytes()),
                }
                Ok(true)
            }
            (None, Input::Required(_)) => Err(mismatch(input)),
            (None, _) => Ok(false),
        },
        (Value::Null, Input::Required(_)) => Err(mismatch(input)),
        (_, Input::Required(inner)) => write_literal(value, inner, variables, out),
        (Value::Null, _) => {
            out.extend_from_slice(b"null");
            Ok(true)
        }
        (Value::List(items), Input::List(inner)) => {
            write_items(items, out, |item, out| write_literal(item, inner, variables, out))?;
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
        (_, Input::Scalar(scalar)) => {
            let mut text = Vec::new();
            write_any(value, &Variables::default(), &mut text)?;
            let text = String::from_utf8(text).map_err(Error::internal)?;
            match value {
                Value::Enum(_) | Value::List(_) | Value::Object(_) => Err(mismatch(input)),
                _ => write_scalar(&text, *scalar, input, out).map(|()| true),
            }
        }
        (Value::Enum(name), Input::Enum(_, values)) => write_option(name, values, input, out).map(|()| true),
        (Value::Object(members), Input::Filter | Input::Sort | Input::Create(_) | Input::Update(_) | Input::Increment(_)) => {
            let members: Vec<_> = members.iter().map(|(name, value)| (name.as_str(), value)).collect();
            write_object(input, &members, out, |value, input, out| write_literal(value, input, variables, out))?;
            Ok(true)
        }
        _ => Err(mismatch(input)),
    }
}

fn is_list(input: &Input) -> bool {
    match input {
        Input::List(_) => true,
        Input::Required(inner) => is_list(inner),
        _ => false,
    }
}

fn write_items<T>(items: &[T], out: &mut Vec<u8>, write: impl Fn(&T, &mut Vec<u8>) -> Result<bool>) -> Result<()> {
    out.push(b'[');
    for (index, item) in items.iter().enumerate() {
        if index > 0 {
            out.push(b',');
        }
        if !write(item, out)? {
            out.extend_from_slice(b"null");
        }
    }
    out.push(b']');
    Ok(())
}

fn write_object<T>(
    input: &Input,
    members: &[(&str, T)],
    out: &mut Vec<u8>,
    write: impl Fn(&T, &Input, &mut Vec<u8>) -> Result<bool>,
) -> Result<()> {
    let fields = input.fields().unwrap_or_default();
    let is_record = matches!(input, Input::Create(_) | Input::Update(_) | Input::Increment(_));
    let refuse = |name: &str, message: String| {
        let error = Error::invalid_request(message);
        Err(if is_record { error.with_field(name) } else { error })
    };
    if let Some((name, _)) = members.iter().find(|(name, _)| !fields.iter().any(|field| field.name == *name)) {
        let message = format!("`{}` has no field `{name}`", input.name());
        let code = if is_record { Code::UnknownField } else { Code::InvalidRequest };
        return Err(Error { code, ..refuse(name, message).err().unwrap_or_else(|| mismatch(input)) });
    }
    let begun = out.len();
    out.push(b'{');
    for field in &fields {
        let Some((_, value)) = members.iter().find(|(name, _)| *name == field.name) else {
            match (field.default, &field.input) {
                (Some(default), _) => write_member(out, begun, &field.name, |out| json::write_string(out, default)),
                (None, Input::Required(_)) => return refuse(&field.name, format!("`{}` is missing", field.name)),
                (None, _) => {}
            }
            continue;
        };
        let mut text = Vec::new();
        let written = write(value, &field.input, &mut text).map_err(|error| match is_record && error.field.is_none() {
            true => Error { code: Code::InvalidValue, field: Some(field.name.clone()), ..error },
            false => error,
        });
        if written.map_err(|error| error.within(format_args!("`{}`", field.name)))? {
            write_member(out, begun, &field.name, |out| out.extend_from_slice(&text));
        }
    }
    out.push(b'}');
    Ok(())
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
        Scalar::Int => is_number && text.parse::<f64>().is_ok_and(|number| number.fract() == 0.0),
        // A number is taken for its digits.
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
        return Err(mismatch(input));
    }
    json::write_string(out, name);
    Ok(())
}

/// A value of the document as JSON, whatever it is.
fn write_any(value: &Value, variables: &Variables, out: &mut Vec<u8>) -> Result<()> {
    match value {
        Value::Variable(name) => out.extend_from_slice(variables.get(name).unwrap_or("null").as_bytes()),
        Value::Null => out.extend_from_slice(b"null"),
        Value::Boolean(value) => out.extend_from_slice(if *value { b"true" } else { b"false" }),
        Value::Number(number) => out.extend_from_slice(number.to_string().as_bytes()),
        Value::String(text) => json::write_string(out, text),
        Value::Enum(name) => json::write_string(out, name),
        Value::Binary(_) => return Err(Error::invalid_request("a value is bytes, which nothing here takes")),
        Value::List(items) => write_items(items, out, |item, out| write_any(item, variables, out).map(|()| true))?,
        Value::Object(members) => {
            let begun = out.len();
            out.push(b'{');
            for (name, value) in members {
                // A variable without a value leaves its member out.
                if matches!(value, Value::Variable(name) if variables.get(name).is_none()) {
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
    Error::invalid_request(format!("a value of the type `{}` is due", written(input)))
}

/// The type as documents write it.
fn written(input: &Input) -> String {
    match input {
        Input::Required(inner) => format!("{}!", written(inner)),
        Input::List(inner) => format!("[{}]", written(inner)),
        named => named.name(),
    }
}

/// The arguments of a field, as JSON text by their names.
pub(crate) struct Arguments(HashMap<String, String>);

/// An argument as the document has it.
pub(crate) type SentArgument = (async_graphql::Positioned<Name>, async_graphql::Positioned<Value>);

impl Arguments {
    /// Checks what was sent against `declared`.
    ///
    /// # Errors
    /// `invalid_request`, or what a value of a record is refused with.
    pub(crate) fn of(declared: Vec<InputField>, sent: &[SentArgument], variables: &Variables) -> Result<Arguments, (Error, Pos)> {
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
                Err(error) => return Err((error.within(format_args!("The argument `{name}`")), position)),
            }
        }
        Ok(Arguments(values))
    }

    /// JSON text; `None` where it is left out or null.
    pub(crate) fn json(&self, name: &str) -> Option<&str> {
        self.0.get(name).map(String::as_str).filter(|text| *text != "null")
    }

    /// # Errors
    /// `invalid_request` where the argument is something else.
    pub(crate) fn read<T: serde::de::DeserializeOwned>(&self, name: &str) -> Result<Option<T>> {
        let Some(text) = self.json(name) else { return Ok(None) };
        let value = serde_json::from_str(text);
        value.map(Some).map_err(|error| Error::invalid_request(format!("The argument `{name}` cannot be read: {error}.")))
    }
}

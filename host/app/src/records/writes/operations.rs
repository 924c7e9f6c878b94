//! The operations of a batch, as callers write them.

use blockbase_schema::json::{Members, Misfit, list_of, strict_from_str};
use blockbase_schema::{Code, Error, Result};
use serde::Deserialize;
use serde_json::value::RawValue;

use super::request::WriteRequest;
use crate::records::links::LinkChange;
use crate::records::versions::Condition;

/// The key of a reference.
const REFERENCE: &str = "$ref";

/// One operation. The places of references in `request` are empty, except in its values.
#[derive(Debug)]
pub(super) struct Operation {
    pub(super) request: WriteRequest,
    /// The reference that stands for the id of the record.
    pub(super) id: Option<Reference>,
    /// The references among the ids of links, each with its index.
    pub(super) ids: Vec<(usize, Reference)>,
}

/// A field of the result of another operation: `{ "$ref": "0.id" }`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Reference {
    pub(super) operation: usize,
    pub(super) field: String,
}

impl Reference {
    /// Reads a value. `None` if the value is not a reference.
    ///
    /// # Errors
    /// `invalid_request` for a malformed reference.
    pub(super) fn parse(json: &str) -> Result<Option<Reference>> {
        if !json.trim_start().starts_with('{') {
            return Ok(None);
        }
        // If the object is malformed, the write reports it.
        let Ok(Members(members)) = serde_json::from_str(json) else { return Ok(None) };
        if !members.iter().any(|(name, _)| name == REFERENCE) {
            return Ok(None);
        }
        let malformed = || {
            Error::invalid_request(
                "A reference has only the key `$ref`, with the index of an earlier operation and a field of its result: \
                 `{ \"$ref\": \"0.id\" }`.",
            )
        };
        let [(_, value)] = members.as_slice() else { return Err(malformed()) };
        let text: String = serde_json::from_str(value.get()).map_err(|_| malformed())?;
        let (operation, field) = text.split_once('.').ok_or_else(malformed)?;
        let is_number = operation.bytes().all(|byte| byte.is_ascii_digit()) && (operation == "0" || !operation.starts_with('0'));
        let is_name = !field.is_empty() && !field.contains('.');
        match operation.parse() {
            Ok(operation) if is_number && is_name => Ok(Some(Reference { operation, field: field.to_owned() })),
            _ => Err(malformed()),
        }
    }
}

/// The members of any operation.
#[derive(Deserialize)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
struct Written {
    op: String,
    object: String,
    id: Option<Box<RawValue>>,
    values: Option<Members>,
    on_conflict: Option<Vec<String>>,
    ids: Option<Box<RawValue>>,
    relation: Option<String>,
    if_version: Option<String>,
}

impl Operation {
    /// Reads one operation. `ids_max` limits the ids of links. If `ignores_more` is true, an `id` or `values` that the operation
    /// does not use is ignored.
    ///
    /// # Errors
    /// `invalid_request`.
    pub(super) fn parse(json: &str, ids_max: usize, ignores_more: bool) -> Result<Operation> {
        let form = |error: Misfit| Error::invalid_request(format!("An operation does not have the expected form: {error}."));
        let Written { op, object, mut id, mut values, mut on_conflict, ids: mut listed, mut relation, mut if_version } =
            strict_from_str(json).map_err(form)?;
        let lacks = |name: &str| Error::invalid_request(format!("`{op}` needs `{name}`."));
        let mut id_of = || match id.take() {
            Some(raw) => text_or_reference(&raw, "id"),
            None => Err(lacks("id")),
        };
        let mut values_of = || values.take().ok_or_else(|| lacks("values"));
        let mut condition_of = || if_version.take().map(|version| condition(&version)).transpose();
        let mut ids = Vec::new();
        let mut reference = None;
        let request = match op.as_str() {
            "create" => WriteRequest::Create { object, values: values_of()? },
            "update" => {
                let (id, refers) = id_of()?;
                reference = refers;
                WriteRequest::Update { object, id, changes: values_of()?, condition: condition_of()? }
            }
            "upsert" => {
                let target = on_conflict.take().ok_or_else(|| lacks("onConflict"))?;
                WriteRequest::Upsert { object, values: values_of()?, target }
            }
            "delete" => {
                let (id, refers) = id_of()?;
                reference = refers;
                WriteRequest::Delete { object, id, condition: condition_of()? }
            }
            "link" | "unlink" => {
                let (id, refers) = id_of()?;
                reference = refers;
                let relation = relation.take().ok_or_else(|| lacks("relation"))?;
                let raw = listed.take().ok_or_else(|| lacks("ids"))?;
                let items: Vec<Box<RawValue>> = list_of(raw.get(), ids_max)
                    .map_err(|error| Error::invalid_request(format!("`ids` is not a list of ids: {error}.")).with_field("ids"))?;
                let mut texts = Vec::with_capacity(items.len());
                for (index, item) in items.iter().enumerate() {
                    let (text, refers) = text_or_reference(item, "ids")?;
                    ids.extend(refers.map(|reference| (index, reference)));
                    texts.push(text);
                }
                let change = if op == "link" { LinkChange::Add } else { LinkChange::Remove };
                WriteRequest::Links { object, id, relation, ids: texts, change }
            }
            _ => {
                let message = format!("`op` must be create, update, upsert, delete, link or unlink; it is {op:?}.");
                return Err(Error::invalid_request(message));
            }
        };
        let rest = [
            ("id", id.is_some()),
            ("values", values.is_some()),
            ("onConflict", on_conflict.is_some()),
            ("ids", listed.is_some()),
            ("relation", relation.is_some()),
            ("ifVersion", if_version.is_some()),
        ];
        match rest.into_iter().find(|(name, is_given)| *is_given && !(ignores_more && matches!(*name, "id" | "values"))) {
            Some((name, _)) => Err(Error::invalid_request(format!("`{op}` takes no `{name}`."))),
            None => Ok(Operation { request, id: reference, ids }),
        }
    }
}

/// A text, or an empty text and the reference that stands in its place.
fn text_or_reference(raw: &RawValue, name: &str) -> Result<(String, Option<Reference>)> {
    match Reference::parse(raw.get()).map_err(|error| error.with_field(name))? {
        Some(reference) => Ok((String::new(), Some(reference))),
        None => {
            let text = serde_json::from_str(raw.get());
            let text =
                text.map_err(|_| Error::invalid_request(format!("`{name}` needs a text or a reference.")).with_field(name))?;
            Ok((text, None))
        }
    }
}

fn condition(version: &str) -> Result<Condition> {
    Condition::parse(version).map_err(|why| {
        let message = format!("`ifVersion` needs one ETag of a response with this record, with its quotes, or `*`; {why}.");
        Error::new(Code::InvalidRequest, message)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_reference_has_an_index_and_a_field() {
        let parsed = |json: &str| Reference::parse(json).map_err(|error| error.code);
        let reference = |operation, field: &str| Ok(Some(Reference { operation, field: field.to_owned() }));
        assert_eq!(parsed(r#"{ "$ref": "0.id" }"#), reference(0, "id"));
        assert_eq!(parsed(r#"{"$ref":"12.created_at"}"#), reference(12, "created_at"));
        for other in ["1", "\"0.id\"", "[]", "{}", r#"{"$inc":1}"#, r#"{"ref":"0.id"}"#, r#"{"$ref":"0.id","$ref":"0.id"}"#] {
            assert_eq!(parsed(other), Ok(None), "{other}");
        }
        for bad in [
            "0",
            "\"0\"",
            "\"\"",
            "\".\"",
            "\"0.\"",
            "\".id\"",
            "\"00.id\"",
            "\"01.id\"",
            "\"-1.id\"",
            "\"+1.id\"",
            "\"a.id\"",
            "\"0.a.b\"",
            "\" 0.id\"",
            "\"99999999999999999999999.id\"",
            "null",
            "[]",
            "{}",
        ] {
            assert_eq!(parsed(&format!(r#"{{"$ref":{bad}}}"#)), Err(Code::InvalidRequest), "{bad}");
        }
        assert_eq!(parsed(r#"{"$ref":"0.id","$inc":1}"#), Err(Code::InvalidRequest));
    }

    #[test]
    fn an_operation_has_its_own_members_and_no_others() {
        let read = |json: &str, ignores_more| Operation::parse(json, 2, ignores_more);
        for good in [
            r#"{"op":"create","object":"task","values":{}}"#,
            r#"{"op":"update","object":"task","id":"x","values":{},"ifVersion":"*"}"#,
            r#"{"op":"update","object":"task","id":{"$ref":"0.id"},"values":{},"onConflict":null}"#,
            r#"{"op":"upsert","object":"task","values":{},"onConflict":["a"]}"#,
            r#"{"op":"delete","object":"task","id":"x","ifVersion":"\"a\""}"#,
            r#"{"op":"link","object":"task","id":"x","relation":"tags","ids":["a",{"$ref":"0.id"}]}"#,
            r#"{"op":"unlink","object":"task","id":"x","relation":"tags","ids":[]}"#,
        ] {
            assert!(read(good, false).is_ok(), "{good}");
        }
        for bad in [
            "1",
            "[]",
            "{}",
            r#"{"op":"create","object":"task"}"#,
            r#"{"op":"create","object":"task","values":[]}"#,
            r#"{"op":"create","object":"task","values":{"a":1,"a":1}}"#,
            r#"{"op":"create","object":"task","values":{},"colour":1}"#,
            r#"{"op":"create","object":"task","values":{},"ifVersion":"*"}"#,
            r#"{"op":"create","object":7,"values":{}}"#,
            r#"{"op":"make","object":"task","values":{}}"#,
            r#"{"op":"update","object":"task","values":{}}"#,
            r#"{"op":"update","object":"task","id":7,"values":{}}"#,
            r#"{"op":"update","object":"task","id":{},"values":{}}"#,
            r#"{"op":"update","object":"task","id":"x","values":{},"ifVersion":"a"}"#,
            r#"{"op":"upsert","object":"task","values":{}}"#,
            r#"{"op":"upsert","object":"task","values":{},"onConflict":"a"}"#,
            r#"{"op":"link","object":"task","id":"x","relation":"tags","ids":["a","b","c"]}"#,
            r#"{"op":"link","object":"task","id":"x","relation":"tags","ids":[1]}"#,
            r#"{"op":"link","object":"task","id":"x","ids":[]}"#,
        ] {
            assert_eq!(read(bad, true).map_err(|error| error.code).err(), Some(Code::InvalidRequest), "{bad}");
        }
        for more in
            [r#"{"op":"create","object":"task","values":{},"id":"x"}"#, r#"{"op":"delete","object":"task","id":"x","values":{}}"#]
        {
            assert!(read(more, true).is_ok() && read(more, false).is_err(), "{more}");
        }
    }
}

//! References of operations to the results of earlier operations of the same batch.

use std::collections::BTreeMap;

use blockbase_query::not_readable;
use blockbase_schema::json::Members;
use blockbase_schema::{Code, ColumnType, Error, Result};
use serde_json::value::RawValue;

use super::operations::{Operation, Reference};
use super::request::WriteRequest;
use crate::outbox::record_events::WriteContext;
use crate::records::links::LinkChange;

/// The fields of earlier results that later operations refer to. Each has its JSON, as the caller sees it.
pub(super) type Results = BTreeMap<usize, Members>;

/// The references of one operation. They are filled in when the earlier operations have run.
#[derive(Debug, Default)]
pub(super) struct References {
    id: Option<Reference>,
    ids: Vec<(usize, Reference)>,
    /// Each has the index of its member in the values.
    values: Vec<(usize, Reference)>,
}

impl References {
    /// Finds the references of the operation at `index`. In a column of JSON, an object is data, not a reference. `None` if there
    /// are no references.
    ///
    /// # Errors
    /// `invalid_request` for a reference that does not lead to the result of an earlier operation; `unknown_field` for a field
    /// that the result cannot have.
    pub(super) fn of(context: &WriteContext, operations: &[Operation], index: usize) -> Result<Option<References>> {
        let Operation { request, id, ids } = &operations[index];
        let mut references = References { id: id.clone(), ids: ids.clone(), values: Vec::new() };
        if let (Some(Members(values)), Some(object)) = (request.values(), context.registry.object(request.object())) {
            for (place, (name, raw)) in values.iter().enumerate() {
                let is_data = object.column(name).is_none_or(|column| column.ty == ColumnType::Json);
                // The plan refuses a column that the caller may not name. Its kind is not revealed here.
                if is_data || !context.caller.may_name(&context.grant_context(), object, name) {
                    continue;
                }
                let reference = Reference::parse(raw.get()).map_err(|error| error.with_field(name))?;
                references.values.extend(reference.map(|reference| (place, reference)));
            }
        }
        for (name, reference) in references.named(request) {
            check(context, &operations[..index], reference).map_err(|error| match error.code {
                Code::UnknownField => error,
                _ => error.with_field(name),
            })?;
        }
        let is_none = references.id.is_none() && references.ids.is_empty() && references.values.is_empty();
        Ok(if is_none { None } else { Some(references) })
    }

    /// Each reference, with the name of the member or the column where it is.
    fn named<'r>(&'r self, request: &'r WriteRequest) -> impl Iterator<Item = (&'r str, &'r Reference)> {
        let of_ids = self.ids.iter().map(|(_, reference)| ("ids", reference));
        let values = request.values().map_or(&[][..], |values| values.0.as_slice());
        let of_values = self.values.iter().map(move |(place, reference)| (values[*place].0.as_str(), reference));
        self.id.iter().map(|reference| ("id", reference)).chain(of_ids).chain(of_values)
    }

    /// The operations and fields that the references lead to.
    pub(super) fn targets(&self) -> impl Iterator<Item = &Reference> {
        let values = self.ids.iter().chain(&self.values).map(|(_, reference)| reference);
        self.id.iter().chain(values)
    }

    /// Fills in the values that the references of a request lead to.
    ///
    /// # Errors
    /// `forbidden` with `field` for a field that the caller does not see; `invalid_value` for a value that cannot be where the
    /// reference is; `answer_too_large` for too many bytes; `not_found` if the earlier operation wrote nothing.
    pub(super) fn fill(&self, context: &mut WriteContext, mut request: WriteRequest, results: &Results) -> Result<WriteRequest> {
        if let (Some(reference), Some(id)) = (&self.id, id_of(&mut request)) {
            *id = text(copied(context, results, reference)?, "id", reference)?;
        }
        if let WriteRequest::Links { ids, .. } = &mut request {
            for (place, reference) in &self.ids {
                ids[*place] = text(copied(context, results, reference)?, "ids", reference)?;
            }
        }
        if let Some(Members(values)) = values_of(&mut request) {
            for (place, reference) in &self.values {
                let (name, value) = &mut values[*place];
                let raw = copied(context, results, reference)?;
                // An object would be read as an atomic operator. Only a column of JSON can have stored it.
                if raw.get().starts_with('{') {
                    return Err(misplaced(name, reference, "an object"));
                }
                *value = raw.to_owned();
            }
        }
        Ok(request)
    }
}

fn id_of(request: &mut WriteRequest) -> Option<&mut String> {
    match request {
        WriteRequest::Update { id, .. } | WriteRequest::Delete { id, .. } | WriteRequest::Links { id, .. } => Some(id),
        WriteRequest::Create { .. } | WriteRequest::Upsert { .. } => None,
    }
}

fn values_of(request: &mut WriteRequest) -> Option<&mut Members> {
    match request {
        WriteRequest::Create { values, .. } | WriteRequest::Upsert { values, .. } => Some(values),
        WriteRequest::Update { changes, .. } => Some(changes),
        WriteRequest::Delete { .. } | WriteRequest::Links { .. } => None,
    }
}

/// Checks that a reference leads to a field that the result of an earlier operation may have.
fn check(context: &WriteContext, earlier: &[Operation], reference: &Reference) -> Result<()> {
    let Reference { operation, field } = reference;
    let Some(Operation { request, .. }) = earlier.get(*operation) else {
        let message = format!("`{operation}.{field}` does not refer to an earlier operation.");
        return Err(Error::invalid_request(message));
    };
    let counted = match request {
        WriteRequest::Delete { .. } => {
            let message = format!("`{operation}.{field}` refers to a deletion, which has no result.");
            return Err(Error::invalid_request(message));
        }
        WriteRequest::Links { change, .. } => Some(count_name(*change)),
        WriteRequest::Create { .. } | WriteRequest::Update { .. } | WriteRequest::Upsert { .. } => None,
    };
    let is_known = match (counted, context.registry.object(request.object())) {
        (Some(name), _) => field == name,
        // A field that the caller may not know is refused like one that does not exist.
        (None, Some(object)) => {
            object.column(field).is_some() && context.caller.may_name(&context.grant_context(), object, field)
        }
        (None, None) => false,
    };
    if is_known { Ok(()) } else { Err(Error::unknown_field(request.object(), field)) }
}

/// The member of the result of a change of links.
pub(super) fn count_name(change: LinkChange) -> &'static str {
    match change {
        LinkChange::Add => "added",
        LinkChange::Remove => "removed",
    }
}

/// The value that a reference leads to. Its bytes count as values of the call.
fn copied<'r>(context: &mut WriteContext, results: &'r Results, reference: &Reference) -> Result<&'r RawValue> {
    let raw = find(results, reference)?;
    context.touched.count_copied(raw.get().len())?;
    Ok(raw)
}

fn find<'r>(results: &'r Results, reference: &Reference) -> Result<&'r RawValue> {
    let Reference { operation, field } = reference;
    let Some(Members(members)) = results.get(operation) else {
        let message = format!("`{operation}.{field}` has no value, because the operation wrote no record.");
        return Err(Error::new(Code::NotFound, message));
    };
    let member = members.iter().find(|(name, _)| name == field);
    member.map(|(_, raw)| &**raw).ok_or_else(|| not_readable(field))
}

/// An id that a reference leads to.
fn text(raw: &RawValue, name: &str, reference: &Reference) -> Result<String> {
    serde_json::from_str(raw.get()).map_err(|_| misplaced(name, reference, "not a text"))
}

fn misplaced(name: &str, Reference { operation, field }: &Reference, what: &str) -> Error {
    Error::new(Code::InvalidValue, format!("`{name}`: `{operation}.{field}` is {what}.")).with_field(name)
}

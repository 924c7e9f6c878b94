//! `data`: records, through the operations that every surface uses.

use blockbase_app::schema::json::{Members, malformed, parse_list, parse_members};
use blockbase_app::schema::{Code, Error, Result};
use blockbase_app::{AggregateRequest, LinkChange, ListRequest, WriteAnswer, WriteRequest, expand_paths};
use serde::Deserialize;

use super::guest_error;
use crate::bindings::blockbase::block::data::Host;
use crate::bindings::blockbase::block::types;
use crate::call::{CallState, Service};

type Answer<T> = wasmtime::Result<std::result::Result<T, types::Error>>;

impl CallState {
    /// Counts the call and gives the service to its operation.
    fn service(&mut self) -> wasmtime::Result<std::result::Result<&Service, types::Error>> {
        self.count_host_call()?;
        Ok(self
            .service
            .as_ref()
            .ok_or_else(|| guest_error(Error::new(Code::Unavailable, "There is no data while a block is being installed."))))
    }
}

/// Takes the service, or answers with why there is none.
macro_rules! service {
    ($state:expr) => {
        match $state.service()? {
            Ok(service) => service,
            Err(error) => return Ok(Err(error)),
        }
    };
}

fn text(json: Vec<u8>) -> Result<String> {
    String::from_utf8(json).map_err(Error::internal)
}

/// One operation of a batch.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct BatchOperation {
    op: String,
    object: String,
    id: Option<String>,
    values: Option<Members>,
}

impl BatchOperation {
    fn request(self) -> Result<WriteRequest> {
        let lacks = |key: &str, op: &str| Error::invalid_request(format!("A batch operation `{op}` needs `{key}`."));
        let Self { op, object, id, values } = self;
        match op.as_str() {
            "create" => Ok(WriteRequest::Create { object, values: values.ok_or_else(|| lacks("values", &op))? }),
            "update" => Ok(WriteRequest::Update {
                object,
                id: id.ok_or_else(|| lacks("id", &op))?,
                changes: values.ok_or_else(|| lacks("values", &op))?,
            }),
            "delete" => Ok(WriteRequest::Delete { object, id: id.ok_or_else(|| lacks("id", &op))? }),
            _ => Err(Error::invalid_request(format!("A batch operation is create, update or delete; {op:?} is none."))),
        }
    }
}

async fn query(service: &Service, object: &str, query: &str) -> Result<String> {
    let answer = service.app.list(&service.caller, object, ListRequest::from_json(query)?).await?;
    text(answer.json())
}

async fn create_many(service: &Service, object: &str, values: &str) -> Result<String> {
    let records: Vec<Members> = parse_list(values, service.app.settings().bulk_records_max)?;
    Ok(service.app.create_many(&service.caller, object, records).await?.json())
}

async fn delete_many(service: &Service, object: &str, ids: Vec<String>) -> Result<Vec<String>> {
    let deleted = service.app.delete_many(&service.caller, object, &ids).await?;
    Ok(deleted.ids.iter().map(ToString::to_string).collect())
}

/// `{ expand? }`: relation keys as in a list, comma-separated.
#[derive(Deserialize, Default)]
#[serde(deny_unknown_fields)]
struct GetOptions {
    expand: Option<String>,
}

async fn get(service: &Service, object: &str, id: &str, options: Option<&str>) -> Result<Option<String>> {
    let options: GetOptions = match options {
        Some(options) => serde_json::from_str(options).map_err(|error| malformed(&error))?,
        None => GetOptions::default(),
    };
    let expand = options.expand.as_deref().map(expand_paths).unwrap_or_default();
    service.app.get(&service.caller, object, id, &expand).await?.map(text).transpose()
}

/// `{ created, data }`.
async fn upsert(service: &Service, object: &str, values: &str, target: &[String]) -> Result<String> {
    let upserted = service.app.upsert(&service.caller, object, parse_members(values)?, target).await?;
    Ok(format!("{{\"created\":{},\"data\":{}}}", upserted.created, text(upserted.json)?))
}

async fn change_links(service: &Service, object: &str, id: &str, key: &str, ids: &[String], change: LinkChange) -> Result<u32> {
    let changed = service.app.change_links(&service.caller, object, id, key, ids, change).await?;
    let changed = changed.ok_or_else(|| Error::not_found("record"))?;
    u32::try_from(changed).map_err(Error::internal)
}

async fn batch(service: &Service, operations: &str) -> Result<String> {
    let operations: Vec<BatchOperation> = parse_list(operations, service.app.settings().bulk_records_max)?;
    let requests = operations.into_iter().map(BatchOperation::request).collect::<Result<Vec<_>>>()?;
    let mut out = vec![b'['];
    for (index, answer) in service.app.write_all(&service.caller, requests).await?.into_iter().enumerate() {
        if index > 0 {
            out.push(b',');
        }
        match answer {
            WriteAnswer::Created { json, .. } | WriteAnswer::Updated { json } => out.extend_from_slice(&json),
            WriteAnswer::Deleted { .. } => out.extend_from_slice(b"true"),
            WriteAnswer::Missing => out.extend_from_slice(b"null"),
        }
    }
    out.push(b']');
    text(out)
}

impl Host for CallState {
    async fn query(&mut self, object: String, query_text: String) -> Answer<String> {
        let service = service!(self);
        Ok(query(service, &object, &query_text).await.map_err(guest_error))
    }

    async fn get(&mut self, object: String, id: String, options: Option<String>) -> Answer<Option<String>> {
        let service = service!(self);
        Ok(get(service, &object, &id, options.as_deref()).await.map_err(guest_error))
    }

    async fn create(&mut self, object: String, values: String) -> Answer<String> {
        let service = service!(self);
        let members = match parse_members(&values) {
            Ok(members) => members,
            Err(error) => return Ok(Err(guest_error(error))),
        };
        Ok(service.app.create(&service.caller, &object, members).await.and_then(text).map_err(guest_error))
    }

    async fn create_many(&mut self, object: String, values: String) -> Answer<String> {
        let service = service!(self);
        Ok(create_many(service, &object, &values).await.map_err(guest_error))
    }

    async fn update(&mut self, object: String, id: String, changes: String) -> Answer<String> {
        let service = service!(self);
        let members = match parse_members(&changes) {
            Ok(members) => members,
            Err(error) => return Ok(Err(guest_error(error))),
        };
        let updated = service.app.update(&service.caller, &object, &id, members).await;
        Ok(updated.and_then(|record| text(record.ok_or_else(|| Error::not_found("record"))?)).map_err(guest_error))
    }

    async fn delete(&mut self, object: String, id: String) -> Answer<bool> {
        let service = service!(self);
        Ok(service.app.delete(&service.caller, &object, &id).await.map_err(guest_error))
    }

    async fn delete_many(&mut self, object: String, ids: Vec<String>) -> Answer<Vec<String>> {
        let service = service!(self);
        Ok(delete_many(service, &object, ids).await.map_err(guest_error))
    }

    async fn batch(&mut self, operations: String) -> Answer<String> {
        let service = service!(self);
        Ok(batch(service, &operations).await.map_err(guest_error))
    }

    async fn aggregate(&mut self, object: String, query: String) -> Answer<String> {
        let service = service!(self);
        let request = match AggregateRequest::from_json(&query) {
            Ok(request) => request,
            Err(error) => return Ok(Err(guest_error(error))),
        };
        Ok(service.app.aggregate(&service.caller, &object, request).await.and_then(text).map_err(guest_error))
    }

    async fn upsert(&mut self, object: String, values: String, on_conflict: Vec<String>) -> Answer<String> {
        let service = service!(self);
        Ok(upsert(service, &object, &values, &on_conflict).await.map_err(guest_error))
    }

    async fn link(&mut self, object: String, id: String, relation: String, ids: Vec<String>) -> Answer<u32> {
        let service = service!(self);
        Ok(change_links(service, &object, &id, &relation, &ids, LinkChange::Add).await.map_err(guest_error))
    }

    async fn unlink(&mut self, object: String, id: String, relation: String, ids: Vec<String>) -> Answer<u32> {
        let service = service!(self);
        Ok(change_links(service, &object, &id, &relation, &ids, LinkChange::Remove).await.map_err(guest_error))
    }
}

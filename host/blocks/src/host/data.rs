//! `data`: records, through the operations that every surface uses.

use std::sync::Arc;

use blockbase_app::schema::json::{Members, parse_list, parse_members, parse_object};
use blockbase_app::schema::{Code, Error, Result};
use blockbase_app::{Action, AggregateRequest, Batch, Chosen, LinkChange, ListRequest, expand_paths, run_offloaded};
use serde::Deserialize;

use super::guest_error;
use crate::engine::limits::{DATA_BYTES_MAX, LimitHit};
use crate::host::bindings::blockbase::block::data::Host;
use crate::host::bindings::blockbase::block::types;
use crate::host::call::CallState;
use crate::host::service::Service;

type Answer<T> = wasmtime::Result<std::result::Result<T, types::Error>>;

impl CallState {
    /// Counts the call, and runs its operation on the service's own threads. A result that is too large for a guest fails the call.
    async fn data<T: ByteSize + Send + 'static, F>(&mut self, operation: impl FnOnce(Arc<Service>) -> F) -> Answer<T>
    where
        F: Future<Output = Result<T>> + Send + 'static,
    {
        self.count_host_call()?;
        let Some(service) = &self.service else {
            let message = "There is no data while a block is being installed.";
            return Ok(Err(guest_error(Error::new(Code::Unavailable, message))));
        };
        let operation = operation(Arc::clone(service));
        let answer = self.executors.serve(operation).await;
        match &answer {
            Ok(value) if value.bytes() > DATA_BYTES_MAX => Err(LimitHit::DataBytes.into()),
            _ => Ok(answer.map_err(guest_error)),
        }
    }
}

/// The size of a result that a guest gets.
trait ByteSize {
    fn bytes(&self) -> usize;
}

impl ByteSize for String {
    fn bytes(&self) -> usize {
        self.len()
    }
}

impl ByteSize for Option<String> {
    fn bytes(&self) -> usize {
        self.as_ref().map_or(0, String::len)
    }
}

/// A list of ids. A call gets at most as many ids as a bulk call accepts.
impl ByteSize for Vec<String> {
    fn bytes(&self) -> usize {
        self.iter().map(String::len).sum()
    }
}

impl ByteSize for bool {
    fn bytes(&self) -> usize {
        1
    }
}

impl ByteSize for u32 {
    fn bytes(&self) -> usize {
        4
    }
}

fn text(json: Vec<u8>) -> Result<String> {
    String::from_utf8(json).map_err(Error::internal)
}

async fn query(service: &Service, object: &str, query: &str) -> Result<String> {
    service.app.admit_to_object(&service.caller, object, &[Action::Read]).await?;
    let answer = service.app.list(&service.caller, object, ListRequest::from_json(query)?).await?;
    text(answer.json())
}

async fn create_many(service: &Service, object: &str, values: &str) -> Result<String> {
    let records: Vec<Members> = run_offloaded(values.len(), || parse_list(values, service.app.settings().bulk_records_max))?;
    Ok(service.app.create_many(&service.caller, object, records).await?.json())
}

async fn delete_many(service: &Service, object: &str, ids: Vec<String>) -> Result<Vec<String>> {
    let deleted = service.app.delete_many(&service.caller, object, &Chosen::Ids(ids)).await?;
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
        Some(options) => parse_object(options)?,
        None => GetOptions::default(),
    };
    let expand = options.expand.as_deref().map(expand_paths).transpose()?.unwrap_or_default();
    service.app.get(&service.caller, object, id, &expand).await?.map(|record| text(record.json)).transpose()
}

/// `{ created, data }`.
async fn upsert(service: &Service, object: &str, values: &str, target: &[String]) -> Result<String> {
    let upserted = service.app.upsert(&service.caller, object, parse_members(values)?, target).await?;
    Ok(format!("{{\"created\":{},\"data\":{}}}", upserted.created, text(upserted.record.json)?))
}

async fn change_links(service: &Service, object: &str, id: &str, key: &str, ids: &[String], change: LinkChange) -> Result<u32> {
    let changed = service.app.change_links(&service.caller, object, id, key, ids, change).await?;
    let changed = changed.ok_or_else(|| Error::not_found("record"))?;
    u32::try_from(changed).map_err(Error::internal)
}

async fn batch(service: &Service, operations: &str) -> Result<String> {
    let most = service.app.settings().bulk_records_max;
    let batch = run_offloaded(operations.len(), || Batch::of_block(operations, most))?;
    text(service.app.batch(&service.caller, &batch).await?.json_of_block())
}

impl Host for CallState {
    async fn query(&mut self, object: String, query_text: String) -> Answer<String> {
        self.data(|service| async move { query(&service, &object, &query_text).await }).await
    }

    async fn get(&mut self, object: String, id: String, options: Option<String>) -> Answer<Option<String>> {
        self.data(|service| async move { get(&service, &object, &id, options.as_deref()).await }).await
    }

    async fn aggregate(&mut self, object: String, query: String) -> Answer<String> {
        self.data(|service| async move {
            service.app.admit_to_object(&service.caller, &object, &[Action::Read]).await?;
            let request = AggregateRequest::from_json(&query)?;
            text(service.app.aggregate(&service.caller, &object, request).await?.bare_json())
        })
        .await
    }

    async fn create(&mut self, object: String, values: String) -> Answer<String> {
        self.data(|service| async move {
            let members = run_offloaded(values.len(), || parse_members(&values))?;
            service.app.create(&service.caller, &object, members).await.and_then(|record| text(record.json))
        })
        .await
    }

    async fn create_many(&mut self, object: String, values: String) -> Answer<String> {
        self.data(|service| async move { create_many(&service, &object, &values).await }).await
    }

    async fn update(&mut self, object: String, id: String, changes: String) -> Answer<String> {
        self.data(|service| async move {
            let members = run_offloaded(changes.len(), || parse_members(&changes))?;
            let updated = service.app.update(&service.caller, &object, &id, members, None).await?;
            text(updated.ok_or_else(|| Error::not_found("record"))?.json)
        })
        .await
    }

    async fn upsert(&mut self, object: String, values: String, on_conflict: Vec<String>) -> Answer<String> {
        self.data(|service| async move { upsert(&service, &object, &values, &on_conflict).await }).await
    }

    async fn delete(&mut self, object: String, id: String) -> Answer<bool> {
        self.data(|service| async move { service.app.delete(&service.caller, &object, &id, None).await }).await
    }

    async fn delete_many(&mut self, object: String, ids: Vec<String>) -> Answer<Vec<String>> {
        self.data(|service| async move { delete_many(&service, &object, ids).await }).await
    }

    async fn link(&mut self, object: String, id: String, relation: String, ids: Vec<String>) -> Answer<u32> {
        self.data(|service| async move { change_links(&service, &object, &id, &relation, &ids, LinkChange::Add).await }).await
    }

    async fn unlink(&mut self, object: String, id: String, relation: String, ids: Vec<String>) -> Answer<u32> {
        self.data(|service| async move { change_links(&service, &object, &id, &relation, &ids, LinkChange::Remove).await }).await
    }

    async fn batch(&mut self, operations: String) -> Answer<String> {
        self.data(|service| async move { batch(&service, &operations).await }).await
    }
}

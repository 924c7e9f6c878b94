//! The rows that both sides have before anything is measured. They are sent in bulk requests.

use std::sync::Arc;
use std::time::{Duration, Instant};

use serde_json::json;
use tokio::net::TcpStream;
use uuid::Uuid;

use crate::load::{exchange, request};
use crate::side::Side;

/// The number of records in one bulk request. The server accepts no more.
pub(crate) const BULK_RECORDS: u32 = 1000;
/// The number of bulk requests that run at a time.
const WRITERS: u32 = 4;
const PROJECTS: usize = 100;
/// The number of rows with the same priority, for any total number of rows.
const ROWS_OF_A_PRIORITY: u32 = 100;

#[derive(serde::Deserialize)]
struct Created {
    ids: Vec<Uuid>,
}

/// The number of different priorities in `rows` rows.
pub(crate) fn priorities(rows: u32) -> u32 {
    (rows / ROWS_OF_A_PRIORITY).max(1)
}

/// A word that appears in the title of only one row. Plain numbers would have most of their trigrams in common.
pub(crate) fn reference(number: u32) -> String {
    format!("{:08x}", number.wrapping_mul(0x9E37_79B1))
}

pub(crate) fn title(number: u32) -> String {
    format!("a task with a title of usual length, number {number}, reference {}", reference(number))
}

/// The code of one of the rows that exist from the beginning.
pub(crate) fn code(number: u32) -> String {
    format!("task-{number}")
}

/// A record as JSON.
pub(crate) fn record(title: &str, priority: u32, code: &str, project: Uuid) -> String {
    format!(r#"{{"title":"{title}","priority":{priority},"code":"{code}","project_id":"{project}"}}"#)
}

/// The body of a bulk request.
pub(crate) fn bulk(records: impl Iterator<Item = String>) -> String {
    let mut body = String::with_capacity(160 * BULK_RECORDS as usize);
    body.push_str("{\"data\":[");
    for (place, record) in records.enumerate() {
        if place > 0 {
            body.push(',');
        }
        body.push_str(&record);
    }
    body.push_str("]}");
    body
}

/// Creates the rows of a side, and returns the time that this took.
pub(crate) async fn fill(side: &mut Side, rows: u32) -> Duration {
    let projects: Vec<_> = (0..PROJECTS).map(|number| json!({ "name": format!("project {number}") })).collect();
    let made = side.post(&format!("{}/bulk", side.projects), &json!({ "data": projects })).await;
    side.project_ids = Arc::new(serde_json::from_value::<Created>(made).unwrap().ids);

    let began = Instant::now();
    let tasks: Vec<_> = (0..WRITERS).map(|writer| tokio::spawn(fill_part(side.clone(), rows, writer))).collect();
    let mut chunks = Vec::new();
    for task in tasks {
        chunks.extend(task.await.unwrap());
    }
    chunks.sort_unstable_by_key(|(first, _)| *first);
    side.ids = Arc::new(chunks.into_iter().flat_map(|(_, ids)| ids).collect());
    assert_eq!(side.ids.len(), rows as usize);
    began.elapsed()
}

/// Creates every `WRITERS`th chunk of the rows. Returns, for each chunk, the index of its first row and the ids of its records.
async fn fill_part(side: Side, rows: u32, writer: u32) -> Vec<(u32, Vec<Uuid>)> {
    let mut stream = TcpStream::connect(&side.address).await.unwrap();
    stream.set_nodelay(true).unwrap();
    let mut buffer = Vec::new();
    let mut chunks = Vec::new();
    let path = format!("{}/bulk", side.items);
    let firsts = (writer * BULK_RECORDS..rows).step_by((WRITERS * BULK_RECORDS) as usize);
    for first in firsts {
        let numbers = first..rows.min(first + BULK_RECORDS);
        let body = bulk(numbers.map(|number| {
            let project = side.project_ids[number as usize % side.project_ids.len()];
            record(&title(number), number % priorities(rows), &code(number), project)
        }));
        let bytes = request("POST", &path, side.token.as_deref(), Some(&body));
        let (status, range) = exchange(&mut stream, &bytes, &mut buffer).await;
        assert_eq!(status, 201, "{}", String::from_utf8_lossy(&buffer));
        chunks.push((first, serde_json::from_slice::<Created>(&buffer[range]).unwrap().ids));
    }
    chunks
}

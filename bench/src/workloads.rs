//! The workloads: requests that both sides get in the same form. Reads come first, so that they find the rows in their first
//! state.

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

use crate::fill::{BULK_RECORDS, bulk, code, priorities, record, reference, title};
use crate::load::{MakeRequest, request};
use crate::side::Side;

pub(crate) struct Workload {
    pub(crate) name: &'static str,
    pub(crate) make: fn(&Side) -> MakeRequest,
    /// The number of connections, instead of the requested one.
    pub(crate) connections: Option<usize>,
    /// The number of records in each request. The result is in records per second.
    pub(crate) records: u32,
    /// The workload is left out if there are fewer rows.
    pub(crate) rows_min: u32,
    /// Whether it changes nothing and finds the same data on both sides.
    pub(crate) is_read: bool,
    /// Whether it calls the echo block.
    pub(crate) is_block_call: bool,
}

const fn plain(name: &'static str, make: fn(&Side) -> MakeRequest) -> Workload {
    Workload { name, make, connections: None, records: 1, rows_min: 0, is_read: false, is_block_call: false }
}

const fn read(name: &'static str, make: fn(&Side) -> MakeRequest) -> Workload {
    Workload { is_read: true, ..plain(name, make) }
}

const PAGE: u32 = 1000;
const PAGE_SIZE: u32 = 25;
/// The name of the workload whose p50 shows the cost of a block call.
pub(crate) const ONE_BLOCK_CALL: &str = "block echo, 1 connection";

pub(crate) static ALL: [Workload; 15] = [
    read("get by id", get_by_id),
    read("list 25 newest first", list),
    Workload { rows_min: PAGE * PAGE_SIZE, ..read("list page 1,000", list_page) },
    read("list deep offset (half the rows)", list_deep),
    read("list filtered (100 match)", list_filtered),
    read("list searched (1 matches)", list_searched),
    read("list expanded", list_expanded),
    read("aggregate sum (100 match)", aggregate_sum),
    Workload { is_block_call: true, ..plain("block echo", echo) },
    Workload { is_block_call: true, connections: Some(1), ..plain(ONE_BLOCK_CALL, echo) },
    plain("patch $inc with event", patch),
    plain("upsert with event (half hit)", upsert),
    plain("create with event", create),
    Workload { connections: Some(2), records: BULK_RECORDS, ..plain("bulk create (records)", bulk_create) },
    Workload { connections: Some(2), records: BULK_RECORDS, ..plain("bulk create, one field", bulk_create_plain) },
];

/// A number that changes from request to request, and costs little to compute.
pub(crate) fn pick(connection: usize, number: usize, of: usize) -> usize {
    (connection.wrapping_mul(2_654_435_761) ^ number.wrapping_mul(0x9E37_79B9_7F4A_7C15)) % of
}

/// The number of a new record. It is never used twice, on either side.
fn serial() -> u32 {
    static NEXT: AtomicU32 = AtomicU32::new(100_000_000);
    NEXT.fetch_add(1, Ordering::Relaxed)
}

/// A record with its own code, in a priority that no workload reads.
fn new_record(side: &Side) -> String {
    let number = serial();
    let project = side.project_ids[number as usize % side.project_ids.len()];
    record(&title(number), number / 100, &code(number), project)
}

fn rows(side: &Side) -> u32 {
    u32::try_from(side.ids.len()).unwrap()
}

/// Makes the same request each time.
pub(crate) fn always(side: &Side, method: &str, path: &str, body: Option<&str>) -> MakeRequest {
    let bytes = request(method, path, side.token.as_deref(), body);
    Arc::new(move |_, _| bytes.clone())
}

pub(crate) fn get_by_id(side: &Side) -> MakeRequest {
    let side = side.clone();
    Arc::new(move |connection, number| {
        let id = side.ids[pick(connection, number, side.ids.len())];
        request("GET", &format!("{}/{id}", side.items), side.token.as_deref(), None)
    })
}

fn list(side: &Side) -> MakeRequest {
    always(side, "GET", side.items, None)
}

fn list_page(side: &Side) -> MakeRequest {
    always(side, "GET", &format!("{}?page={PAGE}&pageSize={PAGE_SIZE}", side.items), None)
}

fn list_deep(side: &Side) -> MakeRequest {
    always(side, "GET", &format!("{}?limit={PAGE_SIZE}&offset={}", side.items, rows(side) / 2), None)
}

fn list_filtered(side: &Side) -> MakeRequest {
    let side = side.clone();
    let priorities = priorities(rows(&side)) as usize;
    Arc::new(move |connection, number| {
        let priority = pick(connection, number, priorities);
        request("GET", &format!("{}?priority={priority}", side.items), side.token.as_deref(), None)
    })
}

fn list_searched(side: &Side) -> MakeRequest {
    let side = side.clone();
    Arc::new(move |connection, number| {
        let term = reference(u32::try_from(pick(connection, number, side.ids.len())).unwrap());
        request("GET", &format!("{}?search={term}", side.items), side.token.as_deref(), None)
    })
}

fn list_expanded(side: &Side) -> MakeRequest {
    always(side, "GET", &format!("{}?expand=project", side.items), None)
}

fn aggregate_sum(side: &Side) -> MakeRequest {
    let side = side.clone();
    let priorities = priorities(rows(&side)) as usize;
    Arc::new(move |connection, number| {
        let priority = pick(connection, number, priorities);
        let path = format!("{}/aggregate?fn=sum&field=priority&priority={priority}", side.items);
        request("GET", &path, side.token.as_deref(), None)
    })
}

pub(crate) fn create(side: &Side) -> MakeRequest {
    let side = side.clone();
    Arc::new(move |_, _| request("POST", side.items, side.token.as_deref(), Some(&new_record(&side))))
}

fn bulk_create(side: &Side) -> MakeRequest {
    let side = side.clone();
    let path = format!("{}/bulk", side.items);
    Arc::new(move |_, _| {
        let body = bulk((0..BULK_RECORDS).map(|_| new_record(&side)));
        request("POST", &path, side.token.as_deref(), Some(&body))
    })
}

/// Creates records with one text field. The floor writes no outbox row and no search index for them, so this shows the cost of
/// bare inserts.
fn bulk_create_plain(side: &Side) -> MakeRequest {
    let side = side.clone();
    let path = format!("{}/bulk", side.projects);
    Arc::new(move |_, _| {
        let body = bulk((0..BULK_RECORDS).map(|_| format!(r#"{{"name":"a name of usual length, number {}"}}"#, serial())));
        request("POST", &path, side.token.as_deref(), Some(&body))
    })
}

fn patch(side: &Side) -> MakeRequest {
    let side = side.clone();
    Arc::new(move |connection, number| {
        let id = side.ids[pick(connection, number, side.ids.len())];
        let path = format!("{}/{id}", side.items);
        request("PATCH", &path, side.token.as_deref(), Some(r#"{"priority":{"$inc":1}}"#))
    })
}

/// In every second request, the code already exists, and the request changes the title of that row.
fn upsert(side: &Side) -> MakeRequest {
    let side = side.clone();
    let path = format!("{}?on_conflict=code", side.items);
    Arc::new(move |connection, number| {
        let fresh = serial();
        let is_hit = number % 2 == 0;
        let picked = u32::try_from(pick(connection, number, side.ids.len())).unwrap();
        let code = code(if is_hit { picked } else { fresh });
        let body = format!(r#"{{"title":"{}","priority":{},"code":"{code}"}}"#, title(fresh), fresh / 100);
        request("POST", &path, side.token.as_deref(), Some(&body))
    })
}

fn echo(side: &Side) -> MakeRequest {
    always(side, "POST", side.echo, Some(r#"{"text":"hello","number":12345,"list":[1,2,3]}"#))
}

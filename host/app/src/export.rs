//! Export: all rows of a list from one snapshot, as a file.
//!
//! The snapshot is held as long as the database needs, not as long as the client does: rows that the client has not taken yet wait
//! in a spool. So a slow client delays no checkpoint of SQLite's log and keeps no connection of Postgres.

mod csv;

use std::collections::HashMap;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use blockbase_query::plan::ListPlan;
use blockbase_query::{Action, ExportRequest, sql};
use blockbase_schema::{Code, Column, Error, Registry, Result, time};
use blockbase_store::{Connection, Incomplete, Record, Snapshot, Spool, SpoolReader, SpoolRoom, spool};
use parking_lot::Mutex;
use tokio::sync::{OwnedSemaphorePermit, Semaphore, oneshot};

use crate::App;
use crate::caller::Caller;
use crate::shares::Payer;

/// Exports of one payer that are open, which means that their client has not everything yet.
const OPEN_EACH_MAX: usize = 2;
/// The same of all payers.
const OPEN_MAX: usize = 64;
/// How long an export may hold its snapshot.
const SNAPSHOT_MAX: Duration = Duration::from_secs(600);
/// How long a client may take nothing of what is there for it.
const STALLED_MAX: Duration = Duration::from_secs(30);
/// How long a client may take in all.
const OPEN_TIME_MAX: Duration = Duration::from_secs(3600);
/// How often both are looked at.
const LOOK_AGAIN: Duration = Duration::from_secs(1);
/// How long a response waits for the first rows, so that an early failure has a status of its own.
const FIRST_ROWS_WAIT: Duration = Duration::from_secs(1);
/// How long an export waits for others to end.
const TURN_WAIT: Duration = Duration::from_secs(5);
/// When a caller whose export had no turn may try again.
const RETRY_AFTER_S: u16 = 10;

/// The form of an export.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ExportForm {
    /// RFC 4180 with a header. Null is an empty cell, an empty text is `""`.
    Csv,
    /// One record a line, in the bytes of the list.
    Ndjson,
}

impl ExportForm {
    pub const NAMES: [&str; 2] = ["csv", "ndjson"];

    /// # Errors
    /// `invalid_request`, naming the forms that there are.
    pub fn parse(name: &str) -> Result<ExportForm> {
        match name {
            "csv" => Ok(ExportForm::Csv),
            "ndjson" => Ok(ExportForm::Ndjson),
            _ => Err(Error::invalid_request(format!("`format` is {}; it is {name:?}.", Self::NAMES.join(" or ")))),
        }
    }

    pub fn name(self) -> &'static str {
        match self {
            ExportForm::Csv => "csv",
            ExportForm::Ndjson => "ndjson",
        }
    }

    fn head(self, columns: &[&Column]) -> Vec<u8> {
        match self {
            ExportForm::Csv => csv::header(columns),
            ExportForm::Ndjson => Vec::new(),
        }
    }

    fn row(self, columns: &[&Column], record: &Record, out: &mut Vec<u8>) {
        match self {
            ExportForm::Csv => csv::row(columns, record, out),
            ExportForm::Ndjson => {
                out.extend_from_slice(record.json());
                out.push(b'\n');
            }
        }
    }
}

/// An export that has begun.
pub struct Export {
    /// Its rows. A client that does not get them to their good end must learn that they are not all.
    pub rows: SpoolReader,
    /// `<object>-<time>.<form>`, in characters that need no quoting.
    pub file_name: String,
}

/// The exports of one payer.
struct Open {
    number: usize,
    /// One of them reads at a time, so that a few payers with slow exports leave turns for others.
    turn: Arc<Semaphore>,
}

/// The exports of this process.
pub(crate) struct Exports {
    /// Those that hold a snapshot. Half of the places of scans at most, so that lists and searches go on.
    reading: Arc<Semaphore>,
    open: Mutex<HashMap<Payer, Open>>,
    room: Arc<SpoolRoom>,
    turn_wait: Duration,
}

impl Exports {
    pub(crate) fn new(scans_max: usize, spool_directory: PathBuf) -> Exports {
        let reading = Arc::new(Semaphore::new((scans_max / 2).max(1)));
        Exports { reading, open: Mutex::default(), room: SpoolRoom::new(spool_directory), turn_wait: TURN_WAIT }
    }

    /// A place for one more export.
    ///
    /// # Errors
    /// `rate_limited` where the payer has as many as one may have, `unavailable` where the process has.
    fn open(self: &Arc<Self>, payer: &Payer) -> Result<ExportPlace> {
        let mut open = self.open.lock();
        if open.get(payer).is_some_and(|open| open.number >= OPEN_EACH_MAX) {
            let message = format!("A caller has {OPEN_EACH_MAX} exports at a time. Wait until one has ended.");
            return Err(Error::new(Code::RateLimited, message).with_retry_after(RETRY_AFTER_S));
        }
        if open.values().map(|open| open.number).sum::<usize>() >= OPEN_MAX {
            return Err(too_many());
        }
        let entry = open.entry(payer.clone()).or_insert_with(|| Open { number: 0, turn: Arc::new(Semaphore::new(1)) });
        entry.number += 1;
        Ok(ExportPlace { exports: Arc::clone(self), payer: payer.clone(), turn: Arc::clone(&entry.turn) })
    }

    /// Waits for a turn to read: that of the payer first, so that nobody holds two of all.
    async fn turn(&self, place: &ExportPlace) -> Result<(OwnedSemaphorePermit, OwnedSemaphorePermit)> {
        let wait = async {
            let own = Arc::clone(&place.turn).acquire_owned().await.map_err(Error::internal)?;
            Ok((own, Arc::clone(&self.reading).acquire_owned().await.map_err(Error::internal)?))
        };
        tokio::time::timeout(self.turn_wait, wait).await.unwrap_or_else(|_| Err(too_many()))
    }
}

fn too_many() -> Error {
    Error::new(Code::Unavailable, "Too many exports are running. Try again later.").with_retry_after(RETRY_AFTER_S)
}

/// A place among the open exports, for as long as it is held.
struct ExportPlace {
    exports: Arc<Exports>,
    payer: Payer,
    turn: Arc<Semaphore>,
}

impl Drop for ExportPlace {
    fn drop(&mut self) {
        let mut open = self.exports.open.lock();
        if let Some(of_payer) = open.get_mut(&self.payer) {
            of_payer.number -= 1;
            if of_payer.number == 0 {
                open.remove(&self.payer);
            }
        }
    }
}

/// What is exported, and how.
struct Plan {
    list: ListPlan,
    limit: Option<u64>,
    form: ExportForm,
}

impl App {
    /// Makes sure that an export could begin, without beginning it: the name that its file would have.
    ///
    /// # Errors
    /// As [`App::export`], but for those of a server that is busy.
    pub async fn check_export(&self, caller: &Caller, object: &str, request: &ExportRequest, form: ExportForm) -> Result<String> {
        let check = move |registry: Arc<Registry>| async move { export_plan(caller, &registry, object, request, form).map(drop) };
        self.on_schema(caller, check).await?;
        Ok(self.export_name(object, form))
    }

    /// Begins an export: the rows of a list, with its permission and its row policy, from one snapshot.
    ///
    /// # Errors
    /// Those of the list; `rate_limited` where the caller has as many exports as one may have, `unavailable` where the server has.
    pub async fn export(
        self: &Arc<Self>,
        caller: &Caller,
        object: &str,
        request: &ExportRequest,
        form: ExportForm,
    ) -> Result<Export> {
        let rows = self
            .on_schema(caller, move |registry| async move {
                let plan = export_plan(caller, &registry, object, request, form)?;
                self.begin_export(caller, registry.version, plan).await
            })
            .await?;
        Ok(Export { rows, file_name: self.export_name(object, form) })
    }

    fn export_name(&self, object: &str, form: ExportForm) -> String {
        let instant = time::format_datetime(self.clock.now());
        let instant = instant.get(..19).unwrap_or_default().replace(':', "-");
        format!("{object}-{instant}Z.{}", form.name())
    }

    async fn begin_export(self: &Arc<Self>, caller: &Caller, schema: i64, plan: Plan) -> Result<SpoolReader> {
        let place = self.exports.open(caller.payer())?;
        let (spool, rows) = spool(Arc::clone(&self.exports.room));
        let (start, started) = oneshot::channel();
        let (fail, mut failed) = oneshot::channel();
        tokio::spawn(Arc::clone(self).run_export(caller.clone(), schema, plan, spool, Signals { start, fail }, place));
        let begun = async {
            // The rows, or a while in which none came. Whoever exports a few of very many rows sees at once that it goes on.
            started.await.is_ok() && !matches!(tokio::time::timeout(FIRST_ROWS_WAIT, rows.first()).await, Ok(Err(Incomplete)))
        };
        let has_begun = tokio::select! {
            biased;
            Ok(error) = &mut failed => return Err(error),
            has_begun = begun => has_begun,
        };
        match has_begun {
            true => Ok(rows),
            false => Err(failed.await.unwrap_or_else(|_| Error::internal("an export ended without a word"))),
        }
    }

    /// Runs an export until its client has everything, or is gone.
    async fn run_export(
        self: Arc<Self>,
        caller: Caller,
        schema: i64,
        plan: Plan,
        spool: Spool,
        signals: Signals,
        place: ExportPlace,
    ) {
        let Signals { start, fail } = signals;
        // Another right that is lost meanwhile is no reason to break off.
        let needs = vec![(plan.list.object.name().to_owned(), Action::Read)];
        let caller = Caller { judged: caller.judged.clone().that_needs(needs), ..caller };
        let (row_bytes_max, into) = (self.settings.answer_bytes_max, spool.clone());
        let read = async {
            let turns = (self.scan_permit(&caller).await?, self.exports.turn(&place).await?);
            let snapshot = Snapshot { schema, tables: vec![plan.list.object.name().to_owned()], time_max: SNAPSHOT_MAX };
            self.store
                .read_snapshot(snapshot, turns, move |connection| {
                    let _ = start.send(());
                    Box::pin(async move { run(connection, &plan, row_bytes_max, &into).await })
                })
                .await
        };
        let too_slow = || Error::new(Code::Unavailable, "The client takes too long to read the export.");
        let read = tokio::select! {
            read = read => read,
            () = client_is_gone(&spool) => Err(too_slow()),
            lost = self.lost(&caller) => Err(lost),
        };
        match read {
            Ok(()) => spool.end(Ok(())),
            Err(error) => {
                // The place first: whoever learns of the failure may begin anew.
                drop(place);
                if let Err(error) = fail.send(error) {
                    tracing::warn!(error.code = error.code.as_str(), error.cause = %error, "an export is cut off");
                }
                spool.end(Err(Incomplete));
                return;
            }
        }
        // What the client has not taken yet is not for somebody who has lost the right to it.
        tokio::select! {
            () = client_is_gone(&spool) => {}
            error = self.lost(&caller) => tracing::warn!(error.code = error.code.as_str(), "an export is cut off"),
        }
        // Of no effect where the client has everything.
        spool.end(Err(Incomplete));
        drop(place);
    }
}

/// How whoever began an export learns what became of it.
struct Signals {
    /// The snapshot is taken.
    start: oneshot::Sender<()>,
    /// It failed before the response began.
    fail: oneshot::Sender<Error>,
}

/// Puts the rows of a plan into a spool.
async fn run(connection: &mut Connection, plan: &Plan, row_bytes_max: usize, spool: &Spool) -> Result<()> {
    let Plan { list, limit, form } = plan;
    let columns: Vec<&Column> = list.columns.iter().map(|index| &list.object.columns[*index]).collect();
    let statement = sql::export(connection.dialect(), list, *limit);
    let render = |record: &Record, out: &mut Vec<u8>| form.row(&columns, record, out);
    let spooled = connection.spool_rows(statement, &columns, row_bytes_max, form.head(&columns), &render, spool).await;
    spooled.map_err(|error| error.on(&list.object))
}

fn export_plan(caller: &Caller, registry: &Registry, object: &str, request: &ExportRequest, form: ExportForm) -> Result<Plan> {
    let (object, access) = caller.object(registry, object, Action::Read)?;
    let list = ListPlan::new(&object, &access, &request.list, Vec::new())?;
    Ok(Plan { list, limit: request.limit, form })
}

/// Waits until the client has everything, has left, or is too slow.
async fn client_is_gone(spool: &Spool) {
    let is_too_slow = async {
        let begun = tokio::time::Instant::now();
        while spool.stalled_for() < STALLED_MAX && begun.elapsed() < OPEN_TIME_MAX {
            tokio::time::sleep(LOOK_AGAIN).await;
        }
    };
    tokio::select! {
        () = spool.closed() => {}
        () = is_too_slow => {}
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn a_payer_has_two_exports_and_all_have_sixty_four() {
        let exports = Arc::new(Exports::new(8, std::env::temp_dir()));
        let user = |name: String| Payer::User(name.as_str().into());
        let one = user("a".to_owned());
        let first = exports.open(&one).expect("a place");
        let _second = exports.open(&one).expect("a second place");
        assert_eq!(exports.open(&one).err().expect("no third place").code, Code::RateLimited);
        drop(first);
        let _third = exports.open(&one).expect("the place that is free again");
        let _others: Vec<_> = (0..62).map(|number| exports.open(&user(number.to_string())).expect("a place")).collect();
        assert_eq!(exports.open(&user("late".to_owned())).err().expect("no place").code, Code::Unavailable);
    }

    #[tokio::test]
    async fn half_of_the_scans_may_be_exports_and_one_of_each_payer_reads() {
        let exports = Arc::new(Exports { turn_wait: Duration::from_millis(20), ..Exports::new(8, std::env::temp_dir()) });
        let place = |name: &str| exports.open(&Payer::User(name.into())).expect("a place");
        let [first, second] = [place("a"), place("a")];
        let turn = exports.turn(&first).await.expect("a turn");
        assert_eq!(exports.turn(&second).await.expect_err("no second turn").code, Code::Unavailable);
        let others = ["b", "c", "d"].map(place);
        let turns = futures_util::future::join_all(others.iter().map(|place| exports.turn(place))).await;
        assert!(turns.iter().all(Result::is_ok));
        let late = place("e");
        assert_eq!(exports.turn(&late).await.expect_err("no turn").code, Code::Unavailable);
        drop(turn);
        assert!(exports.turn(&late).await.is_ok());
        assert!(exports.turn(&second).await.is_ok());
    }
}

//! Export: all rows of a list from one snapshot, as a file.
//!
//! The snapshot is open as long as the database needs it, not as long as the client does: rows that the client has not read yet
//! wait in a spool. So a slow client does not delay a checkpoint of SQLite's log, and does not occupy a connection of Postgres.

mod csv;

use std::sync::Arc;
use std::time::Duration;

use blockbase_query::plan::{ListPlan, NamePlan, names};
use blockbase_query::{Action, ExportRequest, sql};
use blockbase_quota::Place;
use blockbase_schema::{Code, Column, Error, Registry, Result, json, time};
use blockbase_store::{Connection, Incomplete, Record, Snapshot, Spool, SpoolReader, spool};
use tokio::sync::oneshot;

use crate::App;
use crate::base::frames::CLIENT_STALLED_MAX;
use crate::caller::Caller;
use crate::records::read::{bytes_of, with_reading};

/// The longest time that an export may keep its snapshot.
const SNAPSHOT_MAX: Duration = Duration::from_secs(600);
/// The longest time that a client may take in total.
const OPEN_TIME_MAX: Duration = Duration::from_secs(3600);
/// How often these two times are checked.
const LOOK_AGAIN: Duration = Duration::from_secs(1);
/// How long a response waits for the first rows, so that an early failure has a status of its own.
const FIRST_ROWS_WAIT: Duration = Duration::from_secs(1);

/// The form of an export.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ExportForm {
    /// RFC 4180 with a header. Null is an empty cell, an empty text is `""`.
    Csv,
    /// One record on each line, with the same bytes as in the list.
    Ndjson,
}

impl ExportForm {
    pub const NAMES: [&str; 2] = ["csv", "ndjson"];

    /// # Errors
    /// `invalid_request`, which lists the valid forms.
    pub fn parse(name: &str) -> Result<ExportForm> {
        match name {
            "csv" => Ok(ExportForm::Csv),
            "ndjson" => Ok(ExportForm::Ndjson),
            _ => Err(Error::invalid_request(format!("`format` takes {}, not {name:?}.", Self::NAMES.join(" or ")))),
        }
    }

    pub fn name(self) -> &'static str {
        match self {
            ExportForm::Csv => "csv",
            ExportForm::Ndjson => "ndjson",
        }
    }

    fn head(self, members: &[Member<'_>]) -> Vec<u8> {
        match self {
            ExportForm::Csv => csv::header(members),
            ExportForm::Ndjson => Vec::new(),
        }
    }

    fn row(self, members: &[Member<'_>], record: &Record, out: &mut Vec<u8>) {
        match self {
            ExportForm::Csv => csv::row(members, record, out),
            ExportForm::Ndjson => ndjson_row(members, record, out),
        }
    }
}

/// One named value of each row.
struct Member<'p> {
    name: &'p str,
    column: &'p Column,
    /// The index of the column in the result of the statement.
    place: usize,
    /// The unique field that is written instead of the id, and its index. `None` if the id is written.
    named: Option<(&'p Column, usize)>,
}

impl<'p> Member<'p> {
    /// The columns of the list. A foreign key is replaced by the names of its records, which follow after the columns in the
    /// result.
    fn all(list: &'p ListPlan, names: &'p [NamePlan]) -> Vec<Member<'p>> {
        let mut members = Vec::with_capacity(list.columns.len() + names.len());
        for (place, index) in list.columns.iter().enumerate() {
            let column = &list.object.columns[*index];
            let of_key = names.iter().enumerate().filter(|(_, name)| name.key == *index);
            members.extend(of_key.map(|(number, name)| {
                let named = Some((name.column(), list.columns.len() + number));
                Member { name: &name.path, column, place, named }
            }));
            if members.last().is_none_or(|member: &Member<'_>| member.place != place) {
                members.push(Member { name: &column.name, column, place, named: None });
            }
        }
        members
    }

    /// The column whose value the row of `record` contains, and the value as JSON. If there is no name, the value is the id.
    fn cell<'r>(&self, record: &'r Record) -> (&'p Column, &'r [u8]) {
        let named = self.named.map(|(column, place)| (column, record.cell(place)));
        named.filter(|(_, json)| *json != b"null").unwrap_or_else(|| (self.column, record.cell(self.place)))
    }
}

/// Writes one record as a line, with the same bytes as in the list, except names of related records.
fn ndjson_row(members: &[Member<'_>], record: &Record, out: &mut Vec<u8>) {
    if members.iter().all(|member| member.named.is_none()) {
        out.extend_from_slice(record.json());
    } else {
        for (place, member) in members.iter().enumerate() {
            out.push(if place == 0 { b'{' } else { b',' });
            json::write_string(out, member.name);
            out.push(b':');
            out.extend_from_slice(member.cell(record).1);
        }
        out.push(b'}');
    }
    out.push(b'\n');
}

/// An export that has begun.
pub struct Export {
    /// The rows of the export. If they end early, the client must be able to notice that some are missing.
    pub rows: SpoolReader,
    /// `<object>-<time>.<form>`, in characters that need no quoting.
    pub file_name: String,
}

/// The contents and the form of an export.
struct Plan {
    list: ListPlan,
    names: Vec<NamePlan>,
    limit: Option<u64>,
    form: ExportForm,
}

impl Plan {
    /// The objects whose records the export reads.
    fn objects(&self) -> Vec<String> {
        let mut objects = vec![self.list.object.name().to_owned()];
        let related = self.list.selection.related_objects();
        for object in self.names.iter().map(|name| &name.object).chain(&related) {
            if !objects.iter().any(|known| known == object.name()) {
                objects.push(object.name().to_owned());
            }
        }
        objects
    }
}

impl App {
    /// Checks that an export could begin, without beginning it. Returns the name that its file would have.
    ///
    /// # Errors
    /// The errors of [`App::export`], except those of a busy server.
    pub async fn check_export(&self, caller: &Caller, object: &str, request: &ExportRequest, form: ExportForm) -> Result<String> {
        let check =
            move |registry: Arc<Registry>| async move { self.export_plan(caller, &registry, object, request, form).map(drop) };
        self.on_schema(caller, check).await?;
        Ok(self.export_name(object, form))
    }

    /// Begins an export: the rows of a list, with its permission and its row policy, from one snapshot.
    ///
    /// # Errors
    /// The errors of the list; `rate_limited` if the caller has the maximum number of exports of one caller, `unavailable` if the
    /// server has the maximum number of all exports.
    pub async fn export(
        self: &Arc<Self>,
        caller: &Caller,
        object: &str,
        request: &ExportRequest,
        form: ExportForm,
    ) -> Result<Export> {
        let rows = self
            .on_schema(caller, move |registry| async move {
                let plan = self.export_plan(caller, &registry, object, request, form)?;
                self.begin_export(caller, registry.version, plan).await
            })
            .await?;
        Ok(Export { rows, file_name: self.export_name(object, form) })
    }

    fn export_plan(
        &self,
        caller: &Caller,
        registry: &Arc<Registry>,
        object: &str,
        request: &ExportRequest,
        form: ExportForm,
    ) -> Result<Plan> {
        let (grant_context, known) = (self.grant_context(registry), self.known_to(caller, registry));
        let (object, access) = caller.object(&grant_context, object, Action::Read)?;
        let mut list = with_reading(caller, &grant_context, &known, bytes_of(&request.list.wheres), |reading| {
            ListPlan::new(&object, &access, &request.list, reading, Vec::new())
        })?;
        let asked = request.list.cursors.iter().find(|sent| !sent.is_filter(&object));
        if let (Some(_), Some(sent)) = (&list.cursor, asked) {
            let name = sent.parameter.name();
            let message = format!("An export has no `{name}`. It has all rows, or the rows that `limit` and `offset` select.");
            return Err(Error::invalid_request(message).with_field(name));
        }
        let names = names(&known, &mut list, &request.names, &|relation| caller.access_by(&grant_context, relation, "names"))?;
        Ok(Plan { list, names, limit: request.limit, form })
    }

    fn export_name(&self, object: &str, form: ExportForm) -> String {
        let instant = time::format_datetime(self.clock.now());
        let instant = instant.get(..19).unwrap_or_default().replace(':', "-");
        format!("{object}-{instant}Z.{}", form.name())
    }

    async fn begin_export(self: &Arc<Self>, caller: &Caller, schema: i64, plan: Plan) -> Result<SpoolReader> {
        let place = self.exports.open(caller.quota_owner())?;
        let (spool, rows) = spool(Arc::clone(&self.exports.room));
        let (start, started) = oneshot::channel();
        let (fail, mut failed) = oneshot::channel();
        tokio::spawn(Arc::clone(self).run_export(caller.clone(), schema, plan, spool, Signals { start, fail }, place));
        let begun = async {
            // Waits for the first rows, but only for a while. So the response of an export that takes long to find its first rows
            // begins early.
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

    /// Runs an export until its client has received everything or has disconnected.
    async fn run_export(self: Arc<Self>, caller: Caller, schema: i64, plan: Plan, spool: Spool, signals: Signals, place: Place) {
        let Signals { start, fail } = signals;
        // The loss of any other right does not end the export.
        let needs = plan.objects().into_iter().map(|object| (object, Action::Read)).collect();
        let caller = Caller { basis: caller.basis.clone().that_needs(needs), ..caller };
        let (row_bytes_max, into) = (self.settings.answer_bytes_max, spool.clone());
        let read = async {
            // The turn comes first, because an export that waits for another one must not occupy one of its owner's permits for
            // scans.
            let turn = self.exports.turn(place.owner()).await?;
            let turns = (self.scan_permit(&caller).await?, turn);
            let snapshot =
                Snapshot { owner: caller.quota_owner().clone(), schema, tables: plan.objects(), time_max: SNAPSHOT_MAX };
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
                // The place is freed first, because a client that gets the error may start another export at once.
                drop(place);
                if let Err(error) = fail.send(error) {
                    tracing::warn!(error.code = error.code.as_str(), error.cause = %error, "an export is cut off");
                }
                spool.end(Err(Incomplete));
                return;
            }
        }
        // A client that loses the right to read the rows must not get the rows that it has not read yet.
        tokio::select! {
            () = client_is_gone(&spool) => {}
            error = self.lost(&caller) => tracing::warn!(error.code = error.code.as_str(), "an export is cut off"),
        }
        // This has no effect if the client has received everything.
        spool.end(Err(Incomplete));
        drop(place);
    }
}

/// The channels through which an export reports to the call that began it.
struct Signals {
    /// Reports that the snapshot has begun.
    start: oneshot::Sender<()>,
    /// Reports that the export failed before the response began.
    fail: oneshot::Sender<Error>,
}

/// Puts the rows of a plan into a spool.
async fn run(connection: &mut Connection, plan: &Plan, row_bytes_max: usize, spool: &Spool) -> Result<()> {
    let Plan { list, names, limit, form } = plan;
    let members = Member::all(list, names);
    let columns = list.columns.iter().map(|index| &list.object.columns[*index]);
    let columns: Vec<&Column> = columns.chain(names.iter().map(NamePlan::column)).collect();
    let statement = sql::export(connection.dialect(), list, names, *limit);
    let render = |record: &Record, out: &mut Vec<u8>| form.row(&members, record, out);
    let spooled = connection.spool_rows(statement, &columns, row_bytes_max, form.head(&members), &render, spool).await;
    spooled.map_err(|error| error.on(&list.object))
}

/// Waits until the client has received everything, has disconnected, or is too slow.
async fn client_is_gone(spool: &Spool) {
    let is_too_slow = async {
        let begun = tokio::time::Instant::now();
        while spool.stalled_for() < CLIENT_STALLED_MAX && begun.elapsed() < OPEN_TIME_MAX {
            tokio::time::sleep(LOOK_AGAIN).await;
        }
    };
    tokio::select! {
        () = spool.closed() => {}
        () = is_too_slow => {}
    }
}

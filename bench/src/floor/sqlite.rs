//! The floor on SQLite: a pool of readers, and one writer that commits all gathered jobs at once with `synchronous=FULL`.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use parking_lot::Mutex;
use rusqlite::config::DbConfig;
use rusqlite::{Connection, OptionalExtension, Row, params};
use serde::Serialize;
use tokio::sync::{mpsc, oneshot};
use uuid::Uuid;

use super::{Database, List, NewItem, instant_text, now};

/// The number of jobs that may wait. The line below is the number of jobs in one commit.
const JOBS_MAX: usize = 4096;
const JOBS_OF_A_COMMIT_MAX: usize = 256;

const SCHEMA: &str = "
CREATE TABLE project (
  row INTEGER PRIMARY KEY,
  id TEXT NOT NULL,
  name TEXT NOT NULL,
  created_at TEXT NOT NULL,
  updated_at TEXT NOT NULL,
  created_by TEXT,
  updated_by TEXT
);
CREATE UNIQUE INDEX project_id ON project (id);
CREATE INDEX project_created ON project (created_at, id);
CREATE INDEX project_owner ON project (created_by, created_at, id);
CREATE TABLE task (
  row INTEGER PRIMARY KEY,
  id TEXT NOT NULL,
  title TEXT NOT NULL,
  done INTEGER,
  priority INTEGER CHECK (priority >= 0),
  code TEXT,
  project_id TEXT REFERENCES project (id),
  created_at TEXT NOT NULL,
  updated_at TEXT NOT NULL,
  created_by TEXT,
  updated_by TEXT
);
CREATE UNIQUE INDEX task_id ON task (id);
CREATE INDEX task_created ON task (created_at, id);
CREATE INDEX task_owner ON task (created_by, created_at, id);
CREATE INDEX task_priority ON task (priority, id);
CREATE UNIQUE INDEX task_code ON task (code);
CREATE INDEX task_project ON task (project_id, created_at, id);
CREATE VIRTUAL TABLE task_search USING fts5(document, content='', contentless_delete=1, detail=none, tokenize='trigram');
CREATE TABLE events (
  seq INTEGER PRIMARY KEY AUTOINCREMENT,
  id TEXT NOT NULL,
  topic TEXT NOT NULL,
  payload TEXT NOT NULL,
  occurred_at TEXT NOT NULL
);
CREATE UNIQUE INDEX events_id ON events (id);
";

macro_rules! columns {
    () => {
        "id, title, done, priority, code, project_id, created_at, updated_at, created_by, updated_by"
    };
}

const GET: &str = concat!("SELECT ", columns!(), " FROM task WHERE id = ?");
const LIST: &str = concat!("SELECT ", columns!(), " FROM task ORDER BY created_at DESC, id DESC LIMIT ? OFFSET ?");
const LIST_OF_PRIORITY: &str =
    concat!("SELECT ", columns!(), " FROM task WHERE priority = ? ORDER BY created_at DESC, id DESC LIMIT ? OFFSET ?");
/// The index has trigrams without positions, so each candidate is checked again.
const SEARCH: &str = concat!(
    "SELECT ",
    columns!(),
    " FROM task_search CROSS JOIN task ON task.row = task_search.rowid",
    " WHERE task_search MATCH ?1 AND (title LIKE ?2 OR code LIKE ?2)",
    " ORDER BY created_at DESC, id DESC LIMIT ?3 OFFSET ?4"
);
const INSERT: &str = concat!("INSERT INTO task (", columns!(), ") VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?)");
const UPSERT: &str = concat!(
    "INSERT INTO task (",
    columns!(),
    ") VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?) ON CONFLICT (code) DO UPDATE SET",
    " title = excluded.title, priority = excluded.priority, updated_at = excluded.updated_at RETURNING ",
    columns!(),
    ", row"
);
const INCREMENT: &str = concat!("UPDATE task SET priority = priority + ?, updated_at = ? WHERE id = ? RETURNING ", columns!());

#[derive(Serialize)]
pub(super) struct Item {
    id: String,
    title: String,
    done: bool,
    priority: Option<i64>,
    code: Option<String>,
    project_id: Option<String>,
    created_at: String,
    updated_at: String,
    created_by: Option<String>,
    updated_by: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    project: Option<Arc<Project>>,
}

#[derive(Serialize)]
struct Project {
    id: String,
    name: String,
    created_at: String,
    updated_at: String,
    created_by: Option<String>,
    updated_by: Option<String>,
}

impl Item {
    fn new(new: NewItem) -> Item {
        let instant = instant_text(&now());
        Item {
            id: Uuid::now_v7().to_string(),
            title: new.title,
            done: new.done,
            priority: new.priority.map(i64::from),
            code: new.code,
            project_id: new.project_id,
            created_at: instant.clone(),
            updated_at: instant,
            created_by: None,
            updated_by: None,
            project: None,
        }
    }

    fn read(row: &Row<'_>) -> rusqlite::Result<Item> {
        Ok(Item {
            id: row.get(0)?,
            title: row.get(1)?,
            done: row.get(2)?,
            priority: row.get(3)?,
            code: row.get(4)?,
            project_id: row.get(5)?,
            created_at: row.get(6)?,
            updated_at: row.get(7)?,
            created_by: row.get(8)?,
            updated_by: row.get(9)?,
            project: None,
        })
    }

    fn values(&self) -> [&dyn rusqlite::ToSql; 10] {
        [
            &self.id,
            &self.title,
            &self.done,
            &self.priority,
            &self.code,
            &self.project_id,
            &self.created_at,
            &self.updated_at,
            &self.created_by,
            &self.updated_by,
        ]
    }

    fn search_document(&self) -> String {
        match &self.code {
            Some(code) => format!("{}\u{1f}{code}", self.title),
            None => self.title.clone(),
        }
    }
}

/// The change that a row makes to the search index.
struct SearchChange {
    document: String,
    is_new: bool,
}

/// The effects of a commit besides the rows. The changes of the index are written at the end of the commit, in the order of the
/// rows, because this is fastest with FTS5.
#[derive(Default)]
struct Commit {
    search: BTreeMap<i64, SearchChange>,
}

impl Commit {
    fn index(&mut self, row: i64, document: String, is_new: bool) {
        let was_new = self.search.get(&row).is_some_and(|before| before.is_new);
        self.search.insert(row, SearchChange { document, is_new: is_new || was_new });
    }

    fn insert(&mut self, connection: &Connection, item: &Item) {
        connection.prepare_cached(INSERT).unwrap().execute(item.values()).unwrap();
        self.index(connection.last_insert_rowid(), item.search_document(), true);
        emit(connection, "task.created", &serde_json::to_string(item).unwrap());
    }

    fn finish(self, connection: &Connection) {
        let mut delete = connection.prepare_cached("DELETE FROM task_search WHERE rowid = ?").unwrap();
        for row in self.search.iter().filter(|(_, change)| !change.is_new).map(|(row, _)| row) {
            delete.execute([row]).unwrap();
        }
        let mut insert = connection.prepare_cached("INSERT INTO task_search (rowid, document) VALUES (?, ?)").unwrap();
        for (row, change) in &self.search {
            insert.execute(params![row, change.document]).unwrap();
        }
        connection.prepare_cached("COMMIT").unwrap().execute([]).unwrap();
    }
}

/// Sends the result to the waiting caller, when the commit is durable.
type Answer = Box<dyn FnOnce() + Send>;
type Job = Box<dyn FnOnce(&Connection, &mut Commit) -> Answer + Send>;

pub(super) struct Sqlite {
    file: PathBuf,
    readers: Mutex<Vec<Connection>>,
    writer: mpsc::Sender<Job>,
}

fn connect(file: &Path) -> Connection {
    let connection = Connection::open(file).unwrap();
    connection
        .execute_batch(
            "PRAGMA journal_mode=WAL;
             PRAGMA synchronous=FULL;
             PRAGMA foreign_keys=ON;
             PRAGMA mmap_size=268435456;
             PRAGMA cache_size=-16384;",
        )
        .unwrap();
    // Without this, SQLite plans a statement again whenever a value is bound to its LIMIT or LIKE.
    connection.set_db_config(DbConfig::SQLITE_DBCONFIG_ENABLE_QPSG, true).unwrap();
    connection.set_prepared_statement_cache_capacity(128);
    connection
}

fn write_loop(connection: &Connection, mut jobs: mpsc::Receiver<Job>) {
    let mut gathered = Vec::new();
    while jobs.blocking_recv_many(&mut gathered, JOBS_OF_A_COMMIT_MAX) > 0 {
        connection.prepare_cached("BEGIN IMMEDIATE").unwrap().execute([]).unwrap();
        let mut commit = Commit::default();
        let answers: Vec<Answer> = gathered.drain(..).map(|job| job(connection, &mut commit)).collect();
        commit.finish(connection);
        for answer in answers {
            answer();
        }
    }
}

fn emit(connection: &Connection, topic: &str, payload: &str) {
    let mut insert =
        connection.prepare_cached("INSERT INTO events (id, topic, payload, occurred_at) VALUES (?, ?, ?, ?)").unwrap();
    insert.execute(params![Uuid::now_v7().to_string(), topic, payload, instant_text(&now())]).unwrap();
}

/// All trigrams of the term. A row that contains the term has all of them.
fn trigram_query(term: &str) -> String {
    let characters: Vec<char> = term.chars().collect();
    let trigrams: Vec<String> =
        characters.windows(3).map(|window| format!("\"{}\"", window.iter().collect::<String>().replace('"', "\"\""))).collect();
    trigrams.join(" AND ")
}

/// One query for the projects of all items.
fn put_projects_in(connection: &Connection, items: &mut [Item]) {
    let mut ids: Vec<&str> = items.iter().filter_map(|item| item.project_id.as_deref()).collect();
    ids.sort_unstable();
    ids.dedup();
    let sql = format!(
        "SELECT id, name, created_at, updated_at, created_by, updated_by FROM project WHERE id IN ({})",
        vec!["?"; ids.len()].join(", ")
    );
    let mut statement = connection.prepare_cached(&sql).unwrap();
    let project = |row: &Row<'_>| {
        Ok(Arc::new(Project {
            id: row.get(0)?,
            name: row.get(1)?,
            created_at: row.get(2)?,
            updated_at: row.get(3)?,
            created_by: row.get(4)?,
            updated_by: row.get(5)?,
        }))
    };
    let rows = statement.query_map(rusqlite::params_from_iter(ids), project).unwrap();
    let projects: Vec<Arc<Project>> = rows.collect::<Result<_, _>>().unwrap();
    for item in items {
        item.project = projects.iter().find(|project| Some(&project.id) == item.project_id.as_ref()).cloned();
    }
}

impl Sqlite {
    pub(super) fn open(file: &Path) -> Sqlite {
        let connection = connect(file);
        connection.execute_batch(SCHEMA).unwrap();
        let (writer, jobs) = mpsc::channel(JOBS_MAX);
        std::thread::spawn(move || write_loop(&connection, jobs));
        Sqlite { file: file.to_owned(), readers: Mutex::default(), writer }
    }

    fn read<T>(&self, body: impl FnOnce(&Connection) -> T) -> T {
        let idle = self.readers.lock().pop();
        let connection = idle.unwrap_or_else(|| connect(&self.file));
        let answer = body(&connection);
        self.readers.lock().push(connection);
        answer
    }

    async fn write<T: Send + 'static>(&self, body: impl FnOnce(&Connection, &mut Commit) -> T + Send + 'static) -> T {
        let (reply, answer) = oneshot::channel();
        let job: Job = Box::new(move |connection, commit| {
            let value = body(connection, commit);
            Box::new(move || {
                let _ = reply.send(value);
            })
        });
        assert!(self.writer.send(job).await.is_ok(), "the writer has ended");
        answer.await.unwrap()
    }
}

impl Database for Sqlite {
    type Item = Item;

    async fn get(&self, id: String) -> Option<Item> {
        self.read(|connection| connection.prepare_cached(GET).unwrap().query_row([id], Item::read).optional().unwrap())
    }

    async fn list(&self, list: List) -> Vec<Item> {
        self.read(|connection| {
            let rows = |sql: &str, parameters: &[&dyn rusqlite::ToSql]| -> Vec<Item> {
                let mut statement = connection.prepare_cached(sql).unwrap();
                let rows = statement.query_map(parameters, Item::read).unwrap();
                rows.collect::<Result<_, _>>().unwrap()
            };
            let mut items = match (&list.search, list.priority) {
                (Some(term), _) => rows(SEARCH, &[&trigram_query(term), &format!("%{term}%"), &list.limit, &list.offset]),
                (None, Some(priority)) => rows(LIST_OF_PRIORITY, &[&priority, &list.limit, &list.offset]),
                (None, None) => rows(LIST, &[&list.limit, &list.offset]),
            };
            if list.with_projects {
                put_projects_in(connection, &mut items);
            }
            items
        })
    }

    async fn sum_of_priorities(&self, priority: i32) -> Option<i64> {
        self.read(|connection| {
            let mut statement = connection.prepare_cached("SELECT sum(priority) FROM task WHERE priority = ?").unwrap();
            statement.query_row([priority], |row| row.get(0)).unwrap()
        })
    }

    async fn create(&self, new: NewItem) -> Item {
        self.write(move |connection, commit| {
            let item = Item::new(new);
            commit.insert(connection, &item);
            item
        })
        .await
    }

    async fn create_many(&self, new: Vec<NewItem>) -> Vec<String> {
        self.write(move |connection, commit| {
            let insert = |new| {
                let item = Item::new(new);
                commit.insert(connection, &item);
                item.id
            };
            new.into_iter().map(insert).collect()
        })
        .await
    }

    async fn upsert(&self, new: NewItem) -> (Item, bool) {
        self.write(move |connection, commit| {
            let new = Item::new(new);
            let mut statement = connection.prepare_cached(UPSERT).unwrap();
            let (item, row) = statement.query_row(new.values(), |row| Ok((Item::read(row)?, row.get(10)?))).unwrap();
            let is_new = item.id == new.id;
            commit.index(row, item.search_document(), is_new);
            let topic = if is_new { "task.created" } else { "task.updated" };
            emit(connection, topic, &serde_json::to_string(&item).unwrap());
            (item, is_new)
        })
        .await
    }

    async fn increment(&self, id: String, by: i32) -> Option<Item> {
        self.write(move |connection, _| {
            let mut statement = connection.prepare_cached(INCREMENT).unwrap();
            let parameters = params![by, instant_text(&now()), id];
            let changed = statement.query_row(parameters, Item::read).optional().unwrap()?;
            emit(connection, "task.updated", &serde_json::to_string(&changed).unwrap());
            Some(changed)
        })
        .await
    }

    async fn create_projects(&self, names: Vec<String>) -> Vec<String> {
        self.write(move |connection, _| {
            let mut insert = connection
                .prepare_cached("INSERT INTO project (id, name, created_at, updated_at) VALUES (?1, ?2, ?3, ?3)")
                .unwrap();
            let create = |name| {
                let id = Uuid::now_v7().to_string();
                insert.execute(params![id, name, instant_text(&now())]).unwrap();
                id
            };
            names.into_iter().map(create).collect()
        })
        .await
    }
}

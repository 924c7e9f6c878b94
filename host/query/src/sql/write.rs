//! Statements of writes: records to insert, change and delete, links, and the reads that belong to a write.

use blockbase_schema::{Object, RelationShape, Value, system};

use super::param::{Param, Statement};
use super::writer::Writer;
use crate::ddl::{VERSION_COLUMN, edited_by_another, link_table};
use crate::dialect::{Dialect, quote};
use crate::plan::{Assignment, Change, CreatePlan, LinkPlan, RecordPlan, UpsertPlan};

/// The additional assignment that every change of a row makes.
const RAISED_VERSION: &str = "svc_version = svc_version + 1";

/// Inserts the new rows, all of one object, with one statement.
pub fn insert(dialect: Dialect, object: &Object, rows: &[&CreatePlan]) -> Statement {
    let mut writer = Writer::new(dialect, object);
    writer.insert(object, rows);
    writer.finish()
}

/// Two statements that replace the first bound actor by the second one: in the rows that the first actor created, and in the rows
/// of others that the first actor updated last. Each changes at most `limit` rows and uses an index.
pub fn restamp(dialect: Dialect, object: &Object, limit: usize) -> [String; 2] {
    let (from, to) = if dialect == Dialect::Sqlite { ("?1", "?2") } else { ("$1", "$2") };
    let (table, creator, editor) = (quote(object.name()), quote(system::CREATED_BY), quote(system::UPDATED_BY));
    let by_another = edited_by_another(dialect);
    let id = quote(system::ID);
    let some = |tests: &str| format!("{tests} AND {id} IN (SELECT {id} FROM {table} WHERE {tests} LIMIT {limit})");
    let (created, edited) = (some(&format!("{creator} = {from}")), some(&format!("{editor} = {from} AND {by_another}")));
    [
        format!(
            "UPDATE {table} SET {creator} = {to}, {editor} = CASE WHEN {editor} = {from} THEN {to} ELSE {editor} END, \
             {RAISED_VERSION} WHERE {created}"
        ),
        format!("UPDATE {table} SET {editor} = {to}, {RAISED_VERSION} WHERE {edited}"),
    ]
}

/// Moves references from one record to another, by a foreign key of `object`, except where a unique value forbids it. Changed
/// rows get a new version.
pub fn move_references(dialect: Dialect, object: &Object, column: usize, (from, to): (uuid::Uuid, uuid::Uuid)) -> Statement {
    let mut writer = Writer::new(dialect, object);
    let (table, key) = (quote(object.name()), quote(&object.columns[column].name));
    let (from, to) = (writer.bind(Param::Uuid(Some(from))), writer.bind(Param::Uuid(Some(to))));
    let mut tests = vec![format!("{key} = {from}")];
    for target in object.unique_targets().into_iter().filter(|target| target.contains(&column)) {
        let others = target.into_iter().filter(|index| *index != column).map(|index| quote(&object.columns[index].name));
        let others: String = others.map(|name| format!(" AND svc_other.{name} = {table}.{name}")).collect();
        tests.push(format!("NOT EXISTS (SELECT 1 FROM {table} AS svc_other WHERE svc_other.{key} = {to}{others})"));
    }
    writer.sql.push_str(&format!("UPDATE {table} SET {key} = {to}, {RAISED_VERSION} WHERE {}", tests.join(" AND ")));
    writer.finish()
}

/// Two statements that move the links of one record to another, on the target's side of a relationship.
pub fn move_links(
    dialect: Dialect,
    source: &Object,
    relationship_id: i64,
    (from, to): (uuid::Uuid, uuid::Uuid),
) -> [Statement; 2] {
    let links = link_table(relationship_id);
    let mut copied = Writer::new(dialect, source);
    let (of, to) = (copied.bind(Param::Uuid(Some(from))), copied.bind(Param::Uuid(Some(to))));
    // Postgres does not know the type of a value that stands directly in a list of columns.
    let to = if dialect == Dialect::Postgres { format!("{to}::uuid") } else { to };
    copied.sql.push_str(&format!(
        "INSERT INTO {links} (source_id, target_id) SELECT source_id, {to} FROM {links} WHERE target_id = {of} ON CONFLICT DO NOTHING"
    ));
    let mut gone = Writer::new(dialect, source);
    let of = gone.bind(Param::Uuid(Some(from)));
    gone.sql.push_str(&format!("DELETE FROM {links} WHERE target_id = {of}"));
    [copied.finish(), gone.finish()]
}

/// The id of one row that [`restamp`] would change for the first bound actor.
pub fn any_stamped(dialect: Dialect, object: &Object) -> String {
    let (from, id) = match dialect {
        Dialect::Sqlite => ("?1", quote(system::ID)),
        Dialect::Postgres => ("$1", format!("{}::text", quote(system::ID))),
    };
    let (table, creator, editor) = (quote(object.name()), quote(system::CREATED_BY), quote(system::UPDATED_BY));
    let by_another = edited_by_another(dialect);
    format!(
        "SELECT {id} FROM {table} WHERE {creator} = {from} UNION ALL SELECT {id} FROM {table} WHERE {editor} = {from} AND {by_another} LIMIT 1"
    )
}

/// The ids of at most `limit` rows that the first bound actor created.
pub fn ids_created_by(dialect: Dialect, object: &Object, limit: usize) -> String {
    let from = if dialect == Dialect::Sqlite { "?1" } else { "$1" };
    let id = match dialect {
        Dialect::Sqlite => quote(system::ID),
        Dialect::Postgres => format!("{}::text", quote(system::ID)),
    };
    format!("SELECT {id} FROM {} WHERE {} = {from} LIMIT {limit}", quote(object.name()), quote(system::CREATED_BY))
}

/// The values of a new row, to be bound to the statement that [`insert`] makes of one row.
pub fn insert_params(plan: &CreatePlan) -> impl Iterator<Item = Param> {
    let values = plan.object.columns.iter().zip(&plan.values).map(|(column, value)| Param::of(column.ty, value.clone()));
    values.chain([Param::from(plan.version)])
}

/// Inserts a row, or changes the row that it conflicts with. Returns the row as it is afterwards, its version, and on Postgres
/// one more boolean: whether an existing row was changed. Returns no row if the row policy excludes the existing row.
pub fn upsert(dialect: Dialect, plan: &UpsertPlan) -> Statement {
    let object = &plan.create.object;
    let mut writer = Writer::new(dialect, object);
    writer.insert(object, &[&plan.create]);
    let names = |columns: &[usize]| columns.iter().map(|index| quote(&object.columns[*index].name)).collect::<Vec<_>>();
    let mut sets: Vec<String> = names(&plan.overwrites).iter().map(|name| format!("{name} = excluded.{name}")).collect();
    for name in [system::UPDATED_AT, system::UPDATED_BY].map(quote) {
        sets.push(format!("{name} = excluded.{name}"));
    }
    sets.push(format!("{VERSION_COLUMN} = {}.{VERSION_COLUMN} + 1", quote(object.name())));
    writer.sql.push_str(&format!(" ON CONFLICT ({}) DO UPDATE SET {}", names(&plan.target).join(", "), sets.join(", ")));
    let tests = writer.scope(object, &plan.scope);
    writer.where_clause(&tests);
    writer.sql.push_str(" RETURNING ");
    writer.record_columns(object);
    if dialect == Dialect::Postgres {
        writer.sql.push_str(", xmax <> 0");
    }
    writer.finish()
}

/// The record that an upsert would change, locked where the engine has row locks.
pub fn conflicting(dialect: Dialect, plan: &UpsertPlan) -> Statement {
    let object = &plan.create.object;
    let mut writer = Writer::new(dialect, object);
    let tests = writer.target_tests(plan);
    writer.sql.push_str("SELECT ");
    writer.record_columns(object);
    writer.sql.push_str(&format!(" FROM {}", quote(object.name())));
    writer.where_clause(&tests);
    if dialect == Dialect::Postgres {
        writer.sql.push_str(" FOR UPDATE");
    }
    writer.finish()
}

/// Changes a record and returns the row as it is afterwards. Returns no row if the record has another version than `version`.
pub fn update(dialect: Dialect, record: &RecordPlan, change: &Change, version: Option<i64>) -> Statement {
    let object = &record.object;
    let mut writer = Writer::new(dialect, object);
    writer.set(object, change);
    let mut tests = writer.record_tests(record);
    tests.extend(writer.version_test(version));
    writer.where_clause(&tests);
    writer.sql.push_str(" RETURNING ");
    writer.record_columns(object);
    writer.finish()
}

/// Locks a record and changes it, with one statement of Postgres. Returns the row as it is afterwards, with its version, and then
/// the row as it was when it was locked, with its version.
pub fn lock_and_update(record: &RecordPlan, change: &Change) -> Statement {
    change_locked(&record.object, change, |writer| writer.record_tests(record))
}

/// Does the same with the record that an upsert would change. Returns no row if there is none, or if the row policy excludes it.
pub fn lock_and_overwrite(plan: &UpsertPlan) -> Statement {
    change_locked(&plan.create.object, &plan.change(), |writer| {
        let mut tests = writer.target_tests(plan);
        tests.extend(writer.scope(&plan.create.object, &plan.scope));
        tests
    })
}

/// The source of the old row locks it. So it is never older than the row that is changed, even if other transactions change the
/// row at the same time.
fn change_locked(object: &Object, change: &Change, tests: impl FnOnce(&mut Writer) -> Vec<String>) -> Statement {
    let mut writer = Writer::new(Dialect::Postgres, object);
    writer.set(object, change);
    // The old row's columns have names of their own. So all other names mean the changed table.
    let names: Vec<String> = (0..=object.columns.len()).map(|index| format!("svc_before_{index}")).collect();
    writer.sql.push_str(" FROM (SELECT ");
    writer.record_columns(object);
    writer.sql.push_str(&format!(" FROM {}", quote(object.name())));
    let tests = tests(&mut writer);
    writer.where_clause(&tests);
    let names = names.join(", ");
    // The first column is the id.
    writer.sql.push_str(&format!(" FOR UPDATE) AS svc_before ({names}) WHERE \"id\" = svc_before_0 RETURNING "));
    writer.record_columns(object);
    writer.sql.push_str(", ");
    writer.sql.push_str(&names);
    writer.finish()
}

/// Makes the same change to several records, which the transaction has already locked.
pub fn update_many(dialect: Dialect, object: &Object, change: &Change, ids: Vec<uuid::Uuid>) -> Statement {
    let mut writer = Writer::new(dialect, object);
    writer.set(object, change);
    let list = writer.bind(Param::UuidList(ids));
    let test = dialect.among("\"id\"", &list);
    writer.where_clause(&[test]);
    writer.sql.push_str(" RETURNING ");
    writer.record_columns(object);
    writer.finish()
}

/// Deletes records that were read before. If `version` is given, deletes only records of this version.
pub fn delete_many(dialect: Dialect, object: &Object, ids: Vec<uuid::Uuid>, version: Option<i64>) -> Statement {
    let mut writer = Writer::new(dialect, object);
    let list = writer.bind(Param::UuidList(ids));
    let mut tests = vec![dialect.among("\"id\"", &list)];
    tests.extend(writer.version_test(version));
    writer.sql.push_str(&format!("DELETE FROM {}", quote(object.name())));
    writer.where_clause(&tests);
    writer.finish()
}

/// Finds those of the records `among` that refer to `ids` by a foreign key, with all columns. Locks the rows if the engine has
/// row locks.
pub fn referring(dialect: Dialect, object: &Object, column: usize, ids: Vec<uuid::Uuid>, among: Vec<uuid::Uuid>) -> Statement {
    let mut writer = Writer::new(dialect, object);
    let (list, among) = (writer.bind(Param::UuidList(ids)), writer.bind(Param::UuidList(among)));
    let column = quote(&object.columns[column].name);
    let column = match dialect {
        // The `+` avoids the index of the key. With it, SQLite would sort complete rows in memory.
        Dialect::Sqlite => format!("+{column}"),
        Dialect::Postgres => column,
    };
    writer.sql.push_str("SELECT ");
    writer.record_columns(object);
    writer.sql.push_str(&format!(" FROM {}", quote(object.name())));
    writer.where_clause(&[dialect.among("\"id\"", &among), dialect.among(&column, &list)]);
    writer.sql.push_str(" ORDER BY \"id\"");
    if dialect == Dialect::Postgres {
        writer.sql.push_str(" FOR UPDATE");
    }
    writer.finish()
}

/// The ids of at most `most` records that refer to `ids` by a foreign key.
pub fn referring_ids(dialect: Dialect, object: &Object, column: usize, ids: Vec<uuid::Uuid>, most: i64) -> Statement {
    let mut writer = Writer::new(dialect, object);
    let list = writer.bind(Param::UuidList(ids));
    let most = writer.bind(Param::from(most));
    let test = dialect.among(&quote(&object.columns[column].name), &list);
    writer.sql.push_str(&format!("SELECT \"id\" FROM {} WHERE {test} LIMIT {most}", quote(object.name())));
    writer.finish()
}

/// Finds the ids of those of the records `among` that refer to `ids` by a foreign key. Locks the rows if the engine has row
/// locks.
pub fn hold_referring(
    dialect: Dialect,
    object: &Object,
    column: usize,
    ids: Vec<uuid::Uuid>,
    among: Vec<uuid::Uuid>,
) -> Statement {
    let mut writer = Writer::new(dialect, object);
    let (list, among) = (writer.bind(Param::UuidList(ids)), writer.bind(Param::UuidList(among)));
    writer.sql.push_str(&format!("SELECT \"id\" FROM {}", quote(object.name())));
    writer.where_clause(&[dialect.among("\"id\"", &among), dialect.among(&quote(&object.columns[column].name), &list)]);
    writer.sql.push_str(" ORDER BY \"id\"");
    if dialect == Dialect::Postgres {
        writer.sql.push_str(" FOR UPDATE");
    }
    writer.finish()
}

/// Returns a row if any of these records has a link.
pub fn any_link(
    dialect: Dialect,
    object: &Object,
    relationship_id: i64,
    sources: Vec<uuid::Uuid>,
    targets: Vec<uuid::Uuid>,
) -> Statement {
    let mut writer = Writer::new(dialect, object);
    let (sources, targets) = (writer.bind(Param::UuidList(sources)), writer.bind(Param::UuidList(targets)));
    writer.sql.push_str(&format!(
        "SELECT source_id FROM {} WHERE {} OR {} LIMIT 1",
        link_table(relationship_id),
        dialect.among("source_id", &sources),
        dialect.among("target_id", &targets)
    ));
    writer.finish()
}

/// Removes at most `most` links that have one of the records on either side, in the order of both ids. Returns both ids of each
/// removed link.
pub fn take_links(
    dialect: Dialect,
    object: &Object,
    relationship_id: i64,
    sources: Vec<uuid::Uuid>,
    targets: Vec<uuid::Uuid>,
    most: i64,
) -> Statement {
    let mut writer = Writer::new(dialect, object);
    let (sources, targets) = (writer.bind(Param::UuidList(sources)), writer.bind(Param::UuidList(targets)));
    let most = writer.bind(Param::from(most));
    let links = link_table(relationship_id);
    writer.sql.push_str(&format!(
        "DELETE FROM {links} WHERE (source_id, target_id) IN (SELECT source_id, target_id FROM {links} WHERE {} OR {} \
         ORDER BY source_id, target_id LIMIT {most}) RETURNING source_id, target_id",
        dialect.among("source_id", &sources),
        dialect.among("target_id", &targets)
    ));
    writer.finish()
}

/// Returns a row if a row other than `besides` has these values.
pub fn duplicate(dialect: Dialect, object: &Object, values: &[(usize, &Value)], besides: Option<uuid::Uuid>) -> Statement {
    let mut writer = Writer::new(dialect, object);
    let mut tests: Vec<String> = values
        .iter()
        .map(|(index, value)| {
            let column = &object.columns[*index];
            let value = writer.bind(Param::of(column.ty, (*value).clone()));
            format!("{} = {value}", quote(&column.name))
        })
        .collect();
    if let Some(id) = besides {
        let id = writer.bind(Param::Uuid(Some(id)));
        tests.push(format!("\"id\" <> {id}"));
    }
    writer.sql.push_str(&format!("SELECT \"id\" FROM {}", quote(object.name())));
    writer.where_clause(&tests);
    writer.sql.push_str(" LIMIT 1");
    writer.finish()
}

/// Adds or removes links. Returns the ids of the other records for the links that were really added or removed. `None` if the
/// relation is not many_to_many.
pub fn change_links(dialect: Dialect, plan: &LinkPlan, adds: bool) -> Option<Statement> {
    let RelationShape::Linked { relationship_id, is_source } = plan.relation.shape else { return None };
    let (near, far) = link_sides(is_source);
    let links = link_table(relationship_id);
    let mut writer = Writer::new(dialect, &plan.record.object);
    let id = writer.bind(Param::Uuid(Some(plan.record.id)));
    let list = writer.bind(Param::UuidList(plan.target_ids.clone()));
    let sql = match (adds, dialect) {
        (true, Dialect::Sqlite) => format!(
            "INSERT INTO {links} ({near}, {far}) SELECT {id}, value FROM json_each({list}) WHERE true ON CONFLICT DO NOTHING RETURNING {far}"
        ),
        (true, Dialect::Postgres) => format!(
            "INSERT INTO {links} ({near}, {far}) SELECT {id}, far FROM unnest({list}) AS far ON CONFLICT DO NOTHING RETURNING {far}"
        ),
        (false, _) => {
            format!("DELETE FROM {links} WHERE {near} = {id} AND {} RETURNING {far}", dialect.among(far, &list))
        }
    };
    writer.sql.push_str(&sql);
    Some(writer.finish())
}

pub(super) fn link_sides(is_source: bool) -> (&'static str, &'static str) {
    match is_source {
        true => ("source_id", "target_id"),
        false => ("target_id", "source_id"),
    }
}

impl Writer {
    /// `UPDATE … SET …`: the assignments, the stamps and the version.
    fn set(&mut self, object: &Object, change: &Change) {
        self.sql.push_str("UPDATE ");
        self.sql.push_str(&quote(object.name()));
        self.sql.push_str(" SET ");
        for (index, assignment) in &change.assignments {
            let column = &object.columns[*index];
            let name = quote(&column.name);
            let text = match assignment {
                Assignment::Set(value) => {
                    let value = self.bind(Param::of(column.ty, value.clone()));
                    format!("{name} = {value}, ")
                }
                Assignment::Add(amount) => {
                    let amount = self.bind(Param::of(column.ty, amount.clone()));
                    format!("{name} = {name} + {amount}, ")
                }
            };
            self.sql.push_str(&text);
        }
        let now = self.bind(Param::Datetime(Some(change.stamp.now)));
        let actor = self.bind(Param::Text(change.stamp.actor_id.clone()));
        let (at, by) = (quote(system::UPDATED_AT), quote(system::UPDATED_BY));
        self.sql.push_str(&format!("{at} = {now}, {by} = {actor}, {RAISED_VERSION}"));
    }

    /// The tests that find the record with the same values in the target of an upsert.
    fn target_tests(&mut self, plan: &UpsertPlan) -> Vec<String> {
        let mut tests = Vec::with_capacity(plan.target.len());
        for index in &plan.target {
            let column = &plan.create.object.columns[*index];
            let value = self.bind(Param::of(column.ty, plan.create.values[*index].clone()));
            tests.push(format!("{} = {value}", quote(&column.name)));
        }
        tests
    }

    fn version_test(&mut self, version: Option<i64>) -> Option<String> {
        let version = self.bind(Param::from(version?));
        Some(format!("{VERSION_COLUMN} = {version}"))
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use blockbase_schema::{Registry, StoredObject, TextBounds};
    use serde_json::json;

    use super::*;
    use crate::access::Scope;
    use crate::plan::Stamp;

    #[test]
    fn the_source_of_the_old_row_locks_it() {
        let definition = json!({ "name": "task", "fields": [{ "name": "rank", "type": "integer" }] });
        let definition = serde_json::from_value(definition).expect("a definition");
        let task = StoredObject { id: 1, revision: 1, keys: vec![1], definition, since: Default::default() };
        let registry = Registry::new(1, vec![task], Vec::new()).expect("a registry");
        let object = Arc::clone(registry.object("task").expect("an object"));
        let rank = object.column_index("rank").expect("a column");
        let stamp = Stamp { actor_id: None, now: 0, texts: TextBounds { plain: 0, most: 0 } };
        let change = Change { assignments: vec![(rank, Assignment::Add(Value::Integer(1)))], stamp };
        let columns = object.columns.len();
        let statement = lock_and_update(&RecordPlan { object, scope: Scope::All, id: uuid::Uuid::nil() }, &change);
        let sql = statement.sql;
        assert!(
            sql.starts_with(r#"/* 1.1 */ UPDATE "task" SET "rank" = "rank" + $1, "updated_at" = $2, "updated_by" = $3, "#),
            "{sql}"
        );
        assert!(sql.contains(r#"svc_version = svc_version + 1 FROM (SELECT "id", "#), "{sql}");
        assert!(
            sql.contains(r#", svc_version FROM "task" WHERE "id" = $4 FOR UPDATE) AS svc_before (svc_before_0, svc_before_1"#),
            "{sql}"
        );
        assert!(sql.contains(&format!(r#"svc_before_{columns}) WHERE "id" = svc_before_0 RETURNING "id", "#)), "{sql}");
        assert!(sql.ends_with(&format!(", svc_version, {}", names_of_before(columns))), "{sql}");
        assert_eq!(statement.params.len(), 4);
    }

    fn names_of_before(columns: usize) -> String {
        (0..=columns).map(|index| format!("svc_before_{index}")).collect::<Vec<_>>().join(", ")
    }
}

//! The SQL of conditions on related rows.
//!
//! There are two ways. *By row*: each row of the object looks for its own related rows, with EXISTS and the index of the key.
//! This way is good for few rows, and for a page that is full after few rows. *By list*: the keys of all related rows that meet
//! the condition are found once, and each row is looked up among them. This way is good for many rows, and for few related rows.
//!
//! Postgres knows from its statistics how many rows there are, and turns EXISTS into a list by itself. It can only do this well
//! if it knows the values of the conditions, so most statements are planned for their values ([`Writer::planned_for_values`]).
//!
//! SQLite does neither: it tests an EXISTS row by row, and makes the complete list of an IN before the first row. So the
//! statements for SQLite contain both ways and small probes, and choose a way while they run:
//!
//! - A statement that needs all rows makes lists, unless a sample has shown that all rows are judged in less time by row
//!   ([`super::sample`]). The way by row may then have a list as well: if links lead to the related rows, and these are few in
//!   comparison, each link looks for its related row in a list of those that meet the condition. The first rows that the other
//!   tests of a statement leave ([`ROWS_FIRST_MAX`]) are judged by row before a list is made, so no list is made for a statement
//!   whose other tests leave few rows. If a list would have to read a whole table, more rows are few: their number grows with
//!   that table ([`Writer::own_rows`]).
//!   If no other test leads to rows, one of the lists does. The other lists only test the rows that it leads to.
//! - A page in the order of an index comes here if [`super::found`] did not find it and no sample has decided for the way by
//!   row. So either few rows meet the condition, or they are late in the order. The statement looks for the related rows that
//!   meet one of its conditions. If there are few, they lead to the rows of the page. If there are very few, it reads the first
//!   rows of each in the order of the page, by the index of the foreign key. Otherwise rows are judged in their order until the
//!   page is full.
//!
//! If a condition compares a unique column, only one related row can meet it. Then no choice is needed, because the key of that
//! row is compared.

use std::borrow::Cow;

use blockbase_schema::{ColumnType, Object, RelationShape, Value, system};

use super::param::Param;
use super::write::link_sides;
use super::writer::{Lead, Place, Way, Writer, in_last_row};
use crate::access::Scope;
use crate::condition::{Condition, Quantifier, Related};
use crate::ddl::link_table;
use crate::dialect::{Dialect, quote};
use crate::plan::{ListPlan, RelatedBy, SearchBy, Selection};
use crate::predicate::{Comparison, Predicate, Test};

/// The maximum number of related rows that a probe finds. If it finds one more, there are many.
pub(super) const FOUND_MAX: usize = 1000;
/// The maximum number of rows to which the related rows of a probe lead. If more rows of a million meet the condition, a page is
/// full sooner when rows are judged in their order.
pub(super) const FEW_MAX: usize = 4000;
/// The maximum number of related rows whose first rows are read, one after the other.
pub(super) const HEADS_MAX: usize = 100;
/// The maximum number of rows that a page reads and skips, if the first rows of each related row are read.
const HEAD_ROWS_MAX: i64 = 200;
/// The number of rows that are tested one by one before a list is made.
const ROWS_FIRST_MAX: usize = 250;
/// If a list reads all related rows, one row in this number may be read by an index instead. To find a row by an index takes as
/// long as to read about eight rows that follow each other.
const SCANNED_ONE_IN: usize = 8;
/// The same if each row is looked for among the related rows and can have several of them, so that there are more look-ups.
const SCANNED_TO_MANY_ONE_IN: usize = 32;
/// The maximum number of rows that a page reads and skips. With more rows, a second sort of their rowids costs more than the
/// probes save.
const PAGE_ROWS_MAX: i64 = 5000;
/// The maximum number of values that conditions may bind in a statement that contains the conditions several times.
const REPEATED_VALUES_MAX: usize = 1000;

/// A page in the order of an index: its order as SQL, and the number of rows that it reads and skips.
pub(super) struct Page<'a> {
    pub(super) keys: &'a str,
    /// Whether the rows of one foreign key are in this order in the index of the foreign key.
    pub(super) is_by_creation: bool,
    /// Whether the first key of the order descends.
    pub(super) descends: bool,
    pub(super) limit: i64,
    pub(super) offset: i64,
}

impl Page<'_> {
    /// Whether the page can be made of the first rows of each of very few foreign keys.
    fn has_heads(&self) -> bool {
        self.is_by_creation && (1..=HEAD_ROWS_MAX).contains(&self.limit.saturating_add(self.offset))
    }
}

/// Whether a list is in the order of creation, in one direction or the other.
pub(super) fn is_by_creation(plan: &ListPlan) -> bool {
    plan.is_in_order_of_index()
        && plan.order.first().is_some_and(|(first, _)| plan.object.columns[*first].name == system::CREATED_AT)
}

/// What the probe of a page found.
struct Probed {
    /// SQL that tests whether `svc_few` has all rows that can be on the page. It is also true if another table has them.
    has_few: String,
    /// Whether the statement has the table `svc_heads`.
    has_heads: bool,
}

impl Writer {
    /// Writes the tests of the conditions, for a statement that needs all rows.
    pub(super) fn conditions(&mut self, object: &Object, selection: &Selection) -> Vec<String> {
        let parts = &selection.conditions;
        let are_seen = matches!(selection.scope, Scope::Seen(_));
        if self.looks_at_few || parts.iter().all(is_plain) {
            return self.conditions_by(object, parts, Way::ByRow);
        }
        if self.dialect == Dialect::Postgres {
            let mut tests = self.conditions_by(object, parts, Way::ByRow);
            // If an index leads to the ids of few rows, to plan the statement again takes longer than to run it.
            if !parts.iter().any(|part| leads_to_ids(object, part)) {
                tests.push(self.planned_for_values());
            }
            return tests;
        }
        if are_seen || selection.related_by == RelatedBy::Row {
            return self.conditions_by(object, parts, Way::ByRow);
        }
        if selection.related_by == RelatedBy::Link {
            return self.conditions_by(object, parts, Way::ByLink);
        }
        if selection.search.is_some() || selection.indexed_term(object).is_some() {
            // After a search, few rows are left, unless it is known that many rows match.
            let leaves_many = matches!(selection.search_by, SearchBy::Index);
            return self.conditions_by(object, parts, if leaves_many { Way::ByList } else { Way::ByRow });
        }
        let is_narrowed = selection.scope != Scope::All || parts.iter().any(is_plain);
        if !is_narrowed || !is_repeatable(parts) {
            let lead = leading(parts);
            let by = |place: usize| if lead.is_none_or(|lead| lead == place) { Way::ByList } else { Way::TestedByList };
            return self.conditions_each_by(object, parts, by);
        }
        // If no index leads to the rows, a list does so. The row policy has an index.
        let is_led = selection.scope != Scope::All || parts.iter().any(|part| is_indexed(object, part));
        let lead = if is_led { None } else { leading(parts) };
        match parts.iter().filter(|part| !is_plain(part)).collect::<Vec<_>>().as_slice() {
            [Condition::Related(related)] if lead.is_none() && is_scanned_whole(related, &sought(related).0) => {
                self.own_rows(object, selection, related)
            }
            _ => self.first_rows(object, selection, None),
        }
        let by = |place: usize| if lead == Some(place) { Way::ByList } else { Way::FirstByRow };
        self.conditions_each_by(object, parts, by)
    }

    /// Writes a test that is always true. It makes Postgres plan the statement for its values each time.
    ///
    /// After five executions, Postgres compares the expected costs of these plans with that of one plan for all values. That one
    /// guesses the share of the related rows that meet a condition, and takes a tenth of the rows as the limit of a page. So it
    /// often seems to cost less, and then took up to ten times as long. With its value, this test disappears before the statement
    /// is planned. In a plan for all values, the test has a subquery with an extreme expected cost. If such a plan runs at all,
    /// `LIMIT 0` prevents the subquery from reading anything.
    fn planned_for_values(&mut self) -> String {
        let holds = self.bind(Param::from(true));
        format!("({holds} OR (SELECT count(*) FROM generate_series(1, 1000000000000) LIMIT 0) IS NULL)")
    }

    /// Writes the tests for a page of SQLite in the order of an index.
    pub(super) fn page_tests(&mut self, object: &Object, selection: &Selection, page: &Page<'_>) -> Vec<String> {
        let parts = &selection.conditions;
        let is_searched = selection.search.is_some() || selection.indexed_term(object).is_some();
        let rows = page.limit.saturating_add(page.offset);
        if selection.related_by != RelatedBy::List && !is_searched {
            // The sample has shown that many related rows are of the kind that the test looks for. A page of the rows that have
            // one is usually full after few rows, so a list of related rows would take longer. For a page of the rows that have
            // none, the statement may have to judge all rows, and so it goes the way that is the shortest for all rows.
            let excludes = parts.iter().any(|part| matches!(part, Condition::Related(related) if is_negated(related)));
            let lists = selection.related_by == RelatedBy::Link && (excludes || rows > PAGE_ROWS_MAX);
            let mut tests = self.scope_and_beginning(object, selection);
            tests.extend(self.conditions_by(object, parts, if lists { Way::ByLink } else { Way::ByRow }));
            return tests;
        }
        if is_searched || rows > PAGE_ROWS_MAX || parts.iter().all(is_plain) || !is_repeatable(parts) {
            return self.selection_tests(object, selection);
        }
        let rows = lead_of_page(object, parts).map(|_| self.bind(Param::from(rows)));
        let probed = rows.map(|rows| {
            let found = self.probe(object, selection, page, &rows);
            (rows, found)
        });
        self.first_rows(object, selection, Some(page.keys));
        let mut tests = self.scope_and_beginning(object, selection);
        tests.extend(self.conditions_by(object, parts, Way::Page));
        let Some((rows, Some(Probed { has_few, has_heads }))) = probed else { return tests };
        let heads = if has_heads { "SELECT svc_place FROM svc_heads UNION ALL " } else { "" };
        vec![format!(
            "svc_rowid IN ({heads}SELECT svc_place FROM svc_few WHERE {has_few} UNION ALL SELECT svc_place FROM (SELECT svc_rowid \
             AS svc_place FROM {} WHERE {} ORDER BY {} LIMIT CASE WHEN {has_few} THEN 0 ELSE {rows} END))",
            quote(object.name()),
            tests.join(" AND "),
            page.keys
        )]
    }

    /// Adds `svc_few`, which has the rows of the selection if a condition on related rows leads to few of them. Returns SQL that
    /// tests whether this table has all of them. `None` if no condition leads to rows.
    ///
    /// If very few foreign keys lead to rows, `svc_heads` has the first rows of each in the order of the page, and `svc_few` is
    /// empty.
    fn probe(&mut self, object: &Object, selection: &Selection, page: &Page<'_>, rows: &str) -> Option<Probed> {
        let parts = &selection.conditions;
        let lead = lead_of_page(object, parts)?;
        let mut others = self.scope_and_beginning(object, selection);
        for (_, part) in parts.iter().enumerate().filter(|(place, _)| *place != lead) {
            others.extend(self.conditions_by(object, std::slice::from_ref(part), Way::ByRow));
        }
        let table = quote(object.name());
        let mut has_heads = None;
        let found = match &parts[lead] {
            Condition::Related(related) => {
                let mut list = self.by(Way::ByList, |writer| writer.keys(related, &related.condition));
                list.push_str(&format!(" LIMIT {FOUND_MAX} + 1"));
                self.add_table("svc_found", list);
                let has_few = format!("(SELECT count(*) FROM svc_found) <= {FOUND_MAX}");
                let key = key_of(object, related);
                if page.has_heads() && matches!(related.shape, RelationShape::Forward { .. }) {
                    let are_very_few = format!("(SELECT count(*) FROM svc_found) <= {HEADS_MAX}");
                    self.heads(object, page, &others, rows, (&key, &are_very_few));
                    has_heads = Some(are_very_few);
                }
                Some((format!("{key} IN (SELECT svc_key FROM svc_found WHERE {has_few})"), has_few))
            }
            _ => None,
        };
        let mut tests = match &found {
            Some((test, _)) => vec![test.clone()],
            None => self.conditions_by(object, std::slice::from_ref(&parts[lead]), Way::ByList),
        };
        tests.extend(others);
        let max = match &has_heads {
            Some(has_heads) => format!("CASE WHEN {has_heads} THEN 0 ELSE {FEW_MAX} + 1 END"),
            None => format!("{FEW_MAX} + 1"),
        };
        let tests = tests.join(" AND ");
        self.add_table("svc_few", format!("SELECT svc_rowid AS svc_place FROM {table} WHERE {tests} LIMIT {max}"));
        let has_few = format!("(SELECT count(*) FROM svc_few) <= {FEW_MAX}");
        let has_few = match found {
            Some((_, found_few)) => format!("({found_few} AND {has_few})"),
            None => has_few,
        };
        Some(Probed { has_few, has_heads: has_heads.is_some() })
    }

    /// Adds `svc_heads`, which has the first rows of the page among those that have one of the keys of `svc_found`. It is empty
    /// unless there `are_very_few` keys.
    ///
    /// The index of the foreign key has the rows of each key in the order of their creation. If one key has as many rows as the
    /// page needs, the page has no rows that come after these. So `svc_bound` is the time of creation of the last one of them, from
    /// the key for which it is best. No rows beyond it are read.
    fn heads(&mut self, object: &Object, page: &Page<'_>, others: &[String], rows: &str, (key, are_very_few): (&str, &str)) {
        let table = quote(object.name());
        let created_at = format!("{table}.{}", quote(system::CREATED_AT));
        let mut tests = vec![format!("{table}.{key} = svc_found.svc_key")];
        tests.extend(others.iter().cloned());
        let tests = tests.join(" AND ");
        // Times are texts. Without a bound all of them pass the test: every text comes after the empty one, and before any blob.
        let (best, within, all) = if page.descends { ("max", ">=", "''") } else { ("min", "<=", "x''") };
        let keys = page.keys;
        let of_key = format!("SELECT {created_at} AS svc_at FROM {table} WHERE {tests} ORDER BY {keys}");
        let last = in_last_row("svc_at", &of_key, rows);
        self.add_table("svc_bound", format!("SELECT {best}(({last})) AS svc_at FROM svc_found WHERE {are_very_few}"));
        self.add_table(
            "svc_heads",
            format!(
                "SELECT {table}.svc_rowid AS svc_place FROM svc_found CROSS JOIN {table} ON {tests} AND {created_at} {within} \
                 coalesce((SELECT svc_at FROM svc_bound), {all}) WHERE {are_very_few} ORDER BY {keys} LIMIT {rows}"
            ),
        );
    }

    /// Writes the tests of a selection that read no related rows, or only one.
    pub(super) fn own_tests(&mut self, object: &Object, selection: &Selection) -> Vec<String> {
        let mut tests = self.scope_and_beginning(object, selection);
        for part in selection.conditions.iter().filter(|part| is_plain(part)) {
            tests.extend(self.conditions_by(object, std::slice::from_ref(part), Way::ByRow));
        }
        tests
    }

    /// Does the same as [`Writer::first_rows`] for a condition whose list reads all related rows. If the tests of the object's
    /// own columns leave few rows in comparison, `svc_first` has all of them, so that no list is made.
    ///
    /// `svc_own` has the rows that meet these tests, if they are few: at most one for [`SCANNED_ONE_IN`] related rows. If a row
    /// can have several related rows, both these rows and their related rows are at most one for [`SCANNED_TO_MANY_ONE_IN`].
    fn own_rows(&mut self, object: &Object, selection: &Selection, related: &Related) {
        let table = quote(object.name());
        let tests = self.own_tests(object, selection);
        let tests = if tests.is_empty() { String::new() } else { format!(" WHERE {}", tests.join(" AND ")) };
        let one_in = match related.shape {
            RelationShape::Reverse { .. } => SCANNED_TO_MANY_ONE_IN,
            RelationShape::Forward { .. } | RelationShape::Linked { .. } => SCANNED_ONE_IN,
        };
        let most = format!("{} / {one_in}", self.stored_count(&related.object));
        let own = format!("SELECT svc_rowid AS svc_place, {table}.{} AS svc_key FROM {table}{tests}", quote(system::ID));
        self.add_table("svc_own", format!("{own} LIMIT max({most} + 1, {ROWS_FIRST_MAX})"));
        let mut are_few = format!("(SELECT count(*) FROM svc_own) BETWEEN {ROWS_FIRST_MAX} + 1 AND {most}");
        if let RelationShape::Reverse { column, .. } = related.shape {
            // The index of the foreign key has all that is counted.
            are_few.push_str(&format!(
                " AND (SELECT count(*) FROM (SELECT 1 FROM svc_own CROSS JOIN {} AS svc_of_own \
                 ON svc_of_own.{} = svc_own.svc_key LIMIT {most} + 1)) <= {most}",
                quote(related.object.name()),
                quote(&related.object.columns[column].name)
            ));
        }
        self.add_table(
            "svc_first",
            format!("SELECT svc_place FROM svc_own LIMIT CASE WHEN {are_few} THEN {most} ELSE {ROWS_FIRST_MAX} END"),
        );
    }

    /// Adds `svc_first`, which has the first rows that meet the tests of the object's own columns.
    fn first_rows(&mut self, object: &Object, selection: &Selection, keys: Option<&str>) {
        let tests = self.own_tests(object, selection);
        let mut sql = format!("SELECT svc_rowid AS svc_place FROM {}", quote(object.name()));
        if !tests.is_empty() {
            sql.push_str(&format!(" WHERE {}", tests.join(" AND ")));
        }
        if let Some(keys) = keys {
            sql.push_str(&format!(" ORDER BY {keys}"));
        }
        sql.push_str(&format!(" LIMIT {ROWS_FIRST_MAX}"));
        self.add_table("svc_first", sql);
    }

    fn conditions_each_by(&mut self, object: &Object, parts: &[Condition], by: impl Fn(usize) -> Way) -> Vec<String> {
        let parts = parts.iter().enumerate();
        parts.flat_map(|(place, part)| self.conditions_by(object, std::slice::from_ref(part), by(place))).collect()
    }

    pub(super) fn conditions_by(&mut self, object: &Object, parts: &[Condition], way: Way) -> Vec<String> {
        self.by(way, |writer| parts.iter().map(|part| writer.condition(&Place::of(object), part)).collect())
    }

    /// Calls `write` with another way of writing conditions.
    pub(super) fn by<T>(&mut self, way: Way, write: impl FnOnce(&mut Writer) -> T) -> T {
        let before = std::mem::replace(&mut self.way, way);
        let written = write(self);
        self.way = before;
        written
    }

    /// Writes a test whether a relation leads to a row that meets a condition, or to no such row. For the image of a record, the
    /// row that leads to related rows has to exist as well.
    pub(super) fn related(&mut self, place: &Place<'_>, related: &Related) -> String {
        let judges_image = std::mem::take(&mut self.judges_image);
        let mut test = self.related_test(place, related);
        if judges_image {
            test = format!("({test} AND {})", self.leads_on(place, related));
        }
        self.judges_image = judges_image;
        test
    }

    /// If a to-one relation leads to no row, the condition is tested on nulls. If nulls do not meet the condition, a row has to
    /// meet it. If nulls meet it, the test fails only if a row exists that does not meet it.
    fn related_test(&mut self, place: &Place<'_>, related: &Related) -> String {
        let (condition, negated) = sought(related);
        if is_of_one(related, &condition) {
            return self.compared(place, related, &condition, negated);
        }
        let by_row = |writer: &mut Writer| writer.by(Way::ByRow, |writer| writer.exists(place, related, &condition, negated));
        let leads = self.way != Way::TestedByList;
        let by_list =
            |writer: &mut Writer| writer.by(Way::ByList, |writer| writer.listed(place, related, &condition, negated, leads));
        match (self.way, related.shape) {
            (Way::ByRow | Way::OnlyByRow | Way::ByLink, _) => self.exists(place, related, &condition, negated),
            (Way::Page, RelationShape::Forward { .. }) => by_row(self),
            (Way::ByList | Way::TestedByList, _) => by_list(self),
            (Way::FirstByRow | Way::Page, _) => {
                let (by_row, by_list) = (by_row(self), by_list(self));
                format!("CASE WHEN svc_rowid IN (SELECT svc_place FROM svc_first) THEN {by_row} ELSE {by_list} END")
            }
        }
    }

    /// Writes the test for a condition that at most one related row can meet.
    ///
    /// The subquery has at most one row, because it compares a unique column with a value. All other tests, such as the row
    /// policy, can only remove rows. If the subquery has no row, or if its row has no key, its value is null. Nothing is equal to
    /// null, and every key is distinct from null. A foreign key that is null leads to no row, so it meets a negated condition.
    fn compared(&mut self, place: &Place<'_>, related: &Related, condition: &Condition, negated: bool) -> String {
        let key = self.outer_key(place, related);
        let found = self.by(Way::ByRow, |writer| writer.keys(related, condition));
        match (negated, related.shape) {
            (false, _) => format!("{key} = ({found})"),
            (true, RelationShape::Forward { .. }) => {
                format!("({key} IS NULL OR {key} {} ({found}))", self.dialect.is_distinct())
            }
            (true, _) => format!("{key} {} ({found})", self.dialect.is_distinct()),
        }
    }

    /// Writes the test by list. The list of a `NOT IN` must not contain null: a comparison with null is neither true nor false,
    /// so `NOT IN` would find no row. `leads` is whether SQLite may find the rows by the list.
    fn listed(&mut self, place: &Place<'_>, related: &Related, condition: &Condition, negated: bool, leads: bool) -> String {
        let key = self.outer_key(place, related);
        let list = self.keys(related, condition);
        match (negated, related.shape) {
            (false, _) if leads => format!("{key} IN ({list})"),
            // The `+` prevents SQLite from using the index of the key.
            (false, _) => format!("+{key} IN ({list})"),
            (true, RelationShape::Forward { .. }) => format!("({key} IS NULL OR {key} NOT IN ({list}))"),
            // The `+` prevents SQLite from using the index of the key for this test.
            (true, RelationShape::Reverse { column, .. }) if !related.object.columns[column].required => {
                format!("{key} NOT IN (SELECT svc_key FROM ({list}) WHERE +svc_key IS NOT NULL)")
            }
            (true, shape) if self.masked_links(place, shape).is_some() => format!("({key} IS NULL OR {key} NOT IN ({list}))"),
            (true, _) => format!("{key} NOT IN ({list})"),
        }
    }

    /// `SELECT …`: the keys of the related rows that meet a condition, in the column `svc_key`. [`outer_key`] is compared with
    /// these keys.
    pub(super) fn keys(&mut self, related: &Related, condition: &Condition) -> String {
        let (source, alias, revision) = self.related_table(related, None);
        let (key, from) = match related.shape {
            RelationShape::Forward { .. } => (format!("{alias}.\"id\""), source),
            RelationShape::Reverse { column, .. } => (format!("{alias}.{}", quote(&related.object.columns[column].name)), source),
            RelationShape::Linked { relationship_id, is_source } => {
                let (near, far) = link_sides(is_source);
                let (links, link_alias) = (link_table(relationship_id), format!("{alias}_link"));
                let from = match takes_all(related, condition) {
                    true => format!("{links} AS {link_alias}"),
                    // The tables are in this order because an index of the links leads from a related row to its links.
                    false => {
                        format!("{source} CROSS JOIN {links} AS {link_alias} ON {link_alias}.{far} = {alias}.\"id\"")
                    }
                };
                (format!("{link_alias}.{near}"), from)
            }
        };
        let inside = Place::inside(&related.object, &alias);
        let mut tests = self.scope_at(&inside, &related.scope);
        if !condition.is_true() {
            tests.push(self.condition(&inside, condition));
        }
        let tests = if tests.is_empty() { String::new() } else { format!(" WHERE {}", tests.join(" AND ")) };
        format!("SELECT{revision} {key} AS svc_key FROM {from}{tests}")
    }

    /// Writes a test whether the row still exists that connects an image with its related rows. This is the row that the image's
    /// foreign key refers to, or the record itself if other rows or links refer to it. A foreign key that is null passes the
    /// test.
    fn leads_on(&mut self, place: &Place<'_>, related: &Related) -> String {
        let key = self.outer_key(place, related);
        let (target, absent) = match related.shape {
            RelationShape::Forward { .. } => (&*related.object, format!("{key} IS NULL OR ")),
            RelationShape::Reverse { .. } | RelationShape::Linked { .. } => (place.object, String::new()),
        };
        self.related_tables += 1;
        let alias = format!("svc_related_{}", self.related_tables);
        format!("({absent}EXISTS (SELECT 1 FROM {} AS {alias} WHERE {alias}.\"id\" = {key}))", quote(target.name()))
    }

    /// Writes the test by row.
    fn exists(&mut self, place: &Place<'_>, related: &Related, condition: &Condition, negated: bool) -> String {
        let key = self.outer_key(place, related);
        let equals_key = |column: &str| format!("{column} = {key}");
        let lead: Option<Lead<'_>> = match related.shape {
            // Inside the subquery, a table with the same name hides the table of the key.
            RelationShape::Reverse { column, .. } if place.table != quote(related.object.name()) => Some((column, &equals_key)),
            RelationShape::Forward { .. } | RelationShape::Reverse { .. } | RelationShape::Linked { .. } => None,
        };
        let (source, alias, revision) = self.related_table(related, lead);
        // `… IN (SELECT … FROM …`: the test of a link, if the related rows are in a list.
        let mut listed = None;
        let (from, link) = match related.shape {
            RelationShape::Forward { .. } => (source, format!("{alias}.\"id\" = {key}")),
            RelationShape::Reverse { column, .. } => {
                let column = quote(&related.object.columns[column].name);
                (source, format!("{alias}.{column} = {key}"))
            }
            RelationShape::Linked { relationship_id, is_source } => {
                let (near, far) = link_sides(is_source);
                let (links, link_alias) = (link_table(relationship_id), format!("{alias}_link"));
                let join = if self.dialect == Dialect::Sqlite { "CROSS JOIN" } else { "JOIN" };
                let takes_all = takes_all(related, condition);
                if self.way == Way::ByLink && !takes_all {
                    listed = Some(format!("+{link_alias}.{far} IN (SELECT {alias}.\"id\" FROM {source}"));
                }
                let from = match takes_all || listed.is_some() {
                    true => format!("{links} AS {link_alias}"),
                    false => format!("{links} AS {link_alias} {join} {source} ON {alias}.\"id\" = {link_alias}.{far}"),
                };
                (from, format!("{link_alias}.{near} = {key}"))
            }
        };
        let inside = Place::inside(&related.object, &alias);
        let mut tests = self.scope_at(&inside, &related.scope);
        if !condition.is_true() {
            tests.push(self.condition(&inside, condition));
        }
        let tests = match (listed, self.dialect, tests.is_empty()) {
            (None, _, true) => String::new(),
            (None, Dialect::Postgres, false) => format!(" AND {}", tests.join(" AND ")),
            // The `+` prevents SQLite from using an index for these tests. With the index, SQLite would read all related rows
            // that meet the tests, again for each row.
            (None, Dialect::Sqlite, false) => format!(" AND +({})", tests.join(" AND ")),
            (Some(listed), _, true) => format!(" AND {listed})"),
            (Some(listed), _, false) => format!(" AND {listed} WHERE {})", tests.join(" AND ")),
        };
        let not = if negated { "NOT " } else { "" };
        format!("{not}EXISTS (SELECT{revision} 1 FROM {from} WHERE {link}{tests}{})", self.end_of_exists())
    }

    /// The column that leads from a row to the related rows, as a subquery names it.
    fn outer_key(&self, place: &Place<'_>, related: &Related) -> String {
        match related.shape {
            RelationShape::Forward { column } => place.outside(&place.object.columns[column].name),
            RelationShape::Reverse { .. } => place.outside(system::ID),
            RelationShape::Linked { .. } => self.masked_links(place, related.shape).unwrap_or_else(|| place.outside(system::ID)),
        }
    }

    /// The source of related rows after FROM, their alias in this part of the statement, and on Postgres a comment with the
    /// object's number and revision, as in [`Writer::new`].
    fn related_table(&mut self, related: &Related, lead: Option<Lead<'_>>) -> (String, String, String) {
        self.related_tables += 1;
        let revision = match self.dialect {
            Dialect::Sqlite => String::new(),
            Dialect::Postgres => format!(" /* {}.{} */", related.object.id, related.object.revision),
        };
        let alias = format!("svc_related_{}", self.related_tables);
        (self.source_led_by(&related.object, &related.scope, Some(&alias), lead), alias, revision)
    }
}

/// The condition on the related rows that the test looks for, and whether there must be no such row.
fn sought(related: &Related) -> (Cow<'_, Condition>, bool) {
    match related.quantifier {
        Quantifier::One if related.condition.holds_on_nothing() => (Cow::Owned(related.condition.clone().complement()), true),
        Quantifier::One | Quantifier::Some => (Cow::Borrowed(&related.condition), false),
        Quantifier::None => (Cow::Borrowed(&related.condition), true),
    }
}

/// Whether a row without related rows meets the condition `related`.
fn is_negated(related: &Related) -> bool {
    related.quantifier == Quantifier::None || (related.quantifier == Quantifier::One && related.condition.holds_on_nothing())
}

/// The column of the object that leads to the related rows.
fn key_of(object: &Object, related: &Related) -> String {
    match related.shape {
        RelationShape::Forward { column } => quote(&object.columns[column].name),
        RelationShape::Reverse { .. } | RelationShape::Linked { .. } => quote(system::ID),
    }
}

/// Whether every related row counts and meets the condition, so that the links alone decide.
pub(super) fn takes_all(related: &Related, condition: &Condition) -> bool {
    related.scope == Scope::All && condition.is_true()
}

/// Whether only one row can meet a condition, because it compares a unique column with a value.
fn is_of_one_row(object: &Object, condition: &Condition) -> bool {
    match condition {
        Condition::Test(predicate) => {
            let column = &object.columns[predicate.column];
            // A list column is equal to each of its elements, so several rows can be equal to one value.
            let is_equal = matches!(&predicate.test, Test::Compare(Comparison::Equal, value) if *value != Value::Null);
            is_equal && column.unique && column.ty != ColumnType::TextList
        }
        Condition::All(parts) => parts.iter().any(|part| is_of_one_row(object, part)),
        Condition::Not(_) | Condition::Any(_) | Condition::Related(_) => false,
    }
}

/// Whether only one related row can meet a condition, so that the condition leads to one key. A row can have any number of links.
fn is_of_one(related: &Related, condition: &Condition) -> bool {
    !matches!(related.shape, RelationShape::Linked { .. }) && is_of_one_row(&related.object, condition)
}

/// Whether a condition reads no related rows, or only one.
pub(super) fn is_plain(condition: &Condition) -> bool {
    match condition {
        Condition::Test(_) | Condition::Not(_) => true,
        Condition::All(parts) | Condition::Any(parts) => parts.iter().all(is_plain),
        Condition::Related(related) => is_of_one(related, &sought(related).0),
    }
}

/// Whether an index leads to the rows that meet a condition, and these are at most one row, or the rows of one key.
fn is_single(object: &Object, condition: &Condition) -> bool {
    match condition {
        Condition::Related(related) => !is_negated(related) && is_of_one(related, &related.condition),
        condition => is_of_one_row(object, condition),
    }
}

/// Whether an index leads to the rows that meet a condition on their own columns.
pub(super) fn is_indexed(object: &Object, condition: &Condition) -> bool {
    match condition {
        Condition::Test(predicate) => {
            let is_sought = matches!(&predicate.test, Test::Compare(Comparison::Equal, _) | Test::In { negated: false, .. });
            is_sought && object.columns[predicate.column].indexes.lead_to_rows
        }
        condition => is_single(object, condition),
    }
}

/// Whether an index leads to the rows that meet a condition on their own columns or on related rows.
pub(super) fn leads(object: &Object, condition: &Condition) -> bool {
    match condition {
        Condition::Any(parts) => !parts.is_empty() && parts.iter().all(|part| leads(object, part)),
        Condition::Related(related) => !is_negated(related),
        condition => is_indexed(object, condition),
    }
}

/// Whether indexes alone lead to the rows that meet a condition: those of the object, and those of related objects.
pub(super) fn is_led_by_index(object: &Object, condition: &Condition) -> bool {
    match condition {
        Condition::Related(related) => !is_negated(related) && is_found_by_index(condition),
        condition => is_plain(condition) && leads(object, condition),
    }
}

/// Whether an index leads to the ids of the rows to which related rows or links lead. A foreign key does not count: how many rows
/// have it depends on its value.
fn leads_to_ids(object: &Object, condition: &Condition) -> bool {
    let is_forward = matches!(condition, Condition::Related(related) if matches!(related.shape, RelationShape::Forward { .. }));
    !is_plain(condition) && !is_forward && is_led_by_index(object, condition)
}

/// The index of the condition that leads a page to its rows through related rows.
pub(super) fn lead_of_page(object: &Object, parts: &[Condition]) -> Option<usize> {
    // At most one row meets a condition on a single row, or the rows of one key. The index of the key contains these in the order
    // of the page.
    if parts.iter().any(|part| is_single(object, part)) {
        return None;
    }
    leading(parts).or_else(|| parts.iter().position(|part| leads(object, part) && !is_plain(part)))
}

/// The index of the condition on related rows that is best for finding rows: one for which the related object has an index, or
/// the first one.
fn leading(parts: &[Condition]) -> Option<usize> {
    let is_leading = |part: &&Condition| matches!(part, Condition::Related(related) if !is_negated(related)) && !is_plain(part);
    let places = || parts.iter().enumerate().filter(|(_, part)| is_leading(part));
    places().find(|(_, part)| is_found_by_index(part)).or_else(|| places().next()).map(|(place, _)| place)
}

/// Whether an index leads to the related rows that meet a condition.
fn is_found_by_index(part: &Condition) -> bool {
    matches!(part, Condition::Related(related) if parts_of(&related.condition).iter().any(|part| is_indexed(&related.object, part)))
}

/// The tests by which the related rows that meet a condition are found among all related rows: those of the row policy, and
/// those of the condition. `None` if an index has the few rows that meet one of them, or if one follows further relations. A
/// range of an index may have few rows or many.
pub(super) fn tests_of_all<'a>(related: &'a Related, condition: &'a Condition) -> Option<Vec<&'a Condition>> {
    let policy = match &related.scope {
        Scope::All => None,
        Scope::Where(policy) => Some(&**policy),
        // An index finds the rows of a creator. If cells are hidden, each way tests in which rows they are.
        Scope::Own(_) | Scope::Nothing | Scope::Seen(_) => return None,
    };
    let tests: Vec<&Condition> = policy.into_iter().chain([condition]).flat_map(parts_of).collect();
    let are_of_all = tests.iter().all(|test| test.relations().next().is_none() && !leads(&related.object, test));
    are_of_all.then_some(tests)
}

/// Whether a list of the related rows that meet a condition reads the whole table of the related rows, and nothing else.
fn is_scanned_whole(related: &Related, condition: &Condition) -> bool {
    let is_of_table = !matches!(related.shape, RelationShape::Linked { .. });
    let are_of_all = |tests: Vec<&Condition>| !tests.into_iter().any(|test| is_range(&related.object, test));
    is_of_table && tests_of_all(related, condition).is_some_and(are_of_all)
}

/// Whether an index may have the rows that meet a condition one after the other.
pub(super) fn is_range(object: &Object, condition: &Condition) -> bool {
    match condition {
        Condition::Any(parts) => !parts.is_empty() && parts.iter().all(|part| is_range(object, part)),
        Condition::All(parts) => parts.iter().any(|part| is_range(object, part)),
        Condition::Test(Predicate { column, test }) => {
            let is_left_out = matches!(
                test,
                Test::Compare(Comparison::NotEqual, _) | Test::In { negated: true, .. } | Test::IsNotNull | Test::Contains { .. }
            );
            object.columns[*column].indexes.exist && !is_left_out
        }
        _ => false,
    }
}

/// The conditions of which all must hold.
pub(super) fn parts_of(condition: &Condition) -> &[Condition] {
    match condition {
        Condition::All(parts) => parts,
        condition => std::slice::from_ref(condition),
    }
}

/// Whether an index leads to exactly the related rows of a condition, and links lead from them to the rows of a page. To judge the
/// first rows of such a page by row can take long, because a row can have any number of links. The probe reads few rows.
pub(super) fn is_led_by_links(object: &Object, parts: &[Condition]) -> bool {
    let of_index = |related: &Related| {
        let parts = parts_of(&related.condition);
        !parts.is_empty() && parts.iter().all(|part| is_indexed(&related.object, part))
    };
    lead_of_page(object, parts).is_some_and(|lead| {
        let Condition::Related(related) = &parts[lead] else { return false };
        matches!(related.shape, RelationShape::Linked { .. }) && of_index(related)
    })
}

/// Whether a statement may contain the conditions several times.
pub(super) fn is_repeatable(parts: &[Condition]) -> bool {
    parts.iter().map(Condition::values).sum::<usize>() <= REPEATED_VALUES_MAX
}

#[cfg(test)]
pub(super) mod tests;

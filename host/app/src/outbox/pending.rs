//! The rows of a call that still have to meet a `check`, each with its condition and the operation that wrote it.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use blockbase_query::{Condition, Scope};
use blockbase_schema::Object;
use uuid::Uuid;

/// A row: the number of its object, and its id.
pub(crate) type RowKey = (i64, Uuid);

/// A link, as one of its two rows sees it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Link {
    pub(crate) relationship_id: i64,
    /// Whether the row is the source.
    pub(crate) is_source: bool,
    /// The row on the other side.
    pub(crate) other: RowKey,
}

impl Link {
    /// The same link, as the row on the other side sees it. `row` is the row on this side.
    fn mirrored(self, row: RowKey) -> Link {
        Link { is_source: !self.is_source, other: row, ..self }
    }
}

/// The rows that have to meet their checks. A row has at most one check of its creation and one of a change at a time, because it
/// is judged before it is written again.
#[derive(Default)]
pub(crate) struct PendingChecks {
    /// Each condition once.
    conditions: Vec<Checked>,
    /// The rows of each object that have not been judged since they were noted.
    unjudged: HashMap<i64, HashSet<Uuid>>,
    /// New rows. Links of a new row are a part of making it, so only changes of its values and its deletion judge it earlier.
    made: HashMap<RowKey, Place>,
    /// Rows that were changed, or whose links were.
    rows: HashMap<RowKey, Noted>,
    /// The rows that operations have linked with a row, by that row. An entry counts only while its row waits with this link.
    linked_with: HashMap<RowKey, HashSet<(RowKey, Link)>>,
    /// The number of rows noted so far.
    count: usize,
}

struct Checked {
    object: Arc<Object>,
    leaves: Condition,
    /// The rows that fail the condition.
    failing: Scope,
}

struct Noted {
    place: Place,
    /// The links that the operation has named.
    links: HashSet<Link>,
}

/// The condition of a row, the place of the row among all that were noted, and the operation that wrote it.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Place {
    condition: usize,
    pub(super) number: usize,
    pub(super) operation: Option<usize>,
}

/// What an operation does to rows, or to their links.
#[derive(Clone, Copy)]
pub(super) enum Written {
    New,
    Changed,
}

/// Rows of one object that have to meet one condition.
pub(super) struct Due {
    pub(super) object: Arc<Object>,
    /// The rows that fail the condition.
    pub(super) failing: Scope,
    /// Each row with its place, in the order of the operations that wrote them.
    pub(super) rows: Vec<(Place, Uuid)>,
}

impl PendingChecks {
    pub(crate) fn is_empty(&self) -> bool {
        self.made.is_empty() && self.rows.is_empty()
    }

    /// Notes rows that an operation has made or is about to change. Rows with the same condition are judged together.
    pub(super) fn note(
        &mut self,
        written: Written,
        object: &Arc<Object>,
        leaves: Condition,
        ids: impl IntoIterator<Item = Uuid>,
        operation: Option<usize>,
    ) {
        if leaves.is_true() {
            return;
        }
        let known = self.conditions.iter().position(|known| known.object.id == object.id && known.leaves == leaves);
        let condition = known.unwrap_or_else(|| {
            let failing = Scope::Where(Arc::new(leaves.clone().complement()));
            self.conditions.push(Checked { object: Arc::clone(object), leaves, failing });
            self.conditions.len() - 1
        });
        for id in ids {
            let (row, place) = ((object.id, id), Place { condition, number: self.count, operation });
            self.count += 1;
            self.unjudged.entry(object.id).or_default().insert(id);
            let is_noted = match written {
                Written::New => self.made.insert(row, place).is_some(),
                Written::Changed => self.rows.insert(row, Noted { place, links: HashSet::new() }).is_some(),
            };
            debug_assert!(!is_noted, "a row is judged before it is written again");
        }
    }

    /// Notes the links that an operation makes or removes at a row, if the row has to meet a check.
    pub(super) fn note_links(&mut self, row: RowKey, links: &[Link], are_made: bool) {
        let Some(noted) = self.rows.get_mut(&row) else { return };
        noted.links.extend(links.iter().copied());
        if are_made {
            for link in links {
                self.linked_with.entry(link.other).or_default().insert((row, *link));
            }
        }
    }

    /// The rows whose operations have named one of these links of `row` from the other side.
    pub(super) fn naming(&self, row: RowKey, links: &[Link]) -> Vec<RowKey> {
        let names = |link: &&Link| self.rows.get(&link.other).is_some_and(|noted| noted.links.contains(&link.mirrored(row)));
        links.iter().filter(names).map(|link| link.other).collect()
    }

    /// The rows whose operations have linked them with one of `gone`, without those of `gone`. Each occurs once.
    pub(super) fn linked_with(&self, gone: &HashSet<RowKey>) -> HashSet<RowKey> {
        if self.linked_with.is_empty() {
            return HashSet::new();
        }
        let entries = gone.iter().filter_map(|row| self.linked_with.get(row)).flatten();
        let still = entries.filter(|(row, link)| self.rows.get(row).is_some_and(|noted| noted.links.contains(link)));
        still.map(|(row, _)| *row).filter(|row| !gone.contains(row)).collect()
    }

    /// Those of the rows that have to meet a check. They still have to meet it afterwards.
    pub(super) fn due(&self, rows: impl Iterator<Item = RowKey>) -> Vec<Due> {
        if self.is_empty() {
            return Vec::new();
        }
        let places = |row: RowKey| {
            let changed = self.rows.get(&row).map(|noted| noted.place);
            self.made.get(&row).copied().into_iter().chain(changed).map(move |place| (place, row.1))
        };
        self.grouped(rows.flat_map(places).collect())
    }

    /// Those of the rows that have to meet a check of a change. They still have to meet it afterwards.
    pub(super) fn due_changed(&self, rows: impl Iterator<Item = RowKey>) -> Vec<Due> {
        self.grouped(rows.filter_map(|row| Some((self.rows.get(&row)?.place, row.1))).collect())
    }

    /// Those of the rows that have to meet a check. They do not wait for it any longer.
    pub(super) fn take(&mut self, rows: impl Iterator<Item = RowKey>) -> Vec<Due> {
        if self.is_empty() {
            return Vec::new();
        }
        let mut found = Vec::new();
        for row in rows {
            let changed = self.rows.remove(&row).map(|noted| noted.place);
            found.extend(self.made.remove(&row).into_iter().chain(changed).map(|place| (place, row.1)));
        }
        self.grouped(found)
    }

    /// The rows of an object that have to meet a check and were not judged before. They still have to meet it afterwards.
    pub(super) fn unjudged_of(&mut self, object_id: i64) -> Vec<Due> {
        let ids = self.unjudged.remove(&object_id).unwrap_or_default();
        self.due(ids.into_iter().map(|id| (object_id, id)))
    }

    /// The row, if it has to meet a check of a change. It does not wait for it any longer. If it is new, it still has to meet the
    /// check of its creation.
    pub(super) fn take_changed(&mut self, row: RowKey) -> Vec<Due> {
        let found = self.rows.remove(&row).map(|noted| (noted.place, row.1));
        self.grouped(found.into_iter().collect())
    }

    /// All rows that have to meet a check. None waits any longer.
    pub(super) fn take_all(&mut self) -> Vec<Due> {
        let changed = self.rows.drain().map(|((_, id), noted)| (noted.place, id));
        let found = self.made.drain().map(|((_, id), place)| (place, id)).chain(changed).collect();
        self.grouped(found)
    }

    /// Groups rows by their condition.
    fn grouped(&self, mut found: Vec<(Place, Uuid)>) -> Vec<Due> {
        found.sort_unstable();
        let groups = found.chunk_by(|(one, _), (other, _)| one.condition == other.condition);
        let due = |group: &[(Place, Uuid)]| {
            let Checked { object, failing, .. } = &self.conditions[group[0].0.condition];
            Due { object: Arc::clone(object), failing: failing.clone(), rows: group.to_vec() }
        };
        groups.map(due).collect()
    }
}

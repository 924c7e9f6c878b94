//! The rows of a request: the row policy, the filters, the condition and the search.

use std::sync::Arc;

use blockbase_schema::{Error, Object, Result, fold};

use crate::access::reading::{read_counted, split};
use crate::access::{Access, Reading, Scope, Where};
use crate::condition::Condition;
use crate::filter::Filter;
use crate::limits::FILTER_VALUES_MAX;
use crate::parameter::ListParameter;
use crate::predicate::{Predicate, Test, predicate};

/// The number of characters of the shortest text that the search index can find.
const TRIGRAM_CHARS: usize = 3;

/// The way to find rows that contain a text, if a search index can find candidates.
#[derive(Debug, Clone, Default)]
pub enum SearchBy {
    /// With the search index.
    #[default]
    Index,
    /// Row by row, in the order of the list. This is quicker if many rows match.
    Order,
    /// Among these rows of SQLite, which the search index has already found.
    Rows(Vec<i64>),
}

/// How a statement of SQLite that may need all rows judges a condition on related rows.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum RelatedBy {
    /// It makes a list of the keys of the related rows that meet the condition.
    #[default]
    List,
    /// Each row looks for its own related rows.
    Row,
    /// Each row looks for its own links, and each link for its related row in a list of those that meet the condition.
    Link,
}

/// The rows that both the row policy and the request select.
#[derive(Debug, Clone)]
pub struct Selection {
    pub scope: Scope,
    pub search: Option<String>,
    /// The filters and the condition. A row has to meet all of these.
    pub conditions: Vec<Condition>,
    /// The way to find rows that contain a text.
    pub search_by: SearchBy,
    pub related_by: RelatedBy,
}

impl Selection {
    /// # Errors
    /// `unknown_field`, `invalid_value` or `invalid_request` with the mistake; `forbidden` for a relation to an object that the
    /// caller may not read.
    pub fn new(
        object: &Object,
        access: &Access,
        search: Option<String>,
        filters: &[Filter],
        wheres: &[Where],
        reading: &Reading<'_>,
    ) -> Result<Selection> {
        Selection::counted(object, access, search, filters, wheres, reading).map(|(selection, _)| selection.with_policy())
    }

    /// Does the same, but without the condition of a row policy. Also returns the number of tests in the request.
    fn counted(
        object: &Object,
        access: &Access,
        search: Option<String>,
        filters: &[Filter],
        wheres: &[Where],
        reading: &Reading<'_>,
    ) -> Result<(Selection, usize)> {
        let (named, wheres) = split(object, wheres)?;
        let filters = filters.iter().chain(&named);
        let predicates: Vec<Predicate> = filters.map(|filter| predicate(object, filter)).collect::<Result<_>>()?;
        let mut tests = predicates.len();
        let of_filters: usize = predicates.iter().map(|predicate| predicate.test.values()).sum();
        if of_filters > FILTER_VALUES_MAX {
            return Err(Error::invalid_request(format!("The filters of a request hold {FILTER_VALUES_MAX} values at most.")));
        }
        let mut conditions: Vec<Condition> = gathered(predicates).into_iter().map(Condition::Test).collect();
        if let Some(asked) = wheres {
            let (asked, leaves) = read_counted(object, asked, reading)?;
            tests += leaves;
            if of_filters + asked.values() > FILTER_VALUES_MAX {
                let name = ListParameter::Where.name();
                let message =
                    format!("`{name}`: The condition and the filters of a request hold {FILTER_VALUES_MAX} values at most.");
                return Err(Error::invalid_request(message));
            }
            conditions = match Condition::all(conditions.into_iter().chain([asked]).collect()) {
                Condition::All(parts) => parts,
                one => vec![one],
            };
        }
        let scope = access.scope().clone();
        Ok((Selection { scope, search, conditions, search_by: SearchBy::Index, related_by: RelatedBy::List }, tests))
    }

    /// The same selection, with the condition of a row policy among the conditions. So statements can use either of them to find
    /// rows.
    fn with_policy(mut self) -> Selection {
        if let Scope::Where(policy) = &self.scope {
            let all = Condition::all(std::iter::once(policy.as_ref().clone()).chain(self.conditions).collect());
            self.conditions = match all {
                Condition::All(parts) => parts,
                one => vec![one],
            };
            self.scope = Scope::All;
        }
        self
    }

    /// The rows of a write.
    ///
    /// # Errors
    /// The errors of [`Selection::new`]; `invalid_request` for a condition that every record meets, or that tests nothing.
    pub fn to_write(object: &Object, access: &Access, wheres: &[Where], reading: &Reading<'_>) -> Result<Selection> {
        let (selection, tests) = Selection::counted(object, access, None, &[], wheres, reading)?;
        match (tests, selection.conditions.is_empty()) {
            (1.., false) => Ok(selection.with_policy()),
            (0, _) => Err(Error::invalid_request("The condition of a call for many records has to test a field.")),
            (_, true) => {
                Err(Error::invalid_request("Every record meets the condition. A call for many records needs a narrower one."))
            }
        }
    }

    /// The tests that every selected row meets.
    fn tests(&self) -> impl Iterator<Item = &Predicate> {
        self.conditions.iter().filter_map(|condition| match condition {
            Condition::Test(predicate) => Some(predicate),
            Condition::Not(_) | Condition::All(_) | Condition::Any(_) | Condition::Related(_) => None,
        })
    }

    /// The longest of the texts that rows have to contain, among those for which the search index can find candidates.
    pub(crate) fn indexed_term(&self, object: &Object) -> Option<&str> {
        let filters = self.tests().filter(|predicate| object.columns[predicate.column].is_searchable());
        let filters = filters.flat_map(|predicate| predicate.test.contained_texts());
        if !object.has_search_index() {
            return None;
        }
        let terms = self.search.as_deref().into_iter();
        let terms = terms.chain(filters.map(String::as_str));
        terms.filter(|term| fold(term).chars().count() >= TRIGRAM_CHARS).max_by_key(|term| term.chars().count())
    }

    /// Whether the selection searches through complete texts. The engine's count of steps does not include the length of these
    /// texts.
    pub fn reads_texts(&self) -> bool {
        self.search.is_some() || self.scope.reads_texts() || self.conditions.iter().any(Condition::reads_texts)
    }

    /// Whether it selects every row of the object, so that the stored count is the total.
    pub fn is_everything(&self) -> bool {
        self.scope == Scope::All && self.search.is_none() && self.conditions.is_empty()
    }

    /// The other objects whose rows the selection reads.
    pub fn related_objects(&self) -> Vec<Arc<Object>> {
        let mut objects = Vec::new();
        self.scope.objects_into(&mut objects);
        self.conditions.iter().for_each(|condition| condition.objects_into(&mut objects));
        objects
    }
}

/// The same tests without duplicates. All texts that a column has to contain are in one test, so that the column's text is folded
/// only once for each row.
fn gathered(predicates: Vec<Predicate>) -> Vec<Predicate> {
    let mut kept: Vec<Predicate> = Vec::with_capacity(predicates.len());
    for predicate in predicates {
        let Test::Contains { texts, fold_case } = &predicate.test else {
            if !kept.contains(&predicate) {
                kept.push(predicate);
            }
            continue;
        };
        let of_column = kept.iter_mut().find_map(|known| match &mut known.test {
            Test::Contains { texts, fold_case: folds } if known.column == predicate.column && folds == fold_case => Some(texts),
            _ => None,
        });
        match of_column {
            Some(known) => {
                for text in texts {
                    if !known.contains(text) {
                        known.push(text.clone());
                    }
                }
            }
            None => kept.push(predicate),
        }
    }
    kept
}

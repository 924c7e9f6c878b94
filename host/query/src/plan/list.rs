//! The list operation: order, window, projection, related records.

use std::borrow::Cow;
use std::sync::Arc;

use blockbase_schema::{Error, FieldType, Object, RelationShape, Result, system};

use super::selection::Selection;
use crate::access::{Access, Reading};
use crate::cursor::{self, CursorPaging};
use crate::dialect::Dialect;
use crate::expand::{ExpandPlan, selected};
use crate::predicate::column_index;
use crate::request::{ListRequest, Paging};

/// The list operation.
#[derive(Debug, Clone)]
pub struct ListPlan {
    pub object: Arc<Object>,
    pub selection: Selection,
    /// The columns, each with whether its order is descending. The last one is `id`, which makes the order unique.
    pub order: Vec<(usize, bool)>,
    pub paging: Paging,
    /// The page by cursors, if the request asks for one. `paging` then has the size of the page only.
    pub cursor: Option<CursorPaging>,
    /// The columns that the records show.
    pub columns: Vec<usize>,
    /// Columns that are read but not shown, because the related records are found with them, or because cursors contain their values.
    pub hidden: Vec<usize>,
    pub expand: Vec<ExpandPlan>,
    pub with_count: bool,
}

impl ListPlan {
    /// # Errors
    /// The errors of [`Selection::new`]; `unknown_field` and `invalid_request` for the sort keys and the projection.
    pub fn new(
        object: &Arc<Object>,
        access: &Access,
        request: &ListRequest,
        reading: &Reading<'_>,
        expand: Vec<ExpandPlan>,
    ) -> Result<ListPlan> {
        let ListRequest { search, filters, wheres, .. } = request;
        let (named, cursor) = cursor::split(object, &request.cursors, request.page_by, request.connection)?;
        request.check_sort()?;
        let mut filters = Cow::Borrowed(filters);
        if !named.is_empty() {
            request.check_filters(named.len())?;
            filters.to_mut().extend(named);
        }
        let selection = Selection::new(object, access, search.clone(), &filters, wheres, reading)?;
        let columns = projection(object, request.select.as_deref())?;
        let order = order(object, &request.sort)?;
        let keys = expand.iter().filter_map(|expand| match expand.shape {
            RelationShape::Forward { column } => Some(column),
            _ => None,
        });
        let sorted = order.iter().filter(|_| cursor.is_some()).map(|(index, _)| *index);
        let mut hidden: Vec<usize> = Vec::new();
        for column in keys.chain(sorted) {
            if !columns.contains(&column) && !hidden.contains(&column) {
                hidden.push(column);
            }
        }
        Ok(ListPlan {
            selection,
            order,
            paging: request.paging,
            with_count: request.count.unwrap_or(cursor.is_none()),
            cursor,
            columns,
            expand,
            hidden,
            object: Arc::clone(object),
        })
    }
}

impl ListPlan {
    /// Whether the statement of the list itself returns the total, in an additional column of each row. A page without rows then has
    /// no total.
    ///
    /// On SQLite, it returns only a stored total. To count rows, another statement in the same transaction costs almost nothing
    /// more.
    pub fn counts_with_page(&self, dialect: Dialect) -> bool {
        let may_count = dialect == Dialect::Postgres || self.selection.is_everything();
        may_count && self.with_count && self.cursor.is_none()
    }

    /// Whether an index contains the rows of the object in the list's order. So SQLite can stop when the page is full.
    pub(crate) fn is_in_order_of_index(&self) -> bool {
        let column = |index: usize| &self.object.columns[index];
        match self.order.as_slice() {
            [(only, _)] => column(*only).name == system::ID,
            [(first, descends), (second, also_descends)] => {
                column(*first).indexes.order_rows && column(*second).name == system::ID && descends == also_descends
            }
            _ => false,
        }
    }

    /// Whether the list has all rows, in the order of an index, so that nothing has to be sorted.
    pub(crate) fn follows_index(&self) -> bool {
        self.is_in_order_of_index() && self.selection.is_everything()
    }
}

fn order(object: &Object, sort: &[(String, bool)]) -> Result<Vec<(usize, bool)>> {
    let mut order: Vec<(usize, bool)> = Vec::with_capacity(sort.len() + 1);
    for (name, descends) in sort {
        let index = column_index(object, name)?;
        if matches!(object.columns[index].kind, FieldType::Json | FieldType::MultiEnum) {
            return Err(Error::invalid_request(format!(
                "`{name}` is {}, which has no order.",
                object.columns[index].kind.name()
            )));
        }
        // A column that is named twice, or after `id`, cannot change the order.
        if !order.iter().any(|(seen, _)| *seen == index || object.columns[*seen].name == system::ID) {
            order.push((index, *descends));
        }
    }
    if order.is_empty()
        && let Some(created_at) = object.column_index(system::CREATED_AT)
    {
        order.push((created_at, true));
    }
    let id = column_index(object, system::ID)?;
    if !order.iter().any(|(index, _)| *index == id) {
        order.push((id, order.first().is_some_and(|(_, descends)| *descends)));
    }
    Ok(order)
}

fn projection(object: &Object, select: Option<&[String]>) -> Result<Vec<usize>> {
    let Some(names) = select.filter(|names| !names.is_empty()) else {
        return Ok((0..object.columns.len()).collect());
    };
    selected(object, names)
}

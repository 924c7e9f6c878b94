//! Pages by cursors: their parameters, positions in the order of a list, and the ranges of rows beyond a position.
//!
//! A position is a row's values of the sort keys. The last key is `id`, so no two rows have the same position. The row itself need
//! not exist any more, so insertions and deletions neither repeat nor skip other rows.
//!
//! **Ranges.** The rows beyond a position are divided so that each range is one run of an index. After the position `(3, x)` in the
//! order of `priority` and `id`, ascending, the ranges are: `(priority, id) > (3, x)`, and `priority IS NULL`. With a key in another
//! direction, or with one that can be null, more ranges are needed. One statement reads all ranges to which no index leads.

use std::sync::Arc;

use blockbase_schema::{Error, Object, Result, Value};

use crate::filter::{Filter, FilterValue};
use crate::operator::Operator;
use crate::parameter::ListParameter;

/// A parameter of cursors, as it was sent.
#[derive(Clone, Debug)]
pub struct CursorParameter {
    pub parameter: ListParameter,
    pub text: String,
    /// Whether it comes from a query string. If the object has a field with this name, it is then a filter on that field.
    pub is_of_query: bool,
}

impl CursorParameter {
    /// Whether it is a filter on a field of the object.
    pub fn is_filter(&self, object: &Object) -> bool {
        self.is_of_query && self.parameter.yields_to_field() && object.column_index(self.parameter.name()).is_some()
    }

    /// The parameter as a filter.
    pub fn filter(&self) -> Filter {
        let (field, value) = (self.parameter.name().to_owned(), FilterValue::Text(self.text.clone()));
        Filter { field, operator: Operator::DEFAULT, value }
    }
}

/// The end of a range of rows from which a page is taken.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum End {
    First,
    Last,
}

/// The records of a page whose cursors the answer has.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CursorsOf {
    None,
    /// The first and the last record.
    Ends,
    Each,
}

/// A connection of GraphQL: a page by cursors that needs no parameter of cursors.
#[derive(Clone, Copy, Debug)]
pub struct ConnectionPaging {
    pub end: End,
    pub cursors_of: CursorsOf,
}

/// A page by cursors, as a request asks for it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CursorPaging {
    /// The cursor after which the page begins. `None` for the beginning of the list.
    pub after: Option<String>,
    /// The cursor before which the page ends. `None` for the end of the list.
    pub before: Option<String>,
    /// The end of the range from which the page is taken.
    pub end: End,
    pub cursors_of: CursorsOf,
}

/// Separates filters on fields with names such as `after` from the parameters of cursors. The page is `None` without such parameters.
///
/// `page_by` is the parameter that selects the page by its number.
///
/// # Errors
/// `invalid_request` for a parameter that occurs twice, for an invalid `cursor`, and for a page that is also selected by its number.
pub(crate) fn split(
    object: &Object,
    sent: &[CursorParameter],
    page_by: Option<ListParameter>,
    connection: Option<ConnectionPaging>,
) -> Result<(Vec<Filter>, Option<CursorPaging>)> {
    let (filters, others): (Vec<&CursorParameter>, Vec<_>) = sent.iter().partition(|sent| sent.is_filter(object));
    let filters = filters.into_iter().map(CursorParameter::filter);
    let (mut is_on, mut after, mut before) = (connection.is_some(), None, None);
    for (place, sent) in others.iter().enumerate() {
        let name = sent.parameter.name();
        if others[..place].iter().any(|known| known.parameter == sent.parameter) {
            return Err(Error::invalid_request(format!("`{name}` occurs twice.")).with_field(name));
        }
        match sent.parameter {
            ListParameter::After => after = Some(sent.text.as_str()),
            ListParameter::Before => before = Some(sent.text.as_str()),
            _ => is_on |= is_switched_on(name, &sent.text)?,
        }
    }
    if !is_on && after.is_none() && before.is_none() {
        return Ok((filters.collect(), None));
    }
    if let Some(parameter) = page_by {
        let (name, after, before) = (parameter.name(), ListParameter::After.name(), ListParameter::Before.name());
        let message = format!("A page by cursors takes no `{name}`. It begins after `{after}`, or ends before `{before}`.");
        return Err(Error::invalid_request(message).with_field(name));
    }
    let end = if before.is_some() && after.is_none() { End::Last } else { End::First };
    // An empty text is the beginning or the end of the list.
    let cursor = |text: Option<&str>| text.filter(|text| !text.is_empty()).map(str::to_owned);
    let paging = CursorPaging {
        after: cursor(after),
        before: cursor(before),
        end: connection.map_or(end, |connection| connection.end),
        cursors_of: connection.map_or(CursorsOf::Ends, |connection| connection.cursors_of),
    };
    Ok((filters.collect(), Some(paging)))
}

fn is_switched_on(name: &str, text: &str) -> Result<bool> {
    match text {
        "" | "true" => Ok(true),
        "false" => Ok(false),
        _ => {
            let (after, before) = (ListParameter::After.name(), ListParameter::Before.name());
            let message =
                format!("`{name}` switches to pages by cursors and takes no cursor. Send it as `{after}` or `{before}`.");
            Err(Error::invalid_request(message).with_field(name))
        }
    }
}

/// A row's values of the sort keys of a list.
#[derive(Clone, Debug, PartialEq)]
pub struct Position(pub(crate) Vec<Value>);

/// A JSON array of the sort keys' values, which are JSON already.
pub fn position_json<'v>(values: impl Iterator<Item = &'v [u8]>) -> Vec<u8> {
    let mut out = vec![b'['];
    for (place, value) in values.enumerate() {
        if place > 0 {
            out.push(b',');
        }
        out.extend_from_slice(value);
    }
    out.push(b']');
    out
}

/// A run of rows beyond a position. The first `equal` keys have the position's values.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Range {
    pub(crate) equal: usize,
    pub(crate) next: Next,
}

/// The values of the key after the equal ones.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Next {
    /// This number of keys, compared as one, is beyond the position's values.
    Beyond {
        keys: usize,
        or_equal: bool,
    },
    Null,
    NotNull,
}

/// A key of an order.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Key {
    pub(crate) descends: bool,
    /// Whether its values can be null.
    pub(crate) is_nullable: bool,
}

/// The rows beyond a position, in the direction of the keys. The nearest range is the first one. The last key is never null.
pub(crate) fn ranges(keys: &[Key], values: &[Value], or_equal: bool) -> Vec<Range> {
    let mut ranges = Vec::new();
    // The keys that are compared as one: from `begins` to before `ends`.
    let mut open: Option<(usize, usize)> = None;
    let close = |ranges: &mut Vec<Range>, open: &mut Option<(usize, usize)>| {
        if let Some((begins, ends)) = open.take() {
            let or_equal = or_equal && ends == keys.len();
            ranges.push(Range { equal: begins, next: Next::Beyond { keys: ends - begins, or_equal } });
        }
    };
    for (place, key) in keys.iter().enumerate().rev() {
        if values.get(place).is_none_or(|value| *value == Value::Null) {
            close(&mut ranges, &mut open);
            // In descending order, the values follow after the nulls.
            if key.descends {
                ranges.push(Range { equal: place, next: Next::NotNull });
            }
            continue;
        }
        // Keys are compared as one if all have the same direction, and if only the first one can be null.
        let fits = |other: &Key| other.descends == key.descends && !other.is_nullable;
        match open {
            Some((begins, ends)) if keys[begins..ends].iter().all(fits) => open = Some((place, ends)),
            _ => {
                close(&mut ranges, &mut open);
                open = Some((place, place + 1));
            }
        }
        // In ascending order, the nulls follow after the values.
        if key.is_nullable && !key.descends {
            close(&mut ranges, &mut open);
            ranges.push(Range { equal: place, next: Next::Null });
        }
    }
    close(&mut ranges, &mut open);
    ranges
}

/// A part of a list that one statement reads.
#[derive(Clone, Debug, Default)]
pub struct Part {
    /// Whether the rows are read against the list's order.
    pub(crate) is_reversed: bool,
    /// The rows that belong to the part: those in any of these ranges. `None` for all rows.
    pub(crate) beyond: Option<(Arc<Position>, Vec<Range>)>,
    /// The number of keys whose order an index has within the part. 0 if no index leads to its rows.
    pub(crate) led_keys: usize,
}

impl Part {
    /// The only range of the part.
    pub(crate) fn range(&self) -> Option<Range> {
        match &self.beyond {
            Some((_, ranges)) if ranges.len() == 1 => ranges.first().copied(),
            _ => None,
        }
    }

    /// The number of keys that have the position's values in all rows of the part.
    pub(crate) fn equal_keys(&self) -> usize {
        let ranges = self.beyond.iter().flat_map(|(_, ranges)| ranges);
        ranges.map(|range| range.equal).min().unwrap_or(0)
    }

    /// The number of keys that have the same value in all rows of the part.
    pub(crate) fn constant_keys(&self) -> usize {
        self.range().map_or_else(|| self.equal_keys(), Range::constant_keys)
    }
}

impl Range {
    /// The number of keys that have the same value in all rows of the range.
    pub(crate) fn constant_keys(self) -> usize {
        self.equal + usize::from(self.next == Next::Null)
    }
}

#[cfg(test)]
mod tests {
    use blockbase_schema::{Column, ColumnType, FieldType};

    use super::*;

    const ID: Key = Key { descends: false, is_nullable: false };

    fn key(descends: bool, is_nullable: bool) -> Key {
        Key { descends, is_nullable }
    }

    fn beyond(equal: usize, keys: usize) -> Range {
        Range { equal, next: Next::Beyond { keys, or_equal: false } }
    }

    fn range(equal: usize, next: Next) -> Range {
        Range { equal, next }
    }

    const ONE: Value = Value::Integer(1);

    #[test]
    fn keys_of_one_direction_are_compared_as_one() {
        assert_eq!(ranges(&[ID], &[ONE], false), [beyond(0, 1)]);
        assert_eq!(ranges(&[key(false, false), ID], &[ONE, ONE], false), [beyond(0, 2)]);
        let descending = [key(true, true), key(true, false), key(true, false)];
        assert_eq!(ranges(&descending, &[ONE, ONE, ONE], false), [beyond(0, 3)]);
        assert_eq!(ranges(&[key(true, false), ID], &[ONE, ONE], false), [beyond(1, 1), beyond(0, 1)]);
        // The nulls of the second key are between its values and the next value of the first key.
        let nulls_inside = [key(false, false), key(false, true), ID];
        let expected = [beyond(1, 2), range(1, Next::Null), beyond(0, 1)];
        assert_eq!(ranges(&nulls_inside, &[ONE, ONE, ONE], false), expected);
    }

    #[test]
    fn nulls_come_last_in_ascending_and_first_in_descending_order() {
        let ascending = [key(false, true), ID];
        assert_eq!(ranges(&ascending, &[ONE, ONE], false), [beyond(0, 2), range(0, Next::Null)]);
        assert_eq!(ranges(&ascending, &[Value::Null, ONE], false), [beyond(1, 1)]);
        let descending = [key(true, true), key(true, false)];
        assert_eq!(ranges(&descending, &[ONE, ONE], false), [beyond(0, 2)]);
        assert_eq!(ranges(&descending, &[Value::Null, ONE], false), [beyond(1, 1), range(0, Next::NotNull)]);
    }

    /// A row's key of the given value, where `None` is null.
    fn value(number: Option<i64>) -> Value {
        number.map_or(Value::Null, Value::Integer)
    }

    /// Whether a row is in a range, in the same way as in SQL.
    fn holds(range: Range, keys: &[Key], row: &[Option<i64>], position: &[Option<i64>]) -> bool {
        let place = range.equal;
        row[..place] == position[..place]
            && match range.next {
                Next::Null => row[place].is_none(),
                Next::NotNull => row[place].is_some(),
                Next::Beyond { keys: count, or_equal } => {
                    let (row, position) = (&row[place..place + count], &position[place..place + count]);
                    let has_null = row.iter().zip(position).find(|(one, two)| one != two).is_some_and(|(one, _)| one.is_none());
                    let is_beyond = if keys[place].descends { row < position } else { row > position };
                    !has_null && (is_beyond || (or_equal && row == position))
                }
            }
    }

    #[test]
    fn each_row_beyond_a_position_is_in_one_range_and_ranges_are_in_order() {
        let mut checked = 0;
        for directions in 0..8 {
            for nullable in [[false, false], [false, true], [true, false], [true, true]] {
                let descends = |place: u8| directions & (1 << place) != 0;
                let keys = [key(descends(0), nullable[0]), key(descends(1), nullable[1]), key(descends(2), false)];
                let cells = |is_nullable: bool| {
                    let null = is_nullable.then_some(None);
                    (0..2).map(Some).chain(null).collect::<Vec<Option<i64>>>()
                };
                let mut rows: Vec<[Option<i64>; 3]> = Vec::new();
                for first in cells(nullable[0]) {
                    for second in cells(nullable[1]) {
                        rows.extend((0..2).map(|id| [first, second, Some(id)]));
                    }
                }
                rows.sort_by(|one, two| {
                    let orders = one.iter().zip(two).zip(&keys).map(|((one, two), key)| {
                        let order = (one.is_none(), one).cmp(&(two.is_none(), two));
                        if key.descends { order.reverse() } else { order }
                    });
                    orders.fold(std::cmp::Ordering::Equal, std::cmp::Ordering::then)
                });
                for (place, position) in rows.iter().enumerate() {
                    for or_equal in [false, true] {
                        let ranges = ranges(&keys, &position.map(value), or_equal);
                        let found: Vec<[Option<i64>; 3]> = ranges
                            .iter()
                            .flat_map(|range| {
                                rows.iter().filter(move |row| holds(*range, &keys, &row[..], &position[..])).copied()
                            })
                            .collect();
                        assert_eq!(found, rows[place + usize::from(!or_equal)..], "{keys:?} {position:?} {ranges:?}");
                        checked += 1;
                    }
                }
            }
        }
        assert!(checked > 500, "{checked}");
    }

    fn parameter(parameter: ListParameter, text: &str) -> CursorParameter {
        CursorParameter { parameter, text: text.to_owned(), is_of_query: true }
    }

    #[test]
    fn a_field_with_the_name_of_a_parameter_keeps_its_filter() {
        let field = |name: &str| Column::of_result(name.to_owned(), FieldType::Text, ColumnType::Text);
        let (plain, named) = (Object::of_result("a", vec![field("a")]), Object::of_result("b", vec![field("after")]));
        let sent = [parameter(ListParameter::After, "x")];
        let (filters, paging) = split(&plain, &sent, None, None).expect("a page");
        assert_eq!((filters.len(), paging.and_then(|paging| paging.after).as_deref()), (0, Some("x")));
        let (filters, paging) = split(&named, &sent, Some(ListParameter::Page), None).expect("a filter");
        assert_eq!((filters[0].field.as_str(), paging), ("after", None));
        let of_json = [CursorParameter { is_of_query: false, ..parameter(ListParameter::After, "x") }];
        assert!(split(&named, &of_json, None, None).expect("a page").1.is_some());
    }

    #[test]
    fn pages_are_asked_for_by_either_end() {
        let object = Object::of_result("a", Vec::new());
        let asked = |sent: &[(ListParameter, &str)]| {
            let sent: Vec<CursorParameter> = sent.iter().map(|(name, text)| parameter(*name, text)).collect();
            split(&object, &sent, None, None).map(|(_, paging)| paging).map_err(|error| error.field)
        };
        use ListParameter::{After, Before, Cursor};
        assert_eq!(asked(&[]), Ok(None));
        assert_eq!(asked(&[(Cursor, "false")]), Ok(None));
        let page = |after: Option<&str>, before: Option<&str>, end| {
            let (after, before) = (after.map(str::to_owned), before.map(str::to_owned));
            Ok(Some(CursorPaging { after, before, end, cursors_of: CursorsOf::Ends }))
        };
        assert_eq!(asked(&[(Cursor, "")]), page(None, None, End::First));
        assert_eq!(asked(&[(Cursor, "true"), (After, "x")]), page(Some("x"), None, End::First));
        assert_eq!(asked(&[(Before, "x")]), page(None, Some("x"), End::Last));
        assert_eq!(asked(&[(Before, "")]), page(None, None, End::Last));
        assert_eq!(asked(&[(After, "x"), (Before, "y")]), page(Some("x"), Some("y"), End::First));
        assert_eq!(asked(&[(Cursor, "x")]), Err(Some("cursor".to_owned())));
        assert_eq!(asked(&[(After, "x"), (After, "y")]), Err(Some("after".to_owned())));
        let paged = split(&object, &[parameter(Cursor, "")], Some(ListParameter::Offset), None);
        assert_eq!(paged.map(|_| ()).map_err(|error| error.field), Err(Some("offset".to_owned())));
    }
}

//! Pages by cursors: their parameters, positions in the order of a list, and the ranges of rows beyond a position.
//!
//! A position is a row's values of the sort keys. The last key is `id`, so no two rows have the same position. The row itself need
//! not exist any more, so insertions and deletions neither repeat nor skip other rows.
//!
//! **Ranges.** The rows beyond a position are divided so that each range is one run of an index. After the position `(3, x)` in the
//! order of `priority` and `id`, ascending, the ranges are: `(priority, id) > (3, x)`, and `priority IS NULL`. With a key in another
//! direction, or with one that can be null, more ranges are needed. One statement reads all ranges to which no index leads.
//!
//! **Spans.** Between two positions, at most one range goes past the second position. Its rows end at the range in front of this
//! position, so a span can have a range on each side. It is still one run of an index.

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

impl End {
    pub fn other(self) -> End {
        match self {
            End::First => End::Last,
            End::Last => End::First,
        }
    }
}

/// The records of a page whose cursors the answer has.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CursorsOf {
    None,
    /// The first and the last record.
    Ends,
    Each,
}

/// The sides of a page of which the answer says whether there are records. The server does not look at the others.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PageFlags {
    pub has_next_page: bool,
    pub has_previous_page: bool,
}

impl PageFlags {
    pub const BOTH: PageFlags = PageFlags { has_next_page: true, has_previous_page: true };

    /// The flag of the records in the direction in which rows are read from `end`.
    pub fn ahead(self, end: End) -> bool {
        match end {
            End::First => self.has_next_page,
            End::Last => self.has_previous_page,
        }
    }

    /// The flag of the records in the other direction.
    pub fn behind(self, end: End) -> bool {
        self.ahead(end.other())
    }
}

/// A connection of GraphQL: a page by cursors that needs no parameter of cursors.
#[derive(Clone, Copy, Debug)]
pub struct ConnectionPaging {
    pub end: End,
    pub cursors_of: CursorsOf,
    pub flags: PageFlags,
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
    pub flags: PageFlags,
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
        flags: connection.map_or(PageFlags::BOTH, |connection| connection.flags),
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

impl Key {
    fn reversed(self) -> Key {
        Key { descends: !self.descends, ..self }
    }
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

/// Rows that follow each other in the order of a list. The first position is the one from which rows are read, and the second
/// one is that at which reading stops.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Span {
    /// A range beyond the first position.
    Beyond(Range),
    /// The rows that a range beyond the first position and a range in front of the second one have in common.
    Between(Range, Range),
    /// A range in front of the second position.
    Before(Range),
}

/// All rows beyond a position, in the direction of the keys. The nearest span is the first one.
pub(crate) fn spans_beyond(keys: &[Key], from: &[Value], or_equal: bool) -> Vec<Span> {
    ranges(keys, from, or_equal).into_iter().map(Span::Beyond).collect()
}

/// All rows in front of a position, in the direction of the keys. The nearest span is the last one.
pub(crate) fn spans_before(keys: &[Key], until: &[Value]) -> Vec<Span> {
    let reversed: Vec<Key> = keys.iter().copied().map(Key::reversed).collect();
    ranges(&reversed, until, false).into_iter().rev().map(Span::Before).collect()
}

/// The rows between two positions, in the direction of the keys. The second position is beyond the first one, and `differs` is
/// the first key of which they have different values.
pub(crate) fn spans_between(keys: &[Key], from: &[Value], until: &[Value], differs: usize) -> Vec<Span> {
    let (beyond, before) = (spans_beyond(keys, from, false), spans_before(keys, until));
    // Up to this key, the rows of these ranges have the values of one position. So none of them is past the other position.
    let is_inside = |span: &&Span| span.equal_keys() > differs;
    // The others are past the other position, except for one range of each. These two contain the rows with values between the
    // two.
    let across = |spans: &[Span]| spans.iter().flat_map(|span| span.ranges()).find(|range| range.tests_value_of(differs));
    let middle = across(&beyond).zip(across(&before)).map(|(beyond, before)| Span::Between(beyond, before));
    beyond.iter().filter(is_inside).copied().chain(middle).chain(before.iter().filter(is_inside).copied()).collect()
}

impl Span {
    /// The range beyond the first position, and the range in front of the second one.
    pub(crate) fn sides(self) -> (Option<Range>, Option<Range>) {
        match self {
            Span::Beyond(range) => (Some(range), None),
            Span::Between(beyond, before) => (Some(beyond), Some(before)),
            Span::Before(range) => (None, Some(range)),
        }
    }

    fn ranges(self) -> impl Iterator<Item = Range> {
        let (beyond, before) = self.sides();
        beyond.into_iter().chain(before)
    }

    /// The number of keys that have a position's values in all rows of the span. If it has two ranges, both positions have the
    /// same values of these keys.
    pub(crate) fn equal_keys(self) -> usize {
        self.ranges().map(|range| range.equal).max().unwrap_or(0)
    }

    /// Whether the key after the equal ones is null in all rows of the span.
    pub(crate) fn has_null(self) -> bool {
        self.ranges().any(|range| range.next == Next::Null)
    }

    /// The number of keys that have the same value in all rows of the span.
    pub(crate) fn constant_keys(self) -> usize {
        self.equal_keys() + usize::from(self.has_null())
    }
}

/// A part of a list that one statement reads.
#[derive(Clone, Debug, Default)]
pub struct Part {
    /// Whether the rows are read against the list's order.
    pub(crate) is_reversed: bool,
    /// The rows that belong to the part: those in any of these spans. Without spans, all rows.
    pub(crate) spans: Vec<Span>,
    /// The position beyond which the rows are, if a span refers to it.
    pub(crate) from: Option<Arc<Position>>,
    /// The position in front of which the rows are, if a span refers to it.
    pub(crate) until: Option<Arc<Position>>,
    /// The number of keys whose order an index has within the part. 0 if no index leads to its rows.
    pub(crate) led_keys: usize,
}

impl Part {
    /// The only span of the part.
    pub(crate) fn span(&self) -> Option<Span> {
        match self.spans.as_slice() {
            [span] => Some(*span),
            _ => None,
        }
    }

    /// The number of keys that have the same values in all rows of the part, those of either position.
    pub(crate) fn equal_keys(&self) -> usize {
        self.spans.iter().map(|span| span.equal_keys()).min().unwrap_or(0)
    }

    /// The number of keys that have the same value in all rows of the part.
    pub(crate) fn constant_keys(&self) -> usize {
        self.span().map_or_else(|| self.equal_keys(), Span::constant_keys)
    }
}

impl Range {
    /// Whether its rows have different values of a key, and none of them is null. Then the range tests these values.
    fn tests_value_of(self, key: usize) -> bool {
        match self.next {
            Next::Beyond { keys, .. } => (self.equal..self.equal + keys).contains(&key),
            Next::NotNull => self.equal == key,
            Next::Null => false,
        }
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
        for (keys, rows) in orders() {
            for (place, position) in rows.iter().enumerate() {
                for or_equal in [false, true] {
                    let ranges = ranges(&keys, &position.map(value), or_equal);
                    let found: Vec<Row> = ranges
                        .iter()
                        .flat_map(|range| rows.iter().filter(move |row| holds(*range, &keys, &row[..], &position[..])).copied())
                        .collect();
                    assert_eq!(found, rows[place + usize::from(!or_equal)..], "{keys:?} {position:?} {ranges:?}");
                    checked += 1;
                }
            }
        }
        assert!(checked > 500, "{checked}");
    }

    /// Whether a row is in a span between two positions.
    fn is_in(span: Span, keys: &[Key], row: &[Option<i64>], from: &[Option<i64>], until: &[Option<i64>]) -> bool {
        let reversed: Vec<Key> = keys.iter().copied().map(Key::reversed).collect();
        let (beyond, before) = span.sides();
        let equal = span.equal_keys();
        beyond.is_none_or(|range| holds(range, keys, row, from) && row[..equal] == from[..equal])
            && before.is_none_or(|range| holds(range, &reversed, row, until) && row[..equal] == until[..equal])
    }

    /// A row's values of three keys.
    type Row = [Option<i64>; 3];

    /// All orders of three keys, each with rows of all values, in their order.
    fn orders() -> Vec<([Key; 3], Vec<Row>)> {
        let mut orders = Vec::new();
        for directions in 0..8 {
            for nullable in [[false, false], [false, true], [true, false], [true, true]] {
                let descends = |place: u8| directions & (1 << place) != 0;
                let keys = [key(descends(0), nullable[0]), key(descends(1), nullable[1]), key(descends(2), false)];
                let cells = |is_nullable: bool| {
                    let null = is_nullable.then_some(None);
                    (0..3).map(Some).chain(null).collect::<Vec<Option<i64>>>()
                };
                let mut rows: Vec<Row> = Vec::new();
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
                orders.push((keys, rows));
            }
        }
        orders
    }

    #[test]
    fn each_row_between_two_positions_is_in_one_span_and_spans_are_in_order() {
        let mut checked = 0;
        for (keys, rows) in orders() {
            for (begin, from) in rows.iter().enumerate() {
                for (end, until) in rows.iter().enumerate().skip(begin + 1) {
                    let differs = from.iter().zip(until).position(|(one, two)| one != two).expect("different positions");
                    let spans = spans_between(&keys, &from.map(value), &until.map(value), differs);
                    let found: Vec<Row> = spans
                        .iter()
                        .flat_map(|span| {
                            rows.iter().filter(move |row| is_in(*span, &keys, &row[..], &from[..], &until[..])).copied()
                        })
                        .collect();
                    assert_eq!(found, rows[begin + 1..end], "{keys:?} {from:?} {until:?} {spans:?}");
                    checked += 1;
                }
            }
        }
        assert!(checked > 5000, "{checked}");
    }

    #[test]
    fn each_row_in_front_of_a_position_is_in_one_span_and_spans_are_in_order() {
        for (keys, rows) in orders() {
            for (end, until) in rows.iter().enumerate() {
                let spans = spans_before(&keys, &until.map(value));
                let found: Vec<Row> = spans
                    .iter()
                    .flat_map(|span| rows.iter().filter(move |row| is_in(*span, &keys, &row[..], &[], &until[..])).copied())
                    .collect();
                assert_eq!(found, rows[..end], "{keys:?} {until:?} {spans:?}");
            }
        }
    }

    #[test]
    fn one_run_of_an_index_ends_at_the_second_position() {
        let keys = [key(false, false), ID];
        let (three, seven) = ([Value::Integer(3), ONE], [Value::Integer(7), ONE]);
        assert_eq!(spans_between(&keys, &three, &seven, 0), [Span::Between(beyond(0, 2), beyond(0, 2))]);
        // With the same value of the first key, the second one alone decides, if the two are not compared as one.
        let mixed = [key(true, false), ID];
        let two = [Value::Integer(3), Value::Integer(2)];
        assert_eq!(spans_between(&mixed, &three, &two, 1), [Span::Between(beyond(1, 1), beyond(1, 1))]);
        let expected = [Span::Beyond(beyond(1, 1)), Span::Between(beyond(0, 1), beyond(0, 1)), Span::Before(beyond(1, 1))];
        assert_eq!(spans_between(&mixed, &seven, &three, 0), expected);
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
            Ok(Some(CursorPaging { after, before, end, cursors_of: CursorsOf::Ends, flags: PageFlags::BOTH }))
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

//! Aggregates of groups.
//!
//! The innermost query makes the groups and computes their functions. The query around it turns local periods into instants, and the
//! values into forms that can be compared. Both only run once for each group. The condition on groups, their order, their window
//! and their number follow.
//!
//! | column | value |
//! |---|---|
//! | `svc_k0` | the key of a group: a value, or the begin of a period. On Postgres it is in local time |
//! | `svc_o0` | on Postgres, the offset of an hour's local time. An hour that occurs twice is two groups |
//! | `svc_n0`, `svc_a0` | the number of values of a function, and its result |
//! | `svc_v0` | the result as text |
//! | `svc_c0` | a column of the plan's result in the form in which it is compared |

use std::collections::BTreeSet;

use blockbase_schema::{Column, ColumnType, FieldType, Object};

use super::param::{Param, Statement};
use super::read::aggregate_value;
use super::writer::{Place, Writer};
use crate::aggregate::{Computed, Function, GroupField, GroupsPlan};
use crate::dialect::{Dialect, quote};
use crate::period::Period;
use crate::zone::{CYCLE_BEGINS_S, CYCLE_ENDS_S, CYCLE_S, Zone};

/// 2500-01-01, where the table of a zone ends.
const CYCLE_ENDS: &str = "2500-01-01 00:00:00";
/// 2^1024 - 2^970. As doubles, this number and all greater ones are infinite. Postgres refuses to convert them.
const INFINITE: &str = "17976931348623158079372897140530341507993413271003782693617377898044496829276475094664901797758720709633028641\
                        66928879109465555478519404026306574886715058206819089020007083836762738548458177115317644757302700698555713669\
                        59622842914819860834936475292719074168444365510704342711559699508093042880177904174497792";
/// Sums below this one count as zero in comparisons. Postgres refuses to divide them if the result is no double.
pub const TINY: &str = "1e-290";

/// The columns that the statement of [`groups`] returns: the fields of the groups, two columns for each function (the number of
/// values and the result as text), one that is null if there is no group, and the number of all groups if the plan counts them.
pub fn group_columns(plan: &GroupsPlan) -> Vec<Column> {
    let integer = |name: String| Column::of_result(name, FieldType::BigInteger, ColumnType::BigInteger);
    let mut columns: Vec<Column> = plan.result.columns.iter().take(plan.fields.len()).cloned().collect();
    for place in 0..plan.functions.len() {
        columns.push(integer(format!("svc_n{place}")));
        columns.push(Column::of_result(format!("svc_v{place}"), FieldType::Text, ColumnType::Text));
    }
    columns.push(integer("svc_is".to_owned()));
    if plan.with_count {
        columns.push(integer("svc_total".to_owned()));
    }
    columns
}

/// Returns the groups of a page, in the columns of [`group_columns`]. If the plan counts the groups, there is at least one row, and
/// each row has the number of all groups. Otherwise there may be one group more, which shows that there is a next page.
pub fn groups(dialect: Dialect, plan: &GroupsPlan) -> Statement {
    let mut writer = Writer::of_page(dialect, &plan.object, plan.paging);
    let source = writer.source(&plan.object, &plan.selection.scope, None);
    let tests = writer.selection_tests(&plan.object, &plan.selection);
    let tests = if tests.is_empty() { String::new() } else { format!(" WHERE {}", tests.join(" AND ")) };
    let mut compared: BTreeSet<usize> = (0..plan.fields.len()).chain(plan.order.iter().map(|(index, _)| *index)).collect();
    plan.having.columns_into(&mut compared);
    let parts = Parts::of(&mut writer, plan, &compared);
    let in_order = keys_in_order(dialect, plan);
    let by = match (&in_order, parts.keys) {
        (_, 0) => String::new(),
        (Some(keys), _) => format!(
            " GROUP BY {} ORDER BY {}{}",
            keys.iter().map(|(by, _)| by.as_str()).collect::<Vec<_>>().join(", "),
            keys.iter().map(|(_, order)| order.as_str()).collect::<Vec<_>>().join(", "),
            window(&mut writer, plan)
        ),
        (None, keys) => format!(" GROUP BY {}", (1..=keys).map(|place| place.to_string()).collect::<Vec<_>>().join(", ")),
    };
    let inner = format!("SELECT {} FROM {source}{tests}{by}", parts.inner.join(", "));
    let mut kept = format!("SELECT {} FROM ({inner}) AS svc_grouped", parts.outer.join(", "));
    if !plan.having.is_true() {
        let named = compared_object(plan);
        let test = writer.condition(&Place::of(&named), &plan.having);
        kept = format!("SELECT * FROM ({kept}) AS {} WHERE {test}", quote(named.name()));
    }
    writer.add_table("svc_kept", kept);
    page(&mut writer, plan, in_order.is_some());
    writer.finish()
}

/// The terms of `GROUP BY` and of `ORDER BY` that make the groups in the order of the plan. `None` if the order has other values than
/// those of fields, or if the page needs further groups. An index of the fields leads to the first groups, and the others are not
/// made.
fn keys_in_order(dialect: Dialect, plan: &GroupsPlan) -> Option<Vec<(String, String)>> {
    if plan.with_count || !plan.having.is_true() {
        return None;
    }
    let keys = plan.order.iter().map(|(index, descends)| {
        let field = plan.fields.get(*index).filter(|field| field.period.is_none())?;
        let column = &plan.object.columns[field.column];
        let name = quote(&column.name);
        let order = dialect.order(column, &name, *descends);
        match column.ty {
            // The groups of floats are made by an expression.
            ColumnType::Float => None,
            _ if dialect == Dialect::Postgres || column.required => Some((name, order)),
            // The index of a field that can be null begins with this test. Without such an index, SQLite would sort all rows.
            _ => column.is_sorted.then(|| (format!("({name} IS NULL), {name}"), order)),
        }
    });
    keys.collect::<Option<Vec<_>>>().filter(|keys| !keys.is_empty())
}

/// The window of a page of groups. If the groups are not counted, one more shows that there is a next page.
fn window(writer: &mut Writer, plan: &GroupsPlan) -> String {
    let limit = i64::try_from(plan.paging.limit).unwrap_or(i64::MAX - 1) + i64::from(!plan.with_count);
    let limit = writer.bind(Param::from(limit));
    format!(" LIMIT {limit}{}", writer.offset())
}

/// Selects the page of the groups of `svc_kept`. If `is_page` is true, these are the groups of the page.
fn page(writer: &mut Writer, plan: &GroupsPlan, is_page: bool) {
    let of_page = |name: &String| format!("svc_page.{name}");
    let mut columns: Vec<String> = (0..plan.fields.len()).map(|place| format!("svc_c{place}")).collect();
    columns.extend((0..plan.functions.len()).flat_map(|place| [format!("svc_n{place}"), format!("svc_v{place}")]));
    columns.push("svc_is".to_owned());
    let columns: Vec<String> = columns.iter().map(of_page).collect();
    let order = match plan.order.is_empty() {
        true => String::new(),
        false => {
            let keys = plan.order.iter().map(|(index, descends)| order_key(writer.dialect, plan, *index, *descends));
            format!(" ORDER BY {}", keys.collect::<Vec<_>>().join(", "))
        }
    };
    let page = match is_page {
        true => "svc_kept AS svc_page".to_owned(),
        false => format!("(SELECT * FROM svc_kept{order}{}) AS svc_page", window(writer, plan)),
    };
    let columns = columns.join(", ");
    let select = match plan.with_count {
        true => format!(
            "SELECT {columns}, svc_all.svc_total FROM (SELECT count(*) AS svc_total FROM svc_kept) AS svc_all \
             LEFT JOIN {page} ON 1 = 1{order}"
        ),
        false => format!("SELECT {columns} FROM {page}{order}"),
    };
    writer.sql.push_str(&select);
}

fn order_key(dialect: Dialect, plan: &GroupsPlan, index: usize, descends: bool) -> String {
    let column = &plan.result.columns[index];
    let name = match index.checked_sub(plan.fields.len()) {
        Some(place) if dialect == Dialect::Sqlite && is_exact_sum(plan, plan.functions[place]) => {
            format!("svc_exact_rank(svc_v{place})")
        }
        _ => format!("svc_c{index}"),
    };
    dialect.order(column, &name, descends)
}

fn is_exact_sum(plan: &GroupsPlan, computed: Computed) -> bool {
    let is_float = computed.column.is_some_and(|column| plan.object.columns[column].ty == ColumnType::Float);
    computed.function == Function::Sum && !is_float
}

/// The result as conditions name it in SQL.
fn compared_object(plan: &GroupsPlan) -> Object {
    let column = |(index, column): (usize, &Column)| Column::of_result(format!("svc_c{index}"), column.kind, column.ty);
    Object::of_result("svc_named", plan.result.columns.iter().enumerate().map(column).collect())
}

/// The parts of the two innermost queries.
struct Parts {
    inner: Vec<String>,
    /// The number of columns at the beginning of `inner` that make the groups.
    keys: usize,
    outer: Vec<String>,
}

impl Parts {
    fn of(writer: &mut Writer, plan: &GroupsPlan, compared: &BTreeSet<usize>) -> Parts {
        let mut parts = Parts { inner: Vec::new(), keys: 0, outer: Vec::new() };
        let mut zone = BoundZone { zone: plan.zone.as_deref(), bound: None };
        for (place, field) in plan.fields.iter().enumerate() {
            let key = Key::of(writer, plan, *field, place, &mut zone);
            parts.inner.extend(key.inner);
            parts.outer.push(format!("{} AS svc_c{place}", key.outer));
        }
        parts.keys = parts.inner.len();
        for (place, computed) in plan.functions.iter().enumerate() {
            parts.function(writer.dialect, plan, place, *computed, compared.contains(&plan.function_column(place)));
        }
        parts.outer.push("CAST(1 AS BIGINT) AS svc_is".to_owned());
        parts
    }

    fn function(&mut self, dialect: Dialect, plan: &GroupsPlan, place: usize, computed: Computed, is_compared: bool) {
        let column = computed.column.map(|index| &plan.object.columns[index]);
        let counted = column.map_or_else(|| "*".to_owned(), |column| quote(&column.name));
        self.inner.push(format!("count({counted}) AS svc_n{place}"));
        self.outer.push(format!("svc_n{place}"));
        let mut form = format!("svc_n{place}");
        match column.filter(|_| computed.function != Function::Count) {
            None => {
                let null = if dialect == Dialect::Postgres { "NULL::text" } else { "NULL" };
                self.outer.push(format!("{null} AS svc_v{place}"));
            }
            Some(column) => {
                let value = aggregate_value(dialect, computed.function, &counted, column.ty);
                self.inner.push(format!("{value} AS svc_a{place}"));
                let cast = if dialect == Dialect::Postgres { "::text" } else { "" };
                self.outer.push(format!("svc_a{place}{cast} AS svc_v{place}"));
                form = match computed.function {
                    Function::Min | Function::Max => match dialect {
                        Dialect::Postgres => format!("svc_a{place}"),
                        Dialect::Sqlite => {
                            self.inner.push(format!("{}({counted}) AS svc_m{place}", computed.function.name()));
                            format!("svc_m{place}")
                        }
                    },
                    _ if is_exact_sum(plan, computed) => match dialect {
                        Dialect::Postgres => format!("svc_a{place}"),
                        Dialect::Sqlite => format!("svc_exact_number(svc_a{place})"),
                    },
                    function => double(dialect, place, function == Function::Avg),
                };
            }
        }
        if is_compared {
            self.outer.push(format!("{form} AS svc_c{}", plan.function_column(place)));
        }
    }
}

/// A sum of doubles, or a mean, as the double that the result shows.
fn double(dialect: Dialect, place: usize, is_mean: bool) -> String {
    let divisor = if is_mean { format!("svc_n{place}") } else { "1".to_owned() };
    match dialect {
        Dialect::Sqlite => format!("svc_mean(svc_a{place}, {divisor})"),
        Dialect::Postgres => format!(
            "CASE WHEN svc_a{place} >= {INFINITE} THEN double precision 'Infinity' \
             WHEN svc_a{place} <= -{INFINITE} THEN double precision '-Infinity' \
             WHEN abs(svc_a{place}) < {TINY} THEN double precision '0' \
             ELSE svc_a{place}::double precision / {divisor}::double precision END"
        ),
    }
}

/// The offsets of a zone, bound to a statement of Postgres at their first use.
struct BoundZone<'z> {
    zone: Option<&'z Zone>,
    bound: Option<Offsets>,
}

#[derive(Clone)]
struct Offsets {
    begins: String,
    offsets: String,
    reached: String,
}

impl BoundZone<'_> {
    /// The offsets. `None` if the zone has a single one.
    fn offsets(&mut self, writer: &mut Writer) -> Option<Offsets> {
        let zone = self.zone.filter(|zone| zone.fixed_offset().is_none())?;
        let offsets = self.bound.get_or_insert_with(|| {
            let mut array = |values: &Vec<i64>| format!("({}::bigint[])", writer.bind(Param::IntegerList(values.clone())));
            Offsets { begins: array(&zone.begins), offsets: array(&zone.offsets), reached: array(&zone.reached) }
        });
        Some(offsets.clone())
    }
}

/// A key of the groups.
struct Key {
    inner: Vec<String>,
    outer: String,
}

impl Key {
    fn of(writer: &mut Writer, plan: &GroupsPlan, field: GroupField, place: usize, zone: &mut BoundZone<'_>) -> Key {
        let column = &plan.object.columns[field.column];
        let name = quote(&column.name);
        let whole = |inner: String| Key { inner: vec![format!("{inner} AS svc_k{place}")], outer: format!("svc_k{place}") };
        let Some(period) = field.period else {
            // Both engines put -0 and 0 into one group, and the group then shows 0.
            return whole(if column.ty == ColumnType::Float { format!("{name} + 0.0") } else { name });
        };
        match (writer.dialect, column.ty) {
            (Dialect::Sqlite, ty) => {
                let zone = zone.zone.filter(|_| ty == ColumnType::Datetime);
                let zone = zone.map(|zone| writer.bind(Param::from(zone.name()))).unwrap_or_else(|| "NULL".to_owned());
                whole(format!("svc_period({name}, '{}', {zone})", period.name()))
            }
            (Dialect::Postgres, ColumnType::Date) => whole(format!("date_trunc('{}', {name}::timestamp)::date", period.name())),
            (Dialect::Postgres, _) => match zone.offsets(writer) {
                Some(offsets) => Key::in_zone(&name, place, period, &offsets),
                None => {
                    let offset = zone.zone.and_then(Zone::fixed_offset).unwrap_or(0);
                    let interval = format!("INTERVAL '{offset} seconds'");
                    Key {
                        inner: vec![format!(
                            "date_trunc('{}', ({name} AT TIME ZONE 'UTC') + {interval}) AS svc_k{place}",
                            period.name()
                        )],
                        outer: format!("(svc_k{place} - {interval}) AT TIME ZONE 'UTC'"),
                    }
                }
            },
        }
    }

    /// The same arithmetic as [`Zone::first_instant`].
    fn in_zone(name: &str, place: usize, period: Period, offsets: &Offsets) -> Key {
        let Offsets { begins, offsets, reached } = offsets;
        let seconds = format!("floor(extract(epoch FROM {name}))::bigint");
        let seconds = folded(&seconds, &format!("{name} < TIMESTAMPTZ '{CYCLE_ENDS}+00'"));
        let offset = format!("({offsets})[width_bucket({seconds}, {begins})]");
        let local = format!("({name} AT TIME ZONE 'UTC') + {offset} * INTERVAL '1 second'");
        let mut inner = vec![format!("date_trunc('{}', {local}) AS svc_k{place}", period.name())];
        let local = format!("floor(extract(epoch FROM svc_k{place}))::bigint");
        let instant = match period {
            Period::Hour => {
                inner.push(format!("{offset} AS svc_o{place}"));
                let begin = format!("({local} - svc_o{place})");
                let known = folded(&begin, &format!("{begin} < {CYCLE_ENDS_S}"));
                let span = format!("width_bucket({known}, {begins})");
                // If the offset begins within the hour, the group does too.
                format!(
                    "CASE WHEN ({offsets})[{span}] = svc_o{place} THEN {begin} \
                     ELSE ({begins})[{span} + 1] + {begin} - ({known}) END"
                )
            }
            _ => {
                let known = folded(&local, &format!("svc_k{place} < TIMESTAMP '{CYCLE_ENDS}'"));
                let span = format!("width_bucket({known}, {reached}) + 1");
                format!("greatest(({begins})[{span}], ({known}) - ({offsets})[{span}]) + {local} - ({known})")
            }
        };
        Key { inner, outer: format!("to_timestamp(({instant})::double precision)") }
    }
}

/// A time within the table of the zone that has the same offset. `is_within` tests whether the time itself is within the table.
fn folded(seconds: &str, is_within: &str) -> String {
    format!("CASE WHEN {is_within} THEN {seconds} ELSE {CYCLE_BEGINS_S} + ({seconds} - {CYCLE_BEGINS_S}) % {CYCLE_S} END")
}

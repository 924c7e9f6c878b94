//! The tests of the rows beyond a position, which indexes can use.

use blockbase_schema::{Column, Value};

use super::param::Param;
use super::writer::Writer;
use crate::cursor::{Next, Part, Position, Range, Span};
use crate::dialect::quote;
use crate::plan::ListPlan;

impl Writer {
    /// Makes the statement read only the rows of a part of the list.
    pub(super) fn begin_at(&mut self, plan: &ListPlan, part: &Part) {
        if part.spans.is_empty() {
            return;
        }
        let mut sides = Sides {
            from: part.from.as_deref().map(|position| Seek::new(plan, position, part.is_reversed)),
            until: part.until.as_deref().map(|position| Seek::new(plan, position, !part.is_reversed)),
        };
        // What the spans have in common is outside of OR, so that an index leads to it.
        let equal = part.equal_keys();
        let mut tests = sides.equal(self, equal);
        let of_spans: Vec<String> = part.spans.iter().map(|span| sides.span(self, *span, equal).join(" AND ")).collect();
        match of_spans.as_slice() {
            [test] => tests.push(test.clone()),
            of_spans => {
                let alternatives: Vec<String> = of_spans.iter().map(|test| format!("({test})")).collect();
                tests.push(format!("({})", alternatives.join(" OR ")));
            }
        }
        self.beginning = Some(tests.join(" AND "));
    }
}

/// The positions between which the rows of a part are.
struct Sides<'p> {
    from: Option<Seek<'p>>,
    until: Option<Seek<'p>>,
}

impl Sides<'_> {
    /// The tests for the values that the first `keys` keys have in all rows of the part. Both positions have these values.
    fn equal(&mut self, writer: &mut Writer, keys: usize) -> Vec<String> {
        let side = self.from.as_mut().or(self.until.as_mut());
        side.map_or_else(Vec::new, |seek| seek.equal(writer, 0..keys))
    }

    /// The tests of a span, without those of its first `known` keys.
    fn span(&mut self, writer: &mut Writer, span: Span, known: usize) -> Vec<String> {
        let (beyond, before) = span.sides();
        let mut tests: Vec<String> = Vec::new();
        for (seek, range) in [(self.from.as_mut(), beyond), (self.until.as_mut(), before)] {
            let (Some(seek), Some(range)) = (seek, range) else { continue };
            if tests.is_empty() {
                tests = seek.equal(writer, known..span.equal_keys());
            }
            for test in seek.next_key(writer, range) {
                // The same test leads to the values of a key, from both sides.
                if !tests.contains(&test) {
                    tests.push(test);
                }
            }
        }
        tests
    }
}

/// A position, and the placeholders of those of its values that are bound already.
struct Seek<'p> {
    plan: &'p ListPlan,
    position: &'p Position,
    is_reversed: bool,
    placeholders: Vec<Option<String>>,
}

impl<'p> Seek<'p> {
    fn new(plan: &'p ListPlan, position: &'p Position, is_reversed: bool) -> Seek<'p> {
        Seek { plan, position, is_reversed, placeholders: vec![None; plan.order.len()] }
    }

    /// The column of a key, and its name in SQL.
    fn column(&self, key: usize) -> (&Column, String) {
        let column = &self.plan.object.columns[self.plan.order[key].0];
        (column, quote(&column.name))
    }

    fn is_null(&self, key: usize) -> bool {
        self.position.0[key] == Value::Null
    }

    fn value(&mut self, writer: &mut Writer, key: usize) -> String {
        if let Some(placeholder) = &self.placeholders[key] {
            return placeholder.clone();
        }
        let ty = self.column(key).0.ty;
        let placeholder = writer.bind(Param::of(ty, self.position.0[key].clone()));
        self.placeholders[key] = Some(placeholder.clone());
        placeholder
    }

    /// The tests that lead to the values or to the nulls of a key. On SQLite, its index begins with the test for null.
    fn lead(&self, writer: &Writer, key: usize, is_null: bool) -> Option<String> {
        let (column, name) = self.column(key);
        writer.dialect.index_lead(column, &name, is_null)
    }

    fn null(&self, writer: &Writer, key: usize) -> String {
        let test = format!("{} IS NULL", self.column(key).1);
        match self.lead(writer, key, true) {
            Some(lead) => format!("{lead} AND {test}"),
            None => test,
        }
    }

    /// The tests for the position's values of keys.
    fn equal(&mut self, writer: &mut Writer, keys: std::ops::Range<usize>) -> Vec<String> {
        let mut tests = Vec::with_capacity(keys.len() + 1);
        for key in keys {
            if self.is_null(key) {
                tests.push(self.null(writer, key));
                continue;
            }
            tests.extend(self.lead(writer, key, false));
            let value = self.value(writer, key);
            tests.push(format!("{} = {value}", self.column(key).1));
        }
        tests
    }

    /// The tests of a range on the keys after the equal ones.
    fn next_key(&mut self, writer: &mut Writer, range: Range) -> Vec<String> {
        let mut tests = Vec::with_capacity(2);
        match range.next {
            Next::Null => tests.push(self.null(writer, range.equal)),
            Next::NotNull => {
                let not_null = || format!("{} IS NOT NULL", self.column(range.equal).1);
                tests.push(self.lead(writer, range.equal, false).unwrap_or_else(not_null));
            }
            Next::Beyond { keys, or_equal } => {
                tests.extend(self.lead(writer, range.equal, false));
                let operator = match (self.plan.order[range.equal].1 != self.is_reversed, or_equal) {
                    (false, false) => ">",
                    (false, true) => ">=",
                    (true, false) => "<",
                    (true, true) => "<=",
                };
                let compared = range.equal..range.equal + keys;
                let values: Vec<String> = compared.clone().map(|key| self.value(writer, key)).collect();
                let names: Vec<String> = compared.map(|key| self.column(key).1).collect();
                tests.push(match keys {
                    1 => format!("{} {operator} {}", names[0], values[0]),
                    _ => format!("({}) {operator} ({})", names.join(", "), values.join(", ")),
                });
            }
        }
        tests
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use blockbase_schema::{Object, StoredObject};
    use serde_json::json;

    use crate::access::{Action, Bounds, Decision, Permissions, Reading};
    use crate::condition::Variables;
    use crate::cursor::End;
    use crate::plan::ListPlan;
    use crate::{Dialect, ListRequest, sql};

    const ID: &str = "01a1fd35-a2b2-7324-8e3c-28e87a2e40f9";

    fn plan(sort: &str) -> ListPlan {
        let fields = json!([
            { "name": "rank", "type": "integer", "indexed": true },
            { "name": "code", "type": "text", "required": true, "indexed": true },
            { "name": "state", "type": "text" },
        ]);
        let definition = serde_json::from_value(json!({ "name": "task", "fields": fields })).expect("a definition");
        let stored = StoredObject { id: 1, revision: 1, keys: vec![1, 2, 3], definition, since: Default::default() };
        let object = Arc::new(Object::new(stored, [], |_| None).expect("an object"));
        let access = Permissions::unrestricted().decide("any", Action::Read).and_then(Decision::plain).expect("a right");
        let request = ListRequest::from_parameters([("cursor", ""), ("sort", sort)]).expect("a request");
        let registry = blockbase_schema::Registry::default();
        let reading = Reading {
            registry: &registry,
            decide: &|_| Ok(access.clone()),
            variables: &Variables::default,
            bounds: Bounds::of_request(),
        };
        ListPlan::new(&object, &access, &request, &reading, Vec::new()).expect("a plan")
    }

    /// The text after WHERE of each statement of a page after a position.
    fn written(dialect: Dialect, sort: &str, end: End, position: &str) -> Vec<String> {
        between(dialect, sort, end, Some(position), None)
    }

    /// The text after WHERE of each statement of a page between two positions.
    fn between(dialect: Dialect, sort: &str, end: End, from: Option<&str>, until: Option<&str>) -> Vec<String> {
        let plan = plan(sort);
        let position = |text: &str| plan.position(&text.replace("ID", &format!("\"{ID}\""))).expect("a position");
        let (from, until) = (from.map(position), until.map(position));
        let parts = plan.parts(dialect, end, from.as_ref(), until.as_ref());
        let texts = parts.iter().map(|part| {
            let statement = sql::list_part(dialect, &plan, part, 3, None);
            for number in 1..=statement.params.len() {
                assert!(statement.sql.contains(&dialect.placeholder(number)), "{number} of {}", statement.sql);
            }
            statement.sql.split(" WHERE ").nth(1).unwrap_or_default().split(" LIMIT ").next().unwrap_or_default().to_owned()
        });
        texts.collect()
    }

    #[test]
    fn an_index_leads_to_each_range() {
        let created = r#""created_at" DESC, "id" DESC"#;
        let position = "[\"2026-01-02T03:04:05.000Z\",ID]";
        for (dialect, one, two) in [(Dialect::Sqlite, "?1", "?2"), (Dialect::Postgres, "$1", "$2")] {
            let expected = [format!(r#"("created_at", "id") < ({one}, {two}) ORDER BY {created}"#)];
            assert_eq!(written(dialect, "", End::First, position), expected);
            let expected = [format!(r#"("created_at", "id") > ({one}, {two}) ORDER BY "created_at" ASC, "id" ASC"#)];
            assert_eq!(written(dialect, "", End::Last, position), expected);
        }
        let sqlite = written(Dialect::Sqlite, "rank", End::First, "[3,ID]");
        assert_eq!(
            sqlite,
            [
                r#"("rank" IS NULL) = 0 AND ("rank", "id") > (?1, ?2) ORDER BY "rank" ASC, "id" ASC"#,
                r#"("rank" IS NULL) = 1 AND "rank" IS NULL ORDER BY "id" ASC"#,
            ]
        );
        let postgres = written(Dialect::Postgres, "-rank", End::First, "[null,ID]");
        assert_eq!(
            postgres,
            [
                r#""rank" IS NULL AND "id" < $1 ORDER BY "rank" DESC, "id" DESC"#,
                r#""rank" IS NOT NULL ORDER BY "rank" DESC, "id" DESC"#,
            ]
        );
        let mixed = written(Dialect::Sqlite, "code,-rank", End::First, "[\"x\",null,ID]");
        assert_eq!(
            mixed,
            [
                concat!(
                    r#""code" = ?1 AND ((("rank" IS NULL) = 1 AND "rank" IS NULL AND "id" > ?2) OR (("rank" IS NULL) = 0)) "#,
                    r#"ORDER BY ("rank" IS NULL) DESC, "rank" DESC, "id" ASC"#,
                ),
                r#""code" > ?1 ORDER BY "code" ASC, ("rank" IS NULL) DESC, "rank" DESC, "id" ASC"#,
            ]
        );
    }

    #[test]
    fn without_an_index_one_statement_reads_all_ranges() {
        for (dialect, one, two, order) in [
            (Dialect::Sqlite, "?1", "?2", r#"("state" IS NULL) ASC, "state" ASC, "id" ASC"#),
            (Dialect::Postgres, "$1", "$2", r#""state" ASC, "id" ASC"#),
        ] {
            let expected = format!(r#"((("state", "id") > ({one}, {two})) OR ("state" IS NULL)) ORDER BY {order}"#);
            assert_eq!(written(dialect, "state", End::First, "[\"open\",ID]"), [expected]);
        }
    }

    #[test]
    fn both_positions_bound_a_run_of_an_index() {
        let (three, seven) = ("[3,ID]", "[7,ID]");
        let ascending = r#"ORDER BY "rank" ASC, "id" ASC"#;
        let (is_null, has_value) = (r#"("rank" IS NULL) = 1 AND "rank" IS NULL"#, r#"("rank" IS NULL) = 0"#);
        let tests = r#"("rank", "id") > (?1, ?2) AND ("rank", "id") < (?3, ?4)"#;
        let sqlite = |end, from, until| between(Dialect::Sqlite, "rank", end, from, until);
        assert_eq!(sqlite(End::First, Some(three), Some(seven)), [format!("{has_value} AND {tests} {ascending}")]);
        assert_eq!(
            between(Dialect::Postgres, "rank", End::First, Some(three), Some(seven)),
            [format!("{} {ascending}", tests.replace('?', "$"))]
        );
        let descending = r#"ORDER BY "rank" DESC, "id" DESC"#;
        assert_eq!(
            sqlite(End::Last, Some(seven), Some(three)),
            [format!(r#"{has_value} AND ("rank", "id") < (?1, ?2) AND ("rank", "id") > (?3, ?4) {descending}"#)]
        );
        // The nulls come last, so the second position is in another run.
        assert_eq!(
            sqlite(End::First, Some(three), Some("[null,ID]")),
            [
                format!(r#"{has_value} AND ("rank", "id") > (?1, ?2) {ascending}"#),
                format!(r#"{is_null} AND "id" < ?1 ORDER BY "id" ASC"#),
            ]
        );
        assert_eq!(sqlite(End::First, None, Some(seven)), [format!(r#"{has_value} AND ("rank", "id") < (?1, ?2) {ascending}"#)]);
        // There are no rows in front of a position that are also behind it.
        for (end, from, until) in [(End::First, seven, three), (End::Last, three, seven), (End::First, three, three)] {
            assert_eq!(sqlite(end, Some(from), Some(until)), [""; 0], "{end:?} {from} {until}");
        }
        // Without an index, too, one statement has both positions.
        assert_eq!(
            between(Dialect::Sqlite, "state", End::First, Some("[\"a\",ID]"), Some("[\"b\",ID]")),
            [r#"("state", "id") > (?1, ?2) AND ("state", "id") < (?3, ?4) ORDER BY "state" ASC, "id" ASC"#]
        );
    }

    #[test]
    fn the_rows_next_to_both_positions_have_a_statement_each() {
        let rest = r#"("rank" IS NULL) DESC, "rank" DESC, "id" ASC"#;
        let is_null = r#"("rank" IS NULL) = 1 AND "rank" IS NULL"#;
        let has_value = r#"("rank" IS NULL) = 0"#;
        let next_to = |tests: String| format!(r#""code" = ?1 AND ({tests}) ORDER BY {rest}"#);
        let at_second = format!(r#"({is_null}) OR ({has_value} AND "rank" > ?2) OR ({has_value} AND "rank" = ?2 AND "id" < ?3)"#);
        assert_eq!(
            between(Dialect::Sqlite, "code,-rank", End::First, Some("[\"x\",null,ID]"), Some("[\"z\",3,ID]")),
            [
                next_to(format!(r#"({is_null} AND "id" > ?2) OR ({has_value})"#)),
                format!(r#""code" > ?1 AND "code" < ?2 ORDER BY "code" ASC, {rest}"#),
                next_to(at_second),
            ]
        );
        // With one code, one statement reads all.
        let one = between(Dialect::Sqlite, "code,-rank", End::First, Some("[\"x\",7,ID]"), Some("[\"x\",3,ID]"));
        assert!(matches!(one.as_slice(), [one] if one.starts_with(r#""code" = ?1 AND ("#)), "{one:?}");
    }

    #[test]
    fn the_rows_ahead_begin_with_the_second_position() {
        let plan = plan("rank");
        let position = |rank: &str| plan.position(&format!("[{rank},\"{ID}\"]")).expect("a position");
        let ahead = |end: End, from: Option<&str>, until: &str| {
            let (from, until) = (from.map(position), position(until));
            let parts = plan.parts_ahead(Dialect::Postgres, end, from.as_ref(), &until);
            let tests = parts.iter().map(|part| {
                let sql = sql::part_has_rows(Dialect::Postgres, &plan, part).sql;
                let tests = sql.split(" WHERE ").nth(1).and_then(|rest| rest.split(" ORDER BY ").next());
                tests.unwrap_or_default().to_owned()
            });
            tests.collect::<Vec<_>>()
        };
        let from_seven = [r#"("rank", "id") >= ($1, $2)"#, r#""rank" IS NULL"#];
        assert_eq!(ahead(End::First, Some("3"), "7"), from_seven);
        assert_eq!(ahead(End::First, None, "7"), from_seven);
        assert_eq!(ahead(End::Last, Some("7"), "3"), [r#"("rank", "id") <= ($1, $2)"#]);
        // Nothing is between them.
        assert_eq!(ahead(End::First, Some("7"), "3"), [r#"("rank", "id") > ($1, $2)"#, r#""rank" IS NULL"#]);
    }

    #[test]
    fn the_other_side_of_a_position_includes_its_row() {
        let behind = |sort: &str, position: &str| {
            let plan = plan(sort);
            let position = plan.position(&position.replace("ID", &format!("\"{ID}\""))).expect("a position");
            let parts = plan.parts_behind(Dialect::Sqlite, End::First, &position);
            let texts = parts.iter().map(|part| sql::part_has_rows(Dialect::Sqlite, &plan, part).sql);
            texts.map(|sql| sql.replace(r#"SELECT 1 FROM "task" WHERE "#, "")).collect::<Vec<_>>()
        };
        // The nearest row comes first.
        assert_eq!(
            behind("rank", "[3,ID]"),
            [r#"("rank" IS NULL) = 0 AND ("rank", "id") <= (?1, ?2) ORDER BY "rank" DESC, "id" DESC LIMIT 1"#]
        );
        assert_eq!(
            behind("-code,state", "[\"x\",null,ID]").last().map(String::as_str),
            Some(r#""code" > ?1 ORDER BY "code" ASC LIMIT 1"#)
        );
        // Sorting would take longer than looking for any row.
        assert_eq!(behind("-state", "[\"x\",ID]").len(), 1);
        assert!(!behind("-state", "[\"x\",ID]")[0].contains("ORDER BY"));
    }

    #[test]
    fn positions_fit_the_order_and_are_compared_in_it() {
        let ascending = plan("rank");
        let of = |plan: &ListPlan, rank: &str| plan.position(&format!("[{rank},\"{ID}\"]"));
        for bad in ["[]", "[1]", "[1,null]", "[\"x\",ID]", "[1,ID,2]", "{}", ""] {
            assert_eq!(ascending.position(&bad.replace("ID", &format!("\"{ID}\""))), None, "{bad}");
        }
        let less = std::cmp::Ordering::Less;
        for (sort, one, two) in [("rank", "1", "2"), ("rank", "2", "null"), ("-rank", "2", "1"), ("-rank", "null", "2")] {
            let plan = plan(sort);
            let (one, two) = (of(&plan, one).expect("a position"), of(&plan, two).expect("a position"));
            assert_eq!(plan.difference(&one, &two), Some((0, less)), "{sort}");
            assert_eq!(plan.difference(&one, &one), None, "{sort}");
        }
    }
}

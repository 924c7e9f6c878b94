//! What differs between the two engines in the SQL of data operations.

mod postgres;
mod sqlite;

use blockbase_schema::{Column, Object};

/// The engine that a statement is written for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Dialect {
    Sqlite,
    Postgres,
}

impl Dialect {
    /// `?3` or `$3`.
    pub fn placeholder(self, number: usize) -> String {
        match self {
            Dialect::Sqlite => format!("?{number}"),
            Dialect::Postgres => format!("${number}"),
        }
    }

    /// Null-safe difference.
    pub(crate) fn is_distinct(self) -> &'static str {
        match self {
            Dialect::Sqlite => "IS NOT",
            Dialect::Postgres => "IS DISTINCT FROM",
        }
    }

    /// Whether `text` (SQL) contains the bound term, which is `placeholder`.
    pub(crate) fn contains(self, text: &str, placeholder: &str, fold_case: bool) -> String {
        match self {
            Dialect::Sqlite => sqlite::contains(text, placeholder, fold_case),
            Dialect::Postgres => postgres::contains(text, placeholder, fold_case),
        }
    }

    /// Whether any element of a list column meets `test`, which is SQL over `item`.
    pub(crate) fn any_element(self, column: &str, test: impl Fn(&str) -> String) -> String {
        match self {
            Dialect::Sqlite => format!("EXISTS (SELECT 1 FROM json_each({column}) AS item WHERE {})", test("item.value")),
            Dialect::Postgres => format!("EXISTS (SELECT 1 FROM unnest({column}) AS item WHERE {})", test("item")),
        }
    }

    /// A sort key with nulls last ascending and first descending.
    pub(crate) fn order(self, column: &Column, name: &str, descends: bool) -> String {
        let direction = if descends { "DESC" } else { "ASC" };
        match self {
            // Postgres does so by itself. SQLite sorts nulls first; only where there can be any is it told, as an index serves the plain form alone.
            Dialect::Sqlite if !column.required && descends => format!("{name} {direction} NULLS FIRST"),
            Dialect::Sqlite if !column.required => format!("{name} {direction} NULLS LAST"),
            _ => format!("{name} {direction}"),
        }
    }

    /// The statements that make an object's table with its checks and indexes.
    pub fn create_table(self, object: &Object) -> Vec<String> {
        let column_type: fn(&Column) -> &'static str = match self {
            Dialect::Sqlite => sqlite::column_type,
            Dialect::Postgres => postgres::column_type,
        };
        let mut lines = Vec::new();
        let mut checks = Vec::new();
        if self == Dialect::Sqlite {
            // A rowid that VACUUM keeps, for full-text indexes to point at.
            lines.push("svc_rowid INTEGER PRIMARY KEY".to_owned());
        }
        for column in &object.columns {
            let mut line = format!("{} {}", quote(&column.name), column_type(column));
            match self {
                Dialect::Postgres => line.push_str(&postgres::decimal_suffix(column)),
                Dialect::Sqlite => {}
            }
            if column.required {
                line.push_str(" NOT NULL");
            }
            lines.push(line);
            checks.extend(self.checks(object, column));
        }
        lines.append(&mut checks);
        let table = quote(object.name());
        let mut statements = vec![format!("CREATE TABLE {table} ({})", lines.join(", "))];
        statements.push(format!("CREATE UNIQUE INDEX svc_pk_{} ON {table} (\"id\")", object.id));
        statements.push(format!("CREATE INDEX svc_ix_{}_created ON {table} (\"created_at\", \"id\")", object.id));
        statements.push(format!("CREATE INDEX svc_ix_{}_owner ON {table} (\"created_by\", \"created_at\", \"id\")", object.id));
        for (column, field) in object.columns.iter().skip(1).zip(&object.definition.fields) {
            let name = quote(&column.name);
            if column.unique {
                statements.push(format!("CREATE UNIQUE INDEX svc_uq_{}_{} ON {table} ({name})", object.id, column.key));
            } else if field.indexed {
                statements.push(format!("CREATE INDEX svc_ix_{}_{} ON {table} ({name}, \"id\")", object.id, column.key));
            }
        }
        let group = |columns: &[String]| columns.iter().map(|name| quote(name)).collect::<Vec<_>>().join(", ");
        for (number, columns) in object.definition.constraints.unique_together.iter().enumerate() {
            statements.push(format!("CREATE UNIQUE INDEX svc_uq_{}_g{number} ON {table} ({})", object.id, group(columns)));
        }
        for (number, columns) in object.definition.indexes.iter().enumerate() {
            statements.push(format!("CREATE INDEX svc_ix_{}_g{number} ON {table} ({}, \"id\")", object.id, group(columns)));
        }
        statements
    }

    /// The checks beneath the rules: what concurrent atomic operators must not pass.
    fn checks(self, object: &Object, column: &Column) -> Vec<String> {
        let bound = |bound: bounds::Bound| match self {
            Dialect::Sqlite => bound.scaled,
            Dialect::Postgres => bound.plain,
        };
        let name = quote(&column.name);
        let mut checks = Vec::new();
        if column.kind.is_numeric() {
            // First, as Postgres' own types are: what cannot be stored at all is told before what may not be.
            if self == Dialect::Sqlite {
                checks.push(format!(
                    "CONSTRAINT svc_ck_{}_{}_range CHECK ({})",
                    object.id,
                    column.key,
                    sqlite::range_test(column, &name)
                ));
            }
            for (rule, operator, limit) in [("min", ">=", &column.rules.min), ("max", "<=", &column.rules.max)] {
                if let Some(limit) = limit {
                    let limit = bound(bounds::bound(column.ty, *limit, rule == "min"));
                    checks
                        .push(format!("CONSTRAINT svc_ck_{}_{}_{rule} CHECK ({name} {operator} {limit})", object.id, column.key));
                }
            }
        }
        checks
    }

    /// The statement that drops an object's table.
    pub fn drop_table(self, object: &Object) -> String {
        format!("DROP TABLE {}", quote(object.name()))
    }
}

/// An identifier of the catalogue, quoted. Names hold letters, digits and `_` alone.
pub(crate) fn quote(name: &str) -> String {
    format!("\"{name}\"")
}

/// Bounds as literals of each engine.
mod bounds {
    use blockbase_schema::ColumnType;

    /// A bound as a plain number, and in the scaled integers of SQLite.
    pub(super) struct Bound {
        pub(super) plain: String,
        pub(super) scaled: String,
    }

    pub(super) fn bound(ty: ColumnType, limit: impl std::fmt::Display + Copy, is_min: bool) -> Bound {
        let plain = limit.to_string();
        let scaled = match ty {
            ColumnType::Decimal { scale } => scale_text(&plain, scale, is_min),
            _ => plain.clone(),
        };
        Bound { plain, scaled }
    }

    /// `plain * 10^scale` as a whole number; a bound finer than the scale is drawn inwards.
    fn scale_text(plain: &str, scale: u8, is_min: bool) -> String {
        let (negative, digits) = match plain.strip_prefix('-') {
            Some(digits) => (true, digits),
            None => (false, plain),
        };
        let (whole, fraction) = digits.split_once('.').unwrap_or((digits, ""));
        let scale = usize::from(scale);
        let kept: String = fraction.chars().chain(std::iter::repeat('0')).take(scale).collect();
        let mut number: i128 = format!("{whole}{kept}").parse().unwrap_or(i128::MAX / 4);
        let is_finer = fraction.chars().skip(scale).any(|digit| digit != '0');
        // Cutting digits moved the bound towards zero: outwards for a positive minimum and for a negative maximum.
        if is_finer && is_min != negative {
            number += 1;
        }
        (if negative { -number } else { number }).to_string()
    }

    #[cfg(test)]
    mod tests {
        #[test]
        fn bounds_finer_than_the_scale_are_drawn_inwards() {
            for (plain, is_min, scaled) in [
                ("1.5", true, "150"),
                ("1.234", true, "124"),
                ("1.234", false, "123"),
                ("-1.234", true, "-123"),
                ("-1.234", false, "-124"),
            ] {
                assert_eq!(super::scale_text(plain, 2, is_min), scaled, "{plain}");
            }
        }
    }
}

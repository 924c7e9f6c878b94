//! Random reads.

use serde_json::{Value, json};

use super::Requests;
use crate::promises::conditions::model::End;
use crate::promises::conditions::worlds::{one_in, pick};
use crate::promises::policy_grants::exports::Export;
use crate::promises::policy_grants::groups::Groups;
use crate::promises::policy_grants::reads::{Kind, Read, Standing, Window};
use crate::promises::policy_grants::walks::{Step, Toward};
use crate::promises::policy_grants::worlds::{self, NAMES, USERS};

impl Requests<'_> {
    fn filter(&mut self, object: usize) -> (String, &'static str, Value) {
        let fields = self.fields(object);
        let field = pick(self.random, &fields).clone();
        let rows = &self.state.world.rows[object];
        let known = (!rows.is_empty()).then(|| pick(self.random, rows).values[&field].clone());
        let value = known.filter(|value| !value.is_null());
        let Some(value) = value.filter(|_| !one_in(self.random, 6)) else {
            return (field, *pick(self.random, &["is_null", "is_not_null"]), json!(true));
        };
        let kind = self.state.world.objects[object].columns.iter().find(|column| column.name == field).expect("a column").kind;
        // In REST, this text would mean another value.
        if value == "null" || value.as_str().is_some_and(|text| text.starts_with('$')) {
            return (field, "is_not_null", json!(true));
        }
        let operators: &[&str] = match kind {
            "text" | "slug" => &["eq", "neq", "ilike", "like"],
            "integer" => &["eq", "gte", "lt"],
            _ => &["eq", "neq"],
        };
        (field, *pick(self.random, operators), value)
    }

    fn path(&mut self, object: usize) -> Vec<String> {
        let (mut path, mut object) = (Vec::new(), object);
        for _ in 0..self.random.usize(1..3) {
            let mut ends = self.state.world.ends(object);
            // The specification does not say which fields of an object a key knows if its role and its maker have different
            // rights on the object.
            if self.caller.layers.len() > 1 || !self.sometimes(8) {
                ends.retain(|end| self.state.standing(self.caller, object, end) == Standing::Known);
            }
            let Some(end) = self.random.choice(ends) else { break };
            object = end.object;
            path.push(end.key);
        }
        path
    }

    pub(in crate::promises::policy_grants) fn read(&mut self) -> Read {
        let object = self.object("read");
        let mut read = Read {
            object,
            kind: self.kind(object),
            filters: Vec::new(),
            condition: None,
            search: None,
            sort: Vec::new(),
            select: None,
            expand: Vec::new(),
            window: None,
            counts: true,
        };
        if matches!(read.kind, Kind::List | Kind::Get(_) | Kind::Walk(_)) {
            for _ in 0..*pick(self.random, &[0, 0, 1, 2]) {
                read.expand.push(self.path(object));
            }
            read.expand.retain(|path| !path.is_empty());
        }
        if matches!(read.kind, Kind::Get(_)) {
            return read;
        }
        for _ in 0..*pick(self.random, &[0, 0, 0, 1, 1, 2]) {
            read.filters.push(self.filter(object));
        }
        if self.sometimes(3) {
            read.condition = Some(self.condition(object));
        }
        if self.sometimes(4) {
            read.search = Some(worlds::search_term(self.random));
        }
        if matches!(read.kind, Kind::Aggregate(..)) {
            return read;
        }
        let sortable = match &read.kind {
            Kind::Groups(groups) => groups.keys(),
            _ => self.fields(object),
        };
        read.sort = self.sort(&sortable);
        if !matches!(read.kind, Kind::Groups(_)) && self.sometimes(4) {
            let fields = self.fields(object);
            let count = self.random.usize(1..4).min(fields.len());
            read.select = Some(self.random.choose_multiple(fields, count));
        }
        match read.kind {
            Kind::Export(_) if self.sometimes(3) => {
                read.window = Some(Window::Offset(self.random.usize(..6), self.random.usize(1..8)));
            }
            Kind::List | Kind::Groups(_) => {
                read.window = match self.random.u8(0..4) {
                    0 => Some(Window::Page(self.random.usize(1..4), self.random.usize(1..6))),
                    1 => Some(Window::Offset(self.random.usize(..9), self.random.usize(1..6))),
                    2 => Some(Window::Page(1, 100)),
                    _ => None,
                };
                read.counts = !self.sometimes(10);
            }
            Kind::Walk(_) => read.counts = self.random.bool(),
            _ => {}
        }
        read
    }

    fn kind(&mut self, object: usize) -> Kind {
        match self.random.u8(0..14) {
            0 | 1 => Kind::Get(self.id(object, "read")),
            2 | 3 => self.aggregate(object),
            4..7 => Kind::Groups(self.groups(object)),
            7 => {
                // At most four pages in each direction.
                let pages = self.random.usize(1..5);
                let size = self.state.world.rows[object].len().div_ceil(pages).max(1);
                Kind::Walk(Step { size, toward: Toward::First })
            }
            8 | 9 => Kind::Export(Export { is_csv: self.random.bool(), names: self.names(object) }),
            _ => Kind::List,
        }
    }

    fn aggregate(&mut self, object: usize) -> Kind {
        match self.random.u8(0..3) {
            0 => Kind::Aggregate("count", None),
            1 => {
                let fields = self.fields(object);
                Kind::Aggregate("count", Some(pick(self.random, &fields).clone()))
            }
            // Users have no numbers.
            _ if object == USERS => Kind::Aggregate("count", Some("id".to_owned())),
            _ => {
                let function: &&'static str = pick(self.random, &["sum", "min", "max"]);
                Kind::Aggregate(function, Some("amount".to_owned()))
            }
        }
    }

    /// One or two different keys of a sort, or none.
    fn sort(&mut self, keys: &[String]) -> Vec<String> {
        let mut sort: Vec<String> = Vec::new();
        for _ in 0..*pick(self.random, &[0, 0, 1, 2]) {
            let key = pick(self.random, keys);
            if !sort.iter().any(|known| known.trim_start_matches('-') == key) {
                sort.push(format!("{}{key}", if self.random.bool() { "-" } else { "" }));
            }
        }
        sort
    }

    /// Relation keys to records of which the caller may read the code.
    fn names(&mut self, object: usize) -> Vec<String> {
        let (state, caller) = (self.state, self.caller);
        let has_name = |end: &End| {
            let is_reference = end.is_single && end.is_forward && end.object < NAMES.len();
            is_reference && state.standing(caller, object, end) == Standing::Known && caller.knows(end.object, "code")
        };
        let keys = state.world.ends(object).into_iter().filter(has_name).map(|end| end.key);
        keys.filter(|_| self.random.bool()).collect()
    }

    fn groups(&mut self, object: usize) -> Groups {
        let fields = self.fields(object);
        let mut by: Vec<String> = Vec::new();
        for _ in 0..*pick(self.random, &[0, 1, 1, 2]) {
            let field = pick(self.random, &fields).clone();
            let key = match field.ends_with("_at") && !self.sometimes(4) {
                true => format!("{field}:{}", pick(self.random, &["year", "month", "day", "hour"])),
                false => field,
            };
            if !by.contains(&key) {
                by.push(key);
            }
        }
        let mut functions = vec!["count".to_owned(), format!("count:{}", pick(self.random, &fields))];
        // Users have no numbers.
        if object != USERS && (self.caller.knows(object, "amount") || self.sometimes(20)) {
            functions.extend(["sum:amount", "avg:amount", "min:amount", "max:amount"].map(str::to_owned));
        }
        let count = self.random.usize(1..4).min(functions.len());
        let functions: Vec<String> = self.random.choose_multiple(functions, count);
        // One function without groups has another form.
        if by.is_empty() && functions.len() == 1 {
            by.push(pick(self.random, &fields).clone());
        }
        let mut groups = Groups { by, functions, having: None };
        if self.sometimes(3) {
            groups.having = Some(self.having(object, &groups));
        }
        groups
    }

    /// A condition on the keys of groups.
    fn having(&mut self, object: usize, groups: &Groups) -> Value {
        let (one, other) = (self.test_of_groups(object, groups), self.test_of_groups(object, groups));
        match self.random.u8(0..4) {
            0 => json!({ "_not": one }),
            1 => json!({ "_or": [one, other] }),
            2 => json!({ "_and": [one, { "_not": other }] }),
            _ => one,
        }
    }

    fn test_of_groups(&mut self, object: usize, groups: &Groups) -> Value {
        let keys = groups.keys();
        let place = self.random.usize(..keys.len());
        let is_field = place < groups.by.len();
        let value = match is_field {
            // The value of a field in a row, or a number that the result of a function may have.
            true => self.random.choice(&self.state.world.rows[object]).and_then(|row| row.values.get(&keys[place]).cloned()),
            false if keys[place].starts_with("count") => Some(json!(self.random.i64(0..6))),
            false => Some(json!(self.random.i64(-8..30))),
        };
        let test = match value {
            Some(Value::Number(number)) if !self.sometimes(6) => {
                json!({ *pick(self.random, &["gte", "gt", "lte", "lt", "neq"]): number })
            }
            // A text that begins with `$` would name a variable.
            Some(Value::String(text)) if !keys[place].ends_with("_at") && !self.sometimes(6) => {
                let text = if text.starts_with('$') { format!("${text}") } else { text };
                json!({ *pick(self.random, &["eq", "neq"]): text })
            }
            _ => json!({ *pick(self.random, &["is_null", "is_not_null"]): true }),
        };
        json!({ keys[place].as_str(): test })
    }
}

//! The table of operations, in a form that does not depend on a surface.

use serde_json::{Value, json};

/// JSON of a text.
pub(super) fn quoted(text: &str) -> String {
    Value::from(text).to_string()
}

/// The text of a JSON string. Other JSON stays unchanged.
pub(super) fn plain(json: &str) -> String {
    match serde_json::from_str(json) {
        Ok(Value::String(text)) => text,
        _ => json.to_owned(),
    }
}

/// JSON of a list.
pub(super) fn list(items: impl IntoIterator<Item = String>) -> String {
    format!("[{}]", items.into_iter().collect::<Vec<_>>().join(","))
}

/// Columns with their values as JSON text, so that every digit is sent exactly as it was generated. `#<number>#` stands for an
/// id.
#[derive(Clone, Debug, Default)]
pub(super) struct Members(pub(super) Vec<(String, String)>);

impl Members {
    pub(super) fn set(&mut self, name: &str, json: impl Into<String>) {
        self.0.push((name.to_owned(), json.into()));
    }

    pub(super) fn set_text(&mut self, name: &str, text: &str) {
        self.set(name, quoted(text));
    }

    pub(super) fn names(&self, name: &str) -> bool {
        self.0.iter().any(|(known, _)| known == name)
    }

    pub(super) fn json(&self) -> String {
        let members: Vec<String> = self.0.iter().map(|(name, json)| format!("{}:{json}", quoted(name))).collect();
        format!("{{{}}}", members.join(","))
    }
}

/// The operand of a filter, as JSON text.
#[derive(Clone, Debug)]
pub(super) enum FilterValue {
    /// No operand.
    None,
    One(String),
    /// The items of `in` and `nin`.
    List(Vec<String>),
    /// The same items as one text with commas. Every surface also accepts this.
    Joined(Vec<String>),
}

impl FilterValue {
    /// The value as a query parameter.
    pub(super) fn parameter(&self) -> String {
        match self {
            FilterValue::None => String::new(),
            FilterValue::One(json) => plain(json),
            FilterValue::List(items) | FilterValue::Joined(items) => {
                let items = items.iter().map(|item| format!("\"{}\"", plain(item).replace('"', "\"\"")));
                items.collect::<Vec<_>>().join(",")
            }
        }
    }

    /// The value as JSON.
    fn json(&self) -> Option<String> {
        match self {
            FilterValue::None => None,
            FilterValue::One(json) => Some(json.clone()),
            FilterValue::List(items) => Some(list(items.iter().cloned())),
            FilterValue::Joined(_) => Some(quoted(&self.parameter())),
        }
    }
}

#[derive(Clone, Debug)]
pub(super) struct Filter {
    pub(super) field: String,
    /// The operator, by its name and one of its aliases.
    pub(super) operator: (&'static str, &'static str),
    pub(super) value: FilterValue,
}

impl Filter {
    fn json(&self, operator: &str) -> String {
        let mut members = Members::default();
        members.set_text("field", &self.field);
        members.set_text("operator", operator);
        if let Some(value) = self.value.json() {
            members.set("value", value);
        }
        members.json()
    }
}

/// The parameters of a list or an aggregate.
#[derive(Clone, Debug, Default)]
pub(super) struct Query {
    pub(super) search: Option<String>,
    pub(super) filters: Vec<Filter>,
    /// The condition as JSON text in the long form, which GraphQL's types also have.
    pub(super) condition: Option<&'static str>,
    /// The field, and whether it is sorted in descending order.
    pub(super) sort: Vec<(String, bool)>,
    /// `page` and `pageSize`, or `limit` and `offset`.
    pub(super) window: Vec<(&'static str, i64)>,
    pub(super) select: Option<Vec<String>>,
    pub(super) expand: Vec<String>,
    pub(super) without_count: bool,
}

impl Query {
    pub(super) fn sort_text(&self) -> String {
        let keys = self.sort.iter().map(|(field, descends)| format!("{}{field}", if *descends { "-" } else { "" }));
        keys.collect::<Vec<_>>().join(",")
    }

    /// The members of a JSON document for this query. `page_size` is the name of `pageSize`.
    pub(super) fn members(&self, page_size: &str) -> Members {
        let mut members = Members::default();
        if let Some(search) = &self.search {
            members.set_text("search", search);
        }
        if !self.filters.is_empty() {
            members.set("filters", list(self.filters.iter().map(|filter| filter.json(filter.operator.1))));
        }
        if let Some(condition) = self.condition {
            members.set("where", condition);
        }
        if !self.sort.is_empty() {
            members.set_text("sort", &self.sort_text());
        }
        for (name, number) in &self.window {
            members.set(if *name == "pageSize" { page_size } else { name }, number.to_string());
        }
        if let Some(select) = &self.select {
            members.set_text("select", &select.join(","));
        }
        if !self.expand.is_empty() {
            members.set_text("expand", &self.expand.join(","));
        }
        if self.without_count {
            members.set_text("count", "none");
        }
        members
    }

    /// The variables of GraphQL. Its operators are an enum without aliases.
    pub(super) fn variables(&self) -> Members {
        let mut members = Members::default();
        if let Some(search) = &self.search {
            members.set_text("search", search);
        }
        if !self.filters.is_empty() {
            members.set("filter", list(self.filters.iter().map(|filter| filter.json(filter.operator.0))));
        }
        if let Some(condition) = self.condition {
            members.set("where", condition);
        }
        if !self.sort.is_empty() {
            let keys = self.sort.iter().map(|(field, descends)| {
                json!({ "field": field, "direction": if *descends { "desc" } else { "asc" } }).to_string()
            });
            members.set("sort", list(keys));
        }
        for (name, number) in &self.window {
            members.set(name, number.to_string());
        }
        members
    }
}

/// An atomic operator on one column.
#[derive(Clone, Debug)]
pub(super) struct Increment {
    pub(super) field: String,
    pub(super) operator: &'static str,
    pub(super) amount: String,
}

impl Increment {
    pub(super) fn json(&self) -> String {
        format!("{{\"{}\":{}}}", self.operator, self.amount)
    }

    /// The number that GraphQL's `increment` adds.
    pub(super) fn added(&self) -> String {
        match (self.operator, self.amount.strip_prefix('-')) {
            ("$dec", Some(positive)) => positive.to_owned(),
            ("$dec", None) => format!("-{}", self.amount),
            _ => self.amount.clone(),
        }
    }
}

#[derive(Clone, Debug)]
pub(super) enum Action {
    List(Query),
    Get { id: String, expand: Vec<String> },
    Aggregate { function: &'static str, field: Option<String>, query: Query },
    Create(Members),
    CreateMany(Vec<Members>),
    Update { id: String, values: Members, increments: Vec<Increment> },
    UpdateMany { ids: Vec<String>, values: Members, increments: Vec<Increment> },
    Upsert { values: Members, target: Vec<&'static str> },
    Delete { id: String },
    DeleteMany { ids: Vec<String> },
    Link { id: String, relation: &'static str, ids: Vec<String>, adds: bool },
}

/// One operation on one object.
#[derive(Clone, Debug)]
pub(super) struct Operation {
    pub(super) object: &'static str,
    pub(super) action: Action,
}

impl Operation {
    pub(super) fn is_read(&self) -> bool {
        matches!(self.action, Action::List(_) | Action::Get { .. } | Action::Aggregate { .. })
    }

    /// The changes of an update as one record.
    pub(super) fn changes(values: &Members, increments: &[Increment]) -> Members {
        let mut changes = values.clone();
        for increment in increments {
            changes.set(&increment.field, increment.json());
        }
        changes
    }
}

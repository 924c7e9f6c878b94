//! The objects, their columns and relations, and the rights of the callers.

use serde_json::{Value, json};

/// The kind of a column.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Kind {
    Text,
    Email,
    Slug,
    Enum,
    MultiEnum,
    Integer,
    BigInteger,
    Decimal,
    Float,
    Boolean,
    Datetime,
    Json,
    /// The id of a record of this object.
    Reference(&'static str),
}

impl Kind {
    pub(super) fn is_numeric(self) -> bool {
        matches!(self, Kind::Integer | Kind::BigInteger | Kind::Decimal | Kind::Float)
    }

    /// Whether a filter's operator applies to columns of this kind.
    pub(super) fn takes(self, operator: &str) -> bool {
        let is_text = matches!(self, Kind::Text | Kind::Email | Kind::Slug | Kind::Enum | Kind::MultiEnum);
        match operator {
            "is_null" | "is_not_null" => true,
            "like" | "ilike" => is_text,
            "gt" | "gte" | "lt" | "lte" => !matches!(self, Kind::Json | Kind::MultiEnum),
            _ => self != Kind::Json,
        }
    }
}

pub(super) const TASK: &str = "task";
pub(super) const PERSON: &str = "person";
pub(super) const LABEL: &str = "label";
/// The objects in the order of their creation: an object comes after the objects that it refers to.
pub(super) const OBJECTS: [&str; 3] = [PERSON, LABEL, TASK];

pub(super) const SYSTEM_COLUMNS: [&str; 5] = ["id", "created_at", "updated_at", "created_by", "updated_by"];
pub(super) const OPTIONS: [&str; 3] = ["open", "closed", "waiting"];

/// The columns that a body sets, in the order of the schema. GraphQL checks values in this order, and the other surfaces in the
/// order of the body. If both orders are the same, the first invalid value is the same.
pub(super) fn columns(object: &str) -> &'static [(&'static str, Kind)] {
    match object {
        TASK => &[
            ("title", Kind::Text),
            ("place", Kind::Text),
            ("rank", Kind::Integer),
            ("code", Kind::Slug),
            ("size", Kind::BigInteger),
            ("price", Kind::Decimal),
            ("ratio", Kind::Float),
            ("done", Kind::Boolean),
            ("status", Kind::Enum),
            ("kinds", Kind::MultiEnum),
            ("due", Kind::Datetime),
            ("extra", Kind::Json),
            ("owner_id", Kind::Reference(PERSON)),
            ("keeper_id", Kind::Reference(PERSON)),
        ],
        PERSON => &[("name", Kind::Text), ("email", Kind::Email)],
        LABEL => &[("name", Kind::Text), ("code", Kind::Slug)],
        _ => &[],
    }
}

/// The required column of an object. It is a text.
pub(super) fn required(object: &str) -> &'static str {
    if object == TASK { "title" } else { "name" }
}

/// The relation keys of an object, with the objects that they lead to.
pub(super) fn relations(object: &str) -> &'static [(&'static str, &'static str)] {
    match object {
        TASK => &[("owner", PERSON), ("keeper", PERSON), ("labels", LABEL)],
        PERSON => &[("task_by_owner", TASK), ("task_by_keeper", TASK)],
        LABEL => &[("labels", TASK)],
        _ => &[],
    }
}

/// The bodies for the schema API, in order.
pub(super) fn definitions() -> Vec<(&'static str, Value)> {
    let named = |name: &str, fields: Value| json!({ "name": name, "fields": fields });
    let mut task = named(
        TASK,
        json!([
            { "name": "title", "type": "text", "required": true, "max": 30 },
            { "name": "place", "type": "text" },
            { "name": "rank", "type": "integer", "min": -5, "max": 50 },
            { "name": "code", "type": "slug", "isUnique": true },
            { "name": "size", "type": "big_integer" },
            { "name": "price", "type": "decimal", "min": -1000000000 },
            { "name": "ratio", "type": "float" },
            { "name": "done", "type": "boolean", "default": false },
            { "name": "status", "type": "enum", "options": OPTIONS },
            { "name": "kinds", "type": "multi_enum", "options": OPTIONS },
            { "name": "due", "type": "datetime" },
            { "name": "extra", "type": "json" },
        ]),
    );
    task["constraints"] = json!({ "uniqueTogether": [["place", "rank"]] });
    let person = named(
        PERSON,
        json!([{ "name": "name", "type": "text", "required": true, "pattern": "^[^!]*$" }, { "name": "email", "type": "email" }]),
    );
    let label = named(
        LABEL,
        json!([{ "name": "name", "type": "text", "required": true }, { "name": "code", "type": "slug", "isUnique": true }]),
    );
    let related = |name: &str, kind: &str, target: &str, rule: &str| {
        let relationship = json!({ "name": name, "kind": kind, "source": TASK, "target": target, "onDelete": rule });
        ("/api/v1/relationships", relationship)
    };
    vec![
        ("/api/v1/objects", task),
        ("/api/v1/objects", person),
        ("/api/v1/objects", label),
        related("owner", "many_to_one", PERSON, "restrict"),
        related("keeper", "one_to_one", PERSON, "set_null"),
        related("labels", "many_to_many", LABEL, "cascade"),
    ]
}

/// The rights of everybody, also of callers without a credential.
pub(super) fn everybody() -> Value {
    json!([{ "resource": PERSON, "actions": ["read"] }, { "resource": "parity:run", "actions": ["read"] }])
}

/// The callers besides the admin and the anonymous caller. Each has a name, and the rights of the role with that name.
pub(super) fn roles() -> [(&'static str, Vec<Value>); 4] {
    let grant = |resource: &str, actions: &[&str]| json!({ "resource": resource, "actions": actions });
    let own = |resource: &str, actions: &[&str]| json!({ "resource": resource, "actions": actions, "rowPolicy": "own" });
    [
        // Sees and changes only their own tasks and labels, but all persons.
        (
            "writer",
            vec![
                own(TASK, &["create", "read", "update", "delete"]),
                grant(PERSON, &["create", "read", "update", "delete"]),
                own(LABEL, &["create", "read", "update", "delete"]),
            ],
        ),
        // May only read, and may not read labels.
        ("reader", vec![grant(TASK, &["read"])]),
        // May create records of all objects, but read only persons.
        ("creator", vec![grant(TASK, &["create"]), grant(PERSON, &["create"]), grant(LABEL, &["create"])]),
        // Has only the rights of everybody.
        ("stranger", Vec::new()),
    ]
}

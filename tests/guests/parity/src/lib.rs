//! A block that runs one operation of the data interface, and returns its outcome. An error is an outcome, too.

use blockbase_sdk::{Context, Error, JsonSchema, action, block, data, schemars};
use serde::{Deserialize, Serialize};
use serde_json::value::{RawValue, to_raw_value};
use serde_json::{Value, json};

/// What to run. What an operation does not take is left out.
#[derive(Deserialize, JsonSchema)]
struct Input {
    op: String,
    object: String,
    #[serde(default)]
    id: String,
    /// The query, the record or the list of records, as JSON text.
    #[serde(default)]
    json: String,
    expand: Option<String>,
    #[serde(default)]
    on_conflict: Vec<String>,
    #[serde(default)]
    relation: String,
    #[serde(default)]
    ids: Vec<String>,
}

fn raw(value: impl Serialize) -> Result<Box<RawValue>, Error> {
    Ok(to_raw_value(&value)?)
}

/// A page, as the interface returns it.
#[derive(Serialize)]
struct Answer<T> {
    data: Vec<T>,
    pagination: Value,
}

impl<T> Answer<T> {
    fn new(data: Vec<T>, pagination: &data::Pagination) -> Answer<T> {
        if pagination.page.is_none() {
            let pagination = json!({
                "pageSize": pagination.page_size,
                "hasNextPage": pagination.has_next_page,
                "hasPreviousPage": pagination.has_previous_page,
                "startCursor": pagination.start_cursor,
                "endCursor": pagination.end_cursor,
                "totalCount": pagination.total_count,
            });
            return Answer { data, pagination };
        }
        let pagination = json!({
            "page": pagination.page,
            "pageSize": pagination.page_size,
            "totalCount": pagination.total_count,
            "totalPages": pagination.total_pages,
            "hasNextPage": pagination.has_next_page,
            "hasPreviousPage": pagination.has_previous_page,
        });
        Answer { data, pagination }
    }
}

fn query(object: &str, query: &RawValue) -> Result<Box<RawValue>, Error> {
    let data::Page { data, pagination } = data::query::<Box<RawValue>>(object, query)?;
    raw(Answer::new(data, &pagination))
}

fn groups(object: &str, query: &RawValue) -> Result<Box<RawValue>, Error> {
    let data::Page { data, pagination } = data::groups(object, query)?;
    let group = |data::Group { group, mut values }: data::Group| {
        values.insert("group".to_owned(), Value::Object(group));
        values
    };
    raw(Answer::new(data.into_iter().map(group).collect(), &pagination))
}

fn upsert(input: &Input, values: &RawValue) -> Result<Box<RawValue>, Error> {
    #[derive(Serialize)]
    struct Answer {
        created: bool,
        data: Box<RawValue>,
    }
    let target: Vec<&str> = input.on_conflict.iter().map(String::as_str).collect();
    let data::Upserted { created, data } = data::upsert(&input.object, values, &target)?;
    raw(Answer { created, data })
}

fn operate(input: &Input) -> Result<Box<RawValue>, Error> {
    let (object, id) = (input.object.as_str(), input.id.as_str());
    let json = || -> Result<Box<RawValue>, Error> { Ok(RawValue::from_string(input.json.clone())?) };
    match input.op.as_str() {
        "query" => query(object, &json()?),
        "get" => raw(match &input.expand {
            Some(expand) => data::get_expanded::<Box<RawValue>>(object, id, expand)?,
            None => data::get(object, id)?,
        }),
        "aggregate" => {
            let data::Aggregate { value, filtered_count } = data::aggregate(object, json()?)?;
            raw(json!({ "value": value, "filteredCount": filtered_count }))
        }
        "groups" => groups(object, &json()?),
        "create" => data::create(object, json()?),
        "create_many" => raw(data::create_many(object, json()?)?),
        "update" => data::update(object, id, json()?),
        "upsert" => upsert(input, &json()?),
        "delete" => raw(data::delete(object, id)?),
        "delete_many" => raw(data::delete_many(object, &input.ids)?),
        "batch" => raw(data::batch(json()?)?),
        "link" => raw(data::link(object, id, &input.relation, &input.ids)?),
        "unlink" => raw(data::unlink(object, id, &input.relation, &input.ids)?),
        op => Err(Error::failed(format!("There is no operation {op:?}."))),
    }
}

/// The outcome of an operation.
#[derive(Serialize)]
#[serde(rename_all = "snake_case")]
enum Outcome {
    Done(Box<RawValue>),
    Refused { code: String, message: String, details: Option<Box<RawValue>> },
}

/// Runs one operation of the data interface. An error of it is an answer.
#[action(rbac(resource = "parity:run", action = "read"))]
fn run(_context: &Context, input: Input) -> Result<Outcome, Error> {
    match operate(&input) {
        Ok(answer) => Ok(Outcome::Done(answer)),
        Err(Error { code, message, details }) => {
            let details = details.map(RawValue::from_string).transpose()?;
            Ok(Outcome::Refused { code, message, details })
        }
    }
}

block!(run);

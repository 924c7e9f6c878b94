//! JSON Schemas of blocks, whose validation has a limit. Authors write these schemas, and validation runs outside the sandbox. If
//! a schema refers to itself in two branches, the time of the validation doubles with each level of an input.

use std::any::Any;
use std::cell::Cell;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};

use blockbase_app::schema::{Code, Error, Issue, Result, excerpt, excerpt_of};
use jsonschema::{Keyword, PatternOptions, ValidationError, Validator};
use serde_json::{Map, Value};

use crate::package::manifest::invalid;

/// The maximum number of schemas that one validation may apply. The same schema counts again at each place of an input.
const STEPS_MAX: u32 = 2_000_000;
/// The maximum number of bytes of the stack that one validation may use.
const STACK_BYTES_MAX: usize = 768 * 1024;
/// The maximum number of failures that are reported for one document.
const ISSUES_MAX: usize = 100;
/// The keyword that counts a step. It is added after the schema is read, so no author's schema contains it.
const STEP: &str = "\u{0}step";
/// Keywords whose values contain no schemas, but only data or names.
const WITHOUT_SCHEMAS: [&str; 7] = ["const", "enum", "default", "examples", "example", "dependentRequired", "$vocabulary"];
/// Keywords whose values are maps of names to schemas.
const BY_NAME: [&str; 6] = ["properties", "patternProperties", "$defs", "definitions", "dependentSchemas", "dependencies"];

thread_local! {
    /// Steps left, and the stack's address when they began.
    static BUDGET: Cell<(u32, usize)> = const { Cell::new((u32::MAX, 0)) };
}

/// A schema whose validation has a limit.
pub(crate) struct BoundedSchema(Validator);

/// Ends a validation that has exceeded its limit, by unwinding.
struct TooCostly;

struct Step;

impl Step {
    fn count() {
        let here = stack_address();
        let (left, begun) = BUDGET.get();
        if left == 0 || begun.abs_diff(here) > STACK_BYTES_MAX {
            // This is not a panic, because it is not a fault of the program.
            resume_unwind(Box::new(TooCostly));
        }
        BUDGET.set((left - 1, begun));
    }
}

/// The approximate address of the top of the stack.
#[inline(never)]
fn stack_address() -> usize {
    let mark = 0_u8;
    std::ptr::from_ref(std::hint::black_box(&mark)).addr()
}

impl<'i> Keyword<'i> for Step {
    fn validate(&self, _: &'i Value) -> std::result::Result<(), ValidationError<'i>> {
        Step::count();
        Ok(())
    }

    fn is_valid(&self, _: &'i Value) -> bool {
        Step::count();
        true
    }
}

impl BoundedSchema {
    /// Compiles a schema. References to other documents are not followed, and patterns take linear time.
    ///
    /// # Errors
    /// `invalid_block`, which says why the value is not a schema.
    pub(crate) fn new(schema: &Value) -> Result<BoundedSchema> {
        jsonschema::draft202012::meta::validate(schema).map_err(|error| invalid(format!("not a JSON Schema: {error}.")))?;
        let mut counted = schema.clone();
        count_steps(&mut counted);
        let built = catch_unwind(AssertUnwindSafe(|| {
            jsonschema::draft202012::options()
                .with_pattern_options(PatternOptions::regex())
                .with_keyword(STEP, |_, _, _| Ok(Box::new(Step)))
                .build(&counted)
                .map_err(|error| error.to_string())
        }));
        match built {
            Ok(Ok(validator)) => Ok(BoundedSchema(validator)),
            Ok(Err(why)) => Err(invalid(format!("not a JSON Schema: {why}."))),
            Err(_) => Err(invalid("not a JSON Schema that can be used here.")),
        }
    }

    /// Every failure of a document, up to a hundred.
    ///
    /// # Errors
    /// `invalid_request` if the check would take too long.
    pub(crate) fn issues(&self, document: &Value) -> Result<Vec<Issue>> {
        within_bound(|| match self.0.is_valid(document) {
            true => Vec::new(),
            false => {
                let failures = self.0.iter_errors(document).take(ISSUES_MAX);
                failures
                    .map(|error| Issue::Document {
                        path: excerpt(&error.instance_path().to_string()).into_owned(),
                        message: excerpt_of(&error),
                    })
                    .collect()
            }
        })
    }
}

fn within_bound<T>(check: impl FnOnce() -> T) -> Result<T> {
    BUDGET.set((STEPS_MAX, stack_address()));
    catch_unwind(AssertUnwindSafe(check)).map_err(|unwound: Box<dyn Any + Send>| match unwound.is::<TooCostly>() {
        true => Error::new(
            Code::InvalidRequest,
            "The input takes too long to check against its schema. Send a smaller or flatter one.",
        ),
        false => resume_unwind(unwound),
    })
}

/// Adds the counting keyword to every schema inside a schema.
fn count_steps(schema: &mut Value) {
    let Value::Object(members) = schema else { return };
    count_in(members);
    members.insert(STEP.to_owned(), Value::Bool(true));
}

fn count_in(members: &mut Map<String, Value>) {
    for (key, value) in members.iter_mut().filter(|(key, _)| !WITHOUT_SCHEMAS.contains(&key.as_str())) {
        match value {
            Value::Object(named) if BY_NAME.contains(&key.as_str()) => named.values_mut().for_each(count_steps),
            // A reference may lead to any value, so every value that could be a schema is treated as a schema.
            Value::Object(_) => count_steps(value),
            Value::Array(items) => items.iter_mut().for_each(count_steps),
            _ => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn outcome(schema: Value, document: Value) -> std::result::Result<usize, Code> {
        let schema = BoundedSchema::new(&schema).expect("a schema");
        schema.issues(&document).map(|issues| issues.len()).map_err(|error| error.code)
    }

    #[test]
    fn every_failure_is_told() {
        let schema = json!({ "type": "object", "properties": { "a": { "type": "integer" }, "b": { "pattern": "^x" } }, "required": ["c"] });
        assert_eq!(outcome(schema.clone(), json!({ "a": "1", "b": "y" })), Ok(3));
        assert_eq!(outcome(schema, json!({ "a": 1, "b": "x", "c": null })), Ok(0));
        let tree = json!({ "$defs": { "t": { "properties": { "l": { "$ref": "#/$defs/t" }, "r": { "$ref": "#/$defs/t" } } } }, "$ref": "#/$defs/t" });
        assert_eq!(outcome(tree, json!({ "l": { "l": {}, "r": {} }, "r": {} })), Ok(0));
        assert_eq!(outcome(json!({ "items": { "type": "integer" } }), json!(vec!["x"; 500])), Ok(ISSUES_MAX));
    }

    #[test]
    fn every_keyword_of_the_draft_is_taken_and_means_what_it_says() {
        for (schema, good, bad) in [
            (json!({ "dependentRequired": { "card": ["address"] } }), json!({ "card": 1, "address": "x" }), json!({ "card": 1 })),
            (json!({ "dependentSchemas": { "a": { "required": ["b"] } } }), json!({ "a": 1, "b": 1 }), json!({ "a": 1 })),
            (json!({ "patternProperties": { "^n_": { "type": "number" } } }), json!({ "n_a": 1 }), json!({ "n_a": "x" })),
            (json!({ "additionalProperties": false, "properties": { "a": true } }), json!({ "a": 1 }), json!({ "b": 1 })),
            (json!({ "additionalProperties": { "type": "null" } }), json!({ "a": null }), json!({ "a": 1 })),
            (json!({ "propertyNames": { "maxLength": 1 } }), json!({ "a": 1 }), json!({ "ab": 1 })),
            (json!({ "minProperties": 1, "maxProperties": 1 }), json!({ "a": 1 }), json!({})),
            (json!({ "required": ["a"] }), json!({ "a": 1 }), json!({})),
            (
                json!({ "unevaluatedProperties": false, "allOf": [{ "properties": { "a": {} } }] }),
                json!({ "a": 1 }),
                json!({ "b": 1 }),
            ),
            (
                json!({ "prefixItems": [{ "type": "string" }], "items": { "type": "integer" } }),
                json!(["a", 1]),
                json!(["a", "b"]),
            ),
            (json!({ "prefixItems": [{}], "unevaluatedItems": false }), json!([1]), json!([1, 2])),
            (json!({ "contains": { "const": 1 }, "minContains": 2, "maxContains": 2 }), json!([1, 1, 2]), json!([1, 2])),
            (json!({ "uniqueItems": true, "minItems": 1, "maxItems": 2 }), json!([1, 2]), json!([1, 1])),
            (
                json!({ "if": { "required": ["a"] }, "then": { "required": ["b"] }, "else": { "required": ["c"] } }),
                json!({ "c": 1 }),
                json!({ "a": 1 }),
            ),
            (json!({ "anyOf": [{ "type": "string" }, { "type": "null" }] }), json!(null), json!(1)),
            (json!({ "oneOf": [{ "multipleOf": 2 }, { "multipleOf": 3 }] }), json!(2), json!(6)),
            (json!({ "not": { "enum": [1, { "type": "x" }] } }), json!(2), json!(1)),
            (json!({ "exclusiveMinimum": 0, "maximum": 5 }), json!(5), json!(0)),
            (json!({ "minimum": 0, "exclusiveMaximum": 5 }), json!(0), json!(5)),
            (json!({ "minLength": 1, "maxLength": 2, "pattern": "^a" }), json!("ab"), json!("b")),
            (json!({ "$defs": { "id": { "$anchor": "id", "type": "integer" } }, "$ref": "#id" }), json!(1), json!("x")),
            (
                json!({ "$dynamicAnchor": "node", "type": "object", "properties": { "n": { "$dynamicRef": "#node" } } }),
                json!({ "n": {} }),
                json!({ "n": 1 }),
            ),
            (
                json!({ "$schema": "https://json-schema.org/draft/2020-12/schema", "$comment": "c", "title": "t", "description": "d", "deprecated": true, "readOnly": true, "writeOnly": false, "default": { "a": 1 }, "examples": [{}], "format": "email", "contentEncoding": "base64", "contentMediaType": "application/json", "contentSchema": { "type": "object" }, "type": "string" }),
                json!("x"),
                json!(1),
            ),
        ] {
            assert_eq!(outcome(schema.clone(), good), Ok(0), "{schema}");
            assert!(outcome(schema.clone(), bad).is_ok_and(|issues| issues > 0), "{schema}");
        }
    }

    #[test]
    fn a_schema_that_doubles_its_own_work_is_stopped() {
        let mut defs = json!({ "a0": { "type": "string" } });
        for level in 1..60 {
            let below = json!({ "$ref": format!("#/$defs/a{}", level - 1) });
            defs[format!("a{level}")] = json!({ "allOf": [below, below] });
        }
        let schema = json!({ "$defs": defs, "properties": { "x": { "$ref": "#/$defs/a59" } } });
        assert_eq!(outcome(schema, json!({ "x": "text" })), Err(Code::InvalidRequest));
        let twice = json!({ "allOf": [{ "properties": { "a": { "$ref": "#" } } }, { "properties": { "a": { "$ref": "#" } } }] });
        let deep = (0..60).fold(json!({}), |inner, _| json!({ "a": inner }));
        // The library detects a schema that refers to itself at the same place.
        assert_eq!(outcome(twice, deep), Ok(0));
    }

    #[test]
    fn a_schema_that_only_refers_to_itself_is_stopped() {
        let schema = json!({ "$defs": { "a": { "anyOf": [{ "$ref": "#/$defs/a" }, { "$ref": "#/$defs/a" }] } }, "properties": { "x": { "$ref": "#/$defs/a" } } });
        // Either the library detects the circle, or the limit ends the validation. This line only has to return.
        let _ = outcome(schema, json!({ "x": 1 }));
    }

    #[test]
    fn a_pattern_takes_linear_time_or_is_refused() {
        assert_eq!(outcome(json!({ "pattern": "^(a+)+$" }), json!(format!("{}b", "a".repeat(40)))), Ok(1));
        assert!(BoundedSchema::new(&json!({ "pattern": "(a)\\1" })).is_err());
    }
}

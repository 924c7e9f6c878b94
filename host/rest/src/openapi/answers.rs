//! Schemas of answers, derived from the structs that `app` answers with: their members, types and doc comments.

use blockbase_app::schema::{Constraints, Field, ObjectDefinition, Relationship};
use blockbase_app::{
    ApiKeyAnswer, AttemptAnswer, BlockAnswer, BlockSecretAnswer, BlockUsageAnswer, ChangePlan, DeclaredActions, DeliveryAnswer,
    DeliveryCounts, DeliveryWithHistory, Dependent, EventText, Explanation, Grant, Inspection, InstallReport, InstanceAnswer,
    KeptLine, ListedSession, ListedSetting, ManagedUserAnswer, MeAnswer, NewPermissions, PaginationAnswer, PasswordLinkAnswer,
    Replayed, RoleAnswer, RolePermissions, SchemaHistoryAnswer, SessionAnswer, StatusAnswer, SubscriptionAnswer, TaskAnswer,
    TaskRunAnswer, UserAnswer, UserSessionAnswer, WebhookAnswer, WrittenAnswer,
};
use schemars::generate::SchemaSettings;
use schemars::transform::{RecursiveTransform, Transform};
use schemars::{JsonSchema, Schema, SchemaGenerator};
use serde_json::{Map, Value};

/// The components that answers refer to. The document keeps only those that it uses.
pub(crate) fn schemas() -> Map<String, Value> {
    let mut generator = for_answers();
    macro_rules! add {
        ($($answer:ty),* $(,)?) => { $(generator.subschema_for::<$answer>();)* };
    }
    add![
        TaskAnswer,
        TaskRunAnswer,
        DeliveryAnswer,
        DeliveryWithHistory,
        AttemptAnswer,
        DeliveryCounts,
        EventText<'_>,
        SubscriptionAnswer,
        WebhookAnswer,
        RoleAnswer,
        ManagedUserAnswer,
        PasswordLinkAnswer,
        RolePermissions,
        Explanation,
        UserSessionAnswer,
        ApiKeyAnswer,
        UserAnswer,
        SessionAnswer,
        ListedSession,
        MeAnswer<'_>,
        InstanceAnswer,
        ListedSetting,
        StatusAnswer,
        Grant,
        BlockAnswer,
        DeclaredActions,
        BlockSecretAnswer,
        BlockUsageAnswer,
        KeptLine,
        Inspection,
        NewPermissions,
        InstallReport,
        Replayed,
        ChangePlan,
        Dependent,
        PaginationAnswer,
        WrittenAnswer<'_>,
        Field,
        Constraints,
        ObjectDefinition,
        Relationship,
        SchemaHistoryAnswer,
    ];
    generator.take_definitions(true)
}

/// The schema of an answer. It is a reference to its component if [`schemas`] has one.
pub(crate) fn of<T: JsonSchema>() -> Value {
    let mut schema = for_answers().subschema_for::<T>();
    // No generator has translated this schema, because it is not a component.
    plain(&mut schema);
    schema.into()
}

fn for_answers() -> SchemaGenerator {
    generator(SchemaSettings::draft2020_12().for_serialize())
}

pub(super) fn generator(settings: SchemaSettings) -> SchemaGenerator {
    let mut settings = settings.with_transform(RecursiveTransform(Plain));
    settings.definitions_path = "/components/schemas".into();
    settings.into_generator()
}

/// Translates a schema that no generator has translated.
pub(super) fn plain(schema: &mut Schema) {
    RecursiveTransform(Plain).transform(schema);
}

/// Translates schemas that are generated from Rust types and comments into those of the document.
#[derive(Clone)]
struct Plain;

impl Transform for Plain {
    fn transform(&mut self, schema: &mut Schema) {
        match schema.get("format").and_then(Value::as_str) {
            // OpenAPI's format registry has `int64` only. `minimum` excludes negative numbers.
            Some("uint" | "uint64") => drop(schema.insert("format".to_owned(), "int64".into())),
            Some("uint8" | "uint16" | "uint32") => drop(schema.remove("format")),
            _ => {}
        }
        if let Some(description) = schema.get("description").and_then(Value::as_str) {
            // Line breaks of the source are not part of the text. Empty lines separate its paragraphs.
            let paragraphs: Vec<String> = description.split("\n\n").map(|paragraph| paragraph.replace('\n', " ")).collect();
            schema.insert("description".to_owned(), paragraphs.join("\n\n").into());
        }
        // Only bodies have defaults, for members that may be left out.
        schema.remove("default");
    }
}

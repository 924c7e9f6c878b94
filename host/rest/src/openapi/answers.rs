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

/// The components that answers refer to. The document keeps those that it needs.
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

/// The schema of an answer: a reference to its component where it is one of [`schemas`].
pub(crate) fn of<T: JsonSchema>() -> Value {
    let mut schema = for_answers().subschema_for::<T>();
    // No generator has translated what is no component.
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

/// Translates the schemas of Rust's types and comments into those of the document.
#[derive(Clone)]
struct Plain;

impl Transform for Plain {
    fn transform(&mut self, schema: &mut Schema) {
        match schema.get("format").and_then(Value::as_str) {
            // OpenAPI's registry knows `int64`; that there are no negative numbers, `minimum` says.
            Some("uint" | "uint64") => drop(schema.insert("format".to_owned(), "int64".into())),
            Some("uint8" | "uint16" | "uint32") => drop(schema.remove("format")),
            _ => {}
        }
        if let Some(description) = schema.get("description").and_then(Value::as_str) {
            // Lines of source are no lines of the text; empty ones part its paragraphs.
            let paragraphs: Vec<String> = description.split("\n\n").map(|paragraph| paragraph.replace('\n', " ")).collect();
            schema.insert("description".to_owned(), paragraphs.join("\n\n").into());
        }
        // Of members that bodies may leave out; an answer has no defaults.
        schema.remove("default");
    }
}

//! Schemas of answers, derived from the structs that `app` answers with: their members, types and doc comments.

use blockbase_app::{
    ApiKeyAnswer, AttemptAnswer, BlockAnswer, BlockSecretAnswer, BlockUsageAnswer, ChangePlan, DeclaredActions, DeliveryAnswer,
    DeliveryCounts, DeliveryWithHistory, Dependent, Grant, Inspection, InstallReport, InstanceAnswer, KeptLine, ListedSession,
    ListedSetting, ManagedUserAnswer, MeAnswer, NewPermissions, Replayed, RoleAnswer, RolePermissions, SessionAnswer,
    StatusAnswer, SubscriptionAnswer, TaskAnswer, TaskRunAnswer, UserAnswer, UserSessionAnswer, WebhookAnswer,
};
use schemars::generate::SchemaSettings;
use schemars::transform::{RecursiveTransform, Transform};
use schemars::{JsonSchema, Schema, SchemaGenerator};
use serde_json::{Map, Value};

/// The components that answers refer to. The document keeps those that it needs.
pub(super) fn schemas() -> Map<String, Value> {
    let mut generator = generator();
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
        SubscriptionAnswer,
        WebhookAnswer,
        RoleAnswer,
        ManagedUserAnswer,
        RolePermissions,
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
    ];
    generator.take_definitions(true)
}

/// The schema of an answer: a reference to its component where it is one of [`schemas`].
pub(super) fn of<T: JsonSchema>() -> Value {
    generator().subschema_for::<T>().into()
}

fn generator() -> SchemaGenerator {
    let mut settings = SchemaSettings::draft2020_12().for_serialize().with_transform(RecursiveTransform(Plain));
    settings.definitions_path = "/components/schemas".into();
    settings.into_generator()
}

/// Takes out the formats that follow from Rust's types: a count is not promised to fit 64 bits, it just is stored so.
#[derive(Clone)]
struct Plain;

impl Transform for Plain {
    fn transform(&mut self, schema: &mut Schema) {
        if schema
            .get("format")
            .and_then(Value::as_str)
            .is_some_and(|format| format.starts_with("int") || format.starts_with("uint"))
        {
            schema.remove("format");
        }
        // Of members that bodies may leave out; an answer has no defaults.
        schema.remove("default");
    }
}

//! The topics of all events, and the payloads of the platform's own events.
//!
//! `record_events` makes the payloads of records' events. This file must not know the writers and receivers of events. Tests
//! compare the lists with `docs/events.md`, and check the bytes of every payload of the platform.

use std::borrow::Cow;

use blockbase_auth::Actor;
use blockbase_query::topic::DATA;
use blockbase_schema::{Error, Result, listed};
use blockbase_store::{ApiKeyRow, SuspensionReason, TaskRunRow, ThingKind};
use serde::Serialize;
use serde_json::Value;

use crate::base::answer::MakerAnswer;

listed! {
    /// A kind of change of a record.
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    pub(crate) enum RecordOp {
        Created,
        Updated,
        Deleted,
        Linked,
        Unlinked,
    }
}

impl RecordOp {
    /// The name in payloads. It is also the last segment of topics.
    pub(crate) const fn name(self) -> &'static str {
        match self {
            RecordOp::Created => "created",
            RecordOp::Updated => "updated",
            RecordOp::Deleted => "deleted",
            RecordOp::Linked => "linked",
            RecordOp::Unlinked => "unlinked",
        }
    }

    /// The topic of the event of an object's record.
    pub(crate) fn topic(self, object: &str) -> String {
        format!("{DATA}.{object}.{}", self.name())
    }
}

/// Makes the enum and the data of each variant from one table. `with op` adds the member `op` to a payload, with the last segment
/// of the topic as its value.
macro_rules! topics {
    (@op $name:literal) => { None };
    (@op $name:literal op) => { $name.rsplit_once('.').map(|(_, op)| op) };
    ($($variant:ident($members:ty) $name:literal $(with $op:ident)? $when:literal;)+) => {
        /// A topic of the platform, with the members of its event's payload besides the actor.
        #[derive(Clone, Debug)]
        pub(crate) enum Topic<'a> {
            $(#[doc = $when] $variant($members),)+
        }

        impl Topic<'_> {
            /// The name of each topic and the reason for its event, in the order of the documentation.
            #[cfg(test)]
            const LISTED: &'static [(&'static str, &'static str)] = &[$(($name, $when)),+];

            /// The name in the documentation's list. It contains `<id>` if the topics of events contain an id.
            fn name(&self) -> &'static str {
                match self {
                    $(Topic::$variant(_) => $name,)+
                }
            }

            /// The payload as JSON text. `actor` is null for the service itself and for callers without a credential.
            pub(crate) fn payload(&self, actor: Option<&Actor>) -> Result<String> {
                let text = match self {
                    $(Topic::$variant(members) => {
                        serde_json::to_string(&Payload { members, op: topics!(@op $name $($op)?), actor })
                    })+
                };
                text.map_err(Error::internal)
            }
        }
    };
}

topics! {
    SchemaObjectCreated(ObjectMembers<'a>) "schema.object.created" with op
        "An object was created.";
    SchemaObjectUpdated(ObjectMembers<'a>) "schema.object.updated" with op
        "An object changed, or one of its fields, or a relationship whose source it is.";
    SchemaObjectDeleted(ObjectMembers<'a>) "schema.object.deleted" with op
        "An object was dropped with its records.";
    UserCreated(NewUserMembers<'a>) "auth.user.created"
        "Somebody signed up, was invited or became a guest, or the server made its first account. Only the event of a guest has `isAnonymous`.";
    UserUpgraded(UpgradeMembers<'a>) "auth.user.upgraded"
        "A guest signed up or signed in. The guest is deleted without an event of its own.";
    UserDeleted(UserMembers<'a>) "auth.user.deleted"
        "A user or a guest was deleted.";
    MailRequested(MailMembers<'a>) "auth.mail.requested"
        "Somebody asked for a mail. The event shows neither the address nor the link. Nobody learns from it whether an account exists.";
    KeyCreated(KeyMembers<'a>) "auth.key.created"
        "An API key was made.";
    KeyUsed(UsedKeyMembers<'a>) "auth.key.used"
        "An API key was used for the first time.";
    KeyAdopted(KeyMembers<'a>) "auth.key.adopted"
        "Somebody became the maker of an API key.";
    KeyDeleted(KeyMembers<'a>) "auth.key.deleted"
        "An API key was deleted, by itself or along with its user or role.";
    KeySuspended(SuspensionMembers<'a>) "api_keys.suspended"
        "An API key lost its power because of its maker.";
    WebhookSuspended(SuspensionMembers<'a>) "webhooks.suspended"
        "A webhook stopped because of its maker.";
    SubscriptionSuspended(SuspensionMembers<'a>) "subscriptions.suspended"
        "A subscription stopped because of its maker.";
    TaskSuspended(SuspensionMembers<'a>) "tasks.suspended"
        "A task stopped because of its maker.";
    BlockSuspended(SuspensionMembers<'a>) "blocks.suspended"
        "A block stopped because of its maker.";
    BlockInstalled(BlockMembers<'a>) "block.installed" with op
        "A block was installed.";
    BlockUpgraded(BlockMembers<'a>) "block.upgraded" with op
        "A block has another version, after an upgrade or a rollback.";
    BlockUninstalled(BlockMembers<'a>) "block.uninstalled" with op
        "A block was uninstalled.";
    TaskRunSucceeded(RunMembers<'a>) "task.run.succeeded"
        "A run of a task succeeded. For an action of a block, `result` is null.";
    TaskRunFailed(RunMembers<'a>) "task.run.failed"
        "A run of a task failed. For an action of a block, `error` does not say why.";
    WebhookTest(WebhookTestMembers<'a>) "webhook.test.<id>"
        "Somebody tests the webhook with this id.";
}

/// The topic of [`Topic::WebhookTest`] up to the id.
const WEBHOOK_TEST: &str = "webhook.test.";

#[derive(Serialize)]
struct Payload<'a, M> {
    #[serde(flatten)]
    members: &'a M,
    #[serde(skip_serializing_if = "Option::is_none")]
    op: Option<&'static str>,
    actor: Option<&'a Actor>,
}

#[derive(Clone, Debug, Serialize)]
pub(crate) struct ObjectMembers<'a> {
    pub(crate) object: &'a str,
}

#[derive(Clone, Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct NewUserMembers<'a> {
    pub(crate) user_id: &'a str,
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub(crate) is_anonymous: bool,
}

#[derive(Clone, Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct UpgradeMembers<'a> {
    /// The account that took over the guest's data.
    pub(crate) user_id: &'a str,
    pub(crate) guest_id: &'a str,
}

#[derive(Clone, Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct MailMembers<'a> {
    pub(crate) mail_id: &'a str,
    /// `invite`, `reset` or `verify`.
    pub(crate) kind: &'a str,
}

#[derive(Clone, Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct UserMembers<'a> {
    pub(crate) user_id: &'a str,
}

/// The members of events about an API key. They never contain the key itself.
#[derive(Clone, Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct KeyMembers<'a> {
    id: &'a str,
    name: &'a str,
    user_id: &'a str,
    role_id: &'a str,
    made_by: Option<MakerAnswer>,
}

impl<'a> From<&'a ApiKeyRow> for KeyMembers<'a> {
    fn from(key: &'a ApiKeyRow) -> KeyMembers<'a> {
        KeyMembers {
            id: &key.id,
            name: &key.name,
            user_id: &key.user_id,
            role_id: &key.role_id,
            made_by: MakerAnswer::of(&key.maker),
        }
    }
}

#[derive(Clone, Debug, Serialize)]
pub(crate) struct UsedKeyMembers<'a> {
    pub(crate) id: &'a str,
}

#[derive(Clone, Debug, Serialize)]
pub(crate) struct SuspensionMembers<'a> {
    /// The id of the thing in the routes of its kind.
    id: &'a str,
    reason: &'static str,
}

#[derive(Clone, Debug, Serialize)]
pub(crate) struct BlockMembers<'a> {
    /// The block's name.
    pub(crate) block: &'a str,
    pub(crate) version: &'a str,
}

#[derive(Clone, Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct RunMembers<'a> {
    /// The task's name.
    task: &'a str,
    task_id: &'a str,
    run_id: &'a str,
    trigger: &'a str,
    status: &'a str,
    result: &'a Value,
    error: Option<&'a str>,
}

#[derive(Clone, Debug, Serialize)]
pub(crate) struct WebhookTestMembers<'a> {
    /// The webhook's id. The topic contains it, so the payload does not.
    #[serde(skip)]
    pub(crate) id: &'a str,
}

impl<'a> Topic<'a> {
    /// The topic that reports a suspended thing of a kind.
    pub(crate) fn suspended(kind: ThingKind, id: &'a str, reason: SuspensionReason) -> Topic<'a> {
        let members = SuspensionMembers { id, reason: reason.as_str() };
        match kind {
            ThingKind::ApiKey => Topic::KeySuspended(members),
            ThingKind::Webhook => Topic::WebhookSuspended(members),
            ThingKind::Subscription => Topic::SubscriptionSuspended(members),
            ThingKind::Task => Topic::TaskSuspended(members),
            ThingKind::Block => Topic::BlockSuspended(members),
        }
    }

    /// The event of a run that has ended. Everybody with read on events may see `result` and the run's error.
    pub(crate) fn run_ended(task: &'a str, run: &'a TaskRunRow, result: &'a Value) -> Topic<'a> {
        let members = RunMembers {
            task,
            task_id: &run.task_id,
            run_id: &run.id,
            trigger: &run.trigger,
            status: &run.status,
            result,
            error: run.error.as_deref(),
        };
        match run.status.as_str() {
            "succeeded" => Topic::TaskRunSucceeded(members),
            _ => Topic::TaskRunFailed(members),
        }
    }

    /// The topic of the event.
    pub(crate) fn text(&self) -> Cow<'static, str> {
        match self {
            Topic::WebhookTest(WebhookTestMembers { id }) => Cow::Owned(format!("{WEBHOOK_TEST}{id}")),
            other => Cow::Borrowed(other.name()),
        }
    }

    /// The id of the webhook that an event with this topic tests.
    pub(crate) fn tested_webhook(topic: &str) -> Option<&str> {
        topic.strip_prefix(WEBHOOK_TEST)
    }
}

#[cfg(test)]
mod tests {
    use std::path::{Path, PathBuf};

    use blockbase_auth::Via;
    use blockbase_query::TopicPattern;
    use blockbase_query::topic::Reach;
    use blockbase_schema::table_rows;
    use blockbase_store::Maker;
    use serde_json::json;

    use super::*;

    fn key() -> ApiKeyRow {
        ApiKeyRow {
            id: "k".to_owned(),
            name: "A \"key\"".to_owned(),
            prefix: "svc_a".to_owned(),
            user_id: "u".to_owned(),
            role_id: "r".to_owned(),
            expires_at: None,
            last_used_at: None,
            created_at: 0,
            maker: Maker { user_id: Some("u".to_owned()), api_key_id: None },
            suspension: None,
        }
    }

    fn run(status: &str, error: Option<&str>) -> TaskRunRow {
        TaskRunRow {
            id: "run".to_owned(),
            task_id: "t".to_owned(),
            trigger: "manual".to_owned(),
            status: status.to_owned(),
            started_at: 0,
            finished_at: Some(1),
            result: None,
            error: error.map(str::to_owned),
        }
    }

    /// The topic and the payload of one event for each topic, in the order of the list.
    fn written(actor: Option<&Actor>) -> Vec<(String, String)> {
        let (key, result) = (key(), json!({ "deleted": 2 }));
        let (succeeded, failed) = (run("succeeded", None), run("failed", Some("It failed.")));
        let object = ObjectMembers { object: "order" };
        let block = BlockMembers { block: "tasks", version: "1.2.0" };
        let suspended = |kind| Topic::suspended(kind, "x", SuspensionReason::MakerGone);
        let topics = [
            Topic::SchemaObjectCreated(object.clone()),
            Topic::SchemaObjectUpdated(object.clone()),
            Topic::SchemaObjectDeleted(object),
            Topic::UserCreated(NewUserMembers { user_id: "u", is_anonymous: true }),
            Topic::UserUpgraded(UpgradeMembers { user_id: "u", guest_id: "g" }),
            Topic::UserDeleted(UserMembers { user_id: "u" }),
            Topic::MailRequested(MailMembers { mail_id: "m", kind: "reset" }),
            Topic::KeyCreated((&key).into()),
            Topic::KeyUsed(UsedKeyMembers { id: "k" }),
            Topic::KeyAdopted((&key).into()),
            Topic::KeyDeleted((&key).into()),
            suspended(ThingKind::ApiKey),
            suspended(ThingKind::Webhook),
            suspended(ThingKind::Subscription),
            suspended(ThingKind::Task),
            suspended(ThingKind::Block),
            Topic::BlockInstalled(block.clone()),
            Topic::BlockUpgraded(block.clone()),
            Topic::BlockUninstalled(block),
            Topic::run_ended("tidy-up", &succeeded, &result),
            Topic::run_ended("tidy-up", &failed, &Value::Null),
            Topic::WebhookTest(WebhookTestMembers { id: "01a2" }),
        ];
        assert_eq!(
            topics.iter().map(Topic::name).collect::<Vec<_>>(),
            Topic::LISTED.iter().map(|(name, _)| *name).collect::<Vec<_>>()
        );
        topics.iter().map(|topic| (topic.text().into_owned(), topic.payload(actor).expect("JSON"))).collect()
    }

    #[test]
    fn each_event_has_these_bytes() {
        let shown: Vec<String> = written(None).into_iter().map(|(topic, payload)| format!("{topic} {payload}")).collect();
        let about_key =
            r#"{"id":"k","name":"A \"key\"","userId":"u","roleId":"r","madeBy":{"userId":"u","apiKeyId":null},"actor":null}"#;
        let about_run = r#"{"task":"tidy-up","taskId":"t","runId":"run","trigger":"manual","status":"#;
        let wanted = [
            r#"schema.object.created {"object":"order","op":"created","actor":null}"#.to_owned(),
            r#"schema.object.updated {"object":"order","op":"updated","actor":null}"#.to_owned(),
            r#"schema.object.deleted {"object":"order","op":"deleted","actor":null}"#.to_owned(),
            r#"auth.user.created {"userId":"u","isAnonymous":true,"actor":null}"#.to_owned(),
            r#"auth.user.upgraded {"userId":"u","guestId":"g","actor":null}"#.to_owned(),
            r#"auth.user.deleted {"userId":"u","actor":null}"#.to_owned(),
            r#"auth.mail.requested {"mailId":"m","kind":"reset","actor":null}"#.to_owned(),
            format!("auth.key.created {about_key}"),
            r#"auth.key.used {"id":"k","actor":null}"#.to_owned(),
            format!("auth.key.adopted {about_key}"),
            format!("auth.key.deleted {about_key}"),
            r#"api_keys.suspended {"id":"x","reason":"maker_gone","actor":null}"#.to_owned(),
            r#"webhooks.suspended {"id":"x","reason":"maker_gone","actor":null}"#.to_owned(),
            r#"subscriptions.suspended {"id":"x","reason":"maker_gone","actor":null}"#.to_owned(),
            r#"tasks.suspended {"id":"x","reason":"maker_gone","actor":null}"#.to_owned(),
            r#"blocks.suspended {"id":"x","reason":"maker_gone","actor":null}"#.to_owned(),
            r#"block.installed {"block":"tasks","version":"1.2.0","op":"installed","actor":null}"#.to_owned(),
            r#"block.upgraded {"block":"tasks","version":"1.2.0","op":"upgraded","actor":null}"#.to_owned(),
            r#"block.uninstalled {"block":"tasks","version":"1.2.0","op":"uninstalled","actor":null}"#.to_owned(),
            format!(r#"task.run.succeeded {about_run}"succeeded","result":{{"deleted":2}},"error":null,"actor":null}}"#),
            format!(r#"task.run.failed {about_run}"failed","result":null,"error":"It failed.","actor":null}}"#),
            r#"webhook.test.01a2 {"actor":null}"#.to_owned(),
        ];
        assert_eq!(shown, wanted);
    }

    #[test]
    fn a_user_who_is_no_guest_has_no_mark() {
        let payload = Topic::UserCreated(NewUserMembers { user_id: "u", is_anonymous: false }).payload(None);
        assert_eq!(payload.expect("JSON"), r#"{"userId":"u","actor":null}"#);
    }

    #[test]
    fn each_event_ends_with_its_actor() {
        let of = |api_key_id: Option<&str>, via| Actor {
            user_id: Some("u".to_owned()),
            api_key_id: api_key_id.map(str::to_owned),
            via,
        };
        for (actor, shown) in [
            (of(None, Via::Session), r#"{"userId":"u","apiKeyId":null,"via":"session"}"#),
            (of(Some("k"), Via::ApiKey), r#"{"userId":"u","apiKeyId":"k","via":"api_key"}"#),
        ] {
            for ((topic, payload), (_, of_nobody)) in written(Some(&actor)).into_iter().zip(written(None)) {
                let wanted = of_nobody.replace(r#""actor":null}"#, &format!(r#""actor":{shown}}}"#));
                assert_eq!(payload, wanted, "{topic}");
            }
        }
    }

    #[test]
    fn what_is_suspended_is_named_as_in_lists_of_things() {
        for kind in ThingKind::ALL {
            let topic = Topic::suspended(kind, "x", SuspensionReason::RightsLost);
            assert_eq!(topic.text(), format!("{}.suspended", kind.name()));
        }
    }

    #[test]
    fn a_test_names_its_webhook() {
        let topic = Topic::WebhookTest(WebhookTestMembers { id: "01a2" });
        assert_eq!(topic.text(), topic.name().replace("<id>", "01a2"));
        assert_eq!(Topic::tested_webhook(&topic.text()), Some("01a2"));
        assert_eq!(Topic::tested_webhook("webhooks.suspended"), None);
    }

    #[test]
    fn topics_of_the_platform_are_none_of_records() {
        for (name, _) in Topic::LISTED {
            assert_eq!(TopicPattern::parse(name).expect("a pattern").reach(), Reach::Platform, "{name}");
        }
        for op in RecordOp::ALL {
            let topic = op.topic("order");
            assert_eq!(TopicPattern::parse(&topic).expect("a pattern").reach(), Reach::Object("order"), "{topic}");
        }
    }

    #[test]
    fn metrics_count_events_with_ids_of_their_own_as_one_topic() {
        for (name, _) in Topic::LISTED {
            let family = name.strip_suffix(".<id>").unwrap_or(name);
            assert_eq!(blockbase_telemetry::topic_family(&name.replace("<id>", "01a2")), family);
        }
    }

    #[test]
    fn the_documentation_has_every_topic_of_records() {
        let rows = table_rows(include_str!("../../../../docs/events.md"), "| topic | payload |");
        let cells = rows.iter().map(|row| row.split('|').nth(1).expect("a first cell"));
        // Every second part is inside quotes.
        let documented: Vec<&str> = cells.flat_map(|cell| cell.split('`').skip(1).step_by(2)).collect();
        let first_of_row = [RecordOp::Created, RecordOp::Linked];
        let wanted: Vec<String> = RecordOp::ALL
            .iter()
            .map(|op| if first_of_row.contains(op) { op.topic("<object>") } else { format!(".{}", op.name()) })
            .collect();
        assert_eq!(documented, wanted, "the table of records' topics in docs/events.md");
    }

    #[test]
    fn the_documentation_has_every_topic_with_its_payload() {
        let rows = table_rows(include_str!("../../../../docs/events.md"), "| topic | when | payload |");
        let written = written(None).into_iter().zip(Topic::LISTED).map(|((_, payload), (name, when))| {
            let payload: serde_json::Map<String, Value> = serde_json::from_str(&payload).expect("an object");
            let members: Vec<&str> = payload.keys().map(String::as_str).collect();
            format!("| `{name}` | {when} | `{{ {} }}` |", members.join(", "))
        });
        assert_eq!(rows, written.collect::<Vec<_>>(), "the table of the platform's topics in docs/events.md");
    }

    /// The sources of the console below a directory.
    fn sources(directory: &Path, found: &mut Vec<PathBuf>) {
        for entry in std::fs::read_dir(directory).expect("a directory") {
            let path = entry.expect("an entry").path();
            match path.is_dir() {
                true => sources(&path, found),
                false if path.extension().is_some_and(|end| end == "ts" || end == "tsx") => found.push(path),
                false => {}
            }
        }
    }

    #[test]
    fn the_console_listens_to_topics_that_there_are() {
        let (mut files, mut calls) = (Vec::new(), 0);
        sources(&Path::new(env!("CARGO_MANIFEST_DIR")).join("../../console/src"), &mut files);
        let of_records: Vec<String> = RecordOp::ALL.iter().map(|op| op.topic("order")).collect();
        let topics: Vec<&str> =
            of_records.iter().map(String::as_str).chain(Topic::LISTED.iter().map(|(name, _)| *name)).collect();
        for file in files {
            let source = std::fs::read_to_string(&file).expect("source").replace("function useLive(", "");
            for call in source.split("useLive(").skip(1) {
                calls += 1;
                let file = file.display();
                let list = call.trim_start().strip_prefix('[').and_then(|call| call.split_once(']'));
                let (list, _) = list.unwrap_or_else(|| panic!("{file} listens to something that is not a list of patterns"));
                // Every second part is inside quotes.
                for text in list.split(['"', '`']).skip(1).step_by(2) {
                    let pattern = TopicPattern::parse(&text.replace("${object}", "order")).expect("a pattern");
                    assert!(topics.iter().any(|topic| pattern.matches(topic)), "{file} listens to {text}");
                }
            }
        }
        assert!(calls >= 10, "{calls} calls found");
    }
}

//! A scrape shows the recorded values. There is only one test, because the complete process shares the instruments.

use std::time::Duration;

use blockbase_telemetry::{BlockHandler, BlockInstance, CallPart, Outcome, Settings};

#[tokio::test]
async fn what_is_recorded_shows() {
    // Telemetry is off, so nothing is recorded.
    blockbase_telemetry::lease_lost();
    assert!(!blockbase_telemetry::is_on());
    let settings = Settings { version: "1.2.3", traces: None, metrics: None };
    let telemetry = blockbase_telemetry::init(&settings).expect("telemetry");

    blockbase_telemetry::event_published("data.task.created");
    blockbase_telemetry::event_published("webhook.test.01a1fd35");
    blockbase_telemetry::event_published("webhook.test.01a1fd36");
    blockbase_telemetry::delivery("data.task.created", "tasks:log", "log_event", Outcome::Success, Duration::from_millis(7));
    let failed: Result<(), ()> =
        blockbase_telemetry::observe_delivery("t", "c", "h", |()| "handler_failed", async { Err(()) }).await;
    assert!(failed.is_err());
    // The caller disconnects before the call ends.
    let pending = blockbase_telemetry::observe_action("echo", "spin", |()| "x", std::future::pending::<Result<(), ()>>());
    assert!(tokio::time::timeout(Duration::from_millis(5), pending).await.is_err());
    for handler in [BlockHandler::Action("spin"), BlockHandler::Hook("paid"), BlockHandler::Event("hear")] {
        for part in CallPart::ALL {
            blockbase_telemetry::block_call_part("echo", handler, part, Duration::from_micros(20));
        }
    }
    for instance in [BlockInstance::New, BlockInstance::Ahead, BlockInstance::Ahead, BlockInstance::Kept] {
        blockbase_telemetry::block_instance("echo", instance);
    }
    blockbase_telemetry::lease_lost();
    blockbase_telemetry::undecodable();
    blockbase_telemetry::set_queue(vec![("gone".to_owned(), 9)], 1.0);
    blockbase_telemetry::set_queue(vec![("tasks:log".to_owned(), 3), ("a\"b".to_owned(), 1)], 2.5);
    let stream = blockbase_telemetry::stream_opened();

    let text = telemetry.render_prometheus().expect("text");
    for line in [
        "svc_event_published_total{svc_event_topic=\"data.task.created\"} 1",
        "svc_event_published_total{svc_event_topic=\"webhook.test\"} 2",
        "svc_event_deliveries_total{svc_event_consumer=\"tasks:log\",svc_event_handler=\"log_event\",svc_event_topic=\"data.task.created\",svc_outcome=\"success\"} 1",
        "svc_event_deliveries_total{svc_event_consumer=\"c\",svc_event_handler=\"h\",svc_event_topic=\"t\",svc_outcome=\"failed\"} 1",
        "svc_event_delivery_duration_milliseconds_sum{svc_event_consumer=\"tasks:log\",svc_event_handler=\"log_event\",svc_event_topic=\"data.task.created\",svc_outcome=\"success\"} 7",
        "svc_action_invocations_total{svc_action=\"spin\",svc_block=\"echo\",svc_outcome=\"failed\"} 1",
        "svc_block_instances_total{svc_block=\"echo\",svc_block_instance=\"new\"} 1",
        "svc_block_instances_total{svc_block=\"echo\",svc_block_instance=\"ahead\"} 2",
        "svc_block_instances_total{svc_block=\"echo\",svc_block_instance=\"kept\"} 1",
        "svc_event_leases_lost_total 1",
        "svc_event_undecodable_total 1",
        "svc_event_queue_depth{svc_event_consumer=\"tasks:log\"} 3",
        "svc_event_queue_depth{svc_event_consumer=\"a\\\"b\"} 1",
        "svc_event_outbox_lag_seconds 2.5",
        "svc_event_streams 1",
    ] {
        assert!(text.lines().any(|shown| shown == line), "{line} is not in\n{text}");
    }
    assert!(!text.contains("gone"), "{text}");
    let page = include_str!("../../../docs/telemetry.md");
    for part in CallPart::ALL.map(CallPart::as_str) {
        for labels in [
            format!("svc_action=\"spin\",svc_block=\"echo\",svc_block_part=\"{part}\""),
            format!("svc_block=\"echo\",svc_block_part=\"{part}\",svc_hook=\"paid\""),
            format!("svc_block=\"echo\",svc_block_part=\"{part}\",svc_event_handler=\"hear\""),
        ] {
            let line = format!("svc_block_call_part_milliseconds_count{{{labels}}} 1");
            assert!(text.lines().any(|shown| shown == line), "{line} is not in\n{text}");
        }
        assert!(page.contains(&format!("| `{part}` |")), "docs/telemetry.md does not describe `{part}`");
    }
    drop(stream);
    assert!(telemetry.render_prometheus().expect("text").contains("\nsvc_event_streams 0\n"));
}

//! Telemetry: the contents of a scrape, and the data that a collector gets.

use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use blockbase_tests::{
    Admin, Engine, Exposition, Receiver, Reply, Server, ServerBuilder, example_block, on_sqlite_first, within,
};
use serde_json::json;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};

use crate::events::Stream;
use crate::events::webhooks;

async fn scrape(server: &Server) -> Exposition {
    let answer = server.call("GET", "/metrics", None).await;
    assert_eq!(answer.status, 200, "{}", answer.text);
    assert!(answer.headers["content-type"].to_str().unwrap().starts_with("text/plain; version=0.0.4"));
    Exposition::parse(&answer.text)
}

/// Scrapes until a series has a value.
async fn until(server: &Server, name: &str, labels: &[(&str, &str)], value: f64) {
    let deadline = Instant::now() + blockbase_tests::WAIT_MAX;
    loop {
        let found = scrape(server).await.value(name, labels);
        if found == Some(value) {
            return;
        }
        assert!(Instant::now() < deadline, "{name} is {found:?}");
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
}

async fn install_echo(admin: &Admin<'_>) {
    assert_eq!(admin.install("", example_block("echo").await).await.status, 201);
}

fn action<'a>(name: &'a str, outcome: &'a str) -> [(&'a str, &'a str); 3] {
    [("svc_block", "echo"), ("svc_action", name), ("svc_outcome", outcome)]
}

fn part_of<'a>(action: &'a str, part: &'a str) -> [(&'a str, &'a str); 3] {
    [("svc_block", "echo"), ("svc_action", action), ("svc_block_part", part)]
}

fn with_telemetry(engine: Engine) -> ServerBuilder {
    ServerBuilder::new(engine).env("SVC_TELEMETRY", "true")
}

on_sqlite_first! {
    async fn a_scrape_shows_what_happened(engine: Engine) {
        let server = with_telemetry(engine).start().await;
        let admin = server.admin().await;
        install_echo(&admin).await;
        for _ in 0..2 {
            admin.post("/api/v1/blocks/echo/actions/echo", json!({ "a": 1 })).await.data();
        }
        admin.post("/api/v1/blocks/echo/actions/panic", json!({})).await.expect_error(500, "action_failed");
        admin.post("/api/v1/blocks/echo/actions/spin", json!({})).await.expect_error(504, "action_timeout");
        // A refused input or an unknown action does not get to a handler, so it does not count as an invocation.
        admin.post("/api/v1/blocks/echo/actions/refuse", json!({})).await.expect_error(400, "validation_failed");
        admin.post("/api/v1/blocks/echo/actions/nothing", json!({})).await.expect_error(404, "not_found");
        server.call("BREW", "/api/v1/nowhere/at/all", None).await.expect_error(404, "not_found");

        // The answer does not wait for the end of the instance.
        let handlers = [("echo", 2.0), ("panic", 1.0), ("spin", 1.0)];
        for (handler, calls) in handlers {
            until(&server, "svc_block_call_part_milliseconds_count", &part_of(handler, "teardown"), calls).await;
        }

        let shown = scrape(&server).await;
        assert_eq!(shown.kinds["svc_action_invocations_total"], "counter");
        assert_eq!(shown.value("svc_action_invocations_total", &action("echo", "success")), Some(2.0));
        assert_eq!(shown.value("svc_action_invocations_total", &action("panic", "failed")), Some(1.0));
        assert_eq!(shown.series("svc_action_invocations_total").len(), 3, "{shown:?}");
        assert_eq!(shown.kinds["svc_action_duration_milliseconds"], "histogram");
        assert_eq!(shown.value("svc_action_duration_milliseconds_count", &action("echo", "success")), Some(2.0));
        let spun = shown.value("svc_action_duration_milliseconds_sum", &action("spin", "failed")).unwrap();
        assert!((300.0..10_000.0).contains(&spun), "{spun} ms");

        // Each part has a value for each call of a handler. All parts but the teardown are within the durations of the action.
        assert_eq!(shown.kinds["svc_block_call_part_milliseconds"], "histogram");
        let names = ["queue", "instantiate", "guest", "host", "render"];
        for (handler, calls) in handlers {
            let part = |of: &str, name: &str| {
                shown.value(&format!("svc_block_call_part_milliseconds{of}"), &part_of(handler, name)).unwrap()
            };
            assert_eq!(names.map(|name| part("_count", name)), [calls; 5], "{handler}");
            assert!(names.iter().all(|name| *name == "host" || part("_sum", name) > 0.0), "{handler}: {shown:?}");
            assert!(part("_sum", "teardown") > 0.0, "{handler}: {shown:?}");
            let outcome = if handler == "echo" { "success" } else { "failed" };
            let took = shown.value("svc_action_duration_milliseconds_sum", &action(handler, outcome)).unwrap();
            let parts: f64 = names.iter().map(|name| part("_sum", name)).sum();
            let least = if handler == "spin" { 300.0 } else { 0.0 };
            assert!((least..=took).contains(&parts), "{handler}: {parts} of {took} ms");
        }
        assert_eq!(shown.series("svc_block_call_part_milliseconds_count").len(), 18, "{shown:?}");

        let route = "/api/v1/blocks/{block}/actions/{action}";
        let answered = [("http_request_method", "POST"), ("http_response_status_code", "200"), ("http_route", route), ("url_scheme", "http")];
        assert_eq!(shown.value("http_server_request_duration_seconds_count", &answered), Some(2.0));
        let unmatched = [("http_request_method", "_OTHER"), ("http_response_status_code", "404"), ("url_scheme", "http")];
        assert_eq!(shown.value("http_server_request_duration_seconds_count", &unmatched), Some(1.0));

        let commits = shown.value("svc_store_batch_size_count", &[]);
        assert_eq!(commits.is_some_and(|commits| commits > 0.0), engine == Engine::Sqlite, "{commits:?}");
        assert_eq!(shown.value("svc_event_undecodable_total", &[]), Some(0.0));
        assert_eq!(shown.value("svc_event_leases_lost_total", &[]), Some(0.0));
        assert_eq!(shown.series("target_info")[0]["service_name"], "blockbase");
    }

    async fn deliveries_are_counted_and_timed(engine: Engine) {
        let server = with_telemetry(engine)
            .env("SVC_ALLOW_PRIVATE_NETWORK", "true")
            .env("SVC_RETRY_BASE_MS", "3600000")
            .start()
            .await;
        let admin = server.admin().await;
        admin.make_task_object().await;
        let receiver = Receiver::start().await;
        receiver.answer(|number, _| Reply::Status(if number == 0 { 500 } else { 200 }));
        let (id, _) = webhooks::make(&admin, json!({ "url": receiver.url, "topics": ["data.#"] })).await;
        admin.define("audit", json!([{ "name": "topic", "type": "text" }])).await;
        let config = json!({ "object": "audit", "map": { "topic": "event.topic" } });
        let persist = json!({ "event": "data.#", "consumer": "audit", "handler": "persist_event", "config": config });
        assert_eq!(admin.post("/api/v1/events/subscriptions", persist).await.status, 201);
        for number in 0..3 {
            admin.make("task", json!({ "title": format!("{number}") })).await;
            receiver.wait_for(number + 1).await;
        }
        let topic = ("svc_event_topic", "data.task.created");
        let group = format!("webhook:{id}");
        let webhook = |outcome| [topic, ("svc_event_consumer", group.as_str()), ("svc_event_handler", "webhook"), ("svc_outcome", outcome)];
        let audit = [topic, ("svc_event_consumer", "audit"), ("svc_event_handler", "persist_event"), ("svc_outcome", "success")];
        until(&server, "svc_event_deliveries_total", &webhook("success"), 2.0).await;
        until(&server, "svc_event_deliveries_total", &webhook("failed"), 1.0).await;
        until(&server, "svc_event_deliveries_total", &audit, 3.0).await;
        let shown = scrape(&server).await;
        assert_eq!(shown.value("svc_event_published_total", &[topic]), Some(3.0));
        assert_eq!(shown.kinds["svc_event_delivery_duration_milliseconds"], "histogram");
        assert_eq!(shown.value("svc_event_delivery_duration_milliseconds_count", &webhook("success")), Some(2.0));
        // Test events of all webhooks count under one topic.
        assert_eq!(admin.post(&format!("/api/v1/webhooks/{id}/test"), json!({})).await.status, 202);
        until(&server, "svc_event_published_total", &[("svc_event_topic", "webhook.test")], 1.0).await;
        receiver.wait_for(4).await;
        // A waiting delivery is visible within a few seconds.
        receiver.answer(|_, _| Reply::Hang);
        admin.make("task", json!({ "title": "waits" })).await;
        until(&server, "svc_event_queue_depth", &[("svc_event_consumer", group.as_str())], 1.0).await;
        assert!(scrape(&server).await.value("svc_event_outbox_lag_seconds", &[]).unwrap() > 0.0);
    }

    async fn open_streams_are_counted_until_they_end(engine: Engine) {
        let server = with_telemetry(engine).start().await;
        let admin = server.admin().await;
        assert_eq!(scrape(&server).await.value("svc_event_streams", &[]), Some(0.0));
        let first = Stream::open(&admin, "").await;
        let second = Stream::open(&admin, "").await;
        until(&server, "svc_event_streams", &[], 2.0).await;
        drop(first);
        until(&server, "svc_event_streams", &[], 1.0).await;
        drop(second);
        until(&server, "svc_event_streams", &[], 0.0).await;
    }

    async fn a_collector_is_sent_spans_and_metrics_in_the_callers_trace(engine: Engine) {
        let collector = Collector::start().await;
        let server = with_telemetry(engine)
            .env("OTEL_EXPORTER_OTLP_ENDPOINT", &collector.base)
            .env("OTEL_EXPORTER_OTLP_HEADERS", "x-key=of%20the%20tenant")
            .env("OTEL_SERVICE_NAME", "bakery")
            .env("OTEL_BSP_SCHEDULE_DELAY", "100")
            .env("OTEL_METRIC_EXPORT_INTERVAL", "100")
            .start()
            .await;
        let admin = server.admin().await;
        install_echo(&admin).await;
        let path = "/api/v1/blocks/echo/actions/echo";
        let traced = admin
            .request("POST", path)
            .header("traceparent", "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01")
            .header("x-request-id", "the-request")
            .json(&json!({}));
        assert_eq!(server.send(traced).await.status, 200);
        admin.post("/api/v1/blocks/echo/actions/refuse", json!({ "code": "conflict" })).await.expect_error(409, "conflict");
        for name in ["action echo.echo", "POST /api/v1/blocks/{block}/actions/{action}", "the-request", "action echo.refuse", "conflict"] {
            collector.expect("/v1/traces", name.as_bytes()).await;
        }
        for part in ["queue", "instantiate", "guest", "host", "render"] {
            collector.expect("/v1/traces", format!("svc.block.part.{part}").as_bytes()).await;
        }
        for name in ["svc.action.invocations", "svc.action.duration", "http.server.request.duration", "bakery"] {
            collector.expect("/v1/metrics", name.as_bytes()).await;
        }
        // No span contains the token of a link.
        assert_eq!(server.call("GET", "/api/auth/reset-password/s3cr3tt0ken?callbackURL=/", None).await.status, 302);
        collector.expect("/v1/traces", b"/api/auth/reset-password/").await;
        assert_eq!(collector.count("/v1/traces", b"s3cr3tt0ken"), 0);
        // The spans of the action and of its request belong to the caller's trace, so its id is in both.
        let trace: [u8; 16] = [0x0a, 0xf7, 0x65, 0x19, 0x16, 0xcd, 0x43, 0xdd, 0x84, 0x48, 0xeb, 0x21, 0x1c, 0x80, 0x31, 0x9c];
        assert_eq!(collector.count("/v1/traces", &trace), 2);
        assert!(collector.heads().iter().all(|head| head.contains("x-key: of the tenant") && head.contains("application/x-protobuf")));
        // The log shows its usual lines and no spans.
        let log = server.log();
        assert!(!log.contains("otel.") && !log.contains("ERROR") && !log.contains("s3cr3tt0ken"), "{log}");
        assert!(log.lines().all(|line| !line.contains("WARN") || line.contains("a link of an account was not valid")), "{log}");
    }
}

#[tokio::test]
async fn without_the_setting_there_is_no_such_route() {
    let collector = Collector::start().await;
    let server = ServerBuilder::new(Engine::Sqlite).env("OTEL_EXPORTER_OTLP_ENDPOINT", &collector.base).start().await;
    server.call("GET", "/metrics", None).await.expect_error(404, "not_found");
    server.log_with("SVC_TELEMETRY").await;
    server.signal("TERM");
    assert!(server.ended().await.success());
    assert!(collector.heads().is_empty());
}

#[tokio::test]
async fn a_scrape_is_not_limited() {
    let server = with_telemetry(Engine::Sqlite).env("SVC_RATE_LIMIT_RPM", "1").start().await;
    for _ in 0..5 {
        scrape(&server).await;
    }
    server.call("POST", "/metrics", None).await.expect_error(405, "method_not_allowed");
}

#[tokio::test]
async fn what_is_left_is_sent_when_the_server_ends() {
    let collector = Collector::start().await;
    let server = with_telemetry(Engine::Sqlite).env("OTEL_EXPORTER_OTLP_ENDPOINT", &collector.base).start().await;
    let admin = server.admin().await;
    install_echo(&admin).await;
    admin.post("/api/v1/blocks/echo/actions/echo", json!({})).await.data();
    server.signal("TERM");
    assert!(server.ended().await.success());
    collector.expect("/v1/traces", b"action echo.echo").await;
    collector.expect("/v1/metrics", b"svc.action.invocations").await;
}

#[tokio::test]
async fn a_collector_that_never_answers_holds_nothing_up_for_long() {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let base = format!("http://{}", listener.local_addr().unwrap());
    let silent = tokio::spawn(async move {
        let mut open = Vec::new();
        while let Ok((stream, _)) = listener.accept().await {
            open.push(stream);
        }
    });
    let server = with_telemetry(Engine::Sqlite).env("OTEL_EXPORTER_OTLP_ENDPOINT", &base).start().await;
    server.admin().await.make_task_object().await;
    let begun = Instant::now();
    server.signal("TERM");
    assert!(server.ended().await.success());
    assert!(begun.elapsed() < within(Duration::from_secs(9)), "{:?}", begun.elapsed());
    silent.abort();
}

#[tokio::test]
async fn a_malformed_collector_stops_the_boot_with_one_line() {
    for (name, value) in [
        ("OTEL_EXPORTER_OTLP_ENDPOINT", "hunter2"),
        ("OTEL_EXPORTER_OTLP_ENDPOINT", "http://h/hünter2 hunter2"),
        ("OTEL_EXPORTER_OTLP_TRACES_ENDPOINT", "grpc://hunter2"),
        ("OTEL_EXPORTER_OTLP_PROTOCOL", "grpc"),
    ] {
        let mut builder = with_telemetry(Engine::Sqlite);
        if name.ends_with("PROTOCOL") {
            builder = builder.env("OTEL_EXPORTER_OTLP_ENDPOINT", "http://127.0.0.1:9");
        }
        let (status, text) = builder.env(name, value).fail().await;
        assert_eq!(status.code(), Some(2), "{text}");
        assert!(text.starts_with(&format!("blockbase: {name}")) && text.trim_end().lines().count() == 1, "{text}");
        assert!(!text.contains("hunter2"), "{text}");
    }
}

#[tokio::test]
async fn a_value_that_the_exporter_cannot_use_is_warned_about() {
    let server = with_telemetry(Engine::Sqlite)
        .env("OTEL_EXPORTER_OTLP_ENDPOINT", "https://127.0.0.1:9")
        .env("OTEL_TRACES_SAMPLER", "dice")
        .start()
        .await;
    server.log_with("OTEL_TRACES_SAMPLER").await;
}

/// The head and the body of each request.
type Taken = Arc<Mutex<Vec<(String, Vec<u8>)>>>;

#[tokio::test]
async fn a_collector_without_tls_needs_no_certificates_of_the_system() {
    let bare = |address: &str| {
        let server = with_telemetry(Engine::Sqlite).env("OTEL_EXPORTER_OTLP_ENDPOINT", address);
        server.env("SSL_CERT_FILE", "/nowhere").env("SSL_CERT_DIR", "/nowhere")
    };
    let collector = Collector::start().await;
    let server = bare(&collector.base).start().await;
    server.signal("TERM");
    assert!(server.ended().await.success());
    collector.expect("/v1/metrics", b"svc.event.streams").await;
    if cfg!(target_os = "linux") {
        let (status, text) = bare("https://127.0.0.1:9").fail().await;
        assert_eq!(status.code(), Some(2), "{text}");
        assert!(text.contains("CA certificates") && text.trim_end().lines().count() == 1, "{text}");
    }
}

/// A replacement for a collector, which keeps the data that it receives.
struct Collector {
    base: String,
    taken: Taken,
}

impl Collector {
    async fn start() -> Collector {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let base = format!("http://{}", listener.local_addr().unwrap());
        let taken = Taken::default();
        let sink = taken.clone();
        tokio::spawn(async move {
            while let Ok((stream, _)) = listener.accept().await {
                tokio::spawn(take(stream, sink.clone()));
            }
        });
        Collector { base, taken }
    }

    fn heads(&self) -> Vec<String> {
        self.taken.lock().unwrap().iter().map(|(head, _)| head.clone()).collect()
    }

    /// How often `bytes` occurs in the requests to a path.
    fn count(&self, path: &str, bytes: &[u8]) -> usize {
        let taken = self.taken.lock().unwrap();
        let sent = taken.iter().filter(|(head, _)| head.starts_with(&format!("POST {path} ")));
        sent.map(|(_, body)| body.windows(bytes.len()).filter(|window| *window == bytes).count()).sum()
    }

    async fn expect(&self, path: &str, bytes: &[u8]) {
        let deadline = Instant::now() + blockbase_tests::WAIT_MAX;
        while self.count(path, bytes) == 0 {
            assert!(Instant::now() < deadline, "{path} has no {:?}", String::from_utf8_lossy(bytes));
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    }
}

/// Reads the requests of one connection, and answers each.
async fn take(mut stream: TcpStream, sink: Taken) -> Option<()> {
    let mut read = Vec::new();
    loop {
        let end = loop {
            if let Some(end) = read.windows(4).position(|window| window == b"\r\n\r\n") {
                break end + 4;
            }
            (stream.read_buf(&mut read).await.ok()? > 0).then_some(())?;
        };
        let head = String::from_utf8_lossy(&read[..end]).to_string();
        let length = head.lines().find_map(|line| line.to_lowercase().strip_prefix("content-length: ").map(str::to_owned))?;
        let whole = end + length.trim().parse::<usize>().ok()?;
        while read.len() < whole {
            (stream.read_buf(&mut read).await.ok()? > 0).then_some(())?;
        }
        sink.lock().unwrap().push((head, read[end..whole].to_vec()));
        read.drain(..whole);
        stream.write_all(b"HTTP/1.1 200 OK\r\ncontent-type: application/x-protobuf\r\ncontent-length: 0\r\n\r\n").await.ok()?;
    }
}

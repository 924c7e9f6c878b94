//! The flows that were recorded from a running better-auth, repeated against the real binary.
//!
//! `tests/clients/better-auth/record.mjs` recorded them. One table lists what this server does differently on purpose. Any other difference
//! fails, and so does a line of the table that no longer applies.

mod deviations;
mod replay;

use blockbase_tests::{Engine, MailServer, Server, ServerBuilder, on_both_engines};
use futures_util::future::join_all;
use futures_util::{StreamExt, stream};
use serde_json::Value;

use deviations::{Difference, expect_deviations};
use replay::{Pause, Replay};

const RECORDING: &str = include_str!("../../../clients/better-auth/recorded.json");
/// Flows that run at the same time on one server. Each has its own addresses.
const FLOWS_AT_ONCE: usize = 6;

/// The settings of a server. Flows with the same settings share a server.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Settings {
    Mail,
    VerificationRequired,
    NoMail,
    Defaults,
}

impl Settings {
    const ALL: [Settings; 4] = [Settings::Mail, Settings::VerificationRequired, Settings::NoMail, Settings::Defaults];

    /// The settings that come nearest to the options of better-auth in a flow.
    fn of(flow: &Value) -> Settings {
        match (flow["id"].as_str().unwrap(), flow["server"].as_str().unwrap()) {
            // In these flows, better-auth mails no deletions.
            ("delete-user-stale", _) | (_, "no-mails") => Settings::NoMail,
            (_, "all-mails" | "two-mails" | "update-at-once") => Settings::Mail,
            (_, "required" | "required-without-sign-in") => Settings::VerificationRequired,
            (_, "defaults") => Settings::Defaults,
            (id, server) => panic!("{id} has the unknown server {server}"),
        }
    }

    fn sends_mail(self) -> bool {
        matches!(self, Settings::Mail | Settings::VerificationRequired)
    }

    fn builder(self, engine: Engine, mails: Option<&MailServer>) -> ServerBuilder {
        let mut builder = ServerBuilder::new(engine)
            .env("SVC_ANONYMOUS_AUTH", "true")
            .env("SVC_TRUSTED_ORIGINS", "https://app.example.com")
            // Each flow has its own network address, so that wrong tokens of one flow do not delay another flow.
            .env("SVC_TRUSTED_PROXIES", "127.0.0.1")
            .env("SVC_EVENTS_POLL_INTERVAL_MS", "50");
        if let Some(mails) = mails {
            builder = builder
                .env("SVC_SMTP_URL", &format!("smtp://127.0.0.1:{}", mails.port()))
                .env("SVC_MAIL_FROM", "Shop <shop@example.com>");
        }
        if self == Settings::VerificationRequired {
            builder = builder.env("SVC_REQUIRE_EMAIL_VERIFICATION", "true");
        }
        if self != Settings::Defaults {
            builder = builder.env("SVC_DELETE_USER", "true");
        }
        builder
    }
}

/// Repeats the flows that have these settings.
async fn differences_with(settings: Settings, engine: Engine, flows: &[Value]) -> Vec<Difference> {
    let mails = if settings.sends_mail() { Some(MailServer::start(&[]).await) } else { None };
    let mut server = settings.builder(engine, mails.as_ref()).start().await;
    server.admin().await;
    let (mut ended, mut left): (Vec<Replay>, Vec<Replay>) = (Vec::new(), Vec::new());
    for (number, flow) in (1..).zip(flows) {
        if Settings::of(flow) == settings {
            left.push(Replay::new(flow, number));
        }
    }
    while !left.is_empty() {
        let continued = left.into_iter().map(|replay| replay.until_pause(&server, mails.as_ref()));
        let paused: Vec<(Replay, Option<Pause>)> = stream::iter(continued).buffer_unordered(FLOWS_AT_ONCE).collect().await;
        left = Vec::new();
        for (replay, pause) in paused {
            match pause {
                Some(pause) => {
                    replay.pass(&server, pause).await;
                    left.push(replay);
                }
                None => ended.push(replay),
            }
        }
        if !left.is_empty() {
            server = restarted(server).await;
        }
    }
    ended.into_iter().flat_map(|replay| replay.differences).collect()
}

/// Starts another process on the same data. The first one would remember sessions as they were before the time passed.
async fn restarted(server: Server) -> Server {
    let builder = server.builder();
    server.signal("TERM");
    server.ended().await;
    builder.start().await
}

on_both_engines! {
    async fn the_flows_of_better_auth_run_as_recorded(engine: Engine) {
        let recording: Value = serde_json::from_str(RECORDING).unwrap();
        let flows = recording["flows"].as_array().unwrap();
        let found = join_all(Settings::ALL.map(|settings| differences_with(settings, engine, flows))).await;
        expect_deviations(&found.concat());
    }
}

//! The process is killed at any moment: during a write, a claim, a request, or the storing of an outcome.

use std::collections::HashSet;
use std::sync::Arc;
use std::time::{Duration, Instant};

use blockbase_tests::{Engine, Server, is_long, on_both_engines};

use super::audit;
use super::groups::{Groups, LOG};
use super::seed::{Seed, number};
use super::storm::{OnLoss, Storm};
use crate::events::webhooks::short_leases;

/// The number of kills on both engines together: in the gate, and in the long command. `BLOCKBASE_KILLS` overrides it.
const KILLS: [u64; 2] = [20, 200];
/// The number of kills of one database. After them, everything has to settle. The server gives up a delivery that was under way at
/// seven ends.
const KILLS_A_ROUND: u64 = 6;
/// The longest time between a boot and a kill.
const LIFE_MAX_MS: u64 = 350;

on_both_engines! {
    async fn whenever_the_process_is_killed_nothing_is_lost_and_each_event_is_persisted_once(engine: Engine) {
        let seed = Seed::new();
        let mut left = number("BLOCKBASE_KILLS").unwrap_or(KILLS[usize::from(is_long())]) / 2;
        for round in 0.. {
            let kills = left.min(KILLS_A_ROUND);
            left -= kills;
            kill_again_and_again(engine, &seed, round, kills).await;
            if left == 0 {
                break;
            }
        }
    }
}

async fn kill_again_and_again(engine: Engine, seed: &Seed, round: u64, kills: u64) {
    let mut server = short_leases(engine).env("SVC_RETRY_BASE_MS", "20").env("SVC_EVENTS_POLL_INTERVAL_MS", "200").start().await;
    let admin = server.admin().await;
    let token = admin.token.clone();
    let groups = Groups::make(&admin, seed).await;
    let storm = Arc::new(Storm::default());
    let mut random = seed.rng(round);
    let (mut killed, mut logged) = (Vec::new(), HashSet::new());
    for number in 0..kills {
        let writers = storm.begin((&server.base, &token), seed, 10 + round * 1_000 + number, 4, OnLoss::End);
        let life = Duration::from_millis(random.u64(1..LIFE_MAX_MS));
        if random.bool() {
            tokio::time::sleep(life).await;
        } else {
            // The kill comes at about the time of an arrival: before the response, or before the outcome is stored.
            let wanted = groups.steady.count() + random.usize(1..60);
            let deadline = Instant::now() + life;
            while groups.steady.count() < wanted && Instant::now() < deadline {
                tokio::time::sleep(Duration::from_micros(200)).await;
            }
        }
        killed.push(Instant::now());
        server.kill();
        Storm::ended(writers).await;
        take_logged(&server, &mut logged);
        server = server.restart().await;
    }
    let began = Instant::now();
    audit::settle(&server).await;
    eprintln!("{engine:?} settled {:?} after the last of {kills} kills", began.elapsed());
    take_logged(&server, &mut logged);
    let repeated = audit::check(&server, &groups, &storm, &killed).await;
    let events = audit::events(&server).await;
    for event in &events {
        assert!(logged.contains(&event.id), "{} was not logged", event.id);
    }
    audit::tell(&format!("{engine:?}"), &storm, events.len(), repeated, killed.len());
}

/// Collects the events that this process has logged.
fn take_logged(server: &Server, logged: &mut HashSet<String>) {
    logged.extend(logged_events(server));
}

/// The ids of the events that `log_event` has written into the server's log. If an event was logged twice, its id occurs twice.
pub(super) fn logged_events(server: &Server) -> Vec<String> {
    let log = server.log();
    let of_line = |line: &str| {
        let (_, rest) = line.split_once("event.id=")?;
        let id = rest.split_whitespace().next()?.trim_matches('"').to_owned();
        line.contains(&format!("event.consumer=\"{LOG}\"")).then_some(id)
    };
    log.lines().filter_map(of_line).collect()
}

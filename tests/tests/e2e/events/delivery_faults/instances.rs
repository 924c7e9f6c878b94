//! Several instances on one Postgres.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::{Duration, Instant};

use blockbase_tests::{Admin, Engine, Receiver, Reply, Server};
use serde_json::json;

use super::audit;
use super::groups::Groups;
use super::kills::logged_events;
use super::seed::Seed;
use super::storm::{OnLoss, Storm};
use crate::events::webhooks::{make, short_leases};

/// Waits until an instance knows an object, and all groups that were made on another instance.
async fn follow(there: &Admin<'_>, object: &str) {
    let deadline = Instant::now() + Duration::from_secs(20);
    while there.get(&format!("/api/v1/data/{object}")).await.status != 200 {
        assert!(Instant::now() < deadline, "the other instance does not follow");
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
    // An instance checks subscriptions together with the catalogue, two or three times a second.
    tokio::time::sleep(Duration::from_secs(3)).await;
}

fn times_each(ids: impl IntoIterator<Item = String>) -> HashMap<String, usize> {
    let mut times = HashMap::new();
    for id in ids {
        *times.entry(id).or_default() += 1;
    }
    times
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn of_three_instances_one_delivers_each_event_in_order_and_what_a_killed_one_held_comes_from_another() {
    let seed = Seed::new();
    let mut first = short_leases(Engine::Postgres).env("SVC_EVENTS_POLL_INTERVAL_MS", "200").start().await;
    let admin = first.admin().await;
    let token = admin.token.clone();
    let groups = Groups::make(&admin, &seed).await;
    let (second, third) = tokio::join!(first.builder().start(), first.builder().start());
    for other in [&second, &third] {
        follow(&other.with_token(token.clone()), "thing").await;
    }
    // Without faults, each group gets each event once.
    let storm = Arc::new(Storm::default());
    let all = [&first, &second, &third];
    let begin = |part: u64| -> Vec<_> {
        let of = |(number, server): (u64, &&Server)| storm.begin((&server.base, &token), &seed, part + number, 3, OnLoss::End);
        (0..).zip(&all).flat_map(of).collect()
    };
    let writers = begin(10);
    tokio::time::sleep(Duration::from_secs(4)).await;
    storm.end(writers).await;
    audit::settle(&first).await;
    assert_eq!(audit::check(&first, &groups, &storm, &[]).await, 0);
    let events = audit::events(&first).await;
    let logged = times_each(all.iter().flat_map(|server| logged_events(server)));
    assert_eq!(logged.len(), events.len());
    assert!(logged.values().all(|times| *times == 1), "an event was logged twice");
    audit::tell("three instances", &storm, events.len(), 0, 0);

    // One instance is killed during deliveries.
    groups.steady.answer(|_, _| Reply::After(Duration::from_millis(300)));
    let writers = begin(20);
    tokio::time::sleep(Duration::from_secs(1)).await;
    let killed = Instant::now();
    first.kill();
    tokio::time::sleep(Duration::from_millis(500)).await;
    groups.steady.answer(|_, _| Reply::Status(200));
    tokio::time::sleep(Duration::from_secs(1)).await;
    storm.end(writers).await;
    audit::settle(&second).await;
    let repeated = audit::check(&second, &groups, &storm, &[killed]).await;
    audit::tell("after a kill", &storm, audit::events(&second).await.len(), repeated, 1);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn instances_share_a_backlog_without_waiting_for_their_next_look() {
    // Instances poll so rarely that a delivery would be too late if it waited for the next poll.
    let first = short_leases(Engine::Postgres).env("SVC_EVENTS_POLL_INTERVAL_MS", "600000").start().await;
    let admin = first.admin().await;
    admin.make_task_object().await;
    let receiver = Receiver::start().await;
    receiver.answer(|_, _| Reply::After(Duration::from_millis(5)));
    make(&admin, json!({ "url": receiver.url, "topics": ["data.#"] })).await;
    let (second, third) = tokio::join!(first.builder().start(), first.builder().start());
    for other in [&second, &third] {
        follow(&other.with_token(admin.token.clone()), "task").await;
    }
    let records: Vec<_> = (0..1000).map(|number| json!({ "title": format!("{number}") })).collect();
    let began = Instant::now();
    assert_eq!(admin.post("/api/v1/data/task/bulk", json!({ "data": records })).await.status, 201);
    let received = receiver.wait_for(1000).await;
    eprintln!("three instances drained 1000 deliveries in {:?}", received[999].at - began);
    assert_eq!(times_each(received.iter().map(|request| request.id())).len(), 1000);
    drop((second, third));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_instances_that_are_gone_still_hold_holds_up_no_later_event() {
    let mut server = short_leases(Engine::Postgres).env("SVC_EVENTS_POLL_INTERVAL_MS", "200").start().await;
    let admin = server.admin().await;
    let token = admin.token.clone();
    admin.make_task_object().await;
    let receiver = Receiver::start().await;
    make(&admin, json!({ "url": receiver.url, "topics": ["data.#"] })).await;
    let records: Vec<_> = (0..700).map(|number| json!({ "title": format!("{number}") })).collect();
    let made = admin.post("/api/v1/data/task/bulk", json!({ "data": records })).await.json();
    let held = made["ids"][0].as_str().unwrap();
    receiver.wait_for(700).await;
    audit::settle(&server).await;
    server.kill();
    let hold = "UPDATE svc_deliveries SET status = 'pending', lease_token = 'gone', \
                lease_until = (extract(epoch FROM clock_timestamp()) * 1000)::bigint + 3600000";
    server.sql(hold).await;
    let server = server.restart().await;
    let admin = server.with_token(token);
    // If another instance may still be delivering an event of a record, later events of the record wait.
    admin.patch(&format!("/api/v1/data/task/{held}"), json!({ "title": "later" })).await.data();
    let free = admin.make("task", json!({ "title": "free" })).await;
    let received = receiver.wait_for(701).await;
    assert_eq!(received[700].json()["payload"]["id"], free);
    tokio::time::sleep(Duration::from_millis(500)).await;
    assert_eq!(receiver.count(), 701);
    server.sql("UPDATE svc_deliveries SET lease_until = 0").await;
    let received = receiver.wait_for(1402).await;
    let of_held = received[701..].iter().filter(|request| request.json()["payload"]["id"] == held);
    let topics: Vec<_> = of_held.map(|request| request.header("x-svc-topic").to_owned()).collect();
    assert_eq!(topics, ["data.task.created", "data.task.updated"]);
}

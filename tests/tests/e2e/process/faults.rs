//! Promises that also apply if the process is killed.

use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::Duration;

use blockbase_tests::on_both_engines;
use serde_json::json;

on_both_engines! {
    async fn a_kill_amid_alterations_and_bulk_calls_leaves_the_old_state_or_the_new(server: Server) {
        let mut server = server;
        let admin = server.admin().await;
        let token = admin.token.clone();
        admin.define("part", json!([{ "name": "name", "type": "text" }, { "name": "size", "type": "integer", "min": 0 }])).await;
        let records: Vec<_> = (0..1000).map(|number| json!({ "name": format!("part number {number}"), "size": number })).collect();
        let mut acknowledged = 0;
        for round in 0..4_u64 {
            let admin = server.with_token(token.clone());
            let (answered, first_answer) = tokio::sync::oneshot::channel();
            let bulk = async {
                let (mut done, mut answered) = (0, Some(answered));
                // An incomplete response does not count.
                while let Ok(answer) = admin.request("POST", "/api/v1/data/part/bulk").json(&json!({ "data": records })).send().await {
                    let status = answer.status();
                    if answer.bytes().await.is_err() {
                        break;
                    }
                    assert_eq!(status, 201);
                    done += 1000;
                    answered.take().map(|answered| answered.send(()));
                }
                done
            };
            let alter = async {
                for number in 0.. {
                    let kind = json!({ "name": format!("extra{round}_{number}"), "type": "text", "default": "extra", "required": true });
                    let changes = [
                        admin.request("POST", "/api/v1/objects/part/fields").json(&kind),
                        admin.request("PATCH", "/api/v1/objects/part/fields/size").json(&json!({ "max": 10_000 + number })),
                    ];
                    for change in changes {
                        if change.send().await.is_err() {
                            return;
                        }
                    }
                }
            };
            let process = server.process_id();
            let kill = async {
                // Even on a slow machine, something has been written before the kill.
                first_answer.await.expect("a first answer");
                tokio::time::sleep(Duration::from_millis(150 + 170 * round)).await;
                std::process::Command::new("kill").args(["-KILL", &process.to_string()]).status().unwrap();
            };
            let (done, (), ()) = tokio::join!(bulk, alter, kill);
            acknowledged += done;
            server = server.restart().await;
        }
        let admin = server.with_token(token);
        let count = async |query: &str| admin.get(&format!("/api/v1/data/part?limit=1{query}")).await.json()["pagination"]["totalCount"].as_i64().unwrap();
        let (kept, counted, found) = (count("").await, count("&size%5Bgte%5D=0").await, count("&search=part+number").await);
        assert!(kept >= acknowledged && kept % 1000 == 0 && kept > 0, "{kept} kept, {acknowledged} acknowledged");
        assert_eq!((kept, kept), (counted, found), "the kept count, the rows, and the search index");
        let events = server.sql("SELECT count(*) FROM svc_events WHERE topic = 'data.part.created'").await;
        assert_eq!(events[0][0], kept.to_string());
        // The fields in the catalogue are the columns of the table.
        let schema = admin.get("/api/v1/objects/part").await.data();
        let record = admin.get("/api/v1/data/part?limit=1").await.data()[0].clone();
        for field in schema["fields"].as_array().unwrap() {
            assert!(record.get(field["name"].as_str().unwrap()).is_some(), "{field}");
        }
        let whole: Vec<_> = schema["fields"].as_array().unwrap().iter().filter(|field| field["required"] == true).collect();
        let filled = admin.get(&format!("/api/v1/data/part?limit=1&{}%5Bis_null%5D=", whole[0]["name"].as_str().unwrap())).await;
        assert_eq!(filled.json()["pagination"]["totalCount"], 0);
        admin.make("part", json!({ "name": "after", "size": 5 })).await;
    }

    async fn every_acknowledged_write_survives_a_kill_with_exactly_one_event(server: Server) {
        let mut server = server;
        let admin = server.admin().await;
        admin.make_task_object().await;
        let token = admin.token.clone();
        let mut acknowledged: Vec<String> = Vec::new();
        // The process is killed during many writes, after this many acknowledgements.
        for moment in [5, 23, 61, 110] {
            let stop = Arc::new(AtomicBool::new(false));
            let done_by_all = Arc::new(AtomicUsize::new(0));
            let writers: Vec<_> = (0..8)
                .map(|writer| {
                    let (base, token, stop) = (server.base.clone(), token.clone(), stop.clone());
                    let done_by_all = done_by_all.clone();
                    tokio::spawn(async move {
                        let client = blockbase_tests::http_client();
                        let mut done = Vec::new();
                        for number in 0.. {
                            if stop.load(Ordering::Relaxed) {
                                break;
                            }
                            let title = format!("{moment} {writer} {number}");
                            let sent = client
                                .post(format!("{base}/api/v1/data/task"))
                                .bearer_auth(&token)
                                .json(&json!({ "title": title }))
                                .send()
                                .await;
                            let Ok(answer) = sent else { break };
                            let status = answer.status();
                            // Only a complete response acknowledges a write.
                            let Ok(body) = answer.json::<serde_json::Value>().await else { break };
                            assert_eq!(status, 201, "{body}");
                            done.push(body["data"]["id"].as_str().unwrap().to_owned());
                            done_by_all.fetch_add(1, Ordering::Relaxed);
                        }
                        done
                    })
                })
                .collect();
            while done_by_all.load(Ordering::Relaxed) < moment {
                tokio::time::sleep(Duration::from_millis(1)).await;
            }
            server.kill();
            stop.store(true, Ordering::Relaxed);
            for writer in writers {
                acknowledged.extend(writer.await.unwrap());
            }
            server = server.restart().await;
        }
        let mut events: HashMap<String, u32> = HashMap::new();
        for row in server.sql("SELECT record_id FROM svc_events WHERE topic = 'data.task.created'").await {
            *events.entry(row[0].clone()).or_default() += 1;
        }
        let admin = server.with_token(token);
        for id in &acknowledged {
            assert_eq!(admin.get(&format!("/api/v1/data/task/{id}")).await.status, 200, "{id} is gone");
            assert_eq!(events.get(id), Some(&1), "{id}");
        }
        // A write without an acknowledgement may also be stored, but only together with its event. The stored count equals the
        // number of rows.
        let total = admin.get("/api/v1/data/task?limit=1").await.json()["pagination"]["totalCount"].as_u64().unwrap();
        assert_eq!(total, events.len() as u64);
        assert_eq!(server.sql("SELECT count(*) FROM task").await[0][0], total.to_string());
    }

    async fn records_written_while_their_object_comes_and_goes_are_counted_right(server: Server) {
        let admin = server.admin().await;
        admin.make_task_object().await;
        let stop = Arc::new(AtomicBool::new(false));
        let writers = futures_util::future::join_all((0..6).map(|_| {
            let (admin, stop) = (admin.clone(), stop.clone());
            async move {
                while !stop.load(Ordering::Relaxed) {
                    let answer = admin.post("/api/v1/data/task", json!({ "title": "t" })).await;
                    assert!(matches!(answer.status, 201 | 404), "{} {}", answer.status, answer.text);
                }
            }
        }));
        let changes = async {
            for _ in 0..8 {
                tokio::time::sleep(Duration::from_millis(40)).await;
                assert_eq!(admin.delete("/api/v1/objects/task").await.status, 204);
                admin.make_task_object().await;
            }
            tokio::time::sleep(Duration::from_millis(40)).await;
            stop.store(true, Ordering::Relaxed);
        };
        tokio::join!(writers, changes);
        let total = admin.get("/api/v1/data/task?limit=1").await.json()["pagination"]["totalCount"].clone();
        assert_eq!(server.sql("SELECT count(*) FROM task").await[0][0], total.to_string());
    }

    async fn of_two_installs_at_once_one_wins(server: Server) {
        let admin = server.admin().await;
        let file = blockbase_tests::example_block("echo").await;
        let installs = futures_util::future::join_all((0..4).map(|_| admin.install("", file.clone()))).await;
        assert_eq!(installs.iter().filter(|answer| answer.status == 201).count(), 1);
        for lost in installs.iter().filter(|answer| answer.status != 201) {
            lost.expect_error(409, "block_exists");
        }
        let answer = admin.post("/api/v1/blocks/echo/actions/echo", json!({ "a": 1 })).await;
        assert_eq!(answer.data(), json!({ "a": 1 }));
    }
}

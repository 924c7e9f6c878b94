//! What holds when the process is killed.

use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use blockbase_tests::on_both_engines;
use serde_json::json;

on_both_engines! {
    async fn every_acknowledged_write_survives_a_kill_with_exactly_one_event(server: Server) {
        let mut server = server;
        let admin = server.admin().await;
        admin.make_task_object().await;
        let token = admin.token.clone();
        let mut acknowledged: Vec<String> = Vec::new();
        // Moments of the storm at which the process dies, in milliseconds.
        for moment in [40, 90, 150, 230] {
            let stop = Arc::new(AtomicBool::new(false));
            let writers: Vec<_> = (0..8)
                .map(|writer| {
                    let (base, token, stop) = (server.base.clone(), token.clone(), stop.clone());
                    tokio::spawn(async move {
                        let client = reqwest::Client::new();
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
                            // Acknowledged is what arrived whole.
                            let Ok(body) = answer.json::<serde_json::Value>().await else { break };
                            assert_eq!(status, 201, "{body}");
                            done.push(body["data"]["id"].as_str().unwrap().to_owned());
                        }
                        done
                    })
                })
                .collect();
            tokio::time::sleep(Duration::from_millis(moment)).await;
            server.kill();
            stop.store(true, Ordering::Relaxed);
            for writer in writers {
                acknowledged.extend(writer.await.unwrap());
            }
            server = server.restart().await;
        }
        assert!(acknowledged.len() > 20, "the storm was a breeze: {}", acknowledged.len());
        let mut events: HashMap<String, u32> = HashMap::new();
        for row in server.sql("SELECT record_id FROM svc_events WHERE topic = 'data.task.created'").await {
            *events.entry(row[0].clone()).or_default() += 1;
        }
        let admin = server.with_token(token);
        for id in &acknowledged {
            assert_eq!(admin.get(&format!("/api/v1/data/task/{id}")).await.status, 200, "{id} is gone");
            assert_eq!(events.get(id), Some(&1), "{id}");
        }
        // Not acknowledged may be there too, then with its event; the kept count agrees with the rows.
        let total = admin.get("/api/v1/data/task?limit=1").await.json()["pagination"]["totalCount"].as_u64().unwrap();
        assert_eq!(total, events.len() as u64);
        assert_eq!(server.sql("SELECT count(*) FROM task").await[0][0], total.to_string());
    }
}

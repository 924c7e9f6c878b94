//! Nobody can use the rights of a stronger user: not by handing things over to this user, and not by running this user's tasks.

use blockbase_tests::{Admin, Receiver, ServerBuilder, on_both_engines};
use serde_json::{Value, json};

use crate::accounts::roles::{role, user};
use crate::events::webhooks::{make, quick};

fn right(resource: &str, actions: &[&str]) -> Value {
    json!({ "resource": resource, "actions": actions })
}

async fn id_of(caller: &Admin<'_>) -> String {
    caller.get("/api/v1/me").await.json()["userId"].as_str().unwrap().to_owned()
}

on_both_engines! {
    async fn nothing_is_handed_over_to_somebody_stronger_than_the_caller(engine: Engine) {
        let server = quick(engine).start().await;
        let admin = server.admin().await;
        let admin_id = id_of(&admin).await;
        admin.make_task_object().await;
        let receiver = Receiver::start().await;
        let hooks = [right("webhooks", &["manage"]), right("task", &["read"])];
        let with = |more: Value| json!([hooks.as_slice(), std::slice::from_ref(&more)].concat());
        role(&admin, "puppet", json!(hooks)).await;
        role(&admin, "deleter", with(right("users", &["delete"]))).await;
        role(&admin, "manager", with(right("users", &["manage"]))).await;
        let (puppet, puppet_id) = user(&admin, "puppet", Some("puppet")).await;
        let (_, heir_id) = user(&admin, "heir", Some("puppet")).await;
        let (_, poor_id) = user(&admin, "poor", None).await;
        let (deleter, deleter_id) = user(&admin, "deleter", Some("deleter")).await;
        let (manager, _) = user(&admin, "manager", Some("manager")).await;
        let (id, _) = make(&puppet, json!({ "url": receiver.url, "topics": ["data.task.created"] })).await;
        let made_by = async || server.sql(&format!("SELECT made_by_user FROM svc_webhooks WHERE id = '{id}'")).await[0][0].clone();

        // The webhook would then run with all rights of the admin.
        let path = format!("/api/v1/users/{puppet_id}");
        manager.delete(&format!("{path}?handOverTo={admin_id}")).await.expect_error(403, "forbidden");
        // Without the right to update users, callers can hand things over only to themselves.
        for other in [&admin_id, &heir_id, &"nobody".to_owned()] {
            deleter.delete(&format!("{path}?handOverTo={other}")).await.expect_error(403, "forbidden");
        }
        // The error does not show which right the heir lacks.
        let refused = admin.delete(&format!("{path}?handOverTo={poor_id}")).await.expect_error(403, "forbidden");
        let message = refused["message"].as_str().unwrap();
        assert!(message.contains("lacks a right") && !message.contains("task") && !message.contains("read"), "{message}");
        assert_eq!((admin.get(&path).await.status, made_by().await), (200, puppet_id.clone()));

        assert_eq!(deleter.delete(&format!("{path}?handOverTo={deleter_id}")).await.status, 204);
        assert_eq!(made_by().await, deleter_id);
        let deleter_path = format!("/api/v1/users/{deleter_id}");
        manager.delete(&format!("{deleter_path}?handOverTo={admin_id}")).await.expect_error(403, "forbidden");
        assert_eq!(manager.delete(&format!("{deleter_path}?handOverTo={heir_id}")).await.status, 204);
        assert_eq!(made_by().await, heir_id);
        admin.make("task", json!({ "title": "a" })).await;
        receiver.wait_for(1).await;
    }

    async fn users_who_delete_themselves_hand_nothing_over_to_an_admin(engine: Engine) {
        let server = quick(engine).start().await;
        let admin = server.admin().await;
        let admin_id = id_of(&admin).await;
        admin.make_task_object().await;
        let own = json!({ "resource": "users", "actions": ["delete"], "rowPolicy": "own" });
        role(&admin, "leaver", json!([own, right("webhooks", &["manage"]), right("task", &["read"])])).await;
        let (leaver, id) = user(&admin, "leaver", Some("leaver")).await;
        let (webhook, _) = make(&leaver, json!({ "url": "https://webhook.invalid/", "topics": ["data.task.#"] })).await;
        let path = format!("/api/v1/users/{id}");
        leaver.delete(&format!("{path}?handOverTo={admin_id}")).await.expect_error(403, "forbidden");
        assert_eq!(admin.get(&path).await.status, 200);
        assert_eq!(leaver.delete(&format!("{path}?suspend=true")).await.status, 204);
        let shown = admin.get(&format!("/api/v1/webhooks/{webhook}")).await.data();
        assert_eq!(shown["suspended"]["reason"], "maker_gone");
    }

    async fn a_task_that_erases_somebody_is_for_those_who_are_as_strong(engine: Engine) {
        let server = ServerBuilder::new(engine).start().await;
        let admin = server.admin().await;
        role(&admin, "clerk", json!([right("users", &["delete"]), right("events", &["delete"]), right("tasks", &["manage"])])).await;
        let (clerk, _) = user(&admin, "clerk", Some("clerk")).await;
        let (_, victim_id) = user(&admin, "victim", Some("admin")).await;
        let (_, other_id) = user(&admin, "other", None).await;
        let new = |name: &str, user: &str| {
            let config = json!({ "userId": user });
            json!({ "name": name, "type": "erase_user", "schedule": "0 4 1 1 *", "config": config, "enabled": false })
        };
        let made = admin.post("/api/v1/tasks", new("of-admin", &victim_id)).await;
        assert_eq!(made.status, 201, "{}", made.text);
        let (task, run, adopt) = ("/api/v1/tasks/of-admin", "/api/v1/tasks/of-admin/run", "/api/v1/tasks/of-admin/adopt");
        let before = admin.get(task).await.data();
        clerk.post(run, json!({})).await.expect_error(403, "forbidden");
        clerk.post(adopt, json!({})).await.expect_error(403, "forbidden");
        clerk.delete(task).await.expect_error(403, "forbidden");
        for change in [
            json!({}),
            json!({ "enabled": true }),
            json!({ "schedule": "* * * * *" }),
            json!({ "config": { "userId": victim_id } }),
            json!({ "config": { "userId": other_id } }),
        ] {
            clerk.patch(task, change).await.expect_error(403, "forbidden");
        }
        // This user cannot make a task that acts on the admin, and cannot change one of their own tasks so that it does.
        clerk.post("/api/v1/tasks", new("of-clerk", &victim_id)).await.expect_error(403, "forbidden");
        assert_eq!(clerk.post("/api/v1/tasks", new("of-clerk", &other_id)).await.status, 201);
        let to_victim = json!({ "config": { "userId": victim_id } });
        clerk.patch("/api/v1/tasks/of-clerk", to_victim).await.expect_error(403, "forbidden");
        assert_eq!(admin.get("/api/v1/tasks/of-clerk").await.data()["config"]["userId"], json!(other_id));
        assert_eq!(admin.get(task).await.data(), before);
        assert_eq!(admin.get(&format!("{task}/runs")).await.data(), json!([]));
        assert_eq!(admin.get(&format!("/api/v1/users/{victim_id}")).await.status, 200);

        // The task works if its user is no longer stronger, or no longer exists.
        assert_eq!(admin.delete(&format!("/api/v1/users/{victim_id}/roles/admin")).await.status, 204);
        assert_eq!(clerk.post(run, json!({})).await.data()["status"], "succeeded");
        admin.get(&format!("/api/v1/users/{victim_id}")).await.expect_error(404, "not_found");
        assert_eq!(clerk.patch(task, json!({ "schedule": "0 5 1 1 *" })).await.status, 200);
        assert_eq!(clerk.post(run, json!({})).await.data()["status"], "succeeded");
        assert_eq!(clerk.delete(task).await.status, 204);
    }
}

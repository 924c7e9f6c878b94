//! Promises between several instances on one Postgres: the time until a change applies on all of them, and the state after a
//! crash.

use std::time::{Duration, Instant};

use blockbase_tests::{
    Admin, Engine, HELD, Receiver, Server, ServerBuilder, TableLock, example_block, new_database, postgres_rows, until, within,
};
use serde_json::{Value, json};

use crate::accounts::roles::{key, role, user};
use crate::events::Stream;
use crate::events::webhooks::{make, quick, short_leases};
use crate::graphql::streams::Stream as Results;

/// Longer than it takes until a change applies on another instance, and shorter than identities are cached.
const FOLLOWS: Duration = Duration::from_millis(2000);

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_role_a_field_and_a_block_hold_on_another_instance_at_once() {
    let one = ServerBuilder::new(Engine::Postgres).start().await;
    let other = one.builder().start().await;
    let admin = one.admin().await;
    admin.define("secret", json!([{ "name": "text", "type": "text" }])).await;
    let user = one.sign_up("reader").await;
    let user_id = one.with_token(user.clone()).get("/api/v1/me").await.json()["userId"].clone();
    let role = admin.post("/api/v1/roles", json!({ "name": "reader", "permissions": [] })).await.data();
    let role_path = format!("/api/v1/roles/{}", role["id"].as_str().unwrap());
    let given = admin.post(&format!("/api/v1/users/{}/roles", user_id.as_str().unwrap()), json!({ "roleId": role["id"] })).await;
    assert!(given.status < 300, "{}", given.text);
    let there = other.with_token(user);

    for (permissions, status) in [
        (json!([{ "resource": "secret", "actions": ["read"] }]), 200),
        (json!([]), 403),
        (json!([{ "resource": "secret", "actions": ["read"] }]), 200),
    ] {
        // From now on the other instance caches the user's identity.
        there.get("/api/v1/data/secret").await;
        let changed = admin.patch(&role_path, json!({ "permissions": permissions })).await;
        assert_eq!(changed.status, 200, "{}", changed.text);
        let began = Instant::now();
        while there.get("/api/v1/data/secret").await.status != status {
            assert!(began.elapsed() < within(FOLLOWS), "a role takes {:?} to hold elsewhere", began.elapsed());
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
    }

    admin.post("/api/v1/objects/secret/fields", json!({ "name": "late", "type": "text" })).await.data();
    let began = Instant::now();
    let admin_there = other.with_token(admin.token.clone());
    while admin_there.get("/api/v1/openapi.json").await.text.matches("\"late\"").count() == 0 {
        assert!(began.elapsed() < within(FOLLOWS), "a field takes {:?} to show elsewhere", began.elapsed());
        tokio::time::sleep(Duration::from_millis(10)).await;
    }

    // If an instance does not know a block, it looks for it once. So the first call finds the block.
    let missing = admin_there.post("/api/v1/blocks/echo/actions/echo", json!({})).await;
    missing.expect_error(404, "not_found");
    assert_eq!(admin.install("", example_block("echo").await).await.status, 201);
    let called = admin_there.post("/api/v1/blocks/echo/actions/echo", json!({})).await;
    assert_ne!(called.status, 404, "{}", called.text);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_grant_is_about_the_field_that_has_the_name_now_on_every_instance() {
    let one = ServerBuilder::new(Engine::Postgres).start().await;
    let other = one.builder().start().await;
    let admin = one.admin().await;
    admin.define("note", json!([{ "name": "open", "type": "text" }, { "name": "shut", "type": "text" }])).await;
    let there = other.with_token(admin.token.clone());
    until("the other instance knows the object", async || there.get("/api/v1/data/note").await.status == 200).await;
    let grants = json!([{ "resource": "note", "actions": ["read"], "where": { "open": "yes" }, "fields": { "read": ["open"] } }]);
    assert_eq!(admin.post("/api/v1/roles", json!({ "name": "changed", "permissions": [] })).await.status, 201);
    // The two fields exchange their names, and the other instance may not know that yet.
    let exchange = async || {
        for (from, to) in [("open", "passing"), ("shut", "open"), ("passing", "shut")] {
            let renamed = admin.patch(&format!("/api/v1/objects/note/fields/{from}"), json!({ "name": to })).await;
            assert_eq!(renamed.status, 200, "{}", renamed.text);
        }
    };
    for number in 0..5 {
        let name = format!("made{number}");
        exchange().await;
        let made = there.post("/api/v1/roles", json!({ "name": name, "permissions": grants })).await;
        assert_eq!((made.status, &made.json()["data"]["permissions"]), (201, &grants), "{}", made.text);
        assert_eq!(admin.get(&format!("/api/v1/roles/{name}")).await.data()["permissions"], grants);
        exchange().await;
        let changed = there.patch("/api/v1/roles/changed", json!({ "permissions": grants })).await;
        assert_eq!((changed.status, &changed.json()["data"]["permissions"]), (200, &grants), "{}", changed.text);
        assert_eq!(admin.get("/api/v1/roles/changed").await.data()["permissions"], grants);
    }
    // A grant may also name a field that the other instance does not know yet.
    admin.post("/api/v1/objects/note/fields", json!({ "name": "late", "type": "text" })).await.data();
    let late = json!([{ "resource": "note", "actions": ["read"], "where": { "late": "yes" } }]);
    let made = there.post("/api/v1/roles", json!({ "name": "late", "permissions": late })).await;
    assert_eq!((made.status, &made.json()["data"]["permissions"]), (201, &late), "{}", made.text);
}

/// Makes an instance wait whenever it reads the blocks, if the URL of its database has [`IS_HELD`].
const HOLD_BLOCKS: &str = "CREATE FUNCTION wait_for_test() RETURNS boolean LANGUAGE plpgsql VOLATILE AS $$ BEGIN \
    WHILE current_setting('test.held', true) = 'on' AND NOT pg_try_advisory_xact_lock_shared(5050) LOOP PERFORM pg_sleep(0.02); \
    END LOOP; RETURN TRUE; END $$; \
    ALTER TABLE svc_blocks RENAME TO held_blocks; \
    CREATE VIEW svc_blocks AS SELECT * FROM held_blocks WHERE (SELECT wait_for_test()); \
    COMMIT; BEGIN; SELECT pg_advisory_xact_lock(5050)";
const IS_HELD: &str = "options[test.held]=on";

/// Another instance on the same database. [`hold_comparisons`] applies to it.
async fn held_instance(one: &Server) -> Server {
    let url = one.builder().database_url().unwrap();
    let url = url.split('?').next().unwrap();
    one.builder().database(format!("{url}?{IS_HELD}")).start().await
}

/// From now on, the [`held_instance`] does not compare its versions with the database, until the lock is released. It compares
/// its rights and its schema, and then its blocks. It finds other blocks, waits for them, and does not come to compare again.
async fn hold_comparisons(one: &Server) -> TableLock {
    let held = one.lock_rows(HOLD_BLOCKS).await;
    one.sql("UPDATE svc_versions SET version = version + 1 WHERE name = 'blocks' RETURNING name").await;
    until("the other instance waits", async || one.sql(HELD).await[0][0] != "0").await;
    held
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn another_instance_judges_an_event_by_the_schema_that_it_was_written_on() {
    const OBJECTS: [&str; 3] = ["note", "copy", "memo"];
    let receiver = Receiver::start().await;
    let mut one = quick(Engine::Postgres).start().await;
    let admin = one.admin().await;
    for object in OBJECTS {
        admin.define(object, json!([{ "name": "open", "type": "text" }, { "name": "shut", "type": "text" }])).await;
    }
    let listed = OBJECTS.map(|object| json!({ "resource": object, "actions": ["read"], "fields": { "read": ["open"] } }));
    admin.define("card", json!([{ "name": "state", "type": "text" }, { "name": "secret", "type": "text" }])).await;
    let open_cards = json!({ "resource": "card", "actions": ["read"], "where": { "state": "open" },
        "fields": { "read": { "except": ["secret"] } } });
    let platform = ["events", "webhooks"].map(|resource| json!({ "resource": resource, "actions": ["manage"] }));
    role(&admin, "reader", listed.into_iter().chain([open_cards]).chain(platform).collect()).await;
    let (reader, _) = user(&admin, "reader", Some("reader")).await;
    let (hook, _) = make(&reader, json!({ "url": receiver.url, "topics": ["data.memo.#"] })).await;
    let watch = json!({ "event": "data.copy.#", "consumer": "watch", "handler": "log_event", "perInstance": true });
    assert_eq!(reader.post("/api/v1/events/subscriptions", watch).await.status, 201);
    let linked = json!({ "event": "data.card.linked", "consumer": "linked", "handler": "log_event" });
    assert_eq!(admin.post("/api/v1/events/subscriptions", linked).await.status, 201);

    let other = held_instance(&one).await;
    let there = other.with_token(reader.token.clone());
    let logged = |word: &str| {
        let log = other.log();
        log.lines().any(|line| line.contains("event.consumer=\"watch\"") && line.contains(word))
    };
    until("the other instance serves the subscription", async || {
        admin.make("copy", json!({ "open": "begin" })).await;
        logged("begin")
    })
    .await;
    let held = hold_comparisons(&one).await;
    // No instance claims deliveries of the webhook.
    let claims = one.lock_rows(&format!("SELECT pg_advisory_xact_lock(1650615395, hashtext('webhook:{hook}'))")).await;

    // Exchanges the names of an object's two fields, and makes a record. Returns the record as the reader may see it. `round` is
    // the number of exchanges.
    let write = async |object: &str, round: usize| {
        for (from, to) in [("open", "passing"), ("shut", "open"), ("passing", "shut")] {
            let renamed = admin.patch(&format!("/api/v1/objects/{object}/fields/{from}"), json!({ "name": to })).await;
            assert_eq!(renamed.status, 200, "{}", renamed.text);
        }
        let (shown, hidden) = if round % 2 == 1 { ("shut", "open") } else { ("open", "shut") };
        let text = format!("shown {round}");
        let id = admin.make(object, json!({ shown: text, hidden: format!("hidden {round}") })).await;
        json!({ "id": id, shown: text })
    };
    let newest =
        async || -> String { admin.get("/api/v1/events?object=note&limit=1").await.data()[0]["id"].as_str().unwrap().to_owned() };
    let check = |event: &Value, expected: &Value| {
        assert_eq!(event["payload"]["after"], *expected, "{event}");
        assert!(!event.to_string().contains("hidden"), "{event}");
    };
    let expected = write("note", 1).await;
    check(&there.get("/api/v1/events?object=note&limit=1").await.data()[0], &expected);
    let expected = write("note", 2).await;
    check(&there.get(&format!("/api/v1/events/{}", newest().await)).await.data(), &expected);
    // The ledger of the other instance shows events of links only if their relationship is known.
    admin.relate(json!({ "name": "notes", "kind": "many_to_many", "source": "card", "target": "note" })).await;
    for state in ["shut", "open"] {
        let card = admin.make("card", json!({ "state": state })).await;
        let added = admin.post(&format!("/api/v1/data/card/{card}/links/notes"), json!({ "ids": [expected["id"]] })).await;
        assert_eq!(added.status, 200, "{}", added.text);
    }
    let ledger = "/api/v1/events/deliveries?consumer=linked";
    until("both events have entries", async || admin.get(ledger).await.data().as_array().unwrap().len() == 2).await;
    let event = admin.get("/api/v1/events?object=card&limit=1").await.data()[0]["id"].clone();
    let entries = there.get(ledger).await.data();
    let shown: Vec<&Value> = entries.as_array().unwrap().iter().map(|entry| &entry["eventId"]).collect();
    assert_eq!(shown, [&event]);
    // A stream that begins in the past, and goes on with new events.
    let since = newest().await;
    let expected = write("note", 3).await;
    let mut stream = Stream::open(&there, &format!("?topics=data.note.%23&since={since}")).await;
    check(&stream.event().await, &expected);
    for round in 4..8 {
        let expected = write("note", round).await;
        check(&stream.event().await, &expected);
    }
    write("copy", 1).await;
    until("the other instance logs the event", async || logged("shown 1")).await;
    assert!(!logged("hidden"));
    // Only the other instance is left to deliver this one.
    let expected = write("memo", 1).await;
    one.kill();
    claims.release().await;
    let received = receiver.wait_for(1).await;
    check(&received[0].json(), &expected);
    held.release().await;
}

/// The grants of a reader. Without `all_notes`, they are for none of the notes that a test makes. But the reader's webhooks and
/// subscriptions go on, because they only need the right to read some notes.
fn grants(all_notes: bool) -> Value {
    let mut notes = json!({ "resource": "note", "actions": ["read"] });
    if !all_notes {
        notes["where"] = json!({ "text": "of no note" });
    }
    // The right on `data` is for GraphQL.
    let others = [("events", "manage"), ("webhooks", "manage"), ("data", "read")];
    let others = others.map(|(resource, action)| json!({ "resource": resource, "actions": [action] }));
    others.into_iter().chain([notes]).collect()
}

/// Lets the role `reader` read the notes with these texts, and no others.
async fn let_read_only(admin: &Admin<'_>, texts: &[&str]) {
    let mut grants = grants(false);
    grants.as_array_mut().unwrap().last_mut().unwrap()["where"] = json!({ "text": { "in": texts } });
    let changed = admin.patch("/api/v1/roles/reader", json!({ "permissions": grants })).await;
    assert_eq!(changed.status, 200, "{}", changed.text);
}

/// Gives the right to read all notes to the role `reader`, or takes it.
async fn let_read(admin: &Admin<'_>, all_notes: bool) {
    let changed = admin.patch("/api/v1/roles/reader", json!({ "permissions": grants(all_notes) })).await;
    assert_eq!(changed.status, 200, "{}", changed.text);
}

/// Makes the object `note`, and the role `reader`, which may read all notes.
async fn define_notes(admin: &Admin<'_>) {
    admin.define("note", json!([{ "name": "text", "type": "text" }])).await;
    role(admin, "reader", grants(true)).await;
}

/// The text of the first note that is not an early one. A stream may begin with events from a moment before it.
async fn after_early(mut next_payload: impl AsyncFnMut() -> Value) -> String {
    loop {
        let payload = next_payload().await;
        let text = payload["after"]["text"].as_str().unwrap_or_default();
        if text != "early" {
            return text.to_owned();
        }
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn another_instance_shows_no_event_by_a_right_that_was_taken_before_it() {
    let one = ServerBuilder::new(Engine::Postgres).start().await;
    let admin = one.admin().await;
    define_notes(&admin).await;
    let (reader, _) = user(&admin, "reader", Some("reader")).await;
    let watch = json!({ "event": "data.note.#", "consumer": "watch", "handler": "log_event", "perInstance": true });
    assert_eq!(reader.post("/api/v1/events/subscriptions", watch).await.status, 201);
    let other = held_instance(&one).await;
    let there = other.with_token(reader.token.clone());
    // A subscription of an instance gets no events from before the instance's feed began.
    until("the other instance logs events", async || {
        admin.make("note", json!({ "text": "early" })).await;
        other.log().contains("early")
    })
    .await;
    let held = hold_comparisons(&one).await;
    let mut stream = Stream::open(&there, "?topics=data.note.%23").await;
    let mut results = Results::open(&there, "subscription { events(topics: [\"data.note.#\"]) { payload } }").await;
    for round in 0..4 {
        // A right that was given before an event counts too.
        let (given, taken) = (format!("given {round}"), format!("taken {round}"));
        let_read_only(&admin, &[&given, &taken]).await;
        admin.make("note", json!({ "text": given })).await;
        assert_eq!(after_early(async || stream.event().await["payload"].take()).await, given);
        assert_eq!(after_early(async || results.next().await["data"]["events"]["payload"].take()).await, given);
        let log = other.log_with(&given).await;
        assert!(!log.contains("taken"), "{log}");
        // The right to read the other note never comes back, so it does not matter when the other instance looks at its event.
        let_read_only(&admin, &[&given]).await;
        admin.make("note", json!({ "text": taken })).await;
    }
    held.release().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn another_instance_ends_a_stream_before_an_event_if_its_caller_was_refused_before_it() {
    let one = ServerBuilder::new(Engine::Postgres).start().await;
    let admin = one.admin().await;
    define_notes(&admin).await;
    let (by_key, made) = key(&admin, json!({ "name": "reader", "roleId": "reader" })).await;
    let (banned, banned_id) = user(&admin, "banned", Some("reader")).await;
    let (leaver, _) = user(&admin, "leaver", Some("reader")).await;
    let other = held_instance(&one).await;
    let held = hold_comparisons(&one).await;
    for (name, token) in [("key", &by_key.token), ("ban", &banned.token), ("sign-out", &leaver.token)] {
        let (early, late) = (format!("early {name}"), format!("late {name}"));
        let mut stream = Stream::open(&other.with_token(token.clone()), "?topics=data.note.%23").await;
        admin.make("note", json!({ "text": early })).await;
        // The stream may begin with events from a moment before it.
        while stream.event().await["payload"]["after"]["text"] != early {}
        let refused = match name {
            "key" => admin.delete(&format!("/api/v1/api-keys/{}", made["id"].as_str().unwrap())).await,
            "ban" => admin.patch(&format!("/api/v1/users/{banned_id}"), json!({ "banned": true })).await,
            _ => leaver.post("/api/auth/sign-out", json!({})).await,
        };
        assert!(refused.status < 300, "{name}: {}", refused.text);
        admin.make("note", json!({ "text": late })).await;
        while let Some(frame) = stream.frame().await {
            assert!(!frame.contains(&late), "{frame}");
        }
    }
    held.release().await;
}

/// Keeps an instance from claiming deliveries, if the URL of its database has [`CLAIMS_NOTHING`].
const HOLD_CLAIMS: &str = "CREATE FUNCTION skip_claim() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN \
    IF NEW.lease_token IS NOT NULL AND current_setting('test.claims', true) = 'off' THEN RETURN NULL; END IF; \
    RETURN NEW; END $$; \
    CREATE TRIGGER skip_claim BEFORE UPDATE ON svc_deliveries FOR EACH ROW EXECUTE FUNCTION skip_claim()";
const CLAIMS_NOTHING: &str = "options[test.claims]=off";
/// Begins a transaction for which the feeds of all instances wait. Then no instance learns of a change from its feed.
const HOLD_FEEDS: &str = "SELECT pg_current_xact_id()";

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn another_instance_delivers_no_event_by_a_right_that_its_maker_lost_before_it() {
    let receiver = Receiver::start().await;
    let url = format!("{}?{CLAIMS_NOTHING}", new_database().await);
    let one = quick(Engine::Postgres).database(url).start().await;
    one.lock_rows(HOLD_CLAIMS).await.release().await;
    let admin = one.admin().await;
    define_notes(&admin).await;
    let (reader, _) = user(&admin, "reader", Some("reader")).await;
    make(&reader, json!({ "url": receiver.url, "topics": ["data.note.#"] })).await;
    let _other = held_instance(&one).await;
    let held = hold_comparisons(&one).await;
    let feeds = one.lock_rows(HOLD_FEEDS).await;
    for round in 0..3 {
        let_read(&admin, true).await;
        let given = format!("given {round}");
        admin.make("note", json!({ "text": given })).await;
        let received = receiver.wait_for(round + 1).await;
        assert_eq!(received[round].json()["payload"]["after"]["text"], given);
        let_read(&admin, false).await;
        admin.make("note", json!({ "text": format!("taken {round}") })).await;
        let open = "SELECT event_seq FROM svc_deliveries WHERE consumer LIKE 'webhook:%' AND status <> 'delivered'";
        until("both deliveries are settled", async || one.sql(open).await.is_empty()).await;
        assert_eq!(receiver.count(), round + 1);
    }
    feeds.release().await;
    held.release().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn another_instance_lists_no_event_by_a_right_that_was_taken() {
    let one = ServerBuilder::new(Engine::Postgres).start().await;
    let admin = one.admin().await;
    define_notes(&admin).await;
    let (reader, _) = user(&admin, "reader", Some("reader")).await;
    let log = json!({ "event": "data.note.#", "consumer": "log", "handler": "log_event" });
    assert_eq!(admin.post("/api/v1/events/subscriptions", log).await.status, 201);
    admin.make("note", json!({ "text": "a" })).await;
    let event = admin.get("/api/v1/events?object=note&limit=1").await.data()[0]["id"].as_str().unwrap().to_owned();
    let other = held_instance(&one).await;
    let there = other.with_token(reader.token.clone());
    let held = hold_comparisons(&one).await;
    let feeds = one.lock_rows(HOLD_FEEDS).await;
    for path in [
        "/api/v1/events?object=note&limit=1".to_owned(),
        format!("/api/v1/events/{event}"),
        "/api/v1/events/deliveries?consumer=log".to_owned(),
        format!("/api/v1/events/deliveries/{event}/log"),
    ] {
        let_read(&admin, true).await;
        until("the other instance shows the event", async || there.get(&path).await.text.contains(&event)).await;
        let_read(&admin, false).await;
        let refused = there.get(&path).await;
        assert!(!refused.text.contains(&event), "{path}: {}", refused.text);
    }
    feeds.release().await;
    held.release().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn instances_that_boot_at_once_on_an_empty_database_can_all_index_searches() {
    for _ in 0..3 {
        let url = new_database().await;
        let start = || ServerBuilder::new(Engine::Postgres).database(url.clone()).start();
        let (one, two, three) = tokio::join!(start(), start(), start());
        for server in [&one, &two, &three] {
            assert!(!server.log().contains("has no extension pg_trgm"), "{}", server.log());
        }
        let admin = one.admin().await;
        for (number, server) in [&one, &two, &three].into_iter().enumerate() {
            server
                .with_token(admin.token.clone())
                .define(&format!("thing_{number}"), json!([{ "name": "text", "type": "text" }]))
                .await;
        }
        let indexes = postgres_rows(&url, "SELECT indexname::text FROM pg_indexes WHERE indexname ~ '^svc_sf_[0-9]+$'").await;
        assert_eq!(indexes.len(), 3, "an object has no search index: {indexes:?}");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_a_killed_instance_had_under_way_is_delivered_when_its_lease_is_over() {
    let mut first = short_leases(Engine::Postgres).start().await;
    let admin = first.admin().await;
    let token = admin.token.clone();
    for object in ["task", "copy"] {
        admin.define(object, json!([{ "name": "title", "type": "text" }])).await;
    }
    let config = json!({ "object": "copy", "map": { "title": "payload.id" } });
    let subscription =
        json!({ "event": "data.task.created", "consumer": "copies", "handler": "persist_event", "config": config });
    assert_eq!(admin.post("/api/v1/events/subscriptions", subscription).await.status, 201);
    // The delivery stops in the middle, because the table for the copies is locked.
    let lock = first.lock_table("copy").await;
    admin.make("task", json!({ "title": "t" })).await;
    let leased = "SELECT event_seq FROM svc_deliveries WHERE lease_until IS NOT NULL";
    until("it is claimed", async || !first.sql(leased).await.is_empty()).await;
    first.kill();
    let killed = Instant::now();
    lock.release().await;
    let second = first.restart().await;
    let there = second.with_token(token);
    // The limit is a lease of twice five seconds plus five, the time until the dispatcher polls, and some time for a busy
    // machine.
    while there.get("/api/v1/data/copy").await.json()["pagination"]["totalCount"] != 1 {
        assert!(killed.elapsed() < within(Duration::from_secs(28)), "it is not delivered in time");
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_stream_from_a_position_shows_the_events_of_an_object_that_its_instance_does_not_know_yet() {
    let one = ServerBuilder::new(Engine::Postgres).start().await;
    let other = one.builder().start().await;
    let admin = one.admin().await;
    // The right is for own rows of every object, so it does not name the object.
    role(&admin, "writer", json!([{ "resource": "*", "actions": ["create", "read"], "rowPolicy": "own" }])).await;
    let (writer, _) = user(&admin, "writer", Some("writer")).await;
    let there = other.with_token(writer.token.clone());
    for number in 0..3 {
        let start = admin.get("/api/v1/events?limit=1").await.data()[0]["id"].as_str().unwrap().to_owned();
        let name = format!("note{number}");
        admin.define(&name, json!([{ "name": "text", "type": "text" }])).await;
        writer.make(&name, json!({ "text": "own" })).await;
        let mut stream = Stream::open(&there, &format!("?topics=data.%23&since={start}")).await;
        assert_eq!(stream.event().await["topic"], format!("data.{name}.created"));
    }
}

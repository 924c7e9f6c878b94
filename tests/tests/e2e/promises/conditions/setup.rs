//! The setup of the tests: objects, relations, rows, and callers who see different parts of them.

use std::collections::BTreeMap;
use std::time::{SystemTime, UNIX_EPOCH};

use blockbase_tests::{Admin, Server, test_block};
use chrono::{DateTime, SecondsFormat};
use fastrand::Rng;
use serde_json::{Map, Value, json};

use super::PAGE_ROWS;
use super::cells::Cell;
use super::model::{Column, Object, Reach, Reader, Relation, Row, World};
use super::random::Generator;
use super::worlds::{self, NAMES, one_in, pick};

/// The index of the built-in object `users` in a world on a server.
const USERS: usize = NAMES.len();

/// The number of parts in which the rows of an object are made, one after the other. So `created_at` has several values.
const PARTS: usize = 6;
/// The number of operations of one batch that link rows.
const LINKINGS_AT_ONCE: usize = 500;

/// The types whose digits this process loses when it reads JSON.
const EXACT_KINDS: [&str; 3] = ["decimal", "currency", "percentage"];

/// A reader with a session.
pub(super) struct Caller {
    pub(super) reader: Reader,
    pub(super) token: String,
}

async fn role(admin: &Admin<'_>, user: &str, name: &str, permissions: Value) -> String {
    let made = admin.post("/api/v1/roles", json!({ "name": name, "permissions": permissions })).await;
    assert_eq!(made.status, 201, "{}", made.text);
    let role = made.data()["id"].as_str().expect("an id").to_owned();
    let given = admin.post(&format!("/api/v1/users/{user}/roles"), json!({ "roleId": role })).await;
    assert_eq!(given.status, 200, "{}", given.text);
    role
}

fn permissions(world: &World, reads: &[Reach]) -> Value {
    // Calls for many records need the right to write. It covers all rows, so only the right to read hides rows.
    let grants = world.objects.iter().zip(reads).flat_map(|(object, reach)| match reach {
        Reach::Nothing => Vec::new(),
        Reach::Own => vec![
            json!({ "resource": object.name, "actions": ["read"], "rowPolicy": "own" }),
            json!({ "resource": object.name, "actions": ["update", "delete"] }),
        ],
        Reach::All => vec![json!({ "resource": object.name, "actions": ["read", "update", "delete"] })],
    });
    let of_users = match reads[USERS] {
        Reach::Nothing => None,
        Reach::Own => Some(json!({ "resource": "users", "actions": ["read"], "rowPolicy": "own" })),
        Reach::All => Some(json!({ "resource": "users", "actions": ["read"] })),
    };
    // MCP and the block need these grants in addition to those on the objects.
    let others = ["data", "parity:run"].map(|resource| json!({ "resource": resource, "actions": ["read"] }));
    grants.chain(of_users).chain(others).collect()
}

/// Makes a world on a server. Returns the world with the values that the server has given, and the callers.
pub(super) async fn build(server: &Server, seed: u64, is_large: bool) -> (World, Vec<Caller>) {
    let (mut world, definitions) = if is_large { worlds::large_world(seed) } else { worlds::world(seed) };
    let admin = server.admin().await;
    let installed = admin.install("", test_block("parity").await).await;
    assert_eq!(installed.status, 201, "{}", installed.text);
    for definition in &definitions {
        let made = admin.post("/api/v1/objects", definition.clone()).await;
        assert_eq!(made.status, 201, "{}", made.text);
    }
    for relation in &world.relations {
        let (source, target) = (&world.objects[relation.source].name, &world.objects[relation.target].name);
        admin.relate(json!({ "name": relation.name, "kind": relation.kind, "source": source, "target": target })).await;
    }
    let mut tokens = vec![admin.token.clone()];
    for name in ["ann", "bob"] {
        tokens.push(server.sign_up(name).await);
    }
    let mut users = Vec::new();
    for token in &tokens {
        let me = server.with_token(token.clone()).get("/api/v1/me").await.json();
        users.push(me["userId"].as_str().expect("an id").to_owned());
    }
    let mut random = Rng::with_seed(seed);
    lead_to_users(&admin, &mut world, &users, &mut random).await;
    let mut reads = Generator::new(seed, &world).reaches();
    let of_users = [Reach::All, Reach::Own, *pick(&mut random, &[Reach::All, Reach::Nothing])];
    reads.iter_mut().zip(of_users).for_each(|(reads, of_users)| reads.push(of_users));
    // During the setup, she needs the right to make rows.
    let everything = json!([{ "resource": "*", "actions": ["manage"] }]);
    let of_ann = role(&admin, &users[1], "reader_ann", everything).await;
    role(&admin, &users[2], "reader_bob", permissions(&world, &reads[2])).await;
    make_rows(server, &world, &tokens).await;
    let narrowed =
        admin.patch(&format!("/api/v1/roles/{of_ann}"), json!({ "permissions": permissions(&world, &reads[1]) })).await;
    assert_eq!(narrowed.status, 200, "{}", narrowed.text);
    read_back(&admin, &mut world, &users).await;
    add_users(&admin, &mut world, &users).await;
    world.note_related();

    let since_1970 = SystemTime::now().duration_since(UNIX_EPOCH).expect("a time after 1970");
    let now = DateTime::from_timestamp_millis(since_1970.as_millis() as i64).expect("a time that is a datetime");
    let callers = ["admin", "reader_ann", "reader_bob"].into_iter().zip(tokens).zip(reads).enumerate();
    let callers = callers.map(|(user, ((role, token), reads))| {
        let variables = BTreeMap::from([
            ("$user.id", users[user].clone()),
            ("$now", now.to_rfc3339_opts(SecondsFormat::Millis, true)),
            ("$today", now.date_naive().to_string()),
        ]);
        Caller { reader: Reader { name: role, user, reads, variables, roles: Some(vec![role.to_owned()]) }, token }
    });
    (world, callers.collect())
}

/// Makes relations from random objects to `users`, with their references and links.
async fn lead_to_users(admin: &Admin<'_>, world: &mut World, users: &[String], random: &mut Rng) {
    for (name, kind) in [("keeper", "many_to_one"), ("seat", "one_to_one"), ("watchers", "many_to_many")] {
        let source = random.usize(..NAMES.len());
        admin.relate(json!({ "name": name, "kind": kind, "source": NAMES[source], "target": "users" })).await;
        let relation = Relation { name: name.to_owned(), kind, source, target: USERS };
        if relation.is_links() {
            for row in &world.rows[source] {
                let linked = users.iter().filter(|_| random.bool());
                world.links.extend(linked.map(|user| (world.relations.len(), row.id.clone(), user.clone())));
            }
        } else {
            world.objects[source].columns.push(Column { name: relation.column(), kind: "uuid" });
            let mut free = users.to_vec();
            for row in &mut world.rows[source] {
                let user = match kind {
                    // Each user is used once.
                    "one_to_one" => free.pop(),
                    _ if one_in(random, 4) => None,
                    _ => Some(pick(random, users).clone()),
                };
                row.values.insert(relation.column(), json!(user));
            }
        }
        world.relations.push(relation);
    }
}

/// Adds the users as the admin sees them. For a reader with a grant for own rows, this is their own account.
async fn add_users(admin: &Admin<'_>, world: &mut World, users: &[String]) {
    let shown = admin.get("/api/v1/data/users").await.data();
    let shown = shown.as_array().expect("records");
    assert_eq!(shown.len(), users.len());
    let row = |(maker, id): (usize, &String)| {
        let record = shown.iter().find(|record| record["id"] == id.as_str()).expect("the user");
        Row { id: id.clone(), maker, values: record.as_object().expect("a record").clone() }
    };
    world.rows.push(users.iter().enumerate().map(row).collect());
    let columns = [("id", "uuid"), ("name", "text"), ("image", "text"), ("email", "email")];
    let columns = columns.map(|(name, kind)| Column { name: name.to_owned(), kind });
    world.objects.push(Object { name: "users".to_owned(), columns: columns.into() });
}

/// Runs operations as one batch, and returns their results.
async fn batch(server: &Server, token: &str, operations: &[Value]) -> Vec<Value> {
    if operations.is_empty() {
        return Vec::new();
    }
    let sent = json!({ "operations": operations });
    let done = server.call_as(Some(token), "POST", "/api/v1/batch", Some(sent)).await;
    assert_eq!(done.status, 200, "{operations:?}: {}", done.text);
    done.data().as_array().expect("results").clone()
}

/// Creates the rows with their ids, each by its maker. Then sets their references, and makes their links.
async fn make_rows(server: &Server, world: &World, tokens: &[String]) {
    for (object, rows) in world.objects.iter().zip(&world.rows) {
        for some in rows.chunks(rows.len().div_ceil(PARTS)) {
            for (maker, token) in tokens.iter().enumerate() {
                let created = some.iter().filter(|row| row.maker == maker).map(|row| {
                    let is_own = |name: &str| name == "id" || name.starts_with("f_");
                    let record: Map<String, Value> = row.values.clone().into_iter().filter(|(name, _)| is_own(name)).collect();
                    json!({ "op": "upsert", "object": object.name, "values": record, "onConflict": ["id"] })
                });
                batch(server, token, &created.collect::<Vec<_>>()).await;
            }
        }
    }
    for (object, rows) in world.objects.iter().zip(&world.rows) {
        for (maker, token) in tokens.iter().enumerate() {
            let changed = rows.iter().filter(|row| row.maker == maker).filter_map(|row| {
                let is_reference = |name: &str, value: &Value| name.ends_with("_id") && !value.is_null();
                let references: Map<String, Value> =
                    row.values.clone().into_iter().filter(|(name, value)| is_reference(name, value)).collect();
                let change = json!({ "op": "update", "object": object.name, "id": row.id, "values": references });
                (!references.is_empty()).then_some(change)
            });
            batch(server, token, &changed.collect::<Vec<_>>()).await;
        }
    }
    let mut targets: BTreeMap<(usize, &String), Vec<&String>> = BTreeMap::new();
    for (relation, source, target) in &world.links {
        targets.entry((*relation, source)).or_default().push(target);
    }
    let linked = targets.iter().map(|((relation, source), targets)| {
        let relation = &world.relations[*relation];
        let object = &world.objects[relation.source].name;
        json!({ "op": "link", "object": object, "id": source, "relation": relation.name, "ids": targets })
    });
    for operations in linked.collect::<Vec<_>>().chunks(LINKINGS_AT_ONCE) {
        let results = batch(server, &tokens[0], operations).await;
        assert_eq!(results.len(), operations.len());
        for (operation, result) in operations.iter().zip(results) {
            assert_eq!(result["data"]["added"], operation["ids"].as_array().map_or(0, Vec::len), "{operation}: {result}");
        }
    }
}

/// Copies the server's values into the rows, and asserts that the server has kept the values that it got.
async fn read_back(admin: &Admin<'_>, world: &mut World, users: &[String]) {
    for (object, rows) in world.objects.iter().zip(&mut world.rows) {
        let mut shown: Vec<Value> = Vec::new();
        loop {
            let path = format!("/api/v1/data/{}?limit={PAGE_ROWS}&offset={}", object.name, shown.len());
            let page = admin.get(&path).await.data().as_array().expect("records").clone();
            let is_last = page.len() < PAGE_ROWS;
            shown.extend(page);
            if is_last {
                break;
            }
        }
        assert_eq!(shown.len(), rows.len());
        for row in rows {
            let record = shown.iter().find(|record| record["id"] == row.id.as_str()).expect("the record");
            for name in ["created_at", "updated_at", "created_by", "updated_by"] {
                row.values.insert(name.to_owned(), record[name].clone());
            }
            assert_eq!(record["created_by"], users[row.maker].as_str());
            for column in object.columns.iter().filter(|column| !EXACT_KINDS.contains(&column.kind)) {
                let cell = |value: &Value| Cell::read(column.kind, value).expect("a value");
                assert_eq!(cell(&record[&column.name]), cell(&row.values[&column.name]), "{}: {record}", column.name);
            }
        }
    }
}

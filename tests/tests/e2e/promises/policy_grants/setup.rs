//! The setup: objects, users, keys, roles and rows on a server.

use std::collections::BTreeMap;

use blockbase_tests::{Admin, Server, test_block};
use fastrand::Rng;
use serde_json::{Map, Value, json};

use super::rights::{Key, ROLES, Rights, reader};
use super::worlds::{self, Giver, NAMES, OBJECTS, PEOPLE, Rules, USERS};
use crate::promises::conditions::model::{Row, World};
use crate::promises::conditions::worlds::pick;

pub(super) struct Setup {
    pub(super) world: World,
    pub(super) rules: Vec<Rules>,
    pub(super) rights: Rights,
    /// The values of the field `holder`.
    pub(super) holders: Vec<String>,
    /// The objects whose events go to a webhook of [`HOOK_MAKER`].
    pub(super) hooked: Vec<usize>,
}

/// The user who makes the webhooks, and the caller with their session: Ann.
pub(super) const HOOK_MAKER: usize = 1;

pub(super) async fn must(admin: &Admin<'_>, method: &str, path: &str, body: Value) -> Value {
    let answer = admin.server.call_as(Some(&admin.token), method, path, Some(body)).await;
    assert!(answer.status < 300, "{method} {path}: {} {}", answer.status, answer.text);
    if answer.text.is_empty() { Value::Null } else { answer.json() }
}

pub(super) fn text(value: &Value) -> String {
    value.as_str().unwrap_or_else(|| panic!("no text: {value}")).to_owned()
}

async fn define(admin: &Admin<'_>, world: &World, rules: &[Rules]) {
    for name in NAMES {
        admin.define(name, worlds::definition()).await;
    }
    for (relation, rules) in world.relations.iter().zip(rules) {
        let (source, target) = (OBJECTS[relation.source], OBJECTS[relation.target]);
        let mut definition = json!({ "name": relation.name, "kind": relation.kind, "source": source, "target": target });
        if !relation.is_links() {
            definition["onDelete"] = json!(rules.on_delete);
            definition["required"] = json!(rules.is_required);
        }
        admin.relate(definition).await;
    }
}

/// Makes the rows of the plans, each by its maker.
async fn make_rows(server: &Server, random: &mut Rng, world: &mut World, plans: Vec<Vec<worlds::Plan>>, makers: &[String]) {
    // An object comes after the objects to which its required references lead.
    let order = {
        let part = world.relations.iter().find(|relation| relation.name == "part").expect("the relation");
        let (three, two) = part.sides();
        [vec![two], vec![three], (0..NAMES.len()).filter(|object| ![two, three].contains(object)).collect()].concat()
    };
    let mut ids: Vec<Vec<Option<String>>> = plans.iter().map(|plans| vec![None; plans.len()]).collect();
    ids.push(world.rows[USERS].iter().map(|row| Some(row.id.clone())).collect());
    let mut later = Vec::new();
    for object in order {
        for (maker, token) in makers.iter().enumerate() {
            let numbers: Vec<usize> = (0..plans[object].len()).filter(|number| plans[object][*number].maker == maker).collect();
            if numbers.is_empty() {
                continue;
            }
            let mut records = Vec::new();
            for number in &numbers {
                let mut values = plans[object][*number].values.clone();
                for (place, row) in &plans[object][*number].references {
                    let relation = &world.relations[*place];
                    match &ids[relation.sides().1][*row] {
                        Some(id) => drop(values.insert(relation.column(), json!(id))),
                        None => later.push((object, *number, *place, *row, maker)),
                    }
                }
                records.push(Value::Object(values));
            }
            let path = format!("/api/v1/data/{}/bulk", NAMES[object]);
            let made = server.call_as(Some(token), "POST", &path, Some(json!({ "data": records }))).await;
            assert_eq!(made.status, 201, "{}", made.text);
            for (number, id) in numbers.iter().zip(made.json()["ids"].as_array().expect("ids")) {
                ids[object][*number] = Some(text(id));
            }
        }
    }
    let mut changes: BTreeMap<(usize, usize, usize), Map<String, Value>> = BTreeMap::new();
    for (object, number, place, row, maker) in later {
        let relation = &world.relations[place];
        let id = ids[relation.sides().1][row].clone();
        changes.entry((object, number, maker)).or_default().insert(relation.column(), json!(id));
    }
    for ((object, number, maker), values) in changes {
        let id = ids[object][number].as_ref().expect("an id");
        let path = format!("/api/v1/data/{}/{id}", NAMES[object]);
        let changed = server.call_as(Some(&makers[maker]), "PATCH", &path, Some(Value::Object(values))).await;
        assert_eq!(changed.status, 200, "{}", changed.text);
    }
    for (object, plans) in plans.into_iter().enumerate() {
        for (plan, id) in plans.into_iter().zip(&ids[object]) {
            world.rows[object].push(Row { id: id.clone().expect("an id"), maker: 0, values: plan.values });
        }
    }
    for (place, relation) in world.relations.clone().into_iter().enumerate().filter(|(_, relation)| relation.is_links()) {
        for source in world.rows[relation.source].clone() {
            let count = random.usize(0..3);
            let targets: Vec<String> = (0..count).map(|_| pick(random, &world.rows[relation.target]).id.clone()).collect();
            if targets.is_empty() {
                continue;
            }
            let path = format!("/api/v1/data/{}/{}/links/{}", NAMES[relation.source], source.id, relation.name);
            let linked = server.call_as(Some(&makers[0]), "POST", &path, Some(json!({ "ids": targets }))).await;
            assert_eq!(linked.status, 200, "{}", linked.text);
            world.links.extend(targets.into_iter().map(|target| (place, source.id.clone(), target)));
        }
    }
}

/// The roles of a user, as numbers of roles. The admin has no role of the test, and Mia has one of her own.
fn given(random: &mut Rng, user: usize) -> Vec<usize> {
    match user {
        0 => Vec::new(),
        1 => vec![0],
        2 => vec![1, 2],
        4 => vec![3],
        _ => (0..3).filter(|_| random.bool()).collect(),
    }
}

pub(super) async fn build(server: &Server, seed: u64, receiver_url: &str) -> Setup {
    let mut random = Rng::with_seed(seed);
    let (mut world, rules) = worlds::schema(&mut random);
    let admin = server.admin().await;
    define(&admin, &world, &rules).await;
    let installed = admin.install("", test_block("parity").await).await;
    assert_eq!(installed.status, 201, "{}", installed.text);
    let everything = json!([{ "resource": "*", "actions": ["manage"] }]);
    let role = async |name: &str, permissions: &Value| {
        let body = json!({ "name": name, "permissions": permissions });
        text(&must(&admin, "POST", "/api/v1/roles", body).await["data"]["id"])
    };
    let builder = role("builder", &everything).await;
    let mut tokens = vec![admin.token.clone()];
    for name in PEOPLE {
        tokens.push(server.sign_up(name).await);
    }
    let mut ids = Vec::new();
    for token in &tokens {
        ids.push(text(&server.with_token(token.clone()).get("/api/v1/me").await.json()["userId"]));
    }
    for id in &ids[1..] {
        must(&admin, "POST", &format!("/api/v1/users/{id}/roles"), json!({ "roleId": builder })).await;
    }
    let mut roles = Vec::new();
    for name in ROLES {
        roles.push(role(name, &json!([])).await);
    }
    // The admin makes one key for another user. Mia makes one for Ann and one for herself.
    let mut keys = Vec::new();
    for (maker, user, role) in [(0, 2, 1), (4, 1, 0), (4, 4, 2)] {
        let body = json!({ "name": "key", "roleId": roles[role], "userId": ids[user] });
        let made = must(&server.with_token(tokens[maker].clone()), "POST", "/api/v1/api-keys", body).await;
        keys.push(Key { maker, user, role, credential: text(&made["key"]), id: text(&made["data"]["id"]) });
    }
    let mut holders: Vec<String> = ids.clone();
    holders.extend(keys.iter().map(|key| key.id.clone()));
    holders.extend(ROLES.iter().map(|name| (*name).to_owned()));
    holders.push("ann@example.com".to_owned());
    for user in admin.get("/api/v1/data/users?limit=100").await.data().as_array().expect("users") {
        let values = user.as_object().expect("a user").clone();
        world.rows[USERS].push(Row { id: text(&values["id"]), maker: 0, values });
    }
    let plans = worlds::plans(&mut random, &world, &rules, &holders, 4);
    make_rows(server, &mut random, &mut world, plans, &tokens[..4]).await;
    super::adopt(&mut world, &super::shown_to_admin(server, &admin.token).await);
    let variables = {
        let mut all = reader(Some(&ids[1]), Some(&keys[0].id), &["role0"]);
        all.variables.insert("$user.email", "ann@example.com".to_owned());
        all
    };
    let users: Vec<(String, String)> = ids.into_iter().zip(tokens).collect();
    let given: Vec<Vec<usize>> = (0..users.len()).map(|user| given(&mut random, user)).collect();
    let mut rights = Rights { roles, of_roles: Vec::new(), public: Vec::new(), users, given, keys, builder, variables };
    for role in 0..ROLES.len() {
        let mut giver = Giver { random: &mut random, world: &world, variables: &rights.variables };
        rights.of_roles.push(giver.role());
        rights.save_role(&admin, &world, role).await;
    }
    rights.public = Giver { random: &mut random, world: &world, variables: &rights.variables }.public();
    rights.save_public(&admin, &world).await;
    for (user, (id, _)) in rights.users.iter().enumerate() {
        for number in &rights.given[user] {
            let role = json!({ "roleId": rights.roles[*number] });
            must(&admin, "POST", &format!("/api/v1/users/{id}/roles"), role).await;
        }
        if user > 0 {
            let gone = admin.delete(&format!("/api/v1/users/{id}/roles/{}", rights.builder)).await;
            assert!(gone.status < 300, "{}", gone.text);
        }
    }
    let hooked = rights.hook(server, receiver_url, &[]).await;
    Setup { world, rules, rights, holders, hooked }
}
